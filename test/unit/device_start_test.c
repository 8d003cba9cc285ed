/*
 * device_start_test.c
 *	  Tests which devices the CUDA device layer starts, over the CUDA stub. Also tests how their
 *	  limits follow the memory that other processes take.
 */
#include "abandon.h"
#include "cuda/cuda_stub.h"
#include "device_cuda/device_internal.h"
#include "unit.h"

/*
 * Starts the device layer with this number of devices; first, second: their compute capabilities.
 */
static DeviceStatus
start(int devices, int first, int second, WireStatus *status, DeviceError *error)
{
	memset(status, 0, sizeof(*status));
	error->text[0] = '\0';
	stub_devices = devices;
	stub_capability[0] = first;
	stub_capability[1] = second;
	return device_ops.start("all", status, error);
}

static void
test_usable_devices(void)
{
	WireStatus status;
	DeviceError error;

	CHECK(start(2, 75, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.devices[0].ordinal == 1,
		  "an old device keeps a good one from starting: %s", error.text);
	CHECK(status.nskipped == 1 && status.skipped[0].ordinal == 0 &&
			  strstr(status.skipped[0].note, "capability 7.5 is below 8.0"),
		  "%s", status.skipped[0].note);
	CHECK(start(1, 75, 0, &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "7.5"),
		  "an old device starts: %s", error.text);

	/* the driver compiled PTX to a binary at the start */
	stub_binary = 120;
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_OK &&
			  strstr(status.devices[0].note, "CUDA_ARCHS=\"... 120\""),
		  "%s", status.devices[0].note);
	stub_binary = 90;

	/* the device has neither binary nor PTX */
	stub_fail(STUB_LAUNCH, 1, false, cudaErrorNoKernelImageForDevice);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.devices[0].ordinal == 1,
		  "a device without kernels is not skipped");
	stub_fail(STUB_LAUNCH, 1, true, cudaErrorMemoryAllocation);
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_NO_MEMORY,
		  "a busy device is not reported as short of memory");
	stub_fail(STUB_OTHER, 1, true, cudaErrorJitCompilerNotFound);
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_UNSUPPORTED,
		  "PTX that the driver cannot compile is not reported as unsupported");

	/* an error of the second device must not be reported by a launch on the first */
	stub_fail(STUB_OTHER, 2, false, cudaErrorDevicesUnavailable);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.devices[0].ordinal == 0,
		  "a device that another process uses exclusively is not skipped");
	CHECK(cudaGetLastError() == cudaSuccess, "an error was left unread");
	stub_mend();

	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 0 && status.devices[0].note[0] == '\0',
		  "a good device does not start");
	budget_start(&status);
}

/* Starts the device layer on those of two devices that `names` lists. */
static DeviceStatus
start_named(const char *names, WireStatus *status, DeviceError *error)
{
	memset(status, 0, sizeof(*status));
	error->text[0] = '\0';
	stub_devices = 2;
	stub_capability[0] = stub_capability[1] = 90;
	return device_ops.start(names, status, error);
}

static void
test_named_devices(void)
{
	WireStatus status;
	DeviceError error;

	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("1", &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 0 && status.devices[0].ordinal == 1,
		  "the second device alone does not start");
	CHECK(start_named("1, 7", &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.skipped[0].ordinal == 7 &&
			  strstr(status.skipped[0].note, "no GPU of this number"),
		  "%s", status.skipped[0].note);
	CHECK(start_named("7", &status, &error) == DEVICE_UNSUPPORTED && status.ndevices == 0,
		  "a device that does not exist starts");
	CHECK(start_named("none", &status, &error) == DEVICE_UNSUPPORTED &&
			  strstr(error.text, "names no device"),
		  "%s", error.text);
	CHECK(start_named("zork", &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "zork"),
		  "%s", error.text);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") == NULL, "a list of numbers changes CUDA_VISIBLE_DEVICES");
	CHECK(start_named("GPU-00000001, GPU-00000000, GPU-13", &status, &error) == DEVICE_OK &&
			  status.ndevices == 2 && status.nskipped == 1 &&
			  strstr(status.skipped[0].note, "names 3 GPUs, of which CUDA finds the first 2"),
		  "%s", status.skipped[0].note);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") &&
			  strcmp(getenv("CUDA_VISIBLE_DEVICES"), "GPU-00000001,GPU-00000000,GPU-13") == 0,
		  "UUIDs are not passed to CUDA");
	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("all", &status, &error) == DEVICE_OK && status.ndevices == 2, "all");
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK,
		  "the device for the next tests does not start");
	budget_start(&status);
}

/* Tests the memory that other processes leave, and the memory that is given back to them. */
static void
test_other_processes(void)
{
	uint64_t memory = budget_device(0)->memory;
	uint64_t bytes;

	stub_memory[0].others = memory / 2;
	stub_memory[0].reserved = memory / 4;
	stub_memory[0].used = memory / 8;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2,
		  "half of the memory is not available");
	CHECK(stub_memory[0].reserved == memory / 4, "memory is given back while queries run");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 2 / 5 * 4,
		  "the limit does not follow the available memory");
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory / 2,
		  "half of the memory is not available when idle");
	CHECK(stub_memory[0].reserved == memory / 8 + memory / 64,
		  "unused memory is not given back when idle, except for a small rest");
	stub_memory[0].reserved = memory / 4;
	budget_set_available(0, memory / 4);
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2,
		  "half of the memory is not available above the limit");
	CHECK(stub_memory[0].reserved == memory / 8 + memory / 64,
		  "memory above the limit is not given back while queries run");
	stub_memory[0].grows = memory / 64;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2,
		  "memory that queries take meanwhile is attributed to another process");
	stub_memory[0].grows = 0;
	stub_fail(STUB_OTHER, 1, true, cudaErrorIllegalAddress);
	device_ops.pin(&bytes, sizeof(bytes), &(DeviceError){""});
	CHECK(!device_ops.available(0, true, &bytes), "a device that is lost has available memory");
	stub_mend();
	stub_memory[0].others = stub_memory[0].reserved = stub_memory[0].used = 0;
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory,
		  "the memory is not available again");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 5 * 4, "the limit is not as before");
	budget_set_limit(1 << 20);
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == 1 << 20, "the limit is not that of the setting");
	budget_set_limit(0);
}

int
main(void)
{
	RUN("devices are found by number or UUID", test_named_devices);
	RUN("devices that cannot be used are skipped", test_usable_devices);
	RUN("limits follow what other processes use", test_other_processes);
	return unit_done();
}

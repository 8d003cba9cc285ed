/*
 * device_start_test.c
 *	  Which devices the CUDA device layer starts with over a stub of the run time, and how their
 * limits follow what other processes have of their memory.
 */
#include "abandon.h"
#include "cuda/cuda_stub.h"
#include "device_cuda/device_internal.h"
#include "unit.h"

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
devices(void)
{
	WireStatus status;
	DeviceError error;

	CHECK(start(2, 75, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.devices[0].ordinal == 1,
		  "an old device beside a good one: %s", error.text);
	CHECK(status.nskipped == 1 && status.skipped[0].ordinal == 0 &&
			  strstr(status.skipped[0].note, "capability 7.5 is below 8.0"),
		  "%s", status.skipped[0].note);
	CHECK(start(1, 75, 0, &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "7.5"),
		  "an old device alone: %s", error.text);

	/* a binary made of PTX at the start */
	stub_binary = 120;
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_OK &&
			  strstr(status.devices[0].note, "CUDA_ARCHS=\"... 120\""),
		  "%s", status.devices[0].note);
	stub_binary = 90;

	/* neither binary nor PTX */
	stub_fail(STUB_LAUNCH, 1, false, cudaErrorNoKernelImageForDevice);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.devices[0].ordinal == 1,
		  "a device without kernels");
	stub_fail(STUB_LAUNCH, 1, true, cudaErrorMemoryAllocation);
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_NO_MEMORY,
		  "a device that is busy may be tried again");
	stub_fail(STUB_OTHER, 1, true, cudaErrorJitCompilerNotFound);
	CHECK(start(1, 120, 0, &status, &error) == DEVICE_UNSUPPORTED,
		  "PTX that the driver cannot compile");

	/* an error of the second device must not be reported by a launch on the first */
	stub_fail(STUB_OTHER, 2, false, cudaErrorDevicesUnavailable);
	CHECK(start(2, 90, 90, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.devices[0].ordinal == 0,
		  "a device that another process uses exclusively");
	CHECK(cudaGetLastError() == cudaSuccess, "the error stays behind");
	stub_mend();

	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 0 && status.devices[0].note[0] == '\0',
		  "a device");
	budget_start(&status);
}

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
named_devices(void)
{
	WireStatus status;
	DeviceError error;

	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("1", &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 0 && status.devices[0].ordinal == 1,
		  "the second one");
	CHECK(start_named("1, 7", &status, &error) == DEVICE_OK && status.ndevices == 1 &&
			  status.nskipped == 1 && status.skipped[0].ordinal == 7 &&
			  strstr(status.skipped[0].note, "no GPU of this number"),
		  "%s", status.skipped[0].note);
	CHECK(start_named("7", &status, &error) == DEVICE_UNSUPPORTED && status.ndevices == 0,
		  "none that is there");
	CHECK(start_named("none", &status, &error) == DEVICE_UNSUPPORTED &&
			  strstr(error.text, "names no device"),
		  "%s", error.text);
	CHECK(start_named("zork", &status, &error) == DEVICE_UNSUPPORTED && strstr(error.text, "zork"),
		  "%s", error.text);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") == NULL, "numbers are CUDA's own");
	CHECK(start_named("GPU-00000001, GPU-00000000, GPU-13", &status, &error) == DEVICE_OK &&
			  status.ndevices == 2 && status.nskipped == 1 &&
			  strstr(status.skipped[0].note, "names 3 GPUs, of which CUDA finds the first 2"),
		  "%s", status.skipped[0].note);
	CHECK(getenv("CUDA_VISIBLE_DEVICES") &&
			  strcmp(getenv("CUDA_VISIBLE_DEVICES"), "GPU-00000001,GPU-00000000,GPU-13") == 0,
		  "UUIDs are for CUDA");
	unsetenv("CUDA_VISIBLE_DEVICES");
	CHECK(start_named("all", &status, &error) == DEVICE_OK && status.ndevices == 2, "all");
	CHECK(start(1, 90, 0, &status, &error) == DEVICE_OK, "one for the tests that follow");
	budget_start(&status);
}

/* What other processes leave, and what is given back to them. */
static void
other_processes(void)
{
	uint64_t memory = budget_device(0)->memory;
	uint64_t bytes;

	stub_memory[0].others = memory / 2;
	stub_memory[0].reserved = memory / 4;
	stub_memory[0].used = memory / 8;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_memory[0].reserved == memory / 4, "nothing is given back while queries run");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 2 / 5 * 4, "the limit follows");
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_memory[0].reserved == memory / 8 + memory / 64,
		  "what is not used is given back, but for a little");
	stub_memory[0].reserved = memory / 4;
	budget_set_available(0, memory / 4);
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2, "half is left");
	CHECK(stub_memory[0].reserved == memory / 8 + memory / 64,
		  "while queries run, what is more than the limit");
	stub_memory[0].grows = memory / 64;
	CHECK(device_ops.available(0, false, &bytes) && bytes == memory / 2,
		  "what queries take meanwhile is not another process's");
	stub_memory[0].grows = 0;
	stub_fail(STUB_OTHER, 1, true, cudaErrorIllegalAddress);
	device_ops.pin(&bytes, sizeof(bytes), &(DeviceError){""});
	CHECK(!device_ops.available(0, true, &bytes), "nothing is known of a device that is lost");
	stub_mend();
	stub_memory[0].others = stub_memory[0].reserved = stub_memory[0].used = 0;
	CHECK(device_ops.available(0, true, &bytes) && bytes == memory, "all is left");
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == memory / 5 * 4, "as before");
	budget_set_limit(1 << 20);
	budget_set_available(0, bytes);
	CHECK(budget_device(0)->limit == 1 << 20, "a setting is the most");
	budget_set_limit(0);
}

int
main(void)
{
	RUN("devices that are named", named_devices);
	RUN("devices that can be used, and others", devices);
	RUN("other processes on the device", other_processes);
	return unit_done();
}

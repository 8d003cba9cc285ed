/*
 * device_list_test.c
 *	  Tests the syntax of gpuagg.devices (device_list.h).
 */
#include <stdbool.h>

#include "device_list.h"
#include "unit.h"

#define UUID "8932f937-d72c-4106-c12f-20bd9faed9f6"

static DeviceList list;
static char wrong[200];

/* Returns whether device_list_read() accepts the text. If so, sets `list`; if not, sets `wrong`. */
static bool
reads(const char *text)
{
	wrong[0] = '\0';
	return device_list_read(text, &list, wrong, sizeof(wrong));
}

static void
test_words(void)
{
	CHECK(reads("") && list.kind == DEVICES_ALL && device_list_has(&list, 7),
		  "an empty list does not mean all devices");
	CHECK(reads(" ALL ") && list.kind == DEVICES_ALL, "all");
	CHECK(reads("none") && list.kind == DEVICES_NONE && !device_list_has(&list, 0), "none");
	CHECK(!reads("1,all") && strcmp(wrong, "\"all\" cannot be combined with other values.") == 0,
		  "%s", wrong);
	CHECK(!reads("none, 1") && strcmp(wrong, "\"none\" cannot be combined with other values.") == 0,
		  "%s", wrong);
	CHECK(!reads("zork") &&
			  strcmp(wrong, "\"zork\" is neither the number of a GPU nor the UUID of one.") == 0,
		  "%s", wrong);
}

static void
test_numbers(void)
{
	CHECK(reads("0, 2") && list.kind == DEVICES_NUMBERS && list.n == 2 &&
			  device_list_has(&list, 0) && !device_list_has(&list, 1) && device_list_has(&list, 2),
		  "two numbers are read wrongly");
	CHECK(!reads("0,2,00") && strcmp(wrong, "GPU 0 is listed twice.") == 0, "%s", wrong);
	CHECK(!reads("0,,2") && strcmp(wrong, "The list has an empty element.") == 0, "%s", wrong);
	CHECK(!reads("0,") && !reads(",") && !reads("-1") && !reads("1.5") && !reads("0 1"),
		  "text that is no list of numbers is accepted");
	CHECK(!reads("99999999999999999999"), "a number that is too large is accepted");
}

static void
test_ids(void)
{
	char text[2 * DEVICE_LIST_BYTES];

	CHECK(reads("GPU-" UUID ", GPU-12ab") && list.kind == DEVICES_IDS && list.n == 2 &&
			  strcmp(list.ids, "GPU-" UUID ",GPU-12ab") == 0,
		  "%s", list.ids);
	CHECK(reads("MIG-" UUID) && reads("MIG-GPU-" UUID "/1/0"), "MIG instances are rejected");
	CHECK(!reads("GPU-") && !reads("GPU-12g") && !reads("GPU-12345678d") &&
			  !reads("GPU-" UUID "0") && !reads(UUID),
		  "text that is no UUID is accepted");
	CHECK(!reads("MIG-GPU-" UUID) && !reads("MIG-GPU-" UUID "/1") &&
			  !reads("MIG-GPU-" UUID "/1/0/2") && !reads("GPU-" UUID "/1/0") && !reads("MIG-"),
		  "text that names no MIG instance is accepted");
	CHECK(!reads("0,GPU-12ab") && strcmp(wrong, "Numbers and UUIDs cannot be mixed.") == 0, "%s",
		  wrong);
	CHECK(!reads("GPU-12ab,GPU-12,GPU-12ab") && strcmp(wrong, "\"GPU-12ab\" is listed twice.") == 0,
		  "%s", wrong);

	text[0] = '\0';
	for (int i = 0; i < DEVICE_LIST_MAX + 1; i++)
		sprintf(text + strlen(text), "%s%d", i ? "," : "", i);
	CHECK(!reads(text) && strstr(wrong, "more than"), "%s", wrong);
	memset(text, '1', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(!reads(text) && strstr(wrong, "1024 bytes"), "%s", wrong);
}

int
main(void)
{
	RUN("lists of words are read", test_words);
	RUN("lists of numbers are read", test_numbers);
	RUN("lists of UUIDs and MIG instances are read", test_ids);
	return unit_done();
}

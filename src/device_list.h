/*
 * device_list.h
 *	  Parses gpuagg.devices.
 *
 * Without PostgreSQL and CUDA, as both the setting's check hook and the server use it.
 */
#ifndef GPUAGG_DEVICE_LIST_H
#define GPUAGG_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The text has fewer bytes than this. */
#define DEVICE_LIST_BYTES 1024
/* Most devices in a list. */
#define DEVICE_LIST_MAX 64

typedef enum DeviceListKind
{
	DEVICES_ALL,     /* "all", or an empty text */
	DEVICES_NONE,    /* "none" */
	DEVICES_NUMBERS, /* CUDA's device numbers, such as "0,2" */
	DEVICES_IDS      /* prefixes of UUIDs, and MIG instances, as in CUDA_VISIBLE_DEVICES */
} DeviceListKind;

typedef struct DeviceList
{
	DeviceListKind kind;
	int n; /* entries of `numbers` or `ids` */
	int numbers[DEVICE_LIST_MAX];
	char ids[DEVICE_LIST_BYTES]; /* separated by commas, without spaces */
} DeviceList;

/* Parses the text.  If it is not valid, returns false, and `wrong` is a sentence that says why. */
extern bool device_list_read(const char *text, DeviceList *list, char *wrong, size_t size);

/*
 * Returns whether the list has the device with this number.  True for a list of ids: CUDA selects
 * the devices then.
 */
extern bool device_list_has(const DeviceList *list, int ordinal);

#endif /* GPUAGG_DEVICE_LIST_H */

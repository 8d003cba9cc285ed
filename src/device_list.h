/*
 * device_list.h
 *	  The GPUs that gpuagg.devices names.
 *
 * Knows neither PostgreSQL nor CUDA: read by the setting's check and by the server.
 */
#ifndef GPUAGG_DEVICE_LIST_H
#define GPUAGG_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The setting is shorter than this. */
#define DEVICE_LIST_BYTES 1024
#define DEVICE_LIST_MAX 64

typedef enum DeviceListKind
{
	DEVICES_ALL,     /* "all", or nothing */
	DEVICES_NONE,    /* "none" */
	DEVICES_NUMBERS, /* "0,2", as CUDA counts them */
	DEVICES_IDS /* UUIDs or their beginnings, and MIG instances, as CUDA_VISIBLE_DEVICES has them */
} DeviceListKind;

typedef struct DeviceList
{
	DeviceListKind kind;
	int n; /* numbers, or ids */
	int numbers[DEVICE_LIST_MAX];
	char ids[DEVICE_LIST_BYTES]; /* with commas, without spaces */
} DeviceList;

/* False: `wrong` says in a sentence what is wrong with the text. */
extern bool device_list_read(const char *text, DeviceList *list, char *wrong, size_t size);

/*
 * Does a list of numbers, "all" or "none" have the device?  A list of ids leaves that to CUDA:
 * true.
 */
extern bool device_list_has(const DeviceList *list, int ordinal);

#endif /* GPUAGG_DEVICE_LIST_H */

/*
 * device_list.c
 *	  Parses gpuagg.devices; see device_list.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device_list.h"

/* Most digits of a device number. */
#define NUMBER_DIGITS 4
#define UUID_LENGTH 36

/* Returns the length of the UUID, or prefix of one, with which the text begins; 0: none. */
static size_t
uuid_length(const char *text)
{
	size_t n = 0;

	while (n < UUID_LENGTH &&
		   (n == 8 || n == 13 || n == 18 || n == 23 ? text[n] == '-' :
													  isxdigit((unsigned char) text[n]) != 0))
		n++;
	return n;
}

/* Returns the length of a part such as "/3" of a MIG instance, or 0. */
static size_t
instance_length(const char *text)
{
	size_t n = text[0] == '/' ? strspn(text + 1, "0123456789") : 0;

	return n > 0 ? n + 1 : 0;
}

/*
 * Returns whether the text is an id: GPU-8932f937 or MIG-8932f937, with more or fewer digits, or
 * MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0.
 */
static bool
is_id(const char *id)
{
	bool mig = strncmp(id, "MIG-", 4) == 0;
	bool gpu = strncmp(id + (mig ? 4 : 0), "GPU-", 4) == 0;
	const char *at = id + (mig ? 4 : 0) + (gpu ? 4 : 0);
	size_t n = uuid_length(at);

	if (n == 0 || (!mig && !gpu))
		return false;
	at += n;
	for (int i = 0; mig && gpu && i < 2; i++)
	{
		n = instance_length(at);
		if (n == 0)
			return false;
		at += n;
	}
	return *at == '\0';
}

/* Adds a device number, given as digits; returns false and sets `wrong` if it is not valid. */
static bool
add_number(DeviceList *list, const char *item, char *wrong, size_t size)
{
	int number;

	if (strlen(item) > NUMBER_DIGITS)
	{
		snprintf(wrong, size, "There is no GPU number %.40s.", item);
		return false;
	}
	number = atoi(item);
	for (int i = 0; i < list->n; i++)
		if (list->numbers[i] == number)
		{
			snprintf(wrong, size, "GPU %d is listed twice.", number);
			return false;
		}
	list->numbers[list->n++] = number;
	return true;
}

/* Adds an id; returns false and sets `wrong` if the list has it already. */
static bool
add_id(DeviceList *list, const char *item, char *wrong, size_t size)
{
	size_t length = strlen(item);
	size_t used = strlen(list->ids);

	for (const char *at = list->ids; *at != '\0';
		 at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
		if (strcspn(at, ",") == length && strncmp(at, item, length) == 0)
		{
			snprintf(wrong, size, "\"%.100s\" is listed twice.", item);
			return false;
		}
	snprintf(list->ids + used, sizeof(list->ids) - used, "%s%s", used > 0 ? "," : "", item);
	list->n++;
	return true;
}

/* Adds an element of the list; returns false and sets `wrong` if it is not valid. */
static bool
add_item(DeviceList *list, const char *item, char *wrong, size_t size)
{
	bool number = item[0] != '\0' && item[strspn(item, "0123456789")] == '\0';
	bool first = list->n == 0;

	if (!number && !is_id(item))
	{
		if (item[0] == '\0')
			snprintf(wrong, size, "The list has an empty element.");
		else if (strcasecmp(item, "all") == 0 || strcasecmp(item, "none") == 0)
			snprintf(wrong, size, "\"%s\" cannot be combined with other values.", item);
		else
			snprintf(wrong, size, "\"%.100s\" is neither the number of a GPU nor the UUID of one.",
					 item);
		return false;
	}
	if (!first && (list->kind == DEVICES_NUMBERS) != number)
	{
		snprintf(wrong, size, "Numbers and UUIDs cannot be mixed.");
		return false;
	}
	if (list->n == DEVICE_LIST_MAX)
	{
		snprintf(wrong, size, "The list has more than %d GPUs.", DEVICE_LIST_MAX);
		return false;
	}
	list->kind = number ? DEVICES_NUMBERS : DEVICES_IDS;
	return number ? add_number(list, item, wrong, size) : add_id(list, item, wrong, size);
}

/* Copies `length` bytes of a text to *to, without spaces at either end, and terminates them. */
static void
trim(char *to, const char *text, size_t length)
{
	while (length > 0 && isspace((unsigned char) text[0]))
	{
		text++;
		length--;
	}
	while (length > 0 && isspace((unsigned char) text[length - 1]))
		length--;
	memcpy(to, text, length);
	to[length] = '\0';
}

bool
device_list_read(const char *text, DeviceList *list, char *wrong, size_t size)
{
	char item[DEVICE_LIST_BYTES];

	memset(list, 0, sizeof(*list));
	if (strlen(text) >= DEVICE_LIST_BYTES)
	{
		snprintf(wrong, size, "The value has %d bytes or more.", DEVICE_LIST_BYTES);
		return false;
	}
	trim(item, text, strlen(text));
	if (item[0] == '\0' || strcasecmp(item, "all") == 0)
		return true;
	if (strcasecmp(item, "none") == 0)
	{
		list->kind = DEVICES_NONE;
		return true;
	}
	for (const char *at = text;; at++)
	{
		size_t length = strcspn(at, ",");

		trim(item, at, length);
		if (!add_item(list, item, wrong, size))
			return false;
		at += length;
		if (*at == '\0')
			return true;
	}
}

bool
device_list_has(const DeviceList *list, int ordinal)
{
	if (list->kind == DEVICES_NUMBERS)
	{
		for (int i = 0; i < list->n; i++)
			if (list->numbers[i] == ordinal)
				return true;
		return false;
	}
	return list->kind != DEVICES_NONE;
}

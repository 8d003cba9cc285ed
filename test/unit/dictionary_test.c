/*
 * dictionary_test.c
 *	  Tests the GPU server's dictionaries of stored columns (server/column_dictionary.c).
 *
 * Entries get numbers in the order in which they arrive; a client reads all entries, or those that
 * are new to it; entries and bytes are limited. Entries are strings of one length that contain a
 * number. The test includes the source file, and runs in one thread.
 */
#include <string.h>

#include "server/column_dictionary.c"

#include "unit.h"

static char buffer[WIRE_BUFFER_BYTES];
static const WireTableKey table = {1};
static const WireColumnKey column = {.attno = 1, .coded = 1};

/*
 * Writes n entries into the buffer, in the form of a STORE message, and returns their bytes. Each
 * contains its number, first + i, and is filled up to `length` bytes.
 */
static uint32_t
make_entries(uint32_t first, uint32_t n, uint32_t length)
{
	uint32_t *lengths = (uint32_t *) buffer;
	char *at = buffer + n * sizeof(uint32_t);

	for (uint32_t i = 0; i < n; i++, at += length)
	{
		uint32_t value = first + i;

		lengths[i] = length;
		memset(at, 'x', length);
		memcpy(at, &value, sizeof(value));
	}
	return n * length;
}

/*
 * Reads the entries that are new to a client with nentries of dictionary `id`. Returns whether the
 * answer names the buffer.
 */
static bool
read_entries(Dictionary *dict, uint64_t id, uint32_t nentries, WireEntries *out)
{
	WireDictionary request = {.id = id, .nentries = nentries, .buffer = 2};

	dictionary_read(dict, &request, buffer, out);
	return out->buffer == 2;
}

static void
test_numbers(void)
{
	Dictionary *dict = dictionary_take(table, &column, true);
	uint32_t codes[4] = {0, 2, 1, 7};
	WireEntries out;
	uint32_t bytes = make_entries(10, 3, 12);

	CHECK(dictionary_translate(dict, buffer, 3, bytes, codes, 4), "entries are added");
	CHECK(codes[0] == 0 && codes[1] == 2 && codes[2] == 1,
		  "entries are numbered in the order in which they arrive");
	CHECK(codes[3] == WIRE_MAX_ENTRIES, "a code without an entry gets no number");
	codes[0] = 0;
	codes[1] = 1;
	bytes = make_entries(12, 2, 12);
	CHECK(dictionary_translate(dict, buffer, 2, bytes, codes, 2) && codes[0] == 2 && codes[1] == 3,
		  "a known entry keeps its number, and a new one gets the next");
	CHECK(dictionary_entries(dict) == 4, "there are four entries");
	CHECK(read_entries(dict, 0, 0, &out) && out.id == dictionary_id(dict) && out.first == 0 &&
			  out.nentries == 4 && out.bytes == 48,
		  "a new client gets all entries");
	CHECK(read_entries(dict, out.id, 3, &out) && out.first == 3 && out.nentries == 4 &&
			  out.bytes == 12,
		  "a client gets only the entries that it lacks");
	CHECK(((uint32_t *) buffer)[0] == 12 && buffer[4] == 13,
		  "the entry's length and bytes are in the buffer");
	CHECK(read_entries(dict, out.id, 5, &out) && out.first == 0,
		  "a client that claims more entries than there are gets all");
	CHECK(read_entries(dict, out.id + 1, 3, &out) && out.first == 0,
		  "a client with entries of another dictionary gets all");
	CHECK(read_entries(NULL, out.id, 3, &out) && out.id == 0 && out.nentries == 0,
		  "without a dictionary there are no entries");
	dictionary_give(dict);
	dict = dictionary_take(table, &column, true);
	CHECK(dictionary_id(dict) != out.id, "the id of a dictionary is not used again");
	dictionary_give(dict);
}

static void
test_limits(void)
{
	Dictionary *dict = dictionary_take(table, &column, true);
	uint32_t code = 0;
	uint32_t *lengths = (uint32_t *) buffer;
	bool ok = true;

	for (uint32_t i = 0; i < WIRE_MAX_ENTRIES; i += 4096)
	{
		uint32_t bytes = make_entries(i, 4096, 8);

		code = 4095;
		ok = ok && dictionary_translate(dict, buffer, 4096, bytes, &code, 1) && code == i + 4095;
	}
	CHECK(ok, "the maximum number of entries fits");
	code = 0;
	make_entries(WIRE_MAX_ENTRIES, 1, 8);
	CHECK(!dictionary_translate(dict, buffer, 1, 8, &code, 1) && code == 0,
		  "one more entry is refused, and codes stay unchanged");
	make_entries(77, 1, 8);
	CHECK(dictionary_translate(dict, buffer, 1, 8, &code, 1) && code == 77,
		  "known entries are still found");
	dictionary_give(dict);

	dict = dictionary_take(table, &column, true);
	code = 0;
	make_entries(1, 1, WIRE_MAX_ENTRY_BYTES);
	CHECK(dictionary_translate(dict, buffer, 1, WIRE_MAX_ENTRY_BYTES, &code, 1),
		  "the maximum number of bytes fits");
	make_entries(2, 1, 8);
	CHECK(!dictionary_translate(dict, buffer, 1, 8, &code, 1), "more bytes are refused");
	make_entries(1, 2, 8);
	lengths[1] = 9;
	CHECK(!dictionary_translate(dict, buffer, 2, 16, &code, 1),
		  "lengths beyond the bytes are refused");
	make_entries(1, 1, 8);
	lengths[0] = 0;
	CHECK(!dictionary_translate(dict, buffer, 2, 0, &code, 1) || dictionary_entries(dict) <= 3,
		  "empty entries are refused or added once");
	dictionary_give(dict);
}

int
main(void)
{
	RUN("entries are numbered and read", test_numbers);
	RUN("entries and bytes are limited", test_limits);
	return unit_done();
}

/*
 * dictionary_test.c
 *	  The GPU server's dictionaries of stored columns: numbers, growth, what a client is told, and
 * bounds.
 */
#include <string.h>

#include "server/column_dictionary.c"

#include "unit.h"

static char buffer[WIRE_BUFFER_BYTES];
static const WireTableKey table = {1};
static const WireColumnKey column = {.attno = 1, .coded = 1};

/* Entries as STORE brings them: strings of one length for which the number of each decides. */
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

static bool
known(Dictionary *dict, uint64_t id, uint32_t nentries, WireEntries *out)
{
	WireDictionary ask = {.id = id, .nentries = nentries, .buffer = 2};

	dictionary_read(dict, &ask, buffer, out);
	return out->buffer == 2;
}

static void
numbers(void)
{
	Dictionary *dict = dictionary_take(table, &column, true);
	uint32_t codes[4] = {0, 2, 1, 7};
	WireEntries out;
	uint32_t bytes = make_entries(10, 3, 12);

	CHECK(dictionary_translate(dict, buffer, 3, bytes, codes, 4), "entries that fit");
	CHECK(codes[0] == 0 && codes[1] == 2 && codes[2] == 1,
		  "numbers in the order in which entries come");
	CHECK(codes[3] == WIRE_MAX_ENTRIES, "a code without an entry has none");
	codes[0] = 0;
	codes[1] = 1;
	bytes = make_entries(12, 2, 12);
	CHECK(dictionary_translate(dict, buffer, 2, bytes, codes, 2) && codes[0] == 2 && codes[1] == 3,
		  "one that is there, and a new one");
	CHECK(dictionary_entries(dict) == 4, "four entries");
	CHECK(known(dict, 0, 0, &out) && out.id == dictionary_id(dict) && out.first == 0 &&
			  out.nentries == 4 && out.bytes == 48,
		  "all of it");
	CHECK(known(dict, out.id, 3, &out) && out.first == 3 && out.nentries == 4 && out.bytes == 12,
		  "the last entry");
	CHECK(((uint32_t *) buffer)[0] == 12 && buffer[4] == 13, "its length and bytes");
	CHECK(known(dict, out.id, 5, &out) && out.first == 0, "more than there are");
	CHECK(known(dict, out.id + 1, 3, &out) && out.first == 0, "of another dictionary");
	CHECK(known(NULL, out.id, 3, &out) && out.id == 0 && out.nentries == 0, "of none");
	dictionary_give(dict);
	dict = dictionary_take(table, &column, true);
	CHECK(dictionary_id(dict) != out.id, "ids are not used again");
	dictionary_give(dict);
}

static void
bounds(void)
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
	CHECK(ok, "as many entries as there may be");
	code = 0;
	make_entries(WIRE_MAX_ENTRIES, 1, 8);
	CHECK(!dictionary_translate(dict, buffer, 1, 8, &code, 1) && code == 0, "one more; codes stay");
	make_entries(77, 1, 8);
	CHECK(dictionary_translate(dict, buffer, 1, 8, &code, 1) && code == 77,
		  "those that are there are found");
	dictionary_give(dict);

	dict = dictionary_take(table, &column, true);
	code = 0;
	make_entries(1, 1, WIRE_MAX_ENTRY_BYTES);
	CHECK(dictionary_translate(dict, buffer, 1, WIRE_MAX_ENTRY_BYTES, &code, 1),
		  "as many bytes as there may be");
	make_entries(2, 1, 8);
	CHECK(!dictionary_translate(dict, buffer, 1, 8, &code, 1), "more bytes");
	make_entries(1, 2, 8);
	lengths[1] = 9;
	CHECK(!dictionary_translate(dict, buffer, 2, 16, &code, 1), "lengths beyond the bytes");
	make_entries(1, 1, 8);
	lengths[0] = 0;
	CHECK(!dictionary_translate(dict, buffer, 2, 0, &code, 1) || dictionary_entries(dict) <= 3,
		  "empty entries");
	dictionary_give(dict);
}

int
main(void)
{
	RUN("numbers of entries", numbers);
	RUN("bounds", bounds);
	return unit_done();
}

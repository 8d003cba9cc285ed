/*
 * dictionary_test.c
 *	  Tests the GPU server's dictionaries of stored columns (server/column_dictionary.c).
 *
 * Entries get numbers in the order in which they arrive. A client reads all entries, those that are
 * new to it, or those of some codes. Entries are strings that contain a number. The test includes
 * the source file, and runs in one thread.
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
 * Adds n entries from `first` on, of this length. Returns whether each has the code that `expected`
 * and its number give.
 */
static bool
add(Dictionary *dict, uint32_t first, uint32_t n, uint32_t length, uint32_t expected)
{
	static uint32_t codes[65536];
	bool ok;

	make_entries(first, n, length);
	ok = dictionary_add(dict, buffer, n, codes);
	for (uint32_t i = 0; i < n && ok; i++)
		ok = codes[i] == expected + i;
	return ok;
}

/*
 * Reads the entries that are new to a client with nentries of dictionary `id`. Returns whether the
 * answer names the buffer.
 */
static bool
read_entries(Dictionary *dict, uint64_t id, uint32_t nentries, uint32_t most, size_t room,
			 WireEntries *out)
{
	WireDictionary request = {.id = id, .nentries = nentries, .buffer = 2, .most = most};

	dictionary_read(dict, &request, buffer, room, out);
	return out->buffer == 2;
}

static void
test_numbers(void)
{
	Dictionary *dict = dictionary_take(table, &column, true);
	WireEntries out;
	uint32_t codes[] = {3, 1, 7};
	uint32_t bytes;

	CHECK(add(dict, 10, 3, 12, 0), "entries are not numbered in the order in which they arrive");
	CHECK(add(dict, 12, 2, 12, 2), "a known entry has another number, or a new one not the next");
	CHECK(dictionary_entries(dict) == 4, "there are %d entries", (int) dictionary_entries(dict));
	CHECK(read_entries(dict, 0, 0, 100, sizeof(buffer), &out) && out.id == dictionary_id(dict) &&
			  out.first == 0 && out.n == 4 && out.nentries == 4 && out.bytes == 48 &&
			  out.all_bytes == 48,
		  "a new client does not get all entries");
	CHECK(read_entries(dict, out.id, 3, 100, sizeof(buffer), &out) && out.first == 3 &&
			  out.n == 1 && out.nentries == 4 && out.bytes == 12,
		  "a client does not get the entries that it lacks");
	CHECK(((uint32_t *) buffer)[0] == 12 && buffer[4] == 13,
		  "the entry's length and bytes are not in the buffer");
	CHECK(read_entries(dict, out.id, 5, 100, sizeof(buffer), &out) && out.first == 0,
		  "a client that claims more entries than there are does not get all");
	CHECK(read_entries(dict, out.id + 1, 3, 100, sizeof(buffer), &out) && out.first == 0,
		  "a client with entries of another dictionary does not get all");
	CHECK(read_entries(dict, out.id, 1, 0, sizeof(buffer), &out) && out.n == 0 && out.bytes == 0 &&
			  out.nentries == 4,
		  "a client that wants no entry gets some");
	CHECK(read_entries(dict, out.id, 1, 100, 40, &out) && out.first == 1 && out.n == 2 &&
			  out.bytes == 24,
		  "the entries do not fit");
	CHECK(read_entries(NULL, out.id, 3, 100, sizeof(buffer), &out) && out.id == 0 && out.n == 0 &&
			  out.nentries == 0,
		  "there are entries without a dictionary");
	CHECK(dictionary_values(dict, codes, 3, buffer, sizeof(buffer), &bytes) == 3 && bytes == 24 &&
			  ((uint32_t *) buffer)[2] == 0 && buffer[12] == 13 && buffer[24] == 11,
		  "values of codes are wrong");
	CHECK(dictionary_values(dict, codes, 3, buffer, 35, &bytes) == 2 && bytes == 24,
		  "values of codes do not fit");
	dictionary_give(dict);
	dict = dictionary_take(table, &column, true);
	CHECK(dictionary_id(dict) != out.id, "the id of a dictionary is used again");
	dictionary_give(dict);
}

/* There are as many entries as there is memory, and their memory is counted. */
static void
test_growth(void)
{
	Dictionary *dict = dictionary_take(table, &column, true);
	const uint32_t most = 3000000, step = 50000;
	uint32_t code = most - 1;
	uint32_t bytes;
	bool ok = true;

	for (uint32_t i = 0; i < most && ok; i += step)
		/* the first half of each step is known */
		ok = add(dict, i, step, 8, i) && add(dict, i / 2, step, 8, i / 2);
	CHECK(ok && dictionary_entries(dict) == most, "many entries are numbered wrong");
	CHECK(dictionary_bytes(dict) > most * 24 && dictionary_bytes(dict) < most * 80 &&
			  dictionary_bytes(dict) == dictionary_bytes_of_all(),
		  "%lu bytes are counted", (unsigned long) dictionary_bytes(dict));
	CHECK(dictionary_values(dict, &code, 1, buffer, sizeof(buffer), &bytes) == 1 && bytes == 8 &&
			  memcmp(buffer + 4, &code, 4) == 0,
		  "the last entry is wrong");
	CHECK(add(dict, 5, 1, WIRE_MAX_ENTRY_BYTES, most) && add(dict, 6, 1, 0xfffff, most + 1) &&
			  add(dict, 7, 1, 9, most + 2) && add(dict, 5, 1, WIRE_MAX_ENTRY_BYTES, most),
		  "a long entry is numbered wrong");
	dictionary_give(dict);
	CHECK(dictionary_bytes_of_all() == 0, "memory is still counted");
}

int
main(void)
{
	RUN("entries are numbered and read", test_numbers);
	RUN("a dictionary grows", test_growth);
	return unit_done();
}

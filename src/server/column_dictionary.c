/*
 * column_dictionary.c
 *	  Dictionary of a stored column; see column_dictionary.h.
 *
 * Entries are found by a hash with a random seed, in a table of codes with linear probing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "server/column_dictionary.h"

struct Dictionary
{
	/* protected by list_lock */
	Dictionary *next;
	int users;
	bool retired;
	uint64_t counted; /* the bytes that bytes_of_all has of it */
	WireTableKey table;
	WireColumnKey column;

	pthread_mutex_t lock; /* protects the entries */
	uint64_t id;
	uint64_t seed;
	uint32_t n;
	uint32_t bytes; /* of all entries */
	uint32_t room;  /* entries that `offsets` has room for */
	uint32_t bytes_room;
	uint32_t nplaces;  /* a power of two, at least twice n */
	uint32_t *places;  /* hash table: code + 1 of an entry, or 0 */
	uint32_t *offsets; /* of the entries' bytes in `images`; n + 1 */
	char *images;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Dictionary *list;
static uint64_t bytes_of_all;
static uint64_t retired_count;

/*
 * Returns a new id. Ids start at the time in ns when the server makes the first one, and a server
 * makes fewer than one per nanosecond. So another server process never repeats an id.
 */
static uint64_t
next_id(void)
{
	static uint64_t last;
	uint64_t none = 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_compare_exchange_n(&last, &none,
								(uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec, 0,
								__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
}

/* Updates bytes_of_all after the dictionary has grown. */
static void
count_bytes(Dictionary *dict)
{
	pthread_mutex_lock(&list_lock);
	if (!dict->retired)
	{
		uint64_t now = dictionary_bytes(dict);

		bytes_of_all += now - dict->counted;
		dict->counted = now;
	}
	pthread_mutex_unlock(&list_lock);
}

static void
free_dictionary(Dictionary *dict)
{
	pthread_mutex_destroy(&dict->lock);
	free(dict->places);
	free(dict->offsets);
	free(dict->images);
	free(dict);
}

static Dictionary *
make_dictionary(void)
{
	Dictionary *dict = calloc(1, sizeof(*dict));

	if (dict == NULL)
		return NULL;
	pthread_mutex_init(&dict->lock, NULL);
	dict->id = next_id();
	if (getrandom(&dict->seed, sizeof(dict->seed), 0) != sizeof(dict->seed))
		dict->seed = dict->id;
	dict->room = 64;
	dict->bytes_room = 1024;
	dict->nplaces = 128;
	dict->places = calloc(dict->nplaces, sizeof(uint32_t));
	dict->offsets = calloc(dict->room + 1, sizeof(uint32_t));
	dict->images = malloc(dict->bytes_room);
	if (dict->places && dict->offsets && dict->images)
		return dict;
	free_dictionary(dict);
	return NULL;
}

Dictionary *
dictionary_take(WireTableKey table, const WireColumnKey *column, bool make)
{
	Dictionary *dict;

	pthread_mutex_lock(&list_lock);
	dict = list;
	while (dict &&
		   (dict->retired || dict->table.id != table.id ||
			memcmp(&dict->column, column, sizeof(*column)) != 0))
		dict = dict->next;
	if (dict == NULL && make && (dict = make_dictionary()) != NULL)
	{
		dict->table = table;
		dict->column = *column;
		dict->next = list;
		list = dict;
		dict->counted = dictionary_bytes(dict);
		bytes_of_all += dict->counted;
	}
	if (dict)
		dict->users++;
	pthread_mutex_unlock(&list_lock);
	return dict;
}

void
dictionary_give(Dictionary *dict)
{
	Dictionary **at = &list;
	bool last;

	if (dict == NULL)
		return;
	pthread_mutex_lock(&list_lock);
	last = --dict->users == 0;
	while (last && *at != dict)
		at = &(*at)->next;
	if (last)
	{
		*at = dict->next;
		bytes_of_all -= dict->counted;
	}
	pthread_mutex_unlock(&list_lock);
	if (last)
		free_dictionary(dict);
}

void
dictionary_retire(Dictionary *dict)
{
	pthread_mutex_lock(&list_lock);
	if (!dict->retired)
	{
		__atomic_store_n(&dict->retired, true, __ATOMIC_RELEASE);
		bytes_of_all -= dict->counted;
		dict->counted = 0;
		__atomic_add_fetch(&retired_count, 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&list_lock);
}

bool
dictionary_is_retired(const Dictionary *dict)
{
	return __atomic_load_n(&dict->retired, __ATOMIC_ACQUIRE);
}

uint64_t
dictionary_retired_count(void)
{
	return __atomic_load_n(&retired_count, __ATOMIC_SEQ_CST);
}

uint64_t
dictionary_bytes(const Dictionary *dict)
{
	return sizeof(*dict) +
		((uint64_t) __atomic_load_n(&dict->room, __ATOMIC_RELAXED) + 1) * sizeof(uint32_t) +
		__atomic_load_n(&dict->bytes_room, __ATOMIC_RELAXED) +
		(uint64_t) __atomic_load_n(&dict->nplaces, __ATOMIC_RELAXED) * sizeof(uint32_t);
}

uint64_t
dictionary_bytes_of_all(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&list_lock);
	bytes = bytes_of_all;
	pthread_mutex_unlock(&list_lock);
	return bytes;
}

uint64_t
dictionary_id(const Dictionary *dict)
{
	return dict->id;
}

uint32_t
dictionary_entries(const Dictionary *dict)
{
	return __atomic_load_n(&dict->n, __ATOMIC_ACQUIRE);
}

/* ---- entries ---- */

static uint64_t
mix(uint64_t h)
{
	h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ (h >> 29);
}

static uint32_t
hash_image(const Dictionary *dict, const char *image, uint32_t length)
{
	uint64_t h = mix(dict->seed ^ length);
	uint64_t word;
	uint32_t at = 0;

	for (; at + 8 <= length; at += 8)
	{
		memcpy(&word, image + at, 8);
		h = mix((h ^ word) * UINT64_C(0x9e3779b97f4a7c15) + dict->seed);
	}
	word = 0;
	memcpy(&word, image + at, length - at);
	return (uint32_t) (mix((h ^ word) * UINT64_C(0x9e3779b97f4a7c15) + dict->seed) >> 16);
}

/* Returns the place of an entry in the hash table, or the free place where it would be. */
static uint32_t
find_place(const Dictionary *dict, const char *image, uint32_t length)
{
	uint32_t place = hash_image(dict, image, length) & (dict->nplaces - 1);

	for (; dict->places[place]; place = (place + 1) & (dict->nplaces - 1))
	{
		uint32_t entry = dict->places[place] - 1;
		uint32_t start = dict->offsets[entry];

		if (dict->offsets[entry + 1] - start == length &&
			memcmp(dict->images + start, image, length) == 0)
			break;
	}
	return place;
}

/* Makes room for n more entries with so many bytes. Returns false if there is no memory. */
static bool
make_room(Dictionary *dict, uint32_t n, uint32_t bytes)
{
	uint32_t room = dict->room, bytes_room = dict->bytes_room, nplaces = dict->nplaces;
	uint32_t *places;
	void *larger;

	while (room < dict->n + n)
		room *= 2;
	while (bytes_room < dict->bytes + bytes)
		bytes_room *= 2;
	while (nplaces < 2 * (dict->n + n))
		nplaces *= 2;
	if (room > dict->room)
	{
		if ((larger = realloc(dict->offsets, ((size_t) room + 1) * sizeof(uint32_t))) == NULL)
			return false;
		dict->offsets = larger;
		dict->room = room;
	}
	if (bytes_room > dict->bytes_room)
	{
		if ((larger = realloc(dict->images, bytes_room)) == NULL)
			return false;
		dict->images = larger;
		dict->bytes_room = bytes_room;
	}
	if (nplaces == dict->nplaces)
		return true;
	places = calloc(nplaces, sizeof(uint32_t));
	if (places == NULL)
		return false;
	free(dict->places);
	dict->places = places;
	dict->nplaces = nplaces;
	for (uint32_t i = 0; i < dict->n; i++)
	{
		uint32_t start = dict->offsets[i];

		dict->places[find_place(dict, dict->images + start, dict->offsets[i + 1] - start)] = i + 1;
	}
	return true;
}

/*
 * Returns the code of an entry, which is added if it is new; UINT32_MAX if the dictionary is full.
 */
static uint32_t
lookup_or_add(Dictionary *dict, const char *image, uint32_t length)
{
	uint32_t place = find_place(dict, image, length);

	if (dict->places[place])
		return dict->places[place] - 1;
	if (dict->n >= WIRE_MAX_ENTRIES || length > WIRE_MAX_ENTRY_BYTES - dict->bytes)
		return UINT32_MAX;
	if (dict->n == dict->room || dict->bytes_room - dict->bytes < length ||
		dict->nplaces < 2 * (dict->n + 1))
	{
		if (!make_room(dict, 1, length))
			return UINT32_MAX;
		place = find_place(dict, image, length);
	}
	memcpy(dict->images + dict->bytes, image, length);
	dict->bytes += length;
	dict->places[place] = ++dict->n;
	dict->offsets[dict->n] = dict->bytes;
	return dict->n - 1;
}

/* Fills in the codes of all given entries. `from` must be a copy that the client cannot change. */
static bool
lookup_or_add_all(Dictionary *dict, const char *from, uint32_t nentries, uint32_t bytes,
				  uint32_t *numbers)
{
	const uint32_t *lengths = (const uint32_t *) from;
	const char *images = from + nentries * sizeof(uint32_t);

	for (uint32_t i = 0; i < nentries; i++)
	{
		if (lengths[i] > bytes ||
			(numbers[i] = lookup_or_add(dict, images, lengths[i])) == UINT32_MAX)
			return false;
		images += lengths[i];
		bytes -= lengths[i];
	}
	return true;
}

bool
dictionary_translate(Dictionary *dict, const char *from, uint32_t nentries, uint32_t bytes,
					 uint32_t *codes, uint32_t n)
{
	size_t size = nentries * sizeof(uint32_t) + bytes;
	char *copy = malloc(size + 1);
	uint32_t *numbers = malloc(nentries * sizeof(uint32_t) + 1);
	bool ok = copy && numbers;

	if (ok)
	{
		memcpy(copy, from, size);
		pthread_mutex_lock(&dict->lock);
		ok = lookup_or_add_all(dict, copy, nentries, bytes, numbers);
		count_bytes(dict);
		pthread_mutex_unlock(&dict->lock);
	}
	/* a code without an entry becomes one without an entry; the code of a NULL may be anything */
	for (uint32_t i = 0; i < n && ok; i++)
	{
		uint32_t code = codes[i];

		codes[i] = code < nentries ? numbers[code] : WIRE_MAX_ENTRIES;
	}
	free(copy);
	free(numbers);
	return ok;
}

void
dictionary_read(Dictionary *dict, const WireDictionary *known, char *to, WireEntries *out)
{
	uint32_t *lengths = (uint32_t *) to;
	uint32_t first;

	*out = (WireEntries){.buffer = known->buffer};
	if (dict == NULL)
		return;
	pthread_mutex_lock(&dict->lock);
	first = known->id == dict->id && known->nentries <= dict->n ? known->nentries : 0;
	out->id = dict->id;
	out->first = first;
	out->nentries = dict->n;
	out->bytes = dict->bytes - dict->offsets[first];
	for (uint32_t i = first; i < dict->n; i++)
		lengths[i - first] = dict->offsets[i + 1] - dict->offsets[i];
	memcpy(to + (dict->n - first) * sizeof(uint32_t), dict->images + dict->offsets[first],
		   out->bytes);
	pthread_mutex_unlock(&dict->lock);
}

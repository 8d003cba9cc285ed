/*
 * column_dictionary.c
 *	  Dictionary of a stored column; see column_dictionary.h.
 *
 * Entries are found by a hash with a random seed, in a table with linear probing. They are in large
 * blocks, and never move. A dictionary may have many millions of them, and must not stop other
 * sessions while it grows: a table that is full is replaced by one of twice the size, and each new
 * entry then moves a few places of the old table.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "operators/cpu_hash.h"
#include "server/column_dictionary.h"

/* Entries of the first page; each page has room for twice as many as the one before. */
#define FIRST_PAGE 64
#define PAGES 26
/* Codes are below this number: they are not negative as int32_t, and a client counts one for NULL.
 */
#define MOST_ENTRIES INT32_MAX

/* Bytes of blocks: as many as all blocks before have, within these bounds. */
#define LEAST_BLOCK ((size_t) 4 << 10)
#define LARGEST_BLOCK ((size_t) 4 << 20)

/* Places of the first table, and places of an old table that a new entry moves. */
#define FIRST_PLACES 128
#define MOVED_AT_ONCE 8

typedef struct Entry
{
	uint32_t length;
	char image[];
} Entry;

typedef struct Block
{
	struct Block *next;
	size_t used;
	size_t room;
	char bytes[];
} Block;

/* A place of a hash table. */
typedef struct Place
{
	uint32_t number; /* code + 1; 0: the place is free */
	uint32_t hash;
} Place;

typedef struct Table
{
	uint64_t n;    /* a power of two; 0: there is no table */
	uint64_t used; /* at most three quarters of n */
	Place *places;
} Table;

struct Dictionary
{
	/* protected by list_lock */
	Dictionary *next;
	int users;
	bool retired;
	uint64_t counted; /* its bytes in bytes_of_all, or in retired_bytes */
	WireTableKey table;
	WireColumnKey column;

	pthread_mutex_t lock; /* protects the entries */
	uint64_t id;
	HashSeed seed;
	uint32_t n;
	uint64_t bytes;       /* of all images */
	uint64_t held;        /* host memory */
	Entry **pages[PAGES]; /* entries by their codes */
	Block *blocks;        /* the first one is filled */
	Table now;
	Table old;      /* the table before, until all its places are moved */
	uint64_t moved; /* places of `old` that are in `now`, too */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Dictionary *list;
static uint64_t bytes_of_all;
static uint64_t retired_bytes;
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

/* Counts so many bytes for the dictionary. The caller has list_lock. */
static void
count_bytes(Dictionary *dict, uint64_t bytes)
{
	*(dict->retired ? &retired_bytes : &bytes_of_all) += bytes - dict->counted;
	dict->counted = bytes;
}

static void
free_dictionary(Dictionary *dict)
{
	pthread_mutex_destroy(&dict->lock);
	for (int p = 0; p < PAGES; p++)
		free(dict->pages[p]);
	while (dict->blocks)
	{
		Block *block = dict->blocks;

		dict->blocks = block->next;
		free(block);
	}
	free(dict->now.places);
	free(dict->old.places);
	free(dict);
}

/* Sets the bytes of host memory, which other threads read. */
static void
set_held(Dictionary *dict, uint64_t bytes)
{
	__atomic_store_n(&dict->held, bytes, __ATOMIC_RELAXED);
}

/* The same as malloc() and calloc(), and counts the memory. */
static void *
allocate(Dictionary *dict, size_t bytes, bool zero)
{
	void *memory = zero ? calloc(1, bytes) : malloc(bytes);

	if (memory)
		set_held(dict, dict->held + bytes);
	return memory;
}

static bool
make_table(Dictionary *dict, Table *table, uint64_t n)
{
	Place *places = allocate(dict, n * sizeof(Place), true);

	if (places)
		*table = (Table){n, 0, places};
	return places != NULL;
}

static Dictionary *
make_dictionary(void)
{
	Dictionary *dict = calloc(1, sizeof(*dict));
	uint64_t random[2] = {0, 0};

	if (dict == NULL)
		return NULL;
	pthread_mutex_init(&dict->lock, NULL);
	dict->id = next_id();
	dict->held = sizeof(*dict);
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		random[1] = dict->id;
	dict->seed = hash_seed(random[0], random[1]);
	if (make_table(dict, &dict->now, FIRST_PLACES))
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
		count_bytes(dict, dictionary_bytes(dict));
	}
	if (dict)
		dict->users++;
	pthread_mutex_unlock(&list_lock);
	return dict;
}

Dictionary *
dictionary_share(Dictionary *dict)
{
	pthread_mutex_lock(&list_lock);
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
		count_bytes(dict, 0);
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
		uint64_t bytes = dict->counted;

		count_bytes(dict, 0);
		__atomic_store_n(&dict->retired, true, __ATOMIC_RELEASE);
		count_bytes(dict, bytes);
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
	return __atomic_load_n(&dict->held, __ATOMIC_RELAXED);
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
dictionary_retired_bytes(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&list_lock);
	bytes = retired_bytes;
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

/* Returns the place in its page of the entry with this code; *page: the page. */
static uint32_t
page_place(uint32_t code, int *page)
{
	*page = 31 - __builtin_clz(code / FIRST_PAGE + 1);
	return code - FIRST_PAGE * (((uint32_t) 1 << *page) - 1);
}

static Entry *
entry_of(const Dictionary *dict, uint32_t code)
{
	int page;
	uint32_t place = page_place(code, &page);

	return dict->pages[page][place];
}

/* Returns the entry's code in a table; DICTIONARY_NO_CODE if the table does not have it. */
static uint32_t
find_in(const Dictionary *dict, const Table *table, const char *image, uint32_t length,
		uint32_t hash)
{
	for (uint64_t p = hash & (table->n - 1); table->places[p].number; p = (p + 1) & (table->n - 1))
	{
		const Entry *entry;

		if (table->places[p].hash != hash)
			continue;
		entry = entry_of(dict, table->places[p].number - 1);
		if (entry->length == length && memcmp(entry->image, image, length) == 0)
			return table->places[p].number - 1;
	}
	return DICTIONARY_NO_CODE;
}

static void
insert_place(Table *table, Place place)
{
	uint64_t p = place.hash & (table->n - 1);

	while (table->places[p].number)
		p = (p + 1) & (table->n - 1);
	table->places[p] = place;
	table->used++;
}

/* Moves some places of the old table, if there is one, and frees it after the last one. */
static void
move_places(Dictionary *dict, uint64_t n)
{
	for (; n > 0 && dict->moved < dict->old.n; n--)
	{
		Place place = dict->old.places[dict->moved++];

		if (place.number)
			insert_place(&dict->now, place);
	}
	if (dict->old.n == 0 || dict->moved < dict->old.n)
		return;
	free(dict->old.places);
	set_held(dict, dict->held - dict->old.n * sizeof(Place));
	dict->old = (Table){0};
}

/* Makes room in the hash table for one more entry. Returns false if there is no memory. */
static bool
make_place(Dictionary *dict)
{
	Table larger;

	move_places(dict, MOVED_AT_ONCE);
	if ((dict->now.used + 1) * 4 <= dict->now.n * 3)
		return true;
	/* only if MOVED_AT_ONCE were too small */
	move_places(dict, UINT64_MAX);
	if (!make_table(dict, &larger, 2 * dict->now.n))
		return false;
	dict->old = dict->now;
	dict->now = larger;
	dict->moved = 0;
	return true;
}

/* Returns memory for an entry; NULL if there is none. */
static Entry *
allocate_entry(Dictionary *dict, uint32_t length)
{
	size_t bytes = (sizeof(Entry) + length + 3) / 4 * 4;
	Block *block = dict->blocks;
	size_t room = dict->bytes < LEAST_BLOCK ? LEAST_BLOCK :
		dict->bytes < LARGEST_BLOCK         ? (size_t) dict->bytes :
											  LARGEST_BLOCK;
	bool own = bytes > room / 4;

	if (block == NULL || block->room - block->used < bytes)
	{
		room = own ? bytes : room;
		block = allocate(dict, sizeof(Block) + room, false);
		if (block == NULL)
			return NULL;
		block->used = 0;
		block->room = room;
		/* a block for one large entry does not replace the one that is filled */
		if (own && dict->blocks)
		{
			block->next = dict->blocks->next;
			dict->blocks->next = block;
		}
		else
		{
			block->next = dict->blocks;
			dict->blocks = block;
		}
	}
	block->used += bytes;
	return (Entry *) (block->bytes + block->used - bytes);
}

/* Returns the code of a new entry; DICTIONARY_NO_CODE if there is no memory or no code. */
static uint32_t
add_entry(Dictionary *dict, const char *image, uint32_t length, uint32_t hash)
{
	uint32_t code = dict->n;
	int page;
	uint32_t place = page_place(code, &page);
	Entry *entry;

	if (code >= MOST_ENTRIES || !make_place(dict) ||
		(dict->pages[page] == NULL &&
		 (dict->pages[page] =
			  allocate(dict, ((size_t) FIRST_PAGE << page) * sizeof(Entry *), false)) == NULL) ||
		(entry = allocate_entry(dict, length)) == NULL)
		return DICTIONARY_NO_CODE;
	entry->length = length;
	memcpy(entry->image, image, length);
	dict->pages[page][place] = entry;
	insert_place(&dict->now, (Place){code + 1, hash});
	dict->bytes += length;
	__atomic_store_n(&dict->n, code + 1, __ATOMIC_RELEASE);
	return code;
}

static uint32_t
find_or_add(Dictionary *dict, const char *image, uint32_t length)
{
	uint32_t hash = hash_string(dict->seed, image, (int) length);
	uint32_t code = find_in(dict, &dict->now, image, length, hash);

	if (code == DICTIONARY_NO_CODE && dict->old.n > 0)
		code = find_in(dict, &dict->old, image, length, hash);
	return code == DICTIONARY_NO_CODE ? add_entry(dict, image, length, hash) : code;
}

bool
dictionary_add(Dictionary *dict, const char *from, uint32_t nentries, uint32_t *codes)
{
	const uint32_t *lengths = (const uint32_t *) from;
	const char *image = from + nentries * sizeof(uint32_t);
	bool ok = true;

	pthread_mutex_lock(&dict->lock);
	for (uint32_t i = 0; i < nentries && ok; i++)
	{
		codes[i] = find_or_add(dict, image, lengths[i]);
		ok = codes[i] != DICTIONARY_NO_CODE;
		image += lengths[i];
	}
	pthread_mutex_lock(&list_lock);
	count_bytes(dict, dictionary_bytes(dict));
	pthread_mutex_unlock(&list_lock);
	pthread_mutex_unlock(&dict->lock);
	return ok;
}

/* ---- answers ---- */

void
dictionary_read(Dictionary *dict, const WireDictionary *known, char *to, size_t room,
				WireEntries *out)
{
	uint32_t *lengths = (uint32_t *) to;
	char *image;

	*out = (WireEntries){.buffer = known->buffer};
	if (dict == NULL)
		return;
	pthread_mutex_lock(&dict->lock);
	out->id = dict->id;
	out->nentries = dict->n;
	out->all_bytes = dict->bytes;
	out->first = known->id == dict->id && known->nentries <= dict->n ? known->nentries : 0;
	while (out->n < known->most && out->n < dict->n - out->first)
	{
		uint32_t length = entry_of(dict, out->first + out->n)->length;

		if ((out->n + 1) * sizeof(uint32_t) + out->bytes + length > room)
			break;
		lengths[out->n++] = length;
		out->bytes += length;
	}
	image = to + out->n * sizeof(uint32_t);
	for (uint32_t i = 0; i < out->n; i++)
	{
		const Entry *entry = entry_of(dict, out->first + i);

		memcpy(image, entry->image, entry->length);
		image += entry->length;
	}
	pthread_mutex_unlock(&dict->lock);
}

uint32_t
dictionary_values(Dictionary *dict, const uint32_t *codes, uint32_t n, char *to, size_t room,
				  uint32_t *bytes)
{
	uint32_t *lengths = (uint32_t *) to;
	uint32_t done = 0;
	char *image;

	*bytes = 0;
	pthread_mutex_lock(&dict->lock);
	for (; done < n; done++)
	{
		uint32_t length = codes[done] < dict->n ? entry_of(dict, codes[done])->length : 0;

		if ((done + 1) * sizeof(uint32_t) + *bytes + length > room)
			break;
		lengths[done] = length;
		*bytes += length;
	}
	image = to + done * sizeof(uint32_t);
	for (uint32_t i = 0; i < done; i++)
	{
		const Entry *entry = codes[i] < dict->n ? entry_of(dict, codes[i]) : NULL;

		if (entry == NULL)
			continue;
		memcpy(image, entry->image, entry->length);
		image += entry->length;
	}
	pthread_mutex_unlock(&dict->lock);
	return done;
}

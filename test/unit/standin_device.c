/*
 * standin_device.c
 *	  A device layer that computes on the host, for tests of the server; standin_resident.c has stored columns.
 *
 * It fulfils the contract of device.h (memory budget, copies before reductions, groups by
 * packed key) with the operators of monoid.h, and fails on request: the file "gpuagg.fault"
 * in the working directory, read at every batch and RESIDENT, has a word and, optionally, the number of
 * the batch of a query from which on it applies (default: the first)
 *
 *		slow		each batch takes 20 ms
 *		slower		each batch takes a second
 *		hang		each batch takes a minute
 *		segv, abort	the process is killed by that signal
 *		fault		the device is lost
 *		memory		there is no memory for the batch
 *		launch		a kernel cannot be launched, when states have changed
 *		fetch		the process aborts when groups are fetched; the number counts fetches
 *		keys		groups are returned with keys that no client sent
 *		lane		there is no memory for a lane; the number counts open lanes
 *		lost		the device is lost when a lane is opened, likewise
 *
 * Environment variables: GPUAGG_STANDIN_DEVICES is the number of devices (default 2; 0: none), GPUAGG_STANDIN_RANGES
 * the number of ranges of a table that follow each other on one of them (default: as on GPUs),
 * GPUAGG_STANDIN_SKIPPED the note of another one that cannot be used, GPUAGG_STANDIN_IDLE the
 * seconds after which idle arenas are freed, GPUAGG_STANDIN_KEPT the most connections that are kept between queries,
 * GPUAGG_STANDIN_KEEP_MS the milliseconds for which a client keeps one, GPUAGG_STANDIN_SHARED a file in which the servers
 * that share the devices say how much memory they have.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "operators/bins.h"
#include "operators/hll.h"
#include "device_list.h"
#include "limit_host.h"
#include "standin.h"

/* A copy of a batch's rows. */
typedef struct KeptBatch
{
	struct KeptBatch *next;
	Rows		rows;
} KeptBatch;

typedef struct Kept
{
	const Query *query;
	uint64_t	group;
	uint64_t	number;
	const KeptBatch *from;
	uint32_t	i;
} Kept;

/* ---- operators ---- */

/* One row of a slot's input. */
typedef struct Row
{
	const Column *col[2];
	uint32_t	i;
	int			valid;			/* the first column is not NULL */
} Row;

static int64_t
read_integer(const Row *r, int c)
{
	const char *p = r->col[c]->values;

	if (p == NULL)
		return 0;				/* COUNT reads only the validity */
	switch (r->col[c]->type)
	{
		case WIRE_I8:
			return ((const int8_t *) p)[r->i];
		case WIRE_I16:
			return ((const int16_t *) p)[r->i];
		case WIRE_I32:
			return ((const int32_t *) p)[r->i];
		case WIRE_I64:
			return ((const int64_t *) p)[r->i];
		default:
			return 0;
	}
}

static double
read_double(const Row *r, int c)
{
	const char *p = r->col[c]->values;

	if (r->col[c]->type == WIRE_F64)
		return ((const double *) p)[r->i];
	if (r->col[c]->type == WIRE_F32)
		return ((const float *) p)[r->i];
	return (double) read_integer(r, c);
}

static gpuagg_i128
read_wide(const Row *r)
{
	gpuagg_i128 x;

	if (r->col[0]->type != WIRE_I128)
		return read_integer(r, 0);
	memcpy(&x, r->col[0]->values + 16 * (size_t) r->i, 16);
	return x;
}

#define READ_MATRIX(k) \
	static gpuagg_mat##k read_mat##k(const Row *r) \
	{ \
		gpuagg_mat##k m; \
		memcpy(&m, r->col[0]->values + sizeof(m) * r->i, sizeof(m)); \
		return m; \
	}
READ_MATRIX(2)
READ_MATRIX(3)
READ_MATRIX(4)
READ_MATRIX(5)

#define INPUT_int8_t(r) (r->col[0] ? (int8_t) read_integer(r, 0) : 1)
#define INPUT_int32_t(r) ((int32_t) read_integer(r, 0))
#define INPUT_uint32_t(r) ((uint32_t) read_integer(r, 0))
#define INPUT_int64_t(r) read_integer(r, 0)
#define INPUT_float(r) ((float) read_double(r, 0))
#define INPUT_double(r) read_double(r, 0)
#define INPUT_gpuagg_i128(r) read_wide(r)
#define INPUT_gpuagg_f64x2(r) ((gpuagg_f64x2) {read_double(r, 0), read_double(r, 1)})
#define INPUT_gpuagg_kv(r) (r->col[1] ? (gpuagg_kv) {read_integer(r, 0), read_integer(r, 1)} \
	: (gpuagg_kv) {r->valid ? read_integer(r, 0) : 0, r->valid})
#define INPUT_gpuagg_mat2(r) read_mat2(r)
#define INPUT_gpuagg_mat3(r) read_mat3(r)
#define INPUT_gpuagg_mat4(r) read_mat4(r)
#define INPUT_gpuagg_mat5(r) read_mat5(r)

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int row_##name(void *state, const Row *r) \
	{ \
		state_t a, b, s; \
		input_t x = INPUT_##input_t(r); \
		(void) r; \
		memcpy(&a, state, sizeof(a)); \
		b = name##_lift(x); \
		s = name##_step(a, x); \
		memcpy(state, &s, sizeof(s)); \
		return name##_error(a, b, s); \
	} \
	static int combine_##name(void *state, const void *other) \
	{ \
		state_t a, b, r; \
		memcpy(&a, state, sizeof(a)); \
		memcpy(&b, other, sizeof(b)); \
		r = name##_combine(a, b); \
		memcpy(state, &r, sizeof(r)); \
		return name##_error(a, b, r); \
	} \
	static void fill_##name(char *state, uint64_t n) \
	{ \
		state_t s = name##_identity(); \
		for (uint64_t i = 0; i < n; i++) \
			memcpy(state + i * sizeof(s), &s, sizeof(s)); \
	}
#include "operators/monoid_list.h"
#undef MONOID

typedef struct Operator
{
	int			(*row) (void *state, const Row *r);
	int			(*combine) (void *state, const void *other);
	void		(*fill) (char *state, uint64_t n);
} Operator;

static const Operator operators[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) {row_##name, combine_##name, fill_##name},
#include "operators/monoid_list.h"
#undef MONOID
};

/* ---- the device ---- */

static void
standin_build(char *text, size_t size)
{
	snprintf(text, size, "stand-in, without CUDA");
}

/* Device d has the UUID GPU-0000000d-0000-0000-0000-000000000000. */
static bool
is_named(const DeviceList *list, int d)
{
	char		uuid[64];

	if (list->kind != DEVICES_IDS)
		return device_list_has(list, d);
	snprintf(uuid, sizeof(uuid), "GPU-%08x-0000-0000-0000-000000000000", d);
	for (const char *at = list->ids; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
		if (strncmp(at, uuid, strcspn(at, ",")) == 0)
			return true;
	return false;
}

/* ---- memory that other processes have ---- */

#define SHARING 16

typedef struct Sharer
{
	_Atomic int32_t pid;
	_Atomic uint64_t used[WIRE_MAX_DEVICES];
	_Atomic uint64_t limit[WIRE_MAX_DEVICES];	/* for tests to read */
} Sharer;

static Sharer *sharers;

static void
join_sharers(void)
{
	const char *path = getenv("GPUAGG_STANDIN_SHARED");
	int			fd = path ? open(path, O_RDWR | O_CREAT, 0666) : -1;

	if (fd < 0 || ftruncate(fd, SHARING * sizeof(Sharer)) != 0)
		return;
	sharers = mmap(NULL, SHARING * sizeof(Sharer), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	for (int i = 0; i < SHARING; i++)
	{
		int32_t		pid = sharers[i].pid;

		if ((pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH)) &&
			atomic_compare_exchange_strong(&sharers[i].pid, &pid, (int32_t) getpid()))
			return;
	}
}

bool
standin_available(int device, bool idle, uint64_t *bytes)
{
	(void) idle;
	*bytes = budget_device(device)->memory;
	for (int i = 0; sharers && i < SHARING; i++)
	{
		int32_t		pid = sharers[i].pid;

		if (pid == getpid())
		{
			sharers[i].used[device] = budget_device(device)->used;
			sharers[i].limit[device] = budget_device(device)->limit;
		}
		else if (pid != 0 && (kill(pid, 0) == 0 || errno != ESRCH))
			*bytes -= sharers[i].used[device] < *bytes ? sharers[i].used[device] : *bytes;
	}
	return true;
}

static DeviceStatus
standin_start(const char *names, WireStatus *status, DeviceError *error)
{
	const char *n = getenv("GPUAGG_STANDIN_DEVICES");
	const char *seconds = getenv("GPUAGG_STANDIN_IDLE");
	const char *ranges = getenv("GPUAGG_STANDIN_RANGES");
	const char *most_kept = getenv("GPUAGG_STANDIN_KEPT");
	const char *keep_ms = getenv("GPUAGG_STANDIN_KEEP_MS");
	const char *note;
	DeviceList	list;
	int			count = n ? atoi(n) : 2;

	if (seconds)
		arena_idle_seconds = atoi(seconds);
	if (most_kept)
		session_most_kept = atoi(most_kept);
	if (keep_ms)
		session_keep_ms = atoi(keep_ms);
	if (ranges)
		store_place_ranges = (uint32_t) atoi(ranges);
	if (!device_list_read(names, &list, error->text, sizeof(error->text)))
		return DEVICE_UNSUPPORTED;
	if (count == 0)
		return device_say(error, DEVICE_UNSUPPORTED, "no CUDA device found");
	status->driver = 13000;
	if ((note = getenv("GPUAGG_STANDIN_SKIPPED")) != NULL)
	{
		status->nskipped = 1;
		status->skipped[0].ordinal = 7;
		snprintf(status->skipped[0].name, sizeof(status->skipped[0].name), "stand-in");
		snprintf(status->skipped[0].note, sizeof(status->skipped[0].note), "%s", note);
	}
	for (int d = 0; d < count; d++)
	{
		WireDevice *dev = &status->devices[status->ndevices];

		if (!is_named(&list, d))
			continue;
		status->ndevices++;
		dev->ordinal = d;
		dev->major = 9;
		dev->processors = 132;
		dev->threads = 132 * 2048;
		dev->memory = (uint64_t) 1 << 30;
		dev->limit = dev->memory / 5 * 4;
		dev->l2_bytes = 50 << 20;
		dev->shared_bytes = 227 << 10;
		snprintf(dev->name, sizeof(dev->name), "stand-in");
	}
	if (status->ndevices == 0)
		return device_say(error, DEVICE_UNSUPPORTED, "gpuagg.devices names no device");
	standin_store_start((int) status->ndevices);
	join_sharers();
	return DEVICE_OK;
}

static DeviceStatus
standin_pin(void *memory, size_t bytes, DeviceError *error)
{
	(void) memory, (void) bytes, (void) error;
	return DEVICE_OK;
}

static void
standin_unpin(void *memory)
{
	(void) memory;
}

/* The fault that the test requests for the event of this number; an empty word: none. */
static void
requested_fault(char word[32], int number)
{
	int			from = 1;
	FILE	   *f = fopen("gpuagg.fault", "r");

	word[0] = '\0';
	if (f == NULL)
		return;
	if (fscanf(f, "%31s %d", word, &from) < 1 || number < from)
		word[0] = '\0';
	fclose(f);
}

/* Lets the fault happen that is requested for the query's batch of this number. */
DeviceStatus
standin_provoke(int batch, DeviceError *error)
{
	char		word[32];

	requested_fault(word, batch);
	if (strcmp(word, "slow") == 0)
		usleep(20000);
	else if (strcmp(word, "slower") == 0)
		sleep(1);
	else if (strcmp(word, "hang") == 0)
		sleep(60);
	else if (strcmp(word, "segv") == 0)
		raise(SIGSEGV);
	else if (strcmp(word, "abort") == 0)
		abort();
	else if (strcmp(word, "fault") == 0)
		return device_say(error, DEVICE_LOST, "an illegal memory access was encountered");
	else if (strcmp(word, "memory") == 0)
		return device_say(error, DEVICE_FULL, "device memory limit reached");
	else if (strcmp(word, "launch") == 0)
		return device_say(error, DEVICE_UNSUPPORTED, "too many resources requested for launch");
	return DEVICE_OK;
}

static atomic_int lanes;		/* that are open */

static DeviceStatus
standin_lane_open(Lane **lane, int device, char *arena, size_t buffer_bytes, int buffers,
				  DeviceError *error)
{
	Lane	   *l = calloc(1, sizeof(*l));
	char		word[32];

	requested_fault(word, atomic_fetch_add(&lanes, 1) + 1);
	if (strcmp(word, "lane") == 0 || strcmp(word, "lost") == 0)
	{
		free(l);
		atomic_fetch_sub(&lanes, 1);
		return word[1] == 'a' ? device_say(error, DEVICE_NO_MEMORY, "device memory limit reached") :
			device_say(error, DEVICE_LOST, "an illegal memory access was encountered");
	}
	if (l == NULL || (l->memory = malloc(buffer_bytes * buffers)) == NULL)
		return device_say(error, DEVICE_NO_MEMORY, "out of memory");
	l->device = device;
	l->arena = arena;
	l->buffer_bytes = buffer_bytes;
	*lane = l;
	return DEVICE_OK;
}

static void
standin_lane_close(Lane *lane)
{
	free(lane->memory);
	free(lane);
	atomic_fetch_sub(&lanes, 1);
}

static DeviceStatus
standin_copy(Lane *lane, const WireBatch *batch, size_t *bytes, DeviceError *error)
{
	size_t		at = batch->buffer * lane->buffer_bytes;

	(void) error;
	memcpy(lane->memory + at, lane->arena + at, batch->bytes);
	*bytes = batch->bytes;
	return DEVICE_OK;
}

static DeviceStatus
standin_copy_wait(Lane *lane, int buffer, double *ms, DeviceError *error)
{
	(void) lane, (void) buffer, (void) error;
	*ms = 0;
	return DEVICE_OK;
}

static DeviceStatus
standin_lane_settle(Lane *lane, double *kernel_ms, DeviceError *error)
{
	(void) lane, (void) error;
	*kernel_ms = 0;
	return DEVICE_OK;
}

/* ---- groups ---- */

static uint64_t
hash_key(const char *key, int bytes)
{
	uint64_t	h = 0x9e3779b97f4a7c15ULL;

	for (int i = 0; i < bytes; i++)
		h = (h ^ (unsigned char) key[i]) * 0x100000001b3ULL;
	return h ^ h >> 29;
}

static size_t
slot_bytes(const Query *query, int s)
{
	const WireSlot *slot = &query->q->slots[s];

	return (size_t) slot->width * gpuagg_monoids[slot->monoid].state_size;
}

static uint64_t
bytes_for(const Query *query, uint64_t capacity)
{
	return capacity * (wire_group_bytes(query->q) + 2 * sizeof(uint64_t));
}

static uint64_t
probe(const Query *query, const char *key)
{
	int			width = query->q->key_bytes;
	uint64_t	mask = 2 * query->capacity - 1;
	uint64_t	at = hash_key(key, width) & mask;

	while (query->table[at] != 0 &&
		   memcmp(query->keys + (query->table[at] - 1) * width, key, width) != 0)
		at = (at + 1) & mask;
	return at;
}

static DeviceStatus
resize(Query *query, uint64_t capacity, DeviceError *error)
{
	int			width = query->q->key_bytes;
	uint64_t	bytes = bytes_for(query, capacity);
	uint64_t	left;

	while (!budget_take(query->device, bytes - query->bytes))
		if (!store_yield(query->device, bytes - query->bytes))
			return device_say(error, DEVICE_NO_MEMORY, "device memory limit reached");
	if (!standin_available(query->device, false, &left) || budget_device(query->device)->used > left)
	{
		budget_give(query->device, bytes - query->bytes);
		return device_say(error, DEVICE_NO_MEMORY, "other processes have the device's memory");
	}
	query->bytes = bytes;
	query->peak = bytes > query->peak ? bytes : query->peak;
	query->capacity = capacity;
	query->keys = realloc(query->keys, capacity * width + 1);
	free(query->table);
	query->table = calloc(2 * capacity, sizeof(uint64_t));
	for (uint64_t g = 0; g < query->ngroups; g++)
		query->table[probe(query, query->keys + g * width)] = g + 1;
	for (int s = 0; s < query->q->nslots; s++)
	{
		const WireSlot *slot = &query->q->slots[s];

		query->slots[s] = realloc(query->slots[s], capacity * slot_bytes(query, s));
		operators[slot->monoid].fill(query->slots[s] + query->ngroups * slot_bytes(query, s),
									 (capacity - query->ngroups) * slot->width);
	}
	return DEVICE_OK;
}

static void
forget_rows(Query *query)
{
	while (query->batches)
	{
		KeptBatch  *b = query->batches;

		query->batches = b->next;
		for (int c = 0; c < WIRE_MAX_COLS; c++)
		{
			free((char *) b->rows.cols[c].values);
			free((uint8_t *) b->rows.cols[c].validity);
		}
		free(b);
	}
	query->nkept = 0;
}

static DeviceStatus
standin_reset(Query *query, DeviceError *error)
{
	query->ngroups = query->q->nkeys == 0 ? 1 : 0;
	query->errors = query->retries = 0;
	/* of grouped rows each batch is followed by a reset */
	if (!(query->q->flags & WIRE_GROUPED))
		query->given = query->fetched = 0;
	query->untold = 0;
	forget_rows(query);
	standin_forget_values(query);
	standin_release_holds(query);
	if (query->capacity > 0)
		memset(query->table, 0, 2 * query->capacity * sizeof(uint64_t));
	for (int s = 0; s < query->q->nslots && query->capacity > 0; s++)
		operators[query->q->slots[s].monoid].fill(query->slots[s],
												  query->capacity * query->q->slots[s].width);
	if (query->capacity == 0)
	{
		uint64_t	ngroups = query->ngroups;
		DeviceStatus status;

		/* nothing to keep: every state is the identity */
		query->ngroups = 0;
		status = resize(query, 64, error);
		query->ngroups = ngroups;
		return status;
	}
	return DEVICE_OK;
}

static void
standin_query_close(Query *query)
{
	budget_give(query->device, query->bytes);
	forget_rows(query);
	standin_forget_values(query);
	standin_release_holds(query);
	free(query->kept);
	for (int s = 0; s < query->q->nslots; s++)
		free(query->slots[s]);
	free(query->keys);
	free(query->table);
	free(query);
}

static DeviceStatus
standin_query_open(Query **query, int device, const WireQuery *q, const double *thresholds,
				   DeviceError *error)
{
	Query	   *made = calloc(1, sizeof(*made));
	DeviceStatus status;

	made->device = device;
	made->q = q;
	made->thresholds = thresholds;
	status = standin_reset(made, error);
	if (status == DEVICE_OK)
		*query = made;
	else
		standin_query_close(made);
	return status;
}

static bool
valid(const Column *col, uint32_t i)
{
	return col->validity == NULL || (col->validity[i >> 3] >> (i & 7) & 1);
}

/* The group of a packed key, which is made if need be. */
static DeviceStatus
group_of_key(Query *query, const char *key, uint64_t *group, DeviceError *error)
{
	const WireQuery *q = query->q;
	uint64_t	at;

	*group = 0;
	if (q->nkeys == 0)
		return DEVICE_OK;
	if (query->ngroups == query->capacity)
	{
		DeviceStatus status = resize(query, 2 * query->capacity, error);

		if (status != DEVICE_OK)
			return status;
		query->retries++;
	}
	at = probe(query, key);
	if (query->table[at] == 0)
	{
		memcpy(query->keys + query->ngroups * q->key_bytes, key, q->key_bytes);
		query->table[at] = ++query->ngroups;
	}
	*group = query->table[at] - 1;
	return DEVICE_OK;
}

static DeviceStatus
group_of(Query *query, const Rows *rows, uint32_t i, uint64_t *group, DeviceError *error)
{
	const WireQuery *q = query->q;
	char		key[WIRE_MAX_KEY_BYTES] = {0};

	for (int k = 0; k < q->nkeys; k++)
	{
		const Column *col = &rows->cols[q->keys[k].col];
		int			width = q->keys[k].width;

		if (valid(col, i))
			memcpy(key + q->keys[k].offset, col->values + (size_t) i * width, width);
		else
			key[q->null_offset] |= 1 << k;
	}
	return group_of_key(query, key, group, error);
}

static void
reduce_row(Query *query, int s, const Rows *rows, uint32_t i, uint64_t group)
{
	const WireSlot *slot = &query->q->slots[s];
	const double *t = query->thresholds + slot->thresholds;
	Row			row = {.i = i};
	uint64_t	bin = 0;
	double		x;

	row.valid = slot->col[0] >= 0 && valid(&rows->cols[slot->col[0]], i);
	for (int c = 0; c < 2; c++)
	{
		if (slot->col[c] >= 0 && slot->monoid != MONOID_LONGEST_ASC &&
			!valid(&rows->cols[slot->col[c]], i))
			return;
		row.col[c] = slot->col[c] >= 0 ? &rows->cols[slot->col[c]] : NULL;
	}
	if (slot->filter >= 0 && rows->cols[slot->filter].values[i] == 0)
		return;
	if (slot->bin_kind == WIRE_BIN_HLL)
	{
		int			reg,
					rank;
		int32_t    *registers = (int32_t *) query->slots[s] + group * slot->width;

		gpuagg_bin_hll((uint64_t) read_integer(&row, 0), &reg, &rank);
		registers[reg] = hll_max_combine(registers[reg], rank);
		return;
	}
	if (slot->bin_kind != WIRE_BIN_NONE)
	{
		x = read_double(&row, 0);
		bin = slot->bin_kind == WIRE_BIN_UNIFORM ?
			gpuagg_bin_uniform(x, slot->lo, slot->hi, slot->bin_n) :
			gpuagg_bin_thresholds(x, t, slot->bin_n);
		row.col[0] = row.col[1];
		row.col[1] = NULL;
	}
	query->errors |= operators[slot->monoid].row(query->slots[s] + (group * slot->width + bin) *
												 gpuagg_monoids[slot->monoid].state_size, &row);
}

void
standin_add_value(Query *query, int s, uint64_t group, int64_t value)
{
	const WireSlot *slot = &query->q->slots[s];
	Column		column = {.values = (const char *) &value,.type = WIRE_I64};
	Row			row = {.col = {slot->col[0] >= 0 ? &column : NULL},.valid = 1};

	query->errors |= operators[slot->monoid].row(query->slots[s] + group * slot_bytes(query, s), &row);
}

/* ---- rows in order ---- */

static bool
ordered(const Query *query, int s)
{
	return !gpuagg_monoids[query->q->slots[s].monoid].commutative;
}

/* malloc'ed; NULL of NULL */
static void *
copy_of(const void *from, size_t bytes)
{
	void	   *to = from ? malloc(bytes) : NULL;

	if (to)
		memcpy(to, from, bytes);
	return to;
}

static KeptBatch *
keep_batch(Query *query, const Rows *rows)
{
	KeptBatch  *b = calloc(1, sizeof(*b));

	b->rows.nrows = rows->nrows;
	for (int c = 0; c < query->q->ncols; c++)
	{
		const Column *col = &rows->cols[c];

		b->rows.cols[c].values = copy_of(col->values, (size_t) rows->nrows * wire_width(col->type));
		b->rows.cols[c].validity = copy_of(col->validity, wire_bitmap_bytes(rows->nrows));
		b->rows.cols[c].type = col->type;
	}
	b->next = query->batches;
	query->batches = b;
	return b;
}

static void
keep_row(Query *query, const KeptBatch *from, uint32_t i, uint64_t group)
{
	if (query->nkept == query->kept_capacity)
	{
		query->kept_capacity = 2 * query->kept_capacity + 1024;
		query->kept = realloc(query->kept, query->kept_capacity * sizeof(Kept));
	}
	query->kept[query->nkept] = (Kept) {query, group, query->nkept, from, i};
	query->nkept++;
}

static int
compare_kept(const void *x, const void *y)
{
	const Kept *a = x,
			   *b = y;
	const WireQuery *q = a->query->q;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	for (uint32_t o = 0; o < q->norder; o++)
	{
		const WireOrder *order = &q->order[o];
		Row			ra = {.col = {&a->from->rows.cols[order->col]},.i = a->i};
		Row			rb = {.col = {&b->from->rows.cols[order->col]},.i = b->i};
		int			va = valid(ra.col[0], a->i);
		int			vb = valid(rb.col[0], b->i);

		if (va != vb)
			return (va < vb) == order->nulls_first ? -1 : 1;
		if (va && read_integer(&ra, 0) != read_integer(&rb, 0))
			return (read_integer(&ra, 0) < read_integer(&rb, 0)) != order->desc ? -1 : 1;
	}
	return a->number < b->number ? -1 : 1;
}

static void
reduce_kept(Query *query)
{
	if (query->nkept > 0)
		qsort(query->kept, query->nkept, sizeof(Kept), compare_kept);
	for (uint64_t r = 0; r < query->nkept; r++)
		for (int s = 0; s < query->q->nslots; s++)
			if (ordered(query, s))
				reduce_row(query, s, &query->kept[r].from->rows, query->kept[r].i, query->kept[r].group);
	forget_rows(query);
}

/* Removes the groups from `ngroups` on, which have no rows. */
static void
forget_groups(Query *query, uint64_t ngroups)
{
	memset(query->table, 0, 2 * query->capacity * sizeof(uint64_t));
	query->ngroups = ngroups;
	for (uint64_t g = 0; g < ngroups; g++)
		query->table[probe(query, query->keys + g * query->q->key_bytes)] = g + 1;
}

DeviceStatus
standin_reduce_rows(Query *query, const Rows *rows, bool keep, DeviceError *error)
{
	uint64_t   *groups = malloc(rows->nrows * sizeof(uint64_t) + 1);
	uint64_t	before = query->ngroups;
	DeviceStatus status = standin_values_fit(query, rows) ? DEVICE_OK : DEVICE_FULL;
	KeptBatch  *kept = NULL;

	/* finds all groups before it reduces any row */
	for (uint32_t i = 0; i < rows->nrows && status == DEVICE_OK; i++)
		if ((status = group_of(query, rows, i, &groups[i], error)) != DEVICE_OK)
		{
			forget_groups(query, before);
			status = DEVICE_FULL;
		}
	if (status == DEVICE_OK && keep)
		kept = keep_batch(query, rows);
	for (uint32_t i = 0; i < rows->nrows && status == DEVICE_OK; i++)
	{
		for (int s = 0; s < query->q->nslots; s++)
			if (!ordered(query, s) && query->q->slots[s].part == WIRE_ROWS)
				reduce_row(query, s, rows, i, groups[i]);
		if (kept)
			keep_row(query, kept, i, groups[i]);
	}
	if (status != DEVICE_OK)
		device_say(error, status, "no room for the rows");
	else
		standin_keep_values(query, rows, groups);
	free(groups);
	return status;
}

/* Are integers in a column below min or above max? */
static bool
leaves_range(const Rows *rows, int c, int64_t min, int64_t max)
{
	Row			row = {.col = {&rows->cols[c]}};

	if (row.col[0]->type > WIRE_I64 || min > max)
		return false;
	for (row.i = 0; row.i < rows->nrows; row.i++)
	{
		int64_t		v = read_integer(&row, 0);

		if (valid(row.col[0], row.i) && (v < min || v > max))
			return true;
	}
	return false;
}

static DeviceStatus
standin_reduce(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	const char *base = lane->memory + batch->buffer * lane->buffer_bytes;
	/* one row without columns comes from the server's own warm-up */
	bool		warm_up = batch->nrows == 1 && batch->bytes == 0;
	Rows		rows = {.nrows = batch->nrows};
	DeviceStatus status = warm_up ? DEVICE_OK : standin_provoke(++query->given, error);

	for (uint32_t c = 0; c < batch->ncols; c++)
	{
		const WireColumn *col = &batch->cols[c];

		rows.cols[c].values = col->values == WIRE_NO_ARRAY ? NULL : base + col->values;
		rows.cols[c].validity = col->validity == WIRE_NO_ARRAY ? NULL : (const uint8_t *) base + col->validity;
		rows.cols[c].type = col->type;
	}
	for (int k = 0; k < query->q->nkeys && !warm_up; k++)
		if (leaves_range(&rows, query->q->keys[k].col, batch->key_min[k], batch->key_max[k]))
		{
			snprintf(error->text, sizeof(error->text), "keys outside of their range");
			return DEVICE_UNSUPPORTED;
		}
	return status == DEVICE_OK ?
		standin_reduce_rows(query, &rows, (query->q->flags & WIRE_ORDERED) != 0, error) : status;
}

/* Groups and a limit on them. */
typedef struct Limited
{
	const Query *query;
	LimitPlan	plan;
} Limited;

/* LimitKey */
static const char *
key_within(const void *arg, int64_t g, char *space)
{
	const Limited *limited = arg;
	const char *key = limited->query->keys + g * limited->query->q->key_bytes;

	(void) space;
	return limit_passes(&limited->plan, g, key) ? key : NULL;
}

/* Moves the groups that a limit leaves together. */
static void
apply_limit(Query *query, const WireLimit *limit, WireFinished *result)
{
	const size_t width = query->q->key_bytes;
	Limited		limited = {query, limit_plan(query->q, limit, (const void *const *) query->slots)};
	uint8_t    *left = calloc(1, query->ngroups + 1);
	LimitSearch search;
	uint64_t	kept = 0;

	for (uint64_t g = 0; g < query->ngroups; g++)
		result->failed += key_within(&limited, g, NULL) == NULL;
	limit_search(&limited.plan, key_within, &limited, query->ngroups, query->ngroups - result->failed, &search);
	for (uint64_t g = 0; g < query->ngroups; g++)
	{
		const char *key = key_within(&limited, g, NULL);

		left[g] = key && limit_has(&limited.plan, &search, g, key);
	}
	for (uint64_t g = 0; g < query->ngroups; g++)
	{
		if (!left[g])
			continue;
		memmove(query->keys + kept * width, query->keys + g * width, width);
		for (int s = 0; s < query->q->nslots; s++)
			memmove(query->slots[s] + kept * slot_bytes(query, s), query->slots[s] + g * slot_bytes(query, s),
					slot_bytes(query, s));
		kept++;
	}
	query->ngroups = kept;
	free(left);
}

static DeviceStatus
standin_finish(Query *query, const WireLimit *limit, bool part, WireFinished *result, DeviceError *error)
{
	(void) error;
	reduce_kept(query);
	if (!part)
		standin_finish_sets(query);
	result->allgroups = query->ngroups;
	if (limit)
		apply_limit(query, limit, result);
	result->ngroups = query->ngroups;
	result->errors = query->errors;
	result->retries = query->retries;
	result->untold = query->untold;
	standin_release_holds(query);
	result->memory_peak = query->peak;
	snprintf(result->strategy, sizeof(result->strategy), "%s (stand-in)",
			 query->q->nkeys == 0 ? "single" : query->q->flags & WIRE_GROUPED ? "segmented" : "hash");
	return DEVICE_OK;
}

static DeviceStatus
standin_absorb(Query *query, Query *part, const int64_t *key_min, const int64_t *key_max, DeviceError *error)
{
	uint64_t   *groups = malloc(part->ngroups * sizeof(*groups) + 1);
	DeviceStatus status = DEVICE_OK;

	(void) key_min, (void) key_max;
	for (uint64_t g = 0; g < part->ngroups && status == DEVICE_OK; g++)
	{
		uint64_t	group;

		status = group_of_key(query, part->keys + g * query->q->key_bytes, &group, error);
		groups[g] = group;
		for (int s = 0; s < query->q->nslots && status == DEVICE_OK; s++)
		{
			const WireSlot *slot = &query->q->slots[s];
			size_t		size = gpuagg_monoids[slot->monoid].state_size;

			for (int w = 0; w < slot->width; w++)
				query->errors |= operators[slot->monoid].combine(query->slots[s] + group * slot_bytes(query, s) + w * size,
																 part->slots[s] + g * slot_bytes(query, s) + w * size);
		}
	}
	if (status == DEVICE_OK)
		standin_bring_values(query, part, groups);
	free(groups);
	return status;
}

static DeviceStatus
standin_fetch(Query *query, Lane *lane, const WireGroups *out, DeviceError *error)
{
	char	   *base = lane->arena + out->buffer * lane->buffer_bytes;
	const WireQuery *q = query->q;
	char		word[32];

	requested_fault(word, ++query->fetched);
	if (strcmp(word, "fetch") == 0)
		abort();
	if (out->first > query->ngroups || out->n > query->ngroups - out->first)
		return device_say(error, DEVICE_UNSUPPORTED, "no such groups");
	memcpy(base + out->keys, query->keys + out->first * q->key_bytes,
		   (size_t) out->n * q->key_bytes);
	if (strcmp(word, "keys") == 0)
		memset(base + out->keys, 0x6f, (size_t) out->n * q->key_bytes);
	for (int s = 0; s < q->nslots; s++)
	{
		const char *from = query->slots[s] + out->first * slot_bytes(query, s);

		if (!wire_has_ranks(&q->slots[s], out->ranks))
			memcpy(base + out->slots[s], from, out->n * slot_bytes(query, s));
		for (uint32_t g = 0; wire_has_ranks(&q->slots[s], out->ranks) && g < out->n; g++)
			gpuagg_hll_count_ranks((const int32_t *) (from + g * slot_bytes(query, s)),
								   (int32_t *) (base + out->slots[s]) + (size_t) g * GPUAGG_HLL_RANKS);
	}
	return DEVICE_OK;
}

const DeviceOps device_ops = {
	.build = standin_build,
	.start = standin_start,
	.available = standin_available,
	.pin = standin_pin,
	.unpin = standin_unpin,
	.lane_open = standin_lane_open,
	.lane_close = standin_lane_close,
	.copy = standin_copy,
	.copy_wait = standin_copy_wait,
	.lane_settle = standin_lane_settle,
	.query_open = standin_query_open,
	.query_close = standin_query_close,
	.reduce = standin_reduce,
	.resident = standin_resident,
	.absorb = standin_absorb,
	.finish = standin_finish,
	.fetch = standin_fetch,
	.pick = standin_pick,
	.reset = standin_reset,
};

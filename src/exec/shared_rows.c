/*
 * shared_rows.c
 *	  Groups as rows in shared memory; see shared_rows.h.
 *
 * Each participant has segments of dynamic shared memory for its runs of groups.  A run that does
 * not fit into the last segment gets a new one, of just its size, or of half of what the
 * participant has already if that is more.  Participants allocate their segments concurrently,
 * which the plan's dsa area would not allow.
 *
 * A participant may have ended when others merge its rows.  So segments are pinned.  They are
 * unpinned when the last process detaches from the plan's own segment, as the files of a
 * SharedFileSet are deleted then; this happens after errors, too.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "storage/dsm_impl.h"

#include "exec/shared_rows.h"

/* The rows of a partition in a run. */
typedef struct RowsPart
{
	size_t start; /* bytes from the first partition */
	uint32 n;     /* rows; 0 in an export */
} RowsPart;

/* The header of a run; the memory of the partitions follows, one partition after another. */
typedef struct RunHeader
{
	size_t size; /* with the header; a multiple of RUN_ALIGN */
	int nparts;
	bool export;
	RowsPart parts[FLEXIBLE_ARRAY_MEMBER]; /* [partition]; one more is the end of the last one */
} RunHeader;

/* The header of a segment; the runs follow, each at a multiple of RUN_ALIGN. */
typedef struct SegmentHeader
{
	size_t end; /* of the last run */
} SegmentHeader;

#define RUN_ALIGN PG_CACHE_LINE_SIZE
#define FIRST_RUN TYPEALIGN(RUN_ALIGN, sizeof(SegmentHeader))

struct MappedRows
{
	int n;
	dsm_segment *segments[FLEXIBLE_ARRAY_MEMBER]; /* [output * ROWS_SEGMENTS + segment], or NULL */
};

/* Returns the size of a run's header; the partitions begin after it. */
static size_t
header_size(int nparts)
{
	return TYPEALIGN(RUN_ALIGN, offsetof(RunHeader, parts) + (nparts + 1) * sizeof(RowsPart));
}

Size
shared_rows_size(int participants, int sections)
{
	return offsetof(SharedRows, outputs) + participants * sections * sizeof(RowsOutput);
}

void
shared_rows_clear(SharedRows *shared)
{
	for (int i = 0; i < shared->n; i++)
	{
		RowsOutput *output = &shared->outputs[i];

		output->in_files = false;
		while (output->n > 0)
			dsm_unpin_segment(output->handles[--output->n]);
	}
}

/* Called when a process detaches from the plan's segment: the last one deletes the segments. */
static void
on_detach(dsm_segment *seg, Datum arg)
{
	SharedRows *shared = (SharedRows *) DatumGetPointer(arg);

	if (pg_atomic_sub_fetch_u32(&shared->users, 1) == 0)
		shared_rows_clear(shared);
}

void
shared_rows_init(SharedRows *shared, int participants, int sections, dsm_segment *seg)
{
	/* without a segment there are no other processes */
	shared->participants = seg ? participants : 0;
	shared->n = shared->participants * sections;
	memset(shared->outputs, 0, shared->n * sizeof(RowsOutput));
	pg_atomic_init_u32(&shared->users, 1);
	if (seg)
		on_dsm_detach(seg, on_detach, PointerGetDatum(shared));
}

void
shared_rows_attach(SharedRows *shared, dsm_segment *seg)
{
	pg_atomic_fetch_add_u32(&shared->users, 1);
	on_dsm_detach(seg, on_detach, PointerGetDatum(shared));
}

/*
 * Returns whether /dev/shm has room for `size` bytes for each participant.  If it has not, files
 * are better than an error.
 */
static bool
has_room(const SharedRows *shared, size_t size)
{
	struct statvfs fs;

	return dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs("/dev/shm", &fs) != 0 ||
		fs.f_bavail / shared->participants > size / fs.f_frsize + 1;
}

/* Returns a participant's output for a section, or NULL if the section has no segments. */
static RowsOutput *
find_output(const SharedRows *shared, int section, int participant)
{
	int number = section * shared->participants + participant;

	if (section < 0 || participant >= shared->participants || number >= shared->n)
		return NULL;
	return unconstify(RowsOutput *, &shared->outputs[number]);
}

/*
 * Returns the entry of *mapped for a segment of an output: NULL while it is not mapped.  Allocates
 * *mapped if need be.
 */
static dsm_segment **
mapping(SharedRows *shared, MappedRows **mapped, const RowsOutput *output, int segment)
{
	if (*mapped == NULL)
	{
		int n = shared->n * ROWS_SEGMENTS;

		*mapped = palloc0(offsetof(MappedRows, segments) + n * sizeof(dsm_segment *));
		(*mapped)->n = n;
	}
	return &(*mapped)->segments[(output - shared->outputs) * ROWS_SEGMENTS + segment];
}

/* Returns the header of a segment of an output, which is mapped if need be. */
static SegmentHeader *
map_segment(SharedRows *shared, MappedRows **mapped, const RowsOutput *output, int segment)
{
	dsm_segment **entry = mapping(shared, mapped, output, segment);

	if (*entry == NULL)
		*entry = dsm_attach(output->handles[segment]);
	if (*entry == NULL)
		elog(ERROR, "groups of another participant are gone");
	return dsm_segment_address(*entry);
}

/* Returns the size of a segment of an output, which is mapped if need be. */
static size_t
segment_size(SharedRows *shared, MappedRows **mapped, const RowsOutput *output, int segment)
{
	map_segment(shared, mapped, output, segment);
	return dsm_segment_map_length(*mapping(shared, mapped, output, segment));
}

/*
 * Adds a segment with room for a run of this size to an output of this process.  Returns NULL if
 * there is no memory.
 */
static SegmentHeader *
add_segment(SharedRows *shared, MappedRows **mapped, RowsOutput *output, size_t size)
{
	size_t total = 0;
	dsm_segment **entry;
	SegmentHeader *header;

	if (output->n == ROWS_SEGMENTS)
		return NULL;
	for (int i = 0; i < output->n; i++)
		total += segment_size(shared, mapped, output, i);
	size = FIRST_RUN + Max(size, total / 2);
	if (!has_room(shared, size))
		return NULL;
	entry = mapping(shared, mapped, output, output->n);
	*entry = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (*entry == NULL)
		return NULL;
	dsm_pin_segment(*entry);
	output->handles[output->n++] = dsm_segment_handle(*entry);
	header = dsm_segment_address(*entry);
	header->end = FIRST_RUN;
	return header;
}

/* Returns a segment of an output of this process with room for a run, or NULL if there is none. */
static SegmentHeader *
find_room(SharedRows *shared, MappedRows **mapped, RowsOutput *output, size_t size)
{
	if (output->n > 0)
	{
		int last = output->n - 1;
		SegmentHeader *header = map_segment(shared, mapped, output, last);

		if (segment_size(shared, mapped, output, last) - header->end >= size)
			return header;
	}
	return add_segment(shared, mapped, output, size);
}

char *
shared_rows_create(SharedRows *shared, MappedRows **mapped, int section, int participant,
				   const uint32 *counts, const size_t *bytes, int nparts)
{
	RowsOutput *output = find_output(shared, section, participant);
	size_t size = header_size(nparts);
	SegmentHeader *segment;
	RunHeader *run;

	if (output == NULL)
		return NULL;
	for (int p = 0; p < nparts; p++)
		size += bytes[p];
	size = TYPEALIGN(RUN_ALIGN, size);
	segment = find_room(shared, mapped, output, size);
	if (segment == NULL)
		return NULL;
	run = (RunHeader *) ((char *) segment + segment->end);
	segment->end += size;
	run->size = size;
	run->nparts = nparts;
	run->export = counts == NULL;
	run->parts[0].start = 0;
	for (int p = 0; p < nparts; p++)
	{
		run->parts[p].n = counts ? counts[p] : 0;
		run->parts[p + 1].start = run->parts[p].start + bytes[p];
	}
	return (char *) run + header_size(nparts);
}

void
shared_rows_set_files(SharedRows *shared, int section, int participant)
{
	RowsOutput *output = find_output(shared, section, participant);

	if (output)
		output->in_files = true;
}

bool
shared_rows_in_files(const SharedRows *shared, int section, int participant)
{
	RowsOutput *output = find_output(shared, section, participant);

	return output == NULL || output->in_files;
}

bool
shared_rows_next(SharedRows *shared, MappedRows **mapped, int section, int participant, int part,
				 RowsCursor *cursor, SharedPart *found)
{
	const RowsOutput *output = find_output(shared, section, participant);

	while (output && cursor->segment < output->n)
	{
		const SegmentHeader *segment = map_segment(shared, mapped, output, cursor->segment);
		size_t at = Max(cursor->at, FIRST_RUN);
		const RunHeader *run = (const RunHeader *) ((const char *) segment + at);

		if (at >= segment->end)
		{
			cursor->segment++;
			cursor->at = 0;
			continue;
		}
		cursor->at = at + run->size;
		found->data = (const char *) run + header_size(run->nparts) + run->parts[part].start;
		found->bytes = run->parts[part + 1].start - run->parts[part].start;
		found->export = run->export;
		found->n = run->parts[part].n;
		return true;
	}
	return false;
}

/* Frees the memory of a partition's rows in the runs of a segment. */
static void
release_in_segment(const SegmentHeader *segment, int part, uintptr_t page)
{
#ifdef MADV_REMOVE
	size_t at = FIRST_RUN;

	while (at < segment->end)
	{
		const RunHeader *run = (const RunHeader *) ((const char *) segment + at);
		uintptr_t rows = (uintptr_t) run + header_size(run->nparts);
		uintptr_t start = TYPEALIGN(page, rows + run->parts[part].start);
		uintptr_t end = TYPEALIGN_DOWN(page, rows + run->parts[part + 1].start);

		if (start < end)
			(void) madvise((char *) start, end - start, MADV_REMOVE);
		at += run->size;
	}
#endif
}

void
shared_rows_release(SharedRows *shared, MappedRows *mapped, int section, int part)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);
	const RowsOutput *first = find_output(shared, section, 0);

	if (dynamic_shared_memory_type != DSM_IMPL_POSIX || mapped == NULL || first == NULL)
		return;
	for (int i = 0; i < shared->participants * ROWS_SEGMENTS; i++)
	{
		dsm_segment *segment = mapped->segments[(first - shared->outputs) * ROWS_SEGMENTS + i];

		/* segments with odd handles are in the main shared memory, which is not freed */
		if (segment && dsm_segment_handle(segment) % 2 == 0)
			release_in_segment(dsm_segment_address(segment), part, page);
	}
}

void
shared_rows_unmap(MappedRows **mapped)
{
	for (int p = 0; *mapped && p < (*mapped)->n; p++)
		if ((*mapped)->segments[p])
			dsm_detach((*mapped)->segments[p]);
	if (*mapped)
		pfree(*mapped);
	*mapped = NULL;
}

/*
 * shared_rows.c
 *	  Groups as rows in shared memory; see shared_rows.h.
 *
 * Each participant has segments of dynamic shared memory, with portions of its groups one after
 * another.  It knows how many rows of a portion each partition has, so the last portion needs just
 * the memory of its rows.  Participants allocate their segments concurrently, which the plan's dsa
 * area would not allow.
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

/*
 * The first segment of a section has room for so many portions at least, and at most. The next ones
 * are as large as all before them: a server has few segments.
 */
#define FIRST_PORTIONS 4
#define MOST_PORTIONS 16

/*
 * Memory of a partition is freed if it has so many bytes in a portion. For less, the call takes
 * longer than freeing the memory with the segment.
 */
#define RELEASED_BYTES ((size_t) 64 * 1024)
/* Most segments of a participant for a section; fewer if there would be more than MANY_SEGMENTS. */
#define SECTION_SEGMENTS 10

/* The rows of a partition in a portion. */
typedef struct RowsPart
{
	size_t start; /* bytes from the first partition */
	uint32 n;     /* rows; 0 in an export */
} RowsPart;

/* The header of a portion; the memory of the partitions follows, one partition after another. */
typedef struct RowsHeader
{
	size_t size; /* bytes to the next portion, or to where it would be */
	int nparts;
	bool export;
	bool last;
	RowsPart parts[FLEXIBLE_ARRAY_MEMBER]; /* [partition]; one more is the end of the last one */
} RowsHeader;

/* The header of a segment; portions follow, aligned to cache lines. */
typedef struct SegmentHeader
{
	size_t used; /* bytes, from the start of the segment */
	size_t size;
} SegmentHeader;

struct MappedRows
{
	int n;
	dsm_segment *segments[FLEXIBLE_ARRAY_MEMBER]; /* [segment of SharedRows], or NULL */
};

/* Where the first portion of a segment begins. */
#define FIRST_PORTION TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(SegmentHeader))

/* Returns the size of a portion's header; the partitions begin after it. */
static size_t
header_size(int nparts)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 offsetof(RowsHeader, parts) + (nparts + 1) * sizeof(RowsPart));
}

/* Returns how many segments a participant may have for a section. */
static int
segments_each(int participants, int sections)
{
	return Min(Max(MANY_SEGMENTS / (participants * sections), 1), SECTION_SEGMENTS);
}

Size
shared_rows_size(int participants, int sections)
{
	return offsetof(SharedRows, handles) +
		participants * sections * segments_each(participants, sections) * sizeof(dsm_handle);
}

void
shared_rows_clear(SharedRows *shared)
{
	for (int i = 0; i < shared->n; i++)
	{
		dsm_handle handle = shared->handles[i];

		shared->handles[i] = DSM_HANDLE_INVALID;
		if (handle != DSM_HANDLE_INVALID)
			dsm_unpin_segment(handle);
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
	shared->each = segments_each(participants, sections);
	shared->n = shared->participants * sections * shared->each;
	for (int i = 0; i < shared->n; i++)
		shared->handles[i] = DSM_HANDLE_INVALID;
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

/* Returns the number of a participant's first segment for a section; -1: it has none. */
static int
first_segment(const SharedRows *shared, int section, int participant)
{
	int number = (section * shared->participants + participant) * shared->each;

	return section >= 0 && participant < shared->participants && number < shared->n ? number : -1;
}

/*
 * Returns the entry of *mapped for a segment: NULL while it is not mapped.  Allocates *mapped if
 * need be.
 */
static dsm_segment **
mapping(SharedRows *shared, MappedRows **mapped, int number)
{
	if (*mapped == NULL)
	{
		*mapped = palloc0(offsetof(MappedRows, segments) + shared->n * sizeof(dsm_segment *));
		(*mapped)->n = shared->n;
	}
	return &(*mapped)->segments[number];
}

/*
 * Creates a segment with room for a portion of `size` bytes. The segments before it have `before`
 * bytes; `expected` is as for shared_rows_create(). Returns NULL if there is no memory.
 */
static SegmentHeader *
create_segment(SharedRows *shared, MappedRows **mapped, int number, size_t size, size_t before,
			   size_t expected)
{
	dsm_segment **segment = mapping(shared, mapped, number);
	SegmentHeader *header;

	if (expected > 0 && before == 0)
		size = Min(Max(expected, size * FIRST_PORTIONS), size * MOST_PORTIONS);
	else if (expected > 0)
		size = Max(size, before);
	size += FIRST_PORTION;
	if (!has_room(shared, size))
		return NULL;
	*segment = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (*segment == NULL)
		return NULL;
	dsm_pin_segment(*segment);
	shared->handles[number] = dsm_segment_handle(*segment);
	header = dsm_segment_address(*segment);
	header->used = FIRST_PORTION;
	header->size = size;
	return header;
}

/*
 * Returns a segment of this participant with room for a portion of `size` bytes, a new one if need
 * be. `number` is that of its first segment of the section. Returns NULL if there is no memory.
 */
static SegmentHeader *
find_room(SharedRows *shared, MappedRows **mapped, int number, size_t size, size_t expected)
{
	size_t before = 0;

	for (int s = number; s < number + shared->each - (expected > 0); s++)
	{
		dsm_segment *segment = *mapping(shared, mapped, s);
		SegmentHeader *header;

		if (segment == NULL)
			return create_segment(shared, mapped, s, size, before, expected);
		header = dsm_segment_address(segment);
		if (header->size - header->used >= size)
			return header;
		before += header->size;
	}
	return NULL;
}

char *
shared_rows_create(SharedRows *shared, MappedRows **mapped, int section, int participant,
				   const uint32 *counts, const size_t *bytes, int nparts, size_t common,
				   size_t expected)
{
	int number = first_segment(shared, section, participant);
	size_t size = header_size(nparts) + common;
	SegmentHeader *segment;
	RowsHeader *header;

	if (number < 0)
		return NULL;
	for (int p = 0; p < nparts; p++)
		size += bytes[p];
	size = TYPEALIGN(PG_CACHE_LINE_SIZE, size);
	segment = find_room(shared, mapped, number, size, expected);
	if (segment == NULL)
		return NULL;
	header = (RowsHeader *) ((char *) segment + segment->used);
	segment->used += size;
	header->size = size;
	header->nparts = nparts;
	header->export = counts == NULL;
	header->last = expected == 0;
	header->parts[0].start = 0;
	for (int p = 0; p < nparts; p++)
	{
		header->parts[p].n = counts ? counts[p] : 0;
		header->parts[p + 1].start = header->parts[p].start + bytes[p];
	}
	return (char *) header + header_size(nparts);
}

/* Returns a segment, mapped, or NULL if there is none. */
static const SegmentHeader *
map_segment(SharedRows *shared, MappedRows **mapped, int number)
{
	dsm_segment **segment;

	if (shared->handles[number] == DSM_HANDLE_INVALID)
		return NULL;
	segment = mapping(shared, mapped, number);
	if (*segment == NULL)
		*segment = dsm_attach(shared->handles[number]);
	if (*segment == NULL)
		elog(ERROR, "groups of another participant are gone");
	return dsm_segment_address(*segment);
}

bool
shared_rows_next(SharedRows *shared, MappedRows **mapped, int section, int participant, int part,
				 SharedCursor *cursor, SharedPart *found)
{
	int number = first_segment(shared, section, participant);

	while (number >= 0 && cursor->segment < shared->each)
	{
		const SegmentHeader *segment = map_segment(shared, mapped, number + cursor->segment);
		const RowsHeader *header;
		const RowsPart *rows;

		if (segment == NULL)
			return false;
		cursor->at = Max(cursor->at, FIRST_PORTION);
		if (cursor->at >= segment->used)
		{
			cursor->segment++;
			cursor->at = 0;
			continue;
		}
		header = (const RowsHeader *) ((const char *) segment + cursor->at);
		rows = &header->parts[part];
		found->data = (const char *) header + header_size(header->nparts) + rows->start;
		found->bytes = rows[1].start - rows->start;
		found->export = header->export;
		found->last = header->last;
		found->n = rows->n;
		cursor->at += header->size;
		return true;
	}
	return false;
}

/* Frees the whole pages of a partition's rows in a portion, if they are many. */
static void
release_rows(const RowsHeader *header, int part)
{
#ifdef MADV_REMOVE
	uintptr_t page = sysconf(_SC_PAGESIZE);
	char *rows = (char *) header + header_size(header->nparts);
	char *start = (char *) TYPEALIGN(page, (uintptr_t) rows + header->parts[part].start);
	char *end = (char *) TYPEALIGN_DOWN(page, (uintptr_t) rows + header->parts[part + 1].start);

	if (start + RELEASED_BYTES <= end)
		(void) madvise(start, end - start, MADV_REMOVE);
#endif
}

void
shared_rows_release(SharedRows *shared, MappedRows *mapped, int section, int part)
{
	int first = first_segment(shared, section, 0);

	if (dynamic_shared_memory_type != DSM_IMPL_POSIX || first < 0 || mapped == NULL)
		return;
	for (int s = first; s < first + shared->participants * shared->each; s++)
	{
		dsm_segment *segment = mapped->segments[s];
		const SegmentHeader *header;

		/* segments with odd handles are in the main shared memory, which is not freed */
		if (segment == NULL || dsm_segment_handle(segment) % 2 != 0)
			continue;
		header = dsm_segment_address(segment);
		for (size_t at = FIRST_PORTION; at < header->used;)
		{
			const RowsHeader *portion = (const RowsHeader *) ((const char *) header + at);

			release_rows(portion, part);
			at += portion->size;
		}
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

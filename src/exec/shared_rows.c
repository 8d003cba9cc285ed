/*
 * shared_rows.c
 *	  Groups as rows in shared memory; see shared_rows.h.
 *
 * Each participant has a segment of dynamic shared memory.  It knows how many rows each partition
 * has, so the segment has just the size it needs.  Participants allocate their segments
 * concurrently, which the plan's dsa area would not allow.
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

/* The rows of a partition in a segment. */
typedef struct RowsPart
{
	size_t start; /* bytes from the first partition */
	uint32 n;     /* rows; 0 in an export */
} RowsPart;

/* The header of a segment; the memory of the partitions follows, one partition after another. */
typedef struct RowsHeader
{
	int nparts;
	bool export;
	RowsPart parts[FLEXIBLE_ARRAY_MEMBER]; /* [partition]; one more is the end of the last one */
} RowsHeader;

struct MappedRows
{
	int n;
	dsm_segment *segments[FLEXIBLE_ARRAY_MEMBER]; /* [segment of SharedRows], or NULL */
};

/* Returns the size of a segment's header; the partitions begin after it. */
static size_t
header_size(int nparts)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 offsetof(RowsHeader, parts) + (nparts + 1) * sizeof(RowsPart));
}

Size
shared_rows_size(int participants, int sections)
{
	return offsetof(SharedRows, handles) + participants * sections * sizeof(dsm_handle);
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
	shared->n = shared->participants * sections;
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

/* Returns the number of a participant's segment for a section. */
static int
segment_number(const SharedRows *shared, int section, int participant)
{
	return section * shared->participants + participant;
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

char *
shared_rows_create(SharedRows *shared, MappedRows **mapped, int section, int participant,
				   const uint32 *counts, const size_t *bytes, int nparts, size_t common)
{
	int number = segment_number(shared, section, participant);
	size_t size = header_size(nparts) + common;
	dsm_segment **segment;
	RowsHeader *header;

	if (section < 0 || participant >= shared->participants || number >= shared->n)
		return NULL;
	for (int p = 0; p < nparts; p++)
		size += bytes[p];
	segment = mapping(shared, mapped, number);
	if (*segment != NULL || !has_room(shared, size))
		return NULL;
	*segment = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (*segment == NULL)
		return NULL;
	dsm_pin_segment(*segment);
	shared->handles[number] = dsm_segment_handle(*segment);
	header = dsm_segment_address(*segment);
	header->nparts = nparts;
	header->export = counts == NULL;
	header->parts[0].start = 0;
	for (int p = 0; p < nparts; p++)
	{
		header->parts[p].n = counts ? counts[p] : 0;
		header->parts[p + 1].start = header->parts[p].start + bytes[p];
	}
	return (char *) header + header_size(nparts);
}

bool
shared_rows_find(SharedRows *shared, MappedRows **mapped, int section, int participant, int part,
				 SharedPart *found)
{
	int number = segment_number(shared, section, participant);
	dsm_segment **segment;
	const RowsHeader *header;
	const RowsPart *rows;

	if (section < 0 || participant >= shared->participants || number >= shared->n ||
		shared->handles[number] == DSM_HANDLE_INVALID)
		return false;
	segment = mapping(shared, mapped, number);
	if (*segment == NULL)
		*segment = dsm_attach(shared->handles[number]);
	if (*segment == NULL)
		elog(ERROR, "groups of another participant are gone");
	header = dsm_segment_address(*segment);
	rows = &header->parts[part];
	found->data = (const char *) header + header_size(header->nparts) + rows->start;
	found->bytes = rows[1].start - rows->start;
	found->export = header->export;
	found->n = rows->n;
	return true;
}

void
shared_rows_release(SharedRows *shared, MappedRows *mapped, int section, int part)
{
#ifdef MADV_REMOVE
	uintptr_t page = sysconf(_SC_PAGESIZE);

	if (dynamic_shared_memory_type != DSM_IMPL_POSIX || section < 0 ||
		segment_number(shared, section, shared->participants) > shared->n)
		return;
	for (int p = 0; mapped && p < shared->participants; p++)
	{
		dsm_segment *segment = mapped->segments[segment_number(shared, section, p)];
		const RowsHeader *header;
		char *rows, *start, *end;

		/* segments with odd handles are in the main shared memory, which is not freed */
		if (segment == NULL || dsm_segment_handle(segment) % 2 != 0)
			continue;
		header = dsm_segment_address(segment);
		rows = (char *) header + header_size(header->nparts);
		start = (char *) TYPEALIGN(page, (uintptr_t) rows + header->parts[part].start);
		end = (char *) TYPEALIGN_DOWN(page, (uintptr_t) rows + header->parts[part + 1].start);
		if (start < end)
			(void) madvise(start, end - start, MADV_REMOVE);
	}
#endif
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

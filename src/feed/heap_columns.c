/*
 * heap_columns.c
 *
 * Decodes columns of a heap page's tuples into vectors.
 *
 * Attributes before the first one of variable width have the same offset in all tuples, up to the
 * first NULL. To find other attributes, the code walks through the tuples of all rows together,
 * step by step. Consecutive attributes of fixed width (a HeapRun) are one addition: their length
 * depends only on which of them are NULL and on the position modulo 8. An attribute of variable
 * width is skipped by its header. Rows do not depend on each other, so their loads overlap, and
 * NULLs need no branches.
 */
#include "postgres.h"

#include "access/tupdesc_details.h"
#include "access/tupmacs.h"

#include "feed/heap_columns.h"

#define WORD_ATTRS 64

/*
 * One step of the walk: any number of attributes of fixed width, then at most one attribute that
 * is a wanted column or of variable width, or two varlenas that are not wanted. All attributes of
 * a step share one word of the null bitmap.
 */
typedef struct HeapStep
{
	int first; /* first attribute */
	int nrun;
	int stop;    /* attribute after the fixed-width ones, or -1 */
	bool pair;   /* the step also skips the attribute after that */
	int slot;    /* index into HeapColumns.attrs if stop is a wanted column; else -1 */
	HeapRun run; /* length if none is NULL */
} HeapStep;

/* ---- the table's layout ------------------------------------------------------ */

/* Returns an attribute's missing value as a tuple would hold it; NULL if there is none. */
static const uint8 *
missing_value(TupleDesc desc, int a)
{
	Form_pg_attribute att = TupleDescAttr(desc, a);
	struct AttrMissing *missing = desc->constr ? desc->constr->missing : NULL;
	Datum *copy;

	if (!att->atthasmissing || missing == NULL || !missing[a].am_present)
		return NULL;
	if (!att->attbyval)
		return (const uint8 *) DatumGetPointer(missing[a].am_value);
	copy = palloc0(sizeof(Datum));
	store_att_byval(copy, missing[a].am_value, att->attlen);
	return (const uint8 *) copy;
}

HeapDecoder *
heap_decoder_create(TupleDesc desc)
{
	HeapDecoder *decoder = palloc0(sizeof(HeapDecoder));
	int32 start = 0;

	decoder->desc = desc;
	decoder->attrs = palloc0(sizeof(DecodeAttr) * (desc->natts + 1));
	decoder->chunks = palloc0(sizeof(decoder->chunks[0]) * (desc->natts + 1));
	decoder->cxt = CurrentMemoryContext;
	for (int a = 0; a < desc->natts; a++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, a);
		DecodeAttr *attr = &decoder->attrs[a];

		attr->len = att->attlen;
		attr->align = att->attalign == TYPALIGN_CHAR ? 1 :
			att->attalign == TYPALIGN_SHORT          ? 2 :
			att->attalign == TYPALIGN_INT            ? 4 :
													   8;
		attr->missing = missing_value(desc, a);
		attr->start = start;
		attr->offset = start < 0 ? -1 : decode_align(start, attr->align);
		/* A varlena that needs padding may also be stored unpadded (short header). */
		if (attr->len == -1 && attr->offset != start)
			attr->offset = -1;
		start = start < 0 || attr->len < 0 ? -1 : attr->offset + attr->len;
	}
	return decoder;
}

/* ---- the walk ---------------------------------------------------------------- */

static int
compare_int16(const void *a, const void *b)
{
	return *(const int16 *) a - *(const int16 *) b;
}

/*
 * Makes the steps to all attributes of a stage. A step begins where the stage before ends, so that
 * a walk can go on from there.
 */
static void
make_steps(const HeapDecoder *decoder, HeapColumns *columns)
{
	const DecodeAttr *attrs = decoder->attrs;
	HeapStep *steps;
	int a = 0;

	if (columns->nattrs == 0)
		return;
	steps = palloc(sizeof(HeapStep) * (columns->attrs[columns->nattrs - 1] + 1));
	for (int k = 0; k < columns->nattrs;)
	{
		HeapStep *step = &steps[columns->nsteps++];
		int end = (a / WORD_ATTRS + 1) * WORD_ATTRS;

		if (decoder->border > a)
			end = Min(end, decoder->border);
		step->first = a;
		while (a < columns->attrs[k] && attrs[a].len >= 0 && a < end)
			a++;
		step->nrun = a - step->first;
		step->stop = a < end ? a : -1;
		step->slot = step->stop == columns->attrs[k] ? k++ : -1;
		a += step->stop >= 0;
		step->pair = step->stop >= 0 && step->slot < 0 && attrs[step->stop].len == -1 && a < end &&
			a < columns->attrs[k] && attrs[a].len == -1;
		a += step->pair;
		for (int i = 0; i < 8; i++)
			step->run[i] = decode_fixed_width(&attrs[step->first], step->nrun, ~UINT64CONST(0), i);
	}
	/* Mostly there are far fewer steps than attributes, and a query may have many stages. */
	columns->steps = palloc(sizeof(HeapStep) * columns->nsteps);
	memcpy(columns->steps, steps, sizeof(HeapStep) * columns->nsteps);
	pfree(steps);
}

/*
 * Returns the lengths of n attributes from `first` on, indexed by the bits of those attributes and
 * the next one that are not NULL. Computed once for all stages.
 */
static const HeapRun *
chunk_runs(HeapDecoder *decoder, int first, int n)
{
	HeapRun *runs = decoder->chunks[first][n];

	if (likely(runs != NULL))
		return runs;
	runs = decoder->chunks[first][n] = MemoryContextAlloc(decoder->cxt, sizeof(HeapRun) << (n + 1));
	for (int present = 0; present < 1 << (n + 1); present++)
		for (int i = 0; i < 8; i++)
			runs[present][i] = decode_fixed_width(&decoder->attrs[first], n, present, i) |
				(present >> n != 0 ? ~HEAP_RUN_BYTES : 0);
	return runs;
}

/* Returns whether a vector is a column of the table. */
static bool
is_column(const HeapDecoder *decoder, const Vec *vec)
{
	return vec->attno > 0 && vec->attno <= decoder->desc->natts;
}

void
heap_columns_init(HeapDecoder *decoder, HeapColumns *columns, ExprSet *set, int stage)
{
	int n = 0;

	for (Vec *vec = set->stages[stage].vecs; vec; vec = vec->next_of_stage)
		n += is_column(decoder, vec);
	columns->vecs = palloc(sizeof(Vec *) * (n + 1));
	columns->slot = palloc(sizeof(int) * (n + 1));
	columns->attrs = palloc(sizeof(int16) * (n + 1));
	for (Vec *vec = set->stages[stage].vecs; vec; vec = vec->next_of_stage)
	{
		if (!is_column(decoder, vec))
			continue;
		columns->vecs[columns->nvecs] = vec;
		columns->attrs[columns->nvecs++] = vec->attno - 1;
	}
	qsort(columns->attrs, n, sizeof(int16), compare_int16);
	for (int i = 0; i < n; i++)
		if (i == 0 || columns->attrs[i] != columns->attrs[i - 1])
			columns->attrs[columns->nattrs++] = columns->attrs[i];
	for (int i = 0; i < n; i++)
	{
		const int16 attr = columns->vecs[i]->attno - 1;

		columns->slot[i] = (int16 *) bsearch(&attr, columns->attrs, columns->nattrs, sizeof(int16),
											 compare_int16) -
			columns->attrs;
	}
	columns->located = palloc(sizeof(uint8 *) * EXPR_ROWS * (columns->nattrs + 1));
	columns->complete = palloc(sizeof(bool) * (columns->nattrs + 1));
	make_steps(decoder, columns);
	if (columns->nattrs > 0)
		decoder->border = columns->attrs[columns->nattrs - 1] + 1;
	columns->fetches = BLCKSZ / HEAP_FETCH_BYTES / (columns->nsteps + 1) + 1;
}

/*
 * Sets present[] to one word of each row's null bitmap, where a set bit means not NULL, and
 * present_in_all. Does nothing if that word was read last.
 */
static void
read_present(HeapDecoder *decoder, const HeapPage *page, const HeapRows *rows, int word)
{
	uint64 in_all = ~UINT64CONST(0);

	if (decoder->word == word)
		return;
	for (int i = 0; i < rows->n; i++)
	{
		HeapTupleHeader tuple = heap_page_tuple(page, rows->tuple[i]);

		decoder->present[i] =
			decode_present((tuple->t_infomask & HEAP_HASNULL) ? tuple->t_bits : NULL,
						   HeapTupleHeaderGetNatts(tuple), word);
		in_all &= decoder->present[i];
	}
	decoder->present_in_all = in_all;
	decoder->word = word;
}

/*
 * Returns the first attribute, up to `last`, that some row lacks or has NULL; last + 1 if there is
 * none.
 */
static int
find_first_null(HeapDecoder *decoder, const HeapPage *page, const HeapRows *rows, int last)
{
	if (!page->has_nulls && page->min_natts > last)
		return last + 1;
	for (int word = 0; word <= last / WORD_ATTRS; word++)
	{
		read_present(decoder, page, rows, word);
		if (~decoder->present_in_all != 0)
			return Min(word * WORD_ATTRS + pg_rightmost_one_pos64(~decoder->present_in_all),
					   last + 1);
	}
	return last + 1;
}

/* How to skip the fixed-width attributes of a step, or the last of them. */
typedef struct StepOver
{
	const HeapRun *runs; /* [bits of attributes that are not NULL] */
	int shift;           /* position of these bits in HeapDecoder.present */
	uint32 mask;         /* bits, including that of the next attribute */
} StepOver;

/*
 * Position of a row after skipped attributes. mask: all bits set if the row has a value there,
 * else 0.
 */
typedef struct Behind
{
	uint32 at;
	uint32 mask;
} Behind;

/*
 * Skips the fixed-width attributes of a step, some of which are NULL, except the last HEAP_CHUNK
 * or fewer; returns how to skip those.
 */
static StepOver
step_chunks(HeapDecoder *decoder, const HeapStep *step, int n)
{
	StepOver over;
	int first = step->first;
	int left = step->nrun;

	over.shift = first % WORD_ATTRS;
	over.mask = (1 << HEAP_CHUNK) - 1;
	for (; left > HEAP_CHUNK; left -= HEAP_CHUNK)
	{
		over.runs = chunk_runs(decoder, first, HEAP_CHUNK);
		for (int i = 0; i < n; i++)
			decoder->position[i] +=
				over.runs[decoder->present[i] >> over.shift & over.mask][decoder->position[i] & 7];
		first += HEAP_CHUNK;
		over.shift += HEAP_CHUNK;
	}
	over.runs = chunk_runs(decoder, first, left);
	over.mask = (2 << left) - 1;
	return over;
}

/*
 * Returns the position of row i after the fixed-width attributes. complete: no row has NULL there,
 * and over->runs[0] is the length for all rows.
 */
static pg_attribute_always_inline Behind
behind_run(const HeapDecoder *decoder, const StepOver *over, bool complete, int i)
{
	uint32 position = decoder->position[i];
	int32 run;

	if (complete)
		return (Behind){position + over->runs[0][position & 7], ~(uint32) 0};
	run = over->runs[decoder->present[i] >> over->shift & over->mask][position & 7];
	return (Behind){position + (run & HEAP_RUN_BYTES), (uint32) (run >> 15)};
}

/* Takes a step that has attributes of fixed width only. */
static pg_attribute_always_inline void
step_run(HeapDecoder *decoder, const StepOver *over, bool complete, int n)
{
	for (int i = 0; i < n; i++)
		decoder->position[i] = behind_run(decoder, over, complete, i).at;
}

/*
 * Takes a step that ends with a column of fixed width. Sets located[i] to the value of row i;
 * NULL if it is NULL.
 */
static pg_attribute_always_inline void
step_fixed(HeapDecoder *decoder, const DecodeAttr *attr, const StepOver *over, bool complete,
		   const uint8 *page, int n, const uint8 **located)
{
	uint32 len = attr->len;
	uint32 pad = attr->align - 1;

	for (int i = 0; i < n; i++)
	{
		Behind behind = behind_run(decoder, over, complete, i);
		uint32 mask = behind.mask;
		uint32 at = behind.at;

		at = (at + (pad & mask)) & ~(pad & mask);
		located[i] = mask ? page + at : NULL;
		decoder->position[i] = at + (len & mask);
	}
}

/* Returns the end of the varlena at behind->at; moves behind->at over padding if there is any. */
static pg_attribute_always_inline uint32
varlena_end(const uint8 *page, const DecodeAttr *attr, Behind *behind)
{
	/* A NULL may be at the end of the page; it is read as an empty short varlena. */
	uint32 header = page[behind->at & behind->mask] | (~behind->mask & 3);

	if (unlikely(!(header & 1) || header == 1))
		return decode_varlena(page, attr, &behind->at);
	return behind->at + ((header >> 1) & behind->mask);
}

/*
 * Takes a step that ends with a varlena. located: as in step_fixed(); NULL if the varlena is
 * not a wanted column.
 */
static pg_attribute_always_inline void
step_varlena(HeapDecoder *decoder, const DecodeAttr *attr, const StepOver *over, bool complete,
			 const uint8 *page, int n, const uint8 **located)
{
	for (int i = 0; i < n; i++)
	{
		Behind behind = behind_run(decoder, over, complete, i);

		decoder->position[i] = varlena_end(page, attr, &behind);
		if (located)
			located[i] = behind.mask ? page + behind.at : NULL;
	}
}

/* Takes a step that ends with two varlenas. shift: bit of the second one in present[]. */
static pg_attribute_always_inline void
step_pair(HeapDecoder *decoder, const DecodeAttr *attr, const StepOver *over, bool complete,
		  int shift, const uint8 *page, int n)
{
	for (int i = 0; i < n; i++)
	{
		Behind behind = behind_run(decoder, over, complete, i);

		behind.at = varlena_end(page, attr, &behind);
		if (!complete)
			behind.mask = -(uint32) (decoder->present[i] >> shift & 1);
		decoder->position[i] = varlena_end(page, attr + 1, &behind);
	}
}

/* Takes a step that ends with a cstring. located: as in step_varlena(). */
static void
step_cstring(HeapDecoder *decoder, const DecodeAttr *attr, const StepOver *over, bool complete,
			 const uint8 *page, int n, const uint8 **located)
{
	for (int i = 0; i < n; i++)
	{
		Behind behind = behind_run(decoder, over, complete, i);
		uint32 mask = behind.mask;
		uint32 at = behind.at;

		decoder->position[i] = mask ? decode_cstring(page, attr, &at) : at;
		if (located)
			located[i] = mask ? page + at : NULL;
	}
}

/* Uses the attribute's missing value for tuples that are older than the attribute. */
static void
fill_missing(const HeapPage *page, const HeapRows *rows, int attr, const uint8 *missing,
			 const uint8 **located)
{
	for (int i = 0; i < rows->n; i++)
		if (HeapTupleHeaderGetNatts(heap_page_tuple(page, rows->tuple[i])) <= attr)
			located[i] = missing;
}

/* Takes a step with all rows; complete: no row has a NULL in it. */
static pg_attribute_always_inline void
take_step(HeapDecoder *decoder, const HeapStep *step, const StepOver *over, bool complete,
		  const uint8 *page, int n, const uint8 **located)
{
	const DecodeAttr *attr = &decoder->attrs[Max(step->stop, 0)];

	if (step->stop < 0)
		step_run(decoder, over, complete, n);
	else if (attr->len >= 0)
		step_fixed(decoder, attr, over, complete, page, n, located);
	else if (attr->len == -2)
		step_cstring(decoder, attr, over, complete, page, n, located);
	else if (located)
		step_varlena(decoder, attr, over, complete, page, n, located);
	else if (step->pair)
		step_pair(decoder, attr, over, complete, (step->stop + 1) % WORD_ATTRS, page, n);
	else
		step_varlena(decoder, attr, over, complete, page, n, NULL);
}

/*
 * Ends a step to a wanted column: sets complete[], and uses the missing value for older tuples.
 */
static void
finish_column(const HeapDecoder *decoder, HeapColumns *columns, const HeapStep *step,
			  const HeapPage *page, const HeapRows *rows, bool complete)
{
	const uint8 *missing = decoder->attrs[step->stop].missing;

	columns->complete[step->slot] = complete;
	if (!complete && missing && page->min_natts <= step->stop)
		fill_missing(page, rows, step->stop, missing,
					 columns->located + (size_t) step->slot * EXPR_ROWS);
}

/* Returns whether all rows have a value in all attributes of a step. */
static inline bool
has_no_nulls(HeapDecoder *decoder, const HeapStep *step, const HeapPage *page, const HeapRows *rows,
			 int first_null)
{
	int n = step->nrun + (step->stop >= 0) + step->pair;

	if (step->first + n <= first_null)
		return true;
	read_present(decoder, page, rows, step->first / WORD_ATTRS);
	return (~decoder->present_in_all >> step->first % WORD_ATTRS &
			~UINT64CONST(0) >> (WORD_ATTRS - n)) == 0;
}

/*
 * Returns the step to begin with: the last one at the same offset in all rows, or the one that an
 * earlier stage has reached if no wanted column lies before it. Sets the positions accordingly.
 */
static int
begin_walk(HeapDecoder *decoder, const HeapColumns *columns, const HeapRows *rows, int first_null)
{
	const HeapStep *steps = columns->steps;
	int s = columns->nsteps - 1;
	int r;

	while (steps[s].first > first_null || decoder->attrs[steps[s].first].start < 0)
		s--;
	for (r = s; r < columns->nsteps && steps[r].first < decoder->reached && steps[r].slot < 0; r++)
		;
	if (decoder->reached > 0 && r < columns->nsteps && steps[r].first == decoder->reached)
		return r;
	for (int i = 0; i < rows->n; i++)
		decoder->position[i] = rows->data[i] + decoder->attrs[steps[s].first].start;
	return s;
}

/*
 * Sets located[] for the columns that do not have the same offset in all rows: those from
 * first_null on, and those after an attribute of variable width.
 */
static void
locate_columns(HeapDecoder *decoder, HeapColumns *columns, HeapScan *scan, const HeapPage *page,
			   const HeapRows *rows, int first_null)
{
	for (int s = begin_walk(decoder, columns, rows, first_null); s < columns->nsteps; s++)
	{
		const HeapStep *step = &columns->steps[s];
		const uint8 **located =
			step->slot < 0 ? NULL : columns->located + (size_t) step->slot * EXPR_ROWS;
		bool complete = has_no_nulls(decoder, step, page, rows, first_null);

		if (complete)
		{
			StepOver over = {.runs = (const HeapRun *) &step->run};

			take_step(decoder, step, &over, true, page->start, rows->n, located);
		}
		else
		{
			StepOver over = step_chunks(decoder, step, rows->n);

			take_step(decoder, step, &over, false, page->start, rows->n, located);
		}
		if (located)
			finish_column(decoder, columns, step, page, rows, complete);
		heap_fetch_some(scan, columns->fetches);
	}
	decoder->reached = columns->attrs[columns->nattrs - 1] + 1;
}

void
heap_rows_keep(HeapDecoder *decoder, HeapRows *rows, bool cached, const uint16 *sel, int n)
{
	for (int i = 0; i < n; i++)
		rows->tuple[i] = rows->tuple[sel[i]];
	if (!cached)
		for (int i = 0; i < n; i++)
			rows->data[i] = rows->data[sel[i]];
	if (decoder->reached > 0)
		for (int i = 0; i < n; i++)
			decoder->position[i] = decoder->position[sel[i]];
	rows->n = n;
}

void
heap_rows_expand(HeapDecoder *decoder, HeapRows *rows, const uint16 *sel, int n)
{
	for (int i = n - 1; i >= 0; i--)
	{
		rows->tuple[i] = rows->tuple[sel[i]];
		rows->data[i] = rows->data[sel[i]];
	}
	if (decoder->reached > 0)
		for (int i = n - 1; i >= 0; i--)
			decoder->position[i] = decoder->position[sel[i]];
	rows->n = n;
	rows->repeated = true;
}

/* ---- values ------------------------------------------------------------------ */

/*
 * Fills values[] of each row from located[i], where NULL stands for NULL, or, if located is NULL,
 * from `start` + the offset of the tuple's data.
 */
#define FILL(type, fetch) \
	do \
	{ \
		static const uint64 zero[1]; \
		type *restrict values = vec->values; \
		if (located == NULL) \
			for (int i = 0; i < n; i++) \
			{ \
				const uint8 *ptr = start + rows->data[i]; \
				values[i] = (fetch); \
			} \
		else \
			for (int i = 0; i < n; i++) \
			{ \
				const uint8 *ptr = located[i] ? located[i] : (const uint8 *) zero; \
				values[i] = (fetch); \
			} \
	} while (0)

/* Fills a vector of decimals. */
static void
fill_decimals(Vec *vec, const HeapRows *rows, const uint8 *start, const uint8 **located)
{
	for (int i = 0; i < rows->n; i++)
		heap_fill_decimal(vec, i, rows->n, located ? located[i] : start + rows->data[i]);
}

/* Fills a vector with pointers to the values on the page. */
static void
fill_references(Vec *vec, const HeapRows *rows, const uint8 *start, const uint8 **located)
{
	Datum *values = vec->values;

	for (int i = 0; i < rows->n; i++)
		values[i] = PointerGetDatum(located ? located[i] : start + rows->data[i]);
}

/* Fills a vector from located[i], or, if located is NULL, from start + rows->data[i]. */
static void
fill_vec(Vec *vec, Form_pg_attribute att, const HeapRows *rows, const uint8 *start,
		 const uint8 **located, bool complete)
{
	int n = rows->n;

	vec->all_values = true;
	if (!complete)
		for (int i = 0; i < n; i++)
		{
			vec->state[i] = located[i] ? VEC_VALUE : VEC_NULL;
			vec->all_values &= located[i] != NULL;
		}
	switch (vec->type)
	{
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		FILL(bits_t, *(const bits_t *) ptr); \
		break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			fill_decimals(vec, rows, start, located);
			break;
		case COLUMN_DATUM:
			if (att->attbyval)
				FILL(Datum, fetch_att(ptr, true, att->attlen));
			else
				fill_references(vec, rows, start, located);
			break;
	}
}

void
heap_columns_fill(HeapDecoder *decoder, HeapColumns *columns, HeapScan *scan, const HeapPage *page,
				  const HeapRows *rows)
{
	int last;
	int first_null;

	if (columns->nvecs == 0)
		return;
	last = columns->attrs[columns->nattrs - 1];
	decoder->word = -1;
	first_null = find_first_null(decoder, page, rows, last);
	if (first_null <= last || decoder->attrs[last].offset < 0)
		locate_columns(decoder, columns, scan, page, rows, first_null);
	for (int v = 0; v < columns->nvecs; v++)
	{
		Vec *vec = columns->vecs[v];
		int slot = columns->slot[v];
		int attr = vec->attno - 1;
		bool fixed = decoder->attrs[attr].offset >= 0 && attr < first_null;

		heap_fetch_some(scan, HEAP_COLUMN_FETCHES);
		fill_vec(vec, TupleDescAttr(decoder->desc, attr), rows,
				 page->start + decoder->attrs[attr].offset,
				 fixed ? NULL : columns->located + (size_t) slot * EXPR_ROWS,
				 fixed || columns->complete[slot]);
	}
	/* Tuples of the next page are about as long up to the last column. */
	heap_fetch_tuples(scan,
					  (decoder->reached > last ? decoder->position[0] :
												 rows->data[0] + decoder->attrs[last].offset) -
						  page->tuples[rows->tuple[0]] + 1);
}

void
heap_fill_datums(Vec *vec, int n, const Datum *values, const bool *nulls)
{
	vec->all_values = nulls == NULL || memchr(nulls, true, n) == NULL;
	for (int i = 0; !vec->all_values && i < n; i++)
		vec->state[i] = nulls[i] ? VEC_NULL : VEC_VALUE;
	switch (vec->type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		for (int i = 0; i < n; i++) \
			((value_t *) vec->values)[i] = \
				nulls && nulls[i] ? 0 : (value_t) from_datum(values[i]); \
		break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			for (int i = 0; i < n; i++)
				heap_fill_decimal(vec, i, n,
								  nulls && nulls[i] ? NULL :
													  (const uint8 *) DatumGetPointer(values[i]));
			break;
		case COLUMN_DATUM:
			for (int i = 0; i < n; i++)
				((Datum *) vec->values)[i] = nulls && nulls[i] ? 0 : values[i];
			break;
	}
}

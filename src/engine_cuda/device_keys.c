/*
 * device_keys.c
 *	  Keys of rows that are cached on the devices, counted and distinct values, which are sent as
 *	  dictionary codes.
 *
 * The values of a column are looked up in the query's own dictionary, once each, or the codes of
 * the column's dictionary are the key (column_keys.c).
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "analysis/analysis.h"
#include "engine_cuda/device_rows.h"
#include "engine_cuda/dictionaries.h"

/* Returns the operand for a key that is looked up as codes of the query's own dictionary. */
static uint16
lookup_key(Resident *r, int c, const ExprRoot *root)
{
	uint16 operand =
		root ? expr_program_lookup(r->program, root->expr, COLUMN_DATUM, 0, c, false) : VECTOR_NONE;

	if (operand == VECTOR_NONE && root)
		operand = resident_encoded_choice(r, c, root);
	return operand != VECTOR_NONE ? operand : expr_program_reject(r->program, KEY_OF_SEVERAL);
}

uint16
resident_key(Resident *r, int c, const ExprRoot *root)
{
	const CudaColumn *col = &r->cuda->query->cols[c];
	const KeySpec *key = col->equality;

	/*
	 * all values of the dictionary are hashed and compared, also those of rows that the user must
	 * not see
	 */
	if (!expr_function_is_harmless(key->eqfunc) || !expr_function_is_harmless(key->hashfunc) ||
		!expr_type_is_plain(r->cuda->spec->cols[col->col].typid))
		return expr_program_reject(
			r->program, "comparing keys might reveal values that are hidden from the query");
	/* Equal values have the same bytes, and different ones have not.  Passes might find different
	 * dictionaries. */
	if (root && !key->varies && col->travel != TRAVEL_NUMBERS && r->npasses == 1)
	{
		r->codes[c] = expr_program_codes(r->program, root->expr, &r->coded[c]);
		if (r->codes[c] == VECTOR_NONE)
			r->codes[c] = resident_choice(r, c, root);
	}
	return r->codes[c] != VECTOR_NONE ? r->codes[c] : lookup_key(r, c, root);
}

uint16
resident_ranks(Resident *r, int c, const ExprRoot *root)
{
	uint16 operand = VECTOR_NONE;

	/* rows of another table have other ranks */
	if (!r->rows->alone || r->rows->follows || r->cuda->rows_given > 0 || r->npasses > 1)
		return expr_program_reject(
			r->program,
			"the least or greatest text is found among rows of one table, each "
			"once");
	if (root)
		operand = expr_program_ranks(r->program, root->expr, r->cuda->query->cols[c].collation,
									 &r->coded[c]);
	return operand != VECTOR_NONE ?
		operand :
		expr_program_reject(r->program,
							"the least or greatest text is found in a column, not an expression");
}

bool
resident_has_all_rows(const Resident *r)
{
	const CudaEngine *cuda = r->cuda;

	return r->rows->alone && r->pass == r->npasses - 1 && cuda->rows_given == 0 &&
		cuda->cpu_fallback == NULL && !cuda->joined && feed_resident_complete(r->rows);
}

/*
 * Returns whether the rest of the rows may come as batches, while these keys are codes of their
 * columns. The CPU fallback gets all batches then. So no key may look different where it is equal
 * (1.0 and 1.00), because the fallback does not know whether its rows come before those of the GPU.
 */
static bool
may_have_batches(const Resident *r)
{
	const AggSpec *spec = r->cuda->spec;

	for (int k = 0; k < spec->nkeys; k++)
		if (spec->keys[k].varies)
			return false;
	return r->rows->alone && !r->rows->follows && r->cuda->rows_given == 0 && !spec->ordered &&
		!spec_has_sets(spec) && !spec_has_tallies(spec);
}

bool
resident_choose_codes(Resident *r)
{
	CudaEngine *cuda = r->cuda;
	bool all = resident_has_all_rows(r);
	bool undecided = !all && may_have_batches(r);

	r->by_column = all;
	for (int c = 0; c < cuda->query->ncols; c++)
	{
		const CudaDictionary *dict;
		int s = r->coded[c];

		if (r->codes[c] == VECTOR_NONE || !undecided)
			continue;
		dict = cuda_dictionary(cuda->client, r->wire.table, &r->wire.stored[s],
							   resident_attribute(r, s), r->outdated, false);
		if (dict == NULL)
			return false;
		r->by_column |= dict->known.nentries > RESIDENT_LEAST_VALUES;
		cuda_dictionary_release(dict);
	}
	for (int c = 0; c < cuda->query->ncols; c++)
		if (r->codes[c] != VECTOR_NONE)
			r->inputs[c] = r->by_column ?
				r->codes[c] :
				lookup_key(r, c, r->rows->outputs[cuda->query->cols[c].col]);
	return true;
}

void
resident_use_codes(Resident *r)
{
	for (int c = 0; c < r->cuda->query->ncols; c++)
	{
		int64 null = r->chosen[c] ? COLUMN_NULL : r->wire.known[r->coded[c]].nentries;

		if (r->by_column && r->codes[c] != VECTOR_NONE &&
			(r->chosen[c] || r->bounds[r->coded[c]].nulls) &&
			r->cuda->query->cols[c].travel == TRAVEL_CODES)
			r->inputs[c] = expr_program_emit(r->program, VECTOR_COALESCE, 0, r->codes[c],
											 expr_program_constant(r->program, null, false), 0);
	}
}

/* Copies the order of the texts that an aggregate compares, for the groups. */
static void
note_order(const Resident *r, CudaRanked *ranked)
{
	CudaColumn *col = &r->cuda->query->cols[ranked->col];
	int t = 0;

	while (r->program->lookups[t].stored != r->coded[ranked->col] ||
		   r->program->lookups[t].ranked != col->collation)
		t++;
	col->stored = r->coded[ranked->col];
	col->nvalues = r->program->lookups[t].n;
	ranked->order = MemoryContextAllocHuge(GetMemoryChunkContext(r->cuda->query),
										   (col->nvalues + 1) * sizeof(uint32));
	memcpy(ranked->order, r->order[t], col->nvalues * sizeof(uint32));
}

void
resident_note_codes(const Resident *r)
{
	for (int c = 0; c < r->cuda->query->ncols; c++)
		if (r->by_column && r->codes[c] != VECTOR_NONE)
		{
			r->cuda->query->cols[c].stored = r->coded[c];
			r->cuda->query->cols[c].nvalues = r->wire.known[r->coded[c]].nentries;
			r->cuda->query->cols[c].chosen = r->chosen[c];
		}
	for (int f = 0; f < r->cuda->spec->nfallbacks; f++)
		if (r->cuda->query->ranked[f].slot >= 0)
			note_order(r, &r->cuda->query->ranked[f]);
}

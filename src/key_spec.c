/*
 * key_spec.c
 *	  Makes keys of a spec; see key_spec.h.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "key_spec.h"

bool
key_hash_functions(Oid eqop, Oid type, Oid *eqfunc, Oid *hashfunc)
{
	RegProcedure left, right;

	if (!OidIsValid(eqop) || !op_hashjoinable(eqop, type) ||
		!get_op_hash_functions(eqop, &left, &right))
		return false;
	*eqfunc = get_opcode(eqop);
	*hashfunc = left;
	return OidIsValid(*eqfunc);
}

bool
key_compares_bits(Oid eqfunc)
{
	switch (eqfunc)
	{
		case F_BOOLEQ:
		case F_CHAREQ:
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_OIDEQ:
		case F_DATE_EQ:
		case F_TIME_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
		case F_CASH_EQ:
		case F_ENUM_EQ:
			return true;
		default:
			return false;
	}
}

/*
 * The support function "equalimage" of the type's btree operator class says that equal values look
 * the same; nbtree's deduplication relies on it, too.
 */
bool
key_varies(Oid type, Oid eqfunc, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	Oid eqop, proc;

	/* the operator class of bpchar assumes that all values are padded to one length */
	if (eqfunc == F_BPCHAREQ || !OidIsValid(entry->btree_opf))
		return true;
	/* "equalimage" raises an error without a collation */
	if (!OidIsValid(collation) && type_is_collatable(type))
		return true;
	eqop = get_opfamily_member(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
							   BTEqualStrategyNumber);
	if (!OidIsValid(eqop) || get_opcode(eqop) != eqfunc)
		return true;
	proc = get_opfamily_proc(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
							 BTEQUALIMAGE_PROC);
	return !OidIsValid(proc) ||
		!DatumGetBool(
			OidFunctionCall1Coll(proc, collation, ObjectIdGetDatum(entry->btree_opintype)));
}

void
key_spec_init(AggSpec *spec, KeySpec *key, Node *expr, int input, Oid eqfunc, Oid hashfunc,
			  Oid collation)
{
	ColumnSpec col = {0};

	col.input = input;
	col.typid = exprType(expr);
	col.typmod = exprTypmod(expr);
	col.collation = exprCollation(expr);
	get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
	col.type = spec_column_type(col.typid, col.typmod, &col.scale);
	key->eqfunc = eqfunc;
	key->hashfunc = hashfunc;
	key->collation = collation;
	if ((col.type == COLUMN_F32 && key->eqfunc == F_FLOAT4EQ) ||
		(col.type == COLUMN_F64 && key->eqfunc == F_FLOAT8EQ))
		key->kind = KEY_FLOAT;
	else if (column_is_integer(col.type) && key_compares_bits(key->eqfunc))
		key->kind = KEY_RAW;
	else
	{
		key->kind = KEY_DATUM;
		col.type = COLUMN_DATUM;
		col.scale = 0;
	}
	key->varies = key->kind != KEY_RAW && key_varies(col.typid, key->eqfunc, key->collation);
	key->col = spec_add_column(spec, &col);
}

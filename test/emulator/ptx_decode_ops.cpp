/*
 * ptx_decode_ops.cpp
 *	  Instructions: which handler, and where its operands are.
 */
#include <string.h>

#include <algorithm>

#include "ptx_decode.h"

Type
Decoder::type_at_end(size_t back) const
{
	if (s->parts.size() <= back)
		unsupported("instruction without type");

	Type		type = type_named(s->parts[s->parts.size() - back]);

	if (type == TYPE_NONE)
		unsupported("unsupported type");
	return type;
}

/* Those of the wanted parts that are there, with dots before them. */
std::string
Decoder::modifiers(std::initializer_list<const char *> wanted) const
{
	std::string found;

	for (size_t k = 1; k < s->parts.size(); k++)
		for (const char *one : wanted)
			if (s->parts[k] == one)
				found += "." + s->parts[k];
	return found;
}

/* No parts but types and these. */
void
Decoder::only(std::initializer_list<const char *> allowed) const
{
	for (size_t k = 1; k < s->parts.size(); k++)
		if (type_named(s->parts[k]) == TYPE_NONE &&
			std::find(allowed.begin(), allowed.end(), s->parts[k]) == allowed.end())
			unsupported("unsupported modifier");
}

/* The first operand is the result. */
void
Decoder::plain(Handler run, std::initializer_list<Operand> operands)
{
	Insn		insn = fresh(run);
	Operand    *places[] = {&insn.d, &insn.a, &insn.b, &insn.c, &insn.e};
	int			n = 0;

	for (Operand o : operands)
		*places[n++] = o;
	emit(insn);
}

static Rounding
rounding_of(const Statement *s)
{
	return s->has("rz") ? ROUND_ZERO : s->has("rm") ? ROUND_DOWN : s->has("rp") ? ROUND_UP : ROUND_NEAREST;
}

void
Decoder::float_arithmetic(Type type)
{
	Handler		run = float_handler(s->parts[0], type, rounding_of(s), s->has("NaN"));
	unsigned	bytes = bytes_of(type);
	bool		flushes = s->has("ftz") && type == F32;
	Insn		insn = fresh(run);
	Operand    *places[] = {&insn.d, &insn.a, &insn.b, &insn.c};

	only({"rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN"});
	if (s->terms.size() < 2 || s->terms.size() > 4)
		unsupported("count of operands");
	insn.d = result(s->terms[0], bytes);
	for (size_t k = 1; k < s->terms.size(); k++)
	{
		*places[k] = value(s->terms[k], type);
		if (flushes)
		{
			Operand		flushed = temporary(bytes);

			plain(flush_handler(), {flushed, *places[k]});
			*places[k] = flushed;
		}
	}
	emit(insn);
	if (flushes)
		plain(flush_handler(), {insn.d, insn.d});
	if (s->has("sat"))
		plain(saturate_handler(type), {insn.d, insn.d});
}

void
Decoder::integer_arithmetic(Type type)
{
	const std::string &op = s->parts[0];
	std::vector<Term> &terms = const_cast<Statement *>(s)->terms;
	std::string name = op + modifiers({"lo", "hi", "cc", "shiftamt", "clamp", "wrap", "l", "r"});
	unsigned	bytes = bytes_of(type);

	only({"lo", "hi", "wide", "cc", "shiftamt", "clamp", "wrap", "l", "r"});
	if (terms.size() < 2)
		unsupported("count of operands");
	if (s->has("wide"))
	{
		Operand		d = result(terms[0], bytes * 2),
					a = value(terms[1], type),
					b = value(terms[2], type);

		if (terms.size() == 4)
			plain(wide_handler("mad.wide", type), {d, a, b, value_bytes(terms[3], bytes * 2, false)});
		else
			plain(wide_handler("mul.wide", type), {d, a, b});
	}
	else if (op == "popc" || op == "clz" || op == "bfind")
		plain(integer_handler(name, type), {result(terms[0], 4), value(terms[1], type)});
	else if (op == "shl" || op == "shr")
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type), value(terms[2], U32)});
	else if (op == "bfe")
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type), value(terms[2], U32),
											value(terms[3], U32)});
	else if (op == "bfi")
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type), value(terms[2], type),
											value(terms[3], U32), value(terms[4], U32)});
	else if (op == "lop3")
	{
		Insn		insn = fresh(integer_handler(name, type));

		insn.d = result(terms[0], 4);
		insn.a = value(terms[1], type);
		insn.b = value(terms[2], type);
		insn.c = value(terms[3], type);
		insn.imm = terms[4].imm;
		emit(insn);
	}
	else if (op == "dp4a")
		plain(integer_handler("dp4a." + s->parts[1], type), {result(terms[0], 4), value(terms[1], U32),
															 value(terms[2], U32), value(terms[3], U32)});
	else if (terms.size() == 2)
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type)});
	else if (terms.size() == 3)
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type), value(terms[2], type)});
	else
		plain(integer_handler(name, type), {result(terms[0], bytes), value(terms[1], type), value(terms[2], type),
											value(terms[3], type)});
}

void
Decoder::move()
{
	Type		type = type_at_end();
	unsigned	bytes = bytes_of(type),
				number;
	const Term &to = s->terms[0],
			   &from = s->terms[1];

	only({});
	if (to.kind == TERM_VECTOR || from.kind == TERM_VECTOR)
	{
		bool		packs = from.kind == TERM_VECTOR;
		const std::vector<Term> &list = packs ? from.list : to.list;
		unsigned	n = (unsigned) list.size();
		Insn		insn = fresh(packs ? pack_handler(bytes, n) : unpack_handler(bytes, n));
		std::vector<Operand> parts;

		for (const Term &term : list)
			parts.push_back(value_bytes(term, bytes / n, false));
		set_list(&insn, parts);
		if (packs)
			insn.d = result(to, bytes);
		else
			insn.a = value(from, type);
		emit(insn);
		return;
	}
	if (type == PRED)
		return plain(predicate_handler("mov"), {predicate_of(to), predicate_of(from)});
	if (from.name.compare(0, 6, "%clock") == 0 || from.name == "%globaltimer")
		return plain(clock_handler(bytes), {result(to, bytes)});

	const Symbol *symbol = from.kind == TERM_NAME ? find(from.name, scope, &number) : NULL;

	if (symbol && (symbol->kind == SYMBOL_LOCAL || symbol->kind == SYMBOL_PARAM))
	{
		Insn		insn = fresh(symbol->kind == SYMBOL_LOCAL ? local_address_handler() : param_address_handler());

		insn.d = result(to, 8);
		insn.imm = (int64_t) symbol->offset + from.imm;
		return emit(insn);
	}
	if (symbol && symbol->kind == SYMBOL_ENTRY_PARAM)
		return plain(move_handler(8), {result(to, 8), constant(symbol->offset + (uint64_t) from.imm, 8)});
	plain(move_handler(bytes), {result(to, bytes), value(from, type)});
}

/* setp: a comparison, and what is done with its result. */
void
Decoder::compare()
{
	Type		type = type_at_end();
	const std::vector<Term> &terms = s->terms;
	std::string op = modifiers({"and", "or", "xor"});
	Insn		insn = fresh(compare_handler(s->parts[1], type));
	Term		d = terms[0],
				second;

	only({s->parts[1].c_str(), "and", "or", "xor", "ftz"});
	second.name = d.second;
	second.kind = d.second.empty() || d.second == "_" ? TERM_SINK : TERM_NAME;
	insn.d = predicate_of(d);
	insn.a = value(terms[1], type);
	insn.b = value(terms[2], type);
	if (s->has("ftz") && type == F32)
		for (Operand *o : {&insn.a, &insn.b})
		{
			Operand		flushed = temporary(4);

			plain(flush_handler(), {flushed, *o});
			*o = flushed;
		}
	if (op.empty() && second.kind == TERM_SINK)
		return emit(insn);

	Insn		combine = fresh(combine_predicates_handler(op.empty() ? op : op.substr(1)));

	/* not to change the operand before it is read */
	combine.d = predicate_of(d);
	combine.e = predicate_of(second);
	if (!op.empty())
	{
		Operand		kept = temporary(0);

		plain(predicate_handler("mov"), {kept, predicate_of(terms[3])});
		combine.c = kept;
		combine.flags = terms[3].negated ? INSN_NEGATED : 0;
	}
	emit(insn);
	emit(combine);
}

/* a where c is not negative, else b. */
void
Decoder::slct()
{
	Type		type = type_at_end(2),
				control = type_at_end();
	Insn		insn = fresh(compare_handler("ge", control)),
				choice = fresh(select_handler(bytes_of(type)));
	Term		zero;

	only({});
	zero.kind = TERM_INTEGER;
	insn.d = choice.c = temporary(0);
	insn.a = value(s->terms[3], control);
	insn.b = value(zero, control);
	choice.d = result(s->terms[0], bytes_of(type));
	choice.a = value(s->terms[1], type);
	choice.b = value(s->terms[2], type);
	emit(insn);
	emit(choice);
}

void
Decoder::convert()
{
	Type		to = type_at_end(2),
				from = type_at_end();
	std::string rounding = modifiers({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"});
	Insn		insn = fresh(convert_handler(to, from, rounding.empty() ? rounding : rounding.substr(1), s->has("sat")));
	unsigned	to_bytes = register_bytes(s->terms[0]),
				from_bytes = register_bytes(s->terms[1]);
	bool		flushes = s->has("ftz");

	only({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "sat", "ftz"});
	if (from_bytes == 0)
		from_bytes = std::max(2u, bytes_of(from));
	if (to_bytes < bytes_of(to) || from_bytes < bytes_of(from))
		unsupported("register that is too narrow");
	insn.imm = (int64_t) (to_bytes | from_bytes << 8);
	insn.d = result(s->terms[0], to_bytes);
	insn.a = value_bytes(s->terms[1], from_bytes, from == F32 || from == F64);
	if (flushes && from == F32)
	{
		Operand		flushed = temporary(4);

		plain(flush_handler(), {flushed, insn.a});
		insn.a = flushed;
	}
	emit(insn);
	if (flushes && to == F32)
		plain(flush_handler(), {insn.d, insn.d});
}

std::string
Decoder::space() const
{
	for (size_t k = 1; k < s->parts.size(); k++)
	{
		std::string part = s->parts[k].substr(0, s->parts[k].find(':'));

		if (s->parts[k] == "shared::cluster")
			return s->parts[k];
		if (part == "global" || part == "shared" || part == "local" || part == "param" || part == "const")
			return part;
	}
	return "";
}

/* Operand a, imm and how they are checked. */
void
Decoder::address(Insn *insn, const Term &term, const std::string &space)
{
	unsigned	number;
	const Term &base = term.list.at(0);
	const Symbol *symbol = base.kind == TERM_NAME ? find(base.name, scope, &number) : NULL;
	bool		narrow = false;

	insn->imm = term.imm;
	if (base.kind == TERM_INTEGER)
		insn->a = constant((uint64_t) base.imm, 8);
	else if (symbol && symbol->kind == SYMBOL_REGISTER)
	{
		narrow = symbol->bytes == 4;
		insn->a = value_bytes(base, symbol->bytes, false);
	}
	else if (symbol && symbol->kind == SYMBOL_ENTRY_PARAM)
	{
		insn->a = constant(symbol->offset, 8);
		insn->resolve = resolve_entry_param;
		return;
	}
	else if (symbol && symbol->kind == SYMBOL_PARAM)
	{
		insn->imm += (int64_t) symbol->offset;
		insn->resolve = resolve_param;
		return;
	}
	else if (symbol && symbol->kind == SYMBOL_LOCAL)
	{
		Insn		at = fresh(local_address_handler());

		insn->a = at.d = temporary(8);
		at.imm = (int64_t) symbol->offset;
		emit(at);
	}
	else if ((symbol = shared_variable(base.name)) != NULL)
	{
		insn->a = shared_address(*symbol, 0, 8);
		insn->resolve = space == "shared::cluster" ? resolve_cluster64 : resolve_shared64;
		return;
	}
	else
		insn->a = constant(variable_address(base.name), 8);
	if (narrow && space != "shared" && space != "shared::cluster")
		unsupported("address of 32 bits");
	insn->resolve = space == "shared" ? narrow ? resolve_shared32 : resolve_shared64 :
		space == "shared::cluster" ? narrow ? resolve_cluster32 : resolve_cluster64 :
		space == "global" || space == "const" ? resolve_global : space == "local" ? resolve_local : resolve_generic;
}

#define ACCESS_PARTS "volatile", "relaxed", "acquire", "release", "weak", "mmio", "cta", "cluster", "gpu", "sys", "global", \
	"shared", "shared::cta", "shared::cluster", "local", "param", "const", "param::entry", "param::func", "ca", "cg", "cs", "lu", \
	"cv", "wb", "wt", "nc", "v2", "v4", "v8", "L1::no_allocate", "L1::evict_last", "L1::evict_first", "L1::evict_normal", \
	"L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B"

void
Decoder::load()
{
	Type		type = type_at_end();
	const Term &to = s->terms[0];
	bool		vector = to.kind == TERM_VECTOR;
	unsigned	width = 0;
	Insn		insn;

	only({ACCESS_PARTS});
	if (s->terms.size() != 2)
		unsupported("cache policy");
	for (const Term &term : vector ? to.list : std::vector<Term>{to})
		width = std::max(width, register_bytes(term));
	insn = fresh(load_handler(type, width, vector));
	insn.bytes = (uint16_t) bytes_of(type);
	if (vector)
	{
		std::vector<Operand> list;

		for (const Term &term : to.list)
			list.push_back(result(term, width));
		set_list(&insn, list);
		insn.bytes = (uint16_t) (insn.bytes * list.size());
	}
	else
		insn.d = result(to, width);
	if (!modifiers({"volatile", "relaxed", "acquire", "mmio", "cg", "cv"}).empty())
		insn.flags |= INSN_POLLS;
	address(&insn, s->terms[1], space());
	emit(insn);
}

void
Decoder::store()
{
	Type		type = type_at_end();
	const Term &from = s->terms[1];
	bool		vector = from.kind == TERM_VECTOR;
	unsigned	width = 0;
	Insn		insn;

	only({ACCESS_PARTS});
	if (s->terms.size() != 2)
		unsupported("cache policy");
	for (const Term &term : vector ? from.list : std::vector<Term>{from})
		width = std::max(width, register_bytes(term));
	if (width == 0)
		width = std::max(2u, bytes_of(type));
	insn = fresh(store_handler(bytes_of(type), width, vector));
	insn.bytes = (uint16_t) bytes_of(type);
	if (vector)
	{
		std::vector<Operand> list;

		for (const Term &term : from.list)
			list.push_back(value_bytes(term, width, type == F32 || type == F64));
		set_list(&insn, list);
		insn.bytes = (uint16_t) (insn.bytes * list.size());
	}
	else
		insn.b = value_bytes(from, width, type == F32 || type == F64);
	if (space() != "local" && space() != "param")
		insn.flags |= INSN_STORES;
	address(&insn, s->terms[0], space());
	emit(insn);
}

void
Decoder::atomic(bool with_result)
{
	Type		type = type_at_end();
	unsigned	bytes = bytes_of(type);
	std::string op = modifiers({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
	Insn		insn = fresh(atomic_handler(op.empty() ? op : op.substr(1), type, with_result));
	size_t		n = 0;

	only({"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "global", "shared", "shared::cta",
		  "shared::cluster", "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
	if (with_result)
		insn.d = result(s->terms[n++], bytes);
	insn.bytes = (uint16_t) bytes;
	insn.flags = INSN_POLLS | INSN_STORES;
	address(&insn, s->terms.at(n), space());
	insn.b = value(s->terms.at(n + 1), type);
	insn.c = op == ".cas" ? value(s->terms.at(n + 2), type) : insn.b;
	emit(insn);
}

void
Decoder::async_copy()
{
	Insn		insn;

	if (s->has("bulk") || s->has("mbarrier") || s->has("reduce"))
		unsupported("unsupported instruction");
	if (s->has("commit_group"))
		return plain(async_commit_handler(), {});
	if (s->has("wait_group") || s->has("wait_all"))
	{
		insn = fresh(async_wait_handler());
		insn.imm = s->has("wait_all") ? -1 : s->terms.at(0).imm;
		return emit(insn);
	}

	Insn		source = fresh(control_handler("nop"));

	only({"async", "ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"});
	insn = fresh(async_copy_handler());
	insn.bytes = (uint16_t) s->terms.at(2).imm;
	address(&source, s->terms[1], "global");
	set_list(&insn, {Operand{(uint32_t) ((uint64_t) source.imm >> 32), (uint32_t) source.imm}});
	insn.count = s->terms.size() > 3;
	if (insn.count)
		insn.c = value(s->terms[3], U32);
	insn.b = source.a;
	address(&insn, s->terms[0], "shared");
	emit(insn);
}

void
Decoder::barrier()
{
	const std::vector<Term> &terms = s->terms;
	bool		aligned = s->parts[0] == "bar" || s->has("aligned");
	Insn		insn;
	size_t		n = 0;

	if (s->has("warp"))
	{
		insn = fresh(barrier_handler("warp"));
		insn.e = value(terms.at(0), U32);
		return emit_control(insn);
	}
	if (s->has("cluster"))
		return emit_control(fresh(barrier_handler(s->has("arrive") ? "cluster.arrive" : "cluster.wait")));
	only({"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or"});
	insn = fresh(barrier_handler(s->has("red") ? "red" : s->has("arrive") ? "arrive" : "sync"));
	if (s->has("red"))
	{
		bool		counts = s->has("popc");

		insn.d = counts ? result(terms.at(0), 4) : predicate_of(terms.at(0));
		insn.c = predicate_of(terms.back());
		insn.imm = counts ? BARRIER_COUNT : s->has("and") ? BARRIER_AND : BARRIER_OR;
		insn.flags = terms.back().negated ? INSN_NEGATED : 0;
		n = 1;
	}
	insn.a = value(terms.at(n), U32);
	insn.count = terms.size() - n - (s->has("red") ? 1 : 0) > 1;
	if (insn.count)
		insn.b = value(terms.at(n + 1), U32);
	insn.flags |= aligned ? INSN_ALIGNED : 0;
	emit_control(insn);
}

void
Decoder::call()
{
	size_t		n = 0;
	std::vector<Operand> list;
	const std::vector<Term> &terms = s->terms;
	const std::vector<Term> *results = NULL;
	Insn		insn = fresh(control_handler("call"));
	std::string name;

	if (terms.at(0).kind == TERM_LIST)
		results = &terms[n++].list;
	name = terms.at(n++).name;
	if (module->contents.functions.count(name) == 0)
		unsupported("call of a function that is not named");
	for (const std::vector<Term> *part : {n < terms.size() ? &terms[n].list : NULL, results})
		for (size_t k = 0; part && k < part->size(); k++)
		{
			unsigned	number;
			const Symbol *symbol = find((*part)[k].name, scope, &number);

			if (symbol == NULL || symbol->kind != SYMBOL_PARAM)
				unsupported("argument that is no parameter");
			list.push_back(Operand{0, (uint32_t) symbol->offset});
		}
	set_list(&insn, list);
	Function  *&callee = kernel->by_name[name];
	if (callee == NULL)
	{
		kernel->functions.emplace_back(new Function());
		callee = kernel->functions.back().get();
		callee->name = name;
	}
	insn.callee = callee;
	emit_control(insn);
}

bool
Decoder::control()
{
	const std::string &op = s->parts[0];

	if (op == "bra")
		emit_branch(s->terms.at(0).name, s->guard, s->guard_negated);
	else if (op == "brx")
	{
		unsigned	number;
		const Symbol *targets = find(s->terms.at(1).name, scope, &number);
		Insn		insn = fresh(control_handler("brx"));

		if (targets == NULL || targets->kind != SYMBOL_TARGETS)
			unsupported("targets of a branch that come behind it");
		insn.a = value(s->terms[0], U32);
		set_list(&insn, std::vector<Operand>(targets->targets.size()));
		emit_control(insn);
		for (size_t k = 0; k < targets->targets.size(); k++)
			fixups.push_back(Fixup{function->code.size() - (s->guard.empty() ? 1 : 2), (int) k, targets->targets[k], scope});
	}
	else if (op == "ret" || op == "exit" || op == "trap")
		emit_control(fresh(control_handler(op)));
	else if (op == "call")
		call();
	else if (op == "nanosleep")
		emit_control(fresh(control_handler(op)));
	else if (op == "fence" || op == "membar" || op == "griddepcontrol" || op == "prefetch" || op == "prefetchu" ||
			 op == "discard" || op == "applypriority" || op == "setmaxnreg" || op == "pmevent")
		return true;
	else
		return false;
	return true;
}

/* What the lanes of a warp, or threads of a block, do together. */
bool
Decoder::together()
{
	const std::string &op = s->parts[0];
	const std::vector<Term> &terms = s->terms;
	Insn		insn;

	if (op == "bar" || op == "barrier")
	{
		barrier();
		return true;
	}
	if (op == "activemask")
	{
		plain(control_handler(op), {result(terms.at(0), 4)});
		return true;
	}
	if (op != "shfl" && op != "vote" && op != "match" && op != "redux" && op != "elect")
		return false;

	Type		type = op == "elect" || op == "vote" ? U32 : type_at_end();
	bool		ballot = s->has("ballot");
	Term		second;

	insn = fresh(op == "shfl" ? shuffle_handler(s->parts.at(2)) :
				 op == "vote" ? vote_handler(modifiers({"all", "any", "uni", "ballot"}).substr(1)) :
				 op == "match" ? match_handler(s->has("all"), bytes_of(type)) :
				 op == "redux" ? redux_handler(s->parts.at(2), type) : control_handler("elect"));
	second.name = terms.at(0).second;
	second.kind = second.name.empty() || second.name == "_" ? TERM_SINK : TERM_NAME;
	insn.d = op == "vote" && !ballot ? predicate_of(terms[0]) : result(terms[0], 4);
	if (!second.name.empty())
		set_list(&insn, {predicate_of(second)});
	if (op == "vote")
	{
		insn.a = predicate_of(terms.at(1));
		insn.flags = terms[1].negated ? INSN_NEGATED : 0;
	}
	else if (op != "elect")
		insn.a = value(terms.at(1), type);
	if (op == "shfl")
	{
		insn.b = value(terms.at(2), U32);
		insn.c = value(terms.at(3), U32);
	}
	insn.e = value(terms.back(), U32);
	emit_control(insn);
	return true;
}

bool
Decoder::memory()
{
	const std::string &op = s->parts[0];

	if (op == "ld" || op == "ldu")
		load();
	else if (op == "st")
		store();
	else if (op == "atom" || op == "red")
		atomic(op == "atom");
	else if (op == "cp")
		async_copy();
	else if (op == "cvta")
	{
		Operand		d = result(s->terms.at(0), 8),
					a = value(s->terms.at(1), U64);

		only({"to", "global", "shared", "shared::cta", "local", "param", "const"});
		if (space() == "shared")
			plain(shared_base_handler(!s->has("to")), {d, a});
		else
			plain(move_handler(8), {d, a});
	}
	else if (op == "mapa")
	{
		unsigned	bytes = bytes_of(type_at_end());

		if (s->has("shared::cluster") != (bytes == 4))
			unsupported("unsupported instruction");
		plain(mapa_handler(bytes), {result(s->terms.at(0), bytes), value_bytes(s->terms.at(1), bytes, false),
									value(s->terms.at(2), U32)});
	}
	else
		return false;
	return true;
}

bool
Decoder::arithmetic()
{
	static const char *const names[] = {
		"add", "addc", "sub", "subc", "mul", "mad", "madc", "fma", "div", "rem", "min", "max", "neg", "abs", "sqrt", "rcp",
		"rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "copysign", "and", "or", "xor", "not", "cnot", "shl", "shr", "popc", "clz",
		"brev", "bfind", "bfe", "bfi", "bmsk", "shf", "prmt", "lop3", "dp4a", "sad",
	};
	const std::string &op = s->parts[0];
	Type		type;

	if (op == "mov")
		move();
	else if (op == "setp")
		compare();
	else if (op == "selp")
	{
		type = type_at_end();

		Insn		insn = fresh(select_handler(bytes_of(type)));

		insn.d = result(s->terms.at(0), bytes_of(type));
		insn.a = value(s->terms.at(1), type);
		insn.b = value(s->terms.at(2), type);
		insn.c = predicate_of(s->terms.at(3));
		insn.flags = s->terms[3].negated ? INSN_NEGATED : 0;
		emit(insn);
	}
	else if (op == "slct")
		slct();
	else if (op == "cvt")
		convert();
	else if (std::find_if(std::begin(names), std::end(names), [&](const char *n) { return op == n; }) != std::end(names))
	{
		type = type_at_end();
		if (type == PRED && s->terms.size() == 2)
			plain(predicate_handler(op), {predicate_of(s->terms[0]), predicate_of(s->terms[1])});
		else if (type == PRED)
			plain(predicate_handler(op), {predicate_of(s->terms[0]), predicate_of(s->terms.at(1)),
										  predicate_of(s->terms.at(2))});
		else if (type == F32 || type == F64)
			float_arithmetic(type);
		else
			integer_arithmetic(type);
	}
	else
		return false;
	return true;
}

void
Decoder::instruction()
{
	if (!arithmetic() && !memory() && !together() && !control())
		unsupported("unsupported instruction");
}

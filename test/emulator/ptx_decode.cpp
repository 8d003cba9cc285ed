/*
 * ptx_decode.cpp
 *	  Names, registers, operands and labels of a function; ptx_decode_ops.cpp has the instructions.
 */
#include "ptx_decode.h"

#include <stdlib.h>

#include <algorithm>

static size_t
aligned(size_t offset, size_t to)
{
	return (offset + to - 1) / to * to;
}

Type
type_named(const std::string &name)
{
	static const std::map<std::string, Type> types = {
		{"u8", U8}, {"u16", U16}, {"u32", U32}, {"u64", U64}, {"s8", S8}, {"s16", S16}, {"s32", S32}, {"s64", S64},
		{"b8", U8}, {"b16", U16}, {"b32", U32}, {"b64", U64}, {"b128", B128}, {"f32", F32}, {"f64", F64}, {"pred", PRED},
	};
	auto		found = types.find(name);

	return found == types.end() ? TYPE_NONE : found->second;
}

unsigned
bytes_of(Type type)
{
	switch (type)
	{
		case U8: case S8: return 1;
		case U16: case S16: return 2;
		case U32: case S32: case F32: return 4;
		case U64: case S64: case F64: return 8;
		case B128: return 16;
		default: return 0;
	}
}

Decoder::Decoder(EmuModule *module, EmuKernel *kernel, Function *function, const FunctionText *text)
	: module(module), kernel(kernel), function(function), text(text), s(NULL), scope(0)
{
	scopes.push_back(Scope{-1, {}});
}

void
Decoder::unsupported(const char *what) const
{
	throw ParseError{what, s ? s->at : text->at};
}

/* Parameters have their places: the kernel's in memory of the process, others in a part of the frame. */
void
Decoder::declare_parameters()
{
	for (int results = 0; results < 2; results++)
		for (const Declaration &d : results ? text->results : text->params)
		{
			Symbol		symbol = {};
			ParamSlot	slot;

			if (text->entry)
			{
				kernel->param_bytes = aligned(kernel->param_bytes, d.align);
				slot = {(uint32_t) kernel->param_bytes, (uint32_t) d.bytes};
				kernel->slots.push_back(slot);
				kernel->param_bytes += d.bytes;
				symbol.kind = SYMBOL_ENTRY_PARAM;
				symbol.offset = (uint64_t) kernel->params + slot.offset;
			}
			else
			{
				slot = {(uint32_t) aligned(function->param_bytes, 16), (uint32_t) d.bytes};
				function->param_bytes = slot.offset + d.bytes;
				(results ? function->results : function->params).push_back(slot);
				symbol.kind = SYMBOL_PARAM;
				symbol.offset = slot.offset;
			}
			scopes[0].symbols[d.name] = symbol;
		}
}

void
Decoder::declare(const Statement &statement)
{
	const std::string &what = statement.parts[0];

	if (what != "reg" && what != "param" && what != "local" && what != "shared")
		return;
	for (const Declaration &d : parse_declarations(statement.at, statement.end - 1))
	{
		Symbol		symbol = {};

		symbol.bytes = (unsigned) d.element;
		symbol.numbered = d.numbered;
		if (what == "reg")
		{
			unsigned	count = d.numbered ? d.numbered : 1;

			if (symbol.bytes == 1)
				symbol.bytes = 2;
			symbol.kind = SYMBOL_REGISTER;
			symbol.offset = new_row(symbol.bytes);
			for (unsigned n = 1; n < count; n++)
				new_row(symbol.bytes);
		}
		else if (what == "param")
		{
			symbol.kind = SYMBOL_PARAM;
			symbol.offset = aligned(function->param_bytes, 16);
			function->param_bytes = symbol.offset + d.bytes;
		}
		else if (what == "local")
		{
			symbol.kind = SYMBOL_LOCAL;
			symbol.offset = aligned(function->local_bytes, d.align < 16 ? 16 : d.align);
			function->local_bytes = symbol.offset + d.bytes;
		}
		else
		{
			symbol.kind = SYMBOL_SHARED;
			kernel->static_shared = aligned(kernel->static_shared, d.align);
			symbol.offset = kernel->static_shared;
			kernel->static_shared += d.bytes;
		}
		scopes[scope].symbols[d.name] = symbol;
	}
}

/* The symbol and, for %r5 of %r<8>, its number. */
const Symbol *
Decoder::find(const std::string &name, int from, unsigned *number) const
{
	size_t		digits = name.size();

	while (digits > 0 && isdigit((unsigned char) name[digits - 1]))
		digits--;

	std::string prefix = name.substr(0, digits);

	for (int k = from; k >= 0; k = scopes[k].parent)
	{
		auto		exact = scopes[k].symbols.find(name);

		*number = 0;
		if (exact != scopes[k].symbols.end() && !exact->second.numbered)
			return &exact->second;
		if (digits == name.size())
			continue;

		auto		numbered = scopes[k].symbols.find(prefix);

		if (numbered != scopes[k].symbols.end() && numbered->second.numbered)
		{
			*number = (unsigned) atol(name.c_str() + digits);
			if (*number < numbered->second.numbered)
				return &numbered->second;
		}
	}
	return NULL;
}

bool
Decoder::is_register(const Term &term) const
{
	unsigned	number;
	const Symbol *symbol = term.kind == TERM_NAME ? find(term.name, scope, &number) : NULL;

	return symbol && symbol->kind == SYMBOL_REGISTER;
}

unsigned
Decoder::register_bytes(const Term &term) const
{
	unsigned	number;
	const Symbol *symbol = term.kind == TERM_NAME ? find(term.name, scope, &number) : NULL;
	Operand		o;

	if (symbol && symbol->kind == SYMBOL_REGISTER)
		return symbol->bytes;
	return term.kind == TERM_NAME && special_register(term.name, &o) ? 4 : 0;
}

uint32_t
Decoder::new_row(unsigned bytes)
{
	uint32_t	at = (uint32_t) function->row_bytes;

	if (bytes)
		at = (uint32_t) aligned(at, 64);
	function->row_bytes = at + (bytes ? bytes * LANES : 4);
	return at;
}

Operand
Decoder::temporary(unsigned bytes)
{
	return Operand{ROWS_FRAME, new_row(bytes)};
}

Operand
Decoder::constant(uint64_t low, unsigned bytes)
{
	uint64_t	mask = bytes >= 8 ? UINT64_MAX : ((uint64_t) 1 << (bytes * 8)) - 1;
	auto		key = std::make_pair(std::make_pair(low & mask, (uint64_t) 0), bytes);
	auto		found = constants.find(key);
	std::vector<char> &pool = function->constant_bytes;

	if (found == constants.end())
	{
		uint32_t	at = (uint32_t) aligned(pool.size(), 64);

		pool.resize(at + bytes * LANES);
		for (unsigned k = 0; k < LANES; k++)
			memcpy(&pool[at + k * bytes], &low, std::min(bytes, 8u));
		found = constants.emplace(key, at).first;
	}
	return Operand{ROWS_CONSTANT, found->second};
}

/* Where in the block's memory; behind the static part it is known when all functions are decoded. */
Operand
Decoder::shared_address(const Symbol &symbol, int64_t imm, unsigned bytes)
{
	Operand		o;
	uint32_t	at;

	if (!symbol.dynamic)
		return constant(symbol.offset + (uint64_t) imm, bytes);
	at = (uint32_t) aligned(function->constant_bytes.size(), 64);
	function->constant_bytes.resize(at + bytes * LANES);
	for (unsigned k = 0; k < LANES; k++)
		memcpy(&function->constant_bytes[at + k * bytes], &imm, bytes);
	function->dynamic_rows.push_back(Operand{bytes, at});
	o = Operand{ROWS_CONSTANT, at};
	return o;
}

void
Decoder::place_dynamic_shared(EmuKernel *kernel)
{
	kernel->dynamic_at = aligned(kernel->static_shared, 128);
	if (kernel->static_shared == 0)
		kernel->dynamic_at = 0;
	for (auto &function : kernel->functions)
		for (Operand row : function->dynamic_rows)
			for (unsigned k = 0; k < LANES; k++)
			{
				char	   *at = function->constants + row.offset + k * row.base;
				uint64_t	address = 0;

				memcpy(&address, at, row.base);
				address += kernel->dynamic_at;
				memcpy(at, &address, row.base);
			}
}

bool
Decoder::special_register(const std::string &name, Operand *o) const
{
	static const std::map<std::string, int> rows = {
		{"%tid", SPECIAL_TID}, {"%ntid", SPECIAL_NTID}, {"%ctaid", SPECIAL_CTAID}, {"%nctaid", SPECIAL_NCTAID},
		{"%laneid", SPECIAL_LANEID}, {"%warpid", SPECIAL_WARPID}, {"%nwarpid", SPECIAL_NWARPID},
		{"%lanemask_eq", SPECIAL_LANEMASK_EQ}, {"%lanemask_le", SPECIAL_LANEMASK_LE},
		{"%lanemask_lt", SPECIAL_LANEMASK_LT}, {"%lanemask_ge", SPECIAL_LANEMASK_GE},
		{"%lanemask_gt", SPECIAL_LANEMASK_GT}, {"%clusterid", SPECIAL_CLUSTERID}, {"%nclusterid", SPECIAL_NCLUSTERID},
		{"%cluster_ctaid", SPECIAL_CLUSTER_CTAID}, {"%cluster_nctaid", SPECIAL_CLUSTER_NCTAID},
		{"%cluster_ctarank", SPECIAL_CLUSTER_CTARANK}, {"%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK},
		{"%smid", SPECIAL_SMID}, {"%nsmid", SPECIAL_NSMID}, {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM},
		{"%total_smem_size", SPECIAL_TOTAL_SMEM}, {"%gridid", SPECIAL_ZERO}, {"%envreg1", SPECIAL_ENVREG1}, {"%envreg2", SPECIAL_ENVREG2},
	};
	size_t		dot = name.find('.');
	auto		found = rows.find(name.substr(0, dot));
	int			part = dot == std::string::npos ? 0 : name[dot + 1] - 'x';

	if (found == rows.end() || part < 0 || part > 2)
		return false;
	*o = Operand{ROWS_SPECIAL, (uint32_t) ((found->second + part) * LANES * 4)};
	return true;
}

/* A shared variable of the function or of the module, which gets its place when a kernel first uses it. */
const Symbol *
Decoder::shared_variable(const std::string &name)
{
	unsigned	number;
	const Symbol *symbol = find(name, scope, &number);
	auto		variable = module->variables.find(name);
	Symbol		made = {};

	if (symbol && symbol->kind == SYMBOL_SHARED)
		return symbol;
	if (symbol || variable == module->variables.end() || variable->second.space != "shared")
		return NULL;
	made.kind = SYMBOL_SHARED;
	made.dynamic = variable->second.bytes == 0;
	if (!made.dynamic)
	{
		auto		place = kernel->shared_at.find(name);

		if (place == kernel->shared_at.end())
		{
			kernel->static_shared = aligned(kernel->static_shared, variable->second.align);
			place = kernel->shared_at.emplace(name, (uint32_t) kernel->static_shared).first;
			kernel->static_shared += variable->second.bytes;
		}
		made.offset = place->second;
	}
	return &(scopes[0].symbols[name] = made);
}

uint64_t
Decoder::variable_address(const std::string &name)
{
	auto		variable = module->variables.find(name);

	if (variable == module->variables.end() || variable->second.at == NULL)
		unsupported(("unknown name " + name).c_str());
	return (uint64_t) variable->second.at;
}

Operand
Decoder::value_bytes(const Term &term, unsigned bytes, bool is_float)
{
	unsigned	number;
	const Symbol *symbol;
	Operand		o;
	float		narrow;
	double		wide;
	uint64_t	bits = (uint64_t) term.imm;

	switch (term.kind)
	{
		case TERM_SINK:
			return Operand{ROWS_SINK, 0};
		case TERM_FLOAT32:
		case TERM_FLOAT64:
			if (term.kind == TERM_FLOAT64 && bytes == 4)
			{
				memcpy(&wide, &bits, 8);
				narrow = (float) wide;
				bits = 0;
				memcpy(&bits, &narrow, 4);
			}
			else if (term.kind == TERM_FLOAT32 && bytes == 8)
			{
				memcpy(&narrow, &bits, 4);
				wide = narrow;
				memcpy(&bits, &wide, 8);
			}
			return constant(bits, bytes);
		case TERM_INTEGER:
			if (is_float)
			{
				wide = (double) term.imm;
				narrow = (float) term.imm;
				bits = 0;
				if (bytes == 8)
					memcpy(&bits, &wide, 8);
				else
					memcpy(&bits, &narrow, 4);
			}
			return constant(bits, bytes);
		case TERM_NAME:
			break;
		default:
			unsupported("operand");
	}
	symbol = find(term.name, scope, &number);
	if (symbol && symbol->kind == SYMBOL_REGISTER)
	{
		if (symbol->bytes != bytes)
			unsupported("register of another width");
		return Operand{ROWS_FRAME, (uint32_t) (symbol->offset + (size_t) number * LANES * bytes)};
	}
	if (special_register(term.name, &o))
	{
		if (bytes != 4)
			unsupported("special register of another width");
		return o;
	}
	symbol = shared_variable(term.name);
	if (symbol)
		return shared_address(*symbol, term.imm, bytes);
	return constant(variable_address(term.name) + (uint64_t) term.imm, bytes);
}

Operand
Decoder::value(const Term &term, Type type)
{
	return value_bytes(term, bytes_of(type), type == F32 || type == F64);
}

Operand
Decoder::result(const Term &term, unsigned bytes)
{
	if (term.kind != TERM_SINK && !is_register(term))
		unsupported("result that is no register");
	return value_bytes(term, bytes, false);
}

Operand
Decoder::predicate_of(const Term &term)
{
	unsigned	number;
	const Symbol *symbol;

	if (term.kind == TERM_SINK)
		return Operand{ROWS_SINK, 0};
	if (term.kind == TERM_INTEGER)
		return constant(term.imm ? ALL_LANES : 0, 4);
	symbol = find(term.name, scope, &number);
	if (symbol == NULL || symbol->kind != SYMBOL_REGISTER || symbol->bytes != 0)
		unsupported("operand that is no predicate");
	return Operand{ROWS_FRAME, (uint32_t) (symbol->offset + number * 4)};
}

void
Decoder::set_list(Insn *insn, const std::vector<Operand> &list)
{
	std::unique_ptr<Operand[]> copy(new Operand[list.size() + 1]);

	std::copy(list.begin(), list.end(), copy.get());
	insn->list = copy.get();
	insn->count = (uint8_t) list.size();
	function->lists.push_back(std::move(copy));
}

Insn
Decoder::fresh(Handler run) const
{
	Insn		insn = {};

	if (run == NULL)
		unsupported("unsupported instruction");
	insn.run = run;
	insn.text = (uint32_t) ((s ? s->at : text->at) - module->text);
	return insn;
}

void
Decoder::emit(const Insn &insn)
{
	if (!s->guard.empty())
	{
		Insn		guard = fresh(control_handler("guard"));
		Term		term;

		term.kind = TERM_NAME;
		term.name = s->guard;
		guard.a = predicate_of(term);
		guard.flags = s->guard_negated ? INSN_NEGATED : 0;
		function->code.push_back(guard);
	}
	function->code.push_back(insn);
}

void
Decoder::emit_branch(const std::string &label, const std::string &predicate_name, bool negated)
{
	Insn		insn = fresh(control_handler(predicate_name.empty() ? "bra" : "bra.if"));

	if (!predicate_name.empty())
	{
		Term		term;

		term.kind = TERM_NAME;
		term.name = predicate_name;
		insn.a = predicate_of(term);
		insn.flags = negated ? INSN_NEGATED : 0;
	}
	fixups.push_back(Fixup{function->code.size(), -1, label, scope});
	function->code.push_back(insn);
	if (!predicate_name.empty())
		function->code.push_back(fresh(control_handler("join")));
}

void
Decoder::emit_label(const std::string &name)
{
	Symbol		symbol = {};

	symbol.kind = SYMBOL_LABEL;
	symbol.offset = function->code.size();
	scopes[scope].symbols[name] = symbol;
	function->code.push_back(fresh(control_handler("join")));
}

/* Instructions that wait or leave are branched around when they are guarded. */
void
Decoder::emit_control(const Insn &insn)
{
	std::string behind = "behind " + std::to_string(function->code.size());

	if (!s->guard.empty())
		emit_branch(behind, s->guard, !s->guard_negated);
	function->code.push_back(insn);
	if (!s->guard.empty())
		emit_label(behind);
}

void
Decoder::finish()
{
	std::vector<char> &pool = function->constant_bytes;

	s = NULL;
	function->code.push_back(fresh(control_handler("ret")));
	for (const Fixup &fixup : fixups)
	{
		unsigned	number;
		const Symbol *symbol = find(fixup.label, fixup.scope, &number);

		if (symbol == NULL || symbol->kind != SYMBOL_LABEL)
			unsupported(("unknown label " + fixup.label).c_str());
		if (fixup.element < 0)
			function->code[fixup.insn].target = &function->code[symbol->offset];
		else
			const_cast<Operand *>(function->code[fixup.insn].list)[fixup.element].offset = (uint32_t) symbol->offset;
	}
	function->constants = (char *) aligned_alloc(64, aligned(pool.size() + 64, 64));
	if (!pool.empty())
		memcpy(function->constants, pool.data(), pool.size());
	function->row_bytes = aligned(function->row_bytes + 64, 64);
	function->param_bytes = aligned(function->param_bytes, 16);
	function->local_bytes = aligned(function->local_bytes, 16);
}

void
Decoder::decode()
{
	BodyReader	reader(text->body, text->body_end);
	int			depth = 0;

	declare_parameters();
	for (;;)
	{
		Statement	statement = reader.next();

		s = &statement;
		switch (statement.kind)
		{
			case STATEMENT_END:
				finish();
				return;
			case STATEMENT_OPEN:
				scopes.push_back(Scope{scope, {}});
				scope = (int) scopes.size() - 1;
				depth++;
				break;
			case STATEMENT_CLOSE:
				if (depth-- == 0)
					unsupported("brace");
				scope = scopes[scope].parent;
				break;
			case STATEMENT_LABEL:
				emit_label(statement.name);
				break;
			case STATEMENT_DIRECTIVE:
				declare(statement);
				break;
			case STATEMENT_TARGETS:
				{
					/* the label before has become an instruction that does nothing */
					for (auto &entry : scopes[scope].symbols)
						if (entry.second.kind == SYMBOL_LABEL && entry.second.offset + 1 == function->code.size())
						{
							entry.second.kind = SYMBOL_TARGETS;
							for (const Term &term : statement.terms)
								entry.second.targets.push_back(term.name);
						}
				}
				break;
			case STATEMENT_INSTRUCTION:
				instruction();
				break;
		}
	}
}

void
decode_kernel(EmuModule *module, EmuKernel *kernel)
{
	for (size_t k = 0; k < kernel->functions.size(); k++)
	{
		Function   *function = kernel->functions[k].get();
		auto		text = module->contents.functions.find(function->name);

		if (text == module->contents.functions.end() || text->second.body == NULL)
			throw ParseError{"unknown function " + function->name, module->text};
		Decoder(module, kernel, function, &text->second).decode();
	}
	Decoder::place_dynamic_shared(kernel);
}

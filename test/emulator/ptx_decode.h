/*
 * ptx_decode.h
 *	  From a kernel's text to instructions.
 */
#ifndef GPUAGG_PTX_DECODE_H
#define GPUAGG_PTX_DECODE_H

#include "ptx_ops.h"
#include "ptx_parse.h"

struct Variable
{
	std::string space;
	char *at; /* NULL for shared ones */
	size_t bytes, align;
	bool external;
};

struct EmuModule
{
	const char *text;
	ModuleText contents;
	std::map<std::string, Variable> variables;
	std::map<std::string, std::unique_ptr<EmuKernel>> kernels;
};

/* What a name stands for. */
enum SymbolKind
{
	SYMBOL_REGISTER,
	SYMBOL_PARAM,       /* of a function or call: offset in a lane's part */
	SYMBOL_ENTRY_PARAM, /* offset is the address */
	SYMBOL_LOCAL,
	SYMBOL_SHARED,
	SYMBOL_LABEL, /* offset: index of the instruction */
	SYMBOL_TARGETS
};

struct Symbol
{
	SymbolKind kind;
	unsigned bytes; /* of a register's element; 0: predicate */
	uint64_t offset;
	unsigned numbered; /* registers of this prefix, or 0 */
	bool dynamic;      /* shared memory behind the static one */
	std::vector<std::string> targets;
};

struct Scope
{
	int parent;
	std::map<std::string, Symbol> symbols;
};

/* Decodes one function; the kernel gathers what its functions need. */
class Decoder
{
  public:
	Decoder(EmuModule *module, EmuKernel *kernel, Function *function, const FunctionText *text);
	void decode();
	static void place_dynamic_shared(EmuKernel *kernel);

  private:
	EmuModule *module;
	EmuKernel *kernel;
	Function *function;
	const FunctionText *text;
	const Statement *s; /* the one that is decoded */
	std::vector<Scope> scopes;
	int scope;
	struct Fixup
	{
		size_t insn;
		int element; /* of list, or -1: target */
		std::string label;
		int scope;
	};
	std::vector<Fixup> fixups;
	std::map<std::pair<std::pair<uint64_t, uint64_t>, unsigned>, uint32_t> constants;

	[[noreturn]] void unsupported(const char *what) const;

	/* ptx_decode.cpp: names, registers, operands */
	void declare(const Statement &statement);
	void declare_parameters();
	const Symbol *find(const std::string &name, int from, unsigned *number) const;
	bool is_register(const Term &term) const;
	unsigned register_bytes(const Term &term) const;
	uint32_t new_row(unsigned bytes);
	Operand temporary(unsigned bytes);
	Operand constant(uint64_t low, unsigned bytes);
	Operand shared_address(const Symbol &symbol, int64_t imm, unsigned bytes);
	Operand value(const Term &term, Type type);
	Operand value_bytes(const Term &term, unsigned bytes, bool is_float);
	Operand result(const Term &term, unsigned bytes);
	Operand predicate_of(const Term &term);
	bool special_register(const std::string &name, Operand *o) const;
	const Symbol *shared_variable(const std::string &name);
	uint64_t variable_address(const std::string &name);
	void set_list(Insn *insn, const std::vector<Operand> &list);

	/* emission */
	Insn fresh(Handler run) const;
	void emit(const Insn &insn);
	void emit_control(const Insn &insn);
	void emit_label(const std::string &name);
	void emit_branch(const std::string &label, const std::string &predicate_name, bool negated);
	void finish();

	/* ptx_decode_ops.cpp: instructions */
	void instruction();
	bool arithmetic();
	bool memory();
	bool together();
	bool control();
	Type type_at_end(size_t back = 1) const;
	std::string modifiers(std::initializer_list<const char *> wanted) const;
	void only(std::initializer_list<const char *> allowed) const;
	void float_arithmetic(Type type);
	void integer_arithmetic(Type type);
	void plain(Handler run, std::initializer_list<Operand> operands);
	void move();
	void compare();
	void slct();
	void convert();
	void address(Insn *insn, const Term &term, const std::string &space);
	std::string space() const;
	void load();
	void store();
	void atomic(bool result);
	void async_copy();
	void barrier();
	void call();
};

Type type_named(const std::string &name);
unsigned bytes_of(Type type);
void decode_kernel(EmuModule *module, EmuKernel *kernel);

#endif /* GPUAGG_PTX_DECODE_H */

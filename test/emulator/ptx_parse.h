/*
 * ptx_parse.h
 *	  From the text of PTX to statements and variables.
 */
#ifndef GPUAGG_PTX_PARSE_H
#define GPUAGG_PTX_PARSE_H

#include <stdint.h>

#include <map>
#include <string>
#include <vector>

#include "ptx_internal.h"

/* What cannot be read. */
struct ParseError
{
	std::string text;
	const char *at;
};

enum TermKind
{
	TERM_NAME, /* register, variable, function, label; imm is added to it */
	TERM_INTEGER,
	TERM_FLOAT32, /* imm has the bits */
	TERM_FLOAT64,
	TERM_MEMORY, /* [list[0] + imm] */
	TERM_VECTOR,
	TERM_LIST, /* in parentheses */
	TERM_SINK
};

struct Term
{
	TermKind kind = TERM_SINK;
	std::string name;
	std::string second; /* b of a|b */
	int64_t imm = 0;
	bool negated = false; /* !a */
	std::vector<Term> list;
};

enum StatementKind
{
	STATEMENT_INSTRUCTION,
	STATEMENT_LABEL,
	STATEMENT_OPEN, /* of a scope */
	STATEMENT_CLOSE,
	STATEMENT_DIRECTIVE, /* .reg, .param, .local, .shared: the text follows */
	STATEMENT_TARGETS,   /* .branchtargets */
	STATEMENT_END
};

struct Statement
{
	StatementKind kind;
	const char *at;
	const char *end;
	std::string guard; /* predicate, "" without */
	bool guard_negated;
	std::vector<std::string> parts; /* of the opcode, without dots */
	std::vector<Term> terms;
	std::string name; /* label */

	bool has(const char *part) const;
};

/* A variable's or parameter's declaration. */
struct Declaration
{
	std::string space; /* global, const, shared, local, param, reg */
	std::string type;  /* without the dot */
	std::string name;
	bool external = false;
	bool array = false;
	size_t align = 1;
	size_t element = 0;       /* bytes */
	size_t bytes = 0;         /* 0: of a size that others give */
	unsigned numbered = 0;    /* %r<5> */
	std::vector<Term> values; /* initializer */
	const char *at = nullptr;
};

/* An entry or function: text of the parameters and of the body. */
struct FunctionText
{
	bool entry;
	std::string name;
	const char *at;
	std::vector<Declaration> results, params;
	const char *body, /* behind the opening brace; NULL without body */
		*body_end;    /* the closing brace */
	unsigned max_threads;
};

struct ModuleText
{
	std::map<std::string, FunctionText> functions;
	std::vector<Declaration> variables;
};

size_t type_bytes(const std::string &type);
void parse_module(const char *text, ModuleText *module);

/* Statements of a body, one after the other. */
class BodyReader
{
  public:
	BodyReader(const char *at, const char *end) : at(at), end(end)
	{
	}
	Statement next();

  private:
	const char *at, *end;
};

/* ".reg .b32 %r<5>, %x;" and the like: one for each name. */
std::vector<Declaration> parse_declarations(const char *at, const char *end);

#endif /* GPUAGG_PTX_PARSE_H */

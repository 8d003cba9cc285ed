/*
 * ptx_parse.cpp
 *	  From the text of PTX to statements and variables.
 */
#include "ptx_parse.h"

#include <ctype.h>
#include <stdlib.h>

namespace
{

class Lexer
{
public:
	Lexer(const char *at, const char *end): at(at), end(end) {}

	const char *at,
			   *end;

	void
	blanks()
	{
		while (at < end)
		{
			if (isspace((unsigned char) *at))
				at++;
			else if (at[0] == '/' && at + 1 < end && at[1] == '/')
			{
				const char *line = (const char *) memchr(at, '\n', end - at);

				at = line ? line : end;
			}
			else if (at[0] == '/' && at + 1 < end && at[1] == '*')
			{
				const char *close = strstr(at + 2, "*/");

				at = close && close < end ? close + 2 : end;
			}
			else
				break;
		}
	}

	bool
	done()
	{
		blanks();
		return at >= end;
	}

	char
	peek()
	{
		blanks();
		return at < end ? *at : '\0';
	}

	bool
	accept(char c)
	{
		if (peek() != c || at >= end)
			return false;
		at++;
		return true;
	}

	void
	expect(char c)
	{
		if (!accept(c))
			throw ParseError{std::string("expected ") + c, at};
	}

	static bool
	is_name(char c)
	{
		return isalnum((unsigned char) c) || c == '_' || c == '$' || c == '%';
	}

	std::string
	name()
	{
		blanks();

		const char *from = at;

		while (at < end && (is_name(*at) || (at > from && *at == '.' && *from == '%')))
			at++;
		if (at == from)
			throw ParseError{"expected a name", at};
		return std::string(from, at);
	}

	/* ".b32", with "shared::cta" as one word. */
	std::string
	dotted()
	{
		expect('.');

		const char *from = at;

		while (at < end && (is_name(*at) || (at[0] == ':' && at + 1 < end && at[1] == ':') ||
							(at[0] == ':' && at[-1] == ':')))
			at++;
		return std::string(from, at);
	}

	bool
	starts_number()
	{
		char		c = peek();

		return isdigit((unsigned char) c) ||
			((c == '-' || c == '+') && at + 1 < end && (isdigit((unsigned char) at[1]) || at[1] == ' '));
	}

	Term
	number()
	{
		Term		term;
		bool		minus = false;
		char	   *stop;

		blanks();
		while (*at == '-' || *at == '+' || *at == ' ')
			minus ^= *at++ == '-';
		if (at[0] == '0' && (at[1] == 'f' || at[1] == 'F' || at[1] == 'd' || at[1] == 'D'))
		{
			bool		wide = at[1] == 'd' || at[1] == 'D';

			term.kind = wide ? TERM_FLOAT64 : TERM_FLOAT32;
			term.imm = (int64_t) strtoull(std::string(at + 2, wide ? 16 : 8).c_str(), &stop, 16);
			at += wide ? 18 : 10;
			return term;
		}
		term.imm = (int64_t) strtoull(at, &stop, 0);
		term.kind = TERM_INTEGER;
		if (*stop == '.' || *stop == 'e')
		{
			double		value = strtod(at, &stop);

			term.kind = TERM_FLOAT64;
			memcpy(&term.imm, &value, 8);
			if (minus)
				term.imm ^= INT64_MIN;
			minus = false;
		}
		at = stop;
		if (at < end && *at == 'U')
			at++;
		if (minus)
			term.imm = (int64_t) (0 - (uint64_t) term.imm);
		return term;
	}

	std::vector<Term>
	terms(char close)
	{
		std::vector<Term> list;

		if (accept(close))
			return list;
		do
			list.push_back(term());
		while (accept(','));
		expect(close);
		return list;
	}

	Term
	term()
	{
		Term		t;

		switch (peek())
		{
			case '[':
				at++;
				t.kind = TERM_MEMORY;
				t.list.push_back(term());
				t.imm = t.list[0].kind == TERM_NAME ? t.list[0].imm : 0;
				expect(']');
				return t;
			case '{':
				at++;
				t.kind = TERM_VECTOR;
				t.list = terms('}');
				return t;
			case '(':
				at++;
				t.kind = TERM_LIST;
				t.list = terms(')');
				return t;
			case '!':
				at++;
				t = term();
				t.negated = true;
				return t;
			default:
				break;
		}
		if (starts_number())
			return number();
		t.name = name();
		t.kind = t.name == "_" ? TERM_SINK : TERM_NAME;
		if (t.name == "WARP_SZ")
		{
			t.kind = TERM_INTEGER;
			t.imm = LANES;
			return t;
		}
		if (t.name == "generic" && peek() == '(')
		{
			at++;
			t = term();
			expect(')');
		}
		if (accept('|'))
			t.second = name();
		while (peek() == '+' || peek() == '-')
		{
			bool		minus = *at++ == '-';
			int64_t		n = number().imm;

			t.imm += minus ? -n : n;
		}
		return t;
	}

	/* Behind an opening brace: to its closing one. */
	const char *
	skip_braces()
	{
		int			depth = 1;

		for (; at < end; at++)
		{
			if (*at == '/' && at[1] == '/')
				blanks();
			if (at >= end)
				break;
			if (*at == '{')
				depth++;
			else if (*at == '}' && --depth == 0)
				return at++;
		}
		throw ParseError{"braces are not closed", at};
	}

	const char *
	semicolon()
	{
		const char *stop = (const char *) memchr(at, ';', end - at);

		if (stop == NULL)
			throw ParseError{"no semicolon", at};
		return stop;
	}
};

/* One name with what may follow it; space, type and alignment are there. */
void
declared_name(Lexer *lexer, Declaration *d)
{
	d->name = lexer->name();
	d->bytes = d->element;
	if (lexer->accept('<'))
	{
		d->numbered = (unsigned) lexer->number().imm;
		lexer->expect('>');
	}
	while (lexer->accept('['))
	{
		size_t		n = lexer->peek() == ']' ? 0 : (size_t) lexer->number().imm;

		lexer->expect(']');
		d->array = true;
		d->bytes *= n;
	}
	if (lexer->accept('='))
	{
		Term		value = lexer->term();

		if (value.kind == TERM_VECTOR)
			d->values = value.list;
		else
			d->values.push_back(value);
	}
}

/* Words from the space on, to the first name. */
void
declared_type(Lexer *lexer, Declaration *d)
{
	d->at = lexer->at;
	while (lexer->peek() == '.')
	{
		std::string word = lexer->dotted();

		if (word == "align")
			d->align = (size_t) lexer->number().imm;
		else if (word == "extern")
			d->external = true;
		else if (word == "visible" || word == "weak" || word == "common" || word == "ptr")
			continue;
		else if (word == "v2" || word == "v4")
			d->element = word == "v2" ? 2 : 4;
		else if (type_bytes(word) || word == "pred")
		{
			d->type = word;
			d->element = (d->element ? d->element : 1) * type_bytes(word);
		}
		else if (d->space.empty())
			d->space = word;
	}
	if (d->element > d->align)
		d->align = d->element;
}

std::vector<Declaration>
parameters(Lexer *lexer)
{
	std::vector<Declaration> list;

	if (lexer->accept(')'))
		return list;
	do
	{
		Declaration d;

		declared_type(lexer, &d);
		declared_name(lexer, &d);
		list.push_back(d);
	} while (lexer->accept(','));
	lexer->expect(')');
	return list;
}

/* ".entry" or ".func" has been read. */
void
parse_function(Lexer *lexer, bool entry, ModuleText *module)
{
	FunctionText f = {};

	f.entry = entry;
	f.at = lexer->at;
	if (lexer->accept('('))
		f.results = parameters(lexer);
	f.name = lexer->name();
	if (lexer->accept('('))
		f.params = parameters(lexer);
	f.max_threads = 1024;
	while (lexer->peek() == '.')
	{
		bool		most = false;
		std::string word = lexer->dotted();

		most = word == "maxntid" || word == "reqntid";
		if (lexer->starts_number())
		{
			unsigned	product = 1;

			do
				product *= (unsigned) lexer->number().imm;
			while (lexer->accept(','));
			if (most)
				f.max_threads = product;
		}
	}
	if (lexer->accept('{'))
	{
		f.body = lexer->at;
		f.body_end = lexer->skip_braces();
	}
	else
		lexer->accept(';');
	if (f.body || module->functions.count(f.name) == 0)
		module->functions[f.name] = f;
}

}								/* namespace */

bool
Statement::has(const char *part) const
{
	for (size_t k = 1; k < parts.size(); k++)
		if (parts[k] == part)
			return true;
	return false;
}

size_t
type_bytes(const std::string &type)
{
	if (type == "b128")
		return 16;
	if (type.size() < 2 || strchr("busf", type[0]) == NULL)
		return 0;

	std::string bits = type.substr(1);

	return bits == "8" ? 1 : bits == "16" ? 2 : bits == "32" ? 4 : bits == "64" ? 8 :
		type == "f16x2" ? 4 : 0;
}

std::vector<Declaration>
parse_declarations(const char *at, const char *end)
{
	Lexer		lexer(at, end);
	Declaration d;
	std::vector<Declaration> list;

	declared_type(&lexer, &d);
	do
	{
		Declaration one = d;

		declared_name(&lexer, &one);
		list.push_back(one);
	} while (lexer.accept(','));
	return list;
}

void
parse_module(const char *text, ModuleText *module)
{
	Lexer		lexer(text, text + strlen(text));

	while (!lexer.done())
	{
		const char *from = lexer.at;
		std::string word = lexer.dotted();

		while (word == "visible" || word == "extern" || word == "weak" || word == "common")
		{
			lexer.blanks();
			word = lexer.dotted();
		}
		if (word == "version" || word == "target" || word == "address_size" || word == "file")
		{
			const char *line = strchr(lexer.at, '\n');

			lexer.at = line ? line : lexer.end;
		}
		else if (word == "entry" || word == "func")
			parse_function(&lexer, word == "entry", module);
		else if (word == "section")
		{
			lexer.at = strchr(lexer.at, '{') + 1;
			lexer.skip_braces();
		}
		else
		{
			const char *stop = lexer.semicolon();

			if (word == "global" || word == "const" || word == "shared")
				for (Declaration &d : parse_declarations(from, stop))
					module->variables.push_back(d);
			lexer.at = stop + 1;
		}
	}
}

Statement
BodyReader::next()
{
	Lexer		lexer(at, end);
	Statement	s = {};

	if (lexer.done())
	{
		s.kind = STATEMENT_END;
		s.at = s.end = end;
		return s;
	}
	s.at = lexer.at;
	s.kind = STATEMENT_INSTRUCTION;
	if (*lexer.at == '{' || *lexer.at == '}')
		s.kind = *lexer.at++ == '{' ? STATEMENT_OPEN : STATEMENT_CLOSE;
	else if (*lexer.at == ';')
	{
		at = lexer.at + 1;
		return next();
	}
	else if (*lexer.at == '.')
	{
		s.kind = STATEMENT_DIRECTIVE;
		s.parts.push_back(lexer.dotted());
		if (s.parts[0] == "loc")
		{
			const char *line = (const char *) memchr(lexer.at, '\n', end - lexer.at);

			at = line ? line : end;
			return next();
		}
		if (s.parts[0] == "branchtargets" || s.parts[0] == "calltargets")
		{
			s.kind = STATEMENT_TARGETS;
			s.terms = lexer.terms(';');
		}
		else
			lexer.at = lexer.semicolon() + 1;
	}
	else
	{
		if (lexer.accept('@'))
		{
			s.guard_negated = lexer.accept('!');
			s.guard = lexer.name();
		}
		s.name = lexer.name();
		if (s.guard.empty() && lexer.peek() == ':' && lexer.at[1] != ':')
		{
			lexer.at++;
			s.kind = STATEMENT_LABEL;
		}
		else
		{
			s.parts.push_back(s.name);
			while (lexer.at < end && *lexer.at == '.')
				s.parts.push_back(lexer.dotted());
			if (!lexer.accept(';'))
				s.terms = lexer.terms(';');
		}
	}
	s.end = at = lexer.at;
	return s;
}

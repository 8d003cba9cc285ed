/*
 * ptx_module.cpp
 *	  Modules: their variables, and kernels by name.
 */
#include <stdlib.h>

#include <algorithm>
#include <stdexcept>

#include "ptx_decode.h"

static unsigned
line_of(const char *text, const char *at)
{
	return 1 + (unsigned) std::count(text, at, '\n');
}

static std::string
statement_at(const char *at)
{
	size_t		n = strcspn(at, ";\n");

	return std::string(at, std::min<size_t>(n, 200));
}

unsigned
kernel_line(const EmuKernel *kernel, uint32_t text, std::string *statement)
{
	const char *from = kernel->module->text;

	*statement = statement_at(from + text);
	return line_of(from, from + text);
}

static std::string
described(const EmuModule *module, const ParseError &error)
{
	return error.text + " in line " + std::to_string(line_of(module->text, error.at)) + " of PTX: " + statement_at(error.at);
}

static void
make_variables(EmuModule *module)
{
	for (const Declaration &d : module->contents.variables)
	{
		Variable	v = {d.space, NULL, d.bytes, d.align, d.external};

		if (d.space != "shared" && !d.external)
		{
			size_t		align = std::max<size_t>(d.align, 16);

			v.at = (char *) aligned_alloc(align, (std::max<size_t>(d.bytes, 1) + align - 1) / align * align);
			memset(v.at, 0, d.bytes);
			emu_memory_add(v.at, d.bytes);
		}
		module->variables[d.name] = v;
	}
	for (const Declaration &d : module->contents.variables)
		for (size_t k = 0; k < d.values.size(); k++)
		{
			const Term &term = d.values[k];
			uint64_t	value = (uint64_t) term.imm;

			if (term.kind == TERM_NAME)
			{
				auto		other = module->variables.find(term.name);

				if (other == module->variables.end() || other->second.at == NULL)
					throw ParseError{"initializer " + term.name, d.at};
				value += (uint64_t) other->second.at;
			}
			if ((k + 1) * d.element > d.bytes || d.element > 8)
				throw ParseError{"initializer of " + d.name, d.at};
			memcpy(module->variables[d.name].at + k * d.element, &value, d.element);
		}
}

EmuModule *
emu_module_load(const char *ptx, EmuError *error)
{
	std::unique_ptr<EmuModule> module(new EmuModule());

	module->text = ptx;
	try
	{
		parse_module(ptx, &module->contents);
		make_variables(module.get());
	}
	catch (const ParseError &e)
	{
		error->text = described(module.get(), e);
		return NULL;
	}
	return module.release();
}

EmuKernel *
emu_module_kernel(EmuModule *module, const char *name, EmuError *error)
{
	auto		known = module->kernels.find(name);
	auto		text = module->contents.functions.find(name);
	std::unique_ptr<EmuKernel> kernel;
	size_t		bytes = 64;

	if (known != module->kernels.end())
		return known->second.get();
	if (text == module->contents.functions.end() || !text->second.entry)
	{
		error->text = std::string("no kernel ") + name;
		return NULL;
	}
	kernel.reset(new EmuKernel());
	kernel->module = module;
	kernel->name = name;
	kernel->max_threads = text->second.max_threads;
	for (const Declaration &d : text->second.params)
		bytes += d.bytes + d.align;
	kernel->params = (char *) aligned_alloc(64, (bytes + 63) / 64 * 64);
	kernel->functions.emplace_back(new Function());
	kernel->functions[0]->name = name;
	kernel->functions[0]->entry = true;
	kernel->by_name[name] = kernel->functions[0].get();
	try
	{
		decode_kernel(module, kernel.get());
	}
	catch (const ParseError &e)
	{
		error->text = described(module, e) + ", in kernel " + name;
		return NULL;
	}
	catch (const std::out_of_range &)
	{
		error->text = std::string("count of operands in kernel ") + name;
		return NULL;
	}
	if (kernel->param_bytes)
		emu_memory_add(kernel->params, kernel->param_bytes);
	return (module->kernels[name] = std::move(kernel)).get();
}

void *
emu_module_variable(EmuModule *module, const char *name, size_t *bytes)
{
	auto		variable = module->variables.find(name);

	if (variable == module->variables.end())
		return NULL;
	*bytes = variable->second.bytes;
	return variable->second.at;
}

EmuKernelFacts
emu_kernel_facts(const EmuKernel *kernel)
{
	EmuKernelFacts facts = {kernel->static_shared, 0, kernel->max_threads};

	for (auto &function : kernel->functions)
		facts.local += function->local_bytes;
	return facts;
}

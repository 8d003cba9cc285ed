/*
 * build_id.c
 *	  Reads the library's build id, which is an ELF note of the loaded library; see build_id.h.
 */
#include "postgres.h"

#include <link.h>

#include "common/build_id.h"

static char id[BUILD_ID_LENGTH + 1];

/* Sets `id` from a segment of notes, if one of them is the build id. */
static void
read_notes(const char *notes, size_t size, size_t alignment)
{
	size_t at = 0;

	while (at + sizeof(ElfW(Nhdr)) <= size)
	{
		const ElfW(Nhdr) *note = (const void *) (notes + at);
		const char *name = (const char *) (note + 1);
		size_t value = TYPEALIGN(alignment, at + sizeof(*note) + note->n_namesz);
		size_t end = value + note->n_descsz;

		if (end > size)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof("GNU") &&
			strcmp(name, "GNU") == 0)
		{
			for (size_t i = 0; i < Min(note->n_descsz, BUILD_ID_LENGTH / 2); i++)
				sprintf(id + 2 * i, "%02x", (unsigned char) notes[value + i]);
			return;
		}
		at = TYPEALIGN(alignment, end);
	}
}

/* Returns whether a loaded object has this address. */
static bool
object_contains(const struct dl_phdr_info *object, ElfW(Addr) address)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
			address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
			return true;
	}
	return false;
}

/* Callback of dl_iterate_phdr(): reads the notes of this library; 0 continues with the next one. */
static int
visit_object(struct dl_phdr_info *object, size_t size, void *context)
{
	if (!object_contains(object, (ElfW(Addr)) id))
		return 0;
	for (int i = 0; i < object->dlpi_phnum && id[0] == '\0'; i++)
	{
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE)
			read_notes((const char *) (object->dlpi_addr + segment->p_vaddr), segment->p_memsz,
					   segment->p_align == 8 ? 8 : 4);
	}
	return 1;
}

const char *
build_id_of_library(void)
{
	if (id[0] == '\0')
		dl_iterate_phdr(visit_object, NULL);
	if (id[0] == '\0')
		strlcpy(id, GPUAGG_VERSION, sizeof(id));
	return id;
}

char *
build_id_append(const char *name)
{
	return psprintf("%s %s", name, build_id_of_library());
}

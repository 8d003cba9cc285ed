/*
 * chunk_references_test.c
 *	  Tests chunks (cache/chunk.h) of values that are passed by reference.
 *
 * Chunks are built from a model and compared with it, see chunk_model.h: varlenas with short and
 * long headers, compressed ones and toast pointers, and types of fixed length, with few and many
 * distinct values, around the sizes at which codes get wider.
 */
#include "chunk_model.h"

/* Returns a malloc'ed varlena with any kind of header. Different numbers give different bytes. */
static char *
make_varlena(int number)
{
	int kind = number % 8;
	int length = number % 13 == 0 ? 300 + number % 1500 : 5 + number % 40;
	char *image = malloc(MAX_IMAGE);

	for (int i = 0; i < MAX_IMAGE; i++)
		image[i] = 'a' + number % 3;
	if (kind == 0)
	{
		/* a toast pointer */
		SET_VARTAG_EXTERNAL(image, VARTAG_ONDISK);
		memcpy(image + 2, &number, sizeof(number));
	}
	else if (kind < 5 && length < 120)
	{
		SET_VARSIZE_SHORT(image, length + 1);
		memcpy(image + 1, &number, sizeof(number));
	}
	else
	{
		if (kind == 5)
			SET_VARSIZE_4B_C(image, length + 8);
		else
			SET_VARSIZE(image, length + 4);
		/* the number is at the end, so images differ only there */
		memcpy(image + length + (kind == 5 ? 8 : 4) - 4, &number, sizeof(number));
	}
	return image;
}

/* Returns a malloc'ed value of typlen bytes with the number at its start or its end. */
static char *
make_fixed(int number)
{
	char *image = malloc(MAX_IMAGE);

	memset(image, 'x', MAX_IMAGE);
	memcpy(image + (number % 2 ? model.typlen - 4 : 0), &number, sizeof(number));
	image[4] = number % 2;
	return image;
}

/* Checks chunks for each number of distinct values, and chunks whose values are all distinct. */
static void
check_references(int16 typlen, char align, const int *distinct, int ndistinct)
{
	set_type(COLUMN_DATUM, 0, typlen, false, align);
	for (int i = 0; i < model.nimages; i++)
		free(model.image[i]);
	model.nimages = 70000;
	for (int i = 0; i < model.nimages; i++)
		model.image[i] = typlen > 0 ? make_fixed(i) : make_varlena(i);
	for (int d = 0; d < ndistinct; d++)
		for (int nulls = 0; nulls < NULLS_PATTERNS; nulls++)
			for (int k = 0; k < (distinct[d] < 2000 ? 5 : 1); k++)
			{
				model.n =
					distinct[d] > 2000 ? distinct[d] + (int) random_below(3000) : random_rows();
				fill_states(nulls, false);
				for (int i = 0; i < model.n; i++)
					model.value[i] = k == 0 && i < distinct[d] ? i : random_below(distinct[d]);
				build_and_check();
				/* all values are distinct */
				for (int i = 0; i < model.n; i++)
					model.value[i] = i % model.nimages;
				build_and_check();
			}
}

static void
varlenas(void)
{
	static const int distinct[] = {1, 2, 10, 255, 256, 257, 1000, 65535, 65536, 65537};

	check_references(-1, 'i', distinct, lengthof(distinct));
	check_references(-1, 'd', distinct, 5);
	CHECK(chunk_builder_create(COLUMN_DATUM, 0, -2, false, 'c', NULL) == NULL,
		  "there is no builder for cstrings");
}

static void
fixed_references(void)
{
	static const int distinct[] = {1, 2, 256, 257, 65537};

	check_references(16, 'c', distinct, lengthof(distinct));
	check_references(12, 'd', distinct, 4);
	check_references(64, 'c', distinct, 4);
	check_references(6, 'i', distinct, 4);
}
int
main(void)
{
	RUN("varlenas are read as they were added", varlenas);
	RUN("by-reference values of fixed length are read as they were added", fixed_references);
	return unit_done();
}

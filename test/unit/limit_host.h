/*
 * limit_host.h
 *	  Finds the groups within a limit on the host, with passes over all groups. The CUDA stub
 *	  uses it in place of the kernels, and gpu_top.cu as the reference for them.
 */
#ifndef GPUAGG_UNIT_LIMIT_HOST_H
#define GPUAGG_UNIT_LIMIT_HOST_H

#include "device_cuda/limit.h"

/*
 * Returns the packed key of group g, or NULL if the group does not exist or fails a condition. The
 * key may be written to `space`.
 */
typedef const char *(*LimitKey)(const void *groups, int64_t g, char *space);

/*
 * Sets *search to the bound of the limit: the words of the last group within it. `passing` groups
 * have a key.
 */
__attribute__((unused)) static void
limit_search(const LimitPlan *plan, LimitKey key_of, const void *groups, int64_t n, int64_t passing,
			 LimitSearch *search)
{
	memset(search, 0, sizeof(*search));
	search->wanted = plan->count;
	limit_search_word(search, 0);
	search->ended = plan->count == 0 || passing <= plan->count;
	while (!search->ended)
	{
		int64_t before = 0;
		uint32_t digit = LIMIT_DIGITS;

		for (int64_t g = 0; g < n; g++)
		{
			char space[WIRE_MAX_KEY_BYTES];
			const char *key = key_of(groups, g, space);
			uint64_t word;

			if (key == NULL || limit_compare(plan, search, g, key, &word) != 0)
				continue;
			search->least = word < search->least ? word : search->least;
			search->greatest = word > search->greatest ? word : search->greatest;
			search->digits[search->ranged ? limit_digit(search, word) : 0]++;
		}
		if (search->ranged)
		{
			while (before + search->digits[digit - 1] < search->wanted)
				before += search->digits[--digit];
			limit_search_digit(plan, search, digit - 1, before, search->digits[digit - 1]);
		}
		else
			limit_search_range(plan, search);
		memset(search->digits, 0, sizeof(search->digits));
	}
}

/* Returns whether the group is within the limit. `key` is its packed key. */
__attribute__((unused)) static int
limit_contains(const LimitPlan *plan, const LimitSearch *search, int64_t g, const char *key)
{
	uint64_t word;

	return plan->count == 0 || limit_compare(plan, search, g, key, &word) >= 0;
}

#endif /* GPUAGG_UNIT_LIMIT_HOST_H */

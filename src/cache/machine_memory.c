/*
 * machine_memory.c
 *
 * The memory that this process may use.
 *
 * The effective limit of a control group is the least one on the path from the group to the root.
 * In a container the path of the group may not be visible; then the root is the container's own
 * group.
 */
#include "postgres.h"

#include <unistd.h>

#include "storage/fd.h"

#include "cache/machine_memory.h"

/* Returns the number in a file; UINT64_MAX if there is none (as with "max"). */
static uint64
number_in(const char *path)
{
	FILE *file = AllocateFile(path, "r");
	unsigned long long number = 0;
	bool found = file && fscanf(file, "%llu", &number) == 1;

	if (file)
		FreeFile(file);
	return found ? number : UINT64_MAX;
}

/*
 * Returns the least limit of a group and its ancestors. root: where the groups are mounted; name:
 * the file that has a group's limit.
 */
static uint64
group_limit(const char *root, const char *group, const char *name)
{
	char path[MAXPGPATH];
	char part[MAXPGPATH];
	uint64 least = UINT64_MAX;

	strlcpy(part, group, sizeof(part));
	for (;;)
	{
		char *slash = strrchr(part, '/');

		snprintf(path, sizeof(path), "%s%s/%s", root, part, name);
		least = Min(least, number_in(path));
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

uint64
machine_memory(void)
{
	uint64 least = UINT64_MAX;
	char line[MAXPGPATH];
	FILE *file;
#ifdef _SC_PHYS_PAGES
	long pages = sysconf(_SC_PHYS_PAGES);

	if (pages > 0)
		least = (uint64) pages * sysconf(_SC_PAGESIZE);
#endif

	/* Lines are "number:controllers:/group"; version 2 has number 0 and no controllers. */
	file = AllocateFile("/proc/self/cgroup", "r");
	while (file && fgets(line, sizeof(line), file))
	{
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (group == NULL)
			continue;
		*controllers++ = '\0';
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (*controllers == '\0')
			least = Min(least, group_limit("/sys/fs/cgroup", group, "memory.max"));
		else if (strstr(controllers, "memory"))
			least =
				Min(least, group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
	}
	if (file)
		FreeFile(file);
	return least == UINT64_MAX ? 0 : least;
}

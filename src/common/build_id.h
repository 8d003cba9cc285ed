/*
 * build_id.h
 *	  Identifies the build of the library.
 *
 * After an installation, a session may have mapped the file of another build than the processes
 * that it shares memory or plans with.  These formats may change with every build, so each user of
 * them compares the build ids first.
 */
#ifndef GPUAGG_BUILD_ID_H
#define GPUAGG_BUILD_ID_H

/* Most characters of a build id, without the zero at the end. */
#define BUILD_ID_LENGTH 40

/*
 * Returns the build id that the linker has computed from the content of this library, in
 * hexadecimal digits.  If the linker gave none, returns the library's version.
 */
extern const char *build_id_of_library(void);

/*
 * Returns a name, followed by the build id, for shared memory that processes with other builds must
 * not use.  It is allocated in the current memory context.
 */
extern char *build_id_append(const char *name);

#endif /* GPUAGG_BUILD_ID_H */

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
extern const char *library_build_id(void);

#endif /* GPUAGG_BUILD_ID_H */

/* Emulates a storage that hangs: an open of a file with $HANGS_AT in its path waits for the other end of the pipe $HANGS_IN. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HANGS(path) (strstr(path, getenv("HANGS_AT")) != 0)

int open64(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	va_list rest;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open64");
	if (HANGS(path))
		return real(getenv("HANGS_IN"), O_RDONLY);
	va_start(rest, flags);
	mode_t mode = va_arg(rest, mode_t);
	va_end(rest);
	return real(path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
	static int (*real)(int, const char *, int, ...);
	va_list rest;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "openat64");
	if (HANGS(path))
		return real(AT_FDCWD, getenv("HANGS_IN"), O_RDONLY);
	va_start(rest, flags);
	mode_t mode = va_arg(rest, mode_t);
	va_end(rest);
	return real(folder, path, flags, mode);
}

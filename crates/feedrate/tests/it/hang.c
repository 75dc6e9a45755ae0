/* A storage that answers no write of a file called $HANGS_AT: whoever begins one waits for the other end of the pipe $HANGS_IN. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int open64(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	va_list rest;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open64");
	if ((flags & O_CREAT) && strstr(path, getenv("HANGS_AT")))
		return real(getenv("HANGS_IN"), O_RDONLY);
	va_start(rest, flags);
	mode_t mode = va_arg(rest, mode_t);
	va_end(rest);
	return real(path, flags, mode);
}

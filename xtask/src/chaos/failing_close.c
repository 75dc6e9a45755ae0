/*
 * Makes calls of close and closedir report an error after the file was closed, as on Linux. strace cannot do that: it does not execute a
 * call that it lets fail, so that the file stays open. Call $CLOSE_FIRST of a process fails, or $CLOSE_LAST and all between them, with the
 * error $CLOSE_ERROR. Each failure appends a line to the file $CLOSE_LOG.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int error_of_next_call(void)
{
	static atomic_long calls;
	static const char line[] = "close (INJECTED)\n";
	const char *first = getenv("CLOSE_FIRST"), *last = getenv("CLOSE_LAST");
	const char *error = getenv("CLOSE_ERROR"), *log = getenv("CLOSE_LOG");

	if (!first || !last || !error || !log)
		return 0;
	long call = atomic_fetch_add(&calls, 1) + 1;
	if (call < atol(first) || atol(last) < call)
		return 0;
	int file = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (0 <= file) {
		(void)!write(file, line, sizeof line - 1);
		syscall(SYS_close, file);
	}
	return !strcmp(error, "ENOSPC") ? ENOSPC : !strcmp(error, "EINTR") ? EINTR : EIO;
}

static int closed(int result, int error)
{
	if (!error)
		return result;
	errno = error;
	return -1;
}

int close(int file)
{
	int result = syscall(SYS_close, file);
	return closed(result, result ? 0 : error_of_next_call());
}

int closedir(DIR *folder)
{
	static int (*real)(DIR *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "closedir");
	int result = real(folder);
	return closed(result, result ? 0 : error_of_next_call());
}

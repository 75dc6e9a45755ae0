/* Emulates a file system without locks. */
#include <errno.h>

int flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	errno = ENOSYS;
	return -1;
}

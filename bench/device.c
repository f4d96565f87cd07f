// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD for memcached: its extstore empties what it is given by ftruncate(2), which Linux has
 * for regular files only, and ends where that fails. So it takes no device. Here that of a device
 * does nothing, and says that it was done.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int ftruncate(int fd, off_t length)
{
	struct stat is;

	if (!fstat(fd, &is) && (S_ISBLK(is.st_mode) || S_ISCHR(is.st_mode)))
		return 0;
	return (int)syscall(SYS_ftruncate, fd, length);
}

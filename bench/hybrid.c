// SPDX-License-Identifier: GPL-2.0
/*
 * A library to be preloaded: rings that a program polls are of the kernel's hybrid kind, which
 * sleeps for half of the shortest time that it ever saw before it polls (io_uring/rw.c, Linux 6.13
 * and later). fio 3.39 has no option for that. x86-64.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <sys/syscall.h>

#ifndef IORING_SETUP_HYBRID_IOPOLL
#define IORING_SETUP_HYBRID_IOPOLL (1U << 17)
#endif

long syscall(long number, ...)
{
	register long r10 __asm__("r10"), r8 __asm__("r8"), r9 __asm__("r9");
	long a[6], result;
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (number == __NR_io_uring_setup) {
		struct io_uring_params *params = (void *)a[1];

		if (params->flags & IORING_SETUP_IOPOLL)
			params->flags |= IORING_SETUP_HYBRID_IOPOLL;
	}
	r10 = a[3];
	r8 = a[4];
	r9 = a[5];
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

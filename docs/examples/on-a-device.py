#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""on-a-device.py PROGRAM ARG...: becomes the program, whose ftruncate(2) does nothing and succeeds.

For programs that empty what they are given before they use it, and end where that fails, as
memcached does: Linux truncates regular files only, whatever a device's driver would say. The call
is answered by a filter that the kernel asks first (seccomp), so the program is not changed; its
children have it, too. On x86-64.
"""

import ctypes
import os
import struct
import sys

# linux/prctl.h, linux/seccomp.h, linux/bpf_common.h; where struct seccomp_data has the call.
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
CALL, ARCHITECTURE, X86_64, FTRUNCATE = 0, 4, 0xC000003E, 77

if len(sys.argv) < 2:
    sys.exit(__doc__)
code = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 0, 3, X86_64),
        (LOAD, 0, 0, CALL), (JUMP_EQUAL, 0, 1, FTRUNCATE),
        (RETURN, 0, 0, ERRNO), (RETURN, 0, 0, ALLOW)]  # an errno of 0: it has succeeded
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, MODE_FILTER, program, 0, 0)):
    if libc.prctl(*call):
        raise OSError(ctypes.get_errno(), "prctl")
os.execvp(sys.argv[1], sys.argv[1:])

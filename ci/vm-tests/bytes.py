#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What bytes.sh does with /dev/<disk>_bytes that a shell can't: bytes.py VERB BYTES DISK [ARG...].

check: every edge, and ranges at random, are what the block device has there, and what is written is
there, and nothing else. file: the same of a partition of the disk, by HIOPS_BYTES. users: threads
read and write at random until a file is there, and compare; the last line says how often, and what
went wrong. format: they do so while the disk's blocks change their size, which nothing but an EIO
may come of.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
import sys
import threading

# What is changed by writers, who leave the rest to readers: so many bytes from the disk's first.
AREA = 64 * 512
# Each writer has one in so many pieces of that: the pieces of a block are of several.
PIECE = 100
# linux/fs.h.
HIOPS_BYTES = 0xBB00  # docs/bytes.md
BLKGETSIZE64, BLKSSZGET, BLKROGET, BLKFLSBUF = 0x80081272, 0x1268, 0x125E, 0x1261
RWF_ATOMIC, RWF_APPEND = 0x40, 0x10


def content(disk):
    """All of the disk, by the block layer."""
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECT)
    size = os.lseek(fd, 0, os.SEEK_END)
    piece = mmap.mmap(-1, 1 << 20)
    whole = bytearray()
    while len(whole) < size:
        count = os.preadv(fd, [piece], len(whole))
        whole += piece[:count]
    os.close(fd)
    return bytes(whole)


def fails(with_, call, *args):
    try:
        call(*args)
    except OSError as error:
        assert error.errno == with_, f"errno {error.errno} instead of {with_}"
    else:
        raise AssertionError(f"no errno {with_}")


def ranges(size, block):
    """Offsets and lengths at each edge."""
    near = [0, 1, 2, block - 1, block, block + 1, 2 * block - 1, 2 * block, 3 * block + 7]
    lengths = [0, 1, 2, block - 1, block, block + 1, 4095, 4096, 4097, 8191, 8193, 50000]
    for offset in near + [size - at for at in near[1:]]:
        for length in lengths:
            yield offset, length


def edges(fd, whole, block):
    size = len(whole)
    for offset, length in ranges(size, block):
        got = os.pread(fd, length, offset)
        assert got == whole[offset : offset + length], f"{length} at {offset}: {len(got)}"
    for offset in (size, size + 1, 2**62, 2**63 - 2):
        assert os.pread(fd, 1, offset) == b""
    fails(errno.EINVAL, os.pread, fd, 1, -1)


def guards(fd, whole):
    """Nothing outside the caller's buffer is written, wherever that begins and ends."""
    for length in (1, 7, 511, 513, 4095):
        room = bytearray(b"\xa5" * (length + 64))
        got = os.preadv(fd, [memoryview(room)[32 : 32 + length]], 777)
        assert got == length
        assert room[:32] == b"\xa5" * 32 and room[-32:] == b"\xa5" * 32, "outside"
        assert room[32:-32] == whole[777 : 777 + length]
    parts = [bytearray(3), bytearray(0), bytearray(700), bytearray(100)]
    assert os.preadv(fd, parts, 511) == 803
    assert b"".join(parts) == whole[511 : 511 + 803]


def hole():
    """libc, and three pages, of which none was touched and the last is unmapped."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for call in (libc.pread, libc.pwrite):
        call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
        call.restype = ctypes.c_ssize_t
    at = libc.mmap(None, 3 * 4096, 3, 0x22, -1, 0)
    libc.munmap(at + 2 * 4096, 4096)
    return libc, at


class Aio:
    """Asynchronous reads and writes of a file (Linux AIO): several are under way at once."""

    # x86-64's numbers; linux/aio_abi.h: struct iocb (key before rw_flags), struct io_event.
    SETUP, DESTROY, GETEVENTS, SUBMIT = 206, 207, 208, 209
    IOCB, EVENT = struct.Struct("QIIHhIQQqQII"), struct.Struct("QQqq")

    def __init__(self, fd, depth, room):
        self.libc, self.fd = ctypes.CDLL(None, use_errno=True), fd
        self.libc.syscall.restype = ctypes.c_long
        self.context = ctypes.c_ulong(0)
        self.call(self.SETUP, depth, ctypes.byref(self.context))
        # Each buffer begins somewhere in a page, and does not end with one.
        self.rooms = [mmap.mmap(-1, room + 2 * 4096) for _ in range(depth)]
        self.firsts = [ctypes.addressof(ctypes.c_char.from_buffer(at)) for at in self.rooms]
        self.free, self.under_way = list(range(depth)), {}

    def call(self, number, *args):
        done = self.libc.syscall(ctypes.c_long(number), *args)
        if done < 0:
            raise OSError(ctypes.get_errno(), "Linux AIO")
        return done

    def read(self, length, offset, skip=0, memory=None):
        """Begins a read to byte `skip` of a buffer, or to `memory`; there has to be a free one."""
        at = self.free.pop()
        memory = self.firsts[at] + skip if memory is None else memory
        self.submit(at, 0, memory, length, offset, skip)

    def write(self, data, offset, flags=0):
        """Begins a write; there has to be a free buffer."""
        at = self.free.pop()
        self.rooms[at][: len(data)] = data
        self.submit(at, 1, self.firsts[at], len(data), offset, 0, flags)

    def submit(self, at, opcode, memory, length, offset, skip, flags=0):
        packed = self.IOCB.pack(at, 0, flags, opcode, 0, self.fd, memory, length, offset, 0, 0, 0)
        iocb = ctypes.create_string_buffer(packed, len(packed))
        pointer = (ctypes.c_void_p * 1)(ctypes.addressof(iocb))
        self.under_way[at] = (length, offset, skip)
        try:
            self.call(self.SUBMIT, self.context, ctypes.c_long(1), pointer)
        except OSError:
            del self.under_way[at]
            self.free.append(at)
            raise

    def ended(self):
        """Waits for one: its length, offset, and data, or its errno."""
        event = ctypes.create_string_buffer(self.EVENT.size)
        one = ctypes.c_long(1)
        self.call(self.GETEVENTS, self.context, one, one, event, None)
        at, _, res, _ = self.EVENT.unpack(event)
        length, offset, skip = self.under_way.pop(at)
        self.free.append(at)
        return length, offset, -res if res < 0 else self.rooms[at][skip : skip + res]

    def close(self):
        while self.under_way:
            self.ended()
        self.call(self.DESTROY, self.context)


def asynchronous(fd, whole, block, times):
    """What is read while the caller goes on is what is there."""
    aio = Aio(fd, 32, 50000)

    def compare():
        length, offset, got = aio.ended()
        assert got == whole[offset : offset + length], f"{length} at {offset}: {got!r:.40}"

    for number, (offset, length) in enumerate(ranges(len(whole), block)):
        if not aio.free:
            compare()
        aio.read(length, offset, number * 37 % 4096)
    dice = random.Random(5)
    for _ in range(times):
        if not aio.free:
            compare()
        length = dice.choice((dice.randrange(1, 700), dice.randrange(1, 9000), 4096))
        aio.read(length, dice.randrange(len(whole)), dice.choice((0, dice.randrange(4096))))
    while aio.under_way:
        compare()
    # To memory that is not there, or not all of it.
    _, at = hole()
    for memory in (at + 2 * 4096 - 10, at + 2 * 4096):
        try:
            aio.read(4096, 3, memory=memory)
            _, _, got = aio.ended()
        except OSError as error:
            got = error.errno
        assert got == errno.EFAULT or len(got) <= 10, got
    aio.close()


def written_ahead(it, block, times):
    """What is written while the caller goes on is there when it is over."""
    aio, size = Aio(it.fd, 16, 10000), len(it.whole)

    def compare():
        length, offset, got = aio.ended()
        assert isinstance(got, bytes) and len(got) == length, f"{length} at {offset}: {got!r:.40}"

    dice = random.Random(7)
    for number in range(times):
        if not aio.free:
            compare()
        # Each somewhere else, as of two at once either may be the last.
        offset = number * 10240 % (size - 20480) // block * block
        length = dice.choice((block, 2 * block, 100, 8192))
        offset += 0 if length % block == 0 else dice.randrange(block)
        data = dice.randbytes(length)
        aio.write(data, offset, dice.choice((0, os.RWF_DSYNC)))
        it.whole[offset : offset + length] = data
        if offset // 10240 % 16 == 15:
            while aio.under_way:
                compare()
    while aio.under_way:
        compare()
    try:
        aio.write(b"x" * block, size)
        _, _, got = aio.ended()
    except OSError as error:
        got = error.errno
    assert got == errno.ENOSPC, got
    aio.close()
    it.check()


def beside_merges(path, block, times):
    """A whole block that is written, and is over, stays, whoever merges a part of it meanwhile."""
    ended = threading.Event()

    def merger():
        fd = os.open(path, os.O_RDWR)
        while not ended.is_set():
            os.pwrite(fd, os.urandom(100), 8 * block)
        os.close(fd)

    fd = os.open(path, os.O_RDWR)
    aio, lost = Aio(fd, 1, block), 0
    thread = threading.Thread(target=merger)
    thread.start()
    for _ in range(times):
        data = os.urandom(block)
        aio.write(data, 8 * block)
        aio.ended()
        lost += os.pread(fd, block - 100, 8 * block + 100) != data[100:]
    ended.set()
    thread.join()
    aio.close()
    os.close(fd)
    assert not lost, f"{lost} of {times} were undone by a merge"


def polled(fd, whole):
    """A caller that looks for the completion itself."""
    for length in (1, 512, 4096, 20000):
        room = bytearray(length)
        assert os.preadv(fd, [room], 1000, os.RWF_HIPRI) == length
        assert room == whole[1000 : 1000 + length]


def longer(fd, whole, block):
    """Whole blocks of which there are many, to memory of any alignment."""
    length = 16 * 8192
    memory = mmap.mmap(-1, length + 8192)
    for offset in (0, block, 100):
        for skip in (0, 4, 512, 777):
            for more in (0, 1, block):
                count = os.preadv(fd, [memoryview(memory)[skip : skip + length + more]], offset)
                assert count == length + more
                assert memory[skip : skip + count] == whole[offset : offset + count]
    assert os.preadv(fd, [memory], len(whole) - 10 * block) == 10 * block


def faults(fd, whole):
    """A page that is not there: what came before it is read, or EFAULT."""
    libc, at = hole()
    assert libc.pread(fd, at + 4096 - 100, 300, 50) == 300
    assert ctypes.string_at(at + 4096 - 100, 300) == whole[50:350]
    for inside in (1, 8, 100, 4095):
        got = libc.pread(fd, at + 2 * 4096 - inside, 4096, 3)
        # A copy stops a few bytes before the page, as copy_to_user() may.
        assert inside - 8 <= got <= inside or got == -1, got
        if got > 0:
            assert ctypes.string_at(at + 2 * 4096 - inside, got) == whole[3 : 3 + got]
    assert libc.pread(fd, at + 2 * 4096, 100, 0) == -1
    assert ctypes.get_errno() == errno.EFAULT


class Written:
    """A disk that is written by its bytes, and what has to be on it."""

    def __init__(self, path, disk, flags=0):
        self.fd, self.disk = os.open(path, os.O_RDWR | flags), disk
        self.whole, self.dice = bytearray(content(disk)), random.Random(1)

    def write(self, offset, length, flags=0):
        data = self.dice.randbytes(length)
        left = max(len(self.whole) - offset, 0)
        if length and not left:
            fails(errno.ENOSPC, os.pwritev, self.fd, [data], offset, flags)
            return
        done = os.pwritev(self.fd, [data], offset, flags)
        assert done == min(length, left), f"{length} at {offset}: {done}"
        self.whole[offset : offset + done] = data[:done]

    def check(self):
        there = content(self.disk)
        if there == self.whole:
            return
        wrong = [at for at, (is_, was) in enumerate(zip(there, self.whole)) if is_ != was]
        raise AssertionError(f"{len(wrong)} bytes are wrong, from {wrong[0]} to {wrong[-1]}")


def written(path, disk, block, times):
    """What is written is there, whoever reads it, and nothing else is."""
    it = Written(path, disk)
    size = len(it.whole)
    # Some of the disk is in the page cache before, clean and dirty: neither hides what is written.
    cached = os.open(disk, os.O_RDWR)
    os.pread(cached, 65536, 0)
    dirty = os.urandom(100)
    os.pwrite(cached, dirty, 3 * 4096)
    it.whole[3 * 4096 : 3 * 4096 + 100] = dirty
    assert os.pread(it.fd, 100, 3 * 4096) == dirty, "what was not written back yet"
    for offset, length in ranges(size, block):
        it.write(offset, length)
    assert os.pread(cached, 65536, 0) == it.whole[:65536], "the page cache is old"
    os.close(cached)
    it.check()
    for _ in range(times):
        it.write(it.dice.randrange(size), it.dice.randrange(1, 10000))
    it.check()
    for flags in (os.RWF_DSYNC, os.RWF_SYNC, os.RWF_NOWAIT):
        it.write(1234, 777, flags)
        it.write(block, block, flags)
    assert os.preadv(it.fd, [bytearray(5)], 1, os.RWF_NOWAIT) == 5
    os.fsync(it.fd)
    os.fdatasync(it.fd)
    it.check()
    refusals(it, path, size)
    missing(it)
    asked(it.fd, size, block)
    # Bytes of one call that come from several places.
    assert os.pwritev(it.fd, [b"abc", b"", b"d" * 700, b"ef"], 5 * block - 1) == 705
    it.whole[5 * block - 1 : 5 * block + 704] = b"abc" + b"d" * 700 + b"ef"
    it.check()
    written_ahead(it, block, times)
    os.close(it.fd)
    beside_merges(path, block, times)
    synced = Written(path, disk, os.O_DSYNC)
    synced.write(99, 1001)
    synced.check()
    os.close(synced.fd)


def refusals(it, path, size):
    """What can't be written changes nothing."""
    fails(errno.EINVAL, os.pwrite, it.fd, b"x", -1)
    for offset in (size, size + 1, 2**62):
        fails(errno.ENOSPC, os.pwrite, it.fd, b"x", offset)
    fails(errno.EINVAL, os.pwritev, it.fd, [b"x"], 0, RWF_APPEND)
    appending = os.open(path, os.O_WRONLY | os.O_APPEND)
    fails(errno.EINVAL, os.write, appending, b"x")
    os.close(appending)
    # One who wants to be alone, beside others; and beside none.
    fails(errno.EBUSY, os.open, path, os.O_RDWR | os.O_EXCL)
    reader = os.open(path, os.O_RDONLY)
    fails(errno.EBADF, os.pwrite, reader, b"x", 0)
    os.close(reader)


def missing(it):
    """A page that is not there is not written; what is before it may be."""
    libc, at = hole()
    ctypes.memset(at, 7, 4096)
    # The second page was never touched: zeroes.
    assert libc.pwrite(it.fd, at + 4096 - 100, 300, 70) == 300
    it.whole[70:370] = b"\7" * 100 + bytes(200)
    for inside in (1, 8, 100, 4095):
        got = libc.pwrite(it.fd, at + 2 * 4096 - inside, 4096, 9)
        assert got == inside, got
        it.whole[9 : 9 + got] = bytes(got)
    assert libc.pwrite(it.fd, at + 2 * 4096, 100, 0) == -1
    assert ctypes.get_errno() == errno.EFAULT


def asked(fd, size, block):
    """As of a block device."""
    told = fcntl.ioctl(fd, BLKGETSIZE64, bytes(8))
    assert struct.unpack("Q", told)[0] == size
    assert struct.unpack("i", fcntl.ioctl(fd, BLKSSZGET, bytes(4)))[0] == block
    assert struct.unpack("i", fcntl.ioctl(fd, BLKROGET, bytes(4)))[0] == 0
    fails(errno.ENOTTY, fcntl.ioctl, fd, BLKFLSBUF, 0)
    assert os.lseek(fd, 0, os.SEEK_END) == size
    assert os.lseek(fd, -5, os.SEEK_END) == size - 5
    fails(errno.EINVAL, os.lseek, fd, size + 1, os.SEEK_SET)


def untorn(path, disk, most):
    """Blocks that are written whole or not at all, up to so many bytes."""
    it = Written(path, disk)
    if not most:
        fails(errno.EOPNOTSUPP, it.write, 0, 512, RWF_ATOMIC)
        return
    # More than a command of hiops' own is refused, whatever the drive does.
    fails(errno.EINVAL, os.pwritev, it.fd, [bytes(16384)], 0, RWF_ATOMIC)
    most = min(most, 8192)
    it.write(most, most, RWF_ATOMIC)
    for offset, length in ((most, 2 * most), (most // 2, most), (0, most - 1), (1, 512)):
        fails(errno.EINVAL, os.pwritev, it.fd, [bytes(length)], offset, RWF_ATOMIC)
    it.check()
    os.close(it.fd)


def check(path, disk, block, times, atomic):
    whole = content(disk)
    assert len(set(whole[:65536])) > 200, "the disk has nothing to tell apart"
    fd = os.open(path, os.O_RDONLY)
    edges(fd, whole, block)
    guards(fd, whole)
    faults(fd, whole)
    asynchronous(fd, whole, block, times)
    polled(fd, whole)
    longer(fd, whole, block)
    os.lseek(fd, 5, os.SEEK_SET)
    assert os.read(fd, 10) + os.read(fd, 10) == whole[5:25]
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    os.close(fd)
    wrong = []

    def reader(seed):
        dice = random.Random(seed)
        fd = os.open(path, os.O_RDONLY)
        for _ in range(times):
            offset, length = dice.randrange(len(whole)), dice.randrange(1, 5000)
            if os.pread(fd, length, offset) != whole[offset : offset + length]:
                wrong.append((offset, length))
        os.close(fd)

    together([threading.Thread(target=reader, args=(seed,)) for seed in range(8)])
    assert not wrong, f"{len(wrong)} differ: {wrong[:3]}"
    written(path, disk, block, times // 5)
    untorn(path, disk, atomic)
    together([threading.Thread(target=neighbour, args=(path, me, times)) for me in range(8)])


def file_of(part, disk, block, times):
    """What HIOPS_BYTES gives of a partition: that, and nothing of the disk around it."""
    name, folder = os.path.basename(part), f"/sys/class/block/{os.path.basename(part)}"
    with open(f"{folder}/start", encoding="ascii") as text:
        start = int(text.read()) * 512
    before = content(disk)
    of = os.open(part, os.O_RDWR)
    fails(errno.EINVAL, fcntl.ioctl, of, HIOPS_BYTES, os.O_NONBLOCK)
    it = Written(part, part)
    os.close(it.fd)
    it.fd = fcntl.ioctl(of, HIOPS_BYTES, os.O_CLOEXEC)
    with open(f"/proc/self/fdinfo/{it.fd}", encoding="ascii") as text:
        assert f"hiops_bytes:\t{name}\n" in text.read()
    # It stays when what it was asked of is closed, and keeps the bytes on.
    os.close(of)
    with open(f"/sys/block/{os.path.basename(disk)}/hiops/bytes", "w", encoding="ascii") as text:
        fails(errno.EBUSY, os.write, text.fileno(), b"0")
    size = len(it.whole)
    edges(it.fd, it.whole, block)
    asynchronous(it.fd, it.whole, block, times // 5)
    longer(it.fd, it.whole, block)
    asked(it.fd, size, block)
    for offset, length in ranges(size, block):
        it.write(offset, length)
    it.check()
    os.fsync(it.fd)
    after = content(disk)
    assert after[start : start + size] == it.whole, "the partition is elsewhere"
    assert after[:start] == before[:start], "what is before the partition has changed"
    assert after[start + size :] == before[start + size :], "what is behind it has changed"
    # Who writes has it alone with others that do.
    fails(errno.EBUSY, os.open, part, os.O_RDONLY | os.O_EXCL)
    os.close(it.fd)
    rights(part)


def rights(part):
    """Those of the file that it is asked of, and its claim."""
    reader = os.open(part, os.O_RDONLY)
    its = fcntl.ioctl(reader, HIOPS_BYTES, 0)
    assert len(os.pread(its, 3, 1)) == 3
    fails(errno.EBADF, os.pwrite, its, b"x", 0)
    os.close(its)
    alone = os.open(part, os.O_RDWR | os.O_EXCL)
    other = os.open(part, os.O_RDWR)
    fails(errno.EBUSY, fcntl.ioctl, other, HIOPS_BYTES, 0)
    its = fcntl.ioctl(alone, HIOPS_BYTES, 0)
    os.close(alone)
    assert os.pwrite(its, b"x", 5) == 1 and os.pread(its, 1, 5) == b"x"
    fails(errno.EBUSY, os.open, part, os.O_RDONLY | os.O_EXCL)
    os.close(its)
    os.close(os.open(part, os.O_RDONLY | os.O_EXCL))
    for fd in (other, reader):
        os.close(fd)


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Pieces:
    """What one of several writers writes: pieces of blocks whose other bytes are theirs."""

    def __init__(self, path, me, writers):
        self.fd, self.dice = os.open(path, os.O_RDWR), random.Random(me)
        self.offsets = range(me * PIECE, AREA - PIECE, writers * PIECE)
        self.there = {}

    def write(self):
        offset, data = self.dice.choice(self.offsets), self.dice.randbytes(PIECE)
        self.there.pop(offset, None)
        assert os.pwrite(self.fd, data, offset) == PIECE
        self.there[offset] = data

    def wrong(self):
        """How many are not as they were written."""
        return sum(
            os.pread(self.fd, PIECE, offset) != data for offset, data in self.there.items()
        )


def neighbour(path, me, times):
    mine = Pieces(path, me, 8)
    for _ in range(times):
        mine.write()
    assert not mine.wrong(), "a neighbour's write has undone one of these"
    os.close(mine.fd)


def users(path, disk, count, enough):
    """So many readers, and two writers, until the file `enough` is there, or the disk is not. Of
    the readers every other has several reads under way."""
    whole = content(disk)
    told, lock = {"reads": 0, "writes": 0, "wrong": 0}, threading.Lock()

    def tell(last, **counts):
        with lock:
            for name, number in counts.items():
                told[name] += number
            if last:
                told[last] = told.get(last, 0) + 1

    def reader(seed):
        dice, fd, reads, wrong, last = random.Random(seed), os.open(path, os.O_RDONLY), 0, 0, None
        while not os.path.exists(enough):
            offset, length = dice.randrange(AREA, len(whole)), dice.randrange(1, 600)
            try:
                wrong += os.pread(fd, length, offset) != whole[offset : offset + length]
            except OSError as error:
                last = errno.errorcode[error.errno]
                break
            reads += 1
        os.close(fd)
        tell(last, reads=reads, wrong=wrong)

    def reader_ahead(seed):
        dice, fd, reads, wrong, last = random.Random(seed), os.open(path, os.O_RDONLY), 0, 0, None
        aio = Aio(fd, 4, 600)
        while not (last or os.path.exists(enough)):
            try:
                while aio.free:
                    aio.read(dice.randrange(1, 600), dice.randrange(AREA, len(whole)))
                length, offset, got = aio.ended()
                if isinstance(got, int):
                    raise OSError(got, "read")
            except OSError as error:
                last = errno.errorcode[error.errno]
                break
            wrong += got != whole[offset : offset + length]
            reads += 1
        aio.close()
        os.close(fd)
        tell(last, reads=reads, wrong=wrong)

    def writer(me):
        mine, writes, wrong, last = Pieces(path, me, 2), 0, 0, None
        try:
            while not os.path.exists(enough):
                mine.write()
                writes += 1
            wrong = mine.wrong()
        except OSError as error:
            last = errno.errorcode[error.errno]
        os.close(mine.fd)
        tell(last, writes=writes, wrong=wrong)

    # The writers first: beside many that read already the last would be late.
    threads = [threading.Thread(target=writer, args=(me,)) for me in range(2)]
    readers = (reader, reader_ahead)
    threads += [threading.Thread(target=readers[at % 2], args=(at,)) for at in range(count)]
    print("ready", flush=True)
    together(threads)
    print(" ".join(f"{name}={number}" for name, number in sorted(told.items())), flush=True)


def formatted(path, first, last, count, enough):
    """So many threads that read and write from byte `first` to `last`."""
    told, lock = {"reads": 0, "writes": 0}, threading.Lock()

    def user(seed):
        dice, fd = random.Random(seed), os.open(path, os.O_RDWR)
        while not os.path.exists(enough):
            offset, length = dice.randrange(first, last), dice.randrange(1, 9000)
            try:
                if dice.random() < 0.5:
                    name, done = "reads", len(os.pread(fd, length, offset))
                else:
                    name, done = "writes", os.pwrite(fd, dice.randbytes(length), offset)
                name = name if done == length else "short"
            except OSError as error:
                name = errno.errorcode[error.errno]
            with lock:
                told[name] = told.get(name, 0) + 1
        os.close(fd)

    together([threading.Thread(target=user, args=(seed,)) for seed in range(count)])
    print(" ".join(f"{name}={number}" for name, number in sorted(told.items())), flush=True)


if __name__ == "__main__":
    verb, path, disk, *rest = sys.argv[1:]
    if verb == "check":
        check(path, disk, *map(int, rest))
    elif verb == "file":
        file_of(path, disk, *map(int, rest))
    elif verb == "no-file":
        fails(errno.EOPNOTSUPP, fcntl.ioctl, os.open(path, os.O_RDONLY), HIOPS_BYTES, 0)
    elif verb == "format":
        formatted(path, *map(int, rest[:3]), rest[3])
    else:
        users(path, disk, int(rest[0]), rest[1])

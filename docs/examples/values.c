// SPDX-License-Identifier: GPL-2.0
/*
 * values keeps small values on a disk, one after the other without padding, by the disk's bytes
 * (docs/bytes.md). values.py does the same, and either reads what the other has written.
 *
 *   values new FILE            begins a log at FILE's first byte: what is there is lost
 *   values put FILE TEXT...    appends values, and prints their numbers once they are durable
 *   values get FILE NUMBER     prints one; the first is 1
 *
 *   | sum 4 | length 4 | magic 8 | seed 8 | sum 4 | length 4 | value | sum 4 | length 4 | ...
 *
 * A sum, the CRC-32 of length and value, goes on from the sum before; the seed is random. So the
 * log ends where none fits: what follows is a record that was cut off as power failed, or one of an
 * older log, or anything. A damaged record ends it, too. Numbers are little endian.
 */
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 8, MOST = 4096 - HEAD, MAGIC = 8, SEED = 8 };
static struct { uint32_t sum, length; char value[MOST]; } record;
static const char *path;
static int fd;
static off_t size, end;		/* Of the file; of the log, as far as it is known. */
static uint32_t sum;		/* The last one before that end. */

/* Moves all of it: a call may end early, as where a disk fails, and the next one tells why. */
static void transfer(bool write, char *data, size_t count, off_t at)
{
	for (ssize_t done; count; data += done, count -= done, at += done) {
		done = write ? pwrite(fd, data, count, at) : pread(fd, data, count, at);
		if (done < 0)
			err(1, "%s can't be %s (hiops-bytes(4))", path, write ? "written" : "read");
		if (!done)
			errx(1, "%s has become shorter: begin again", path);
	}
}

static uint32_t sum_of_record(size_t length)
{
	const unsigned char *data = (unsigned char *)&record.length;
	uint32_t crc = ~sum;

	for (length += sizeof(record.length); length--; data++)
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc ^ *data >> bit) & 1 ? 0xedb88320 : 0);
	return ~crc;
}

/* Reads the record at the end, and goes past it; false: there is none. */
static bool next(void)
{
	uint32_t length;

	if (size - end < HEAD)
		return false;
	transfer(false, (char *)&record, HEAD, end);
	length = le32toh(record.length);
	if (length > MOST || length > size - end - HEAD)
		return false;
	transfer(false, record.value, length, end + HEAD);
	if (le32toh(record.sum) != sum_of_record(length))
		return false;
	sum = le32toh(record.sum);
	end += HEAD + length;
	return true;
}

/* Writes a record to the end, and goes past it. */
static void append(const char *value, size_t length)
{
	if (length > MOST || (off_t)length > size - end - HEAD)
		errx(1, "no room for %zu bytes: %d at most, or %s is full", length, MOST, path);
	memcpy(record.value, value, length);
	record.length = htole32(length);
	sum = sum_of_record(length);
	record.sum = htole32(sum);
	transfer(true, (char *)&record, HEAD + length, end);
	end += HEAD + length;
}

int main(int argc, char **argv)
{
	bool new = argc == 3 && !strcmp(argv[1], "new"), get = argc == 4 && !strcmp(argv[1], "get");
	unsigned long wanted = get ? strtoul(argv[3], NULL, 10) : 0, count = 0;
	char head[MAGIC + SEED] = "values 1";

	if (!new && !get && (argc < 4 || strcmp(argv[1], "put")))
		errx(2, "usage: values new FILE | put FILE TEXT... | get FILE NUMBER");
	path = argv[2];
	/* With O_EXCL a disk has one writer; an ordinary file may have several, who spoil it. */
	fd = open(path, get ? O_RDONLY : O_RDWR | O_EXCL);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0 || getentropy(head + MAGIC, SEED))
		err(1, "%s can't be opened (hiops-bytes(4))", path);
	if (new)
		append(head, sizeof(head));
	else if (!next() || memcmp(record.value, head, MAGIC))
		errx(1, "%s has no log: values new %s begins one there", path, path);
	while (next() && ++count != wanted)
		;
	if (get && (!wanted || count < wanted))
		errx(1, "%s has %lu values, and no number %s", path, count, argv[3]);
	if (get)
		printf("%.*s\n", (int)le32toh(record.length), record.value);
	for (char **text = argv + 3; !get && *text; text++)
		append(*text, strlen(*text));
	if (!get && fdatasync(fd))
		err(1, "%s can't be made durable (hiops-bytes(4))", path);
	for (char **text = argv + 3; !get && *text; text++)
		printf("%lu\n", ++count);
	if (fflush(stdout))
		err(1, "stdout can't be written");
}

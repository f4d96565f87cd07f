// SPDX-License-Identifier: GPL-2.0
/*
 * asker SOCKET KEYS BYTES CONNECTIONS COUNTER LAST: fills a memcached with so many values of so
 * many bytes, and then asks for them at random, by each connection for one at a time. Every
 * thirtieth request sets a value anew instead. Each value that comes back is compared, byte by
 * byte.
 *
 * "filled N" on stdout says that N are set: all but the LAST ones, and 4.5 MB of others after
 * them, so that memcached's last buffer is theirs. With a line on stdin it sets those, and says so
 * again. With another it asks, until SIGTERM. The first 8 bytes of the file COUNTER count the gets.
 * SIGUSR1: latencies count from here. The last lines are "NAME NUMBER": gets, sets, missed and
 * wrong of the whole run, and of the latencies "p50", "p99", "p999" in ns.
 *
 * It does the same whatever is behind memcached, and so costs the same.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "load.h"

#define SETS 30
#define MOST_BYTES 4096
#define MOST_CONNECTIONS 256
/* While it fills: sets under way. */
#define AHEAD 64
#define PADS 4500000
/* An item's, beside its value. */
#define HEAD 60
/* A pause after so many bytes: who sets faster than memcached flushes has values evicted. */
#define PIECE 200000
#define PAUSE_US 20000

struct connection {
	int fd;
	bool sets;
	uint32_t key, floor;
	uint64_t begun;
	size_t have;
	char in[MOST_BYTES + 128];
};

static struct connection conns[MOST_CONNECTIONS];
static uint32_t keys, bytes;
/* Of each key: how often it was set, as asked for and as acknowledged. */
static uint32_t *asked, *stored;
static struct histogram histogram;
static uint64_t dice = 88172645463325252u;
static uint64_t sets, missed, wrong;
static volatile uint64_t *gets;
static volatile sig_atomic_t over, anew;

static void on_signal(int number)
{
	if (number == SIGTERM)
		over = 1;
	else
		anew = 1;
}

/* Whether it is what the key had at some time since `floor`. */
static bool right(const char *value, uint32_t key, uint32_t floor)
{
	uint32_t at = 1, left = bytes - 8, turn;
	uint64_t is, differs;

	memcpy(&is, value, 8);
	turn = (uint32_t)(is >> 32);
	if ((uint32_t)is != key || turn < floor || turn > asked[key])
		return false;
	for (differs = 0; left >= 8; left -= 8, at++) {
		memcpy(&is, value + at * 8, 8);
		differs |= is ^ word(key, turn, at);
	}
	is = word(key, turn, at);
	return !differs && !memcmp(value + at * 8, &is, left);
}

static void send_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

		if (n < 0)
			fail("asker: memcached has gone");
		data += n;
		length -= (size_t)n;
	}
}

static void ask_set(struct connection *c, uint32_t key)
{
	char text[MOST_BYTES + 128];
	int head = sprintf(text, "set key%08" PRIu32 " 0 0 %" PRIu32 "\r\n", key, bytes);

	c->key = key;
	c->sets = true;
	make(text + head, bytes, key, ++asked[key]);
	memcpy(text + head + bytes, "\r\n", 2);
	send_all(c->fd, text, (size_t)head + bytes + 2);
}

static void ask_get(struct connection *c, uint32_t key)
{
	char text[32] = "get key00000000\r\n";

	c->key = key;
	c->sets = false;
	c->floor = stored[key];
	for (char *at = text + 14; key; key /= 10)
		*at-- = (char)('0' + key % 10);
	c->begun = now();
	send_all(c->fd, text, 17);
}

static void ask(struct connection *c)
{
	c->have = 0;
	if (roll(&dice, SETS))
		ask_get(c, roll(&dice, keys));
	else
		ask_set(c, roll(&dice, keys));
}

/* The bytes of the answer that is there if it is whole, or 0. */
static size_t whole(struct connection *c)
{
	static const char end[] = "\r\nEND\r\n";
	const char *line = memchr(c->in, '\n', c->have);
	size_t length;

	if (!line)
		return 0;
	length = (size_t)(line - c->in) + 1;
	if (c->sets || c->in[0] != 'V')
		return length;
	length += bytes + sizeof(end) - 1;
	if (c->have < length)
		return 0;
	if (memcmp(c->in + length - (sizeof(end) - 1), end, sizeof(end) - 1)) {
		fprintf(stderr, "asker: no end of an answer: %.40s\n", c->in);
		exit(1);
	}
	return length;
}

/* Takes the answer; `length` is its bytes. */
static void answered(struct connection *c, size_t length)
{
	if (c->sets) {
		if (memcmp(c->in, "STORED\r\n", 8)) {
			fprintf(stderr, "asker: not stored: %.40s\n", c->in);
			exit(1);
		}
		stored[c->key] = asked[c->key];
		sets++;
		return;
	}
	note(&histogram, now() - c->begun);
	++*gets;
	if (length == 5 && !memcmp(c->in, "END\r\n", 5))
		missed++;
	else if (c->in[0] != 'V' || !right(c->in + length - 7 - bytes, c->key, c->floor))
		wrong++;
}

/* Reads what has come; whether the answer is whole, and taken. */
static bool read_some(struct connection *c)
{
	ssize_t n = recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, 0);
	size_t length;

	if (n <= 0)
		fail("asker: memcached has gone");
	c->have += (size_t)n;
	length = whole(c);
	if (length)
		answered(c, length);
	return length != 0;
}

/* Sets the keys from `first` to below `end`. */
static void fill(uint32_t first, uint32_t end)
{
	struct connection *c = &conns[0];
	char text[8 * AHEAD];
	uint32_t under_way = 0, since = 0;

	for (uint32_t key = first; key < end; key++) {
		ask_set(c, key);
		since += bytes + HEAD;
		if (++under_way < AHEAD && key + 1 < end)
			continue;
		if (recv(c->fd, text, under_way * 8u, MSG_WAITALL) != (ssize_t)(under_way * 8u))
			fail("asker: memcached has gone");
		for (; under_way; under_way--)
			if (memcmp(text + (under_way - 1) * 8u, "STORED\r\n", 8))
				fail("asker: a value was not stored");
		if (since >= PIECE) {
			usleep(PAUSE_US);
			since = 0;
		}
	}
	memcpy(stored + first, asked + first, (end - first) * sizeof(*asked));
}

static void ask_all(unsigned int count)
{
	struct epoll_event events[64], event = { .events = EPOLLIN };
	int poll = epoll_create1(0);

	for (unsigned int i = 0; i < count; i++) {
		event.data.ptr = &conns[i];
		if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &event))
			fail("asker: epoll");
		ask(&conns[i]);
	}
	while (count) {
		int n = epoll_wait(poll, events, 64, -1);

		if (n < 0 && errno != EINTR)
			fail("asker: epoll");
		if (anew) {
			memset(&histogram, 0, sizeof(histogram));
			anew = 0;
		}
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (!read_some(c))
				continue;
			if (over)
				count--;
			else
				ask(c);
		}
	}
}

static int connected(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(name.sun_path, path, sizeof(name.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)))
		fail(path);
	return fd;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	unsigned int count;
	uint32_t all, last;
	int fd;

	if (argc != 7) {
		fprintf(stderr, "usage: asker SOCKET KEYS BYTES CONNECTIONS COUNTER LAST\n");
		return 2;
	}
	keys = (uint32_t)strtoul(argv[2], NULL, 10);
	bytes = (uint32_t)strtoul(argv[3], NULL, 10);
	count = (unsigned int)strtoul(argv[4], NULL, 10);
	last = (uint32_t)strtoul(argv[6], NULL, 10);
	if (!keys || last > keys || bytes < 16 || bytes > MOST_BYTES || !count ||
	    count > MOST_CONNECTIONS)
		return 2;
	all = keys + PADS / (bytes + HEAD);
	asked = calloc(all, sizeof(*asked));
	stored = calloc(all, sizeof(*stored));
	fd = open(argv[5], O_RDWR);
	gets = mmap(NULL, sizeof(*gets), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!asked || !stored || gets == MAP_FAILED)
		fail("asker: memory");
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned int i = 0; i < count; i++)
		conns[i].fd = connected(argv[1]);
	/* The others have the numbers behind. */
	fill(0, keys - last);
	fill(keys, all);
	tell_filled(all - last);
	fill(keys - last, keys);
	tell_filled(last);
	ask_all(count);
	printf("gets %" PRIu64 "\nsets %" PRIu64 "\nmissed %" PRIu64 "\nwrong %" PRIu64 "\n", *gets,
	       sets, missed, wrong);
	tell_latencies(&histogram);
	return 0;
}

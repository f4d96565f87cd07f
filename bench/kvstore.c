// SPDX-License-Identifier: GPL-2.0
/*
 * kvstore FILE packed|padded KEYS THREADS SETS GETS-FILE SETS-FILE SEED: a small key-value store
 * with its index in memory and values of 400 bytes in a log from FILE's first byte on, and threads
 * that ask it for values at random, each for one at a time. One request in SETS sets a value anew;
 * 0: none. The first 8 bytes of GETS-FILE and of SETS-FILE count them. With 0 THREADS it begins a
 * log, sets each key once, and ends; with others it goes on with such a log.
 *
 *   | key 4 | CRC-32C of key and value 4 | value 400 | next record, or zeroes to 512 bytes
 *
 * The two layouts differ in that and in nothing else: packed, for a disk's bytes, one record
 * follows the other, and a get reads 408 bytes at any byte; padded, each has a block of its own, as
 * O_DIRECT takes no others, which a block device is opened with. A get is one pread. Key, CRC and
 * version of what comes are checked, always: it is to be one that was set no earlier than the last
 * that was acknowledged before the get began. A run with a larger SEED, from 1, has later versions,
 * so what an earlier run left is seen, too.
 *
 * A set goes into a buffer of 128 records, and who fills it writes it: in both layouts a whole
 * number of blocks. Nothing is flushed.
 *
 * "filled N" on stdout: so many keys are there. With a line on stdin it asks, until SIGTERM.
 * SIGUSR1: latencies count from here. The last lines are "NAME NUMBER": gets, those of them that
 * the buffers answered (memory), sets and wrong values of the whole run; the log's records and
 * their bytes of FILE; and of the gets' latencies "p50", "p99", "p999" in ns. Status 1 if a value
 * was wrong.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <nmmintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"

#define BYTES 400
#define BLOCK 512
#define BATCH 128
#define BUFFERS 4
#define MOST_THREADS 256
/* A buffer that holds no batch; a key that has no place. */
#define NONE UINT64_MAX

struct record {
	uint32_t key, sum;
	uint64_t value[BYTES / 8];
};

/* One of the index: where a key's newest record is, counted in records from the log's begin. */
struct entry {
	uint32_t key;
	_Atomic uint64_t place;
};

/* Of the batch `holds` it has the records, until they are on the drive. */
struct buffer {
	_Atomic uint64_t holds;
	char *data;
};

struct worker {
	pthread_t thread;
	uint64_t dice, memory, wrong;
	unsigned int since;
	struct record *record;
	struct histogram histogram;
};

static struct buffer buffers[BUFFERS];
static struct worker workers[MOST_THREADS];
static struct entry *index_of;
static uint32_t slots, keys, one_in;
/* All that this run sets is later than this one. */
static uint32_t first_version;
/* What of each key was acknowledged. */
static _Atomic uint32_t *versions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written = PTHREAD_COND_INITIALIZER;
/* Under the lock: records that have a place. */
static uint64_t records;
static int fd;
static size_t step;
/* Each a line of its own, in a file: the only words that all threads write to. */
static _Atomic uint64_t *gets, *sets;
static atomic_bool over;
static atomic_uint anew;

__attribute__((target("sse4.2"))) static uint32_t sum_of(const struct record *record)
{
	uint64_t sum = _mm_crc32_u32(~0u, record->key);

#pragma GCC unroll 10
	for (size_t i = 0; i < BYTES / 8; i++)
		sum = _mm_crc32_u64(sum, record->value[i]);
	return ~(uint32_t)sum;
}

/* The key's entry, or the empty one that it would have. */
static struct entry *find(uint32_t key)
{
	uint32_t at = key * 0x9e3779b1u;

	for (at ^= at >> 15;; at++) {
		struct entry *entry = &index_of[at & (slots - 1)];

		bool empty = atomic_load_explicit(&entry->place, memory_order_relaxed) == NONE;

		if (empty || entry->key == key)
			return entry;
	}
}

/* Writes the batch that is whole; the lock is taken again when it is on the drive. */
static void write_out(struct buffer *buffer, uint64_t batch)
{
	size_t length = BATCH * step;

	pthread_mutex_unlock(&lock);
	if (pwrite(fd, buffer->data, length, (off_t)(batch * length)) != (ssize_t)length)
		fail("kvstore: the log can't be written");
	pthread_mutex_lock(&lock);
	/* Whoever looked before this finds the buffer's data, who looks after it the drive's. */
	atomic_store_explicit(&buffer->holds, NONE, memory_order_release);
	pthread_cond_broadcast(&written);
}

static void set(uint32_t key)
{
	struct entry *entry = find(key);
	struct record *record;
	struct buffer *buffer;
	uint32_t version;

	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t holds;

		buffer = &buffers[records / BATCH % BUFFERS];
		holds = atomic_load_explicit(&buffer->holds, memory_order_relaxed);
		if (records % BATCH || holds == NONE)
			break;
		pthread_cond_wait(&written, &lock);
	}
	atomic_store_explicit(&buffer->holds, records / BATCH, memory_order_relaxed);
	version = atomic_load_explicit(&versions[key], memory_order_relaxed);
	version = (version > first_version ? version : first_version) + 1;
	record = (struct record *)(buffer->data + records % BATCH * step);
	record->key = key;
	make((char *)record->value, BYTES, key, version);
	record->sum = sum_of(record);
	/* Only now may a reader come by it. */
	entry->key = key;
	atomic_store_explicit(&entry->place, records, memory_order_release);
	atomic_store_explicit(&versions[key], version, memory_order_release);
	if (++records % BATCH == 0)
		write_out(buffer, records / BATCH - 1);
	pthread_mutex_unlock(&lock);
}

/* Takes the record from the buffer that has it; false: it is on the drive. */
static bool buffered(struct record *to, uint64_t place)
{
	struct buffer *buffer = &buffers[place / BATCH % BUFFERS];
	bool here;

	if (atomic_load_explicit(&buffer->holds, memory_order_acquire) != place / BATCH)
		return false;
	pthread_mutex_lock(&lock);
	here = atomic_load_explicit(&buffer->holds, memory_order_relaxed) == place / BATCH;
	if (here)
		memcpy(to, buffer->data + place % BATCH * step, sizeof(*to));
	pthread_mutex_unlock(&lock);
	return here;
}

static bool right(const struct record *record, uint32_t key, uint32_t floor)
{
	uint32_t version = (uint32_t)(record->value[0] >> 32);

	return record->key == key && record->sum == sum_of(record) &&
	       (uint32_t)record->value[0] == key && version >= floor;
}

static void get(struct worker *me, uint32_t key)
{
	uint32_t floor = atomic_load_explicit(&versions[key], memory_order_acquire);
	size_t length = step == BLOCK ? BLOCK : sizeof(struct record);
	uint64_t begun = now(), place;

	place = atomic_load_explicit(&find(key)->place, memory_order_acquire);
	if (buffered(me->record, place))
		me->memory++;
	else if (pread(fd, me->record, length, (off_t)(place * step)) != (ssize_t)length)
		fail("kvstore: a value can't be read");
	if (!right(me->record, key, floor))
		me->wrong++;
	note(&me->histogram, now() - begun);
}

static void *work(void *worker)
{
	struct worker *me = worker;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		uint32_t key = roll(&me->dice, keys);
		unsigned int since = atomic_load_explicit(&anew, memory_order_relaxed);

		if (since != me->since) {
			me->since = since;
			memset(&me->histogram, 0, sizeof(me->histogram));
		}
		if (one_in && !roll(&me->dice, one_in)) {
			set(key);
			atomic_fetch_add_explicit(sets, 1, memory_order_relaxed);
		} else {
			get(me, key);
			atomic_fetch_add_explicit(gets, 1, memory_order_relaxed);
		}
	}
	return NULL;
}

/* What a fill has left: each key once, in order. */
static void go_on_with_log(void)
{
	for (uint32_t key = 0; key < keys; key++) {
		struct entry *entry = find(key);

		entry->key = key;
		entry->place = key;
		versions[key] = 1;
	}
	records = keys;
}

/* All that there is memory for, and the index without a key. */
static void prepare(unsigned int threads)
{
	for (slots = 1; slots < 2 * keys; slots *= 2)
		;
	index_of = calloc(slots, sizeof(*index_of));
	versions = calloc(keys, sizeof(*versions));
	if (!index_of || !versions)
		fail("kvstore: memory");
	for (uint32_t i = 0; i < slots; i++)
		index_of[i].place = NONE;
	for (size_t i = 0; i < BUFFERS; i++) {
		buffers[i].holds = NONE;
		buffers[i].data = aligned_alloc(4096, BATCH * BLOCK);
		if (!buffers[i].data)
			fail("kvstore: memory");
		memset(buffers[i].data, 0, BATCH * BLOCK);
	}
	for (unsigned int i = 0; i < threads; i++) {
		workers[i].dice = 88172645463325252u + i * 0x9e3779b97f4a7c15u;
		workers[i].record = aligned_alloc(BLOCK, BLOCK);
		if (!workers[i].record)
			fail("kvstore: memory");
		memset(workers[i].record, 0, BLOCK);
	}
}

static _Atomic uint64_t *counter(const char *path)
{
	int file = open(path, O_RDWR);
	void *at = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		fail(path);
	return at;
}

/* Has the threads ask until SIGTERM; adds up what they tell. */
static struct worker *ask_all(unsigned int threads, const sigset_t *signals)
{
	struct worker *all = &workers[0];
	int number = 0;

	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			fail("kvstore: a thread");
	while (number != SIGTERM) {
		sigwait(signals, &number);
		if (number == SIGUSR1)
			atomic_fetch_add(&anew, 1);
	}
	atomic_store(&over, true);
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned int i = 1; i < threads; i++) {
		all->memory += workers[i].memory;
		all->wrong += workers[i].wrong;
		for (size_t n = 0; n < POWERS * STEPS; n++)
			all->histogram.counts[n] += workers[i].histogram.counts[n];
	}
	return all;
}

int main(int argc, char **argv)
{
	unsigned int threads;
	struct worker *all;
	sigset_t signals;
	struct stat is;

	if (argc != 9 || (strcmp(argv[2], "packed") && strcmp(argv[2], "padded"))) {
		fprintf(stderr, "usage: kvstore FILE packed|padded KEYS THREADS SETS GETS-FILE "
				"SETS-FILE SEED\n");
		return 2;
	}
	step = strcmp(argv[2], "packed") ? BLOCK : sizeof(struct record);
	keys = (uint32_t)strtoul(argv[3], NULL, 10);
	threads = (unsigned int)strtoul(argv[4], NULL, 10);
	one_in = (uint32_t)strtoul(argv[5], NULL, 10);
	first_version = (uint32_t)strtoul(argv[8], NULL, 10) << 20;
	/* A fill ends with a buffer that is full, so all of it is on the drive. */
	if (!keys || keys % BATCH || threads > MOST_THREADS || !first_version != !threads ||
	    !__builtin_cpu_supports("sse4.2"))
		return 2;
	if (stat(argv[1], &is))
		fail(argv[1]);
	fd = open(argv[1], O_RDWR | (S_ISBLK(is.st_mode) ? O_DIRECT : 0));
	if (fd < 0)
		fail(argv[1]);
	gets = counter(argv[6]);
	sets = counter(argv[7]);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	prepare(threads);
	if (threads)
		go_on_with_log();
	for (uint32_t key = 0; !threads && key < keys; key++)
		set(key);
	tell_filled(keys);
	if (!threads)
		return 0;
	all = ask_all(threads, &signals);
	printf("gets %" PRIu64 "\nmemory %" PRIu64 "\nsets %" PRIu64 "\nwrong %" PRIu64 "\n", *gets,
	       all->memory, *sets, all->wrong);
	printf("records %" PRIu64 "\nspace %" PRIu64 "\n", records, records * step);
	tell_latencies(&all->histogram);
	return all->wrong ? 1 : 0;
}

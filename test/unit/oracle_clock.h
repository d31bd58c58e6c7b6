/* The oracle of the runtime's tests checks the order of all uses of memory. Each stream, each event
 * and the host have a vector clock, and each allocation has a list of uses that may not be over
 * yet. So the oracle knows whether memory that is reused or freed may still be in use. A run of a
 * program rarely shows such a defect, because the driver has usually finished the work by chance.
 *
 * The parts:
 *   oracle_clock.h    clocks, memory and its owners, the rules
 *   oracle_driver.h   the substitute driver that uses them: streams, events, waits
 *   oracle_graph.h    captures and graphs of that driver
 *   oracle_device.h   its memory, copies and code, the table of its entry points
 *   oracle_world.h    the objects of a program (devices, arrays, streams), and its calls of kjit
 *   oracle_calls.h    operations on these objects
 *   oracle_process.h  runs a program in a separate process
 *   oracle_programs.h        small scripted programs, one for each known defect:
 *   oracle_reuse_test.c      memory that was reused too early
 *   oracle_lifetime_test.c   objects that ended, or were used, at the wrong time
 *   oracle_actor.h           the objects of random programs, and their choices
 *   oracle_memory_actions.h, oracle_order_actions.h, oracle_random.h   their actions
 *   oracle_test.c            random programs, and the reduction of a failing program
 *
 * An owner is one use of memory from its beginning to its end: an array from its creation to its
 * last release, or the work of one call of kjit with a block of the pool. The program itself has to
 * order the uses by one owner, which the oracle does not check. The rules:
 *   - A use of memory comes after every use by its earlier owners.
 *   - After an array is created on a stream, the stream's next operation comes after every earlier
 *     use of the memory.
 *   - Memory of an array that is alive does not get another owner, and when a graph is launched,
 * its memory has the same owner as at the capture.
 *   - Memory that is returned (to the driver, by free or munmap, or to a deleter) has no unfinished
 *     use: for the host, or for the stream on which the deleter's owner continues to use it.
 *   - Unloaded code is not queued, and destroyed objects are not used.
 *   - Only the program adds streams to a capture, and only the program breaks a capture.
 *
 * The host has one clock, also if there are several threads, because one thread may have passed
 * information to the others. So the oracle misses some defects between threads, but reports no
 * false ones. */
#ifndef ORACLE_CLOCK_H
#define ORACLE_CLOCK_H

#include "gpu_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  ORACLE_DEVICES = 3,
  ORACLE_STREAMS = 320, /* streams of a program, including destroyed ones */
  ORACLE_MOST_BLOCKS = 2048,
  ORACLE_TRACE_BYTES = 1 << 20
};

/* at[i]: number of operations of stream i that come before */
typedef struct oracle_clock {
  uint32_t at[ORACLE_STREAMS];
} oracle_clock;

typedef struct oracle_stream {
  const char *gone; /* the reason why the stream may not be used any more, or NULL */
  uint32_t index, device;
  bool is_legacy, is_blocking;
  /* the program has destroyed the stream; arrays that were created on it may keep it */
  bool is_released;
  unsigned thread; /* thread number of a per-thread default stream, otherwise 0 */
  /* clock: the operations that precede the next operation. queued: the operations up to and
   * including the last queued operation. If the stream waits for an event and no operation was
   * queued since, `queued` does not contain this wait. */
  oracle_clock clock, queued;
  struct oracle_capture *capture;
  oracle_clock captured; /* the same for operations in the capture */
} oracle_stream;

typedef struct oracle_use {
  uint32_t stream, tick;
  uint32_t owner;
  const char *call; /* of the driver */
} oracle_use;

typedef enum oracle_kind {
  ORACLE_DEVICE,  /* memory of cuMemAlloc, or of another library */
  ORACLE_MANAGED, /* of cuMemAllocManaged */
  ORACLE_PINNED,  /* of cuMemHostAlloc */
  ORACLE_HOST,    /* memory of malloc, for arrays on the CPU */
  ORACLE_OPENED   /* another process's */
} oracle_kind;

/* One allocation. Freed allocations stay in the table for messages. */
typedef struct oracle_block {
  char *address;
  size_t size;
  oracle_kind kind;
  uint32_t device, number;
  const char *gone;
  bool is_alive;  /* an array owns it */
  uint32_t owner; /* the last one */
  uint32_t use_count, use_capacity;
  oracle_use *uses;
} oracle_block;

/* The report that the parent process reads when a program has ended, with or without a
 * violation. */
typedef struct oracle_report {
  bool is_violated;
  _Atomic uint32_t operation; /* number of the running operation of a random program */
  _Atomic uint64_t operations, driver_calls, checks;
  char message[1024];
  size_t trace_bytes;
  char trace[ORACLE_TRACE_BYTES];
} oracle_report;

typedef struct oracle_state {
  pthread_mutex_t mutex; /* protects the fields below */
  oracle_clock host;
  uint32_t stream_count, block_count, owner_count;
  oracle_stream *streams[ORACLE_STREAMS];
  oracle_block blocks[ORACLE_MOST_BLOCKS];
  oracle_stream *legacy[ORACLE_DEVICES];
  /* allocated bytes of each device; limit of the bytes, 0 means no limit */
  size_t memory_bytes[ORACLE_DEVICES], memory_limit;
  uint64_t call_count;
  bool is_threaded, is_traced;
  bool is_faulty[ORACLE_DEVICES]; /* every call returns the fault until a reset */
  bool spreads_faults;            /* faults spread to the other devices */
  /* also checks that captures of the program itself are not broken */
  bool checks_host_captures;
  uint64_t random;    /* random state for pauses between threads */
  uint64_t paused_ns; /* total time of these pauses */
} oracle_state;

static oracle_state oracle;
static oracle_report *oracle_result; /* in memory shared with the parent process */

/* The state of this thread. */
static _Thread_local struct {
  /* the running call of kjit; NULL means that the program itself calls the driver */
  const char *call;
  uint32_t owner; /* owner number for memory that the call allocates for itself */
  void *context;  /* current */
  unsigned thread;
  /* host memory that was passed to the call */
  const void *host[4];
  uint32_t host_count;
  const oracle_stream *joins; /* stream that the program lets join a capture */
  /* Among the driver calls that can fail, call number fail_at and the next fail_more calls return
   * fail_with. 0 means that no call fails. */
  int fail_at, fail_more, fail_with, fail_malloc_at;
  bool is_in_driver;
  bool is_in_function; /* true inside a host function that a stream has called */
  /* captures may break, because the program itself breaks the rules or ends a capture */
  bool may_break;
} oracle_here = { .thread = 1 };

/* A function that is called once at a certain moment, without a lock of the driver, as another
 * thread could run then. */
typedef void (*oracle_hook)(void);
static _Atomic(oracle_hook) oracle_after_begin; /* the driver has begun a capture */
static _Atomic(oracle_hook) oracle_before_wait; /* a thread is about to wait for a whole device */
static _Atomic(oracle_hook) oracle_after_wait;  /* the driver has waited for the device */
/* a host function has finished its work but has not returned */
static _Atomic(oracle_hook) oracle_in_function;

/* ---- telling ---- */

static void oracle_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void oracle_trace(const char *format, ...)
{
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  enum { LEAST_ROOM = 512 };
  if (!oracle.is_traced) return;
  pthread_mutex_lock(&mutex);
  size_t at = oracle_result->trace_bytes, room = ORACLE_TRACE_BYTES - at;
  va_list arguments;
  va_start(arguments, format);
  int length = 0;
  if (room >= LEAST_ROOM && oracle.is_threaded)
    length = snprintf(oracle_result->trace + at, room, "%u| ", oracle_here.thread);
  if (room >= LEAST_ROOM)
    length +=
      vsnprintf(oracle_result->trace + at + length, room - (size_t)length, format, arguments);
  va_end(arguments);
  if (length > 0 && (size_t)length < room) oracle_result->trace_bytes += (size_t)length;
  pthread_mutex_unlock(&mutex);
}

/* Reports a violation and ends the program's process. */
static _Noreturn void oracle_violation(const char *format, ...)
  __attribute__((format(printf, 1, 2)));
static _Noreturn void oracle_violation(const char *format, ...)
{
  va_list arguments;
  char *message = oracle_result->message;
  va_start(arguments, format);
  int length = vsnprintf(message, sizeof oracle_result->message, format, arguments);
  va_end(arguments);
  if (length > 0 && (size_t)length < sizeof oracle_result->message)
    snprintf(message + length, sizeof oracle_result->message - (size_t)length, " [in %s]",
             oracle_here.call ? oracle_here.call : "the program's own call");
  oracle_trace("VIOLATION: %s\n", message);
  oracle_result->is_violated = true;
  _exit(1);
}

static const char *oracle_stream_text(const oracle_stream *stream)
{
  static _Thread_local char texts[4][48];
  static _Thread_local unsigned next;
  char *text = texts[next++ % 4];
  const char *kind = stream->is_legacy     ? "default stream"
                     : stream->thread      ? "thread's stream"
                     : stream->is_blocking ? "stream"
                                           : "non-blocking stream";
  snprintf(text, sizeof texts[0], "%s %u of cuda:%u", kind, stream->index, stream->device);
  return text;
}

static const char *oracle_block_text(const oracle_block *block)
{
  static const char *const kinds[] = { "device", "managed", "pinned", "host", "opened" };
  static _Thread_local char texts[4][48];
  static _Thread_local unsigned next;
  char *text = texts[next++ % 4];
  snprintf(text, sizeof texts[0], "%s memory %u", kinds[block->kind], block->number);
  return text;
}

/* ---- clocks ---- */

static void oracle_join(oracle_clock *clock, const oracle_clock *other)
{
  for (uint32_t i = 0; i < oracle.stream_count; i++)
    if (clock->at[i] < other->at[i]) clock->at[i] = other->at[i];
}

static bool oracle_is_before(const oracle_use *use, const oracle_clock *clock)
{
  return use->tick <= clock->at[use->stream];
}

/* Returns the clock of the operations that precede an operation which is queued on the stream now.
 * The default stream and the streams that are ordered with it, including per-thread streams, wait
 * for each other's operations only. If another stream waits for an event, the default stream does
 * not wait for it. If the default stream waits for an event, this wait is one of its operations. */
static oracle_clock oracle_next(const oracle_stream *stream)
{
  oracle_clock clock = stream->clock;
  oracle_join(&clock, &oracle.host);
  for (uint32_t i = 0; i < oracle.stream_count && stream->is_legacy; i++) {
    const oracle_stream *other = oracle.streams[i];
    if (other->device == stream->device && other->is_blocking) oracle_join(&clock, &other->queued);
  }
  if (stream->is_blocking) oracle_join(&clock, &oracle.legacy[stream->device]->queued);
  return clock;
}

static void oracle_tick(oracle_stream *stream)
{
  stream->clock = oracle_next(stream);
  stream->clock.at[stream->index]++;
  stream->queued = stream->clock;
}

static oracle_stream *oracle_add_stream(uint32_t device, bool is_blocking)
{
  if (oracle.stream_count == ORACLE_STREAMS) return NULL;
  oracle_stream *stream = calloc(1, sizeof *stream);
  if (!stream) abort();
  stream->index = oracle.stream_count;
  stream->device = device;
  stream->is_blocking = is_blocking;
  oracle.streams[oracle.stream_count++] = stream;
  return stream;
}

static void oracle_reset_state(void)
{
  memset(&oracle, 0, sizeof oracle);
  pthread_mutex_init(&oracle.mutex, NULL);
  oracle.owner_count = 1;
  for (uint32_t i = 0; i < ORACLE_DEVICES; i++) {
    oracle.legacy[i] = oracle_add_stream(i, true);
    oracle.legacy[i]->is_legacy = true;
  }
}

/* ---- memory ---- */

static oracle_block *oracle_add_block(void *address, size_t size, oracle_kind kind, uint32_t device)
{
  uint32_t i = 0;
  while (i < oracle.block_count && !oracle.blocks[i].gone) i++;
  /* a freed entry is reused only if the table is full */
  if (oracle.block_count < ORACLE_MOST_BLOCKS) i = oracle.block_count++;
  if (i == ORACLE_MOST_BLOCKS) abort();
  oracle_block *block = &oracle.blocks[i];
  free(block->uses);
  *block =
    (oracle_block){ .address = address, .size = size, .kind = kind, .device = device, .number = i };
  return block;
}

/* Returns the block with this address, or NULL if the oracle does not track the memory. */
static oracle_block *oracle_find_block(const void *address)
{
  for (uint32_t i = oracle.block_count; i-- > 0;) {
    oracle_block *block = &oracle.blocks[i];
    if (!block->gone && (const char *)address >= block->address &&
        (const char *)address < block->address + block->size)
      return block;
  }
  return NULL;
}

/* Checks that all uses of the block come before the clock; otherwise reports the first one that
 * does not. */
static void oracle_expect_unused(const oracle_block *block, const oracle_clock *clock,
                                 const char *what)
{
  oracle_result->checks++;
  for (uint32_t i = 0; i < block->use_count; i++) {
    const oracle_use *use = &block->uses[i];
    if (!oracle_is_before(use, clock))
      oracle_violation("%s: %s is in use by owner %u: %s, operation %u of %s", what,
                       oracle_block_text(block), use->owner, use->call, use->tick,
                       oracle_stream_text(oracle.streams[use->stream]));
  }
}

/* Records that the owner uses the block in the operation that the stream has just counted. */
static void oracle_use_block(oracle_block *block, const oracle_stream *stream, uint32_t owner,
                             const char *call)
{
  uint32_t count = 0, tick = stream->clock.at[stream->index];
  oracle_result->checks++;
  for (uint32_t i = 0; i < block->use_count; i++) {
    oracle_use *use = &block->uses[i];
    if (use->owner != owner && !oracle_is_before(use, &stream->clock))
      oracle_violation("%s on %s uses %s, which owner %u still uses: %s, operation %u of %s, is "
                       "not waited for",
                       call, oracle_stream_text(stream), oracle_block_text(block), use->owner,
                       use->call, use->tick, oracle_stream_text(oracle.streams[use->stream]));
    /* a use is over if a later operation of the same stream follows it */
    bool is_over = oracle_is_before(use, &oracle.host) || use->stream == stream->index;
    if (!is_over) block->uses[count++] = *use;
  }
  if (count == block->use_capacity) {
    block->use_capacity = count ? 2 * count : 4;
    block->uses = realloc(block->uses, block->use_capacity * sizeof *block->uses);
    if (!block->uses) abort();
  }
  block->uses[count++] = (oracle_use){ stream->index, tick, owner, call };
  block->use_count = count;
}

/* Returns the owner of the block: its array, or the call that has allocated it for itself. */
static uint32_t oracle_owner_of(oracle_block *block)
{
  if (!block->is_alive) block->owner = oracle_here.owner;
  return block->owner;
}

/* Must be called before the memory is really freed. */
static void oracle_end_block(oracle_block *block, const char *how, bool driver_waits)
{
  oracle_clock clock = oracle.host;
  /* with driver_waits, freeing waits for the work of the device's streams */
  for (uint32_t i = 0; i < oracle.stream_count && driver_waits; i++)
    if (oracle.streams[i]->device == block->device) oracle_join(&clock, &oracle.streams[i]->clock);
  for (uint32_t i = 0; i < block->use_count; i++) {
    const oracle_use *use = &block->uses[i];
    const oracle_stream *stream = oracle.streams[use->stream];
    if (oracle_is_before(use, &clock)) continue;
    oracle_violation("%s of %s, which owner %u still uses: %s, operation %u of %s", how,
                     oracle_block_text(block), use->owner, use->call, use->tick,
                     oracle_stream_text(stream));
  }
  if (block->is_alive && oracle_here.call)
    oracle_violation("%s of %s, which is of an array that is alive: owner %u", how,
                     oracle_block_text(block), block->owner);
  block->gone = how;
  block->use_count = 0;
}

#endif

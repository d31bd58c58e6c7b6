/* Which streams have used a piece of memory since it was known to be unused. Streams are told apart
 * by numbers that are never given twice in a process, so that a stream that has gone cannot be
 * taken for a later one. */
#ifndef KJ_LAST_USE_H
#define KJ_LAST_USE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of the device object in the upper bits. Below: 0 for the device's default stream,
 * KJ_STREAM_THREADS and the number of a thread for CUDA's default stream of that thread, else the
 * number of a stream object. */
typedef uint64_t kj_stream_id;

enum { KJ_STREAM_BITS = 40, KJ_MOST_USES = 10 };
#define KJ_STREAM_THREADS ((kj_stream_id)1 << (KJ_STREAM_BITS - 1))
#define KJ_STREAM_NONE ((kj_stream_id)0)
/* Of memory that more streams have used than are counted: all streams of the context. */
#define KJ_STREAM_ALL UINT64_MAX

/* A set; the places that are not taken yet are at its end. */
typedef struct kj_last_use {
  _Atomic kj_stream_id streams[KJ_MOST_USES];
} kj_last_use;

static inline kj_stream_id kj_read_use(const kj_last_use *use, uint32_t i)
{
  return atomic_load_explicit(&use->streams[i], memory_order_relaxed);
}

/* Adds one that is not there yet; by any thread. The others only by who owns the memory alone. */
void kj_add_use(kj_last_use *use, kj_stream_id stream);
/* `to` is empty, or holds one stream, in whose place the first one of `from` comes. */
void kj_copy_uses(kj_last_use *to, const kj_last_use *from);
/* Whether there is none but that one; NONE: whether there is none. */
bool kj_is_only_use(const kj_last_use *use, kj_stream_id stream);

/* What nearly every launch finds: a look at the first cache line only. */
static inline bool kj_is_recent_use(const kj_last_use *use, kj_stream_id stream)
{
  unsigned first = kj_read_use(use, 0) == stream, second = kj_read_use(use, 1) == stream;
  return first | second; /* without a branch */
}

/* The number of this thread, for its own default streams; from 1. */
extern _Thread_local uint64_t kj_own_thread
  __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint64_t kj_take_thread(void);

static inline kj_stream_id kj_of_this_thread(kj_stream_id threads)
{
  return threads | (kj_own_thread ? kj_own_thread : kj_take_thread());
}

#endif

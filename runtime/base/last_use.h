/* The streams that have used a block of memory since it was last idle. Streams are identified by
 * numbers that a process never uses twice, so a destroyed stream cannot be confused with a later
 * one. */
#ifndef KJ_LAST_USE_H
#define KJ_LAST_USE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A stream number. The upper bits are the number of the device object. The lower bits are 0 for the
 * device's default stream; KJ_STREAM_THREADS and a thread number for CUDA's per-thread default
 * stream; and the number of the stream object for any other stream. */
typedef uint64_t kj_stream_id;

enum { KJ_STREAM_BITS = 40, KJ_MOST_USES = 10 };
#define KJ_STREAM_THREADS ((kj_stream_id)1 << (KJ_STREAM_BITS - 1))
#define KJ_STREAM_NONE ((kj_stream_id)0)
/* An entry that means all streams of the context. It is used if more streams have used the memory
 * than a set can contain. */
#define KJ_STREAM_ALL UINT64_MAX

/* A set of streams. Unused entries are at the end. */
typedef struct kj_last_use {
  _Atomic kj_stream_id streams[KJ_MOST_USES];
} kj_last_use;

static inline kj_stream_id kj_read_use(const kj_last_use *use, uint32_t i)
{
  return atomic_load_explicit(&use->streams[i], memory_order_relaxed);
}

/* Adds a stream to the set unless the set contains it. Any thread may call this function. Only the
 * sole owner of the memory may call the other functions. */
void kj_add_use(kj_last_use *use, kj_stream_id stream);
/* Copies the set `from` to `to`. Before the call, `to` is empty or contains one stream, which the
 * first stream of `from` replaces. */
void kj_copy_uses(kj_last_use *to, const kj_last_use *from);
/* Returns whether the set contains no other stream than this one. If `stream` is NONE, returns
 * whether the set is empty. */
bool kj_is_only_use(const kj_last_use *use, kj_stream_id stream);

/* Returns whether the stream is one of the first two in the set, which is true for nearly every
 * launch. This test reads only one cache line. */
static inline bool kj_is_recent_use(const kj_last_use *use, kj_stream_id stream)
{
  unsigned first = kj_read_use(use, 0) == stream, second = kj_read_use(use, 1) == stream;
  return first | second; /* avoids a branch */
}

/* Returns the number, starting at 1, that identifies this thread's per-thread default streams. */
extern _Thread_local uint64_t kj_own_thread
  __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint64_t kj_take_thread(void);

static inline kj_stream_id kj_of_this_thread(kj_stream_id threads)
{
  return threads | (kj_own_thread ? kj_own_thread : kj_take_thread());
}

#endif

/* What pool.c and order.c share of a device's memory. */
#ifndef KJ_DEVICE_MEMORY_STATE_H
#define KJ_DEVICE_MEMORY_STATE_H

#include "memory/device_memory.h"

enum { KJ_POOL_CLASSES = 8 * 40 };

struct kj_pool {
  pthread_mutex_t mutex;
  kj_block *cached[KJ_POOL_CLASSES];
  _Atomic(kj_block *) parked; /* written under mutex */
  uint64_t used_bytes, cached_bytes, peak_bytes, allocations, hits, driver_allocations, flushes;
};

struct kj_memory {
  kj_attachment attachment; /* to the device */
  kj_pool pools[KJ_POOL_COUNT];
  pthread_mutex_t order_mutex; /* protects what follows */
  kjit_stream *streams;        /* of the host, alive */
  uint32_t next_slot;
  /* streams have gone, and the default stream waits for what they had queued */
  bool has_lost_streams;
  void *join_event; /* made when first needed */
};

/* The stream goes: blocks that are free in its order are free in the default stream's, or of
 * anyone. */
void kj_retag_blocks(kjit_stream *stream, bool is_idle);
/* kj_order_streams for who holds the order mutex, which comes before the pools' mutexes. */
kjit_status kj_order_streams_locked(kjit_device *device, kjit_stream *first, kjit_stream *next,
                                    kj_diagnostics *diagnostics);

#endif

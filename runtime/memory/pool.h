/* Blocks of memory: what an array's memory is, however it was made, until it is freed; and the
 * pools of a GPU, which keep blocks. */
#ifndef KJ_POOL_H
#define KJ_POOL_H

#include "memory/order.h"

typedef struct kj_block kj_block;

/* How a block ends. */
typedef struct kj_block_kind {
  /* free may be called while the block's own stream still uses the memory: what comes next does so
   * in its order. Else nothing may. */
  bool is_in_order;
  bool waits;      /* the host waits for what cannot be ordered; else the block is parked */
  bool calls_host; /* free calls a function of the host */
  void (*free)(kj_block *block);
} kj_block_kind;

/* One allocation; never divided. */
struct kj_block {
  kj_block *next; /* in a list of a pool, or of what is parked */
  const kj_block_kind *kind;
  kjit_device *device;
  uint32_t generation; /* of the device when it was allocated */
  uint32_t forgotten;  /* kj_memory.forgotten when its stream was known to be alive */
  uint64_t address;
  size_t size_bytes;
  /* taken for; NONE: no stream's */
  kj_stream_id stream;
  uint64_t stamp;  /* kj_runtime.waits when it was cached or parked */
  kj_last_use use; /* the array's own line has it as long as there is an array */
  void *data;      /* of the kind */
  int file;        /* the CPU's shared memory */
};

typedef enum kj_pool_kind {
  KJ_POOL_DEVICE,
  KJ_POOL_PINNED, /* host memory that copies of launches go through */
  KJ_POOL_COUNT
} kj_pool_kind;

enum { KJ_POOL_CLASSES = 8 * 40 };

typedef struct kj_pool {
  pthread_mutex_t mutex;
  /* not used by anything but their stream, by none where a wait has passed since */
  kj_block *cached[KJ_POOL_CLASSES];
  uint64_t used_bytes, cached_bytes, peak_bytes, allocations, hits, driver_allocations, flushes;
} kj_pool;

struct kj_memory {
  kj_attachment attachment; /* to the device */
  kj_pool pools[KJ_POOL_COUNT];
  /* the number of the last wait for the device that has ended well (kj_runtime.waits) */
  _Atomic uint64_t waited;
  _Atomic uint32_t wrapped;   /* streams of the host's own, which it may capture itself */
  _Atomic uint32_t forgotten; /* streams that have gone */
  /* under streams_mutex */
  uint32_t waiting; /* waits for the device under way: no capture begins meanwhile */
  kjit_stream *streams;
  uint64_t stream_count;
  /* a stream has gone whose work is neither waited for nor ordered: only a wait for the device
   * helps; the number of waits then, 0: none */
  uint64_t lost_order;
  void *join_event; /* made when first needed */
};

/* The layer's part of a device whose work is queued. */
kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics);

/* Memory of at least size_bytes, aligned to 256, that may be used on the stream now (PINNED: by the
 * host, too; stream is not looked at). From the cache, else from the driver; where that is out of
 * memory the cache is given back and the driver asked once more. Errors: DEVICE_MEMORY, MEMORY,
 * DEVICE. */
kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* A block around memory that something else than a pool has given. NULL: out of memory. */
kj_block *kj_make_block(kjit_device *device, const kj_block_kind *kind);
/* Ends a block whose memory was never given. */
void kj_drop_block(kj_block *block);
/* The owner has done with it: frees it, in the order of its stream where that is enough for the
 * kind, or parks it until its uses have passed. block NULL is fine. */
void kj_release_block(kj_block *block);
/* The stream that it was taken for, retained: kj_release_stream; NULL: a default stream, or one
 * that has gone. */
kjit_stream *kj_hold_stream(const kj_block *block);
/* A block that a reset of its device has taken. */
bool kj_is_gone(const kj_block *block);
/* Frees what is parked and has passed, or can be ordered by now. calls_host: those, too, that call
 * the host's code: no lock is held. */
void kj_settle_parked(kj_runtime *runtime, bool calls_host);
/* The stream goes: blocks that are free in its order are free in the default stream's, or, where
 * the host has waited, for anyone. */
void kj_hand_blocks_on(kjit_device *device, kj_stream_id stream, bool is_passed);

#endif

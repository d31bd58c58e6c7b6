/* Blocks of memory: what an array's memory is, however it was made, until it is freed; and the
 * pools of a device, which keep blocks. */
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
  kjit_memory memory;
  int file; /* see kj_allocation */
  /* taken for; NONE: no stream's */
  kj_stream_id stream;
  uint64_t stamp;   /* kj_runtime.waits when it was cached or parked */
  kj_last_use use;  /* the array's own line has it as long as there is an array */
  uint64_t content; /* cached: the number of what was left in it, 0: nothing in particular */
  void *data;       /* of the kind */
};

typedef enum kj_pool_kind {
  KJ_POOL_DEVICE,
  KJ_POOL_PINNED, /* host memory that copies of launches go through */
  KJ_POOL_COUNT
} kj_pool_kind;

/* The layer's part of a device whose work is queued. */
kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics);

/* Memory of at least size_bytes, aligned to 256, that may be used on the stream now (PINNED: by the
 * host, too; stream is not looked at). From the cache, else from the device; where that is out of
 * memory the cache is given back and the device asked once more. Errors: DEVICE_MEMORY, MEMORY,
 * DEVICE. */
kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* The same of a block of the device's pool that was released with this content, and that no graph
 * is captured with; NULL: there is none that may be used now. content: not 0. */
kjit_status kj_take_content(kjit_device *device, uint64_t content, size_t size_bytes,
                            kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* Memory that is the device's again when it ends, of any device. The same errors. */
kjit_status kj_allocate_block(kjit_device *device, kjit_memory memory, size_t size_bytes,
                              kj_diagnostics *diagnostics, kj_block **block);
/* A block around memory that something else than a pool has given; NULL: of its kind's data. NULL:
 * out of memory. */
kj_block *kj_make_block(kjit_device *device, const kj_block_kind *kind,
                        const kj_allocation *allocation);
kj_allocation kj_describe_block(const kj_block *block);
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
/* Before the native stream goes: the default stream waits for what it has queued, or the host does.
 * Blocks that are free in its order are free in the default stream's, or for anyone. */
void kj_forget_stream(kjit_stream *stream);

#endif

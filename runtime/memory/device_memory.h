/* Device memory in the order of streams: the pools of a GPU, and what orders memory that several
 * streams have used. */
#ifndef KJ_DEVICE_MEMORY_H
#define KJ_DEVICE_MEMORY_H

#include "base/runtime.h"
#include "cuda/cuda.h"

typedef enum kj_pool_kind {
  KJ_POOL_DEVICE,
  KJ_POOL_PINNED, /* host memory that copies of launches go through */
  KJ_POOL_COUNT
} kj_pool_kind;

typedef struct kj_pool kj_pool;

/* One allocation of the driver, or of the host's allocator; never divided. */
typedef struct kj_block {
  struct kj_block *next; /* in a list of the pool */
  kjit_device *device;
  uint32_t generation; /* of the device when it was allocated */
  uint8_t kind;        /* kj_pool_kind */
  bool is_hosts;       /* of kjit_config.device_allocator: never cached */
  /* cached: nothing that is queued uses it; else it is free in the order of stream */
  bool is_idle;
  bool is_joined; /* other streams have used it, which its own waits for */
  uint64_t address;
  size_t size_bytes;
  /* borrowed: kj_forget_stream comes before its end; NULL: the default stream */
  kjit_stream *stream;
} kj_block;

/* The layer's part of a device: the pools of one whose work is queued. */
kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics);

/* Memory of at least size_bytes, aligned to 256, that may be used on the stream now (PINNED: by the
 * host, too; stream is not looked at). From the cache, else from the driver; where that is out of
 * memory the cache is given back and the driver asked once more. Errors: DEVICE_MEMORY, MEMORY,
 * DEVICE. */
kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* Gives it back: free for what the stream does after what is queued on it now. PINNED: nothing may
 * use it any more. block NULL is fine. */
void kj_give_block(kj_block *block, kjit_stream *stream);
/* The same where nothing that is queued uses it any more: free for every stream. block NULL is
 * fine. */
void kj_give_idle_block(kj_block *block);
/* The same where streams have used it that cannot be ordered now: free after the next wait for the
 * whole device. */
void kj_park_block(kj_block *block);
/* What is parked, before waiting for the whole device; then it is given to the cache, or parked
 * again where waiting has failed. */
kj_block *kj_take_parked(kjit_device *device);
void kj_return_parked(kj_block *blocks, bool is_idle);
/* Gives cached blocks back to the driver until at most keep_bytes are left. */
void kj_trim_pool(kjit_device *device, kj_pool_kind kind, uint64_t keep_bytes);

/* ---- order.c ---- */

/* Streams of a device that memory may be used on. */
void kj_add_stream(kjit_stream *stream);
/* Before the native stream goes: waits where cached blocks are free only in its order. */
void kj_forget_stream(kjit_stream *stream);
kjit_stream *kj_retain_stream(kjit_stream *stream);
void kj_release_stream(kjit_stream *stream);
/* Makes `stream` wait for everything that the array was used for on other streams. false: that
 * cannot be said now, and only waiting for the device helps. */
bool kj_join_uses(kjit_array *array, kjit_stream *stream);
/* The host waits for all of it. */
void kj_wait_uses(kjit_array *array);
/* Makes one stream wait for what another one has queued; NULL: the device's default stream. */
kjit_status kj_order_streams(kjit_device *device, kjit_stream *first, kjit_stream *next,
                             kj_diagnostics *diagnostics);

/* Makes the default stream of one GPU wait for what another one's has queued. */
kjit_status kj_order_devices(kjit_device *first, kjit_device *next, kj_diagnostics *diagnostics);
static inline void *kj_native(const kjit_stream *stream) { return stream ? stream->native : NULL; }

#endif

/* Blocks of memory, and a device's pools, which cache free blocks. An array owns a block from its
 * allocation until its release. */
#ifndef KJ_POOL_H
#define KJ_POOL_H

#include "memory/order.h"

typedef struct kj_block kj_block;

/* A kind of block, which determines how the block is freed. */
typedef struct kj_block_kind {
  /* free may be called while the block's own stream still uses the memory, because later uses are
   * ordered on that stream. If is_in_order is false, free may be called only when nothing uses the
   * memory. */
  bool is_in_order;
  bool waits;      /* if the uses cannot be ordered, the host waits for them; if this is false, the
                    * block is parked */
  bool calls_host; /* free calls a function of the application */
  void (*free)(kj_block *block);
} kj_block_kind;

/* An allocation, which is never divided. */
struct kj_block {
  kj_block *next; /* next block in a list of a pool or of parked blocks */
  const kj_block_kind *kind;
  kjit_device *device;
  uint32_t generation; /* generation of the device at the allocation */
  uint32_t forgotten; /* value of kj_memory.forgotten at a time when the block's stream was alive */
  uint64_t address;
  size_t size_bytes;
  kjit_memory memory;
  int file; /* see kj_allocation.file */
  /* stream for which the block was taken, or NONE */
  kj_stream_id stream;
  uint64_t stamp;   /* value of kj_runtime.waits when the block was cached or parked */
  kj_last_use use;  /* unused while an array owns the block: the uses are then in kjit_array.line */
  uint64_t content; /* for a cached block: number that identifies its content, or 0 */
  void *data;       /* data of the kind */
};

typedef enum kj_pool_kind {
  KJ_POOL_DEVICE,
  KJ_POOL_PINNED, /* pool of host memory for the copies of launches */
  KJ_POOL_COUNT
} kj_pool_kind;

/* Attaches the layer to a device whose work is queued. */
kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics);

/* Returns a block of at least size_bytes, aligned to 256 bytes, that the stream may use now. The
 * host may use a PINNED block, too; stream is ignored for such a block. The block comes from the
 * pool, or from the device if the pool has no suitable block. If the device is out of memory, the
 * pools are emptied and the allocation is tried once more. Errors: DEVICE_MEMORY, MEMORY,
 * DEVICE. */
kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* Returns a block of the device's pool that was released with this nonzero content number and is
 * not part of a captured graph. Returns NULL if no cached block may be used now. */
kjit_status kj_take_content(kjit_device *device, uint64_t content, size_t size_bytes,
                            kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block);
/* Allocates memory that returns to the device, and not to a pool, when it is freed. Errors: as
 * kj_take_block. */
kjit_status kj_allocate_block(kjit_device *device, kjit_memory memory, size_t size_bytes,
                              kj_diagnostics *diagnostics, kj_block **block);
/* Makes a block for memory that does not come from a pool. allocation: NULL means that the data of
 * the kind defines the memory. Returns NULL if out of memory. */
kj_block *kj_make_block(kjit_device *device, const kj_block_kind *kind,
                        const kj_allocation *allocation);
kj_allocation kj_describe_block(const kj_block *block);
/* Frees a block that never had memory. */
void kj_drop_block(kj_block *block);
/* Called when the owner no longer needs the block. Frees it in the order of its stream if the kind
 * allows this, and otherwise parks it until its uses have finished. block may be NULL. */
void kj_release_block(kj_block *block);
/* Returns the stream for which the block was taken, retained; release it with kj_release_stream.
 * Returns NULL for a default stream or a destroyed stream. */
kjit_stream *kj_hold_stream(const kj_block *block);
/* Returns whether a reset of the device has freed the block. */
bool kj_is_gone(const kj_block *block);
/* Frees parked blocks whose uses have finished or can be ordered now. If calls_host is set, this
 * includes blocks whose free function calls application code; the caller must then hold no lock. */
void kj_settle_parked(kj_runtime *runtime, bool calls_host);
/* Called before a native stream is destroyed. The default stream waits for its work or, if the
 * default stream cannot wait, the host does. Blocks that were free in the order of this stream
 * become free in the order of the default stream, or for all streams. */
void kj_forget_stream(kjit_stream *stream);

#endif

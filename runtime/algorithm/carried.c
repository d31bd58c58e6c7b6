/* The carried value of scans and segmented reductions, which a chunk of a sequence passes to the
 * next chunk. Each kernel's source declares it as a struct with a value and a number. */
#include "algorithm/algorithm.h"
#include "ir/context.h"

/* maximum size of a value that threads in a warp exchange by shuffles */
enum { MOST_BYTES = 128 };

/* Returns the alignment of a value of this size: the largest power of two that divides the size. */
static uint32_t alignment_of(uint32_t bytes) { return bytes & -bytes; }

static uint32_t round_up(uint32_t bytes, uint32_t alignment)
{
  return (bytes + alignment - 1) / alignment * alignment;
}

ka_carried ka_carry(ka_call *call, const char *field, kjit_type number, const char *text,
                    uint32_t bytes)
{
  uint32_t own = kj_element_bytes(call->context->types, number), alignment = alignment_of(bytes);
  uint32_t all = round_up(round_up(own, alignment) + bytes, (uint32_t)ka_most(alignment, own));
  ka_carried c = { field, ka_type_text(call, number), text, all };
  if (!ka_is_cpu(call) && all > MOST_BYTES)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "a value of %u bytes and its index of %u bytes are too large together: the maximum on "
            "a GPU is %d bytes",
            bytes, own, MOST_BYTES);
  return c;
}

/* ---- source text ---- */

const char *ka_use_carried(ka_kernel *kernel, const ka_carried *c, kjit_type element)
{
  const char *value = element == KJIT_ANY ? c->value : ka_use_type(kernel, element);
  kj_append_format(kernel->funcs, "struct carried_value { %s: %s; value: %s }\n", c->field, c->type,
                   value);
  return "zero(carried_value)";
}

/* ---- temporary storage ---- */

uint32_t ka_add_carried(ka_call *call, const ka_carried *c, uint64_t count)
{
  return ka_add_work(call, KJIT_U64, ka_count_words(c->bytes, count), false);
}

const char *ka_view_carried(ka_kernel *kernel, uint32_t work, uint64_t count)
{
  const char *name = ka_use_work(kernel, work), *extent = ka_use_count(kernel, count);
  return kj_format(&kernel->call->arena,
                   "view(carried_value[%s], bitcast(carried_value*, pointer(%s[0])))", extent,
                   name);
}

uint64_t ka_look_back_size(uint32_t bytes, uint64_t tiles, uint64_t sequences)
{
  return 16 + sequences * ka_divide_up(bytes, 4) * (tiles + ka_divide_up(tiles, 32));
}

/* ---- the shape of a launch ---- */

/* Best values, measured on an H200 and on CPU cores that share one main memory. */
enum {
  GPU_VALUE_BYTES = 128, /* bytes of values that a thread holds */
  GPU_MOST_ITEMS = 31,
  GPU_TILE = 512,       /* threads of a block */
  GPU_SMALL_TILE = 256, /* threads in a block if there are few steps */
  GPU_WIDE_VALUE = 32,  /* value size in bytes above which a block has fewer threads */
  GPU_WIDE_TILE = 128,
  GPU_BLOCKS = 3,   /* minimum number of resident blocks for each multiprocessor; large tiles hide
                     * the latency of loads */
  GPU_TILES = 4,    /* if a multiprocessor has fewer tiles than this, threads get only GPU_FEW
                     * steps */
  GPU_FEW = 3,      /* steps of a thread if there are few tiles */
  CPU_PIECES = 4,   /* number of chunks for each core */
  CPU_LEAST = 16384 /* minimum number of steps in a chunk */
};

/* Chooses the tiling. The number of steps of a thread is odd, so that adjacent threads access
 * different banks of shared memory. */
ka_carried_tiling ka_tile_carried(const ka_call *call, uint32_t bytes, uint64_t steps,
                                  bool is_simple)
{
  uint64_t cores = ka_core_count(call);
  ka_carried_tiling t = { 1, 1, 0, 1 };
  if (ka_is_cpu(call)) {
    t.blocks = ka_most(ka_least(steps / CPU_LEAST, CPU_PIECES * cores), 1);
    return t;
  }
  t.threads = bytes > GPU_WIDE_VALUE ? GPU_WIDE_TILE : GPU_TILE;
  t.items = (uint32_t)ka_most(ka_least(GPU_VALUE_BYTES / bytes, GPU_MOST_ITEMS + 1), 2) - 1;
  if (t.items > GPU_FEW) t.items |= 1;
  while (t.items > GPU_FEW && steps < GPU_TILES * cores * t.threads * t.items) {
    t.threads = (uint32_t)ka_least(t.threads, GPU_SMALL_TILE);
    t.items /= 2;
  }
  t.blocks = ka_divide_up(steps, (uint64_t)t.threads * t.items);
  if (t.threads == GPU_TILE && is_simple) t.at_once = GPU_BLOCKS;
  return t;
}

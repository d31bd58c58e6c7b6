/* The shortest way of a launch on a GPU: what a specialization expects of the arguments as tables
 * that are compared without a branch, and the parameter block written straight from the arguments.
 * Between two launches the driver has used the caches and the branch predictor for itself, so that
 * the lines that a launch touches and the branches that it takes count as much as what it computes;
 * test/bench/launch_cost.py prints both.
 *
 * This path gives the answer of the general one or declines: then kj_follow_plan tries, and after
 * that kj_prepare_call. */
#ifndef KJ_DISPATCH_DIRECT_H
#define KJ_DISPATCH_DIRECT_H

#include "code/dispatch.h"

typedef struct kj_plan kj_plan;

enum {
  KJ_MOST_DIRECT = 64,
  KJ_DIRECT_BYTES = 1024,
  KJ_DIRECT_NOWHERE = KJ_DIRECT_BYTES /* where parameters go that the kernel ignores */
};

/* An array argument. Where all of them are kjit arrays, form says all there is to know. */
typedef struct kj_direct_array {
  uint64_t form; /* kj_array_form */
  uint16_t to;   /* in the parameter block: the address */
  uint8_t index; /* of the argument */
  uint8_t element_bytes, rank;
  bool has_aligned_rows;
} kj_direct_array;

/* The same of a tensor: its first words, as they have to be. */
typedef struct kj_direct_tensor {
  uint64_t place, type; /* device type and number; rank and element */
} kj_direct_tensor;

/* A scalar that is known at run time only. */
typedef struct kj_direct_scalar {
  uint64_t head; /* kind, access and type of the argument, as one word */
  uint16_t to;
  uint8_t index, size_bytes;
  bool is_bool;
} kj_direct_scalar;

typedef struct kj_direct_extent {
  uint8_t argument, dimension;
  uint16_t to;
  bool is_wide;
} kj_direct_extent;

/* Positions among the arrays. */
typedef struct kj_direct_pair {
  uint8_t i, j;
} kj_direct_pair;

/* An argument that block or grid depend on. */
typedef struct kj_direct_shaping {
  uint8_t index, mode; /* kj_plan_mode */
} kj_direct_shaping;

typedef struct kj_direct {
  /* one cache line: what every launch looks at */
  _Alignas(64) bool is_shapeless; /* the kernel has neither @block nor @grid */
  bool is_default_device;         /* a call without a stream and a device runs here */
  bool knows_block, is_grid32;
  uint8_t array_count, scalar_count, same_count, extent_count;
  void *function;
  kj_launch_mark *mark;
  kjit_device *device;
  uint64_t place; /* of the device */
  uint32_t forks; /* of the context's process */
  uint32_t argument_count, parameter_bytes;
  uint32_t most_threads, most_block_z, least_shared_bytes; /* of a block */
  /* the next */
  uint32_t most_shared_bytes;
  /* of a block that nobody gives; 0: not known here, or it has to be given */
  uint32_t default_threads;
  kj_direct_array *arrays; /* with has_one_written the one that is written first */
  kj_direct_scalar *scalars;
  kj_direct_extent *extents;
  bool has_one_written; /* all pairs have the first array */
  /* the one grid_range runs over an extent of an argument, and nothing else decides block or grid
   */
  bool has_plain_range;
  uint8_t range_argument, range_dimension, order_count, shaping_count;
  uint16_t pair_count;
  uint32_t elements_a_thread; /* at least 1 */
  uint32_t block[3];
  kj_direct_pair *pairs;
  /* of the arrays by address, where that shows that no two meet; order_count 0: the pairs do */
  uint8_t *order;
  kj_direct_tensor *tensors;
  uint8_t *same; /* arguments that are known when compiling */
  kj_direct_shaping *shaping;
  const kj_plan *plan;
  char memory[]; /* of all tables */
} kj_direct;

/* Launches by the tables of this thread's last specialization of the kernel, where it has any: a
 * kjit_status, or KJ_OTHER_WAY: nothing was launched, another way has to be tried. */
enum { KJ_OTHER_WAY = -1 };
int kj_launch_directly(kjit_kernel *kernel, const kjit_launch_config *config,
                       const kjit_arg *arguments, size_t count);
/* direct_learn.c: the tables of a plan; NULL: such launches cannot go this way, or out of memory.
 * free() releases them. */
kj_direct *kj_learn_direct(const kj_call *call, const kjit_specialization *specialization,
                           const kj_plan *plan);

#endif

/* The learned way of a launch: what the last launch of a kernel looked like, as tables that the
 * arguments of the next one are compared with. It writes the parameter block straight from the
 * arguments and needs neither bound arguments nor a key.
 *
 * It gives the answer of the general way (launch.c) or declines, and then the general way is gone.
 * Builds with assertions go both ways and compare what they decide.
 *
 * Between two launches the driver has used the caches and the branch predictor for itself, so that
 * the lines that a launch touches and the branches that it takes count as much as what it computes;
 * test/bench/launch_cost.py prints both. */
#ifndef KJ_LAUNCH_LEARNED_H
#define KJ_LAUNCH_LEARNED_H

#include "code/specialization.h"

enum {
  KJ_MOST_LEARNED = 64,
  KJ_LEARNED_BYTES = 2560, /* of a parameter block */
  /* Behind the block: a dummy place for what the kernel ignores, then what the shape depends on. */
  KJ_LEARNED_NOWHERE = KJ_LEARNED_BYTES,
  KJ_LEARNED_INPUTS = KJ_LEARNED_NOWHERE + sizeof(uint64_t),
  KJ_LEARNED_ROOM = KJ_LEARNED_INPUTS + KJ_MOST_SHAPE_INPUTS * sizeof(uint64_t)
};

/* An array argument, in C order. Where all of them are kjit arrays, form says all there is to know.
 */
typedef struct kj_learned_array {
  uint64_t form; /* kj_array_form */
  /* in the parameter block: the address, and the first extent as 32 bits; of rank 0 there is none
   */
  uint16_t to, extent_to;
  uint8_t index; /* of the argument */
  uint8_t element_bytes, alignment;
  uint8_t rank, facts;
} kj_learned_array;

/* The same of a tensor: its first words, as they have to be. */
typedef struct kj_learned_tensor {
  uint64_t place, type; /* device type and number; rank and element */
} kj_learned_tensor;

/* The head of no argument: the type of a plain number depends on its value. */
#define KJ_LEARNED_NUMBER UINT64_MAX

/* A scalar that is known at run time only. */
typedef struct kj_learned_scalar {
  uint64_t head; /* kind, access and type of the argument, as one word; or KJ_LEARNED_NUMBER */
  /* of a plain number with limits: the least one, and the greatest one less the least one; else
   * every value is in the range */
  uint64_t least, span;
  uint16_t to;
  uint8_t index, size_bytes;
  bool is_bool, is_annotated; /* is_annotated: takes any number that its type holds */
  kjit_type type;             /* weak: a plain number for a parameter without a type */
} kj_learned_scalar;

/* Any other extent, and what the shape depends on. */
typedef struct kj_learned_extent {
  uint8_t argument, dimension;
  uint16_t to;
  bool is_wide;
} kj_learned_extent;

/* Positions among the arrays, and how their memory is related. */
typedef struct kj_learned_pair {
  uint8_t i, j, relation;
} kj_learned_pair;

/* An argument that is known when compiling. */
typedef struct kj_learned_same {
  kjit_arg argument;
  uint8_t index;
} kj_learned_same;

typedef struct kj_learned {
  /* one cache line: what every launch looks at */
  /* is_plain: on a queue, where a launch has only to pass its parameters once its shape is known;
   * is_default_device: a call without a stream and a device runs here */
  _Alignas(64) bool is_plain;
  bool is_default_device, notes_uses;
  uint8_t argument_count, array_count, scalar_count, same_count, extent_count, input_count;
  uint16_t pair_count;
  uint32_t forks; /* of the context's process */
  kjit_device *device;
  uint64_t place; /* of the device */
  kj_learned_array *arrays;
  kj_learned_scalar *scalars;
  kj_learned_pair *pairs;
  /* of the arrays by address, where that shows that no two meet; order_count 0: the pairs do */
  uint8_t *order;
  kj_learned_extent *extents;
  kj_learned_tensor *tensors;
  kj_learned_same *same;
  kj_bound *bound;  /* one for each parameter, as the launch had it that this was learned of */
  uint8_t *shaping; /* arguments that have to be bound where the shape is not known */
  uint16_t *others; /* parameters in kj_code.parameters that are made from bound arguments */
  uint16_t facts;   /* KJ_CALL_FACT_* */
  uint8_t order_count, shaping_count, other_count;
  bool has_overlaps; /* some pairs are not disjoint */
  bool knows_block;
  uint32_t block[3];
  _Alignas(uint64_t) char memory[]; /* of all tables */
} kj_learned;

/* Launches by the tables of this thread's last specialization of the kernel, where it has any: a
 * kjit_status, or KJ_OTHER_WAY: nothing was launched, the general way has to be gone. */
enum { KJ_OTHER_WAY = -1 };
int kj_launch_learned(kjit_kernel *kernel, const kjit_launch_config *config,
                      const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics);
/* The same up to the launch, for a specialization that is held: the arguments are in block, which
 * has room for its parameters, and known is the shape. False: declined. */
bool kj_follow_learned(kjit_specialization *specialization, const kjit_launch_config *config,
                       const kjit_arg *arguments, size_t count, kj_known_shape *known, char *block);
/* learn.c: after the call went the general way and found the specialization: learns from it, where
 * that was not tried before. */
void kj_learn(const kj_call *call, kjit_specialization *specialization, const kjit_arg *arguments,
              size_t count);
/* For assertions: whether the general way decides as the learned one has: key, grid, block,
 * clusters, shared memory and parameter block. */
bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count);

#endif

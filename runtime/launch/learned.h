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
  /* dummy offset for parameters that the kernel ignores */
  KJ_LEARNED_NOWHERE = KJ_LEARNED_BYTES
};

/* An array argument, in C order. Where all of them are kjit arrays, form says all there is to know.
 */
typedef struct kj_learned_array {
  uint64_t form; /* kj_array_form */
  uint16_t to;   /* in the parameter block: the address */
  uint8_t index; /* of the argument */
  uint8_t element_bytes, alignment, rank, facts;
} kj_learned_array;

/* The same of a tensor: its first words, as they have to be. */
typedef struct kj_learned_tensor {
  uint64_t place, type; /* device type and number; rank and element */
} kj_learned_tensor;

/* A scalar that is known at run time only. */
typedef struct kj_learned_scalar {
  uint64_t head; /* kind, access and type of the argument, as one word */
  uint16_t to;
  uint8_t index, size_bytes;
  bool is_bool, is_annotated; /* is_annotated: takes any number that its type holds */
  kjit_type type;             /* weak: a plain number for a parameter without a type */
} kj_learned_scalar;

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
  _Alignas(64) bool is_plain; /* on a queue, where a launch has only to pass its parameters */
  bool is_shapeless;          /* the kernel has no attribute that block or grid depend on */
  bool is_default_device;     /* a call without a stream and a device runs here */
  bool knows_block, notes_uses;
  uint8_t array_count, scalar_count, same_count, extent_count;
  void *function;
  kj_launch_mark *mark;
  kjit_device *device;
  uint64_t place; /* of the device */
  uint32_t forks; /* of the context's process */
  uint32_t argument_count;
  uint16_t parameter_bytes;
  uint16_t facts; /* KJ_CALL_FACT_* */
  /* the next: limits of a block */
  uint32_t most_threads, most_block_z, least_shared_bytes, most_shared_bytes;
  /* of a block that nobody gives; 0: not known here, or it has to be given */
  uint32_t default_threads;
  kj_learned_array *arrays; /* with has_one_written the one that is written first */
  kj_learned_scalar *scalars;
  kj_learned_extent *extents;
  bool has_one_written; /* all pairs have the first array, and are disjoint */
  bool has_overlaps;    /* some pairs are not disjoint */
  /* the one grid_range runs over an extent of an argument, and nothing else decides block or grid
   */
  bool has_plain_range;
  uint8_t range_argument, range_dimension, order_count, shaping_count, other_count;
  uint16_t pair_count;
  uint32_t elements_a_thread; /* at least 1 */
  uint32_t block[3];
  kj_learned_pair *pairs;
  /* of the arrays by address, where that shows that no two meet; order_count 0: the pairs do */
  uint8_t *order;
  kj_learned_tensor *tensors;
  kj_learned_same *same;
  kj_bound *bound;  /* one for each parameter, as the launch had it that this was learned of */
  uint8_t *shaping; /* arguments that have to be bound where the launch is not plain */
  uint16_t *others; /* parameters in kj_code.parameters that are made from bound arguments */
  char memory[];    /* of all tables */
} kj_learned;

/* Launches by the tables of this thread's last specialization of the kernel, where it has any: a
 * kjit_status, or KJ_OTHER_WAY: nothing was launched, the general way has to be gone. */
enum { KJ_OTHER_WAY = -1 };
int kj_launch_learned(kjit_kernel *kernel, const kjit_launch_config *config,
                      const kjit_arg *arguments, size_t count);
/* The same up to the launch, for a specialization that is held: call gets its shape, and its
 * parameters, in memory of call->parameter_room bytes, are those of the arguments. False: declined.
 */
bool kj_follow_learned(kj_call *call, kjit_specialization *specialization,
                       const kjit_arg *arguments, size_t count);
/* learn.c: after the call went the general way and found the specialization: learns from it, where
 * that was not tried before. */
void kj_learn(const kj_call *call, kjit_specialization *specialization, const kjit_arg *arguments,
              size_t count);

#endif

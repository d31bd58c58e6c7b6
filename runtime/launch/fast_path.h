/* The fast path of a launch. After a launch, tables describe the expected arguments of the next
 * launch of the same kernel. The fast path compares the arguments with the tables and writes the
 * parameter block directly from the arguments. It binds no arguments and builds no key.
 *
 * The fast path either gives the same result as the slow path (launch.c), or gives up, and the slow
 * path runs. Builds with assertions run both and compare their decisions.
 *
 * The driver fills the CPU's caches and branch predictor with its own data in each launch. So the
 * number of cache lines and branches that the next launch needs matters as much as its
 * computations; test/bench/launch_cost.py prints these numbers. */
#ifndef KJ_LAUNCH_FAST_PATH_H
#define KJ_LAUNCH_FAST_PATH_H

#include "code/specialization.h"

enum {
  KJ_MOST_TABLE_ARRAYS = 64,
  KJ_TABLE_BYTES = 2560, /* size of a parameter block */
  /* Two areas follow the parameter block: NOWHERE, to which the fast path writes values that the
   * kernel does not need, and INPUTS, the values on which the launch shape depends. */
  KJ_TABLE_NOWHERE = KJ_TABLE_BYTES,
  KJ_TABLE_INPUTS = KJ_TABLE_NOWHERE + sizeof(uint64_t),
  KJ_TABLE_ROOM = KJ_TABLE_INPUTS + KJ_MOST_SHAPE_INPUTS * sizeof(uint64_t)
};

/* An array argument in C order. If all arrays are kjit arrays, `form` is sufficient to compare
 * them. */
typedef struct kj_table_array {
  uint64_t form; /* see kj_array_form */
  uint64_t mask; /* the bits of the form that matter to this kernel */
  /* Offsets in the parameter block at which the array's address, and its first extent as 32 bits,
   * are written. An array of rank 0 has no extent. */
  uint16_t to, extent_to;
  uint8_t index; /* index of the argument */
  uint8_t element_bytes, alignment;
  uint8_t rank, facts;
  bool is_result; /* whether the key contains the fact KJ_FACT_LARGE */
} kj_table_array;

/* The corresponding row for an argument that is a tensor: the values that the first words of the
 * kjit_tensor must have. */
typedef struct kj_table_tensor {
  uint64_t place, type; /* device type and number; rank and element type */
} kj_table_tensor;

/* The head in the row of an untyped number. No argument has this head; it is needed because the
 * type of an untyped number depends on its value. */
#define KJ_TABLE_NUMBER UINT64_MAX

/* A scalar argument that the kernel receives at run time. */
typedef struct kj_table_scalar {
  uint64_t head; /* kind, access and type of the argument as one word; or KJ_TABLE_NUMBER */
  /* For an untyped number with limits: the smallest allowed value, and the difference between the
   * largest and the smallest allowed value. For other scalars, the range contains every value. */
  uint64_t least, span;
  uint16_t to;
  uint8_t index, size_bytes;
  /* is_annotated: the parameter takes any number that its type can represent */
  bool is_bool, is_annotated;
  kjit_type type; /* type of the parameter; a weak type if the argument is an untyped number and the
                     parameter has no type */
} kj_table_scalar;

/* An extent that a launch copies to the parameter block, or to the inputs on which the launch shape
 * depends. */
typedef struct kj_table_extent {
  uint8_t argument, dimension;
  uint16_t to;
  bool is_wide;
} kj_table_extent;

/* Indices of two arrays, and the relation between the memory of these arrays. */
typedef struct kj_table_pair {
  uint8_t i, j, relation;
} kj_table_pair;

/* An argument that must have the same value in the next launch, because the value is compiled into
 * the code. */
typedef struct kj_table_same {
  kjit_arg argument;
  uint8_t index;
} kj_table_same;

typedef struct kj_launch_table {
  /* the fields that every launch reads, in one cache line */
  /* is_plain: if a launch's shape is known, the launch only has to pass its parameters to the
   * driver. is_default_device: a call without stream and device runs on this device. */
  _Alignas(64) bool is_plain;
  bool is_default_device, notes_uses;
  uint8_t argument_count, array_count, scalar_count, same_count, extent_count, input_count;
  uint16_t pair_count;
  uint32_t forks; /* value of kj_forks when the context was created, which identifies the process */
  kjit_device *device;
  uint64_t place; /* number of the device */
  kj_table_array *arrays;
  kj_table_scalar *scalars;
  kj_table_pair *pairs;
  /* the arrays in the order of their addresses, if this order shows that they are disjoint; if
   * order_count is 0, the fast path compares the pairs */
  uint8_t *order;
  kj_table_extent *extents;
  kj_table_tensor *tensors;
  kj_table_same *same;
  kj_bound *bound;  /* a bound argument for each parameter, copied from the launch for which the
                       tables were made */
  uint8_t *shaping; /* arguments that must be bound if the shape is not known */
  uint16_t *others; /* indices in kj_code.parameters of the parameters that are computed from bound
                       arguments */
  uint16_t facts;   /* KJ_CALL_FACT_* */
  uint8_t order_count, shaping_count, other_count;
  bool has_overlaps; /* some pairs of arrays are not disjoint */
  bool knows_block;
  uint32_t block[3];
  _Alignas(uint64_t) char memory[]; /* memory of all tables */
} kj_launch_table;

/* Tries to use the tables for launching the specialization that this thread launched last for the
 * kernel. Returns a kjit_status, or KJ_OTHER_WAY if the tables do not apply. In this case nothing
 * was launched, and the slow path must run. */
enum { KJ_OTHER_WAY = -1 };
int kj_launch_by_table(kjit_kernel *kernel, const kjit_launch_config *config,
                       const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics);
/* Applies the tables of a specialization that the caller holds, without a launch: writes the
 * parameters to `block`, which is large enough, and the shape to `known`. Returns false if the
 * tables do not apply. */
bool kj_follow_table(kjit_specialization *specialization, const kjit_launch_config *config,
                     const kjit_arg *arguments, size_t count, kj_known_shape *known, char *block);
/* Creates the tables after a call on the slow path has found the specialization, unless an earlier
 * call has tried this (launch_table.c). */
void kj_make_launch_table(const kj_call *call, kjit_specialization *specialization,
                          const kjit_arg *arguments, size_t count);
/* For assertions: returns whether the slow path decides the same as the fast path about key, grid,
 * block, clusters, shared memory and parameter block. */
bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count);

#endif

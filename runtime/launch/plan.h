/* What a specialization knows about the calls that lead to it: enough to see, argument by argument
 * and without making a key, that a call has exactly this key.
 *
 * A thread's last specialization of a kernel is tried first. Where its plan declines - a fact
 * differs, an array has another form, something is an error - the general path binds, makes the
 * key, hashes it and looks it up. A plan that does not decline gives the general path's answer. */
#ifndef KJ_DISPATCH_PLAN_H
#define KJ_DISPATCH_PLAN_H

#include <stddef.h>

#include "code/dispatch.h"

typedef enum kj_plan_mode {
  KJ_PLAN_ARRAY,  /* C order, not empty, 32-bit offsets */
  KJ_PLAN_SCALAR, /* .type, at run time */
  KJ_PLAN_NUMBER, /* a plain number for a parameter without a type */
  KJ_PLAN_SAME    /* compile-time: the same argument again, or none */
} kj_plan_mode;

/* One cache line: between two launches the driver has used the cache for itself. */
typedef struct kj_plan_row {
  /* of the bound argument: kind, rank, type, facts */
  _Alignas(64) char head[offsetof(kj_bound, value)];
  /* arrays: device type and number; rank and element, as a tensor has them */
  uint64_t place, form;
  uint64_t mask; /* scalars: of the bits */
  kjit_type type;
  uint8_t mode, facts, rank, element_bytes, alignment;
  bool is_aligned, is_annotated;
} kj_plan_row;

/* A compile-time argument. */
typedef struct kj_plan_same {
  kjit_arg argument;
  kj_bound bound;
} kj_plan_same;

typedef struct kj_plan_pair {
  uint16_t i, j;
  uint8_t relation; /* kj_relation */
} kj_plan_pair;

/* One parameter of the kernel: where it is among the bound arguments, and where it goes. */
typedef enum kj_plan_copy_op {
  KJ_COPY_8,
  KJ_COPY_4,
  KJ_COPY_EXTENT_8,
  KJ_COPY_EXTENT_4,
  KJ_COPY_OTHER
} kj_plan_copy_op;
typedef struct kj_plan_copy {
  uint32_t from, to; /* bytes */
  uint32_t op, dimension;
} kj_plan_copy;

struct kj_plan {
  uint32_t argument_count; /* that the host gives */
  bool is_default_device;  /* a call without a stream and a device runs here */
  bool knows_block, grid32, is_programmatic;
  uint32_t block[3];
  kj_plan_row *rows;
  kj_plan_same *same; /* of the rows that are SAME */
  kj_plan_pair *pairs;
  uint32_t pair_count, copy_count;
  kj_plan_copy *copies;
};

/* After the call went the general way and found the specialization: makes its plan where there is
 * none and one can be made. */
void kj_learn_plan(const kj_call *call, kjit_specialization *specialization,
                   const kjit_arg *arguments, size_t count);
void kj_free_plan(kj_plan *plan);
/* Whether the call has the key of the specialization; binds and configures it as the general way
 * does. Neither allocates, locks nor reports. */
bool kj_follow_plan(kj_call *call, const kjit_specialization *specialization,
                    const kjit_arg *arguments, size_t count);

/* kj_marshal for a call that has a plan's specialization. */
void kj_marshal_by_plan(const kj_call *call, const kj_plan *plan, const kj_code *code, char *block);

#endif

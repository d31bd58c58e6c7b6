/* CPU: the loops that are proposed as parallel, as host_parallel.c and host_address.c see them. */
#ifndef KJ_TARGET_HOST_PARALLEL_H
#define KJ_TARGET_HOST_PARALLEL_H

#include "target/host.h"

enum { KJ_MOST_TERMS = 8 };

/* An address or a number in an iteration: constant + step * number of the iteration + scale * value
 * for each term, all in bytes. kind: whether terms change in the loop; OTHER: so that there is no
 * constant step. LOST: nothing is known. */
typedef struct kg_linear {
  enum { KJ_LINEAR_KNOWN, KJ_LINEAR_OTHER, KJ_LINEAR_UNKNOWN, KJ_LINEAR_LOST } kind;
  int64_t constant, step;
  uint32_t term_count;
  struct term {
    LLVMValueRef value;
    int64_t scale;
  } terms[KJ_MOST_TERMS];
} kg_linear;

typedef struct kg_access {
  LLVMValueRef instruction, root; /* what the address is counted from */
  size_t block;                   /* its number */
  bool is_store, may_be_grouped, is_hidden;
  int64_t size;
  kg_linear at;
} kg_access;

typedef struct kg_loop_view {
  kt_compilation *c;
  LLVMTargetDataRef layout;
  int64_t start, iterations;         /* of the counter; 0: not known */
  unsigned scope_kind, noalias_kind; /* of metadata */
  LLVMBasicBlockRef header, latch;
  bool is_innermost;                 /* else nothing has an order */
  KJ_LIST(LLVMBasicBlockRef) blocks; /* in an order in which each comes before its successors */
  KJ_LIST(kg_access) accesses;       /* in that order */
  size_t words;
  uint64_t *behind; /* for each block, which come behind it in the same iteration */
} kg_loop_view;

/* blocks.count: of none of the loop. */
size_t kg_find_block(const kg_loop_view *v, LLVMBasicBlockRef block);
static inline bool kg_is_in_loop(const kg_loop_view *v, LLVMBasicBlockRef block)
{
  return kg_find_block(v, block) < v->blocks.count;
}

/* ---- host_address.c ---- */

/* start, iterations: of a loop whose only counter goes from one constant to another; else none. */
void kg_count_iterations(kg_loop_view *v);
/* The address in each iteration, counted from *root. */
kg_linear kg_find_address(const kg_loop_view *v, LLVMValueRef pointer, LLVMValueRef *root);
kg_linear kg_subtract_linear(kg_linear x, kg_linear y);

#endif

/* CPU: the analysis of a loop that is proposed as parallel, for host_parallel.c and
 * host_address.c. */
#ifndef KJ_TARGET_HOST_PARALLEL_H
#define KJ_TARGET_HOST_PARALLEL_H

#include "target/host.h"

enum { KJ_MOST_TERMS = 8 };

/* An address or a number in an iteration, in bytes: the sum of a constant, step * (number of the
 * iteration), and scale * value for each term. `kind` tells whether the terms' values can change in
 * the loop. OTHER means that there is no constant step. LOST means that nothing is known. */
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
  LLVMValueRef instruction, root; /* `at` is the address of the access relative to `root` */
  size_t block;                   /* number of its block */
  bool is_store, may_be_grouped, is_hidden;
  int64_t size;
  kg_linear at;
} kg_access;

typedef struct kg_loop_view {
  kt_compilation *c;
  LLVMTargetDataRef layout;
  /* start of the counter; number of iterations, or 0 if it is not known */
  int64_t start, iterations;
  unsigned scope_kind, noalias_kind; /* metadata kinds */
  LLVMBasicBlockRef header, latch;
  /* false if the loop contains another loop; the blocks and accesses are then not ordered */
  bool is_innermost;
  KJ_LIST(LLVMBasicBlockRef)
  blocks;                      /* the blocks in topological order: each block precedes its
                                * successors */
  KJ_LIST(kg_access) accesses; /* in the order of the blocks */
  size_t words;
  uint64_t *behind; /* bit sets: for each block, the blocks that follow it in the same iteration */
} kg_loop_view;

/* Returns the block index, or blocks.count if the block is not in the loop. */
size_t kg_find_block(const kg_loop_view *v, LLVMBasicBlockRef block);
static inline bool kg_is_in_loop(const kg_loop_view *v, LLVMBasicBlockRef block)
{
  return kg_find_block(v, block) < v->blocks.count;
}

/* Finds the loop to which a branch in its latch belongs. One of the two successors of the latch is
 * the header. */
bool kg_find_loop(kg_loop_view *v, LLVMValueRef branch);
/* Lists the loads and stores of the loop. */
void kg_find_accesses(kg_loop_view *v);
/* Returns whether two accesses with different roots certainly do not overlap. This is certain if
 * their alias scopes say so (kl_annotate_access), or if one root is memory of the code itself and
 * the other root is an address in the kernel's parameters. */
bool kg_are_apart(const kg_loop_view *v, const kg_access *a, const kg_access *b);

/* ---- host_address.c ---- */

/* If the only counter of the loop runs between two constants, sets start and iterations. */
void kg_count_iterations(kg_loop_view *v);
/* Returns the address in each iteration, relative to *root. */
kg_linear kg_find_address(const kg_loop_view *v, LLVMValueRef pointer, LLVMValueRef *root);
kg_linear kg_subtract_linear(kg_linear x, kg_linear y);

#endif

/* Adjoint kernels: declarations that the files adjoint*.c share. A kernel consists of grid loops
 * (loops over a grid_range) and of statements between them that compute values. A kernel's adjoint
 * consists of parts, each of which belongs to one grid loop in the kernel. Each part is made from
 * its own copy of the kernel's body, prepared for differentiation (prepare.c), and uses its own
 * variables.
 *
 * The files are:
 *
 *   adjoint_index.c     Finds accesses whose index is a grid loop variable plus a constant.
 *
 *   adjoint_plan.c      Chooses for each array how the derivatives of its elements are summed.
 *
 *   adjoint_copies.c    Sums in each thread, if many iterations load the same few elements.
 *
 *   adjoint_gather.c    Creates loops in which each array element sums its own contributions.
 *
 *   adjoint_sums.c      Emits loads of derivatives, and additions to them, for reverse.c.
 *
 *   adjoint.c           Creates the adjoint and the first part of each loop.
 *
 *   adjoint_facts.c     Reports the chosen sums to the user.
 *
 *   adjoint_threads.c   Checks barriers and stores in kernels without a grid loop.
 *
 *   adjoint_shared.c    Differentiates shared arrays and loops over a block_range.
 *
 *   adjoint_rerun.c     Handles shared arrays in loops whose body the reverse pass runs again.
 *
 *   slice.c             Removes statements that no derivative needs. Rejects a needed value if the
 *                       kernel has overwritten it. */
#ifndef KJ_DERIVE_ADJOINT_H
#define KJ_DERIVE_ADJOINT_H

#include "derive/derive.h"

enum { KD_MOST_GRID = 3, KD_MOST_GATHERED = 64, KD_MOST_COPIED = 64 };

/* The analyzed index of an access: the sum of a variable of the grid loop, a symbol (a value that
 * is the same in the whole grid) and an offset. The variable and the symbol can be absent. The
 * offset lies between least and most. */
typedef struct kd_index {
  bool is_known;
  /* number of the grid loop's variable in the index, starting at 1; 0 if the index has none */
  uint32_t variable;
  const kt_expr *symbol; /* a value in the index that is the same in the whole grid, or NULL */
  int64_t least, most;
  bool is_exact; /* the offset has the same value in all iterations */
  bool is_round; /* the index is this sum modulo the extent of the grid loop */
  /* The array extent, if a negative index counts from the end; otherwise NULL. */
  const kt_expr *period;
} kd_index;

/* An access to an array argument of the kernel. */
typedef struct kd_site {
  const kt_expr *load; /* NULL if the access is a store */
  const kt_stmt *store;
  const kt_var *root;
  kj_location location;
  bool is_whole;           /* the access is to the parameter itself, not to a view of it */
  bool is_uniform;         /* the index is the same in the whole grid */
  bool is_before;          /* the access is before the grid loop */
  uint32_t rank, loops;    /* loops: number of inner loops around the access */
  const kt_stmt *inner[8]; /* the inner loops, the outermost first */
  kd_index indices[KJ_MAX_RANK];
} kd_site;

/* How an adjoint kernel computes the derivatives with respect to the elements in an array. D is the
 * array of these derivatives. Most values apply either to the loads from the array or to the stores
 * to it. */
typedef enum kd_way {
  KD_UNUSED,
  KD_ADDED,    /* loads: each iteration adds to different elements of D */
  KD_GATHERED, /* loads: a thread per element of D sums the contributions of all iterations */
  /* loads: atomic additions to D; a thread first sums its terms if the index is grid-uniform */
  KD_ATOMIC,
  KD_OUTPUT, /* stores: each store reads the derivative of the stored element from D */
  /* stores: an iteration stores several times to one element; only the last of these stores reads
   * D */
  KD_OVERWRITTEN,
  KD_ACCUMULATED, /* stores of the form a[i] += e; treated like KD_OUTPUT */
  /* loads and stores access the same element; the reverse pass updates D in place */
  KD_CHANGED
} kd_way;

/* How the index of an element and an offset give the iteration that contributes to the element. */
typedef enum kd_turn {
  KD_STRAIGHT, /* index - offset */
  KD_FROM_END, /* index - offset - extent of the array */
  KD_ROUND     /* (index - offset) modulo the extent of the grid loop */
} kd_turn;

/* An iteration that contributes to an element, relative to the element's index: an offset for each
 * variable of the grid loop. */
typedef struct kd_gather_offset {
  uint32_t loop; /* the number of the grid loop */
  int64_t offset[KD_MOST_GRID];
  kd_turn turn[KD_MOST_GRID];
} kd_gather_offset;

typedef struct kd_array_plan {
  const kt_var *array;
  kd_way loads;   /* how D is computed for the loads in all loops */
  kd_way *stores; /* how D is computed for each loop's stores; indexed by loop */
  uint32_t first; /* number of the first grid loop that loads from the array */
  /* ADDED, GATHERED: for each variable of the grid loop, the array dimension that it indexes */
  uint32_t dimension[KD_MOST_GRID];
  KJ_LIST(kd_gather_offset) offsets;
  /* ATOMIC: number of loads with an atomic addition, and number with a thread-local sum */
  uint32_t atomics, sums;
  /* ATOMIC: each thread has a local array, the copy, in which it sums the derivatives of the
   * elements with indices from least to most. copied is the number of elements in the copy; 0 means
   * that there is no copy. */
  uint32_t copied;
  int64_t least[KJ_MAX_RANK], most[KJ_MAX_RANK];
} kd_array_plan;

typedef struct kd_part kd_part;

/* A statement of the adjoint, and the number of the grid loop whose part emitted it. */
typedef struct kd_owned {
  const kt_stmt *stmt;
  uint32_t loop;
} kd_owned;

typedef struct kd_plan {
  KJ_LIST(kd_array_plan) arrays;
  KJ_LIST(kd_part *) firsts; /* the first part of each loop */
  KJ_LIST(kd_owned) owned;
} kd_plan;

/* The sum that a thread computes for one element whose indices are the same in the whole grid. */
typedef struct kd_thread_sum {
  kt_expr *array; /* array of derivatives */
  kt_exprs indices;
  kt_var *sum;
  kj_location location;
} kd_thread_sum;

/* An atomic addition whose result is not used, and the statement `a[i] = a[i] + e` that has
 * replaced it. */
typedef struct kd_taken_sum {
  const kt_stmt *stmt;
  const kt_expr *atomic;
} kd_taken_sum;

/* A load from a shared array in a body that runs again. `store` may have overwritten the value that
 * the load read in the first run. */
typedef struct kd_stale_load {
  const kt_expr *load;
  const kt_stmt *store;
} kd_stale_load;

struct kd_part {
  kd_derivation d;
  kd_plan *plan;
  KJ_LIST(kd_taken_sum) taken_sums;
  /* The kernel has no grid loop, and each thread works on its own elements. `loop` then contains
   * the whole body and has no variables. */
  bool is_by_threads;
  bool has_shared; /* only if is_by_threads: elements of shared arrays have derivatives */
  /* only if is_by_threads; indexed by variable: the value may differ between threads in a block */
  bool *differs;
  /* the loops whose bodies are emitted a second time, the outermost first */
  KJ_LIST(const kt_stmt *) reruns;
  KJ_LIST(kd_stale_load) stale;
  uint32_t number; /* number of the part's grid loop, from 0 */
  kt_stmts before; /* the statements before the grid loop */
  kt_stmt *loop;   /* the grid loop */
  kt_stmt *sync;   /* the grid_sync() between the previous loop and this one, or NULL */
  bool is_last;    /* no loop follows */
  KJ_LIST(kd_site) sites;
  /* The next four arrays have an entry for each variable. */
  /* the value of a variable with a single assignment, otherwise NULL */
  const kt_expr **definitions;
  /* whether a variable is assigned before, or inside, the grid loop */
  bool *is_before, *is_inside;
  const kt_stmt **loops; /* the inner loop if the variable is its loop variable, otherwise NULL */
  /* The next four members belong to parts that gather; they are NULL or empty in the first part of
   * a loop. */
  const kd_array_plan *gathered;
  const kd_gather_offset *offset;
  kt_vars position; /* the indices of the gathered element */
  /* the sum of the contributions to the element; NULL if an array dimension is not indexed by a
   * variable of the grid loop, so that an iteration can contribute to several elements */
  kt_var *sum;
  kt_var **copies; /* indexed by parameter: the local array (see kd_array_plan.copied), or NULL */
  /* OVERWRITTEN, indexed by parameter: the flag that is set when a store has read the derivative */
  kt_var **taken;
  KJ_LIST(kd_thread_sum) sums;
};

/* ---- adjoint_index.c ---- */

/* Finds the accesses of the part to array arguments and analyzes their indices. */
void kd_find_sites(kd_part *part);
/* Returns the index after replacing each variable that has a single value by that value. */
kt_expr *kd_resolve(kd_part *part, const kt_expr *e);
/* Returns the number of a variable of the grid loop, from 1; 0 for any other variable. */
uint32_t kd_grid_number(const kd_part *part, const kt_var *var);
bool kd_equal_exprs(const kt_expr *a, const kt_expr *b);
kd_index kd_index_of(kd_part *part, const kt_expr *e);

/* ---- adjoint_plan.c ---- */

/* Makes the plans of all arrays. plan->firsts must contain the first part of each loop. */
void kd_make_plan(kd_plan *plan);
kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array);

/* ---- adjoint_facts.c ---- */

/* Report the plan of the finished adjoint. kd_note_plan records facts; kd_remark_plan emits a
 * remark. */
void kd_note_plan(kd_plan *plan);
void kd_remark_plan(kd_plan *plan);

/* ---- adjoint.c: functions for parts that gather ---- */

/* Makes a part for the grid loop with this number. */
kd_part *kd_make_part(const kd_derivation *of, kd_plan *plan, uint32_t number);
void kd_add_derivatives(kd_part *part, bool inside);
/* Emits one iteration of the grid loop: its forward pass and its reverse pass. */
void kd_emit_iteration(kd_part *part);
kt_stmt *kd_new_grid_loop(kd_derivation *d, const kt_stmt *like);
/* Records that the part has emitted the statements from index `first` to the end of the list. */
void kd_own_statements(kd_part *part, size_t first);

/* ---- adjoint_gather.c ---- */

/* Returns whether the derivatives of these loads can be gathered. If so, stores the offsets in the
 * plan. */
typedef KJ_LIST(const kd_site *) kd_sites;
bool kd_plan_gather(const kd_part *part, kd_array_plan *plan, const kd_sites *loads);
/* Emits a loop over the elements in an array. Each iteration sums the contributions to its
 * element. */
void kd_emit_gather(kd_part *first, const kd_array_plan *plan);
/* Emits code that adds t, the derivative with respect to a loaded value, to the sum of the element
 * that is being gathered. The emitted code adds t only if the load at the site reads that
 * element. */
void kd_add_gathered(kd_part *part, const kd_node *node, const kd_site *site, kt_expr *t);

/* ---- adjoint_copies.c ---- */

/* Returns whether the site always accesses elements that are in the copy (kd_array_plan.copied). */
bool kd_is_copied(const kd_array_plan *plan, const kd_site *site);
/* Plans a copy for the elements that these loads read if their number is small enough. */
void kd_plan_copies(kd_array_plan *plan, const kd_sites *loads);
void kd_add_to_copy(kd_part *part, const kd_array_plan *plan, const kd_node *node, kt_expr *t);
/* Emits code before the grid loop that sets the copies to 0. */
void kd_clear_copies(kd_part *part);
/* Emits code after the grid loop that adds the copies to memory. lanes (GPU only): variable with
 * the number of threads in the warp. */
void kd_add_copies(kd_part *part, kt_var *lanes);

/* ---- adjoint_threads.c ---- */

/* Checks a kernel without a grid loop and plans its arrays. Its body has been prepared, and
 * activity.c has found the variables with derivatives. */
void kd_start_threads(kd_part *part);
/* Returns whether the value can differ between the threads in a block. */
bool kd_differs(const kd_part *part, const kt_expr *e);
/* Returns whether all stores write to the same element and only one thread executes them. */
bool kd_is_one_thread_element(kd_part *part, const kd_sites *stores);

/* ---- adjoint_shared.c ---- */

/* Replaces a statement that is an atomic addition without a used result by `a[i] = a[i] + e`. */
void kd_take_atomic_sum(kd_part *part, kt_stmt *stmt);
/* Returns the atomic addition that kd_take_atomic_sum replaced by this statement, or NULL. */
const kt_expr *kd_find_taken_sum(const kd_part *part, const kt_stmt *stmt);
void kd_check_shared(kd_part *part);
void kd_emit_barrier(kd_derivation *d);
/* Emits the barrier after the loops that zero the derivatives of shared arrays. */
void kd_begin_shared(kd_part *part);

/* ---- adjoint_rerun.c ---- */

/* Rejects the remaining loads that could read a different value in the second run of a body. */
void kd_check_stale(kd_part *part);

/* ---- adjoint_sums.c ---- */

void kd_add_atomically(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *t,
                       const char *name, kj_location location);
/* GPU: emits a sum over all lanes in the warp. The first lane receives the result. */
void kd_sum_lanes(kd_derivation *d, kt_var *sum, kt_var *lanes);
/* GPU: returns whether the thread is the first one of its warp. */
kt_expr *kd_is_first_lane(kd_derivation *d);

/* Adds t to the derivative with respect to the element that the node loads. */
void kd_adjoint_load(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Returns the derivative with respect to the element that a store writes. place holds the array and
 * this element's indices, stored in variables. */
kt_expr *kd_adjoint_store(kd_derivation *d, const kd_node *place);
/* Emits the variables that each iteration needs for the arrays that it stores to. */
void kd_begin_iteration(kd_part *part);
/* Emits code that adds the sums of a thread to memory. */
void kd_add_thread_sums(kd_part *part);

/* ---- slice.c ---- */

/* Removes the statements and variables of the instance that do not affect any memory that other
 * threads can access. */
void kd_slice(kd_derivation *d);

#endif

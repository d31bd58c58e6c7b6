/* Adjoint kernels: declarations that the files adjoint*.c share.
 *
 * A kernel is a sequence of grid loops, and statements between them that compute values. Its
 * adjoint is made of parts. A part belongs to one of the loops. It is a copy of the kernel's body,
 * prepared for differentiation, and has its own variables in the adjoint. The files:
 *
 *   adjoint_index.c   reads the indices of the accesses in the grid loop: variable plus constant
 *   adjoint_plan.c    chooses for each array of derivatives how sums into it are computed
 *   adjoint_copies.c  a few elements that many iterations load: sums of the thread
 *   adjoint_gather.c  an element that collects from the iterations that load it
 *   adjoint_sums.c    the sums and loads of derivatives in a part, which reverse.c asks for
 *   adjoint.c         the first part of each loop
 *   adjoint_facts.c   reports the plan
 *   adjoint_threads.c kernels without a grid loop: barriers, and what their threads may do
 *   adjoint_shared.c  shared arrays, and loops over a block_range
 *   adjoint_rerun.c   the elements of shared arrays for a loop body that runs again
 *   slice.c           removes statements that no derivative needs, and rejects needed
 *                     values that the kernel has overwritten */
#ifndef KJ_DERIVE_ADJOINT_H
#define KJ_DERIVE_ADJOINT_H

#include "derive/derive.h"

enum { KD_MOST_GRID = 3, KD_MOST_GATHERED = 64, KD_MOST_COPIED = 64 };

/* An index of an access: a variable of the grid loop, plus a symbol, plus an offset between least
 * and most. */
typedef struct kd_index {
  bool is_known;
  uint32_t variable;     /* number of the grid loop's variable, from 1; 0 if it has none */
  const kt_expr *symbol; /* a value that is the same in the whole grid, or NULL */
  int64_t least, most;
  bool is_exact; /* the offset is the same number in all iterations */
  bool is_round; /* the index is the remainder by the extent of the grid loop */
  /* The extent of the array, if a negative index counts from the end; otherwise NULL. */
  const kt_expr *period;
} kd_index;

/* An access to an array argument of the kernel. */
typedef struct kd_site {
  const kt_expr *load; /* NULL if the access is a store */
  const kt_stmt *store;
  const kt_var *root;
  kj_location location;
  bool is_whole;           /* the array is the parameter itself, not a view of it */
  bool is_uniform;         /* the index is the same in the whole grid */
  bool is_before;          /* the access is before the grid loop */
  uint32_t rank, loops;    /* loops: number of loops around the access, inside the grid loop */
  const kt_stmt *inner[8]; /* the inner loops, the outermost first */
  kd_index indices[KJ_MAX_RANK];
} kd_site;

/* How the derivatives with respect to the elements of an array are computed. Below, D is the array
 * of these derivatives. */
typedef enum kd_way {
  KD_UNUSED,
  KD_ADDED,       /* loads: each iteration adds to its own elements of D */
  KD_GATHERED,    /* loads: each element of D sums the contributions of the iterations */
  KD_ATOMIC,      /* loads: atomic sums; a thread first sums those for a grid-uniform index */
  KD_OUTPUT,      /* stores: each reads the derivative of the element that it stores to */
  KD_OVERWRITTEN, /* several stores to the same element: only the last store in an iteration reads D
                   */
  KD_ACCUMULATED, /* a[i] += e: as KD_OUTPUT */
  KD_CHANGED      /* loads and stores of one element: the reverse pass updates D in place */
} kd_way;

/* How the iteration that contributes to an element follows from the index of the element and an
 * offset. */
typedef enum kd_turn {
  KD_STRAIGHT, /* index - offset */
  KD_FROM_END, /* index - offset - extent of the array */
  KD_ROUND     /* (index - offset) modulo the extent of the grid loop */
} kd_turn;

/* The iteration that contributes to an element: an offset for each variable of the grid loop. */
typedef struct kd_gather_offset {
  uint32_t loop; /* the number of the grid loop */
  int64_t offset[KD_MOST_GRID];
  kd_turn turn[KD_MOST_GRID];
} kd_gather_offset;

typedef struct kd_array_plan {
  const kt_var *array;
  kd_way loads;   /* for the loads in all loops */
  kd_way *stores; /* for the stores in each loop */
  uint32_t first; /* number of the first loop that loads from the array */
  /* ADDED, GATHERED: for each variable of the grid loop, the array dimension that it indexes */
  uint32_t dimension[KD_MOST_GRID];
  KJ_LIST(kd_gather_offset) offsets;
  uint32_t atomics,
    sums; /* ATOMIC: numbers of loads with an atomic sum, and with a sum of the thread */
  /* ATOMIC: each thread sums the elements with indices from least to most in a copy of its own;
   * copied is the number of these elements, or 0 if there is no copy */
  uint32_t copied;
  int64_t least[KJ_MAX_RANK], most[KJ_MAX_RANK];
} kd_array_plan;

typedef struct kd_part kd_part;

/* A statement of the adjoint, and the number of the loop from which it was generated. */
typedef struct kd_owned {
  const kt_stmt *stmt;
  uint32_t loop;
} kd_owned;

typedef struct kd_plan {
  KJ_LIST(kd_array_plan) arrays;
  KJ_LIST(kd_part *) firsts; /* the first part of each loop */
  KJ_LIST(kd_owned) owned;
} kd_plan;

/* A thread's sum for an element whose indices are the same in the whole grid. */
typedef struct kd_thread_sum {
  kt_expr *array; /* array of derivatives */
  kt_exprs indices;
  kt_var *sum;
  kj_location location;
} kd_thread_sum;

/* An atomic sum whose result is not used, as `a[i] = a[i] + e`. */
typedef struct kd_taken_sum {
  const kt_stmt *stmt;
  const kt_expr *atomic;
} kd_taken_sum;

/* A load from a shared array in a body that runs again, of a value that the store may have
 * overwritten. */
typedef struct kd_stale_load {
  const kt_expr *load;
  const kt_stmt *store;
} kd_stale_load;

struct kd_part {
  kd_derivation d;
  kd_plan *plan;
  KJ_LIST(kd_taken_sum) taken_sums;
  /* The kernel has no grid loop. `loop` then stands for the whole body, and has no variables. */
  bool is_by_threads;
  bool has_shared; /* only if is_by_threads: elements of shared arrays have derivatives */
  /* only if is_by_threads; indexed by variable: it may differ between the threads of a block */
  bool *differs;
  KJ_LIST(const kt_stmt *)
  reruns; /* the loops whose bodies are emitted again, the outermost first */
  KJ_LIST(kd_stale_load) stale;
  uint32_t number; /* number of the part's grid loop, from 0 */
  kt_stmts before; /* the statements before the grid loop */
  kt_stmt *loop;   /* the grid loop */
  kt_stmt *sync;   /* the grid_sync() between the previous loop and this one, or NULL */
  bool is_last;    /* no loop follows */
  KJ_LIST(kd_site) sites;
  /* The next four arrays have an entry for each variable. */
  const kt_expr **definitions; /* the only value of each variable; NULL if it has several */
  /* whether each variable is assigned before or inside the grid loop */
  bool *is_before, *is_inside;
  const kt_stmt **loops; /* the inner loop whose loop variable it is, or NULL */
  /* The next four are for parts that gather; they are NULL or empty for the first part of a loop.
   */
  const kd_array_plan *gathered;
  const kd_gather_offset *offset;
  kt_vars position; /* the indices of the element */
  kt_var *sum;      /* NULL if some dimensions of the array have no variable of the grid loop */
  kt_var **copies;  /* indexed by parameter: the thread's sums for a few elements, or NULL */
  kt_var **taken;   /* indexed by parameter; OVERWRITTEN: whether a store has read the derivative */
  KJ_LIST(kd_thread_sum) sums;
};

/* ---- adjoint_index.c ---- */

/* Finds the accesses in the grid loop and analyzes their indices. */
void kd_find_sites(kd_part *part);
/* Returns the index with each variable that has only one value replaced by that value. */
kt_expr *kd_resolve(kd_part *part, const kt_expr *e);
/* Returns the number of a variable of the grid loop, from 1; 0 for any other variable. */
uint32_t kd_grid_number(const kd_part *part, const kt_var *var);
bool kd_equal_exprs(const kt_expr *a, const kt_expr *b);
kd_index kd_index_of(kd_part *part, const kt_expr *e);

/* ---- adjoint_plan.c ---- */

/* The plan has the first parts of all loops. */
void kd_make_plan(kd_plan *plan);
kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array);

/* ---- adjoint_facts.c ---- */

/* Report the plan of the finished adjoint: as facts, and as a remark. */
void kd_note_plan(kd_plan *plan);
void kd_remark_plan(kd_plan *plan);

/* ---- adjoint.c: functions for parts that gather ---- */

/* Makes a part for grid loop `number`. */
kd_part *kd_make_part(const kd_derivation *of, kd_plan *plan, uint32_t number);
void kd_add_derivatives(kd_part *part, bool inside);
/* Emits one iteration: the forward pass and the reverse pass. */
void kd_emit_iteration(kd_part *part);
kt_stmt *kd_new_grid_loop(kd_derivation *d, const kt_stmt *like);
/* Records that the emitted statements from index `first` on belong to the part. */
void kd_own_statements(kd_part *part, size_t first);

/* ---- adjoint_gather.c ---- */

/* Returns whether all these loads can be gathered; if so, stores the offsets in the plan. */
typedef KJ_LIST(const kd_site *) kd_sites;
bool kd_plan_gather(const kd_part *part, kd_array_plan *plan, const kd_sites *loads);
/* Emits the loop over the elements of an array that sums the contributions to each element. */
void kd_emit_gather(kd_part *first, const kd_array_plan *plan);
/* Emits code that adds t, a derivative by the loaded value, to the gathered sum of an element. The
 * code runs only if the load at the site reads this element. */
void kd_add_gathered(kd_part *part, const kd_node *node, const kd_site *site, kt_expr *t);

/* ---- adjoint_copies.c ---- */

/* Returns whether the access is to one of the plan's few elements in every iteration of the grid
 * loop. */
bool kd_is_copied(const kd_array_plan *plan, const kd_site *site);
/* Plans a copy for the elements that these loads read, if there are few of them. */
void kd_plan_copies(kd_array_plan *plan, const kd_sites *loads);
void kd_add_to_copy(kd_part *part, const kd_array_plan *plan, const kd_node *node, kt_expr *t);
/* Sets the sums to 0, before the grid loop. */
void kd_clear_copies(kd_part *part);
/* Adds the sums to memory, after the grid loop. lanes (GPU): the number of threads of the warp. */
void kd_add_copies(kd_part *part, kt_var *lanes);

/* ---- adjoint_threads.c ---- */

/* Checks a kernel without a grid loop, whose body is prepared and whose activity is known. */
void kd_start_threads(kd_part *part);
/* Returns whether the value may differ between the threads of a block. */
bool kd_differs(const kd_part *part, const kt_expr *e);
/* Returns whether all stores are to one element, by one thread. */
bool kd_is_one_thread_element(kd_part *part, const kd_sites *stores);

/* ---- adjoint_shared.c ---- */

/* Turns an atomic sum whose result is not used into `a[i] = a[i] + e`. */
void kd_take_atomic_sum(kd_part *part, kt_stmt *stmt);
/* Returns the atomic that the statement was, or NULL. */
const kt_expr *kd_find_taken_sum(const kd_part *part, const kt_stmt *stmt);
void kd_check_shared(kd_part *part);
void kd_emit_barrier(kd_derivation *d);
/* Emits the barrier after the loops that set the derivatives with respect to shared arrays to 0. */
void kd_begin_shared(kd_part *part);

/* ---- adjoint_rerun.c ---- */

/* Rejects remaining loads that may return other values than in the first run. */
void kd_check_stale(kd_part *part);

/* ---- adjoint_sums.c ---- */

void kd_add_atomically(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *t,
                       const char *name, kj_location location);
/* GPU: emits a sum over all lanes of the warp; the first lane gets the result. */
void kd_sum_lanes(kd_derivation *d, kt_var *sum, kt_var *lanes);
/* GPU: returns whether the thread is the first one of its warp. */
kt_expr *kd_is_first_lane(kd_derivation *d);

/* Adds t to the derivative with respect to the element that the node loads. */
void kd_adjoint_load(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Returns the derivative with respect to the element that a store writes. place: this element, its
 * indices stored in variables. */
kt_expr *kd_adjoint_store(kd_derivation *d, const kd_node *place);
/* Emits the variables that an iteration needs for the arrays that it stores to. */
void kd_begin_iteration(kd_part *part);
/* Adds the sums of the thread to memory. */
void kd_add_thread_sums(kd_part *part);

/* ---- slice.c ---- */

/* Removes the statements and variables of the instance that have no effect outside of
 * the thread. */
void kd_slice(kd_derivation *d);

#endif

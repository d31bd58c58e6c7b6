/* Adjoint kernels: what the files adjoint*.c share.
 *
 * A kernel is a sequence of grid loops, and statements between them that compute values. Its
 * adjoint is made of parts. A part belongs to one of the loops. It is a prepared copy of the
 * kernel's body, in the instance that is made, with variables of its own:
 *
 *   adjoint_index.c   reads the indices of the accesses in the grid loop: variable plus constant
 *   adjoint_plan.c    chooses for each array of derivatives how sums into it are computed
 *   adjoint_copies.c  a few elements that many iterations load: sums of the thread
 *   adjoint_gather.c  an element that collects from the iterations that load it
 *   adjoint_sums.c    the sums and loads of derivatives in a part: what reverse.c hands over
 *   adjoint.c         the first part of each loop
 *   slice.c           drops what no derivative needs, and refuses values that are gone */
#ifndef KJ_DERIVE_ADJOINT_H
#define KJ_DERIVE_ADJOINT_H

#include "derive/derive.h"

enum { KD_MOST_GRID = 3, KD_MOST_GATHERED = 64, KD_MOST_COPIED = 64 };

/* An index of an access. It is the variable of the grid loop, plus the symbol, plus an offset from
 * least to most. */
typedef struct kd_index {
  bool is_known;
  uint32_t variable;     /* 1: the first variable of the grid loop; 0: none */
  const kt_expr *symbol; /* a value that is the same in the whole grid; NULL: none */
  int64_t least, most;
  bool is_exact; /* the offset is one number, in all iterations */
  bool is_round; /* it is the remainder by the extent of the grid loop */
  /* an index below 0 counts from the end: this is the extent; NULL: none does */
  const kt_expr *period;
} kd_index;

/* An access to an array that the kernel is handed. */
typedef struct kd_site {
  const kt_expr *load; /* NULL: it is a store */
  const kt_stmt *store;
  const kt_var *root;
  kj_location location;
  bool is_whole;           /* the array is the parameter, no view of it */
  bool is_uniform;         /* the index is the same in the whole grid */
  bool is_before;          /* it is before the grid loop */
  uint32_t rank, loops;    /* loops: around it, in the grid loop */
  const kt_stmt *inner[8]; /* the outermost of these loops first */
  kd_index indices[KJ_MAX_RANK];
} kd_site;

/* How the derivatives by the elements of an array are computed. */
typedef enum kd_way {
  KD_UNUSED,
  KD_ADDED,       /* loads: an iteration adds to elements that no other one adds to */
  KD_GATHERED,    /* loads: an element collects what iterations contribute to it */
  KD_ATOMIC,      /* loads: atomic sums; those at one place for the whole grid are summed before */
  KD_OUTPUT,      /* stores: read where they store */
  KD_OVERWRITTEN, /* stores to one element, the last one counts: the same, once an iteration */
  KD_ACCUMULATED, /* a[i] += e: read where it stores */
  KD_CHANGED      /* loads and stores of one element: changed as these go backwards */
} kd_way;

/* The iteration that contributes to an element is the element less an offset, and: */
typedef enum kd_turn {
  KD_STRAIGHT, /* nothing more */
  KD_FROM_END, /* less the extent of the array */
  KD_ROUND     /* the remainder by the extent of the grid loop */
} kd_turn;

/* Which iteration contributes to an element, by variable of the grid loop. */
typedef struct kd_gather_offset {
  uint32_t loop; /* the number of the grid loop */
  int64_t offset[KD_MOST_GRID];
  kd_turn turn[KD_MOST_GRID];
} kd_gather_offset;

typedef struct kd_array_plan {
  const kt_var *array;
  kd_way loads;   /* in all loops */
  kd_way *stores; /* by loop */
  uint32_t first; /* the first loop that loads from it */
  /* ADDED, GATHERED: the dimension that follows a variable of the grid loop */
  uint32_t dimension[KD_MOST_GRID];
  KJ_LIST(kd_gather_offset) offsets;
  uint32_t atomics, sums; /* ATOMIC: places */
  /* ATOMIC: each thread sums the elements from least to most of these in a copy; copied 0: none */
  uint32_t copied;
  int64_t least[KJ_MAX_RANK], most[KJ_MAX_RANK];
} kd_array_plan;

typedef struct kd_part kd_part;

/* Statements of the adjoint that were made of a loop. */
typedef struct kd_owned {
  const kt_stmt *stmt;
  uint32_t loop;
} kd_owned;

typedef struct kd_plan {
  KJ_LIST(kd_array_plan) arrays;
  KJ_LIST(kd_part *) firsts; /* the first part of each loop */
  KJ_LIST(kd_owned) owned;
} kd_plan;

/* A sum of the thread for a place that is the same in the whole grid. */
typedef struct kd_thread_sum {
  kt_expr *array; /* of derivatives */
  kt_exprs indices;
  kt_var *sum;
  kj_location location;
} kd_thread_sum;

struct kd_part {
  kd_derivation d;
  kd_plan *plan;
  uint32_t number; /* of its grid loop, from 0 on */
  kt_stmts before; /* the grid loop */
  kt_stmt *loop;
  kt_stmt *sync; /* grid_sync() between the loop before and this one; NULL: there is none */
  bool is_last;  /* no loop follows */
  KJ_LIST(kd_site) sites;
  const kt_expr **definitions; /* by variable: its only value; NULL: it has several */
  bool *is_before, *is_inside; /* by variable: it is assigned before the grid loop; in it */
  const kt_stmt **loops;       /* by variable: the loop in the grid loop whose variable it is */
  /* of a part that gathers; NULL: it is a first part */
  const kd_array_plan *gathered;
  const kd_gather_offset *offset;
  kt_vars position; /* the element */
  kt_var *sum;      /* NULL: the array has dimensions that follow no variable */
  kt_var **copies;  /* by parameter: the sums of the thread for a few elements; NULL: none */
  kt_var **taken;   /* by parameter, OVERWRITTEN: its derivative was taken */
  KJ_LIST(kd_thread_sum) sums;
};

/* ---- adjoint_index.c ---- */

/* Finds the accesses in the grid loop, and what their indices are. */
void kd_find_sites(kd_part *part);
/* The index with the values of variables in the place of variables that have only one. */
kt_expr *kd_resolve(kd_part *part, const kt_expr *e);
/* Which variable of the grid loop, from 1 on; 0: it is none. */
uint32_t kd_grid_number(const kd_part *part, const kt_var *var);
bool kd_equal_exprs(const kt_expr *a, const kt_expr *b);
kd_index kd_index_of(kd_part *part, const kt_expr *e);

/* ---- adjoint_plan.c ---- */

/* The plan has the first parts of all loops. */
void kd_make_plan(kd_plan *plan);
kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array);
/* Reports what the plan is as a remark. */
void kd_remark_plan(kd_plan *plan);

/* ---- adjoint.c: what the parts that gather use ---- */

/* plan: it is a part of the derivation of another part. */
kd_part *kd_make_part(const kd_derivation *of, kd_plan *plan, uint32_t number);
void kd_add_derivatives(kd_part *part, bool inside);
/* One iteration, forwards and backwards. */
void kd_emit_iteration(kd_part *part);
kt_stmt *kd_new_grid_loop(kd_derivation *d, const kt_stmt *like);
/* Notes that the statements from `first` on, of the list that is emitted to, belong to the part. */
void kd_own_statements(kd_part *part, size_t first);

/* ---- adjoint_gather.c ---- */

/* Whether all these loads can be gathered: then the plan has the offsets. */
typedef KJ_LIST(const kd_site *) kd_sites;
bool kd_plan_gather(const kd_part *part, kd_array_plan *plan, const kd_sites *loads);
/* The loop in which the elements of an array gather. */
void kd_emit_gather(kd_part *first, const kd_array_plan *plan);
/* Adds t to the sum of the element if the iteration loads it. */
void kd_add_gathered(kd_part *part, const kd_node *node, const kd_site *site, kt_expr *t);

/* ---- adjoint_copies.c ---- */

/* The access is to one of a few elements, whatever the iteration of the grid loop is. */
bool kd_is_copied(const kd_array_plan *plan, const kd_site *site);
/* Takes the elements of the loads into the copies of the plan, if there are few in all. */
void kd_plan_copies(kd_array_plan *plan, const kd_sites *loads);
void kd_add_to_copy(kd_part *part, const kd_array_plan *plan, const kd_node *node, kt_expr *t);
/* Before the grid loop: the sums are 0. */
void kd_clear_copies(kd_part *part);
/* After it: adds them to memory. lanes (GPU): how many threads the warp has. */
void kd_add_copies(kd_part *part, kt_var *lanes);

/* ---- adjoint_sums.c ---- */

void kd_add_atomically(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *t,
                       const char *name, kj_location location);
/* GPU: the first lane gets the sum of all lanes. */
void kd_sum_lanes(kd_derivation *d, kt_var *sum, kt_var *lanes);
/* GPU: whether the thread is the first one of its warp. */
kt_expr *kd_is_first_lane(kd_derivation *d);

/* Adds t to the derivative by the element that the node loads. */
void kd_adjoint_load(kd_derivation *d, const kd_node *node, kt_expr *t);
/* The derivative by the element that is stored to; place: with its indices kept. */
kt_expr *kd_adjoint_store(kd_derivation *d, const kd_node *place);
/* What an iteration keeps of the arrays that it stores to. */
void kd_begin_iteration(kd_part *part);
/* Adds the sums of the thread to memory. */
void kd_add_thread_sums(kd_part *part);

/* ---- slice.c ---- */

/* Drops the statements and the variables of the instance that no effect outside of the thread
 * needs. */
void kd_slice(kd_derivation *d);

#endif

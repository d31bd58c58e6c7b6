/* Adjoint kernels: what the files adjoint*.c share.
 *
 * A kernel is a grid loop and the statements before it. Its adjoint is made of parts. A part is a
 * prepared copy of the kernel's body, in the instance that is made, with variables of its own:
 *
 *   adjoint_index.c   reads the indices of the accesses in the grid loop: variable plus constant
 *   adjoint_plan.c    chooses for each array of derivatives how sums into it are computed
 *   adjoint_sums.c    the sums and loads of derivatives in a part: what reverse.c hands over
 *   adjoint.c         the first part, a part for each iteration that an element gathers from
 *   slice.c           drops what no derivative needs, and refuses values that are gone */
#ifndef KJ_DERIVE_ADJOINT_H
#define KJ_DERIVE_ADJOINT_H

#include "derive/derive.h"

enum { KD_MOST_GRID = 3, KD_MOST_GATHERED = 64 };

/* An index of an access. It is the variable of the grid loop, plus the symbol, plus an offset from
 * least to most. */
typedef struct kd_index {
  bool is_known;
  const kt_var *variable; /* NULL: none */
  const kt_expr *symbol;  /* a value that is the same in the whole grid; NULL: none */
  int64_t least, most;
  bool is_exact; /* the offset is one number, in all iterations */
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

/* Which iteration contributes to an element, by variable of the grid loop. */
typedef struct kd_gather_offset {
  int64_t offset[KD_MOST_GRID]; /* the element less the iteration */
  bool wraps[KD_MOST_GRID];     /* and less the extent of the array */
} kd_gather_offset;

typedef struct kd_array_plan {
  const kt_var *array;
  kd_way way;
  /* ADDED, GATHERED: the dimension that follows a variable of the grid loop */
  uint32_t dimension[KD_MOST_GRID];
  KJ_LIST(kd_gather_offset) offsets;
  uint32_t atomics, sums; /* ATOMIC: places */
} kd_array_plan;

typedef struct kd_plan {
  KJ_LIST(kd_array_plan) arrays;
} kd_plan;

/* A sum of the thread for a place that is the same in the whole grid. */
typedef struct kd_thread_sum {
  kt_expr *array; /* of derivatives */
  kt_exprs indices;
  kt_var *sum;
  kj_location location;
} kd_thread_sum;

typedef struct kd_part kd_part;
struct kd_part {
  kd_derivation d;
  kd_plan *plan;
  kt_stmts before; /* the grid loop */
  kt_stmt *loop;
  KJ_LIST(kd_site) sites;
  const kt_expr **definitions; /* by variable: its only value; NULL: it has several */
  bool *is_before, *is_inside; /* by variable: it is assigned before the grid loop; in it */
  const kt_stmt **loops;       /* by variable: the loop in the grid loop whose variable it is */
  /* of a part that gathers; NULL: it is the first part */
  const kd_array_plan *gathered;
  const kd_gather_offset *offset;
  kt_vars position; /* the element */
  kt_var *sum;      /* NULL: the array has dimensions that follow no variable */
  kt_var **taken;   /* by parameter, OVERWRITTEN: its derivative was taken */
  KJ_LIST(kd_thread_sum) sums;
};

/* ---- adjoint_index.c ---- */

/* Finds the accesses in the grid loop, and what their indices are. */
void kd_find_sites(kd_part *part);
/* The index with the values of variables in the place of variables that have only one. */
kt_expr *kd_resolve(kd_part *part, const kt_expr *e);
/* Which variable of the grid loop; -1: it is none. */
int kd_grid_number(const kd_part *part, const kt_var *var);
bool kd_equal_exprs(const kt_expr *a, const kt_expr *b);
kd_index kd_index_of(kd_part *part, const kt_expr *e);

/* ---- adjoint_plan.c ---- */

void kd_make_plan(kd_part *part, kd_plan *plan);
kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array);
/* Reports what the plan is as a remark. */
void kd_remark_plan(kd_part *part);

/* ---- adjoint_sums.c ---- */

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

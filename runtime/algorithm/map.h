/* Maps: apply a func to operands that broadcast. map.c checks the call, map_shape.c determines the
 * loops, map_text.c writes the kernel. */
#ifndef KA_MAP_H
#define KA_MAP_H

#include "algorithm/algorithm.h"

enum { KA_MOST_CORE = KJ_MAX_RANK, KA_MOST_SIZES = 32, KA_NO_AXIS = 255 };

/* An operand or a result, and the relation of its axes to the loops' axes. */
typedef struct ka_mapped {
  ka_operand operand;
  uint32_t core_rank; /* number of core axes: the last axes, which the func receives as a whole */
  uint32_t core[KA_MOST_CORE]; /* for each core axis: index of its size in ka_map.sizes */
  uint32_t first;              /* axis of the loops that corresponds to the operand's first axis */
  /* strides of an array for each axis of the loops; 0 if it broadcasts */
  int64_t strides[KJ_MAX_RANK];
  bool uses[KJ_MAX_RANK]; /* whether the element depends on the index along each axis of the
                           * loops */
  /* map_text.c: the names of the operand's parameters, each after a comma */
  const char *element;
} ka_mapped;

/* The size of a core axis. The signature gives a name or a number for it. */
typedef struct ka_size {
  const char *name;
  size_t length;
  int64_t extent; /* -1 if not known yet */
} ka_size;

typedef struct ka_map {
  ka_call *call;
  kjit_function *function;
  bool has_signature, is_outer;
  size_t result_count, operand_count;    /* if the call has `where`, it is the last operand */
  ka_mapped *results, *operands, *where; /* where: the operand of options.where, or NULL */
  kjit_type *result_types;               /* result types of the func, or NULL if the func writes the
                                          * results */
  ka_size sizes[KA_MOST_SIZES];
  uint32_t size_count;
  /* rank and shape to which the operands broadcast, without core axes */
  uint32_t rank;
  int64_t shape[KJ_MAX_RANK];
  /* The loops: the axes of `shape`, merged into as few loops as possible; the last loop is the
   * innermost. loop_of: the loop of each axis, or KA_NO_AXIS. */
  uint32_t loop_count;
  int64_t extents[KJ_MAX_RANK];
  uint32_t loop_of[KJ_MAX_RANK], last_axis[KJ_MAX_RANK];
} ka_map;

/* Returns the number of operands that are passed to the func: all except `where`. */
static inline size_t ka_argument_count(const ka_map *map)
{
  return map->operand_count - (map->where ? 1 : 0);
}

/* ---- map_shape.c ---- */

/* Parses a signature such as "(n),(n)->()" and sets the core axes of operands and results. Errors:
 * SYNTAX, ARGUMENT. */
void ka_read_signature(ka_map *map, const char *text);
/* Computes the shape to which the operands broadcast. Errors: ARGUMENT. */
void ka_broadcast(ka_map *map);
/* Computes a result's shape, which ends with its core axes. */
uint32_t ka_result_shape(const ka_map *map, size_t index, int64_t shape[KJ_MAX_RANK]);
/* Checks the shape of each result and makes it the shape of the loops. */
void ka_fit_results(ka_map *map);
/* Determines the loops, and creates views of the arrays whose axes are those of the loops. */
void ka_find_loops(ka_map *map);

/* ---- map_text.c ---- */

void ka_launch_map(ka_map *map);

#endif

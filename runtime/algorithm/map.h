/* Maps: a func over operands that broadcast. map.c checks a call, map_shape.c finds the loops,
 * map_text.c writes the kernel. */
#ifndef KA_MAP_H
#define KA_MAP_H

#include "algorithm/algorithm.h"

enum { KA_MOST_CORE = KJ_MAX_RANK, KA_MOST_SIZES = 32, KA_NO_AXIS = 255 };

/* An operand or a result, and the relation of its axes to the axes of the loops. */
typedef struct ka_mapped {
  ka_operand operand;
  uint32_t core_rank;           /* number of last axes that the func gets as a whole: its core */
  uint32_t core[KA_MOST_CORE];  /* for each core axis, its index in ka_map.sizes */
  uint32_t first;               /* axis of the loops that the operand's first axis belongs to */
  int64_t strides[KJ_MAX_RANK]; /* of an array, for each axis of the loops; 0 if it broadcasts */
  bool uses[KJ_MAX_RANK];       /* whether its element depends on the axis of the loops */
  const char *element;          /* map_text.c: its parameters, each after a comma */
} ka_mapped;

/* A size that a signature names, or a number. */
typedef struct ka_size {
  const char *name;
  size_t length;
  int64_t extent; /* -1: not known yet */
} ka_size;

typedef struct ka_map {
  ka_call *call;
  kjit_function *function;
  bool has_signature, is_outer;
  size_t result_count, operand_count;    /* with `where`, the last one then */
  ka_mapped *results, *operands, *where; /* where: one of the operands, or NULL */
  kjit_type *result_types;               /* what func returns; NULL: it writes */
  ka_size sizes[KA_MOST_SIZES];
  uint32_t size_count;
  /* The loops: the axes of the results without cores; */
  uint32_t rank;
  int64_t shape[KJ_MAX_RANK];
  /* joined: as few as they can be, the last one fastest. Which one an axis is, KA_NO_AXIS: none */
  uint32_t loop_count;
  int64_t extents[KJ_MAX_RANK];
  uint32_t loop_of[KJ_MAX_RANK], last_axis[KJ_MAX_RANK];
} ka_map;

/* Operands func is called with: all but `where`. */
static inline size_t ka_argument_count(const ka_map *map)
{
  return map->operand_count - (map->where ? 1 : 0);
}

/* ---- map_shape.c ---- */

/* Reads "(n),(n)->()", sets the cores of operands and results. Errors: SYNTAX, ARGUMENT. */
void ka_read_signature(ka_map *map, const char *text);
/* The shape that the operands broadcast to. Errors: ARGUMENT. */
void ka_broadcast(ka_map *map);
/* Of a result, its core's axes behind it. */
uint32_t ka_result_shape(const ka_map *map, size_t index, int64_t shape[KJ_MAX_RANK]);
/* Each result has that shape; it becomes the loops', whose operands broadcast to it. */
void ka_fit_results(ka_map *map);
/* Finds the loops and gives the kernel views of the arrays that have their axes. */
void ka_find_loops(ka_map *map);

/* ---- map_text.c ---- */

void ka_launch_map(ka_map *map);

#endif

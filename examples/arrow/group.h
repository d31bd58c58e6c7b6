/* The state of one group-by, for group.c and group_slots.c. */
#ifndef GROUP_H
#define GROUP_H

#include "columns_engine.h"

/* Values of a column as an array with one element for each row. */
typedef struct line {
  const column *column;
  kjit_array *values; /* of bools one byte each */
} line;

/* Some fields of the keys side by side, the first one in the highest bits: an unsigned number for
 * each row. */
typedef struct word {
  uint32_t bits;
  kjit_array *rows;   /* in the order of the rows */
  kjit_array *sorted; /* of the first word: in the order of `places` */
} word;

typedef struct grouping {
  columns_engine *engine;
  line *keys;
  size_t key_count;
  word *words;
  size_t word_count;
  int64_t length, used_length; /* all rows; rows that are in groups */
  bool drops_nulls;
  kjit_type index;
  kjit_array *places; /* the rows that are in groups, sorted by their keys if there are no slots;
                       * NULL means all rows in order */
  kjit_array *number; /* one i64 */
  int64_t count;      /* of groups */
  /* groups by sorting: the start of each group in places, and the end of the last one; i64 */
  kjit_array *offsets;
  /* groups by slots: a group has the number of its word as its slot */
  int64_t slot_count;      /* 0: groups by sorting */
  kjit_array *slot_counts; /* rows of each slot; i64 */
  kjit_array *present;     /* the slots that have rows, in order: the slot of each group */
} grouping;

/* The parameter `places` of funcs in columns.kir. */
static inline kjit_arg places_of(const grouping *g)
{
  if (g->places) return kjit_arg_array(g->places);
  return g->index == KJIT_I32 ? kjit_arg_i32(0) : kjit_arg_i64(0);
}

/* Returns whether the words of the keys are few enough for an array with an element for each. */
bool has_slots(const grouping *g);
/* Finds the groups by slots: sets slot_counts, present and count. */
kjit_status find_slots(grouping *g);
/* Writes the first row of each group, in numbers of rows. */
kjit_status find_first_rows(grouping *g, kjit_array *firsts);
/* Writes the number of rows of each group. */
kjit_status take_slot_counts(const grouping *g, kjit_array *counts);
/* Reduces x, which has an element for each place, by slots. name: "add", which needs a result of
 * i64, u64 or f64, or another operator, which combines `empty` with the values. */
kjit_status reduce_slots(const grouping *g, const kjit_operand *x, kjit_type element,
                         const char *name, const kjit_arg *empty, kjit_array *result);
/* Finds the rows for which flags are not 0, an array of length elements. Returns their number and
 * an array of them. */
kjit_status find_places(grouping *g, kjit_array *flags, int64_t length, kjit_array **places,
                        int64_t *count);

#endif

/* Declarations for group.c, group_slots.c and group_aggregates.c: the state of a group-by. */
#ifndef GROUP_H
#define GROUP_H

#include "columns_engine.h"

/* Values of a column as an array with one element for each row. */
typedef struct line {
  const column *column;
  kjit_array *values; /* values; a bool is one byte */
} line;

/* A word of the packed keys: an unsigned number for each row, whose highest bits contain the first
 * field. */
typedef struct word {
  uint32_t bits;
  /* If the word has one key, kernels compute a row's word from the key, so `rows` is not needed. */
  const line *key;
  uint64_t least, null;
  kjit_array *rows;   /* the words in the order of the rows; NULL if they have not been written */
  kjit_array *sorted; /* for the first word: the words in the order of `places` */
} word;

/* A column of values, with the counts and sums of its groups if an aggregate has needed them. */
typedef struct folded {
  line line; /* line.column NULL: unused */
  kjit_array *counts, *sums;
  kjit_type sum_type;
} folded;

typedef struct grouping {
  columns_engine *engine;
  line *keys;
  size_t key_count;
  word *words;
  size_t word_count;
  int64_t length, used_length; /* number of all rows, and number of rows that are in groups */
  folded *folds;               /* one more than there are aggregates */
  bool drops_nulls;
  kjit_type index;
  kjit_array *places; /* numbers of the rows that are in groups, sorted by their keys unless slots
                         are used; NULL means all rows in order */
  kjit_array *number; /* one i64 */
  int64_t count;      /* number of groups */
  /* if rows are sorted: the start of each group in `places`, and the end of the last group; i64 */
  kjit_array *offsets;
  /* number of slots, if slots are used: the slot of a group is the value of its word */
  int64_t slot_count;      /* 0 if rows are sorted */
  kjit_array *slot_counts; /* number of rows in each slot; i64 */
  kjit_array *present; /* the slots that have rows, in ascending order: the slot of each group */
} grouping;

/* Returns the argument for the parameter `places` of funcs in columns.kir. */
static inline kjit_arg places_of(const grouping *g)
{
  if (g->places) return kjit_arg_array(g->places);
  return g->index == KJIT_I32 ? kjit_arg_i32(0) : kjit_arg_i64(0);
}

/* Opens a column. The caller owns the array of the line. */
kjit_status open_line(columns_engine *engine, const column *c, line *l);
/* Computes an aggregate of the groups as a column. */
kjit_status aggregate_column(grouping *g, const column_aggregate *a, column **result);
void release_folds(folded *folds, size_t count);
/* Returns whether the keys have few enough possible values for slots. */
bool has_slots(const grouping *g);
/* Finds the groups by slots: sets slot_counts, present and count. */
kjit_status find_slots(grouping *g);
/* Writes the row number of the first row of each group. */
kjit_status find_first_rows(grouping *g, kjit_array *firsts);
/* Writes the number of rows of each group. */
kjit_status take_slot_counts(const grouping *g, kjit_array *counts);
/* Reduces x, which has an element for each place, by slots. name is the operator. "add" needs an
 * i64, u64 or f64 result. Other operators combine the values with `empty`. */
kjit_status reduce_slots(const grouping *g, const kjit_operand *x, kjit_type element,
                         const char *name, const kjit_arg *empty, kjit_array *result);
/* Finds the rows whose element of flags is not 0. Returns the number of these rows and an array
 * with their numbers. */
kjit_status find_places(grouping *g, kjit_array *flags, int64_t length, kjit_array **places,
                        int64_t *count);

#endif

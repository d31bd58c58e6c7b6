/* group_slots.c: groups rows by keys with few possible values. Each value of the packed keys has a
 * slot, and one pass over the rows updates the slots, so no sort is needed. */
#include "group.h"

#include <string.h>

/* Maximum number of slots, as a power of two. An array with so many slots fits into the cache of a
 * core. */
enum { MOST_SLOT_BITS = 16 };
/* The first search for the first rows of groups reads this number of rows for each slot. */
enum { START_ROWS = 32 };

bool has_slots(const grouping *g)
{
  return g->word_count == 1 && g->words[0].bits <= MOST_SLOT_BITS && g->length > 0;
}

/* Returns an operand with the slots of the first `count` places. */
static void set_slots(const grouping *g, int64_t count, column_operand *slots)
{
  const word *w = &g->words[0];
  if (w->rows) {
    kjit_arg arguments[] = { places_of(g), kjit_arg_array(w->rows) };
    column_operand_set(g->engine, slots, "taken_value", count, arguments, 2);
    return;
  }
  const column *c = w->key->column;
  bool has_nulls = c->validity && !g->drops_nulls;
  kjit_arg arguments[] = {
    places_of(g),          kjit_arg_array(w->key->values), kjit_arg_u64(w->least),
    kjit_arg_u64(w->null), kjit_arg_array(c->validity),    kjit_arg_i64(c->offset)
  };
  column_operand_set(g->engine, slots, has_nulls ? "nullable_key_slot" : "key_slot", count,
                     arguments, has_nulls ? 6 : 3);
}

/* Selects the elements of the slots that have rows. */
static kjit_status take_present(const grouping *g, kjit_array *slots, kjit_array *result)
{
  column_operand taken;
  kjit_arg arguments[] = { kjit_arg_array(g->present), kjit_arg_array(slots) };
  column_operand_set(g->engine, &taken, "taken_value", g->count, arguments, 2);
  return columns_map(g->engine, result, "same", &taken.operand, 1);
}

static kjit_status sum_slots(const grouping *g, kjit_array *slots, const kjit_operand *weights)
{
  column_operand slot;
  kjit_operand sums = kjit_operand_array(slots);
  set_slots(g, g->used_length, &slot);
  return columns_check(g->engine,
                       kjit_bincount(g->engine->context, &sums, &slot.operand, g->slot_count,
                                     weights, NULL),
                       "the groups");
}

kjit_status find_slots(grouping *g)
{
  g->slot_count = (int64_t)1 << g->words[0].bits;
  COLUMNS_TRY(column_make_array(g->engine, KJIT_I64, g->slot_count, &g->slot_counts));
  COLUMNS_TRY(sum_slots(g, g->slot_counts, NULL));
  return find_places(g, g->slot_counts, g->slot_count, &g->present, &g->count);
}

/* Fills an array with one value. */
static kjit_status fill(const grouping *g, kjit_array *array, const kjit_arg *value)
{
  kjit_operand all = kjit_operand_of(*value);
  return columns_map(g->engine, array, "same", &all, 1);
}

/* Notes the first row of each slot among the first `count` places. */
static kjit_status note_first_rows(const grouping *g, int64_t count, kjit_array *rows)
{
  column_operand slot, note;
  kjit_arg arguments[] = { kjit_arg_array(rows), places_of(g) };
  set_slots(g, count, &slot);
  column_operand_set(g->engine, &note, "note_first", count, arguments, 2);
  return columns_check(g->engine,
                       kjit_map(g->engine->context, &note.operand, 1,
                                columns_find(g->engine, "same"), &slot.operand, 1, NULL),
                       "the groups");
}

/* Returns whether a group has no first row yet, which is `none`. */
static kjit_status misses_rows(grouping *g, kjit_array *firsts, const kjit_arg *none, bool *misses)
{
  column_operand missing;
  int64_t number = 0;
  kjit_arg arguments[] = { kjit_arg_array(firsts), *none };
  kjit_operand result = kjit_operand_array(g->number);
  kjit_operator most = kjit_operator_named("max");
  column_operand_set(g->engine, &missing, "is_equal_term", g->count, arguments, 2);
  COLUMNS_TRY(columns_check(g->engine,
                            kjit_reduce(g->engine->context, &result, &missing.operand, &most, NULL),
                            "the groups"));
  COLUMNS_TRY(columns_read_number(g->engine, g->number, &number));
  *misses = number != 0;
  return KJIT_OK;
}

/* The first rows of most groups are near the start of the table, so the start is searched first. */
kjit_status find_first_rows(grouping *g, kjit_array *firsts)
{
  kjit_array *rows = NULL;
  kjit_arg none = g->index == KJIT_I32 ? kjit_arg_i32(INT32_MAX) : kjit_arg_i64(INT64_MAX);
  int64_t start = START_ROWS * g->slot_count;
  bool misses = true;
  COLUMNS_TRY(column_make_array(g->engine, g->index, g->slot_count, &rows));
  kjit_status status = fill(g, rows, &none);
  if (start < g->used_length) {
    if (status == KJIT_OK) status = note_first_rows(g, start, rows);
    if (status == KJIT_OK) status = take_present(g, rows, firsts);
    if (status == KJIT_OK) status = misses_rows(g, firsts, &none, &misses);
  }
  if (misses) {
    if (status == KJIT_OK) status = note_first_rows(g, g->used_length, rows);
    if (status == KJIT_OK) status = take_present(g, rows, firsts);
  }
  kjit_release_array(rows);
  return status;
}

kjit_status take_slot_counts(const grouping *g, kjit_array *counts)
{
  return take_present(g, g->slot_counts, counts);
}

static kjit_status combine_slots(const grouping *g, const kjit_operand *x, const char *name,
                                 const kjit_arg *empty, kjit_array *slots)
{
  column_operand slot;
  kjit_operator operator_ = kjit_operator_named(name);
  kjit_operand all = kjit_operand_array(slots);
  COLUMNS_TRY(fill(g, slots, empty));
  set_slots(g, g->used_length, &slot);
  return columns_check(g->engine,
                       kjit_update_at(g->engine->context, &all, &slot.operand, x, &operator_, NULL),
                       "the aggregates");
}

kjit_status reduce_slots(const grouping *g, const kjit_operand *x, kjit_type element,
                         const char *name, const kjit_arg *empty, kjit_array *result)
{
  kjit_array *slots = NULL;
  bool is_sum = !strcmp(name, "add");
  COLUMNS_TRY(column_make_array(g->engine, element, g->slot_count, &slots));
  kjit_status status = is_sum ? sum_slots(g, slots, x) : combine_slots(g, x, name, empty, slots);
  if (status == KJIT_OK) status = take_present(g, slots, result);
  kjit_release_array(slots);
  return status;
}

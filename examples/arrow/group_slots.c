/* group_slots.c: groups rows by keys with few possible values. Each value of the packed keys has a
 * slot, and one pass over the rows updates the slots, so no sort is needed. */
#include "group.h"

#include <string.h>

/* Maximum number of slots, whose array fits into the cache of a core. */
enum { MOST_SLOT_BITS = 16 };

bool has_slots(const grouping *g)
{
  return g->word_count == 1 && g->words[0].bits <= MOST_SLOT_BITS && g->length > 0;
}

/* Returns an operand with the slot of each place. */
static void set_slots(const grouping *g, column_operand *slots)
{
  kjit_arg arguments[] = { places_of(g), kjit_arg_array(g->words[0].rows) };
  column_operand_set(g->engine, slots, "taken_value", g->used_length, arguments, 2);
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
  set_slots(g, &slot);
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

static kjit_status note_first_rows(const grouping *g, kjit_array *rows)
{
  column_operand slot, note;
  kjit_arg none = g->index == KJIT_I32 ? kjit_arg_i32(INT32_MAX) : kjit_arg_i64(INT64_MAX),
           arguments[] = { kjit_arg_array(rows), places_of(g) };
  COLUMNS_TRY(fill(g, rows, &none));
  set_slots(g, &slot);
  column_operand_set(g->engine, &note, "note_first", g->used_length, arguments, 2);
  return columns_check(g->engine,
                       kjit_map(g->engine->context, &note.operand, 1,
                                columns_find(g->engine, "same"), &slot.operand, 1, NULL),
                       "the groups");
}

kjit_status find_first_rows(grouping *g, kjit_array *firsts)
{
  kjit_array *rows = NULL;
  COLUMNS_TRY(column_make_array(g->engine, g->index, g->slot_count, &rows));
  kjit_status status = note_first_rows(g, rows);
  if (status == KJIT_OK) status = take_present(g, rows, firsts);
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
  set_slots(g, &slot);
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

/* group_aggregates.c: the aggregates of groups. The counts and sums of a column are computed once
 * for all aggregates that need them. */
#include <math.h>
#include <string.h>

#include "group.h"

/* ---- operands ---- */

/* Makes an operand that calls a func of columns.kir with the places, the values of an operand
 * `line` and `more`, which may be NULL. If the values have nulls, the func is `nullable`, which
 * also takes the valid bits. */
static void set_line(const grouping *g, const line *l, const char *function, const char *nullable,
                     const kjit_arg *more, column_operand *o)
{
  kjit_arg arguments[5];
  size_t count = 0;
  arguments[count++] = places_of(g);
  arguments[count++] = kjit_arg_array(l->values);
  if (more) arguments[count++] = *more;
  if (l->column->validity) {
    arguments[count++] = kjit_arg_array(l->column->validity);
    arguments[count++] = kjit_arg_i64(l->column->offset);
  }
  column_operand_set(g->engine, o, l->column->validity ? nullable : function, g->used_length,
                     arguments, count);
}

/* Makes an operand that calls a func of places and valid bits. */
static void set_validity(const grouping *g, const line *l, const char *function, column_operand *o)
{
  kjit_arg arguments[] = { places_of(g), kjit_arg_array(l->column->validity),
                           kjit_arg_i64(l->column->offset) };
  column_operand_set(g->engine, o, function, g->used_length, arguments, 3);
}

/* ---- aggregates ---- */

/* Reduces the elements of each group to one number. x has an element for each place. `empty` is a
 * value that changes no result.
 */
static kjit_status reduce_groups(grouping *g, const kjit_operand *x, kjit_type element,
                                 const char *name, const kjit_arg *empty, kjit_array **result)
{
  columns_engine *engine = g->engine;
  kjit_operator operator_ = kjit_operator_named(name);
  COLUMNS_TRY(column_make_array(engine, element, g->count, result));
  if (g->slot_count) return reduce_slots(g, x, element, name, empty, *result);
  kjit_operand r = kjit_operand_array(*result), offsets = kjit_operand_array(g->offsets);
  return columns_check(engine,
                       kjit_reduce_segments(engine->context, &r, x, &offsets, &operator_, NULL),
                       "the aggregates");
}

static kjit_status make_counts(grouping *g, const line *l, kjit_array **counts)
{
  column_operand one;
  if (l->column->validity) {
    set_validity(g, l, "valid_term_at", &one);
    return reduce_groups(g, &one.operand, KJIT_I64, "add", NULL, counts);
  }
  COLUMNS_TRY(column_make_array(g->engine, KJIT_I64, g->count, counts));
  if (g->slot_count) return take_slot_counts(g, *counts);
  kjit_arg offsets = kjit_arg_array(g->offsets);
  column_operand_set(g->engine, &one, "group_size", g->count, &offsets, 1);
  return columns_map(g->engine, *counts, "same", &one.operand, 1);
}

/* Counts the values of each group that are not null. */
static kjit_status count_values(grouping *g, folded *f)
{
  return f->counts ? KJIT_OK : make_counts(g, &f->line, &f->counts);
}

/* Makes the valid bits of an aggregate: a group is valid if its count is not 0. */
static kjit_status find_validity(grouping *g, kjit_array *counts, kjit_array **bits)
{
  kjit_array *flags = NULL;
  kjit_operand count = kjit_operand_array(counts);
  COLUMNS_TRY(column_make_array(g->engine, KJIT_BOOL, g->count, &flags));
  kjit_status status = columns_map(g->engine, flags, "is_positive", &count, 1);
  if (status == KJIT_OK) status = columns_pack(g->engine, flags, g->count, bits);
  kjit_release_array(flags);
  return status;
}

/* Returns the type in which an aggregate is computed. */
static kjit_type reduced_type(column_aggregation aggregation, kjit_type element)
{
  bool is_signed =
         element == KJIT_I8 || element == KJIT_I16 || element == KJIT_I32 || element == KJIT_I64,
       is_float = element == KJIT_F16 || element == KJIT_F32 || element == KJIT_F64;
  if (aggregation == COLUMN_SUM && !is_float) return is_signed ? KJIT_I64 : KJIT_U64;
  if (aggregation == COLUMN_SUM || aggregation == COLUMN_MEAN) return KJIT_F64;
  return element == KJIT_BOOL ? KJIT_U8 : element;
}

/* Returns the identity element for sums, minima or maxima of this type. bytes receives its bits. */
static kjit_arg empty_value(column_aggregation aggregation, kjit_type type, bool is_bool,
                            uint64_t *bytes)
{
  static const uint16_t half_nan = 0x7e00;
  const float nan_f32 = NAN;
  const double nan_f64 = NAN;
  uint32_t bits = column_find_type(type)->bits;
  bool is_signed = type == KJIT_I8 || type == KJIT_I16 || type == KJIT_I32 || type == KJIT_I64;
  uint64_t all = UINT64_MAX >> (64 - bits), top = is_signed ? all >> 1 : all;
  *bytes = 0;
  if (aggregation == COLUMN_MIN) *bytes = is_bool ? 1 : top;
  if (aggregation == COLUMN_MAX) *bytes = is_bool ? 0 : all - top;
  if (aggregation == COLUMN_MIN || aggregation == COLUMN_MAX) {
    if (type == KJIT_F16) memcpy(bytes, &half_nan, sizeof half_nan);
    if (type == KJIT_F32) memcpy(bytes, &nan_f32, sizeof nan_f32);
    if (type == KJIT_F64) memcpy(bytes, &nan_f64, sizeof nan_f64);
  }
  return kjit_arg_value(type, bytes);
}

/* Computes the sums, minima or maxima of the groups, and for means the sums. */
static kjit_status reduce_values(grouping *g, folded *f, column_aggregation aggregation,
                                 kjit_type type, kjit_array **reduced)
{
  column_operand term;
  uint64_t bytes;
  const line *l = &f->line;
  bool is_sum = aggregation == COLUMN_SUM || aggregation == COLUMN_MEAN;
  const char *operator_ = is_sum ? "add" : aggregation == COLUMN_MIN ? "fmin" : "fmax";
  if (is_sum && f->sums && f->sum_type == type) {
    *reduced = kjit_retain_array(f->sums);
    return KJIT_OK;
  }
  kjit_arg empty = empty_value(aggregation, type, l->column->type->element == KJIT_BOOL, &bytes);
  set_line(g, l, "term_at", "nullable_term_at", &empty, &term);
  COLUMNS_TRY(reduce_groups(g, &term.operand, type, operator_, &empty, reduced));
  if (is_sum && !f->sums) {
    f->sums = kjit_retain_array(*reduced);
    f->sum_type = type;
  }
  return KJIT_OK;
}

/* Replaces sums by means. */
static kjit_status divide(grouping *g, const folded *f, kjit_array **reduced)
{
  kjit_array *means = NULL;
  kjit_operand two[] = { kjit_operand_array(*reduced), kjit_operand_array(f->counts) };
  COLUMNS_TRY(column_make_array(g->engine, KJIT_F64, g->count, &means));
  kjit_status status = columns_map(g->engine, means, "quotient", two, 2);
  kjit_release_array(*reduced);
  *reduced = means;
  return status;
}

/* Makes a column of the reduced values and takes over their array. Bools become bits. */
static kjit_status finish_values(grouping *g, const folded *f, column_aggregation aggregation,
                                 kjit_type type, kjit_array **reduced, column **result)
{
  columns_engine *engine = g->engine;
  const column *c = f->line.column;
  bool keeps_type = aggregation == COLUMN_MIN || aggregation == COLUMN_MAX;
  kjit_array *validity = NULL, *bits = NULL;
  if (aggregation == COLUMN_MEAN) COLUMNS_TRY(divide(g, f, reduced));
  if (keeps_type && c->type->element == KJIT_BOOL) {
    COLUMNS_TRY(columns_pack(engine, *reduced, g->count, &bits));
    kjit_release_array(*reduced);
    *reduced = bits;
  }
  if (c->validity) COLUMNS_TRY(find_validity(g, f->counts, &validity));
  const char *format = keeps_type ? c->format : column_find_type(type)->format;
  kjit_status status = column_make(engine, format, g->count, *reduced, validity, result);
  if (status == KJIT_OK) *reduced = NULL;
  else kjit_release_array(validity);
  return status;
}

static kjit_status count_column(grouping *g, const folded *f, column **result)
{
  kjit_array *counts = kjit_retain_array(f->counts);
  kjit_status status = column_make(g->engine, "l", g->count, counts, NULL, result);
  if (status != KJIT_OK) kjit_release_array(counts);
  return status;
}

static kjit_status aggregate_folded(grouping *g, folded *f, column_aggregation aggregation,
                                    column **result)
{
  const column *c = f->line.column;
  kjit_array *reduced = NULL;
  kjit_type type = reduced_type(aggregation, c->type->element);
  if (c->validity || aggregation == COLUMN_COUNT || aggregation == COLUMN_MEAN)
    COLUMNS_TRY(count_values(g, f));
  if (aggregation == COLUMN_COUNT) return count_column(g, f, result);
  kjit_status status = reduce_values(g, f, aggregation, type, &reduced);
  if (status == KJIT_OK) status = finish_values(g, f, aggregation, type, &reduced, result);
  kjit_release_array(reduced);
  return status;
}

/* Returns the counts and sums of a column. The group-by keeps one `folded` for each column. */
static folded *find_folded(grouping *g, const column *values)
{
  folded *f = g->folds;
  while (f->line.column && f->line.column != values) f++;
  return f;
}

kjit_status aggregate_column(grouping *g, const column_aggregate *a, column **result)
{
  folded *f = find_folded(g, a->values);
  if (!f->line.column) COLUMNS_TRY(open_line(g->engine, a->values, &f->line));
  return aggregate_folded(g, f, a->aggregation, result);
}

void release_folds(folded *folds, size_t count)
{
  for (size_t i = 0; i < count && folds; i++) {
    kjit_release_array(folds[i].line.values);
    kjit_release_array(folds[i].counts);
    kjit_release_array(folds[i].sums);
  }
}

/* group.c: groups rows by keys. The keys of a row are packed into words of up to 64 bits. If a
 * single word with few possible values is enough, each value gets a slot (group_slots.c). Otherwise
 * the rows are sorted: `places` has the row numbers in the order of their keys, `offsets` has the
 * start of each group, and a segmented reduction computes the aggregates. If there are several
 * words, the rows are sorted by each word in turn, from the last word to the first, with a stable
 * sort. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "group.h"

/* ---- operands ---- */

static kjit_status open_line(columns_engine *engine, const column *c, line *l)
{
  column_operand value;
  l->column = c;
  if (c->rows) {
    l->values = kjit_retain_array(c->rows);
    return KJIT_OK;
  }
  column_value_operand(c, &value);
  COLUMNS_TRY(column_make_array(engine, KJIT_BOOL, c->length, &l->values));
  return columns_map(engine, l->values, "same", &value.operand, 1);
}

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

/* ---- words ---- */

/* A field of a row's words: a key as a number. A key whose numbers need all 64 bits has another
 * field, which tells whether the key is null. */
typedef struct field {
  column_operand operand;
  uint32_t bits;
} field;

/* Appends the field to the last word, or starts a new word if the last one is full. */
static kjit_status add_field(grouping *g, const field *f)
{
  columns_engine *engine = g->engine;
  word *last = g->word_count ? &g->words[g->word_count - 1] : NULL;
  bool joins = last && last->bits + f->bits <= 64;
  uint32_t bits = joins ? last->bits + f->bits : f->bits;
  kjit_array *rows = NULL;
  COLUMNS_TRY(column_make_array(engine, bits > 32 ? KJIT_U64 : KJIT_U32, g->length, &rows));
  kjit_operand operands[3];
  if (joins) {
    operands[0] = kjit_operand_array(last->rows);
    operands[1] = f->operand.operand;
    operands[2] = kjit_operand_of(kjit_arg_u64(f->bits));
  } else {
    operands[0] = f->operand.operand;
  }
  kjit_status status =
    columns_map(engine, rows, joins ? "joined" : "same", operands, joins ? 3 : 1);
  if (status != KJIT_OK) {
    kjit_release_array(rows);
    return status;
  }
  if (joins) kjit_release_array(last->rows);
  else last = &g->words[g->word_count++];
  last->rows = rows;
  last->bits = bits;
  return KJIT_OK;
}

static void set_key(const grouping *g, const line *key, uint64_t least, uint64_t null,
                    column_operand *o)
{
  const column *c = key->column;
  bool has_nulls = c->validity && !g->drops_nulls;
  kjit_arg arguments[] = { kjit_arg_array(key->values), kjit_arg_u64(least), kjit_arg_u64(null),
                           kjit_arg_array(c->validity), kjit_arg_i64(c->offset) };
  column_operand_set(g->engine, o, has_nulls ? "nullable_key_field" : "key_field", g->length,
                     arguments, has_nulls ? 5 : 2);
}

/* Computes the minimum or maximum of a key's numbers. `null` is the number that replaces a null. */
static kjit_status reduce_key(grouping *g, const line *key, const char *name, uint64_t null,
                              uint64_t *number)
{
  columns_engine *engine = g->engine;
  column_operand x;
  kjit_operator operator_ = kjit_operator_named(name);
  kjit_array *one = NULL;
  set_key(g, key, 0, null, &x);
  COLUMNS_TRY(column_make_array(engine, KJIT_U64, 1, &one));
  kjit_operand result = kjit_operand_array(one);
  kjit_status status =
    columns_check(engine, kjit_reduce(engine->context, &result, &x.operand, &operator_, NULL),
                  "the keys");
  if (status == KJIT_OK)
    status =
      columns_check(engine, kjit_copy_to_host(one, number, sizeof *number, NULL), "the keys");
  kjit_release_array(one);
  return status;
}

/* Adds a field with enough bits for the numbers between the minimum and the maximum of a key. The
 * number of a null follows them. */
static kjit_status add_key(grouping *g, const line *key)
{
  const column *c = key->column;
  bool has_nulls = c->validity && !g->drops_nulls;
  uint64_t least = 0, greatest = 0;
  field f = { .bits = 1 };
  if (g->length) {
    COLUMNS_TRY(reduce_key(g, key, "min", UINT64_MAX, &least));
    COLUMNS_TRY(reduce_key(g, key, "max", 0, &greatest));
  }
  uint64_t range = greatest < least ? 0 : greatest - least;
  bool is_apart = has_nulls && range == UINT64_MAX;
  if (is_apart) {
    field null = { .bits = 1 };
    kjit_arg arguments[] = { kjit_arg_array(c->validity), kjit_arg_i64(c->offset) };
    column_operand_set(g->engine, &null.operand, "null_field", g->length, arguments, 2);
    COLUMNS_TRY(add_field(g, &null));
  }
  uint64_t null = is_apart ? 0 : range + 1, most = has_nulls && !is_apart ? null : range;
  while (f.bits < 64 && most >> f.bits) f.bits++;
  set_key(g, key, least, null, &f.operand);
  return add_field(g, &f);
}

/* ---- the order ---- */

/* Makes an array of bools: whether all keys of a row are valid. The array is NULL if no key has
 * nulls.
 */
static kjit_status mark_valid_keys(grouping *g, kjit_array **flags)
{
  columns_engine *engine = g->engine;
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < g->key_count && status == KJIT_OK; i++) {
    column_operand valid;
    bool is_first = !*flags;
    if (!g->keys[i].column->validity) continue;
    column_validity_operand(g->keys[i].column, &valid);
    if (is_first) status = column_make_array(engine, KJIT_BOOL, g->length, flags);
    if (status != KJIT_OK) break;
    kjit_operand operands[] = { valid.operand, kjit_operand_array(*flags) };
    status = columns_map(engine, *flags, is_first ? "same" : "both", operands, is_first ? 1 : 2);
  }
  return status;
}

kjit_status find_places(grouping *g, kjit_array *flags, int64_t length, kjit_array **places,
                        int64_t *count)
{
  columns_engine *engine = g->engine;
  kjit_array *all = NULL;
  COLUMNS_TRY(column_make_array(engine, g->index, length, &all));
  kjit_operand from = kjit_operand_array(flags), to = kjit_operand_array(all),
               number = kjit_operand_array(g->number);
  kjit_status status =
    columns_check(engine, kjit_nonzero(engine->context, &to, &number, &from, NULL),
                  "the places of rows");
  if (status == KJIT_OK) status = columns_read_number(engine, g->number, count);
  kjit_array_slice used = { 0, *count, 1 };
  if (status == KJIT_OK)
    status = columns_check(engine, kjit_slice_array(all, &used, 1, places), "the places of rows");
  kjit_release_array(all);
  return status;
}

/* Removes rows with a null key from `places`. */
static kjit_status drop_nulls(grouping *g)
{
  kjit_array *flags = NULL;
  kjit_status status = mark_valid_keys(g, &flags);
  if (status == KJIT_OK && flags)
    status = find_places(g, flags, g->length, &g->places, &g->used_length);
  kjit_release_array(flags);
  return status;
}

/* Sorts `places` by a word. */
static kjit_status sort_by(grouping *g, word *w)
{
  columns_engine *engine = g->engine;
  column_operand x, place;
  kjit_array *places = NULL;
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_operand words = kjit_operand_array(w->rows);
  if (g->places) {
    kjit_arg arguments[] = { kjit_arg_array(g->places), kjit_arg_array(w->rows) };
    column_operand_set(engine, &x, "taken_value", g->used_length, arguments, 2);
    words = x.operand;
    place.operand = kjit_operand_array(g->places);
  } else {
    kjit_arg zero = g->index == KJIT_I32 ? kjit_arg_i32(0) : kjit_arg_i64(0);
    column_operand_set(engine, &place, "place_at", g->used_length, &zero, 1);
  }
  COLUMNS_TRY(column_make_array(engine, g->index, g->used_length, &places));
  kjit_status status =
    column_make_array(engine, w->bits > 32 ? KJIT_U64 : KJIT_U32, g->used_length, &w->sorted);
  if (status == KJIT_OK) {
    kjit_operand keys = kjit_operand_array(w->sorted), to = kjit_operand_array(places);
    options = (kjit_algorithm_options){ .size_bytes = sizeof options };
    options.end_bit = w->bits;
    status = columns_check(engine,
                           kjit_sort_pairs(engine->context, &keys, &to, &words, &place.operand,
                                           NULL, &options),
                           "the keys");
  }
  if (status != KJIT_OK) {
    kjit_release_array(places);
    return status;
  }
  kjit_release_array(g->places);
  g->places = places;
  return KJIT_OK;
}

/* ---- the groups ---- */

static kjit_status mark_starts(grouping *g, kjit_array *flags)
{
  for (size_t i = 0; i < g->word_count; i++) {
    column_operand change;
    kjit_arg sorted = kjit_arg_array(g->words[0].sorted),
             taken[] = { kjit_arg_array(g->places), kjit_arg_array(g->words[i].rows) };
    if (!i) column_operand_set(g->engine, &change, "sorted_changes", g->used_length, &sorted, 1);
    else column_operand_set(g->engine, &change, "changes", g->used_length, taken, 2);
    kjit_operand operands[] = { change.operand, kjit_operand_array(flags) };
    COLUMNS_TRY(columns_map(g->engine, flags, i ? "either" : "same", operands, i ? 2 : 1));
  }
  return KJIT_OK;
}

static kjit_status find_offsets(grouping *g, kjit_array *starts)
{
  column_operand offset;
  kjit_arg arguments[] = { kjit_arg_array(starts), kjit_arg_i64(g->used_length) };
  column_operand_set(g->engine, &offset, "group_offset", g->count + 1, arguments, 2);
  COLUMNS_TRY(column_make_array(g->engine, KJIT_I64, g->count + 1, &g->offsets));
  return columns_map(g->engine, g->offsets, "same", &offset.operand, 1);
}

static kjit_status find_groups(grouping *g)
{
  kjit_array *flags = NULL, *starts = NULL;
  COLUMNS_TRY(column_make_array(g->engine, KJIT_I64, 1, &g->number));
  for (size_t i = 0; i < g->key_count; i++) COLUMNS_TRY(add_key(g, &g->keys[i]));
  if (g->drops_nulls) COLUMNS_TRY(drop_nulls(g));
  if (has_slots(g)) return find_slots(g);
  for (size_t i = g->word_count; i-- > 0;) COLUMNS_TRY(sort_by(g, &g->words[i]));
  COLUMNS_TRY(column_make_array(g->engine, KJIT_BOOL, g->used_length, &flags));
  kjit_status status = mark_starts(g, flags);
  if (status == KJIT_OK) status = find_places(g, flags, g->used_length, &starts, &g->count);
  if (status == KJIT_OK) status = find_offsets(g, starts);
  kjit_release_array(starts);
  kjit_release_array(flags);
  return status;
}

static kjit_status take_first_places(grouping *g, kjit_array *firsts)
{
  column_operand first;
  kjit_arg arguments[] = { kjit_arg_array(g->offsets), kjit_arg_array(g->places) };
  column_operand_set(g->engine, &first, "taken_value", g->count, arguments, 2);
  return columns_map(g->engine, firsts, "same", &first.operand, 1);
}

/* Returns the keys of the groups: the keys of the first row of each group. */
static kjit_status take_keys(grouping *g, column **results)
{
  columns_engine *engine = g->engine;
  kjit_array *firsts = NULL;
  COLUMNS_TRY(column_make_array(engine, g->index, g->count, &firsts));
  kjit_status status = g->slot_count ? find_first_rows(g, firsts) : take_first_places(g, firsts);
  for (size_t i = 0; i < g->key_count && status == KJIT_OK; i++)
    status = column_take_rows(g->keys[i].column, firsts, g->count, &results[i]);
  kjit_release_array(firsts);
  return status;
}

/* ---- aggregates ---- */

/* Computes one number for each group. x has an element for each place; `empty` changes no result.
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

/* Counts the values of each group that are not null. */
static kjit_status count_values(grouping *g, const line *l, kjit_array **counts)
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
static kjit_status reduce_values(grouping *g, const line *l, column_aggregation aggregation,
                                 kjit_type type, kjit_array **reduced)
{
  column_operand term;
  uint64_t bytes;
  const char *operator_ = aggregation == COLUMN_MIN   ? "fmin"
                          : aggregation == COLUMN_MAX ? "fmax"
                                                      : "add";
  kjit_arg empty = empty_value(aggregation, type, l->column->type->element == KJIT_BOOL, &bytes);
  set_line(g, l, "term_at", "nullable_term_at", &empty, &term);
  return reduce_groups(g, &term.operand, type, operator_, &empty, reduced);
}

/* Makes a column of the reduced values and takes over their array. Bools become bits. */
static kjit_status finish_values(grouping *g, const line *l, column_aggregation aggregation,
                                 kjit_type type, kjit_array **reduced, kjit_array *counts,
                                 column **result)
{
  columns_engine *engine = g->engine;
  const column *c = l->column;
  bool keeps_type = aggregation == COLUMN_MIN || aggregation == COLUMN_MAX;
  kjit_array *validity = NULL, *bits = NULL;
  if (aggregation == COLUMN_MEAN) {
    kjit_operand two[] = { kjit_operand_array(*reduced), kjit_operand_array(counts) };
    COLUMNS_TRY(columns_map(engine, *reduced, "quotient", two, 2));
  }
  if (keeps_type && c->type->element == KJIT_BOOL) {
    COLUMNS_TRY(columns_pack(engine, *reduced, g->count, &bits));
    kjit_release_array(*reduced);
    *reduced = bits;
  }
  if (c->validity) COLUMNS_TRY(find_validity(g, counts, &validity));
  const char *format = keeps_type ? c->format : column_find_type(type)->format;
  kjit_status status = column_make(engine, format, g->count, *reduced, validity, result);
  if (status == KJIT_OK) *reduced = NULL;
  else kjit_release_array(validity);
  return status;
}

static kjit_status aggregate_line(grouping *g, const line *l, column_aggregation aggregation,
                                  column **result)
{
  kjit_array *counts = NULL, *reduced = NULL;
  kjit_type type = reduced_type(aggregation, l->column->type->element);
  kjit_status status = KJIT_OK;
  if (aggregation == COLUMN_COUNT) {
    status = count_values(g, l, &reduced);
    if (status == KJIT_OK) status = column_make(g->engine, "l", g->count, reduced, NULL, result);
    if (status == KJIT_OK) reduced = NULL;
  } else {
    if (l->column->validity || aggregation == COLUMN_MEAN) status = count_values(g, l, &counts);
    if (status == KJIT_OK) status = reduce_values(g, l, aggregation, type, &reduced);
    if (status == KJIT_OK)
      status = finish_values(g, l, aggregation, type, &reduced, counts, result);
  }
  kjit_release_array(counts);
  kjit_release_array(reduced);
  return status;
}

static kjit_status aggregate_column(grouping *g, const column_aggregate *a, column **result)
{
  line l = { 0 };
  kjit_status status = open_line(g->engine, a->values, &l);
  if (status == KJIT_OK) status = aggregate_line(g, &l, a->aggregation, result);
  kjit_release_array(l.values);
  return status;
}

/* ---- the call ---- */

static kjit_status check_column(columns_engine *engine, const column *c, int64_t length,
                                const char *what, size_t index)
{
  if (!c) return columns_fail(engine, KJIT_ERROR_MISUSE, "%s %zu is NULL", what, index);
  if (c->engine != engine)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "%s %zu is of another engine", what, index);
  if (c->length != length)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "%s %zu has %lld rows, and key 0 has %lld",
                        what, index, (long long)c->length, (long long)length);
  return KJIT_OK;
}

static kjit_status check(columns_engine *engine, column *const *keys, size_t key_count,
                         const column_aggregate *aggregates, size_t count, uint32_t flags)
{
  if (!keys || !key_count || !keys[0])
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "there are no keys to group by");
  if (flags & ~(uint32_t)COLUMN_DROP_NULL_KEYS)
    return columns_fail(engine, KJIT_ERROR_MISUSE, "there are no flags 0x%x", flags);
  for (size_t i = 0; i < key_count; i++)
    COLUMNS_TRY(check_column(engine, keys[i], keys[0]->length, "key", i));
  for (size_t i = 0; i < count; i++) {
    const column *c = aggregates[i].values;
    column_aggregation aggregation = aggregates[i].aggregation;
    COLUMNS_TRY(check_column(engine, c, keys[0]->length, "the column of aggregate", i));
    if ((unsigned)aggregation >= COLUMN_AGGREGATION_COUNT)
      return columns_fail(engine, KJIT_ERROR_ARGUMENT, "aggregate %zu: there is no aggregation %d",
                          i, (int)aggregation);
    if (c->type->is_time && (aggregation == COLUMN_SUM || aggregation == COLUMN_MEAN))
      return columns_fail(engine, KJIT_ERROR_UNSUPPORTED,
                          "aggregate %zu: a column of format \"%s\" has no sum and no mean", i,
                          c->format);
  }
  return KJIT_OK;
}

static kjit_status group(grouping *g, column *const *keys, const column_aggregate *aggregates,
                         size_t aggregate_count, column **results)
{
  for (size_t i = 0; i < g->key_count; i++) COLUMNS_TRY(open_line(g->engine, keys[i], &g->keys[i]));
  COLUMNS_TRY(find_groups(g));
  COLUMNS_TRY(take_keys(g, results));
  for (size_t i = 0; i < aggregate_count; i++)
    COLUMNS_TRY(aggregate_column(g, &aggregates[i], &results[g->key_count + i]));
  return KJIT_OK;
}

kjit_status columns_group(columns_engine *engine, column *const *keys, size_t key_count,
                          const column_aggregate *aggregates, size_t aggregate_count,
                          uint32_t flags, column **results)
{
  if (!engine || !results || (aggregate_count && !aggregates)) return KJIT_ERROR_MISUSE;
  COLUMNS_TRY(check(engine, keys, key_count, aggregates, aggregate_count, flags));
  size_t result_count = key_count + aggregate_count;
  column **made = calloc(result_count, sizeof *made);
  grouping g = { .engine = engine,
                 .keys = calloc(key_count, sizeof *g.keys),
                 .key_count = key_count,
                 .words = calloc(2 * key_count, sizeof *g.words),
                 .length = keys[0]->length,
                 .used_length = keys[0]->length,
                 .drops_nulls = flags & COLUMN_DROP_NULL_KEYS,
                 .index = keys[0]->length < INT32_MAX ? KJIT_I32 : KJIT_I64 };
  kjit_status status = made && g.keys && g.words
                         ? group(&g, keys, aggregates, aggregate_count, made)
                         : columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  for (size_t i = 0; i < result_count && made; i++) {
    if (status == KJIT_OK) results[i] = made[i];
    else column_release(made[i]);
  }
  for (size_t i = 0; i < key_count && g.keys; i++) kjit_release_array(g.keys[i].values);
  for (size_t i = 0; i < g.word_count; i++) {
    kjit_release_array(g.words[i].rows);
    kjit_release_array(g.words[i].sorted);
  }
  kjit_release_array(g.places);
  kjit_release_array(g.number);
  kjit_release_array(g.offsets);
  kjit_release_array(g.slot_counts);
  kjit_release_array(g.present);
  free(g.keys);
  free(g.words);
  free(made);
  return status;
}

/* group.c: groups rows by keys. The keys of a row are packed into words of up to 64 bits. If a
 * single word with few possible values is enough, each value gets a slot (group_slots.c). Otherwise
 * the rows are sorted: `places` has the row numbers in the order of their keys, `offsets` has the
 * start of each group, and a segmented reduction computes the aggregates. If there are several
 * words, the rows are sorted by each word in turn, from the last word to the first, with a stable
 * sort. */
#include <stdlib.h>

#include "group.h"

/* ---- operands ---- */

kjit_status open_line(columns_engine *engine, const column *c, line *l)
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

/* ---- words ---- */

/* A field of a row's words: a key as a number. A key whose numbers need all 64 bits has another
 * field, which tells whether the key is null. */
typedef struct field {
  const line *key; /* NULL: the field says whether `null_of` is null */
  const column *null_of;
  uint64_t least, null;
  uint32_t bits;
} field;

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

static void set_field(const grouping *g, const field *f, column_operand *o)
{
  if (f->key) {
    set_key(g, f->key, f->least, f->null, o);
    return;
  }
  kjit_arg arguments[] = { kjit_arg_array(f->null_of->validity), kjit_arg_i64(f->null_of->offset) };
  column_operand_set(g->engine, o, "null_field", g->length, arguments, 2);
}

/* Appends a field to the words of the rows, or writes the words if there are none yet. */
static kjit_status write_words(grouping *g, word *w, const field *f)
{
  columns_engine *engine = g->engine;
  column_operand operand;
  kjit_array *rows = NULL;
  bool joins = w->rows != NULL;
  set_field(g, f, &operand);
  COLUMNS_TRY(column_make_array(engine, w->bits > 32 ? KJIT_U64 : KJIT_U32, g->length, &rows));
  kjit_operand operands[3] = { operand.operand };
  if (joins) {
    operands[0] = kjit_operand_array(w->rows);
    operands[1] = operand.operand;
    operands[2] = kjit_operand_of(kjit_arg_u64(f->bits));
  }
  kjit_status status =
    columns_map(engine, rows, joins ? "joined" : "same", operands, joins ? 3 : 1);
  if (status != KJIT_OK) {
    kjit_release_array(rows);
    return status;
  }
  kjit_release_array(w->rows);
  w->rows = rows;
  return KJIT_OK;
}

/* Writes the words that kernels computed from a key so far. */
static kjit_status write_key_words(grouping *g, word *w)
{
  if (w->rows) return KJIT_OK;
  return write_words(g, w, &(field){ w->key, NULL, w->least, w->null, w->bits });
}

/* Appends the field to the last word, or starts a new word if the last one is full. A word of a
 * single key is written later, if another field follows or if the rows are sorted. */
static kjit_status add_field(grouping *g, const field *f)
{
  word *last = g->word_count ? &g->words[g->word_count - 1] : NULL;
  if (last && last->bits + f->bits <= 64) {
    COLUMNS_TRY(write_key_words(g, last));
    last->bits += f->bits;
    return write_words(g, last, f);
  }
  last = &g->words[g->word_count++];
  *last = (word){ .bits = f->bits, .key = f->key, .least = f->least, .null = f->null };
  return f->key ? KJIT_OK : write_words(g, last, f);
}

/* Computes reductions of a key's numbers. `null` is the number that replaces a null. */
static kjit_status reduce_key(grouping *g, const line *key, const kjit_operator *operators,
                              size_t count, uint64_t null, uint64_t *numbers)
{
  columns_engine *engine = g->engine;
  column_operand x;
  kjit_array *made[2] = { NULL, NULL };
  kjit_operand results[2];
  kjit_status status = KJIT_OK;
  set_key(g, key, 0, null, &x);
  for (size_t i = 0; i < count && status == KJIT_OK; i++) {
    status = column_make_array(engine, KJIT_U64, 1, &made[i]);
    if (status == KJIT_OK) results[i] = kjit_operand_array(made[i]);
  }
  if (status == KJIT_OK)
    status = columns_check(engine,
                           kjit_reduce_several(engine->context, results, &x.operand, operators,
                                               count, NULL),
                           "the keys");
  for (size_t i = 0; i < count; i++) {
    if (status == KJIT_OK)
      status = columns_check(engine, kjit_copy_to_host(made[i], &numbers[i], sizeof *numbers, NULL),
                             "the keys");
    kjit_release_array(made[i]);
  }
  return status;
}

/* Computes the minimum and maximum of a key's numbers. One pass is enough unless the key has nulls
 * and needs all 64 bits: then no number is free for the nulls. If all keys are null, the minimum
 * exceeds the maximum. */
static kjit_status find_range(grouping *g, const line *key, uint64_t numbers[2])
{
  const column *c = key->column;
  bool has_nulls = c->validity && !g->drops_nulls;
  kjit_operator operators[2] = { kjit_operator_named("min"), kjit_operator_named("max") };
  if (has_nulls && c->type->bits == 64) {
    COLUMNS_TRY(reduce_key(g, key, &operators[0], 1, UINT64_MAX, &numbers[0]));
    return reduce_key(g, key, &operators[1], 1, 0, &numbers[1]);
  }
  if (has_nulls) {
    operators[1] = kjit_operator_function(columns_find(g->engine, "greatest_key"));
    operators[1].commutes = 1;
  }
  COLUMNS_TRY(reduce_key(g, key, operators, 2, UINT64_MAX, numbers));
  if (has_nulls && numbers[1] == UINT64_MAX) numbers[1] = 0; /* all keys are null */
  return KJIT_OK;
}

/* Adds a field with enough bits for the numbers between the minimum and the maximum of a key. The
 * number of a null follows them. */
static kjit_status add_key(grouping *g, const line *key)
{
  const column *c = key->column;
  bool has_nulls = c->validity && !g->drops_nulls;
  uint64_t numbers[2] = { 0, 0 };
  if (g->length) COLUMNS_TRY(find_range(g, key, numbers));
  uint64_t least = numbers[0], range = numbers[1] < least ? 0 : numbers[1] - least;
  bool is_apart = has_nulls && range == UINT64_MAX;
  if (is_apart) COLUMNS_TRY(add_field(g, &(field){ .null_of = c, .bits = 1 }));
  field f = { .key = key, .least = least, .null = is_apart ? 0 : range + 1, .bits = 1 };
  uint64_t most = has_nulls && !is_apart ? f.null : range;
  while (f.bits < 64 && most >> f.bits) f.bits++;
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
  for (size_t i = 0; i < g->word_count; i++) COLUMNS_TRY(write_key_words(g, &g->words[i]));
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

/* ---- the call ---- */

static kjit_status check_column(columns_engine *engine, const column *c, int64_t length,
                                const char *what, size_t index)
{
  if (!c) return columns_fail(engine, KJIT_ERROR_MISUSE, "%s %zu is NULL", what, index);
  if (c->engine != engine)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "%s %zu belongs to another engine", what,
                        index);
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
                 .folds = calloc(aggregate_count + 1, sizeof *g.folds),
                 .length = keys[0]->length,
                 .used_length = keys[0]->length,
                 .drops_nulls = flags & COLUMN_DROP_NULL_KEYS,
                 .index = keys[0]->length < INT32_MAX ? KJIT_I32 : KJIT_I64 };
  kjit_status status = made && g.keys && g.words && g.folds
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
  release_folds(g.folds, aggregate_count);
  kjit_release_array(g.places);
  kjit_release_array(g.number);
  kjit_release_array(g.offsets);
  kjit_release_array(g.slot_counts);
  kjit_release_array(g.present);
  free(g.keys);
  free(g.words);
  free(g.folds);
  free(made);
  return status;
}

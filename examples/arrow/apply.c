/* apply.c: applies functions to columns, and filters columns, by kjit_map and kjit_select over the
 * columns' arrays.
 *
 * A function of two columns is a call of kjit_map with up to four operands. For each column there
 * is an operand with its values (an array, or for booleans a func that reads a bit) and, if the
 * column has nulls, an operand that tells whether a value is valid (a func). */
#include <stdlib.h>
#include <string.h>

#include "columns_engine.h"

struct column_function {
  columns_engine *engine;
  char *name;
  size_t operand_count;
  column_nulls nulls;
  kjit_module *text, *module;
  kjit_function *plain; /* the module with the application's function */
  /* a wrapper whose parameters are the values, followed by one bool for each value that tells
   * whether the value is valid; see write_wrappers */
  kjit_function *values;
  kjit_function *holds; /* the same wrapper as a predicate */
};

/* ---- operands ---- */

void column_operand_set(const columns_engine *engine, column_operand *o, const char *function,
                        int64_t extent, const kjit_arg *arguments, size_t count)
{
  o->extent = extent;
  if (count) memcpy(o->arguments, arguments, count * sizeof *arguments);
  o->operand =
    kjit_operand_function(columns_find(engine, function), o->arguments, count, &o->extent, 1);
}

static void set_bits(const column *c, column_operand *o, kjit_array *bits)
{
  kjit_arg arguments[] = { kjit_arg_array(bits), kjit_arg_i64(c->offset) };
  column_operand_set(c->engine, o, "bit_at", c->length, arguments, 2);
}

void column_value_operand(const column *c, column_operand *o)
{
  if (c->rows) o->operand = kjit_operand_array(c->rows);
  else set_bits(c, o, c->values);
}

void column_validity_operand(const column *c, column_operand *o)
{
  if (c->validity) set_bits(c, o, c->validity);
  else column_operand_set(c->engine, o, "always", c->length, NULL, 0);
}

/* Makes an operand that reads the bits of 8 rows as a byte. */
static void set_bytes(const column *c, column_operand *o, kjit_array *bits)
{
  kjit_arg arguments[] = { kjit_arg_array(bits), kjit_arg_i64(c->offset), kjit_arg_i64(c->length) };
  column_operand_set(c->engine, o, "byte_at", bytes_of_bits(c->length), arguments, 3);
}

/* ---- bits ---- */

kjit_status columns_map(columns_engine *engine, kjit_array *result, const char *function,
                        const kjit_operand *operands, size_t count)
{
  kjit_operand r = kjit_operand_array(result);
  return columns_check(engine,
                       kjit_map(engine->context, &r, 1, columns_find(engine, function), operands,
                                count, NULL),
                       function);
}

kjit_status columns_pack(columns_engine *engine, kjit_array *flags, int64_t length,
                         kjit_array **bits)
{
  column_operand packed;
  kjit_arg arguments[] = { kjit_arg_array(flags), kjit_arg_i64(length) };
  column_operand_set(engine, &packed, "packed_byte", bytes_of_bits(length), arguments, 2);
  COLUMNS_TRY(column_make_array(engine, KJIT_U8, bytes_of_bits(length), bits));
  kjit_status status = columns_map(engine, *bits, "same", &packed.operand, 1);
  if (status != KJIT_OK) kjit_release_array(*bits);
  return status;
}

/* Computes the validity of a result: a row is valid if all operands are. Stores NULL in *validity
 * if no operand has nulls. */
static kjit_status join_validity(columns_engine *engine, column *const *operands, size_t count,
                                 kjit_array **validity)
{
  kjit_status status = KJIT_OK;
  *validity = NULL;
  for (size_t i = 0; i < count && status == KJIT_OK; i++) {
    const column *c = operands[i];
    column_operand bytes;
    if (!c->validity) continue;
    set_bytes(c, &bytes, c->validity);
    if (!*validity) {
      COLUMNS_TRY(column_make_array(engine, KJIT_U8, bytes_of_bits(c->length), validity));
      status = columns_map(engine, *validity, "same", &bytes.operand, 1);
    } else {
      kjit_operand two[] = { kjit_operand_array(*validity), bytes.operand };
      status = columns_map(engine, *validity, "both", two, 2);
    }
  }
  if (status == KJIT_OK) return status;
  kjit_release_array(*validity);
  return status;
}

/* ---- functions ---- */

/* Source of the wrappers around a function. For a function of two columns, %F stands for its name,
 * %V for the values v0, v1, %K for the validities k0, k1, %A for `k0 and k1`, and %P for (v0, k0),
 * (v1, k1). */
static const char propagating[] = "extern func %F(%V)\n"
                                  "func columns_values(%V, %K) {\n"
                                  "  var value = zero(dtype(%F(%V)))\n"
                                  "  if %A { value = %F(%V) }\n"
                                  "  return value\n"
                                  "}\n"
                                  "func columns_holds(%V, %K) { return %A and %F(%V) }\n",
                  handling[] = "extern func %F(%V)\n"
                               "func columns_values(%V, %K) { return %F(%P) }\n"
                               "func columns_holds(%V, %K) {\n"
                               "  let value, valid = %F(%P)\n"
                               "  return valid and value\n"
                               "}\n";

static void write_wrappers(FILE *text, const column_function *f)
{
  for (const char *at = f->nulls == COLUMN_NULLS_HANDLED ? handling : propagating; *at; at++) {
    if (*at != '%') {
      fputc(*at, text);
      continue;
    }
    at++;
    if (*at == 'F') fputs(f->name, text);
    for (size_t i = 0; i < f->operand_count && *at != 'F'; i++) {
      if (i) fputs(*at == 'A' ? " and " : ", ", text);
      if (*at == 'V') fprintf(text, "v%zu", i);
      else if (*at == 'P') fprintf(text, "(v%zu, k%zu)", i, i);
      else fprintf(text, "k%zu", i);
    }
  }
}

/* Parses the wrappers and links them with the application's function. */
static kjit_status make_wrappers(column_function *f)
{
  columns_engine *engine = f->engine;
  char *wrappers = NULL;
  size_t length = 0;
  kjit_module *parsed = NULL;
  FILE *text = open_memstream(&wrappers, &length);
  if (!text) return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  write_wrappers(text, f);
  bool is_written = !ferror(text);
  is_written = !fclose(text) && is_written;
  kjit_status status =
    is_written
      ? columns_check(engine,
                      kjit_parse_module(engine->context, f->name, wrappers, length, &parsed),
                      f->name)
      : columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  free(wrappers);
  if (status == KJIT_OK)
    status = columns_check(engine, kjit_link_module(parsed, f->text, &f->module), f->name);
  kjit_release_module(parsed);
  COLUMNS_TRY(status);
  COLUMNS_TRY(
    columns_check(engine, kjit_get_function(f->module, "columns_values", &f->values), f->name));
  return columns_check(engine, kjit_get_function(f->module, "columns_holds", &f->holds), f->name);
}

static kjit_status define(column_function *f, const char *text)
{
  columns_engine *engine = f->engine;
  if (f->operand_count < 1 || f->operand_count > MOST_OPERANDS)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "`%s` has %zu operands, but must have 1 to %d",
                        f->name, f->operand_count, MOST_OPERANDS);
  if ((unsigned)f->nulls > COLUMN_NULLS_HANDLED)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT,
                        "`%s`: nulls is %d, which is not a column_nulls value", f->name,
                        (int)f->nulls);
  COLUMNS_TRY(
    columns_check(engine, kjit_parse_module(engine->context, f->name, text, strlen(text), &f->text),
                  f->name));
  COLUMNS_TRY(columns_check(engine, kjit_get_function(f->text, f->name, &f->plain), f->name));
  return make_wrappers(f);
}

kjit_status columns_define(columns_engine *engine, const char *text, const char *name,
                           size_t operand_count, column_nulls nulls, column_function **function)
{
  if (!engine || !text || !name || !function) return KJIT_ERROR_MISUSE;
  column_function *f = calloc(1, sizeof *f);
  char *copy = strdup(name);
  if (!f || !copy) {
    free(f);
    free(copy);
    return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  }
  columns_retain(engine);
  *f = (column_function){
    .engine = engine, .name = copy, .operand_count = operand_count, .nulls = nulls
  };
  kjit_status status = define(f, text);
  if (status == KJIT_OK) *function = f;
  else column_function_release(f);
  return status;
}

void column_function_release(column_function *f)
{
  if (!f) return;
  kjit_release_module(f->module);
  kjit_release_module(f->text);
  free(f->name);
  columns_close(f->engine);
  free(f);
}

/* ---- calls ---- */

/* A function and its operands. */
typedef struct call {
  const column_function *function;
  column *const *columns;
  int64_t length;
  bool has_nulls; /* true if the kernel gets the validity of values */
  column_operand operands[2 * MOST_OPERANDS];
  kjit_operand list[2 * MOST_OPERANDS];
  size_t count;
  kjit_type result; /* type of the result's values */
} call;

static kjit_status check_lengths(columns_engine *engine, column *const *columns, size_t count,
                                 int64_t length, const char *what)
{
  for (size_t i = 0; i < count; i++) {
    if (!columns || !columns[i]) return columns_fail(engine, KJIT_ERROR_MISUSE, "%s is NULL", what);
    if (columns[i]->engine != engine)
      return columns_fail(engine, KJIT_ERROR_ARGUMENT, "%s %zu belongs to another engine", what, i);
    if (columns[i]->length != length)
      return columns_fail(engine, KJIT_ERROR_ARGUMENT, "%s %zu has %lld rows, but must have %lld",
                          what, i, (long long)columns[i]->length, (long long)length);
  }
  return KJIT_OK;
}

/* Returns the result type of the function for the types of the columns, before any value is
 * computed. */
static kjit_status find_result(call *c)
{
  const column_function *f = c->function;
  bool is_pair = f->nulls == COLUMN_NULLS_HANDLED;
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_result_info info[2];
  options.results = info;
  options.result_count = 2;
  COLUMNS_TRY(
    columns_check(f->engine,
                  kjit_map(f->engine->context, NULL, is_pair ? 2 : 1,
                           c->has_nulls ? f->values : f->plain, c->list, c->count, &options),
                  f->name));
  c->result = info[0].element;
  char *name = kjit_copy_type_text(f->engine->context, info[is_pair ? 1 : 0].element);
  kjit_status status = KJIT_OK;
  if (is_pair && info[1].element != KJIT_BOOL)
    status = columns_fail(f->engine, KJIT_ERROR_TYPE,
                          "item 1 of the pair that `%s` returns has the type %s, but must be bool",
                          f->name, name ? name : "");
  else if (!column_find_type(c->result)) {
    kjit_free(f->engine->context, name);
    name = kjit_copy_type_text(f->engine->context, c->result);
    status = columns_fail(f->engine, KJIT_ERROR_TYPE, "`%s` returns %s, which no column holds",
                          f->name, name ? name : "");
  }
  kjit_free(f->engine->context, name);
  return status;
}

static kjit_status prepare(const column_function *f, column *const *columns, bool is_filter,
                           call *c)
{
  size_t n = f->operand_count;
  *c = (call){ .function = f, .columns = columns };
  if (columns && columns[0]) c->length = columns[0]->length;
  COLUMNS_TRY(check_lengths(f->engine, columns, n, c->length, "operand"));
  c->has_nulls = f->nulls == COLUMN_NULLS_HANDLED;
  for (size_t i = 0; i < n && (is_filter || f->nulls == COLUMN_NULLS_PROPAGATE); i++)
    if (columns[i]->validity) c->has_nulls = true;
  for (size_t i = 0; i < n; i++) column_value_operand(columns[i], &c->operands[i]);
  for (size_t i = 0; i < n && c->has_nulls; i++)
    column_validity_operand(columns[i], &c->operands[n + i]);
  c->count = c->has_nulls ? 2 * n : n;
  for (size_t i = 0; i < c->count; i++) c->list[i] = c->operands[i].operand;
  return find_result(c);
}

/* The arrays that kernels write, with one element for each row. Only functions that handle nulls
 * write flags. */
static kjit_status run(call *c, kjit_array **values, kjit_array **flags)
{
  const column_function *f = c->function;
  columns_engine *engine = f->engine;
  kjit_operand results[2];
  size_t count = 1;
  COLUMNS_TRY(column_make_array(engine, c->result, c->length, values));
  results[0] = kjit_operand_array(*values);
  if (f->nulls == COLUMN_NULLS_HANDLED) {
    COLUMNS_TRY(column_make_array(engine, KJIT_BOOL, c->length, flags));
    results[count++] = kjit_operand_array(*flags);
  }
  return columns_check(engine,
                       kjit_map(engine->context, results, count,
                                c->has_nulls ? f->values : f->plain, c->list, c->count, NULL),
                       f->name);
}

/* Converts the arrays that kernels have written to Arrow's format. */
static kjit_status finish(call *c, kjit_array **values, kjit_array *flags, column **result)
{
  const column_function *f = c->function;
  columns_engine *engine = f->engine;
  kjit_array *validity = NULL, *bits = NULL;
  if (c->result == KJIT_BOOL) {
    COLUMNS_TRY(columns_pack(engine, *values, c->length, &bits));
    kjit_release_array(*values);
    *values = bits;
  }
  COLUMNS_TRY(flags ? columns_pack(engine, flags, c->length, &validity)
                    : join_validity(engine, c->columns, f->operand_count, &validity));
  kjit_status status =
    column_make(engine, column_find_type(c->result)->format, c->length, *values, validity, result);
  if (status == KJIT_OK) *values = NULL;
  else kjit_release_array(validity);
  return status;
}

kjit_status columns_apply(columns_engine *engine, const column_function *function,
                          column *const *operands, column **result)
{
  call c;
  kjit_array *values = NULL, *flags = NULL;
  if (!engine || !function || !result) return KJIT_ERROR_MISUSE;
  if (function->engine != engine)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the function belongs to another engine");
  COLUMNS_TRY(prepare(function, operands, false, &c));
  kjit_status status = run(&c, &values, &flags);
  /* waits for the kernel, so that this call reports an error that the function raises */
  if (status == KJIT_OK)
    status = columns_check(engine, kjit_synchronize_device(engine->device), function->name);
  if (status == KJIT_OK) status = finish(&c, &values, flags, result);
  kjit_release_array(values);
  kjit_release_array(flags);
  return status;
}

/* ---- filters ---- */

/* Each thread packs eight rows into one byte. */
static kjit_status take_bits(const column *c, kjit_array *bits, kjit_array *places, int64_t count,
                             kjit_array **taken)
{
  column_operand bytes;
  kjit_arg arguments[] = { kjit_arg_array(places), kjit_arg_array(bits), kjit_arg_i64(c->offset),
                           kjit_arg_i64(count) };
  column_operand_set(c->engine, &bytes, "taken_byte", bytes_of_bits(count), arguments, 4);
  COLUMNS_TRY(column_make_array(c->engine, KJIT_U8, bytes_of_bits(count), taken));
  kjit_status status = columns_map(c->engine, *taken, "same", &bytes.operand, 1);
  if (status == KJIT_OK) return status;
  kjit_release_array(*taken);
  *taken = NULL;
  return status;
}

static kjit_status take_values(const column *c, kjit_array *places, int64_t count,
                               kjit_array **taken)
{
  column_operand values;
  kjit_arg arguments[] = { kjit_arg_array(places), kjit_arg_array(c->rows) };
  column_operand_set(c->engine, &values, "taken_value", count, arguments, 2);
  COLUMNS_TRY(column_make_array(c->engine, c->type->element, count, taken));
  kjit_status status = columns_map(c->engine, *taken, "same", &values.operand, 1);
  if (status == KJIT_OK) return status;
  kjit_release_array(*taken);
  *taken = NULL;
  return status;
}

kjit_status column_take_rows(const column *c, kjit_array *places, int64_t count, column **result)
{
  kjit_array *values = NULL, *validity = NULL;
  kjit_status status = c->rows ? take_values(c, places, count, &values)
                               : take_bits(c, c->values, places, count, &values);
  if (status == KJIT_OK && c->validity)
    status = take_bits(c, c->validity, places, count, &validity);
  if (status == KJIT_OK)
    status = column_make(c->engine, c->format, count, values, validity, result);
  if (status == KJIT_OK) return status;
  kjit_release_array(values);
  kjit_release_array(validity);
  return status;
}

/* Computes the indices of the rows that stay. Their number is on the device. */
static kjit_status find_places(call *c, kjit_array *flags, kjit_array *places, kjit_array *number)
{
  columns_engine *engine = c->function->engine;
  kjit_operand r = kjit_operand_array(flags), to = kjit_operand_array(places),
               count = kjit_operand_array(number);
  kjit_function *predicate = c->has_nulls ? c->function->holds : c->function->plain;
  COLUMNS_TRY(columns_check(engine,
                            kjit_map(engine->context, &r, 1, predicate, c->list, c->count, NULL),
                            c->function->name));
  return columns_check(engine, kjit_nonzero(engine->context, &to, &count, &r, NULL), "a filter");
}

static kjit_status filter(call *c, column *const *columns, size_t count, column **results)
{
  columns_engine *engine = c->function->engine;
  kjit_type index = c->length < INT32_MAX ? KJIT_I32 : KJIT_I64;
  kjit_array *flags = NULL, *places = NULL, *number = NULL, *kept = NULL;
  int64_t one = 1, found = 0;
  kjit_status status = column_make_array(engine, KJIT_BOOL, c->length, &flags);
  if (status == KJIT_OK) status = column_make_array(engine, index, c->length, &places);
  if (status == KJIT_OK) status = column_make_array(engine, KJIT_I64, one, &number);
  if (status == KJIT_OK) status = find_places(c, flags, places, number);
  if (status == KJIT_OK) status = columns_read_number(engine, number, &found);
  kjit_array_slice used = { 0, found, 1 };
  if (status == KJIT_OK)
    status = columns_check(engine, kjit_slice_array(places, &used, 1, &kept), "a filter");
  for (size_t i = 0; i < count && status == KJIT_OK; i++)
    status = column_take_rows(columns[i], kept, found, &results[i]);
  kjit_release_array(flags);
  kjit_release_array(places);
  kjit_release_array(number);
  kjit_release_array(kept);
  return status;
}

kjit_status columns_filter(columns_engine *engine, const column_function *predicate,
                           column *const *operands, column *const *columns, size_t column_count,
                           column **results)
{
  call c;
  if (!engine || !predicate || !results) return KJIT_ERROR_MISUSE;
  if (predicate->engine != engine)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the function belongs to another engine");
  COLUMNS_TRY(prepare(predicate, operands, true, &c));
  if (c.result != KJIT_BOOL)
    return columns_fail(engine, KJIT_ERROR_TYPE, "`%s` is a predicate and does not return bool",
                        predicate->name);
  COLUMNS_TRY(check_lengths(engine, columns, column_count, c.length, "column"));
  column **made = calloc(column_count + 1, sizeof *made);
  if (!made) return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = filter(&c, columns, column_count, made);
  for (size_t i = 0; i < column_count; i++) {
    if (status == KJIT_OK) results[i] = made[i];
    else column_release(made[i]);
  }
  free(made);
  return status;
}

/* exchange.c: implements the engine, columns, and their import and export by Arrow's C data
 * interface. */
#define _GNU_SOURCE /* vasprintf */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "columns_engine.h"

enum { ALIGNMENT = 64 };

/* ---- the engine ---- */

void columns_retain(columns_engine *engine) { atomic_fetch_add(&engine->references, 1); }

static void release_engine(columns_engine *engine)
{
  if (atomic_fetch_sub(&engine->references, 1) != 1) return;
  kjit_release_module(engine->module);
  kjit_destroy_context(engine->context);
  free(engine->error);
  free(engine);
}

kjit_status columns_fail(columns_engine *engine, kjit_status status, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  free(engine->error);
  if (vasprintf(&engine->error, format, arguments) < 0) engine->error = NULL;
  va_end(arguments);
  return status;
}

kjit_status columns_check(columns_engine *engine, kjit_status status, const char *what)
{
  if (status == KJIT_OK) return status;
  char *text = kjit_copy_diagnostics_text(engine->context);
  columns_fail(engine, status, "%s: %s: %s", what, kjit_get_status_name(status), text ? text : "");
  kjit_free(engine->context, text);
  return status;
}

const char *columns_get_error(const columns_engine *engine)
{
  return engine && engine->error ? engine->error : "out of memory";
}

static kjit_status open_engine(columns_engine *engine, const char *device, const char *folder)
{
  static const char text[] = "import \"columns.kir\"";
  kjit_config config = { .size_bytes = sizeof config };
  bool is_cuda = !strcmp(device, "cuda");
  engine->is_cpu = !strcmp(device, "cpu");
  if (!engine->is_cpu && !is_cuda)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "there is no device `%s`: cpu, cuda", device);
  config = (kjit_config){ .size_bytes = sizeof config };
  config.import_path = folder;
  COLUMNS_TRY(kjit_create_context(&config, &engine->context));
  COLUMNS_TRY(
    columns_check(engine,
                  kjit_get_device(engine->context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0,
                                  &engine->device),
                  device));
  return columns_check(engine,
                       kjit_parse_module(engine->context, "columns", text, sizeof text - 1,
                                         &engine->module),
                       "columns.kir");
}

kjit_status columns_open(const char *device, const char *folder, columns_engine **engine)
{
  if (!device || !folder || !engine) return KJIT_ERROR_MISUSE;
  *engine = calloc(1, sizeof **engine);
  if (!*engine) return KJIT_ERROR_MEMORY;
  (*engine)->references = 1;
  return open_engine(*engine, device, folder);
}

void columns_close(columns_engine *engine)
{
  if (engine) release_engine(engine);
}

kjit_function *columns_find(const columns_engine *engine, const char *name)
{
  kjit_function *function = NULL;
  return kjit_get_function(engine->module, name, &function) == KJIT_OK ? function : NULL;
}

/* ---- types ---- */

static const column_type types[] = {
  { "b", KJIT_BOOL, 1, false },   { "c", KJIT_I8, 8, false },     { "C", KJIT_U8, 8, false },
  { "s", KJIT_I16, 16, false },   { "S", KJIT_U16, 16, false },   { "i", KJIT_I32, 32, false },
  { "I", KJIT_U32, 32, false },   { "l", KJIT_I64, 64, false },   { "L", KJIT_U64, 64, false },
  { "e", KJIT_F16, 16, false },   { "f", KJIT_F32, 32, false },   { "g", KJIT_F64, 64, false },
  { "tdD", KJIT_I32, 32, true },  { "tdm", KJIT_I64, 64, true },  { "tts", KJIT_I32, 32, true },
  { "ttm", KJIT_I32, 32, true },  { "ttu", KJIT_I64, 64, true },  { "ttn", KJIT_I64, 64, true },
  { "tss:", KJIT_I64, 64, true }, { "tsm:", KJIT_I64, 64, true }, { "tsu:", KJIT_I64, 64, true },
  { "tsn:", KJIT_I64, 64, true }, { "tDs", KJIT_I64, 64, true },  { "tDm", KJIT_I64, 64, true },
  { "tDu", KJIT_I64, 64, true },  { "tDn", KJIT_I64, 64, true },
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

static const column_type *find_format(const char *format)
{
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    size_t length = strlen(types[i].format);
    bool has_zone = types[i].format[length - 1] == ':';
    if (!strncmp(format, types[i].format, length) && (has_zone || !format[length]))
      return &types[i];
  }
  return NULL;
}

const column_type *column_find_type(kjit_type element)
{
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (types[i].element == element && !types[i].is_time) return &types[i];
  return NULL;
}

/* ---- columns ---- */

kjit_status column_make_array(columns_engine *engine, kjit_type element, int64_t count,
                              kjit_array **array)
{
  int64_t each = element == KJIT_BOOL ? 1 : column_find_type(element)->bits / 8,
          padded = count <= INT64_MAX - ALIGNMENT
                     ? (count + ALIGNMENT / each - 1) / (ALIGNMENT / each) * (ALIGNMENT / each)
                     : count;
  kjit_array_slice used = { 0, count, 1 };
  kjit_array *whole;
  COLUMNS_TRY(columns_check(engine, kjit_create_array(engine->device, element, &padded, 1, &whole),
                            "a new column"));
  if (engine->is_cpu && padded > count) {
    char *end = (char *)kjit_get_tensor(whole)->data + padded * each;
    memset(end - ALIGNMENT, 0, ALIGNMENT);
  }
  kjit_status status = kjit_slice_array(whole, &used, 1, array);
  kjit_release_array(whole);
  return columns_check(engine, status, "a new column");
}

/* Gives the arrays to the column. On failure the caller keeps them. */
static kjit_status set_arrays(column *c, kjit_array *values, kjit_array *validity)
{
  kjit_array_slice used = { c->offset, c->offset + c->length, 1 };
  if (c->type->element != KJIT_BOOL)
    COLUMNS_TRY(
      columns_check(c->engine, kjit_slice_array(values, &used, 1, &c->rows), "the column's rows"));
  c->values = values;
  c->validity = validity;
  return KJIT_OK;
}

static kjit_status make_empty(columns_engine *engine, const char *format, int64_t length,
                              column **made)
{
  column *c = calloc(1, sizeof *c);
  char *copy = strdup(format);
  if (!c || !copy) {
    free(c);
    free(copy);
    return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  }
  columns_retain(engine);
  *c = (column){ .engine = engine,
                 .type = find_format(format),
                 .format = copy,
                 .length = length,
                 .null_count = -1 };
  *made = c;
  return KJIT_OK;
}

kjit_status column_make(columns_engine *engine, const char *format, int64_t length,
                        kjit_array *values, kjit_array *validity, column **made)
{
  column *c = NULL;
  kjit_status status = make_empty(engine, format, length, &c);
  if (status == KJIT_OK) status = set_arrays(c, values, validity);
  if (status == KJIT_OK) *made = c;
  else column_release(c);
  return status;
}

void column_release(column *c)
{
  if (!c) return;
  kjit_release_array(c->rows);
  kjit_release_array(c->values);
  kjit_release_array(c->validity);
  free(c->format);
  release_engine(c->engine);
  free(c);
}

int64_t column_get_length(const column *c) { return c->length; }

kjit_status columns_read_number(columns_engine *engine, const kjit_array *array, int64_t *number)
{
  return columns_check(engine, kjit_copy_to_host(array, number, sizeof *number, NULL), "a number");
}

/* Counts the valid bits, one byte at a time. */
kjit_status column_count_nulls(column *c, int64_t *count)
{
  columns_engine *engine = c->engine;
  kjit_operator add = kjit_operator_named("add");
  kjit_array *valid;
  int64_t one = 1, number = 0;
  if (c->null_count < 0 && !c->validity) c->null_count = 0;
  if (c->null_count < 0) {
    column_operand bits;
    kjit_arg arguments[] = { kjit_arg_array(c->validity), kjit_arg_i64(c->offset),
                             kjit_arg_i64(c->length) };
    column_operand_set(engine, &bits, "bit_count", bytes_of_bits(c->length), arguments, 3);
    COLUMNS_TRY(columns_check(engine, kjit_create_array(engine->device, KJIT_I64, &one, 1, &valid),
                              "the nulls"));
    kjit_operand result = kjit_operand_array(valid);
    kjit_status status =
      columns_check(engine, kjit_reduce(engine->context, &result, &bits.operand, &add, NULL),
                    "the nulls");
    if (status == KJIT_OK) status = columns_read_number(engine, valid, &number);
    kjit_release_array(valid);
    COLUMNS_TRY(status);
    c->null_count = c->length - number;
  }
  *count = c->null_count;
  return KJIT_OK;
}

/* ---- in ---- */

/* An array from another library. It is released when the last of its buffers is no longer used. */
typedef struct import {
  atomic_int references;
  struct ArrowArray array;
} import;

typedef struct import_buffer {
  kjit_managed_tensor_versioned managed;
  int64_t extent;
  import *owner;
} import_buffer;

static void release_import(import *owner)
{
  if (atomic_fetch_sub(&owner->references, 1) != 1) return;
  owner->array.release(&owner->array);
  free(owner);
}

static void release_buffer(kjit_managed_tensor_versioned *managed)
{
  import_buffer *buffer = managed->manager;
  release_import(buffer->owner);
  free(buffer);
}

static kjit_tensor tensor_of(const void *data, kjit_type element, int64_t *extent)
{
  static const struct {
    uint8_t code, bits;
  } dlpack[] = {
    { 0, 0 },
#define KJIT_ROW(NAME, text, bytes, class_, code, bits) { code, bits },
#include <kjit/types.def>
#undef KJIT_ROW
  };
  return (kjit_tensor){ .data = (void *)(uintptr_t)data,
                        .device_type = KJIT_DEVICE_CPU,
                        .rank = 1,
                        .code = dlpack[element].code,
                        .bits = dlpack[element].bits,
                        .lanes = 1,
                        .shape = extent };
}

/* Uses the other library's memory without a copy. The memory is released together with the kjit
 * array. */
static kjit_status share_buffer(columns_engine *engine, import *owner, const void *data,
                                kjit_type element, int64_t count, kjit_array **array)
{
  import_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  buffer->extent = count;
  buffer->owner = owner;
  buffer->managed = (kjit_managed_tensor_versioned){
    .major = 1,
    .manager = buffer,
    .deleter = release_buffer,
    .flags = KJIT_DLPACK_READ_ONLY,
    .tensor = tensor_of(data, element, &buffer->extent),
  };
  atomic_fetch_add(&owner->references, 1);
  return columns_check(engine,
                       kjit_take_dlpack_versioned(engine->context, &buffer->managed, NULL, array),
                       "an Arrow array");
}

static kjit_status copy_buffer(columns_engine *engine, const void *data, kjit_type element,
                               int64_t count, kjit_array **array)
{
  size_t each = element == KJIT_BOOL ? 1 : column_find_type(element)->bits / 8;
  COLUMNS_TRY(column_make_array(engine, element, count, array));
  kjit_status status =
    count ? kjit_copy_from_host(*array, data, (size_t)count * each, NULL) : KJIT_OK;
  if (status == KJIT_OK) return status;
  kjit_release_array(*array);
  *array = NULL;
  return columns_check(engine, status, "an Arrow array");
}

/* Kernels need elements at multiples of their size. Arrow recommends this alignment but does not
 * require it. */
static kjit_status take_buffer(columns_engine *engine, import *owner, const char *data,
                               kjit_type element, int64_t first, int64_t count, kjit_array **array)
{
  int64_t each = column_find_type(element)->bits / 8;
  const char *start = data ? data + first * each : NULL;
  bool is_aligned = (uintptr_t)start % (uintptr_t)each == 0;
  return engine->is_cpu && is_aligned && count
           ? share_buffer(engine, owner, start, element, count, array)
           : copy_buffer(engine, start, element, count, array);
}

static kjit_status take_buffers(column *c, import *owner)
{
  columns_engine *engine = c->engine;
  const struct ArrowArray *array = &owner->array;
  const void *const *buffers = array->buffers;
  bool is_bool = c->type->element == KJIT_BOOL;
  int64_t first = array->offset - array->offset % 8;
  kjit_array *values = NULL, *validity = NULL;
  c->offset = array->offset % 8;
  int64_t used = c->offset + c->length, bytes = bytes_of_bits(used);
  kjit_status status = take_buffer(engine, owner, buffers[1], is_bool ? KJIT_U8 : c->type->element,
                                   is_bool ? first / 8 : first, is_bool ? bytes : used, &values);
  if (status == KJIT_OK && buffers[0] && array->null_count != 0)
    status = take_buffer(engine, owner, buffers[0], KJIT_U8, first / 8, bytes, &validity);
  if (status == KJIT_OK) status = set_arrays(c, values, validity);
  if (status == KJIT_OK) {
    c->null_count = array->null_count;
    return status;
  }
  kjit_release_array(values);
  kjit_release_array(validity);
  return status;
}

static kjit_status check_schema(columns_engine *engine, const struct ArrowSchema *schema,
                                const struct ArrowArray *array)
{
  const char *format = schema->format;
  if (!format) return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the schema has no format");
  if (schema->dictionary || array->dictionary)
    return columns_fail(engine, KJIT_ERROR_UNSUPPORTED,
                        "dictionary-encoded columns are not supported (the indices have the format "
                        "\"%s\")",
                        format);
  if (!find_format(format) || schema->n_children || array->n_children)
    return columns_fail(
      engine, KJIT_ERROR_UNSUPPORTED,
      "the column format \"%s\" is not supported; use integers, floats, booleans, "
      "dates, times, timestamps or durations",
      format);
  return KJIT_OK;
}

static kjit_status check_array(columns_engine *engine, const struct ArrowArray *array)
{
  if (array->n_buffers != 2 || !array->buffers)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the array has %lld buffers, but must have 2",
                        (long long)(array->buffers ? array->n_buffers : 0));
  if (array->length < 0 || array->offset < 0 || array->length > (INT64_MAX >> 4) - array->offset)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the array has length %lld and offset %lld",
                        (long long)array->length, (long long)array->offset);
  if (array->null_count < -1 || array->null_count > array->length)
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the array has %lld nulls in %lld rows",
                        (long long)array->null_count, (long long)array->length);
  if (array->length && !array->buffers[1])
    return columns_fail(engine, KJIT_ERROR_ARGUMENT, "the array has no buffer of values");
  if (array->null_count > 0 && !array->buffers[0])
    return columns_fail(engine, KJIT_ERROR_ARGUMENT,
                        "the array has %lld nulls, but no validity bitmap",
                        (long long)array->null_count);
  return KJIT_OK;
}

static kjit_status take(columns_engine *engine, const struct ArrowSchema *schema, import *owner,
                        column **taken)
{
  column *c = NULL;
  COLUMNS_TRY(check_schema(engine, schema, &owner->array));
  COLUMNS_TRY(check_array(engine, &owner->array));
  COLUMNS_TRY(make_empty(engine, schema->format, owner->array.length, &c));
  kjit_status status = take_buffers(c, owner);
  if (status == KJIT_OK) *taken = c;
  else column_release(c);
  return status;
}

kjit_status columns_take(columns_engine *engine, struct ArrowSchema *schema,
                         struct ArrowArray *array, column **taken)
{
  if (!engine || !schema || !array || !taken) return KJIT_ERROR_MISUSE;
  struct ArrowSchema own = *schema;
  import *owner = calloc(1, sizeof *owner);
  bool is_released = !schema->release || !array->release;
  kjit_status status = KJIT_OK;
  if (is_released)
    status = columns_fail(engine, KJIT_ERROR_ARGUMENT, "the %s has been released",
                          schema->release ? "array" : "schema");
  else if (!owner) status = columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  if (status == KJIT_OK) {
    owner->references = 1;
    owner->array = *array;
    array->release = NULL;
    status = take(engine, &own, owner, taken);
    release_import(owner);
  } else {
    if (array->release) array->release(array);
    array->release = NULL;
    free(owner);
  }
  schema->release = NULL;
  if (own.release) own.release(&own);
  return status;
}

/* ---- out ---- */

typedef struct export
{
  columns_engine *engine;
  kjit_array *arrays[2]; /* on the CPU: the arrays that own the memory */
  void *copies[2];       /* on a GPU: copies in host memory */
  const void *buffers[2];
}
export;

static void free_export(export *e)
{
  if (!e) return;
  for (int i = 0; i < 2; i++) {
    kjit_release_array(e->arrays[i]);
    free(e->copies[i]);
  }
  release_engine(e->engine);
  free(e);
}

static void release_array(struct ArrowArray *array)
{
  free_export(array->private_data);
  array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema)
{
  free(schema->private_data);
  schema->release = NULL;
}

static kjit_status export_buffer(export *e, int index, kjit_array *array, uint32_t bits)
{
  columns_engine *engine = e->engine;
  const kjit_tensor *tensor = kjit_get_tensor(array);
  size_t bytes = (size_t)tensor->shape[0] * (bits == 1 ? 1 : bits / 8);
  size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (engine->is_cpu) {
    e->arrays[index] = kjit_retain_array(array);
    e->buffers[index] = (const char *)tensor->data + tensor->byte_offset;
    return KJIT_OK;
  }
  char *copy = aligned_alloc(ALIGNMENT, padded ? padded : ALIGNMENT);
  if (!copy) return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  e->buffers[index] = e->copies[index] = copy;
  memset(copy + bytes, 0, padded - bytes);
  return bytes ? columns_check(engine, kjit_copy_to_host(array, copy, bytes, NULL), "an export")
               : KJIT_OK;
}

kjit_status columns_export(column *c, struct ArrowSchema *schema, struct ArrowArray *array)
{
  if (!c || !schema || !array) return KJIT_ERROR_MISUSE;
  columns_engine *engine = c->engine;
  int64_t null_count;
  COLUMNS_TRY(column_count_nulls(c, &null_count));
  char *format = strdup(c->format);
  export *e = calloc(1, sizeof *e);
  if (!e || !format) {
    free(format);
    free(e);
    return columns_fail(engine, KJIT_ERROR_MEMORY, "out of memory");
  }
  e->engine = engine;
  columns_retain(engine);
  kjit_status status = export_buffer(e, 1, c->values, c->type->bits);
  if (status == KJIT_OK && c->validity) status = export_buffer(e, 0, c->validity, 1);
  if (status != KJIT_OK) {
    free(format);
    free_export(e);
    return status;
  }
  *schema = (struct ArrowSchema){ .format = format,
                                  .name = "",
                                  .flags = ARROW_FLAG_NULLABLE,
                                  .release = release_schema,
                                  .private_data = format };
  *array = (struct ArrowArray){ .length = c->length,
                                .null_count = null_count,
                                .offset = c->offset,
                                .n_buffers = 2,
                                .buffers = e->buffers,
                                .release = release_array,
                                .private_data = e };
  return KJIT_OK;
}

/* Implements kjit_run_formula: prepares the arguments of a formula's kernels for a range of rows
 * and launches the kernels. */
#include <stdlib.h>
#include <string.h>

#include <kjit/runtime.h>

#include "base/runtime.h"
#include "formula/formula.h"
#include "stream/stream.h"

typedef struct run {
  const kjit_formula *formula;
  const kjit_column *columns, *result;
  int64_t rows;
  kjit_formula_run options;
  kjit_device *device;
  kj_arena *arena;
  int32_t device_type, device_id; /* the device whose memory has the columns and the result */
  bool is_on_cpu; /* true if the formula runs on the CPU, where bitmaps consist of words */
  /* true if a capture of a CPU stream records this call; the call then compiles the kernels, but
   * neither reads nor writes the columns */
  bool is_recorded;
} run;

/* The arguments of one launch, and the tensors to which they refer. */
typedef struct arguments {
  kjit_arg *items;
  size_t count;
} arguments;

/* ---- arguments ---- */

static void add_tensor(run *r, arguments *a, const void *data, kjit_type type, int64_t count)
{
  int64_t *shape = KJ_NEW(r->arena, int64_t);
  kjit_tensor *tensor = KJ_NEW(r->arena, kjit_tensor);
  *shape = count;
  *tensor = kjit_make_tensor((void *)data, type, 1, shape);
  tensor->device_type = r->device_type;
  tensor->device_id = r->device_id;
  a->items[a->count++] = kjit_arg_tensor(tensor);
}

static uint64_t *make_words(run *r)
{
  return KJ_NEW_ARRAY(r->arena, uint64_t, (size_t)(r->rows + 63) >> 6);
}

static uint64_t *read_bits(run *r, const uint8_t *bits, int64_t offset)
{
  uint64_t *words = make_words(r);
  if (!r->is_recorded) kf_read_bits(words, bits, offset, r->rows);
  return words;
}

static void add_words(run *r, arguments *a, const uint64_t *words)
{
  add_tensor(r, a, words, KJIT_U64, (r->rows + 63) >> 6);
}

/* Adds a bitmap: on the CPU, the words of the rows; on a GPU, the bytes with the bits of the rows,
 * and the position of the first row's bit. */
static void add_bits(run *r, arguments *a, const uint8_t *bits, int64_t offset)
{
  const int64_t first = offset & 7;
  if (r->is_on_cpu) {
    add_words(r, a, read_bits(r, bits, offset));
    return;
  }
  add_tensor(r, a, bits ? bits + (offset >> 3) : NULL, KJIT_U8,
             bits ? (first + r->rows + 7) >> 3 : 0);
  a->items[a->count++] = kjit_arg_i64(first);
}

static void add_column(run *r, arguments *a, const kf_parameter *parameter)
{
  const kjit_column *column = &r->columns[parameter->column];
  const kjit_formula_column *declared = &r->formula->columns[parameter->column];
  if (parameter->has_values && (declared->flags & KJIT_COLUMN_BITS))
    add_bits(r, a, column->values, column->offset);
  else if (parameter->has_values) {
    size_t bytes = ki_type(r->formula->context->types, declared->type)->size_bytes;
    add_tensor(r, a, (const char *)column->values + (size_t)column->offset * bytes, declared->type,
               r->rows);
  }
  if (parameter->has_validity) add_bits(r, a, column->validity, column->offset);
}

static kjit_status launch(run *r, kjit_kernel *kernel, const arguments *a, uint64_t threads)
{
  const kjit_launch_config config = { .size_bytes = sizeof config,
                                      .stream = r->is_recorded ? NULL : r->options.stream,
                                      .device = r->device,
                                      .threads = threads,
                                      .cpu_threads = r->options.cpu_threads,
                                      .time_limit_ns = r->options.time_limit_ns };
  if (!r->is_recorded) return kjit_launch(kernel, &config, a->items, a->count);
  kjit_prepared *prepared;
  KJ_TRY(kjit_prepare_launch(kernel, &config, a->items, a->count, &prepared));
  kjit_destroy_prepared(prepared);
  return KJIT_OK;
}

/* ---- launches ---- */

static void add_columns(run *r, arguments *a, const kf_form *form)
{
  for (size_t i = 0; i < form->parameter_count; i++) add_column(r, a, &form->parameters[i]);
}

static arguments make_arguments(run *r, size_t columns)
{
  return (arguments){ .items = KJ_NEW_ARRAY(r->arena, kjit_arg, 4 * columns + 3) };
}

static kjit_status launch_values(run *r, const kf_form *form)
{
  arguments a = make_arguments(r, form->parameter_count);
  add_tensor(r, &a, r->result->values, r->formula->type, r->rows);
  add_columns(r, &a, form);
  return launch(r, form->values, &a, 0);
}

/* Launches the kernel on the CPU and copies the words that it has stored to the result. */
static kjit_status launch_groups(run *r, const kf_form *form)
{
  const kjit_formula *formula = r->formula;
  uint64_t *bits = (formula->flags & KJIT_COLUMN_BITS) ? make_words(r) : NULL;
  uint64_t *valid = form->writes_validity ? make_words(r) : NULL;
  arguments a = make_arguments(r, form->parameter_count);
  if (bits) add_words(r, &a, bits);
  else add_tensor(r, &a, r->result->values, formula->type, r->rows);
  if (valid) add_words(r, &a, valid);
  a.items[a.count++] = kjit_arg_i64(r->rows);
  add_columns(r, &a, form);
  KJ_TRY(launch(r, form->groups, &a, 0));
  if (r->is_recorded) return KJIT_OK;
  if (bits) kf_write_bits(r->result->values, bits, r->rows);
  if (valid) kf_write_bits(r->result->validity, valid, r->rows);
  return KJIT_OK;
}

static kjit_status launch_warps(run *r, const kf_form *form)
{
  const kjit_formula *formula = r->formula;
  bool has_bits = (formula->flags & KJIT_COLUMN_BITS) != 0;
  int64_t bytes = (r->rows + 7) >> 3;
  arguments a = make_arguments(r, form->parameter_count);
  add_tensor(r, &a, r->result->values, has_bits ? KJIT_U8 : formula->type,
             has_bits ? bytes : r->rows);
  if (form->writes_validity) add_tensor(r, &a, r->result->validity, KJIT_U8, bytes);
  a.items[a.count++] = kjit_arg_i64(r->rows);
  add_columns(r, &a, form);
  return launch(r, form->warps, &a, (uint64_t)r->rows);
}

static kjit_status launch_validity(run *r, const kf_form *form)
{
  arguments a = make_arguments(r, form->validity_count);
  add_tensor(r, &a, r->result->validity, KJIT_U8, (r->rows + 7) >> 3);
  a.items[a.count++] = kjit_arg_i64(r->rows);
  for (size_t i = 0; i < form->validity_count; i++)
    add_column(r, &a, &form->validity_parameters[i]);
  return launch(r, form->validity, &a, 0);
}

/* Computes the result's bitmap on the CPU, without a kernel. */
static void join_validity(run *r, const kf_form *form)
{
  uint64_t *valid = make_words(r), *other = make_words(r);
  kf_read_bits(valid, NULL, 0, r->rows);
  for (size_t i = 0; i < form->validity_count; i++) {
    const kjit_column *column = &r->columns[form->validity_parameters[i].column];
    if (!column->validity) continue;
    kf_read_bits(other, column->validity, column->offset, r->rows);
    kf_join_bits(valid, other, r->rows);
  }
  kf_write_bits(r->result->validity, valid, r->rows);
}

/* Chooses the form of the kernels. The form without bitmaps is sufficient if no column has nulls in
 * these rows. */
static const kf_form *choose_form(const run *r)
{
  const kjit_formula *formula = r->formula;
  for (size_t i = 0; i < formula->column_count && formula->nulls.module; i++) {
    bool can_be_null = (formula->columns[i].flags & KJIT_COLUMN_NULLABLE) != 0;
    if (formula->is_used[i] && can_be_null && r->columns[i].validity) return &formula->nulls;
  }
  return &formula->plain;
}

/* ---- the call ---- */

static kjit_status check_columns(const run *r)
{
  kjit_context *context = r->formula->context;
  for (size_t i = 0; i < r->formula->column_count; i++) {
    if (!r->formula->is_used[i]) continue;
    const kjit_column *column = r->columns ? &r->columns[i] : NULL;
    if (!column || !column->values)
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "kjit_run_formula: the values of column %zu are NULL", i);
    if (column->offset < 0)
      return ki_fail_call(
        context, KJIT_ERROR_ARGUMENT,
        "kjit_run_formula: the offset of column %zu is %lld; it must be at least 0", i,
        (long long)column->offset);
    bool can_be_null = (r->formula->columns[i].flags & KJIT_COLUMN_NULLABLE) != 0;
    if (column->validity && !can_be_null)
      return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                          "kjit_run_formula: column %zu has a validity bitmap, but was created "
                          "without KJIT_COLUMN_NULLABLE",
                          i);
  }
  return KJIT_OK;
}

static kjit_status check_result(const run *r)
{
  kjit_context *context = r->formula->context;
  if (r->rows < 0)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_run_formula: row_count is %lld; it must be at least 0",
                        (long long)r->rows);
  if (r->result->offset)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_run_formula: the offset of the result is %lld; it must be 0",
                        (long long)r->result->offset);
  if (!r->rows) return KJIT_OK;
  if (!r->result->values)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_run_formula: the values of the result are NULL");
  if ((r->formula->flags & KJIT_COLUMN_NULLABLE) && !r->result->validity)
    return ki_fail_call(
      context, KJIT_ERROR_MISUSE,
      "kjit_run_formula: the result can be null, but its validity pointer is NULL");
  return check_columns(r);
}

static kjit_status find_devices(run *r)
{
  r->device = r->options.device;
  if (!r->device && r->options.stream) r->device = r->options.stream->object.device;
  if (!r->device) KJ_TRY(kjit_get_device(r->formula->context, KJIT_DEVICE_CPU, 0, &r->device));
  r->is_on_cpu = r->device->info.kind == KJIT_DEVICE_CPU;
  r->device_type = KJIT_DEVICE_CPU;
  if (!r->options.memory) return KJIT_OK;
  r->device_type = (int32_t)r->options.memory->info.kind;
  r->device_id = r->options.memory->info.ordinal;
  if (r->is_on_cpu && r->options.memory->info.kind != KJIT_DEVICE_CPU)
    return ki_fail_call(r->formula->context, KJIT_ERROR_ARGUMENT,
                        "kjit_run_formula: the device is the CPU, but options.memory belongs to "
                        "another device");
  return KJIT_OK;
}

/* Determines whether a capture of a CPU stream records this call as one operation (capture.c). On a
 * GPU, the driver's capture records the launches of the call. */
static kjit_status check_capture(run *r)
{
  kj_diagnostics diagnostics = { 0 };
  r->is_recorded = r->is_on_cpu && kj_is_recorded(r->options.stream);
  if (!r->is_recorded) return KJIT_OK;
  (void)kj_check_stream(r->device, r->options.stream, false, &diagnostics);
  KJ_TRY(ki_finish_call(r->formula->context, &diagnostics));
  r->options.device = r->device;
  return KJIT_OK;
}

static kjit_status compute(run *r)
{
  const kf_form *form = choose_form(r);
  KJ_TRY(form->values   ? launch_values(r, form)
         : r->is_on_cpu ? launch_groups(r, form)
                        : launch_warps(r, form));
  if (form->validity && !r->is_on_cpu) return launch_validity(r, form);
  if (form->validity && !r->is_recorded) join_validity(r, form);
  return KJIT_OK;
}

kjit_status kjit_run_formula(const kjit_formula *formula, const kjit_column *columns,
                             const kjit_column *result, int64_t row_count,
                             const kjit_formula_run *options)
{
  if (!formula) return KJIT_ERROR_MISUSE;
  kjit_context *context = formula->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!result) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_run_formula: result is NULL");
  run r = { .formula = formula, .columns = columns, .result = result, .rows = row_count };
  KJ_TRY(ki_read_sized(context, "kjit_run_formula", KI_FORMULA_RUN, options, &r.options));
  KJ_TRY(check_result(&r));
  if (!row_count) return KJIT_OK;
  KJ_TRY(find_devices(&r));
  KJ_TRY(check_capture(&r));
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  r.arena = &arena;
  kjit_status status =
    setjmp(on_failure) ? ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory") : compute(&r);
  kj_free_arena(&arena);
  return status == KJIT_OK && r.is_recorded
           ? kf_record_run(formula, columns, result, row_count, &r.options)
           : status;
}

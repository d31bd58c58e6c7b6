/* kjit_fill: one value into every element. Lines on a GPU need no kernel: the driver sets words of
 * up to 4 bytes; wider elements are set once and then copied, twice as many each time. */
#include <stdlib.h>
#include <string.h>

#include "memory/copy.h"

typedef struct fill_job {
  kjit_context *context;
  kjit_device *device;
  kjit_stream *stream;
  kj_view to;
  uint64_t bits[2];
} fill_job;

/* ---- the value ---- */

static kjit_status take_number(const fill_job *job, double number, kj_diagnostics *diagnostics,
                               uint64_t bits[2])
{
  const ki_type_info *type = ki_type(job->context->types, job->to.element);
  ki_value value = kj_number_value(number), converted;
  float single = (float)number;
  if (job->to.element == KJIT_C64) memcpy(bits, &single, sizeof single);
  else if (job->to.element == KJIT_C128) memcpy(bits, &number, sizeof number);
  else if (ki_fit_argument(value, job->to.element, &converted)) ki_encode_value(converted, bits);
  else
    return kj_error(diagnostics, KJIT_ERROR_TYPE,
                    "kjit_fill: an element of type %s cannot hold the number %g", type->name,
                    number);
  return KJIT_OK;
}

static kjit_status take_value(fill_job *job, const kjit_arg *value, kj_diagnostics *diagnostics)
{
  const ki_types *types = job->context->types;
  if (!ki_is_scalar(job->to.element))
    return kj_error(diagnostics, KJIT_ERROR_TYPE, "kjit_fill: the elements are no scalars");
  bool is_scalar =
    value->kind == KJIT_ARG_VALUE || (value->kind == KJIT_ARG_BY_ADDRESS && value->value.address);
  if (value->kind == KJIT_ARG_NUMBER)
    return take_number(job, value->value.f64, diagnostics, job->bits);
  if (!is_scalar || value->type >= KJIT_SCALAR_COUNT)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_fill: the value is no scalar");
  if (value->type != job->to.element)
    return kj_error(diagnostics, KJIT_ERROR_TYPE, "kjit_fill: the elements are %s, the value is %s",
                    ki_type(types, job->to.element)->name, ki_type(types, value->type)->name);
  if (value->kind == KJIT_ARG_VALUE) job->bits[0] = value->value.u;
  else memcpy(job->bits, value->value.address, job->to.element_bytes);
  if (job->to.element == KJIT_BOOL) job->bits[0] = (job->bits[0] & 0xff) != 0;
  return KJIT_OK;
}

/* ---- on the host ---- */

static void fill_line(char *to, int64_t count, int64_t step, const uint64_t bits[2], uint32_t bytes)
{
#define LINE(size) \
  for (int64_t i = 0; i < count; i++) memcpy(to + i * step, bits, size)
  if (bytes == 1) LINE(1);
  else if (bytes == 2) LINE(2);
  else if (bytes == 4) LINE(4);
  else if (bytes == 8) LINE(8);
  else LINE(bytes);
#undef LINE
}

static void fill_dimension(const kj_view *to, uint32_t dimension, char *address,
                           const uint64_t bits[2])
{
  int64_t step = dimension < to->rank ? to->strides[dimension] * (int64_t)to->element_bytes : 0;
  if (dimension == to->rank) memcpy(address, bits, to->element_bytes);
  else if (dimension + 1 == to->rank)
    fill_line(address, to->shape[dimension], step, bits, to->element_bytes);
  else
    for (int64_t i = 0; i < to->shape[dimension]; i++)
      fill_dimension(to, dimension + 1, address + i * step, bits);
}

typedef struct fill_operation {
  kj_operation operation;
  kj_view to;
  uint64_t bits[2];
} fill_operation;

static kjit_status run_operation(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  const fill_operation *fill = (fill_operation *)operation;
  /* NOLINT(performance-no-int-to-ptr) */
  fill_dimension(&fill->to, 0, (char *)(uintptr_t)fill->to.address, fill->bits);
  return KJIT_OK;
}

static void free_operation(kj_operation *operation) { free(operation); }

/* What a device has queued may still use the memory: the host waits for the stream. */
static kjit_status wait_for_device(const fill_job *job, kj_diagnostics *diagnostics)
{
  bool is_captured;
  if (!job->device || !job->device->operations->is_queued) return KJIT_OK;
  KJ_TRY(kj_ask_capture(job->stream, diagnostics, &is_captured));
  if (is_captured)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "kjit_fill: host memory cannot be filled in a capture of a GPU's stream");
  return kj_synchronize(job->device, false, kj_native(job->stream), diagnostics);
}

static kjit_status fill_on_host(fill_job *job, kj_diagnostics *diagnostics)
{
  fill_operation fill = { .operation = { .run = run_operation, .destroy = free_operation },
                          .to = job->to,
                          .bits = { job->bits[0], job->bits[1] } };
  KJ_TRY(wait_for_device(job, diagnostics));
  if (!job->stream || !atomic_load(&job->stream->capture))
    return run_operation(&fill.operation, NULL);
  fill_operation *kept = malloc(sizeof *kept);
  if (!kept) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *kept = fill;
  return kj_record_operation(job->stream, &kept->operation, diagnostics);
}

/* ---- in memory of a device ---- */

static kjit_status set_words(const fill_job *job, uint64_t address, uint64_t bits, uint32_t bytes,
                             size_t count, kj_diagnostics *diagnostics)
{
  return job->device->operations->set(job->device, address, (uint32_t)bits, bytes, count,
                                      kj_native(job->stream), diagnostics);
}

static kjit_status fill_device_line(const fill_job *job, kj_diagnostics *diagnostics)
{
  enum { WORD = 4 };
  const kj_view *to = &job->to;
  uint32_t words[4], word_count = to->element_bytes / WORD;
  memcpy(words, job->bits, sizeof words);
  if (to->element_bytes <= WORD)
    return set_words(job, to->address, job->bits[0], to->element_bytes, to->count, diagnostics);
  bool is_uniform = true;
  for (uint32_t i = 1; i < word_count; i++) is_uniform = is_uniform && words[i] == words[0];
  if (is_uniform)
    return set_words(job, to->address, words[0], WORD, to->count * word_count, diagnostics);
  for (uint32_t i = 0; i < word_count; i++)
    KJ_TRY(set_words(job, to->address + i * WORD, words[i], WORD, 1, diagnostics));
  for (uint64_t done = 1, more; done < to->count; done += more) {
    more = done < to->count - done ? done : to->count - done;
    const kj_transfer transfer = { .to = to->address + done * to->element_bytes,
                                   .from = to->address,
                                   .width_bytes = more * to->element_bytes,
                                   .rows = 1 };
    KJ_TRY(
      job->device->operations->copy(job->device, &transfer, kj_native(job->stream), diagnostics));
  }
  return KJIT_OK;
}

static kjit_status fill_on_device(fill_job *job, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(job->context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(kj_find_device(runtime, job->to.kind, job->to.ordinal, diagnostics, &job->device));
  KJ_TRY(kj_check_stream(job->device, job->stream, false, diagnostics));
  return kj_is_line(&job->to) ? fill_device_line(job, diagnostics)
                              : kj_fill_strided(job->device, &job->to, job->bits, job->stream);
}

/* ---- the entry ---- */

static kjit_status fill(fill_job *job, const kjit_arg *destination, const kjit_arg *value,
                        kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_view_destination(destination, job->context, diagnostics, &job->to));
  if (!ki_is_scalar(job->to.element))
    return kj_error(
      diagnostics, KJIT_ERROR_UNSUPPORTED,
      "kjit_fill: only scalars are filled with a value: write a kernel for other elements");
  KJ_TRY(take_value(job, value, diagnostics));
  job->device = job->stream                           ? job->stream->object.device
                : destination->kind == KJIT_ARG_ARRAY ? destination->value.array->object.device
                                                      : NULL;
  if (job->stream) KJ_TRY(kj_check_stream(job->device, job->stream, false, diagnostics));
  if (!job->to.count) return KJIT_OK;
  const bool is_on_host = kj_is_on_host(&job->to); /* for which the host waits */
  KJ_TRY(kj_note_argument(destination, job->stream, is_on_host ? NULL : job->device, diagnostics));
  kj_view same = job->to;
  kj_simplify_views(&job->to, &same);
  return is_on_host ? fill_on_host(job, diagnostics) : fill_on_device(job, diagnostics);
}

kjit_status kjit_fill(kjit_context *context, const kjit_arg *destination, const kjit_arg *value,
                      kjit_stream *stream)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!destination || !value)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_fill: the %s is NULL",
                        destination ? "value" : "destination");
  if (stream && stream->object.device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_fill: the stream belongs to another context");
  kj_diagnostics diagnostics = { 0 };
  fill_job job = { .context = context, .stream = stream };
  kjit_status status = fill(&job, destination, value, &diagnostics);
  if (job.device) kj_deliver_lines(job.device);
  /* none: a kernel of the library has reported it */
  return diagnostics.count ? ki_finish_call(context, &diagnostics) : status;
}

/* Implements kjit_fill, which stores one value in every element, and launches kjit's own kernels
 * that copy and fill strided elements on a device. The kernels do not know element types: they
 * handle an element as one word, or as several words. Contiguous elements need no kernel: the
 * device sets words of up to 4 bytes. A larger element is set once; then copies repeatedly double
 * the size of the filled part. */
#include <string.h>

#include "memory/array.h"
#include "stream/stream.h"

static const char source[] =
  "# Up to three dimensions.\n"
  "kernel copy(r, x) { for at in grid_range(r.shape) { r[at] = x[at] } }\n"
  "kernel fill(r, v) { for at in grid_range(r.shape) { r[at] = v } }\n"
  "# Eight.\n"
  "kernel copy_any(r, x) {\n"
  "  for n in grid_range(r.size) {\n"
  "    let s = r.shape\n"
  "    let n7 = n // s[7]\n"
  "    let n6 = n7 // s[6]\n"
  "    let n5 = n6 // s[5]\n"
  "    let n4 = n5 // s[4]\n"
  "    let n3 = n4 // s[3]\n"
  "    let n2 = n3 // s[2]\n"
  "    let n1 = n2 // s[1]\n"
  "    r[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]] =\n"
  "      x[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]]\n"
  "  }\n"
  "}\n"
  "kernel fill_any(r, v) {\n"
  "  for n in grid_range(r.size) {\n"
  "    let s = r.shape\n"
  "    let n7 = n // s[7]\n"
  "    let n6 = n7 // s[6]\n"
  "    let n5 = n6 // s[5]\n"
  "    let n4 = n5 // s[4]\n"
  "    let n3 = n4 // s[3]\n"
  "    let n2 = n3 // s[2]\n"
  "    let n1 = n2 // s[1]\n"
  "    r[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]] = v\n"
  "  }\n"
  "}\n";

enum { WIDEST = 8, FEW_DIMENSIONS = 3 };

/* ---- the library module ---- */

static kjit_status get_library(kjit_context *context, kjit_module **library)
{
  kj_runtime *runtime = kj_get_runtime(context);
  kjit_module *known = atomic_load_explicit(&runtime->library, memory_order_acquire), *made = NULL;
  *library = known;
  if (known) return KJIT_OK;
  KJ_TRY(kjit_parse_module_as(context, KJIT_TRUST_HOST, "kjit's own kernels", source,
                              sizeof source - 1, &made));
  if (atomic_compare_exchange_strong(&runtime->library, &known, made)) {
    *library = made; /* released when the context ends */
  } else {
    kjit_release_module(made);
    *library = known;
  }
  return KJIT_OK;
}

/* ---- views as arguments ---- */

typedef struct words {
  kjit_tensor tensor;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} words;

static void describe(words *w, const kjit_device *device, const kj_view *view, uint32_t rank)
{
  uint32_t pad = rank - view->rank;
  KJ_ASSERT(view->rank <= rank && rank <= KJ_MAX_RANK && view->element_bytes <= WIDEST);
  KJ_ASSERT(view->address % view->element_bytes == 0);
  for (uint32_t i = 0; i < rank; i++) {
    w->shape[i] = i < pad ? 1 : view->shape[i - pad];
    w->strides[i] = i < pad ? 1 : view->strides[i - pad];
  }
  /* NOLINT(performance-no-int-to-ptr) */
  w->tensor = (kjit_tensor){ .data = (void *)(uintptr_t)view->address,
                             .device_type = device->info.kind,
                             .device_id = device->info.ordinal,
                             .rank = (int32_t)rank,
                             .code = 1, /* unsigned integers */
                             .bits = (uint8_t)(8 * view->element_bytes),
                             .lanes = 1,
                             .shape = w->shape,
                             .strides = w->strides };
}

static uint32_t launch_rank(const kj_view *view)
{
  return view->rank <= FEW_DIMENSIONS ? (view->rank ? view->rank : 1) : KJ_MAX_RANK;
}

static kjit_status launch(kjit_device *device, const char *name, kjit_stream *stream,
                          const kjit_arg *arguments, kj_diagnostics *diagnostics)
{
  kjit_module *library;
  kjit_kernel *kernel;
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream, .device = device };
  KJ_TRY(get_library(device->context, &library));
  KJ_TRY(kjit_get_kernel(library, name, &kernel));
  return device->runtime->launch(kernel, &config, arguments, 2, diagnostics);
}

/* ---- copies ---- */

static kjit_status copy_words(kjit_device *device, const kj_view *to, const kj_view *from,
                              kjit_stream *stream, kj_diagnostics *diagnostics)
{
  words r, x;
  uint32_t rank = launch_rank(to);
  describe(&r, device, to, rank);
  describe(&x, device, from, rank);
  kjit_arg arguments[] = { kjit_arg_tensor(&r.tensor), kjit_arg_tensor(&x.tensor) };
  return launch(device, rank <= FEW_DIMENSIONS ? "copy" : "copy_any", stream, arguments,
                diagnostics);
}

/* Returns the size of the widest word that divides elements and addresses. A packed struct may not
 * be aligned, and a complex number is aligned to its real part. */
static uint32_t word_bytes(const kj_view *to, const kj_view *from)
{
  uint64_t all = to->element_bytes | to->address | from->address | WIDEST;
  return (uint32_t)(all & (~all + 1));
}

/* Makes each word an element of the view. If an element had several words, they form a new
 * innermost dimension. */
static void split_elements(kj_view *view, uint32_t bytes)
{
  uint32_t words = view->element_bytes / bytes;
  KJ_ASSERT(words * bytes == view->element_bytes);
  if (words == 1) return;
  KJ_ASSERT(view->rank < KJ_MAX_RANK);
  for (uint32_t i = 0; i < view->rank; i++) view->strides[i] *= words;
  view->shape[view->rank] = words;
  view->strides[view->rank] = 1;
  view->rank++;
  view->count *= words;
  view->element_bytes = bytes;
}

static kj_view take_row(const kj_view *view, int64_t index)
{
  kj_view row = *view;
  KJ_ASSERT(view->rank && index < view->shape[0]);
  row.address += (uint64_t)(index * view->strides[0] * (int64_t)view->element_bytes);
  row.count = view->shape[0] ? view->count / (uint64_t)view->shape[0] : 0;
  row.rank--;
  memmove(row.shape, view->shape + 1, row.rank * sizeof *row.shape);
  memmove(row.strides, view->strides + 1, row.rank * sizeof *row.strides);
  return row;
}

kjit_status kj_copy_strided(kjit_device *device, const kj_view *to, const kj_view *from,
                            kjit_stream *stream, kj_diagnostics *diagnostics)
{
  uint32_t bytes = word_bytes(to, from);
  /* the view has no dimension left for the words, so this loop handles the outermost dimension */
  bool needs_rows = to->rank == KJ_MAX_RANK && bytes != to->element_bytes;
  for (int64_t i = 0; needs_rows && i < to->shape[0]; i++) {
    kj_view to_row = take_row(to, i), from_row = take_row(from, i);
    KJ_TRY(kj_copy_strided(device, &to_row, &from_row, stream, diagnostics));
  }
  if (needs_rows) return KJIT_OK;
  kj_view to_words = *to, from_words = *from;
  split_elements(&to_words, bytes);
  split_elements(&from_words, bytes);
  return copy_words(device, &to_words, &from_words, stream, diagnostics);
}

/* ---- fills ---- */

static kjit_status fill_words(kjit_device *device, const kj_view *to, uint64_t bits,
                              kjit_stream *stream, kj_diagnostics *diagnostics)
{
  words r;
  uint32_t rank = launch_rank(to);
  describe(&r, device, to, rank);
  kjit_type type = kj_type_of_dlpack(1, r.tensor.bits);
  kjit_arg value = kjit_arg_value(type, &bits); /* little-endian: the low bytes contain the word */
  kjit_arg arguments[] = { kjit_arg_tensor(&r.tensor), value };
  return launch(device, rank <= FEW_DIMENSIONS ? "fill" : "fill_any", stream, arguments,
                diagnostics);
}

/* Returns word number `index` of a value. */
static uint64_t read_word(const uint64_t value[2], uint32_t index, uint32_t bytes)
{
  uint64_t word = 0;
  KJ_ASSERT(bytes <= sizeof word && (index + 1) * bytes <= 2 * sizeof *value);
  memcpy(&word, (const char *)value + index * bytes, bytes);
  return word;
}

/* Fills the first word of all elements, then the second word, and so on. */
kjit_status kj_fill_strided(kjit_device *device, const kj_view *to, const uint64_t bits[2],
                            kjit_stream *stream, kj_diagnostics *diagnostics)
{
  uint32_t bytes = word_bytes(to, to), words = to->element_bytes / bytes;
  kj_view part = *to;
  part.element_bytes = bytes;
  for (uint32_t i = 0; i < part.rank; i++) part.strides[i] *= words;
  for (uint32_t i = 0; i < words; i++) {
    KJ_TRY(fill_words(device, &part, read_word(bits, i, bytes), stream, diagnostics));
    part.address += bytes;
  }
  return KJIT_OK;
}

/* ---- kjit_fill ---- */

typedef struct fill_job {
  kjit_context *context;
  kjit_device *device;
  kjit_stream *stream;
  kj_view to;
  uint64_t bits[2];
} fill_job;

/* ---- the value ---- */

static kjit_status take_number(const fill_job *job, ki_value value, kj_diagnostics *diagnostics,
                               uint64_t bits[2])
{
  const ki_type_info *type = ki_type(job->context->types, job->to.element);
  ki_value converted;
  double number = ki_number_of(value);
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
    return kj_error(diagnostics, KJIT_ERROR_TYPE,
                    "kjit_fill: the elements of the array must be scalars");
  bool is_scalar =
    value->kind == KJIT_ARG_VALUE || (value->kind == KJIT_ARG_BY_ADDRESS && value->value.address);
  if (value->kind == KJIT_ARG_NUMBER)
    return take_number(job, kj_argument_number(value), diagnostics, job->bits);
  if (!is_scalar || value->type >= KJIT_SCALAR_COUNT)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_fill: the value must be a scalar");
  if (value->type != job->to.element)
    return kj_error(diagnostics, KJIT_ERROR_TYPE,
                    "kjit_fill: the elements have the type %s, but the value has the type %s",
                    ki_type(types, job->to.element)->name, ki_type(types, value->type)->name);
  if (value->kind == KJIT_ARG_VALUE) job->bits[0] = value->value.u;
  else memcpy(job->bits, value->value.address, job->to.element_bytes);
  if (job->to.element == KJIT_BOOL) job->bits[0] = (job->bits[0] & 0xff) != 0;
  return KJIT_OK;
}

/* ---- on the host ---- */

/* Waits for the stream, because work queued on a device may still use the memory. */
static kjit_status wait_for_device(const fill_job *job, kj_diagnostics *diagnostics)
{
  if (!job->device || !job->device->operations->is_queued) return KJIT_OK;
  KJ_TRY(
    kj_check_uncaptured(job->stream,
                        "kjit_fill: cannot fill host memory while a GPU's stream is being captured",
                        diagnostics));
  return kj_synchronize(job->device, false, kj_native(job->stream), diagnostics);
}

static kjit_status fill_on_host(fill_job *job, kj_diagnostics *diagnostics)
{
  kj_view value = job->to; /* a view whose elements all have the address of the value */
  value.address = (uint64_t)(uintptr_t)job->bits;
  memset(value.strides, 0, sizeof value.strides);
  KJ_TRY(wait_for_device(job, diagnostics));
  return kj_queue_host_copy(job->context, job->stream, &job->to, &value, job->bits, diagnostics);
}

/* ---- in device memory ---- */

static kjit_status set_words(const fill_job *job, uint64_t address, uint64_t bits, uint32_t bytes,
                             size_t count, kj_diagnostics *diagnostics)
{
  return job->device->operations->set(job->device, address, (uint32_t)bits, bytes, count,
                                      kj_native(job->stream), diagnostics);
}

static kjit_status fill_device_line(const fill_job *job, kj_diagnostics *diagnostics)
{
  enum { MOST_BYTES = 4 };
  const kj_view *to = &job->to;
  uint32_t aligned = word_bytes(to, to), bytes = aligned < MOST_BYTES ? aligned : MOST_BYTES,
           words = to->element_bytes / bytes;
  KJ_ASSERT(to->element_bytes <= sizeof job->bits && kj_is_line(to));
  bool is_uniform = true;
  for (uint32_t i = 1; i < words; i++)
    is_uniform = is_uniform && read_word(job->bits, i, bytes) == read_word(job->bits, 0, bytes);
  if (is_uniform)
    return set_words(job, to->address, read_word(job->bits, 0, bytes), bytes, to->count * words,
                     diagnostics);
  for (uint32_t i = 0; i < words; i++)
    KJ_TRY(set_words(job, to->address + i * bytes, read_word(job->bits, i, bytes), bytes, 1,
                     diagnostics));
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
  return kj_is_line(&job->to)
           ? fill_device_line(job, diagnostics)
           : kj_fill_strided(job->device, &job->to, job->bits, job->stream, diagnostics);
}

/* ---- the public functions ---- */

static kjit_status fill(fill_job *job, const kjit_arg *destination, const kjit_arg *value,
                        kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_view_destination(destination, job->context, diagnostics, &job->to));
  if (!ki_is_scalar(job->to.element))
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "kjit_fill: only arrays of scalars can be filled with a value; for other "
                    "elements write a kernel");
  KJ_TRY(take_value(job, value, diagnostics));
  job->device = job->stream                           ? job->stream->object.device
                : destination->kind == KJIT_ARG_ARRAY ? destination->value.array->object.device
                                                      : NULL;
  if (job->stream) KJ_TRY(kj_check_stream(job->device, job->stream, false, diagnostics));
  if (!job->to.count) return KJIT_OK;
  /* the host itself fills host memory, so no queued work uses the array */
  const bool is_on_host = kj_is_on_host(&job->to);
  KJ_TRY(kj_note_argument(destination, job->stream, is_on_host ? NULL : job->device, diagnostics));
  kj_view same = job->to;
  kj_simplify_views(&job->to, &same);
  return is_on_host ? fill_on_host(job, diagnostics) : fill_on_device(job, diagnostics);
}

kjit_status kjit_fill(kjit_context *context, const kjit_arg *destination, const kjit_arg *value,
                      kjit_stream *stream)
{
  KJ_TRY(kj_check_call(context, "kjit_fill",
                       !destination ? "the destination"
                       : value      ? NULL
                                    : "the value"));
  if (stream && stream->object.device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_fill: the stream belongs to another context");
  kj_diagnostics diagnostics = { 0 };
  fill_job job = { .context = context, .stream = stream };
  kjit_status status = fill(&job, destination, value, &diagnostics);
  if (job.device) kj_deliver_lines(job.device);
  /* there is no diagnostic if the call has succeeded, or if memory for the diagnostic was exhausted
   * (diagnostics.c) */
  return diagnostics.count ? ki_finish_call(context, &diagnostics) : status;
}

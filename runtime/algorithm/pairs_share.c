/* Allocates the memory of reductions over pairs that process y in chunks or divide x among devices:
 * for each device, its parts of x, y and the results, and buffers for chunks of y. pairs_stream.c
 * uses this memory. */
#include "algorithm/pairs_share.h"

#include <stdlib.h>
#include <string.h>

#include "ir/context.h"

/* ---- rows ---- */

void ka_cut_tensor(const kjit_tensor *whole, const kj_view *view, uint64_t first, uint64_t count,
                   ka_cut *rows)
{
  rows->tensor = *whole;
  memcpy(rows->shape, view->shape, sizeof rows->shape);
  rows->shape[0] = (int64_t)count;
  rows->tensor.shape = rows->shape;
  /* unsigned arithmetic, so that negative strides work */
  uint64_t address = view->address + first * (uint64_t)view->strides[0] * view->element_bytes;
  rows->tensor.data = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
  rows->tensor.byte_offset = 0;
  rows->argument = kjit_arg_elements(view->element, &rows->tensor);
}

kjit_status ka_cut_array(kjit_array *whole, uint64_t first, uint64_t count, ka_cut *rows)
{
  const kjit_array_slice slice = { (int64_t)first, (int64_t)(first + count), 1 };
  KJ_TRY(kjit_slice_array(whole, &slice, 1, &rows->view));
  rows->argument = kjit_arg_array(rows->view);
  return KJIT_OK;
}

kjit_status ka_cut_rows(const kjit_arg *whole, const kj_view *view, uint64_t first, uint64_t count,
                        ka_cut *rows)
{
  if (whole->kind == KJIT_ARG_ARRAY) return ka_cut_array(whole->value.array, first, count, rows);
  ka_cut_tensor(whole->value.tensor, view, first, count, rows);
  return KJIT_OK;
}

/* ---- location of arrays ---- */

static bool is_array(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_ARRAY || argument->kind == KJIT_ARG_TENSOR;
}

static kjit_status view_argument(const ka_streaming *s, const kjit_arg *argument, kj_view *view)
{
  kj_diagnostics diagnostics = { 0 };
  if (argument->kind == KJIT_ARG_ARRAY)
    (void)kj_view_array(argument->value.array, "an argument", &diagnostics, view);
  else
    (void)kj_view_tensor(s->context->types, argument->value.tensor, argument->type, "an argument",
                         &diagnostics, view);
  return ki_finish_call(s->context, &diagnostics);
}

/* Returns whether a launch on the device can use the argument without a copy. */
static bool is_there(const kjit_device *device, const kjit_arg *argument, const kj_view *view)
{
  if (argument->kind == KJIT_ARG_ARRAY) return argument->value.array->object.device == device;
  return view->kind == device->info.kind && view->ordinal == device->info.ordinal;
}

/* Returns whether rows of y are copied through pinned memory. */
static bool is_staged(const ka_streaming *s, const kjit_arg *argument, const kj_view *view)
{
  return kj_is_on_host(view) &&
         (argument->kind == KJIT_ARG_TENSOR || s->device->info.kind != KJIT_DEVICE_CPU);
}

static kjit_status wait_for_source(const ka_streaming *s, const kj_view *view)
{
  kjit_device *device = NULL;
  kjit_stream *stream = NULL;
  KJ_TRY(kjit_get_device(s->context, view->kind, view->ordinal, &device));
  KJ_TRY(kjit_get_default_stream(device, &stream));
  return kjit_synchronize_stream(stream);
}

/* ---- arrays ---- */

static kjit_status make_array(kjit_device *device, kjit_stream *stream, kjit_type element,
                              const int64_t *shape, uint32_t rank, kjit_memory memory,
                              kjit_array **array)
{
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = element,
                               .rank = rank,
                               .shape = shape,
                               .memory = memory };
  if (memory == KJIT_MEMORY_DEVICE) config.stream = stream;
  return kjit_create_array_with(&config, array);
}

/* Makes an array of the view's shape on the share's device, and copies the elements if `from` is
 * not NULL. */
static kjit_status make_like(const ka_streaming *s, const ka_share *share, const kj_view *view,
                             const kjit_arg *from, kjit_array **array)
{
  KJ_TRY(make_array(share->device, share->compute, view->element, view->shape, view->rank,
                    KJIT_MEMORY_DEVICE, array));
  if (!from) return KJIT_OK;
  KJ_TRY(wait_for_source(s, view));
  const kjit_arg to = kjit_arg_array(*array);
  return kjit_copy(s->context, &to, from, share->compute);
}

/* ---- shares ---- */

static kjit_status place_rows(const ka_streaming *s, const ka_share *share,
                              const kjit_operand *given, bool is_read, ka_cut *rows,
                              kjit_array **array, kjit_operand *operand)
{
  kj_view view;
  KJ_TRY(view_argument(s, &given->argument, &view));
  KJ_TRY(ka_cut_rows(&given->argument, &view, share->first, share->rows, rows));
  *operand = kjit_operand_of(rows->argument);
  if (is_there(share->device, &given->argument, &view)) return KJIT_OK;
  view.shape[0] = (int64_t)share->rows;
  KJ_TRY(make_like(s, share, &view, is_read ? &rows->argument : NULL, array));
  operand->argument = kjit_arg_array(*array);
  return KJIT_OK;
}

static kjit_status place_arguments(const ka_streaming *s, ka_share *share)
{
  size_t count = share->given.function->array_count;
  share->function = *share->given.function;
  share->given.function = &share->function;
  if (!count) return KJIT_OK;
  share->arguments = calloc(count, sizeof *share->arguments);
  share->argument_arrays = calloc(count, sizeof(kjit_array *));
  if (!share->arguments || !share->argument_arrays) return ka_fail_memory(s->context, s->name);
  for (size_t i = 0; i < count; i++) {
    const kjit_arg *argument = &share->function.arrays[i];
    kj_view view;
    share->arguments[i] = *argument;
    if (!is_array(argument)) continue;
    KJ_TRY(view_argument(s, argument, &view));
    if (is_there(share->device, argument, &view)) continue;
    KJ_TRY(make_like(s, share, &view, argument, &share->argument_arrays[i]));
    share->arguments[i] = kjit_arg_array(share->argument_arrays[i]);
  }
  share->function.arrays = share->arguments;
  return KJIT_OK;
}

/* Prepares the only share, which has all rows of x. Copies an operand to the device if the call for
 * each chunk would have to copy it again. */
static kjit_status place_all(const ka_streaming *s, ka_share *share)
{
  for (size_t i = 0; i < s->x_count; i++) {
    const kjit_arg *x = &s->given->x[i].argument;
    bool is_hosts = x->kind == KJIT_ARG_TENSOR && x->value.tensor->device_type == KJIT_DEVICE_CPU &&
                    s->device->info.kind != KJIT_DEVICE_CPU && x->type == KJIT_ANY;
    share->x[i] = s->given->x[i];
    if (!is_hosts) continue;
    KJ_TRY(
      kjit_create_array_from(share->device, x->value.tensor, share->compute, &share->x_arrays[i]));
    share->x[i].argument = kjit_arg_array(share->x_arrays[i]);
  }
  share->given.x = share->x;
  return KJIT_OK;
}

kjit_status ka_place_share(const ka_streaming *s, ka_share *share)
{
  const kjit_operand *places = s->given->result_places;
  size_t count = s->given->result_count;
  share->compute = s->options.stream;
  if (!share->compute) KJ_TRY(kjit_get_default_stream(share->device, &share->compute));
  if (!s->is_shared) return place_all(s, share);
  for (size_t i = 0; i < s->x_count; i++)
    KJ_TRY(place_rows(s, share, &s->given->x[i], true, &share->x_rows[i], &share->x_arrays[i],
                      &share->x[i]));
  share->given.x = share->x;
  KJ_ASSERT(count + (places != NULL) <= KA_MOST_RESULTS);
  share->result_count = count + (places != NULL);
  for (size_t i = 0; i < share->result_count; i++)
    KJ_TRY(place_rows(s, share, i < count ? &s->given->results[i] : places, false,
                      &share->result_rows[i], &share->result_arrays[i], &share->results[i]));
  share->given.results = share->results;
  if (places) share->given.result_places = &share->results[count];
  return place_arguments(s, share);
}

kjit_algorithm_options ka_options_of(const ka_streaming *s, const ka_share *share)
{
  kjit_algorithm_options options = s->options;
  options.chunk = 0;
  options.devices = NULL;
  options.device_count = 0;
  options.device = share->device;
  options.stream = share->compute;
  return options;
}

static kjit_status make_events(const ka_streaming *s, ka_share *share)
{
  KJ_TRY(kjit_create_stream(share->device, &share->copies));
  for (uint32_t b = 0; b < s->buffers; b++) {
    KJ_TRY(kjit_create_event(share->device, &share->copied[b]));
    KJ_TRY(kjit_create_event(share->device, &share->used[b]));
    /* the first copy to the buffer waits for this event, because the buffer was allocated on this
     * stream */
    KJ_TRY(kjit_record_event(share->used[b], share->compute));
  }
  return KJIT_OK;
}

static kjit_status make_buffers(const ka_streaming *s, ka_share *share, size_t i)
{
  const kj_view *view = &s->sources[i].view;
  const int64_t shape[] = { (int64_t)s->chunk, view->shape[1] };
  for (uint32_t b = 0; b < s->buffers; b++)
    KJ_TRY(make_array(share->device, share->compute, view->element, shape, view->rank,
                      KJIT_MEMORY_DEVICE, &share->buffers[i][b]));
  return KJIT_OK;
}

kjit_status ka_allocate_share(const ka_streaming *s, ka_share *share)
{
  for (size_t i = 0; i < share->found_count; i++) {
    int64_t count = (int64_t)share->found[i].count;
    KJ_TRY(make_array(share->device, share->compute, share->found[i].element, &count, 1,
                      KJIT_MEMORY_DEVICE, &share->found_arrays[i]));
  }
  bool is_copied = false;
  for (size_t i = 0; i < s->given->y_count; i++) {
    const kjit_arg *y = &s->given->y[i].argument;
    const kj_view *view = &s->sources[i].view;
    if (!is_staged(s, y, view) && is_there(share->device, y, view)) continue;
    if (!is_staged(s, y, view)) KJ_TRY(wait_for_source(s, view));
    KJ_TRY(make_buffers(s, share, i));
    is_copied = true;
  }
  return is_copied ? make_events(s, share) : KJIT_OK;
}

kjit_status ka_allocate_pinned(ka_streaming *s)
{
  for (size_t i = 0; i < s->given->y_count; i++) {
    ka_source *source = &s->sources[i];
    const int64_t shape[] = { (int64_t)s->chunk, source->view.shape[1] };
    if (!is_staged(s, &s->given->y[i].argument, &source->view)) continue;
    for (uint32_t b = 0; b < s->buffers; b++)
      KJ_TRY(make_array(s->device, NULL, source->view.element, shape, source->view.rank,
                        KJIT_MEMORY_PINNED, &source->pinned[b]));
  }
  return KJIT_OK;
}

kjit_status ka_fetch_results(const ka_streaming *s, const ka_share *share)
{
  for (size_t i = 0; i < share->result_count; i++) {
    if (!share->result_arrays[i]) continue;
    const kjit_arg from = kjit_arg_array(share->result_arrays[i]);
    KJ_TRY(kjit_copy(s->context, &share->result_rows[i].argument, &from, NULL));
  }
  return KJIT_OK;
}

/* ---- releasing a share ---- */

static void release_share(ka_share *share)
{
  for (size_t i = 0; i < KA_MOST_ROWS; i++)
    for (int b = 0; b < KA_BUFFERS; b++) kjit_release_array(share->buffers[i][b]);
  for (int b = 0; b < KA_BUFFERS; b++) {
    kjit_destroy_event(share->copied[b]);
    kjit_destroy_event(share->used[b]);
  }
  for (size_t i = 0; i < KA_MOST_ROWS; i++) {
    kjit_release_array(share->x_rows[i].view);
    kjit_release_array(share->x_arrays[i]);
  }
  for (size_t i = 0; i < share->result_count; i++) {
    kjit_release_array(share->result_rows[i].view);
    kjit_release_array(share->result_arrays[i]);
  }
  for (size_t i = 0; share->argument_arrays && i < share->function.array_count; i++)
    kjit_release_array(share->argument_arrays[i]);
  free(share->arguments);
  free(share->argument_arrays);
  for (size_t i = 0; i < share->found_count; i++) kjit_release_array(share->found_arrays[i]);
  kjit_destroy_stream(share->copies);
}

void ka_release_shares(ka_streaming *s)
{
  for (size_t i = 0; i < s->share_count; i++) release_share(&s->shares[i]);
  free(s->shares);
  for (size_t i = 0; i < KA_MOST_ROWS; i++)
    for (int b = 0; b < KA_BUFFERS; b++) kjit_release_array(s->sources[i].pinned[b]);
}

/* Reductions over pairs with y by pieces, options.chunk rows each: a call of its own for each piece
 * (ka_piece), which goes on from what the ones before have left. Rows that lie in memory of the
 * host come through two buffers: a piece is copied into pinned memory, and from there to the device
 * on a stream of its own, while the kernels of the piece before run.
 *
 *   host           piece 0 | piece 1 | piece 2, when its buffer has been copied | ...
 *   stream of copies         piece 0 | piece 1 | piece 2, when its kernels are done | ...
 *   stream of the call                 piece 0 | piece 1 | ...
 */
#include <string.h>

#include "algorithm/pairs.h"
#include "ir/context.h"

enum { BUFFERS = 2 };

/* An operand of y. */
typedef struct source {
  kj_view view;
  bool is_staged;
  kjit_array *pinned[BUFFERS], *device[BUFFERS];
} source;

typedef struct streaming {
  kjit_context *context;
  const char *name;
  const ka_pairing *given;
  kjit_algorithm_options options;
  kjit_device *device;
  uint64_t n, chunk;
  bool is_wide, is_staged;
  ka_found found;
  source sources[KA_MOST_PAIRED];
  kjit_array *x, *found_array, *places; /* x: where it is the host's, on the device */
  kjit_stream *compute, *copies;
  kjit_event *copied[BUFFERS], *used[BUFFERS];
} streaming;

/* ---- what there is to do ---- */

static bool is_on_host(const streaming *s, const kjit_operand *operand, const kj_view *view)
{
  return kj_is_on_host(view) &&
         (operand->argument.kind == KJIT_ARG_TENSOR || s->device->info.kind != KJIT_DEVICE_CPU);
}

/* Checks the whole call, and has no steps. */
static void look(ka_call *call, const void *data)
{
  streaming *s = *(streaming *const *)data;
  const kjit_algorithm_options *o = &call->options;
  if (o->plan || o->work_bytes || o->work)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "options.%s: a call with options.chunk cannot be prepared",
            o->plan   ? "plan"
            : o->work ? "work"
                      : "work_bytes");
  ka_pairs *p = ka_read_pairs(call, s->given);
  s->device = call->device;
  s->n = p->n;
  s->chunk = ka_least(o->chunk, p->n);
  s->is_wide = call->is_wide;
  if (!s->n) {
    if (p->m) ka_fill_pairs(p);
    return;
  }
  s->found = ka_count_found(p, s->chunk);
  for (size_t i = 0; i < p->y_count; i++) {
    if (p->y[i].operand.function)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`y%zu` is a func: with options.chunk y is of arrays", i);
    s->sources[i].view = p->y[i].operand.view;
    s->sources[i].is_staged = is_on_host(s, &s->given->y[i], &p->y[i].operand.view);
    s->is_staged = s->is_staged || s->sources[i].is_staged;
  }
}

/* ---- memory ---- */

static kjit_status make_array(const streaming *s, kjit_type element, const int64_t *shape,
                              uint32_t rank, kjit_memory memory, kjit_array **array)
{
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = s->device,
                               .element = element,
                               .rank = rank,
                               .shape = shape,
                               .memory = memory };
  if (memory == KJIT_MEMORY_DEVICE) config.stream = s->compute;
  return kjit_create_array_with(&config, array);
}

static kjit_status make_buffers(streaming *s, source *from)
{
  int64_t shape[] = { (int64_t)s->chunk, from->view.shape[1] };
  for (int b = 0; b < BUFFERS && from->is_staged; b++) {
    KJ_TRY(make_array(s, from->view.element, shape, from->view.rank, KJIT_MEMORY_PINNED,
                      &from->pinned[b]));
    KJ_TRY(make_array(s, from->view.element, shape, from->view.rank, KJIT_MEMORY_DEVICE,
                      &from->device[b]));
  }
  return KJIT_OK;
}

static kjit_status make_events(streaming *s)
{
  KJ_TRY(kjit_create_stream(s->device, &s->copies));
  for (int b = 0; b < BUFFERS; b++) {
    KJ_TRY(kjit_create_event(s->device, &s->copied[b]));
    KJ_TRY(kjit_create_event(s->device, &s->used[b]));
    KJ_TRY(kjit_record_event(s->used[b], s->compute)); /* its memory is there */
  }
  return KJIT_OK;
}

static kjit_status allocate(streaming *s)
{
  const kjit_arg *x = &s->given->x->argument;
  int64_t count = (int64_t)s->found.count, places = (int64_t)s->found.place_count;
  s->compute = s->options.stream;
  if (!s->compute) KJ_TRY(kjit_get_default_stream(s->device, &s->compute));
  KJ_TRY(make_array(s, s->found.element, &count, 1, KJIT_MEMORY_DEVICE, &s->found_array));
  if (places) KJ_TRY(make_array(s, s->found.place, &places, 1, KJIT_MEMORY_DEVICE, &s->places));
  for (size_t i = 0; i < s->given->y_count; i++) KJ_TRY(make_buffers(s, &s->sources[i]));
  bool is_hosts = x->kind == KJIT_ARG_TENSOR && x->value.tensor->device_type == KJIT_DEVICE_CPU &&
                  s->device->info.kind != KJIT_DEVICE_CPU && x->type == KJIT_ANY;
  if (is_hosts) KJ_TRY(kjit_create_array_from(s->device, x->value.tensor, s->compute, &s->x));
  return s->is_staged ? make_events(s) : KJIT_OK;
}

static void release(streaming *s)
{
  for (size_t i = 0; i < KA_MOST_PAIRED; i++)
    for (int b = 0; b < BUFFERS; b++) {
      kjit_release_array(s->sources[i].pinned[b]);
      kjit_release_array(s->sources[i].device[b]);
    }
  for (int b = 0; b < BUFFERS; b++) {
    kjit_destroy_event(s->copied[b]);
    kjit_destroy_event(s->used[b]);
  }
  kjit_release_array(s->x);
  kjit_release_array(s->found_array);
  kjit_release_array(s->places);
  kjit_destroy_stream(s->copies);
}

/* ---- pieces ---- */

/* Some rows of an array or tensor, as an argument. */
typedef struct cut {
  kjit_arg argument;
  kjit_tensor tensor;
  int64_t shape[KJ_MAX_RANK];
  kjit_array *view; /* to be released */
} cut;

static void cut_tensor(const kjit_tensor *whole, const kj_view *view, uint64_t first,
                       uint64_t count, cut *rows)
{
  rows->tensor = *whole;
  memcpy(rows->shape, view->shape, sizeof rows->shape);
  rows->shape[0] = (int64_t)count;
  rows->tensor.shape = rows->shape;
  /* negative strides wrap around */
  uint64_t address = view->address + first * (uint64_t)view->strides[0] * view->element_bytes;
  rows->tensor.data = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
  rows->tensor.byte_offset = 0;
  rows->argument = kjit_arg_elements(view->element, &rows->tensor);
}

static kjit_status cut_array(kjit_array *whole, uint64_t first, uint64_t count, cut *rows)
{
  const kjit_array_slice slice = { (int64_t)first, (int64_t)(first + count), 1 };
  KJ_TRY(kjit_slice_array(whole, &slice, 1, &rows->view));
  rows->argument = kjit_arg_array(rows->view);
  return KJIT_OK;
}

static const kjit_tensor *tensor_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_ARRAY ? kjit_get_tensor(argument->value.array)
                                          : argument->value.tensor;
}

static kjit_status cut_rows(const kjit_arg *whole, const kj_view *view, uint64_t first,
                            uint64_t count, cut *rows)
{
  if (whole->kind == KJIT_ARG_ARRAY) return cut_array(whole->value.array, first, count, rows);
  cut_tensor(whole->value.tensor, view, first, count, rows);
  return KJIT_OK;
}

/* By the host, which waits for nothing: as memory of its own, since copies of a kjit array would be
 * ordered behind the kernels that are queued. */
static kjit_status fill_pinned(const streaming *s, const kjit_arg *whole, const source *from,
                               uint64_t first, uint64_t count, int b)
{
  cut rows = { .view = NULL }, pinned = { .view = NULL };
  kj_view view = from->view;
  const kjit_tensor *memory = kjit_get_tensor(from->pinned[b]);
  view.address = (uint64_t)(uintptr_t)memory->data + memory->byte_offset;
  cut_tensor(tensor_of(whole), &from->view, first, count, &rows);
  cut_tensor(memory, &view, 0, count, &pinned);
  rows.tensor.device_type = pinned.tensor.device_type = KJIT_DEVICE_CPU;
  rows.tensor.device_id = pinned.tensor.device_id = 0;
  return kjit_copy(s->context, &pinned.argument, &rows.argument, NULL);
}

static kjit_status queue_copy(const streaming *s, const source *from, uint64_t count, int b)
{
  cut pinned = { .view = NULL }, device = { .view = NULL };
  kjit_status status = cut_array(from->pinned[b], 0, count, &pinned);
  if (status == KJIT_OK) status = cut_array(from->device[b], 0, count, &device);
  if (status == KJIT_OK)
    status = kjit_copy_async(s->context, &device.argument, &pinned.argument, s->copies);
  kjit_release_array(pinned.view);
  kjit_release_array(device.view);
  return status;
}

/* Queues the copies of a piece; the host waits until the pinned buffers may be written again. */
static kjit_status stage(streaming *s, uint64_t piece, uint64_t first, uint64_t count)
{
  int b = (int)(piece % BUFFERS);
  if (!s->is_staged) return KJIT_OK;
  if (piece >= BUFFERS) KJ_TRY(kjit_synchronize_event(s->copied[b]));
  KJ_TRY(kjit_wait_event(s->copies, s->used[b]));
  for (size_t i = 0; i < s->given->y_count; i++) {
    const source *from = &s->sources[i];
    if (!from->is_staged) continue;
    KJ_TRY(fill_pinned(s, &s->given->y[i].argument, from, first, count, b));
    KJ_TRY(queue_copy(s, from, count, b));
  }
  KJ_TRY(kjit_record_event(s->copied[b], s->copies));
  return kjit_wait_event(s->compute, s->copied[b]);
}

/* The kernels of a piece. */
static kjit_status reduce_piece(streaming *s, int b, uint64_t first, uint64_t count)
{
  const ka_piece piece = {
    first, s->n, s->is_wide, first + count == s->n, s->found_array, s->places
  };
  ka_pairing given = *s->given;
  kjit_operand y[KA_MOST_PAIRED], x = *s->given->x;
  cut rows[KA_MOST_PAIRED] = { 0 };
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < given.y_count && status == KJIT_OK; i++) {
    const source *from = &s->sources[i];
    status = from->is_staged ? cut_array(from->device[b], 0, count, &rows[i])
                             : cut_rows(&given.y[i].argument, &from->view, first, count, &rows[i]);
    y[i] = kjit_operand_of(rows[i].argument);
  }
  if (s->x) x.argument = kjit_arg_array(s->x);
  given.x = &x;
  given.y = y;
  given.piece = &piece;
  kjit_algorithm_options options = s->options;
  options.chunk = 0;
  options.device = s->device;
  options.stream = s->compute;
  if (status == KJIT_OK)
    status =
      ka_perform(s->context, s->name, ka_pairs_options(&given), &options, ka_build_pairs, &given);
  for (size_t i = 0; i < given.y_count; i++) kjit_release_array(rows[i].view);
  if (status == KJIT_OK && s->is_staged) status = kjit_record_event(s->used[b], s->compute);
  return status;
}

static kjit_status run(streaming *s)
{
  KJ_TRY(allocate(s));
  for (uint64_t first = 0, piece = 0; first < s->n; first += s->chunk, piece++) {
    uint64_t count = ka_least(s->chunk, s->n - first);
    KJ_TRY(stage(s, piece, first, count));
    KJ_TRY(reduce_piece(s, (int)(piece % BUFFERS), first, count));
  }
  return kjit_synchronize_stream(s->compute);
}

kjit_status ka_stream_pairs(kjit_context *context, const char *name, const ka_pairing *given,
                            const kjit_algorithm_options *options)
{
  streaming s = { .context = context, .name = name, .given = given };
  streaming *own = &s;
  KJ_TRY(ki_read_sized(context, name, KI_ALGORITHM_OPTIONS, options, &s.options));
  s.options.size_bytes = sizeof s.options;
  KJ_TRY(ka_perform(context, name, ka_pairs_options(given), options, look, &own));
  if (!s.n) return KJIT_OK;
  kjit_status status = run(&s);
  release(&s);
  return status;
}

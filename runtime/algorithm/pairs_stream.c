/* Runs reductions over pairs that consist of several calls. y is processed in chunks of
 * options.chunk rows, and x in shares, one share for each device in options.devices. Each chunk of
 * a share is a separate call (ka_piece) that continues from the results of the previous chunks.
 * Rows of y in host memory go through two buffers: a chunk is copied to pinned memory once for all
 * devices, and then to each device on a separate stream while the kernels of the previous chunk
 * run.
 *
 *     host           chunk 0 | chunk 1 | chunk 2, when its buffer has been copied | ...
 *     stream of copies         chunk 0 | chunk 1 | chunk 2, when its kernels are done | ...
 *     stream of the share                chunk 0 | chunk 1 | ...
 *
 * pairs_share.c manages the memory of shares. */
#include <stdlib.h>
#include <string.h>

#include "algorithm/pairs_share.h"
#include "ir/context.h"

/* ---- preparing the call ---- */

static void check_devices(ka_call *call)
{
  const kjit_algorithm_options *o = &call->options;
  if (!o->devices) ka_fail(call, KJIT_ERROR_MISUSE, KJ_OPTION("devices") " is NULL");
  if (o->stream)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("stream") ": a call with " KJ_OPTION(
              "devices") " takes the default stream of each");
  for (size_t i = 0; i < o->device_count; i++) {
    const kjit_device *device = o->devices[i];
    if (!device) ka_fail(call, KJIT_ERROR_MISUSE, KJ_OPTION("devices") "[%zu] is NULL", i);
    if (device->context != call->context)
      ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("devices") "[%zu] belongs to another context",
              i);
    if (device->info.kind != o->devices[0]->info.kind)
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              KJ_OPTION("devices") ": a CPU and a GPU cannot share the rows of `x`");
  }
}

/* Checks that an operand is an array, because it is copied or divided by rows. */
static void check_is_array(ka_call *call, const ka_operand *operand, const char *option)
{
  if (operand->function)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` is a function; with " KJ_OPTION("%s") " it must be an array", operand->name,
            option);
}

static void check_is_no_plan(ka_call *call, const char *option)
{
  const kjit_algorithm_options *o = &call->options;
  if (o->plan || o->work_bytes || o->work)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("%s") ": a call with " KJ_OPTION("%s") " cannot be prepared",
            o->plan   ? "plan"
            : o->work ? "work"
                      : "work_bytes",
            option);
}

/* Returns whether x is processed in chunks of rows. This is so in the pass of a gradient with
 * respect to y, where x and y are exchanged, if x has more rows than one chunk for each device. A
 * device then needs only the rows of the current chunk. */
static bool is_cut_by_rows(const ka_streaming *s)
{
  size_t devices = s->is_shared ? s->options.device_count : 1;
  const ka_pair_gradient *gradient = s->given->gradient;
  return gradient && gradient->is_exchanged && s->options.chunk &&
         s->m > s->options.chunk * devices;
}

/* Build function that checks the whole call and adds no steps. */
static void look(ka_call *call, const void *data)
{
  ka_streaming *s = *(ka_streaming *const *)data;
  const char *option = s->is_shared ? "devices" : "chunk";
  check_is_no_plan(call, option);
  if (s->is_shared) {
    check_devices(call);
    call->device = call->options.devices[0];
  }
  ka_pairs *p = ka_read_pairs(call, s->given);
  s->device = call->device;
  s->m = p->m;
  s->n = p->n;
  s->chunk = call->options.chunk ? ka_least(call->options.chunk, p->n) : p->n;
  s->buffers = s->chunk < s->n ? KA_BUFFERS : 1;
  s->is_wide = call->is_wide;
  s->x_count = p->x_count;
  for (size_t i = 0; i < p->x_count; i++) s->x_views[i] = p->x[i].operand.view;
  for (size_t i = 0; i < p->value_count; i++) s->result_views[i] = p->values[i].result.view;
  for (size_t i = 0; i < p->y_count; i++) {
    check_is_array(call, &p->y[i].operand, option);
    s->sources[i].view = p->y[i].operand.view;
  }
  if (!s->is_shared && !is_cut_by_rows(s)) return;
  for (size_t i = 0; i < p->x_count; i++) check_is_array(call, &p->x[i].operand, option);
  for (size_t i = 0; i < p->value_count; i++) check_is_array(call, &p->values[i].result, option);
  if (p->has_places) check_is_array(call, &p->result_places, option);
}

/* Build function that checks the call of a share, and counts the intermediate results of the
 * share. */
static void count_found(ka_call *call, const void *data)
{
  const ka_counting *c = data;
  const ka_pairs *p = ka_read_pairs(call, &c->share->given);
  ka_count_found(p, c->streaming->chunk, c->share->found);
  c->share->found_count = ka_found_arrays(p);
}

/* ---- chunks ---- */

/* Copies on the host, without waiting for any stream. The pinned buffer is passed as plain memory,
 * because copies of a kjit array would be ordered after the queued kernels. */
static kjit_status fill_pinned(const ka_streaming *s, const kjit_arg *whole, const ka_source *from,
                               uint64_t first, uint64_t count, int b)
{
  ka_cut rows = { .view = NULL }, pinned = { .view = NULL };
  kj_view view = from->view;
  const kjit_tensor *memory = kjit_get_tensor(from->pinned[b]);
  view.address = (uint64_t)(uintptr_t)memory->data + memory->byte_offset;
  ka_cut_tensor(whole->kind == KJIT_ARG_ARRAY ? kjit_get_tensor(whole->value.array)
                                              : whole->value.tensor,
                &from->view, first, count, &rows);
  ka_cut_tensor(memory, &view, 0, count, &pinned);
  rows.tensor.device_type = pinned.tensor.device_type = KJIT_DEVICE_CPU;
  rows.tensor.device_id = pinned.tensor.device_id = 0;
  return kjit_copy(s->context, &pinned.argument, &rows.argument, NULL);
}

/* Reads a chunk of y into the pinned buffers. Waits until the buffers may be overwritten. */
static kjit_status read_piece(ka_streaming *s, uint64_t piece, uint64_t first, uint64_t count)
{
  int b = (int)(piece % s->buffers);
  for (size_t i = 0; i < s->share_count && piece >= s->buffers; i++)
    if (s->shares[i].copied[b]) KJ_TRY(kjit_synchronize_event(s->shares[i].copied[b]));
  for (size_t i = 0; i < s->given->y_count; i++)
    if (s->sources[i].pinned[b])
      KJ_TRY(fill_pinned(s, &s->given->y[i].argument, &s->sources[i], first, count, b));
  return KJIT_OK;
}

/* Queues the copy of rows of y that are not on the device, from the pinned buffer or from another
 * device. */
static kjit_status queue_copy(const ka_streaming *s, const ka_share *share, size_t i,
                              uint64_t first, uint64_t count, int b)
{
  const ka_source *source = &s->sources[i];
  ka_cut from = { .view = NULL }, to = { .view = NULL };
  kjit_status status =
    source->pinned[b] ? ka_cut_array(source->pinned[b], 0, count, &from)
                      : ka_cut_rows(&s->given->y[i].argument, &source->view, first, count, &from);
  if (status == KJIT_OK) status = ka_cut_array(share->buffers[i][b], 0, count, &to);
  if (status == KJIT_OK)
    status = kjit_copy_async(s->context, &to.argument, &from.argument, share->copies);
  kjit_release_array(from.view);
  kjit_release_array(to.view);
  return status;
}

static kjit_status stage(const ka_streaming *s, const ka_share *share, uint64_t first,
                         uint64_t count, int b)
{
  if (!share->copies) return KJIT_OK;
  KJ_TRY(kjit_wait_event(share->copies, share->used[b]));
  for (size_t i = 0; i < s->given->y_count; i++)
    if (share->buffers[i][b]) KJ_TRY(queue_copy(s, share, i, first, count, b));
  KJ_TRY(kjit_record_event(share->copied[b], share->copies));
  return kjit_wait_event(share->compute, share->copied[b]);
}

/* Queues the kernels of a chunk. */
static kjit_status reduce_piece(const ka_streaming *s, const ka_share *share, uint64_t first,
                                uint64_t count, int b)
{
  const ka_piece piece = { .first = first,
                           .total = s->n,
                           .row = share->first +
                                  (s->given->gradient ? s->given->gradient->first_row : 0),
                           .is_share = s->is_shared,
                           .is_wide = s->is_wide,
                           .is_last = first + count == s->n,
                           .found = share->found_arrays };
  ka_pairing given = share->given;
  kjit_operand y[KA_MOST_ROWS];
  ka_cut rows[KA_MOST_ROWS] = { 0 };
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < given.y_count && status == KJIT_OK; i++) {
    status = share->buffers[i][b]
               ? ka_cut_array(share->buffers[i][b], 0, count, &rows[i])
               : ka_cut_rows(&given.y[i].argument, &s->sources[i].view, first, count, &rows[i]);
    y[i] = kjit_operand_of(rows[i].argument);
  }
  given.y = y;
  given.piece = &piece;
  kjit_algorithm_options options = ka_options_of(s, share);
  if (status == KJIT_OK)
    status =
      ka_perform(s->context, s->name, ka_pairs_options(&given), &options, ka_build_pairs, &given);
  for (size_t i = 0; i < given.y_count; i++) kjit_release_array(rows[i].view);
  if (status == KJIT_OK && share->copies)
    status = kjit_record_event(share->used[b], share->compute);
  return status;
}

static kjit_status run_pieces(ka_streaming *s)
{
  for (uint64_t first = 0, piece = 0; first < s->n; first += s->chunk, piece++) {
    uint64_t count = ka_least(s->chunk, s->n - first);
    int b = (int)(piece % s->buffers);
    KJ_TRY(read_piece(s, piece, first, count));
    for (size_t i = 0; i < s->share_count; i++) {
      KJ_TRY(stage(s, &s->shares[i], first, count, b));
      KJ_TRY(reduce_piece(s, &s->shares[i], first, count, b));
    }
  }
  return KJIT_OK;
}

/* Waits for all shares, even if a share has failed, because after this call kjit releases the
 * shares' memory, and the caller can change its host memory. */
static kjit_status wait_for_shares(ka_streaming *s)
{
  kjit_status first = KJIT_OK;
  for (size_t i = 0; i < s->share_count; i++) {
    kjit_status status = kjit_synchronize_stream(s->shares[i].compute);
    if (first == KJIT_OK) first = status;
  }
  return first;
}

static kjit_status run(ka_streaming *s)
{
  for (size_t i = 0; i < s->share_count; i++) {
    ka_share *share = &s->shares[i];
    KJ_TRY(ka_place_share(s, share));
    kjit_algorithm_options options = ka_options_of(s, share);
    const ka_counting counting = { s, share };
    KJ_TRY(ka_perform(s->context, s->name, ka_pairs_options(&share->given), &options, count_found,
                      &counting));
    KJ_TRY(ka_allocate_share(s, share));
  }
  KJ_TRY(ka_allocate_pinned(s));
  kjit_status pieces = run_pieces(s), waited = wait_for_shares(s);
  KJ_TRY(pieces);
  KJ_TRY(waited);
  for (size_t i = 0; i < s->share_count; i++) KJ_TRY(ka_fetch_results(s, &s->shares[i]));
  return KJIT_OK;
}

/* Divides the rows of x into shares whose numbers of rows differ by at most one. A device without
 * rows gets no share. */
static kjit_status divide_rows(ka_streaming *s)
{
  size_t count = s->is_shared ? s->options.device_count : 1;
  s->shares = calloc(count, sizeof *s->shares);
  if (!s->shares) return ka_fail_memory(s->context, s->name);
  for (size_t i = 0; i < count; i++) {
    uint64_t first = s->m / count * i + ka_least(i, s->m % count),
             rows = s->m / count + (i < s->m % count);
    if (s->is_shared && !rows) break;
    s->shares[s->share_count++] =
      (ka_share){ .device = s->is_shared ? s->options.devices[i] : s->device,
                  .first = first,
                  .rows = rows,
                  .given = *s->given };
  }
  return KJIT_OK;
}

/* Makes the call for only `count` rows of x, starting with row `first`, and for the result rows
 * that belong to them. */
static kjit_status stream_rows(const ka_streaming *s, uint64_t first, uint64_t count)
{
  const ka_pairing *whole = s->given;
  ka_cut x_rows[KA_MOST_ROWS] = { 0 }, result_rows[KA_MOST_RESULTS] = { 0 };
  kjit_operand x[KA_MOST_ROWS], results[KA_MOST_RESULTS];
  ka_pair_gradient gradient = *whole->gradient;
  ka_pairing given = *whole;
  kjit_algorithm_options options = s->options;
  kjit_device *const own = s->device;
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < s->x_count && status == KJIT_OK; i++) {
    status = ka_cut_rows(&whole->x[i].argument, &s->x_views[i], first, count, &x_rows[i]);
    x[i] = kjit_operand_of(x_rows[i].argument);
  }
  for (size_t i = 0; i < whole->result_count && status == KJIT_OK; i++) {
    status =
      ka_cut_rows(&whole->results[i].argument, &s->result_views[i], first, count, &result_rows[i]);
    results[i] = kjit_operand_of(result_rows[i].argument);
  }
  gradient.first_row = first;
  given.x = x;
  given.results = results;
  given.gradient = &gradient;
  if (!s->is_shared) { /* a call with options.devices accepts results in any memory */
    options.devices = &own;
    options.device_count = 1;
    options.stream = NULL;
    options.device = NULL;
  }
  if (status == KJIT_OK) status = ka_stream_pairs(s->context, s->name, &given, &options);
  for (size_t i = 0; i < KA_MOST_ROWS; i++) kjit_release_array(x_rows[i].view);
  for (size_t i = 0; i < KA_MOST_RESULTS; i++) kjit_release_array(result_rows[i].view);
  return status;
}

static kjit_status stream_all_rows(const ka_streaming *s)
{
  uint64_t rows = s->options.chunk * (s->is_shared ? s->options.device_count : 1);
  for (uint64_t first = 0; first < s->m; first += rows)
    KJ_TRY(stream_rows(s, first, ka_least(rows, s->m - first)));
  return KJIT_OK;
}

kjit_status ka_stream_pairs(kjit_context *context, const char *name, const ka_pairing *given,
                            const kjit_algorithm_options *options)
{
  ka_streaming s = { .context = context, .name = name, .given = given };
  ka_streaming *own = &s;
  KJ_TRY(ki_read_sized(context, name, KI_ALGORITHM_OPTIONS, options, &s.options));
  s.options.size_bytes = sizeof s.options;
  s.is_shared = s.options.device_count != 0;
  KJ_TRY(ka_perform(context, name, ka_pairs_options(given), options, look, &own));
  kjit_algorithm_options plain = s.options;
  plain.chunk = 0;
  plain.devices = NULL;
  plain.device_count = 0;
  if (!s.n || !s.m)
    return ka_perform(context, name, ka_pairs_options(given), &plain, ka_build_pairs, given);
  if (is_cut_by_rows(&s)) return stream_all_rows(&s);
  kjit_status status = divide_rows(&s);
  if (status == KJIT_OK) status = run(&s);
  ka_release_shares(&s);
  return status;
}

/* kjit_csr_from_dense and kjit_csr_to_dense. The conversion from a dense matrix counts the entries
 * in each chunk of a row, computes each chunk's position by a scan of these counts, and writes the
 * entries. The conversion to a dense matrix adds the entries to zeros. */
#include "algorithm/sparse.h"
#include "ir/context.h"

typedef struct dense {
  ka_call *call;
  const kjit_csr *csr;
  const kjit_operand *x;
  uint64_t rows, columns, pieces, room;
  bool is_wide;
  kjit_array *counts, *places, *values, *elements;
} dense;

/* number of elements that a warp processes: SPARSE_PIECE of lib/library/sparse.kir */
enum { PIECE = 1024 };

static void begin(ka_call *call, const dense *d, ka_kernel *kernel)
{
  call->is_wide = d->is_wide;
  ka_begin_kernel(call, "sparse", kernel);
}

/* ---- from a dense matrix ---- */

static const char *use_matrix(ka_kernel *kernel, const kjit_operand *given)
{
  static const uint32_t axes[] = { 0, 1 }, one_each[] = { 1, 1 };
  ka_operand *operand = KJ_NEW(&kernel->call->arena, ka_operand);
  ka_read_input(kernel->call, "x", given, operand);
  ka_arrange(kernel->call, operand, axes, 2, one_each);
  return ka_use_input(kernel, operand, KJIT_ANY);
}

static uint32_t count_threads(const ka_call *call)
{
  return ka_is_cpu(call) ? 1 : 8 * KJ_WARP_THREADS;
}

/* Returns the number of blocks in the grid. The blocks loop over the chunks. */
static uint64_t count_blocks(const ka_call *call, const dense *d)
{
  uint64_t pieces = d->rows * d->pieces, cores = ka_core_count(call);
  if (ka_is_cpu(call)) return ka_most(ka_least(pieces, 4 * cores), 1);
  return ka_most(ka_least(ka_divide_up(pieces, 8), 16 * cores), 1);
}

static void build_counts(ka_call *call, const void *data)
{
  const dense *d = data;
  ka_kernel kernel;
  begin(call, d, &kernel);
  const char *element = use_matrix(&kernel, d->x), *counts = ka_use_kept(&kernel, d->counts),
             *s = ka_use_count(&kernel, d->rows), *columns = ka_use_count(&kernel, d->columns),
             *pieces = ka_use_count(&kernel, d->pieces);
  ka_launch(&kernel, count_threads(call), count_blocks(call, d), "sparse_count(%s, %s, %s, %s, %s)",
            element, counts, s, columns, pieces);
}

static void build_entries(ka_call *call, const void *data)
{
  const dense *d = data;
  ka_kernel kernel;
  begin(call, d, &kernel);
  const char *element = use_matrix(&kernel, d->x), *before = ka_use_kept(&kernel, d->counts),
             *put = ka_use_line(&kernel, "result_data", d->csr->data, true),
             *column = ka_use_line(&kernel, "result_columns", d->csr->columns, true),
             *offset = ka_use_line(&kernel, "result_offsets", d->csr->offsets, true),
             *s = ka_use_count(&kernel, d->rows), *columns = ka_use_count(&kernel, d->columns),
             *pieces = ka_use_count(&kernel, d->pieces),
             *room = ka_use_long(&kernel, (int64_t)d->room);
  ka_launch(&kernel, count_threads(call), count_blocks(call, d),
            "sparse_from_dense(%s, %s, %s, %s, %s, %s, %s, %s, %s)", element, before, put, column,
            offset, s, columns, pieces, room);
}

/* Replaces the counts by the number of entries before each chunk, followed by the total. */
static void scan_counts(dense *d)
{
  ka_call *call = d->call;
  const kjit_operator add = kjit_operator_named("add");
  kjit_algorithm_options options = ka_inner_options(call);
  kjit_operand counts = kjit_operand_array(d->counts);
  options.flags = KJIT_ALGORITHM_EXCLUSIVE;
  ka_try(call, kjit_scan(call->context, &counts, &counts, &add, &options));
}

/* Returns the number of entries for which both operands of the result, data and columns, have
 * space. */
static uint64_t count_room(ka_call *call, const kjit_csr *result)
{
  ka_operand data, columns;
  if (!result) ka_fail(call, KJIT_ERROR_MISUSE, "the result is NULL");
  ka_read_output(call, "result_data", result->data, &data);
  ka_read_output(call, "result_columns", result->columns, &columns);
  return ka_least(data.count, columns.count);
}

static void build_from_dense(ka_call *call, const void *given)
{
  dense d = *(const dense *)given;
  ka_operand x;
  const ka_operand *inputs[] = { &x };
  d.call = call;
  ka_read_input(call, "x", d.x, &x);
  if (x.rank != 2)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has %u axes; a matrix must have two", x.rank);
  if (!ki_is_scalar(x.element))
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s; expected numbers or bool",
            ka_type_text(call, x.element));
  if (ka_describe_csr(call, x.element, x.count,
                      x.count > INT32_MAX || x.shape[1] > INT32_MAX ? KJIT_I64 : KJIT_I32, x.shape))
    return;
  d.rows = (uint64_t)x.shape[0];
  d.columns = (uint64_t)x.shape[1];
  d.pieces = ka_divide_up(d.columns, PIECE);
  d.room = count_room(call, d.csr);
  ka_check_csr_result(call, d.csr, x.element, 0, x.shape, inputs, 1);
  ka_begin_calls(call);
  d.is_wide = call->is_wide || d.rows * ka_most(d.pieces, 1) >= INT32_MAX / 2;
  d.counts = ka_new_array(call, KJIT_I64, d.rows * d.pieces + 1);
  ka_fill_array(call, d.counts, 0);
  if (d.rows && d.pieces) {
    ka_call_inner(call, build_counts, &d);
    scan_counts(&d);
  }
  ka_call_inner(call, build_entries, &d);
}

kjit_status kjit_csr_from_dense(kjit_context *context, const kjit_csr *result,
                                const kjit_operand *x, const kjit_algorithm_options *options)
{
  const dense given = { .csr = result, .x = x };
  return ka_perform(context, "kjit_csr_from_dense", 0, options, build_from_dense, &given);
}

/* ---- to a dense matrix ---- */

static void build_places(ka_call *call, const void *data)
{
  const dense *d = data;
  ka_kernel kernel;
  begin(call, d, &kernel);
  const char *offset = ka_use_line(&kernel, "offsets", d->csr->offsets, false),
             *column = ka_use_line(&kernel, "columns", d->csr->columns, false),
             *entry = ka_use_line(&kernel, "data", d->csr->data, false),
             *places = ka_use_kept(&kernel, d->places), *values = ka_use_kept(&kernel, d->values),
             *n = ka_use_count(&kernel, d->room), *s = ka_use_count(&kernel, d->rows),
             *columns = ka_use_long(&kernel, (int64_t)d->columns);
  ka_launch(&kernel, 0, 0, "sparse_dense_places(%s, %s, %s, %s, %s, %s, %s, %s)", offset, column,
            entry, places, values, n, s, columns);
}

/* Adds the entries to d->elements, a row-major matrix of zeros. */
static void add_entries(dense *d, kjit_type element)
{
  ka_call *call = d->call;
  const kjit_operator operator_ = kjit_operator_named(element == KJIT_BOOL ? "or" : "add");
  kjit_operand x = kjit_operand_array(d->elements), places = kjit_operand_array(d->places),
               values = kjit_operand_array(d->values);
  ka_call_inner(call, build_places, d);
  kjit_algorithm_options options = ka_inner_options(call);
  ka_try(call, kjit_update_at(call->context, &x, &places, &values, &operator_, &options));
}

static void build_result(ka_call *call, const void *data)
{
  static const uint32_t axes[] = { 0, 1 }, all[] = { 2 };
  const dense *d = data;
  ka_operand *result = KJ_NEW(&call->arena, ka_operand);
  ka_kernel kernel;
  call->is_wide = call->is_wide || d->rows * d->columns > INT32_MAX / 2;
  ka_begin_kernel(call, "sparse", &kernel);
  ka_read_output(call, "result", d->x, result);
  ka_arrange(call, result, axes, 1, all);
  const char *put = ka_use_output(&kernel, result), *elements = ka_use_kept(&kernel, d->elements),
             *n = ka_use_count(&kernel, d->rows * d->columns);
  ka_launch(&kernel, 0, 0, "sparse_give(%s, %s, %s)", elements, put, n);
}

static void build_to_dense(ka_call *call, const void *given)
{
  dense d = *(const dense *)given;
  ka_csr csr;
  ka_operand result;
  d.call = call;
  ka_read_csr(call, d.csr, &csr);
  if (ka_describe(call, 0, csr.data.element, 2, d.csr->shape)) return;
  ka_read_output(call, "result", d.x, &result);
  if (result.function)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` is a function; expected an array");
  if (result.rank != 2 || result.shape[0] != d.csr->shape[0] || result.shape[1] != d.csr->shape[1])
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` must have the shape (%lld, %lld)",
            (long long)d.csr->shape[0], (long long)d.csr->shape[1]);
  if (result.element != csr.data.element || !ki_is_scalar(result.element))
    ka_fail(call, KJIT_ERROR_TYPE,
            "`result` has elements of type %s, but `data` has type %s; both must have the same "
            "number type or bool",
            ka_type_text(call, result.element), ka_type_text(call, csr.data.element));
  const ka_operand *inputs[] = { &csr.data, &csr.columns, &csr.offsets };
  for (size_t i = 0; i < 3; i++) ka_check_overlap(call, &result, inputs[i], false);
  ka_begin_calls(call);
  if (!result.count) return;
  d.rows = (uint64_t)result.shape[0];
  d.columns = (uint64_t)result.shape[1];
  d.room = csr.count;
  d.is_wide = call->is_wide || d.room + d.rows >= (uint64_t)INT32_MAX - (1 << 20);
  d.elements = ka_new_array(call, result.element, result.count);
  ka_fill_array(call, d.elements, 0);
  d.places = ka_new_array(call, KJIT_I64, d.room);
  d.values = ka_new_array(call, result.element, d.room);
  if (d.room) add_entries(&d, result.element);
  ka_call_inner(call, build_result, &d);
}

kjit_status kjit_csr_to_dense(kjit_context *context, const kjit_operand *result, const kjit_csr *a,
                              const kjit_algorithm_options *options)
{
  const dense given = { .csr = a, .x = result };
  return ka_perform(context, "kjit_csr_to_dense", 0, options, build_to_dense, &given);
}

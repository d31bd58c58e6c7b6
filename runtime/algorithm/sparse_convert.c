/* Conversions of sparse matrices. Each conversion consists of sorts, reductions by key, scans and
 * kernels of lib/library/sparse.kir. */
#include "algorithm/sparse.h"
#include "ir/context.h"

typedef struct conversion {
  ka_call *call;
  const kjit_csr *a, *result;
  const kjit_coo *coo;
  const kjit_operand *line; /* row indices of a COO matrix */
  int64_t shape[2];
  uint64_t count; /* number of entries that fit into the arrays */
  bool is_wide;
  kjit_type index; /* type of entry counts: i32 or i64 */
  kjit_array *keys, *unique, *places, *rows, *number;
} conversion;

static void count_entries(conversion *c, uint64_t more)
{
  c->is_wide = c->call->is_wide || c->count + more >= (uint64_t)INT32_MAX - (1 << 20);
  c->index = c->is_wide ? KJIT_I64 : KJIT_I32;
}

static void begin(ka_call *call, const conversion *c, ka_kernel *kernel)
{
  call->is_wide = c->is_wide;
  ka_begin_kernel(call, "sparse", kernel);
}

/* ---- a check ---- */

static void build_check_step(ka_call *call, const void *data)
{
  const conversion *c = data;
  ka_kernel kernel;
  begin(call, c, &kernel);
  const char *offset = ka_use_line(&kernel, "offsets", c->a->offsets, false),
             *column = ka_use_line(&kernel, "columns", c->a->columns, false),
             *found = ka_use_kept(&kernel, c->number), *n = ka_use_count(&kernel, c->count),
             *s = ka_use_count(&kernel, (uint64_t)c->shape[0]),
             *columns = ka_use_long(&kernel, c->shape[1]);
  ka_launch(&kernel, 0, 0, "sparse_check(%s, %s, %s, %s, %s, %s)", offset, column, found, n, s,
            columns);
}

typedef struct check_given {
  const kjit_csr *a;
  uint32_t flags;
} check_given;

static void build_check(ka_call *call, const void *data)
{
  const check_given *given = data;
  conversion c = { .call = call, .a = given->a };
  ka_csr csr;
  uint64_t found[4];
  if (given->flags & ~(uint32_t)(KJIT_CSR_SORTED | KJIT_CSR_UNIQUE))
    ka_fail(call, KJIT_ERROR_MISUSE,
            "flags: 0x%x contains bits that this version of kjit does not know", given->flags);
  ka_read_csr(call, given->a, &csr);
  if (call->options.results)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("results") " is not an option of this algorithm, which has no results");
  if (call->options.plan)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("plan") " is not supported, because the call waits for the device");
  ka_begin_calls(call);
  c.shape[0] = given->a->shape[0];
  c.shape[1] = given->a->shape[1];
  c.count = csr.count;
  count_entries(&c, csr.rows);
  c.number = ka_new_array(call, KJIT_U64, 4);
  for (size_t i = 0; i < 4; i++) found[i] = UINT64_MAX;
  ka_try(call, kjit_copy_from_host(c.number, found, sizeof found, call->options.stream));
  ka_call_inner(call, build_check_step, &c);
  ka_try(call, kjit_copy_to_host(c.number, found, sizeof found, call->options.stream));
  bool is_unique = given->flags & KJIT_CSR_UNIQUE,
       is_sorted = is_unique || given->flags & KJIT_CSR_SORTED;
  if (found[0] != UINT64_MAX)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`offsets` decreases or is out of bounds of `data` at row %llu",
            (unsigned long long)found[0]);
  if (found[1] != UINT64_MAX)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`columns` is out of bounds of the matrix with %lld columns at entry %llu",
            (long long)c.shape[1], (unsigned long long)found[1]);
  if (is_sorted && found[2] != UINT64_MAX)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`columns` does not ascend within a row, at entry %llu",
            (unsigned long long)found[2]);
  if (is_unique && found[3] != UINT64_MAX)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`columns` contains a column twice in the same row, at entry %llu",
            (unsigned long long)found[3]);
}

kjit_status kjit_csr_check(kjit_context *context, const kjit_csr *a, uint32_t flags,
                           const kjit_algorithm_options *options)
{
  const check_given given = { a, flags };
  return ka_perform(context, "kjit_csr_check", 0, options, build_check, &given);
}

/* ---- from COO ---- */

static void build_keys(ka_call *call, const void *data)
{
  const conversion *c = data;
  ka_kernel kernel;
  begin(call, c, &kernel);
  const char *row = ka_use_line(&kernel, "rows", c->coo->rows, false),
             *column = ka_use_line(&kernel, "columns", c->coo->columns, false),
             *keys = ka_use_kept(&kernel, c->keys), *n = ka_use_count(&kernel, c->count),
             *rows = ka_use_long(&kernel, c->shape[0]),
             *columns = ka_use_long(&kernel, c->shape[1]);
  ka_launch(&kernel, 0, 0, "sparse_keys(%s, %s, %s, %s, %s, %s)", row, column, keys, n, rows,
            columns);
}

static void build_from_keys(ka_call *call, const void *data)
{
  const conversion *c = data;
  ka_kernel kernel;
  begin(call, c, &kernel);
  const char *keys = ka_use_kept(&kernel, c->unique), *count = ka_use_kept(&kernel, c->number),
             *column = ka_use_line(&kernel, "result_columns", c->result->columns, true),
             *offset = ka_use_line(&kernel, "result_offsets", c->result->offsets, true),
             *n = ka_use_count(&kernel, c->count),
             *s = ka_use_count(&kernel, (uint64_t)c->shape[0]),
             *columns = ka_use_long(&kernel, ka_most((uint64_t)c->shape[1], 1));
  ka_launch(&kernel, 0, 0, "sparse_from_keys(%s, %s, %s, %s, %s, %s, %s)", keys, count, column,
            offset, n, s, columns);
}

static uint32_t count_bits(uint64_t most)
{
  uint32_t bits = 1;
  while (bits < 64 && most >> bits) bits++;
  return bits;
}

/* Sorts the keys together with `values`. most: the largest possible key. The sort compares only the
 * bits that this key needs. */
static void sort_keys(conversion *c, const kjit_operand *values, uint64_t most)
{
  kjit_algorithm_options options = ka_inner_options(c->call);
  kjit_operand keys = kjit_operand_array(c->keys), sorted = kjit_operand_array(c->places);
  options.end_bit = count_bits(most);
  ka_try(c->call, kjit_sort_pairs(c->call->context, &keys, &sorted, &keys, values, NULL, &options));
}

/* Replaces entries with equal row and column by their sum. */
static void add_equal(conversion *c, kjit_type element)
{
  const kjit_operator operator_ = kjit_operator_named(element == KJIT_BOOL ? "or" : "add");
  kjit_operand unique = kjit_operand_array(c->unique), number = kjit_operand_array(c->number),
               keys = kjit_operand_array(c->keys), sorted = kjit_operand_array(c->places);
  ka_fill_array(c->call, c->number, 0);
  if (!c->count) return;
  kjit_algorithm_options options = ka_inner_options(c->call);
  ka_try(c->call, kjit_reduce_by_key(c->call->context, &unique, c->result->data, &number, &keys,
                                     &sorted, &operator_, NULL, &options));
}

static void read_coo(conversion *c, ka_operand *data, ka_operand *rows, ka_operand *columns)
{
  ka_call *call = c->call;
  const kjit_coo *a = c->coo;
  if (!a) ka_fail(call, KJIT_ERROR_MISUSE, "the matrix is NULL");
  ka_check_extents(call, a->shape);
  ka_read_input(call, "data", a->data, data);
  ka_read_input(call, "rows", a->rows, rows);
  ka_read_input(call, "columns", a->columns, columns);
  ka_check_line(call, data);
  ka_check_indices(call, rows);
  ka_check_indices(call, columns);
  const ka_operand *indices[] = { rows, columns };
  for (size_t i = 0; i < 2; i++)
    if (indices[i]->count != data->count)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %llu elements, but `data` has %llu",
              indices[i]->name, (unsigned long long)indices[i]->count,
              (unsigned long long)data->count);
  c->shape[0] = a->shape[0];
  c->shape[1] = a->shape[1];
  c->count = data->count;
}

static void build_from_coo(ka_call *call, const void *given)
{
  conversion c = *(const conversion *)given;
  ka_operand data, rows, columns;
  const ka_operand *inputs[] = { &data, &rows, &columns };
  uint64_t places;
  c.call = call;
  read_coo(&c, &data, &rows, &columns);
  if (__builtin_mul_overflow((uint64_t)c.shape[0], (uint64_t)c.shape[1], &places))
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "the matrix has the shape (%lld, %lld), but rows times columns must be at most 2^64",
            (long long)c.shape[0], (long long)c.shape[1]);
  if (ka_describe_csr(call, data.element, c.count, columns.element, c.shape)) return;
  ka_check_csr_result(call, c.result, data.element, c.count, c.shape, inputs, 3);
  ka_begin_calls(call);
  count_entries(&c, (uint64_t)c.shape[0]);
  c.keys = ka_new_array(call, KJIT_U64, c.count);
  c.unique = ka_new_array(call, KJIT_U64, c.count);
  c.places = ka_new_array(call, data.element, c.count);
  c.number = ka_new_array(call, KJIT_I64, 1);
  if (c.count) {
    ka_call_inner(call, build_keys, &c);
    sort_keys(&c, c.coo->data, places ? places - 1 : 0);
  }
  add_equal(&c, data.element);
  ka_call_inner(call, build_from_keys, &c);
}

kjit_status kjit_csr_from_coo(kjit_context *context, const kjit_csr *result, const kjit_coo *a,
                              const kjit_algorithm_options *options)
{
  const conversion given = { .result = result, .coo = a };
  return ka_perform(context, "kjit_csr_from_coo", 0, options, build_from_coo, &given);
}

/* ---- to COO ---- */

static void read_csr(conversion *c, ka_csr *csr)
{
  ka_read_csr(c->call, c->a, csr);
  c->shape[0] = c->a->shape[0];
  c->shape[1] = c->a->shape[1];
  c->count = csr->count;
}

static void build_to_coo(ka_call *call, const void *given)
{
  conversion c = *(const conversion *)given;
  ka_csr csr;
  ka_operand rows;
  ka_kernel kernel;
  c.call = call;
  read_csr(&c, &csr);
  const int64_t extent = (int64_t)c.count;
  if (ka_describe(call, 0, csr.columns.element, 1, &extent)) return;
  ka_read_output(call, "rows", c.line, &rows);
  if (!rows.function) ka_check_indices(call, &rows);
  if (rows.count != c.count)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`rows` has %llu elements, but `data` has %llu",
            (unsigned long long)rows.count, (unsigned long long)c.count);
  ka_check_overlap(call, &rows, &csr.offsets, false);
  if (!c.count) return;
  count_entries(&c, csr.rows);
  begin(call, &c, &kernel);
  const char *offset = ka_use_line(&kernel, "offsets", c.a->offsets, false),
             *put = ka_use_line(&kernel, "rows", c.line, true), *n = ka_use_count(&kernel, c.count),
             *s = ka_use_count(&kernel, csr.rows);
  ka_launch(&kernel, 0, 0, "sparse_rows(%s, %s, %s, %s)", offset, put, n, s);
}

kjit_status kjit_csr_to_coo(kjit_context *context, const kjit_operand *rows, const kjit_csr *a,
                            const kjit_algorithm_options *options)
{
  const conversion given = { .a = a, .line = rows };
  return ka_perform(context, "kjit_csr_to_coo", 0, options, build_to_coo, &given);
}

/* ---- transposed ---- */

static void build_transposed_keys(ka_call *call, const void *data)
{
  const conversion *c = data;
  ka_kernel kernel;
  begin(call, c, &kernel);
  const char *offset = ka_use_line(&kernel, "offsets", c->a->offsets, false),
             *column = ka_use_line(&kernel, "columns", c->a->columns, false),
             *rows = ka_use_kept(&kernel, c->rows), *keys = ka_use_kept(&kernel, c->keys),
             *places = ka_use_kept(&kernel, c->places), *n = ka_use_count(&kernel, c->count),
             *s = ka_use_count(&kernel, (uint64_t)c->shape[0]),
             *columns = ka_use_long(&kernel, c->shape[1]);
  ka_launch(&kernel, 0, 0, "sparse_transposed_keys(%s, %s, %s, %s, %s, %s, %s, %s)", offset, column,
            rows, keys, places, n, s, columns);
}

static void build_transpose_step(ka_call *call, const void *data)
{
  const conversion *c = data;
  ka_kernel kernel;
  begin(call, c, &kernel);
  const char *entry = ka_use_line(&kernel, "data", c->a->data, false),
             *rows = ka_use_kept(&kernel, c->rows), *keys = ka_use_kept(&kernel, c->keys),
             *places = ka_use_kept(&kernel, c->places),
             *put = ka_use_line(&kernel, "result_data", c->result->data, true),
             *column = ka_use_line(&kernel, "result_columns", c->result->columns, true),
             *offset = ka_use_line(&kernel, "result_offsets", c->result->offsets, true),
             *n = ka_use_count(&kernel, c->count),
             *columns = ka_use_count(&kernel, (uint64_t)c->shape[1]);
  ka_launch(&kernel, 0, 0, "sparse_transpose(%s, %s, %s, %s, %s, %s, %s, %s, %s)", entry, rows,
            keys, places, put, column, offset, n, columns);
}

static void build_transpose(ka_call *call, const void *given)
{
  conversion c = *(const conversion *)given;
  ka_csr csr;
  c.call = call;
  read_csr(&c, &csr);
  const ka_operand *inputs[] = { &csr.data, &csr.columns, &csr.offsets };
  const int64_t shape[] = { c.shape[1], c.shape[0] };
  if (ka_describe_csr(call, csr.data.element, c.count, csr.columns.element, shape)) return;
  ka_check_csr_result(call, c.result, csr.data.element, c.count, shape, inputs, 3);
  ka_begin_calls(call);
  count_entries(&c, ka_most(csr.rows, (uint64_t)c.shape[1]));
  c.keys = ka_new_array(call, c.shape[1] > INT32_MAX ? KJIT_I64 : KJIT_I32, c.count);
  c.rows = ka_new_array(call, c.index, c.count);
  c.places = ka_new_array(call, c.index, c.count);
  if (c.count) {
    kjit_operand places = kjit_operand_array(c.places);
    ka_call_inner(call, build_transposed_keys, &c);
    sort_keys(&c, &places, (uint64_t)c.shape[1]);
  }
  ka_call_inner(call, build_transpose_step, &c);
}

kjit_status kjit_csr_transpose(kjit_context *context, const kjit_csr *result, const kjit_csr *a,
                               const kjit_algorithm_options *options)
{
  const conversion given = { .result = result, .a = a };
  return ka_perform(context, "kjit_csr_transpose", 0, options, build_transpose, &given);
}

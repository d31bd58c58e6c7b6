/* Implements kjit_spmv and kjit_spmm, products with a CSR matrix. A product with a vector is a
 * segmented sum of products (lib/library/segments.kir). A product with a matrix divides the merge
 * path over entries and row ends into equal parts, one for each block
 * (lib/library/sparse_product.kir). */
#include "algorithm/sparse.h"
#include "ir/context.h"

typedef struct product_given {
  const kjit_operand *result, *x;
  const kjit_csr *a;
  uint32_t rank; /* rank of x */
} product_given;

typedef struct product {
  ka_call *call;
  ka_csr a;
  ka_operand result, x;
  kjit_type accumulator;
} product;

/* ---- the matrix ---- */

void ka_check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; it must have one", operand->name,
            operand->rank);
}

void ka_check_indices(ka_call *call, const ka_operand *operand)
{
  ka_check_line(call, operand);
  if (operand->element != KJIT_I32 && operand->element != KJIT_I64)
    ka_fail(call, KJIT_ERROR_TYPE,
            "`%s` has elements of type %s: indices of a sparse matrix are i32 or i64",
            operand->name, ka_type_text(call, operand->element));
}

void ka_arrange_line(ka_call *call, ka_operand *operand)
{
  const uint32_t axis = 0;
  ka_arrange(call, operand, &axis, 1, &operand->rank);
}

void ka_check_extents(ka_call *call, const int64_t *shape)
{
  if (shape[0] < 0 || shape[1] < 0)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the matrix has the shape (%lld, %lld); both extents must be at least 0",
            (long long)shape[0], (long long)shape[1]);
}

void ka_read_csr(ka_call *call, const kjit_csr *given, ka_csr *csr)
{
  if (!given) ka_fail(call, KJIT_ERROR_MISUSE, "the matrix is NULL");
  ka_check_extents(call, given->shape);
  ka_read_input(call, "data", given->data, &csr->data);
  ka_read_input(call, "columns", given->columns, &csr->columns);
  ka_read_input(call, "offsets", given->offsets, &csr->offsets);
  ka_check_line(call, &csr->data);
  ka_check_indices(call, &csr->columns);
  ka_check_indices(call, &csr->offsets);
  csr->rows = (uint64_t)given->shape[0];
  csr->count = csr->data.count;
  if (csr->columns.count != csr->count)
    ka_fail(
      call, KJIT_ERROR_ARGUMENT,
      "`columns` has %llu elements, but `data` has %llu; both must have one element for each entry",
      (unsigned long long)csr->columns.count, (unsigned long long)csr->count);
  if (csr->offsets.count != csr->rows + 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`offsets` has %llu elements; a matrix with %llu rows needs %llu elements",
            (unsigned long long)csr->offsets.count, (unsigned long long)csr->rows,
            (unsigned long long)csr->rows + 1);
  call->is_wide = call->is_wide || csr->count + csr->rows >= (uint64_t)INT32_MAX - (1 << 20);
}

void ka_arrange_csr(ka_call *call, ka_csr *csr)
{
  ka_arrange_line(call, &csr->data);
  ka_arrange_line(call, &csr->columns);
  ka_arrange_line(call, &csr->offsets);
}

/* ---- products with a vector ---- */

static const char *use_terms(ka_kernel *kernel, const void *data)
{
  const product *p = data;
  const char *entry = ka_use_input(kernel, &p->a.data, p->accumulator),
             *column = ka_use_input(kernel, &p->a.columns, KJIT_ANY),
             *x = ka_use_input(kernel, &p->x, p->accumulator);
  kj_append_text(kernel->funcs,
                 "func sparse_term(k, entry: func, column: func, x: func) @inline {\n"
                 "  return entry(k) * x(column(k))\n}\n");
  return kj_format(&kernel->call->arena, "bind_back(sparse_term, %s, %s, %s)", entry, column, x);
}

static void add_vector(product *p)
{
  const ka_elements elements = { use_terms, p };
  ka_add_segment_sums(p->call, &p->result, &p->a.offsets, p->a.count, p->accumulator, &elements);
}

/* ---- products with a matrix ---- */

enum {
  GPU_CHUNK = 256,   /* number of merge path steps for a team of threads */
  GPU_THREADS = 128, /* threads in a block */
  GPU_COLUMNS = 4,   /* maximum number of columns that a lane processes */
  CPU_PIECES = 4,    /* number of chunks for each core */
  CPU_LEAST = 4096,  /* minimum number of steps in a chunk */
  CPU_FEW = 8,       /* maximum number of columns whose sums a thread keeps in registers; the loops
                      * over more columns are vectorized */
  CPU_COLUMNS = 64
};

/* Division of the columns among threads: each of `lanes` threads processes `each` columns. */
typedef struct tile {
  uint32_t lanes, each, rest;
  uint64_t chunk, chunks, tiles;
} tile;

static tile choose_tile(const product *p, uint64_t columns)
{
  uint64_t steps = p->a.count + p->a.rows;
  tile t = { 1, 1, 0, GPU_CHUNK, 0, 0 };
  if (ka_is_cpu(p->call)) {
    uint64_t pieces = (uint64_t)CPU_PIECES * ka_core_count(p->call);
    while (t.each < CPU_FEW && 2 * t.each <= columns) t.each *= 2;
    if (columns >= 2 * CPU_FEW) t.each = CPU_COLUMNS;
    t.rest = (uint32_t)(columns % t.each);
    t.chunk = ka_most(ka_divide_up(steps, pieces), CPU_LEAST);
  } else {
    while (t.lanes < KJ_WARP_THREADS && t.lanes < columns) t.lanes *= 2;
    while (t.each < GPU_COLUMNS && KJ_WARP_THREADS * t.each < columns) t.each *= 2;
  }
  t.chunks = ka_divide_up(steps, t.chunk);
  t.tiles = ka_divide_up(columns, (uint64_t)t.lanes * t.each);
  return t;
}

/* Adds a launch for the parts of the merge path, and a launch for rows that span several parts. */
static void add_matrix(product *p)
{
  ka_call *call = p->call;
  uint64_t columns = (uint64_t)p->x.shape[1];
  tile t = choose_tile(p, columns);
  uint32_t heads = ka_add_work(call, p->accumulator, t.chunks * columns, false),
           tails = ka_add_work(call, p->accumulator, t.chunks * columns, false),
           threads = ka_is_cpu(call) ? 1 : GPU_THREADS;
  for (int is_last = 0; is_last < 2; is_last++) {
    ka_kernel kernel;
    ka_begin_kernel(call, "sparse_product", &kernel);
    const char *offset = ka_use_input(&kernel, &p->a.offsets, KJIT_ANY),
               *store = ka_use_output(&kernel, &p->result), *n = ka_use_count(&kernel, p->a.count),
               *s = ka_use_count(&kernel, p->a.rows), *chunk = ka_use_count(&kernel, t.chunk),
               *chunks = ka_use_count(&kernel, t.chunks), *extent = ka_use_count(&kernel, columns),
               *head = ka_use_work(&kernel, heads), *tail = ka_use_work(&kernel, tails);
    if (is_last) {
      ka_launch(&kernel, 0, 0, "sparse_product_join(%s, %s, %s, %s, %s, %s, %s, %s, %s)", store,
                offset, n, s, chunk, chunks, extent, head, tail);
      return;
    }
    const char *term = ka_use_input(&kernel, &p->a.data, p->accumulator),
               *column = ka_use_input(&kernel, &p->a.columns, KJIT_ANY),
               *x = ka_use_input(&kernel, &p->x, p->accumulator);
    ka_launch(&kernel, threads, ka_divide_up(t.chunks, threads / t.lanes) * t.tiles,
              "sparse_product_parts(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %u, "
              "%u, %u)",
              term, column, x, store, offset, n, s, chunk, chunks, extent, head, tail, t.lanes,
              t.each, t.rest);
  }
}

/* ---- the call ---- */

static void check_types(const product *p)
{
  ka_call *call = p->call;
  kjit_type type = p->a.data.element;
  if (!ki_is_scalar(type) || type == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`data` has elements of type %s, but a product needs numbers",
            ka_type_text(call, type));
  if (p->x.element != type)
    ka_fail(call, KJIT_ERROR_TYPE,
            "`x` has elements of type %s, but `data` has type %s; the operands of a product must "
            "have the same type",
            ka_type_text(call, p->x.element), ka_type_text(call, type));
}

static void read_x(product *p, const product_given *given)
{
  ka_call *call = p->call;
  ka_read_input(call, "x", given->x, &p->x);
  if (p->x.rank != given->rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has %u ax%s: %s", p->x.rank,
            p->x.rank == 1 ? "is" : "es",
            given->rank == 1 ? "kjit_spmm needs a matrix, which has two"
                             : "kjit_spmv needs a vector, which has one");
  if (p->x.shape[0] != given->a->shape[1])
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has %lld rows, but the matrix has %lld columns",
            (long long)p->x.shape[0], (long long)given->a->shape[1]);
}

static void read_result(product *p, const product_given *given, const int64_t *shape)
{
  ka_call *call = p->call;
  ka_operand *result = &p->result;
  const ka_operand *inputs[] = { &p->a.data, &p->a.columns, &p->a.offsets, &p->x };
  const kjit_operator add = kjit_operator_named("add");
  ka_operator operator_;
  ka_read_output(call, "result", given->result, result);
  bool is_same = result->rank == given->rank;
  for (uint32_t i = 0; is_same && i < given->rank; i++) is_same = result->shape[i] == shape[i];
  if (!is_same)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` must have the shape (%lld%s)", (long long)shape[0],
            given->rank == 1 ? "" : kj_format(&call->arena, ", %lld", (long long)shape[1]));
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    ka_check_overlap(call, result, inputs[i], false);
  ka_read_operator(call, &add, &operator_);
  p->accumulator =
    ka_accumulator(call, &operator_, p->x.element, result->function ? KJIT_ANY : result->element);
  if (!result->function && !ka_converts(call, p->accumulator, result->element))
    ka_fail(call, KJIT_ERROR_TYPE,
            "`result` has elements of type %s, but the sums have the type %s",
            ka_type_text(call, result->element), ka_type_text(call, p->accumulator));
}

static void build_product(ka_call *call, const void *data)
{
  static const uint32_t axes[] = { 0, 1 }, one_each[] = { 1, 1 };
  const product_given *given = data;
  product *p = KJ_NEW(&call->arena, product);
  *p = (product){ .call = call };
  ka_read_csr(call, given->a, &p->a);
  read_x(p, given);
  check_types(p);
  const int64_t shape[] = { given->a->shape[0], p->x.rank == 2 ? p->x.shape[1] : 1 };
  if (ka_describe(call, 0, p->x.element, given->rank, shape)) return;
  read_result(p, given, shape);
  ka_choose_device(call);
  if (!p->result.count) return;
  ka_arrange_csr(call, &p->a);
  ka_arrange(call, &p->x, axes, given->rank, one_each);
  ka_arrange(call, &p->result, axes, given->rank, one_each);
  if (given->rank == 1) add_vector(p);
  else add_matrix(p);
}

static kjit_status multiply(kjit_context *context, const char *name, const product_given *given,
                            const kjit_algorithm_options *options)
{
  const kjit_csr *a = given->a;
  if (!a) return ka_perform(context, name, KA_ACCUMULATOR, options, build_product, given);
  const ka_inputs inputs = { { given->result, a->data, a->columns, a->offsets, given->x },
                             .numbers = { (uint64_t)a->shape[0], (uint64_t)a->shape[1] } };
  return ka_perform_kept(context, name, KA_ACCUMULATOR, options, build_product, given, &inputs);
}

kjit_status kjit_spmv(kjit_context *context, const kjit_operand *result, const kjit_csr *a,
                      const kjit_operand *x, const kjit_algorithm_options *options)
{
  const product_given given = { result, x, a, 1 };
  return multiply(context, "kjit_spmv", &given, options);
}

kjit_status kjit_spmm(kjit_context *context, const kjit_operand *result, const kjit_csr *a,
                      const kjit_operand *x, const kjit_algorithm_options *options)
{
  const product_given given = { result, x, a, 2 };
  return multiply(context, "kjit_spmm", &given, options);
}

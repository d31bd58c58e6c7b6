/* Implements kjit_update_at, which is like NumPy's ufunc.at. The kernel is in update.kir of
 * lib/library. A GPU needs one launch with atomic operations; on the CPU each block updates a part
 * of the rows of x, or a copy of a small x. */
#include <string.h>

#include "algorithm/algorithm.h"
#include "ir/arithmetic.h"
#include "ir/context.h"

typedef struct update_given {
  const kjit_operand *x, *places, *values;
  const kjit_operator *operator_;
} update_given;

typedef struct update {
  ka_call *call;
  ka_operand x, places, values;
  ka_operator operator_;
  const char *atomic;  /* func of lib/library that performs the operator by an atomic operation, if
                          the device supports it; NULL means compare-and-swap */
  int64_t length, row; /* number of rows in x, number of elements in a row */
  uint64_t n;          /* number of values */
} update;

/* ---- the shape of a launch ---- */

enum {
  GPU_THREADS = 256,
  GPU_ITEMS = 4,  /* values that a thread processes at a time */
  GPU_BLOCKS = 8, /* blocks for each multiprocessor */
  /* maximum number of elements for which many threads are expected to update the same element at a
   * time */
  FEW = 4096,
  CPU_LEAST = 32768 /* minimum number of values in a chunk */
};

/* Operators for which op(op(x, a), op(x, b)) is op(x, op(a, b)), in any order of the values. */
static const char *const repeatable[] = { "min", "max", "fmin", "fmax", "and", "or" };

/* ---- atomics ---- */

/* Flags that describe which atomics a GPU supports for an element type. */
enum { WORDS = 1, REALS = 2, HALVES = 4, COMPLEX = 8 };
static const struct {
  const char *name, *atomic;
  uint32_t of;
} atomics[] = {
  { "add", "update_add", WORDS | REALS | HALVES },
  { "add", "update_add_parts", COMPLEX },
  { "min", "update_min", WORDS },
  { "max", "update_max", WORDS },
  { "fmin", "update_min", WORDS | REALS },
  { "fmax", "update_max", WORDS | REALS },
  { "and", "update_and", WORDS },
  { "or", "update_or", WORDS },
  { "xor", "update_xor", WORDS },
};

static uint32_t kind_of(kjit_type type)
{
  switch (type) {
  case KJIT_I32:
  case KJIT_U32:
  case KJIT_I64:
  case KJIT_U64: return WORDS;
  case KJIT_F32:
  case KJIT_F64: return REALS;
  case KJIT_F16:
  case KJIT_BF16: return HALVES;
  case KJIT_C64:
  case KJIT_C128: return COMPLEX;
  default: return 0;
  }
}

/* Checks that the distances between elements are multiples of the element size, because
 * compare-and-swap needs aligned elements. */
static void check_swap(const update *u)
{
  uint32_t bytes = kj_element_bytes(u->call->context->types, u->x.element);
  if (bytes > 16 || bytes & (bytes - 1))
    ka_fail(u->call, KJIT_ERROR_UNSUPPORTED,
            "`x` has elements of %u bytes; atomic updates on a GPU support 1, 2, 4, 8 or 16 bytes",
            bytes);
  if (u->x.view.address % bytes)
    ka_fail(u->call, KJIT_ERROR_ARGUMENT, "`x` must be aligned to its element size, %u bytes",
            bytes);
}

static void choose_atomic(update *u)
{
  const char *name = u->operator_.name;
  if (ka_is_cpu(u->call)) return;
  for (size_t i = 0; name && i < sizeof atomics / sizeof *atomics; i++)
    if (!strcmp(name, atomics[i].name) && atomics[i].of & kind_of(u->x.element))
      u->atomic = atomics[i].atomic;
  if (!u->atomic) check_swap(u);
}

/* ---- the kernel ---- */

static const char *use_values(ka_kernel *kernel, const update *u)
{
  kj_arena *arena = &u->call->arena;
  kjit_type element = u->x.element;
  if (!u->values.is_value)
    return ka_use_input(kernel, &u->values, ki_is_scalar(element) ? element : KJIT_ANY);
  const char *value = ka_use_value(kernel, &u->values.arrays[0]);
  return kj_format(arena, "bind_back(update_value, %s(%s))",
                   ki_is_scalar(element) ? ki_type(u->call->context->types, element)->name : "",
                   value);
}

/* Adds a launch in which either each block owns a part of the rows of x, or threads of any block
 * update any row. */
static void add_step(const update *u, uint32_t threads, uint64_t blocks)
{
  bool is_cpu = ka_is_cpu(u->call), is_few = u->x.count <= FEW;
  ka_kernel kernel;
  ka_begin_kernel(u->call, "update", &kernel);
  const char *op = ka_use_operator(&kernel, &u->operator_, u->x.element),
             *change = is_cpu      ? "update_plain"
                       : u->atomic ? u->atomic
                                   : "update_swap",
             *places = ka_use_input(&kernel, &u->places, KJIT_ANY),
             *values = use_values(&kernel, u),
             *x = ka_use_changed(&kernel, &u->x, change, u->atomic ? "" : op),
             *n = ka_use_count(&kernel, u->n), *row = ka_use_count(&kernel, (uint64_t)u->row),
             *length = ka_use_count(&kernel, (uint64_t)u->length);
  ka_launch(&kernel, threads, ka_most(blocks, 1),
            "update_all(%s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %d)", places, values, x, op, n,
            row, length, u->row != 1 ? "true" : "false", is_few || !u->atomic ? "true" : "false",
            GPU_ITEMS);
}

/* Returns whether each block on the CPU can update its own copy of x: x is small, and the operator
 * allows that the copies are combined later. */
static bool takes_copies(const update *u, uint64_t blocks)
{
  const char *name = u->operator_.name;
  if (blocks < 2 || u->row != 1 || u->x.count > FEW || !ki_is_scalar(u->x.element)) return false;
  for (size_t i = 0; name && i < sizeof repeatable / sizeof *repeatable; i++)
    if (!strcmp(name, repeatable[i])) return true;
  return false;
}

/* Adds a launch in which each block updates its own copy of x with a part of the values, and a
 * launch that combines the copies in x. */
static void add_copies(const update *u, uint64_t blocks)
{
  ka_call *call = u->call;
  ka_kernel kernel, join;
  ka_operand *before = KJ_NEW(&call->arena, ka_operand);
  *before = u->x;
  before->is_output = false;
  uint32_t work = ka_add_work(call, u->x.element, blocks * u->x.count, false),
           outside = ka_add_work(call, KJIT_U32, blocks, false);
  ka_begin_kernel(call, "update", &kernel);
  const char *op = ka_use_operator(&kernel, &u->operator_, u->x.element),
             *places = ka_use_input(&kernel, &u->places, KJIT_ANY),
             *values = use_values(&kernel, u), *load = ka_use_input(&kernel, before, KJIT_ANY),
             *n = ka_use_count(&kernel, u->n), *length = ka_use_count(&kernel, (uint64_t)u->length),
             *copies = ka_use_work(&kernel, work), *flags = ka_use_work(&kernel, outside);
  ka_launch(&kernel, 1, blocks, "update_copy(%s, %s, %s, %s, %s, %s, %s, %s)", places, values, load,
            op, n, length, copies, flags);
  ka_begin_kernel(call, "update", &join);
  op = ka_use_operator(&join, &u->operator_, u->x.element);
  const char *x = ka_use_changed(&join, &u->x, "update_plain", op);
  length = ka_use_count(&join, (uint64_t)u->length);
  copies = ka_use_work(&join, work);
  flags = ka_use_work(&join, outside);
  ka_launch(&join, 1, 1, "update_join(%s, %s, %s, %s, %s)", x, length, ka_use_count(&join, blocks),
            copies, flags);
}

static void add_steps(const update *u)
{
  ka_call *call = u->call;
  uint64_t cores = ka_core_count(call);
  if (ka_is_cpu(call)) {
    uint64_t blocks = ka_least(u->n / CPU_LEAST, cores);
    if (takes_copies(u, blocks)) add_copies(u, blocks);
    else add_step(u, 1, ka_least(blocks, (uint64_t)u->length));
    return;
  }
  uint64_t blocks = ka_divide_up(u->n, (uint64_t)GPU_THREADS * GPU_ITEMS);
  add_step(u, GPU_THREADS, ka_least(blocks, GPU_BLOCKS * cores));
}

/* ---- the call ---- */

static void read_operands(update *u, const update_given *given)
{
  ka_call *call = u->call;
  ka_read_output(call, "x", given->x, &u->x);
  if (u->x.function)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`x` is a function, but must be an array, because the call reads and writes it");
  if (!u->x.rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`x` has no axes, but `places` are indices into the first axis");
  ka_read_input(call, "places", given->places, &u->places);
  kjit_type type = u->places.element;
  if (!ka_is_integer(call, type) || type == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`places` has elements of type %s; expected integers",
            ka_type_text(call, type));
  ka_read_argument(call, "values", given->values, &u->values);
  ka_read_operator(call, given->operator_, &u->operator_);
  if (!u->operator_.commutes)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the operator must be commutative and marked so (`@commutes`, or `commutes` of the "
            "call), because values are combined in any order");
  (void)ka_accumulator(call, &u->operator_, u->x.element, u->x.element);
}

/* Gives an untyped number the element type. */
static void settle_value(update *u)
{
  ka_call *call = u->call;
  kjit_type type = u->x.element;
  kjit_arg *value = &u->values.arrays[0];
  if (!u->values.is_value) return;
  if (value->kind != KJIT_ARG_NUMBER) {
    ka_check_value(call, "values", value);
    return;
  }
  ki_value number = kj_argument_number(value), converted;
  if (!ki_is_scalar(type) || !ki_fit_argument(number, type, &converted))
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`values` is %s, which cannot be represented as %s, the type of `x`",
            ka_number_text(call, number), ka_type_text(call, type));
  u->values.element = type;
  *value = kjit_make_arg(KJIT_ARG_VALUE, type);
  ki_encode_value(converted, &value->value.u);
}

static void check_values(const update *u)
{
  kjit_type from = u->values.element, to = u->x.element;
  if (from == to) return;
  if (!ki_is_scalar(from) || !ki_is_scalar(to) || !ka_converts(u->call, from, to))
    ka_fail(u->call, KJIT_ERROR_TYPE,
            "`values` has elements of type %s, but `x` has elements of type %s",
            ka_type_text(u->call, from), ka_type_text(u->call, to));
}

/* Broadcasts the values to the shape of the indices followed by the shape of a row of x. An axis
 * that is broadcast has a stride of 0. */
static void broadcast_values(update *u)
{
  ka_operand *values = &u->values;
  uint32_t rank = u->places.rank + u->x.rank - 1, own = values->rank;
  int64_t shape[2 * KJ_MAX_RANK], strides[KJ_MAX_RANK] = { 0 };
  if (values->is_value) return;
  if (rank > KJ_MAX_RANK)
    ka_fail(u->call, KJIT_ERROR_UNSUPPORTED,
            "`places` and a row of `x` have %u axes together; the maximum is %d", rank,
            KJ_MAX_RANK);
  memcpy(shape, u->places.shape, u->places.rank * sizeof *shape);
  memcpy(shape + u->places.rank, u->x.shape + 1, (u->x.rank - 1) * sizeof *shape);
  bool fits = own <= rank, is_same = own == rank;
  for (uint32_t i = 0; fits && i < own; i++) {
    int64_t extent = values->shape[i], wanted = shape[rank - own + i];
    is_same = is_same && extent == wanted;
    fits = extent == wanted || extent == 1;
    strides[rank - own + i] = extent == wanted ? values->view.strides[i] : 0;
  }
  if (!fits || (values->function && !is_same))
    ka_fail(u->call, KJIT_ERROR_ARGUMENT,
            "`values` must have the shape of `places` followed by the shape of a row of `x`%s",
            values->function ? "" : ", or to broadcast to it");
  if (is_same) return;
  values->rank = rank;
  values->count = u->n;
  memcpy(values->shape, shape, rank * sizeof *shape);
  memcpy(values->view.strides, strides, sizeof strides);
}

static void build_update(ka_call *call, const void *data)
{
  uint32_t axes[KJ_MAX_RANK];
  update *u = KJ_NEW(&call->arena, update);
  *u = (update){ .call = call };
  read_operands(u, data);
  settle_value(u);
  check_values(u);
  if (ka_describe(call, 0, u->x.element, u->x.rank, u->x.shape)) return;
  u->length = u->x.shape[0];
  u->row = 1;
  for (uint32_t i = 1; i < u->x.rank; i++) u->row *= u->x.shape[i];
  if (__builtin_mul_overflow(u->places.count, (uint64_t)u->row, &u->n) || u->n > INT64_MAX / 2)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the product of the numbers of elements in `places` and in a row of `x` is too large");
  call->is_wide = call->is_wide || u->n >= (uint64_t)INT32_MAX - (1 << 20);
  broadcast_values(u);
  ka_check_overlap(call, &u->x, &u->places, false);
  if (!u->values.is_value) ka_check_overlap(call, &u->x, &u->values, false);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, &u->x, axes, 2, (const uint32_t[]){ 1, u->x.rank - 1 });
  ka_arrange(call, &u->places, axes, 1, &u->places.rank);
  if (!u->values.is_value) ka_arrange(call, &u->values, axes, 1, &u->values.rank);
  ka_choose_device(call);
  choose_atomic(u);
  if (u->n) add_steps(u);
}

kjit_status kjit_update_at(kjit_context *context, const kjit_operand *x, const kjit_operand *places,
                           const kjit_operand *values, const kjit_operator *operator_,
                           const kjit_algorithm_options *options)
{
  const update_given given = { x, places, values, operator_ };
  const ka_inputs inputs = { { x, places, values }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_update_at", 0, options, build_update, &given, &inputs);
}

/* Implements kjit_random_permutation and kjit_random_shuffle, whose kernels are in permutation.kir
 * of lib/library. The kernels sort the indices by random keys and then put indices with equal keys
 * into a random order, so that all permutations are equally likely for any number of elements. Keys
 * have 32 bits, but the sort compares only as many upper bits as are needed to keep runs of equal
 * keys short, because each pass of the sort handles 8 bits. */
#include "algorithm/sort.h"
#include "ir/context.h"

enum {
  KEY_BITS = 32,
  DIGIT_BITS = 8,
  /* number of key bits in addition to the bits that number the elements: with 8 possible keys for
   * each element, few keys are equal */
  SPARE_BITS = 3,
  FEW = 8192, /* maximum number of elements for which the keys are sorted into a separate buffer */
  /* minimum number of elements for which a sort counts in 64 bits, as in sort.c */
  WIDE_COUNT = 1 << 30,
  CPU_TOGETHER = 16 /* number of Philox blocks that are computed together, so that the compiler uses
                     * vectors */
};

typedef struct permuting {
  const kjit_operand *result, *x; /* if x is NULL, the indices 0 to n - 1 are permuted */
  uint64_t seed;
} permuting;

typedef struct permutation {
  ka_call *call;
  uint64_t count, seed;
  uint32_t keys, sorted, places; /* indices into ka_call.works */
  uint32_t drop;                 /* number of low bits that the sort ignores */
} permutation;

static uint32_t count_key_bits(uint64_t n)
{
  uint32_t bits = SPARE_BITS;
  while (bits < KEY_BITS && (n - 1) >> (bits - SPARE_BITS)) bits++;
  return (uint32_t)ka_least(ka_divide_up(bits, DIGIT_BITS) * DIGIT_BITS, KEY_BITS);
}

/* Returns an operand with one axis for a block of temporary storage. */
static ka_operand line_of_work(const permutation *p, uint32_t work, kjit_type element)
{
  ka_operand line = { .name = "line",
                      .element = element,
                      .rank = 1,
                      .shape = { (int64_t)p->count },
                      .count = p->count,
                      .axis_count = 1,
                      .extents = { (int64_t)p->count },
                      .group_count = 1,
                      .group_ranks = { 1 },
                      .arrays = KJ_NEW(&p->call->arena, kjit_arg),
                      .array_count = 1 };
  line.arrays[0] = (kjit_arg){ .value.u = work };
  return line;
}

static void draw_keys(const permutation *p)
{
  ka_kernel kernel;
  const kjit_arg of_seed = kjit_arg_u64(p->seed);
  ka_begin_kernel(p->call, "permutation", &kernel);
  const char *keys = ka_use_work(&kernel, p->keys), *seed = ka_use_value(&kernel, &of_seed),
             *n = ka_use_count(&kernel, p->count);
  ka_launch(&kernel, 0, 0,
            "random_fill(permutation_keys, bind_back(permutation_put, %s), %s, 0u64, %s, 4, %u, 0)",
            keys, seed, n, ka_is_cpu(p->call) ? CPU_TOGETHER : 1);
}

static void sort_places(const permutation *p)
{
  kjit_type place = p->call->is_wide ? KJIT_I64 : KJIT_I32;
  ka_sort s = { .call = p->call,
                .x = line_of_work(p, p->keys, KJIT_U32),
                .result = line_of_work(p, p->sorted, KJIT_U32),
                .result_values = line_of_work(p, p->places, place),
                .has_result = true,
                .has_values = true,
                .are_places = true,
                .is_in_place = p->sorted == p->keys,
                .begin = p->drop,
                .end = KEY_BITS,
                .value_element = place,
                .value_bytes = p->call->is_wide ? 8 : 4,
                .row = p->count,
                .rows = 1 };
  ka_sort_steps(&s);
}

/* Orders equal keys randomly and writes the indices to the result, or back to temporary storage if
 * result is NULL. */
static void finish_places(const permutation *p, const ka_operand *result)
{
  ka_kernel kernel;
  const kjit_arg of_seed = kjit_arg_u64(p->seed);
  ka_begin_kernel(p->call, "permutation", &kernel);
  const char *keys = ka_use_work(&kernel, p->sorted), *places = ka_use_work(&kernel, p->places),
             *put = result ? ka_use_output(&kernel, result)
                           : kj_format(&p->call->arena, "bind_back(permutation_put, %s)", places),
             *n = ka_use_count(&kernel, p->count), *seed = ka_use_value(&kernel, &of_seed),
             *drop = ka_use_constant(&kernel, p->drop);
  ka_launch(&kernel, 0, 0, "permutation_finish(%s, %s, %s, %s, %s, %s)", put, keys, places, n, seed,
            drop);
}

static void gather_rows(const permutation *p, const ka_operand *result, const ka_operand *x)
{
  ka_kernel kernel;
  ka_begin_kernel(p->call, "permutation", &kernel);
  const char *load = ka_use_input(&kernel, x, KJIT_ANY), *put = ka_use_output(&kernel, result),
             *places = ka_use_work(&kernel, p->places), *rows = ka_use_count(&kernel, p->count),
             *width = ka_use_count(&kernel, x->count / p->count);
  ka_launch(&kernel, 0, 0, "permutation_rows(%s, %s, %s, %s, %s)", load, put, places, rows, width);
}

static void add_steps(ka_call *call, uint64_t count, uint64_t seed, const ka_operand *result,
                      const ka_operand *x)
{
  if (count >= WIDE_COUNT) call->is_wide = true;
  permutation p = { .call = call, .count = count, .seed = seed };
  p.drop = KEY_BITS - count_key_bits(count);
  p.keys = p.sorted = ka_add_work(call, KJIT_U32, count, false);
  if (count <= FEW) p.sorted = ka_add_work(call, KJIT_U32, count, false);
  p.places = ka_add_work(call, call->is_wide ? KJIT_I64 : KJIT_I32, count, false);
  draw_keys(&p);
  sort_places(&p);
  finish_places(&p, x ? NULL : result);
  if (x) gather_rows(&p, result, x);
}

/* ---- the calls ---- */

static void check_places(ka_call *call, const ka_operand *x)
{
  if (x->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has %u axes; a permutation needs one", x->rank);
  if (x->function) return;
  ki_type_class class_ = ki_type(call->context->types, x->element)->class_;
  if (class_ != KJ_CLASS_SIGNED && class_ != KJ_CLASS_UNSIGNED)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, but positions are integers",
            ka_type_text(call, x->element));
  ka_check_positions(call, x, x->count);
}

static void build_permutation(ka_call *call, const void *data)
{
  const permuting *given = data;
  const uint32_t axes[] = { 0 };
  ka_operand *x = KJ_NEW(&call->arena, ka_operand);
  ka_read_output(call, "x", given->result, x);
  check_places(call, x);
  if (ka_describe(call, 0, x->function ? KJIT_I64 : x->element, 1, x->shape)) return;
  ka_arrange(call, x, axes, 1, &x->rank);
  ka_choose_device(call);
  if (x->count) add_steps(call, x->count, given->seed, x, NULL);
}

static void check_shuffled(ka_call *call, const ka_operand *result, const ka_operand *x)
{
  bool is_same = result->rank == x->rank;
  for (uint32_t i = 0; is_same && i < x->rank; i++) is_same = result->shape[i] == x->shape[i];
  if (!is_same) ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` must have the shape of `x`");
  if (!result->function && result->element != x->element)
    ka_fail(call, KJIT_ERROR_TYPE, "`result` has elements of type %s: expected %s",
            ka_type_text(call, result->element), ka_type_text(call, x->element));
  ka_check_overlap(call, result, x, false);
}

static void build_shuffle(ka_call *call, const void *data)
{
  const permuting *given = data;
  ka_operand *x = KJ_NEW(&call->arena, ka_operand), *result = KJ_NEW(&call->arena, ka_operand);
  uint32_t axes[KJ_MAX_RANK];
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_read_input(call, "x", given->x, x);
  if (!x->rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has no axis along which it could be shuffled");
  if (ka_describe(call, 0, x->element, x->rank, x->shape)) return;
  ka_read_output(call, "result", given->result, result);
  check_shuffled(call, result, x);
  const uint32_t ranks[] = { 1, x->rank - 1 };
  ka_arrange(call, x, axes, 2, ranks);
  ka_arrange(call, result, axes, 2, ranks);
  ka_choose_device(call);
  if (x->count) add_steps(call, (uint64_t)x->shape[0], given->seed, result, x);
}

kjit_status kjit_random_permutation(kjit_context *context, const kjit_operand *x, uint64_t seed,
                                    const kjit_algorithm_options *options)
{
  const permuting given = { x, NULL, seed };
  const ka_inputs inputs = { { x }, .numbers = { seed } };
  return ka_perform_kept(context, "kjit_random_permutation", 0, options, build_permutation, &given,
                         &inputs);
}

kjit_status kjit_random_shuffle(kjit_context *context, const kjit_operand *result,
                                const kjit_operand *x, uint64_t seed,
                                const kjit_algorithm_options *options)
{
  const permuting given = { result, x, seed };
  const ka_inputs inputs = { { result, x }, .numbers = { seed } };
  return ka_perform_kept(context, "kjit_random_shuffle", 0, options, build_shuffle, &given,
                         &inputs);
}

/* Implements kjit_random_uniform and related functions, which fill an operand with random numbers.
 * They need one launch and no temporary storage; the kernel is in random_fill.kir of lib/library. A
 * thread computes a Philox block of four words. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef enum random_law { UNIFORM, NORMAL, EXPONENTIAL, INTEGERS } random_law;

typedef struct random_given {
  const kjit_operand *x;
  uint64_t seed, offset;
  double first, second; /* parameters of the distribution */
  int64_t least, greatest;
  random_law law;
} random_given;

typedef struct filling {
  ka_call *call;
  const random_given *given;
  ka_operand x;
  kjit_type type; /* type of the numbers */
  bool is_double; /* a number takes two words, so a Philox block of four words gives two numbers */
} filling;

static const struct {
  const char *numbers, *first, *second;
} laws[] = {
  [UNIFORM] = { "random_uniforms", "low", "high" },
  [NORMAL] = { "random_normals", "mean", "deviation" },
  [EXPONENTIAL] = { "random_exponentials", "scale", NULL },
  [INTEGERS] = { "random_integers", NULL, NULL },
};

/* How a word is converted to a uniform number in [0, 1). The lowest `drop` bits are discarded, so
 * that the number is exact in the type. The remaining bits are an integer, which is multiplied by
 * `unit`. `most` is the largest number of the type. */
static const struct {
  kjit_type type;
  const char *drop, *unit;
  double most;
} floats[] = {
  { KJIT_F16, "21u32", "4.8828125e-4f32", 0x1.ffcp15 },
  { KJIT_BF16, "24u32", "3.90625e-3f32", 0x1.fep127 },
  { KJIT_F32, "8u32", "5.9604644775390625e-8f32", 0x1.fffffep127 },
  { KJIT_F64, NULL, NULL, DBL_MAX },
};
enum { FLOATS = sizeof floats / sizeof *floats };

static size_t find_float(kjit_type type)
{
  size_t i = 0;
  while (i < FLOATS && floats[i].type != type) i++;
  return i;
}

/* ---- checks ---- */

static void check_floats(const filling *f)
{
  const random_given *given = f->given;
  const double numbers[] = { given->first, given->second };
  const char *names[] = { laws[given->law].first, laws[given->law].second };
  size_t type = find_float(f->type);
  if (type == FLOATS)
    ka_fail(f->call, KJIT_ERROR_TYPE, "`x` has elements of type %s; expected f16, bf16, f32 or f64",
            ka_type_text(f->call, f->type));
  for (size_t i = 0; i < 2 && names[i]; i++) {
    bool is_spread = (given->law == NORMAL && i == 1) || given->law == EXPONENTIAL;
    if (!isfinite(numbers[i]))
      ka_fail(f->call, KJIT_ERROR_ARGUMENT, "`%s` is %g, but must be a finite number", names[i],
              numbers[i]);
    if (fabs(numbers[i]) > floats[type].most)
      ka_fail(f->call, KJIT_ERROR_ARGUMENT,
              "`%s` is %g, which cannot be represented as %s, the type of the numbers", names[i],
              numbers[i], ka_type_text(f->call, f->type));
    if (is_spread && numbers[i] < 0)
      ka_fail(f->call, KJIT_ERROR_ARGUMENT, "`%s`, %g, is negative", names[i], numbers[i]);
  }
  if (given->law != UNIFORM) return;
  double width = given->second - given->first;
  if (width < 0)
    ka_fail(f->call, KJIT_ERROR_ARGUMENT, "`high`, %g, is less than `low`, %g", given->second,
            given->first);
  if (!isfinite(width) || (!f->is_double && width > (double)0x1.fffffep127f))
    ka_fail(f->call, KJIT_ERROR_ARGUMENT, "`high`, %g, is too far from `low`, %g", given->second,
            given->first);
}

static void check_bound(const filling *f, const char *name, int64_t bound, uint32_t bits,
                        bool is_signed)
{
  int64_t most = is_signed ? (int64_t)(UINT64_MAX >> (65 - bits)) : (int64_t)(UINT64_MAX >> 1),
          least = is_signed ? -most - 1 : 0;
  if (!is_signed && bits == 64)
    return; /* a u64 bound is passed as its 64 bits, so all values are valid */
  if (!is_signed) most = (int64_t)(UINT64_MAX >> (64 - bits));
  if (bound < least || bound > most)
    ka_fail(f->call, KJIT_ERROR_ARGUMENT,
            "`%s` is %lld, which cannot be represented as %s, the type of `x`", name,
            (long long)bound, ka_type_text(f->call, f->type));
}

static void check_integers(const filling *f)
{
  ka_call *call = f->call;
  int64_t least = f->given->least, greatest = f->given->greatest;
  if (!ka_is_integer(call, f->type) || f->type == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s; expected integers",
            ka_type_text(call, f->type));
  bool is_signed = ki_type(call->context->types, f->type)->class_ == KJ_CLASS_SIGNED;
  uint32_t bits = 8 * kj_element_bytes(call->context->types, f->type);
  check_bound(f, "least", least, bits, is_signed);
  check_bound(f, "greatest", greatest, bits, is_signed);
  if (is_signed ? least <= greatest : (uint64_t)least <= (uint64_t)greatest) return;
  if (is_signed)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`greatest`, %lld, is less than `least`, %lld",
            (long long)greatest, (long long)least);
  ka_fail(call, KJIT_ERROR_ARGUMENT, "`greatest`, %llu, is less than `least`, %llu",
          (unsigned long long)greatest, (unsigned long long)least);
}

/* Chooses the type in which the numbers are computed (options.accumulator). An array must have this
 * element type; a func can convert the numbers itself. */
static void choose_type(filling *f)
{
  bool is_integers = f->given->law == INTEGERS;
  kjit_type given = f->call->options.accumulator;
  f->type = f->x.function ? (is_integers ? KJIT_I64 : KJIT_F32) : f->x.element;
  if (given != KJIT_ANY && !f->x.function && given != f->type)
    ka_fail(f->call, KJIT_ERROR_TYPE,
            "`x` has elements of type %s, so " KJ_OPTION(
              "accumulator") ", %s, cannot choose another type; "
                             "it is only for functions",
            ka_type_text(f->call, f->type), ka_type_text(f->call, given));
  if (given != KJIT_ANY) f->type = given;
  f->is_double = f->type == KJIT_F64 || f->type == KJIT_I64 || f->type == KJIT_U64;
  if (is_integers) check_integers(f);
  else check_floats(f);
}

/* ---- the kernel ---- */

static kjit_arg real_argument(const filling *f, double number)
{
  return f->is_double ? kjit_arg_f64(number) : kjit_arg_f32((float)number);
}

static kjit_arg word_argument(const filling *f, uint64_t number)
{
  return f->is_double ? kjit_arg_u64(number) : kjit_arg_u32((uint32_t)number);
}

/* Returns the additional arguments of the distribution's func, each after a comma. */
static const char *use_numbers(ka_kernel *kernel, const filling *f)
{
  kj_arena *arena = &f->call->arena;
  const random_given *given = f->given;
  kjit_arg first, second;
  const char *before = "";
  if (given->law == INTEGERS) {
    first = word_argument(f, (uint64_t)given->least);
    second = word_argument(f, (uint64_t)given->greatest - (uint64_t)given->least + 1);
  } else {
    first = real_argument(f, given->first);
    second = real_argument(f, given->law == UNIFORM ? given->second - given->first : given->second);
  }
  size_t i = find_float(f->type);
  if (given->law == UNIFORM && !f->is_double)
    before = kj_format(arena, ", %s, %s", floats[i].drop, floats[i].unit);
  const char *list = kj_format(arena, "%s, %s", before, ka_use_value(kernel, &first));
  if (given->law == EXPONENTIAL) return list;
  return kj_format(arena, "%s, %s", list, ka_use_value(kernel, &second));
}

/* number of Philox blocks that a thread computes together, so that the compiler uses vectors */
enum { CPU_TOGETHER = 16 };

static void add_step(const filling *f)
{
  ka_call *call = f->call;
  const random_given *given = f->given;
  uint32_t numbers = f->is_double ? 2 : 4, together = ka_is_cpu(call) ? CPU_TOGETHER : 1;
  const kjit_arg of_seed = kjit_arg_u64(given->seed), of_offset = kjit_arg_u64(given->offset);
  ka_kernel kernel;
  ka_begin_kernel(call, "random_fill", &kernel);
  const char *store = ka_use_output(&kernel, &f->x), *count = ka_use_count(&kernel, f->x.count),
             *seed = ka_use_value(&kernel, &of_seed), *offset = ka_use_value(&kernel, &of_offset),
             *more = use_numbers(&kernel, f),
             *shift = ka_use_constant(&kernel, (int64_t)(given->offset % (numbers * together))),
             *word = given->law == INTEGERS ? "u" : "f";
  ka_launch(&kernel, 0, 0,
            "random_fill(bind_back(%s_%s%u%s), bind_back(random_store, %s, %s(0)), %s, %s, %s, %u, "
            "%u, %s)",
            laws[given->law].numbers, word, f->is_double ? 64 : 32, more, store,
            ka_type_text(call, f->type), seed, offset, count, numbers, together, shift);
}

/* ---- the calls ---- */

static void build_random(ka_call *call, const void *data)
{
  const random_given *given = data;
  filling *f = KJ_NEW(&call->arena, filling);
  uint32_t axes[KJ_MAX_RANK];
  *f = (filling){ .call = call, .given = given };
  ka_read_output(call, "x", given->x, &f->x);
  choose_type(f);
  if (given->offset > INT64_MAX || f->x.count > INT64_MAX - given->offset)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`offset`, %llu, plus the number of elements exceeds 2^63 - 1, the last position in "
            "the sequence of a seed",
            (unsigned long long)given->offset);
  if (ka_describe(call, 0, f->type, f->x.rank, f->x.shape)) return;
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, &f->x, axes, 1, &f->x.rank);
  ka_choose_device(call);
  if (f->x.count) add_step(f);
}

static uint64_t bits_of(double number)
{
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* Runs the call. The distribution's parameters are part of the key of the kept steps, so calls with
 * other parameters do not reuse these steps. */
static kjit_status fill(kjit_context *context, const char *name, const random_given *given,
                        const kjit_algorithm_options *options)
{
  bool is_integers = given->law == INTEGERS;
  const ka_inputs inputs = {
    { given->x },
    .numbers = { given->seed, given->offset,
                 is_integers ? (uint64_t)given->least : bits_of(given->first),
                 is_integers ? (uint64_t)given->greatest : bits_of(given->second) },
  };
  return ka_perform_kept(context, name, KA_ACCUMULATOR, options, build_random, given, &inputs);
}

kjit_status kjit_random_uniform(kjit_context *context, const kjit_operand *x, uint64_t seed,
                                uint64_t offset, double low, double high,
                                const kjit_algorithm_options *options)
{
  const random_given given = { x, seed, offset, low, high, 0, 0, UNIFORM };
  return fill(context, "kjit_random_uniform", &given, options);
}

kjit_status kjit_random_normal(kjit_context *context, const kjit_operand *x, uint64_t seed,
                               uint64_t offset, double mean, double deviation,
                               const kjit_algorithm_options *options)
{
  const random_given given = { x, seed, offset, mean, deviation, 0, 0, NORMAL };
  return fill(context, "kjit_random_normal", &given, options);
}

kjit_status kjit_random_exponential(kjit_context *context, const kjit_operand *x, uint64_t seed,
                                    uint64_t offset, double scale,
                                    const kjit_algorithm_options *options)
{
  const random_given given = { x, seed, offset, scale, 0, 0, 0, EXPONENTIAL };
  return fill(context, "kjit_random_exponential", &given, options);
}

kjit_status kjit_random_integers(kjit_context *context, const kjit_operand *x, uint64_t seed,
                                 uint64_t offset, int64_t least, int64_t greatest,
                                 const kjit_algorithm_options *options)
{
  const random_given given = { x, seed, offset, 0, 0, least, greatest, INTEGERS };
  return fill(context, "kjit_random_integers", &given, options);
}

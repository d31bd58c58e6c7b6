/* Operations on intervals of integers (interval.h). A table has a row for each operator. */
#include "pass/interval.h"

#include "ir/arithmetic.h"

static const kt_interval unknown = { .known = false };

static __int128 smaller(__int128 x, __int128 y) { return x < y ? x : y; }
static __int128 larger(__int128 x, __int128 y) { return x > y ? x : y; }

/* ---- types ---- */

kp_integer kp_find_integer(const ki_types *types, kjit_type type)
{
  if (type == KJ_WEAK_INT) return (kp_integer){ 64, true };
  const ki_type_info *info = ki_type(types, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_BOOL: return (kp_integer){ 1, false };
  case KJ_CLASS_SIGNED: return (kp_integer){ 8 * info->size_bytes, true };
  case KJ_CLASS_UNSIGNED: return (kp_integer){ 8 * info->size_bytes, false };
  default: return (kp_integer){ 0 };
  }
}

/* ---- sets ---- */

kt_interval kp_make_interval(__int128 least, __int128 most)
{
  return (kt_interval){ .known = least <= most, .least = least, .most = most };
}

kt_interval kp_whole_interval(kp_integer type)
{
  KJ_ASSERT(type.bits <= 64);
  if (!type.bits) return unknown;
  __int128 half = (__int128)1 << (type.bits - 1);
  return type.is_signed ? kp_make_interval(-half, half - 1) : kp_make_interval(0, 2 * half - 1);
}

kt_interval kp_join_intervals(kt_interval x, kt_interval y)
{
  if (!x.known || !y.known) return unknown;
  return kp_make_interval(smaller(x.least, y.least), larger(x.most, y.most));
}

kt_interval kp_meet_intervals(kt_interval x, kt_interval y)
{
  if (!x.known || !y.known) return unknown;
  return kp_make_interval(larger(x.least, y.least), smaller(x.most, y.most));
}

bool kp_is_within(kt_interval x, __int128 least, __int128 most)
{
  return x.known && x.least >= least && x.most <= most;
}

bool kp_fits32(kt_interval x) { return kp_is_within(x, INT32_MIN, INT32_MAX); }

static bool is_number(kt_interval x) { return x.least == x.most; }

/* ---- wrapping ---- */

static const __int128 far = (__int128)1 << 126; /* larger than any 64-bit result */

/* Wraps an exact result into the range of the type. If wrapping subtracts the same number from all
 * values of the interval, the result is the shifted interval; otherwise it is the whole range of
 * the type. */
kt_interval kp_wrap_interval(kp_integer type, kt_interval exact)
{
  kt_interval all = kp_whole_interval(type);
  if (!all.known || !kp_is_within(exact, -far, far)) return all;
  __int128 period = (__int128)1 << type.bits,
           number = ki_floor_divide(exact.least - all.least, period);
  if (ki_floor_divide(exact.most - all.least, period) != number) return all;
  return kp_make_interval(exact.least - number * period, exact.most - number * period);
}

/* ---- operations ---- */

typedef __int128 (*corner)(__int128 x, __int128 y);

/* Multiplies and saturates, because the product of two u64 values may not fit into 128 signed
 * bits. */
static __int128 multiply(__int128 x, __int128 y)
{
  __int128 product, rim = (__int128)(((unsigned __int128)1 << 127) - 1);
  if (!__builtin_mul_overflow(x, y, &product)) return product;
  return (x < 0) == (y < 0) ? rim : -rim;
}

static __int128 shift_left(__int128 x, __int128 y)
{
  KJ_ASSERT(y >= 0 && y < 64);
  return multiply(x, (__int128)1 << y);
}
static __int128 shift_right(__int128 x, __int128 y)
{
  KJ_ASSERT(y >= 0 && y < 64);
  return x >> y;
}
static __int128 truncate_divide(__int128 x, __int128 y)
{
  KJ_ASSERT(y != 0);
  return x / y;
}
static __int128 ceil_divide(__int128 x, __int128 y)
{
  KJ_ASSERT(y != 0);
  return -ki_floor_divide(-x, y);
}

/* Returns the interval of a function that is monotonic in each operand, so that its minimum and
 * maximum are at the ends of the operands' intervals. */
static kt_interval at_corners(kt_interval x, kt_interval y, corner f)
{
  KJ_ASSERT(x.known && y.known);
  __int128 a = f(x.least, y.least), b = f(x.least, y.most), c = f(x.most, y.least),
           d = f(x.most, y.most);
  return kp_make_interval(smaller(smaller(a, b), smaller(c, d)),
                          larger(larger(a, b), larger(c, d)));
}

static kt_interval either(kt_interval x, kt_interval y)
{
  return x.known && y.known ? kp_join_intervals(x, y) : x.known ? x : y;
}

static kt_interval positive_part(kt_interval x)
{
  return kp_meet_intervals(x, kp_make_interval(1, far));
}
static kt_interval negative_part(kt_interval x)
{
  return kp_meet_intervals(x, kp_make_interval(-far, -1));
}

/* Returns the interval of quotients. They are monotonic if all divisors have the same sign. */
static kt_interval divide(kt_interval x, kt_interval y, corner f)
{
  KJ_ASSERT(x.known && y.known);
  kt_interval above = positive_part(y), below = negative_part(y), result = unknown;
  if (above.known) result = at_corners(x, above, f);
  if (below.known) result = either(result, at_corners(x, below, f));
  return kp_is_within(kp_make_interval(0, 0), y.least, y.most)
           ? either(result, kp_make_interval(0, 0))
           : result;
}

/* Returns whether all values of x have the same quotient for the constant divisor. In this case,
 * the remainder is x minus a constant. */
static bool has_one_quotient(kt_interval x, kt_interval y, corner f)
{
  return is_number(y) && y.least != 0 && f(x.least, y.least) == f(x.most, y.least);
}
static kt_interval shifted(kt_interval x, __int128 by)
{
  return kp_make_interval(x.least - by, x.most - by);
}

/* Returns the interval of a remainder that has the sign of the divisor and an absolute value less
 * than that of the divisor. */
static kt_interval floor_remainder(kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  if (y.least > 0 && kp_is_within(x, 0, y.least - 1)) return x;
  if (has_one_quotient(x, y, ki_floor_divide))
    return shifted(x, ki_floor_divide(x.least, y.least) * y.least);
  kt_interval all = kp_make_interval(smaller(y.least + 1, 0), larger(y.most - 1, 0));
  if (x.least >= 0 && y.least >= 0) all.most = smaller(all.most, x.most);
  return all;
}

/* Returns the interval of a remainder that has the sign of the dividend and an absolute value less
 * than that of the divisor. */
static kt_interval truncated_remainder(kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  if (has_one_quotient(x, y, truncate_divide))
    return shifted(x, truncate_divide(x.least, y.least) * y.least);
  __int128 most = larger(larger(y.most, -y.least) - 1, 0);
  return kp_make_interval(x.least < 0 ? larger(x.least, -most) : 0,
                          x.most > 0 ? smaller(x.most, most) : 0);
}

static kt_interval sum(kp_integer type, kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  (void)type;
  return kp_make_interval(x.least + y.least, x.most + y.most);
}
static kt_interval difference(kp_integer type, kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  (void)type;
  return kp_make_interval(x.least - y.most, x.most - y.least);
}
static kt_interval product(kp_integer type, kt_interval x, kt_interval y)
{
  (void)type;
  return at_corners(x, y, multiply);
}
static kt_interval quotient(kp_integer type, kt_interval x, kt_interval y)
{
  (void)type;
  return divide(x, y, ki_floor_divide);
}
static kt_interval floor_modulo(kp_integer type, kt_interval x, kt_interval y)
{
  (void)type;
  return floor_remainder(x, y);
}

/* Returns the smallest number 2^n - 1 that is at least x and at least y. */
static __int128 all_bits(__int128 x, __int128 y)
{
  __int128 bits = 0, high = larger(x, y);
  while (bits < high) bits = 2 * bits + 1;
  return bits;
}

static kt_interval inverted(kt_interval x) { return kp_make_interval(-1 - x.most, -1 - x.least); }

/* Returns the interval of x & y. If both operands are nonnegative, the result is between 0 and the
 * smaller operand. Otherwise the result is negative only if both operands are negative, and it has
 * only bits that both operands have. */
static kt_interval bits_in_both(kp_integer type, kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  (void)type;
  if (is_number(x) && is_number(y)) return kp_make_interval(x.least & y.least, x.least & y.least);
  bool x_is_below = x.most < 0, y_is_below = y.most < 0;
  __int128 least = x.least < 0 && y.least < 0 ? -1 - all_bits(-1 - x.least, -1 - y.least) : 0,
           most = x.least >= 0 && y.least >= 0 ? smaller(x.most, y.most)
                  : x_is_below && y_is_below   ? smaller(x.most, y.most)
                  : x.least >= 0 || y_is_below ? x.most
                  : y.least >= 0 || x_is_below ? y.most
                                               : larger(x.most, y.most);
  return kp_make_interval(least, most);
}

/* Returns the interval of x | y, which is ~(~x & ~y). */
static kt_interval bits_in_either(kp_integer type, kt_interval x, kt_interval y)
{
  return inverted(bits_in_both(type, inverted(x), inverted(y)));
}

/* Returns the interval of x ^ y. Apart from the sign, x ^ y has no bit above the highest bit of the
 * operands. */
static kt_interval bits_in_one(kp_integer type, kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  (void)type;
  if (is_number(x) && is_number(y)) return kp_make_interval(x.least ^ y.least, x.least ^ y.least);
  __int128 most = all_bits(larger(x.most, -1 - x.least), larger(y.most, -1 - y.least));
  bool has_one_sign = (x.least >= 0 || x.most < 0) && (y.least >= 0 || y.most < 0);
  if (!has_one_sign) return kp_make_interval(-1 - most, most);
  return (x.most < 0) == (y.most < 0) ? kp_make_interval(0, most) : kp_make_interval(-1 - most, -1);
}

/* Returns the interval of a shift count taken modulo the number of bits of the type. */
static kt_interval find_count(kp_integer type, kt_interval y)
{
  kp_integer count = { .bits = 0 };
  while (1u << count.bits < type.bits) count.bits++;
  return count.bits ? kp_wrap_interval(count, y) : kp_make_interval(0, 0);
}
static kt_interval left_shifted(kp_integer type, kt_interval x, kt_interval y)
{
  return at_corners(x, find_count(type, y), shift_left);
}
static kt_interval right_shifted(kp_integer type, kt_interval x, kt_interval y)
{
  return at_corners(x, find_count(type, y), shift_right);
}

kt_interval kp_exact_unary(kjit_op op, kt_interval x)
{
  KJ_ASSERT(x.known);
  if (op == KJIT_OP_NEG) return kp_make_interval(-x.most, -x.least);
  return op == KJIT_OP_INVERT ? inverted(x) : unknown;
}

kt_interval kp_exact_binary(kjit_op op, kp_integer type, kt_interval x, kt_interval y)
{
  KJ_ASSERT(x.known && y.known);
  static kt_interval (*const rules[])(kp_integer, kt_interval, kt_interval) = {
    [KJIT_OP_ADD] = sum,
    [KJIT_OP_SUB] = difference,
    [KJIT_OP_MUL] = product,
    [KJIT_OP_FLOORDIV] = quotient,
    [KJIT_OP_MOD] = floor_modulo,
    [KJIT_OP_SHL] = left_shifted,
    [KJIT_OP_SHR] = right_shifted,
    [KJIT_OP_BIT_AND] = bits_in_both,
    [KJIT_OP_BIT_OR] = bits_in_either,
    [KJIT_OP_BIT_XOR] = bits_in_one,
  };
  bool has_rule = op < sizeof rules / sizeof *rules && rules[op];
  return has_rule ? rules[op](type, x, y) : unknown;
}

kt_interval kp_exact_builtin(ki_builtin_id id, const kt_interval *operands, size_t count)
{
  KJ_ASSERT(count >= 1);
  kt_interval x = operands[0], y = operands[count - 1];
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_ABS: {
    kt_interval above = kp_meet_intervals(x, kp_make_interval(0, far)), below = negative_part(x);
    return either(above, below.known ? kp_exact_unary(KJIT_OP_NEG, below) : unknown);
  }
  case KJ_BUILTIN_MIN: return kp_make_interval(smaller(x.least, y.least), smaller(x.most, y.most));
  case KJ_BUILTIN_MAX: return kp_make_interval(larger(x.least, y.least), larger(x.most, y.most));
  case KJ_BUILTIN_CEIL_DIV: return divide(x, y, ceil_divide);
  case KJ_BUILTIN_DIV_TRUNC: return divide(x, y, truncate_divide);
  case KJ_BUILTIN_REM_TRUNC: return truncated_remainder(x, y);
  default: return unknown;
  }
}

kt_interval kp_convert_interval(kp_integer to, kt_interval x)
{
  bool is_truth = to.bits == 1 && x.known;
  if (is_truth && is_number(x)) return kp_make_interval(x.least != 0, x.least != 0);
  if (is_truth) return kp_make_interval(x.least > 0 || x.most < 0, 1);
  return kp_wrap_interval(to, x);
}

/* ---- leaves ---- */

kt_interval kp_counter_interval(kt_interval first, kt_interval stop, kt_interval step,
                                kt_interval *past)
{
  *past = unknown;
  if (!first.known || !stop.known || !step.known) return unknown;
  kt_interval values = unknown; /* the loop has no iterations, so any interval is correct */
  if (step.least > 0) values = kp_make_interval(first.least, larger(first.least, stop.most - 1));
  else if (step.most < 0)
    values = kp_make_interval(smaller(first.most, stop.least + 1), first.most);
  if (values.known) *past = sum((kp_integer){ 0 }, values, step);
  return values;
}

kt_interval kp_range_interval(kt_interval extent)
{
  return kp_make_interval(0, larger(extent.known ? extent.most - 1 : INT64_MAX - 1, 0));
}

/* CUDA's limits, which the runtime enforces on the CPU as well. */
enum { MOST_THREADS = 1024, MOST_THREADS_Z = 64, MOST_BLOCKS_YZ = 65535 };

kp_launch_limits kp_find_limits(const kt_compilation *c)
{
  KJ_ASSERT(c->instances.count);
  kp_launch_limits limits = { .grid32 = c->request->signature->grid32 };
  const uint32_t *known = c->instances.items[0]->block;
  for (int d = 0; d < 3; d++) limits.block[d] = known[d];
  return limits;
}

kt_interval kp_position_interval(const kp_launch_limits *limits, ki_builtin_id id,
                                 uint32_t dimension)
{
  /* for other built-ins, `dimension` has another meaning */
  uint32_t d = dimension < 3 ? dimension : 0;
  int64_t known = limits->block[d],
          block = known    ? known
                  : d == 2 ? MOST_THREADS_Z
                           : MOST_THREADS,
          grid = d ? MOST_BLOCKS_YZ : INT32_MAX,
          threads = limits->grid32 ? INT32_MAX : grid * block,
          all = (int64_t)limits->block[0] * limits->block[1] * limits->block[2];
  if (!all) all = MOST_THREADS;
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_THREAD_IDX: return kp_make_interval(0, block - 1);
  case KJ_BUILTIN_BLOCK_DIM: return kp_make_interval(known ? known : 1, block);
  case KJ_BUILTIN_BLOCK_IDX: return kp_make_interval(0, grid - 1);
  case KJ_BUILTIN_GRID_DIM: return kp_make_interval(1, grid);
  case KJ_BUILTIN_GRID: return kp_make_interval(0, threads - 1);
  case KJ_BUILTIN_GRIDSIZE: return kp_make_interval(1, threads);
  case KJ_BUILTIN_THREAD_RANK: return kp_make_interval(0, all - 1);
  case KJ_BUILTIN_WARP_RANK: return kp_make_interval(0, (all - 1) / KJ_WARP_THREADS);
  case KJ_BUILTIN_LANEID: return kp_make_interval(0, KJ_WARP_THREADS - 1);
  default: return unknown;
  }
}

kt_interval kp_extent_interval(kt_compilation *c, kjit_type array)
{
  KJ_ASSERT(ki_type(c->types, array)->class_ == KJ_CLASS_ARRAY);
  const ki_type_info *info = ki_type(c->types, array);
  if (info->space == KJ_SPACE_GENERIC) return kp_make_interval(INT64_MIN, INT64_MAX);
  if (info->space != KJ_SPACE_GLOBAL) return kp_make_interval(0, INT32_MAX);
  c->used_offsets32 |= c->request->signature->offsets32;
  return kp_make_interval(0, c->request->signature->offsets32 ? INT32_MAX : INT64_MAX);
}

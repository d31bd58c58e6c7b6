/* Interval arithmetic: every operation is compared with all values of small types, and tested at
 * the ends of large types. An interval must contain all values and must not be much wider than
 * necessary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kj_test.h"
#include "pass/interval.h"

/* ---- the operations on values ---- */

static __int128 wrap(kp_integer type, __int128 value)
{
  __int128 period = (__int128)1 << type.bits, low = ((value % period) + period) % period;
  return type.is_signed && low >= period / 2 ? low - period : low;
}

static __int128 floor_of(__int128 x, __int128 y)
{
  return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
}
static __int128 count_of(kp_integer type, __int128 y)
{
  return ((y % type.bits) + type.bits) % type.bits;
}

typedef struct operation {
  const char *name;
  bool is_builtin;
  int id;
  int excess_percent; /* maximum of the mean excess width of the intervals */
} operation;

static const operation operations[] = {
  { "+", false, KJIT_OP_ADD, 0 },
  { "-", false, KJIT_OP_SUB, 0 },
  { "*", false, KJIT_OP_MUL, 100 },
  { "//", false, KJIT_OP_FLOORDIV, 3 },
  { "%", false, KJIT_OP_MOD, 50 },
  { "<<", false, KJIT_OP_SHL, 230 },
  { ">>", false, KJIT_OP_SHR, 0 },
  { "&", false, KJIT_OP_BIT_AND, 110 },
  { "|", false, KJIT_OP_BIT_OR, 65 },
  { "^", false, KJIT_OP_BIT_XOR, 300 },
  { "min", true, KJ_BUILTIN_MIN, 0 },
  { "max", true, KJ_BUILTIN_MAX, 0 },
  { "ceil_div", true, KJ_BUILTIN_CEIL_DIV, 3 },
  { "div_trunc", true, KJ_BUILTIN_DIV_TRUNC, 3 },
  { "rem_trunc", true, KJ_BUILTIN_REM_TRUNC, 65 },
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static __int128 apply_operator(int id, kp_integer type, __int128 x, __int128 y)
{
  switch (id) {
  case KJIT_OP_ADD: return x + y;
  case KJIT_OP_SUB: return x - y;
  case KJIT_OP_MUL: return x * y;
  case KJIT_OP_FLOORDIV: return floor_of(x, y);
  case KJIT_OP_MOD: return y ? x - y * floor_of(x, y) : 0;
  case KJIT_OP_SHL: return x * ((__int128)1 << count_of(type, y));
  case KJIT_OP_SHR: return floor_of(x, (__int128)1 << count_of(type, y));
  case KJIT_OP_BIT_AND: return x & y;
  case KJIT_OP_BIT_OR: return x | y;
  default: return x ^ y;
  }
}

static __int128 apply_builtin(int id, __int128 x, __int128 y)
{
  switch (id) {
  case KJ_BUILTIN_MIN: return x < y ? x : y;
  case KJ_BUILTIN_MAX: return x > y ? x : y;
  case KJ_BUILTIN_CEIL_DIV: return -floor_of(-x, y);
  case KJ_BUILTIN_DIV_TRUNC: return y ? x / y : 0;
  default: return y ? x % y : 0;
  }
}

static __int128 apply(const operation *op, kp_integer type, __int128 x, __int128 y)
{
  return wrap(type,
              op->is_builtin ? apply_builtin(op->id, x, y) : apply_operator(op->id, type, x, y));
}

static kt_interval find(const operation *op, kp_integer type, kt_interval x, kt_interval y)
{
  kt_interval operands[] = { x, y };
  return kp_wrap_interval(type, op->is_builtin
                                  ? kp_exact_builtin((ki_builtin_id)op->id, operands, 2)
                                  : kp_exact_binary((kjit_op)op->id, type, x, y));
}

/* ---- small types ---- */

enum { MOST_VALUES = 16 };

static void fail_at(const char *what, kp_integer type, kt_interval x, kt_interval y,
                    kt_interval found, __int128 value)
{
  fail_msg("%c%u, %lld..%lld %s %lld..%lld: %lld is not in %lld..%lld", type.is_signed ? 'i' : 'u',
           type.bits, (long long)x.least, (long long)x.most, what, (long long)y.least,
           (long long)y.most, (long long)value, (long long)found.least, (long long)found.most);
}

/* results: the results of all pairs of values. Returns by how much the interval is wider than
 * necessary. */
static int check_pair(const operation *op, kp_integer type, kt_interval x, kt_interval y,
                      const int8_t results[MOST_VALUES][MOST_VALUES])
{
  kt_interval all = kp_whole_interval(type), found = find(op, type, x, y);
  int least = INT8_MAX, most = INT8_MIN;
  assert_true(kp_is_within(found, all.least, all.most));
  for (__int128 a = x.least; a <= x.most; a++)
    for (__int128 b = y.least; b <= y.most; b++) {
      int8_t value = results[a - all.least][b - all.least];
      if (value < found.least || value > found.most) fail_at(op->name, type, x, y, found, value);
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
  return (int)(found.most - found.least) - (most - least);
}

static void check_operation(const operation *op, kp_integer type)
{
  int8_t results[MOST_VALUES][MOST_VALUES];
  kt_interval all = kp_whole_interval(type);
  int64_t excess = 0, pairs = 0;
  for (__int128 a = all.least; a <= all.most; a++)
    for (__int128 b = all.least; b <= all.most; b++)
      results[a - all.least][b - all.least] = (int8_t)apply(op, type, a, b);
  for (__int128 a = all.least; a <= all.most; a++)
    for (__int128 b = a; b <= all.most; b++)
      for (__int128 c = all.least; c <= all.most; c++)
        for (__int128 d = c; d <= all.most; d++)
          excess += check_pair(op, type, kp_make_interval(a, b), kp_make_interval(c, d), results),
            pairs++;
  if (excess * 100 > op->excess_percent * pairs)
    fail_msg("%s of %c%u: intervals are wider than the values by %.2f", op->name,
             type.is_signed ? 'i' : 'u', type.bits, (double)excess / (double)pairs);
}

static const kp_integer small_types[] = { { 2, false }, { 2, true }, { 4, false }, { 4, true } };
enum { SMALL_TYPES = sizeof small_types / sizeof *small_types };

static void test_all_values(void **state)
{
  (void)state;
  for (int t = 0; t < SMALL_TYPES; t++)
    for (int i = 0; i < OPERATIONS; i++) check_operation(&operations[i], small_types[t]);
}

/* Intervals of single numbers are as exact as evaluation. */
static void test_numbers(void **state)
{
  (void)state;
  for (int t = 0; t < SMALL_TYPES; t++) {
    kt_interval all = kp_whole_interval(small_types[t]);
    for (int i = 0; i < OPERATIONS; i++)
      for (__int128 a = all.least; a <= all.most; a++)
        for (__int128 b = all.least; b <= all.most; b++) {
          const operation *op = &operations[i];
          kt_interval x = kp_make_interval(a, a), y = kp_make_interval(b, b);
          kt_interval found = find(op, small_types[t], x, y);
          __int128 value = apply(op, small_types[t], a, b);
          if (found.least != value || found.most != value)
            fail_at(op->name, small_types[t], x, y, found, value);
        }
  }
}

static __int128 apply_unary(int which, __int128 x)
{
  return which == 0 ? -x : which == 1 ? -1 - x : x < 0 ? -x : x;
}

static kt_interval find_unary(int which, kt_interval x)
{
  return which == 2 ? kp_exact_builtin(KJ_BUILTIN_ABS, &x, 1)
                    : kp_exact_unary(which ? KJIT_OP_INVERT : KJIT_OP_NEG, x);
}

static void test_unary(void **state)
{
  (void)state;
  static const char *const names[] = { "neg", "invert", "abs" };
  for (int t = 0; t < SMALL_TYPES; t++) {
    kt_interval all = kp_whole_interval(small_types[t]);
    for (int which = 0; which < 3; which++)
      for (__int128 a = all.least; a <= all.most; a++)
        for (__int128 b = a; b <= all.most; b++) {
          kt_interval x = kp_make_interval(a, b),
                      found = kp_wrap_interval(small_types[t], find_unary(which, x));
          for (__int128 v = a; v <= b; v++) {
            __int128 value = wrap(small_types[t], apply_unary(which, v));
            if (value < found.least || value > found.most)
              fail_at(names[which], small_types[t], x, x, found, value);
          }
        }
  }
}

static void test_conversions(void **state)
{
  (void)state;
  static const kp_integer truth = { 1, false };
  for (int t = 0; t < SMALL_TYPES; t++)
    for (__int128 a = -20; a <= 40; a++)
      for (__int128 b = a; b <= 40; b++) {
        kt_interval x = kp_make_interval(a, b), found = kp_convert_interval(small_types[t], x),
                    is_true = kp_convert_interval(truth, x);
        for (__int128 v = a; v <= b; v++) {
          __int128 value = wrap(small_types[t], v);
          if (value < found.least || value > found.most)
            fail_at("to", small_types[t], x, x, found, value);
          assert_true(kp_is_within(kp_make_interval(v != 0, v != 0), is_true.least, is_true.most));
        }
      }
}

static void test_sets(void **state)
{
  (void)state;
  for (int a = -3; a < 4; a++)
    for (int b = a; b < 4; b++)
      for (int c = -3; c < 4; c++)
        for (int d = c; d < 4; d++) {
          kt_interval x = kp_make_interval(a, b), y = kp_make_interval(c, d),
                      joined = kp_join_intervals(x, y), met = kp_meet_intervals(x, y);
          for (int v = -3; v < 4; v++) {
            bool in_x = a <= v && v <= b, in_y = c <= v && v <= d;
            if (in_x || in_y) assert_true(joined.least <= v && v <= joined.most);
            assert_int_equal(met.known && met.least <= v && v <= met.most, in_x && in_y);
          }
        }
}

/* ---- the ends of large types ---- */

static void assert_interval(kt_interval x, __int128 least, __int128 most)
{
  assert_true(x.known);
  assert_true(x.least == least);
  assert_true(x.most == most);
}

static kt_interval of(__int128 value) { return kp_make_interval(value, value); }

static void test_large(void **state)
{
  (void)state;
  static const kp_integer i32 = { 32, true }, u32 = { 32, false }, i64 = { 64, true },
                          u64 = { 64, false };
  kt_interval all = kp_whole_interval(u64), any = kp_whole_interval(i64);
  assert_interval(all, 0, ((__int128)1 << 64) - 1);
  /* a result that exceeds 128 bits can be any value of the type */
  assert_interval(kp_wrap_interval(u64, kp_exact_binary(KJIT_OP_MUL, u64, all, all)), 0, all.most);
  assert_interval(kp_wrap_interval(u64, kp_exact_binary(KJIT_OP_SHL, u64, all, of(63))), 0,
                  all.most);
  assert_interval(kp_exact_binary(KJIT_OP_SUB, i64, any, any), any.least - any.most,
                  any.most - any.least);
  assert_interval(kp_wrap_interval(i64, of((__int128)INT64_MAX + 1)), INT64_MIN, INT64_MIN);
  assert_interval(kp_convert_interval(i32, of(4000000000)), -294967296, -294967296);
  /* shift counts equal to and above the width */
  kt_interval x = of(65535);
  assert_interval(kp_exact_binary(KJIT_OP_SHR, i32, x, kp_make_interval(32, 39)), 511, 65535);
  assert_interval(kp_exact_binary(KJIT_OP_SHR, u32, of(4000000000), of(32)), 4000000000,
                  4000000000);
  assert_interval(kp_exact_binary(KJIT_OP_SHR, u32, x, kp_make_interval(30, 33)), 0, 65535);
  assert_interval(kp_exact_binary(KJIT_OP_SHL, i64, of(1), of(64)), 1, 1);
  assert_interval(kp_exact_binary(KJIT_OP_SHL, i64, of(1), of(-1)), (__int128)1 << 63,
                  (__int128)1 << 63);
}

/* ---- counters and positions ---- */

static void test_counters(void **state)
{
  (void)state;
  for (int first = -3; first < 4; first++)
    for (int stop = -3; stop < 4; stop++)
      for (int step = -3; step < 4; step++) {
        kt_interval past, values = kp_counter_interval(of(first), of(stop), of(step), &past);
        assert_int_equal(values.known, step != 0);
        for (int i = first; step && (step > 0 ? i < stop : i > stop); i += step) {
          assert_true(values.least <= i && i <= values.most);
          assert_true(past.least <= i + step && i + step <= past.most);
        }
      }
  assert_interval(kp_range_interval(kp_make_interval(-5, 7)), 0, 6);
  assert_interval(kp_range_interval(kp_make_interval(-5, 0)), 0, 0);
}

static void test_positions(void **state)
{
  (void)state;
  kp_launch_limits open = { .grid32 = false }, known = { .block = { 32, 4, 2 }, .grid32 = true };
  assert_interval(kp_position_interval(&open, KJ_BUILTIN_THREAD_IDX, 0), 0, 1023);
  assert_interval(kp_position_interval(&open, KJ_BUILTIN_THREAD_IDX, 2), 0, 63);
  assert_interval(kp_position_interval(&open, KJ_BUILTIN_GRID, 0), 0,
                  (__int128)INT32_MAX * 1024 - 1);
  assert_interval(kp_position_interval(&known, KJ_BUILTIN_GRID, 0), 0, INT32_MAX - 1);
  assert_interval(kp_position_interval(&known, KJ_BUILTIN_BLOCK_DIM, 1), 4, 4);
  assert_interval(kp_position_interval(&known, KJ_BUILTIN_THREAD_RANK, 0), 0, 255);
  assert_interval(kp_position_interval(&known, KJ_BUILTIN_WARP_RANK, 0), 0, 7);
  assert_false(kp_position_interval(&known, KJ_BUILTIN_ABS, 0).known);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_values), cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_unary),      cmocka_unit_test(test_conversions),
    cmocka_unit_test(test_sets),       cmocka_unit_test(test_large),
    cmocka_unit_test(test_counters),   cmocka_unit_test(test_positions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arithmetic on compile-time numbers: conversions that round once, integers that wrap, NaNs that
 * keep their bits, and the text of each number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "ir/number.h"
#include "kj_test.h"

static void expect_bits(ki_value value, uint64_t bits)
{
  assert_true(value.integer >= 0);
  assert_int_equal((uint64_t)value.integer, bits);
}

static void test_small_floats(void **state)
{
  (void)state;
  static const struct {
    double value;
    uint16_t f16, bf16;
  } rows[] = {
    { 1.0, 0x3c00, 0x3f80 },   { -2.0, 0xc000, 0xc000 },       { 65504, 0x7bff, 0x4780 },
    { 65520, 0x7c00, 0x4780 }, { 6e-8, 0x0001, 0x3381 },       { 0, 0, 0 },
    { 2049, 0x6800, 0x4500 },  { -0.0, 0x8000, 0x8000 },       { 0x1p-25, 0, 0x3300 },
    { 0x1.8p-25, 1, 0x3340 },  { 65519.999, 0x7bff, 0x4780 },  { 1e300, 0x7c00, 0x7f80 },
    { 0x1p-134, 0, 0 },        { 0x1.000002p-134, 0, 0x0001 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    expect_bits(ki_float_value(KJIT_F16, rows[i].value), rows[i].f16);
    expect_bits(ki_float_value(KJIT_BF16, rows[i].value), rows[i].bf16);
  }
}

/* Every f16 and bf16 is unchanged by a conversion to f64 and back, except that NaNs become
 * quiet. */
static void test_ways_through_f64(void **state)
{
  (void)state;
  const kjit_type types[] = { KJIT_F16, KJIT_BF16 };
  const uint64_t quiet[] = { 0x0200, 0x0040 };
  for (size_t t = 0; t < 2; t++) {
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
      ki_value value = { types[t], bits };
      ki_value back = ki_convert_value(ki_convert_value(value, KJIT_F64), types[t]);
      expect_bits(back, ki_is_nan(value) ? bits | quiet[t] : bits);
    }
  }
}

/* Conversions of f32 give the same results as the processor's conversions. */
static void test_f32(void **state)
{
  (void)state;
  srand(1);
  for (uint32_t i = 0; i < 200000; i++) {
    uint64_t bits = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
    if (i % 2) bits = (bits & 0x800fffffffffffff) | (uint64_t)(1023 - 155 + rand() % 300) << 52;
    double number;
    memcpy(&number, &bits, sizeof number);
    float single = (float)number, whole = (float)(int64_t)bits;
    uint32_t expected;
    memcpy(&expected, &single, sizeof expected);
    expect_bits(ki_float_value(KJIT_F32, number), expected);
    memcpy(&expected, &whole, sizeof expected);
    expect_bits(ki_integer_value(KJIT_F32, (int64_t)bits), expected);
  }
}

static void test_integers_round_once(void **state)
{
  (void)state;
  /* a conversion through f64 would round it to a tie, and then to the even 0x5e80 */
  expect_bits(ki_integer_value(KJIT_BF16, 4629700416936869889), 0x5e81);
  expect_bits(ki_integer_value(KJIT_F32, 0x4000004000000001), 0x5e800001);
  expect_bits(ki_integer_value(KJIT_F16, -65520), 0xfc00);
  expect_bits(ki_integer_value(KJIT_F64, ((__int128)1 << 100) + 1), 0x4630000000000000);
}

static void test_digits_round_once(void **state)
{
  (void)state;
  /* A number a little above the middle between two f16 values. As an f64 it would be equal to that
   * middle. */
  double above = ki_read_float("1.00048828125000000000000000001", KJIT_F16);
  expect_bits(ki_float_value(KJIT_F16, above), 0x3c01);
  expect_bits(ki_float_value(KJIT_F16, ki_read_float("1.00048828125", KJIT_F16)), 0x3c00);
  assert_true(isinf(ki_read_float("65520", KJIT_F16)));
  assert_false(isinf(ki_read_float("65519.99999999999999999999999", KJIT_F16)));
}

static void test_float_to_integer(void **state)
{
  (void)state;
  assert_true(ki_float_value(KJIT_I8, 1e9).integer == INT8_MAX);
  assert_true(ki_float_value(KJIT_I64, -INFINITY).integer == INT64_MIN);
  assert_true(ki_float_value(KJIT_U64, 1e30).integer == (__int128)UINT64_MAX);
  assert_true(ki_float_value(KJIT_U8, -3.5).integer == 0);
  assert_true(ki_float_value(KJIT_I32, -3.9).integer == -3);
  assert_true(ki_float_value(KJIT_I32, NAN).integer == 0);
}

static __int128 compute(kjit_op op, kjit_type type, __int128 x, __int128 y)
{
  ki_value result = { 0 };
  assert_int_equal(ki_compute_binary(op, ki_integer_value(type, x), (ki_value){ KJIT_I64, y },
                                     &result),
                   KJ_COMPUTED);
  assert_int_equal(result.type, type);
  return result.integer;
}

static void test_operators_wrap(void **state)
{
  (void)state;
  assert_true(compute(KJIT_OP_ADD, KJIT_I32, INT32_MAX, 1) == INT32_MIN);
  assert_true(compute(KJIT_OP_SUB, KJIT_U32, 0, 1) == UINT32_MAX);
  assert_true(compute(KJIT_OP_MUL, KJIT_U64, UINT64_MAX, UINT64_MAX) == 1);
  assert_true(compute(KJIT_OP_SHL, KJIT_I32, 1, 33) == 2);
  assert_true(compute(KJIT_OP_SHR, KJIT_I32, 20, 33) == 10);
  assert_true(compute(KJIT_OP_SHR, KJIT_I32, -8, -31) == -4);
  assert_true(compute(KJIT_OP_FLOORDIV, KJIT_I64, -7, 2) == -4);
  assert_true(compute(KJIT_OP_FLOORDIV, KJIT_I64, INT64_MIN, -1) == INT64_MIN);
  assert_true(compute(KJIT_OP_MOD, KJIT_I64, INT64_MIN, -1) == 0);
  assert_true(compute(KJIT_OP_MOD, KJIT_I32, -7, 3) == 2);
  assert_true(compute(KJIT_OP_MOD, KJIT_I32, 7, 0) == 0);
  assert_true(compute(KJIT_OP_POW, KJIT_U32, 3, -2) == 0);
  assert_true(compute(KJIT_OP_POW, KJIT_I32, -1, -3) == -1);
  assert_true(compute(KJIT_OP_POW, KJIT_I32, 3, 21) == 1870418611);
}

static void test_literals_have_limits(void **state)
{
  (void)state;
  ki_value result, big = { KJ_WEAK_INT, (__int128)1 << 99 }, three = { KJ_WEAK_INT, 3 };
  ki_value far = { KJ_WEAK_INT, 101 }, minus = { KJ_WEAK_INT, -1 };
  assert_int_equal(ki_compute_binary(KJIT_OP_MUL, big, three, &result), KJ_TOO_LARGE);
  assert_int_equal(ki_compute_binary(KJIT_OP_POW, three, far, &result), KJ_TOO_LARGE);
  assert_int_equal(ki_compute_binary(KJIT_OP_SHL, three, far, &result), KJ_SHIFTED_TOO_FAR);
  assert_int_equal(ki_compute_binary(KJIT_OP_POW, three, minus, &result), KJ_NEGATIVE_EXPONENT);
}

static void expect_text(ki_value value, const char *text)
{
  kj_buffer buffer = { 0 };
  ki_print_value(value, true, &buffer);
  assert_string_equal(buffer.text, text);
  kj_free_buffer(&buffer);
}

static void test_text(void **state)
{
  (void)state;
  expect_text((ki_value){ KJIT_F32, 0x7fc00000 }, "f32(nan)");
  expect_text((ki_value){ KJIT_F32, 0x7fc00001 }, "bitcast(f32, 2143289345u32)");
  expect_text((ki_value){ KJIT_F32, 0xffc00000 }, "bitcast(f32, 4290772992u32)");
  expect_text((ki_value){ KJIT_F16, 0xfc00 }, "f16(-inf)");
  expect_text(ki_float_value(KJIT_F64, -0.0), "-0.0f64");
  expect_text(ki_float_value(KJ_WEAK_FLOAT, 2.5), "2.5");
  expect_text(ki_integer_value(KJIT_U64, UINT64_MAX), "18446744073709551615u64");
  expect_text(ki_integer_value(KJIT_I64, INT64_MIN), "-9223372036854775808i64");
}

static void test_comparisons(void **state)
{
  (void)state;
  ki_value nan = ki_float_value(KJIT_F32, NAN), zero = ki_float_value(KJIT_F32, 0),
           minus = ki_float_value(KJIT_F32, -0.0);
  assert_false(ki_compute_comparison(KJIT_OP_EQ, nan, nan));
  assert_true(ki_compute_comparison(KJIT_OP_NE, nan, nan));
  assert_true(ki_compute_comparison(KJIT_OP_EQ, zero, minus));
  assert_true(ki_is_same_value(nan, nan));
  assert_false(ki_is_same_value(zero, minus));
  assert_true(ki_compute_comparison(KJIT_OP_LT, ki_integer_value(KJIT_I32, -1),
                                    ki_integer_value(KJIT_U64, UINT64_MAX)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_small_floats),
    cmocka_unit_test(test_ways_through_f64),
    cmocka_unit_test(test_f32),
    cmocka_unit_test(test_integers_round_once),
    cmocka_unit_test(test_digits_round_once),
    cmocka_unit_test(test_float_to_integer),
    cmocka_unit_test(test_operators_wrap),
    cmocka_unit_test(test_literals_have_limits),
    cmocka_unit_test(test_text),
    cmocka_unit_test(test_comparisons),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

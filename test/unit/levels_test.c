/* Code for each processor level that this processor supports gives the same results as the
 * independent functions below. Lower levels lack instructions, so LLVM calls functions or uses
 * other instructions. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"
#include "built_compiler.h"
#include "code/disk.h"

static const char source[] =
  "kernel widen(x, f, d) { for i in grid_range(len(x)) { f[i] = f32(x[i])\n d[i] = f64(x[i]) } }\n"
  "kernel narrow(x, h, b) { for i in grid_range(len(x)) { h[i] = f16(x[i])\n b[i] = bf16(x[i]) } "
  "}\n"
  "kernel split(x, m, e) { for i in grid_range(len(x)) { let a, n = frexp(x[i])\n"
  " m[i] = a\n e[i] = n } }\n";

typedef struct level_run {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
} level_run;

static level_run begin(kj_cpu_level level)
{
  level_run run = { 0 };
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "", .shipped_cache = "" };
  config.compiler_path = find_built_compiler();
  assert_int_equal(kjit_create_context(&config, &run.context), KJIT_OK);
  assert_int_equal(kjit_get_device(run.context, KJIT_DEVICE_CPU, 0, &run.device), KJIT_OK);
  assert_int_equal(kjit_parse_module(run.context, "l.kir", source, strlen(source), &run.module),
                   KJIT_OK);
  run.device->level = level;
  return run;
}

static void end(level_run *run)
{
  kjit_release_module(run->module);
  assert_int_equal(kjit_destroy_context(run->context), KJIT_OK);
}

enum { INTEGER = 0, FLOAT = 2, BRAIN = 4 }; /* type codes of DLPack */

static kjit_tensor describe(void *data, int64_t *length, uint8_t code, uint8_t bits)
{
  return (kjit_tensor){ .data = data,
                        .device_type = 1,
                        .rank = 1,
                        .code = code,
                        .bits = bits,
                        .lanes = 1,
                        .shape = length };
}

static void launch(const level_run *run, const char *name, const kjit_tensor tensors[3])
{
  kjit_kernel *kernel = NULL;
  assert_int_equal(kjit_get_kernel(run->module, name, &kernel), KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = run->device };
  kjit_arg arguments[3];
  for (int i = 0; i < 3; i++) arguments[i] = kjit_arg_tensor(&tensors[i]);
  kjit_status status = kjit_launch(kernel, &config, arguments, 3);
  if (status != KJIT_OK) print_error("%s\n", kjit_copy_diagnostics_text(run->context));
  assert_int_equal(status, KJIT_OK);
  assert_int_equal(kjit_synchronize_device(run->device), KJIT_OK);
}

/* ---- independent results ---- */

/* Returns the value of a number of 16 bits whose mantissa has this many bits. */
static double value_of(uint16_t bits, int mantissa_bits)
{
  int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int field = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  if (!field) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp((1 << mantissa_bits) + mantissa, field - bias - mantissa_bits);
}

/* Rounds to nearest even by a search: the bits of positive numbers are in the numbers' order. */
static uint16_t bits_of(double x, int mantissa_bits)
{
  uint16_t infinity = (uint16_t)(0x7fff >> mantissa_bits << mantissa_bits), low = 0,
           high = infinity;
  double size = fabs(x), largest = value_of((uint16_t)(infinity - 1), mantissa_bits);
  while (high - low > 1) {
    uint16_t middle = (uint16_t)((low + high) / 2);
    if (value_of(middle, mantissa_bits) <= size) low = middle;
    else high = middle;
  }
  double below = value_of(low, mantissa_bits), above = value_of(high, mantissa_bits);
  /* infinity counts as the number after the largest one */
  if (high == infinity) above = 2 * largest - value_of((uint16_t)(infinity - 2), mantissa_bits);
  double rest = size - below, missing = above - size;
  bool is_up = rest > missing || (rest == missing && (low & 1));
  return (uint16_t)((is_up ? high : low) | (signbit(x) ? 0x8000 : 0));
}

/* ---- conversion of all 16-bit numbers to f32 and f64 ---- */

enum { ALL = 1 << 16, DRAWN = 4001 };

static void check_wide(float narrow, double wide, double expected)
{
  if (isnan(expected)) {
    assert_true(isnan(narrow) && isnan(wide));
    return;
  }
  assert_true((double)narrow == expected && wide == expected);
  assert_true(!signbit(narrow) == !signbit(expected) && !signbit(wide) == !signbit(expected));
}

static void check_widening(const level_run *run, uint8_t code, int mantissa_bits)
{
  int64_t length = ALL;
  uint16_t *x = malloc(ALL * sizeof *x);
  float *f = malloc(ALL * sizeof *f);
  double *d = malloc(ALL * sizeof *d);
  for (int i = 0; i < ALL; i++) x[i] = (uint16_t)i;
  launch(run, "widen",
         (kjit_tensor[]){ describe(x, &length, code, 16), describe(f, &length, FLOAT, 32),
                          describe(d, &length, FLOAT, 64) });
  for (int i = 0; i < ALL; i++) check_wide(f[i], d[i], value_of((uint16_t)i, mantissa_bits));
  free(x);
  free(f);
  free(d);
}

/* ---- conversion of f32 and f64 to 16-bit numbers ---- */

/* Draws numbers of all sizes of f16 and numbers next to the middle between two of them. */
static double draw(int i)
{
  static const double special[] = { 0.,    -0.,       INFINITY, -INFINITY, NAN,
                                    65504, 65519.999, 65520,    1e300,     -1e-300 };
  if (i < (int)(sizeof special / sizeof *special)) return special[i];
  double x = ldexp(1 + rand() % 4096 / 4096., rand() % 44 - 27); /* NOLINT */
  int by = rand() % 3 - 1;                                       /* NOLINT */
  return (rand() & 1 ? -x : x) * (1 + by * 0x1p-50);             /* NOLINT */
}

static void check_small(uint16_t bits, double x, int mantissa_bits)
{
  bool is_nan = isnan(value_of(bits, mantissa_bits));
  if (isnan(x)) assert_true(is_nan);
  else assert_int_equal(bits, bits_of(x, mantissa_bits));
}

static void check_narrowing(const level_run *run, uint8_t from_bits)
{
  int64_t length = DRAWN;
  static double d[DRAWN];
  static float f[DRAWN];
  static uint16_t h[DRAWN], b[DRAWN];
  for (int i = 0; i < DRAWN; i++) f[i] = (float)(d[i] = draw(i));
  void *x = from_bits == 64 ? (void *)d : f;
  launch(run, "narrow",
         (kjit_tensor[]){ describe(x, &length, FLOAT, from_bits), describe(h, &length, FLOAT, 16),
                          describe(b, &length, BRAIN, 16) });
  for (int i = 0; i < DRAWN; i++) {
    double from = from_bits == 64 ? d[i] : (double)f[i];
    check_small(h[i], from, 10);
    check_small(b[i], from, 7);
  }
}

/* ---- frexp ---- */

static void check_split(const level_run *run)
{
  int64_t length = DRAWN;
  static double x[DRAWN], m[DRAWN];
  static int32_t e[DRAWN];
  for (int i = 0; i < DRAWN; i++)
    x[i] = ldexp(draw(i), i % 2 ? 0 : rand() % 2000 - 1040); /* NOLINT */
  launch(run, "split",
         (kjit_tensor[]){ describe(x, &length, FLOAT, 64), describe(m, &length, FLOAT, 64),
                          describe(e, &length, INTEGER, 32) });
  for (int i = 0; i < DRAWN; i++) {
    int exponent = 0;
    double mantissa = frexp(x[i], &exponent);
    assert_true(mantissa == m[i] || (isnan(mantissa) && isnan(m[i])));
    assert_int_equal(e[i], isfinite(x[i]) ? exponent : 0);
  }
}

static void test_levels(void **state)
{
  (void)state;
  for (int level = KJ_CPU_OWN; level < KJ_CPU_LEVEL_COUNT; level++) {
    if (level != KJ_CPU_OWN && kj_find_missing_feature((kj_cpu_level)level)) continue;
    level_run run = begin((kj_cpu_level)level);
    check_widening(&run, FLOAT, 10);
    check_widening(&run, BRAIN, 7);
    check_narrowing(&run, 32);
    check_narrowing(&run, 64);
    check_split(&run);
    end(&run);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_levels) };
  srand(kj_draw_seed());
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The decimals that kjit prints: each reads back as the number, and no decimal with fewer digits
 * does. The C library's strtod and printf are the reference. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"
#include "support/decimal.h"

static double read_back(const char *text, kjit_type type)
{
  return type == KJIT_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
}

static void expect_shortest(double x, kjit_type type)
{
  char text[KJ_DECIMAL_BYTES], shorter[64];
  kj_decimal d = kj_find_shortest(x, type);
  kj_lay_out_decimal(&d, KJ_MOST_DIGITS, text);
  if (read_back(text, type) != x) fail_msg("%a is printed as %s", x, text);
  if (d.count == 1) return;
  assert_true(d.digits[d.count - 1] != '0');
  snprintf(shorter, sizeof shorter, "%.*e", d.count - 2, x);
  if (read_back(shorter, type) == x) fail_msg("%a is printed as %s, not as %s", x, text, shorter);
}

/* Returns a number with few decimal digits, with random bits, or next to a power of two. */
static double make(int kind)
{
  uint64_t bits = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
  double x;
  memcpy(&x, &bits, sizeof x);
  if (kind == 0) return fabs(x);
  if (kind == 1) return (double)(bits % 100000) / pow(10, rand() % 12);
  if (kind == 2) return (double)(bits % 10000000000000000) * pow(10, rand() % 40 - 25);
  x = ldexp(1, rand() % 240 - 120);
  return kind == 3 ? x : nextafter(x, rand() % 2 ? 0 : INFINITY);
}

static void decimals_are_short_and_exact(void **state)
{
  (void)state;
  srand(kj_draw_seed());
  for (int i = 0; i < 100000; i++) {
    double x = make(i % 5);
    if (isfinite(x) && x > 0) expect_shortest(x, KJIT_F64);
    x = (double)(float)x;
    if (isfinite(x) && x > 0) expect_shortest(x, KJIT_F32);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(decimals_are_short_and_exact) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

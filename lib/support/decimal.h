/* Converts floating-point numbers to decimal digits, independent of the application's locale and
 * rounding mode. It needs only the C library, because the tools compile it as well. */
#ifndef KJ_SUPPORT_DECIMAL_H
#define KJ_SUPPORT_DECIMAL_H

#include <kjit/module.h>

/* The number digits[0] . digits[1] ... * 10^exponent. The last digit is not 0, unless the number is
 * 0. */
enum { KJ_MOST_DIGITS = 17 };
typedef struct kj_decimal {
  char digits[KJ_MOST_DIGITS + 1];
  int count, exponent;
} kj_decimal;

/* Returns the shortest decimal number that rounds to the given number (to nearest, ties to even).
 * If there are several of the same length, returns the nearest one. magnitude must be a finite,
 * non-negative value of the type, which must be KJIT_F16, KJIT_BF16, KJIT_F32 or KJIT_F64. */
kj_decimal kj_find_shortest(double magnitude, kjit_type type);

/* Writes the decimal in a form such as "0.015", "150" or "1.5e-05". The exponent is written if it
 * is less than -4, or at least most_point, which must be at most KJ_MOST_DIGITS. An integer has no
 * point. */
enum { KJ_DECIMAL_BYTES = 32 };
void kj_lay_out_decimal(const kj_decimal *decimal, int most_point, char text[KJ_DECIMAL_BYTES]);

#endif

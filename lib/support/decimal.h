/* Decimal digits of floating-point numbers, in any locale and rounding mode of the application. The
 * file needs the C library alone: the tools compile it, too. */
#ifndef KJ_SUPPORT_DECIMAL_H
#define KJ_SUPPORT_DECIMAL_H

#include <kjit/module.h>

/* digits[0] . digits[1] ... * 10^exponent. The last digit is not 0, except in the number 0. */
enum { KJ_MOST_DIGITS = 17 };
typedef struct kj_decimal {
  char digits[KJ_MOST_DIGITS + 1];
  int count, exponent;
} kj_decimal;

/* Returns the shortest decimal that rounds to the number (to nearest, ties to even), and of several
 * with as few digits the nearest one. magnitude is a value of the type, finite and not negative.
 * type is KJIT_F16, KJIT_BF16, KJIT_F32 or KJIT_F64. */
kj_decimal kj_find_shortest(double magnitude, kjit_type type);

/* Writes "0.015", "150" or "1.5e-05": with an exponent if it is below -4 or at least most_point,
 * which is at most KJ_MOST_DIGITS. A whole number has no point. */
enum { KJ_DECIMAL_BYTES = 32 };
void kj_lay_out_decimal(const kj_decimal *decimal, int most_point, char text[KJ_DECIMAL_BYTES]);

#endif

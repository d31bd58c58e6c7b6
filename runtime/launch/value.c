/* Plain numbers of a host: literals that are known at run time. */
#include <math.h>

#include "launch/evaluate.h"

ki_value kj_number_value(double number)
{
  /* -0.0 stays a float */
  bool is_weak_int = number >= INT32_MIN && number <= INT32_MAX && number == trunc(number) &&
                     !(number == 0 && signbit(number));
  /* the literal `nan` has no payload */
  if (isnan(number)) number = copysign(NAN, number);
  return ki_float_value(is_weak_int ? KJ_WEAK_INT : KJ_WEAK_FLOAT, number);
}

ki_value kj_argument_number(const kjit_arg *argument)
{
  ki_value value = kj_number_value(argument->value.f64);
  return argument->type == KJIT_F64 ? ki_convert_value(value, KJ_WEAK_FLOAT) : value;
}

/* Conversion between numbers and text, independent of the locale. */
#ifndef KJ_IR_NUMBER_H
#define KJ_IR_NUMBER_H

#include "ir/arithmetic.h"

/* Returns the value of a literal of the type. digits is a 0-terminated string. For KJIT_F32 the
 * result is rounded once to f32. For f16 and bf16 the result is a double; when ki_float_value
 * rounds this double to the type, the value is the same as if the digits were rounded directly. The
 * result is infinite if the literal is too large for the type. */
double ki_read_float(const char *digits, kjit_type type);
/* Appends the shortest text that has a point or an exponent and reads back as the same value. The
 * value must be finite. Sign and suffix are omitted. */
void ki_print_float(double value, kjit_type type, kj_buffer *buffer);

/* Appends the value as a literal: `2.5f32`, `-7u64`, `f32(inf)`, or `bitcast(f32, 4290772992u32)`
 * for a NaN whose bits differ from `nan`. Without a suffix the literal is weak: `2.5`, `inf`. */
void ki_print_value(ki_value value, bool has_suffix, kj_buffer *buffer);

#endif

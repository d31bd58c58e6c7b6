/* Numbers to and from text, the same under every locale of the host. */
#ifndef KJ_IR_NUMBER_H
#define KJ_IR_NUMBER_H

#include "ir/arithmetic.h"

/* The value that the 0-terminated digits have as a literal of the type: rounded once to f32 for
 * KJIT_F32, else a double, which ki_float_value rounds to f16 or bf16 as the digits themselves
 * would round. Infinite where it is too large for the type. */
double ki_read_float(const char *digits, kjit_type type);
/* The shortest text with a point or an exponent that reads back as the finite value, without sign
 * and suffix. */
void ki_print_float(double value, kjit_type type, kj_buffer *buffer);

/* The value as a literal: `2.5f32`, `-7u64`, `f32(inf)`, and `bitcast(f32, 4290772992u32)` for a
 * NaN that `nan` is not. Without a suffix it is weak: `2.5`, `inf`. */
void ki_print_value(ki_value value, bool has_suffix, kj_buffer *buffer);

#endif

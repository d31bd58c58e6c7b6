/* What kernels print, on its way to kjit_config.on_print. */
#ifndef KJ_DISPATCH_PRINT_H
#define KJ_DISPATCH_PRINT_H

#include "native/support_routines.h"
#include "code/specialization.h"

/* ---- print.c ---- */

/* Hands text to the host, one caller at a time. lost: lines that are missing, for a warning; where:
 * "the CPU", "cuda:0". */
void kj_deliver_prints(kjit_context *context, kj_buffer *text, uint64_t lost, const char *where);
/* A line by its template in kj_code.prints; values: kn_print_count(header) words. */
void kj_format_line(const char *prints, uint64_t header, const uint64_t *values, kj_buffer *text);

/* A launch on the CPU: a sink for its lines, and their delivery in the order of blocks. */
typedef struct kj_cpu_prints {
  kn_print_sink sink; /* first */
  kjit_context *context;
  const char *prints;
} kj_cpu_prints;
void kj_begin_cpu_prints(kj_cpu_prints *prints, kjit_context *context, const kj_code *code);
void kj_end_cpu_prints(kj_cpu_prints *prints);

/* ---- print_number.c ---- */

/* The shortest text that reads back as the number in a format of so many bits of precision (11 f16,
 * 8 bf16, 24 f32, 53 f64), as Python's repr: "0.1", "1e-05", "inf". is_part: of a complex number,
 * where Python leaves out ".0". */
enum { KJ_NUMBER_BYTES = 40 };
void kj_format_number(double value, int precision, bool is_part, char text[KJ_NUMBER_BYTES]);

/* ---- print_ring.c ---- */

/* Connects a loaded specialization that prints with the ring of its device, which is made when
 * first needed; and ends that, after what it printed was read. */
kjit_status kj_open_prints(kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_close_prints(kjit_specialization *specialization);

#endif

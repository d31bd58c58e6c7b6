/* What kernels leave for the host: word of threads that failed, and lines that they print. */
#ifndef KJ_REPORT_H
#define KJ_REPORT_H

#include "base/runtime.h"
#include "native/support_routines.h"

/* The layer's part of a device whose kernels run later: its records and its ring are read by
 * kj_finish_wait. */
kjit_status kj_open_reports(kjit_device *device, kj_diagnostics *diagnostics);

/* ---- failure.c ---- */

/* Code whose threads may fail. Everything belongs to whoever says it. */
typedef struct kj_failing {
  bool is_func;     /* called by the host: it has no threads to name */
  const char *name; /* of the kernel */
  const kjit_module *module;
  const char *failures; /* kj_code.failures */
} kj_failing;

/* KERNEL, with the place and the message. */
kjit_status kj_report_record(const kj_failing *failing, const kj_failure_record *record,
                             kj_diagnostics *diagnostics);

/* The record of loaded code on a device whose kernels run later, in host memory that they write.
 * `failing` stays until the slot is closed. */
typedef struct kj_failure_slot kj_failure_slot;
kjit_status kj_open_failure_slot(kjit_device *device, const kj_failing *failing,
                                 kj_diagnostics *diagnostics, kj_failure_slot **slot,
                                 uint64_t *address);
/* Nobody reads it any more. The memory, mapped, which threads may write until they have passed. */
void *kj_close_failure_slot(kjit_device *device, kj_failure_slot *slot);

/* Reports the failures that the device has recorded since the last call. KERNEL, or OK where there
 * are none. */
kjit_status kj_take_failures(kjit_device *device, kj_diagnostics *diagnostics);

/* ---- print_text.c ---- */

/* A line by its template in kj_code.prints; values: kn_print_count(header) words. */
void kj_format_line(const char *prints, uint64_t header, const uint64_t *values, kj_buffer *text);

/* Writes the shortest text that reads back as the number in its type, in the form of Python's repr:
 * "0.1", "1e-05", "inf". Parts of complex numbers (is_part) have no ".0", as in Python. */
enum { KJ_NUMBER_BYTES = 40 };
void kj_format_number(double value, kjit_type type, bool is_part, char text[KJ_NUMBER_BYTES]);

/* ---- print.c ---- */

/* A launch on the CPU: a sink for its lines. They are delivered in the order of blocks by the
 * thread that launches: when the launch ends, and before where there are very many. */
typedef struct kj_cpu_prints {
  kn_print_sink sink; /* first */
  kj_runtime *runtime;
  const char *prints;
  pthread_t launcher;
} kj_cpu_prints;
void kj_begin_cpu_prints(kj_cpu_prints *prints, kj_runtime *runtime, const kj_code *code);
void kj_end_cpu_prints(kj_cpu_prints *prints);

/* Connects loaded code that prints with the ring of its device, which is made when first needed.
 * *source: its number there. */
kjit_status kj_open_prints(kjit_device *device, const kj_device_code *loaded, const char *prints,
                           kj_diagnostics *diagnostics, uint32_t *source);
/* After its last launch has passed: what it printed is read, and waits for its delivery. 0: none.
 */
void kj_close_prints(kjit_device *device, uint32_t source);

#endif

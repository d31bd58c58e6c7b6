/* Reports from kernels to the host: failed threads and printed lines. */
#ifndef KJ_REPORT_H
#define KJ_REPORT_H

#include "base/runtime.h"
#include "native/support_routines.h"

/* Attaches the layer to a device whose kernels are queued. Its deliver and report functions read
 * the print ring and the failure records. */
kjit_status kj_open_reports(kjit_device *device, kj_diagnostics *diagnostics);

/* ---- failure.c ---- */

/* Describes code whose threads can fail, for error messages. The caller owns all pointers. */
typedef struct kj_failing {
  bool is_func; /* true if the application calls the code as a func; messages then name no thread */
  const char *name; /* name of the kernel or func */
  const kjit_module *module;
  const kj_code *code;
} kj_failing;

/* Reports KERNEL with the location and the message of a failure. */
kjit_status kj_report_record(const kj_failing *failing, const kj_failure_record *record,
                             kj_diagnostics *diagnostics);

/* Opens a slot with the failure record of loaded code, for devices that queue kernels. The record
 * is in host memory that kernels can write. `failing` must live until the slot is closed. */
typedef struct kj_failure_slot kj_failure_slot;
kjit_status kj_open_failure_slot(kjit_device *device, const kj_failing *failing,
                                 kj_diagnostics *diagnostics, kj_failure_slot **slot,
                                 uint64_t *address);
/* Removes the slot. Returns the mapped memory of its record, which threads may write until their
 * launches have finished. */
void *kj_close_failure_slot(kjit_device *device, kj_failure_slot *slot);

/* Reports the failures that the device has recorded since the last call. Returns KERNEL, or OK if
 * there are none. */
kjit_status kj_take_failures(kjit_device *device, kj_diagnostics *diagnostics);

/* ---- print_text.c ---- */

/* Formats a line with its template in kj_code.prints. values has kn_print_count(header) words. */
void kj_format_line(const char *prints, uint64_t header, const uint64_t *values, kj_buffer *text);

/* Writes a number with the fewest digits that read back as the same number of its type, in the
 * format of Python's repr: "0.1", "1e-05", "inf". Parts of complex numbers (is_part) have no ".0",
 * as in Python. */
enum { KJ_NUMBER_BYTES = 40 };
void kj_format_number(double value, kjit_type type, bool is_part, char text[KJ_NUMBER_BYTES]);

/* ---- print.c ---- */

/* Collects a launch's lines on the CPU. The launching thread delivers them in the order of blocks
 * when the launch ends, or earlier if there are many. */
typedef struct kj_cpu_prints {
  kn_print_sink sink; /* must be the first member */
  kj_runtime *runtime;
  const char *prints;
  pthread_t launcher;
} kj_cpu_prints;
void kj_begin_cpu_prints(kj_cpu_prints *prints, kj_runtime *runtime, const kj_code *code);
void kj_end_cpu_prints(kj_cpu_prints *prints);

/* Connects loaded code that prints with the print ring of its device, which is created if
 * necessary. *source receives the number of the code in the ring. */
kjit_status kj_open_prints(kjit_device *device, const kj_device_code *loaded, const char *prints,
                           kj_diagnostics *diagnostics, uint32_t *source);
/* Called after the last launch of the code has finished. Reads the printed lines into the queue and
 * frees the source number. A source of 0 means that the code has no source number. */
void kj_close_prints(kjit_device *device, uint32_t source);

#endif

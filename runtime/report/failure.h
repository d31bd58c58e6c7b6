/* Threads of kernels that have failed. */
#ifndef KJ_REPORT_FAILURE_H
#define KJ_REPORT_FAILURE_H

#include "code/specialization.h"

/* KERNEL, with the place and the message. */
kjit_status kj_report_failure(const kjit_specialization *specialization,
                              const kj_failure_record *record, kj_diagnostics *diagnostics);
/* The same of a call of a func by the host. */
kjit_status kj_report_function_failure(const kjit_kernel *kernel, const char *failures,
                                       const kj_failure_record *record,
                                       kj_diagnostics *diagnostics);
/* The record of a specialization on a GPU. */
kjit_status kj_open_failures(kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_close_failures(kjit_specialization *specialization);

#endif

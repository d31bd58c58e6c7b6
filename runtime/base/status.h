/* What public calls report, and the clock of the host. */
#ifndef KJ_BASE_STATUS_H
#define KJ_BASE_STATUS_H

#include <stdint.h>

#include "ir/context.h"
#include "ir/module.h"

/* Reports an error without a source place and gives its status back: return kj_error(d,
 * KJIT_ERROR_ARGUMENT, "...", ...). */
kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module,
                        kj_location location, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 5, 6)));

#define KJ_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

/* Host clock for times and the CPU's events. */
uint64_t kj_clock_ns(void);

#endif

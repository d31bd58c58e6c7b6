/* How functions of the runtime report errors of public calls. */
#ifndef KJ_BASE_STATUS_H
#define KJ_BASE_STATUS_H

#include <stdint.h>

#include "ir/context.h"
#include "ir/module.h"
#include "support/host_process.h"

/* Reports an error without a source location and returns its status, for use as `return kj_error(d,
 * KJIT_ERROR_ARGUMENT, "...", ...)`. If diagnostics is NULL, only returns the status. */
kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module,
                        kj_location location, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 5, 6)));

/* Checks whether a public call can begin: the context is not NULL, the process was not forked after
 * the context was created, and no required argument is NULL. missing: the name of a required
 * argument that is NULL; NULL means that no required argument is missing. */
static inline kjit_status kj_check_call(kjit_context *context, const char *function,
                                        const char *missing)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  return missing ? ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", function, missing)
                 : KJIT_OK;
}

#endif

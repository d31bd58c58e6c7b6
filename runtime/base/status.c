#include "base/status.h"

kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...)
{
  va_list list;
  if (!diagnostics) return status;
  va_start(list, format);
  kj_report_list(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, status, format, list);
  va_end(list);
  return status;
}

kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module,
                        kj_location location, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(diagnostics, &module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
  return status;
}

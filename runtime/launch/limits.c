/* Plain numbers that do not fit a type that they meet in the kernel. */
#include "launch/steps.h"

static kjit_status refuse(const kj_call *call, uint32_t index, int64_t value,
                          const kj_number_limit *limit, bool is_below, kj_diagnostics *diagnostics)
{
  const kjit_module *module = call->kernel->module;
  const ki_decl *decl = call->kernel->parameters[index].decl;
  const char *type = ki_type(module->types, limit->type)->name;
  kj_location used = { limit->file, limit->line, limit->column };
  bool is_known = limit->line && limit->file < module->sources.count;
  return kj_error_at(diagnostics, module, is_known ? used : decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: %lld is too %s for %s, the type that the number takes here; "
                     "`%s` must be at %s %lld; to wrap around, write %s(%s)",
                     decl->name, (long long)value, is_below ? "small" : "large", type, decl->name,
                     is_below ? "least" : "most", (long long)limit->value, type, decl->name);
}

kjit_status kj_check_limits(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (!kj_has_limits(parameter)) continue;
    KJ_ASSERT(parameter->kind == KJ_PARAMETER_SCALAR);
    int64_t value = (int64_t)call->bound[parameter->argument].bits[0];
    const kj_number_limit *least = &parameter->least, *most = &parameter->most;
    if (least->type && value < least->value)
      return refuse(call, parameter->argument, value, least, true, diagnostics);
    if (most->type && value > most->value)
      return refuse(call, parameter->argument, value, most, false, diagnostics);
  }
  return KJIT_OK;
}

/* Checks that untyped numbers fit the types to which the kernel converts them. */
#include <stdio.h>

#include "launch/steps.h"

/* Returns a limit's value; see kj_number_limit.value. */
static __int128 limit_of(const kj_bound *number, const kj_number_limit *limit)
{
  return number->type == KJIT_U64 ? (__int128)(uint64_t)limit->value : limit->value;
}

static void print_integer(__int128 integer, char text[32])
{
  bool is_large = integer > INT64_MAX;
  if (is_large) snprintf(text, 32, "%llu", (unsigned long long)integer);
  else snprintf(text, 32, "%lld", (long long)integer);
}

static kjit_status refuse(const kj_call *call, uint32_t index, const kj_number_limit *limit,
                          bool is_below, kj_diagnostics *diagnostics)
{
  const kj_bound *number = &call->bound[index];
  char value[32], bound[32];
  print_integer(number->value.integer, value);
  print_integer(limit_of(number, limit), bound);
  const kjit_module *module = call->kernel->module;
  const ki_decl *decl = call->kernel->parameters[index].decl;
  const char *type = ki_type(module->types, limit->type)->name;
  kj_location used = { limit->file, limit->line, limit->column };
  bool is_known = limit->line && limit->file < module->sources.count;
  return kj_error_at(diagnostics, module, is_known ? used : decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: %s is too %s for %s, the type of the parameter in this call; "
                     "`%s` must be at %s %s; to wrap around, write %s(%s)",
                     decl->name, value, is_below ? "small" : "large", type, decl->name,
                     is_below ? "least" : "most", bound, type, decl->name);
}

kjit_status kj_check_limits(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (!kj_has_limits(parameter)) continue;
    KJ_ASSERT(parameter->kind == KJ_PARAMETER_SCALAR);
    const kj_bound *number = &call->bound[parameter->argument];
    const kj_number_limit *least = &parameter->least, *most = &parameter->most;
    if (least->type && number->value.integer < limit_of(number, least))
      return refuse(call, parameter->argument, least, true, diagnostics);
    if (most->type && number->value.integer > limit_of(number, most))
      return refuse(call, parameter->argument, most, false, diagnostics);
  }
  return KJIT_OK;
}

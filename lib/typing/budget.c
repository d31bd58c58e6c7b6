/* Checks whether a compilation exceeds the limits that the application has set, or has been
 * interrupted by the application. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "typing/typed.h"

static const struct {
  const char *name, *unit, *what;
  uint64_t value, scale;
} rows[] = {
#define KJIT_ROW(NAME, field, value, name, unit, scale, what) { name, unit, what, value, scale },
#include <kjit/limits.def>
#undef KJIT_ROW
};

/* Returns the processor time of this thread. Unlike wall-clock time, it does not depend on how busy
 * the machine is. */
static uint64_t processor_time_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void kt_open_budget(kt_budget *budget, const kj_compile_request *request)
{
  const kjit_compile_limits *limits = request->limits.size_bytes ? &request->limits : NULL;
  *budget = (kt_budget){ .started_ns = processor_time_ns(), .step = "" };
#define KJIT_ROW(NAME, field, value, name, unit, scale, what) \
  budget->limits[KJ_LIMIT_##NAME] = limits ? limits->field : KJIT_NO_LIMIT;
#include <kjit/limits.def>
#undef KJIT_ROW
}

/* Formats a limit or a used amount in the unit of the command-line tools, for example 1.5 s. */
static const char *amount_text(kt_compilation *c, kt_limit limit, uint64_t amount)
{
  uint64_t scale = rows[limit].scale;
  return kj_format(c->arena, scale == 1 ? "%.0f" : "%.4g%s%s", (double)amount / (double)scale,
                   *rows[limit].unit ? " " : "", rows[limit].unit);
}

static _Noreturn void fail_limit(kt_compilation *c, kt_limit limit, uint64_t needed,
                                 kj_location location, const char *large)
{
  kt_fail(c, location, KJIT_ERROR_LIMIT,
          "the compilation limit `%s` is %s, but this compilation needs at least %s: %s",
          rows[limit].name, amount_text(c, limit, c->budget->limits[limit]),
          amount_text(c, limit, needed), large);
}

void kt_check_limit(kt_compilation *c, kt_limit limit, uint64_t needed, kj_location location,
                    const char *format, ...)
{
  if (needed <= c->budget->limits[limit]) return;
  kj_buffer text = { 0 };
  va_list list;
  va_start(list, format);
  kj_append_list(&text, format, list);
  va_end(list);
  fail_limit(c, limit, needed, location, kj_keep_text(c->arena, &text));
}

void kt_look(kt_compilation *c, kj_location location)
{
  const kj_compile_request *request = c->request;
  if (request->interrupts && atomic_load(request->interrupts) != request->interrupts_before)
    kt_fail(c, location, KJIT_ERROR_INTERRUPTED, "the compilation was interrupted, in %s",
            c->budget->step);
  if (c->budget->limits[KJ_LIMIT_TIME] == KJIT_NO_LIMIT) return;
  kt_check_limit(c, KJ_LIMIT_TIME, processor_time_ns() - c->budget->started_ns, location,
                 "it was in %s", c->budget->step);
}

void kt_begin_step(kt_compilation *c, const char *step)
{
  c->budget->step = step;
  kt_look(c, c->request->kernel->decl->location);
}

void kt_begin_stage(const kt_compilation *c, kjit_stage stage)
{
  if (c->request->on_stage) c->request->on_stage(c->request, stage);
}

void kt_report_memory_limit(kt_compilation *c)
{
  kj_location location = (c->chain ? c->chain->function : c->request->kernel)->decl->location;
  kj_report(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_ERROR, KJIT_ERROR_LIMIT,
            "this compilation exceeds the compilation limit `%s`, which is %s, in %s",
            rows[KJ_LIMIT_MEMORY].name,
            amount_text(c, KJ_LIMIT_MEMORY, c->budget->limits[KJ_LIMIT_MEMORY]), c->budget->step);
}

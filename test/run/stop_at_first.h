/* For test programs that stop at the first error and print kjit's message about it. */
#ifndef STOP_AT_FIRST_H
#define STOP_AT_FIRST_H

#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>

static kjit_context *context;
static kjit_module *module;

static void fail_at(const char *file, int line, const char *what)
{
  char *messages = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s:%d: %s\n%s", file, line, what, messages ? messages : "");
  exit(1);
}
#define CHECK(condition) \
  do { \
    if (!(condition)) fail_at(__FILE__, __LINE__, #condition); \
  } while (0)
#define OK(call) CHECK((call) == KJIT_OK)

static kjit_kernel *kernel_of(const char *name)
{
  kjit_kernel *kernel;
  OK(kjit_get_kernel(module, name, &kernel));
  return kernel;
}

#endif

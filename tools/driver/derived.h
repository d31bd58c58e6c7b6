/* Parses derivatives of funcs on the command line: `vjp(f)`, `jvp(grad(f), 0, 1)`. */
#ifndef TOOL_DERIVED_H
#define TOOL_DERIVED_H

#include "scan.h"

/* Returns whether a derivative follows, after blanks. */
bool tool_is_derivative(tool_scanner *scanner);
/* Scans a derivative of a func of the module. The context owns the module of the derivative. */
bool tool_scan_derivative(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                          kjit_function **function);

/* A kernel's adjoint that was named on the command line. */
typedef struct tool_adjoint {
  kjit_module *module; /* released by the caller; NULL if there is none */
  kjit_kernel *kernel;
  const char *name; /* name of the kernel, owned by the module */
} tool_adjoint;

/* Returns whether "adjoint(" follows. */
bool tool_is_adjoint(tool_scanner *scanner);
/* Scans "adjoint(KERNEL, 0, 2)" and makes the adjoint kernel. */
bool tool_scan_adjoint(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                       tool_adjoint *made);

#endif

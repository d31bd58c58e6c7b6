/* Derivatives of funcs on the command line: `vjp(f)`, `jvp(grad(f), 0, 1)`. */
#ifndef TOOL_DERIVED_H
#define TOOL_DERIVED_H

#include "scan.h"

/* Whether a derivative is written here, after blanks. */
bool tool_is_derivative(tool_scanner *scanner);
/* The derivative of a func of the module. The context owns the module of the derivative. */
bool tool_scan_derivative(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                          kjit_function **function);

/* The adjoint of a kernel. */
typedef struct tool_adjoint {
  kjit_module *module; /* released by the caller; NULL: there is none */
  kjit_kernel *kernel;
  const char *name; /* of the kernel; belongs to the module */
} tool_adjoint;

/* Whether "adjoint(" stands here. */
bool tool_is_adjoint(tool_scanner *scanner);
/* Scans "adjoint(KERNEL, 0, 2)" and makes this kernel. */
bool tool_scan_adjoint(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                       tool_adjoint *made);

#endif

/* Derivatives of funcs on the command line: `vjp(f)`, `jvp(grad(f), 0, 1)`. */
#ifndef TOOL_DERIVED_H
#define TOOL_DERIVED_H

#include "scan.h"

/* Whether a derivative is written here, after blanks. */
bool tool_is_derivative(tool_scanner *scanner);
/* The derivative of a func of the module. The context owns the module of the derivative. */
bool tool_scan_derivative(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                          kjit_function **function);

#endif

/* A compilation's signature: given on the command line, or derived from --type, annotations in the
 * source and defaults. */
#ifndef COMPILE_SIGNATURE_H
#define COMPILE_SIGNATURE_H

#include "options.h"

bool compile_make_signature(tool_error *error, kjit_context *context, kjit_kernel *kernel,
                            const char *kernel_name, const compile_options *options,
                            char **signature);
void compile_list_kernels(kjit_context *context, kjit_module *module);

#endif

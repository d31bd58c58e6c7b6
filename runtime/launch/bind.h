/* Arguments of a call bound to the parameters of its kernel. */
#ifndef KJ_LAUNCH_BIND_H
#define KJ_LAUNCH_BIND_H

#include "code/kernel.h"

/* Reads the arguments into call->bound. Errors: ARGUMENT, located at the parameter. */
kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count,
                              kj_diagnostics *diagnostics);
/* Fills bound from a tensor: layout, range, facts. */
kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics);
/* The device of the launch, from the configuration, else from the arrays; then whether every array
 * can be used there. */
kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics);
/* Of a sealed kernel: finds the signature that the arguments match best and makes bound what it
 * has. Errors: ARGUMENT. */
kjit_status kj_match_signature(kj_call *call, const kjit_arg *arguments,
                               kj_diagnostics *diagnostics);

#endif

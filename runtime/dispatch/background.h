/* Compilation beside the host's threads: one worker of a context, started by the first launch that must not wait. */
#ifndef KJ_DISPATCH_BACKGROUND_H
#define KJ_DISPATCH_BACKGROUND_H

#include "dispatch/dispatch.h"

/* Copies what a compilation needs of the call and queues it; the entry is PENDING. False: out of memory, or no thread to be had. */
bool kj_compile_later(const kj_call *call, kjit_specialization *entry);
/* Ends the worker after the compilation under way; those not begun are given up. */
void kj_stop_background(kj_runtime *runtime);

#endif

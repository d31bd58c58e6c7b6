/* Calls of code with as much stack as it needs, on whatever thread of the host. */
#ifndef KJ_BASE_STACK_H
#define KJ_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* call(data), where code that needs so many bytes of stack (kj_code.stack_bytes) may run: on the
 * thread's own stack, or on one that is made for the call. It returns, and is not left by a jump.
 * false: out of memory, nothing was called. */
bool kj_call_with_stack(uint64_t bytes, void (*call)(void *data), void *data);
/* How large a stack of its own is for such code: a multiple of pages, without a guard. */
size_t kj_whole_stack_bytes(uint64_t bytes);

#endif

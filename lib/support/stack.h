/* Calls a function with the stack that it needs, on any thread of the application. */
#ifndef KJ_SUPPORT_STACK_H
#define KJ_SUPPORT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls call(data) with at least `bytes` of stack, on the thread's own stack or on one allocated
 * for the call. For compiled code, `bytes` is kj_code.stack_bytes. The function must return
 * normally; it must not longjmp out of the call. If memory is exhausted, kj_call_with_stack returns
 * false and does not call the function. */
bool kj_call_with_stack(uint64_t bytes, void (*call)(void *data), void *data);
/* Returns the size of a separate stack for code that needs `bytes` of stack: a multiple of the page
 * size, without a guard page. */
size_t kj_whole_stack_bytes(uint64_t bytes);

#endif

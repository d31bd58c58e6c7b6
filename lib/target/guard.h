/* Running what may fault on damaged input. */
#ifndef KJ_TARGET_GUARD_H
#define KJ_TARGET_GUARD_H

#include <stdbool.h>

/* Whether run(data) has returned. If not, it made a signal that ends processes, and has been left
 * in the middle: what it held is lost. One thread at a time; the others wait. run must not jump
 * out. */
bool kj_run_guarded(void (*run)(void *data), void *data);
/* As a fault, where this thread is guarded; else nothing. */
void kj_fault_guarded(void);

#endif

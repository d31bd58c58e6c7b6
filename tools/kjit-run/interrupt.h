/* kjit-run: Ctrl-C while launches run, and the time limit of calls. */
#ifndef RUN_INTERRUPT_H
#define RUN_INTERRUPT_H

#include <kjit/kjit.h>
#include <stdbool.h>

/* From now on SIGINT ends the context's launches; a second one ends the program. */
void run_begin_interrupts(kjit_context *context);
/* SIGINT is what it was before. */
void run_end_interrupts(void);
bool run_was_interrupted(void);
/* The context's launches end when so much time has gone by; 0: no more. Between begin and end. */
void run_set_alarm(uint64_t time_ns);

#endif

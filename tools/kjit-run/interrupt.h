/* Handles Ctrl-C during launches, and the time limit of calls. */
#ifndef RUN_INTERRUPT_H
#define RUN_INTERRUPT_H

#include <kjit/kjit.h>
#include <stdbool.h>

/* After this call the first SIGINT interrupts the context's launches, and a second SIGINT ends the
 * program. */
void run_begin_interrupts(kjit_context *context);
/* Restores the previous handling of SIGINT. */
void run_end_interrupts(void);
bool run_was_interrupted(void);
/* Interrupts the context's launches after this time; 0 cancels the alarm. Call it only between
 * begin and end. */
void run_set_alarm(uint64_t time_ns);

#endif

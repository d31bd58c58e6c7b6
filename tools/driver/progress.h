/* A progress line on stderr for activities that take longer than a second. */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdint.h>

/* Starts the thread that writes the lines. `what` names the activity and must live until the next
 * tool_progress or tool_stop_progress. A total of 0 means that the amount of work is unknown. There
 * is one activity at a time. */
void tool_progress(const char *what, uint64_t total);
/* Sets the amount of finished work. The call is cheap. */
void tool_progress_at(uint64_t done);
void tool_stop_progress(void);    /* Ends the activity. Erases the line if stderr is a terminal. */
void tool_silence_progress(void); /* Switches progress lines off. */

#endif

/* Errors of the tools: a text that says what was expected and what came, and the exit status that
 * goes with it. */
#ifndef TOOL_ERROR_H
#define TOOL_ERROR_H

#include <kjit/kjit.h>
#include <stdbool.h>

typedef enum tool_exit {
  TOOL_EXIT_OK = 0,
  TOOL_EXIT_CHECK = 1,  /* a --check found a difference */
  TOOL_EXIT_USAGE = 2,  /* the command line */
  TOOL_EXIT_IR = 3,     /* the kernel IR, its types, or what a target cannot do */
  TOOL_EXIT_FILE = 4,   /* a file is missing, broken or cannot be written */
  TOOL_EXIT_DEVICE = 5, /* a device, a launch, a driver, memory, or a program that the tool runs */
  TOOL_EXIT_INTERRUPTED = 130, /* by Ctrl-C, as shells have it */
} tool_exit;

typedef struct tool_error {
  tool_exit exit_status;
  char *text; /* NULL: none yet; may have several lines; no newline at the end */
} tool_error;

/* Records the error unless one is there (the first is the cause) and returns false, so that `return
 * tool_fail(...)` reads well. */
__attribute__((format(printf, 3, 4))) bool tool_fail(tool_error *error, tool_exit exit_status,
                                                     const char *format, ...);
/* Puts "prefix: " before the text. */
__attribute__((format(printf, 2, 3))) bool tool_prefix(tool_error *error, const char *format, ...);
/* A failed kjit call: takes the diagnostics of the context. */
bool tool_fail_kjit(tool_error *error, kjit_context *context, kjit_status status,
                    const char *doing);
/* The same of a call that was given a name of the option: one that the module does not have is the
 * command line's fault. */
bool tool_fail_named(tool_error *error, kjit_context *context, kjit_status status,
                     const char *option);
/* Standard output could not be written, for the reason (an errno): the end of the program says so.
 */
void tool_note_output_failure(int reason);
/* Prints "program: error: text" and forgets the error; returns its exit status. */
tool_exit tool_report(tool_error *error);
/* To be called first. Where the program ends, what was printed has to have arrived, by --help,
 * --list and all else: if not, it says so and exits with TOOL_EXIT_FILE. A file that grows over a
 * limit is an error of writing, no signal. */
void tool_watch_output(void);

/* malloc'd; exits when out of memory */
char *tool_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* zeroed; exits when out of memory: for small things */
void *tool_allocate(size_t size_bytes);
char *tool_copy_text(const char *text, size_t length);

#endif

/* Errors of the tools: a message with the expected and the given value, and an exit status. */
#ifndef TOOL_ERROR_H
#define TOOL_ERROR_H

#include <kjit/kjit.h>
#include <stdbool.h>

typedef enum tool_exit {
  TOOL_EXIT_OK = 0,
  TOOL_EXIT_CHECK = 1,  /* a --check found a difference */
  TOOL_EXIT_USAGE = 2,  /* wrong command line */
  TOOL_EXIT_IR = 3,     /* error in the kernel IR or its types, or an unsupported feature of a
                         * target */
  TOOL_EXIT_FILE = 4,   /* a file is missing, broken or cannot be written */
  TOOL_EXIT_DEVICE = 5, /* error of a device, launch or driver, out of memory, or a failure of a
                         * program that the tool runs */
  TOOL_EXIT_INTERRUPTED = 130, /* interrupted by Ctrl-C; the value that shells use */
} tool_exit;

typedef struct tool_error {
  tool_exit exit_status;
  char *text; /* NULL if there is no error; may have several lines; no newline at the end */
} tool_error;

/* Records an error. A later error is ignored, because the first error is the cause. Returns
 * false, so that callers can write `return tool_fail(...)`. */
__attribute__((format(printf, 3, 4))) bool tool_fail(tool_error *error, tool_exit exit_status,
                                                     const char *format, ...);
/* Inserts "prefix: " before the message. */
__attribute__((format(printf, 2, 3))) bool tool_prefix(tool_error *error, const char *format, ...);
/* Records the context's diagnostics for a failed kjit call. */
bool tool_fail_kjit(tool_error *error, kjit_context *context, kjit_status status,
                    const char *doing);
/* Like tool_fail_kjit, for a call with a name from the command line. An unknown name counts as a
 * usage error of the option. */
bool tool_fail_named(tool_error *error, kjit_context *context, kjit_status status,
                     const char *option);
/* Notes that writing to standard output failed, with the errno `reason`. The error is reported when
 * the program exits. */
void tool_note_output_failure(int reason);
/* Prints "program: error: text", clears the error and returns its exit status. */
tool_exit tool_report(tool_error *error);
/* Must be called first in main. At exit, checks that all output to standard output was written,
 * including that of --help and --list. If not, prints an error and exits with TOOL_EXIT_FILE. Also
 * makes exceeding a file size limit a write error instead of a signal. */
void tool_watch_output(void);

/* Returns a malloc'd string; exits if out of memory. */
char *tool_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns zeroed memory; exits if out of memory. Intended for small objects. */
void *tool_allocate(size_t size_bytes);
char *tool_copy_text(const char *text, size_t length);

#endif

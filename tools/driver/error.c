#define _GNU_SOURCE
#include <driver/error.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* every status must have a row, because a missing row would mean success */
_Static_assert(KJIT_STATUS_COUNT == KJIT_ERROR_LIMIT + 1, "exit_of_status lacks a row");
static const tool_exit exit_of_status[KJIT_STATUS_COUNT] = {
  [KJIT_OK] = TOOL_EXIT_OK,
  [KJIT_NOT_READY] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_MISUSE] = TOOL_EXIT_USAGE,
  [KJIT_ERROR_SYNTAX] = TOOL_EXIT_IR,
  [KJIT_ERROR_TYPE] = TOOL_EXIT_IR,
  [KJIT_ERROR_NAME] = TOOL_EXIT_IR,
  [KJIT_ERROR_ARGUMENT] = TOOL_EXIT_IR,
  [KJIT_ERROR_UNSUPPORTED] = TOOL_EXIT_IR,
  [KJIT_ERROR_COMPILE] = TOOL_EXIT_IR,
  [KJIT_ERROR_LIMIT] = TOOL_EXIT_IR,
  [KJIT_ERROR_LAUNCH] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_KERNEL] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_INTERRUPTED] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_REFUSED] = TOOL_EXIT_IR,
  [KJIT_ERROR_COMPILER_LOST] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_DEVICE] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_NO_DEVICE] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_NO_COMPILER] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_MEMORY] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_DEVICE_MEMORY] = TOOL_EXIT_DEVICE,
  [KJIT_ERROR_IO] = TOOL_EXIT_FILE,
  [KJIT_ERROR_FORKED] = TOOL_EXIT_DEVICE,
};

static void out_of_memory(void)
{
  fprintf(stderr, "%s: error: out of memory\n", program_invocation_short_name);
  exit(TOOL_EXIT_DEVICE);
}

static char *format_list(const char *format, va_list list)
{
  char *text;
  if (vasprintf(&text, format, list) < 0) out_of_memory();
  return text;
}

char *tool_format(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *text = format_list(format, list);
  va_end(list);
  return text;
}

void *tool_allocate(size_t size_bytes)
{
  void *memory = calloc(1, size_bytes ? size_bytes : 1);
  if (!memory) out_of_memory();
  return memory;
}

char *tool_copy_text(const char *text, size_t length)
{
  char *copy = tool_allocate(length + 1);
  memcpy(copy, text, length);
  return copy;
}

bool tool_fail(tool_error *error, tool_exit exit_status, const char *format, ...)
{
  if (error->text) return false;
  va_list list;
  va_start(list, format);
  error->text = format_list(format, list);
  va_end(list);
  error->exit_status = exit_status;
  return false;
}

bool tool_prefix(tool_error *error, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *prefix = format_list(format, list);
  va_end(list);
  char *text = tool_format("%s: %s", prefix, error->text ? error->text : "unknown error");
  free(prefix);
  free(error->text);
  error->text = text;
  return false;
}

/* Returns the option of the tools that corresponds to a diagnostic's advice. Diagnostics of the
 * library are written for programs, and may advise, for example, to call an API function. */
static const char *option_for(const char *diagnostics)
{
  static const struct {
    const char *said, *option;
  } rows[] = {
    { "kjit_bind_extern", "\non the command line: --extern NAME=FILE, a shared library (FILE.so) "
                          "for the CPU, PTX or LLVM IR (FILE.ptx, FILE.bc, FILE.ll) for GPUs" },
    { "kjit_set_constant", "\non the command line: --const NAME=VALUE" },
    { "needs a launch configuration",
      "\non the command line: --launch 'KERNEL[GRID, BLOCK](ARGUMENTS)'" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strstr(diagnostics, rows[i].said)) return rows[i].option;
  return "";
}

static bool fail_with_diagnostics(tool_error *error, tool_exit exit_status, kjit_context *context,
                                  kjit_status status, const char *doing)
{
  char *text = kjit_copy_diagnostics_text(context);
  size_t length = text ? strlen(text) : 0;
  while (length && text[length - 1] == '\n') length--;
  if (length)
    tool_fail(error, exit_status, "%s: %s\n%.*s%s", doing, kjit_get_status_name(status),
              (int)length, text, option_for(text));
  else tool_fail(error, exit_status, "%s: %s", doing, kjit_get_status_name(status));
  kjit_free(context, text);
  return false;
}

bool tool_fail_kjit(tool_error *error, kjit_context *context, kjit_status status, const char *doing)
{
  bool known = (unsigned)status < KJIT_STATUS_COUNT;
  return fail_with_diagnostics(error, known ? exit_of_status[status] : TOOL_EXIT_DEVICE, context,
                               status, doing);
}

bool tool_fail_named(tool_error *error, kjit_context *context, kjit_status status,
                     const char *option)
{
  if (status != KJIT_ERROR_NAME) return tool_fail_kjit(error, context, status, option);
  return fail_with_diagnostics(error, TOOL_EXIT_USAGE, context, status, option);
}

/* errno of the first failed write to standard output. Later failures do not provide the cause. */
static int output_failure;

static void flush_output(void)
{
  errno = 0;
  if (fflush(stdout) != 0 && !output_failure) output_failure = errno;
}

void tool_note_output_failure(int reason)
{
  if (!output_failure) output_failure = reason;
}

tool_exit tool_report(tool_error *error)
{
  tool_exit exit_status = error->text ? error->exit_status : TOOL_EXIT_OK;
  flush_output(); /* standard output is flushed first, so that it appears before the error */
  if (error->text) fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, error->text);
  free(error->text);
  *error = (tool_error){ 0 };
  return exit_status;
}

/* An atexit handler, because argp ends the program itself after it has printed the help. */
static void check_output(void)
{
  flush_output();
  if (!output_failure && !ferror(stdout)) return;
  fprintf(stderr, "%s: error: standard output cannot be written%s%s\n",
          program_invocation_short_name, output_failure ? ": " : "",
          output_failure ? strerror(output_failure) : "");
  _exit(TOOL_EXIT_FILE);
}

void tool_watch_output(void)
{
  if (atexit(check_output) != 0) out_of_memory();
  /* with the signal ignored, a write beyond a file size limit fails in the same way as on a full
   * disk */
  signal(SIGXFSZ, SIG_IGN);
}

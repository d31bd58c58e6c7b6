/* Messages with locations. A public call collects its messages and passes them to the context at
 * its end. */
#ifndef KJ_SUPPORT_DIAGNOSTICS_H
#define KJ_SUPPORT_DIAGNOSTICS_H

#include <kjit/status.h>
#include <stdarg.h>
#include <stdbool.h>

#include "support/containers.h"

/* Returns from the function with the failure if the call fails. Always use this macro to propagate
 * a failure. */
#define KJ_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

/* Marks a phrase in the format of an error message, for example KJ_PHRASE(LOOP_BOUND, "write
 * `@most(n)`"). name is a row of phrases.def. kj_report_list does not print the marks.
 * KJ_PHRASE_ARGUMENT marks the argument inside a phrase. Marks are recognized only in formats, so a
 * text in a program cannot imitate them. */
#define KJ_PHRASE(name, text) "\x01" #name "\x02" text "\x03"
#define KJ_PHRASE_ARGUMENT(text) "\x04" text "\x05"
/* Refers to the option `name` of a public call. */
#define KJ_OPTION(name) KJ_PHRASE(OPTION, "options." KJ_PHRASE_ARGUMENT(name))
#define KJ_PHRASE_MARK '\x01'

/* A location in a source of a module. file is an index into the module's sources; line 0 means that
 * there is no location. */
typedef struct kj_location {
  uint32_t file, line, column;
} kj_location;

/* A source to which locations refer. name and text are 0-terminated and live as long as the module.
 * text is NULL if the source is a file of a front end, to which a builder's location or a line
 * directive refers. Messages then quote `shown`, which can be NULL. */
typedef struct kj_source {
  const char *name, *text;
  size_t size_bytes;
  const char *shown;
  size_t shown_bytes;
  bool is_guest; /* the declarations in the source belong to a guest (untrusted code) */
  /* KJIT_RULE_...: the attributes that kernels and funcs in the source have by default */
  uint32_t rules;
  bool is_named; /* the source has no text; directives in another source refer to it */
  /* The module of lib/library whose source this is, or NULL. The source name does not identify such
   * a module, because a source of the application can have the same name. */
  const struct kj_library_source *library;
  bool is_algorithm; /* written by runtime/algorithm */
} kj_source;

typedef struct kj_sources {
  const kj_source *items;
  size_t count;
} kj_sources;

/* The messages of one public call. Messages and their strings are allocated with malloc, so they
 * outlive arenas and modules. Only one thread at a time may use the struct. */
typedef struct kj_diagnostics {
  kjit_diagnostic *items;
  size_t count, capacity;
  size_t error_count;
  kjit_status status; /* status of the first error, or KJIT_OK */
} kj_diagnostics;

/* Adds a message. If location.line is 0, sources can be NULL. When out of memory, the text is lost,
 * but the status is stored. Formats of errors can contain phrases. */
void kj_report(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
               kjit_severity severity, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 6, 7)));
void kj_report_list(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
                    kjit_severity severity, kjit_status status, const char *format, va_list list);
/* Sets the error code of the last message, which must be an error. */
void kj_set_code(kj_diagnostics *diagnostics, kjit_error_code code);
/* Adds the details of a thread's failure to the last message, so that applications need not parse
 * the message. text can be NULL; it is copied. */
void kj_describe_failure(kj_diagnostics *diagnostics, kjit_failure failure, const uint32_t *block,
                         const uint32_t *thread, bool is_whole_block, const char *text);
/* Adds a copy of a message. */
void kj_add_diagnostic(kj_diagnostics *diagnostics, const kjit_diagnostic *given);
void kj_free_diagnostics(kj_diagnostics *diagnostics);
/* Removes all messages except the first `count`, which must not contain an error. */
void kj_drop_diagnostics(kj_diagnostics *diagnostics, size_t count);
/* Appends "file:line:column: error: message", the source line and a caret. A long line is shortened
 * to the part around the caret. */
void kj_print_diagnostic(const kjit_diagnostic *diagnostic, kj_buffer *buffer);
/* Appends all messages as kj_print_diagnostic does. */
void kj_print_diagnostics(const kj_diagnostics *diagnostics, kj_buffer *buffer);

#endif

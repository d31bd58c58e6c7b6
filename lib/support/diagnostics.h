/* Located messages, collected by a pass and handed to the context when the entry point returns. */
#ifndef KJ_SUPPORT_DIAGNOSTICS_H
#define KJ_SUPPORT_DIAGNOSTICS_H

#include <kjit/status.h>
#include <stdarg.h>
#include <stdbool.h>

#include "support/containers.h"

/* The one way to forward a failure. */
#define KJ_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

/* A place in a source of a module; file indexes the module's source table; line 0: no place. */
typedef struct kj_location {
  uint32_t file, line, column;
} kj_location;

/* A source that locations refer to. name and text are 0-terminated and live as long as the module.
 * text is NULL for the source of a front end, which is not kernel IR; a builder's location or a
 * line directive names it. `shown` is then the text that messages quote, or NULL. */
typedef struct kj_source {
  const char *name, *text;
  size_t size_bytes;
  const char *shown;
  size_t shown_bytes;
  bool is_guest;  /* what it declares is a guest's */
  uint32_t rules; /* KJIT_RULE_...: what the host asks of its kernels and funcs */
  bool is_named;  /* no text, and all its places stand in the directives of another source */
  /* The module of lib/library that the source is; NULL for all other sources. The name does not
   * say so: a source of the application may have the same name. */
  const struct kj_library_source *library;
  bool is_algorithm; /* written by runtime/algorithm */
} kj_source;

typedef struct kj_sources {
  const kj_source *items;
  size_t count;
} kj_sources;

/* The sink of one entry point. Messages and everything they point to are malloc'd copies: they
 * outlive arenas and modules. One thread at a time. */
typedef struct kj_diagnostics {
  kjit_diagnostic *items;
  size_t count, capacity;
  size_t error_count;
  kjit_status status; /* of the first error; KJIT_OK: none */
} kj_diagnostics;

/* sources may be NULL when location.line is 0. Out of memory drops the text but keeps the status.
 */
void kj_report(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
               kjit_severity severity, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 6, 7)));
void kj_report_list(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
                    kjit_severity severity, kjit_status status, const char *format, va_list list);
/* Gives the last message, an error, its code. */
void kj_set_code(kj_diagnostics *diagnostics, kjit_error_code code);
/* What the last message says of a thread that failed, for hosts that want no text; text may be NULL
 * and is copied. */
void kj_describe_failure(kj_diagnostics *diagnostics, kjit_failure failure, const uint32_t *block,
                         const uint32_t *thread, bool is_whole_block, const char *text);
/* A copy of a message that was made elsewhere. */
void kj_add_diagnostic(kj_diagnostics *diagnostics, const kjit_diagnostic *given);
void kj_free_diagnostics(kj_diagnostics *diagnostics);
/* Forgets all messages but the first count, none of which is an error. */
void kj_drop_diagnostics(kj_diagnostics *diagnostics, size_t count);
/* "file:line:column: error: message", the source line and a caret; of a long line the part around
 * the caret. */
void kj_print_diagnostic(const kjit_diagnostic *diagnostic, kj_buffer *buffer);
/* The same for all items. */
void kj_print_diagnostics(const kj_diagnostics *diagnostics, kj_buffer *buffer);

#endif

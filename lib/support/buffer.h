/* A growing text in malloc'd memory, handed to the host by kjit_copy_* functions. */
#ifndef KJ_SUPPORT_BUFFER_H
#define KJ_SUPPORT_BUFFER_H

#include <stdarg.h>
#include <stddef.h>

/* Out of memory sets failed and makes every further call do nothing: test it once at the end. */
typedef struct kj_buffer {
  char *text; /* 0-terminated once anything was appended */
  size_t length, capacity;
  int failed;
} kj_buffer;

void kj_append(kj_buffer *buffer, const char *text, size_t length);
void kj_append_text(kj_buffer *buffer, const char *text);
void kj_append_format(kj_buffer *buffer, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void kj_append_list(kj_buffer *buffer, const char *format, va_list list)
  __attribute__((format(printf, 2, 0)));
/* The text, owned by the caller (free()); NULL when out of memory. The buffer is empty afterwards.
 */
char *kj_take_text(kj_buffer *buffer);
void kj_free_buffer(kj_buffer *buffer);

#endif

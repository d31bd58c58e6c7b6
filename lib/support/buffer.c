#include "support/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int reserve(kj_buffer *buffer, size_t more)
{
  if (buffer->failed) return 0;
  if (buffer->length + more + 1 <= buffer->capacity) return 1;
  size_t wanted = buffer->capacity ? buffer->capacity * 2 : 256;
  while (wanted < buffer->length + more + 1) wanted *= 2;
  char *grown = realloc(buffer->text, wanted);
  if (!grown) {
    buffer->failed = 1;
    return 0;
  }
  buffer->text = grown;
  buffer->capacity = wanted;
  return 1;
}

void kj_append(kj_buffer *buffer, const char *text, size_t length)
{
  if (!reserve(buffer, length)) return;
  if (length) memcpy(buffer->text + buffer->length, text, length);
  buffer->length += length;
  buffer->text[buffer->length] = 0;
}

void kj_append_text(kj_buffer *buffer, const char *text) { kj_append(buffer, text, strlen(text)); }

void kj_append_list(kj_buffer *buffer, const char *format, va_list list)
{
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, list);
  if (length >= 0 && reserve(buffer, (size_t)length)) {
    vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, again);
    buffer->length += (size_t)length;
  }
  va_end(again);
}

void kj_append_format(kj_buffer *buffer, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_append_list(buffer, format, list);
  va_end(list);
}

char *kj_take_text(kj_buffer *buffer)
{
  kj_append(buffer, "", 0);
  char *text = buffer->failed ? NULL : buffer->text;
  if (buffer->failed) free(buffer->text);
  *buffer = (kj_buffer){ 0 };
  return text;
}

void kj_free_buffer(kj_buffer *buffer)
{
  free(buffer->text);
  *buffer = (kj_buffer){ 0 };
}

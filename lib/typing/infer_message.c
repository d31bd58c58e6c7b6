/* Warnings and remarks, which wait until it is known that the instance is used. */
#include <stdio.h>
#include <stdlib.h>

#include "typing/infer.h"

enum { REMARK_LIMIT = 4 };

void kj_note_message(kj_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...)
{
  if (s->is_quiet || !s->record) return;
  va_list list;
  va_start(list, format);
  char *text = NULL;
  int length = vasprintf(&text, format, list);
  va_end(list);
  if (length < 0) return;
  kj_message message = { location, severity, kj_copy_string(s->arena, text, (size_t)length) };
  free(text);
  KJ_PUSH(s->arena, &s->record->messages, message);
}

void kj_note_double(kj_scope *s, kj_location location)
{
  if (s->inference->has_double) return;
  kj_note_message(s, location, KJIT_SEVERITY_REMARK,
                  "f64 arithmetic here: a float literal meets no float of another type; a suffix "
                  "(`0.5f32`) or a conversion gives it one");
}

static bool is_same_place(kj_location a, kj_location b)
{
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

static bool is_repeated(const kj_record *record, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (is_same_place(record->messages.items[i].location, record->messages.items[index].location))
      return true;
  return false;
}

void kj_report_messages(kj_inference *inference, const kj_record *record)
{
  for (size_t i = 0; i < record->messages.count; i++) {
    const kj_message *message = &record->messages.items[i];
    bool is_remark = message->severity == KJIT_SEVERITY_REMARK;
    if (is_repeated(record, i) || (is_remark && inference->remark_count++ >= REMARK_LIMIT))
      continue;
    kj_warn(inference->c, message->location, message->severity, "%s", message->text);
  }
}

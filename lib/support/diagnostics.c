#include "support/diagnostics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_line(const kj_source *source, uint32_t line)
{
  if (!source->text || line == 0) return NULL;
  const char *start = source->text, *end = source->text + source->size_bytes;
  while (--line && start < end) {
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    if (!newline) return NULL;
    start = newline + 1;
  }
  const char *stop = memchr(start, '\n', (size_t)(end - start));
  size_t length = (size_t)((stop ? stop : end) - start);
  if (length && start[length - 1] == '\r') length--;
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, start, length);
  copy[length] = 0;
  return copy;
}

static kjit_diagnostic *add_item(kj_diagnostics *diagnostics)
{
  if (diagnostics->count == diagnostics->capacity) {
    size_t wanted = diagnostics->capacity ? diagnostics->capacity * 2 : 4;
    kjit_diagnostic *grown = realloc(diagnostics->items, wanted * sizeof *grown);
    if (!grown) return NULL;
    diagnostics->items = grown;
    diagnostics->capacity = wanted;
  }
  return &diagnostics->items[diagnostics->count];
}

void kj_report_list(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location, kjit_severity severity, kjit_status status,
                    const char *format, va_list list)
{
  if (severity == KJIT_SEVERITY_ERROR) {
    diagnostics->error_count++;
    if (diagnostics->status == KJIT_OK) diagnostics->status = status;
  }
  kjit_diagnostic *item = add_item(diagnostics);
  char *message = NULL;
  if (!item || vasprintf(&message, format, list) < 0) return;
  *item = (kjit_diagnostic){ .severity = severity, .status = status, .message = message };
  if (sources && location.line && location.file < sources->count) {
    const kj_source *source = &sources->items[location.file];
    item->file = strdup(source->name);
    item->line = location.line;
    item->column = location.column;
    item->source_line = copy_line(source, location.line);
  }
  diagnostics->count++;
}

void kj_report(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location, kjit_severity severity, kjit_status status, const char *format,
               ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(diagnostics, sources, location, severity, status, format, list);
  va_end(list);
}

static void free_items(kj_diagnostics *diagnostics, size_t first)
{
  for (size_t i = first; i < diagnostics->count; i++) {
    free((void *)diagnostics->items[i].file);
    free((void *)diagnostics->items[i].message);
    free((void *)diagnostics->items[i].source_line);
  }
}

void kj_free_diagnostics(kj_diagnostics *diagnostics)
{
  free_items(diagnostics, 0);
  free(diagnostics->items);
  *diagnostics = (kj_diagnostics){ 0 };
}

void kj_drop_diagnostics(kj_diagnostics *diagnostics, size_t count)
{
  if (diagnostics->count > count) {
    free_items(diagnostics, count);
    diagnostics->count = count;
  }
  if (count == 0) kj_free_diagnostics(diagnostics); /* a caller that finds no message frees nothing */
  diagnostics->error_count = 0;
  diagnostics->status = KJIT_OK;
}

/* The caret's column counts bytes; tabs are repeated so that it stands below its character. */
static void print_caret(const kjit_diagnostic *item, kj_buffer *buffer)
{
  if (!item->source_line) return;
  kj_append_format(buffer, "  %s\n  ", item->source_line);
  size_t length = strlen(item->source_line);
  for (uint32_t i = 1; i < item->column && i <= length; i++) kj_append(buffer, item->source_line[i - 1] == '\t' ? "\t" : " ", 1);
  kj_append_text(buffer, "^\n");
}

void kj_print_diagnostics(const kj_diagnostics *diagnostics, kj_buffer *buffer)
{
  static const char *const severities[] = { "error", "warning", "remark", "note" };
  for (size_t i = 0; i < diagnostics->count; i++) {
    const kjit_diagnostic *item = &diagnostics->items[i];
    if (item->file) kj_append_format(buffer, "%s:%u:%u: ", item->file, item->line, item->column);
    kj_append_format(buffer, "%s: %s\n", severities[item->severity], item->message);
    print_caret(item, buffer);
  }
}

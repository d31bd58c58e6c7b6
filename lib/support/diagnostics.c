#include "support/diagnostics.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_inside_character(char c) { return ((unsigned char)c & 0xc0) == 0x80; } /* of UTF-8 */

/* Replaces invalid UTF-8 and control characters by question marks, except for the characters in
 * `kept`. A quoted source can contain control characters to which a terminal would react. Columns
 * do not change. text can be NULL. */
static char *clean(char *text, const char *kept)
{
  size_t left = text ? strlen(text) : 0, bytes;
  for (char *at = text; left; at += bytes, left -= bytes) {
    bool is_control = (unsigned char)*at < 0x20 || *at == 0x7f;
    bytes = is_control && !strchr(kept, *at) ? 0 : kj_character_bytes(at, left);
    if (bytes) continue;
    *at = '?';
    bytes = 1;
  }
  return text;
}

static char *copy_line(const kj_source *source, uint32_t line)
{
  KJ_ASSERT(source->text || !source->size_bytes);
  const char *start = source->text ? source->text : source->shown,
             *end = start + (source->text ? source->size_bytes : source->shown_bytes);
  if (!start || line == 0) return NULL;
  while (--line) {
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

/* Shortens a message. A message can contain names and texts of a kernel, which can be as long as
 * the source. */
static char *shorten(char *message)
{
  enum { MOST_BYTES = 8192 }; /* sufficient for the log of an assembler */
  static const char mark[] = "...";
  if (!message || strlen(message) <= MOST_BYTES) return message;
  size_t end = MOST_BYTES - sizeof mark;
  while (end && is_inside_character(message[end])) end--;
  memcpy(message + end, mark, sizeof mark);
  return message;
}

/* ---- phrases ---- */

/* A format without its marks, and the marked phrases with their positions in the message. */
typedef struct marked_format {
  char *format;
  kjit_phrase *phrases;
  size_t count;
} marked_format;

static kjit_phrase_code find_phrase(const char *name, size_t length)
{
  static const char *const names[] = {
#define KJIT_ROW(name, text) #name,
#include <kjit/phrases.def>
#undef KJIT_ROW
  };
  for (int code = 0; code < KJIT_PHRASE_COUNT; code++)
    if (strlen(names[code]) == length && !memcmp(names[code], name, length))
      return (kjit_phrase_code)code;
  KJ_ASSERT(!"a row of phrases.def");
  return KJIT_PHRASE_NONE;
}

/* Returns the message size for a format that is cut off at this point. */
static uint32_t measure_message(const char *format, va_list list)
{
  va_list copy;
  va_copy(copy, list);
  int length = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  return length < 0 ? 0 : (uint32_t)length;
}

/* Removes the marks from a format. `to->format` and `to->phrases` must have sufficient capacity. */
static void read_marks(const char *format, va_list list, marked_format *to)
{
  char *end = to->format;
  *end = 0;
  for (const char *at = format; *at; at++) {
    kjit_phrase *phrase = &to->phrases[to->count];
    const char *stop;
    switch (*at) {
    case KJ_PHRASE_MARK:
      stop = strchr(at, '\x02');
      phrase->code = find_phrase(at + 1, (size_t)(stop - at - 1));
      phrase->first = measure_message(to->format, list);
      at = stop;
      break;
    case '\x03':
      phrase->size_bytes = measure_message(to->format, list) - phrase->first;
      to->count++;
      break;
    case '\x04': phrase->argument_first = measure_message(to->format, list); break;
    case '\x05':
      phrase->argument_bytes = measure_message(to->format, list) - phrase->argument_first;
      break;
    default: *end++ = *at; *end = 0;
    }
  }
}

/* Removes the marks from a message's format. Returns false when out of memory. A format without
 * marks is not copied. */
static bool remove_marks(const char *format, va_list list, marked_format *marked)
{
  size_t count = 0;
  for (const char *at = format; *at; at++) count += *at == KJ_PHRASE_MARK;
  if (!count) return true;
  marked->format = malloc(strlen(format) + 1);
  marked->phrases = calloc(count + 1, sizeof *marked->phrases);
  if (!marked->format || !marked->phrases) return false;
  read_marks(format, list, marked);
  KJ_ASSERT(marked->count == count);
  return true;
}

/* Removes phrases that are after the end of a shortened message. */
static void keep_phrases(marked_format *marked, const char *message)
{
  size_t length = strlen(message);
  while (marked->count &&
         marked->phrases[marked->count - 1].first + marked->phrases[marked->count - 1].size_bytes >
           length)
    marked->count--;
}

static void free_marked(marked_format *marked)
{
  free(marked->format);
  free(marked->phrases);
}

/* ---- messages ---- */

/* Returns a new element for a message. The message must be allocated before the list grows, because
 * a caller that receives no messages does not free the list. When out of memory, frees the message
 * and returns NULL. */
static kjit_diagnostic *add_item(kj_diagnostics *diagnostics, char *message)
{
  if (diagnostics->count == diagnostics->capacity) {
    size_t wanted = KJ_GROWN(diagnostics->capacity, 4);
    kjit_diagnostic *grown = realloc(diagnostics->items, wanted * sizeof *grown);
    if (!grown) {
      free(message);
      return NULL;
    }
    diagnostics->items = grown;
    diagnostics->capacity = wanted;
  }
  return &diagnostics->items[diagnostics->count];
}

static void count_message(kj_diagnostics *diagnostics, kjit_severity severity, kjit_status status)
{
  KJ_ASSERT(severity != KJIT_SEVERITY_ERROR || status != KJIT_OK);
  if (severity != KJIT_SEVERITY_ERROR) return;
  diagnostics->error_count++;
  if (diagnostics->status == KJIT_OK) diagnostics->status = status;
}

void kj_report_list(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
                    kjit_severity severity, kjit_status status, const char *format, va_list list)
{
  count_message(diagnostics, severity, status);
  marked_format marked = { 0 };
  char *message = NULL;
  kjit_diagnostic *item = NULL;
  if (remove_marks(format, list, &marked) &&
      vasprintf(&message, marked.format ? marked.format : format, list) >= 0)
    item = add_item(diagnostics, message);
  if (!item) {
    free_marked(&marked);
    return;
  }
  keep_phrases(&marked, shorten(message));
  KJ_ASSERT(!marked.count || severity == KJIT_SEVERITY_ERROR);
  free(marked.format);
  *item = (kjit_diagnostic){ .size_bytes = sizeof *item,
                             .severity = severity,
                             .status = status,
                             .message = clean(message, "\n\t"),
                             .phrases = marked.phrases,
                             .phrase_count = marked.count };
  if (sources && location.line && location.file < sources->count) {
    const kj_source *source = &sources->items[location.file];
    item->file = clean(strdup(source->name), "");
    item->line = location.line;
    item->column = location.column;
    item->source_line = clean(copy_line(source, location.line), "\t");
  }
  diagnostics->count++;
}

void kj_report(kj_diagnostics *diagnostics, const kj_sources *sources, kj_location location,
               kjit_severity severity, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(diagnostics, sources, location, severity, status, format, list);
  va_end(list);
}

static char *copy_text(const char *text) { return text ? strdup(text) : NULL; }

static kjit_phrase *copy_phrases(const kjit_phrase *phrases, size_t count)
{
  kjit_phrase *copy = count ? malloc(count * sizeof *copy) : NULL;
  return copy ? memcpy(copy, phrases, count * sizeof *copy) : NULL;
}

void kj_add_diagnostic(kj_diagnostics *diagnostics, const kjit_diagnostic *given)
{
  count_message(diagnostics, given->severity, given->status);
  char *message = strdup(given->message);
  kjit_diagnostic *item = message ? add_item(diagnostics, message) : NULL;
  if (!item) return;
  *item = *given;
  item->size_bytes = sizeof *item;
  item->message = message;
  item->file = copy_text(given->file);
  item->source_line = copy_text(given->source_line);
  item->failure_text = copy_text(given->failure_text);
  item->phrases = copy_phrases(given->phrases, given->phrase_count);
  /* out of memory for the phrases; the message itself is complete */
  if (!item->phrases) item->phrase_count = 0;
  diagnostics->count++;
}

void kj_set_code(kj_diagnostics *diagnostics, kjit_error_code code)
{
  KJ_ASSERT(code >= 0 && code < KJIT_CODE_COUNT);
  if (!diagnostics->count) return; /* the message was lost because memory ran out */
  diagnostics->items[diagnostics->count - 1].code = code;
}

void kj_describe_failure(kj_diagnostics *diagnostics, kjit_failure failure, const uint32_t *block,
                         const uint32_t *thread, bool is_whole_block, const char *text)
{
  if (!diagnostics->count) return; /* the message was lost because memory ran out */
  kjit_diagnostic *item = &diagnostics->items[diagnostics->count - 1];
  item->failure = failure;
  item->is_whole_block = is_whole_block;
  for (int d = 0; d < 3; d++) {
    item->block[d] = block[d];
    item->thread[d] = is_whole_block ? 0 : thread[d];
  }
  item->failure_text = text ? clean(strdup(text), "\n\t") : NULL;
}

static void free_items(kj_diagnostics *diagnostics, size_t first)
{
  for (size_t i = first; i < diagnostics->count; i++) {
    free((void *)diagnostics->items[i].file);
    free((void *)diagnostics->items[i].message);
    free((void *)diagnostics->items[i].source_line);
    free((void *)diagnostics->items[i].failure_text);
    free((void *)diagnostics->items[i].phrases);
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
  KJ_ASSERT(count <= diagnostics->count || !diagnostics->items);
  if (diagnostics->count > count) {
    free_items(diagnostics, count);
    diagnostics->count = count;
  }
  /* a caller that receives no messages does not free the list */
  if (count == 0) kj_free_diagnostics(diagnostics);
  diagnostics->error_count = 0;
  diagnostics->status = KJIT_OK;
}

/* The part of a source line that is printed: the whole line, or the part around the caret. */
typedef struct window {
  size_t first, end;
  bool is_cut_before, is_cut_after;
} window;

static window choose_window(const char *line, size_t caret)
{
  enum { WIDTH = 140, BEFORE = 70 };
  size_t length = strlen(line);
  window w = { .end = length };
  if (length <= WIDTH) return w;
  if (caret > length) caret = length;
  w.first = caret > BEFORE ? caret - BEFORE : 0;
  w.end = length - w.first > WIDTH ? w.first + WIDTH : length;
  if (w.end == length) w.first = length - WIDTH;
  while (w.first && is_inside_character(line[w.first])) w.first--;
  while (w.end < length && is_inside_character(line[w.end])) w.end++;
  w.is_cut_before = w.first > 0;
  w.is_cut_after = w.end < length;
  return w;
}

/* Prints the source line and the caret. Columns count bytes. Tabs are copied, and a character of
 * several bytes is counted once, so that the caret is below its character. */
static void print_caret(const kjit_diagnostic *item, kj_buffer *buffer)
{
  static const char mark[] = "...";
  const char *line = item->source_line;
  if (!line) return;
  /* column 0 means that the front end has given only the line */
  size_t caret = item->column ? item->column - 1 : 0;
  window w = choose_window(line, caret);
  kj_append_format(buffer, "  %s%.*s%s\n", w.is_cut_before ? mark : "", (int)(w.end - w.first),
                   line + w.first, w.is_cut_after ? mark : "");
  if (!item->column) return;
  kj_append_text(buffer, "  ");
  if (w.is_cut_before) kj_append_format(buffer, "%*s", (int)sizeof mark - 1, "");
  for (size_t i = w.first; i < caret && i < w.end; i++)
    if (!is_inside_character(line[i])) kj_append(buffer, line[i] == '\t' ? "\t" : " ", 1);
  kj_append_text(buffer, "^\n");
}

void kj_print_diagnostic(const kjit_diagnostic *diagnostic, kj_buffer *buffer)
{
  KJ_ASSERT((unsigned)diagnostic->severity <= KJIT_SEVERITY_NOTE);
  static const char *const severities[] = { "error", "warning", "remark", "note" };
  if (diagnostic->file) kj_append_format(buffer, "%s:%u:", diagnostic->file, diagnostic->line);
  if (diagnostic->file && diagnostic->column) kj_append_format(buffer, "%u:", diagnostic->column);
  if (diagnostic->file) kj_append_text(buffer, " ");
  kj_append_format(buffer, "%s: %s\n", severities[diagnostic->severity], diagnostic->message);
  print_caret(diagnostic, buffer);
}

void kj_print_diagnostics(const kj_diagnostics *diagnostics, kj_buffer *buffer)
{
  for (size_t i = 0; i < diagnostics->count; i++)
    kj_print_diagnostic(&diagnostics->items[i], buffer);
}

#define _GNU_SOURCE
#include <driver/cells.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

char *tool_shown_text(const char *text, size_t length)
{
  enum { MOST = 40 };
  size_t shown = length > MOST ? MOST : length;
  /* if the cut would be inside a UTF-8 character, the text is cut before this character */
  while (shown && shown < length && ((unsigned char)text[shown] & 0xc0) == 0x80) shown--;
  char *copy = tool_copy_text(text, shown);
  for (size_t i = 0; i < shown; i++)
    if ((unsigned char)copy[i] < ' ' || copy[i] == 127) copy[i] = '?';
  if (shown == length) return copy;
  char *cut = tool_format("%s...", copy);
  free(copy);
  return cut;
}

bool tool_fail_cell(const tool_cells *cells, const char *name, const char *format, ...)
{
  va_list list;
  char *message;
  va_start(list, format);
  int length = vasprintf(&message, format, list);
  va_end(list);
  if (length < 0) return tool_fail(cells->error, TOOL_EXIT_DEVICE, "out of memory");
  char *shown = name ? tool_shown_text(name, strlen(name)) : NULL;
  tool_fail(cells->error, TOOL_EXIT_FILE, "%s: line %llu, column %zu%s%s%s: %s", cells->path,
            (unsigned long long)cells->line, cells->column + 1, shown ? " (" : "",
            shown ? shown : "", shown ? ")" : "", message);
  free(shown);
  free(message);
  return false;
}

/* ---- the separator ---- */

/* Counts the unquoted separators of a row. Returns the text after the row. */
static const char *count_separators(const char *at, const char *end, const char *separators,
                                    size_t *counts)
{
  bool is_quoted = false;
  for (; at < end && (is_quoted || *at != '\n'); at++) {
    if (*at == '"') is_quoted = !is_quoted;
    const char *found = is_quoted || !*at ? NULL : strchr(separators, *at);
    if (found) counts[found - separators]++;
  }
  return at < end ? at + 1 : end;
}

/* Chooses a separator that occurs equally often in the first two rows, or otherwise a separator in
 * the first row. */
static char find_separator(const char *text, const char *end)
{
  static const char separators[] = "\t;,";
  enum { COUNT = sizeof separators - 1 };
  size_t first[COUNT] = { 0 }, second[COUNT] = { 0 };
  while (text < end && (*text == '\n' || *text == '\r')) text++;
  text = count_separators(text, end, separators, first);
  count_separators(text, end, separators, second);
  for (int i = 0; i < COUNT; i++)
    if (first[i] && first[i] == second[i]) return separators[i];
  for (int i = 0; i < COUNT; i++)
    if (first[i]) return separators[i];
  return ',';
}

/* ---- reading ---- */

tool_cells tool_open_cells(tool_error *error, const char *path, const char *text, size_t size)
{
  static const char mark[] = "\xef\xbb\xbf";
  const char *end = text + size;
  if (size >= sizeof mark - 1 && !memcmp(text, mark, sizeof mark - 1)) text += sizeof mark - 1;
  return (tool_cells){ .error = error,
                       .path = path,
                       .at = text,
                       .end = end,
                       .separator = find_separator(text, end),
                       .line = 1,
                       .next_line = 1,
                       .is_last = true };
}

void tool_close_cells(tool_cells *cells) { free(cells->buffer); }

static void skip_blank_lines(tool_cells *c)
{
  const char *at = c->at;
  for (; at < c->end && (*at == ' ' || *at == '\r' || *at == '\n'); at++) {
    if (*at != '\n') continue;
    c->at = at + 1;
    c->next_line++;
  }
  if (at == c->end) c->at = at;
}

static bool is_line_end(const tool_cells *c, const char *at)
{
  return at == c->end || *at == '\n' || (*at == '\r' && (at + 1 == c->end || at[1] == '\n'));
}

static bool make_room(tool_cells *c, size_t length)
{
  if (length <= c->capacity) return true;
  free(c->buffer);
  c->capacity = 2 * length;
  c->buffer = malloc(c->capacity);
  if (c->buffer) return true;
  c->capacity = 0;
  return tool_fail_cell(c, NULL, "no memory for a cell of %zu bytes", length);
}

/* Copies a cell that contains doubled quotes. */
static bool unquote(tool_cells *c)
{
  if (!make_room(c, c->length)) return false;
  size_t length = 0;
  for (size_t i = 0; i < c->length; i++) {
    c->buffer[length++] = c->text[i];
    if (c->text[i] == '"') i++;
  }
  c->text = c->buffer;
  c->length = length;
  return true;
}

static bool read_quoted(tool_cells *c)
{
  bool has_quotes = false;
  c->is_quoted = true;
  c->text = ++c->at;
  for (;;) {
    const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
    if (!quote) return tool_fail_cell(c, NULL, "the closing quote of the cell is missing");
    c->at = quote + 1;
    if (c->at == c->end || *c->at != '"') break;
    has_quotes = true;
    c->at++;
  }
  c->length = (size_t)(c->at - 1 - c->text);
  for (const char *at = c->text; (at = memchr(at, '\n', (size_t)(c->at - at))); at++)
    c->next_line++;
  if (has_quotes && !unquote(c)) return false;
  if (is_line_end(c, c->at) || *c->at == c->separator) return true;
  char *shown = tool_shown_text(c->at, strcspn(c->at, "\r\n"));
  tool_fail_cell(c, NULL, "expected the end of the cell after the closing quote, not '%s'", shown);
  free(shown);
  return false;
}

static void read_plain(tool_cells *c)
{
  c->is_quoted = false;
  c->text = c->at;
  while (*c->at != c->separator && !is_line_end(c, c->at)) c->at++;
  c->length = (size_t)(c->at - c->text);
}

/* The text is followed by a 0 byte that is not part of its length, so the byte after the end can be
 * read. */
bool tool_next_cell(tool_cells *c)
{
  if (c->error->text) return false;
  if (c->is_last) {
    skip_blank_lines(c);
    if (c->at == c->end) return false;
    c->column = 0;
  } else {
    c->column++;
  }
  c->line = c->next_line;
  if (*c->at == '"' && c->at < c->end) {
    if (!read_quoted(c)) return false;
  } else {
    read_plain(c);
  }
  if (memchr(c->text, 0, c->length)) return tool_fail_cell(c, NULL, "unexpected byte 0");
  c->is_last = is_line_end(c, c->at);
  if (c->is_last) {
    if (c->at < c->end && *c->at == '\r') c->at++;
    if (c->at < c->end) {
      c->at++;
      c->next_line++;
    }
  } else {
    c->at++;
  }
  return true;
}

/* ---- writing ---- */

void tool_put_cell(FILE *file, const char *text, char separator)
{
  const char special[] = { separator, '"', '\r', '\n', 0 };
  if (*text && !text[strcspn(text, special)]) {
    fputs(text, file);
    return;
  }
  putc('"', file);
  for (; *text; text++) {
    if (*text == '"') putc('"', file);
    putc(*text, file);
  }
  putc('"', file);
}

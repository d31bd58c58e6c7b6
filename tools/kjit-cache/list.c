#include "list.h"

#include <ctype.h>
#include <driver/file.h>
#include <stdlib.h>
#include <string.h>

typedef struct definition {
  char *name, *text;
} definition;

typedef struct definitions {
  definition *items;
  size_t count;
} definitions;

typedef struct list {
  tool_error *error;
  const char *path;
  char *module;                 /* path of the current module, or NULL */
  definitions words, arguments; /* names that `for` and `arg` lines have defined */
  bool (*run)(void *user, const cache_step *step);
  void *user;
} list;

/* ---- definitions ---- */

/* Defines a name and takes ownership of the text. Replaces an earlier definition. */
static void define(definitions *all, const char *name, size_t length, char *text)
{
  size_t i = 0;
  while (i < all->count &&
         (strncmp(all->items[i].name, name, length) != 0 || all->items[i].name[length]))
    i++;
  if (i == all->count) {
    definition *grown = tool_allocate((all->count + 1) * sizeof *grown);
    if (all->count) memcpy(grown, all->items, all->count * sizeof *grown);
    free(all->items);
    all->items = grown;
    all->items[all->count++] = (definition){ .name = tool_copy_text(name, length) };
  }
  free(all->items[i].text);
  all->items[i].text = text;
}

static const char *find(const definitions *all, const char *name, size_t length)
{
  for (size_t i = 0; i < all->count; i++)
    if (!strncmp(all->items[i].name, name, length) && !all->items[i].name[length])
      return all->items[i].text;
  return NULL;
}

static void destroy_definitions(definitions *all)
{
  for (size_t i = 0; i < all->count; i++) {
    free(all->items[i].name);
    free(all->items[i].text);
  }
  free(all->items);
}

/* ---- steps ---- */

static bool is_name_character(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool has_name(const char *text, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)); at++)
    if ((at == text || !is_name_character(at[-1])) && !is_name_character(at[length])) return true;
  return false;
}

/* Returns the definitions of the arguments that the step names, one in each line, followed by the
 * step's own text. */
static char *join_step(const list *l, const char *text)
{
  char *joined = tool_copy_text("", 0);
  for (size_t i = 0; i < l->arguments.count; i++) {
    const definition *argument = &l->arguments.items[i];
    if (!has_name(text, argument->name)) continue;
    char *longer = tool_format("%s%s\n", joined, argument->text);
    free(joined);
    joined = longer;
  }
  char *whole = tool_format("%s%s", joined, text);
  free(joined);
  return whole;
}

/* Runs a step. text is the result of join_step and is modified. */
static bool run_step(list *l, cache_step_kind kind, char *text)
{
  cache_step step = { .kind = kind, .module = l->module };
  size_t lines = 1;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  step.arguments = tool_allocate(lines * sizeof *step.arguments);
  for (char *end; (end = strchr(text, '\n')); text = end + 1) {
    *end = 0;
    step.arguments[step.argument_count++] = text;
  }
  step.text = text;
  bool ok = l->run(l->user, &step);
  free(step.arguments);
  return ok;
}

/* Replaces "{NAME}" everywhere in the text by the word. */
static char *put_word(const char *text, const char *name, size_t name_length, const char *word,
                      size_t word_length)
{
  char *made = tool_copy_text("", 0);
  for (const char *next; *text; text = next) {
    bool is_here =
      *text == '{' && !strncmp(text + 1, name, name_length) && text[1 + name_length] == '}';
    next = is_here ? text + name_length + 2 : text + 1;
    char *longer = is_here ? tool_format("%s%.*s", made, (int)word_length, word)
                           : tool_format("%s%c", made, *text);
    free(made);
    made = longer;
  }
  return made;
}

/* Runs the step once for each word that the first name in braces stands for. */
static bool expand_step(list *l, cache_step_kind kind, char *text)
{
  const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
  if (!open) return run_step(l, kind, text);
  size_t length = close ? (size_t)(close - open - 1) : 0;
  const char *words = close ? find(&l->words, open + 1, length) : NULL;
  if (!words)
    return tool_fail(l->error, TOOL_EXIT_USAGE, "'%.*s' is not defined by an earlier `for` line",
                     close ? (int)(length + 2) : 1, open);
  for (const char *at = words + strspn(words, " \t"); *at; at += strspn(at, " \t")) {
    size_t word_length = strcspn(at, " \t");
    char *made = put_word(text, open + 1, length, at, word_length);
    bool ok = expand_step(l, kind, made);
    free(made);
    if (!ok) return false;
    at += word_length;
  }
  return true;
}

/* ---- lines ---- */

static size_t name_length(const char *text)
{
  size_t length = 0;
  while (is_name_character(text[length])) length++;
  return length;
}

static bool read_for(list *l, const char *text)
{
  size_t length = name_length(text), blanks = strspn(text + length, " \t");
  const char *in = text + length + blanks,
             *words = in + 2 + strspn(in + 2 * !strncmp(in, "in", 2), " \t");
  if (!length || !blanks || strncmp(in, "in", 2) != 0 || (in[2] != ' ' && in[2] != '\t') || !*words)
    return tool_fail(l->error, TOOL_EXIT_USAGE, "expected `for NAME in WORD ...`");
  define(&l->words, text, length, tool_copy_text(words, strlen(words)));
  return true;
}

static bool read_argument(list *l, const char *text)
{
  size_t length = name_length(text);
  if (!length || text[length] != '=')
    return tool_fail(l->error, TOOL_EXIT_USAGE, "expected `arg NAME=VALUE`");
  define(&l->arguments, text, length, tool_copy_text(text, strlen(text)));
  return true;
}

/* Reads a module's path. A relative path starts in the list's directory. */
static bool read_module(list *l, const char *text)
{
  const char *slash = strrchr(l->path, '/');
  free(l->module);
  l->module = *text == '/' || !slash
                ? tool_copy_text(text, strlen(text))
                : tool_format("%.*s%s", (int)(slash + 1 - l->path), l->path, text);
  return *text || tool_fail(l->error, TOOL_EXIT_USAGE, "expected `module FILE`");
}

static bool read_step(list *l, cache_step_kind kind, const char *text)
{
  char *joined = join_step(l, text);
  bool ok = expand_step(l, kind, joined);
  free(joined);
  return ok;
}

static bool read_kernel(list *l, const char *text) { return read_step(l, CACHE_KERNEL, text); }
static bool read_launch(list *l, const char *text) { return read_step(l, CACHE_LAUNCH, text); }
static bool read_call(list *l, const char *text) { return read_step(l, CACHE_CALL, text); }

/* Reads a line without its line end. */
static bool read_line(list *l, char *line)
{
  static const struct {
    const char *word;
    bool (*read)(list *l, const char *text);
  } rows[] = { { "for", read_for },       { "arg", read_argument },  { "module", read_module },
               { "kernel", read_kernel }, { "launch", read_launch }, { "call", read_call } };
  line += strspn(line, " \t\r");
  for (size_t end = strlen(line); end && isspace((unsigned char)line[end - 1]); end--)
    line[end - 1] = 0;
  if (!*line || *line == '#') return true;
  size_t length = strcspn(line, " \t");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strlen(rows[i].word) == length && !strncmp(line, rows[i].word, length))
      return rows[i].read(l, line + length + strspn(line + length, " \t"));
  return tool_fail(
    l->error, TOOL_EXIT_USAGE,
    "a line begins with `for`, `arg`, `module`, `kernel`, `launch`, `call` or `#`, not with `%.*s`",
    (int)length, line);
}

bool cache_read_list(tool_error *error, const char *path,
                     bool (*run)(void *user, const cache_step *step), void *user)
{
  char *text;
  size_t size_bytes, number = 1;
  list l = { .error = error, .path = path, .run = run, .user = user };
  if (!tool_read_file(error, path, &text, &size_bytes)) return false;
  bool ok = true;
  for (char *line = text, *end; ok && line; line = end, number++) {
    end = strchr(line, '\n');
    if (end) *end++ = 0;
    ok = read_line(&l, line);
    if (!ok) tool_prefix(error, "%s:%zu", path, number);
  }
  destroy_definitions(&l.words);
  destroy_definitions(&l.arguments);
  free(l.module);
  free(text);
  return ok;
}

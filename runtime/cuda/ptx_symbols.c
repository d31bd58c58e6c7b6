/* Finds and renames the symbols that PTX defines for other PTX. Renaming prevents collisions in a
 * linker if several inputs, or an input and a kernel, have functions or variables with the same
 * name. If symbols must keep their names, a name that two inputs define is an error. */
#include "cuda/ptx_symbols.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "support/containers.h"

/* ---- words ---- */

/* A NAME can be a symbol, a register or a label. The other words are DIRECTIVE (directives and
 * parts of instructions, such as `.func`) and OTHER (numbers, strings, comments and single
 * characters). */
typedef enum word_kind { END, NAME, DIRECTIVE, OTHER } word_kind;
typedef struct word {
  word_kind kind;
  const char *start;
  size_t length;
} word;

static bool is_name_part(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }
static bool is_name_start(char c)
{
  return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static const char *skip_name(const char *at)
{
  while (is_name_part(*at)) at++;
  return at;
}

static const char *skip_string(const char *at)
{
  for (at++; *at && *at != '"'; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

static const char *skip_comment(const char *at)
{
  const char *end = strstr(at + 2, at[1] == '*' ? "*/" : "\n");
  return end ? end + (at[1] == '*' ? 2 : 1) : at + strlen(at);
}

/* Reads the word at this position, after blanks. */
static word read_word(const char *at)
{
  word w = { OTHER, at, 1 };
  const char *end = at + 1;
  if (!*at) return (word){ END, at, 0 };
  if (is_name_start(*at)) w.kind = NAME, end = skip_name(end);
  else if (*at == '.' && is_name_part(at[1])) w.kind = DIRECTIVE, end = skip_name(end);
  else if (isdigit((unsigned char)*at)) end = skip_name(end);
  else if (*at == '"') end = skip_string(at);
  else if (*at == '/' && (at[1] == '/' || at[1] == '*')) end = skip_comment(at);
  w.length = (size_t)(end - at);
  return w;
}

static bool is_word(const word *w, const char *text)
{
  return w->length == strlen(text) && memcmp(w->start, text, w->length) == 0;
}

/* ---- definitions ---- */

/* Reads the defined name after `.visible`, skipping directives, attributes and the function's
 * results in parentheses. Moves *text to the end of the name. Returns END if there is no name. */
static word take_definition(const char **text)
{
  int depth = 0;
  word w = read_word(*text);
  for (; w.kind != END; w = read_word(*text)) {
    *text += w.length;
    depth += is_word(&w, "(") - is_word(&w, ")");
    if (depth == 0 && w.kind == NAME) return w;
    if (is_word(&w, ";") || is_word(&w, "{") || is_word(&w, "=")) break;
  }
  return (word){ END, *text, 0 };
}

/* Finds the next definition that is visible to other PTX, and moves *text to the end of its name.
 * Sets *is_only if no other input may define the same name. */
static word next_definition(const char **text, bool *is_only)
{
  for (word w = read_word(*text); w.kind != END; w = read_word(*text)) {
    *text += w.length;
    *is_only = is_word(&w, ".visible");
    bool is_shown =
      w.kind == DIRECTIVE && (*is_only || is_word(&w, ".weak") || is_word(&w, ".common"));
    word name = is_shown ? take_definition(text) : w;
    if (is_shown && name.kind == NAME) return name;
  }
  return (word){ END, *text, 0 };
}

static void find_definitions(const char *ptx, kj_map *symbols)
{
  const char *at = ptx;
  bool is_only;
  for (word w = next_definition(&at, &is_only); w.kind == NAME; w = next_definition(&at, &is_only))
    kj_get_entry(symbols, w.start, w.length);
}

/* ---- definitions in several texts ---- */

/* Adds definitions to a map from symbol to input. */
static kjit_status add_definitions(const kj_link_input *input, kj_map *symbols,
                                   kj_diagnostics *diagnostics)
{
  const char *at = input->data;
  bool is_only;
  for (word w = next_definition(&at, &is_only); w.kind == NAME;
       w = next_definition(&at, &is_only)) {
    if (!is_only) continue;
    kj_map_entry *entry = kj_get_entry(symbols, w.start, w.length);
    const kj_link_input *first = entry->value;
    if (first && first != input)
      return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                      "`%.*s` is defined twice in the code that is linked: by `%s` and by `%s`",
                      (int)w.length, w.start, first->name, input->name);
    entry->value = (void *)(uintptr_t)input;
  }
  return KJIT_OK;
}

kjit_status kj_check_ptx_definitions(const kj_link_input *inputs, size_t count,
                                     kj_diagnostics *diagnostics)
{
  jmp_buf on_failure;
  kj_arena arena;
  volatile kjit_status status = KJIT_OK;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    kj_map symbols;
    kj_init_map(&symbols, &arena);
    for (size_t i = 0; i < count && status == KJIT_OK; i++)
      if (inputs[i].format == KJIT_LINK_PTX)
        status = add_definitions(&inputs[i], &symbols, diagnostics);
  } else status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_free_arena(&arena);
  return status;
}

/* ---- uses ---- */

/* State while a statement is read. The first word of a statement, after labels and predicates, is
 * an instruction. An instruction is not a symbol, even if a function has the same name. */
typedef struct statement {
  word first;      /* length 0 at the beginning of a statement */
  bool is_initial; /* set after `=`, where the initial values of a variable begin */
  bool is_guarded; /* set after `@`, before the predicate register */
} statement;

static bool is_blank(const word *w)
{
  bool is_comment = w->length > 1 && *w->start == '/';
  return is_comment || isspace((unsigned char)*w->start);
}

/* Returns whether the word ends the statement. Braces around vectors and initial values do not end
 * a statement. */
static bool ends_statement(const statement *s, const word *w)
{
  bool is_instruction = s->first.length && s->first.kind == NAME;
  if (is_word(w, ";")) return true;
  if (is_word(w, "{") || is_word(w, "}")) return !is_instruction && !s->is_initial;
  return is_word(w, ":") && is_instruction;
}

static void take_word(statement *s, const word *w)
{
  bool is_line = is_word(&s->first, ".loc") || is_word(&s->first, ".file");
  if (is_blank(w)) {
    if (is_line && is_word(w, "\n")) *s = (statement){ 0 };
  } else if (ends_statement(s, w) || (s->is_guarded && w->kind == NAME)) *s = (statement){ 0 };
  else if (!s->first.length && is_word(w, "@")) s->is_guarded = true;
  else if (!s->is_guarded) {
    if (!s->first.length) s->first = *w;
    s->is_initial |= is_word(w, "=");
  }
}

static bool is_label(const char *at)
{
  word w = read_word(at);
  while (w.kind != END && is_blank(&w)) w = read_word(w.start + w.length);
  return is_word(&w, ":");
}

static void rename_symbols(const char *ptx, const kj_map *symbols, const char *suffix,
                           kj_buffer *renamed)
{
  const char *at = ptx;
  statement s = { 0 };
  for (word w = read_word(at); w.kind != END; w = read_word(at)) {
    bool is_instruction = !s.first.length && !s.is_guarded && !is_label(w.start + w.length);
    kj_append(renamed, w.start, w.length);
    if (w.kind == NAME && !is_instruction && kj_find_entry(symbols, w.start, w.length))
      kj_append_text(renamed, suffix);
    take_word(&s, &w);
    at += w.length;
  }
}

char *kj_rename_ptx_symbols(const char *ptx, const char *suffix, size_t *size_bytes)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_buffer renamed = { 0 };
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    kj_map symbols;
    kj_init_map(&symbols, &arena);
    find_definitions(ptx, &symbols);
    rename_symbols(ptx, &symbols, suffix, &renamed);
  } else renamed.failed = 1;
  kj_free_arena(&arena);
  *size_bytes = renamed.length;
  return kj_take_text(&renamed);
}

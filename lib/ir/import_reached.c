/* Imports only the declarations of lib/library that an algorithm's generated source uses.
 *
 * lib/library has about 500 funcs, of which a kernel of an algorithm uses only a few. If the
 * compiled code is in the disk cache, parsing all funcs would take most of the time of the call.
 * The build of libkjit therefore creates a table of all declarations and their positions
 * (cmake/Embed.cmake). A declaration is parsed only if its name is a word of the algorithm's source
 * or of another parsed declaration. Such a word can also be the name of a local variable, so some
 * unused declarations are parsed, but no used declaration is missed. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ir/lexer.h"
#include "ir/module.h"
#include "ir/parser.h"
#include "library/library.h"

typedef struct reacher {
  kj_arena *arena;
  kjit_module *module;
  /* all sources that are imported, directly or indirectly */
  KJ_LIST(const kj_library_source *) sources;
  /* whether each source has been imported; indexed by source */
  bool *is_imported;
  /* whether each declaration is used, directly or indirectly; indexed by declaration */
  bool *is_reached;
  /* For each possible first character of a name, a bit mask of lengths: bit n is set if a
   * declaration's name begins with the character and has n characters. */
  uint64_t lengths[UCHAR_MAX + 1];
  /* list of the reached declarations; the words in the first `read` of them have been processed */
  KJ_LIST(const kj_library_declaration *) reached;
  size_t read;
} reacher;

typedef struct word {
  const char *start;
  size_t length;
} word;

static bool is_of_word(char c) { return ki_word_characters[(unsigned char)c]; }

/* If a comment or a string starts at `at`, returns its end, otherwise `at`. */
static const char *skip_unread(const char *at, const char *end)
{
  if (*at == '#') {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
  }
  if (*at != '"') return at;
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\' && at + 1 < end) at++;
  return at < end ? at + 1 : end;
}

/* Returns the next word and moves *from to its end. At the end of the text, the word length is 0.
 * Numbers are treated as words; no declaration has such a name. */
static word next_word(const char **from, const char *end)
{
  const char *at = *from;
  while (at < end && !is_of_word(*at)) {
    const char *past = skip_unread(at, end);
    at = past > at ? past : at + 1;
  }
  word found = { at, 0 };
  while (at < end && is_of_word(*at)) at++;
  found.length = (size_t)(at - found.start);
  *from = at;
  return found;
}

static bool is_word(word given, const char *text)
{
  return given.length == strlen(text) && memcmp(given.start, text, given.length) == 0;
}

static const char *start_of(const kj_library_declaration *d)
{
  return kj_library[d->source].text + d->start;
}

static const char *end_of(const kj_library_declaration *d)
{
  return kj_library[d->source].text + d->end;
}

static uint64_t length_bit(size_t length) { return (uint64_t)1 << (length & 63); }

/* Returns whether a declaration can have this name. Most words are local variables, which rarely
 * have the first character and the length of a declaration's name. */
static bool may_be_declared(const reacher *r, word name)
{
  return (r->lengths[(unsigned char)*name.start] & length_bit(name.length)) != 0;
}

static int compare_name(word name, const char *declared)
{
  int order = strncmp(name.start, declared, name.length);
  return order ? order : -(declared[name.length] != 0);
}

/* Returns the index of the first declaration whose name is equal to this name or follows it in the
 * order of names. */
static size_t find_first(word name)
{
  size_t low = 0, high = kj_library_declaration_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_name(name, kj_library_declarations[middle].name) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

static void reach(reacher *r, word name)
{
  if (!may_be_declared(r, name)) return;
  for (size_t i = find_first(name); i < kj_library_declaration_count; i++) {
    const kj_library_declaration *d = &kj_library_declarations[i];
    if (compare_name(name, d->name)) return;
    if (!r->is_imported[d->source] || r->is_reached[i]) continue;
    r->is_reached[i] = true;
    KJ_PUSH(r->arena, &r->reached, d);
  }
}

static void reach_words(reacher *r, const char *at, const char *end)
{
  for (word named = next_word(&at, end); named.length; named = next_word(&at, end)) reach(r, named);
}

/* ---- sources ---- */

static bool add_import(reacher *r, const char *name)
{
  size_t i = 0;
  while (i < kj_library_count && strcmp(kj_library[i].name, name)) i++;
  if (i == kj_library_count) return false;
  if (!r->is_imported[i]) KJ_PUSH(r->arena, &r->sources, &kj_library[i]);
  r->is_imported[i] = true;
  return true;
}

/* Adds the sources that the module imports, directly or indirectly. Returns false if it imports a
 * source that is not in lib/library. */
static bool add_imports(reacher *r)
{
  const kjit_module *module = r->module;
  for (size_t i = 0; i < module->imports.count; i++)
    if (!add_import(r, module->imports.items[i].name)) return false;
  for (size_t i = 0; i < r->sources.count; i++)
    for (const char *const *name = r->sources.items[i]->imports; *name; name++)
      if (!add_import(r, *name)) return false;
  return true;
}

static void note_names(reacher *r)
{
  for (size_t i = 0; i < kj_library_declaration_count; i++) {
    const kj_library_declaration *d = &kj_library_declarations[i];
    r->lengths[(unsigned char)*d->name] |= length_bit(d->name_length);
  }
}

/* ---- headers ---- */

/* Returns whether the func ends within the first bytes in its text. Comments that belong to the
 * next declaration can follow it. */
static bool is_short(const kj_library_declaration *d)
{
  enum { SHORT_BYTES = 300 };
  const char *at = start_of(d), *end = end_of(d);
  if (end - at > SHORT_BYTES) end = at + SHORT_BYTES;
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  if (newline && newline > at && newline[-1] == '}') return true;
  while (newline && newline + 1 < end && newline[1] != '}')
    newline = memchr(newline + 1, '\n', (size_t)(end - newline - 1));
  return newline && newline + 1 < end;
}

/* Returns the end of the part of a declaration that is parsed for the module. In a partial module
 * (partial.c), this is only a func's header, without its block. A short func, such as an operator
 * or an element's load, is parsed completely. Short funcs are often passed to other funcs, and the
 * analysis of accesses then needs the bodies of the passed funcs. */
static const char *find_end(const reacher *r, const kj_library_declaration *d)
{
  const char *at = start_of(d), *end = end_of(d);
  if (!r->module->partial || !is_word(next_word(&at, end), "func") || is_short(d)) return end;
  while (at < end && *at != '{') {
    const char *past = skip_unread(at, end);
    at = past > at ? past : at + 1;
  }
  return at;
}

/* Records properties of the imported sources that depend on the bodies of funcs, because a partial
 * module does not contain these bodies. */
static void note_sources(const reacher *r)
{
  kjit_module *module = r->module;
  for (size_t i = 0; module->partial && i < r->sources.count; i++) {
    module->has_tensor_copies |= r->sources.items[i]->has_tensor_copies;
    module->partial->has_grid_ranges |= r->sources.items[i]->has_grid_ranges;
  }
}

/* ---- the module ---- */

static int compare_places(const void *a, const void *b)
{
  const kj_library_declaration *x = *(const kj_library_declaration *const *)a,
                               *y = *(const kj_library_declaration *const *)b;
  return (x->start > y->start) - (x->start < y->start);
}

/* Parses the reached declarations in one source in their original order. */
static void parse(reacher *r, const kj_library_source *source, kj_diagnostics *diagnostics)
{
  ki_part *parts = KJ_NEW_ARRAY(r->arena, ki_part, r->reached.count + 1);
  size_t count = 0;
  for (size_t i = 0; i < r->reached.count; i++) {
    const kj_library_declaration *d = r->reached.items[i];
    if (&kj_library[d->source] == source)
      parts[count++] = (ki_part){ start_of(d), find_end(r, d), d->line };
  }
  ki_add_library_source(r->module, source);
  if (count)
    ki_parse_parts(r->module, (uint32_t)r->module->sources.count - 1, parts, count, diagnostics);
}

static reacher *start_reacher(kjit_module *module)
{
  reacher *r = KJ_NEW(&module->arena, reacher);
  r->arena = &module->arena;
  r->module = module;
  r->is_imported = KJ_NEW_ARRAY(r->arena, bool, kj_library_count + 1);
  r->is_reached = KJ_NEW_ARRAY(r->arena, bool, kj_library_declaration_count + 1);
  return r;
}

/* Parses the reached declarations and the declarations that they use. */
static void parse_all(reacher *r, kj_diagnostics *diagnostics)
{
  while (r->read < r->reached.count) {
    const kj_library_declaration *next = r->reached.items[r->read++];
    reach_words(r, start_of(next), find_end(r, next));
  }
  if (r->reached.count)
    qsort(r->reached.items, r->reached.count, sizeof *r->reached.items, compare_places);
  for (size_t i = 0; i < r->sources.count; i++) parse(r, r->sources.items[i], diagnostics);
}

bool ki_import_reached(kjit_module *module, kj_diagnostics *diagnostics)
{
  reacher *r = start_reacher(module);
  if (!add_imports(r)) return false;
  note_sources(r);
  note_names(r);
  const kj_source *own = &module->sources.items[0];
  reach_words(r, own->text, own->text + own->size_bytes);
  parse_all(r, diagnostics);
  return true;
}

void ki_import_func(kjit_module *module, const char *source, const char *name,
                    kj_diagnostics *diagnostics)
{
  reacher *r = start_reacher(module);
  bool is_known = add_import(r, source);
  KJ_ASSERT(is_known);
  (void)is_known;
  note_names(r);
  reach(r, (word){ name, strlen(name) });
  KJ_ASSERT(r->reached.count == 1);
  parse_all(r, diagnostics);
}

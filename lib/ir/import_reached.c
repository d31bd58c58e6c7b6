/* Imports only those declarations of lib/library that an algorithm's source uses.
 *
 * lib/library has about 500 funcs, and a kernel of an algorithm uses a few of them. If the code is
 * in the disk cache, parsing all of them would take most of the time of the call. This file
 * therefore splits each imported source into its declarations, which begin at the start of a line.
 * It parses a declaration only if its name is a word of the algorithm's source or of another parsed
 * declaration. A word can have another meaning there, such as a local variable, so some unused
 * declarations are parsed, but no used one is missed. */
#include <limits.h>
#include <string.h>

#include "ir/lexer.h"
#include "ir/module.h"
#include "ir/parser.h"
#include "library/library.h"

typedef struct declaration {
  const char *start, *end; /* its text in the source */
  uint32_t line;
  bool is_reached;          /* used directly or through other declarations */
  struct declaration *same; /* the next declaration of the same name, or NULL */
} declaration;

typedef struct imported {
  const kj_library_source *source;
  declaration *declarations;
  size_t count;
} imported;

typedef struct reacher {
  kj_arena *arena;
  KJ_LIST(imported *) sources;
  kj_map declarations; /* from a name to the list of its declarations */
  /* by the first character of a name: one bit for each length of a declaration's name */
  uint64_t lengths[UCHAR_MAX + 1];
  /* work list of reached declarations; the words of the first `read` declarations are done */
  KJ_LIST(declaration *) reached;
  size_t read;
} reacher;

typedef struct word {
  const char *start;
  size_t length;
} word;

static bool is_of_word(char c) { return ki_word_characters[(unsigned char)c]; }

static bool is_letter(char c) { return is_of_word(c) && (c < '0' || c > '9'); }

/* Returns the end of the comment or string that starts at `at`, or `at` if neither starts there. */
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

/* Returns the next word and moves *from to its end. At the end of the text, the word has length 0.
 * Numbers count as words; no declaration has the name of a number. */
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

static void reach(reacher *r, declaration *reached)
{
  if (reached->is_reached) return;
  reached->is_reached = true;
  KJ_PUSH(r->arena, &r->reached, reached);
}

static uint64_t length_bit(word name) { return (uint64_t)1 << (name.length & 63); }

/* Most words are local variables. They rarely have the first character and the length of a
 * declaration's name. */
static bool may_be_declared(const reacher *r, word name)
{
  return (r->lengths[(unsigned char)*name.start] & length_bit(name)) != 0;
}

static void reach_words(reacher *r, const char *at, const char *end)
{
  for (word named = next_word(&at, end); named.length; named = next_word(&at, end)) {
    if (!may_be_declared(r, named)) continue;
    const kj_map_entry *entry = kj_find_entry(&r->declarations, named.start, named.length);
    for (declaration *d = entry ? entry->value : NULL; d; d = d->same) reach(r, d);
  }
}

/* ---- sources ---- */

static const kj_library_source *find_source(word name)
{
  const kj_library_source *source = kj_library;
  while (source->name && !is_word(name, source->name)) source++;
  return source->name ? source : NULL;
}

static bool add_import(reacher *r, word name)
{
  const kj_library_source *source = find_source(name);
  if (!source) return false;
  for (size_t i = 0; i < r->sources.count; i++)
    if (r->sources.items[i]->source == source) return true;
  imported *added = KJ_NEW(r->arena, imported);
  added->source = source;
  KJ_PUSH(r->arena, &r->sources, added);
  return true;
}

/* Returns the start of the next line that begins a declaration, or `end`. */
static const char *find_declaration(const char *at, const char *end, uint32_t *line)
{
  while (at < end && !is_letter(*at)) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? newline + 1 : end;
    ++*line;
  }
  return at;
}

/* Registers a declaration under its name. Returns false for an import of a source that is not in
 * lib/library. An import only adds its source. A `default @wrap` line has no name and affects all
 * declarations of its source, so it always counts as reached. */
static bool name_declaration(reacher *r, declaration *named)
{
  const char *at = named->start;
  word first = next_word(&at, named->end);
  if (is_word(first, "import")) {
    const char *open = memchr(at, '"', (size_t)(named->end - at)),
               *close = open ? memchr(open + 1, '"', (size_t)(named->end - open - 1)) : NULL;
    return close && add_import(r, (word){ open + 1, (size_t)(close - open - 1) });
  }
  if (is_word(first, "extern")) first = next_word(&at, named->end);
  if (is_word(first, "default")) {
    reach(r, named);
    return true;
  }
  word name = next_word(&at, named->end);
  if (name.length) r->lengths[(unsigned char)*name.start] |= length_bit(name);
  kj_map_entry *entry = kj_get_entry(&r->declarations, name.start, name.length);
  named->same = entry->value;
  entry->value = named;
  return true;
}

/* Splits a source into declarations. Returns false if it imports a source outside lib/library. */
static bool divide(reacher *r, imported *source)
{
  const char *at = source->source->text, *end = at + source->source->size_bytes;
  KJ_LIST(declaration) list = { 0 };
  uint32_t line = 1;
  at = find_declaration(at, end, &line);
  while (at < end) {
    declaration found = { .start = at, .line = line };
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    line++;
    at = newline ? find_declaration(newline + 1, end, &line) : end;
    found.end = at;
    KJ_PUSH(r->arena, &list, found);
  }
  source->declarations = list.items;
  source->count = list.count;
  bool is_known = true;
  for (size_t i = 0; i < list.count && is_known; i++)
    is_known = name_declaration(r, &list.items[i]);
  return is_known;
}

/* ---- headers ---- */

/* Whether the func ends within the first bytes of its text. A comment of the next declaration may
 * follow. */
static bool is_short(const declaration *d)
{
  enum { SHORT_BYTES = 300 };
  const char *at = d->start, *end = d->end;
  if (end - at > SHORT_BYTES) end = at + SHORT_BYTES;
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  if (newline && newline > at && newline[-1] == '}') return true;
  while (newline && newline + 1 < end && newline[1] != '}')
    newline = memchr(newline + 1, '\n', (size_t)(end - newline - 1));
  return newline && newline + 1 < end;
}

/* Returns the end of what a partial module has of a declaration: of a func its header, which stands
 * before the block. A short func, such as an operator or the load of an element, is parsed
 * completely, because such a func is often passed to others, and then its accesses count. */
static const char *find_header_end(const declaration *d)
{
  const char *at = d->start;
  if (!is_word(next_word(&at, d->end), "func") || is_short(d)) return d->end;
  while (at < d->end && *at != '{') {
    const char *past = skip_unread(at, d->end);
    at = past > at ? past : at + 1;
  }
  return at;
}

/* A partial module does not have the bodies that tell these properties. */
static void note_sources(const reacher *r, kjit_module *module)
{
  for (size_t i = 0; i < r->sources.count; i++) {
    const kj_library_source *source = r->sources.items[i]->source;
    module->has_tensor_copies |= source->has_tensor_copies;
    module->partial->has_grid_ranges |= source->has_grid_ranges;
  }
}

/* ---- the module ---- */

/* Parses the reached declarations of one source. Imports are never reached: the list of sources
 * already contains the imported ones. */
static void parse(reacher *r, kjit_module *module, const imported *source,
                  kj_diagnostics *diagnostics)
{
  ki_part *parts = KJ_NEW_ARRAY(r->arena, ki_part, source->count + 1);
  size_t count = 0;
  for (size_t i = 0; i < source->count; i++) {
    const declaration *d = &source->declarations[i];
    if (d->is_reached)
      parts[count++] =
        (ki_part){ d->start, module->partial ? find_header_end(d) : d->end, d->line };
  }
  ki_add_library_source(module, source->source);
  ki_parse_parts(module, (uint32_t)module->sources.count - 1, parts, count, diagnostics);
}

bool ki_import_reached(kjit_module *module, kj_diagnostics *diagnostics)
{
  reacher *r = KJ_NEW(&module->arena, reacher);
  r->arena = &module->arena;
  kj_init_map(&r->declarations, r->arena);
  for (size_t i = 0; i < module->imports.count; i++) {
    const char *name = module->imports.items[i].name;
    if (!add_import(r, (word){ name, strlen(name) })) return false;
  }
  for (size_t i = 0; i < r->sources.count; i++) /* divide can add sources */
    if (!divide(r, r->sources.items[i])) return false;
  if (module->partial) note_sources(r, module);
  const kj_source *own = &module->sources.items[0];
  reach_words(r, own->text, own->text + own->size_bytes);
  while (r->read < r->reached.count) {
    const declaration *next = r->reached.items[r->read++];
    reach_words(r, next->start, module->partial ? find_header_end(next) : next->end);
  }
  for (size_t i = 0; i < r->sources.count; i++) parse(r, module, r->sources.items[i], diagnostics);
  return true;
}

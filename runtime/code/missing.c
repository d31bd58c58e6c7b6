/* Explains why a launch without a compiler finds no code: finds the most similar entry in the
 * application's archives and lists the parts of its key that differ. */
#include <stdlib.h>
#include <string.h>

#include "code/archive.h"
#include "code/key_inputs.h"

/* ---- parts of keys ---- */

/* A part of a key that an application can influence. A part's text is the rest of its line; the
 * module's text is the rest of the key. */
typedef struct part_row {
  kj_key_part part;
  /* the words of the message before and after the text that the part has in the most similar entry;
   * if `after` is NULL, the message does not show this text */
  const char *before, *after;
} part_row;

static const part_row parts[] = {
  { KJ_KEY_TARGET, "it is for ", "" },
  { KJ_KEY_SUFFIX, "its architecture has the suffix ", "" },
  { KJ_KEY_PROCESSOR, "it is for ", "" },
  { KJ_KEY_CHECKS, "it was compiled with other run-time checks (", ")" },
  { KJ_KEY_INTERRUPTIBLE, "kjit_config.interruptible was ", "" },
  { KJ_KEY_ARGUMENTS, "it is for (", ")" },
  { KJ_KEY_FACTS, NULL, NULL }, /* this part of the key contains the facts, which append_facts
                                 * shows */
  { KJ_KEY_EXTERNS, "other functions were bound to its extern functions", NULL },
  { KJ_KEY_TEXT, "it was compiled from another source", NULL },
};
enum { PARTS = sizeof parts / sizeof *parts };

typedef struct key_text {
  const char *text;
  size_t size_bytes;
} key_text;

/* Returns a part's text, which is empty if the key does not have the part. */
static key_text find_part(key_text key, kj_key_part part)
{
  const char *word = kj_key_word(part), *end = key.text + key.size_bytes;
  size_t word_bytes = strlen(word);
  for (const char *line = key.text; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t line_bytes = (size_t)((stop ? stop : end) - line);
    if (line_bytes > word_bytes && !memcmp(line, word, word_bytes) && line[word_bytes] == ' ') {
      const char *from = line + word_bytes + 1;
      return (key_text){ from, (size_t)((part == KJ_KEY_TEXT ? end : line + line_bytes) - from) };
    }
    line += line_bytes + 1;
  }
  return (key_text){ "", 0 };
}

static bool has_same_part(key_text a, key_text b, kj_key_part part)
{
  key_text x = find_part(a, part), y = find_part(b, part);
  return x.size_bytes == y.size_bytes && !memcmp(x.text, y.text, x.size_bytes);
}

/* ---- the most similar entry ---- */

typedef struct nearest {
  char *key; /* malloc'd; NULL if no entry has a kernel with this name */
  size_t key_bytes;
  int same; /* measure of similarity: the number of equal parts, plus a larger number if the module
               sources are equal */
} nearest;

static int count_same(key_text wanted, key_text found)
{
  int count = 0;
  for (size_t i = 0; i < PARTS; i++)
    if (has_same_part(wanted, found, parts[i].part))
      count += parts[i].part == KJ_KEY_TEXT ? PARTS : 1;
  return count;
}

static void compare_entry(const kj_archive *archive, uint64_t index, key_text wanted, nearest *best)
{
  size_t size_bytes, key_bytes;
  kj_digest digest;
  char *entry = kj_read_archived(archive, index, &size_bytes);
  const char *key = entry ? kj_read_entry_key(entry, size_bytes, &key_bytes, &digest) : NULL;
  key_text found = { key, key ? key_bytes : 0 };
  if (key && has_same_part(wanted, found, KJ_KEY_KERNEL)) {
    int same = count_same(wanted, found);
    char *copy = same > best->same ? malloc(key_bytes) : NULL;
    if (copy) {
      free(best->key);
      *best = (nearest){ memcpy(copy, key, key_bytes), key_bytes, same };
    }
  }
  free(entry);
}

/* ---- the message ---- */

/* Appends, for example, "avx512f of x86-64-v4" if the processor does not support the entry's
 * level. */
static void append_missing_feature(key_text processor, kj_buffer *text)
{
  const char *feature =
    kj_find_missing_feature(kj_read_level(processor.text, processor.size_bytes));
  if (feature) kj_append_format(text, ", and this processor lacks %s", feature);
}

/* Appends the facts and the block on which the most similar entry relies. Leaves out the relations
 * between arrays, which the key contains only as digits. */
static void append_facts(key_text facts, kj_buffer *text)
{
  static const char relations[] = "relations ";
  const char *end = memmem(facts.text, facts.size_bytes, relations, sizeof relations - 1);
  kj_append_text(text,
                 "it relies on other facts about the arguments, the block and array overlap: ");
  kj_append(text, facts.text, end ? (size_t)(end - facts.text) - 1 : facts.size_bytes);
}

static void append_difference(key_text found, const part_row *row, kj_buffer *text)
{
  key_text part = find_part(found, row->part);
  if (row->part == KJ_KEY_PROCESSOR && !kj_read_level(part.text, part.size_bytes)) {
    kj_append_text(text, "it only runs on the processor model that it was compiled on");
    return;
  }
  if (row->part == KJ_KEY_FACTS) {
    append_facts(part, text);
    return;
  }
  kj_append_text(text, row->before);
  if (row->after) kj_append(text, part.text, part.size_bytes);
  if (row->after) kj_append_text(text, row->after);
  if (row->part == KJ_KEY_PROCESSOR) append_missing_feature(part, text);
}

static void append_differences(key_text wanted, key_text found, kj_buffer *text)
{
  const char *separator = "";
  for (size_t i = 0; i < PARTS; i++) {
    if (has_same_part(wanted, found, parts[i].part)) continue;
    kj_append_text(text, separator);
    append_difference(found, &parts[i], text);
    separator = "; ";
  }
  if (!*separator)
    kj_append_text(text, "it comes from another compiler, or this machine cannot load it");
}

void kj_report_missing(const kj_archive *first, const kj_disk_key *wanted, const char *kernel,
                       const char *signature, kj_diagnostics *diagnostics)
{
  nearest best = { 0 };
  kj_buffer why = { 0 };
  const key_text key = { wanted->text, wanted->size_bytes };
  for (const kj_archive *at = first; at; at = at->next)
    for (uint64_t k = 0; k < at->count; k++) compare_entry(at, k, key, &best);
  if (best.key) {
    kj_append_text(&why, "the most similar compiled code of this kernel differs: ");
    append_differences(key, (key_text){ best.key, best.key_bytes }, &why);
  } else {
    kj_append_text(&why, "no compiled code was imported for a kernel with this name");
  }
  (void)kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                 "kernel `%s` is not compiled for (%s), and there is no compiler: %s", kernel,
                 signature, why.text && !why.failed ? why.text : "out of memory");
  kj_free_buffer(&why);
  free(best.key);
}

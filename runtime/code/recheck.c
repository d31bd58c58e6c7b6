/* In builds with assertions, kjit compiles some of the code that it has found in the disk cache
 * again, and compares the results. A difference means that the key lacks an input of the code, or
 * that the compiler is not deterministic. */
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"

#pragma GCC diagnostic error "-Wmissing-field-initializers"

/* ---- choosing hits ---- */

enum { RECHECK_EVERY = 16 };

uint32_t kj_read_recheck(void)
{
  const char *given = KJ_HAS_ASSERTIONS ? secure_getenv("KJIT_RECHECK") : NULL;
  if (!given) return KJ_HAS_ASSERTIONS ? RECHECK_EVERY : 0;
  return !strcmp(given, "all") ? 1 : (uint32_t)strtoul(given, NULL, 10);
}

/* Returns whether code with this key is compiled again. The choice depends only on the key, so that
 * a failure is reproducible. */
static bool is_chosen(const kj_disk *disk, const kj_disk_key *key)
{
  return disk->recheck_every && key->digest.low % disk->recheck_every == 0;
}

/* Returns whether the code was compiled from sources with the same text as the key's sources. This
 * matters because code of builds with assertions contains source locations
 * (lower/asserted_facts.c), which are not part of the key. */
static bool is_from_same_sources(const kj_code *code, const kj_disk_key *key)
{
  const kj_digest digest = kj_digest_sources(key);
  return key->has_sources && code->made_from[0] == digest.low && code->made_from[1] == digest.high;
}

/* Returns whether this compiler made the code. Another compiler may produce different code for the
 * same key. */
static bool is_by_own_compiler(kj_runtime *runtime, bool is_imported, const kj_disk_key *key)
{
  kj_digest compiler;
  kj_code same = { 0 };
  if (!kj_identify_compiler(runtime, &compiler)) return false;
  if (!is_imported) return true; /* the disk cache returns only code from this compiler */
  bool is_own = kj_find_import(runtime, key, &compiler, &same);
  kj_free_code(&same);
  return is_own;
}

/* ---- comparing ---- */

typedef enum comparison { SAME, TEXT, PARAMETERS, FAILURES, OTHER } comparison;

typedef struct code_field {
  const char *name;
  size_t offset, size_bytes;
  comparison how;
} code_field;

static const code_field fields[] = {
#define CODE_FIELD(field, HOW) \
  { #field, offsetof(kj_code, field), sizeof(((kj_code *)0)->field), HOW },
#define CODE_BLOCK(field, HOW) CODE_FIELD(field, HOW)
#include "code/code_fields.def"
};

/* An initializer with a value for each row. If a field of kj_code has no row, the initializer does
 * not compile. */
#pragma GCC diagnostic ignored "-Wmissing-braces"
static const kj_code no_code = {
#define CODE_FIELD(field, HOW) 0,
#define CODE_BLOCK(field, HOW) { 0 },
#include "code/code_fields.def"
};

static bool is_same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool is_same_field(const code_field *field, const kj_code *a, const kj_code *b)
{
  const char *at = (const char *)a + field->offset, *other = (const char *)b + field->offset;
  switch (field->how) {
  case SAME: return !memcmp(at, other, field->size_bytes);
  case TEXT: return is_same_text(*(char *const *)at, *(char *const *)other);
  case PARAMETERS:
    return a->parameter_count == b->parameter_count &&
           !memcmp(a->parameters, b->parameters, a->parameter_count * sizeof *a->parameters);
  case FAILURES:
    return a->failure_count == b->failure_count &&
           (!a->failure_count ||
            !memcmp(a->failures, b->failures, a->failure_count * sizeof *a->failures));
  case OTHER: return true;
  }
  return false;
}

static _Noreturn void fail(const kj_disk_key *key, const char *format, const char *what)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "code from the disk cache differs from compiled code: ");
  kj_append_format(&text, format, what);
  kj_append_format(&text, ". The key is %016llx%016llx:\n%s", (unsigned long long)key->digest.high,
                   (unsigned long long)key->digest.low, key->text);
  kj_fail_assertion(text.failed ? what : text.text, __FILE__, __LINE__, __func__);
}

static void compare(const kj_disk_key *key, const kj_code *found, const kj_code *made)
{
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!is_same_field(&fields[i], found, made))
      fail(key, "kj_code.%s differs in a second compilation", fields[i].name);
}

/* ---- the second compilation ---- */

/* Returns whether the second compilation failed for a reason that is unrelated to the kernel, such
 * as exhausted memory. */
static bool is_of_surroundings(kjit_status status)
{
  static const kjit_status rows[] = { KJIT_ERROR_MEMORY,   KJIT_ERROR_NO_COMPILER,
                                      KJIT_ERROR_LIMIT,    KJIT_ERROR_INTERRUPTED,
                                      KJIT_ERROR_FORKED,   KJIT_ERROR_COMPILER_LOST,
                                      KJIT_ERROR_NO_DEVICE };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (status == rows[i]) return true;
  return false;
}

bool kj_is_rechecked(kj_runtime *runtime, const kj_code *found, bool is_imported,
                     const kj_disk_key *key)
{
  return is_chosen(runtime->disk, key) && is_from_same_sources(found, key) &&
         is_by_own_compiler(runtime, is_imported, key);
}

void kj_compare_recheck(const kj_disk_key *key, const kj_code *found, const kj_code *made,
                        kjit_status status)
{
  if (status == KJIT_OK) compare(key, found, made);
  else if (!is_of_surroundings(status))
    fail(key, "a second compilation ends with %s", kjit_get_status_name(status));
}

void kj_compare_status(const kj_disk_key *key, kjit_status found, kjit_status made)
{
  if (made != found && !is_of_surroundings(made))
    fail(key, "a second compilation ends with %s", kjit_get_status_name(made));
}

void kj_recheck(kj_call *call, const kjit_specialization *found, const kj_disk_key *key)
{
  kj_diagnostics ignored = { 0 };
  kj_code made = no_code;
  if (!kj_is_rechecked(call->runtime, &found->code, found->is_imported, key)) return;
  kjit_status status = kj_compile_again(call, &found->compiled_for, &ignored, &made);
  kj_free_diagnostics(&ignored);
  kj_compare_recheck(key, &found->code, &made, status);
  kj_free_code(&made);
}

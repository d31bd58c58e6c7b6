/* Serializes compiled code. An entry of the disk cache is:
 *
 *     header | key | the kj_code | parameters | failures | its texts, each with a 0 byte | machine
 * code
 *
 * The checksum covers everything after it. Structs are stored as they are in memory, because the
 * key names the build of libkjit. */
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The strings of a kj_code. A string that is NULL takes no bytes. */
static const size_t texts[] = { offsetof(kj_code, entry), offsetof(kj_code, facts),
                                offsetof(kj_code, failure_texts), offsetof(kj_code, prints),
                                offsetof(kj_code, result_text) };
enum { TEXTS = sizeof texts / sizeof *texts };

static char **text_of(kj_code *code, size_t index)
{
  return (char **)((char *)code + texts[index]);
}

typedef struct header {
  char magic[8];
  kj_digest checksum;
  uint64_t file_bytes;
  kj_digest digest;   /* digest of the key */
  kj_digest compiler; /* identity of the compiler */
  kj_digest sources;  /* digest of the sources to which the failure locations refer */
  uint64_t key_bytes, parameter_count, failure_count, data_bytes, text_bytes[TEXTS];
} header;

static const char magic[8] = { 'k', 'j', 'i', 't', 'c', 'o', 'd', '3' };
enum { CHECKED_FROM = sizeof magic + sizeof(kj_digest) };

kj_digest kj_digest_bytes(const void *data, size_t size_bytes)
{
  XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
  return (kj_digest){ hash.low64, hash.high64 };
}

void kj_note_made(kj_code *code)
{
  const kj_digest digest = kj_digest_bytes(code->data, code->size_bytes);
  code->made[0] = digest.low;
  code->made[1] = digest.high;
}

void kj_note_sources(kj_code *code, const kj_disk_key *key)
{
  const kj_digest digest = kj_digest_sources(key);
  code->made_from[0] = digest.low;
  code->made_from[1] = digest.high;
}

/* ---- writing ---- */

static char *put(char *at, const void *data, size_t size_bytes)
{
  if (size_bytes) memcpy(at, data, size_bytes);
  return at + size_bytes;
}

/* Clears the pointers of a kj_code, and fields that are valid only for the process that compiled
 * it. */
static void forget_pointers(kj_code *code)
{
  code->data = NULL;
  code->parameters = NULL;
  code->failures = NULL;
  for (size_t i = 0; i < TEXTS; i++) *text_of(code, i) = NULL;
  code->infer_time_ns = code->lower_time_ns = code->optimize_time_ns = code->emit_time_ns = 0;
}

void *kj_pack_entry(const kj_disk_key *key, kj_digest compiler, const kj_code *code,
                    size_t *size_bytes)
{
  kj_code plain = *code;
  header h = { .digest = key->digest,
               .compiler = compiler,
               .sources = kj_digest_sources(key),
               .key_bytes = key->size_bytes,
               .parameter_count = code->parameter_count,
               .failure_count = code->failure_count,
               .data_bytes = code->size_bytes };
  h.file_bytes = sizeof h + h.key_bytes + sizeof plain +
                 h.parameter_count * sizeof *code->parameters +
                 h.failure_count * sizeof *code->failures + h.data_bytes;
  for (size_t i = 0; i < TEXTS; i++) {
    const char *text = *text_of(&plain, i);
    h.text_bytes[i] = text ? strlen(text) + 1 : 0;
    h.file_bytes += h.text_bytes[i];
  }
  char *bytes = malloc(h.file_bytes);
  if (!bytes) return NULL;
  memcpy(h.magic, magic, sizeof magic);
  char *at = put(bytes, &h, sizeof h);
  at = put(at, key->text, h.key_bytes);
  forget_pointers(&plain);
  at = put(at, &plain, sizeof plain);
  at = put(at, code->parameters, h.parameter_count * sizeof *code->parameters);
  at = put(at, code->failures, h.failure_count * sizeof *code->failures);
  plain = *code;
  for (size_t i = 0; i < TEXTS; i++) at = put(at, *text_of(&plain, i), h.text_bytes[i]);
  put(at, code->data, h.data_bytes);
  h.checksum = kj_digest_bytes(bytes + CHECKED_FROM, h.file_bytes - CHECKED_FROM);
  memcpy(bytes, &h, sizeof h);
  *size_bytes = h.file_bytes;
  return bytes;
}

/* ---- reading ---- */

/* Checks that the sizes add up to the file size. Each size is at most the file size, so the sum
 * does not overflow. */
static bool has_sizes(const header *h, size_t size_bytes)
{
  if (h->key_bytes > size_bytes || h->parameter_count > size_bytes || h->data_bytes > size_bytes ||
      h->failure_count > size_bytes)
    return false;
  uint64_t sum = sizeof *h + h->key_bytes + sizeof(kj_code) +
                 h->parameter_count * sizeof(kj_parameter) +
                 h->failure_count * sizeof(kj_failure_site) + h->data_bytes;
  for (size_t i = 0; i < TEXTS; i++) {
    if (h->text_bytes[i] > size_bytes) return false;
    sum += h->text_bytes[i];
  }
  return sum == size_bytes && h->text_bytes[0];
}

static bool read_header(const void *bytes, size_t size_bytes, header *h)
{
  if (size_bytes < sizeof *h) return false;
  memcpy(h, bytes, sizeof *h);
  if (memcmp(h->magic, magic, sizeof magic) || h->file_bytes != size_bytes ||
      size_bytes > SIZE_MAX / (4 * sizeof(kj_parameter)) || !has_sizes(h, size_bytes))
    return false;
  return kj_same_digest(h->checksum, kj_digest_bytes((const char *)bytes + CHECKED_FROM,
                                                     size_bytes - CHECKED_FROM));
}

static const char *get(const char *from, void *to, size_t size_bytes)
{
  if (size_bytes) memcpy(to, from, size_bytes);
  return from + size_bytes;
}

/* Returns whether the byte of a bool is 0 or 1; a stored entry can contain any byte. */
static bool is_sound_bool(const bool *value)
{
  unsigned char byte;
  memcpy(&byte, value, 1);
  return byte <= 1;
}

static bool has_sound_bools(const kj_code *code)
{
  const bool *const fields[] = { &code->uses_local,       &code->can_fail,
                                 &code->is_interruptible, &code->has_debug,
                                 &code->is_guest,         &code->uses_dynamic_shared,
                                 &code->is_range_only,    &code->is_watched,
                                 &code->is_plain };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!is_sound_bool(fields[i])) return false;
  return true;
}

/* Checks the failure sites, so that a report can use them. */
static bool has_sound_failures(const kj_code *code)
{
  size_t texts_bytes = code->failure_texts ? strlen(code->failure_texts) : 0;
  if ((code->can_fail && !code->failure_texts) || (code->failure_count && !code->can_fail))
    return false;
  for (uint32_t i = 0; i < code->failure_count; i++) {
    const kj_failure_site *site = &code->failures[i];
    if ((unsigned)site->kind >= KJ_FAILURE_KIND_COUNT || site->text_offset > texts_bytes ||
        site->text_bytes > texts_bytes - site->text_offset)
      return false;
  }
  return true;
}

bool kj_is_sound_code(const kj_code *code)
{
  if (!has_sound_bools(code) || !has_sound_failures(code)) return false;
  if (code->tensor_map_count > KJ_MOST_MAPS || code->shared_array_count > KJ_MOST_SHARED_ARRAYS)
    return false;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *p = &code->parameters[i];
    uint32_t most = p->kind == KJ_PARAMETER_TENSOR_MAP ? code->tensor_map_count : KJ_MAX_RANK;
    if (p->least.type >= KJIT_SCALAR_COUNT || p->most.type >= KJIT_SCALAR_COUNT) return false;
    if (!is_sound_bool(&p->may_write)) return false;
    if (p->dimension >= most || p->offset > code->parameter_bytes ||
        p->size_bytes > code->parameter_bytes - p->offset)
      return false;
  }
  return true;
}

static bool read_texts(const header *h, const char **at, kj_code *code, bool *has_ends)
{
  for (size_t i = 0; i < TEXTS; i++) {
    if (!h->text_bytes[i]) continue;
    char *text = *text_of(code, i) = malloc(h->text_bytes[i]);
    if (!text) return false;
    *at = get(*at, text, h->text_bytes[i]);
    *has_ends = *has_ends && !text[h->text_bytes[i] - 1];
  }
  return true;
}

/* Reads all parts before the machine code. */
static kj_entry_state read_code(const header *h, const char *at, kj_code *code)
{
  bool has_ends = true;
  at = get(at, code, sizeof *code);
  forget_pointers(code);
  if (code->parameter_count != h->parameter_count || code->failure_count != h->failure_count ||
      code->size_bytes != h->data_bytes)
    return KJ_ENTRY_BROKEN;
  code->parameters = malloc(h->parameter_count * sizeof *code->parameters + 1);
  code->failures = malloc(h->failure_count * sizeof *code->failures + 1);
  if (!code->parameters || !code->failures) return KJ_ENTRY_OTHER;
  at = get(at, code->parameters, h->parameter_count * sizeof *code->parameters);
  at = get(at, code->failures, h->failure_count * sizeof *code->failures);
  if (!read_texts(h, &at, code, &has_ends)) return KJ_ENTRY_OTHER;
  return has_ends && kj_is_sound_code(code) && !code->is_plain ? KJ_ENTRY_WHOLE : KJ_ENTRY_BROKEN;
}

/* Returns whether the code has line numbers of its sources. */
static bool has_places(const kj_code *code)
{
  bool has = code->can_fail;
  for (uint32_t i = 0; i < code->parameter_count && !has; i++)
    has = code->parameters[i].least.line || code->parameters[i].most.line;
  return has;
}

/* Clears the locations at which untyped numbers are converted, because they refer to other sources.
 * Without them, messages name the parameter. */
static void forget_places(kj_code *code)
{
  for (uint32_t i = 0; i < code->parameter_count; i++)
    code->parameters[i].least.line = code->parameters[i].most.line = 0;
}

/* Moves the machine code, which is the last part of the entry, to the start of the block of bytes.
 * A loader needs aligned code. A copy in new memory would take several times as long, because each
 * new page is a page fault. */
static void *take_data(char *bytes, size_t size_bytes, size_t data_bytes)
{
  memmove(bytes, bytes + size_bytes - data_bytes, data_bytes);
  bytes[data_bytes] = 0;
  char *shorter = realloc(bytes, data_bytes + 1);
  return shorter ? shorter : bytes;
}

static kj_entry_state unpack(const char *start, size_t size_bytes, const kj_disk_key *key,
                             const kj_digest *compiler, kj_code *code)
{
  header h;
  if (!read_header(start, size_bytes, &h)) return KJ_ENTRY_BROKEN;
  if (h.key_bytes != key->size_bytes || memcmp(start + sizeof h, key->text, h.key_bytes))
    return KJ_ENTRY_OTHER;
  if (compiler && !kj_same_digest(h.compiler, *compiler)) return KJ_ENTRY_OTHER;
  kj_code read = { 0 };
  kj_entry_state state = read_code(&h, start + sizeof h + h.key_bytes, &read);
  bool is_same_text = state != KJ_ENTRY_WHOLE || !has_places(&read) ||
                      (key->has_sources && kj_same_digest(h.sources, kj_digest_sources(key)));
  if (!is_same_text && read.can_fail) state = KJ_ENTRY_OTHER;
  else if (!is_same_text) forget_places(&read);
  if (state == KJ_ENTRY_WHOLE) *code = read;
  else kj_free_code(&read);
  return state;
}

kj_entry_state kj_take_entry(void *bytes, size_t size_bytes, const kj_disk_key *key,
                             const kj_digest *compiler, kj_code *code)
{
  kj_entry_state state = unpack(bytes, size_bytes, key, compiler, code);
  if (state == KJ_ENTRY_WHOLE) code->data = take_data(bytes, size_bytes, code->size_bytes);
  else free(bytes);
  return state;
}

const char *kj_read_entry_key(const void *bytes, size_t size_bytes, size_t *key_bytes,
                              kj_digest *digest)
{
  header h;
  if (!read_header(bytes, size_bytes, &h)) return NULL;
  *key_bytes = h.key_bytes;
  *digest = h.digest;
  return (const char *)bytes + sizeof h;
}

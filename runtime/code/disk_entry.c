/* Compiled code as bytes. One entry of the disk cache:
 *
 *   header | key | the kj_code | parameters | its texts, each with a 0 | machine code
 *
 * The checksum is over all that follows it. The key names the build of libkjit, so that structs are
 * stored as they are in memory. A blob, which another process takes in, is a header and entries,
 * each behind its size; its checksum, too, is over all that follows it. */
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>

#include "code/child.h"
#include "code/disk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The texts of a kj_code. One that is NULL has no bytes. */
static const size_t texts[] = { offsetof(kj_code, entry), offsetof(kj_code, facts),
                                offsetof(kj_code, failures), offsetof(kj_code, prints) };
enum { TEXTS = sizeof texts / sizeof *texts };

static char **text_of(kj_code *code, size_t index)
{
  return (char **)((char *)code + texts[index]);
}

typedef struct header {
  char magic[8];
  kj_digest checksum;
  uint64_t file_bytes;
  kj_digest digest;   /* of the key */
  kj_digest compiler; /* that made the code */
  kj_digest sources;  /* that the places in failures are in */
  uint64_t key_bytes, parameter_count, data_bytes, text_bytes[TEXTS];
} header;

static const char magic[8] = { 'k', 'j', 'i', 't', 'c', 'o', 'd', '1' };
/* of both headers */
enum { CHECKED_FROM = sizeof magic + sizeof(kj_digest) };

kj_digest kj_digest_bytes(const void *data, size_t size_bytes)
{
  XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
  return (kj_digest){ hash.low64, hash.high64 };
}

/* ---- writing ---- */

static char *put(char *at, const void *data, size_t size_bytes)
{
  if (size_bytes) memcpy(at, data, size_bytes);
  return at + size_bytes;
}

/* Without its pointers, and without what is of whoever compiled it and not of whoever loads it. */
static void forget_pointers(kj_code *code)
{
  code->data = NULL;
  code->parameters = NULL;
  for (size_t i = 0; i < TEXTS; i++) *text_of(code, i) = NULL;
  code->infer_time_ns = code->lower_time_ns = code->optimize_time_ns = code->emit_time_ns = 0;
}

void *kj_pack_entry(const kj_disk_key *key, kj_digest compiler, const kj_code *code,
                    size_t *size_bytes)
{
  kj_code plain = *code;
  header h = { .digest = key->digest,
               .compiler = compiler,
               .sources = key->sources,
               .key_bytes = key->size_bytes,
               .parameter_count = code->parameter_count,
               .data_bytes = code->size_bytes };
  h.file_bytes = sizeof h + h.key_bytes + sizeof plain +
                 h.parameter_count * sizeof *code->parameters + h.data_bytes;
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
  plain = *code;
  for (size_t i = 0; i < TEXTS; i++) at = put(at, *text_of(&plain, i), h.text_bytes[i]);
  put(at, code->data, h.data_bytes);
  h.checksum = kj_digest_bytes(bytes + CHECKED_FROM, h.file_bytes - CHECKED_FROM);
  memcpy(bytes, &h, sizeof h);
  *size_bytes = h.file_bytes;
  return bytes;
}

/* ---- reading ---- */

/* The sizes add up to the file's: none is larger than it, so that no sum overflows. */
static bool has_sizes(const header *h, size_t size_bytes)
{
  if (h->key_bytes > size_bytes || h->parameter_count > size_bytes || h->data_bytes > size_bytes)
    return false;
  uint64_t sum = sizeof *h + h->key_bytes + sizeof(kj_code) +
                 h->parameter_count * sizeof(kj_parameter) + h->data_bytes;
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
      size_bytes > SIZE_MAX / (2 * sizeof(kj_parameter)) || !has_sizes(h, size_bytes))
    return false;
  return kj_same_digest(h->checksum, kj_digest_bytes((const char *)bytes + CHECKED_FROM,
                                                     size_bytes - CHECKED_FROM));
}

static const char *get(const char *from, void *to, size_t size_bytes)
{
  if (size_bytes) memcpy(to, from, size_bytes);
  return from + size_bytes;
}

bool kj_is_sound_code(const kj_code *code)
{
  if (code->tensor_map_count > KJ_MOST_MAPS || code->shared_array_count > KJ_MOST_SHARED_ARRAYS)
    return false;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *p = &code->parameters[i];
    uint32_t most = p->kind == KJ_PARAMETER_TENSOR_MAP ? code->tensor_map_count : KJ_MAX_RANK;
    if (p->least.type >= KJIT_SCALAR_COUNT || p->most.type >= KJIT_SCALAR_COUNT) return false;
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

/* The code is copied: a loader wants it aligned. */
static kj_entry_state read_code(const header *h, const char *at, kj_code *code)
{
  bool has_ends = true;
  at = get(at, code, sizeof *code);
  forget_pointers(code);
  if (code->parameter_count != h->parameter_count || code->size_bytes != h->data_bytes)
    return KJ_ENTRY_BROKEN;
  code->parameters = malloc(h->parameter_count * sizeof *code->parameters + 1);
  code->data = malloc(h->data_bytes + 1);
  if (!code->parameters || !code->data) return KJ_ENTRY_OTHER;
  at = get(at, code->parameters, h->parameter_count * sizeof *code->parameters);
  if (!read_texts(h, &at, code, &has_ends)) return KJ_ENTRY_OTHER;
  get(at, code->data, h->data_bytes);
  ((char *)code->data)[h->data_bytes] = 0;
  return has_ends && kj_is_sound_code(code) ? KJ_ENTRY_WHOLE : KJ_ENTRY_BROKEN;
}

/* The places where plain numbers meet their types: they are in other sources, and a message names
 * the parameter instead. */
static void forget_places(kj_code *code)
{
  for (uint32_t i = 0; i < code->parameter_count; i++)
    code->parameters[i].least.line = code->parameters[i].most.line = 0;
}

kj_entry_state kj_unpack_entry(const void *bytes, size_t size_bytes, const kj_disk_key *key,
                               const kj_digest *compiler, kj_code *code)
{
  header h;
  const char *start = bytes;
  if (!read_header(bytes, size_bytes, &h)) return KJ_ENTRY_BROKEN;
  if (h.key_bytes != key->size_bytes || memcmp(start + sizeof h, key->text, h.key_bytes))
    return KJ_ENTRY_OTHER;
  if (compiler && !kj_same_digest(h.compiler, *compiler)) return KJ_ENTRY_OTHER;
  kj_code read = { 0 };
  kj_entry_state state = read_code(&h, start + sizeof h + h.key_bytes, &read);
  if (state == KJ_ENTRY_WHOLE && read.failures &&
      !(key->has_sources && kj_same_digest(h.sources, key->sources)))
    state = KJ_ENTRY_OTHER;
  if (state == KJ_ENTRY_WHOLE && !(key->has_sources && kj_same_digest(h.sources, key->sources)))
    forget_places(&read);
  if (state == KJ_ENTRY_WHOLE) *code = read;
  else kj_free_code(&read);
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

/* ---- blobs ---- */

/* One entry that was imported. Never removed, so that readers need no lock. */
typedef struct kj_carried {
  struct kj_carried *next;
  kj_digest digest; /* of its key */
  size_t size_bytes;
  char bytes[];
} kj_carried;

typedef struct blob_header {
  char magic[8];
  kj_digest checksum;
  uint64_t size_bytes; /* of the whole blob */
  uint64_t count;
  kj_digest build; /* of libkjit: entries are structs as it has them in memory */
} blob_header;

static const char blob_magic[8] = { 'k', 'j', 'i', 't', 'b', 'l', 'b', '1' };

/* ---- import ---- */

bool kj_find_import(const kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code)
{
  for (const kj_carried *at = atomic_load_explicit(&runtime->imports, memory_order_acquire); at;
       at = at->next)
    if (kj_same_digest(at->digest, key->digest) &&
        kj_unpack_entry(at->bytes, at->size_bytes, key, compiler, code) == KJ_ENTRY_WHOLE)
      return true;
  return false;
}

static void free_list(kj_carried *list)
{
  while (list) {
    kj_carried *next = list->next;
    free(list);
    list = next;
  }
}

void kj_free_imports(kj_runtime *runtime) { free_list(atomic_load(&runtime->imports)); }

static kjit_status refuse(kj_diagnostics *diagnostics, const char *why)
{
  return kj_error(diagnostics, KJIT_ERROR_IO, "kjit_import_code: the blob is damaged: %s", why);
}

static kjit_status read_blob_header(kj_runtime *runtime, const char *blob, size_t size_bytes,
                                    kj_diagnostics *diagnostics, blob_header *h)
{
  if (size_bytes < sizeof *h) return refuse(diagnostics, "it is shorter than its header");
  memcpy(h, blob, sizeof *h);
  if (memcmp(h->magic, blob_magic, sizeof blob_magic))
    return refuse(diagnostics, "it is none that kjit_export_code made");
  if (h->size_bytes != size_bytes) return refuse(diagnostics, "it has not the size that it says");
  if (!kj_same_digest(h->checksum, kj_digest_bytes(blob + CHECKED_FROM, size_bytes - CHECKED_FROM)))
    return refuse(diagnostics, "its checksum is another");
  kj_identify_disk(runtime->disk);
  if (kj_same_digest(h->build, runtime->disk->build)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "kjit_import_code: the blob was made by another build of kjit");
}

static kjit_status add_entry(const char *bytes, size_t size_bytes, kj_diagnostics *diagnostics,
                             kj_carried **list)
{
  size_t key_bytes;
  kj_carried *made = malloc(sizeof *made + size_bytes);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->next = *list;
  made->size_bytes = size_bytes;
  memcpy(made->bytes, bytes, size_bytes);
  *list = made;
  return kj_read_entry_key(made->bytes, size_bytes, &key_bytes, &made->digest)
           ? KJIT_OK
           : refuse(diagnostics, "an entry is broken");
}

static kjit_status read_entries(const char *blob, const blob_header *h, kj_diagnostics *diagnostics,
                                kj_carried **list)
{
  size_t at = sizeof *h;
  for (uint64_t i = 0; i < h->count; i++) {
    uint64_t size_bytes;
    if (h->size_bytes - at < sizeof size_bytes)
      return refuse(diagnostics, "it ends within an entry");
    memcpy(&size_bytes, blob + at, sizeof size_bytes);
    at += sizeof size_bytes;
    if (size_bytes > h->size_bytes - at) return refuse(diagnostics, "it ends within an entry");
    KJ_TRY(add_entry(blob + at, size_bytes, diagnostics, list));
    at += size_bytes;
  }
  return at == h->size_bytes ? KJIT_OK : refuse(diagnostics, "something follows its entries");
}

/* All or nothing. */
static kjit_status import(kj_runtime *runtime, const char *blob, size_t size_bytes,
                          kj_diagnostics *diagnostics)
{
  blob_header h;
  kj_carried *list = NULL;
  KJ_TRY(read_blob_header(runtime, blob, size_bytes, diagnostics, &h));
  kjit_status status = read_entries(blob, &h, diagnostics, &list);
  if (status != KJIT_OK) {
    free_list(list);
    return status;
  }
  kj_carried *last = list;
  if (!last) return KJIT_OK;
  while (last->next) last = last->next;
  last->next = atomic_load(&runtime->imports);
  while (!atomic_compare_exchange_weak(&runtime->imports, &last->next, list)) {}
  return KJIT_OK;
}

kjit_status kjit_import_code(kjit_context *context, const void *blob, size_t size_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!blob) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_import_code: blob is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  (void)import(runtime, blob, size_bytes, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

/* ---- export ---- */

static bool is_elf(const void *data, size_t size_bytes)
{
  return size_bytes > 4 && !memcmp(data, "\177ELF", 4);
}

kjit_status kj_copy_binary(kjit_specialization *specialization, kj_diagnostics *diagnostics,
                           void **binary, size_t *size_bytes)
{
  const kj_code *code = &specialization->code;
  if (!code->data) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_device *device = specialization->device;
  if (device->operations->link && !is_elf(code->data, code->size_bytes)) {
    /* one with PTX of the host has been linked already */
    kj_link_input input = { code->entry, code->data, code->size_bytes };
    return kj_link(device, &input, 1, diagnostics, binary, size_bytes);
  }
  *binary = malloc(code->size_bytes + 1);
  if (!*binary) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  memcpy(*binary, code->data, code->size_bytes);
  *size_bytes = code->size_bytes;
  return KJIT_OK;
}

static void append_entry(kj_buffer *blob, const void *entry, uint64_t size_bytes)
{
  kj_append(blob, (const char *)&size_bytes, sizeof size_bytes);
  kj_append(blob, entry, size_bytes);
}

/* The specialization is held. Left out is code that no process would take in: code with debug
 * information, whose files and lines are of one program; code of a device that was lost; and code
 * that names lines of sources without a text. */
static kjit_status export_held(kjit_specialization *specialization, kj_buffer *blob,
                               uint64_t *count, kj_diagnostics *diagnostics)
{
  const kjit_device *device = specialization->device;
  kj_runtime *runtime = device->runtime;
  const kj_compile_request request =
    kj_make_request(specialization->kernel, device, &specialization->compiled_for,
                    kj_code_stage(device));
  kj_disk_key key = { 0 };
  kj_digest compiler = { 0 };
  kj_code code = specialization->code;
  if (request.debug || specialization->generation != atomic_load(&device->generation))
    return KJIT_OK;
  if (!kj_make_disk_key(runtime->disk, device, &request, &key))
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (code.failures && !key.has_sources) {
    kj_free_disk_key(&key);
    return KJIT_OK;
  }
  size_t entry_bytes;
  void *binary = NULL, *entry = NULL;
  kjit_status status = kj_copy_binary(specialization, diagnostics, &binary, &code.size_bytes);
  if (status == KJIT_OK) {
    code.data = binary;
    (void)kj_identify_compiler(runtime, &compiler);
    entry = kj_pack_entry(&key, compiler, &code, &entry_bytes);
    if (entry) append_entry(blob, entry, entry_bytes), ++*count;
    else status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  free(binary);
  free(entry);
  kj_free_disk_key(&key);
  return status;
}

static kjit_status export_kernel(kjit_kernel *kernel, kj_buffer *blob, uint64_t *count,
                                 kj_diagnostics *diagnostics)
{
  kjit_specialization *specialization;
  for (size_t i = 0; (specialization = kjit_get_specialization(kernel, i)); i++) {
    if (!kj_hold(specialization)) continue;
    kjit_status status = export_held(specialization, blob, count, diagnostics);
    kj_release(specialization, false);
    if (status != KJIT_OK) return status;
  }
  return KJIT_OK;
}

static kjit_status export_module(kjit_module *module, kj_runtime *runtime, kj_buffer *blob,
                                 kj_diagnostics *diagnostics)
{
  blob_header h = { 0 };
  kj_identify_disk(runtime->disk);
  memcpy(h.magic, blob_magic, sizeof blob_magic);
  h.build = runtime->disk->build;
  kj_append(blob, (const char *)&h, sizeof h);
  kjit_kernel *kernel;
  for (size_t i = 0; i < module->decls.count; i++)
    if ((kernel = kj_get_made_kernel(module, i)))
      KJ_TRY(export_kernel(kernel, blob, &h.count, diagnostics));
  if (blob->failed) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  h.size_bytes = blob->length;
  memcpy(blob->text, &h, sizeof h);
  h.checksum = kj_digest_bytes(blob->text + CHECKED_FROM, blob->length - CHECKED_FROM);
  memcpy(blob->text, &h, sizeof h);
  return KJIT_OK;
}

kjit_status kjit_export_code(kjit_module *module, void **blob, size_t *size_bytes)
{
  if (!module) return KJIT_ERROR_MISUSE;
  kjit_context *context = module->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!blob || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_export_code: %s is NULL",
                        blob ? "size_bytes" : "blob");
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  kj_buffer made = { 0 };
  if (export_module(module, runtime, &made, &diagnostics) == KJIT_OK) {
    *size_bytes = made.length;
    *blob = kj_take_text(&made);
  }
  kj_free_buffer(&made);
  return ki_finish_call(context, &diagnostics);
}

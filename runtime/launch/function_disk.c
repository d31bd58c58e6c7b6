/* Keeps the code of funcs that the application calls in the disk cache, so that a new process
 * compiles nothing. The key has the same parts as a kernel's key. Its stage is "function", because
 * the func is compiled as a C function. Plain code is not stored.
 *
 * An error with a code (error_codes.def) is stored in place of code, because an application may
 * handle such an error and run the func in another way. Its next process then gets the error
 * without loading the compiler. */
#include <stdlib.h>
#include <string.h>

#include "code/child.h"
#include "code/compile_thread.h"
#include "code/disk.h"
#include "cpu/cpu.h"
#include "launch/function_code.h"

/* Returns whether the code of funcs is stored. Code with debug information is not, because its
 * files and lines belong to one program. */
static bool is_stored(const kjit_kernel *kernel, const kj_runtime *runtime)
{
  return kernel->context->config.debug == KJIT_DEBUG_NONE && kj_keeps_code(runtime->disk);
}

bool kj_make_function_key(const kjit_kernel *kernel, const kj_compile_request *request,
                          kj_disk_key *key)
{
  kj_runtime *runtime = kj_get_runtime(kernel->context);
  kj_compile_request best = *request;
  best.plain = KJ_PLAIN_NONE;
  return is_stored(kernel, runtime) && kj_make_disk_key(runtime->disk, NULL, &best, key);
}

/* ---- errors ---- */

/* The entry name of a stored error. Code has the entry name KJ_FUNCTION_SYMBOL. */
static const char error_entry[] = "error";

static bool is_error(const kj_code *code) { return !strcmp(code->entry, error_entry); }

/* Returns whether the messages are an error with a code, and notes about it. Such errors come from
 * type inference, so they depend on the key and the sources alone. */
static bool is_stored_error(const kjit_diagnostic *messages, size_t count)
{
  bool is_error_first =
    count && messages->severity == KJIT_SEVERITY_ERROR && messages->code != KJIT_CODE_NONE;
  for (size_t i = 1; i < count && is_error_first; i++)
    is_error_first = messages[i].severity == KJIT_SEVERITY_NOTE;
  return is_error_first;
}

/* Returns the digest of the texts from which messages quote lines. The digest of the sources lacks
 * the texts of a front end's files. */
static kj_digest digest_quoted(const kjit_module *module)
{
  kj_digest sum[2] = { { 0 } };
  for (size_t i = 0; i < module->sources.count; i++) {
    const kj_source *source = &module->sources.items[i];
    sum[1] = kj_digest_bytes(source->shown ? source->shown : "", source->shown_bytes);
    sum[0] = kj_digest_bytes(sum, sizeof sum);
  }
  return sum[0];
}

/* Reads a stored error and adds it to the messages. Returns false if the entry is invalid, or if
 * the quoted texts have changed. */
static bool read_error(const kj_compile_request *request, const kj_code *code,
                       kj_diagnostics *diagnostics, kjit_status *status)
{
  kj_digest quoted;
  kj_code none = { 0 };
  kj_diagnostics read = { 0 };
  if (code->size_bytes < sizeof quoted) return false;
  memcpy(&quoted, code->data, sizeof quoted);
  kjit_status stored = KJIT_OK;
  bool is_read = kj_same_digest(quoted, digest_quoted(request->module)) &&
                 kj_take_answer(request->module->types, (const char *)code->data + sizeof quoted,
                                code->size_bytes - sizeof quoted, &read, &none, &stored) &&
                 stored != KJIT_OK && is_stored_error(read.items, read.count);
  if (is_read) {
    for (size_t i = 0; i < read.count; i++) kj_add_diagnostic(diagnostics, &read.items[i]);
    *status = stored;
  }
  kj_free_diagnostics(&read);
  kj_free_code(&none);
  return is_read;
}

void kj_publish_error(const kj_compile_request *request, const kj_disk_key *key,
                      const kj_diagnostics *diagnostics, size_t first, kjit_status status)
{
  kj_digest compiler;
  kj_buffer bytes = { 0 };
  kj_runtime *runtime = kj_get_runtime(request->module->context);
  KJ_ASSERT(status != KJIT_OK);
  if (first >= diagnostics->count || diagnostics->items[first].status != status) return;
  const kj_child_answer answer = { .status = (uint32_t)status,
                                   .diagnostics = diagnostics->items + first,
                                   .diagnostic_count = diagnostics->count - first };
  if (!kj_can_publish(runtime->disk) || !key->has_sources ||
      !is_stored_error(answer.diagnostics, answer.diagnostic_count))
    return;
  const kj_digest quoted = digest_quoted(request->module);
  kj_append(&bytes, (const char *)&quoted, sizeof quoted);
  if (kj_pack_answer(request->module->types, &answer, &bytes) &&
      kj_identify_compiler(runtime, &compiler)) {
    char no_texts[] = "", entry[sizeof error_entry];
    memcpy(entry, error_entry, sizeof entry);
    /* with can_fail set, the entry is valid only for the same sources */
    kj_code code = { .entry = entry,
                     .data = bytes.text,
                     .size_bytes = bytes.length,
                     .can_fail = true,
                     .failure_texts = no_texts };
    kj_note_made(&code);
    kj_note_sources(&code, key);
    kj_publish_entry(runtime->disk, key, compiler, &code);
  }
  kj_free_buffer(&bytes);
}

/* ---- loading ---- */

static bool load_image(const kjit_module *module, const kj_code *code, kj_image **image,
                       kj_cpu_kernel *entry)
{
  char reason[KJ_IMAGE_REASON_BYTES];
  kj_outside outside = { 0 };
  kj_diagnostics ignored = { 0 };
  bool is_loaded =
    kj_list_outside(module, &ignored, &outside) == KJIT_OK &&
    kj_load_image(code->data, code->size_bytes, code->entry, &outside, image, entry, reason);
  kj_free_outside(&outside);
  kj_free_diagnostics(&ignored);
  return is_loaded;
}

/* Finds the number of the result type in this process. */
static bool read_result(const kj_compile_request *request, kj_code *code)
{
  if (code->result_text) return kj_read_result(request, code->result_text, &code->result);
  return code->result < KJ_FIRST_COMPOSED;
}

/* Builds with assertions compile some of the functions again and compare the code, or the status of
 * a stored error. */
static void recheck(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                    const kj_code *found, kjit_status expected)
{
  kj_code made = { 0 };
  kj_diagnostics ignored = { 0 };
  kj_compile_request best = *request;
  best.plain = KJ_PLAIN_NONE;
  if (!kj_is_rechecked(runtime, found, false, key)) return;
  kjit_status status = kj_get_compiler(runtime, &ignored);
  if (status == KJIT_OK) status = kj_call_compiler_unseen(runtime, &best, &ignored, &made);
  if (status == KJIT_OK) kj_note_made(&made);
  kj_free_diagnostics(&ignored);
  if (is_error(found)) kj_compare_status(key, expected, status);
  else kj_compare_recheck(key, found, &made, status);
  kj_free_code(&made);
}

static bool fetch(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                  kj_function_code *made, kj_diagnostics *diagnostics, kjit_status *status)
{
  kj_digest compiler;
  kj_cpu_kernel entry = NULL;
  bool knows_compiler = kj_identify_compiler(runtime, &compiler);
  if (!kj_fetch_entry(runtime->disk, key, knows_compiler ? &compiler : NULL, &made->code))
    return false;
  if (is_error(&made->code)) {
    if (read_error(request, &made->code, diagnostics, status)) return true;
  } else if (read_result(request, &made->code) &&
             load_image(request->module, &made->code, &made->image, &entry)) {
    made->entry = (void (*)(void))entry;
    return true;
  }
  kj_free_code(&made->code);
  return false;
}

bool kj_fetch_function(const kj_compile_request *request, const kj_disk_key *key,
                       kj_function_code *made, kj_diagnostics *diagnostics, kjit_status *status)
{
  kj_runtime *runtime = kj_get_runtime(made->kernel->context);
  ki_counters *counters = &made->kernel->context->counters;
  *status = KJIT_OK;
  bool is_found = fetch(runtime, request, key, made, diagnostics, status);
  atomic_fetch_add_explicit(is_found ? &counters->disk_hits : &counters->disk_misses, 1,
                            memory_order_relaxed);
  if (KJ_HAS_ASSERTIONS && is_found) recheck(runtime, request, key, &made->code, *status);
  return is_found;
}

/* ---- storing ---- */

/* Returns whether the loader for stored code accepts the object. If not, the object is not
 * stored. */
static bool can_be_loaded(const kjit_module *module, const kj_code *code)
{
  kj_image *image = NULL;
  kj_cpu_kernel entry;
  bool is_loaded = load_image(module, code, &image, &entry);
  if (is_loaded) kj_unload_image(image);
  return is_loaded;
}

void kj_publish_function(const kj_compile_request *request, const kj_disk_key *key,
                         kj_function_code *made)
{
  kj_digest compiler;
  kj_code *code = &made->code;
  kj_runtime *runtime = kj_get_runtime(made->kernel->context);
  KJ_ASSERT(!code->is_plain && !code->result_text);
  if (!kj_can_publish(runtime->disk) || (code->can_fail && !key->has_sources)) return;
  if (code->result >= KJ_FIRST_COMPOSED &&
      !(code->result_text = kj_print_result(request, code->result)))
    return;
  kj_note_sources(code, key);
  if (can_be_loaded(request->module, code) && kj_identify_compiler(runtime, &compiler))
    kj_publish_entry(runtime->disk, key, compiler, code);
}

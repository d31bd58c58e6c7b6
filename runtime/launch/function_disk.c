/* Keeps the code of funcs that the application calls in the disk cache, so that a new process
 * compiles nothing. The key has the same parts as the key of a kernel, with a stage of its own,
 * because a func is compiled as a C function here. Plain code is not stored. */
#include <stdlib.h>

#include "code/compile_thread.h"
#include "code/disk.h"
#include "cpu/cpu.h"
#include "launch/function_code.h"

/* Code with debug information is not stored, because its files and lines belong to one program. */
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

/* Finds the number that the result type has in this process. */
static bool read_result(const kj_compile_request *request, kj_code *code)
{
  if (code->result_text) return kj_read_result(request, code->result_text, &code->result);
  return code->result < KJ_FIRST_COMPOSED;
}

/* Builds with assertions compile some of the functions again and compare the code. */
static void recheck(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                    const kj_code *found)
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
  kj_compare_recheck(key, found, &made, status);
  kj_free_code(&made);
}

static bool fetch(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                  kj_function_code *made)
{
  kj_digest compiler;
  kj_cpu_kernel entry = NULL;
  bool knows_compiler = kj_identify_compiler(runtime, &compiler);
  if (!kj_fetch_entry(runtime->disk, key, knows_compiler ? &compiler : NULL, &made->code))
    return false;
  if (read_result(request, &made->code) &&
      load_image(request->module, &made->code, &made->image, &entry)) {
    made->entry = (void (*)(void))entry;
    return true;
  }
  kj_free_code(&made->code);
  return false;
}

bool kj_fetch_function(const kj_compile_request *request, const kj_disk_key *key,
                       kj_function_code *made)
{
  kj_runtime *runtime = kj_get_runtime(made->kernel->context);
  ki_counters *counters = &made->kernel->context->counters;
  bool is_found = fetch(runtime, request, key, made);
  atomic_fetch_add_explicit(is_found ? &counters->disk_hits : &counters->disk_misses, 1,
                            memory_order_relaxed);
  if (KJ_HAS_ASSERTIONS && is_found) recheck(runtime, request, key, &made->code);
  return is_found;
}

/* ---- storing ---- */

/* Returns whether the loader for stored code accepts the object; otherwise storing it would be
 * useless. */
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

/* libkjit-compiler, opened at the first miss: a process whose calls all hit never loads LLVM. */
#include <dlfcn.h>
#include <string.h>

#include "code/background.h"
#include "code/disk.h"

static const char library_name[] = "libkjit-compiler.so";

static void *try_open(const char *path, kj_buffer *reasons)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char *reason = dlerror();
  kj_append_format(reasons, "%s%s", reasons->length ? "; " : "", reason ? reason : path);
  return NULL;
}

/* In the folder of the library, or program, that this function is in; empty: nobody knows where. */
static void find_beside(kj_buffer *path)
{
  static const char anchor = 0;
  Dl_info info;
  if (!dladdr(&anchor, &info) || !info.dli_fname) return;
  const char *slash = strrchr(info.dli_fname, '/');
  if (slash) kj_append(path, info.dli_fname, (size_t)(slash + 1 - info.dli_fname));
  else kj_append_text(path, "./");
  kj_append_text(path, library_name);
}

static void *open_beside(kj_buffer *reasons)
{
  kj_buffer path = { 0 };
  find_beside(&path);
  void *library = path.length && !path.failed ? try_open(path.text, reasons) : NULL;
  reasons->failed |= path.failed;
  kj_free_buffer(&path);
  return library;
}

static kjit_status open_library(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  kj_buffer reasons = { 0 };
  const char *path = runtime->context->config.compiler_path;
  void *library = path ? try_open(path, &reasons) : open_beside(&reasons);
  if (!library && !path && !reasons.failed) library = try_open(library_name, &reasons);
  if (!library) {
    kjit_status status = reasons.failed ? kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory")
                                        : kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                                                   "the compiler cannot be loaded: %s",
                                                   reasons.text ? reasons.text : library_name);
    kj_free_buffer(&reasons);
    return status;
  }
  kj_free_buffer(&reasons);
  runtime->compiler_library = library; /* stays open: LLVM registers things for the whole process */
  return KJIT_OK;
}

static kjit_status check_interface(const kj_compiler_interface *interface,
                                   kj_diagnostics *diagnostics)
{
  if (interface && interface->size_bytes == sizeof *interface &&
      interface->version == KJ_COMPILER_VERSION)
    return KJIT_OK;
  if (!interface)
    return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER, "the compiler gives no interface");
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "the compiler belongs to another version of kjit: expected interface %d of %zu "
                  "bytes, got %u of %u bytes",
                  KJ_COMPILER_VERSION, sizeof *interface, interface->version,
                  interface->size_bytes);
}

static kjit_status find_interface(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  if (runtime->interface) return KJIT_OK;
  if (!runtime->compiler_library) KJ_TRY(open_library(runtime, diagnostics));
  const kj_compiler_interface *(*get)(void);
  *(void **)&get = dlsym(runtime->compiler_library, "kjit_get_compiler_interface");
  if (!get)
    return kj_error(
      diagnostics, KJIT_ERROR_NO_COMPILER,
      "the library at compiler_path is not kjit's compiler: it has no kjit_get_compiler_interface");
  const kj_compiler_interface *interface = get();
  KJ_TRY(check_interface(interface, diagnostics));
  runtime->interface = interface;
  return KJIT_OK;
}

kjit_status kj_get_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  if (atomic_load_explicit(&runtime->has_compiler, memory_order_acquire)) return KJIT_OK;
  pthread_mutex_lock(&runtime->compiler_mutex);
  kjit_status status = find_interface(runtime, diagnostics);
  if (status == KJIT_OK && !runtime->compiler)
    status = runtime->interface->create(runtime->context->config.libdevice_path, diagnostics,
                                        &runtime->compiler);
  if (status == KJIT_OK) atomic_store_explicit(&runtime->has_compiler, true, memory_order_release);
  pthread_mutex_unlock(&runtime->compiler_mutex);
  return status;
}

/* The one that is loaded, else the one that would be. One that the loader's search path alone finds
 * is not looked for. */
bool kj_identify_compiler(kj_runtime *runtime, kj_digest *identity)
{
  pthread_mutex_lock(&runtime->compiler_mutex);
  const kj_compiler_interface *interface = runtime->interface;
  pthread_mutex_unlock(&runtime->compiler_mutex);
  if (interface) {
    *identity = kj_identify_address((const void *)(uintptr_t)interface->compile);
    return true;
  }
  const char *given = runtime->context->config.compiler_path;
  kj_buffer beside = { 0 };
  if (!given) find_beside(&beside);
  const char *path = given ? given : beside.failed ? NULL : beside.text;
  bool is_identified = path && kj_identify_file(path, identity);
  kj_free_buffer(&beside);
  return is_identified;
}

kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface,
                            kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(check_interface(interface, diagnostics));
  pthread_mutex_lock(&runtime->compiler_mutex);
  runtime->interface = interface;
  pthread_mutex_unlock(&runtime->compiler_mutex);
  return KJIT_OK;
}

/* ---- the layer's part of a runtime ---- */

static void stop_code(kj_attachment *attachment) { kj_stop_background(attachment->runtime); }

static void destroy_code(kj_attachment *attachment)
{
  kj_runtime *runtime = attachment->runtime;
  if (runtime->compiler) runtime->interface->destroy(runtime->compiler);
  kj_free_imports(runtime);
  kj_close_disk(runtime->disk);
  pthread_mutex_destroy(&runtime->loaded_mutex);
  pthread_mutex_destroy(&runtime->compiler_mutex);
}

kjit_status kj_open_code(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .stop = stop_code, .destroy = destroy_code };
  pthread_mutex_init(&runtime->loaded_mutex, NULL);
  pthread_mutex_init(&runtime->compiler_mutex, NULL);
  kj_attach_to_runtime(runtime, &runtime->code_attachment, &class);
  runtime->disk = kj_open_disk(&runtime->context->config);
  return runtime->disk ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

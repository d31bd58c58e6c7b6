/* Opens libraries of a CUDA toolkit. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cuda/linker.h"
#include "support/paths.h"

/* Supported versions of CUDA, newest first. */
static const int majors[] = { 13, 12 };
enum { MAJORS = sizeof majors / sizeof *majors };

static void *open_path(const char *folder, size_t length, const char *below, const char *file,
                       int major)
{
  kj_buffer path = { 0 };
  kj_append_format(&path, "%.*s%s/%s.%d", (int)length, folder, below, file, major);
  void *handle = path.failed ? NULL : dlopen(path.text, RTLD_NOW | RTLD_LOCAL);
  kj_free_buffer(&path);
  return handle;
}

static void *open_by_name(const char *file, int major)
{
  kj_buffer name = { 0 };
  kj_append_format(&name, "%s.%d", file, major);
  void *handle = name.failed ? NULL : dlopen(name.text, RTLD_NOW | RTLD_LOCAL);
  kj_free_buffer(&name);
  return handle;
}

/* Opens the library in a directory that matches the pattern, trying the last one by name first. */
static void *open_among(const char *pattern, const char *below, const char *file, int major)
{
  void *handle = NULL;
  kj_paths folders = { 0 };
  (void)kj_find_paths(&folders, pattern);
  for (size_t i = folders.count; i-- > 0 && !handle;)
    handle = open_path(folders.items[i], strlen(folders.items[i]), below, file, major);
  kj_free_paths(&folders);
  return handle;
}

static void *open_of_variable(const char *variable, const char *file, int major)
{
  const char *folder = secure_getenv(variable);
  return folder && *folder == '/' ? open_path(folder, strlen(folder), "/lib64", file, major) : NULL;
}

static void *open_major(const char *file, int major)
{
  void *handle = open_by_name(file, major);
  if (!handle) handle = open_of_variable("CUDA_HOME", file, major);
  if (!handle) handle = open_of_variable("CUDA_PATH", file, major);
  if (!handle) handle = open_among(KJ_OWN_FOLDER "/../nvidia/*", "/lib", file, major);
  if (!handle) handle = open_among("/usr/local/cuda", "/lib64", file, major);
  return handle ? handle : open_among("/usr/local/cuda-*", "/lib64", file, major);
}

kjit_status kj_open_toolkit_library(const kj_toolkit_library *library, const kj_link_target *target,
                                    const char *need, kj_diagnostics *diagnostics, void **handle)
{
  int wanted = target->driver_version / 1000;
  *handle = NULL;
  for (int i = 0; i < MAJORS && !*handle; i++)
    if (majors[i] == wanted) *handle = open_major(library->file, majors[i]);
  for (int i = 0; i < MAJORS && !*handle; i++)
    if (majors[i] != wanted) *handle = open_major(library->file, majors[i]);
  if (*handle) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "%s, which needs the library %s: install the Python package %s, or a CUDA "
                  "toolkit; %s.13 and %s.12 were not found on the loader's path, in lib64 of "
                  "$CUDA_HOME, $CUDA_PATH and /usr/local/cuda*, or beside kjit in ../nvidia/*/lib",
                  need, library->title, library->packages, library->file, library->file);
}

kjit_status kj_find_toolkit_entry(void *handle, const kj_toolkit_library *library,
                                  const char *symbol, kj_diagnostics *diagnostics, void **entry)
{
  /* the names of nvJitLink's functions contain the CUDA version */
  static const char *const forms[] = { "%s", "__%s_13_0", "__%s_12_0" };
  *entry = NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms && !*entry; i++) {
    char name[80];
    snprintf(name, sizeof name, forms[i], symbol);
    *entry = dlsym(handle, name);
  }
  if (*entry) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER, "the library %s (%s) has no function %s",
                  library->title, library->file, symbol);
}

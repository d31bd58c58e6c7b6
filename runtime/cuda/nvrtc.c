/* Compiles CUDA C to PTX with NVRTC. */
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "cuda/linker.h"
#include "support/assert.h"

/* ---- the library ---- */

/* Entry points of the library: X(type, name, (parameters)). Integer results are nvrtcResult. */
/* clang-format off */
#define ENTRIES(X) \
  X(int, nvrtcCreateProgram, (void **program, const char *text, const char *name, \
                              int header_count, const char *const *headers, \
                              const char *const *header_names)) \
  X(int, nvrtcDestroyProgram, (void **program)) \
  X(int, nvrtcCompileProgram, (void *program, int count, const char *const *options)) \
  X(int, nvrtcGetPTXSize, (void *program, size_t *size_bytes)) \
  X(int, nvrtcGetPTX, (void *program, char *ptx)) \
  X(int, nvrtcGetProgramLogSize, (void *program, size_t *size_bytes)) \
  X(int, nvrtcGetProgramLog, (void *program, char *log)) \
  X(int, nvrtcGetNumSupportedArchs, (int *count)) \
  X(int, nvrtcGetSupportedArchs, (int *numbers)) \
  X(const char *, nvrtcGetErrorString, (int result))
/* clang-format on */

typedef struct nvrtc {
#define X(type, name, parameters) type(*name) parameters;
  ENTRIES(X)
#undef X
} nvrtc;

enum { OUT_OF_MEMORY = 1 }; /* nvrtcResult */

static kjit_status open_nvrtc(const kj_link_target *target, const char *name,
                              kj_diagnostics *diagnostics, nvrtc *opened)
{
  static const kj_toolkit_library library = {
    "libnvrtc.so", "NVRTC", "nvidia-cuda-nvrtc (CUDA 12: nvidia-cuda-nvrtc-cu12)"
  };
  void *handle, *entry;
  kj_buffer need = { 0 };
  kj_append_format(&need, "%s is CUDA C", name);
  kjit_status status =
    kj_open_toolkit_library(&library, target, need.failed ? "linked code" : need.text, diagnostics,
                            &handle);
  kj_free_buffer(&need);
  if (status != KJIT_OK) return status;
#define X(type, function, parameters) \
  KJ_TRY(kj_find_toolkit_entry(handle, &library, #function, diagnostics, &entry)); \
  *(void **)&opened->function = entry;
  ENTRIES(X)
#undef X
  return KJIT_OK;
}

/* ---- options, each followed by a 0 byte ---- */

typedef struct option_list {
  kj_buffer text;
  int count;
} option_list;

static void end_option(option_list *list)
{
  kj_append(&list->text, "", 1);
  list->count++;
}

/* Adds the option for the target architecture. If NVRTC does not support this architecture, adds
 * the option for the newest supported architecture that precedes it, without a suffix. */
static void add_architecture(const nvrtc *library, const char *target, option_list *list)
{
  enum { PREFIX = 3 }; /* length of "sm_" */
  int count = 0, numbers[256], wanted = (int)strtol(target + PREFIX, NULL, 10), best = 0;
  KJ_ASSERT(strncmp(target, "sm_", PREFIX) == 0);
  if (!library->nvrtcGetNumSupportedArchs(&count) && count > 0 &&
      count <= (int)(sizeof numbers / sizeof *numbers) && !library->nvrtcGetSupportedArchs(numbers))
    for (int i = 0; i < count; i++)
      if (numbers[i] <= wanted && numbers[i] > best) best = numbers[i];
  if (best && best != wanted) kj_append_format(&list->text, "--gpu-architecture=compute_%d", best);
  else kj_append_format(&list->text, "--gpu-architecture=compute_%s", target + PREFIX);
  end_option(list);
}

/* Appends the path of a folder and a line end, if the folder exists. */
static void add_folder(const char *folder, size_t length, const char *below, kj_buffer *folders)
{
  struct stat about;
  kj_buffer path = { 0 };
  kj_append_format(&path, "%.*s%s", (int)length, folder, below);
  bool is_there = !path.failed && stat(path.text, &about) == 0 && S_ISDIR(about.st_mode);
  if (is_there) kj_append_format(folders, "%s\n", path.text);
  kj_free_buffer(&path);
}

/* Returns the malloc'd path of the library's file, or NULL. */
static char *find_file(const nvrtc *library)
{
  Dl_info about;
  void *address = *(void *const *)&library->nvrtcCompileProgram;
  return dladdr(address, &about) ? realpath(about.dli_fname, NULL) : NULL;
}

/* Lists the folders of headers of the toolkit that contains the library: an installed toolkit, or
 * the Python packages for CUDA 13 or CUDA 12. The toolkit's folders in /usr/local/cuda come last;
 * they provide headers whose Python packages are not installed, such as CCCL's. */
static void list_headers(const nvrtc *library, kj_buffer *folders)
{
  static const char *const places[] = { "/../include", "/../include/cccl",
                                        "/../../cuda_runtime/include", "/../../cuda_cccl/include",
                                        "/../../curand/include" };
  static const char *const usual[] = { "/usr/local/cuda/include", "/usr/local/cuda/include/cccl" };
  char *path = find_file(library);
  const char *end = path ? strrchr(path, '/') : NULL;
  for (size_t i = 0; end && i < sizeof places / sizeof *places; i++)
    add_folder(path, (size_t)(end - path), places[i], folders);
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    add_folder(usual[i], strlen(usual[i]), "", folders);
  free(path);
}

bool kj_list_toolkit_headers(int driver_version, kj_buffer *folders)
{
  nvrtc library;
  struct stat about;
  kj_diagnostics ignored = { 0 };
  const kj_link_target target = { .driver_version = driver_version };
  bool is_there = open_nvrtc(&target, "", &ignored, &library) == KJIT_OK;
  char *path = is_there ? find_file(&library) : NULL;
  bool is_known = path && stat(path, &about) == 0;
  if (is_known) {
    list_headers(&library, folders);
    kj_append_format(folders, "%s %lld %lld.%09ld\n", path, (long long)about.st_size,
                     (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }
  free(path);
  kj_free_diagnostics(&ignored);
  return is_known && !folders->failed;
}

/* Adds the folders of the toolkit's headers. */
static void add_headers(const nvrtc *library, option_list *list)
{
  kj_buffer folders = { 0 };
  list_headers(library, &folders);
  for (const char *at = folders.text; !folders.failed && at && *at; at += strcspn(at, "\n") + 1) {
    kj_append_format(&list->text, "-I%.*s", (int)strcspn(at, "\n"), at);
    end_option(list);
  }
  list->text.failed |= folders.failed;
  kj_free_buffer(&folders);
}

/* Adds the given options, one in each line. */
static void add_given(const char *options, option_list *list)
{
  while (options && *options) {
    size_t length = strcspn(options, "\n");
    if (length) {
      kj_append(&list->text, options, length);
      end_option(list);
    }
    options += length + (options[length] == '\n');
  }
}

static void add_option(const char *option, option_list *list)
{
  kj_append(&list->text, option, strlen(option) + 1);
  list->count++;
}

/* Lists the options for NVRTC. Requests relocatable code, because NVRTC otherwise removes functions
 * that no kernel calls. */
static void list_options(const nvrtc *library, const kj_link_target *target, const char *given,
                         option_list *list)
{
  static const char *const debug_options[] = {
    [KJIT_DEBUG_LINES] = "-lineinfo", [KJIT_DEBUG_FULL] = "-G"
  };
  add_architecture(library, target->name, list);
  add_option("-rdc=true", list);
  if (target->debug != KJIT_DEBUG_NONE) add_option(debug_options[target->debug], list);
  add_given(given, list);
  add_headers(library, list);
}

/* ---- compiling ---- */

static kjit_status fail_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Returns NVRTC's log without blank lines at its end, or NULL if there is none. */
static char *take_log(const nvrtc *library, void *program)
{
  size_t size_bytes = 0;
  if (library->nvrtcGetProgramLogSize(program, &size_bytes) || size_bytes <= 1) return NULL;
  char *log = calloc(1, size_bytes + 1);
  if (!log) return NULL;
  (void)library->nvrtcGetProgramLog(program, log);
  for (size_t length = strlen(log); length && isspace((unsigned char)log[length - 1]); length--)
    log[length - 1] = 0;
  if (*log) return log;
  free(log);
  return NULL;
}

static kjit_status take_ptx(const nvrtc *library, void *program, kj_diagnostics *diagnostics,
                            char **ptx, size_t *size_bytes)
{
  size_t bytes = 0; /* includes the 0 byte */
  int result = library->nvrtcGetPTXSize(program, &bytes);
  char *text = result || !bytes ? NULL : calloc(1, bytes + 1);
  if (!result && bytes && !text) return fail_memory(diagnostics);
  if (!text || library->nvrtcGetPTX(program, text)) {
    free(text);
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "NVRTC returned no PTX");
  }
  *ptx = text;
  *size_bytes = strlen(text);
  return KJIT_OK;
}

static kjit_status compile(const nvrtc *library, void *program, const kj_link_target *target,
                           const kj_link_input *input, kj_diagnostics *diagnostics, char **ptx,
                           size_t *size_bytes)
{
  option_list list = { 0 };
  list_options(library, target, input->options, &list);
  const char **options = list.text.failed ? NULL : calloc((size_t)list.count + 1, sizeof *options);
  if (!options) {
    kj_free_buffer(&list.text);
    return fail_memory(diagnostics);
  }
  const char *at = list.text.text;
  for (int i = 0; i < list.count; i++, at += strlen(at) + 1) options[i] = at;
  int result = library->nvrtcCompileProgram(program, list.count, options);
  free(options);
  kj_free_buffer(&list.text);
  char *log = take_log(library, program);
  kjit_status status = KJIT_OK;
  if (result == OUT_OF_MEMORY) status = fail_memory(diagnostics);
  else if (result)
    status = kj_error(diagnostics, KJIT_ERROR_COMPILE, "NVRTC cannot compile `%s` for %s (%s)%s%s",
                      input->name, target->name, library->nvrtcGetErrorString(result),
                      log ? ":\n" : "; it left no log", log ? log : "");
  else if (log)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_WARNING, KJIT_OK,
              "NVRTC log messages for `%s`:\n%s", input->name, log);
  free(log);
  return status == KJIT_OK ? take_ptx(library, program, diagnostics, ptx, size_bytes) : status;
}

kjit_status kj_compile_cuda_c(const kj_link_target *target, const kj_link_input *input,
                              kj_diagnostics *diagnostics, char **ptx, size_t *size_bytes)
{
  nvrtc library;
  void *program = NULL;
  KJ_TRY(open_nvrtc(target, input->name, diagnostics, &library));
  int result = library.nvrtcCreateProgram(&program, input->data, input->name, 0, NULL, NULL);
  if (result)
    return result == OUT_OF_MEMORY
             ? fail_memory(diagnostics)
             : kj_error(diagnostics, KJIT_ERROR_COMPILE, "NVRTC rejects the source of `%s` (%s)",
                        input->name, library.nvrtcGetErrorString(result));
  kjit_status status = compile(&library, program, target, input, diagnostics, ptx, size_bytes);
  (void)library.nvrtcDestroyProgram(&program);
  return status;
}

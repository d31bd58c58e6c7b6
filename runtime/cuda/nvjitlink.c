/* Links with nvJitLink if the input is LTO-IR or PTX that is newer than the driver, or if there is
 * no driver. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cuda/linker.h"
#include "cuda/ptx_symbols.h"
#include "support/assert.h"

/* ---- the library ---- */

/* Entry points of the library: X(name, (parameters)). Results are nvJitLinkResult. */
/* clang-format off */
#define ENTRIES(X) \
  X(nvJitLinkCreate, (void **link, unsigned count, const char **options)) \
  X(nvJitLinkDestroy, (void **link)) \
  X(nvJitLinkAddData, (void *link, int type, const void *data, size_t size_bytes, \
                       const char *name)) \
  X(nvJitLinkComplete, (void *link)) \
  X(nvJitLinkGetLinkedCubinSize, (void *link, size_t *size_bytes)) \
  X(nvJitLinkGetLinkedCubin, (void *link, void *cubin)) \
  X(nvJitLinkGetErrorLogSize, (void *link, size_t *size_bytes)) \
  X(nvJitLinkGetErrorLog, (void *link, char *log))
/* clang-format on */

typedef struct link_library {
#define X(name, parameters) int(*name) parameters;
  ENTRIES(X)
#undef X
} link_library;

static kjit_status open_library(const kj_link_target *target, const char *need,
                                kj_diagnostics *diagnostics, link_library *opened)
{
  static const kj_toolkit_library library = { "libnvJitLink.so", "nvJitLink",
                                              "nvidia-nvjitlink (CUDA 12: nvidia-nvjitlink-cu12)" };
  void *handle, *entry;
  KJ_TRY(kj_open_toolkit_library(&library, target, need, diagnostics, &handle));
#define X(function, parameters) \
  KJ_TRY(kj_find_toolkit_entry(handle, &library, #function, diagnostics, &entry)); \
  *(void **)&opened->function = entry;
  ENTRIES(X)
#undef X
  return KJIT_OK;
}

/* ---- inputs that need the library ---- */

/* Returns the PTX version of the text (90 for PTX 9.0), or 0 if the text does not contain a
 * version. */
static uint32_t read_ptx_version(const char *ptx)
{
  static const char word[] = ".version";
  const char *at = strstr(ptx, word);
  char *end;
  if (!at) return 0;
  unsigned long major = strtoul(at + sizeof word - 1, &end, 10);
  unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
  return (uint32_t)(major * 10 + minor);
}

static bool is_too_new(const kj_link_target *target, const kj_link_input *input)
{
  return input->format == KJIT_LINK_PTX && target->ptx_limit &&
         read_ptx_version(input->data) > target->ptx_limit;
}

/* Returns the first input that the driver cannot link, or NULL. */
static const kj_link_input *find_reason(const kj_link_target *target, const kj_link_input *inputs,
                                        size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (inputs[i].format == KJIT_LINK_LTOIR || is_too_new(target, &inputs[i])) return &inputs[i];
  return NULL;
}

bool kj_need_link_library(const kj_link_target *target, const kj_link_input *inputs, size_t count)
{
  return !target->driver_version || find_reason(target, inputs, count);
}

/* Describes why the driver cannot link an input, for example "f.ltoir is LTO-IR". */
static void describe_need(const kj_link_target *target, const kj_link_input *inputs, size_t count,
                          kj_buffer *need)
{
  const kj_link_input *reason = find_reason(target, inputs, count);
  if (!reason) kj_append_format(need, "`%s` is linked without a driver", inputs[0].name);
  else if (reason->format == KJIT_LINK_LTOIR) kj_append_format(need, "%s is LTO-IR", reason->name);
  else
    kj_append_format(need, "%s is PTX %u.%u and the driver takes PTX up to %u.%u", reason->name,
                     read_ptx_version(reason->data) / 10, read_ptx_version(reason->data) % 10,
                     target->ptx_limit / 10, target->ptx_limit % 10);
}

/* ---- linking ---- */

/* Reports an error with nvJitLink's log, whose lines begin with "error : ". */
static kjit_status report(const link_library *library, void *link, const char *call, int result,
                          const char *name, const kj_link_target *target,
                          kj_diagnostics *diagnostics)
{
  size_t size_bytes = 0;
  char *log = NULL;
  if (link && !library->nvJitLinkGetErrorLogSize(link, &size_bytes) && size_bytes > 1)
    log = calloc(1, size_bytes + 1);
  if (log) (void)library->nvJitLinkGetErrorLog(link, log);
  for (size_t length = log ? strlen(log) : 0; length && isspace((unsigned char)log[length - 1]);
       length--)
    log[length - 1] = 0;
  bool has_log = log && *log;
  kjit_status status =
    kj_error(diagnostics, KJIT_ERROR_COMPILE, "nvJitLink cannot link `%s` for %s: %s gives %d%s%s",
             name, target->name, call, result, has_log ? ":\n" : "; it left no log",
             has_log ? log : "");
  free(log);
  return status;
}

static kjit_status take_cubin(const link_library *library, void *link, kj_diagnostics *diagnostics,
                              void **cubin, size_t *cubin_bytes)
{
  size_t size_bytes = 0;
  if (library->nvJitLinkGetLinkedCubinSize(link, &size_bytes) || !size_bytes)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "nvJitLink gave no cubin");
  char *copy = calloc(1, size_bytes + 1);
  if (!copy) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (library->nvJitLinkGetLinkedCubin(link, copy)) {
    free(copy);
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "nvJitLink gave no cubin");
  }
  *cubin = copy;
  *cubin_bytes = size_bytes;
  return KJIT_OK;
}

static kjit_status add_and_complete(const link_library *library, void *link,
                                    const kj_link_target *target, const kj_link_input *inputs,
                                    size_t count, kj_diagnostics *diagnostics)
{
  static const int types[] = {
    [KJIT_LINK_CUBIN] = 1,  [KJIT_LINK_PTX] = 2,    [KJIT_LINK_LTOIR] = 3,
    [KJIT_LINK_FATBIN] = 4, [KJIT_LINK_OBJECT] = 5, [KJIT_LINK_ARCHIVE] = 6
  };
  for (size_t i = 0; i < count; i++) {
    const kj_link_input *input = &inputs[i];
    KJ_ASSERT(input->format != KJIT_LINK_CUDA_C && types[input->format]);
    size_t end = input->format == KJIT_LINK_PTX; /* the size of PTX includes its 0 byte */
    int result = library->nvJitLinkAddData(link, types[input->format], input->data,
                                           input->size_bytes + end, input->name);
    if (result)
      return report(library, link, "nvJitLinkAddData", result, input->name, target, diagnostics);
  }
  int result = library->nvJitLinkComplete(link);
  return result
           ? report(library, link, "nvJitLinkComplete", result, inputs[0].name, target, diagnostics)
           : KJIT_OK;
}

static kjit_status create(const link_library *library, const kj_link_target *target, bool is_lto,
                          const char *name, kj_diagnostics *diagnostics, void **link)
{
  static const char *const debug_options[] = {
    [KJIT_DEBUG_LINES] = "-lineinfo", [KJIT_DEBUG_FULL] = "-g"
  };
  kj_buffer architecture = { 0 };
  kj_append_format(&architecture, "-arch=%s", target->name);
  if (architecture.failed) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  const char *options[4] = { architecture.text };
  unsigned count = 1;
  if (target->debug != KJIT_DEBUG_NONE) options[count++] = debug_options[target->debug];
  if (is_lto) options[count++] = "-lto";
  *link = NULL;
  int result = library->nvJitLinkCreate(link, count, options);
  kj_free_buffer(&architecture);
  if (!result) return KJIT_OK;
  kjit_status status = report(library, *link, "nvJitLinkCreate", result, name, target, diagnostics);
  if (*link) (void)library->nvJitLinkDestroy(link);
  return status;
}

kjit_status kj_link_by_library(const kj_link_target *target, const kj_link_input *inputs,
                               size_t count, kj_diagnostics *diagnostics, void **cubin,
                               size_t *cubin_bytes)
{
  link_library library;
  void *link;
  kj_buffer need = { 0 };
  bool is_lto = false;
  describe_need(target, inputs, count, &need);
  kjit_status status =
    open_library(target, need.failed ? "linked code" : need.text, diagnostics, &library);
  kj_free_buffer(&need);
  if (status != KJIT_OK) return status;
  for (size_t i = 0; i < count; i++) is_lto |= inputs[i].format == KJIT_LINK_LTOIR;
  KJ_TRY(create(&library, target, is_lto, inputs[0].name, diagnostics, &link));
  status = add_and_complete(&library, link, target, inputs, count, diagnostics);
  if (status == KJIT_OK) status = take_cubin(&library, link, diagnostics, cubin, cubin_bytes);
  (void)library.nvJitLinkDestroy(&link);
  return status;
}

/* ---- CUDA C among the inputs ---- */

kjit_status kj_prepare_inputs(const kj_link_target *target, const kj_link_input *inputs,
                              size_t count, kj_diagnostics *diagnostics,
                              kj_prepared_inputs *prepared)
{
  *prepared = (kj_prepared_inputs){ .items = calloc(count, sizeof *prepared->items),
                                    .count = count,
                                    .made = calloc(count, sizeof *prepared->made) };
  kjit_status status = KJIT_OK;
  if (!prepared->items || !prepared->made)
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  for (size_t i = 0; i < count && status == KJIT_OK; i++) {
    kj_link_input *item = &prepared->items[i];
    *item = inputs[i];
    if (item->format != KJIT_LINK_CUDA_C) continue;
    status =
      kj_compile_cuda_c(target, &inputs[i], diagnostics, &prepared->made[i], &item->size_bytes);
    item->format = KJIT_LINK_PTX;
    item->data = prepared->made[i];
  }
  if (status == KJIT_OK) status = kj_check_ptx_definitions(prepared->items, count, diagnostics);
  if (status != KJIT_OK) kj_free_prepared(prepared);
  return status;
}

void kj_free_prepared(kj_prepared_inputs *prepared)
{
  for (size_t i = 0; prepared->made && i < prepared->count; i++) free(prepared->made[i]);
  free(prepared->made);
  free(prepared->items);
  *prepared = (kj_prepared_inputs){ 0 };
}

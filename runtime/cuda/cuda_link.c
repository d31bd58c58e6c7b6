/* Links the PTX of a kernel with the code that the application has bound to its extern funcs. The
 * result is machine code. The driver links the code if it accepts it, otherwise nvJitLink does. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/linker.h"
#include "support/assert.h"

/* ---- options of the driver's compiler; loading and linking use the same options, so that they
 * produce the same code ---- */

static void add_option(kj_jit_options *options, int name, uintptr_t value)
{
  KJ_ASSERT(options->count < sizeof options->names / sizeof *options->names);
  options->names[options->count] = name;
  options->values[options->count++] = (void *)value; /* NOLINT(performance-no-int-to-ptr) */
}

kj_jit_options kj_make_jit_options(const kjit_device *device, bool is_plain, char *log)
{
  enum { PLAIN_LEVEL = 1 };
  kjit_debug debug = device->context->config.debug;
  kj_jit_options options = { 0 };
  add_option(&options, KJ_CU_JIT_ERROR_LOG, (uintptr_t)log);
  add_option(&options, KJ_CU_JIT_ERROR_LOG_BYTES, KJ_LOG_BYTES);
  if (debug == KJIT_DEBUG_FULL) add_option(&options, KJ_CU_JIT_GENERATE_DEBUG_INFO, 1);
  if (debug == KJIT_DEBUG_LINES) add_option(&options, KJ_CU_JIT_GENERATE_LINE_INFO, 1);
  if (is_plain) add_option(&options, KJ_CU_JIT_OPTIMIZATION_LEVEL, PLAIN_LEVEL);
  return options;
}

/* Removes blank lines at the end of a log and returns its length. */
size_t kj_trim_log(char *log)
{
  size_t length = strnlen(log, KJ_LOG_BYTES - 1);
  while (length && (log[length - 1] == '\n' || log[length - 1] == ' ')) length--;
  log[length] = 0;
  return length;
}

/* ---- the driver's linker: translates PTX like loading does, but returns the result, and accepts
 * several inputs ---- */

static kjit_status report_link(kjit_device *device, int result, const char *call, char *log,
                               const char *name, kj_diagnostics *diagnostics)
{
  if (!kj_trim_log(log)) return kj_check_kernel_call(device, name, result, call, diagnostics);
  return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                  "the driver cannot link the code of `%s` for %s:\n%s", name, device->target, log);
}

/* Copies the cubin, because the original belongs to the driver's link state. */
static kjit_status copy_cubin(const void *linked, size_t linked_bytes, kj_diagnostics *diagnostics,
                              void **cubin, size_t *cubin_bytes)
{
  if (!linked || !linked_bytes)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "the driver's linker returned no code");
  void *copy = malloc(linked_bytes);
  if (!copy) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *cubin = memcpy(copy, linked, linked_bytes);
  *cubin_bytes = linked_bytes;
  return KJIT_OK;
}

/* CUjitInputType of each format, or -1 if the driver does not accept the format. */
static const int input_types[] = {
  [KJIT_LINK_DETECT] = -1, [KJIT_LINK_CUDA_C] = -1, [KJIT_LINK_CUBIN] = 0,   [KJIT_LINK_PTX] = 1,
  [KJIT_LINK_FATBIN] = 2,  [KJIT_LINK_OBJECT] = 3,  [KJIT_LINK_ARCHIVE] = 4, [KJIT_LINK_LTOIR] = -1
};

static kjit_status add_and_complete(kjit_device *device, void *link, const kj_link_input *inputs,
                                    size_t count, char *log, kj_diagnostics *diagnostics,
                                    void **cubin, size_t *cubin_bytes)
{
  for (size_t i = 0; i < count; i++) {
    const kj_link_input *input = &inputs[i];
    KJ_ASSERT(input_types[input->format] >= 0 && !input->data[input->size_bytes]);
    size_t end = input->format == KJIT_LINK_PTX; /* the size of PTX includes its 0 byte */
    int result = device->driver->cuLinkAddData(link, input_types[input->format],
                                               (void *)(uintptr_t)input->data,
                                               input->size_bytes + end, input->name, 0, NULL, NULL);
    if (result) return report_link(device, result, "cuLinkAddData", log, input->name, diagnostics);
  }
  void *linked = NULL;
  size_t linked_bytes = 0;
  int result = device->driver->cuLinkComplete(link, &linked, &linked_bytes);
  if (result)
    return report_link(device, result, "cuLinkComplete", log, inputs[0].name, diagnostics);
  return copy_cubin(linked, linked_bytes, diagnostics, cubin, cubin_bytes);
}

static kjit_status link_by_driver(kjit_device *device, const kj_link_input *inputs, size_t count,
                                  kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  void *link = NULL;
  char *log = calloc(1, KJ_LOG_BYTES);
  if (!log) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_jit_options options = kj_make_jit_options(device, false, log);
  kjit_status status = KJ_DRIVER(device, diagnostics, cuLinkCreate, options.count, options.names,
                                 options.values, &link);
  if (status == KJIT_OK) {
    status = add_and_complete(device, link, inputs, count, log, diagnostics, cubin, cubin_bytes);
    device->driver->cuLinkDestroy(link);
  }
  free(log);
  return status;
}

static kjit_status link_prepared(kjit_device *device, const kj_link_target *target,
                                 const kj_link_input *inputs, size_t count,
                                 kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  void *previous;
  if (kj_need_link_library(target, inputs, count))
    return kj_link_by_library(target, inputs, count, diagnostics, cubin, cubin_bytes);
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = link_by_driver(device, inputs, count, diagnostics, cubin, cubin_bytes);
  kj_leave_device(device, previous);
  return status;
}

/* Returns the newest PTX version that a driver accepts. For drivers that kj_ptx_limit does not
 * list, the PTX version follows from the CUDA version: PTX 9.x for CUDA 13.x. */
static uint32_t find_ptx_limit(int driver_version)
{
  uint32_t limit = kj_ptx_limit(driver_version);
  int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  return limit ? limit : (uint32_t)((major - 4) * 10 + minor);
}

kjit_status kj_cuda_link(kjit_device *device, const kj_link_input *inputs, size_t count,
                         kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  kj_prepared_inputs prepared;
  int version = device->driver->version;
  const kj_link_target target = { .name = device->code_target,
                                  .debug = device->context->config.debug,
                                  .driver_version = version,
                                  .ptx_limit = find_ptx_limit(version) };
  KJ_TRY(kj_prepare_inputs(&target, inputs, count, diagnostics, &prepared));
  kjit_status status =
    link_prepared(device, &target, prepared.items, count, diagnostics, cubin, cubin_bytes);
  kj_free_prepared(&prepared);
  return status;
}

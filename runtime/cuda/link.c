/* PTX to machine code by the driver's linker: the same compilation that loading PTX does, with a
 * result that can be kept, and from several texts. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

enum { LOG_BYTES = 16384 };

static kjit_status report_link(kjit_device *device, int result, const char *call, char *log,
                               const char *name, kj_diagnostics *diagnostics)
{
  size_t length = strnlen(log, LOG_BYTES - 1);
  while (length && (log[length - 1] == '\n' || log[length - 1] == ' ' || log[length - 1] == 0))
    length--;
  log[length] = 0;
  if (!length) return kj_check_kernel_call(device, name, result, call, diagnostics);
  return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                  "the driver cannot link the code of `%s` for %s:\n%s", name, device->target, log);
}

/* The cubin belongs to the link. */
static kjit_status copy_cubin(const void *linked, size_t linked_bytes, kj_diagnostics *diagnostics,
                              void **cubin, size_t *cubin_bytes)
{
  if (!linked || !linked_bytes)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "the driver's linker gave no code");
  void *copy = malloc(linked_bytes);
  if (!copy) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *cubin = memcpy(copy, linked, linked_bytes);
  *cubin_bytes = linked_bytes;
  return KJIT_OK;
}

static kjit_status add_and_complete(kjit_device *device, void *link, const kj_link_input *inputs,
                                    size_t count, char *log, kj_diagnostics *diagnostics,
                                    void **cubin, size_t *cubin_bytes)
{
  enum { INPUT_PTX = 1 };              /* CUjitInputType */
  for (size_t i = 0; i < count; i++) { /* PTX is counted with the 0 byte after it */
    int result =
      device->driver->cuLinkAddData(link, INPUT_PTX, (void *)(uintptr_t)inputs[i].ptx,
                                    inputs[i].size_bytes + 1, inputs[i].name, 0, NULL, NULL);
    if (result)
      return report_link(device, result, "cuLinkAddData", log, inputs[i].name, diagnostics);
  }
  void *linked = NULL;
  size_t linked_bytes = 0;
  int result = device->driver->cuLinkComplete(link, &linked, &linked_bytes);
  if (result)
    return report_link(device, result, "cuLinkComplete", log, inputs[0].name, diagnostics);
  return copy_cubin(linked, linked_bytes, diagnostics, cubin, cubin_bytes);
}

static kjit_status link_inputs(kjit_device *device, const kj_link_input *inputs, size_t count,
                               kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  void *link = NULL;
  char *log = calloc(1, LOG_BYTES);
  if (!log) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  /* as load.c has it: the same code comes of it */
  kjit_debug debug = device->context->config.debug;
  int options[] = { KJ_CU_JIT_ERROR_LOG, KJ_CU_JIT_ERROR_LOG_BYTES,
                    debug == KJIT_DEBUG_FULL ? KJ_CU_JIT_GENERATE_DEBUG_INFO
                                             : KJ_CU_JIT_GENERATE_LINE_INFO };
  void *values[] = { log, (void *)(uintptr_t)LOG_BYTES, (void *)(uintptr_t)1 };
  kjit_status status = KJ_DRIVER(device, diagnostics, cuLinkCreate,
                                 debug == KJIT_DEBUG_NONE ? 2 : 3, options, values, &link);
  if (status == KJIT_OK) {
    status = add_and_complete(device, link, inputs, count, log, diagnostics, cubin, cubin_bytes);
    device->driver->cuLinkDestroy(link);
  }
  free(log);
  return status;
}

kjit_status kj_link_cuda(kjit_device *device, const kj_link_input *inputs, size_t count,
                         kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = link_inputs(device, inputs, count, diagnostics, cubin, cubin_bytes);
  kj_leave_device(device, previous);
  return status;
}

/* PTX to machine code by the driver's linker: the same compilation that loading PTX does, with a result that can be kept. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

/* The cubin belongs to the link. */
static bool copy_cubin(kjit_device *device, void *link, void **cubin, size_t *cubin_bytes)
{
  void *linked = NULL;
  size_t linked_bytes = 0;
  if (device->driver->cuLinkComplete(link, &linked, &linked_bytes) || !linked || !linked_bytes) return false;
  *cubin = malloc(linked_bytes);
  if (!*cubin) return false;
  memcpy(*cubin, linked, linked_bytes);
  *cubin_bytes = linked_bytes;
  return true;
}

static bool link_ptx(kjit_device *device, const void *ptx, size_t size_bytes, const char *entry, void **cubin, size_t *cubin_bytes)
{
  enum { INPUT_PTX = 1 }; /* CUjitInputType */
  void *link = NULL;
  if (device->driver->cuLinkCreate(0, NULL, NULL, &link)) return false;
  /* PTX is counted with the 0 byte after it. */
  bool is_linked = !device->driver->cuLinkAddData(link, INPUT_PTX, (void *)(uintptr_t)ptx, size_bytes + 1, entry, 0, NULL, NULL) &&
                   copy_cubin(device, link, cubin, cubin_bytes);
  device->driver->cuLinkDestroy(link);
  return is_linked;
}

/* A fault of an earlier kernel may also arrive here: the load that follows reports it. */
bool kj_link_cuda(kjit_device *device, const void *ptx, size_t size_bytes, const char *entry, void **cubin, size_t *cubin_bytes)
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  bool is_linked = kj_enter_device(device, &ignored, &previous) == KJIT_OK;
  if (is_linked) {
    is_linked = link_ptx(device, ptx, size_bytes, entry, cubin, cubin_bytes);
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
  return is_linked;
}

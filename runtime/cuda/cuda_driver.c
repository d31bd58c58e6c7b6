#include "cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *find_in_library(void *library, const char *symbol) { return dlsym(library, symbol); }

static kjit_status find_entry_points(kj_driver *driver,
                                     void *(*find)(void *user, const char *symbol), void *user,
                                     kj_diagnostics *diagnostics)
{
#define X(name, symbol, parameters) \
  *(void **)&driver->name = find(user, symbol); \
  if (!driver->name) \
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE, \
                    "the CUDA driver is too old: libcuda.so.1 does not define %s", symbol);
#define X_OPTIONAL(name, symbol, parameters) *(void **)&driver->name = find(user, symbol);
#include "cuda/driver.def"
#undef X
  return KJIT_OK;
}

/* If cuInit returns CUDA_ERROR_NO_DEVICE, the driver works, but the machine has no GPU, or its GPUs
 * are hidden (CUDA_VISIBLE_DEVICES). */
enum { NOT_INITIALIZED = 3, NO_DEVICE = 100 };

static kjit_status start_driver(kj_driver *driver, kj_diagnostics *diagnostics,
                                uint32_t *device_count)
{
  int count = 0, result = driver->cuInit(0);
  if (result == NO_DEVICE)
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE, "the CUDA driver finds no GPU");
  if (result == NOT_INITIALIZED)
    return kj_error(diagnostics, KJIT_ERROR_FORKED,
                    "the CUDA driver was in use when this process was forked; a child process "
                    "cannot use it (cuInit returns %d)",
                    result);
  if (result) {
    const char *name = NULL;
    driver->cuGetErrorName(result, &name);
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                    "the CUDA driver cannot be initialized: cuInit returns %s (%d)",
                    name ? name : "an unknown error", result);
  }
  KJ_TRY(kj_check_driver(driver, NULL, driver->cuDriverGetVersion(&driver->version),
                         "cuDriverGetVersion", diagnostics));
  KJ_TRY(kj_check_driver(driver, NULL, driver->cuDeviceGetCount(&count), "cuDeviceGetCount",
                         diagnostics));
  *device_count = count > 0 ? (uint32_t)count : 0;
  return KJIT_OK;
}

kjit_status kj_open_driver(void *(*find)(void *user, const char *symbol), void *user,
                           kj_diagnostics *diagnostics, kj_driver **driver, uint32_t *device_count)
{
  kj_driver *opened = calloc(1, sizeof *opened);
  if (!opened) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (!find) {
    opened->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened->library) {
      const char *reason = dlerror();
      free(opened);
      return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE, "no CUDA driver: %s",
                      reason ? reason : "libcuda.so.1 cannot be opened");
    }
    find = find_in_library;
    user = opened->library;
  }
  kjit_status status = find_entry_points(opened, find, user, diagnostics);
  if (status == KJIT_OK) status = start_driver(opened, diagnostics, device_count);
  if (status != KJIT_OK) {
    kj_close_driver(opened);
    return status;
  }
  *driver = opened;
  return KJIT_OK;
}

/* The library stays open, because the driver has threads and exit handlers. */
void kj_close_driver(kj_driver *driver) { free(driver); }

uint32_t kj_ptx_limit(int driver_version)
{
  /* Newest PTX version of each driver version, from the release notes in NVIDIA's PTX ISA
   * documentation. */
  static const struct {
    int driver;
    uint32_t ptx;
  } limits[] = {
    { 10020, 65 }, { 11000, 70 }, { 11010, 71 }, { 11020, 72 }, { 11030, 73 },
    { 11040, 74 }, { 11050, 75 }, { 11060, 76 }, { 11070, 77 }, { 11080, 78 },
    { 12000, 80 }, { 12010, 81 }, { 12020, 82 }, { 12030, 83 }, { 12040, 84 },
    { 12050, 85 }, { 12070, 86 }, { 12080, 87 }, { 12090, 88 }, { 13000, 90 },
  };
  size_t count = sizeof limits / sizeof *limits;
  if (driver_version > limits[count - 1].driver) return 0;
  uint32_t ptx = limits[0].ptx;
  for (size_t i = 0; i < count && limits[i].driver <= driver_version; i++) ptx = limits[i].ptx;
  return ptx;
}

/* ---- errors ---- */

/* Returns whether the driver's context cannot be used after this error. */
static bool is_fault(int result)
{
  static const int faults[] = {
    214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (faults[i] == result) return true;
  return false;
}

static kjit_status status_of(int result)
{
  enum { FIRST_OF_CAPTURE = 900, LAST_OF_CAPTURE = 908 };
  if (result >= FIRST_OF_CAPTURE && result <= LAST_OF_CAPTURE) return KJIT_ERROR_MISUSE;
  enum {
    INVALID_DEVICE = 101,
    LAUNCH_OUT_OF_RESOURCES = 701,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    INVALID_CLUSTER_SIZE = 912
  };
  switch (result) {
  case KJ_CU_OUT_OF_MEMORY: return KJIT_ERROR_DEVICE_MEMORY;
  case NO_DEVICE:
  case INVALID_DEVICE: return KJIT_ERROR_NO_DEVICE;
  case LAUNCH_OUT_OF_RESOURCES:
  case COOPERATIVE_LAUNCH_TOO_LARGE:
  case INVALID_CLUSTER_SIZE: return KJIT_ERROR_LAUNCH;
  default: return KJIT_ERROR_DEVICE;
  }
}

/* Appends for example "cuda:0: " or "kernel `k` on cuda:0: ". */
static void append_place(const kjit_device *device, const char *kernel, kj_buffer *buffer)
{
  char place[24];
  if (kernel) kj_append_format(buffer, "kernel `%s` on ", kernel);
  if (device) kj_append_format(buffer, "%s: ", kj_device_text(device, place));
}

/* Reports an error of the driver. Any kernel that was launched before may have caused a fault, so
 * the message of a fault lists the launched kernels. */
static kjit_status check_call(const kj_driver *driver, kjit_device *device, const char *kernel,
                              int result, const char *call, kj_diagnostics *diagnostics)
{
  const char *name = NULL, *text = NULL;
  KJ_ASSERT(result && call);
  driver->cuGetErrorName(result, &name);
  driver->cuGetErrorString(result, &text);
  kj_buffer buffer = { 0 };
  bool is_lost = device && is_fault(result);
  if (!is_lost) append_place(device, kernel, &buffer);
  kj_append_format(&buffer, "%s gives %s (%d): %s", call, name ? name : "an unknown error", result,
                   text ? text : "no description");
  kjit_status status = status_of(result);
  KJ_ASSERT(status != KJIT_OK);
  const char *message = buffer.text ? buffer.text : call;
  if (is_lost) {
    kj_lose_device(device, message);
    status = kj_check_device(device, diagnostics);
  } else {
    kj_error(diagnostics, status, "%s", message);
  }
  kj_free_buffer(&buffer);
  return status;
}

kjit_status kj_check_driver(const kj_driver *driver, kjit_device *device, int result,
                            const char *call, kj_diagnostics *diagnostics)
{
  return result ? check_call(driver, device, NULL, result, call, diagnostics) : KJIT_OK;
}

kjit_status kj_check_kernel_call(kjit_device *device, const char *kernel, int result,
                                 const char *call, kj_diagnostics *diagnostics)
{
  return result ? check_call(device->driver, device, kernel, result, call, diagnostics) : KJIT_OK;
}

/* What a profiler is told: where to look, and the names of ranges. */
#include <dlfcn.h>
#include <pthread.h>

#include "device_memory.h"

/* ---- the profiler ---- */

static kjit_status tell_profiler(kjit_device *device, bool is_start)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (kj_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!kj_is_cuda(device)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  void *previous;
  if (kj_enter_device(device, &diagnostics, &previous) == KJIT_OK) {
    if (is_start) (void)KJ_DRIVER(device, &diagnostics, cuProfilerStart);
    else (void)KJ_DRIVER(device, &diagnostics, cuProfilerStop);
    kj_leave_device(device, previous);
  }
  return kj_finish_call(device->context, &diagnostics);
}

kjit_status kjit_start_profiler(kjit_device *device) { return tell_profiler(device, true); }
kjit_status kjit_stop_profiler(kjit_device *device) { return tell_profiler(device, false); }

/* ---- ranges: NVIDIA's tools extension, which profilers put themselves into ---- */

static struct {
  int (*push)(const char *name);
  int (*pop)(void);
} nvtx;

/* The library stays: it belongs to the process, as what a profiler hangs into it. */
static void open_nvtx(void)
{
  void *library = dlopen("libnvToolsExt.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  *(void **)&nvtx.push = dlsym(library, "nvtxRangePushA");
  *(void **)&nvtx.pop = dlsym(library, "nvtxRangePop");
}

static bool has_nvtx(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_nvtx);
  return nvtx.push && nvtx.pop;
}

uint32_t kjit_begin_range(kjit_context *context, const char *name)
{
  if (!context || !name || kj_is_forked(context) || !has_nvtx()) return 0;
  int level = nvtx.push(name); /* 0: the first; negative: no profiler listens */
  return level < 0 ? 0 : (uint32_t)level + 1;
}

void kjit_end_range(kjit_context *context)
{
  if (context && !kj_is_forked(context) && has_nvtx()) (void)nvtx.pop();
}

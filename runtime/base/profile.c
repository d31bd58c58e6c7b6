/* Profiler control and named ranges for profilers (NVTX). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/device.h"

/* ---- the profiler ---- */

static kjit_status tell_profiler(kjit_device *device, bool is_start)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!device->operations->tell_profiler) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  (void)device->operations->tell_profiler(device, is_start, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_start_profiler(kjit_device *device) { return tell_profiler(device, true); }
kjit_status kjit_stop_profiler(kjit_device *device) { return tell_profiler(device, false); }

/* ---- ranges: NVTX ----
 *
 * A tool that records ranges names its library in an environment variable. The program loads the
 * library and calls its entry point with a function that returns tables by number. The tool
 * requests the locations of the function pointers that it wants to intercept and stores its own
 * functions there. kjit implements this protocol itself, because NVIDIA's NVTX header is not part
 * of Debian and the older NVTX library is not part of CUDA 13. The table has entries for all NVTX
 * functions, because a tool may fill in every function that it knows. */

enum {
  TABLE_CALLBACKS = 1,
  TABLE_VERSION = 3,
  MODULE_CORE = 1,
  MODULE_COUNT = 7,
  MOST_FUNCTIONS = 17
};
enum { RANGE_PUSH = 9, RANGE_POP = 11 }; /* indices in the core module, for char strings */

typedef void (*tool_function)(void);

typedef struct callback_table {
  size_t size_bytes;
  /* returns 0 if the module has no table */
  int (*get_functions)(unsigned module, tool_function ***functions, unsigned *count);
} callback_table;

typedef struct version_table {
  size_t size_bytes;
  uint32_t version, reserved;
  void (*set_tool_version)(uint32_t version);
} version_table;

static struct {
  tool_function functions[MODULE_COUNT][MOST_FUNCTIONS], *places[MODULE_COUNT][MOST_FUNCTIONS];
  bool has_tool;
} nvtx;

/* Entry 0 is unused, and a NULL entry ends the table. */
static int get_functions(unsigned module, tool_function ***functions, unsigned *count)
{
  /* numbers of entries in the tables core, driver API, OpenCL, runtime API, domains and
   * synchronization */
  static const uint8_t counts[MODULE_COUNT] = { 0, 16, 9, 15, 7, 16, 7 };
  if (module >= MODULE_COUNT || !counts[module]) return 0;
  for (unsigned i = 1; i < counts[module]; i++) nvtx.places[module][i] = &nvtx.functions[module][i];
  if (functions) *functions = nvtx.places[module];
  if (count) *count = counts[module];
  return 1;
}

static void set_tool_version(uint32_t version) { (void)version; }

static const void *get_table(uint32_t number)
{
  static const callback_table callbacks = { sizeof callbacks, get_functions };
  static const version_table version = { sizeof version, 3, 0, set_tool_version };
  return number == TABLE_CALLBACKS ? (const void *)&callbacks
         : number == TABLE_VERSION ? &version
                                   : NULL;
}

/* Loads the profiler's library. The library stays loaded, because it serves the whole process. */
static void open_nvtx(void)
{
  const char *path =
    secure_getenv(sizeof(void *) == 4 ? "NVTX_INJECTION32_PATH" : "NVTX_INJECTION64_PATH");
  void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
  if (!library) return;
  int (*start)(const void *(*tables)(uint32_t number));
  *(void **)&start = dlsym(library, "InitializeInjectionNvtx2");
  if (!start || !start(get_table)) {
    dlclose(library);
    return;
  }
  nvtx.has_tool = true;
}

/* Returns the tool's function, or NULL if there is no tool or the tool does not intercept this
 * function. */
static tool_function get_function(const kjit_context *context, int index)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!context || ki_is_forked(context)) return NULL;
  pthread_once(&once, open_nvtx);
  return nvtx.has_tool ? nvtx.functions[MODULE_CORE][index] : NULL;
}

uint32_t kjit_begin_range(kjit_context *context, const char *name)
{
  int (*push)(const char *name) = (int (*)(const char *))get_function(context, RANGE_PUSH);
  /* nesting level of the range, from 0; a negative number means that the tool does not count
   * levels */
  int level = push && name ? push(name) : -1;
  return level < 0 ? 0 : (uint32_t)level + 1;
}

void kjit_end_range(kjit_context *context)
{
  int (*pop)(void) = (int (*)(void))get_function(context, RANGE_POP);
  if (pop) (void)pop();
}

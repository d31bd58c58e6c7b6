/* An NVTX injection library that acts as a profiler. It records each event as a line of text,
 * "THREAD push NAME" or "THREAD pop". NVTX_RECORDER_REFUSES makes it refuse to start. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Numbers and structs of the protocol, from NVIDIA's header nvtxTypes.h. */
typedef void (*any_function)(void);
typedef struct callbacks {
  size_t size_bytes;
  int (*get_module)(unsigned module, any_function ***table, unsigned *count);
} callbacks;
typedef struct version_info {
  size_t size_bytes;
  uint32_t version, reserved;
  void (*set_version)(uint32_t version);
} version_info;

EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));
EXPORT const char *nvtx_recorder_text(void);
EXPORT int nvtx_recorder_starts(void);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 16];
static size_t length;
static int starts;
static _Thread_local int depth;

static void record(const char *what, const char *name)
{
  pthread_mutex_lock(&mutex);
  if (length < sizeof text - 1)
    length += (size_t)snprintf(text + length, sizeof text - length, "%ld %s%s\n",
                               syscall(SYS_gettid), what, name);
  pthread_mutex_unlock(&mutex);
}

static int push(const char *name)
{
  record("push ", name);
  return depth++;
}

static int pop(void)
{
  record("pop", "");
  return --depth;
}

/* Fills in all function pointers, as a profiler does that records everything. Only ranges are
 * expected; other calls abort.
 */
static void unexpected(void) { abort(); }

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
  static const unsigned counts[] = { 0, 16, 9, 15, 7, 16, 7 };
  const callbacks *table = get_table(1);
  const version_info *version = get_table(3);
  starts++;
  if (getenv("NVTX_RECORDER_REFUSES")) return 0;
  if (!table || table->size_bytes < sizeof *table || !version ||
      version->size_bytes < sizeof *version || version->version != 3)
    abort();
  if (get_table(0) || get_table(2) || get_table(4)) abort();
  version->set_version(3);
  any_function **functions;
  unsigned count;
  for (unsigned module = 1; module < 7; module++) {
    if (!table->get_module(module, &functions, &count) || count != counts[module] || functions[0] ||
        functions[count])
      abort();
    for (unsigned i = 1; i < count; i++) *functions[i] = unexpected;
  }
  if (table->get_module(0, &functions, &count) || table->get_module(7, &functions, &count)) abort();
  if (!table->get_module(1, &functions, &count)) abort();
  *functions[9] = (any_function)push;
  *functions[11] = (any_function)pop;
  return 1;
}

const char *nvtx_recorder_text(void) { return text; }
int nvtx_recorder_starts(void) { return starts; }

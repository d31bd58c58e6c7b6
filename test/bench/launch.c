/* Measures the host time of one launch with 0, 1, 4 and 16 arguments: kjit_launch, and a prepared
 * launch with and without a replaced argument, compared with cuLaunchKernel of the same driver for
 * a kernel with the same number of parameter bytes. Without a GPU it measures kjit's part alone,
 * with kernels of one thread that do nearly nothing.
 *
 *   launch [cuda|cpu] [rounds]
 *
 * A round has one launch of each row, so that changes of the machine's speed affect all rows. The
 * program prints the median of the rounds. */
#include <dlfcn.h>
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MOST_ARGUMENTS = 16,
  MOST_ROUNDS = 1000,
  LAUNCHES = 256 /* launches of a round: fewer than the driver can queue without waiting */
};

static const char source[] =
  "kernel none() { }\n"
  "kernel one(a: f32[:] C) { if threadIdx.x == 1 { a[0] = 1 } }\n"
  "kernel four(r: f32[:] C, a: f32, x: f32[:] C, y: f32[:] C) { if threadIdx.x == 1 { r[0] = a * "
  "x[0] + y[0] } }\n"
  "kernel arrays(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {\n"
  "  if threadIdx.x == 1 { a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0] + "
  "k[0] + l[0] + m[0] + n[0] + o[0] + p[0] }\n}\n"
  "kernel mixed(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {\n"
  "  if threadIdx.x == 1 { a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i + j + k + l + "
  "m + n + o + p }\n}\n";

typedef struct row {
  /* arguments: a means a kjit array, t a tensor of the application, s a scalar */
  const char *kernel, *arguments, *text;
  int parameter_bytes; /* parameter bytes of the kernel that is launched with the driver */
} row;

static const row rows[] = {
  { "none", "", "none", 0 },
  { "one", "a", "1 array", 8 },
  { "four", "asaa", "3 arrays, 1 scalar", 32 },
  { "arrays", "aaaaaaaaaaaaaaaa", "16 arrays", 128 },
  { "arrays", "tttttttttttttttt", "16 tensors", 128 },
  { "mixed", "aaaaaaaassssssss", "8 arrays, 8 scalars", 96 },
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct bench {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_array *arrays[MOST_ARGUMENTS];
  kjit_launch_config config;
  int rounds;
  /* the driver, raw */
  void *functions[ROWS];
  int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned, void *stream, void **parameters, void **extra);
  int (*synchronize)(void);
} bench;

static void check(bench *b, kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *text = b->context ? kjit_copy_diagnostics_text(b->context) : NULL;
  fprintf(stderr, "launch: %s: %s\n%s", what, kjit_get_status_name(status), text ? text : "");
  exit(1);
}

static uint64_t clock_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- the driver ---- */

static void *find(void *library, const char *symbol)
{
  void *found = dlsym(library, symbol);
  if (!found) fprintf(stderr, "launch: libcuda.so.1 has no %s\n", symbol), exit(1);
  return found;
}

static void require(int result, const char *call)
{
  if (result) fprintf(stderr, "launch: %s gives %d\n", call, result), exit(1);
}

static void load_raw(bench *b)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *module = NULL;
  if (!library) fprintf(stderr, "launch: %s\n", dlerror()), exit(1);
  int (*retain)(void **, int), (*set)(void *), (*load)(void **, const void *),
    (*get)(void **, void *, const char *);
  *(void **)&retain = find(library, "cuDevicePrimaryCtxRetain");
  *(void **)&set = find(library, "cuCtxSetCurrent");
  *(void **)&load = find(library, "cuModuleLoadData");
  *(void **)&get = find(library, "cuModuleGetFunction");
  *(void **)&b->launch = find(library, "cuLaunchKernel");
  *(void **)&b->synchronize = find(library, "cuCtxSynchronize");
  require(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(set(context), "cuCtxSetCurrent");
  for (int i = 0; i < ROWS; i++) {
    char ptx[256], parameter[64] = "";
    if (rows[i].parameter_bytes)
      snprintf(parameter, sizeof parameter, ".param .align 8 .b8 p[%d]", rows[i].parameter_bytes);
    snprintf(ptx, sizeof ptx,
             ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry raw(%s)\n{\nret;\n}\n",
             parameter);
    require(load(&module, ptx), "cuModuleLoadData");
    require(get(&b->functions[i], module, "raw"), "cuModuleGetFunction");
  }
}

/* ---- the ways to launch ---- */

typedef enum way { RAW, LAUNCH, PREPARED, REPLACED, WAYS } way;
static const char *const way_names[WAYS] = { "cuLaunchKernel", "kjit_launch", "prepared",
                                             "and replaced" };

typedef struct subject {
  const row *row;
  void *function;
  kjit_kernel *kernel;
  kjit_prepared *prepared;
  kjit_arg arguments[MOST_ARGUMENTS];
  size_t count;
} subject;

static void make_subject(bench *b, int index, subject *s)
{
  memset(s, 0, sizeof *s);
  s->row = &rows[index];
  s->function = b->functions[index];
  s->count = strlen(s->row->arguments);
  for (size_t i = 0; i < s->count; i++) {
    char kind = s->row->arguments[i];
    s->arguments[i] = kind == 'a'   ? kjit_arg_array(b->arrays[i])
                      : kind == 't' ? kjit_arg_tensor(kjit_get_tensor(b->arrays[i]))
                                    : kjit_arg_f32(1);
  }
  check(b, kjit_get_kernel(b->module, s->row->kernel, &s->kernel), s->row->kernel);
  check(b, kjit_launch(s->kernel, &b->config, s->arguments, s->count), s->row->kernel);
  check(b, kjit_prepare_launch(s->kernel, &b->config, s->arguments, s->count, &s->prepared),
        s->row->kernel);
}

/* Launches with the driver as an application would, with one parameter buffer. */
static int launch_raw(bench *b, const subject *s)
{
  char block[128] = { 0 };
  size_t bytes = (size_t)s->row->parameter_bytes;
  void *extra[] = { (void *)1, block, (void *)2, &bytes, NULL };
  return b->launch(s->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, bytes ? extra : NULL);
}

static double time_way(bench *b, subject *s, way way)
{
  int failures = 0;
  /* the last argument: a scalar if there is one, otherwise an array */
  size_t last = s->count ? s->count - 1 : 0;
  uint64_t start = clock_ns();
  switch (way) {
  case RAW:
    for (int i = 0; i < LAUNCHES; i++) failures |= launch_raw(b, s);
    break;
  case LAUNCH:
    for (int i = 0; i < LAUNCHES; i++)
      failures |= kjit_launch(s->kernel, &b->config, s->arguments, s->count);
    break;
  case PREPARED:
    for (int i = 0; i < LAUNCHES; i++) failures |= kjit_run_prepared(s->prepared, NULL);
    break;
  default:
    for (int i = 0; i < LAUNCHES; i++) {
      failures |= kjit_set_prepared_argument(s->prepared, last, &s->arguments[last]);
      failures |= kjit_run_prepared(s->prepared, NULL);
    }
  }
  double time_ns = (double)(clock_ns() - start) / LAUNCHES;
  if (failures) fprintf(stderr, "launch: a launch failed\n"), exit(1);
  if (b->synchronize) require(b->synchronize(), "cuCtxSynchronize");
  return time_ns;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(bench *b, int index)
{
  static double times[WAYS][MOST_ROUNDS];
  subject s;
  make_subject(b, index, &s);
  for (int round = -2; round < b->rounds; round++) /* two rounds warm up */
    for (int way = b->launch ? RAW : LAUNCH; way < WAYS; way++) {
      if (way == REPLACED && !s.count) continue;
      double time_ns = time_way(b, &s, (enum way)way);
      if (round >= 0) times[way][round] = time_ns;
    }
  printf("%-20s", s.row->text);
  for (int way = 0; way < WAYS; way++) {
    bool is_measured = (way != RAW || b->launch) && (way != REPLACED || s.count);
    if (is_measured) qsort(times[way], (size_t)b->rounds, sizeof **times, compare);
    if (is_measured) printf(" %12.1f", times[way][b->rounds / 2]);
    else printf(" %12s", "-");
    if (way != RAW && is_measured && b->launch)
      printf(" (%+.1f)", times[way][b->rounds / 2] - times[RAW][b->rounds / 2]);
  }
  printf("\n");
  kjit_destroy_prepared(s.prepared);
}

/* ---- setting up ---- */

static void set_up(bench *b, kjit_device_kind kind)
{
  int64_t length = 1024;
  kjit_device_info info = { .size_bytes = sizeof info };
  check(b, kjit_create_context(NULL, &b->context), "kjit_create_context");
  check(b, kjit_get_device(b->context, kind, 0, &b->device), "kjit_get_device");
  check(b, kjit_parse_module(b->context, "launch.kir", source, strlen(source), &b->module),
        "kjit_parse_module");
  for (int i = 0; i < MOST_ARGUMENTS; i++)
    check(b, kjit_create_array(b->device, KJIT_F32, &length, 1, &b->arrays[i]),
          "kjit_create_array");
  b->config = (kjit_launch_config){
    .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 1 }, .device = b->device
  };
  if (kind == KJIT_DEVICE_CUDA) load_raw(b);
  kjit_get_device_info(b->device, &info);
  printf("host time of one launch on %s, ns: median of %d rounds of %d launches%s\n", info.name,
         b->rounds, LAUNCHES,
         b->launch ? "; in brackets: beyond cuLaunchKernel" : "; the kernel's run is part of it");
  printf("%-20s", "arguments");
  for (int way = 0; way < WAYS; way++) printf(" %14s", way_names[way]);
  printf("\n");
}

int main(int argument_count, char **arguments)
{
  bench b = { .rounds = 200 };
  const char *kind = argument_count > 1 ? arguments[1] : "cpu";
  bool is_cuda = !strcmp(kind, "cuda");
  if (argument_count > 2) b.rounds = atoi(arguments[2]);
  if ((!is_cuda && strcmp(kind, "cpu")) || b.rounds < 1 || b.rounds > MOST_ROUNDS) {
    fprintf(stderr, "usage: launch [cuda|cpu] [rounds, at most %d]\n", MOST_ROUNDS);
    return 2;
  }
  set_up(&b, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU);
  for (int i = 0; i < ROWS; i++) measure(&b, i);
  kjit_destroy_context(b.context);
  return 0;
}

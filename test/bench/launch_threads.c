/* Measures the host time of one launch when 1 to 64 threads launch at the same time: kjit_launch of
 * one shared kernel, prepared launches, and cuLaunchKernel of the same machine code. Each thread
 * has its own stream. With `blocking`, the streams are ordered with the default stream, as streams
 * are by default; the driver then holds its lock longer. Without a GPU, the program measures kjit's
 * part alone, with kernels of one thread that do nearly nothing.
 *
 *   launch_threads [cuda|cpu] [most threads] [blocking|non-blocking]
 *
 * Each thread takes the minimum of its rounds as the time of a launch. The program prints the
 * median over the threads. */
#include <dlfcn.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MOST_THREADS = 64,
  ROUNDS = 40,
  LAUNCHES = 128 /* launches of a round: fewer than the driver can queue without waiting */
};

static const char source[] = "kernel four(r: f32[:] C, a: f32, x: f32[:] C, y: f32[:] C) { if "
                             "threadIdx.x == 1 { r[0] = a * x[0] + y[0] } }\n";

typedef enum way { RAW, LAUNCH, PREPARED, WAYS } way;

typedef struct bench {
  kjit_context *context;
  kjit_device *device;
  kjit_kernel *kernel;
  kjit_array *arrays[3];
  int threads;
  bool is_non_blocking;
  way way;
  pthread_barrier_t barrier;
  /* the driver, raw */
  void *primary, *function;
  int (*set_current)(void *);
  int (*create_stream)(void **, unsigned);
  int (*wait)(void *);
  int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned, void *stream, void **parameters, void **extra);
} bench;

typedef struct worker {
  bench *b;
  double time_ns;
} worker;

static void stop(const bench *b, const char *what)
{
  char *text = b->context ? kjit_copy_diagnostics_text(b->context) : NULL;
  fprintf(stderr, "launch_threads: %s: %s\n", what, text ? text : "failed");
  exit(1);
}

static uint64_t clock_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- one thread ---- */

static int launch_raw(bench *b, void *stream)
{
  char block[32] = { 0 };
  size_t bytes = sizeof block;
  void *extra[] = { (void *)1, block, (void *)2, &bytes, NULL };
  int failures = 0;
  for (int i = 0; i < LAUNCHES; i++)
    failures |= b->launch(b->function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
  return failures;
}

static int launch_kjit(bench *b, kjit_stream *stream, kjit_prepared *prepared,
                       const kjit_arg *arguments)
{
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .grid = { 1 },
                                .block = { 1 },
                                .device = b->device,
                                .stream = stream };
  int failures = 0;
  for (int i = 0; i < LAUNCHES; i++)
    failures |= (int)(b->way == PREPARED ? kjit_run_prepared(prepared, NULL)
                                         : kjit_launch(b->kernel, &config, arguments, 4));
  return failures;
}

static void *work(void *data)
{
  worker *w = data;
  bench *b = w->b;
  void *native = NULL;
  kjit_stream *stream = NULL;
  kjit_prepared *prepared = NULL;
  kjit_arg arguments[] = { kjit_arg_array(b->arrays[0]), kjit_arg_f32(1),
                           kjit_arg_array(b->arrays[1]), kjit_arg_array(b->arrays[2]) };
  if (b->set_current &&
      (b->set_current(b->primary) || b->create_stream(&native, b->is_non_blocking)))
    stop(b, "a stream");
  if (kjit_create_stream_with(b->device, 0, b->is_non_blocking ? KJIT_STREAM_NON_BLOCKING : 0,
                              &stream) != KJIT_OK)
    stop(b, "kjit_create_stream_with");
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .grid = { 1 },
                                .block = { 1 },
                                .device = b->device,
                                .stream = stream };
  if (kjit_prepare_launch(b->kernel, &config, arguments, 4, &prepared) != KJIT_OK)
    stop(b, "kjit_prepare_launch");
  w->time_ns = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&b->barrier);
    uint64_t start = clock_ns();
    int failures =
      b->way == RAW ? launch_raw(b, native) : launch_kjit(b, stream, prepared, arguments);
    double time_ns = (double)(clock_ns() - start) / LAUNCHES;
    if (failures) stop(b, "a launch");
    if (time_ns < w->time_ns) w->time_ns = time_ns;
    if (b->wait) b->wait(native);
    if (kjit_synchronize_stream(stream) != KJIT_OK) stop(b, "kjit_synchronize_stream");
  }
  kjit_destroy_prepared(prepared);
  kjit_destroy_stream(stream);
  return NULL;
}

static int compare(const void *a, const void *b)
{
  double x = ((const worker *)a)->time_ns, y = ((const worker *)b)->time_ns;
  return (x > y) - (x < y);
}

static double measure(bench *b, int threads, way way)
{
  worker workers[MOST_THREADS];
  pthread_t handles[MOST_THREADS];
  b->threads = threads;
  b->way = way;
  pthread_barrier_init(&b->barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; i++) {
    workers[i] = (worker){ .b = b };
    if (pthread_create(&handles[i], NULL, work, &workers[i])) stop(b, "a thread");
  }
  for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
  pthread_barrier_destroy(&b->barrier);
  qsort(workers, (size_t)threads, sizeof *workers, compare);
  return workers[threads / 2].time_ns;
}

/* ---- setting up ---- */

/* Loads the same machine code that kjit launches, so that the GPU's work is the same. */
static void load_raw(bench *b)
{
  kjit_specialization *specialization;
  size_t size_bytes;
  void *binary;
  if (kjit_specialize(b->kernel, b->device, "f32[:] C, f32, f32[:] C, f32[:] C", &specialization) !=
      KJIT_OK)
    stop(b, "kjit_specialize");
  if (kjit_copy_specialization_binary(specialization, &binary, &size_bytes) != KJIT_OK)
    stop(b, "kjit_copy_specialization_binary");
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *module = NULL;
  if (!library) stop(b, dlerror());
  int (*retain)(void **, int), (*load)(void **, const void *),
    (*get)(void **, void *, const char *);
  const struct {
    const char *symbol;
    void **place;
  } rows[] = { { "cuDevicePrimaryCtxRetain", (void **)&retain },
               { "cuModuleLoadData", (void **)&load },
               { "cuModuleGetFunction", (void **)&get },
               { "cuCtxSetCurrent", (void **)&b->set_current },
               { "cuStreamCreate", (void **)&b->create_stream },
               { "cuStreamSynchronize", (void **)&b->wait },
               { "cuLaunchKernel", (void **)&b->launch } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!(*rows[i].place = dlsym(library, rows[i].symbol))) stop(b, rows[i].symbol);
  if (retain(&b->primary, 0) || b->set_current(b->primary) || load(&module, binary) ||
      get(&b->function, module, "four"))
    stop(b, "the driver");
  kjit_free(b->context, binary);
}

int main(int argc, char **argv)
{
  bench b = { 0 };
  bool is_cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
  int most = argc > 2 ? atoi(argv[2]) : MOST_THREADS;
  int64_t length = 1024;
  kjit_module *module;
  b.is_non_blocking = argc > 3 && strcmp(argv[3], "non-blocking") == 0;
  if (most < 1 || most > MOST_THREADS ||
      (argc > 3 && !b.is_non_blocking && strcmp(argv[3], "blocking") != 0)) {
    fprintf(stderr,
            "usage: launch_threads [cuda|cpu] [most threads, at most %d] [blocking|non-blocking]\n",
            MOST_THREADS);
    return 2;
  }
  if (kjit_create_context(NULL, &b.context) != KJIT_OK) stop(&b, "kjit_create_context");
  if (kjit_get_device(b.context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &b.device) !=
      KJIT_OK)
    stop(&b, "kjit_get_device");
  if (kjit_parse_module(b.context, "threads.kir", source, strlen(source), &module) != KJIT_OK ||
      kjit_get_kernel(module, "four", &b.kernel) != KJIT_OK)
    stop(&b, "the kernel");
  for (int i = 0; i < 3; i++)
    if (kjit_create_array(b.device, KJIT_F32, &length, 1, &b.arrays[i]) != KJIT_OK)
      stop(&b, "kjit_create_array");
  if (is_cuda) load_raw(&b);
  printf("threads  cuLaunchKernel   kjit_launch      prepared   (ns of a launch, 3 arrays and a "
         "scalar)\n");
  for (int threads = 1; threads <= most; threads *= 2) {
    double times[WAYS] = { 0 };
    for (int way = is_cuda ? RAW : LAUNCH; way < WAYS; way++)
      times[way] = measure(&b, threads, (enum way)way);
    printf("%7d %15.1f %13.1f %13.1f\n", threads, times[RAW], times[LAUNCH], times[PREPARED]);
    fflush(stdout);
  }
  kjit_destroy_context(b.context);
  return 0;
}

/* Measures launches on the CPU of 10^2 to 10^7 elements: on one thread, on all threads, and on the
 * number that kjit chooses.
 *
 *   cpu_threads KERNEL [cores] [least exponent] [most exponent] [seconds for a size]
 *
 * "All" is a team of OpenMP whose threads launch the same kernel, each on its part of the arrays
 * and on itself alone: run it with OMP_WAIT_POLICY=passive. The three take turns, round by round; a
 * line for each size has the medians and the 99th percentiles of one, all and kjit, in us. */
#include <kjit/kjit.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CORES = 256, MOST_LAUNCHES = 6000, BURST = 8, ROW = 64, BLOCK = 128, BINS = 256 };

/* elements: number of elements of x for one element of r. 0 means that r has BINS elements, which
 * all parts share. */
typedef struct subject {
  const char *name, *source;
  int elements;
} subject;
static const subject subjects[] = {
  { "add", "kernel k(r: f32[:], x: f32[:]) { for i in grid_range(len(r)) { r[i] = x[i] + r[i] } }",
    1 },
  { "exp", "kernel k(r: f32[:], x: f32[:]) { for i in grid_range(len(r)) { r[i] = exp(x[i]) } }",
    1 },
  { "rows",
    "kernel k(r: f32[:], x: f32[:, :]) { for i in grid_range(len(r)) { var s = 0.0; for j in "
    "range(x.shape[1]) { if s > 1e30 { break }; s = s + x[i, j] }; r[i] = f32(s) } }",
    ROW },
  { "blocks",
    "kernel k(r: f32[:], x: f32[:]) @block(128) { shared s: f32[128]; let t = threadIdx.x\n let i "
    "= "
    "i64(blockIdx.x) * 128 + t\n s[t] = x[i]\n syncthreads()\n if t == 0 { var a = 0.0f32; for j "
    "in "
    "range(128) { a = a + s[j] }; r[blockIdx.x] = a } }",
    BLOCK },
  { "histogram",
    "kernel k(r: u32[:], x: f32[:]) { for i in grid_range(len(x)) { atomic_add(r[i32(x[i])], 1u32) "
    "} }",
    0 },
};

typedef struct bench {
  kjit_context *context;
  kjit_device *device;
  kjit_kernel *kernel;
  const subject *subject;
  int cores;
  float *r, *x;
} bench;

static void stop(const bench *b, const char *what)
{
  char *text = b->context ? kjit_copy_diagnostics_text(b->context) : NULL;
  fprintf(stderr, "cpu_threads: %s: %s\n", what, text ? text : "failed");
  exit(1);
}

static double clock_us(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* Launches rows [first, last) of r, with the corresponding elements of x, on at most this number of
 * threads. */
static void launch(const bench *b, int64_t first, int64_t last, uint32_t threads)
{
  int elements = b->subject->elements ? b->subject->elements : 1;
  bool is_row = elements == ROW;
  int64_t of_r[] = { b->subject->elements ? last - first : BINS },
          of_x[] = { is_row ? last - first : (last - first) * elements, ROW };
  kjit_tensor r = { b->subject->elements ? b->r + first : b->r,
                    KJIT_DEVICE_CPU,
                    0,
                    1,
                    (uint8_t)(b->subject->elements ? 2 : 1),
                    32,
                    1,
                    of_r,
                    NULL,
                    0 },
              x = {
                b->x + first * elements, KJIT_DEVICE_CPU, 0, is_row ? 2 : 1, 2, 32, 1, of_x, NULL, 0
              };
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_tensor(&x) };
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .device = b->device,
                                .cpu_threads = threads };
  if (elements == BLOCK) config.grid[0] = (uint32_t)(last - first);
  if (kjit_launch(b->kernel, &config, arguments, 2) != KJIT_OK) stop(b, "a launch");
}

typedef enum way { ONE, ALL, OWN, WAYS } way;

/* Parts begin at multiples of 64 elements, so that two threads do not write to one cache line. */
static void run(const bench *b, way way, int64_t rows)
{
  if (way != ALL) {
    launch(b, 0, rows, way == ONE);
    return;
  }
  int64_t part = (rows + b->cores - 1) / b->cores;
  if (part > 1024) part = (part + 63) / 64 * 64;
#pragma omp parallel num_threads(b->cores)
  {
    int64_t first = omp_get_thread_num() * part, last = first + part < rows ? first + part : rows;
    if (first < last) launch(b, first, last, 1);
  }
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(const bench *b, int64_t elements, double seconds)
{
  static double times[WAYS][MOST_LAUNCHES];
  int64_t rows = b->subject->elements ? elements / b->subject->elements : elements;
  int count = 0;
  if (!rows) return;
  for (int i = 0; i < 64; i++)
    for (int way = 0; way < WAYS; way++)
      if (i < 8 || elements <= 1000000) run(b, (enum way)way, rows);
  double end_us = clock_us() + seconds * 1e6;
  while (count + BURST <= MOST_LAUNCHES && (count < 24 || clock_us() < end_us)) {
    /* the first launches after an OpenMP team are slow, so the order changes and each way is
     * affected equally */
    for (int turn = 0; turn < WAYS; turn++) {
      way way = count / BURST % 2 ? (enum way)turn : (enum way)(WAYS - 1 - turn);
      for (int i = 0; i < BURST; i++) {
        double start_us = clock_us();
        run(b, way, rows);
        times[way][count + i] = clock_us() - start_us;
      }
    }
    count += BURST;
  }
  printf("%s %lld", b->subject->name, (long long)elements);
  for (int way = 0; way < WAYS; way++) {
    qsort(times[way], (size_t)count, sizeof(double), compare);
    printf(" %.3f %.3f", times[way][count / 2], times[way][count * 99 / 100]);
  }
  printf("\n");
  fflush(stdout);
}

int main(int count, char **arguments)
{
  bench b = { .cores = count > 2 ? atoi(arguments[2]) : omp_get_num_procs() };
  int least = count > 3 ? atoi(arguments[3]) : 2, most = count > 4 ? atoi(arguments[4]) : 7;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    if (count > 1 && !strcmp(arguments[1], subjects[i].name)) b.subject = &subjects[i];
  double seconds = count > 5 ? atof(arguments[5]) : 1.5;
  if (!b.subject || b.cores < 1 || b.cores > MOST_CORES)
    stop(&b, "KERNEL [cores] [least] [most] [seconds]");
  kjit_config config = { .size_bytes = sizeof config };
  kjit_module *module;
  config.cache_directory = "";
  config.cpu_threads = (uint32_t)b.cores;
  if (kjit_create_context(&config, &b.context) != KJIT_OK) stop(&b, "kjit_create_context");
  if (kjit_get_device(b.context, KJIT_DEVICE_CPU, 0, &b.device) != KJIT_OK) stop(&b, "device");
  if (kjit_parse_module(b.context, "k.kir", b.subject->source, strlen(b.subject->source),
                        &module) != KJIT_OK ||
      kjit_get_kernel(module, "k", &b.kernel) != KJIT_OK)
    stop(&b, "the kernel");
  int64_t room = (int64_t)pow(10, most) * 3 + BLOCK;
  b.r = aligned_alloc(64, (size_t)room * sizeof(float));
  b.x = aligned_alloc(64, (size_t)room * sizeof(float));
  if (!b.r || !b.x) stop(&b, "memory");
  memset(b.r, 0, (size_t)room * sizeof(float));
  for (int64_t i = 0; i < room; i++) b.x[i] = (float)(i * 7919 % BINS);
  for (int exponent = least; exponent <= most; exponent++) {
    int64_t elements = (int64_t)pow(10, exponent);
    measure(&b, elements, seconds);
    if (exponent < most) measure(&b, elements * 3, seconds);
  }
  kjit_destroy_context(b.context);
  free(b.r);
  free(b.x);
  return 0;
}

/* Measures host times of memory operations: launches with host arrays of several sizes (copied in
 * and out), creation and release of arrays, and graphs compared with single launches.
 *
 *   cc -O2 -Iinclude test/bench/staging.c -Lbuild/lib -lkjit -o staging
 *   staging [cuda|cpu] [rounds]
 *
 * The program prints the median of the rounds. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char text[] =
  "kernel axpy(r, a, x, y) { for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] } }\n";
static kjit_context *context;
static kjit_device *device;
static kjit_kernel *kernel;

enum { MOST_ROUNDS = 1000 };
static int rounds = 200;
static double times[MOST_ROUNDS];

static void ok(kjit_status status)
{
  if (status == KJIT_OK) return;
  char *messages = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s", messages ? messages : kjit_get_status_name(status));
  exit(1);
}

static double now_us(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(void)
{
  qsort(times, (size_t)rounds, sizeof *times, compare);
  return times[rounds / 2];
}

/* ---- host arrays ---- */

static void measure_staging(int64_t length)
{
  float *data[3];
  kjit_tensor tensors[3];
  for (int i = 0; i < 3; i++) {
    data[i] = calloc((size_t)length, sizeof *data[i]);
    tensors[i] = (kjit_tensor){ .data = data[i],
                                .device_type = 1,
                                .rank = 1,
                                .code = 2,
                                .bits = 32,
                                .lanes = 1,
                                .shape = &length };
  }
  kjit_arg arguments[] = { kjit_with_access(kjit_arg_tensor(&tensors[0]), KJIT_ACCESS_OUT),
                           kjit_arg_f32(2), kjit_arg_tensor(&tensors[1]),
                           kjit_arg_tensor(&tensors[2]) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  for (int i = 0; i < 10; i++) ok(kjit_launch(kernel, &config, arguments, 4));
  for (int i = 0; i < rounds; i++) {
    double start = now_us();
    ok(kjit_launch(kernel, &config, arguments, 4));
    times[i] = now_us() - start;
  }
  printf("launch, 3 host arrays of %9lld f32: %10.2f us\n", (long long)length, median());
  for (int i = 0; i < 3; i++) free(data[i]);
}

/* ---- arrays ---- */

static void measure_arrays(int64_t length)
{
  for (int i = 0; i < rounds; i++) {
    kjit_array *array;
    double start = now_us();
    ok(kjit_create_array(device, KJIT_F32, &length, 1, &array));
    kjit_release_array(array);
    times[i] = now_us() - start;
  }
  printf("make and release an array of %9lld f32: %6.2f us\n", (long long)length, median());
}

/* ---- graphs ---- */

static void measure_graph(int launches)
{
  int64_t length = 1024;
  kjit_array *arrays[3];
  kjit_stream *stream;
  kjit_graph *graph;
  kjit_executable_graph *executable;
  double by_one = 0;
  for (int i = 0; i < 3; i++) ok(kjit_create_array(device, KJIT_F32, &length, 1, &arrays[i]));
  kjit_arg arguments[] = { kjit_arg_array(arrays[0]), kjit_arg_f32(2), kjit_arg_array(arrays[1]),
                           kjit_arg_array(arrays[2]) };
  ok(kjit_create_stream(device, &stream));
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  ok(kjit_begin_capture(stream));
  for (int i = 0; i < launches; i++) ok(kjit_launch(kernel, &config, arguments, 4));
  ok(kjit_end_capture(stream, &graph));
  ok(kjit_instantiate_graph(graph, &executable));
  for (int way = 0; way < 2; way++) {
    for (int i = 0; i < rounds; i++) {
      double start = now_us();
      if (way) ok(kjit_launch_graph(executable, stream));
      for (int k = 0; k < launches && !way; k++) ok(kjit_launch(kernel, &config, arguments, 4));
      ok(kjit_synchronize_stream(stream));
      times[i] = now_us() - start;
    }
    if (!way) by_one = median();
  }
  printf("%4d launches and a wait: %8.2f us; as a graph: %8.2f us\n", launches, by_one, median());
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  for (int i = 0; i < 3; i++) kjit_release_array(arrays[i]);
  kjit_destroy_stream(stream);
}

int main(int count, char **arguments)
{
  kjit_module *module;
  int is_cpu = count > 1 && !strcmp(arguments[1], "cpu");
  if (count > 2) rounds = atoi(arguments[2]);
  if (rounds < 1 || rounds > MOST_ROUNDS) rounds = 200;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 1;
  ok(kjit_get_device(context, is_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA, 0, &device));
  ok(kjit_parse_module(context, "axpy.kir", text, sizeof text - 1, &module));
  ok(kjit_get_kernel(module, "axpy", &kernel));
  for (int64_t length = 256; length <= 1 << 24; length *= 16) measure_staging(length);
  for (int64_t length = 256; length <= 1 << 24; length *= 256) measure_arrays(length);
  for (int launches = 1; launches <= 100; launches *= 10) measure_graph(launches);
  kjit_destroy_context(context);
  return 0;
}

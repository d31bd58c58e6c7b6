/* Many threads make the first launch of one kernel at the same time, with two sets of argument
 * types, each thread on its own stream. kjit compiles once for each set, and the results are
 * correct.
 * RUN: %programs/concurrent cpu
 * RUN: %if cuda %{ %programs/concurrent cuda %}
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, ROUNDS = 20, COUNT = 5003 };

static const char text[] = "kernel step(r, a, x) {\n"
                           "  shared s: dtype(x)[64]\n"
                           "  let i = grid(1)\n"
                           "  s[threadIdx.x] = i < len(x) ? x[i] : 0\n"
                           "  syncthreads()\n"
                           "  if i < len(x) { r[i] = a * s[threadIdx.x] + x[i] }\n"
                           "}\n";

static kjit_context *context;
static kjit_kernel *kernel;
static kjit_device *device;
static pthread_barrier_t start;

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), message ? message : "");
  exit(EXIT_FAILURE);
}

static double get(const void *data, kjit_type type, int64_t i)
{
  return type == KJIT_F32 ? ((const float *)data)[i] : ((const double *)data)[i];
}

static void fill(void *data, kjit_type type, int thread)
{
  for (int64_t i = 0; i < COUNT; i++) {
    double v = (double)((i * 7 + thread * 13) % 1000);
    if (type == KJIT_F32) ((float *)data)[i] = (float)v;
    else ((double *)data)[i] = v;
  }
}

static kjit_tensor describe(void *data, kjit_type type, int64_t *shape)
{
  return (kjit_tensor){ .data = data,
                        .device_type = KJIT_DEVICE_CPU,
                        .rank = 1,
                        .code = 2,
                        .bits = type == KJIT_F32 ? 32 : 64,
                        .lanes = 1,
                        .shape = shape };
}

static int64_t count_wrong(const void *r, const void *x, kjit_type type, double a)
{
  int64_t wrong = 0;
  for (int64_t i = 0; i < COUNT; i++)
    wrong += get(r, type, i) != a * get(x, type, i) + get(x, type, i);
  return wrong;
}

static void *work(void *argument)
{
  int thread = (int)(intptr_t)argument;
  kjit_type type = thread % 2 ? KJIT_F32 : KJIT_F64;
  int64_t shape = COUNT, wrong = 0;
  void *x = calloc(COUNT, 8), *r = calloc(COUNT, 8);
  kjit_array *on_device[2];
  kjit_stream *stream;
  if (!x || !r) exit(EXIT_FAILURE);
  fill(x, type, thread);
  kjit_tensor host_x = describe(x, type, &shape), host_r = describe(r, type, &shape);
  kjit_arg from = kjit_arg_tensor(&host_x), back = kjit_arg_tensor(&host_r);
  require(kjit_create_stream(device, &stream), "stream");
  for (int k = 0; k < 2; k++)
    require(kjit_create_array(device, type, &shape, 1, &on_device[k]), "array");
  kjit_arg r_arg = kjit_arg_array(on_device[0]), x_arg = kjit_arg_array(on_device[1]);
  require(kjit_copy(context, &x_arg, &from, stream), "copy in");
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .grid = { (COUNT + 63) / 64 },
                                .block = { 64 },
                                .stream = stream,
                                .device = device };
  pthread_barrier_wait(&start);
  for (int round = 0; round < ROUNDS; round++) {
    kjit_arg arguments[] = { r_arg, kjit_arg_number(round), x_arg };
    require(kjit_launch(kernel, &config, arguments, 3), "launch");
    require(kjit_copy(context, &back, &r_arg, stream), "copy out");
    wrong += count_wrong(r, x, type, round);
  }
  require(kjit_synchronize_stream(stream), "synchronize");
  kjit_destroy_stream(stream);
  for (int k = 0; k < 2; k++) kjit_release_array(on_device[k]);
  free(x);
  free(r);
  return (void *)(intptr_t)wrong;
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  kjit_module *module;
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  int64_t wrong = 0;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  require(kjit_parse_module(context, "step", text, strlen(text), &module), "parsing");
  require(kjit_get_kernel(module, "step", &kernel), "kernel");
  require(kjit_get_device(context,
                          argc > 1 && !strcmp(argv[1], "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU,
                          0, &device),
          "device");
  pthread_barrier_init(&start, NULL, THREADS);
  for (int k = 0; k < THREADS; k++) {
    if (pthread_create(&threads[k], NULL, work, (void *)(intptr_t)k)) return EXIT_FAILURE;
  }
  for (int k = 0; k < THREADS; k++) {
    void *result;
    pthread_join(threads[k], &result);
    wrong += (intptr_t)result;
  }
  kjit_get_statistics(context, &statistics);
  kjit_release_module(module);
  kjit_destroy_context(context);
  if (wrong || statistics.compilations != 2 || statistics.launches != THREADS * ROUNDS) {
    fprintf(stderr, "%lld results wrong, %llu compilations, %llu launches\n", (long long)wrong,
            (unsigned long long)statistics.compilations, (unsigned long long)statistics.launches);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

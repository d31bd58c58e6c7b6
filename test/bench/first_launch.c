/* Measures, in a warm process, the time from kernel IR text to the end of the first launch of a new
 * kernel. Prints a line for each kernel: name, median ms, least ms, and of the median's run the
 * parts parse, infer, lower, optimize, emit and load (on a GPU: the driver's compilation of the
 * PTX) in ms. The disk cache is off.
 *
 *   first_launch [cuda|cpu] [repetitions]; default cuda, 20 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct program {
  const char *name, *text; /* %d in the text is the number of the repetition */
} program;

#define ELEMENTWISE(expression) \
  "kernel k(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = " expression " }\n}\n"
static const program programs[] = {
  { "axpy", ELEMENTWISE("a * x[i] + y[i] + %d") },
  { "axpy with exp", ELEMENTWISE("a * exp(x[i]) + y[i] + %d") },
  { "axpy with sin", ELEMENTWISE("a * sin(x[i]) + y[i] + %d") },
};
enum { MOST = 200, LENGTH = 1024 };

typedef struct bench {
  kjit_context *context;
  kjit_device *device;
  kjit_array *arrays[3];
} bench;

typedef struct run {
  double time_ms;
  kjit_specialization_info info;
} run;

static void stop(const bench *b, const char *what)
{
  char *text = b->context ? kjit_copy_diagnostics_text(b->context) : NULL;
  fprintf(stderr, "first_launch: %s: %s\n", what, text ? text : "failed");
  exit(1);
}

static double now_ms(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static run launch_new(bench *b, const program *p, int number)
{
  char text[512];
  run r = { .info = { .size_bytes = sizeof r.info } };
  kjit_module *module;
  kjit_kernel *kernel = NULL;
  kjit_arg arguments[] = { kjit_arg_array(b->arrays[0]), kjit_arg_f32(2),
                           kjit_arg_array(b->arrays[1]), kjit_arg_array(b->arrays[2]) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = b->device };
  int length = snprintf(text, sizeof text, p->text, number);
  double start = now_ms();
  if (kjit_parse_module(b->context, "first.kir", text, (size_t)length, &module) != KJIT_OK ||
      kjit_get_kernel(module, "k", &kernel) != KJIT_OK)
    stop(b, "the module");
  if (kjit_launch(kernel, &config, arguments, 4) != KJIT_OK ||
      kjit_synchronize_device(b->device) != KJIT_OK)
    stop(b, "the launch");
  r.time_ms = now_ms() - start;
  kjit_get_specialization_info(kjit_get_specialization(kernel, 0), &r.info);
  kjit_release_module(module);
  return r;
}

static int compare(const void *a, const void *b)
{
  double x = ((const run *)a)->time_ms, y = ((const run *)b)->time_ms;
  return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
  static run runs[MOST];
  bench b = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  int64_t length = LENGTH;
  bool is_cpu = argc > 1 && strcmp(argv[1], "cpu") == 0;
  int repetitions = argc > 2 ? atoi(argv[2]) : 20;
  if (repetitions < 1 || repetitions > MOST) return 2;
  config.cache_directory = "";
  if (kjit_create_context(&config, &b.context) != KJIT_OK) stop(&b, "kjit_create_context");
  if (kjit_get_device(b.context, is_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA, 0, &b.device) !=
      KJIT_OK)
    stop(&b, "kjit_get_device");
  for (int i = 0; i < 3; i++)
    if (kjit_create_array(b.device, KJIT_F32, &length, 1, &b.arrays[i]) != KJIT_OK)
      stop(&b, "kjit_create_array");
  printf("%-16s %8s %8s   %s\n", "source to end, ms", "median", "least",
         "parse infer lower optimize emit load");
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    (void)launch_new(&b, &programs[i], 1000000);
    for (int k = 0; k < repetitions; k++) runs[k] = launch_new(&b, &programs[i], k);
    qsort(runs, (size_t)repetitions, sizeof *runs, compare);
    const run *m = &runs[repetitions / 2];
    const uint64_t parts[] = { m->info.parse_time_ns, m->info.infer_time_ns,
                               m->info.lower_time_ns, m->info.optimize_time_ns,
                               m->info.emit_time_ns,  m->info.load_time_ns };
    printf("%-16s  %8.2f %8.2f  ", programs[i].name, m->time_ms, runs[0].time_ms);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      printf(" %.2f", 1e-6 * (double)parts[k]);
    printf("\n");
  }
  kjit_destroy_context(b.context);
  return 0;
}

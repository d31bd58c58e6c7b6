/* algorithms_first.c DEVICE: measures the first call of an algorithm with a new operator or func,
 * from its text to the result, in a process that has compiled before; DEVICE is cuda or cpu. Then
 * the same call with code from the disk cache, in a new context, and as the first call of a
 * process, which also has to find and read shared data. Prints a line for each: name, ms compiled,
 * ms from the disk cache, ms as the first call of a process, medians of several operators. A sort
 * of numbers has no operator, so each call has a new key type. test/bench/algorithms.py and
 * algorithms_cupy.py compile this program and print its results next to those of the peers. */
#define _GNU_SOURCE
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 5, COUNT = 1 << 20, LENGTH = 1024 };

static kjit_context *context;
static kjit_device *device;

#define TRY(call) try((call), __LINE__)
static void try(kjit_status status, int line)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "line %d: %s\n", line, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static double now_ms(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- the calls ---- */

typedef struct given {
  kjit_function *function;
  int number;   /* of the call */
  size_t count; /* number of buffers in use */
} given;

enum { MEMORIES = 5 };
static kjit_array *memories[MEMORIES]; /* of zeros */

static void make_memories(void)
{
  const int64_t count = COUNT;
  const kjit_arg zero = kjit_arg_u64(0);
  for (int i = 0; i < MEMORIES; i++) {
    TRY(kjit_create_array(device, KJIT_U64, &count, 1, &memories[i]));
    kjit_arg destination = kjit_arg_array(memories[i]);
    TRY(kjit_fill(context, &destination, &zero, NULL));
  }
}

/* Returns the next buffer as an array, which lives as long as the context. */
static kjit_operand make(given *g, kjit_type type, int64_t rows, int64_t columns)
{
  int64_t shape[] = { rows, columns };
  kjit_array *array;
  kjit_tensor tensor = *kjit_get_tensor(memories[g->count++]);
  bool is_wide = type == KJIT_F64 || type == KJIT_U64 || type == KJIT_I64;
  tensor.code = type == KJIT_F32 || type == KJIT_F64   ? 2
                : type == KJIT_I32 || type == KJIT_I64 ? 0
                                                       : 1;
  tensor.bits = is_wide ? 64 : 32;
  tensor.rank = columns ? 2 : 1;
  tensor.shape = shape;
  tensor.strides = NULL;
  TRY(kjit_wrap_tensor(context, &tensor, &array));
  return kjit_operand_array(array);
}

static kjit_operand line(given *g, kjit_type type, int64_t n) { return make(g, type, n, 0); }

static void reduce(given *g)
{
  kjit_operand x = line(g, KJIT_F32, COUNT), r = line(g, KJIT_F32, 1);
  kjit_operator own = kjit_operator_function(g->function);
  TRY(kjit_reduce(context, &r, &x, &own, NULL));
}

static void reduce_rows(given *g)
{
  const int32_t axis = 1;
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.axes = &axis;
  options.axis_count = 1;
  kjit_operand x = make(g, KJIT_F32, COUNT / LENGTH, LENGTH), r = line(g, KJIT_F32, COUNT / LENGTH);
  kjit_operator own = kjit_operator_function(g->function);
  TRY(kjit_reduce(context, &r, &x, &own, &options));
}

static void scan(given *g)
{
  kjit_operand x = line(g, KJIT_F32, COUNT), r = line(g, KJIT_F32, COUNT);
  kjit_operator own = kjit_operator_function(g->function);
  TRY(kjit_scan(context, &r, &x, &own, NULL));
}

static void radix_sort(given *g)
{
  static const kjit_type types[] = { KJIT_U32, KJIT_I32, KJIT_F32, KJIT_U64, KJIT_I64, KJIT_F64 };
  kjit_type type = types[g->number % 6];
  kjit_operand x = line(g, type, COUNT), r = line(g, type, COUNT);
  TRY(kjit_sort(context, &r, &x, NULL, NULL));
}

static void merge_sort(given *g)
{
  kjit_operand x = line(g, KJIT_F32, COUNT), r = line(g, KJIT_F32, COUNT);
  TRY(kjit_sort(context, &r, &x, g->function, NULL));
}

static void unique_pairs(given *g)
{
  kjit_operand x = line(g, KJIT_F32, COUNT), r = line(g, KJIT_F32, COUNT),
               values = line(g, KJIT_F32, COUNT), s = line(g, KJIT_F32, COUNT),
               count = line(g, KJIT_I64, 1);
  TRY(kjit_unique_pairs(context, &r, &s, &count, &x, &values, g->function, NULL));
}

static void histogram(given *g)
{
  const int64_t n = COUNT;
  kjit_operand x = line(g, KJIT_F32, COUNT), r = line(g, KJIT_U32, 256);
  kjit_operand moved = kjit_operand_function(g->function, &x.argument, 1, &n, 1);
  TRY(kjit_histogram(context, &r, &moved, 256, 0, 1, NULL, NULL));
}

static void map(given *g)
{
  kjit_operand x[] = { line(g, KJIT_F32, COUNT), line(g, KJIT_F32, COUNT) },
               r = line(g, KJIT_F32, COUNT);
  TRY(kjit_map(context, &r, 1, g->function, x, 2, NULL));
}

static const struct row {
  const char *name, *text; /* the text, which contains the number of the call twice */
  void (*call)(given *given);
} rows[] = {
  { "reduce", "func f(a, b) { return a * b + %d.5f32 }", reduce },
  { "segmented reduce", "func f(a, b) { return a * b + %d.5f32 }", reduce_rows },
  { "scan", "func f(a, b) { return a * b + %d.5f32 }", scan },
  { "radix sort", "func f%d(a) { return a }", radix_sort },
  { "merge sort", "func f(a, b) { return a + %d.5f32 < b + %d.5f32 }", merge_sort },
  { "unique by key", "func f(a, b) { return a + %d.5f32 == b + %d.5f32 }", unique_pairs },
  { "histogram", "func f(i, x) { return x[i] + %d.5f32 }", histogram },
  { "transform", "func f(a, b) { return a * b + %d.5f32 }", map },
};

/* ---- time ---- */

static double median_of(double *times)
{
  qsort(times, CALLS, sizeof *times, compare);
  return times[CALLS / 2];
}

static void open_context(const char *cache, const char *device_name)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = cache;
  TRY(kjit_create_context(&config, &context));
  kjit_device_kind kind = strcmp(device_name, "cpu") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  TRY(kjit_get_device(context, kind, 0, &device));
}

static double call_ms(const struct row *row, int number)
{
  char text[200], name[20] = "f";
  kjit_module *module;
  given g = { .number = number };
  TRY(kjit_synchronize_device(device));
  double start = now_ms();
  int length = snprintf(text, sizeof text, row->text, number, number);
  if (row->call == radix_sort) snprintf(name, sizeof name, "f%d", number);
  TRY(kjit_parse_module(context, "operator", text, (size_t)length, &module));
  TRY(kjit_get_function(module, name, &g.function));
  row->call(&g);
  TRY(kjit_synchronize_device(device));
  double took = now_ms() - start;
  kjit_release_module(module);
  return took;
}

/* Measures calls 1 to CALLS. Call 0 finds the compiler and loads everything that is loaded once. */
static void measure(double *medians)
{
  double times[CALLS];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    (void)call_ms(&rows[i], 0);
    for (int k = 0; k < CALLS; k++) times[k] = call_ms(&rows[i], k + 1);
    medians[i] = median_of(times);
  }
}

/* Measures the call in a new process: algorithms_first DEVICE CACHE ROW. */
static double call_first(const char *program, const char *device_name, const char *cache,
                         size_t row)
{
  char command[4500];
  double times[CALLS];
  for (int k = 0; k < CALLS; k++) {
    snprintf(command, sizeof command, "'%s' %s %s %zu", program, device_name, cache, row);
    FILE *answer = popen(command, "r");
    if (!answer || fscanf(answer, "%lf", &times[k]) != 1 || pclose(answer)) exit(EXIT_FAILURE);
  }
  return median_of(times);
}

int main(int argc, char **argv)
{
  const char *device_name = argc > 1 ? argv[1] : "cuda";
  char cache[] = "/tmp/kjit-bench-XXXXXX", command[64];
  double compiled[sizeof rows / sizeof *rows], found[sizeof rows / sizeof *rows];
  if (argc == 4) {
    open_context(argv[2], device_name);
    make_memories();
    printf("%.3f\n", call_ms(&rows[strtoul(argv[3], NULL, 10)], 0));
    kjit_destroy_context(context);
    return 0;
  }
  if (!mkdtemp(cache)) return EXIT_FAILURE;
  open_context(cache, device_name);
  make_memories();
  measure(compiled);
  kjit_destroy_context(context);
  open_context(cache, device_name);
  make_memories();
  measure(found);
  kjit_destroy_context(context);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    printf("%s\t%.3f\t%.3f\t%.3f\n", rows[i].name, compiled[i], found[i],
           call_first(argv[0], device_name, cache, i));
  snprintf(command, sizeof command, "rm -r %s", cache);
  if (system(command)) fprintf(stderr, "%s is left\n", cache);
  return 0;
}

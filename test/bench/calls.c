/* calls.c DEVICE [CALLS]: measures the time of kjit's algorithms apart from their kernels; DEVICE
 * is cuda or cpu.
 *
 * `first` lines: the first call with a new func, from the func's text to the result on the device,
 * with an empty disk cache. The line has the median and minimum ms of CALLS (default 5). For the
 * last call it has the number of compiled kernels, their total times for parse, infer, lower,
 * optimize, emit and load (on a GPU the driver's compilation of the PTX), and the size of their PTX
 * or machine code in bytes. Then follows the same call in another context of the process, with code
 * from the disk cache.
 * `host` lines: the host time in us of a repeated call and of a plan's run. */
#define _GNU_SOURCE
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 1 << 10, ROW = 32, MOST_CALLS = 50, MOST_PARTS = 6 };

static kjit_context *context;
static kjit_device *device;

#define TRY(call) try((call), __LINE__)
static void try(kjit_status status, int line)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "line %d: %s\n", line, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static double now_us(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- the calls ---- */

static struct {
  kjit_array *x, *y, *r, *s, *matrix, *columns, *places, *counts, *one, *count;
} data;

static kjit_array *make(kjit_type type, int64_t rows, int64_t columns)
{
  int64_t shape[] = { rows, columns };
  kjit_array *array;
  TRY(kjit_create_array(device, type, columns ? shape : &rows, columns ? 2 : 1, &array));
  kjit_arg to = kjit_arg_array(array), zero = kjit_arg_number(0);
  TRY(kjit_fill(context, &to, &zero, NULL));
  return array;
}

static void make_data(void)
{
  data.x = make(KJIT_F32, N, 0);
  data.y = make(KJIT_F32, N, 0);
  data.r = make(KJIT_F32, N, 0);
  data.s = make(KJIT_F32, N, 0);
  data.matrix = make(KJIT_F32, N / ROW, ROW);
  data.columns = make(KJIT_F32, ROW, 0);
  data.places = make(KJIT_I64, N, 0);
  data.counts = make(KJIT_I32, 256, 0);
  data.one = make(KJIT_F32, 1, 0);
  data.count = make(KJIT_I64, 1, 0);
}

/* %d is a number that no earlier text has. */
static const char source[] = "func both(a, b) { return a + b + %d.5f32 }\n"
                             "func less(a, b) { return a + %d.5f32 < b + %d.5f32 }\n"
                             "func same(a, b) { return a == b or a == %d.5f32 }\n"
                             "func element(i, x) { return x[i] + %d.5f32 }\n"
                             "func flag(i, x) { return x[i] > %d.5f32 }\n"
                             "func digit(i, x) { return (i32(x[i]) + %d) & 255 }\n"
                             "func line(a, b) { return a * b + %d.5f32 }\n";

static kjit_function *find(kjit_module *module, const char *name)
{
  kjit_function *function;
  TRY(kjit_get_function(module, name, &function));
  return function;
}

typedef const kjit_algorithm_options options;

static void reduce(kjit_module *m, kjit_array *from, kjit_array *to, const int32_t *axis,
                   options *given)
{
  kjit_operand x = kjit_operand_array(from), r = kjit_operand_array(to);
  kjit_operator op = kjit_operator_function(find(m, "both"));
  kjit_algorithm_options o = *given;
  o.axes = axis;
  o.axis_count = axis ? 1 : 0;
  TRY(kjit_reduce(context, &r, &x, &op, &o));
}

static void call_reduce(kjit_module *m, options *o) { reduce(m, data.x, data.one, NULL, o); }

static void call_reduce_columns(kjit_module *m, options *o)
{
  const int32_t first = 0;
  reduce(m, data.matrix, data.columns, &first, o);
}

static void call_reduce_rows(kjit_module *m, options *o)
{
  const int32_t last = 1;
  reduce(m, data.matrix, data.columns, &last, o);
}

static void call_scan(kjit_module *m, options *o)
{
  kjit_operand x = kjit_operand_array(data.x), r = kjit_operand_array(data.r);
  kjit_operator op = kjit_operator_function(find(m, "both"));
  TRY(kjit_scan(context, &r, &x, &op, o));
}

/* Returns an operand whose elements a func computes, so that the kernels are new. */
static kjit_operand computed(kjit_module *m, const char *name, kjit_arg *array)
{
  static const int64_t extent = N;
  *array = kjit_arg_array(data.x);
  return kjit_operand_function(find(m, name), array, 1, &extent, 1);
}

static void call_radix_sort(kjit_module *m, options *o)
{
  kjit_arg array;
  kjit_operand x = computed(m, "element", &array), r = kjit_operand_array(data.r);
  TRY(kjit_sort(context, &r, &x, NULL, o));
}

static void call_merge_sort(kjit_module *m, options *o)
{
  kjit_operand x = kjit_operand_array(data.x), r = kjit_operand_array(data.r);
  TRY(kjit_sort(context, &r, &x, find(m, "less"), o));
}

static void call_select(kjit_module *m, options *o)
{
  kjit_arg array;
  kjit_operand x = kjit_operand_array(data.x), flags = computed(m, "flag", &array),
               r = kjit_operand_array(data.r), count = kjit_operand_array(data.count);
  TRY(kjit_select(context, &r, &count, &x, &flags, o));
}

static void call_unique(kjit_module *m, options *o)
{
  kjit_operand x = kjit_operand_array(data.x), r = kjit_operand_array(data.r),
               count = kjit_operand_array(data.count);
  TRY(kjit_unique(context, &r, &count, &x, find(m, "same"), o));
}

static void call_run_lengths(kjit_module *m, options *o)
{
  kjit_operand x = kjit_operand_array(data.x), r = kjit_operand_array(data.r),
               lengths = kjit_operand_array(data.places), count = kjit_operand_array(data.count);
  TRY(kjit_run_lengths(context, &r, &lengths, NULL, &count, &x, find(m, "same"), o));
}

static void call_search(kjit_module *m, options *o)
{
  kjit_operand x = kjit_operand_array(data.x), y = kjit_operand_array(data.y),
               r = kjit_operand_array(data.places);
  TRY(kjit_search_sorted(context, &r, &x, &y, find(m, "less"), o));
}

static void call_bincount(kjit_module *m, options *o)
{
  kjit_arg array;
  kjit_operand x = computed(m, "digit", &array), r = kjit_operand_array(data.counts);
  TRY(kjit_bincount(context, &r, &x, 256, NULL, o));
}

static void call_map(kjit_module *m, options *o)
{
  kjit_operand x[] = { kjit_operand_array(data.x), kjit_operand_array(data.y) },
               r = kjit_operand_array(data.r);
  TRY(kjit_map(context, &r, 1, find(m, "line"), x, 2, o));
}

static const struct row {
  const char *name;
  void (*call)(kjit_module *module, options *o);
} rows[] = {
  { "reduce", call_reduce },
  { "reduce, columns", call_reduce_columns },
  { "reduce, rows", call_reduce_rows },
  { "scan", call_scan },
  { "radix sort", call_radix_sort },
  { "merge sort", call_merge_sort },
  { "select", call_select },
  { "unique", call_unique },
  { "run lengths", call_run_lengths },
  { "search", call_search },
  { "bincount", call_bincount },
  { "map", call_map },
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- first calls ---- */

static kjit_module *parse(int number)
{
  char text[1024];
  kjit_module *module;
  int length = snprintf(text, sizeof text, source, number, number, number, number, number, number,
                        number, number);
  TRY(kjit_parse_module(context, "first.kir", text, (size_t)length, &module));
  return module;
}

/* The module is not released. */
static double first_call_ms(const struct row *row, int number, kjit_module **module)
{
  kjit_algorithm_options o = { .size_bytes = sizeof o };
  TRY(kjit_synchronize_device(device));
  double start = now_us();
  *module = parse(number);
  row->call(*module, &o);
  TRY(kjit_synchronize_device(device));
  return 1e-3 * (now_us() - start);
}

/* Prints the times of the call's kernels, which a plan of the call provides. */
static void print_parts(const struct row *row, kjit_module *module)
{
  kjit_algorithm_options o = { .size_bytes = sizeof o };
  kjit_plan *plan;
  double parts[MOST_PARTS] = { 0 };
  unsigned long long bytes = 0;
  o.plan = &plan;
  row->call(module, &o);
  size_t count = kjit_get_plan_size(plan), kernels = 0;
  for (size_t i = 0; i < count; i++) {
    const kjit_specialization *made =
      kjit_get_prepared_specialization(kjit_get_plan_launch(plan, i));
    kjit_specialization_info info = { .size_bytes = sizeof info };
    bool is_known = false;
    for (size_t j = 0; j < i && !is_known; j++)
      is_known = kjit_get_prepared_specialization(kjit_get_plan_launch(plan, j)) == made;
    if (is_known) continue;
    kjit_get_specialization_info(made, &info);
    const uint64_t ns[] = { info.parse_time_ns,    info.infer_time_ns, info.lower_time_ns,
                            info.optimize_time_ns, info.emit_time_ns,  info.load_time_ns };
    for (int k = 0; k < MOST_PARTS; k++) parts[k] += 1e-6 * (double)ns[k];
    bytes += info.code_bytes;
    kernels++;
  }
  printf(" %zu kernels:", kernels);
  for (int k = 0; k < MOST_PARTS; k++) printf(" %.2f", parts[k]);
  printf(", %llu bytes", bytes);
  kjit_destroy_plan(plan);
}

static void open_context(const char *cache, const char *device_name)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = cache;
  TRY(kjit_create_context(&config, &context));
  kjit_device_kind kind = strcmp(device_name, "cpu") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  TRY(kjit_get_device(context, kind, 0, &device));
  make_data();
}

static void measure_first(const char *what, int calls, bool has_parts)
{
  enum {
    BEFORE = 100000
  }; /* an earlier call has compiled everything that all calls of the row share */
  for (size_t i = 0; i < ROWS; i++) {
    double times[MOST_CALLS];
    kjit_module *module;
    (void)first_call_ms(&rows[i], BEFORE, &module);
    for (int j = 0; j < calls; j++) {
      kjit_release_module(module);
      times[j] = first_call_ms(&rows[i], j, &module);
    }
    qsort(times, (size_t)calls, sizeof *times, compare);
    printf("first\t%s, %s\t%.2f ms (least %.2f)", rows[i].name, what, times[calls / 2], times[0]);
    if (has_parts) print_parts(&rows[i], module);
    printf("\n");
    fflush(stdout);
    kjit_release_module(module);
  }
}

/* ---- repeated calls ---- */

static double host_us(kjit_plan *plan, const struct row *row, kjit_module *module)
{
  enum { TIMES = 15, CALLS = 200 };
  double times[TIMES];
  kjit_algorithm_options o = { .size_bytes = sizeof o };
  for (int i = 0; i < TIMES; i++) {
    TRY(kjit_synchronize_device(device));
    double start = now_us();
    for (int j = 0; j < CALLS; j++) {
      if (plan) TRY(kjit_run_plan(plan, NULL));
      else row->call(module, &o);
    }
    times[i] = (now_us() - start) / CALLS;
  }
  TRY(kjit_synchronize_device(device));
  qsort(times, TIMES, sizeof *times, compare);
  return times[TIMES / 2];
}

static void measure_host(void)
{
  kjit_module *module = parse(1);
  for (size_t i = 0; i < ROWS; i++) {
    kjit_algorithm_options o = { .size_bytes = sizeof o };
    kjit_plan *plan;
    o.plan = &plan;
    rows[i].call(module, &o);
    double run = host_us(plan, NULL, NULL), call = host_us(NULL, &rows[i], module);
    printf("host\t%s, %zu launches\tcall %.2f us, a plan's run %.2f us\n", rows[i].name,
           kjit_get_plan_size(plan), call, run);
    fflush(stdout);
    kjit_destroy_plan(plan);
  }
  kjit_release_module(module);
}

int main(int argc, char **argv)
{
  const char *device_name = argc > 1 ? argv[1] : "cuda";
  int calls = argc > 2 ? atoi(argv[2]) : 5;
  char cache[] = "/tmp/kjit-bench-XXXXXX", command[64];
  if (calls < 1 || calls > MOST_CALLS || !mkdtemp(cache)) return 2;
  open_context(cache, device_name);
  measure_first("compiled", calls, true);
  measure_host();
  kjit_destroy_context(context);
  open_context(cache, device_name);
  measure_first("from the disk cache", calls, false);
  kjit_destroy_context(context);
  snprintf(command, sizeof command, "rm -r %s", cache);
  if (system(command)) fprintf(stderr, "%s is left\n", cache);
  return 0;
}

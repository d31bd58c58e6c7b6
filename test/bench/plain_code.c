/* plain_code.c [ROUNDS [cuda]]: measures first calls on the CPU or a GPU with and without plain
 * code (kjit_config.plain_code). Prints milliseconds of wall time, the minimum of the rounds. Each
 * call runs in a new context without a disk cache. Columns: the first call that waits for the best
 * code; the first call with plain code; a later call of plain code; a later call of the best code.
 * Set CUDA_CACHE_DISABLE=1 for a GPU.
 *
 *   cc -O2 -Iinclude test/bench/plain_code.c -o plain_code -Lbuild/release/lib -lkjit
 *   LD_LIBRARY_PATH=build/release/lib ./plain_code */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1 << 20, SIDE = 256, BINS = 256 };

typedef struct world {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_formula *formula;
} world;

static void try(const world *w, kjit_status status, int line)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "line %d: %s\n", line, kjit_copy_diagnostics_text(w->context));
  exit(EXIT_FAILURE);
}
#define TRY(call) try(w, (call), __LINE__)

static kjit_operand make(const world *w, kjit_type type, int64_t rows, int64_t columns)
{
  const int64_t shape[] = { rows, columns };
  kjit_array *array;
  char *bytes = calloc((size_t)(rows * (columns ? columns : 1)), 8);
  if (!bytes) abort();
  for (int64_t i = 0; i < rows * (columns ? columns : 1); i++) {
    float value = (float)(i % 1013);
    int32_t whole = (int32_t)(i * 7919 % 1013);
    if (type == KJIT_F32) memcpy(bytes + 4 * i, &value, 4);
    if (type == KJIT_I32) memcpy(bytes + 4 * i, &whole, 4);
  }
  kjit_tensor host = kjit_make_tensor(bytes, type, columns ? 2 : 1, shape);
  TRY(kjit_create_array_from(w->device, &host, NULL, &array));
  free(bytes);
  return kjit_operand_array(array);
}

/* ---- the calls ---- */

typedef struct operands {
  kjit_operand x, r, n;
} operands;

static void reduce(const world *w, const operands *o)
{
  const kjit_operator add = kjit_operator_named("add");
  TRY(kjit_reduce(w->context, &o->r, &o->x, &add, NULL));
}
static void scan(const world *w, const operands *o)
{
  const kjit_operator add = kjit_operator_named("add");
  TRY(kjit_scan(w->context, &o->r, &o->x, &add, NULL));
}
static void sort(const world *w, const operands *o)
{
  TRY(kjit_sort(w->context, &o->r, &o->x, NULL, NULL));
}
static void unique(const world *w, const operands *o)
{
  TRY(kjit_unique(w->context, &o->r, &o->n, &o->x, NULL, NULL));
}
static void choose(const world *w, const operands *o)
{
  TRY(kjit_select(w->context, &o->r, &o->n, &o->x, &o->x, NULL));
}
static void count_bins(const world *w, const operands *o)
{
  TRY(kjit_bincount(w->context, &o->r, &o->x, 1024, NULL, NULL));
}
static void multiply(const world *w, const operands *o)
{
  TRY(kjit_matmul(w->context, &o->r, &o->x, &o->x, NULL));
}
static void map(const world *w, const operands *o)
{
  kjit_function *function;
  TRY(kjit_get_function(w->module, "f", &function));
  TRY(kjit_map(w->context, &o->r, 1, function, &o->x, 1, NULL));
}

static void call_function(const world *w, const operands *o)
{
  kjit_function *function;
  kjit_arg x = o->x.argument;
  TRY(kjit_get_function(w->module, "h", &function));
  TRY(kjit_call_function(function, &x, 1, NULL));
}
static void call_strict(const world *w, const operands *o)
{
  kjit_function *function;
  kjit_arg x = o->x.argument;
  TRY(kjit_get_function(w->module, "horner", &function));
  TRY(kjit_call_function(function, &x, 1, NULL));
}
static kjit_formula *make_formula(const world *w)
{
  static const char text[] = "x * 3 + where(x > 500, x, -x)";
  const kjit_formula_column column = { "x", KJIT_I32, 0, 0 };
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = &column,
                                         .column_count = 1 };
  kjit_formula *formula;
  TRY(kjit_create_formula(w->context, &options, text, sizeof text - 1, &formula));
  return formula;
}
static void run_formula(const world *w, const operands *o)
{
  const kjit_column x = { kjit_get_tensor(o->x.argument.value.array)->data, NULL, 0 },
                    r = { kjit_get_tensor(o->r.argument.value.array)->data, NULL, 0 };
  TRY(kjit_run_formula(w->formula, &x, &r, COUNT, NULL));
}

static const struct row {
  const char *name;
  void (*call)(const world *w, const operands *o);
  kjit_type type;
  kjit_plain_code plain;
  int64_t rows, columns; /* of the operand */
  int64_t count;         /* number of elements of the result; 0 means that of the operand */
} rows[] = {
  { "reduce, add, f32", reduce, KJIT_F32, KJIT_PLAIN_EQUAL, COUNT, 0, 1 },
  { "scan, add, i32", scan, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "sort, f32", sort, KJIT_F32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "unique, i32", unique, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "select, i32", choose, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "bincount, i32", count_bins, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 1024 },
  { "map, x * x + 1, f32", map, KJIT_F32, KJIT_PLAIN_ALWAYS, COUNT, 0, 0 },
  { "matmul, f32, 256", multiply, KJIT_F32, KJIT_PLAIN_ALWAYS, SIDE, SIDE, 0 },
  { "func, sum of i32 in a loop", call_function, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "func, f32, `@strict`", call_strict, KJIT_F32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
  { "formula of 4 operations, i32", run_formula, KJIT_I32, KJIT_PLAIN_EQUAL, COUNT, 0, 0 },
};

/* ---- time ---- */

static double now_ms(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static double call_ms(const struct row *row, const world *w, const operands *o)
{
  double start = now_ms();
  row->call(w, o);
  TRY(kjit_synchronize_device(w->device));
  return now_ms() - start;
}

typedef struct times {
  double first, plain, best;
} times;

/* Measures a row. The later call of plain code follows at once, while a background thread still
 * compiles the best code. */
static times measure(const struct row *row, kjit_device_kind kind, kjit_plain_code plain)
{
  static const char text[] =
    "func f(x) { return x * x + 1 }\nfunc g(x) { return x }\n"
    "func h(x) { var s = 0i64\n  for i in range(len(x)) { s = s + x[i] }\n  return s }\n"
    "func horner(x) @strict { var s = 0.5f32\n"
    "  for i in range(len(x)) { s = s * 0.25f32 + x[i] }\n  return s }";
  kjit_config config = {
    .size_bytes = sizeof config, .cache_directory = "", .shipped_cache = "", .plain_code = plain
  };
  world own = { 0 };
  const world *w = &own;
  TRY(kjit_create_context(&config, &own.context));
  TRY(kjit_get_device(own.context, kind, 0, &own.device));
  TRY(kjit_parse_module(own.context, "f", text, sizeof text - 1, &own.module));
  own.formula = make_formula(w);
  operands o = { .x = make(w, row->type, row->rows, row->columns), .n = make(w, KJIT_I64, 1, 0) };
  o.r =
    row->count ? make(w, row->type, row->count, 0) : make(w, row->type, row->rows, row->columns);
  kjit_function *other; /* loads the compiler, and everything that is looked up only once */
  kjit_operand few = make(w, KJIT_I64, 16, 0);
  TRY(kjit_get_function(own.module, "g", &other));
  TRY(kjit_map(own.context, &few, 1, other, &few, 1, NULL));
  TRY(kjit_wait_background(own.context));
  times found = { .first = call_ms(row, w, &o) };
  found.plain = call_ms(row, w, &o);
  TRY(kjit_wait_background(own.context));
  found.best = call_ms(row, w, &o);
  for (int i = 0; i < 5; i++) {
    double time = call_ms(row, w, &o);
    if (time < found.best) found.best = time;
  }
  kjit_destroy_formula(own.formula);
  kjit_release_module(own.module);
  kjit_destroy_context(own.context);
  return found;
}

static double least(double a, double b) { return a && a < b ? a : b; }

int main(int argc, char **argv)
{
  int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
  kjit_device_kind kind = argc > 2 && !strcmp(argv[2], "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  printf("| call | best code first | plain code first | plain run | best run "
         "|\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    times never = { 0 }, plain = { 0 };
    /* code that the application calls with host memory */
    bool is_of_host =
      rows[i].call == call_function || rows[i].call == call_strict || rows[i].call == run_formula;
    if (is_of_host && kind != KJIT_DEVICE_CPU) continue;
    for (int k = 0; k < rounds; k++) {
      times a = measure(&rows[i], kind, KJIT_PLAIN_NEVER),
            b = measure(&rows[i], kind, rows[i].plain);
      never.first = least(never.first, a.first);
      plain.first = least(plain.first, b.first);
      plain.plain = least(plain.plain, b.plain);
      plain.best = least(plain.best, b.best);
    }
    printf("| %s | %.1f | %.1f | %.2f | %.2f |\n", rows[i].name, never.first, plain.first,
           plain.plain, plain.best);
  }
  return 0;
}

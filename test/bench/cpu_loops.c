/* cpu_loops.c: compares kjit's CPU target with loops in C, on the same memory in one process, in
 * turn. cpu_loops EXAMPLES [repetitions]: EXAMPLES is the folder with the .kir programs. Prints a
 * line for each program: name, median ms of kjit, median ms of C, largest difference. cpu.py
 * compiles this program with gcc -O3 -march=native -fopenmp. */
#define _GNU_SOURCE
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_COLUMNS = 5, MAX_SCALARS = 2 };

typedef struct program {
  const char *name, *file, *kernel;
  int64_t count;
  /* the kernel's parameters are the outputs, then the scalars and the inputs; scalar_first tells
   * which of them come first */
  int outputs, inputs;
  int scalar_first;
  int scalars;
  float scalar[MAX_SCALARS];
  float low[MAX_COLUMNS], high[MAX_COLUMNS]; /* ranges of the inputs */
  void (*loop)(int64_t n, float **out, float **in, const float *scalar);
} program;

static void axpy_loop(int64_t n, float **out, float **in, const float *scalar)
{
  float *restrict r = out[0];
  const float *x = in[0], *y = in[1], a = scalar[0];
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) r[i] = a * x[i] + y[i];
}

static float cnd(float d)
{
  const float A1 = 0.31938153f, A2 = -0.356563782f, A3 = 1.781477937f, A4 = -1.821255978f,
              A5 = 1.330274429f;
  const float RSQRT2PI = 0.39894228040143267793994605993438f;
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float c = RSQRT2PI * expf(-0.5f * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))));
  return d > 0 ? 1.0f - c : c;
}

static void black_scholes_loop(int64_t n, float **out, float **in, const float *scalar)
{
  float *restrict call = out[0], *restrict put = out[1];
  const float *s = in[0], *x = in[1], *t = in[2], r = scalar[0], v = scalar[1];
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) {
    float sqrt_t = sqrtf(t[i]);
    float d1 = (logf(s[i] / x[i]) + (r + 0.5f * v * v) * t[i]) / (v * sqrt_t);
    float d2 = d1 - v * sqrt_t;
    float cnd1 = cnd(d1), cnd2 = cnd(d2);
    float discounted = x[i] * expf(-r * t[i]);
    call[i] = s[i] * cnd1 - discounted * cnd2;
    put[i] = discounted * (1.0f - cnd2) - s[i] * (1.0f - cnd1);
  }
}

static const program programs[] = {
  { "axpy 2^26 f32",
    "axpy/axpy.kir",
    "axpy",
    (int64_t)1 << 26,
    1,
    2,
    1,
    1,
    { 2.5f, 0 },
    { -1, -1 },
    { 1, 1 },
    axpy_loop },
  { "axpy 2^16 f32",
    "axpy/axpy.kir",
    "axpy",
    (int64_t)1 << 16,
    1,
    2,
    1,
    1,
    { 2.5f, 0 },
    { -1, -1 },
    { 1, 1 },
    axpy_loop },
  { "Black-Scholes 2^22 f32",
    "black_scholes/black_scholes.kir",
    "black_scholes",
    (int64_t)1 << 22,
    2,
    3,
    0,
    2,
    { 0.02f, 0.3f },
    { 5, 1, 0.25f },
    { 30, 100, 10 },
    black_scholes_loop },
};

typedef struct columns {
  int64_t count;
  float *memory[2 * MAX_COLUMNS]; /* kjit's outputs, the inputs, then the loop's outputs */
  kjit_tensor tensors[MAX_COLUMNS];
} columns;

static double now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Each page is first touched by the thread that works on it. */
static float *make_column(int64_t n, float low, float high, uint64_t seed)
{
  float *column = aligned_alloc(64, (size_t)((n * 4 + 63) / 64 * 64));
  if (!column) return NULL;
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) {
    uint64_t z = seed + (uint64_t)i * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    column[i] = low + (high - low) * (float)(z >> 40) / 16777216.0f;
  }
  return column;
}

static int make_columns(const program *p, columns *c)
{
  int all = p->outputs + p->inputs + p->outputs;
  c->count = p->count;
  for (int k = 0; k < all; k++) {
    int input = k - p->outputs;
    int is_input = input >= 0 && input < p->inputs;
    c->memory[k] = is_input ? make_column(p->count, p->low[input], p->high[input],
                                          (uint64_t)time(NULL) + (uint64_t)k * 977)
                            : make_column(p->count, 0, 0, 0);
    if (!c->memory[k]) return 0;
    if (k < p->outputs + p->inputs)
      c->tensors[k] = (kjit_tensor){ .data = c->memory[k],
                                     .device_type = KJIT_DEVICE_CPU,
                                     .rank = 1,
                                     .code = 2,
                                     .bits = 32,
                                     .lanes = 1,
                                     .shape = &c->count };
  }
  return 1;
}

static size_t make_arguments(const program *p, columns *c, kjit_arg *arguments)
{
  size_t count = 0;
  for (int k = 0; k < p->outputs; k++)
    arguments[count++] = kjit_with_access(kjit_arg_tensor(&c->tensors[k]), KJIT_ACCESS_OUT);
  for (int k = 0; p->scalar_first && k < p->scalars; k++)
    arguments[count++] = kjit_arg_f32(p->scalar[k]);
  for (int k = 0; k < p->inputs; k++)
    arguments[count++] = kjit_arg_tensor(&c->tensors[p->outputs + k]);
  for (int k = 0; !p->scalar_first && k < p->scalars; k++)
    arguments[count++] = kjit_arg_f32(p->scalar[k]);
  return count;
}

static kjit_status load(kjit_context *context, const char *folder, const program *p,
                        kjit_module **module)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, p->file);
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return KJIT_ERROR_IO;
  }
  static char text[1 << 16];
  size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  return kjit_parse_module(context, p->file, text, size, module);
}

/* Returns the number of calls of a measurement, which take some milliseconds together. */
static int calls_for(const program *p) { return p->count < 1 << 20 ? 200 : 1; }

static kjit_status measure(const program *p, kjit_kernel *kernel, kjit_device *device, columns *c,
                           int repetitions, double *times)
{
  kjit_arg arguments[MAX_COLUMNS + MAX_SCALARS];
  size_t count = make_arguments(p, c, arguments);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  int calls = calls_for(p);
  for (int k = -2; k < repetitions; k++) {
    double start = now_ms();
    for (int call = 0; call < calls; call++) {
      kjit_status status = kjit_launch(kernel, &config, arguments, count);
      if (status != KJIT_OK) return status;
    }
    double middle = now_ms();
    for (int call = 0; call < calls; call++)
      p->loop(p->count, c->memory + p->outputs + p->inputs, c->memory + p->outputs, p->scalar);
    if (k < 0) continue;
    times[k] = (middle - start) / calls;
    times[repetitions + k] = (now_ms() - middle) / calls;
  }
  qsort(times, (size_t)repetitions, sizeof *times, compare);
  qsort(times + repetitions, (size_t)repetitions, sizeof *times, compare);
  return KJIT_OK;
}

static double largest_difference(const program *p, const columns *c)
{
  double largest = 0;
  for (int k = 0; k < p->outputs; k++) {
    for (int64_t i = 0; i < p->count; i++) {
      double difference =
        fabs((double)c->memory[k][i] - (double)c->memory[p->outputs + p->inputs + k][i]);
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

static kjit_status run(kjit_context *context, kjit_device *device, const char *folder,
                       const program *p, int repetitions, double *times)
{
  columns c = { 0 };
  kjit_module *module = NULL;
  kjit_kernel *kernel;
  kjit_status status = load(context, folder, p, &module);
  if (status == KJIT_OK) status = kjit_get_kernel(module, p->kernel, &kernel);
  if (status == KJIT_OK)
    status =
      make_columns(p, &c) ? measure(p, kernel, device, &c, repetitions, times) : KJIT_ERROR_MEMORY;
  if (status == KJIT_OK)
    printf("%s\t%.4f\t%.4f\t%g\n", p->name, times[repetitions / 2],
           times[repetitions + repetitions / 2], largest_difference(p, &c));
  for (size_t k = 0; k < sizeof c.memory / sizeof *c.memory; k++) free(c.memory[k]);
  kjit_release_module(module);
  return status;
}

int main(int argc, char **argv)
{
  int repetitions = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 15;
  double *times = malloc(2 * (size_t)repetitions * sizeof *times);
  kjit_context *context = NULL;
  kjit_device *device = NULL;
  if (argc < 2 || !times || kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  kjit_status status = kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device);
  for (size_t k = 0; status == KJIT_OK && k < sizeof programs / sizeof *programs; k++)
    status = run(context, device, argv[1], &programs[k], repetitions, times);
  if (status != KJIT_OK) {
    char *text = kjit_copy_diagnostics_text(context);
    fprintf(stderr, "%s\n%s", kjit_get_status_name(status), text ? text : "");
    kjit_free(context, text);
  }
  kjit_destroy_context(context);
  free(times);
  return status == KJIT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

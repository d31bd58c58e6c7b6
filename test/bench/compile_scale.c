/* compile_scale.c: measures the compile time of generated kernels of 10 to 10,000 statements, from
 * text to code in a warm process, as processor time. Prints a line for each size and form: form,
 * target, statements, median ms, microseconds for each statement.
 *
 *   compile_scale [target] [most statements] [repetitions] [facts] [checks] [form]
 *
 * The defaults are sm_90, 10000, 3, all, none, and every form. The target nvrtc compiles the same
 * kernels in CUDA C to PTX with NVRTC.
 *
 * Each repetition parses another text. The forms:
 *   lets              one long chain of values
 *   stores            independent updates of elements
 *   blocks            ifs and loops with a few statements each
 *   calls             one func for every ten statements
 *   ifs               ifs with three subscripts each, in a grid_range
 *   loops             one loop for each statement
 *   sums              loops over the array
 *   sines, strided    one unrolled loop of calls of sin, or of stores
 * The arrays of sums, sines and strided can have any strides. */
#include <dlfcn.h>
#include <kjit/kjit.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct text {
  char *at;
  size_t length, capacity;
} text;

static void add(text *t, const char *format, ...)
{
  va_list list;
  if (t->length + 512 > t->capacity) t->at = realloc(t->at, t->capacity = 2 * t->capacity + 4096);
  if (!t->at) exit(1);
  va_start(list, format);
  t->length += (size_t)vsnprintf(t->at + t->length, t->capacity - t->length, format, list);
  va_end(list);
}

static void write_lets(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float v0 = x[i] + s;\n" : "  let v0 = x[i] + s\n");
  for (int k = 1; k < statements; k++)
    add(t,
        is_cuda ? "  float v%d = v%d * %d.5f + (v%d - %d.25f);\n"
                : "  let v%d = v%d * %d.5 + (v%d - %d.25)\n",
        k, k - 1, k % 7 + 1, k > 3 ? k - 3 : 0, k % 11);
  add(t, is_cuda ? "  r[i] = v%d;\n" : "  r[i] = v%d\n", statements - 1);
}

static void write_stores(text *t, int statements, bool is_cuda)
{
  for (int k = 0; k < statements; k++)
    add(t,
        is_cuda ? "  r[i + %d * n] = x[i + %d * n] * s + %d;\n"
                : "  r[i + %d * n] = x[i + %d * n] * s + %d\n",
        k % 64, (k + 1) % 64, k % 13);
}

static void write_blocks(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float a = x[i];\n" : "  var a = x[i]\n");
  for (int k = 0; k + 4 <= statements; k += 4) {
    if (k % 8)
      add(t,
          is_cuda ? "  if (a > %d) {\n    a = a - s;\n    r[i] = a;\n  }\n"
                  : "  if a > %d {\n    a = a - s\n    r[i] = a\n  }\n",
          k % 17);
    else
      add(t,
          is_cuda ? "  for (int j = 0; j < n; j++) {\n    a += x[j] * %d;\n    a = a * s;\n  }\n"
                  : "  for j in range(n) {\n    a += x[j] * %d\n    a = a * s\n  }\n",
          k % 5 + 1);
  }
  add(t, is_cuda ? "  r[i] = a;\n" : "  r[i] = a\n");
}

static void write_ifs(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float a = x[i];\n" : "  for q in grid_range(len(r)) {\n  var a = x[q]\n");
  for (int k = 0; k < statements; k++)
    add(t,
        is_cuda ? "  if (x[%d] > %d) a = a * x[%d] + x[%d]; else a = a + %d;\n"
                : "  if x[%d] > %d { a = a * x[%d] + x[%d] } else { a = a + %d }\n",
        k, k, k + 1, k, k);
  add(t, is_cuda ? "  r[i] = a;\n" : "  r[q] = a\n  }\n");
}

static void write_loops(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float a = x[i];\n" : "  var a = x[i]\n");
  for (int k = 0; k < statements; k++)
    add(t,
        is_cuda ? "  for (int j = 0; j < n; j++) a = a * x[j] + %d;\n"
                : "  for j in range(n) { a = a * x[j] + %d }\n",
        k % 9);
  add(t, is_cuda ? "  r[i] = a;\n" : "  r[i] = a\n");
}

static void write_sums(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float a = x[i];\n" : "  var a = x[i]\n");
  for (int k = 0; k < statements; k++)
    add(t,
        is_cuda ? "  for (int j = 0; j < n; j++) a = a * x[j * n] + %d;\n"
                : "  for j in range(len(x)) { a = a * x[j] + %d }\n",
        k % 9);
  add(t, is_cuda ? "  r[i] = a;\n" : "  r[i] = a\n");
}

static void write_sines(text *t, int statements, bool is_cuda)
{
  add(t,
      is_cuda ? "  float a = x[i];\n#pragma unroll\n  for (int j = 0; j < %d; j++) a = sinf(a) + "
                "x[j * n];\n  r[i] = a;\n"
              : "  var a = x[i]\n  for j in range(%d) @unroll { a = sin(a) + x[j] }\n  r[i] = a\n",
      statements);
}

static void write_strided(text *t, int statements, bool is_cuda)
{
  add(t,
      is_cuda ? "#pragma unroll\n  for (int j = 0; j < %d; j++) r[(i + j) * n] = s + j;\n"
              : "  for j in range(%d) @unroll { r[i + j] = s + j }\n",
      statements);
}

static void write_calls(text *t, int statements, bool is_cuda)
{
  add(t, is_cuda ? "  float a = x[i];\n" : "  var a = x[i]\n");
  for (int k = 0; k + 10 <= statements; k += 10)
    add(t, is_cuda ? "  a = f%d(a, s);\n" : "  a = f%d(a, s)\n", k / 10);
  add(t, is_cuda ? "  r[i] = a;\n" : "  r[i] = a\n");
}

static void write_functions(text *t, int statements, bool is_cuda)
{
  for (int k = 0; k + 10 <= statements; k += 10) {
    add(t,
        is_cuda ? "static __device__ float f%d(float a, float s)\n{\n  float b = a;\n"
                : "func f%d(a, s) {\n  var b = a\n",
        k / 10);
    for (int m = 0; m < 8; m++)
      add(t, is_cuda ? "  b = b * s + %d;\n" : "  b = b * s + %d\n", (k + m) % 9);
    add(t, is_cuda ? "  return b;\n}\n" : "  return b\n}\n");
  }
}

typedef struct form {
  const char *name;
  void (*write)(text *t, int statements, bool is_cuda);
  bool has_functions, is_strided;
} form;
static const form forms[] = {
  { "lets", write_lets, false, false },      { "stores", write_stores, false, false },
  { "blocks", write_blocks, false, false },  { "calls", write_calls, true, false },
  { "ifs", write_ifs, false, false },        { "loops", write_loops, false, false },
  { "sums", write_sums, false, true },       { "sines", write_sines, false, true },
  { "strided", write_strided, false, true },
};
static const char *facts = "all";
static uint32_t checks;

static double now_ms(void)
{
  struct timespec time;
  /* processor time of the process, which does not include other work of the machine; the compiler
   * has one thread */
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static text make_text(const form *f, int statements, int number, bool is_cuda)
{
  text t = { 0 };
  if (f->has_functions) write_functions(&t, statements, is_cuda);
  if (is_cuda)
    add(&t, "extern \"C\" __global__ void k(float *__restrict__ r, const float *__restrict__ x, "
            "float s, int n)\n{\n  int i = blockIdx.x * blockDim.x + "
            "threadIdx.x;\n");
  else add(&t, "kernel k(r, x, s, n) {\n  let i = grid(1)\n");
  f->write(&t, statements, is_cuda);
  add(&t, is_cuda ? "  r[0] = %d;\n}\n" : "  r[0] = %d\n}\n", number);
  return t;
}

/* ---- NVRTC ---- */

static int (*create)(void **program, const char *source, const char *name, int count,
                     const char *const *headers, const char *const *names);
static int (*compile_program)(void *program, int count, const char *const *options);
static int (*destroy)(void **program);

static bool open_nvrtc(void)
{
  void *library = dlopen("libnvrtc.so", RTLD_NOW);
  if (!library) library = dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW);
  if (!library) return false;
  *(void **)&create = dlsym(library, "nvrtcCreateProgram");
  *(void **)&compile_program = dlsym(library, "nvrtcCompileProgram");
  *(void **)&destroy = dlsym(library, "nvrtcDestroyProgram");
  return create && compile_program && destroy;
}

static bool compile_cuda(const text *t)
{
  static const char *const options[] = { "--gpu-architecture=compute_90" };
  void *program;
  if (create(&program, t->at, "scale.cu", 0, NULL, NULL)) return false;
  int failure = compile_program(program, 1, options);
  destroy(&program);
  if (failure) fprintf(stderr, "compile_scale: NVRTC gives %d\n", failure);
  return !failure;
}

/* ---- measuring ---- */

static bool compile(kjit_context *context, const form *f, const text *t, const char *target)
{
  const char *types = f->is_strided ? "f32[:], f32[:], f32, i32" : "f32[:] C, f32[:] C, f32, i32";
  kjit_compile_options options = { .size_bytes = sizeof options };
  kjit_module *module;
  kjit_kernel *kernel;
  void *code = NULL;
  size_t size_bytes;
  options.target = target;
  options.facts = strcmp(facts, "none") ? facts : NULL;
  options.checks = checks;
  kjit_status status = kjit_parse_module(context, "scale.kir", t->at, t->length, &module);
  if (status == KJIT_OK) {
    status = kjit_get_kernel(module, "k", &kernel);
    kjit_stage stage = strcmp(target, "cpu") ? KJIT_STAGE_PTX : KJIT_STAGE_OBJECT;
    if (status == KJIT_OK)
      status = kjit_compile(kernel, types, &options, stage, &code, &size_bytes);
    kjit_free(context, code);
    kjit_release_module(module);
  }
  if (status == KJIT_OK) return true;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "compile_scale: %s: %s\n", kjit_get_status_name(status), message ? message : "");
  kjit_free(context, message);
  return false;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool measure(kjit_context *context, const form *f, const char *target, int statements,
                    int repetitions)
{
  double *times = malloc((size_t)repetitions * sizeof *times);
  bool is_compiled = times != NULL;
  for (int k = 0; k < repetitions && is_compiled; k++) {
    text t = make_text(f, statements, k + statements, create != NULL);
    double start = now_ms();
    is_compiled = create ? compile_cuda(&t) : compile(context, f, &t, target);
    times[k] = now_ms() - start;
    free(t.at);
  }
  if (is_compiled) {
    qsort(times, (size_t)repetitions, sizeof *times, compare);
    double median = times[repetitions / 2];
    printf("%-8s %-6s %8d %10.2f %10.2f\n", f->name, target, statements, median,
           1e3 * median / statements);
    fflush(stdout);
  }
  free(times);
  return is_compiled;
}

int main(int argc, char **argv)
{
  const char *target = argc > 1 ? argv[1] : "sm_90";
  int most = argc > 2 ? atoi(argv[2]) : 10000,
      repetitions = argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : 3;
  if (argc > 4) facts = argv[4];
  if (argc > 5 && !strcmp(argv[5], "usual"))
    checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION | KJIT_CHECK_ASSERT;
  static const int sizes[] = { 10, 30, 100, 300, 1000, 4000, 10000, 30000, 100000 };
  kjit_context *context;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 1;
  if (!strcmp(target, "nvrtc") && !open_nvrtc()) {
    fprintf(stderr, "compile_scale: no NVRTC\n");
    return 1;
  }
  text warm = make_text(&forms[0], 10, 0, create != NULL);
  bool all = create ? compile_cuda(&warm) : compile(context, &forms[0], &warm, target);
  free(warm.at);
  printf("%-8s %-6s %8s %10s %10s\n", "form", "target", "size", "ms", "us each");
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    if (argc > 6 && strcmp(argv[6], forms[f].name)) continue;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes && sizes[k] <= most; k++)
      all = measure(context, &forms[f], target, sizes[k], repetitions) && all;
  }
  kjit_destroy_context(context);
  return all ? 0 : 1;
}

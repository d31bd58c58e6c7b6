/* compile_time.c: from kernel IR text to PTX in a warm process. Prints a line for each kernel:
 * name, median ms, least ms, bytes of PTX. compile_time [target] [repetitions] [checked]; default
 * sm_90, 40, without checks. Each repetition parses another text, so that no cache is used. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct program {
  const char *name, *kernel, *signature, *text; /* %d in the text is the number of the repetition */
} program;

#define ELEMENTWISE(expression) \
  "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) {\n    r[i] = " expression \
  "\n  }\n}\n# %d\n"
static const char element_signature[] = "f32[:] C, f32, const f32[:] C, const f32[:] C";

static const program programs[] = {
  { "axpy", "axpy", element_signature, ELEMENTWISE("a * x[i] + y[i] + %d") },
  { "axpy with exp", "axpy", element_signature, ELEMENTWISE("a * exp(x[i]) + y[i] + %d") },
  { "axpy with sin", "axpy", element_signature, ELEMENTWISE("a * sin(x[i]) + y[i] + %d") },
  { "naive product", "matmul", "f32[:, :] C, const f32[:, :] C, const f32[:, :] C",
    "kernel matmul(C, A, B) {\n  let col, row = grid(2)\n  if row < C.shape[0] and col < "
    "C.shape[1] {\n    var acc = zero(dtype(C)) + %d\n"
    "    for k in range(A.shape[1]) { acc += A[row, k] * B[k, col] }\n    C[row, col] = acc\n  "
    "}\n}\n# %d\n" },
  { "tiled product", "matmul", "f32[:, :] C, const f32[:, :] C, const f32[:, :] C, 16",
    "kernel matmul(C, A, B, const TPB = 16) @block(TPB, TPB) @grid(ceil_div(C.shape[1], TPB), "
    "ceil_div(C.shape[0], TPB)) {\n"
    "  shared sA: dtype(A)[TPB, TPB]\n  shared sB: dtype(B)[TPB, TPB]\n  let rows, depth = "
    "A.shape\n  let cols = B.shape[1]\n  let col, row = grid(2)\n"
    "  let tx = threadIdx.x\n  let ty = threadIdx.y\n  var acc = zero(dtype(C)) + %d\n  for t in "
    "range(ceil_div(depth, TPB)) {\n    let ka = t * TPB + tx\n    "
    "let kb = t * TPB + ty\n"
    "    sA[ty, tx] = row < rows and ka < depth ? A[row, ka] : 0\n    sB[ty, tx] = kb < depth and "
    "col < cols ? B[kb, col] : 0\n    syncthreads()\n"
    "    for k in range(TPB) @unroll {\n      acc += sA[ty, k] * sB[k, tx]\n    }\n    "
    "syncthreads()\n  }\n  if row < rows and col < cols {\n    C[row, col] = "
    "acc\n  }\n}\n# %d\n" },
};

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

static uint32_t checks;

static kjit_status compile(kjit_context *context, const program *p, const char *target, int number,
                           size_t *size_bytes)
{
  char text[2048];
  int length = snprintf(text, sizeof text, p->text, number, number);
  kjit_compile_options options = { .size_bytes = sizeof options };
  kjit_module *module;
  kjit_kernel *kernel;
  void *ptx = NULL;
  options.target = target;
  options.facts = "all";
  options.checks = checks;
  kjit_status status = kjit_parse_module(context, p->name, text, (size_t)length, &module);
  if (status != KJIT_OK) return status;
  status = kjit_get_kernel(module, p->kernel, &kernel);
  if (status == KJIT_OK)
    status = kjit_compile(kernel, p->signature, &options, KJIT_STAGE_PTX, &ptx, size_bytes);
  kjit_free(context, ptx);
  kjit_release_module(module);
  return status;
}

static kjit_status measure(kjit_context *context, const program *p, const char *target,
                           int repetitions, double *times)
{
  size_t size_bytes = 0;
  for (int k = -3; k < repetitions; k++) {
    double start = now_ms();
    kjit_status status = compile(context, p, target, k + 4, &size_bytes);
    if (status != KJIT_OK) return status;
    if (k >= 0) times[k] = now_ms() - start;
  }
  qsort(times, (size_t)repetitions, sizeof *times, compare);
  printf("%-16s %8.2f %8.2f %8zu\n", p->name, times[repetitions / 2], times[0], size_bytes);
  return KJIT_OK;
}

int main(int argc, char **argv)
{
  const char *target = argc > 1 ? argv[1] : "sm_90";
  int repetitions = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 40;
  if (argc > 3 && !strcmp(argv[3], "checked"))
    checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION | KJIT_CHECK_ASSERT;
  double *times = malloc((size_t)repetitions * sizeof *times);
  kjit_context *context = NULL;
  kjit_status status = times ? kjit_create_context(NULL, &context) : KJIT_ERROR_MEMORY;
  for (size_t k = 0; status == KJIT_OK && k < sizeof programs / sizeof *programs; k++)
    status = measure(context, &programs[k], target, repetitions, times);
  if (status != KJIT_OK) {
    char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
    fprintf(stderr, "%s\n%s", kjit_get_status_name(status), text ? text : "");
    kjit_free(context, text);
  }
  kjit_destroy_context(context);
  free(times);
  return status == KJIT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

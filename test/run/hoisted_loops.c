/* Loops that kjit compiles in two versions, with and without checks. The effects of a thread up to
 * its failure, and the failure itself, are the same as in a kernel whose loops are checked in every
 * iteration. On the CPU, kernels run such loops in the blocks that fail. Funcs that the application
 * calls have two versions on the CPU, and kernels on a GPU.
 * RUN: %programs/hoisted_loops cpu
 * RUN: %if cuda %{ %programs/hoisted_loops cuda %}
 * If a file is given after the device, its loops are tested. Lines of three dashes separate them
 * (test/random/loops.py). */
#include <kjit/kjit.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* r[0] counts, r[1] adds up; x has 12 elements, m is 4 x 5, t 2 x 3 x 4, y 12 to write to, b 12
 * small indices. first, stop, by and c are of one integer type. */
typedef struct loop {
  const char *name;
  enum { ANY, SIGNED, KERNEL } of; /* SIGNED: only signed integers; KERNEL: only in kernels */
  const char *body;
} loop;

static const loop usual[] = {
  { "up", ANY, "for k in range(first, stop) { r[0] += 1\n r[1] += x[k + c] }" },
  { "threes", ANY, "for k in range(first, stop, 3) { r[0] += 1\n r[1] += x[k] + 2 * x[k + 1] }" },
  { "down", SIGNED, "for k in range(stop, first, -1) { r[0] += 1\n r[1] += x[k + c] }" },
  { "down_twos", SIGNED, "for k in range(stop, first, -2) { r[0] += 1\n r[1] += x[k - c] }" },
  { "any_step", ANY, "for k in range(first, stop, by) { r[0] += 1\n r[1] += x[k] }" },
  { "leaves", ANY,
    "for k in range(first, stop) {\n if k == by { break }\n r[0] += 1\n r[1] += x[k] }" },
  { "returns", ANY,
    "for k in range(first, stop) {\n if k == by { return }\n if k == c { continue }\n r[0] += 1\n "
    "r[1] += x[k] }" },
  { "triangle", ANY,
    "for i in range(first, stop) { for j in range(i, stop) { r[0] += 1\n r[1] += m[i, j] } }" },
  { "box", ANY,
    "for i in range(first, stop) { for k in range(by) { r[0] += 1\n r[1] += t[i, c, k] } }" },
  { "rows", ANY,
    "for i in range(first, stop) {\n let row = m[i]\n for j in range(by) { r[0] += 1\n r[1] += "
    "row[j + c] } }" },
  { "row", ANY, "let row = m[c]\n for j in range(first, stop) { r[0] += 1\n r[1] += row[j] }" },
  { "slice", ANY, "let s = x[2:9]\n for k in range(first, stop) { r[0] += 1\n r[1] += s[k + c] }" },
  { "strided", ANY, "let s = x[1::2]\n for k in range(first, stop) { r[0] += 1\n r[1] += s[k] }" },
  { "behind", SIGNED, /* an extent below 0 */
    "let v = view(i32[i64(c) - 2], pointer(y[0]))\n for k in range(by) { r[0] += 1\n r[1] += x[k "
    "+ len(v)] }" },
  { "cut", ANY, "for k in range(first, stop) { let s = x[k:8]\n r[0] += 1\n r[1] += s[0] }" },
  { "writes", ANY, "for k in range(first, stop) { y[k] = x[k + c] + y[k]\n r[0] += 1 }" },
  { "adds", KERNEL, "for k in range(first, stop) { atomic_add(y[k + c], 2)\n r[0] += 1 }" },
  { "products", ANY, "for k in range(first, stop) { r[0] += 1\n r[1] += x[k * by + c] }" },
  { "linear", ANY,
    "for i in range(4) { for j in range(first, stop) { r[0] += 1\n r[1] += x[i * by + j] } }" },
  { "differences", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += x[stop - 1 - k] + x[k - first] }" },
  { "remainder", ANY, "for k in range(first, stop) { r[0] += 1\n r[1] += x[k % by] + x[k & 7] }" },
  { "hashed", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += x[(k * 1103515245 + c) % 12] }" },
  { "loaded", ANY,
    "for i in range(first, stop) { for j in range(b[i], b[i + 1]) { r[0] += 1\n r[1] += x[j + c] } "
    "}" },
  { "gathers", ANY, "for k in range(first, stop) { r[0] += 1\n r[1] += x[b[k] + by] }" },
  { "divides", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += i32(100 // by) + i32(100 // (k + c)) }" },
  { "floats", ANY,
    "let d = f32(by)\n for k in range(first, stop) { r[0] += 1\n r[1] += i32(60.0f32 / d) + x[k] "
    "}" },
  { "helper", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += at(x, k + c) + sum_of(m, k) }" },
  { "once", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += at(x, k) }\n r[1] += at(x, c)" },
  { "sometimes", ANY,
    "for k in range(first, stop) { r[0] += 1\n if k % 2 == 0 { r[1] += x[k + c] } }" },
  { "walks", ANY,
    "var p = c\n for k in range(first, stop) { r[0] += 1\n r[1] += x[p]\n p += by }" },
  { "inner", ANY,
    "for i in range(first, stop) { let p = b[i]\n for j in range(by) { r[0] += 1\n r[1] += x[p + "
    "i32(j)] } }" },
  { "around", ANY,
    "var n = 0\n while n < 3 { for k in range(first, stop) { r[0] += 1\n r[1] += x[k + n] }\n n += "
    "1 }" },
  { "clamped", ANY,
    "for k in range(first, stop) { r[0] += 1\n r[1] += x[min(max(k, c), by)] + x[k > c ? k : c] "
    "}" },
  { "shrinks", ANY,
    "for i in range(first, stop) { for k in range(first, stop - i) { r[0] += 1\n r[1] += x[i + k] "
    "} }" },
  { "unrolled", ANY,
    "for k in range(4) @unroll { r[0] += 1\n r[1] += x[k + c] + x[first + k * by] }" },
};

static const char helpers[] =
  "func at(x, i) { return x[i] }\n"
  "func sum_of(m, i) {\n  var s = 0\n  for j in range(5) { s += m[i % 5, j] }\n  return s\n}\n";

enum {
  USUAL = sizeof usual / sizeof *usual,
  MOST_LOOPS = 256,
  ARRAYS = 6,
  SCALARS = 4,
  TYPES = 4,
  LENGTH = 12
};
static const kjit_type types[TYPES] = { KJIT_I32, KJIT_I64, KJIT_U32, KJIT_U64 };

typedef struct arrays {
  int32_t r[2], x[LENGTH], m[20], t[24], y[LENGTH], b[LENGTH];
} arrays;

static loop loops[MOST_LOOPS];
static size_t loop_count;
static kjit_context *context;
static kjit_device *cpu, *gpu;
static int failed, failing, running;

static void require(int holds, const char *what)
{
  if (holds) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s\n%s", what, message ? message : "");
  exit(EXIT_FAILURE);
}

static void fill(arrays *a)
{
  memset(a, 0, sizeof *a);
  for (int i = 0; i < LENGTH; i++) a->x[i] = 100 + i * i, a->b[i] = i * 5 % 7, a->y[i] = i;
  for (int i = 0; i < 24; i++) a->t[i] = 3 * i;
  for (int i = 0; i < 20; i++) a->m[i] = 1000 - i;
}

static void set_arguments(arrays *a, kjit_type type, int64_t const *values, kjit_tensor *tensors,
                          kjit_arg *arguments)
{
  static int64_t shapes[ARRAYS][3] = { { 2 },       { LENGTH }, { 4, 5 },
                                       { 2, 3, 4 }, { LENGTH }, { LENGTH } };
  static const int32_t ranks[ARRAYS] = { 1, 1, 2, 3, 1, 1 };
  int32_t *data[ARRAYS] = { a->r, a->x, a->m, a->t, a->y, a->b };
  for (int i = 0; i < ARRAYS; i++) {
    tensors[i] = (kjit_tensor){ .data = data[i],
                                .device_type = KJIT_DEVICE_CPU,
                                .rank = ranks[i],
                                .code = 0,
                                .bits = 32,
                                .lanes = 1,
                                .shape = shapes[i] };
    arguments[i] = kjit_arg_tensor(&tensors[i]);
  }
  for (int i = 0; i < SCALARS; i++) {
    int64_t v = values[i];
    arguments[ARRAYS + i] = type == KJIT_I32   ? kjit_arg_i32((int32_t)v)
                            : type == KJIT_I64 ? kjit_arg_i64(v)
                            : type == KJIT_U32 ? kjit_arg_u32((uint32_t)v)
                                               : kjit_arg_u64((uint64_t)v);
  }
}

/* Returns the message of a failure without the name of the kernel and the number of the thread. */
static const char *how(kjit_status status, char *text, size_t size)
{
  const kjit_diagnostic *d = kjit_get_diagnostic(context, 0);
  /* remarks come first */
  for (size_t i = 1; d && d->severity > KJIT_SEVERITY_ERROR; i++)
    d = kjit_get_diagnostic(context, i);
  if (status == KJIT_OK) return "no failure";
  static const char *const starts[] = { "index ", "division", "the step" };
  const char *message = d ? d->message : "", *at = NULL;
  for (size_t i = 0; i < sizeof starts / sizeof *starts && !at; i++)
    at = strstr(message, starts[i]);
  snprintf(text, size, "%d at %d:%d: %s", (int)status, d ? (int)d->line : 0, d ? (int)d->column : 0,
           at ? at : message);
  return text;
}

static kjit_status launch(kjit_kernel *kernel, kjit_device *device, const kjit_arg *arguments)
{
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 }, .device = device
  };
  return kjit_launch(kernel, &config, arguments, ARRAYS + SCALARS);
}

static void compare(size_t which, kjit_kernel *kernel, kjit_function *function, kjit_type type,
                    int64_t const *values)
{
  static arrays wanted, found;
  kjit_tensor tensors[ARRAYS];
  kjit_arg arguments[ARRAYS + SCALARS];
  char wanted_text[512], found_text[512];
  fill(&wanted);
  set_arguments(&wanted, type, values, tensors, arguments);
  kjit_status status = launch(kernel, cpu, arguments);
  const char *expected = how(status, wanted_text, sizeof wanted_text);
  failing += status != KJIT_OK;
  running += status == KJIT_OK && wanted.r[0];
  fill(&found);
  set_arguments(&found, type, values, tensors, arguments);
  status = gpu ? launch(kernel, gpu, arguments)
               : kjit_call_function(function, arguments, ARRAYS + SCALARS, NULL);
  const char *said = how(status, found_text, sizeof found_text);
  if (strcmp(said, expected) == 0 && memcmp(&wanted, &found, sizeof found) == 0) return;
  if (failed++ > 20) return;
  printf(
    "%s, %s, first %lld, stop %lld, by %lld, c %lld:\n  %s, expected %s\n  %d %d, expected %d %d\n",
    loops[which].name,
    (const char *[]){ "i32", "i64", "u32", "u64" }[type == KJIT_I32   ? 0
                                                   : type == KJIT_I64 ? 1
                                                   : type == KJIT_U32 ? 2
                                                                      : 3],
    (long long)values[0], (long long)values[1], (long long)values[2], (long long)values[3], said,
    expected, found.r[0], found.r[1], wanted.r[0], wanted.r[1]);
}

static void compare_small(size_t which, kjit_kernel *kernel, kjit_function *function,
                          kjit_type type)
{
  static const int64_t firsts[] = { 0, 1, 5, -1 }, stops[] = { 0, 1, 3, 4, 11, 12, 13 },
                       steps[] = { 0, 1, 2, 5, -1 }, offsets[] = { 0, 1, 4, -1 };
  int is_signed = type == KJIT_I32 || type == KJIT_I64;
  for (int i = 0; i < 4 - !is_signed; i++)
    for (int j = 0; j < 7; j++)
      for (int k = 0; k < 5 - !is_signed; k++)
        for (int n = 0; n < 4 - !is_signed; n++)
          compare(which, kernel, function, type,
                  (int64_t[]){ firsts[i], stops[j], steps[k], offsets[n] });
}

/* Sums and products that overflow the type, or return to its range. The loops have few iterations
 * or fail at once. */
static void compare_large(size_t which, kjit_kernel *kernel, kjit_function *function,
                          kjit_type type)
{
  int64_t most = type == KJIT_I32   ? INT32_MAX
                 : type == KJIT_U32 ? UINT32_MAX
                 : type == KJIT_I64 ? INT64_MAX
                                    : -1;
  int64_t least = type == KJIT_I32   ? INT32_MIN
                  : type == KJIT_I64 ? INT64_MIN
                                     : 0,
          half = type == KJIT_I32 || type == KJIT_U32 ? INT64_C(1) << 30 : INT64_C(1) << 62;
  /* the last number is 0 in the type */
  int64_t two = (int64_t)(2 * (uint64_t)half), four = (int64_t)(4 * (uint64_t)half);
  const int64_t rows[][4] = {
    { most - 2, most, 1, 1 },
    { most - 2, most, most, most },
    { most - 2, most, 3, least },
    { least, least + 3, 1, 0 },
    { least, least + 3, 1, most },
    { 0, 5, most, 0 },
    { 0, 5, two, 0 },
    { 0, 5, four, 0 },
    { 0, 5, half, 4 },
    { 1, 5, half + 1, 0 },
    { 3, 8, four + 1, 0 },
    { 0, 4, 1, most },
    { 0, 4, 1, most - 8 },
    { 2, 6, 1, least },
    { 0, 12, 0, least },
    { 0, 7, INT64_C(1) << 32, 0 },
    { 0, 7, 1, INT64_C(1) << 32 },
    { INT64_C(1) << 40, (INT64_C(1) << 40) + 4, 1, -(INT64_C(1) << 40) },
    { most, most, 1, 0 },
    { most - 1, 3, 1, 0 },
    { INT64_C(3) << 30, (INT64_C(3) << 30) + 2, 1, -(INT64_C(3) << 30) },
    { most - 1, most, 1, 3 - most },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    compare(which, kernel, function, type, rows[i]);
}

static void take_loops(const char *path)
{
  static char text[1 << 20], names[MOST_LOOPS][16];
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!path) memcpy(loops, usual, sizeof usual);
  loop_count = path ? 0 : USUAL;
  if (!path) return;
  require(file != NULL, "opening the file of loops");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  for (char *at = text, *next; at && loop_count < MOST_LOOPS; at = next) {
    next = strstr(at, "---\n");
    if (next) *next = 0, next += 4;
    snprintf(names[loop_count], sizeof *names, "loop%zu", loop_count);
    loops[loop_count] = (loop){ names[loop_count], ANY, at };
    loop_count++;
  }
}

static kjit_module *parse(void)
{
  static char text[1 << 21];
  char *at = stpcpy(text, helpers);
  for (size_t i = 0; i < loop_count; i++) {
    static const char parameters[] = "(r, x, m, t, y, b, first, stop, by, c)";
    at += sprintf(at, "func %s%s {\n%s\n}\nkernel run_%s%s { %s%s }\n", loops[i].name, parameters,
                  loops[i].body, loops[i].name, parameters, loops[i].name, parameters);
  }
  kjit_module *module = NULL;
  require(kjit_parse_module(context, "loops", text, strlen(text), &module) == KJIT_OK, "parsing");
  return module;
}

int main(int argc, char **argv)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION;
  if (kjit_create_context(&config, &context) != KJIT_OK) return EXIT_FAILURE;
  require(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK, "opening the CPU");
  if (argc > 1 && !strcmp(argv[1], "cuda"))
    require(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &gpu) == KJIT_OK, "opening the GPU");
  take_loops(argc > 2 ? argv[2] : NULL);
  kjit_module *module = parse();
  for (size_t i = 0; i < loop_count; i++) {
    char name[64];
    kjit_kernel *kernel = NULL;
    kjit_function *function = NULL;
    snprintf(name, sizeof name, "run_%s", loops[i].name);
    require(kjit_get_kernel(module, name, &kernel) == KJIT_OK &&
              kjit_get_function(module, loops[i].name, &function) == KJIT_OK,
            "getting a kernel");
    for (int t = 0; (gpu || loops[i].of != KERNEL) && t < (loops[i].of == SIGNED ? 2 : TYPES);
         t++) {
      compare_small(i, kernel, function, types[t]);
      compare_large(i, kernel, function, types[t]);
    }
  }
  kjit_release_module(module);
  kjit_destroy_context(context);
  printf("%d failing, %d running, %d wrong\n", failing, running, failed);
  return failed || failing < 100 || running < 100 ? EXIT_FAILURE : EXIT_SUCCESS;
}

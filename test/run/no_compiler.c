/* Algorithms with funcs of the application in a process without a compiler. Code in the disk cache
 * runs without a message. Code of another func, also one with the same name or with other
 * constants, is not used.
 * RUN: rm -rf %t && %programs/no_compiler %t
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *directory;
static kjit_context *context;
static int told;

static void fail(const char *what, int line)
{
  char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "no_compiler.c:%d: %s\n%s", line, what, text ? text : "");
  exit(1);
}
#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static void count(void *user, const kjit_diagnostic *diagnostic)
{
  (void)user;
  (void)diagnostic;
  told++;
}

/* Opens a new context, as a new process would. */
static void open_context(int has_compiler)
{
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = directory,
                         .compiler_path = has_compiler ? NULL : "/nowhere/libkjit-compiler.so",
                         .on_diagnostic = count };
  EXPECT(kjit_create_context(&config, &context) == KJIT_OK);
  told = 0;
}

static kjit_module *parse(const char *text)
{
  kjit_module *module;
  EXPECT(kjit_parse_module(context, "own.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

typedef struct outcome {
  kjit_status reduced, sorted;
  double sum, sorted_x[4];
} outcome;

/* Makes a reduction with the module's `op` and a sort with its `less`. */
static outcome use(kjit_module *module)
{
  kjit_function *op, *less;
  outcome made = { .sum = -1 };
  const double x[] = { 4, 1, 3, 2 };
  const int64_t shape[] = { 4 };
  kjit_device *cpu;
  kjit_tensor tensor = kjit_make_tensor((void *)(uintptr_t)x, KJIT_F64, 1, shape),
              sum = kjit_make_tensor(&made.sum, KJIT_F64, 0, NULL),
              sorted = kjit_make_tensor(made.sorted_x, KJIT_F64, 1, shape);
  const kjit_operand of = kjit_operand_of(kjit_arg_tensor(&tensor)),
                     to_sum = kjit_operand_of(kjit_arg_tensor(&sum)),
                     to_sorted = kjit_operand_of(kjit_arg_tensor(&sorted));
  EXPECT(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  EXPECT(kjit_get_function(module, "op", &op) == KJIT_OK);
  EXPECT(kjit_get_function(module, "less", &less) == KJIT_OK);
  kjit_operator operator_ = kjit_operator_function(op);
  const kjit_arg one = kjit_arg_f64(1);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .initial = &one };
  made.reduced = kjit_reduce(context, &to_sum, &of, &operator_, &options);
  made.sorted = kjit_sort(context, &to_sorted, &of, less, NULL);
  return made;
}

static void expect(int has_compiler, const char *text, double constant, double sum, double first)
{
  open_context(has_compiler);
  kjit_module *module = parse(text), *changed;
  const kjit_arg value = kjit_arg_f64(constant);
  EXPECT(kjit_set_constant(module, "W", &value, &changed) == KJIT_OK);
  outcome made = use(changed);
  EXPECT(made.reduced == KJIT_OK && made.sum == sum);
  EXPECT(made.sorted == KJIT_OK && made.sorted_x[0] == first);
  EXPECT(!told);
  kjit_release_module(changed);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

static void expect_none(const char *text, double constant)
{
  open_context(0);
  kjit_module *module = parse(text), *changed;
  const kjit_arg value = kjit_arg_f64(constant);
  EXPECT(kjit_set_constant(module, "W", &value, &changed) == KJIT_OK);
  outcome made = use(changed);
  EXPECT(made.reduced == KJIT_ERROR_NO_COMPILER && made.sum == -1);
  EXPECT(made.sorted == KJIT_ERROR_NO_COMPILER);
  EXPECT(told == 2);
  kjit_release_module(changed);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

int main(int argc, char **argv)
{
  static const char times[] = "extern const W: f64\nfunc op(a, b) { return a * b * W }\n"
                              "func less(a, b) { return a * W < b * W }\n",
                    most[] = "extern const W: f64\nfunc op(a, b) { return max(a, b) + 0 * W }\n"
                             "func less(a, b) { return a > b and W == W }\n";
  directory = argc > 1 ? argv[1] : "";
  expect(1, times, 1, 24, 1);
  expect(0, times, 1, 24, 1);
  expect_none(times, -1);
  expect_none(most, 1);
  expect(1, times, -1, 24, 4);
  expect(1, most, 1, 4, 4);
  expect(0, most, 1, 4, 4);
  expect(0, times, -1, 24, 4);
  expect(0, times, 1, 24, 1);
  return 0;
}

/* Names with several meanings: structs with one name and different fields, in linked modules and in
 * the application; kernels and funcs that both linked modules have. Code of one is not taken from
 * the disk cache for the other, and the canonical text has the same meaning.
 * RUN: rm -rf %t && %programs/same_names %t
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *directory;
static kjit_context *context;

static void fail(const char *what, int line)
{
  char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "same_names.c:%d: %s\n%s", line, what, text ? text : "");
  exit(1);
}
#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

/* Opens a new context, as a new process would. */
static void open_context(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = directory };
  EXPECT(kjit_create_context(&config, &context) == KJIT_OK);
}

static kjit_module *parse(const char *text)
{
  kjit_module *module;
  EXPECT(kjit_parse_module(context, "same.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

/* Runs `k`, whose other arguments follow, and returns the first element of its result. */
static double run(kjit_module *module, const kjit_arg *more, size_t count)
{
  kjit_kernel *kernel;
  kjit_device *cpu;
  double result[1] = { 0 };
  const int64_t shape[] = { 1 };
  kjit_tensor tensor = kjit_make_tensor(result, KJIT_F64, 1, shape);
  kjit_arg arguments[8] = { kjit_arg_tensor(&tensor) };
  if (count) memcpy(arguments + 1, more, count * sizeof *more);
  EXPECT(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  EXPECT(kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = cpu, .grid = { 1 }, .block = { 1 }
  };
  EXPECT(kjit_launch(kernel, &config, arguments, count + 1) == KJIT_OK);
  return result[0];
}

/* Prints the canonical text of the module, parses it and runs the parsed module. */
static double run_text(kjit_module *module)
{
  char *text;
  EXPECT(kjit_copy_module_text(module, &text) == KJIT_OK);
  kjit_module *again = parse(text);
  double result = run(again, NULL, 0);
  kjit_free(context, text);
  kjit_release_module(again);
  return result;
}

static void expect_linked(const char *text, const char *const *libraries, double expected)
{
  open_context();
  kjit_module *module = parse(text);
  for (size_t i = 0; libraries[i]; i++) {
    kjit_module *library = parse(libraries[i]), *linked;
    EXPECT(kjit_link_module(module, library, &linked) == KJIT_OK);
    kjit_release_module(library);
    kjit_release_module(module);
    module = linked;
  }
  for (int i = 0; i < 2; i++) EXPECT(run(module, NULL, 0) == expected);
  EXPECT(run_text(module) == expected);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

static void test_linked_structs(void)
{
#define KERNEL(fields) \
  "struct P { " fields " }\nextern func f()\n" \
  "kernel k(r) { r[0] = P(3, 4).x * 100 + f() }\n"
#define LIBRARY(name, fields) "struct P { " fields " }\nfunc " name "() { return P(1, 2).x }\n"
  const char *const libraries[] = { LIBRARY("f", "x: f64; y: f64"), NULL }, *const others[] = {
    LIBRARY("f", "y: f64; x: f64"), NULL
  };
  expect_linked(KERNEL("x: i32; y: i32"), libraries, 301);
  expect_linked(KERNEL("y: i32; x: i32"), libraries, 401);
  expect_linked(KERNEL("x: i32; y: i32"), others, 302);
  expect_linked(KERNEL("x: f64; y: f64"), libraries, 301); /* one type */
  /* The texts differ only in which library declares which struct; the order is the same. */
  const char *sum = "extern func f()\nextern func g()\nkernel k(r) { r[0] = f() * 10 + g() }\n";
  const char *const two[] = { LIBRARY("f", "x: f64; y: f64"), LIBRARY("g", "y: f64; x: f64"),
                              NULL },
                    *const swapped[] = { LIBRARY("g", "x: f64; y: f64"),
                                         LIBRARY("f", "y: f64; x: f64"), NULL };
  expect_linked(sum, two, 12);
  expect_linked(sum, swapped, 21);
}

static void test_linked_funcs(void)
{
  const char *const library[] = { "func g() { return 2 }\nfunc f() { return g() }\n"
                                  "kernel k(r) { r[0] = 100 }\n",
                                  NULL };
  expect_linked("extern func f()\nfunc g() { return 1 }\nkernel k(r) { r[0] = f() * 10 + g() }\n",
                library, 21);
}

/* Two struct types of the application have one name, and the arguments have them in different
 * orders. */
static void expect_arguments(size_t last, double expected)
{
  const kjit_field x = { .name = "x", .type = KJIT_F64 }, y = { .name = "y", .type = KJIT_F64 },
                   fields[][2] = { { x, y }, { y, x } };
  double values[] = { 1, 2 };
  const int64_t shape[] = { 1 };
  kjit_type types[2];
  kjit_tensor tensors[3];
  kjit_arg arguments[3];
  open_context();
  for (size_t i = 0; i < 2; i++) types[i] = kjit_get_struct_type(context, "P", fields[i], 2, 0);
  EXPECT(types[0] != KJIT_VOID && types[1] != KJIT_VOID && types[0] != types[1]);
  for (size_t i = 0; i < 3; i++) {
    kjit_type type = types[i < 2 ? i : last];
    tensors[i] = kjit_make_tensor(values, KJIT_F64, 1, shape);
    arguments[i] = kjit_arg_elements(type, &tensors[i]);
  }
  kjit_module *module =
    parse("kernel k(r, a, b, c) { r[0] = a[0].x * 100 + b[0].x * 10 + c[0].x }\n");
  EXPECT(run(module, arguments, 3) == expected);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

int main(int argc, char **argv)
{
  directory = argc > 1 ? argv[1] : "";
  test_linked_structs();
  test_linked_funcs();
  expect_arguments(0, 121);
  expect_arguments(1, 122);
  return 0;
}

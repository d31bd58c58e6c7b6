/* A call of an extern func calls the function to which the func is bound, with the types of its
 * declaration. Other declarations with the same name have no effect on it. Each test links modules
 * in which several declarations have one name.
 * RUN: rm -rf %t && %programs/extern_bindings %t
 * RUN: rm -rf %t && %programs/extern_bindings %t child
 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *directory;
static bool is_in_child; /* the compiler runs in a child process */
static kjit_context *context;
static kjit_device *cpu;

static void fail(const char *what, int line)
{
  char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "extern_bindings.c:%d: %s\n%s", line, what, text ? text : "");
  exit(1);
}
#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static void open_context(const char *cache)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = cache };
  config.compile_in_child = is_in_child;
  EXPECT(kjit_create_context(&config, &context) == KJIT_OK);
  EXPECT(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
}

static void close_context(void)
{
  kjit_destroy_context(context);
  context = NULL;
}

static bool says(const char *text)
{
  char *message = kjit_copy_diagnostics_text(context);
  bool is_there = message && strstr(message, text);
  if (!is_there) fprintf(stderr, "expected: %s\n", text);
  kjit_free(context, message);
  return is_there;
}

typedef void (*code)(void);
static double plus1(double x) { return x + 1; }
static double times10(double x) { return x * 10; }
static double subtract(double x, double y) { return x - y; }
static int32_t times3(int32_t x) { return 3 * x; }
static double weighted(double *weights, double x, int32_t i) { return weights[i] * x; }

static kjit_module *parse(const char *text)
{
  kjit_module *module;
  EXPECT(kjit_parse_module(context, "t.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

/* Takes the module. */
static kjit_module *bind(kjit_module *module, const char *name, code function)
{
  kjit_module *bound;
  EXPECT(kjit_bind_extern(module, name, function, NULL, 0, &bound) == KJIT_OK);
  kjit_release_module(module);
  return bound;
}

static kjit_module *bind_ir(kjit_module *module, const char *name, const char *ir)
{
  kjit_module *bound;
  EXPECT(kjit_bind_extern(module, name, NULL, ir, strlen(ir), &bound) == KJIT_OK);
  kjit_release_module(module);
  return bound;
}

/* Takes both modules. */
static kjit_module *link(kjit_module *module, kjit_module *library)
{
  kjit_module *linked;
  EXPECT(kjit_link_module(module, library, &linked) == KJIT_OK);
  kjit_release_module(module);
  kjit_release_module(library);
  return linked;
}

static kjit_status launch(kjit_module *module, const char *name, double *result, int64_t count)
{
  kjit_kernel *kernel;
  kjit_tensor tensor = kjit_make_tensor(result, KJIT_F64, 1, &count);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = cpu, .grid = { 1 }, .block = { 1 }
  };
  EXPECT(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  return kjit_launch(kernel, &config, &argument, 1);
}

static void expect(kjit_module *module, const char *name, double a, double b)
{
  double result[2] = { 0 };
  EXPECT(launch(module, name, result, 2) == KJIT_OK);
  EXPECT(result[0] == a && result[1] == b);
}

static kjit_status compile(kjit_module *module, const char *name, const char *target,
                           kjit_stage stage, char **text)
{
  kjit_kernel *kernel;
  size_t size_bytes;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = target };
  EXPECT(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  return kjit_compile(kernel, "f64[:] C", &options, stage, (void **)text, &size_bytes);
}

#define LIBRARY "extern func f(x: f64) -> f64\nfunc g(x: f64) -> f64 { return f(x) }\n"
#define MAIN \
  "extern func f(x: f64) -> f64\nextern func g(x: f64) -> f64\n" \
  "kernel k(r) { r[0] = f(2.0)\n r[1] = g(2.0) }\n"

/* The text of the linked module has a separate name for each of them. */
static void test_text(void)
{
  open_context("");
  kjit_module *linked =
    link(bind(parse(MAIN), "f", (code)plus1), bind(parse(LIBRARY), "f", (code)times10));
  char *text;
  expect(linked, "k", 3, 20);
  EXPECT(kjit_copy_module_text(linked, &text) == KJIT_OK);
  kjit_module *again = bind(bind(parse(text), "f", (code)plus1), "f_2", (code)times10);
  expect(again, "k", 3, 20);
  kjit_free(context, text);
  kjit_release_module(again);
  /* the name finds the module's own func */
  linked = bind(linked, "f", (code)times10);
  expect(linked, "k", 20, 20);
  kjit_release_module(linked);
  close_context();
}

/* Links modules whose functions have other types, and links a module with itself. */
static void test_types(void)
{
  open_context("");
  kjit_module *library =
                bind(parse("extern func f(x: i32) -> i32\nfunc g(x) { return f(i32(x)) }\n"), "f",
                     (code)times3),
              *linked = link(bind(parse(MAIN), "f", (code)plus1), library), *twice;
  expect(linked, "k", 3, 6);
  EXPECT(kjit_link_module(linked, linked, &twice) == KJIT_OK);
  expect(twice, "k", 3, 6);
  kjit_release_module(twice);
  kjit_release_module(linked);
  linked = link(parse(MAIN), bind(bind(parse("extern func f(x: f64) -> f64\n"
                                             "extern func g(x: f64) -> f64\n"),
                                       "f", (code)plus1),
                                  "g", (code)plus1)); /* one function with two names */
  expect(linked, "k", 3, 3);
  kjit_release_module(linked);
  close_context();
}

/* Extern funcs with names that also belong to the kernel, a built-in, a C library function, or a
 * function of kjit. */
static void test_names(void)
{
  static const char *const names[] = { "run",
                                       "exp",
                                       "sqrt",
                                       "sinf",
                                       "sincos",
                                       "malloc",
                                       "free",
                                       "main",
                                       "memcpy",
                                       "memset",
                                       "vprintf",
                                       "printf",
                                       "exit",
                                       "kj_math_sinf",
                                       "kj_print_line",
                                       "kjit_function",
                                       "kjit_write_failure",
                                       "kjit_print_line",
                                       "__nv_sinf",
                                       "_ZGVdN8v_sinf",
                                       "reduce_all",
                                       "min",
                                       "operator_add",
                                       "x_at",
                                       "hosts_0",
                                       "bind_back",
                                       "k",
                                       "k_unchecked",
                                       "object",
                                       "data",
                                       "x" };
  open_context("");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char library[256], text[256];
    snprintf(library, sizeof library,
             "extern func %s(v: f64) -> f64\nfunc g(v: f64) { return %s(v) }\n", names[i],
             names[i]);
    snprintf(text, sizeof text,
             "extern func g(x: f64) -> f64\nconst data: f64[2] = {0.5, 2.0}\n"
             "kernel %s(r) { for i in range(len(r)) { r[i] = g(2.0) + data[i]\n"
             "    if sin(f32(r[i])) > 2 { raise \"no\" } } }\n",
             !strcmp(names[i], "data") ? "k" : names[i]);
    kjit_module *linked = link(parse(text), bind(parse(library), names[i], (code)plus1));
    expect(linked, kjit_get_kernel_name(linked, 0), 3.5, 5);
    kjit_release_module(linked);
  }
  close_context();
}

/* Unbound extern funcs with one name are bound or linked together. */
static void test_open(void)
{
  kjit_module *bound;
  open_context("");
  kjit_module *linked = bind(link(parse(MAIN), parse(LIBRARY)), "f", (code)times10);
  expect(linked, "k", 20, 20);
  kjit_release_module(linked);
  linked = link(link(parse(MAIN), parse(LIBRARY)), parse("func f(x) { return x - 1 }\n"));
  expect(linked, "k", 1, 1);
  kjit_release_module(linked);
  linked = link(bind(parse(MAIN), "f", (code)plus1), parse(LIBRARY));
  double result[2];
  EXPECT(launch(linked, "k", result, 2) == KJIT_ERROR_NAME && says("`f` has no function"));
  kjit_release_module(linked);
  linked = link(parse(MAIN), parse("extern func f(x: f64) -> i32\n"
                                   "func g(x: f64) -> f64 { return f(x) }\n"));
  EXPECT(kjit_bind_extern(linked, "f", (code)plus1, NULL, 0, &bound) == KJIT_ERROR_TYPE);
  EXPECT(says("two extern functions `f` with different types"));
  kjit_release_module(linked);
  close_context();
}

/* Tests linked modules whose extern constants have the same name. */
static void test_constants(void)
{
  open_context("");
  kjit_module *set, *linked = link(parse("extern const N: f64\nextern func g()\n"
                                         "kernel k(r) { r[0] = N\n r[1] = g() }\n"),
                                   parse("extern const N: f32\nfunc g() { return N * 2 }\n"));
  kjit_arg three = kjit_arg_number(3);
  EXPECT(kjit_set_constant(linked, "N", &three, &set) == KJIT_OK);
  expect(set, "k", 3, 6);
  kjit_release_module(set);
  kjit_release_module(linked);
  close_context();
}

/* With code from the disk cache or a blob, each call calls the function of its own module. */
static void test_cached(void)
{
  static const code functions[] = { (code)plus1, (code)times10 };
  static const double values[] = { 3, 20 };
  void *blob = NULL;
  size_t blob_bytes = 0;
  for (int round = 0; round < 6; round++) {
    int own = round & 1;
    open_context(round < 3 ? directory : "");
    if (blob) EXPECT(kjit_import_code(context, blob, blob_bytes) == KJIT_OK);
    kjit_module *linked =
      link(bind(parse(MAIN), "f", functions[own]), bind(parse(LIBRARY), "f", functions[1 - own]));
    expect(linked, "k", values[own], values[1 - own]);
    kjit_statistics statistics = { .size_bytes = sizeof statistics };
    kjit_get_statistics(context, &statistics);
    EXPECT(statistics.compilations == (round == 0 || round == 3));
    if (round == 3) {
      void *made;
      EXPECT(kjit_export_code(linked, &made, &blob_bytes) == KJIT_OK);
      blob = memcpy(malloc(blob_bytes), made, blob_bytes);
      kjit_free(context, made);
    }
    kjit_release_module(linked);
    close_context();
  }
  free(blob);
}

/* Tests that two different modules do not get the same key. Both parts of the algorithm have an
 * `f`, and a module with different names has the same canonical text as one in which two funcs have
 * one name. */
static double reduce(kjit_module *elements, kjit_module *operators)
{
  kjit_function *at, *add;
  EXPECT(kjit_get_function(elements, "at", &at) == KJIT_OK);
  EXPECT(kjit_get_function(operators, "add", &add) == KJIT_OK);
  double x[] = { 1, 2 }, result[1] = { 0 };
  int64_t n = 2, one = 1;
  kjit_tensor from = kjit_make_tensor(x, KJIT_F64, 1, &n),
              to = kjit_make_tensor(result, KJIT_F64, 1, &one);
  kjit_arg array = kjit_arg_tensor(&from);
  kjit_operand operand = kjit_operand_function(at, &array, 1, &n, 1),
               output = kjit_operand_of(kjit_arg_tensor(&to));
  kjit_operator operator_ = kjit_operator_function(add);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device = cpu };
  EXPECT(kjit_reduce(context, &output, &operand, &operator_, &options) == KJIT_OK);
  kjit_release_module(elements);
  kjit_release_module(operators);
  return result[0];
}

static void test_algorithms(void)
{
#define AT(f) "extern func " f "(x: f64) -> f64\nfunc at(i, x) { return " f "(x[i]) }\n"
#define ADD(f) "extern func " f "(x: f64) -> f64\nfunc add(x, y) { return " f "(x) + y }\n"
  for (int round = 0; round < 2; round++) {
    open_context(round ? directory : "");
    EXPECT(reduce(bind(parse(AT("run")), "run", (code)times10),
                  bind(parse(ADD("run")), "run", (code)plus1)) == 31);
    close_context();
    open_context(round ? directory : "");
    EXPECT(reduce(bind(parse(AT("run")), "run", (code)plus1),
                  bind(parse(ADD("run")), "run", (code)times10)) == 23);
    close_context();
  }
  open_context("");
  EXPECT(reduce(bind(parse(AT("sinf")), "sinf", (code)times10),
                bind(parse(ADD("malloc")), "malloc", (code)plus1)) == 31);
  /* the operator is an extern func itself */
  EXPECT(reduce(bind(parse("extern func run(x: f64) -> f64\nfunc at(i, x) { return run(x[i]) }\n"),
                     "run", (code)times10),
                bind(parse("extern func add(x: f64, y: f64) -> f64\n"), "add", (code)subtract)) ==
         -10);
  close_context();
  /* an `f` of a library is printed as f_2, and there is also a func whose real name is f_2 */
#define TWO(first, second) \
  "extern func " first "(x: f64) -> f64\nextern func " second "(x: f64) -> f64\n" \
  "func at(i, x) { return " second "(x[i]) * 100 + " first "(x[i]) }\n"
  open_context(directory);
  kjit_module *named = bind(bind(parse(TWO("f", "f_2")), "f", (code)plus1), "f_2", (code)times10);
  EXPECT(reduce(named, parse("func add(x, y) { return x + y }\n")) == 3005);
  close_context();
  open_context(directory);
  const char *own = "extern func f(x: f64) -> f64\nextern func g(x: f64) -> f64\n"
                    "func at(i, x) { return g(x[i]) * 100 + f(x[i]) }\n";
  kjit_module *same_name =
    link(bind(parse(own), "f", (code)plus1), bind(parse(LIBRARY), "f", (code)times10));
  EXPECT(reduce(same_name, parse("func add(x, y) { return x + y }\n")) == 3005);
  close_context();
}

/* Pointers to data of the application, calls of funcs, and C functions that call funcs of
 * kernels. */
static double (*inner)(double);
static double calls_inner(double x) { return inner(x) + 0.5; }

static void test_functions(void)
{
  open_context("");
  kjit_module *linked =
    link(bind(parse(MAIN "func h(x: f64) { return f(x) * 1000 + g(x) }\n"), "f", (code)plus1),
         bind(parse(LIBRARY), "f", (code)times10));
  kjit_function *h;
  kjit_arg two = kjit_arg_f64(2), result;
  void (*pointer)(void);
  EXPECT(kjit_get_function(linked, "h", &h) == KJIT_OK);
  EXPECT(kjit_call_function(h, &two, 1, &result) == KJIT_OK && result.value.f64 == 3020);
  EXPECT(kjit_get_function_pointer(h, "f64(f64)", &pointer) == KJIT_OK);
  inner = (double (*)(double))pointer;
  kjit_module *outer = bind(parse("extern func f(x: f64) -> f64\n"
                                  "kernel f_(r) { r[0] = f(2.0)\n r[1] = f(0.0) }\n"),
                            "f", (code)calls_inner);
  expect(outer, "f_", 3020.5, 1000.5);
  kjit_release_module(outer);
  kjit_release_module(linked);
  outer = bind(parse("extern func f(data: f64*, x: f64, i: i32) -> f64\n"
                     "kernel f_(w: f64[:]) { let a = f(pointer(w[0]), 10.0, 1)\n w[0] = a }\n"),
               "f", (code)weighted);
  double weights[] = { 2, 3 };
  EXPECT(launch(outer, "f_", weights, 2) == KJIT_OK && weights[0] == 30);
  kjit_release_module(outer);
  close_context();
}

/* ---- code for GPUs ---- */

/* All names are equal, but the computed results differ. */
#define IR(type, helper, op, number) \
  "@number = constant " type " " number "\n" \
  "define " type " @" helper "(" type " %x) {\n  %n = load " type ", ptr @number\n" \
  "  %r = " op " " type " %x, %n\n  ret " type " %r\n}\n" \
  "define " type " @f(" type " %x) {\n  %r = call " type " @" helper "(" type " %x)\n" \
  "  ret " type " %r\n}\n"

static void expect_ptx(kjit_module *module, const char *name, const char *const *lines)
{
  char *ptx;
  EXPECT(compile(module, name, "sm_80", KJIT_STAGE_PTX, &ptx) == KJIT_OK);
  for (; *lines; lines++)
    if (!strstr(ptx, *lines)) fail(*lines, __LINE__);
  kjit_free(context, ptx);
  kjit_release_module(module);
}

static void test_ir(void)
{
  /* the bits of two f64: 2.0 + 3.0, and 2.0 * 4.0 or 2 << 2; the compiler replaces all calls by
   * their results */
  const char *const both[] = { "4617315517961601024", "4620693217682128896", NULL };
  char *text;
  open_context("");
  expect_ptx(link(bind_ir(parse(MAIN), "f", IR("double", "helper", "fadd", "3.0")),
                  bind_ir(parse(LIBRARY), "f", IR("double", "helper", "fmul", "4.0"))),
             "k", both);
  /* a helper with the name of the kernel, and a helper with the name of a library function */
  expect_ptx(link(bind_ir(parse(MAIN), "f", IR("double", "k", "fadd", "3.0")),
                  bind_ir(parse(LIBRARY), "f", IR("double", "__nv_sin", "fmul", "4.0"))),
             "k", both);
  expect_ptx(link(bind_ir(parse(MAIN), "f", IR("double", "helper", "fadd", "3.0")),
                  bind_ir(parse("extern func f(x: i32) -> i32\n"
                                "func g(x) { return f(i32(x)) }\n"),
                          "f", IR("i32", "helper", "shl", "2"))),
             "k", both);
  kjit_module *linked = link(bind_ir(parse(MAIN), "f", IR("double", "helper", "fadd", "3.0")),
                             bind_ir(parse("extern func f(x: i32) -> i32\n"
                                           "func g(x) { return f(i32(x)) }\n"),
                                     "f", IR("double", "helper", "fadd", "3.0")));
  EXPECT(compile(linked, "k", "sm_80", KJIT_STAGE_PTX, &text) == KJIT_ERROR_TYPE);
  EXPECT(says(
    "two extern functions `f` are bound to the same function, but declared with different types"));
  kjit_release_module(linked);
  close_context();
}

/* ---- code for other programs, which find a function by its name ---- */

static void expect_refused(kjit_module *module, const char *kernel, const char *message)
{
  static const struct {
    const char *target;
    kjit_stage stage;
  } kinds[] = { { "cpu", KJIT_STAGE_OBJECT }, { "sm_80", KJIT_STAGE_PTX } };
  char *text;
  for (size_t i = 0; i < 2; i++) {
    EXPECT(compile(module, kernel, kinds[i].target, kinds[i].stage, &text) != KJIT_OK);
    EXPECT(says(message));
  }
  kjit_release_module(module);
}

static void test_ahead(void)
{
  char *text;
  open_context("");
  expect_refused(link(bind(parse(MAIN), "f", (code)plus1),
                      bind(parse(LIBRARY), "f", (code)times10)),
                 "k", "two extern functions `f` are bound to different functions");
  expect_refused(link(parse(MAIN), parse("extern func f(x: i32) -> i32\n"
                                         "func g(x) { return f(i32(x)) }\n")),
                 "k", "two extern functions `f` are bound to the same function, but declared with");
  expect_refused(link(parse("extern func g(x: f64) -> f64\nkernel f(r) { r[0] = g(1.0) }\n"),
                      bind(parse(LIBRARY), "f", (code)plus1)),
                 "f", "extern function `f` has the same name as the kernel that is compiled");
  kjit_module *linked = link(parse(MAIN), parse(LIBRARY));
  EXPECT(compile(linked, "k", "sm_80", KJIT_STAGE_PTX, &text) == KJIT_OK);
  EXPECT(strstr(text, ".extern .func  (.param .b64 func_retval0) f\n") && !strstr(text, "$extern"));
  kjit_free(context, text);
  kjit_release_module(linked);
  close_context();
}

/* Creates a module with the builder. */
static kjit_module *build(const char *name, double factor, code function)
{
  kjit_builder *b;
  kjit_module *module;
  EXPECT(kjit_create_builder(context, "built", &b) == KJIT_OK);
  kjit_build_begin_extern(b, "f", KJIT_F64);
  kjit_build_parameter(b, "x", KJIT_F64);
  kjit_build_end(b);
  kjit_build_begin_function(b, name, KJIT_F64);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_F64), call = kjit_build_call(b, "f", &x, 1);
  kjit_build_return(b, kjit_build_binary(b, KJIT_OP_MUL, call, kjit_build_float(b, factor)));
  kjit_build_end(b);
  EXPECT(kjit_finish_builder(b, &module) == KJIT_OK);
  kjit_destroy_builder(b);
  return bind(module, "f", function);
}

static void test_built(void)
{
  open_context("");
  kjit_module *linked =
    link(link(parse("extern func a(x: f64) -> f64\nextern func b(x: f64) -> f64\n"
                    "kernel f(r) { r[0] = a(2.0)\n r[1] = b(2.0) }\n"),
              build("a", 2, (code)plus1)),
         build("b", 1, (code)times10));
  expect(linked, "f", 6, 20);
  kjit_release_module(linked);
  close_context();
}

int main(int argc, char **argv)
{
  directory = argc > 1 ? argv[1] : "";
  is_in_child = argc > 2 && !strcmp(argv[2], "child");
  test_text();
  test_types();
  test_names();
  test_open();
  test_constants();
  test_cached();
  test_algorithms();
  test_functions();
  test_ir();
  test_ahead();
  test_built();
  return 0;
}

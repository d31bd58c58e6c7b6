/* Errors mark their phrases in the terms of the kernel IR or of the C API, so that a front end can
 * replace them. Each row of phrases.def comes from a real error, in this process and from a child
 * process that compiles. A program's text cannot imitate the mark of a phrase.
 * RUN: env KJIT_TEST_COMPILER=%libdir/libkjit-compiler.so %programs/phrases
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static kjit_context *context;
static int seen[KJIT_PHRASE_COUNT];

static void fail(const char *what, int line)
{
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "line %d: %s\n%s", line, what, text ? text : "");
  exit(1);
}

typedef struct row {
  kjit_phrase_code code;
  const char *text, *argument; /* of the phrase */
  const char *signature, *target;
  const char *source; /* source whose kernel is `k` */
} row;

#define LOOP "func f(x, n: i32) {\n  var s = x\n  for i in range(n) { s = s * s }\n  return s\n}\n"
#define LARGE \
  "func f(x) {\n  var s = x\n  for i in range(9000) { s = s * s }\n  return s\n}\n" \
  "kernel k(x) { x[0] = grad(f)(x[1]) }"

static const row rows[] = {
  { KJIT_PHRASE_RESULT_TYPE, "`func f(...) -> i64 { ... }`", "f", "i32[:] C", "cpu",
    "func f(n) { return f(n - 1) }\nkernel k(r) { r[0] = f(3) }" },
  { KJIT_PHRASE_LOCAL_ARRAY, "a `local` array", "", "i32[:] C", "cpu",
    "func f(n, t) { return f(n - 1, (t, t)) }\nkernel k(r) { r[0] = f(r[0], (1, 2)) }" },
  { KJIT_PHRASE_TUPLE_LOOP, "`for v in t` or `for i in range(len(t)) @static`", "", "i32[:] C",
    "cpu", "kernel k(r) {\n  let t = (1i32, 2.5, true)\n  r[0] = i32(t[r[1]])\n}" },
  { KJIT_PHRASE_CONDITIONAL, "`?:`", "", "i32[:] C", "cpu",
    "kernel k(r) {\n  shared s: i32[4]\n  let t = r[0] > 1 ? r : s\n  t[0] = 1\n}" },
  { KJIT_PHRASE_FUNCTION_PARAMETER, "so it must be a function: declare the parameter as `y: func`",
    "y", NULL, NULL, "kernel k(r, y) { r[0] = y(1) }" },
  { KJIT_PHRASE_FIRST_VALUE, "declare it with a type, such as `var a: f32`", "a", "f32[:] C", "cpu",
    "kernel k(r) {\n  var a\n  a = a + 1\n  r[0] = a\n}" },
  { KJIT_PHRASE_VARIABLE_TYPE, "`var a: i64 = ...`", "a", "f32[:] C, u64, i64", "cpu",
    "kernel k(r, u, i) {\n  var a = 1\n  a = u\n  a = i\n  r[0] = f32(a)\n}" },
  { KJIT_PHRASE_STRING_USES, "`assert`, `raise` and `print`", "", NULL, NULL,
    "kernel k(r) { r[0] = \"text\" }" },
  { KJIT_PHRASE_BLOCK_SIZE, "@block", "", "i32[:] C", "cpu",
    "func f(r) {\n  shared s: i32[blockDim.x]\n  s[0] = 1\n  r[0] = s[0]\n}\nkernel k(r) { f(r) "
    "}" },
  { KJIT_PHRASE_TARGET_CONDITION, ", or put it under `if target == gpu`", "", "i32[:] C", "cpu",
    "kernel k(r) { if r[0] == 1 { trap() } }" },
  { KJIT_PHRASE_LOOP_BOUND, "write `@most(n)` after its head", "", "f64[:] C", "cpu",
    LOOP "kernel k(x) { x[0] = grad(f)(x[1], 3) }" },
  { KJIT_PHRASE_SMALLER_BOUND, "`@most(n)`", "", "f64[:] C", "cpu", LARGE },
  { KJIT_PHRASE_DERIVATIVE_RULE, "`func f(x) @vjp(g)`", "vjp", "f64[:] C", "cpu",
    "extern func f(x: f64) -> f64\nfunc h(x) { return f(x) }\nkernel k(x) { x[0] = grad(h)(x[1]) "
    "}" },
  { KJIT_PHRASE_VALUE_TYPE, "(f64, i64)", "(f64, i64)", "f64[:] C", "cpu",
    "kernel k(x) { let b: bool = (x[0], 1i64) }" },
};

static void expect_phrase(kjit_phrase_code code, const char *text, const char *argument)
{
  const kjit_diagnostic *error = kjit_get_diagnostic(context, 0);
  EXPECT(error && error->phrase_count);
  for (size_t i = 0; i < error->phrase_count; i++) {
    const kjit_phrase *phrase = &error->phrases[i];
    if (phrase->code != code) continue;
    const char *found = error->message + phrase->first;
    EXPECT(phrase->size_bytes == strlen(text) && !strncmp(found, text, phrase->size_bytes));
    EXPECT(phrase->argument_bytes == strlen(argument) &&
           !strncmp(error->message + phrase->argument_first, argument, phrase->argument_bytes));
    EXPECT(kjit_get_phrase_name(code) && !strpbrk(error->message, "\1\2\3\4\5"));
    seen[code] = 1;
    return;
  }
  EXPECT(!"the phrase");
}

static void test_row(const row *row)
{
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = row->target };
  void *code = NULL;
  size_t size;
  kjit_status status =
    kjit_parse_module(context, "test.kir", row->source, strlen(row->source), &module);
  if (row->signature) {
    EXPECT(status == KJIT_OK && kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
    status = kjit_compile(kernel, row->signature, &options, KJIT_STAGE_OBJECT, &code, &size);
  }
  EXPECT(status != KJIT_OK);
  expect_phrase(row->code, row->text, row->argument);
  kjit_release_module(module);
}

static kjit_tensor empty_tensor(float *data)
{
  static const int64_t extent = 0;
  return kjit_make_tensor(data, KJIT_F32, 1, &extent);
}

static void test_calls(void)
{
  float data[1] = { 0 }, reduced = 0;
  kjit_tensor x = empty_tensor(data), result = kjit_make_tensor(&reduced, KJIT_F32, 0, NULL);
  kjit_operand from = kjit_operand_tensor(&x), to = kjit_operand_tensor(&result);
  kjit_operator max = kjit_operator_named("max");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  EXPECT(kjit_reduce(context, &to, &from, &max, &options) != KJIT_OK);
  expect_phrase(KJIT_PHRASE_CALL, "kjit_reduce", "reduce");
  expect_phrase(KJIT_PHRASE_OPTION, "options.initial", "initial");
}

static void test_failed_thread(void)
{
  static const char text[] = "kernel k(r) { if threadIdx.x == 2 { raise \"no\" } }";
  int32_t data[2] = { 0 };
  const int64_t extent = 2;
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  kjit_tensor r = kjit_make_tensor(data, KJIT_I32, 1, &extent);
  const kjit_arg argument = kjit_arg_tensor(&r);
  kjit_launch_config launch = { .size_bytes = sizeof launch, .grid = { 1 }, .block = { 4 } };
  EXPECT(kjit_parse_module(context, "test.kir", text, strlen(text), &module) == KJIT_OK);
  EXPECT(kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
  EXPECT(kjit_launch(kernel, &launch, &argument, 1) == KJIT_ERROR_KERNEL);
  expect_phrase(KJIT_PHRASE_FAILED_THREAD, "kernel `k`, block (0, 0, 0), thread (2, 0, 0)", "");
  kjit_release_module(module);
}

/* A name of an operator with the bytes of a mark adds no phrase. */
static void test_imitation(void)
{
  float data[1] = { 0 }, reduced = 0;
  kjit_tensor x = empty_tensor(data);
  kjit_tensor result = kjit_make_tensor(&reduced, KJIT_F32, 0, NULL);
  kjit_operand from = kjit_operand_tensor(&x), to = kjit_operand_tensor(&result);
  kjit_operator odd = kjit_operator_named("\1OPTION\2options.\4axes\5\3");
  EXPECT(kjit_reduce(context, &to, &from, &odd, NULL) != KJIT_OK);
  const kjit_diagnostic *error = kjit_get_diagnostic(context, 0);
  EXPECT(error->phrase_count == 1 && error->phrases[0].code == KJIT_PHRASE_CALL);
  EXPECT(strstr(error->message, "?OPTION?options.?axes??"));
}

static void test_all(int in_child)
{
  kjit_config config = { .size_bytes = sizeof config,
                         .compiler_path = getenv("KJIT_TEST_COMPILER"),
                         .cache_directory = "",
                         .compile_in_child = in_child };
  EXPECT(kjit_create_context(&config, &context) == KJIT_OK);
  memset(seen, 0, sizeof seen);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) test_row(&rows[i]);
  test_calls();
  test_failed_thread();
  test_imitation();
  for (int code = KJIT_PHRASE_NONE + 1; code < KJIT_PHRASE_COUNT; code++) {
    if (!seen[code]) fprintf(stderr, "%s\n", kjit_get_phrase_name((kjit_phrase_code)code));
    EXPECT(seen[code]);
  }
  EXPECT(kjit_destroy_context(context) == KJIT_OK);
  context = NULL;
}

int main(void)
{
  EXPECT(!kjit_get_phrase_name(KJIT_PHRASE_COUNT));
  test_all(0);
  if (getenv("KJIT_TEST_COMPILER")) test_all(1);
  return 0;
}

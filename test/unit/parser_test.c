/* Tests of the parser and the printer, also with texts that the verifier rejects. The printed text
 * of each construct must equal its source. The tests cover literals, newlines, limits, types,
 * accesses, and the diagnostics of a context. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/module.h"

static ki_types *types;

static int set_up(void **state)
{
  (void)state;
  types = ki_create_types();
  return types ? 0 : -1;
}

static int tear_down(void **state)
{
  (void)state;
  ki_destroy_types(types);
  return 0;
}

/* Parses without verifying and returns the printed text. Returns NULL after an error and stores the
 * first message in *message. */
static char *read_and_print(const char *text, char **message)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_module *module = NULL;
  kj_buffer buffer = { 0 };
  if (ki_read_module(types, "test", text, strlen(text), &diagnostics, &module) == KJIT_OK)
    ki_print_module(module, &buffer);
  else if (message) *message = strdup(diagnostics.items[0].message);
  bool failed = !module;
  ki_destroy_module(module);
  kj_free_diagnostics(&diagnostics);
  return failed ? NULL : kj_take_text(&buffer);
}

static void expect_print(const char *text, const char *expected)
{
  char *message = NULL, *first = read_and_print(text, &message);
  if (!first) fail_msg("%s: %s", text, message);
  assert_string_equal(first, expected);
  char *second = read_and_print(first, NULL);
  assert_non_null(second);
  assert_string_equal(second, first);
  free(first);
  free(second);
}

static void expect_failure(const char *text, const char *part)
{
  char *message = NULL, *printed = read_and_print(text, &message);
  if (printed) fail_msg("parsed: %s", printed);
  if (!strstr(message, part)) fail_msg("expected \"%s\" in \"%s\"", part, message);
  free(message);
}

/* One expression, printed. */
static void expect_expr(const char *text, const char *expected)
{
  char *source = NULL, *wanted = NULL;
  assert_true(asprintf(&source, "func f(a, b, c, d) { return %s }", text) > 0);
  assert_true(asprintf(&wanted, "func f(a, b, c, d) {\n  return %s\n}\n", expected) > 0);
  expect_print(source, wanted);
  free(source);
  free(wanted);
}

static void precedence(void **state)
{
  (void)state;
  expect_expr("a+b*c", "a + b * c");
  expect_expr("(a+b)*c", "(a + b) * c");
  expect_expr("a-(b-c)", "a - (b - c)");
  expect_expr("(a-b)-c", "a - b - c");
  expect_expr("a**b**c", "a ** b ** c");
  expect_expr("(a**b)**c", "(a ** b) ** c");
  expect_expr("-a**b", "-a ** b");
  expect_expr("(-a)**b", "(-a) ** b");
  expect_expr("a**-b", "a ** -b");
  expect_expr("- -a", "--a");
  expect_expr("not a and b or c", "not a and b or c");
  expect_expr("not (a and (b or c))", "not (a and (b or c))");
  expect_expr("(a<b)==(c<d)", "(a < b) == (c < d)");
  expect_expr("(not a)<b", "(not a) < b");
  expect_expr("a?b:c?d:a", "a ? b : c ? d : a");
  expect_expr("(a?b:c)?d:a", "(a ? b : c) ? d : a");
  expect_expr("(a?b:c)+d", "(a ? b : c) + d");
  expect_expr("a|b^c&d<<1", "a | b ^ c & d << 1");
  expect_expr("((a|b)^c)&d", "((a | b) ^ c) & d");
  expect_expr("(a,)", "(a,)");
  expect_expr("a, b", "a, b");
  expect_expr("((a, b), c)", "(a, b), c");
  expect_expr("a[b,c][d](a).x.y", "a[b, c][d](a).x.y");
  expect_expr("(a+b)[c]", "(a + b)[c]");
  expect_expr("(5).x", "(5).x");
  expect_expr("a[1:, :2, ::3, :, (b ? c : d):2]", "a[1:, :2, ::3, :, (b ? c : d):2]");
  expect_expr("\"a\\n\\\"\\\\\"", "\"a\\n\\\"\\\\\"");
}

static void numbers(void **state)
{
  (void)state;
  expect_expr("0xff + 0b101 + 1_000", "255 + 5 + 1000");
  expect_expr("1. + .5 + 1e-3 + 1e3", "1.0 + 0.5 + 0.001 + 1000.0");
  expect_expr("2.5f32 + 7u64 + 1bf16 + 0bf16", "2.5f32 + 7u64 + 1.0bf16 + 0.0bf16");
  expect_expr("18446744073709551615", "18446744073709551615");
  expect_expr("-9223372036854775808i64", "-9223372036854775808i64");
  expect_expr("0.1f32 + 3.4028235e38f32 + 1.4e-45f32", "0.1f32 + 3.4028235e+38f32 + 1e-45f32");
  expect_expr("5e-324 + 1.7976931348623157e308", "5e-324 + 1.7976931348623157e+308");
  expect_failure("func f() { return 128i8 }", "128 is too large for i8");
  expect_failure("func f() { return -129i8 }", "is too large for i8");
  expect_failure("func f() { return -(128i8) }", "is too large for i8");
  expect_failure("func f() { return -(1 + 128i8) }", "is too large for i8");
  expect_failure("func f() { return 256u8 }", "is too large for u8");
  expect_failure("func f() { return 18446744073709551616 }", "at most 64 bits");
  expect_failure("func f() { return 1e309 }", "too large for f64");
  expect_failure("func f() { return 1e39f32 }", "too large for f32");
  expect_failure("func f() { return 65520f16 }", "too large for f16");
  expect_failure("func f() { return 010 }", "octal");
  expect_failure("func f() { return 0x }", "suffix");
  expect_failure("func f() { return 1.5i32 }", "cannot have an integer type");
  expect_failure("func f() { return 1__0 }", "suffix");
}

static void numbers_in_any_locale(void **state)
{
  char *old = strdup(setlocale(LC_NUMERIC, NULL));
  const char *comma[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
  for (size_t i = 0; i < sizeof comma / sizeof *comma; i++)
    if (setlocale(LC_NUMERIC, comma[i])) break;
  numbers(state);
  setlocale(LC_NUMERIC, old);
  free(old);
}

static void newlines(void **state)
{
  (void)state;
  expect_print(
    "func f(a,\n  b\n)\n{\n\n  let x = a +\n    b\n  let y = (a\n    + b)\n  let z = a[\n 1\n ,\n "
    "2 ]; x()\n  return\n}\n",
    "func f(a, b) {\n  let x = a + b\n  let y = a + b\n  let z = a[1, 2]\n  x()\n  return\n}\n");
  expect_print("func f(a) { if a { a() }\n\n# comment\n else { a() } }",
               "func f(a) {\n  if a {\n    a()\n  } else {\n    a()\n  }\n}\n");
  expect_print("func f(a) {\r\n  a()\r\n}\r\n", "func f(a) {\n  a()\n}\n");
  expect_print("\xef\xbb\xbf"
               "func f() { }",
               "func f() {\n}\n");
  expect_print("const A = {\n  1,\n  2\n}\nconst B = 3", "const A = { 1, 2 }\nconst B = 3\n");
  expect_print("", "");
  expect_failure("func f(a) { a\n(1) }", "this statement has no effect");
  expect_failure("func f(a) { a() a() }", "expected the end of the statement");
  expect_failure("func f() { } func g() { }", "expected the end of the line");
}

static void everything(void **state)
{
  (void)state;
  static const char text[] =
    "import \"lib.kir\"\n\n"
    "extern func host(x: f32, y: f32*) -> f32\n\n"
    "extern const TABLE: f32[:]\n\n"
    "struct S @packed {\n  a: i32\n  b: f32[4]\n  c: (i32, f32)\n  d: S*[:]\n}\n\n"
    "const A = 1\n"
    "const C: f32[2, 2] = { { 1, 2 }, { 3.0, -4 } }\n\n"
    "func f(op: func, x, const N = 3, y: dtype(x)[:, :] F) -> (f32, i32) @inline {\n"
    "  let a, b = grid(2)\n"
    "  var z: f64 = 1\n"
    "  shared s: f32[16, N + 1] @align(16)\n"
    "  local l: dtype(x)[4]\n"
    "  for i, j in grid_range(len(x), 3) {\n    continue\n  }\n"
    "  for k in range(0, 10, 2) @unroll(4) {\n    break\n  }\n"
    "  while not z > 3 {\n    z **= 2\n    z //= 3\n  }\n"
    "  if a == 1 {\n    return 1, 2\n  } else if b {\n  } else {\n    raise \"x\"\n  }\n"
    "  a, b = b, a\n"
    "  x[0].y = (a, b)\n"
    "  assert z, \"msg\"\n"
    "  assert z\n"
    "  print(\"hi\", a)\n"
    "  let w = x[]\n"
    "}\n\n"
    "kernel k(x: const f32[:, :] C, y: f32[], z: const f32*, s: S) @block(16, 16) "
    "@grid(ceil_div(x.shape[0], 16)) {\n}\n";
  expect_print(text, text);
}

static char *repeat(const char *before, const char *middle, int count, const char *after)
{
  size_t length = strlen(middle);
  char *text = malloc(strlen(before) + length * (size_t)count + strlen(after) + 1),
       *to = stpcpy(text, before);
  for (int i = 0; i < count; i++) to = stpcpy(to, middle);
  strcpy(to, after);
  return text;
}

static void expect_limit(const char *before, const char *middle, const char *after)
{
  char *text = repeat(before, middle, 100000, after);
  expect_failure(text, "levels");
  free(text);
}

static void limits(void **state)
{
  (void)state;
  expect_limit("func f(a) { return ", "(", "");
  expect_limit("func f(a) { return ", "-", "a }");
  expect_limit("func f(a) { return ", "not ", "a }");
  expect_limit("func f(a) { return a", " + a", " }");
  expect_limit("func f(a) { return a", " ** a", " }");
  expect_limit("func f(a) { return ", "a ? a : ", "a }");
  expect_limit("func f(a) { return a", "[0]", " }");
  expect_limit("func f(a) { return a", ".x", " }");
  expect_limit("func f(a) { ", "if a { ", "");
  expect_limit("func f(a) { if a { }", " else if a { }", " }");
  expect_limit("func f(a: ", "(", "");
  expect_limit("func f(a: f32", "*", ") { }");
  expect_limit("const A = ", "{ ", "");
}

static void bytes(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  kjit_module *module = NULL;
  assert_int_equal(ki_read_module(types, "test", "func f() { }\n \0", 15, &diagnostics, &module),
                   KJIT_ERROR_SYNTAX);
  assert_int_equal(diagnostics.items[0].line, 2);
  assert_int_equal(diagnostics.items[0].column, 2);
  kj_free_diagnostics(&diagnostics);
  expect_failure("func f() { } # \xff", "not valid UTF-8");
  expect_failure("func f() { } # \xed\xa0\x80", "not valid UTF-8");
  expect_failure("func f() { let \xc3\xa9 = 1 }", "unexpected character `\xc3\xa9`");
}

/* ---- types ---- */

static kjit_type parse_type(const char *text)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_type type = KJIT_ANY;
  ki_parse_type(types, NULL, text, &diagnostics, &type);
  kj_free_diagnostics(&diagnostics);
  return type;
}

static void expect_type(const char *text, const char *expected)
{
  kj_buffer buffer = { 0 };
  ki_print_type(types, parse_type(text), &buffer);
  char *printed = kj_take_text(&buffer);
  assert_string_equal(printed, expected);
  assert_int_equal(parse_type(printed), parse_type(text));
  free(printed);
}

static void type_texts(void **state)
{
  (void)state;
  expect_type("f32", "f32");
  expect_type("index", "i64");
  expect_type("f32[:]", "f32[:]");
  expect_type("f32[:,:]C", "f32[:, :] C");
  expect_type("f32[:, ::1]", "f32[:, :] C");
  expect_type("f32[::1, :]", "f32[:, :] F");
  expect_type("f32[:] F", "f32[:] C");
  expect_type("const u8[:, :] F", "const u8[:, :] F");
  expect_type("f32[]", "f32[]");
  expect_type("(f32, (bool, i8))", "(f32, (bool, i8))");
  expect_type("(f32)", "(f32)");
  expect_type("f32*", "f32*");
  expect_type("const f32x4*", "const f32x4*");
  expect_type("f32**[:]", "f32**[:]");
  expect_type("vector(f32, 4)", "f32x4");
  expect_type("const vector(i8, 16)*", "const i8x16*");
  expect_type("(vector(bool, 2)[:, :] C, vector(f16, 3))", "(boolx2[:, :] C, f16x3)");
  const char *wrong[] = { "",
                          "f33",
                          "f32[",
                          "f32[:]]",
                          "f32[16]",
                          "f32[:][:]",
                          "f32[:]*",
                          "Unknown",
                          "Unknown*",
                          "dtype(x)",
                          "vector(f32, 5)",
                          "vector(c64, 2)",
                          "vector(f32x2, 2)",
                          "vector(f32[:], 2)",
                          "vector(dtype(x), 2)",
                          "vector(f32, 2 + 2)",
                          "vector(f32, 4294967298)",
                          "vector(f32)",
                          "vector(f32, 4, 4)",
                          "vector",
                          "const f32",
                          "func",
                          "f32[:,:,:,:,:,:,:,:,:]",
                          "f32[:, ::1, :]",
                          "f32 x" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(parse_type(wrong[i]), KJIT_ANY);
}

static void many_types(void **state)
{
  (void)state;
  kjit_type made[5000];
  for (uint32_t i = 0; i < 5000; i++)
    made[i] =
      ki_intern_array(types,
                      &(ki_type_info){
                        .element = KJIT_F32, .rank = 1, .is_static = true, .extents = { i + 1 } });
  for (uint32_t i = 0; i < 5000; i++) {
    assert_int_equal(ki_type(types, made[i])->extents[0], i + 1);
    assert_int_equal(ki_intern_array(types, &(ki_type_info){ .element = KJIT_F32,
                                                             .rank = 1,
                                                             .is_static = true,
                                                             .extents = { i + 1 } }),
                     made[i]);
  }
  assert_true(ki_has_type(types, made[4999]));
  assert_false(ki_has_type(types, made[4999] + 1));
}

/* ---- accesses ---- */

static void expect_accesses(const char *text, const char *expected)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_module *module = NULL;
  const ki_text source = { .name = "test", .text = text, .size_bytes = strlen(text) };
  if (ki_parse_module(NULL, types, &source, &diagnostics, &module) != KJIT_OK)
    fail_msg("%s", diagnostics.items[0].message);
  const ki_function *function = ki_find_decl(module, "k")->function;
  bool read[16] = { 0 }, written[16] = { 0 };
  ki_find_accesses(module, function, read, written);
  char found[64] = "";
  for (size_t i = 0; i < function->params.count; i++)
    strcat(found, read[i] && written[i] ? "b" : read[i] ? "r" : written[i] ? "w" : "-");
  assert_string_equal(found, expected);
  ki_destroy_module(module);
  kj_free_diagnostics(&diagnostics);
}

static void accesses(void **state)
{
  (void)state;
  expect_accesses("kernel k(r, a, x, n) { for i in grid_range(len(n)) { r[i] = a * x[i] } }",
                  "w-r-");
  expect_accesses("kernel k(x, y) { x[0] += 1\n atomic_add(y[0], 1) }", "bb");
  expect_accesses("kernel k(x, y) { let v = x[0]\n v[1] = y[0] }", "br");
  expect_accesses("kernel k(x, y, c) { let v = c[0] ? x : y\n v[1] = 2 }", "wwr");
  expect_accesses("kernel k(x, y) { var v = x\n for i in range(2) { v[0] = 1\n v = y } }", "ww");
  expect_accesses("func set(a, i, v) { a[i] = v }\nkernel k(x, y) { set(x, 0, y[0]) }", "wr");
  expect_accesses("func pick(a, b) { return a }\nkernel k(x, y) { let v = pick(x, y)\n v[0] = 1 }",
                  "ww");
  /* the result of op may be a view of the array that is bound to it */
  expect_accesses(
    "func add(a, b) { return a + b }\nkernel k(op: func, r, x) { r[0] = op(x[0], x[1]) }", "rwr");
  /* arrays of rank 0 as their elements */
  expect_accesses("struct P { a: f32 }\nkernel k(r, by, n) { r[0] = by.a + n.size }", "wr-");
  expect_accesses("struct P { a: f32 }\nkernel k(r, by) { r[0] = by }", "wr");
  expect_accesses("struct P { a: f32 }\nkernel k(r, by) { by.a = r[0] }", "rw");
  expect_accesses("func set(a) { a[0] = 1 }\nkernel k(op: func, x) { op(x) }", "-b");
  /* the result of a bound func */
  expect_accesses(
    "func row(i, a) { return a[i] }\nfunc clear(f: func) { let v = f(0)\n v[0] = 0 }\n"
    "kernel k(x, y) { clear(bind_back(row, x)) }",
    "b-");
  expect_accesses("func row(i, a) { return a[i] }\nfunc pick(f: func) { return f(0) }\n"
                  "kernel k(x, y) { let v = pick(bind_back(row, x))\n v[0] = y[0] }",
                  "br");
  expect_accesses("func item(i, a) { return a[i] }\nfunc put(i, v, a) { a[i] = v }\n"
                  "func move(to: func, from: func, i) { to(i, from(i)) }\n"
                  "kernel k(r, x, n) { move(bind_back(put, r), bind_back(item, x), 3) }",
                  "wr-");
  expect_accesses("func apply(op: func, a) { return op(a) }\nfunc set(a) { a[0] = 1 }\nkernel k(x, "
                  "y) { apply(set, x)\n set(y) }",
                  "bw");
  expect_accesses("kernel k(x, y) { let d = zero(dtype(y))\n x[0] = d + y.shape[0] + len(y) }",
                  "w-");
}

/* ---- contexts ---- */

static void *fail_in_thread(void *context)
{
  kjit_module *module = NULL;
  assert_null(kjit_get_diagnostic(context, 0));
  assert_int_equal(kjit_parse_module(context, "b", "?", 1, &module), KJIT_ERROR_SYNTAX);
  assert_string_equal(kjit_get_diagnostic(context, 0)->file, "b");
  return NULL;
}

static void count_message(void *user, const kjit_diagnostic *diagnostic)
{
  (void)diagnostic;
  ++*(int *)user;
}

static void diagnostics_by_thread(void **state)
{
  (void)state;
  int count = 0;
  kjit_config config = { .size_bytes = sizeof config };
  config.on_diagnostic = count_message;
  config.user = &count;
  kjit_context *context = NULL;
  kjit_module *module = NULL;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kjit_parse_module(context, "a", "kernel", 6, &module), KJIT_ERROR_SYNTAX);
  assert_int_equal(count, 1);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, context), 0);
  pthread_join(thread, NULL);
  assert_string_equal(kjit_get_diagnostic(context, 0)->file, "a");
  assert_null(kjit_get_diagnostic(context, 1));
  char *text = kjit_copy_diagnostics_text(context);
  assert_string_equal(text, "a:1:7: error: expected a name of the kernel, found the end of the "
                            "text\n  kernel\n        ^\n");
  kjit_free(context, text);
  assert_int_equal(kjit_parse_module(context, "warned", "#define A\nkernel k() { }", 24, &module),
                   KJIT_OK);
  assert_int_equal(count, 3);
  /* a call that succeeds does not change the diagnostics of the last failure */
  assert_string_equal(kjit_get_diagnostic(context, 0)->file, "a");
  assert_string_equal(kjit_get_kernel_name(module, 0), "k");
  assert_null(kjit_get_kernel_name(module, 1));
  kjit_function *function = NULL;
  assert_int_equal(kjit_get_function(module, "k", &function), KJIT_ERROR_NAME);
  kjit_release_module(kjit_retain_module(module));
  kjit_destroy_context(context); /* frees the module */
}

static void *fail_here(void *user)
{
  kjit_module *module;
  size_t before = 0;
  while (kjit_get_diagnostic(user, before)) before++;
  bool has_failed =
    kjit_parse_module(user, "a", "?", 1, &module) != KJIT_OK && kjit_get_diagnostic(user, 0);
  return (void *)(uintptr_t)(before ? 1 : has_failed ? 2 : 3);
}

/* The diagnostics of a thread are its own. A later thread with the same pthread_t does not get
 * them. */
static void diagnostics_of_threads(void **state)
{
  (void)state;
  kjit_context *context;
  pthread_t thread, first = 0;
  void *result;
  bool is_same = false;
  assert_int_equal(kjit_create_context(NULL, &context), KJIT_OK);
  for (int i = 0; i < 10; i++) {
    assert_int_equal(pthread_create(&thread, NULL, fail_here, context), 0);
    is_same = is_same || (i && pthread_equal(thread, first));
    first = thread;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((uintptr_t)result, 2);
  }
  assert_true(is_same); /* otherwise the test has tested nothing */
  assert_null(kjit_get_diagnostic(context, 0));
  kjit_destroy_context(context);
}

/* The reason why a configuration is rejected is reported, although there is no context. */
static void keep_message(void *user, const kjit_diagnostic *diagnostic)
{
  snprintf(user, 256, "%s", diagnostic->message);
}

static void expect_no_context(kjit_config config, const char *part)
{
  kjit_context *context = NULL;
  char message[256] = "";
  config.size_bytes = sizeof config;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_ERROR_MISUSE);
  config.user = message;
  config.on_diagnostic = keep_message;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_ERROR_MISUSE);
  assert_null(context);
  if (!strstr(message, part)) fail_msg("\"%s\" is not in \"%s\"", part, message);
}

static void misused_config(void **state)
{
  (void)state;
  kjit_context *context = NULL;
  kjit_executor executor = { .size_bytes = sizeof executor };
  kjit_device_allocator allocator = { .size_bytes = sizeof allocator };
  kjit_cache_store store = { .size_bytes = sizeof store };
  kjit_compile_limits limits = { .size_bytes = 1 };
  /* an executor or allocator must have all functions that kjit calls */
  expect_no_context((kjit_config){ .executor = &executor }, "executor->run is NULL");
  expect_no_context((kjit_config){ .device_allocator = &allocator }, "device_allocator->allocate");
  expect_no_context((kjit_config){ .cache_store = &store }, "cache_store->load is NULL");
  expect_no_context((kjit_config){ .trust = (kjit_trust)77 }, "trust 77");
  expect_no_context((kjit_config){ .compile_limits = &limits }, "the size_bytes of a");
  uint32_t known = KJIT_CHECK_ALL;
  for (int bit = 0; bit < 32; bit++) {
    kjit_config config = { .size_bytes = sizeof config, .checks = 1u << bit };
    if (known & config.checks) {
      assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
      kjit_destroy_context(context);
    } else {
      char part[32];
      snprintf(part, sizeof part, "bits, 0x%x,", config.checks);
      config.checks |= KJIT_CHECK_USUAL;
      expect_no_context(config, part);
    }
  }
}

static void misused_options(void **state)
{
  (void)state;
  static const char text[] = "kernel k() { }";
  kjit_context *context = NULL;
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  void *code = NULL;
  size_t size_bytes = 0;
  kjit_compile_options options = { .size_bytes = sizeof options, .checks = 1u << 20 };
  assert_int_equal(kjit_create_context(NULL, &context), KJIT_OK);
  assert_int_equal(kjit_parse_module(context, "a", text, sizeof text - 1, &module), KJIT_OK);
  assert_int_equal(kjit_get_kernel(module, "k", &kernel), KJIT_OK);
  assert_int_equal(kjit_check(kernel, "", &options), KJIT_ERROR_MISUSE);
  assert_non_null(strstr(kjit_get_diagnostic(context, 0)->message, "kjit_check: the checks"));
  assert_int_equal(kjit_compile(kernel, "", &options, KJIT_STAGE_TYPED, &code, &size_bytes),
                   KJIT_ERROR_MISUSE);
  assert_non_null(strstr(kjit_get_diagnostic(context, 0)->message, "bits, 0x100000,"));
  kjit_release_module(module);
  kjit_destroy_context(context);
}

static void misuse(void **state)
{
  (void)state;
  kjit_context *context = NULL;
  kjit_module *module = NULL;
  kjit_type type;
  assert_int_equal(kjit_create_context(&(kjit_config){ .size_bytes = 1 }, &context),
                   KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_create_context(NULL, NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_create_context(NULL, &context), KJIT_OK);
  assert_int_equal(kjit_parse_module(NULL, "a", "", 0, &module), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_parse_module(context, "a", NULL, 3, &module), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_parse_type(context, NULL, &type), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_get_array_type(context, KJIT_VOID, 1, KJIT_LAYOUT_C, 0), KJIT_VOID);
  assert_int_equal(kjit_get_array_type(context, KJIT_F32, 9, KJIT_LAYOUT_C, 0), KJIT_VOID);
  assert_non_null(strstr(kjit_get_diagnostic(context, 0)->message, "8 dimensions"));
  assert_string_equal(kjit_get_status_name(KJIT_ERROR_TYPE), "KJIT_ERROR_TYPE");
  assert_string_equal(kjit_get_status_name((kjit_status)999), "KJIT_STATUS_UNKNOWN");
  kjit_destroy_context(context);
  kjit_destroy_context(NULL);
  kjit_release_module(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(precedence),
    cmocka_unit_test(numbers),
    cmocka_unit_test(numbers_in_any_locale),
    cmocka_unit_test(newlines),
    cmocka_unit_test(everything),
    cmocka_unit_test(limits),
    cmocka_unit_test(bytes),
    cmocka_unit_test(type_texts),
    cmocka_unit_test(many_types),
    cmocka_unit_test(accesses),
    cmocka_unit_test(diagnostics_by_thread),
    cmocka_unit_test(misused_config),
    cmocka_unit_test(misused_options),
    cmocka_unit_test(misuse),
    cmocka_unit_test(diagnostics_of_threads),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

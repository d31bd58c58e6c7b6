/* Type inference: each row has a module, a signature, and texts that the typed IR or the messages
 * must contain. */
#include <stdlib.h>
#include <string.h>

#include "kj_test.h"
#include "typing/typed.h"

typedef struct row {
  const char *what, *text, *signature;
  const char *expected[6]; /* in any order; those that start with ! must not appear */
} row;

static const row typed_rows[] = {
  { "literals take their type from the context",
    "kernel k(x) { x[0] = 0.5 * x[1] + 1 }",
    "f32[:]",
    { "x[0i32] = ((0.5f32 * x[1i32]) + 1.f32)" } },
  { "a literal of a const parameter too",
    "kernel k(x, const A) { x[0] = A * x[1] }",
    "f16[:]; 0.5",
    { "(0.5f16 * x[1i32])" } },
  { "literals are exact",
    "kernel k(x) { x[0] = 2 ** 62 + 2 ** 63 - 2 ** 63 - 1 }",
    "i64[:]",
    { "x[0i32] = 4611686018427387903i64" } },
  { "math on literals at compile time",
    "kernel k(x) { x[0] = x[1] * sqrt(2) * pi }",
    "f64[:]",
    { "1.4142135623730951f64", "3.141592653589793f64" } },
  { "a plain number is like a literal",
    "kernel k(x, a, n) { x[0] = a * x[1] + n }",
    "f32[:]; ?float; ?int",
    { "((f32(a) * x[1i32]) + f32(n))", "a: weak float" } },
  { "a let of a plain number stays weak",
    "kernel k(x, a) { let h = a * 0.5\n x[0] = h * x[1] }",
    "f32[:]; ?float",
    { "((f32(a) * 0.5f32) * x[1i32])", "!f64" } },
  { "a weak choice",
    "kernel k(x, c) { let h = c > 0 ? 1 : 0.5\n x[0] = h * x[1] }",
    "f32[:]; i32",
    { "? 1.f32 : 0.5f32)", "!f64" } },
  { "a var joins what is assigned",
    "kernel k(x) { var s = 0\n for i in range(len(x)) { s += x[i] }\n x[0] = s }",
    "f32[:]",
    { "var s: f32", "s = 0.f32", "s = (s + x[i])" } },
  { "a var of literals only",
    "kernel k(x) { var s = 0\n var t = 3000000000\n s += 1\n x[s] = t }",
    "i64[:]",
    { "var s: i32", "var t: i64" } },
  { "a typed var converts as a store",
    "kernel k(x) { var s: f64 = 0\n s = x[0]\n x[0] = s }",
    "f32[:]",
    { "var s: f64", "s = f64(x[0i32])", "x[0i32] = f32(s)" } },
  { "8 bits count as i32",
    "kernel k(x) { x[0] = x[1] + x[2] }",
    "u8[:]",
    { "x[0i32] = u8((i32(x[1i32]) + i32(x[2i32])))" } },
  { "signed with unsigned",
    "kernel k(x, y) { x[0] = x[0] + y[0] }",
    "i32[:]; u32[:]",
    { "x[0i32] = i32((i64(x[0i32]) + i64(y[0i32])))" } },
  { "u64 compares exactly",
    "kernel k(o, x, y) { o[0] = x[0] < y[0] }",
    "bool[:]; i64[:]; u64[:]",
    { "o[0i32] = (x[0i32] < y[0i32])" } },
  { "f16 with bf16",
    "kernel k(x, y) { x[0] = x[0] * y[0] }",
    "f16[:]; bf16[:]",
    { "f16((f32(x[0i32]) * f32(y[0i32])))" } },
  { "int with float",
    "kernel k(x, y) { x[0] = x[0] * y[0] }",
    "f16[:]; i32[:]",
    { "f16((f32(x[0i32]) * f32(y[0i32])))" } },
  { "a constant power is multiplied out",
    "kernel k(x) { let v = x[0]\n x[0] = v ** 3 + v ** -1 }",
    "f32[:]",
    { "((v * (v * v)) + (1.f32 / v))" } },
  { "powers",
    "kernel k(x, n) { x[0] = x[1] ** n + x[2] ** 0.5 }",
    "f32[:]; i32",
    { "x[1i32] ** n", "pow(x[2i32], 0.5f32)" } },
  { "what a lazy operand needs is computed where it is needed",
    "kernel k(x) { x[0] = x[1] > 0 and x[2] ** 2 > 1 ? 1 : 0 }",
    "f32[:]",
    { "let _0: f32 = x[2i32]\n    _1 = ((_0 * _0) > 1.f32)" } },
  { "a while condition with statements",
    "kernel k(x) { while x[0] ** 2 > 1 { x[0] -= 1 } }",
    "f32[:]",
    { "while true {\n    let _0: f32 = x[0i32]\n    if not" } },
  { "shifts have the left type",
    "kernel k(x, n) { x[0] = x[0] << n | 1 << n }",
    "u64[:]; i32",
    { "((x[0i32] << u64(n)) | (1u64 << u64(n)))" } },
  { "extents of static arrays are constants",
    "kernel k(x, const N) { shared s: f32[N + 2, 4]\n s[-1, 0] = 0\n x[0] = s.size + s.strides[0] "
    "}",
    "f32[:]; 3",
    { "shared s: shared f32[5, 4]", "s[4i64, 0i32]", "x[0i32] = 24.f32" } },
  { "an index from the end",
    "kernel k(x) { x[-1, 0] = x[0, -2] }",
    "f32[:, :] C",
    { "x[(x.shape[0] - 1i64), 0i32] = x[0i32, (x.shape[1] - 2i64)]" } },
  { "a static condition decides",
    "func f(a) { return a[0] }\nkernel k(x) { if dtype(x) == f32 and x.ndim == 1 { x[0] = 1 } else "
    "{ x[0] = f(2) } }",
    "f32[:]",
    { "x[0i32] = 1.f32", "!f(" } },
  { "one instance for each tuple of types",
    "func f(a) { return a + 1 }\nkernel k(x, y) { x[0] = f(x[0]) + f(x[1])\n y[0] = f(y[0]) }",
    "f32[:]; i32[:]",
    { "func f$1(a: f32) -> f32", "func f$2(a: i32) -> i32", "!$3" } },
  { "literals are part of the instance",
    "func f(a, n) { shared s: f32[n]\n s[0] = a\n return s[0] }\nkernel k(x) { x[0] = f(x[0], 4) }",
    "f32[:]",
    { "shared s: shared f32[4]", "f$1(x[0i32])" } },
  { "functions are part of the instance",
    "func g(a) { return -a }\nfunc f(op: func, a) { return op(a) }\nkernel k(x) { x[0] = f(g, "
    "x[0]) }",
    "f32[:]",
    { "return g$1(a)" } },
  { "a func that returns literals",
    "func half() { return 0.5 }\nkernel k(x) { x[0] = half() * x[0] }",
    "f32[:]",
    { "(0.5f32 * x[0i32])", "!f64" } },
  { "tuples",
    "func f(a) { return a, 0 }\nkernel k(x) { let p, q = f(x[0])\n x[0], x[1] = x[1], p + q }",
    "f32[:]",
    { "-> (f32, i32)", "let p: f32 = _0.0", "let _1: f32 = x[1i32]" } },
  { "a place of += is evaluated once",
    "kernel k(x) { x[atomic_add(x[0], 1)] += 2 }",
    "i32[:]",
    { "let _0: i32 = atomic_add(x[0i32], 1i32)\n  x[_0] = (x[_0] + 2i32)" } },
  { "any rank",
    "kernel k(x, y) { for i in grid_range(x.shape) { x[i] = y[i] } }",
    "f32[:, :] C; f32[:, :]",
    { "for i.2, i.3 in grid_range(x.shape[0], x.shape[1])", "x[i.2, i.3] = y[i.2, i.3]" } },
  { "no rank",
    "kernel k(x) { for i in grid_range(x.shape) { x[i] += 1 } }",
    "f32[]",
    { "in grid_range(1i64)", "x[] = (x[] + 1.f32)" } },
  { "views",
    "kernel k(x) { let r = x[0]\n r[1] = len(r) }",
    "f32[:, :] C",
    { "let r: f32[:] C = x[0i32]", "f32(r.shape[0])" } },
  { "a row of a column-major array is strided",
    "kernel k(x) { let r = x[0]\n r[1] = 2 }",
    "f32[:, :] F",
    { "let r: f32[:] = x[0i32]" } },
  { "layouts that differ are forgotten",
    "kernel k(x, y) { let a = x[0] > 0 ? x : y\n x[1] = a[0] }",
    "f32[:]; f32[:] C",
    { "let a: f32[:] = ((x[0i32] > 0.f32) ? x : view(y, 0))" } },
  { "a slice of the first dimension stays contiguous",
    "kernel k(x) { let r = x[2:5]\n r[1, 0] = 2 }",
    "f32[:, :] C",
    { "let r: f32[:, :] C = view(x[2i64], 0:3i64, 1)" } },
  { "a weak constant array",
    "const A = { 0.5, 1, 2 }\nkernel k(x, i) { x[0] = A[i] * x[0] + A[1] }",
    "f32[:]; i32",
    { "const A: const f32[3]", "(A[i] * x[0i32])", "1.f32" } },
  { "a shared scalar",
    "kernel k(x) { shared t: f32\n t = 0\n atomic_add(t, x[0]) }",
    "f32[:]",
    { "t[] = 0.f32", "atomic_add(t[], x[0i32])" } },
  { "an annotated parameter is converted at the entry",
    "kernel k(x, a: f32) { x[0] = a * x[0] }",
    "f32[:]; f64",
    { "let a.2: f32 = f32(a.1)", "(a.2 * x[0i32])" } },
  { "const makes an argument read-only",
    "kernel k(x, y: const f32[:]) { x[0] = y[0] }",
    "f32[:]; f32[:] C",
    { "y: const f32[:] C" } },
  { "@strict holds for callees",
    "func g(a) { return a * a + 1 }\nkernel k(x) @strict { x[0] = g(x[0]) }",
    "f32[:]",
    { "func g$1(a: f32) -> f32 @strict" } },
  { "@block and @launch_bounds",
    "kernel k(x, const N = 8) @block(N, 2 * N) @launch_bounds(128, 2) { x[0] = 1 }",
    "f32[:]; 8",
    { "@block(8, 16, 1)", "@launch_bounds(128, 2)" } },
  { "a barrier under a thread's condition",
    "kernel k(x) { if laneid == 0 { syncthreads() } }",
    "f32[:]",
    { "warning: `syncthreads` in divergent control flow" } },
  { "a barrier under a block's condition",
    "kernel k(x) { if blockIdx.x == 0 { syncthreads() } }",
    "f32[:]",
    { "!warning" } },
  { "a remark for f64",
    "kernel k(x, i) { x[0] = 0.5 * i }",
    "f32[:]; i32",
    { "remark: this computes in f64" } },
  { "no remark where there is f64",
    "kernel k(x, i) { x[0] = 0.5 * i }",
    "f64[:]; i32",
    { "!remark" } },
};

static const row failing_rows[] = {
  { "/ on integers",
    "kernel k(x) { x[0] = x[0] / 2 }",
    "i32[:]",
    { "1:27: error: `/` is for floats", "`//`", "div_trunc" } },
  { "float to int", "kernel k(x, y) { x[0] = y[0] }", "i32[:]; f32[:]", { "write i32(...)" } },
  { "i64 with u64",
    "kernel k(x, y) { x[0] = x[0] + y[0] }",
    "i64[:]; u64[:]",
    { "no integer type can represent both" } },
  { "a literal that does not fit",
    "kernel k(x) { x[0] = x[0] + 300000000000 }",
    "i32[:]",
    { "the literal 300000000000 cannot be represented as i32" } },
  { "rank",
    "kernel k(x) { x[0, 1] = 2 }",
    "f32[:] C",
    { "`x` has 1 dimension (f32[:] C), got 2 indices" } },
  { "an index that is a float",
    "kernel k(x) { x[x[0]] = 2 }",
    "f32[:]",
    { "an index must be an integer, got f32: write i32(...)" } },
  { "a part is no element",
    "kernel k(x) { x[0] = 2 }",
    "f32[:, :]",
    { "only a single element can be assigned" } },
  { "a read-only argument", "kernel k(x) { x[0] = 2 }", "const f32[:]", { "`x` is read-only" } },
  { "a layout that does not fit",
    "kernel k(x: f32[:, :] C) { x[0, 0] = 2 }",
    "f32[:, :]",
    { "declared as f32[:, :] C, but the argument has the type f32[:, :]" } },
  { "a scalar that does not fit",
    "kernel k(x: i32) { }",
    "i64",
    { "which cannot represent it exactly" } },
  { "a float condition",
    "kernel k(x) { if x[0] { x[1] = 1 } }",
    "f32[:]",
    { "a condition must be a bool or an integer, got f32" } },
  { "the chain of calls",
    "func g(a, b) { return a[b] }\nfunc f(a, b) { return g(a, b) }\nkernel k(x) { x[0] = f(x, 1.5) "
    "}",
    "f32[:]",
    { "1:25: error: an index must be an integer",
      "2:23: note: in function `g` called with (f32[:], 1.5), from here",
      "3:22: note: in function `f` called with" } },
  { "recursion through a parameter",
    "func f(op: func, a) { return op(op, a) }\nkernel k(x) { x[0] = f(f, x[0]) }",
    "f32[:]",
    { "no other path determines the return type" } },
  { "calls without end",
    "func f(op: func, n, a) { return op(op, n + 1, a) }\nkernel k(x) { x[0] = f(f, 0, x[0]) }",
    "f32[:]",
    { "no other path determines the return type" } },
  { "local extents",
    "kernel k(x, n) { local s: f32[n]\n s[0] = 1 }",
    "f32[:]; i32",
    { "must be known at compile time" } },
  { "too much shared memory",
    "kernel k(x) { shared s: f32[300000]\n s[0] = 1 }",
    "f32[:]",
    { "1200000 bytes", "232448" } },
  { "too much shared memory in all",
    "func f(v) { shared s: f32[40000]\n s[0] = v\n return s[1] }\nkernel k(x) { shared s: "
    "f32[40000]\n s[0] = f(x[0]) }",
    "f32[:]",
    { "320000 bytes" } },
  { "too much local memory",
    "kernel k(x) { local s: f32[20000]\n s[0] = 1 }",
    "f32[:]",
    { "80000 bytes in each thread; the limit is 65536 bytes" } },
  { "an atomic on bytes",
    "kernel k(x) { atomic_add(x[0], 1) }",
    "u8[:]",
    { "`atomic_add` works on i32, u32, i64, u64, f32, f64, f16 and bf16, not on u8" } },
  { "grid_range` in divergent control flow",
    "kernel k(x) { if threadIdx.x == 0 { for i in grid_range(len(x)) { x[i] = 1 } } }",
    "f32[:]",
    { "all threads of the grid must reach it" } },
  { "grid_range` follows a `return`",
    "kernel k(x) { if grid(1) > 5 { return }\n for i in grid_range(len(x)) { x[i] = 1 } }",
    "f32[:]",
    { "follows a `return` that some threads" } },
  { "no type for ?:",
    "kernel k(x, y) { let a = x[0] > 0 ? x : y\n x[1] = a[0] }",
    "f32[:]; f64[:]",
    { "no common type: f32[:] and f64[:]" } },
  { "a call without a value",
    "func f(x) { x[0] = 1 }\nkernel k(x) { x[0] = f(x) }",
    "f32[:]",
    { "this call returns no value" } },
  { "names and values",
    "func f(x) { return x, x }\nkernel k(x) { let a, b, c = f(x[0])\n x[0] = a }",
    "f32[:]",
    { "got 3 names for 2 values" } },
  { "a constant index out of bounds",
    "const A = { 1, 2 }\nkernel k(x) { x[0] = A[2] }",
    "f32[:]",
    { "index 2 is out of bounds for 0..1" } },
};

/* Reads one argument: a type, ?int or ?float for an untyped number, the value of a const parameter,
 * or the name of a func. */
static kj_argument read_argument(kjit_module *module, ki_types *types, kj_diagnostics *diagnostics,
                                 const char *text)
{
  const ki_decl *decl = ki_find_decl(module, text);
  if (decl)
    return (kj_argument){ .kind = KJ_ARGUMENT_FUNCTION, .type = KJIT_FUNC, .function = decl };
  if (strcmp(text, "?int") == 0)
    return (kj_argument){ .kind = KJ_ARGUMENT_NUMBER, .type = KJ_WEAK_INT };
  if (strcmp(text, "?float") == 0)
    return (kj_argument){ .kind = KJ_ARGUMENT_NUMBER, .type = KJ_WEAK_FLOAT };
  if (text[0] >= '0' && text[0] <= '9' && strchr(text, '.'))
    return (kj_argument){ .kind = KJ_ARGUMENT_CONST,
                          .type = KJ_WEAK_FLOAT,
                          .integer = ki_float_value(KJ_WEAK_FLOAT, strtod(text, NULL)).integer };
  if (text[0] >= '0' && text[0] <= '9')
    return (kj_argument){ .kind = KJ_ARGUMENT_CONST,
                          .type = KJ_WEAK_INT,
                          .integer = strtoll(text, NULL, 0) };
  kjit_type type;
  assert_int_equal(ki_parse_type(types, NULL, text, diagnostics, &type), KJIT_OK);
  return (kj_argument){ .kind = ki_is_scalar(type) ? KJ_ARGUMENT_VALUE : KJ_ARGUMENT_ARRAY,
                        .type = type };
}

static uint32_t read_signature(kjit_module *module, ki_types *types, kj_diagnostics *diagnostics,
                               const char *signature, kj_argument *arguments)
{
  char *copy = strdup(signature), *rest = NULL;
  uint32_t count = 0;
  for (char *text = strtok_r(copy, ";", &rest); text; text = strtok_r(NULL, ";", &rest))
    arguments[count++] = read_argument(module, types, diagnostics, text + strspn(text, " "));
  free(copy);
  return count;
}

static int infer(const kj_compile_request *request, ki_types *types, kj_diagnostics *diagnostics,
                 kj_buffer *text)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  int jump = setjmp(on_failure);
  if (jump == 0) {
    kt_compilation *c = KJ_NEW(&arena, kt_compilation);
    kt_budget *budget = KJ_NEW(&arena, kt_budget);
    kt_open_budget(budget, request);
    *c = (kt_compilation){ .request = request,
                           .code = KJ_NEW(&arena, kj_code),
                           .module = request->module,
                           .types = types,
                           .arena = &arena,
                           .diagnostics = diagnostics,
                           .on_failure = &on_failure,
                           .budget = budget };
    kt_infer(c);
    kt_verify_typed(c);
    kt_print_typed(c, text);
  }
  kj_free_arena(&arena);
  return jump;
}

static void check_text(const row *r, const char *text)
{
  for (size_t i = 0; i < 6 && r->expected[i]; i++) {
    bool is_absent = r->expected[i][0] == '!',
         is_found = strstr(text, r->expected[i] + is_absent) != NULL;
    if (is_found != is_absent) continue;
    fail_msg("%s: %s `%s` in\n%s", r->what, is_absent ? "did not expect" : "expected",
             r->expected[i] + is_absent, text);
  }
}

static void check_row(const row *r, int expected_jump)
{
  ki_types *types = ki_create_types();
  kj_diagnostics diagnostics = { 0 };
  kj_buffer text = { 0 };
  kjit_module *module = NULL;
  const ki_text source = { .name = "row", .text = r->text, .size_bytes = strlen(r->text) };
  if (ki_parse_module(NULL, types, &source, &diagnostics, &module) != KJIT_OK) {
    kj_print_diagnostics(&diagnostics, &text);
    fail_msg("%s: not parsed:\n%s", r->what, text.text);
  }
  kj_argument arguments[8] = { { 0 } };
  kj_signature signature = { .arguments = arguments,
                             .count = read_signature(module, types, &diagnostics, r->signature,
                                                     arguments) };
  kj_compile_request request = { .module = module,
                                 .kernel = ki_find_decl(module, "k")->function,
                                 .signature = &signature,
                                 .target = { .kind = KJ_TARGET_NVPTX, .arch = 90 } };
  int jump = infer(&request, types, &diagnostics, &text);
  kj_append_text(&text, "\n");
  kj_print_diagnostics(&diagnostics, &text);
  if (jump != expected_jump)
    fail_msg("%s: %s:\n%s", r->what, jump ? "failed" : "did not fail", text.text);
  assert_int_equal(diagnostics.status != KJIT_OK, jump != 0);
  check_text(r, text.text);
  kj_free_buffer(&text);
  kj_free_diagnostics(&diagnostics);
  ki_destroy_module(module);
  ki_destroy_types(types);
}

static void test_typed(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof typed_rows / sizeof *typed_rows; i++) check_row(&typed_rows[i], 0);
}

static void test_failing(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof failing_rows / sizeof *failing_rows; i++)
    check_row(&failing_rows[i], KJ_JUMP_ERROR);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_typed),
                                      cmocka_unit_test(test_failing) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

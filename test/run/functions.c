/* Funcs that the host calls, C function pointers, extern funcs of the host, linked modules, constants that the host sets, imports that it answers.
 * RUN: %programs/functions
 */
#include <kjit/kjit.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kjit_context *context;
static int failures;

#define REQUIRE(condition) \
  do { \
    if (condition) break; \
    char *said = kjit_copy_diagnostics_text(context); \
    printf("%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, said ? said : ""); \
    kjit_free(context, said); \
    failures++; \
  } while (0)

static bool says(const char *part)
{
  char *text = kjit_copy_diagnostics_text(context);
  bool found = text && strstr(text, part);
  if (!found) printf("expected \"%s\" in:\n%s\n", part, text ? text : "");
  kjit_free(context, text);
  return found;
}

static kjit_module *parse(const char *text)
{
  kjit_module *module = NULL;
  REQUIRE(kjit_parse_module(context, "functions.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

static kjit_function *find(kjit_module *module, const char *name)
{
  kjit_function *function = NULL;
  REQUIRE(kjit_get_function(module, name, &function) == KJIT_OK);
  return function;
}

static kjit_tensor tensor_of(void *data, uint8_t code, uint8_t bits, int64_t *shape, int32_t rank)
{
  return (kjit_tensor){ .data = data, .device_type = 1, .rank = rank, .code = code, .bits = bits, .lanes = 1, .shape = shape };
}

static const char calls[] =
  "func add(a, b) { return a + b }\n"
  "func half(x: f64) -> f64 { return 0.5 * x }\n"
  "func mixed(a: i8, b: u16, c: bool, d: f32, e: u64) -> i64 { return i64(a) + i64(b) + (c ? 1000 : 0) + i64(d) + i64(e) }\n"
  "func narrow(a: i16) -> i8 { return i8(a) }\n"
  "func lowest(a: u32) -> u8 { return u8(a) }\n"
  "func is_even(n: i32) -> bool { return n % 2 == 0 }\n"
  "func total(x) {\n"
  "  var s = 0.\n"
  "  for i in range(x.shape[0]) { for j in range(x.shape[1]) { s += x[i, j] } }\n"
  "  return s\n"
  "}\n"
  "func fill(x, v) { for i in range(len(x)) { x[i] = v } }\n"
  "func power(x, const N) { var r = x\n for i in range(N - 1) { r *= x }\n return r }\n"
  "func apply(f: func, x) { return f(x, x) }\n"
  "func fib(n: i32) -> i64 { return n < 2 ? i64(n) : fib(n - 1) + fib(n - 2) }\n"
  "func endless(n: i64) -> i64 { return 1 + endless(n + 1) % 10 }\n"
  "func root(x: f64) -> f64 {\n  if x < 0 { raise \"a negative number\" }\n  return sqrt(x)\n}\n"
  "func at(x, i: i64) { return x[i] }\n"
  "func position(x) { return x + threadIdx.x }\n"
  "func pair(x) { return x, x }\n"
  "func many(a: f64, b: f32, c: i32, d: f64, e: f32, f: i64, g: f64, h: f64, i: f64, j: f64, k: i8, l: u8, m: f64, n: i32, o: i32, p: i32, q: i32)\n"
  "  -> f64 { return a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q }\n";

static void test_scalars(kjit_module *module)
{
  kjit_arg r;
  kjit_arg ints[2] = { kjit_arg_i32(40), kjit_arg_i32(2) }, mixed[2] = { kjit_arg_i64(1), kjit_arg_f32(0.5f) },
           numbers[2] = { kjit_arg_number(1.5), kjit_arg_f32(2) };
  kjit_function *add = find(module, "add");
  REQUIRE(kjit_call_function(add, ints, 2, &r) == KJIT_OK && r.type == KJIT_I32 && r.value.i == 42);
  REQUIRE(kjit_call_function(add, mixed, 2, &r) == KJIT_OK && r.type == KJIT_F32 && r.value.f32 == 1.5f);
  REQUIRE(kjit_call_function(add, numbers, 2, &r) == KJIT_OK && r.type == KJIT_F32 && r.value.f32 == 3.5f);
  REQUIRE(kjit_call_function(add, ints, 2, NULL) == KJIT_OK);
  kjit_arg one = kjit_arg_i32(7);
  REQUIRE(kjit_call_function(find(module, "half"), &one, 1, &r) == KJIT_OK && r.type == KJIT_F64 && r.value.f64 == 3.5);
  int8_t a = -5;
  uint16_t b = 65535;
  kjit_arg all[5] = { kjit_arg_value(KJIT_I8, &a), kjit_arg_value(KJIT_U16, &b), kjit_arg_bool(1), kjit_arg_f32(2.75f), kjit_arg_u64(1u << 31) };
  REQUIRE(kjit_call_function(find(module, "mixed"), all, 5, &r) == KJIT_OK && r.type == KJIT_I64 && r.value.i == -5 + 65535 + 1000 + 2 + (1ll << 31));
  int16_t wide = -130;
  kjit_arg narrow = kjit_arg_value(KJIT_I16, &wide), large = kjit_arg_u32(0xfffffff0u), even = kjit_arg_i32(-4), odd = kjit_arg_i32(3);
  REQUIRE(kjit_call_function(find(module, "narrow"), &narrow, 1, &r) == KJIT_OK && r.type == KJIT_I8 && r.value.i == 126);
  REQUIRE(kjit_call_function(find(module, "lowest"), &large, 1, &r) == KJIT_OK && r.type == KJIT_U8 && r.value.u == 0xf0);
  REQUIRE(kjit_call_function(find(module, "is_even"), &even, 1, &r) == KJIT_OK && r.type == KJIT_BOOL && r.value.u == 1);
  REQUIRE(kjit_call_function(find(module, "is_even"), &odd, 1, &r) == KJIT_OK && r.value.u == 0);
  kjit_arg seventeen[17];
  for (int i = 0; i < 17; i++) seventeen[i] = kjit_arg_number(i + 1);
  REQUIRE(kjit_call_function(find(module, "many"), seventeen, 17, &r) == KJIT_OK && r.type == KJIT_F64 && r.value.f64 == 17 * 18 / 2);
}

static void test_arrays(kjit_module *module)
{
  kjit_arg r;
  float x[12];
  int64_t shape[2] = { 3, 4 }, strides[2] = { 1, 3 }, length = 12, none[2] = { 0, 4 };
  for (int i = 0; i < 12; i++) x[i] = (float)i;
  kjit_tensor rows = tensor_of(x, 2, 32, shape, 2), columns = rows, flat = tensor_of(x, 2, 32, &length, 1), empty = tensor_of(x, 2, 32, none, 2);
  columns.strides = strides;
  kjit_arg row = kjit_arg_tensor(&rows), column = kjit_arg_tensor(&columns), nothing = kjit_arg_tensor(&empty);
  REQUIRE(kjit_call_function(find(module, "total"), &row, 1, &r) == KJIT_OK && r.type == KJIT_F32 && r.value.f32 == 66);
  REQUIRE(kjit_call_function(find(module, "total"), &column, 1, &r) == KJIT_OK && r.value.f32 == 66);
  REQUIRE(kjit_call_function(find(module, "total"), &nothing, 1, &r) == KJIT_OK && r.value.f32 == 0);
  shape[0] = 2;
  strides[0] = 4, strides[1] = 2; /* every other element of two rows */
  shape[1] = 2;
  REQUIRE(kjit_call_function(find(module, "total"), &column, 1, &r) == KJIT_OK && r.value.f32 == 0 + 2 + 4 + 6);
  kjit_arg fill[2] = { kjit_arg_tensor(&flat), kjit_arg_number(2.5) };
  REQUIRE(kjit_call_function(find(module, "fill"), fill, 2, &r) == KJIT_OK && r.type == KJIT_VOID && x[0] == 2.5f && x[11] == 2.5f);
  kjit_device *cpu;
  kjit_array *array;
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  REQUIRE(kjit_create_array(cpu, KJIT_F64, &length, 1, &array) == KJIT_OK);
  kjit_arg own[2] = { kjit_arg_array(array), kjit_arg_f64(4) };
  REQUIRE(kjit_call_function(find(module, "fill"), own, 2, NULL) == KJIT_OK && ((double *)kjit_get_tensor(array)->data)[11] == 4);
  kjit_release_array(array);
}

static void test_composed(void)
{
  kjit_module *module = parse("struct particle { x: f64; id: i8; v: f32[3] }\n"
                              "func move(p: particle, dt: f32) -> particle {\n  var q = p\n  q.x += p.v[1] * dt\n  q.id = p.id + 1\n  return q\n}\n"
                              "func pair(x, y) { return x, y }\n"
                              "func nest(x: i8) { return x, (2.5, x), true }\n"
                              "func turn(z: c64) { return z * z }\n"
                              "func add4(a: f32x4, b: f32x4) { return a + b }\n"
                              "func half(x: f16) { return x * 0.5 }\n"
                              "func small(x: bf16) -> bf16 { return x + x }\n"
                              "func root(x: f32) {\n  if x < 0 { raise \"negative\" }\n  return sqrt(x), x\n}\n");
  typedef struct particle {
    double x;
    int8_t id;
    float v[3];
  } particle;
  kjit_type type = KJIT_ANY;
  const kjit_field fields[3] = { { "x", KJIT_F64, 0, { 0 } }, { "id", KJIT_I8, 0, { 0 } }, { "v", KJIT_F32, 1, { 3 } } };
  type = kjit_get_struct_type(context, "particle", fields, 3, 0);
  particle p = { 1.5, 126, { 1, 2, 3 } }, q = { 0 };
  kjit_arg move[2] = { kjit_arg_value(type, &p), kjit_arg_f32(0.25f) }, r = kjit_arg_value(KJIT_ANY, &q);
  REQUIRE(kjit_call_function(find(module, "move"), move, 2, &r) == KJIT_OK && r.type == type && q.x == 2 && q.id == 127 && q.v[2] == 3 && p.x == 1.5);
  struct {
    int8_t first;
    double second;
  } two = { 0 };
  int8_t seven = 7;
  kjit_arg pair[2] = { kjit_arg_value(KJIT_I8, &seven), kjit_arg_f64(0.125) };
  r = kjit_arg_value(KJIT_ANY, &two);
  REQUIRE(kjit_call_function(find(module, "pair"), pair, 2, &r) == KJIT_OK && two.first == 7 && two.second == 0.125);
  struct {
    int8_t a;
    struct {
      double b;
      int8_t c;
    } inner;
    bool d;
  } nested = { 0 };
  r = kjit_arg_value(KJIT_ANY, &nested);
  REQUIRE(kjit_call_function(find(module, "nest"), pair, 1, &r) == KJIT_OK && nested.a == 7 && nested.inner.b == 2.5 && nested.inner.c == 7 && nested.d);
  float z[2] = { 1, 2 }, w[2] = { 0 };
  kjit_arg turn = kjit_arg_value(KJIT_C64, z);
  r = kjit_arg_value(KJIT_ANY, w);
  REQUIRE(kjit_call_function(find(module, "turn"), &turn, 1, &r) == KJIT_OK && r.type == KJIT_C64 && w[0] == -3 && w[1] == 4);
  float a[4] = { 1, 2, 3, 4 }, b[4] = { 10, 20, 30, 40 }, c[4] = { 0 };
  kjit_type f32x4 = KJIT_ANY;
  REQUIRE(kjit_parse_type(context, "f32x4", &f32x4) == KJIT_OK);
  kjit_arg add[2] = { kjit_arg_value(f32x4, a), kjit_arg_value(f32x4, b) };
  r = kjit_arg_value(KJIT_ANY, c);
  REQUIRE(kjit_call_function(find(module, "add4"), add, 2, &r) == KJIT_OK && r.type == f32x4 && c[0] == 11 && c[3] == 44);
  uint16_t three = 0x4200, one = 0x3f80; /* f16 3, bf16 1 */
  kjit_arg half = kjit_arg_value(KJIT_F16, &three), small = kjit_arg_value(KJIT_BF16, &one);
  REQUIRE(kjit_call_function(find(module, "half"), &half, 1, &r) == KJIT_OK && r.type == KJIT_F16 && r.value.u == 0x3e00);
  REQUIRE(kjit_call_function(find(module, "small"), &small, 1, &r) == KJIT_OK && r.type == KJIT_BF16 && r.value.u == 0x4000);
  float roots[2] = { 0 };
  kjit_arg root = kjit_arg_f32(9);
  r = kjit_arg_value(KJIT_ANY, roots);
  REQUIRE(kjit_call_function(find(module, "root"), &root, 1, &r) == KJIT_OK && roots[0] == 3 && roots[1] == 9);
  root = kjit_arg_f32(-1);
  REQUIRE(kjit_call_function(find(module, "root"), &root, 1, &r) == KJIT_ERROR_KERNEL);
  void (*pointer)(void);
  REQUIRE(kjit_get_function_pointer(find(module, "turn"), "c64(c64)", &pointer) == KJIT_ERROR_UNSUPPORTED && says("does not go to or from a C function"));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f16(f16)", &pointer) == KJIT_ERROR_UNSUPPORTED);
  kjit_release_module(module);
}

static void test_compile_time(kjit_module *module)
{
  kjit_arg r, cube[2] = { kjit_arg_i64(3), kjit_arg_number(3) }, square[2] = { kjit_arg_i64(3), kjit_arg_number(2) };
  REQUIRE(kjit_call_function(find(module, "power"), cube, 2, &r) == KJIT_OK && r.value.i == 27);
  REQUIRE(kjit_call_function(find(module, "power"), square, 2, &r) == KJIT_OK && r.value.i == 9);
  kjit_arg apply[2] = { kjit_arg_function(find(module, "add")), kjit_arg_f64(1.25) };
  REQUIRE(kjit_call_function(find(module, "apply"), apply, 2, &r) == KJIT_OK && r.value.f64 == 2.5);
}

static void test_failures(kjit_module *module)
{
  kjit_arg r, n = kjit_arg_i32(20), good = kjit_arg_f64(9), bad = kjit_arg_f64(-1), zero = kjit_arg_i64(0);
  REQUIRE(kjit_call_function(find(module, "fib"), &n, 1, &r) == KJIT_OK && r.value.i == 6765);
  REQUIRE(kjit_call_function(find(module, "endless"), &zero, 1, &r) == KJIT_ERROR_KERNEL && says("the recursion of `endless` is too deep"));
  REQUIRE(kjit_call_function(find(module, "root"), &good, 1, &r) == KJIT_OK && r.value.f64 == 3);
  REQUIRE(kjit_call_function(find(module, "root"), &bad, 1, &r) == KJIT_ERROR_KERNEL && says("func `root`: a negative number") && says("functions.kir:20"));
  REQUIRE(kjit_call_function(find(module, "root"), &good, 1, &r) == KJIT_OK && r.value.f64 == 3);
  float x[3] = { 1, 2, 3 };
  int64_t length = 3;
  kjit_tensor tensor = tensor_of(x, 2, 32, &length, 1);
  kjit_arg at[2] = { kjit_arg_tensor(&tensor), kjit_arg_i64(2) };
  REQUIRE(kjit_call_function(find(module, "at"), at, 2, &r) == KJIT_OK && r.value.f32 == 3);
  at[1] = kjit_arg_i64(3); /* the context checks bounds */
  REQUIRE(kjit_call_function(find(module, "at"), at, 2, &r) == KJIT_ERROR_KERNEL && says("func `at`: index 3 of 0..2"));
  REQUIRE(kjit_call_function(find(module, "position"), &n, 1, &r) == KJIT_ERROR_UNSUPPORTED &&
          says("`threadIdx` in a function that is called from outside of kernels"));
  REQUIRE(kjit_call_function(find(module, "pair"), &n, 1, &r) == KJIT_ERROR_ARGUMENT &&
          says("func `pair` returns (i32, i32): result has to be a KJIT_ARG_BY_ADDRESS"));
  REQUIRE(kjit_call_function(find(module, "pair"), &n, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_call_function(find(module, "half"), &n, 0, &r) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_call_function(find(module, "half"), NULL, 1, &r) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_call_function(NULL, &n, 1, &r) == KJIT_ERROR_MISUSE);
}

static void test_pointers(kjit_module *module)
{
  union {
    void (*any)(void);
    double (*half)(double);
    int64_t (*mixed)(int8_t, uint16_t, bool, float, uint64_t);
    float (*total)(const float *, int64_t, int64_t);
    void (*fill)(double *, int64_t, int64_t, double);
    int32_t (*cube)(int32_t);
    bool (*is_even)(int32_t);
  } pointer;
  float x[4] = { 1, 2, 3, 4 };
  double y[4] = { 0 };
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64)", &pointer.any) == KJIT_OK && pointer.half(3) == 1.5);
  REQUIRE(kjit_get_function_pointer(find(module, "mixed"), "i64(i8, u16, bool, f32, u64)", &pointer.any) == KJIT_OK &&
          pointer.mixed(-1, 2, true, 3.5f, 4) == 1008);
  REQUIRE(kjit_get_function_pointer(find(module, "total"), "f32(const f32[:, :] C)", &pointer.any) == KJIT_OK && pointer.total(x, 2, 2) == 10);
  REQUIRE(kjit_get_function_pointer(find(module, "fill"), "void(f64[:], f64)", &pointer.any) == KJIT_OK &&
          (pointer.fill(y, 2, 2, 7), y[0] == 7 && y[1] == 0 && y[2] == 7));
  REQUIRE(kjit_get_function_pointer(find(module, "power"), "i32(i32, 3)", &pointer.any) == KJIT_OK && pointer.cube(-2) == -8);
  REQUIRE(kjit_get_function_pointer(find(module, "is_even"), " bool( i32 ) ", &pointer.any) == KJIT_OK && pointer.is_even(2) && !pointer.is_even(3));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f32(f64)", &pointer.any) == KJIT_ERROR_TYPE &&
          says("func `half` returns f64 for these arguments, the signature says f32"));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64 f64", &pointer.any) == KJIT_ERROR_SYNTAX);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64", &pointer.any) == KJIT_ERROR_SYNTAX);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "nothing(f64)", &pointer.any) != KJIT_OK);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64, f64)", &pointer.any) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_get_function_pointer(find(module, "root"), "f64(f64)", &pointer.any) == KJIT_ERROR_UNSUPPORTED && says("may fail"));
  REQUIRE(kjit_get_function_pointer(find(module, "fib"), "i64(i32)", &pointer.any) == KJIT_ERROR_UNSUPPORTED);
}

static void *call_often(void *data)
{
  kjit_function *add = data;
  for (int i = 0; i < 200; i++) {
    kjit_arg r, args[2] = { kjit_arg_i32(i), i % 2 ? kjit_arg_i32(1) : kjit_arg_i64(1) };
    if (kjit_call_function(add, args, 2, &r) != KJIT_OK || r.value.i != i + 1) return data;
  }
  return NULL;
}

static void test_threads(void)
{
  kjit_module *module = parse(calls);
  pthread_t threads[4];
  void *wrong;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, call_often, find(module, "add"));
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &wrong);
    REQUIRE(!wrong);
  }
  kjit_release_module(module);
}

/* ---- extern funcs of the host ---- */

static double scaled(double x, int32_t n) { return x * n; }
static double shifted(double x, int32_t n) { return x + n; }
static float sum_of(const float *x, int64_t count)
{
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i];
  return sum;
}

static void test_externs(void)
{
  kjit_module *open_module = parse("extern func step(x: f64, n: i32) -> f64\n"
                                   "extern func sum_of(x: const f32[:] C) -> f32\n"
                                   "func twice(x) { return step(step(x, 3), 3) }\n"
                                   "kernel k(out, x) { for i in grid_range(len(out)) { out[i] = step(x[i], 10) } }\n"
                                   "kernel sums(out, x) { for i in grid_range(len(out)) { out[i] = sum_of(x) } }\n"),
              *first = NULL, *second = NULL, *both = NULL;
  kjit_arg r, x = kjit_arg_f64(2);
  REQUIRE(kjit_call_function(find(open_module, "twice"), &x, 1, &r) == KJIT_ERROR_NAME && says("the extern func `step` has no function on the CPU"));
  REQUIRE(kjit_bind_extern(open_module, "step", (void (*)(void))scaled, NULL, 0, &first) == KJIT_OK);
  REQUIRE(kjit_bind_extern(open_module, "step", (void (*)(void))shifted, NULL, 0, &second) == KJIT_OK);
  kjit_release_module(open_module);
  REQUIRE(kjit_call_function(find(first, "twice"), &x, 1, &r) == KJIT_OK && r.value.f64 == 18);
  REQUIRE(kjit_call_function(find(second, "twice"), &x, 1, &r) == KJIT_OK && r.value.f64 == 8);
  REQUIRE(kjit_bind_extern(second, "sum_of", (void (*)(void))sum_of, NULL, 0, &both) == KJIT_OK);
  double values[3] = { 1, 2, 3 }, out[3] = { 0 };
  float floats[5] = { 1, 2, 3, 4, 5 }, sums[2] = { 0 };
  int64_t three = 3, five = 5, two = 2;
  kjit_tensor to = tensor_of(out, 2, 64, &three, 1), from = tensor_of(values, 2, 64, &three, 1), floats_tensor = tensor_of(floats, 2, 32, &five, 1),
              sums_tensor = tensor_of(sums, 2, 32, &two, 1);
  kjit_kernel *kernel;
  kjit_device *cpu;
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  kjit_launch_config config = { .device = cpu };
  kjit_arg args[2] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from) }, more[2] = { kjit_arg_tensor(&sums_tensor), kjit_arg_tensor(&floats_tensor) };
  REQUIRE(kjit_get_kernel(first, "k", &kernel) == KJIT_OK && kjit_launch(kernel, &config, args, 2) == KJIT_OK && out[0] == 10 && out[2] == 30);
  REQUIRE(kjit_get_kernel(both, "k", &kernel) == KJIT_OK && kjit_launch(kernel, &config, args, 2) == KJIT_OK && out[0] == 11 && out[2] == 13);
  REQUIRE(kjit_get_kernel(both, "sums", &kernel) == KJIT_OK && kjit_launch(kernel, &config, more, 2) == KJIT_OK && sums[0] == 15 && sums[1] == 15);
  REQUIRE(kjit_get_kernel(second, "sums", &kernel) == KJIT_OK && kjit_launch(kernel, &config, more, 2) == KJIT_ERROR_NAME);
  kjit_module *none = NULL;
  void (*pointer)(void);
  kjit_arg step[2] = { kjit_arg_f64(1), kjit_arg_i32(2) };
  REQUIRE(kjit_call_function(find(both, "step"), step, 2, &r) == KJIT_ERROR_ARGUMENT && says("`step` is extern"));
  REQUIRE(kjit_get_function_pointer(find(both, "step"), "f64(f64, i32)", &pointer) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_bind_extern(both, "twice", (void (*)(void))scaled, NULL, 0, &none) == KJIT_ERROR_NAME && says("no extern func"));
  REQUIRE(kjit_bind_extern(both, "nothing", (void (*)(void))scaled, NULL, 0, &none) == KJIT_ERROR_NAME);
  REQUIRE(kjit_bind_extern(both, "step", NULL, NULL, 0, &none) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_bind_extern(both, "step", NULL, "int step(void);", 15, &none) == KJIT_ERROR_SYNTAX && says("neither PTX"));
  REQUIRE(kjit_bind_extern(both, "step", NULL, "", 0, &none) == KJIT_ERROR_SYNTAX);
  kjit_release_module(both);
  kjit_release_module(first);
  kjit_release_module(second);
}

static kjit_module *build_caller(const char *name, int has_statement)
{
  kjit_builder *b;
  kjit_module *module = NULL;
  const double table[3] = { 0.5, 1.5, 2.5 };
  const int64_t three = 3;
  if (kjit_create_builder(context, "built", &b) != KJIT_OK) return NULL;
  kjit_node weights = kjit_constant(b, "weights", KJIT_F64, table, &three, 1);
  kjit_begin_extern(b, name, KJIT_F64);
  kjit_parameter(b, "x", KJIT_F64);
  kjit_parameter(b, "n", KJIT_I32);
  if (has_statement) kjit_return(b, kjit_float(b, 1));
  kjit_end(b);
  kjit_begin_function(b, "caller", KJIT_F64);
  kjit_attribute(b, "strict", NULL, 0);
  kjit_node x = kjit_parameter(b, "x", KJIT_ANY), last = kjit_integer(b, 2), args[2] = { x, kjit_integer(b, 4) };
  kjit_return(b, kjit_binary(b, KJIT_ADD, kjit_call(b, name, args, 2), kjit_index(b, weights, &last, 1)));
  kjit_end(b);
  (void)!kjit_finish_builder(b, &module);
  kjit_destroy_builder(b);
  return module;
}

static void test_builder(void)
{
  kjit_module *built = build_caller("step", 0), *bound = NULL, *changed = NULL;
  kjit_arg r, x = kjit_arg_f64(3);
  char *text = NULL;
  REQUIRE(built && kjit_copy_module_text(built, &text) == KJIT_OK && strstr(text, "extern func step(x: f64, n: i32) -> f64"));
  kjit_free(context, text);
  REQUIRE(kjit_bind_extern(built, "step", (void (*)(void))scaled, NULL, 0, &bound) == KJIT_OK);
  REQUIRE(kjit_call_function(find(bound, "caller"), &x, 1, &r) == KJIT_OK && r.value.f64 == 14.5);
  double more[4] = { 0, 0, 100, 0 };
  int64_t four = 4;
  kjit_tensor tensor = tensor_of(more, 2, 64, &four, 1);
  kjit_arg value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(bound, "weights", &value, &changed) == KJIT_OK);
  REQUIRE(kjit_call_function(find(changed, "caller"), &x, 1, &r) == KJIT_OK && r.value.f64 == 112);
  REQUIRE(!build_caller("no name", 0) && says("`no name` is no name of a C function"));
  REQUIRE(!build_caller("step", 1) && says("the extern func `step` has statements"));
  kjit_release_module(built);
  kjit_release_module(bound);
  kjit_release_module(changed);
}

/* ---- linked modules ---- */

static void test_link(void)
{
  kjit_module *module = parse("extern func blend(a, b, t)\n"
                              "extern const WEIGHT: f32\n"
                              "func clamp(x) { return min(max(x, 0), 1) }\n"
                              "func mix(t) { return blend(0., 10., clamp(t)) * WEIGHT }\n"),
              *library = parse("const WEIGHT: f32 = 2\n"
                               "func clamp(x) { return x > 100 ? 100 : x }\n"
                               "func blend(a, b, t = 0.5) { return clamp(a + (b - a) * t) }\n"
                               "kernel unused(x) { x[0] = clamp(x[0]) }\n"),
              *other = parse("func blend(a) { return a }\n"), *linked = NULL, *none = NULL;
  kjit_arg r, t = kjit_arg_f32(0.25f);
  REQUIRE(kjit_call_function(find(module, "mix"), &t, 1, &r) == KJIT_ERROR_TYPE && says("`blend` is extern"));
  REQUIRE(kjit_link_module(module, library, &linked) == KJIT_OK);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.type == KJIT_F32 && r.value.f32 == 5);
  t = kjit_arg_f32(7);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 20);
  t = kjit_arg_f32(50); /* the name that is found is the module's; the library's goes on meaning its own */
  REQUIRE(kjit_call_function(find(linked, "clamp"), &t, 1, &r) == KJIT_OK && r.value.f32 == 1);
  char *text = NULL;
  kjit_module *again = NULL;
  REQUIRE(kjit_copy_module_text(linked, &text) == KJIT_OK && kjit_parse_module(context, "again", text, strlen(text), &again) == KJIT_OK);
  t = kjit_arg_f32(0.25f);
  REQUIRE(kjit_call_function(find(again, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 5);
  kjit_free(context, text);
  REQUIRE(kjit_link_module(module, other, &none) == KJIT_ERROR_TYPE && says("`blend` is declared with 3 parameters, in the library it has 1"));
  REQUIRE(kjit_link_module(module, NULL, &none) == KJIT_ERROR_MISUSE);
  kjit_release_module(module);
  kjit_release_module(library);
  kjit_release_module(again);
  kjit_release_module(other);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 5);
  kjit_release_module(linked);
}

/* ---- constants ---- */

static void test_constants(void)
{
  kjit_module *module = parse("const N = 4\nconst SCALE: f32 = 1\nconst FLAG = false\nextern const TABLE: f64[3]\nextern const ANY: i32\nconst DOUBLE = 2 * N\n"
                              "const ROWS = { { 1, 2 }, { 3, 4 } }\nstruct s { a: f32[N] }\n"
                              "func get(x) { return FLAG ? x * SCALE : x + SCALE }\n"
                              "func twice(x) { return x + DOUBLE }\n"
                              "func pick(i: i64) { return TABLE[i] }\n"
                              "func corner(i: i64) { return ROWS[i, i] }\n"
                              "func static_if(x) { if FLAG { return x } else { return missing_types(x) } }\n"
                              "func missing_types(x) { return x[0, 0] }\n"),
              *scaled_module = NULL, *flagged = NULL, *tabled = NULL, *rows = NULL, *none = NULL;
  kjit_arg r, x = kjit_arg_f32(3), index = kjit_arg_i64(2), value = kjit_arg_number(2.5);
  REQUIRE(kjit_call_function(find(module, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 4);
  REQUIRE(kjit_call_function(find(module, "pick"), &index, 1, &r) == KJIT_ERROR_NAME && says("the extern constant `TABLE` has no value"));
  REQUIRE(kjit_set_constant(module, "SCALE", &value, &scaled_module) == KJIT_OK);
  REQUIRE(kjit_call_function(find(scaled_module, "get"), &x, 1, &r) == KJIT_OK && r.type == KJIT_F32 && r.value.f32 == 5.5f);
  REQUIRE(kjit_call_function(find(module, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 4);
  value = kjit_arg_bool(1);
  REQUIRE(kjit_set_constant(scaled_module, "FLAG", &value, &flagged) == KJIT_OK);
  REQUIRE(kjit_call_function(find(flagged, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 7.5f);
  REQUIRE(kjit_call_function(find(flagged, "static_if"), &x, 1, &r) == KJIT_OK && r.value.f32 == 3);
  REQUIRE(kjit_call_function(find(scaled_module, "static_if"), &x, 1, &r) == KJIT_ERROR_TYPE);
  double table[6] = { 1, 0, 2, 0, 4, 0 };
  int64_t three = 3, stride = 2, four = 4, shape[2] = { 3, 2 };
  kjit_tensor tensor = tensor_of(table, 2, 64, &three, 1), matrix = tensor_of(table, 2, 64, shape, 2);
  tensor.strides = &stride;
  value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(flagged, "TABLE", &value, &tabled) == KJIT_OK);
  memset(table, 0, sizeof table); /* it has been captured */
  REQUIRE(kjit_call_function(find(tabled, "pick"), &index, 1, &r) == KJIT_OK && r.type == KJIT_F64 && r.value.f64 == 4);
  value = kjit_arg_tensor(&matrix);
  table[3] = 9;
  REQUIRE(kjit_set_constant(module, "ROWS", &value, &rows) == KJIT_OK);
  kjit_arg one = kjit_arg_i64(1);
  REQUIRE(kjit_call_function(find(rows, "corner"), &one, 1, &r) == KJIT_OK && r.type == KJIT_F64 && r.value.f64 == 9);
  /* What does not fit is refused. */
  tensor.shape = &four;
  value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(module, "TABLE", &value, &none) == KJIT_ERROR_TYPE && says("dimension 0 has 3 elements by its type, 4 in the array"));
  REQUIRE(kjit_set_constant(module, "SCALE", &value, &none) == KJIT_ERROR_TYPE && says("expected a scalar, got an array"));
  value = kjit_arg_number(1.5);
  REQUIRE(kjit_set_constant(module, "ANY", &value, &none) == KJIT_ERROR_TYPE && says("constant `ANY`: expected i32"));
  REQUIRE(kjit_set_constant(module, "TABLE", &value, &none) == KJIT_ERROR_TYPE);
  REQUIRE(kjit_set_constant(module, "N", &value, &none) == KJIT_ERROR_TYPE && says("the layout of struct `s` depends on it"));
  REQUIRE(kjit_set_constant(module, "get", &value, &none) == KJIT_ERROR_NAME);
  REQUIRE(kjit_set_constant(module, "nothing", &value, &none) == KJIT_ERROR_NAME);
  REQUIRE(kjit_set_constant(module, "SCALE", NULL, &none) == KJIT_ERROR_MISUSE);
  kjit_release_module(rows);
  kjit_release_module(tabled);
  kjit_release_module(module);
  kjit_release_module(flagged);
  kjit_release_module(scaled_module);
}

/* ---- imports ---- */

static int asked;
static int answer(void *user, const char *importer, const char *name, kjit_import *import)
{
  static const struct {
    const char *name, *text;
  } sources[] = { { "a", "import \"b\"\nimport \"main\"\nfunc a(x) { return b(x) + 1 }\n" },
                  { "b", "import \"a\"\nfunc b(x) { return 2 * x }\n" },
                  { "broken", "func (\n" } };
  (void)user, (void)importer;
  asked++;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    if (!strcmp(sources[i].name, name)) *import = (kjit_import){ sources[i].name, sources[i].text, strlen(sources[i].text) };
  if (!strcmp(name, "main")) *import = (kjit_import){ "main.kir", "", 0 }; /* what the host parses */
  return import->name != NULL;
}

static void test_imports(void)
{
  static const char text[] = "import \"a\"\nimport \"b\"\nfunc top(x) { return a(x) + b(x) }\n", bad[] = "import \"broken\"\n",
                    missing[] = "import \"a\"\nimport \"absent\"\n";
  kjit_config config;
  kjit_context *outer = context;
  kjit_module *module = NULL;
  kjit_arg r, x = kjit_arg_i32(5);
  kjit_init_config(&config);
  config.find_import = answer;
  config.cache_directory = "";
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_parse_module(context, "main.kir", text, strlen(text), &module) == KJIT_OK && asked == 5);
  REQUIRE(kjit_call_function(find(module, "top"), &x, 1, &r) == KJIT_OK && r.value.i == 21);
  REQUIRE(kjit_parse_module(context, "main.kir", bad, strlen(bad), &module) == KJIT_ERROR_SYNTAX && says("broken:1:6"));
  REQUIRE(kjit_parse_module(context, "main.kir", missing, strlen(missing), &module) == KJIT_ERROR_NAME && says("main.kir:2:8") && says("`absent`"));
  kjit_destroy_context(context);
  context = outer;
}

int main(void)
{
  kjit_config config;
  kjit_init_config(&config);
  config.cache_directory = "";
  config.checks = KJIT_CHECK_BOUNDS;
  if (kjit_create_context(&config, &context) != KJIT_OK) return EXIT_FAILURE;
  kjit_module *module = parse(calls);
  test_scalars(module);
  test_arrays(module);
  test_compile_time(module);
  test_composed();
  test_failures(module);
  test_pointers(module);
  kjit_release_module(module);
  test_threads();
  test_externs();
  test_builder();
  test_link();
  test_constants();
  test_imports();
  kjit_destroy_context(context);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

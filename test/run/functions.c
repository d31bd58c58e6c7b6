/* Funcs that the application calls, and their C function pointers.
 * RUN: %programs/functions
 */
#include "functions.h"

#include <math.h>
#include <pthread.h>

static const char calls[] =
  "func add(a, b) { return a + b }\n"
  "func half(x: f64) -> f64 { return 0.5 * x }\n"
  "func mixed(a: i8, b: u16, c: bool, d: f32, e: u64) -> i64 { return i64(a) + i64(b) + (c ? 1000 "
  ": 0) + i64(d) + i64(e) }\n"
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
  "func nest(x) { return x, (f64(x), x), x }\n"
  "func many(a: f64, b: f32, c: i32, d: f64, e: f32, f: i64, g: f64, h: f64, i: f64, j: f64, k: "
  "i8, l: u8, m: f64, n: i32, o: i32, p: i32, q: i32)\n"
  "  -> f64 { return a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q }\n";

static void test_scalars(kjit_module *module)
{
  kjit_arg r;
  kjit_arg ints[2] = { kjit_arg_i32(40), kjit_arg_i32(2) },
           mixed[2] = { kjit_arg_i64(1), kjit_arg_f32(0.5f) },
           numbers[2] = { kjit_arg_number(1.5), kjit_arg_f32(2) };
  kjit_function *add = find(module, "add");
  REQUIRE(kjit_call_function(add, ints, 2, &r) == KJIT_OK && r.type == KJIT_I32 && r.value.i == 42);
  REQUIRE(kjit_call_function(add, mixed, 2, &r) == KJIT_OK && r.type == KJIT_F32 &&
          r.value.f32 == 1.5f);
  REQUIRE(kjit_call_function(add, numbers, 2, &r) == KJIT_OK && r.type == KJIT_F32 &&
          r.value.f32 == 3.5f);
  REQUIRE(kjit_call_function(add, ints, 2, NULL) == KJIT_OK);
  kjit_arg one = kjit_arg_i32(7);
  REQUIRE(kjit_call_function(find(module, "half"), &one, 1, &r) == KJIT_OK && r.type == KJIT_F64 &&
          r.value.f64 == 3.5);
  int8_t a = -5;
  uint16_t b = 65535;
  kjit_arg all[5] = { kjit_arg_value(KJIT_I8, &a), kjit_arg_value(KJIT_U16, &b), kjit_arg_bool(1),
                      kjit_arg_f32(2.75f), kjit_arg_u64(1u << 31) };
  REQUIRE(kjit_call_function(find(module, "mixed"), all, 5, &r) == KJIT_OK && r.type == KJIT_I64 &&
          r.value.i == -5 + 65535 + 1000 + 2 + (1ll << 31));
  int16_t wide = -130;
  kjit_arg narrow = kjit_arg_value(KJIT_I16, &wide), large = kjit_arg_u32(0xfffffff0u),
           even = kjit_arg_i32(-4), odd = kjit_arg_i32(3);
  REQUIRE(kjit_call_function(find(module, "narrow"), &narrow, 1, &r) == KJIT_OK &&
          r.type == KJIT_I8 && r.value.i == 126);
  REQUIRE(kjit_call_function(find(module, "lowest"), &large, 1, &r) == KJIT_OK &&
          r.type == KJIT_U8 && r.value.u == 0xf0);
  REQUIRE(kjit_call_function(find(module, "is_even"), &even, 1, &r) == KJIT_OK &&
          r.type == KJIT_BOOL && r.value.u == 1);
  REQUIRE(kjit_call_function(find(module, "is_even"), &odd, 1, &r) == KJIT_OK && r.value.u == 0);
  kjit_arg seventeen[17];
  for (int i = 0; i < 17; i++) seventeen[i] = kjit_arg_number(i + 1);
  REQUIRE(kjit_call_function(find(module, "many"), seventeen, 17, &r) == KJIT_OK &&
          r.type == KJIT_F64 && r.value.f64 == 17 * 18 / 2);
}

static void test_arrays(kjit_module *module)
{
  kjit_arg r;
  float x[12];
  int64_t shape[2] = { 3, 4 }, strides[2] = { 1, 3 }, length = 12, none[2] = { 0, 4 };
  for (int i = 0; i < 12; i++) x[i] = (float)i;
  kjit_tensor rows = tensor_of(x, 2, 32, shape, 2), columns = rows,
              flat = tensor_of(x, 2, 32, &length, 1), empty = tensor_of(x, 2, 32, none, 2);
  columns.strides = strides;
  kjit_arg row = kjit_arg_tensor(&rows), column = kjit_arg_tensor(&columns),
           nothing = kjit_arg_tensor(&empty);
  REQUIRE(kjit_call_function(find(module, "total"), &row, 1, &r) == KJIT_OK && r.type == KJIT_F32 &&
          r.value.f32 == 66);
  REQUIRE(kjit_call_function(find(module, "total"), &column, 1, &r) == KJIT_OK &&
          r.value.f32 == 66);
  REQUIRE(kjit_call_function(find(module, "total"), &nothing, 1, &r) == KJIT_OK &&
          r.value.f32 == 0);
  shape[0] = 2;
  strides[0] = 4, strides[1] = 2; /* every other element of two rows */
  shape[1] = 2;
  REQUIRE(kjit_call_function(find(module, "total"), &column, 1, &r) == KJIT_OK &&
          r.value.f32 == 0 + 2 + 4 + 6);
  kjit_arg fill[2] = { kjit_arg_tensor(&flat), kjit_arg_number(2.5) };
  REQUIRE(kjit_call_function(find(module, "fill"), fill, 2, &r) == KJIT_OK && r.type == KJIT_VOID &&
          x[0] == 2.5f && x[11] == 2.5f);
  kjit_device *cpu;
  kjit_array *array;
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  REQUIRE(kjit_create_array(cpu, KJIT_F64, &length, 1, &array) == KJIT_OK);
  kjit_arg own[2] = { kjit_arg_array(array), kjit_arg_f64(4) };
  REQUIRE(kjit_call_function(find(module, "fill"), own, 2, NULL) == KJIT_OK &&
          ((double *)kjit_get_tensor(array)->data)[11] == 4);
  kjit_release_array(array);
}

/* A result that does not fit is refused before the func runs, and the caller learns its size. */
static void test_sizes(kjit_module *module)
{
  int32_t items[3] = { -1, -1, -1 };
  size_t size_bytes = 7, none = 0;
  kjit_arg n = kjit_arg_i32(7), r = kjit_make_arg(KJIT_ARG_BY_ADDRESS, KJIT_ANY);
  kjit_function *pair = find(module, "pair");
  r.value.address = items;
  REQUIRE(kjit_call_function_into(pair, &n, 1, &size_bytes, &r) == KJIT_ERROR_ARGUMENT &&
          says("function `pair` returns 8 bytes, but the destination has 7 bytes"));
  REQUIRE(size_bytes == 8 && r.value.address == items && items[0] == -1);
  REQUIRE(kjit_call_function_into(pair, &n, 1, &size_bytes, &r) == KJIT_OK && size_bytes == 8);
  REQUIRE(items[0] == 7 && items[1] == 7 && items[2] == -1);
  double nested[5] = { -1, -1, -1, -1, -1 }; /* i8, (f64, i8), i8, with the gaps of a C struct */
  kjit_arg one = kjit_arg_i8(1);
  r.value.address = nested;
  size_bytes = 31;
  REQUIRE(kjit_call_function_into(find(module, "nest"), &one, 1, &size_bytes, &r) ==
            KJIT_ERROR_ARGUMENT &&
          size_bytes == 32);
  REQUIRE(kjit_call_function_into(find(module, "nest"), &one, 1, &size_bytes, &r) == KJIT_OK);
  REQUIRE(*(int8_t *)nested == 1 && nested[1] == 1 && *(int8_t *)&nested[2] == 1 &&
          *(int8_t *)&nested[3] == 1 && nested[4] == -1);
  kjit_arg x = kjit_arg_f64(3), scalar; /* needs no memory */
  REQUIRE(kjit_call_function_into(find(module, "half"), &x, 1, &none, &scalar) == KJIT_OK &&
          scalar.type == KJIT_F64 && scalar.value.f64 == 1.5);
  REQUIRE(kjit_call_function_into(pair, &n, 1, NULL, &r) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_call_function_into(NULL, &n, 1, &none, &r) == KJIT_ERROR_MISUSE);
}

static kjit_module *parse_composed(void)
{
  return parse("struct particle { x: f64; id: i8; v: f32[3] }\n"
               "func move(p: particle, dt: f32) -> particle {\n  var q = p\n  q.x += p.v[1] * dt\n "
               " q.id = p.id + 1\n  return q\n}\n"
               "func pair(x, y) { return x, y }\n"
               "func nothing() {\n  var n = 3\n  for i in range(n) { n += i }\n  if n == 7 { raise "
               "\"never\" }\n  return 4, 2.5\n}\n"
               "func nest(x: i8) { return x, (2.5, x), true }\n"
               "func turn(z: c64) { return z * z }\n"
               "func add4(a: f32x4, b: f32x4) { return a + b }\n"
               "func half(x: f16) { return x * 0.5 }\n"
               "func small(x: bf16) -> bf16 { return x + x }\n"
               "func root(x: f32) {\n  if x < 0 { raise \"negative\" }\n  return sqrt(x), x\n}\n");
}

static void test_structs_and_tuples(void)
{
  kjit_module *module = parse_composed();
  typedef struct particle {
    double x;
    int8_t id;
    float v[3];
  } particle;
  kjit_type type = KJIT_ANY;
  const kjit_field fields[3] = { { "x", KJIT_F64, 0, { 0 } },
                                 { "id", KJIT_I8, 0, { 0 } },
                                 { "v", KJIT_F32, 1, { 3 } } };
  type = kjit_get_struct_type(context, "particle", fields, 3, 0);
  particle p = { 1.5, 126, { 1, 2, 3 } }, q = { 0 };
  kjit_arg move[2] = { kjit_arg_value(type, &p), kjit_arg_f32(0.25f) },
           r = kjit_arg_value(KJIT_ANY, &q);
  REQUIRE(kjit_call_function(find(module, "move"), move, 2, &r) == KJIT_OK && r.type == type &&
          q.x == 2 && q.id == 127 && q.v[2] == 3 && p.x == 1.5);
  struct {
    int8_t first;
    double second;
  } two = { 0 };
  int8_t seven = 7;
  kjit_arg pair[2] = { kjit_arg_value(KJIT_I8, &seven), kjit_arg_f64(0.125) };
  r = kjit_arg_value(KJIT_ANY, &two);
  REQUIRE(kjit_call_function(find(module, "pair"), pair, 2, &r) == KJIT_OK && two.first == 7 &&
          two.second == 0.125);
  struct {
    int32_t first;
    double second;
  } constants = { 0 };
  /* the func has no parameters, but the code gets the address of a failure record and of the
   * result */
  r = kjit_arg_value(KJIT_ANY, &constants);
  REQUIRE(kjit_call_function(find(module, "nothing"), NULL, 0, &r) == KJIT_OK &&
          constants.first == 4 && constants.second == 2.5);
  struct {
    int8_t a;
    struct {
      double b;
      int8_t c;
    } inner;
    bool d;
  } nested = { 0 };
  r = kjit_arg_value(KJIT_ANY, &nested);
  REQUIRE(kjit_call_function(find(module, "nest"), pair, 1, &r) == KJIT_OK && nested.a == 7 &&
          nested.inner.b == 2.5 && nested.inner.c == 7 && nested.d);
  float roots[2] = { 0 };
  kjit_arg root = kjit_arg_f32(9);
  r = kjit_arg_value(KJIT_ANY, roots);
  REQUIRE(kjit_call_function(find(module, "root"), &root, 1, &r) == KJIT_OK && roots[0] == 3 &&
          roots[1] == 9);
  root = kjit_arg_f32(-1);
  REQUIRE(kjit_call_function(find(module, "root"), &root, 1, &r) == KJIT_ERROR_KERNEL);
  kjit_release_module(module);
}

static void test_small_and_wide(void)
{
  kjit_module *module = parse_composed();
  float z[2] = { 1, 2 }, w[2] = { 0 };
  kjit_arg turn = kjit_arg_value(KJIT_C64, z), r = kjit_arg_value(KJIT_ANY, w);
  REQUIRE(kjit_call_function(find(module, "turn"), &turn, 1, &r) == KJIT_OK && r.type == KJIT_C64 &&
          w[0] == -3 && w[1] == 4);
  float a[4] = { 1, 2, 3, 4 }, b[4] = { 10, 20, 30, 40 }, c[4] = { 0 };
  kjit_type f32x4 = KJIT_ANY;
  REQUIRE(kjit_parse_type(context, "f32x4", &f32x4) == KJIT_OK);
  kjit_arg add[2] = { kjit_arg_value(f32x4, a), kjit_arg_value(f32x4, b) };
  r = kjit_arg_value(KJIT_ANY, c);
  REQUIRE(kjit_call_function(find(module, "add4"), add, 2, &r) == KJIT_OK && r.type == f32x4 &&
          c[0] == 11 && c[3] == 44);
  uint16_t three = 0x4200, one = 0x3f80; /* f16 3, bf16 1 */
  kjit_arg half = kjit_arg_value(KJIT_F16, &three), small = kjit_arg_value(KJIT_BF16, &one);
  REQUIRE(kjit_call_function(find(module, "half"), &half, 1, &r) == KJIT_OK && r.type == KJIT_F16 &&
          r.value.u == 0x3e00);
  REQUIRE(kjit_call_function(find(module, "small"), &small, 1, &r) == KJIT_OK &&
          r.type == KJIT_BF16 && r.value.u == 0x4000);
  void (*pointer)(void);
  REQUIRE(kjit_get_function_pointer(find(module, "turn"), "c64(c64)", &pointer) ==
            KJIT_ERROR_UNSUPPORTED &&
          says("has a type that a C function cannot pass or return"));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f16(f16)", &pointer) ==
          KJIT_ERROR_UNSUPPORTED);
  kjit_release_module(module);
}

static void test_compile_time(kjit_module *module)
{
  kjit_arg r, cube[2] = { kjit_arg_i64(3), kjit_arg_number(3) },
              square[2] = { kjit_arg_i64(3), kjit_arg_number(2) };
  REQUIRE(kjit_call_function(find(module, "power"), cube, 2, &r) == KJIT_OK && r.value.i == 27);
  REQUIRE(kjit_call_function(find(module, "power"), square, 2, &r) == KJIT_OK && r.value.i == 9);
  kjit_arg apply[2] = { kjit_arg_function(find(module, "add")), kjit_arg_f64(1.25) };
  REQUIRE(kjit_call_function(find(module, "apply"), apply, 2, &r) == KJIT_OK && r.value.f64 == 2.5);
}

static void test_failures(kjit_module *module)
{
  kjit_arg r, n = kjit_arg_i32(20), good = kjit_arg_f64(9), bad = kjit_arg_f64(-1),
              zero = kjit_arg_i64(0);
  REQUIRE(kjit_call_function(find(module, "fib"), &n, 1, &r) == KJIT_OK && r.value.i == 6765);
  REQUIRE(kjit_call_function(find(module, "endless"), &zero, 1, &r) == KJIT_ERROR_KERNEL &&
          says("the recursion of `endless` is too deep"));
  REQUIRE(kjit_call_function(find(module, "root"), &good, 1, &r) == KJIT_OK && r.value.f64 == 3);
  REQUIRE(kjit_call_function(find(module, "root"), &bad, 1, &r) == KJIT_ERROR_KERNEL &&
          says("function `root`: a negative number") && says("functions.kir:20"));
  REQUIRE(kjit_call_function(find(module, "root"), &good, 1, &r) == KJIT_OK && r.value.f64 == 3);
  float x[3] = { 1, 2, 3 };
  int64_t length = 3;
  kjit_tensor tensor = tensor_of(x, 2, 32, &length, 1);
  kjit_arg at[2] = { kjit_arg_tensor(&tensor), kjit_arg_i64(2) };
  REQUIRE(kjit_call_function(find(module, "at"), at, 2, &r) == KJIT_OK && r.value.f32 == 3);
  at[1] = kjit_arg_i64(3); /* the context checks bounds */
  REQUIRE(kjit_call_function(find(module, "at"), at, 2, &r) == KJIT_ERROR_KERNEL &&
          says("function `at`: index 3 of 0..2"));
  REQUIRE(kjit_call_function(find(module, "position"), &n, 1, &r) == KJIT_ERROR_UNSUPPORTED &&
          says("`threadIdx` cannot be used in a function that is called outside of a kernel"));
  REQUIRE(kjit_call_function(find(module, "pair"), &n, 1, &r) == KJIT_ERROR_ARGUMENT &&
          says("function `pair` returns (i32, i32); pass a KJIT_ARG_BY_ADDRESS"));
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
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64)", &pointer.any) == KJIT_OK &&
          pointer.half(3) == 1.5);
  REQUIRE(kjit_get_function_pointer(find(module, "mixed"), "i64(i8, u16, bool, f32, u64)",
                                    &pointer.any) == KJIT_OK &&
          pointer.mixed(-1, 2, true, 3.5f, 4) == 1008);
  REQUIRE(kjit_get_function_pointer(find(module, "total"), "f32(const f32[:, :] C)",
                                    &pointer.any) == KJIT_OK &&
          pointer.total(x, 2, 2) == 10);
  REQUIRE(kjit_get_function_pointer(find(module, "fill"), "void(f64[:], f64)", &pointer.any) ==
            KJIT_OK &&
          (pointer.fill(y, 2, 2, 7), y[0] == 7 && y[1] == 0 && y[2] == 7));
  REQUIRE(kjit_get_function_pointer(find(module, "power"), "i32(i32, 3)", &pointer.any) ==
            KJIT_OK &&
          pointer.cube(-2) == -8);
  REQUIRE(kjit_get_function_pointer(find(module, "is_even"), " bool( i32 ) ", &pointer.any) ==
            KJIT_OK &&
          pointer.is_even(2) && !pointer.is_even(3));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f32(f64)", &pointer.any) ==
            KJIT_ERROR_TYPE &&
          says("function `half` returns f64 for these arguments, but the signature says f32"));
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64 f64", &pointer.any) ==
          KJIT_ERROR_SYNTAX);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64", &pointer.any) ==
          KJIT_ERROR_SYNTAX);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "nothing(f64)", &pointer.any) != KJIT_OK);
  REQUIRE(kjit_get_function_pointer(find(module, "half"), "f64(f64, f64)", &pointer.any) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_get_function_pointer(find(module, "root"), "f64(f64)", &pointer.any) ==
            KJIT_ERROR_UNSUPPORTED &&
          says("can fail"));
  REQUIRE(kjit_get_function_pointer(find(module, "fib"), "i64(i32)", &pointer.any) ==
          KJIT_ERROR_UNSUPPORTED);
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

static void test_functions(void)
{
  kjit_module *module = parse(calls);
  test_scalars(module);
  test_arrays(module);
  test_sizes(module);
  test_compile_time(module);
  test_structs_and_tuples();
  test_small_and_wide();
  test_failures(module);
  test_pointers(module);
  kjit_release_module(module);
  test_threads();
}

int main(void) { return run_tests(test_functions); }

/* Grids that a launch evaluates: random expressions, compared with values that this test computes
 * with the rules of docs/ir.md. Each is evaluated on the slow path and on the fast path. */
#include "gpu_test.h"

#include <stdlib.h>

#include "launch/fast_path.h"

static int set_up(void **state)
{
  int failure = set_up_gpus(state);
  fake.has_tight_plans = true;
  return failure;
}

/* ---- random expressions, and their values ---- */

typedef struct arguments {
  int32_t n;
  int64_t m;
  uint32_t u;
  int64_t length, rows, columns;
} arguments;

enum { BLOCK = 32 };

/* WEAK: a constant of the source without a type */
typedef enum type { WEAK, I32, I64, U32 } type;

typedef struct value {
  type type;
  bool is_refused, is_constant;
  __int128 number;
} value;

static uint32_t seed;

static uint32_t pick(uint32_t count)
{
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % count;
}

static __int128 wrap(type type, __int128 number)
{
  return type == I32   ? (int32_t)(uint32_t)number
         : type == U32 ? (uint32_t)number
         : type == I64 ? (int64_t)(uint64_t)number
                       : number;
}

static bool is_beyond(type type, __int128 number)
{
  const __int128 least[] = { INT64_MIN, INT32_MIN, INT64_MIN, 0 },
                 most[] = { UINT64_MAX, INT32_MAX, INT64_MAX, UINT32_MAX };
  return number < least[type] || number > most[type];
}

static value convert(value v, type type)
{
  v.is_refused |= v.type == WEAK && is_beyond(type, v.number);
  return (value){ type, v.is_refused, v.is_constant, v.is_refused ? 0 : wrap(type, v.number) };
}

static type join(type a, type b)
{
  if (a == b || b == WEAK) return a;
  return a == WEAK ? b : I64;
}

static __int128 divide(__int128 x, __int128 y)
{
  return y ? x / y - (x % y != 0 && (x < 0) != (y < 0)) : 0;
}

static value combine(uint32_t op, value x, value y)
{
  type type = join(x.type, y.type);
  x = convert(x, type);
  y = convert(y, type);
  __int128 a = x.number, b = y.number, results[] = { a + b,
                                                     a - b,
                                                     a * b,
                                                     divide(a, b),
                                                     b ? a - divide(a, b) * b : 0,
                                                     a < b ? a : b,
                                                     a > b ? a : b,
                                                     -divide(-a, b) };
  return (value){ type, x.is_refused || y.is_refused, x.is_constant && y.is_constant,
                  wrap(type, results[op]) };
}

static value make_leaf(const arguments *given, kj_buffer *text)
{
  const struct {
    const char *text;
    value value;
  } rows[] = { { "n", { .type = I32, .number = given->n } },
               { "m", { .type = I64, .number = given->m } },
               { "u", { .type = U32, .number = given->u } },
               { "len(x)", { .type = I64, .number = given->length } },
               { "x.size", { .type = I64, .number = given->length } },
               { "x.shape[-1]", { .type = I64, .number = given->length } },
               { "y.shape[0]", { .type = I64, .number = given->rows } },
               { "y.shape[1]", { .type = I64, .number = given->columns } },
               { "y.shape[-2]", { .type = I64, .number = given->rows } },
               { "y.T.shape[0]", { .type = I64, .number = given->columns } },
               { "y[2:].size",
                 { .type = I64,
                   .number = (given->rows > 2 ? given->rows - 2 : 0) * given->columns } },
               { "len(y[0])", { .type = I64, .number = given->columns } },
               { "C", { .type = WEAK, .is_constant = true, .number = 7 } },
               { "D", { .type = I32, .is_constant = true, .number = 9 } },
               { "5i64", { .type = I64, .is_constant = true, .number = 5 } } };
  enum { COUNT = sizeof rows / sizeof *rows };
  uint32_t index = pick(COUNT + 6);
  if (index < COUNT) {
    kj_append_text(text, rows[index].text);
    return rows[index].value;
  }
  /* some literals do not fit i32 or u32 */
  int64_t number = pick(8) ? pick(40) : INT32_MAX + (int64_t)pick(3) * INT32_MAX + pick(4);
  value literal = { .type = WEAK, .is_constant = true, .number = number };
  kj_append_format(text, "%lld", (long long)number);
  return literal;
}

static value make(const arguments *given, uint32_t depth, kj_buffer *text)
{
  static const char *const operators[] = { " + ", " - ", " * ", " // ",
                                           " % ", "min", "max", "ceil_div" };
  enum { COUNT = 8, FIRST_CALL = 5 };
  if (!depth || !pick(5)) return make_leaf(given, text);
  uint32_t op = pick(COUNT + 3);
  if (op < COUNT) {
    bool is_call = op >= FIRST_CALL;
    kj_append_format(text, "%s(", is_call ? operators[op] : "");
    value x = make(given, depth - 1, text);
    kj_append_text(text, is_call ? ", " : operators[op]);
    value y = make(given, depth - 1, text);
    kj_append_text(text, ")");
    return combine(op, x, y);
  }
  static const char *const others[] = { "(-", "i32(", "i64(" };
  kj_append_text(text, others[op - COUNT]);
  value x = make(given, depth - 1, text);
  kj_append_text(text, ")");
  if (op > COUNT) return convert(x, op == COUNT + 1 ? I32 : I64);
  return (value){ x.type, x.is_refused, x.is_constant, wrap(x.type, -x.number) };
}

/* ---- launches ---- */

static kjit_array *make_plane(kjit_device *device, int64_t rows, int64_t columns)
{
  const int64_t shape[] = { rows, columns };
  kjit_array *array = NULL;
  expect_ok(device->context, kjit_create_array(device, KJIT_F32, shape, 2, &array));
  return array;
}

static void launch_once(kjit_kernel *kernel, const arguments *given, value expected,
                        const char *text)
{
  kjit_device *device = gpu(kernel->context, 0);
  kjit_array *x = make_vector(device, given->length, NULL),
             *y = make_plane(device, given->rows, given->columns);
  const kjit_arg all[] = { kjit_arg_array(x), kjit_arg_array(y), kjit_arg_i32(given->n),
                           kjit_arg_i64(given->m), kjit_arg_u32(given->u) };
  const kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  int launches = cuda.launches;
  kjit_status status = kjit_launch(kernel, &config, all, sizeof all / sizeof *all);
  bool is_valid =
    !expected.is_refused && expected.number >= 0 && expected.number <= device->info.max_grid[0];
  bool is_started = is_valid && expected.number > 0;
  if (status != (is_valid ? KJIT_OK : KJIT_ERROR_LAUNCH) ||
      cuda.launches != launches + is_started || (is_started && cuda.grid[0] != expected.number))
    fail_msg("@grid(%s): expected %lld, got status %d, grid %u; n %d, m %lld, u %u, x %lld, y %lld "
             "x %lld",
             text, (long long)expected.number, status, cuda.grid[0], given->n, (long long)given->m,
             given->u, (long long)given->length, (long long)given->rows, (long long)given->columns);
  kjit_release_array(x);
  kjit_release_array(y);
}

/* Large numbers reach the limits of i32 and i64. */
static arguments pick_arguments(void)
{
  bool is_large = !pick(4);
  return (arguments){ .n = is_large ? INT32_MAX - (int32_t)pick(3) : (int32_t)pick(50) - 10,
                      .m = is_large ? INT64_MAX - pick(3) : (int64_t)pick(5000) - 100,
                      .u = is_large ? UINT32_MAX - pick(3) : pick(100),
                      .length = 1 + pick(2000),
                      .rows = 1 + pick(40),
                      .columns = 1 + pick(40) };
}

static void test_random(void **state)
{
  enum { KERNELS = 400, LAUNCHES = 6, DEPTH = 3 };
  uint32_t started = 0, fast = 0;
  for (uint32_t i = 0; i < KERNELS; i++) {
    kj_buffer text = { 0 }, source = { 0 };
    arguments given[LAUNCHES];
    value expected[LAUNCHES];
    uint32_t start = seed = 1000 + i;
    for (int k = 0; k < LAUNCHES; k++) given[k] = pick_arguments();
    start = seed;
    for (int k = 0; k < LAUNCHES; k++) { /* the same expression, with other arguments */
      seed = start;
      kj_free_buffer(&text);
      expected[k] = make(&given[k], DEPTH, &text);
      started += !expected[k].is_refused && expected[k].number > 0;
    }
    if (expected[0].is_constant) { /* the parser checks these */
      kj_free_buffer(&text);
      continue;
    }
    kj_append_format(&source,
                     "const C = 7\nconst D: i32 = 9\n"
                     "kernel k(x, y, n: i32, m: i64, u: u32) @block(%d) @grid(%s) {\n"
                     "  x[0] = 1\n}\n",
                     BLOCK, text.text);
    kjit_module *module = parse(*state, source.text);
    kjit_kernel *kernel = kernel_of(module, "k");
    for (int k = 0; k < LAUNCHES; k++) launch_once(kernel, &given[k], expected[k], text.text);
    kjit_specialization *made = kjit_get_specialization(kernel, 0);
    fast += made && made->table;
    kjit_release_module(module);
    kj_free_buffer(&text);
    kj_free_buffer(&source);
  }
  assert_true(started > KERNELS / 2 && fast > KERNELS / 4);
}

/* An untyped number takes the type of the other operand on both paths, even if it needs 64 bits. */
static void test_numbers(void **state)
{
  kjit_module *module = parse(*state, "kernel k(r, a, n: i32) @block(32) @grid((n + a) % 1000) {\n"
                                      "  r[0] = 1\n}\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_array *array = make_vector(gpu(*state, 0), 4, NULL);
  for (int i = 0; i < 6; i++) {
    const kjit_arg all[] = { kjit_arg_array(array), kjit_arg_integer(((int64_t)1 << 33) + i % 3),
                             kjit_arg_i32(5 + i) };
    expect_ok(*state, kjit_launch(kernel, NULL, all, 3));
    assert_int_equal(cuda.grid[0], 5 + i + i % 3);
  }
  assert_non_null(kjit_get_specialization(kernel, 0)->table);
  assert_null(kjit_get_specialization(kernel, 1));
  kjit_release_array(array);
  kjit_release_module(module);
}

/* A grid_range whose extent is known only in the kernel does not prevent the fast path. */
static void test_unknown_range(void **state)
{
  kjit_module *module = parse(*state, "kernel k(r, n) {\n"
                                      "  let q = len(r)\n"
                                      "  for i in grid_range(n[0]) { r[i] = 1 }\n"
                                      "  for i in grid_range(q * 3) { r[i % q] = 1 }\n}\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_device *device = gpu(*state, 0);
  for (int i = 1; i < 5; i++) {
    kjit_array *r = make_vector(device, 1000 * i, NULL), *n = make_vector(device, 1, NULL);
    const kjit_arg all[] = { kjit_arg_array(r), kjit_arg_array(n) };
    expect_ok(*state, kjit_launch(kernel, NULL, all, 2));
    assert_int_equal(cuda.grid[0], (3000 * i + 255) / 256);
    kjit_release_array(r);
    kjit_release_array(n);
  }
  assert_int_equal(kj_count_launches(kjit_get_specialization(kernel, 0)), 4);
  kjit_release_module(module);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_gpus)
  const struct CMUnitTest tests[] = { TEST(test_random), TEST(test_numbers),
                                      TEST(test_unknown_range) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

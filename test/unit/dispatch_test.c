/* From a call to code: relations, facts, the key and the configuration of a launch. */
#include "fake_kernel.h"

/* ---- relations ---- */

static int relation_of(uint32_t i, uint32_t j) { return fake.relations[i * 4 + j]; }

static void test_relations(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  _Alignas(16) static float data[64];
  int64_t length[] = { 16 }, longer[] = { 17 };
  kjit_tensor r = vector(data, length), x = vector(data + 16, length),
              y = vector(data + 32, length);
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x),
                           kjit_arg_tensor(&y) };
  kjit_launch_config config = on_cpu(*state);
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_DISJOINT);
  assert_int_equal(relation_of(2, 0), KJ_RELATION_DISJOINT);
  /* neither array is written, so their relation is not part of the key */
  assert_int_equal(relation_of(2, 3), KJ_RELATION_ANY);
  assert_true(fake.signature.offsets32 && fake.signature.grid32);
  x.data = data;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_SAME);
  x.data = data + 4;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_ANY);
  x.data = data;
  x.shape = longer;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(fake.compilations, 3); /* another overlap has the same key */
  assert_int_equal(relation_of(0, 2), KJ_RELATION_ANY);
  int64_t backwards[] = { -1 };
  x = vector(data + 31, length);
  x.strides = backwards;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_DISJOINT); /* elements 16..31 */
  assert_int_equal(fake.compilations, 4);
  x.data = y.data = r.data = data;
  y = x = vector(data + 16, length);
  x.data = y.data = data + 16;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(fake.compilations, 4); /* overlapping inputs count like disjoint ones */
}

/* Waits for compilations for which no launch waits. On a busy machine they begin late. */
static void wait_for_compilations(int count)
{
  for (int i = 0; i < 100000 && fake.loads < count; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(fake.loads, count);
}

static void test_key_of_offsets(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { a[0, 0] = 1 }\n"), "k");
  static float data[4];
  int64_t shape[] = { 2, 1LL << 31 }, narrow[] = { 2, 16 }, zero[] = { 0, 0 },
          far[] = { 1LL << 31, 1 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  t.strides = zero;
  kjit_arg argument = kjit_arg_tensor(&t);
  kjit_launch_config config = on_cpu(*state);
  config.grid[0] = config.block[0] = 1;
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_false(fake.signature.offsets32);
  t.shape = narrow;
  /* the launch uses the existing code */
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  wait_for_compilations(2);
  assert_true(fake.signature.offsets32);
  t.strides = far;
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(fake.compilations, 2);
}

/* ---- configuration ---- */

static void launch_for(kjit_context *context, kjit_kernel *kernel, kjit_launch_config config,
                       const kjit_arg *arguments, size_t count, kjit_status status,
                       const char *message)
{
  kjit_launch_config base = on_cpu(context);
  config.device = base.device;
  kjit_status got = kjit_launch(kernel, &config, arguments, count);
  if (got != status) print_error("%s\n", last_message(context));
  assert_int_equal(got, status);
  if (message) assert_string_equal(last_message(context), message);
}

static void expect_grid(uint32_t x, uint32_t y, uint32_t z)
{
  assert_int_equal(last_grid[0], x);
  assert_int_equal(last_grid[1], y);
  assert_int_equal(last_grid[2], z);
}

static void test_attributes(void **state)
{
  static const char text[] =
    "const SIDE = 4\n"
    "kernel k(c, const tpb = SIDE * 2) @block(tpb, tpb) @grid(ceil_div(c.shape[1], tpb), "
    "max(c.shape[0] // tpb, 1)) { c[0, 0] = 1 }\n"
    "kernel l(c, n) @block(32) @grid(n + len(c)) { c[0, 0] = 1 }\n"
    "kernel m(c) @block(32) @grid(c[0]) { c[0] = 1 }\n";
  kjit_module *module = parse(*state, text);
  static float data[300];
  int64_t shape[] = { 10, 30 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(5) };
  kjit_kernel *kernel = kernel_of(module, "k");
  launch_for(*state, kernel, (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) },
             arguments, 1, KJIT_OK, NULL);
  expect_grid(4, 1, 1);
  assert_int_equal(last_block[0], 8);
  assert_int_equal(last_block[1], 8);
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 4, 1 }, .block = { 8, 8 } },
             arguments, 1, KJIT_OK, NULL);
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 4, 1 }, .block = { 8, 4 } },
             arguments, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: @block is 8 x 8 x 1, but the launch requests a block of 8 x 4 x 1");
  launch_for(*state, kernel,
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .grid = { 5 } },
             arguments, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: @grid is 4 x 1 x 1, but the launch requests a grid of 5 x 1 x 1");
  launch_for(*state, kernel_of(module, "l"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
             KJIT_OK, NULL);
  expect_grid(15, 1, 1);
  t.rank = 1;
  launch_for(
    *state, kernel_of(module, "m"),
    (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 1,
    KJIT_ERROR_LAUNCH,
    "@grid of kernel `m` cannot be evaluated before the launch: this loads an element of an array");
}

static void test_chosen_grids(void **state)
{
  static const char text[] =
    "kernel one(a) { for i in grid_range(len(a)) { a[i] = 1 } }\n"
    "kernel two(a) {\n  let rows, cols = a.shape\n  let all = rows * cols\n  let x = threadIdx.x\n "
    " for i in grid_range(all) { a[0, i] = x }\n}\n"
    "kernel shaped(a) { for idx in grid_range(a.shape) { a[idx] = 1 } }\n"
    "kernel unknown(n, a) { for i in grid_range(i64(n[0])) { a[i] = 1 } }\n"
    "kernel plain(a) { a[0] = 1 }\n";
  kjit_module *module = parse(*state, text);
  static float data[3000];
  int64_t length[] = { 3000 }, shape[] = { 30, 100 }, none[] = { 0 };
  kjit_tensor t = vector(data, length), u = vector(data, shape), empty = vector(data, none);
  u.rank = 2;
  kjit_arg line = kjit_arg_tensor(&t), matrix = kjit_arg_tensor(&u),
           nothing = kjit_arg_tensor(&empty), pair[] = { line, line };
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  assert_int_equal(last_block[0], 256);
  launch_for(*state, kernel_of(module, "two"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &matrix, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  launch_for(*state, kernel_of(module, "shaped"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &matrix, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  launch_for(*state, kernel_of(module, "unknown"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, pair, 2, KJIT_OK,
             NULL);
  assert_true(last_grid[0] >= 8 && last_grid[0] % 8 == 0);
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .threads = 1000, .block = { 100 } },
             &line, 1, KJIT_OK, NULL);
  expect_grid(10, 1, 1);
  launch_for(*state, kernel_of(module, "plain"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = 1000 },
             &line, 1, KJIT_OK, NULL);
  expect_grid(4, 1, 1);
  launch_for(*state, kernel_of(module, "plain"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1,
             KJIT_ERROR_LAUNCH,
             "kernel `plain` needs a launch configuration: a grid and a block; it has neither "
             "@block and @grid nor a grid_range from which kjit can choose them");
  uint64_t before = runs;
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &nothing, 1, KJIT_OK,
             NULL);
  assert_int_equal(runs, before);
  fake.elements_a_thread = 4;
  u.shape = (int64_t[]){ 30, 99 };
  static float odd[6000];
  t.data = odd + 1; /* not aligned: another key */
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1, KJIT_OK,
             NULL);
  expect_grid(3, 1, 1);
}

static void test_limits(void **state)
{
  kjit_module *module =
    parse(*state, "kernel k(a) { a[0] = 1 }\nkernel b(a) @launch_bounds(128) { a[0] = 1 }\n");
  static float data[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(data, length);
  kjit_arg a = kjit_arg_tensor(&t);
  kjit_kernel *kernel = kernel_of(module, "k");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 2048 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 2048 threads per block in x, but cpu allows at most 1024");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 64, 32 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 2048 threads per block, but cpu allows at most 1024");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1, 70000 }, .block = { 64 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 70000 blocks in y, but cpu allows at most 65535");
  launch_for(*state, kernel,
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                   .grid = { 1 },
                                   .block = { 64 },
                                   .dynamic_shared_bytes = 1 << 30 },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 1073741824 bytes of dynamic shared memory per block, but "
             "cpu allows at most 1048576");
  launch_for(
    *state, kernel_of(module, "b"),
    (kjit_launch_config){
      .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 256 } },
    &a, 1, KJIT_ERROR_LAUNCH,
    "kernel `b`: the launch has 256 threads per block, but its @launch_bounds allows at most 128");
  launch_for(*state, kernel_of(module, "b"),
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 128 } },
             &a, 1, KJIT_OK, NULL);
}

/* The evaluator gives up at a chain of lets in which each uses the previous one twice, and at
 * arithmetic that exceeds 64 bits. */
static void test_evaluator_is_bounded(void **state)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "kernel k(a, n) {\n  let x0 = n\n");
  for (int i = 1; i < 80; i++) kj_append_format(&text, "  let x%d = x%d + x%d\n", i, i - 1, i - 1);
  kj_append_text(&text, "  for i in grid_range(x79) { a[0] = 1 }\n}\n");
  kjit_module *module = parse(*state, text.text);
  kj_free_buffer(&text);
  static float data[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(data, length);
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i64(INT64_MAX) };
  launch_for(*state, kernel_of(module, "k"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
             KJIT_OK, NULL);
  assert_true(last_grid[0] >= 8);
}

static void test_evaluator_values(void **state)
{
  static const struct {
    const char *expr;
    uint32_t value;
  } rows[] = {
    { "7 // 2", 3 },
    { "-7 // 2 + 10", 6 },
    { "-7 % 3 + 1", 3 },
    { "2 ** 10", 1024 },
    { "n > 3 ? 5 : 6", 5 },
    { "n > 30 ? c[0] : 6", 6 },
    { "c.shape[-1]", 30 },
    { "c.size // 100", 3 },
    { "c.ndim", 2 },
    { "min(n, 3) + max(n, 3)", 7 },
    { "n == 4 and len(c) == 10 ? 8 : 9", 8 },
    { "(n << 3) | 1", 33 },
    { "~n + 10", 5 },
    { "i32(2.9 * n)", 11 },
    { "ceil_div(n, 3)", 2 },
    { "div_trunc(-7, 2) + 10", 7 },
    { "n // 0 + 1", 1 },
    { "SIDE * SIDE", 25 },
    { "abs(-n)", 4 },
    { "not (n < 3) ? 2 : 1", 2 },
  };
  static float data[300];
  int64_t shape[] = { 10, 30 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(4) };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kj_buffer text = { 0 };
    kj_append_format(&text, "const SIDE = 5\nkernel k(c, n) @block(32) @grid(%s) { c[0, 0] = 1 }\n",
                     rows[i].expr);
    kjit_module *module = parse(*state, text.text);
    kj_free_buffer(&text);
    launch_for(*state, kernel_of(module, "k"),
               (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
               KJIT_OK, NULL);
    if (last_grid[0] != rows[i].value) print_error("%s\n", rows[i].expr);
    assert_int_equal(last_grid[0], rows[i].value);
    kjit_release_module(module);
  }
}

/* ---- kjit_compile ---- */

static void test_compile_signatures(void **state)
{
  kjit_module *module = parse(*state, "func g(x) { return x }\nkernel k(r, a, n: i32, f: func, "
                                      "const t = 16) @block(t) { r[0] = f(a) + n }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_compile_options options = { .size_bytes = sizeof options };
  void *code;
  size_t size;
  options.target = "sm_90a";
  options.facts = "all";
  expect_ok(*state, kjit_compile(kernel, "f32[:, :] C, 2.5, i64, g, 32", &options, KJIT_STAGE_PTX,
                                 &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.target.arch, 90);
  assert_int_equal(fake.target.suffix, 'a');
  assert_int_equal(fake.arguments[0].facts, KJ_FACT_ALIGNED16);
  assert_int_equal(fake.arguments[1].type, KJ_WEAK_FLOAT);
  assert_int_equal(fake.arguments[2].type, KJIT_I32);
  assert_int_equal((int)fake.arguments[4].integer, 32);
  assert_int_equal(fake.signature.block[0], 32);
  expect_ok(*state,
            kjit_compile(kernel, "f32[:], f32, i32, g", NULL, KJIT_STAGE_LLVM, &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.signature.block[0], 16);
  static const struct {
    const char *signature;
    kjit_status status;
    const char *message;
  } wrong[] = {
    { "f32[:]", KJIT_ERROR_ARGUMENT, "kernel `k`: expected 5 arguments in the signature, got 1" },
    { "f32[:], f32, i32, g, 1, 2, 3", KJIT_ERROR_ARGUMENT,
      "kernel `k`: expected 5 arguments in the signature, got 7" },
    { "f32[:], f32, i32, h", KJIT_ERROR_NAME,
      "parameter `f`: expected the name of a function, got `h`" },
    { "f32[:], f32, f32[:], g", KJIT_ERROR_ARGUMENT, "parameter `n`: expected i32, got `f32[:]`" },
    { "f32[:], f32, i32, g, f32", KJIT_ERROR_ARGUMENT,
      "parameter `t`: expected a value, because the parameter is const, got `f32`" },
    { "f32[:], , i32, g", KJIT_ERROR_SYNTAX, "parameter `a`: expected a type or a value, got ``" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(kjit_compile(kernel, wrong[i].signature, NULL, KJIT_STAGE_LLVM, &code, &size),
                     wrong[i].status);
    assert_string_equal(last_message(*state), wrong[i].message);
  }
  kjit_compile_options older = {
    .size_bytes = sizeof older
  }; /* a shorter struct from an older header, without the later fields */
  memset(&older.ptxas, 0x7e, sizeof older - offsetof(kjit_compile_options, ptxas));
  older.size_bytes = offsetof(kjit_compile_options, ptxas);
  older.target = "sm_80";
  expect_ok(*state,
            kjit_compile(kernel, "f32[:], f32, i32, g", &older, KJIT_STAGE_PTX, &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.target.arch, 80);
  assert_int_equal(fake.target.ptx_version, 0);
  assert_int_equal(fake.signature.block[0], 16);
  older.size_bytes = offsetof(kjit_compile_options, debug);
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &older, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_MISUSE);
  options.target = "sm_9";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
  options.target = "cpu";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
  options.facts = "aligned17";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_LLVM, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_relations),        TEST(test_key_of_offsets),
    TEST(test_attributes),       TEST(test_chosen_grids),
    TEST(test_limits),           TEST(test_evaluator_is_bounded),
    TEST(test_evaluator_values), TEST(test_compile_signatures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

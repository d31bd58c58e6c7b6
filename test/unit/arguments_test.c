/* Binding of arguments: kinds, counts, annotations, conversions, layouts, and the messages of
 * rejected calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <math.h>

#include <kjit/function.h>

#include "code/specialization.h"
#include "launch/steps.h"
#include "fake_compiler.h"

static void do_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

static int set_up(void **state)
{
  *state = make_fake_context();
  fake.kernel = do_nothing;
  return 0;
}

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.loads, fake.unloads);
  return 0;
}

static kjit_tensor tensor(void *data, int32_t rank, uint8_t code, uint8_t bits, int64_t *shape,
                          int64_t *strides)
{
  return (kjit_tensor){ .data = data,
                        .device_type = 1,
                        .rank = rank,
                        .code = code,
                        .bits = bits,
                        .lanes = 1,
                        .shape = shape,
                        .strides = strides };
}

static kjit_launch_config on(kjit_context *context)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device), KJIT_OK);
  return config;
}

static void expect_failure(kjit_kernel *kernel, const kjit_arg *arguments, size_t count,
                           const char *message)
{
  kjit_context *context = kernel->context;
  kjit_launch_config config = on(context);
  assert_int_equal(kjit_launch(kernel, &config, arguments, count), KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(context), message);
}

static void expect_success(kjit_kernel *kernel, const kjit_arg *arguments, size_t count)
{
  kjit_launch_config config = on(kernel->context);
  kjit_status status = kjit_launch(kernel, &config, arguments, count);
  if (status != KJIT_OK) print_error("%s\n", last_message(kernel->context));
  assert_int_equal(status, KJIT_OK);
}

static void test_counts(void **state)
{
  kjit_module *module = parse(*state, "kernel k(a, b, const n = 3) { let x = a + b + n }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_arg arguments[] = { kjit_arg_i32(1), kjit_arg_i32(2), kjit_arg_number(4), kjit_arg_i32(5) };
  expect_failure(kernel, arguments, 1, "kernel `k`: expected 2 to 3 arguments, got 1");
  expect_failure(kernel, arguments, 4, "kernel `k`: expected 2 to 3 arguments, got 4");
  expect_success(kernel, arguments, 2);
  assert_int_equal(fake.arguments[2].kind, KJ_ARGUMENT_CONST);
  assert_int_equal((int)fake.arguments[2].integer, 3);
  assert_int_equal(fake.arguments[2].type, KJ_WEAK_INT);
  expect_success(kernel, arguments, 3);
  assert_int_equal((int)fake.arguments[2].integer, 4);
  arguments[2] = kjit_arg_number(4294967295.0);
  expect_success(kernel, arguments, 3);
  assert_int_equal(fake.arguments[2].type, KJ_WEAK_INT);
  assert_true(fake.arguments[2].integer == 4294967295);
  assert_int_equal(kjit_launch(kernel, NULL, NULL, 2), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_launch(NULL, NULL, NULL, 0), KJIT_ERROR_MISUSE);
}

static void test_numbers_are_weak(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a, b, c) { let x = a + b + c }\n"), "k");
  kjit_arg arguments[] = { kjit_arg_number(3), kjit_arg_number(3.5), kjit_arg_number(3e9) };
  expect_success(kernel, arguments, 3);
  assert_int_equal(fake.arguments[0].kind, KJ_ARGUMENT_NUMBER);
  assert_int_equal(fake.arguments[0].type, KJ_WEAK_INT);
  assert_int_equal(fake.arguments[1].type, KJ_WEAK_FLOAT);
  assert_int_equal(fake.arguments[2].type, KJ_WEAK_FLOAT);
  arguments[0] = kjit_arg_number(-7);
  arguments[1] = kjit_arg_number(0.25);
  expect_success(kernel, arguments, 3);
  assert_int_equal(fake.compilations, 1); /* values are not part of the key */
}

/* An integer without a type is a number of its own kind if it needs more than 32 bits. */
static void test_wide_integers_are_weak(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a, b, c) { let x = a + b + c }\n"), "k");
  kjit_arg arguments[] = { kjit_arg_integer(-3), kjit_arg_integer(INT64_MIN),
                           kjit_arg_unsigned_integer(UINT64_MAX) };
  for (int round = 0; round < 2; round++) { /* the second launch takes the fast path */
    expect_success(kernel, arguments, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(fake.arguments[i].kind, KJ_ARGUMENT_NUMBER);
    assert_int_equal(fake.arguments[0].type, KJ_WEAK_INT);
    assert_int_equal(fake.arguments[1].type, KJIT_I64);
    assert_int_equal(fake.arguments[2].type, KJIT_U64);
    assert_int_equal(fake.compilations, 1);
    arguments[1] = kjit_arg_integer((int64_t)INT32_MAX + 1);
    arguments[2] = kjit_arg_unsigned_integer((uint64_t)INT64_MAX + 1);
  }
  arguments[1] = kjit_arg_i64(INT64_MIN); /* a value with that type is another argument */
  expect_success(kernel, arguments, 3);
  assert_int_equal(fake.arguments[1].kind, KJ_ARGUMENT_VALUE);
  assert_int_equal(fake.compilations, 2);
}

/* A float literal stays a float for every value, also in the second launch, which takes the fast
 * path. */
static void test_reals_are_floats(void **state)
{
  kjit_module *module = parse(
    *state,
    "kernel k(a) { let x = a }\nkernel c(const n) { let x = n }\nkernel i(n: i32) { let x = n }\n");
  kjit_kernel *kernel = kernel_of(module, "k"), *constant = kernel_of(module, "c"),
              *integer = kernel_of(module, "i");
  kjit_arg whole = kjit_arg_number(4), real = kjit_arg_real(4);
  for (int round = 0; round < 3; round++) {
    expect_success(kernel, &whole, 1);
    expect_success(kernel, &real, 1);
    assert_int_equal(fake.compilations, 2);
    if (round == 0) assert_int_equal(fake.arguments[0].type, KJ_WEAK_FLOAT);
  }
  expect_success(constant, &whole, 1);
  assert_int_equal(fake.arguments[0].type, KJ_WEAK_INT);
  expect_success(constant, &real, 1);
  assert_int_equal(fake.arguments[0].type, KJ_WEAK_FLOAT);
  expect_success(integer, &real, 1); /* exact, so the type accepts the number */
  real = kjit_arg_real(4.5);
  expect_failure(integer, &real, 1, "parameter `n`: expected i32, got 4.5");
}

static void test_annotated_scalars(void **state)
{
  kjit_module *module = parse(*state, "kernel k(n: i32) { let x = n }\nkernel f(a: f32) { let x = "
                                      "a }\nkernel s(r, a: dtype(r)) { r[0] = a }\n");
  kjit_kernel *integer = kernel_of(module, "k"), *single = kernel_of(module, "f"),
              *same = kernel_of(module, "s");
  kjit_arg fits[] = { kjit_arg_i64(7), kjit_arg_number(7), kjit_arg_f64(7),
                      kjit_arg_u32(7), kjit_arg_i32(7),    kjit_arg_bool(1) };
  for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) expect_success(integer, &fits[i], 1);
  assert_int_equal(fake.compilations, 1);
  assert_int_equal(fake.arguments[0].kind, KJ_ARGUMENT_VALUE);
  assert_int_equal(fake.arguments[0].type, KJIT_I32);
  kjit_arg wide = kjit_arg_i64(1LL << 40), fraction = kjit_arg_number(2.5),
           unsigned_ = kjit_arg_u32(4000000000u);
  expect_failure(integer, &wide, 1, "parameter `n`: expected i32, got 1099511627776i64");
  expect_failure(integer, &fraction, 1, "parameter `n`: expected i32, got 2.5");
  expect_failure(integer, &unsigned_, 1, "parameter `n`: expected i32, got 4000000000u32");
  kjit_arg rounded = kjit_arg_f64(0.1), exact = kjit_arg_i32(16777216),
           inexact = kjit_arg_i32(16777217);
  expect_success(single, &rounded, 1);
  expect_success(single, &exact, 1);
  expect_failure(single, &inexact, 1, "parameter `a`: expected f32, got 16777217i32");
  float data[4];
  int64_t shape[] = { 4 };
  kjit_tensor t = tensor(data, 1, 2, 32, shape, NULL);
  kjit_arg pair[] = { kjit_arg_tensor(&t), kjit_arg_f64(0.5) };
  expect_success(same, pair, 2);
  assert_int_equal(fake.arguments[1].type, KJIT_F32);
}

static void test_const_and_func(void **state)
{
  kjit_module *module =
    parse(*state, "func g(x) { return x }\nkernel k(r, const n, f: func) { r[0] = f(n) }\n");
  kjit_module *other = parse(*state, "func g(x) { return x }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_function *function, *foreign;
  assert_int_equal(kjit_get_function(module, "g", &function), KJIT_OK);
  assert_int_equal(kjit_get_function(other, "g", &foreign), KJIT_OK);
  int32_t data[4];
  int64_t shape[] = { 4 };
  kjit_tensor t = tensor(data, 1, 0, 32, shape, NULL);
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(5), kjit_arg_function(function) };
  expect_success(kernel, arguments, 3);
  assert_int_equal(fake.arguments[1].type, KJIT_I32);
  assert_ptr_equal(fake.arguments[2].function, kj_function_of(function));
  arguments[2] = kjit_arg_function(foreign);
  expect_failure(
    kernel, arguments, 3,
    "parameter `f`: expected a function of the kernel's module, got a function of another module");
  kjit_function *minimum, *again;
  assert_int_equal(kjit_get_function(module, "min", &minimum), KJIT_OK);
  assert_int_equal(kjit_get_function(module, "min", &again), KJIT_OK);
  assert_ptr_equal(minimum, again);
  arguments[2] = kjit_arg_function(minimum);
  expect_success(kernel, arguments, 3);
  assert_ptr_equal(fake.arguments[2].function, kj_function_of(minimum));
  assert_int_equal(kjit_get_function(other, "min", &foreign), KJIT_OK);
  arguments[2] = kjit_arg_function(foreign);
  expect_failure(
    kernel, arguments, 3,
    "parameter `f`: expected a function of the kernel's module, got a function of another module");
  kjit_arg result;
  assert_int_equal(kjit_call_function(minimum, arguments, 2, &result), KJIT_ERROR_ARGUMENT);
  arguments[2] = kjit_arg_number(1);
  expect_failure(kernel, arguments, 3, "parameter `f`: expected a function, got a number");
  arguments[2] = kjit_arg_function(NULL);
  expect_failure(kernel, arguments, 3, "parameter `f`: expected a function, got NULL");
  float complex_number[2] = { 1, 2 };
  arguments[1] = kjit_arg_value(KJIT_C64, complex_number);
  expect_failure(kernel, arguments, 3,
                 "parameter `n`: expected an integer, a float or a bool, because the parameter is "
                 "const, got a value with several components");
  arguments[1] = kjit_arg_tensor(&t);
  expect_failure(kernel, arguments, 3,
                 "parameter `n`: expected a value, because the parameter is const, got an array");
  arguments[0] = kjit_arg_function(function);
  expect_failure(kernel, arguments, 3,
                 "parameter `r`: expected a value or an array, because only a parameter declared "
                 "`: func` takes a function, got a function");
}

static kjit_layout layout_of(kjit_context *context)
{
  return ki_type(ki_context_types(context), fake.arguments[0].type)->layout;
}

static void test_layouts(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { a[0, 0] = 1 }\n"), "k");
  static const struct {
    int64_t shape[2], strides[2];
    kjit_layout layout;
  } rows[] = {
    { { 3, 4 }, { 4, 1 }, KJIT_LAYOUT_C },       { { 3, 4 }, { 1, 3 }, KJIT_LAYOUT_F },
    { { 3, 4 }, { 8, 1 }, KJIT_LAYOUT_STRIDED }, { { 3, 4 }, { 4, -1 }, KJIT_LAYOUT_STRIDED },
    { { 1, 4 }, { 999, 1 }, KJIT_LAYOUT_C },     { { 4, 1 }, { 1, 999 }, KJIT_LAYOUT_C },
    { { 1, 1 }, { 7, 9 }, KJIT_LAYOUT_C },       { { 0, 4 }, { 17, 5 }, KJIT_LAYOUT_C },
    { { 3, 4 }, { 0, 0 }, KJIT_LAYOUT_STRIDED },
  };
  _Alignas(16) float data[64] = { 0 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_tensor t =
      tensor(data + 16, 2, 2, 32, (int64_t *)rows[i].shape, (int64_t *)rows[i].strides);
    kjit_arg argument = kjit_arg_tensor(&t);
    kj_bound bound = { 0 };
    kj_call call = { .kernel = kernel, .bound = &bound };
    kj_diagnostics diagnostics = { 0 };
    expect_success(kernel, &argument, 1);
    assert_int_equal(kj_bind_tensor(&call, 0, &t, KJIT_ANY, &diagnostics), KJIT_OK);
    assert_int_equal(bound.layout, rows[i].layout);
  }
  int64_t shape[] = { 3, 4 };
  kjit_tensor t = tensor(data, 2, 2, 32, shape, NULL);
  kjit_arg argument = kjit_arg_tensor(&t);
  expect_success(kernel, &argument, 1);
  assert_int_equal(layout_of(*state), KJIT_LAYOUT_C);
}

static void test_annotated_arrays(void **state)
{
  kjit_module *module =
    parse(*state, "kernel c(a: f32[:, :] C) { a[0, 0] = 1 }\nkernel f(a: f32[:, :] F) { a[0, 0] = "
                  "1 }\nkernel d(r, a: dtype(r)[:]) { r[0] = a[0] }\n");
  float data[12];
  int64_t shape[] = { 3, 4 }, columns[] = { 1, 3 }, thin[] = { 1, 4 };
  kjit_tensor rows = tensor(data, 2, 2, 32, shape, NULL),
              turned = tensor(data, 2, 2, 32, shape, columns),
              both = tensor(data, 2, 2, 32, thin, NULL);
  kjit_tensor doubles = tensor(data, 1, 2, 64, shape, NULL),
              line = tensor(data, 1, 2, 32, shape, NULL);
  kjit_arg argument = kjit_arg_tensor(&rows);
  expect_success(kernel_of(module, "c"), &argument, 1);
  expect_failure(kernel_of(module, "f"), &argument, 1,
                 "parameter `a`: expected f32[:, :] F, got f32[:, :] C");
  argument = kjit_arg_tensor(&turned);
  expect_success(kernel_of(module, "f"), &argument, 1);
  expect_failure(kernel_of(module, "c"), &argument, 1,
                 "parameter `a`: expected f32[:, :] C, got f32[:, :] F");
  argument = kjit_arg_tensor(&both);
  expect_success(kernel_of(module, "f"), &argument, 1);
  assert_int_equal(layout_of(*state), KJIT_LAYOUT_F);
  argument = kjit_arg_tensor(&line);
  expect_failure(kernel_of(module, "c"), &argument, 1,
                 "parameter `a`: expected f32[:, :] C, got f32[:] C");
  argument = kjit_arg_number(1);
  expect_failure(kernel_of(module, "c"), &argument, 1,
                 "parameter `a`: expected f32[:, :] C, got 1");
  kjit_arg pair[] = { kjit_arg_tensor(&line), kjit_arg_tensor(&doubles) };
  expect_failure(kernel_of(module, "d"), pair, 2, "parameter `a`: expected f32[:], got f64[:] C");
  assert_int_equal(kjit_get_diagnostic(*state, 0)->line, 3);
}

static void test_bad_tensors(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { let n = a.size }\n"), "k");
  char data[256];
  int64_t shape[9] = { 2, 2, 2, 2, 2, 2, 2, 2, 2 }, negative[] = { -1 },
          huge[] = { 1LL << 40, 1LL << 40 };
  kjit_tensor t = tensor(data, 9, 2, 32, shape, NULL);
  kjit_arg argument = kjit_arg_tensor(&t);
  expect_failure(kernel, &argument, 1,
                 "parameter `a`: expected an array of 0 to 8 dimensions, got 9");
  t = tensor(data, 1, 2, 32, negative, NULL);
  expect_failure(kernel, &argument, 1, "parameter `a`: extent -1 is negative");
  t = tensor(data, 2, 2, 32, huge, NULL);
  expect_failure(
    kernel, &argument, 1,
    "parameter `a`: the extents and strides do not fit the address space (element size 4)");
  t = tensor(data, 1, 2, 32, shape, NULL);
  t.lanes = 5;
  expect_failure(
    kernel, &argument, 1,
    "parameter `a`: DLPack's type code 2 with 32 bits and 5 lanes is not an element type of kjit");
  t = tensor(data, 1, 2, 17, shape, NULL);
  expect_failure(
    kernel, &argument, 1,
    "parameter `a`: DLPack's type code 2 with 17 bits and 1 lane is not an element type of kjit");
  kjit_arg odd = kjit_with_access(argument, (kjit_access)9);
  expect_failure(
    kernel, &odd, 1,
    "parameter `a`: expected an array whose access is KJIT_ACCESS_AUTO, _IN, _OUT or _IN_OUT, got "
    "an array with an unknown access");
  _Alignas(16) static char aligned[64];
  t = tensor(aligned + 1, 1, 2, 32, shape, NULL);
  expect_failure(kernel, &argument, 1,
                 "parameter `a`: the elements are not aligned: the address is not a multiple of 4");
  t = tensor(aligned, 1, 2, 32, shape, NULL);
  t.byte_offset = 4;
  expect_success(kernel, &argument, 1);
  assert_int_equal(fake.arguments[0].facts, 0);
  t.byte_offset = 16;
  int loads = fake.loads;
  /* the launch uses existing code, while better code is compiled in the background */
  expect_success(kernel, &argument, 1);
  for (int i = 0; i < 100000 && fake.loads == loads; i++) /* a busy machine compiles late */
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(fake.arguments[0].facts, KJ_FACT_ALIGNED16);
  t.device_type = 7;
  expect_failure(kernel, &argument, 1,
                 "parameter `a`: DLPack device type 7 is neither the CPU's (1) nor CUDA's (2)");
  t.device_type = 2;
  expect_failure(kernel, &argument, 1,
                 "parameter `a`: the launch is on cpu, but the array is on cuda:0");
  t = tensor(NULL, 1, 2, 32, shape, NULL);
  expect_failure(kernel, &argument, 1, "parameter `a`: the tensor has no data (2 elements)");
  int64_t none[] = { 0 };
  t = tensor(NULL, 1, 2, 32, none, NULL);
  expect_success(kernel, &argument, 1);
  t = tensor(aligned, 0, 2, 32, NULL, NULL);
  expect_success(kernel, &argument, 1);
}

static void test_names(void **state)
{
  kjit_module *module =
    parse(*state, "kernel a(x: f32[:] C, const n = 2) { x[0] = n }\nkernel b() { }\n");
  kjit_kernel *kernel = NULL;

  assert_int_equal(kjit_get_kernel(module, "c", &kernel), KJIT_ERROR_NAME);
  assert_string_equal(last_message(*state), "test.kir has no kernel `c`; its kernels are `a`, `b`");
  assert_int_equal(kjit_get_kernel(NULL, "a", &kernel), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_get_kernel(module, NULL, &kernel), KJIT_ERROR_MISUSE);
  assert_ptr_equal(kernel_of(module, "b"), kernel_of(module, "b"));
}

static void test_parameter_info(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "func g(x) { return x }\nkernel a(r: f32[:] C, x, "
                                                "f: func, const n = 2) { r[0] = f(x[0]) + n }\n"),
                                  "a");
  kjit_parameter_info info = { .size_bytes = sizeof info };
  assert_int_equal(kjit_get_parameter_info(kernel, 0, &info), KJIT_OK);
  assert_string_equal(info.name, "r");
  assert_int_equal(info.annotation, kjit_get_array_type(*state, KJIT_F32, 1, KJIT_LAYOUT_C, 0));
  assert_true(info.is_written);
  assert_int_equal(kjit_get_parameter_info(kernel, 1, &info), KJIT_OK);
  assert_true(info.is_read);
  assert_false(info.is_written);
  assert_int_equal(kjit_get_parameter_info(kernel, 2, &info), KJIT_OK);
  assert_true(info.is_function);
  assert_int_equal(kjit_get_parameter_info(kernel, 3, &info), KJIT_OK);
  assert_true(info.is_const && info.has_default);
  assert_int_equal(kjit_get_parameter_info(kernel, 4, &info), KJIT_ERROR_ARGUMENT);
}

static void test_function_parameter_info(void **state)
{
  kjit_module *module = parse(*state, "func put(x, y) { x[0] = y[0]\n return 1 }\n"
                                      "func twice(x, y) { return put(x, y) + put(x, y) }\n");
  kjit_function *func = NULL;
  kjit_parameter_info info = { .size_bytes = sizeof info };
  assert_int_equal(kjit_get_function(module, "twice", &func), KJIT_OK);
  assert_int_equal(kjit_get_function_parameter_info(func, 0, &info), KJIT_OK);
  assert_string_equal(info.name, "x");
  assert_true(info.is_written && !info.is_read);
  assert_int_equal(kjit_get_function_parameter_info(func, 1, &info), KJIT_OK);
  assert_true(info.is_read && !info.is_written);
  assert_int_equal(kjit_get_function_parameter_info(func, 2, &info), KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(*state),
                      "function `twice` has 2 parameters, but parameter 2 was requested");
  assert_int_equal(kjit_get_function_parameter_info(NULL, 0, &info), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_get_function(module, "max", &func), KJIT_OK);
  assert_int_equal(kjit_get_function_parameter_info(func, 0, &info), KJIT_ERROR_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_counts),
    TEST(test_function_parameter_info),
    TEST(test_numbers_are_weak),
    TEST(test_wide_integers_are_weak),
    TEST(test_reals_are_floats),
    TEST(test_annotated_scalars),
    TEST(test_const_and_func),
    TEST(test_layouts),
    TEST(test_annotated_arrays),
    TEST(test_bad_tensors),
    TEST(test_names),
    TEST(test_parameter_info),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

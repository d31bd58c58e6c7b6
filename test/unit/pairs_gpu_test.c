/* Derivatives of reductions over pairs on a GPU: which rows a thread keeps in registers, and how
 * often it computes the difference of two elements. The compiler is the real one, and the driver a
 * fake one. */
#include "kj_test.h"

#include <kjit/algorithm.h>
#include <kjit/kjit.h>

#include "built_compiler.h"
#include "base/runtime.h"
#include "fake_cuda.h"
#include "fake_cuda_memory.h"

enum { ROWS = 512, ARGUMENTS = 4 };

static const char source[] = "func gauss(x, y, i, j) {\n"
                             "  var d = zero(dtype(x))\n"
                             "  for k in range(len(x)) { d += (x[k] - y[k]) * (x[k] - y[k]) }\n"
                             "  return exp(-d)\n"
                             "}\n"
                             "func scaled(x, y, i, j, scale) {\n"
                             "  var d = zero(dtype(x))\n"
                             "  for k in range(len(x)) { d += (x[k] - y[k]) * (x[k] - y[k]) }\n"
                             "  return exp(-d * scale[0])\n"
                             "}\n";

static char *image; /* the PTX of the last kernel that was loaded and has an exponential */

static void note_load(const char *text, int level)
{
  (void)level;
  if (!strstr(text, "ex2.approx") && !strstr(text, "exp")) return;
  free(image);
  image = strdup(text);
}

static size_t count(const char *word)
{
  size_t found = 0;
  for (const char *at = image; (at = strstr(at, word)); at += strlen(word)) found++;
  return found;
}

static kjit_array *make(kjit_device *device, kjit_type type, int64_t rows, int64_t width)
{
  const int64_t shape[] = { rows, width };
  kjit_array *array;
  assert_int_equal(kjit_create_array(device, type, shape, width ? 2 : 1, &array), KJIT_OK);
  return array;
}

/* Loads the kernel of a derivative with respect to rows of x with this length, or to an argument of
 * the func. */
static void load_gradient(kjit_type type, int64_t width, bool is_by_argument)
{
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = 1, .limit = (size_t)1 << 30, .on_load = note_load };
  kjit_config config = { .size_bytes = sizeof config, .plain_code = KJIT_PLAIN_NEVER };
  config.cache_directory = config.shipped_cache = "";
  config.compiler_path = find_built_compiler();
  config.libdevice_path = "libclc";
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_function *function;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  assert_int_equal(kjit_parse_module(context, "g", source, strlen(source), &module), KJIT_OK);
  assert_int_equal(kjit_get_function(module, is_by_argument ? "scaled" : "gauss", &function),
                   KJIT_OK);
  kjit_array *arrays[] = { make(device, type, ROWS, width), make(device, type, ROWS, width),
                           make(device, type, ROWS, 0), make(device, type, ARGUMENTS, 0),
                           make(device, type, ROWS, is_by_argument ? ARGUMENTS : width) };
  const kjit_arg scale = kjit_arg_array(arrays[3]);
  const uint32_t by = is_by_argument ? 4 : 0;
  const kjit_operand x = kjit_operand_array(arrays[0]), y = kjit_operand_array(arrays[1]),
                     cotangents = kjit_operand_array(arrays[2]),
                     gradient = kjit_operand_array(arrays[4]),
                     func = kjit_operand_function(function, &scale, is_by_argument, NULL, 0);
  const kjit_operator add = { .name = "add" };
  kjit_status status = kjit_pairs_gradient(context, &gradient, &by, 1, &cotangents, NULL, &func, &x,
                                           &y, 1, &add, NULL);
  char *text = status == KJIT_OK ? NULL : kjit_copy_diagnostics_text(context);
  if (text) print_error("%s\n", text);
  free(text);
  assert_int_equal(status, KJIT_OK);
  assert_non_null(image);
  for (int i = 0; i < 5; i++) kjit_release_array(arrays[i]);
  kjit_release_module(module);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  fake_delete_all();
}

/* A kernel has the code of a pair twice, because the first pair of a row initializes its sums. A
 * row in registers has one difference for each element, and no sums in memory. */
static void expect_registers(kjit_type type, int64_t width)
{
  load_gradient(type, width, false);
  assert_int_equal(count(type == KJIT_F32 ? "\tsub.f32" : "\tsub.f64"), 2 * width);
  assert_int_equal(count(".local"), 0);
  assert_int_equal(count("st.shared.v"), 0);
}

static void test_registers(void **state)
{
  (void)state;
  expect_registers(KJIT_F32, 48);
  expect_registers(KJIT_F32, 57);
  expect_registers(KJIT_F32, 64);
  expect_registers(KJIT_F32, 66);
  expect_registers(KJIT_F64, 32);
}

/* Longer rows and their sums are in shared memory. */
static void test_shared(void **state)
{
  (void)state;
  load_gradient(KJIT_F32, 100, false);
  assert_int_equal(count(".local"), 0);
  assert_true(count("st.shared.v4") > 0);
}

/* For a derivative with respect to an argument, LLVM unrolls the loops over short rows only. No row
 * is in local memory. */
static void test_argument(void **state)
{
  (void)state;
  static const int64_t widths[] = { 32, 33, 64, 80 };
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    load_gradient(KJIT_F32, widths[i], true);
    assert_int_equal(count(".local"), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_registers),
                                      cmocka_unit_test(test_shared),
                                      cmocka_unit_test(test_argument) };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(image);
  return failed;
}

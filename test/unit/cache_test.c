/* The disk cache with the real compiler: hits and misses, a process without a compiler, many
 * processes that miss at the same time, and damaged objects. */
#include "kj_test.h"

#include <kjit/algorithm.h>
#include <kjit/function.h>

#include "built_compiler.h"
#include "cache_folder.h"
#include "cpu/cpu.h"
#include "code/disk.h"

static const char program[] = "func twice(x) { return x * SCALE }\n"
                              "const SCALE = 2\n"
                              "func other(x) { return x + 1 }\n"
                              "kernel k(r, x, const n = 3) {\n  for i in grid_range(len(r)) { r[i] "
                              "= sin(twice(x[i])) + n }\n}\n";

static const char *compiler_path;

static kjit_context *make_context(void)
{
  kjit_config config = { .size_bytes = sizeof config };
  kjit_context *context = NULL;
  config.cache_directory = folder;
  config.compiler_path = compiler_path;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  return context;
}

static kjit_module *parse(kjit_context *context, const char *text)
{
  kjit_module *module = NULL;
  kjit_status status = kjit_parse_module(context, "test.kir", text, strlen(text), &module);
  if (status != KJIT_OK) print_error("%s\n", kjit_copy_diagnostics_text(context));
  assert_int_equal(status, KJIT_OK);
  return module;
}

static kjit_status launch(kjit_context *context, const char *text, const kjit_arg *extra,
                          float *result)
{
  static _Alignas(16) float data[2][64];
  int64_t length[] = { 64 };
  for (int i = 0; i < 64; i++) data[1][i] = (float)i;
  kjit_kernel *kernel = NULL;
  kjit_launch_config config = { .size_bytes = sizeof config };
  kjit_module *module = parse(context, text);
  assert_int_equal(kjit_get_kernel(module, "k", &kernel), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device), KJIT_OK);
  kjit_tensor r = { .data = data[0],
                    .device_type = 1,
                    .rank = 1,
                    .code = 2,
                    .bits = 32,
                    .lanes = 1,
                    .shape = length },
              x = r;
  x.data = data[1];
  kjit_arg arguments[3] = { kjit_arg_tensor(&r), kjit_arg_tensor(&x) };
  if (extra) arguments[2] = *extra;
  kjit_status status = kjit_launch(kernel, &config, arguments, extra ? 3 : 2);
  *result = data[0][5];
  return status;
}

/* Returns whether the code came from the disk cache, in a new context. */
static bool hits(const char *text, const kjit_arg *extra, float expected)
{
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_context *context = make_context();
  float result;
  kjit_status status = launch(context, text, extra, &result);
  if (status != KJIT_OK) print_error("%s\n", kjit_copy_diagnostics_text(context));
  assert_int_equal(status, KJIT_OK);
  assert_float_equal(result, expected, 1e-5);
  kjit_get_statistics(context, &statistics);
  assert_int_equal(statistics.disk_hits + statistics.disk_misses, 1);
  assert_int_equal(statistics.disk_hits + statistics.compilations, 1);
  kjit_destroy_context(context);
  return statistics.disk_hits;
}

/* ---- keys ---- */

static const float sine_of_10 = -0.54402111f;

static void test_what_counts(void **state)
{
  (void)state;
  assert_false(hits(program, NULL, sine_of_10 + 3));
  assert_true(hits(program, NULL, sine_of_10 + 3));
  /* comments, layout, order and unreached declarations do not change the key */
  assert_true(
    hits("# a comment\nkernel unused(x) { x[0] = 1 }\nconst SCALE = 2\nkernel k(r, x, const n = 3) "
         "{\n  for i in grid_range(len(r)) {\n\n"
         "    r[i] = (sin(twice(x[i]))) + n # more\n  }\n}\nfunc twice(x) { return x * SCALE }\n",
         NULL, sine_of_10 + 3));
  /* a const, a reached declaration and the kernel itself change the key */
  kjit_arg four = kjit_arg_i64(4);
  assert_false(hits(program, &four, sine_of_10 + 4));
  assert_true(hits(program, &four, sine_of_10 + 4));
  assert_false(hits("func twice(x) { return x * SCALE }\nconst SCALE = 4\nkernel k(r, x, const n = "
                    "3) {\n  for i in grid_range(len(r)) { r[i] = sin(twice(x[i])) + n }\n}\n",
                    NULL, 0.91294525f + 3));
  assert_false(hits("func twice(x) { return x + SCALE }\nconst SCALE = 2\nkernel k(r, x, const n = "
                    "3) {\n  for i in grid_range(len(r)) { r[i] = sin(twice(x[i])) + n }\n}\n",
                    NULL, 0.6569866f + 3));
  assert_true(hits(program, NULL, sine_of_10 + 3));
}

/* Another build of libkjit has other keys, and another compiler writes its entry again. Both can
 * use the same directory. */
static bool hits_as(uint64_t build)
{
  kjit_context *context = make_context();
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  float result;
  kj_disk *disk = kj_get_runtime(context)->disk;
  kj_identify_disk(disk);
  disk->build.low ^= build;
  assert_int_equal(launch(context, program, NULL, &result), KJIT_OK);
  kjit_get_statistics(context, &statistics);
  kjit_destroy_context(context);
  return statistics.disk_hits;
}

static void test_versions(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {
    assert_int_equal(hits_as(0), round > 0);
    assert_int_equal(hits_as(1), round > 0);
  }
  assert_int_equal(count_entries(), 2);
}

/* ---- without a compiler ---- */

static int launch_alone(int number)
{
  (void)number;
  compiler_path = "/nonexistent/libkjit-compiler.so";
  kjit_context *context = make_context();
  float result;
  if (launch(context, program, NULL, &result) != KJIT_OK || result < sine_of_10 + 2.99f ||
      result > sine_of_10 + 3.01f)
    return 1;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "libkjit-compiler") || strstr(line, "LLVM")) return 2;
  if (maps) fclose(maps);
  kjit_arg five = kjit_arg_i64(5);
  if (launch(context, program, &five, &result) != KJIT_ERROR_NO_COMPILER) return 3;
  kjit_destroy_context(context);
  return 0;
}

/* Runs in a new process, because this process has loaded the compiler already. */
static void test_no_compiler(void **state)
{
  (void)state;
  (void)hits(program, NULL, sine_of_10 + 3);
  char command[4200], self[4096] = { 0 };
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command, "'%s' alone '%s'", self, folder);
  int status = system(command);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- result types of funcs ---- */

static kjit_status ask(bool has_compiler, const char *text, const char *signature, char *answer)
{
  const char *path = compiler_path;
  if (!has_compiler) compiler_path = "/nonexistent/libkjit-compiler.so";
  kjit_context *context = make_context();
  compiler_path = path;
  kjit_module *module = parse(context, text);
  kjit_function *function = NULL;
  kjit_type type = KJIT_ANY;
  assert_int_equal(kjit_get_function(module, "f", &function), KJIT_OK);
  kjit_status status = kjit_get_result_type(function, signature, &type);
  if (status == KJIT_OK) {
    char *name = kjit_copy_type_text(context, type);
    assert_non_null(name);
    snprintf(answer, 100, "%s", name);
    kjit_free(context, name);
  }
  kjit_release_module(module);
  kjit_destroy_context(context);
  return status;
}

#define PAIR(fields) "struct pair { " fields " }\n"

/* Without a compiler, kjit finds a result type that is stored, and finds no type that is not
 * stored. */
static void test_results(void **state)
{
  (void)state;
  static const struct {
    const char *text, *signature, *result;
    bool is_kept;
  } cases[] = {
    { "func f(x, y) { return x + y }", "f32, i64", "f32", true },
    { "func f(x, y) { return x + y }", "f32, f64", "f64", true },
    { "func f(x, y) { return x + y * K }\nconst K = 1", "i32, i32", "i32", true },
    { "func f(x, y) { return x + y * K }\nconst K = 1f64", "i32, i32", "f64", true },
    { "func f(x) { return x, x > 0, vector(f32, 4)(1) }", "u8", "(u8, bool, f32x4)", true },
    { "func f(x) { return }", "u8", "void", false },
    { PAIR("a: i32; b: f32") "func f(x) { return x }\nfunc p() { return pair(1, 2) }", "pair",
      "pair", true },
    { PAIR("a: i32; b: f32") "func f(x) { return x.a + x.b }\nfunc p() { return pair(1, 2) }",
      "pair", "f32", true },
    { PAIR("a: i64; b: i64") "func f(x) { return x.a + x.b }\nfunc p() { return pair(1, 2) }",
      "pair", "i64", true },
    { PAIR("a: i32; b: f32") "func f(x) { return pair(x, x) }", "i32", "pair", true },
    { "func g(x) { return x > 0 }\nfunc f(x) { return g(x) }", "i32", "bool", true },
    { "func g(x) { return x * 2.5f32 }\nfunc f(x) { return g(x) }", "i32", "f32", true },
  };
  enum { CASES = sizeof cases / sizeof *cases };
  char answer[100];
  for (int i = 0; i < CASES; i++) {
    assert_int_equal(ask(false, cases[i].text, cases[i].signature, answer), KJIT_ERROR_NO_COMPILER);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(ask(true, cases[i].text, cases[i].signature, answer), KJIT_OK);
      assert_string_equal(answer, cases[i].result);
    }
  }
  for (int i = 0; i < CASES; i++) {
    kjit_status status = ask(false, cases[i].text, cases[i].signature, answer);
    assert_int_equal(status, cases[i].is_kept ? KJIT_OK : KJIT_ERROR_NO_COMPILER);
    if (cases[i].is_kept) assert_string_equal(answer, cases[i].result);
  }
}

/* ---- kernels of algorithms ---- */

/* Computes the sum of 1, 2, 3, 4 with an operator. scale is the new value of a constant; 0 means
 * that the constant keeps its value in the text. */
static kjit_status sum(bool has_compiler, const char *text, double scale, double *result)
{
  const char *path = compiler_path;
  if (!has_compiler) compiler_path = "/nonexistent/libkjit-compiler.so";
  double x[] = { 1, 2, 3, 4 };
  int64_t length[] = { 4 };
  kjit_tensor of_x = { .data = x,
                       .device_type = 1,
                       .rank = 1,
                       .code = 2,
                       .bits = 64,
                       .lanes = 1,
                       .shape = length },
              of_r = { .data = result, .device_type = 1, .code = 2, .bits = 64, .lanes = 1 };
  kjit_context *context = make_context();
  kjit_module *module = parse(context, text), *scaled = NULL;
  kjit_function *function = NULL;
  kjit_arg value = kjit_arg_f64(scale);
  if (scale != 0) {
    assert_int_equal(kjit_set_constant(module, "SCALE", &value, &scaled), KJIT_OK);
    kjit_release_module(module);
    module = scaled;
  }
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &options.device), KJIT_OK);
  assert_int_equal(kjit_get_function(module, "f", &function), KJIT_OK);
  kjit_operand from = kjit_operand_of(kjit_arg_tensor(&of_x)),
               to = kjit_operand_of(kjit_arg_tensor(&of_r));
  kjit_operator operator_ = kjit_operator_function(function);
  kjit_status status = kjit_reduce(context, &to, &from, &operator_, &options);
  kjit_release_module(module);
  kjit_destroy_context(context);
  compiler_path = path;
  return status;
}

/* The operator and all declarations that it reaches are part of the key, however the operator was
 * created. */
static void test_algorithms(void **state)
{
  (void)state;
  static const char text[] = "const SCALE = 1f64\nfunc g(x) { return x * SCALE }\n"
                             "func f(x, y) { return x + g(y) }\nfunc h(x) { return x }\n",
                    same[] = "# as it was\nfunc f(x, y) { return x + g(y) } # more\n"
                             "func g(x) { return x * SCALE }\n\nconst SCALE = 1f64\n",
                    other[] = "const SCALE = 1f64\nfunc g(x) { return x + SCALE }\n"
                              "func f(x, y) { return x + g(y) }\n";
  static const struct {
    const char *text;
    double scale, result;
    bool is_same;
  } cases[] = { { text, 0, 10, false },
                { same, 0, 10, true },
                { text, 3, 28, false },
                { other, 0, 13, false },
                { other, 2, 16, false } };
  double result = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_status status = sum(false, cases[i].text, cases[i].scale, &result);
    assert_int_equal(status, cases[i].is_same ? KJIT_OK : KJIT_ERROR_NO_COMPILER);
    if (cases[i].is_same) assert_true(result == cases[i].result);
    assert_int_equal(sum(true, cases[i].text, cases[i].scale, &result), KJIT_OK);
    assert_true(result == cases[i].result);
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(sum(false, cases[i].text, cases[i].scale, &result), KJIT_OK);
    assert_true(result == cases[i].result);
  }
}

/* ---- many processes ---- */

static int miss(int number)
{
  (void)number;
  kjit_context *context = make_context();
  float result;
  kjit_status status = launch(context, program, NULL, &result);
  kjit_destroy_context(context);
  return status != KJIT_OK || result < sine_of_10 + 2.99f || result > sine_of_10 + 3.01f;
}

static void test_sixteen_misses(void **state)
{
  (void)state;
  pid_t processes[16];
  for (int i = 0; i < 16; i++) processes[i] = start_process(miss, i);
  for (int i = 0; i < 16; i++) assert_int_equal(end_process(processes[i]), 0);
  assert_int_equal(count_entries(), 1);
  assert_int_equal(count_unfinished(), 0);
  assert_true(hits(program, NULL, sine_of_10 + 3));
}

/* ---- lines ---- */

/* Code with line numbers is valid only for the source from which it was compiled. */
static void test_lines(void **state)
{
  (void)state;
  static const char checked[] = "kernel k(r, x) {\n  for i in grid_range(len(r)) {\n    assert "
                                "x[i] < 100, \"too large\"\n    r[i] = x[i]\n  }\n}\n";
  char moved[256];
  snprintf(moved, sizeof moved, "# a line\n%s", checked);
  assert_false(hits(checked, NULL, 5));
  assert_true(hits(checked, NULL, 5));
  (void)hits(moved, NULL, 5);
  assert_true(hits(moved, NULL, 5));
}

/* ---- objects ---- */

static void *compile_object(kjit_context *context, size_t *size_bytes)
{
  kjit_kernel *kernel = NULL;
  void *object = NULL;
  assert_int_equal(kjit_get_kernel(parse(context, program), "k", &kernel), KJIT_OK);
  assert_int_equal(kjit_compile(kernel, "f64[:] C, f64[:] C", NULL, KJIT_STAGE_OBJECT, &object,
                                size_bytes),
                   KJIT_OK);
  return object;
}

static bool loads(const void *object, size_t size_bytes, const char *entry)
{
  kj_image *image = NULL;
  kj_cpu_kernel kernel = NULL;
  char reason[KJ_IMAGE_REASON_BYTES] = "";
  bool is_loaded = kj_load_image(object, size_bytes, entry, NULL, &image, &kernel, reason);
  assert_true(is_loaded ? image && kernel : *reason);
  kj_unload_image(image);
  return is_loaded;
}

/* The loaded object is not run. Whatever bits it has, the loader accesses only the object. */
static void test_damaged_objects(void **state)
{
  (void)state;
  size_t size;
  kjit_context *context = make_context();
  unsigned char *object = compile_object(context, &size);
  assert_true(loads(object, size, "k"));
  assert_false(loads(object, size, "l"));
  static const unsigned char patterns[] = { 0x01, 0x80, 0xff, 0x7f };
  for (size_t i = 0; i < size; i++)
    for (size_t p = 0; p < sizeof patterns; p++) {
      object[i] ^= patterns[p];
      (void)loads(object, size, "k");
      object[i] ^= patterns[p];
    }
  for (size_t i = 0; i < size; i++) {
    void *shorter = malloc(i ? i : 1);
    memcpy(shorter, object, i);
    assert_false(loads(shorter, i, "k"));
    free(shorter);
  }
  assert_true(loads(object, size, "k"));
  kjit_free(context, object);
  kjit_destroy_context(context);
}

int main(int argc, char **argv)
{
  if (argc == 3 && !strcmp(argv[1], "alone")) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return launch_alone(0);
  }
  compiler_path = find_built_compiler();
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
    /* this test comes first, because a process that has compiled should not fork */
    TEST(test_sixteen_misses), TEST(test_what_counts), TEST(test_versions),
    TEST(test_no_compiler),    TEST(test_lines),       TEST(test_damaged_objects),
    TEST(test_results),        TEST(test_algorithms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

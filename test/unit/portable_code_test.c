/* Code that was compiled for a named target runs without a compiler on arrays of any alignment and
 * overlap. If code is missing, the error names it. */
#include "kj_test.h"

#include <kjit/code.h>
#include <kjit/kjit.h>

#include "../seed.h"
#include "built_compiler.h"
#include "code/disk.h"

enum { LENGTH = 61 };

static const char source[] =
  "kernel k(r, x, a) { for i in grid_range(len(r)) { r[i] = a * x[i] + 1 } }\n";
static const char other_source[] =
  "kernel k(r, x, a) { for i in grid_range(len(r)) { r[i] = a * x[i] + 2 } }\n";
static const char signature[] = "f32[:] C, f32[:] C, f32";

static void *blob;
static size_t blob_bytes;

static kjit_context *begin(const char *target, bool has_compiler)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "", .shipped_cache = "" };
  config.target = target;
  config.compiler_path = has_compiler ? find_built_compiler() : "/no/compiler.so";
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  return context;
}

static kjit_kernel *parse(kjit_context *context, const char *text, kjit_module **module)
{
  kjit_kernel *kernel = NULL;
  assert_int_equal(kjit_parse_module(context, "p.kir", text, strlen(text), module), KJIT_OK);
  assert_int_equal(kjit_get_kernel(*module, "k", &kernel), KJIT_OK);
  return kernel;
}

/* Compiles the kernel for the target and exports the code to `blob`. */
static void make_blob(const char *target)
{
  kjit_device *device = NULL;
  kjit_module *module = NULL;
  kjit_specialization *made = NULL;
  kjit_context *context = begin(target, true);
  kjit_kernel *kernel = parse(context, source, &module);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  assert_int_equal(kjit_specialize(kernel, device, signature, &made), KJIT_OK);
  void *bytes = NULL;
  assert_int_equal(kjit_export_cache(context, &bytes, &blob_bytes), KJIT_OK);
  free(blob);
  blob = malloc(blob_bytes);
  memcpy(blob, bytes, blob_bytes);
  kjit_free(context, bytes);
  kjit_release_module(module);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

static kjit_tensor describe(float *data)
{
  static int64_t length = LENGTH;
  return (kjit_tensor){
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = &length
  };
}

/* Launches without a compiler. r and x begin `offset` elements after the start of their memory;
 * is_same means that x is r. Returns the status and compares the values if it is OK. */
static kjit_status launch(kjit_context *context, kjit_kernel *kernel, int offset, bool is_same,
                          uint32_t block)
{
  float memory[2][LENGTH + 8], before[LENGTH];
  float *r = memory[0] + offset, *x = is_same ? r : memory[1] + offset;
  for (int i = 0; i < LENGTH; i++) r[i] = 7;
  for (int i = 0; i < LENGTH; i++) before[i] = x[i] = (float)(rand() % 1000); /* NOLINT */
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  kjit_tensor to = describe(r), from = describe(x);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device, .block = { block } };
  const kjit_arg arguments[] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from), kjit_arg_f32(3) };
  kjit_status status = kjit_launch(kernel, &config, arguments, 3);
  assert_int_equal(kjit_synchronize_device(device), KJIT_OK);
  for (int i = 0; i < LENGTH && status == KJIT_OK; i++)
    assert_float_equal(r[i], 3 * before[i] + 1, 0);
  return status;
}

static const char *own_level(void)
{
  kj_cpu_level level = kj_find_level();
  if (level == KJ_CPU_OWN) skip();
  return kj_level_name(level);
}

static void test_any_arrays(void **state)
{
  (void)state;
  kjit_module *module = NULL;
  make_blob(own_level());
  kjit_context *context = begin(NULL, false);
  kjit_kernel *kernel = parse(context, source, &module);
  assert_int_equal(kjit_import_code(context, blob, blob_bytes), KJIT_OK);
  for (int round = 0; round < 2; round++) /* the second one finds the code in memory */
    for (int offset = 0; offset < 4; offset++)
      for (int same = 0; same < 2; same++)
        assert_int_equal(launch(context, kernel, offset, same, 0), KJIT_OK);
  kjit_release_module(module);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

/* Launches without a compiler, with code that does not fit the call, and expects a message with all
 * these words. */
static void expect_refused(const char *text, uint32_t block, bool imports, const char *const *words)
{
  kjit_module *module = NULL;
  kjit_context *context = begin(NULL, false);
  kjit_kernel *kernel = parse(context, text, &module);
  if (imports) assert_int_equal(kjit_import_code(context, blob, blob_bytes), KJIT_OK);
  assert_int_equal(launch(context, kernel, 0, false, block), KJIT_ERROR_NO_COMPILER);
  char *message = kjit_copy_diagnostics_text(context);
  for (; *words; words++) {
    if (!strstr(message, *words)) print_error("no `%s` in: %s\n", *words, message);
    assert_non_null(strstr(message, *words));
  }
  kjit_free(context, message);
  kjit_release_module(module);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

static void test_refusals(void **state)
{
  (void)state;
  const char *own = own_level();
  const char *const source_words[] = { "kernel `k` is not compiled for (f32[:] C",
                                       "it was compiled from another source", NULL };
  const char *const block_words[] = {
    "it relies on other facts about the arguments, the block and array overlap:",
    "block (256, 1, 1)", NULL
  };
  const char *const none_words[] = { "the compiler cannot be loaded", NULL };
  make_blob(own);
  expect_refused(other_source, 0, true, source_words);
  expect_refused(source, 64, true, block_words);
  expect_refused(source, 0, false, none_words);
  /* the next level has a feature that this processor may lack */
  for (int level = KJ_CPU_OWN + 1; level < KJ_CPU_LEVEL_COUNT; level++) {
    const char *name = kj_level_name((kj_cpu_level)level),
               *feature = kj_find_missing_feature((kj_cpu_level)level);
    if (!strcmp(name, own)) {
      assert_null(feature);
      continue;
    }
    const char *const words[] = { "it is for", name, feature ? "this processor lacks" : NULL,
                                  feature, NULL };
    make_blob(name);
    expect_refused(source, 0, true, words);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_arrays),
                                      cmocka_unit_test(test_refusals) };
  srand(kj_draw_seed());
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(blob);
  return failed;
}

/* Machine code in files of compiled kernels. ptxas generates it when the file is made, and the
 * driver gets it in place of the PTX. In this test ptxas is a script, and the driver is the fake
 * driver. */
#include "kj_test.h"

#include <kjit/cache.h>
#include <kjit/kjit.h>

#include "built_compiler.h"
#include "cache_folder.h"
#include "code/disk.h"
#include "fake_cuda.h"
#include "fake_cuda_memory.h"

enum { LENGTH = 64 };

static const char source[] =
  "kernel k(r, x) { for i in grid_range(len(r)) { r[i] = 3 * x[i] + 1 } }\n"
  "kernel again(r, x) { for i in grid_range(len(r)) { r[i] = 5 * x[i] } }\n";

static const char good_ptxas[] = "#!/bin/sh\nprintf '\\177ELF of ptxas %s' \"$1\" > \"$3\"\n";
static const char failing_ptxas[] = "#!/bin/sh\necho cannot; exit 7\n";

static char file[640], ptxas[640];

static int set_up(void **state)
{
  if (make_folder(state)) return -1;
  snprintf(file, sizeof file, "%s", path_in("kernels.kjit"));
  snprintf(ptxas, sizeof ptxas, "%s", path_in("ptxas"));
  cuda = (fake_driver){ .devices = 1, .limit = (size_t)1 << 30 };
  return 0;
}

static int tear_down(void **state)
{
  fake_delete_all();
  return remove_folder(state);
}

static void write_file(const char *path, const void *bytes, size_t size_bytes, mode_t mode)
{
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, 1, size_bytes, stream), size_bytes);
  assert_int_equal(fclose(stream), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static kjit_context *begin(kjit_config config)
{
  kjit_context *context = NULL;
  kj_diagnostics diagnostics = { 0 };
  config.size_bytes = sizeof config;
  if (!config.cache_directory) config.cache_directory = "";
  config.compiler_path = find_built_compiler();
  config.libdevice_path = "libclc";
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  if (!config.target)
    assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  return context;
}

static kjit_status launch(kjit_context *context, const char *name)
{
  const int64_t length = LENGTH;
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  kjit_device *device = NULL;
  kjit_array *x = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  assert_int_equal(kjit_create_array(device, KJIT_F32, &length, 1, &x), KJIT_OK);
  assert_int_equal(kjit_parse_module(context, "s.kir", source, strlen(source), &module), KJIT_OK);
  assert_int_equal(kjit_get_kernel(module, name, &kernel), KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  const kjit_arg arguments[] = { kjit_arg_array(x), kjit_arg_array(x) };
  kjit_status status = kjit_launch(kernel, &config, arguments, 2);
  kjit_release_array(x);
  kjit_release_module(module);
  return status;
}

/* Compiles both kernels for sm_90a and writes the file. given: value of kjit_config.ptxas. */
static void make_file(const char *given)
{
  void *blob = NULL;
  size_t size_bytes = 0;
  write_file(ptxas, good_ptxas, strlen(good_ptxas), 0755);
  kjit_context *context = begin((kjit_config){ .target = "sm_90a", .ptxas = given });
  assert_int_equal(launch(context, "k"), KJIT_OK);
  assert_int_equal(launch(context, "again"), KJIT_OK);
  assert_int_equal(kjit_export_cache(context, &blob, &size_bytes), KJIT_OK);
  write_file(file, blob, size_bytes, 0644);
  kjit_free(context, blob);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

/* Launches both kernels on the fake GPU and returns the number of compilations. Code that was not
 * compiled came from the file. */
static uint64_t compile_with_file(const char *cache)
{
  kjit_statistics counts = { .size_bytes = sizeof counts };
  kjit_context *context = begin((kjit_config){ .shipped_cache = file, .cache_directory = cache });
  assert_int_equal(launch(context, "k"), KJIT_OK);
  assert_int_equal(launch(context, "again"), KJIT_OK);
  assert_int_equal(kjit_get_statistics(context, &counts), KJIT_OK);
  assert_int_equal(counts.imports + counts.compilations, 2);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  return counts.compilations;
}

static bool has_loaded_machine_code(void) { return cuda.is_machine_code; }

static void test_found(void **state)
{
  (void)state;
  make_file(ptxas);
  assert_int_equal(compile_with_file(NULL), 0);
  assert_true(has_loaded_machine_code());
  /* the file contains the code, so the user's disk cache needs no copy */
  assert_int_equal(compile_with_file(path_in("user")), 0);
  assert_true(has_loaded_machine_code());
  assert_int_equal(cuda.links, 0);
  assert_int_equal(cuda.inputs, 0);
}

/* A driver that is older than ptxas rejects the machine code, and kjit uses the PTX. */
static void test_refused_by_the_driver(void **state)
{
  (void)state;
  make_file(ptxas);
  cuda.refuse_cubin = true;
  assert_int_equal(compile_with_file(NULL), 0);
  assert_false(has_loaded_machine_code());
}

static void test_without_ptxas(void **state)
{
  (void)state;
  make_file(NULL);
  assert_int_equal(compile_with_file(NULL), 0);
  assert_false(has_loaded_machine_code());
}

/* Machine code runs on no other architecture. */
static void test_other_architecture(void **state)
{
  (void)state;
  make_file(ptxas);
  kjit_context *context = begin((kjit_config){ .target = "sm_89" });
  kjit_statistics counts = { .size_bytes = sizeof counts };
  assert_int_equal(kjit_open_cache(context, file), KJIT_OK);
  assert_int_equal(launch(context, "k"), KJIT_OK);
  assert_int_equal(kjit_get_statistics(context, &counts), KJIT_OK);
  assert_int_equal(counts.compilations, 1);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

static void test_no_machine_code(void **state)
{
  (void)state;
  kjit_context *context = begin((kjit_config){ .target = "sm_90a", .ptxas = path_in("none") });
  assert_int_equal(launch(context, "k"), KJIT_ERROR_NO_COMPILER);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  write_file(ptxas, failing_ptxas, strlen(failing_ptxas), 0755);
  context = begin((kjit_config){ .target = "sm_90a", .ptxas = ptxas });
  assert_int_equal(launch(context, "k"), KJIT_ERROR_COMPILE);
  char *text = kjit_copy_diagnostics_text(context);
  assert_non_null(strstr(text, "status 7"));
  kjit_free(context, text);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  /* ptxas is not used for the CPU */
  context = begin((kjit_config){ .target = "x86-64-v2", .ptxas = path_in("none") });
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

typedef struct stages {
  size_t ptx, cubin;
} stages;

static void count_stage(void *user, const kjit_cache_entry *entry)
{
  stages *counts = user;
  assert_string_equal(entry->target, "sm_90");
  counts->ptx += !strcmp(entry->stage, "ptx");
  counts->cubin += !strcmp(entry->stage, "cubin");
}

static void test_listed(void **state)
{
  (void)state;
  stages counts = { 0 };
  make_file(ptxas);
  kjit_context *context = begin((kjit_config){ 0 });
  assert_int_equal(kjit_visit_cache_file(context, file, count_stage, &counts), KJIT_OK);
  assert_int_equal(counts.ptx, 4); /* with and without facts */
  assert_int_equal(counts.cubin, 4);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_found),           TEST(test_refused_by_the_driver),
    TEST(test_without_ptxas),   TEST(test_other_architecture),
    TEST(test_no_machine_code), TEST(test_listed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

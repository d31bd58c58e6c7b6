/* Another process can replace the file of the GPU math library while kjit uses it. kjit has a copy
 * of the file, because an access to a mapping of a truncated file raises a signal. */
#include "kj_test.h"

#include <kjit/compile.h>
#include <kjit/kjit.h>

#include <unistd.h>

#include "built_compiler.h"
#include "cache_folder.h"

static const char source[] =
  "kernel sums(r, x) { for i in grid_range(len(r)) { r[i] = x[i] + 1 } }\n"
  "kernel sines(r, x) { for i in grid_range(len(r)) { r[i] = sin(x[i]) } }\n";

static void copy_library(const char *path)
{
  static char bytes[1 << 16];
  FILE *from = fopen(KJIT_LIBCLC, "rb"), *to = fopen(path, "wb");
  assert_non_null(from);
  assert_non_null(to);
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, from));)
    assert_int_equal(fwrite(bytes, 1, count, to), count);
  assert_int_equal(fclose(to), 0);
  assert_int_equal(fclose(from), 0);
}

static kjit_status compile(kjit_module *module, const char *name)
{
  kjit_kernel *kernel = NULL;
  void *code = NULL;
  size_t size_bytes = 0;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = "sm_80" };
  assert_int_equal(kjit_get_kernel(module, name, &kernel), KJIT_OK);
  kjit_status status =
    kjit_compile(kernel, "f64[:] C, f64[:] C", &options, KJIT_STAGE_PTX, &code, &size_bytes);
  if (status == KJIT_OK) kjit_free(kjit_get_module_context(module), code);
  return status;
}

static void test_replaced(void **state)
{
  kjit_context *context = NULL;
  kjit_module *module = NULL;
  (void)state;
  if (access(KJIT_LIBCLC, R_OK)) skip(); /* a machine other than the one that built the test */
  /* the name says that the library is libclc */
  char path[640];
  snprintf(path, sizeof path, "%s", path_in("nvptx64--.bc"));
  copy_library(path);
  kjit_config config = { .size_bytes = sizeof config,
                         .compiler_path = find_built_compiler(),
                         .cache_directory = "",
                         .libdevice_path = path };
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kjit_parse_module(context, "t", source, strlen(source), &module), KJIT_OK);
  assert_int_equal(compile(module, "sums"), KJIT_OK); /* opens the library */
  assert_int_equal(truncate(path, 0), 0);
  assert_int_equal(compile(module, "sines"), KJIT_OK);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_replaced, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

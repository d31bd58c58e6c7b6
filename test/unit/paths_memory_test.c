/* Searches paths by patterns and compares them with glob(3), and lets each allocation fail in
 * turn. */
#include <glob.h>

#include "cache_folder.h"
#include "failing_memory.h"
#include "kj_test.h"
#include "support/paths.h"

static const char *const folders[] = { "tool-1",     "tool-1/lib", "tool-10",    "tool-10/lib",
                                       "tool-2",     ".tool-3",    "other",      "tool-9",
                                       "tool-2/lib", "other/lib",  ".tool-3/lib" };
static const char *const files[] = { "tool-1/lib/m.10.bc", "tool-1/lib/m.9.bc", "tool-10/lib/m.bc",
                                     "tool-2/lib/m.1.bc",  "tool-9/lib",        "other/lib/m.1.bc",
                                     ".tool-3/lib/m.1.bc", "tool-1/lib/.m.bc" };
static const char *const patterns[] = { "",          "/tool-1/lib/m.*.bc", "/tool-*/lib/m.*.bc",
                                        "/tool-*",   "/*/lib/*",           "/none/m.*.bc",
                                        "/*/*.none", "/tool-1/lib/m.9.bc", "/tool-9/lib/*" };
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static void make_tree(void)
{
  char path[200];
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
  }
}

static void expect_as_glob(const char *pattern)
{
  glob_t expected;
  kj_paths found = { 0 };
  setenv("LC_ALL", "C", 1);
  size_t count = glob(pattern, 0, NULL, &expected) ? 0 : expected.gl_pathc;
  assert_true(kj_find_paths(&found, pattern));
  assert_int_equal(found.count, count);
  for (size_t i = 0; i < count; i++) assert_string_equal(found.items[i], expected.gl_pathv[i]);
  if (count) globfree(&expected);
  kj_free_paths(&found);
}

/* Returns whether an allocation has failed and therefore nothing was found. */
static bool try_allocation(const char *pattern, long number)
{
  kj_paths found = { 0 };
  long before = live;
  has_failed = false;
  left = number;
  bool is_whole = kj_find_paths(&found, pattern);
  left = 0;
  assert_true(is_whole || (has_failed && !found.count));
  kj_free_paths(&found);
  assert_int_equal(count_left(number, before), 0);
  return has_failed;
}

static void test_paths(void **state)
{
  char pattern[200];
  (void)state;
  is_tester = true;
  make_tree();
  for (size_t i = 0; i < PATTERNS; i++) {
    long number = 1;
    snprintf(pattern, sizeof pattern, "%s%s", folder, patterns[i]);
    expect_as_glob(pattern);
    for (int k = 0; k < 2; k++) assert_false(try_allocation(pattern, 0));
    while (try_allocation(pattern, number)) number++;
    assert_true(number > 1);
  }
}

/* A path relative to the folder of this program, which may contain "..". */
static void test_own_folder(void **state)
{
  static const char up[] = KJ_OWN_FOLDER "/../unit/paths_memory_te*t";
  kj_paths found = { 0 };
  (void)state;
  assert_true(kj_find_paths(&found, up));
  assert_int_equal(found.count, 1);
  assert_true(*found.items[0] == '/' && strstr(found.items[0], "/../unit/paths_memory_test"));
  kj_free_paths(&found);
  is_tester = true;
  for (long number = 1; try_allocation(up, number);) number++;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_paths, make_folder, remove_folder),
    cmocka_unit_test(test_own_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

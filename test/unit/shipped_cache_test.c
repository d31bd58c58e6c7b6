/* Code for a named target: one context compiles it and runs nothing, and other contexts find it in
 * a file. kjit does not use a file that is damaged, that belongs to another build, or that other
 * users can write to. It also does not use code for a guest, or code with other math functions. */
#include "kj_test.h"

#include <kjit/algorithm.h>
#include <kjit/cache.h>
#include <kjit/kjit.h>

#include "built_compiler.h"
#include "cache_folder.h"
#include "code/disk.h"
#include "native/functions.h"

enum { LENGTH = 64 };

static const char source[] =
  "kernel k(r, x) { for i in grid_range(len(r)) { r[i] = 3 * x[i] + 1 } }\n"
  "kernel again(r, x) { for i in grid_range(len(r)) { r[i] = 5 * x[i] } }\n";

/* The configuration of a context, and the results of its launches. */
typedef struct life {
  const char *target, *shipped, *cache; /* fields of kjit_config; cache NULL means no disk cache */
  bool is_guest, has_other_build;
  char remarks[2048];
  size_t remark_count;
  kjit_statistics counts;
} life;

static void keep_remark(void *user, const kjit_diagnostic *diagnostic)
{
  life *l = user;
  if (strncmp(diagnostic->message, "the kernels that ship", strlen("the kernels that ship")) != 0 &&
      strncmp(diagnostic->message, "kjit_export_cache", strlen("kjit_export_cache")) != 0)
    return;
  snprintf(l->remarks, sizeof l->remarks, "%s", diagnostic->message);
  l->remark_count++;
}

static kjit_context *begin(life *l)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = l->cache ? l->cache : "";
  config.compiler_path = find_built_compiler();
  config.libdevice_path = "libclc";
  config.target = l->target;
  config.shipped_cache = l->shipped;
  config.on_diagnostic = keep_remark;
  config.user = l;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  kj_disk *disk = kj_get_runtime(context)->disk;
  kj_identify_disk(disk);
  disk->recheck_every = 0;
  disk->build.low ^= l->has_other_build;
  return context;
}

static void end(life *l, kjit_context *context)
{
  l->counts = (kjit_statistics){ .size_bytes = sizeof l->counts };
  assert_int_equal(kjit_get_statistics(context, &l->counts), KJIT_OK);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

static void expect(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", kjit_copy_diagnostics_text(context));
  assert_int_equal(status, KJIT_OK);
}

static kjit_device *first_device(kjit_context *context, const life *l)
{
  bool is_gpu = l->target && !strncmp(l->target, "sm_", 3);
  kjit_device *device = NULL;
  expect(context,
         kjit_get_device(context, is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &device));
  return device;
}

static kjit_array *make_array(kjit_context *context, kjit_device *device, float first)
{
  const int64_t length = LENGTH;
  float values[LENGTH];
  kjit_array *array = NULL;
  for (int i = 0; i < LENGTH; i++) values[i] = first + (float)i;
  expect(context, kjit_create_array(device, KJIT_F32, &length, 1, &array));
  expect(context, kjit_copy_from_host(array, values, sizeof values, NULL));
  return array;
}

/* Launches one kernel and, on the CPU, compares the result with the same computation in C. */
static void launch(kjit_context *context, const life *l, const char *name)
{
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  kjit_device *device = first_device(context, l);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_array *r = make_array(context, device, 0), *x = make_array(context, device, 7);
  const kjit_arg arguments[] = { kjit_arg_array(r), kjit_arg_array(x) };
  float results[LENGTH];
  expect(context, kjit_parse_module_as(context, l->is_guest ? KJIT_TRUST_GUEST : KJIT_TRUST_HOST,
                                       "s.kir", source, strlen(source), &module));
  expect(context, kjit_get_kernel(module, name, &kernel));
  expect(context, kjit_launch(kernel, &config, arguments, 2));
  if (!l->target) expect(context, kjit_copy_to_host(r, results, sizeof results, NULL));
  for (int i = 0; i < LENGTH && !l->target; i++) {
    float v = 7 + (float)i;
    assert_float_equal(results[i], strcmp(name, "k") ? 5 * v : 3 * v + 1, 0);
  }
  kjit_release_array(r);
  kjit_release_array(x);
  kjit_release_module(module);
}

static void reduce(kjit_context *context, const life *l)
{
  kjit_device *device = first_device(context, l);
  kjit_array *x = make_array(context, device, 1), *r = NULL;
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device = device };
  float sum = 0;
  expect(context, kjit_create_array(device, KJIT_F32, NULL, 0, &r));
  kjit_operand from = kjit_operand_of(kjit_arg_array(x)), to = kjit_operand_of(kjit_arg_array(r));
  kjit_operator add = { .name = "add" };
  expect(context, kjit_reduce(context, &to, &from, &add, &options));
  if (!l->target) {
    expect(context, kjit_copy_to_host(r, &sum, sizeof sum, NULL));
    assert_float_equal(sum, LENGTH * (LENGTH + 1) / 2, 0);
  }
  kjit_release_array(x);
  kjit_release_array(r);
}

static void write_file(const char *path, const void *bytes, size_t size_bytes, mode_t mode)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
}

/* Compiles for the target and writes the file. */
static life compile_for(const char *target, const char *path)
{
  life l = { .target = target };
  void *blob = NULL;
  size_t size_bytes = 0;
  kjit_context *context = begin(&l);
  launch(context, &l, "k");
  launch(context, &l, "again");
  reduce(context, &l);
  expect(context, kjit_export_cache(context, &blob, &size_bytes));
  write_file(path, blob, size_bytes, 0644);
  kjit_free(context, blob);
  end(&l, context);
  return l;
}

/* Creates a context with the file and launches all kernels. */
static life live(life l)
{
  kjit_context *context = begin(&l);
  launch(context, &l, "k");
  if (!l.is_guest) reduce(context, &l);
  launch(context, &l, "again");
  end(&l, context);
  return l;
}

static const char *own_level(void)
{
  kj_cpu_level level = kj_find_level();
  if (level == KJ_CPU_OWN) skip(); /* the processor has wider registers than its level */
  return kj_level_name(level);
}

static char shipped[640]; /* the path of the file */

static int set_up(void **state)
{
  if (make_folder(state)) return -1;
  snprintf(shipped, sizeof shipped, "%s", path_in("kernels.kjit"));
  return 0;
}

/* ---- code that is found ---- */

static void test_found(void **state)
{
  (void)state;
  life made = compile_for(own_level(), shipped), used = live((life){ .shipped = shipped });
  assert_int_equal(made.remark_count, 0);
  assert_true(made.counts.compilations >= 3);
  assert_int_equal(used.remark_count, 0);
  assert_int_equal(used.counts.compilations, 0);
  assert_int_equal(used.counts.imports, made.counts.compilations);
  /* the user's disk cache is searched first; code that needs no driver is not copied to it */
  used = live((life){ .shipped = shipped, .cache = folder });
  assert_int_equal(used.counts.compilations, 0);
  assert_int_equal(count_entries(), 1); /* the file itself */
}

/* The levels of other machines have other keys. A context without a disk cache does not use the
 * installed file unless the configuration names it. */
static void test_not_found(void **state)
{
  (void)state;
  const char *own = own_level(), *other = NULL;
  for (int level = KJ_CPU_OWN + 1; level < KJ_CPU_LEVEL_COUNT && !other; level++)
    if (strcmp(own, kj_level_name((kj_cpu_level)level))) other = kj_level_name((kj_cpu_level)level);
  if (!other) skip(); /* an architecture with one level */
  life made = compile_for(other, shipped), used = live((life){ .shipped = shipped });
  assert_int_equal(used.remark_count, 0);
  assert_int_equal(used.counts.imports, 0);
  assert_int_equal(used.counts.compilations, made.counts.compilations);
  compile_for(own, shipped);
  assert_int_equal(live((life){ .shipped = "" }).counts.imports, 0);
  assert_int_equal(live((life){ 0 }).counts.imports, 0);
}

static void test_gpu(void **state)
{
  (void)state;
  life made = compile_for("sm_90", shipped);
  assert_true(made.counts.compilations >= 3);
  life again = { .target = "sm_90" }, older = { .target = "sm_80" };
  for (int i = 0; i < 2; i++) {
    life *l = i ? &older : &again;
    kjit_context *context = begin(l);
    expect(context, kjit_open_cache(context, shipped));
    launch(context, l, "k");
    float values[LENGTH];
    kjit_array *x = make_array(context, first_device(context, l), 1);
    assert_int_equal(kjit_copy_to_host(x, values, sizeof values, NULL), KJIT_ERROR_UNSUPPORTED);
    kjit_release_array(x);
    end(l, context);
  }
  assert_int_equal(again.counts.compilations, 0);
  assert_int_equal(older.counts.compilations, 1);
}

static void count_entry(void *user, const kjit_cache_entry *entry)
{
  size_t *count = user;
  assert_string_equal(entry->target, kj_level_name(kj_find_level()));
  assert_true(entry->kernel && *entry->kernel && entry->file_bytes);
  ++*count;
}

static void test_listed(void **state)
{
  (void)state;
  size_t count = 0;
  life made = compile_for(own_level(), shipped), l = { 0 };
  kjit_context *context = begin(&l);
  expect(context, kjit_visit_cache_file(context, shipped, count_entry, &count));
  assert_true(count >= made.counts.compilations);
  assert_int_equal(kjit_visit_cache_file(context, path_in("none"), count_entry, &count),
                   KJIT_ERROR_IO);
  end(&l, context);
}

static void test_names_of_targets(void **state)
{
  static const char *const wrong[] = { "cpu", "sm_", "sm_9", "sm_90x", "x86-64-v5", "" };
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    life l = { .target = wrong[i] };
    kjit_device *device = NULL;
    kjit_context *context = begin(&l);
    assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_ERROR_ARGUMENT);
    assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_ERROR_ARGUMENT);
    end(&l, context);
  }
}

/* ---- files that are not used ---- */

/* Expects that the file is not used, that one warning has the reason, and that all kernels are
 * compiled. */
static void expect_unused(life l, const char *why)
{
  l.shipped = shipped;
  life used = live(l);
  assert_int_equal(used.counts.imports, 0);
  assert_true(used.counts.compilations >= 3);
  assert_int_equal(used.remark_count, 1);
  if (!strstr(used.remarks, why)) print_error("%s\n", used.remarks);
  assert_non_null(strstr(used.remarks, why));
}

static void test_untrusted(void **state)
{
  (void)state;
  compile_for(own_level(), shipped);
  assert_int_equal(chmod(shipped, 0664), 0);
  expect_unused((life){ 0 }, "it belongs to another user, or other users may write to it");
  assert_int_equal(chmod(shipped, 0644), 0);
  static const mode_t modes[] = { 0770, 0777, 01777 };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assert_int_equal(chmod(folder, modes[i]), 0);
    expect_unused((life){ 0 }, "its directory belongs to another user, or other users may write");
  }
  assert_int_equal(chmod(folder, 0700), 0);
  assert_int_equal(live((life){ .shipped = shipped }).counts.compilations, 0);
  if (geteuid()) return;
  assert_int_equal(chown(shipped, 12345, 12345), 0);
  expect_unused((life){ 0 }, "it belongs to another user");
  assert_int_equal(chown(shipped, 0, 0), 0);
  assert_int_equal(chown(folder, 12345, 12345), 0);
  expect_unused((life){ 0 }, "its directory belongs to another user");
  assert_int_equal(chown(folder, 0, 0), 0);
}

/* A link in a trusted directory is as trusted as the file to which it points. */
static void test_links(void **state)
{
  (void)state;
  char inner[600], link[600];
  snprintf(inner, sizeof inner, "%s/open", folder);
  snprintf(link, sizeof link, "%s/link", folder);
  assert_int_equal(mkdir(inner, 0700), 0);
  strncat(inner, "/kernels.kjit", sizeof inner - strlen(inner) - 1);
  compile_for(own_level(), inner);
  assert_int_equal(symlink(inner, link), 0);
  assert_int_equal(live((life){ .shipped = link }).counts.compilations, 0);
  *strrchr(inner, '/') = 0;
  assert_int_equal(chmod(inner, 0777), 0);
  snprintf(shipped, sizeof shipped, "%s", link);
  expect_unused((life){ 0 }, "its directory belongs to another user, or other users may write");
}

static void test_foreign(void **state)
{
  (void)state;
  compile_for(own_level(), shipped);
  expect_unused((life){ .has_other_build = true }, "made by another build of kjit");
  assert_int_equal(unlink(shipped), 0);
  expect_unused((life){ 0 }, "No such file");
  assert_int_equal(mkfifo(shipped, 0600), 0);
  expect_unused((life){ 0 }, "it is not a regular file");
}

static char bytes[1 << 20];

static size_t read_shipped(void)
{
  FILE *file = fopen(shipped, "rb");
  assert_non_null(file);
  size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(size_bytes < sizeof bytes);
  return size_bytes;
}

static void test_damaged(void **state)
{
  (void)state;
  compile_for(own_level(), shipped);
  size_t size_bytes = read_shipped();
  for (int part = 0; part < 4; part++) {
    write_file(shipped, bytes, size_bytes * (size_t)part / 4, 0644);
    expect_unused((life){ 0 }, "the compiled code is damaged");
  }
  /* one byte of the index, which a checksum covers */
  bytes[100] ^= 1;
  write_file(shipped, bytes, size_bytes, 0644);
  expect_unused((life){ 0 }, "the compiled code is damaged: its checksum is wrong");
  bytes[100] ^= 1;
  /* damages the entries: each is read when it is needed, and is then a miss */
  memset(bytes + size_bytes / 2, 0x41, size_bytes - size_bytes / 2);
  write_file(shipped, bytes, size_bytes, 0644);
  life used = live((life){ .shipped = shipped });
  assert_int_equal(used.remark_count, 0);
  assert_true(used.counts.compilations > 0);
}

/* If a file is shortened while it is in use, the process gets a cache miss and not a signal. */
static void test_shortened(void **state)
{
  (void)state;
  compile_for(own_level(), shipped);
  life l = { .shipped = shipped };
  kjit_context *context = begin(&l);
  launch(context, &l, "k");
  assert_int_equal(truncate(shipped, 100), 0);
  launch(context, &l, "again");
  assert_int_equal(chmod(folder, 0777), 0);
  reduce(context, &l);
  end(&l, context);
  assert_int_equal(l.counts.imports, 1);
  assert_true(l.counts.compilations >= 2);
}

/* A guest's module does not find code in a file, and its code is not written to a file. */
static void test_guests(void **state)
{
  (void)state;
  const char *own = own_level();
  compile_for(own, shipped);
  life guest = live((life){ .shipped = shipped, .is_guest = true });
  assert_int_equal(guest.counts.imports, 0);
  assert_int_equal(guest.counts.compilations, 2);
  life l = { .target = own, .is_guest = true };
  void *blob = NULL;
  size_t size_bytes = 0, count = 0;
  kjit_context *context = begin(&l);
  launch(context, &l, "k");
  expect(context, kjit_export_cache(context, &blob, &size_bytes));
  write_file(shipped, blob, size_bytes, 0644);
  kjit_free(context, blob);
  expect(context, kjit_visit_cache_file(context, shipped, count_entry, &count));
  assert_int_equal(count, 0);
  end(&l, context);
  assert_int_equal(l.remark_count, 1);
  assert_non_null(strstr(l.remarks, "guest"));
}

/* Code with other math functions than the context would compile with is not used. */
static void test_math(void **state)
{
  (void)state;
  life l = { 0 };
  kjit_context *context = begin(&l);
  kj_disk *disk = kj_get_runtime(context)->disk;
  assert_true(kj_has_own_math(disk, &(kj_code){ 0 }));
  assert_true(kj_has_own_math(disk, &(kj_code){ .math_library = KJ_MATH_LIBCLC }));
  assert_false(kj_has_own_math(disk, &(kj_code){ .math_library = KJ_MATH_LIBDEVICE }));
  disk->libdevice_path = "/usr/share/libdevice.10.bc";
  assert_false(kj_has_own_math(disk, &(kj_code){ .math_library = KJ_MATH_LIBCLC }));
  assert_false(kj_has_own_math(disk, &(kj_code){ .math_library = KJ_MATH_LIBDEVICE }));
  kj_code code = { .vector_functions = kn_identify_vector_functions() };
  assert_true(code.vector_functions != 0);
  assert_true(kj_has_own_math(disk, &code));
  code.vector_functions ^= 1;
  assert_false(kj_has_own_math(disk, &code));
  end(&l, context);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, remove_folder)
  const struct CMUnitTest tests[] = {
    TEST(test_found),     TEST(test_not_found),        TEST(test_gpu),
    TEST(test_listed),    TEST(test_names_of_targets), TEST(test_untrusted),
    TEST(test_links),     TEST(test_foreign),          TEST(test_damaged),
    TEST(test_shortened), TEST(test_guests),           TEST(test_math)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

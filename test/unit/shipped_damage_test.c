/* Files of compiled kernels that are damaged, replaced or shortened, also while they are in use: no
 * entry is read that was not written, and nothing breaks. */
#include <fcntl.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <sys/wait.h>

#include "kj_test.h"

#include "built_compiler.h"
#include "cache_folder.h"
#include "code/archive.h"
#include "code/archive_format.h"

static const char path_name[] = "kernels.kjit";
static char path[640];
static unsigned char *blob;
static size_t blob_bytes;
static kj_digest build;

/* ---- a file with a few kernels ---- */

enum { KERNELS = 4, LENGTH = 64 };

static void write_text(char *text, size_t bytes, int factor)
{
  snprintf(text, bytes, "kernel k(r, x) { for i in grid_range(len(r)) { r[i] = x[i] * %d } }",
           factor);
}

static kjit_context *begin(const char *target, const char *shipped)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  config.compiler_path = find_built_compiler();
  config.target = target;
  config.shipped_cache = shipped;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  kj_disk *disk = kj_get_runtime(context)->disk;
  kj_identify_disk(disk);
  build = disk->build;
  return context;
}

/* Returns whether a launch succeeds with the right values. */
static bool launch(kjit_context *context, bool is_target, int factor)
{
  char text[120];
  const int64_t length = LENGTH;
  float x[LENGTH], r[LENGTH] = { 0 };
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  for (int i = 0; i < LENGTH; i++) x[i] = (float)(i + 1);
  kjit_tensor of_r = kjit_make_tensor(r, KJIT_F32, 1, &length),
              of_x = kjit_make_tensor(x, KJIT_F32, 1, &length);
  const kjit_arg arguments[] = { kjit_arg_tensor(&of_r), kjit_arg_tensor(&of_x) };
  write_text(text, sizeof text, factor);
  kjit_status status = kjit_parse_module(context, "s.kir", text, strlen(text), &module);
  if (status == KJIT_OK) status = kjit_get_kernel(module, "k", &kernel);
  if (status == KJIT_OK) status = kjit_launch(kernel, NULL, arguments, 2);
  kjit_release_module(module);
  for (int i = 0; i < LENGTH && !is_target; i++)
    if (r[i] != x[i] * (float)factor) return false;
  return status == KJIT_OK;
}

/* Compiles kernels for a processor level. Every machine with this level can run them. */
static void *compile_kernels(int first_factor, size_t *size_bytes)
{
  void *exported = NULL;
  kj_cpu_level level = kj_find_level();
  if (level == KJ_CPU_OWN) skip(); /* wider registers than its level has */
  kjit_context *context = begin(kj_level_name(level), "");
  for (int i = 0; i < KERNELS; i++) assert_true(launch(context, true, first_factor + i));
  assert_int_equal(kjit_export_cache(context, &exported, size_bytes), KJIT_OK);
  void *copy = malloc(*size_bytes);
  assert_non_null(copy);
  memcpy(copy, exported, *size_bytes);
  kjit_free(context, exported);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  return copy;
}

static void write_file(const void *bytes, size_t size_bytes)
{
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(file >= 0 && write(file, bytes, size_bytes) == (ssize_t)size_bytes && !close(file));
}

static int set_up(void **state)
{
  if (make_folder(state)) return -1;
  snprintf(path, sizeof path, "%s", path_in(path_name));
  return 0;
}

static int tear_down(void **state)
{
  free(blob);
  blob = NULL;
  return remove_folder(state);
}

/* ---- opening ---- */

static kjit_status open_bytes(const void *bytes, size_t size_bytes, kj_archive **archive)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_open_blob("test", bytes, size_bytes, build, &diagnostics, archive);
  assert_true((status == KJIT_OK) == !diagnostics.count); /* each failure has a message */
  kj_free_diagnostics(&diagnostics);
  return status;
}

static kjit_status open_file(kj_archive **archive)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_open_archive_file(path, false, build, &diagnostics, archive);
  kj_free_diagnostics(&diagnostics);
  return status;
}

static void test_every_length(void **state)
{
  (void)state;
  kj_archive *archive = NULL;
  blob = compile_kernels(2, &blob_bytes);
  assert_int_equal(open_bytes(blob, blob_bytes, &archive), KJIT_OK);
  kj_close_archives(archive);
  write_file(blob, blob_bytes);
  for (size_t length = blob_bytes; length--;) {
    /* a block of exactly this size, so that a sanitizer sees a read after its end */
    unsigned char *shorter = malloc(length ? length : 1);
    assert_non_null(shorter);
    memcpy(shorter, blob, length);
    assert_int_equal(open_bytes(shorter, length, &archive), KJIT_ERROR_IO);
    free(shorter);
    assert_int_equal(truncate(path, (off_t)length), 0);
    assert_int_equal(open_file(&archive), KJIT_ERROR_IO);
  }
  unsigned char *longer = calloc(1, blob_bytes + 9);
  assert_non_null(longer);
  memcpy(longer, blob, blob_bytes);
  assert_int_equal(open_bytes(longer, blob_bytes + 9, &archive), KJIT_ERROR_IO);
  free(longer);
}

/* Returns whether each entry of a damaged file is the one that was written, or missing. */
static size_t count_right_entries(const kj_archive *archive, const kj_archive *original)
{
  size_t right = 0;
  assert_int_equal(archive->count, original->count);
  for (uint64_t i = 0; i < archive->count; i++) {
    size_t size_bytes, expected_bytes;
    void *entry = kj_read_archived(archive, i, &size_bytes),
         *expected = kj_read_archived(original, i, &expected_bytes);
    assert_non_null(expected);
    assert_int_equal(size_bytes, expected_bytes);
    if (entry) assert_memory_equal(entry, expected, size_bytes);
    right += entry != NULL;
    free(entry);
    free(expected);
  }
  return right;
}

static void test_every_byte(void **state)
{
  (void)state;
  kj_archive *archive = NULL, *original = NULL;
  blob = compile_kernels(2, &blob_bytes);
  assert_int_equal(open_bytes(blob, blob_bytes, &original), KJIT_OK);
  assert_true(original->count >= KERNELS);
  uint64_t first_block = original->blocks[0].offset;
  write_file(blob, blob_bytes);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  assert_true(file >= 0);
  for (size_t i = 0; i < blob_bytes; i++) {
    blob[i] ^= (unsigned char)(1 << i % 8);
    assert_int_equal(open_bytes(blob, blob_bytes, &archive), KJIT_ERROR_IO);
    bool is_tried = i < first_block || i % 16 == 0;
    if (is_tried) {
      assert_int_equal(pwrite(file, blob + i, 1, (off_t)i), 1);
      kjit_status status = open_file(&archive);
      assert_int_equal(status, i < first_block ? KJIT_ERROR_IO : KJIT_OK);
      if (status == KJIT_OK) {
        assert_true(count_right_entries(archive, original) < original->count);
        kj_close_archives(archive);
      }
    }
    blob[i] ^= (unsigned char)(1 << i % 8);
    if (is_tried) assert_int_equal(pwrite(file, blob + i, 1, (off_t)i), 1);
  }
  close(file);
  kj_close_archives(original);
}

/* ---- warnings ---- */

static void count_warnings(void *user, const kjit_diagnostic *diagnostic)
{
  int *count = user;
  if (diagnostic->severity != KJIT_SEVERITY_WARNING) return;
  assert_non_null(strstr(diagnostic->message, "is damaged or cannot be read and is not used"));
  assert_non_null(strstr(diagnostic->message, path));
  ++*count;
}

/* Damages all blocks, so that the index is right and no entry can be read. */
static void damage_blocks(void)
{
  kj_archive *archive = NULL;
  assert_int_equal(open_bytes(blob, blob_bytes, &archive), KJIT_OK);
  for (size_t i = archive->blocks[0].offset; i < blob_bytes; i += 16) blob[i] ^= 1;
  kj_close_archives(archive);
  write_file(blob, blob_bytes);
}

/* A context compiles the kernels whose entries are damaged, and reports one warning for the file:
 * for the shipped file, and for a file that the application opens. */
static void test_one_warning(void **state)
{
  (void)state;
  blob = compile_kernels(2, &blob_bytes);
  damage_blocks();
  for (int is_opened = 0; is_opened < 2; is_opened++) {
    int warnings = 0;
    kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
    config.compiler_path = find_built_compiler();
    config.shipped_cache = is_opened ? "" : path;
    config.on_diagnostic = count_warnings;
    config.user = &warnings;
    kjit_context *context = NULL;
    assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
    kj_get_runtime(context)->disk->recheck_every = 0;
    if (is_opened) assert_int_equal(kjit_open_cache(context, path), KJIT_OK);
    for (int i = 0; i < 2 * KERNELS; i++) assert_true(launch(context, false, 2 + i % KERNELS));
    assert_int_equal(warnings, 1);
    assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  }
}

/* ---- in use ---- */

/* Another process replaces the bytes of the open file by those of another file. */
static void test_replaced(void **state)
{
  (void)state;
  kj_archive *archive = NULL, *original = NULL;
  size_t other_bytes;
  blob = compile_kernels(2, &blob_bytes);
  void *other = compile_kernels(100, &other_bytes);
  write_file(blob, blob_bytes);
  assert_int_equal(open_bytes(blob, blob_bytes, &original), KJIT_OK);
  assert_int_equal(open_file(&archive), KJIT_OK);
  assert_int_equal(count_right_entries(archive, original), original->count);
  write_file(other, other_bytes);
  assert_int_equal(count_right_entries(archive, original), 0);
  write_file(blob, blob_bytes);
  assert_int_equal(count_right_entries(archive, original), original->count);
  kj_close_archives(archive);
  kj_close_archives(original);
  free(other);
}

typedef struct launcher {
  kjit_context *context;
  int factor;
  bool is_right;
} launcher;

static void *run_launches(void *data)
{
  launcher *l = data;
  l->is_right = true;
  for (int i = 0; i < KERNELS; i++)
    l->is_right = l->is_right && launch(l->context, false, 2 + (l->factor + i) % KERNELS);
  return NULL;
}

static kjit_statistics read_counts(kjit_context *context)
{
  kjit_statistics counts = { .size_bytes = sizeof counts };
  assert_int_equal(kjit_get_statistics(context, &counts), KJIT_OK);
  return counts;
}

/* In a forked process, a context of its own uses the file. Returns the exit status. */
static int run_child(void)
{
  kjit_context *context = begin(NULL, path);
  bool is_right = true;
  for (int i = 0; i < KERNELS; i++) is_right = is_right && launch(context, false, 2 + i);
  kjit_statistics counts = read_counts(context);
  return is_right && !counts.compilations && counts.imports == KERNELS ? 0 : 1;
}

/* ThreadSanitizer ends a forked process that starts a thread. AddressSanitizer's allocator can be
 * locked by another thread at a fork, and then a forked process waits for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { CHILDREN = 0 };
#else
enum { CHILDREN = 3 };
#endif

/* Threads use the file while other processes are forked, which use it as well. */
static void test_threads_and_forks(void **state)
{
  enum { THREADS = 6 };
  (void)state;
  pthread_t threads[THREADS];
  launcher launchers[THREADS];
  pid_t children[CHILDREN + 1];
  blob = compile_kernels(2, &blob_bytes);
  write_file(blob, blob_bytes);
  kjit_context *context = begin(NULL, path);
  assert_true(launch(context, false, 2));
  for (int i = 0; i < THREADS; i++) {
    launchers[i] = (launcher){ .context = context, .factor = i };
    assert_int_equal(pthread_create(&threads[i], NULL, run_launches, &launchers[i]), 0);
  }
  for (int i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    if (!children[i]) {
      alarm(200); /* a child that waits for a lock of the parent's threads fails */
      _exit(run_child());
    }
    assert_true(children[i] > 0);
  }
  for (int i = 0; i < CHILDREN; i++) {
    int status = 0;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(launchers[i].is_right);
  }
  kjit_statistics counts = read_counts(context);
  assert_int_equal(counts.compilations, 0);
  assert_true(counts.imports >= KERNELS);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = { TEST(test_threads_and_forks), TEST(test_every_length),
                                      TEST(test_every_byte), TEST(test_one_warning),
                                      TEST(test_replaced) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

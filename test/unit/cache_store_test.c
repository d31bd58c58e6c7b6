/* Tests the disk cache without a compiler: damaged entries, writers that are killed, full disks,
 * limits, and several versions. The tests for CUDA use a fake driver in host memory. */
#include "kj_test.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <utime.h>

#include "cache_folder.h"
#include "code/disk.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static kj_disk *open_folder(const char *directory, uint64_t limit_bytes)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = directory;
  config.cache_limit_bytes = limit_bytes;
  return kj_open_disk(&config);
}

static const kj_digest compiler = { 1, 2 }, other_compiler = { 1, 3 };
static kj_parameter parameters[] = {
  { .kind = KJ_PARAMETER_POINTER, .size_bytes = 8 },
  { .kind = KJ_PARAMETER_EXTENT, .size_bytes = 4, .offset = 8 }
};

/* Makes code whose bytes depend on the number. */
static kj_code make_code(unsigned number, size_t size_bytes)
{
  kj_code code = { .data = malloc(size_bytes),
                   .size_bytes = size_bytes,
                   .entry = (char *)(uintptr_t) "entry",
                   .facts = (char *)(uintptr_t) "disjoint",
                   .parameters = parameters,
                   .parameter_count = 2,
                   .parameter_bytes = 12,
                   .scratch_bytes = 64,
                   .max_threads = number };
  for (size_t i = 0; i < size_bytes; i++)
    ((unsigned char *)code.data)[i] = (unsigned char)(number + i * 7);
  return code;
}

static kj_disk_key make_key(unsigned number)
{
  kj_disk_key key = { .text = malloc(128), .has_sources = true };
  key.size_bytes =
    (size_t)snprintf(key.text, 128,
                     "kjit 0.1.0\ntarget cpu\nkernel k%u\nsignature f32\n\nkernel k%u() {}\n",
                     number, number);
  key.digest = kj_digest_bytes(key.text, key.size_bytes);
  return key;
}

static void publish(kj_disk *disk, unsigned number, size_t size_bytes)
{
  kj_disk_key key = make_key(number);
  kj_code code = make_code(number, size_bytes);
  kj_publish_entry(disk, &key, compiler, &code);
  free(code.data);
  kj_free_disk_key(&key);
}

/* Returns whether the entry exists. An existing entry must be correct. */
static bool is_right(const kj_code *code, unsigned number)
{
  kj_code expected = make_code(number, code->size_bytes);
  bool is_equal = !memcmp(code->data, expected.data, code->size_bytes) &&
                  !strcmp(code->entry, "entry") && !strcmp(code->facts, "disjoint") &&
                  !code->can_fail && code->parameter_count == 2 &&
                  !memcmp(code->parameters, parameters, sizeof parameters) &&
                  code->max_threads == number && code->scratch_bytes == 64;
  free(expected.data);
  return is_equal;
}

static bool fetch(kj_disk *disk, unsigned number)
{
  kj_disk_key key = make_key(number);
  kj_code code = { 0 };
  bool is_found = kj_fetch_entry(disk, &key, &compiler, &code);
  if (is_found && !is_right(&code, number)) abort();
  kj_free_code(&code);
  kj_free_disk_key(&key);
  return is_found;
}

/* ---- damage ---- */

enum { SMALL = 40 };

static kj_entry_state unpack(const void *bytes, size_t size_bytes, unsigned number,
                             const kj_digest *by)
{
  kj_disk_key key = make_key(number);
  kj_code code = { 0 };
  char *copy = malloc(size_bytes + 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size_bytes);
  kj_entry_state state = kj_take_entry(copy, size_bytes, &key, by, &code);
  kj_free_code(&code);
  kj_free_disk_key(&key);
  return state;
}

static unsigned char *pack(unsigned number, size_t *size_bytes)
{
  kj_disk_key key = make_key(number);
  kj_code code = make_code(number, SMALL);
  unsigned char *bytes = kj_pack_entry(&key, compiler, &code, size_bytes);
  free(code.data);
  kj_free_disk_key(&key);
  return bytes;
}

static void test_every_bit(void **state)
{
  (void)state;
  size_t size;
  unsigned char *bytes = pack(1, &size);
  assert_int_equal(unpack(bytes, size, 1, &compiler), KJ_ENTRY_WHOLE);
  assert_int_equal(unpack(bytes, size, 1, NULL), KJ_ENTRY_WHOLE);
  assert_int_equal(unpack(bytes, size, 2, &compiler), KJ_ENTRY_OTHER);
  assert_int_equal(unpack(bytes, size, 1, &other_compiler), KJ_ENTRY_OTHER);
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (unsigned char)(1 << bit);
      assert_int_equal(unpack(bytes, size, 1, &compiler), KJ_ENTRY_BROKEN);
      bytes[i] ^= (unsigned char)(1 << bit);
    }
  for (size_t i = 0; i < size; i++) {
    unsigned char *shorter = malloc(i + 1); /* so that a sanitizer reports a read after the end */
    memcpy(shorter, bytes, i);
    assert_int_equal(unpack(shorter, i, 1, &compiler), KJ_ENTRY_BROKEN);
    free(shorter);
  }
  unsigned char *longer = calloc(1, size + 1);
  memcpy(longer, bytes, size);
  assert_int_equal(unpack(longer, size + 1, 1, &compiler), KJ_ENTRY_BROKEN);
  free(longer);
  free(bytes);
}

static void write_bytes(const char *name, const void *bytes, size_t size_bytes)
{
  FILE *file = fopen(path_in(name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
  assert_int_equal(fchmod(fileno(file), 0600), 0); /* independent of the umask */
  fclose(file);
}

static void name_of(unsigned number, char name[64])
{
  kj_disk_key key = make_key(number);
  snprintf(name, 64, "%016llx%016llx.kjit", (unsigned long long)key.digest.high,
           (unsigned long long)key.digest.low);
  kj_free_disk_key(&key);
}

/* A damaged file counts as a miss and is removed. A valid entry for another key stays. */
static void test_damaged_files(void **state)
{
  (void)state;
  size_t size;
  unsigned char *bytes = pack(1, &size);
  char name[64];
  name_of(1, name);
  kj_disk *disk = open_folder(folder, 0);
  for (size_t i = 0; i < size; i++) {
    bytes[i] ^= 0x55;
    write_bytes(name, bytes, size);
    bytes[i] ^= 0x55;
    assert_false(fetch(disk, 1));
    assert_int_equal(count_entries(), 0);
    write_bytes(name, bytes, i);
    assert_false(fetch(disk, 1));
    assert_int_equal(count_entries(), 0);
  }
  write_bytes(name, bytes, size);
  assert_true(fetch(disk, 1));
  free(bytes);
  bytes = pack(2, &size);
  write_bytes(name, bytes, size);
  assert_false(fetch(disk, 1)); /* two keys with the same digest would look like this */
  assert_int_equal(count_entries(), 1);
  unlink(path_in(name));
  assert_int_equal(mkdir(path_in(name), 0700), 0);
  assert_false(fetch(disk, 1));
  publish(disk, 1, SMALL); /* the entry's file cannot be renamed to a directory */
  assert_int_equal(count_unfinished(), 0);
  assert_true(kj_can_publish(disk));
  free(bytes);
  kj_close_disk(disk);
}

/* ---- writers ---- */

enum { LARGE = 200000 };

static int write_for_ever(int number)
{
  kj_disk *disk = open_folder(folder, 0);
  for (unsigned i = 0;; i++) publish(disk, (unsigned)number + i % 5, LARGE);
  return 0;
}

static void test_killed_writers(void **state)
{
  (void)state;
  kj_disk *disk = open_folder(folder, 0);
  unsigned seed = 1;
  /* on a busy machine it takes more rounds until a process has written an entry */
  for (int round = 0; round < 300 || count_entries() == 0; round++) {
    pid_t process = start_process(write_for_ever, round % 3);
    seed = seed * 1664525u + 1013904223u;
    long most_ns = round < 300 ? 3000000 : 300000000;
    nanosleep(&(struct timespec){ .tv_nsec = 200000 + (seed >> 8) % most_ns }, NULL);
    kill(process, SIGKILL);
    end_process(process);
    /* fetch aborts if the entry is not correct */
    for (unsigned i = 0; i < 8; i++) (void)fetch(disk, i);
  }
  assert_in_range(count_entries(), 1, 7);
  kj_trimmed trimmed;
  assert_int_equal(kj_trim_disk(disk, 0, &trimmed), KJIT_OK);
  assert_int_equal(count_entries() + count_unfinished(), 0);
  kj_close_disk(disk);
}

static int write_and_read(int number)
{
  (void)number;
  kj_disk *disk = open_folder(folder, LARGE * 3);
  for (unsigned i = 0; i < 40; i++) {
    if (!fetch(disk, i % 6)) publish(disk, i % 6, LARGE);
    (void)fetch(disk, i % 4);
  }
  kj_close_disk(disk);
  return 0;
}

static void test_many_processes(void **state)
{
  (void)state;
  pid_t processes[16];
  for (int i = 0; i < 16; i++) processes[i] = start_process(write_and_read, i);
  for (int i = 0; i < 16; i++) assert_int_equal(end_process(processes[i]), 0);
  assert_int_equal(count_unfinished(), 0);
}

static int write_to_full_disk(int number)
{
  (void)number;
  struct rlimit limit = { 100, 100 };
  if (setrlimit(RLIMIT_FSIZE, &limit)) return 1;
  kj_disk *disk = open_folder(folder, 0);
  publish(disk, 1, LARGE);
  if (fetch(disk, 1) || count_entries() || count_unfinished()) return 2;
  sigset_t pending;
  sigpending(&pending);
  kj_close_disk(disk);
  return sigismember(&pending, SIGXFSZ) ? 3 : 0;
}

static void test_full_disk(void **state)
{
  (void)state;
  assert_int_equal(end_process(start_process(write_to_full_disk, 0)), 0);
}

/* ---- directories ---- */

/* Root may write anywhere. */
static int use_as_nobody(int number)
{
  (void)number;
  if (geteuid() == 0 && setuid(65534)) return 1;
  kj_disk *disk = open_folder(folder, 0);
  bool is_found = fetch(disk, 1);
  publish(disk, 2, SMALL);
  bool can_publish = kj_can_publish(disk), is_new = fetch(disk, 2);
  kj_close_disk(disk);
  return !is_found ? 2 : can_publish ? 3 : is_new ? 4 : 0;
}

static void test_read_only(void **state)
{
  (void)state;
  char name[64];
  kj_disk *disk = open_folder(folder, 0);
  publish(disk, 1, SMALL);
  kj_close_disk(disk);
  name_of(1, name);
  assert_int_equal(chmod(path_in(name), 0444), 0);
  assert_int_equal(chmod(folder, 0555), 0);
  assert_int_equal(end_process(start_process(use_as_nobody, 0)), 0);
  assert_int_equal(chmod(folder, 0700), 0);
}

/* Other users who can write to the directory or to an entry could make this user's process run any
 * code. kjit neither uses nor removes such entries. */
static void test_entries_of_others(void **state)
{
  (void)state;
  static const struct {
    mode_t mode;
    uid_t owner; /* 0: this user */
    bool is_found;
  } rows[] = { { 0600, 0, true },
               { 0444, 0, true },
               { 0660, 0, false },
               { 0606, 0, false },
               { 0644, 65534, false } };
  char name[64];
  kj_disk *disk = open_folder(folder, 0);
  name_of(1, name);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].owner && geteuid()) continue; /* only root can change the owner of a file */
    publish(disk, 1, SMALL);
    if (rows[i].owner) assert_int_equal(chown(path_in(name), rows[i].owner, (gid_t)-1), 0);
    assert_int_equal(chmod(path_in(name), rows[i].mode), 0);
    assert_int_equal(fetch(disk, 1), rows[i].is_found);
    assert_int_equal(count_entries(), 1);
    /* in the user's own directory, the next compiled code replaces the file */
    publish(disk, 1, SMALL);
    assert_true(fetch(disk, 1));
  }
  kj_close_disk(disk);
}

/* The file `usage` may be a link or another file. kjit does not write to a file that it has not
 * created. */
static void test_false_usage(void **state)
{
  (void)state;
  enum { LENGTH = 40 };
  static const char mine[LENGTH + 1] = "forty bytes that belong to somebody else";
  char found[LENGTH];
  for (int i = 0; i < 4; i++) {
    (void)unlink(path_in("usage"));
    char *target = strdup(path_in("precious"));
    write_bytes("precious", mine, i < 2 ? LENGTH : 10);
    /* a user's own file of that name */
    if (i == 0) assert_int_equal(rename(target, path_in("usage")), 0);
    if (i == 1 || i == 2) assert_int_equal(symlink(target, path_in("usage")), 0);
    if (i == 3) assert_int_equal(link(target, path_in("usage")), 0);
    kj_disk *disk = open_folder(folder, 0);
    publish(disk, (unsigned)i, SMALL);
    assert_true(fetch(disk, (unsigned)i));
    kj_close_disk(disk);
    FILE *file = fopen(i ? target : path_in("usage"), "rb");
    size_t length = i < 2 ? LENGTH : 10;
    assert_int_equal(fread(found, 1, LENGTH, file), length);
    assert_memory_equal(found, mine, length);
    fclose(file);
    free(target);
  }
}

/* Other files of the user stay in the directory, for any file names. */
static void test_files_of_the_user(void **state)
{
  (void)state;
  static const char *const names[] = { "unfinished-symphony", "unfinished-0123456789abcdef.txt",
                                       "unfinished-0123456789abcdeg", "0123.kjit" };
  kj_trimmed trimmed;
  kj_disk *disk = open_folder(folder, 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    write_bytes(names[i], "mine", 4);
    assert_int_equal(utime(path_in(names[i]), &(struct utimbuf){ 1, 1 }), 0);
  }
  publish(disk, 1, SMALL);
  assert_int_equal(kj_trim_disk(disk, 0, &trimmed), KJIT_OK);
  assert_int_equal(trimmed.removed_count, 1);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_int_equal(access(path_in(names[i]), R_OK), 0);
  kj_close_disk(disk);
}

/* If a process has no free file descriptors, the cache must not conclude that the directory cannot
 * be written. */
static int run_out_of_files(int number)
{
  (void)number;
  struct rlimit limit;
  kj_disk *disk = open_folder(folder, 0);
  publish(disk, 1, SMALL);
  if (getrlimit(RLIMIT_NOFILE, &limit) ||
      setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max }))
    return 1;
  publish(disk, 2, SMALL);
  if (fetch(disk, 1) || fetch(disk, 2)) return 2;
  if (setrlimit(RLIMIT_NOFILE, &limit)) return 3;
  publish(disk, 3, SMALL);
  if (!fetch(disk, 1) || !fetch(disk, 3)) return 4;
  kj_close_disk(disk);
  return 0;
}

static void test_no_more_files(void **state)
{
  (void)state;
  assert_int_equal(end_process(start_process(run_out_of_files, 0)), 0);
}

static void test_no_directory(void **state)
{
  (void)state;
  static const char *const impossible[] = { "/dev/null/kjit", "/proc/kjit/cache",
                                            "/proc/self/status" };
  for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
    kj_disk *disk = open_folder(impossible[i], 0);
    assert_false(fetch(disk, 1));
    publish(disk, 1, SMALL);
    assert_false(fetch(disk, 1));
    assert_false(kj_can_publish(disk));
    kj_close_disk(disk);
  }
  kj_disk *off = open_folder("", 0);
  assert_false(kj_keeps_code(off));
  assert_false(kj_can_publish(off));
  kj_close_disk(off);
  char deep[128];
  snprintf(deep, sizeof deep, "%s/a/b/c", folder);
  kj_disk *disk = open_folder(deep, 0);
  publish(disk, 1, SMALL);
  assert_true(fetch(disk, 1));
  kj_close_disk(disk);
}

/* The environment determines the default directory. */
static void test_default_directory(void **state)
{
  (void)state;
  char expected[128];
  assert_int_equal(setenv("HOME", folder, 1), 0);
  assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
  kj_disk *disk = open_folder(NULL, 0);
  snprintf(expected, sizeof expected, "%s/.cache/kjit", folder);
  assert_string_equal(disk->directory, expected);
  kj_close_disk(disk);
  /* the specification says to ignore it */
  assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
  disk = open_folder(NULL, 0);
  assert_string_equal(disk->directory, expected);
  kj_close_disk(disk);
  assert_int_equal(setenv("XDG_CACHE_HOME", "/caches", 1), 0);
  disk = open_folder(NULL, 0);
  assert_string_equal(disk->directory, "/caches/kjit");
  kj_close_disk(disk);
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  disk = open_folder(NULL, 0);
  assert_false(kj_keeps_code(disk));
  kj_close_disk(disk);
}

/* ---- the limit ---- */

static uint64_t total_bytes(kj_disk *disk)
{
  kj_disk_file *files;
  size_t count;
  uint64_t total = 0;
  assert_int_equal(kj_list_disk(disk, &files, &count), KJIT_OK);
  for (size_t i = 0; i < count; i++) total += files[i].size_bytes;
  free(files);
  return total;
}

static void test_bound(void **state)
{
  (void)state;
  enum { ENTRY = 10000, BOUND = 20 * 11000 };
  kj_disk *disk = open_folder(folder, BOUND);
  write_bytes("notes.txt", "mine", 4);
  for (unsigned i = 0; i < 100; i++) {
    publish(disk, i, ENTRY);
    assert_true(total_bytes(disk) <= BOUND);
    assert_true(fetch(disk, 0)); /* this entry is used in each round, so it is never the oldest */
    /* file times are as coarse as the kernel's ticks */
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
  }
  assert_true(fetch(disk, 99));
  assert_false(fetch(disk, 1));
  publish(disk, 1000, BOUND); /* larger than the limit */
  assert_true(fetch(disk, 0));
  assert_false(fetch(disk, 1000));
  write_bytes("usage", "nonsense nonsense nonsense", 24);
  publish(disk, 200, ENTRY);
  assert_true(fetch(disk, 200) && total_bytes(disk) <= BOUND);
  write_bytes("unfinished-0123456789abcdef", "", 0);
  assert_int_equal(utime(path_in("unfinished-0123456789abcdef"), &(struct utimbuf){ 1, 1 }), 0);
  kj_trimmed trimmed;
  assert_int_equal(kj_trim_disk(disk, 3 * 11000, &trimmed), KJIT_OK);
  assert_true(trimmed.removed_count >= 10 && total_bytes(disk) <= 3 * 11000 &&
              count_unfinished() == 0);
  assert_int_equal(kj_trim_disk(disk, 0, &trimmed), KJIT_OK);
  assert_int_equal(count_entries(), 0);
  assert_int_equal(access(path_in("notes.txt"), R_OK), 0);
  kj_close_disk(disk);
}

/* ---- kernels on a GPU: the code is the PTX as the fake driver links it ---- */

static const char axpy[] =
  "kernel axpy(r, a, x) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] }\n}\n";

static kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  kjit_context *context = NULL;
  memset(&fake, 0, sizeof fake);
  config.cache_directory = folder;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_use_compiler(context, &fake_interface, &diagnostics), KJIT_OK);
  cuda.current = NULL;
  kjit_status status = kj_use_driver(context, find_fake, NULL, &diagnostics);
  kj_free_diagnostics(&diagnostics);
  if (status == KJIT_OK) return context;
  kjit_destroy_context(context);
  return NULL;
}

static kjit_status launch_axpy(kjit_context *context)
{
  static _Alignas(16) float data[32];
  int64_t length[] = { 16 };
  kjit_launch_config config = { .size_bytes = sizeof config };
  kjit_status status = kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &config.device);
  if (status != KJIT_OK) return status;
  kjit_tensor r = { .data = data,
                    .device_type = 1,
                    .rank = 1,
                    .code = 2,
                    .bits = 32,
                    .lanes = 1,
                    .shape = length },
              x = r;
  x.data = data + 16;
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x) };
  return kjit_launch(kernel_of(parse(context, axpy), "axpy"), &config, arguments, 3);
}

static void test_gpu(void **state)
{
  (void)state;
  cuda = (fake_driver){ .devices = 1 };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  for (int round = 0; round < 3; round++) {
    kjit_context *context = make_context();
    assert_int_equal(launch_axpy(context), KJIT_OK);
    kjit_get_statistics(context, &statistics);
    assert_int_equal(fake.compilations, round == 0);
    assert_int_equal(statistics.compilations, round == 0);
    assert_int_equal(statistics.disk_hits, round > 0);
    assert_int_equal(statistics.disk_misses, round == 0);
    assert_int_equal(fake.created, round == 0);
    kjit_destroy_context(context);
    assert_int_equal(cuda.modules + cuda.links, 0);
  }
  cuda.refuse_ptx = true; /* the entry with machine code is used */
  kjit_context *context = make_context();
  assert_int_equal(launch_axpy(context), KJIT_ERROR_COMPILE);
  assert_int_equal(fake.compilations, 1);
  kjit_destroy_context(context);
  assert_int_equal(cuda.modules + cuda.links, 0);
  fake_delete_all();
}

/* Every driver call of a miss and of a hit fails in turn. No object is leaked, and a failed call
 * that only the cache needs is not an error. */
static void test_failing_calls(void **state)
{
  (void)state;
  for (int is_hit = 0; is_hit < 2; is_hit++)
    for (int fail_at = 1;; fail_at++) {
      if (!is_hit) remove_folder(NULL), mkdir(folder, 0700);
      cuda = (fake_driver){ .devices = 1, .fail_at = fail_at, .fail_with = CUDA_UNKNOWN };
      kjit_context *context = make_context();
      kjit_status status = context ? launch_axpy(context) : KJIT_ERROR_NO_DEVICE;
      bool has_failed = cuda.failed != NULL,
           is_link = has_failed && !strncmp(cuda.failed, "cuLink", 6);
      if (is_link) assert_int_equal(status, KJIT_OK);
      if (is_link) assert_int_equal(count_entries(), 0);
      if (context) kjit_destroy_context(context);
      assert_int_equal(cuda.modules + cuda.links + cuda.allocations + cuda.retained, 0);
      fake_delete_all();
      if (!has_failed) {
        assert_int_equal(status, KJIT_OK);
        break;
      }
    }
}

int main(void)
{
  /* Builds with assertions compile a sixteenth of the code that they find again, chosen by the key.
   * The fake compiler counts compilations. */
  setenv("KJIT_RECHECK", "0", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
    TEST(test_every_bit),
    TEST(test_damaged_files),
    TEST(test_killed_writers),
    TEST(test_many_processes),
    TEST(test_full_disk),
    TEST(test_read_only),
    TEST(test_no_directory),
    TEST(test_bound),
    TEST(test_gpu),
    TEST(test_failing_calls),
    TEST(test_default_directory),
    TEST(test_entries_of_others),
    TEST(test_false_usage),
    TEST(test_files_of_the_user),
    TEST(test_no_more_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

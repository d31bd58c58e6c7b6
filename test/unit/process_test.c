/* Runs programs that show machine code. Scripts in PATH replace these programs; they print
 * something, or fail in every possible way. Afterwards the test process has no child, no open
 * descriptor and no file of them left. */
#include "gpu_test.h"

#include <kjit/code.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "cache_folder.h"
#include "cuda/toolkit.h"

static size_t count_descriptors(void)
{
  size_t count = 0;
  DIR *directory = opendir("/proc/self/fd");
  while (directory && readdir(directory)) count++;
  if (directory) closedir(directory);
  return count;
}

static size_t descriptors;

static int set_up(void **state)
{
  if (make_folder(state)) return -1;
  unsetenv("CUDA_HOME");
  unsetenv("CUDA_PATH");
  char *path;
  if (asprintf(&path, "%s:/usr/bin:/bin", folder) < 0) return -1;
  setenv("PATH", path, 1);
  free(path);
  descriptors = count_descriptors();
  return 0;
}

static int tear_down(void **state)
{
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child process is left, running or ended */
  assert_int_equal(errno, ECHILD);
  assert_int_equal(count_descriptors(), descriptors);
  return remove_folder(state);
}

/* Writes an executable script to the test's folder. */
static void write_script(const char *name, const char *lines)
{
  FILE *file = fopen(path_in(name), "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\n%s\n", lines);
  fclose(file);
  assert_int_equal(chmod(path_in(name), 0755), 0);
}

/* ---- one program ---- */

typedef struct result {
  kjit_status status;
  char *output, *message;
  size_t bytes;
} result;

/* Runs the script `name` in the test's folder. */
static result run(const char *name, bool has_result, uint32_t limit_ms, uint32_t limit_bytes)
{
  char *path;
  assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
  const char *arguments[] = { path, KJ_PROCESS_INPUT, KJ_PROCESS_RESULT, NULL };
  kj_process process = { .arguments = arguments,
                         .input = "input",
                         .input_bytes = 5,
                         .has_result = has_result,
                         .limit_ms = limit_ms,
                         .limit_bytes = limit_bytes };
  kj_diagnostics diagnostics = { 0 };
  void *output = NULL;
  result r = { 0 };
  r.status = kj_run_process(&process, &diagnostics, &output, &r.bytes);
  r.output = output;
  assert_int_equal(r.status == KJIT_OK, output != NULL);
  assert_int_equal(diagnostics.count, r.status != KJIT_OK);
  if (diagnostics.count) r.message = strdup(diagnostics.items[0].message);
  kj_free_diagnostics(&diagnostics);
  free(path);
  return r;
}

static result run_lines(const char *lines, bool has_result)
{
  write_script("program", lines);
  return run("program", has_result, 60000, 1 << 26);
}

static void expect_output(result r, const char *expected)
{
  if (r.status != KJIT_OK) print_error("%s\n", r.message);
  assert_int_equal(r.status, KJIT_OK);
  assert_string_equal(r.output, expected);
  assert_int_equal(r.bytes, strlen(expected));
  free(r.output);
}

/* expected: the message after the path of the program. */
static void expect_failure(result r, kjit_status status, const char *expected)
{
  assert_int_equal(r.status, status);
  const char *found = strstr(r.message, expected);
  if (!found || found[strlen(expected)]) print_error("%s\n", r.message);
  assert_non_null(found);
  assert_int_equal(found[strlen(expected)], 0);
  assert_non_null(strstr(r.message, folder));
  free(r.message);
}

static void test_results(void **state)
{
  (void)state;
  expect_output(run_lines("echo warning >&2; cat $1; echo", false), "input\n");
  expect_output(run_lines("echo noise; cat $1 > $2; printf ', more' >> $2", true), "input, more");
  expect_output(run_lines("cat; echo end", false), "end\n"); /* the standard input is empty */
}

static void test_failures(void **state)
{
  (void)state;
  expect_failure(run_lines("echo fatal >&2; exit 3", false), KJIT_ERROR_COMPILE,
                 " failed with status 3:\nfatal");
  expect_failure(run_lines("echo half; exit 1", false), KJIT_ERROR_COMPILE,
                 " failed with status 1:\nhalf");
  expect_failure(run_lines("exit 2", true), KJIT_ERROR_COMPILE, " failed with status 2");
  expect_failure(run_lines("echo half > $2; kill -9 $$", true), KJIT_ERROR_COMPILE,
                 " was killed by signal 9");
  expect_failure(run_lines("echo hmm >&2", false), KJIT_ERROR_COMPILE, " gave nothing:\nhmm");
  expect_failure(run_lines("echo done", true), KJIT_ERROR_COMPILE, " gave nothing:\ndone");
  expect_failure(run("missing", false, 1000, 1000), KJIT_ERROR_IO,
                 " cannot be run: No such file or directory");
  /* the operating system rejects the file, which is neither ELF nor a script */
  FILE *file = fopen(path_in("broken"), "w");
  fputs("\177ELF", file);
  fclose(file);
  chmod(path_in("broken"), 0755);
  expect_failure(run("broken", false, 1000, 1000), KJIT_ERROR_IO,
                 " cannot be run: Exec format error");
}

/* The script writes more than a pipe holds, to both streams in turn. A reader that reads the
 * streams one after the other would wait forever. */
/* An application may limit the size of its files. The signal for exceeding the limit would end the
 * application. */
static void test_file_size_limit(void **state)
{
  (void)state;
  struct rlimit usual, none;
  write_script("program", "cat $1");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
  none = usual;
  none.rlim_cur = 0;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  result r = run("program", false, 60000, 1 << 26);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
  expect_failure(r, KJIT_ERROR_IO, "program: File too large");
  expect_output(run("program", false, 60000, 1 << 26), "input");
}

static void test_much(void **state)
{
  (void)state;
  enum { LINES = 4000, LINE = 1000 };
  result r = run_lines("l=$(printf '%0999d' 0); i=0; while [ $i -lt 4000 ]; do echo $l; echo $l "
                       ">&2; i=$((i + 1)); done",
                       false);
  assert_int_equal(r.status, KJIT_OK);
  assert_int_equal(r.bytes, LINES * LINE);
  free(r.output);
  write_script("endless", "while :; do echo 0123456789; done");
  expect_failure(run("endless", false, 60000, 100000), KJIT_ERROR_COMPILE,
                 " wrote more than 100000 bytes and was stopped");
  write_script("large", "head -c 200000 /dev/zero > $2");
  expect_failure(run("large", true, 60000, 100000), KJIT_ERROR_COMPILE,
                 " wrote more than 100000 bytes and was stopped");
}

/* A busy machine starts a program late, so the limit grows until the program has printed. */
static void expect_hanging(const char *script, const char *printed)
{
  enum { MOST_MS = 60000 };
  char expected[100];
  result r;
  write_script("program", script);
  for (uint32_t limit_ms = 200;; limit_ms *= 4) {
    r = run("program", false, limit_ms, 1000);
    snprintf(expected, sizeof expected, " took longer than %g s and was stopped%s", limit_ms / 1e3,
             printed);
    if (limit_ms * 4 > MOST_MS || (r.message && strstr(r.message, printed))) break;
    free(r.message);
  }
  expect_failure(r, KJIT_ERROR_COMPILE, expected);
}

static void test_hanging(void **state)
{
  (void)state;
  expect_hanging("echo begin; exec sleep 1000", ":\nbegin");
  expect_hanging("exec sleep 1000 >&- 2>&-", ""); /* the script closes its ends of the pipes */
  expect_hanging("trap '' TERM INT HUP; echo begin; exec sleep 1000", ":\nbegin");
}

/* The signal settings of the application do not affect the program, and the program does not affect
 * them. */
static void test_signals(void **state)
{
  (void)state;
  struct sigaction ignore = { .sa_handler = SIG_IGN }, usual = { .sa_handler = SIG_DFL }, now;
  sigset_t blocked, before, after;
  static const char show[] = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
  result clean = run_lines(show, false);
  assert_int_equal(clean.status, KJIT_OK);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  sigaction(SIGPIPE, &ignore, NULL);
  expect_output(run_lines(show, false), clean.output);
  free(clean.output);
  sigprocmask(SIG_SETMASK, &before, &after);
  assert_true(sigismember(&after, SIGTERM) == 1);
  sigaction(SIGPIPE, &usual, &now);
  assert_true(now.sa_handler == SIG_IGN);
  sigaction(SIGCHLD, &ignore, NULL);
  expect_failure(run_lines("echo text", false), KJIT_ERROR_IO,
                 "/program is unknown, because this process ignores SIGCHLD or waits for child "
                 "processes that it did not start");
  write_script("hangs", "exec sleep 1000");
  expect_failure(run("hangs", false, 100, 1000), KJIT_ERROR_COMPILE,
                 " took longer than 0.1 s and was stopped");
  sigaction(SIGCHLD, &usual, NULL);
}

static void test_descriptors(void **state)
{
  (void)state;
  int given = open("/dev/null", O_RDONLY), low = fcntl(given, F_DUPFD, 4),
      high = fcntl(given, F_DUPFD, 100);
  result r = run_lines(
    "for i in 4 5 6 7 8 9 100 101; do if [ -e /proc/self/fd/$i ]; then echo $i; fi; done; echo end",
    false);
  close(high);
  close(low);
  close(given);
  expect_output(r, "end\n");
  /* an application without standard streams */
  int saved[3];
  for (int i = 0; i < 3; i++) saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 50);
  for (int i = 0; i < 3; i++) close(i);
  result bare = run_lines("cat $1; cat $1 > $2", false), to_file = run_lines("cat $1 > $2", true);
  for (int i = 0; i < 3; i++) {
    if (saved[i] < 0) continue;
    dup2(saved[i], i);
    close(saved[i]);
  }
  assert_int_equal(bare.status, KJIT_ERROR_COMPILE); /* the script finds no open descriptor */
  free(bare.message);
  expect_output(to_file, "input");
}

static void test_finding(void **state)
{
  (void)state;
  char *found = kj_find_program("no-such-program");
  assert_null(found);
  assert_int_equal(mkdir(path_in("a-folder"), 0755), 0); /* which is "executable" */
  assert_null(kj_find_program("a-folder"));
  fclose(fopen(path_in("not-executable"), "w"));
  chmod(path_in("not-executable"), 0644);
  if (geteuid()) assert_null(kj_find_program("not-executable"));
  assert_int_equal(mkdir(path_in("bin"), 0755), 0);
  write_script("bin/tool", "exit 0");
  assert_null(kj_find_program("tool"));
  setenv("CUDA_PATH", folder, 1);
  found = kj_find_program("tool");
  assert_non_null(found);
  assert_string_equal(found, path_in("bin/tool"));
  free(found);
  write_script("tool", "exit 0"); /* PATH comes first */
  found = kj_find_program("tool");
  assert_string_equal(found, path_in("tool"));
  free(found);
  unsetenv("CUDA_PATH");
}

/* ---- through the interface ---- */

static char *sass_of(kjit_specialization *specialization, kjit_status expected)
{
  void *text = NULL;
  size_t size_bytes = 0;
  kjit_status status =
    kjit_copy_specialization_code(specialization, KJIT_STAGE_SASS, &text, &size_bytes);
  if (status != expected) print_error("%s\n", last_message(specialization->kernel->context));
  assert_int_equal(status, expected);
  if (text) assert_int_equal(size_bytes, strlen(text));
  return text;
}

static void expect_sass(kjit_specialization *specialization, const char *expected)
{
  char *text = sass_of(specialization, KJIT_OK);
  assert_string_equal(text, expected);
  kjit_free(NULL, text);
}

static void test_specialization(void **state)
{
  (void)state;
  void *cubin;
  size_t size_bytes;
  kjit_specialization *made;
  assert_int_equal(set_up_gpus(state), 0);
  kjit_context *context = *state;
  expect_ok(context, kjit_specialize(kernel_of(parse(context, add_one), "add_one"), gpu(context, 0),
                                     "f32[:] C", &made));
  int compilations = fake.compilations;
  expect_ok(context, kjit_copy_specialization_code(made, KJIT_STAGE_CUBIN, &cubin, &size_bytes));
  assert_memory_equal(cubin, "add_one", 8);
  kjit_free(context, cubin);
  char *home = getenv("PATH"), *path = strdup(home);
  setenv("PATH", "/nowhere", 1);
  /* not tested if a toolkit is installed */
  if (!kj_find_program("nvdisasm") && !kj_find_program("cuobjdump")) {
    assert_null(sass_of(made, KJIT_ERROR_NO_COMPILER));
    assert_string_equal(
      last_message(context),
      "neither nvdisasm nor cuobjdump, which disassemble machine code to SASS, was found on PATH, "
      "in bin of $CUDA_HOME and $CUDA_PATH, in /usr/local/cuda/bin, in /usr/local/cuda-*/bin and "
      "beside kjit in ../nvidia/*/bin");
    setenv("PATH", path, 1);
    write_script("cuobjdump", "echo \"$0 $1: $(cat $2)\" | sed 's|.*/||'");
    expect_sass(made, "cuobjdump -sass: add_one\n");
  }
  setenv("PATH", path, 1);
  free(path);
  write_script("nvdisasm", "echo \"$1: $(cat $2)\"");
  expect_sass(made, "-c: add_one\n");
  write_script("nvdisasm", "echo 'nvdisasm fatal: unknown architecture' >&2; exit 255");
  assert_null(sass_of(made, KJIT_ERROR_COMPILE));
  assert_non_null(strstr(last_message(context),
                         "nvdisasm failed with status 255:\nnvdisasm fatal: unknown architecture"));
  /* the loaded code is shown, and nothing is compiled */
  assert_int_equal(fake.compilations, compilations);
  kjit_device *cpu;
  expect_ok(context, kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(context, kjit_specialize(made->kernel, cpu, "f32[:] C", &made));
  assert_null(sass_of(made, KJIT_ERROR_UNSUPPORTED));
  assert_string_equal(last_message(context),
                      "code for cpu does not have this stage; it has asm and object");
  tear_down_gpus(state);
}

/* kjit_compile, which has no device and therefore needs an assembler. */
static void test_compile(void **state)
{
  (void)state;
  void *code;
  size_t size_bytes;
  kjit_context *context = make_fake_context();
  kjit_kernel *kernel = kernel_of(parse(context, add_one), "add_one");
  kjit_compile_options options = { .size_bytes = sizeof options };
  options.target = "sm_90a";
  options.debug = KJIT_DEBUG_LINES;
  write_script("ptxas", "echo \"$1 $2 $(cat $4) $5\" > $3");
  write_script("nvdisasm", "echo \"SASS of $(cat $2)\"");
  write_script("ptxas", "echo \"$1 $2 $(cat $4) $5\" > $3");
  expect_ok(context,
            kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_SASS, &code, &size_bytes));
  assert_string_equal(code, "SASS of -arch=sm_90a -o add_one -lineinfo\n");
  assert_int_equal(size_bytes, strlen(code));
  kjit_free(context, code);
  options.ptxas = "/nowhere/ptxas";
  assert_int_equal(kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_CUBIN, &code, &size_bytes),
                   KJIT_ERROR_NO_COMPILER);
  assert_string_equal(last_message(context),
                      "`/nowhere/ptxas`: expected the program ptxas: No such file or directory");
  options.ptxas = folder;
  assert_int_equal(kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_CUBIN, &code, &size_bytes),
                   KJIT_ERROR_NO_COMPILER);
  assert_non_null(strstr(last_message(context), "expected the program ptxas: not a regular file"));
  write_script("other", "echo other > $3");
  options.ptxas = path_in("other");
  expect_ok(context,
            kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_CUBIN, &code, &size_bytes));
  assert_int_equal(size_bytes, 6);
  assert_string_equal(code, "other\n");
  kjit_free(context, code);
  write_script("other", "echo 'ptxas error: no' >&2; exit 1");
  assert_int_equal(kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_SASS, &code, &size_bytes),
                   KJIT_ERROR_COMPILE);
  assert_non_null(strstr(last_message(context), "other failed with status 1:\nptxas error: no"));
  options.debug = (kjit_debug)7;
  assert_int_equal(kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_CUBIN, &code, &size_bytes),
                   KJIT_ERROR_MISUSE);
  assert_string_equal(last_message(context), "kjit_compile: debug 7 is not a value of kjit_debug");
  options.debug = KJIT_DEBUG_NONE;
  options.target = "cpu";
  assert_int_equal(kjit_compile(kernel, "f32[:] C", &options, KJIT_STAGE_SASS, &code, &size_bytes),
                   KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(context),
                      "stage: sass exists only for GPU targets, but the target is cpu");
  kjit_destroy_context(context);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_file_size_limit), TEST(test_results), TEST(test_failures),    TEST(test_much),
    TEST(test_hanging),         TEST(test_signals), TEST(test_descriptors), TEST(test_finding),
    TEST(test_specialization),  TEST(test_compile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

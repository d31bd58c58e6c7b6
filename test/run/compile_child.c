/* Compilation in child processes gives the same results. If a child crashes, hangs or sends invalid
 * answers, one compilation fails with an error that names the kernel, and the next compilation
 * works. No process and no file descriptor is leaked.
 * RUN: env KJIT_TEST_COMPILER=%libdir/libkjit-compiler.so %programs/compile_child %programs/crashing_compiler.so
 */
#include <dirent.h>
#include <errno.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

static const char *compiler;

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(bool holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

static kjit_context *make_context(const char *program, uint64_t limit_ns)
{
  kjit_context *context;
  kjit_config config = { .size_bytes = sizeof config,
                         .compiler_path = compiler,
                         .cache_directory = "",
                         .compile_in_child = 1,
                         .compile_child_path = program,
                         .compile_child_limit_ns = limit_ns };
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  return context;
}

/* Computes y[i] = x[i] + 1 with a kernel of this name. */
static kjit_status run(kjit_context *context, const char *name)
{
  enum { COUNT = 100 };
  char text[200];
  float y[COUNT] = { 0 }, x[COUNT];
  int64_t extent = COUNT;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_device *device;
  for (int i = 0; i < COUNT; i++) x[i] = (float)i;
  kjit_tensor tensors[2];
  for (int i = 0; i < 2; i++)
    tensors[i] = (kjit_tensor){ .data = i ? x : y,
                                .device_type = 1,
                                .rank = 1,
                                .code = 2,
                                .bits = 32,
                                .lanes = 1,
                                .shape = &extent };
  kjit_arg arguments[2] = { kjit_arg_tensor(&tensors[0]), kjit_arg_tensor(&tensors[1]) };
  snprintf(text, sizeof text,
           "kernel %s(y, x) {\n  for i in grid_range(len(y)) { y[i] = x[i] + 1 }\n}\n", name);
  REQUIRE(kjit_parse_module(context, "child.kir", text, strlen(text), &module) == KJIT_OK);
  REQUIRE(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device) == KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_status status = kjit_launch(kernel, &config, arguments, 2);
  for (int i = 0; i < COUNT && status == KJIT_OK; i++) REQUIRE(y[i] == x[i] + 1);
  kjit_release_module(module);
  return status;
}

static void expect_ok(kjit_context *context)
{
  if (run(context, "fine") == KJIT_OK) return;
  fputs(kjit_copy_diagnostics_text(context), stderr);
  exit(EXIT_FAILURE);
}

static void expect_failure(kjit_context *context, const char *name, kjit_status wanted,
                           const char *words)
{
  kjit_status status = run(context, name);
  char *text = kjit_copy_diagnostics_text(context);
  if (status == wanted && strstr(text, name) && strstr(text, words)) {
    kjit_free(context, text);
    return;
  }
  fprintf(stderr, "%s: expected %s, %s; got %s\n%s", name, kjit_get_status_name(wanted), words,
          kjit_get_status_name(status), text);
  exit(EXIT_FAILURE);
}

/* ---- processes ---- */

/* Returns the state of a process and stores its parent. Returns 0 if the process does not exist. */
static char look_at(pid_t process, pid_t *parent)
{
  char path[64], line[512] = "", state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
  fclose(file);
  return end && sscanf(end + 1, " %c %d", &state, parent) == 2 ? state : 0;
}

/* Returns the first child of a process, or 0 if it has none. */
static pid_t find_child(pid_t of)
{
  DIR *folder = opendir("/proc");
  pid_t found = 0;
  for (const struct dirent *entry; !found && (entry = readdir(folder));) {
    pid_t process = atoi(entry->d_name), parent = 0;
    if (process > 0 && look_at(process, &parent) && parent == of) found = process;
  }
  closedir(folder);
  return found;
}

static int count_files(void)
{
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static bool has_compiler_mapped(void)
{
  char line[1024];
  bool found = false;
  FILE *file = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, file)) found |= strstr(line, "libkjit-compiler") != NULL;
  fclose(file);
  return found;
}

/* ---- the tests ---- */

static void test_ways_to_die(void)
{
  kjit_context *context = make_context(NULL, 0);
  expect_ok(context);
  REQUIRE(!has_compiler_mapped());
  expect_failure(context, "segfault", KJIT_ERROR_COMPILER_LOST, "SIGSEGV");
  expect_ok(context);
  expect_failure(context, "abort", KJIT_ERROR_COMPILER_LOST, "LLVM ERROR: made up;");
  expect_ok(context);
  expect_failure(context, "leave", KJIT_ERROR_COMPILER_LOST, "status 7");
  expect_ok(context);
  expect_failure(context, "nonsense", KJIT_ERROR_COMPILER_LOST, "sent an invalid answer");
  expect_ok(context);
  expect_failure(context, "outside", KJIT_ERROR_COMPILER_LOST, "sent an invalid answer");
  expect_ok(context);
  kjit_destroy_context(context);
}

static void test_limit(void)
{
  kjit_context *context = make_context(NULL, 300000000);
  expect_failure(context, "endless", KJIT_ERROR_COMPILER_LOST, "longer than 0.3 s");
  kjit_destroy_context(context);
}

/* Errors of the kernel have the same message and location as without a child. */
static void test_located(void)
{
  static const char text[] = "kernel wrong(y) {\n  y[0] = (y[0], 1)\n}\n";
  kjit_context *context = make_context(NULL, 0);
  kjit_module *module;
  kjit_kernel *kernel;
  void *code;
  size_t bytes;
  kjit_compile_options options = { .size_bytes = sizeof options };
  REQUIRE(kjit_parse_module(context, "located.kir", text, strlen(text), &module) == KJIT_OK);
  REQUIRE(kjit_get_kernel(module, "wrong", &kernel) == KJIT_OK);
  REQUIRE(kjit_compile(kernel, "f32[:]", &options, KJIT_STAGE_LLVM, &code, &bytes) ==
          KJIT_ERROR_TYPE);
  char *shown = kjit_copy_diagnostics_text(context);
  REQUIRE(strstr(shown, "located.kir:2:") && strstr(shown, "y[0] = (y[0], 1)\n"));
  kjit_free(context, shown);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

/* A killed child may look alive for a moment and accept a request that it never reads. */
static void test_killed_while_idle(void)
{
  kjit_context *context = make_context(NULL, 0);
  for (int i = 0; i < 20; i++) {
    expect_ok(context);
    pid_t process = find_child(getpid());
    REQUIRE(process && kill(process, SIGKILL) == 0);
    usleep(i * 20);
  }
  expect_ok(context);
  kjit_destroy_context(context);
}

static void test_no_program(void)
{
  kjit_context *context = make_context("/nowhere/kjit-compile-child", 0);
  REQUIRE(run(context, "fine") == KJIT_ERROR_NO_COMPILER);
  char *text = kjit_copy_diagnostics_text(context);
  REQUIRE(strstr(text, "/nowhere/kjit-compile-child"));
  kjit_free(context, text);
  kjit_destroy_context(context);
  context = make_context("/bin/true", 0);
  expect_failure(context, "fine", KJIT_ERROR_COMPILER_LOST, "status 0");
  kjit_destroy_context(context);
}

static void test_ignored_signal(void)
{
  kjit_context *context = make_context(NULL, 0);
  signal(SIGCHLD, SIG_IGN);
  expect_failure(context, "segfault", KJIT_ERROR_COMPILER_LOST, "ignores SIGCHLD");
  expect_ok(context);
  kjit_destroy_context(context);
  signal(SIGCHLD, SIG_DFL);
}

static void *work(void *data)
{
  kjit_context *context = data;
  for (int i = 0; i < 2; i++) {
    expect_ok(context);
    expect_failure(context, "segfault", KJIT_ERROR_COMPILER_LOST, "SIGSEGV");
  }
  return NULL;
}

static void test_threads(void)
{
  pthread_t threads[THREADS];
  kjit_context *context = make_context(NULL, 0);
  for (int i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, work, context) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  expect_ok(context);
  kjit_destroy_context(context);
}

/* A fork of the application does not use the application's compilation children. */
static void test_fork(void)
{
  int status;
  kjit_context *context = make_context(NULL, 0);
  expect_ok(context);
  pid_t forked = fork();
  if (!forked) {
    kjit_module *module;
    bool is_refused = kjit_parse_module(context, "k", "", 0, &module) == KJIT_ERROR_FORKED;
    kjit_destroy_context(context);
    _exit(is_refused ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  REQUIRE(waitpid(forked, &status, 0) == forked && status == 0);
  expect_ok(context);
  kjit_destroy_context(context);
}

/* A child that is compiling ends when its application ends. */
static void test_host_killed(void)
{
  pid_t process = 0;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  pid_t host = fork();
  if (!host) {
    (void)run(make_context(NULL, 0), "endless");
    _exit(EXIT_FAILURE);
  }
  while (!(process = find_child(host))) {
    REQUIRE(waitpid(host, NULL, WNOHANG) == 0); /* the process has not failed before */
    usleep(1000);
  }
  usleep(50000); /* so that it is compiling in most runs */
  REQUIRE(kill(host, SIGKILL) == 0 && waitpid(host, NULL, 0) == host);
  REQUIRE(waitpid(process, NULL, 0) == process);
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

int main(int argc, char **argv)
{
  REQUIRE(argc == 2);
  compiler = argv[1];
  int files = count_files();
  test_host_killed();
  test_ways_to_die();
  test_limit();
  test_located();
  test_killed_while_idle();
  test_no_program();
  test_ignored_signal();
  test_threads();
  test_fork();
  REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
  REQUIRE(count_files() == files);
  return EXIT_SUCCESS;
}

/* extern_fork: while one thread compiles kernels with LLVM IR of the application, the process forks
 * again and again, and each child compiles such a kernel, too. kjit catches faults while LLVM reads
 * this code. The thread may be in this section at the fork, but does not exist in the child. So a
 * child must not wait for it, and must have the handlers that signals had before. Signals that the
 * program itself raises meanwhile reach its own handler.
 *
 * UNSUPPORTED: sanitizer
 * RUN: %programs/extern_fork | FileCheck %s
 * CHECK: {{^}}0 failures
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 12, FUNCTIONS = 4000, PATIENCE_S = 60, PAUSE_NS = 7000000 };

static const char text[] =
  "extern func twice(x: f32) -> f32\n"
  "kernel k(r, x) { for i in grid_range(len(r)) { r[i] = twice(x[i]) } }\n";
static const char code[] = "define float @twice(float %x) {\n %r = fadd float %x, %x\n"
                           " ret float %r\n}\n";

static bool compile(kjit_kernel *kernel)
{
  void *made = NULL;
  size_t size_bytes = 0;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = "sm_80" };
  kjit_status status =
    kjit_compile(kernel, "f32[:] C, f32[:] C", &options, KJIT_STAGE_PTX, &made, &size_bytes);
  if (status == KJIT_OK) kjit_free(kjit_get_kernel_context(kernel), made);
  return status == KJIT_OK;
}

/* Opens a context and binds the code. Returns NULL after an error. */
static kjit_kernel *open_kernel(const char *bound, kjit_context **context)
{
  kjit_module *module = NULL, *whole = NULL;
  kjit_kernel *kernel = NULL;
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  if (kjit_create_context(&config, context) != KJIT_OK ||
      kjit_parse_module(*context, "t", text, sizeof text - 1, &module) != KJIT_OK ||
      kjit_bind_extern(module, "twice", NULL, bound, strlen(bound), &whole) != KJIT_OK ||
      kjit_get_kernel(whole, "k", &kernel) != KJIT_OK)
    return NULL;
  kjit_release_module(module);
  return kernel; /* the module `whole` ends with the process or with the context */
}

/* Returns the code with many functions that are read but not called. */
static char *make_long_code(void)
{
  char *made = malloc(sizeof code + (size_t)FUNCTIONS * 128), *at = made;
  if (!made) abort();
  at += sprintf(at, "%s", code);
  for (int i = 0; i < FUNCTIONS; i++)
    at += sprintf(at,
                  "define float @f%d(float %%x) {\n %%r = fadd float %%x, %d.0\n"
                  " ret float %%r\n}\n",
                  i, i);
  return made;
}

typedef struct compiler {
  kjit_kernel *kernel;
  atomic_bool is_over;
  bool has_failed;
} compiler;

static void *compile_often(void *data)
{
  compiler *c = data;
  while (!atomic_load(&c->is_over) && !c->has_failed) c->has_failed = !compile(c->kernel);
  return NULL;
}

static volatile sig_atomic_t handled;
static void on_signal(int signal)
{
  (void)signal;
  handled++;
}

/* Returns how many of the signals that this thread raises do not reach the handler. */
static int count_lost(void)
{
  enum { RAISED = 400, WAIT_NS = 500000 };
  for (int i = 0; i < RAISED; i++) {
    nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL);
    raise(SIGFPE);
  }
  return RAISED - (int)handled;
}

static int run_child(void)
{
  kjit_context *context = NULL;
  struct sigaction found;
  alarm(PATIENCE_S);
  kjit_kernel *kernel = open_kernel(code, &context);
  if (!kernel || !compile(kernel)) return 1;
  return sigaction(SIGILL, NULL, &found) || found.sa_handler != SIG_DFL ? 2 : 0;
}

int main(void)
{
  int failures = 0;
  kjit_context *context = NULL;
  char *long_code = make_long_code();
  compiler c = { .kernel = open_kernel(long_code, &context) };
  pthread_t thread;
  if (!c.kernel || !compile(c.kernel)) return EXIT_FAILURE;
  struct sigaction own = { .sa_handler = on_signal };
  sigaction(SIGFPE, &own, NULL);
  pthread_create(&thread, NULL, compile_often, &c);
  int lost = count_lost();
  if (lost) printf("%d signals are lost\n", lost);
  failures += lost != 0;
  for (int i = 0; i < CHILDREN; i++) {
    int status = 0;
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS * (i + 1) }, NULL);
    pid_t child = fork();
    if (!child) _exit(run_child());
    waitpid(child, &status, 0);
    if (status) printf("child %d: status %#x\n", i, (unsigned)status);
    failures += status != 0;
  }
  atomic_store(&c.is_over, true);
  pthread_join(thread, NULL);
  if (c.has_failed) printf("the parent cannot compile\n");
  failures += c.has_failed;
  kjit_destroy_context(context);
  free(long_code);
  printf("%d failures\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

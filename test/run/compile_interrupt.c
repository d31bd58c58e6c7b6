/* A long compilation is interrupted, and a compilation that exceeds its limits ends with an error.
 * The same kernel compiles after both.
 *
 * RUN: %programs/compile_interrupt | FileCheck %s
 * CHECK: {{^}}interrupted: KJIT_ERROR_INTERRUPTED
 * CHECK-NEXT: says so: 1
 * CHECK-NEXT: after it: KJIT_OK
 * CHECK-NEXT: over a limit: KJIT_ERROR_LIMIT
 * CHECK-NEXT: launched over the context's limit: KJIT_ERROR_LIMIT
 * CHECK-NEXT: once more: KJIT_ERROR_LIMIT
 * CHECK-NEXT: another kernel: KJIT_OK 3
 * CHECK-NEXT: compilations: 1
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATEMENTS = 200000, LINE = 32 };

static kjit_context *context;
static atomic_int is_done;

/* Parses the kernels `small` and `large`. Type inference alone takes a noticeable time for the
 * statements of `large`. */
static kjit_module *parse(void)
{
  static const char small[] = "kernel small(x) { x[0] = x[0] + 2 }\n";
  char *text = malloc(LINE * (STATEMENTS + 10));
  size_t length = (size_t)sprintf(text, "%skernel large(x) {\n", small);
  for (int i = 0; i < STATEMENTS; i++)
    length += (size_t)sprintf(text + length, "x[%d] = x[0] + 1\n", i);
  length += (size_t)sprintf(text + length, "}\n");
  kjit_module *module = NULL;
  if (kjit_parse_module(context, "large.kir", text, length, &module) != KJIT_OK) abort();
  free(text);
  return module;
}

static kjit_status compile(kjit_kernel *kernel, const kjit_compile_limits *limits)
{
  kjit_compile_options options = { .size_bytes = sizeof options, .limits = limits };
  void *code = NULL;
  size_t size_bytes;
  kjit_status status =
    kjit_compile(kernel, "f32[:]", &options, KJIT_STAGE_OBJECT, &code, &size_bytes);
  if (status == KJIT_OK) kjit_free(context, code);
  return status;
}

static void *interrupt_often(void *data)
{
  (void)data;
  while (!is_done) {
    kjit_interrupt(context);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  return NULL;
}

static void interrupt_large(kjit_kernel *large)
{
  static const kjit_compile_limits none = { .size_bytes = sizeof none,
                                            .time_ns = KJIT_NO_LIMIT,
                                            .expressions = KJIT_NO_LIMIT,
                                            .instructions = KJIT_NO_LIMIT,
                                            .memory_bytes = KJIT_NO_LIMIT };
  pthread_t thread;
  if (pthread_create(&thread, NULL, interrupt_often, NULL)) abort();
  kjit_status status = compile(large, &none);
  is_done = 1;
  pthread_join(thread, NULL);
  const kjit_diagnostic *said = kjit_get_diagnostic(context, 0);
  printf("interrupted: %s\n", kjit_get_status_name(status));
  printf("says so: %d\n", said && strstr(said->message, "the compilation was interrupted") != NULL);
}

static kjit_status launch(kjit_kernel *kernel, float *x)
{
  int64_t shape = 1;
  kjit_tensor tensor = kjit_make_tensor(x, KJIT_F32, 1, &shape);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .grid = { 1, 1, 1 },
                                .block = { 1, 1, 1 } };
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device) != KJIT_OK) abort();
  return kjit_launch(kernel, &config, &argument, 1);
}

int main(void)
{
  kjit_compile_limits limits = { .size_bytes = sizeof limits, .expressions = 1000 };
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = "",
                         .compile_limits = &limits };
  kjit_kernel *large, *small;
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  float x = 1;
  if (kjit_create_context(&config, &context) != KJIT_OK) return 1;
  memset(&limits, 0, sizeof limits); /* the context has copied them */
  kjit_module *module = parse();
  if (kjit_get_kernel(module, "large", &large) || kjit_get_kernel(module, "small", &small))
    return 1;
  interrupt_large(large);
  printf("after it: %s\n", kjit_get_status_name(compile(small, NULL)));
  printf("over a limit: %s\n", kjit_get_status_name(compile(large, NULL)));
  printf("launched over the context's limit: %s\n", kjit_get_status_name(launch(large, &x)));
  printf("once more: %s\n", kjit_get_status_name(launch(large, &x)));
  kjit_status status = launch(small, &x);
  printf("another kernel: %s %g\n", kjit_get_status_name(status), (double)x);
  if (kjit_get_statistics(context, &statistics) != KJIT_OK) return 1;
  printf("compilations: %d\n", (int)statistics.compilations);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}

/* Several threads load objects at once with LLVM's loader, which keeps the work of all threads in
 * one queue. A thread may therefore do the work for the object of another thread. */
#include "kj_test.h"

#include <kjit/code.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "built_compiler.h"
#include "code/specialization.h"

enum { THREADS = 8, LOADS = 400, ELEMENTS = 4 };

static const char program[] = "kernel k(r: f64[:]) {\n  r[0] = sin(r[0])\n}\n";

static kj_runtime *runtime;
static kj_code code;
static _Atomic int failures;

static void load_once(void)
{
  kj_diagnostics ignored = { 0 };
  kj_loaded *loaded = NULL;
  kj_cpu_kernel kernel = NULL;
  kjit_status status =
    runtime->interface->load(runtime->compiler, &code, NULL, &ignored, &loaded, &kernel);
  if (status != KJIT_OK || !loaded || !kernel) failures++;
  if (status == KJIT_OK) runtime->interface->unload(runtime->compiler, loaded);
  kj_free_diagnostics(&ignored);
}

static void *load_often(void *unused)
{
  (void)unused;
  for (int i = 0; i < LOADS; i++) load_once();
  return NULL;
}

static void compile_object(kjit_context *context, void **object)
{
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  assert_int_equal(kjit_parse_module(context, "load.kir", program, strlen(program), &module),
                   KJIT_OK);
  assert_int_equal(kjit_get_kernel(module, "k", &kernel), KJIT_OK);
  assert_int_equal(kjit_compile(kernel, "f64[:] C", NULL, KJIT_STAGE_OBJECT, object,
                                &code.size_bytes),
                   KJIT_OK);
  static char entry[] = "k";
  code.data = *object;
  code.entry = entry;
}

static void test_every_load_gives_the_kernel(void **state)
{
  (void)state;
  void *object = NULL;
  pthread_t threads[THREADS];
  kj_diagnostics diagnostics = { 0 };
  kjit_config config = { .size_bytes = sizeof config, .compiler_path = find_built_compiler() };
  kjit_context *context = NULL;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  compile_object(context, &object);
  runtime = kj_get_runtime(context);
  assert_int_equal(kj_get_compiler(runtime, &diagnostics), KJIT_OK);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, load_often, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(failures, 0);
  kjit_free(context, object);
  kjit_destroy_context(context);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_load_gives_the_kernel) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

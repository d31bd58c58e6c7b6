/* Every allocation of launches fails in turn: launches that compile, that go the general way or the
 * learned one, on a GPU and on the CPU, prepared, sealed, with arrays of the host. What failed is
 * named, nothing is leaked, and the same thing done again works. */
#include <kjit/code.h>

#include "failing_memory.h"
#include "gpu_test.h"

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *request,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  paused = true;
  kjit_status status = fake_interface.compile(compiler, request, diagnostics, code);
  paused = false;
  return status;
}

static void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

/* ---- what a host does ---- */

static const char source[] =
  "kernel plain(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n"
  "kernel shaped(x, n: i32) @block(32) @grid(ceil_div(n, 32)) { x[0] = 1 }\n"
  "kernel sealed(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n";

enum { N = 64, TIMES = 3 };

typedef struct objects {
  kjit_context *context;
  kjit_module *module;
  kjit_device *devices[2];
  kjit_array *arrays[2]; /* of the GPU, of the CPU */
  kjit_tensor host;
  int64_t length;
  kjit_prepared *prepared;
} objects;

_Alignas(64) static float data[N];

static kjit_status launch(objects *o, const char *name, int device)
{
  kjit_kernel *kernel;
  kjit_launch_config config = { .device = o->devices[device] };
  kjit_arg arguments[] = { kjit_arg_array(o->arrays[device]),
                           strcmp(name, "shaped") ? kjit_arg_f32(2) : kjit_arg_i32(N) };
  KJ_TRY(kjit_get_kernel(o->module, name, &kernel));
  return kjit_launch(kernel, &config, arguments, 2);
}

static kjit_status launch_plain(objects *o) { return launch(o, "plain", 0); }
static kjit_status launch_shaped(objects *o) { return launch(o, "shaped", 0); }
static kjit_status launch_on_cpu(objects *o) { return launch(o, "plain", 1); }

static kjit_status launch_staged(objects *o)
{
  kjit_kernel *kernel;
  kjit_launch_config config = { .device = o->devices[0] };
  kjit_arg arguments[] = { kjit_arg_tensor(&o->host), kjit_arg_f32(2) };
  KJ_TRY(kjit_get_kernel(o->module, "plain", &kernel));
  return kjit_launch(kernel, &config, arguments, 2);
}

static kjit_status prepare(objects *o)
{
  kjit_kernel *kernel;
  kjit_arg arguments[] = { kjit_arg_array(o->arrays[0]), kjit_arg_f32(2) };
  if (o->prepared) return KJIT_OK;
  KJ_TRY(kjit_get_kernel(o->module, "plain", &kernel));
  return kjit_prepare_launch(kernel, NULL, arguments, 2, &o->prepared);
}

static kjit_status run_prepared(objects *o)
{
  kjit_arg array = kjit_arg_array(o->arrays[0]), number = kjit_arg_f32(3);
  KJ_TRY(kjit_run_prepared(o->prepared, NULL));
  KJ_TRY(kjit_set_prepared_argument(o->prepared, 1, &number));
  KJ_TRY(kjit_set_prepared_argument(o->prepared, 0, &array));
  return kjit_run_prepared(o->prepared, NULL);
}

static kjit_status launch_sealed(objects *o)
{
  kjit_kernel *kernel;
  kjit_specialization *made;
  KJ_TRY(kjit_get_kernel(o->module, "sealed", &kernel));
  KJ_TRY(kjit_specialize(kernel, o->devices[0], "f32[:] C, f32", &made));
  KJ_TRY(kjit_seal_kernel(kernel));
  return launch(o, "sealed", 0);
}

static kjit_status (*const steps[])(objects *) = { launch_plain,  launch_shaped, launch_on_cpu,
                                                   launch_staged, prepare,       run_prepared,
                                                   launch_sealed };

/* ---- one allocation fails ---- */

static void open_objects(objects *o)
{
  kj_diagnostics diagnostics = { 0 };
  static kj_compiler_interface interface;
  cuda = (fake_driver){ .devices = 1 };
  *o = (objects){ .context = make_fake_context(), .length = N };
  fake.kernel = run_nothing;
  fake.has_tight_plans = true;
  interface = fake_interface;
  interface.compile = compile;
  assert_int_equal(kj_use_compiler(o->context, &interface, &diagnostics), KJIT_OK);
  assert_int_equal(kj_use_driver(o->context, find_fake, NULL, &diagnostics), KJIT_OK);
  o->devices[0] = gpu(o->context, 0);
  expect_ok(o->context, kjit_get_device(o->context, KJIT_DEVICE_CPU, 0, &o->devices[1]));
  o->module = parse(o->context, source);
  for (int i = 0; i < 2; i++)
    expect_ok(o->context, kjit_create_array(o->devices[i], KJIT_F32, &o->length, 1, &o->arrays[i]));
  o->host = host_vector(data, &o->length);
}

static void close_objects(objects *o)
{
  kjit_destroy_prepared(o->prepared);
  for (int i = 0; i < 2; i++) kjit_release_array(o->arrays[i]);
  kjit_release_module(o->module);
  kjit_destroy_context(o->context);
  assert_int_equal(cuda.allocations + cuda.pinned + cuda.modules, 0);
}

static void expect_told(objects *o, size_t step, kjit_status status)
{
  char *text = kjit_copy_diagnostics_text(o->context);
  if (status != KJIT_ERROR_MEMORY || !text || !strstr(text, "memory"))
    print_error("step %zu: %s: %s\n", step, kjit_get_status_name(status), text ? text : "");
  assert_int_equal(status, KJIT_ERROR_MEMORY);
  assert_non_null(strstr(text, "memory"));
  free(text);
}

/* False: nothing failed any more. */
static bool try_allocation(long number)
{
  objects o;
  long before = live;
  open_objects(&o);
  has_failed = false;
  left = number;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    for (int time = 0; time < TIMES; time++) {
      kjit_status status = steps[i](&o);
      long rest = left;
      left = 0;
      if (status != KJIT_OK) {
        expect_told(&o, i, status);
        expect_ok(o.context, steps[i](&o)); /* nothing is broken */
      }
      left = rest;
    }
  left = 0;
  close_objects(&o);
  long blocks = count_left(number, before);
  if (blocks) print_error("allocation %ld: %ld blocks are left\n", number, blocks);
  assert_int_equal(blocks, 0);
  return has_failed;
}

static void test_every_allocation(void **state)
{
  enum { LEAST = 40 };
  long number = 1;
  (void)state;
  is_tester = true;
  for (int i = 0; i < 2; i++) assert_false(try_allocation(0));
  while (try_allocation(number)) number++;
  assert_true(number > LEAST);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

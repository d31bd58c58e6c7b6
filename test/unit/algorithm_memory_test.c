/* Every allocation of an algorithm fails in turn: of a call on a GPU and on the CPU, with operators
 * and operands that are funcs of the host, with views of its arrays, and of plans. What failed is
 * named, nothing is leaked, and the same thing done again works. */
#include <kjit/algorithm.h>
#include <kjit/code.h>

#include "failing_memory.h"
#include "gpu_test.h"

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *request,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  paused = true;
  kjit_status status = fake_interface.compile(compiler, request, diagnostics, code);
  if (request->stage == KJIT_STAGE_TYPED) code->result = KJIT_F32; /* kjit_get_result_type */
  paused = false;
  return status;
}

static void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

/* ---- what a host does ---- */

static const char source[] = "func both(a, b) { return a + b }\n"
                             "func product(i, j, x, y) { return x[i] * y[j] }\n";

enum { ROWS = 40, COLUMNS = 50, DEVICES = 2, TIMES = 2 };

typedef struct objects {
  kjit_context *context;
  kjit_module *module;
  kjit_operator both;
  kjit_function *product;
  kjit_device *devices[DEVICES];
  kjit_array *inputs[DEVICES], *columns[DEVICES], *results[DEVICES];
  kjit_tensor host;
  int64_t shape[2];
  kjit_plan *plan;
} objects;

_Alignas(64) static float data[ROWS * COLUMNS];

static kjit_status reduce_columns(objects *o, int device)
{
  kjit_operand result = kjit_operand_array(o->results[device]),
               x = kjit_operand_array(o->columns[device]);
  return kjit_reduce(o->context, &result, &x, &o->both, NULL);
}

static kjit_status on_gpu(objects *o) { return reduce_columns(o, 0); }
static kjit_status on_cpu(objects *o) { return reduce_columns(o, 1); }

static kjit_status of_func(objects *o)
{
  const kjit_arg arrays[] = { kjit_arg_array(o->inputs[0]), kjit_arg_array(o->inputs[0]) };
  const int64_t shape[] = { ROWS * COLUMNS, 3 };
  const kjit_arg initial = kjit_arg_f32(3);
  kjit_operator add = kjit_operator_named("add");
  kjit_operand result = kjit_operand_array(o->results[0]),
               x = kjit_operand_function(o->product, arrays, 2, shape, 2);
  kjit_algorithm_options options;
  kjit_init_algorithm_options(&options);
  options.initial = &initial;
  return kjit_reduce(o->context, &result, &x, &add, &options);
}

static kjit_status of_host(objects *o)
{
  kjit_operator most = kjit_operator_named("max");
  kjit_operand result = kjit_operand_array(o->results[0]),
               x = kjit_operand_of(kjit_arg_tensor(&o->host));
  return kjit_reduce(o->context, &result, &x, &most, NULL);
}

static kjit_status plan(objects *o)
{
  kjit_algorithm_options options;
  kjit_operand result = kjit_operand_array(o->results[0]), x = kjit_operand_array(o->columns[0]);
  if (o->plan) return KJIT_OK;
  kjit_init_algorithm_options(&options);
  options.plan = &o->plan;
  return kjit_reduce(o->context, &result, &x, &o->both, &options);
}

static kjit_status run_plan(objects *o) { return kjit_run_plan(o->plan, NULL); }

static kjit_status describe(objects *o)
{
  kjit_result_info info;
  kjit_algorithm_options options;
  kjit_operand x = kjit_operand_array(o->columns[0]);
  kjit_init_algorithm_options(&options);
  options.results = &info;
  options.result_count = 1;
  return kjit_reduce(o->context, NULL, &x, &o->both, &options);
}

static kjit_status (*const steps[])(objects *) = { on_gpu, on_cpu,   of_func, of_host,
                                                   plan,   run_plan, describe };

/* ---- one allocation fails ---- */

static void open_arrays(objects *o, int device)
{
  int64_t length = ROWS * COLUMNS;
  kjit_array *matrix;
  expect_ok(o->context,
            kjit_create_array(o->devices[device], KJIT_F32, &length, 1, &o->inputs[device]));
  expect_ok(o->context,
            kjit_create_array(o->devices[device], KJIT_F32, NULL, 0, &o->results[device]));
  expect_ok(o->context, kjit_reshape_array(o->inputs[device], o->shape, 2, &matrix));
  expect_ok(o->context, kjit_transpose_array(matrix, NULL, &o->columns[device]));
  kjit_release_array(matrix);
}

static void open_objects(objects *o)
{
  kj_diagnostics diagnostics = { 0 };
  static kj_compiler_interface interface;
  cuda = (fake_driver){ .devices = 1 };
  *o = (objects){ .context = make_fake_context(), .shape = { ROWS, COLUMNS } };
  fake.kernel = run_nothing;
  interface = fake_interface;
  interface.compile = compile;
  assert_int_equal(kj_use_compiler(o->context, &interface, &diagnostics), KJIT_OK);
  assert_int_equal(kj_use_driver(o->context, find_fake, NULL, &diagnostics), KJIT_OK);
  o->devices[0] = gpu(o->context, 0);
  expect_ok(o->context, kjit_get_device(o->context, KJIT_DEVICE_CPU, 0, &o->devices[1]));
  o->module = parse(o->context, source);
  expect_ok(o->context, kjit_get_function(o->module, "both", &o->both.function));
  expect_ok(o->context, kjit_get_function(o->module, "product", &o->product));
  for (int i = 0; i < DEVICES; i++) open_arrays(o, i);
  o->host = host_vector(data, o->shape);
  o->host.rank = 2;
}

static void close_objects(objects *o)
{
  kjit_destroy_plan(o->plan);
  for (int i = 0; i < DEVICES; i++) {
    kjit_release_array(o->inputs[i]);
    kjit_release_array(o->columns[i]);
    kjit_release_array(o->results[i]);
  }
  kjit_release_module(o->module);
  kjit_destroy_context(o->context);
  assert_int_equal(cuda.allocations + cuda.pinned + cuda.modules, 0);
}

static void expect_told(objects *o, size_t step, long number, kjit_status status)
{
  char *text = kjit_copy_diagnostics_text(o->context);
  if (status != KJIT_ERROR_MEMORY || !text || !strstr(text, "memory"))
    print_error("step %zu, allocation %ld: %s: %s\n", step, number, kjit_get_status_name(status),
                text ? text : "");
  assert_int_equal(status, KJIT_ERROR_MEMORY);
  assert_non_null(text);
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
        expect_told(&o, i, number, status);
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

/* Builds with sanitizers, which take twenty times as long, try some of them, other ones each time.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 64 };
#else
enum { STRIDE = 1 };
#endif

static void test_every_allocation(void **state)
{
  enum { LEAST = 100 };
  long number = 1 + time(NULL) % STRIDE;
  (void)state;
  is_tester = true;
  for (int i = 0; i < 2; i++) assert_false(try_allocation(0));
  while (try_allocation(number)) number += STRIDE;
  assert_true(number > LEAST);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

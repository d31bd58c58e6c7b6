/* Lets every allocation of an algorithm fail in turn, in calls on a GPU and on the CPU, and in
 * plans. Some operators and operands are funcs of the application, and some operands are views of
 * its arrays. The error names the call, no memory is leaked, and the same call works afterwards. */
#include <kjit/algorithm.h>

#include "every_allocation.h"

/* ---- the calls of an application ---- */

static const char source[] = "func both(a, b) { return a + b }\n"
                             "func product(i, j, x, y) { return x[i] * y[j] }\n";

enum { ROWS = 40, COLUMNS = 50, DEVICES = 2, TIMES = 2 };

struct objects {
  kjit_context *context;
  kjit_module *module;
  kjit_operator both;
  kjit_function *product;
  kjit_device *devices[DEVICES];
  kjit_array *inputs[DEVICES], *columns[DEVICES], *results[DEVICES];
  kjit_tensor host;
  int64_t shape[2];
  kjit_plan *plan;
};

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
  kjit_algorithm_options options = { .size_bytes = sizeof options };
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
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_operand result = kjit_operand_array(o->results[0]), x = kjit_operand_array(o->columns[0]);
  if (o->plan) return KJIT_OK;
  options.plan = &o->plan;
  return kjit_reduce(o->context, &result, &x, &o->both, &options);
}

static kjit_status run_plan(objects *o) { return kjit_run_plan(o->plan, NULL); }

static kjit_status describe(objects *o)
{
  kjit_result_info info;
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_operand x = kjit_operand_array(o->columns[0]);
  options.results = &info;
  options.result_count = 1;
  return kjit_reduce(o->context, NULL, &x, &o->both, &options);
}

static host_step *const steps[] = { on_gpu, on_cpu, of_func, of_host, plan, run_plan, describe };

/* ---- the objects of the calls ---- */

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
  *o = (objects){ .shape = { ROWS, COLUMNS } };
  o->context = open_devices(o->devices);
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
  close_devices(o->context);
}

/* Builds with sanitizers take twenty times as long and try some of the allocations. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 256 };
#else
enum { STRIDE = 1 };
#endif

static void test_every_allocation(void **state)
{
  (void)state;
  enum { LEAST = 100 };
  objects o;
  const host_work work = { &o,   open_objects, close_objects, steps, sizeof steps / sizeof *steps,
                           TIMES };
  try_every_allocation(&work, LEAST, STRIDE);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* embedding.c: the fragments of C in docs/embedding.md and docs/algorithms.md, each in a function
 * that makes what it needs. test/docs/check_pages.py compares the pages with this file. REQUIRES:
 * build UNSUPPORTED: sanitizer
 * RUN: %cc -std=c99 -Wall -Wextra -Werror -I%include %s -o %t -L%libdir -lkjit -Wl,-rpath,%libdir
 * RUN: %t | FileCheck %s
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kjit_context *context;
static kjit_device *device;
static kjit_module *module;

static void check(kjit_status status)
{
  if (status == KJIT_OK) return;
  printf("%s\n", kjit_get_diagnostic(context, 0)->message);
  exit(EXIT_FAILURE);
}

static kjit_array *make_array(int64_t count, const float *values)
{
  kjit_array *array;
  check(kjit_create_array(device, KJIT_F32, &count, 1, &array));
  check(kjit_copy_from_host(array, values, (size_t)count * sizeof *values, NULL));
  return array;
}

static float first_of(kjit_array *array)
{
  float values[4];
  check(kjit_copy_to_host(array, values, sizeof values, NULL));
  return values[0];
}

/* clang-format off */
/* line breaks as in the pages */

static void make_structs(kjit_stream *stream)
{
  kjit_config config = { .size_bytes = sizeof config, .checks = KJIT_CHECK_USUAL };
  kjit_launch_config launch = { .size_bytes = sizeof launch, .grid = { 64 }, .stream = stream };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  check(kjit_get_statistics(context, &statistics));
  // CHECK: grid 64, checks 15
  printf("grid %u, checks %u\n", launch.grid[0], config.checks);
}

static void tell_failure(void)
{
  kjit_kernel *kernel;
  kjit_status status = kjit_get_kernel(module, "none", &kernel);
  // CHECK: no kernel
  if (status != KJIT_OK) {
    char *text = kjit_copy_diagnostics_text(context);
    fputs(text ? text : kjit_get_status_name(status), stderr);
    kjit_free(context, text);
  }
  puts(status == KJIT_ERROR_NAME ? "no kernel" : "a kernel");
}

static void prepare(kjit_array *r, kjit_stream *stream)
{
  kjit_kernel *kernel;
  kjit_status status = kjit_get_kernel(module, "step", &kernel);
  check(status);
  kjit_launch_config config = { .size_bytes = sizeof config };
  kjit_arg arguments[4] = { kjit_arg_array(r), kjit_arg_f32(0), kjit_arg_f32(1), kjit_arg_f32(2) };
  int steps = 3;
  float dt = 0.5f;
  kjit_prepared *prepared;
  status = kjit_prepare_launch(kernel, &config, arguments, 4, &prepared);
  for (int step = 0; step < steps && status == KJIT_OK; step++) {
    kjit_arg time = kjit_arg_f32(step * dt);
    status = kjit_set_prepared_argument(prepared, 1, &time);
    if (status == KJIT_OK) status = kjit_run_prepared(prepared, stream);
  }
  kjit_destroy_prepared(prepared);
  check(status);
  // r += time + 1 + 2, for the times 0, 0.5 and 1.
  // CHECK: prepared 10.5
  printf("prepared %g\n", first_of(r));
}

static void export_array(kjit_array *array)
{
  kjit_managed_tensor_versioned *managed = NULL;
  kjit_status status;
  uintptr_t s = 0;
  /* s: 1 or None is the default stream, 2 the per-thread stream, -1 no stream;
   * any other value is a cudaStream_t */
  kjit_stream *consumer = NULL;
  status = kjit_wrap_stream(device, (void *)s, &consumer);
  if (status == KJIT_OK) status = kjit_export_dlpack_versioned(array, consumer, &managed);
  kjit_destroy_stream(consumer);
  /* the CPU has no streams of a driver */
  if (status == KJIT_ERROR_UNSUPPORTED) status = kjit_export_dlpack_versioned(array, NULL, &managed);
  check(status);
  // CHECK: DLPack 1, 4 elements
  printf("DLPack %u, %lld elements\n", managed->major, (long long)managed->tensor.shape[0]);
  managed->deleter(managed);
}

static void capture(kjit_array *x, kjit_array *y, kjit_stream *stream)
{
  kjit_kernel *kernel;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_arg arguments[2][3] = { { kjit_arg_array(x), kjit_arg_array(y), kjit_arg_f32(1) },
                               { kjit_arg_array(y), kjit_arg_array(x), kjit_arg_f32(1) } };
  check(kjit_get_kernel(module, "add", &kernel));
  kjit_status status;
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  status = kjit_begin_capture(stream);
  for (int step = 0; step < 100 && status == KJIT_OK; step++)
    status = kjit_launch(kernel, &config, arguments[step % 2], 3);
  if (status == KJIT_OK) status = kjit_end_capture(stream, &graph);
  if (status == KJIT_OK) status = kjit_instantiate_graph(graph, &executable);
  for (int i = 0; i < 1000 && status == KJIT_OK; i++) status = kjit_launch_graph(executable, stream);
  check(status);
  check(kjit_synchronize_stream(stream));
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  // `captured` is 100,000 times the other number plus one.
  printf("captured %g\n", first_of(y));
}

static void reduce(kjit_array *x, kjit_array *r)
{
  kjit_operand result = kjit_operand_array(r), input = kjit_operand_array(x);
  kjit_operator add = kjit_operator_named("add");
  if (kjit_reduce(context, &result, &input, &add, NULL) != KJIT_OK) { /* kjit_get_diagnostic says why */ }
  float value;
  check(kjit_copy_to_host(r, &value, sizeof value, NULL));
  // CHECK: sum 10
  printf("sum %g\n", value);
}

static void reduce_several(kjit_array *x)
{
  float values[3];
  int64_t one = 1;
  kjit_tensor tensors[3];
  kjit_operand results[3], input = kjit_operand_array(x);
  for (int k = 0; k < 3; k++) {
    tensors[k] = kjit_make_tensor(values + k, KJIT_F32, 1, &one);
    results[k] = kjit_operand_of(kjit_arg_tensor(tensors + k));
  }
  kjit_operator operators[] = { kjit_operator_named("min"), kjit_operator_named("max"), kjit_operator_named("mean") };
  if (kjit_reduce_several(context, results, &input, operators, 3, NULL) != KJIT_OK) { /* ... */ }
  // CHECK: least 1, greatest 4, mean 2.5
  printf("least %g, greatest %g, mean %g\n", values[0], values[1], values[2]);
}

static void map(kjit_array *a, kjit_array *b, kjit_array *result)
{
  kjit_function *multiply_add;
  check(kjit_get_function(module, "multiply_add", &multiply_add));
  kjit_status status;
  /* func multiply_add(a, b, c) { return a * b + c } */
  kjit_operand x[] = { kjit_operand_array(a), kjit_operand_array(b), kjit_operand_of(kjit_arg_number(0.5)) },
               r = kjit_operand_array(result);
  status = kjit_map(context, &r, 1, multiply_add, x, 3, NULL);
  check(status);
  // CHECK: map 1.5
  printf("map %g\n", first_of(result));
}

/* Multiplies one row by one column. */
static void multiply(kjit_array *row, kjit_array *b, kjit_array *r)
{
  const float numbers[4] = { 1, 2, 3, 4 };
  const int64_t shape[] = { 4, 1 };
  kjit_function *biased_gelu;
  kjit_array *column;
  check(kjit_create_array(device, KJIT_F32, shape, 2, &column));
  check(kjit_copy_from_host(column, numbers, sizeof numbers, NULL));
  check(kjit_get_function(module, "biased_gelu", &biased_gelu));
  kjit_status status;
  kjit_operand x = kjit_operand_array(row), w = kjit_operand_array(column), result = kjit_operand_array(r);
  kjit_operand bias = kjit_operand_array(b);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .epilogue = biased_gelu, .epilogue_operands = &bias,
                                     .epilogue_operand_count = 1 };
  status = kjit_matmul(context, &result, &x, &w, &options);
  check(status);
  kjit_release_array(column);
  float value;
  check(kjit_copy_to_host(r, &value, sizeof value, NULL));
  // CHECK: product 30
  printf("product %g\n", value);
}

int main(void)
{
  const char *text = "kernel step(r, time, a, b) { for i in grid_range(len(r)) { r[i] += time + a + b } }\n"
                     "kernel add(r, x, v) { for i in grid_range(len(r)) { r[i] = x[i] + v } }\n"
                     "func multiply_add(a, b, c) { return a * b + c }\n"
                     "func biased_gelu(s, b) {\n let v = s + b\n return v * 0.5 * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)))\n}\n";
  float zeros[4] = { 0 }, numbers[4] = { 1, 2, 3, 4 };
  kjit_stream *stream;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  check(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device));
  check(kjit_create_stream(device, &stream));
  check(kjit_parse_module(context, "text", text, strlen(text), &module));
  make_structs(stream);
  tell_failure();
  kjit_array *r = make_array(4, zeros), *x = make_array(4, numbers), *y = make_array(4, zeros), *z = make_array(4, zeros),
             *one = make_array(1, zeros), *bias = make_array(1, zeros);
  prepare(r, stream);
  export_array(x);
  capture(y, z, stream);
  reduce(x, one);
  reduce_several(x);
  map(x, x, r);
  multiply(x, bias, one);
  kjit_array *arrays[] = { r, x, y, z, one, bias };
  for (int k = 0; k < 6; k++) kjit_release_array(arrays[k]);
  kjit_release_module(module);
  kjit_destroy_stream(stream);
  kjit_destroy_context(context);
  return EXIT_SUCCESS;
}

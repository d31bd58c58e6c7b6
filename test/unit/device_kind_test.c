/* A third kind of device is one table of functions: here one that runs kernels as the CPU does, and
 * counts what it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "fake_compiler.h"
#include "gpu_test.h"

enum { TOY = 12, TOYS = 2 };

static struct {
  int opened, closed, launches, resets, waits, forgotten, attributes;
} toy;

static kjit_status count_toys(const kjit_context *context, const kj_driver_source *source,
                              kj_diagnostics *diagnostics, void **shared, uint32_t *count)
{
  (void)context, (void)source, (void)diagnostics;
  *shared = &toy;
  *count = TOYS;
  return KJIT_OK;
}

static void forget_toys(void *shared)
{
  assert_ptr_equal(shared, &toy);
  toy.forgotten++;
}

static kjit_status open_toy(kjit_device *device, kj_diagnostics *diagnostics)
{
  toy.opened++;
  return kj_cpu_operations.open(device, diagnostics);
}

static void close_toy(kjit_device *device)
{
  toy.closed++;
  kj_cpu_operations.close(device);
}

static kjit_status reset_toy(kjit_device *device, kj_diagnostics *diagnostics)
{
  (void)device, (void)diagnostics;
  toy.resets++;
  return KJIT_OK;
}

static kjit_status wait_for_toy(kjit_device *device, bool whole, void *stream,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)whole, (void)stream, (void)diagnostics;
  toy.waits++;
  return KJIT_OK;
}

static kjit_status read_toy_attribute(kjit_device *device, kjit_device_attribute attribute,
                                      kj_diagnostics *diagnostics, int64_t *value)
{
  (void)device, (void)attribute, (void)diagnostics;
  toy.attributes++;
  *value = 77;
  return KJIT_OK;
}

static kjit_status launch_on_toy(kjit_device *device, const kj_device_code *loaded,
                                 const kj_code *code, const kj_device_launch *launch,
                                 kj_diagnostics *diagnostics)
{
  toy.launches++;
  return kj_cpu_operations.launch(device, loaded, code, launch, diagnostics);
}

static kj_device_operations make_toy(void)
{
  kj_device_operations made = kj_cpu_operations;
  made.kind = (kjit_device_kind)TOY;
  made.name = "toy";
  made.is_single = false;
  made.count = count_toys;
  made.forget = forget_toys;
  made.open = open_toy;
  made.close = close_toy;
  made.reset = reset_toy;
  made.synchronize = wait_for_toy;
  made.read_attribute = read_toy_attribute;
  made.launch = launch_on_toy;
  return made;
}

static void add_to_each(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  float *data;
  (void)grid, (void)scratch;
  memcpy(&data, parameters, sizeof data);
  for (uint64_t i = first; i < last; i++) data[i] += 1;
}

static void test_a_third_kind(void **state)
{
  kj_device_operations operations = make_toy();
  kjit_context *context;
  kjit_device *first, *last, *none;
  kj_diagnostics diagnostics = { 0 };
  kjit_config config;
  int64_t value = 0, shape[] = { 4 };
  float data[4] = { 1, 2, 3, 4 };
  char text[24];
  (void)state;
  kjit_init_config(&config);
  config.cache_directory = "";
  memset(&fake, 0, sizeof fake);
  fake.kernel = add_to_each;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_use_compiler(context, &fake_interface, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &none), KJIT_ERROR_NO_DEVICE);
  assert_int_equal(kj_add_kind(context, &operations, &diagnostics), KJIT_OK);
  assert_int_equal(kj_add_kind(context, &operations, &diagnostics), KJIT_ERROR_MISUSE);
  kj_free_diagnostics(&diagnostics);
  assert_int_equal(kjit_get_device_count(context, operations.kind), TOYS);
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &first), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, 1, &last), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, TOYS, &none), KJIT_ERROR_NO_DEVICE);
  assert_int_equal(toy.opened, 2);
  assert_string_equal(kj_device_text(last, text), "toy:1");
  assert_int_equal(kjit_get_device_attribute(last, KJIT_DEVICE_WARP_SIZE, &value), KJIT_OK);
  assert_int_equal(value, 77);
  kjit_module *module = parse(context, "kernel k(a) { a[blockIdx.x] += 1 }");
  kjit_tensor tensor = { .data = data,
                         .device_type = KJIT_DEVICE_CPU,
                         .rank = 1,
                         .code = 2,
                         .bits = 32,
                         .lanes = 1,
                         .shape = shape };
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_launch_config launch = { .grid = { 4 }, .block = { 1 }, .device = last };
  for (int i = 0; i < 3; i++)
    assert_int_equal(kjit_launch(kernel_of(module, "k"), &launch, &argument, 1), KJIT_OK);
  assert_int_equal(toy.launches, 3);
  assert_int_equal(fake.compilations, 1);
  for (int i = 0; i < 4; i++) assert_true(data[i] == (float)(i + 4));
  launch.device = first; /* another device, other code */
  assert_int_equal(kjit_launch(kernel_of(module, "k"), &launch, &argument, 1), KJIT_OK);
  assert_int_equal(fake.compilations, 2);
  assert_int_equal(kjit_reset_device(first), KJIT_OK);
  assert_int_equal(toy.resets, 1);
  kjit_release_module(module);
  kjit_destroy_context(context);
  assert_int_equal(toy.waits, 2);
  assert_int_equal(toy.closed, 2);
  assert_int_equal(toy.forgotten, 1);
  assert_int_equal(fake.loads, fake.unloads);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_third_kind) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Several CPU devices, which behave like several GPUs: arrays belong to one device, launches go
 * where their arrays are, peer access, streams, algorithms, memory of the host, DLPack.
 * RUN: %programs/cpu_devices
 */
#include <string.h>

#include "stop_at_first.h"

enum { COUNT = 1000, DEVICES = 3 };

static kjit_device *devices[DEVICES];

static void expect(kjit_status status, kjit_status expected, const char *message)
{
  char *text = kjit_copy_diagnostics_text(context);
  if (status != expected || !text || !strstr(text, message))
    fprintf(stderr, "expected %s\n", message);
  CHECK(status == expected && text && strstr(text, message));
  kjit_free(context, text);
}

static kjit_array *make_array(int on, float value)
{
  kjit_array *array;
  OK(kjit_create_array(devices[on], KJIT_F32, (const int64_t[]){ COUNT }, 1, &array));
  kjit_arg to = kjit_arg_array(array), number = kjit_arg_f32(value);
  OK(kjit_fill(context, &to, &number, NULL));
  return array;
}

static void expect_value(const kjit_array *array, float value)
{
  static float values[COUNT];
  OK(kjit_copy_to_host(array, values, sizeof values, NULL));
  for (int i = 0; i < COUNT; i++) CHECK(values[i] == value);
}

static void open_devices(void)
{
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = "",
                         .cpu_devices = DEVICES };
  static const char text[] = "kernel add(r, x) { for i in grid_range(len(r)) { r[i] += x[i] } }";
  unsigned char uuids[DEVICES][16];
  OK(kjit_create_context(&config, &context));
  CHECK(kjit_get_device_count(context, KJIT_DEVICE_CPU) == DEVICES);
  for (int i = 0; i < DEVICES; i++) {
    kjit_device_info info = { .size_bytes = sizeof info };
    OK(kjit_get_device(context, KJIT_DEVICE_CPU, i, &devices[i]));
    OK(kjit_get_device_info(devices[i], &info));
    OK(kjit_get_device_uuid(devices[i], uuids[i]));
    CHECK(info.kind == KJIT_DEVICE_CPU && info.ordinal == i);
    CHECK(!i || memcmp(uuids[i], uuids[0], sizeof uuids[i]));
  }
  kjit_device *none;
  expect(kjit_get_device(context, KJIT_DEVICE_CPU, DEVICES, &none), KJIT_ERROR_NO_DEVICE,
         "device cpu:3 does not exist; the context has 3 devices");
  OK(kjit_parse_module(context, "add.kir", text, strlen(text), &module));
}

/* Each launch runs on the device of its first array, also the second launch of a kernel. */
static void check_launches(void)
{
  kjit_array *arrays[DEVICES], *other = make_array(2, 5);
  for (int i = 0; i < DEVICES; i++) {
    arrays[i] = make_array(i, 1);
    CHECK(kjit_get_tensor(arrays[i])->device_id == i);
    CHECK(kjit_get_array_device(arrays[i]) == devices[i]);
  }
  for (int n = 0; n < 4 * DEVICES; n++) {
    kjit_arg arguments[] = { kjit_arg_array(arrays[n % DEVICES]),
                             kjit_arg_array(arrays[n % DEVICES]) };
    OK(kjit_launch(kernel_of("add"), NULL, arguments, 2));
  }
  for (int i = 0; i < DEVICES; i++) expect_value(arrays[i], 16);
  kjit_arg mixed[] = { kjit_arg_array(arrays[1]), kjit_arg_array(other) };
  for (int i = 0; i < 3; i++)
    expect(kjit_launch(kernel_of("add"), NULL, mixed, 2), KJIT_ERROR_ARGUMENT,
           "parameter `x`: the launch is on cpu:1, but the array is on cpu:2");
  kjit_launch_config config = { .size_bytes = sizeof config, .device = devices[0] };
  expect(kjit_launch(kernel_of("add"), &config, mixed, 2), KJIT_ERROR_ARGUMENT,
         "parameter `r`: the launch is on cpu:0, but the array is on cpu:1");
  /* passed as a tensor, the array still belongs to its device */
  mixed[1] = kjit_arg_tensor(kjit_get_tensor(other));
  expect(kjit_launch(kernel_of("add"), NULL, mixed, 2), KJIT_ERROR_ARGUMENT,
         "but the array is on cpu:2");
  OK(kjit_enable_peer_access(devices[1], devices[2]));
  for (int i = 0; i < 3; i++) OK(kjit_launch(kernel_of("add"), NULL, mixed, 2));
  expect_value(arrays[1], 31);
  OK(kjit_disable_peer_access(devices[1], devices[2]));
  expect(kjit_launch(kernel_of("add"), NULL, mixed, 2), KJIT_ERROR_ARGUMENT,
         "but the array is on cpu:2");
  for (int i = 0; i < DEVICES; i++) kjit_release_array(arrays[i]);
  kjit_release_array(other);
}

/* All devices can use host memory, pinned memory and managed memory. */
static void check_host_memory(void)
{
  static float host[COUNT];
  int64_t extent = COUNT;
  kjit_tensor tensor = kjit_make_tensor(host, KJIT_F32, 1, &extent);
  for (int i = 0; i < COUNT; i++) host[i] = 2;
  for (int memory = KJIT_MEMORY_PINNED; memory <= KJIT_MEMORY_MANAGED; memory++) {
    kjit_array *array, *here = make_array(2, 1);
    kjit_array_config config = { .size_bytes = sizeof config };
    config.device = devices[1];
    config.element = KJIT_F32;
    config.rank = 1;
    config.shape = &extent;
    config.memory = (kjit_memory)memory;
    OK(kjit_create_array_with(&config, &array));
    CHECK(kjit_get_tensor(array)->device_type == KJIT_DEVICE_CPU);
    kjit_arg to = kjit_arg_array(array), from = kjit_arg_tensor(&tensor);
    OK(kjit_copy(context, &to, &from, NULL));
    kjit_arg arguments[] = { kjit_arg_array(here), to };
    OK(kjit_launch(kernel_of("add"), NULL, arguments, 2));
    arguments[1] = from;
    OK(kjit_launch(kernel_of("add"), NULL, arguments, 2));
    expect_value(here, 5);
    kjit_release_array(array);
    kjit_release_array(here);
  }
}

static void check_streams(void)
{
  kjit_stream *stream;
  kjit_array *first = make_array(0, 1), *second = make_array(1, 7);
  kjit_arg to = kjit_arg_array(first), from = kjit_arg_array(second);
  OK(kjit_create_stream(devices[2], &stream));
  expect(kjit_copy(context, &to, &from, stream), KJIT_ERROR_ARGUMENT,
         "the stream belongs to cpu:2, but the work to queue on it belongs to cpu:0");
  OK(kjit_copy(context, &to, &from, NULL));
  expect_value(first, 7);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  kjit_arg arguments[] = { to, to };
  expect(kjit_launch(kernel_of("add"), &config, arguments, 2), KJIT_ERROR_ARGUMENT,
         "the launch is on cpu:2, but the array is on cpu:0");
  kjit_destroy_stream(stream);
  kjit_release_array(first);
  kjit_release_array(second);
}

/* Algorithms run on the device of their arrays. */
static void check_algorithms(void)
{
  const kjit_operator plus = kjit_operator_named("add");
  for (int i = 0; i < DEVICES; i++) {
    kjit_array *x = make_array(i, (float)i + 1), *sum, *elsewhere;
    OK(kjit_create_array(devices[i], KJIT_F32, NULL, 0, &sum));
    OK(kjit_create_array(devices[(i + 1) % DEVICES], KJIT_F32, NULL, 0, &elsewhere));
    const kjit_operand all = kjit_operand_array(x), result = kjit_operand_array(sum),
                       wrong = kjit_operand_array(elsewhere);
    float value = 0;
    OK(kjit_reduce(context, &result, &all, &plus, NULL));
    OK(kjit_copy_to_host(sum, &value, sizeof value, NULL));
    CHECK(value == (float)COUNT * ((float)i + 1));
    expect(kjit_reduce(context, &wrong, &all, &plus, NULL), KJIT_ERROR_ARGUMENT,
           "the launch is on");
    kjit_release_array(x);
    kjit_release_array(sum);
    kjit_release_array(elsewhere);
  }
}

/* An array that was exported by DLPack as CPU memory and imported again belongs to its device. Its
 * address identifies the device as well.
 */
static void check_exchange(void)
{
  kjit_array *array = make_array(1, 3), *view, *back;
  kjit_managed_tensor *managed;
  kjit_device *found = NULL;
  const kjit_array_slice slice = { 10, 20, 1 };
  OK(kjit_slice_array(array, &slice, 1, &view));
  CHECK(kjit_get_tensor(view)->device_id == 1);
  OK(kjit_export_dlpack(view, NULL, &managed));
  CHECK(managed->tensor.device_type == KJIT_DEVICE_CPU && managed->tensor.device_id == 1);
  OK(kjit_take_dlpack(context, managed, NULL, &back));
  CHECK(kjit_get_array_device(back) == devices[1]);
  const float *address = kjit_get_tensor(array)->data;
  OK(kjit_locate_memory(context, address + COUNT - 1, &found));
  CHECK(found == devices[1]);
  OK(kjit_locate_memory(context, &found, &found));
  CHECK(!found);
  kjit_release_array(back);
  kjit_release_array(view);
  kjit_release_array(array);
}

int main(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cpu_devices = 65 };
  kjit_device *device;
  OK(kjit_create_context(&config, &context));
  expect(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_ERROR_ARGUMENT,
         "kjit_config.cpu_devices: expected at most 64 devices, got 65");
  kjit_destroy_context(context);
  open_devices();
  check_launches();
  check_host_memory();
  check_streams();
  check_algorithms();
  check_exchange();
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}

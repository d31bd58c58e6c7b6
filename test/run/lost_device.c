/* A kernel that writes to an invalid address makes its GPU unusable until a reset and, depending on
 * the driver, the other GPUs of the process as well. Each call returns the error, no call crashes,
 * and a device works after its reset. A launch on one GPU does not affect a capture on another GPU.
 * RUN: %programs/lost_device
 * REQUIRES: cuda
 */
#include <stdbool.h>
#include <string.h>

#include "stop_at_first.h"

enum { MOST_DEVICES = 8, COUNT = 1000 };

static const char text[] =
  "kernel fill(r, v) { for i in grid_range(len(r)) { r[i] = v + i32(i) } }\n"
  "kernel wild(r, at) { r[at] = 1 }\n";

static kjit_device *devices[MOST_DEVICES];
static uint32_t device_count;

static kjit_array *create_array(kjit_device *device)
{
  kjit_array *array;
  OK(kjit_create_array(device, KJIT_I32, (int64_t[]){ COUNT }, 1, &array));
  return array;
}

static kjit_status use(kjit_device *device, kjit_array *array, int32_t value)
{
  static int32_t values[COUNT];
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_i32(value) };
  kjit_status status = kjit_launch(kernel_of("fill"), &config, arguments, 2);
  if (status == KJIT_OK) status = kjit_copy_to_host(array, values, sizeof values, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  for (int i = 0; i < COUNT && status == KJIT_OK; i++) CHECK(values[i] == value + i);
  return status;
}

static bool is_lost(kjit_device *device)
{
  kjit_status status = kjit_synchronize_device(device);
  CHECK(status == KJIT_OK || status == KJIT_ERROR_DEVICE);
  if (status == KJIT_OK) return false;
  const char *message = kjit_get_diagnostic(context, 0)->message;
  CHECK(strstr(message, "kjit_reset_device") || strstr(message, "this process cannot use"));
  return true;
}

/* Loses a device while the application holds all kinds of its objects, also a capture. */
static void lose(uint32_t victim)
{
  kjit_array *arrays[MOST_DEVICES];
  kjit_stream *streams[MOST_DEVICES];
  kjit_event *events[MOST_DEVICES];
  kjit_graph *graph;
  uint32_t lost = 0;
  for (uint32_t i = 0; i < device_count; i++) {
    arrays[i] = create_array(devices[i]);
    OK(use(devices[i], arrays[i], (int32_t)i));
    OK(kjit_create_stream(devices[i], &streams[i]));
    OK(kjit_create_event(devices[i], &events[i]));
    OK(kjit_record_event(events[i], streams[i]));
    OK(kjit_begin_capture(streams[i]));
    kjit_launch_config config = { .size_bytes = sizeof config, .stream = streams[i] };
    kjit_arg arguments[] = { kjit_arg_array(arrays[i]), kjit_arg_i32(7) };
    OK(kjit_launch(kernel_of("fill"), &config, arguments, 2));
  }
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = devices[victim], .grid = { 1 }, .block = { 1 }
  };
  kjit_arg nowhere[] = { kjit_arg_array(arrays[victim]), kjit_arg_i64(1 << 28) };
  /* a wait for the device would break its capture */
  OK(kjit_end_capture(streams[victim], &graph));
  kjit_destroy_graph(graph);
  OK(kjit_launch(kernel_of("wild"), &config, nowhere, 2));
  CHECK(is_lost(devices[victim]));
  CHECK(use(devices[victim], arrays[victim], 1) == KJIT_ERROR_DEVICE);
  for (uint32_t i = 0; i < device_count; i++) {
    if (i != victim && kjit_end_capture(streams[i], &graph) == KJIT_OK) kjit_destroy_graph(graph);
    if (is_lost(devices[i])) lost++;
    else OK(use(devices[i], arrays[i], 9));
  }
  for (uint32_t i = 0; i < device_count; i++) {
    kjit_release_array(arrays[i]);
    kjit_destroy_event(events[i]);
    kjit_destroy_stream(streams[i]);
  }
  printf("cuda:%u of %u lost, %u with it\n", victim, device_count, lost - 1);
}

/* Resets each device twice, because the driver may provide no new context while another device has
 * its old one. Returns false if the driver provides none at all. */
static bool recover(void)
{
  uint32_t lost = 0;
  for (uint32_t i = 0; i < 2 * device_count; i++) {
    if (!is_lost(devices[i % device_count])) continue;
    kjit_status status = kjit_reset_device(devices[i % device_count]);
    CHECK(status == KJIT_OK || status == KJIT_ERROR_DEVICE);
  }
  for (uint32_t i = 0; i < device_count; i++) {
    if (is_lost(devices[i])) {
      lost++;
      continue;
    }
    kjit_array *array = create_array(devices[i]);
    OK(use(devices[i], array, 40));
    kjit_release_array(array);
  }
  if (lost) printf("%u of %u cannot be used again by this process\n", lost, device_count);
  return !lost;
}

int main(void)
{
  OK(kjit_create_context(NULL, &context));
  OK(kjit_parse_module(context, "lost_device.kir", text, sizeof text - 1, &module));
  device_count = kjit_get_device_count(context, KJIT_DEVICE_CUDA);
  if (device_count > MOST_DEVICES) device_count = MOST_DEVICES;
  CHECK(device_count > 0);
  for (uint32_t i = 0; i < device_count; i++)
    OK(kjit_get_device(context, KJIT_DEVICE_CUDA, (int32_t)i, &devices[i]));
  bool is_usable = true;
  for (uint32_t victim = 0; victim < device_count && is_usable; victim++) {
    lose(victim);
    is_usable = recover();
  }
  kjit_destroy_context(context);
}

/* Every driver call of the runtime's memory, streams and graphs fails in turn. */
#include "gpu_test.h"

struct objects {
  kjit_context *context;
  int step, failed_in;
  kjit_device *device, *peer;
  kjit_stream *streams[4];
  kjit_event *event;
  kjit_array *arrays[12];
  kjit_graph *graph;
  kjit_executable_graph *executable;
};

#include "faults.h"

static void do_nothing(void *user) { (void)user; }

static void delete_nothing(kjit_managed_tensor *self) { (void)self; }

static kjit_status make_arrays(kjit_context *context, objects *o)
{
  static const int64_t shape[] = { 8, 8 };
  (void)context;
  for (int i = 0; i < 6; i++) {
    kjit_array_config config = { .size_bytes = sizeof config,
                                 .device = o->device,
                                 .element = KJIT_F32,
                                 .rank = 2,
                                 .shape = shape,
                                 .layout = KJIT_LAYOUT_C };
    config.memory = i < 5 ? (kjit_memory)i : KJIT_MEMORY_DEVICE;
    config.stream = i == 5 ? o->streams[0] : NULL;
    STEP(kjit_create_array_with(&config, &o->arrays[i]));
  }
  STEP(kjit_create_array(o->peer, KJIT_F32, shape, 2, &o->arrays[6]));
  STEP(kjit_slice_array(o->arrays[0], (kjit_array_slice[]){ { 0, 8, 2 }, { 0, 8, 2 } }, 2,
                        &o->arrays[7]));
  STEP(kjit_transpose_array(o->arrays[0], NULL, &o->arrays[8]));
  return KJIT_OK;
}

static kjit_status copy_arrays(kjit_context *context, objects *o)
{
  float data[64] = { 0 };
  int64_t square[] = { 4, 4 };
  kjit_tensor host = {
    .data = data, .device_type = 1, .rank = 2, .code = 2, .bits = 32, .lanes = 1, .shape = square
  };
  kjit_arg whole = kjit_arg_array(o->arrays[0]), part = kjit_arg_array(o->arrays[7]),
           turned = kjit_arg_array(o->arrays[8]), small = kjit_arg_tensor(&host);
  kjit_arg other = kjit_arg_array(o->arrays[6]), number = kjit_arg_number(1),
           wide = kjit_arg_array(o->arrays[5]);
  STEP(kjit_copy_from_host(o->arrays[0], data, sizeof data, o->streams[0]));
  STEP(kjit_copy(context, &part, &small, o->streams[0]));
  STEP(kjit_copy_async(context, &small, &part, o->streams[1]));
  STEP(kjit_copy(context, &other, &turned, NULL));
  STEP(kjit_copy(context, &turned, &other, NULL));
  STEP(kjit_copy_async(context, &wide, &whole, o->streams[1]));
  STEP(kjit_fill(context, &wide, &number, o->streams[2]));
  STEP(kjit_fill(context, &part, &number, o->streams[0]));
  STEP(kjit_prefetch_array(o->arrays[3], o->device, o->streams[0]));
  STEP(kjit_pin_memory(o->device, data, sizeof data));
  STEP(kjit_unpin_memory(o->device, data));
  return KJIT_OK;
}

static kjit_status share_arrays(kjit_context *context, objects *o)
{
  enum { PROCESS_AT = 152 };
  static float data[64];
  static int64_t length = 64;
  static kjit_managed_tensor managed = { .deleter = delete_nothing };
  kjit_managed_tensor_versioned *given;
  kjit_array_handle handle;
  managed.tensor = host_vector(data, &length);
  managed.tensor.device_type = 2;
  STEP(kjit_take_dlpack(context, &managed, o->streams[0], &o->arrays[9]));
  STEP(kjit_export_dlpack_versioned(o->arrays[5], o->streams[1], &given));
  given->deleter(given);
  STEP(kjit_export_array(o->arrays[4], &handle));
  handle.bytes[PROCESS_AT] ^= 1;
  STEP(kjit_import_array(context, &handle, &o->arrays[10]));
  return KJIT_OK;
}

static kjit_status capture_graph(kjit_context *context, objects *o, kjit_kernel *kernel)
{
  kjit_arg whole = kjit_arg_array(o->arrays[5]), number = kjit_arg_number(1);
  kjit_array *row;
  STEP(kjit_reshape_array(o->arrays[5], (int64_t[]){ 64 }, 1, &row));
  o->arrays[11] = row;
  kjit_arg line = kjit_arg_array(row);
  STEP(kjit_begin_capture(o->streams[0]));
  STEP(kjit_fill(context, &whole, &number, o->streams[0]));
  STEP(kjit_launch(kernel,
                   &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                          .stream = o->streams[0] },
                   &line, 1));
  STEP(kjit_add_host_callback(o->device, o->streams[0], do_nothing, NULL));
  STEP(kjit_end_capture(o->streams[0], &o->graph));
  STEP(kjit_instantiate_graph(o->graph, &o->executable));
  STEP(kjit_launch_graph(o->executable, o->streams[1]));
  STEP(kjit_update_graph(o->executable, o->graph));
  return KJIT_OK;
}

static kjit_status use_all(objects *o)
{
  kjit_context *context = o->context;
  int32_t least, greatest;
  uint64_t unused;
  unsigned char uuid[16];
  int can;
  kjit_kernel *kernel = kernel_of(parse(context, add_one), "add_one");
  STEP(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &o->device));
  STEP(kjit_get_device(context, KJIT_DEVICE_CUDA, 1, &o->peer));
  STEP(kjit_get_stream_priorities(o->device, &least, &greatest));
  STEP(kjit_create_stream_with(o->device, -2, 0, &o->streams[0]));
  STEP(kjit_create_stream_with(o->device, 0, KJIT_STREAM_NON_BLOCKING, &o->streams[1]));
  STEP(kjit_create_stream(o->device, &o->streams[2]));
  STEP(kjit_get_thread_stream(o->device, &o->streams[3]));
  STEP(kjit_create_event(o->device, &o->event));
  STEP(kjit_record_event(o->event, o->streams[0]));
  STEP(kjit_wait_event(o->streams[1], o->event));
  STEP(kjit_query_event(o->event));
  STEP(kjit_query_stream(o->streams[0]));
  STEP(kjit_get_memory_info(o->device, &unused, &unused));
  STEP(kjit_get_device_uuid(o->device, uuid));
  STEP(kjit_can_access_peer(o->device, o->peer, &can));
  STEP(kjit_enable_peer_access(o->device, o->peer));
  STEP(kjit_disable_peer_access(o->device, o->peer));
  STEP(kjit_start_profiler(o->device));
  STEP(kjit_stop_profiler(o->device));
  KJ_TRY(make_arrays(context, o));
  KJ_TRY(copy_arrays(context, o));
  KJ_TRY(share_arrays(context, o));
  KJ_TRY(capture_graph(context, o, kernel));
  STEP(kjit_synchronize_device(o->device));
  return KJIT_OK;
}

static void release_all(objects *o)
{
  kjit_destroy_executable_graph(o->executable);
  kjit_destroy_graph(o->graph);
  for (int i = 0; i < 12; i++) kjit_release_array(o->arrays[i]);
  for (int i = 0; i < 4; i++) kjit_destroy_stream(o->streams[i]);
  kjit_destroy_event(o->event);
}

static kjit_context *open_context(int kind)
{
  (void)kind;
  return make_gpu_context();
}

/* This call only improves a choice, so its failure has no consequence. */
static bool is_excused(const objects *o, const char *call, int fail_with)
{
  (void)o, (void)fail_with;
  return !strncmp(call, "cuDeviceGet", 11);
}

int main(void) { return run_fault_tests(200); }

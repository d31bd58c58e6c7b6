/* Lets every driver call of copies, fills and staged arguments fail in turn. Copies are of rows, or
 * of elements that kernels or the host gather. Some are asynchronous, some are between GPUs, and
 * some use memory that several streams have used. Launches of all forms have host arrays. */
#include "gpu_test.h"

enum { ARRAYS = 8 };

struct objects {
  kjit_context *context;
  int step, failed_in;
  kjit_device *device, *peer;
  kjit_stream *streams[3], *wrapped;
  kjit_event *event;
  kjit_array *arrays[ARRAYS];
};

#include "faults.h"

static kjit_tensor host_matrix(void *data, int64_t *shape, int64_t *strides)
{
  return (kjit_tensor){ .data = data,
                        .device_type = 1,
                        .rank = 2,
                        .code = 2,
                        .bits = 32,
                        .lanes = 1,
                        .shape = shape,
                        .strides = strides };
}

/* Matrices of 32 x 32: columns 0 to 15 are rows of 64 bytes, which the driver copies; every other
 * column is gathered. */
static kjit_status make_arrays(objects *o)
{
  static const int64_t shape[] = { 32, 32 }, bytes[] = { 64 };
  STEP(kjit_create_array(o->device, KJIT_F32, shape, 2, &o->arrays[0]));
  STEP(kjit_slice_array(o->arrays[0], (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 16, 1 } }, 2,
                        &o->arrays[1]));
  STEP(kjit_slice_array(o->arrays[0], (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 32, 2 } }, 2,
                        &o->arrays[2]));
  STEP(kjit_create_array(o->peer, KJIT_F32, shape, 2, &o->arrays[3]));
  STEP(kjit_slice_array(o->arrays[3], (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 32, 2 } }, 2,
                        &o->arrays[4]));
  STEP(kjit_create_array(o->device, KJIT_U8, bytes, 1, &o->arrays[5]));
  STEP(kjit_create_array(o->device, KJIT_F16, bytes, 1, &o->arrays[6]));
  STEP(kjit_create_array(o->device, KJIT_F64, bytes, 1, &o->arrays[7]));
  return KJIT_OK;
}

static kjit_status fill_arrays(objects *o)
{
  kjit_arg number = kjit_arg_number(1);
  for (int i = 5; i < 8; i++) {
    kjit_arg array = kjit_arg_array(o->arrays[i]);
    STEP(kjit_fill(o->context, &array, &number, o->streams[i - 5]));
  }
  kjit_arg part = kjit_arg_array(o->arrays[2]);
  STEP(kjit_fill(o->context, &part, &number, o->streams[0]));
  return KJIT_OK;
}

static kjit_status copy_arrays(objects *o)
{
  static float memory[32 * 32];
  int64_t rows[] = { 32, 16 }, pitch[] = { 32, 1 }, every_other[] = { 32, 2 };
  kjit_tensor dense = host_matrix(memory, rows, NULL), wide = host_matrix(memory, rows, pitch),
              sparse = host_matrix(memory, rows, every_other);
  kjit_tensor *forms[] = { &dense, &wide, &sparse };
  for (int form = 0; form < 3; form++) {
    for (int i = 1; i < 3; i++) {
      kjit_arg there = kjit_arg_array(o->arrays[i]), here = kjit_arg_tensor(forms[form]);
      STEP(kjit_copy(o->context, &there, &here, o->streams[0]));
      STEP(kjit_copy(o->context, &here, &there, NULL));
      STEP(kjit_copy_async(o->context, &there, &here, o->streams[1]));
      STEP(kjit_copy_async(o->context, &here, &there, o->streams[1]));
      STEP(kjit_synchronize_stream(o->streams[1]));
    }
  }
  kjit_arg narrow = kjit_arg_array(o->arrays[1]), gathered = kjit_arg_array(o->arrays[2]),
           far = kjit_arg_array(o->arrays[4]);
  STEP(kjit_copy_async(o->context, &narrow, &gathered, o->streams[2]));
  STEP(kjit_copy(o->context, &far, &gathered, NULL));
  STEP(kjit_copy(o->context, &narrow, &far, o->streams[0]));
  STEP(kjit_synchronize_device(o->peer));
  return KJIT_OK;
}

/* Host arrays of a launch: adjacent, overlapping, with gaps, and one array passed twice. */
static kjit_status stage_arrays(objects *o)
{
  static float memory[256];
  int64_t length[] = { 64 }, stride[] = { 2 };
  kjit_kernel *kernel = kernel_of(
    parse(o->context,
          "kernel add(r, x, y) {\n  for i in grid_range(len(r)) { r[i] = x[i] + y[i] }\n}\n"),
    "add");
  kjit_tensor tensors[] = { host_vector(memory, length), host_vector(memory + 32, length),
                            host_vector(memory + 128, length), host_vector(memory, length) };
  tensors[3].strides = stride;
  static const int sets[][3] = { { 0, 1, 2 }, { 0, 0, 2 }, { 3, 2, 2 }, { 2, 0, 3 } };
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    kjit_arg arguments[3];
    for (int k = 0; k < 3; k++) arguments[k] = kjit_arg_tensor(&tensors[sets[i][k]]);
    STEP(kjit_launch(kernel,
                     &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                            .device = o->device,
                                            .stream = i % 2 ? o->streams[0] : NULL },
                     arguments, 3));
  }
  return KJIT_OK;
}

/* Memory that was allocated on one stream and used on others returns to the pool after their work,
 * and gets new owners. */
static kjit_status pass_memory(objects *o)
{
  static const int64_t length = 1000;
  kjit_kernel *kernel = kernel_of(parse(o->context, add_one), "add_one");
  for (int i = 0; i < 6; i++) {
    kjit_array *array;
    kjit_array_config config = { .size_bytes = sizeof config };
    config.device = o->device;
    config.element = KJIT_F32;
    config.rank = 1;
    config.shape = &length;
    config.stream = o->streams[i % 3];
    STEP(kjit_create_array_with(&config, &array));
    kjit_arg argument = kjit_arg_array(array);
    o->step++;
    kjit_status status =
      kjit_launch(kernel,
                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                         .stream = o->streams[(i + 1) % 3] },
                  &argument, 1);
    if (status == KJIT_OK)
      status = kjit_fill(o->context, &argument, &(kjit_arg){ .kind = KJIT_ARG_NUMBER }, NULL);
    kjit_release_array(array);
    STEP(status);
  }
  STEP(kjit_record_event(o->event, o->streams[2]));
  STEP(kjit_synchronize_event(o->event));
  kjit_trim_memory(o->device, 0);
  return KJIT_OK;
}

static kjit_status use_all(objects *o)
{
  STEP(kjit_get_device(o->context, KJIT_DEVICE_CUDA, 0, &o->device));
  STEP(kjit_get_device(o->context, KJIT_DEVICE_CUDA, 1, &o->peer));
  STEP(kjit_create_stream(o->device, &o->streams[0]));
  STEP(kjit_create_stream_with(o->device, 0, KJIT_STREAM_NON_BLOCKING, &o->streams[1]));
  STEP(kjit_get_thread_stream(o->device, &o->streams[2]));
  STEP(kjit_wrap_stream(o->device, kjit_get_native_stream(o->streams[0]), &o->wrapped));
  (void)kjit_is_capturing(o->wrapped);
  STEP(kjit_create_event(o->device, &o->event));
  KJ_TRY(make_arrays(o));
  KJ_TRY(fill_arrays(o));
  KJ_TRY(copy_arrays(o));
  KJ_TRY(stage_arrays(o));
  KJ_TRY(pass_memory(o));
  STEP(kjit_synchronize_device(o->device));
  return KJIT_OK;
}

static void release_all(objects *o)
{
  for (int i = 0; i < ARRAYS; i++) kjit_release_array(o->arrays[i]);
  kjit_destroy_event(o->event);
  kjit_destroy_stream(o->wrapped);
  for (int i = 0; i < 3; i++) kjit_destroy_stream(o->streams[i]);
}

static kjit_context *open_context(int kind)
{
  (void)kind;
  return make_gpu_context();
}

static bool is_excused(const objects *o, const char *call, int fail_with)
{
  (void)o, (void)fail_with;
  return !strcmp(call, "cuStreamIsCapturing"); /* this call returns no status */
}

int main(void) { return run_fault_tests(300); }

/* Memory functions in an application: arrays of every kind, views, copies with any strides, fills,
 * the pool, several streams and threads, DLPack, other processes, several GPUs.
 * RUN: %programs/memory cpu
 * RUN: %if cuda %{ %programs/memory cuda %}
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stop_at_first.h"

static const char text[] =
  "kernel scale(x, a) { for i in grid_range(len(x)) { x[i] = a * x[i] } }\n"
  "kernel add(r, x, y) { for i in grid_range(len(r)) { r[i] = x[i] + y[i] } }\n";

static kjit_device *device;
static int is_gpu;

static kjit_array *make_array(kjit_device *on, kjit_type element, uint32_t rank,
                              const int64_t *shape, kjit_memory memory, kjit_stream *stream)
{
  kjit_array *array;
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = on;
  config.element = element;
  config.rank = rank;
  config.shape = shape;
  config.memory = memory;
  config.stream = stream;
  OK(kjit_create_array_with(&config, &array));
  return array;
}

/* ---- copies with any strides ---- */

static uint32_t seed = 1;
static uint32_t draw(uint32_t below)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static size_t count_of(uint32_t rank, const int64_t *shape)
{
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= (size_t)shape[i];
  return count;
}

/* Returns a view with this shape of a larger array, with steps of -2 to 3 and dimensions in any
 * order. */
static kjit_array *make_view(kjit_device *on, kjit_type element, uint32_t rank,
                             const int64_t *shape)
{
  int64_t room[8];
  uint32_t axes[8];
  kjit_array_slice slices[8];
  static const int64_t steps[] = { 1, 2, 3, -1, -2 };
  for (uint32_t i = 0; i < rank; i++) axes[i] = i;
  for (uint32_t i = rank; i-- > 1;) {
    uint32_t k = draw(i + 1), axis = axes[i];
    axes[i] = axes[k];
    axes[k] = axis;
  }
  for (uint32_t i = 0; i < rank; i++) {
    int64_t step = steps[draw(5)], extent = shape[i],
            reach = (extent - 1) * (step < 0 ? -step : step), before = draw(2);
    room[axes[i]] = reach + 1 + before + draw(2);
    slices[axes[i]] = step > 0 ? (kjit_array_slice){ before, before + reach + 1, step }
                               : (kjit_array_slice){ before + reach, before - 1, step };
  }
  kjit_array *array = make_array(on, element, rank, room, KJIT_MEMORY_DEVICE, NULL), *slice, *view;
  kjit_arg all = kjit_arg_array(array), value = kjit_arg_number(element == KJIT_BOOL ? 0 : 7);
  OK(kjit_fill(context, &all, &value, NULL));
  OK(kjit_slice_array(array, slices, rank, &slice));
  OK(kjit_transpose_array(slice, axes, &view));
  kjit_release_array(array);
  kjit_release_array(slice);
  return view;
}

static void check_copy(kjit_device *to_device, kjit_device *from_device, kjit_type element,
                       uint32_t rank)
{
  int64_t shape[8];
  for (uint32_t i = 0; i < rank; i++) shape[i] = 1 + draw(rank > 4 ? 3 : 9);
  size_t count = count_of(rank, shape);
  kjit_array *from = make_view(from_device, element, rank, shape),
             *to = make_view(to_device, element, rank, shape);
  size_t bytes = count * (kjit_get_tensor(from)->bits / 8u);
  unsigned char *in = malloc(bytes), *out = malloc(bytes);
  for (size_t i = 0; i < bytes; i++)
    in[i] = (unsigned char)(element == KJIT_BOOL ? draw(2) : draw(256));
  kjit_arg destination = kjit_arg_array(to), source = kjit_arg_array(from);
  OK(kjit_copy_from_host(from, in, bytes, NULL));
  if (draw(2)) OK(kjit_copy(context, &destination, &source, NULL));
  else OK(kjit_copy_async(context, &destination, &source, NULL));
  OK(kjit_synchronize_device(device)); /* a queued copy may write to host memory */
  OK(kjit_copy_to_host(to, out, bytes, NULL));
  CHECK(!memcmp(in, out, bytes));
  free(in);
  free(out);
  kjit_release_array(from);
  kjit_release_array(to);
}

static void check_copies(kjit_device *other, int times)
{
  static const kjit_type types[] = { KJIT_BOOL, KJIT_U8,  KJIT_F16, KJIT_F32,
                                     KJIT_I64,  KJIT_C64, KJIT_C128 };
  for (int i = 0; i < times; i++) {
    kjit_device *pair[] = { device, other };
    kjit_type type = types[draw(sizeof types / sizeof *types)];
    uint32_t rank = 1 + draw(draw(4) ? 4 : 8);
    check_copy(pair[draw(2)], pair[draw(2)], type, rank);
  }
}

/* ---- fills ---- */

static void check_fills(void)
{
  int64_t shape[] = { 5, 7, 9 };
  kjit_array *array = make_array(device, KJIT_F64, 3, shape, KJIT_MEMORY_DEVICE, NULL), *view;
  double out[5 * 7 * 9];
  kjit_arg all = kjit_arg_array(array), first = kjit_arg_f64(0.1), second = kjit_arg_number(3);
  OK(kjit_fill(context, &all, &first, NULL));
  OK(kjit_slice_array(array, (kjit_array_slice[]){ { 0, 5, 2 }, { 6, -1, -3 }, { 1, 9, 2 } }, 3,
                      &view));
  kjit_arg some = kjit_arg_array(view);
  OK(kjit_fill(context, &some, &second, NULL));
  OK(kjit_copy_to_host(array, out, sizeof out, NULL));
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 7; j++)
      for (int k = 0; k < 9; k++)
        CHECK(out[(i * 7 + j) * 9 + k] == (i % 2 == 0 && j % 3 == 0 && k % 2 == 1 ? 3 : 0.1));
  kjit_release_array(view);
  kjit_release_array(array);
}

/* ---- kinds of memory ---- */

static void check_kinds(void)
{
  int64_t length = 10000;
  for (kjit_memory memory = KJIT_MEMORY_DEVICE; memory <= KJIT_MEMORY_SHARED; memory++) {
    kjit_array *array = make_array(device, KJIT_F32, 1, &length, memory, NULL), *from;
    kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_f32(3) }, value = kjit_arg_f32(2);
    kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
    float *out = malloc((size_t)length * sizeof *out);
    OK(kjit_fill(context, &arguments[0], &value, NULL));
    for (int i = 0; i < 3; i++) OK(kjit_launch(kernel_of("scale"), &config, arguments, 2));
    OK(kjit_prefetch_array(array, device, NULL));
    OK(kjit_copy_to_host(array, out, (size_t)length * sizeof *out, NULL));
    for (int i = 0; i < length; i++) CHECK(out[i] == 54);
    OK(kjit_create_array_from(device, kjit_get_tensor(array), NULL, &from));
    memset(out, 0, (size_t)length * sizeof *out);
    OK(kjit_copy_to_host(from, out, (size_t)length * sizeof *out, NULL));
    for (int i = 0; i < length; i++) CHECK(out[i] == 54);
    const kjit_tensor *tensor = kjit_get_tensor(array);
    /* the host can access the memory, too */
    if (tensor->device_type != 2) CHECK(((float *)tensor->data)[9999] == 54);
    free(out);
    kjit_release_array(array);
    kjit_release_array(from);
  }
}

/* ---- the pool ---- */

static void check_pool(void)
{
  kjit_memory_statistics before = { .size_bytes = sizeof before },
                         after = { .size_bytes = sizeof after };
  uint64_t unused, total;
  int64_t length = 1 << 20;
  float *host = calloc((size_t)length, sizeof *host);
  kjit_tensor tensor = {
    .data = host, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = &length
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&tensor), kjit_arg_f32(2) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  OK(kjit_launch(kernel_of("scale"), &config, arguments, 2));
  kjit_get_memory_statistics(device, &before);
  for (int i = 0; i < length; i++) host[i] = 1;
  for (int i = 0; i < 10; i++) OK(kjit_launch(kernel_of("scale"), &config, arguments, 2));
  for (int i = 0; i < length; i++) CHECK(host[i] == 1024);
  kjit_get_memory_statistics(device, &after);
  CHECK(before.driver_allocations == after.driver_allocations &&
        before.used_bytes == after.used_bytes);
  CHECK(!is_gpu || after.hits >= before.hits + 10);
  free(host);
  OK(kjit_get_memory_info(device, &unused, &total));
  CHECK(unused > 0 && unused <= total);
  kjit_trim_memory(device, 0);
  kjit_get_memory_statistics(device, &after);
  CHECK(after.cached_bytes + after.pinned_cached_bytes == 0);
  if (!is_gpu) return;
  /* Cached memory is released when another allocation needs it. A request for more memory than the
   * device has is an error, after which all calls still work. */
  OK(kjit_get_memory_info(device, &unused, &total));
  int64_t most = (int64_t)(unused / 10 * 6), more = (int64_t)(unused / 10 * 8),
          too_much = (int64_t)(total * 2);
  kjit_release_array(make_array(device, KJIT_U8, 1, &most, KJIT_MEMORY_DEVICE, NULL));
  kjit_array *large = make_array(device, KJIT_U8, 1, &more, KJIT_MEMORY_DEVICE, NULL), *none;
  kjit_get_memory_statistics(device, &after);
  CHECK(after.flushes == 1 && after.cached_bytes == 0);
  CHECK(kjit_create_array(device, KJIT_U8, &too_much, 1, &none) == KJIT_ERROR_DEVICE_MEMORY);
  kjit_release_array(large);
  kjit_trim_memory(device, 0);
}

/* ---- streams and threads ---- */

/* Arrays are released while other streams use them. No thread may see elements of another thread's
 * arrays. */
static void *use_streams(void *number)
{
  int64_t length = 50000 + 1000 * (int64_t)(intptr_t)number;
  float *out = malloc((size_t)length * sizeof *out);
  kjit_stream *streams[2];
  for (int i = 0; i < 2; i++)
    OK(kjit_create_stream_with(device, 0, i ? KJIT_STREAM_NON_BLOCKING : 0, &streams[i]));
  for (int i = 0; i < 50; i++) {
    kjit_event *event;
    kjit_array *x = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, streams[i % 2]),
               *r = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, NULL);
    kjit_arg arguments[] = { kjit_arg_array(r), kjit_arg_array(x), kjit_arg_array(x) },
             value = kjit_arg_f32((float)i);
    OK(kjit_create_event(device, &event));
    OK(kjit_fill(context, &arguments[1], &value, streams[i % 2]));
    OK(kjit_record_event(event, streams[i % 2]));
    OK(kjit_wait_event(streams[1 - i % 2], event));
    kjit_launch_config config = { .size_bytes = sizeof config, .stream = streams[1 - i % 2] };
    OK(kjit_launch(kernel_of("add"), &config, arguments, 3));
    kjit_release_array(x);
    /* the new array may have the same memory */
    x = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, streams[i % 2]);
    kjit_arg again = kjit_arg_array(x), other = kjit_arg_f32(-1);
    OK(kjit_fill(context, &again, &other, streams[i % 2]));
    OK(kjit_copy_to_host(r, out, (size_t)length * sizeof *out, streams[1 - i % 2]));
    for (int k = 0; k < length; k++) CHECK(out[k] == 2 * (float)i);
    kjit_release_array(x);
    kjit_release_array(r);
    kjit_destroy_event(event);
  }
  for (int i = 0; i < 2; i++) kjit_destroy_stream(streams[i]);
  free(out);
  return NULL;
}

static void check_threads(void)
{
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, use_streams, (void *)i));
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  OK(kjit_synchronize_device(device));
  kjit_memory_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_memory_statistics(device, &statistics);
  CHECK(statistics.used_bytes == 0);
}

/* ---- DLPack ---- */

static void check_dlpack(void)
{
  int64_t length = 1000;
  kjit_array *array = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, NULL), *taken;
  kjit_arg all = kjit_arg_array(array), value = kjit_arg_f32(5);
  kjit_stream *stream;
  kjit_managed_tensor *managed;
  kjit_managed_tensor_versioned *versioned;
  float out[1000];
  OK(kjit_create_stream(device, &stream));
  OK(kjit_fill(context, &all, &value, stream));
  OK(kjit_export_dlpack(array, NULL, &managed));
  OK(kjit_export_dlpack_versioned(array, stream, &versioned));
  kjit_release_array(array);
  OK(kjit_take_dlpack(context, managed, NULL, &taken));
  OK(kjit_copy_to_host(taken, out, sizeof out, NULL));
  for (int i = 0; i < 1000; i++) CHECK(out[i] == 5);
  kjit_release_array(taken);
  versioned->deleter(versioned);
  kjit_destroy_stream(stream);
}

/* ---- other processes ---- */

static void open_device(const char *name)
{
  kjit_config config = { .size_bytes = sizeof config };
  OK(kjit_create_context(&config, &context));
  is_gpu = !strcmp(name, "cuda");
  OK(kjit_get_device(context, is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &device));
  OK(kjit_parse_module(context, "memory.kir", text, sizeof text - 1, &module));
}

/* Runs in the other process: adds one to the elements of the imported array. */
static int import(const char *name, const char *hex)
{
  kjit_array_handle handle;
  kjit_array *array;
  for (size_t i = 0; i < sizeof handle.bytes; i++)
    CHECK(sscanf(hex + 2 * i, "%2hhx", &handle.bytes[i]) == 1);
  open_device(name);
  OK(kjit_import_array(context, &handle, &array));
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_f32(10) };
  OK(kjit_launch(kernel_of("scale"), NULL, arguments, 2));
  OK(kjit_synchronize_device(device));
  kjit_release_array(array);
  kjit_destroy_context(context);
  return 0;
}

static void check_processes(const char *program, const char *name)
{
  int64_t length = 1000;
  float values[1000];
  kjit_array *array = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_SHARED, NULL), *view;
  kjit_array_handle handle;
  char hex[2 * sizeof handle.bytes + 1];
  for (int i = 0; i < 1000; i++) values[i] = (float)i;
  OK(kjit_copy_from_host(array, values, sizeof values, NULL));
  OK(kjit_slice_array(array, &(kjit_array_slice){ 1, 1000, 2 }, 1, &view));
  OK(kjit_export_array(view, &handle));
  for (size_t i = 0; i < sizeof handle.bytes; i++)
    snprintf(hex + 2 * i, 3, "%02x", handle.bytes[i]);
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    execl(program, program, "import", name, hex, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(kjit_copy_to_host(array, values, sizeof values, NULL));
  for (int i = 0; i < 1000; i++) CHECK(values[i] == (float)(i % 2 ? 10 * i : i));
  kjit_release_array(view);
  kjit_release_array(array);
}

static void check_fork(void)
{
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    int64_t length = 1;
    kjit_array *array;
    _exit(kjit_create_array(device, KJIT_F32, &length, 1, &array) == KJIT_ERROR_FORKED &&
              kjit_synchronize_device(device) == KJIT_ERROR_FORKED
            ? 0
            : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  check_fills(); /* the parent continues */
}

/* ---- several GPUs ---- */

static void check_peers(void)
{
  kjit_device *other;
  int can = 0;
  if (!is_gpu || kjit_get_device_count(context, KJIT_DEVICE_CUDA) < 2) return;
  OK(kjit_get_device(context, KJIT_DEVICE_CUDA, 1, &other));
  check_copies(other, 100);
  OK(kjit_can_access_peer(device, other, &can));
  if (!can) return;
  int64_t length = 100000;
  kjit_array *here = make_array(device, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, NULL),
             *there = make_array(other, KJIT_F32, 1, &length, KJIT_MEMORY_DEVICE, NULL);
  kjit_arg arguments[] = { kjit_arg_array(here), kjit_arg_array(there), kjit_arg_array(there) },
           value = kjit_arg_f32(4);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  float *out = malloc((size_t)length * sizeof *out);
  OK(kjit_fill(context, &arguments[1], &value, NULL));
  OK(kjit_synchronize_device(other));
  CHECK(kjit_launch(kernel_of("add"), &config, arguments, 3) == KJIT_ERROR_ARGUMENT);
  OK(kjit_enable_peer_access(device, other));
  OK(kjit_enable_peer_access(other, device));
  OK(kjit_launch(kernel_of("add"), &config, arguments, 3));
  OK(kjit_copy_to_host(here, out, (size_t)length * sizeof *out, NULL));
  for (int i = 0; i < length; i++) CHECK(out[i] == 8);
  check_copies(other, 100);
  OK(kjit_disable_peer_access(device, other));
  kjit_release_array(here);
  kjit_release_array(there);
  free(out);
  printf("two GPUs, peer access\n");
}

int main(int count, char **arguments)
{
  if (count == 4 && !strcmp(arguments[1], "import")) return import(arguments[2], arguments[3]);
  if (count < 2) return 2;
  open_device(arguments[1]);
  kjit_device *cpu;
  unsigned char uuid[16];
  int64_t warp = 0;
  OK(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu));
  OK(kjit_get_device_attribute(device, KJIT_DEVICE_ATTRIBUTE_WARP_SIZE, &warp));
  OK(kjit_get_device_uuid(device, uuid));
  CHECK(warp == 32);
  check_pool();
  check_copies(cpu, is_gpu ? 300 : 500);
  check_fills();
  check_kinds();
  check_dlpack();
  check_threads();
  check_processes(arguments[0], arguments[1]);
  check_fork();
  check_peers();
  kjit_destroy_context(context);
  printf("ok\n");
  return 0;
}

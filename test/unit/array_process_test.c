/* Arrays that processes share, and the use of a context in a forked child. */
#include "small_arrays.h"
#include "memory/pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kjit/cache.h>
#include <kjit/code.h>

#include "compiler.h"

/* ---- other processes ---- */

/* Returns the child's exit status, which is 0 if everything was correct. */
static int wait_for(pid_t child)
{
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

static int use_imported(const kjit_array_handle *handle)
{
  kjit_array *array;
  float values[6];
  kjit_context *context = make_fake_context();
  if (kjit_import_array(context, handle, &array) != KJIT_OK) return 1;
  if (kjit_get_tensor(array)->rank != 2 || kjit_get_tensor(array)->shape[0] != 3) return 2;
  if (kjit_copy_to_host(array, values, sizeof values, NULL) != KJIT_OK || values[5] != 11) return 3;
  kjit_arg destination = kjit_arg_array(array), value = kjit_arg_number(-7);
  if (kjit_fill(context, &destination, &value, NULL) != KJIT_OK) return 4;
  kjit_release_array(array);
  kjit_destroy_context(context);
  return 0;
}

static void test_shared_memory(void **state)
{
  kjit_device *cpu = cpu_of(*state);
  kjit_array *array = make_matrix(cpu, KJIT_LAYOUT_C, KJIT_MEMORY_SHARED), *view, *again,
             *plain = make_counted(cpu, KJIT_LAYOUT_C);
  float values[12];
  kjit_array_handle handle;
  for (int i = 0; i < 12; i++) values[i] = (float)i;
  expect_ok(*state, kjit_copy_from_host(array, values, sizeof values, NULL));
  expect_ok(*state,
            kjit_slice_array(array, (kjit_array_slice[]){ { 0, 3, 1 }, { 1, 4, 2 } }, 2, &view));
  expect_ok(*state, kjit_export_array(view, &handle));
  fflush(NULL);
  pid_t child = fork();
  if (!child) _exit(use_imported(&handle));
  assert_int_equal(wait_for(child), 0);
  EXPECT_ELEMENTS(array, 0, -7, 2, -7, 4, -7, 6, -7, 8, -7, 10, -7);
  assert_int_equal(ftruncate(array->block->file, 0), -1); /* whoever has it */
  expect_refused(*state, kjit_import_array(*state, &handle, &again), KJIT_ERROR_ARGUMENT,
                 "the array belongs to this process; use it directly");
  expect_refused(*state, kjit_export_array(plain, &handle), KJIT_ERROR_UNSUPPORTED,
                 "on the CPU only arrays in KJIT_MEMORY_SHARED can be exported, because another "
                 "process cannot access other memory");
}

/* Without seals, the file that a handle names could become shorter while the importer uses it. */
static int import_in_child(const kjit_array_handle *handle)
{
  kjit_context *context;
  kjit_array *array = NULL;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 0;
  return (int)kjit_import_array(context, handle, &array);
}

static void test_unsealed_memory(void **state)
{
  enum { FILE_AT = 256, PROCESS_AT = 152 };
  kjit_array *array;
  kjit_array_handle handle;
  struct stat found;
  int64_t length = 100;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = cpu_of(*state),
                               .element = KJIT_F32,
                               .rank = 1,
                               .shape = &length,
                               .layout = KJIT_LAYOUT_C,
                               .memory = KJIT_MEMORY_SHARED };
  expect_ok(*state, kjit_create_array_with(&config, &array));
  expect_ok(*state, kjit_export_array(array, &handle));
  for (int sealed = 0; sealed < 2; sealed++) {
    int file = memfd_create("another one", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(file, 4096), 0);
    if (sealed) assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(fstat(file, &found), 0);
    uint64_t words[] = { (uint64_t)file, found.st_ino, found.st_dev };
    memcpy(handle.bytes + FILE_AT, words, sizeof words);
    fflush(NULL);
    pid_t child = fork();
    if (!child) _exit(import_in_child(&handle));
    assert_int_equal(wait_for(child), sealed ? KJIT_OK : KJIT_ERROR_ARGUMENT);
    close(file);
  }
  kjit_release_array(array);
}

/* Handles are untrusted. Whatever bytes a handle has, the call returns an error or maps the memory
 * that the handle names. */
static void test_damaged_handles(void **state)
{
  kjit_array *array = make_matrix(cpu_of(*state), KJIT_LAYOUT_C, KJIT_MEMORY_SHARED), *imported;
  kjit_array_handle handle, damaged;
  expect_ok(*state, kjit_export_array(array, &handle));
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) {
    damaged = handle;
    for (int k = 0; k <= i % 3; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      damaged.bytes[(seed >> 33) % 280] ^= (unsigned char)(1u << (seed >> 60 & 7));
    }
    if (kjit_import_array(*state, &damaged, &imported) == KJIT_OK) kjit_release_array(imported);
  }
}

static void test_gpu_handles(void **state)
{
  enum { PROCESS_AT = 152 };
  kjit_device *device = gpu(*state, 0);
  kjit_array *array = make_vector(device, 100, NULL), *view, *imported, *pinned;
  kjit_array_handle handle;
  memset(address_of(array), 0, 400);
  ((float *)address_of(array))[10] = 42;
  expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 10, 20, 1 }, 1, &view));
  expect_ok(*state, kjit_export_array(view, &handle));
  handle.bytes[PROCESS_AT] ^= 1; /* the handle now names another process */
  expect_ok(*state, kjit_import_array(*state, &handle, &imported));
  assert_ptr_equal(kjit_get_array_device(imported), device);
  EXPECT_ELEMENTS(imported, 42, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  assert_int_equal(cuda.opened, 1);
  kjit_release_array(imported);
  assert_int_equal(cuda.opened, 0);
  /* the handle claims a larger size than the memory has; kjit relies on the driver's size */
  enum { SHAPE_AT = 24, SIZE_AT = 168 };
  int64_t many = 1 << 24, bytes = many * 4 + 40;
  memcpy(handle.bytes + SHAPE_AT, &many, sizeof many);
  memcpy(handle.bytes + SIZE_AT, &bytes, sizeof bytes);
  expect_refused(
    *state, kjit_import_array(*state, &handle, &imported), KJIT_ERROR_ARGUMENT,
    "the handle is damaged: it states 67108904 bytes of memory, but the opened memory has 512");
  assert_int_equal(cuda.opened, 0);
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_F32,
                               .layout = KJIT_LAYOUT_C,
                               .memory = KJIT_MEMORY_PINNED };
  expect_ok(*state, kjit_create_array_with(&config, &pinned));
  assert_int_equal(kjit_export_array(pinned, &handle), KJIT_ERROR_UNSUPPORTED);
}

/* ---- fork ---- */

static void run_on_cpu(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)grid, (void)scratch;
  if (first == 0 && last) run_add_one(parameters);
}

typedef struct everything {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_array *array;
  kjit_stream *stream;
  kjit_event *event;
  kjit_prepared *prepared;
} everything;

/* Makes every kind of call on the parent's objects. Returns the index of the first call that is not
 * rejected, or 0 if all are rejected. */
static int use_after_fork(everything *e)
{
  kjit_arg argument = kjit_arg_array(e->array), number = kjit_arg_number(1);
  kjit_device *device;
  kjit_array *array;
  kjit_stream *stream;
  kjit_event *event;
  kjit_prepared *prepared;
  kjit_graph *graph;
  kjit_managed_tensor *managed;
  kjit_array_handle handle;
  kjit_specialization *specialization;
  kjit_module *module;
  kjit_kernel *kernel;
  void *blob;
  size_t blob_bytes;
  int64_t length = 1;
  float data[4096] = { 0 };
  const kjit_status results[] = {
    kjit_launch(e->kernel, NULL, &argument, 1),
    kjit_prepare_launch(e->kernel, NULL, &argument, 1, &prepared),
    kjit_run_prepared(e->prepared, NULL),
    kjit_set_prepared_argument(e->prepared, 0, &argument),
    kjit_get_prepared_specialization(e->prepared) ? KJIT_OK : KJIT_ERROR_FORKED,
    kjit_seal_kernel(e->kernel),
    kjit_specialize(e->kernel, e->device, "f32[:] C", &specialization),
    kjit_parse_module(e->context, "x.kir", "", 0, &module),
    kjit_get_kernel(e->module, "add_one", &kernel),
    kjit_export_code(e->module, &blob, &blob_bytes),
    kjit_import_code(e->context, data, sizeof data),
    kjit_get_device(e->context, KJIT_DEVICE_CPU, 0, &device),
    kjit_synchronize_device(e->device),
    kjit_reset_device(e->device),
    kjit_create_array(e->device, KJIT_F32, &length, 1, &array),
    kjit_create_array_like(e->array, &array),
    kjit_create_array_from(e->device, kjit_get_tensor(e->array), NULL, &array),
    kjit_slice_array(e->array, NULL, 0, &array),
    kjit_reshape_array(e->array, &length, 1, &array),
    kjit_transpose_array(e->array, NULL, &array),
    kjit_restride_array(e->array, NULL, NULL, 0, 0, &array),
    kjit_wrap_tensor(e->context, kjit_get_tensor(e->array), &array),
    kjit_copy(e->context, &argument, &argument, NULL),
    kjit_copy_async(e->context, &argument, &argument, NULL),
    kjit_copy_to_host(e->array, data, sizeof data, NULL),
    kjit_fill(e->context, &argument, &number, NULL),
    kjit_export_dlpack(e->array, NULL, &managed),
    kjit_export_array(e->array, &handle),
    kjit_create_stream(e->device, &stream),
    kjit_get_default_stream(e->device, &stream),
    kjit_synchronize_stream(e->stream),
    kjit_query_stream(e->stream),
    kjit_begin_capture(e->stream),
    kjit_end_capture(e->stream, &graph),
    kjit_create_event(e->device, &event),
    kjit_record_event(e->event, e->stream),
    kjit_synchronize_event(e->event),
    kjit_wait_event(e->stream, e->event),
    kjit_query_event(e->event),
    kjit_start_profiler(e->device),
    kjit_pin_memory(e->device, data, sizeof data),
  };
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (results[i] != KJIT_ERROR_FORKED) return (int)i + 1;
  return 0;
}

/* ThreadSanitizer does not support threads in a child of a process that had threads. */
#if defined(__SANITIZE_THREAD__)
enum { MAY_START_THREADS = 0 };
#else
enum { MAY_START_THREADS = 1 };
#endif

/* A context that the child creates works. */
static int use_own_context(void)
{
  kjit_context *context = make_fake_context();
  fake.kernel = run_on_cpu;
  float data[4096] = { 0 };
  int64_t length = 4096;
  kjit_tensor tensor = host_vector(data, &length);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_device *cpu;
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) != KJIT_OK) return 91;
  if (kjit_launch(kernel_of(parse(context, add_one), "add_one"),
                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .device = cpu },
                  &argument, 1) != KJIT_OK)
    return 92;
  if (data[4095] != 1) return 93;
  kjit_destroy_context(context);
  return 0;
}

static int be_child(everything *e)
{
  alarm(150); /* ends a child that waits for a lock */
  int failed = use_after_fork(e);
  if (failed) return failed;
  const kjit_diagnostic *diagnostic = kjit_get_diagnostic(e->context, 0);
  char *text = kjit_copy_diagnostics_text(e->context);
  if (!diagnostic || diagnostic->status != KJIT_ERROR_FORKED || !text ||
      !strstr(text, "create a context in the child process"))
    return 90;
  free(text);
  if (kjit_get_specialization(e->kernel, 0) || kjit_get_cache_directory(e->context)) return 94;
  kjit_release_array(e->array); /* these calls have no effect and do not wait */
  kjit_release_module(e->module);
  kjit_destroy_prepared(e->prepared);
  kjit_destroy_stream(e->stream);
  kjit_destroy_event(e->event);
  kjit_destroy_context(e->context);
  return MAY_START_THREADS ? use_own_context() : 0;
}

static void check_fork(kjit_context *context, kjit_device *device)
{
  everything e = { .context = context, .device = device };
  fake.kernel = run_on_cpu;
  cuda.kernel = run_add_one;
  e.module = parse(context, add_one);
  e.kernel = kernel_of(e.module, "add_one");
  e.array = make_vector(device, 1024, NULL);
  expect_ok(context, kjit_create_stream(device, &e.stream));
  expect_ok(context, kjit_create_event(device, &e.event));
  kjit_arg argument = kjit_arg_array(e.array);
  expect_ok(context, kjit_prepare_launch(e.kernel, NULL, &argument, 1, &e.prepared));
  expect_ok(context, kjit_run_prepared(e.prepared, NULL)); /* the workers may exist */
  fflush(NULL);
  kj_runtime *runtime = kj_get_runtime(context);
  pthread_mutex_t *held[] = { &context->runtime_mutex, &runtime->streams_mutex,
                              &runtime->objects_mutex, &device->mutex };
  /* another thread may hold these locks at the fork */
  for (int i = 0; i < 4; i++) pthread_mutex_lock(held[i]);
  pid_t child = fork();
  if (!child) _exit(be_child(&e));
  for (int i = 0; i < 4; i++) pthread_mutex_unlock(held[i]);
  assert_int_equal(wait_for(child), 0);
  expect_ok(context, kjit_run_prepared(e.prepared, NULL)); /* the parent continues */
  kjit_destroy_prepared(e.prepared);
  kjit_destroy_stream(e.stream);
  kjit_destroy_event(e.event);
  kjit_release_array(e.array);
}

/* The driver's error in a child whose parent has used the driver. */
static void test_driver_in_child(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  cuda = (fake_driver){ .devices = 1, .fail_at = 1, .fail_with = 3 };
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_ERROR_FORKED);
  assert_string_equal(diagnostics.items[0].message,
                      "the CUDA driver was in use when this process was forked; a child process "
                      "cannot use it (cuInit returns 3)");
  kj_free_diagnostics(&diagnostics);
  kjit_destroy_context(context);
}

static void test_fork(void **state) { check_fork(*state, cpu_of(*state)); }
static void test_fork_with_gpu(void **state) { check_fork(*state, gpu(*state, 0)); }

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_shared_memory),
    TEST(test_damaged_handles),
    TEST(test_gpu_handles),
    TEST(test_unsealed_memory),
    TEST(test_fork),
    TEST(test_fork_with_gpu),
    cmocka_unit_test(test_driver_in_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lets every driver call of launches fail in turn. The launches have configurations and attributes
 * of all kinds. Their code needs stack, prints or can fail, or it is unloaded and loaded again.
 * Other steps use prepared launches, graphs over several streams, and blobs. */
#include <kjit/code.h>

#include "gpu_test.h"

struct objects {
  kjit_context *context;
  int step, failed_in;
  kjit_device *device;
  kjit_stream *streams[2];
  kjit_event *events[2];
  kjit_array *vector, *matrix;
  kjit_prepared *prepared[2];
  kjit_graph *graphs[2];
  kjit_executable_graph *executable;
  void *blob;
  size_t blob_bytes;
  int imported; /* the step from which code comes from a blob; 0 means none */
};

#include "faults.h"

static const char source[] = "kernel k(x) { x[threadIdx.x] = 1 }\nkernel m(x) { x[threadIdx.x, 0] "
                             "= 1 }\nkernel r(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n";

/* The fake compiler gives its properties to the kernels that it compiles next. So each kind of code
 * has its own module and kernel. */
static kjit_kernel *fresh(const objects *o, const char *name)
{
  return kernel_of(parse(o->context, source), name);
}

static kjit_status launch(objects *o, kjit_kernel *kernel, kjit_launch_config config)
{
  kjit_arg arguments[] = { kjit_arg_array(o->vector), kjit_arg_f32(1) };
  return kjit_launch(kernel, &config, arguments, kernel->parameter_count);
}

/* ---- configurations and attributes ---- */

static kjit_status launch_kinds(objects *o)
{
  kjit_kernel *kernel = fresh(o, "k");
  STEP(launch(o, kernel,
              (kjit_launch_config){
                .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = 1000 }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .threads = 1000,
                                    .dynamic_shared_bytes = 100000,
                                    .stream = o->streams[0] }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .grid = { 80 },
                                    .block = { 256 },
                                    .flags = KJIT_LAUNCH_COOPERATIVE }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .grid = { 8, 2 },
                                    .block = { 32 },
                                    .cluster = { 4, 2 },
                                    .stream = o->streams[1] }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .grid = { 1 },
                                    .block = { 32 },
                                    .priority = -3 }));
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .grid = { 1 },
                                    .block = { 32 },
                                    .flags = KJIT_LAUNCH_PROGRAMMATIC }));
  STEP(launch(o, fresh(o, "r"),
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .stream = o->streams[0] }));
  return KJIT_OK;
}

/* Launches code that needs more than loading: stack, a print ring, failure records. */
static kjit_status launch_needy(objects *o)
{
  static const kjit_launch_config one = { .size_bytes = sizeof one,
                                          .grid = { 1 },
                                          .block = { 32 } };
  kjit_kernel *cooperative = fresh(o, "r"), *deep = fresh(o, "k"), *printing = fresh(o, "k"),
              *failing = fresh(o, "k"), *mapped = fresh(o, "m");
  fake.is_cooperative = true;
  STEP(launch(o, cooperative, (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  fake.is_cooperative = false;
  fake.stack_bytes = 1 << 14;
  STEP(launch(o, deep, one));
  fake.stack_bytes = 0;
  fake.prints = "only text\n";
  STEP(launch(o, printing, one));
  fake.prints = NULL;
  fake.failures = "refused";
  STEP(launch(o, failing, one));
  fake.prints = "both\n";
  STEP(launch(o, fresh(o, "k"), one));
  fake.prints = fake.failures = NULL;
  fake.has_map = true;
  kjit_arg matrix = kjit_arg_array(o->matrix);
  STEP(kjit_launch(mapped, &one, &matrix, 1));
  fake.has_map = false;
  STEP(kjit_synchronize_device(o->device));
  return KJIT_OK;
}

/* PTX of the application, linked with the kernel's PTX. */
static kjit_status launch_linked(objects *o)
{
  static const char ptx[] =
    ".version 7.8\n.target sm_80\n.visible .func (.param .b32 r) step(.param .b32 x) { ret; }\n";
  kjit_module
    *module = parse(
      o->context,
      "extern func step(x: f32) -> f32\nkernel k(x: f32) @block(1) @grid(1) { let y = step(x) }\n"),
    *bound;
  kjit_arg number = kjit_arg_f32(1);
  STEP(kjit_bind_extern(module, "step", NULL, ptx, strlen(ptx), &bound));
  fake.text = ".version 7.8\n.extern .func step;\n.entry k { call step; }\n";
  STEP(kjit_launch(kernel_of(bound, "k"),
                   &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                          .device = o->device },
                   &number, 1));
  fake.text = NULL;
  return KJIT_OK;
}

static kjit_status ask(objects *o)
{
  kjit_specialization *made;
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  void *binary = NULL;
  size_t size_bytes;
  STEP(kjit_specialize(fresh(o, "r"), o->device, "f64[:] C, f64", &made));
  STEP(kjit_get_occupancy(made, NULL, 0, &occupancy));
  STEP(kjit_get_occupancy(made, (uint32_t[3]){ 64, 1, 1 }, 1000, &occupancy));
  STEP(kjit_copy_specialization_binary(made, &binary, &size_bytes));
  kjit_free(o->context, binary);
  return KJIT_OK;
}

/* ---- prepared launches ---- */

static kjit_status run_prepared(objects *o)
{
  kjit_arg arguments[] = { kjit_arg_array(o->vector), kjit_arg_f32(1) }, number = kjit_arg_f32(2);
  kjit_launch_config plain = { .size_bytes = sizeof plain, .stream = o->streams[0] }, special = {
    .size_bytes = sizeof special, .grid = { 8 }, .block = { 32 }, .cluster = { 2 }, .priority = -1
  };
  kjit_kernel *kernel = fresh(o, "r");
  STEP(kjit_prepare_launch(kernel, &plain, arguments, 2, &o->prepared[0]));
  STEP(kjit_prepare_launch(kernel, &special, arguments, 2, &o->prepared[1]));
  for (int i = 0; i < 2; i++) {
    STEP(kjit_run_prepared(o->prepared[i], NULL));
    STEP(kjit_run_prepared(o->prepared[i], o->streams[1]));
    STEP(kjit_set_prepared_argument(o->prepared[i], 1, &number));
    STEP(kjit_run_prepared(o->prepared[i], NULL));
    STEP(kjit_set_prepared_argument(o->prepared[i], 0, &arguments[0]));
    STEP(kjit_run_prepared(o->prepared[i], NULL));
  }
  return KJIT_OK;
}

/* ---- graphs over two streams ---- */

static void do_nothing(void *user) { (void)user; }

static kjit_status queue_both(objects *o, kjit_kernel *kernel)
{
  kjit_arg vector = kjit_arg_array(o->vector), number = kjit_arg_number(3);
  STEP(kjit_record_event(o->events[0], o->streams[0]));
  STEP(kjit_wait_event(o->streams[1], o->events[0])); /* joins */
  STEP(launch(o, kernel,
              (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                    .grid = { 1 },
                                    .block = { 32 },
                                    .stream = o->streams[1] }));
  STEP(kjit_run_prepared(o->prepared[0], o->streams[0]));
  STEP(kjit_fill(o->context, &vector, &number, o->streams[1]));
  STEP(kjit_add_host_callback(o->device, o->streams[1], do_nothing, NULL));
  STEP(kjit_record_event(o->events[1], o->streams[1]));
  STEP(kjit_wait_event(o->streams[0], o->events[1]));
  return KJIT_OK;
}

static kjit_status use_graphs(objects *o)
{
  kjit_kernel *kernel = fresh(o, "k");
  for (int i = 0; i < 2; i++) {
    STEP(kjit_begin_capture(o->streams[0]));
    KJ_TRY(queue_both(o, kernel));
    STEP(kjit_end_capture(o->streams[0], &o->graphs[i]));
  }
  STEP(kjit_instantiate_graph(o->graphs[0], &o->executable));
  STEP(kjit_launch_graph(o->executable, NULL));
  STEP(kjit_update_graph(o->executable, o->graphs[1]));
  STEP(kjit_launch_graph(o->executable, o->streams[1]));
  STEP(kjit_synchronize_stream(o->streams[1]));
  return KJIT_OK;
}

/* ---- blobs ---- */

static kjit_status share_code(objects *o)
{
  kjit_module *module = parse(o->context, source);
  kjit_specialization *made;
  STEP(kjit_specialize(kernel_of(module, "k"), o->device, "f32[:] C", &made));
  STEP(kjit_specialize(kernel_of(module, "r"), o->device, "f32[:] C, f32", &made));
  STEP(kjit_export_code(module, &o->blob, &o->blob_bytes));
  STEP(kjit_import_code(o->context, o->blob, o->blob_bytes));
  o->imported = o->step + 1;
  STEP(launch(o, fresh(o, "k"),
              (kjit_launch_config){
                .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } }));
  STEP(kjit_specialize(fresh(o, "r"), o->device, "f32[:] C, f32", &made));
  return KJIT_OK;
}

/* ---- all steps ---- */

static kjit_status use_all(objects *o)
{
  fake.prints = fake.failures = fake.text = NULL; /* the previous trial may have set them */
  fake.has_map = fake.is_cooperative = false;
  fake.stack_bytes = 0;
  static const int64_t length = 64, square[] = { 8, 8 };
  STEP(kjit_get_device(o->context, KJIT_DEVICE_CUDA, 0, &o->device));
  for (int i = 0; i < 2; i++) {
    STEP(kjit_create_stream(o->device, &o->streams[i]));
    STEP(kjit_create_event(o->device, &o->events[i]));
  }
  STEP(kjit_create_array(o->device, KJIT_F32, &length, 1, &o->vector));
  STEP(kjit_create_array(o->device, KJIT_F32, square, 2, &o->matrix));
  KJ_TRY(launch_kinds(o));
  KJ_TRY(launch_needy(o));
  KJ_TRY(launch_linked(o));
  KJ_TRY(ask(o));
  KJ_TRY(run_prepared(o));
  KJ_TRY(use_graphs(o));
  KJ_TRY(share_code(o));
  STEP(kjit_synchronize_device(o->device));
  return KJIT_OK;
}

static void release_all(objects *o)
{
  for (int i = 0; i < 2; i++) kjit_destroy_prepared(o->prepared[i]);
  kjit_destroy_executable_graph(o->executable);
  for (int i = 0; i < 2; i++) kjit_destroy_graph(o->graphs[i]);
  kjit_release_array(o->vector);
  kjit_release_array(o->matrix);
  for (int i = 0; i < 2; i++) kjit_destroy_event(o->events[i]);
  for (int i = 0; i < 2; i++) kjit_destroy_stream(o->streams[i]);
  kjit_free(o->context, o->blob);
}

static void take_lines(void *user, const char *text, size_t size_bytes)
{
  (void)user, (void)text, (void)size_bytes;
}

enum { ROOMY, TIGHT };

static kjit_context *open_context(int kind)
{
  kjit_context *context = make_gpu_context();
  if (!context) return NULL;
  context->config.on_print = take_lines;
  /* enough for two kernels: code of the fake compiler has as many bytes as the kernel's name */
  if (kind == TIGHT) context->config.code_limit_bytes = 2;
  return context;
}

/* If code of a blob cannot be loaded, kjit compiles the kernel. */
static bool is_excused(const objects *o, const char *call, int fail_with)
{
  (void)fail_with;
  return o->imported && o->failed_in >= o->imported &&
         (!strncmp(call, "cuModule", 8) || !strncmp(call, "cuFunc", 6));
}

static void test_every_failure(void **state)
{
  (void)state;
  try_failures(ROOMY, 300);
}

static void test_every_failure_with_unloading(void **state)
{
  (void)state;
  try_failures(TIGHT, 300);
}

static void test_every_release(void **state)
{
  (void)state;
  try_releases(ROOMY, 20);
  try_releases(TIGHT, 20);
}

static void test_faults(void **state)
{
  (void)state;
  try_faults(ROOMY);
  try_faults(TIGHT);
}

/* Checks that messages name the kernel and the device. */
static void test_messages(void **state)
{
  kjit_context *context = *state;
  static const int64_t length = 64;
  kjit_device *device = gpu(context, 1);
  kjit_array *vector;
  expect_ok(context, kjit_create_array(device, KJIT_F32, &length, 1, &vector));
  /* the context is current already, so the driver calls below do not include cuCtxSetCurrent */
  cuda.current = &fake_primary[1];
  kjit_arg argument = kjit_arg_array(vector);
  static const struct {
    int calls; /* number of calls before the failing one, in a launch without existing code */
    const char *message;
  } rows[] = {
    { 1, "kernel `k` on cuda:1: cuModuleLoadDataEx gives CUDA_ERROR_UNKNOWN (999): unknown error" },
    { 2,
      "kernel `k` on cuda:1: cuModuleGetFunction gives CUDA_ERROR_UNKNOWN (999): unknown error" },
    { 3, "kernel `k` on cuda:1: cuFuncGetAttribute gives CUDA_ERROR_UNKNOWN (999): unknown error" },
    { 11, "kernel `k` on cuda:1: cuLaunchKernelEx gives CUDA_ERROR_UNKNOWN (999): unknown error" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_kernel *kernel = kernel_of(parse(context, source), "k");
    cuda.calls = 0;
    cuda.fail_at = rows[i].calls + 1;
    cuda.fail_with = CUDA_UNKNOWN;
    kjit_launch_config config = {
      .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .priority = -1
    };
    expect_refused(context, kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_DEVICE,
                   rows[i].message);
    cuda.fail_at = 0;
    expect_ok(context, kjit_launch(kernel, &config, &argument, 1));
  }
  cuda.calls = 0;
  cuda.fail_at = 2;
  expect_refused(context, kjit_synchronize_device(device), KJIT_ERROR_DEVICE,
                 "cuda:1: cuCtxSynchronize gives CUDA_ERROR_UNKNOWN (999): unknown error");
  cuda.fail_at = 0;
  kjit_release_array(vector);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_failure), cmocka_unit_test(test_every_failure_with_unloading),
    cmocka_unit_test(test_every_release), cmocka_unit_test(test_faults),
    cmocka_unit_test_setup_teardown(test_messages, set_up_gpus, tear_down_gpus)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

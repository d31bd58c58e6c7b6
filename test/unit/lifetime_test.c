/* Tests objects that are released after their context has ended, retained contexts, and contexts of
 * objects. In one test, application code destroys a context inside a call on this context. */
#include <kjit/algorithm.h>
#include <kjit/code.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_test.h"

/* ---- one of each kind of object ---- */

typedef struct objects {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module, *linked;
  kjit_kernel *kernel;
  kjit_function *function;
  kjit_builder *builder;
  kjit_stream *stream;
  kjit_event *event;
  kjit_array *array, *view, *exported;
  kjit_graph *graph;
  kjit_executable_graph *executable;
  kjit_prepared *prepared;
  kjit_plan *plan;
  kjit_interrupter *interrupter;
  kjit_managed_tensor *managed;
} objects;

static const char source[] = "kernel add_one(x) {\n"
                             "  for i in grid_range(len(x)) { x[i] = x[i] + 1 }\n"
                             "}\n"
                             "extern func late(a: f32) -> f32\n"
                             "func both(a, b) { return a + late(b) }\n",
                  rest[] = "func late(a: f32) -> f32 { return a }\n";

static void (*in_kernel)(void);

static void run_fake_kernel(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                            uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
  if (in_kernel) in_kernel();
}

static void make_plan(objects *o)
{
  kjit_operand x = kjit_operand_array(o->array), result = kjit_operand_array(o->exported);
  kjit_operator add = kjit_operator_named("add");
  kjit_algorithm_options options = { .size_bytes = sizeof options, .plan = &o->plan };
  expect_ok(o->context, kjit_reduce(o->context, &result, &x, &add, &options));
}

static void make_graph(objects *o)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = o->stream };
  kjit_arg argument = kjit_arg_array(o->array);
  expect_ok(o->context, kjit_launch(o->kernel, &config, &argument, 1)); /* compiles it */
  expect_ok(o->context, kjit_begin_capture(o->stream));
  expect_ok(o->context, kjit_launch(o->kernel, &config, &argument, 1));
  expect_ok(o->context, kjit_end_capture(o->stream, &o->graph));
  expect_ok(o->context, kjit_instantiate_graph(o->graph, &o->executable));
  expect_ok(o->context, kjit_prepare_launch(o->kernel, &config, &argument, 1, &o->prepared));
}

static void make_modules(objects *o)
{
  kjit_module *library = parse(o->context, rest);
  o->module = parse(o->context, source);
  expect_ok(o->context, kjit_link_module(o->module, library, &o->linked));
  kjit_release_module(library); /* the linked module keeps the library alive */
  expect_ok(o->context, kjit_get_kernel(o->linked, "add_one", &o->kernel));
  expect_ok(o->context, kjit_get_function(o->linked, "both", &o->function));
  expect_ok(o->context, kjit_create_builder(o->context, NULL, &o->builder));
}

static objects make_objects(kjit_device_kind kind)
{
  const kjit_array_slice half = { 0, 32, 1 };
  cuda = (fake_driver){ .devices = 1 };
  objects o = { .context = make_gpu_context() };
  fake.kernel = run_fake_kernel;
  o.context->config.interruptible = 1;
  expect_ok(o.context, kjit_get_device(o.context, kind, 0, &o.device));
  make_modules(&o);
  o.array = make_vector(o.device, 64, NULL);
  o.exported = make_vector(o.device, 1, NULL);
  expect_ok(o.context, kjit_slice_array(o.array, &half, 1, &o.view));
  expect_ok(o.context, kjit_create_stream(o.device, &o.stream));
  expect_ok(o.context, kjit_create_event(o.device, &o.event));
  make_graph(&o);
  make_plan(&o);
  expect_ok(o.context, kjit_create_interrupter(o.device, &o.interrupter));
  expect_ok(o.context, kjit_export_dlpack(o.exported, NULL, &o.managed));
  return o;
}

static void delete_managed(kjit_managed_tensor *managed) { managed->deleter(managed); }

/* Every function that releases or destroys an object of the application. */
#define OWNED(X) \
  X(kjit_release_module, module) \
  X(kjit_release_module, linked) \
  X(kjit_destroy_builder, builder) \
  X(kjit_destroy_stream, stream) \
  X(kjit_destroy_event, event) \
  X(kjit_release_array, array) \
  X(kjit_release_array, view) \
  X(kjit_release_array, exported) \
  X(kjit_destroy_graph, graph) \
  X(kjit_destroy_executable_graph, executable) \
  X(kjit_destroy_prepared, prepared) \
  X(kjit_destroy_plan, plan) \
  X(kjit_destroy_interrupter, interrupter) \
  X(delete_managed, managed)

enum {
#define COUNT(release, member) OWNED_##member,
  OWNED(COUNT)
#undef COUNT
    OWNED_COUNT
};

static void release_object(objects *o, int which)
{
  switch (which) {
#define RELEASE(release, member) \
  case OWNED_##member: release(o->member); break;
    OWNED(RELEASE)
#undef RELEASE
  }
}

/* ---- contexts of objects ---- */

#define ASKED(X) \
  X(kjit_get_module_context, module) \
  X(kjit_get_stream_context, stream) \
  X(kjit_get_event_context, event) \
  X(kjit_get_array_context, array) \
  X(kjit_get_array_context, view) \
  X(kjit_get_graph_context, graph) \
  X(kjit_get_executable_graph_context, executable) \
  X(kjit_get_prepared_context, prepared) \
  X(kjit_get_plan_context, plan) \
  X(kjit_get_interrupter_context, interrupter)
#define ASKED_WHILE_IT_LIVES(X) \
  X(kjit_get_device_context, device) \
  X(kjit_get_kernel_context, kernel) \
  X(kjit_get_function_context, function) \
  X(kjit_get_builder_context, builder)

static void test_contexts_of_objects(void **state)
{
  static const kjit_device_kind kinds[] = { KJIT_DEVICE_CPU, KJIT_DEVICE_CUDA };
  (void)state;
  for (int i = 0; i < 2; i++) {
    objects o = make_objects(kinds[i]);
    kjit_specialization *specialization = kjit_get_specialization(o.kernel, 0);
#define EXPECT_TOLD(get, member) \
  assert_ptr_equal(get(o.member), o.context); \
  assert_null(get(NULL));
    ASKED(EXPECT_TOLD)
    ASKED_WHILE_IT_LIVES(EXPECT_TOLD)
#undef EXPECT_TOLD
    assert_non_null(specialization);
    assert_ptr_equal(kjit_get_specialization_context(specialization), o.context);
    assert_null(kjit_get_specialization_context(NULL));
    for (int k = 0; k < OWNED_COUNT; k++) release_object(&o, k);
    assert_int_equal(kjit_destroy_context(o.context), KJIT_OK);
    assert_int_equal(kj_count_remains(), 0);
  }
}

/* ---- releases after the context's end ---- */

/* Only a release is allowed. Any other call returns an error and does not crash. */
static void use_remains(objects *o)
{
  kjit_arg argument = kjit_arg_number(1);
  kjit_array *array;
  kjit_kernel *kernel;
  assert_int_not_equal(kjit_get_kernel(o->module, "add_one", &kernel), KJIT_OK);
  assert_null(kjit_get_kernel_name(o->module, 0));
  assert_int_not_equal(kjit_synchronize_stream(o->stream), KJIT_OK);
  assert_int_not_equal(kjit_record_event(o->event, o->stream), KJIT_OK);
  assert_null(kjit_get_native_event(o->event));
  assert_int_not_equal(kjit_create_array_like(o->array, &array), KJIT_OK);
  assert_int_not_equal(kjit_copy_to_host(o->array, &argument, 4, NULL), KJIT_OK);
  assert_null(kjit_get_tensor(o->array)->data);
  assert_int_not_equal(kjit_launch_graph(o->executable, NULL), KJIT_OK);
  assert_int_equal(kjit_get_graph_size(o->graph), 0);
  assert_int_equal(kjit_get_plan_size(o->plan), 0);
  kjit_interrupt_launches(o->interrupter);
#define EXPECT_NONE(get, member) assert_null(get(o->member));
  ASKED(EXPECT_NONE)
#undef EXPECT_NONE
}

static void release_behind(kjit_device_kind kind, int first, int step)
{
  objects o = make_objects(kind);
  (void)kjit_retain_array(o.array);
  (void)kjit_retain_module(o.linked);
  assert_int_equal(kj_count_remains(), 0);
  assert_int_equal(kjit_destroy_context(o.context), KJIT_OK);
  expect_nothing_left();
  /* builders and exports free their memory themselves */
  assert_int_equal(kj_count_remains(), OWNED_COUNT - 2);
  use_remains(&o);
  for (int i = 0; i < OWNED_COUNT; i++)
    release_object(&o, (first + i * step + OWNED_COUNT) % OWNED_COUNT);
  assert_int_equal(kj_count_remains(), 2);
  assert_ptr_equal(kjit_retain_array(o.array), o.array);
  for (int i = 0; i < 2; i++) kjit_release_array(o.array);
  kjit_release_module(o.linked);
  assert_int_equal(kj_count_remains(), 0);
}

static void test_releases_behind_the_context(void **state)
{
  (void)state;
  for (int first = 0; first < OWNED_COUNT; first += 3) {
    release_behind(KJIT_DEVICE_CPU, first, 1);
    release_behind(KJIT_DEVICE_CUDA, first, 1);
  }
  release_behind(KJIT_DEVICE_CPU, 0, OWNED_COUNT - 1);
  release_behind(KJIT_DEVICE_CUDA, 0, OWNED_COUNT - 1);
}

/* ---- several owners ---- */

static void test_retained_contexts(void **state)
{
  (void)state;
  objects o = make_objects(KJIT_DEVICE_CPU);
  kjit_arg argument = kjit_arg_array(o.array);
  assert_ptr_equal(kjit_retain_context(o.context), o.context);
  assert_ptr_equal(kjit_retain_context(o.context), o.context);
  assert_null(kjit_retain_context(NULL));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(kjit_destroy_context(o.context), KJIT_OK);
    expect_ok(o.context, kjit_launch(o.kernel, NULL, &argument, 1));
  }
  for (int i = 0; i < OWNED_COUNT; i++) release_object(&o, i);
  assert_int_equal(kjit_destroy_context(o.context), KJIT_OK);
  assert_int_equal(kjit_destroy_context(NULL), KJIT_OK);
  assert_int_equal(kj_count_remains(), 0);
}

/* ---- code of the application ---- */

static kjit_context *own;
static int refused, said;

static void destroy_own(void)
{
  static const char message[] =
    "kjit_destroy_context was called from a callback inside another call on this context and would "
    "deadlock; destroy the context after that call has returned";
  assert_int_equal(kjit_destroy_context(own), KJIT_ERROR_MISUSE);
  assert_string_equal(kjit_get_diagnostic(own, 0)->message, message);
  /* one of several owners may release the context */
  assert_ptr_equal(kjit_retain_context(own), own);
  assert_int_equal(kjit_destroy_context(own), KJIT_OK);
  refused++;
}

static void destroy_in_kernel(void)
{
  kjit_context *other;
  destroy_own();
  assert_int_equal(kjit_create_context(NULL, &other), KJIT_OK);
  assert_int_equal(kjit_destroy_context(other), KJIT_OK);
}

static void destroy_in_callback(void *user)
{
  (void)user;
  destroy_own();
}

static void destroy_in_diagnostic(void *user, const kjit_diagnostic *diagnostic)
{
  (void)user, (void)diagnostic;
  said++;
  assert_int_equal(kjit_destroy_context(own), KJIT_ERROR_MISUSE);
}

static void destroy_in_done(void *user, kjit_status status, kjit_specialization *specialization)
{
  (void)specialization;
  assert_int_equal(status, KJIT_OK);
  destroy_own();
  *(_Atomic bool *)user = true;
}

static void destroy_in_progress(void *user, size_t done, size_t count,
                                const kjit_specialize_item *item)
{
  (void)user, (void)done, (void)count, (void)item;
  destroy_own();
}

static void test_code_of_the_host(void **state)
{
  (void)state;
  objects o = make_objects(KJIT_DEVICE_CPU);
  kjit_arg argument = kjit_arg_array(o.array);
  kjit_executable_graph *executable;
  kjit_graph *graph;
  _Atomic bool is_done = false;
  kjit_specialize_item item = { .size_bytes = sizeof item,
                                .kernel = o.kernel,
                                .signature = "f64[:]" };
  own = o.context;
  refused = 0;
  in_kernel = destroy_in_kernel;
  expect_ok(own, kjit_launch(o.kernel, NULL, &argument, 1));
  expect_ok(own, kjit_run_prepared(o.prepared, NULL));
  in_kernel = NULL;
  expect_ok(own, kjit_add_host_callback(o.device, NULL, destroy_in_callback, NULL));
  expect_ok(own, kjit_begin_capture(o.stream));
  expect_ok(own, kjit_add_host_callback(o.device, o.stream, destroy_in_callback, NULL));
  expect_ok(own, kjit_end_capture(o.stream, &graph));
  expect_ok(own, kjit_instantiate_graph(graph, &executable));
  assert_int_equal(refused, 3);
  expect_ok(own, kjit_launch_graph(executable, NULL));
  expect_ok(own, kjit_specialize_async(o.kernel, o.device, "i32[:]", destroy_in_done, &is_done));
  while (!is_done) usleep(1000);
  expect_ok(own, kjit_specialize_all(own, o.device, &item, 1, destroy_in_progress, NULL));
  assert_int_equal(refused, 6);
  own->config.on_diagnostic = destroy_in_diagnostic;
  assert_int_equal(kjit_create_event(o.device, NULL), KJIT_ERROR_MISUSE);
  own->config.on_diagnostic = NULL;
  assert_int_equal(said, 1); /* the failure in the callback is not reported again */
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  for (int i = 0; i < OWNED_COUNT; i++) release_object(&o, i);
  assert_int_equal(kjit_destroy_context(own), KJIT_OK);
  assert_int_equal(kj_count_remains(), 0);
}

/* ---- children ---- */

static int be_child(objects *o, kjit_array *array, kjit_array *remains)
{
  kjit_context *context;
  kjit_module *module;
  alarm(100);
  kjit_release_array(remains);
  kjit_release_array(array);
  if (kjit_destroy_context(o->context) != KJIT_ERROR_FORKED || kj_count_remains()) return 1;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 2;
  if (kjit_parse_module(context, "rest", rest, sizeof rest - 1, &module) != KJIT_OK) return 3;
  if (kjit_destroy_context(context) != KJIT_OK || kj_count_remains() != 1) return 4;
  kjit_release_module(module);
  return kj_count_remains() ? 5 : 0;
}

static void test_children(void **state)
{
  (void)state;
  int status = -1;
  objects gone = make_objects(KJIT_DEVICE_CPU);
  assert_int_equal(kjit_destroy_context(gone.context), KJIT_OK);
  objects o = make_objects(KJIT_DEVICE_CPU);
  pid_t child = fork();
  if (!child) _exit(be_child(&o, o.array, gone.array));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  for (int i = 0; i < OWNED_COUNT; i++) release_object(&gone, i);
  for (int i = 0; i < OWNED_COUNT; i++) release_object(&o, i);
  assert_int_equal(kjit_destroy_context(o.context), KJIT_OK);
  assert_int_equal(kj_count_remains(), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_contexts_of_objects),
                                      cmocka_unit_test(test_releases_behind_the_context),
                                      cmocka_unit_test(test_retained_contexts),
                                      cmocka_unit_test(test_code_of_the_host),
                                      cmocka_unit_test(test_children) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

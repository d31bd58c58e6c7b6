/* Threads that use one context at the same time in all ways: arrays, views, launches, graphs,
 * modules, blobs, the disk cache, failures. The limit of loaded code is so low that kjit unloads
 * code all the time. Each thread gets correct results and its own diagnostics. The test is also
 * intended for the thread sanitizer.
 * RUN: rm -rf %t && %programs/all_at_once %t
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 24, LAST = 4 };

static const char text[] =
  "kernel add(x, a) {\n  for i in grid_range(len(x)) { x[i] = x[i] + a }\n}\n";

static kjit_context *context;
static kjit_device *device;
static kjit_module *shared_module;
static kjit_kernel *add;
static kjit_array *shared_array;
static _Atomic int asked, answered;

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), message ? message : "");
  exit(EXIT_FAILURE);
}
#define REQUIRE(call) require(call, #call)

static void expect(int is_right, const char *what)
{
  if (is_right) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(EXIT_FAILURE);
}

/* Sets x to 0, adds id to x[::2] twice, once in a graph, and checks a copy of the view. */
static void use_arrays(int id, int round)
{
  int64_t length = 100 + round;
  int is_wide = round % 2;
  kjit_array *x, *view, *copy;
  kjit_stream *stream;
  kjit_graph *graph;
  kjit_executable_graph *executable;
  REQUIRE(kjit_create_array(device, is_wide ? KJIT_F64 : KJIT_F32, &length, 1, &x));
  REQUIRE(kjit_slice_array(x, &(kjit_array_slice){ 0, length, 2 }, 1, &view));
  REQUIRE(kjit_create_array_like(view, &copy));
  kjit_arg whole = kjit_arg_array(x), zero = kjit_arg_number(0), to = kjit_arg_array(copy),
           arguments[] = { kjit_arg_array(view), kjit_arg_number(id) };
  REQUIRE(kjit_fill(context, &whole, &zero, NULL));
  REQUIRE(kjit_launch(add, NULL, arguments, 2));
  REQUIRE(kjit_create_stream(device, &stream));
  REQUIRE(kjit_begin_capture(stream));
  REQUIRE(
    kjit_launch(add,
                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .stream = stream },
                arguments, 2));
  REQUIRE(kjit_end_capture(stream, &graph));
  REQUIRE(kjit_instantiate_graph(graph, &executable));
  REQUIRE(kjit_launch_graph(executable, stream));
  REQUIRE(kjit_copy(context, &to, &arguments[0], NULL));
  const void *data = kjit_get_tensor(copy)->data;
  for (int64_t i = 0; i < kjit_get_tensor(copy)->shape[0]; i++)
    expect((is_wide ? ((const double *)data)[i] : ((const float *)data)[i]) == 2 * id,
           "an element of the copy");
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_stream(stream);
  kjit_release_array(copy);
  kjit_release_array(view);
  kjit_release_array(x);
}

static void share_array(void)
{
  kjit_managed_tensor_versioned *managed;
  kjit_array *view;
  REQUIRE(kjit_export_dlpack_versioned(shared_array, NULL, &managed));
  REQUIRE(kjit_reshape_array(shared_array, (int64_t[]){ -1 }, 1, &view));
  managed->deleter(managed);
  kjit_release_array(view);
}

static void take_answer(void *user, kjit_status status, kjit_specialization *specialization)
{
  (void)user, (void)specialization;
  expect(status == KJIT_OK || status == KJIT_NOT_READY,
         "the status of a compilation in the background");
  answered++;
}

static void visit(void *user, const kjit_cache_entry *entry)
{
  *(uint64_t *)user += entry->size_bytes;
}

static void use_module(int id, int round)
{
  char source[160], name[32];
  kjit_module *module;
  kjit_kernel *kernel;
  void *blob;
  size_t size_bytes;
  uint64_t total = 0;
  float data[64] = { 0 };
  int64_t length = 64;
  kjit_tensor tensor = {
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = &length
  };
  kjit_arg argument = kjit_arg_tensor(&tensor);
  snprintf(name, sizeof name, "k%d_%d", id, round);
  snprintf(source, sizeof source,
           "kernel %s(x) {\n  for i in grid_range(len(x)) { x[i] = %d }\n}\n", name, round + 1);
  REQUIRE(kjit_parse_module(context, name, source, strlen(source), &module));
  REQUIRE(kjit_get_kernel(module, name, &kernel));
  REQUIRE(
    kjit_launch(kernel,
                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .device = device },
                &argument, 1));
  expect(data[63] == (float)(round + 1), "what a kernel of a thread's own writes");
  REQUIRE(kjit_export_code(module, &blob, &size_bytes));
  REQUIRE(kjit_import_code(context, blob, size_bytes));
  kjit_free(context, blob);
  asked++;
  REQUIRE(kjit_specialize_async(kernel, device, "i32[:] C", take_answer, NULL));
  REQUIRE(kjit_visit_cache(context, visit, &total));
  if (id == 0) REQUIRE(kjit_trim_cache(context, 10000, NULL, NULL));
  kjit_release_module(module);
}

static void fail(int id)
{
  char source[32];
  kjit_module *module;
  snprintf(source, sizeof source, "unknown%d", id);
  expect(kjit_parse_module(context, source, source, strlen(source), &module) == KJIT_ERROR_SYNTAX,
         "the status of nonsense");
  const kjit_diagnostic *diagnostic = kjit_get_diagnostic(context, 0);
  expect(diagnostic && !strcmp(diagnostic->file, source), "whose diagnostics these are");
}

static void *work(void *user)
{
  int id = (int)(intptr_t)user;
  for (int round = 0; round < ROUNDS; round++) {
    kjit_statistics statistics = { .size_bytes = sizeof statistics };
    kjit_specialization_info info = { .size_bytes = sizeof info };
    use_arrays(id, round);
    share_array();
    if (round % 6 == id % 6) use_module(id, round);
    fail(id);
    kjit_get_statistics(context, &statistics);
    kjit_get_specialization_info(kjit_get_specialization(add, (size_t)(round % 4)), &info);
    expect(!info.signature || strstr(info.signature, "[:]"), "the signature of a specialization");
  }
  return NULL;
}

int main(int argc, char **argv)
{
  kjit_config config = { .size_bytes = sizeof config };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  pthread_t threads[THREADS];
  if (argc > 1) config.cache_directory = argv[1];
  config.cache_limit_bytes = 60000;
  config.code_limit_bytes = 1; /* no loaded code is kept except the running code */
  REQUIRE(kjit_create_context(&config, &context));
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device));
  REQUIRE(kjit_parse_module(context, "shared", text, sizeof text - 1, &shared_module));
  REQUIRE(kjit_get_kernel(shared_module, "add", &add));
  REQUIRE(kjit_create_array(device, KJIT_F32, (int64_t[]){ 10, 10 }, 2, &shared_array));
  for (int i = 0; i < THREADS; i++)
    expect(!pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), "a thread");
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  /* alternates between two types while no other thread runs */
  for (int i = 0; i < LAST; i++) use_arrays(1, i);
  kjit_get_statistics(context, &statistics);
  kjit_destroy_context(context);
  expect(statistics.launches == 2 * (THREADS * ROUNDS + LAST) + (uint64_t)asked,
         "how many launches there were");
  expect(statistics.evictions > 0, "that code was unloaded");
  expect(answered == asked, "that every compilation was answered");
  return EXIT_SUCCESS;
}

/* Plain code on the CPU (kjit_config.plain_code): the first launch runs it, later launches run the
 * best code, and both compute the same bits. The tests check which kernels have plain code, and how
 * a launch waits for the best code. They also cover prepared launches, threads that need the same
 * code, streams that capture, and the disk cache. Compilations fail, and contexts are destroyed
 * early.
 * RUN: rm -rf %t && mkdir %t && env XDG_CACHE_HOME=%t %programs/plain_code %t
 */
#include <kjit/kjit.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

enum { N = 1000, KERNELS = 16, THREADS = 4 };

static const char text[] =
  /* each operation is rounded, so the bits are equal */
  "kernel sums(r, x, y) { for i in grid_range(len(r)) {\n"
  "  var s = y[i]\n  for k in range(9) { s = s + x[(i + k) % len(x)] }\n  r[i] = s } }\n"
  "kernel counts(r, x, y) { for i in grid_range(len(r)) { r[i] = f32(i32(x[i]) * 7 ^ i32(y[i])) } "
  "}\n"
  "kernel roots(r, x, y) { for i in grid_range(len(r)) { r[i] = sqrt(abs(x[i])) / y[i] } }\n"
  "kernel strict(r, x, y) @strict { for i in grid_range(len(r)) { r[i] = x[i] * y[i] + x[i] } }\n"
  /* the best code may round in another way */
  "kernel fused(r, x, y) { for i in grid_range(len(r)) { r[i] = x[i] * y[i] + x[i] } }\n"
  "kernel quarter(r, x, y) { for i in grid_range(len(r)) { r[i] = x[i] / 4 + y[i] } }\n"
  "kernel sines(r, x, y) { for i in grid_range(len(r)) { r[i] = sin(x[i]) } }\n"
  "kernel least(r, x, y) { for i in grid_range(len(r)) { r[i] = min(x[i], y[i]) } }\n"
  "kernel fast(r, x, y) @fastmath { for i in grid_range(len(r)) { r[i] = x[i] + y[i] + x[i] } }\n";

static const char *const equal[] = { "sums", "counts", "roots", "strict" };
static const char *const other[] = { "fused", "quarter", "sines", "least", "fast" };
enum { EQUAL = sizeof equal / sizeof *equal, OTHER = sizeof other / sizeof *other };

/* ---- a context with arrays ---- */

typedef struct world {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_array *r, *x, *y;
  int warnings;
} world;

static float *data_of(kjit_array *array) { return (float *)kjit_get_tensor(array)->data; }

static void note(void *user, const kjit_diagnostic *diagnostic)
{
  world *w = user;
  if (diagnostic->severity == KJIT_SEVERITY_ERROR) fprintf(stderr, "%s\n", diagnostic->message);
  if (diagnostic->severity == KJIT_SEVERITY_WARNING &&
      strstr(diagnostic->message, "launches keep their plain code"))
    w->warnings++;
}

static void open_world(world *w, kjit_config config, const char *source)
{
  const int64_t count = N;
  *w = (world){ 0 };
  config.size_bytes = sizeof config;
  config.on_diagnostic = note;
  config.user = w;
  if (!config.cache_directory) config.cache_directory = "";
  REQUIRE(kjit_create_context(&config, &w->context) == KJIT_OK);
  REQUIRE(kjit_get_device(w->context, KJIT_DEVICE_CPU, 0, &w->device) == KJIT_OK);
  REQUIRE(kjit_parse_module(w->context, "plain", source, strlen(source), &w->module) == KJIT_OK);
  kjit_array **arrays[] = { &w->r, &w->x, &w->y };
  for (int i = 0; i < 3; i++)
    REQUIRE(kjit_create_array(w->device, KJIT_F32, &count, 1, arrays[i]) == KJIT_OK);
  for (int i = 0; i < N; i++) {
    data_of(w->x)[i] = sinf((float)i) * 1000;
    data_of(w->y)[i] = 1 + (float)(i % 17) / 3;
  }
}

static void close_world(world *w)
{
  kjit_release_array(w->r);
  kjit_release_array(w->x);
  kjit_release_array(w->y);
  kjit_release_module(w->module);
  REQUIRE(kjit_destroy_context(w->context) == KJIT_OK);
}

static kjit_kernel *kernel_of(const world *w, const char *name)
{
  kjit_kernel *kernel;
  REQUIRE(kjit_get_kernel(w->module, name, &kernel) == KJIT_OK);
  return kernel;
}

static kjit_status launch(const world *w, const char *name, uint32_t flags, kjit_stream *stream)
{
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = w->device, .flags = flags, .stream = stream
  };
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_array(w->x), kjit_arg_array(w->y) };
  return kjit_launch(kernel_of(w, name), &config, arguments, 3);
}

static uint64_t count_compilations(const world *w)
{
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  REQUIRE(kjit_get_statistics(w->context, &statistics) == KJIT_OK);
  return statistics.compilations;
}

/* The number of launches of plain code and of the best code; -1 means that there is no such
 * code. */
typedef struct usage {
  int64_t plain, best;
} usage;

static usage count_usage(const world *w, const char *name)
{
  usage found = { -1, -1 };
  kjit_specialization *specialization;
  kjit_kernel *kernel = kernel_of(w, name);
  for (size_t i = 0; (specialization = kjit_get_specialization(kernel, i)); i++) {
    kjit_specialization_info info = { .size_bytes = sizeof info };
    REQUIRE(kjit_get_specialization_info(specialization, &info) == KJIT_OK);
    int64_t *count = info.is_plain ? &found.plain : &found.best;
    REQUIRE(*count == -1);
    *count = (int64_t)info.launches;
  }
  return found;
}

/* If the background thread was faster, launches may have run the best code in place of plain code,
 * which was loaded all the same. */
static void expect_usage(const world *w, const char *name, int64_t plain, int64_t best)
{
  usage found = count_usage(w, name);
  bool is_right = (found.plain < 0) == (plain < 0) && (found.best < 0) == (best < 0) &&
                  found.plain <= plain && found.plain + found.best == plain + best;
  if (!is_right)
    fprintf(stderr, "%s: %lld plain, %lld best\n", name, (long long)found.plain,
            (long long)found.best);
  REQUIRE(is_right);
}

/* ---- which kernels have plain code, and its bits ---- */

/* Launches before and after the best code is ready. Returns whether all bits are equal. */
static bool launch_both(const world *w, const char *name)
{
  static float first[N];
  REQUIRE(launch(w, name, 0, NULL) == KJIT_OK);
  memcpy(first, data_of(w->r), sizeof first);
  memset(data_of(w->r), 0, sizeof first);
  REQUIRE(kjit_wait_background(w->context) == KJIT_OK);
  REQUIRE(launch(w, name, 0, NULL) == KJIT_OK);
  return !memcmp(first, data_of(w->r), sizeof first);
}

static void test_equal(void)
{
  world w;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL }, text);
  for (int i = 0; i < EQUAL; i++) {
    REQUIRE(launch_both(&w, equal[i]));
    expect_usage(&w, equal[i], 1, 1);
  }
  REQUIRE(count_compilations(&w) == 2 * EQUAL);
  for (int i = 0; i < OTHER; i++) {
    (void)launch_both(&w, other[i]); /* vectors of sines may end at other elements */
    expect_usage(&w, other[i], -1, 2);
  }
  REQUIRE(count_compilations(&w) == 2 * EQUAL + OTHER && !w.warnings);
  close_world(&w);
}

static void test_always(void)
{
  world w;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_ALWAYS }, text);
  for (int i = 0; i < OTHER; i++) {
    (void)launch_both(&w, other[i]);
    expect_usage(&w, other[i], 1, 1);
  }
  close_world(&w);
}

static void test_never(void)
{
  kjit_context *none;
  for (int kind = KJIT_PLAIN_DEFAULT; kind <= KJIT_PLAIN_NEVER; kind++) {
    world w;
    open_world(&w, (kjit_config){ .plain_code = (kjit_plain_code)kind }, text);
    REQUIRE(launch_both(&w, "sums"));
    expect_usage(&w, "sums", -1, 2);
    close_world(&w);
  }
  kjit_config config = { .size_bytes = sizeof config, .plain_code = (kjit_plain_code)4 };
  REQUIRE(kjit_create_context(&config, &none) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_wait_background(NULL) == KJIT_ERROR_MISUSE);
}

/* Launches after kjit_set_plain_code do not run plain code that an earlier setting allowed. */
static void test_set(void)
{
  world w;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_ALWAYS }, text);
  REQUIRE(launch(&w, "sines", 0, NULL) == KJIT_OK);
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_EQUAL) == KJIT_OK);
  REQUIRE(launch(&w, "sines", 0, NULL) == KJIT_OK);
  expect_usage(&w, "sines", 1, 1);
  REQUIRE(launch(&w, "sums", 0, NULL) == KJIT_OK);
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_NEVER) == KJIT_OK);
  REQUIRE(launch(&w, "sums", 0, NULL) == KJIT_OK);
  expect_usage(&w, "sums", 1, 1);
  close_world(&w);
}

/* ---- launches that need the best code ---- */

static void test_needs_best(void)
{
  world w;
  kjit_status status;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL }, text);
  /* without waiting, launches run the first code that is ready */
  while ((status = launch(&w, "sums", KJIT_LAUNCH_NO_WAIT, NULL)) == KJIT_NOT_READY)
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
  REQUIRE(status == KJIT_OK && kjit_wait_background(w.context) == KJIT_OK);
  REQUIRE(launch(&w, "sums", KJIT_LAUNCH_NO_WAIT, NULL) == KJIT_OK);
  usage found = count_usage(&w, "sums");
  REQUIRE(found.plain >= 0 && found.best >= 1 && found.plain + found.best == 2);
  /* kjit_specialize waits for the best code while launches run the plain code */
  kjit_specialization *best;
  kjit_specialization_info info = { .size_bytes = sizeof info };
  const char *signature = "f32[:] C, f32[:] C, f32[:] C";
  REQUIRE(launch(&w, "roots", 0, NULL) == KJIT_OK);
  REQUIRE(kjit_specialize(kernel_of(&w, "roots"), w.device, signature, &best) == KJIT_OK);
  REQUIRE(kjit_get_specialization_info(best, &info) == KJIT_OK && !info.is_plain);
  REQUIRE(kjit_seal_kernel(kernel_of(&w, "roots")) == KJIT_OK);
  REQUIRE(launch(&w, "roots", 0, NULL) == KJIT_OK);
  expect_usage(&w, "roots", 1, 1);
  /* the background has ended: the calling thread compiles the best code */
  kjit_stop_background(w.context);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  REQUIRE(launch(&w, "counts", 0, NULL) == KJIT_OK);
  expect_usage(&w, "counts", -1, 1);
  close_world(&w);
}

/* A graph and a prepared launch run the best code as soon as it is ready. */
static void test_repeated(void)
{
  world w;
  kjit_stream *stream;
  kjit_graph *captured;
  kjit_executable_graph *graph;
  kjit_prepared *prepared;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL }, text);
  REQUIRE(kjit_create_stream(w.device, &stream) == KJIT_OK);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(launch(&w, "sums", 0, stream) == KJIT_OK);
  REQUIRE(kjit_end_capture(stream, &captured) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(captured, &graph) == KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = w.device };
  kjit_arg arguments[] = { kjit_arg_array(w.r), kjit_arg_array(w.x), kjit_arg_array(w.y) };
  REQUIRE(kjit_prepare_launch(kernel_of(&w, "roots"), &config, arguments, 3, &prepared) == KJIT_OK);
  REQUIRE(kjit_launch_graph(graph, stream) == KJIT_OK &&
          kjit_run_prepared(prepared, NULL) == KJIT_OK);
  REQUIRE(kjit_synchronize_device(w.device) == KJIT_OK);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  const usage before[] = { count_usage(&w, "sums"), count_usage(&w, "roots") };
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_launch_graph(graph, stream) == KJIT_OK);
    REQUIRE(kjit_run_prepared(prepared, NULL) == KJIT_OK);
  }
  REQUIRE(kjit_synchronize_device(w.device) == KJIT_OK);
  expect_usage(&w, "sums", before[0].plain, (before[0].best < 0 ? 0 : before[0].best) + 3);
  expect_usage(&w, "roots", before[1].plain, (before[1].best < 0 ? 0 : before[1].best) + 3);
  kjit_destroy_executable_graph(graph);
  kjit_destroy_graph(captured);
  kjit_destroy_prepared(prepared);
  kjit_destroy_stream(stream);
  close_world(&w);
}

/* ---- threads, the disk, failures, early ends ---- */

typedef struct racer {
  pthread_t thread;
  const world *world;
  pthread_barrier_t *start;
  kjit_array *r;
} racer;

static void *race(void *data)
{
  racer *own = data;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = own->world->device };
  kjit_arg arguments[] = { kjit_arg_array(own->r), kjit_arg_array(own->world->x),
                           kjit_arg_array(own->world->y) };
  for (int i = 0; i < EQUAL; i++) {
    pthread_barrier_wait(own->start);
    for (int k = 0; k < 20; k++)
      REQUIRE(kjit_launch(kernel_of(own->world, equal[i]), &config, arguments, 3) == KJIT_OK);
  }
  return NULL;
}

static void test_threads(void)
{
  const int64_t count = N;
  world w;
  racer racers[THREADS];
  pthread_barrier_t start;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL }, text);
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){ .world = &w, .start = &start };
    REQUIRE(kjit_create_array(w.device, KJIT_F32, &count, 1, &racers[i].r) == KJIT_OK);
    REQUIRE(!pthread_create(&racers[i].thread, NULL, race, &racers[i]));
  }
  for (int i = 0; i < THREADS; i++) pthread_join(racers[i].thread, NULL);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  REQUIRE(count_compilations(&w) == 2 * EQUAL);
  REQUIRE(launch(&w, equal[EQUAL - 1], 0, NULL) == KJIT_OK);
  for (int i = 0; i < THREADS; i++) {
    REQUIRE(!memcmp(data_of(racers[i].r), data_of(w.r), N * sizeof(float)));
    kjit_release_array(racers[i].r);
  }
  pthread_barrier_destroy(&start);
  close_world(&w);
}

/* The disk cache gets the best code only, and a launch prefers it. */
static void test_disk(const char *folder)
{
  world w;
  for (int round = 0; round < 2; round++) {
    open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .cache_directory = folder },
               text);
    REQUIRE(launch(&w, "sums", 0, NULL) == KJIT_OK);
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
    if (round) expect_usage(&w, "sums", -1, 1);
    else expect_usage(&w, "sums", 1, 0);
    REQUIRE(count_compilations(&w) == (round ? 0 : 2));
    close_world(&w);
  }
}

/* Unrolled by the best code only: it exceeds the limit of instructions, and launches keep the plain
 * code, with one warning. */
static void test_failure(void)
{
  static const char source[] =
    "kernel sums(r, x, y) { for i in grid_range(len(r)) {\n  var s = y[i]\n"
    "  for k in range(60) { for j in range(60) { s = s + x[(i + k * j) % len(x)] } }\n"
    "  r[i] = s } }\n";
  kjit_compile_limits limits = { .size_bytes = sizeof limits, .instructions = 700 };
  world w;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .compile_limits = &limits },
             source);
  for (int i = 0; i < 3; i++) {
    REQUIRE(launch(&w, "sums", 0, NULL) == KJIT_OK);
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  }
  expect_usage(&w, "sums", 3, -1);
  REQUIRE(w.warnings == 1);
  close_world(&w);
}

/* Contexts that are destroyed while the best code is compiled or queued; an interrupt ends a
 * compilation, and the next launch starts it again. */
static void test_early_end(void)
{
  world w;
  for (int round = 0; round < 6; round++) {
    kjit_config config = { .plain_code = KJIT_PLAIN_EQUAL, .compile_threads = 1 };
    open_world(&w, config, text);
    for (int i = 0; i < EQUAL; i++) REQUIRE(launch(&w, equal[i], 0, NULL) == KJIT_OK);
    if (round == 5) {
      kjit_interrupt(w.context);
      REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
      for (int i = 0; i < EQUAL; i++) REQUIRE(launch_both(&w, equal[i]));
      for (int i = 0; i < EQUAL; i++) REQUIRE(count_usage(&w, equal[i]).best >= 1);
      REQUIRE(!w.warnings);
    }
    close_world(&w);
  }
}

int main(int argc, char **argv)
{
  REQUIRE(argc == 2);
  test_equal();
  test_always();
  test_never();
  test_set();
  test_needs_best();
  test_repeated();
  test_threads();
  test_disk(argv[1]);
  test_failure();
  test_early_end();
  return 0;
}

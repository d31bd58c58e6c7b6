/* stress cpu|cuda [--seconds N] [--rounds N] [--threads N] [--seed N]
 *
 * Threads that share a context, its kernels, its pool and its loaded code, which is limited to a
 * few specializations. They make launches, prepared launches, captures and graph launches, release
 * arrays that are in use, copy, and pass arrays to other threads with an event. Every array holds
 * base + i * slope, and the thread that reads it knows both numbers.
 * RUN: %programs/stress cpu --rounds 300
 * RUN: %if cuda %{ %programs/stress cuda --rounds 400 %}
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "../seed.h"
#include "stop_at_first.h"

enum { ARRAYS = 8, BOX = 32, CONSTANTS = 40, MOST_THREADS = 64, MOST_COUNT = 6000 };

static const char text[] =
  "kernel start(r, base, slope) { for i in grid_range(len(r)) { r[i] = base + u32(i) * slope } }\n"
  "kernel step(r, x, a, const C) { for i in grid_range(len(r)) { r[i] = x[i] * a + C } }\n"
  "kernel step_in_blocks(r, x, a, const C) @block(128) @grid((len(r) + 127) // 128) {\n"
  "  shared s: u32[128]\n"
  "  let i = blockIdx.x * 128 + threadIdx.x\n"
  "  s[threadIdx.x] = i < len(x) ? x[i] : u32(0)\n"
  "  syncthreads()\n"
  "  if i < len(r) { r[i] = s[threadIdx.x] * a + C }\n"
  "}\n";

typedef struct known_array {
  kjit_array *array;
  int64_t count;
  uint32_t base, slope;
} known_array;

typedef struct actor {
  uint64_t state;
  kjit_stream *stream, *side;
  kjit_event *event;
  known_array arrays[ARRAYS];
  uint64_t operations;
} actor;

/* An array that one thread passes to any other thread. The event is recorded after its last use. */
typedef struct handed_array {
  known_array known;
  kjit_event *event;
} handed_array;

static kjit_device *device;
static kjit_kernel *start, *steps[2];
static pthread_mutex_t box_mutex = PTHREAD_MUTEX_INITIALIZER;
static handed_array box[BOX];
static uint64_t most_rounds = UINT64_MAX, seed;
static time_t last_second;

static uint32_t next_random(actor *self)
{
  uint64_t z = (self->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static known_array create_array(actor *self, int64_t count)
{
  known_array made = { .count = count };
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = device;
  config.element = KJIT_U32;
  config.rank = 1;
  config.shape = &count;
  config.stream = self->stream;
  OK(kjit_create_array_with(&config, &made.array));
  return made;
}

static known_array create_started_array(actor *self)
{
  known_array made = create_array(self, 1 + next_random(self) % MOST_COUNT);
  made.base = next_random(self);
  made.slope = next_random(self);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = self->stream };
  kjit_arg arguments[] = { kjit_arg_array(made.array), kjit_arg_u32(made.base),
                           kjit_arg_u32(made.slope) };
  OK(kjit_launch(start, &config, arguments, 3));
  return made;
}

/* Returns a constant for a kernel. A thread uses a few constants for a while; meanwhile the code
 * for others is unloaded, and loaded again when the thread needs it. */
static uint32_t choose_constant(actor *self)
{
  return (uint32_t)(self->operations / 16 + next_random(self) % 4) % CONSTANTS;
}

/* Fills in the arguments of a step, and updates the expected values. */
static void make_step(actor *self, kjit_arg arguments[4], known_array *to, const known_array *from)
{
  uint32_t a = next_random(self) | 1, c = choose_constant(self);
  arguments[0] = kjit_arg_array(to->array);
  arguments[1] = kjit_arg_array(from->array);
  arguments[2] = kjit_arg_u32(a);
  arguments[3] = kjit_arg_u32(c);
  to->base = from->base * a + c;
  to->slope = from->slope * a;
}

static void launch_step(actor *self, known_array *to, const known_array *from, kjit_stream *stream)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  kjit_arg arguments[4];
  make_step(self, arguments, to, from);
  OK(kjit_launch(steps[next_random(self) % 2], &config, arguments, 4));
}

/* Launches to a temporary array and back, and releases this array while both launches may still be
 * queued. */
static void step_through_temporary(actor *self, known_array *at)
{
  known_array temporary = create_array(self, at->count);
  launch_step(self, &temporary, at, self->stream);
  launch_step(self, at, &temporary, self->stream);
  kjit_release_array(temporary.array);
}

/* Makes the second launch on another stream of the thread, ordered by events, which tell the pool
 * about the order. */
static void step_on_side_stream(actor *self, known_array *at)
{
  known_array temporary = create_array(self, at->count);
  launch_step(self, &temporary, at, self->stream);
  OK(kjit_record_event(self->event, self->stream));
  OK(kjit_wait_event(self->side, self->event));
  launch_step(self, at, &temporary, self->side);
  kjit_release_array(temporary.array);
  OK(kjit_record_event(self->event, self->side));
  OK(kjit_wait_event(self->stream, self->event));
}

static void run_prepared(actor *self, known_array *at)
{
  known_array other = create_array(self, at->count);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = self->stream };
  kjit_arg arguments[4];
  kjit_prepared *prepared;
  make_step(self, arguments, &other, at);
  OK(kjit_prepare_launch(steps[next_random(self) % 2], &config, arguments, 4, &prepared));
  for (uint32_t i = next_random(self) % 4; i > 0; i--) OK(kjit_run_prepared(prepared, NULL));
  OK(kjit_run_prepared(prepared, NULL));
  known_array back = *at;
  make_step(self, arguments, &back, &other);
  for (size_t i = 0; i < 4; i++) OK(kjit_set_prepared_argument(prepared, i, &arguments[i]));
  OK(kjit_run_prepared(prepared, self->stream));
  *at = back;
  kjit_release_array(other.array);
  kjit_destroy_prepared(prepared);
}

/* Captures a step from one array to the other and launches the graph several times, with the same
 * values each time. */
static void replay_graph(actor *self, known_array *at)
{
  known_array other = create_array(self, at->count), middle;
  kjit_graph *graph;
  kjit_executable_graph *executable;
  OK(kjit_begin_capture(self->stream));
  middle = create_array(self, at->count);
  launch_step(self, &middle, at, self->stream);
  launch_step(self, &other, &middle, self->stream);
  kjit_release_array(middle.array);
  OK(kjit_end_capture(self->stream, &graph));
  OK(kjit_instantiate_graph(graph, &executable));
  kjit_destroy_graph(graph);
  for (uint32_t i = next_random(self) % 3; i > 0; i--)
    OK(kjit_launch_graph(executable, self->stream));
  OK(kjit_launch_graph(executable, self->stream));
  launch_step(self, at, &other, self->stream);
  kjit_release_array(other.array);
  kjit_destroy_executable_graph(executable);
}

static void check_values(actor *self, known_array *at)
{
  static _Thread_local uint32_t values[MOST_COUNT];
  OK(kjit_copy_to_host(at->array, values, (size_t)at->count * sizeof *values, self->stream));
  OK(kjit_synchronize_stream(self->stream));
  for (int64_t i = 0; i < at->count; i++) {
    uint32_t expected = at->base + (uint32_t)i * at->slope;
    if (values[i] == expected) continue;
    fprintf(stderr, "seed %llu: element %lld of %lld is %u, not %u\n", (unsigned long long)seed,
            (long long)i, (long long)at->count, values[i], expected);
    fail_at(__FILE__, __LINE__, "values are wrong");
  }
}

/* Puts the array into the box for other threads, and takes another array from the box or creates a
 * new one. */
static void hand_over(actor *self, known_array *at)
{
  handed_array put = { .known = *at }, taken;
  OK(kjit_create_event(device, &put.event));
  OK(kjit_record_event(put.event, self->stream));
  pthread_mutex_lock(&box_mutex);
  handed_array *place = &box[next_random(self) % BOX];
  taken = *place;
  *place = put;
  pthread_mutex_unlock(&box_mutex);
  if (!taken.event) {
    *at = create_started_array(self);
    return;
  }
  OK(kjit_wait_event(self->stream, taken.event));
  kjit_destroy_event(taken.event);
  *at = taken.known;
}

static void replace_array(actor *self, known_array *at)
{
  kjit_release_array(at->array);
  *at = create_started_array(self);
}

static void trim(actor *self, known_array *at)
{
  (void)at;
  if (next_random(self) % 16 == 0) kjit_trim_memory(device, 0);
}

static const struct {
  void (*run)(actor *self, known_array *at);
  uint32_t weight;
} actions[] = {
  { step_through_temporary, 8 }, { step_on_side_stream, 4 },
  { run_prepared, 4 },           { replay_graph, 3 },
  { check_values, 4 },           { hand_over, 4 },
  { replace_array, 4 },          { trim, 1 },
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void run_round(actor *self, uint32_t weights)
{
  uint32_t weight = next_random(self) % weights, action = 0;
  while (weight >= actions[action].weight) weight -= actions[action++].weight;
  actions[action].run(self, &self->arrays[next_random(self) % ARRAYS]);
  self->operations++;
}

static void *run_actor(void *argument)
{
  actor *self = argument;
  uint32_t weights = 0;
  for (uint32_t i = 0; i < ACTIONS; i++) weights += actions[i].weight;
  OK(kjit_create_stream(device, &self->stream));
  OK(kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &self->side));
  OK(kjit_create_event(device, &self->event));
  for (uint32_t i = 0; i < ARRAYS; i++) self->arrays[i] = create_started_array(self);
  while (self->operations < most_rounds && time(NULL) < last_second) run_round(self, weights);
  for (uint32_t i = 0; i < ARRAYS; i++) {
    check_values(self, &self->arrays[i]);
    kjit_release_array(self->arrays[i].array);
  }
  /* the wait for the box covers arrays that were passed to other threads */
  OK(kjit_synchronize_stream(self->stream));
  kjit_destroy_event(self->event);
  kjit_destroy_stream(self->side);
  kjit_destroy_stream(self->stream);
  return NULL;
}

static void empty_box(void)
{
  actor last = { 0 };
  OK(kjit_create_stream(device, &last.stream));
  for (uint32_t i = 0; i < BOX; i++) {
    if (!box[i].event) continue;
    OK(kjit_wait_event(last.stream, box[i].event));
    check_values(&last, &box[i].known);
    kjit_destroy_event(box[i].event);
    kjit_release_array(box[i].known.array);
  }
  kjit_destroy_stream(last.stream);
}

/* When no launch is running, loading new code evicts all code that was loaded before. */
static void push_out_code(void)
{
  actor last = { 0 };
  OK(kjit_create_stream(device, &last.stream));
  known_array known = create_started_array(&last);
  for (uint32_t c = CONSTANTS; c < CONSTANTS + 4; c++) {
    kjit_launch_config config = { .size_bytes = sizeof config, .stream = last.stream };
    kjit_arg arguments[] = { kjit_arg_array(known.array), kjit_arg_array(known.array),
                             kjit_arg_u32(1), kjit_arg_u32(c) };
    OK(kjit_launch(steps[c % 2], &config, arguments, 4));
    known.base += c;
  }
  check_values(&last, &known);
  kjit_release_array(known.array);
  kjit_destroy_stream(last.stream);
}

static void set_up(const char *kind)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.code_limit_bytes = 4 << 10;
  config.cache_directory = "";
  config.variant_limit = 4;
  OK(kjit_create_context(&config, &context));
  OK(kjit_get_device(context, strcmp(kind, "cuda") ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA, 0,
                     &device));
  OK(kjit_parse_module(context, "stress.kir", text, sizeof text - 1, &module));
  start = kernel_of("start");
  steps[0] = kernel_of("step");
  steps[1] = kernel_of("step_in_blocks");
}

int main(int argc, char **argv)
{
  static actor actors[MOST_THREADS];
  static pthread_t threads[MOST_THREADS];
  uint32_t count = 16;
  last_second = time(NULL) + (argc > 2 ? 1 << 30 : 10);
  for (int i = 2; i + 1 < argc; i += 2) {
    uint64_t value = strtoull(argv[i + 1], NULL, 10);
    if (!strcmp(argv[i], "--seconds")) last_second = time(NULL) + (time_t)value;
    else if (!strcmp(argv[i], "--rounds")) most_rounds = value;
    else if (!strcmp(argv[i], "--threads")) count = (uint32_t)value;
    else if (!strcmp(argv[i], "--seed")) seed = value;
    else fail_at(__FILE__, __LINE__, argv[i]);
  }
  if (!seed) seed = kj_draw_seed();
  CHECK(argc > 1 && argc % 2 == 0 && count >= 1 && count <= MOST_THREADS);
  set_up(argv[1]);
  for (uint32_t i = 0; i < count; i++) {
    actors[i].state = (seed << 8) + i;
    CHECK(!pthread_create(&threads[i], NULL, run_actor, &actors[i]));
  }
  uint64_t operations = 0;
  for (uint32_t i = 0; i < count; i++) {
    CHECK(!pthread_join(threads[i], NULL));
    operations += actors[i].operations;
  }
  empty_box();
  push_out_code();
  kjit_memory_statistics memory = { .size_bytes = sizeof memory };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_memory_statistics(device, &memory);
  kjit_get_statistics(context, &statistics);
  CHECK(memory.used_bytes == 0);
  CHECK(statistics.evictions > 0);
  printf("seed %llu: %llu operations of %u threads, %llu launches, %llu evictions, %llu blocks of "
         "memory, %llu of them from the driver\n",
         (unsigned long long)seed, (unsigned long long)operations, count,
         (unsigned long long)statistics.launches, (unsigned long long)statistics.evictions,
         (unsigned long long)memory.allocations, (unsigned long long)memory.driver_allocations);
  kjit_destroy_context(context);
}

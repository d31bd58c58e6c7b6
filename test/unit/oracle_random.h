/* What random programs do: a table of actions on an actor's arrays, streams, events and graphs,
 * each by five random numbers. An action that has nothing to work on does nothing, so that a
 * program stays one when any part of it is left out. */
#ifndef ORACLE_RANDOM_H
#define ORACLE_RANDOM_H

#include "oracle_process.h"

/* Features of a program, so that one without some of them can fail alone. */
typedef enum oracle_feature {
  USES_DEVICES = 1, /* more than one */
  USES_VIEWS = 2,
  USES_COPIES = 4,
  USES_HOST_MEMORY = 8, /* the CPU's arrays, pinned, mapped, managed and shared memory */
  USES_WRAPPED = 16,
  USES_MANY_STREAMS = 32,
  USES_EVENTS = 64,
  USES_CAPTURES = 128,
  USES_HOST_CAPTURES = 256, /* which the program begins by the driver's call */
  USES_DLPACK = 512,
  USES_PROCESSES = 1024,
  USES_RESETS = 2048,
  USES_EVICTIONS = 4096,
  USES_LITTLE_MEMORY = 8192,
  USES_PREPARED = 16384,
  USES_DRIVER_FAILURES = 32768,
  USES_MALLOC_FAILURES = 65536,
  USES_ALLOCATOR = 131072, /* of the host */
  USES_MODULES = 262144,   /* which come and go */
  USES_FAULTS = 524288,
  USES_ALL = 1048575
} oracle_feature;

enum {
  ARRAYS = 12,
  STREAMS = 6,
  EVENTS = 4,
  GRAPHS = 3,
  EXPORTS = 3,
  PREPARED = 2,
  CAPTURES = 2,
  MODULES = 2
};

typedef struct random_prepared {
  kjit_prepared *prepared;
  world_memory *memories[3];
  uint32_t count, device;
} random_prepared;

typedef struct random_capture {
  world_stream *stream; /* NULL: none is under way */
  const struct oracle_capture *capture;
  world_graph graph;
} random_capture;

/* One thread of the program. */
typedef struct random_actor {
  uint32_t features;
  world_array arrays[ARRAYS];
  world_stream streams[STREAMS];
  struct {
    kjit_event *event;
    uint32_t device;
  } events[EVENTS];
  world_graph graphs[GRAPHS];
  world_export exports[EXPORTS];
  random_prepared prepared[PREPARED];
  random_capture captures[CAPTURES];
  kjit_module *modules[MODULES];
  /* what was used by its address, which kjit does not know: until the end */
  uint32_t kept_count;
  world_array kept[8];
  /* of the program's own: what is captured on a wrapped stream, and stays until the graph goes */
  world_stream *hosts;
  uint32_t held_count, hosts_device;
  world_array held[16];
} random_actor;

typedef const uint32_t *random_numbers; /* five */

/* ---- choosing ---- */

static uint32_t pick_device(const random_actor *actor, uint32_t x)
{
  return actor->features & USES_DEVICES ? x % ORACLE_DEVICES : 0;
}

static bool has_blocking_capture(uint32_t device)
{
  pthread_mutex_lock(&oracle.mutex);
  bool has_one = oracle_has_blocking_capture(device);
  pthread_mutex_unlock(&oracle.mutex);
  return has_one;
}

/* NULL is the default stream. false: there is none that may be used for work now. */
static bool pick_stream(random_actor *actor, uint32_t device, uint32_t x, bool is_for_work,
                        kjit_stream **stream)
{
  kjit_stream *found[STREAMS + 2];
  uint32_t count = 0;
  if (device == ORACLE_DEVICES) {
    *stream = NULL;
    return true;
  }
  /* the driver orders the default stream with what is captured, which it refuses */
  if (!is_for_work || !has_blocking_capture(device)) found[count++] = NULL;
  kjit_stream *thread = NULL;
  if (x % 5 == 0 && WORLD_CALL(kjit_get_thread_stream, world.devices[device], &thread) == KJIT_OK)
    found[count++] = thread;
  for (uint32_t i = 0; i < STREAMS; i++)
    if (actor->streams[i].stream && actor->streams[i].device == device)
      found[count++] = actor->streams[i].stream;
  if (count) *stream = found[x / 5 % count];
  return count;
}

static world_array *pick_array(random_actor *actor, uint32_t x)
{
  for (uint32_t i = 0; i < ARRAYS; i++) {
    world_array *array = &actor->arrays[(x + i) % ARRAYS];
    if (array->array) return array;
  }
  return NULL;
}
static world_array *pick_place(random_actor *actor, uint32_t x)
{
  for (uint32_t i = 0; i < ARRAYS; i++) {
    world_array *array = &actor->arrays[(x + i) % ARRAYS];
    if (!array->array) return array;
  }
  return NULL;
}
static const int64_t *pick_shape(uint32_t x)
{
  static const int64_t shapes[][2] = { { 16, 16 }, { 32, 32 }, { 16, 32 } };
  return shapes[x % 3];
}
static world_array *pick_alike(random_actor *actor, const world_array *model, uint32_t x)
{
  const kjit_tensor *tensor = kjit_get_tensor(model->array);
  for (uint32_t i = 0; i < ARRAYS; i++) {
    world_array *array = &actor->arrays[(x + i) % ARRAYS];
    const kjit_tensor *other = kjit_get_tensor(array->array);
    if (other && array != model && !memcmp(other->shape, tensor->shape, 2 * sizeof *other->shape))
      return array;
  }
  return NULL;
}

/* What a launch or copy on the stream is given: a capture there takes note of it. */
static void note_captured(random_actor *actor, uint32_t device, kjit_stream *stream,
                          const world_array *array)
{
  const oracle_stream *native = world_native(device, stream);
  for (uint32_t i = 0; native->capture && i < CAPTURES; i++)
    if (actor->captures[i].capture == native->capture)
      world_keep(&actor->captures[i].graph, array->memory);
  if (actor->hosts && native == actor->hosts->native && actor->held_count < 16) {
    world_array held = { .memory = array->memory };
    held.array = kjit_retain_array(array->array);
    held.memory->references++;
    actor->held[actor->held_count++] = held;
  }
}

static bool is_captured_by_host(const random_actor *actor, const world_stream *stream)
{
  return actor->hosts == stream;
}

/* ---- streams and events ---- */

static void end_hosts_capture(random_actor *actor, uint32_t launches);

static void drop_stream(random_actor *actor, world_stream *stream)
{
  if (is_captured_by_host(actor, stream)) end_hosts_capture(actor, 0);
  for (uint32_t i = 0; i < CAPTURES; i++)
    if (actor->captures[i].stream == stream) actor->captures[i] = (random_capture){ 0 };
  world_destroy_stream(stream);
}

static void do_stream(random_actor *actor, random_numbers x)
{
  world_stream *stream = &actor->streams[x[0] % STREAMS];
  if (stream->stream) drop_stream(actor, stream);
  else
    *stream = world_make_stream(pick_device(actor, x[1]), x[2] & 1,
                                actor->features & USES_WRAPPED && x[3] % 3 == 0);
}

static void do_many_streams(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  if (oracle.stream_count > ORACLE_STREAMS / 2) return;
  for (uint32_t i = 0; i < 55 + x[1] % 8; i++) {
    world_stream stream = world_make_stream(device, x[2] & 1, false);
    world_destroy_stream(&stream);
  }
}

static void do_record(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t i = x[0] % EVENTS, device = pick_device(actor, x[1]);
  if (!actor->events[i].event) {
    actor->events[i].device = device;
    if (WORLD_CALL(kjit_create_event, world.devices[device], &actor->events[i].event) != KJIT_OK)
      actor->events[i].event = NULL;
  }
  if (!actor->events[i].event) return;
  if (x[3] % 8 == 0) {
    WORLD_END(kjit_destroy_event, actor->events[i].event);
    actor->events[i].event = NULL;
  } else if (pick_stream(actor, actor->events[i].device, x[2], true, &stream)) {
    (void)WORLD_CALL(kjit_record_event, actor->events[i].event, stream);
  }
}

static void do_wait_event(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t i = x[0] % EVENTS, device = pick_device(actor, x[1]);
  if (!actor->events[i].event || !pick_stream(actor, device, x[2], true, &stream)) return;
  if (!stream) device = actor->events[i].device;
  if (!stream && has_blocking_capture(device)) return;
  oracle_here.joins = world_native(device, stream);
  oracle_here.may_break = true; /* where an event of outside is waited for */
  (void)WORLD_CALL(kjit_wait_event, stream, actor->events[i].event);
}

static void do_ask_event(random_actor *actor, random_numbers x)
{
  kjit_event *event = actor->events[x[0] % EVENTS].event;
  if (!event) return;
  /* of a capture that the program has begun kjit knows nothing, nor does the program ask then */
  const oracle_event *native = kjit_get_native_event(event);
  pthread_mutex_lock(&oracle.mutex);
  const oracle_capture *capture = native ? oracle_capture_of(native->capture) : NULL;
  bool is_hosts = capture && capture->is_hosts;
  pthread_mutex_unlock(&oracle.mutex);
  if (is_hosts) return;
  if (x[1] & 1) (void)WORLD_CALL(kjit_query_event, event);
  else (void)WORLD_CALL(kjit_synchronize_event, event);
}

static void do_synchronize(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  kjit_stream *stream;
  if (actor->hosts && actor->hosts->device == device) return;
  if (x[1] % 4 == 0) {
    (void)world_synchronize_device(device);
  } else if (pick_stream(actor, device, x[2], true, &stream) && stream) {
    if (x[1] % 4 == 1) (void)WORLD_CALL(kjit_query_stream, stream);
    else (void)world_synchronize(stream, world_native(device, stream));
  }
}

static void ignore(void *user) { (void)user; }
static void do_callback(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t device = pick_device(actor, x[0]);
  if (pick_stream(actor, device, x[1], true, &stream))
    (void)WORLD_CALL(kjit_add_host_callback, world.devices[device], stream, ignore, NULL);
}

/* A thread of the driver gets on by one host function. */
static void do_progress(random_actor *actor, random_numbers x)
{
  (void)actor, (void)x;
  world_begin("a host function");
  pthread_mutex_lock(&oracle.mutex);
  oracle_run_functions(NULL);
  pthread_mutex_unlock(&oracle.mutex);
  (void)world_end(KJIT_OK);
}

/* ---- arrays ---- */

static void do_array(random_actor *actor, random_numbers x)
{
  static const kjit_memory kinds[] = { KJIT_MEMORY_PINNED, KJIT_MEMORY_MAPPED, KJIT_MEMORY_MANAGED,
                                       KJIT_MEMORY_SHARED };
  world_array *array = &actor->arrays[x[0] % ARRAYS];
  kjit_stream *stream;
  uint32_t device = pick_device(actor, x[1]);
  bool is_other = actor->features & USES_HOST_MEMORY && x[3] % 3 == 0;
  if (is_other && x[3] % 2) device = ORACLE_DEVICES;
  if (array->array) {
    world_release_array(array);
  } else if (pick_stream(actor, device, x[2], false, &stream)) {
    kjit_memory kind = is_other ? kinds[x[3] / 6 % 4] : KJIT_MEMORY_DEVICE;
    *array = world_make_array(device, kind, pick_shape(x[4]), stream);
  }
}

static void do_release(random_actor *actor, random_numbers x)
{
  world_array *array = pick_array(actor, x[0]);
  if (array) world_release_array(array);
}

static void do_view(random_actor *actor, random_numbers x)
{
  static const kjit_array_slice slices[][2] = {
    { { 0, 16, 1 }, { 0, 16, 1 } },
    { { 0, 16, 1 }, { 0, 32, 2 } },
    { { 0, 32, 2 }, { 0, 32, 2 } },
    { { 15, -1, -1 }, { 0, 16, 1 } },
  };
  world_array *array = pick_array(actor, x[0]), *place = pick_place(actor, x[1]);
  if (array && place) *place = world_slice(array, slices[x[2] % 4]);
}

static void do_like(random_actor *actor, random_numbers x)
{
  world_array *array = pick_array(actor, x[0]), *place = pick_place(actor, x[1]), made = { 0 };
  if (!array || !place) return;
  const oracle_stream *stream = array->memory->stream;
  /* of a stream that the program has destroyed it could not say what comes first */
  if (stream && stream->is_released) return;
  if (WORLD_CALL(kjit_create_array_like, array->array, &made.array) != KJIT_OK) return;
  /* the one that this thread has now: a reset gives it another one */
  if (stream && stream->thread) stream = world_thread_stream(stream->device);
  made.memory = world_begin_memory(made.array, array->memory->device, stream);
  *place = made;
}

static void do_from(random_actor *actor, random_numbers x)
{
  static float host[32 * 64];
  world_array *place = pick_place(actor, x[0]), made = { 0 };
  uint32_t device = pick_device(actor, x[1]);
  int64_t extents[] = { 16, 16 }, strides[] = { 64, 2 };
  kjit_tensor tensor = { .data = host,
                         .device_type = 1,
                         .rank = 2,
                         .code = 2,
                         .bits = 32,
                         .lanes = 1,
                         .shape = extents,
                         .strides = x[3] & 1 ? strides : NULL };
  kjit_stream *stream;
  if (!place || !pick_stream(actor, device, x[2], true, &stream)) return;
  if (actor->hosts && actor->hosts->device == device) return;
  if (WORLD_CALL(kjit_create_array_from, world.devices[device], &tensor, stream, &made.array) !=
      KJIT_OK)
    return;
  made.memory = world_begin_memory(made.array, device, world_native(device, stream));
  *place = made;
}

/* ---- work ---- */

static void do_launch(random_actor *actor, random_numbers x)
{
  world_array *arrays[3];
  uint32_t count = 1 + x[0] % 3;
  kjit_stream *stream;
  for (uint32_t i = 0; i < count; i++)
    if (!(arrays[i] = pick_array(actor, x[1] >> 8 * i))) return;
  uint32_t device = arrays[0]->memory->device;
  if (device == ORACLE_DEVICES || x[2] % 4 == 0) device = pick_device(actor, x[2] / 4);
  if (!pick_stream(actor, device, x[3], true, &stream)) return;
  for (uint32_t i = 0; i < count; i++) {
    /* the host's memory is copied, and waited for */
    if (actor->hosts && arrays[i]->memory->block->kind != ORACLE_DEVICE) return;
    note_captured(actor, device, stream, arrays[i]);
  }
  (void)world_launch(device, stream, arrays, count);
}

/* Another object for a stream of the program's, for one launch. */
static void do_alias(random_actor *actor, random_numbers x)
{
  const world_stream *stream = &actor->streams[x[0] % STREAMS];
  world_array *array = pick_array(actor, x[1]);
  kjit_stream *alias = NULL;
  if (!stream->stream || !stream->is_wrapped || stream->native->gone || !array) return;
  if (WORLD_CALL(kjit_wrap_stream, world.devices[stream->device], stream->native, &alias) !=
      KJIT_OK)
    return;
  if (!actor->hosts || array->memory->block->kind == ORACLE_DEVICE) {
    note_captured(actor, stream->device, alias, array);
    (void)world_launch(stream->device, alias, &array, 1);
  }
  WORLD_END(kjit_destroy_stream, alias);
}

/* Code that comes and goes, and may still be queued then. */
static void do_module(random_actor *actor, random_numbers x)
{
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  kjit_module **module = &actor->modules[x[0] % MODULES];
  const world_array *array = pick_array(actor, x[1]);
  kjit_kernel *kernel;
  kjit_stream *stream;
  if (*module && x[2] % 3 == 0) {
    WORLD_END(kjit_release_module, *module);
    *module = NULL;
    return;
  }
  if (!*module && WORLD_CALL(kjit_parse_module, world.context, "passing", source, strlen(source),
                             module) != KJIT_OK)
    *module = NULL;
  if (!*module || !array || array->memory->device == ORACLE_DEVICES || actor->hosts) return;
  uint32_t device = array->memory->device;
  if (!pick_stream(actor, device, x[3], true, &stream)) return;
  if (WORLD_CALL(kjit_get_kernel, *module, "passing", &kernel) != KJIT_OK) return;
  note_captured(actor, device, stream, array);
  world_order(array->memory, world_native(device, stream));
  kjit_arg argument = kjit_arg_array(array->array);
  kjit_launch_config config = { .stream = stream, .device = world.devices[device] };
  (void)WORLD_CALL(kjit_launch, kernel, &config, &argument, 1);
}

static void do_fill(random_actor *actor, random_numbers x)
{
  world_array *array = pick_array(actor, x[0]);
  kjit_stream *stream;
  if (!array || !pick_stream(actor, array->memory->device, x[1], true, &stream)) return;
  if (stream) note_captured(actor, array->memory->device, stream, array);
  (void)world_fill(array->memory->device, stream, array);
}

static bool is_on_host(const world_array *array)
{
  return array->memory->device == ORACLE_DEVICES || array->memory->block->kind == ORACLE_PINNED;
}

static void do_copy(random_actor *actor, random_numbers x)
{
  world_array *to = pick_array(actor, x[0]), *from = to ? pick_alike(actor, to, x[1]) : NULL;
  kjit_stream *stream;
  if (!from) return;
  bool is_tos =
    is_on_host(to) == is_on_host(from) ? to->memory->device < ORACLE_DEVICES : !is_on_host(to);
  uint32_t device = is_tos ? to->memory->device : from->memory->device,
           other = is_tos ? from->memory->device : to->memory->device;
  if (device == ORACLE_DEVICES) return;
  if (!pick_stream(actor, device, x[2], true, &stream)) return;
  if (other < ORACLE_DEVICES && has_blocking_capture(other)) return;
  if (actor->hosts && (x[3] & 1 || is_on_host(to) || is_on_host(from) || other != device)) return;
  note_captured(actor, device, stream, to);
  note_captured(actor, device, stream, from);
  (void)world_copy(device, stream, to, from, !(x[3] & 1));
}

/* Between an array and memory of the program's own, of which every other element is meant. The
 * array's address says nothing to kjit of who may still use it. */
static void do_host_copy(random_actor *actor, random_numbers x)
{
  static float host[32 * 64];
  const world_array *array = pick_array(actor, x[0]);
  kjit_stream *stream;
  if (!array || array->memory->device == ORACLE_DEVICES || actor->hosts) return;
  uint32_t device = array->memory->device;
  if (!pick_stream(actor, device, x[1], true, &stream)) return;
  kjit_tensor tensor = *kjit_get_tensor(array->array);
  int64_t strides[] = { 64, 2 };
  bool is_async = x[2] & 1, is_out = x[2] & 2, is_by_address = x[3] % 4 == 0;
  if (is_by_address && actor->kept_count == 8) return;
  tensor.data = host;
  tensor.byte_offset = 0;
  tensor.device_type = KJIT_DEVICE_CPU;
  tensor.strides = x[2] & 4 ? strides : NULL;
  kjit_arg here = kjit_arg_tensor(&tensor),
           there = is_by_address ? kjit_arg_tensor(kjit_get_tensor(array->array))
                                 : kjit_arg_array(array->array);
  if (is_by_address) {
    world_array kept = { .array = kjit_retain_array(array->array), .memory = array->memory };
    kept.memory->references++;
    kept.memory->is_used_by_others = true;
    actor->kept[actor->kept_count++] = kept;
  }
  note_captured(actor, device, stream, array);
  world_order(array->memory, world_native(device, stream));
  world_announce(array);
  const kjit_arg *to = is_out ? &here : &there, *from = is_out ? &there : &here;
  if (is_async) (void)WORLD_CALL(kjit_copy_async, world.context, to, from, stream);
  else (void)WORLD_CALL(kjit_copy, world.context, to, from, stream);
}

static void do_prepare(random_actor *actor, random_numbers x)
{
  random_prepared *prepared = &actor->prepared[x[0] % PREPARED];
  if (prepared->prepared) {
    for (uint32_t i = 0; i < prepared->count; i++) world_drop_memory(prepared->memories[i]);
    WORLD_END(kjit_destroy_prepared, prepared->prepared);
    *prepared = (random_prepared){ 0 };
    return;
  }
  kjit_arg arguments[3];
  uint32_t count = 1 + x[1] % 3;
  for (uint32_t i = 0; i < count; i++) {
    const world_array *array = pick_array(actor, x[2] >> 8 * i);
    /* one of the host's is copied there and back by each run */
    if (!array || (array->memory->device == ORACLE_DEVICES && !i)) return;
    arguments[i] = kjit_arg_array(array->array);
    prepared->memories[i] = array->memory;
  }
  prepared->count = count;
  prepared->device = prepared->memories[0]->device;
  kjit_launch_config config = { .device = world.devices[prepared->device] };
  if (WORLD_CALL(kjit_prepare_launch, world.kernels[count - 1], &config, arguments, count,
                 &prepared->prepared) != KJIT_OK)
    *prepared = (random_prepared){ 0 };
  for (uint32_t i = 0; i < prepared->count; i++) prepared->memories[i]->references++;
}

static void do_run(random_actor *actor, random_numbers x)
{
  random_prepared *prepared = &actor->prepared[x[0] % PREPARED];
  kjit_stream *stream;
  if (!prepared->prepared || !pick_stream(actor, prepared->device, x[1], true, &stream)) return;
  if (actor->hosts || (!stream && has_blocking_capture(prepared->device))) return;
  for (uint32_t i = 0; i < prepared->count; i++) {
    world_array array = { .memory = prepared->memories[i] };
    world_order(array.memory, world_native(prepared->device, stream));
    note_captured(actor, prepared->device, stream, &array);
  }
  (void)WORLD_CALL(kjit_run_prepared, prepared->prepared, stream);
}

/* ---- captures and graphs ---- */

static void do_begin(random_actor *actor, random_numbers x)
{
  random_capture *capture = &actor->captures[x[0] % CAPTURES];
  world_stream *stream = &actor->streams[x[1] % STREAMS];
  if (capture->stream || !stream->stream || stream->native->capture) return;
  if (oracle.is_threaded && stream->native->is_blocking) return;
  if (WORLD_CALL(kjit_begin_capture, stream->stream) != KJIT_OK) return;
  *capture = (random_capture){ .stream = stream, .capture = stream->native->capture };
  capture->graph.device = stream->device;
}

static void do_end(random_actor *actor, random_numbers x)
{
  random_capture *capture = &actor->captures[x[0] % CAPTURES];
  world_graph *graph = &actor->graphs[x[1] % GRAPHS];
  if (!capture->stream) return;
  world_graph made = capture->graph;
  kjit_stream *stream = capture->stream->stream;
  *capture = (random_capture){ 0 };
  if (WORLD_CALL(kjit_end_capture, stream, &made.graph) != KJIT_OK) {
    /* where there was no memory for it, it goes on */
    if (kjit_is_capturing(stream)) (void)WORLD_CALL(kjit_end_capture, stream, &made.graph);
    if (!made.graph) return;
  }
  if (WORLD_CALL(kjit_instantiate_graph, made.graph, &made.executable) != KJIT_OK)
    made.executable = NULL;
  world_destroy_graph(graph);
  *graph = made;
}

static void do_launch_graph(random_actor *actor, random_numbers x)
{
  world_graph *graph = &actor->graphs[x[0] % GRAPHS];
  kjit_stream *stream;
  if (!graph->executable || !pick_stream(actor, graph->device, x[1], true, &stream)) return;
  if (world_native(graph->device, stream)->capture) return;
  (void)world_launch_graph(graph, stream);
}

static void do_update_graph(random_actor *actor, random_numbers x)
{
  world_graph *to = &actor->graphs[x[0] % GRAPHS], *from = &actor->graphs[x[1] % GRAPHS];
  if (!to->executable || !from->graph || to == from) return;
  if (WORLD_CALL(kjit_update_graph, to->executable, from->graph) != KJIT_OK) return;
  for (uint32_t i = 0; i < from->count; i++) world_keep(to, from->memories[i]);
}

static void do_drop_graph(random_actor *actor, random_numbers x)
{
  world_graph *graph = &actor->graphs[x[0] % GRAPHS];
  if (x[1] & 1) {
    world_destroy_graph(graph);
  } else if (graph->graph) {
    WORLD_END(kjit_destroy_graph, graph->graph);
    graph->graph = NULL;
  }
}

/* The program captures a stream that kjit has from it, by the driver's own call, and launches the
 * graph itself, what it uses being alive until it has waited for it. */
static void do_hosts_begin(random_actor *actor, random_numbers x)
{
  enum { RELAXED = 2 };
  world_stream *stream = &actor->streams[x[0] % STREAMS];
  if (actor->hosts || !stream->stream || !stream->is_wrapped || stream->native->capture) return;
  if (stream->native->gone || (oracle.is_threaded && stream->native->is_blocking)) return;
  oracle_here.context = &fake_primary[stream->device];
  oracle_trace("  the program captures %s\n", oracle_stream_text(stream->native));
  if (!oracle_cuStreamBeginCapture(stream->native, RELAXED)) {
    actor->hosts = stream;
    actor->hosts_device = stream->device;
  }
}

static void end_hosts_capture(random_actor *actor, uint32_t launches)
{
  void *graph = NULL, *executable = NULL;
  world_stream *stream = actor->hosts;
  if (!stream) return;
  actor->hosts = NULL;
  oracle_here.context = &fake_primary[actor->hosts_device];
  oracle_trace("  the program's capture ends\n");
  if (!stream->native->gone && !oracle_cuStreamEndCapture(stream->native, &graph) && graph &&
      !oracle_cuGraphInstantiate(&executable, graph, 0)) {
    for (uint32_t i = 0; i < actor->held_count; i++) {
      world_order(actor->held[i].memory, stream->native);
      if (world_is_lost(actor->held[i].memory)) launches = 0;
    }
    for (uint32_t i = 0; i < launches; i++) (void)oracle_cuGraphLaunch(executable, stream->native);
    (void)oracle_cuStreamSynchronize(stream->native);
  }
  for (uint32_t i = 0; i < actor->held_count; i++) world_release_array(&actor->held[i]);
  actor->held_count = 0;
}

static void do_hosts_end(random_actor *actor, random_numbers x)
{
  end_hosts_capture(actor, x[0] % 3);
}

/* ---- other libraries and processes ---- */

static void do_take(random_actor *actor, random_numbers x)
{
  world_array *place = pick_place(actor, x[0]);
  uint32_t device = pick_device(actor, x[1]);
  kjit_stream *stream;
  if (place && pick_stream(actor, device, x[2], false, &stream))
    *place = world_take(device, stream, pick_shape(x[3]));
}

static void do_give(random_actor *actor, random_numbers x)
{
  world_export *given = &actor->exports[x[0] % EXPORTS];
  const world_array *array = pick_array(actor, x[1]);
  kjit_stream *stream;
  if (given->managed) {
    world_take_back(given);
  } else if (array && array->memory->device < ORACLE_DEVICES && !actor->hosts &&
             !array->memory->is_used_by_others &&
             pick_stream(actor, array->memory->device, x[2], true, &stream)) {
    *given = world_give(array, array->memory->device, stream);
  }
}

/* As if another process had made it: a handle says which one. */
static void do_process(random_actor *actor, random_numbers x)
{
  const world_array *array = pick_array(actor, x[0]);
  world_array *place = pick_place(actor, x[1]), made = { 0 };
  kjit_array_handle handle;
  if (!array || !place || actor->hosts || array->memory->is_used_by_others) return;
  if (WORLD_CALL(kjit_export_array, array->array, &handle) != KJIT_OK) return;
  if (array->memory->device == ORACLE_DEVICES) return;
  pthread_mutex_lock(&oracle.mutex);
  oracle_expect_unused(array->memory->block, &oracle.host, "an array is exported to a process");
  pthread_mutex_unlock(&oracle.mutex);
  world_change_process(&handle);
  if (WORLD_CALL(kjit_import_array, world.context, &handle, &made.array) != KJIT_OK) return;
  made.memory =
    world_begin_memory(made.array, array->memory->device, oracle.legacy[array->memory->device]);
  *place = made;
}

/* ---- devices ---- */

static void do_trim(random_actor *actor, random_numbers x)
{
  if (actor->hosts) return;
  WORLD_END(kjit_trim_memory, world.devices[pick_device(actor, x[0])], x[1] % 3 * 1000);
}

static void do_reset(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  if (oracle.is_threaded || (actor->hosts && actor->hosts->device == device)) return;
  world.generations[device]++;
  (void)WORLD_CALL(kjit_reset_device, world.devices[device]);
  for (uint32_t i = 0; i < ORACLE_DEVICES; i++) {
    if (i == device) continue;
    (void)WORLD_CALL(kjit_enable_peer_access, world.devices[device], world.devices[i]);
    (void)WORLD_CALL(kjit_enable_peer_access, world.devices[i], world.devices[device]);
  }
  for (uint32_t i = 0; i < CAPTURES; i++)
    if (actor->captures[i].stream && actor->captures[i].stream->device == device)
      actor->captures[i] = (random_capture){ 0 };
}

/* ---- the table ---- */

typedef struct random_action {
  const char *name;
  void (*run)(random_actor *actor, random_numbers x);
  uint32_t weight, features; /* one of which has to be there; 0: none has to */
} random_action;

static const random_action random_actions[] = {
  { "stream", do_stream, 8, 0 },
  { "many streams", do_many_streams, 1, USES_MANY_STREAMS },
  { "record", do_record, 5, USES_EVENTS },
  { "wait event", do_wait_event, 5, USES_EVENTS },
  { "ask event", do_ask_event, 2, USES_EVENTS },
  { "synchronize", do_synchronize, 3, 0 },
  { "callback", do_callback, 2, USES_EVENTS },
  { "progress", do_progress, 2, 0 },
  { "array", do_array, 16, 0 },
  { "release", do_release, 10, 0 },
  { "view", do_view, 6, USES_VIEWS },
  { "like", do_like, 2, USES_VIEWS },
  { "from", do_from, 2, USES_COPIES },
  { "launch", do_launch, 20, 0 },
  { "alias", do_alias, 3, USES_WRAPPED },
  { "module", do_module, 6, USES_MODULES },
  { "fill", do_fill, 5, USES_COPIES },
  { "copy", do_copy, 10, USES_COPIES },
  { "host copy", do_host_copy, 5, USES_COPIES },
  { "prepare", do_prepare, 3, USES_PREPARED },
  { "run", do_run, 5, USES_PREPARED },
  { "begin", do_begin, 4, USES_CAPTURES },
  { "end", do_end, 4, USES_CAPTURES },
  { "launch graph", do_launch_graph, 5, USES_CAPTURES },
  { "update graph", do_update_graph, 1, USES_CAPTURES },
  { "drop graph", do_drop_graph, 2, USES_CAPTURES },
  { "begin by itself", do_hosts_begin, 4, USES_HOST_CAPTURES },
  { "end by itself", do_hosts_end, 4, USES_HOST_CAPTURES },
  { "take", do_take, 5, USES_DLPACK },
  { "give", do_give, 5, USES_DLPACK },
  { "process", do_process, 4, USES_PROCESSES },
  { "trim", do_trim, 1, 0 },
  { "reset", do_reset, 1, USES_RESETS },
};
enum { RANDOM_ACTIONS = sizeof random_actions / sizeof *random_actions };

#endif

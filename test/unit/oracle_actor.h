/* An actor of a random program: a thread with its operations, its objects, and its choices. */
#ifndef ORACLE_ACTOR_H
#define ORACLE_ACTOR_H

#include "oracle_process.h"

/* Features of a program. A failing program is reduced to the features that it needs to fail. */
typedef enum oracle_feature {
  USES_DEVICES = 1, /* more than one */
  USES_VIEWS = 2,
  USES_COPIES = 4,
  USES_HOST_MEMORY = 8, /* the CPU's arrays, pinned, mapped, managed and shared memory */
  USES_WRAPPED = 16,
  USES_MANY_STREAMS = 32,
  USES_EVENTS = 64,
  USES_CAPTURES = 128,
  USES_HOST_CAPTURES = 256, /* captures that the program begins by the driver's call */
  USES_DLPACK = 512,
  USES_PROCESSES = 1024,
  USES_RESETS = 2048,
  USES_EVICTIONS = 4096,
  USES_LITTLE_MEMORY = 8192,
  USES_PREPARED = 16384,
  USES_DRIVER_FAILURES = 32768,
  USES_MALLOC_FAILURES = 65536,
  USES_ALLOCATOR = 131072, /* of the host */
  USES_MODULES = 262144,   /* modules that are loaded and unloaded */
  USES_FAULTS = 524288,
  SPREADS_FAULTS = 1048576, /* faults spread to the other devices */
  USES_ALL = 2097151
} oracle_feature;

enum {
  ARRAYS = 12,
  STREAMS = 6,
  EVENTS = 4,
  GRAPHS = 3,
  EXPORTS = 3,
  PREPARED = 2,
  CAPTURES = 2,
  MODULES = 2,
  /* maximum number of operations of a program; each of them creates at most one array */
  MOST_HELD = 400
};

typedef struct random_prepared {
  kjit_prepared *prepared;
  world_memory *memories[3];
  uint32_t count, device;
} random_prepared;

typedef struct random_capture {
  world_stream *stream; /* stream of the running capture, or NULL */
  const struct oracle_capture *capture;
  world_graph graph;
} random_capture;

/* One thread of the program. */
/* Host memory for one copy, because two copies must not use the same memory at the same time. */
typedef struct host_memory {
  struct host_memory *next;
  float elements[32 * 64];
} host_memory;

typedef struct random_actor {
  uint32_t features;
  host_memory *host_memory; /* kept until the end of the program */
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
  /* arrays that were passed by their address, so that kjit does not know the use; kept until the
   * end */
  uint32_t kept_count;
  world_array kept[8];
  /* a capture of the program on a wrapped stream; its objects are kept until the graph is
   * destroyed */
  world_stream *hosts;
  uint32_t held_count, hosts_device;
  world_array held[MOST_HELD];
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

/* Chooses a stream; NULL is the default stream. Returns false if no stream may be used for work
 * now. */
static bool pick_stream(random_actor *actor, uint32_t device, uint32_t x, bool is_for_work,
                        kjit_stream **stream)
{
  kjit_stream *found[STREAMS + 2];
  uint32_t count = 0;
  if (device == ORACLE_DEVICES) {
    *stream = NULL;
    return true;
  }
  /* the driver rejects work on the default stream while a blocking stream is captured */
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

static bool is_held(const random_actor *actor, const world_memory *memory)
{
  for (uint32_t i = 0; i < actor->held_count; i++)
    if (actor->held[i].memory == memory) return true;
  return false;
}

/* Notes an array that a launch or copy on the stream uses, if the stream is captured. An array that
 * a graph of the program uses is kept until the graph is destroyed. */
static void note_captured(random_actor *actor, uint32_t device, kjit_stream *stream,
                          const world_array *array)
{
  const oracle_stream *native = world_native(device, stream);
  for (uint32_t i = 0; native->capture && i < CAPTURES; i++)
    if (actor->captures[i].capture == native->capture)
      world_keep(&actor->captures[i].graph, array->memory);
  if (actor->hosts && native == actor->hosts->native && !is_held(actor, array->memory) &&
      actor->held_count < MOST_HELD) {
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

#endif

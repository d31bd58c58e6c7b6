/* Operations of a program of the oracle on its objects: launches, copies, waits, exchange with
 * other libraries and processes, captures and graphs. */
#ifndef ORACLE_CALLS_H
#define ORACLE_CALLS_H

#include "oracle_world.h"

/* ---- work ---- */

static inline kjit_status world_launch(uint32_t device, kjit_stream *stream,
                                       world_array *const *arrays, uint32_t count)
{
  kjit_arg arguments[3];
  oracle_stream *native = world_native(device, stream);
  for (uint32_t i = 0; i < count; i++) {
    world_order(arrays[i]->memory, native);
    arguments[i] = kjit_arg_array(arrays[i]->array);
  }
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = stream,
                                .device = world.devices[device] };
  return WORLD_CALL(kjit_launch, world.kernels[count - 1], &config, arguments, count);
}

static inline kjit_status world_fill(uint32_t device, kjit_stream *stream, const world_array *array)
{
  kjit_arg to = kjit_arg_array(array->array), value = kjit_arg_number(1);
  if (device < ORACLE_DEVICES) world_order(array->memory, world_native(device, stream));
  return WORLD_CALL(kjit_fill, world.context, &to, &value, stream);
}

/* Checks that the work of a call that has returned is done. This cannot be checked if other threads
 * continue to use the stream. */
static inline void world_expect_known(const oracle_clock *clock, const char *what)
{
  pthread_mutex_lock(&oracle.mutex);
  for (uint32_t i = 0; !oracle.is_threaded && i < oracle.stream_count; i++)
    if (clock->at[i] > oracle.host.at[i])
      oracle_violation("%s has returned, and operation %u of %s is not waited for", what,
                       clock->at[i], oracle_stream_text(oracle.streams[i]));
  pthread_mutex_unlock(&oracle.mutex);
}

/* device: the device whose stream orders the copy. */
static inline kjit_status world_copy(uint32_t device, kjit_stream *stream, const world_array *to,
                                     const world_array *from, bool is_async)
{
  kjit_arg there = kjit_arg_array(to->array), here = kjit_arg_array(from->array);
  oracle_stream *native = world_native(device, stream);
  world_order(to->memory, native);
  world_order(from->memory, native);
  /* elements are gathered first on the default stream of this device */
  if (from->memory->device < ORACLE_DEVICES)
    world_order(from->memory, oracle.legacy[from->memory->device]);
  world_announce(to);
  world_announce(from);
  if (is_async) return WORLD_CALL(kjit_copy_async, world.context, &there, &here, stream);
  kjit_status status = WORLD_CALL(kjit_copy, world.context, &there, &here, stream);
  if (status == KJIT_OK) world_expect_known(&native->clock, "kjit_copy");
  return status;
}

static inline kjit_status world_synchronize(kjit_stream *stream, const oracle_stream *native)
{
  oracle_clock clock = native->clock;
  kjit_status status = WORLD_CALL(kjit_synchronize_stream, stream);
  if (status == KJIT_OK) world_expect_known(&clock, "kjit_synchronize_stream");
  return status;
}

static inline kjit_status world_synchronize_device(uint32_t device)
{
  oracle_clock clock = { 0 };
  for (uint32_t i = 0; !oracle.is_threaded && i < oracle.stream_count; i++)
    if (oracle.streams[i]->device == device) oracle_join(&clock, &oracle.streams[i]->clock);
  kjit_status status = WORLD_CALL(kjit_synchronize_device, world.devices[device]);
  if (status == KJIT_OK) world_expect_known(&clock, "kjit_synchronize_device");
  return status;
}

/* ---- DLPack ---- */

/* Memory of another library, which uses the memory on a stream after kjit has returned it. */
typedef struct world_foreign {
  kjit_managed_tensor managed;
  int64_t shape[2];
  world_memory *memory;
  const oracle_stream *stream;
  bool is_deleted;
} world_foreign;

static inline void world_delete(kjit_managed_tensor *self)
{
  world_foreign *foreign = self->manager;
  pthread_mutex_lock(&oracle.mutex);
  oracle_trace("      the deleter of owner %u\n", foreign->memory->owner);
  if (foreign->is_deleted) oracle_violation("a deleter is called twice");
  bool is_taken = foreign->memory->references && !world.is_closing;
  if (is_taken && !world_is_lost(foreign->memory))
    oracle_violation("a deleter is called for memory that an array has");
  foreign->is_deleted = true;
  if (!world_is_lost(foreign->memory)) {
    oracle_clock next = oracle_next(foreign->stream);
    /* the default stream has taken over the order of a destroyed stream */
    if (foreign->stream->is_released) {
      oracle_clock other = oracle_next(oracle.legacy[foreign->memory->device]);
      oracle_join(&next, &other);
    }
    oracle_expect_unused(foreign->memory->block, &next, "memory is given to its deleter");
  }
  pthread_mutex_unlock(&oracle.mutex);
}

static inline world_array world_take(uint32_t device, kjit_stream *stream, const int64_t shape[2])
{
  void *data = NULL;
  world_array made = { 0 };
  world_foreign *foreign = calloc(1, sizeof *foreign);
  oracle_here.context = &fake_primary[device];
  if (!foreign) abort();
  pthread_mutex_lock(&oracle.mutex);
  int result = oracle_allocate((size_t)(shape[0] * shape[1]) * 4, ORACLE_DEVICE, &data);
  pthread_mutex_unlock(&oracle.mutex);
  if (result) return made;
  memcpy(foreign->shape, shape, sizeof foreign->shape);
  foreign->managed = (kjit_managed_tensor){ .tensor = { .data = data,
                                                        .device_type = 2,
                                                        .device_id = (int32_t)device,
                                                        .rank = 2,
                                                        .code = 2,
                                                        .bits = 32,
                                                        .lanes = 1,
                                                        .shape = foreign->shape },
                                            .manager = foreign,
                                            .deleter = world_delete };
  foreign->stream = world_native(device, stream);
  foreign->memory = calloc(1, sizeof *foreign->memory);
  if (!foreign->memory) abort();
  pthread_mutex_lock(&oracle.mutex);
  *foreign->memory = (world_memory){ .block = oracle_find_block(data),
                                     .owner = oracle.owner_count++,
                                     .device = device,
                                     .generation = world.generations[device],
                                     .stream = foreign->stream };
  foreign->memory->ready = oracle_next(foreign->stream);
  foreign->memory->block->owner = foreign->memory->owner;
  foreign->memory->block->is_alive = true;
  pthread_mutex_unlock(&oracle.mutex);
  if (WORLD_CALL(kjit_take_dlpack, world.context, &foreign->managed, stream, &made.array) !=
      KJIT_OK) {
    if (!foreign->is_deleted)
      oracle_violation("kjit_take_dlpack has failed and not called the deleter");
    return (world_array){ 0 };
  }
  oracle_trace("    owner %u, another library's, on %s\n", foreign->memory->owner,
               oracle_stream_text(foreign->stream));
  foreign->memory->references = 1;
  made.memory = foreign->memory;
  return made;
}

/* An array that was exported to a consumer, which uses the array on its stream at once and returns
 * it later. */
typedef struct world_export {
  kjit_managed_tensor *managed;
  world_memory *memory;
} world_export;

static inline world_export world_give(const world_array *array, uint32_t device,
                                      kjit_stream *stream)
{
  world_export made = { .memory = array->memory };
  oracle_stream *native = world_native(device, stream);
  if (WORLD_CALL(kjit_export_dlpack, array->array, stream, &made.managed) != KJIT_OK)
    return (world_export){ 0 };
  pthread_mutex_lock(&oracle.mutex);
  oracle_clock next = oracle_next(native);
  oracle_expect_unused(array->memory->block, &next, "an array is exported");
  oracle_operation operation = { .call = "the consumer's kernel", .count = 1 };
  operation.accesses[0].block = array->memory->block;
  operation.accesses[0].owner = array->memory->owner;
  (void)oracle_queue(native, &operation);
  made.memory->references++;
  pthread_mutex_unlock(&oracle.mutex);
  return made;
}

static inline void world_take_back(world_export *given)
{
  if (!given->managed) return;
  world_drop_memory(given->memory);
  world_begin("the deleter of an export");
  given->managed->deleter(given->managed);
  (void)world_end(KJIT_OK);
  *given = (world_export){ 0 };
}

/* Changes the process in a handle, as if another process had exported the array. */
static inline void world_change_process(kjit_array_handle *handle)
{
  uint64_t word, own = (uint64_t)getpid();
  for (size_t at = 0; at + sizeof word <= sizeof handle->bytes; at += sizeof word) {
    memcpy(&word, handle->bytes + at, sizeof word);
    if (word == own) handle->bytes[at] ^= 1;
  }
}

/* ---- captures and graphs ---- */

/* Makes a graph keep an object that the program has captured. */
static inline void world_keep(world_graph *graph, world_memory *memory)
{
  enum { MOST = sizeof graph->memories / sizeof *graph->memories };
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->memories[i] == memory) return;
  if (graph->count < MOST) graph->memories[graph->count++] = memory;
}

static inline kjit_status world_launch_graph(world_graph *graph, kjit_stream *stream)
{
  oracle_stream *native = world_native(graph->device, stream);
  for (uint32_t i = 0; i < graph->count; i++) world_order(graph->memories[i], native);
  return WORLD_CALL(kjit_launch_graph, graph->executable, stream);
}

static inline void world_destroy_graph(world_graph *graph)
{
  if (graph->graph) WORLD_END(kjit_destroy_graph, graph->graph);
  if (graph->executable) WORLD_END(kjit_destroy_executable_graph, graph->executable);
  *graph = (world_graph){ 0 };
}

#endif

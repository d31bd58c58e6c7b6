/* Actions of random programs on arrays: creation and release, launches, copies, and exchange with
 * other libraries and processes. */
#ifndef ORACLE_MEMORY_ACTIONS_H
#define ORACLE_MEMORY_ACTIONS_H

#include "oracle_actor.h"

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
  /* not the stream of an array if the program has destroyed it: the program could not order its
   * work with such a stream */
  if (stream && stream->is_released) return;
  if (WORLD_CALL(kjit_create_array_like, array->array, &made.array) != KJIT_OK) return;
  /* the thread's present stream, because a reset replaces it */
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
    /* the call copies host memory and waits for the copies */
    if (actor->hosts && arrays[i]->memory->block->kind != ORACLE_DEVICE) return;
    note_captured(actor, device, stream, arrays[i]);
  }
  (void)world_launch(device, stream, arrays, count);
}

/* Wraps a native stream of the program once more, for one launch. */
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

/* Loads code, launches it, and unloads it while the launch may still be queued. */
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
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = stream,
                                .device = world.devices[device] };
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

/* Copies between an array and every second element of the program's own memory. The program passes
 * the array by its address, so kjit does not know its uses. */
static void do_host_copy(random_actor *actor, random_numbers x)
{
  host_memory *host;
  const world_array *array = pick_array(actor, x[0]);
  kjit_stream *stream;
  if (!array || array->memory->device == ORACLE_DEVICES || actor->hosts) return;
  uint32_t device = array->memory->device;
  if (!pick_stream(actor, device, x[1], true, &stream)) return;
  kjit_tensor tensor = *kjit_get_tensor(array->array);
  int64_t strides[] = { 64, 2 };
  bool is_async = x[2] & 1, is_out = x[2] & 2, is_by_address = x[3] % 4 == 0;
  if (is_by_address && actor->kept_count == 8) return;
  if (!(host = calloc(1, sizeof *host))) abort();
  host->next = actor->host_memory;
  actor->host_memory = host;
  tensor.data = host->elements;
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
    /* host arrays are left out, because each run of the graph would copy them to the device and
     * back */
    if (!array || (array->memory->device == ORACLE_DEVICES && !i)) return;
    arguments[i] = kjit_arg_array(array->array);
    prepared->memories[i] = array->memory;
  }
  prepared->count = count;
  prepared->device = prepared->memories[0]->device;
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .device = world.devices[prepared->device] };
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

/* Imports an array as if another process had exported it; the handle contains the process. */
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

#endif

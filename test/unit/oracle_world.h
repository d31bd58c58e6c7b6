/* The objects of a program of the oracle, and its calls of kjit. The program announces each call
 * with its objects to the oracle, which checks the call when it has returned. The program obeys the
 * rules of the public headers, so that each violation is a defect of kjit. */
#ifndef ORACLE_WORLD_H
#define ORACLE_WORLD_H

#include "oracle_driver.h"

#include <malloc.h>

/* ---- malloc, which can fail on request, and free, which the oracle checks ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
int __real_munmap(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);
int __wrap_munmap(void *memory, size_t size);

static bool world_has_memory(void)
{
  bool counts = oracle_here.call && !oracle_here.is_in_driver && oracle_here.fail_malloc_at;
  if (!counts || --oracle_here.fail_malloc_at) return true;
  oracle_trace("      an allocation of the host fails\n");
  return false;
}
void *__wrap_malloc(size_t size) { return world_has_memory() ? __real_malloc(size) : NULL; }
void *__wrap_calloc(size_t count, size_t size)
{
  return world_has_memory() ? __real_calloc(count, size) : NULL;
}
void *__wrap_realloc(void *memory, size_t size)
{
  return world_has_memory() ? __real_realloc(memory, size) : NULL;
}
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
  return world_has_memory() ? __real_aligned_alloc(alignment, size) : NULL;
}

/* Ends the memory of all arrays in a range that is freed. */
static void world_end_memory(void *memory, size_t size, const char *how)
{
  pthread_mutex_lock(&oracle.mutex);
  for (uint32_t i = 0; i < oracle.block_count; i++) {
    oracle_block *block = &oracle.blocks[i];
    if (!block->gone && block->kind == ORACLE_HOST && block->address >= (char *)memory &&
        block->address < (char *)memory + size)
      oracle_end_block(block, how, false);
  }
  pthread_mutex_unlock(&oracle.mutex);
}
void __wrap_free(void *memory)
{
  if (memory && oracle_here.call && !oracle_here.is_in_driver)
    world_end_memory(memory, malloc_usable_size(memory), "free");
  __real_free(memory);
}
int __wrap_munmap(void *memory, size_t size)
{
  if (oracle_here.call && !oracle_here.is_in_driver) world_end_memory(memory, size, "munmap");
  return __real_munmap(memory, size);
}

/* ---- the objects ---- */

/* An owner of memory. The struct exists as long as the process. */
typedef struct world_memory {
  oracle_block *block;
  /* number of the owner; number of the device, or ORACLE_DEVICES for the CPU; generation of the
   * device */
  uint32_t owner, device, generation;
  _Atomic uint32_t references; /* arrays, views and exports of the program */
  /* true if kjit does not know all uses, or if other threads use the memory */
  _Atomic bool is_used_by_others;
  const oracle_stream *stream; /* stream in whose order the memory is allocated, or NULL */
  oracle_clock ready;          /* the operations that must precede its first use */
} world_memory;

typedef struct world_stream {
  kjit_stream *stream;
  oracle_stream *native;
  uint32_t device, generation;
  bool is_wrapped;
} world_stream;

typedef struct world_array {
  kjit_array *array;
  world_memory *memory;
} world_array;

typedef struct world_graph {
  kjit_graph *graph;
  kjit_executable_graph *executable;
  uint32_t device, generation, count;
  world_memory *memories[64];
} world_graph;

typedef struct world_state {
  kjit_context *context;
  kjit_device *devices[ORACLE_DEVICES], *cpu;
  uint32_t generations[ORACLE_DEVICES]; /* counts resets */
  kjit_kernel *kernels[3];              /* kernels with 1, 2 and 3 arrays */
  kjit_module *module;
  bool is_closing;
} world_state;

static world_state world;

/* ---- calls ---- */

/* In programs with several threads, the program begins a capture itself only while no thread is in
 * a call of kjit. Such a call may have asked before whether the stream is captured. */
static pthread_rwlock_t world_calls = PTHREAD_RWLOCK_INITIALIZER;

static void world_begin(const char *name)
{
  if (oracle.is_threaded) pthread_rwlock_rdlock(&world_calls);
  pthread_mutex_lock(&oracle.mutex);
  oracle_here.owner = oracle.owner_count++;
  pthread_mutex_unlock(&oracle.mutex);
  oracle_here.call = name;
  oracle_trace("  %s\n", name);
}
static kjit_status world_end(kjit_status status)
{
  oracle_here.call = NULL;
  oracle_here.host_count = 0;
  oracle_here.joins = NULL;
  oracle_here.may_break = false;
  oracle_here.fail_at = oracle_here.fail_more = oracle_here.fail_malloc_at = 0;
  if (status != KJIT_OK && status != KJIT_NOT_READY)
    oracle_trace("    status %d: %s\n", (int)status, last_message(world.context));
  if (oracle.is_threaded) pthread_rwlock_unlock(&world_calls);
  return status;
}
/* Calls a function of kjit and returns its status. */
#define WORLD_CALL(function, ...) (world_begin(#function), world_end(function(__VA_ARGS__)))
#define WORLD_END(function, ...) (world_begin(#function), function(__VA_ARGS__), world_end(KJIT_OK))

static oracle_stream *world_thread_stream(uint32_t device)
{
  pthread_mutex_lock(&oracle.mutex);
  oracle_stream *stream = oracle_thread_stream(device);
  pthread_mutex_unlock(&oracle.mutex);
  return stream;
}
static oracle_stream *world_native(uint32_t device, const kjit_stream *stream)
{
  void *native = kjit_get_native_stream(stream);
  if (!native) return oracle.legacy[device];
  return (uintptr_t)native == 2 ? world_thread_stream(device) : native;
}

static const char world_source[] =
  "kernel one(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n"
  "kernel two(x, y) {\n  for i in grid_range(x.shape) { x[i] = y[i] }\n}\n"
  "kernel three(x, y, z) {\n  for i in grid_range(x.shape) { x[i] = y[i] + z[i] }\n}\n";

/* The compiler of the tests, whose own allocations never fail. */
static kjit_status world_compile(kj_compiler *compiler, const kj_compile_request *request,
                                 kj_diagnostics *diagnostics, kj_code *code)
{
  oracle_here.is_in_driver = true;
  kjit_status status = fake_compile(compiler, request, diagnostics, code);
  oracle_here.is_in_driver = false;
  return status;
}

/* The application's allocator for arrays. Memory that it gets back is free in the order of a
 * stream, and its next owner does not concern kjit. */
static void *world_give_memory(void *user, kjit_device *device, size_t size_bytes,
                               kjit_stream *stream)
{
  (void)user, (void)stream;
  void *memory = NULL, *before = oracle_here.context;
  bool was_inside = oracle_here.is_in_driver;
  pthread_mutex_lock(&oracle.mutex);
  oracle_here.is_in_driver = true;
  oracle_here.context = device->primary;
  if (oracle_allocate(size_bytes, ORACLE_DEVICE, &memory)) memory = NULL;
  oracle_here.context = before;
  oracle_here.is_in_driver = was_inside;
  pthread_mutex_unlock(&oracle.mutex);
  return memory;
}
static void world_take_memory(void *user, kjit_device *device, void *memory, size_t size_bytes,
                              kjit_stream *stream)
{
  (void)user, (void)size_bytes;
  const oracle_stream *native = world_native((uint32_t)device->info.ordinal, stream);
  pthread_mutex_lock(&oracle.mutex);
  oracle_block *block = oracle_find_block(memory);
  if (block) { /* otherwise the memory was lost with its device */
    oracle_clock next = oracle_next(native);
    oracle_trace("      the host has %s back, on %s\n", oracle_block_text(block),
                 oracle_stream_text(native));
    oracle_expect_unused(block, &next, "memory is given to the host's allocator");
    oracle.memory_bytes[block->device] -= block->size;
    block->use_count = 0;
    oracle_end_block(block, "giving it to the host's allocator", false);
  }
  pthread_mutex_unlock(&oracle.mutex);
}
static const kjit_device_allocator world_allocator = { .size_bytes = sizeof world_allocator,
                                                       .allocate = world_give_memory,
                                                       .release = world_take_memory };

/* code_limit: in bytes; 0: the default. */
static void world_open(uint64_t code_limit, bool has_allocator)
{
  static kj_compiler_interface interface;
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = ORACLE_DEVICES, .stack_bytes = 1024 };
  oracle_here.context = NULL;
  world = (world_state){ .context = make_fake_context() };
  world.context->config.variant_limit = 1; /* no compilation in background threads */
  world.context->config.code_limit_bytes = code_limit;
  if (has_allocator) world.context->config.device_allocator = &world_allocator;
  interface = fake_interface;
  interface.compile = world_compile;
  if (kj_use_compiler(world.context, &interface, &diagnostics) != KJIT_OK ||
      kj_use_driver(world.context, find_oracle, NULL, &diagnostics) != KJIT_OK)
    abort();
  for (int32_t i = 0; i < ORACLE_DEVICES; i++)
    if (kjit_get_device(world.context, KJIT_DEVICE_CUDA, i, &world.devices[i]) != KJIT_OK) abort();
  if (kjit_get_device(world.context, KJIT_DEVICE_CPU, 0, &world.cpu) != KJIT_OK) abort();
  for (int i = 0; i < ORACLE_DEVICES; i++)
    for (int k = 0; k < ORACLE_DEVICES; k++)
      if (i != k && kjit_enable_peer_access(world.devices[i], world.devices[k]) != KJIT_OK) abort();
  world.module = parse(world.context, world_source);
  static const char *const names[] = { "one", "two", "three" };
  for (int i = 0; i < 3; i++) world.kernels[i] = kernel_of(world.module, names[i]);
}

/* Destroys the context, which frees the objects that the program has left, in the right order as
 * well. */
static void world_close(void)
{
  world.is_closing = true;
  for (uint32_t i = 0; i < oracle.block_count; i++) oracle.blocks[i].is_alive = false;
  WORLD_END(kjit_destroy_context, world.context);
}

/* ---- streams ---- */

static world_stream world_make_stream(uint32_t device, uint32_t flags, bool is_wrapped)
{
  world_stream made = { .device = device,
                        .generation = world.generations[device],
                        .is_wrapped = is_wrapped };
  if (is_wrapped) {
    void *native = NULL;
    oracle_here.context = &fake_primary[device];
    if (oracle_cuStreamCreate(&native, flags)) return made;
    (void)WORLD_CALL(kjit_wrap_stream, world.devices[device], native, &made.stream);
    if (!made.stream) (void)oracle_cuStreamDestroy(native);
  } else {
    (void)WORLD_CALL(kjit_create_stream_with, world.devices[device], 0, flags, &made.stream);
  }
  if (made.stream) made.native = kjit_get_native_stream(made.stream);
  if (made.stream)
    oracle_trace("    is %s%s\n", oracle_stream_text(made.native), is_wrapped ? ", wrapped" : "");
  return made;
}

/* Destroys a wrapped native stream after kjit_destroy_stream has returned, as an application
 * does. */
static void world_destroy_stream(world_stream *stream)
{
  if (!stream->stream) return;
  stream->native->is_released = true;
  oracle_here.may_break = true;
  WORLD_END(kjit_destroy_stream, stream->stream);
  stream->stream = NULL;
  if (!stream->is_wrapped || stream->native->gone) return;
  const oracle_capture *capture = stream->native->capture;
  bool can_end = capture && !capture->is_hosts && capture->origin == stream->native &&
                 !oracle.is_faulty[stream->device];
  if (can_end)
    oracle_violation("%s is the program's again while kjit captures it",
                     oracle_stream_text(stream->native));
  oracle_here.context = &fake_primary[stream->device];
  (void)oracle_cuStreamDestroy(stream->native);
}

/* ---- memory ---- */

/* Begins the life of an array's memory in the order of a stream. NULL means memory of the CPU. */
static world_memory *world_begin_memory(kjit_array *array, uint32_t device,
                                        const oracle_stream *stream)
{
  const kjit_tensor *tensor = kjit_get_tensor(array);
  world_memory *memory = calloc(1, sizeof *memory);
  if (!memory) abort();
  pthread_mutex_lock(&oracle.mutex);
  /* captured work has no place in the order of the stream, because it runs when the graph is
   * launched */
  oracle_clock first = stream && !stream->capture ? oracle_next(stream) : oracle.host;
  oracle_block *block = oracle_find_block(tensor->data);
  if (!block && device == ORACLE_DEVICES)
    block = oracle_add_block(tensor->data, (size_t)(tensor->shape[0] * tensor->shape[1]) * 4,
                             ORACLE_HOST, device);
  if (!block) oracle_violation("a new array has memory that the driver has not given");
  if (block->is_alive)
    oracle_violation("a new array has %s, which another array has: owner %u",
                     oracle_block_text(block), block->owner);
  oracle_expect_unused(block, &first, "a new array");
  *memory = (world_memory){ .block = block,
                            .owner = oracle.owner_count++,
                            .device = device,
                            .references = 1,
                            .stream = stream,
                            .ready = first };
  if (device < ORACLE_DEVICES) memory->generation = world.generations[device];
  block->owner = memory->owner;
  block->is_alive = true;
  oracle_trace("    owner %u has %s, on %s\n", memory->owner, oracle_block_text(block),
               stream ? oracle_stream_text(stream) : "the host");
  pthread_mutex_unlock(&oracle.mutex);
  return memory;
}

static bool world_is_lost(const world_memory *memory)
{
  return memory->device < ORACLE_DEVICES && memory->generation != world.generations[memory->device];
}

/* Drops the program's last reference. Graphs of kjit may still keep the memory. */
static void world_drop_memory(world_memory *memory)
{
  if (--memory->references) return;
  pthread_mutex_lock(&oracle.mutex);
  if (memory->block->owner == memory->owner) memory->block->is_alive = false;
  oracle_trace("    owner %u ends\n", memory->owner);
  pthread_mutex_unlock(&oracle.mutex);
}

/* Creates an array. The device ORACLE_DEVICES is the CPU, and the stream NULL is the default
 * stream. */
static world_array world_make_array(uint32_t device, kjit_memory memory, const int64_t shape[2],
                                    kjit_stream *stream)
{
  world_array made = { 0 };
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = device == ORACLE_DEVICES ? world.cpu : world.devices[device];
  config.element = KJIT_F32;
  config.rank = 2;
  config.shape = shape;
  config.memory = memory;
  config.stream = stream;
  if (WORLD_CALL(kjit_create_array_with, &config, &made.array) != KJIT_OK)
    return (world_array){ 0 };
  const oracle_stream *native = device < ORACLE_DEVICES ? world_native(device, stream) : NULL;
  made.memory = world_begin_memory(made.array, device, native);
  return made;
}

static void world_release_array(world_array *array)
{
  if (!array->array) return;
  oracle_trace("    of owner %u\n", array->memory->owner);
  world_drop_memory(array->memory);
  WORLD_END(kjit_release_array, array->array);
  *array = (world_array){ 0 };
}

static world_array world_slice(const world_array *array, const kjit_array_slice slices[2])
{
  world_array made = { .memory = array->memory };
  if (WORLD_CALL(kjit_slice_array, array->array, slices, 2, &made.array) != KJIT_OK)
    return (world_array){ 0 };
  made.memory->references++;
  return made;
}

/* Called before an array is used on a stream. Makes sure that the operations that must precede the
 * first use of the array precede this use, as a program does by its events. For captured streams
 * see world_launch_graph. */
static void world_order(const world_memory *memory, oracle_stream *stream)
{
  pthread_mutex_lock(&oracle.mutex);
  if (!stream->capture) oracle_join(&stream->clock, &memory->ready);
  pthread_mutex_unlock(&oracle.mutex);
}

static void world_announce(const world_array *array)
{
  if (array->memory->block->kind == ORACLE_HOST || array->memory->block->kind == ORACLE_PINNED)
    oracle_here.host[oracle_here.host_count++] = array->memory->block->address;
}

#endif

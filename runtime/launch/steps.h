/* The steps of a launch on the slow path, in the order in which they run, and the functions that
 * the fast path uses as well. See docs/architecture/dispatch.md. */
#ifndef KJ_LAUNCH_STEPS_H
#define KJ_LAUNCH_STEPS_H

#include "code/specialization.h"
#include "memory/order.h"
#include "support/assert.h"
#include "support/host_process.h"

/* Flags that kjit_launch_config.flags may contain. */
enum { KJ_LAUNCH_FLAGS = KJIT_LAUNCH_COOPERATIVE | KJIT_LAUNCH_NO_WAIT | KJIT_LAUNCH_PROGRAMMATIC };
enum { KJ_CALL_ALIGNMENT = 64 }; /* alignment of the call_bytes of memory for a call */

/* Returns whether the launch has its own time limit or interrupter. The fast path does not handle
 * such launches. The slow path rejects them if the context is not interruptible. */
static inline bool kj_has_interrupts(const kjit_launch_config *config)
{
  return config->time_limit_ns || config->interrupter;
}

/* Returns the tensor of an argument that is an array. */
static inline const kjit_tensor *kj_tensor_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor
                                           : &argument->value.array->tensor;
}

/* ---- flatten.c: tuple arguments ---- */

/* Arguments in which each tuple is replaced by its items. */
typedef struct kj_flat_arguments {
  kjit_arg *items; /* NULL if the arguments contain no tuple and are used unchanged */
  size_t count;
} kj_flat_arguments;
static inline bool kj_has_tuples(const kjit_arg *arguments, size_t count)
{
  for (size_t i = 0; arguments && i < count; i++)
    if (arguments[i].kind == KJIT_ARG_TUPLE) return true;
  return false;
}
/* Replaces the tuples among the arguments. The caller frees the items. Errors: ARGUMENT if the
 * arguments do not match the kernel's parameters; MEMORY. */
kjit_status kj_flatten_arguments(const kjit_kernel *kernel, const kjit_arg *arguments, size_t count,
                                 kj_diagnostics *diagnostics, kj_flat_arguments *flat);

/* ---- bind.c, place.c, match.c: arguments and device ---- */

/* Binds the arguments to call->bound. Errors: ARGUMENT, located at the parameter. */
kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count,
                              kj_diagnostics *diagnostics);
/* Binds a tensor: computes its layout, byte range and facts. */
kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics);
/* Chooses the device: the device of the configuration or, if it has none, the arrays' device.
 * Checks that every array can be used there. */
kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics);
/* Rejects the call if the code may write to an array that is read-only. Called if
 * call->has_read_only. Errors: ARGUMENT. */
kjit_status kj_check_writes(const kj_call *call, const kjit_arg *arguments, const kj_code *code,
                            kj_diagnostics *diagnostics);
/* For a sealed kernel: finds the signature that matches the arguments best and adjusts the bound
 * arguments to it. Errors: ARGUMENT. */
kjit_status kj_match_signature(kj_call *call, const kjit_arg *arguments,
                               kj_diagnostics *diagnostics);

/* ---- shape.c, fit.c: grid, block, clusters and dynamic shared memory. shape.c computes the values
 * that the key contains, and fit.c the values that depend on the compiled code ---- */

static inline uint64_t kj_volume(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

/* Returns the size of a one-dimensional grid for `count` elements or threads, if a block handles
 * `share` of them. */
static inline uint32_t kj_count_blocks(const kjit_device *device, uint64_t count, uint64_t share)
{
  uint64_t most = device->info.max_grid[0], blocks;
  KJ_ASSERT(share && most);
  if ((count | share) >> 32) blocks = count / share + (count % share != 0);
  else blocks = (uint32_t)count / (uint32_t)share + ((uint32_t)count % (uint32_t)share != 0);
  return blocks == 0 ? 1 : blocks > most ? (uint32_t)most : (uint32_t)blocks;
}

/* Chooses grid and block. Reads only bound arguments of parameters for which is_shaping is set.
 * Errors: LAUNCH, ARGUMENT, without a report if diagnostics is NULL. */
kjit_status kj_choose_shape(kj_call *call, kj_diagnostics *diagnostics);
/* Chooses the block by occupancy if the call leaves the block to kjit, and reduces a grid that kjit
 * has chosen if a thread handles several elements. Computes the dynamic shared memory, and checks
 * limits. Errors: LAUNCH, DEVICE. */
kjit_status kj_fit_shape(kj_call *call, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics);
/* Reports an error such as "kernel `k`: the launch has 5 blocks, but cuda:0 allows at most 4".
 * what: the noun after the number. whose: the owner of the limit; NULL means the device. */
kjit_status kj_exceed(const kj_call *call, const char *what, uint64_t given, uint64_t limit,
                      const char *whose, kj_diagnostics *diagnostics);
/* Reports LAUNCH with "kernel `k`: ...". If diagnostics is NULL, only returns the status. */
kjit_status kj_refuse_launch(const kj_call *call, kj_location location, kj_diagnostics *diagnostics,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- place.c: host arrays of a launch on a GPU ---- */

typedef struct kj_staging kj_staging;
/* Copies host arrays to the GPU and stores the addresses of the copies in bound->target. */
kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics,
                        kj_staging **staging);
/* Copies written arrays back and waits for the copies. */
kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging,
                         kj_diagnostics *diagnostics);
void kj_free_staging(kj_call *call, kj_staging *staging);

/* ---- limits.c ---- */

static inline bool kj_has_limits(const kj_parameter *parameter)
{
  return parameter->least.type || parameter->most.type;
}
/* Checks that each untyped number of the call fits the types to which the code converts it. Errors:
 * ARGUMENT, located at the conversion. */
kjit_status kj_check_limits(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics);

/* ---- launch.c ---- */

/* Returns the kind of plain code for the context's setting (kjit_set_plain_code). */
kj_plain kj_get_plain_kind(const kjit_context *context);
/* Binds the arguments and chooses device and shape, which determine the key. */
kjit_status kj_shape_call(kj_call *call, const kjit_arg *arguments, size_t count,
                          kj_diagnostics *diagnostics);
/* Does what kj_shape_call does, and then finds or compiles the code. On success the caller holds
 * the specialization. NOT_READY has no report. */
kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization);
/* Write one parameter, or all parameters of the code, from bound arguments. kj_start writes the
 * addresses of tensor maps and of the sink for printed lines. */
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
kjit_status kj_marshal(kj_call *call, const kjit_specialization *specialization,
                       kj_diagnostics *diagnostics);
/* Writes the address of the failure record to the parameter block. */
void kj_pass_failure_record(const kj_code *code, uint64_t address, char *block);
/* Starts a call whose shape is fitted and whose parameters are marshalled. Encodes tensor maps from
 * bound arguments. */
kjit_status kj_start(const kj_call *call, const kjit_specialization *specialization,
                     kj_diagnostics *diagnostics);
/* Fits the shape of a bound call, writes its parameters and starts it. If the launch is on a GPU,
 * host arrays are copied to the GPU before it and back after it. */
kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics);
/* Returns whether the launch has attributes besides grid, block, shared memory and parameters, for
 * example a cluster. */
static inline bool kj_has_attributes(const kj_call *call)
{
  return call->cluster[0] || call->is_cooperative || (call->facts & KJ_CALL_FACT_PROGRAMMATIC) ||
         call->config->priority;
}
/* Describes the launch for the device. stream is a native stream. */
kj_device_launch kj_describe_launch(const kj_call *call, const kjit_specialization *specialization,
                                    void *stream);

/* Attaches the layer to a runtime. */
kjit_status kj_open_launches(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* prepared.c: records a launch instead of running it, for a captured stream on which kjit itself
 * builds the graph (kj_is_recorded). Reports errors to the context. */
kjit_status kj_record_launch(kjit_stream *stream, kjit_kernel *kernel,
                             const kjit_launch_config *config, const kjit_arg *arguments,
                             size_t count);

/* ---- plain launches, which need only shape and parameters ---- */

/* Stores the shape of a call that was fitted. */
void kj_take_shape(kj_known_shape *shape, const kjit_specialization *specialization,
                   const kj_call *call);
/* Continues a launch for which kj_start_plainly has returned an error number: launches again if
 * that is possible, or reports the error. */
kjit_status kj_retry_plainly(const kjit_specialization *specialization, const kj_known_shape *shape,
                             kjit_stream *stream, char *parameters, int result,
                             kj_diagnostics *diagnostics);

static inline bool kj_is_captured(const kjit_stream *stream)
{
  return stream && atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* Returns whether an earlier launch on the device can be repeated: the device was not lost or
 * reset, the process was not forked, and the stream belongs to the device and was not lost with
 * it. */
static inline bool kj_is_usable(const kjit_device *device, uint32_t generation, uint32_t forks,
                                const kjit_stream *stream)
{
  return forks == atomic_load_explicit(&kj_forks, memory_order_relaxed) &&
         generation == atomic_load_explicit(&device->generation, memory_order_relaxed) &&
         !atomic_load_explicit(&device->lost, memory_order_acquire) &&
         (!stream || (stream->object.device == device && stream->object.generation == generation));
}

/* Launches a kernel by a direct call of the driver's launch function, without diagnostics. Returns
 * 0, or an error number, with which the caller calls kj_retry_plainly. The caller holds the
 * specialization. */
static inline int kj_start_plainly(const kjit_specialization *specialization,
                                   const kj_known_shape *shape, kjit_stream *stream,
                                   char *parameters)
{
  const kj_device_code *code = &specialization->device_code;
  const uint32_t *grid = shape->grid, *block = shape->block;
  kjit_device *device = specialization->device;
  void *native = stream ? stream->native : NULL;
  size_t parameter_bytes = shape->parameter_bytes;
  void *block_and_size[] = { (void *)(uintptr_t)KJ_BLOCK_ADDRESS, parameters,
                             (void *)(uintptr_t)KJ_BLOCK_BYTES, &parameter_bytes, NULL };
  KJ_ASSERT(code->function != KJ_UNLOADED && code->mark);
  KJ_ASSERT(kj_is_held_here(specialization));
  KJ_ASSERT(parameter_bytes == specialization->code.parameter_bytes);
  KJ_ASSERT(!stream || kj_has_stream(device, stream));
  kj_assert_alive(device, native);
  kj_mark_launch(device, code->mark, native);
  if (kj_is_elsewhere(device, native)) return KJ_ELSEWHERE;
  return device->start(code->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                       shape->shared_bytes, native, NULL, parameter_bytes ? block_and_size : NULL);
}

/* Ends a public call and passes its diagnostics to the context. NOT_READY, FORKED and success have
 * no report. If memory was exhausted, the error may have no message. */
static inline kjit_status kj_end_launch(kjit_context *context, kjit_status status,
                                        kj_diagnostics *diagnostics)
{
  bool is_told = diagnostics->count || diagnostics->status != KJIT_OK;
  return is_told ? ki_finish_call(context, diagnostics) : status;
}

#endif

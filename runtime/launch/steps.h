/* The steps of a launch in the general way, in their order, and what the learned way uses of them.
 * docs/architecture/dispatch.md */
#ifndef KJ_LAUNCH_STEPS_H
#define KJ_LAUNCH_STEPS_H

#include "code/specialization.h"
#include "cuda/cuda.h"
#include "memory/order.h"
#include "support/assert.h"
#include "support/host_process.h"

/* What kjit_launch_config.flags may have. */
enum { KJ_LAUNCH_FLAGS = KJIT_LAUNCH_COOPERATIVE | KJIT_LAUNCH_NO_WAIT | KJIT_LAUNCH_PROGRAMMATIC };
enum { KJ_CALL_ALIGNMENT = 64 }; /* of kjit_kernel.call_bytes of memory */

/* Whether the launch asks for an interruption of its own. The ways that know a launch
 * by its shape leave such launches to the rules, which refuse them where the context is not
 * interruptible. */
static inline bool kj_has_interrupts(const kjit_launch_config *config)
{
  return config->time_limit_ns || config->interrupter;
}

/* An array argument as a tensor. */
static inline const kjit_tensor *kj_tensor_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor
                                           : &argument->value.array->tensor;
}

/* ---- flatten.c: tuples among the arguments ---- */

/* The items of tuples one after the other, in place of them. */
typedef struct kj_flat_arguments {
  kjit_arg *items; /* NULL: there was no tuple, the arguments are as they were */
  size_t count;
} kj_flat_arguments;
static inline bool kj_has_tuples(const kjit_arg *arguments, size_t count)
{
  for (size_t i = 0; arguments && i < count; i++)
    if (arguments[i].kind == KJIT_ARG_TUPLE) return true;
  return false;
}
/* For arguments that have tuples: makes the items; free them. Errors: ARGUMENT (the kernel's
 * parameters are others), MEMORY. */
kjit_status kj_flatten_arguments(const kjit_kernel *kernel, const kjit_arg *arguments, size_t count,
                                 kj_diagnostics *diagnostics, kj_flat_arguments *flat);

/* ---- bind.c, place.c, match.c: arguments, device ---- */

/* Reads the arguments into call->bound. Errors: ARGUMENT, located at the parameter. */
kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count,
                              kj_diagnostics *diagnostics);
/* Fills bound from a tensor: layout, range, facts. */
kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics);
/* The device of the launch, from the configuration, else from the arrays; then whether every array
 * can be used there. */
kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics);
/* Of a sealed kernel: finds the signature that the arguments match best and makes bound what it
 * has. Errors: ARGUMENT. */
kjit_status kj_match_signature(kj_call *call, const kjit_arg *arguments,
                               kj_diagnostics *diagnostics);

/* ---- shape.c, fit.c: grid, block, clusters, dynamic shared memory. shape.c chooses what is part
 * of the key, fit.c goes on with what only the compiled code knows ---- */

static inline uint64_t kj_volume(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

/* A grid of one dimension for so many elements, or threads that were asked for, of which a block
 * takes `share`. */
static inline uint32_t kj_count_blocks(const kjit_device *device, uint64_t count, uint64_t share)
{
  uint64_t most = device->info.max_grid[0], blocks;
  KJ_ASSERT(share && most);
  if ((count | share) >> 32) blocks = count / share + (count % share != 0);
  else blocks = (uint32_t)count / (uint32_t)share + ((uint32_t)count % (uint32_t)share != 0);
  return blocks == 0 ? 1 : blocks > most ? (uint32_t)most : (uint32_t)blocks;
}

/* Grid and block. Errors: LAUNCH, ARGUMENT. diagnostics NULL: only the kernel's programs are run;
 * LAUNCH, without a word, where they do not tell or the launch is to be refused. */
kjit_status kj_choose_shape(kj_call *call, kj_diagnostics *diagnostics);
/* Chooses the block where occupancy counts, makes a chosen grid smaller where a thread takes
 * several elements, sizes dynamic shared memory, checks limits. Errors: LAUNCH, DEVICE. */
kjit_status kj_fit_shape(kj_call *call, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics);
/* "kernel `k`: the launch has 5 what, whose allows 4"; whose NULL: the device. */
kjit_status kj_exceed(const kj_call *call, const char *what, uint64_t given, uint64_t limit,
                      const char *whose, kj_diagnostics *diagnostics);
/* LAUNCH: "kernel `k`: ..."; diagnostics NULL: nobody is told. */
kjit_status kj_refuse_launch(const kj_call *call, kj_location location, kj_diagnostics *diagnostics,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Value `index` of programs that were made of expr, for a block or NULL. False: the rules have to
 * be asked. */
bool kj_evaluate_quickly(const kj_call *call, const kj_programs *programs, uint32_t index,
                         const ki_expr *expr, const uint32_t *block, int64_t *value);

/* ---- place.c: host arrays of a launch on a GPU ---- */

typedef struct kj_staging kj_staging;
/* Copies host arrays to the GPU and points bound->target there; NULL staging: none. The device's
 * context is current. */
kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics,
                        kj_staging **staging);
/* Waits, copies back what was written. */
kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging,
                         kj_diagnostics *diagnostics);
void kj_free_staging(kj_call *call, kj_staging *staging);

/* ---- limits.c ---- */

static inline bool kj_has_limits(const kj_parameter *parameter)
{
  return parameter->least.type || parameter->most.type;
}
/* Whether the plain numbers of the call fit the types that the code converts them to. Errors:
 * ARGUMENT, located where the number meets the type. */
kjit_status kj_check_limits(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics);

/* ---- launch.c ---- */

/* Binds, places and shapes the call: all that its key is made of. */
kjit_status kj_shape_call(kj_call *call, const kjit_arg *arguments, size_t count,
                          kj_diagnostics *diagnostics);
/* The same, and finds its code, or compiles it; held. NOT_READY reports
 * nothing. */
kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization);
/* Writes one parameter, or all that the code has, from bound arguments. Addresses of tensor maps
 * and of lines that are printed are written when the launch is started. */
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
kjit_status kj_marshal(kj_call *call, const kjit_specialization *specialization,
                       kj_diagnostics *diagnostics);
/* Where a thread that fails leaves word of it. */
void kj_pass_failure_record(const kj_code *code, uint64_t address, char *block);
/* Starts a call that fits its code and whose parameters are marshalled. Tensor maps are encoded
 * from bound arguments. */
kjit_status kj_start(const kj_call *call, const kjit_specialization *specialization,
                     kj_diagnostics *diagnostics);
/* Fits, marshals and starts a call that is bound, and copies host arrays to a GPU and back. */
kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics);
/* Grid, block and all else, for the device; stream: its native one. */
kj_device_launch kj_describe_launch(const kj_call *call, const kjit_specialization *specialization,
                                    void *stream);

/* The layer's part of a runtime. */
kjit_status kj_open_launches(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* prepared.c: a launch on a stream of which kjit itself makes the graph (kj_is_recorded) is kept,
 * not run. Ends the call: the context has the diagnostics. */
kjit_status kj_record_launch(kjit_stream *stream, kjit_kernel *kernel,
                             const kjit_launch_config *config, const kjit_arg *arguments,
                             size_t count);

/* ---- plain launches: of code whose launch has nothing beside its shape and parameters ---- */

/* The shape of the call, which was fitted. */
void kj_take_shape(kj_known_shape *shape, const kjit_specialization *specialization,
                   const kj_call *call);
/* The driver has refused the launch with a CUresult. */
kjit_status kj_retry_plainly(const kjit_specialization *specialization, const kj_known_shape *shape,
                             kjit_stream *stream, char *parameters, int result,
                             kj_diagnostics *diagnostics);

static inline bool kj_is_captured(const kjit_stream *stream)
{
  return stream && atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* What may have changed since an earlier launch: the device was lost or reset, the process is a
 * child, the stream is another device's or was lost with it. */
static inline bool kj_is_usable(const kjit_device *device, uint32_t generation, uint32_t forks,
                                const kjit_stream *stream)
{
  return forks == atomic_load_explicit(&kj_forks, memory_order_relaxed) &&
         generation == atomic_load_explicit(&device->generation, memory_order_relaxed) &&
         !atomic_load_explicit(&device->lost, memory_order_acquire) &&
         (!stream || (stream->object.device == device && stream->object.generation == generation));
}

/* The shortest call of the driver; gives its CUresult. The specialization is held. */
static inline int kj_start_plainly(const kjit_specialization *specialization,
                                   const kj_known_shape *shape, kjit_stream *stream,
                                   char *parameters)
{
  enum { BUFFER_POINTER = 1, BUFFER_SIZE = 2 };
  const kj_device_code *code = &specialization->cuda;
  const uint32_t *grid = shape->grid, *block = shape->block;
  kjit_device *device = specialization->device;
  void *native = stream ? stream->native : NULL;
  size_t parameter_bytes = shape->parameter_bytes;
  void *block_and_size[] = { (void *)(uintptr_t)BUFFER_POINTER, parameters,
                             (void *)(uintptr_t)BUFFER_SIZE, &parameter_bytes, NULL };
  KJ_ASSERT(code->function != KJ_UNLOADED && code->mark);
  KJ_ASSERT(kj_is_held_here(specialization));
  KJ_ASSERT(parameter_bytes == specialization->code.parameter_bytes);
  KJ_ASSERT(!stream || kj_has_stream(device, stream));
  kj_assert_alive(device, native);
  kj_mark_launch(device, code->mark, native);
  if (kj_is_elsewhere(device, native)) return KJ_CU_INVALID_CONTEXT;
  return device->driver->cuLaunchKernel(code->function, grid[0], grid[1], grid[2], block[0],
                                        block[1], block[2], shape->shared_bytes, native, NULL,
                                        parameter_bytes ? block_and_size : NULL);
}

/* A call ends: the context has what it reports. Nothing: NOT_READY and FORKED, or all is well. An
 * error for whose message there was no memory has a status only. */
static inline kjit_status kj_end_launch(kjit_context *context, kjit_status status,
                                        kj_diagnostics *diagnostics)
{
  bool is_told = diagnostics->count || diagnostics->status != KJIT_OK;
  return is_told ? ki_finish_call(context, diagnostics) : status;
}

#endif

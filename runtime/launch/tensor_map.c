/* Descriptors of array arguments for tensor copies: the driver encodes them, they are passed in the
 * parameter block. */
#include <string.h>

#include "code/dispatch.h"

static kjit_status refuse(const kj_call *call, const kj_tensor_map *map, const char *why,
                          kj_diagnostics *diagnostics)
{
  const ki_function *kernel = call->kernel->function;
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "launching `%s`: argument `%s` is copied by tensor copies: %s",
                  kernel->decl->name, kernel->params.items[map->argument]->name, why);
}

/* The driver's CUtensorMapDataType by the bits that a copy moves, but for floats, whose type a fill
 * or a reduction would look at. */
static int data_type(kjit_type type, uint32_t size_bytes)
{
  enum { U8, U16, U32, I32, U64, I64, F16, F32, F64, BF16 };
  static const struct {
    kjit_type type;
    int number;
  } floats[] = { { KJIT_F16, F16 }, { KJIT_BF16, BF16 }, { KJIT_F32, F32 }, { KJIT_F64, F64 } };
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (floats[i].type == type) return floats[i].number;
  return size_bytes == 1 ? U8 : size_bytes == 2 ? U16 : size_bytes == 4 ? U32 : U64;
}

static int swizzle_of(uint32_t bytes)
{
  enum { NONE, BY_32, BY_64, BY_128 };
  return bytes == 32 ? BY_32 : bytes == 64 ? BY_64 : bytes == 128 ? BY_128 : NONE;
}

static kjit_status encode(const kj_call *call, const kj_tensor_map *map, void *place,
                          kj_diagnostics *diagnostics)
{
  enum { UNIT = 16, PROMOTE_256 = 3 };
  const kj_bound *bound = &call->bound[map->argument];
  kjit_type element = bound->type;
  uint32_t size = ki_type(call->kernel->module->types, element)->size_bytes, rank = map->rank;
  uint64_t extents[KJ_MAP_RANK], strides[KJ_MAP_RANK];
  uint32_t box[KJ_MAP_RANK], steps[KJ_MAP_RANK];
  if (!call->device->driver->cuTensorMapEncodeTiled)
    return refuse(call, map, "the driver has none; they need one of CUDA 12.0", diagnostics);
  if (bound->target % UNIT)
    return refuse(call, map, "its data does not start at a multiple of 16 bytes", diagnostics);
  for (uint32_t d = 0; d < rank; d++) { /* the driver counts dimensions from the innermost one */
    uint32_t own = rank - 1 - d;
    extents[d] = (uint64_t)bound->shape[own];
    box[d] = map->box[own];
    steps[d] = 1;
    if (!extents[d]) return refuse(call, map, "it is empty", diagnostics);
    if (extents[d] > UINT32_MAX)
      return refuse(call, map, "a dimension of it is longer than 2^32 elements", diagnostics);
    if (d == 0) continue;
    strides[d - 1] = (uint64_t)kj_stride_of(bound, (uint8_t)own) * size;
    if (strides[d - 1] % UNIT)
      return refuse(call, map, "its rows do not start at multiples of 16 bytes", diagnostics);
  }
  int result =
    call->device->driver->cuTensorMapEncodeTiled(place, data_type(element, size), rank,
                                                 (void *)(uintptr_t)bound->target, extents, strides,
                                                 box, steps, 0, swizzle_of(map->swizzle_bytes),
                                                 PROMOTE_256, 0);
  return result ? kj_check_driver(call->device->driver, call->device, result,
                                  "cuTensorMapEncodeTiled", diagnostics)
                : KJIT_OK;
}

/* The driver wants the descriptor at a multiple of 64 bytes, which the parameter block is not. */
static kjit_status pass_maps(const kj_call *call, const kj_code *code, char *block,
                             kj_diagnostics *diagnostics)
{
  _Alignas(KJ_MAP_ALIGNMENT) char map[KJ_MAP_BYTES];
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_TENSOR_MAP) continue;
    KJ_TRY(encode(call, &code->tensor_maps[parameter->dimension], map, diagnostics));
    memcpy(block + parameter->offset, map, sizeof map);
  }
  return KJIT_OK;
}

enum { MOST_POINTERS = 512, HIDDEN = 1 };

/* Where a parameter of 64-byte alignment lies depends on the architecture: on sm_90 the block
 * itself starts 16 bytes beyond such a place. So the driver is handed each parameter's address and
 * puts them where they belong. The one of failures comes last. */
static void point_at_parameters(const kj_code *code, char *block, void **pointers)
{
  uint32_t count = code->parameter_count;
  for (uint32_t i = 0; i < count; i++) pointers[i] = block + code->parameters[i].offset;
  if (code->failures) pointers[count] = block + code->failure_offset;
}

kjit_status kj_launch_with_maps(const kj_call *call, const kjit_specialization *specialization,
                                kj_cuda_launch *launch, kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  void *pointers[MOST_POINTERS + HIDDEN];
  if (code->parameter_count > MOST_POINTERS)
    return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                    "launching `%s`: a kernel with tensor copies has at most %d parameters in its "
                    "code, this one %u",
                    call->kernel->function->decl->name, MOST_POINTERS, code->parameter_count);
  KJ_TRY(pass_maps(call, code, call->parameters, diagnostics));
  point_at_parameters(code, call->parameters, pointers);
  launch->pointers = pointers;
  kjit_status status = kj_launch_cuda(call->device, &specialization->cuda, launch, diagnostics);
  launch->pointers = NULL;
  return status;
}

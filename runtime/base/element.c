/* Converts between kjit's element types and their description in DLPack, and computes element
 * sizes. DLPack supports scalars and vectors. A struct or pointer is opaque: it has one 8-bit lane
 * for each byte, and the application specifies its type. */
#include <math.h>

#include "base/runtime.h"

enum { DLPACK_OPAQUE = 3, DLPACK_BITS_OF_BYTE = 8 };

uint32_t kj_element_bytes(const ki_types *types, kjit_type type)
{
  return ki_type(types, type)->size_bytes;
}

uint32_t kj_element_alignment(const ki_types *types, kjit_type type)
{
  const ki_type_info *info = ki_type(types, type);
  if (info->class_ == KJ_CLASS_COMPLEX) return info->size_bytes / 2;
  uint32_t alignment = ki_alignment(types, type);
  KJ_ASSERT(alignment && (alignment & (alignment - 1)) == 0);
  return alignment;
}

kjit_type kj_type_of_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type given)
{
  if (given != KJIT_ANY) return ki_is_element(types, given) ? given : KJIT_ANY;
  kjit_type lane = kj_type_of_dlpack(tensor->code, tensor->bits);
  if (lane == KJIT_ANY || tensor->lanes == 1) return lane;
  bool is_vector = tensor->lanes == 2 || tensor->lanes == 3 || tensor->lanes == 4 ||
                   tensor->lanes == 8 || tensor->lanes == 16;
  return is_vector && ki_type(types, lane)->class_ != KJ_CLASS_COMPLEX
           ? ki_intern_vector(types, lane, tensor->lanes)
           : KJIT_ANY;
}

void kj_describe_element(const ki_types *types, kjit_type element, kjit_tensor *tensor)
{
  static const struct {
    uint8_t code, bits;
  } dlpack[KJIT_SCALAR_COUNT] = {
#define KJIT_ROW(name, text, size, class_, code, bits) [KJIT_##name] = { code, bits },
#include <kjit/types.def>
#undef KJIT_ROW
  };
  const ki_type_info *info = ki_type(types, element);
  bool is_vector = info->class_ == KJ_CLASS_VECTOR;
  kjit_type lane = is_vector ? info->element : element;
  bool is_opaque = !ki_is_scalar(lane);
  tensor->code = is_opaque ? DLPACK_OPAQUE : dlpack[lane].code;
  tensor->bits = is_opaque ? DLPACK_BITS_OF_BYTE : dlpack[lane].bits;
  tensor->lanes = is_opaque   ? (uint16_t)(info->size_bytes <= UINT16_MAX ? info->size_bytes : 0)
                  : is_vector ? (uint16_t)info->count
                              : 1;
}

kjit_type kj_type_of_dlpack(uint8_t code, uint8_t bits)
{
  enum { CODES = 8, EIGHTS = 17 };
  static const uint8_t types[CODES][EIGHTS] = {
#define KJIT_ROW(name, text, size, class_, code, bits) [code][bits / 8] = KJIT_##name,
#include <kjit/types.def>
#undef KJIT_ROW
  };
  return code < CODES && bits % 8 == 0 && bits / 8 < EIGHTS ? types[code][bits / 8] : KJIT_ANY;
}

bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal)
{
  enum { CUDA_HOST = 3, CUDA_MANAGED = 13 }; /* DLPack device types */
  bool is_host = tensor->device_type == KJIT_DEVICE_CPU || tensor->device_type == CUDA_HOST,
       is_on_cpu = is_host || tensor->device_type == KJ_DLPACK_PLACED;
  *kind = is_on_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  *ordinal = is_host ? 0 : tensor->device_id;
  return is_on_cpu || tensor->device_type == KJIT_DEVICE_CUDA ||
         tensor->device_type == CUDA_MANAGED;
}

/* ---- untyped numbers of the application, which are treated like literals ---- */

ki_value kj_number_value(double number)
{
  /* -0.0 stays a float, because an integer has no negative zero */
  bool is_weak_int = number >= INT32_MIN && number <= INT32_MAX && number == trunc(number) &&
                     !(number == 0 && signbit(number));
  /* every NaN becomes the literal `nan`, which has no payload */
  if (isnan(number)) number = copysign(NAN, number);
  return ki_float_value(is_weak_int ? KJ_WEAK_INT : KJ_WEAK_FLOAT, number);
}

ki_value kj_argument_number(const kjit_arg *argument)
{
  if (argument->type == KJIT_I64) return ki_integer_value(KJ_WEAK_INT, argument->value.i);
  if (argument->type == KJIT_U64) return ki_integer_value(KJ_WEAK_INT, (__int128)argument->value.u);
  ki_value value = kj_number_value(argument->value.f64);
  return argument->type == KJIT_F64 ? ki_convert_value(value, KJ_WEAK_FLOAT) : value;
}

kjit_type kj_number_type(ki_value number)
{
  KJ_ASSERT(ki_is_weak(number.type));
  if (number.type == KJ_WEAK_FLOAT || ki_integer_fits(KJIT_I32, number.integer)) return number.type;
  return ki_integer_fits(KJIT_I64, number.integer) ? KJIT_I64 : KJIT_U64;
}

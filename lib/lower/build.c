/* Small things on top of LLVM's builder; LLVM types of kernel IR types, and values between their
 * register, memory and arithmetic forms. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "lower/lower.h"

/* Small things on top of LLVM's builder. */

LLVMValueRef kj_const32(kj_lowering *l, int64_t value)
{
  return LLVMConstInt(l->i32, (uint64_t)value & 0xffffffffu, false);
}
LLVMValueRef kj_const64(kj_lowering *l, int64_t value)
{
  return LLVMConstInt(l->i64, (uint64_t)value, true);
}

static bool is_type(LLVMValueRef value, LLVMTypeRef type) { return LLVMTypeOf(value) == type; }

LLVMValueRef kj_as_i64(kj_lowering *l, LLVMValueRef value)
{
  return is_type(value, l->i64) ? value : LLVMBuildSExt(l->builder, value, l->i64, "");
}
LLVMValueRef kj_as_i32(kj_lowering *l, LLVMValueRef value)
{
  return is_type(value, l->i32) ? value : LLVMBuildTrunc(l->builder, value, l->i32, "");
}

LLVMValueRef kj_extend_position(kj_lowering *l, LLVMValueRef value)
{
  if (is_type(value, l->i64)) return value;
  LLVMValueRef wide = LLVMBuildZExt(l->builder, value, l->i64, "");
  if (LLVMIsAZExtInst(wide)) LLVMSetNNeg(wide, true);
  return wide;
}

/* ---- blocks ---- */

LLVMBasicBlockRef kj_new_block(kj_lowering *l, const char *name)
{
  return LLVMAppendBasicBlockInContext(l->context, l->function, name);
}
void kj_move_to(kj_lowering *l, LLVMBasicBlockRef block)
{
  LLVMPositionBuilderAtEnd(l->builder, block);
}
bool kj_is_terminated(kj_lowering *l)
{
  return LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(l->builder)) != NULL;
}

void kj_branch(kj_lowering *l, LLVMBasicBlockRef block)
{
  if (!kj_is_terminated(l)) LLVMBuildBr(l->builder, block);
}

LLVMValueRef kj_alloca(kj_lowering *l, LLVMTypeRef type, const char *name)
{
  LLVMBasicBlockRef at = LLVMGetInsertBlock(l->builder);
  /* positioning takes that of the instruction there */
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(l->builder);
  LLVMPositionBuilderBefore(l->builder, l->alloca_end);
  LLVMValueRef slot = LLVMBuildAlloca(l->builder, type, name);
  kj_move_to(l, at);
  LLVMSetCurrentDebugLocation2(l->builder, place);
  return slot;
}

/* ---- intrinsics and attributes ---- */

LLVMValueRef kj_intrinsic(kj_lowering *l, const char *name, LLVMTypeRef *overloads,
                          unsigned overload_count, LLVMValueRef *args, unsigned count)
{
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (id == 0)
    kj_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: LLVM has no intrinsic %s", name);
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(l->module, id, overloads, overload_count);
  LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, overloads, overload_count);
  return LLVMBuildCall2(l->builder, type, function, args, count, "");
}

LLVMValueRef kj_intrinsic1(kj_lowering *l, const char *name, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kj_intrinsic(l, name, &type, 1, &x, 1);
}

LLVMValueRef kj_intrinsic2(kj_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kj_intrinsic(l, name, &type, 1, (LLVMValueRef[]){ x, y }, 2);
}

unsigned kj_sync_scope(kj_lowering *l, kj_memory_scope scope)
{
  const char *name = l->target->scopes[scope];
  return LLVMGetSyncScopeID(l->context, name, strlen(name));
}

LLVMValueRef kj_intrinsic3(kj_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kj_intrinsic(l, name, &type, 1, (LLVMValueRef[]){ x, y, z }, 3);
}

LLVMValueRef kj_try_native(kj_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count)
{
  return l->target->native ? l->target->native(l, name, least_arch, args, count) : NULL;
}

static LLVMAttributeRef make_attribute(kj_lowering *l, const char *name, uint64_t value)
{
  return LLVMCreateEnumAttribute(l->context, LLVMGetEnumAttributeKindForName(name, strlen(name)),
                                 value);
}

void kj_add_attribute(kj_lowering *l, LLVMValueRef function, unsigned index, const char *name,
                      uint64_t value)
{
  LLVMAddAttributeAtIndex(function, index, make_attribute(l, name, value));
}

void kj_add_call_attribute(kj_lowering *l, LLVMValueRef call, const char *name)
{
  LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           make_attribute(l, name, 0));
}

LLVMValueRef kj_fast(kj_lowering *l, LLVMValueRef value)
{
  if (!LLVMIsAInstruction(value) || !LLVMCanValueUseFastMathFlags(value)) return value;
  const kj_instance *instance = l->frame->instance;
  if (instance->is_fastmath) {
    LLVMSetFastMathFlags(value, LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros |
                                  LLVMFastMathAllowReciprocal | LLVMFastMathAllowContract |
                                  LLVMFastMathApproxFunc);
  } else if (!instance->is_strict) {
    LLVMSetFastMathFlags(value, LLVMFastMathAllowContract);
  }
  return value;
}

/* ---- metadata ---- */

LLVMMetadataRef kj_metadata_string(kj_lowering *l, const char *text)
{
  return LLVMMDStringInContext2(l->context, text, strlen(text));
}
LLVMMetadataRef kj_metadata_int(kj_lowering *l, int64_t value)
{
  return LLVMValueAsMetadata(kj_const32(l, value));
}

void kj_set_metadata(kj_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef metadata)
{
  LLVMSetMetadata(instruction, LLVMGetMDKindIDInContext(l->context, kind, (unsigned)strlen(kind)),
                  LLVMMetadataAsValue(l->context, metadata));
}

/* Distinct because its first operand is itself. */
LLVMMetadataRef kj_loop_id(kj_lowering *l, LLVMMetadataRef *properties, unsigned count)
{
  LLVMMetadataRef *operands = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, count + 1);
  LLVMMetadataRef self = LLVMTemporaryMDNode(l->context, NULL, 0);
  operands[0] = self;
  for (unsigned i = 0; i < count; i++) operands[1 + i] = properties[i];
  LLVMMetadataRef id = LLVMMDNodeInContext2(l->context, operands, count + 1);
  LLVMMetadataReplaceAllUsesWith(self, id);
  return id;
}

/* LLVM types of kernel IR types, and values between their register, memory and arithmetic forms. */

static const kj_type_info *info_of(kj_lowering *l, kjit_type type)
{
  return kj_type(l->c->types, type);
}

uint32_t kj_scalar_bytes(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return 8;
  return info_of(l, type)->size_bytes;
}

bool kj_is_float_type(kj_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_FLOAT ||
         (kj_is_scalar(type) && info_of(l, type)->class_ == KJ_CLASS_FLOAT);
}
bool kj_is_signed_type(kj_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_INT || (kj_is_scalar(type) && info_of(l, type)->class_ == KJ_CLASS_SIGNED);
}
bool kj_is_array_type(kj_lowering *l, kjit_type type)
{
  return !kj_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_ARRAY &&
         info_of(l, type)->space != KJ_SPACE_VALUE;
}
bool kj_is_tuple_type(kj_lowering *l, kjit_type type)
{
  return !kj_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_TUPLE;
}

unsigned kj_address_space(kj_lowering *l, kj_space space)
{
  switch (space) {
  case KJ_SPACE_GLOBAL: return l->target->global_space;
  case KJ_SPACE_SHARED: return l->target->shared_space;
  case KJ_SPACE_CONST: return l->target->constant_space;
  case KJ_SPACE_LOCAL:
  case KJ_SPACE_GENERIC:
  case KJ_SPACE_VALUE: return 0;
  }
  return 0;
}

static LLVMTypeRef integer_type(kj_lowering *l, uint32_t bytes)
{
  return bytes == 1 ? l->i8 : bytes == 2 ? l->i16 : bytes == 4 ? l->i32 : l->i64;
}

LLVMTypeRef kj_memory_type(kj_lowering *l, kjit_type type)
{
  if (kj_is_composed_type(l, type)) return kj_composed_memory_type(l, type);
  switch (type) {
  case KJ_WEAK_FLOAT:
  case KJIT_F64: return l->f64;
  case KJIT_F32: return l->f32;
  case KJIT_F16: return l->f16;
  default: return integer_type(l, kj_scalar_bytes(l, type));
  }
}

static LLVMTypeRef struct_of(kj_lowering *l, LLVMTypeRef *items, uint32_t count)
{
  return LLVMStructTypeInContext(l->context, items, count, false);
}

/* pointer, extents, strides; static arrays are a pointer only */
static LLVMTypeRef packed_array_type(kj_lowering *l, const kj_type_info *info)
{
  LLVMTypeRef items[1 + 2 * KJ_MAX_RANK];
  uint32_t count = 0;
  items[count++] = LLVMPointerTypeInContext(l->context, kj_address_space(l, info->space));
  for (uint32_t i = 0; !info->is_static && i < 2 * info->rank; i++) items[count++] = l->i64;
  return struct_of(l, items, count);
}

LLVMTypeRef kj_register_type(kj_lowering *l, kjit_type type)
{
  if (type == KJIT_BOOL) return l->i1;
  if (type == KJIT_VOID) return l->void_;
  if (kj_is_composed_type(l, type)) return kj_composed_register_type(l, type);
  if (kj_is_weak(type) || kj_is_scalar(type)) return kj_memory_type(l, type);
  const kj_type_info *info = info_of(l, type);
  if (info->class_ == KJ_CLASS_ARRAY) return packed_array_type(l, info);
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, info->count + 1);
  for (uint32_t i = 0; i < info->count; i++) items[i] = kj_register_type(l, info->items[i]);
  return struct_of(l, items, info->count);
}

/* ---- packed arrays ---- */

LLVMValueRef kj_pack_array(kj_lowering *l, const kj_array_value *array)
{
  const kj_type_info *info = info_of(l, array->type);
  LLVMValueRef packed = LLVMGetPoison(packed_array_type(l, info));
  packed = LLVMBuildInsertValue(l->builder, packed, array->pointer, 0, "");
  for (uint32_t d = 0; !info->is_static && d < info->rank; d++) {
    /* its extent follows from the size that the launch gives */
    bool is_dynamic = info->space == KJ_SPACE_SHARED;
    if (array->extents[d] || is_dynamic)
      packed = LLVMBuildInsertValue(l->builder, packed, kj_extent(l, array, d), 1 + d, "");
    if (array->strides[d])
      packed = LLVMBuildInsertValue(l->builder, packed, kj_as_i64(l, array->strides[d]),
                                    1 + info->rank + d, "");
  }
  return packed;
}

static void set_static_shape(kj_lowering *l, const kj_type_info *info, kj_array_value *array)
{
  int64_t stride = 1;
  for (uint32_t d = info->rank; d-- > 0;) {
    array->extents[d] = kj_const64(l, info->extents[d]);
    array->strides[d] = kj_const64(l, stride);
    stride *= info->extents[d];
  }
}

bool kj_is_unit_stride(const kj_type_info *info, uint32_t dimension)
{
  return (info->layout == KJIT_LAYOUT_C && dimension + 1 == info->rank) ||
         (info->layout == KJIT_LAYOUT_F && dimension == 0);
}

kj_array_value kj_unpack_array(kj_lowering *l, kjit_type type, LLVMValueRef packed)
{
  const kj_type_info *info = info_of(l, type);
  kj_array_value array = { .type = type,
                           .pointer = LLVMBuildExtractValue(l->builder, packed, 0, ""),
                           .object = kj_object_of_type(l, type) };
  if (info->is_static) {
    set_static_shape(l, info, &array);
    return array;
  }
  for (uint32_t d = 0; d < info->rank; d++) {
    array.extents[d] = LLVMBuildExtractValue(l->builder, packed, 1 + d, "");
    array.strides[d] = kj_is_unit_stride(info, d)
                         ? kj_const64(l, 1)
                         : LLVMBuildExtractValue(l->builder, packed, 1 + info->rank + d, "");
  }
  return array;
}

uint32_t kj_object_of_type(kj_lowering *l, kjit_type type)
{
  switch (info_of(l, type)->space) {
  case KJ_SPACE_GLOBAL:
  case KJ_SPACE_SHARED:
  case KJ_SPACE_CONST: return KJ_OBJECT_APART;
  case KJ_SPACE_GENERIC: return l->points_to_local ? KJ_OBJECT_UNKNOWN : KJ_OBJECT_APART;
  case KJ_SPACE_LOCAL: /* one array for all iterations of a thread loop, unless it is a slot */
  case KJ_SPACE_VALUE: break;
  }
  return KJ_OBJECT_UNKNOWN;
}

kj_array_value kj_static_array(kj_lowering *l, kjit_type type, LLVMValueRef pointer)
{
  kj_array_value array = { .type = type, .pointer = pointer, .object = kj_object_of_type(l, type) };
  set_static_shape(l, info_of(l, type), &array);
  return array;
}

/* ---- forms of scalars ---- */

static bool is_bool(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return false;
  return type == KJIT_BOOL ||
         (info_of(l, type)->class_ == KJ_CLASS_VECTOR && info_of(l, type)->element == KJIT_BOOL);
}

LLVMValueRef kj_to_memory(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  return is_bool(l, type) ? LLVMBuildZExt(l->builder, value, kj_memory_type(l, type), "") : value;
}

LLVMValueRef kj_from_memory(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  return is_bool(l, type)
           ? LLVMBuildICmp(l->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "")
           : value;
}

static LLVMValueRef float_of_bf16(kj_lowering *l, LLVMValueRef bits)
{
  LLVMValueRef wide =
    LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, bits, l->i32, ""), kj_const32(l, 16), "");
  return LLVMBuildBitCast(l->builder, wide, l->f32, "");
}

/* To nearest even by integer arithmetic: no target needs an instruction or a helper for it. A NaN
 * stays one: its quiet bit is set, since its upper bits may be 0. */
static LLVMValueRef bf16_of_float(kj_lowering *l, LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef bits = LLVMBuildBitCast(b, value, l->i32, "");
  LLVMValueRef odd =
    LLVMBuildAnd(b, LLVMBuildLShr(b, bits, kj_const32(l, 16), ""), kj_const32(l, 1), "");
  LLVMValueRef rounded = LLVMBuildAdd(b, bits, LLVMBuildAdd(b, odd, kj_const32(l, 0x7fff), ""), "");
  LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
  LLVMValueRef quiet = LLVMBuildOr(b, bits, kj_const32(l, 0x400000), "");
  LLVMValueRef wide = LLVMBuildSelect(b, is_nan, quiet, rounded, "");
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, wide, kj_const32(l, 16), ""), l->i16, "");
}

LLVMValueRef kj_to_compute(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return LLVMBuildFPExt(l->builder, value, l->f32, "");
  return type == KJIT_BF16 ? float_of_bf16(l, value) : value;
}

LLVMValueRef kj_from_compute(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return LLVMBuildFPTrunc(l->builder, value, l->f16, "");
  return type == KJIT_BF16 ? bf16_of_float(l, value) : value;
}

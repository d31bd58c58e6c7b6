/* Helpers for LLVM's builder, the LLVM types of kernel IR types, and conversions of values between
 * their register, memory and arithmetic forms. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "lower/instruction.h"

/* ---- helpers for LLVM's builder ---- */

LLVMValueRef kl_const32(kl_lowering *l, int64_t value)
{
  return LLVMConstInt(l->i32, (uint64_t)value & 0xffffffffu, false);
}
LLVMValueRef kl_const64(kl_lowering *l, int64_t value)
{
  return LLVMConstInt(l->i64, (uint64_t)value, true);
}

static bool is_type(LLVMValueRef value, LLVMTypeRef type) { return LLVMTypeOf(value) == type; }

LLVMValueRef kl_as_i64(kl_lowering *l, LLVMValueRef value)
{
  KJ_ASSERT(is_type(value, l->i64) || is_type(value, l->i32));
  return is_type(value, l->i64) ? value : kl_sext(l, value, l->i64);
}
LLVMValueRef kl_as_i32(kl_lowering *l, LLVMValueRef value)
{
  KJ_ASSERT(is_type(value, l->i64) || is_type(value, l->i32));
  return is_type(value, l->i32) ? value : kl_trunc(l, value, l->i32);
}

LLVMValueRef kl_extend_position(kl_lowering *l, LLVMValueRef value)
{
  KJ_ASSERT(is_type(value, l->i64) || is_type(value, l->i32));
  if (is_type(value, l->i64)) return value;
  LLVMValueRef wide = kl_zext(l, value, l->i64);
  if (LLVMIsAZExtInst(wide)) LLVMSetNNeg(wide, true);
  return wide;
}

/* ---- blocks ---- */

LLVMBasicBlockRef kl_new_block(kl_lowering *l, const char *name)
{
  KJ_ASSERT(l->function);
  return LLVMAppendBasicBlockInContext(l->context, l->function, name);
}
void kl_move_to(kl_lowering *l, LLVMBasicBlockRef block)
{
  LLVMPositionBuilderAtEnd(l->builder, block);
}
bool kl_is_terminated(kl_lowering *l) { return LLVMGetBasicBlockTerminator(kl_here(l)) != NULL; }

void kl_branch(kl_lowering *l, LLVMBasicBlockRef block)
{
  if (!kl_is_terminated(l)) kl_br(l, block);
}

void kl_go_on_in(kl_lowering *l, LLVMBasicBlockRef block)
{
  kl_branch(l, block);
  kl_move_to(l, block);
}

void kl_go_on_if(kl_lowering *l, LLVMValueRef condition, LLVMBasicBlockRef block,
                 LLVMBasicBlockRef otherwise)
{
  kl_cond_br(l, condition, block, otherwise);
  kl_move_to(l, block);
}

/* Adds the size of a stack variable to the total for all functions. Without recursion, no chain of
 * calls needs more stack than this total. A function that is inlined several times is counted
 * several times. */
static void count_stack(kl_lowering *l, LLVMTypeRef type)
{
  uint64_t bytes = LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module), type);
  l->stack_bytes += bytes;
  if (!l->target->stack_limit_bytes || l->stack_bytes <= l->target->stack_limit_bytes) return;
  const ki_decl *decl = l->kernel->function->decl;
  kt_fail(l->c, decl->location, KJIT_ERROR_UNSUPPORTED,
          "the local arrays and variables of `%s` and of the functions that it calls need more "
          "than %u KiB of stack in each thread",
          decl->name, l->target->stack_limit_bytes / 1024);
}

LLVMValueRef kl_alloca(kl_lowering *l, LLVMTypeRef type, const char *name)
{
  KJ_ASSERT(l->alloca_end);
  count_stack(l, type);
  LLVMBasicBlockRef at = kl_here(l);
  /* moving the builder would also change its debug location, which is restored below */
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(l->builder);
  LLVMPositionBuilderBefore(l->builder, l->alloca_end);
  LLVMValueRef memory = LLVMBuildAlloca(kl_next(l), type, name);
  kl_move_to(l, at);
  LLVMSetCurrentDebugLocation2(l->builder, place);
  return memory;
}

LLVMValueRef kl_alloca_array(kl_lowering *l, LLVMTypeRef type, const char *name, uint32_t alignment)
{
  LLVMValueRef memory = kl_alloca(l, type, name);
  LLVMSetAlignment(memory, alignment);
  if (!l->c->module->has_guest) return memory;
  LLVMBasicBlockRef at = kl_here(l);
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(l->builder);
  LLVMPositionBuilderBefore(l->builder, l->alloca_end);
  LLVMBuildMemSet(l->builder, memory, LLVMConstNull(l->i8), LLVMSizeOf(type), alignment);
  kl_move_to(l, at);
  LLVMSetCurrentDebugLocation2(l->builder, place);
  return memory;
}

/* ---- intrinsics and attributes ---- */

LLVMValueRef kl_intrinsic(kl_lowering *l, const char *name, LLVMTypeRef *overloads,
                          unsigned overload_count, LLVMValueRef *args, unsigned count)
{
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (id == 0)
    kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: LLVM has no intrinsic %s", name);
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(l->module, id, overloads, overload_count);
  LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, overloads, overload_count);
  return kl_call(l, type, function, args, count);
}

LLVMValueRef kl_intrinsic1(kl_lowering *l, const char *name, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kl_intrinsic(l, name, &type, 1, &x, 1);
}

LLVMValueRef kl_intrinsic2(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kl_intrinsic(l, name, &type, 1, (LLVMValueRef[]){ x, y }, 2);
}

unsigned kl_sync_scope(kl_lowering *l, ki_memory_scope scope)
{
  KJ_ASSERT(l->target->scopes[scope]);
  const char *name = l->target->scopes[scope];
  return LLVMGetSyncScopeID(l->context, name, strlen(name));
}

LLVMValueRef kl_intrinsic3(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kl_intrinsic(l, name, &type, 1, (LLVMValueRef[]){ x, y, z }, 3);
}

LLVMValueRef kl_try_native(kl_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count)
{
  return l->target->native ? l->target->native(l, name, least_arch, args, count) : NULL;
}

static LLVMAttributeRef make_attribute(kl_lowering *l, const char *name, uint64_t value)
{
  KJ_ASSERT(LLVMGetEnumAttributeKindForName(name, strlen(name))); /* LLVM has this attribute */
  return LLVMCreateEnumAttribute(l->context, LLVMGetEnumAttributeKindForName(name, strlen(name)),
                                 value);
}

LLVMValueRef kl_add_function(kl_lowering *l, const char *symbol, LLVMTypeRef type)
{
  KJ_ASSERT(!LLVMGetNamedFunction(l->module, symbol) && !LLVMGetNamedGlobal(l->module, symbol));
  return LLVMAddFunction(l->module, symbol, type);
}

LLVMValueRef kl_add_variable(kl_lowering *l, const char *name, const char *kind, LLVMTypeRef type,
                             unsigned space)
{
  char *symbol = kj_format(l->c->arena, "%s$%s", name, kind);
  for (char *at = symbol; *at; at++) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9') || *at == '_' || *at == '$';
    if (!is_plain) *at = '_';
  }
  LLVMValueRef variable = LLVMAddGlobalInAddressSpace(l->module, type, symbol, space);
  LLVMSetLinkage(variable, LLVMInternalLinkage);
  return variable;
}

void kl_add_attribute(kl_lowering *l, LLVMValueRef function, unsigned index, const char *name,
                      uint64_t value)
{
  LLVMAddAttributeAtIndex(function, index, make_attribute(l, name, value));
}

void kl_set_place(kl_lowering *l, LLVMValueRef call, LLVMTypeRef place, bool is_all)
{
  static const char element_type[] = "elementtype";
  enum { FIRST = 1, OF_ARGUMENTS = 3 /* memory(argmem: readwrite) */ };
  unsigned kind = LLVMGetEnumAttributeKindForName(element_type, sizeof element_type - 1);
  LLVMAddCallSiteAttribute(call, FIRST, LLVMCreateTypeAttribute(l->context, kind, place));
  if (is_all)
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             make_attribute(l, "memory", OF_ARGUMENTS));
}

void kl_add_call_attribute(kl_lowering *l, LLVMValueRef call, const char *name)
{
  LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           make_attribute(l, name, 0));
}

LLVMValueRef kl_fast(kl_lowering *l, LLVMValueRef value)
{
  KJ_ASSERT(l->frame);
  if (!LLVMIsAInstruction(value) || !LLVMCanValueUseFastMathFlags(value)) return value;
  const kt_instance *instance = l->frame->instance;
  if (instance->modes.is_fastmath) {
    LLVMSetFastMathFlags(value, LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros |
                                  LLVMFastMathAllowReciprocal | LLVMFastMathAllowContract |
                                  LLVMFastMathApproxFunc);
  } else if (!instance->modes.is_strict) {
    LLVMSetFastMathFlags(value, LLVMFastMathAllowContract);
  }
  return value;
}

/* ---- metadata ---- */

LLVMMetadataRef kl_metadata_string(kl_lowering *l, const char *text)
{
  return LLVMMDStringInContext2(l->context, text, strlen(text));
}
LLVMMetadataRef kl_metadata_int(kl_lowering *l, int64_t value)
{
  return LLVMValueAsMetadata(kl_const32(l, value));
}

void kl_set_metadata(kl_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef metadata)
{
  KJ_ASSERT(metadata && LLVMIsAInstruction(instruction));
  LLVMSetMetadata(instruction, LLVMGetMDKindIDInContext(l->context, kind, (unsigned)strlen(kind)),
                  LLVMMetadataAsValue(l->context, metadata));
}

/* Returns a loop id. Its first operand is the node itself, which makes the node distinct. */
LLVMMetadataRef kl_loop_id(kl_lowering *l, LLVMMetadataRef *properties, unsigned count)
{
  LLVMMetadataRef *operands = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, count + 1);
  LLVMMetadataRef self = LLVMTemporaryMDNode(l->context, NULL, 0);
  operands[0] = self;
  for (unsigned i = 0; i < count; i++) operands[1 + i] = properties[i];
  LLVMMetadataRef id = LLVMMDNodeInContext2(l->context, operands, count + 1);
  LLVMMetadataReplaceAllUsesWith(self, id);
  return id;
}

LLVMMetadataRef kl_flag_property(kl_lowering *l, const char *name, bool value)
{
  LLVMMetadataRef parts[] = { kl_metadata_string(l, name),
                              LLVMValueAsMetadata(LLVMConstInt(l->i1, value, false)) };
  return LLVMMDNodeInContext2(l->context, parts, 2);
}

/* ---- LLVM types, and conversions between register, memory and arithmetic forms ---- */

uint32_t kl_scalar_bytes(kl_lowering *l, kjit_type type)
{
  if (ki_is_weak(type)) return 8;
  return kl_type_info(l, type)->size_bytes;
}

bool kl_is_float_type(kl_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_FLOAT ||
         (ki_is_scalar(type) && kl_type_info(l, type)->class_ == KJ_CLASS_FLOAT);
}
bool kl_is_signed_type(kl_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_INT ||
         (ki_is_scalar(type) && kl_type_info(l, type)->class_ == KJ_CLASS_SIGNED);
}
bool kl_is_array_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_ARRAY &&
         kl_type_info(l, type)->space != KJ_SPACE_VALUE;
}
bool kl_is_tuple_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_TUPLE;
}

unsigned kl_address_space(kl_lowering *l, ki_space space)
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

static LLVMTypeRef integer_type(kl_lowering *l, uint32_t bytes)
{
  KJ_ASSERT(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  return bytes == 1 ? l->i8 : bytes == 2 ? l->i16 : bytes == 4 ? l->i32 : l->i64;
}

LLVMTypeRef kl_memory_type(kl_lowering *l, kjit_type type)
{
  if (kl_is_composed_type(l, type)) return kl_composed_memory_type(l, type);
  switch (type) {
  case KJ_WEAK_FLOAT:
  case KJIT_F64: return l->f64;
  case KJIT_F32: return l->f32;
  case KJIT_F16: return l->f16;
  default: return integer_type(l, kl_scalar_bytes(l, type));
  }
}

static LLVMTypeRef struct_of(kl_lowering *l, LLVMTypeRef *items, uint32_t count)
{
  return LLVMStructTypeInContext(l->context, items, count, false);
}

/* Returns the struct type of a packed array: the pointer, the extents and the strides. The struct
 * of a static array contains only the pointer. */
static LLVMTypeRef packed_array_type(kl_lowering *l, const ki_type_info *info)
{
  KJ_ASSERT(info->class_ == KJ_CLASS_ARRAY && info->rank <= KJ_MAX_RANK);
  LLVMTypeRef items[1 + 2 * KJ_MAX_RANK];
  uint32_t count = 0;
  items[count++] = LLVMPointerTypeInContext(l->context, kl_address_space(l, info->space));
  for (uint32_t i = 0; !info->is_static && i < 2 * info->rank; i++) items[count++] = l->i64;
  return struct_of(l, items, count);
}

LLVMTypeRef kl_register_type(kl_lowering *l, kjit_type type)
{
  if (type == KJIT_BOOL) return l->i1;
  if (type == KJIT_VOID) return l->void_;
  if (kl_is_composed_type(l, type)) return kl_composed_register_type(l, type);
  if (ki_is_weak(type) || ki_is_scalar(type)) return kl_memory_type(l, type);
  const ki_type_info *info = kl_type_info(l, type);
  if (info->class_ == KJ_CLASS_ARRAY) return packed_array_type(l, info);
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, info->count + 1);
  for (uint32_t i = 0; i < info->count; i++) items[i] = kl_register_type(l, info->items[i]);
  return struct_of(l, items, info->count);
}

/* ---- packed arrays ---- */

LLVMValueRef kl_pack_array(kl_lowering *l, const kl_array_value *array)
{
  KJ_ASSERT(array->pointer);
  const ki_type_info *info = kl_type_info(l, array->type);
  LLVMValueRef packed = LLVMGetPoison(packed_array_type(l, info));
  packed = kl_insert_value(l, packed, array->pointer, 0);
  for (uint32_t d = 0; !info->is_static && d < info->rank; d++) {
    /* the launch gives the size of dynamic shared memory, from which the extent is computed */
    bool is_dynamic = info->space == KJ_SPACE_SHARED;
    if (array->extents[d] || is_dynamic)
      packed = kl_insert_value(l, packed, kl_extent(l, array, d), 1 + d);
    if (array->strides[d])
      packed = kl_insert_value(l, packed, kl_as_i64(l, array->strides[d]), 1 + info->rank + d);
  }
  return packed;
}

static void set_static_shape(kl_lowering *l, const ki_type_info *info, kl_array_value *array)
{
  int64_t stride = 1;
  for (uint32_t d = info->rank; d-- > 0;) {
    array->extents[d] = kl_const64(l, info->extents[d]);
    array->strides[d] = kl_const64(l, stride);
    stride *= info->extents[d];
  }
}

bool kl_is_unit_stride(const ki_type_info *info, uint32_t dimension)
{
  KJ_ASSERT(dimension < info->rank);
  return (info->layout == KJIT_LAYOUT_C && dimension + 1 == info->rank) ||
         (info->layout == KJIT_LAYOUT_F && dimension == 0);
}

kl_array_value kl_unpack_array(kl_lowering *l, kjit_type type, LLVMValueRef packed)
{
  KJ_ASSERT(LLVMGetTypeKind(LLVMTypeOf(packed)) == LLVMStructTypeKind);
  const ki_type_info *info = kl_type_info(l, type);
  kl_array_value array = { .type = type,
                           .pointer = kl_extract_value(l, packed, 0),
                           .object = kl_object_of_type(l, type) };
  if (info->is_static) {
    set_static_shape(l, info, &array);
    return array;
  }
  for (uint32_t d = 0; d < info->rank; d++) {
    array.extents[d] = kl_extract_value(l, packed, 1 + d);
    array.strides[d] = kl_is_unit_stride(info, d) ? kl_const64(l, 1)
                                                  : kl_extract_value(l, packed, 1 + info->rank + d);
  }
  return array;
}

uint32_t kl_object_of_type(kl_lowering *l, kjit_type type)
{
  switch (kl_type_info(l, type)->space) {
  case KJ_SPACE_GLOBAL:
  case KJ_SPACE_SHARED:
  case KJ_SPACE_CONST: return KJ_OBJECT_APART;
  case KJ_SPACE_GENERIC: return l->points_to_local ? KJ_OBJECT_UNKNOWN : KJ_OBJECT_APART;
  /* all iterations of a thread loop use the same memory, unless the variable is a slot */
  case KJ_SPACE_LOCAL:
  case KJ_SPACE_VALUE: break;
  }
  return KJ_OBJECT_UNKNOWN;
}

kl_array_value kl_static_array(kl_lowering *l, kjit_type type, LLVMValueRef pointer)
{
  KJ_ASSERT(kl_type_info(l, type)->is_static);
  kl_array_value array = { .type = type, .pointer = pointer, .object = kl_object_of_type(l, type) };
  set_static_shape(l, kl_type_info(l, type), &array);
  return array;
}

/* ---- forms of scalars ---- */

static bool is_bool(kl_lowering *l, kjit_type type)
{
  if (ki_is_weak(type)) return false;
  return type == KJIT_BOOL || (kl_type_info(l, type)->class_ == KJ_CLASS_VECTOR &&
                               kl_type_info(l, type)->element == KJIT_BOOL);
}

LLVMValueRef kl_to_memory(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  KJ_ASSERT(LLVMTypeOf(value) == kl_register_type(l, type));
  return is_bool(l, type) ? kl_zext(l, value, kl_memory_type(l, type)) : value;
}

LLVMValueRef kl_from_memory(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  KJ_ASSERT(kl_is_composed_type(l, type) || LLVMTypeOf(value) == kl_memory_type(l, type));
  return is_bool(l, type) ? kl_icmp(l, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value))) : value;
}

static LLVMValueRef float_of_bf16(kl_lowering *l, LLVMValueRef bits)
{
  KJ_ASSERT(is_type(bits, l->i16));
  LLVMValueRef wide = kl_shl(l, kl_zext(l, bits, l->i32), kl_const32(l, 16));
  return kl_bitcast(l, wide, l->f32);
}

/* Converts a float to the bits of a bf16, rounding to nearest even. If the target has no
 * instruction for this conversion, integer arithmetic is used, because LLVM would call a helper
 * function. The quiet bit of a NaN is set: without it, the upper bits of the NaN's mantissa can be
 * 0, and the result would be an infinity. */
static LLVMValueRef bf16_of_float(kl_lowering *l, LLVMValueRef value)
{
  KJ_ASSERT(is_type(value, l->f32));
  if (l->target->has_brain_arithmetic && l->target->has_brain_arithmetic(l))
    return kl_bitcast(l, kl_fptrunc(l, value, LLVMBFloatTypeInContext(l->context)), l->i16);
  LLVMValueRef bits = kl_bitcast(l, value, l->i32);
  LLVMValueRef odd = kl_and(l, kl_lshr(l, bits, kl_const32(l, 16)), kl_const32(l, 1));
  LLVMValueRef rounded = kl_add(l, bits, kl_add(l, odd, kl_const32(l, 0x7fff)));
  LLVMValueRef is_nan = kl_fcmp(l, LLVMRealUNO, value, value);
  LLVMValueRef quiet = kl_or(l, bits, kl_const32(l, 0x400000));
  LLVMValueRef wide = kl_select(l, is_nan, quiet, rounded);
  return kl_trunc(l, kl_lshr(l, wide, kl_const32(l, 16)), l->i16);
}

LLVMValueRef kl_to_compute(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return kl_fpext(l, value, l->f32);
  return type == KJIT_BF16 ? float_of_bf16(l, value) : value;
}

LLVMValueRef kl_from_compute(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return kl_fptrunc(l, value, l->f16);
  return type == KJIT_BF16 ? bf16_of_float(l, value) : value;
}

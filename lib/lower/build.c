/* Small things on top of LLVM's builder. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "lower/lower.h"

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

/* nvptx: offsets of elements. Code generation without optimization widens an index of 32 bits and
 * shifts it; of a wide product the assembler makes one instruction with the sum of pointer and
 * offset, where an address takes up to five otherwise. */
#include <stdio.h>

#include "target/nvptx.h"

static LLVMValueRef product_code(LLVMTypeRef function, bool is_signed, uint64_t size)
{
  char text[64];
  static const char constraints[] = "=l,r";
  int length = snprintf(text, sizeof text, "mul.wide.%c32 $0, $1, %llu;", is_signed ? 's' : 'u',
                        (unsigned long long)size);
  return LLVMGetInlineAsm(function, text, (size_t)length, constraints, sizeof constraints - 1,
                          false, false, LLVMInlineAsmDialectATT, false);
}

/* Of a group of elements, an index is its number times their count, which does not overflow: the
 * size of a group instead. */
static LLVMValueRef take_shift(LLVMValueRef narrow, bool is_signed, uint64_t *size)
{
  if (!LLVMIsAInstruction(narrow) || LLVMGetInstructionOpcode(narrow) != LLVMShl ||
      !LLVMIsAConstantInt(LLVMGetOperand(narrow, 1)))
    return narrow;
  uint64_t shift = LLVMConstIntGetZExtValue(LLVMGetOperand(narrow, 1));
  if (!(is_signed ? LLVMGetNSW(narrow) : LLVMGetNUW(narrow)) || shift > 8 ||
      *size << shift > INT32_MAX)
    return narrow;
  *size <<= shift;
  return LLVMGetOperand(narrow, 0);
}

/* Beside the widened index, so that all that uses it may use the product. */
static LLVMValueRef get_product(LLVMBuilderRef builder, LLVMValueRef wide, uint64_t size)
{
  LLVMValueRef narrow =
    take_shift(LLVMGetOperand(wide, 0), LLVMGetInstructionOpcode(wide) == LLVMSExt, &size);
  LLVMTypeRef from = LLVMTypeOf(narrow),
              function = LLVMFunctionType(LLVMTypeOf(wide), &from, 1, false);
  LLVMValueRef code = product_code(function, LLVMGetInstructionOpcode(wide) == LLVMSExt, size);
  for (LLVMValueRef i = LLVMGetPreviousInstruction(wide);
       i && LLVMIsACallInst(i) && LLVMGetOperand(i, 0) == narrow; i = LLVMGetPreviousInstruction(i))
    if (LLVMGetCalledValue(i) == code) return i;
  LLVMPositionBuilderBefore(builder, wide);
  return LLVMBuildCall2(builder, function, code, &narrow, 1, "");
}

static bool is_widened(LLVMValueRef index)
{
  if (!LLVMIsAZExtInst(index) && !LLVMIsASExtInst(index)) return false;
  return LLVMGetIntTypeWidth(LLVMTypeOf(index)) == 64 &&
         LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(index, 0))) == 32;
}

static void rewrite_address(LLVMBuilderRef builder, LLVMTargetDataRef layout, LLVMValueRef address)
{
  if (LLVMGetNumIndices(address) != 1 ||
      LLVMGetTypeKind(LLVMTypeOf(address)) != LLVMPointerTypeKind ||
      !is_widened(LLVMGetOperand(address, 1)))
    return;
  LLVMValueRef wide = LLVMGetOperand(address, 1);
  uint64_t size = LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(address));
  if (size < 2 || size > INT32_MAX) return;
  LLVMValueRef product = get_product(builder, wide, size);
  LLVMPositionBuilderBefore(builder, address);
  LLVMTypeRef byte = LLVMInt8TypeInContext(LLVMGetTypeContext(LLVMTypeOf(wide)));
  LLVMReplaceAllUsesWith(address,
                         LLVMBuildGEPWithNoWrapFlags(builder, byte, LLVMGetOperand(address, 0),
                                                     &product, 1, "",
                                                     LLVMGEPGetNoWrapFlags(address)));
  LLVMInstructionEraseFromParent(address);
  if (LLVMGetFirstUse(wide)) return;
  LLVMValueRef narrow = LLVMGetOperand(wide, 0);
  LLVMInstructionEraseFromParent(wide);
  if (LLVMIsAInstruction(narrow) && LLVMGetInstructionOpcode(narrow) == LLVMShl &&
      !LLVMGetFirstUse(narrow))
    LLVMInstructionEraseFromParent(narrow);
}

void kj_widen_offsets(LLVMModuleRef module)
{
  LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (LLVMIsAGetElementPtrInst(i)) rewrite_address(builder, layout, i);
      }
  LLVMDisposeBuilder(builder);
}

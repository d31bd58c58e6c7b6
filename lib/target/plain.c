/* Decides whether plain code computes the same bits as fully optimized code. Plain code is compiled
 * with few optimizations.
 *
 * Integer instructions, and single operations on floats, have the same result in both kinds of
 * code. The following can have different results:
 *
 *   contract a product and a sum can become one fused operation, which rounds once. LLVM decides
 *                  this during code generation, and the decision depends on passes that do not run
 *                  for plain code. A quotient is treated like a product, because x / 4 becomes x *
 *                  0.25
 *   reassoc, nsz,  @fastmath: LLVM can use other formulas
 *   arcp, afn
 *   calls vectorized code calls the functions of libmvec, which differ from the scalar functions;
 *                  and minnum or maxnum of 0 and -0 can return either zero
 *
 * The sign and the payload of a NaN are not specified (docs/llvm-notes.md). The decision is made on
 * the module that lowering has created, before any pass. */
#include <llvm-c/Core.h>
#include <string.h>

#include "target/llvm.h"

/* Intrinsics on floats that always have the same result. */
static const char *const exact[] = {
  "llvm.sqrt",         "llvm.fabs",        "llvm.floor",   "llvm.ceil",       "llvm.trunc",
  "llvm.round",        "llvm.roundeven",   "llvm.rint",    "llvm.fma",        "llvm.copysign",
  "llvm.fptosi.sat",   "llvm.fptoui.sat",  "llvm.minimum", "llvm.ldexp",      "llvm.maximum",
  "llvm.masked.store", "llvm.masked.load", "llvm.frexp",   "llvm.is.fpclass",
};

static bool has_float(LLVMTypeRef type)
{
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  if (kind == LLVMVectorTypeKind || kind == LLVMArrayTypeKind)
    return has_float(LLVMGetElementType(type));
  unsigned count = kind == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 0;
  for (unsigned i = 0; i < count; i++)
    if (has_float(LLVMStructGetTypeAtIndex(type, i))) return true;
  return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind ||
         kind == LLVMDoubleTypeKind;
}

static bool is_exact(unsigned intrinsic)
{
  /* each of these intrinsics is a single PTX instruction */
  static const char instructions[] = "llvm.nvvm.";
  size_t length;
  const char *name = LLVMIntrinsicGetName(intrinsic, &length);
  if (!strncmp(name, instructions, sizeof instructions - 1)) return true;
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    if (!strcmp(name, exact[i])) return true;
  return false;
}

/* Returns whether the result of the call is the same in plain code. A call of a func in the module
 * counts as the same, because the func's instructions are examined separately. Inline PTX has the
 * same result in plain code. */
static bool is_call_exact(LLVMValueRef call)
{
  LLVMValueRef callee = LLVMGetCalledValue(call);
  if (LLVMIsAInlineAsm(callee) || (LLVMIsAFunction(callee) && !LLVMIsDeclaration(callee)))
    return true;
  bool is_of_floats = has_float(LLVMTypeOf(call));
  for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
    is_of_floats = is_of_floats || has_float(LLVMTypeOf(LLVMGetOperand(call, i)));
  if (!is_of_floats) return true;
  return LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee) &&
         is_exact(LLVMGetIntrinsicID(callee));
}

/* The kinds of operations in a module that LLVM can fuse. */
typedef struct fusible {
  bool has_product, has_sum;
} fusible;

static bool is_instruction_exact(LLVMValueRef instruction, fusible *found)
{
  const unsigned others = ~(unsigned)LLVMFastMathAllowContract;
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  unsigned flags =
    LLVMCanValueUseFastMathFlags(instruction) ? LLVMGetFastMathFlags(instruction) : 0;
  if (flags & others) return false;
  if (opcode == LLVMCall) return is_call_exact(instruction);
  if (!(flags & LLVMFastMathAllowContract)) return true;
  found->has_product |= opcode == LLVMFMul || opcode == LLVMFDiv;
  found->has_sum |= opcode == LLVMFAdd || opcode == LLVMFSub;
  return !(found->has_product && found->has_sum);
}

bool kg_has_one_result(LLVMModuleRef module)
{
  fusible found = { 0 };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (!is_instruction_exact(i, &found)) return false;
  return true;
}

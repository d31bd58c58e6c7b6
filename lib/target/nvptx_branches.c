/* Replaces branches to short special cases in math library functions: the code computes both
 * results, and a select chooses one of them. If a loop calls such a function, its iterations can
 * then overlap. */
#include <string.h>

#include "target/nvptx.h"

/* Maximum number of instructions in a side. A select costs as much as an instruction, so longer
 * sides keep their branch. */
enum { MOST_INSTRUCTIONS = 8 };

/* Returns whether an instruction can be executed even if its result is not needed: it has no
 * effect, cannot fail, and takes few cycles. */
static bool is_cheap(LLVMValueRef instruction)
{
  static const char *const calls[] = { "llvm.fma.",      "llvm.fabs.",     "llvm.copysign.",
                                       "llvm.nvvm.fma.", "llvm.nvvm.add.", "llvm.nvvm.mul.",
                                       "llvm.nvvm.fabs" };
  switch (KJ_AMONG(LLVMGetInstructionOpcode(instruction))) {
  case LLVMFNeg:
  case LLVMFAdd:
  case LLVMFSub:
  case LLVMFMul:
  case LLVMAdd:
  case LLVMSub:
  case LLVMAnd:
  case LLVMOr:
  case LLVMXor:
  case LLVMShl:
  case LLVMLShr:
  case LLVMAShr:
  case LLVMICmp:
  case LLVMFCmp:
  case LLVMSelect:
  case LLVMBitCast:
  case LLVMTrunc:
  case LLVMZExt:
  case LLVMSExt: return true;
  case LLVMCall: break;
  default: return false;
  }
  size_t length;
  const char *name = LLVMGetValueName2(LLVMGetCalledValue(instruction), &length);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (strncmp(name, calls[i], strlen(calls[i])) == 0) return true;
  return false;
}

/* If a block consists of a few cheap instructions and an unconditional branch, returns its
 * successor, otherwise NULL. */
static LLVMBasicBlockRef target_of_side(LLVMBasicBlockRef side)
{
  LLVMValueRef last = LLVMGetBasicBlockTerminator(side);
  int count = 0;
  if (!LLVMIsABranchInst(last) || LLVMIsConditional(last)) return NULL;
  for (LLVMValueRef i = LLVMGetFirstInstruction(side); i != last; i = LLVMGetNextInstruction(i))
    if (++count > MOST_INSTRUCTIONS || !is_cheap(i)) return NULL;
  return LLVMGetSuccessor(last, 0);
}

/* Returns the number of branches to a block. */
static int count_ways(LLVMBasicBlockRef block)
{
  int count = 0;
  for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use;
       use = LLVMGetNextUse(use))
    count += LLVMIsATerminatorInst(LLVMGetUser(use)) != NULL;
  return count;
}

/* Replaces the phis of a block with two predecessors by selects. */
static void replace_phis(LLVMBuilderRef builder, LLVMBasicBlockRef block, LLVMBasicBlockRef side,
                         LLVMValueRef condition, bool is_side_first)
{
  LLVMValueRef phi;
  while ((phi = LLVMGetFirstInstruction(block)) && LLVMIsAPHINode(phi)) {
    unsigned from_side = LLVMGetIncomingBlock(phi, 0) == side ? 0 : 1;
    LLVMValueRef taken = LLVMGetIncomingValue(phi, from_side),
                 other = LLVMGetIncomingValue(phi, 1 - from_side),
                 selection = LLVMBuildSelect(builder, condition, is_side_first ? taken : other,
                                             is_side_first ? other : taken, "");
    LLVMReplaceAllUsesWith(phi, selection);
    LLVMInstructionEraseFromParent(phi);
  }
}

/* Replaces the branch at the end of a block by selects if it skips a cheap block. Returns whether
 * it was replaced. */
static bool flatten(LLVMBuilderRef builder, LLVMBasicBlockRef block)
{
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
  if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
  for (unsigned way = 0; way < 2; way++) {
    LLVMBasicBlockRef side = LLVMGetSuccessor(branch, way),
                      next = LLVMGetSuccessor(branch, 1 - way);
    if (side == next || count_ways(side) != 1 || target_of_side(side) != next ||
        count_ways(next) != 2 || next == block)
      continue;
    LLVMValueRef condition = LLVMGetCondition(branch), instruction;
    LLVMPositionBuilderBefore(builder, branch);
    while ((instruction = LLVMGetFirstInstruction(side)) != LLVMGetBasicBlockTerminator(side)) {
      LLVMInstructionRemoveFromParent(instruction);
      LLVMInsertIntoBuilder(builder, instruction);
    }
    replace_phis(builder, next, side, condition, way == 0);
    LLVMInstructionEraseFromParent(branch);
    LLVMPositionBuilderAtEnd(builder, block);
    LLVMBuildBr(builder, next);
    LLVMDeleteBasicBlock(side);
    return true;
  }
  return false;
}

void kg_flatten_branches(LLVMModuleRef module)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    LLVMBasicBlockRef block = LLVMIsDeclaration(f) ? NULL : LLVMGetFirstBasicBlock(f);
    for (; block; block = LLVMGetNextBasicBlock(block))
      while (flatten(builder, block)) {}
  }
  LLVMDisposeBuilder(builder);
}

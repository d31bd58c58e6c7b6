/* CPU: hides counters of few bits that wrap around from the loop vectorizer.
 *
 * The vectorizer assumes that an index such as `a + ((k + t) & 31)` grows by 1 as long as neither
 * the sum nor its last 5 bits wrap around. It tests both conditions before the loop. However, LLVM
 * 22 (SCEVWrapPredicate::implies) compares the starts and steps of two such conditions, but not
 * their widths. It concludes that the condition on the 32-bit sum implies the condition on the 5
 * bits, and omits the condition on the 5 bits. The loop then accesses the wrong elements. LLVM
 * compares conditions of equal width correctly.
 *
 * This file therefore prevents conditions with widths other than 32 and 64. If a value is extended
 * from such a width and can depend on a counter, this file inserts a freeze instruction, which
 * scalar evolution does not analyze. The freeze costs almost nothing: counters of few bits usually
 * do wrap around, and then the scalar version of the loop runs even if there is a vectorized
 * one. */
#include "target/host.h"

enum { MOST_STEPS = 64 };

static unsigned bits_of(LLVMValueRef value)
{
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* Returns the bits of a constant of at most 64 bits, and 0 for other values. */
static uint64_t constant_of(LLVMValueRef value)
{
  unsigned bits = bits_of(value);
  return bits && bits <= 64 && LLVMIsAConstantInt(value) ? LLVMConstIntGetZExtValue(value) : 0;
}

/* If scalar evolution treats the instruction as an extension of its first operand, returns the
 * width of the extended number, otherwise 0. For a mask, this is the distance from its first set
 * bit to its last set bit. For example, in `(2 * k) & 31` the mask 31 becomes 30, which keeps 4
 * bits of k. */
static unsigned kept_bits(LLVMValueRef instruction)
{
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  if (opcode == LLVMZExt || opcode == LLVMSExt) return bits_of(LLVMGetOperand(instruction, 0));
  if (opcode != LLVMAnd && opcode != LLVMAShr) return 0;
  uint64_t constant = constant_of(LLVMGetOperand(instruction, 1));
  if (!constant) return 0;
  if (opcode == LLVMAnd)
    return 64 - (unsigned)(__builtin_clzll(constant) + __builtin_ctzll(constant));
  unsigned bits = bits_of(instruction);
  return constant < bits ? bits - (unsigned)constant : 0;
}

static bool is_number_from_numbers(LLVMValueRef value)
{
  switch ((int)LLVMGetInstructionOpcode(value)) {
  case LLVMAdd:
  case LLVMSub:
  case LLVMMul:
  case LLVMShl:
  case LLVMOr:
  case LLVMXor:
  case LLVMTrunc:
  case LLVMZExt:
  case LLVMSExt:
  case LLVMPHI: return true;
  default: return false;
  }
}

/* Returns whether the value may depend on a loop's counter. Also returns true if the search takes
 * too many steps. */
static bool may_count(LLVMValueRef value)
{
  LLVMValueRef open[MOST_STEPS] = { value };
  unsigned count = 1;
  for (unsigned steps = 0; count; steps++) {
    LLVMValueRef at = open[--count];
    if (!LLVMIsAInstruction(at) || !bits_of(at) || !is_number_from_numbers(at)) continue;
    if (LLVMIsAPHINode(at)) return true;
    unsigned operands = (unsigned)LLVMGetNumOperands(at);
    if (steps == MOST_STEPS || count + operands > MOST_STEPS) return true;
    for (unsigned i = 0; i < operands; i++) open[count++] = LLVMGetOperand(at, i);
  }
  return false;
}

void kg_freeze_wrapping_counters(LLVMContextRef context, LLVMModuleRef module)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
        unsigned bits = kept_bits(i);
        if (bits <= 1 || bits == 32 || bits == 64 || !may_count(LLVMGetOperand(i, 0))) continue;
        LLVMPositionBuilderBefore(builder, i);
        LLVMSetOperand(i, 0, LLVMBuildFreeze(builder, LLVMGetOperand(i, 0), ""));
      }
  LLVMDisposeBuilder(builder);
}

/* CPU: counters that wrap around in few bits are hidden from the loop vectorizer.
 *
 * The vectorizer takes an index such as `a + ((k + t) & 31)` for one that grows by 1 as long as
 * neither the sum nor its last 5 bits wrap around, and asks for both in front of the loop. But LLVM
 * (22, SCEVWrapPredicate::implies) compares the starts and steps of such conditions whatever their
 * widths: the sum's condition, in 32 bits, counts as one that holds for the 5 bits, too, which is
 * then never asked for. The loop reads and writes where the program does not. Conditions of one
 * width are compared rightly. So those of other widths than 32 and 64 are kept from arising: what
 * is made wider from such a width, and counts, is frozen, which scalar evolution does not look
 * through. Indices of few bits really wrap around, so the loops that are lost are next to none. */
#include "target/host.h"

enum { MOST_STEPS = 64 };

static unsigned bits_of(LLVMValueRef value)
{
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* The constant's bits, or 0: it is none of at most 64. */
static uint64_t constant_of(LLVMValueRef value)
{
  unsigned bits = bits_of(value);
  return bits && bits <= 64 && LLVMIsAConstantInt(value) ? LLVMConstIntGetZExtValue(value) : 0;
}

/* How many bits of the instruction's first operand scalar evolution takes it to make wider; 0: it
 * does not. A mask is from its first to its last bit: `(2 * k) & 31` has become `(2 * k) & 30`, and
 * is 4 bits of k. */
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

/* Whether the value may be made of a loop's counter. A walk that does not end soon says so, too. */
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

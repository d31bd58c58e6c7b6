/* nvptx: computes 64-bit integers whose low word is 0 in 32 bits. */
#include "target/nvptx.h"

/* LLVM's passes turn `sext(trunc(x) * 3 + 1)` into a sum of multiples of 2^32 that is shifted, `(x
 * * c + d) >> 32` with c = 3 * 2^32 and d = 2^32. ptxas 13.0 computes the high word of such a sum
 *   by an IMAD.HI that adds a pair of uniform registers. If two such sums follow each other, ptxas
 *   writes the constant of the second sum to the register pair too late. The second sum then uses
 *   the constant of the first sum, and the kernel stores to the wrong element. This file computes
 *   the sums in 32 bits, which also takes fewer instructions.
 *
 * A multiple of 2^32 is rewritten to a normal form, `shl (zext high), 32`. An instruction whose
 * operands have this form is rewritten to the form as well, until nothing changes. Phis in loops
 * are not rewritten. */

enum { WORD = 32 };

static bool is_wide(LLVMValueRef value)
{
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 2 * WORD;
}

static bool is_operation(LLVMValueRef value, LLVMOpcode opcode)
{
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

static LLVMTypeRef word_type(LLVMValueRef wide)
{
  return LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(wide)));
}

/* Returns the high word of a constant multiple of 2^32, or of a value in normal form, and NULL for
 * other values. */
static LLVMValueRef find_high_word(LLVMValueRef wide)
{
  if (LLVMIsAConstantInt(wide)) {
    uint64_t number = LLVMConstIntGetZExtValue(wide);
    return (uint32_t)number ? NULL : LLVMConstInt(word_type(wide), number >> WORD, false);
  }
  if (!is_operation(wide, LLVMShl) || !LLVMIsAConstantInt(LLVMGetOperand(wide, 1)) ||
      LLVMConstIntGetZExtValue(LLVMGetOperand(wide, 1)) != WORD)
    return NULL;
  LLVMValueRef extended = LLVMGetOperand(wide, 0);
  if (!is_operation(extended, LLVMZExt)) return NULL;
  LLVMValueRef word = LLVMGetOperand(extended, 0);
  return LLVMTypeOf(word) == word_type(wide) ? word : NULL;
}

/* Returns the high word of x << n for n >= 32. */
static LLVMValueRef build_shifted_word(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef by = LLVMGetOperand(i, 1);
  uint64_t count = LLVMIsAConstantInt(by) ? LLVMConstIntGetZExtValue(by) : 0;
  if (count < WORD || count >= 2 * WORD) return NULL;
  LLVMTypeRef type = word_type(i);
  LLVMValueRef low = LLVMBuildTrunc(builder, LLVMGetOperand(i, 0), type, "");
  return count == WORD ? low
                       : LLVMBuildShl(builder, low, LLVMConstInt(type, count - WORD, false), "");
}

/* Returns the high word of x * c, where c is a multiple of 2^32. */
static LLVMValueRef build_multiplied_word(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef factor = LLVMGetOperand(i, 1);
  LLVMValueRef word = LLVMIsAConstantInt(factor) ? find_high_word(factor) : NULL;
  if (!word) return NULL;
  LLVMValueRef low = LLVMBuildTrunc(builder, LLVMGetOperand(i, 0), word_type(i), "");
  return LLVMBuildMul(builder, low, word, "");
}

/* Returns the high word of an operation on two multiples of 2^32. */
static LLVMValueRef build_joined_word(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef left = find_high_word(LLVMGetOperand(i, 0)),
               right = find_high_word(LLVMGetOperand(i, 1));
  return left && right ? LLVMBuildBinOp(builder, LLVMGetInstructionOpcode(i), left, right, "")
                       : NULL;
}

/* Returns the high word of the instruction if its low word is 0, otherwise NULL. */
static LLVMValueRef build_high_word(LLVMBuilderRef builder, LLVMValueRef i)
{
  if (find_high_word(i)) return NULL; /* it already has the normal form */
  switch ((int)LLVMGetInstructionOpcode(i)) {
  case LLVMShl: return build_shifted_word(builder, i);
  case LLVMMul: return build_multiplied_word(builder, i);
  case LLVMAdd:
  case LLVMSub:
  case LLVMAnd:
  case LLVMOr:
  case LLVMXor: return build_joined_word(builder, i);
  default: return NULL;
  }
}

/* Returns a right shift of a multiple of 2^32, computed without a 64-bit shift, and NULL for other
 * values. */
static LLVMValueRef build_lowered(LLVMBuilderRef builder, LLVMValueRef i)
{
  bool is_signed = LLVMGetInstructionOpcode(i) == LLVMAShr;
  if (!is_signed && LLVMGetInstructionOpcode(i) != LLVMLShr) return NULL;
  LLVMValueRef word = find_high_word(LLVMGetOperand(i, 0)), by = LLVMGetOperand(i, 1);
  if (!word || !LLVMIsAConstantInt(by)) return NULL;
  uint64_t count = LLVMConstIntGetZExtValue(by);
  if (count > WORD) return NULL;
  LLVMTypeRef type = LLVMTypeOf(i);
  LLVMValueRef wide =
    is_signed ? LLVMBuildSExt(builder, word, type, "") : LLVMBuildZExt(builder, word, type, "");
  return count == WORD ? wide
                       : LLVMBuildShl(builder, wide, LLVMConstInt(type, WORD - count, false), "");
}

/* Replaces the instruction by a computation in 32 bits if this is possible. Returns whether the
 * instruction was replaced. */
static bool compute_in_words(LLVMBuilderRef builder, LLVMValueRef i)
{
  if (!is_wide(i)) return false;
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef result = build_lowered(builder, i);
  LLVMValueRef word = result ? NULL : build_high_word(builder, i);
  if (word) {
    LLVMTypeRef type = LLVMTypeOf(i);
    result = LLVMBuildShl(builder, LLVMBuildZExt(builder, word, type, ""),
                          LLVMConstInt(type, WORD, false), "");
  }
  if (result) kg_replace(i, result);
  return result;
}

static bool compute_each_in_words(LLVMBuilderRef builder, LLVMValueRef function)
{
  bool is_changed = false;
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
    for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      is_changed |= compute_in_words(builder, i);
    }
  return is_changed;
}

void kg_compute_high_words(LLVMModuleRef module)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    while (compute_each_in_words(builder, f)) continue;
  LLVMDisposeBuilder(builder);
}

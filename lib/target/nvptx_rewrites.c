/* Rewrites a module after LLVM's passes and before code generation. This file replaces code that
 * LLVM or ptxas would translate incorrectly or inefficiently. */
#include <stdio.h>
#include <string.h>

#include "target/nvptx.h"

/* ---- flushing of f32 subnormals ---- */

/* Returns the variant of an intrinsic that flushes subnormal numbers to zero, or NULL if there is
 * none. libdevice calls such intrinsics, for example llvm.nvvm.sin.approx.f. */
static LLVMValueRef find_flushing(LLVMModuleRef module, LLVMValueRef function)
{
  static const char prefix[] = "llvm.nvvm.", word[] = ".ftz";
  size_t length;
  const char *name = LLVMGetValueName2(function, &length), *end = strrchr(name, '.');
  bool is_named = LLVMGetIntrinsicID(function) && !strncmp(name, prefix, sizeof prefix - 1);
  if (!is_named || (strcmp(end, ".f") != 0 && strcmp(end, ".f32") != 0) || strstr(name, word))
    return NULL;
  char text[64];
  int size = snprintf(text, sizeof text, "%.*s%s%s", (int)(end - name), name, word, end);
  unsigned id = size < (int)sizeof text ? LLVMLookupIntrinsicID(text, (size_t)size) : 0;
  if (!id) return NULL;
  LLVMTypeRef type = LLVMFloatTypeInContext(LLVMGetModuleContext(module));
  return LLVMGetIntrinsicDeclaration(module, id, &type, LLVMIntrinsicIsOverloaded(id) ? 1 : 0);
}

void kg_flush_subnormals(LLVMModuleRef module)
{
  static const char name[] = "denormal-fp-math-f32", value[] = "preserve-sign,preserve-sign";
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(LLVMGetModuleContext(module), name,
                                                         sizeof name - 1, value, sizeof value - 1);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    LLVMValueRef other = find_flushing(module, f);
    if (other) LLVMReplaceAllUsesWith(f, other);
    if (!LLVMIsDeclaration(f))
      LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
  }
}

/* ---- offsets ---- */

/* ---- offsets of elements ----
 *
 * Code generation without optimization extends a 32-bit index and shifts it. An address computed in
 * this way takes up to five instructions. If the offset is a wide product instead, ptxas computes
 * the whole address by a single instruction. */

static LLVMValueRef product_code(LLVMTypeRef function, bool is_signed, uint64_t size)
{
  char text[64];
  static const char constraints[] = "=l,r";
  int length = snprintf(text, sizeof text, "mul.wide.%c32 $0, $1, %llu;", is_signed ? 's' : 'u',
                        (unsigned long long)size);
  return LLVMGetInlineAsm(function, text, (size_t)length, constraints, sizeof constraints - 1,
                          false, false, LLVMInlineAsmDialectATT, false);
}

/* If the index is a left shift that does not overflow, for example the start of a group of
 * elements, returns the index before the shift and multiplies *size by the factor of the shift.
 * Returns any other index unchanged. */
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

/* Returns the product. It is built next to the extended index, so that all uses of the index can
 * use the same product. */
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

static LLVMValueRef rewrite_address(LLVMBuilderRef builder, LLVMValueRef address)
{
  LLVMValueRef next = LLVMGetNextInstruction(address);
  if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumIndices(address) != 1 ||
      LLVMGetTypeKind(LLVMTypeOf(address)) != LLVMPointerTypeKind ||
      !is_widened(LLVMGetOperand(address, 1)))
    return next;
  LLVMValueRef wide = LLVMGetOperand(address, 1);
  LLVMModuleRef module =
    LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(address)));
  uint64_t size =
    LLVMABISizeOfType(LLVMGetModuleDataLayout(module), LLVMGetGEPSourceElementType(address));
  if (size < 2 || size > INT32_MAX) return next;
  LLVMValueRef product = get_product(builder, wide, size);
  LLVMPositionBuilderBefore(builder, address);
  LLVMTypeRef byte = LLVMInt8TypeInContext(LLVMGetTypeContext(LLVMTypeOf(wide)));
  next = kg_replace(address,
                    LLVMBuildGEPWithNoWrapFlags(builder, byte, LLVMGetOperand(address, 0), &product,
                                                1, "", LLVMGEPGetNoWrapFlags(address)));
  if (LLVMGetFirstUse(wide)) return next;
  LLVMValueRef narrow = LLVMGetOperand(wide, 0);
  LLVMInstructionEraseFromParent(wide);
  if (LLVMIsAInstruction(narrow) && LLVMGetInstructionOpcode(narrow) == LLVMShl &&
      !LLVMGetFirstUse(narrow))
    LLVMInstructionEraseFromParent(narrow);
  return next;
}

void kg_widen_offsets(LLVMModuleRef module) { kg_rewrite_each(module, rewrite_address); }

/* ---- signs of zeros ----
 *
 * Code generation turns `x < 0 ? x : 0` into a minimum. For x = -0 the minimum is -0, but the
 * select gives 0. Code generation keeps the select if the zeros in the comparison and in the select
 * have different signs. So this file changes the comparison to `x < -0.0`, which is true for the
 * same x. For `x < -0.0 ? x : -0.0` and `x > 0 ? x : 0`, the minimum or maximum is correct, because
 * PTX orders -0 before 0. */

/* Returns -1 for a less-than fcmp, 1 for a greater-than fcmp, and 0 for any other instruction. */
static int get_direction(LLVMRealPredicate predicate)
{
  bool is_less = predicate == LLVMRealOLT || predicate == LLVMRealULT,
       is_greater = predicate == LLVMRealOGT || predicate == LLVMRealUGT;
  return is_greater - is_less;
}

static bool selects(LLVMValueRef condition, LLVMValueRef value)
{
  for (LLVMUseRef use = LLVMGetFirstUse(condition); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (LLVMIsASelectInst(user) &&
        (LLVMGetOperand(user, 1) == value || LLVMGetOperand(user, 2) == value))
      return true;
  }
  return false;
}

static LLVMValueRef keep_sign_of_zero(LLVMBuilderRef builder, LLVMValueRef i)
{
  (void)builder;
  int direction = LLVMIsAFCmpInst(i) ? get_direction(LLVMGetFCmpPredicate(i)) : 0;
  for (unsigned side = 0; direction && side < 2; side++) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, 0));
    bool is_negative = (direction < 0) == (side == 1);
    LLVMValueRef right = LLVMConstReal(type, is_negative ? -0.0 : 0.0),
                 wrong = LLVMConstReal(type, is_negative ? 0.0 : -0.0);
    if (LLVMGetOperand(i, side) == wrong && selects(i, wrong)) LLVMSetOperand(i, side, right);
  }
  return LLVMGetNextInstruction(i);
}

/* ---- negation of 16-bit numbers ----
 *
 * ptxas 13.0 computes neg.s16 in 32 bits and omits the conversion that follows, so that the
 * negation of the minimum, -32768, becomes 32768 in 32 bits. This file negates the number in 32
 * bits. The zero from which the number is subtracted comes from inline assembly, which LLVM cannot
 * analyze; otherwise LLVM would use neg.s16 again. */

static LLVMValueRef negate_in_32_bits(LLVMBuilderRef builder, LLVMValueRef x)
{
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x))),
              function = LLVMFunctionType(i32, NULL, 0, false);
  static const char text[] = "mov.b32 $0, 0;", constraints[] = "=r";
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, sizeof text - 1, constraints, sizeof constraints - 1, false,
                     false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef zero = LLVMBuildCall2(builder, function, code, NULL, 0, ""),
               wide = LLVMBuildSExt(builder, x, i32, "");
  return LLVMBuildTrunc(builder, LLVMBuildSub(builder, zero, wide, ""), LLVMTypeOf(x), "");
}

static bool is_negated_word(LLVMValueRef i)
{
  if (LLVMGetInstructionOpcode(i) != LLVMSub) return false;
  LLVMTypeRef type = LLVMTypeOf(i);
  LLVMValueRef left = LLVMGetOperand(i, 0);
  return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 16 &&
         LLVMIsAConstantInt(left) && LLVMConstIntGetZExtValue(left) == 0;
}

static LLVMValueRef widen_negation(LLVMBuilderRef builder, LLVMValueRef i)
{
  if (!is_negated_word(i)) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  return kg_replace(i, negate_in_32_bits(builder, LLVMGetOperand(i, 1)));
}

/* ---- clamping ----
 *
 * ptxas 13.0 turns `max(min(x, 1), 0)` into a single saturating instruction, which returns 0 for
 * NaN, whereas the minimum of NaN and 1 is 1. So this file replaces the outer operation by a
 * comparison and a select. A conversion to an unsigned integer is treated like a maximum, because
 * its code begins with a maximum with 0. */

static bool is_constant(LLVMValueRef value, double number)
{
  LLVMBool loses;
  return LLVMIsAConstantFP(value) && LLVMConstRealGetDouble(value, &loses) == number;
}

static bool is_call_of(LLVMValueRef value, const char *name)
{
  LLVMValueRef called = LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
  if (!called || !LLVMGetIntrinsicID(called)) return false;
  size_t length;
  return strncmp(LLVMGetValueName2(called, &length), name, strlen(name)) == 0;
}

/* Returns whether the value is min(x, 1), as a call or as a select. Such a value is at most 1, or
 * NaN. */
static bool is_at_most_one(LLVMValueRef value)
{
  if (is_call_of(value, "llvm.minnum."))
    return is_constant(LLVMGetOperand(value, 0), 1) || is_constant(LLVMGetOperand(value, 1), 1);
  if (!LLVMIsASelectInst(value)) return false;
  LLVMValueRef condition = LLVMGetOperand(value, 0), first = LLVMGetOperand(value, 1),
               second = LLVMGetOperand(value, 2);
  if (!LLVMIsAFCmpInst(condition) || !is_constant(LLVMGetOperand(condition, 1), 1)) return false;
  LLVMValueRef x = LLVMGetOperand(condition, 0);
  switch ((int)LLVMGetFCmpPredicate(condition)) {
  case LLVMRealOLT:
  case LLVMRealULT:
  case LLVMRealOLE:
  case LLVMRealULE: return first == x && is_constant(second, 1);
  case LLVMRealOGT:
  case LLVMRealUGT:
  case LLVMRealOGE:
  case LLVMRealUGE: return second == x && is_constant(first, 1);
  default: return false;
  }
}

/* Finds max(m, 0), or a conversion of m to an unsigned integer, where m is at most 1. Returns m, or
 * NULL if the instruction is something else. */
static LLVMValueRef find_clamped(LLVMValueRef i)
{
  if (is_call_of(i, "llvm.fptoui.sat."))
    return is_at_most_one(LLVMGetOperand(i, 0)) ? LLVMGetOperand(i, 0) : NULL;
  if (!is_call_of(i, "llvm.maxnum.")) return NULL;
  for (unsigned side = 0; side < 2; side++)
    if (is_constant(LLVMGetOperand(i, side), 0) && is_at_most_one(LLVMGetOperand(i, 1 - side)))
      return LLVMGetOperand(i, 1 - side);
  return NULL;
}

static LLVMValueRef keep_number_of_clamp(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef clamped = find_clamped(i);
  if (!clamped) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(clamped)),
               is_above = LLVMBuildFCmp(builder, LLVMRealOGE, clamped, zero, ""),
               result = LLVMBuildSelect(builder, is_above, clamped, zero, "");
  if (LLVMTypeOf(i) != LLVMTypeOf(clamped))
    result = LLVMBuildFPToUI(builder, result, LLVMTypeOf(i), "");
  return kg_replace(i, result);
}

/* ---- minima and maxima of three integers ----
 *
 * ptxas 12.9 and 13.0 turn `min(min(x, -y), z)` into a single instruction on sm_90 and can lose the
 * negation (13.5 is correct). To prevent this, this file adds a byte permutation that changes
 * nothing and that ptxas does not analyze. */

static bool is_negation(LLVMValueRef value)
{
  if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMSub) return false;
  LLVMValueRef from = LLVMGetOperand(value, 0);
  return LLVMIsAConstantInt(from) && LLVMIsNull(from);
}

/* Returns whether the value is an instruction that may only change an integer's width. Code
 * generation can remove such instructions, so the searches below continue at their operands. */
static bool is_resized(LLVMValueRef value)
{
  if (!LLVMIsAInstruction(value)) return false;
  switch ((int)LLVMGetInstructionOpcode(value)) {
  case LLVMShl:
  case LLVMAShr:
  case LLVMAnd:
  case LLVMSExt:
  case LLVMZExt:
  case LLVMTrunc:
  case LLVMFreeze: return true;
  default: return false;
  }
}

/* Returns whether a call of the intrinsic uses the value, possibly after a change of width. */
static bool is_used_by(LLVMValueRef value, const char *name, unsigned steps)
{
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (is_call_of(user, name)) return true;
    if (steps && is_resized(user) && is_used_by(user, name, steps - 1)) return true;
  }
  return false;
}

/* Returns whether the value comes from a call of the intrinsic, possibly after changes of width.
 * The number of steps is limited, because an instruction in a block that is never reached may
 * depend on itself. */
static bool is_made_by(LLVMValueRef value, const char *name)
{
  enum { MOST_STEPS = 16 };
  for (int i = 0; i < MOST_STEPS && is_resized(value); i++) value = LLVMGetOperand(value, 0);
  return is_call_of(value, name);
}

/* Returns whether an operand or a user of the call is a call of the same intrinsic. */
static bool is_of_three(LLVMValueRef i, const char *name)
{
  enum { MOST_STEPS = 4 };
  return is_made_by(LLVMGetOperand(i, 0), name) || is_made_by(LLVMGetOperand(i, 1), name) ||
         is_used_by(i, name, MOST_STEPS);
}

static LLVMValueRef build_hidden(LLVMBuilderRef builder, LLVMValueRef x)
{
  static const char text[] = "prmt.b32 $0, $1, 0, 0x3210;", constraints[] = "=r,r";
  LLVMTypeRef type = LLVMTypeOf(x), i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
  LLVMTypeRef function = LLVMFunctionType(i32, &i32, 1, false);
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, sizeof text - 1, constraints, sizeof constraints - 1, false,
                     false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef bits = LLVMBuildZExt(builder, x, i32, "");
  return LLVMBuildTrunc(builder, LLVMBuildCall2(builder, function, code, &bits, 1, ""), type, "");
}

static LLVMValueRef keep_negation(LLVMBuilderRef builder, LLVMValueRef i)
{
  const char *name = is_call_of(i, "llvm.smin.")   ? "llvm.smin."
                     : is_call_of(i, "llvm.smax.") ? "llvm.smax."
                                                   : NULL;
  bool is_number = name && LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMIntegerTypeKind &&
                   LLVMGetIntTypeWidth(LLVMTypeOf(i)) <= 32;
  if (!is_number || !is_of_three(i, name)) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  for (unsigned side = 0; side < 2; side++) {
    LLVMValueRef operand = LLVMGetOperand(i, side);
    if (is_negation(operand)) LLVMSetOperand(i, side, build_hidden(builder, operand));
  }
  return LLVMGetNextInstruction(i);
}

/* ---- votes on single bits ----
 *
 * Code generation turns `x & 4 != 0` into a shift, and `x & 4 == 0` into a comparison. ptxas does
 * not recognize that the second is the negation of the first. If a vote and a select test the same
 * bit, two additional instructions are needed for each bit. So this file replaces the comparison by
 * inline assembly. The vote and the select then test the same operand, and ptxas can test adjacent
 * bits with one instruction. */

static bool is_voted_on(LLVMValueRef condition)
{
  for (LLVMUseRef use = LLVMGetFirstUse(condition); use; use = LLVMGetNextUse(use))
    if (is_call_of(LLVMGetUser(use), "llvm.nvvm.vote.")) return true;
  return false;
}

/* If the comparison with 0 tests a single bit of 32 or 64 bits, returns the value that it compares,
 * otherwise NULL. */
static LLVMValueRef find_tested_bit(LLVMValueRef i)
{
  if (!LLVMIsAICmpInst(i) || !LLVMIsAConstantInt(LLVMGetOperand(i, 1)) ||
      LLVMConstIntGetZExtValue(LLVMGetOperand(i, 1)) != 0)
    return NULL;
  LLVMValueRef bit = LLVMGetOperand(i, 0);
  LLVMIntPredicate relation = LLVMGetICmpPredicate(i);
  if ((relation != LLVMIntNE && relation != LLVMIntEQ) || !LLVMIsAInstruction(bit) ||
      LLVMGetInstructionOpcode(bit) != LLVMAnd || !LLVMIsAConstantInt(LLVMGetOperand(bit, 1)))
    return NULL;
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bit));
  if (width != 32 && width != 64) return NULL;
  uint64_t mask = LLVMConstIntGetZExtValue(LLVMGetOperand(bit, 1));
  return mask && !(mask & (mask - 1)) ? bit : NULL;
}

static LLVMValueRef build_bit_test(LLVMBuilderRef builder, LLVMValueRef bit)
{
  bool is_wide = LLVMGetIntTypeWidth(LLVMTypeOf(bit)) == 64;
  const char *text = is_wide ? "setp.ne.b64 $0, $1, 0;" : "setp.ne.b32 $0, $1, 0;",
             *constraints = is_wide ? "=b,l" : "=b,r";
  LLVMTypeRef from = LLVMTypeOf(bit), i1 = LLVMInt1TypeInContext(LLVMGetTypeContext(from)),
              function = LLVMFunctionType(i1, &from, 1, false);
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false, false,
                     LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(builder, function, code, &bit, 1, "");
}

/* Replaces the condition's negations by `other`. */
static void replace_negations(LLVMValueRef condition, LLVMValueRef other)
{
  for (LLVMUseRef use = LLVMGetFirstUse(condition), next; use; use = next) {
    next = LLVMGetNextUse(use);
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAInstruction(user) || LLVMGetInstructionOpcode(user) != LLVMXor ||
        !LLVMIsAConstantInt(LLVMGetOperand(user, 1)) ||
        !LLVMConstIntGetZExtValue(LLVMGetOperand(user, 1)))
      continue;
    LLVMReplaceAllUsesWith(user, other);
    LLVMInstructionEraseFromParent(user);
  }
}

static LLVMValueRef share_test_of_vote(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef bit = find_tested_bit(i);
  if (!bit || !is_voted_on(i)) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef is_set = build_bit_test(builder, bit),
               is_clear = LLVMBuildICmp(builder, LLVMIntEQ, bit, LLVMGetOperand(i, 1), "");
  bool is_negated = LLVMGetICmpPredicate(i) == LLVMIntEQ;
  replace_negations(i, is_negated ? is_set : is_clear);
  return kg_replace(i, is_negated ? is_clear : is_set);
}

/* ---- votes on combined conditions ----
 *
 * ptxas in driver 580 can crash with SIGSEGV if a vote on a predicate from and, or, xor follows a
 * reciprocal, quotient or square root (ptxas 13.0 does not crash). So this file changes the vote's
 * operand: the lane selects its own bit if the predicate is true and 0 if it is false, and the vote
 * tests whether the selected value is nonzero. ptxas does not know that the bit is never 0. The
 * change costs two additional instructions. */

static bool is_made_of_conditions(LLVMValueRef value)
{
  if (!LLVMIsAInstruction(value)) return false;
  switch ((int)LLVMGetInstructionOpcode(value)) {
  case LLVMSelect:
  case LLVMPHI: return true;
  case LLVMAnd:
  case LLVMOr:
  case LLVMXor: return LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 1;
  case LLVMZExt:
  case LLVMSExt: return LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0))) == 1;
  default: return false;
  }
}

/* Returns whether code generation would compute the condition with and, or, xor. Comparisons of
 * such values count, too. */
static bool is_of_several(LLVMValueRef condition)
{
  if (!LLVMIsAICmpInst(condition)) return is_made_of_conditions(condition);
  return is_made_of_conditions(LLVMGetOperand(condition, 0)) ||
         is_made_of_conditions(LLVMGetOperand(condition, 1));
}

static LLVMValueRef read_own_bit(LLVMBuilderRef builder, LLVMValueRef before)
{
  static const char name[] = "llvm.nvvm.read.ptx.sreg.lanemask.eq";
  LLVMModuleRef module =
    LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(before)));
  unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
  LLVMValueRef read = LLVMGetIntrinsicDeclaration(module, id, NULL, 0);
  return LLVMBuildCall2(builder, LLVMGlobalGetValueType(read), read, NULL, 0, "");
}

static LLVMValueRef vote_on_own_bit(LLVMBuilderRef builder, LLVMValueRef i)
{
  enum { CONDITION = 1 };
  if (!is_call_of(i, "llvm.nvvm.vote.ballot.") || !is_of_several(LLVMGetOperand(i, CONDITION)))
    return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef own = read_own_bit(builder, i), zero = LLVMConstNull(LLVMTypeOf(own)),
               bit = LLVMBuildSelect(builder, LLVMGetOperand(i, CONDITION), own, zero, "");
  LLVMSetOperand(i, CONDITION, LLVMBuildICmp(builder, LLVMIntNE, bit, zero, ""));
  return LLVMGetNextInstruction(i);
}

void kg_rewrite_for_ptx(LLVMModuleRef module)
{
  kg_keep_float_bits(module);
  kg_compute_high_words(module);
  kg_rewrite_each(module, keep_sign_of_zero);
  kg_rewrite_each(module, widen_negation);
  kg_rewrite_each(module, keep_number_of_clamp);
  kg_rewrite_each(module, keep_negation);
  kg_rewrite_each(module, share_test_of_vote);
  kg_rewrite_each(module, vote_on_own_bit);
}

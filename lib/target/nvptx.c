/* The nvptx target: a typed kernel to PTX.
 *
 *   lower (lib/lower) -> link the math functions called -> optimize (a short pipeline) -> emit
 *
 * LLVM ends the process on what a target cannot do, so everything of that kind is refused here
 * first. */
#include "target/nvptx.h"

#include <stdio.h>
#include <stdlib.h>

#include "target/target.h"

/* nvptx: architectures and PTX versions. LLVM ends the process on those that it does not know or
 * that do not fit, so a table of our own refuses them first. */

/* Ascending; those without a suffix run on everything newer of their kind. */
static const kg_nvptx_arch arches[] = {
  { 75, 0, 63 },    { 80, 0, 70 },    { 86, 0, 71 },    { 87, 0, 74 },    { 88, 0, 90 },
  { 89, 0, 78 },    { 90, 0, 78 },    { 90, 'a', 80 },  { 100, 0, 86 },   { 100, 'a', 86 },
  { 100, 'f', 88 }, { 101, 0, 86 },   { 103, 0, 88 },   { 103, 'a', 88 }, { 103, 'f', 88 },
  { 110, 0, 90 },   { 110, 'a', 90 }, { 110, 'f', 90 }, { 120, 0, 87 },   { 120, 'a', 87 },
  { 120, 'f', 88 }, { 121, 0, 88 },   { 121, 'a', 88 }, { 121, 'f', 88 },
};
enum { ARCH_COUNT = sizeof arches / sizeof *arches };

/* The versions that LLVM can write, ascending. */
static const uint32_t ptx_versions[] = { 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                                         78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 };
enum { PTX_COUNT = sizeof ptx_versions / sizeof *ptx_versions };

static const kg_nvptx_arch *find_arch(uint32_t arch, char suffix)
{
  for (int i = 0; i < ARCH_COUNT; i++)
    if (arches[i].arch == arch && arches[i].suffix == suffix) return &arches[i];
  return NULL;
}

/* Newer than the table: the newest without suffix that the PTX version allows. */
static const kg_nvptx_arch *newest_arch(uint32_t ptx_limit)
{
  const kg_nvptx_arch *best = NULL;
  for (int i = 0; i < ARCH_COUNT; i++)
    if (!arches[i].suffix && (!ptx_limit || arches[i].least_ptx <= ptx_limit)) best = &arches[i];
  return best;
}

static uint32_t highest_version(uint32_t limit)
{
  uint32_t best = 0;
  for (int i = 0; i < PTX_COUNT; i++)
    if (ptx_versions[i] <= limit) best = ptx_versions[i];
  return best;
}

static const kg_nvptx_arch *select_arch(kt_compilation *c)
{
  const kj_target *target = &c->request->target;
  const char suffix[2] = { target->suffix, 0 };
  const kg_nvptx_arch *row = find_arch(target->arch, target->suffix);
  if (!row && target->arch > arches[ARCH_COUNT - 1].arch && !target->suffix)
    row = newest_arch(target->ptx_version);
  if (!row)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "unknown architecture sm_%u%s: kjit compiles for sm_75 and newer", target->arch,
            suffix);
  if (target->ptx_version && highest_version(target->ptx_version) < row->least_ptx)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "sm_%u%s needs PTX %u.%u; PTX %u.%u was asked for", row->arch, suffix,
            row->least_ptx / 10, row->least_ptx % 10, target->ptx_version / 10,
            target->ptx_version % 10);
  return row;
}

static bool has_recursion(const kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    if (c->instances.items[i]->is_recursive) return true;
  return false;
}

/* At most: which parameters the kernel needs is found later. */
static uint64_t count_parameter_bytes(const kt_compilation *c)
{
  enum { OTHERS = 1024 /* of shared arrays, failures and lines that are printed */ };
  uint64_t bytes = OTHERS + (c->module->has_tensor_copies ? KJ_MOST_MAPS * KJ_MAP_BYTES : 0);
  for (uint32_t i = 0; i < c->request->signature->count; i++) {
    const kj_argument *argument = &c->request->signature->arguments[i];
    const ki_type_info *info = ki_type(c->types, argument->type);
    bool is_array = argument->kind == KJ_ARGUMENT_ARRAY;
    bytes += is_array ? 8 + 16 * (uint64_t)info->rank : info->size_bytes + 8;
  }
  return bytes;
}

/* stacksave */
enum { STACK_PTX = 73 };

/* Built-ins and facts of the language need PTX 6.2 at most, which every architecture here has; the
 * labels in the sections of debug information need 7.5. */
kg_nvptx_choice kg_choose_nvptx(kt_compilation *c)
{
  enum { LEAST_FOR_DEBUG = 75 };
  const kg_nvptx_arch *row = select_arch(c);
  uint32_t limit = c->request->target.ptx_version, least = row->least_ptx;
  bool is_full = c->request->debug == KJIT_DEBUG_FULL;
  if (is_full && least < LEAST_FOR_DEBUG) least = LEAST_FOR_DEBUG;
  if (is_full && limit && highest_version(limit) < LEAST_FOR_DEBUG)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "full debug information needs PTX 7.5; PTX %u.%u was asked for", limit / 10,
            limit % 10);
  if (has_recursion(c) && least < STACK_PTX) least = STACK_PTX;
  if (c->least_ptx > least) least = c->least_ptx; /* a lower limit was refused by name */
  if (!limit && least < KJ_LARGE_PARAMETER_PTX &&
      count_parameter_bytes(c) > KJ_SMALL_PARAMETER_BYTES)
    least = KJ_LARGE_PARAMETER_PTX;
  if (limit && highest_version(limit) < least)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "recursion needs PTX %u.%u (a driver for CUDA 11.3); PTX %u.%u was asked for",
            least / 10, least % 10, limit / 10, limit % 10);
  return (kg_nvptx_choice){ .arch = row, .ptx = limit ? highest_version(limit) : least };
}

void kg_check_nvptx(kt_compilation *c)
{
  const kg_nvptx_arch *row = select_arch(c);
  if (row->arch < c->request->target.arch)
    kt_warn(c, (kj_location){ 0 }, KJIT_SEVERITY_REMARK,
            "sm_%u is newer than this kjit knows: compiled for sm_%u", c->request->target.arch,
            row->arch);
}

/* nvptx: offsets of elements. Code generation without optimization widens an index of 32 bits and
 * shifts it; of a wide product the assembler makes one instruction with the sum of pointer and
 * offset, where an address takes up to five otherwise. */

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

void kg_widen_offsets(LLVMModuleRef module)
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

/* nvptx: signs of zeros. Code generation makes `x < 0 ? x : 0` a minimum, which gives -0 of -0 and
 * 0, where the select gives 0. It does not where the zeros of comparison and select have different
 * signs, and `x < -0.0` is true of the same x. With `x < -0.0 ? x : -0.0` and `x > 0 ? x : 0` it
 * may do so: the minimum and maximum of PTX take -0 for less than 0, and are what the select gives.
 */

/* Of fcmp: -1 for <, 1 for >, else 0. */
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

static void rewrite_comparison(LLVMValueRef comparison)
{
  int direction = get_direction(LLVMGetFCmpPredicate(comparison));
  LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(comparison, 0));
  for (unsigned side = 0; direction && side < 2; side++) {
    bool is_negative = (direction < 0) == (side == 1);
    LLVMValueRef right = LLVMConstReal(type, is_negative ? -0.0 : 0.0),
                 wrong = LLVMConstReal(type, is_negative ? 0.0 : -0.0);
    if (LLVMGetOperand(comparison, side) == wrong && selects(comparison, wrong))
      LLVMSetOperand(comparison, side, right);
  }
}

static void keep_signs_of_zeros(LLVMModuleRef module)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (LLVMIsAFCmpInst(i)) rewrite_comparison(i);
}

/* nvptx: negated numbers of 16 bits. ptxas 13.0 computes neg.s16 in 32 bits and leaves out the
 * conversion that follows it, so that the minimum becomes a positive number. They are negated in 32
 * bits; a zero that LLVM does not know keeps it from making neg.s16 of that, too. */

static LLVMValueRef negate_in_32_bits(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef x)
{
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetModuleContext(module)),
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

static void widen_negations(LLVMModuleRef module)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (!is_negated_word(i)) continue;
        LLVMPositionBuilderBefore(builder, i);
        LLVMReplaceAllUsesWith(i, negate_in_32_bits(module, builder, LLVMGetOperand(i, 1)));
        LLVMInstructionEraseFromParent(i);
      }
  LLVMDisposeBuilder(builder);
}

/* nvptx: numbers of clamps. ptxas 13.0 makes `max(min(x, 1), 0)` one instruction that saturates to
 * [0, 1], which gives 0 of a NaN, where the minimum of a NaN and 1 is 1. The outer one becomes a
 * comparison and a select; the conversion to an unsigned integer, whose code starts with a maximum
 * with 0, too. */

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

/* min(x, 1), as a call or as a select: at most 1, or a NaN. */
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

/* The operand of max(m, 0) or of the conversion of m to an unsigned integer where m is at most 1;
 * NULL: it is something else. */
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

static void keep_numbers_of_clamps(LLVMModuleRef module)
{
  LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
         block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        LLVMValueRef clamped = find_clamped(i);
        if (!clamped) continue;
        LLVMPositionBuilderBefore(b, i);
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(clamped)),
                     is_above = LLVMBuildFCmp(b, LLVMRealOGE, clamped, zero, ""),
                     result = LLVMBuildSelect(b, is_above, clamped, zero, "");
        if (LLVMTypeOf(i) != LLVMTypeOf(clamped))
          result = LLVMBuildFPToUI(b, result, LLVMTypeOf(i), "");
        LLVMReplaceAllUsesWith(i, result);
        LLVMInstructionEraseFromParent(i);
      }
  LLVMDisposeBuilder(b);
}

/* nvptx: bits that are voted on. Code generation makes `x & 4 != 0` a shift, `x & 4 == 0` a
 * comparison, and ptxas does not see that one is the other's negation: two instructions more for
 * each bit where a vote and a select test it. The comparison is written as text, so that ptxas sees
 * the same two operands in both, and tests neighbouring bits by one instruction. */

static bool is_voted_on(LLVMValueRef condition)
{
  for (LLVMUseRef use = LLVMGetFirstUse(condition); use; use = LLVMGetNextUse(use))
    if (is_call_of(LLVMGetUser(use), "llvm.nvvm.vote.")) return true;
  return false;
}

/* What is compared with 0 where that tests one bit of 32 or 64; NULL: something else. */
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

/* Its negations become `other`. */
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

static void share_tests_of_votes(LLVMModuleRef module)
{
  LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
         block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        LLVMValueRef bit = find_tested_bit(i);
        if (!bit || !is_voted_on(i)) continue;
        LLVMPositionBuilderBefore(b, i);
        LLVMValueRef is_set = build_bit_test(b, bit),
                     is_clear = LLVMBuildICmp(b, LLVMIntEQ, bit, LLVMGetOperand(i, 1), "");
        bool is_negated = LLVMGetICmpPredicate(i) == LLVMIntEQ;
        replace_negations(i, is_negated ? is_set : is_clear);
        LLVMReplaceAllUsesWith(i, is_negated ? is_clear : is_set);
        next = LLVMGetNextInstruction(i); /* a negation that stood here is gone */
        LLVMInstructionEraseFromParent(i);
      }
  LLVMDisposeBuilder(b);
}

/* ---- the state ---- */

struct kg_nvptx {
  kg_machines machines;
  kg_nvptx_library library;
};

kjit_status kg_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics,
                            kg_nvptx **nvptx)
{
  *nvptx = NULL;
  kg_start_llvm();
  kg_nvptx *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = kg_open_library(&created->library, libdevice_path, diagnostics);
  if (status) {
    free(created);
    return status;
  }
  kg_init_machines(&created->machines);
  *nvptx = created;
  return KJIT_OK;
}

void kg_destroy_nvptx(kg_nvptx *nvptx)
{
  if (!nvptx) return;
  kg_free_machines(&nvptx->machines);
  kg_close_library(&nvptx->library);
  free(nvptx);
}

/* ---- one emission ---- */

typedef struct nvptx_emission {
  kg_emission e;
  kg_nvptx *nvptx;
  kg_nvptx_choice choice;
  char cpu[16], features[16];
  kl_nvptx_lowering state;
  bool is_large; /* see kg_module_size */
} nvptx_emission;

/* ---- pipelines ----
 * default<O3> takes two to three times as long and gives no better code for kernels: the trees were
 * inlined already, and ptxas optimizes once more.
 *
 * A kernel without loops of its own and without shared memory (element-wise ones are) gains nothing
 * from code generation's optimizing level either: what it needs of it, the joining of loads and
 * stores, is in the pipeline, wide products for offsets are made by nvptx.c, and emission
 * then takes a third of the time. So with f32 functions of a library but for those with loops: the
 * machine code of each was compared, with and without. */

#define EARLY "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
/* The vectorizer joins accesses where the first is known to be aligned. What `assume` says of a
 * generic pointer is found before pointers are told to be global, what the parameters say of
 * arrays after it. */
#define ALIGNMENT "infer-alignment,infer-address-spaces,infer-alignment"
#define LOOPS \
  "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),sroa,gvn,dse,loop-" \
  "unroll<O2>," ALIGNMENT ",instcombine<no-verify-fixpoint>,simplifycfg"
#define STRAIGHT \
  "loop-mssa(loop-rotate,licm)," ALIGNMENT ",separate-const-offset-from-gep,early-cse<memssa>," \
  "load-store-vectorizer,nvptx-tag-invariant-loads"
#define LIBRARY "nvvm-reflect,always-inline,"

static bool is_straight(const nvptx_emission *own)
{
  const kl_lowering *l = &own->e.lowering;
  return !l->has_loops && !own->state.has_branches && !l->pending.count && !l->shared_places.count;
}

static void optimize(kg_emission *e)
{
  nvptx_emission *own = (nvptx_emission *)e;
  static const char *const pipelines[2][2] = {
    /* [is_straight][calls_library] */
    { "function(" EARLY "," LOOPS "),globaldce",
      LIBRARY "function(" EARLY "," LOOPS "),globaldce" },
    { "function(" EARLY "," STRAIGHT ")", LIBRARY "function(" EARLY "," STRAIGHT "),globaldce" },
  };
  bool has_externs = kg_link_library(e, &own->nvptx->library, &own->state, own->choice.arch->arch);
  const char *pipeline = pipelines[is_straight(own)][own->state.calls_library];
  own->is_large = kg_measure_module(e->module) == KJ_SIZE_LARGE;
  if (own->is_large) pipeline = LIBRARY "function(" EARLY ",gvn),globaldce";
  if (kg_is_unoptimized(e)) pipeline = LIBRARY "globaldce";
  if (has_externs) pipeline = kj_format(e->c->arena, "cgscc(inline),%s", pipeline);
  kg_run_passes(e->c, e->module, e->machine->machine, pipeline, &e->errors);
  keep_signs_of_zeros(e->module);
  widen_negations(e->module);
  keep_numbers_of_clamps(e->module);
  share_tests_of_votes(e->module);
}

/* codegen level 0, see above */
static bool is_emitted_unoptimized(const kg_emission *e)
{
  const nvptx_emission *own = (const nvptx_emission *)e;
  return is_straight(own) || own->is_large;
}

static void prepare_unoptimized(kg_emission *e) { kg_widen_offsets(e->module); }

void kg_emit_nvptx(kg_nvptx *nvptx, kt_compilation *c)
{
  static const kg_emission_steps steps = { .lowering = &kl_nvptx_lowering_target,
                                           .optimize = optimize,
                                           .is_emitted_unoptimized = is_emitted_unoptimized,
                                           .prepare_unoptimized = prepare_unoptimized };
  if (c->request->stage == KJIT_STAGE_ASM || c->request->stage == KJIT_STAGE_OBJECT)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "GPU targets have no stage `%s`; PTX is the last one",
            c->request->stage == KJIT_STAGE_ASM ? "asm" : "object");
  nvptx_emission *own = KJ_NEW(c->arena, nvptx_emission);
  own->nvptx = nvptx;
  own->choice = kg_choose_nvptx(c);
  c->ptx = own->choice.ptx;
  kg_find_library(&nvptx->library);
  own->state.library = nvptx->library.kind;
  snprintf(own->cpu, sizeof own->cpu, "sm_%u%.1s", own->choice.arch->arch,
           (const char[2]){ own->choice.arch->suffix, 0 });
  snprintf(own->features, sizeof own->features, "+ptx%u", own->choice.ptx);
  own->e =
    (kg_emission){ .c = c, .steps = &steps, .state = &own->state, .machines = &nvptx->machines };
  own->e.kind = (kg_machine_kind){ .triple = "nvptx64-nvidia-cuda",
                                   .cpu = own->cpu,
                                   .features = own->features,
                                   .level = LLVMCodeGenLevelDefault,
                                   .relocation = LLVMRelocDefault,
                                   .model = LLVMCodeModelDefault };
  kg_emit_code(&own->e);
}

/* CPU: analyzes the addresses in a loop that is proposed as parallel, and expresses them as linear
 * functions of the iteration number if possible. The head of host_parallel.c describes the
 * requirements and guarantees of this analysis. */
#include "target/host_parallel.h"

enum { MOST_DEPTH = 24 };

static kg_linear lost(void) { return (kg_linear){ .kind = KJ_LINEAR_LOST }; }

static kg_linear term_of(LLVMValueRef value)
{
  return (kg_linear){ .term_count = 1, .terms = { { value, 1 } } };
}

static kg_linear unknown(LLVMValueRef value)
{
  kg_linear x = term_of(value);
  x.kind = KJ_LINEAR_UNKNOWN;
  return x;
}

static kg_linear scaled(kg_linear x, int64_t by)
{
  bool is_over = __builtin_mul_overflow(x.constant, by, &x.constant) ||
                 __builtin_mul_overflow(x.step, by, &x.step);
  for (uint32_t i = 0; i < x.term_count; i++)
    is_over |= __builtin_mul_overflow(x.terms[i].scale, by, &x.terms[i].scale);
  return is_over ? lost() : x;
}

static kg_linear sum(kg_linear x, kg_linear y)
{
  if (y.kind > x.kind) x.kind = y.kind;
  if (x.kind == KJ_LINEAR_LOST) return x;
  bool is_over = __builtin_add_overflow(x.constant, y.constant, &x.constant) ||
                 __builtin_add_overflow(x.step, y.step, &x.step);
  for (uint32_t i = 0; i < y.term_count; i++) {
    uint32_t k = 0;
    while (k < x.term_count && x.terms[k].value != y.terms[i].value) k++;
    if (k == KJ_MOST_TERMS) return lost();
    if (k == x.term_count) x.terms[x.term_count++] = (struct term){ y.terms[i].value, 0 };
    is_over |= __builtin_add_overflow(x.terms[k].scale, y.terms[i].scale, &x.terms[k].scale);
  }
  return is_over ? lost() : x;
}

static kg_linear evaluate(const kg_loop_view *v, LLVMValueRef value, uint32_t depth);

/* Evaluates a phi that is increased by a constant in each iteration. */
static kg_linear evaluate_counter(const kg_loop_view *v, LLVMValueRef phi)
{
  KJ_ASSERT(LLVMIsAPHINode(phi));
  if (LLVMGetInstructionParent(phi) != v->header) return unknown(phi);
  for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
    if (LLVMGetIncomingBlock(phi, i) != v->latch) continue;
    LLVMValueRef next = LLVMGetIncomingValue(phi, i);
    if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd) break;
    LLVMValueRef by = LLVMGetOperand(next, LLVMGetOperand(next, 0) == phi);
    if (LLVMGetOperand(next, 0) != phi && LLVMGetOperand(next, 1) != phi) break;
    if (!LLVMIsAConstantInt(by) || LLVMGetIntTypeWidth(LLVMTypeOf(by)) > 64) break;
    kg_linear counter = term_of(phi); /* its start value */
    counter.step = LLVMConstIntGetSExtValue(by);
    return counter;
  }
  return unknown(phi);
}

static kg_linear evaluate_address(const kg_loop_view *v, LLVMValueRef gep)
{
  KJ_ASSERT(LLVMIsAGetElementPtrInst(gep));
  LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
  kg_linear at = { 0 };
  for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
    if (i > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return lost();
    if (i > 1) type = LLVMGetElementType(type);
    kg_linear index = evaluate(v, LLVMGetOperand(gep, i), 0);
    at = sum(at, scaled(index, (int64_t)LLVMABISizeOfType(v->layout, type)));
  }
  return at;
}

static bool is_factor(LLVMValueRef value)
{
  return LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64;
}

static kg_linear evaluate_operation(const kg_loop_view *v, LLVMValueRef value, uint32_t depth)
{
  LLVMOpcode op = LLVMGetInstructionOpcode(value);
  if (op == LLVMLoad || op == LLVMCall) {
    kg_linear x = term_of(value);
    x.kind = KJ_LINEAR_OTHER;
    return x;
  }
  if (op == LLVMPHI) return evaluate_counter(v, value);
  if (op == LLVMZExt || op == LLVMSExt || op == LLVMTrunc)
    return evaluate(v, LLVMGetOperand(value, 0), depth);
  bool adds = op == LLVMAdd || (op == LLVMOr && LLVMGetIsDisjoint(value)),
       scales = (op == LLVMMul || op == LLVMShl) && is_factor(LLVMGetOperand(value, 1));
  if (!adds && !scales && op != LLVMSub) return unknown(value);
  kg_linear x = evaluate(v, LLVMGetOperand(value, 0), depth);
  if (!scales) {
    kg_linear y = evaluate(v, LLVMGetOperand(value, 1), depth);
    return sum(x, adds ? y : scaled(y, -1));
  }
  int64_t factor = LLVMConstIntGetSExtValue(LLVMGetOperand(value, 1));
  if (op == LLVMMul) return scaled(x, factor);
  return factor < 0 || factor > 31 ? unknown(value) : scaled(x, (int64_t)1 << factor);
}

static kg_linear evaluate(const kg_loop_view *v, LLVMValueRef value, uint32_t depth)
{
  if (is_factor(value)) return (kg_linear){ .constant = LLVMConstIntGetSExtValue(value) };
  if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind) return lost();
  if (!LLVMIsAInstruction(value) || !kg_is_in_loop(v, LLVMGetInstructionParent(value)))
    return term_of(value);
  return depth == MOST_DEPTH ? unknown(value) : evaluate_operation(v, value, depth + 1);
}

/* ---- addresses that have no constant step ---- */

/* LLVM can still simplify a value that is not kg_linear: `x & 31` is x if x is always below
 * 32. This section therefore computes such a value in the first iterations, with 0 for all inputs
 * of the loop, and compares the differences between iterations. If the differences are not all
 * equal, no later simplification can give the value a constant step. The input 0 is valid because
 * it satisfies every fact that code can rely on: that an input is a multiple of a number, that it
 * is below a limit, or that a sum does not overflow. */
typedef struct sample {
  const kg_loop_view *v;
  int64_t iteration;
  /* number of operations that this evaluation may still compute; 0 means that the evaluation has
   * been given up */
  uint32_t budget;
} sample;

enum { MOST_ITERATIONS = 40, MOST_OPERATIONS = 4000 };

static int64_t give_up(sample *s)
{
  s->budget = 0;
  return 0;
}

static uint64_t as_unsigned(LLVMValueRef value, int64_t x)
{
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
  return width < 64 ? (uint64_t)x & (((uint64_t)1 << width) - 1) : (uint64_t)x;
}

static int64_t as_signed(LLVMValueRef value, uint64_t x)
{
  KJ_ASSERT(LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64);
  unsigned shift = 64 - LLVMGetIntTypeWidth(LLVMTypeOf(value));
  return (int64_t)(x << shift) >> shift;
}

/* Computes a value. The result is sign-extended from the value width to 64 bits. */
static int64_t compute(sample *s, LLVMValueRef value);

static int64_t compute_operation(sample *s, LLVMValueRef value)
{
  LLVMOpcode op = LLVMGetInstructionOpcode(value);
  LLVMValueRef first = LLVMGetOperand(value, 0);
  int64_t x = compute(s, first);
  if (op == LLVMTrunc || op == LLVMSExt) return as_signed(value, (uint64_t)x);
  if (op == LLVMZExt) return (int64_t)as_unsigned(first, x);
  int64_t y = compute(s, LLVMGetOperand(value, 1));
  uint64_t a = as_unsigned(value, x), b = as_unsigned(value, y);
  bool shifts = op == LLVMShl || op == LLVMLShr || op == LLVMAShr;
  if (shifts && b >= LLVMGetIntTypeWidth(LLVMTypeOf(value))) return give_up(s);
  if ((op == LLVMUDiv || op == LLVMURem) && !b) return give_up(s);
  switch (KJ_AMONG(op)) {
  case LLVMAdd: return as_signed(value, a + b);
  case LLVMSub: return as_signed(value, a - b);
  case LLVMMul: return as_signed(value, a * b);
  case LLVMAnd: return x & y;
  case LLVMOr: return x | y;
  case LLVMXor: return x ^ y;
  case LLVMShl: return as_signed(value, a << b);
  case LLVMLShr: return as_signed(value, a >> b);
  case LLVMAShr: return x >> b;
  case LLVMUDiv: return as_signed(value, a / b);
  case LLVMURem: return as_signed(value, a % b);
  default: return give_up(s);
  }
}

static int64_t compute(sample *s, LLVMValueRef value)
{
  bool is_integer = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
  if (!s->budget || !is_integer || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64) return give_up(s);
  s->budget--;
  if (LLVMIsAConstantInt(value)) return LLVMConstIntGetSExtValue(value);
  bool is_inside =
    LLVMIsAInstruction(value) && kg_is_in_loop(s->v, LLVMGetInstructionParent(value));
  if (LLVMIsAPHINode(value) && is_inside) {
    kg_linear counter = evaluate_counter(s->v, value);
    if (counter.kind != KJ_LINEAR_KNOWN) return give_up(s);
    return as_signed(value, (uint64_t)(s->v->start + counter.step * s->iteration));
  }
  if (LLVMIsABinaryOperator(value) || LLVMIsATruncInst(value) || LLVMIsAZExtInst(value) ||
      LLVMIsASExtInst(value))
    return compute_operation(s, value);
  return is_inside ? give_up(s) : 0;
}

static int64_t compute_address(sample *s, LLVMValueRef pointer)
{
  int64_t at = 0;
  for (; LLVMIsAGetElementPtrInst(pointer); pointer = LLVMGetOperand(pointer, 0)) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(pointer); i++) {
      if (i > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return give_up(s);
      if (i > 1) type = LLVMGetElementType(type);
      at += compute(s, LLVMGetOperand(pointer, i)) * (int64_t)LLVMABISizeOfType(s->v->layout, type);
    }
  }
  return at;
}

/* Returns whether the difference of the addresses in two consecutive iterations is not constant. */
static bool has_no_step(const kg_loop_view *v, LLVMValueRef pointer)
{
  int64_t before = 0, step = 0;
  for (int64_t i = 0; i < v->iterations && i < MOST_ITERATIONS; i++) {
    sample s = { .v = v, .iteration = i, .budget = MOST_OPERATIONS };
    int64_t at = compute_address(&s, pointer);
    if (!s.budget) return false;
    if (i > 1 && at - before != step) return true;
    step = at - before;
    before = at;
  }
  return false;
}

kg_linear kg_find_address(const kg_loop_view *v, LLVMValueRef pointer, LLVMValueRef *root)
{
  kg_linear at = { .kind = KJ_LINEAR_KNOWN };
  *root = pointer;
  for (; LLVMIsAGetElementPtrInst(*root); *root = LLVMGetOperand(*root, 0))
    at = sum(at, evaluate_address(v, *root));
  bool changes = LLVMIsAInstruction(*root) && kg_is_in_loop(v, LLVMGetInstructionParent(*root));
  if (changes) at = sum(at, evaluate(v, *root, 0));
  if (at.kind == KJ_LINEAR_UNKNOWN && !changes && has_no_step(v, pointer))
    at.kind = KJ_LINEAR_OTHER;
  return at;
}

kg_linear kg_subtract_linear(kg_linear x, kg_linear y) { return sum(x, scaled(y, -1)); }

void kg_count_iterations(kg_loop_view *v)
{
  v->start = v->iterations = 0;
  LLVMValueRef phi = LLVMGetFirstInstruction(v->header),
               branch = LLVMGetBasicBlockTerminator(v->latch), start = NULL, test;
  bool is_only = LLVMIsAPHINode(phi) && !LLVMIsAPHINode(LLVMGetNextInstruction(phi));
  if (!is_only || !LLVMIsConditional(branch) || LLVMCountIncoming(phi) != 2) return;
  kg_linear counter = evaluate_counter(v, phi);
  test = LLVMGetCondition(branch);
  start = LLVMGetIncomingValue(phi, LLVMGetIncomingBlock(phi, 0) == v->latch);
  LLVMValueRef next = LLVMGetIncomingValue(phi, LLVMGetIncomingBlock(phi, 0) != v->latch);
  if (counter.kind != KJ_LINEAR_KNOWN || counter.step != 1 || !LLVMIsAConstantInt(start) ||
      !LLVMIsAICmpInst(test) || LLVMGetOperand(test, 0) != next ||
      !LLVMIsAConstantInt(LLVMGetOperand(test, 1)))
    return;
  LLVMIntPredicate how = LLVMGetICmpPredicate(test);
  if (how != LLVMIntEQ && how != LLVMIntNE && how != LLVMIntULT) return;
  v->start = LLVMConstIntGetSExtValue(start);
  v->iterations = LLVMConstIntGetSExtValue(LLVMGetOperand(test, 1)) - v->start;
}

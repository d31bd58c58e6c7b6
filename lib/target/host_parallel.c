/* CPU: the loops that lowering proposes as parallel are handed to the vectorizer.
 *
 * LLVM takes a loop as parallel if every access in it carries the loop's id; then the iterations
 * are independent. But it concludes more: loads and stores at a constant step are joined into
 * groups (interleaved accesses), where loads move up to the first of their group and stores down to
 * the last, past other accesses of the same iteration, and in a parallel loop no dependence holds
 * them back. So where a store comes before an access of what may be the same memory in the same
 * iteration, the steps of both addresses are hidden: they are in no group then.
 *
 * Needs: scalar code after all passes that come before the vectorizer. Guarantees: a loop that is
 * not understood here is not parallel, and an access that is not understood is in no group. */
#include <string.h>

#include "native/support_routines.h"
#include "target/host.h"

#define PARALLEL_ACCESS "llvm.mem.parallel_loop_access"
enum { MOST_TERMS = 8, MOST_DEPTH = 24, MOST_SCOPES = 64 };

/* An address or a number in an iteration: constant + step * number of the iteration + scale * value
 * for each term, all in bytes. kind: whether terms change in the loop; OTHER: so that there is no
 * constant step. LOST: nothing is known. */
typedef struct linear {
  enum { LINEAR_KNOWN, LINEAR_OTHER, LINEAR_UNKNOWN, LINEAR_LOST } kind;
  int64_t constant, step;
  uint32_t term_count;
  struct term {
    LLVMValueRef value;
    int64_t scale;
  } terms[MOST_TERMS];
} linear;

typedef struct access {
  LLVMValueRef instruction, root; /* what the address is counted from */
  size_t block;                   /* its number */
  bool is_store, may_be_grouped, is_hidden;
  int64_t size;
  linear at;
} access;

typedef struct loop_view {
  kt_compilation *c;
  LLVMTargetDataRef layout;
  int64_t start, iterations;         /* of the counter; 0: not known */
  unsigned scope_kind, noalias_kind; /* of metadata */
  LLVMBasicBlockRef header, latch;
  bool is_innermost;                 /* else nothing has an order */
  KJ_LIST(LLVMBasicBlockRef) blocks; /* in an order in which each comes before its successors */
  KJ_LIST(access) accesses;          /* in that order */
  size_t words;
  uint64_t *behind; /* for each block, which come behind it in the same iteration */
} loop_view;

/* ---- the blocks of a loop ---- */

/* blocks.count: of none of the loop. */
static size_t number_of(const loop_view *v, LLVMBasicBlockRef block)
{
  size_t i = 0;
  while (i < v->blocks.count && v->blocks.items[i] != block) i++;
  return i;
}

static bool is_in(const loop_view *v, LLVMBasicBlockRef block)
{
  return number_of(v, block) < v->blocks.count;
}

static LLVMBasicBlockRef entry_of(LLVMBasicBlockRef block)
{
  return LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(block));
}

/* The latch and all that leads to it without passing the header; false: the header is none. */
static bool collect_blocks(loop_view *v)
{
  v->blocks.count = 0;
  KJ_PUSH(v->c->arena, &v->blocks, v->header);
  if (v->latch != v->header) KJ_PUSH(v->c->arena, &v->blocks, v->latch);
  for (size_t i = 1; i < v->blocks.count; i++) {
    if (v->blocks.items[i] == entry_of(v->header)) return false;
    LLVMValueRef block = LLVMBasicBlockAsValue(v->blocks.items[i]);
    for (LLVMUseRef use = LLVMGetFirstUse(block); use; use = LLVMGetNextUse(use)) {
      LLVMValueRef user = LLVMGetUser(use);
      if (!LLVMIsATerminatorInst(user)) continue;
      LLVMBasicBlockRef before = LLVMGetInstructionParent(user);
      if (!is_in(v, before)) KJ_PUSH(v->c->arena, &v->blocks, before);
    }
  }
  return true;
}

typedef struct block_order {
  char *states; /* by number in loop_view.blocks */
  LLVMBasicBlockRef *blocks;
  size_t first; /* of those in order */
} block_order;
enum { IS_NEW, IS_OPEN, IS_DONE };

/* Puts a block, and all of the loop that comes behind it, in front of those that are in order
 * already. false: there is a loop within the loop. */
static bool order_from(loop_view *v, block_order *o, size_t at)
{
  KJ_ASSERT(at < v->blocks.count && o->first);
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(v->blocks.items[at]);
  o->states[at] = IS_OPEN;
  for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++) {
    LLVMBasicBlockRef next = LLVMGetSuccessor(branch, i);
    size_t number = number_of(v, next);
    if (next == v->header || number == v->blocks.count) continue;
    if (o->states[number] == IS_OPEN) return false;
    if (o->states[number] == IS_NEW && !order_from(v, o, number)) return false;
  }
  o->states[at] = IS_DONE;
  o->blocks[--o->first] = v->blocks.items[at];
  return true;
}

static bool order_blocks(loop_view *v)
{
  block_order o = { .states = KJ_NEW_ARRAY(v->c->arena, char, v->blocks.count),
                    .blocks = KJ_NEW_ARRAY(v->c->arena, LLVMBasicBlockRef, v->blocks.count),
                    .first = v->blocks.count };
  if (!order_from(v, &o, 0)) return false;
  memcpy(v->blocks.items, o.blocks, v->blocks.count * sizeof *o.blocks);
  return o.first == 0;
}

static bool comes_behind(const loop_view *v, size_t first, size_t second)
{
  KJ_ASSERT(first < v->blocks.count && second < v->blocks.count);
  return v->behind[first * v->words + second / 64] >> second % 64 & 1;
}

static void find_order(loop_view *v)
{
  KJ_ASSERT(v->blocks.count && v->blocks.items[0] == v->header);
  v->words = v->blocks.count / 64 + 1;
  v->behind = KJ_NEW_ARRAY(v->c->arena, uint64_t, v->words * v->blocks.count);
  for (size_t i = v->blocks.count; i-- > 0;) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(v->blocks.items[i]);
    uint64_t *own = v->behind + i * v->words;
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
      size_t next = number_of(v, LLVMGetSuccessor(branch, k));
      if (next == 0 || next == v->blocks.count) continue;
      own[next / 64] |= (uint64_t)1 << next % 64;
      for (size_t w = 0; w < v->words; w++) own[w] |= v->behind[next * v->words + w];
    }
  }
}

/* One of the two ways on from the latch leads back to the header. */
static bool find_loop(loop_view *v, LLVMValueRef branch)
{
  v->latch = LLVMGetInstructionParent(branch);
  for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++) {
    v->header = LLVMGetSuccessor(branch, i);
    if (!collect_blocks(v)) continue;
    v->is_innermost = order_blocks(v);
    if (v->is_innermost) find_order(v);
    return true;
  }
  return false;
}

/* ---- addresses ---- */

static linear lost(void) { return (linear){ .kind = LINEAR_LOST }; }

static linear term_of(LLVMValueRef value)
{
  return (linear){ .term_count = 1, .terms = { { value, 1 } } };
}

static linear unknown(LLVMValueRef value)
{
  linear x = term_of(value);
  x.kind = LINEAR_UNKNOWN;
  return x;
}

static linear scaled(linear x, int64_t by)
{
  bool is_over = __builtin_mul_overflow(x.constant, by, &x.constant) ||
                 __builtin_mul_overflow(x.step, by, &x.step);
  for (uint32_t i = 0; i < x.term_count; i++)
    is_over |= __builtin_mul_overflow(x.terms[i].scale, by, &x.terms[i].scale);
  return is_over ? lost() : x;
}

static linear sum(linear x, linear y)
{
  if (y.kind > x.kind) x.kind = y.kind;
  if (x.kind == LINEAR_LOST) return x;
  bool is_over = __builtin_add_overflow(x.constant, y.constant, &x.constant) ||
                 __builtin_add_overflow(x.step, y.step, &x.step);
  for (uint32_t i = 0; i < y.term_count; i++) {
    uint32_t k = 0;
    while (k < x.term_count && x.terms[k].value != y.terms[i].value) k++;
    if (k == MOST_TERMS) return lost();
    if (k == x.term_count) x.terms[x.term_count++] = (struct term){ y.terms[i].value, 0 };
    is_over |= __builtin_add_overflow(x.terms[k].scale, y.terms[i].scale, &x.terms[k].scale);
  }
  return is_over ? lost() : x;
}

static linear evaluate(const loop_view *v, LLVMValueRef value, uint32_t depth);

/* A number that goes up by a constant from one iteration to the next. */
static linear evaluate_counter(const loop_view *v, LLVMValueRef phi)
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
    linear counter = term_of(phi); /* where it starts */
    counter.step = LLVMConstIntGetSExtValue(by);
    return counter;
  }
  return unknown(phi);
}

static linear evaluate_address(const loop_view *v, LLVMValueRef gep)
{
  KJ_ASSERT(LLVMIsAGetElementPtrInst(gep));
  LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
  linear at = { 0 };
  for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
    if (i > 1 && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return lost();
    if (i > 1) type = LLVMGetElementType(type);
    linear index = evaluate(v, LLVMGetOperand(gep, i), 0);
    at = sum(at, scaled(index, (int64_t)LLVMABISizeOfType(v->layout, type)));
  }
  return at;
}

static bool is_factor(LLVMValueRef value)
{
  return LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64;
}

static linear evaluate_operation(const loop_view *v, LLVMValueRef value, uint32_t depth)
{
  LLVMOpcode op = LLVMGetInstructionOpcode(value);
  if (op == LLVMLoad || op == LLVMCall) {
    linear x = term_of(value);
    x.kind = LINEAR_OTHER;
    return x;
  }
  if (op == LLVMPHI) return evaluate_counter(v, value);
  if (op == LLVMZExt || op == LLVMSExt || op == LLVMTrunc)
    return evaluate(v, LLVMGetOperand(value, 0), depth);
  bool adds = op == LLVMAdd || (op == LLVMOr && LLVMGetIsDisjoint(value)),
       scales = (op == LLVMMul || op == LLVMShl) && is_factor(LLVMGetOperand(value, 1));
  if (!adds && !scales && op != LLVMSub) return unknown(value);
  linear x = evaluate(v, LLVMGetOperand(value, 0), depth);
  if (!scales) {
    linear y = evaluate(v, LLVMGetOperand(value, 1), depth);
    return sum(x, adds ? y : scaled(y, -1));
  }
  int64_t factor = LLVMConstIntGetSExtValue(LLVMGetOperand(value, 1));
  if (op == LLVMMul) return scaled(x, factor);
  return factor < 0 || factor > 31 ? unknown(value) : scaled(x, (int64_t)1 << factor);
}

static linear evaluate(const loop_view *v, LLVMValueRef value, uint32_t depth)
{
  if (is_factor(value)) return (linear){ .constant = LLVMConstIntGetSExtValue(value) };
  if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind) return lost();
  if (!LLVMIsAInstruction(value) || !is_in(v, LLVMGetInstructionParent(value)))
    return term_of(value);
  return depth == MOST_DEPTH ? unknown(value) : evaluate_operation(v, value, depth + 1);
}

/* ---- addresses that have no constant step ---- */

/* What is not linear may still become so: `x & 31` is x where x stays below 32. So it is computed
 * for the first iterations, with 0 for all that the loop is handed, which is what any fact about
 * that allows: a multiple, a bound, a sum that does not overflow. */
typedef struct sample {
  const loop_view *v;
  int64_t iteration;
  uint32_t budget; /* of operations; 0: given up */
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

/* Numbers are kept sign-extended from their width. */
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
  bool is_inside = LLVMIsAInstruction(value) && is_in(s->v, LLVMGetInstructionParent(value));
  if (LLVMIsAPHINode(value) && is_inside) {
    linear counter = evaluate_counter(s->v, value);
    if (counter.kind != LINEAR_KNOWN) return give_up(s);
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

/* The step from one iteration to the next is not the same everywhere. */
static bool has_no_step(const loop_view *v, LLVMValueRef pointer)
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

/* start, iterations: of a loop whose only counter goes from one constant to another; else none. */
static void count_iterations(loop_view *v)
{
  v->start = v->iterations = 0;
  LLVMValueRef phi = LLVMGetFirstInstruction(v->header),
               branch = LLVMGetBasicBlockTerminator(v->latch), start = NULL, test;
  bool is_only = LLVMIsAPHINode(phi) && !LLVMIsAPHINode(LLVMGetNextInstruction(phi));
  if (!is_only || !LLVMIsConditional(branch) || LLVMCountIncoming(phi) != 2) return;
  linear counter = evaluate_counter(v, phi);
  test = LLVMGetCondition(branch);
  start = LLVMGetIncomingValue(phi, LLVMGetIncomingBlock(phi, 0) == v->latch);
  LLVMValueRef next = LLVMGetIncomingValue(phi, LLVMGetIncomingBlock(phi, 0) != v->latch);
  if (counter.kind != LINEAR_KNOWN || counter.step != 1 || !LLVMIsAConstantInt(start) ||
      !LLVMIsAICmpInst(test) || LLVMGetOperand(test, 0) != next ||
      !LLVMIsAConstantInt(LLVMGetOperand(test, 1)))
    return;
  LLVMIntPredicate how = LLVMGetICmpPredicate(test);
  if (how != LLVMIntEQ && how != LLVMIntNE && how != LLVMIntULT) return;
  v->start = LLVMConstIntGetSExtValue(start);
  v->iterations = LLVMConstIntGetSExtValue(LLVMGetOperand(test, 1)) - v->start;
}

/* ---- accesses ---- */

static void add_access(loop_view *v, LLVMValueRef instruction, size_t block, bool is_store)
{
  KJ_ASSERT(block < v->blocks.count);
  LLVMValueRef pointer = LLVMGetOperand(instruction, is_store ? 1 : 0);
  LLVMTypeRef type = LLVMTypeOf(is_store ? LLVMGetOperand(instruction, 0) : instruction);
  access a = { .instruction = instruction,
               .root = pointer,
               .block = block,
               .is_store = is_store,
               .size = (int64_t)LLVMABISizeOfType(v->layout, type) };
  while (LLVMIsAGetElementPtrInst(a.root)) {
    a.at = sum(a.at, evaluate_address(v, a.root));
    a.root = LLVMGetOperand(a.root, 0);
  }
  bool changes = LLVMIsAInstruction(a.root) && is_in(v, LLVMGetInstructionParent(a.root));
  if (changes) a.at = sum(a.at, evaluate(v, a.root, 0));
  if (a.at.kind == LINEAR_UNKNOWN && !changes && has_no_step(v, pointer)) a.at.kind = LINEAR_OTHER;
  a.may_be_grouped = a.at.kind >= LINEAR_UNKNOWN ||
                     (a.at.kind == LINEAR_KNOWN && (a.at.step > a.size || -a.at.step > a.size));
  KJ_PUSH(v->c->arena, &v->accesses, a);
}

static void find_accesses(loop_view *v)
{
  v->accesses.count = 0;
  for (size_t i = 0; i < v->blocks.count; i++)
    for (LLVMValueRef at = LLVMGetFirstInstruction(v->blocks.items[i]); at;
         at = LLVMGetNextInstruction(at))
      if (LLVMIsALoadInst(at) || LLVMIsAStoreInst(at))
        add_access(v, at, i, LLVMIsAStoreInst(at) != NULL);
}

static bool has_operand(LLVMValueRef list, LLVMValueRef wanted)
{
  LLVMValueRef items[MOST_SCOPES];
  unsigned count = LLVMGetMDNodeNumOperands(list), i = 0;
  if (count > MOST_SCOPES) return false;
  LLVMGetMDNodeOperands(list, items);
  while (i < count && items[i] != wanted) i++;
  return i < count;
}

/* As alias scopes say it (kl_annotate_access): all of b's are among those that a is apart from. */
static bool are_scopes_apart(const loop_view *v, LLVMValueRef a, LLVMValueRef b)
{
  LLVMValueRef scopes = LLVMGetMetadata(b, v->scope_kind),
               others = LLVMGetMetadata(a, v->noalias_kind), items[MOST_SCOPES];
  if (!scopes || !others) return false;
  unsigned count = LLVMGetMDNodeNumOperands(scopes);
  if (!count || count > MOST_SCOPES) return false;
  LLVMGetMDNodeOperands(scopes, items);
  for (unsigned i = 0; i < count; i++)
    if (!has_operand(others, items[i])) return false;
  return true;
}

/* The kernel's scratch memory, or memory of this function, and an address that was handed to it
 * among the kernel's parameters. */
static bool is_own(LLVMValueRef root) { return LLVMIsAArgument(root) || LLVMIsAAllocaInst(root); }
static bool is_handed(LLVMValueRef root)
{
  if (!LLVMIsALoadInst(root)) return false;
  LLVMValueRef from = LLVMGetOperand(root, 0);
  while (LLVMIsAGetElementPtrInst(from)) from = LLVMGetOperand(from, 0);
  return LLVMIsAArgument(from) &&
         from == LLVMGetParam(LLVMGetBasicBlockParent(LLVMGetInstructionParent(root)), 0);
}

static bool has_same_terms(const linear *x, const linear *y)
{
  linear difference = sum(*x, scaled(*y, -1));
  if (difference.kind == LINEAR_LOST || difference.step) return false;
  for (uint32_t i = 0; i < difference.term_count; i++)
    if (difference.terms[i].scale) return false;
  return true;
}

/* In one iteration. */
static bool may_meet(const loop_view *v, const access *a, const access *b)
{
  KJ_ASSERT(a->block == b->block || comes_behind(v, a->block, b->block));
  if (are_scopes_apart(v, a->instruction, b->instruction) ||
      are_scopes_apart(v, b->instruction, a->instruction))
    return false;
  if (a->root == b->root)
    return !has_same_terms(&a->at, &b->at) ||
           (a->at.constant < b->at.constant + b->size && b->at.constant < a->at.constant + a->size);
  return !(is_own(a->root) && is_handed(b->root)) && !(is_own(b->root) && is_handed(a->root));
}

/* Which accesses may be in no group, so that those of an iteration keep their order. */
static void find_ordered(const loop_view *v)
{
  for (size_t i = 0; i < v->accesses.count; i++) {
    access *a = &v->accesses.items[i];
    for (size_t k = i + 1; a->is_store && k < v->accesses.count; k++) {
      access *b = &v->accesses.items[k];
      bool is_behind = a->block == b->block || comes_behind(v, a->block, b->block);
      bool matters = (a->may_be_grouped && !a->is_hidden) || (b->may_be_grouped && !b->is_hidden);
      if (!matters || !is_behind || !may_meet(v, a, b)) continue;
      a->is_hidden = a->may_be_grouped;
      b->is_hidden = b->may_be_grouped;
    }
  }
}

/* Hides the steps of their addresses. */
static void hide_steps(const loop_view *v, LLVMContextRef context)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (size_t i = 0; i < v->accesses.count; i++) {
    const access *a = &v->accesses.items[i];
    unsigned at = a->is_store ? 1 : 0;
    if (!a->is_hidden) continue;
    LLVMPositionBuilderBefore(builder, a->instruction);
    LLVMSetOperand(a->instruction, at,
                   LLVMBuildFreeze(builder, LLVMGetOperand(a->instruction, at), ""));
  }
  LLVMDisposeBuilder(builder);
}

/* ---- what a loop is marked for, asserted in it ---- */

typedef struct asserter {
  const loop_view *v;
  LLVMModuleRef module;
  LLVMContextRef context;
  LLVMBuilderRef builder;
  LLVMValueRef id; /* of the parallel loop */
  LLVMTypeRef i64, i32, pointer;
} asserter;

static void call_routine(asserter *a, const char *name, LLVMTypeRef *types, LLVMValueRef *args,
                         unsigned count)
{
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(a->context), types, count, false);
  LLVMValueRef routine = LLVMGetNamedFunction(a->module, name);
  if (!routine) routine = LLVMAddFunction(a->module, name, type);
  LLVMBuildCall2(a->builder, type, routine, args, count, "");
}

/* Iterations are numbered by a counter of their own: what the loop has may be of any form. */
static void number_iterations(asserter *a)
{
  KJ_ASSERT(LLVMGetBasicBlockTerminator(a->v->latch));
  LLVMPositionBuilderBefore(a->builder, LLVMGetFirstInstruction(a->v->header));
  LLVMValueRef number = LLVMBuildPhi(a->builder, a->i64, "iteration"), next, after,
               zero = LLVMConstInt(a->i64, 0, false), one = LLVMConstInt(a->i64, 1, false);
  LLVMPositionBuilderBefore(a->builder, LLVMGetBasicBlockTerminator(a->v->latch));
  next = LLVMBuildAdd(a->builder, number, one, "");
  LLVMValueRef header = LLVMBasicBlockAsValue(a->v->header);
  for (LLVMUseRef use = LLVMGetFirstUse(header); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsATerminatorInst(user)) continue;
    LLVMBasicBlockRef from = LLVMGetInstructionParent(user);
    LLVMAddIncoming(number, from == a->v->latch ? &next : &zero, &from, 1);
  }
  after = LLVMGetFirstInstruction(a->v->header);
  while (LLVMIsAPHINode(after)) after = LLVMGetNextInstruction(after);
  LLVMPositionBuilderBefore(a->builder, after);
  call_routine(a, KJ_ITERATION_FUNCTION, &a->i64, &number, 1);
}

static const char *find_place(const asserter *a, LLVMValueRef access)
{
  unsigned length,
    kind = LLVMGetMDKindIDInContext(a->context, KJ_PLACE_METADATA, sizeof KJ_PLACE_METADATA - 1);
  LLVMValueRef place = LLVMGetMetadata(access, kind), text;
  if (place) LLVMGetMDNodeOperands(place, &text);
  LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(access));
  size_t name_length;
  return place ? LLVMGetMDString(text, &length) : LLVMGetValueName2(function, &name_length);
}

/* In front of each access that carries the id: LLVM takes those for independent. */
static void assert_loop(asserter *a)
{
  unsigned kind = LLVMGetMDKindIDInContext(a->context, PARALLEL_ACCESS, sizeof PARALLEL_ACCESS - 1);
  number_iterations(a);
  for (size_t i = 0; i < a->v->accesses.count; i++) {
    const access *access = &a->v->accesses.items[i];
    LLVMValueRef list = LLVMGetMetadata(access->instruction, kind);
    if (!list || !has_operand(list, a->id)) continue;
    bool is_free = a->v->is_innermost && access->may_be_grouped && !access->is_hidden;
    uint32_t how = (access->is_store ? KJ_PARALLEL_STORE : 0u) | (is_free ? KJ_PARALLEL_FREE : 0u);
    LLVMPositionBuilderBefore(a->builder, access->instruction);
    LLVMTypeRef types[] = { a->pointer, a->pointer, a->i64, a->i32 };
    LLVMValueRef args[] = {
      LLVMBuildGlobalString(a->builder, find_place(a, access->instruction), "place"),
      LLVMGetOperand(access->instruction, access->is_store ? 1 : 0),
      LLVMConstInt(a->i64, (uint64_t)access->size, false), LLVMConstInt(a->i32, how, false)
    };
    call_routine(a, KJ_PARALLEL_FUNCTION, types, args, 4);
  }
}

static void assert_claims(const loop_view *v, LLVMModuleRef module, LLVMValueRef id)
{
  LLVMContextRef context = LLVMGetModuleContext(module);
  asserter a = { .v = v,
                 .module = module,
                 .context = context,
                 .builder = LLVMCreateBuilderInContext(context),
                 .id = id,
                 .i64 = LLVMInt64TypeInContext(context),
                 .i32 = LLVMInt32TypeInContext(context),
                 .pointer = LLVMPointerTypeInContext(context, 0) };
  assert_loop(&a);
  LLVMDisposeBuilder(a.builder);
}

/* ---- the whole ---- */

/* The id that the loop is to get; NULL: none is proposed. */
static LLVMValueRef find_proposal(LLVMValueRef id)
{
  LLVMValueRef properties[8], parts[2];
  unsigned count = LLVMGetMDNodeNumOperands(id);
  if (count > sizeof properties / sizeof *properties) return NULL;
  LLVMGetMDNodeOperands(id, properties);
  for (unsigned i = 1; i < count; i++) {
    unsigned length;
    if (!properties[i] || LLVMGetMDNodeNumOperands(properties[i]) != 2) continue;
    LLVMGetMDNodeOperands(properties[i], parts);
    const char *name = parts[0] ? LLVMGetMDString(parts[0], &length) : NULL;
    if (name && length == sizeof KJ_PARALLEL_PROPOSAL - 1 &&
        !memcmp(name, KJ_PARALLEL_PROPOSAL, length))
      return parts[1];
  }
  return NULL;
}

/* LLVM copies the id of a loop to that of the loop around it where their last blocks become one. */
static bool is_copied_from_inner(const loop_view *v, unsigned kind, LLVMValueRef proposal)
{
  for (size_t i = 0; i < v->blocks.count; i++) {
    if (v->blocks.items[i] == v->latch) continue;
    LLVMValueRef id = LLVMGetMetadata(LLVMGetBasicBlockTerminator(v->blocks.items[i]), kind);
    if (id && (id == proposal || find_proposal(id) == proposal)) return true;
  }
  return false;
}

void kg_settle_parallel_loops(kt_compilation *c, LLVMModuleRef module, bool asserts)
{
  LLVMContextRef context = LLVMGetModuleContext(module);
  unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
  loop_view v = { .c = c,
                  .layout = LLVMGetModuleDataLayout(module),
                  .scope_kind = LLVMGetMDKindIDInContext(context, "alias.scope", 11),
                  .noalias_kind = LLVMGetMDKindIDInContext(context, "noalias", 7) };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
      LLVMValueRef branch = LLVMGetBasicBlockTerminator(b),
                   id = branch ? LLVMGetMetadata(branch, kind) : NULL,
                   proposal = id ? find_proposal(id) : NULL;
      if (!proposal || !find_loop(&v, branch) || is_copied_from_inner(&v, kind, proposal)) continue;
      if (!v.is_innermost && !asserts) continue;
      count_iterations(&v);
      find_accesses(&v);
      if (v.is_innermost) {
        find_ordered(&v);
        hide_steps(&v, context);
        LLVMSetMetadata(branch, kind, proposal);
      }
      if (asserts) assert_claims(&v, module, proposal);
    }
}

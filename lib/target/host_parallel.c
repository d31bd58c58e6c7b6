/* CPU: prepares loops, which lowering proposes as parallel, for the vectorizer.
 *
 * LLVM treats a loop as parallel if every access in it carries the loop's id. LLVM then assumes
 * that the iterations are independent. However, it also reorders accesses within an iteration: it
 * combines loads and stores with a constant step into groups (interleaved accesses). In a group, it
 * moves loads up to the first load and stores down to the last store, across other accesses of the
 * same iteration. In a parallel loop, no dependence keeps LLVM from doing this.
 *
 * A store and a later access in the same iteration can have the same address. If this is possible,
 * this file hides the steps of both addresses, so that neither access becomes part of a group.
 *
 * Needs: scalar code after all passes that precede the vectorizer. Guarantees: a loop that this
 * file cannot analyze is not parallel, and an access that it cannot analyze is not part of a
 * group. */
#include <string.h>

#include "native/support_routines.h"
#include "target/host_parallel.h"

#define PARALLEL_ACCESS "llvm.mem.parallel_loop_access"
enum { MOST_SCOPES = 64 };

/* ---- the blocks in a loop ---- */

size_t kg_find_block(const kg_loop_view *v, LLVMBasicBlockRef block)
{
  size_t i = 0;
  while (i < v->blocks.count && v->blocks.items[i] != block) i++;
  return i;
}

/* Collects the basic blocks in the loop: the latch, and all blocks from which control flow reaches
 * the latch without passing through the header. Returns false if `header` is not a loop's
 * header. */
static bool collect_blocks(kg_loop_view *v)
{
  v->blocks.count = 0;
  KJ_PUSH(v->c->arena, &v->blocks, v->header);
  if (v->latch != v->header) KJ_PUSH(v->c->arena, &v->blocks, v->latch);
  for (size_t i = 1; i < v->blocks.count; i++) {
    if (v->blocks.items[i] == LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(v->header)))
      return false;
    LLVMValueRef block = LLVMBasicBlockAsValue(v->blocks.items[i]);
    for (LLVMUseRef use = LLVMGetFirstUse(block); use; use = LLVMGetNextUse(use)) {
      LLVMValueRef user = LLVMGetUser(use);
      if (!LLVMIsATerminatorInst(user)) continue;
      LLVMBasicBlockRef before = LLVMGetInstructionParent(user);
      if (!kg_is_in_loop(v, before)) KJ_PUSH(v->c->arena, &v->blocks, before);
    }
  }
  return true;
}

typedef struct block_order {
  char *states; /* indexed like kg_loop_view.blocks */
  LLVMBasicBlockRef *blocks;
  size_t first; /* the blocks from this index on are in order; the list is filled from its end */
} block_order;
enum { IS_NEW, IS_OPEN, IS_DONE };

/* Adds a block and its successors within the loop to the front of the topological order. Returns
 * false if the loop contains another loop. */
static bool order_from(kg_loop_view *v, block_order *o, size_t at)
{
  KJ_ASSERT(at < v->blocks.count && o->first);
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(v->blocks.items[at]);
  o->states[at] = IS_OPEN;
  for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++) {
    LLVMBasicBlockRef next = LLVMGetSuccessor(branch, i);
    size_t number = kg_find_block(v, next);
    if (next == v->header || number == v->blocks.count) continue;
    if (o->states[number] == IS_OPEN) return false;
    if (o->states[number] == IS_NEW && !order_from(v, o, number)) return false;
  }
  o->states[at] = IS_DONE;
  o->blocks[--o->first] = v->blocks.items[at];
  return true;
}

static bool order_blocks(kg_loop_view *v)
{
  block_order o = { .states = KJ_NEW_ARRAY(v->c->arena, char, v->blocks.count),
                    .blocks = KJ_NEW_ARRAY(v->c->arena, LLVMBasicBlockRef, v->blocks.count),
                    .first = v->blocks.count };
  if (!order_from(v, &o, 0)) return false;
  memcpy(v->blocks.items, o.blocks, v->blocks.count * sizeof *o.blocks);
  return o.first == 0;
}

static bool comes_behind(const kg_loop_view *v, size_t first, size_t second)
{
  KJ_ASSERT(first < v->blocks.count && second < v->blocks.count);
  return v->behind[first * v->words + second / 64] >> second % 64 & 1;
}

static void find_order(kg_loop_view *v)
{
  KJ_ASSERT(v->blocks.count && v->blocks.items[0] == v->header);
  v->words = v->blocks.count / 64 + 1;
  v->behind = KJ_NEW_ARRAY(v->c->arena, uint64_t, v->words * v->blocks.count);
  for (size_t i = v->blocks.count; i-- > 0;) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(v->blocks.items[i]);
    uint64_t *own = v->behind + i * v->words;
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
      size_t next = kg_find_block(v, LLVMGetSuccessor(branch, k));
      if (next == 0 || next == v->blocks.count) continue;
      own[next / 64] |= (uint64_t)1 << next % 64;
      for (size_t w = 0; w < v->words; w++) own[w] |= v->behind[next * v->words + w];
    }
  }
}

/* Finds the loop to which a branch in its latch belongs. One of the two successors of the latch is
 * the header. */
bool kg_find_loop(kg_loop_view *v, LLVMValueRef branch)
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

/* ---- accesses ---- */

static void add_access(kg_loop_view *v, LLVMValueRef instruction, size_t block, bool is_store)
{
  KJ_ASSERT(block < v->blocks.count);
  LLVMValueRef pointer = LLVMGetOperand(instruction, is_store ? 1 : 0);
  LLVMTypeRef type = LLVMTypeOf(is_store ? LLVMGetOperand(instruction, 0) : instruction);
  kg_access a = { .instruction = instruction,
                  .block = block,
                  .is_store = is_store,
                  .size = (int64_t)LLVMABISizeOfType(v->layout, type) };
  a.at = kg_find_address(v, pointer, &a.root);
  a.may_be_grouped = a.at.kind >= KJ_LINEAR_UNKNOWN ||
                     (a.at.kind == KJ_LINEAR_KNOWN && (a.at.step > a.size || -a.at.step > a.size));
  KJ_PUSH(v->c->arena, &v->accesses, a);
}

void kg_find_accesses(kg_loop_view *v)
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

/* Returns whether alias scopes (kl_annotate_access) prove that the accesses do not overlap: all
 * scopes of b are among the noalias scopes of a. */
static bool are_scopes_apart(const kg_loop_view *v, LLVMValueRef a, LLVMValueRef b)
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

/* is_own returns whether the root is the kernel's scratch memory or memory of this function.
 * is_handed returns whether the root is an address in the kernel's parameters. */
static bool is_own(LLVMValueRef root) { return LLVMIsAArgument(root) || LLVMIsAAllocaInst(root); }
static bool is_handed(LLVMValueRef root)
{
  if (!LLVMIsALoadInst(root)) return false;
  LLVMValueRef from = LLVMGetOperand(root, 0);
  while (LLVMIsAGetElementPtrInst(from)) from = LLVMGetOperand(from, 0);
  return LLVMIsAArgument(from) &&
         from == LLVMGetParam(LLVMGetBasicBlockParent(LLVMGetInstructionParent(root)), 0);
}

static bool has_same_terms(const kg_linear *x, const kg_linear *y)
{
  kg_linear difference = kg_subtract_linear(*x, *y);
  if (difference.kind == KJ_LINEAR_LOST || difference.step) return false;
  for (uint32_t i = 0; i < difference.term_count; i++)
    if (difference.terms[i].scale) return false;
  return true;
}

bool kg_are_apart(const kg_loop_view *v, const kg_access *a, const kg_access *b)
{
  return are_scopes_apart(v, a->instruction, b->instruction) ||
         are_scopes_apart(v, b->instruction, a->instruction) ||
         (is_own(a->root) && is_handed(b->root)) || (is_own(b->root) && is_handed(a->root));
}

/* Returns whether two accesses in the same iteration may overlap. */
static bool may_meet(const kg_loop_view *v, const kg_access *a, const kg_access *b)
{
  KJ_ASSERT(a->block == b->block || comes_behind(v, a->block, b->block));
  if (kg_are_apart(v, a, b)) return false;
  return a->root != b->root || !has_same_terms(&a->at, &b->at) ||
         (a->at.constant < b->at.constant + b->size && b->at.constant < a->at.constant + a->size);
}

/* Finds the accesses that must keep their order within an iteration, and must therefore not be part
 * of a group. */
static void find_ordered(const kg_loop_view *v)
{
  for (size_t i = 0; i < v->accesses.count; i++) {
    kg_access *a = &v->accesses.items[i];
    for (size_t k = i + 1; a->is_store && k < v->accesses.count; k++) {
      kg_access *b = &v->accesses.items[k];
      bool is_behind = a->block == b->block || comes_behind(v, a->block, b->block);
      bool matters = (a->may_be_grouped && !a->is_hidden) || (b->may_be_grouped && !b->is_hidden);
      if (!matters || !is_behind || !may_meet(v, a, b)) continue;
      a->is_hidden = a->may_be_grouped;
      b->is_hidden = b->may_be_grouped;
    }
  }
}

/* Hides the steps of the addresses of these accesses with freeze instructions. */
static void hide_steps(const kg_loop_view *v, LLVMContextRef context)
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (size_t i = 0; i < v->accesses.count; i++) {
    const kg_access *a = &v->accesses.items[i];
    unsigned at = a->is_store ? 1 : 0;
    if (!a->is_hidden) continue;
    LLVMPositionBuilderBefore(builder, a->instruction);
    LLVMSetOperand(a->instruction, at,
                   LLVMBuildFreeze(builder, LLVMGetOperand(a->instruction, at), ""));
  }
  LLVMDisposeBuilder(builder);
}

/* ---- assertions that iterations are independent ---- */

typedef struct asserter {
  const kg_loop_view *v;
  LLVMModuleRef module;
  LLVMContextRef context;
  LLVMBuilderRef builder;
  LLVMValueRef id; /* id of the parallel loop */
  /* the loop will be vectorized, so LLVM may combine and move an iteration's accesses */
  bool is_vectorized;
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

/* Adds a counter for the iterations, because the loop's own counter can have any form. */
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

/* Adds an assertion before each access that carries the id of the loop, because LLVM treats these
 * accesses as independent. */
static void assert_loop(asserter *a)
{
  unsigned kind = LLVMGetMDKindIDInContext(a->context, PARALLEL_ACCESS, sizeof PARALLEL_ACCESS - 1);
  number_iterations(a);
  for (size_t i = 0; i < a->v->accesses.count; i++) {
    const kg_access *access = &a->v->accesses.items[i];
    LLVMValueRef list = LLVMGetMetadata(access->instruction, kind);
    if (!list || !has_operand(list, a->id)) continue;
    bool is_free = a->is_vectorized && access->may_be_grouped && !access->is_hidden;
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

static void assert_claims(const kg_loop_view *v, LLVMModuleRef module, LLVMValueRef id,
                          bool is_vectorized)
{
  LLVMContextRef context = LLVMGetModuleContext(module);
  asserter a = { .v = v,
                 .module = module,
                 .context = context,
                 .builder = LLVMCreateBuilderInContext(context),
                 .id = id,
                 .is_vectorized = is_vectorized,
                 .i64 = LLVMInt64TypeInContext(context),
                 .i32 = LLVMInt32TypeInContext(context),
                 .pointer = LLVMPointerTypeInContext(context, 0) };
  assert_loop(&a);
  LLVMDisposeBuilder(a.builder);
}

/* ---- entry point ---- */

/* Returns the id of the proposal to treat the loop as parallel, or NULL if there is no proposal. */
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

/* Returns whether the proposal's id was copied from an inner loop. LLVM copies the loop metadata of
 * an inner loop to the outer loop when it merges the last blocks of the two loops. */
static bool is_copied_from_inner(const kg_loop_view *v, unsigned kind, LLVMValueRef proposal)
{
  for (size_t i = 0; i < v->blocks.count; i++) {
    if (v->blocks.items[i] == v->latch) continue;
    LLVMValueRef id = LLVMGetMetadata(LLVMGetBasicBlockTerminator(v->blocks.items[i]), kind);
    if (id && (id == proposal || find_proposal(id) == proposal)) return true;
  }
  return false;
}

/* Returns whether the loop has too many branches. If an access has no masked form, the vectorizer
 * creates a branch for each lane. For a loop with many branches, this gives thousands of blocks,
 * takes seconds to compile, and is hardly faster than scalar code. */
static bool is_branchy(const kg_loop_view *v)
{
  enum { MOST_BLOCKS = 48 };
  return v->blocks.count > MOST_BLOCKS;
}

void kg_settle_parallel_loops(kl_lowering *l, bool asserts)
{
  LLVMContextRef context = l->context;
  LLVMModuleRef module = l->module;
  unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
  kg_loop_view v = { .c = l->c,
                     .layout = LLVMGetModuleDataLayout(module),
                     .scope_kind = LLVMGetMDKindIDInContext(context, "alias.scope", 11),
                     .noalias_kind = LLVMGetMDKindIDInContext(context, "noalias", 7) };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
      LLVMValueRef branch = LLVMGetBasicBlockTerminator(b),
                   id = branch ? LLVMGetMetadata(branch, kind) : NULL,
                   proposal = id ? find_proposal(id) : NULL;
      if (!proposal || !kg_find_loop(&v, branch) || is_copied_from_inner(&v, kind, proposal))
        continue;
      if (!v.is_innermost && !asserts) continue;
      kg_count_iterations(&v);
      kg_find_accesses(&v);
      bool is_vectorized = v.is_innermost && !is_branchy(&v);
      if (v.is_innermost && !is_vectorized)
        kl_set_metadata(l, branch, "llvm.loop", kl_one_copy_id(l));
      if (is_vectorized) {
        find_ordered(&v);
        hide_steps(&v, context);
        LLVMSetMetadata(branch, kind, proposal);
      }
      if (asserts) assert_claims(&v, module, proposal, is_vectorized);
    }
}

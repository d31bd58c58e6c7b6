/* Finds loops for which LLVM's loop vectorizer would take exponential time.
 *
 * VPlanTransforms::materializePacksAndUnpacks tests for each value whether it is the same in all
 * lanes. The test recursively visits operands until it finds an operand that differs between lanes,
 * and it does not cache results. So for a value that is the same in all lanes, the test follows
 * every path from the value to its inputs. The masks of blocks are such values if no condition of a
 * branch in the loop changes in the loop. A chain of 18 conditional assignments took more than four
 * minutes (LLVM 22).
 *
 * This file counts the paths in innermost loops. It puts the blocks in a function in reverse
 * postorder. In this order, a loop consists of the blocks from the target of a backward branch to
 * the branch. */
#include "target/host.h"

/* The cost of the test for a value, or for the mask of a basic block. */
typedef struct path_count {
  double steps;
  bool varies; /* the value differs between lanes */
} path_count;

typedef struct path_walk {
  kj_arena *arena;
  kj_map numbers; /* the number of each block in the function, starting with 1 */
  KJ_LIST(LLVMBasicBlockRef) blocks;
  /* the path_count of each value in the loop, and the path_count of each block's mask */
  kj_map values, masks;
  size_t last; /* number of the last block of the loop */
  double total;
} path_walk;

typedef struct path_loop {
  size_t first, last;
} path_loop;

static path_count *get_count(path_walk *w, kj_map *map, const void *key)
{
  kj_map_entry *entry = kj_get_entry(map, (const char *)&key, sizeof(void *));
  if (!entry->value) entry->value = KJ_NEW(w->arena, path_count);
  return entry->value;
}

static size_t number_of(const path_walk *w, LLVMBasicBlockRef block)
{
  const void *key = block;
  kj_map_entry *entry = kj_find_entry(&w->numbers, (const char *)&key, sizeof(void *));
  return entry ? (size_t)(uintptr_t)entry->value : 0;
}

/* Returns how many steps LLVM's test takes for an operand. An operand that is defined outside of
 * the loop takes 1 step. */
static path_count count_of(const path_walk *w, LLVMValueRef value)
{
  const void *key = value;
  kj_map_entry *entry = kj_find_entry(&w->values, (const char *)&key, sizeof(void *));
  return entry ? *(path_count *)entry->value : (path_count){ 1, false };
}

/* Adds the steps for `other` to `count`, unless the test has stopped before, at an operand that
 * differs between lanes. */
static void go_through(path_count *count, path_count other)
{
  if (count->varies) return;
  count->steps += other.steps;
  count->varies = other.varies;
}

static path_count count_phi(path_walk *w, LLVMValueRef phi, LLVMBasicBlockRef block)
{
  path_count count = { 1, false };
  for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
    size_t from = number_of(w, LLVMGetIncomingBlock(phi, n));
    /* one value of the phi comes from a later block, so the phi is in the loop header */
    if (from >= number_of(w, block)) return (path_count){ 1, true };
    go_through(&count, count_of(w, LLVMGetIncomingValue(phi, n)));
  }
  go_through(&count, *get_count(w, &w->masks, block));
  return count;
}

static path_count count_instruction(path_walk *w, LLVMValueRef i, LLVMBasicBlockRef block)
{
  if (LLVMIsAPHINode(i)) return count_phi(w, i, block);
  path_count count = { 1, false };
  for (int n = 0; n < LLVMGetNumOperands(i); n++)
    go_through(&count, count_of(w, LLVMGetOperand(i, (unsigned)n)));
  /* the vectorizer's test does not follow the operands of loads and calls */
  if (LLVMIsALoadInst(i) || LLVMIsACallInst(i)) count.steps = 1;
  return count;
}

/* Propagates a block's mask to its successors. */
static void pass_mask_on(path_walk *w, LLVMBasicBlockRef block)
{
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
  path_count mask = *get_count(w, &w->masks, block);
  unsigned targets = LLVMGetNumSuccessors(branch);
  if (targets > 1) go_through(&mask, count_of(w, LLVMGetOperand(branch, 0)));
  for (unsigned n = 0; n < targets; n++) {
    LLVMBasicBlockRef target = LLVMGetSuccessor(branch, n);
    size_t to = number_of(w, target);
    if (to > number_of(w, block) && to <= w->last)
      go_through(get_count(w, &w->masks, target), mask);
  }
}

static bool has_many_paths(path_walk *w, path_loop loop)
{
  const double MOST = 1 << 22;
  kj_init_map(&w->values, w->arena);
  kj_init_map(&w->masks, w->arena);
  w->last = loop.last;
  w->total = 0;
  for (size_t n = loop.first; n <= loop.last; n++) {
    LLVMBasicBlockRef block = w->blocks.items[n - 1];
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
      path_count count = count_instruction(w, i, block);
      *get_count(w, &w->values, i) = count;
      w->total += count.steps;
      if (w->total > MOST) return true;
    }
    pass_mask_on(w, block);
  }
  return false;
}

static bool is_innermost(const path_loop *loops, size_t count, size_t at)
{
  for (size_t n = 0; n < count; n++) {
    bool is_inside = loops[n].first >= loops[at].first && loops[n].last <= loops[at].last,
         is_same = loops[n].first == loops[at].first && loops[n].last == loops[at].last;
    if (is_inside && !is_same) return false;
  }
  return true;
}

/* A block that the depth-first search has reached, and the index of the successor to visit next. */
typedef struct path_visit {
  LLVMBasicBlockRef block;
  unsigned next;
} path_visit;

static bool is_new(path_walk *w, LLVMBasicBlockRef block)
{
  const void *key = block;
  size_t count = w->numbers.count;
  kj_get_entry(&w->numbers, (const char *)&key, sizeof(void *));
  return w->numbers.count > count;
}

/* Numbers the blocks in reverse postorder. */
static void order_blocks(path_walk *w, LLVMValueRef function)
{
  KJ_LIST(path_visit) stack = { 0 };
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
  kj_init_map(&w->numbers, w->arena);
  w->blocks.count = 0;
  is_new(w, entry);
  KJ_PUSH(w->arena, &stack, ((path_visit){ entry, 0 }));
  while (stack.count) {
    path_visit *top = &stack.items[stack.count - 1];
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(top->block);
    if (top->next < LLVMGetNumSuccessors(branch)) {
      LLVMBasicBlockRef next = LLVMGetSuccessor(branch, top->next++);
      if (is_new(w, next)) KJ_PUSH(w->arena, &stack, ((path_visit){ next, 0 }));
    } else {
      KJ_PUSH(w->arena, &w->blocks, top->block);
      stack.count--;
    }
  }
  for (size_t n = 0; n < w->blocks.count / 2; n++) {
    LLVMBasicBlockRef *one = &w->blocks.items[n], *other = one + w->blocks.count - 1 - 2 * n, kept;
    kept = *one, *one = *other, *other = kept;
  }
  for (size_t n = 0; n < w->blocks.count; n++) {
    const void *key = w->blocks.items[n];
    kj_get_entry(&w->numbers, (const char *)&key, sizeof(void *))->value =
      (void *)(uintptr_t)(n + 1);
  }
}

static bool is_costly(path_walk *w, LLVMValueRef function)
{
  KJ_LIST(path_loop) loops = { 0 };
  order_blocks(w, function);
  for (size_t n = 0; n < w->blocks.count; n++) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(w->blocks.items[n]);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(branch); k++) {
      size_t to = number_of(w, LLVMGetSuccessor(branch, k));
      if (to <= n + 1) KJ_PUSH(w->arena, &loops, ((path_loop){ to, n + 1 }));
    }
  }
  for (size_t n = 0; n < loops.count; n++)
    if (is_innermost(loops.items, loops.count, n) && has_many_paths(w, loops.items[n])) return true;
  return false;
}

bool kg_has_many_paths(kj_arena *arena, LLVMModuleRef module)
{
  path_walk walk = { .arena = arena };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f) && !kg_is_settled(f) && is_costly(&walk, f)) return true;
  return false;
}

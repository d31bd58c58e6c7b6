/* CPU: makes loops write large output arrays with non-temporal stores, which bypass the caches.
 *
 * If a cache line is in no cache, an ordinary store to it first reads the line. For an output that
 * is larger than the caches, these reads are a third of the memory traffic of r = x + y, although
 * their data is never used. A non-temporal store of a whole line does not read the line.
 *
 * This file adds a second version to vectorized loops that consist of a single block. The second
 * version has non-temporal stores. It is used if
 *
 *   - the array has the fact `large`, and the loop loads neither from it nor from memory that may
 *     overlap it,
 *   - the stores of an iteration fill a contiguous range, and each is aligned to its own size (at
 *     most a cache line). The code tests the first address before the loop, because a range can
 *     start at any element
 *   - the loop writes at least LEAST_BYTES; for fewer bytes, the store fence after the loop would
 *     take too long
 *
 * Non-temporal stores can become visible after later stores of the same thread. So the fence
 * precedes every store for which another thread could wait.
 *
 * Needs: code after the vectorizer. Guarantees: both versions store the same values. */
#include <string.h>

#include "native/architecture.h"
#include "target/host_parallel.h"

enum { CACHE_LINE = 64, LEAST_BYTES = 4096, MOST_INSTRUCTIONS = 1024, MOST_DEPTH = 24 };

typedef struct streamer {
  kl_lowering *l;
  LLVMBuilderRef builder;
  kg_loop_view v;
  LLVMBasicBlockRef before, body, after;
  /* maps a value of the body to an instruction in the block `before` that computes the value of the
   * first iteration */
  kj_map first;
  kj_map copies; /* values of the second version */
  KJ_LIST(const kg_access *) stores;
  /* the loop's counter: its start, its end and its step */
  LLVMValueRef start, end;
  uint64_t step;
} streamer;

static LLVMValueRef find_mapped(const kj_map *map, LLVMValueRef value)
{
  const void *key = value;
  kj_map_entry *entry = kj_find_entry(map, (const char *)&key, sizeof key);
  return entry ? entry->value : NULL;
}

static LLVMValueRef set_mapped(kj_map *map, LLVMValueRef value, LLVMValueRef mapped)
{
  const void *key = value;
  kj_get_entry(map, (const char *)&key, sizeof key)->value = mapped;
  return mapped;
}

static bool is_in_body(const streamer *s, LLVMValueRef value)
{
  return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == s->body;
}

/* ---- the loop ---- */

/* Finds the only block from which the loop is entered. Returns NULL unless this block ends with an
 * unconditional branch. */
static LLVMBasicBlockRef find_entrance(LLVMBasicBlockRef body)
{
  LLVMBasicBlockRef before = NULL;
  for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(body)); use;
       use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsATerminatorInst(user)) continue;
    LLVMBasicBlockRef from = LLVMGetInstructionParent(user);
    if (from == body) continue;
    if (before || !LLVMIsABranchInst(user) || LLVMIsConditional(user)) return NULL;
    before = from;
  }
  return before;
}

/* Finds the counter that the loop compares with its end. The distance from the counter's start to
 * its end decides whether the loop is long enough. */
static bool find_counter(streamer *s, LLVMValueRef branch)
{
  LLVMValueRef test = LLVMGetCondition(branch);
  if (!LLVMIsAICmpInst(test) || LLVMGetICmpPredicate(test) != LLVMIntEQ ||
      LLVMGetSuccessor(branch, 1) != s->body)
    return false;
  LLVMValueRef next = LLVMGetOperand(test, 0), end = LLVMGetOperand(test, 1);
  if (!is_in_body(s, next) || is_in_body(s, end) || LLVMGetInstructionOpcode(next) != LLVMAdd)
    return false;
  LLVMValueRef phi = LLVMGetOperand(next, 0), by = LLVMGetOperand(next, 1);
  if (!is_in_body(s, phi) || !LLVMIsAPHINode(phi) || !LLVMIsAConstantInt(by)) return false;
  bool is_first_before = LLVMGetIncomingBlock(phi, 0) == s->before;
  if (LLVMGetIncomingValue(phi, is_first_before) != next) return false;
  s->start = LLVMGetIncomingValue(phi, !is_first_before);
  s->end = end;
  s->step = LLVMConstIntGetZExtValue(by);
  return s->step != 0;
}

/* Returns whether the instruction is allowed in a loop with non-temporal stores: it does not
 * synchronize with other threads, and it reads memory only with a plain load. */
static bool is_plain(LLVMValueRef instruction)
{
  if (LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction))
    return !LLVMGetVolatile(instruction) &&
           LLVMGetOrdering(instruction) == LLVMAtomicOrderingNotAtomic;
  if (LLVMIsACallInst(instruction)) {
    static const char name[] = "memory";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMAttributeRef memory = LLVMGetCallSiteEnumAttribute(instruction, index, kind);
    if (!memory && LLVMIsAFunction(callee))
      memory = LLVMGetEnumAttributeAtIndex(callee, index, kind);
    return memory && !LLVMGetEnumAttributeValue(memory); /* memory(none) */
  }
  return !LLVMIsAAtomicRMWInst(instruction) && !LLVMIsAAtomicCmpXchgInst(instruction) &&
         !LLVMIsAFenceInst(instruction) && !LLVMIsAInvokeInst(instruction);
}

/* Returns whether the loop body can be copied. This requires that code after the loop uses values
 * of the body only through phis in the block `after`. */
static bool can_be_copied(const streamer *s)
{
  uint32_t count = 0;
  for (LLVMValueRef at = LLVMGetFirstInstruction(s->body); at; at = LLVMGetNextInstruction(at)) {
    if (++count > MOST_INSTRUCTIONS || !is_plain(at)) return false;
    for (LLVMUseRef use = LLVMGetFirstUse(at); use; use = LLVMGetNextUse(use)) {
      LLVMValueRef user = LLVMGetUser(use);
      LLVMBasicBlockRef where = LLVMGetInstructionParent(user);
      if (where != s->body && !(where == s->after && LLVMIsAPHINode(user))) return false;
    }
  }
  return true;
}

static bool find_loop(streamer *s, LLVMBasicBlockRef body)
{
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(body);
  if (!branch || !LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
  bool is_first = LLVMGetSuccessor(branch, 0) == body;
  s->body = body;
  s->after = LLVMGetSuccessor(branch, is_first);
  if (LLVMGetSuccessor(branch, !is_first) != body || s->after == body) return false;
  s->before = find_entrance(body);
  return s->before && find_counter(s, branch) && can_be_copied(s);
}

/* ---- the stores ---- */

/* Returns the array argument whose address is the root, or UINT32_MAX if there is none. */
static uint32_t argument_of(const streamer *s, LLVMValueRef root)
{
  const kl_lowering *l = s->l;
  LLVMValueRef block = LLVMGetParam(LLVMGetBasicBlockParent(s->body), 0);
  uint64_t offset = 0;
  if (!LLVMIsALoadInst(root)) return UINT32_MAX;
  LLVMValueRef from = LLVMGetOperand(root, 0);
  if (LLVMIsAGetElementPtrInst(from)) {
    LLVMValueRef by = LLVMGetOperand(from, 1);
    if (LLVMGetNumOperands(from) != 2 || !LLVMIsAConstantInt(by)) return UINT32_MAX;
    offset = LLVMConstIntGetZExtValue(by) *
             LLVMABISizeOfType(s->v.layout, LLVMGetGEPSourceElementType(from));
    from = LLVMGetOperand(from, 0);
  }
  for (size_t i = 0; i < l->parameters.count && from == block; i++) {
    const kj_parameter *parameter = &l->parameters.items[i].parameter;
    if (parameter->kind == KJ_PARAMETER_POINTER && parameter->offset == offset)
      return parameter->argument;
  }
  return UINT32_MAX;
}

static uint64_t alignment_of(const kg_access *store)
{
  return (uint64_t)store->size < CACHE_LINE ? (uint64_t)store->size : CACHE_LINE;
}

/* Returns whether the store writes whole vectors to a large output array that the loop does not
 * read. */
static bool is_of_large(const streamer *s, const kg_access *store)
{
  uint64_t size = (uint64_t)store->size;
  LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(store->instruction, 0));
  if (!store->is_store || LLVMGetTypeKind(type) != LLVMVectorTypeKind || size < 16 ||
      (size & (size - 1)) || store->at.kind != KJ_LINEAR_KNOWN)
    return false;
  uint32_t argument = argument_of(s, store->root);
  if (argument == UINT32_MAX ||
      !(s->l->c->request->signature->arguments[argument].facts & KJ_FACT_LARGE))
    return false;
  for (size_t i = 0; i < s->v.accesses.count; i++) {
    const kg_access *other = &s->v.accesses.items[i];
    if (other != store && (!other->is_store || other->root != store->root) &&
        !kg_are_apart(&s->v, store, other))
      return false;
  }
  return true;
}

/* Returns whether all stores to the array of this store fill a contiguous range in each iteration,
 * and whether the range of each iteration starts where the previous one ends. */
static bool is_dense(const streamer *s, const kg_access *store)
{
  int64_t total = 0;
  for (size_t i = 0; i < s->v.accesses.count; i++) {
    const kg_access *other = &s->v.accesses.items[i];
    if (!other->is_store || other->root != store->root) continue;
    kg_linear apart = kg_subtract_linear(other->at, store->at);
    if (other->size != store->size || other->at.step != store->at.step ||
        apart.kind != KJ_LINEAR_KNOWN || apart.constant % store->size)
      return false;
    for (uint32_t k = 0; k < apart.term_count; k++)
      if (apart.terms[k].scale) return false;
    total += other->size;
  }
  return total == store->at.step;
}

static bool find_stores(streamer *s)
{
  s->stores.count = 0;
  kg_find_accesses(&s->v);
  for (size_t i = 0; i < s->v.accesses.count; i++) {
    const kg_access *store = &s->v.accesses.items[i];
    if (is_of_large(s, store) && is_dense(s, store)) KJ_PUSH(s->l->c->arena, &s->stores, store);
  }
  return s->stores.count != 0;
}

/* ---- the test before the loop ---- */

/* Computes the value that an instruction of the body has in the first iteration. Returns NULL if
 * this is too complicated. The computation cannot fail, and the loop executes the same instructions
 * anyway, because it has at least one iteration. */
static LLVMValueRef compute_first(streamer *s, LLVMValueRef value, uint32_t depth)
{
  if (!is_in_body(s, value)) return value;
  LLVMValueRef known = find_mapped(&s->first, value);
  if (known) return known;
  if (LLVMIsAPHINode(value))
    return LLVMGetIncomingValue(value, LLVMGetIncomingBlock(value, 0) != s->before);
  LLVMOpcode op = LLVMGetInstructionOpcode(value);
  bool is_simple = op == LLVMGetElementPtr || op == LLVMAdd || op == LLVMSub || op == LLVMMul ||
                   op == LLVMShl || op == LLVMOr || op == LLVMFreeze || LLVMIsACastInst(value);
  if (!is_simple || depth == MOST_DEPTH) return NULL;
  LLVMValueRef operands[8];
  unsigned count = (unsigned)LLVMGetNumOperands(value);
  if (count > sizeof operands / sizeof *operands) return NULL;
  for (unsigned i = 0; i < count; i++) {
    operands[i] = compute_first(s, LLVMGetOperand(value, i), depth + 1);
    if (!operands[i]) return NULL;
  }
  LLVMValueRef copy = LLVMInstructionClone(value);
  for (unsigned i = 0; i < count; i++) LLVMSetOperand(copy, i, operands[i]);
  LLVMInsertIntoBuilder(s->builder, copy);
  return set_mapped(&s->first, value, copy);
}

/* Returns an i1 that tells whether all non-temporal stores are aligned and the loop is long enough,
 * or NULL if a store's address is too complicated. */
static LLVMValueRef build_test(streamer *s)
{
  LLVMTypeRef i64 = s->l->i64;
  LLVMValueRef bits = NULL;
  uint64_t most = 0, bytes = 0;
  LLVMPositionBuilderBefore(s->builder, LLVMGetBasicBlockTerminator(s->before));
  for (size_t i = 0; i < s->stores.count; i++) {
    const kg_access *store = s->stores.items[i];
    LLVMValueRef first = compute_first(s, LLVMGetOperand(store->instruction, 1), 0);
    if (!first) return NULL;
    first = LLVMBuildPtrToInt(s->builder, first, i64, "");
    bits = bits ? LLVMBuildOr(s->builder, bits, first, "") : first;
    if (alignment_of(store) > most) most = alignment_of(store);
    bytes += (uint64_t)store->size;
  }
  uint64_t least = (LEAST_BYTES + bytes - 1) / bytes * s->step;
  LLVMValueRef rest = LLVMBuildAnd(s->builder, bits, LLVMConstInt(i64, most - 1, false), ""),
               is_aligned = LLVMBuildICmp(s->builder, LLVMIntEQ, rest, kl_const64(s->l, 0), ""),
               distance = LLVMBuildSub(s->builder, s->end, s->start, ""),
               is_long = LLVMBuildICmp(s->builder, LLVMIntUGE, distance,
                                       LLVMConstInt(LLVMTypeOf(distance), least, false), "");
  return LLVMBuildAnd(s->builder, is_aligned, is_long, "");
}

/* ---- the second version ---- */

static LLVMValueRef copy_of(const streamer *s, LLVMValueRef value)
{
  LLVMValueRef copy = is_in_body(s, value) ? find_mapped(&s->copies, value) : NULL;
  return copy ? copy : value;
}

static void copy_instructions(streamer *s, LLVMBasicBlockRef stream)
{
  LLVMPositionBuilderAtEnd(s->builder, stream);
  for (LLVMValueRef at = LLVMGetFirstInstruction(s->body); at; at = LLVMGetNextInstruction(at)) {
    LLVMValueRef copy =
      LLVMIsAPHINode(at) ? LLVMBuildPhi(s->builder, LLVMTypeOf(at), "") : LLVMInstructionClone(at);
    if (!LLVMIsAPHINode(at)) LLVMInsertIntoBuilder(s->builder, copy);
    set_mapped(&s->copies, at, copy);
  }
}

static void connect_copies(streamer *s, LLVMBasicBlockRef stream, LLVMBasicBlockRef fence)
{
  for (LLVMValueRef at = LLVMGetFirstInstruction(s->body); at; at = LLVMGetNextInstruction(at)) {
    LLVMValueRef copy = find_mapped(&s->copies, at);
    if (LLVMIsAPHINode(at)) {
      unsigned own = LLVMGetIncomingBlock(at, 0) == s->before;
      LLVMValueRef values[] = { LLVMGetIncomingValue(at, !own),
                                copy_of(s, LLVMGetIncomingValue(at, own)) };
      LLVMBasicBlockRef blocks[] = { s->before, stream };
      LLVMAddIncoming(copy, values, blocks, 2);
      continue;
    }
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(copy); i++)
      LLVMSetOperand(copy, i, copy_of(s, LLVMGetOperand(copy, i)));
    for (unsigned i = 0; LLVMIsATerminatorInst(copy) && i < LLVMGetNumSuccessors(copy); i++)
      LLVMSetSuccessor(copy, i, LLVMGetSuccessor(copy, i) == s->body ? stream : fence);
  }
}

static void mark_stores(streamer *s)
{
  LLVMContextRef context = s->l->context;
  static const char name[] = "nontemporal";
  LLVMMetadataRef one = LLVMValueAsMetadata(kl_const32(s->l, 1));
  LLVMValueRef node = LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, &one, 1));
  for (size_t i = 0; i < s->stores.count; i++) {
    LLVMValueRef store = find_mapped(&s->copies, s->stores.items[i]->instruction);
    LLVMSetAlignment(store, (unsigned)alignment_of(s->stores.items[i]));
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(context, name, sizeof name - 1), node);
  }
}

/* Passes the values from the second version to the block's phis after the loop. */
static void join_after(streamer *s, LLVMBasicBlockRef fence)
{
  for (LLVMValueRef phi = LLVMGetFirstInstruction(s->after); phi && LLVMIsAPHINode(phi);
       phi = LLVMGetNextInstruction(phi))
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
      if (LLVMGetIncomingBlock(phi, i) != s->body) continue;
      LLVMValueRef value = copy_of(s, LLVMGetIncomingValue(phi, i));
      LLVMAddIncoming(phi, &value, &fence, 1);
      break;
    }
}

static void build_fence(streamer *s, LLVMBasicBlockRef fence)
{
  unsigned id = LLVMLookupIntrinsicID(KJ_STORE_FENCE, sizeof KJ_STORE_FENCE - 1);
  KJ_ASSERT(id);
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(s->l->module, id, NULL, 0);
  LLVMPositionBuilderAtEnd(s->builder, fence);
  LLVMBuildCall2(s->builder, LLVMIntrinsicGetType(s->l->context, id, NULL, 0), function, NULL, 0,
                 "");
  LLVMBuildBr(s->builder, s->after);
}

static void add_version(streamer *s)
{
  LLVMContextRef context = s->l->context;
  LLVMValueRef test = build_test(s);
  if (!test) return; /* the values computed so far have no uses, so code generation removes them */
  LLVMBasicBlockRef stream = LLVMInsertBasicBlockInContext(context, s->after, "stream"),
                    fence = LLVMInsertBasicBlockInContext(context, s->after, "stream.fence");
  LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(s->before));
  LLVMPositionBuilderAtEnd(s->builder, s->before);
  LLVMBuildCondBr(s->builder, test, stream, s->body);
  copy_instructions(s, stream);
  connect_copies(s, stream, fence);
  mark_stores(s);
  join_after(s, fence);
  build_fence(s, fence);
  s->l->c->used_large = true;
}

static bool has_large(const kl_lowering *l)
{
  const kj_signature *signature = l->c->request->signature;
  for (uint32_t i = 0; i < signature->count; i++)
    if (signature->arguments[i].facts & KJ_FACT_LARGE) return true;
  return false;
}

static void stream_block(streamer *s, LLVMBasicBlockRef block)
{
  if (!find_loop(s, block)) return;
  if (!kg_find_loop(&s->v, LLVMGetBasicBlockTerminator(block)) || !find_stores(s)) return;
  kj_init_map(&s->first, s->l->c->arena);
  kj_init_map(&s->copies, s->l->c->arena);
  add_version(s);
}

void kg_stream_results(kl_lowering *l)
{
  if (!*KJ_STORE_FENCE || !has_large(l)) return;
  LLVMContextRef context = l->context;
  streamer s = { .l = l,
                 .builder = LLVMCreateBuilderInContext(context),
                 .v = { .c = l->c,
                        .layout = LLVMGetModuleDataLayout(l->module),
                        .scope_kind = LLVMGetMDKindIDInContext(context, "alias.scope", 11),
                        .noalias_kind = LLVMGetMDKindIDInContext(context, "noalias", 7) } };
  for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMCountParams(f)) continue;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b;) {
      LLVMBasicBlockRef next = LLVMGetNextBasicBlock(b); /* skips new blocks */
      stream_block(&s, b);
      b = next;
    }
  }
  LLVMDisposeBuilder(s.builder);
}

/* nvptx: barriers, shuffles and votes, atomics with a scope, cache hints, clocks. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"

/* ---- barriers, fences, shuffles and votes: intrinsics that LLVM declares as convergent ---- */

static LLVMValueRef call(kl_lowering *l, const char *name, LLVMValueRef *args, unsigned count)
{
  return kl_intrinsic(l, name, NULL, 0, args, count);
}
static LLVMValueRef first_barrier(kl_lowering *l) { return kl_const32(l, 0); }

void kl_nvptx_barrier(kl_lowering *l)
{
  call(l, "llvm.nvvm.barrier.cta.sync.aligned.all", (LLVMValueRef[]){ first_barrier(l) }, 1);
}

LLVMValueRef kl_nvptx_barrier_reduce(kl_lowering *l, ki_barrier_reduction reduction,
                                     LLVMValueRef predicate)
{
  static const char *const names[] = {
    [KJ_REDUCE_COUNT] = "popc", [KJ_REDUCE_AND] = "and", [KJ_REDUCE_OR] = "or"
  };
  return call(l,
              kj_format(l->c->arena, "llvm.nvvm.barrier.cta.red.%s.aligned.all", names[reduction]),
              (LLVMValueRef[]){ first_barrier(l), predicate }, 2);
}

void kl_nvptx_syncwarp(kl_lowering *l, LLVMValueRef mask)
{
  call(l, "llvm.nvvm.bar.warp.sync", &mask, 1);
}

void kl_nvptx_fence(kl_lowering *l, ki_memory_scope scope)
{
  static const char *const names[] = { [KJ_SCOPE_DEVICE] = "llvm.nvvm.membar.gl",
                                       [KJ_SCOPE_BLOCK] = "llvm.nvvm.membar.cta",
                                       [KJ_SCOPE_SYSTEM] = "llvm.nvvm.membar.sys" };
  call(l, names[scope], NULL, 0);
}

/* Returns the last operand of a shuffle. Bits 0 to 4 are an upper bound of the lane number, or a
 * lower bound for `up`. The bits from 8 on are a mask of those bits of the lane number that select
 * the segment. */
static LLVMValueRef shuffle_bounds(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef width)
{
  int bound = mode == KJ_SHUFFLE_UP ? 0 : KJ_WARP_THREADS - 1;
  if (!width) return kl_const32(l, bound);
  LLVMValueRef part = kl_shl(l, kl_sub(l, kl_const32(l, KJ_WARP_THREADS), width), kl_const32(l, 8));
  return kl_or(l, part, kl_const32(l, bound));
}

LLVMValueRef kl_nvptx_shuffle(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                              LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width)
{
  KJ_ASSERT(LLVMTypeOf(value) == l->i32);
  static const char *const names[] = { [KJ_SHUFFLE_IDX] = "llvm.nvvm.shfl.sync.idx.i32",
                                       [KJ_SHUFFLE_UP] = "llvm.nvvm.shfl.sync.up.i32",
                                       [KJ_SHUFFLE_DOWN] = "llvm.nvvm.shfl.sync.down.i32",
                                       [KJ_SHUFFLE_XOR] = "llvm.nvvm.shfl.sync.bfly.i32" };
  LLVMValueRef args[4] = { mask, value, lane, shuffle_bounds(l, mode, width) };
  return call(l, names[mode], args, 4);
}

LLVMValueRef kl_nvptx_vote(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate)
{
  static const char *const names[] = { [KJ_VOTE_ALL] = "llvm.nvvm.vote.all.sync",
                                       [KJ_VOTE_ANY] = "llvm.nvvm.vote.any.sync",
                                       [KJ_VOTE_SAME] = "llvm.nvvm.vote.uni.sync",
                                       [KJ_VOTE_BALLOT] = "llvm.nvvm.vote.ballot.sync" };
  return call(l, names[mode], (LLVMValueRef[]){ mask, predicate }, 2);
}

LLVMValueRef kl_nvptx_activemask(kl_lowering *l)
{
  return call(l, "llvm.nvvm.activemask", NULL, 0);
}

/* Atomics are inline assembly if LLVM would emit unsuitable instructions: for LLVM's atomicrmw,
 * instructions with device scope, and for a 16-bit cmpxchg, a loop of 32-bit compare-and-swaps that
 * begins with a plain load. */

static const char *const scopes[] = {
  [KJ_SCOPE_DEVICE] = "gpu", [KJ_SCOPE_BLOCK] = "cta", [KJ_SCOPE_SYSTEM] = "sys"
};

static const char *space_of_place(LLVMValueRef pointer)
{
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  return space == 1 ? ".global" : space == 3 ? ".shared" : "";
}

static LLVMValueRef build_atom(kl_lowering *l, const char *op, const char *type, char constraint,
                               ki_memory_scope scope, LLVMValueRef *args, unsigned count)
{
  const char *where = space_of_place(args[0]);
  bool has_two = count == 3, takes_constants = constraint == 'r' || constraint == 'l';
  const char *value = kj_format(l->c->arena, "%c%s", constraint, takes_constants ? "n" : "");
  return kl_build_asm(l,
                      &(kl_asm){
                        .text = kj_format(l->c->arena, "atom.relaxed.%s%s.%s.%s $0, $1, $2%s;",
                                          scopes[scope], where, op, type, has_two ? ", $3" : ""),
                        .constraints = kj_format(l->c->arena, "=%c,*m,%s%s%s", constraint, value,
                                                 has_two ? "," : "", has_two ? value : ""),
                        .place = LLVMTypeOf(args[1]),
                        .result = LLVMTypeOf(args[1]) },
                      args, count);
}

/* The suffixes of PTX instructions for one element type: for instructions on bits, for instructions
 * on numbers, and for instructions that compare numbers (min, max). NULL means that there is no
 * such instruction. */
typedef struct atomic_types {
  const char *bits, *number, *order;
  char constraint;
  bool is_integer, has_counters;
} atomic_types;

static const char *atomic_type(const atomic_types *t, ki_combine op)
{
  switch (op) {
  case KJ_COMBINE_ADD: return t->number;
  case KJ_COMBINE_MIN:
  case KJ_COMBINE_MAX: return t->order;
  case KJ_COMBINE_AND:
  case KJ_COMBINE_OR:
  case KJ_COMBINE_XOR: return t->is_integer ? t->bits : NULL;
  case KJ_COMBINE_INC:
  case KJ_COMBINE_DEC: return t->has_counters ? t->number : NULL;
  case KJ_COMBINE_EXCHANGE: return t->bits;
  case KJ_COMBINE_SUB: break;
  }
  return NULL;
}

LLVMValueRef kl_nvptx_scoped_atomic(kl_lowering *l, ki_combine op, kjit_type type,
                                    ki_memory_scope scope, LLVMValueRef pointer, LLVMValueRef value)
{
  static const char *const names[] = {
    [KJ_COMBINE_ADD] = "add", [KJ_COMBINE_MIN] = "min", [KJ_COMBINE_MAX] = "max",
    [KJ_COMBINE_AND] = "and", [KJ_COMBINE_OR] = "or",   [KJ_COMBINE_XOR] = "xor",
    [KJ_COMBINE_INC] = "inc", [KJ_COMBINE_DEC] = "dec", [KJ_COMBINE_EXCHANGE] = "exch"
  };
  static const atomic_types types[] = { [KJIT_I32] = { "b32", "u32", "s32", 'r', true, true },
                                        [KJIT_U32] = { "b32", "u32", "u32", 'r', true, true },
                                        [KJIT_I64] = { "b64", "u64", "s64", 'l', true, false },
                                        [KJIT_U64] = { "b64", "u64", "u64", 'l', true, false },
                                        [KJIT_F32] = { "b32", "f32", NULL, 'f', false, false },
                                        [KJIT_F64] = { "b64", "f64", NULL, 'd', false, false },
                                        [KJIT_F16] = { NULL, "noftz.f16", NULL, 'h', false, false },
                                        [KJIT_BF16] = { NULL, "noftz.bf16", NULL, 'h', false,
                                                        false } };
  const char *instruction_type = atomic_type(&types[type], op);
  if (scope == KJ_SCOPE_DEVICE || !instruction_type) return NULL;
  bool is_small = types[type].constraint == 'h';
  LLVMValueRef args[] = { pointer, is_small ? kl_bitcast(l, value, l->i16) : value };
  return build_atom(l, names[op], instruction_type, types[type].constraint, scope, args, 2);
}

LLVMValueRef kl_nvptx_small_cas(kl_lowering *l, ki_memory_scope scope, LLVMValueRef pointer,
                                LLVMValueRef expected, LLVMValueRef desired)
{
  return build_atom(l, "cas", "b16", 'h', scope, (LLVMValueRef[]){ pointer, expected, desired }, 3);
}

/* Loads and stores of 16 bytes. They are inline assembly, because LLVM implements such a load by a
 * compare-and-swap, which also writes, and such a store by an exchange. LLVM supports both only for
 * sm_90 and later. A seq_cst access is preceded by a fence, like LLVM's 64-bit accesses. */

static const char *begin_wide(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                              const char *ordered)
{
  bool is_fenced = order == LLVMAtomicOrderingSequentiallyConsistent;
  if (is_fenced) LLVMBuildFenceSyncScope(kl_next(l), order, kl_sync_scope(l, scope), "");
  return order == LLVMAtomicOrderingMonotonic ? "relaxed" : ordered;
}

LLVMValueRef kl_nvptx_wide_load(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                                LLVMValueRef pointer)
{
  LLVMTypeRef type = LLVMIntTypeInContext(l->context, 128);
  const char *how = begin_wide(l, scope, order, "acquire");
  return kl_build_asm(l,
                      &(kl_asm){ .text = kj_format(l->c->arena, "ld.%s.%s%s.b128 $0, $1;", how,
                                                   scopes[scope], space_of_place(pointer)),
                                 .constraints = "=q,*m",
                                 .place = type,
                                 .result = type,
                                 .orders_others = order != LLVMAtomicOrderingMonotonic },
                      &pointer, 1);
}

LLVMValueRef kl_nvptx_wide_store(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                                 LLVMValueRef pointer, LLVMValueRef value)
{
  const char *how = begin_wide(l, scope, order, "release");
  return kl_build_asm(l,
                      &(kl_asm){ .text = kj_format(l->c->arena, "st.%s.%s%s.b128 $0, $1;", how,
                                                   scopes[scope], space_of_place(pointer)),
                                 .constraints = "*m,q",
                                 .place = LLVMTypeOf(value),
                                 .result = l->void_,
                                 .orders_others = order != LLVMAtomicOrderingMonotonic },
                      (LLVMValueRef[]){ pointer, value }, 2);
}

bool kl_nvptx_adds_small_float(kl_lowering *l, kjit_type type)
{
  return type == KJIT_F16 || l->c->request->target.arch >= 90;
}

/* ---- cache hints and clocks ----
 *
 * LLVM has no cache hints, so accesses with hints are inline assembly, which orders all memory
 * accesses of the thread. */

static LLVMValueRef call_text(kl_lowering *l, const char *text, const char *constraints,
                              LLVMTypeRef result, LLVMValueRef *args, unsigned count)
{
  KJ_ASSERT(count <= 2);
  LLVMTypeRef params[2];
  for (unsigned i = 0; i < count; i++) params[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, params, count, false);
  LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints),
                                       true, false, LLVMInlineAsmDialectATT, false);
  return kl_call(l, type, code, args, count);
}

/* Returns the register size for a value of `bits` bits. A byte is held in a 16-bit register. */
static unsigned register_bits(unsigned bits) { return bits < 16 ? 16 : bits; }
static char bits_constraint(unsigned bits) { return bits == 64 ? 'l' : bits == 32 ? 'r' : 'h'; }
static const char *space_of(LLVMValueRef pointer)
{
  return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == 1 ? ".global" : "";
}

/* lower_memory.c builds NC loads as LLVM loads, so that LLVM knows that the memory is not written.
 * They do not use this table. */
static const char *const hint_texts[] = {
  [KJ_CACHE_CA] = "ca", [KJ_CACHE_CG] = "cg", [KJ_CACHE_CS] = "cs", [KJ_CACHE_LU] = "lu",
  [KJ_CACHE_CV] = "cv", [KJ_CACHE_NC] = "nc", [KJ_CACHE_WB] = "wb", [KJ_CACHE_WT] = "wt"
};

LLVMValueRef kl_nvptx_hinted_load(kl_lowering *l, ki_cache_hint hint, LLVMTypeRef type,
                                  LLVMValueRef pointer)
{
  unsigned bits = kl_bits_of(l, type), held = register_bits(bits);
  const char *text =
    kj_format(l->c->arena, "ld%s.%s.b%u $0, [$1];", space_of(pointer), hint_texts[hint], bits);
  const char *constraints = kj_format(l->c->arena, "=%c,l,~{memory}", bits_constraint(held));
  LLVMValueRef value =
    call_text(l, text, constraints, LLVMIntTypeInContext(l->context, held), &pointer, 1);
  if (held != bits) value = kl_trunc(l, value, LLVMIntTypeInContext(l->context, bits));
  return kl_bitcast(l, value, type);
}

void kl_nvptx_hinted_store(kl_lowering *l, ki_cache_hint hint, LLVMValueRef pointer,
                           LLVMValueRef value)
{
  unsigned bits = kl_bits_of(l, LLVMTypeOf(value)), held = register_bits(bits);
  const char *text =
    kj_format(l->c->arena, "st%s.%s.b%u [$0], $1;", space_of(pointer), hint_texts[hint], bits);
  const char *constraints = kj_format(l->c->arena, "l,%c,~{memory}", bits_constraint(held));
  value = kl_bitcast(l, value, LLVMIntTypeInContext(l->context, bits));
  if (held != bits) value = kl_zext(l, value, LLVMIntTypeInContext(l->context, held));
  call_text(l, text, constraints, l->void_, (LLVMValueRef[]){ pointer, value }, 2);
}

void kl_nvptx_prefetch(kl_lowering *l, ki_cache_level level, LLVMValueRef pointer)
{
  call_text(l,
            kj_format(l->c->arena, "prefetch%s.%s [$0];", space_of(pointer),
                      level == KJ_PREFETCH_L1 ? "L1" : "L2"),
            "l", l->void_, &pointer, 1);
}

LLVMValueRef kl_nvptx_clock(kl_lowering *l, ki_builtin_id clock)
{
  return call(l,
              clock == KJ_BUILTIN_CLOCK64 ? "llvm.nvvm.read.ptx.sreg.clock64"
                                          : "llvm.nvvm.read.ptx.sreg.globaltimer",
              NULL, 0);
}

void kl_nvptx_nanosleep(kl_lowering *l, LLVMValueRef duration)
{
  kl_intrinsic(l, "llvm.nvvm.nanosleep", NULL, 0, &duration, 1);
}

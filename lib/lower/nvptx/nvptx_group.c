/* nvptx: barriers between warps and blocks, mbarriers, clusters. Some of LLVM's intrinsics declare
 * that they access only the barrier's memory. LLVM could therefore move accesses to the protected
 * data across these intrinsics. So all these operations are inline assembly that, for LLVM, can
 * access any memory. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"

LLVMValueRef kl_build_asm(kl_lowering *l, const kl_asm *code, LLVMValueRef *args, unsigned count)
{
  LLVMTypeRef *params = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, count + 1);
  for (unsigned i = 0; i < count; i++) params[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(code->result, params, count, false);
  const char *constraints = code->constraints;
  if (!code->is_pure && (!code->place || code->orders_others))
    constraints = kj_format(l->c->arena, "%s%s~{memory}", constraints, constraints[0] ? "," : "");
  LLVMValueRef value =
    LLVMGetInlineAsm(type, code->text, strlen(code->text), constraints, strlen(constraints),
                     !code->is_pure, false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef call = kl_call(l, type, value, args, count);
  if (code->is_convergent) kl_add_call_attribute(l, call, "convergent");
  kl_add_call_attribute(l, call, "nounwind");
  if (code->place) kl_set_place(l, call, code->place, !code->orders_others);
  return call;
}

LLVMValueRef kl_shared_window(kl_lowering *l, LLVMValueRef pointer)
{
  return kl_trunc(l, kl_ptrtoint(l, pointer, l->i64), l->i32);
}

static LLVMValueRef effect(kl_lowering *l, const char *text, const char *constraints,
                           LLVMValueRef *args, unsigned count)
{
  kl_build_asm(l,
               &(kl_asm){ .text = text,
                          .constraints = constraints,
                          .result = l->void_,
                          .is_convergent = true },
               args, count);
  return NULL;
}

/* ---- barriers ---- */

void kl_nvptx_wait_until(kl_lowering *l, kj_location location, const kl_asm *ask,
                         LLVMValueRef *args, unsigned count)
{
  enum { COST = 4096 }; /* cost, in expressions, of one execution of `ask`, which can take long */
  LLVMBasicBlockRef again = kl_new_block(l, "wait"), over = kl_new_block(l, "over"),
                    waits = kl_new_block(l, "waits");
  kl_go_on_in(l, again);
  LLVMValueRef answer = kl_build_asm(l, ask, args, count);
  kl_cond_br(l, kl_icmp(l, LLVMIntNE, answer, kl_const32(l, 0)), over, waits);
  kl_move_to(l, waits);
  kl_poll_waiting(l, location, COST);
  kl_br(l, again);
  kl_move_to(l, over);
  l->loop_count++;
}

/* ---- named barriers of interruptible code ----
 *
 * A hardware barrier waits for a fixed number of threads. Threads that have left the kernel do not
 * arrive, so the other threads would wait forever. Interruptible code therefore uses words of
 * shared memory instead. The upper half of a word is the number of the round, and the lower half is
 * the number of threads that have arrived. The last thread that arrives in a round starts the next
 * round. */

enum { NAMED_BARRIERS = 16 };

LLVMValueRef kl_nvptx_shared_words(kl_lowering *l, const char *name, LLVMTypeRef word,
                                   uint32_t count, uint32_t word_bytes)
{
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, name);
  if (known) return known;
  LLVMTypeRef type = LLVMArrayType2(word, count);
  LLVMValueRef words = LLVMAddGlobalInAddressSpace(l->module, type, name, l->target->shared_space);
  LLVMSetAlignment(words, 8);
  LLVMSetLinkage(words, LLVMInternalLinkage);
  LLVMSetInitializer(words, LLVMGetUndef(type));
  uint32_t *bytes = &l->c->code->static_shared_bytes;
  *bytes = (*bytes + 7) / 8 * 8 + count * word_bytes;
  return words;
}

static LLVMValueRef named_barriers(kl_lowering *l)
{
  return kl_nvptx_shared_words(l, "kjit_named_barriers", l->i64, NAMED_BARRIERS, 8);
}

/* If a thread waits for a cluster barrier at which it has not arrived, or arrives twice, a wait of
 * this thread or of another thread never ends. So in interruptible code, each thread has a byte of
 * shared memory that records whether the thread has arrived and not yet waited. */
enum { MOST_THREADS = 1024 };

static LLVMValueRef cluster_arrival(kl_lowering *l)
{
  LLVMValueRef bytes = kl_nvptx_shared_words(l, "kjit_cluster_arrivals", l->i8, MOST_THREADS, 1);
  LLVMValueRef rank = kl_zext(l, l->target->position(l, KJ_BUILTIN_THREAD_RANK, 0), l->i64);
  return kl_inbounds_gep(l, l->i8, bytes, &rank, 1);
}

typedef struct block_needs {
  bool named, cluster;
} block_needs;

static void find_needs(void *data, kt_expr **at)
{
  const kt_expr *e = *at;
  block_needs *needs = data;
  if (e->kind != KJ_T_BUILTIN) return;
  ki_builtin_id id = e->builtin->id;
  needs->named |= id == KJ_BUILTIN_BARRIER_SYNC || id == KJ_BUILTIN_BARRIER_ARRIVE;
  needs->cluster |= kt_is_cluster_barrier(id);
}

static void begin_named_barriers(kl_lowering *l)
{
  LLVMBasicBlockRef again = kl_new_block(l, "barriers"), done = kl_new_block(l, "begun");
  LLVMValueRef rank = l->target->position(l, KJ_BUILTIN_THREAD_RANK, 0),
               is_first = kl_icmp(l, LLVMIntEQ, rank, kl_const32(l, 0));
  kl_go_on_if(l, is_first, again, done);
  for (unsigned i = 0; i < NAMED_BARRIERS; i++) {
    LLVMValueRef at = kl_const64(l, i);
    kl_store(l, kl_const64(l, 0), kl_inbounds_gep(l, l->i64, named_barriers(l), &at, 1));
  }
  kl_go_on_in(l, done);
  l->target->barrier(l);
}

void kl_nvptx_begin_block(kl_lowering *l)
{
  block_needs needs = { 0 };
  if (kl_nvptx_counts_threads(l)) kl_nvptx_begin_grid(l);
  if (!l->c->request->is_interruptible) return;
  for (size_t i = 0; i < l->c->instances.count; i++)
    kt_walk_tstmts(&l->c->instances.items[i]->body, NULL, find_needs, &needs);
  if (needs.named && l->interrupt_word) begin_named_barriers(l);
  if (needs.cluster) kl_store(l, LLVMConstInt(l->i8, 0, false), cluster_arrival(l));
}

static LLVMValueRef add_to(kl_lowering *l, LLVMValueRef address, LLVMValueRef value)
{
  LLVMValueRef args[2] = { address, value };
  return kl_build_asm(l,
                      &(kl_asm){ .text = "atom.acq_rel.cta.shared.add.u64 $0, [$1], $2;",
                                 .constraints = "=l,r,l",
                                 .result = l->i64,
                                 .is_convergent = true },
                      args, 2);
}

static const char ask_round[] =
  "{ .reg .pred p; .reg .b32 lo, hi; .reg .b64 now; ld.acquire.cta.shared.u64 now, [$1]; mov.b64 "
  "{lo, hi}, now; sub.s32 hi, hi, $2; setp.gt.s32 p, hi, 0; selp.u32 $0, 1, 0, p; }";

static void meet_named(kl_lowering *l, kj_location location, LLVMValueRef id, LLVMValueRef count,
                       bool waits)
{
  LLVMBasicBlockRef last = kl_new_block(l, "last"), goes = kl_new_block(l, "came");
  count = kl_intrinsic2(l, "llvm.umax", count, kl_const32(l, 1));
  LLVMValueRef at = kl_zext(l, kl_and(l, id, kl_const32(l, NAMED_BARRIERS - 1)), l->i64);
  LLVMValueRef address = kl_shared_window(l, kl_inbounds_gep(l, l->i64, named_barriers(l), &at, 1));
  LLVMValueRef before = add_to(l, address, kl_const64(l, 1)), arrived = kl_as_i32(l, before);
  LLVMValueRef round =
    kl_add(l, kl_as_i32(l, kl_lshr(l, before, kl_const64(l, 32))), kl_udiv(l, arrived, count));
  LLVMValueRef rest = kl_urem(l, kl_add(l, arrived, kl_const32(l, 1)), count);
  kl_go_on_if(l, kl_icmp(l, LLVMIntEQ, rest, kl_const32(l, 0)), last, goes);
  LLVMValueRef next = kl_sub(l, kl_const64(l, (int64_t)1 << 32), kl_zext(l, count, l->i64));
  (void)add_to(l, address, next);
  kl_go_on_in(l, goes);
  LLVMValueRef args[2] = { address, round };
  if (waits)
    kl_nvptx_wait_until(l, location,
                        &(kl_asm){ .text = ask_round,
                                   .constraints = "=r,r,r",
                                   .result = l->i32,
                                   .is_convergent = true },
                        args, 2);
}

/* ---- barriers of clusters in interruptible code ---- */

static void check_cluster_barrier(kl_lowering *l, const kt_expr *expr)
{
  if (!l->c->request->is_interruptible) return;
  bool waits = expr->builtin->id == KJ_BUILTIN_CLUSTER_WAIT;
  LLVMValueRef byte = cluster_arrival(l), zero = LLVMConstInt(l->i8, 0, false);
  LLVMValueRef is_wrong = kl_icmp(l, waits ? LLVMIntEQ : LLVMIntNE, kl_load(l, l->i8, byte), zero);
  kl_failure failure = {
    .kind = KJ_FAILURE_RAISE,
    .location = expr->location,
    .message = waits ? "`cluster_wait` without `cluster_arrive` before"
                     : "arrives at the cluster's barrier once more without `cluster_wait` between"
  };
  kl_fail_if(l, is_wrong, &failure);
  if (expr->builtin->id != KJ_BUILTIN_CLUSTER_SYNC)
    kl_store(l, LLVMConstInt(l->i8, !waits, false), byte);
}

LLVMValueRef kl_nvptx_group_barrier(kl_lowering *l, const kt_expr *expr)
{
  static const char arrive[] = "barrier.cluster.arrive;", wait[] = "barrier.cluster.wait;";
  ki_builtin_id id = expr->builtin->id;
  if (id == KJ_BUILTIN_GRID_SYNC) kl_nvptx_sync_grid(l, expr->location);
  if (kt_is_cluster_barrier(id)) check_cluster_barrier(l, expr);
  if (id == KJ_BUILTIN_CLUSTER_SYNC || id == KJ_BUILTIN_CLUSTER_ARRIVE)
    effect(l, arrive, "", NULL, 0);
  if (id == KJ_BUILTIN_CLUSTER_SYNC || id == KJ_BUILTIN_CLUSTER_WAIT) effect(l, wait, "", NULL, 0);
  if (!expr->args.count) return NULL;
  LLVMValueRef args[2] = { kl_lower_index32(l, expr->args.items[0]),
                           kl_lower_index32(l, expr->args.items[1]) };
  bool is_sync = id == KJ_BUILTIN_BARRIER_SYNC;
  if (l->interrupt_word) {
    meet_named(l, expr->location, args[0], args[1], is_sync);
    return NULL;
  }
  return effect(l, is_sync ? "barrier.sync $0, $1;" : "barrier.arrive $0, $1;", "r,r", args, 2);
}

/* ---- mbarriers ---- */

typedef struct phase_text {
  ki_builtin_id id;
  /* is_other: the mbarrier is in another block. is_counted: the built-in has a count. */
  bool is_other, is_counted;
  const char *text, *constraints;
} phase_text;

static const phase_text phase_texts[] = {
  { KJ_BUILTIN_MBARRIER_INIT, false, true, "mbarrier.init.shared.b64 [$0], $1;", "r,r" },
  { KJ_BUILTIN_MBARRIER_INVAL, false, false, "mbarrier.inval.shared.b64 [$0];", "r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE, false, false, "mbarrier.arrive.shared.b64 $0, [$1];", "=l,r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE, false, true,
    "mbarrier.arrive.release.cta.shared::cta.b64 $0, [$1], $2;", "=l,r,r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE, true, false,
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE, true, true,
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0], $1;", "r,r" },
  { KJ_BUILTIN_MBARRIER_EXPECT_TX, false, true,
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r" },
  { KJ_BUILTIN_MBARRIER_EXPECT_TX, true, true,
    "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [$0], $1;", "r,r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX, false, true,
    "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 $0, [$1], $2;", "=l,r,r" },
  { KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX, true, true,
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", "r,r" },
  { KJ_BUILTIN_CP_ASYNC_ARRIVE, false, false, "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];",
    "r" },
};

static LLVMValueRef address32(kl_lowering *l, const kt_expr *expr)
{
  return kl_trunc(l, kl_lower_expr(l, expr->args.items[0]), l->i32);
}

LLVMValueRef kl_nvptx_mbarrier(kl_lowering *l, const kt_expr *expr)
{
  size_t i = 0;
  bool is_counted = expr->args.count > 1;
  while (phase_texts[i].id != expr->builtin->id || phase_texts[i].is_other != expr->dimension ||
         phase_texts[i].is_counted != is_counted)
    i++;
  LLVMValueRef args[2] = { address32(l, expr) };
  if (is_counted) args[1] = kl_lower_expr(l, expr->args.items[1]);
  LLVMTypeRef result = expr->type == KJIT_VOID ? l->void_ : l->i64;
  return kl_build_asm(l,
                      &(kl_asm){ .text = phase_texts[i].text,
                                 .constraints = phase_texts[i].constraints,
                                 .result = result },
                      args, 1 + is_counted);
}

/* Returns an acquire's scope: the cluster, if there is one, because threads of other blocks in the
 * cluster may also have arrived. */
static const char *scope_text(kl_lowering *l)
{
  return l->c->has_cluster || l->c->code->cluster[0] ? ".acquire.cluster" : "";
}

LLVMValueRef kl_nvptx_mbarrier_wait(kl_lowering *l, const kt_expr *expr)
{
  ki_phase_wait wait = (ki_phase_wait)expr->builtin->operation;
  bool has_try = l->c->request->target.arch >= 90, is_wait = wait == KJ_PHASE_WAIT;
  LLVMValueRef address = address32(l, expr), phase = kl_lower_expr(l, expr->args.items[1]);
  LLVMValueRef args[2] = { address, phase };
  bool is_parity = LLVMTypeOf(phase) == l->i32;
  const char *how = wait == KJ_PHASE_TEST || (is_wait && !has_try) ? "test_wait" : "try_wait",
             *space = has_try ? ".shared::cta" : ".shared", *scope = scope_text(l);
  bool has_result = !is_wait || l->interrupt_word;
  const char *test =
    kj_format(l->c->arena, "mbarrier.%s%s%s%s.b64 p, [$%d], $%d;", how, is_parity ? ".parity" : "",
              has_try ? scope : "", space, has_result, 1 + has_result);
  const char *operand = is_parity ? "r,r" : "r,l";
  if (has_try && scope[0] && l->c->least_ptx < 80) l->c->least_ptx = 80;
  const char *text = kj_format(l->c->arena, "{ .reg .pred p; %s selp.u32 $0, 1, 0, p; }", test);
  const char *constraints = kj_format(l->c->arena, "=r,%s", operand);
  const kl_asm ask = {
    .text = text, .constraints = constraints, .result = l->i32, .is_convergent = true
  };
  if (is_wait && l->interrupt_word) {
    kl_nvptx_wait_until(l, expr->location, &ask, args, 2);
    return NULL;
  }
  if (is_wait)
    return effect(l,
                  kj_format(l->c->arena,
                            "{ .reg .pred p; again: %s @p bra done; bra again; done: }", test),
                  operand, args, 2);
  LLVMValueRef is_over = kl_build_asm(l, &ask, args, 2);
  return kl_icmp(l, LLVMIntNE, is_over, kl_const32(l, 0));
}

LLVMValueRef kl_nvptx_pending_count(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef token = kl_lower_expr(l, expr->args.items[0]);
  return kl_build_asm(l,
                      &(kl_asm){ .text = "mbarrier.pending_count.b64 $0, $1;",
                                 .constraints = "=r,l",
                                 .result = l->i32,
                                 .is_pure = true },
                      &token, 1);
}

/* ---- clusters ---- */

LLVMValueRef kl_nvptx_shared_address(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value array = kl_lower_array(l, expr->x);
  LLVMValueRef pointer = kl_checked_pointer(l, &array, &expr->indices, kl_check_of_expr(l, expr));
  LLVMTypeRef shared = LLVMPointerTypeInContext(l->context, l->target->shared_space);
  if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) != l->target->shared_space)
    pointer = kl_addrspacecast(l, pointer, shared);
  return kl_ptrtoint(l, pointer, l->i64);
}

LLVMValueRef kl_nvptx_map_shared_rank(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value array = kl_lower_array(l, expr->args.items[0]);
  LLVMValueRef rank = kl_lower_expr(l, expr->args.items[1]);
  LLVMValueRef args[2] = { kl_addrspacecast(l, array.pointer, l->pointer), rank };
  array.pointer = kl_build_asm(l,
                               &(kl_asm){ .text = "mapa.u64 $0, $1, $2;",
                                          .constraints = "=l,l,r",
                                          .result = l->pointer,
                                          .is_pure = true },
                               args, 2);
  array.type = expr->type;
  return kl_pack_array(l, &array);
}

/* Returns a cluster position. On architectures without clusters, every block is a cluster. */
LLVMValueRef kl_nvptx_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t dimension)
{
  if (l->c->request->target.arch < 90) {
    if (position == KJ_BUILTIN_CLUSTER_IDX)
      return l->target->position(l, KJ_BUILTIN_BLOCK_IDX, dimension);
    if (position == KJ_BUILTIN_CLUSTER_GRID_DIM)
      return l->target->position(l, KJ_BUILTIN_GRID_DIM, dimension);
    return kl_const32(l, position == KJ_BUILTIN_CLUSTER_DIM || position == KJ_BUILTIN_CLUSTER_SIZE);
  }
  static const char *const names[] = {
    [KJ_BUILTIN_CLUSTER_IDX] = "clusterid",        [KJ_BUILTIN_CLUSTER_DIM] = "cluster.nctaid",
    [KJ_BUILTIN_CLUSTER_GRID_DIM] = "nclusterid",  [KJ_BUILTIN_CLUSTER_BLOCK_IDX] = "cluster.ctaid",
    [KJ_BUILTIN_CLUSTER_RANK] = "cluster.ctarank", [KJ_BUILTIN_CLUSTER_SIZE] = "cluster.nctarank"
  };
  bool has_parts = ki_builtin_table[position].flags & KJ_XYZ;
  const uint32_t *known = l->c->code->cluster;
  if (known[0] && position == KJ_BUILTIN_CLUSTER_DIM) return kl_const32(l, known[dimension]);
  if (known[0] && position == KJ_BUILTIN_CLUSTER_SIZE)
    return kl_const32(l, (int64_t)known[0] * known[1] * known[2]);
  const char part[] = { '.', "xyz"[dimension], 0 };
  return kl_intrinsic(l,
                      kj_format(l->c->arena, "llvm.nvvm.read.ptx.sreg.%s%s", names[position],
                                has_parts ? part : ""),
                      NULL, 0, NULL, 0);
}

/* ---- the built-ins ptx and ptx_effect ---- */

static char constraint_of(kl_lowering *l, kjit_type type)
{
  if (type == KJIT_F32) return 'f';
  if (type == KJIT_F64) return 'd';
  uint32_t bytes = kl_scalar_bytes(l, type);
  return bytes == 8 ? 'l' : bytes == 4 ? 'r' : 'h';
}

/* Returns an operand's type in inline PTX. A 16-bit float is passed as the integer with its bits,
 * and a value of 8 bits is extended to 16 bits. */
static LLVMTypeRef operand_type(kl_lowering *l, kjit_type type)
{
  return type == KJIT_F32 || type == KJIT_F64 || kl_scalar_bytes(l, type) > 2
           ? kl_register_type(l, type)
           : l->i16;
}

static LLVMValueRef as_operand(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (operand_type(l, type) != l->i16) return value;
  if (kl_scalar_bytes(l, type) == 2) return kl_bitcast(l, kl_to_memory(l, type, value), l->i16);
  return kl_is_signed_type(l, type) ? kl_sext(l, value, l->i16) : kl_zext(l, value, l->i16);
}

static LLVMValueRef from_result(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (operand_type(l, type) != l->i16) return value;
  if (kl_scalar_bytes(l, type) == 2)
    return kl_from_memory(l, type, kl_bitcast(l, value, kl_memory_type(l, type)));
  return kl_trunc(l, value, kl_register_type(l, type));
}

/* Returns the types of the results: the type itself or, if it is a tuple, its items' types. */
static const kjit_type *list_results(kl_lowering *l, const kt_expr *expr, size_t *count)
{
  bool is_tuple = kl_is_tuple_type(l, expr->type);
  *count = is_tuple ? kl_type_info(l, expr->type)->count : expr->type != KJIT_VOID;
  return is_tuple ? kl_type_info(l, expr->type)->items : &expr->type;
}

static LLVMTypeRef result_type(kl_lowering *l, const kjit_type *types, size_t count)
{
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, count + 1);
  for (size_t i = 0; i < count; i++) items[i] = operand_type(l, types[i]);
  if (!count) return l->void_;
  return count == 1 ? items[0] : LLVMStructTypeInContext(l->context, items, (unsigned)count, false);
}

/* Converts the result of the assembly call to the value of the built-in. LLVM returns a single
 * result directly, and several results in a struct. */
static LLVMValueRef take_results(kl_lowering *l, const kt_expr *expr, LLVMValueRef value)
{
  size_t count;
  const kjit_type *types = list_results(l, expr, &count);
  if (!count) return NULL;
  if (!kl_is_tuple_type(l, expr->type)) return from_result(l, expr->type, value);
  LLVMValueRef tuple = LLVMGetPoison(kl_register_type(l, expr->type));
  for (size_t i = 0; i < count; i++) {
    LLVMValueRef item = count == 1 ? value : kl_extract_value(l, value, (unsigned)i);
    tuple = kl_set_part(l, expr->type, tuple, from_result(l, types[i], item), (uint32_t)i);
  }
  return tuple;
}

static const char *add_constraint(kl_lowering *l, const char *to, const char *prefix, char more)
{
  return kj_format(l->c->arena, "%s%s%s%c", to, to[0] ? "," : "", prefix, more);
}

LLVMValueRef kl_nvptx_ptx(kl_lowering *l, const kt_expr *expr)
{
  size_t count;
  const kjit_type *results = list_results(l, expr, &count);
  LLVMValueRef *args = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, expr->args.count + 1);
  const char *constraints = "";
  for (size_t i = 0; i < count; i++)
    constraints = add_constraint(l, constraints, "=", constraint_of(l, results[i]));
  for (size_t i = 0; i < expr->args.count; i++) {
    kjit_type type = expr->args.items[i]->type;
    bool is_constant = i < 32 && expr->dimension >> i & 1;
    args[i] = is_constant ? kl_const64(l, (int64_t)expr->args.items[i]->integer)
                          : as_operand(l, type, kl_lower_expr(l, expr->args.items[i]));
    constraints = add_constraint(l, constraints, "", is_constant ? 'n' : constraint_of(l, type));
  }
  kl_asm code = { .text = expr->text,
                  .constraints = constraints,
                  .result = result_type(l, results, count),
                  .is_convergent = true };
  return take_results(l, expr, kl_build_asm(l, &code, args, (unsigned)expr->args.count));
}

/* ---- fences ---- */

LLVMValueRef kl_nvptx_group_fence(kl_lowering *l, const kt_expr *expr)
{
  return effect(l,
                expr->builtin->id == KJ_BUILTIN_FENCE_PROXY_ASYNC
                  ? "fence.proxy.async;"
                  : "fence.mbarrier_init.release.cluster;",
                "", NULL, 0);
}

/* CPU: warp operations and counting barriers, between the thread loops.
 *
 * A warp is 32 consecutive threads of the block, the last one maybe fewer. Operands are slots,
 * uniform or constant, so that they can be read for any thread; inactive lanes take no part in
 * votes, and a shuffle from one gives what it last had there. */
#include <string.h>

#include "lower/cpu/cpu.h"

enum { WARP = 32 };

LLVMValueRef kj_warp_operand(kj_lowering *l, const kj_tstmt *stmt, size_t i, LLVMValueRef rank)
{
  LLVMValueRef outer = kj_cpu(l)->rank;
  kj_set_rank(l, rank);
  LLVMValueRef value = kj_lower_expr(l, stmt->value->args.items[i]);
  kj_set_rank(l, outer);
  return value;
}

LLVMValueRef kj_warp_operand32(kj_lowering *l, const kj_tstmt *stmt, size_t i, LLVMValueRef rank)
{
  return kj_as_i32(l, kj_build_convert(l, stmt->value->args.items[i]->type, KJIT_I64,
                                       kj_warp_operand(l, stmt, i, rank)));
}

static LLVMValueRef condition(kj_lowering *l, const kj_tstmt *stmt, size_t i, LLVMValueRef rank)
{
  return kj_build_convert(l, stmt->value->args.items[i]->type, KJIT_BOOL,
                          kj_warp_operand(l, stmt, i, rank));
}

/* A loop over threads [first, stop) of the block; what they have in common in it is memory that is
 * accessed without saying that it is independent. */
kj_parallel kj_begin_lanes(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first,
                           LLVMValueRef stop)
{
  LLVMMetadataRef off = kj_metadata_string(l, "llvm.loop.unroll.disable");
  LLVMMetadataRef property = LLVMMDNodeInContext2(l->context, &off, 1);
  kj_begin_vector_loop(l, loop, first, stop);
  kj_set_rank(l, loop->counter);
  return kj_begin_parallel(l, kj_loop_id(l, &property, 1));
}

void kj_end_lanes(kj_lowering *l, kj_counted_loop *loop, const kj_parallel *p)
{
  loop->id = kj_end_parallel(l, p);
  kj_end_vector_loop(l, loop);
  kj_set_rank(l, kj_cpu(l)->thread_count == 1 ? kj_const32(l, 0) : NULL);
}

static LLVMValueRef all_threads(kj_lowering *l) { return kj_const32(l, kj_cpu(l)->thread_count); }
static LLVMValueRef first_thread(kj_lowering *l) { return kj_cpu(l)->unit_first; }
static LLVMValueRef last_thread(kj_lowering *l) { return kj_cpu(l)->unit_stop; }

LLVMValueRef kj_is_lane_active(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank)
{
  kj_set_rank(l, rank);
  return stmt->is_guarded ? kj_is_active(l) : LLVMConstInt(l->i1, 1, false);
}

/* Writes are for active threads only. */
void kj_set_lane_result(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank, LLVMValueRef value)
{
  if (!stmt->var) return;
  LLVMBasicBlockRef end = NULL;
  if (stmt->is_guarded) {
    LLVMBasicBlockRef write = kj_new_block(l, "write");
    end = kj_new_block(l, "written");
    LLVMBuildCondBr(l->builder, kj_is_lane_active(l, stmt, rank), write, end);
    kj_move_to(l, write);
  }
  kj_set_rank(l, rank);
  kj_set_variable(l, stmt->var, value);
  if (!end) return;
  kj_branch(l, end);
  kj_move_to(l, end);
}

/* ---- shuffles: PTX's shfl ---- */

static LLVMValueRef and32(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildAnd(l->builder, x, y, "");
}

/* The lane read by `lane`, and whether it is inside the segment. */
static LLVMValueRef source_lane(kj_lowering *l, kj_shuffle_mode mode, LLVMValueRef lane,
                                LLVMValueRef by, LLVMValueRef width, LLVMValueRef *is_inside)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef inner = LLVMBuildSub(b, width, kj_const32(l, 1), ""),
               first = and32(l, lane, LLVMBuildNot(b, inner, "")),
               last = LLVMBuildOr(b, first, inner, "");
  by = and32(l, by, kj_const32(l, WARP - 1));
  if (mode == KJ_SHUFFLE_IDX) {
    *is_inside = LLVMConstInt(l->i1, 1, false);
    return LLVMBuildOr(b, first, and32(l, by, inner), "");
  }
  if (mode == KJ_SHUFFLE_UP) {
    LLVMValueRef from = LLVMBuildSub(b, lane, by, "");
    *is_inside = LLVMBuildICmp(b, LLVMIntSGE, from, first, "");
    return from;
  }
  LLVMValueRef from =
    mode == KJ_SHUFFLE_DOWN ? LLVMBuildAdd(b, lane, by, "") : LLVMBuildXor(b, lane, by, "");
  *is_inside = LLVMBuildICmp(b, LLVMIntSLE, from, last, "");
  return from;
}

static LLVMValueRef source_thread(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef lane = and32(l, rank, kj_const32(l, WARP - 1)),
               base = and32(l, rank, kj_const32(l, -WARP)), is_inside;
  LLVMValueRef width =
    stmt->value->args.count == 4 ? kj_warp_operand32(l, stmt, 3, rank) : kj_const32(l, WARP);
  LLVMValueRef from = source_lane(l, (kj_shuffle_mode)stmt->value->builtin->operation, lane,
                                  kj_warp_operand32(l, stmt, 2, rank), width, &is_inside);
  LLVMValueRef thread = LLVMBuildAdd(b, base, from, "");
  LLVMValueRef exists = LLVMBuildICmp(b, LLVMIntULT, thread, all_threads(l), "");
  return LLVMBuildSelect(b, and32(l, is_inside, exists), thread, rank, "");
}

static void lower_shuffle(kj_lowering *l, const kj_tstmt *stmt)
{
  if (!stmt->var) return;
  kj_counted_loop loop;
  kj_parallel p = kj_begin_lanes(l, &loop, first_thread(l), last_thread(l));
  LLVMValueRef rank = loop.counter;
  kj_set_lane_result(l, stmt, rank, kj_warp_operand(l, stmt, 1, source_thread(l, stmt, rank)));
  kj_end_lanes(l, &loop, &p);
}

/* ---- votes ---- */

/* Bits of the active lanes of the warp that starts at base, and of those among them for which
 * operand 1 holds. */
typedef struct ballot {
  LLVMValueRef active, holds;
} ballot;

static LLVMValueRef lane_bit(kj_lowering *l, LLVMValueRef condition, LLVMValueRef rank)
{
  LLVMValueRef lane = and32(l, rank, kj_const32(l, WARP - 1));
  return LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, condition, l->i32, ""), lane, "");
}

static void add_bits(kj_lowering *l, LLVMValueRef bits, LLVMValueRef more)
{
  LLVMBuildStore(l->builder,
                 LLVMBuildOr(l->builder, LLVMBuildLoad2(l->builder, l->i32, bits, ""), more, ""),
                 bits);
}

static ballot take_ballot(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef base,
                          LLVMValueRef stop)
{
  LLVMValueRef active_bits = kj_alloca(l, l->i32, "active"),
               holds_bits = kj_alloca(l, l->i32, "ballot");
  LLVMBuildStore(l->builder, kj_const32(l, 0), active_bits);
  LLVMBuildStore(l->builder, kj_const32(l, 0), holds_bits);
  kj_counted_loop loop;
  kj_parallel p = kj_begin_lanes(l, &loop, base, stop);
  LLVMValueRef is_active = kj_is_lane_active(l, stmt, loop.counter);
  add_bits(l, active_bits, lane_bit(l, is_active, loop.counter));
  if (stmt->value->args.count > 1) {
    LLVMValueRef holds =
      LLVMBuildAnd(l->builder, is_active, condition(l, stmt, 1, loop.counter), "");
    add_bits(l, holds_bits, lane_bit(l, holds, loop.counter));
  }
  kj_end_lanes(l, &loop, &p);
  return (ballot){ .active = LLVMBuildLoad2(l->builder, l->i32, active_bits, ""),
                   .holds = LLVMBuildLoad2(l->builder, l->i32, holds_bits, "") };
}

static LLVMValueRef vote_result(kj_lowering *l, const kj_tstmt *stmt, const ballot *votes,
                                LLVMValueRef rank)
{
  LLVMBuilderRef b = l->builder;
  if (!stmt->value->args.count) return votes->active;
  LLVMValueRef mask = and32(l, kj_warp_operand32(l, stmt, 0, rank), votes->active),
               yes = and32(l, votes->holds, mask), zero = kj_const32(l, 0);
  kj_vote vote = (kj_vote)stmt->value->builtin->operation;
  if (vote == KJ_VOTE_BALLOT) return yes;
  LLVMValueRef all = LLVMBuildICmp(b, LLVMIntEQ, yes, mask, ""),
               none = LLVMBuildICmp(b, LLVMIntEQ, yes, zero, "");
  if (vote == KJ_VOTE_ALL) return all;
  return vote == KJ_VOTE_ANY ? LLVMBuildNot(b, none, "") : LLVMBuildOr(b, all, none, "");
}

static void lower_vote(kj_lowering *l, const kj_tstmt *stmt)
{
  if (!stmt->var) return;
  kj_counted_loop warps = { 0 }, loop;
  kj_begin_loop(l, &warps, first_thread(l), last_thread(l), kj_const32(l, WARP), "warps");
  LLVMValueRef base = warps.counter;
  LLVMValueRef stop =
    kj_intrinsic2(l, "llvm.umin", LLVMBuildAdd(l->builder, base, kj_const32(l, WARP), ""),
                  all_threads(l));
  ballot votes = take_ballot(l, stmt, base, stop);
  kj_parallel p = kj_begin_lanes(l, &loop, base, stop);
  kj_set_lane_result(l, stmt, loop.counter, vote_result(l, stmt, &votes, loop.counter));
  kj_end_lanes(l, &loop, &p);
  kj_end_loop(l, &warps);
}

/* ---- match and reduce: for each lane, over the lanes of its mask ---- */

/* What the lanes of a warp look at. */
typedef struct lanes {
  LLVMValueRef values, active; /* memory: one value a lane; their bits */
  LLVMTypeRef type;
} lanes;

static LLVMValueRef lane_pointer(kj_lowering *l, const lanes *all, LLVMValueRef lane)
{
  return LLVMBuildInBoundsGEP2(l->builder, all->type, all->values, &lane, 1, "");
}

static LLVMValueRef lane_value(kj_lowering *l, const lanes *all, LLVMValueRef lane)
{
  return LLVMBuildLoad2(l->builder, all->type, lane_pointer(l, all, lane), "");
}

static bool is_match(const kj_tstmt *stmt)
{
  kj_builtin_id id = stmt->value->builtin->id;
  return id == KJ_BUILTIN_MATCH_ANY || id == KJ_BUILTIN_MATCH_ALL;
}

static lanes gather_lanes(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef base,
                          LLVMValueRef stop)
{
  kjit_type type = stmt->value->args.items[1]->type;
  uint32_t bits = 8 * kj_scalar_bytes(l, type);
  LLVMTypeRef element = is_match(stmt) ? LLVMIntTypeInContext(l->context, bits <= 32   ? 32
                                                                          : bits <= 64 ? 64
                                                                                       : 128)
                                       : kj_register_type(l, type);
  lanes all = { .type = element,
                .values = kj_alloca(l, LLVMArrayType2(element, WARP), "lanes"),
                .active = kj_alloca(l, l->i32, "active") };
  LLVMBuildStore(l->builder, kj_const32(l, 0), all.active);
  kj_counted_loop loop;
  kj_parallel p = kj_begin_lanes(l, &loop, base, stop);
  LLVMValueRef value = kj_warp_operand(l, stmt, 1, loop.counter);
  if (is_match(stmt)) value = kj_comparable_bits(l, type, value);
  add_bits(l, all.active, lane_bit(l, kj_is_lane_active(l, stmt, loop.counter), loop.counter));
  LLVMBuildStore(l->builder, value,
                 lane_pointer(l, &all, and32(l, loop.counter, kj_const32(l, WARP - 1))));
  kj_end_lanes(l, &loop, &p);
  return all;
}

/* A loop over lane numbers; the body is taken for those of the members. */
typedef struct member_loop {
  kj_counted_loop loop;
} member_loop;

static LLVMValueRef begin_members(kj_lowering *l, member_loop *m, LLVMValueRef members)
{
  LLVMBasicBlockRef body = kj_new_block(l, "member");
  m->loop = (kj_counted_loop){ 0 };
  kj_begin_vector_loop(l, &m->loop, kj_const32(l, 0), kj_const32(l, WARP));
  LLVMValueRef bit =
    and32(l, LLVMBuildLShr(l->builder, members, m->loop.counter, ""), kj_const32(l, 1));
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntNE, bit, kj_const32(l, 0), ""), body,
                  m->loop.loop.next);
  kj_move_to(l, body);
  return m->loop.counter;
}

static void end_members(kj_lowering *l, member_loop *m) { kj_end_vector_loop(l, &m->loop); }

/* Bits of the members that hold what the lane holds. */
static LLVMValueRef find_equal(kj_lowering *l, const lanes *all, LLVMValueRef members,
                               LLVMValueRef lane)
{
  LLVMValueRef equal = kj_alloca(l, l->i32, "equal"), own = lane_value(l, all, lane);
  LLVMBuildStore(l->builder, kj_const32(l, 0), equal);
  member_loop m;
  LLVMValueRef other = begin_members(l, &m, members);
  LLVMValueRef is_equal = LLVMBuildICmp(l->builder, LLVMIntEQ, lane_value(l, all, other), own, "");
  add_bits(l, equal,
           LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, is_equal, l->i32, ""), other, ""));
  end_members(l, &m);
  return LLVMBuildLoad2(l->builder, l->i32, equal, "");
}

static LLVMValueRef match_result(kj_lowering *l, const kj_tstmt *stmt, const lanes *all,
                                 LLVMValueRef members, LLVMValueRef lane)
{
  LLVMValueRef equal = find_equal(l, all, members, lane);
  if (stmt->value->builtin->operation == KJ_VOTE_ANY) return equal;
  LLVMValueRef is_all = LLVMBuildICmp(l->builder, LLVMIntEQ, equal, members, "");
  LLVMValueRef mask = LLVMBuildSelect(l->builder, is_all, members, kj_const32(l, 0), "");
  LLVMValueRef pair =
    LLVMBuildInsertValue(l->builder, LLVMGetPoison(kj_register_type(l, stmt->value->type)), mask, 0,
                         "");
  return LLVMBuildInsertValue(l->builder, pair, is_all, 1, "");
}

/* As the GPU's butterfly pairs them. */
static LLVMValueRef reduce_tree(kj_lowering *l, const kj_tstmt *stmt, const lanes *all)
{
  LLVMValueRef values[WARP];
  for (int i = 0; i < WARP; i++) values[i] = lane_value(l, all, kj_const32(l, i));
  for (int half = WARP / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++)
      values[i] = kj_build_reduction(l, (kj_combine)stmt->value->builtin->operation,
                                     stmt->value->type, values[i], values[i + half]);
  return values[0];
}

static void reduce_members(kj_lowering *l, const kj_tstmt *stmt, const lanes *all,
                           LLVMValueRef members, LLVMValueRef result)
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = l->i32;
  LLVMValueRef first = kj_intrinsic(l, "llvm.cttz", &type, 1,
                                    (LLVMValueRef[]){ members, LLVMConstInt(l->i1, 0, false) }, 2);
  LLVMBuildStore(b, lane_value(l, all, and32(l, first, kj_const32(l, WARP - 1))), result);
  member_loop m;
  LLVMValueRef others = and32(l, members, LLVMBuildSub(b, members, kj_const32(l, 1), ""));
  LLVMValueRef other = begin_members(l, &m, others),
               so_far = LLVMBuildLoad2(b, all->type, result, "");
  LLVMBuildStore(b,
                 kj_build_reduction(l, (kj_combine)stmt->value->builtin->operation,
                                    stmt->value->type, so_far, lane_value(l, all, other)),
                 result);
  end_members(l, &m);
}

/* Neighbouring lanes nearly always have one mask: its result is kept. */
static LLVMValueRef reduce_result(kj_lowering *l, const kj_tstmt *stmt, const lanes *all,
                                  LLVMValueRef members, LLVMValueRef kept_members,
                                  LLVMValueRef result)
{
  LLVMBuilderRef b = l->builder;
  LLVMBasicBlockRef anew = kj_new_block(l, "anew"), tree = kj_new_block(l, "full"),
                    some = kj_new_block(l, "some"), end = kj_new_block(l, "reduced");
  LLVMValueRef is_kept =
    LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildLoad2(b, l->i32, kept_members, ""), members, "");
  LLVMBuildCondBr(b, is_kept, end, anew);
  kj_move_to(l, anew);
  LLVMBuildStore(b, members, kept_members);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, members, kj_const32(l, -1), ""), tree, some);
  kj_move_to(l, tree);
  LLVMBuildStore(b, reduce_tree(l, stmt, all), result);
  LLVMBuildBr(b, end);
  kj_move_to(l, some);
  reduce_members(l, stmt, all, members, result);
  LLVMBuildBr(b, end);
  kj_move_to(l, end);
  return LLVMBuildLoad2(b, all->type, result, "");
}

static void lower_lanes(kj_lowering *l, const kj_tstmt *stmt)
{
  if (!stmt->var) return;
  kj_counted_loop warps = { 0 }, loop;
  LLVMValueRef kept = kj_alloca(l, l->i32, "members"),
               result = is_match(stmt)
                          ? NULL
                          : kj_alloca(l, kj_register_type(l, stmt->value->type), "reduction");
  kj_begin_loop(l, &warps, first_thread(l), last_thread(l), kj_const32(l, WARP), "warps");
  LLVMValueRef base = warps.counter;
  LLVMValueRef stop =
    kj_intrinsic2(l, "llvm.umin", LLVMBuildAdd(l->builder, base, kj_const32(l, WARP), ""),
                  all_threads(l));
  lanes all = gather_lanes(l, stmt, base, stop);
  LLVMBuildStore(l->builder, kj_const32(l, 0), kept);
  kj_parallel p = kj_begin_lanes(l, &loop, base, stop);
  LLVMValueRef lane = and32(l, loop.counter, kj_const32(l, WARP - 1));
  LLVMValueRef members = and32(l, kj_warp_operand32(l, stmt, 0, loop.counter),
                               LLVMBuildLoad2(l->builder, l->i32, all.active, ""));
  LLVMValueRef value = is_match(stmt) ? match_result(l, stmt, &all, members, lane)
                                      : reduce_result(l, stmt, &all, members, kept, result);
  kj_set_lane_result(l, stmt, loop.counter, value);
  kj_end_lanes(l, &loop, &p);
  kj_end_loop(l, &warps);
}

/* The boundary between two thread loops is enough. */
static void lower_syncwarp(kj_lowering *l, const kj_tstmt *stmt)
{
  (void)stmt;
  kj_watch_synchronization(l, true);
}

void kj_cpu_warp(kj_lowering *l, const kj_tstmt *stmt)
{
  static const struct {
    kj_lower_builtin family;
    void (*lower)(kj_lowering *l, const kj_tstmt *stmt);
  } families[] = {
    { kj_lower_syncwarp, lower_syncwarp },
    { kj_lower_shuffle, lower_shuffle },
    { kj_lower_vote, lower_vote },
    { kj_lower_activemask, lower_vote },
    { kj_lower_match, lower_lanes },
    { kj_lower_reduce, lower_lanes },
    { kj_lower_barrier, kj_cpu_meet },
    { kj_lower_group_barrier, kj_cpu_meet },
    { kj_lower_mbarrier_wait, kj_cpu_wait_for_phase },
    { kj_lower_mma, kj_cpu_mma },
    { kj_lower_ldmatrix, kj_cpu_fragment },
    { kj_lower_stmatrix, kj_cpu_fragment },
    { kj_lower_wgmma, kj_cpu_wgmma },
  };
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (families[i].family == kj_lower_table[stmt->value->builtin->id]) {
      families[i].lower(l, stmt);
      return;
    }
  kj_lower_unsupported(l, stmt->location, stmt->value->builtin->name);
}

/* ---- reductions over the block ---- */

LLVMValueRef kj_has_active_lane(kj_lowering *l, const kj_tstmt *stmt)
{
  return kj_has_active_among(l, stmt, first_thread(l), last_thread(l));
}

LLVMValueRef kj_has_active_among(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef first,
                                 LLVMValueRef stop)
{
  if (!stmt->is_guarded) return LLVMConstInt(l->i1, 1, false);
  LLVMValueRef any = kj_alloca(l, l->i32, "any");
  LLVMBuildStore(l->builder, kj_const32(l, 0), any);
  kj_counted_loop loop;
  kj_parallel p = kj_begin_lanes(l, &loop, first, stop);
  add_bits(l, any, LLVMBuildZExt(l->builder, kj_is_lane_active(l, stmt, loop.counter), l->i32, ""));
  kj_end_lanes(l, &loop, &p);
  return LLVMBuildICmp(l->builder, LLVMIntNE, LLVMBuildLoad2(l->builder, l->i32, any, ""),
                       kj_const32(l, 0), "");
}

/* Over all warps of the block, which run as parts; a warp without active threads is not there. */
static LLVMValueRef sum_of_block(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef count)
{
  LLVMValueRef zero = kj_const32(l, 0), is_here = kj_has_active_lane(l, stmt), before = count;
  LLVMBasicBlockRef here = kj_new_block(l, "here"), end = kj_new_block(l, "met"),
                    start = LLVMGetInsertBlock(l->builder);
  LLVMBuildCondBr(l->builder, is_here, here, end);
  kj_move_to(l, here);
  LLVMValueRef sum =
    kj_as_i32(l, kj_build_wait(l, KJ_WAIT_BLOCK, zero, zero, NULL, kj_extend_position(l, count)));
  LLVMBasicBlockRef last = LLVMGetInsertBlock(l->builder);
  LLVMBuildBr(l->builder, end);
  kj_move_to(l, end);
  LLVMValueRef result = LLVMBuildPhi(l->builder, l->i32, "");
  LLVMAddIncoming(result, (LLVMValueRef[]){ before, sum }, (LLVMBasicBlockRef[]){ start, last }, 2);
  return result;
}

/* Combines a number from each thread; the result stays in memory that the optimizer turns into a
 * register. */
static LLVMValueRef reduce(kj_lowering *l, const kj_tstmt *stmt)
{
  const kj_texpr *value = stmt->value;
  LLVMValueRef sum = kj_alloca(l, l->i32, "sum"), zero = kj_const32(l, 0);
  LLVMBuildStore(l->builder, zero, sum);
  kj_counted_loop loop;
  kj_parallel p = kj_begin_lanes(l, &loop, first_thread(l), last_thread(l));
  LLVMValueRef counts = kj_is_lane_active(l, stmt, loop.counter);
  if (value) {
    LLVMValueRef holds = condition(l, stmt, 0, loop.counter);
    if (value->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND)
      holds = LLVMBuildNot(l->builder, holds, "");
    counts = LLVMBuildAnd(l->builder, counts, holds, "");
  }
  LLVMValueRef before = LLVMBuildLoad2(l->builder, l->i32, sum, "");
  LLVMBuildStore(l->builder,
                 LLVMBuildAdd(l->builder, before, LLVMBuildZExt(l->builder, counts, l->i32, ""),
                              ""),
                 sum);
  kj_end_lanes(l, &loop, &p);
  LLVMValueRef count = LLVMBuildLoad2(l->builder, l->i32, sum, "");
  if (value && kj_cpu(l)->has_warps) count = sum_of_block(l, stmt, count);
  if (value && value->builtin->id == KJ_BUILTIN_SYNCTHREADS_COUNT) return count;
  bool is_and = value && value->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND;
  return LLVMBuildICmp(l->builder, is_and ? LLVMIntEQ : LLVMIntNE, count, zero, "");
}

/* The first active thread, or the last one of all. */
static LLVMValueRef first_active(kj_lowering *l, const kj_tstmt *stmt)
{
  LLVMValueRef found = kj_alloca(l, l->i32, "first");
  LLVMBuildStore(l->builder, first_thread(l), found);
  if (stmt->is_guarded) {
    kj_counted_loop loop;
    kj_parallel p = kj_begin_lanes(l, &loop, first_thread(l), last_thread(l));
    LLVMBuildStore(l->builder, loop.counter, found);
    LLVMBuildCondBr(l->builder, kj_is_lane_active(l, stmt, loop.counter), loop.loop.leave,
                    loop.loop.next);
    kj_end_lanes(l, &loop, &p);
  }
  return LLVMBuildLoad2(l->builder, l->i32, found, "");
}

void kj_cpu_reduce(kj_lowering *l, const kj_tstmt *stmt)
{
  LLVMValueRef value, outer = kj_cpu(l)->rank;
  if (stmt->value && stmt->value->kind == KJ_T_BUILTIN) kj_watch_synchronization(l, false);
  if (!stmt->var) return;
  if (stmt->value && stmt->value->kind == KJ_T_VAR) {
    kj_set_rank(l, first_active(l, stmt));
    value = kj_lower_expr(l, stmt->value);
  } else {
    value = reduce(l, stmt);
  }
  kj_set_rank(l, outer);
  kj_set_variable(l, stmt->var, value);
}

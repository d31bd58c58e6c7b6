/* CPU: warp operations and counting barriers, which are executed between thread loops.
 *
 * A warp is 32 consecutive threads in the block; the last warp can have fewer. The operands of a
 * warp operation are slots, uniform values or constants, so the code can read them for any thread.
 * Inactive lanes do not take part in votes. A shuffle from an inactive lane returns the last value
 * that the lane had. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/cpu/cpu.h"
#include "native/watch.h"

LLVMValueRef kl_warp_operand(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank)
{
  KJ_ASSERT(i < stmt->value->args.count);
  LLVMValueRef outer = kl_cpu(l)->rank;
  kl_set_rank(l, rank);
  LLVMValueRef value = kl_lower_expr(l, stmt->value->args.items[i]);
  kl_set_rank(l, outer);
  return value;
}

LLVMValueRef kl_warp_operand32(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank)
{
  return kl_as_i32(l, kl_build_convert(l, stmt->value->args.items[i]->type, KJIT_I64,
                                       kl_warp_operand(l, stmt, i, rank)));
}

static LLVMValueRef condition(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank)
{
  return kl_build_convert(l, stmt->value->args.items[i]->type, KJIT_BOOL,
                          kl_warp_operand(l, stmt, i, rank));
}

/* Begins a loop over the threads [first, stop) of the block. Only accesses that are marked as
 * independent may be executed in parallel. */
kl_parallel kl_begin_lanes(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                           LLVMValueRef stop)
{
  LLVMMetadataRef property = kl_no_unrolling(l);
  kl_begin_vector_loop(l, loop, first, stop);
  kl_set_rank(l, loop->counter);
  return kl_begin_parallel(l, kl_loop_id(l, &property, 1));
}

void kl_end_lanes(kl_lowering *l, kl_counted_loop *loop, const kl_parallel *p)
{
  loop->id = kl_end_parallel(l, p);
  kl_end_vector_loop(l, loop);
  kl_set_rank(l, kl_cpu(l)->thread_count == 1 ? kl_const32(l, 0) : NULL);
}

static LLVMValueRef all_threads(kl_lowering *l) { return kl_const32(l, kl_cpu(l)->thread_count); }
static LLVMValueRef first_thread(kl_lowering *l) { return kl_cpu(l)->unit_first; }
static LLVMValueRef last_thread(kl_lowering *l) { return kl_cpu(l)->unit_stop; }
static bool has_full_warps(kl_lowering *l)
{
  return kl_cpu(l)->thread_count % KJ_WARP_THREADS == 0;
}

/* Returns the end of a warp. If all warps are full, the result needs no minimum, so that loops over
 * the lanes have constant trip counts. */
LLVMValueRef kl_end_of_warp(kl_lowering *l, LLVMValueRef first)
{
  LLVMValueRef stop = kl_nuw_add(l, first, kl_const32(l, KJ_WARP_THREADS));
  if (LLVMIsAInstruction(stop)) LLVMSetNSW(stop, true);
  return has_full_warps(l) ? stop : kl_intrinsic2(l, "llvm.umin", stop, all_threads(l));
}

LLVMValueRef kl_begin_warps(kl_lowering *l, kl_counted_loop *warps, LLVMValueRef *stop)
{
  *warps = (kl_counted_loop){ 0 };
  kl_begin_loop(l, warps, first_thread(l), last_thread(l), kl_const32(l, KJ_WARP_THREADS), "warps");
  *stop = kl_end_of_warp(l, warps->counter);
  return warps->counter;
}

LLVMValueRef kl_is_lane_active(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank)
{
  kl_set_rank(l, rank);
  return stmt->is_guarded ? kl_is_active(l) : LLVMConstInt(l->i1, 1, false);
}

/* Sets the result of a thread that is active. */
void kl_set_lane_result(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank, LLVMValueRef value)
{
  if (!stmt->var) return;
  LLVMBasicBlockRef end = NULL;
  if (stmt->is_guarded) {
    LLVMBasicBlockRef write = kl_new_block(l, "write");
    end = kl_new_block(l, "written");
    kl_go_on_if(l, kl_is_lane_active(l, stmt, rank), write, end);
  }
  kl_set_rank(l, rank);
  kl_set_variable(l, stmt->var, value);
  if (!end) return;
  kl_go_on_in(l, end);
}

/* ---- shuffles: PTX's shfl ---- */

/* Returns the lane from which `lane` reads. Sets *is_inside to whether that lane is in the same
 * segment. */
static LLVMValueRef source_lane(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef lane,
                                LLVMValueRef by, LLVMValueRef width, LLVMValueRef *is_inside)
{
  LLVMValueRef inner = kl_sub(l, width, kl_const32(l, 1)),
               first = kl_and(l, lane, kl_not(l, inner)), last = kl_or(l, first, inner);
  by = kl_and(l, by, kl_const32(l, KJ_WARP_THREADS - 1));
  if (mode == KJ_SHUFFLE_IDX) {
    *is_inside = LLVMConstInt(l->i1, 1, false);
    return kl_or(l, first, kl_and(l, by, inner));
  }
  if (mode == KJ_SHUFFLE_UP) {
    LLVMValueRef from = kl_sub(l, lane, by);
    *is_inside = kl_icmp(l, LLVMIntSGE, from, first);
    return from;
  }
  LLVMValueRef from = mode == KJ_SHUFFLE_DOWN ? kl_add(l, lane, by) : kl_xor(l, lane, by);
  *is_inside = kl_icmp(l, LLVMIntSLE, from, last);
  return from;
}

static LLVMValueRef source_thread(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank)
{
  LLVMValueRef lane = kl_and(l, rank, kl_const32(l, KJ_WARP_THREADS - 1)),
               base = kl_and(l, rank, kl_const32(l, -KJ_WARP_THREADS)), is_inside;
  LLVMValueRef width = stmt->value->args.count == 4 ? kl_warp_operand32(l, stmt, 3, rank)
                                                    : kl_const32(l, KJ_WARP_THREADS);
  LLVMValueRef from = source_lane(l, (ki_shuffle_mode)stmt->value->builtin->operation, lane,
                                  kl_warp_operand32(l, stmt, 2, rank), width, &is_inside);
  LLVMValueRef thread = kl_add(l, base, from);
  /* the width operand may be any number */
  if (stmt->value->args.count == 4 || !has_full_warps(l))
    is_inside = kl_and(l, is_inside, kl_icmp(l, LLVMIntULT, thread, all_threads(l)));
  return kl_select(l, is_inside, thread, rank);
}

static void lower_shuffle(kl_lowering *l, const kt_stmt *stmt)
{
  if (!stmt->var) return;
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, first_thread(l), last_thread(l));
  LLVMValueRef rank = loop.counter;
  kl_set_lane_result(l, stmt, rank, kl_warp_operand(l, stmt, 1, source_thread(l, stmt, rank)));
  kl_end_lanes(l, &loop, &p);
}

/* ---- votes ---- */

/* For the warp that starts at base: bit masks of the active lanes, and of the active lanes in which
 * operand 1 is true. */
typedef struct ballot {
  LLVMValueRef active, holds;
} ballot;

static LLVMValueRef lane_bit(kl_lowering *l, LLVMValueRef condition, LLVMValueRef rank)
{
  LLVMValueRef lane = kl_and(l, rank, kl_const32(l, KJ_WARP_THREADS - 1));
  return kl_shl(l, kl_zext(l, condition, l->i32), lane);
}

static void add_bits(kl_lowering *l, LLVMValueRef bits, LLVMValueRef more)
{
  kl_store(l, kl_or(l, kl_load(l, l->i32, bits), more), bits);
}

static LLVMValueRef no_bits(kl_lowering *l, const char *name)
{
  LLVMValueRef bits = kl_alloca(l, l->i32, name);
  kl_store(l, kl_const32(l, 0), bits);
  return bits;
}

/* Returns a bit mask of the threads [first, stop), which belong to one warp. */
static LLVMValueRef bits_of_lanes(kl_lowering *l, LLVMValueRef first, LLVMValueRef stop)
{
  if (has_full_warps(l)) return kl_const32(l, -1);
  LLVMValueRef count = kl_sub(l, stop, first);
  return kl_lshr(l, kl_const32(l, -1), kl_sub(l, kl_const32(l, KJ_WARP_THREADS), count));
}

static ballot take_ballot(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef base, LLVMValueRef stop)
{
  bool has_condition = stmt->value->args.count > 1;
  ballot votes = { .active = bits_of_lanes(l, base, stop) };
  if (!stmt->is_guarded && !has_condition) return votes;
  LLVMValueRef active_bits = no_bits(l, "active"), holds_bits = no_bits(l, "ballot");
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, base, stop);
  LLVMValueRef is_active = kl_is_lane_active(l, stmt, loop.counter);
  add_bits(l, active_bits, lane_bit(l, is_active, loop.counter));
  if (has_condition) {
    LLVMValueRef holds = kl_and(l, is_active, condition(l, stmt, 1, loop.counter));
    add_bits(l, holds_bits, lane_bit(l, holds, loop.counter));
  }
  kl_end_lanes(l, &loop, &p);
  if (stmt->is_guarded) votes.active = kl_load(l, l->i32, active_bits);
  votes.holds = kl_load(l, l->i32, holds_bits);
  return votes;
}

static LLVMValueRef vote_result(kl_lowering *l, const kt_stmt *stmt, const ballot *votes,
                                LLVMValueRef rank)
{
  if (!stmt->value->args.count) return votes->active;
  LLVMValueRef mask = kl_and(l, kl_warp_operand32(l, stmt, 0, rank), votes->active),
               yes = kl_and(l, votes->holds, mask), zero = kl_const32(l, 0);
  ki_vote vote = (ki_vote)stmt->value->builtin->operation;
  if (vote == KJ_VOTE_BALLOT) return yes;
  LLVMValueRef all = kl_icmp(l, LLVMIntEQ, yes, mask), none = kl_icmp(l, LLVMIntEQ, yes, zero);
  if (vote == KJ_VOTE_ALL) return all;
  return vote == KJ_VOTE_ANY ? kl_not(l, none) : kl_or(l, all, none);
}

static void lower_vote(kl_lowering *l, const kt_stmt *stmt)
{
  if (!stmt->var) return;
  kl_counted_loop warps, loop;
  LLVMValueRef stop, base = kl_begin_warps(l, &warps, &stop);
  ballot votes = take_ballot(l, stmt, base, stop);
  kl_parallel p = kl_begin_lanes(l, &loop, base, stop);
  kl_set_lane_result(l, stmt, loop.counter, vote_result(l, stmt, &votes, loop.counter));
  kl_end_lanes(l, &loop, &p);
  kl_end_vector_loop(l, &warps);
}

/* ---- match and reduce: for each lane, over the lanes in its mask ---- */

/* The values that the lanes in a warp compare or combine. */
typedef struct lanes {
  /* values: in memory, one for each lane; active: i32, a bit mask of the active lanes */
  LLVMValueRef values, active;
  LLVMTypeRef type;
} lanes;

static LLVMValueRef lane_pointer(kl_lowering *l, const lanes *all, LLVMValueRef lane)
{
  return kl_inbounds_gep(l, all->type, all->values, &lane, 1);
}

static LLVMValueRef lane_value(kl_lowering *l, const lanes *all, LLVMValueRef lane)
{
  return kl_load(l, all->type, lane_pointer(l, all, lane));
}

static bool is_match(const kt_stmt *stmt)
{
  ki_builtin_id id = stmt->value->builtin->id;
  return id == KJ_BUILTIN_MATCH_ANY || id == KJ_BUILTIN_MATCH_ALL;
}

static lanes gather_lanes(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef base, LLVMValueRef stop)
{
  kjit_type type = stmt->value->args.items[1]->type;
  uint32_t bits = 8 * kl_scalar_bytes(l, type);
  LLVMTypeRef element = is_match(stmt) ? LLVMIntTypeInContext(l->context, bits <= 32   ? 32
                                                                          : bits <= 64 ? 64
                                                                                       : 128)
                                       : kl_register_type(l, type);
  lanes all = { .type = element,
                .values = kl_alloca(l, LLVMArrayType2(element, KJ_WARP_THREADS), "lanes"),
                .active = bits_of_lanes(l, base, stop) };
  LLVMValueRef active_bits = no_bits(l, "active");
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, base, stop);
  LLVMValueRef value = kl_warp_operand(l, stmt, 1, loop.counter);
  if (is_match(stmt)) value = kl_comparable_bits(l, type, value);
  add_bits(l, active_bits, lane_bit(l, kl_is_lane_active(l, stmt, loop.counter), loop.counter));
  kl_store(l, value,
           lane_pointer(l, &all, kl_and(l, loop.counter, kl_const32(l, KJ_WARP_THREADS - 1))));
  kl_end_lanes(l, &loop, &p);
  if (stmt->is_guarded) all.active = kl_load(l, l->i32, active_bits);
  return all;
}

/* A loop over lane numbers. The body runs only for the lanes in a mask (the members). */
typedef struct member_loop {
  kl_counted_loop loop;
} member_loop;

static LLVMValueRef begin_members(kl_lowering *l, member_loop *m, LLVMValueRef members)
{
  LLVMBasicBlockRef body = kl_new_block(l, "member");
  m->loop = (kl_counted_loop){ 0 };
  kl_begin_vector_loop(l, &m->loop, kl_const32(l, 0), kl_const32(l, KJ_WARP_THREADS));
  LLVMValueRef bit = kl_and(l, kl_lshr(l, members, m->loop.counter), kl_const32(l, 1));
  kl_cond_br(l, kl_icmp(l, LLVMIntNE, bit, kl_const32(l, 0)), body, m->loop.loop.next);
  kl_move_to(l, body);
  return m->loop.counter;
}

static void end_members(kl_lowering *l, member_loop *m) { kl_end_vector_loop(l, &m->loop); }

/* Returns a bit mask of the members whose value equals that of the given lane. */
static LLVMValueRef find_equal(kl_lowering *l, const lanes *all, LLVMValueRef members,
                               LLVMValueRef lane)
{
  LLVMValueRef equal = no_bits(l, "equal"), own = lane_value(l, all, lane);
  member_loop m;
  LLVMValueRef other = begin_members(l, &m, members);
  LLVMValueRef is_equal = kl_icmp(l, LLVMIntEQ, lane_value(l, all, other), own);
  add_bits(l, equal, kl_shl(l, kl_zext(l, is_equal, l->i32), other));
  end_members(l, &m);
  return kl_load(l, l->i32, equal);
}

static LLVMValueRef match_result(kl_lowering *l, const kt_stmt *stmt, const lanes *all,
                                 LLVMValueRef members, LLVMValueRef lane)
{
  LLVMValueRef equal = find_equal(l, all, members, lane);
  if (stmt->value->builtin->operation == KJ_VOTE_ANY) return equal;
  LLVMValueRef is_all = kl_icmp(l, LLVMIntEQ, equal, members);
  LLVMValueRef mask = kl_select(l, is_all, members, kl_const32(l, 0));
  LLVMValueRef pair =
    kl_insert_value(l, LLVMGetPoison(kl_register_type(l, stmt->value->type)), mask, 0);
  return kl_insert_value(l, pair, is_all, 1);
}

/* Reduces the values in the order in which butterfly shuffles on a GPU would. */
static LLVMValueRef reduce_tree(kl_lowering *l, const kt_stmt *stmt, const lanes *all)
{
  LLVMValueRef values[KJ_WARP_THREADS];
  for (int i = 0; i < KJ_WARP_THREADS; i++) values[i] = lane_value(l, all, kl_const32(l, i));
  for (int half = KJ_WARP_THREADS / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++)
      values[i] = kl_build_reduction(l, (ki_combine)stmt->value->builtin->operation,
                                     stmt->value->type, values[i], values[i + half]);
  return values[0];
}

static void reduce_members(kl_lowering *l, const kt_stmt *stmt, const lanes *all,
                           LLVMValueRef members, LLVMValueRef result)
{
  LLVMTypeRef type = l->i32;
  LLVMValueRef first = kl_intrinsic(l, "llvm.cttz", &type, 1,
                                    (LLVMValueRef[]){ members, LLVMConstInt(l->i1, 0, false) }, 2);
  kl_store(l, lane_value(l, all, kl_and(l, first, kl_const32(l, KJ_WARP_THREADS - 1))), result);
  member_loop m;
  LLVMValueRef others = kl_and(l, members, kl_sub(l, members, kl_const32(l, 1)));
  LLVMValueRef other = begin_members(l, &m, others), so_far = kl_load(l, all->type, result);
  kl_store(l,
           kl_build_reduction(l, (ki_combine)stmt->value->builtin->operation, stmt->value->type,
                              so_far, lane_value(l, all, other)),
           result);
  end_members(l, &m);
}

/* Returns the reduction over a set of members. Adjacent lanes nearly always have the same set, so
 * the code keeps the last result and uses it again. */
static LLVMValueRef reduce_result(kl_lowering *l, const kt_stmt *stmt, const lanes *all,
                                  LLVMValueRef members, LLVMValueRef kept_members,
                                  LLVMValueRef result)
{
  LLVMBasicBlockRef anew = kl_new_block(l, "anew"), tree = kl_new_block(l, "full"),
                    some = kl_new_block(l, "some"), end = kl_new_block(l, "reduced");
  LLVMValueRef is_kept = kl_icmp(l, LLVMIntEQ, kl_load(l, l->i32, kept_members), members);
  kl_cond_br(l, is_kept, end, anew);
  kl_move_to(l, anew);
  kl_store(l, members, kept_members);
  kl_go_on_if(l, kl_icmp(l, LLVMIntEQ, members, kl_const32(l, -1)), tree, some);
  kl_store(l, reduce_tree(l, stmt, all), result);
  kl_br(l, end);
  kl_move_to(l, some);
  reduce_members(l, stmt, all, members, result);
  kl_go_on_in(l, end);
  return kl_load(l, all->type, result);
}

static void lower_lanes(kl_lowering *l, const kt_stmt *stmt)
{
  if (!stmt->var) return;
  kl_counted_loop warps, loop;
  LLVMValueRef kept = kl_alloca(l, l->i32, "members"),
               result = is_match(stmt)
                          ? NULL
                          : kl_alloca(l, kl_register_type(l, stmt->value->type), "reduction");
  LLVMValueRef stop, base = kl_begin_warps(l, &warps, &stop);
  lanes all = gather_lanes(l, stmt, base, stop);
  kl_store(l, kl_const32(l, 0), kept);
  kl_parallel p = kl_begin_lanes(l, &loop, base, stop);
  LLVMValueRef lane = kl_and(l, loop.counter, kl_const32(l, KJ_WARP_THREADS - 1));
  LLVMValueRef members = kl_and(l, kl_warp_operand32(l, stmt, 0, loop.counter), all.active);
  LLVMValueRef value = is_match(stmt) ? match_result(l, stmt, &all, members, lane)
                                      : reduce_result(l, stmt, &all, members, kept, result);
  kl_set_lane_result(l, stmt, loop.counter, value);
  kl_end_lanes(l, &loop, &p);
  kl_end_vector_loop(l, &warps);
}

/* ---- synchronizations of watched memory ---- */

/* Calls a function of the watch (the data of the access checks) and passes an array with a number
 * for each thread in the block. */
static void tell_watch(kl_lowering *l, const kt_stmt *stmt, const char *function,
                       LLVMValueRef (*number)(kl_lowering *l, const kt_stmt *stmt,
                                              LLVMValueRef rank))
{
  KJ_ASSERT(kl_cpu(l)->thread_count && !kl_cpu(l)->has_warps);
  LLVMValueRef numbers =
    kl_alloca(l, LLVMArrayType2(l->i32, kl_cpu(l)->thread_count), "synchronized");
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, first_thread(l), last_thread(l));
  LLVMValueRef at = kl_zext(l, loop.counter, l->i64), value = number(l, stmt, loop.counter);
  kl_store(l, value, kl_inbounds_gep(l, l->i32, numbers, &at, 1));
  kl_end_lanes(l, &loop, &p);
  kl_watch_synchronization(l, function, numbers);
}

static LLVMValueRef mask_of_thread(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank)
{
  LLVMValueRef mask = kl_warp_operand32(l, stmt, 0, rank);
  return kl_select(l, kl_is_lane_active(l, stmt, rank), mask, kl_const32(l, 0));
}

/* Returns 1 if the thread waits at the barrier or has left the kernel, because a barrier does not
 * wait for threads that have left. */
static LLVMValueRef meets_at_barrier(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank)
{
  KJ_ASSERT(stmt->is_guarded);
  kl_set_rank(l, rank);
  LLVMValueRef off = kl_get_variable(l, l->kernel->off);
  return kl_zext(l, kl_icmp(l, LLVMIntULE, off, kl_const32(l, KJ_OFF_LEFT_KERNEL)), l->i32);
}

static void watch_barrier(kl_lowering *l, const kt_stmt *stmt)
{
  if (!kl_is_watched(l)) return;
  if (stmt->is_guarded && l->c->has_part_barrier)
    tell_watch(l, stmt, KJ_WATCH_BARRIER_FUNCTION, meets_at_barrier);
  else kl_watch_synchronization(l, KJ_WATCH_BARRIER_FUNCTION, NULL);
}

/* Lowers syncwarp. syncwarp needs no code, because the thread loop ends here. */
static void lower_syncwarp(kl_lowering *l, const kt_stmt *stmt)
{
  if (kl_is_watched(l)) tell_watch(l, stmt, KJ_WATCH_WARPS_FUNCTION, mask_of_thread);
}

void kl_cpu_warp(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_WARP);
  static const struct {
    kl_lower_builtin family;
    void (*lower)(kl_lowering *l, const kt_stmt *stmt);
  } families[] = {
    { kl_lower_syncwarp, lower_syncwarp },
    { kl_lower_shuffle, lower_shuffle },
    { kl_lower_vote, lower_vote },
    { kl_lower_activemask, lower_vote },
    { kl_lower_match, lower_lanes },
    { kl_lower_reduce, lower_lanes },
    { kl_lower_barrier, kl_cpu_meet },
    { kl_lower_group_barrier, kl_cpu_meet },
    { kl_lower_mbarrier_wait, kl_cpu_wait_for_phase },
    { kl_lower_mma, kl_cpu_mma },
    { kl_lower_ldmatrix, kl_cpu_fragment },
    { kl_lower_stmatrix, kl_cpu_fragment },
    { kl_lower_wgmma, kl_cpu_wgmma },
  };
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (families[i].family == kl_lower_table[stmt->value->builtin->id]) {
      families[i].lower(l, stmt);
      return;
    }
  kl_lower_unsupported(l, stmt->location, stmt->value->builtin->name);
}

/* ---- reductions over the block ---- */

LLVMValueRef kl_has_active_lane(kl_lowering *l, const kt_stmt *stmt)
{
  return kl_has_active_among(l, stmt, first_thread(l), last_thread(l));
}

LLVMValueRef kl_has_active_among(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first,
                                 LLVMValueRef stop)
{
  if (!stmt->is_guarded) return LLVMConstInt(l->i1, 1, false);
  LLVMValueRef any = no_bits(l, "any");
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, first, stop);
  add_bits(l, any, kl_zext(l, kl_is_lane_active(l, stmt, loop.counter), l->i32));
  kl_end_lanes(l, &loop, &p);
  return kl_icmp(l, LLVMIntNE, kl_load(l, l->i32, any), kl_const32(l, 0));
}

/* Returns the sum over all warps in the block, which run as fibers. A warp without active threads
 * does not take part. */
static LLVMValueRef sum_of_block(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef count)
{
  LLVMValueRef zero = kl_const32(l, 0), is_here = kl_has_active_lane(l, stmt), before = count;
  LLVMBasicBlockRef here = kl_new_block(l, "here"), end = kl_new_block(l, "met"),
                    start = kl_here(l);
  kl_go_on_if(l, is_here, here, end);
  LLVMValueRef sum =
    kl_as_i32(l, kl_build_wait(l, KJ_WAIT_BLOCK, zero, zero, NULL, kl_extend_position(l, count)));
  LLVMBasicBlockRef last = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, before, start, sum, last);
}

/* Combines the numbers of all threads to one number. The result is in memory; the optimizer
 * replaces this memory by a register. */
static LLVMValueRef reduce(kl_lowering *l, const kt_stmt *stmt)
{
  const kt_expr *value = stmt->value;
  LLVMValueRef sum = kl_alloca(l, l->i32, "sum"), zero = kl_const32(l, 0);
  kl_store(l, zero, sum);
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, first_thread(l), last_thread(l));
  LLVMValueRef counts = kl_is_lane_active(l, stmt, loop.counter);
  if (value) {
    LLVMValueRef holds = condition(l, stmt, 0, loop.counter);
    if (value->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND) holds = kl_not(l, holds);
    counts = kl_and(l, counts, holds);
  }
  LLVMValueRef before = kl_load(l, l->i32, sum);
  kl_store(l, kl_add(l, before, kl_zext(l, counts, l->i32)), sum);
  kl_end_lanes(l, &loop, &p);
  LLVMValueRef count = kl_load(l, l->i32, sum);
  if (value && kl_cpu(l)->has_warps) count = sum_of_block(l, stmt, count);
  if (value && value->builtin->id == KJ_BUILTIN_SYNCTHREADS_COUNT) return count;
  bool is_and = value && value->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND;
  return kl_icmp(l, is_and ? LLVMIntEQ : LLVMIntNE, count, zero);
}

LLVMValueRef kl_first_active(kl_lowering *l, const kt_stmt *stmt)
{
  LLVMValueRef found = kl_alloca(l, l->i32, "first");
  kl_store(l, first_thread(l), found);
  if (stmt->is_guarded) {
    kl_counted_loop loop;
    kl_parallel p = kl_begin_lanes(l, &loop, first_thread(l), last_thread(l));
    kl_store(l, loop.counter, found);
    kl_cond_br(l, kl_is_lane_active(l, stmt, loop.counter), loop.loop.leave, loop.loop.next);
    kl_end_lanes(l, &loop, &p);
  }
  return kl_load(l, l->i32, found);
}

void kl_cpu_reduce(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_BARRIER_REDUCE);
  LLVMValueRef value, outer = kl_cpu(l)->rank;
  if (stmt->value && stmt->value->kind == KJ_T_BUILTIN) watch_barrier(l, stmt);
  if (!stmt->var) return;
  if (stmt->value && stmt->value->kind == KJ_T_VAR) {
    kl_set_rank(l, kl_first_active(l, stmt));
    value = kl_lower_expr(l, stmt->value);
  } else {
    value = reduce(l, stmt);
  }
  kl_set_rank(l, outer);
  kl_set_variable(l, stmt->var, value);
}

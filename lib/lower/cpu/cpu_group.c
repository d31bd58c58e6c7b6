/* CPU: lowers operations of several warps or blocks. Fibers of a launch that wait for each other
 * take turns on one core (runtime/cpu/parts.c), so they can access shared data without atomic
 * instructions. Asynchronous copies are executed immediately.
 *
 * An mbarrier is a 64-bit word. Bits 0 to 19 hold the number of pending arrivals, and bits 20 to 39
 * the number of arrivals in a phase. Bits 40 to 62 hold the number of pending bytes, which can be
 * negative, and bit 63 the parity of the phase. An address in shared memory is an offset from the
 * start of the block's scratch memory. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/builtins/tensor_copy.h"
#include "lower/cpu/cpu.h"

enum { COUNT_BITS = 20, BYTES_SHIFT = 40, BYTES_BITS = 23, PARITY_SHIFT = 63 };

/* ---- waiting ---- */

LLVMValueRef kl_build_wait(kl_lowering *l, kj_cpu_wait what, LLVMValueRef id, LLVMValueRef count,
                           LLVMValueRef address, LLVMValueRef value)
{
  LLVMTypeRef params[] = { l->pointer, l->i32, l->i32, l->i32, l->pointer, l->i64 };
  LLVMTypeRef type = LLVMFunctionType(l->i64, params, 6, false);
  LLVMValueRef function = kl_load_grid(l, l->pointer, offsetof(kj_cpu_grid, wait));
  LLVMValueRef args[] = { kl_cpu(l)->grid_pointer,
                          kl_const32(l, what),
                          id,
                          count,
                          address ? address : LLVMConstNull(l->pointer),
                          value };
  LLVMValueRef call = kl_call(l, type, function, args, 6);
  kl_add_call_attribute(l, call, "nounwind");
  return call;
}

static LLVMValueRef zero32(kl_lowering *l) { return kl_const32(l, 0); }
static LLVMValueRef zero64(kl_lowering *l) { return kl_const64(l, 0); }

/* Begins code that a call of the kernel function executes only if one of the call's threads is
 * active. end_if_any ends this code. */
static LLVMBasicBlockRef begin_if_any(kl_lowering *l, const kt_stmt *stmt)
{
  LLVMBasicBlockRef some = kl_new_block(l, "some"), end = kl_new_block(l, "met");
  kl_go_on_if(l, kl_has_active_lane(l, stmt), some, end);
  return end;
}

static void end_if_any(kl_lowering *l, LLVMBasicBlockRef end) { kl_go_on_in(l, end); }

void kl_cpu_meet(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_WARP && stmt->value->kind == KJ_T_BUILTIN);
  static const kj_cpu_wait waits[] = { [KJ_BUILTIN_SYNCTHREADS] = KJ_WAIT_BLOCK,
                                       [KJ_BUILTIN_GRID_SYNC] = KJ_WAIT_GRID,
                                       [KJ_BUILTIN_CLUSTER_SYNC] = KJ_WAIT_CLUSTER,
                                       [KJ_BUILTIN_CLUSTER_ARRIVE] = KJ_WAIT_CLUSTER_ARRIVE,
                                       [KJ_BUILTIN_CLUSTER_WAIT] = KJ_WAIT_CLUSTER,
                                       [KJ_BUILTIN_BARRIER_SYNC] = KJ_WAIT_NAMED,
                                       [KJ_BUILTIN_BARRIER_ARRIVE] = KJ_WAIT_NAMED_ARRIVE };
  const kt_expr *e = stmt->value;
  LLVMBasicBlockRef end = begin_if_any(l, stmt);
  LLVMValueRef id = zero32(l), count = zero32(l);
  if (e->args.count) {
    LLVMValueRef first = kl_first_active(l, stmt);
    id = kl_warp_operand32(l, stmt, 0, first);
    count = kl_warp_operand32(l, stmt, 1, first);
  }
  if (e->builtin->id == KJ_BUILTIN_CLUSTER_SYNC)
    kl_build_wait(l, KJ_WAIT_CLUSTER_ARRIVE, id, count, NULL, zero64(l));
  kl_build_wait(l, waits[e->builtin->id], id, count, NULL, zero64(l));
  end_if_any(l, end);
}

/* ---- mbarriers ---- */

static LLVMValueRef scratch_pointer(kl_lowering *l, LLVMValueRef address)
{
  return kl_gep(l, l->i8, kl_cpu(l)->scratch, &address, 1);
}

static LLVMValueRef low_bits(kl_lowering *l, LLVMValueRef word, int shift)
{
  LLVMValueRef moved = shift ? kl_lshr(l, word, kl_const64(l, shift)) : word;
  return kl_and(l, moved, kl_const64(l, ((int64_t)1 << COUNT_BITS) - 1));
}

/* Subtracts arrivals and bytes, both i64, from the pending counts. If both counts are then 0,
 * starts the next phase. Returns the old word. */
static LLVMValueRef change_word(kl_lowering *l, LLVMValueRef at, LLVMValueRef arrivals,
                                LLVMValueRef bytes)
{
  LLVMValueRef old = kl_load(l, l->i64, at), whole = low_bits(l, old, COUNT_BITS);
  LLVMValueRef missing = kl_sub(l, low_bits(l, old, 0), arrivals);
  LLVMValueRef left = kl_shl(l, old, kl_const64(l, 64 - BYTES_SHIFT - BYTES_BITS));
  left = kl_sub(l, kl_ashr(l, left, kl_const64(l, 64 - BYTES_BITS)), bytes);
  LLVMValueRef is_over = kl_icmp(l, LLVMIntEQ, kl_or(l, missing, left), zero64(l));
  LLVMValueRef parity =
    kl_xor(l, kl_lshr(l, old, kl_const64(l, PARITY_SHIFT)), kl_zext(l, is_over, l->i64));
  missing =
    kl_and(l, kl_select(l, is_over, whole, missing), kl_const64(l, ((int64_t)1 << COUNT_BITS) - 1));
  left = kl_and(l, left, kl_const64(l, ((int64_t)1 << BYTES_BITS) - 1));
  LLVMValueRef word = kl_or(l, missing, kl_shl(l, whole, kl_const64(l, COUNT_BITS)));
  word = kl_or(l, word, kl_shl(l, left, kl_const64(l, BYTES_SHIFT)));
  kl_store(l, kl_or(l, word, kl_shl(l, parity, kl_const64(l, PARITY_SHIFT))), at);
  return old;
}

LLVMValueRef kl_cpu_mbarrier(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count);
  LLVMValueRef at = scratch_pointer(l, kl_lower_expr(l, expr->args.items[0])),
               one = kl_const64(l, 1), none = zero64(l);
  LLVMValueRef given =
    expr->args.count > 1 ? kl_zext(l, kl_lower_expr(l, expr->args.items[1]), l->i64) : one;
  LLVMValueRef missing = kl_neg(l, given);
  switch (KJ_AMONG(expr->builtin->id)) {
  case KJ_BUILTIN_MBARRIER_INIT:
    kl_store(l, kl_or(l, given, kl_shl(l, given, kl_const64(l, COUNT_BITS))), at);
    return NULL;
  case KJ_BUILTIN_MBARRIER_INVAL: return NULL;
  case KJ_BUILTIN_MBARRIER_EXPECT_TX: change_word(l, at, none, missing); return NULL;
  case KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX: return change_word(l, at, one, missing);
  default: return change_word(l, at, given, none);
  }
}

/* Returns the parity of the phase for which the operand waits. If the operand is a token, the
 * parity is its top bit. */
static LLVMValueRef awaited_parity(kl_lowering *l, LLVMValueRef operand)
{
  if (LLVMTypeOf(operand) == l->i64) return kl_lshr(l, operand, kl_const64(l, PARITY_SHIFT));
  return kl_and(l, kl_zext(l, operand, l->i64), kl_const64(l, 1));
}

/* Builds the code by which a lane waits for a phase, or tests it. A test also lets other fibers
 * run, although it does not wait. Otherwise a fiber that tests the phase in a loop would keep other
 * fibers from completing the phase. */
static LLVMValueRef wait_for_lane(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank)
{
  const kt_expr *e = stmt->value;
  LLVMValueRef at = scratch_pointer(l, kl_warp_operand(l, stmt, 0, rank)),
               parity = awaited_parity(l, kl_warp_operand(l, stmt, 1, rank));
  LLVMValueRef is_over =
    kl_build_wait(l, e->builtin->operation == KJ_PHASE_WAIT ? KJ_WAIT_PHASE : KJ_WAIT_TRY_PHASE,
                  zero32(l), zero32(l), at, parity);
  return kl_icmp(l, LLVMIntNE, is_over, zero64(l));
}

static bool is_same_for_all(const kt_expr *e)
{
  return e->kind == KJ_T_CONST || (e->kind == KJ_T_VAR && e->var->is_uniform);
}

static void give_all(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef value)
{
  if (!stmt->var) return;
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, kl_cpu(l)->unit_first, kl_cpu(l)->unit_stop);
  kl_set_lane_result(l, stmt, loop.counter, value);
  kl_end_lanes(l, &loop, &p);
}

static void wait_one_by_one(kl_lowering *l, const kt_stmt *stmt)
{
  kl_counted_loop loop;
  kl_parallel p = kl_begin_lanes(l, &loop, kl_cpu(l)->unit_first, kl_cpu(l)->unit_stop);
  LLVMBasicBlockRef lane = kl_new_block(l, "lane");
  kl_cond_br(l, kl_is_lane_active(l, stmt, loop.counter), lane, loop.loop.next);
  kl_move_to(l, lane);
  LLVMValueRef value = wait_for_lane(l, stmt, loop.counter);
  kl_set_lane_result(l, stmt, loop.counter, value);
  kl_branch(l, loop.loop.next);
  kl_end_lanes(l, &loop, &p);
}

/* Lowers a wait for a phase of an mbarrier. If all threads wait for the same phase of the same
 * mbarrier, one wait is enough for all threads. */
void kl_cpu_wait_for_phase(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->value->args.count >= 2);
  if (!is_same_for_all(stmt->value->args.items[0]) ||
      !is_same_for_all(stmt->value->args.items[1])) {
    wait_one_by_one(l, stmt);
    return;
  }
  LLVMBasicBlockRef end = begin_if_any(l, stmt);
  give_all(l, stmt, wait_for_lane(l, stmt, kl_cpu(l)->unit_first));
  end_if_any(l, end);
}

/* ---- clusters ---- */

static LLVMValueRef cluster_extent(kl_lowering *l, uint32_t d)
{
  KJ_ASSERT(d < 3);
  return kl_load_grid(l, l->i32, offsetof(kj_cpu_grid, cluster) + d * sizeof(uint32_t));
}

static LLVMValueRef cluster_rank(kl_lowering *l)
{
  LLVMValueRef rank = kl_cpu_cluster_position(l, KJ_BUILTIN_CLUSTER_BLOCK_IDX, 2);
  for (uint32_t d = 2; d-- > 0;) {
    rank = kl_mul(l, rank, cluster_extent(l, d));
    rank = kl_add(l, rank, kl_cpu_cluster_position(l, KJ_BUILTIN_CLUSTER_BLOCK_IDX, d));
  }
  return rank;
}

LLVMValueRef kl_cpu_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t d)
{
  KJ_ASSERT(d < 3);
  const kl_cpu_state *s = kl_cpu(l);
  switch (KJ_AMONG(position)) {
  case KJ_BUILTIN_CLUSTER_IDX: return kl_udiv(l, s->block_index[d], cluster_extent(l, d));
  case KJ_BUILTIN_CLUSTER_DIM: return cluster_extent(l, d);
  case KJ_BUILTIN_CLUSTER_GRID_DIM: return kl_udiv(l, s->grid[d], cluster_extent(l, d));
  case KJ_BUILTIN_CLUSTER_BLOCK_IDX: return kl_urem(l, s->block_index[d], cluster_extent(l, d));
  case KJ_BUILTIN_CLUSTER_RANK: return cluster_rank(l);
  default:
    KJ_ASSERT(position == KJ_BUILTIN_CLUSTER_SIZE);
    return kl_mul(l, kl_mul(l, cluster_extent(l, 0), cluster_extent(l, 1)), cluster_extent(l, 2));
  }
}

LLVMValueRef kl_cpu_map_shared_rank(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  kl_array_value array = kl_lower_array(l, expr->args.items[0]);
  LLVMValueRef rank = kl_lower_expr(l, expr->args.items[1]),
               away = kl_sub(l, rank, cluster_rank(l));
  LLVMValueRef stride = kl_load_grid(l, l->i64, offsetof(kj_cpu_grid, scratch_stride));
  LLVMValueRef bytes = kl_mul(l, kl_as_i64(l, away), stride);
  array.pointer = kl_gep(l, l->i8, array.pointer, &bytes, 1);
  array.type = expr->type;
  return kl_pack_array(l, &array);
}

LLVMValueRef kl_cpu_shared_address(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->x);
  kl_array_value array = kl_lower_array(l, expr->x);
  LLVMValueRef pointer = kl_checked_pointer(l, &array, &expr->indices, kl_check_of_expr(l, expr));
  LLVMValueRef start = kl_ptrtoint(l, kl_cpu(l)->scratch, l->i64);
  return kl_sub(l, kl_ptrtoint(l, pointer, l->i64), start);
}

/* ---- copies ---- */

static LLVMValueRef step(kl_lowering *l, LLVMValueRef pointer, uint64_t bytes)
{
  LLVMValueRef at = kl_const64(l, (int64_t)bytes);
  return bytes ? kl_inbounds_gep(l, l->i8, pointer, &at, 1) : pointer;
}

/* Lowers cp_async. Copies element by element, because the elements that are not valid must not be
 * read. */
LLVMValueRef kl_cpu_cp_async(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.items[0]->kind == KJ_T_CONST);
  kl_array_value to, from;
  uint32_t size = kl_copied_bytes(l, expr);
  LLVMValueRef destination = kl_lower_destination(l, expr, &to),
               source = kl_lower_source(l, expr, &from);
  LLVMValueRef valid = expr->args.count > 1 ? kl_lower_expr(l, expr->args.items[1]) : NULL;
  LLVMTypeRef type = kl_memory_type(l, expr->y->type);
  for (uint32_t i = 0; i < expr->args.items[0]->integer; i++) {
    LLVMBasicBlockRef before = kl_here(l), load = NULL, end = NULL;
    if (valid) {
      load = kl_new_block(l, "valid");
      end = kl_new_block(l, "copied");
      kl_go_on_if(l, kl_icmp(l, LLVMIntSLT, kl_const64(l, i), valid), load, end);
    }
    LLVMValueRef value = kl_load(l, type, step(l, source, (uint64_t)i * size));
    kl_annotate_access(l, value, from.object);
    if (valid) {
      kl_go_on_in(l, end);
      value = kl_join(l, LLVMConstNull(type), before, value, load);
    }
    kl_annotate_access(l, kl_store(l, value, step(l, destination, (uint64_t)i * size)), to.object);
  }
  return NULL;
}

LLVMValueRef kl_cpu_cp_async_bulk(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value to, from;
  uint32_t size = kl_copied_bytes(l, expr);
  LLVMValueRef destination = kl_lower_destination(l, expr, &to),
               source = kl_lower_source(l, expr, &from);
  LLVMValueRef bytes = kl_mul(l, kl_lower_expr(l, expr->args.items[0]), kl_const64(l, size));
  LLVMBuildMemCpy(kl_next(l), destination, size, source, size, bytes);
  if (expr->args.count > 1)
    change_word(l, scratch_pointer(l, kl_lower_expr(l, expr->args.items[1])), zero64(l), bytes);
  return NULL;
}

/* ---- tensor copies ---- */

/* Copies an element. box: the i32 coordinates of the element within the box. */
static void copy_tensor_element(kl_lowering *l, const kl_tensor_copy *c, LLVMValueRef const *start,
                                LLVMValueRef const *box)
{
  LLVMTypeRef type = kl_memory_type(l, kl_type_info(l, c->tile.type)->element);
  uint32_t size = kl_scalar_bytes(l, kl_type_info(l, c->tile.type)->element);
  LLVMValueRef at[KJ_MAP_RANK], is_inside = LLVMConstInt(l->i1, 1, false), linear = zero64(l);
  for (uint32_t d = 0; d < c->map.rank; d++) {
    LLVMValueRef inner = kl_extend_position(l, box[d]);
    at[d] = kl_add(l, start[d], inner);
    linear = kl_add(l, kl_mul(l, linear, kl_const64(l, c->map.box[d])), inner);
    is_inside =
      kl_and(l, is_inside, kl_icmp(l, LLVMIntULT, at[d], kl_as_i64(l, kl_extent(l, &c->array, d))));
  }
  LLVMValueRef base =
    kl_sub(l, kl_ptrtoint(l, c->tile.pointer, l->i64), kl_ptrtoint(l, kl_cpu(l)->scratch, l->i64));
  LLVMValueRef offset = kl_add(l, base, kl_mul(l, linear, kl_const64(l, size)));
  LLVMValueRef mask = kl_const64(l, c->map.swizzle_bytes ? c->map.swizzle_bytes - 16 : 0);
  offset = kl_xor(l, offset, kl_and(l, kl_lshr(l, offset, kl_const64(l, 3)), mask));
  LLVMValueRef in_tile = kl_gep(l, l->i8, kl_cpu(l)->scratch, &offset, 1);
  LLVMBasicBlockRef inside = kl_new_block(l, "inside"), outside = kl_new_block(l, "outside"),
                    end = kl_new_block(l, "element");
  kl_go_on_if(l, is_inside, inside, outside);
  LLVMValueRef in_array = kl_element_pointer_at(l, &c->array, at, c->map.rank),
               from = c->is_store ? in_tile : in_array, to = c->is_store ? in_array : in_tile;
  kl_store(l, kl_load(l, type, from), to);
  kl_br(l, end);
  kl_move_to(l, outside);
  if (!c->is_store) kl_store(l, LLVMConstNull(type), in_tile);
  kl_go_on_in(l, end);
}

/* Returns a start coordinate as an i64. All 64 bits are needed: index 2^32 is out of bounds and
 * must not become 0. */
static LLVMValueRef lower_start(kl_lowering *l, const kt_expr *index)
{
  if (index->is_narrow) return kl_as_i64(l, kl_lower_index32(l, index));
  return kl_build_convert(l, index->type, KJIT_I64, kl_lower_expr(l, index));
}

LLVMValueRef kl_cpu_cp_async_tensor(kl_lowering *l, const kt_expr *expr)
{
  kl_tensor_copy c = kl_lower_tensor_copy(l, expr);
  LLVMValueRef start[KJ_MAP_RANK], box[KJ_MAP_RANK];
  kl_counted_loop loops[KJ_MAP_RANK];
  uint64_t bytes = kl_scalar_bytes(l, kl_type_info(l, c.tile.type)->element);
  for (uint32_t d = 0; d < c.map.rank; d++) {
    start[d] = lower_start(l, c.start->items[d]);
    bytes *= c.map.box[d];
  }
  for (uint32_t d = 0; d < c.map.rank; d++) {
    kl_begin_vector_loop(l, &loops[d], zero32(l), kl_const32(l, c.map.box[d]));
    box[d] = loops[d].counter;
  }
  copy_tensor_element(l, &c, start, box);
  for (uint32_t d = c.map.rank; d-- > 0;) kl_end_vector_loop(l, &loops[d]);
  if (!c.is_store)
    change_word(l, scratch_pointer(l, kl_lower_expr(l, expr->args.items[1])), zero64(l),
                kl_const64(l, (int64_t)bytes));
  return NULL;
}

LLVMValueRef kl_cpu_pending_count(kl_lowering *l, const kt_expr *expr)
{
  return kl_as_i32(l, low_bits(l, kl_lower_expr(l, expr->args.items[0]), 0));
}

/* grid_range and block_range over numbered threads. A thread visits the elements rank, rank +
 * count, rank + 2 * count and so on, in linear order; the last index is contiguous.
 *
 * A one-dimensional range can be vectorized. Each thread then processes the adjacent elements of a
 * 16-byte access. The body is copied for each of these elements within one basic block, so that the
 * backend can combine the loads, and the stores, of the copies. The copies must be independent,
 * which alias scopes tell LLVM. They are independent because every access is at the loop variable
 * itself in an aligned contiguous argument, and because any two arguments, of which at least one is
 * written, are either disjoint or the same array. Atomics may access any element of shared memory,
 * and any element of such arguments.
 *
 * Branches in a body, for example those of tanh, would separate the loads and the copies' stores.
 * If such a body ends with its only store, all loads are executed before the first copy of the
 * body, and all stores after the last copy. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"

/* ---- one dimension ---- */

typedef struct range {
  const kt_stmt *stmt;
  LLVMTypeRef type;         /* type of the counters */
  LLVMValueRef rank, count; /* of the counters' type */
  /* the extents, in the counters' type, evaluated once; they are not negative */
  LLVMValueRef extents[KJ_MAX_RANK];
  LLVMMetadataRef id;
} range;

/* Returns the id of a loop that is not unrolled. Most threads run only one iteration, so unrolling
 * would only cost compile time. */
static LLVMMetadataRef no_unrolling(kl_lowering *l)
{
  LLVMMetadataRef property = kl_no_unrolling(l);
  return kl_loop_id(l, &property, 1);
}

static LLVMValueRef number(const range *r, uint64_t value)
{
  return LLVMConstInt(r->type, value, false);
}

/* Returns an extent. A negative extent becomes 0. */
static LLVMValueRef lower_extent(kl_lowering *l, const range *r, size_t dimension)
{
  const kt_expr *expr = r->stmt->extents.items[dimension];
  LLVMValueRef extent = r->type == l->i32 ? kl_lower_index32(l, expr) : kl_lower_expr(l, expr);
  return expr->range.known && expr->range.least >= 0
           ? extent
           : kl_intrinsic2(l, "llvm.smax", extent, number(r, 0));
}

static void set_loop_variable(kl_lowering *l, const kt_var *var, LLVMValueRef value)
{
  kl_set_variable(l, var, var->is_narrow ? kl_as_i32(l, value) : kl_extend_position(l, value));
}

static void lower_scalar_loop(kl_lowering *l, const range *r, LLVMValueRef first, LLVMValueRef stop)
{
  kl_counted_loop loop = { .id = r->id, .polled = r->stmt };
  kl_begin_loop(l, &loop, first, stop, r->count, "range");
  set_loop_variable(l, r->stmt->vars.items[0], loop.counter);
  kl_lower_stmts(l, &r->stmt->body);
  kl_end_loop(l, &loop);
}

static LLVMValueRef exact(LLVMValueRef value)
{
  if (!LLVMIsAInstruction(value)) return value;
  LLVMSetNUW(value, true);
  LLVMSetNSW(value, true);
  return value;
}

static void make_iteration_scopes(kl_lowering *l, uint32_t count)
{
  KJ_ASSERT(count > 1);
  LLVMMetadataRef domain = kl_make_domain(l, "elements");
  l->iteration_scopes = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, count);
  for (uint32_t i = 0; i < count; i++)
    l->iteration_scopes[i] = kl_make_scope(l, domain, kj_format(l->c->arena, "element %u", i));
}

/* Lowers the copies of the body. If the body has no stores, the copies need no alias scopes. */
static void lower_copies(kl_lowering *l, const range *r, LLVMValueRef base, uint32_t count,
                         bool has_stores)
{
  l->vector_variable = r->stmt->vars.items[0];
  l->vector_base = kl_extend_position(l, base);
  l->vector_count = count;
  if (has_stores) make_iteration_scopes(l, count);
  for (uint32_t i = 0; i < count; i++) {
    l->vector_step = i;
    if (has_stores) l->iteration_scope = l->iteration_scopes[i];
    set_loop_variable(l, l->vector_variable, exact(kl_add(l, base, number(r, i))));
    kl_lower_stmts(l, &r->stmt->body);
  }
  l->vector_variable = NULL;
  l->iteration_scope = NULL;
  l->vector_step = l->vector_count = 0;
}

static void begin_copy(kl_lowering *l, const range *r, LLVMValueRef base, uint32_t step)
{
  l->vector_step = step;
  l->iteration_scope = l->iteration_scopes[step];
  set_loop_variable(l, l->vector_variable, exact(kl_add(l, base, number(r, step))));
}

/* Lowers the copies of a body with branches: all loads at the loop variable, then the statements of
 * each copy, then all stores. */
static void lower_copies_apart(kl_lowering *l, const range *r, LLVMValueRef base,
                               const kl_grouping *g)
{
  uint32_t count = g->count;
  kt_stmts before = r->stmt->body;
  const kt_stmt *store = before.items[--before.count];
  LLVMValueRef stored[KJ_FACT_WIDTH];
  KJ_ASSERT(store->kind == KJ_TS_STORE && count <= KJ_FACT_WIDTH);
  l->vector_variable = r->stmt->vars.items[0];
  l->vector_base = kl_extend_position(l, base);
  l->vector_count = count;
  make_iteration_scopes(l, count);
  uint32_t arguments = l->c->request->signature->count;
  LLVMValueRef *loaded = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, (size_t)arguments * count);
  for (size_t k = 0; k < g->load_count; k++)
    for (uint32_t i = 0; i < count; i++) {
      begin_copy(l, r, base, i);
      uint32_t argument = kl_get_array(l, g->loads[k]->x->var).object - 1;
      loaded[argument * count + i] = kl_lower_expr(l, g->loads[k]);
    }
  l->vector_loads = loaded;
  for (uint32_t i = 0; i < count; i++) {
    begin_copy(l, r, base, i);
    kl_lower_stmts(l, &before);
    l->location = store->location;
    kl_debug_statement(l, store->location);
    stored[i] = kl_lower_expr(l, store->value);
  }
  l->vector_loads = NULL;
  for (uint32_t i = 0; i < count; i++) {
    begin_copy(l, r, base, i);
    kl_lower_store_of(l, store, stored[i]);
  }
  l->vector_variable = NULL;
  l->iteration_scope = NULL;
  l->vector_step = l->vector_count = 0;
}

enum { IN_FLIGHT = 4 };

/* Lowers the main part of a loop that only reads. Each thread has many iterations of such a loop,
 * so it processes IN_FLIGHT groups at once, whose loads then overlap. The groups in a warp are
 * adjacent. For some numbers of threads, groups that are a whole grid apart use the same memory
 * channels, which was eight times slower in measurements. The groups of a thread are therefore a
 * whole grid apart only if the number of threads is not a multiple of the warp size, because the
 * order by warps would then visit some groups twice.
 *
 * The loop runs as long as there are enough groups for a round of the whole grid. Returns the first
 * remaining group. The bound is computed in 64 bits, because a round can have more than 2^32
 * elements, in which case the loop does not run. */
static LLVMValueRef lower_groups_in_flight(kl_lowering *l, const range *r, LLVMValueRef groups,
                                           LLVMValueRef shift, uint32_t count)
{
  LLVMValueRef round = kl_mul(l, kl_extend_position(l, r->count), kl_const64(l, IN_FLIGHT));
  LLVMValueRef beyond =
    kl_sub(l, kl_add(l, kl_extend_position(l, groups), kl_const64(l, 1)), round);
  LLVMValueRef limit = kl_intrinsic2(l, "llvm.smax", beyond, kl_const64(l, 0));
  LLVMValueRef lane = kl_and(l, r->rank, number(r, KJ_WARP_THREADS - 1)),
               warp = kl_sub(l, r->rank, lane);
  LLVMValueRef is_whole =
    kl_icmp(l, LLVMIntEQ, kl_and(l, r->count, number(r, KJ_WARP_THREADS - 1)), number(r, 0));
  LLVMValueRef start =
    kl_select(l, is_whole, kl_add(l, kl_mul(l, warp, number(r, IN_FLIGHT)), lane), r->rank);
  LLVMValueRef apart = kl_select(l, is_whole, number(r, KJ_WARP_THREADS), r->count);
  kl_counted_loop loop = { .id = r->id, .polled = r->stmt };
  kl_begin_loop(l, &loop, number(r, 0), r->type == l->i32 ? kl_as_i32(l, limit) : limit,
                r->type == l->i32 ? kl_as_i32(l, round) : round, "flight");
  for (unsigned i = 0; i < IN_FLIGHT; i++) {
    LLVMValueRef first = kl_add(l, loop.counter, start);
    LLVMValueRef group = kl_add(l, first, kl_mul(l, apart, number(r, i)));
    lower_copies(l, r, exact(kl_shl(l, group, shift)), count, false);
  }
  kl_end_loop(l, &loop);
  return kl_add(l, loop.counter, r->rank);
}

/* Lowers a loop over groups of `count` elements, followed by a loop over the remaining elements.
 * Group numbers and element numbers stay below the extent, so they do not overflow. */
static void lower_vector_loop(kl_lowering *l, const range *r, LLVMValueRef extent,
                              const kl_grouping *g)
{
  uint32_t count = g->count;
  KJ_ASSERT((count & (count - 1)) == 0);
  LLVMValueRef shift = number(r, (unsigned)__builtin_ctz(count)),
               groups = kl_lshr(l, extent, shift);
  LLVMValueRef first =
    g->is_reduction ? lower_groups_in_flight(l, r, groups, shift, count) : r->rank;
  kl_counted_loop loop = { .id = r->id, .polled = r->stmt };
  kl_begin_loop(l, &loop, first, groups, r->count, "groups");
  LLVMValueRef base = exact(kl_shl(l, loop.counter, shift));
  if (g->has_branches) lower_copies_apart(l, r, base, g);
  else lower_copies(l, r, base, count, !g->is_reduction);
  kl_end_loop(l, &loop);
  LLVMValueRef done = exact(kl_shl(l, groups, shift));
  lower_scalar_loop(l, r, kl_add(l, done, r->rank), extent);
}

static void lower_line(kl_lowering *l, const range *r)
{
  LLVMValueRef extent = r->extents[0];
  kl_grouping g = kl_choose_grouping(l, r->stmt);
  if (g.count == 1) {
    lower_scalar_loop(l, r, r->rank, extent);
    return;
  }
  if (r->stmt->kind == KJ_TS_GRID_FOR && !l->c->code->elements_a_thread)
    l->c->code->elements_a_thread = g.count;
  lower_vector_loop(l, r, extent, &g);
}

/* ---- two and three dimensions ---- */

/* Splits a linear index into one index for each extent. */
static void split(kl_lowering *l, LLVMValueRef value, LLVMValueRef const *extents, size_t rank,
                  LLVMValueRef *digits)
{
  KJ_ASSERT(rank);
  for (size_t d = rank - 1; d > 0; d--) {
    digits[d] = kl_urem(l, value, extents[d]);
    value = kl_udiv(l, value, extents[d]);
  }
  digits[0] = value;
}

static void advance(kl_lowering *l, LLVMValueRef const *at, LLVMValueRef const *step,
                    LLVMValueRef const *extents, size_t rank, LLVMValueRef *next)
{
  LLVMValueRef carry = NULL;
  for (size_t d = rank; d-- > 0;) {
    next[d] = kl_add(l, at[d], step[d]);
    if (carry) next[d] = kl_add(l, next[d], carry);
    if (d == 0) return;
    LLVMValueRef is_over = kl_icmp(l, LLVMIntUGE, next[d], extents[d]);
    next[d] = kl_select(l, is_over, kl_sub(l, next[d], extents[d]), next[d]);
    carry = kl_zext(l, is_over, LLVMTypeOf(next[d]));
  }
}

/* Lowers a range of several dimensions. The indices are advanced with carries, so that each thread
 * needs divisions only once and not for each element. In 32 bits, indices, steps and carries are
 * below 2^31, so their sums are exact as unsigned numbers. */
static void lower_box(kl_lowering *l, const range *r)
{
  KJ_ASSERT(r->stmt->vars.count <= KJ_MAX_RANK);
  LLVMBuilderRef b = l->builder;
  size_t rank = r->stmt->vars.count;
  LLVMValueRef extents[KJ_MAX_RANK], start[KJ_MAX_RANK], step[KJ_MAX_RANK], at[KJ_MAX_RANK] = { 0 },
                                                                            next[KJ_MAX_RANK];
  LLVMValueRef is_empty = LLVMConstInt(l->i1, 0, false);
  for (size_t d = 0; d < rank; d++) extents[d] = r->extents[d];
  for (size_t d = 0; d < rank; d++)
    is_empty = kl_or(l, is_empty, kl_icmp(l, LLVMIntEQ, extents[d], number(r, 0)));
  LLVMBasicBlockRef before = kl_new_block(l, "box"), head = kl_new_block(l, "range"),
                    body = kl_new_block(l, "body");
  kl_loop loop = { .outer = l->loop,
                   .next = kl_new_block(l, "next"),
                   .leave = kl_new_block(l, "end") };
  kl_cond_br(l, is_empty, loop.leave, before);
  kl_move_to(l, before);
  split(l, r->rank, extents, rank, start);
  split(l, r->count, extents, rank, step);
  kl_go_on_in(l, head);
  for (size_t d = 0; d < rank; d++) {
    at[d] = LLVMBuildPhi(b, r->type, r->stmt->vars.items[d]->name);
    LLVMAddIncoming(at[d], &start[d], &before, 1);
  }
  kl_cond_br(l, kl_icmp(l, LLVMIntULT, at[0], extents[0]), body, loop.leave);
  kl_move_to(l, body);
  for (size_t d = 0; d < rank; d++) set_loop_variable(l, r->stmt->vars.items[d], at[d]);
  l->loop = &loop;
  kl_lower_stmts(l, &r->stmt->body);
  l->loop = loop.outer;
  kl_go_on_in(l, loop.next);
  if (r->stmt->poll) kl_poll(l, r->stmt->location, r->stmt->poll_cost);
  advance(l, at, step, extents, rank, next);
  LLVMBasicBlockRef end = kl_here(l);
  for (size_t d = 0; d < rank; d++) LLVMAddIncoming(at[d], &next[d], &end, 1);
  LLVMValueRef latch = kl_br(l, head);
  if (r->id) kl_set_metadata(l, latch, "llvm.loop", r->id);
  kl_move_to(l, loop.leave);
}

static bool are_narrow(const kt_vars *vars)
{
  for (size_t i = 0; i < vars->count; i++)
    if (!vars->items[i]->is_narrow) return false;
  return true;
}

static void lower_range_version(kl_lowering *l, const range *r)
{
  if (r->stmt->vars.count == 1) lower_line(l, r);
  else lower_box(l, r);
}

/* Returns whether extent / 2^few < count. The product of the extents can exceed 2^64, so it is
 * computed in f32, where it can become infinite. */
static LLVMValueRef has_few_rounds(kl_lowering *l, const range *r)
{
  unsigned few = kl_few_iterations(l, r->stmt);
  if (r->stmt->vars.count == 1)
    return kl_icmp(l, LLVMIntULT, kl_lshr(l, r->extents[0], number(r, few)), r->count);
  LLVMTypeRef f32 = LLVMFloatTypeInContext(l->context);
  LLVMValueRef elements = NULL, most = LLVMBuildUIToFP(kl_next(l), r->count, f32, "");
  for (size_t d = 0; d < r->stmt->vars.count; d++) {
    LLVMValueRef extent = LLVMBuildUIToFP(kl_next(l), r->extents[d], f32, "");
    elements = elements ? LLVMBuildFMul(kl_next(l), elements, extent, "") : extent;
  }
  most = LLVMBuildFMul(kl_next(l), most, LLVMConstReal(f32, (double)((uint64_t)1 << few)), "");
  return kl_fcmp(l, LLVMRealOLT, elements, most);
}

static void lower_range_twice(kl_lowering *l, const range *r)
{
  kl_polled_twice t = { .loop = r->stmt };
  kl_begin_short(l, &t, has_few_rounds(l, r), NULL);
  lower_range_version(l, r);
  kl_begin_long(l, &t);
  lower_range_version(l, r);
  kl_end_long(l, &t);
}

void kl_lower_strided_range(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank,
                            LLVMValueRef count)
{
  KJ_ASSERT(LLVMTypeOf(rank) == LLVMTypeOf(count));
  bool is_narrow = LLVMTypeOf(count) == l->i32 && are_narrow(&stmt->vars);
  range r = { .stmt = stmt, .type = is_narrow ? l->i32 : l->i64, .id = no_unrolling(l) };
  /* Freezes the values; LLVM would otherwise split the sums and products of positions and compute
   * them again for each loop. */
  r.rank = LLVMBuildFreeze(kl_next(l), is_narrow ? rank : kl_extend_position(l, rank), "");
  r.count = LLVMBuildFreeze(kl_next(l), is_narrow ? count : kl_extend_position(l, count), "");
  KJ_ASSERT(stmt->extents.count <= KJ_MAX_RANK);
  for (size_t d = 0; d < stmt->extents.count; d++) r.extents[d] = lower_extent(l, &r, d);
  if (kl_is_polled_twice(l, stmt)) lower_range_twice(l, &r);
  else lower_range_version(l, &r);
}

/* grid_range and block_range over numbered threads: a thread visits the elements rank, rank +
 * count, ... in the linear order in which the last index is contiguous.
 *
 * A range of one dimension may be vectorized: each thread handles enough adjacent elements for
 * 16-byte accesses. The body is copied for each element within one basic block, so that the backend
 * combines the loads and the stores of the copies. The copies must be independent, which alias
 * scopes express: every access is at the loop variable itself, in aligned contiguous arguments, and
 * each written argument is disjoint from, or the same as, each other one. Atomics may access any
 * element of shared memory, or of arguments with the same relations. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"

/* ---- whether a loop can be vectorized ---- */

/* limit for the cost of all copies of the body; cost of a math function */
enum { MOST_COPIED = 640, MATH_COST = 12 };

typedef struct scan {
  kl_lowering *l;
  const kt_var *var;
  uint64_t *touched, *written, *updated; /* sets of arguments; updated means by atomics */
  uint32_t cost, largest;
  bool fails;
} scan;

static void scan_expr(scan *s, const kt_expr *expr);

static void scan_list(scan *s, const kt_exprs *list)
{
  for (size_t i = 0; i < list->count && !s->fails; i++) scan_expr(s, list->items[i]);
}

/* Returns whether the array is an argument itself. A view would not be aligned. */
static bool is_whole_argument(kl_lowering *l, const kl_array_value *array)
{
  for (size_t i = 0; i < l->parameters.count; i++)
    if (l->parameters.items[i].value == array->pointer)
      return l->parameters.items[i].parameter.kind == KJ_PARAMETER_POINTER;
  return false;
}

static bool is_uniform_index(const kt_expr *expr)
{
  if (expr->kind == KJ_T_CONST) return true;
  return expr->kind == KJ_T_CONVERT && is_uniform_index(expr->x);
}

/* Returns whether the memory belongs to no argument. A vectorized body does not store to it. */
static bool is_own_memory(const kt_expr *x)
{
  return x->kind == KJ_T_VAR && (x->var->kind == KJ_V_SHARED || x->var->kind == KJ_V_CONST);
}

static void scan_access(scan *s, const kt_expr *x, const kt_exprs *indices, bool is_store)
{
  s->cost++;
  if (!is_store && is_own_memory(x)) {
    scan_list(s, indices);
    return;
  }
  s->fails = true;
  if (x->kind != KJ_T_VAR || (x->var->kind != KJ_V_PARAM && x->var->kind != KJ_V_LET)) return;
  kl_array_value array = kl_get_array(s->l, x->var);
  if (!kl_is_argument(array.object)) return;
  bool is_uniform = !is_store;
  for (size_t i = 0; i < indices->count; i++)
    is_uniform = is_uniform && is_uniform_index(indices->items[i]);
  uint32_t argument = array.object - 1;
  s->touched[argument / 64] |= (uint64_t)1 << argument % 64;
  s->fails = !is_uniform;
  if (is_uniform || indices->count != 1) return;
  const kt_expr *index = indices->items[0];
  bool is_unit =
    LLVMIsAConstantInt(array.strides[0]) && LLVMConstIntGetZExtValue(array.strides[0]) == 1;
  bool is_aligned = s->l->c->request->signature->arguments[argument].facts & KJ_FACT_ALIGNED16;
  if (index->kind != KJ_T_VAR || index->var != s->var || !is_unit || !is_aligned ||
      !is_whole_argument(s->l, &array))
    return;
  kjit_type element = ki_type(s->l->c->types, array.type)->element;
  /* one access is already as wide as several scalar ones */
  if (kl_is_composed_type(s->l, element)) return;
  uint32_t size = kl_scalar_bytes(s->l, element);
  if (size > s->largest) s->largest = size;
  if (is_store) s->written[argument / 64] |= (uint64_t)1 << argument % 64;
  s->fails = false;
}

/* Returns whether a math function is code without branches. Branches would separate the loads of
 * the copies. */
static bool is_straight_math(ki_builtin_id id)
{
  return ki_math_table[id].form & (KJ_MATH_STRAIGHT | KJ_MATH_STRAIGHT_F32);
}

static bool calls_library(const ki_builtin *builtin)
{
  static const kl_lower_builtin library[] = { kl_lower_math,  kl_lower_rsqrt, kl_lower_sincos,
                                              kl_lower_ldexp, kl_lower_frexp, kl_lower_modf,
                                              kl_lower_ilogb };
  for (size_t i = 0; i < sizeof library / sizeof *library; i++)
    if (library[i] == kl_lower_table[builtin->id]) return true;
  return false;
}

/* Returns whether an atomic is relaxed and a single instruction. Compare-and-swap loops and fences
 * would separate the loads of the copies. */
static bool is_simple_atomic(kl_lowering *l, const kt_expr *expr)
{
  if (kl_lower_table[expr->builtin->id] != kl_lower_atomic || expr->dimension != KJ_ORDER_RELAXED ||
      kl_scalar_bytes(l, expr->type) < 4)
    return false;
  ki_combine op = (ki_combine)expr->builtin->operation;
  return !kl_is_float_type(l, expr->type) || op == KJ_COMBINE_ADD || op == KJ_COMBINE_SUB;
}

/* Scans an atomic with any indices. */
static void scan_atomic(scan *s, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_BUILTIN && (expr->builtin->flags & KJ_PLACE));
  s->cost++;
  s->fails = !is_simple_atomic(s->l, expr);
  scan_list(s, &expr->indices);
  scan_list(s, &expr->args);
  if (s->fails || is_own_memory(expr->x)) return;
  s->fails = true;
  if (expr->x->kind != KJ_T_VAR || expr->x->var->kind != KJ_V_PARAM) return;
  kl_array_value array = kl_get_array(s->l, expr->x->var);
  if (!kl_is_argument(array.object)) return;
  uint32_t argument = array.object - 1;
  s->touched[argument / 64] |= (uint64_t)1 << argument % 64;
  s->updated[argument / 64] |= (uint64_t)1 << argument % 64;
  s->fails = false;
}

static void scan_builtin(scan *s, const kt_expr *expr)
{
  if (expr->builtin->flags & KJ_PLACE) {
    scan_atomic(s, expr);
    return;
  }
  bool is_library = calls_library(expr->builtin);
  s->cost += is_library ? MATH_COST : 1;
  bool is_double = expr->type == KJIT_F64 && is_library;
  s->fails = !(expr->builtin->flags & KJ_PURE) ||
             (is_library && !is_straight_math(expr->builtin->id)) || is_double;
  if (!s->fails) scan_list(s, &expr->args);
}

static void scan_stmts(scan *s, const kt_stmts *stmts);

static void scan_call(scan *s, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CALL);
  const kt_stmts *body = &expr->instance->body;
  scan_list(s, &expr->args);
  for (size_t i = 0; i < expr->args.count; i++)
    if (kl_is_array_type(s->l, expr->args.items[i]->type)) s->fails = true;
  if (s->fails || !body->count || body->items[body->count - 1]->kind != KJ_TS_RETURN ||
      s->cost > MOST_COPIED) {
    s->fails = true;
    return;
  }
  kt_stmts before = *body;
  before.count--;
  scan_stmts(s, &before);
  if (!s->fails && body->items[before.count]->value) scan_expr(s, body->items[before.count]->value);
}

static void scan_expr(scan *s, const kt_expr *expr)
{
  if (!expr || s->fails) return;
  s->fails = !kl_is_straight(s->l, expr);
  if (s->fails) return;
  switch (expr->kind) {
  case KJ_T_CONST:
  case KJ_T_VAR: s->fails = kl_is_array_type(s->l, expr->type); return;
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: s->fails = expr->x->kind != KJ_T_VAR; return;
  case KJ_T_LOAD: scan_access(s, expr->x, &expr->args, false); return;
  case KJ_T_VIEW: s->fails = true; return;
  case KJ_T_BUILTIN: scan_builtin(s, expr); return;
  case KJ_T_CALL: scan_call(s, expr); return;
  case KJ_T_BINARY:
    s->fails =
      expr->op == KJIT_OP_POW || ((expr->op == KJIT_OP_MOD || expr->op == KJIT_OP_FLOORDIV) &&
                                  kl_is_float_type(s->l, expr->type));
    break;
  case KJ_T_UNARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC:
  case KJ_T_COND:
  case KJ_T_CONVERT:
  case KJ_T_TUPLE:
  case KJ_T_ITEM:
  case KJ_T_ELEMENT:
  case KJ_T_INSERT:
  case KJ_T_MEMBER:
  case KJ_T_ADDRESS:
  case KJ_T_POINTED:
  case KJ_T_EMPTY: break;
  }
  s->cost++;
  for (size_t i = 0; i < kt_operand_count(expr); i++) scan_expr(s, kt_operand(expr, i));
}

static void scan_stmts(scan *s, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count && !s->fails; i++) {
    const kt_stmt *stmt = stmts->items[i];
    s->fails =
      stmt->kind != KJ_TS_ASSIGN && stmt->kind != KJ_TS_STORE && stmt->kind != KJ_TS_EVALUATE;
    scan_expr(s, stmt->value);
    if (!s->fails && stmt->kind == KJ_TS_STORE) scan_access(s, stmt->array, &stmt->indices, true);
    if (stmt->kind == KJ_TS_ASSIGN && kl_is_array_type(s->l, stmt->var->type)) s->fails = true;
  }
}

static bool in_set(const uint64_t *set, uint32_t argument)
{
  return set[argument / 64] >> argument % 64 & 1;
}

/* Returns whether every pair of arguments, one of which is written, is disjoint or the same. */
static bool are_independent(scan *s)
{
  const kj_signature *signature = s->l->c->request->signature;
  bool relies_on_same = false, relies_on_disjoint = false;
  for (uint32_t a = 0; a < signature->count; a++) {
    for (uint32_t b = 0; (in_set(s->written, a) || in_set(s->updated, a)) && b < signature->count;
         b++) {
      if (a == b || !in_set(s->touched, b)) continue;
      kj_relation relation = signature->relations
                               ? (kj_relation)signature->relations[a * signature->count + b]
                               : KJ_RELATION_ANY;
      if (relation == KJ_RELATION_ANY) return false;
      relies_on_same |= relation == KJ_RELATION_SAME;
      relies_on_disjoint |= relation == KJ_RELATION_DISJOINT;
    }
  }
  s->l->c->used_same |= relies_on_same;
  s->l->c->used_disjoint |= relies_on_disjoint;
  return true;
}

static bool is_empty(const kl_lowering *l, const uint64_t *set)
{
  for (uint32_t i = 0; i <= l->c->request->signature->count / 64; i++)
    if (set[i]) return false;
  return true;
}

/* Returns the number of elements that a thread may handle at once with 16-byte accesses, or 1. */
static uint32_t vector_count(kl_lowering *l, const kt_stmt *stmt, bool *is_reduction)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  if (stmt->vars.count != 1 || l->vector_variable || l->is_checked_version || l->is_long_version ||
      kl_shows_variables(l))
    return 1;
  uint32_t words = l->c->request->signature->count / 64 + 1;
  scan s = { .l = l, .var = stmt->vars.items[0] };
  uint64_t **sets[] = { &s.touched, &s.written, &s.updated };
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    *sets[i] = KJ_NEW_ARRAY(l->c->arena, uint64_t, words);
  scan_stmts(&s, &stmt->body);
  if (s.fails || s.largest == 0 || s.largest > KJ_FACT_WIDTH / 2) return 1;
  uint32_t count = KJ_FACT_WIDTH / s.largest;
  if (s.cost * count > MOST_COPIED || !are_independent(&s)) return 1;
  l->c->used_aligned16 = true;
  *is_reduction = is_empty(l, s.written);
  return count;
}

/* ---- one dimension ---- */

typedef struct range {
  const kt_stmt *stmt;
  LLVMTypeRef type;                  /* type of the counters */
  LLVMValueRef rank, count;          /* in this type */
  LLVMValueRef extents[KJ_MAX_RANK]; /* extents in this type; evaluated once, not negative */
  LLVMMetadataRef id;
} range;

/* Returns the id of a loop without unrolling. Most threads run one iteration, so unrolling would
 * only cost compile time. */
static LLVMMetadataRef no_unrolling(kl_lowering *l)
{
  LLVMMetadataRef property = kl_no_unrolling(l);
  return kl_loop_id(l, &property, 1);
}

static LLVMValueRef number(const range *r, uint64_t value)
{
  return LLVMConstInt(r->type, value, false);
}

/* Returns an extent; a negative extent becomes 0. */
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

/* Lowers the copies of the body. Copies without stores need no alias scopes. */
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

enum { IN_FLIGHT = 4 };

/* Lowers the main part of a loop that only reads. Such a loop has many iterations in each thread,
 * so a thread processes IN_FLIGHT groups at once, whose loads are then in flight together. The
 * groups of a warp are adjacent: groups that are a whole grid apart were measured to use the same
 * memory channels for some numbers of threads, which was eight times slower. If the number of
 * threads is not a multiple of the warp size, the groups are a grid apart, so that each is visited
 * once. The loop runs while a round of the grid has all its groups. Returns the first remaining
 * group. The bound is computed in 64 bits: a round may be longer than 2^32, and then the loop does
 * not run. */
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

/* Lowers groups of `count` elements and then the remaining elements. Group numbers and element
 * numbers stay below the extent, so nothing overflows. */
static void lower_vector_loop(kl_lowering *l, const range *r, LLVMValueRef extent, uint32_t count,
                              bool is_reduction)
{
  KJ_ASSERT((count & (count - 1)) == 0);
  LLVMValueRef shift = number(r, (unsigned)__builtin_ctz(count)),
               groups = kl_lshr(l, extent, shift);
  LLVMValueRef first = is_reduction ? lower_groups_in_flight(l, r, groups, shift, count) : r->rank;
  kl_counted_loop loop = { .id = r->id, .polled = r->stmt };
  kl_begin_loop(l, &loop, first, groups, r->count, "groups");
  lower_copies(l, r, exact(kl_shl(l, loop.counter, shift)), count, !is_reduction);
  kl_end_loop(l, &loop);
  LLVMValueRef done = exact(kl_shl(l, groups, shift));
  lower_scalar_loop(l, r, kl_add(l, done, r->rank), extent);
}

static void lower_line(kl_lowering *l, const range *r)
{
  LLVMValueRef extent = r->extents[0];
  bool is_reduction = false;
  uint32_t count = vector_count(l, r->stmt, &is_reduction);
  if (count == 1) {
    lower_scalar_loop(l, r, r->rank, extent);
    return;
  }
  if (r->stmt->kind == KJ_TS_GRID_FOR && !l->c->code->elements_a_thread)
    l->c->code->elements_a_thread = count;
  lower_vector_loop(l, r, extent, count, is_reduction);
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

/* Lowers a range of several dimensions. The indices are advanced with carries, so that the
 * divisions are made once for each thread and not for each element. In 32 bits, indices, steps and
 * carries are below 2^31, so their sums are exact as unsigned numbers. */
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

/* Returns whether extent / 2^few < count. A box may have more than 2^64 elements, so the product is
 * computed in f32, where it becomes infinite. */
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
  /* Frozen, because LLVM would otherwise split the sums and products of positions and compute them
   * again for each loop. */
  r.rank = LLVMBuildFreeze(kl_next(l), is_narrow ? rank : kl_extend_position(l, rank), "");
  r.count = LLVMBuildFreeze(kl_next(l), is_narrow ? count : kl_extend_position(l, count), "");
  KJ_ASSERT(stmt->extents.count <= KJ_MAX_RANK);
  for (size_t d = 0; d < stmt->extents.count; d++) r.extents[d] = lower_extent(l, &r, d);
  if (kl_is_polled_twice(l, stmt)) lower_range_twice(l, &r);
  else lower_range_version(l, &r);
}

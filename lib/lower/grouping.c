/* Decides whether each thread of a grid_range or block_range processes several adjacent elements at
 * once, with 16-byte accesses (strided_range.c).
 *
 * This file scans the loop's body and the funcs that it calls. A thread processes one element at a
 * time if an access may depend on another iteration, or if the copies of the body would be too
 * large. */
#include "lower/instruction.h"
#include "lower/debug.h"

/* Maximum cost of all copies of the body. MATH_COST: cost of a math function without branches.
 * BRANCH_COST: cost of a math function with branches. */
enum { MOST_COPIED = 640, MATH_COST = 12, BRANCH_COST = 48 };

typedef struct scan {
  kl_lowering *l;
  const kt_var *var;
  /* bit sets of array arguments; updated: changed by atomics */
  uint64_t *touched, *written, *updated;
  KJ_LIST(const kt_expr *) loads; /* for each argument, the load at the loop variable */
  uint32_t cost, largest;
  /* number of conditions around the current expression; loads under a condition cannot be moved to
   * the start */
  uint32_t conditions;
  bool fails, has_branches;
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

/* Returns whether the memory belongs to no argument. A vectorized body must not store to it. */
static bool is_own_memory(const kt_expr *x)
{
  return x->kind == KJ_T_VAR && (x->var->kind == KJ_V_SHARED || x->var->kind == KJ_V_CONST);
}

/* Scans an access. load: the load expression; NULL for a store. */
static void scan_access(scan *s, const kt_expr *x, const kt_exprs *indices, const kt_expr *load)
{
  bool is_store = !load;
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
  /* accessing an aggregate is already as wide as several scalar accesses */
  if (kl_is_composed_type(s->l, element)) return;
  uint32_t size = kl_scalar_bytes(s->l, element);
  if (size > s->largest) s->largest = size;
  if (is_store) s->written[argument / 64] |= (uint64_t)1 << argument % 64;
  s->fails = s->conditions != 0;
  for (size_t i = 0; load && i < s->loads.count; i++)
    if (s->loads.items[i]->x->var == x->var) return;
  if (load) KJ_PUSH(s->l->c->arena, &s->loads, load);
}

/* Returns whether a math function has no branches. Branches would separate the copies' loads. */
static bool is_straight_math(ki_builtin_id id)
{
  return ki_math_table[id].form & (KJ_MATH_STRAIGHT | KJ_MATH_STRAIGHT_F32);
}

/* Flags of functions that contain loops, or that have more than a few hundred instructions for
 * f32. */
enum { NOT_COPIED = KJ_MATH_LOOPS | KJ_MATH_LONG_F32 };

static bool calls_library(const ki_builtin *builtin)
{
  static const kl_lower_builtin library[] = { kl_lower_math,  kl_lower_rsqrt, kl_lower_sincos,
                                              kl_lower_ldexp, kl_lower_frexp, kl_lower_modf,
                                              kl_lower_ilogb };
  for (size_t i = 0; i < sizeof library / sizeof *library; i++)
    if (library[i] == kl_lower_table[builtin->id]) return true;
  return false;
}

/* Returns whether an atomic is relaxed and becomes a single instruction. Compare-and-swap loops and
 * fences would separate the copies' loads. */
static bool is_simple_atomic(kl_lowering *l, const kt_expr *expr)
{
  if (kl_lower_table[expr->builtin->id] != kl_lower_atomic || expr->dimension != KJ_ORDER_RELAXED ||
      kl_scalar_bytes(l, expr->type) < 4)
    return false;
  ki_combine op = (ki_combine)expr->builtin->operation;
  return !kl_is_float_type(l, expr->type) || op == KJ_COMBINE_ADD || op == KJ_COMBINE_SUB;
}

/* Scans an atomic, whose indices can be arbitrary. */
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
  bool is_straight = !is_library || is_straight_math(expr->builtin->id);
  s->cost += !is_library ? 1 : is_straight ? MATH_COST : BRANCH_COST;
  s->has_branches |= !is_straight;
  bool is_double = expr->type == KJIT_F64 && is_library;
  s->fails = !(expr->builtin->flags & KJ_PURE) || is_double ||
             (is_library && (ki_math_table[expr->builtin->id].form & NOT_COPIED));
  if (!s->fails) scan_list(s, &expr->args);
}

/* Scans the statements of a called func that has no arrays. */
static void scan_body(scan *s, const kt_stmts *body)
{
  for (size_t i = 0; i < body->count && !s->fails; i++) {
    const kt_stmt *stmt = body->items[i];
    bool is_if = stmt->kind == KJ_TS_IF;
    s->fails = !is_if && stmt->kind != KJ_TS_ASSIGN && stmt->kind != KJ_TS_RETURN &&
               stmt->kind != KJ_TS_EVALUATE;
    if (stmt->kind == KJ_TS_ASSIGN && kl_is_array_type(s->l, stmt->var->type)) s->fails = true;
    scan_expr(s, stmt->value);
    if (!is_if || s->fails) continue;
    s->has_branches = true;
    scan_body(s, &stmt->body);
    scan_body(s, &stmt->otherwise);
  }
}

static void scan_call(scan *s, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CALL);
  const kt_stmts *body = &expr->instance->body;
  scan_list(s, &expr->args);
  for (size_t i = 0; i < expr->args.count; i++)
    if (kl_is_array_type(s->l, expr->args.items[i]->type)) s->fails = true;
  s->fails = s->fails || !body->count || s->cost > MOST_COPIED || expr->instance->is_recursive;
  if (!s->fails) scan_body(s, body);
}

static void scan_binary(scan *s, const kt_expr *expr)
{
  bool is_float = kl_is_float_type(s->l, expr->type);
  /* the remainder of floats is computed by a loop of subtractions */
  s->fails = (expr->op == KJIT_OP_MOD || expr->op == KJIT_OP_FLOORDIV) && is_float;
  if (expr->op != KJIT_OP_POW) return;
  s->cost += BRANCH_COST;
  s->has_branches = true;
  s->fails = expr->type != KJIT_F32;
}

/* Scans an expression whose operands, except for the first, are evaluated only under a
 * condition. */
static void scan_condition(scan *s, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_COND || expr->kind == KJ_T_LOGIC);
  s->cost++;
  s->has_branches = true;
  scan_expr(s, kt_operand(expr, 0));
  s->conditions++;
  for (size_t i = 1; i < kt_operand_count(expr); i++) scan_expr(s, kt_operand(expr, i));
  s->conditions--;
}

static void scan_expr(scan *s, const kt_expr *expr)
{
  if (!expr || s->fails) return;
  if (!kl_is_straight(s->l, expr)) {
    scan_condition(s, expr);
    return;
  }
  switch (expr->kind) {
  case KJ_T_CONST:
  case KJ_T_VAR: s->fails = kl_is_array_type(s->l, expr->type); return;
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: s->fails = expr->x->kind != KJ_T_VAR; return;
  case KJ_T_LOAD: scan_access(s, expr->x, &expr->args, expr); return;
  case KJ_T_VIEW: s->fails = true; return;
  case KJ_T_BUILTIN: scan_builtin(s, expr); return;
  case KJ_T_CALL: scan_call(s, expr); return;
  case KJ_T_BINARY: scan_binary(s, expr); break;
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
    if (!s->fails && stmt->kind == KJ_TS_STORE) scan_access(s, stmt->array, &stmt->indices, NULL);
    if (stmt->kind == KJ_TS_ASSIGN && kl_is_array_type(s->l, stmt->var->type)) s->fails = true;
  }
}

static bool in_set(const uint64_t *set, uint32_t argument)
{
  return set[argument / 64] >> argument % 64 & 1;
}

/* Returns whether any two arguments, of which at least one is written, are either disjoint or the
 * same array. */
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

/* Returns whether the body can be executed after all of its loads and before its only store. */
static bool has_one_store_at_end(const scan *s, const kt_stmts *body)
{
  for (size_t i = 0; i + 1 < body->count; i++)
    if (body->items[i]->kind == KJ_TS_STORE) return false;
  return body->count && body->items[body->count - 1]->kind == KJ_TS_STORE &&
         is_empty(s->l, s->updated);
}

kl_grouping kl_choose_grouping(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  kl_grouping g = { .count = 1 };
  if (stmt->vars.count != 1 || l->vector_variable || l->is_checked_version || l->is_long_version ||
      kl_shows_variables(l))
    return g;
  uint32_t words = l->c->request->signature->count / 64 + 1;
  scan s = { .l = l, .var = stmt->vars.items[0] };
  uint64_t **sets[] = { &s.touched, &s.written, &s.updated };
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    *sets[i] = KJ_NEW_ARRAY(l->c->arena, uint64_t, words);
  scan_stmts(&s, &stmt->body);
  if (s.fails || s.largest == 0 || s.largest > KJ_FACT_WIDTH / 2) return g;
  if (s.has_branches && !has_one_store_at_end(&s, &stmt->body)) return g;
  uint32_t count = KJ_FACT_WIDTH / s.largest;
  if (s.cost * count > MOST_COPIED || !are_independent(&s)) return g;
  l->c->used_aligned16 = true;
  g.is_reduction = is_empty(l, s.written);
  g.has_branches = s.has_branches;
  g.loads = s.loads.items;
  g.load_count = s.loads.count;
  g.count = count;
  return g;
}

/* Bounds during a loop (bounds.h). An invariant is an expression whose value does not change during
 * the loop; it is its own minimum and maximum. If an assumption about invariants cannot be proved,
 * it becomes a condition.
 *
 * The conditions are tested once, before the loop starts. If a condition is false, the loop runs
 * with its checks. Conditions may therefore be stronger than necessary, but never weaker. */
#include "pass/bounds.h"

/* ---- conditions ---- */

/* Returns whether two expressions without effects are the same. */
static bool is_same(const kt_expr *a, const kt_expr *b)
{
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->op != b->op || a->type != b->type || a->var != b->var ||
      a->builtin != b->builtin || a->dimension != b->dimension)
    return false;
  if (a->integer != b->integer || a->instance != b->instance || a->text != b->text) return false;
  if (a->dimensions || b->dimensions || a->args.count != b->args.count ||
      a->indices.count != b->indices.count)
    return false;
  for (size_t i = 0; i < kt_operand_count(a); i++)
    if (!is_same(kt_operand(a, i), kt_operand(b, i))) return false;
  return true;
}

static bool is_known_condition(const kp_prover *p, const kt_expr *condition)
{
  for (size_t i = 0; i < p->conditions.count; i++)
    if (is_same(p->conditions.items[i], condition)) return true;
  return false;
}

static kt_expr *make_condition(kp_prover *p, kjit_op op, kt_expr *x, kt_expr *y)
{
  KJ_ASSERT(x->type == y->type);
  kt_expr *e = kt_new_texpr(p->c, KJ_T_COMPARE, KJIT_BOOL, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

void kp_add_condition(kp_prover *p, kjit_op op, kt_expr *x, kt_expr *y)
{
  kt_expr *e = make_condition(p, op, x, y);
  if (!is_known_condition(p, e)) KJ_PUSH(p->c->arena, &p->conditions, e);
}

void kp_add_conditions(kp_prover *p, const kt_exprs *conditions)
{
  for (size_t i = 0; i < conditions->count; i++)
    if (!is_known_condition(p, conditions->items[i]))
      KJ_PUSH(p->c->arena, &p->conditions, conditions->items[i]);
}

void kp_confine(kp_prover *p, kp_bounds *b, int64_t least, int64_t most)
{
  KJ_ASSERT(b->known && least <= most);
  if (b->least < least) {
    kp_add_condition(p, KJIT_OP_GE, b->low, kp_make_bound(p, least));
    b->least = least;
  }
  if (b->most > most) {
    kp_add_condition(p, KJIT_OP_LE, b->high, kp_make_bound(p, most));
    b->most = most;
  }
  /* an empty interval: the conditions can never be true */
  if (b->most < b->least) b->most = b->least;
}

/* ---- invariants ---- */

/* maximum number of nodes of an invariant; it is limited because several conditions can contain the
 * invariant */
enum { MOST_PARTS = 32 };

static bool is_invariant(const kp_prover *p, const kt_expr *e, uint32_t *parts);

static bool are_invariant(const kp_prover *p, const kt_exprs *list, uint32_t *parts)
{
  for (size_t i = 0; i < list->count; i++)
    if (!is_invariant(p, list->items[i], parts)) return false;
  return true;
}

static bool is_constant_builtin(const kp_prover *p, const kt_expr *e, uint32_t *parts)
{
  KJ_ASSERT(e->kind == KJ_T_BUILTIN);
  static const uint32_t others =
    KJ_BARRIER | KJ_WARP | KJ_PLACE | KJ_READS | KJ_WAITS | KJ_ADDRESS | KJ_ARRAY;
  if (!(e->builtin->flags & KJ_PURE) || (e->builtin->flags & others) || e->x) return false;
  return are_invariant(p, &e->args, parts) && are_invariant(p, &e->indices, parts);
}

static bool is_invariant(const kp_prover *p, const kt_expr *e, uint32_t *parts)
{
  KJ_ASSERT(p->inside);
  /* computing a condition must not fail */
  if (++*parts > MOST_PARTS || e->is_checked || e->is_watched) return false;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST: return true;
  case KJ_T_VAR: return !p->inside[e->var->index];
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: return e->x->kind == KJ_T_VAR && is_invariant(p, e->x, parts);
  case KJ_T_UNARY:
  case KJ_T_CONVERT:
  case KJ_T_ITEM: return is_invariant(p, e->x, parts);
  case KJ_T_BINARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC: return is_invariant(p, e->x, parts) && is_invariant(p, e->y, parts);
  case KJ_T_COND:
    return is_invariant(p, e->x, parts) && is_invariant(p, e->y, parts) &&
           is_invariant(p, e->z, parts);
  case KJ_T_TUPLE: return are_invariant(p, &e->args, parts);
  case KJ_T_BUILTIN: return is_constant_builtin(p, e, parts);
  default: return false;
  }
}

bool kp_is_invariant(const kp_prover *p, const kt_expr *e)
{
  uint32_t parts = 0;
  return is_invariant(p, e, &parts);
}

/* ---- bounds of invariants ---- */

/* Returns the maximum absolute value that an invariant may have. Larger values never occur in an
 * array's indices. If offsets fit into 32 bits, products of two invariants are exact as well. */
static int64_t most_of(const kp_prover *p)
{
  enum { NARROW = 31, WIDE = 40 };
  return (int64_t)1 << (p->c->request->signature->offsets32 ? NARROW : WIDE);
}

/* Returns the numeric bounds that are valid without conditions. */
static kp_bounds find_numbers(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(p->inside);
  size_t mark = p->conditions.count;
  kp_bounds b = kp_find_bounds_by_kind(p, e);
  bool is_free = p->conditions.count == mark;
  p->conditions.count = mark;
  kp_bounds all = { .known = true };
  kp_find_type_range(p, e->type, &all.least, &all.most);
  return b.known && is_free ? b : all;
}

/* Adds the condition that a u64 value is at most `most`; a value above the range of i64 would be
 * negative as an i64. */
static void confine_unsigned(kp_prover *p, kp_bounds *b, kt_expr *e, int64_t most)
{
  KJ_ASSERT(e->type == KJIT_U64 && most >= 0);
  kt_expr *limit = kt_new_texpr(p->c, KJ_T_CONST, KJIT_U64, e->location);
  limit->integer = most;
  kp_add_condition(p, KJIT_OP_LE, e, limit);
  b->least = 0;
  b->most = most;
}

kp_bounds kp_bounds_of_invariant(kp_prover *p, kt_expr *e)
{
  int64_t least, most, limit = most_of(p);
  if (ki_is_weak(e->type) || !kp_find_type_range(p, e->type, &least, &most))
    return kp_unknown_bounds;
  kp_bounds numbers = find_numbers(p, e);
  kt_expr *value = kp_make_i64(p, e);
  kp_bounds b = {
    .known = true, .low = value, .high = value, .least = numbers.least, .most = numbers.most
  };
  is_invariant(p, e, &b.nodes);
  if (ki_type(p->c->types, e->type)->size_bytes < 8) return b;
  if (e->type == KJIT_U64 && b.most > limit) confine_unsigned(p, &b, e, limit - 1);
  else kp_confine(p, &b, -limit, limit - 1);
  return b;
}

/* Reverse derivatives of expressions: propagates the derivative with respect to an expression to
 * the variables and elements that it contains.
 *
 * Complex numbers follow JAX's convention: if t is the derivative of a number with respect to z, a
 * change of z by dz changes the number by the real part of t * dz, without a conjugate. The
 * derivative with respect to the imaginary part is therefore minus the imaginary part of t. */
#include "derive/adjoint.h"

/* ---- sums ---- */

static kt_expr *negated(kd_derivation *d, kt_expr *t)
{
  return kt_make_own_unary(d->s, KJIT_OP_NEG, t, d->location);
}

static void add_to_var(kd_derivation *d, kt_var *other, kt_expr *t)
{
  t = kt_convert(d->s, t, other->type, t->location);
  kd_assign(d, other, kd_add(d, kd_read(d, other), t));
}

void kd_add_to_element(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  kt_expr *other = kd_other_array(d, node->array);
  if (ki_type(d->c->types, other->type)->read_only)
    kd_refuse(d, node->from->location,
              "the array that is passed as the derivative of `%s` must not be const",
              kd_root(node->array)->name);
  if (kd_is_imaginary(d, node->array)) t = negated(d, t);
  kt_expr *before = kd_keep(d, kd_load(d, other, &node->indices));
  kd_store(d, kd_copy(d, other), &node->indices, kd_add(d, before, t));
}

/* Propagates t to an operand of a node. Stores t in a variable first. If t is a negation and the
 * operand is a quotient, the variable holds the negated value, because of_quotient handles the
 * sign. */
static void hand_back(kd_derivation *d, const kd_node *operand, kt_expr *t)
{
  if (!operand || !operand->is_active || !t) return;
  bool is_quotient = operand->from->kind == KJ_T_BINARY && operand->from->op == KJIT_OP_DIV,
       is_negative = t->kind == KJ_T_UNARY && t->op == KJIT_OP_NEG;
  bool keeps_sign = is_quotient && is_negative;
  t = kd_keep(d, keeps_sign ? t->x : t);
  kd_hand_back(d, operand, keeps_sign ? negated(d, t) : t);
}

/* ---- aggregates ---- */

static bool is_imaginary(const kd_derivation *d, kjit_type whole, uint32_t index)
{
  return index == 1 && kt_is_complex(d->c, whole);
}

static kt_expr *item_of(kd_derivation *d, const kt_expr *t, uint32_t index)
{
  kt_expr *item = kt_make_item(d->s, kd_copy(d, t), index, d->location);
  return is_imaginary(d, t->type, index) ? negated(d, item) : item;
}

/* Returns a copy of the aggregate in which t replaces one component. */
static kt_expr *whole_with(kd_derivation *d, const kd_node *node, kt_expr *whole, kt_expr *t)
{
  kt_expr *made = kt_new_texpr(d->c, KJ_T_INSERT, whole->type, node->from->location);
  made->x = whole;
  made->y = t;
  made->dimension = node->from->dimension;
  for (size_t i = 0; i < node->indices.count; i++)
    KJ_PUSH(d->arena, &made->args, kd_copy(d, node->indices.items[i]));
  return made;
}

static void hand_back_part(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  const kd_node *whole = node->nodes[0];
  if (is_imaginary(d, whole->from->type, node->from->dimension)) t = negated(d, t);
  hand_back(d, whole, whole_with(d, node, kd_nothing(d, whole->from->type), t));
}

static void hand_back_insert(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  const kd_node *part = node->nodes[1];
  kt_expr *taken = kt_new_texpr(d->c, node->indices.count ? KJ_T_ELEMENT : KJ_T_ITEM,
                                part->from->type, node->from->location);
  taken->x = kd_copy(d, t);
  taken->dimension = node->from->dimension;
  for (size_t i = 0; i < node->indices.count; i++)
    KJ_PUSH(d->arena, &taken->args, kd_copy(d, node->indices.items[i]));
  bool is_negated = is_imaginary(d, t->type, node->from->dimension);
  hand_back(d, part, is_negated ? negated(d, taken) : taken);
  hand_back(d, node->nodes[0], whole_with(d, node, kd_copy(d, t), kd_nothing(d, part->from->type)));
}

static void hand_back_choice(kd_derivation *d, const kd_node *node, const kt_expr *t)
{
  for (size_t i = 1; i <= 2; i++) {
    kt_expr *chosen = KJ_NEW(d->arena, kt_expr);
    *chosen = *node->from;
    chosen->args = (kt_exprs){ 0 };
    KJ_PUSH(d->arena, &chosen->args, kd_copy(d, node->args[0]->value));
    KJ_PUSH(d->arena, &chosen->args, i == 1 ? kd_copy(d, t) : kd_nothing(d, t->type));
    KJ_PUSH(d->arena, &chosen->args, i == 2 ? kd_copy(d, t) : kd_nothing(d, t->type));
    hand_back(d, node->args[i], chosen);
  }
}

/* ---- expressions by kind ---- */

static void hand_back_cond(kd_derivation *d, const kd_node *node, const kt_expr *t)
{
  kt_stmt *branch = kt_new_if(d->c, kd_copy(d, node->nodes[0]->value), node->from->location);
  kt_emit(d->s, branch);
  kt_stmts *outer = d->s->out;
  for (int i = 1; i <= 2; i++) {
    d->s->out = i == 1 ? &branch->body : &branch->otherwise;
    hand_back(d, node->nodes[i], kd_copy(d, t));
  }
  d->s->out = outer;
}

static void hand_back_builtin(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  switch (KJ_AMONG(kd_rule_of(node->from->builtin))) {
  case KJ_RULE_CHOICE: hand_back_choice(d, node, t); return;
  case KJ_RULE_PAIR:
    for (size_t i = 0; i < node->from->args.count; i++)
      if (node->args[i]->is_active) hand_back(d, node->args[i], kd_pair_reverse(d, node, i, t));
    return;
  case KJ_RULE_PARTIAL:
    for (size_t i = 0; i < node->from->args.count; i++)
      if (node->args[i]->is_active) hand_back(d, node->args[i], kd_times_partial(d, node, i, t));
    return;
  default: return;
  }
}

/* Propagates t to the arguments of a call of a func that has a custom rule. */
static void hand_back_call(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  const kt_expr *e = node->from;
  const kt_inferred *of = d->s->inference->records.items[e->instance->id];
  kt_exprs values = { 0 };
  for (size_t i = 0; i < e->args.count; i++)
    KJ_PUSH(d->arena, &values, kd_copy(d, node->args[i]->value));
  kd_parts parts = kd_go_back_by_rule(d, of, &values, kd_copy(d, t), NULL, e->location);
  for (size_t i = 0; i < e->args.count; i++)
    if (parts.derivatives.items[i]) hand_back(d, node->args[i], parts.derivatives.items[i]);
}

/* Returns whether the node is the square of a variable. */
static bool is_square(const kd_node *node)
{
  const kt_expr *x = node->from->x, *y = node->from->y;
  return node->from->op == KJIT_OP_MUL && x->kind == KJ_T_VAR && y->kind == KJ_T_VAR &&
         x->var == y->var;
}

/* For x * x, t is propagated once, as (t + t) * x. If t is constant in a loop, LLVM can then move
 * the sum out of the loop. */
static void hand_back_binary(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  if (is_square(node)) {
    kt_expr *twice = kd_keep(d, kd_add(d, kd_copy(d, t), kd_copy(d, t)));
    hand_back(d, node->nodes[0], kd_times_partial(d, node, 0, twice));
    return;
  }
  for (size_t i = 0; i < 2; i++)
    if (node->nodes[i]->is_active) hand_back(d, node->nodes[i], kd_times_partial(d, node, i, t));
}

void kd_hand_back(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  const kt_expr *e = node->from;
  kt_count_work(d->s, e->location);
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_VAR: add_to_var(d, d->variables[e->var->index].other, kd_copy(d, t)); break;
  case KJ_T_LOAD:
    if (d->adjoint) kd_adjoint_load(d, node, kd_copy(d, t));
    else kd_add_to_element(d, node, kd_copy(d, t));
    break;
  case KJ_T_COND: hand_back_cond(d, node, t); break;
  case KJ_T_BUILTIN: hand_back_builtin(d, node, t); break;
  case KJ_T_CALL: hand_back_call(d, node, t); break;
  case KJ_T_BINARY: hand_back_binary(d, node, t); break;
  case KJ_T_UNARY:
    hand_back(d, node->nodes[0], kt_make_own_unary(d->s, e->op, kd_copy(d, t), e->location));
    break;
  case KJ_T_CONVERT:
    hand_back(d, node->nodes[0], kt_convert(d->s, kd_copy(d, t), e->x->type, e->location));
    break;
  case KJ_T_TUPLE:
    for (uint32_t i = 0; i < e->args.count; i++) hand_back(d, node->args[i], item_of(d, t, i));
    break;
  case KJ_T_ITEM:
  case KJ_T_ELEMENT: hand_back_part(d, node, kd_copy(d, t)); break;
  case KJ_T_INSERT: hand_back_insert(d, node, kd_copy(d, t)); break;
  default: KJ_ASSERT(!"a kind of node that has a derivative");
  }
}

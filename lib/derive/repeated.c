/* Finds expressions that a statement of a prepared body computes more than once, and computes each
 * of them once, in a variable before the statement. The reverse derivative can then sum all
 * derivatives with respect to this variable, and propagate the sum through the expression only
 * once. The values do not change. */
#include "derive/adjoint.h"

enum { MOST_NODES = 256 };

/* A statement's subexpressions. A parent precedes its children. */
typedef struct repeats {
  kd_derivation *d;
  kt_expr **places[MOST_NODES];
  /* whether each node is evaluated whenever the statement is executed */
  bool is_certain[MOST_NODES];
  size_t count;
} repeats;

static bool is_impure(void *data, const kt_expr *e)
{
  (void)data;
  if (e->kind == KJ_T_BUILTIN) return !(e->builtin->flags & KJ_PURE) || e->text;
  return e->kind == KJ_T_CALL || e->kind == KJ_T_POINTED || e->kind == KJ_T_ADDRESS;
}

/* Returns whether the expression computes a number that has a derivative. */
static bool may_repeat(const kd_derivation *d, const kt_expr *e)
{
  bool is_computed =
    e->kind == KJ_T_UNARY || e->kind == KJ_T_BINARY || (e->kind == KJ_T_BUILTIN && !e->x);
  return is_computed && kd_holds_float(d->c, e->type);
}

static void list_places(repeats *r, kt_expr **place, bool is_certain)
{
  kt_expr *e = *place;
  if (r->count == MOST_NODES) return;
  r->is_certain[r->count] = is_certain;
  r->places[r->count++] = place;
  bool is_lazy = e->kind == KJ_T_COND || e->kind == KJ_T_LOGIC;
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    kt_expr **operand = kt_operand_place(e, i);
    if (*operand) list_places(r, operand, is_certain && (!is_lazy || *operand == e->x));
  }
}

/* Replaces the expression at index `first`, and all equal expressions after it, by a variable. */
static bool replace(repeats *r, size_t first)
{
  kd_derivation *d = r->d;
  kt_expr *e = *r->places[first];
  kt_var *var = NULL;
  for (size_t i = first + 1; i < r->count; i++) {
    if (!kd_equal_exprs(e, *r->places[i])) continue;
    if (!var) var = kd_new_var(d, "_twice", e->type, e->location);
    *r->places[i] = kd_read(d, var);
  }
  if (!var) return false;
  *r->places[first] = kd_read(d, var);
  kd_assign(d, var, e);
  return true;
}

static void replace_in(kd_derivation *d, kt_expr **value);

/* Replaces one repeated expression. The caller repeats the search after each replacement, because
 * replaced subexpressions are no longer part of the statement. */
static bool replace_one(kd_derivation *d, kt_expr **value)
{
  repeats *r = KJ_NEW(d->arena, repeats);
  r->d = d;
  list_places(r, value, true);
  if (r->count == MOST_NODES) return false;
  for (size_t i = 0; i < r->count; i++) {
    if (!r->is_certain[i] || !may_repeat(d, *r->places[i])) continue;
    kt_stmts made = { 0 }, *outer = d->s->out;
    d->s->out = &made;
    bool is_replaced = replace(r, i);
    d->s->out = outer;
    if (!is_replaced) continue;
    replace_in(d, &made.items[0]->value);
    kt_emit(d->s, made.items[0]);
    return true;
  }
  return false;
}

static void replace_in(kd_derivation *d, kt_expr **value)
{
  if (kt_any_texpr(*value, is_impure, NULL)) return;
  while (replace_one(d, value)) continue;
}

static void visit_block(kd_derivation *d, kt_stmts *stmts)
{
  kt_stmts made = { 0 }, *outer = d->s->out;
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    d->s->out = &made;
    bool is_value = stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_STORE;
    if (is_value && kd_holds_float(d->c, stmt->value->type)) replace_in(d, &stmt->value);
    kt_emit(d->s, stmt);
    visit_block(d, &stmt->body);
    visit_block(d, &stmt->otherwise);
  }
  d->s->out = outer;
  *stmts = made;
}

void kd_name_repeated(kd_derivation *d) { visit_block(d, &d->body); }

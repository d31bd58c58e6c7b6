/* Activity analysis: finds the variables of the prepared body (prepare.c) that need a derivative.
 * The chosen parameters are those with respect to which the func is differentiated. A variable
 * needs a derivative if it depends on a chosen parameter, and if the result or an element in an
 * array parameter depends on the variable. */
#include "derive/derive.h"

bool kd_is_active(const kd_derivation *d, const kt_var *var)
{
  return var->index < d->count && d->variables[var->index].varies &&
         d->variables[var->index].matters;
}

static bool varies_var(const kd_derivation *d, const kt_var *var)
{
  return var && var->index < d->count && d->variables[var->index].varies;
}

static bool any_varies(const kd_derivation *d, const kt_expr *e)
{
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    const kt_expr *operand = kt_operand(e, i);
    if (!operand) continue;
    bool is_array = kt_is_array(d->c, operand->type);
    if (is_array ? varies_var(d, kd_root(operand)) : kd_varies(d, operand)) return true;
  }
  return false;
}

bool kd_varies(const kd_derivation *d, const kt_expr *e)
{
  if (!kd_holds_float(d->c, e->type)) return false;
  switch (e->kind) {
  case KJ_T_CONST:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC:
  case KJ_T_EXTENT:
  case KJ_T_STRIDE:
  case KJ_T_ADDRESS:
  case KJ_T_POINTED:
  case KJ_T_EMPTY: return false;
  case KJ_T_VAR: return varies_var(d, e->var);
  case KJ_T_LOAD: return varies_var(d, kd_root(e->x));
  case KJ_T_COND: return kd_varies(d, e->y) || kd_varies(d, e->z);
  case KJ_T_BINARY: return e->op != KJIT_OP_FLOORDIV && (kd_varies(d, e->x) || kd_varies(d, e->y));
  case KJ_T_BUILTIN: return kd_rule_of(e->builtin) != KJ_RULE_DISCRETE && any_varies(d, e);
  case KJ_T_UNARY:
  case KJ_T_CONVERT:
  case KJ_T_VIEW:
  case KJ_T_MEMBER:
  case KJ_T_CALL:
  case KJ_T_TUPLE:
  case KJ_T_ITEM:
  case KJ_T_ELEMENT:
  case KJ_T_INSERT: return any_varies(d, e);
  }
  return false;
}

typedef struct walk {
  kd_derivation *d;
  bool has_changed;
} walk;

static void mark(walk *w, bool *flag)
{
  if (*flag) return;
  *flag = w->has_changed = true;
}

/* If an argument of a call depends on a chosen parameter, marks the arrays that the call may write
 * as depending on it, too, because the called func may store the argument to these arrays. */
static void mark_call_arrays(void *data, kt_expr **expr)
{
  walk *w = data;
  const kt_expr *e = *expr;
  if (e->kind != KJ_T_CALL || !any_varies(w->d, e)) return;
  for (size_t i = 0; i < e->args.count; i++) {
    kt_var *root = kt_is_array(w->d->c, e->args.items[i]->type) ? kd_root(e->args.items[i]) : NULL;
    bool is_written = root && !ki_type(w->d->c->types, e->args.items[i]->type)->read_only;
    if (is_written && kd_holds_float(w->d->c, root->type))
      mark(w, &w->d->variables[root->index].varies);
  }
}

static void find_varying(void *data, kt_stmt *stmt)
{
  walk *w = data;
  kt_var *to = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
               : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                           : NULL;
  if (to && to->index < w->d->count && kd_varies(w->d, stmt->value))
    mark(w, &w->d->variables[to->index].varies);
}

/* Marks as needed each variable on which the value depends. Ignores dependencies that have no
 * derivative, for example on an index. */
static void need(walk *w, const kt_expr *e)
{
  if (!e || !kd_varies(w->d, e)) return;
  if (e->kind == KJ_T_VAR || e->kind == KJ_T_LOAD) {
    const kt_var *var = e->kind == KJ_T_VAR ? e->var : kd_root(e->x);
    mark(w, &w->d->variables[var->index].matters);
    return;
  }
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    const kt_expr *operand = kt_operand(e, i);
    if (!operand) continue;
    kt_var *root = kt_is_array(w->d->c, operand->type) ? kd_root(operand) : NULL;
    if (root && varies_var(w->d, root)) mark(w, &w->d->variables[root->index].matters);
    else if (!root) need(w, operand);
  }
}

static void find_mattering(void *data, kt_stmt *stmt)
{
  walk *w = data;
  const kt_var *to = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                     : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                 : NULL;
  if (stmt->kind == KJ_TS_EVALUATE) need(w, stmt->value);
  if (to && to->index < w->d->count && w->d->variables[to->index].matters) need(w, stmt->value);
}

/* If an argument of a call that is not inlined is an array, marks all arguments as needed, because
 * the called func may store to the array. */
static void need_call_arguments(void *data, kt_expr **expr)
{
  walk *w = data;
  const kt_expr *e = *expr;
  if (e->kind != KJ_T_CALL) return;
  bool is_written = false;
  for (size_t i = 0; i < e->args.count; i++)
    is_written |= kt_is_array(w->d->c, e->args.items[i]->type);
  for (size_t i = 0; is_written && i < e->args.count; i++) need(w, e->args.items[i]);
}

void kd_find_active(kd_derivation *d)
{
  walk w = { .d = d };
  do {
    w.has_changed = false;
    kt_walk_tstmts(&d->body, find_varying, mark_call_arrays, &w);
  } while (w.has_changed);
  if (d->result) d->variables[d->result->index].matters = true;
  for (size_t i = 0; i < d->record->instance->params.count; i++)
    if (kt_is_array(d->c, d->record->instance->params.items[i]->type) && i < d->count)
      d->variables[i].matters = d->variables[i].varies;
  do {
    w.has_changed = false;
    kt_walk_tstmts(&d->body, find_mattering, need_call_arguments, &w);
  } while (w.has_changed);
}

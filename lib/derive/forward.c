/* Forward derivatives. For each assignment, the emitted code computes the new value, then the
 * derivative of the variable, and then executes the assignment. Control flow does not change. */
#include "derive/derive.h"

static void forward_block(kd_derivation *d, const kt_stmts *stmts);

/* ---- variables for derivatives ---- */

static void add_derivatives(kd_derivation *d)
{
  const kt_vars *locals = &d->record->instance->locals;
  for (size_t i = 0; i < locals->count; i++) {
    kt_var *var = locals->items[i];
    if (var->index >= d->count || !kd_is_active(d, var)) continue;
    const char *name = kj_format(d->arena, "d_%s", var->name);
    kt_tvar_kind kind = var->kind == KJ_V_LOCAL ? KJ_V_LOCAL : KJ_V_VAR;
    kt_var *other = kt_add_variable(d->s, kind, name, var->type, var->location, KJ_LEVEL_THREAD);
    other->alignment = var->alignment;
    d->variables[var->index].other = other;
  }
}

static kt_expr *tangent_of(kd_derivation *d, const kd_node *node)
{
  return node->tangent ? kd_copy(d, node->tangent) : kd_zero(d, node->from->type);
}

/* ---- statements ---- */

static void forward_assign(kd_derivation *d, const kt_stmt *stmt)
{
  if (!kd_is_active(d, stmt->var)) {
    kt_emit(d->s, (kt_stmt *)stmt);
    return;
  }
  kd_node *node = kd_flatten(d, stmt->value);
  kd_assign(d, d->variables[stmt->var->index].other, tangent_of(d, node));
  kd_assign(d, stmt->var, kd_copy(d, node->value));
}

static void check_writable(kd_derivation *d, const kt_expr *array, const kt_stmt *stmt)
{
  if (ki_type(d->c->types, array->type)->read_only)
    kd_refuse(d, stmt->location,
              "the array that is passed as the derivative of `%s` must not be const",
              kd_root(stmt->array)->name);
}

static void forward_store(kd_derivation *d, const kt_stmt *stmt)
{
  const kt_var *root = kd_root(stmt->array);
  if (!root || root->index >= d->count || !kd_is_active(d, root)) {
    kt_emit(d->s, (kt_stmt *)stmt);
    return;
  }
  kd_node *node = kd_flatten(d, stmt->value);
  kt_expr *array = kd_keep_array(d, stmt->array);
  kt_exprs indices = { 0 };
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(d->arena, &indices, kd_keep(d, kd_copy(d, stmt->indices.items[i])));
  kt_expr *other = kd_other_array(d, array);
  check_writable(d, other, stmt);
  kd_store(d, other, &indices, tangent_of(d, node));
  kd_store(d, array, &indices, kd_copy(d, node->value));
}

static void forward_bodies(kd_derivation *d, const kt_stmt *stmt)
{
  kt_stmt *copy = KJ_NEW(d->arena, kt_stmt);
  *copy = *stmt;
  copy->body = copy->otherwise = (kt_stmts){ 0 };
  kt_emit(d->s, copy);
  kt_stmts *outer = d->s->out;
  d->s->out = &copy->body;
  forward_block(d, &stmt->body);
  d->s->out = &copy->otherwise;
  forward_block(d, &stmt->otherwise);
  d->s->out = outer;
}

static void forward_block(kd_derivation *d, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    kt_count_work(d->s, stmt->location);
    if (stmt->kind == KJ_TS_ASSIGN) forward_assign(d, stmt);
    else if (stmt->kind == KJ_TS_STORE) forward_store(d, stmt);
    else if (stmt->body.count || stmt->otherwise.count) forward_bodies(d, stmt);
    else kt_emit(d->s, stmt);
  }
}

/* ---- entry point ---- */

static void return_both(kd_derivation *d)
{
  kt_exprs both = { 0 };
  if (!d->result) {
    d->record->result = d->record->instance->result = KJIT_VOID;
    return;
  }
  KJ_PUSH(d->arena, &both, kd_read(d, d->result));
  KJ_PUSH(d->arena, &both,
          kd_is_active(d, d->result) ? kd_read(d, d->variables[d->result->index].other)
                                     : kd_zero(d, d->result->type));
  kd_return(d, kt_make_tuple(d->s, &both, d->location));
}

void kd_make_forward(kd_derivation *d)
{
  add_derivatives(d);
  forward_block(d, &d->body);
  return_both(d);
}

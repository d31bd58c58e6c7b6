/* Reverse derivatives of statements. The statements in the body run forward, and each value that a
 * derivative needs is stored in a separate variable. Then the derivative with respect to the result
 * is propagated backward through the statements. */
#include "derive/adjoint.h"

/* ---- derivatives of variables ---- */

static void zero_element(kd_derivation *d, const kt_exprs *indices, void *data)
{
  kt_var *array = data;
  kd_store(d, kd_read(d, array), indices,
           kd_nothing(d, ki_type(d->c->types, array->type)->element));
}

/* The sums for f16 and bf16 variables are f32, except in arrays, structs and tuples. */
void kd_add_derivative(kd_derivation *d, kt_var *var)
{
  const char *name = kj_format(d->arena, "d_%s", var->name);
  bool is_shared = var->kind == KJ_V_SHARED, is_array = var->kind == KJ_V_LOCAL || is_shared;
  kjit_type type = is_array ? var->type : kd_wide_type(d, var->type);
  kt_var *other = kt_add_variable(d->s, is_array ? var->kind : KJ_V_VAR, name, type, var->location,
                                  KJ_LEVEL_THREAD);
  other->alignment = var->alignment;
  d->variables[var->index].other = other;
  if (is_array)
    kd_note_fact(d, var->location, other,
                 kj_format(d->arena, "array `%s`: derivatives with respect to the elements of `%s`",
                           name, var->name));
  if (is_shared) kd_clear_shared(d, other);
  else if (is_array) kd_for_elements(d, var->type, zero_element, other);
  else kd_assign(d, other, kd_nothing(d, type));
}

static void add_derivatives(kd_derivation *d)
{
  const kt_instance *made = d->record->instance;
  for (size_t i = 0; i < d->primal->instance->params.count; i++) {
    kt_var *var = made->params.items[i];
    bool is_value = d->variables[i].varies && !d->variables[i].other;
    if (is_value) kd_add_derivative(d, var);
  }
  for (size_t i = 0; i < made->locals.count; i++) {
    kt_var *var = made->locals.items[i];
    if (var->index < d->count && kd_is_active(d, var)) kd_add_derivative(d, var);
  }
}

/* ---- statements ---- */

void kd_begin_backwards(kd_derivation *d, kd_backwards *b)
{
  b->outer = d->s->out;
  b->own = (kt_stmts){ 0 };
  d->s->out = &b->own;
}

void kd_end_backwards(kd_derivation *d, kd_backwards *b, kt_stmts *reverse)
{
  d->s->out = b->outer;
  for (size_t i = 0; i < reverse->count; i++) KJ_PUSH(d->arena, &b->own, reverse->items[i]);
  *reverse = b->own;
}

static kt_stmt *copy_stmt(kd_derivation *d, const kt_stmt *stmt)
{
  kt_stmt *copy = KJ_NEW(d->arena, kt_stmt);
  *copy = *stmt;
  copy->indices = copy->extents = (kt_exprs){ 0 };
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(d->arena, &copy->indices, kd_copy(d, stmt->indices.items[i]));
  if (stmt->value) copy->value = kd_copy(d, stmt->value);
  if (stmt->array) copy->array = kd_copy(d, stmt->array);
  return copy;
}

static void reverse_assign(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  kd_backwards b;
  if (!kd_is_active(d, stmt->var)) {
    kt_emit(d->s, copy_stmt(d, stmt));
    return;
  }
  kt_var *other = d->variables[stmt->var->index].other;
  kd_node *node = kd_flatten(d, stmt->value);
  kd_assign(d, stmt->var, kd_copy(d, node->value));
  kd_begin_backwards(d, &b);
  kt_var *t = kd_new_var(d, "_t", stmt->var->type, stmt->location);
  kd_assign(d, t, kt_convert(d->s, kd_read(d, other), t->type, stmt->location));
  kd_assign(d, other, kd_nothing(d, other->type));
  if (node->is_active) kd_hand_back(d, node, kd_read(d, t));
  kd_end_backwards(d, &b, reverse);
}

/* Returns whether the derivative executes its copy of a store that no log saves. A store to a local
 * array is always executed. A store to the caller's memory is executed only when the func's
 * statements run for the first time, and never in an adjoint kernel, because the kernel has
 * executed it. In an adjoint kernel, adjoint_rerun.c decides about stores to shared arrays. */
static bool is_stored_again(kd_derivation *d, const kt_stmt *stmt, const kt_var *root)
{
  if (root && root->kind == KJ_V_LOCAL) return true;
  if (d->adjoint && root && root->kind == KJ_V_SHARED) return kd_is_stored(d, stmt);
  return !kd_has_run(d);
}

/* Reverses a store. A body that runs again repeats a store to memory outside of the thread only if
 * the store is logged, because a loop reads this memory. */
static void reverse_store(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  kd_backwards b;
  const kt_var *root = kd_root(stmt->array);
  bool is_logged = kd_is_logged(d, stmt), is_again = !is_logged && !is_stored_again(d, stmt, root);
  if (kd_find_shared_sum(d, stmt)) {
    kd_reverse_shared_sum(d, stmt, reverse);
    return;
  }
  if (!root || root->index >= d->count || !kd_is_active(d, root)) {
    if (is_logged) kd_copy_logged(d, stmt);
    else if (!is_again) kt_emit(d->s, copy_stmt(d, stmt));
    return;
  }
  kd_node *node = kd_flatten(d, stmt->value);
  kd_node place = { .array = kd_keep_array(d, stmt->array) };
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(d->arena, &place.indices, kd_keep(d, kd_copy(d, stmt->indices.items[i])));
  kt_expr *other = kd_other_array(d, place.array);
  if (ki_type(d->c->types, other->type)->read_only)
    kd_refuse(d, stmt->location,
              "the array that is passed as the derivative of `%s` must not be const", root->name);
  kt_expr *value = kd_copy(d, node->value);
  if (is_logged) kd_log_store(d, stmt, place.array, &place.indices, value);
  else if (!is_again) kd_store(d, kd_copy(d, place.array), &place.indices, value);
  kd_begin_backwards(d, &b);
  kt_expr *t = NULL;
  if (d->adjoint && root->kind == KJ_V_PARAM) {
    t = kd_adjoint_store(d, &place);
  } else {
    t = kd_load(d, kd_copy(d, other), &place.indices);
    if (kd_is_imaginary(d, place.array))
      t = kt_make_own_unary(d->s, KJIT_OP_NEG, t, stmt->location);
    t = kd_keep(d, t);
    bool is_own = root->kind != KJ_V_PARAM;
    kd_store(d, kd_copy(d, other), &place.indices,
             is_own ? kd_nothing(d, t->type) : kd_zero(d, t->type));
  }
  if (node->is_active) kd_hand_back(d, node, t);
  kd_end_backwards(d, &b, reverse);
}

static void reverse_if(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  kt_expr *condition = kd_keep(d, kd_copy(d, stmt->value));
  kt_stmt *forward = kt_new_if(d->c, kd_copy(d, condition), stmt->location),
          *back = kt_new_if(d->c, kd_copy(d, condition), stmt->location);
  kt_stmts *outer = d->s->out;
  kd_backwards b;
  kt_emit(d->s, forward);
  d->s->out = &forward->body;
  kd_reverse_block(d, &stmt->body, &back->body);
  d->s->out = &forward->otherwise;
  kd_reverse_block(d, &stmt->otherwise, &back->otherwise);
  d->s->out = outer;
  kd_begin_backwards(d, &b);
  if (back->body.count || back->otherwise.count) kt_emit(d->s, back);
  kd_end_backwards(d, &b, reverse);
}

bool kd_is_last_break(const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_IF && stmt->body.count == 1 && !stmt->otherwise.count &&
         stmt->body.items[0]->kind == KJ_TS_BREAK;
}

static void reverse_sync(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  kd_backwards b;
  kt_emit(d->s, copy_stmt(d, stmt));
  kd_begin_backwards(d, &b);
  kt_emit(d->s, copy_stmt(d, stmt));
  kd_end_backwards(d, &b, reverse);
}

void kd_reverse_block(kd_derivation *d, const kt_stmts *stmts, kt_stmts *reverse)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    kt_count_work(d->s, stmt->location);
    switch (KJ_AMONG(stmt->kind)) {
    case KJ_TS_ASSIGN: reverse_assign(d, stmt, reverse); break;
    case KJ_TS_STORE: reverse_store(d, stmt, reverse); break;
    case KJ_TS_IF:
      if (!kd_is_last_break(stmt)) reverse_if(d, stmt, reverse);
      break;
    case KJ_TS_FOR:
    case KJ_TS_WHILE: kd_reverse_loop(d, stmt, reverse); break;
    case KJ_TS_BLOCK_FOR:
    case KJ_TS_GRID_FOR:
      if (stmt->kind == KJ_TS_GRID_FOR || !d->adjoint || !d->adjoint->is_by_threads)
        kd_refuse(d, stmt->location,
                  "a loop that divides its iterations among threads has no reverse derivative");
      kd_reverse_block_range(d, stmt, reverse);
      break;
    default:
      if (kd_is_sync(d, stmt)) reverse_sync(d, stmt, reverse);
      else if (!kd_has_run(d)) kt_emit(d->s, copy_stmt(d, stmt));
    }
  }
}

/* ---- entry point ---- */

/* Returns whether a statement outside of loops and branches adds to the variable. */
static bool is_assigned_always(const kd_derivation *d, const kt_var *var)
{
  bool is_set = false; /* whether the sum has been assigned; the first assignment initializes it */
  for (size_t i = 0; i < d->s->out->count; i++) {
    const kt_stmt *stmt = d->s->out->items[i];
    if (stmt->kind != KJ_TS_ASSIGN || stmt->var != var) continue;
    if (is_set) return true;
    is_set = true;
  }
  return false;
}

static void return_all(kd_derivation *d, kt_expr *value)
{
  kt_exprs all = { 0 };
  if (value && d->kind == KJ_BUILTIN_VJP) KJ_PUSH(d->arena, &all, value);
  for (size_t i = 0; i < d->record->chosen.count; i++) {
    const kt_var *param = d->record->chosen.items[i];
    if (kt_is_array(d->c, param->type)) continue;
    kt_var *other = d->variables[param->index].other;
    kt_expr *sum = kd_read(d, other);
    /* If no statement has added to the sum, it is -0; adding 0 makes it 0. */
    if (!is_assigned_always(d, other)) sum = kd_add(d, sum, kd_zero(d, sum->type));
    KJ_PUSH(d->arena, &all, kt_convert(d->s, sum, param->type, d->location));
  }
  if (!all.count) d->record->result = d->record->instance->result = KJIT_VOID;
  else kd_return(d, all.count == 1 ? all.items[0] : kt_make_tuple(d->s, &all, d->location));
}

void kd_make_reverse(kd_derivation *d)
{
  kt_stmts reverse = { 0 };
  add_derivatives(d);
  kd_plan_logs(d);
  kd_reverse_block(d, &d->body, &reverse);
  kd_end_logs(d);
  kt_expr *value = d->result ? kd_keep(d, kd_read(d, d->result)) : NULL;
  if (d->result && kd_is_active(d, d->result)) {
    kt_var *other = d->variables[d->result->index].other;
    kt_expr *t =
      d->cotangent ? kd_read(d, d->cotangent) : kt_new_number(d->s, other->type, 1, d->location);
    kd_assign(d, other, kt_convert(d->s, t, other->type, d->location));
  }
  for (size_t i = 0; i < reverse.count; i++) kt_emit(d->s, reverse.items[i]);
  kd_redo_stores(d);
  return_all(d, value);
}

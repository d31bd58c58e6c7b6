/* Adjoint kernels without a grid loop (adjoint_threads.c): shared arrays, and loops over a
 * block_range. The derivatives with respect to the elements in a shared array are stored in another
 * shared array. In the reverse pass, a load becomes an atomic addition to the derivative of its
 * element. A store reads the derivative of its element and sets it to 0. */
#include "derive/adjoint.h"

/* ---- sums into shared arrays ---- */

static kjit_op operator_of(ki_builtin_id id)
{
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_ATOMIC_ADD:
  case KJ_BUILTIN_ATOMIC_ADD_BLOCK:
  case KJ_BUILTIN_ATOMIC_ADD_SYSTEM: return KJIT_OP_ADD;
  case KJ_BUILTIN_ATOMIC_SUB:
  case KJ_BUILTIN_ATOMIC_SUB_BLOCK:
  case KJ_BUILTIN_ATOMIC_SUB_SYSTEM: return KJIT_OP_SUB;
  default: return KJIT_OP_STORE;
  }
}

void kd_take_atomic_sum(kd_part *part, kt_stmt *stmt)
{
  kd_derivation *d = &part->d;
  kt_expr *e = stmt->kind == KJ_TS_EVALUATE ? stmt->value : NULL;
  if (!e || e->kind != KJ_T_BUILTIN || !e->x || !kt_is_array(d->c, e->x->type)) return;
  kjit_op op = operator_of(e->builtin->id);
  const kt_var *root = kd_root(e->x);
  bool is_taken =
    root && (root->kind == KJ_V_PARAM || (part->is_by_threads && root->kind == KJ_V_SHARED));
  bool is_float = kt_is_float(d->c, ki_type(d->c->types, e->x->type)->element);
  if (op == KJIT_OP_STORE || !is_taken || !is_float) return;
  kd_taken_sum taken = { .stmt = stmt, .atomic = e };
  kt_expr *load = kd_load(d, kd_copy(d, e->x), &e->indices);
  load->location = e->location;
  stmt->kind = KJ_TS_STORE;
  stmt->array = e->x;
  stmt->indices = e->indices;
  stmt->value = kt_make_own_binary(d->s, op, load, e->args.items[0], e->location);
  KJ_PUSH(d->arena, &part->taken_sums, taken);
}

const kt_expr *kd_find_taken_sum(const kd_part *part, const kt_stmt *stmt)
{
  for (size_t i = 0; i < part->taken_sums.count; i++)
    if (part->taken_sums.items[i].stmt == stmt) return part->taken_sums.items[i].atomic;
  return NULL;
}

static bool is_shared(const kt_var *root) { return root && root->kind == KJ_V_SHARED; }

const kt_expr *kd_find_shared_sum(const kd_derivation *d, const kt_stmt *stmt)
{
  bool may_be = d->adjoint && stmt->kind == KJ_TS_STORE && is_shared(kd_root(stmt->array));
  return may_be ? kd_find_taken_sum(d->adjoint, stmt) : NULL;
}

void kd_copy_shared_sum(kd_derivation *d, const kt_stmt *stmt)
{
  kt_stmt *copy = kt_new_tstmt(d->c, KJ_TS_EVALUATE, stmt->location);
  copy->value = kd_copy(d, kd_find_shared_sum(d, stmt));
  kt_emit(d->s, copy);
}

void kd_reverse_shared_sum(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  const kt_expr *atomic = kd_find_shared_sum(d, stmt);
  if (kd_is_stored(d, stmt)) kd_copy_shared_sum(d, stmt);
  if (!kd_is_active(d, kd_root(stmt->array))) return;
  kd_node *node = kd_flatten(d, atomic->args.items[0]);
  kt_expr *array = kd_keep_array(d, stmt->array);
  kt_exprs indices = { 0 };
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(d->arena, &indices, kd_keep(d, kd_copy(d, stmt->indices.items[i])));
  if (!node->is_active) return;
  kd_backwards b;
  kd_begin_backwards(d, &b);
  kt_expr *t = kd_load(d, kd_other_array(d, array), &indices);
  if (operator_of(atomic->builtin->id) == KJIT_OP_SUB)
    t = kt_make_own_unary(d->s, KJIT_OP_NEG, t, stmt->location);
  t = kt_convert(d->s, kd_keep(d, t), node->from->type, stmt->location);
  kd_hand_back(d, node, kd_keep(d, t));
  kd_end_backwards(d, &b, reverse);
}

/* ---- derivatives ---- */

void kd_emit_barrier(kd_derivation *d)
{
  kt_operands o = { .builtin = &ki_builtin_table[KJ_BUILTIN_SYNCTHREADS], .location = d->location };
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_EVALUATE, d->location);
  stmt->value = kt_apply_rule(d->s, &o);
  d->record->instance->has_barrier = true;
  kt_emit(d->s, stmt);
}

void kd_check_shared(kd_part *part)
{
  kd_derivation *d = &part->d;
  const kt_vars *locals = &d->record->instance->locals;
  for (size_t i = 0; i < locals->count; i++) {
    const kt_var *var = locals->items[i];
    bool is_own = var->index < d->count && var->kind == KJ_V_SHARED && kd_is_active(d, var);
    if (!is_own || ki_type(d->c->types, var->type)->is_static) continue;
    kd_refuse(d, var->location,
              "the extents of the shared array `%s`, which depends on a parameter, are known only "
              "at the launch: write constant extents",
              var->name);
  }
}

/* Emits loops that set the elements to 0. The threads in the block divide the iterations among
 * themselves. */
void kd_clear_shared(kd_derivation *d, kt_var *other)
{
  const ki_type_info *info = ki_type(d->c->types, other->type);
  enum { MOST = 3 };
  kt_exprs indices = { 0 };
  kt_stmts *outer = d->s->out;
  uint32_t alone = info->rank > MOST ? info->rank - MOST : 0;
  for (uint32_t i = 0; i < alone; i++) kd_begin_loop(d, info->extents[i], &indices);
  kt_stmt *made = kt_new_tstmt(d->c, KJ_TS_BLOCK_FOR, d->location);
  for (uint32_t i = alone; i < info->rank || !made->vars.count; i++) {
    bool is_scalar = i >= info->rank;
    kt_var *var = kt_add_variable(d->s, KJ_V_LOOP, "_i", KJIT_INDEX, d->location, KJ_LEVEL_THREAD);
    int64_t extent = is_scalar ? 1 : info->extents[i];
    KJ_PUSH(d->arena, &made->vars, var);
    KJ_PUSH(d->arena, &made->extents, kt_new_integer(d->s, KJIT_INDEX, extent, d->location));
    if (!is_scalar) KJ_PUSH(d->arena, &indices, kd_read(d, var));
  }
  kt_emit(d->s, made);
  d->s->out = &made->body;
  kd_store(d, kd_read(d, other), &indices, kd_nothing(d, info->element));
  d->s->out = outer;
  d->adjoint->has_shared = true;
}

void kd_begin_shared(kd_part *part)
{
  if (part->has_shared) kd_emit_barrier(&part->d);
}

/* ---- loops over a block_range ---- */

typedef struct uses {
  const kd_part *part;
  const kt_stmt *loop;
  /* indexed by variable: whether the loop assigns it, and whether it is used outside of the loop */
  bool *inside, *outside;
  bool *reads; /* indexed by variable: the loop reads it */
} uses;

static void note_read(void *data, kt_expr **place)
{
  bool *reads = data;
  if ((*place)->kind == KJ_T_VAR) reads[(*place)->var->index] = true;
}

static void note_uses(const uses *u, const kt_stmts *stmts, bool is_inside)
{
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    const kt_var *root = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                         : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                     : NULL;
    if (root) (is_inside ? u->inside : u->outside)[root->index] = true;
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      if (kt_stmt_operand(stmt, k))
        kt_walk_texpr(kt_stmt_operand_place(stmt, k), note_read, is_inside ? u->reads : u->outside);
    bool enters = is_inside || stmt == u->loop;
    note_uses(u, &stmt->body, enters);
    note_uses(u, &stmt->otherwise, enters);
  }
}

static uses find_uses(kd_derivation *d, const kt_stmt *loop)
{
  size_t count = d->count + 1;
  uses u = { .part = d->adjoint, .loop = loop };
  u.inside = KJ_NEW_ARRAY(d->arena, bool, count);
  u.outside = KJ_NEW_ARRAY(d->arena, bool, count);
  u.reads = KJ_NEW_ARRAY(d->arena, bool, count);
  note_uses(&u, &d->body, false);
  return u;
}

/* Checks a variable of a loop over a block_range, whose iterations run again one after another.
 * Rejects a variable that passes a value from one iteration to another, or whose value no longer
 * exists when the iterations run again. */
static void check_iteration(kd_derivation *d, const uses *u, const kt_var *var)
{
  uint32_t index = var->index;
  bool is_local = var->kind == KJ_V_LOCAL,
       is_handed_on = u->outside[index] && (u->inside[index] || (is_local && u->reads[index]));
  if (is_handed_on && (is_local || var->kind == KJ_V_VAR))
    kd_refuse(d, u->loop->location,
              "this loop over a block_range uses `%s`, which the kernel changes: declare it in the "
              "loop, or make it a shared array",
              var->name);
}

/* Saves the variables that the loop reads. Returns the statements that restore these values. */
static kt_stmts keep_entry(kd_derivation *d, const uses *u)
{
  kt_stmts restored = { 0 }, *outer = d->s->out;
  const kt_vars *locals = &d->record->instance->locals;
  for (size_t i = 0, count = locals->count; i < count; i++) {
    kt_var *var = locals->items[i];
    if (var->index >= d->count) continue;
    check_iteration(d, u, var);
    bool is_entry = var->kind == KJ_V_VAR && u->reads[var->index] && u->outside[var->index];
    if (!is_entry) continue;
    kt_var *kept = kd_new_var(d, var->name, var->type, var->location);
    kd_assign(d, kept, kd_read(d, var));
    d->s->out = &restored;
    kd_assign(d, var, kd_read(d, kept));
    d->s->out = outer;
  }
  return restored;
}

static kt_stmt *new_block_loop(kd_derivation *d, const kt_stmt *like, const kt_exprs *extents)
{
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_BLOCK_FOR, like->location);
  loop->unroll = like->unroll;
  for (size_t i = 0; i < like->vars.count; i++) {
    const kt_var *var = like->vars.items[i];
    kt_var *made =
      kt_add_variable(d->s, KJ_V_LOOP, var->name, var->type, var->location, KJ_LEVEL_THREAD);
    d->variables[var->index].instead = made;
    KJ_PUSH(d->arena, &loop->vars, made);
    KJ_PUSH(d->arena, &loop->extents, kd_copy(d, extents->items[i]));
  }
  return loop;
}

static void emit_again(kd_derivation *d, const kt_stmt *stmt, kt_stmt *loop)
{
  kt_stmts back = { 0 }, *outer = d->s->out;
  bool was_recomputed = d->is_recomputed;
  kt_emit(d->s, loop);
  d->s->out = &loop->body;
  d->is_recomputed = true;
  kd_begin_rerun(d, stmt);
  kd_reverse_block(d, &stmt->body, &back);
  for (size_t i = 0; i < back.count; i++) kt_emit(d->s, back.items[i]);
  kd_end_rerun(d, &loop->body);
  d->is_recomputed = was_recomputed;
  d->s->out = outer;
}

void kd_reverse_block_range(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  kd_backwards b;
  uses u = find_uses(d, stmt);
  kt_stmts restored = keep_entry(d, &u);
  kt_exprs extents = { 0 };
  for (size_t i = 0; i < stmt->extents.count; i++)
    KJ_PUSH(d->arena, &extents, kd_keep(d, kd_copy(d, stmt->extents.items[i])));
  kt_stmt *forward = new_block_loop(d, stmt, &extents);
  kt_emit(d->s, forward);
  kt_stmts *outer = d->s->out;
  d->s->out = &forward->body;
  kd_copy_block(d, &stmt->body);
  d->s->out = outer;
  kd_begin_backwards(d, &b);
  for (size_t i = 0; i < restored.count; i++) kt_emit(d->s, restored.items[i]);
  emit_again(d, stmt, new_block_loop(d, stmt, &extents));
  kd_end_backwards(d, &b, reverse);
  for (size_t i = 0; i < stmt->vars.count; i++)
    d->variables[stmt->vars.items[i]->index].instead = NULL;
}

/* Reverse derivatives of loops. At the start of each iteration of the forward pass, the loop saves
 * on tapes the variables that it changes. In the reverse pass, each iteration restores these
 * variables and runs its body again. Then the derivatives are propagated backward through the body.
 * An inner loop saves its values while the outer body runs again, so the tape sizes of nested loops
 * add up instead of being multiplied. array_log.c handles the elements of arrays that a loop
 * changes. */
#include "derive/adjoint.h"

typedef struct tape {
  kt_var *of, *array;
} tape;

typedef struct loop {
  kd_derivation *d;
  const kt_stmt *source;
  /* maximum number of iterations; 0 means that it is unknown and nothing is saved */
  uint32_t most;
  bool is_exact;         /* the loop never exceeds the maximum */
  bool is_fixed;         /* the number of iterations is always the maximum */
  bool is_short;         /* the generated loops are unrolled */
  kt_expr *first, *step; /* FOR: start and step, from which the loop variable is recomputed */
  kt_var *count;
  /* indexed by variable: whether the body reads it before assigning it, and whether the body
   * assigns it */
  bool *reads, *assigns;
  KJ_LIST(tape) tapes; /* variables that the loop changes */
  /* variables that the loop only reads, with their values at the loop's start */
  KJ_LIST(tape) entry;
  kd_marks marks; /* logged arrays */
} loop;

/* ---- the variables of a loop ---- */

static void note_reads(loop *l, const kt_expr *e, const bool *is_assigned)
{
  if (!e) return;
  bool is_var = e->kind == KJ_T_VAR && e->var->index < l->d->count;
  if (is_var && !is_assigned[e->var->index]) l->reads[e->var->index] = true;
  for (size_t i = 0; i < kt_operand_count(e); i++) note_reads(l, kt_operand(e, i), is_assigned);
}

/* Finds the variables that the statements may read before assigning them. is_assigned holds the
 * variables that have been assigned so far. */
static void find_reads(loop *l, const kt_stmts *stmts, bool *is_assigned)
{
  size_t count = l->d->count;
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      note_reads(l, kt_stmt_operand(stmt, k), is_assigned);
    if (stmt->kind == KJ_TS_ASSIGN) is_assigned[stmt->var->index] = true;
    if (!stmt->body.count && !stmt->otherwise.count) continue;
    bool *first = KJ_NEW_ARRAY(l->d->arena, bool, count + 1),
         *second = KJ_NEW_ARRAY(l->d->arena, bool, count + 1);
    for (size_t k = 0; k < count; k++) first[k] = second[k] = is_assigned[k];
    if (stmt->kind == KJ_TS_FOR) first[stmt->var->index] = true;
    find_reads(l, &stmt->body, first);
    find_reads(l, &stmt->otherwise, second);
    for (size_t k = 0; stmt->kind == KJ_TS_IF && k < count; k++)
      is_assigned[k] |= first[k] && second[k];
  }
}

static void note_assigned(void *data, kt_stmt *stmt)
{
  loop *l = data;
  if (stmt->kind == KJ_TS_ASSIGN) l->assigns[stmt->var->index] = true;
}

/* ---- tapes ---- */

static kt_var *add_tape(loop *l, const kt_var *var)
{
  kd_derivation *d = l->d;
  ki_type_info info = { .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_LOCAL,
                        .is_static = true,
                        .element = var->type,
                        .rank = 1 };
  info.extents[0] = l->most;
  if (!ki_type(d->c->types, var->type)->size_bytes)
    kd_refuse(d, l->source->location,
              "the derivative must keep the values that this loop assigns to `%s`, but it cannot "
              "keep values of type %s",
              var->name, kt_type_text(d->c, var->type));
  kt_var *made = kt_add_variable(d->s, KJ_V_LOCAL, kj_format(d->arena, "tape_%s", var->name),
                                 kt_intern_array(d->s, &info), var->location, KJ_LEVEL_THREAD);
  kd_note_tape(d, l->source, var, made, l->is_short);
  return made;
}

/* ---- trips ---- */

uint32_t kd_find_trips(const kd_derivation *d, const kt_stmt *stmt, bool *is_sure)
{
  enum { MOST_TRIPS = 1 << 20 };
  uint32_t most = stmt->most;
  *is_sure = false;
  uint32_t halvings = most ? 0 : kd_count_halvings(d, stmt);
  if (halvings) {
    *is_sure = true;
    return halvings;
  }
  /* In a `while true` loop, the iteration that leaves the loop counts as well. Such a loop results
   * from type inference if the condition of a `while` loop needs statements. */
  bool is_endless = stmt->kind == KJ_TS_WHILE && kt_is_constant(stmt->value);
  if (most && is_endless) most++;
  if (stmt->kind != KJ_TS_FOR || stmt->first->kind != KJ_T_CONST ||
      stmt->stop->kind != KJ_T_CONST || stmt->step->kind != KJ_T_CONST)
    return most;
  __int128 first = stmt->first->integer, stop = stmt->stop->integer, step = stmt->step->integer;
  __int128 trips = step > 0   ? (stop - first + step - 1) / step
                   : step < 0 ? (first - stop - step - 1) / -step
                              : 0;
  if (trips > MOST_TRIPS) return most;
  *is_sure = trips > 0;
  return trips > 0 ? (uint32_t)trips : 1;
}

/* ---- short loops ---- */

enum { MOST_UNROLLED = 1024 };

static bool count_node(void *data, const kt_expr *e)
{
  (void)e;
  return ++*(uint32_t *)data > MOST_UNROLLED;
}

/* Counts the expressions that the statements evaluate in one execution; the bodies of loops count
 * once for each iteration. */
static uint64_t count_work(const kd_derivation *d, const kt_stmts *stmts)
{
  uint64_t count = 0;
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    uint32_t own = 1;
    bool is_sure = false;
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      kt_any_texpr(kt_stmt_operand(stmt, k), count_node, &own);
    bool is_loop = stmt->kind == KJ_TS_FOR || stmt->kind == KJ_TS_WHILE;
    uint32_t trips = is_loop ? kd_find_trips(d, stmt, &is_sure) : 1;
    uint64_t inner = count_work(d, &stmt->body) + count_work(d, &stmt->otherwise);
    count += own + (is_loop && !is_sure ? MOST_UNROLLED : inner * trips);
    if (count > MOST_UNROLLED) return MOST_UNROLLED + 1;
  }
  return count;
}

/* Decides whether a short loop with a fixed number of iterations is unrolled in both directions.
 * Its tapes then become registers and need no memory. */
static void find_shape(loop *l)
{
  const kt_stmts *body = &l->source->body;
  l->is_fixed = l->is_exact && l->source->kind == KJ_TS_FOR;
  for (size_t i = 0; i < body->count; i++) l->is_fixed &= !kd_is_last_break(body->items[i]);
  bool is_free = l->source->unroll == KJ_UNROLL_NONE || l->source->unroll == KJ_UNROLL_FULL;
  l->is_short = l->is_fixed && is_free && count_work(l->d, body) * l->most <= MOST_UNROLLED;
}

static void unroll(const loop *l, kt_stmt *made)
{
  if (l->is_short) made->unroll = KJ_UNROLL_FULL;
}

/* ---- forward ---- */

static void copy_list(kd_derivation *d, kt_exprs *to, const kt_exprs *from)
{
  *to = (kt_exprs){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(d->arena, to, kd_copy(d, from->items[i]));
}

static kt_stmt *copy_head(kd_derivation *d, const kt_stmt *stmt)
{
  kt_stmt *copy = KJ_NEW(d->arena, kt_stmt);
  *copy = *stmt;
  copy->body = copy->otherwise = (kt_stmts){ 0 };
  kt_expr **places[] = { &copy->value, &copy->array, &copy->first, &copy->stop, &copy->step };
  for (size_t i = 0; i < 5; i++)
    if (*places[i]) *places[i] = kd_copy(d, *places[i]);
  copy_list(d, &copy->indices, &stmt->indices);
  copy_list(d, &copy->extents, &stmt->extents);
  return copy;
}

/* Replaces a variable in the emitted statements by another one, because each copy of a loop has its
 * own loop variable. Returns the previous replacement. */
static kt_var *replace_var(kd_derivation *d, kt_var *var, kt_var *by)
{
  kt_var *before = d->variables[var->index].instead;
  d->variables[var->index].instead = by;
  return before;
}

static kt_var *new_loop_var(kd_derivation *d, const kt_var *var)
{
  return kt_add_variable(d->s, KJ_V_LOOP, var->name, var->type, var->location, KJ_LEVEL_THREAD);
}

static void copy_stmt(kd_derivation *d, const kt_stmt *stmt)
{
  if (kd_is_logged(d, stmt)) {
    kd_copy_logged(d, stmt);
    return;
  }
  const kt_var *root = stmt->kind == KJ_TS_STORE ? kd_root(stmt->array) : NULL;
  bool is_shared = d->adjoint && root && root->kind == KJ_V_SHARED;
  if (is_shared && !kd_is_stored(d, stmt)) return;
  if (kd_find_shared_sum(d, stmt)) {
    kd_copy_shared_sum(d, stmt);
    return;
  }
  bool is_outside = stmt->kind == KJ_TS_STORE && !is_shared && (!root || root->kind != KJ_V_LOCAL);
  bool is_effect = is_outside || stmt->kind == KJ_TS_PRINT || stmt->kind == KJ_TS_FAIL ||
                   (stmt->kind == KJ_TS_EVALUATE && !kd_is_sync(d, stmt));
  if (kd_has_run(d) && is_effect) return;
  kt_stmt *copy = copy_head(d, stmt);
  kt_var *before = NULL;
  if (stmt->kind == KJ_TS_FOR) {
    copy->var = new_loop_var(d, stmt->var);
    before = replace_var(d, stmt->var, copy->var);
  }
  copy->vars = (kt_vars){ 0 };
  for (size_t i = 0; i < stmt->vars.count; i++) {
    KJ_PUSH(d->arena, &copy->vars, new_loop_var(d, stmt->vars.items[i]));
    replace_var(d, stmt->vars.items[i], copy->vars.items[i]);
  }
  kt_emit(d->s, copy);
  kt_stmts *outer = d->s->out;
  d->s->out = &copy->body;
  kd_copy_block(d, &stmt->body);
  d->s->out = &copy->otherwise;
  kd_copy_block(d, &stmt->otherwise);
  d->s->out = outer;
  if (stmt->kind == KJ_TS_FOR) replace_var(d, stmt->var, before);
  for (size_t i = 0; i < stmt->vars.count; i++) replace_var(d, stmt->vars.items[i], NULL);
}

void kd_copy_block(kd_derivation *d, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) copy_stmt(d, stmts->items[i]);
}

static kt_expr *integer(kd_derivation *d, int64_t value)
{
  return kt_new_integer(d->s, KJIT_INDEX, value, d->location);
}

static void keep_state(loop *l, kt_var *loop_var)
{
  kd_derivation *d = l->d;
  for (size_t i = 0; i < l->tapes.count; i++) {
    const tape *t = &l->tapes.items[i];
    kt_exprs at = { 0 };
    KJ_PUSH(d->arena, &at, kd_read(d, l->count));
    bool is_loop_var = loop_var && t->of == l->source->var;
    kd_store(d, kd_read(d, t->array), &at, kd_read(d, is_loop_var ? loop_var : t->of));
  }
}

void kd_fail_if(kd_derivation *d, kt_expr *condition, kj_location location)
{
  kt_stmt *check = kt_new_if(d->c, condition, location);
  kt_stmt *fail = kt_new_tstmt(d->c, KJ_TS_FAIL, location);
  fail->failure = KJ_FAILURE_RAISE;
  fail->message = "a loop has more iterations than its @most allows";
  KJ_PUSH(d->arena, &check->body, fail);
  kt_emit(d->s, check);
}

static void fail_beyond(loop *l)
{
  kd_derivation *d = l->d;
  if (l->is_exact || !l->most) return;
  kd_fail_if(d,
             kt_make_own_binary(d->s, KJIT_OP_GE, kd_read(d, l->count), integer(d, l->most),
                                l->source->location),
             l->source->location);
}

static void emit_forward(loop *l)
{
  kd_derivation *d = l->d;
  kd_assign(d, l->count, integer(d, 0));
  if (l->source->var) {
    l->first = kd_keep(d, kd_copy(d, l->source->first));
    l->step = kd_keep(d, kd_copy(d, l->source->step));
  }
  kt_stmt *made = copy_head(d, l->source);
  kt_var *before = NULL;
  if (l->source->var) {
    made->var = new_loop_var(d, l->source->var);
    before = replace_var(d, l->source->var, made->var);
  }
  unroll(l, made);
  kt_emit(d->s, made);
  kt_stmts *outer = d->s->out;
  d->s->out = &made->body;
  fail_beyond(l);
  keep_state(l, made->var);
  kd_mark_iteration(d, &l->marks, kd_read(d, l->count));
  kd_assign(d, l->count,
            kt_make_own_binary(d->s, KJIT_OP_ADD, kd_read(d, l->count), integer(d, 1),
                               l->source->location));
  kd_copy_block(d, &l->source->body);
  d->s->out = outer;
  if (l->source->var) replace_var(d, l->source->var, before);
  kd_mark_end(d, &l->marks);
}

/* ---- backward ---- */

static void restore_state(loop *l, kt_expr *at, kt_var *loop_var)
{
  kd_derivation *d = l->d;
  for (size_t i = 0; i < l->tapes.count; i++) {
    const tape *t = &l->tapes.items[i];
    kt_exprs indices = { 0 };
    KJ_PUSH(d->arena, &indices, kd_copy(d, at));
    bool is_loop_var = loop_var && t->of == l->source->var;
    kd_assign(d, is_loop_var ? loop_var : t->of, kd_load(d, kd_read(d, t->array), &indices));
  }
}

/* Returns whether the variable is the loop's counter. The counter needs no tape, because it is
 * computed from the iteration number. In unrolled loops, indices that contain the counter then
 * become constants early in the optimizer. Thread-local arrays become registers, and a surrounding
 * loop can be vectorized. */
static bool is_counted(const loop *l, const kt_var *var)
{
  return var == l->source->var && l->source->kind == KJ_TS_FOR;
}

/* Emits loop_var = first + step * at. */
static void count_again(loop *l, const kt_expr *at, kt_var *loop_var)
{
  kd_derivation *d = l->d;
  kj_location location = l->source->location;
  kt_expr *number = kt_convert(d->s, kd_copy(d, at), loop_var->type, location);
  kt_expr *steps = kt_make_own_binary(d->s, KJIT_OP_MUL, number, kd_copy(d, l->step), location);
  kt_expr *value = kt_make_own_binary(d->s, KJIT_OP_ADD, kd_copy(d, l->first), steps, location);
  kd_assign(d, loop_var, kt_convert(d->s, value, loop_var->type, location));
}

/* Returns the number of executed iterations. */
static kt_expr *read_trips(const loop *l)
{
  return l->is_fixed ? integer(l->d, l->most) : kd_read(l->d, l->count);
}

/* Returns the loop that visits the iterations from the last to the first. */
static kt_stmt *new_backward(const loop *l)
{
  kd_derivation *d = l->d;
  kt_stmt *made = kt_new_tstmt(d->c, KJ_TS_FOR, l->source->location);
  made->var = kt_add_variable(d->s, KJ_V_LOOP, "_back", KJIT_INDEX, d->location, KJ_LEVEL_THREAD);
  made->first = integer(d, 0);
  made->stop = read_trips(l);
  made->step = integer(d, 1);
  /* if this loop is differentiated again, the second derivative needs the maximum to save values of
   * the loop */
  if (!l->is_fixed) made->most = l->most;
  unroll(l, made);
  return made;
}

/* Returns the number of the current iteration, which starts at 0. */
static kt_expr *iteration_of(const loop *l, const kt_stmt *made)
{
  kd_derivation *d = l->d;
  kj_location location = l->source->location;
  kt_expr *last = kt_make_own_binary(d->s, KJIT_OP_SUB, read_trips(l), integer(d, 1), location);
  return kd_keep(d, kt_make_own_binary(d->s, KJIT_OP_SUB, last, kd_read(d, made->var), location));
}

static void emit_backward(loop *l)
{
  kd_derivation *d = l->d;
  kt_stmt *made = new_backward(l);
  for (size_t i = 0; i < l->entry.count; i++)
    kd_assign(d, l->entry.items[i].of, kd_read(d, l->entry.items[i].array));
  kd_undo_later(d, &l->marks);
  kt_emit(d->s, made);
  kt_stmts *outer = d->s->out, reverse = { 0 };
  bool was_recomputed = d->is_recomputed;
  kt_var *again = l->source->var
                    ? kd_new_var(d, l->source->var->name, l->source->var->type, l->source->location)
                    : NULL,
         *before = again ? replace_var(d, l->source->var, again) : NULL;
  d->s->out = &made->body;
  kt_expr *at = iteration_of(l, made);
  restore_state(l, at, again);
  if (again && is_counted(l, l->source->var)) count_again(l, at, again);
  kd_undo_iteration(d, &l->marks, l->source, at);
  d->is_recomputed = true;
  kd_begin_rerun(d, l->source);
  kd_reverse_block(d, &l->source->body, &reverse);
  for (size_t i = 0; i < reverse.count; i++) kt_emit(d->s, reverse.items[i]);
  kd_end_rerun(d, &made->body);
  kd_undo_again(d, &l->marks, l->source, was_recomputed);
  d->is_recomputed = was_recomputed;
  d->s->out = outer;
  if (again) replace_var(d, l->source->var, before);
}

/* ---- loops that save their values ---- */

static void note_assigned_by(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_ASSIGN) ((bool *)data)[stmt->var->index] = true;
}

static void note_read(void *data, kt_expr **expr)
{
  if ((*expr)->kind == KJ_T_VAR) ((bool *)data)[(*expr)->var->index] = true;
}

static bool is_inner_loop(void *data, const kt_stmt *stmt)
{
  return kd_is_reversed_loop(data, stmt);
}

static bool has_inner_loop(kd_derivation *d, const kt_stmt *loop)
{
  for (size_t i = 0; i < loop->body.count; i++)
    if (kt_any_in_tstmt(loop->body.items[i], is_inner_loop, NULL, d)) return true;
  return false;
}

/* Finds the variables that the body assigns and that its reverse statements read, and gives each of
 * them a tape. */
static void list_kept(loop *l, kt_stmts *body, kt_stmts *reverse)
{
  kd_derivation *d = l->d;
  const kt_instance *made = d->record->instance;
  size_t locals = made->locals.count, count = made->params.count + locals;
  bool *assigned = KJ_NEW_ARRAY(d->arena, bool, count + 1),
       *read = KJ_NEW_ARRAY(d->arena, bool, count + 1);
  kt_walk_tstmts(body, note_assigned_by, NULL, assigned);
  kt_walk_tstmts(reverse, NULL, note_read, read);
  for (size_t i = 0; i < locals; i++) {
    kt_var *var = made->locals.items[i];
    if (!assigned[var->index] || !read[var->index]) continue;
    if (var->kind == KJ_V_LET) var->kind = KJ_V_VAR;
    KJ_PUSH(d->arena, &l->tapes, ((tape){ .of = var, .array = add_tape(l, var) }));
  }
}

/* Emits a loop with `@keep`. Its body runs only once, and tapes hold the values that the reverse
 * statements read. */
static void emit_kept(loop *l, kt_stmts *own)
{
  kd_derivation *d = l->d;
  const kt_stmts *body = &l->source->body;
  kj_location location = l->source->location;
  kt_stmts *outer = d->s->out, reverse = { 0 };
  kt_var *of_source = l->source->var,
         *kept = of_source ? kd_new_var(d, of_source->name, of_source->type, location) : NULL,
         *before = NULL;
  if (has_inner_loop(d, l->source))
    kd_refuse(d, location,
              "`@keep` is not supported for a loop with an inner loop that is differentiated, too");
  kd_assign(d, l->count, integer(d, 0));
  kt_stmt *made = copy_head(d, l->source);
  if (kept) {
    made->var = new_loop_var(d, of_source);
    before = replace_var(d, of_source, kept);
  }
  unroll(l, made);
  kt_emit(d->s, made);
  d->s->out = &made->body;
  fail_beyond(l);
  if (kept) kd_assign(d, kept, kd_read(d, made->var));
  kd_reverse_block(d, body, &reverse);
  list_kept(l, &made->body, &reverse);
  keep_state(l, NULL);
  kd_assign(d, l->count,
            kt_make_own_binary(d->s, KJIT_OP_ADD, kd_read(d, l->count), integer(d, 1), location));
  if (body->count && kd_is_last_break(body->items[body->count - 1]))
    copy_stmt(d, body->items[body->count - 1]);
  d->s->out = own;
  kt_stmt *back = new_backward(l);
  kt_emit(d->s, back);
  d->s->out = &back->body;
  restore_state(l, iteration_of(l, back), NULL);
  for (size_t i = 0; i < reverse.count; i++) kt_emit(d->s, reverse.items[i]);
  d->s->out = outer;
  if (kept) replace_var(d, of_source, before);
}

/* ---- reversing a loop ---- */

static bool has_effect(void *data, const kt_expr *e)
{
  const loop *l = data;
  kt_effects found = { 0 };
  if (e->kind == KJ_T_BUILTIN) return !(e->builtin->flags & (KJ_PURE | KJ_READS));
  if (e->kind != KJ_T_CALL) return false;
  kt_add_effects(l->d->c, e, &found);
  return found.writes || found.acts;
}

/* Rejects an expression with a side effect, because the effect would happen again when the body
 * runs again. */
static void check_effect(void *data, kt_stmt *stmt)
{
  loop *l = data;
  /* an atomic or barrier statement does not run again, but a called func may store to an array */
  bool is_builtin = stmt->kind == KJ_TS_EVALUATE && stmt->value->kind == KJ_T_BUILTIN;
  if (is_builtin) return;
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++) {
    const kt_expr *operand = kt_stmt_operand(stmt, i);
    if (kt_any_texpr(operand, has_effect, l))
      kd_refuse(l->d, operand->location,
                "the body of this loop runs again for the reverse derivative, but this call has or "
                "may have a side effect");
  }
}

static bool assigns_active(void *data, const kt_stmt *stmt)
{
  const kd_derivation *d = data;
  const kt_var *root = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                       : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                   : NULL;
  return root && kd_is_active(d, root);
}

static void list_state(loop *l)
{
  kd_derivation *d = l->d;
  const kt_vars *locals = &d->record->instance->locals;
  size_t count = locals->count;
  for (size_t i = 0; i < count; i++) {
    kt_var *var = locals->items[i];
    bool is_value = var->kind == KJ_V_VAR || var->kind == KJ_V_LOOP;
    if (var->index >= d->count || !is_value || kt_is_array(d->c, var->type)) continue;
    if (is_counted(l, var)) continue;
    if (l->assigns[var->index] && l->reads[var->index]) {
      if (kd_is_sum(d, l->source, var)) continue;
      if (!l->most)
        kd_refuse(
          d, l->source->location,
          "the derivative must keep the value of `%s` in each iteration, but the loop's trip count "
          "is not known at compile time: " KJ_PHRASE(LOOP_BOUND, "write `@most(n)` after its head"),
          var->name);
      KJ_PUSH(d->arena, &l->tapes, ((tape){ .of = var, .array = add_tape(l, var) }));
    } else if (l->reads[var->index] && var->kind == KJ_V_VAR && !l->assigns[var->index]) {
      kt_var *kept = kd_new_var(d, var->name, var->type, var->location);
      KJ_PUSH(d->arena, &l->entry, ((tape){ .of = var, .array = kept }));
      kd_assign(d, kept, kd_read(d, var));
    }
  }
}

bool kd_assigns_active(kd_derivation *d, const kt_stmt *stmt)
{
  return kt_any_in_tstmt(stmt, assigns_active, NULL, d);
}

bool kd_is_reversed_loop(kd_derivation *d, const kt_stmt *stmt)
{
  bool is_loop = stmt->kind == KJ_TS_FOR || stmt->kind == KJ_TS_WHILE;
  return is_loop && kd_assigns_active(d, stmt);
}

static void put_in_front(kd_derivation *d, kt_stmts *own, kt_stmts *reverse)
{
  for (size_t i = 0; i < reverse->count; i++) KJ_PUSH(d->arena, own, reverse->items[i]);
  *reverse = *own;
}

void kd_reverse_loop(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse)
{
  loop l = { .d = d, .source = stmt };
  if (!kd_is_reversed_loop(d, stmt)) {
    copy_stmt(d, stmt);
    return;
  }
  l.most = kd_find_trips(d, stmt, &l.is_exact);
  find_shape(&l);
  l.count = kd_new_var(d, "_trips", KJIT_INDEX, stmt->location);
  if (stmt->keeps_values && !l.most)
    kd_refuse(d, stmt->location,
              "the derivative must keep this loop's values in each iteration, but the loop's trip "
              "count is not known at compile time: " KJ_PHRASE(LOOP_BOUND,
                                                               "write `@most(n)` after its head"));
  if (stmt->keeps_values || (l.most && !has_inner_loop(d, stmt) && kd_must_keep(d, stmt))) {
    kt_stmts kept = { 0 };
    emit_kept(&l, &kept);
    put_in_front(d, &kept, reverse);
    return;
  }
  l.reads = KJ_NEW_ARRAY(d->arena, bool, d->count + 1);
  l.assigns = KJ_NEW_ARRAY(d->arena, bool, d->count + 1);
  kt_stmt *source = (kt_stmt *)stmt;
  kt_walk_tstmts(&(kt_stmts){ .items = &source, .count = 1 }, note_assigned, NULL, &l);
  find_reads(&l, &stmt->body, KJ_NEW_ARRAY(d->arena, bool, d->count + 1));
  kt_walk_tstmts(&(kt_stmts){ .items = &source, .count = 1 }, check_effect, NULL, &l);
  list_state(&l);
  kd_begin_marks(d, stmt, l.most, &l.marks);
  emit_forward(&l);
  kt_stmts *outer = d->s->out, own = { 0 };
  d->s->out = &own;
  emit_backward(&l);
  d->s->out = outer;
  put_in_front(d, &own, reverse);
}

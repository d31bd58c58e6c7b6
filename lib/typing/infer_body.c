/* Type inference of the body of one instance. Each round infers the whole body again with the
 * guesses of the previous round, until no guess changes (inference.h). */
#include <string.h>

#include "typing/infer.h"

/* ---- parameters ---- */

static void bind_weak(kt_scope *s, const ki_decl *decl, const kt_bound *bound)
{
  kt_var *var;
  kt_expr *value;
  if (s->instance->is_kernel && bound->wide == KJIT_ANY) {
    var = kt_add_variable(s, KJ_V_PARAM, decl->name, bound->type, decl->location, KJ_LEVEL_GRID);
    value = kt_make_var(s, var, decl->location);
  } else {
    var = kt_add_variable(s, KJ_V_PARAM, decl->name, kt_carrier_of(bound->type, bound->wide),
                          decl->location, KJ_LEVEL_GRID);
    value = kt_make_weak(s, kt_make_var(s, var, decl->location), bound->type, bound->wide);
  }
  var->argument = decl->index;
  kt_bind_value(s, decl, value);
}

static void bind_parameter(kt_scope *s, const ki_decl *decl, const kt_bound *bound)
{
  kt_var *var;
  kt_expr *value;
  switch (KJ_AMONG(bound->kind)) {
  case KJ_BOUND_CALLEE:
    s->meanings[decl->index] =
      (kt_meaning){ .kind = KJ_MEANS_CALLEE, .callee = kt_receive_callee(s, &bound->callee, decl) };
    return;
  case KJ_BOUND_CONST:
    value = kt_new_texpr(s->c, KJ_T_CONST, bound->type, decl->location);
    value->integer = bound->integer;
    kt_bind_value(s, decl, value);
    return;
  case KJ_BOUND_WEAK: bind_weak(s, decl, bound); return;
  case KJ_BOUND_TYPE:
    s->meanings[decl->index] = (kt_meaning){ .kind = KJ_MEANS_TYPE, .type = bound->type };
    return;
  default:
    KJ_ASSERT(bound->kind == KJ_BOUND_VALUE);
    var = kt_add_variable(s, KJ_V_PARAM, decl->name, bound->type, decl->location, KJ_LEVEL_GRID);
    var->argument = decl->index;
    var->start_alignment = bound->start;
    if (bound->fields) kt_receive_fields(s, decl, bound->fields, var);
    else kt_bind_variable(s, decl, var);
  }
}

/* Converts a scalar parameter of a kernel to its annotation's type at the body's start. The
 * application can pass a number of another type. */
static void convert_entry(kt_scope *s, const ki_decl *decl, size_t index)
{
  kjit_type annotation = kt_infer_annotation(s->inference, s->function, s->record->bounds, index);
  const kt_meaning *meaning = &s->meanings[decl->index];
  if (annotation == KJIT_ANY || meaning->kind == KJ_MEANS_CALLEE ||
      meaning->kind == KJ_MEANS_TYPE || !ki_is_scalar(annotation))
    return;
  kt_expr *value =
    meaning->kind == KJ_MEANS_VALUE ? meaning->value : kt_make_var(s, meaning->var, decl->location);
  if (value->type == annotation || kt_is_constant(value)) return;
  kt_var *var = kt_add_variable(s, KJ_V_LET, decl->name, annotation, decl->location, KJ_LEVEL_GRID);
  kt_bind_variable(s, decl, var);
  kt_emit_assign(s, var, kt_convert(s, value, annotation, decl->location), decl->location);
}

static void bind_parameters(kt_scope *s)
{
  const ki_decls *params = &s->function->params;
  for (size_t i = 0; i < params->count; i++)
    bind_parameter(s, params->items[i], &s->record->bounds[i]);
  /* code outside of the module calls an instance without a caller; such a call can pass other types
   * than the annotations */
  for (size_t i = 0; i < params->count && !s->instance->caller; i++)
    convert_entry(s, params->items[i], i);
}

/* ---- bodies ---- */

static bool never_ends(const kt_stmts *stmts);

static bool has_break(const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (stmt->kind == KJ_TS_BREAK) return true;
    if (stmt->kind == KJ_TS_IF && (has_break(&stmt->body) || has_break(&stmt->otherwise)))
      return true;
  }
  return false;
}

static bool leaves(const kt_stmt *stmt)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_RETURN:
  case KJ_TS_FAIL: return true;
  case KJ_TS_IF: return never_ends(&stmt->body) && never_ends(&stmt->otherwise);
  case KJ_TS_WHILE: return stmt->value->kind == KJ_T_CONST && !has_break(&stmt->body);
  default: return false;
  }
}

/* Returns whether control flow never reaches the end of the list. */
static bool never_ends(const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (leaves(stmts->items[i])) return true;
  return false;
}

static void check_end(kt_scope *s)
{
  kt_inferred *record = s->record;
  bool needs_value =
    s->result_annotation != KJIT_ANY || (record->result != KJIT_ANY && record->result != KJIT_VOID);
  if (s->instance->is_kernel || !needs_value || never_ends(&s->instance->body)) return;
  kt_fail(s->c, s->function->decl->location, KJIT_ERROR_TYPE,
          "`%s` returns a value on some paths but reaches its end without `return` on others",
          s->function->decl->name);
}

/* Determines the final type of a variable to which only literals have been assigned. */
static void settle_guess(void *data, const ki_decl *decl, kt_guess *guess)
{
  kt_scope *s = data;
  (void)decl;
  if (!ki_is_weak(guess->type)) return;
  guess->type = guess->type == KJ_WEAK_INT ? KJIT_I32 : KJIT_F64;
  guess->is_default = true;
  s->is_changed = true;
}

static void note_double_variable(void *data, const ki_decl *decl, kt_guess *guess)
{
  if (guess->is_default && guess->type == KJIT_F64) kt_note_double(data, decl->location);
}

static void forget_read(void *data, const ki_decl *decl, kt_guess *guess)
{
  (void)data, (void)decl;
  guess->was_read = false;
}

/* Returns the number of meanings to allocate: one for each declaration, and another one for each
 * parameter. A parameter that is a field of an array of structs needs a second meaning, for the
 * array. */
static uint32_t count_meanings(const ki_function *function)
{
  return function->local_count + 1 + (uint32_t)function->params.count;
}

static void start_round(kt_scope *s)
{
  kt_instance *instance = s->instance;
  uint32_t count = count_meanings(s->function);
  memset(s->meanings, 0, count * sizeof *s->meanings);
  kt_each_guess(s, forget_read, NULL);
  instance->params = (kt_vars){ 0 };
  instance->locals = (kt_vars){ 0 };
  instance->body = (kt_stmts){ 0 };
  instance->has_barrier = instance->has_warp = instance->uses_positions = false;
  s->record->messages.count = 0;
  s->record->callees.count = 0;
  s->record->has_grid_range = s->record->has_block_range = false;
  s->levels.count = 0;
  s->constant_uses.count = 0;
  s->out = &instance->body;
  s->is_changed = false;
  s->waits_for = NULL;
  s->on_wait = NULL;
  s->level = s->left_level = s->skipped_level = KJ_LEVEL_GRID;
  s->temporary_count = 0;
  s->local_bytes = s->shared_bytes = 0;
}

/* Infers the body once. A variable to which only literals have been assigned stays untyped as long
 * as guesses change, because a later round can assign a typed value to it. If is_late is set, the
 * variable gets its final type in this round anyway. */
static void infer_round(kt_scope *s, bool is_late)
{
  kt_drop_outdated(s);
  start_round(s);
  bind_parameters(s);
  if (s->instance->is_kernel) kt_infer_block_shape(s);
  kt_infer_block(s, &s->function->body, &s->instance->body);
  if ((!s->is_changed && !s->waits_for) || is_late) kt_each_guess(s, settle_guess, s);
}

/* Removes the messages and calls that a round has recorded before an error ended it. */
static void forget_round(kt_scope *s, size_t messages, size_t records, uint32_t depth)
{
  kj_drop_diagnostics(s->c->diagnostics, messages);
  kt_abandon_calls(s, records, depth);
  s->is_quiet = s->is_range_body = false;
  s->range_count = 0;
  kt_leave_copies(s);
}

/* Returns whether another round must follow, because a guess has changed or a statement has been
 * skipped. */
static bool is_open_round(const kt_scope *s)
{
  return s->is_changed || (s->waits_for && !s->looks_inside);
}

/* Runs one round and handles its errors. If a guess has changed or a statement has been skipped, an
 * error of this round is discarded, because the next round may not have it. For example, a literal
 * that does not fit a type may fit the type in the next round. */
static void try_round(kt_scope *s, bool is_late)
{
  kt_compilation *c = s->c;
  const size_t messages = c->diagnostics->count, records = s->inference->records.count;
  const uint32_t depth = s->inference->depth;
  jmp_buf *const outer = c->on_failure;
  jmp_buf here;
  int jump = setjmp(here);
  if (jump == 0) {
    c->on_failure = &here;
    infer_round(s, is_late);
  }
  c->on_failure = outer;
  if (jump == 0) return;
  if (jump != KJ_JUMP_ERROR || !is_open_round(s)) longjmp(*outer, jump);
  forget_round(s, messages, records, depth);
}

/* Determines the result type. If every return statement returns a literal, the result stays
 * weak. */
static void finish_result(kt_scope *s)
{
  kt_inferred *record = s->record;
  kt_instance *instance = record->instance;
  if (record->result == KJIT_ANY) record->result = KJIT_VOID;
  instance->result = kt_concrete_result(record->result);
  KJ_ASSERT(record->taken_result == KJIT_ANY || record->taken_result == record->result);
  bool is_constant = instance->body.count == 1 && instance->body.items[0]->kind == KJ_TS_RETURN &&
                     instance->body.items[0]->value &&
                     instance->body.items[0]->value->kind == KJ_T_CONST;
  if (!is_constant) return;
  record->constant_result = kt_copy_texpr(s, instance->body.items[0]->value);
  record->constant_result->type = record->result;
}

static bool returns_value(const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_RETURN && stmt->value) return true;
    if (returns_value(&stmt->body) || returns_value(&stmt->otherwise)) return true;
  }
  return false;
}

/* Determines the result type from the declaration if that is possible: the declaration has a result
 * type, or the body returns no value. */
static void fix_result(kt_scope *s)
{
  const ki_function *function = s->function;
  kt_inferred *record = s->record;
  if (function->result) {
    start_round(s);
    bind_parameters(s);
    s->result_annotation = kt_infer_type(s, function->result);
  }
  record->has_fixed_result = function->result || !returns_value(&function->body);
  if (record->has_fixed_result)
    record->instance->result = function->result ? s->result_annotation : KJIT_VOID;
}

/* Completes an extern func, which has no body: only its parameters and its result are inferred. */
static void finish_extern(kt_scope *s)
{
  start_round(s);
  bind_parameters(s);
  if (s->function->result)
    kt_check_c_type(s, s->result_annotation, "the result", s->function->result->location);
  s->record->result = s->instance->result;
  s->record->result_level = KJ_LEVEL_THREAD;
  s->record->is_done = true;
}

/* Runs rounds until nothing changes. Each round raises a guess or infers statements that were
 * skipped before, so the maximum number of rounds grows with the number of variables. */
static void infer_rounds(kt_scope *s)
{
  enum { ROUND_LIMIT = 64, ROUNDS_OF_VARIABLE = 8 };
  size_t limit = ROUND_LIMIT, rounds = 0;
  for (size_t i = 0; i < s->function->locals.count; i++)
    if (s->function->locals.items[i]->is_open) limit += ROUNDS_OF_VARIABLE;
  s->may_wait = limit > ROUND_LIMIT || !s->record->has_fixed_result;
  do {
    if (++rounds > limit)
      kt_fail(s->c, s->function->decl->location, KJIT_ERROR_TYPE,
              "type inference of `%s` does not converge", s->function->decl->name);
    try_round(s, rounds > limit / 2);
    if (s->is_changed || !s->waits_for) continue;
    const char *name = s->waits_for->name;
    if (s->looks_inside && s->waits_for->kind == KJ_DECL_FUNCTION)
      kt_fail_runaway(s, s->waits_for, s->waits_at);
    if (s->looks_inside)
      kt_fail(s->c, s->waits_at, KJIT_ERROR_TYPE,
              "`%s` is read here, but no assignment gives it a type; " KJ_PHRASE(
                FIRST_VALUE,
                "declare it with a type, such as `var " KJ_PHRASE_ARGUMENT("%s") ": f32`"),
              name, name);
    s->looks_inside = true;
  } while (s->is_changed || s->waits_for);
}

void kt_infer_body(kt_inference *inference, kt_inferred *record)
{
  kt_scope scope, *s = &scope;
  kt_init_scope(s, inference);
  s->record = record;
  record->scope = s;
  s->instance = record->instance;
  s->function = record->instance->function;
  s->wraps = ki_wraps_indices(&s->function->attributes);
  s->has_numba_types = ki_get_attribute(&s->function->attributes, KJ_ATTRIBUTE_NUMBA);
  s->meanings = KJ_NEW_ARRAY(s->arena, kt_meaning, count_meanings(s->function));
  s->guesses = KJ_NEW_ARRAY(s->arena, kt_guess, count_meanings(s->function));
  s->copy = &(kt_copy){ .count = s->function->local_count };
  const kt_instance *outer = s->c->chain;
  s->c->chain = s->instance;
  fix_result(s);
  if (s->function->is_extern) {
    finish_extern(s);
    s->c->chain = outer;
    return;
  }
  infer_rounds(s);
  kt_each_guess(s, note_double_variable, s);
  check_end(s);
  if (s->instance->is_kernel) kt_infer_launch(s);
  finish_result(s);
  s->c->chain = outer;
  record->is_done = record->instance->is_inferred = true;
  record->scope = NULL;
}

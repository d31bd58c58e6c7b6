/* Type inference of temporaries, `let` and `var`. A value that is needed more than once is kept in
 * a temporary. A `let` has its value's type. A `var` without an annotation has the type of its
 * first value. If this first value is a literal, an array, or a number in a function with Numba's
 * types, the `var` has the common type of all values that are assigned to it. */
#include "typing/infer.h"

/* ---- temporaries ---- */

void kt_emit(kt_scope *s, kt_stmt *stmt) { KJ_PUSH(s->arena, s->out, stmt); }

kt_stmt *kt_new_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location)
{
  kt_stmt *stmt = kt_new_tstmt(s->c, KJ_TS_ASSIGN, location);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

void kt_emit_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location)
{
  kt_emit(s, kt_new_assign(s, var, value, location));
}

static void insert(kt_scope *s, kt_stmt *stmt, size_t at)
{
  kt_emit(s, stmt);
  for (size_t i = s->out->count - 1; i > at; i--) s->out->items[i] = s->out->items[i - 1];
  s->out->items[at] = stmt;
}

/* Returns whether evaluating the value costs nothing and gives the same result everywhere in the
 * function. */
bool kt_is_stable(const kt_expr *value)
{
  switch (KJ_AMONG(value->kind)) {
  case KJ_T_CONST: return true;
  case KJ_T_VAR: return value->var->kind != KJ_V_VAR;
  case KJ_T_EXTENT:
  case KJ_T_STRIDE:
  case KJ_T_ITEM: return kt_is_stable(value->x);
  case KJ_T_TUPLE:
    for (size_t i = 0; i < value->args.count; i++)
      if (!kt_is_stable(value->args.items[i])) return false;
    return true;
  case KJ_T_BUILTIN:
    return (value->builtin->flags & KJ_PURE) && value->args.count == 0 && !ki_is_weak(value->type);
  default: return false;
  }
}

/* The functions that store a value in a temporary insert the statements before statement *at, and
 * increment *at by the number of inserted statements. */
static kt_expr *keep(kt_scope *s, kt_expr *value, const char *name, size_t *at);

static kt_expr *keep_tuple(kt_scope *s, kt_expr *tuple, const char *name, size_t *at)
{
  kt_exprs items = { 0 };
  for (size_t i = 0; i < tuple->args.count; i++)
    KJ_PUSH(s->arena, &items, keep(s, tuple->args.items[i], name, at));
  return kt_make_tuple(s, &items, tuple->location);
}

/* Stores a weak value in a variable that has the widest type of its kind. The result is still
 * weak. */
static kt_expr *keep_wide(kt_scope *s, kt_expr *value, const char *name, size_t *at)
{
  if (value->kind == KJ_T_CONVERT && kt_is_stable(value->x)) return value;
  kjit_type wide = kt_wide_type(value);
  kt_expr *carrier = kt_convert(s, value, kt_carrier_of(value->type, wide), value->location);
  return kt_make_weak(s, keep(s, carrier, name, at), value->type, wide);
}

enum { WEAK_TREE_LIMIT = 64 };

static bool loads_or_calls(void *data, const kt_expr *e)
{
  (void)data;
  return e->kind == KJ_T_LOAD || e->kind == KJ_T_CALL || kt_has_effect(e);
}

/* Makes a weak expression that can be copied safely: stores its typed operands and its weak
 * variables in temporaries. A large weak operand is stored as a whole in one temporary, because
 * copies of copies would grow. An operand that executes loads or calls only under a condition is
 * stored as a whole, too. */
static kt_expr *freeze(kt_scope *s, kt_expr *e, const char *name, size_t *at)
{
  if (!ki_is_weak(e->type)) return keep(s, e, name, at);
  if (kt_is_stable(e)) return e;
  bool is_lazy = e->kind == KJ_T_COND && (kt_any_texpr(e->y, loads_or_calls, NULL) ||
                                          kt_any_texpr(e->z, loads_or_calls, NULL));
  if (e->kind == KJ_T_VAR || is_lazy || kt_count_nodes(e, WEAK_TREE_LIMIT) >= WEAK_TREE_LIMIT)
    return keep_wide(s, e, name, at);
  for (size_t i = e->kind == KJ_T_LOAD; i < kt_operand_count(e); i++) {
    kt_expr **operand = kt_operand_place(e, i);
    if (*operand) *operand = freeze(s, *operand, name, at);
  }
  return e;
}

/* Keeps a weak expression as a tree. Each use gets a copy and determines the copy's type. The
 * expression's checks are executed only once, here. */
static kt_expr *keep_weak(kt_scope *s, kt_expr *value, const char *name, size_t *at)
{
  kt_expr *tree = freeze(s, value, name, at);
  if (!kt_can_drop(s->c, tree)) keep_wide(s, kt_copy_texpr(s, tree), NULL, at);
  return tree;
}

static kt_var *add_let(kt_scope *s, const char *name, const kt_expr *value, kj_location location)
{
  kt_var *var = kt_add_variable(s, KJ_V_LET, name, value->type, location, kt_level_of(s, value));
  if (kt_is_array(s->c, value->type)) var->start_alignment = kt_find_start(s, value);
  return var;
}

static kt_expr *keep(kt_scope *s, kt_expr *value, const char *name, size_t *at)
{
  if (kt_is_stable(value)) return value;
  if (value->kind == KJ_T_TUPLE && kt_is_tuple(s->c, value->type))
    return keep_tuple(s, value, name, at);
  if (ki_is_weak(value->type)) return keep_weak(s, value, name, at);
  if (!name) name = kj_format(s->arena, "_%u", s->temporary_count++);
  kt_var *var = add_let(s, name, value, value->location);
  insert(s, kt_new_assign(s, var, value, value->location), (*at)++);
  return kt_make_var(s, var, value->location);
}

static kt_expr *keep_as(kt_scope *s, kt_expr *value, const char *name)
{
  size_t at = s->out->count;
  return keep(s, value, name, &at);
}

kt_expr *kt_keep_value(kt_scope *s, kt_expr *value) { return keep_as(s, value, NULL); }

kt_expr *kt_keep_at(kt_scope *s, kt_expr *value, size_t *at)
{
  KJ_ASSERT(*at <= s->out->count);
  return keep(s, value, NULL, at);
}

void kt_drop_value(kt_scope *s, kt_expr *value)
{
  if (!kt_can_drop(s->c, value)) kt_keep_value(s, value);
}

/* ---- let and var ---- */

static void bind_let(kt_scope *s, const ki_decl *decl, kt_expr *value)
{
  if (ki_is_weak(value->type)) {
    kt_bind_value(s, decl, keep_as(s, value, decl->name));
    return;
  }
  bool is_value = value->kind == KJ_T_CONST || kt_weak_constant(s, value);
  if (is_value || (value->kind == KJ_T_TUPLE && kt_is_tuple(s->c, value->type))) {
    kt_bind_value(s, decl, is_value ? value : keep_as(s, value, decl->name));
    return;
  }
  kt_var *var = add_let(s, decl->name, value, decl->location);
  kt_bind_variable(s, decl, var);
  kt_emit_assign(s, var, value, decl->location);
}

static void raise_level(kt_scope *s, const ki_decl *decl, kt_var *var, const kt_expr *value)
{
  kt_guess *guess = &s->guesses[decl->index];
  kt_level level = kt_higher_level(s->level, kt_level_of(s, value));
  if (level <= guess->level) return;
  if (guess->was_read) s->is_changed = true;
  guess->level = level;
  s->levels.items[var->index] = level;
}

/* Binds a var whose type depends on its assignments. annotation: the type that each assigned value
 * must fit. */
static void bind_joined(kt_scope *s, const ki_decl *decl, kt_var *var, kjit_type annotation)
{
  kt_bind_variable(s, decl, var);
  s->meanings[decl->index].annotation = annotation;
}

/* Converts an assigned value to its var's type. This happens only in the last round, because before
 * it, further assignments can still change the type. */
static kt_expr *give_joined_type(kt_scope *s, kt_expr *value, kjit_type type)
{
  return s->is_changed || ki_is_weak(type) ? value : kt_give_type(s, value, type);
}

static void bind_var(kt_scope *s, const ki_decl *decl, kt_expr *value, kjit_type annotation)
{
  kt_guess *guess = &s->guesses[decl->index];
  bool is_number = ki_is_scalar(value->type) && annotation == KJIT_ANY;
  bool is_joined =
    ki_is_weak(value->type) || kt_is_array(s->c, value->type) || (s->has_numba_types && is_number);
  if (is_joined) {
    s->meanings[decl->index].annotation = annotation;
    value = kt_raise_guess(s, decl, value);
  } else value = kt_make_concrete(s, value);
  kjit_type type = is_joined ? guess->type : value->type;
  kt_var *var = kt_add_variable(s, KJ_V_VAR, decl->name, type, decl->location, guess->level);
  raise_level(s, decl, var, value);
  bind_joined(s, decl, var, is_joined ? annotation : KJIT_ANY);
  kt_emit_assign(s, var, is_joined ? give_joined_type(s, value, type) : value, decl->location);
}

void kt_assign_variable(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location)
{
  const ki_decl *decl = place->decl;
  kt_var *var = place->var, *is_set = s->meanings[decl->index].is_set;
  bool is_joined = s->guesses[decl->index].type != KJIT_ANY || var->type == KJIT_ANY;
  raise_level(s, decl, var, value);
  if (is_joined) {
    value = kt_raise_guess(s, decl, value);
    /* this round will be repeated; its later statements must already see the type, not a literal */
    if (s->is_changed) var->type = s->guesses[decl->index].type;
    value = give_joined_type(s, value, var->type);
  } else {
    value =
      kt_fit_annotation(s, value, var->type, kj_format(s->arena, "`%s`", decl->name), location);
  }
  kt_emit_assign(s, var, value, location);
  if (is_set) kt_emit_assign(s, is_set, kt_new_integer(s, KJIT_BOOL, 1, location), location);
}

/* If the check for uninitialized memory is enabled, adds a variable that records whether the thread
 * has assigned the var. */
static void watch(kt_scope *s, const ki_decl *decl)
{
  if (!(s->c->request->checks & KJIT_CHECK_UNINITIALIZED)) return;
  kt_var *is_set = kt_add_variable(s, KJ_V_VAR, kj_format(s->arena, "%s is set", decl->name),
                                   KJIT_BOOL, decl->location, KJ_LEVEL_THREAD);
  kt_emit_assign(s, is_set, kt_new_integer(s, KJIT_BOOL, 0, decl->location), decl->location);
  s->meanings[decl->index].is_set = is_set;
}

void kt_declare_open(kt_scope *s, const ki_decl *decl)
{
  kt_guess *guess = &s->guesses[decl->index];
  kjit_type annotation = decl->type_expr ? kt_infer_type(s, decl->type_expr) : KJIT_ANY;
  bool is_joined = annotation == KJIT_ANY || kt_holds_array(s->c, annotation);
  kjit_type type = is_joined ? guess->type : annotation;
  if (type == KJIT_ANY) {
    s->meanings[decl->index] = (kt_meaning){ .kind = KJ_MEANS_UNTYPED, .annotation = annotation };
    return;
  }
  kt_var *var = kt_add_variable(s, KJ_V_VAR, decl->name, type, decl->location, guess->level);
  bind_joined(s, decl, var, is_joined ? annotation : KJIT_ANY);
  if (ki_is_weak(type)) return; /* another round follows */
  kt_expr *unset = kt_make_unset(s, type, decl->location);
  raise_level(s, decl, var, unset);
  kt_emit_assign(s, var, unset, decl->location);
  watch(s, decl);
}

void kt_start_untyped(kt_scope *s, const ki_decl *decl)
{
  kjit_type annotation = s->meanings[decl->index].annotation;
  kt_level level = s->guesses[decl->index].level;
  bind_joined(s, decl, kt_add_variable(s, KJ_V_VAR, decl->name, KJIT_ANY, decl->location, level),
              annotation);
}

void kt_declare(kt_scope *s, const ki_decl *decl, kt_expr *value)
{
  kjit_type annotation = KJIT_ANY;
  if (decl->type_expr) {
    annotation = kt_infer_type(s, decl->type_expr);
    value = kt_fit_annotation(s, value, annotation, kj_format(s->arena, "`%s`", decl->name),
                              value->location);
  }
  if (decl->kind == KJ_DECL_VAR) bind_var(s, decl, value, annotation);
  else bind_let(s, decl, value);
}

/* ---- levels: the scopes in which values are the same ---- */

static kt_level level_of_builtin(const ki_builtin *builtin)
{
  if (builtin->flags & (KJ_THREAD | KJ_WARP)) return KJ_LEVEL_THREAD;
  static const ki_builtin_id of_block[] = { KJ_BUILTIN_BLOCK_IDX, KJ_BUILTIN_CLUSTER_IDX,
                                            KJ_BUILTIN_CLUSTER_BLOCK_IDX, KJ_BUILTIN_CLUSTER_RANK };
  for (size_t i = 0; i < sizeof of_block / sizeof *of_block; i++)
    if (of_block[i] == builtin->id) return KJ_LEVEL_BLOCK;
  return builtin->flags & KJ_BARRIER ? KJ_LEVEL_BLOCK : KJ_LEVEL_GRID;
}

static kt_level level_of_load(const kt_scope *s, const kt_expr *expr)
{
  ki_space space = ki_type(s->c->types, expr->x->type)->space;
  return space == KJ_SPACE_LOCAL    ? KJ_LEVEL_THREAD
         : space == KJ_SPACE_SHARED ? KJ_LEVEL_BLOCK
                                    : KJ_LEVEL_GRID;
}

/* Returns a call's level. If the function is still being inferred, its result is assumed to differ
 * between threads. */
static kt_level level_of_call(const kt_scope *s, const kt_expr *expr)
{
  const kt_inferred *record = s->inference->records.items[expr->instance->id];
  return record->is_done ? record->result_level : KJ_LEVEL_THREAD;
}

/* Returns an expression's level. A load is assumed to return the same value in all threads if its
 * index is the same in all of them. Otherwise the program would have a data race. */
kt_level kt_level_of(const kt_scope *s, const kt_expr *expr)
{
  if (!expr) return KJ_LEVEL_GRID;
  kt_level level = KJ_LEVEL_GRID;
  switch (kt_source_of(expr)) {
  case KJ_FROM_OPERANDS: break;
  case KJ_FROM_VARIABLE:
    return expr->var->index < s->levels.count ? s->levels.items[expr->var->index] : KJ_LEVEL_GRID;
  case KJ_FROM_MEMORY: level = level_of_load(s, expr); break;
  case KJ_FROM_BUILTIN:
    level = level_of_builtin(expr->builtin);
    /* a vote at a barrier returns the same result to all threads in the block */
    if (expr->builtin->flags & KJ_BARRIER) return level;
    break;
  case KJ_FROM_CALL: level = level_of_call(s, expr); break;
  }
  for (size_t i = 0; i < kt_operand_count(expr); i++)
    level = kt_higher_level(level, kt_level_of(s, kt_operand(expr, i)));
  return level;
}

/* Type inference of statements. For each statement in the source, appends typed statements to the
 * current list (kt_scope.out). Statements after a jump are not inferred, because they are never
 * executed. */
#include "typing/infer.h"

/* ---- declarations ---- */

void kt_check_names(kt_scope *s, size_t names, const kt_expr *value, kj_location location)
{
  uint32_t count = kt_is_tuple(s->c, value->type) ? ki_type(s->c->types, value->type)->count : 1;
  if (count == names) return;
  kt_fail(s->c, location, KJIT_ERROR_TYPE, "got %zu names for %u value%s (%s)", names, count,
          count == 1 ? "" : "s", kt_type_text(s->c, value->type));
}

static void infer_declare(kt_scope *s, const ki_stmt *stmt)
{
  kt_callee callee;
  bool is_single = stmt->decls.count == 1;
  for (size_t i = 0; !stmt->value && i < stmt->decls.count; i++)
    kt_declare_open(s, stmt->decls.items[i]);
  if (!stmt->value) return;
  if (is_single && stmt->decls.items[0]->kind == KJ_DECL_LET &&
      kt_as_callee(s, stmt->value, &callee)) {
    s->meanings[stmt->decls.items[0]->index] =
      (kt_meaning){ .kind = KJ_MEANS_CALLEE, .callee = callee };
    return;
  }
  if (is_single && kt_name_fields(s, stmt->decls.items[0], stmt->value)) return;
  kt_expr *value = kt_infer_expr(s, stmt->value);
  if (is_single) {
    kt_declare(s, stmt->decls.items[0], value);
    return;
  }
  kt_check_names(s, stmt->decls.count, value, stmt->location);
  if (value->kind != KJ_T_TUPLE) value = kt_keep_value(s, value);
  for (size_t i = 0; i < stmt->decls.count; i++) {
    kt_expr *item = value->kind == KJ_T_TUPLE
                      ? value->args.items[i]
                      : kt_make_item(s, kt_copy_texpr(s, value), (uint32_t)i, stmt->location);
    kt_declare(s, stmt->decls.items[i], item);
  }
}

/* ---- assignment ---- */

/* Infers an assignment's value before its lvalue. */
static kt_expr *infer_value_and_place(kt_scope *s, const ki_stmt *stmt, kt_place *place)
{
  kt_order order = { 0 };
  kt_begin_operand(s, &order);
  kt_expr *value = kt_infer_expr(s, stmt->value);
  kt_end_operand(s, &order, value);
  kt_begin_operand(s, &order);
  kt_infer_place(s, stmt->places.items[0], place);
  kt_end_place(s, &order, place);
  kt_settle(s, &order, &value, 1);
  return value;
}

static void infer_store(kt_scope *s, const ki_stmt *stmt)
{
  kt_place place;
  kt_expr *value = infer_value_and_place(s, stmt, &place);
  kt_store_place(s, &place, value, stmt->location);
}

static void infer_compound(kt_scope *s, const ki_stmt *stmt)
{
  kt_place place;
  kt_expr *value = infer_value_and_place(s, stmt, &place);
  /* calls in the value can change the element, which must be read after these calls */
  if (place.array && kt_has_effect(value)) value = kt_keep_value(s, value);
  kt_keep_place(s, &place);
  if (place.var) s->guesses[place.decl->index].was_read = true;
  if (place.var) kt_check_set(s, place.decl, stmt->location);
  kt_store_place(s, &place,
                 kt_make_binary(s, stmt->op, kt_load_place(s, &place), value, stmt->location),
                 stmt->location);
}

/* Infers a multiple assignment. All values are evaluated before the first lvalue is assigned to. */
static void infer_multiple(kt_scope *s, const ki_stmt *stmt)
{
  kt_expr *value = kt_infer_expr(s, stmt->value);
  kt_check_names(s, stmt->places.count, value, stmt->location);
  value = kt_keep_value(s, value);
  for (size_t i = 0; i < stmt->places.count; i++) {
    kt_place place;
    kt_infer_place(s, stmt->places.items[i], &place);
    kt_store_place(s, &place, kt_make_item(s, kt_copy_texpr(s, value), (uint32_t)i, stmt->location),
                   stmt->location);
  }
}

static void infer_assign(kt_scope *s, const ki_stmt *stmt)
{
  if (stmt->places.count > 1) infer_multiple(s, stmt);
  else if (stmt->op == KJIT_OP_STORE) infer_store(s, stmt);
  else infer_compound(s, stmt);
}

static void emit_evaluate(kt_scope *s, kt_expr *value, kj_location location)
{
  if (!kt_has_effect(value)) {
    kt_drop_value(s, value);
    return;
  }
  if (ki_is_weak(value->type) && value->kind == KJ_T_CONVERT) value = value->x;
  kt_stmt *evaluate = kt_new_tstmt(s->c, KJ_TS_EVALUATE, location);
  evaluate->value = ki_is_weak(value->type) ? kt_make_concrete(s, value) : value;
  kt_emit(s, evaluate);
}

static void infer_evaluate(kt_scope *s, const ki_stmt *stmt)
{
  emit_evaluate(s, kt_infer_effect(s, stmt->value), stmt->location);
}

/* ---- control flow ---- */

static void infer_if(kt_scope *s, const ki_stmt *stmt)
{
  kt_expr *condition = kt_infer_condition(s, stmt->value);
  if (kt_is_constant(condition)) {
    kt_infer_block(s, condition->integer ? &stmt->body : &stmt->otherwise, s->out);
    return;
  }
  kt_stmt *branch = kt_new_tstmt(s->c, KJ_TS_IF, stmt->location);
  branch->value = condition;
  kt_emit(s, branch);
  kt_level level = s->level;
  s->level = kt_higher_level(level, kt_level_of(s, condition));
  kt_infer_block(s, &stmt->body, &branch->body);
  kt_infer_block(s, &stmt->otherwise, &branch->otherwise);
  s->level = kt_higher_level(level, s->skipped_level);
}

static void infer_break(kt_scope *s, const ki_stmt *stmt)
{
  if (s->is_range_body)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`break` cannot leave a grid_range or block_range, because every index is visited; "
            "write `continue` or a condition");
  s->skipped_level = kt_higher_level(s->skipped_level, s->level);
  kt_emit(s, kt_new_tstmt(s->c, KJ_TS_BREAK, stmt->location));
}

static void infer_continue(kt_scope *s, const ki_stmt *stmt)
{
  s->skipped_level = kt_higher_level(s->skipped_level, s->level);
  kt_emit(s, kt_new_tstmt(s->c, KJ_TS_CONTINUE, stmt->location));
}

/* ---- return ---- */

static kt_expr *fit_result(kt_scope *s, kt_expr *value, kj_location location)
{
  kt_inferred *record = s->record;
  if (s->result_annotation != KJIT_ANY) {
    record->result = s->result_annotation;
    value = kt_fit_annotation(s, value, record->result, "the result", location);
    if (!kt_is_array(s->c, value->type) || value->type == record->result) return value;
    if (kt_join_arrays(s, value->type, record->result) == KJIT_ANY)
      kt_fail(s->c, location, KJIT_ERROR_TYPE, "the result must have the type %s, got %s",
              kt_type_text(s->c, record->result), kt_type_text(s->c, value->type));
    return kt_give_array_type(s, value, record->result);
  }
  if (!kt_is_number(s->c, value->type)) value = kt_make_concrete(s, value);
  kjit_type wide = kt_wide_type(value), type = wide != KJIT_ANY ? wide : value->type;
  kjit_type joined =
    record->result == KJIT_ANY ? type : kt_join_values(s, record->result, type, location);
  if (joined == KJIT_ANY || record->result == KJIT_VOID)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%sthis returns %s, an earlier return %s",
            s->has_numba_types && record->is_reentered
              ? "Return type of recursive function does not converge: "
              : "",
            kt_type_text(s->c, type),
            record->result == KJIT_VOID ? "nothing" : kt_type_text(s->c, record->result));
  bool is_asked_for = record->result != KJIT_ANY || s->waits_for;
  if (joined != record->result && is_asked_for) s->is_changed = true;
  record->result = joined;
  if (s->is_changed) return value;
  kjit_type kept = joined == KJ_WEAK_INT ? KJIT_I32 : joined == KJ_WEAK_FLOAT ? KJIT_F64 : joined;
  return kt_give_type(s, value, kept);
}

/* Infers the value of a return statement. Returns NULL if the statement has no value. If the value
 * is a call of a function without a result, as Numba allows, emits the call and returns NULL. */
static kt_expr *infer_returned(kt_scope *s, const ki_stmt *stmt)
{
  if (!stmt->value) return NULL;
  bool may_be_none = s->has_numba_types && stmt->value->kind == KJ_EXPR_CALL;
  if (!may_be_none) return kt_infer_expr(s, stmt->value);
  kt_expr *value = kt_infer_effect(s, stmt->value);
  if (value->type != KJIT_VOID) return value;
  emit_evaluate(s, value, stmt->location);
  return NULL;
}

static void infer_return(kt_scope *s, const ki_stmt *stmt)
{
  kt_inferred *record = s->record;
  kt_stmt *leave = kt_new_tstmt(s->c, KJ_TS_RETURN, stmt->location);
  if (s->range_count)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`return` cannot leave a grid_range or block_range; write `continue`");
  kt_expr *value = infer_returned(s, stmt);
  if (value && s->instance->is_kernel)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "a kernel cannot return a value: store the result in an array argument");
  if (value) {
    if (ki_get_attribute(&s->function->attributes, KJ_ATTRIBUTE_RECORD_COPIES))
      value = kt_copy_referred(s, value, value->location);
    kt_level level = kt_higher_level(s->level, kt_level_of(s, value));
    record->result_level = kt_higher_level(record->result_level, level);
    leave->value = fit_result(s, value, value->location);
  } else if (!s->instance->is_kernel) {
    if (s->result_annotation != KJIT_ANY ||
        (record->result != KJIT_ANY && record->result != KJIT_VOID))
      kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
              "`%s` returns a value at another `return`, so this one needs a value, too",
              s->function->decl->name);
    record->result = KJIT_VOID;
  }
  s->left_level = kt_higher_level(s->left_level, s->level);
  kt_emit(s, leave);
}

/* ---- statements of any kind ---- */

static void infer_storage(kt_scope *s, const ki_stmt *stmt)
{
  kt_declare_storage(s, stmt->decls.items[0]);
}

/* ---- failures ---- */

static kt_stmt *new_failure(kt_scope *s, const ki_stmt *stmt, kj_failure_kind kind)
{
  kt_stmt *failure = kt_new_tstmt(s->c, KJ_TS_FAIL, stmt->location);
  failure->failure = kind;
  failure->message = stmt->message;
  return failure;
}

static void infer_raise(kt_scope *s, const ki_stmt *stmt)
{
  kt_emit(s, new_failure(s, stmt, KJ_FAILURE_RAISE));
}

/* Adds an operand of the asserted comparison to a failure's report. */
static void report_operand(kt_scope *s, kt_stmt *failure, kt_expr **operand)
{
  *operand = kt_keep_value(s, *operand);
  KJ_PUSH(s->arena, &failure->indices, kt_copy_texpr(s, *operand));
}

static bool is_reported(const kt_expr *operand)
{
  return ki_is_scalar(operand->type) && !ki_is_weak(operand->type) && operand->type < KJIT_C64;
}

/* Infers an assertion. If assertions are disabled, the condition is only checked for errors. */
static void infer_assert(kt_scope *s, const ki_stmt *stmt)
{
  kt_stmts ignored = { 0 }, *out = s->out;
  bool is_compiled = s->c->request->checks & KJIT_CHECK_ASSERT;
  if (!is_compiled) s->out = &ignored;
  kt_expr *condition = kt_infer_condition(s, stmt->value);
  s->out = out;
  if (!is_compiled || (kt_is_constant(condition) && condition->integer)) return;
  kt_stmt *failure = new_failure(s, stmt, KJ_FAILURE_ASSERT);
  if (kt_is_constant(condition)) {
    kt_emit(s, failure);
    return;
  }
  if (condition->kind == KJ_T_COMPARE && is_reported(condition->x) && is_reported(condition->y)) {
    report_operand(s, failure, &condition->x);
    report_operand(s, failure, &condition->y);
  }
  kt_stmt *branch = kt_new_tstmt(s->c, KJ_TS_IF, stmt->location);
  branch->value = kt_make_unary(s, KJIT_OP_NOT, condition, stmt->location);
  KJ_PUSH(s->arena, &branch->body, failure);
  kt_emit(s, branch);
}

typedef void (*infer)(kt_scope *s, const ki_stmt *stmt);

static const infer infer_table[] = {
  [KJ_STMT_DECLARE] = infer_declare,
  [KJ_STMT_STORAGE] = infer_storage,
  [KJ_STMT_ASSIGN] = infer_assign,
  [KJ_STMT_EVALUATE] = infer_evaluate,
  [KJ_STMT_IF] = infer_if,
  [KJ_STMT_WHILE] = kt_infer_while,
  [KJ_STMT_FOR] = kt_infer_for,
  [KJ_STMT_BREAK] = infer_break,
  [KJ_STMT_CONTINUE] = infer_continue,
  [KJ_STMT_RETURN] = infer_return,
  [KJ_STMT_ASSERT] = infer_assert,
  [KJ_STMT_RAISE] = infer_raise,
  [KJ_STMT_PRINT] = kt_infer_print,
};

bool kt_has_jumped(const kt_stmts *out)
{
  const kt_stmt *last = out->count ? out->items[out->count - 1] : NULL;
  if (!last) return false;
  if (last->kind == KJ_TS_FAIL) return last->failure == KJ_FAILURE_RAISE;
  return last->kind == KJ_TS_RETURN || last->kind == KJ_TS_BREAK || last->kind == KJ_TS_CONTINUE;
}

static void infer_statement(kt_scope *s, void *data)
{
  const ki_stmt *stmt = data;
  infer_table[stmt->kind](s, stmt);
}

/* Infers a statement, or skips it until the next round if it needs a type that only later
 * statements determine. The statements in the blocks of a skipped `if` or loop are inferred only if
 * no other statement makes progress, because the condition is not known yet and may exclude a block
 * at compile time. */
static void infer_or_wait(kt_scope *s, ki_stmt *stmt)
{
  kt_stmts ignored = { 0 };
  if (kt_try_without_waiting(s, infer_statement, stmt) || !s->looks_inside) return;
  kt_infer_block(s, &stmt->body, &ignored);
  kt_infer_block(s, &stmt->otherwise, &ignored);
}

void kt_infer_block(kt_scope *s, const ki_stmts *stmts, kt_stmts *out)
{
  kt_stmts *outer = s->out;
  s->out = out;
  for (size_t i = 0; i < stmts->count && !kt_has_jumped(out); i++) {
    kt_count_work(s, stmts->items[i]->location);
    if (s->may_wait) infer_or_wait(s, stmts->items[i]);
    else infer_table[stmts->items[i]->kind](s, stmts->items[i]);
  }
  s->out = outer;
}

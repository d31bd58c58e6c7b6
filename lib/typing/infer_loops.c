/* Type inference of loops: `while`, and `for` over a range, a grid_range or a block_range.
 * infer_copies.c has the loops whose body is copied. */
#include "typing/infer.h"

int kt_infer_unroll(kt_scope *s, const ki_stmt *stmt)
{
  const ki_attribute *attribute = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_UNROLL);
  if (!attribute) return KJ_UNROLL_NONE;
  if (attribute->values.count == 0) return KJ_UNROLL_FULL;
  int64_t factor = kt_infer_constant(s, attribute->values.items[0], "an unroll factor");
  if (factor < 1 || factor > 1024)
    kt_fail(s->c, attribute->location, KJIT_ERROR_TYPE,
            "an unroll factor must be from 1 to 1024, got %lld", (long long)factor);
  return (int)factor;
}

/* Returns the number in `@most`, the maximum number of iterations, which reverse derivatives need;
 * 0 means that there is no `@most`. */
static uint32_t infer_most(kt_scope *s, const ki_stmt *stmt)
{
  enum { MOST_TRIPS = 1 << 20 };
  const ki_attribute *attribute = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_MOST);
  if (!attribute) return 0;
  int64_t most = kt_infer_constant(s, attribute->values.items[0], "the argument of `@most`");
  if (most < 1 || most > MOST_TRIPS)
    kt_fail(s->c, attribute->location, KJIT_ERROR_TYPE,
            "the argument of `@most` must be from 1 to %d, got %lld", MOST_TRIPS, (long long)most);
  return (uint32_t)most;
}

void kt_infer_loop_body(kt_scope *s, const ki_stmt *stmt, kt_stmts *body, kt_level level,
                        bool is_range)
{
  kt_level outer = s->level, skipped = s->skipped_level;
  bool was_range = s->is_range_body;
  s->level = kt_higher_level(outer, level);
  s->skipped_level = KJ_LEVEL_GRID;
  s->is_range_body = is_range;
  s->range_count += is_range;
  kt_infer_block(s, &stmt->body, body);
  s->range_count -= is_range;
  s->is_range_body = was_range;
  s->skipped_level = skipped;
  s->level = outer;
}

/* Infers a `while` loop. If the condition needs statements, the condition is tested inside of the
 * loop, so that these statements run in each iteration. */
void kt_infer_while(kt_scope *s, const ki_stmt *stmt)
{
  kt_stmts before = { 0 }, *out = s->out;
  s->out = &before;
  kt_expr *condition = kt_infer_condition(s, stmt->value);
  s->out = out;
  if (kt_is_constant(condition) && !condition->integer) return;
  kt_stmt *loop = kt_new_tstmt(s->c, KJ_TS_WHILE, stmt->location);
  loop->unroll = kt_infer_unroll(s, stmt);
  loop->most = infer_most(s, stmt);
  loop->keeps_values = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_KEEP) != NULL;
  loop->value = condition;
  if (before.count) {
    loop->value = kt_new_integer(s, KJIT_BOOL, 1, stmt->location);
    kt_stmt *leave = kt_new_tstmt(s->c, KJ_TS_IF, stmt->location);
    leave->value = kt_make_unary(s, KJIT_OP_NOT, condition, stmt->location);
    KJ_PUSH(s->arena, &leave->body, kt_new_tstmt(s->c, KJ_TS_BREAK, stmt->location));
    loop->body = before;
    KJ_PUSH(s->arena, &loop->body, leave);
  }
  kt_infer_loop_body(s, stmt, &loop->body, kt_level_of(s, condition), false);
  kt_emit(s, loop);
}

static _Noreturn void fail_range(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  kt_fail(s->c, location, KJIT_ERROR_TYPE,
          "the arguments of `range` have the types %s and %s, and no integer type can represent "
          "both; convert one",
          kt_type_text(s->c, a), kt_type_text(s->c, b));
}

kjit_type kt_range_type(kt_scope *s, const kt_exprs *values, kj_location location)
{
  kjit_type type = KJIT_ANY;
  for (size_t i = 0; i < values->count; i++) {
    const kt_expr *value = values->items[i];
    if (!kt_is_integer(s->c, value->type))
      kt_fail_number(s->c, value->location, value->type, "`range` needs integers, got %s",
                     kt_type_text(s->c, value->type));
    if (s->has_numba_types) continue;
    kjit_type wide = kt_wide_type(value), one = wide != KJIT_ANY ? wide : value->type;
    kjit_type common = i ? kt_promote(s, type, one, location) : ki_arithmetic_type(one);
    if (common == KJIT_ANY) fail_range(s, type, value->type, location);
    type = common;
  }
  if (s->has_numba_types) {
    type = kt_numba_range_type(values);
    if (type == KJIT_ANY)
      fail_range(s, values->items[0]->type, values->items[values->count - 1]->type, location);
  }
  if (!ki_is_weak(type)) return type;
  type = KJIT_I32;
  for (size_t i = 0; i < values->count; i++)
    type = kt_promote(s, type, kt_concrete_type(values->items[i]), location);
  return type;
}

kt_level kt_level_of_list(const kt_scope *s, const kt_exprs *values)
{
  kt_level level = KJ_LEVEL_GRID;
  for (size_t i = 0; i < values->count; i++)
    level = kt_higher_level(level, kt_level_of(s, values->items[i]));
  return level;
}

/* Adds a check for a step of 0 if divisions are checked and the step is not known at compile time.
 * The check is represented as a division by the step, so that passes treat it like other checks. */
static void check_step(kt_scope *s, kt_stmt *loop, kj_location location)
{
  kjit_type type = loop->step->type;
  if (kt_is_constant(loop->step) || !kt_checks_divisor(s->c, type)) return;
  loop->first = kt_keep_value(s, loop->first);
  loop->stop = kt_keep_value(s, loop->stop);
  loop->step = kt_keep_value(s, loop->step);
  kt_expr *division = kt_make_binary(s, KJIT_OP_FLOORDIV, kt_new_integer(s, type, 0, location),
                                     kt_copy_texpr(s, loop->step), location);
  KJ_ASSERT(division->kind == KJ_T_BINARY && division->op == KJIT_OP_FLOORDIV);
  division->step_of = KT_STEP_OF_RANGE;
  kt_drop_value(s, division);
}

/* Converts the arguments of Numba's `range`: floats are truncated, and bools become i64. */
static void cut_fractions(kt_scope *s, kt_exprs *values)
{
  for (size_t i = 0; i < values->count; i++)
    if (kt_is_float(s->c, values->items[i]->type) || values->items[i]->type == KJIT_BOOL)
      values->items[i] = kt_convert(s, values->items[i], KJIT_I64, values->items[i]->location);
}

/* Emits a loop. If it has `@interleave`, its iterations are interleaved. outer: number of variables
 * before the loop. */
static void emit_loop(kt_scope *s, const ki_stmt *stmt, kt_stmt *loop, size_t outer)
{
  const ki_attribute *interleave = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_INTERLEAVE);
  if (interleave && kd_interleave(s, loop, outer, interleave->location)) return;
  if (interleave && loop->unroll == KJ_UNROLL_NONE) loop->unroll = KJ_UNROLL_FULL;
  kt_emit(s, loop);
}

static void infer_range(kt_scope *s, const ki_stmt *stmt, kt_exprs *values)
{
  if (stmt->decls.count != 1)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE, "`range` has exactly one loop variable, got %zu",
            stmt->decls.count);
  if (values->count < 1 || values->count > 3)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`range` takes 1 to 3 values: (stop), (start, stop) or (start, stop, step)");
  kjit_type type = kt_range_type(s, values, stmt->location);
  kt_level level = kt_level_of_list(s, values);
  kt_stmt *loop = kt_new_tstmt(s->c, KJ_TS_FOR, stmt->location);
  bool has_start = values->count > 1;
  loop->first = has_start ? kt_convert(s, values->items[0], type, stmt->location)
                          : kt_new_integer(s, type, 0, stmt->location);
  loop->stop = kt_convert(s, values->items[has_start], type, stmt->location);
  loop->step = values->count > 2 ? kt_convert(s, values->items[2], type, stmt->location)
                                 : kt_new_integer(s, type, 1, stmt->location);
  if (kt_is_constant(loop->step) && loop->step->integer == 0)
    kt_fail(s->c, values->items[2]->location, KJIT_ERROR_TYPE, "the step of `range` is 0");
  check_step(s, loop, stmt->location);
  const ki_decl *decl = stmt->decls.items[0];
  size_t outer = s->instance ? s->instance->params.count + s->instance->locals.count : 0;
  loop->unroll = kt_infer_unroll(s, stmt);
  loop->most = infer_most(s, stmt);
  loop->keeps_values = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_KEEP) != NULL;
  loop->var = kt_add_variable(s, KJ_V_LOOP, decl->name, type, decl->location, level);
  kt_bind_variable(s, decl, loop->var);
  kt_infer_loop_body(s, stmt, &loop->body, level, false);
  emit_loop(s, stmt, loop, outer);
}

/* Checks that all threads in the grid (or block) reach the loop with the same extents. */
static void check_range_loop(kt_scope *s, const ki_stmt *stmt, const kt_exprs *extents)
{
  bool is_grid = stmt->range == KJ_GRID_RANGE;
  const char *name = ki_range_names[stmt->range], *whole = is_grid ? "grid" : "block";
  kt_level most = is_grid ? KJ_LEVEL_GRID : KJ_LEVEL_BLOCK;
  if (s->range_count)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`%s` cannot be used in the body of a grid_range or block_range; use `range`", name);
  if (s->level > most)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`%s` in divergent control flow: all threads of the %s must reach it", name, whole);
  if (s->left_level > most)
    kt_fail(
      s->c, stmt->location, KJIT_ERROR_TYPE,
      "`%s` follows a `return` that some threads of the %s take, but all threads must reach `%s`",
      name, whole, name);
  if (kt_level_of_list(s, extents) > most)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "an extent of `%s` must be the same in all threads of the %s", name, whole);
  if (is_grid) s->record->has_grid_range = true;
  else s->record->has_block_range = true;
}

kt_exprs kt_convert_extents(kt_scope *s, const kt_exprs *values)
{
  kt_exprs extents = { 0 };
  for (size_t i = 0; i < values->count; i++) {
    kt_expr *value = values->items[i];
    if (!kt_is_integer(s->c, value->type))
      kt_fail_number(s->c, value->location, value->type, "an extent must be an integer, got %s",
                     kt_type_text(s->c, value->type));
    KJ_PUSH(s->arena, &extents, kt_convert_to_index(s, value, value->location));
  }
  return extents;
}

kt_exprs kt_take_items(kt_scope *s, kt_expr *tuple, kj_location location)
{
  KJ_ASSERT(kt_is_tuple(s->c, tuple->type));
  kt_exprs items = { 0 };
  tuple = kt_keep_value(s, tuple);
  uint32_t count = ki_type(s->c->types, tuple->type)->count;
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &items, kt_make_item(s, kt_copy_texpr(s, tuple), i, location));
  return items;
}

/* Binds the loop variables. If there are several extents and a single name, the name is a tuple of
 * indices. An array of rank 0 gives one iteration without an index. */
static void bind_loop_variables(kt_scope *s, const ki_stmt *stmt, kt_stmt *loop, size_t rank)
{
  kt_exprs items = { 0 };
  size_t names = stmt->decls.count;
  if (names != 1 && names != rank)
    kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE, "got %zu loop variables for %zu extent%s", names,
            rank, rank == 1 ? "" : "s");
  for (size_t i = 0; i < loop->extents.count; i++) {
    const ki_decl *decl = stmt->decls.items[names == 1 ? 0 : i];
    kt_var *var =
      kt_add_variable(s, KJ_V_LOOP, decl->name, KJIT_INDEX, decl->location, KJ_LEVEL_THREAD);
    KJ_PUSH(s->arena, &loop->vars, var);
    if (i < rank) KJ_PUSH(s->arena, &items, kt_make_var(s, var, decl->location));
    if (names == rank) kt_bind_variable(s, decl, var);
  }
  if (names != rank)
    kt_bind_value(s, stmt->decls.items[0], kt_make_tuple(s, &items, stmt->location));
}

static void infer_range_loop(kt_scope *s, const ki_stmt *stmt, kt_exprs *values)
{
  if (values->count == 1 && kt_is_tuple(s->c, values->items[0]->type))
    *values = kt_take_items(s, values->items[0], stmt->location);
  kt_exprs extents = kt_convert_extents(s, values);
  if (extents.count > 3)
    kt_fail(s->c, stmt->location, KJIT_ERROR_UNSUPPORTED, "`%s` takes 1 to 3 dimensions, got %zu",
            ki_range_names[stmt->range], extents.count);
  check_range_loop(s, stmt, &extents);
  size_t rank = extents.count;
  if (rank == 0) KJ_PUSH(s->arena, &extents, kt_new_integer(s, KJIT_INDEX, 1, stmt->location));
  kt_stmt *loop =
    kt_new_tstmt(s->c, stmt->range == KJ_GRID_RANGE ? KJ_TS_GRID_FOR : KJ_TS_BLOCK_FOR,
                 stmt->location);
  loop->extents = extents;
  loop->unroll = kt_infer_unroll(s, stmt);
  loop->most = infer_most(s, stmt);
  loop->keeps_values = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_KEEP) != NULL;
  bind_loop_variables(s, stmt, loop, rank);
  kt_infer_loop_body(s, stmt, &loop->body, KJ_LEVEL_THREAD, true);
  kt_emit(s, loop);
}

void kt_infer_for(kt_scope *s, const ki_stmt *stmt)
{
  kt_exprs values = { 0 };
  if (stmt->range == KJ_ITEMS) {
    kt_infer_items_loop(s, stmt);
    return;
  }
  kt_infer_list(s, &stmt->args, &values);
  bool is_shape = values.count == 1 && kt_is_tuple(s->c, values.items[0]->type);
  if (s->has_numba_types && stmt->range == KJ_RANGE) cut_fractions(s, &values);
  if (stmt->range != KJ_RANGE) infer_range_loop(s, stmt, &values);
  else if (ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_STATIC))
    kt_infer_static_range(s, stmt, &values);
  else if (is_shape) kt_infer_shape_loop(s, stmt, values.items[0]);
  else infer_range(s, stmt, &values);
}

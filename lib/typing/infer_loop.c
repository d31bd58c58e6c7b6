/* Inference of loops. */
#include "typing/infer.h"

static int infer_unroll(kj_scope *s, const kj_stmt *stmt)
{
  const kj_attribute *attribute = kj_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_UNROLL);
  if (!attribute) return KJ_UNROLL_NONE;
  if (attribute->values.count == 0) return KJ_UNROLL_FULL;
  int64_t factor = kj_infer_constant(s, attribute->values.items[0], "an unroll factor");
  if (factor < 1 || factor > 1024)
    kj_fail(s->c, attribute->location, KJIT_ERROR_TYPE,
            "an unroll factor is from 1 to 1024, not %lld", (long long)factor);
  return (int)factor;
}

/* The body of a loop, run under a level. */
static void infer_body(kj_scope *s, const kj_stmt *stmt, kj_tstmts *body, kj_level level,
                       bool is_range)
{
  kj_level outer = s->level, skipped = s->skipped_level;
  bool was_range = s->is_range_body;
  s->level = kj_higher_level(outer, level);
  s->skipped_level = KJ_LEVEL_GRID;
  s->is_range_body = is_range;
  s->range_count += is_range;
  kj_infer_block(s, &stmt->body, body);
  s->range_count -= is_range;
  s->is_range_body = was_range;
  s->skipped_level = skipped;
  s->level = outer;
}

/* A condition that needs statements is tested in the loop, so that they run each time. */
void kj_infer_while(kj_scope *s, const kj_stmt *stmt)
{
  kj_tstmts before = { 0 }, *out = s->out;
  s->out = &before;
  kj_texpr *condition = kj_infer_condition(s, stmt->value);
  s->out = out;
  if (kj_is_constant(condition) && !condition->integer) return;
  kj_tstmt *loop = kj_new_tstmt(s->c, KJ_TS_WHILE, stmt->location);
  loop->unroll = infer_unroll(s, stmt);
  loop->value = condition;
  if (before.count) {
    loop->value = kj_new_integer(s, KJIT_BOOL, 1, stmt->location);
    kj_tstmt *leave = kj_new_tstmt(s->c, KJ_TS_IF, stmt->location);
    leave->value = kj_make_unary(s, KJIT_NOT, condition, stmt->location);
    KJ_PUSH(s->arena, &leave->body, kj_new_tstmt(s->c, KJ_TS_BREAK, stmt->location));
    loop->body = before;
    KJ_PUSH(s->arena, &loop->body, leave);
  }
  infer_body(s, stmt, &loop->body, kj_level_of(s, condition), false);
  kj_emit(s, loop);
}

/* Start, stop and step have one type, that of the variable. */
static kjit_type range_type(kj_scope *s, const kj_texprs *values, kj_location location)
{
  kjit_type type = KJIT_ANY;
  for (size_t i = 0; i < values->count; i++) {
    const kj_texpr *value = values->items[i];
    if (!kj_is_integer(s->c, value->type))
      kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`range` needs integers, got %s",
              kj_type_text(s->c, value->type));
    kjit_type common =
      i ? kj_promote(s, type, value->type, location) : kj_arithmetic_type(s->c, value->type);
    if (common == KJIT_ANY)
      kj_fail(s->c, location, KJIT_ERROR_TYPE,
              "`range` of %s and %s: no integer type holds both; convert one",
              kj_type_text(s->c, type), kj_type_text(s->c, value->type));
    type = common;
  }
  if (!kj_is_weak(type)) return type;
  type = KJIT_I32;
  for (size_t i = 0; i < values->count; i++)
    type = kj_promote(s, type, kj_concrete_type(s, values->items[i]), location);
  return type;
}

static kj_level level_of_list(const kj_scope *s, const kj_texprs *values)
{
  kj_level level = KJ_LEVEL_GRID;
  for (size_t i = 0; i < values->count; i++)
    level = kj_higher_level(level, kj_level_of(s, values->items[i]));
  return level;
}

static void infer_range(kj_scope *s, const kj_stmt *stmt, kj_texprs *values)
{
  if (stmt->decls.count != 1)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE, "`range` has one variable, got %zu",
            stmt->decls.count);
  if (values->count < 1 || values->count > 3)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`range` takes 1 to 3 values: (stop), (start, stop) or (start, stop, step)");
  kjit_type type = range_type(s, values, stmt->location);
  kj_level level = level_of_list(s, values);
  kj_tstmt *loop = kj_new_tstmt(s->c, KJ_TS_FOR, stmt->location);
  bool has_start = values->count > 1;
  loop->first = has_start ? kj_convert(s, values->items[0], type, stmt->location)
                          : kj_new_integer(s, type, 0, stmt->location);
  loop->stop = kj_convert(s, values->items[has_start], type, stmt->location);
  loop->step = values->count > 2 ? kj_convert(s, values->items[2], type, stmt->location)
                                 : kj_new_integer(s, type, 1, stmt->location);
  if (kj_is_constant(loop->step) && loop->step->integer == 0)
    kj_fail(s->c, values->items[2]->location, KJIT_ERROR_TYPE, "the step of `range` is 0");
  const kj_decl *decl = stmt->decls.items[0];
  loop->unroll = infer_unroll(s, stmt);
  loop->var = kj_add_variable(s, KJ_V_LOOP, decl->name, type, decl->location, level);
  kj_bind_variable(s, decl, loop->var);
  infer_body(s, stmt, &loop->body, level, false);
  kj_emit(s, loop);
}

/* All threads of the grid, or of the block, must reach the loop with the same extents. */
static void check_range_loop(kj_scope *s, const kj_stmt *stmt, const kj_texprs *extents)
{
  bool is_grid = stmt->range == KJ_GRID_RANGE;
  const char *name = kj_range_names[stmt->range], *whole = is_grid ? "grid" : "block";
  kj_level most = is_grid ? KJ_LEVEL_GRID : KJ_LEVEL_BLOCK;
  if (s->range_count)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`%s` in the body of a grid_range or block_range: use `range`", name);
  if (s->level > most)
    kj_fail(
      s->c, stmt->location, KJIT_ERROR_TYPE,
      "`%s` under a condition that is not the same for all threads of the %s: all must reach it",
      name, whole);
  if (s->left_level > most)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "`%s` after a return that not all threads of the %s take: all must reach it", name,
            whole);
  if (level_of_list(s, extents) > most)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE,
            "an extent of `%s` is not the same for all threads of the %s", name, whole);
  if (is_grid) s->record->has_grid_range = true;
  else s->record->has_block_range = true;
}

static void convert_extents(kj_scope *s, const kj_stmt *stmt, const kj_texprs *values,
                            kj_texprs *extents)
{
  for (size_t i = 0; i < values->count; i++) {
    kj_texpr *value = values->items[i];
    if (!kj_is_integer(s->c, value->type))
      kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent is an integer, got %s",
              kj_type_text(s->c, value->type));
    KJ_PUSH(s->arena, extents, kj_convert(s, value, KJIT_INDEX, value->location));
  }
  if (extents->count <= 3) return;
  kj_fail(s->c, stmt->location, KJIT_ERROR_UNSUPPORTED, "`%s` has 1 to 3 dimensions, got %zu",
          kj_range_names[stmt->range], extents->count);
}

/* One name for several extents is a tuple. An array of no dimension has one element and no index.
 */
static void bind_loop_variables(kj_scope *s, const kj_stmt *stmt, kj_tstmt *loop, size_t rank)
{
  kj_texprs items = { 0 };
  size_t names = stmt->decls.count;
  if (names != 1 && names != rank)
    kj_fail(s->c, stmt->location, KJIT_ERROR_TYPE, "%zu variables for %zu extent%s", names, rank,
            rank == 1 ? "" : "s");
  for (size_t i = 0; i < loop->extents.count; i++) {
    const kj_decl *decl = stmt->decls.items[names == 1 ? 0 : i];
    kj_tvar *var =
      kj_add_variable(s, KJ_V_LOOP, decl->name, KJIT_INDEX, decl->location, KJ_LEVEL_THREAD);
    KJ_PUSH(s->arena, &loop->vars, var);
    if (i < rank) KJ_PUSH(s->arena, &items, kj_make_var(s, var, decl->location));
    if (names == rank) kj_bind_variable(s, decl, var);
  }
  if (names != rank)
    kj_bind_value(s, stmt->decls.items[0], kj_make_tuple(s, &items, stmt->location));
}

static void infer_range_loop(kj_scope *s, const kj_stmt *stmt, kj_texprs *values)
{
  kj_texprs extents = { 0 };
  if (values->count == 1 && kj_is_tuple(s->c, values->items[0]->type)) {
    kj_texpr *tuple = kj_keep_value(s, values->items[0]);
    uint32_t count = kj_type(s->c->types, tuple->type)->count;
    *values = (kj_texprs){ 0 };
    for (uint32_t i = 0; i < count; i++)
      KJ_PUSH(s->arena, values, kj_make_item(s, kj_copy_texpr(s, tuple), i, stmt->location));
  }
  convert_extents(s, stmt, values, &extents);
  check_range_loop(s, stmt, &extents);
  size_t rank = extents.count;
  if (rank == 0) KJ_PUSH(s->arena, &extents, kj_new_integer(s, KJIT_INDEX, 1, stmt->location));
  kj_tstmt *loop =
    kj_new_tstmt(s->c, stmt->range == KJ_GRID_RANGE ? KJ_TS_GRID_FOR : KJ_TS_BLOCK_FOR,
                 stmt->location);
  loop->extents = extents;
  loop->unroll = infer_unroll(s, stmt);
  bind_loop_variables(s, stmt, loop, rank);
  infer_body(s, stmt, &loop->body, KJ_LEVEL_THREAD, true);
  kj_emit(s, loop);
}

void kj_infer_for(kj_scope *s, const kj_stmt *stmt)
{
  kj_texprs values = { 0 };
  kj_infer_list(s, &stmt->args, &values);
  if (stmt->range == KJ_RANGE) infer_range(s, stmt, &values);
  else infer_range_loop(s, stmt, &values);
}

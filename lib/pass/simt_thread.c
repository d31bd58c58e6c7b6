/* Statements that threads carry out on their own. */
#include "pass/simt_build.h"

/* More than one loop over threads. */
static bool has_regions(const kj_simt *s) { return s->has_sync || s->has_range; }

/* ---- assignments ---- */

/* A let that is cheap to compute is computed again where it is needed; a variable in it that
 * changes is caught as it is now. */
static void catch_variable(void *data, kj_texpr **expr)
{
  kj_simt_builder *b = data;
  kj_texpr *e = *expr;
  if (e->kind != KJ_T_VAR || e->var->kind != KJ_V_VAR || !e->var->is_uniform) return;
  kj_tvar *caught = kj_new_uniform(b, e->var->name, e->type, e->location);
  caught->is_narrow = e->var->is_narrow;
  kj_emit_joint(b, kj_new_assign(b->s, caught, e));
  *expr = kj_new_var(b->s, caught, e->location);
}

static bool is_array(kj_simt_builder *b, const kj_texpr *expr)
{
  const kj_type_info *info = kj_type(b->s->c->types, expr->type);
  return info->class_ == KJ_CLASS_ARRAY && info->space != KJ_SPACE_VALUE;
}

/* Scalar parts of a view are kept in variables, so that the view itself can be made again anywhere.
 */
static void hold_part(kj_simt_builder *b, kj_texpr **part, const kj_simt_position *position)
{
  uint32_t budget = UINT32_MAX;
  if (!*part || kj_is_cheap(*part, &budget)) return;
  kj_tvar *var = kj_new_holder(b->s, KJ_V_LET, "held", *part);
  kj_push_active(b, kj_new_assign(b->s, var, *part), position);
  *part = kj_new_var(b->s, var, (*part)->location);
}

static void hold_parts(kj_simt_builder *b, kj_texpr *expr, const kj_simt_position *position)
{
  if (!expr || !is_array(b, expr)) return;
  if (expr->kind == KJ_T_POINTED) hold_part(b, &expr->x, position);
  hold_parts(b, expr->x, position);
  if (expr->kind == KJ_T_COND) {
    hold_part(b, &expr->x, position);
    hold_parts(b, expr->y, position);
    hold_parts(b, expr->z, position);
  }
  for (size_t i = 0; i < expr->args.count; i++) {
    if (is_array(b, expr->args.items[i])) hold_parts(b, expr->args.items[i], position);
    else hold_part(b, &expr->args.items[i], position);
  }
  for (size_t i = 0; i < expr->indices.count; i++) hold_part(b, &expr->indices.items[i], position);
}

static void build_assign(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (!stmt->value) return;
  if (has_regions(b->s) && stmt->var->kind == KJ_V_LET) {
    if (is_array(b, stmt->value)) hold_parts(b, stmt->value, position);
    uint32_t budget = UINT32_MAX;
    if (kj_is_cheap(stmt->value, &budget)) kj_walk_texpr(&stmt->value, catch_variable, b);
  }
  kj_push_active(b, stmt, position);
}

/* ---- jumps ---- */

typedef struct depth {
  uint32_t loops, onces;
} depth;

static int64_t jump_code(kj_simt_builder *b, const kj_tstmt *jump, const kj_simt_position *position)
{
  kj_simt_frame *target = kj_jump_target(jump, position);
  if (!target) return KJ_OFF_LEFT_KERNEL;
  return kj_off_code(b, target->stmt,
                     jump->kind == KJ_TS_CONTINUE ? KJ_OFF_CONTINUE : KJ_OFF_BREAK);
}

static bool leaves_statement(const kj_tstmt *stmt, depth inside)
{
  switch (stmt->kind) {
  case KJ_TS_RETURN: return true;
  case KJ_TS_LEAVE: return !inside.onces;
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE: return !inside.loops;
  default: return false;
  }
}

/* Jumps out of a thread's statements: the thread is turned off and its part of the run ends. */
static kj_tstmts mask_jumps(kj_simt_builder *b, const kj_tstmts *list,
                            const kj_simt_position *position, depth inside)
{
  kj_tstmts masked = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    if (leaves_statement(stmt, inside)) {
      if (stmt->kind == KJ_TS_RETURN) b->has_left = true;
      kj_append_stmt(b->s, &masked, kj_set_off(b, kj_off_const(b, jump_code(b, stmt, position))));
      kj_append_stmt(b->s, &masked, kj_new_tstmt(b->s->c, KJ_TS_RETURN, stmt->location));
      continue;
    }
    depth deep = inside;
    if (stmt->kind == KJ_TS_WHILE || stmt->kind == KJ_TS_FOR) deep.loops++;
    if (stmt->kind == KJ_TS_ONCE) deep.onces++;
    stmt->body = mask_jumps(b, &stmt->body, position, deep);
    stmt->otherwise = mask_jumps(b, &stmt->otherwise, position, deep);
    kj_append_stmt(b->s, &masked, stmt);
  }
  return masked;
}

void kj_build_thread(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (stmt->kind == KJ_TS_ASSIGN) {
    build_assign(b, stmt, position);
    return;
  }
  bool had_left = b->has_left;
  kj_tstmts one = { .items = &stmt, .count = 1 };
  kj_tstmts masked = mask_jumps(b, &one, position, (depth){ 0, 0 });
  bool has_left = b->has_left;
  b->has_left = had_left; /* the statement itself starts before */
  for (size_t i = 0; i < masked.count; i++) kj_push_active(b, masked.items[i], position);
  b->has_left |= has_left;
}

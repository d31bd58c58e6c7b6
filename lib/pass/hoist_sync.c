/* Takes synchronizations out of expressions, for inline_sync.c: each becomes a statement, in the
 * order of evaluation. */
#include "pass/inline_sync.h"

bool kj_is_sync_builtin(const kj_texpr *e)
{
  return e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP));
}
static bool is_joint_call(const kj_inliner *in, const kj_texpr *e)
{
  return e->kind == KJ_T_CALL && in->is_joint[e->instance->id];
}

static bool has_joint_list(const kj_inliner *in, const kj_texprs *list);

bool kj_has_joint_expr(const kj_inliner *in, const kj_texpr *e)
{
  if (!e) return false;
  if (kj_is_sync_builtin(e) || is_joint_call(in, e)) return true;
  return kj_has_joint_expr(in, e->x) || kj_has_joint_expr(in, e->y) ||
         kj_has_joint_expr(in, e->z) || has_joint_list(in, &e->indices) ||
         has_joint_list(in, &e->args);
}

static bool has_joint_list(const kj_inliner *in, const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (kj_has_joint_expr(in, list->items[i])) return true;
  return false;
}

/* Evaluated later it has the same value: no other thread can change it, nor what runs in between.
 */
static bool is_stable(const kj_texpr *e)
{
  kj_simt_effects effects = { 0 };
  kj_find_effects(e, &effects);
  return !effects.loads && !effects.writes;
}

static kj_texpr *hold(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  kj_tvar *var = kj_new_holder(in->s, KJ_V_LET, "held", e);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, e));
  return kj_new_var(in->s, var, e->location);
}

void kj_add_operand(kj_inliner *in, kj_operand_list *list, kj_texpr **operand)
{
  if (*operand) KJ_PUSH(in->s->c->arena, list, operand);
}

void kj_add_operands(kj_inliner *in, kj_operand_list *list, kj_texprs *operands)
{
  for (size_t i = 0; i < operands->count; i++) kj_add_operand(in, list, &operands->items[i]);
}

void kj_hoist_operands(kj_inliner *in, kj_operand_list *list, kj_tstmts *out)
{
  size_t last = list->count;
  while (last > 0 && !kj_has_joint_expr(in, *list->items[last - 1])) last--;
  for (size_t i = 0; i < last; i++) {
    kj_texpr **operand = list->items[i];
    *operand = kj_hoist(in, *operand, out);
    if (i + 1 < last && !is_stable(*operand)) *operand = hold(in, *operand, out);
  }
}

/* x and y, x or y: y is evaluated under an if. */
static kj_texpr *hoist_logic(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  e->x = kj_hoist(in, e->x, out);
  if (!kj_has_joint_expr(in, e->y)) return e;
  kj_tvar *var = kj_new_local(in->s, KJ_V_VAR, "logic", KJIT_BOOL, e->location);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, e->x));
  kj_texpr *condition = kj_new_var(in->s, var, e->location);
  if (e->op == KJIT_OR) condition = kj_new_unary(in->s, KJIT_NOT, condition);
  kj_tstmt *stmt = kj_new_if(in->s, condition, e->location);
  stmt->is_joint = true;
  kj_texpr *value = kj_hoist(in, e->y, &stmt->body);
  kj_push_inlined(in, &stmt->body, kj_new_assign(in->s, var, value));
  kj_push_inlined(in, out, stmt);
  return kj_new_var(in->s, var, e->location);
}

static kj_texpr *hoist_cond(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  e->x = kj_hoist(in, e->x, out);
  if (!kj_has_joint_expr(in, e->y) && !kj_has_joint_expr(in, e->z)) return e;
  kj_tvar *var = kj_new_holder(in->s, KJ_V_VAR, "chosen", e);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, NULL)); /* declared */
  kj_tstmt *stmt = kj_new_if(in->s, e->x, e->location);
  stmt->is_joint = true;
  kj_texpr *y = kj_hoist(in, e->y, &stmt->body);
  kj_push_inlined(in, &stmt->body, kj_new_assign(in->s, var, y));
  kj_texpr *z = kj_hoist(in, e->z, &stmt->otherwise);
  kj_push_inlined(in, &stmt->otherwise, kj_new_assign(in->s, var, z));
  kj_push_inlined(in, out, stmt);
  return kj_new_var(in->s, var, e->location);
}

void kj_hold_sync_operands(kj_inliner *in, kj_texpr *e, const kj_tvar *result, kj_tstmts *out)
{
  for (size_t i = 0; i < e->args.count; i++) {
    kj_texpr *arg = e->args.items[i];
    bool is_plain = arg->kind == KJ_T_CONST ||
                    (arg->kind == KJ_T_VAR && arg->var->kind == KJ_V_VAR && arg->var != result);
    if (!is_plain) e->args.items[i] = hold(in, arg, out);
  }
}

void kj_hoist_all(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  kj_operand_list list = { 0 };
  kj_add_operand(in, &list, &e->x);
  kj_add_operand(in, &list, &e->y);
  kj_add_operand(in, &list, &e->z);
  kj_add_operands(in, &list, &e->indices);
  kj_add_operands(in, &list, &e->args);
  kj_hoist_operands(in, &list, out);
}

kj_texpr *kj_hoist(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  if (!kj_has_joint_expr(in, e)) return e;
  if (e->kind == KJ_T_LOGIC) return hoist_logic(in, e, out);
  if (e->kind == KJ_T_COND) return hoist_cond(in, e, out);
  kj_hoist_all(in, e, out);
  if (is_joint_call(in, e)) return kj_inline_call(in, e, out);
  if (!kj_is_sync_builtin(e)) return e;
  kj_hold_sync_operands(in, e, NULL, out);
  kj_tstmt *stmt;
  kj_tvar *var = NULL;
  if (e->type == KJIT_VOID) {
    stmt = kj_new_tstmt(in->s->c, KJ_TS_EVALUATE, e->location);
    stmt->value = e;
  } else {
    var = kj_new_local(in->s, KJ_V_LET, e->builtin->name, e->type, e->location);
    stmt = kj_new_assign(in->s, var, e);
  }
  stmt->is_joint = true;
  kj_push_inlined(in, out, stmt);
  return var ? kj_new_var(in->s, var, e->location) : NULL;
}

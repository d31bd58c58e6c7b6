/* Making and copying typed trees. */
#include "pass/simt.h"

kj_texpr *kj_new_const(kj_simt *s, kjit_type type, __int128 value, kj_location location)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_CONST, type, location);
  e->integer = value;
  return e;
}

kj_texpr *kj_new_var(kj_simt *s, kj_tvar *var, kj_location location)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_VAR, var->type, location);
  e->var = var;
  e->is_narrow = var->is_narrow;
  return e;
}

kj_texpr *kj_new_unary(kj_simt *s, kjit_op op, kj_texpr *x)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_UNARY, x->type, x->location);
  e->op = op;
  e->x = x;
  return e;
}

static kj_texpr *make_two(kj_simt *s, kj_tkind kind, kjit_type type, kjit_op op, kj_texpr *x,
                          kj_texpr *y)
{
  kj_texpr *e = kj_new_texpr(s->c, kind, type, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

kj_texpr *kj_new_binary(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y)
{
  return make_two(s, KJ_T_BINARY, x->type, op, x, y);
}
kj_texpr *kj_new_compare(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y)
{
  return make_two(s, KJ_T_COMPARE, KJIT_BOOL, op, x, y);
}

kj_texpr *kj_new_cond(kj_simt *s, kj_texpr *x, kj_texpr *y, kj_texpr *z)
{
  kj_texpr *e = make_two(s, KJ_T_COND, y->type, (kjit_op)0, x, y);
  e->z = z;
  return e;
}

kj_texpr *kj_new_convert(kj_simt *s, kjit_type type, kj_texpr *x)
{
  if (x->type == type) return x;
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_CONVERT, type, x->location);
  e->x = x;
  return e;
}

kj_tstmt *kj_new_assign(kj_simt *s, kj_tvar *var, kj_texpr *value)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_ASSIGN, value ? value->location : var->location);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

kj_tstmt *kj_new_if(kj_simt *s, kj_texpr *condition, kj_location location)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_IF, location);
  stmt->value = condition;
  return stmt;
}

kj_tvar *kj_new_local(kj_simt *s, kj_tvar_kind kind, const char *name, kjit_type type,
                      kj_location location)
{
  return kj_new_tvar(s->c, s->kernel, kind, name, type, location);
}

kj_tvar *kj_new_holder(kj_simt *s, kj_tvar_kind kind, const char *name, const kj_texpr *expr)
{
  kj_tvar *var = kj_new_local(s, kind, name, expr->type, expr->location);
  var->is_narrow = expr->is_narrow;
  return var;
}

static void copy_list(kj_simt *s, const kj_texprs *from, kj_texprs *to, kj_map_var map, void *data)
{
  *to = (kj_texprs){ 0 };
  for (size_t i = 0; i < from->count; i++)
    KJ_PUSH(s->c->arena, to, kj_clone_texpr(s, from->items[i], map, data));
}

kj_texpr *kj_clone_texpr(kj_simt *s, const kj_texpr *expr, kj_map_var map, void *data)
{
  if (!expr) return NULL;
  kj_texpr *e = kj_new_texpr(s->c, expr->kind, expr->type, expr->location);
  *e = *expr;
  e->x = kj_clone_texpr(s, expr->x, map, data);
  e->y = kj_clone_texpr(s, expr->y, map, data);
  e->z = kj_clone_texpr(s, expr->z, map, data);
  copy_list(s, &expr->args, &e->args, map, data);
  copy_list(s, &expr->indices, &e->indices, map, data);
  if (expr->var && map) e->var = map(data, expr->var);
  return e;
}

void kj_append_stmt(kj_simt *s, kj_tstmts *list, kj_tstmt *stmt)
{
  KJ_PUSH(s->c->arena, list, stmt);
}

void kj_append_stmts(kj_simt *s, kj_tstmts *list, const kj_tstmts *more)
{
  for (size_t i = 0; i < more->count; i++) kj_append_stmt(s, list, more->items[i]);
}

kj_tstmts kj_drop_declarations(kj_simt *s, const kj_tstmts *list)
{
  kj_tstmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    stmt->body = kj_drop_declarations(s, &stmt->body);
    stmt->otherwise = kj_drop_declarations(s, &stmt->otherwise);
    kj_append_stmt(s, &kept, stmt);
  }
  return kept;
}

/* Types as they are written. */
#include <string.h>

#include "ir/habits.h"
#include "ir/verify.h"

static void verify_type_name(kj_verifier *v, kj_type_expr *type)
{
  const kj_map_entry *entry = kj_find_entry(&v->decls, type->name, strlen(type->name));
  kj_decl *decl = entry ? entry->value : NULL;
  if (decl && decl->kind == KJ_DECL_STRUCT) {
    kj_resolve_struct(v, decl);
    if (decl->struct_type == KJIT_ANY) return; /* reported */
    type->kind = KJ_TYPE_FIXED;
    type->type = decl->struct_type;
    return;
  }
  const char *alias = kj_find_type_alias(type->name),
             *later = kj_find_planned(v->arena, type->name);
  const kj_builtin *builtin = kj_find_builtin(type->name);
  if (alias)
    kj_fail_verify(v, type->location, KJIT_ERROR_NAME, "`%s` is `%s` here", type->name, alias);
  else if (later)
    kj_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED, "%s are not supported yet: `%s`",
                   later, type->name);
  else if (builtin || kj_find_entry(&v->decls, type->name, strlen(type->name)))
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "expected a type, found `%s`", type->name);
  else if (kj_explain_name(v->arena, type->name))
    kj_fail_verify(v, type->location, KJIT_ERROR_NAME, "%s", kj_explain_name(v->arena, type->name));
  else {
    kj_near near = { .name = type->name };
    for (kjit_type scalar = KJIT_BOOL; scalar < KJIT_SCALAR_COUNT; scalar++)
      kj_consider(&near, kj_type(v->module->types, scalar)->name);
    for (size_t i = 0; i < v->module->decls.count; i++)
      if (v->module->decls.items[i]->kind == KJ_DECL_STRUCT)
        kj_consider(&near, v->module->decls.items[i]->name);
    kj_fail_verify(v, type->location, KJIT_ERROR_NAME,
                   near.best ? "`%s` is not a type; did you mean `%s`?" : "`%s` is not a type%.0s",
                   type->name, near.best ? near.best : "");
  }
}

static void verify_static_array(kj_verifier *v, kj_type_expr *type, bool static_extents)
{
  if (!static_extents)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "an array with extents is declared `local a: f32[16]` or `shared a: f32[16]`; "
                   "the type of an argument has a `:` for every dimension");
  if (type->read_only)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "an array that nothing writes is of no use here: leave `const` out");
  for (size_t i = 0; i < type->extents.count; i++) {
    kj_expr *extent = type->extents.items[i];
    kj_verify_expr(v, extent, KJ_ROLE_VALUE);
    bool is_negative =
      extent->kind == KJ_EXPR_UNARY && extent->op == KJIT_NEG && extent->x->kind == KJ_EXPR_INT;
    if (is_negative || (extent->kind == KJ_EXPR_INT && extent->integer == 0))
      kj_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent is at least 1");
    if (extent->kind == KJ_EXPR_FLOAT)
      kj_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent is an integer");
  }
}

/* An array or pointer whose element has become known is known too. */
static void fix(kj_verifier *v, kj_type_expr *type, kjit_type made)
{
  if (made == KJIT_ANY) longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  type->kind = KJ_TYPE_FIXED;
  type->type = made;
}

static void fix_array(kj_verifier *v, kj_type_expr *type)
{
  if (type->element->kind != KJ_TYPE_FIXED) return;
  fix(v, type,
      kj_array_type(v->module->types, type->element->type, type->rank, type->layout,
                    type->read_only));
}

static void fix_pointer(kj_verifier *v, kj_type_expr *type)
{
  const kj_type_expr *element = type->element;
  bool is_fixed = element->kind == KJ_TYPE_FIXED;
  bool is_sized = is_fixed && kj_type(v->module->types, element->type)->size_bytes;
  if (is_fixed && is_sized)
    fix(v, type, kj_intern_pointer(v->module->types, element->type, type->read_only));
  else if (element->kind != KJ_TYPE_DTYPE && element->kind != KJ_TYPE_NAMED)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "a pointer points to a scalar, a vector, a struct or a pointer; `f32*` also "
                   "stands for many f32, one after the other");
}

void kj_verify_type(kj_verifier *v, kj_type_expr *type, bool static_extents)
{
  if (!type) return;
  switch (type->kind) {
  case KJ_TYPE_FIXED: break;
  case KJ_TYPE_DTYPE: kj_verify_expr(v, type->expr, KJ_ROLE_VALUE); break;
  case KJ_TYPE_ARRAY:
    kj_verify_type(v, type->element, false);
    fix_array(v, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    verify_static_array(v, type, static_extents);
    kj_verify_type(v, type->element, false);
    break;
  case KJ_TYPE_TUPLE:
    for (size_t i = 0; i < type->items.count; i++) kj_verify_type(v, type->items.items[i], false);
    break;
  case KJ_TYPE_POINTER:
    kj_verify_type(v, type->element, false);
    fix_pointer(v, type);
    break;
  case KJ_TYPE_NAMED: verify_type_name(v, type); break;
  }
}

void kj_convert_to_type(kj_verifier *v, kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_NAME && !kj_is_known_name(v, expr->name)) {
    verify_type_name(v, &(kj_type_expr){ .name = expr->name, .location = expr->location });
  } else if (expr->kind == KJ_EXPR_TUPLE) {
    kj_type_expr *tuple = KJ_NEW(v->arena, kj_type_expr);
    *tuple = (kj_type_expr){ .kind = KJ_TYPE_TUPLE, .location = expr->location };
    for (size_t i = 0; i < expr->args.count; i++) {
      kj_expr *item = expr->args.items[i];
      kj_convert_to_type(v, item);
      if (item->kind == KJ_EXPR_TYPE) KJ_PUSH(v->arena, &tuple->items, item->type_expr);
    }
    *expr = (kj_expr){
      .kind = KJ_EXPR_TYPE, .location = expr->location, .height = expr->height, .type_expr = tuple
    };
  } else {
    kj_verify_expr(v, expr, KJ_ROLE_TYPE);
  }
}

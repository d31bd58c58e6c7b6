/* Verifies the types in the source and a module's constants. */
#include <string.h>

#include "ir/foreign_syntax.h"
#include "ir/near_name.h"
#include "ir/verify.h"

/* ---- types ---- */

/* Resolves the name of a type parameter. A parameter's type can refer to a later parameter. */
static bool find_type_parameter(ki_verifier *v, ki_type_expr *type)
{
  for (size_t i = 0; v->in_parameters && i < v->function->params.count; i++) {
    ki_decl *param = v->function->params.items[i];
    if (!param->is_type || strcmp(param->name, type->name) != 0) continue;
    type->kind = KJ_TYPE_PARAMETER;
    type->decl = param;
    return true;
  }
  return false;
}

static void verify_type_name(ki_verifier *v, ki_type_expr *type)
{
  if (find_type_parameter(v, type)) return;
  ki_decl *decl = ki_find_visible(v, type->location, type->name);
  if (decl && decl->kind == KJ_DECL_STRUCT) {
    ki_resolve_struct(v, decl);
    if (decl->struct_type == KJIT_ANY) return; /* already reported */
    type->kind = KJ_TYPE_FIXED;
    type->type = decl->struct_type;
    return;
  }
  const char *alias = ki_find_type_alias(type->name);
  const ki_builtin *builtin = ki_find_builtin(type->name);
  if (alias)
    ki_fail_verify(v, type->location, KJIT_ERROR_NAME, "`%s` is `%s` here", type->name, alias);
  else if (builtin || decl)
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE, "expected a type, found `%s`", type->name);
  else if (ki_explain_name(v->arena, type->name))
    ki_fail_verify(v, type->location, KJIT_ERROR_NAME, "%s", ki_explain_name(v->arena, type->name));
  else {
    ki_near near = { .name = type->name };
    for (kjit_type scalar = KJIT_BOOL; scalar < KJIT_SCALAR_COUNT; scalar++)
      ki_consider(&near, ki_type(v->module->types, scalar)->name);
    for (size_t i = 0; i < v->module->decls.count; i++)
      if (v->module->decls.items[i]->kind == KJ_DECL_STRUCT)
        ki_consider(&near, v->module->decls.items[i]->name);
    ki_fail_verify(v, type->location, KJIT_ERROR_NAME,
                   near.best ? "`%s` is not a type; did you mean `%s`?" : "`%s` is not a type%.0s",
                   type->name, near.best ? near.best : "");
  }
}

static void verify_static_array(ki_verifier *v, ki_type_expr *type, bool static_extents)
{
  if (!static_extents)
    ki_fail_verify(
      v, type->location, KJIT_ERROR_TYPE,
      "this array type has extents: declare the array with `local a: f32[16]` or `shared a: "
      "f32[16]`; the type of an array argument has a `:` for each dimension");
  if (type->read_only)
    ki_fail_verify(
      v, type->location, KJIT_ERROR_TYPE,
      "omit `const`: nothing could write to this array, so its elements would never have values");
  for (size_t i = 0; i < type->extents.count; i++) {
    ki_expr *extent = type->extents.items[i];
    ki_verify_expr(v, extent, KJ_ROLE_VALUE);
    bool is_negative =
      extent->kind == KJ_EXPR_UNARY && extent->op == KJIT_OP_NEG && extent->x->kind == KJ_EXPR_INT;
    bool is_constant = v->decl->kind == KJ_DECL_CONST;
    if (is_negative || (extent->kind == KJ_EXPR_INT && extent->integer == 0 && !is_constant))
      ki_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent must be at least %d",
                     is_constant ? 0 : 1);
    if (extent->kind == KJ_EXPR_FLOAT)
      ki_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent must be an integer");
  }
}

/* Replaces an array or pointer type by a FIXED type once its element type is known. */
static void fix(ki_verifier *v, ki_type_expr *type, kjit_type made)
{
  if (made == KJIT_ANY) longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  type->kind = KJ_TYPE_FIXED;
  type->type = made;
}

static void fix_array(ki_verifier *v, ki_type_expr *type)
{
  if (type->element->kind != KJ_TYPE_FIXED) return;
  fix(v, type,
      ki_array_type(v->module->types, type->element->type, type->rank, type->layout,
                    type->read_only));
}

static void fix_pointer(ki_verifier *v, ki_type_expr *type)
{
  const ki_type_expr *element = type->element;
  bool is_fixed = element->kind == KJ_TYPE_FIXED;
  bool is_sized = is_fixed && ki_type(v->module->types, element->type)->size_bytes;
  if (is_fixed && is_sized)
    fix(v, type, ki_intern_pointer(v->module->types, element->type, type->read_only));
  else if (element->kind != KJ_TYPE_DTYPE && element->kind != KJ_TYPE_VECTOR &&
           element->kind != KJ_TYPE_POINTER && element->kind != KJ_TYPE_NAMED &&
           element->kind != KJ_TYPE_PARAMETER)
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "a pointer must point to a scalar, a vector, a struct or a pointer; `f32*` also "
                   "points to several contiguous f32");
}

/* Verifies vector(T, n). If T and n are known, replaces it by a FIXED type, because struct fields
 * and constants need FIXED types. */
static void verify_vector(ki_verifier *v, ki_type_expr *type)
{
  const ki_expr *lanes = type->extents.items[0];
  ki_verify_type(v, type->element, false);
  ki_verify_exprs(v, &type->extents, KJ_ROLE_VALUE);
  if (type->element->kind != KJ_TYPE_FIXED || lanes->kind != KJ_EXPR_INT) return;
  if (ki_has_vectors(v->module->types, type->element->type, lanes->integer))
    fix(v, type, ki_intern_vector(v->module->types, type->element->type, (uint32_t)lanes->integer));
  else ki_fail_verify(v, type->location, KJIT_ERROR_TYPE, "%s", ki_no_vector);
}

void ki_verify_type(ki_verifier *v, ki_type_expr *type, bool static_extents)
{
  if (!type) return;
  switch (type->kind) {
  case KJ_TYPE_FIXED: break;
  case KJ_TYPE_DTYPE: ki_verify_expr(v, type->expr, KJ_ROLE_VALUE); break;
  case KJ_TYPE_ARRAY:
    ki_verify_type(v, type->element, false);
    fix_array(v, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    verify_static_array(v, type, static_extents);
    ki_verify_type(v, type->element, false);
    break;
  case KJ_TYPE_TUPLE:
    for (size_t i = 0; i < type->items.count; i++) ki_verify_type(v, type->items.items[i], false);
    break;
  case KJ_TYPE_POINTER:
    ki_verify_type(v, type->element, false);
    fix_pointer(v, type);
    break;
  case KJ_TYPE_VECTOR: verify_vector(v, type); break;
  case KJ_TYPE_NAMED: verify_type_name(v, type); break;
  case KJ_TYPE_PARAMETER:
    if (type->decl->function != v->function)
      ki_fail_verify(v, type->location, KJIT_ERROR_NAME, "`%s` belongs to another function",
                     type->decl->name);
    else if (v->fixed && strcmp(v->fixed, "a default") == 0)
      ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                     "a default value can use only constants, not `%s`", type->decl->name);
    break;
  }
}

void ki_convert_to_type(ki_verifier *v, ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_NAME && !ki_is_known_name(v, expr->location, expr->name)) {
    verify_type_name(v, &(ki_type_expr){ .name = expr->name, .location = expr->location });
  } else if (expr->kind == KJ_EXPR_TUPLE) {
    ki_type_expr *tuple = KJ_NEW(v->arena, ki_type_expr);
    *tuple = (ki_type_expr){ .kind = KJ_TYPE_TUPLE, .location = expr->location };
    for (size_t i = 0; i < expr->args.count; i++) {
      ki_expr *item = expr->args.items[i];
      ki_convert_to_type(v, item);
      if (item->kind == KJ_EXPR_TYPE) KJ_PUSH(v->arena, &tuple->items, item->type_expr);
    }
    *expr = (ki_expr){
      .kind = KJ_EXPR_TYPE, .location = expr->location, .height = expr->height, .type_expr = tuple
    };
  } else {
    ki_verify_expr(v, expr, KJ_ROLE_TYPE);
  }
}

void ki_name_type_parameter(ki_verifier *v, ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_DECL && expr->decl->is_type);
  ki_type_expr *type = KJ_NEW(v->arena, ki_type_expr);
  *type =
    (ki_type_expr){ .kind = KJ_TYPE_PARAMETER, .location = expr->location, .decl = expr->decl };
  expr->kind = KJ_EXPR_TYPE;
  expr->type_expr = type;
  expr->decl = NULL;
}

/* ---- constants: their values, and the limits of constants that use other constants ---- */

/* Checks that the rows of an aggregate have equal lengths on each nesting level. Stores the extents
 * of the aggregate and returns its rank. */
static uint32_t measure_aggregate(ki_verifier *v, const ki_expr *value, uint32_t depth,
                                  int64_t *extents)
{
  if (value->kind != KJ_EXPR_AGGREGATE) return 0;
  if (depth == KJ_MAX_RANK) {
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions",
                   KJ_MAX_RANK);
    return 0;
  }
  uint32_t rank = 0;
  extents[depth] = (int64_t)value->args.count;
  for (size_t i = 0; i < value->args.count; i++) {
    int64_t row[KJ_MAX_RANK] = { 0 };
    uint32_t row_rank = measure_aggregate(v, value->args.items[i], depth + 1, row);
    if (i == 0) {
      rank = row_rank;
      memcpy(extents + depth + 1, row + depth + 1, (KJ_MAX_RANK - depth - 1) * sizeof *extents);
    } else if (row_rank != rank || memcmp(extents + depth + 1, row + depth + 1,
                                          (KJ_MAX_RANK - depth - 1) * sizeof *extents) != 0) {
      ki_fail_verify(
        v, value->args.items[i]->location, KJIT_ERROR_TYPE,
        "the rows of a constant must have equal lengths: row %zu differs from the first", i + 1);
      break;
    }
  }
  return rank + 1;
}

/* Returns whether an aggregate has no elements. Only its type then determines its rank. */
static bool is_empty(const int64_t *extents, uint32_t rank)
{
  for (uint32_t i = 0; i < rank; i++)
    if (extents[i] == 0) return true;
  return false;
}

/* Returns whether the type is a scalar, vector or struct type, or a tuple of such types. Array
 * types are not. */
static bool is_value_type(const ki_verifier *v, const ki_type_expr *type)
{
  for (size_t i = 0; type->kind == KJ_TYPE_TUPLE && i < type->items.count; i++)
    if (!is_value_type(v, type->items.items[i])) return false;
  return type->kind == KJ_TYPE_TUPLE || type->kind == KJ_TYPE_DTYPE ||
         type->kind == KJ_TYPE_VECTOR ||
         (type->kind == KJ_TYPE_FIXED && ki_is_element(v->module->types, type->type));
}

static void verify_shape(ki_verifier *v, const ki_decl *decl)
{
  const ki_type_expr *type = decl->type_expr;
  int64_t extents[KJ_MAX_RANK] = { 0 };
  uint32_t rank = measure_aggregate(v, decl->value, 0, extents);
  bool has_none = is_empty(extents, rank);
  if (!type && has_none)
    ki_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                   "a constant without values needs its type: `const %s: f32[0] = {}`", decl->name);
  if (!type) return;
  bool is_array = type->kind == KJ_TYPE_STATIC_ARRAY;
  bool is_scalar = is_value_type(v, type);
  if (!is_array && !is_scalar)
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "a constant must be a scalar, a vector, a struct, a tuple of these, or an array "
                   "of these with extents: `f32[3]`");
  else if (is_array && (has_none ? type->extents.count < rank : type->extents.count != rank))
    ki_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                   "the type of `%s` has %zu dimensions, but its value has %u", decl->name,
                   type->extents.count, rank);
  else if (is_scalar && rank)
    ki_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                   "`%s` has the type %s, but its value is an array", decl->name,
                   type->kind == KJ_TYPE_TUPLE ? "tuple" : "scalar");
  for (uint32_t i = 0; is_array && i < rank && type->extents.count >= rank; i++) {
    const ki_expr *extent = type->extents.items[i];
    if (extent->kind == KJ_EXPR_INT && extent->integer != extents[i])
      ki_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                     "dimension %u of `%s` has %lld elements in its type, but %lld in its value", i,
                     decl->name, (long long)extent->integer, (long long)extents[i]);
  }
}

void ki_verify_constant(ki_verifier *v, ki_decl *decl)
{
  v->decl = decl;
  v->fixed = "a constant";
  ki_verify_type(v, decl->type_expr, true);
  if (decl->value) {
    ki_verify_expr(v, decl->value, KJ_ROLE_VALUE);
    verify_shape(v, decl);
  }
  v->fixed = NULL;
}

/* ---- constants that use other constants ---- */

/* Functions that evaluate a constant recurse over its tree and over the trees of the constants that
 * it uses. The declarations can have any order. The functions can run on a stack of 128 KiB that
 * the application provides, so the depth is limited. An error message below contains this limit. */
enum { MOST_LEVELS = 500, UNDER_WAY = MOST_LEVELS + 1 };

static uint32_t measure_constant(ki_verifier *v, ki_decl *decl, uint32_t *heights, uint32_t level);

static uint32_t larger(uint32_t x, uint32_t y) { return x > y ? x : y; }

/* Returns an expression's height. level is the depth of this recursive call. */
static uint32_t measure(ki_verifier *v, const ki_expr *expr, uint32_t *heights, uint32_t level)
{
  if (!expr) return 0;
  uint32_t height = 0;
  if (expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_CONST)
    height = measure_constant(v, expr->decl, heights, level);
  const ki_expr *children[] = { expr->x, expr->y, expr->z,
                                expr->type_expr ? expr->type_expr->expr : NULL };
  for (size_t i = 0; i < sizeof children / sizeof *children; i++)
    height = larger(height, measure(v, children[i], heights, level + 1));
  for (size_t i = 0; i < expr->args.count; i++)
    height = larger(height, measure(v, expr->args.items[i], heights, level + 1));
  return height + 1;
}

static _Noreturn void refuse_constant(ki_verifier *v, const ki_decl *decl, const char *format)
{
  ki_fail_verify(v, decl->location, KJIT_ERROR_NAME, format, decl->name);
  longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

static uint32_t measure_constant(ki_verifier *v, ki_decl *decl, uint32_t *heights, uint32_t level)
{
  static const char too_deep[] =
    "the value of the constant `%s`, with the constants that it uses, has more than 500 levels";
  uint32_t *height = &heights[decl->index];
  if (*height == UNDER_WAY) refuse_constant(v, decl, "the constant `%s` depends on itself");
  if (*height) return *height;
  if (level > MOST_LEVELS) refuse_constant(v, decl, too_deep);
  *height = UNDER_WAY;
  uint32_t own = measure(v, decl->value, heights, level + 1);
  for (size_t i = 0; decl->type_expr && i < decl->type_expr->extents.count; i++)
    own = larger(own, measure(v, decl->type_expr->extents.items[i], heights, level + 1));
  if (own >= MOST_LEVELS) refuse_constant(v, decl, too_deep);
  return *height = own + 1;
}

void ki_verify_constant_cycles(ki_verifier *v)
{
  uint32_t *heights = KJ_NEW_ARRAY(v->arena, uint32_t, v->module->decls.count + 1);
  for (size_t i = 0; i < v->module->decls.count; i++)
    if (v->module->decls.items[i]->kind == KJ_DECL_CONST)
      measure_constant(v, v->module->decls.items[i], heights, 0);
}

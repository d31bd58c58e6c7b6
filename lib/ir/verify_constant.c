/* Constants of a module: their values, and that none is made from itself. */
#include <string.h>

#include "ir/verify.h"

/* Rows of equal length at every level, down to numbers; the extents that the value has go to
 * extents. Returns the rank. */
static uint32_t measure_aggregate(kj_verifier *v, const kj_expr *value, uint32_t depth,
                                  int64_t *extents)
{
  if (value->kind != KJ_EXPR_TUPLE) return 0;
  if (depth == KJ_MAX_RANK) {
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions",
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
      kj_fail_verify(v, value->args.items[i]->location, KJIT_ERROR_TYPE,
                     "the rows of a constant have equal lengths: row %zu differs from the first",
                     i + 1);
      break;
    }
  }
  return rank + 1;
}

static void verify_values(kj_verifier *v, kj_expr *value)
{
  if (value->kind != KJ_EXPR_TUPLE) kj_verify_expr(v, value, KJ_ROLE_VALUE);
  for (size_t i = 0; value->kind == KJ_EXPR_TUPLE && i < value->args.count; i++)
    verify_values(v, value->args.items[i]);
}

static void verify_shape(kj_verifier *v, const kj_decl *decl)
{
  const kj_type_expr *type = decl->type_expr;
  int64_t extents[KJ_MAX_RANK] = { 0 };
  uint32_t rank = measure_aggregate(v, decl->value, 0, extents);
  if (!type) return;
  bool is_array = type->kind == KJ_TYPE_STATIC_ARRAY;
  bool is_scalar = type->kind == KJ_TYPE_DTYPE ||
                   (type->kind == KJ_TYPE_FIXED && kj_is_element(v->module->types, type->type));
  if (!is_array && !is_scalar)
    kj_fail_verify(
      v, type->location, KJIT_ERROR_TYPE,
      "a constant is a scalar, a vector, a struct or an array of these with extents: `f32[3]`");
  else if (is_array && type->extents.count != rank)
    kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                   "the type of `%s` has %zu dimensions, its value %u", decl->name,
                   type->extents.count, rank);
  else if (is_scalar && rank)
    kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                   "`%s` is a scalar by its type, its value an array", decl->name);
  for (uint32_t i = 0; is_array && i < rank && type->extents.count == rank; i++) {
    const kj_expr *extent = type->extents.items[i];
    if (extent->kind == KJ_EXPR_INT && extent->integer != extents[i])
      kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE,
                     "dimension %u of `%s` has %lld elements by its type and %lld by its value", i,
                     decl->name, (long long)extent->integer, (long long)extents[i]);
  }
}

void kj_verify_constant(kj_verifier *v, kj_decl *decl)
{
  v->decl = decl;
  v->fixed = "a constant";
  kj_verify_type(v, decl->type_expr, true);
  if (decl->value) {
    verify_values(v, decl->value);
    verify_shape(v, decl);
  }
  v->fixed = NULL;
}

/* ---- constants made of others ---- */

/* What evaluates a constant recurses as deep as its tree is high with the trees of the constants in
 * it, in whatever order they are declared. */
enum { MOST_LEVELS = 1000, UNDER_WAY = MOST_LEVELS + 1 };

static uint32_t measure_constant(kj_verifier *v, kj_decl *decl, uint32_t *heights, uint32_t level);

static uint32_t larger(uint32_t x, uint32_t y) { return x > y ? x : y; }

/* level: how deep this call itself is. */
static uint32_t measure(kj_verifier *v, const kj_expr *expr, uint32_t *heights, uint32_t level)
{
  if (!expr) return 0;
  uint32_t height = 0;
  if (expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_CONST)
    height = measure_constant(v, expr->decl, heights, level);
  const kj_expr *children[] = { expr->x, expr->y, expr->z,
                                expr->type_expr ? expr->type_expr->expr : NULL };
  for (size_t i = 0; i < sizeof children / sizeof *children; i++)
    height = larger(height, measure(v, children[i], heights, level + 1));
  for (size_t i = 0; i < expr->args.count; i++)
    height = larger(height, measure(v, expr->args.items[i], heights, level + 1));
  return height + 1;
}

static _Noreturn void refuse_constant(kj_verifier *v, const kj_decl *decl, const char *format)
{
  kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, format, decl->name);
  longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

static uint32_t measure_constant(kj_verifier *v, kj_decl *decl, uint32_t *heights, uint32_t level)
{
  static const char too_deep[] = "the constant `%s` is at the end of a chain of too many others";
  uint32_t *height = &heights[decl->index];
  if (*height == UNDER_WAY) refuse_constant(v, decl, "the constant `%s` is made from itself");
  if (*height) return *height;
  if (level > MOST_LEVELS) refuse_constant(v, decl, too_deep);
  *height = UNDER_WAY;
  uint32_t own = measure(v, decl->value, heights, level + 1);
  for (size_t i = 0; decl->type_expr && i < decl->type_expr->extents.count; i++)
    own = larger(own, measure(v, decl->type_expr->extents.items[i], heights, level + 1));
  if (own >= MOST_LEVELS) refuse_constant(v, decl, too_deep);
  return *height = own + 1;
}

void kj_verify_constant_cycles(kj_verifier *v)
{
  uint32_t *heights = KJ_NEW_ARRAY(v->arena, uint32_t, v->module->decls.count + 1);
  for (size_t i = 0; i < v->module->decls.count; i++)
    if (v->module->decls.items[i]->kind == KJ_DECL_CONST)
      measure_constant(v, v->module->decls.items[i], heights, 0);
}

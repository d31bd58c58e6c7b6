/* Creates expression nodes for the parser and the builder. */
#include "ir/expr.h"

ki_expr *ki_new_expr(kj_arena *arena, ki_expr_kind kind, kj_location location)
{
  ki_expr *expr = KJ_NEW(arena, ki_expr);
  expr->kind = kind;
  expr->location = location;
  expr->height = 1;
  return expr;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t measure_list(const ki_exprs *list)
{
  uint32_t height = 0;
  for (size_t i = 0; i < list->count; i++) height = larger(height, list->items[i]->height);
  return height;
}

uint32_t ki_measure_type(const ki_type_expr *type)
{
  if (!type) return 0;
  uint32_t height = larger(type->expr ? type->expr->height : 0, ki_measure_type(type->element));
  for (size_t i = 0; i < type->items.count; i++)
    height = larger(height, ki_measure_type(type->items.items[i]));
  return 1 + larger(height, measure_list(&type->extents));
}

uint32_t ki_measure_expr(ki_expr *expr)
{
  uint32_t height = measure_list(&expr->args);
  const ki_expr *children[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (children[i]) height = larger(height, children[i]->height);
  return expr->height = 1 + larger(height, ki_measure_type(expr->type_expr));
}

ki_type_expr *ki_spell_type(kj_arena *arena, const ki_types *types, kjit_type type,
                            kj_location location)
{
  const ki_type_info *info = ki_type(types, type);
  ki_type_expr *spelled = KJ_NEW(arena, ki_type_expr);
  spelled->kind = info->class_ == KJ_CLASS_TUPLE ? KJ_TYPE_TUPLE : KJ_TYPE_FIXED;
  spelled->type = type;
  spelled->location = location;
  for (uint32_t i = 0; i < info->count && spelled->kind == KJ_TYPE_TUPLE; i++) {
    ki_type_expr *item = ki_spell_type(arena, types, info->items[i], location);
    KJ_PUSH(arena, &spelled->items, item);
  }
  return spelled;
}

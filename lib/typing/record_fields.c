/* Fields of arrays of structs: `a.x[i]` is `a[i].x`, and `a.inner.w[i]` is `a[i].inner.w`, as NumPy
 * has them for arrays of records.
 *
 * NumPy makes a view of the field of all elements. An array of the kernel IR has strides that count
 * its own elements, which the fields of a struct seldom fit. The indices move to the array of
 * structs instead, and what is indexed is the field of one element. */
#include <string.h>

#include "typing/infer.h"

/* The expression that a chain of fields begins with. */
static const ki_expr *base_of(const ki_expr *expr)
{
  while (expr->kind == KJ_EXPR_FIELD) expr = expr->x;
  return expr;
}

static bool is_property(const char *name)
{
  static const char *const names[] = { "shape", "strides", "size", "ndim", "T" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Whether the chain asks for what arrays have, as in `a.x.shape`. */
static bool has_property(const ki_expr *field)
{
  for (; field->kind == KJ_EXPR_FIELD; field = field->x)
    if (is_property(field->name)) return true;
  return false;
}

/* The name of the field next to the base. */
static const char *first_field(const ki_expr *expr)
{
  while (expr->x->kind == KJ_EXPR_FIELD) expr = expr->x;
  return expr->name;
}

/* How many indices the array of structs takes; 0: the base is no such array with that field. */
static uint32_t count_moved(kt_scope *s, const ki_expr *field)
{
  const ki_expr *base = base_of(field);
  if (base->kind != KJ_EXPR_DECL || base->decl->kind == KJ_DECL_FUNCTION) return 0;
  if (has_property(field)) return 0;
  ki_component component;
  kt_expr *array = kt_infer_expr(s, base);
  kjit_type type = array->type;
  kt_drop_value(s, array);
  if (!kt_is_array(s->c, type)) return 0;
  const ki_type_info *info = ki_type(s->c->types, type);
  bool has_field = kt_is_struct(s->c, info->element) &&
                   kt_find_component(s->c, info->element, first_field(field), &component);
  return has_field ? info->rank : 0;
}

static ki_expr *new_index(kt_scope *s, const ki_expr *like, const ki_expr *x, size_t begin,
                          size_t end)
{
  ki_expr *index = KJ_NEW(s->arena, ki_expr);
  *index = *like;
  index->x = (ki_expr *)x;
  index->args = (ki_exprs){ 0 };
  for (size_t i = begin; i < end; i++) KJ_PUSH(s->arena, &index->args, like->args.items[i]);
  return index;
}

/* The same chain of fields of another base. */
static ki_expr *with_base(kt_scope *s, const ki_expr *field, ki_expr *base)
{
  if (field->kind != KJ_EXPR_FIELD) return base;
  ki_expr *copy = KJ_NEW(s->arena, ki_expr);
  *copy = *field;
  copy->x = with_base(s, field->x, base);
  return copy;
}

const ki_expr *kt_move_index(kt_scope *s, const ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_INDEX);
  if (expr->x->kind != KJ_EXPR_FIELD) return NULL;
  uint32_t rank = count_moved(s, expr->x);
  if (!rank || expr->args.count < rank) return NULL;
  for (uint32_t i = 0; i < rank; i++)
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE) return NULL;
  ki_expr *element = new_index(s, expr, base_of(expr->x), 0, rank);
  ki_expr *moved = with_base(s, expr->x, element);
  return expr->args.count == rank ? moved : new_index(s, expr, moved, rank, expr->args.count);
}

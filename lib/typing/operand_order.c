/* The order of evaluation: operands are evaluated from left to right, and the right side of an
 * assignment before its lvalues.
 *
 * Inference makes an expression tree for each operand. The tree is evaluated at its final position
 * in a statement. However, an operator, constructor or built-in that expands to several nodes needs
 * temporaries, and the statements that set these temporaries run before the statement with the
 * tree. Without the functions in this file, an operand that needs temporaries would be evaluated
 * before the operands to its left.
 *
 * A function that infers a list of operands calls kt_begin_operand before each operand and
 * kt_end_operand after it. It then calls a kt_settle function for the earlier operands. If an
 * earlier operand does not commute with the new operand, kt_settle stores the earlier operand in a
 * temporary, before the statements of the new operand. The remaining trees commute with each other.
 * A rule or a pass can therefore evaluate them in any order if it evaluates each of them exactly
 * once. Operands without effects commute with all others and stay trees. */
#include "typing/infer.h"

void kt_begin_operand(kt_scope *s, kt_order *order) { order->mark = s->out->count; }

static void end(kt_scope *s, kt_order *order)
{
  KJ_ASSERT(s->out->count >= order->mark);
  order->has_statements = s->out->count > order->mark;
  order->has_conflict = order->has_statements || !kt_commute(&order->before, &order->next);
  kt_join_effects(&order->before, &order->next);
}

void kt_end_operand(kt_scope *s, kt_order *order, const kt_expr *value)
{
  order->next = (kt_effects){ 0 };
  kt_add_effects(s->c, value, &order->next);
  end(s, order);
}

static void add_list_effects(kt_scope *s, const kt_exprs *list, kt_effects *effects)
{
  for (size_t i = 0; i < list->count; i++) kt_add_effects(s->c, list->items[i], effects);
}

void kt_end_place(kt_scope *s, kt_order *order, const kt_place *place)
{
  order->next = (kt_effects){ 0 };
  kt_add_effects(s->c, place->array, &order->next);
  add_list_effects(s, &place->indices, &order->next);
  for (size_t i = 0; i < place->steps.count; i++)
    add_list_effects(s, &place->steps.items[i].indices, &order->next);
  end(s, order);
}

void kt_end_address(kt_scope *s, kt_order *order, const kt_expr *load)
{
  if (load->kind != KJ_T_LOAD) {
    kt_end_operand(s, order, load);
    return;
  }
  order->next = (kt_effects){ 0 };
  kt_add_effects(s->c, load->x, &order->next);
  add_list_effects(s, &load->args, &order->next);
  end(s, order);
}

/* ---- earlier operands ---- */

static bool must_keep(kt_scope *s, const kt_order *order, const kt_expr *value)
{
  if (!value || !order->has_conflict) return false;
  if (order->has_statements) return true;
  kt_effects effects = { 0 };
  kt_add_effects(s->c, value, &effects);
  return !kt_commute(&effects, &order->next);
}

void kt_settle(kt_scope *s, kt_order *order, kt_expr **values, size_t count)
{
  for (size_t i = 0; order->has_conflict && i < count; i++)
    if (must_keep(s, order, values[i])) values[i] = kt_keep_at(s, values[i], &order->mark);
}

static void keep_list(kt_scope *s, kt_exprs *list, size_t *at)
{
  for (size_t i = 0; i < list->count; i++) {
    kt_expr *index = list->items[i];
    list->items[i] = index->kind == KJ_T_VAR ? index : kt_keep_at(s, index, at);
  }
}

/* Stores the indices and pointers of an array expression in temporaries. The array itself is not
 * stored, so that passes still know which memory it is in. */
static kt_expr *keep_array(kt_scope *s, kt_expr *array, size_t *at)
{
  if (kt_is_stable(array)) return array;
  bool is_part = array->kind == KJ_T_MEMBER || array->kind == KJ_T_POINTED ||
                 (array->kind == KJ_T_VIEW && !array->dimensions);
  if (!is_part) return kt_keep_at(s, array, at);
  array->x =
    array->kind == KJ_T_POINTED ? kt_keep_at(s, array->x, at) : keep_array(s, array->x, at);
  keep_list(s, &array->args, at);
  return array;
}

kt_expr *kt_settle_array(kt_scope *s, kt_order *order, kt_expr *array)
{
  bool is_value = !kt_is_array(s->c, array->type);
  if (is_value) kt_settle(s, order, &array, 1);
  else if (must_keep(s, order, array)) array = keep_array(s, array, &order->mark);
  return array;
}

void kt_settle_address(kt_scope *s, kt_order *order, kt_expr **load)
{
  if ((*load)->kind != KJ_T_LOAD) {
    *load = kt_settle_array(s, order, *load);
    return;
  }
  if (!must_keep(s, order, *load)) return;
  (*load)->x = keep_array(s, (*load)->x, &order->mark);
  keep_list(s, &(*load)->args, &order->mark);
}

static void keep_place(kt_scope *s, kt_place *place, size_t *at)
{
  if (place->array) place->array = keep_array(s, place->array, at);
  keep_list(s, &place->indices, at);
  for (size_t i = 0; i < place->steps.count; i++) keep_list(s, &place->steps.items[i].indices, at);
}

void kt_settle_place(kt_scope *s, kt_order *order, kt_place *place)
{
  if (order->has_conflict) keep_place(s, place, &order->mark);
}

void kt_keep_place(kt_scope *s, kt_place *place)
{
  size_t at = s->out->count;
  keep_place(s, place, &at);
}

/* Fields of arrays of structs: `a.x[i]` means `a[i].x`, and `a.inner.w[i]` means `a[i].inner.w`, as
 * in NumPy's record arrays.
 *
 * In NumPy, a.x is a view of the field in all elements. In kernel IR, strides are multiples of the
 * element size, and a struct's size is not always a multiple of the field's size. The indices are
 * therefore applied to the array of structs, and the field is read from the selected element.
 * `len(a.x)`, `a.x.shape` and loops over a.x use the array of structs in the same way. If a.x is
 * passed to a function, the function gets the array of structs, and its parameter is an alias of
 * the field. Everywhere else, for example in `a.x[1:]`, a.x is a view, or an error if the strides
 * of the view would not be multiples of the field's size. */
#include <string.h>

#include "typing/infer.h"

/* If the expression is a let that is an alias of a chain of fields, returns the chain, otherwise
 * the expression itself. */
static const ki_expr *unfold(const kt_scope *s, const ki_expr *expr)
{
  bool is_name = expr->kind == KJ_EXPR_DECL && s->meanings &&
                 (expr->decl->kind == KJ_DECL_LET || expr->decl->kind == KJ_DECL_PARAM);
  const kt_meaning *meaning = is_name ? &s->meanings[expr->decl->index] : NULL;
  return meaning && meaning->kind == KJ_MEANS_FIELDS ? meaning->fields : expr;
}

/* Returns the expression before the first field of a chain of fields. */
static const ki_expr *base_of(const kt_scope *s, const ki_expr *expr)
{
  expr = unfold(s, expr);
  while (expr->kind == KJ_EXPR_FIELD) expr = unfold(s, expr->x);
  return expr;
}

static bool is_property(const char *name)
{
  static const char *const names[] = { "shape", "strides", "size", "ndim", "T" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Returns whether the chain contains a property of arrays, for example `a.x.shape`. */
static bool has_property(const kt_scope *s, const ki_expr *field)
{
  for (field = unfold(s, field); field->kind == KJ_EXPR_FIELD; field = unfold(s, field->x))
    if (is_property(field->name)) return true;
  return false;
}

/* Returns the name of the first field in the chain. */
static const char *first_field(const kt_scope *s, const ki_expr *expr)
{
  expr = unfold(s, expr);
  while (unfold(s, expr->x)->kind == KJ_EXPR_FIELD) expr = unfold(s, expr->x);
  return expr->name;
}

/* Returns the number of indices that are moved from the field to the array of structs, which is the
 * array rank. Returns 0 if the base is not an array of structs with this field. */
static uint32_t count_moved(kt_scope *s, const ki_expr *field)
{
  const ki_expr *base = base_of(s, field);
  if (base->kind != KJ_EXPR_DECL || base->decl->kind == KJ_DECL_FUNCTION) return 0;
  if (has_property(s, field)) return 0;
  ki_component component;
  kt_expr *array = kt_infer_expr(s, base);
  kjit_type type = array->type;
  kt_drop_value(s, array);
  if (!kt_is_array(s->c, type)) return 0;
  const ki_type_info *info = ki_type(s->c->types, type);
  bool has_field = kt_is_struct(s->c, info->element) &&
                   kt_find_component(s->c, info->element, first_field(s, field), &component);
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

/* Returns the same chain of fields with another base. */
static ki_expr *with_base(kt_scope *s, const ki_expr *field, ki_expr *base)
{
  field = unfold(s, field);
  if (field->kind != KJ_EXPR_FIELD) return base;
  ki_expr *copy = KJ_NEW(s->arena, ki_expr);
  *copy = *field;
  copy->x = with_base(s, field->x, base);
  return copy;
}

const ki_expr *kt_move_index(kt_scope *s, const ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_INDEX);
  if (unfold(s, expr->x)->kind != KJ_EXPR_FIELD) return NULL;
  uint32_t rank = count_moved(s, expr->x);
  if (!rank || expr->args.count < rank) return NULL;
  for (uint32_t i = 0; i < rank; i++)
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE) return NULL;
  ki_expr *element = new_index(s, expr, base_of(s, expr->x), 0, rank);
  ki_expr *moved = with_base(s, expr->x, element);
  return expr->args.count == rank ? moved : new_index(s, expr, moved, rank, expr->args.count);
}

/* Returns the type of a chain of fields in one element, or KJIT_ANY if a field does not exist. */
static kjit_type type_of_fields(kt_scope *s, const ki_expr *field, kjit_type element)
{
  field = unfold(s, field);
  if (field->kind != KJ_EXPR_FIELD) return element;
  ki_component component;
  kjit_type whole = type_of_fields(s, field->x, element);
  bool has_field =
    kt_is_struct(s->c, whole) && kt_find_component(s->c, whole, field->name, &component);
  return has_field ? component.type : KJIT_ANY;
}

const ki_expr *kt_array_of_fields(kt_scope *s, const ki_expr *expr, uint32_t most_rank)
{
  uint32_t rank = unfold(s, expr)->kind == KJ_EXPR_FIELD ? count_moved(s, expr) : 0;
  if (!rank || rank > most_rank) return expr;
  const ki_expr *base = base_of(s, expr);
  kt_expr *array = kt_infer_expr(s, base);
  kjit_type type = type_of_fields(s, expr, ki_type(s->c->types, array->type)->element);
  kt_drop_value(s, array);
  return type == KJIT_ANY || kt_is_value_array(s->c, type) ? expr : base;
}

kt_expr *kt_read_fields(kt_scope *s, const ki_expr *field, kt_expr *element)
{
  field = unfold(s, field);
  if (field->kind != KJ_EXPR_FIELD) return element;
  ki_component component;
  kt_expr *whole = kt_read_fields(s, field->x, element);
  bool has_field = kt_find_component(s->c, whole->type, field->name, &component);
  KJ_ASSERT(has_field);
  return has_field ? kt_read_component(s, whole, component, field->location) : whole;
}

const ki_expr *kt_move_property(kt_scope *s, const ki_expr *expr)
{
  static const char *const names[] = { "shape", "size", "ndim" };
  KJ_ASSERT(expr->kind == KJ_EXPR_FIELD);
  bool is_moved = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    is_moved |= strcmp(expr->name, names[i]) == 0;
  const ki_expr *base = is_moved ? kt_array_of_fields(s, expr->x, KJ_MAX_RANK) : expr->x;
  if (base == expr->x) return NULL;
  ki_expr *moved = KJ_NEW(s->arena, ki_expr);
  *moved = *expr;
  moved->x = (ki_expr *)base;
  return moved;
}

bool kt_name_fields(kt_scope *s, const ki_decl *let, const ki_expr *value)
{
  bool is_reference = value->kind == KJ_EXPR_CALL && value->x->kind == KJ_EXPR_BUILTIN &&
                      value->x->builtin->id == KJ_BUILTIN_REFER && value->args.count == 1;
  value = unfold(s, is_reference ? value->args.items[0] : value);
  const ki_expr *base = base_of(s, value);
  bool is_chain = let->kind == KJ_DECL_LET && !let->type_expr && value->kind == KJ_EXPR_FIELD;
  bool stays = base->kind == KJ_EXPR_DECL &&
               (base->decl->kind == KJ_DECL_PARAM || base->decl->kind == KJ_DECL_LET);
  if (!is_chain || !stays || !count_moved(s, value)) return false;
  s->meanings[let->index] = (kt_meaning){ .kind = KJ_MEANS_FIELDS, .fields = value };
  return true;
}

/* ---- fields as arguments ---- */

bool kt_equal_fields(const ki_expr *a, const ki_expr *b)
{
  for (; a && b && a->kind == KJ_EXPR_FIELD && b->kind == KJ_EXPR_FIELD; a = a->x, b = b->x)
    if (strcmp(a->name, b->name) != 0) return false;
  bool is_end_of_a = !a || a->kind != KJ_EXPR_FIELD, is_end_of_b = !b || b->kind != KJ_EXPR_FIELD;
  return is_end_of_a && is_end_of_b;
}

const ki_expr *kt_split_fields(kt_scope *s, const ki_expr *expr, const ki_expr **base)
{
  if (!s->meanings) return NULL;
  bool is_reference = expr->kind == KJ_EXPR_CALL && expr->x->kind == KJ_EXPR_BUILTIN &&
                      expr->x->builtin->id == KJ_BUILTIN_REFER && expr->args.count == 1;
  expr = unfold(s, is_reference ? expr->args.items[0] : expr);
  if (expr->kind != KJ_EXPR_FIELD || !count_moved(s, expr)) return NULL;
  *base = base_of(s, expr);
  ki_expr *nothing = KJ_NEW(s->arena, ki_expr);
  *nothing = (ki_expr){ .kind = KJ_EXPR_INT, .location = (*base)->location };
  return with_base(s, expr, nothing);
}

void kt_receive_fields(kt_scope *s, const ki_decl *param, const ki_expr *fields, kt_var *array)
{
  KJ_ASSERT(param->index < s->function->params.count);
  ki_decl *whole = KJ_NEW(s->arena, ki_decl);
  *whole = *param;
  whole->index = s->function->local_count + 1 + param->index;
  ki_expr *base = KJ_NEW(s->arena, ki_expr);
  *base = (ki_expr){ .kind = KJ_EXPR_DECL, .decl = whole, .location = param->location };
  kt_bind_variable(s, whole, array);
  s->meanings[param->index] =
    (kt_meaning){ .kind = KJ_MEANS_FIELDS, .fields = with_base(s, fields, base) };
}

/* ---- fields as views ---- */

/* Returns a pointer to the field in the first element. */
static kt_expr *point_at_field(kt_scope *s, kt_expr *array, ki_component component,
                               kj_location location)
{
  kt_exprs first = { 0 }, inner = { 0 };
  for (uint32_t d = 0; d < ki_type(s->c->types, array->type)->rank; d++)
    KJ_PUSH(s->arena, &first, kt_new_integer(s, KJIT_INDEX, 0, location));
  kt_expr *only = kt_make_only(s, kt_copy_texpr(s, array), &first, location);
  kt_expr *member = kt_make_member(s, only, component, location);
  const ki_type_info *info = ki_type(s->c->types, member->type);
  for (uint32_t d = 0; d < info->rank; d++)
    KJ_PUSH(s->arena, &inner, kt_new_integer(s, KJIT_INDEX, 0, location));
  bool is_read_only = info->read_only || info->space == KJ_SPACE_CONST;
  kjit_type type = kt_pointer_type(s, info->element, is_read_only, location);
  kt_expr *address = kt_new_texpr(s->c, KJ_T_ADDRESS, type, location);
  address->x = member;
  address->args = inner;
  return address;
}

/* Replaces the pointer to the first element by a null pointer if the array has no elements, because
 * a bounds check would reject the pointer. */
static kt_expr *guard_empty(kt_scope *s, kt_expr *array, kt_expr *pointer, kj_location location)
{
  if (!(s->c->request->checks & KJIT_CHECK_BOUNDS)) return pointer;
  kt_expr *size = kt_make_size(s, kt_copy_texpr(s, array), location);
  kt_expr *has_elements =
    kt_make_binary(s, KJIT_OP_GT, size, kt_new_integer(s, KJIT_INDEX, 0, location), location);
  if (kt_is_constant(has_elements)) return pointer;
  kt_expr *null = kt_new_texpr(s->c, KJ_T_CONVERT, pointer->type, location);
  null->x = kt_new_integer(s, KJIT_U64, 0, location);
  return kt_make_cond(s, has_elements, pointer, null, location);
}

/* Returns the type of the view of a field, or KJIT_ANY if there is no such view. */
static kjit_type type_of_field_view(kt_scope *s, const ki_type_info *from, ki_component component)
{
  const ki_type_info *part = ki_type(s->c->types, component.type);
  bool is_inner = part->class_ == KJ_CLASS_ARRAY;
  ki_type_info view = { .class_ = KJ_CLASS_ARRAY,
                        .element = is_inner ? part->element : component.type,
                        .rank = from->rank + (is_inner ? part->rank : 0),
                        .layout = KJIT_LAYOUT_STRIDED,
                        .space = KJ_SPACE_GENERIC,
                        .read_only = from->read_only || from->space == KJ_SPACE_CONST };
  uint32_t natural = ki_alignment(s->c->types, view.element),
           of_structs = from->alignment_bytes ? from->alignment_bytes
                                              : ki_alignment(s->c->types, from->element),
           alignment = ki_alignment_at(of_structs, component.offset_bytes);
  if (alignment < natural) view.alignment_bytes = alignment;
  size_t whole = ki_type(s->c->types, from->element)->size_bytes,
         size = ki_type(s->c->types, view.element)->size_bytes;
  bool is_view = size && whole % size == 0 && view.rank <= KJ_MAX_RANK;
  return is_view ? kt_intern_array(s, &view) : KJIT_ANY;
}

/* Appends the extents and the view strides. */
static void add_dimensions(kt_scope *s, kt_expr *view, const kt_expr *array, const kt_expr *member)
{
  const ki_type_info *from = ki_type(s->c->types, array->type),
                     *inner = ki_type(s->c->types, member->type);
  kj_location location = view->location;
  size_t factor = ki_type(s->c->types, from->element)->size_bytes /
                  ki_type(s->c->types, inner->element)->size_bytes;
  for (uint32_t d = 0; d < from->rank; d++)
    KJ_PUSH(s->arena, &view->args, kt_make_extent(s, kt_copy_texpr(s, array), d, location));
  for (uint32_t d = 0; d < inner->rank; d++)
    KJ_PUSH(s->arena, &view->args, kt_make_extent(s, kt_copy_texpr(s, member), d, location));
  for (uint32_t d = 0; d < from->rank; d++) {
    kt_expr *stride = kt_make_stride(s, kt_copy_texpr(s, array), d, location);
    stride = kt_make_binary(s, KJIT_OP_MUL, stride, kt_new_integer(s, KJIT_INDEX, factor, location),
                            location);
    KJ_PUSH(s->arena, &view->args, kt_keep_value(s, stride));
  }
  for (uint32_t d = 0; d < inner->rank; d++)
    KJ_PUSH(s->arena, &view->args, kt_make_stride(s, kt_copy_texpr(s, member), d, location));
}

kt_expr *kt_view_of_field(kt_scope *s, kt_expr *array, const char *name, kj_location location)
{
  const ki_type_info *from = ki_type(s->c->types, array->type);
  ki_component component;
  bool has_field = from->class_ == KJ_CLASS_ARRAY && from->rank &&
                   kt_is_struct(s->c, from->element) &&
                   kt_find_component(s->c, from->element, name, &component);
  if (!has_field || type_of_field_view(s, from, component) == KJIT_ANY) return NULL;
  array = kt_keep_value(s, kt_make_concrete(s, array));
  kjit_type type = type_of_field_view(s, ki_type(s->c->types, array->type), component);
  kt_expr *pointer = point_at_field(s, array, component, location);
  const kt_expr *member = pointer->x;
  kt_expr *view = kt_new_texpr(s->c, KJ_T_POINTED, type, location);
  view->x = kt_keep_value(s, guard_empty(s, array, pointer, location));
  add_dimensions(s, view, array, member);
  return view;
}

kt_expr *kt_view_of_named_fields(kt_scope *s, const ki_expr *fields)
{
  fields = unfold(s, fields);
  if (fields->kind != KJ_EXPR_FIELD) return kt_infer_expr(s, fields);
  kt_expr *whole = kt_view_of_named_fields(s, fields->x);
  return whole ? kt_view_of_field(s, whole, fields->name, fields->location) : NULL;
}

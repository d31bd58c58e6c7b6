/* Lvalues: expressions that can be assigned to, be passed to an atomic operation, or have their
 * address taken. infer_field.c makes lvalues for components in memory.
 *
 * An lvalue that is a part of a variable consists of the variable and a path of steps to the part.
 * An assignment to such an lvalue assigns the whole variable, with a value in which this part is
 * replaced. */
#include <string.h>

#include "typing/infer.h"

/* ---- the object that contains an lvalue ---- */

/* A value or an lvalue. A part of a value cannot be assigned to, but if the part is an array or a
 * pointer, its elements can. */
typedef struct target {
  kt_expr *value; /* an array, a pointer, or a value that is not an lvalue; otherwise NULL */
  kjit_type
    /* if the value is a part of another value, the type of the other value; otherwise KJIT_ANY */
    whole;
  kt_place place; /* used if value is NULL; the lvalue is not an array */
} target;

static void infer_target(kt_scope *s, const ki_expr *expr, target *t);

static const ki_expr *root_of(const ki_expr *expr)
{
  while (expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD) expr = expr->x;
  return expr;
}

/* Returns the source name of an expression for messages, or "this" if it has none. */
static const char *spell(kt_scope *s, const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_DECL ? kj_format(s->arena, "`%s`", expr->decl->name) : "this";
}

static kjit_type type_of_let(const kt_scope *s, const ki_decl *let)
{
  const kt_meaning *meaning = &s->meanings[let->index];
  return meaning->var ? meaning->var->type : meaning->value->type;
}

/* Reports an assignment to a part of a value that is not an lvalue. */
static _Noreturn void fail_part(kt_scope *s, const ki_expr *expr, kjit_type whole)
{
  const ki_expr *root = root_of(expr);
  ki_decl_kind kind = root->kind == KJ_EXPR_DECL ? root->decl->kind : KJ_DECL_FUNCTION;
  if (kt_is_tuple(s->c, whole))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "the items of a tuple (%s) cannot be changed separately; create another tuple",
            kt_type_text(s->c, whole));
  if (kind == KJ_DECL_LET)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a value (%s) that cannot be changed; declare it with `var`", root->decl->name,
            kt_type_text(s->c, type_of_let(s, root->decl)));
  if (kind == KJ_DECL_PARAM)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "the parameter `%s` cannot be changed: change a copy, `var copy = %s`",
            root->decl->name, root->decl->name);
  kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
          "a component of a value (%s) cannot be assigned; copy the value to a `var` first",
          kt_type_text(s->c, whole));
}

static void set_element(kt_scope *s, const ki_expr *expr, kt_expr *array, kt_exprs indices,
                        target *t)
{
  const ki_type_info *info = ki_type(s->c->types, array->type);
  *t = (target){ .place = { .array = array,
                            .indices = indices,
                            .type = info->element,
                            .location = expr->location } };
}

static void add_step(kt_scope *s, target *t, kt_path_step step)
{
  KJ_PUSH(s->arena, &t->place.steps, step);
  t->place.type = step.type;
}

/* If the target is a pointer, loads the pointer, because the lvalue is in the memory to which it
 * points. */
static void read_pointer(kt_scope *s, target *t)
{
  if (t->value || !kt_is_pointer(s->c, t->place.type)) return;
  *t = (target){ .value = kt_load_place(s, &t->place) };
}

/* If the target is a tuple, loads the tuple, because its items are not lvalues. */
static void read_tuple(kt_scope *s, target *t)
{
  if (t->value || !kt_is_tuple(s->c, t->place.type)) return;
  *t = (target){ .value = kt_load_place(s, &t->place) };
}

/* Infers an indexed part of a vector or of an array inside a struct. A lane in a vector in memory
 * becomes an element in memory, so that a store to it does not write the other lanes. */
static void infer_part_target(kt_scope *s, const ki_expr *expr, kjit_type type, target *t)
{
  kt_order order = { 0 };
  kj_location location = expr->location;
  kt_begin_operand(s, &order);
  kt_end_place(s, &order, &t->place);
  kt_begin_operand(s, &order);
  kt_exprs indices = kt_infer_part_indices(s, expr, type);
  kt_end_place(s, &order, &(kt_place){ .indices = indices });
  kt_settle_place(s, &order, &t->place);
  if (t->place.var) {
    kt_path_step step = { .indices = indices, .type = ki_type(s->c->types, type)->element };
    add_step(s, t, step);
    return;
  }
  KJ_ASSERT(kt_is_vector(s->c, type) && !t->place.steps.count && indices.count == 1);
  kt_expr *only = kt_make_only(s, t->place.array, &t->place.indices, location);
  const kt_expr *lane = indices.items[0];
  if (!kt_is_constant(lane)) {
    set_element(s, expr, kt_make_lanes(s, only, location), indices, t);
    return;
  }
  ki_component component = ki_get_component(s->c->types, type, (uint32_t)lane->integer);
  set_element(s, expr, kt_make_member(s, only, component, location), (kt_exprs){ 0 }, t);
}

/* Replaces the target by one of its components. */
static void enter_component(kt_scope *s, const ki_expr *expr, target *t, ki_component component)
{
  if (t->value) {
    kjit_type whole = t->value->type;
    kt_expr *part = kt_read_component(s, t->value, component, expr->location);
    *t = (target){ .value = part, .whole = whole };
    return;
  }
  if (t->place.var) {
    add_step(s, t, (kt_path_step){ .component = component.index, .type = component.type });
    return;
  }
  kt_expr *member =
    kt_make_member(s, kt_make_only(s, t->place.array, &t->place.indices, expr->location), component,
                   expr->location);
  if (kt_is_value_array(s->c, component.type)) *t = (target){ .value = member };
  else set_element(s, expr, member, (kt_exprs){ 0 }, t);
}

static void infer_index_target(kt_scope *s, const ki_expr *expr, target *t)
{
  const ki_expr *moved = kt_move_index(s, expr);
  if (moved) {
    infer_target(s, moved, t);
    return;
  }
  infer_target(s, expr->x, t);
  read_pointer(s, t);
  read_tuple(s, t);
  kjit_type type = t->value ? t->value->type : t->place.type;
  ki_component field;
  if (kt_find_numbered(s, expr, type, &field)) {
    bool is_reference = t->value && kt_is_array(s->c, type);
    if (is_reference) set_element(s, expr, t->value, (kt_exprs){ 0 }, t);
    enter_component(s, expr, t, field);
    return;
  }
  bool has_parts =
    kt_is_vector(s->c, type) || kt_is_value_array(s->c, type) || kt_is_tuple(s->c, type);
  bool is_memory = kt_is_array(s->c, type) || kt_is_pointer(s->c, type);
  if (!has_parts && !is_memory)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "only elements of arrays can be assigned, but %s is %s", spell(s, expr->x),
            kt_type_text(s->c, type));
  if (!t->value) {
    infer_part_target(s, expr, type, t);
    return;
  }
  kt_expr *element = kt_index_value(s, expr, t->value);
  if (is_memory && element->kind == KJ_T_LOAD) set_element(s, expr, element->x, element->args, t);
  else *t = (target){ .value = element, .whole = has_parts ? type : KJIT_ANY };
}

static void infer_field_target(kt_scope *s, const ki_expr *expr, target *t)
{
  ki_component component;
  infer_target(s, expr->x, t);
  read_pointer(s, t);
  if (t->value && kt_is_array(s->c, t->value->type)) {
    kt_expr *property = kt_infer_property(s, expr, t->value);
    if (property && !kt_is_array(s->c, property->type))
      kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`.%s` cannot be assigned", expr->name);
    if (!property && !kt_is_field_of_only(s, t->value->type, expr->name, &component)) {
      property = kt_view_of_field(s, t->value, expr->name, expr->location);
      if (!property) kt_fail_array_field(s, expr, t->value->type);
    }
    if (property) t->value = property;
    else set_element(s, expr, t->value, (kt_exprs){ 0 }, t);
    if (property) return;
  }
  if (t->value && kt_is_pointer(s->c, t->value->type))
    set_element(s, expr, kt_make_pointed(s, t->value, expr->location),
                kt_first_index(s, expr->location), t);
  kjit_type type = t->value ? t->value->type : t->place.type;
  if (!kt_find_component(s->c, type, expr->name, &component)) {
    bool are_lanes =
      kt_is_vector(s->c, type) && expr->name[1] && strspn(expr->name, "xyzw") == strlen(expr->name);
    if (are_lanes)
      kt_fail(
        s->c, expr->location, KJIT_ERROR_TYPE,
        "`.%s` selects several lanes and cannot be assigned: assign one lane, or the whole vector",
        expr->name);
    kt_fail_field(s, expr, type);
  }
  enter_component(s, expr, t, component);
}

/* Infers a name at the root of an lvalue: a var, or a shared or local scalar. Any other name is
 * inferred as a value. */
static void infer_name_target(kt_scope *s, const ki_expr *expr, target *t)
{
  const ki_decl *decl = expr->decl;
  bool is_local = s->meanings && decl->kind != KJ_DECL_CONST && decl->kind != KJ_DECL_FUNCTION;
  const kt_meaning *meaning = is_local ? &s->meanings[decl->index] : NULL;
  bool is_variable = meaning && meaning->kind == KJ_MEANS_VARIABLE;
  if (is_variable && meaning->is_scalar)
    set_element(s, expr, kt_make_var(s, meaning->var, expr->location), (kt_exprs){ 0 }, t);
  else if (is_variable && meaning->var->kind == KJ_V_VAR && meaning->var->type != KJIT_ANY &&
           !kt_is_array(s->c, meaning->var->type)) {
    s->guesses[decl->index].was_read = true;
    *t = (target){ .place = { .var = meaning->var,
                              .decl = decl,
                              .type = meaning->var->type,
                              .location = expr->location } };
  } else *t = (target){ .value = kt_infer_expr(s, expr) };
}

static void infer_target(kt_scope *s, const ki_expr *expr, target *t)
{
  kt_count_work(s, expr->location);
  bool is_position = expr->kind == KJ_EXPR_FIELD && expr->x->kind == KJ_EXPR_BUILTIN;
  if (expr->kind == KJ_EXPR_DECL) infer_name_target(s, expr, t);
  else if (expr->kind == KJ_EXPR_INDEX) infer_index_target(s, expr, t);
  else if (expr->kind == KJ_EXPR_FIELD && !is_position) infer_field_target(s, expr, t);
  else *t = (target){ .value = kt_infer_expr(s, expr) };
}

/* ---- lvalues ---- */

static void infer_name_place(kt_scope *s, const ki_expr *expr, kt_place *place)
{
  const ki_decl *decl = expr->decl;
  bool is_local = s->meanings && decl->kind != KJ_DECL_CONST && decl->kind != KJ_DECL_FUNCTION;
  const kt_meaning *meaning = is_local ? &s->meanings[decl->index] : NULL;
  place->decl = decl;
  if (meaning && meaning->is_scalar) {
    place->array = kt_make_var(s, meaning->var, expr->location);
    place->type = ki_type(s->c->types, meaning->var->type)->element;
    return;
  }
  if (meaning && meaning->kind == KJ_MEANS_UNTYPED) kt_start_untyped(s, decl);
  if (meaning && meaning->kind == KJ_MEANS_VARIABLE && meaning->var->kind == KJ_V_VAR) {
    place->var = meaning->var;
    place->type = meaning->var->type;
    return;
  }
  if (meaning && meaning->var && kt_is_array(s->c, meaning->var->type))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is an array and cannot be assigned: assign its elements, `%s[i] = ...`",
            decl->name, decl->name);
  kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` cannot be assigned; declare it with `var`",
          decl->name);
}

/* Reports an array or value that cannot be assigned to. whole: see struct target. */
static _Noreturn void fail_view(kt_scope *s, const ki_expr *expr, const kt_expr *value,
                                kjit_type whole)
{
  const ki_expr *base = expr->x;
  if (!kt_is_array(s->c, value->type))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a value (%s) cannot be assigned; only a `var`, an element of an array, or a field of "
            "these can",
            kt_type_text(s->c, value->type));
  if (expr->kind == KJ_EXPR_FIELD)
    kt_fail_code(s->c, expr->location, KJIT_ERROR_TYPE, KJIT_CODE_ARRAY_ASSIGNED,
                 "`.%s` is an array (%s) and cannot be assigned; assign its elements", expr->name,
                 kt_type_text(s->c, value->type));
  if (whole != KJIT_ANY)
    kt_fail_code(s->c, expr->location, KJIT_ERROR_TYPE, KJIT_CODE_ARRAY_ASSIGNED,
                 "an array (%s) cannot be assigned; assign its elements",
                 kt_type_text(s->c, value->type));
  for (size_t i = 0; i < expr->args.count; i++)
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE)
      kt_fail_code(
        s->c, expr->location, KJIT_ERROR_TYPE, KJIT_CODE_ARRAY_ASSIGNED,
        "a slice of `%s` cannot be assigned, because it is a view; assign one element at a time",
        base->kind == KJ_EXPR_DECL ? base->decl->name : "the array");
  kjit_type type = value->kind == KJ_T_VIEW ? value->x->type : value->type;
  size_t given = value->kind == KJ_T_VIEW ? value->args.count : expr->args.count;
  kt_fail_code(s->c, expr->location, KJIT_ERROR_TYPE, KJIT_CODE_ARRAY_ASSIGNED,
               "`%s` has %u dimensions (%s), got %zu %s; give one index for each dimension, "
               "because only a single element can be assigned",
               base->kind == KJ_EXPR_DECL ? base->decl->name : "the array",
               ki_type(s->c->types, type)->rank, kt_type_text(s->c, type), given,
               given == 1 ? "index" : "indices");
}

/* Returns the type of a value that consists of all elements in the array. */
static kjit_type value_type(kt_scope *s, kjit_type array)
{
  ki_type_info info = *ki_type(s->c->types, array);
  info.space = KJ_SPACE_VALUE;
  info.read_only = false;
  info.alignment_bytes = 0;
  return kt_intern_array(s, &info);
}

static void infer_part_place(kt_scope *s, const ki_expr *expr, kt_place *place)
{
  target t;
  infer_target(s, expr, &t);
  if (t.value && t.value->kind == KJ_T_MEMBER)
    t.place = (kt_place){ .array = t.value,
                          .type = value_type(s, t.value->type),
                          .is_array = true,
                          .location = expr->location };
  else if (t.value && t.whole != KJIT_ANY && !kt_is_array(s->c, t.value->type))
    fail_part(s, expr, t.whole);
  else if (t.value) fail_view(s, expr, t.value, t.whole);
  *place = t.place;
  if (!place->array) return;
  const ki_type_info *info = ki_type(s->c->types, place->array->type);
  if (!info->read_only && info->space != KJ_SPACE_CONST) return;
  const ki_expr *root = root_of(expr);
  kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` is read-only (%s) and cannot be changed",
          root->kind == KJ_EXPR_DECL ? root->decl->name : "the array",
          kt_type_text(s->c, place->array->type));
}

void kt_infer_place(kt_scope *s, const ki_expr *expr, kt_place *place)
{
  *place = (kt_place){ .location = expr->location };
  kt_count_work(s, expr->location);
  if (expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD) infer_part_place(s, expr, place);
  else if (expr->kind == KJ_EXPR_DECL) infer_name_place(s, expr, place);
  else
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "this expression cannot be assigned; only a `var`, an element of an array, or a field "
            "of these can");
}

/* ---- reading and writing lvalues ---- */

static void copy_list(kt_scope *s, kt_exprs *to, const kt_exprs *from)
{
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(s->arena, to, kt_copy_texpr(s, from->items[i]));
}

static kt_expr *load_whole(kt_scope *s, const kt_place *place)
{
  if (place->var && place->var->type == KJIT_ANY) kt_wait_for_type(s, place->decl, place->location);
  if (place->var) return kt_make_var(s, place->var, place->location);
  kt_exprs indices = { 0 };
  copy_list(s, &indices, &place->indices);
  return kt_new_load(s, kt_copy_texpr(s, place->array), &indices, place->location);
}

static kt_expr *take_step(kt_scope *s, kt_expr *whole, const kt_path_step *step,
                          kj_location location)
{
  if (step->indices.count == 0) return kt_make_item(s, whole, step->component, location);
  kt_exprs indices = { 0 };
  copy_list(s, &indices, &step->indices);
  return kt_take_part(s, whole, &indices, location);
}

kt_expr *kt_load_place(kt_scope *s, const kt_place *place)
{
  if (place->is_array) return kt_copy_texpr(s, place->array);
  kt_expr *value = load_whole(s, place);
  for (size_t i = 0; i < place->steps.count; i++)
    value = take_step(s, value, &place->steps.items[i], place->location);
  return value;
}

/* Returns the whole value with one part replaced. The steps from steps[at] on lead to that part. */
static kt_expr *exchange(kt_scope *s, kt_expr *whole, const kt_place *place, size_t at,
                         kt_expr *value)
{
  if (at == place->steps.count) return value;
  const kt_path_step *step = &place->steps.items[at];
  kt_expr *insert = kt_new_texpr(s->c, KJ_T_INSERT, whole->type, place->location);
  insert->x = whole;
  insert->dimension = step->component;
  copy_list(s, &insert->args, &step->indices);
  bool is_last = at + 1 == place->steps.count;
  insert->y = is_last ? value
                      : exchange(s, take_step(s, kt_copy_texpr(s, whole), step, place->location),
                                 place, at + 1, value);
  return insert;
}

static const char *describe(const kt_place *place)
{
  return place->steps.count || (place->array && place->array->kind == KJ_T_MEMBER) ? "the field"
                                                                                   : "the element";
}

static kt_stmt *new_store(kt_scope *s, kt_expr *array, kt_exprs indices, kt_expr *value,
                          kj_location location)
{
  kt_stmt *store = kt_new_tstmt(s->c, KJ_TS_STORE, location);
  store->array = array;
  store->indices = indices;
  store->value = value;
  return store;
}

/* Stores an array inside a struct element by element. All elements are read before the first one is
 * written. */
static void store_elements(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, place->type);
  kt_place kept = *place;
  int64_t count = (int64_t)ki_element_count(info);
  value = kt_keep_value(s, value);
  kt_keep_place(s, &kept);
  for (int64_t i = 0; i < count; i++) {
    kt_exprs indices = kt_indices_of(s, info, i, location),
             same = kt_indices_of(s, info, i, location);
    kt_emit(s, new_store(s, kt_copy_texpr(s, kept.array), indices,
                         kt_take_part(s, kt_copy_texpr(s, value), &same, location), location));
  }
}

void kt_store_place(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location)
{
  if (place->var && place->steps.count == 0) {
    kt_assign_variable(s, place, value, location);
    return;
  }
  value = kt_fit_value(s, value, place->type, describe(place), value->location);
  if (place->is_array) {
    store_elements(s, place, value, location);
    return;
  }
  if (place->steps.count) value = exchange(s, load_whole(s, place), place, 0, value);
  if (place->var) {
    kt_place whole = *place;
    whole.steps.count = 0;
    kt_assign_variable(s, &whole, value, location);
    return;
  }
  kt_emit(s, new_store(s, place->array, place->indices, value, location));
}

/* Fields, and places: what can be assigned, handed to an atomic or have its address taken.
 *
 * A part of something in memory is an element of an array too: a field of a[i] is the only element
 * of MEMBER(VIEW(a, i)), so that whatever accesses memory knows arrays only. A part of a variable
 * is the variable with a path of steps to the part; assigning it assigns the variable, with that
 * part exchanged. */
#include <string.h>

#include "ir/habits.h"
#include "typing/infer.h"

/* ---- parts of memory ---- */

static kjit_type intern(kj_scope *s, const kj_type_info *info)
{
  kjit_type type = kj_intern_array(s->c->types, info);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static uint32_t element_alignment(kj_scope *s, const kj_type_info *array)
{
  return array->alignment_bytes ? array->alignment_bytes
                                : kj_alignment(s->c->types, array->element);
}

/* The element at the indices as an array without dimensions. */
static kj_texpr *make_only(kj_scope *s, kj_texpr *array, const kj_texprs *indices,
                           kj_location location)
{
  kj_slice slices[KJ_MAX_RANK] = { 0 };
  for (size_t i = 0; i < indices->count; i++)
    slices[i] = (kj_slice){ .is_index = true, .start = indices->items[i] };
  return indices->count ? kj_make_view(s, array, slices, location) : array;
}

static kj_texpr *make_member(kj_scope *s, kj_texpr *only, kj_component component,
                             kj_location location)
{
  const kj_type_info *from = kj_type(s->c->types, only->type),
                     *part = kj_type(s->c->types, component.type);
  kj_type_info info = { .element = component.type,
                        .layout = KJIT_LAYOUT_C,
                        .space = from->space,
                        .read_only = from->read_only,
                        .is_static = true };
  info.alignment_bytes = kj_alignment_at(element_alignment(s, from), component.offset_bytes);
  if (part->class_ == KJ_CLASS_ARRAY) {
    info.element = part->element;
    info.rank = part->rank;
    memcpy(info.extents, part->extents, sizeof info.extents);
    info.alignment_bytes =
      kj_alignment_at(info.alignment_bytes, kj_type(s->c->types, part->element)->size_bytes);
  }
  kj_texpr *member = kj_new_texpr(s->c, KJ_T_MEMBER, intern(s, &info), location);
  member->x = only;
  member->dimension = component.index;
  return member;
}

static kj_texpr *new_load(kj_scope *s, kj_texpr *array, const kj_texprs *indices,
                          kj_location location)
{
  kj_texpr *load =
    kj_new_texpr(s->c, KJ_T_LOAD, kj_type(s->c->types, array->type)->element, location);
  load->x = array;
  load->args = *indices;
  return load;
}

/* A part of an element, as a value; arrays inside structs are named, not read. */
static kj_texpr *read_member(kj_scope *s, kj_texpr *array, const kj_texprs *indices,
                             kj_component component, kj_location location)
{
  kj_texpr *member = make_member(s, make_only(s, array, indices, location), component, location);
  if (kj_is_value_array(s->c, component.type)) return member;
  return new_load(s, member, &(kj_texprs){ 0 }, location);
}

/* ---- pointers ---- */

kj_texpr *kj_make_pointed(kj_scope *s, kj_texpr *pointer, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, pointer->type);
  kj_type_info array = { .element = info->element,
                         .rank = 1,
                         .layout = KJIT_LAYOUT_C,
                         .space = KJ_SPACE_GENERIC,
                         .read_only = info->read_only };
  kj_texpr *pointed = kj_new_texpr(s->c, KJ_T_POINTED, intern(s, &array), location);
  pointed->x = pointer;
  return pointed;
}

static kj_texprs first_index(kj_scope *s, kj_location location)
{
  kj_texprs indices = { 0 };
  KJ_PUSH(s->arena, &indices, kj_new_integer(s, KJIT_INDEX, 0, location));
  return indices;
}

/* ---- fields as values ---- */

static const char *list_fields(kj_scope *s, kjit_type type)
{
  enum { MOST_LISTED = 12 };
  const kj_type_info *info = kj_type(s->c->types, type);
  const char *text = "";
  for (uint32_t i = 0; i < info->count && i < MOST_LISTED; i++)
    text = kj_format(s->arena, "%s%s`.%s`", text, i ? ", " : "", info->field_names[i]);
  return info->count > MOST_LISTED ? kj_format(s->arena, "%s ...", text) : text;
}

static _Noreturn void fail_array_field(kj_scope *s, const kj_expr *expr)
{
  static const char *const properties[] = { "shape", "strides", "size", "ndim" };
  kj_near near = { .name = expr->name };
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
    kj_consider(&near, properties[i]);
  if (strcmp(expr->name, "dtype") == 0)
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "the element type of an array is `dtype(a)`");
  if (near.best)
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "there is no `.%s`; did you mean `.%s`?",
            expr->name, near.best);
  kj_fail(s->c, expr->location, KJIT_ERROR_NAME,
          "an array has no `.%s`: it has `.shape`, `.strides`, `.size`, `.ndim` and `.T`",
          expr->name);
}

static _Noreturn void fail_field(kj_scope *s, const kj_expr *expr, kjit_type type)
{
  if (kj_is_array(s->c, type)) fail_array_field(s, expr);
  if (kj_is_pointer(s->c, type)) type = kj_type(s->c->types, type)->element;
  const char *text = kj_type_text(s->c, type);
  if (kj_is_struct(s->c, type)) {
    const kj_type_info *info = kj_type(s->c->types, type);
    kj_near near = { .name = expr->name };
    for (uint32_t i = 0; i < info->count; i++) kj_consider(&near, info->field_names[i]);
    if (near.best)
      kj_fail(s->c, expr->location, KJIT_ERROR_NAME,
              "struct `%s` has no field `%s`; did you mean `%s`?", text, expr->name, near.best);
  }
  if (kj_is_struct(s->c, type))
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "struct `%s` has no field `%s`: it has %s", text,
            expr->name, list_fields(s, type));
  if (kj_is_complex(s->c, type))
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`: it has `.real` and `.imag`",
            text, expr->name);
  if (kj_is_vector(s->c, type)) {
    static const char *const lanes[] = { "`.x` and `.y`", "`.x`, `.y` and `.z`",
                                         "`.x`, `.y`, `.z` and `.w`" };
    uint32_t count = kj_type(s->c->types, type)->count;
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`: it has %s", text, expr->name,
            lanes[count < 4 ? count - 2 : 2]);
  }
  kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`", text, expr->name);
}

kj_texpr *kj_read_component(kj_scope *s, kj_texpr *value, kj_component component,
                            kj_location location)
{
  /* lanes come with one access */
  bool is_part_of_memory = value->kind == KJ_T_LOAD && !kj_is_vector(s->c, value->type);
  return is_part_of_memory ? read_member(s, value->x, &value->args, component, location)
                           : kj_make_item(s, value, component.index, location);
}

kj_texpr *kj_infer_field(kj_scope *s, const kj_expr *expr)
{
  kj_component component;
  if (expr->x->kind == KJ_EXPR_BUILTIN)
    return kj_infer_builtin_name(s, expr, expr->x->builtin, expr->name);
  kj_texpr *x = kj_infer_expr(s, expr->x);
  if (kj_is_array(s->c, x->type) || kj_is_value_array(s->c, x->type)) {
    kj_texpr *property = kj_infer_property(s, expr, x);
    if (!property) fail_array_field(s, expr);
    return property;
  }
  if (kj_find_component(s->c, x->type, expr->name, &component))
    return kj_read_component(s, x, component, expr->location);
  if (kj_is_vector(s->c, x->type)) {
    kj_texpr *lanes = kj_infer_swizzle(s, expr, x);
    if (lanes) return lanes;
  }
  bool is_pointed =
    kj_is_pointer(s->c, x->type) &&
    kj_find_component(s->c, kj_type(s->c->types, x->type)->element, expr->name, &component);
  if (!is_pointed) fail_field(s, expr, x->type);
  kj_texprs first = first_index(s, expr->location);
  return read_member(s, kj_make_pointed(s, x, expr->location), &first, component, expr->location);
}

/* ---- what a place is a part of ---- */

/* One of the two. What a value is made of keeps its value, but arrays and pointers among its parts
 * lead to places. */
typedef struct target {
  kj_texpr *value; /* an array, a pointer, or what is no place */
  kjit_type whole; /* value is a part of a value of this type; KJIT_ANY: of none */
  kj_place place;  /* of a type that is no array */
} target;

static void infer_target(kj_scope *s, const kj_expr *expr, target *t);

static const kj_expr *root_of(const kj_expr *expr)
{
  while (expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD) expr = expr->x;
  return expr;
}

/* What an error is about: a name, or "this". */
static const char *spell(kj_scope *s, const kj_expr *expr)
{
  return expr->kind == KJ_EXPR_DECL ? kj_format(s->arena, "`%s`", expr->decl->name) : "this";
}

static kjit_type type_of_let(const kj_scope *s, const kj_decl *let)
{
  const kj_meaning *meaning = &s->meanings[let->index];
  return meaning->var ? meaning->var->type : meaning->value->type;
}

/* A part of a value is assigned. */
static _Noreturn void fail_part(kj_scope *s, const kj_expr *expr, kjit_type whole)
{
  const kj_expr *root = root_of(expr);
  kj_decl_kind kind = root->kind == KJ_EXPR_DECL ? root->decl->kind : KJ_DECL_FUNCTION;
  if (kj_is_tuple(s->c, whole))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "the items of a tuple (%s) cannot be changed one by one: make another tuple",
            kj_type_text(s->c, whole));
  if (kind == KJ_DECL_LET)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a value (%s) that cannot be changed: declare it `var`", root->decl->name,
            kj_type_text(s->c, type_of_let(s, root->decl)));
  if (kind == KJ_DECL_PARAM)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "the parameter `%s` keeps its value: change a copy, `var copy = %s`", root->decl->name,
            root->decl->name);
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this is a part of a value (%s) and no place",
          kj_type_text(s->c, whole));
}

static void set_element(kj_scope *s, const kj_expr *expr, kj_texpr *array, kj_texprs indices,
                        target *t)
{
  const kj_type_info *info = kj_type(s->c->types, array->type);
  *t = (target){ .place = { .array = array,
                            .indices = indices,
                            .type = info->element,
                            .location = expr->location } };
}

static void add_step(kj_scope *s, target *t, kj_step step)
{
  KJ_PUSH(s->arena, &t->place.steps, step);
  t->place.type = step.type;
}

/* Pointers are followed from their value, wherever it is kept. */
static void read_pointer(kj_scope *s, target *t)
{
  if (t->value || !kj_is_pointer(s->c, t->place.type)) return;
  *t = (target){ .value = kj_load_place(s, &t->place) };
}

/* Parts of a variable that are no places are read from it. */
static void read_tuple(kj_scope *s, target *t)
{
  if (t->value || !kj_is_tuple(s->c, t->place.type)) return;
  *t = (target){ .value = kj_load_place(s, &t->place) };
}

static void infer_index_target(kj_scope *s, const kj_expr *expr, target *t)
{
  infer_target(s, expr->x, t);
  read_pointer(s, t);
  read_tuple(s, t);
  kjit_type type = t->value ? t->value->type : t->place.type;
  bool has_parts =
    kj_is_vector(s->c, type) || kj_is_value_array(s->c, type) || kj_is_tuple(s->c, type);
  bool is_memory = kj_is_array(s->c, type) || kj_is_pointer(s->c, type);
  if (!has_parts && !is_memory)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "only elements of arrays can be assigned, %s is %s", spell(s, expr->x),
            kj_type_text(s->c, type));
  if (!t->value) {
    kj_step step = { .indices = kj_infer_part_indices(s, expr, type),
                     .type = kj_type(s->c->types, type)->element };
    add_step(s, t, step);
    return;
  }
  kj_texpr *element = kj_index_value(s, expr, t->value);
  if (is_memory && element->kind == KJ_T_LOAD) set_element(s, expr, element->x, element->args, t);
  else *t = (target){ .value = element, .whole = has_parts ? type : KJIT_ANY };
}

static void infer_field_target(kj_scope *s, const kj_expr *expr, target *t)
{
  kj_component component;
  infer_target(s, expr->x, t);
  read_pointer(s, t);
  if (t->value && kj_is_array(s->c, t->value->type)) {
    t->value = kj_infer_property(s, expr, t->value);
    if (!t->value) fail_array_field(s, expr);
    if (!kj_is_array(s->c, t->value->type))
      kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`.%s` cannot be changed", expr->name);
    return;
  }
  if (t->value && kj_is_pointer(s->c, t->value->type))
    set_element(s, expr, kj_make_pointed(s, t->value, expr->location),
                first_index(s, expr->location), t);
  kjit_type type = t->value ? t->value->type : t->place.type;
  if (!kj_find_component(s->c, type, expr->name, &component)) {
    bool are_lanes =
      kj_is_vector(s->c, type) && expr->name[1] && strspn(expr->name, "xyzw") == strlen(expr->name);
    if (are_lanes)
      kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
              "`.%s` is no place: assign one lane, or the whole vector", expr->name);
    fail_field(s, expr, type);
  }
  if (t->value) {
    *t =
      (target){ .value = kj_read_component(s, t->value, component, expr->location), .whole = type };
    return;
  }
  if (t->place.var || t->place.steps.count) {
    add_step(s, t, (kj_step){ .component = component.index, .type = component.type });
    return;
  }
  kj_texpr *member = make_member(s, make_only(s, t->place.array, &t->place.indices, expr->location),
                                 component, expr->location);
  if (kj_is_value_array(s->c, component.type)) *t = (target){ .value = member };
  else set_element(s, expr, member, (kj_texprs){ 0 }, t);
}

/* A name whose parts are changed: a var, or a shared or local scalar; anything else is looked at as
 * a value. */
static void infer_name_target(kj_scope *s, const kj_expr *expr, target *t)
{
  const kj_decl *decl = expr->decl;
  bool is_local = s->meanings && decl->kind != KJ_DECL_CONST && decl->kind != KJ_DECL_FUNCTION;
  const kj_meaning *meaning = is_local ? &s->meanings[decl->index] : NULL;
  bool is_variable = meaning && meaning->kind == KJ_MEANS_VARIABLE;
  if (is_variable && meaning->is_scalar)
    set_element(s, expr, kj_make_var(s, meaning->var, expr->location), (kj_texprs){ 0 }, t);
  else if (is_variable && meaning->var->kind == KJ_V_VAR) {
    s->guesses[decl->index].was_read = true;
    *t = (target){ .place = { .var = meaning->var,
                              .decl = decl,
                              .type = meaning->var->type,
                              .location = expr->location } };
  } else *t = (target){ .value = kj_infer_expr(s, expr) };
}

static void infer_target(kj_scope *s, const kj_expr *expr, target *t)
{
  kj_count_work(s->inference, expr->location);
  bool is_position = expr->kind == KJ_EXPR_FIELD && expr->x->kind == KJ_EXPR_BUILTIN;
  if (expr->kind == KJ_EXPR_DECL) infer_name_target(s, expr, t);
  else if (expr->kind == KJ_EXPR_INDEX) infer_index_target(s, expr, t);
  else if (expr->kind == KJ_EXPR_FIELD && !is_position) infer_field_target(s, expr, t);
  else *t = (target){ .value = kj_infer_expr(s, expr) };
}

/* ---- places ---- */

static void infer_name_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  const kj_decl *decl = expr->decl;
  bool is_local = s->meanings && decl->kind != KJ_DECL_CONST && decl->kind != KJ_DECL_FUNCTION;
  const kj_meaning *meaning = is_local ? &s->meanings[decl->index] : NULL;
  place->decl = decl;
  if (meaning && meaning->is_scalar) {
    place->array = kj_make_var(s, meaning->var, expr->location);
    place->type = kj_type(s->c->types, meaning->var->type)->element;
    return;
  }
  if (meaning && meaning->kind == KJ_MEANS_VARIABLE && meaning->var->kind == KJ_V_VAR) {
    place->var = meaning->var;
    place->type = meaning->var->type;
    return;
  }
  if (meaning && meaning->var && kj_is_array(s->c, meaning->var->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is an array: assign its elements, `%s[i] = ...`", decl->name, decl->name);
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
          "`%s` cannot be assigned: only what is declared with `var` can", decl->name);
}

/* whole: as in target. */
static _Noreturn void fail_view(kj_scope *s, const kj_expr *expr, const kj_texpr *value,
                                kjit_type whole)
{
  const kj_expr *base = expr->x;
  if (!kj_is_array(s->c, value->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this is a value (%s) and no place",
            kj_type_text(s->c, value->type));
  if (expr->kind == KJ_EXPR_FIELD)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`.%s` is an array (%s): assign its elements",
            expr->name, kj_type_text(s->c, value->type));
  if (whole != KJIT_ANY)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this is an array (%s): assign its elements",
            kj_type_text(s->c, value->type));
  for (size_t i = 0; i < expr->args.count; i++)
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE)
      kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
              "a slice of `%s` is a view: only one element can be assigned",
              base->kind == KJ_EXPR_DECL ? base->decl->name : "the array");
  kjit_type type = value->kind == KJ_T_VIEW ? value->x->type : value->type;
  size_t given = value->kind == KJ_T_VIEW ? value->args.count : expr->args.count;
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
          "`%s` has %u dimensions (%s), got %zu %s: only one element can be assigned",
          base->kind == KJ_EXPR_DECL ? base->decl->name : "the array",
          kj_type(s->c->types, type)->rank, kj_type_text(s->c, type), given,
          given == 1 ? "index" : "indices");
}

/* The type of the array's elements together. */
static kjit_type value_type(kj_scope *s, kjit_type array)
{
  kj_type_info info = *kj_type(s->c->types, array);
  info.space = KJ_SPACE_VALUE;
  info.read_only = false;
  info.alignment_bytes = 0;
  return intern(s, &info);
}

static void infer_part_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  target t;
  infer_target(s, expr, &t);
  if (t.value && t.value->kind == KJ_T_MEMBER)
    t.place = (kj_place){ .array = t.value,
                          .type = value_type(s, t.value->type),
                          .is_array = true,
                          .location = expr->location };
  else if (t.value && t.whole != KJIT_ANY && !kj_is_array(s->c, t.value->type))
    fail_part(s, expr, t.whole);
  else if (t.value) fail_view(s, expr, t.value, t.whole);
  *place = t.place;
  if (!place->array) return;
  const kj_type_info *info = kj_type(s->c->types, place->array->type);
  if (!info->read_only && info->space != KJ_SPACE_CONST) return;
  const kj_expr *root = root_of(expr);
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` is read-only (%s)",
          root->kind == KJ_EXPR_DECL ? root->decl->name : "the array",
          kj_type_text(s->c, place->array->type));
}

void kj_infer_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  *place = (kj_place){ .location = expr->location };
  kj_count_work(s->inference, expr->location);
  if (expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD) infer_part_place(s, expr, place);
  else if (expr->kind == KJ_EXPR_DECL) infer_name_place(s, expr, place);
  else
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "this is no place: a var, an element of an array or a field of these is");
}

/* ---- reading and writing them ---- */

static void copy_list(kj_scope *s, kj_texprs *to, const kj_texprs *from)
{
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(s->arena, to, kj_copy_texpr(s, from->items[i]));
}

static kj_texpr *load_whole(kj_scope *s, const kj_place *place)
{
  if (place->var) return kj_make_var(s, place->var, place->location);
  kj_texprs indices = { 0 };
  copy_list(s, &indices, &place->indices);
  return new_load(s, kj_copy_texpr(s, place->array), &indices, place->location);
}

static kj_texpr *take_step(kj_scope *s, kj_texpr *whole, const kj_step *step, kj_location location)
{
  if (step->indices.count == 0) return kj_make_item(s, whole, step->component, location);
  kj_texprs indices = { 0 };
  copy_list(s, &indices, &step->indices);
  return kj_take_part(s, whole, &indices, location);
}

kj_texpr *kj_load_place(kj_scope *s, const kj_place *place)
{
  if (place->is_array) return kj_copy_texpr(s, place->array);
  kj_texpr *value = load_whole(s, place);
  for (size_t i = 0; i < place->steps.count; i++)
    value = take_step(s, value, &place->steps.items[i], place->location);
  return value;
}

/* The whole with the part behind the steps from `at` on exchanged. */
static kj_texpr *exchange(kj_scope *s, kj_texpr *whole, const kj_place *place, size_t at,
                          kj_texpr *value)
{
  if (at == place->steps.count) return value;
  const kj_step *step = &place->steps.items[at];
  kj_texpr *insert = kj_new_texpr(s->c, KJ_T_INSERT, whole->type, place->location);
  insert->x = whole;
  insert->dimension = step->component;
  copy_list(s, &insert->args, &step->indices);
  bool is_last = at + 1 == place->steps.count;
  insert->y = is_last ? value
                      : exchange(s, take_step(s, kj_copy_texpr(s, whole), step, place->location),
                                 place, at + 1, value);
  return insert;
}

static const char *describe(const kj_place *place)
{
  return place->steps.count || (place->array && place->array->kind == KJ_T_MEMBER) ? "the field"
                                                                                   : "the element";
}

static kj_tstmt *new_store(kj_scope *s, kj_texpr *array, kj_texprs indices, kj_texpr *value,
                           kj_location location)
{
  kj_tstmt *store = kj_new_tstmt(s->c, KJ_TS_STORE, location);
  store->array = array;
  store->indices = indices;
  store->value = value;
  return store;
}

/* All are read before the first is written. */
static void store_elements(kj_scope *s, const kj_place *place, kj_texpr *value,
                           kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, place->type);
  kj_place kept = *place;
  int64_t count = (int64_t)kj_element_count(info);
  value = kj_keep_value(s, value);
  kj_keep_place(s, &kept);
  for (int64_t i = 0; i < count; i++) {
    kj_texprs indices = kj_indices_of(s, info, i, location),
              same = kj_indices_of(s, info, i, location);
    kj_emit(s, new_store(s, kj_copy_texpr(s, kept.array), indices,
                         kj_take_part(s, kj_copy_texpr(s, value), &same, location), location));
  }
}

void kj_store_place(kj_scope *s, const kj_place *place, kj_texpr *value, kj_location location)
{
  if (place->var && place->steps.count == 0) {
    kj_assign_variable(s, place, value, location);
    return;
  }
  value = kj_fit_value(s, value, place->type, describe(place), value->location);
  if (place->is_array) {
    store_elements(s, place, value, location);
    return;
  }
  if (place->steps.count) value = exchange(s, load_whole(s, place), place, 0, value);
  if (place->var) {
    kj_place whole = *place;
    whole.steps.count = 0;
    kj_assign_variable(s, &whole, value, location);
    return;
  }
  kj_emit(s, new_store(s, place->array, place->indices, value, location));
}

/* ---- places that are used twice ---- */

static void keep_list(kj_scope *s, kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    kj_texpr *index = list->items[i];
    list->items[i] = index->kind == KJ_T_VAR ? index : kj_keep_value(s, index);
  }
}

/* What the array is made of is kept, not the array: its memory stays known. */
static kj_texpr *keep_array(kj_scope *s, kj_texpr *array)
{
  if (kj_is_stable(array)) return array;
  bool is_part = array->kind == KJ_T_MEMBER || array->kind == KJ_T_POINTED ||
                 (array->kind == KJ_T_VIEW && !array->dimensions);
  if (!is_part) return kj_keep_value(s, array);
  array->x = array->kind == KJ_T_POINTED ? kj_keep_value(s, array->x) : keep_array(s, array->x);
  keep_list(s, &array->args);
  return array;
}

void kj_keep_place(kj_scope *s, kj_place *place)
{
  if (place->array) place->array = keep_array(s, place->array);
  keep_list(s, &place->indices);
  for (size_t i = 0; i < place->steps.count; i++) keep_list(s, &place->steps.items[i].indices);
}

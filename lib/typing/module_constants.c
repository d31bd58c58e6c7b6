/* Constants of modules: scalars, tuples and arrays. The elements of a constant array without a type
 * are weak: each use determines their type.
 *
 * An extern constant without a value exists only in code that is compiled ahead of time. It becomes
 * a variable in constant memory, which the program that loads the code defines. */
#include <math.h>
#include <string.h>

#include "typing/infer.h"

enum { ELEMENT_LIMIT = 1 << 20 };

/* ---- reading a declaration ---- */

static kt_expr *read_element(kt_scope *s, kjit_type type, const char *at, kj_location location)
{
  ki_value value;
  if (ki_decode_value(type, at, &value)) return kt_new_value(s, value, location);
  kt_exprs parts = { 0 };
  for (uint32_t i = 0; i < ki_value_part_count(s->c->types, type); i++) {
    ki_component part = ki_get_value_part(s->c->types, type, i);
    KJ_PUSH(s->arena, &parts, read_element(s, part.type, at + part.offset_bytes, location));
  }
  return kt_make_composed(s, type, &parts, location);
}

static void read_data(kt_scope *s, const ki_decl *decl, kt_constant *constant)
{
  int64_t count = 1;
  constant->element = decl->data_element;
  constant->rank = decl->rank;
  constant->is_array = decl->rank > 0;
  for (uint32_t i = 0; i < decl->rank; i++) {
    constant->extents[i] = decl->extents[i];
    if (__builtin_mul_overflow(count, decl->extents[i], &count) || count < 0 ||
        count > ELEMENT_LIMIT)
      kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
              "a constant array can have at most %d elements", ELEMENT_LIMIT);
  }
  size_t size = ki_type(s->c->types, constant->element)->size_bytes;
  for (int64_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &constant->elements,
            read_element(s, constant->element, (const char *)decl->data + (size_t)i * size,
                         decl->location));
}

/* Returns whether the value is a constant or consists of constants, for example `Vec3(1, 2, 3)` or
 * a tuple. */
static bool is_known(const kt_scope *s, const kt_expr *value)
{
  if (kt_is_constant(value)) return true;
  if (value->kind != KJ_T_TUPLE) return false;
  for (size_t i = 0; i < value->args.count; i++)
    if (!is_known(s, value->args.items[i])) return false;
  return true;
}

/* Reads an aggregate. At each nesting level, the first aggregate determines the extent, and all
 * others must have the same extent. */
static void read_aggregate(kt_scope *s, const ki_expr *expr, kt_constant *constant, uint32_t depth)
{
  KJ_ASSERT(depth <= KJ_MAX_RANK);
  if (expr->kind != KJ_EXPR_AGGREGATE) {
    if (depth != constant->rank)
      kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
              "all elements of a constant array must have the same nesting depth: expected `{`");
    kt_count_work(s, expr->location);
    kt_expr *element = kt_infer_expr(s, expr);
    if (!is_known(s, element))
      kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
              "an element of a constant must be known at compile time");
    if (constant->is_array && kt_is_tuple(s->c, element->type))
      kt_fail(
        s->c, expr->location, KJIT_ERROR_TYPE,
        "the elements of a constant array must be scalars, vectors or structs; this is a tuple");
    KJ_PUSH(s->arena, &constant->elements, element);
    return;
  }
  if (depth >= constant->rank)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "all elements of a constant array must have the same nesting depth: expected a value");
  if ((int64_t)expr->args.count != constant->extents[depth])
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "expected %lld values, got %zu",
            (long long)constant->extents[depth], expr->args.count);
  for (size_t i = 0; i < expr->args.count; i++)
    read_aggregate(s, expr->args.items[i], constant, depth + 1);
}

static void measure_aggregate(kt_scope *s, const ki_expr *expr, kt_constant *constant)
{
  while (expr && expr->kind == KJ_EXPR_AGGREGATE) {
    if (constant->rank == KJ_MAX_RANK)
      kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions",
              KJ_MAX_RANK);
    constant->extents[constant->rank++] = (int64_t)expr->args.count;
    expr = expr->args.count ? expr->args.items[0] : NULL;
  }
}

/* Converts the elements to one type: the annotated type, or their common type. */
static void unify_elements(kt_scope *s, kt_constant *constant, kjit_type annotation)
{
  kjit_type type = annotation;
  for (size_t i = 0; i < constant->elements.count && annotation == KJIT_ANY; i++) {
    const kt_expr *element = constant->elements.items[i];
    type = i == 0 ? element->type : kt_join_values(s, type, element->type, element->location);
    if (type == KJIT_ANY)
      kt_fail(s->c, element->location, KJIT_ERROR_TYPE,
              "no type can represent both this value and the values before it");
  }
  for (size_t i = 0; i < constant->elements.count; i++) {
    kt_expr **element = &constant->elements.items[i];
    if (kt_is_tuple(s->c, type)) {
      if (annotation != KJIT_ANY)
        *element = kt_fit_annotation(s, *element, type, "the constant", (*element)->location);
    } else if (ki_is_weak(type)) *element = kt_convert(s, *element, type, (*element)->location);
    else
      *element =
        kt_fit_value(s, *element, type, "an element of the constant", (*element)->location);
    if (!is_known(s, *element))
      kt_fail(s->c, (*element)->location, KJIT_ERROR_TYPE,
              "an element of a constant must be known at compile time");
  }
  constant->element = type;
}

static void check_extents(kt_scope *s, const ki_decl *decl, kt_constant *constant)
{
  const ki_exprs *extents = &decl->type_expr->extents;
  /* an array without values has its type's rank */
  const uint32_t measured = constant->rank;
  if (measured && !constant->extents[measured - 1]) constant->rank = (uint32_t)extents->count;
  if (extents->count != constant->rank)
    kt_fail(s->c, decl->location, KJIT_ERROR_TYPE,
            "`%s` is declared with %zu dimensions, but its value has %u", decl->name,
            extents->count, constant->rank);
  for (size_t i = 0; i < extents->count; i++) {
    int64_t extent = kt_infer_constant(s, extents->items[i], "an extent of a constant");
    if (i >= measured && extent >= 0) constant->extents[i] = extent;
    if (extent != constant->extents[i])
      kt_fail(s->c, extents->items[i]->location, KJIT_ERROR_TYPE,
              "`%s` is declared with %lld elements, but its value has %lld", decl->name,
              (long long)extent, (long long)constant->extents[i]);
  }
}

static void read_value(kt_scope *s, const ki_decl *decl, kt_constant *constant)
{
  const ki_type_expr *written = decl->type_expr;
  kjit_type annotation = KJIT_ANY;
  constant->is_array = decl->value->kind == KJ_EXPR_AGGREGATE;
  if (constant->is_array) measure_aggregate(s, decl->value, constant);
  if (written) {
    bool is_array = written->kind == KJ_TYPE_STATIC_ARRAY;
    annotation = kt_infer_type(s, is_array ? written->element : written);
    bool is_value =
      ki_is_element(s->c->types, annotation) || (!is_array && kt_is_tuple(s->c, annotation));
    if (!is_value || is_array != constant->is_array)
      kt_fail(s->c, decl->location, KJIT_ERROR_TYPE, "write the type of `%s` as %s: `%s`",
              decl->name, constant->is_array ? "an array with its extents" : "a scalar or tuple",
              constant->is_array ? "f32[3, 3]" : "f32");
    if (is_array) check_extents(s, decl, constant);
  }
  read_aggregate(s, decl->value, constant, 0);
  unify_elements(s, constant, annotation);
}

/* Reads a constant without a value, which the program that loads the code defines. It must have a
 * type. */
static void read_outside(kt_scope *s, const ki_decl *decl, kt_constant *constant)
{
  const ki_type_expr *written = decl->type_expr;
  bool is_array = written->kind == KJ_TYPE_STATIC_ARRAY;
  kt_warn(s->c, decl->location, KJIT_SEVERITY_REMARK,
          "`%s` has no value at compile time: the program that loads the code sets it", decl->name);
  constant->is_outside = true;
  constant->is_array = is_array;
  constant->element = kt_infer_type(s, is_array ? written->element : written);
  if (!ki_is_element(s->c->types, constant->element))
    kt_fail(s->c, decl->location, KJIT_ERROR_TYPE,
            "the program that loads the code sets `%s`, so the type is a scalar, a vector, a "
            "struct, or an array of these with extents, not %s",
            decl->name, kt_type_text(s->c, constant->element));
  constant->rank = is_array ? (uint32_t)written->extents.count : 0;
  for (uint32_t i = 0; i < constant->rank; i++) {
    constant->extents[i] =
      kt_infer_constant(s, written->extents.items[i], "an extent of a constant");
    if (constant->extents[i] < 1)
      kt_fail(s->c, written->extents.items[i]->location, KJIT_ERROR_TYPE,
              "an extent of `%s` must be at least 1, not %lld", decl->name,
              (long long)constant->extents[i]);
  }
}

const kt_constant *kt_get_constant(kt_scope *s, const ki_decl *decl)
{
  kt_inference *inference = s->inference;
  kt_constant *known = inference->constants[decl->index];
  if (known && known->is_being_made)
    kt_fail(s->c, decl->location, KJIT_ERROR_TYPE, "the constant `%s` depends on itself",
            decl->name);
  if (known) return known;
  bool is_outside = !decl->value && !decl->data;
  if (is_outside && !s->c->request->is_ahead)
    kt_fail(s->c, decl->location, KJIT_ERROR_NAME,
            "extern constant `%s` has no value; set it with kjit_set_constant", decl->name);
  kt_constant *constant = inference->constants[decl->index] = KJ_NEW(s->arena, kt_constant);
  constant->is_being_made = true;
  constant->name = decl->name;
  /* A constant can refer only to other constants. It therefore has a scope without variables, which
   * does not depend on the function that uses it first. */
  kt_scope outside;
  kt_stmts ignored = { 0 };
  kt_init_scope(&outside, inference);
  outside.out = &ignored;
  if (is_outside) read_outside(&outside, decl, constant);
  else if (decl->value) read_value(&outside, decl, constant);
  else read_data(&outside, decl, constant);
  constant->is_being_made = false;
  return constant;
}

/* ---- uses ---- */

kjit_type kt_concrete_element(const kt_constant *constant)
{
  if (constant->element == KJ_WEAK_FLOAT) return KJIT_F64;
  if (constant->element != KJ_WEAK_INT) return constant->element;
  for (size_t i = 0; i < constant->elements.count; i++)
    if (!ki_integer_fits(KJIT_I32, constant->elements.items[i]->integer)) return KJIT_I64;
  return KJIT_I32;
}

static kjit_type array_type(kt_scope *s, const kt_constant *constant, kjit_type element)
{
  KJ_ASSERT(constant->rank <= KJ_MAX_RANK);
  ki_type_info info = { .element = element,
                        .rank = constant->rank,
                        .layout = KJIT_LAYOUT_C,
                        .read_only = true,
                        .space = KJ_SPACE_CONST,
                        .is_static = true };
  memcpy(info.extents, constant->extents, sizeof info.extents);
  kjit_type type = ki_intern_array(s->c->types, &info);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static void write_value(const kt_compilation *c, kjit_type type, const kt_expr *value, char *at)
{
  KJ_ASSERT(value->kind == KJ_T_CONST || value->kind == KJ_T_TUPLE);
  if (value->kind == KJ_T_CONST) {
    ki_encode_value((ki_value){ type, value->integer }, at);
    return;
  }
  for (uint32_t i = 0; i < value->args.count; i++) {
    ki_component part = ki_get_value_part(c->types, type, i);
    write_value(c, part.type, value->args.items[i], at + part.offset_bytes);
  }
}

static const void *make_data(kt_scope *s, const kt_constant *constant, kjit_type type)
{
  KJ_ASSERT(ki_type(s->c->types, type)->size_bytes);
  if (constant->is_outside) return NULL;
  size_t size = ki_type(s->c->types, type)->size_bytes;
  char *data = KJ_NEW_ARRAY(s->arena, char, size *(constant->elements.count + 1));
  for (size_t i = 0; i < constant->elements.count; i++) {
    kt_expr *element = constant->elements.items[i];
    write_value(s->c, type, kt_convert(s, element, type, element->location), data + i * size);
  }
  return data;
}

kt_expr *kt_make_constant_array(kt_scope *s, const kt_constant *constant, kjit_type element,
                                kj_location location)
{
  for (size_t i = 0; i < s->constant_uses.count; i++) {
    const kt_constant_use *use = &s->constant_uses.items[i];
    if (use->constant == constant && use->element == element)
      return kt_make_var(s, use->var, location);
  }
  kt_var *var = kt_add_variable(s, KJ_V_CONST, constant->name, array_type(s, constant, element),
                                location, KJ_LEVEL_GRID);
  var->data = make_data(s, constant, element);
  KJ_PUSH(s->arena, &s->constant_uses, ((kt_constant_use){ constant, element, var }));
  return kt_make_var(s, var, location);
}

/* Returns a constant array whose element type is not known yet. The array is a VAR node. Its
 * variable does not belong to an instance, and .var->lowered points to the constant. */
static kt_expr *make_weak_array(kt_scope *s, const kt_constant *constant, kj_location location)
{
  KJ_ASSERT(constant->is_array);
  kt_var *var = KJ_NEW(s->arena, kt_var);
  var->kind = KJ_V_CONST;
  var->type = array_type(s, constant, constant->element);
  var->lowered = (void *)(uintptr_t)constant;
  var->index = UINT32_MAX;
  return kt_make_var(s, var, location);
}

const kt_constant *kt_weak_constant(const kt_scope *s, const kt_expr *array)
{
  (void)s;
  return array->kind == KJ_T_VAR && array->var->kind == KJ_V_CONST &&
             array->var->index == UINT32_MAX
           ? array->var->lowered
           : NULL;
}

/* Loads a variable that is defined by the program that loads the code. The variable is an array of
 * rank 0. */
static kt_expr *load_outside(kt_scope *s, const kt_constant *constant, kj_location location)
{
  kt_expr *load = kt_new_texpr(s->c, KJ_T_LOAD, constant->element, location);
  load->x = kt_make_constant_array(s, constant, constant->element, location);
  return load;
}

kt_expr *kt_make_constant(kt_scope *s, const ki_decl *decl, kj_location location)
{
  const kt_constant *constant = kt_get_constant(s, decl);
  if (constant->is_outside && !constant->is_array) return load_outside(s, constant, location);
  if (constant->is_outside) return kt_make_constant_array(s, constant, constant->element, location);
  if (constant->is_array) return make_weak_array(s, constant, location);
  kt_expr *value = kt_copy_texpr(s, constant->elements.items[0]);
  value->location = location;
  return value;
}

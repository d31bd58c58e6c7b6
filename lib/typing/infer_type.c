/* Type inference of type expressions, of values that must fit an annotation, and of shared and
 * local arrays. */
#include "typing/infer.h"

enum { ALIGNMENT_LIMIT = 1024 };

static kjit_type element_of(kt_scope *s, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  return info->class_ == KJ_CLASS_ARRAY ? info->element : type;
}

kjit_type kt_intern_array(kt_scope *s, const ki_type_info *info)
{
  kjit_type type = ki_intern_array(s->c->types, info);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static kjit_type infer_array_type(kt_scope *s, const ki_type_expr *type)
{
  ki_type_info info = { .element = kt_infer_type(s, type->element),
                        .rank = type->rank,
                        .layout = type->layout,
                        .read_only = type->read_only };
  if (!ki_type(s->c->types, info.element)->size_bytes)
    kt_fail(s->c, type->location, KJIT_ERROR_TYPE,
            "the element type of an array must be a scalar, vector, struct or pointer, got %s",
            kt_type_text(s->c, info.element));
  return kt_intern_array(s, &info);
}

static kjit_type infer_tuple_type(kt_scope *s, const ki_type_expr *type)
{
  kjit_type *items = KJ_NEW_ARRAY(s->arena, kjit_type, type->items.count + 1);
  for (size_t i = 0; i < type->items.count; i++) items[i] = kt_infer_type(s, type->items.items[i]);
  return kt_tuple_type(s, items, (uint32_t)type->items.count, type->location);
}

static kjit_type infer_vector_type(kt_scope *s, const ki_type_expr *type)
{
  kjit_type element = kt_infer_type(s, type->element);
  int64_t lanes = kt_infer_constant(s, type->extents.items[0], "the number of lanes of a vector");
  if (!ki_has_vectors(s->c->types, element, (uint64_t)lanes))
    kt_fail(s->c, type->location, KJIT_ERROR_TYPE, "%s; this one has %lld of %s", ki_no_vector,
            (long long)lanes, kt_type_text(s->c, element));
  kjit_type made = ki_intern_vector(s->c->types, element, (uint32_t)lanes);
  if (made == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return made;
}

kjit_type kt_pointer_type(kt_scope *s, kjit_type element, bool read_only, kj_location location)
{
  if (ki_is_too_deep(s->c->types, element))
    kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "structs and pointers nest at most %d levels deep", KJ_MAX_TYPE_LEVELS);
  kjit_type type = ki_intern_pointer(s->c->types, element, read_only);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static kjit_type infer_pointer_type(kt_scope *s, const ki_type_expr *type)
{
  kjit_type element = kt_infer_type(s, type->element);
  if (!ki_is_element(s->c->types, element))
    kt_fail(s->c, type->location, KJIT_ERROR_TYPE,
            "a pointer must point to a scalar, a vector, a struct or a pointer, got %s",
            kt_type_text(s->c, element));
  return kt_pointer_type(s, element, type->read_only, type->location);
}

/* Returns the type that is passed for a type parameter. The type is known, because annotations are
 * evaluated after all type parameters are bound. */
static kjit_type type_of_parameter(kt_scope *s, const ki_type_expr *type)
{
  KJ_ASSERT(s->meanings && type->decl->is_type);
  const kt_meaning *meaning = &s->meanings[type->decl->index];
  KJ_ASSERT(meaning->kind == KJ_MEANS_TYPE);
  return meaning->type;
}

kjit_type kt_infer_type(kt_scope *s, const ki_type_expr *type)
{
  switch (KJ_AMONG(type->kind)) {
  case KJ_TYPE_FIXED: return type->type;
  case KJ_TYPE_DTYPE: return element_of(s, kt_infer_type_of(s, type->expr));
  case KJ_TYPE_ARRAY: return infer_array_type(s, type);
  case KJ_TYPE_TUPLE: return infer_tuple_type(s, type);
  case KJ_TYPE_STATIC_ARRAY:
    kt_fail(s->c, type->location, KJIT_ERROR_TYPE,
            "an array with extents is declared with `shared` or `local`");
  case KJ_TYPE_VECTOR: return infer_vector_type(s, type);
  case KJ_TYPE_POINTER: return infer_pointer_type(s, type);
  case KJ_TYPE_PARAMETER: return type_of_parameter(s, type);
  default:
    kt_fail(s->c, type->location, KJIT_ERROR_UNSUPPORTED, "the type `%s` is not supported yet",
            type->name ? type->name : "?");
  }
}

bool kt_as_type(kt_scope *s, const ki_expr *expr, kjit_type *type)
{
  if (expr->kind == KJ_EXPR_TYPE) {
    *type = kt_infer_type(s, expr->type_expr);
    return true;
  }
  bool is_dtype = expr->kind == KJ_EXPR_CALL && expr->x->kind == KJ_EXPR_BUILTIN &&
                  expr->x->builtin->id == KJ_BUILTIN_DTYPE && expr->args.count == 1;
  if (!is_dtype) return false;
  if (!kt_as_type(s, expr->args.items[0], type))
    *type = element_of(s, kt_infer_type_of(s, expr->args.items[0]));
  return true;
}

bool kt_as_callee(kt_scope *s, const ki_expr *expr, kt_callee *callee)
{
  if (expr->kind == KJ_EXPR_BUILTIN && !(expr->builtin->flags & KJ_NAME)) {
    *callee = (kt_callee){ .builtin = expr->builtin };
    return true;
  }
  if (kt_is_bind_back(expr)) {
    *callee = kt_bind_back(s, expr);
    return true;
  }
  if (kd_is_derivative(expr)) {
    *callee = kd_derive_callee(s, expr);
    return true;
  }
  if (expr->kind != KJ_EXPR_DECL) return false;
  if (expr->decl->kind == KJ_DECL_FUNCTION) {
    *callee = (kt_callee){ .function = expr->decl->function };
    return true;
  }
  bool is_bound = s->meanings && expr->decl->kind != KJ_DECL_CONST &&
                  s->meanings[expr->decl->index].kind == KJ_MEANS_CALLEE;
  if (is_bound) *callee = s->meanings[expr->decl->index].callee;
  return is_bound;
}

/* ---- annotations ---- */

bool kt_array_fits(const kt_compilation *c, kjit_type from, kjit_type to)
{
  const ki_type_info *have = ki_type(c->types, from), *want = ki_type(c->types, to);
  if (have->element != want->element || have->rank != want->rank) return false;
  if (!want->read_only && (have->read_only || have->space == KJ_SPACE_CONST)) return false;
  bool is_row_major = have->is_static || have->layout == KJIT_LAYOUT_C || have->rank == 0;
  bool is_line = have->rank == 1 && have->layout != KJIT_LAYOUT_STRIDED;
  if (want->layout == KJIT_LAYOUT_STRIDED || is_line) return true;
  return want->layout == KJIT_LAYOUT_C ? is_row_major
                                       : have->layout == KJIT_LAYOUT_F && !have->is_static;
}

/* Returns the number of bits that the type represents exactly: the bits of an integer, or of a
 * float's significand. */
static int value_bits(const kt_compilation *c, kjit_type type)
{
  static const uint8_t significand[KJIT_SCALAR_COUNT] = {
    [KJIT_F16] = 11, [KJIT_BF16] = 8, [KJIT_F32] = 24, [KJIT_F64] = 53
  };
  if (type == KJIT_BOOL) return 1;
  if (significand[type]) return significand[type];
  return (int)ki_type(c->types, type)->size_bytes * 8 - (kt_class_of(c, type) == KJ_CLASS_SIGNED);
}

bool kt_scalar_fits(const kt_compilation *c, kjit_type from, kjit_type to)
{
  if (from == to) return true;
  bool from_float = kt_is_float(c, from), to_float = kt_is_float(c, to);
  if (from_float || to == KJIT_BOOL) return from_float && to_float;
  bool loses_sign =
    kt_class_of(c, from) == KJ_CLASS_SIGNED && kt_class_of(c, to) == KJ_CLASS_UNSIGNED;
  return !loses_sign && value_bits(c, from) <= value_bits(c, to);
}

static kt_expr *fit_array(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                          kj_location location)
{
  if (!kt_is_array(s->c, value->type) || !kt_array_fits(s->c, value->type, annotation)) {
    const char *want = kt_type_text(s->c, annotation), *have = kt_type_text(s->c, value->type);
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s must be %s, got %s", what, want, have);
  }
  return value;
}

static kt_expr *fit_items(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                          kj_location location)
{
  const ki_type_info *want = ki_type(s->c->types, annotation),
                     *have = ki_type(s->c->types, value->type);
  if (value->type == annotation) return value;
  if (have->class_ != KJ_CLASS_TUPLE || have->count != want->count)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s must be %s, got %s", what,
            kt_type_text(s->c, annotation), kt_type_text(s->c, value->type));
  value = kt_keep_value(s, value);
  kt_exprs items = { 0 };
  for (uint32_t i = 0; i < want->count; i++) {
    kt_expr *item = kt_make_item(s, kt_copy_texpr(s, value), i, location);
    KJ_PUSH(s->arena, &items,
            kt_fit_annotation(s, item, want->items[i],
                              kj_format(s->arena, "item %u of %s", i, what), location));
  }
  return kt_make_tuple(s, &items, location);
}

kt_expr *kt_fit_annotation(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                           kj_location location)
{
  if (kt_is_array(s->c, annotation))
    return fit_array(s, kt_make_concrete(s, value), annotation, what, location);
  if (kt_is_tuple(s->c, annotation)) return fit_items(s, value, annotation, what, location);
  return kt_convert_stored(s, value, annotation, what, location);
}

/* ---- shared and local storage ---- */

static uint32_t alignment_of(kt_scope *s, const ki_decl *decl)
{
  const ki_attribute *attribute = ki_get_attribute(&decl->attributes, KJ_ATTRIBUTE_ALIGN);
  if (!attribute) return 0;
  int64_t alignment = kt_infer_constant(s, attribute->values.items[0], "an alignment");
  bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
  if (!is_power || alignment > ALIGNMENT_LIMIT)
    kt_fail(s->c, attribute->location, KJIT_ERROR_TYPE,
            "an alignment must be a power of two from 1 to %d bytes, got %lld", ALIGNMENT_LIMIT,
            (long long)alignment);
  return (uint32_t)alignment;
}

static void read_extents(kt_scope *s, const ki_exprs *extents, const char *word, ki_type_info *info)
{
  if (extents->count > KJ_MAX_RANK)
    kt_fail(s->c, extents->items[KJ_MAX_RANK]->location, KJIT_ERROR_TYPE,
            "an array has at most %d dimensions", KJ_MAX_RANK);
  const char *what = kj_format(s->arena, "an extent of a %s array", word);
  for (size_t i = 0; i < extents->count; i++) {
    info->extents[i] = kt_infer_constant(s, extents->items[i], what);
    if (info->extents[i] <= 0)
      kt_fail(s->c, extents->items[i]->location, KJIT_ERROR_TYPE, "%s must be positive, got %lld",
              what, (long long)info->extents[i]);
  }
  info->rank = (uint32_t)extents->count;
}

/* Returns an array's size in bytes. If it overflows, returns a number above every limit. */
static uint64_t bytes_of(kt_scope *s, const ki_type_info *info)
{
  uint64_t bytes = ki_type(s->c->types, info->element)->size_bytes;
  for (uint32_t i = 0; i < info->rank; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)info->extents[i], &bytes)) return UINT64_MAX / 2;
  return bytes < UINT64_MAX / 2 ? bytes : UINT64_MAX / 2;
}

/* Checks the total sizes of this instance's shared and local arrays. The limit for the kernel
 * depends on the target. */
static void check_size(kt_scope *s, const ki_decl *decl, const ki_type_info *info)
{
  bool is_shared = decl->kind == KJ_DECL_SHARED;
  uint64_t bytes = bytes_of(s, info), *total = is_shared ? &s->shared_bytes : &s->local_bytes;
  uint64_t limit = is_shared ? kt_most_shared_bytes(&s->c->request->target) : KJ_LOCAL_BYTES_LIMIT;
  *total += bytes;
  if (*total <= limit) return;
  if (is_shared)
    kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
            "the shared arrays up to and including `%s` need %llu bytes; a block has at most %llu "
            "bytes on %s",
            decl->name, (unsigned long long)*total, (unsigned long long)limit,
            kt_target_text(s->c));
  kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
          "the local arrays up to and including `%s` need %llu bytes in each thread; the limit is "
          "%llu bytes",
          decl->name, (unsigned long long)*total, (unsigned long long)limit);
}

static kjit_type storage_element(kt_scope *s, const ki_type_expr *type)
{
  kjit_type element = kt_infer_type(s, type);
  if (!ki_type(s->c->types, element)->size_bytes)
    kt_fail(s->c, type->location, KJIT_ERROR_TYPE,
            "the element type of an array must be a scalar, vector, struct or pointer, got %s",
            kt_type_text(s->c, element));
  return element;
}

static void check_dynamic(kt_scope *s, const ki_decl *decl)
{
  if (decl->kind == KJ_DECL_LOCAL)
    kt_fail(s->c, decl->location, KJIT_ERROR_TYPE, "a local array needs extents: `local %s: T[8]`",
            decl->name);
  if (!s->instance->is_kernel)
    kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
            "shared memory whose size comes from the launch (`T[]`) must be declared in the "
            "kernel; pass it to the function");
}

void kt_declare_storage(kt_scope *s, const ki_decl *decl)
{
  const ki_type_expr *written = decl->type_expr;
  bool is_shared = decl->kind == KJ_DECL_SHARED, is_scalar = written->kind != KJ_TYPE_STATIC_ARRAY;
  ki_type_info info = { .layout = KJIT_LAYOUT_C,
                        .space = is_shared ? KJ_SPACE_SHARED : KJ_SPACE_LOCAL,
                        .is_static = true };
  info.element = storage_element(s, is_scalar ? written : written->element);
  bool is_sized = !is_scalar && kt_has_runtime_extents(s, decl);
  if (!is_scalar && written->extents.count == 0) {
    check_dynamic(s, decl);
    info.rank = 1;
    info.is_static = false;
  } else if (is_sized) {
    if (s->copy->outer)
      kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
              "the size of `%s` depends on the launch, and the declaration is in the body of a "
              "static loop, which is copied; declare the array before the loop",
              decl->name);
    kt_check_runtime_extents(s, decl);
    info.rank = (uint32_t)written->extents.count;
    info.is_static = false;
  } else {
    if (!is_scalar) read_extents(s, &written->extents, is_shared ? "shared" : "local", &info);
    check_size(s, decl, &info);
  }
  kt_var *var = kt_add_variable(s, is_shared ? KJ_V_SHARED : KJ_V_LOCAL, decl->name,
                                kt_intern_array(s, &info), decl->location, KJ_LEVEL_GRID);
  var->alignment = alignment_of(s, decl);
  var->sized_by = is_sized ? decl : NULL;
  kt_bind_variable(s, decl, var);
  s->meanings[decl->index].is_scalar = is_scalar;
}

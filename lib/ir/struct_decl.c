/* Struct declarations. The verifier gives each struct its type before it visits other declarations.
 * In these declarations, a struct's name is then a type like a scalar's name. */
#include <string.h>

#include "ir/arithmetic.h"
#include "ir/expr.h"
#include "ir/verify.h"

enum {
  MAX_STRUCT_BYTES = 64 * 1024,
  MAX_FIELDS = 1024,
  MAX_ALIGNMENT = 1024,
  MAX_CHAIN = 64,
  MAX_CONSTANTS = 1024
};

/* ---- integers that do not depend on type inference: extents of fields, alignments ---- */

typedef struct evaluator {
  ki_verifier *v;
  /* number of constants that are being evaluated: the value of each uses the next one */
  uint32_t depth;
  /* Number of evaluations of constants so far, which is limited. In a chain of constants, each of
   * which uses the previous one twice, the number grows exponentially with the chain length. */
  uint32_t constants;
} evaluator;

static bool evaluate(evaluator *e, const ki_expr *expr, ki_value *value);

/* If the expression is a constant whose value is a tuple, or an item of such a constant that is
 * itself a tuple, returns the tuple, otherwise NULL. Sets *type to the tuple's declared type or
 * NULL. */
static const ki_expr *find_tuple(evaluator *e, const ki_expr *expr, const ki_type_expr **type);

/* Evaluates an item in a tuple constant, such as `T[1]` or `T[-1]`. */
static const ki_expr *find_item(evaluator *e, const ki_expr *expr, const ki_type_expr **type)
{
  ki_value at;
  const ki_expr *tuple = expr->args.count == 1 ? find_tuple(e, expr->x, type) : NULL;
  if (!tuple || !evaluate(e, expr->args.items[0], &at)) return NULL;
  __int128 count = (__int128)tuple->args.count,
           index = at.integer < 0 ? count + at.integer : at.integer;
  if (!ki_is_integral(at.type) && at.type != KJ_WEAK_INT) return NULL;
  if (index < 0 || index >= count) return NULL;
  bool has_type = *type && (*type)->kind == KJ_TYPE_TUPLE && index < (__int128)(*type)->items.count;
  *type = has_type ? (*type)->items.items[index] : NULL;
  return tuple->args.items[index];
}

static const ki_expr *find_tuple(evaluator *e, const ki_expr *expr, const ki_type_expr **type)
{
  const ki_decl *decl = expr->kind == KJ_EXPR_DECL ? expr->decl
                        : expr->kind == KJ_EXPR_NAME
                          ? ki_find_visible(e->v, expr->location, expr->name)
                          : NULL;
  if (e->depth >= MAX_CHAIN || e->constants++ >= MAX_CONSTANTS) return NULL;
  e->depth++;
  *type = NULL;
  if (expr->kind == KJ_EXPR_INDEX) expr = find_item(e, expr, type);
  else if (decl && decl->kind == KJ_DECL_CONST) expr = decl->value;
  if (expr && expr->kind != KJ_EXPR_TUPLE) expr = find_tuple(e, expr, type);
  if (decl && decl->kind == KJ_DECL_CONST && decl->type_expr) *type = decl->type_expr;
  e->depth--;
  return expr;
}

static bool evaluate_item(evaluator *e, const ki_expr *expr, ki_value *value)
{
  const ki_type_expr *type = NULL;
  const ki_expr *item = find_item(e, expr, &type);
  if (!item || !evaluate(e, item, value)) return false;
  return !type || (type->kind == KJ_TYPE_FIXED && ki_fit_argument(*value, type->type, value));
}

static bool evaluate_constant(evaluator *e, const ki_decl *decl, ki_value *value)
{
  if (decl->kind != KJ_DECL_CONST || !decl->value || e->depth >= MAX_CHAIN ||
      e->constants++ >= MAX_CONSTANTS)
    return false;
  e->depth++;
  bool is_known = evaluate(e, decl->value, value);
  e->depth--;
  const ki_type_expr *written = decl->type_expr;
  if (!is_known || !written) return is_known;
  return written->kind == KJ_TYPE_FIXED && ki_fit_argument(*value, written->type, value);
}

static bool evaluate_name(evaluator *e, const ki_expr *expr, ki_value *value)
{
  const ki_decl *decl = ki_find_visible(e->v, expr->location, expr->name);
  return decl && evaluate_constant(e, decl, value);
}

static bool evaluate_binary(evaluator *e, const ki_expr *expr, ki_value *value)
{
  ki_value x, y;
  if (ki_op_table[expr->op].class_ != KJ_OP_ARITH && expr->op != KJIT_OP_SHL) return false;
  if (!evaluate(e, expr->x, &x) || !evaluate(e, expr->y, &y)) return false;
  kjit_type type = ki_operator_type(expr->op, x.type, y.type);
  if (!ki_is_integral(type)) return false;
  if (expr->op != KJIT_OP_SHL) y = ki_convert_value(y, type);
  return ki_compute_binary(expr->op, ki_convert_value(x, type), y, value) == KJ_COMPUTED;
}

static bool evaluate(evaluator *e, const ki_expr *expr, ki_value *value)
{
  ki_value x;
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_INT:
    *value = (ki_value){ expr->type, (__int128)expr->integer };
    return ki_integer_fits(expr->type, value->integer);
  case KJ_EXPR_NAME: return evaluate_name(e, expr, value);
  case KJ_EXPR_DECL: return evaluate_constant(e, expr->decl, value);
  case KJ_EXPR_UNARY:
    if (expr->op != KJIT_OP_NEG || !evaluate(e, expr->x, &x)) return false;
    x = ki_convert_value(x, ki_arithmetic_type(x.type));
    return ki_compute_unary(expr->op, x, value) == KJ_COMPUTED;
  case KJ_EXPR_BINARY: return evaluate_binary(e, expr, value);
  case KJ_EXPR_INDEX: return evaluate_item(e, expr, value);
  default: return false;
  }
}

/* ---- fields ---- */

static kjit_type intern(ki_verifier *v, kjit_type type)
{
  if (type == KJIT_ANY) longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static kjit_type array_field(ki_verifier *v, const ki_type_expr *type)
{
  const ki_type_expr *element = type->element;
  if (element->kind != KJ_TYPE_FIXED || !ki_type(v->module->types, element->type)->size_bytes)
    return KJIT_ANY;
  ki_type_info info = { .element = element->type,
                        .rank = (uint32_t)type->extents.count,
                        .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_VALUE,
                        .is_static = true };
  for (uint32_t i = 0; i < info.rank; i++) {
    evaluator e = { .v = v };
    ki_value extent;
    const ki_expr *expr = type->extents.items[i];
    if (!evaluate(&e, expr, &extent)) {
      ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                     "an extent of a field must be a constant expression of integers, integer "
                     "constants, and + - * // %% <<");
      return KJIT_ANY;
    }
    if (extent.integer < 1 || extent.integer > MAX_STRUCT_BYTES) {
      ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                     "an extent of a field must be from 1 to %d", MAX_STRUCT_BYTES);
      return KJIT_ANY;
    }
    info.extents[i] = (int64_t)extent.integer;
  }
  return intern(v, ki_intern_array(v->module->types, &info));
}

static void refuse_field(ki_verifier *v, const ki_decl *field)
{
  const ki_type_expr *type = field->type_expr;
  bool is_array = type->kind == KJ_TYPE_ARRAY ||
                  (type->kind == KJ_TYPE_FIXED &&
                   ki_type(v->module->types, type->type)->class_ == KJ_CLASS_ARRAY);
  bool is_sizeless = type->kind == KJ_TYPE_STATIC_ARRAY && type->extents.count == 0;
  if (is_array || is_sizeless)
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "`%s`: an array in a struct needs extents, as in `f32[3]`; to refer to elements "
                   "elsewhere, use a pointer, `f32*`",
                   field->name);
  else
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "field `%s` must be a scalar, a vector, a struct, a pointer, or an array of "
                   "these with extents",
                   field->name);
}

/* Returns a field's type, or KJIT_ANY after reporting an error. */
static kjit_type field_type(ki_verifier *v, const ki_decl *field)
{
  size_t errors = v->diagnostics->error_count;
  ki_type_expr *type = field->type_expr;
  ki_verify_type(v, type, true);
  if (v->diagnostics->error_count > errors) return KJIT_ANY;
  kjit_type made = KJIT_ANY;
  if (type->kind == KJ_TYPE_FIXED && ki_type(v->module->types, type->type)->size_bytes)
    made = type->type;
  if (type->kind == KJ_TYPE_STATIC_ARRAY && type->extents.count) made = array_field(v, type);
  if (made == KJIT_ANY && v->diagnostics->error_count == errors) refuse_field(v, field);
  return made;
}

/* ---- structs ---- */

static uint32_t read_alignment(ki_verifier *v, const ki_decl *decl)
{
  const ki_attribute *attribute = ki_get_attribute(&decl->attributes, KJ_ATTRIBUTE_ALIGN);
  if (!attribute || attribute->values.count != 1) return 0;
  evaluator e = { .v = v };
  ki_value known = { 0 };
  bool is_known = evaluate(&e, attribute->values.items[0], &known);
  __int128 value = known.integer;
  bool is_power = is_known && value > 0 && (value & (value - 1)) == 0;
  if (is_power && value <= MAX_ALIGNMENT) return (uint32_t)value;
  /* ki_verify_attributes reports this error later */
  if (!is_power && attribute->values.items[0]->kind == KJ_EXPR_INT) return 0;
  ki_fail_verify(
    v, attribute->location, KJIT_ERROR_TYPE,
    "an alignment must be a power of two from 1 to %d bytes, known without the types of arguments",
    MAX_ALIGNMENT);
  return 0;
}

/* Returns whether the sum of the sizes exceeds the limit. The sum cannot overflow: it has at most
 * MAX_FIELDS terms below 4 GiB. */
static bool is_too_large(const ki_verifier *v, const kjit_type *items, size_t count)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += ki_type(v->module->types, items[i])->size_bytes;
  return bytes > MAX_STRUCT_BYTES;
}

static void fail_depth(ki_verifier *v, const ki_decl *decl)
{
  ki_fail_verify(v, decl->location, KJIT_ERROR_UNSUPPORTED,
                 "`%s` is nested too deeply: structs and pointers can nest at most %d levels deep",
                 decl->name, KJ_MAX_TYPE_LEVELS);
}

static void make_type(ki_verifier *v, ki_decl *decl)
{
  size_t count = decl->fields.count;
  const char **names = KJ_NEW_ARRAY(v->arena, const char *, count + 1);
  kjit_type *items = KJ_NEW_ARRAY(v->arena, kjit_type, count + 1);
  bool is_whole = true;
  for (size_t i = 0; i < count; i++) {
    names[i] = decl->fields.items[i]->name;
    items[i] = field_type(v, decl->fields.items[i]);
    is_whole = is_whole && items[i] != KJIT_ANY;
  }
  ki_struct_layout layout = { ki_get_attribute(&decl->attributes, KJ_ATTRIBUTE_PACKED) != NULL,
                              read_alignment(v, decl), v->module->sources.items[0].is_algorithm };
  if (!is_whole) return;
  for (size_t i = 0; i < count; i++) {
    if (!ki_is_too_deep(v->module->types, items[i])) continue;
    fail_depth(v, decl);
    return;
  }
  if (is_too_large(v, items, count)) {
    ki_fail_verify(v, decl->location, KJIT_ERROR_UNSUPPORTED,
                   "a struct has at most %d bytes: `%s` has more", MAX_STRUCT_BYTES, decl->name);
    return;
  }
  decl->struct_type = intern(v, ki_intern_struct(v->module->types, decl->name, names, items,
                                                 (uint32_t)count, layout));
}

void ki_resolve_struct(ki_verifier *v, ki_decl *decl)
{
  enum { NEW, BUSY, DONE };
  uint8_t *state = &v->struct_states[decl->index];
  if (decl->struct_type != KJIT_ANY || *state == DONE) return;
  if (*state == BUSY || v->struct_depth >= KJ_MAX_TYPE_LEVELS) {
    if (*state == BUSY)
      ki_fail_verify(v, decl->location, KJIT_ERROR_TYPE,
                     "the struct `%s` contains itself or a pointer to itself: store an index, or "
                     "the address as a u64, and convert it with `bitcast(%s*, address)`",
                     decl->name, decl->name);
    else fail_depth(v, decl);
    return;
  }
  const char *fixed = v->fixed;
  ki_decl *outer = v->decl;
  *state = BUSY;
  v->decl = decl;
  v->fixed = "a struct";
  v->struct_depth++;
  if (decl->fields.count == 0)
    ki_fail_verify(v, decl->location, KJIT_ERROR_TYPE,
                   "struct `%s` has no fields; a struct needs at least one", decl->name);
  else if (decl->fields.count > MAX_FIELDS)
    ki_fail_verify(v, decl->location, KJIT_ERROR_UNSUPPORTED, "a struct can have at most %d fields",
                   MAX_FIELDS);
  else make_type(v, decl);
  v->struct_depth--;
  v->decl = outer;
  v->fixed = fixed;
  *state = DONE;
}

void ki_resolve_structs(ki_verifier *v)
{
  v->struct_states = KJ_NEW_ARRAY(v->arena, uint8_t, v->module->decls.count + 1);
  for (size_t i = 0; i < v->module->decls.count; i++)
    if (v->module->decls.items[i]->kind == KJ_DECL_STRUCT)
      ki_resolve_struct(v, v->module->decls.items[i]);
}

/* ---- declarations for struct types that the application provides ---- */

static ki_attribute make_attribute(kj_arena *arena, ki_attribute_id id, uint32_t value)
{
  ki_attribute attribute = { .info = &ki_attribute_table[id] };
  if (!value) return attribute;
  ki_expr *literal = ki_new_expr(arena, KJ_EXPR_INT, (kj_location){ 0 });
  literal->type = KJ_WEAK_INT;
  literal->integer = value;
  KJ_PUSH(arena, &attribute.values, literal);
  return attribute;
}

static uint32_t natural_alignment(const ki_types *types, const ki_type_info *info)
{
  uint32_t alignment = 1;
  for (uint32_t i = 0; i < info->count && !info->is_packed; i++) {
    uint32_t own = ki_alignment(types, info->items[i]);
    if (own > alignment) alignment = own;
  }
  return alignment;
}

static void add_struct(kjit_module *module, const char *name, kjit_type type, kj_location location)
{
  kj_arena *arena = &module->arena;
  const ki_type_info *info = ki_type(module->types, type);
  ki_decl *decl = KJ_NEW(arena, ki_decl);
  decl->kind = KJ_DECL_STRUCT;
  decl->name = kj_copy_string(arena, name, strlen(name));
  decl->location = location;
  decl->struct_type = type;
  for (uint32_t i = 0; i < info->count; i++) {
    ki_decl *field = KJ_NEW(arena, ki_decl);
    field->kind = KJ_DECL_PARAM;
    field->name = kj_copy_string(arena, info->field_names[i], strlen(info->field_names[i]));
    field->location = location;
    field->index = i;
    field->type_expr = ki_spell_type(arena, module->types, info->items[i], location);
    KJ_PUSH(arena, &decl->fields, field);
  }
  ki_attribute packed = make_attribute(arena, KJ_ATTRIBUTE_PACKED, 0),
               align = make_attribute(arena, KJ_ATTRIBUTE_ALIGN, info->alignment_bytes);
  if (info->is_packed) KJ_PUSH(arena, &decl->attributes, packed);
  if (info->alignment_bytes > natural_alignment(module->types, info))
    KJ_PUSH(arena, &decl->attributes, align);
  KJ_PUSH(arena, &module->decls, decl);
}

void ki_declare_structs(kjit_module *module, kjit_type type, kj_location location)
{
  const ki_type_info *info = ki_type(module->types, type);
  if (info->element) ki_declare_structs(module, info->element, location);
  if (info->class_ != KJ_CLASS_STRUCT) return;
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_STRUCT &&
        module->decls.items[i]->struct_type == type)
      return;
  for (uint32_t i = 0; i < info->count; i++) ki_declare_structs(module, info->items[i], location);
  add_struct(module, info->name, type, location);
}

void ki_declare_struct_as(kjit_module *module, const char *name, kjit_type type)
{
  KJ_ASSERT(ki_type(module->types, type)->class_ == KJ_CLASS_STRUCT);
  add_struct(module, name, type, (kj_location){ 0 });
}

/* Result rules of the built-ins that make and change pointers. */
#include <string.h>

#include "typing/rules.h"

static kjit_type pointer_to(kj_scope *s, kjit_type element, bool read_only)
{
  kjit_type type = kj_intern_pointer(s->c->types, element, read_only);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kj_texpr *kj_rule_pointer(kj_scope *s, const kj_operands *o)
{
  const kj_type_info *info = kj_type(s->c->types, o->place.array->type);
  kj_texpr *address =
    kj_new_texpr(s->c, KJ_T_ADDRESS,
                 pointer_to(s, info->element, info->read_only || info->space == KJ_SPACE_CONST),
                 o->location);
  uint32_t natural = kj_alignment(s->c->types, info->element);
  if (info->alignment_bytes && info->alignment_bytes < natural)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "a pointer to this field would not be aligned: its struct is packed");
  address->x = kj_make_concrete(s, o->place.array);
  address->args = o->place.indices;
  return address;
}

/* ---- view(f32[n, m], p) ---- */

static kj_texpr *make_extent(kj_scope *s, kj_texpr *value)
{
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent of `view` is an integer, got %s",
            kj_type_text(s->c, value->type));
  if (kj_is_constant(value) && value->integer < 0)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent of `view` is at least 0, got %s",
            kj_integer_text(s->arena, value->integer));
  return kj_keep_value(s, kj_convert(s, value, KJIT_INDEX, value->location));
}

static bool are_known(const kj_texprs *extents)
{
  for (size_t i = 0; i < extents->count; i++)
    if (!kj_is_constant(extents->items[i]) || extents->items[i]->integer == 0) return false;
  return true;
}

kj_texpr *kj_rule_view(kj_scope *s, const kj_operands *o)
{
  kj_texpr *pointer = o->values.items[0];
  if (!kj_is_pointer(s->c, pointer->type))
    kj_fail(s->c, pointer->location, KJIT_ERROR_TYPE,
            "`view` needs a pointer, got %s: a part of an array is `a[first:stop]`, other extents "
            "`reshape(a, n, m)`",
            kj_type_text(s->c, pointer->type));
  const kj_type_info *to = kj_type(s->c->types, pointer->type);
  if (to->element != o->type_argument) {
    const char *wanted = kj_type_text(s->c, o->type_argument);
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`view` of %s through a %s: `bitcast(%s*, p)` is a pointer to the same bytes", wanted,
            kj_type_text(s->c, pointer->type), wanted);
  }
  kj_type_info array = { .element = to->element,
                         .rank = (uint32_t)o->extents.count,
                         .layout = KJIT_LAYOUT_C,
                         .space = KJ_SPACE_GENERIC,
                         .read_only = to->read_only };
  array.is_static = are_known(&o->extents);
  kj_texprs extents = { 0 };
  for (size_t i = 0; i < o->extents.count; i++) {
    KJ_PUSH(s->arena, &extents, make_extent(s, o->extents.items[i]));
    if (array.is_static) array.extents[i] = (int64_t)extents.items[i]->integer;
  }
  kjit_type type = kj_intern_array(s->c->types, &array);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  kj_texpr *pointed = kj_new_texpr(s->c, KJ_T_POINTED, type, o->location);
  pointed->x = kj_keep_value(s, pointer);
  pointed->args = extents;
  return pointed;
}

/* ---- bitcast(f32*, address), bitcast(u64, p) ---- */

static kj_texpr *new_convert(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return value->type == type ? value : convert;
}

kj_texpr *kj_bitcast_pointer(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  kjit_type type = o->type_argument;
  bool from_pointer = kj_is_pointer(s->c, value->type), to_pointer = kj_is_pointer(s->c, type);
  if (!from_pointer && !to_pointer) return NULL;
  bool drops_const = from_pointer && to_pointer && kj_type(s->c->types, value->type)->read_only &&
                     !kj_type(s->c->types, type)->read_only;
  if (drops_const)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "`bitcast` keeps `const`: write `const %s`",
            kj_type_text(s->c, type));
  if (from_pointer && to_pointer) return new_convert(s, value, type, o->location);
  kjit_type number = from_pointer ? type : value->type;
  if (number != KJIT_U64 && number != KJIT_I64 && number != KJ_WEAK_INT)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "the address in a pointer is a u64 or an i64, not %s", kj_type_text(s->c, number));
  if (from_pointer)
    return kj_convert(s, new_convert(s, value, KJIT_U64, o->location), type, o->location);
  return new_convert(s, kj_convert(s, value, KJIT_U64, o->location), type, o->location);
}

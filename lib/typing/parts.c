/* Numbers of several parts: vectors, which every operator and element-wise built-in takes lane by
 * lane, and complex numbers. Their types, conversion, construction and lanes; operators on them are
 * in operators_parts.c. */
#include <string.h>

#include "typing/infer.h"

bool kj_has_parts(const kj_compilation *c, kjit_type type)
{
  return kj_is_vector(c, type) || kj_is_complex(c, type);
}

kjit_type kj_part_type(const kj_compilation *c, kjit_type type)
{
  return kj_has_parts(c, type) ? kj_get_component(c->types, type, 0).type : type;
}

kjit_type kj_vector_of(kj_scope *s, kjit_type element, uint32_t lanes)
{
  kjit_type type = kj_intern_vector(s->c->types, element, lanes);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kjit_type kj_with_part(kj_scope *s, kjit_type like, kjit_type part)
{
  if (kj_is_vector(s->c, like)) return kj_vector_of(s, part, kj_type(s->c->types, like)->count);
  return part == KJIT_F64 ? KJIT_C128 : KJIT_C64;
}

kj_texpr *kj_map_parts(kj_scope *s, kjit_type type, kj_texpr *value, kj_make_part make,
                       const void *data, kj_location location)
{
  kj_texprs parts = { 0 };
  uint32_t count = kj_component_count(s->c->types, value->type);
  if (value->kind != KJ_T_TUPLE || kj_has_effect(value)) value = kj_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            make(s, kj_make_item(s, kj_copy_texpr(s, value), i, location), i, data));
  return kj_make_composed(s, type, &parts, location);
}

/* ---- conversion ---- */

static _Noreturn void fail_lanes(kj_scope *s, const kj_texpr *value, kjit_type type)
{
  const char *to = kj_type_text(s->c, type);
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "%s does not become %s, which has another number of lanes: write which, `%s(v.x, ...)`",
          kj_type_text(s->c, value->type), to, to);
}

static _Noreturn void fail_whole(kj_scope *s, const kj_texpr *value, kjit_type type)
{
  const char *from = kj_type_text(s->c, value->type);
  if (kj_is_vector(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "expected a number, got %s; write which lane: `v.x`, `v[i]`", from);
  if (kj_is_complex(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "%s does not become %s: write `real(z)`, `imag(z)` or `abs(z)`", from,
            kj_type_text(s->c, type));
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "expected a number or %s, got %s",
          kj_type_text(s->c, type), from);
}

static kj_texpr *convert_part(kj_scope *s, kj_texpr *part, uint32_t index, const void *data)
{
  (void)index;
  return kj_convert(s, part, *(const kjit_type *)data, part->location);
}

/* All lanes alike; the imaginary part of a real number is 0. */
static kj_texpr *spread(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  kj_texprs parts = { 0 };
  kjit_type part = kj_part_type(s->c, type);
  uint32_t count = kj_component_count(s->c->types, type);
  value = kj_convert(s, value, part, location);
  if (kj_is_vector(s->c, type)) value = kj_keep_value(s, value);
  KJ_PUSH(s->arena, &parts, value);
  for (uint32_t i = 1; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            kj_is_vector(s->c, type) ? kj_copy_texpr(s, value)
                                     : kj_new_number(s, part, 0, location));
  return kj_make_composed(s, type, &parts, location);
}

kj_texpr *kj_convert_parts(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  const kj_compilation *c = s->c;
  if (value->type == type) return value;
  if (!kj_has_parts(c, type)) fail_whole(s, value, type);
  if (kj_is_number(c, value->type)) return spread(s, value, type, location);
  if (kj_class_of(c, value->type) != kj_class_of(c, type)) fail_whole(s, value, type);
  if (kj_component_count(c->types, value->type) != kj_component_count(c->types, type))
    fail_lanes(s, value, type);
  kjit_type part = kj_part_type(c, type);
  if (value->kind == KJ_T_TUPLE) return kj_map_parts(s, type, value, convert_part, &part, location);
  kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return convert;
}

bool kj_keeps_parts(const kj_compilation *c, kjit_type from, kjit_type to)
{
  if (!kj_has_parts(c, from)) return true;
  return kj_class_of(c, from) == kj_class_of(c, to) &&
         kj_component_count(c->types, from) == kj_component_count(c->types, to);
}

kjit_type kj_promote_parts(kj_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  const kj_compilation *c = s->c;
  bool a_vector = kj_is_vector(c, a), b_vector = kj_is_vector(c, b);
  bool is_mixed = (a_vector && kj_is_complex(c, b)) || (b_vector && kj_is_complex(c, a));
  bool differ = a_vector && b_vector && kj_type(c->types, a)->count != kj_type(c->types, b)->count;
  bool are_numbers =
    (kj_has_parts(c, a) || kj_is_number(c, a)) && (kj_has_parts(c, b) || kj_is_number(c, b));
  if (is_mixed || differ || !are_numbers) return KJIT_ANY;
  kjit_type part = kj_promote(s, kj_part_type(c, a), kj_part_type(c, b), location);
  return part == KJIT_ANY ? KJIT_ANY : kj_with_part(s, kj_has_parts(c, a) ? a : b, part);
}

/* ---- construction: f32x4(v.xy, 0, 1), f32x4(1), c64(re, im) ---- */

static void add_lanes(kj_scope *s, kj_texprs *parts, kj_texpr *value, kjit_type lane)
{
  if (kj_is_number(s->c, value->type)) {
    KJ_PUSH(s->arena, parts, kj_convert(s, value, lane, value->location));
    return;
  }
  if (!kj_is_vector(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "a vector is made of numbers and vectors, got %s", kj_type_text(s->c, value->type));
  uint32_t count = kj_type(s->c->types, value->type)->count;
  value = kj_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, parts,
            kj_convert(s, kj_make_item(s, kj_copy_texpr(s, value), i, value->location), lane,
                       value->location));
}

static kj_texpr *make_vector(kj_scope *s, const kj_texprs *values, kjit_type type,
                             kj_location location)
{
  kj_texprs parts = { 0 };
  uint32_t lanes = kj_type(s->c->types, type)->count;
  for (size_t i = 0; i < values->count; i++)
    add_lanes(s, &parts, values->items[i], kj_part_type(s->c, type));
  if (parts.count != lanes)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "%s has %u lanes, here are %zu",
            kj_type_text(s->c, type), lanes, parts.count);
  return kj_make_composed(s, type, &parts, location);
}

static kj_texpr *make_complex(kj_scope *s, const kj_texprs *values, kjit_type type,
                              kj_location location)
{
  kj_texprs parts = { 0 };
  if (values->count != 2)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` takes a real and an imaginary part, got %zu values", kj_type_text(s->c, type),
            values->count);
  for (size_t i = 0; i < 2; i++)
    KJ_PUSH(s->arena, &parts,
            kj_convert(s, values->items[i], kj_part_type(s->c, type), values->items[i]->location));
  return kj_make_composed(s, type, &parts, location);
}

kj_texpr *kj_construct_parts(kj_scope *s, const kj_texprs *values, kjit_type type,
                             kj_location location)
{
  bool is_conversion =
    values->count == 1 && (kj_is_number(s->c, values->items[0]->type) ||
                           kj_class_of(s->c, values->items[0]->type) == kj_class_of(s->c, type));
  if (is_conversion) return kj_convert_parts(s, values->items[0], type, location);
  return kj_is_vector(s->c, type) ? make_vector(s, values, type, location)
                                  : make_complex(s, values, type, location);
}

/* ---- lanes ---- */

/* `v.xyz`: one to four of the first four lanes. */
kj_texpr *kj_infer_swizzle(kj_scope *s, const kj_expr *expr, kj_texpr *value)
{
  const char *name = expr->name;
  kj_location location = expr->location;
  size_t count = strlen(name);
  kj_texprs parts = { 0 };
  if (!kj_is_vector(s->c, value->type) || count > 4) return NULL;
  if (count > 1) value = kj_keep_value(s, value);
  for (size_t i = 0; i < count; i++) {
    kj_component lane;
    if (!kj_find_component(s->c, value->type, (char[]){ name[i], 0 }, &lane)) return NULL;
    KJ_PUSH(s->arena, &parts, kj_make_item(s, kj_copy_texpr(s, value), lane.index, location));
  }
  return count == 1
           ? parts.items[0]
           : kj_make_composed(s, kj_vector_of(s, kj_part_type(s->c, value->type), (uint32_t)count),
                              &parts, location);
}

/* Makes constants and sums of derivatives. The derivative of a value has the same type as the
 * value. Its components that are not floats are 0. */
#include "derive/derive.h"

#include <math.h>

bool kd_holds_float(const kt_compilation *c, kjit_type type)
{
  if (type == KJIT_VOID || type == KJIT_ANY) return false;
  const ki_type_info *info = ki_type(c->types, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_FLOAT:
  case KJ_CLASS_COMPLEX: return true;
  case KJ_CLASS_VECTOR:
  case KJ_CLASS_ARRAY: return kd_holds_float(c, info->element);
  case KJ_CLASS_STRUCT:
  case KJ_CLASS_TUPLE:
    for (uint32_t i = 0; i < info->count; i++)
      if (kd_holds_float(c, info->items[i])) return true;
    return false;
  default: return false;
  }
}

kjit_type kd_wide_type(kd_derivation *d, kjit_type type)
{
  bool is_vector = kt_is_vector(d->c, type);
  kjit_type part = is_vector ? kt_part_type(d->c, type) : type;
  if (part != KJIT_F16 && part != KJIT_BF16) return type;
  return is_vector ? kt_with_part(d->s, type, KJIT_F32) : KJIT_F32;
}

/* Returns the number of items in a tuple or struct, or the number of lanes in a vector. */
static uint32_t item_count(const kt_compilation *c, kjit_type type)
{
  const ki_type_info *info = ki_type(c->types, type);
  return info->class_ == KJ_CLASS_TUPLE ? info->count : ki_component_count(c->types, type);
}

static kjit_type item_type(const kt_compilation *c, kjit_type type, uint32_t index)
{
  const ki_type_info *info = ki_type(c->types, type);
  return info->class_ == KJ_CLASS_TUPLE ? info->items[index]
                                        : ki_get_component(c->types, type, index).type;
}

static void check_parts(kd_derivation *d, kjit_type type)
{
  ki_type_class class_ = ki_type(d->c->types, type)->class_;
  if (class_ == KJ_CLASS_ARRAY)
    kd_refuse(d, d->location,
              "derivatives of structs that hold arrays are not supported yet: keep %s in a `local` "
              "array",
              kt_type_text(d->c, type));
}

static kt_expr *filled(kd_derivation *d, kjit_type type, double number)
{
  kt_scope *s = d->s;
  if (kt_is_float(d->c, type)) return kt_new_number(s, type, number, d->location);
  if (kd_holds_float(d->c, type)) check_parts(d, type);
  else if (!kt_is_tuple(d->c, type)) return kt_make_zero(s, type, d->location);
  kt_expr *whole = kt_new_texpr(d->c, KJ_T_TUPLE, type, d->location);
  uint32_t count = item_count(d->c, type);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(d->arena, &whole->args, filled(d, item_type(d->c, type, i), number));
  return whole;
}

kt_expr *kd_zero(kd_derivation *d, kjit_type type) { return filled(d, type, 0); }

kt_expr *kd_nothing(kd_derivation *d, kjit_type type) { return filled(d, type, -0.0); }

kt_expr *kd_one(kd_derivation *d, kjit_type type) { return filled(d, type, 1); }

static kt_expr *item_of(kd_derivation *d, const kt_expr *whole, uint32_t index)
{
  return kt_make_item(d->s, kd_copy(d, whole), index, d->location);
}

kt_expr *kd_add(kd_derivation *d, kt_expr *x, kt_expr *y)
{
  KJ_ASSERT(x->type == y->type);
  kjit_type type = x->type;
  if (!kd_holds_float(d->c, type)) return x;
  bool has_sum = kt_is_vector(d->c, type) || kt_is_complex(d->c, type);
  if (has_sum || kt_is_float(d->c, type))
    return kt_make_own_binary(d->s, KJIT_OP_ADD, x, y, d->location);
  check_parts(d, type);
  kt_expr *sum = kt_new_texpr(d->c, KJ_T_TUPLE, type, d->location);
  x = kd_keep(d, x);
  y = kd_keep(d, y);
  for (uint32_t i = 0; i < item_count(d->c, type); i++)
    KJ_PUSH(d->arena, &sum->args, kd_add(d, item_of(d, x, i), item_of(d, y, i)));
  return sum;
}

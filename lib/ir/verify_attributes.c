/* Attributes: where they may stand, and which values they take. */
#include "ir/verify.h"

static const char *describe_place(unsigned place)
{
  return place == KJ_PLACE_KERNEL  ? "a kernel"
         : place == KJ_PLACE_FUNC  ? "a func"
         : place == KJ_PLACE_LOOP  ? "a loop"
         : place == KJ_PLACE_ARRAY ? "a shared or local array"
                                   : "a struct";
}

static void verify_alignment(kj_verifier *v, const kj_attribute *attribute)
{
  const kj_expr *value = attribute->values.items[0];
  bool is_negative = value->kind == KJ_EXPR_UNARY && value->op == KJIT_NEG;
  bool is_power = value->kind != KJ_EXPR_INT ||
                  (value->integer > 0 && (value->integer & (value->integer - 1)) == 0);
  if (is_negative || value->kind == KJ_EXPR_FLOAT || !is_power)
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an alignment is a power of two");
}

static void verify_positive(kj_verifier *v, const kj_attribute *attribute)
{
  for (size_t i = 0; i < attribute->values.count; i++) {
    const kj_expr *value = attribute->values.items[i];
    bool is_negative =
      value->kind == KJ_EXPR_UNARY && value->op == KJIT_NEG && value->x->kind == KJ_EXPR_INT;
    if (is_negative || value->kind == KJ_EXPR_FLOAT ||
        (value->kind == KJ_EXPR_INT && value->integer == 0))
      kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "`@%s` takes integers from 1",
                     attribute->info->name);
  }
}

static void verify_general(kj_verifier *v, const kj_attribute *attribute)
{
  const kj_expr *value = attribute->values.items[0];
  bool is_param = value->kind == KJ_EXPR_DECL && value->decl->kind == KJ_DECL_PARAM;
  if (!is_param && value->kind != KJ_EXPR_NAME)
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "`@general` names a parameter of the kernel");
}

static void verify_attribute(kj_verifier *v, kj_attribute *attribute, unsigned place)
{
  const kj_attribute_info *info = attribute->info;
  size_t count = attribute->values.count;
  if (!(info->places & place)) {
    kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` does not belong to %s",
                   info->name, describe_place(place));
    return;
  }
  if (count < (size_t)info->least || count > (size_t)info->most) {
    if (info->least == info->most)
      kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` takes %d value%s, not %zu",
                     info->name, info->least, info->least == 1 ? "" : "s", count);
    else
      kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE,
                     "`@%s` takes %d to %d values, not %zu", info->name, info->least, info->most,
                     count);
    return;
  }
  v->fixed = "an attribute";
  kj_verify_exprs(v, &attribute->values, KJ_ROLE_VALUE);
  v->fixed = NULL;
  if (info == &kj_attribute_table[KJ_ATTRIBUTE_ALIGN]) verify_alignment(v, attribute);
  else if (info == &kj_attribute_table[KJ_ATTRIBUTE_GENERAL]) verify_general(v, attribute);
  else verify_positive(v, attribute);
}

static void verify_contradiction(kj_verifier *v, const kj_attributes *attributes, size_t index)
{
  static const kj_attribute_id pairs[][2] = { { KJ_ATTRIBUTE_INLINE, KJ_ATTRIBUTE_NOINLINE },
                                              { KJ_ATTRIBUTE_STRICT, KJ_ATTRIBUTE_FASTMATH } };
  for (size_t j = 0; j < index; j++)
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
      const kj_attribute_info *a = attributes->items[index].info, *b = attributes->items[j].info,
                              *x = &kj_attribute_table[pairs[k][0]],
                              *y = &kj_attribute_table[pairs[k][1]];
      if ((a == x && b == y) || (a == y && b == x))
        kj_fail_verify(v, attributes->items[index].location, KJIT_ERROR_TYPE,
                       "`@%s` and `@%s` exclude each other", b->name, a->name);
    }
}

void kj_verify_attributes(kj_verifier *v, kj_attributes *attributes, unsigned place)
{
  for (size_t i = 0; i < attributes->count; i++) {
    kj_attribute *attribute = &attributes->items[i];
    verify_attribute(v, attribute, place);
    bool is_repeatable = attribute->info == &kj_attribute_table[KJ_ATTRIBUTE_GENERAL];
    for (size_t j = 0; j < i && !is_repeatable; j++)
      if (attributes->items[j].info == attribute->info)
        kj_fail_verify(v, attribute->location, KJIT_ERROR_NAME, "`@%s` is given twice",
                       attribute->info->name);
    verify_contradiction(v, attributes, i);
  }
}

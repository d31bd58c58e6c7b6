/* Result rules of the built-ins that access elements in a way of their own, and of those about time
 * and control. */
#include "typing/rules.h"

static kj_texpr *apply_place(kj_scope *s, const kj_operands *o, kj_texprs values, kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  kj_texpr *expr = kj_new_builtin(s, &typed, type);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  return expr;
}

kj_texpr *kj_rule_element_load(kj_scope *s, const kj_operands *o)
{
  return apply_place(s, o, (kj_texprs){ 0 }, o->place.type);
}

kj_texpr *kj_rule_element_prefetch(kj_scope *s, const kj_operands *o)
{
  return apply_place(s, o, (kj_texprs){ 0 }, KJIT_VOID);
}

kj_texpr *kj_rule_element_store(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  kj_texpr *value = o->values.items[0];
  KJ_PUSH(s->arena, &values,
          kj_convert_stored(s, value, o->place.type, "the element", value->location));
  return apply_place(s, o, values, KJIT_VOID);
}

kj_texpr *kj_rule_clock(kj_scope *s, const kj_operands *o)
{
  return kj_new_builtin(s, o, KJIT_I64);
}

kj_texpr *kj_rule_nanosleep(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs an integer, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kj_convert(s, value, KJIT_U32, value->location));
  return kj_new_builtin(s, &typed, KJIT_VOID);
}

kj_texpr *kj_rule_assume(kj_scope *s, const kj_operands *o)
{
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kj_make_condition(s, o->values.items[0]));
  return kj_new_builtin(s, &typed, KJIT_VOID);
}

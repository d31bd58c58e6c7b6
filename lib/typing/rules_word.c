/* Result rules of the built-ins on 32-bit words. */
#include "typing/rules.h"

static bool is_word(const kj_scope *s, kjit_type type)
{
  return type == KJ_WEAK_INT ||
         (kj_is_integer(s->c, type) && kj_type(s->c->types, type)->size_bytes <= 4);
}

static kj_texpr *convert_word(kj_scope *s, const kj_operands *o, size_t index, kjit_type type)
{
  kj_texpr *value = o->values.items[index];
  if (!is_word(s, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` works on 32-bit integers, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  return kj_convert(s, value, type, value->location);
}

/* i8 and i16 count as i32, u8 and u16 too; a literal is like what it stands beside. */
static kjit_type word_type(kj_scope *s, const kj_operands *o, size_t index, kjit_type beside)
{
  kjit_type type = o->values.items[index]->type;
  if (type == KJ_WEAK_INT) return beside == KJIT_U32 ? KJIT_U32 : KJIT_I32;
  return is_word(s, type) ? kj_arithmetic_type(s->c, type) : KJIT_I32;
}

static kj_texpr *apply_types(kj_scope *s, const kj_operands *o, const kjit_type *types,
                             kjit_type result)
{
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &typed.values, convert_word(s, o, i, types[i]));
  return kj_new_builtin(s, &typed, result);
}

kj_texpr *kj_rule_words(kj_scope *s, const kj_operands *o)
{
  return apply_types(s, o, (const kjit_type[]){ KJIT_U32, KJIT_U32, KJIT_U32 }, KJIT_U32);
}

kj_texpr *kj_rule_dp4a(kj_scope *s, const kj_operands *o)
{
  kjit_type x = word_type(s, o, 0, o->values.items[1]->type),
            y = word_type(s, o, 1, o->values.items[0]->type);
  kjit_type result = x == KJIT_U32 && y == KJIT_U32 ? KJIT_U32 : KJIT_I32;
  return apply_types(s, o, (const kjit_type[]){ x, y, result }, result);
}

kj_texpr *kj_rule_sad(kj_scope *s, const kj_operands *o)
{
  kjit_type x = word_type(s, o, 0, o->values.items[1]->type),
            y = word_type(s, o, 1, o->values.items[0]->type);
  if (x != y)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "`%s` of %s and %s: convert one", o->builtin->name,
            kj_type_text(s->c, x), kj_type_text(s->c, y));
  return apply_types(s, o, (const kjit_type[]){ x, x, KJIT_U32 }, KJIT_U32);
}

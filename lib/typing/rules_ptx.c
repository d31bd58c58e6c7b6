/* Result rule of inline PTX. */
#include <string.h>

#include "typing/rules.h"

static bool is_operand_type(const kj_compilation *c, kjit_type type)
{
  kj_type_class class_ = kj_class_of(c, type);
  return kj_is_scalar(type) &&
         (class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED || class_ == KJ_CLASS_FLOAT);
}

/* %0 becomes $0, %% a percent sign, a dollar sign $$; a number that no operand has is an error. */
static const char *translate(kj_scope *s, const kj_operands *o, size_t count)
{
  const char *from = o->text->name;
  char *text = KJ_NEW_ARRAY(s->arena, char, 2 * strlen(from) + 1), *to = text;
  for (; *from; from++) {
    bool is_number = from[0] == '%' && from[1] >= '0' && from[1] <= '9';
    if (is_number) {
      size_t number = 0;
      for (const char *digit = from + 1; *digit >= '0' && *digit <= '9' && number < 1000; digit++)
        number = number * 10 + (size_t)(*digit - '0');
      if (number >= count)
        kj_fail(s->c, o->text->location, KJIT_ERROR_TYPE,
                "`%s` has no operand %%%zu: the %s are %%0 to %%%zu", o->builtin->name, number,
                o->builtin->id == KJ_BUILTIN_PTX ? "result and the operands" : "operands",
                count ? count - 1 : 0);
    }
    if (from[0] == '%' && !is_number && from[1] == '%') from++;
    if (from[0] == '$') *to++ = '$';
    *to++ = is_number ? '$' : *from;
  }
  *to = 0;
  return text;
}

kj_texpr *kj_rule_ptx(kj_scope *s, const kj_operands *o)
{
  bool has_result = o->builtin->id == KJ_BUILTIN_PTX;
  if (s->c->request->target.kind == KJ_TARGET_CPU && !s->is_quiet)
    kj_fail(
      s->c, o->location, KJIT_ERROR_UNSUPPORTED,
      "`%s` is for GPUs only: on the CPU there is no PTX (`if target == gpu` keeps it from there)",
      o->builtin->name);
  if (has_result && !is_operand_type(s->c, o->type_argument))
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "the result of `ptx` is an integer or a float, not %s",
            kj_type_text(s->c, o->type_argument));
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  for (size_t i = 0; i < o->values.count; i++) {
    kj_texpr *value = kj_make_concrete(s, o->values.items[i]);
    if (!is_operand_type(s->c, value->type))
      kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
              "an operand of `%s` is an integer or a float, not %s", o->builtin->name,
              kj_type_text(s->c, value->type));
    KJ_PUSH(s->arena, &typed.values, value);
  }
  kj_texpr *expr = kj_new_builtin(s, &typed, has_result ? o->type_argument : KJIT_VOID);
  expr->text = translate(s, o, o->values.count + has_result);
  return expr;
}

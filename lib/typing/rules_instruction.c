/* Typing rules of built-ins that become single GPU instructions, inline PTX, and the architecture
 * that each built-in needs. */
#include <string.h>

#include "typing/rules.h"

/* ---- built-ins on 32-bit words ---- */

static bool is_word(const kt_scope *s, kjit_type type)
{
  return type == KJ_WEAK_INT ||
         (kt_is_integer(s->c, type) && ki_type(s->c->types, type)->size_bytes <= 4);
}

static kt_expr *convert_word(kt_scope *s, const kt_operands *o, size_t index, kjit_type type)
{
  kt_expr *value = o->values.items[index];
  if (!is_word(s, value->type))
    kt_fail_number(s->c, value->location, value->type, "`%s` works on 32-bit integers, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  return kt_convert(s, value, type, value->location);
}

/* Returns the 32-bit type to which an operand is converted: i32 for small integers, and the type of
 * the other operand for a literal. */
static kjit_type word_type(kt_scope *s, const kt_operands *o, size_t index, kjit_type beside)
{
  kjit_type type = o->values.items[index]->type;
  if (type == KJ_WEAK_INT) return beside == KJIT_U32 ? KJIT_U32 : KJIT_I32;
  return is_word(s, type) ? ki_arithmetic_type(type) : KJIT_I32;
}

static kt_expr *apply_types(kt_scope *s, const kt_operands *o, const kjit_type *types,
                            kjit_type result)
{
  kt_operands typed = *o;
  typed.values = (kt_exprs){ 0 };
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &typed.values, convert_word(s, o, i, types[i]));
  return kt_new_builtin(s, &typed, result);
}

kt_expr *kt_rule_words(kt_scope *s, const kt_operands *o)
{
  return apply_types(s, o, (const kjit_type[]){ KJIT_U32, KJIT_U32, KJIT_U32 }, KJIT_U32);
}

kt_expr *kt_rule_dp4a(kt_scope *s, const kt_operands *o)
{
  kjit_type x = word_type(s, o, 0, o->values.items[1]->type),
            y = word_type(s, o, 1, o->values.items[0]->type);
  kjit_type result = x == KJIT_U32 && y == KJIT_U32 ? KJIT_U32 : KJIT_I32;
  return apply_types(s, o, (const kjit_type[]){ x, y, result }, result);
}

kt_expr *kt_rule_sad(kt_scope *s, const kt_operands *o)
{
  kjit_type x = word_type(s, o, 0, o->values.items[1]->type),
            y = word_type(s, o, 1, o->values.items[0]->type);
  if (x != y)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` on %s and %s: the types must be equal; convert one", o->builtin->name,
            kt_type_text(s->c, x), kt_type_text(s->c, y));
  return apply_types(s, o, (const kjit_type[]){ x, x, KJIT_U32 }, KJIT_U32);
}

/* ---- inline PTX ---- */

/* In the PTX text, the operands are numbered: first the results, then the values. */

static bool is_operand_type(const kt_compilation *c, kjit_type type)
{
  ki_type_class class_ = kt_class_of(c, type);
  return ki_is_scalar(type) &&
         (class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED || class_ == KJ_CLASS_FLOAT);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns the number of results. If the result type is a tuple, each item is a result. */
static size_t count_results(const kt_scope *s, const kt_operands *o)
{
  if (o->builtin->id != KJ_BUILTIN_PTX) return 0;
  return kt_is_tuple(s->c, o->type_argument) ? ki_type(s->c->types, o->type_argument)->count : 1;
}

static void check_results(kt_scope *s, const kt_operands *o)
{
  const ki_type_info *info = ki_type(s->c->types, o->type_argument);
  bool is_tuple = kt_is_tuple(s->c, o->type_argument);
  const kjit_type *types = is_tuple ? info->items : &o->type_argument;
  for (size_t i = 0; i < count_results(s, o); i++)
    if (!is_operand_type(s->c, types[i]))
      kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
              "the result of `ptx` is an integer, a float or a tuple of these, not %s",
              kt_type_text(s->c, o->type_argument));
}

/* Checks that an operand's value can be written into the PTX text as a number, and returns the bit
 * that stands for the operand. */
static uint32_t take_constant(kt_scope *s, const kt_operands *o, size_t number)
{
  size_t results = count_results(s, o);
  const kt_expr *value = number < results ? NULL : o->values.items[number - results];
  if (!value || !kt_is_constant(value) || !kt_is_integer(s->c, value->type))
    kt_fail(s->c, value ? value->location : o->text->location, KJIT_ERROR_TYPE,
            "%%n%zu of `%s` must be an integer known at compile time; %s", number, o->builtin->name,
            value ? "this operand is not" : kj_format(s->arena, "%%%zu is a result", number));
  if (number - results >= 32)
    kt_fail(s->c, o->text->location, KJIT_ERROR_UNSUPPORTED,
            "%%n%zu is operand %zu of `%s`, but only the first 32 operands can be inserted into "
            "the text as numbers",
            number, number - results + 1, o->builtin->name);
  return UINT32_C(1) << (number - results);
}

/* Translates the PTX text to LLVM's form: %0 and %n0 become $0, %% becomes a percent sign, and $
 * becomes $$. Reports operand numbers that do not exist. constants receives the bits of the
 * operands that the text names as %n. */
static const char *translate(kt_scope *s, const kt_operands *o, size_t count, uint32_t *constants)
{
  const char *from = o->text->name;
  char *text = KJ_NEW_ARRAY(s->arena, char, 2 * strlen(from) + 1), *to = text;
  *constants = 0;
  for (; *from; from++) {
    bool is_constant = from[0] == '%' && from[1] == 'n' && is_digit(from[2]),
         is_number = is_constant || (from[0] == '%' && is_digit(from[1]));
    if (is_number) {
      size_t number = 0;
      from += is_constant;
      for (const char *digit = from + 1; is_digit(*digit) && number < 1000; digit++)
        number = number * 10 + (size_t)(*digit - '0');
      if (number >= count)
        kt_fail(s->c, o->text->location, KJIT_ERROR_TYPE,
                "`%s` has no operand %%%zu: its %s have the names %%0 to %%%zu", o->builtin->name,
                number, o->builtin->id == KJ_BUILTIN_PTX ? "results and operands" : "operands",
                count ? count - 1 : 0);
      if (is_constant) *constants |= take_constant(s, o, number);
    }
    if (from[0] == '%' && !is_number && from[1] == '%') from++;
    if (from[0] == '$') *to++ = '$';
    *to++ = is_number ? '$' : *from;
  }
  *to = 0;
  return text;
}

kt_expr *kt_rule_ptx(kt_scope *s, const kt_operands *o)
{
  bool has_result = o->builtin->id == KJ_BUILTIN_PTX;
  size_t count = count_results(s, o) + o->values.count;
  if (s->c->request->target.kind == KJ_TARGET_CPU && !s->is_quiet)
    kt_fail(s->c, o->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` is not supported on the CPU, which cannot execute PTX (write it under `if target "
            "== gpu`)",
            o->builtin->name);
  if (has_result) check_results(s, o);
  kt_operands typed = *o;
  typed.values = (kt_exprs){ 0 };
  for (size_t i = 0; i < o->values.count; i++) {
    kt_expr *value = kt_make_concrete(s, o->values.items[i]);
    if (!is_operand_type(s->c, value->type))
      kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
              "an operand of `%s` must be an integer or a float, not %s", o->builtin->name,
              kt_type_text(s->c, value->type));
    KJ_PUSH(s->arena, &typed.values, value);
  }
  kt_expr *expr = kt_new_builtin(s, &typed, has_result ? o->type_argument : KJIT_VOID);
  expr->text = translate(s, o, count, &expr->dimension);
  return expr;
}

/* ---- minimum architecture and PTX version of built-ins ----
 *
 * These are checked here, because LLVM aborts the process for some unsupported instructions and
 * passes others to ptxas unchecked. */

static const char *version_text(kt_compilation *c, uint32_t ptx)
{
  return kj_format(c->arena, "PTX %u.%u", ptx / 10, ptx % 10);
}

void kt_require_arch(kt_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx)
{
  kt_compilation *c = s->c;
  const kj_target *target = &c->request->target;
  if (target->kind == KJ_TARGET_CPU || s->is_quiet) return;
  const char given[2] = { target->suffix, 0 }, wanted[2] = { suffix, 0 };
  bool fits = suffix ? target->arch == arch && target->suffix == suffix : target->arch >= arch;
  if (!fits && suffix)
    kt_fail(c, location, KJIT_ERROR_UNSUPPORTED,
            "%s is supported on sm_%u%s only, but the target is sm_%u%s", what, arch, wanted,
            target->arch, given);
  if (!fits)
    kt_fail(c, location, KJIT_ERROR_UNSUPPORTED,
            "%s needs sm_%u or later, but the target is sm_%u%s (write it under `if arch >= %u`)",
            what, arch, target->arch, given, arch);
  if (target->ptx_version && target->ptx_version < ptx)
    kt_fail(c, location, KJIT_ERROR_UNSUPPORTED, "%s needs %s, but the driver supports %s", what,
            version_text(c, ptx), version_text(c, target->ptx_version));
  if (c->least_ptx < ptx) c->least_ptx = ptx;
}

void kt_check_requirement(kt_scope *s, const kt_operands *o)
{
  const ki_builtin *b = o->builtin;
  if (b->arch)
    kt_require_arch(s, kj_format(s->arena, "`%s`", b->name), o->location, b->arch, b->suffix,
                    b->ptx);
}

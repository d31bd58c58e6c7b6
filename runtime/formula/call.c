/* Translates calls of functions, and constants, in formulas. The table functions.def defines
 * them. */
#include <math.h>
#include <string.h>

#include "formula/formula.h"
#include "ir/near_name.h"

typedef struct function_row {
  const char *name;
  uint32_t least, most;
  kf_rule rule;
  const char *text; /* name or text in the kernel IR */
} function_row;

typedef enum constant_kind { NUMBER, BOOL, NULL_VALUE } constant_kind;

typedef struct constant_row {
  const char *name;
  constant_kind kind;
  double value;
} constant_row;

typedef struct absent_row {
  const char *name, *sentence;
} absent_row;

#define KF_CONSTANT(name, kind, value)
#define KF_ABSENT(name, sentence)
#define KF_FUNCTION(name, least, most, rule, text, meaning) { name, least, most, KF_##rule, text },
static const function_row functions[] = {
#include "formula/functions.def"
};
#undef KF_FUNCTION
#undef KF_CONSTANT
#undef KF_ABSENT

#define KF_FUNCTION(name, least, most, rule, text, meaning)
#define KF_ABSENT(name, sentence)
#define KF_CONSTANT(name, kind, value) { name, kind, value },
static const constant_row constants[] = {
#include "formula/functions.def"
};
#undef KF_CONSTANT
#undef KF_ABSENT

#define KF_CONSTANT(name, kind, value)
#define KF_ABSENT(name, sentence) { name, sentence },
static const absent_row absent[] = {
#include "formula/functions.def"
};
#undef KF_FUNCTION
#undef KF_CONSTANT
#undef KF_ABSENT

enum {
  FUNCTION_COUNT = sizeof functions / sizeof *functions,
  CONSTANT_COUNT = sizeof constants / sizeof *constants,
  ABSENT_COUNT = sizeof absent / sizeof *absent
};

const char *kjit_get_formula_function(size_t index)
{
  return index < FUNCTION_COUNT ? functions[index].name : NULL;
}

/* ---- names ---- */

static const char *find_absent(const char *name)
{
  for (size_t i = 0; i < ABSENT_COUNT; i++)
    if (!strcmp(absent[i].name, name)) return absent[i].sentence;
  return NULL;
}

static _Noreturn void refuse_name(kf_writer *w, kj_location location, const char *name,
                                  bool is_called)
{
  const char *sentence = find_absent(name);
  if (is_called && sentence) kf_fail(w, location, KJIT_ERROR_NAME, "%s", sentence);
  ki_near near = { .name = name };
  for (size_t i = 0; i < FUNCTION_COUNT && is_called; i++) ki_consider(&near, functions[i].name);
  for (size_t i = 0; i < w->column_count && !is_called; i++) ki_consider(&near, w->columns[i].name);
  kf_fail(w, location, KJIT_ERROR_NAME, "there is no %s `%s`%s%s%s",
          is_called ? "function" : "column", name, near.best ? "; did you mean `" : "",
          near.best ? near.best : "", near.best ? "`?" : "");
}

kf_value kf_read_name(kf_writer *w, const ki_expr *name)
{
  static const uint32_t never[] = { KF_ALWAYS_NULL };
  for (size_t i = 0; i < CONSTANT_COUNT; i++) {
    const constant_row *row = &constants[i];
    if (strcmp(row->name, name->name) != 0) continue;
    if (row->kind == NUMBER) return (kf_value){ .type = KJ_WEAK_FLOAT, .number = row->value };
    if (row->kind == BOOL) return kf_bool(row->value != 0);
    return (kf_value){ .type = KJIT_ANY, .valid = { never, 1 } };
  }
  refuse_name(w, name->location, name->name, false);
}

/* ---- rules ---- */

typedef struct arguments {
  const function_row *row;
  const ki_expr *call;
  kf_value *items;
  size_t count;
} arguments;

static _Noreturn void refuse_argument(kf_writer *w, const arguments *a, size_t index,
                                      const char *expected)
{
  kf_fail(w, a->call->args.items[index]->location, KJIT_ERROR_TYPE,
          "argument %zu of `%s` is %s; %s is expected", index + 1, a->row->name,
          kf_type_name(w, &a->items[index]), expected);
}

static kf_conditions join_all(kf_writer *w, const arguments *a)
{
  kf_conditions valid = { 0 };
  for (size_t i = 0; i < a->count; i++) valid = kf_join(w, valid, a->items[i].valid);
  return valid;
}

static kjit_type common_of_all(kf_writer *w, const arguments *a)
{
  kf_value all = a->items[0];
  all.type = kf_own_type(&all);
  for (size_t i = 0; i < a->count; i++) {
    kjit_type type = kf_find_common_type(i ? &all : &a->items[0], &a->items[i]);
    if (type == KJIT_ANY)
      refuse_argument(w, a, i, "a number that has a common type with the other arguments");
    all = (kf_value){ .type = type };
  }
  return all.type;
}

/* Writes a call of the function with all arguments converted to `type`, and returns its value. */
static kf_value call_in(kf_writer *w, const arguments *a, kjit_type type, kjit_type result)
{
  const char *list = "";
  for (size_t i = 0; i < a->count; i++)
    list = kj_format(w->arena, "%s%s%s", list, i ? ", " : "", kf_convert(w, &a->items[i], type));
  return kf_let(w, result, join_all(w, a), kj_format(w->arena, "%s(%s)", a->row->text, list));
}

static kf_value call_number(kf_writer *w, const arguments *a)
{
  kjit_type type = common_of_all(w, a);
  bool is_real = a->row->rule == KF_REAL || a->row->rule == KF_TEST;
  if (is_real && !kf_is_float(type)) type = KJIT_F64;
  return call_in(w, a, type, a->row->rule == KF_TEST ? KJIT_BOOL : type);
}

static kjit_type join_types(kf_writer *w, const arguments *a, size_t first)
{
  kf_value all = a->items[first];
  for (size_t i = first + 1; i < a->count; i++) {
    kjit_type type = kf_find_joined_type(&all, &a->items[i]);
    if (type == KJIT_ANY && (all.type != KJIT_ANY || a->items[i].type != KJIT_ANY))
      refuse_argument(w, a, i, "a value that has a common type with the other arguments");
    if (type != KJIT_ANY) all = (kf_value){ .type = type };
  }
  return kf_own_type(&all);
}

static kf_value call_where(kf_writer *w, const arguments *a)
{
  const kf_value *condition = &a->items[0], *x = &a->items[1], *y = &a->items[2];
  if (condition->type == KJIT_ANY) return *condition;
  if (condition->type != KJIT_BOOL) refuse_argument(w, a, 0, "a bool, such as a comparison,");
  kjit_type type = join_types(w, a, 1);
  if (type == KJIT_ANY) return *x;
  kf_conditions chosen = x->valid;
  if (!kf_same_conditions(x->valid, y->valid))
    chosen = kf_let_condition(w, kj_format(w->arena, "(%s & (%s)) | ((not %s) & (%s))",
                                           condition->text, kf_condition_text(w, x->valid),
                                           condition->text, kf_condition_text(w, y->valid)));
  const char *text = kj_format(w->arena, "select(%s, %s, %s)", condition->text,
                               kf_convert(w, x, type), kf_convert(w, y, type));
  return kf_let(w, type, kf_join(w, condition->valid, chosen), text);
}

static kf_value call_coalesce(kf_writer *w, const arguments *a)
{
  kjit_type type = join_types(w, a, 0);
  kf_value result = a->items[a->count - 1];
  if (type == KJIT_ANY) return result;
  result.text = kf_convert(w, &result, type);
  result.type = type;
  for (size_t i = a->count - 1; i-- > 0;) {
    const kf_value *x = &a->items[i];
    const char *text = kf_convert(w, x, type);
    if (!x->valid.count) {
      result = kf_let(w, type, x->valid, text);
      continue;
    }
    const char *is_valid = kf_condition_text(w, x->valid);
    kf_conditions valid = { 0 };
    if (result.valid.count)
      valid = kf_let_condition(w, kj_format(w->arena, "(%s) | (%s)", is_valid,
                                            kf_condition_text(w, result.valid)));
    result = kf_let(w, type, valid,
                    kj_format(w->arena, "select(%s, %s, %s)", is_valid, text, result.text));
  }
  return result;
}

static kf_value call_is_valid(kf_writer *w, const arguments *a)
{
  bool asks_null = a->row->rule == KF_IS_NULL;
  kf_conditions valid = a->items[0].valid;
  if (!valid.count) return kf_bool(!asks_null);
  const char *text = kf_condition_text(w, valid);
  return kf_let(w, KJIT_BOOL, (kf_conditions){ 0 },
                asks_null ? kj_format(w->arena, "not (%s)", text) : text);
}

static kf_value call_null_if(kf_writer *w, const arguments *a)
{
  kf_value x = a->items[0], y = a->items[1];
  if (x.type == KJIT_ANY || y.type == KJIT_ANY) return x;
  kjit_type type = kf_own_type(&x);
  if (ki_is_weak(x.type) && x.kind == KF_PLAIN)
    x = kf_let(w, type, x.valid, kf_convert(w, &x, type));
  kf_value same = kf_apply(w, KJIT_OP_EQ, x, y, a->call->location);
  kf_conditions differs = kf_let_condition(w, kj_format(w->arena, "not (%s & %s)",
                                                        kf_condition_text(w, y.valid), same.text));
  x.valid = kf_join(w, x.valid, differs);
  return x;
}

static bool are_strings(const kf_value *values, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (values[i].kind != KF_STRING) return false;
  return true;
}

static kf_value call_is_in(kf_writer *w, const arguments *a)
{
  if (a->items[0].kind == KF_TEXT && are_strings(a->items + 1, a->count - 1))
    return kf_find_texts(w, a->items[0], a->items + 1, a->count - 1, a->call->location);
  kf_value any = kf_bool(false), x = a->items[0];
  if (ki_is_weak(x.type) && x.kind == KF_PLAIN) {
    kjit_type type = kf_own_type(&x);
    x = kf_let(w, type, x.valid, kf_convert(w, &x, type));
  }
  for (size_t i = 1; i < a->count; i++) {
    kf_value same = kf_apply(w, KJIT_OP_EQ, x, a->items[i], a->call->location);
    if (same.type == KJIT_ANY) return same;
    any = kf_apply(w, KJIT_OP_OR, any, same, a->call->location);
  }
  return any;
}

static kf_value call_cast(kf_writer *w, const arguments *a)
{
  const kf_value *x = &a->items[0];
  kjit_type type = KJIT_ANY;
  if (!ki_find_type(w->context->types, a->row->text, strlen(a->row->text), &type))
    longjmp(*w->arena->on_failure, KJ_JUMP_MEMORY);
  if (x->type == type) return *x;
  if (x->type == KJ_WEAK_FLOAT && !kf_is_float(type)) {
    const kf_value real = kf_let(w, KJIT_F64, x->valid, kf_convert(w, x, KJIT_F64));
    return kf_let(w, type, x->valid, kf_convert(w, &real, type));
  }
  return kf_let(w, type, x->valid, kf_convert(w, x, type));
}

static kf_value call_match(kf_writer *w, const arguments *a)
{
  if (a->items[0].kind != KF_TEXT) refuse_argument(w, a, 0, "a column of texts");
  if (a->items[1].kind != KF_STRING) refuse_argument(w, a, 1, "a text");
  return kf_match_texts(w, a->row->text, a->items[0], a->items[1], a->call->location);
}

/* Returns whether a function takes columns of texts. */
static bool takes_texts(kf_rule rule)
{
  return rule == KF_IS_NULL || rule == KF_IS_VALID || rule == KF_NULL_IF || rule == KF_IS_IN ||
         rule == KF_MATCH || rule == KF_WHERE || rule == KF_COALESCE;
}

/* Converts the arguments of `where` and `coalesce`, starting with argument `first`, to a common
 * type. At least one argument is a timestamp, duration or text. The result has the kind of
 * *model. */
static void unify(kf_writer *w, arguments *a, size_t first, kf_value *model)
{
  if (kf_are_texts(a->items + first, a->count - first)) {
    kf_unify_texts(w, a->items + first, a->count - first, model, a->call->location);
    return;
  }
  for (size_t i = first; i < a->count; i++)
    if (a->items[i].kind == KF_TEXT)
      refuse_argument(w, a, i, "a value that has a common type with the others");
  model->unit = kf_unify(w, a->items + first, a->count - first, &model->kind, a->call->location);
}

/* Handles a call with a timestamp, duration or text argument. */
static kf_value call_dates(kf_writer *w, arguments *a)
{
  size_t first = a->row->rule == KF_WHERE;
  kf_value model = { 0 };
  for (size_t i = 0; i < a->count && !takes_texts(a->row->rule); i++)
    if (a->items[i].kind == KF_TEXT) refuse_argument(w, a, i, "a number or time");
  for (size_t i = 0; i < first; i++)
    if (a->items[i].kind != KF_PLAIN) refuse_argument(w, a, i, "a bool");
  switch (KJ_AMONG(a->row->rule)) {
  case KF_IS_NULL:
  case KF_IS_VALID:
    if (a->items[0].kind == KF_STRING) refuse_argument(w, a, 0, "a column");
    return call_is_valid(w, a);
  case KF_NULL_IF:
    if (a->items[0].kind == KF_STRING) refuse_argument(w, a, 0, "a column");
    return call_null_if(w, a);
  case KF_IS_IN: return call_is_in(w, a);
  case KF_MATCH: return call_match(w, a);
  case KF_IN_UNIT:
    if (a->items[0].kind == KF_STRING) refuse_argument(w, a, 0, "a timestamp or duration");
    return kf_change_unit(w, a->row->name, a->items[0], a->call->location);
  case KF_CAST:
    if (strcmp(a->row->text, "i64") != 0 || a->items[0].kind == KF_STRING)
      refuse_argument(w, a, 0, "a number; int64(x) is the count of units of a timestamp");
    a->items[0].kind = KF_PLAIN;
    return call_cast(w, a);
  case KF_WHERE:
  case KF_COALESCE: break;
  default:
    for (size_t i = 0; i < a->count; i++)
      if (a->items[i].kind != KF_PLAIN) refuse_argument(w, a, i, "a number");
  }
  unify(w, a, first, &model);
  kf_value result = first ? call_where(w, a) : call_coalesce(w, a);
  if (result.type == KJIT_ANY) return result;
  result.kind = model.kind;
  result.unit = model.unit;
  result.texts = model.texts;
  result.own_count = model.own_count;
  return result;
}

static kf_value apply(kf_writer *w, arguments *a)
{
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i].kind != KF_PLAIN) return call_dates(w, a);
  switch (a->row->rule) {
  case KF_WHERE: return call_where(w, a);
  case KF_COALESCE: return call_coalesce(w, a);
  case KF_IS_NULL:
  case KF_IS_VALID: return call_is_valid(w, a);
  case KF_NULL_IF: return call_null_if(w, a);
  case KF_IS_IN: return call_is_in(w, a);
  case KF_POWER: return kf_apply(w, KJIT_OP_POW, a->items[0], a->items[1], a->call->location);
  case KF_CAST: return call_cast(w, a);
  case KF_MATCH: return call_match(w, a);
  case KF_LENGTH:
    if (a->items[0].type != KJIT_ANY && !kf_is_integer(kf_own_type(&a->items[0])))
      refuse_argument(w, a, 0, "an integer");
    if (kf_own_type(&a->items[0]) == KJIT_U64) refuse_argument(w, a, 0, "a signed integer");
    return kf_make_duration(w, a->row->name, a->items[0]);
  case KF_IN_UNIT:
    if (a->items[0].type == KJIT_ANY) return a->items[0];
    refuse_argument(w, a, 0, "a timestamp or duration");
  case KF_REAL:
  case KF_TEST:
  case KF_NUMBER: break;
  }
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i].type == KJIT_ANY) return a->items[i];
  return call_number(w, a);
}

/* ---- calls ---- */

static const function_row *find_function(const char *name)
{
  for (size_t i = 0; i < FUNCTION_COUNT; i++)
    if (!strcmp(functions[i].name, name)) return &functions[i];
  return NULL;
}

static void check_count(kf_writer *w, const function_row *row, const ki_expr *call)
{
  size_t count = call->args.count;
  if (count >= row->least && count <= row->most) return;
  bool is_few = count < row->least;
  uint32_t limit = is_few ? row->least : row->most;
  kf_fail(w, call->location, KJIT_ERROR_TYPE, "`%s` takes %s%u argument%s; %zu are given",
          row->name,
          row->least == row->most ? ""
          : is_few                ? "at least "
                                  : "at most ",
          limit, limit == 1 ? "" : "s", count);
}

kf_value kf_call(kf_writer *w, const ki_expr *call)
{
  const ki_expr *callee = call->x;
  /* a column and a function may have the same name */
  const char *name = callee->kind == KJ_EXPR_DECL   ? callee->decl->name
                     : callee->kind == KJ_EXPR_NAME ? callee->name
                                                    : NULL;
  if (!name) kf_fail(w, call->location, KJIT_ERROR_SYNTAX, "only a function can be called");
  const function_row *row = find_function(name);
  if (!row) refuse_name(w, callee->location, name, true);
  check_count(w, row, call);
  if (row->rule == KF_IS_IN) /* the generated code compares the column with each value */
    kf_count_operations(w, (uint32_t)call->args.count - 2, call->location);
  arguments a = { .row = row, .call = call, .count = call->args.count };
  a.items = KJ_NEW_ARRAY(w->arena, kf_value, a.count);
  for (size_t i = 0; i < a.count; i++) a.items[i] = kf_read(w, call->args.items[i]);
  w->location = call->location;
  return apply(w, &a);
}

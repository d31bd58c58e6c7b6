/* Infers the types of variables that depend on all their assignments: variables that start with a
 * literal, that are declared without a value, or that hold arrays.
 *
 * The type is a guess. In each round, each assignment can raise the guess, until it no longer
 * changes. Guesses only become more general. A number type becomes wider. An array type gets
 * arbitrary strides, becomes const, or loses extents that are known at compile time. A variable
 * that is declared without a value gets its type when it is assigned for the first time. Statements
 * that read it earlier in the same round are skipped until the next round. */
#include "typing/infer.h"

/* ---- waiting for the type of a variable ---- */

void kt_wait_for_type(kt_scope *s, const ki_decl *decl, kj_location location)
{
  KJ_ASSERT(s->may_wait && s->on_wait);
  if (!s->waits_for) {
    s->waits_for = decl;
    s->waits_at = location;
  }
  longjmp(*s->on_wait, 1);
}

bool kt_try_without_waiting(kt_scope *s, void (*run)(kt_scope *s, void *data), void *data)
{
  jmp_buf here, *const outer = s->on_wait, *const on_failure = s->c->on_failure;
  kt_stmts *const out = s->out;
  const kt_level level = s->level, skipped = s->skipped_level;
  const uint32_t ranges = s->range_count, depth = s->inference->depth;
  const size_t records = s->inference->records.count;
  const bool is_quiet = s->is_quiet, is_range_body = s->is_range_body;
  if (setjmp(here) == 0) {
    s->on_wait = &here;
    run(s, data);
    s->on_wait = outer;
    return true;
  }
  s->on_wait = outer;
  s->c->on_failure = on_failure;
  kt_abandon_calls(s, records, depth);
  s->out = out;
  s->level = level;
  s->skipped_level = skipped;
  s->range_count = ranges;
  s->is_quiet = is_quiet;
  s->is_range_body = is_range_body;
  return false;
}

/* ---- types ---- */

bool kt_holds_array(const kt_compilation *c, kjit_type type)
{
  if (!kt_is_tuple(c, type)) return kt_is_array(c, type);
  const ki_type_info *info = ki_type(c->types, type);
  for (uint32_t i = 0; i < info->count; i++)
    if (kt_holds_array(c, info->items[i])) return true;
  return false;
}

/* Maps the type of one tuple item to another type. */
typedef kjit_type (*change)(kt_scope *s, kjit_type item, kjit_type by);

static kjit_type change_items(kt_scope *s, kjit_type type, kjit_type by, change with)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  const kjit_type *others = by ? ki_type(s->c->types, by)->items : NULL;
  kjit_type *items = KJ_NEW_ARRAY(s->arena, kjit_type, info->count + 1);
  for (uint32_t i = 0; i < info->count; i++)
    items[i] = with(s, info->items[i], others ? others[i] : KJIT_ANY);
  kjit_type made = ki_intern_tuple(s->c->types, items, info->count);
  if (made == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return made;
}

/* Returns the type of an array variable before its first assignment. The value of such a variable
 * is an array without elements. */
static kjit_type open_type(kt_scope *s, kjit_type type, kjit_type by)
{
  (void)by;
  if (kt_is_tuple(s->c, type)) return change_items(s, type, KJIT_ANY, open_type);
  return kt_is_array(s->c, type) ? kt_forget_extents(s, type) : type;
}

/* Returns the type that an annotation gives to a value that fits the annotation. An array keeps its
 * memory space. */
static kjit_type annotated_type(kt_scope *s, kjit_type type, kjit_type annotation)
{
  if (kt_is_tuple(s->c, type)) return change_items(s, type, annotation, annotated_type);
  if (!kt_is_array(s->c, type)) return annotation;
  ki_type_info info = *ki_type(s->c->types, annotation);
  info.space = ki_type(s->c->types, type)->space;
  return kt_join_arrays(s, type, kt_intern_array(s, &info));
}

static bool is_numeric(const kt_compilation *c, kjit_type type)
{
  return kt_is_number(c, type) || kt_has_parts(c, type);
}

/* Joins two number types. The common type of a float literal and an integer stays weak: if a float
 * is assigned later, its type becomes the common type; otherwise the type becomes f64. */
static kjit_type join_numbers(kt_scope *s, kjit_type guess, kjit_type type, kj_location location)
{
  if (kt_has_parts(s->c, type) || kt_has_parts(s->c, guess))
    return guess == type ? type : kt_promote_parts(s, guess, type, location);
  bool is_open = (guess == KJ_WEAK_FLOAT && (kt_is_integer(s->c, type) || type == KJIT_BOOL)) ||
                 (type == KJ_WEAK_FLOAT && kt_is_integer(s->c, guess));
  return is_open ? KJ_WEAK_FLOAT : kt_join(s, guess, type, location);
}

static kjit_type join(kt_scope *s, kjit_type guess, kjit_type type, kj_location location)
{
  if (guess == KJIT_ANY) return type;
  if (s->has_numba_types) return kt_join_values(s, guess, type, location);
  if (is_numeric(s->c, guess) && is_numeric(s->c, type))
    return join_numbers(s, guess, type, location);
  return kt_join_values(s, guess, type, location);
}

/* ---- errors ---- */

static const char *memory_of(const ki_type_info *array)
{
  switch (array->space) {
  case KJ_SPACE_GLOBAL: return "global";
  case KJ_SPACE_SHARED: return "shared";
  case KJ_SPACE_LOCAL: return "local";
  case KJ_SPACE_CONST: return "constant";
  case KJ_SPACE_GENERIC: return "generic";
  case KJ_SPACE_VALUE: break;
  }
  return "no";
}

static const char *reason_of(kt_scope *s, kjit_type a, kjit_type b)
{
  const ki_type_info *x = ki_type(s->c->types, a), *y = ki_type(s->c->types, b);
  if (!kt_is_array(s->c, a) || !kt_is_array(s->c, b)) return "no type can represent both";
  if (x->element != y->element) return "the element types differ";
  if (x->rank != y->rank)
    return kj_format(s->arena, "one array has %u dimension%s, the other has %u", y->rank,
                     y->rank == 1 ? "" : "s", x->rank);
  return kj_format(s->arena, "one array is in %s memory, the other in %s memory", memory_of(y),
                   memory_of(x));
}

static kjit_error_code code_of(const kt_scope *s, kjit_type a, kjit_type b)
{
  if (kt_is_array(s->c, a) != kt_is_array(s->c, b)) return KJIT_CODE_ARRAY_AS_NUMBER;
  bool differ =
    kt_is_array(s->c, a) && ki_type(s->c->types, a)->element != ki_type(s->c->types, b)->element;
  return differ ? KJIT_CODE_ARRAY_ELEMENTS : KJIT_CODE_NONE;
}

static _Noreturn void fail_join(kt_scope *s, const ki_decl *decl, const kt_guess *guess,
                                kjit_type type, kj_location location)
{
  const char *name = decl->name, *old = kt_type_text(s->c, guess->type),
             *new = kt_type_text(s->c, type);
  const char *note = kj_format(s->arena, "`%s` is assigned %s here", name, old);
  bool is_literal = ki_is_weak(guess->type) || ki_is_weak(type);
  if (is_numeric(s->c, type) && is_numeric(s->c, guess->type) && !decl->is_open && !is_literal)
    kt_fail_twice(s->c, location, guess->location, KJIT_CODE_NONE, note,
                  "`%s` starts with a literal and is then assigned %s and %s, but no type can "
                  "represent both; give it a type, " KJ_PHRASE(
                    VARIABLE_TYPE, "`var " KJ_PHRASE_ARGUMENT("%s") ": i64 = ...`"),
                  name, old, new, name);
  kt_fail_twice(s->c, location, guess->location, code_of(s, guess->type, type), note,
                "`%s` is assigned %s here and %s elsewhere: %s", name, new, old,
                reason_of(s, guess->type, type));
}

/* ---- guesses ---- */

kt_expr *kt_raise_guess(kt_scope *s, const ki_decl *decl, kt_expr *value)
{
  kt_guess *guess = &s->guesses[decl->index];
  kjit_type annotation = s->meanings[decl->index].annotation;
  bool starts_with_number = !decl->is_open && is_numeric(s->c, guess->type);
  if (starts_with_number && !is_numeric(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "`%s` is a number, but the value has the type %s", decl->name,
                   kt_type_text(s->c, value->type));
  if (annotation != KJIT_ANY)
    value = kt_fit_annotation(s, value, annotation, kj_format(s->arena, "`%s`", decl->name),
                              value->location);
  if (!is_numeric(s->c, value->type)) value = kt_make_concrete(s, value);
  kjit_type wide = kt_wide_type(value), type = wide != KJIT_ANY ? wide : value->type;
  if (annotation != KJIT_ANY) type = annotated_type(s, type, annotation);
  if (decl->is_open) type = open_type(s, type, KJIT_ANY);
  kjit_type joined = join(s, guess->type, type, value->location);
  if (joined == KJIT_ANY) fail_join(s, decl, guess, type, value->location);
  if (joined == guess->type) return value;
  if (guess->type != KJIT_ANY || decl->is_open) s->is_changed = true;
  guess->type = joined;
  guess->location = value->location;
  return value;
}

/* ---- before the first assignment ---- */

kt_expr *kt_make_unset(kt_scope *s, kjit_type type, kj_location location)
{
  KJ_ASSERT(type != KJIT_ANY && !ki_is_weak(type));
  if (kt_is_array(s->c, type)) return kt_new_texpr(s->c, KJ_T_EMPTY, type, location);
  if (!kt_is_tuple(s->c, type)) return kt_make_zero(s, type, location);
  const ki_type_info *info = ki_type(s->c->types, type);
  kt_exprs items = { 0 };
  for (uint32_t i = 0; i < info->count; i++)
    KJ_PUSH(s->arena, &items, kt_make_unset(s, info->items[i], location));
  return kt_make_tuple(s, &items, location);
}

void kt_check_set(kt_scope *s, const ki_decl *decl, kj_location location)
{
  kt_var *is_set = s->meanings ? s->meanings[decl->index].is_set : NULL;
  if (!is_set || s->is_quiet) return;
  kt_stmt *failure = kt_new_tstmt(s->c, KJ_TS_FAIL, location);
  failure->failure = KJ_FAILURE_UNINITIALIZED;
  failure->message = decl->name;
  kt_stmt *branch = kt_new_tstmt(s->c, KJ_TS_IF, location);
  branch->value = kt_make_unary(s, KJIT_OP_NOT, kt_make_var(s, is_set, location), location);
  KJ_PUSH(s->arena, &branch->body, failure);
  kt_emit(s, branch);
}

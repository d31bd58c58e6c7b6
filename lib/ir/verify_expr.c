/* Names and expressions: what each name means, and whether what it means may stand where it does. */
#include <string.h>

#include "ir/expr.h"
#include "ir/habits.h"
#include "ir/verify.h"

/* ---- unknown names ---- */

static const char *find_near(kj_verifier *v, const char *name)
{
  kj_near near = { .name = name };
  for (size_t i = 0; v->function && i < v->function->params.count; i++) kj_consider(&near, v->function->params.items[i]->name);
  for (size_t i = 0; v->function && i < v->function->locals.count; i++) kj_consider(&near, v->function->locals.items[i]->name);
  for (size_t i = 0; i < v->module->decls.count; i++) kj_consider(&near, v->module->decls.items[i]->name);
  for (int i = 0; i < KJ_BUILTIN_COUNT; i++) kj_consider(&near, kj_builtin_table[i].name);
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++) kj_consider(&near, kj_type(v->module->types, type)->name);
  return near.best;
}

static bool is_local_name(const kj_verifier *v, const char *name)
{
  for (size_t i = 0; v->function && i < v->function->locals.count; i++)
    if (strcmp(v->function->locals.items[i]->name, name) == 0) return true;
  return false;
}

/* name may be dotted. */
static void fail_unknown(kj_verifier *v, kj_location location, const char *name, bool is_assigned)
{
  const char *sentence = kj_explain_name(v->arena, name), *later = kj_find_planned(v->arena, name);
  if (sentence) {
    kj_fail_verify(v, location, KJIT_ERROR_NAME, "%s", sentence);
    return;
  }
  if (later) {
    kj_fail_verify(v, location, KJIT_ERROR_UNSUPPORTED, "%s %s not supported yet", later, *later == '`' ? "is" : "are");
    return;
  }
  const char *near = find_near(v, name);
  const char *hint = near ? kj_format(v->arena, "; did you mean `%s`?", near) : "";
  if (is_local_name(v, name)) hint = ": its declaration is in another block or comes later";
  if (is_assigned) kj_fail_verify(v, location, KJIT_ERROR_NAME, "`%s` is not declared: `var %s = ...` declares a variable%s", name, name, near ? hint : "");
  else kj_fail_verify(v, location, KJIT_ERROR_NAME, "`%s` is not declared%s", name, hint);
}

static bool is_known(const kj_verifier *v, const char *name)
{
  return kj_find_entry(&v->decls, name, strlen(name)) || kj_find_builtin(name) || kj_is_type_name(name, strlen(name));
}

/* `cuda.grid`, `math.sqrt`: fields of a name that means nothing. The whole dotted name, or NULL where the root is no such name. */
static const char *spell_dotted(kj_verifier *v, const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_NAME) return is_known(v, expr->name) ? NULL : expr->name;
  if (expr->kind != KJ_EXPR_FIELD) return NULL;
  const char *root = spell_dotted(v, expr->x);
  return root ? kj_format(v->arena, "%s.%s", root, expr->name) : NULL;
}

static const kj_expr *find_root(const kj_expr *expr)
{
  while (expr->kind == KJ_EXPR_FIELD || expr->kind == KJ_EXPR_INDEX) expr = expr->x;
  return expr;
}

/* ---- names ---- */

/* The type of a parameter may name a later one. */
static kj_decl *find_parameter(const kj_verifier *v, const char *name)
{
  for (size_t i = 0; v->in_parameters && i < v->function->params.count; i++)
    if (strcmp(v->function->params.items[i]->name, name) == 0) return v->function->params.items[i];
  return NULL;
}

/* A struct that could not be made was reported: its name stays as it is. */
static void resolve_struct_name(kj_verifier *v, kj_expr *expr, kj_decl *decl)
{
  kj_resolve_struct(v, decl);
  if (decl->struct_type == KJIT_ANY) return;
  expr->kind = KJ_EXPR_TYPE;
  expr->type_expr = kj_spell_type(v->arena, v->module->types, decl->struct_type, expr->location);
}

static void resolve_name(kj_verifier *v, kj_expr *expr)
{
  kj_decl *param = find_parameter(v, expr->name);
  if (param) {
    expr->kind = KJ_EXPR_DECL;
    expr->decl = param;
    return;
  }
  const kj_map_entry *entry = kj_find_entry(&v->decls, expr->name, strlen(expr->name));
  const kj_builtin *builtin = kj_find_builtin(expr->name);
  kjit_type type;
  if (!kj_find_type(v->module->types, expr->name, strlen(expr->name), &type)) longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  if (entry && ((const kj_decl *)entry->value)->kind == KJ_DECL_STRUCT) {
    resolve_struct_name(v, expr, entry->value);
  } else if (entry) {
    expr->kind = KJ_EXPR_DECL;
    expr->decl = entry->value;
  } else if (builtin) {
    expr->kind = KJ_EXPR_BUILTIN;
    expr->builtin = builtin;
  } else if (type != KJIT_ANY) {
    expr->kind = KJ_EXPR_TYPE;
    expr->type_expr = kj_spell_type(v->arena, v->module->types, type, expr->location);
  } else {
    fail_unknown(v, expr->location, expr->name, false);
  }
}

static bool is_func_value(const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_BUILTIN) return !(expr->builtin->flags & KJ_NAME);
  return expr->kind == KJ_EXPR_DECL && (expr->decl->kind == KJ_DECL_FUNCTION || (expr->decl->kind == KJ_DECL_PARAM && expr->decl->is_func));
}

static void note_call(kj_verifier *v, const kj_expr *expr)
{
  kj_call_site site = { expr->decl, expr->location, v->range };
  KJ_PUSH(v->arena, &v->summaries[v->decl->index].calls, site);
}

static void verify_function_name(kj_verifier *v, kj_expr *expr, kj_role role)
{
  const kj_function *function = expr->decl->function;
  if (function->is_kernel) kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a kernel: only the host launches it", expr->decl->name);
  else if (v->fixed) kj_fail_verify(v, expr->location, KJIT_ERROR_UNSUPPORTED, "calls of functions in %s are not supported", v->fixed);
  else if (role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a function: it can be called, or handed to a parameter that is a `func`", expr->decl->name);
  else note_call(v, expr);
}

static void verify_local(kj_verifier *v, const kj_expr *expr, kj_role role)
{
  const kj_decl *decl = expr->decl;
  if (!decl->function) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a field and has no value here", decl->name);
    return;
  }
  if (decl->function != v->function) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_NAME, "`%s` belongs to another function", decl->name);
    return;
  }
  if (v->fixed && strcmp(v->fixed, "a default") == 0) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "a default is made from constants, not from `%s`", decl->name);
    return;
  }
  if (!v->visible[decl->index]) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_NAME, "`%s` is used outside of the block that declares it", decl->name);
    return;
  }
  if (role == KJ_ROLE_CALLEE && !decl->is_func)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   decl->kind == KJ_DECL_PARAM ? "`%s` is called: declare the parameter `%s: func`" : "`%s` is no function%.0s", decl->name, decl->name);
  if (decl->is_func && role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a function: it can be called, or handed to a parameter that is a `func`", decl->name);
}

static void verify_decl(kj_verifier *v, kj_expr *expr, kj_role role)
{
  kj_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_FUNCTION) verify_function_name(v, expr, role);
  else if (decl->kind != KJ_DECL_CONST) verify_local(v, expr, role);
  else if (role == KJ_ROLE_CALLEE) kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a constant, no function", decl->name);
  if (role == KJ_ROLE_TYPE) kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found `%s`; `dtype(%s)` is its type", decl->name, decl->name);
}

/* A built module's literals and casts mean the built-in even where a kernel has its name: the text could not say that, and a kernel keeps its name. */
static void refuse_hidden(kj_verifier *v, const kj_expr *expr, const char *name)
{
  const kj_map_entry *entry = v->is_text ? NULL : kj_find_entry(&v->decls, name, strlen(name));
  const kj_decl *decl = entry ? entry->value : NULL;
  bool is_kernel = decl && decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel;
  if (is_kernel) kj_fail_verify(v, expr->location, KJIT_ERROR_NAME, "`%s` is used here and is also the name of a kernel", name);
}

/* Whether a built-in has a value before any thread runs. */
static bool is_fixed(const kj_builtin *builtin)
{
  return (builtin->flags & KJ_PURE) && !(builtin->flags & (KJ_THREAD | KJ_XYZ)) && builtin->id != KJ_BUILTIN_GRIDSIZE;
}

/* Whether a built-in only makes a value of values, and so can be handed to a func parameter. */
static bool is_plain(const kj_builtin *builtin)
{
  return (builtin->flags & KJ_PURE) && !(builtin->flags & (KJ_NAME | KJ_PLACE | KJ_TYPE_ARG | KJ_UNEVALUATED));
}

static void verify_builtin(kj_verifier *v, const kj_expr *expr, kj_role role)
{
  const kj_builtin *builtin = expr->builtin;
  const char *name = builtin->name;
  bool is_value = builtin->flags & KJ_NAME;
  refuse_hidden(v, expr, name);
  if (v->fixed && !is_fixed(builtin))
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` has no value in %s, which is evaluated before the launch", name, v->fixed);
  else if (builtin->flags & KJ_XYZ)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` has three parts: write `%s.x`, `%s.y` or `%s.z`", name, name, name, name);
  else if (is_value && role == KJ_ROLE_CALLEE)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a value, no function: write it without parentheses", name);
  else if (role == KJ_ROLE_TYPE) kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found `%s`", name);
  else if (!is_value && role == KJ_ROLE_ARGUMENT && !is_plain(builtin))
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` cannot be handed over as a func: declare a func that calls it", name);
  else if (!is_value && role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a function: it stands before its arguments, `%s(%s)`", name, name, builtin->most ? "..." : "");
}

/* ---- types ---- */

static void verify_type_name(kj_verifier *v, kj_type_expr *type)
{
  const kj_map_entry *entry = kj_find_entry(&v->decls, type->name, strlen(type->name));
  kj_decl *decl = entry ? entry->value : NULL;
  if (decl && decl->kind == KJ_DECL_STRUCT) {
    kj_resolve_struct(v, decl);
    if (decl->struct_type == KJIT_ANY) return; /* reported */
    type->kind = KJ_TYPE_FIXED;
    type->type = decl->struct_type;
    return;
  }
  const char *alias = kj_find_type_alias(type->name), *later = kj_find_planned(v->arena, type->name);
  const kj_builtin *builtin = kj_find_builtin(type->name);
  if (alias) kj_fail_verify(v, type->location, KJIT_ERROR_NAME, "`%s` is `%s` here", type->name, alias);
  else if (later) kj_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED, "%s are not supported yet: `%s`", later, type->name);
  else if (builtin || kj_find_entry(&v->decls, type->name, strlen(type->name)))
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "expected a type, found `%s`", type->name);
  else if (kj_explain_name(v->arena, type->name)) kj_fail_verify(v, type->location, KJIT_ERROR_NAME, "%s", kj_explain_name(v->arena, type->name));
  else {
    kj_near near = { .name = type->name };
    for (kjit_type scalar = KJIT_BOOL; scalar < KJIT_SCALAR_COUNT; scalar++) kj_consider(&near, kj_type(v->module->types, scalar)->name);
    for (size_t i = 0; i < v->module->decls.count; i++)
      if (v->module->decls.items[i]->kind == KJ_DECL_STRUCT) kj_consider(&near, v->module->decls.items[i]->name);
    kj_fail_verify(v, type->location, KJIT_ERROR_NAME, near.best ? "`%s` is not a type; did you mean `%s`?" : "`%s` is not a type%.0s", type->name,
                   near.best ? near.best : "");
  }
}

static void verify_static_array(kj_verifier *v, kj_type_expr *type, bool static_extents)
{
  if (!static_extents)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "an array with extents is declared `local a: f32[16]` or `shared a: f32[16]`; the type of an argument has a `:` for every dimension");
  if (type->read_only) kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "an array that nothing writes is of no use here: leave `const` out");
  for (size_t i = 0; i < type->extents.count; i++) {
    kj_expr *extent = type->extents.items[i];
    kj_verify_expr(v, extent, KJ_ROLE_VALUE);
    bool is_negative = extent->kind == KJ_EXPR_UNARY && extent->op == KJIT_NEG && extent->x->kind == KJ_EXPR_INT;
    if (is_negative || (extent->kind == KJ_EXPR_INT && extent->integer == 0)) kj_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent is at least 1");
    if (extent->kind == KJ_EXPR_FLOAT) kj_fail_verify(v, extent->location, KJIT_ERROR_TYPE, "an extent is an integer");
  }
}

/* An array or pointer whose element has become known is known too. */
static void fix(kj_verifier *v, kj_type_expr *type, kjit_type made)
{
  if (made == KJIT_ANY) longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  type->kind = KJ_TYPE_FIXED;
  type->type = made;
}

static void fix_array(kj_verifier *v, kj_type_expr *type)
{
  if (type->element->kind != KJ_TYPE_FIXED) return;
  fix(v, type, kj_array_type(v->module->types, type->element->type, type->rank, type->layout, type->read_only));
}

static void fix_pointer(kj_verifier *v, kj_type_expr *type)
{
  const kj_type_expr *element = type->element;
  bool is_known = element->kind == KJ_TYPE_FIXED;
  bool is_sized = is_known && kj_type(v->module->types, element->type)->size_bytes;
  if (is_known && is_sized) fix(v, type, kj_intern_pointer(v->module->types, element->type, type->read_only));
  else if (element->kind != KJ_TYPE_DTYPE && element->kind != KJ_TYPE_NAMED)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "a pointer points to a scalar, a vector, a struct or a pointer; `f32*` also stands for many f32, one after the other");
}

void kj_verify_type(kj_verifier *v, kj_type_expr *type, bool static_extents)
{
  if (!type) return;
  switch (type->kind) {
  case KJ_TYPE_FIXED: break;
  case KJ_TYPE_DTYPE: kj_verify_expr(v, type->expr, KJ_ROLE_VALUE); break;
  case KJ_TYPE_ARRAY:
    kj_verify_type(v, type->element, false);
    fix_array(v, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    verify_static_array(v, type, static_extents);
    kj_verify_type(v, type->element, false);
    break;
  case KJ_TYPE_TUPLE:
    for (size_t i = 0; i < type->items.count; i++) kj_verify_type(v, type->items.items[i], false);
    break;
  case KJ_TYPE_POINTER:
    kj_verify_type(v, type->element, false);
    fix_pointer(v, type);
    break;
  case KJ_TYPE_NAMED: verify_type_name(v, type); break;
  }
}

/* The operand of zero, sizeof, bitcast: an expression that is to be a type. */
static void convert_to_type(kj_verifier *v, kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_NAME && !is_known(v, expr->name)) {
    verify_type_name(v, &(kj_type_expr){ .name = expr->name, .location = expr->location });
  } else if (expr->kind == KJ_EXPR_TUPLE) {
    kj_type_expr *tuple = KJ_NEW(v->arena, kj_type_expr);
    *tuple = (kj_type_expr){ .kind = KJ_TYPE_TUPLE, .location = expr->location };
    for (size_t i = 0; i < expr->args.count; i++) {
      kj_expr *item = expr->args.items[i];
      convert_to_type(v, item);
      if (item->kind == KJ_EXPR_TYPE) KJ_PUSH(v->arena, &tuple->items, item->type_expr);
    }
    *expr = (kj_expr){ .kind = KJ_EXPR_TYPE, .location = expr->location, .height = expr->height, .type_expr = tuple };
  } else {
    kj_verify_expr(v, expr, KJ_ROLE_TYPE);
  }
}

/* ---- fields ---- */

static void verify_field(kj_verifier *v, kj_expr *expr)
{
  const char *dotted = spell_dotted(v, expr);
  if (dotted) {
    const kj_expr *root = find_root(expr);
    fail_unknown(v, root->location, kj_explain_name(v->arena, dotted) ? dotted : root->name, false);
    return;
  }
  kj_expr *x = expr->x;
  if (x->kind == KJ_EXPR_NAME) resolve_name(v, x);
  bool is_position = x->kind == KJ_EXPR_BUILTIN && (x->builtin->flags & KJ_XYZ);
  bool is_part = expr->name[0] >= 'x' && expr->name[0] <= 'z' && expr->name[1] == 0;
  if (is_position && v->fixed) verify_builtin(v, x, KJ_ROLE_VALUE);
  else if (is_position && !is_part) kj_fail_verify(v, expr->location, KJIT_ERROR_NAME, "`%s` has `.x`, `.y` and `.z`, no `.%s`", x->builtin->name, expr->name);
  if (is_position) return;
  kj_verify_expr(v, x, KJ_ROLE_VALUE); /* which fields there are, its type says */
}

/* ---- calls ---- */

static void fail_count(kj_verifier *v, const kj_expr *call, const char *name, size_t least, size_t most)
{
  size_t count = call->args.count;
  if (least == most) kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes %zu argument%s, not %zu", name, least, least == 1 ? "" : "s", count);
  else kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes %zu to %zu arguments, not %zu", name, least, most, count);
}

/* The memory order that may follow the arguments. */
static bool has_order(const kj_expr *call)
{
  const kj_builtin *builtin = call->x->builtin;
  if (!(builtin->flags & KJ_ORDER) || call->args.count != (size_t)builtin->most + 1) return false;
  const kj_expr *last = call->args.items[builtin->most];
  const kj_builtin *order = last->kind == KJ_EXPR_BUILTIN ? last->builtin : last->kind == KJ_EXPR_NAME ? kj_find_builtin(last->name) : NULL;
  return order && order->id >= KJ_BUILTIN_RELAXED && order->id <= KJ_BUILTIN_SEQ_CST;
}

/* `atomic_add(a, i, v)`: the place was given in two parts. */
static bool refuse_split_place(kj_verifier *v, const kj_expr *call)
{
  const kj_builtin *builtin = call->x->builtin;
  if (!(builtin->flags & KJ_PLACE) || call->args.count != (size_t)builtin->most + 1) return false;
  kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes %u arguments, not %zu: the element is one of them, `%s(a[i], ...)`", builtin->name,
                 builtin->most, call->args.count, builtin->name);
  return true;
}

static bool is_literal_rank(const kj_expr *expr) { return expr->kind != KJ_EXPR_INT || (expr->integer >= 1 && expr->integer <= 3); }

/* dtype(e) is a type wherever it stands. */
static void convert_dtype(kj_expr *call, kj_arena *arena)
{
  kj_type_expr *type = KJ_NEW(arena, kj_type_expr);
  type->kind = KJ_TYPE_DTYPE;
  type->location = call->location;
  type->expr = call->args.items[0];
  *call = (kj_expr){ .kind = KJ_EXPR_TYPE, .location = call->location, .height = call->height, .type_expr = type };
}

/* `f32[n, m]` behind `view(`: an index of a type, whose extents are values. */
static void convert_to_array_type(kj_verifier *v, kj_expr *expr)
{
  if (expr->kind != KJ_EXPR_INDEX || expr->args.count == 0) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "the first argument of `view` is the type of an array with its extents: `view(f32[n, m], p)`");
    return;
  }
  convert_to_type(v, expr->x);
  for (size_t i = 0; i < expr->args.count; i++) kj_verify_expr(v, expr->args.items[i], KJ_ROLE_VALUE);
  if (expr->x->kind != KJ_EXPR_TYPE) return; /* reported */
  kj_type_expr *type = KJ_NEW(v->arena, kj_type_expr);
  *type = (kj_type_expr){ .kind = KJ_TYPE_STATIC_ARRAY, .location = expr->location, .element = expr->x->type_expr, .extents = expr->args };
  *expr = (kj_expr){ .kind = KJ_EXPR_TYPE, .location = expr->location, .height = expr->height, .type_expr = type };
}

static void note_forbidden(kj_verifier *v, const char *what, kj_location location)
{
  kj_summary *summary = &v->summaries[v->decl->index];
  if (v->range)
    kj_fail_verify(v, location, KJIT_ERROR_TYPE, "%s inside a %s: its iterations are independent and run in any order", what,
                   v->range->range == KJ_GRID_RANGE ? "grid_range" : "block_range");
  if (summary->forbidden) return;
  summary->forbidden = what;
  summary->forbidden_at = location;
}

/* Inline PTX: a string, and the operands that it names. */
static void verify_text(kj_verifier *v, const kj_expr *call, size_t index)
{
  if (index < call->args.count && call->args.items[index]->kind == KJ_EXPR_STRING) return;
  kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes the instructions as a string: `%s`", call->x->builtin->name,
                 index ? "ptx(i32, \"add.s32 %0, %1, %2;\", x, y)" : "ptx_effect(\"nanosleep.u32 %0;\", n)");
}

static void verify_builtin_arguments(kj_verifier *v, kj_expr *call)
{
  const kj_builtin *builtin = call->x->builtin;
  size_t first = 0;
  if (call->args.count && builtin->id == KJ_BUILTIN_VIEW) convert_to_array_type(v, call->args.items[first++]);
  else if (call->args.count && (builtin->flags & KJ_TYPE_ARG)) convert_to_type(v, call->args.items[first++]);
  else if (call->args.count && (builtin->flags & (KJ_PLACE | KJ_ADDRESS))) kj_verify_place(v, call->args.items[first++], true);
  if (builtin->id == KJ_BUILTIN_PTX || builtin->id == KJ_BUILTIN_PTX_EFFECT) verify_text(v, call, first++);
  for (size_t i = first; i < call->args.count; i++) kj_verify_expr(v, call->args.items[i], KJ_ROLE_VALUE);
}

static void verify_builtin_call(kj_verifier *v, kj_expr *call)
{
  const kj_builtin *builtin = call->x->builtin;
  size_t count = call->args.count;
  if (builtin->flags & KJ_NAME) return; /* refused as a callee */
  bool fits = (count >= builtin->least && count <= builtin->most) || has_order(call);
  if (!fits && refuse_split_place(v, call)) return;
  if (!fits) fail_count(v, call, builtin->name, builtin->least, builtin->most);
  verify_builtin_arguments(v, call);
  if (builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR || builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE) v->module->has_tensor_copies = true;
  if (builtin->flags & (KJ_BARRIER | KJ_WARP)) note_forbidden(v, kj_format(v->arena, "`%s`", builtin->name), call->location);
  bool is_grid = builtin->id == KJ_BUILTIN_GRID || builtin->id == KJ_BUILTIN_GRIDSIZE;
  if (is_grid && count == 1 && !is_literal_rank(call->args.items[0])) kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "a grid has 1, 2 or 3 dimensions");
  if (builtin->id == KJ_BUILTIN_DTYPE && count == 1) convert_dtype(call, v->arena);
}

/* Parameters that a call must give: those before the last ones with a default. */
static size_t least_arguments(const kj_function *function)
{
  size_t count = function->params.count;
  while (count && function->params.items[count - 1]->value) count--;
  return count;
}

static void verify_function_call(kj_verifier *v, kj_expr *call)
{
  const kj_decl *callee = call->x->decl;
  const kj_function *function = callee->function;
  size_t least = least_arguments(function), most = function->params.count;
  if (call->args.count < least || call->args.count > most) {
    fail_count(v, call, callee->name, least, most);
    kj_note_verify(v, callee->location, "`%s` is declared here", callee->name);
    return;
  }
  for (size_t i = 0; i < call->args.count; i++) {
    const kj_decl *param = function->params.items[i];
    const kj_expr *argument = call->args.items[i];
    if (is_func_value(argument) && !param->is_func)
      kj_fail_verify(v, argument->location, KJIT_ERROR_TYPE, "parameter `%s` of `%s` takes a value, not a function: declare it `%s: func`", param->name,
                     callee->name, param->name);
    if (param->is_func && !is_func_value(argument) && argument->kind != KJ_EXPR_NAME)
      kj_fail_verify(v, argument->location, KJIT_ERROR_TYPE, "parameter `%s` of `%s` takes a func", param->name, callee->name);
  }
}

static void verify_cast(kj_verifier *v, const kj_expr *call)
{
  const kj_type_expr *type = call->x->type_expr;
  bool is_scalar = type->kind == KJ_TYPE_FIXED && kj_is_scalar(type->type);
  bool is_complex = is_scalar && kj_type(v->module->types, type->type)->class_ == KJ_CLASS_COMPLEX;
  if (call->args.count == 1 || !is_scalar || is_complex) return; /* types of several parts are made from them: inference counts */
  const char *name = kj_type(v->module->types, type->type)->name;
  kj_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` converts one value, not %zu", name, call->args.count);
}

static void verify_call(kj_verifier *v, kj_expr *call)
{
  kj_expr *callee = call->x;
  kj_verify_expr(v, callee, KJ_ROLE_CALLEE);
  if (callee->kind == KJ_EXPR_BUILTIN) {
    verify_builtin_call(v, call);
    return;
  }
  bool is_cast = callee->kind == KJ_EXPR_TYPE, is_name = callee->kind == KJ_EXPR_DECL || callee->kind == KJ_EXPR_NAME || callee->kind == KJ_EXPR_FIELD;
  if (!is_cast && !is_name) kj_fail_verify(v, callee->location, KJIT_ERROR_TYPE, "only a function or a type can be called");
  kj_verify_exprs(v, &call->args, is_cast ? KJ_ROLE_VALUE : KJ_ROLE_ARGUMENT);
  if (is_cast) verify_cast(v, call);
  if (callee->kind == KJ_EXPR_DECL && callee->decl->kind == KJ_DECL_FUNCTION) verify_function_call(v, call);
}

/* ---- expressions ---- */

static void verify_operands(kj_verifier *v, kj_expr *expr)
{
  bool compares = expr->kind == KJ_EXPR_BINARY && (expr->op == KJIT_EQ || expr->op == KJIT_NE);
  kj_expr *operands[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (operands[i]) kj_verify_expr(v, operands[i], compares ? KJ_ROLE_COMPARED : KJ_ROLE_VALUE);
}

static void verify_index(kj_verifier *v, kj_expr *expr, kj_role role)
{
  if (role == KJ_ROLE_TYPE) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected the type of a scalar, found an index");
    return;
  }
  kj_verify_expr(v, expr->x, KJ_ROLE_VALUE);
  if (expr->args.count > KJ_MAX_RANK)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions, here are %zu indices", KJ_MAX_RANK, expr->args.count);
  for (size_t i = 0; i < expr->args.count; i++) {
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE) verify_operands(v, expr->args.items[i]);
    else kj_verify_expr(v, expr->args.items[i], KJ_ROLE_VALUE);
  }
}

/* Of a scalar or vector; NULL: others have none. */
static const char *name_of_type(kj_verifier *v, kjit_type type)
{
  const kj_type_info *info = kj_type(v->module->types, type);
  if (info->class_ == KJ_CLASS_VECTOR) return kj_format(v->arena, "%sx%u", kj_type(v->module->types, info->element)->name, info->count);
  return kj_is_scalar(type) ? info->name : NULL;
}

static void refuse_type_value(kj_verifier *v, const kj_expr *expr, kj_role role)
{
  if (role == KJ_ROLE_VALUE || role == KJ_ROLE_ARGUMENT)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a value, found a type; `f32(x)` converts");
}

void kj_verify_expr(kj_verifier *v, kj_expr *expr, kj_role role)
{
  if (expr->kind == KJ_EXPR_NAME) resolve_name(v, expr);
  switch (expr->kind) {
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT:
  case KJ_EXPR_BOOL:
  case KJ_EXPR_NAME: break;
  case KJ_EXPR_STRING: kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "a string is no value: it can only be printed"); break;
  case KJ_EXPR_DECL: verify_decl(v, expr, role); break;
  case KJ_EXPR_BUILTIN: verify_builtin(v, expr, role); break;
  case KJ_EXPR_TYPE:
    kj_verify_type(v, expr->type_expr, false);
    if (expr->type_expr->kind == KJ_TYPE_FIXED && name_of_type(v, expr->type_expr->type)) refuse_hidden(v, expr, name_of_type(v, expr->type_expr->type));
    refuse_type_value(v, expr, role);
    break;
  case KJ_EXPR_UNARY:
  case KJ_EXPR_BINARY:
  case KJ_EXPR_COND: verify_operands(v, expr); break;
  case KJ_EXPR_CALL:
    verify_call(v, expr);
    if (expr->kind == KJ_EXPR_TYPE) refuse_type_value(v, expr, role);
    break;
  case KJ_EXPR_INDEX: verify_index(v, expr, role); break;
  case KJ_EXPR_SLICE: kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "a slice is no value: it stands in the index of an array"); break;
  case KJ_EXPR_FIELD: verify_field(v, expr); break;
  case KJ_EXPR_TUPLE: kj_verify_exprs(v, &expr->args, KJ_ROLE_VALUE); break;
  }
  bool is_value =
    expr->kind != KJ_EXPR_NAME && expr->kind != KJ_EXPR_TYPE && expr->kind != KJ_EXPR_DECL && expr->kind != KJ_EXPR_BUILTIN && expr->kind != KJ_EXPR_INDEX;
  if (role == KJ_ROLE_TYPE && is_value) kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found a value");
}

void kj_verify_exprs(kj_verifier *v, kj_exprs *list, kj_role role)
{
  for (size_t i = 0; i < list->count; i++) kj_verify_expr(v, list->items[i], role);
}

/* ---- places ---- */

static const char *const decl_kinds[] = {
  [KJ_DECL_FUNCTION] = "a function",  [KJ_DECL_CONST] = "a constant",   [KJ_DECL_STRUCT] = "a struct",
  [KJ_DECL_PARAM] = "a parameter",    [KJ_DECL_LET] = "a `let`",        [KJ_DECL_VAR] = "a `var`",
  [KJ_DECL_SHARED] = "shared memory", [KJ_DECL_LOCAL] = "local memory", [KJ_DECL_LOOP] = "the variable of a loop",
};

static void verify_name_place(kj_verifier *v, kj_expr *place, bool is_atomic)
{
  kj_decl *decl = place->decl;
  bool is_memory = decl->kind == KJ_DECL_SHARED || decl->kind == KJ_DECL_LOCAL;
  if (is_memory && decl->type_expr->kind == KJ_TYPE_STATIC_ARRAY)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is an array: its elements are changed, `%s[i]`", decl->name, decl->name);
  else if (decl->kind == KJ_DECL_SHARED) return;
  else if (is_atomic)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "an atomic changes an element of an array, `a[i]`, or shared memory; `%s` is %s", decl->name,
                   decl_kinds[decl->kind]);
  else if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  else if (decl->kind == KJ_DECL_LET)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is a `let` and keeps its value: declare it `var %s` to assign to it", decl->name, decl->name);
  else if (!is_memory)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is %s and keeps its value: assign to a `var`", decl->name, decl_kinds[decl->kind]);
}

/* What an element is an element of, or a field a part of. Whether a field is one of a struct that may change, or the extent of an array, types say. */
static void verify_root(kj_verifier *v, const kj_expr *place)
{
  const kj_expr *root = place;
  bool has_index = false;
  for (; root->kind == KJ_EXPR_INDEX || root->kind == KJ_EXPR_FIELD; root = root->x) has_index |= root->kind == KJ_EXPR_INDEX;
  if (root->kind == KJ_EXPR_TUPLE || root->kind == KJ_EXPR_INT || root->kind == KJ_EXPR_FLOAT)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "this cannot be changed: only a `var`, elements of arrays and fields of these can");
  if (root->kind != KJ_EXPR_DECL) return;
  kj_decl *decl = root->decl;
  if (decl->kind == KJ_DECL_CONST) kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is a constant and keeps its values", decl->name);
  if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  bool is_fixed = decl->kind == KJ_DECL_PARAM && decl->type_expr && decl->type_expr->kind == KJ_TYPE_FIXED;
  bool read_only = is_fixed ? kj_type(v->module->types, decl->type_expr->type)->read_only : decl->type_expr && decl->type_expr->read_only;
  if (decl->kind == KJ_DECL_PARAM && read_only)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is declared `const`: %s cannot be changed", decl->name,
                   has_index ? "its elements" : "what it points to");
}

void kj_verify_place(kj_verifier *v, kj_expr *place, bool is_atomic)
{
  if (place->kind == KJ_EXPR_NAME && !kj_find_entry(&v->decls, place->name, strlen(place->name))) {
    if (!is_known(v, place->name)) fail_unknown(v, place->location, place->name, !is_atomic);
    else
      kj_fail_verify(v, place->location, KJIT_ERROR_NAME, "`%s` is built in and cannot be changed: `var %s = ...` declares a variable", place->name,
                     place->name);
    return;
  }
  kj_verify_expr(v, place, place->kind == KJ_EXPR_DECL || place->kind == KJ_EXPR_NAME ? KJ_ROLE_ARGUMENT : KJ_ROLE_VALUE);
  if (place->kind == KJ_EXPR_DECL) verify_name_place(v, place, is_atomic);
  else if (place->kind == KJ_EXPR_INDEX || place->kind == KJ_EXPR_FIELD) verify_root(v, place);
  else
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   is_atomic ? "an atomic changes an element of an array, `a[i]`, or shared memory"
                             : "expected a place to assign to: a `var` or an element, `a[i]`");
}

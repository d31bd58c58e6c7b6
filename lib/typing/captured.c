/* Callees with captured arguments: bind_back(f, a, b) is a func that calls f with a and b as its
 * last arguments.
 *
 * The callee itself is known at compile time, but the captured values are not. If such a callee is
 * passed to a func, the instance of that func gets additional parameters for the captured values,
 * at the position of its func parameter. In the caller, kt_hand_over appends the values to the
 * arguments. In the instance, kt_receive_callee adds the parameters that receive them. Both
 * functions visit the captured values in the same order, including the values that captured callees
 * have captured. */
#include "typing/infer.h"
#include "typing/rules.h"

/* ---- creating a callee ---- */

void kt_capture_value(kt_scope *s, const ki_expr *expr, kt_bound *bound, kt_expr **place)
{
  kt_callee callee;
  if (kt_as_callee(s, expr, &callee)) {
    *bound = (kt_bound){ .kind = KJ_BOUND_CALLEE, .callee = callee };
    return;
  }
  kjit_type type;
  if (kt_as_type(s, expr, &type)) {
    if (ki_is_weak(type)) type = type == KJ_WEAK_INT ? KJIT_I32 : KJIT_F64;
    *bound = (kt_bound){ .kind = KJ_BOUND_TYPE, .type = type };
    return;
  }
  kt_expr *value = kt_infer_expr(s, expr);
  if (kt_is_constant(value)) {
    *bound = (kt_bound){ .kind = KJ_BOUND_CONST, .type = value->type, .integer = value->integer };
    *place = value;
    return;
  }
  bool is_weak = ki_is_weak(value->type);
  *place = kt_keep_value(s, is_weak ? value : kt_make_concrete(s, value));
  *bound =
    is_weak
      ? (kt_bound){ .kind = KJ_BOUND_WEAK, .type = (*place)->type, .wide = kt_wide_type(*place) }
      : kt_value_bound(s, *place);
}

static size_t captured_count(const kt_callee *callee)
{
  return callee->captured ? callee->captured->count : 0;
}

bool kt_is_bind_back(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_CALL && expr->x->kind == KJ_EXPR_BUILTIN &&
         expr->x->builtin->id == KJ_BUILTIN_BIND_BACK;
}

/* Returns the callee that a bind_back call denotes. If the bound function already has captured
 * arguments, the new arguments precede them. */
kt_callee kt_bind_back(kt_scope *s, const ki_expr *call)
{
  kt_callee callee = { 0 };
  const ki_expr *first = call->args.items[0];
  if (!kt_as_callee(s, first, &callee))
    kt_fail(s->c, first->location, KJIT_ERROR_TYPE,
            "the first argument of `bind_back` must be a function");
  size_t added = call->args.count - 1, had = captured_count(&callee);
  if (added == 0) return callee;
  kt_captured *captured = KJ_NEW(s->arena, kt_captured);
  captured->count = added + had;
  captured->bounds = KJ_NEW_ARRAY(s->arena, kt_bound, captured->count + 1);
  captured->values = KJ_NEW_ARRAY(s->arena, kt_expr *, captured->count + 1);
  for (size_t i = 0; i < added; i++)
    kt_capture_value(s, call->args.items[1 + i], &captured->bounds[i], &captured->values[i]);
  for (size_t i = 0; i < had; i++) {
    captured->bounds[added + i] = callee.captured->bounds[i];
    captured->values[added + i] = callee.captured->values[i];
  }
  size_t most = callee.derived    ? SIZE_MAX
                : callee.function ? callee.function->params.count
                                  : callee.builtin->most;
  const char *name = callee.function ? callee.function->decl->name : callee.builtin->name;
  if (captured->count > most)
    kt_fail(s->c, call->location, KJIT_ERROR_TYPE,
            "`%s` takes %zu argument%s, but %zu arguments are bound", name, most,
            most == 1 ? "" : "s", captured->count);
  callee.captured = captured;
  return callee;
}

kt_expr *kt_rule_bind_back(kt_scope *s, const kt_operands *o)
{
  kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
          "`bind_back` returns a function, which can only be passed to a `func` parameter");
}

/* ---- passing a callee to a func ---- */

static kt_expr *wide_value(kt_scope *s, const kt_expr *value)
{
  KJ_ASSERT(ki_is_weak(value->type));
  kjit_type carrier = kt_carrier_of(value->type, kt_wide_type(value));
  return kt_convert(s, kt_copy_texpr(s, value), carrier, value->location);
}

void kt_hand_over(kt_scope *s, const kt_callee *callee, kt_exprs *arguments)
{
  const kt_captured *captured = callee->captured;
  if (callee->derived) kt_hand_over(s, &callee->derived->of, arguments);
  for (size_t i = 0; i < captured_count(callee); i++) {
    const kt_bound *bound = &captured->bounds[i];
    if (bound->kind == KJ_BOUND_CALLEE) kt_hand_over(s, &bound->callee, arguments);
    else if (bound->kind == KJ_BOUND_WEAK)
      KJ_PUSH(s->arena, arguments, wide_value(s, captured->values[i]));
    else if (bound->kind == KJ_BOUND_VALUE)
      KJ_PUSH(s->arena, arguments, kt_copy_texpr(s, captured->values[i]));
  }
}

static kt_expr *receive_value(kt_scope *s, const kt_bound *bound, const ki_decl *decl)
{
  kt_expr *value;
  if (bound->kind == KJ_BOUND_CONST) {
    value = kt_new_texpr(s->c, KJ_T_CONST, bound->type, decl->location);
    value->integer = bound->integer;
    return value;
  }
  bool is_weak = bound->kind == KJ_BOUND_WEAK;
  kjit_type type = is_weak ? kt_carrier_of(bound->type, bound->wide) : bound->type;
  kt_var *var = kt_add_variable(s, KJ_V_PARAM, decl->name, type, decl->location, KJ_LEVEL_GRID);
  var->argument = decl->index;
  var->start_alignment = bound->start;
  value = kt_make_var(s, var, decl->location);
  return is_weak ? kt_make_weak(s, value, bound->type, bound->wide) : value;
}

/* Converts the derivative of a callee that was passed to a func; the captured values of the
 * differentiated func become references to parameters of the called instance. Must run before the
 * callee's own captured values are received, because kt_hand_over passes the values in this
 * order. */
static const kt_derived *receive_derived(kt_scope *s, const kt_derived *handed, const ki_decl *decl)
{
  if (!handed) return NULL;
  kt_derived *derived = KJ_NEW(s->arena, kt_derived);
  *derived = *handed;
  derived->of = kt_receive_callee(s, &handed->of, decl);
  return derived;
}

kt_callee kt_receive_callee(kt_scope *s, const kt_callee *handed, const ki_decl *decl)
{
  const kt_derived *derived = receive_derived(s, handed->derived, decl);
  if (!handed->captured) { return (kt_callee){ handed->function, handed->builtin, NULL, derived }; }
  const kt_captured *from = handed->captured;
  kt_captured *captured = KJ_NEW(s->arena, kt_captured);
  captured->count = from->count;
  captured->bounds = KJ_NEW_ARRAY(s->arena, kt_bound, from->count + 1);
  captured->values = KJ_NEW_ARRAY(s->arena, kt_expr *, from->count + 1);
  for (size_t i = 0; i < from->count; i++) {
    captured->bounds[i] = from->bounds[i];
    if (from->bounds[i].kind == KJ_BOUND_CALLEE)
      captured->bounds[i].callee = kt_receive_callee(s, &from->bounds[i].callee, decl);
    else if (from->bounds[i].kind != KJ_BOUND_TYPE)
      captured->values[i] = receive_value(s, &from->bounds[i], decl);
  }
  return (kt_callee){ handed->function, handed->builtin, captured, derived };
}

/* ---- callees in the key of an instance ---- */

static bool equal_derived(const kt_derived *a, const kt_derived *b)
{
  if (!a || !b) return a == b;
  return a->kind == b->kind && a->is_chosen == b->is_chosen && a->chosen == b->chosen &&
         kt_equal_callee(&a->of, &b->of);
}

bool kt_equal_callee(const kt_callee *a, const kt_callee *b)
{
  if (a->function != b->function || a->builtin != b->builtin) return false;
  if (!equal_derived(a->derived, b->derived)) return false;
  size_t count = captured_count(a);
  if (count != captured_count(b)) return false;
  for (size_t i = 0; i < count; i++)
    if (!kt_equal_bound(&a->captured->bounds[i], &b->captured->bounds[i])) return false;
  return true;
}

const char *kt_callee_text(kt_compilation *c, const kt_callee *callee)
{
  const char *name = callee->function ? callee->function->decl->name : callee->builtin->name;
  if (callee->derived)
    name = kj_format(c->arena, "%s(%s)", ki_builtin_table[callee->derived->kind].name,
                     kt_callee_text(c, &callee->derived->of));
  const char *values = "";
  for (size_t i = 0; i < captured_count(callee); i++)
    values = kj_format(c->arena, "%s, %s", values, kt_bound_text(c, &callee->captured->bounds[i]));
  return callee->captured ? kj_format(c->arena, "bind_back(%s%s)", name, values) : name;
}

/* Rejects a prepared body if its derivative would be wrong. The error names the expression that
 * depends on a chosen parameter in a way that has no known derivative. */
#include "derive/adjoint.h"

typedef struct checker {
  kd_derivation *d;
  kj_location location; /* location of the statement */
} checker;

static bool varies_var(const kd_derivation *d, const kt_var *var)
{
  return var && var->index < d->count && d->variables[var->index].varies;
}

static bool is_varying_array(void *data, const kt_expr *e)
{
  const kd_derivation *d = data;
  return e->kind == KJ_T_VAR && kt_is_array(d->c, e->type) && varies_var(d, e->var);
}

/* Returns whether elements in the array depend on a chosen parameter. The expression can select one
 * of several arrays; one that depends is enough. */
static bool array_varies(kd_derivation *d, const kt_expr *array)
{
  return kt_any_texpr(array, is_varying_array, d);
}

static const char *name_of(const kt_expr *array)
{
  const kt_var *root = kd_root(array);
  return root ? root->name : "the array";
}

/* ---- built-ins ---- */

/* Rejects an atomic operation whose result is used. In an adjoint kernel, an atomic addition
 * without a used result is treated as a store. */
static void refuse_atomic(kd_derivation *d, const kt_expr *e)
{
  bool is_sum = e->builtin->id == KJ_BUILTIN_ATOMIC_ADD || e->builtin->id == KJ_BUILTIN_ATOMIC_SUB;
  if (is_sum && d->adjoint)
    kd_refuse(d, e->location,
              "the value that `%s` returns has no derivative, because it depends on the order of "
              "the threads: write `%s` as a separate statement",
              e->builtin->name, e->builtin->name);
  kd_refuse(d, e->location, "`%s` of a value that depends on a parameter has no derivative: %s",
            e->builtin->name,
            d->adjoint ? "only `atomic_add` and `atomic_sub` have one"
                       : "write `a[i] += x` if one thread alone adds to the element, or a kernel, "
                         "whose `adjoint` takes `atomic_add`");
}

static void check_builtin(kd_derivation *d, const kt_expr *e)
{
  kd_rule_kind kind = kd_rule_of(e->builtin);
  bool varies = false;
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    const kt_expr *operand = kt_operand(e, i);
    if (!operand) continue;
    varies |= kt_is_array(d->c, operand->type) ? array_varies(d, operand) : kd_varies(d, operand);
  }
  if (!varies || kind != KJ_RULE_NONE) return;
  if (e->builtin->flags & KJ_ORDER && e->builtin->flags & KJ_PLACE) refuse_atomic(d, e);
  kd_refuse(d, e->location,
            "`%s` has no derivative, and its operand depends on a parameter: write `no_diff(x)` if "
            "the operand is a constant, or call a function with a derivative rule, " KJ_PHRASE(
              DERIVATIVE_RULE, "`func f(x) @" KJ_PHRASE_ARGUMENT("%s") "(g)`"),
            e->builtin->name, kd_rule_word(d));
}

/* ---- arrays ---- */

static void check_view(kd_derivation *d, const kt_expr *view)
{
  if (!kt_has_new_shape(view) || !array_varies(d, view->x)) return;
  kjit_type from = ki_type(d->c->types, view->x->type)->element,
            to = ki_type(d->c->types, view->type)->element;
  if (from != to)
    kd_refuse(
      d, view->location,
      "`%s` depends on a parameter, but a view of its bytes as another type has no derivative",
      name_of(view));
}

static void check_load(kd_derivation *d, const kt_expr *e)
{
  if (!array_varies(d, e->x)) return;
  const kt_var *root = kd_root(e->x);
  if (!root)
    kd_refuse(d, e->location,
              "a load from one of several arrays that depend on a parameter has no derivative: "
              "write an `if` with a load in each branch");
}

/* Rejects a call that is not inlined if the called func may store a value that depends on a chosen
 * parameter to one of its array arguments. */
static void check_call(kd_derivation *d, const kt_expr *call)
{
  bool varies = false;
  const kt_expr *written = NULL;
  for (size_t i = 0; i < call->args.count; i++) {
    const kt_expr *argument = call->args.items[i];
    bool is_array = kt_is_array(d->c, argument->type);
    varies |= is_array ? array_varies(d, argument) : kd_varies(d, argument);
    bool is_written = is_array && kd_holds_float(d->c, argument->type) &&
                      !ki_type(d->c->types, argument->type)->read_only;
    if (is_written) written = argument;
  }
  if (varies && written)
    kd_refuse(d, call->location,
              "`%s` may write a value that depends on a parameter into `%s`, but kjit does not "
              "differentiate the body of an extern function, a recursive function or a function "
              "with a derivative rule",
              call->instance->function->decl->name, name_of(written));
}

static void check_expr(void *data, kt_expr **place)
{
  checker *k = data;
  kd_derivation *d = k->d;
  const kt_expr *e = *place;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_BUILTIN: check_builtin(d, e); break;
  case KJ_T_VIEW: check_view(d, e); break;
  case KJ_T_LOAD: check_load(d, e); break;
  case KJ_T_CALL: check_call(d, e); break;
  case KJ_T_ADDRESS:
    if (array_varies(d, e->x))
      kd_refuse(d, e->location,
                e->x->kind == KJ_T_MEMBER
                  ? "a pointer to a field of `%s`, which depends on a parameter, or a view of the "
                    "field, has no derivative: pass the array, or write the index, as in `a[i].x`"
                  : "a pointer to `%s`, which depends on a parameter, has no derivative: pass the "
                    "array",
                name_of(e->x));
    break;
  default: break;
  }
}

static void check_store(kd_derivation *d, const kt_stmt *stmt)
{
  const kt_var *root = kd_root(stmt->array);
  if (!kd_varies(d, stmt->value)) return;
  if (!root)
    kd_refuse(d, stmt->location,
              "a store through a pointer, or to one of several arrays, has no derivative if the "
              "value depends on a parameter: store to an array that is passed to the function");
  if (root->kind == KJ_V_PARAM && !d->variables[root->index].other)
    kd_refuse(d, stmt->location,
              "`%s` takes a value that depends on a parameter, but the call names no derivative of "
              "`%s`: choose this parameter, too",
              root->name, root->name);
}

static void check_stmt(void *data, kt_stmt *stmt)
{
  checker *k = data;
  k->location = stmt->location;
  if (stmt->kind == KJ_TS_STORE) check_store(k->d, stmt);
}

static void check_variables(kd_derivation *d)
{
  const kt_vars *locals = &d->record->instance->locals;
  if (d->adjoint && d->adjoint->is_by_threads) return;
  for (size_t i = 0; i < locals->count; i++) {
    const kt_var *var = locals->items[i];
    if (var->index < d->count && var->kind == KJ_V_SHARED && kd_is_active(d, var))
      kd_refuse(
        d, var->location,
        "the shared array `%s` depends on a parameter, but shared arrays have no derivative: load "
        "the elements where they are used, without a copy in shared memory",
        var->name);
  }
}

void kd_check_body(kd_derivation *d)
{
  checker k = { .d = d, .location = d->location };
  kt_walk_tstmts(&d->body, check_stmt, check_expr, &k);
  check_variables(d);
}

/* kjit_derive: creates a func that is the derivative of another func, for example `jvp_f` for
 * `jvp(f)`. The body of the new func is a call of the derivative, and its parameters are this
 * call's arguments. The adjoint of a kernel is created in the same way, as a kernel. */
#include <string.h>

#include "ir/context.h"
#include "ir/expr.h"
#include "ir/module.h"

enum { MOST_CHOSEN = 64 }; /* only parameters with an index below this can be chosen */

typedef struct derivation {
  const char *name;  /* name of the func or kernel to differentiate */
  const char *asker; /* name of the public function, for messages */
  ki_builtin_id kind;
  bool chosen[MOST_CHOSEN]; /* whether each parameter is chosen; indexed by parameter */
  /* the body's call names the chosen parameters by index, as in `vjp(f, 0, 2)` */
  bool lists_chosen;
  bool only_arrays; /* chosen parameters that are not arrays are ignored */
  ki_decl *made;    /* the new func in the copied module */
} derivation;

static const ki_builtin_id builtins[] = {
  [KJIT_JVP] = KJ_BUILTIN_JVP, [KJIT_VJP] = KJ_BUILTIN_VJP, [KJIT_GRAD] = KJ_BUILTIN_GRAD
};
enum { KIND_COUNT = sizeof builtins / sizeof *builtins };

/* ---- the parameters of the func ---- */

static const ki_type_info *fixed_type(const ki_types *types, const ki_decl *param)
{
  const ki_type_expr *written = param->type_expr;
  return written && written->kind == KJ_TYPE_FIXED ? ki_type(types, written->type) : NULL;
}

static bool holds_float(const ki_types *types, const ki_type_info *info)
{
  if (info->class_ == KJ_CLASS_FLOAT || info->class_ == KJ_CLASS_COMPLEX) return true;
  if (info->class_ == KJ_CLASS_ARRAY || info->class_ == KJ_CLASS_VECTOR)
    return holds_float(types, ki_type(types, info->element));
  if (info->class_ != KJ_CLASS_STRUCT && info->class_ != KJ_CLASS_TUPLE) return false;
  for (uint32_t i = 0; i < info->count; i++)
    if (holds_float(types, ki_type(types, info->items[i]))) return true;
  return false;
}

/* Returns whether the argument for the parameter is passed at run time. */
static bool is_value(const ki_decl *param)
{
  return !param->is_func && !param->is_type && !param->is_const;
}

/* Returns whether the parameter can hold floats according to its declaration. Returns true for a
 * parameter without a type. */
static bool may_vary(const ki_types *types, const ki_decl *param)
{
  const ki_type_info *info = fixed_type(types, param);
  return is_value(param) && (!info || holds_float(types, info));
}

/* If the func body is a single call of a derivative, as add_body makes it, returns the call,
 * otherwise NULL. */
static const ki_expr *derivative_call(const ki_function *function)
{
  const ki_expr *call = function->body.count == 1 ? function->body.items[0]->value : NULL;
  if (!call || call->kind != KJ_EXPR_CALL || call->x->kind != KJ_EXPR_CALL) return NULL;
  const ki_expr *made = call->x;
  bool is_made = made->x->kind == KJ_EXPR_BUILTIN && ki_is_derivative(made->x->builtin) &&
                 made->args.items[0]->kind == KJ_EXPR_DECL &&
                 made->args.items[0]->decl->kind == KJ_DECL_FUNCTION &&
                 call->args.count == function->params.count;
  for (size_t i = 0; is_made && i < call->args.count; i++)
    is_made = call->args.items[i]->kind == KJ_EXPR_DECL &&
              call->args.items[i]->decl == function->params.items[i];
  return is_made ? call : NULL;
}

static bool is_array(kjit_module *module, const ki_function *function, size_t index);

/* Like is_array, for a parameter of a func that add_body has created. */
static bool is_array_of_derivative(kjit_module *module, const ki_expr *made, size_t index)
{
  const ki_function *of = made->args.items[0]->decl->function;
  const size_t count = of->params.count;
  const ki_builtin_id kind = made->x->builtin->id;
  if (index < count) return is_array(module, of, index);
  if (kind == KJ_BUILTIN_GRAD) return true;
  if (kind == KJ_BUILTIN_VJP) return index > count || !ki_gives_value(of);
  const size_t at = index - count + 1; /* index in the list of the chosen parameters */
  const ki_expr *number = at < made->args.count ? made->args.items[at] : NULL;
  if (!number || number->kind != KJ_EXPR_INT || (uint64_t)number->integer >= count) return false;
  return is_array(module, of, (size_t)number->integer);
}

/* Returns whether the parameter is an array. A parameter without a type is an array if the func
 * reads or writes its elements. */
static bool is_array(kjit_module *module, const ki_function *function, size_t index)
{
  const ki_decl *param = function->params.items[index];
  const ki_type_expr *written = param->type_expr;
  const ki_type_info *info = fixed_type(module->types, param);
  if (info) return info->class_ == KJ_CLASS_ARRAY;
  if (written) return written->kind == KJ_TYPE_ARRAY;
  const ki_expr *call = derivative_call(function);
  if (call) return is_array_of_derivative(module, call->x, index);
  bool *read = KJ_NEW_ARRAY(&module->arena, bool, function->params.count);
  bool *stored = KJ_NEW_ARRAY(&module->arena, bool, function->params.count);
  ki_find_accesses(module, function, read, stored);
  return read[index] || stored[index];
}

/* ---- the new func ---- */

static const char *free_name(const kjit_module *module, kj_arena *arena, const char *wanted)
{
  const char *name = wanted;
  for (unsigned number = 2; ki_find_decl(module, name); number++)
    name = kj_format(arena, "%s_%u", wanted, number);
  return name;
}

static void add_param(kj_arena *arena, ki_function *made, const char *of, ki_type_expr *type)
{
  ki_decl *param = KJ_NEW(arena, ki_decl);
  *param = (ki_decl){ .kind = KJ_DECL_PARAM,
                      .name = kj_format(arena, "d_%s", of),
                      .location = made->decl->location,
                      .index = (uint32_t)made->params.count,
                      .type_expr = type,
                      .function = made };
  KJ_PUSH(arena, &made->params, param);
}

/* Adds parameters for the derivatives after the parameters of the original func. */
static void add_derivatives(const derivation *d, kjit_module *copy, const ki_function *of,
                            ki_function *made)
{
  kj_arena *arena = &copy->arena;
  size_t count = of->params.count;
  if (d->kind == KJ_BUILTIN_VJP && ki_gives_value(of)) add_param(arena, made, "result", NULL);
  for (size_t i = 0; i < count && i < MOST_CHOSEN; i++) {
    const ki_decl *param = of->params.items[i];
    bool is_an_array = is_array(copy, of, i);
    bool is_adjoint = d->kind == KJ_BUILTIN_ADJOINT,
         is_fixed = fixed_type(copy->types, param) && !is_an_array && !is_adjoint;
    if (d->chosen[i] && (d->kind == KJ_BUILTIN_JVP || is_adjoint || is_an_array))
      add_param(arena, made, param->name, is_fixed ? made->params.items[i]->type_expr : NULL);
  }
}

static ki_expr *new_name(kj_arena *arena, ki_decl *decl, kj_location location)
{
  ki_expr *name = ki_new_expr(arena, KJ_EXPR_DECL, location);
  name->decl = decl;
  return name;
}

/* Returns the callee of the body's call, for example `vjp(f, 0, 2)`. */
static ki_expr *new_callee(const derivation *d, kj_arena *arena, const ki_function *of)
{
  kj_location location = of->decl->location;
  ki_expr *callee = ki_new_expr(arena, KJ_EXPR_CALL, location);
  callee->x = ki_new_expr(arena, KJ_EXPR_BUILTIN, location);
  callee->x->builtin = &ki_builtin_table[d->kind];
  KJ_PUSH(arena, &callee->args, new_name(arena, of->decl, location));
  for (int i = 0; d->lists_chosen && i < MOST_CHOSEN; i++) {
    if (!d->chosen[i]) continue;
    ki_expr *number = ki_new_expr(arena, KJ_EXPR_INT, location);
    number->type = KJ_WEAK_INT;
    number->integer = i;
    KJ_PUSH(arena, &callee->args, number);
  }
  (void)ki_measure_expr(callee);
  return callee;
}

/* Returns whether the new func returns a value. A reverse-mode derivative returns the derivatives
 * of scalar parameters, and adds the other derivatives to arrays. */
static bool returns_value(const derivation *d, const kjit_module *copy, const ki_function *of,
                          const ki_function *made)
{
  if (d->kind == KJ_BUILTIN_ADJOINT) return false;
  if (d->kind != KJ_BUILTIN_GRAD && ki_gives_value(of)) return true;
  size_t chosen = 0, arrays = made->params.count - of->params.count;
  for (size_t i = 0; i < of->params.count && i < MOST_CHOSEN; i++)
    chosen += d->chosen[i] && may_vary(copy->types, of->params.items[i]);
  return d->kind != KJ_BUILTIN_JVP && chosen > arrays;
}

static void add_body(const derivation *d, kjit_module *copy, const ki_function *of,
                     ki_function *made)
{
  kj_arena *arena = &copy->arena;
  kj_location location = of->decl->location;
  ki_expr *call = ki_new_expr(arena, KJ_EXPR_CALL, location);
  call->x = new_callee(d, arena, of);
  for (size_t i = 0; i < made->params.count; i++)
    KJ_PUSH(arena, &call->args, new_name(arena, made->params.items[i], location));
  (void)ki_measure_expr(call);
  ki_stmt *stmt = KJ_NEW(arena, ki_stmt);
  stmt->kind = returns_value(d, copy, of, made) ? KJ_STMT_RETURN : KJ_STMT_EVALUATE;
  stmt->location = location;
  stmt->value = call;
  KJ_PUSH(arena, &made->body, stmt);
}

static void add_derived(kjit_module *copy, void *data, kj_diagnostics *diagnostics)
{
  derivation *d = data;
  (void)diagnostics;
  kj_arena *arena = &copy->arena;
  const ki_decl *of = ki_find_decl(copy, d->name);
  const char *wanted = kj_format(arena, "%s_%s", ki_builtin_table[d->kind].name, d->name);
  ki_decl *decl = KJ_NEW(arena, ki_decl);
  ki_function *made = KJ_NEW(arena, ki_function);
  *decl = (ki_decl){ .kind = KJ_DECL_FUNCTION,
                     .name = free_name(copy, arena, wanted),
                     .location = of->location,
                     .index = (uint32_t)copy->decls.count,
                     .is_guest = of->is_guest,
                     .function = made };
  *made = (ki_function){ .decl = decl, .module = copy, .is_kernel = d->kind == KJ_BUILTIN_ADJOINT };
  ki_copy_parameters(copy, of->function, made);
  for (size_t i = 0; d->only_arrays && i < of->function->params.count && i < MOST_CHOSEN; i++)
    d->chosen[i] &= is_array(copy, of->function, i);
  add_derivatives(d, copy, of->function, made);
  add_body(d, copy, of->function, made);
  made->local_count = (uint32_t)made->params.count;
  KJ_PUSH(arena, &copy->decls, decl);
  /* the module needs is_linked, because its source text does not contain the new func */
  copy->is_linked = true;
  d->made = decl;
}

static kjit_status make_module(kjit_module *module, derivation *d, kjit_module **derived)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  (void)ki_change_module(module, NULL, add_derived, d, &diagnostics, &made);
  kjit_status status = ki_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *derived = made;
  return status;
}

/* ---- the public function ---- */

static kjit_status check_func(kjit_module *module, const char *name, const ki_decl **decl)
{
  const char *reason;
  *decl = ki_find_func(module, name, &reason);
  if (!*decl && !reason) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  if (*decl && !(*decl)->function->builtin) return KJIT_OK;
  if (ki_find_builtin(name) && !ki_find_decl(module, name))
    return ki_fail_call(
      module->context, KJIT_ERROR_UNSUPPORTED,
      "kjit_derive takes a function of the module, and `%s` is a built-in: write a "
      "function that calls it",
      name);
  return ki_fail_call(module->context, KJIT_ERROR_NAME, "module %s has no function `%s`%s",
                      module->sources.items[0].name, name, reason);
}

static kjit_status choose(kjit_module *module, const ki_function *function,
                          const uint32_t *parameters, size_t count, derivation *d)
{
  const size_t most = function->params.count;
  d->only_arrays = !count && d->kind == KJ_BUILTIN_ADJOINT;
  d->lists_chosen = count || d->kind == KJ_BUILTIN_JVP || d->kind == KJ_BUILTIN_ADJOINT;
  for (size_t i = 0; i < most && i < MOST_CHOSEN && !count; i++)
    d->chosen[i] = may_vary(module->types, function->params.items[i]);
  for (size_t i = 0; i < count; i++) {
    const uint32_t number = parameters[i];
    const bool is_there = number < most && number < MOST_CHOSEN;
    const char *reason = !is_there           ? "there is no parameter with this number"
                         : d->chosen[number] ? "the parameter is given twice"
                         : !is_value(function->params.items[number])
                           ? "the parameter is not a value at run time"
                           : NULL;
    if (reason)
      return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "%s: parameter %u of `%s`: %s",
                          d->asker, number, d->name, reason);
    d->chosen[number] = true;
  }
  return KJIT_OK;
}

kjit_status kjit_derive(kjit_module *module, const char *name, kjit_derivative kind,
                        const uint32_t *parameters, size_t count, kjit_module **derived,
                        kjit_function **function)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !derived || !function || (count && !parameters))
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_derive: %s is NULL",
                        !name       ? "name"
                        : !derived  ? "derived"
                        : !function ? "function"
                                    : "parameters");
  if ((int)kind < 0 || (int)kind >= KIND_COUNT)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE,
                        "kjit_derive: %d is not a kjit_derivative", (int)kind);
  const ki_decl *decl;
  derivation d = { .name = name, .asker = "kjit_derive", .kind = builtins[kind] };
  KJ_TRY(check_func(module, name, &decl));
  KJ_TRY(choose(module, decl->function, parameters, count, &d));
  KJ_TRY(make_module(module, &d, derived));
  *function = (kjit_function *)d.made;
  return KJIT_OK;
}

/* ---- adjoint kernels ---- */

kjit_status ki_derive_kernel(kjit_module *module, const ki_function *kernel,
                             const uint32_t *parameters, size_t count, kjit_module **derived,
                             const char **name)
{
  KJ_ASSERT(kernel->is_kernel && kernel->module == module);
  derivation d = { .name = kernel->decl->name,
                   .asker = "kjit_get_adjoint",
                   .kind = KJ_BUILTIN_ADJOINT };
  KJ_TRY(choose(module, kernel, parameters, count, &d));
  KJ_TRY(make_module(module, &d, derived));
  *name = d.made->name;
  return KJIT_OK;
}

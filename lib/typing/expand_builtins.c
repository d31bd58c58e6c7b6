/* Some built-ins, the elementary functions of complex numbers, are implemented by funcs in
 * lib/library. This pass replaces the built-ins by calls of these funcs. The funcs are parsed only
 * if a kernel uses them. Lowering inlines the calls, so the code is the same as if lowering
 * implemented the built-in itself. */
#include "typing/infer.h"

/* The funcs of lib/library/complex_math.kir. */
static const char *const complex_funcs[KJ_BUILTIN_COUNT] = {
  [KJ_BUILTIN_EXP] = "complex_exp",     [KJ_BUILTIN_LOG] = "complex_log",
  [KJ_BUILTIN_LOG10] = "complex_log10", [KJ_BUILTIN_SQRT] = "complex_sqrt",
  [KJ_BUILTIN_SIN] = "complex_sin",     [KJ_BUILTIN_COS] = "complex_cos",
  [KJ_BUILTIN_TAN] = "complex_tan",     [KJ_BUILTIN_ASIN] = "complex_asin",
  [KJ_BUILTIN_ACOS] = "complex_acos",   [KJ_BUILTIN_ATAN] = "complex_atan",
  [KJ_BUILTIN_SINH] = "complex_sinh",   [KJ_BUILTIN_COSH] = "complex_cosh",
  [KJ_BUILTIN_TANH] = "complex_tanh",   [KJ_BUILTIN_ASINH] = "complex_asinh",
  [KJ_BUILTIN_ACOSH] = "complex_acosh", [KJ_BUILTIN_ATANH] = "complex_atanh",
  [KJ_BUILTIN_POW] = "complex_pow",
};

typedef struct expansion {
  kt_inference *inference;
  kt_inferred *record; /* the instance whose body is being processed */
} expansion;

/* Returns the name of the func that implements the built-in, or NULL if lowering implements it. */
static const char *name_of(const expansion *x, const kt_expr *e)
{
  if (e->kind != KJ_T_BUILTIN || !kt_is_complex(x->inference->c, e->type)) return NULL;
  const ki_attributes *attributes = &x->record->instance->function->attributes;
  if (e->builtin->id == KJ_BUILTIN_POW && ki_get_attribute(attributes, KJ_ATTRIBUTE_NUMBA))
    return "complex_pow_of_numba";
  return complex_funcs[e->builtin->id];
}

static const ki_function *find_func(kt_compilation *c, const char *name)
{
  kt_builtin_code *known = c->builtin_code;
  for (size_t i = 0; i < known->count; i++) {
    const ki_decl *decl = ki_find_decl(known->items[i], name);
    if (decl) return decl->function;
  }
  const ki_text text = { .name = "complex_math", .builtin_func = name };
  /* reserve the list entry first: if it were allocated after parsing and the arena ran out of
   * memory, the module would leak */
  KJ_PUSH(c->arena, known, (kjit_module *)NULL);
  kjit_module **module = &known->items[known->count - 1];
  if (ki_parse_module(NULL, c->types, &text, c->diagnostics, module) != KJIT_OK)
    longjmp(*c->on_failure, KJ_JUMP_ERROR);
  const ki_decl *decl = ki_find_decl(*module, name);
  KJ_ASSERT(decl && decl->function);
  return decl->function;
}

/* Replaces the built-in by a call. The operands already have the types of the func's parameters,
 * and their order of evaluation has been settled. */
static void expand(void *data, kt_expr **at)
{
  const expansion *x = data;
  kt_compilation *c = x->inference->c;
  kt_expr *e = *at;
  const char *name = name_of(x, e);
  if (!name) return;
  const ki_function *function = find_func(c, name);
  KJ_ASSERT(function->params.count == e->args.count);
  kt_bound *bounds = KJ_NEW_ARRAY(c->arena, kt_bound, e->args.count);
  for (size_t i = 0; i < e->args.count; i++)
    bounds[i] = (kt_bound){ .kind = KJ_BOUND_VALUE, .type = e->args.items[i]->type };
  kt_scope scope;
  kt_init_scope(&scope, x->inference);
  scope.instance = x->record->instance;
  kt_inferred *callee = kt_get_inferred(&scope, function, bounds, e->location);
  KJ_PUSH(c->arena, &x->record->callees, callee);
  KJ_ASSERT(callee->instance->result == e->type && !callee->constant_result);
  e->kind = KJ_T_CALL;
  e->builtin = NULL;
  e->instance = callee->instance;
}

/* Marks divisions in the func of a built-in as unchecked, because the result for a divisor of 0 is
 * defined. */
static void leave_unchecked(void *data, kt_expr **at)
{
  (void)data;
  if ((*at)->kind == KJ_T_BINARY && kt_is_division((*at)->op)) (*at)->is_power = true;
}

void kt_expand_builtins(kt_inference *inference)
{
  /* expanding appends further instances to the records */
  for (size_t i = 0; i < inference->records.count; i++) {
    kt_inferred *record = inference->records.items[i];
    kt_stmts *body = &record->instance->body;
    expansion x = { .inference = inference, .record = record };
    if (record->instance->function->module->is_builtin_code)
      kt_walk_tstmts(body, NULL, leave_unchecked, NULL);
    else kt_walk_tstmts(body, NULL, expand, &x);
  }
}

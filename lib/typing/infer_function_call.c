/* Inference of calls of functions. A function has an instance for each combination of parameter
 * bounds, which include literals and func arguments. */
#include <string.h>

#include "typing/infer.h"
#include "typing/rules.h"

/* ---- values of the parameters ---- */

/* Gives a parameter a placeholder value while annotations are evaluated, because dtype(r) needs
 * only its type. */
static void bind_stand_in(kt_scope *outside, const ki_decl *param, const kt_bound *bound)
{
  kt_meaning *meaning = &outside->meanings[param->index];
  if (bound->kind == KJ_BOUND_NONE) return;
  if (bound->kind == KJ_BOUND_CALLEE) {
    *meaning = (kt_meaning){ .kind = KJ_MEANS_CALLEE, .callee = bound->callee };
    return;
  }
  if (bound->kind == KJ_BOUND_TYPE) {
    *meaning = (kt_meaning){ .kind = KJ_MEANS_TYPE, .type = bound->type };
    return;
  }
  if (bound->kind == KJ_BOUND_CONST) {
    kt_expr *value = kt_new_texpr(outside->c, KJ_T_CONST, bound->type, param->location);
    value->integer = bound->integer;
    *meaning = (kt_meaning){ .kind = KJ_MEANS_VALUE, .value = value };
    return;
  }
  kt_var *var = KJ_NEW(outside->arena, kt_var);
  var->kind = KJ_V_PARAM;
  var->name = param->name;
  var->type = bound->type;
  var->index = UINT32_MAX;
  *meaning = (kt_meaning){ .kind = KJ_MEANS_VARIABLE, .var = var };
}

kjit_type kt_infer_annotation(kt_inference *inference, const ki_function *function,
                              const kt_bound *bounds, size_t index)
{
  KJ_ASSERT(index < function->params.count);
  const ki_type_expr *annotation = function->params.items[index]->type_expr;
  if (!annotation) return KJIT_ANY;
  kt_scope outside;
  kt_stmts ignored = { 0 };
  kt_init_scope(&outside, inference);
  outside.out = &ignored;
  outside.is_quiet = true;
  outside.meanings = KJ_NEW_ARRAY(outside.arena, kt_meaning, function->local_count + 1);
  outside.guesses = KJ_NEW_ARRAY(outside.arena, kt_guess, function->local_count + 1);
  for (size_t i = 0; i < function->params.count; i++)
    bind_stand_in(&outside, function->params.items[i], &bounds[i]);
  return kt_infer_type(&outside, annotation);
}

/* State while the parameters of one call are bound. */
typedef struct binding {
  const ki_expr *call;
  const ki_function *function;
  const kt_captured *captured; /* or NULL */
  kt_expr **values;            /* the argument's value for each parameter; NULL for functions */
  kt_bound *bounds;
  /* the run-time argument for each parameter; NULL if the parameter is not passed at run time */
  kt_expr **arguments;
  const ki_expr **fields; /* the fields for each parameter; see kt_bound */
  /* bit mask of parameters: a float literal for such a parameter is passed at run time */
  uint64_t variable;
} binding;

static kj_location location_of(const binding *b, size_t index)
{
  return index < b->call->args.count ? b->call->args.items[index]->location : b->call->location;
}

static kt_bound constant_bound(const kt_expr *value)
{
  return (kt_bound){ .kind = KJ_BOUND_CONST, .type = value->type, .integer = value->integer };
}

static kjit_type read_only_type(kt_scope *s, kjit_type type)
{
  KJ_ASSERT(kt_is_array(s->c, type));
  ki_type_info info = *ki_type(s->c->types, type);
  info.read_only = true;
  kjit_type made = ki_intern_array(s->c->types, &info);
  if (made == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return made;
}

static void bind_const(kt_scope *s, binding *b, size_t index, kjit_type annotation)
{
  KJ_ASSERT(b->function->params.items[index]->is_const);
  kt_expr *value = b->values[index];
  const char *name = b->function->params.items[index]->name;
  if (!kt_is_constant(value))
    kt_fail(s->c, location_of(b, index), KJIT_ERROR_TYPE,
            "the parameter `%s` of `%s` is const: its argument must be known at compile time", name,
            b->function->decl->name);
  if (annotation != KJIT_ANY)
    value = kt_fit_annotation(s, value, annotation, kj_format(s->arena, "argument `%s`", name),
                              location_of(b, index));
  b->bounds[index] = constant_bound(value);
}

static void bind_annotated(kt_scope *s, binding *b, size_t index, kjit_type annotation)
{
  const char *what = kj_format(s->arena, "argument `%s` of `%s`",
                               b->function->params.items[index]->name, b->function->decl->name);
  kt_expr *value = kt_fit_annotation(s, b->values[index], annotation, what, location_of(b, index));
  b->arguments[index] = value;
  b->bounds[index] = kt_value_bound(s, value);
  if (kt_is_array(s->c, value->type) && ki_type(s->c->types, annotation)->read_only)
    b->bounds[index].type = read_only_type(s, value->type);
}

/* An instance's key contains each literal that is passed to a generic parameter. A weak value that
 * is known only at run time stays weak and is passed like an untyped number from the
 * application. */

/* Limits recursion in which each call has a different literal: from this depth on, one instance of
 * the function serves all literals. */
enum { LITERAL_DEPTH = 32 };

static bool is_deep(const kt_scope *s, const ki_function *function)
{
  int depth = 0;
  for (const kt_instance *at = s->instance; at; at = at->caller) depth += at->function == function;
  return depth >= LITERAL_DEPTH;
}

static void bind_generic(kt_scope *s, binding *b, size_t index)
{
  kt_expr *value = b->values[index];
  bool is_weak = ki_is_weak(value->type);
  if (is_weak && kt_is_constant(value) && is_deep(s, b->function)) is_weak = false;
  bool is_variable = value->type == KJ_WEAK_FLOAT && index < 64 && b->variable >> index & 1;
  if (is_weak && kt_is_constant(value) && !is_variable) {
    b->bounds[index] = constant_bound(value);
    return;
  }
  if (is_weak) {
    kjit_type wide = kt_wide_type(value);
    b->bounds[index] = (kt_bound){ .kind = KJ_BOUND_WEAK, .type = value->type, .wide = wide };
    b->arguments[index] = kt_convert(s, value, kt_carrier_of(value->type, wide), value->location);
    return;
  }
  b->arguments[index] = kt_make_concrete(s, value);
  b->bounds[index] = kt_value_bound(s, b->arguments[index]);
  b->bounds[index].fields = b->fields[index];
}

static void bind_value(kt_scope *s, binding *b, size_t index)
{
  KJ_ASSERT(index < b->function->params.count);
  const ki_decl *param = b->function->params.items[index];
  kjit_type annotation = kt_infer_annotation(s->inference, b->function, b->bounds, index);
  if (param->is_const) bind_const(s, b, index, annotation);
  else if (annotation != KJIT_ANY) bind_annotated(s, b, index, annotation);
  else bind_generic(s, b, index);
}

static void bind_callee(kt_scope *s, binding *b, size_t index, kt_callee callee)
{
  const ki_decl *param = b->function->params.items[index];
  b->bounds[index] = (kt_bound){ .kind = KJ_BOUND_CALLEE, .callee = callee };
  if (param->type_expr || param->is_const || param->is_type)
    kt_fail(s->c, location_of(b, index), KJIT_ERROR_TYPE,
            "parameter `%s` of `%s` takes a %s, got a function", param->name,
            b->function->decl->name, param->is_type ? "type" : "value");
}

/* Binds a type parameter. A weak type is replaced by the type that a variable would have. */
static void bind_type(kt_scope *s, binding *b, size_t index, kjit_type type)
{
  const ki_decl *param = b->function->params.items[index];
  if (!param->is_type)
    kt_fail(s->c, location_of(b, index), KJIT_ERROR_TYPE,
            "parameter `%s` of `%s` takes a %s, got a type", param->name, b->function->decl->name,
            param->is_func ? "function" : "value");
  if (ki_is_weak(type)) type = type == KJ_WEAK_INT ? KJIT_I32 : KJIT_F64;
  b->bounds[index] = (kt_bound){ .kind = KJ_BOUND_TYPE, .type = type };
}

static void refuse_value(kt_scope *s, const binding *b, size_t index)
{
  const ki_decl *param = b->function->params.items[index];
  if (param->is_type)
    kt_fail(
      s->c, location_of(b, index), KJIT_ERROR_TYPE,
      "parameter `%s` of `%s` takes a type, got a value; for the type of a value write `dtype(x)`",
      param->name, b->function->decl->name);
  if (param->is_func)
    kt_fail(s->c, location_of(b, index), KJIT_ERROR_TYPE,
            "parameter `%s` of `%s` takes a function, got a value", param->name,
            b->function->decl->name);
}

static size_t captured_count(const kt_captured *captured) { return captured ? captured->count : 0; }

static void take_captured(kt_scope *s, binding *b, size_t index)
{
  size_t at = index - (b->function->params.count - b->captured->count);
  const kt_bound *bound = &b->captured->bounds[at];
  if (bound->kind == KJ_BOUND_CALLEE) {
    bind_callee(s, b, index, bound->callee);
    return;
  }
  if (bound->kind == KJ_BOUND_TYPE) {
    bind_type(s, b, index, bound->type);
    return;
  }
  refuse_value(s, b, index);
  b->values[index] = kt_copy_texpr(s, b->captured->values[at]);
}

static void infer_argument(kt_scope *s, binding *b, size_t index, kt_order *order)
{
  KJ_ASSERT(index < b->function->params.count);
  const ki_decl *param = b->function->params.items[index];
  if (index + captured_count(b->captured) >= b->function->params.count) {
    take_captured(s, b, index);
    return;
  }
  bool is_given = index < b->call->args.count;
  const ki_expr *expr = is_given ? b->call->args.items[index] : param->value;
  kt_begin_operand(s, order);
  kt_callee callee;
  kjit_type type;
  if (kt_as_type(s, expr, &type)) {
    bind_type(s, b, index, type);
    return;
  }
  if (kt_as_callee(s, expr, &callee)) {
    kt_end_operand(s, order, NULL);
    kt_settle(s, order, b->values, index);
    bind_callee(s, b, index, callee);
    return;
  }
  refuse_value(s, b, index);
  if (is_given) {
    const ki_expr *value = expr;
    if (!param->type_expr && !param->is_const) b->fields[index] = kt_split_fields(s, expr, &value);
    b->values[index] = kt_infer_expr(s, value);
  } else { /* the default value of a parameter can only use constants */
    kt_scope outside;
    kt_init_scope(&outside, s->inference);
    outside.out = s->out;
    b->values[index] = kt_infer_expr(&outside, expr);
  }
  kt_end_operand(s, order, b->values[index]);
  kt_settle(s, order, b->values, index);
}

static void check_arguments(kt_scope *s, const ki_function *function, const ki_expr *call,
                            const kt_captured *captured)
{
  size_t least = function->params.count - captured_count(captured), most = least;
  while (least && function->params.items[least - 1]->value) least--;
  kt_check_count(s, function->decl->name, call->args.count, least, most, call->location);
}

/* Binds all parameters. Parameters without an annotation come first, because annotations can refer
 * to them. */
static void bind_all(kt_scope *s, binding *b)
{
  size_t count = b->function->params.count;
  kt_order order = { 0 };
  for (size_t i = 0; i < count; i++) infer_argument(s, b, i, &order);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < count; i++)
      if (b->values[i] && (b->function->params.items[i]->type_expr != NULL) == (round == 1))
        bind_value(s, b, i);
}

/* ---- the call ---- */

static void check_synchronization(kt_scope *s, const kt_inferred *record, const char *name,
                                  kj_location location)
{
  const kt_instance *instance = record->instance;
  if (s->range_count && (instance->has_barrier || instance->has_warp))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` contains a barrier or a warp operation and cannot be called in the body of a "
            "grid_range or block_range, whose iterations are independent",
            name);
  if (s->range_count && (record->has_grid_range || record->has_block_range))
    kt_fail(
      s->c, location, KJIT_ERROR_TYPE,
      "`%s` contains a grid_range or block_range and cannot be called in the body of another one",
      name);
  if (record->has_grid_range && (s->level > KJ_LEVEL_GRID || s->left_level > KJ_LEVEL_GRID))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` contains a grid_range, so all threads of the grid must reach this call, but some "
            "do not",
            name);
  if (record->has_block_range && (s->level == KJ_LEVEL_THREAD || s->left_level == KJ_LEVEL_THREAD))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` contains a block_range, so all threads of the block must reach this call, but "
            "some do not",
            name);
  if (instance->has_barrier && s->level == KJ_LEVEL_THREAD) {
    s->c->divergent_barrier = name;
    s->c->divergent_location = location;
    kt_note_message(s, location, KJIT_SEVERITY_WARNING,
                    "`%s` contains a barrier and is called in divergent control flow: all threads "
                    "of the block must reach this call",
                    name);
  }
}

static void take_properties(kt_scope *s, const kt_inferred *record)
{
  if (!s->instance) return;
  s->instance->has_barrier |= record->instance->has_barrier;
  s->instance->has_warp |= record->instance->has_warp;
  s->instance->uses_positions |= record->instance->uses_positions;
  s->record->has_grid_range |= record->has_grid_range;
  s->record->has_block_range |= record->has_block_range;
  if (!s->is_quiet) KJ_PUSH(s->arena, &s->record->callees, (kt_inferred *)record);
}

kt_expr *kt_call_instance(kt_scope *s, kt_inferred *record, const kt_exprs *arguments,
                          kj_location location)
{
  kt_expr *call = kt_new_texpr(s->c, KJ_T_CALL, record->instance->result, location);
  call->instance = record->instance;
  call->args = *arguments;
  if (record->constant_result) {
    for (size_t i = 0; i < call->args.count; i++) kt_drop_value(s, call->args.items[i]);
    kt_expr *value = kt_copy_texpr(s, record->constant_result);
    value->location = location;
    return value;
  }
  take_properties(s, record);
  if (!ki_is_weak(record->result)) return call;
  kt_expr *weak = kt_new_texpr(s->c, KJ_T_CONVERT, record->result, location);
  weak->x = call;
  return weak;
}

/* Returns the run-time arguments in the order of the parameters. */
static kt_exprs list_arguments(kt_scope *s, const binding *b)
{
  kt_exprs arguments = { 0 };
  for (size_t i = 0; i < b->function->params.count; i++) {
    if (b->arguments[i]) KJ_PUSH(s->arena, &arguments, b->arguments[i]);
    if (b->bounds[i].kind == KJ_BOUND_CALLEE) kt_hand_over(s, &b->bounds[i].callee, &arguments);
  }
  return arguments;
}

/* Rejects array arguments of a func that a built-in calls, for example the func that returns an
 * operator's identity. accesses.c analyses the untyped source to find the arrays that a kernel
 * reads and writes, so it does not see these calls. */
static void refuse_arrays(kt_scope *s, const binding *b, const char *asker)
{
  for (size_t i = 0; i < b->function->params.count; i++)
    if (b->bounds[i].kind == KJ_BOUND_VALUE && kt_holds_array(s->c, b->bounds[i].type))
      kt_fail(s->c, location_of(b, i), KJIT_ERROR_TYPE, "`%s` takes a value, got %s", asker,
              kt_type_text(s->c, b->bounds[i].type));
}

void kt_refuse_kernel(kt_scope *s, const ki_function *function, kj_location location)
{
  if (function->is_kernel)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` is a kernel and cannot be called; only functions can", function->decl->name);
}

kt_inferred *kt_bind_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                          const char *asker, uint64_t variable, kt_exprs *arguments)
{
  const ki_function *function = callee->function;
  size_t count = function->params.count;
  if (!s->instance)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` cannot be called here: only constants and arithmetic on them are allowed",
            function->decl->name);
  check_arguments(s, function, expr, callee->captured);
  binding b = {
    .call = expr, .function = function, .captured = callee->captured, .variable = variable
  };
  b.values = KJ_NEW_ARRAY(s->arena, kt_expr *, count + 1);
  b.arguments = KJ_NEW_ARRAY(s->arena, kt_expr *, count + 1);
  b.fields = KJ_NEW_ARRAY(s->arena, const ki_expr *, count + 1);
  b.bounds = KJ_NEW_ARRAY(s->arena, kt_bound, count + 1);
  bind_all(s, &b);
  if (asker) refuse_arrays(s, &b, asker);
  if (function->is_extern) kt_bind_extern_call(s, function, b.bounds, b.arguments, expr);
  kt_inferred *record = kt_get_inferred(s, function, b.bounds, expr->location);
  check_synchronization(s, record, function->decl->name, expr->location);
  *arguments = list_arguments(s, &b);
  return record;
}

kt_expr *kt_infer_function_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                                const char *asker)
{
  kt_exprs arguments;
  if (callee->derived) return kd_infer_call(s, expr, callee);
  kt_refuse_kernel(s, callee->function, expr->location);
  kt_inferred *record = kt_bind_call(s, expr, callee, asker, 0, &arguments);
  return kt_call_instance(s, record, &arguments, expr->location);
}

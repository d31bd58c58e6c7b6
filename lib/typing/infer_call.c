/* Inference of calls: conversions, built-ins, functions. A function is inferred once for each
 * combination of parameter values, which includes literals and func arguments. */
#include <string.h>

#include "native/functions.h"
#include "typing/infer.h"
#include "typing/rules.h"

/* ---- calls of extern functions, which have the C ABI and must declare all types ---- */

/* Whether kjit_call_function passes the type differently from C: small floats as their bits,
 * aggregates by address. */
static bool goes_to_host(kt_scope *s, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  bool is_composed = info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ||
                     info->class_ == KJ_CLASS_COMPLEX || info->class_ == KJ_CLASS_FLOAT;
  if (info->class_ != KJ_CLASS_TUPLE) return is_composed;
  for (uint32_t i = 0; i < info->count; i++)
    if (kt_is_array(s->c, info->items[i]) || ki_is_weak(info->items[i])) return false;
  return true;
}

/* CUDA's C++ has types of its own for small floats and complex numbers: __half, cuDoubleComplex. */
static bool is_cuda_type(kt_scope *s, kjit_type type)
{
  bool is_gpu = s->c->request->target.kind == KJ_TARGET_NVPTX;
  return is_gpu && (type == KJIT_F16 || type == KJIT_BF16 || kt_is_complex(s->c, type));
}

void kt_check_c_type(kt_scope *s, kjit_type type, const char *what, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  if (s->c->request->has_record && goes_to_host(s, type)) return;
  if (is_cuda_type(s, type)) return;
  bool is_number = info->class_ == KJ_CLASS_BOOL || info->class_ == KJ_CLASS_SIGNED ||
                   info->class_ == KJ_CLASS_UNSIGNED || type == KJIT_F32 || type == KJIT_F64;
  if (is_number || info->class_ == KJ_CLASS_POINTER || info->class_ == KJ_CLASS_VOID) return;
  const char *advice = type == KJIT_F16 || type == KJIT_BF16
                         ? "; pass its bits as u16: `bitcast(u16, x)`"
                       : info->class_ == KJ_CLASS_STRUCT ? "; pass a pointer to it"
                                                         : "";
  kt_fail_code(s->c, location, KJIT_ERROR_UNSUPPORTED, KJIT_CODE_C_TYPE,
               "%s has the type %s, which cannot be passed to or returned from a C function%s",
               what, kt_type_text(s->c, type), advice);
}

static kt_expr *bind_array(kt_scope *s, kt_expr *array, kjit_type annotation, const ki_decl *param,
                           kj_location location)
{
  KJ_ASSERT(kt_is_array(s->c, array->type));
  const ki_type_info *info = ki_type(s->c->types, array->type);
  if (info->space != KJ_SPACE_GLOBAL)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` takes an array in global memory, got %s",
            param->name, kt_type_text(s->c, array->type));
  return kt_give_array_type(s, array, annotation);
}

/* Fails if the extern func is not bound, unless the code is compiled ahead of its use. */
static void check_binding(kt_scope *s, const ki_function *function, kj_location location)
{
  const kj_compile_request *request = s->c->request;
  const ki_bound_extern *bound = function->bound;
  bool is_cpu = request->target.kind == KJ_TARGET_CPU,
       is_bound = bound && (is_cpu ? bound->host_function != NULL : bound->kind != KJ_CODE_NONE);
  if (is_bound || request->is_ahead) return;
  if (is_cpu && bound && bound->kind == KJ_CODE_LINKED)
    kt_fail(s->c, location, KJIT_ERROR_NAME,
            "`%s` is linked code for GPUs (%s), which cannot run on the CPU", bound->symbol,
            bound->linked_count ? bound->linked[0].name : "the linked code");
  kt_fail(s->c, location, KJIT_ERROR_NAME,
          "the extern function `%s` has no %s: use kjit_bind_extern to bind it to %s",
          function->decl->name, is_cpu ? "function on the CPU" : "code for GPUs",
          is_cpu ? "a C function" : "PTX or LLVM IR, or kjit_bind_linked for other code");
}

void kt_bind_extern_call(kt_scope *s, const ki_function *function, kt_bound *bounds,
                         kt_expr **arguments, const ki_expr *call)
{
  for (size_t i = 0; i < function->params.count; i++) {
    const ki_decl *param = function->params.items[i];
    kj_location location = i < call->args.count ? call->args.items[i]->location : call->location;
    const char *what =
      kj_format(s->arena, "argument `%s` of `%s`", param->name, function->decl->name);
    if (!param->type_expr || param->is_const || !arguments[i])
      kt_fail(s->c, location, KJIT_ERROR_TYPE,
              "`%s` is extern, but its parameter `%s` has no C type: write `%s: f32` if it is a C "
              "function, or link the library that defines it with kjit_link_module",
              function->decl->name, param->name, param->name);
    kjit_type annotation = kt_infer_annotation(s->inference, function, bounds, i);
    if (kt_is_array(s->c, annotation))
      arguments[i] = bind_array(s, arguments[i], annotation, param, location);
    else kt_check_c_type(s, annotation, what, location);
    bounds[i] = (kt_bound){ .kind = KJ_BOUND_VALUE, .type = arguments[i]->type };
  }
  check_binding(s, function, call->location);
  if (!s->c->request->is_check && kt_has_plain_symbol(s->c, function) &&
      kn_is_library_name(kt_is_linked(s->c, function) ? function->bound->symbol
                                                      : function->decl->name))
    kt_fail(
      s->c, function->decl->location, KJIT_ERROR_NAME,
      "extern function `%s` has the name of a function that generated code calls, so a linker "
      "could not tell the two apart; rename the extern function",
      function->decl->name);
}

/* ---- conversions ---- */

static kt_expr *infer_cast(kt_scope *s, const ki_expr *expr, kjit_type type)
{
  if (kt_has_parts(s->c, type)) {
    kt_exprs values = { 0 };
    kt_infer_list(s, &expr->args, &values);
    return kt_construct_parts(s, &values, type, expr->location);
  }
  if (kt_is_struct(s->c, type)) {
    kt_exprs values = { 0 };
    kt_infer_list(s, &expr->args, &values);
    return kt_construct_struct(s, &values, type, expr->location);
  }
  if (!ki_is_scalar(type))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "%s is not a scalar type, so values cannot be converted to it",
            kt_type_text(s->c, type));
  if (expr->args.count != 1)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "a conversion takes exactly one value, got %zu",
            expr->args.count);
  kt_expr *value = kt_infer_expr(s, expr->args.items[0]);
  if (kt_is_date(s, value->type) && kt_is_integer(s->c, type))
    return kt_count_date(s, value, type, expr->location);
  s->is_cast = true;
  value = kt_convert(s, value, type, expr->location);
  s->is_cast = false;
  return value;
}

/* ---- built-ins ---- */

static void check_count(kt_scope *s, const char *name, size_t count, size_t least, size_t most,
                        kj_location location)
{
  KJ_ASSERT(least <= most);
  if (count >= least && count <= most) return;
  if (least == most)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` takes %zu argument%s, got %zu", name, least,
            least == 1 ? "" : "s", count);
  kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` takes %zu to %zu arguments, got %zu", name, least,
          most, count);
}

/* Checks the alignment of the operand of a built-in with its own instruction. A field of a packed
 * struct can be unaligned. */
static void check_aligned(kt_scope *s, const ki_builtin *builtin, const kt_place *place)
{
  KJ_ASSERT(place->array);
  const ki_type_info *info = ki_type(s->c->types, place->array->type);
  uint32_t needed = ki_type(s->c->types, place->type)->size_bytes;
  if (needed > 16) needed = 16;
  if (info->alignment_bytes && info->alignment_bytes < needed)
    kt_fail(s->c, place->location, KJIT_ERROR_TYPE,
            "`%s` needs an aligned address: this field is only aligned to %u byte%s, but its type "
            "needs %u",
            builtin->name, info->alignment_bytes, info->alignment_bytes == 1 ? "" : "s", needed);
}

static void infer_memory_place(kt_scope *s, const ki_builtin *builtin, const ki_expr *expr,
                               kt_place *place)
{
  kt_infer_place(s, expr, place);
  if (place->array) check_aligned(s, builtin, place);
  bool is_own = place->var || place->steps.count || place->is_array ||
                ki_type(s->c->types, place->array->type)->space == KJ_SPACE_LOCAL;
  if (is_own)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` needs an operand in memory that threads share: an element of an array argument "
            "or of a shared array, or a shared scalar",
            builtin->name);
}

/* Infers an operand that the built-in itself reads. The array may be read-only. */
static void infer_read_place(kt_scope *s, const ki_builtin *builtin, const ki_expr *expr,
                             kt_place *place)
{
  const kt_expr *load = kt_infer_expr(s, expr);
  if (load->kind == KJ_T_LOAD && builtin->id == KJ_BUILTIN_POINTER) {
    *place = (kt_place){
      .array = load->x, .indices = load->args, .type = load->type, .location = expr->location
    };
    return;
  }
  if (builtin->id == KJ_BUILTIN_POINTER)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`pointer` needs an element of an array, a shared or local scalar, or a field of "
            "these; other values have no address");
  if (load->kind != KJ_T_LOAD || ki_type(s->c->types, load->x->type)->space == KJ_SPACE_LOCAL)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` needs an element of an array argument or of a shared array: `%s(x[i])`",
            builtin->name, builtin->name);
  *place = (kt_place){
    .array = load->x, .indices = load->args, .type = load->type, .location = expr->location
  };
}

/* Infers the type argument of `view`, such as `f32[n, m]`. The extents are evaluated. */
static void infer_view_type(kt_scope *s, const ki_expr *expr, kt_operands *operands)
{
  const ki_type_expr *type = expr->kind == KJ_EXPR_TYPE ? expr->type_expr : NULL;
  if (!type || type->kind != KJ_TYPE_STATIC_ARRAY || type->extents.count == 0)
    kt_fail(
      s->c, expr->location, KJIT_ERROR_TYPE,
      "the first argument of `view` must be an array type with extents: `view(f32[n, m], p)`");
  operands->type_argument = kt_infer_type(s, type->element);
  kt_infer_list(s, &type->extents, &operands->extents);
}

/* Appends the arguments that bind_back has captured for a built-in to its operands. */
static void add_captured(kt_scope *s, const kt_captured *captured, const ki_expr *call,
                         kt_operands *operands)
{
  for (size_t i = 0; captured && i < captured->count; i++) {
    if (!captured->values[i])
      kt_fail(s->c, call->location, KJIT_ERROR_TYPE, "`%s` takes a value, got a function",
              operands->builtin->name);
    KJ_PUSH(s->arena, &operands->values, kt_copy_texpr(s, captured->values[i]));
  }
}

/* Whether the built-in takes the address of this value instead of loading it. index does not count
 * a first argument that is an lvalue or an array. */
static bool takes_address(const ki_builtin *builtin, size_t index)
{
  enum { FIRST = 1, SECOND = 2, THIRD = 4 };
  static const uint8_t values[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_CP_ASYNC] = FIRST,
    [KJ_BUILTIN_CP_ASYNC_BULK] = FIRST | THIRD,
    [KJ_BUILTIN_CP_ASYNC_TENSOR] = FIRST | SECOND,
    [KJ_BUILTIN_CP_ASYNC_TENSOR_STORE] = FIRST,
    [KJ_BUILTIN_MAP_SHARED_RANK] = FIRST,
    [KJ_BUILTIN_REFER] = FIRST,
  };
  return index < 3 && (values[builtin->id] >> index & 1);
}

/* Infers the values of a built-in. The extents and the lvalue among the operands are evaluated
 * before. */
static void infer_values(kt_scope *s, const ki_exprs *exprs, kt_order *order, kt_operands *o)
{
  for (size_t i = 0; i < exprs->count; i++) {
    bool is_address = takes_address(o->builtin, i);
    kt_begin_operand(s, order);
    const ki_expr *expr = exprs->items[i];
    if (o->builtin->id == KJ_BUILTIN_LEN) expr = kt_array_of_fields(s, expr, KJ_MAX_RANK);
    kt_expr *value = kt_infer_expr(s, expr);
    if (is_address) kt_end_address(s, order, value);
    else kt_end_operand(s, order, value);
    kt_settle(s, order, o->extents.items, o->extents.count);
    kt_settle_place(s, order, &o->place);
    for (size_t k = 0; k < o->values.count; k++) {
      if (takes_address(o->builtin, k)) kt_settle_address(s, order, &o->values.items[k]);
      else kt_settle(s, order, &o->values.items[k], 1);
    }
    KJ_PUSH(s->arena, &o->values, value);
  }
}

/* Infers a first argument that is an lvalue or an array. */
static void infer_first(kt_scope *s, const ki_builtin *builtin, const ki_expr *expr,
                        kt_operands *operands)
{
  if (builtin->flags & (KJ_PLACE | KJ_ADDRESS))
    infer_memory_place(s, builtin, expr, &operands->place);
  if (builtin->flags & KJ_READS) infer_read_place(s, builtin, expr, &operands->place);
  if (builtin->flags & KJ_ARRAY)
    operands->place = (kt_place){ .array = kt_infer_expr(s, expr), .location = expr->location };
}

/* Ends the extents and the lvalue as operands. They already have their order among themselves. */
static void end_first(kt_scope *s, kt_order *order, const kt_operands *operands)
{
  kt_end_place(s, order, &operands->place);
  for (size_t i = 0; i < operands->extents.count; i++)
    kt_end_operand(s, order, operands->extents.items[i]);
}

static kt_expr *infer_builtin_call(kt_scope *s, const ki_expr *expr, const ki_builtin *builtin,
                                   const kt_captured *captured)
{
  kt_operands operands = { .builtin = builtin, .location = expr->location };
  if (builtin->flags & KJ_NAME)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` is a value, not a function: omit `()`",
            builtin->name);
  size_t most = builtin->most + (size_t)(builtin->flags & KJ_ORDER ? 1 : 0);
  size_t bound = captured ? captured->count : 0;
  check_count(s, builtin->name, expr->args.count + bound, builtin->least, most, expr->location);
  if (builtin->id == KJ_BUILTIN_IS_ARRAY || builtin->id == KJ_BUILTIN_IS_TUPLE)
    operands.type_argument = kt_infer_type_of(s, expr->args.items[0]);
  operands.call = expr;
  if (builtin->flags & (KJ_UNEVALUATED | KJ_OPERATOR)) return kt_apply_rule(s, &operands);
  ki_exprs rest = expr->args;
  bool has_first = builtin->flags & (KJ_TYPE_ARG | KJ_PLACE | KJ_READS | KJ_ADDRESS | KJ_ARRAY);
  if (has_first) {
    rest.items++;
    rest.count--;
  }
  if (builtin->id == KJ_BUILTIN_VIEW) infer_view_type(s, expr->args.items[0], &operands);
  else if ((builtin->flags & KJ_TYPE_ARG) &&
           !kt_as_type(s, expr->args.items[0], &operands.type_argument))
    kt_fail(s->c, expr->args.items[0]->location, KJIT_ERROR_TYPE,
            "the first argument of `%s` must be a type: `%s(f32%s)` or `%s(dtype(x)%s)`",
            builtin->name, builtin->name, rest.count ? ", ..." : "", builtin->name,
            rest.count ? ", ..." : "");
  kt_order order = { 0 };
  if (has_first) infer_first(s, builtin, expr->args.items[0], &operands);
  kt_begin_operand(s, &order);
  end_first(s, &order, &operands);
  if (builtin->id == KJ_BUILTIN_PTX || builtin->id == KJ_BUILTIN_PTX_EFFECT) {
    operands.text = rest.items[0];
    rest.items++;
    rest.count--;
  }
  infer_values(s, &rest, &order, &operands);
  add_captured(s, captured, expr, &operands);
  return kt_apply_rule(s, &operands);
}

kt_expr *kt_infer_builtin_name(kt_scope *s, const ki_expr *expr, const ki_builtin *builtin,
                               const char *field)
{
  if (!(builtin->flags & KJ_NAME))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a function: call it, or pass it to a function parameter", builtin->name);
  if (field && !(builtin->flags & KJ_XYZ))
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "`%s` has no `.%s`", builtin->name, field);
  kt_operands operands = { .builtin = builtin, .location = expr->location, .field = field };
  return kt_apply_rule(s, &operands);
}

/* ---- functions: values of the parameters ---- */

/* Gives a parameter a stand-in value while annotations are evaluated. dtype(r) needs only its
 * type. */
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

/* The state of binding the parameters for one call. */
typedef struct binding {
  const ki_expr *call;
  const ki_function *function;
  const kt_captured *captured; /* or NULL */
  kt_expr **values;            /* argument value of each parameter; NULL for functions */
  kt_bound *bounds;
  /* run-time arguments by parameter; NULL means that a parameter is not passed at run time */
  kt_expr **arguments;
  const ki_expr **fields; /* fields of each parameter, see kt_bound */
  uint64_t variable;      /* bit i: a float literal for parameter i is passed at run time */
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

/* A generic parameter with a literal becomes a part of the instance's key. A weak value that is
 * known only at run time is passed like an untyped number from the application and stays weak. */

/* Limits recursion with a different literal in each call: from this depth on, the function has one
 * instance for all literals. */
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

/* Binds a type parameter. A weak type becomes the type that a variable would have. */
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
  } else { /* the default of a parameter can only use constants */
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
  check_count(s, function->decl->name, call->args.count, least, most, call->location);
}

/* Binds all parameters. Those without an annotation come first, because an annotation can refer to
 * other parameters. */
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

/* ---- functions: the call ---- */

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

/* Rejects arrays as arguments of a func that a built-in calls, such as the identity of an operator.
 * accesses.c determines without types which arrays a kernel reads and writes, so it cannot see
 * these calls. */
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

kt_expr *kt_infer_call(kt_scope *s, const ki_expr *expr)
{
  kjit_type type;
  kt_callee callee;
  if (kt_as_type(s, expr->x, &type)) return infer_cast(s, expr, type);
  if (expr->x->kind == KJ_EXPR_BUILTIN) return infer_builtin_call(s, expr, expr->x->builtin, NULL);
  if (!kt_as_callee(s, expr->x, &callee))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "only a function or a type can be called");
  return callee.builtin ? infer_builtin_call(s, expr, callee.builtin, callee.captured)
                        : kt_infer_function_call(s, expr, &callee, NULL);
}

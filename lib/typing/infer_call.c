/* Inference of calls: extern functions, conversions and built-ins. infer_function_call.c infers
 * calls of other functions. */
#include <string.h>

#include "native/functions.h"
#include "typing/infer.h"
#include "typing/rules.h"

/* ---- calls of extern functions, which have the C ABI and must declare all types ---- */

/* Returns whether kjit_call_function passes values of the type differently than C does: small
 * floats as their bits, aggregates by address. */
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

/* Returns whether the type is a small float or a complex number and the target is a GPU. CUDA C++
 * has its own types for these, for example __half and cuDoubleComplex. */
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

/* Reports an error if the extern func is not bound, unless the code is compiled ahead of time. */
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

void kt_check_count(kt_scope *s, const char *name, size_t count, size_t least, size_t most,
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

/* Checks that the lvalue of a built-in has the alignment that the built-in's instruction needs. A
 * field of a packed struct can be unaligned. */
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

/* Infers an lvalue operand that the built-in only reads. The array may be read-only. */
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

/* Infers the type argument of `view`, for example `f32[n, m]`, and evaluates its extents. */
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

/* If a built-in has arguments captured by bind_back, appends them to its operands. */
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

/* Returns whether the built-in takes the address of this operand instead of loading it. index does
 * not count a first argument that is an lvalue or an array. */
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

/* Infers the operands of a built-in that are values. The built-in's extents and its lvalue have
 * been evaluated before. */
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

/* Ends the first argument, an lvalue or extents, as one operand. The code that inferred it has
 * preserved the order of evaluation within it. */
static void end_first(kt_scope *s, kt_order *order, const kt_operands *operands)
{
  kt_end_place(s, order, &operands->place);
  for (size_t i = 0; i < operands->extents.count; i++)
    kt_end_operand(s, order, operands->extents.items[i]);
}

/* Returns the call of `pointer` in `bitcast(u64, pointer(a[i]))`, otherwise NULL. */
static const ki_expr *find_address_call(const kt_scope *s, const kt_operands *o,
                                        const ki_exprs *values)
{
  bool is_number = o->builtin->id == KJ_BUILTIN_BITCAST && values->count == 1 &&
                   kt_is_integer(s->c, o->type_argument);
  const ki_expr *call = is_number ? values->items[0] : NULL;
  bool is_pointer = call && call->kind == KJ_EXPR_CALL && call->x->kind == KJ_EXPR_BUILTIN &&
                    call->x->builtin->id == KJ_BUILTIN_POINTER;
  return is_pointer ? call : NULL;
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
  kt_check_count(s, builtin->name, expr->args.count + bound, builtin->least, most, expr->location);
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
  const ki_expr *outer_address = s->address_call;
  s->address_call = find_address_call(s, &operands, &rest);
  infer_values(s, &rest, &order, &operands);
  s->address_call = outer_address;
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

/* ---- calls of any kind ---- */

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

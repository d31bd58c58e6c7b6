/* Calls. Functions are inlined as trees, so that a callee sees the constants and the arguments that
 * the caller hands it; recursive ones, @noinline ones and those that would make the code explode
 * become LLVM functions. */
#include <string.h>

#include "lower/debug.h"

/* In expressions. A body that a call would not be smaller than is inlined past MOST_INLINED, but
 * not without end: calls of calls double at every level. */
enum { MOST_INLINED = 40000, SMALL_BODY = 24, MOST_SMALL_INLINED = 200000 };

struct kj_call_plan {
  uint32_t size;
  uint32_t return_count;
};

/* ---- the plan ---- */

static void count_expr(void *data, kj_texpr **expr)
{
  (void)expr;
  ((struct kj_call_plan *)data)->size++;
}

static void count_stmt(void *data, kj_tstmt *stmt)
{
  struct kj_call_plan *plan = data;
  plan->size++;
  if (stmt->kind == KJ_TS_RETURN) plan->return_count++;
}

void kj_plan_calls(kj_lowering *l)
{
  size_t count = l->c->instances.count;
  l->calls = KJ_NEW_ARRAY(l->c->arena, struct kj_call_plan, count);
  l->functions = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, count);
  for (size_t i = 0; i < count; i++) {
    kj_instance *instance = l->c->instances.items[i];
    l->has_recursion |= instance->is_recursive;
    kj_walk_tstmts(&instance->body, count_stmt, count_expr, &l->calls[i]);
  }
}

bool kj_is_inlined(kj_lowering *l, const kj_instance *instance)
{
  const struct kj_call_plan *plan = &l->calls[instance->id];
  const kj_attributes *attributes = &instance->function->attributes;
  bool is_asked = kj_get_attribute(attributes, KJ_ATTRIBUTE_INLINE) != NULL;
  if (instance->is_recursive || kj_get_attribute(attributes, KJ_ATTRIBUTE_NOINLINE)) return false;
  uint32_t most = is_asked || plan->size <= SMALL_BODY ? MOST_SMALL_INLINED : MOST_INLINED;
  bool fits = l->inlined_size + plan->size <= most;
  if (is_asked && !fits)
    kj_fail(l->c, instance->function->decl->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` is @inline, and with it more than %d statements and expressions would be inlined",
            instance->function->decl->name, MOST_SMALL_INLINED);
  return fits;
}

bool kj_is_recursive(kj_lowering *l, const kj_instance *instance)
{
  (void)l;
  return instance->is_recursive;
}

/* ---- inlining ---- */

typedef struct result {
  LLVMValueRef value;
  kj_array_value array;
} result;

static kj_frame *make_frame(kj_lowering *l, const kj_instance *instance)
{
  kj_frame *frame = KJ_NEW(l->c->arena, kj_frame);
  frame->instance = instance;
  frame->states = KJ_NEW_ARRAY(l->c->arena, kj_variable_state,
                               instance->params.count + instance->locals.count + 1);
  return frame;
}

static void bind_argument(kj_lowering *l, kj_frame *frame, const kj_tvar *param,
                          const kj_texpr *arg)
{
  kj_variable_state *state = &frame->states[param->index];
  if (kj_is_array_type(l, param->type)) {
    state->array = KJ_NEW(l->c->arena, kj_array_value);
    *state->array = kj_lower_array(l, arg);
  } else if (param->is_narrow) {
    state->value = kj_lower_index32(l, arg);
  } else {
    state->value = kj_lower_expr(l, arg);
  }
}

static const kj_tstmt *last_stmt(const kj_instance *instance)
{
  return instance->body.count ? instance->body.items[instance->body.count - 1] : NULL;
}

/* The only return is the last statement: its value needs no memory. */
static bool has_plain_return(kj_lowering *l, const kj_instance *instance)
{
  const kj_tstmt *last = last_stmt(instance);
  return last && last->kind == KJ_TS_RETURN && l->calls[instance->id].return_count == 1;
}

static result lower_plain_body(kj_lowering *l, const kj_instance *instance, bool wants_array)
{
  kj_tstmts before = instance->body;
  before.count--;
  kj_lower_stmts(l, &before);
  const kj_texpr *value = last_stmt(instance)->value;
  kj_debug_statement(l, last_stmt(instance)->location);
  if (!value) return (result){ 0 };
  return wants_array ? (result){ .array = kj_lower_array(l, value) }
                     : (result){ .value = kj_lower_expr(l, value) };
}

static result lower_body_with_exits(kj_lowering *l, const kj_instance *instance, bool wants_array)
{
  bool has_result = instance->result != KJIT_VOID;
  LLVMTypeRef type = kj_register_type(l, instance->result);
  if (!l->frame->leave) l->frame->leave = kj_new_block(l, "return");
  if (has_result) l->frame->result_slot = kj_alloca(l, type, "result");
  kj_lower_stmts(l, &instance->body);
  kj_branch(l, l->frame->leave);
  kj_move_to(l, l->frame->leave);
  if (!has_result) return (result){ 0 };
  LLVMValueRef value = LLVMBuildLoad2(l->builder, type, l->frame->result_slot, "");
  return wants_array ? (result){ .array = kj_unpack_array(l, instance->result, value) }
                     : (result){ .value = value };
}

static result inline_call(kj_lowering *l, const kj_texpr *expr, bool wants_array)
{
  const kj_instance *instance = expr->instance;
  kj_frame *frame = make_frame(l, instance);
  for (size_t i = 0; i < expr->args.count; i++)
    bind_argument(l, frame, instance->params.items[i], expr->args.items[i]);
  kj_loop *loop = l->loop;
  frame->caller = l->frame;
  LLVMMetadataRef place = kj_begin_debug_inline(l, frame, expr->location);
  l->frame = frame;
  l->loop = NULL;
  l->inlined_size += l->calls[instance->id].size;
  kj_debug_parameters(l);
  result r = has_plain_return(l, instance) ? lower_plain_body(l, instance, wants_array)
                                           : lower_body_with_exits(l, instance, wants_array);
  l->frame = frame->caller;
  kj_end_debug_inline(l, place);
  l->loop = loop;
  return r;
}

/* ---- functions ---- */

static bool takes_context(kj_lowering *l, const kj_instance *instance)
{
  return l->target->thread_context &&
         (instance->may_fail || (l->target->context_has_positions && instance->uses_positions));
}

/* A thread whose recursion is too deep fails as by `raise`: there is a record to say so in wherever
 * there is a kernel around. */
static bool bounds_stack(kj_lowering *l, const kj_instance *instance)
{
  return instance->is_recursive && l->kernel->may_fail;
}

/* The least value that the stack's pointer may have: handed on by functions that have one. */
static LLVMValueRef make_stack_limit(kj_lowering *l)
{
  if (l->stack_limit) return l->stack_limit;
  return LLVMBuildSub(l->builder, l->target->stack_pointer(l),
                      kj_const64(l, l->target->recursion_bytes), "");
}

static void check_stack(kj_lowering *l, const kj_instance *instance)
{
  const kj_decl *decl = instance->function->decl;
  const char *message =
    kj_format(l->c->arena,
              "the recursion of `%s` is too deep: its calls need more than %u KiB of stack",
              decl->name, l->target->recursion_bytes / 1024);
  kj_failure failure = { .kind = KJ_FAILURE_RAISE, .location = decl->location, .message = message };
  kj_fail_if(l,
             LLVMBuildICmp(l->builder, LLVMIntSLT, l->target->stack_pointer(l), l->stack_limit, ""),
             &failure);
}

static LLVMTypeRef function_type(kj_lowering *l, const kj_instance *instance)
{
  LLVMTypeRef *params = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, instance->params.count + 2);
  unsigned count = 0;
  if (takes_context(l, instance)) params[count++] = l->pointer;
  if (bounds_stack(l, instance)) params[count++] = l->i64;
  for (size_t i = 0; i < instance->params.count; i++)
    params[count++] = kj_register_type(l, instance->params.items[i]->type);
  return LLVMFunctionType(kj_register_type(l, instance->result), params, count, false);
}

static LLVMValueRef function_of(kj_lowering *l, const kj_instance *instance)
{
  LLVMValueRef *function = &l->functions[instance->id];
  if (*function) return *function;
  *function = LLVMAddFunction(l->module, instance->symbol, function_type(l, instance));
  LLVMSetLinkage(*function, LLVMInternalLinkage);
  kj_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  kj_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "convergent", 0);
  kj_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  if (l->target->finish_function) l->target->finish_function(l, *function);
  KJ_PUSH(l->c->arena, &l->pending, instance);
  return *function;
}

static LLVMValueRef call_function(kj_lowering *l, const kj_texpr *expr)
{
  const kj_instance *instance = expr->instance;
  LLVMValueRef *args = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, expr->args.count + 2);
  unsigned count = 0;
  LLVMValueRef context = takes_context(l, instance) ? l->target->thread_context(l) : NULL;
  if (context) args[count++] = context;
  if (bounds_stack(l, instance)) args[count++] = make_stack_limit(l);
  for (size_t i = 0; i < expr->args.count; i++)
    args[count++] = kj_lower_expr(l, expr->args.items[i]);
  LLVMValueRef function = function_of(l, instance);
  LLVMValueRef call =
    LLVMBuildCall2(l->builder, LLVMGlobalGetValueType(function), function, args, count, "");
  kj_add_call_attribute(l, call, "convergent");
  if (instance->may_fail && l->target->leave_after_call) l->target->leave_after_call(l, context);
  return instance->result == KJIT_VOID ? NULL : call;
}

static void bind_parameters(kj_lowering *l, const kj_instance *instance)
{
  unsigned at = takes_context(l, instance);
  if (at) l->target->use_thread_context(l, LLVMGetParam(l->function, 0));
  if (bounds_stack(l, instance)) l->stack_limit = LLVMGetParam(l->function, at++);
  for (size_t i = 0; i < instance->params.count; i++) {
    const kj_tvar *param = instance->params.items[i];
    LLVMValueRef value = LLVMGetParam(l->function, at++);
    l->frame->states[param->index].value = param->is_narrow ? kj_as_i32(l, value) : value;
  }
}

static void lower_function(kj_lowering *l, const kj_instance *instance)
{
  l->function = l->functions[instance->id];
  l->frame = make_frame(l, instance);
  l->loop = NULL;
  l->parallel_loop = l->iteration_scope = NULL;
  l->vector_variable = NULL;
  l->stack_limit = NULL;
  kj_begin_body(l);
  bind_parameters(l, instance);
  l->frame->leave = kj_new_block(l, "return");
  if (l->stack_limit) check_stack(l, instance);
  kj_debug_parameters(l);
  result r = lower_body_with_exits(l, instance, false);
  if (r.value) LLVMBuildRet(l->builder, r.value);
  else LLVMBuildRetVoid(l->builder);
}

/* A function's body may call for more. */
void kj_lower_pending(kj_lowering *l)
{
  for (size_t i = 0; i < l->pending.count; i++) lower_function(l, l->pending.items[i]);
}

LLVMValueRef kj_lower_call(kj_lowering *l, const kj_texpr *expr)
{
  if (expr->instance->function->is_extern) return kj_call_extern(l, expr);
  return kj_is_inlined(l, expr->instance) ? inline_call(l, expr, false).value
                                          : call_function(l, expr);
}

kj_array_value kj_lower_array_call(kj_lowering *l, const kj_texpr *expr)
{
  return kj_is_inlined(l, expr->instance) ? inline_call(l, expr, true).array
                                          : kj_unpack_array(l, expr->type, call_function(l, expr));
}

/* The kernel's own frame, with its parameters bound to what the target made of the plan. */
static void bind_kernel_array(kj_lowering *l, const kj_tvar *param)
{
  kj_array_value array = { .type = param->type, .object = 1 + param->argument, .is_whole = true };
  const kj_type_info *info = kj_type(l->c->types, param->type);
  array.pointer = LLVMGetPoison(LLVMPointerTypeInContext(l->context, l->target->global_space));
  for (uint32_t d = 0; d < info->rank; d++)
    if (kj_is_unit_stride(info, d)) array.strides[d] = kj_const64(l, 1);
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kj_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument) continue;
    if (planned->parameter.kind == KJ_PARAMETER_POINTER) array.pointer = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_EXTENT)
      array.extents[planned->parameter.dimension] = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_STRIDE)
      array.strides[planned->parameter.dimension] = planned->value;
  }
  kj_set_array(l, param, &array);
}

/* A pointer of the host is to global memory, as far as the kernel's own code can tell; from here on
 * it is one that may be to any. */
static LLVMValueRef as_generic(kj_lowering *l, LLVMValueRef pointer)
{
  LLVMTypeRef global = LLVMPointerTypeInContext(l->context, l->target->global_space);
  if (LLVMTypeOf(pointer) == l->pointer && l->target->global_space)
    pointer = LLVMBuildAddrSpaceCast(
      l->builder,
      LLVMBuildIntToPtr(l->builder, LLVMBuildPtrToInt(l->builder, pointer, l->i64, ""), global, ""),
      l->pointer, "");
  return pointer;
}

/* From the planned parameters at *at on, in the order of plan_value. */
static LLVMValueRef bind_value(kj_lowering *l, kjit_type type, uint32_t argument, size_t *at)
{
  bool is_pointer = kj_type(l->c->types, type)->class_ == KJ_CLASS_POINTER;
  if (is_pointer || !kj_is_composed_type(l, type)) {
    while (l->parameters.items[*at].parameter.argument != argument ||
           l->parameters.items[*at].parameter.kind != KJ_PARAMETER_SCALAR)
      ++*at;
    LLVMValueRef value = kj_from_memory(l, type, l->parameters.items[(*at)++].value);
    return is_pointer ? as_generic(l, value) : value;
  }
  LLVMValueRef value = LLVMGetPoison(kj_register_type(l, type));
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++)
    value = kj_set_part(l, type, value,
                        bind_value(l, kj_get_part_info(l, type, i).type, argument, at), i);
  return value;
}

static bool is_planned(kj_lowering *l, uint32_t argument)
{
  for (size_t i = 0; i < l->parameters.count; i++)
    if (l->parameters.items[i].parameter.argument == argument &&
        l->parameters.items[i].parameter.kind == KJ_PARAMETER_SCALAR)
      return true;
  return false;
}

static void bind_kernel_scalar(kj_lowering *l, const kj_tvar *param)
{
  if (kj_is_composed_type(l, param->type)) {
    size_t at = 0;
    if (is_planned(l, param->argument))
      l->frame->states[param->index].value = bind_value(l, param->type, param->argument, &at);
    return;
  }
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kj_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument ||
        planned->parameter.kind != KJ_PARAMETER_SCALAR)
      continue;
    LLVMValueRef value = kj_from_memory(l, param->type, planned->value);
    l->frame->states[param->index].value = param->is_narrow ? kj_as_i32(l, value) : value;
  }
}

void kj_bind_kernel_parameters(kj_lowering *l)
{
  for (size_t i = 0; i < l->kernel->params.count; i++) {
    const kj_tvar *param = l->kernel->params.items[i];
    if (kj_is_array_type(l, param->type)) bind_kernel_array(l, param);
    else bind_kernel_scalar(l, param);
  }
}

void kj_enter_kernel(kj_lowering *l) { l->frame = make_frame(l, l->kernel); }

/* Calls. Functions are inlined as trees, so that a callee sees the constants and the arguments that the caller hands it; recursive ones, @noinline ones and
 * those that would make the code explode become LLVM functions. */
#include <string.h>

#include "lower/lower.h"

/* In expressions. A body that a call would not be smaller than is inlined past MOST_INLINED, but not without end: calls of calls double at every level. */
enum { MOST_INLINED = 40000, SMALL_BODY = 24, MOST_SMALL_INLINED = 200000 };

struct kj_call_plan {
  uint32_t size;
  bool is_recursive, is_visited;
  uint32_t return_count;
};

/* ---- the plan ---- */

typedef struct walker {
  kj_lowering *l;
  const kj_instance *target;
  struct kj_call_plan *plan;
  bool *is_reached;
  bool is_found;
} walker;

static void count_expr(void *data, kj_texpr **expr)
{
  (void)expr;
  ((walker *)data)->plan->size++;
}

static void count_stmt(void *data, kj_tstmt *stmt)
{
  struct kj_call_plan *plan = ((walker *)data)->plan;
  plan->size++;
  if (stmt->kind == KJ_TS_RETURN) plan->return_count++;
}

static void find_calls(void *data, kj_texpr **at);

static void reach(walker *w, kj_instance *instance)
{
  if (instance == w->target) w->is_found = true;
  if (w->is_reached[instance->id]) return;
  w->is_reached[instance->id] = true;
  kj_walk_tstmts(&instance->body, NULL, find_calls, w);
}

static void find_calls(void *data, kj_texpr **at)
{
  if ((*at)->kind == KJ_T_CALL) reach(data, (*at)->instance);
}

static bool is_recursive(kj_lowering *l, kj_instance *instance)
{
  walker w = { .l = l, .target = instance, .is_reached = KJ_NEW_ARRAY(l->c->arena, bool, l->c->instances.count) };
  kj_walk_tstmts(&instance->body, NULL, find_calls, &w);
  return w.is_found;
}

void kj_plan_calls(kj_lowering *l)
{
  size_t count = l->c->instances.count;
  l->calls = KJ_NEW_ARRAY(l->c->arena, struct kj_call_plan, count);
  l->functions = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, count);
  for (size_t i = 0; i < count; i++) {
    kj_instance *instance = l->c->instances.items[i];
    walker w = { .l = l, .plan = &l->calls[i] };
    kj_walk_tstmts(&instance->body, count_stmt, count_expr, &w);
    l->calls[i].is_recursive = i > 0 && is_recursive(l, instance);
  }
}

static bool is_inlined(kj_lowering *l, const kj_instance *instance)
{
  const struct kj_call_plan *plan = &l->calls[instance->id];
  if (plan->is_recursive || kj_get_attribute(&instance->function->attributes, KJ_ATTRIBUTE_NOINLINE)) return false;
  uint32_t most = plan->size <= SMALL_BODY ? MOST_SMALL_INLINED : MOST_INLINED;
  return l->inlined_size + plan->size <= most;
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
  frame->states = KJ_NEW_ARRAY(l->c->arena, kj_variable_state, instance->params.count + instance->locals.count + 1);
  return frame;
}

static void bind_argument(kj_lowering *l, kj_frame *frame, const kj_tvar *param, const kj_texpr *arg)
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

static const kj_tstmt *last_stmt(const kj_instance *instance) { return instance->body.count ? instance->body.items[instance->body.count - 1] : NULL; }

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
  if (!value) return (result){ 0 };
  return wants_array ? (result){ .array = kj_lower_array(l, value) } : (result){ .value = kj_lower_expr(l, value) };
}

static result lower_body_with_exits(kj_lowering *l, const kj_instance *instance, bool wants_array)
{
  bool has_result = instance->result != KJIT_VOID;
  LLVMTypeRef type = kj_register_type(l, instance->result);
  l->frame->leave = kj_new_block(l, "return");
  if (has_result) l->frame->result_slot = kj_alloca(l, type, "result");
  kj_lower_stmts(l, &instance->body);
  kj_branch(l, l->frame->leave);
  kj_move_to(l, l->frame->leave);
  if (!has_result) return (result){ 0 };
  LLVMValueRef value = LLVMBuildLoad2(l->builder, type, l->frame->result_slot, "");
  return wants_array ? (result){ .array = kj_unpack_array(l, instance->result, value) } : (result){ .value = value };
}

static result inline_call(kj_lowering *l, const kj_texpr *expr, bool wants_array)
{
  const kj_instance *instance = expr->instance;
  kj_frame *frame = make_frame(l, instance);
  for (size_t i = 0; i < expr->args.count; i++) bind_argument(l, frame, instance->params.items[i], expr->args.items[i]);
  kj_loop *loop = l->loop;
  frame->caller = l->frame;
  l->frame = frame;
  l->loop = NULL;
  l->inlined_size += l->calls[instance->id].size;
  result r = has_plain_return(l, instance) ? lower_plain_body(l, instance, wants_array) : lower_body_with_exits(l, instance, wants_array);
  l->frame = frame->caller;
  l->loop = loop;
  return r;
}

/* ---- functions ---- */

static bool takes_context(kj_lowering *l, const kj_instance *instance)
{
  return l->target->thread_context && (instance->may_fail || (l->target->context_has_positions && instance->uses_positions));
}

static LLVMTypeRef function_type(kj_lowering *l, const kj_instance *instance)
{
  LLVMTypeRef *params = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, instance->params.count + 1);
  unsigned count = 0;
  if (takes_context(l, instance)) params[count++] = l->pointer;
  for (size_t i = 0; i < instance->params.count; i++) params[count++] = kj_register_type(l, instance->params.items[i]->type);
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
  LLVMValueRef *args = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, expr->args.count + 1);
  unsigned count = 0;
  LLVMValueRef context = takes_context(l, instance) ? l->target->thread_context(l) : NULL;
  if (context) args[count++] = context;
  for (size_t i = 0; i < expr->args.count; i++) args[count++] = kj_lower_expr(l, expr->args.items[i]);
  LLVMValueRef function = function_of(l, instance);
  LLVMValueRef call = LLVMBuildCall2(l->builder, LLVMGlobalGetValueType(function), function, args, count, "");
  kj_add_call_attribute(l, call, "convergent");
  if (instance->may_fail && l->target->leave_after_call) l->target->leave_after_call(l, context);
  return instance->result == KJIT_VOID ? NULL : call;
}

static void bind_parameters(kj_lowering *l, const kj_instance *instance)
{
  unsigned at = takes_context(l, instance);
  if (at) l->target->use_thread_context(l, LLVMGetParam(l->function, 0));
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
  kj_begin_body(l);
  bind_parameters(l, instance);
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
  return is_inlined(l, expr->instance) ? inline_call(l, expr, false).value : call_function(l, expr);
}

kj_array_value kj_lower_array_call(kj_lowering *l, const kj_texpr *expr)
{
  return is_inlined(l, expr->instance) ? inline_call(l, expr, true).array : kj_unpack_array(l, expr->type, call_function(l, expr));
}

/* The kernel's own frame, with its parameters bound to what the target made of the plan. */
static void bind_kernel_array(kj_lowering *l, const kj_tvar *param)
{
  kj_array_value array = { .type = param->type, .object = 1 + param->argument };
  const kj_type_info *info = kj_type(l->c->types, param->type);
  array.pointer = LLVMGetPoison(LLVMPointerTypeInContext(l->context, l->target->global_space));
  for (uint32_t d = 0; d < info->rank; d++)
    if (kj_is_unit_stride(info, d)) array.strides[d] = kj_const64(l, 1);
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kj_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument) continue;
    if (planned->parameter.kind == KJ_PARAMETER_POINTER) array.pointer = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_EXTENT) array.extents[planned->parameter.dimension] = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_STRIDE) array.strides[planned->parameter.dimension] = planned->value;
  }
  kj_set_array(l, param, &array);
}

static void bind_kernel_scalar(kj_lowering *l, const kj_tvar *param)
{
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kj_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument) continue;
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

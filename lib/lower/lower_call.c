/* Lowers calls. Functions are inlined during lowering, so that a callee sees the constants and
 * arguments of its caller. Recursive functions, @noinline functions, and functions whose inlining
 * would make the code too large become LLVM functions. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"

/* Limits, in expressions. If the inlined code would exceed MOST_INLINED, kjit inlines only @inline
 * functions and bodies of at most SMALL_BODY, which are not larger than a call, up to
 * MOST_SMALL_INLINED. This second limit is needed because nested calls can double the size at every
 * level. */
enum { MOST_INLINED = 40000, SMALL_BODY = 24, MOST_SMALL_INLINED = 200000 };

struct kl_call_plan {
  uint32_t size;
  uint32_t return_count;
};

/* ---- the plan ---- */

static void count_expr(void *data, kt_expr **expr)
{
  (void)expr;
  ((struct kl_call_plan *)data)->size++;
}

static void count_stmt(void *data, kt_stmt *stmt)
{
  struct kl_call_plan *plan = data;
  plan->size++;
  if (stmt->kind == KJ_TS_RETURN) plan->return_count++;
}

void kl_plan_calls(kl_lowering *l)
{
  size_t count = l->c->instances.count;
  l->calls = KJ_NEW_ARRAY(l->c->arena, struct kl_call_plan, count);
  l->functions = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, count);
  for (size_t i = 0; i < count; i++) {
    kt_instance *instance = l->c->instances.items[i];
    l->has_recursion |= instance->is_recursive;
    kt_walk_tstmts(&instance->body, count_stmt, count_expr, &l->calls[i]);
  }
}

bool kl_is_inlined(kl_lowering *l, const kt_instance *instance)
{
  KJ_ASSERT(instance->id < l->c->instances.count && l->calls);
  const struct kl_call_plan *plan = &l->calls[instance->id];
  const ki_attributes *attributes = &instance->function->attributes;
  bool is_needed = kt_holds_local(l->c->types, instance->result),
       is_asked = is_needed || ki_get_attribute(attributes, KJ_ATTRIBUTE_INLINE);
  /* A function that returns a local array must be inlined, because the array would no longer exist
   * after a call. Type inference rejects such a function if it is recursive. */
  KJ_ASSERT(!(is_needed && instance->is_recursive));
  if (instance->is_recursive || (!is_needed && ki_get_attribute(attributes, KJ_ATTRIBUTE_NOINLINE)))
    return false;
  uint32_t most = is_asked || plan->size <= SMALL_BODY ? MOST_SMALL_INLINED : MOST_INLINED;
  bool fits = l->inlined_size + plan->size <= most;
  if (is_asked && !fits)
    kt_fail(
      l->c, instance->function->decl->location, KJIT_ERROR_UNSUPPORTED,
      "`%s` %s, but inlining it would exceed the limit of %d inlined statements and expressions",
      instance->function->decl->name,
      is_needed ? "returns a local array and therefore must be inlined" : "is @inline",
      MOST_SMALL_INLINED);
  return fits;
}

bool kl_is_recursive(kl_lowering *l, const kt_instance *instance)
{
  (void)l;
  return instance->is_recursive;
}

/* ---- inlining ---- */

typedef struct result {
  LLVMValueRef value;
  kl_array_value array;
} result;

static kl_frame *make_frame(kl_lowering *l, const kt_instance *instance)
{
  kl_frame *frame = KJ_NEW(l->c->arena, kl_frame);
  frame->instance = instance;
  frame->states = KJ_NEW_ARRAY(l->c->arena, kl_variable_state,
                               instance->params.count + instance->locals.count + 1);
  return frame;
}

static void bind_argument(kl_lowering *l, kl_frame *frame, const kt_var *param, const kt_expr *arg)
{
  kl_variable_state *state = &frame->states[param->index];
  if (kl_is_array_type(l, param->type)) {
    state->array = KJ_NEW(l->c->arena, kl_array_value);
    *state->array = kl_lower_array(l, arg);
  } else if (param->is_narrow) {
    state->value = kl_lower_index32(l, arg);
  } else {
    state->value = kl_lower_expr(l, arg);
  }
}

static const kt_stmt *last_stmt(const kt_instance *instance)
{
  return instance->body.count ? instance->body.items[instance->body.count - 1] : NULL;
}

/* Returns whether the last statement is the only return. The result then needs no memory. */
static bool has_plain_return(kl_lowering *l, const kt_instance *instance)
{
  const kt_stmt *last = last_stmt(instance);
  return last && last->kind == KJ_TS_RETURN && l->calls[instance->id].return_count == 1;
}

static result lower_plain_body(kl_lowering *l, const kt_instance *instance, bool wants_array)
{
  KJ_ASSERT(instance->body.count);
  kt_stmts before = instance->body;
  before.count--;
  kl_lower_stmts(l, &before);
  const kt_expr *value = last_stmt(instance)->value;
  kl_debug_statement(l, last_stmt(instance)->location);
  if (!value) return (result){ 0 };
  return wants_array ? (result){ .array = kl_lower_array(l, value) }
                     : (result){ .value = kl_lower_expr(l, value) };
}

static result lower_body_with_exits(kl_lowering *l, const kt_instance *instance, bool wants_array)
{
  bool has_result = instance->result != KJIT_VOID;
  LLVMTypeRef type = kl_register_type(l, instance->result);
  if (!l->frame->leave) l->frame->leave = kl_new_block(l, "return");
  if (has_result) l->frame->result_alloca = kl_alloca(l, type, "result");
  kl_lower_stmts(l, &instance->body);
  kl_go_on_in(l, l->frame->leave);
  if (!has_result) return (result){ 0 };
  LLVMValueRef value = kl_load(l, type, l->frame->result_alloca);
  return wants_array ? (result){ .array = kl_unpack_array(l, instance->result, value) }
                     : (result){ .value = value };
}

static result inline_call(kl_lowering *l, const kt_expr *expr, bool wants_array)
{
  KJ_ASSERT(expr->args.count == expr->instance->params.count);
  const kt_instance *instance = expr->instance;
  kl_frame *frame = make_frame(l, instance);
  for (size_t i = 0; i < expr->args.count; i++)
    bind_argument(l, frame, instance->params.items[i], expr->args.items[i]);
  kl_loop *loop = l->loop;
  frame->caller = l->frame;
  LLVMMetadataRef place = kl_begin_debug_inline(l, frame, expr->location);
  l->frame = frame;
  l->loop = NULL;
  l->inlined_size += l->calls[instance->id].size;
  kl_debug_parameters(l);
  result r = has_plain_return(l, instance) ? lower_plain_body(l, instance, wants_array)
                                           : lower_body_with_exits(l, instance, wants_array);
  l->frame = frame->caller;
  kl_end_debug_inline(l, place);
  l->loop = loop;
  return r;
}

/* ---- functions ---- */

static bool takes_context(kl_lowering *l, const kt_instance *instance)
{
  return l->target->thread_context &&
         (instance->may_fail || instance->polls ||
          (l->target->context_has_positions && instance->uses_positions));
}

/* Returns whether the function checks the stack's depth. This needs a failure record, because a
 * thread fails if its recursion is too deep. Functions that call a recursive function, directly or
 * indirectly, pass the limit on, so that all calls of the recursive function have the same
 * limit. */
static bool bounds_stack(kl_lowering *l, const kt_instance *instance)
{
  return (instance->is_recursive || instance->reaches_recursion) && l->kernel->may_fail;
}

uint32_t kl_recursion_bytes(const kl_lowering *l)
{
  bool has_fibers = l->c->code->cpu_fibers != KJ_FIBERS_NONE;
  return has_fibers ? l->target->fiber_recursion_bytes : l->target->recursion_bytes;
}

/* Returns the lowest address to which the stack may grow. Functions pass this limit on to their
 * callees. */
static LLVMValueRef make_stack_limit(kl_lowering *l)
{
  if (l->stack_limit) return l->stack_limit;
  return kl_sub(l, l->target->stack_pointer(l), kl_const64(l, kl_recursion_bytes(l)));
}

static void check_stack(kl_lowering *l, const kt_instance *instance)
{
  KJ_ASSERT(l->stack_limit);
  const ki_decl *decl = instance->function->decl;
  const char *message =
    kj_format(l->c->arena,
              "the recursion of `%s` is too deep: its calls need more than %u KiB of stack",
              decl->name, kl_recursion_bytes(l) / 1024);
  kl_failure failure = { .kind = KJ_FAILURE_RECURSION,
                         .location = decl->location,
                         .message = message };
  kl_fail_if(l, kl_icmp(l, LLVMIntSLT, l->target->stack_pointer(l), l->stack_limit), &failure);
}

static LLVMTypeRef function_type(kl_lowering *l, const kt_instance *instance)
{
  LLVMTypeRef *params = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, instance->params.count + 4);
  unsigned count = 0;
  if (takes_context(l, instance)) params[count++] = l->pointer;
  if (bounds_stack(l, instance)) params[count++] = l->i64;
  if (instance->polls) {
    params[count++] = LLVMPointerTypeInContext(l->context, l->target->global_space);
    params[count++] = l->i64;
  }
  for (size_t i = 0; i < instance->params.count; i++)
    params[count++] = kl_register_type(l, instance->params.items[i]->type);
  return LLVMFunctionType(kl_register_type(l, instance->result), params, count, false);
}

/* Returns the symbol of a called func. The unchecked version of a kernel has its own copies of the
 * functions in the same module, so these copies need other symbols. A C function that is recursive
 * also needs a second symbol: its own name is the symbol of the function with C's calling
 * convention. */
static const char *symbol_of(const kl_lowering *l, const kt_instance *instance)
{
  if (l->checked) return kj_format(l->c->arena, "%s.unchecked", instance->symbol);
  if (instance == l->kernel) return kj_format(l->c->arena, "%s$func", instance->symbol);
  return instance->symbol;
}

static LLVMValueRef function_of(kl_lowering *l, const kt_instance *instance)
{
  KJ_ASSERT(instance->id < l->c->instances.count && !instance->function->is_extern);
  LLVMValueRef *function = &l->functions[instance->id];
  if (*function) return *function;
  *function = kl_add_function(l, symbol_of(l, instance), function_type(l, instance));
  LLVMSetLinkage(*function, LLVMInternalLinkage);
  kl_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  kl_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "convergent", 0);
  kl_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  if (l->target->finish_function) l->target->finish_function(l, *function);
  KJ_PUSH(l->c->arena, &l->pending, instance);
  return *function;
}

static LLVMValueRef call_function(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == expr->instance->params.count);
  const kt_instance *instance = expr->instance;
  LLVMValueRef *args = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, expr->args.count + 4);
  unsigned count = 0;
  LLVMValueRef context = takes_context(l, instance) ? l->target->thread_context(l) : NULL;
  if (context) args[count++] = context;
  if (bounds_stack(l, instance)) args[count++] = make_stack_limit(l);
  if (instance->polls) {
    args[count++] = l->interrupt_word;
    args[count++] = l->interrupt_number;
  }
  for (size_t i = 0; i < expr->args.count; i++)
    args[count++] = kl_lower_expr(l, expr->args.items[i]);
  LLVMValueRef function = function_of(l, instance);
  LLVMValueRef call = kl_call(l, LLVMGlobalGetValueType(function), function, args, count);
  kl_add_call_attribute(l, call, "convergent");
  if (instance->may_fail && l->target->leave_after_call) l->target->leave_after_call(l, context);
  return instance->result == KJIT_VOID ? NULL : call;
}

static void bind_parameters(kl_lowering *l, const kt_instance *instance)
{
  unsigned at = takes_context(l, instance);
  if (at) l->target->use_thread_context(l, LLVMGetParam(l->function, 0));
  if (bounds_stack(l, instance)) l->stack_limit = LLVMGetParam(l->function, at++);
  if (instance->polls) {
    l->interrupt_word = LLVMGetParam(l->function, at++);
    l->interrupt_number = LLVMGetParam(l->function, at++);
  }
  for (size_t i = 0; i < instance->params.count; i++) {
    const kt_var *param = instance->params.items[i];
    LLVMValueRef value = LLVMGetParam(l->function, at++);
    l->frame->states[param->index].value = param->is_narrow ? kl_as_i32(l, value) : value;
  }
}

static void lower_function(kl_lowering *l, const kt_instance *instance)
{
  KJ_ASSERT(l->functions[instance->id]);
  l->function = l->functions[instance->id];
  l->frame = make_frame(l, instance);
  l->loop = NULL;
  l->parallel_loop = l->iteration_scope = NULL;
  l->vector_variable = NULL;
  l->vector_loads = NULL;
  l->stack_limit = NULL;
  kl_begin_body(l);
  bind_parameters(l, instance);
  l->frame->leave = kl_new_block(l, "return");
  if (l->stack_limit && instance->is_recursive) check_stack(l, instance);
  kl_poll_entry(l, instance);
  kl_debug_parameters(l);
  result r = lower_body_with_exits(l, instance, false);
  if (r.value) LLVMBuildRet(kl_next(l), r.value);
  else LLVMBuildRetVoid(kl_next(l));
}

/* Lowers the functions' bodies in l->pending. Lowering a body can append further functions to this
 * list. */
void kl_lower_pending(kl_lowering *l)
{
  for (size_t i = 0; i < l->pending.count; i++) lower_function(l, l->pending.items[i]);
}

LLVMValueRef kl_lower_call(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CALL);
  if (expr->instance->function->is_extern) return kl_call_extern(l, expr);
  return kl_is_inlined(l, expr->instance) ? inline_call(l, expr, false).value
                                          : call_function(l, expr);
}

kl_array_value kl_lower_array_call(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CALL && kl_is_array_type(l, expr->type));
  return kl_is_inlined(l, expr->instance) ? inline_call(l, expr, true).array
                                          : kl_unpack_array(l, expr->type, call_function(l, expr));
}

/* Binds an array parameter of the kernel to the parameter values that the target has created. */
static void bind_kernel_array(kl_lowering *l, const kt_var *param)
{
  KJ_ASSERT(param->kind == KJ_V_PARAM);
  kl_array_value array = { .type = param->type, .object = 1 + param->argument, .is_whole = true };
  const ki_type_info *info = kl_type_info(l, param->type);
  array.pointer = LLVMGetPoison(LLVMPointerTypeInContext(l->context, l->target->global_space));
  for (uint32_t d = 0; d < info->rank; d++)
    if (kl_is_unit_stride(info, d)) array.strides[d] = kl_const64(l, 1);
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kl_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument) continue;
    if (planned->parameter.kind == KJ_PARAMETER_POINTER) array.pointer = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_EXTENT)
      array.extents[planned->parameter.dimension] = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_STRIDE)
      array.strides[planned->parameter.dimension] = planned->value;
  }
  kl_set_array(l, param, &array);
}

/* Casts a pointer argument to the generic address space. Arguments point to global memory, but
 * after the cast the pointer can be used like a pointer to any memory. */
static LLVMValueRef as_generic(kl_lowering *l, LLVMValueRef pointer)
{
  LLVMTypeRef global = LLVMPointerTypeInContext(l->context, l->target->global_space);
  if (LLVMTypeOf(pointer) == l->pointer && l->target->global_space)
    pointer =
      kl_addrspacecast(l, kl_inttoptr(l, kl_ptrtoint(l, pointer, l->i64), global), l->pointer);
  return pointer;
}

/* Binds a value to the planned parameters, starting at *at, in the order of plan_value. */
static LLVMValueRef bind_value(kl_lowering *l, kjit_type type, uint32_t argument, size_t *at)
{
  bool is_pointer = kl_type_info(l, type)->class_ == KJ_CLASS_POINTER;
  if (is_pointer || !kl_is_composed_type(l, type)) {
    while (l->parameters.items[*at].parameter.argument != argument ||
           l->parameters.items[*at].parameter.kind != KJ_PARAMETER_SCALAR) {
      ++*at;
      KJ_ASSERT(*at < l->parameters.count);
    }
    LLVMValueRef value = kl_from_memory(l, type, l->parameters.items[(*at)++].value);
    return is_pointer ? as_generic(l, value) : value;
  }
  LLVMValueRef value = LLVMGetPoison(kl_register_type(l, type));
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++)
    value = kl_set_part(l, type, value,
                        bind_value(l, kl_get_part_info(l, type, i).type, argument, at), i);
  return value;
}

static bool is_planned(kl_lowering *l, uint32_t argument)
{
  for (size_t i = 0; i < l->parameters.count; i++)
    if (l->parameters.items[i].parameter.argument == argument &&
        l->parameters.items[i].parameter.kind == KJ_PARAMETER_SCALAR)
      return true;
  return false;
}

static void bind_kernel_scalar(kl_lowering *l, const kt_var *param)
{
  KJ_ASSERT(param->kind == KJ_V_PARAM);
  if (kl_is_composed_type(l, param->type)) {
    size_t at = 0;
    if (is_planned(l, param->argument))
      l->frame->states[param->index].value = bind_value(l, param->type, param->argument, &at);
    return;
  }
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kl_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.argument != param->argument ||
        planned->parameter.kind != KJ_PARAMETER_SCALAR)
      continue;
    LLVMValueRef value = kl_from_memory(l, param->type, planned->value);
    l->frame->states[param->index].value = param->is_narrow ? kl_as_i32(l, value) : value;
  }
}

void kl_bind_kernel_parameters(kl_lowering *l)
{
  for (size_t i = 0; i < l->kernel->params.count; i++) {
    const kt_var *param = l->kernel->params.items[i];
    if (kl_is_array_type(l, param->type)) bind_kernel_array(l, param);
    else bind_kernel_scalar(l, param);
  }
}

void kl_enter_kernel(kl_lowering *l) { l->frame = make_frame(l, l->kernel); }

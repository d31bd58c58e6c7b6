/* The whole of a lowering: parameters, kernel, functions. */
#include <llvm-c/DebugInfo.h>

#include "lower/debug.h"

const kj_lower_builtin kj_lower_table[KJ_BUILTIN_COUNT] = {
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  [KJ_BUILTIN_##id] = kj_lower_##lower,
#include "ir/builtins.def"
#undef X
};

/* Built-ins that inference folds away. */
LLVMValueRef kj_lower_none(kj_lowering *l, const kj_texpr *expr)
{
  kj_fail(l->c, expr->location, KJIT_ERROR_COMPILE, "internal error: `%s` reached lowering",
          expr->builtin->name);
}

_Noreturn void kj_lower_unsupported(kj_lowering *l, kj_location location, const char *what)
{
  kj_fail(l->c, location, KJIT_ERROR_UNSUPPORTED, "%s is not supported on %s", what,
          l->target->name);
}

static void set_types(kj_lowering *l)
{
  l->i1 = LLVMInt1TypeInContext(l->context);
  l->i8 = LLVMInt8TypeInContext(l->context);
  l->i16 = LLVMInt16TypeInContext(l->context);
  l->i32 = LLVMInt32TypeInContext(l->context);
  l->i64 = LLVMInt64TypeInContext(l->context);
  l->f16 = LLVMHalfTypeInContext(l->context);
  l->f32 = LLVMFloatTypeInContext(l->context);
  l->f64 = LLVMDoubleTypeInContext(l->context);
  l->void_ = LLVMVoidTypeInContext(l->context);
  l->pointer = LLVMPointerTypeInContext(l->context, 0);
}

void kj_begin_body(kj_lowering *l)
{
  l->entry = kj_new_block(l, "entry");
  LLVMBasicBlockRef start = kj_new_block(l, "start");
  kj_move_to(l, l->entry);
  LLVMSetCurrentDebugLocation2(l->builder, NULL); /* it would be one of another function */
  l->alloca_end = LLVMBuildBr(l->builder, start);
  kj_move_to(l, start);
  kj_begin_debug_function(l);
}

LLVMValueRef kj_constant_pointer(kj_lowering *l, const kj_tvar *var)
{
  if (var->lowered) return var->lowered;
  const kj_type_info *info = kj_type(l->c->types, var->type);
  LLVMTypeRef element = kj_memory_type(l, info->element);
  uint64_t count = kj_element_count(info);
  if (!count) count = 1; /* ptxas takes no variable without bytes */
  uint32_t size = kj_scalar_bytes(l, info->element);
  uint64_t limit = l->target->most_constant_bytes;
  l->constant_bytes += (count * size + 15) / 16 * 16;
  if (limit && l->constant_bytes > limit)
    kj_fail(l->c, var->location, KJIT_ERROR_UNSUPPORTED,
            "the constant arrays up to `%s` take %llu bytes; %s has %llu", var->name,
            (unsigned long long)l->constant_bytes, l->target->name, (unsigned long long)limit);
  bool is_composed = kj_is_composed_type(l, info->element); /* bytes to LLVM */
  if (is_composed) element = l->i8;
  LLVMValueRef data =
    element == l->f16 ? NULL : LLVMConstDataArray(element, var->data, count * size);
  if (!data) { /* LLVM's C API takes no half data: the same bits as i16 */
    element = l->i16;
    data = LLVMConstDataArray(element, var->data, count * size);
  }
  LLVMValueRef global =
    LLVMAddGlobalInAddressSpace(l->module, LLVMTypeOf(data), var->name, l->target->constant_space);
  LLVMSetLinkage(global, LLVMInternalLinkage);
  LLVMSetGlobalConstant(global, true);
  LLVMSetInitializer(global, data);
  uint32_t alignment = kj_type_alignment(l, info->element);
  LLVMSetAlignment(global, alignment > 16 ? alignment : 16);
  ((kj_tvar *)var)->lowered = global;
  return global;
}

static void lower_kernel(kj_lowering *l)
{
  l->target->begin_kernel(l);
  kj_bind_hidden_parameters(l);
  kj_bind_kernel_parameters(l);
  kj_assert_arguments(l);
  kj_debug_parameters(l);
  l->frame->leave = kj_new_block(l, "leave");
  if (l->target->begin_block) l->target->begin_block(l);
  kj_lower_stmts(l, &l->kernel->body);
  kj_branch(l, l->frame->leave);
  kj_move_to(l, l->frame->leave);
  l->target->end_kernel(l);
}

/* A fast version is called with the other's parameters, and adds to its tables of failures and
 * lines. */
static void take_plan(kj_lowering *l)
{
  kj_lowering *like = l->like;
  for (size_t i = 0; i < like->parameters.count; i++)
    KJ_PUSH(l->c->arena, &l->parameters, like->parameters.items[i]);
  l->parameter_bytes = like->parameter_bytes;
  l->uses = like->uses;
  l->has_print = like->has_print;
  l->failures = like->failures;
  l->prints = like->prints;
  l->failure_count = like->failure_count;
  l->print_count = like->print_count;
  l->failure_writer = like->failure_writer;
  l->print_function = like->print_function;
  like->failures = like->prints = (kj_buffer){ 0 };
}

static void plan(kj_lowering *l)
{
  if (l->like) take_plan(l);
  else kj_plan_parameters(l);
  kj_plan_shared(l, l->target->most_static_shared_bytes ? l->target->most_static_shared_bytes
                                                        : UINT64_MAX);
  if (l->like) return;
  kj_plan_failures(l);
  kj_plan_prints(l);
  kj_check_parameters(l);
}

void kj_give_tables_back(kj_lowering *l)
{
  l->like->failures = l->failures;
  l->like->prints = l->prints;
  l->failures = l->prints = (kj_buffer){ 0 };
}

void kj_lower(kj_lowering *l)
{
  l->builder = LLVMCreateBuilderInContext(l->context);
  l->kernel = l->c->instances.items[0];
  set_types(l);
  plan(l);
  kj_plan_calls(l);
  kj_begin_debug(l);
  kj_enter_kernel(l);
  if (l->c->request->symbol) kj_lower_entry(l);
  else lower_kernel(l);
  kj_lower_pending(l);
  kj_finish_debug(l);
}

void kj_end_lowering(kj_lowering *l)
{
  kj_end_debug(l);
  if (l->builder) LLVMDisposeBuilder(l->builder);
  l->builder = NULL;
  kj_free_buffer(&l->failures);
  kj_free_buffer(&l->prints);
}

/* Lowers a whole module: the parameters, the kernel and the functions. */
#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"
#include "native/functions.h"

const kl_lower_builtin kl_lower_table[KJ_BUILTIN_COUNT] = {
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  [KJ_BUILTIN_##id] = kl_lower_##lower,
#include "ir/builtins.def"
#undef X
};

/* Reports an error. This is the lowering of built-ins that inference folds, which must not reach
 * lowering. */
LLVMValueRef kl_lower_none(kl_lowering *l, const kt_expr *expr)
{
  kt_fail(l->c, expr->location, KJIT_ERROR_COMPILE, "internal error: `%s` reached lowering",
          expr->builtin->name);
}

_Noreturn void kl_lower_unsupported(kl_lowering *l, kj_location location, const char *what)
{
  kt_fail(l->c, location, KJIT_ERROR_UNSUPPORTED, "%s is not supported on %s", what,
          l->target->name);
}

static void set_types(kl_lowering *l)
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

void kl_begin_body(kl_lowering *l)
{
  KJ_ASSERT(l->function);
  l->entry = kl_new_block(l, "entry");
  LLVMBasicBlockRef start = kl_new_block(l, "start");
  kl_move_to(l, l->entry);
  /* the location is reset, because it belongs to another function */
  LLVMSetCurrentDebugLocation2(l->builder, NULL);
  l->alloca_end = kl_br(l, start);
  kl_move_to(l, start);
  kl_begin_debug_function(l);
}

static LLVMValueRef define_constant(kl_lowering *l, const kt_var *var, uint64_t bytes)
{
  const ki_type_info *info = kl_type_info(l, var->type);
  /* an aggregate is an array of bytes for LLVM */
  LLVMTypeRef element =
    kl_is_composed_type(l, info->element) ? l->i8 : kl_memory_type(l, info->element);
  /* LLVM's C API does not accept data of type half, so the data is passed as i16 */
  LLVMValueRef data = LLVMConstDataArray(element == l->f16 ? l->i16 : element, var->data, bytes);
  LLVMValueRef global =
    kl_add_variable(l, var->name, "const", LLVMTypeOf(data), l->target->constant_space);
  LLVMSetInitializer(global, data);
  LLVMSetGlobalConstant(global, true);
  uint32_t alignment = kl_type_alignment(l, info->element);
  LLVMSetAlignment(global, alignment > 16 ? alignment : 16);
  return global;
}

static _Noreturn void refuse_name(kl_lowering *l, const kt_var *var, const char *other)
{
  kt_fail(l->c, var->location, KJIT_ERROR_NAME,
          "extern constant `%s` has the same name as %s, so the program that loads the code could "
          "not tell the two apart; rename one of them",
          var->name, other);
}

/* Declares an extern constant, which is defined by the program that loads the code. All functions
 * of a compilation use the same declaration. */
static LLVMValueRef declare_outside(kl_lowering *l, const kt_var *var, uint64_t bytes)
{
  LLVMTypeRef type = LLVMArrayType2(l->i8, bytes);
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, var->name);
  if (known && LLVMGlobalGetValueType(known) != type) refuse_name(l, var, "one of another size");
  if (known) return known;
  if (LLVMGetNamedFunction(l->module, var->name)) refuse_name(l, var, "a function of the code");
  if (kn_is_library_name(var->name)) refuse_name(l, var, "a function that generated code calls");
  LLVMValueRef variable =
    LLVMAddGlobalInAddressSpace(l->module, type, var->name, l->target->constant_space);
  if (l->target->defines_outside) LLVMSetInitializer(variable, LLVMConstNull(type));
  LLVMSetExternallyInitialized(variable, l->target->defines_outside);
  LLVMSetGlobalConstant(variable, true);
  LLVMSetAlignment(variable, kl_type_alignment(l, kl_type_info(l, var->type)->element));
  return variable;
}

LLVMValueRef kl_constant_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_CONST);
  if (var->lowered) return var->lowered;
  const ki_type_info *info = kl_type_info(l, var->type);
  uint64_t count = ki_element_count(info);
  if (!count) count = 1; /* ptxas rejects a variable of size 0 */
  uint64_t bytes = count * kl_scalar_bytes(l, info->element),
           limit = l->target->most_constant_bytes;
  l->constant_bytes += (bytes + 15) / 16 * 16;
  if (limit && l->constant_bytes > limit)
    kt_fail(l->c, var->location, KJIT_ERROR_UNSUPPORTED,
            "the constant arrays up to `%s` take %llu bytes; %s has %llu", var->name,
            (unsigned long long)l->constant_bytes, l->target->name, (unsigned long long)limit);
  LLVMValueRef global = var->data ? define_constant(l, var, bytes) : declare_outside(l, var, bytes);
  ((kt_var *)var)->lowered = global;
  return global;
}

static void lower_kernel(kl_lowering *l)
{
  l->target->begin_kernel(l);
  kl_bind_hidden_parameters(l);
  kl_bind_kernel_parameters(l);
  kl_assert_arguments(l);
  kl_debug_parameters(l);
  l->frame->leave = kl_new_block(l, "leave");
  if (l->target->begin_block) l->target->begin_block(l);
  kl_lower_stmts(l, &l->kernel->body);
  kl_go_on_in(l, l->frame->leave);
  l->target->end_kernel(l);
}

/* Copies the plan of the checked version to the unchecked version. The unchecked version has the
 * same parameters, and adds entries to the same tables of failures and printed lines. */
static void take_plan(kl_lowering *l)
{
  KJ_ASSERT(l->checked);
  kl_lowering *checked = l->checked;
  for (size_t i = 0; i < checked->parameters.count; i++)
    KJ_PUSH(l->c->arena, &l->parameters, checked->parameters.items[i]);
  l->c->code->parameter_bytes = checked->c->code->parameter_bytes;
  l->uses = checked->uses;
  l->has_print = checked->has_print;
  l->failures = checked->failures;
  l->failure_texts = checked->failure_texts;
  l->prints = checked->prints;
  l->failure_count = checked->failure_count;
  l->print_count = checked->print_count;
  l->failure_writer = checked->failure_writer;
  l->print_function = checked->print_function;
  checked->failures = checked->failure_texts = checked->prints = (kj_buffer){ 0 };
}

static void plan(kl_lowering *l)
{
  if (l->checked) take_plan(l);
  else kl_plan_parameters(l);
  kl_plan_shared(l, l->target->most_static_shared_bytes ? l->target->most_static_shared_bytes
                                                        : UINT64_MAX);
  if (l->checked) return;
  kl_plan_failures(l);
  kl_plan_prints(l);
  kl_plan_interrupts(l);
  kl_check_parameters(l);
}

void kl_give_tables_back(kl_lowering *l)
{
  KJ_ASSERT(l->checked);
  l->checked->failures = l->failures;
  l->checked->failure_texts = l->failure_texts;
  l->checked->prints = l->prints;
  l->failures = l->failure_texts = l->prints = (kj_buffer){ 0 };
}

void kl_lower(kl_lowering *l)
{
  KJ_ASSERT(!l->builder && l->module);
  l->builder = LLVMCreateBuilderInContext(l->context);
  l->kernel = l->c->instances.items[0];
  l->copies = 1;
  kt_begin_step(l->c, "lowering to LLVM IR");
  set_types(l);
  plan(l);
  kl_plan_calls(l);
  kl_begin_debug(l);
  kl_enter_kernel(l);
  if (l->c->request->symbol) kl_lower_entry(l);
  else lower_kernel(l);
  kl_lower_pending(l);
  kl_finish_debug(l);
}

/* ---- information for the runtime ---- */

static char *describe_facts(const kt_compilation *c)
{
  kj_buffer buffer = { 0 };
  const struct {
    bool is_used;
    const char *name;
  } facts[] = {
    { c->used_aligned16, "aligned16" }, { c->used_rows_aligned16, "rows_aligned16" },
    { c->used_offsets32, "offsets32" }, { c->used_grid32, "grid32" },
    { c->used_disjoint, "disjoint" },   { c->used_same, "same" },
    { c->used_large, "large" },
  };
  kj_append_text(&buffer, "");
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (facts[i].is_used)
      kj_append_format(&buffer, "%s%s", buffer.length ? " " : "", facts[i].name);
  return kj_take_text(&buffer);
}

static bool has_local_array(const kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    for (size_t k = 0; k < c->instances.items[i]->locals.count; k++)
      if (c->instances.items[i]->locals.items[k]->kind == KJ_V_LOCAL) return true;
  return false;
}

/* Returns the number of planned parameters, not counting the parameters that the compiler
 * appends. */
static size_t count_planned(const kl_lowering *l)
{
  size_t count = l->parameters.count;
  while (count && l->parameters.items[count - 1].parameter.kind >= KJ_PARAMETER_FAILURE) count--;
  return count;
}

/* Returns the total size of the local arrays, each counted once. This is an upper bound for the
 * frames of functions that are not recursive. */
static uint32_t measure_locals(kl_lowering *l)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < l->c->instances.count; i++) {
    const kt_vars *locals = &l->c->instances.items[i]->locals;
    for (size_t k = 0; k < locals->count; k++) {
      if (locals->items[k]->kind != KJ_V_LOCAL) continue;
      const ki_type_info *info = kl_type_info(l, locals->items[k]->type);
      bytes += (ki_element_count(info) * kl_scalar_bytes(l, info->element) + 15) / 16 * 16;
    }
  }
  return (uint32_t)((bytes + 1023) / 1024 * 1024);
}

static char *take_table(kl_lowering *l, kj_buffer *table)
{
  kj_append_text(table, "");
  char *text = kj_take_text(table);
  if (!text) longjmp(*l->c->on_failure, KJ_JUMP_MEMORY);
  return text;
}

static void take_failures(kl_lowering *l, kj_code *code)
{
  code->can_fail = true;
  code->failure_count = (uint32_t)(l->failures.length / sizeof *code->failures);
  code->failures = (kj_failure_site *)(void *)take_table(l, &l->failures);
  code->failure_texts = take_table(l, &l->failure_texts);
}

void kl_finish_code(kl_lowering *l)
{
  kj_code *code = l->c->code;
  size_t count = count_planned(l);
  code->parameters = malloc((count + 1) * sizeof *code->parameters);
  code->facts = describe_facts(l->c);
  code->entry = strdup(l->kernel->symbol);
  if (!code->parameters || !code->facts || !code->entry) longjmp(*l->c->on_failure, KJ_JUMP_MEMORY);
  for (size_t i = 0; i < count; i++) code->parameters[i] = l->parameters.items[i].parameter;
  code->parameter_count = (uint32_t)count;
  if (kl_has_record(l)) take_failures(l, code);
  if (l->has_print) code->prints = take_table(l, &l->prints);
  code->uses_local = l->has_print || l->failure_count || l->pending.count || has_local_array(l->c);
  code->stack_bytes = l->has_recursion ? KJ_STACK_BYTES + measure_locals(l) : 0;
}

void kl_end_lowering(kl_lowering *l)
{
  kl_end_debug(l);
  if (l->builder) LLVMDisposeBuilder(l->builder);
  l->builder = NULL;
  kj_free_buffer(&l->failures);
  kj_free_buffer(&l->failure_texts);
  kj_free_buffer(&l->prints);
}

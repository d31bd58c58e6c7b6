/* CPU: what functions that stay functions are told of the thread that calls them, and how they tell
 * that it has failed. */
#include "lower/cpu.h"

enum { NUMBERS_FIELD, GRID_FIELD, SCRATCH_FIELD, RECORD_FIELD, LEFT_FIELD, SINK_FIELD };
enum {
  CONTEXT_THREAD = 0,
  CONTEXT_RANK = 3,
  CONTEXT_BLOCK = 4,
  CONTEXT_GRID = 7,
  CONTEXT_NUMBERS = 10
};

static LLVMTypeRef context_type(kj_lowering *l)
{
  kj_cpu_state *s = kj_cpu(l);
  LLVMTypeRef fields[] = {
    LLVMArrayType2(l->i32, CONTEXT_NUMBERS), l->pointer, l->pointer, l->pointer, l->i32, l->pointer
  };
  if (!s->context_type)
    s->context_type =
      LLVMStructTypeInContext(l->context, fields, sizeof fields / sizeof *fields, false);
  return s->context_type;
}

static LLVMValueRef context_field(kj_lowering *l, LLVMValueRef context, unsigned field,
                                  uint64_t number)
{
  LLVMValueRef path[] = { kj_const32(l, 0), kj_const32(l, field), kj_const32(l, (int64_t)number) };
  return LLVMBuildInBoundsGEP2(l->builder, context_type(l), context, path,
                               field == NUMBERS_FIELD ? 3 : 2, "");
}

static void context_numbers(kj_cpu_state *s, LLVMValueRef **numbers)
{
  for (int d = 0; d < 3; d++) {
    numbers[CONTEXT_THREAD + d] = &s->thread[d];
    numbers[CONTEXT_BLOCK + d] = &s->block_index[d];
    numbers[CONTEXT_GRID + d] = &s->grid[d];
  }
  numbers[CONTEXT_RANK] = &s->rank;
}

LLVMValueRef kj_cpu_thread_context(kj_lowering *l)
{
  kj_cpu_state *s = kj_cpu(l);
  /* a function's own: nothing in it differs for what the function calls */
  if (s->context) return s->context;
  LLVMValueRef context = kj_alloca(l, context_type(l), "context"), *numbers[CONTEXT_NUMBERS];
  context_numbers(s, numbers);
  for (uint64_t i = 0; i < CONTEXT_NUMBERS; i++)
    if (*numbers[i])
      LLVMBuildStore(l->builder, *numbers[i], context_field(l, context, NUMBERS_FIELD, i));
  LLVMBuildStore(l->builder, s->grid_pointer, context_field(l, context, GRID_FIELD, 0));
  LLVMBuildStore(l->builder, s->scratch, context_field(l, context, SCRATCH_FIELD, 0));
  if (l->print_sink)
    LLVMBuildStore(l->builder, l->print_sink, context_field(l, context, SINK_FIELD, 0));
  if (!l->kernel->may_fail) return context;
  if (l->failure_record)
    LLVMBuildStore(l->builder, l->failure_record, context_field(l, context, RECORD_FIELD, 0));
  LLVMBuildStore(l->builder, kj_const32(l, 0), context_field(l, context, LEFT_FIELD, 0));
  return context;
}

void kj_cpu_use_thread_context(kj_lowering *l, LLVMValueRef context)
{
  kj_cpu_state *s = kj_cpu(l);
  LLVMValueRef *numbers[CONTEXT_NUMBERS];
  context_numbers(s, numbers);
  for (uint64_t i = 0; i < CONTEXT_NUMBERS; i++)
    *numbers[i] =
      LLVMBuildLoad2(l->builder, l->i32, context_field(l, context, NUMBERS_FIELD, i), "");
  s->grid_pointer =
    LLVMBuildLoad2(l->builder, l->pointer, context_field(l, context, GRID_FIELD, 0), "");
  s->scratch =
    LLVMBuildLoad2(l->builder, l->pointer, context_field(l, context, SCRATCH_FIELD, 0), "");
  s->context = context;
  if (l->has_print)
    l->print_sink =
      LLVMBuildLoad2(l->builder, l->pointer, context_field(l, context, SINK_FIELD, 0), "");
  if (l->kernel->may_fail)
    l->failure_record =
      LLVMBuildLoad2(l->builder, l->pointer, context_field(l, context, RECORD_FIELD, 0), "");
}

/* ---- failing threads ---- */

/* In a function: the caller is told, and whoever called goes on leaving. In the kernel the thread
 * ends its part of the loop, and is off from then on. */
void kj_cpu_leave_kernel(kj_lowering *l)
{
  kj_cpu_state *s = kj_cpu(l);
  kj_frame *inner = l->frame;
  while (l->frame->caller) l->frame = l->frame->caller;
  if (s->context)
    LLVMBuildStore(l->builder, kj_const32(l, 1), context_field(l, s->context, LEFT_FIELD, 0));
  else if (l->kernel->off) kj_set_variable(l, l->kernel->off, kj_const32(l, KJ_OFF_LEFT_KERNEL));
  LLVMBuildBr(l->builder, l->frame->leave);
  l->frame = inner;
}

void kj_cpu_leave_after_call(kj_lowering *l, LLVMValueRef context)
{
  LLVMBasicBlockRef left = kj_new_block(l, "left"), stays = kj_new_block(l, "stays");
  LLVMValueRef flag =
    LLVMBuildLoad2(l->builder, l->i32, context_field(l, context, LEFT_FIELD, 0), "");
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntNE, flag, kj_const32(l, 0), ""),
                  left, stays);
  kj_move_to(l, left);
  kj_cpu_leave_kernel(l);
  kj_move_to(l, stays);
}

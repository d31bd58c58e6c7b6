/* Statements: a table by kind. What follows a break, continue or return in its list is dead and not
 * lowered. */
#include "lower/debug.h"
#include "native/watch.h"

static void lower_assign(kj_lowering *l, const kj_tstmt *stmt)
{
  if (kj_is_array_type(l, stmt->var->type)) {
    kj_array_value array = kj_lower_array(l, stmt->value);
    kj_set_array(l, stmt->var, &array);
  } else if (stmt->var->is_narrow) {
    kj_set_variable(l, stmt->var, kj_lower_index32(l, stmt->value));
  } else {
    kj_set_variable(l, stmt->var, kj_lower_expr(l, stmt->value));
  }
}

static void lower_store(kj_lowering *l, const kj_tstmt *stmt)
{
  LLVMValueRef value = kj_lower_expr(l, stmt->value);
  kj_array_value array = kj_lower_array(l, stmt->array);
  LLVMValueRef pointer = kj_checked_pointer(l, &array, &stmt->indices, stmt->is_checked);
  if (stmt->is_watched) kj_watch_access_at(l, stmt->location, &array, pointer, KJ_WATCH_WRITE);
  LLVMBasicBlockRef behind = kj_skip_if_bad(l);
  kj_store_element(l, &array, pointer, value, kj_element_alignment(l, &array, &stmt->indices));
  if (!behind) return;
  kj_branch(l, behind);
  kj_move_to(l, behind);
}

static void lower_evaluate(kj_lowering *l, const kj_tstmt *stmt) { kj_lower_expr(l, stmt->value); }

static void lower_if(kj_lowering *l, const kj_tstmt *stmt)
{
  LLVMValueRef condition = kj_lower_condition(l, stmt->value);
  LLVMBasicBlockRef yes = kj_new_block(l, "if"), end = NULL, no = NULL;
  if (stmt->otherwise.count) no = kj_new_block(l, "else");
  end = kj_new_block(l, "endif");
  LLVMBuildCondBr(l->builder, condition, yes, no ? no : end);
  kj_move_to(l, yes);
  kj_lower_stmts(l, &stmt->body);
  kj_branch(l, end);
  if (no) {
    kj_move_to(l, no);
    kj_lower_stmts(l, &stmt->otherwise);
    kj_branch(l, end);
  }
  kj_move_to(l, end);
}

static kj_loop *innermost(kj_lowering *l, bool is_once)
{
  kj_loop *loop = l->loop;
  while (loop->is_once != is_once) loop = loop->outer;
  return loop;
}

static void lower_break(kj_lowering *l, const kj_tstmt *stmt)
{
  (void)stmt;
  LLVMBuildBr(l->builder, innermost(l, false)->leave);
}

static void lower_continue(kj_lowering *l, const kj_tstmt *stmt)
{
  (void)stmt;
  LLVMBuildBr(l->builder, innermost(l, false)->next);
}

static void lower_return(kj_lowering *l, const kj_tstmt *stmt)
{
  if (stmt->value) {
    LLVMValueRef value = kj_lower_expr(l, stmt->value);
    if (l->frame->result_slot) LLVMBuildStore(l->builder, value, l->frame->result_slot);
  }
  LLVMBuildBr(l->builder, l->frame->leave);
}

static void lower_of_target(kj_lowering *l, const kj_tstmt *stmt) { l->target->statement(l, stmt); }

static void lower_once(kj_lowering *l, const kj_tstmt *stmt)
{
  kj_loop once = { .outer = l->loop, .leave = kj_new_block(l, "once.end"), .is_once = true };
  l->loop = &once;
  kj_lower_stmts(l, &stmt->body);
  l->loop = once.outer;
  kj_branch(l, once.leave);
  kj_move_to(l, once.leave);
}

static void lower_leave(kj_lowering *l, const kj_tstmt *stmt)
{
  (void)stmt;
  LLVMBuildBr(l->builder, innermost(l, true)->leave);
}

static void (*const lower_by_kind[])(kj_lowering *, const kj_tstmt *) = {
  [KJ_TS_ASSIGN] = lower_assign,     [KJ_TS_STORE] = lower_store,
  [KJ_TS_EVALUATE] = lower_evaluate, [KJ_TS_IF] = lower_if,
  [KJ_TS_WHILE] = kj_lower_while,    [KJ_TS_FOR] = kj_lower_loop,
  [KJ_TS_GRID_FOR] = kj_lower_loop,  [KJ_TS_BLOCK_FOR] = kj_lower_loop,
  [KJ_TS_BREAK] = lower_break,       [KJ_TS_CONTINUE] = lower_continue,
  [KJ_TS_RETURN] = lower_return,     [KJ_TS_THREADS] = lower_of_target,
  [KJ_TS_WARP] = lower_of_target,    [KJ_TS_BARRIER_REDUCE] = lower_of_target,
  [KJ_TS_ONCE] = lower_once,         [KJ_TS_LEAVE] = lower_leave,
  [KJ_TS_FAIL] = kj_lower_fail,      [KJ_TS_PRINT] = kj_lower_print,
};

void kj_lower_stmt(kj_lowering *l, const kj_tstmt *stmt)
{
  /* its statements have places of their own */
  if (stmt->kind != KJ_TS_THREADS) kj_debug_statement(l, stmt->location);
  lower_by_kind[stmt->kind](l, stmt);
}

void kj_lower_stmts(kj_lowering *l, const kj_tstmts *stmts)
{
  kj_debug_block block = kj_begin_debug_block(l, stmts);
  for (size_t i = 0; i < stmts->count && !kj_is_terminated(l); i++)
    kj_lower_stmt(l, stmts->items[i]);
  kj_end_debug_block(l, &block);
}

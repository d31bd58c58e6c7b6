/* Lowers statements. A table has the lowering function for each kind of statement. Statements that
 * follow a break, continue or return in the same list are unreachable and not lowered. */
#include "lower/debug.h"
#include "lower/instruction.h"
#include "native/watch.h"

static void lower_assign(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_ASSIGN);
  if (kl_is_array_type(l, stmt->var->type)) {
    kl_array_value array = kl_lower_array(l, stmt->value);
    kl_set_array(l, stmt->var, &array);
  } else if (stmt->var->is_narrow) {
    kl_set_variable(l, stmt->var, kl_lower_index32(l, stmt->value));
  } else {
    kl_set_variable(l, stmt->var, kl_lower_expr(l, stmt->value));
  }
}

static void lower_store(kl_lowering *l, const kt_stmt *stmt)
{
  kl_lower_store_of(l, stmt, kl_lower_expr(l, stmt->value));
}

void kl_lower_store_of(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef value)
{
  KJ_ASSERT(stmt->kind == KJ_TS_STORE);
  kl_array_value array = kl_lower_array(l, stmt->array);
  LLVMValueRef pointer = kl_checked_pointer(l, &array, &stmt->indices,
                                            kl_check_of(l, stmt->is_checked, stmt->is_left_out));
  if (stmt->is_watched) kl_watch_access_at(l, stmt->location, &array, pointer, KJ_WATCH_WRITE);
  LLVMBasicBlockRef behind = kl_skip_if_bad(l);
  kl_store_element(l, &array, pointer, value, kl_element_alignment(l, &array, &stmt->indices));
  if (!behind) return;
  kl_go_on_in(l, behind);
}

static void lower_evaluate(kl_lowering *l, const kt_stmt *stmt) { kl_lower_expr(l, stmt->value); }

static void lower_if(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_IF);
  LLVMValueRef condition = kl_lower_condition(l, stmt->value);
  LLVMBasicBlockRef yes = kl_new_block(l, "if"), end = NULL, no = NULL;
  if (stmt->otherwise.count) no = kl_new_block(l, "else");
  end = kl_new_block(l, "endif");
  kl_cond_br(l, condition, yes, no ? no : end);
  kl_move_to(l, yes);
  kl_lower_stmts(l, &stmt->body);
  kl_branch(l, end);
  if (no) {
    kl_move_to(l, no);
    kl_lower_stmts(l, &stmt->otherwise);
    kl_branch(l, end);
  }
  kl_move_to(l, end);
}

static kl_loop *innermost(kl_lowering *l, bool is_once)
{
  KJ_ASSERT(l->loop);
  kl_loop *loop = l->loop;
  while (loop->is_once != is_once) loop = loop->outer;
  return loop;
}

static void lower_break(kl_lowering *l, const kt_stmt *stmt)
{
  (void)stmt;
  kl_br(l, innermost(l, false)->leave);
}

static void lower_continue(kl_lowering *l, const kt_stmt *stmt)
{
  (void)stmt;
  kl_br(l, innermost(l, false)->next);
}

static void lower_return(kl_lowering *l, const kt_stmt *stmt)
{
  if (stmt->value) {
    LLVMValueRef value = kl_lower_expr(l, stmt->value);
    if (l->frame->result_alloca) kl_store(l, value, l->frame->result_alloca);
  }
  bool is_kernel = !l->frame->caller && l->frame->instance == l->kernel;
  if (is_kernel && l->target->return_early) l->target->return_early(l);
  else kl_br(l, l->frame->leave);
}

static void lower_of_target(kl_lowering *l, const kt_stmt *stmt) { l->target->statement(l, stmt); }

static void lower_once(kl_lowering *l, const kt_stmt *stmt)
{
  kl_loop once = { .outer = l->loop, .leave = kl_new_block(l, "once.end"), .is_once = true };
  l->loop = &once;
  kl_lower_stmts(l, &stmt->body);
  l->loop = once.outer;
  kl_go_on_in(l, once.leave);
}

static void lower_leave(kl_lowering *l, const kt_stmt *stmt)
{
  (void)stmt;
  kl_br(l, innermost(l, true)->leave);
}

static void (*const lower_by_kind[])(kl_lowering *, const kt_stmt *) = {
  [KJ_TS_ASSIGN] = lower_assign,     [KJ_TS_STORE] = lower_store,
  [KJ_TS_EVALUATE] = lower_evaluate, [KJ_TS_IF] = lower_if,
  [KJ_TS_WHILE] = kl_lower_while,    [KJ_TS_FOR] = kl_lower_loop,
  [KJ_TS_GRID_FOR] = kl_lower_loop,  [KJ_TS_BLOCK_FOR] = kl_lower_loop,
  [KJ_TS_BREAK] = lower_break,       [KJ_TS_CONTINUE] = lower_continue,
  [KJ_TS_RETURN] = lower_return,     [KJ_TS_THREADS] = lower_of_target,
  [KJ_TS_WARP] = lower_of_target,    [KJ_TS_BARRIER_REDUCE] = lower_of_target,
  [KJ_TS_ONCE] = lower_once,         [KJ_TS_LEAVE] = lower_leave,
  [KJ_TS_FAIL] = kl_lower_fail,      [KJ_TS_PRINT] = kl_lower_print,
};

static void fail_instructions(kl_lowering *l, kj_location location)
{
  const ki_decl *decl = l->frame->instance->function->decl;
  kt_check_limit(l->c, KJ_LIMIT_INSTRUCTIONS, l->instruction_count, location,
                 "the code of `%s` becomes too large at this statement%s", decl->name,
                 l->copies > 1 ? ", because the loops around the statement are unrolled" : "");
}

void kl_lower_stmt(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(!kl_is_terminated(l));
  l->location = stmt->location;
  /* a thread loop has no location, because each statement in it has its own location */
  if (stmt->kind != KJ_TS_THREADS) kl_debug_statement(l, stmt->location);
  l->polling_loops += stmt->poll != 0;
  l->product_loops += stmt->has_products;
  lower_by_kind[stmt->kind](l, stmt);
  l->polling_loops -= stmt->poll != 0;
  l->product_loops -= stmt->has_products;
  kt_poll(l->c, stmt->location);
  if (l->instruction_count > l->c->budget->limits[KJ_LIMIT_INSTRUCTIONS])
    fail_instructions(l, stmt->location);
}

void kl_lower_stmts(kl_lowering *l, const kt_stmts *stmts)
{
  kl_debug_block block = kl_begin_debug_block(l, stmts);
  for (size_t i = 0; i < stmts->count && !kl_is_terminated(l); i++)
    kl_lower_stmt(l, stmts->items[i]);
  kl_end_debug_block(l, &block);
}

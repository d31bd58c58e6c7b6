/* Loops in two versions (pass/versions.c): without the checks that were hoisted to their start, and
 * with them.
 *
 * Both are lowered from the same tree. What the first one need not check is not marked meanwhile; a
 * function that is not inlined is lowered when all marks are back. */
#include "lower/lower.h"

static void lower_once(kj_lowering *l, const kj_tstmt *loop)
{
  if (loop->kind == KJ_TS_FOR) kj_lower_for(l, loop);
  else l->target->range(l, loop);
}

/* ---- marks ---- */

/* In the unchecked version of a loop around this one some are gone already. */
static kj_loop_checks take_marks(kj_lowering *l, const kj_loop_checks *hoisted)
{
  kj_loop_checks taken = { 0 };
  for (size_t i = 0; i < hoisted->exprs.count; i++)
    if (hoisted->exprs.items[i]->is_checked)
      KJ_PUSH(l->c->arena, &taken.exprs, hoisted->exprs.items[i]);
  for (size_t i = 0; i < hoisted->stores.count; i++)
    if (hoisted->stores.items[i]->is_checked)
      KJ_PUSH(l->c->arena, &taken.stores, hoisted->stores.items[i]);
  return taken;
}

static void set_marks(const kj_loop_checks *checks, bool is_checked)
{
  for (size_t i = 0; i < checks->exprs.count; i++) checks->exprs.items[i]->is_checked = is_checked;
  for (size_t i = 0; i < checks->stores.count; i++)
    checks->stores.items[i]->is_checked = is_checked;
}

/* ---- versions ---- */

static LLVMValueRef lower_conditions(kj_lowering *l, const kj_texprs *conditions)
{
  LLVMValueRef hold = LLVMConstInt(l->i1, 1, false);
  for (size_t i = 0; i < conditions->count; i++)
    hold = LLVMBuildAnd(l->builder, hold, kj_lower_condition(l, conditions->items[i]), "");
  return hold;
}

void kj_lower_loop(kj_lowering *l, const kj_tstmt *loop)
{
  kj_loop_checks taken = { 0 };
  if (loop->hoisted && !l->is_checked_version) taken = take_marks(l, loop->hoisted);
  if (!taken.exprs.count && !taken.stores.count) {
    lower_once(l, loop);
    return;
  }
  LLVMValueRef hold = lower_conditions(l, &loop->indices);
  LLVMBasicBlockRef unchecked = kj_new_block(l, "unchecked"), checked = kj_new_block(l, "checked"),
                    end = kj_new_block(l, "versions.end");
  kj_set_likely(l, LLVMBuildCondBr(l->builder, hold, unchecked, checked), true);
  kj_move_to(l, unchecked);
  set_marks(&taken, false);
  lower_once(l, loop);
  set_marks(&taken, true);
  kj_branch(l, end);
  kj_move_to(l, checked);
  l->is_checked_version = true;
  lower_once(l, loop);
  l->is_checked_version = false;
  kj_branch(l, end);
  kj_move_to(l, end);
}

/* CPU: speculative execution of a grid_range whose only run-time checks are checks of float
 * divisors. Float division does not trap, so the loop can divide first and check later. LLVM can
 * then vectorize it.
 *
 * An iteration records whether a divisor was 0; if so, it does not store its results. The loop
 * computes the number of the first such iteration as a minimum, which can be vectorized as well.
 * After the loop, this iteration runs again with its checks. It has had no effect in the loop, and
 * no other iteration writes memory, variables or thread-local arrays that its checks read. It
 * therefore fails at the same point as without speculation. Later iterations have been executed in
 * the meantime, as other threads of a GPU would have executed them.
 *
 * The program must never observe a value that is computed from a quotient with a zero divisor. So
 * the following values, which may be computed from such a quotient, must not determine the address
 * of a load or the number of iterations of a loop: values computed from quotients, values that are
 * loaded after a store that may have been skipped, and values that a later iteration reads from
 * variables or thread-local arrays. */
#include "lower/instruction.h"
#include "lower/cpu/cpu.h"
#include "pass/simt.h"

/* ---- loops that can be speculated ---- */

typedef struct scan {
  kl_lowering *l;
  bool has_store, has_check, fails;
  bool is_decided;       /* a quotient decides whether the following code runs */
  bool is_stale;         /* a store may have been skipped, so memory may hold an old value */
  bool was_stale;        /* an earlier iteration may have skipped a store to a thread-local array */
  uint32_t depth;        /* nesting depth of the funcs that are being analyzed */
  uint64_t *is_quotient; /* bit set of the kernel's variables whose value depends on a quotient */
  /* Bit set of the variables whose value can come from an earlier iteration: variables declared
   * outside of the loop, and variables computed from them. */
  uint64_t *is_carried;
  bool stores_own, is_carried_decided;
} scan;

static bool is_of_quotient(const scan *s, const kt_expr *e);

static bool is_any_of_quotient(const scan *s, const kt_expr *of)
{
  for (size_t i = 0; i < kt_operand_count(of); i++)
    if (is_of_quotient(s, kt_operand(of, i))) return true;
  return false;
}

static bool has_place(const kt_expr *e)
{
  if (e->kind == KJ_T_BUILTIN) return (e->builtin->flags & (KJ_PLACE | KJ_READS)) != 0;
  return e->kind == KJ_T_LOAD || e->kind == KJ_T_ELEMENT || e->kind == KJ_T_INSERT;
}

static bool has_bit(const uint64_t *set, const kt_var *var)
{
  return set[var->index / 64] >> var->index % 64 & 1;
}

static void set_bit(uint64_t *set, const kt_var *var)
{
  set[var->index / 64] |= (uint64_t)1 << var->index % 64;
}

/* Returns whether the array can be local to the thread. Returns true for memory at pointers,
 * because a pointer can point to a local array. */
static bool is_own_array(const scan *s, const kt_expr *array)
{
  const ki_type_info *info = ki_type(s->l->c->types, array->type);
  return info->class_ == KJ_CLASS_ARRAY &&
         (info->space == KJ_SPACE_LOCAL || info->space == KJ_SPACE_GENERIC);
}

static bool loads_stale(const scan *s, const kt_expr *e)
{
  if (!has_place(e) || !e->x) return false;
  bool is_array = ki_type(s->l->c->types, e->x->type)->class_ == KJ_CLASS_ARRAY;
  return (s->is_stale && is_array) || (s->was_stale && is_own_array(s, e->x));
}

/* Returns whether the value can come from an earlier iteration. Returns false for parameters of a
 * func that can fail. */
static bool is_carried(const scan *s, const kt_expr *e)
{
  if (!e) return false;
  if (e->kind == KJ_T_VAR && !s->depth && has_bit(s->is_carried, e->var)) return true;
  if (s->stores_own && has_place(e) && e->x && is_own_array(s, e->x)) return true;
  for (size_t i = 0; i < kt_operand_count(e); i++)
    if (is_carried(s, kt_operand(e, i))) return true;
  return false;
}

/* Returns whether the value may depend on a quotient. The variables of a called func are not
 * tracked: if the scan has already met a check, each of them may depend on a quotient. */
static bool is_of_quotient(const scan *s, const kt_expr *e)
{
  if (!e) return false;
  if (e->is_checked || (e->kind == KJ_T_CALL && e->instance->may_fail)) return s->has_check;
  if (loads_stale(s, e)) return true;
  if (e->kind == KJ_T_VAR) return s->depth ? s->has_check : has_bit(s->is_quotient, e->var);
  return is_any_of_quotient(s, e);
}

static void scan_stmts(scan *s, const kt_stmts *list);
static void scan_expr(scan *s, const kt_expr *e);

static void scan_list(scan *s, const kt_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) scan_expr(s, list->items[i]);
}

/* Returns whether a call of a func that cannot fail is allowed. The func must have no effect. It
 * may read memory or run loops only if its arguments do not depend on a quotient. */
static bool is_harmless(scan *s, const kt_expr *call)
{
  kt_effects effects = { 0 };
  kt_expr without_arguments = *call;
  without_arguments.args.count = 0;
  kt_add_effects(s->l->c, &without_arguments, &effects);
  bool is_safe = !s->is_decided && !s->is_stale && !s->was_stale && !is_any_of_quotient(s, call);
  return !kt_has_any_effect(&effects) && (is_safe || !(effects.reads || effects.has_loops));
}

static void scan_call(scan *s, const kt_expr *call)
{
  KJ_ASSERT(call->kind == KJ_T_CALL);
  enum { MOST_DEPTH = 16 };
  if (!call->instance->may_fail) {
    s->fails |= !is_harmless(s, call);
    return;
  }
  if (s->depth == MOST_DEPTH || !kl_is_inlined(s->l, call->instance) || is_carried(s, call)) {
    s->fails = true;
    return;
  }
  bool had_store = s->has_store;
  /* an argument that depends on a quotient counts like a check: the func's variables may then
   * depend on a quotient */
  s->has_check |= is_any_of_quotient(s, call);
  s->depth++;
  scan_stmts(s, &call->instance->body);
  s->depth--;
  s->fails |= s->has_store && !had_store; /* the func contains both a check and a store */
}

/* Scans an expression. A check after a store is not allowed, because the store would already have
 * been executed. */
static void scan_expr(scan *s, const kt_expr *e)
{
  if (!e || s->fails) return;
  bool is_lazy = e->kind == KJ_T_LOGIC || e->kind == KJ_T_COND;
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    scan_expr(s, kt_operand(e, i));
    if (i == 0 && is_lazy && is_of_quotient(s, e->x)) s->is_decided = true;
    if (i == 0 && is_lazy && is_carried(s, e->x)) s->is_carried_decided = true;
  }
  if (e->kind == KJ_T_CALL) scan_call(s, e);
  if (e->kind == KJ_T_BUILTIN && !(e->builtin->flags & KJ_PURE)) s->fails = true;
  if (has_place(e)) s->fails |= s->is_decided || is_any_of_quotient(s, e);
  if (!e->is_checked) return;
  s->has_check = true;
  s->fails |= s->is_carried_decided || is_carried(s, e);
  s->fails |= e->kind != KJ_T_BINARY || !kl_is_float_type(s->l, e->type) || s->has_store;
}

static void scan_stmt(scan *s, const kt_stmt *stmt)
{
  static const bool is_allowed[] = {
    [KJ_TS_ASSIGN] = true, [KJ_TS_STORE] = true, [KJ_TS_IF] = true, [KJ_TS_RETURN] = true
  };
  bool is_known = stmt->kind < sizeof is_allowed && is_allowed[stmt->kind];
  if (!is_known || stmt->is_checked || stmt->is_watched ||
      (stmt->kind == KJ_TS_RETURN && !s->depth))
    s->fails = true;
  scan_expr(s, stmt->value);
  if (stmt->kind == KJ_TS_ASSIGN && !s->depth) {
    if (s->is_decided || is_of_quotient(s, stmt->value)) set_bit(s->is_quotient, stmt->var);
    if (s->is_carried_decided || is_carried(s, stmt->value)) set_bit(s->is_carried, stmt->var);
  }
  if (stmt->kind == KJ_TS_IF && is_of_quotient(s, stmt->value)) s->is_decided = true;
  if (stmt->kind == KJ_TS_IF && is_carried(s, stmt->value)) s->is_carried_decided = true;
  if (stmt->kind == KJ_TS_STORE) s->has_store = true;
  if (stmt->kind == KJ_TS_STORE && is_own_array(s, stmt->array)) s->stores_own = true;
  scan_expr(s, stmt->array);
  scan_list(s, &stmt->indices);
  if (stmt->kind == KJ_TS_STORE && s->has_check) s->is_stale = true;
  scan_stmts(s, &stmt->body);
  scan_stmts(s, &stmt->otherwise);
}

static void scan_stmts(scan *s, const kt_stmts *list)
{
  for (size_t i = 0; i < list->count && !s->fails; i++) scan_stmt(s, list->items[i]);
}

static void count_assignment(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_ASSIGN) ((uint32_t *)data)[stmt->var->index]++;
}

/* Finds the variables that are assigned both inside and outside of the loop. */
static void find_carried(scan *s, const kt_stmts *body, size_t variables)
{
  const kt_instance *kernel = s->l->kernel;
  uint32_t *all = KJ_NEW_ARRAY(s->l->c->arena, uint32_t, variables),
           *inside = KJ_NEW_ARRAY(s->l->c->arena, uint32_t, variables);
  kt_walk_tstmts((kt_stmts *)&kernel->body, count_assignment, NULL, all);
  kt_walk_tstmts((kt_stmts *)body, count_assignment, NULL, inside);
  for (size_t i = 0; i < kernel->locals.count; i++) {
    const kt_var *var = kernel->locals.items[i];
    if (inside[var->index] && inside[var->index] < all[var->index]) set_bit(s->is_carried, var);
  }
}

bool kl_can_speculate(kl_lowering *l, const kt_stmts *body)
{
  size_t variables = l->kernel->params.count + l->kernel->locals.count;
  scan s = { .l = l,
             .is_quotient = KJ_NEW_ARRAY(l->c->arena, uint64_t, variables / 64 + 1),
             .is_carried = KJ_NEW_ARRAY(l->c->arena, uint64_t, variables / 64 + 1) };
  scan_stmts(&s, body);
  if (!s.has_check) return false;
  s.was_stale = s.is_stale;
  /* scan the body again as a later iteration */
  s.has_store = s.has_check = s.is_decided = s.is_stale = false;
  find_carried(&s, body, variables);
  scan_stmts(&s, body);
  return !s.fails;
}

/* ---- iterations ---- */

static LLVMValueRef none(LLVMTypeRef type)
{
  return LLVMConstInt(type, LLVMGetIntTypeWidth(type) == 32 ? INT32_MAX : INT64_MAX, false);
}

void kl_begin_speculation(kl_lowering *l, kl_speculation *s, LLVMTypeRef counter)
{
  s->first = kl_alloca(l, counter, "first.failing");
  s->bad = kl_alloca(l, l->i1, "bad");
  s->type = counter;
  kl_store(l, none(counter), s->first);
}

void kl_begin_speculated(kl_lowering *l, const kl_speculation *s)
{
  KJ_ASSERT(!l->bad_divisor);
  kl_store(l, LLVMConstInt(l->i1, 0, false), s->bad);
  l->bad_divisor = s->bad;
}

void kl_end_speculated(kl_lowering *l, const kl_speculation *s, LLVMValueRef number)
{
  KJ_ASSERT(l->bad_divisor == s->bad);
  LLVMValueRef is_bad = kl_load(l, l->i1, s->bad), known = kl_load(l, s->type, s->first);
  LLVMValueRef own = kl_select(l, is_bad, number, none(s->type));
  kl_store(l, kl_intrinsic2(l, "llvm.smin", own, known), s->first);
  l->bad_divisor = NULL;
}

LLVMValueRef kl_find_failing(kl_lowering *l, const kl_speculation *s, LLVMValueRef *has_any)
{
  LLVMValueRef first = kl_load(l, s->type, s->first);
  *has_any = kl_icmp(l, LLVMIntNE, first, none(s->type));
  return first;
}

/* ---- hooks that check.c and statement.c call in speculative iterations ---- */

void kl_note_bad_divisor(kl_lowering *l, LLVMValueRef is_zero)
{
  KJ_ASSERT(l->bad_divisor);
  LLVMValueRef known = kl_load(l, l->i1, l->bad_divisor);
  kl_store(l, kl_or(l, known, is_zero), l->bad_divisor);
}

LLVMBasicBlockRef kl_skip_if_bad(kl_lowering *l)
{
  if (!l->bad_divisor) return NULL;
  LLVMBasicBlockRef stores = kl_new_block(l, "stores"), end = kl_new_block(l, "stored");
  kl_cond_br(l, kl_load(l, l->i1, l->bad_divisor), end, stores);
  kl_move_to(l, stores);
  return end;
}

/* Removes checks that cannot fail, and hoists checks so that they are executed once per block
 * instead of once per element.
 *
 * An index that is computed from positions, counters, extents and constants has a minimum and a
 * maximum within a block of threads. The minimum and the maximum are known when the block starts.
 * If both are valid indices in every launch, the check is removed (KJ_PROOF_ALWAYS). If comparisons
 * at the block's start can decide whether both are valid, the check is hoisted (KJ_PROOF_BLOCK). On
 * the CPU, the kernel is then compiled in two versions, with these checks and without. A block for
 * which all comparisons are true runs the version without these checks, which the compiler can
 * vectorize as if there were no checks.
 *
 * The proof ignores conditions in the kernel. For example, the threads in a block at the edge of an
 * array may stay inside of the array only because of a condition; such a block runs the version
 * with checks. The checks of divisors are removed or hoisted in the same way.
 *
 * Needs: typed instances with is_checked. Guarantees: a removed check cannot fail, and bounds are
 * computed without overflow. */
#include "pass/bounds.h"
#include "pass/pass.h"

enum { MOST_CONDITIONS = 48, MOST_VISITS = 20000, MOST_DEPTH = 12 };

static void visit_expr(kp_prover *p, kt_expr *e);
static void visit_stmts(kp_prover *p, const kt_stmts *list);

/* ---- proofs ---- */

static void weaken(kt_proof *proof, kt_proof found)
{
  if (found > *proof) *proof = found;
}

static bool is_same_extent(const kt_expr *a, const kt_expr *b)
{
  if (a->kind != KJ_T_EXTENT || b->kind != KJ_T_EXTENT || a->dimension != b->dimension)
    return false;
  return a->x->kind == KJ_T_VAR && b->x->kind == KJ_T_VAR && a->x->var == b->x->var;
}

/* Returns whether high has the form len(a) - 1 and extent is len(a). The variable of a range over
 * an array's extent has such a maximum. */
static bool is_below(const kt_expr *high, const kt_expr *extent)
{
  bool is_less = high->kind == KJ_T_BINARY && high->op == KJIT_OP_SUB &&
                 high->y->kind == KJ_T_CONST && high->y->integer > 0;
  return is_less && is_same_extent(high->x, extent);
}

/* Proves that an index is in bounds. If another index of the same access cannot be proved, the
 * caller removes the conditions that this function has added. */
static kt_proof prove_index(kp_prover *p, const kt_expr *index, const kp_bounds *extent)
{
  kp_bounds b = kp_find_bounds(p, index);
  if (!b.known || !extent->known) return KJ_PROOF_NONE;
  bool is_from_0 = b.least >= 0,
       is_to_end = b.most < extent->least || is_below(b.high, extent->low);
  if (is_from_0 && is_to_end) return KJ_PROOF_ALWAYS;
  if (p->conditions.count + 2 > MOST_CONDITIONS) return KJ_PROOF_NONE;
  if (!is_from_0) kp_add_condition(p, KJIT_OP_GE, b.low, kp_make_bound(p, 0));
  if (!is_to_end) kp_add_condition(p, KJIT_OP_LT, b.high, extent->low);
  return KJ_PROOF_BLOCK;
}

static kt_proof prove_subscript(kp_prover *p, const kt_expr *array, const kt_exprs *indices)
{
  KJ_ASSERT(indices->count <= KJ_MAX_RANK);
  size_t mark = p->conditions.count;
  const kp_bounded_shape *of = kp_find_least_shape(p, array);
  kt_proof proof = of ? KJ_PROOF_ALWAYS : KJ_PROOF_NONE;
  for (size_t d = 0; d < indices->count && proof != KJ_PROOF_NONE; d++)
    weaken(&proof, prove_index(p, indices->items[d], &of->extents[d]));
  if (proof == KJ_PROOF_NONE) p->conditions.count = mark;
  return proof;
}

/* Returns whether the divisor does not change during the loop, so that it can be compared with 0
 * before the loop. The divisor may have any scalar type. */
static bool is_known_divisor(const kp_prover *p, const kt_expr *divisor)
{
  return p->inside && !p->at->depth && ki_is_scalar(divisor->type) && kp_is_invariant(p, divisor);
}

/* Returns the constant 0 of a scalar type, which for a complex type has two components. */
static kt_expr *make_zero(kp_prover *p, kjit_type type, kj_location location)
{
  if (ki_type(p->c->types, type)->class_ != KJ_CLASS_COMPLEX)
    return kt_new_texpr(p->c, KJ_T_CONST, type, location);
  kt_expr *zero = kt_new_texpr(p->c, KJ_T_TUPLE, type, location);
  for (uint32_t i = 0; i < ki_component_count(p->c->types, type); i++) {
    kjit_type part = ki_get_component(p->c->types, type, i).type;
    KJ_PUSH(p->c->arena, &zero->args, kt_new_texpr(p->c, KJ_T_CONST, part, location));
  }
  return zero;
}

static kt_proof prove_divisor(kp_prover *p, const kt_expr *divisor)
{
  size_t mark = p->conditions.count;
  if (is_known_divisor(p, divisor) && mark < MOST_CONDITIONS) {
    kp_add_condition(p, KJIT_OP_NE, (kt_expr *)divisor,
                     make_zero(p, divisor->type, divisor->location));
    return KJ_PROOF_BLOCK;
  }
  kp_bounds b = kp_find_bounds(p, divisor);
  if (!b.known) p->conditions.count = mark;
  if (!b.known) return KJ_PROOF_NONE;
  if (b.least > 0 || b.most < 0) return KJ_PROOF_ALWAYS;
  if (p->conditions.count >= MOST_CONDITIONS) return KJ_PROOF_NONE;
  kp_add_condition(p, KJIT_OP_GT, b.low, kp_make_bound(p, 0));
  return KJ_PROOF_BLOCK;
}

static kt_proof prove(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->is_checked);
  if (p->is_full) return KJ_PROOF_NONE;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_LOAD:
  case KJ_T_ADDRESS: return prove_subscript(p, e->x, &e->args);
  case KJ_T_VIEW: return e->dimensions ? KJ_PROOF_NONE : prove_subscript(p, e->x, &e->args);
  case KJ_T_BINARY: return prove_divisor(p, e->y);
  case KJ_T_BUILTIN:
    if (kt_accesses_place(e)) return prove_subscript(p, e->x, &e->indices);
    return e->args.count == 2 ? prove_divisor(p, e->args.items[1]) : KJ_PROOF_NONE;
  default: return KJ_PROOF_NONE;
  }
}

/* ---- the walk ---- */

static kp_bounded_call *enter(kp_prover *p, const kt_instance *instance, uint32_t depth)
{
  kp_bounded_call *a = KJ_NEW(p->c->arena, kp_bounded_call);
  size_t count = instance->params.count + instance->locals.count + 1;
  a->instance = instance;
  a->values = KJ_NEW_ARRAY(p->c->arena, kp_bounds, count);
  a->shapes = KJ_NEW_ARRAY(p->c->arena, kp_bounded_shape *, count);
  a->needs = KJ_NEW_ARRAY(p->c->arena, kt_exprs, count);
  a->depth = depth;
  return a;
}

static void bind(kp_prover *p, kp_bounded_call *to, const kt_var *var, const kt_expr *value)
{
  kt_exprs others = p->conditions;
  /* the new list is empty, so that this value's conditions also contain conditions that another
   * value has added already */
  p->conditions = (kt_exprs){ 0 };
  if (!ki_is_weak(var->type) && ki_type(p->c->types, var->type)->class_ == KJ_CLASS_ARRAY)
    to->shapes[var->index] = kp_find_least_shape(p, value);
  else to->values[var->index] = kp_find_bounds(p, value);
  to->needs[var->index] = p->conditions;
  p->conditions = others;
}

/* Returns whether the function is not inlined. All calls share the code of such a function, so a
 * check in the function cannot be removed if the check is proved for only one loop. */
static bool stays_function(const kt_instance *instance)
{
  return instance->is_recursive ||
         ki_get_attribute(&instance->function->attributes, KJ_ATTRIBUTE_NOINLINE);
}

static void visit_call(kp_prover *p, const kt_expr *call)
{
  KJ_ASSERT(call->args.count == call->instance->params.count);
  kp_bounded_call *outer = p->at;
  if (p->inside && stays_function(call->instance)) return;
  if (outer->depth >= MOST_DEPTH) p->is_full = true;
  if (p->is_full) return;
  kp_bounded_call *inner = enter(p, call->instance, outer->depth + 1);
  for (size_t i = 0; i < call->args.count; i++)
    bind(p, inner, call->instance->params.items[i], call->args.items[i]);
  p->at = inner;
  visit_stmts(p, &call->instance->body);
  p->at = outer;
}

static void visit_expr(kp_prover *p, kt_expr *e)
{
  if (!e) return;
  if (++p->visits > MOST_VISITS) p->is_full = true;
  for (size_t i = 0; i < kt_operand_count(e); i++) visit_expr(p, kt_operand(e, i));
  if (e->is_checked) {
    if (p->inside && e->proof == KJ_PROOF_UNSEEN)
      KJ_PUSH(p->c->arena, &p->met, ((kp_met_check){ .expr = e }));
    weaken(&e->proof, prove(p, e));
  }
  if (e->kind == KJ_T_CALL) visit_call(p, e);
}

static bool is_one_number(const kp_bounds *b) { return b->known && b->least == b->most; }

/* Returns the bounds of a counter's last value for constant first, stop and step. If the step is
 * neither 1 nor -1, the last value can be more than 1 away from `stop`. */
static kp_bounds find_last(kp_prover *p, int64_t first, int64_t stop, int64_t step)
{
  KJ_ASSERT(step != 0);
  __int128 span = step > 0 ? (__int128)stop - first - 1 : (__int128)first - stop - 1;
  if (span < 0) return kp_bounds_of_number(p, first); /* no iteration */
  __int128 rounds = span / (step > 0 ? step : -(__int128)step);
  return kp_bounds_of_number(p, (int64_t)(first + rounds * step));
}

static bool is_exact(const kp_bounds *b) { return b->low == b->high; }

static kp_bounds find_counter(kp_prover *p, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_FOR);
  kp_bounds first = kp_find_bounds(p, stmt->first), stop = kp_find_bounds(p, stmt->stop),
            step = stmt->step ? kp_find_bounds(p, stmt->step) : kp_bounds_of_number(p, 1),
            one = kp_bounds_of_number(p, 1);
  if (!first.known || !stop.known || !step.known || (step.least <= 0 && step.most >= 0))
    return kp_unknown_bounds;
  bool is_up = step.least > 0, has_steps = is_one_number(&step) && step.least > INT32_MIN &&
                                           step.least <= INT32_MAX &&
                                           step.least != (is_up ? 1 : -1);
  kp_bounds last =
    is_up ? kp_subtract_bounds(p, KJIT_I64, stop, one) : kp_add_bounds(p, KJIT_I64, stop, one);
  if (is_one_number(&first) && is_one_number(&stop) && is_one_number(&step))
    last = find_last(p, first.least, stop.least, step.least);
  else if (p->inside && has_steps && is_exact(&first) && is_exact(&stop))
    last = kp_find_last_bounds(p, first, stop, step.least);
  if (!last.known) return kp_unknown_bounds;
  kp_bounds *least = is_up ? &first : &last, *most = is_up ? &last : &first;
  int64_t low = least->least, high = most->most;
  if (low > high) high = low; /* the loop has no iterations, so any bounds are correct */
  return (kp_bounds){ .known = true,
                      .low = least->low,
                      .high = most->high,
                      .least = low,
                      .most = high,
                      .nodes = first.nodes + last.nodes };
}

static void bind_counter(kp_prover *p, const kt_stmt *stmt)
{
  kt_exprs others = p->conditions;
  p->conditions = (kt_exprs){ 0 };
  p->at->values[stmt->var->index] = find_counter(p, stmt);
  p->at->needs[stmt->var->index] = p->conditions;
  p->conditions = others;
}

static void bind_range(kp_prover *p, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->vars.count == stmt->extents.count);
  for (size_t i = 0; i < stmt->vars.count; i++) {
    kt_exprs others = p->conditions;
    p->conditions = (kt_exprs){ 0 };
    kp_bounds extent = kp_find_bounds(p, stmt->extents.items[i]),
              last = extent.known
                       ? kp_subtract_bounds(p, KJIT_I64, extent, kp_bounds_of_number(p, 1))
                       : kp_unknown_bounds;
    last.low = kp_make_bound(p, 0);
    last.least = 0;
    if (last.most < 0) last.most = 0;
    p->at->values[stmt->vars.items[i]->index] = last;
    p->at->needs[stmt->vars.items[i]->index] = p->conditions;
    p->conditions = others;
  }
}

static void visit_store(kp_prover *p, kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_STORE && stmt->is_checked);
  if (p->inside && stmt->proof == KJ_PROOF_UNSEEN)
    KJ_PUSH(p->c->arena, &p->met, ((kp_met_check){ .store = stmt }));
  weaken(&stmt->proof,
         p->is_full ? KJ_PROOF_NONE : prove_subscript(p, stmt->array, &stmt->indices));
}

static void visit_stmt(kp_prover *p, kt_stmt *stmt)
{
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++) visit_expr(p, kt_stmt_operand(stmt, i));
  if (stmt->kind == KJ_TS_STORE && stmt->is_checked) visit_store(p, stmt);
  if (stmt->kind == KJ_TS_ASSIGN && stmt->value && stmt->var->kind == KJ_V_LET)
    bind(p, p->at, stmt->var, stmt->value);
  if (stmt->kind == KJ_TS_FOR) bind_counter(p, stmt);
  if (kt_flow_of(stmt) == KJ_FLOW_RANGE) bind_range(p, stmt);
  visit_stmts(p, &stmt->body);
  visit_stmts(p, &stmt->otherwise);
}

static void visit_stmts(kp_prover *p, const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) visit_stmt(p, list->items[i]);
}

/* ---- removal of proved checks ---- */

typedef struct dropper {
  kt_proof most;
} dropper;

/* Returns whether a check is removed. Returns false for a check that the walk has not visited
 * (KJ_PROOF_UNSEEN), which is in code that is never called. */
static bool is_dropped(const dropper *d, kt_proof proof)
{
  return proof != KJ_PROOF_UNSEEN && proof <= d->most;
}

static void drop_expr(void *data, kt_expr **at)
{
  if (!(*at)->is_checked || !is_dropped(data, (*at)->proof)) return;
  (*at)->is_checked = false;
  (*at)->is_left_out = true;
}

static void drop_stmt(void *data, kt_stmt *stmt)
{
  if (!stmt->is_checked || !is_dropped(data, stmt->proof)) return;
  stmt->is_checked = false;
  stmt->is_left_out = true;
}

/* ---- in a loop ---- */

static void mark_inside(void *data, kt_stmt *stmt)
{
  bool *inside = data;
  if (stmt->var) inside[stmt->var->index] = true;
  for (size_t i = 0; i < stmt->vars.count; i++) inside[stmt->vars.items[i]->index] = true;
}

/* Returns the checks that have been proved wherever the loop executes them. A check in a called
 * function must have been proved for all calls. Resets the proof state of every check that the walk
 * has visited. */
static kt_loop_checks *take_proved(kp_prover *p)
{
  kt_loop_checks *proved = KJ_NEW(p->c->arena, kt_loop_checks);
  for (size_t i = 0; i < p->met.count; i++) {
    kp_met_check *met = &p->met.items[i];
    kt_proof *proof = met->expr ? &met->expr->proof : &met->store->proof;
    bool holds = *proof != KJ_PROOF_NONE && !p->is_full;
    *proof = KJ_PROOF_UNSEEN;
    if (holds && met->expr) KJ_PUSH(p->c->arena, &proved->exprs, met->expr);
    if (holds && met->store) KJ_PUSH(p->c->arena, &proved->stores, met->store);
  }
  return proved;
}

const kt_loop_checks *kp_prove_in_loop(kt_compilation *c, const kt_instance *instance,
                                       kt_stmt *loop, kt_exprs *conditions)
{
  KJ_ASSERT(loop->kind == KJ_TS_FOR || kt_flow_of(loop) == KJ_FLOW_RANGE);
  kp_prover p = { .c = c };
  kt_stmts itself = { .items = &loop, .count = 1 };
  p.at = enter(&p, instance, 0);
  p.inside = KJ_NEW_ARRAY(c->arena, bool, instance->params.count + instance->locals.count + 1);
  kt_walk_tstmts(&itself, mark_inside, NULL, p.inside);
  if (loop->kind == KJ_TS_FOR) bind_counter(&p, loop);
  else bind_range(&p, loop);
  visit_stmts(&p, &loop->body);
  const kt_loop_checks *proved = take_proved(&p);
  *conditions = p.conditions;
  return proved->exprs.count || proved->stores.count ? proved : NULL;
}

void kp_prove_checks(kt_compilation *c)
{
  kp_prover p = { .c = c };
  p.at = enter(&p, c->instances.items[0], 0);
  visit_stmts(&p, &c->instances.items[0]->body);
  if (p.is_full) return;
  dropper d = { .most = c->drops_hoisted ? KJ_PROOF_BLOCK : KJ_PROOF_ALWAYS };
  for (size_t i = 0; i < c->instances.count; i++)
    kt_walk_tstmts(&c->instances.items[i]->body, drop_stmt, drop_expr, &d);
  bool is_cpu = c->request->target.kind == KJ_TARGET_CPU;
  if (is_cpu && !c->drops_hoisted) c->hoisted = p.conditions;
}

/* CPU: decides where the variables of thread loops are stored.
 *
 * A region is a THREADS loop or the body of a grid_range. A variable that only one region uses is a
 * local variable of the region's iterations. A let that several regions use and that is cheap to
 * compute, for example from positions and extents, is computed again at each region's start. The
 * optimizer can then use properties of the expression that a load from memory would hide, for
 * example that `col` is consecutive in x. All other variables are slots, with one element for each
 * thread. */
#include <string.h>

#include "pass/simt.h"

enum { REMAKE_BUDGET = 40, MAX_UNROLLED_TRIPS = 64, MAX_UNROLLED_NODES = 4096 };

/* ---- cheap expressions ---- */

static bool spend(uint32_t *budget, uint32_t cost)
{
  if (*budget < cost) return false;
  *budget -= cost;
  return true;
}

static uint32_t cost_of(const kt_expr *e)
{
  bool divides = e->kind == KJ_T_BINARY &&
                 (e->op == KJIT_OP_DIV || e->op == KJIT_OP_FLOORDIV || e->op == KJIT_OP_MOD);
  return !divides ? 1 : kt_is_constant(e->y) ? 4 : 16;
}

static bool is_cheap_node(const kt_expr *e)
{
  /* a view can be computed again without its check, because the check is executed where the let is
   * declared */
  if (e->is_watched || (e->is_checked && e->kind != KJ_T_VIEW)) return false;
  if (!kt_is_cheap_kind(e->kind)) return false;
  if (e->kind == KJ_T_VAR) return e->var->kind != KJ_V_VAR || e->var->is_uniform;
  if (e->kind == KJ_T_BUILTIN)
    return (e->builtin->flags & KJ_PURE) && e->builtin->id < KJ_FIRST_FLOAT_BUILTIN;
  return e->kind != KJ_T_BINARY || e->op != KJIT_OP_POW;
}

static bool is_dear(void *data, const kt_expr *e)
{
  return !is_cheap_node(e) || !spend(data, cost_of(e));
}

bool kp_is_cheap(const kt_expr *e, uint32_t budget) { return !kt_any_texpr(e, is_dear, &budget); }

/* ---- regions that mention a variable ---- */

typedef struct scan {
  kp_simt *s;
  /* some code takes the address of an element of a local array, and any code can use this
   * pointer */
  bool has_local_address;
  uint32_t region, region_count, loops;
} scan;

/* Returns whether the variable belongs to a thread and this pass has not yet chosen where to store
 * it. */
static bool is_own(const kt_var *var)
{
  return !var->is_uniform && !var->is_slot && var->kind != KJ_V_PARAM && var->kind != KJ_V_SHARED &&
         var->kind != KJ_V_CONST;
}

static void note(scan *at, kt_var *var)
{
  if (!is_own(var)) return;
  kp_simt_variable *own = var->simt;
  if (own->region && own->region != at->region) own->is_shared_out = true;
  /* iterations of a loop can use the contents from earlier iterations */
  if (var->kind == KJ_V_LOCAL && at->loops) own->is_shared_out = true;
  own->region = at->region;
}

static void note_expr(void *data, kt_expr **expr)
{
  scan *at = data;
  const kt_expr *e = *expr;
  if (e->kind == KJ_T_ADDRESS && ki_type(at->s->c->types, e->x->type)->space == KJ_SPACE_LOCAL)
    at->has_local_address = true;
  if (e->kind == KJ_T_VAR) note(at, e->var);
}

static void note_assignment(scan *at, kt_var *var, kt_expr *value)
{
  note(at, var);
  kp_simt_variable *own = var->simt;
  own->assignments++;
  own->value = value;
  own->home = at->region;
}

static void note_stmt(void *data, kt_stmt *stmt)
{
  scan *at = data;
  if (stmt->kind == KJ_TS_ASSIGN) note_assignment(at, stmt->var, stmt->value);
  if (stmt->kind == KJ_TS_FOR) note_assignment(at, stmt->var, NULL);
}

static void scan_region(scan *at, kt_stmt *stmt)
{
  KJ_ASSERT(at->region == 0); /* thread loops are not nested */
  at->region = ++at->region_count;
  for (size_t i = 0; i < stmt->vars.count; i++) note_assignment(at, stmt->vars.items[i], NULL);
  kt_walk_tstmts(&stmt->body, note_stmt, note_expr, at);
  at->region = 0;
}

static void need_slot(kt_var *var)
{
  KJ_ASSERT(var->simt || !is_own(var));
  if (is_own(var)) var->simt->needs_slot = true;
}

static void scan_sync(kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_WARP || stmt->kind == KJ_TS_BARRIER_REDUCE);
  if (stmt->var) {
    need_slot(stmt->var);
    stmt->var->simt->assignments++;
  }
  if (!stmt->value) return;
  if (stmt->value->kind == KJ_T_VAR) need_slot(stmt->value->var);
  if (stmt->value->x && stmt->value->x->kind == KJ_T_VAR) need_slot(stmt->value->x->var);
  for (size_t i = 0; i < stmt->value->args.count; i++)
    if (stmt->value->args.items[i]->kind == KJ_T_VAR) need_slot(stmt->value->args.items[i]->var);
}

static void scan_list(scan *at, kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    switch (KJ_AMONG(stmt->kind)) {
    case KJ_TS_THREADS:
    case KJ_TS_GRID_FOR:
    case KJ_TS_BLOCK_FOR: scan_region(at, stmt); break;
    case KJ_TS_WARP:
    case KJ_TS_BARRIER_REDUCE: scan_sync(stmt); break;
    default: {
      uint32_t is_loop = kt_flow_of(stmt) == KJ_FLOW_LOOP;
      at->loops += is_loop;
      scan_list(at, &stmt->body);
      scan_list(at, &stmt->otherwise);
      at->loops -= is_loop;
    }
    }
  }
}

/* ---- values that are computed again, and values that are stored ---- */

static bool can_remake(kp_simt *s, kt_var *var);

static bool is_array(kp_simt *s, const kt_var *var)
{
  const ki_type_info *info = ki_type(s->c->types, var->type);
  return info->class_ == KJ_CLASS_ARRAY && info->space != KJ_SPACE_VALUE;
}

/* Returns whether the value of a let that contains the variable can be computed again. If `keep` is
 * set, makes the variable a slot if this is necessary for computing the let again. */
static bool can_use(kp_simt *s, kt_var *var, bool keep)
{
  if (var->is_slot || !is_own(var)) return var->kind != KJ_V_VAR;
  if (var->kind == KJ_V_LOCAL) return var->is_slot = true;
  if (var->kind == KJ_V_VAR) return false;
  if (!var->simt->needs_slot && can_remake(s, var)) return true;
  if (!keep && !var->simt->is_shared_out && !var->simt->needs_slot) return false;
  return var->is_slot = true;
}

typedef struct use {
  kp_simt *s;
  bool keep;
} use;

static bool cannot_use(void *data, const kt_expr *e)
{
  const use *u = data;
  return e->kind == KJ_T_VAR && !can_use(u->s, e->var, u->keep);
}

static void drop_check(void *data, kt_expr **expr)
{
  (void)data;
  (*expr)->is_checked = false;
}

static bool can_remake(kp_simt *s, kt_var *var)
{
  kp_simt_variable *own = var->simt;
  if (own->remake == KJ_REMAKE_UNKNOWN) {
    own->remake = KJ_REMAKE_BUSY;
    uint32_t budget = is_array(s, var) ? UINT32_MAX : REMAKE_BUDGET;
    use u = { s, is_array(s, var) };
    bool can = var->kind == KJ_V_LET && own->assignments == 1 && own->value &&
               kp_is_cheap(own->value, budget) && !kt_any_texpr(own->value, cannot_use, &u);
    own->remake = can ? KJ_REMAKE_YES : KJ_REMAKE_NO;
    /* the let's value is copied, because drop_check changes it */
    if (can) {
      own->value = kt_clone_texpr(s->c, own->value, NULL, NULL);
      kt_walk_texpr(&own->value, drop_check, NULL);
    }
  }
  return own->remake == KJ_REMAKE_YES;
}

/* Returns whether the variable becomes a slot that refers to a local array. The pass does not know
 * to which array it refers, so all local arrays must then be slots. */
static bool leads_to_local(kp_simt *s, kt_var *var)
{
  return is_own(var) && var->kind != KJ_V_LOCAL && kt_holds_local(s->c->types, var->type) &&
         (var->simt->is_shared_out || var->simt->needs_slot) && !can_remake(s, var);
}

static void decide(kp_simt *s, kt_var *var)
{
  KJ_ASSERT(var->simt);
  if (!is_own(var)) return;
  const kp_simt_variable *own = var->simt;
  if (!own->is_shared_out && !own->needs_slot) return;
  if (!own->needs_slot && can_remake(s, var)) return;
  var->is_slot = true;
}

/* ---- the starts of regions ---- */

typedef struct remaking {
  kp_simt *s;
  uint32_t region, region_count;
  kt_stmts head;
} remaking;

static kt_var *use_here(void *data, kt_var *var)
{
  remaking *at = data;
  kp_simt_variable *own = var->simt;
  if (!own || var->is_slot || var->is_uniform || own->remake != KJ_REMAKE_YES ||
      own->home == at->region)
    return var;
  if (own->copy_region == at->region) return own->copy;
  kt_var *copy = kp_new_local(at->s, KJ_V_LET, var->name, var->type, var->location);
  copy->is_narrow = var->is_narrow;
  copy->range = var->range;
  kt_expr *value = kt_clone_texpr(at->s->c, own->value, use_here, at);
  kp_append_stmt(at->s, &at->head, kp_new_assign(at->s, copy, value));
  own->copy = copy;
  own->copy_region = at->region;
  return copy;
}

static void replace(void *data, kt_expr **expr)
{
  if ((*expr)->kind == KJ_T_VAR) (*expr)->var = use_here(data, (*expr)->var);
}

static void drop_home_use(void *data, kt_expr **expr)
{
  (void)data;
  if ((*expr)->kind == KJ_T_VAR && (*expr)->var->simt) (*expr)->var->simt->home_uses--;
}

static void drop_uses(kt_expr *value) { kt_walk_texpr(&value, drop_home_use, NULL); }

static void count_home_use(void *data, kt_expr **expr)
{
  (void)data;
  if ((*expr)->kind == KJ_T_VAR && (*expr)->var->simt) (*expr)->var->simt->home_uses++;
}

/* Removes lets at the top level whose value was used only by other regions. It goes from the last
 * let to the first, because a let can use earlier lets. A let whose value can fail is not removed,
 * because its check must be executed: the other regions compute the value without checks, and they
 * may have no iterations. */
static void drop_unused(remaking *at, kt_stmts *body)
{
  kt_stmts kept = { 0 }, in_order = { 0 };
  kt_walk_tstmts(body, NULL, count_home_use, NULL);
  for (size_t i = body->count; i-- > 0;) {
    kt_stmt *stmt = body->items[i];
    kp_simt_variable *own =
      stmt->kind == KJ_TS_ASSIGN && !stmt->var->is_slot ? stmt->var->simt : NULL;
    bool is_unused = own && own->remake == KJ_REMAKE_YES && !own->home_uses;
    if (is_unused && !kp_may_fail(stmt->value)) drop_uses(stmt->value);
    else kp_append_stmt(at->s, &kept, stmt);
  }
  for (size_t i = kept.count; i-- > 0;) kp_append_stmt(at->s, &in_order, kept.items[i]);
  *body = in_order;
}

static void remake_region(remaking *at, kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_THREADS || kt_flow_of(stmt) == KJ_FLOW_RANGE);
  at->region = ++at->region_count;
  at->head = (kt_stmts){ 0 };
  kt_walk_tstmts(&stmt->body, NULL, replace, at);
  drop_unused(at, &stmt->body);
  if (!at->head.count) return;
  kp_append_stmts(at->s, &at->head, &stmt->body);
  stmt->body = at->head;
}

/* ---- hints for lowering ---- */

uint64_t kp_short_trip_count(const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_FOR);
  if (!kt_is_constant(stmt->first) || !kt_is_constant(stmt->stop) ||
      (stmt->step && !kt_is_constant(stmt->step)))
    return 0;
  __int128 span = stmt->stop->integer - stmt->first->integer,
           step = stmt->step ? stmt->step->integer : 1;
  if (step == 0 || (span > 0) != (step > 0)) return 0;
  __int128 count = (span + step + (step > 0 ? -1 : 1)) / step;
  return count > MAX_UNROLLED_TRIPS ? 0 : (uint64_t)count;
}

static uint64_t unroll(kt_stmt *stmt);

static uint64_t unroll_list(kt_stmts *list)
{
  uint64_t nodes = 0;
  for (size_t i = 0; i < list->count; i++) nodes += unroll(list->items[i]);
  return nodes;
}

/* Marks short loops for unrolling, starting with inner loops: LLVM vectorizes the loop over x only
 * if it contains no other loop. Returns the size of the code after unrolling. */
static uint64_t unroll(kt_stmt *stmt)
{
  uint64_t nodes = 1;
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
    nodes += kt_count_nodes(kt_stmt_operand(stmt, i), SIZE_MAX);
  uint64_t body = unroll_list(&stmt->body) + unroll_list(&stmt->otherwise);
  if (stmt->kind == KJ_TS_WHILE) return nodes + body + MAX_UNROLLED_NODES;
  if (stmt->kind != KJ_TS_FOR) return nodes + body;
  uint64_t trips = kp_short_trip_count(stmt);
  if (!trips || trips * body > MAX_UNROLLED_NODES) return nodes + body + MAX_UNROLLED_NODES;
  if (stmt->unroll == KJ_UNROLL_NONE) stmt->unroll = KJ_UNROLL_FULL;
  return nodes + trips * body;
}

typedef struct thread_use {
  const kt_compilation *c;
  bool is_found;
} thread_use;

static void find_thread_use(void *data, kt_expr **expr)
{
  thread_use *use = data;
  const kt_expr *e = *expr;
  kt_effects effects = { 0 };
  if (e->kind == KJ_T_BUILTIN && !(e->builtin->flags & (KJ_PLACE | KJ_READS)))
    kt_add_effects(use->c, e, &effects);
  if (e->kind == KJ_T_CALL && e->instance->uses_positions) effects.has_positions = true;
  if (effects.has_positions || (e->kind == KJ_T_VAR && e->var->is_slot)) use->is_found = true;
}

static void find_thread_assignment(void *data, kt_stmt *stmt)
{
  thread_use *use = data;
  if (stmt->kind == KJ_TS_ASSIGN && stmt->var->is_slot) use->is_found = true;
}

static bool is_threadless(const kt_compilation *c, kt_stmt *stmt)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  thread_use use = { .c = c };
  kt_walk_tstmts(&stmt->body, find_thread_assignment, find_thread_use, &use);
  return !use.is_found && !stmt->is_guarded && c->code->cpu_fibers != KJ_FIBERS_WARPS;
}

static void finish_list(remaking *at, kt_stmts *list);

/* Completes a statement: adds the lets that each region in it computes again, and marks short loops
 * for unrolling. Returns whether the statement still has an effect. */
static bool finish_stmt(remaking *at, kt_stmt *stmt)
{
  bool is_range = kt_flow_of(stmt) == KJ_FLOW_RANGE;
  if (!is_range && stmt->kind != KJ_TS_THREADS) {
    /* unrolling would copy whole thread loops without benefit, because slots are in memory
     * anyway */
    if (stmt->is_joint && kt_flow_of(stmt) == KJ_FLOW_LOOP) stmt->unroll = KJ_UNROLL_NEVER;
    finish_list(at, &stmt->body);
    finish_list(at, &stmt->otherwise);
    return true;
  }
  remake_region(at, stmt);
  unroll_list(&stmt->body);
  stmt->is_threadless = is_range && is_threadless(at->s->c, stmt);
  return is_range || stmt->body.count;
}

static void finish_list(remaking *at, kt_stmts *list)
{
  kt_stmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++)
    if (finish_stmt(at, list->items[i])) kp_append_stmt(at->s, &kept, list->items[i]);
  *list = kept;
}

void kp_place_variables(kp_simt *s)
{
  kt_vars *locals = &s->kernel->locals;
  for (size_t i = 0; i < locals->count; i++)
    if (!locals->items[i]->simt) locals->items[i]->simt = KJ_NEW(s->c->arena, kp_simt_variable);
  scan at = { .s = s };
  scan_list(&at, &s->kernel->body);
  bool are_kept = at.has_local_address;
  for (size_t i = 0; i < locals->count && !are_kept; i++)
    are_kept = leads_to_local(s, locals->items[i]);
  for (size_t i = 0; i < locals->count && are_kept && at.region_count > 1; i++)
    if (locals->items[i]->kind == KJ_V_LOCAL) need_slot(locals->items[i]);
  for (size_t i = 0; i < locals->count; i++) decide(s, locals->items[i]);
  remaking made = { .s = s };
  finish_list(&made, &s->kernel->body);
}

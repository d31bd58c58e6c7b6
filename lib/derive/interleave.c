/* `@interleave`: executes several iterations of a loop together. The result has a copy of the
 * loop's body for each iteration. If the body contains an inner loop with the same trip count in
 * all iterations, the copies share one inner loop, which executes their inner bodies. The calls in
 * the body are inlined first.
 *
 *     for l in range(2) @interleave { s[l] = dot(x[l], y) }
 *
 * becomes, for a func `dot` that sums over the elements of two rows,
 *
 *     sum_0 = 0
 *     sum_1 = 0
 *     for k in range(n) {
 *       sum_0 += x[0, k] * y[k]
 *       sum_1 += x[1, k] * y[k]
 *     }
 *     s[0] = sum_0
 *     s[1] = sum_1
 *
 * The code then loads y[k] once for both iterations, and the additions to the two sums do not wait
 * for each other. The statements of one iteration keep their order. Between two inner loops, the
 * iterations are executed one after the other. */
#include "derive/derive.h"

enum { MOST_LANES = 16, UNROLLED = 4, FEW_TRIPS = 32, FEW_STMTS = 512, MOST_EXPRS = 16384 };

/* One iteration. copies: indexed by variable of the prepared body: the variable that replaces it in
 * this iteration, or NULL. */
typedef struct lane {
  kt_var **copies;
} lane;

typedef struct interleaving {
  kd_derivation d;
  const kt_stmt *loop;
  size_t outer; /* variables with a smaller index exist outside of the loop */
  size_t lane_count;
  lane lanes[MOST_LANES];
  uint32_t *assignments; /* indexed by variable: number of statements that assign it */
  bool *is_uniform;      /* indexed by variable: whether it has the same value in all iterations */
  bool has_common_loop;  /* the result contains a loop that all iterations share */
} interleaving;

/* ---- bodies that can be interleaved ---- */

static bool refuses_stmt(void *data, const kt_stmt *stmt)
{
  (void)data;
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN:
  case KJ_TS_STORE:
  case KJ_TS_EVALUATE:
  case KJ_TS_IF:
  case KJ_TS_WHILE:
  case KJ_TS_FOR:
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE:
  case KJ_TS_RETURN: return false;
  default: return true;
  }
}

typedef struct assigned {
  const kt_compilation *c;
  const kt_var *vars[64];
  size_t count;
  bool is_twice;
} assigned;

/* Records the array variables that are assigned. Returns true if an array variable is assigned
 * twice. */
static bool note_array(void *data, const kt_stmt *stmt)
{
  assigned *a = data;
  if (stmt->kind != KJ_TS_ASSIGN || !kt_holds_array(a->c, stmt->var->type)) return false;
  if (!kt_is_array(a->c, stmt->var->type) || a->count == sizeof a->vars / sizeof *a->vars)
    return true;
  for (size_t i = 0; i < a->count; i++)
    if (a->vars[i] == stmt->var) return true;
  a->vars[a->count++] = stmt->var;
  return false;
}

/* Returns whether the body calls, directly or indirectly, a func that prepare.c does not inline. */
static bool refuses_callee(void *data, const kt_expr *e)
{
  const kt_compilation *c = data;
  if (e->kind != KJ_T_CALL || e->instance->function->is_extern) return false;
  const kt_instance *callee = e->instance;
  if (!callee->is_inferred || callee->has_barrier || callee->has_warp) return true;
  if (callee->result != KJIT_VOID && kt_holds_array(c, callee->result)) return true;
  for (size_t i = 0; i < callee->locals.count; i++)
    if (callee->locals.items[i]->kind == KJ_V_SHARED) return true;
  assigned a = { .c = c };
  return kt_any_in_tstmts(&callee->body, refuses_stmt, NULL, NULL) ||
         kt_any_in_tstmts(&callee->body, note_array, NULL, &a) ||
         kt_any_in_tstmts(&callee->body, NULL, refuses_callee, data);
}

static bool returns(void *data, const kt_stmt *stmt)
{
  (void)data;
  return stmt->kind == KJ_TS_RETURN;
}

/* Returns whether a jump in the body leaves the iteration. */
static bool leaves(const kt_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const kt_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_CONTINUE) return true;
    bool is_loop = kt_flow_of(stmt) == KJ_FLOW_LOOP;
    if (!is_loop && (leaves(&stmt->body) || leaves(&stmt->otherwise))) return true;
  }
  return false;
}

static bool assigns_outer(void *data, const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_ASSIGN && stmt->var->index < *(const size_t *)data;
}

/* Returns whether the iterations can be executed in any order, because they access only variables
 * and memory of the block. */
static bool is_independent(const kt_compilation *c, const kt_stmts *body, size_t outer)
{
  assigned a = { .c = c };
  kt_effects effects = { 0 };
  for (size_t i = 0; i < body->count; i++) kt_add_stmt_effects(c, body->items[i], &effects);
  if (effects.acts || effects.writes & KJ_MEMORY_GLOBAL) return false;
  void *data = (void *)c;
  return !leaves(body) && !kt_any_in_tstmts(body, returns, NULL, NULL) &&
         !kt_any_in_tstmts(body, assigns_outer, NULL, &outer) &&
         !kt_any_in_tstmts(body, refuses_stmt, NULL, NULL) &&
         !kt_any_in_tstmts(body, note_array, NULL, &a) &&
         !kt_any_in_tstmts(body, NULL, refuses_callee, data);
}

/* ---- variables ---- */

static kt_var *var_of_lane(interleaving *v, size_t number, const kt_var *var)
{
  if (var->index < v->outer || v->is_uniform[var->index]) return (kt_var *)var;
  kt_var **made = &v->lanes[number].copies[var->index];
  if (*made) return *made;
  *made = kt_add_variable(v->d.s, var->kind == KJ_V_LET ? KJ_V_VAR : var->kind, var->name,
                          var->type, var->location, KJ_LEVEL_THREAD);
  (*made)->alignment = var->alignment;
  (*made)->data = var->data;
  (*made)->start_alignment = var->start_alignment;
  return *made;
}

typedef struct lane_map {
  interleaving *v;
  size_t number;
} lane_map;

static kt_var *map_to_lane(void *data, kt_var *var)
{
  lane_map *m = data;
  return var_of_lane(m->v, m->number, var);
}

static kt_expr *expr_of_lane(lane_map *m, const kt_expr *e)
{
  return kt_clone_texpr(m->v->d.c, e, map_to_lane, m);
}

static void list_of_lane(lane_map *m, kt_exprs *to, const kt_exprs *from)
{
  *to = (kt_exprs){ 0 };
  for (size_t i = 0; i < from->count; i++)
    KJ_PUSH(m->v->d.arena, to, expr_of_lane(m, from->items[i]));
}

static kt_stmt *stmt_of_lane(lane_map *m, const kt_stmt *stmt);

static void block_of_lane(lane_map *m, kt_stmts *to, const kt_stmts *from)
{
  *to = (kt_stmts){ 0 };
  for (size_t i = 0; i < from->count; i++)
    KJ_PUSH(m->v->d.arena, to, stmt_of_lane(m, from->items[i]));
}

static kt_stmt *stmt_of_lane(lane_map *m, const kt_stmt *stmt)
{
  kt_stmt *copy = KJ_NEW(m->v->d.arena, kt_stmt);
  *copy = *stmt;
  kt_count_work(m->v->d.s, stmt->location);
  if (stmt->var) copy->var = var_of_lane(m->v, m->number, stmt->var);
  copy->value = expr_of_lane(m, stmt->value);
  copy->array = expr_of_lane(m, stmt->array);
  copy->first = expr_of_lane(m, stmt->first);
  copy->stop = expr_of_lane(m, stmt->stop);
  copy->step = expr_of_lane(m, stmt->step);
  list_of_lane(m, &copy->indices, &stmt->indices);
  block_of_lane(m, &copy->body, &stmt->body);
  block_of_lane(m, &copy->otherwise, &stmt->otherwise);
  return copy;
}

/* ---- values that are the same in all iterations ---- */

static bool differs(void *data, const kt_expr *e)
{
  const interleaving *v = data;
  if (e->kind == KJ_T_VAR) return e->var->index >= v->outer && !v->is_uniform[e->var->index];
  if (e->kind == KJ_T_BUILTIN) return !(e->builtin->flags & KJ_PURE) || e->x;
  return e->kind == KJ_T_LOAD || e->kind == KJ_T_CALL || e->kind == KJ_T_POINTED;
}

static bool is_same(interleaving *v, const kt_expr *e) { return !kt_any_texpr(e, differs, v); }

static bool count_expr(void *data, const kt_expr *e)
{
  (void)e;
  ++*(size_t *)data;
  return false;
}

static bool count_assignment(void *data, const kt_stmt *stmt)
{
  interleaving *v = data;
  if (stmt->kind == KJ_TS_ASSIGN) v->assignments[stmt->var->index]++;
  return false;
}

/* ---- statements ---- */

static bool is_common(interleaving *v, const kt_stmt *stmt)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN:
    return v->assignments[stmt->var->index] == 1 && stmt->var->kind != KJ_V_LOCAL &&
           is_same(v, stmt->value);
  case KJ_TS_FOR:
    return is_same(v, stmt->first) && is_same(v, stmt->stop) && is_same(v, stmt->step) &&
           !leaves(&stmt->body);
  default: return false;
  }
}

static void spread_block(interleaving *v, const kt_stmts *stmts);

/* Returns whether a loop is too long for full unrolling. Such a loop is unrolled by a factor, so
 * that several of its iterations load their elements together. */
static bool is_long(const kt_stmt *loop)
{
  if (!kt_is_constant(loop->stop) || !kt_is_constant(loop->first)) return true;
  __int128 trips = loop->stop->integer - loop->first->integer;
  return trips > FEW_TRIPS || trips * (__int128)loop->body.count > FEW_STMTS;
}

/* Returns whether the loop must be unrolled fully because it accesses thread-local arrays, which
 * become registers only if all their indices are constants. A loop without accesses to such arrays
 * can stay a loop, even if it inherits `@unroll` from a surrounding loop. */
static bool must_unroll(const interleaving *v, const kt_stmt *loop)
{
  kt_effects effects = { 0 };
  kt_add_stmt_effects(v->d.c, loop, &effects);
  return loop->unroll == KJ_UNROLL_FULL && ((effects.reads | effects.writes) & KJ_MEMORY_LOCAL);
}

static void spread_common(interleaving *v, const kt_stmt *stmt)
{
  kd_derivation *d = &v->d;
  v->is_uniform[stmt->var->index] = true;
  kt_stmt *copy = KJ_NEW(d->arena, kt_stmt);
  *copy = *stmt;
  kt_emit(d->s, copy);
  if (stmt->kind != KJ_TS_FOR) return;
  bool is_fixed = must_unroll(v, stmt);
  v->has_common_loop |= !is_fixed;
  copy->body = (kt_stmts){ 0 };
  kt_stmts *outer = d->s->out;
  d->s->out = &copy->body;
  spread_block(v, &stmt->body);
  d->s->out = outer;
  bool is_free = copy->unroll == KJ_UNROLL_NONE || copy->unroll == KJ_UNROLL_FULL;
  if (is_free && !is_fixed && is_long(copy)) copy->unroll = UNROLLED;
}

/* Emits the statements from index `first` to end - 1 for each iteration in turn. */
static void spread_run(interleaving *v, const kt_stmts *stmts, size_t first, size_t end)
{
  for (size_t number = 0; number < v->lane_count; number++) {
    lane_map map = { v, number };
    for (size_t i = first; i < end; i++) kt_emit(v->d.s, stmt_of_lane(&map, stmts->items[i]));
  }
}

static void spread_block(interleaving *v, const kt_stmts *stmts)
{
  size_t first = 0;
  for (size_t i = 0; i < stmts->count; i++) {
    if (!is_common(v, stmts->items[i])) continue;
    spread_run(v, stmts, first, i);
    spread_common(v, stmts->items[i]);
    first = i + 1;
  }
  spread_run(v, stmts, first, stmts->count);
}

/* Declares a loop variable for each iteration. */
static void start_lanes(interleaving *v)
{
  kd_derivation *d = &v->d;
  kt_var *var = v->loop->var;
  __int128 at = v->loop->first->integer;
  for (size_t i = 0; i < v->lane_count; i++, at += v->loop->step->integer) {
    v->lanes[i].copies = KJ_NEW_ARRAY(d->arena, kt_var *, d->count + 1);
    kt_var *made =
      kt_add_variable(d->s, KJ_V_LET, var->name, var->type, var->location, KJ_LEVEL_THREAD);
    v->lanes[i].copies[var->index] = made;
    kd_assign(d, made, kt_new_integer(d->s, var->type, at, var->location));
  }
}

static size_t count_trips(kt_scope *s, const kt_stmt *loop, kj_location location)
{
  if (!kt_is_constant(loop->first) || !kt_is_constant(loop->stop) || !kt_is_constant(loop->step))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`@interleave` needs a number of iterations that is known at compile time");
  __int128 first = loop->first->integer, stop = loop->stop->integer, step = loop->step->integer,
           way = step > 0 ? stop - first : first - stop, by = step > 0 ? step : -step,
           count = way > 0 ? (way + by - 1) / by : 0;
  if (count > MOST_LANES)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`@interleave` needs at most %d iterations, got %lld",
            MOST_LANES, (long long)count);
  return (size_t)count;
}

bool kd_interleave(kt_scope *s, const kt_stmt *loop, size_t outer, kj_location location)
{
  interleaving *v = KJ_NEW(s->arena, interleaving);
  v->loop = loop;
  v->outer = outer;
  v->lane_count = count_trips(s, loop, location);
  v->d = (kd_derivation){ .s = s,
                          .c = s->c,
                          .arena = s->arena,
                          .record = s->record,
                          .primal = s->record,
                          .location = loop->location };
  if (!v->lane_count || s->is_changed || !is_independent(s->c, &loop->body, outer)) return false;
  kd_derivation *d = &v->d;
  kd_prepare_loop_body(d, loop, outer);
  d->count = s->instance->params.count + s->instance->locals.count;
  v->assignments = KJ_NEW_ARRAY(s->arena, uint32_t, d->count + 1);
  v->is_uniform = KJ_NEW_ARRAY(s->arena, bool, d->count + 1);
  size_t exprs = 0;
  kt_any_in_tstmts(&d->body, count_assignment, NULL, v);
  kt_any_in_tstmts(&d->body, NULL, count_expr, &exprs);
  if (exprs * v->lane_count > MOST_EXPRS) return false;
  kt_stmts made = { 0 }, *out = s->out;
  s->out = &made;
  start_lanes(v);
  spread_block(v, &d->body);
  s->out = out;
  if (!v->has_common_loop) return false;
  for (size_t i = 0; i < made.count; i++) kt_emit(s, made.items[i]);
  return true;
}

/* Determines what a kernel requires of its launch: fibers (CPU), whether it needs a block of
 * threads, and the size of dynamic shared memory. Also rejects operations that a C function must
 * not contain. */
#include "pass/interval.h"
#include "pass/simt.h"
#include "pass/pass.h"

/* ---- synchronization beyond a block ----
 *
 * grid_sync requires that all blocks are resident at once; cluster operations require clusters. On
 * the CPU, grid_sync needs a fiber for each block of the grid, and cluster operations a fiber for
 * each block of the cluster. Named barriers and mbarriers, with which a warp waits for another
 * warp, need a fiber for each warp. */

static bool is_of_cluster(ki_builtin_id id)
{
  static const ki_builtin_id ids[] = { KJ_BUILTIN_CLUSTER_SYNC, KJ_BUILTIN_CLUSTER_ARRIVE,
                                       KJ_BUILTIN_CLUSTER_WAIT, KJ_BUILTIN_MAP_SHARED_RANK };
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (ids[i] == id) return true;
  return false;
}

static void find_fibers_in_expr(void *data, kt_expr **expr)
{
  kt_compilation *c = data;
  const kt_expr *e = *expr;
  if (e->kind != KJ_T_BUILTIN) return;
  if (e->builtin->id == KJ_BUILTIN_GRID_SYNC) c->code->is_cooperative = true;
  if (is_of_cluster(e->builtin->id)) c->has_cluster = true;
  if (e->builtin->flags & KJ_WAITS) c->code->cpu_fibers = KJ_FIBERS_WARPS;
}

void kp_find_fibers(kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++) {
    const kt_instance *instance = c->instances.items[i];
    kt_walk_tstmts(&c->instances.items[i]->body, NULL, find_fibers_in_expr, c);
    if (ki_get_attribute(&instance->function->attributes, KJ_ATTRIBUTE_COOPERATIVE))
      c->code->is_cooperative = true;
  }
  if (c->code->cpu_fibers == KJ_FIBERS_NONE && (c->code->is_cooperative || c->has_cluster))
    c->code->cpu_fibers = KJ_FIBERS_BLOCKS;
}

/* ---- CPU: range-only kernels, which need no threads ----
 *
 * Such a kernel consists of grid_ranges, reads no position and uses no shared memory. Its result
 * therefore does not depend on the number of threads in a block. Code outside of the ranges must
 * have no effect, because the effect would happen once for each thread. */

typedef struct range_check {
  bool has_position, has_sync, has_storage;
} range_check;

static bool is_position(const kt_expr *e)
{
  if (e->kind == KJ_T_CALL) return e->instance->uses_positions;
  if (e->kind != KJ_T_BUILTIN) return false;
  static const ki_builtin_id positions[] = {
    KJ_BUILTIN_BLOCK_IDX,        KJ_BUILTIN_BLOCK_DIM,         KJ_BUILTIN_GRID_DIM,
    KJ_BUILTIN_GRIDSIZE,         KJ_BUILTIN_CLUSTER_IDX,       KJ_BUILTIN_CLUSTER_DIM,
    KJ_BUILTIN_CLUSTER_GRID_DIM, KJ_BUILTIN_CLUSTER_BLOCK_IDX, KJ_BUILTIN_CLUSTER_RANK,
    KJ_BUILTIN_CLUSTER_SIZE
  };
  if ((e->builtin->flags & KJ_THREAD) && (e->builtin->flags & KJ_PURE)) return true;
  for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
    if (e->builtin->id == positions[i]) return true;
  return false;
}

static void check_expr(void *data, kt_expr **expr)
{
  range_check *check = data;
  const kt_expr *e = *expr;
  if (is_position(e)) check->has_position = true;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP)))
    check->has_sync = true;
}

static void check_stmt(void *data, kt_stmt *stmt)
{
  range_check *check = data;
  if (stmt->kind == KJ_TS_BLOCK_FOR) check->has_sync = true;
}

/* Returns whether a range's extents have effects other than failing. Each block evaluates the
 * extents for its part of the range, so an effect would be repeated. A failure may be repeated,
 * because only the first failure is reported. */
static bool do_extents_act(const kt_compilation *c, const kt_stmt *range)
{
  kt_effects effects = { 0 };
  for (size_t i = 0; i < range->extents.count; i++)
    kt_add_effects(c, range->extents.items[i], &effects);
  return effects.acts || effects.writes;
}

/* Returns whether the statements in the list have no effect outside of their grid_ranges. */
static bool only_ranges_write(const kt_compilation *c, const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    const kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_GRID_FOR) {
      if (do_extents_act(c, stmt)) return false;
      continue;
    }
    if (!stmt->body.count && !stmt->otherwise.count) {
      kt_effects effects = { 0 };
      kt_add_stmt_effects(c, stmt, &effects);
      if (kt_has_any_effect(&effects)) return false;
    }
    kt_effects header = { 0 };
    kt_add_effects(c, stmt->value, &header);
    kt_add_effects(c, stmt->first, &header);
    kt_add_effects(c, stmt->stop, &header);
    kt_add_effects(c, stmt->step, &header);
    if (kt_has_any_effect(&header) || !only_ranges_write(c, &stmt->body) ||
        !only_ranges_write(c, &stmt->otherwise))
      return false;
  }
  return true;
}

/* Returns whether any instance has shared memory, including functions that the kernel inlines or
 * calls. */
static bool has_shared(const kp_simt *s)
{
  for (size_t i = 0; i < s->c->instances.count; i++) {
    const kt_instance *instance = s->c->instances.items[i];
    for (size_t k = 0; k < instance->locals.count; k++)
      if (instance->locals.items[k]->kind == KJ_V_SHARED) return true;
  }
  return false;
}

bool kp_is_range_only(const kp_simt *s)
{
  if (!s->has_range || has_shared(s)) return false;
  range_check check = { 0 };
  kt_walk_tstmts(&s->kernel->body, check_stmt, check_expr, &check);
  return !check.has_position && !check.has_sync && only_ranges_write(s->c, &s->kernel->body);
}

/* ---- dynamic shared memory that every launch uses ----
 *
 * The pass finds the minimum size of the dynamic shared array (`shared x: T[]`) that every launch
 * uses. A launch with less dynamic shared memory is then rejected, instead of accessing memory out
 * of bounds.
 *
 * The pass considers accesses that every thread makes before any statement with which a thread can
 * leave the kernel. The index must be a constant, or threadIdx or thread_rank plus a constant. The
 * pass also considers views of the array's bytes that have a static shape. Needs: typed instances.
 * Guarantees: the size is never larger than the size that the launch uses. */

/* An index's value, or an array's start. An index is base plus offset. A base of 0 means a
 * constant, 1 to 3 mean threadIdx.x to .z, and 4 means thread_rank. For an array, `offset` is the
 * distance in bytes from the start of the dynamic shared array. */
typedef struct position {
  bool known;
  uint32_t base;
  int64_t offset;
} position;

typedef struct pass {
  kt_compilation *c;
  kp_launch_limits limits;
  position *lets;  /* indexed by variable: the position that is the let's value */
  int64_t largest; /* size in bytes of the largest element type of the shared arrays */
} pass;

/* ---- indices ---- */

static position find(const pass *p, const kt_expr *e);

enum { THREAD_RANK = 4 };

static position find_sum(const pass *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_BINARY);
  position x = find(p, e->x), y = find(p, e->y);
  if (!x.known || !y.known || (x.base && y.base)) return (position){ 0 };
  return (position){ .known = true, .base = x.base + y.base, .offset = x.offset + y.offset };
}

static position find_builtin(const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_BUILTIN);
  if (e->builtin->id == KJ_BUILTIN_THREAD_IDX && e->dimension < 3)
    return (position){ .known = true, .base = 1 + e->dimension };
  return (position){ .known = e->builtin->id == KJ_BUILTIN_THREAD_RANK, .base = THREAD_RANK };
}

static position find_exact(const pass *p, const kt_expr *e)
{
  bool is_small = e->kind == KJ_T_CONST && e->integer >= 0 && e->integer <= INT32_MAX;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST:
    return (position){ .known = is_small, .offset = is_small ? (int64_t)e->integer : 0 };
  case KJ_T_VAR: return p->lets[e->var->index];
  case KJ_T_CONVERT: return ki_is_weak(e->x->type) ? (position){ 0 } : find(p, e->x);
  case KJ_T_BINARY: return e->op == KJIT_OP_ADD ? find_sum(p, e) : (position){ 0 };
  case KJ_T_BUILTIN: return find_builtin(e);
  default: return (position){ 0 };
  }
}

/* Returns whether the type can represent every thread's value. For example, u8(threadIdx.x) differs
 * from threadIdx.x in a block of more than 256 threads. Returns false for types other than
 * integers, because the conversion can round. */
static bool is_held(const pass *p, kjit_type type, position at)
{
  KJ_ASSERT(at.known && at.base <= THREAD_RANK && at.offset >= 0);
  ki_builtin_id id = at.base == THREAD_RANK ? KJ_BUILTIN_THREAD_RANK : KJ_BUILTIN_THREAD_IDX;
  uint32_t dimension = at.base && at.base < THREAD_RANK ? at.base - 1 : 0;
  kt_interval all = kp_whole_interval(kp_find_integer(p->c->types, type)),
              threads =
                at.base ? kp_position_interval(&p->limits, id, dimension) : kp_make_interval(0, 0);
  return all.known && threads.known && threads.most + at.offset <= all.most;
}

static position find(const pass *p, const kt_expr *e)
{
  enum { MOST = 1 << 24 };
  position at = find_exact(p, e);
  at.known = at.known && at.offset <= MOST && is_held(p, e->type, at);
  return at;
}

static bool is_array(const pass *p, const kt_expr *e)
{
  return !ki_is_weak(e->type) && ki_type(p->c->types, e->type)->class_ == KJ_CLASS_ARRAY;
}

static bool is_own_array(const pass *p, const kt_expr *array)
{
  const kt_var *var =
    array->kind == KJ_T_VAR && array->var->kind == KJ_V_SHARED ? array->var : NULL;
  return var && !var->sized_by && !ki_type(p->c->types, var->type)->is_static;
}

static position find_array(const pass *p, const kt_expr *array)
{
  if (is_own_array(p, array)) return (position){ .known = true };
  if (array->kind == KJ_T_VAR) return p->lets[array->var->index];
  if (array->kind != KJ_T_VIEW) return (position){ 0 };
  position start = find_array(p, array->x);
  const ki_type_info *info = ki_type(p->c->types, array->x->type);
  if (!start.known || array->args.count == 0) return start;
  position at = find(p, array->args.items[0]);
  if (!at.known || at.base || info->rank != 1) return (position){ 0 };
  start.offset += at.offset * ki_type(p->c->types, info->element)->size_bytes;
  return start;
}

/* ---- accesses ---- */

static void need(pass *p, uint32_t base, int64_t elements)
{
  uint32_t *most = &p->c->code->own_shared_need[base];
  if (elements > *most && elements <= INT32_MAX) *most = (uint32_t)elements;
}

static void note(pass *p, const kt_expr *array, const kt_exprs *indices)
{
  if (!is_own_array(p, array) || indices->count != 1) return;
  position at = find(p, indices->items[0]);
  if (at.known) need(p, at.base, at.offset + 1);
}

/* Records the size that a view needs. The size is stored as a number of elements: the number of
 * bytes divided by the size of the largest element type, so that the requirement never exceeds the
 * view size. */
static void note_view(pass *p, const kt_expr *view)
{
  const ki_type_info *to = ki_type(p->c->types, view->type);
  position start = kt_has_new_shape(view) && to->is_static ? find_array(p, view) : (position){ 0 };
  if (!start.known) return;
  int64_t end =
    start.offset + (int64_t)(ki_element_count(to) * ki_type(p->c->types, to->element)->size_bytes);
  need(p, 0, end / p->largest);
}

/* Visits all subexpressions that are evaluated whenever e is evaluated. */
static void visit(pass *p, const kt_expr *e)
{
  if (!e) return;
  bool is_lazy = e->kind == KJ_T_COND || e->kind == KJ_T_LOGIC;
  visit(p, e->x);
  if (is_lazy) return;
  for (size_t i = 1; i < kt_operand_count(e); i++) visit(p, kt_operand(e, i));
  if (e->kind == KJ_T_LOAD) note(p, e->x, &e->args);
  if (e->kind == KJ_T_VIEW) note_view(p, e);
  if (e->kind == KJ_T_BUILTIN && e->x && (e->builtin->flags & (KJ_PLACE | KJ_READS)))
    note(p, e->x, &e->indices);
}

static bool may_leave(const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    const kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || stmt->kind == KJ_TS_FAIL || may_leave(&stmt->body) ||
        may_leave(&stmt->otherwise))
      return true;
  }
  return false;
}

/* Sets *data if the expression calls a function that can fail. A failing thread leaves the kernel
 * in this call. */
static void find_call(void *data, kt_expr **at)
{
  if ((*at)->kind == KJ_T_CALL && (*at)->instance->may_fail) *(bool *)data = true;
}

static bool ends_here(kt_stmt *stmt)
{
  kt_stmts one = { .items = &stmt, .count = 1 };
  bool has_failing_call = false;
  kt_walk_tstmts(&one, NULL, find_call, &has_failing_call);
  return has_failing_call || may_leave(&one);
}

static int64_t find_largest(kt_compilation *c, const kt_instance *kernel)
{
  int64_t largest = 1;
  for (size_t i = 0; i < kernel->locals.count; i++) {
    const kt_var *var = kernel->locals.items[i];
    if (var->kind != KJ_V_SHARED) continue;
    int64_t bytes = ki_type(c->types, ki_type(c->types, var->type)->element)->size_bytes;
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

void kp_find_shared_need(kt_compilation *c)
{
  kt_instance *kernel = c->instances.items[0];
  pass p = { .c = c,
             .limits = kp_find_limits(c),
             .largest = find_largest(c, kernel),
             .lets =
               KJ_NEW_ARRAY(c->arena, position, kernel->params.count + kernel->locals.count + 1) };
  for (size_t i = 0; i < kernel->body.count; i++) {
    kt_stmt *stmt = kernel->body.items[i];
    bool is_last = ends_here(stmt);
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++) visit(&p, kt_stmt_operand(stmt, k));
    if (is_last) return;
    if (stmt->kind == KJ_TS_STORE) note(&p, stmt->array, &stmt->indices);
    if (stmt->kind == KJ_TS_ASSIGN && stmt->value && stmt->var->kind == KJ_V_LET)
      p.lets[stmt->var->index] =
        is_array(&p, stmt->value) ? find_array(&p, stmt->value) : find(&p, stmt->value);
  }
}

/* ---- operations that a C function must not contain ----
 *
 * An application calls a C function outside of any kernel.
 *
 * Needs: typed instances with marked checks. Guarantees: on the CPU, the function uses no built-in
 * of a thread, a block or a grid. On every target, it does not print. If callers pass no failure
 * record, no instance is marked as failing, and a failure ends the process like abort in C. */

typedef struct finder {
  kt_compilation *c;
  const char *what; /* name of the first operation that only kernels may contain */
  kj_location location;
} finder;

static void found(finder *f, const char *what, kj_location location)
{
  if (f->what) return;
  f->what = what;
  f->location = location;
}

static void find_in_expr(void *data, kt_expr **at)
{
  const kt_expr *e = *at;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_THREAD | KJ_BARRIER | KJ_WARP)))
    found(data, e->builtin->name, e->location);
}

static void find_in_stmt(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_GRID_FOR) found(data, "grid_range", stmt->location);
  if (stmt->kind == KJ_TS_BLOCK_FOR) found(data, "block_range", stmt->location);
}

static void find_storage(finder *f, const kt_instance *instance)
{
  for (size_t i = 0; i < instance->locals.count; i++)
    if (instance->locals.items[i]->kind == KJ_V_SHARED)
      found(f, "shared memory", instance->locals.items[i]->location);
}

static void find_print(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_PRINT) found(data, "print", stmt->location);
}

static void refuse(const finder *f, const char *where)
{
  const char *name = f->c->instances.items[0]->function->decl->name;
  if (f->what)
    kt_fail(f->c, f->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` cannot be used in a function that is called outside of a kernel%s: `%s`", f->what,
            where, name);
}

/* Rejects an untrusted function (a guest's) that can fail, if callers pass no failure record: the
 * failure would end the process. */
static void refuse_trap(kt_compilation *c)
{
  const kt_instance *root = c->instances.items[0];
  if (c->module->has_guest && !c->request->has_record && root->may_fail)
    kt_fail(
      c, root->function->decl->location, KJIT_ERROR_REFUSED,
      "guest function `%s` can fail, and a failing C function would abort the calling process; "
      "use kjit_call_function, which returns the failure",
      root->function->decl->name);
}

void kp_check_c_function(kt_compilation *c)
{
  KJ_ASSERT(c->request->symbol);
  refuse_trap(c);
  finder f = { .c = c };
  bool is_cpu = c->request->target.kind == KJ_TARGET_CPU;
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = c->instances.items[i];
    if (is_cpu) kt_walk_tstmts(&instance->body, find_in_stmt, find_in_expr, &f);
    if (is_cpu) find_storage(&f, instance);
  }
  refuse(&f, ", because there are no threads and blocks");
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_walk_tstmts(&c->instances.items[i]->body, find_print, NULL, &f);
    if (!c->request->has_record) c->instances.items[i]->may_fail = false;
  }
  refuse(&f, ", because no launch delivers the printed lines");
}

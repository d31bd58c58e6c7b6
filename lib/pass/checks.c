/* Marks the operations that have a run-time check, and the instances that can fail.
 *
 * kp_mark_checks sets is_checked for every array access and division for which the request enables
 * a check, unless it can prove that the check never fails. Other passes then remove checks that
 * cannot fail, and kp_find_failing_instances sets may_fail of instances. Code that later passes add
 * is not checked, because it is correct by construction. */
#include <string.h>

#include "pass/pass.h"

typedef struct marker {
  kt_compilation *c;
  uint32_t checks;
} marker;

/* ---- operations to check ---- */

static bool are_in_static_bounds(const marker *m, const kt_expr *array, const kt_exprs *indices)
{
  KJ_ASSERT(indices->count <= ki_type(m->c->types, array->type)->rank);
  const ki_type_info *info = ki_type(m->c->types, array->type);
  for (size_t i = 0; i < indices->count; i++) {
    const kt_expr *index = indices->items[i];
    if (!info->is_static || index->kind != KJ_T_CONST || index->integer < 0 ||
        index->integer >= info->extents[i])
      return false;
  }
  return true;
}

/* Like are_in_static_bounds, for vectors and for arrays inside structs. */
static bool are_in_static_parts(const marker *m, const kt_expr *value, const kt_exprs *indices)
{
  const ki_type_info *info = ki_type(m->c->types, value->type);
  for (size_t i = 0; i < indices->count; i++) {
    const kt_expr *index = indices->items[i];
    int64_t extent = info->class_ == KJ_CLASS_VECTOR ? info->count : info->extents[i];
    if (index->kind != KJ_T_CONST || index->integer < 0 || index->integer >= extent) return false;
  }
  return true;
}

/* Returns whether the view itself must be checked. If the view is not checked, an invalid view is
 * detected only at accesses to its elements, whose indices are compared with the bounds of the
 * view. Type inference has already compared static sizes. */
static bool is_sliced(const marker *m, const kt_expr *view)
{
  KJ_ASSERT(view->kind == KJ_T_VIEW);
  if (!view->dimensions) return false;
  if (kt_has_new_shape(view))
    return view->dimension || !ki_type(m->c->types, view->x->type)->is_static ||
           !ki_type(m->c->types, view->type)->is_static;
  for (size_t i = 0; i < view->indices.count; i++)
    if (view->indices.items[i]) return true;
  return false;
}

static bool subscripts(const marker *m, const kt_expr *e)
{
  /* a prefetch may name an element that does not exist, for example if the last iteration of a loop
   * prefetches the element for a next iteration */
  if (e->kind == KJ_T_BUILTIN && e->type == KJIT_VOID && (e->builtin->flags & KJ_READS))
    return false;
  /* the size of the memory at a pointer is not known */
  if (e->x && e->x->kind == KJ_T_POINTED && e->x->args.count == 0) return false;
  if (e->kind == KJ_T_LOAD || e->kind == KJ_T_ADDRESS)
    return !are_in_static_bounds(m, e->x, &e->args);
  if (e->kind == KJ_T_ELEMENT || (e->kind == KJ_T_INSERT && e->args.count))
    return !are_in_static_parts(m, e->x, &e->args);
  if (e->kind == KJ_T_VIEW) return !are_in_static_bounds(m, e->x, &e->args) || is_sliced(m, e);
  return kt_accesses_place(e) && !are_in_static_bounds(m, e->x, &e->indices);
}

/* ---- watched accesses ---- */

enum { WATCHES = KJIT_CHECK_UNINITIALIZED | KJIT_CHECK_RACES };

static bool is_watched_array(const marker *m, const kt_expr *array)
{
  ki_space space = ki_type(m->c->types, array->type)->space;
  return space == KJ_SPACE_SHARED
           ? (m->checks & WATCHES) != 0
           : space == KJ_SPACE_LOCAL && (m->checks & KJIT_CHECK_UNINITIALIZED);
}

/* Returns whether the expression accesses memory in a way that the checks for uninitialized memory
 * and races can monitor: it is a load, an atomic, or a load or store with a cache hint. Rejects
 * other built-ins that access memory: the check cannot see their writes, so it would report the
 * written memory as uninitialized. */
static bool accesses(const marker *m, const kt_expr *e)
{
  KJ_ASSERT(e->x);
  if (e->kind == KJ_T_LOAD) return true;
  if (e->kind != KJ_T_BUILTIN || !(e->builtin->flags & (KJ_PLACE | KJ_READS))) return false;
  if (e->builtin->flags & KJ_ORDER) return true;
  if (e->builtin->id >= KJ_BUILTIN_LDCA && e->builtin->id <= KJ_BUILTIN_PREFETCH_L1)
    return !(e->builtin->flags & KJ_READS) || e->type != KJIT_VOID;
  kt_fail(m->c, e->location, KJIT_ERROR_UNSUPPORTED,
          "the checks `uninitialized` and `races` do not support `%s`", e->builtin->name);
}

static void watch_expr(const marker *m, kt_expr *e)
{
  if (e->kind == KJ_T_ADDRESS && is_watched_array(m, e->x))
    kt_fail(m->c, e->location, KJIT_ERROR_UNSUPPORTED,
            "the checks `uninitialized` and `races` do not support pointers to shared or local "
            "memory, or views of a field of the structs in it");
  bool may_access = e->kind == KJ_T_LOAD || (e->kind == KJ_T_BUILTIN && e->x);
  if (!may_access || e->is_kept || !is_watched_array(m, e->x) || !accesses(m, e)) return;
  e->is_watched = m->c->code->is_watched = true;
}

static void refuse_on_gpu(const marker *m)
{
  static const struct {
    uint32_t check;
    const char *name, *tool;
  } rows[] = { { KJIT_CHECK_BARRIER, "barrier", "synccheck" },
               { KJIT_CHECK_UNINITIALIZED, "uninitialized", "initcheck" },
               { KJIT_CHECK_RACES, "races", "racecheck" } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (m->checks & rows[i].check)
      kt_fail(
        m->c, m->c->request->kernel->decl->location, KJIT_ERROR_UNSUPPORTED,
        "the check `%s` is supported only on the CPU; on a GPU, use `compute-sanitizer --tool %s`",
        rows[i].name, rows[i].tool);
}

static void mark_expr(void *data, kt_expr **at)
{
  const marker *m = data;
  kt_expr *e = *at;
  if (m->checks & WATCHES) watch_expr(m, e);
  if ((m->checks & KJIT_CHECK_BOUNDS) && subscripts(m, e)) e->is_checked = true;
  if (kt_checks_division(m->c, e)) e->is_checked = true;
}

static void mark_stmt(void *data, kt_stmt *stmt)
{
  const marker *m = data;
  if (stmt->kind == KJ_TS_STORE && is_watched_array(m, stmt->array))
    stmt->is_watched = m->c->code->is_watched = true;
  if (stmt->kind != KJ_TS_STORE || !(m->checks & KJIT_CHECK_BOUNDS)) return;
  bool is_open = stmt->array->kind == KJ_T_POINTED && stmt->array->args.count == 0;
  stmt->is_checked = !is_open && !are_in_static_bounds(m, stmt->array, &stmt->indices);
}

/* ---- instances that may fail ---- */

static bool fails_itself(void *data, const kt_expr *e)
{
  (void)data;
  return e->is_checked || e->is_watched || (e->kind == KJ_T_CALL && e->instance->may_fail);
}

static bool stmt_fails_itself(void *data, const kt_stmt *s)
{
  (void)data;
  return s->kind == KJ_TS_FAIL || s->is_checked || s->is_watched;
}

bool kp_may_fail(const kt_expr *e) { return kt_any_texpr(e, fails_itself, NULL); }

bool kp_stmt_may_fail(const kt_stmt *s)
{
  return kt_any_in_tstmt(s, stmt_fails_itself, fails_itself, NULL);
}

/* ---- barriers of clusters in interruptible code of a GPU ---- */

static bool is_cluster_barrier(void *data, const kt_expr *e)
{
  (void)data;
  return e->kind == KJ_T_BUILTIN && kt_is_cluster_barrier(e->builtin->id);
}

static bool is_no_stmt(void *data, const kt_stmt *stmt)
{
  (void)data;
  (void)stmt;
  return false;
}

/* Marks functions with cluster barriers as functions that may fail. A thread cannot poll for
 * interrupts while it waits at a cluster barrier of the hardware. Lowering therefore checks that a
 * wait follows each arrival and that no thread arrives twice. This function also rejects kernels in
 * which other threads in the block could wait at another barrier. */
static void mark_cluster_barriers(kt_compilation *c)
{
  bool has_any = false;
  if (!c->request->is_interruptible || c->request->target.kind == KJ_TARGET_CPU) return;
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = c->instances.items[i];
    if (!kt_any_in_tstmts(&instance->body, is_no_stmt, is_cluster_barrier, NULL)) continue;
    instance->may_fail = has_any = true;
  }
  if (has_any && c->divergent_barrier)
    kt_fail(c, c->divergent_location, KJIT_ERROR_UNSUPPORTED,
            "`%s` in control flow that depends on the thread, in a kernel with cluster barriers: "
            "in interruptible code all threads of a block must reach the same barrier, because an "
            "interrupt cannot end the hardware's wait",
            c->divergent_barrier);
}

/* ---- the pass ---- */

void kp_mark_checks(kt_compilation *c)
{
  KJ_ASSERT(c->state & KJ_TREE_FIBERS);
  marker m = { .c = c, .checks = c->request->checks };
  if (c->request->target.kind != KJ_TARGET_CPU) refuse_on_gpu(&m);
  if ((m.checks & WATCHES) && c->code->cpu_fibers != KJ_FIBERS_NONE)
    kt_fail(c, c->request->kernel->decl->location, KJIT_ERROR_UNSUPPORTED,
            "the checks `uninitialized` and `races` do not support kernels in which warps or "
            "blocks wait for each other");
  kt_instance *kernel = c->instances.items[0];
  /* pass/simt.c adds the checks of barriers later */
  if ((m.checks & KJIT_CHECK_BARRIER) && kernel->has_barrier) kernel->may_fail = true;
  mark_cluster_barriers(c);
  for (size_t i = 0; m.checks && i < c->instances.count; i++)
    kt_walk_tstmts(&c->instances.items[i]->body, mark_stmt, mark_expr, &m);
}

void kp_find_failing_instances(kt_compilation *c)
{
  KJ_ASSERT(c->state & KJ_TREE_CHECKED);
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < c->instances.count; i++) {
      kt_instance *instance = c->instances.items[i];
      /* a recursive function fails if its calls nest too deeply */
      if (instance->may_fail ||
          !(instance->is_recursive ||
            kt_any_in_tstmts(&instance->body, stmt_fails_itself, fails_itself, NULL)))
        continue;
      instance->may_fail = has_changed = true;
    }
  }
}

/* Marks what is checked at run time, and who may fail.
 *
 * Needs: typed instances. Guarantees: is_checked on every subscript and division that the request's checks look at, except where it is seen here that they hold;
 * may_fail of instances. What passes make afterwards is unchecked: it is right by construction. */
#include "typing/typed.h"

typedef struct marker {
  kj_compilation *c;
  uint32_t checks;
} marker;

/* ---- what is checked ---- */

static bool has_constant_divisor(const kj_texpr *e)
{
  if (e->kind != KJ_T_CONST) return false;
  return kj_is_scalar(e->type) && (e->integer != 0 || e->number != 0);
}

static bool divides(const kj_texpr *e)
{
  if (e->kind == KJ_T_BINARY) return e->op == KJIT_DIV || e->op == KJIT_FLOORDIV || e->op == KJIT_MOD;
  if (e->kind != KJ_T_BUILTIN) return false;
  return e->builtin->id == KJ_BUILTIN_CEIL_DIV || e->builtin->id == KJ_BUILTIN_DIV_TRUNC || e->builtin->id == KJ_BUILTIN_REM_TRUNC;
}

static const kj_texpr *divisor_of(const kj_texpr *e) { return e->kind == KJ_T_BINARY ? e->y : e->args.items[1]; }

static bool are_in_static_bounds(const marker *m, const kj_texpr *array, const kj_texprs *indices)
{
  const kj_type_info *info = kj_type(m->c->types, array->type);
  for (size_t i = 0; i < indices->count; i++) {
    const kj_texpr *index = indices->items[i];
    if (!info->is_static || index->kind != KJ_T_CONST || index->integer < 0 || index->integer >= info->extents[i]) return false;
  }
  return true;
}

/* A view of parts without a check of its own would be found out at its elements only where those are checked against the view. */
static bool is_sliced(const kj_texpr *view)
{
  if (!view->dimensions) return false;
  for (size_t i = 0; i < view->indices.count; i++)
    if (view->indices.items[i]) return true;
  return false;
}

static bool subscripts(const marker *m, const kj_texpr *e)
{
  if (e->kind == KJ_T_LOAD) return !are_in_static_bounds(m, e->x, &e->args);
  if (e->kind == KJ_T_VIEW) return !are_in_static_bounds(m, e->x, &e->args) || is_sliced(e);
  return e->kind == KJ_T_BUILTIN && (e->builtin->flags & KJ_PLACE) && !are_in_static_bounds(m, e->x, &e->indices);
}

static void mark_expr(void *data, kj_texpr **at)
{
  const marker *m = data;
  kj_texpr *e = *at;
  if ((m->checks & KJIT_CHECK_BOUNDS) && subscripts(m, e)) e->is_checked = true;
  if ((m->checks & KJIT_CHECK_DIVISION) && divides(e) && !has_constant_divisor(divisor_of(e))) e->is_checked = true;
}

static void mark_stmt(void *data, kj_tstmt *stmt)
{
  const marker *m = data;
  if (stmt->kind == KJ_TS_STORE && (m->checks & KJIT_CHECK_BOUNDS)) stmt->is_checked = !are_in_static_bounds(m, stmt->array, &stmt->indices);
}

/* ---- who may fail ---- */

static bool may_any_fail(const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (kj_may_fail(list->items[i])) return true;
  return false;
}

bool kj_may_fail(const kj_texpr *e)
{
  if (!e) return false;
  if (e->is_checked || (e->kind == KJ_T_CALL && e->instance->may_fail)) return true;
  return kj_may_fail(e->x) || kj_may_fail(e->y) || kj_may_fail(e->z) || may_any_fail(&e->args) || may_any_fail(&e->indices);
}

static bool may_list_fail(const kj_tstmts *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (kj_stmt_may_fail(list->items[i])) return true;
  return false;
}

bool kj_stmt_may_fail(const kj_tstmt *s)
{
  if (s->kind == KJ_TS_FAIL || s->is_checked || may_any_fail(&s->indices) || may_any_fail(&s->extents)) return true;
  if (kj_may_fail(s->value) || kj_may_fail(s->array) || kj_may_fail(s->first) || kj_may_fail(s->stop) || kj_may_fail(s->step)) return true;
  return may_list_fail(&s->body) || may_list_fail(&s->otherwise);
}

/* ---- the pass ---- */

void kj_mark_checks(kj_compilation *c)
{
  marker m = { .c = c, .checks = c->request->checks };
  for (size_t i = 0; m.checks && i < c->instances.count; i++) kj_walk_tstmts(&c->instances.items[i]->body, mark_stmt, mark_expr, &m);
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < c->instances.count; i++) {
      kj_instance *instance = c->instances.items[i];
      if (instance->may_fail || !may_list_fail(&instance->body)) continue;
      instance->may_fail = has_changed = true;
    }
  }
}

/* How much of the launch's own shared array (`shared x: T[]`) every launch uses: so that one that
 * gives less is refused instead of running out of bounds.
 *
 * Looked at are accesses that every thread makes, in front of anything by which a thread may leave,
 * at a number, or at threadIdx or thread_rank plus a number. Needs: typed instances. Guarantees:
 * never more than is used. */
#include "typing/typed.h"

/* What an index is: base 0 is a number, 1 to 3 threadIdx.x to .z, 4 thread_rank; plus offset. */
typedef struct position {
  bool known;
  uint32_t base;
  int64_t offset;
} position;

typedef struct pass {
  kj_compilation *c;
  position *lets; /* by variable */
} pass;

/* ---- indices ---- */

static position find(const pass *p, const kj_texpr *e);

static position find_sum(const pass *p, const kj_texpr *e)
{
  enum { MOST = 1 << 24 };
  position x = find(p, e->x), y = find(p, e->y);
  if (!x.known || !y.known || (x.base && y.base)) return (position){ 0 };
  position sum = { .known = true, .base = x.base + y.base, .offset = x.offset + y.offset };
  sum.known = sum.offset >= 0 && sum.offset <= MOST;
  return sum;
}

static position find_builtin(const kj_texpr *e)
{
  enum { RANK = 4 };
  if (e->builtin->id == KJ_BUILTIN_THREAD_IDX && e->dimension < 3)
    return (position){ .known = true, .base = 1 + e->dimension };
  return (position){ .known = e->builtin->id == KJ_BUILTIN_THREAD_RANK, .base = RANK };
}

static position find(const pass *p, const kj_texpr *e)
{
  bool is_small = e->kind == KJ_T_CONST && e->integer >= 0 && e->integer <= INT32_MAX;
  switch (e->kind) {
  case KJ_T_CONST:
    return (position){ .known = is_small, .offset = is_small ? (int64_t)e->integer : 0 };
  case KJ_T_VAR: return p->lets[e->var->index];
  case KJ_T_CONVERT: return kj_is_weak(e->x->type) ? (position){ 0 } : find(p, e->x);
  case KJ_T_BINARY: return e->op == KJIT_ADD ? find_sum(p, e) : (position){ 0 };
  case KJ_T_BUILTIN: return find_builtin(e);
  default: return (position){ 0 };
  }
}

/* ---- accesses ---- */

static void note(pass *p, const kj_texpr *array, const kj_texprs *indices)
{
  const kj_tvar *var =
    array->kind == KJ_T_VAR && array->var->kind == KJ_V_SHARED ? array->var : NULL;
  if (!var || var->sized_by || kj_type(p->c->types, var->type)->is_static || indices->count != 1)
    return;
  position at = find(p, indices->items[0]);
  if (!at.known) return;
  uint32_t needed = (uint32_t)at.offset + 1, *most = &p->c->own_shared_need[at.base];
  if (needed > *most) *most = needed;
}

static void visit(pass *p, const kj_texpr *e);

static void visit_list(pass *p, const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++) visit(p, list->items[i]);
}

/* What is evaluated whenever e is. */
static void visit(pass *p, const kj_texpr *e)
{
  if (!e) return;
  bool is_lazy = e->kind == KJ_T_COND || e->kind == KJ_T_LOGIC;
  visit(p, e->x);
  if (is_lazy) return;
  visit(p, e->y);
  visit(p, e->z);
  visit_list(p, &e->args);
  visit_list(p, &e->indices);
  if (e->kind == KJ_T_LOAD) note(p, e->x, &e->args);
  if (e->kind == KJ_T_BUILTIN && e->x && (e->builtin->flags & (KJ_PLACE | KJ_READS)))
    note(p, e->x, &e->indices);
}

static bool may_leave(const kj_tstmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    const kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || stmt->kind == KJ_TS_FAIL || may_leave(&stmt->body) ||
        may_leave(&stmt->otherwise))
      return true;
  }
  return false;
}

/* A func that may raise is not looked into: a thread may leave in it. */
static void find_call(void *data, kj_texpr **at)
{
  if ((*at)->kind == KJ_T_CALL && (*at)->instance->may_fail) *(bool *)data = true;
}

static bool ends_here(kj_tstmt *stmt)
{
  kj_tstmts one = { .items = &stmt, .count = 1 };
  bool has_failing_call = false;
  kj_walk_tstmts(&one, NULL, find_call, &has_failing_call);
  return has_failing_call || may_leave(&one);
}

void kj_find_shared_need(kj_compilation *c)
{
  kj_instance *kernel = c->instances.items[0];
  pass p = { .c = c,
             .lets =
               KJ_NEW_ARRAY(c->arena, position, kernel->params.count + kernel->locals.count + 1) };
  for (size_t i = 0; i < kernel->body.count; i++) {
    kj_tstmt *stmt = kernel->body.items[i];
    bool is_last = ends_here(stmt);
    visit(&p, stmt->value);
    visit(&p, stmt->array);
    visit_list(&p, &stmt->indices);
    visit(&p, stmt->first);
    visit(&p, stmt->stop);
    visit(&p, stmt->step);
    visit_list(&p, &stmt->extents);
    if (is_last) return;
    if (stmt->kind == KJ_TS_STORE) note(&p, stmt->array, &stmt->indices);
    if (stmt->kind == KJ_TS_ASSIGN && stmt->value && stmt->var->kind == KJ_V_LET)
      p.lets[stmt->var->index] = find(&p, stmt->value);
  }
}

/* CPU: kernels that need no threads: they consist of grid_ranges, look at no position and share
 * nothing, so that it makes no difference how many threads a block has. Outside of the ranges they
 * only compute: an effect there would happen once for each thread. */
#include "pass/simt.h"

typedef struct range_check {
  bool has_position, has_sync, has_storage;
} range_check;

static bool is_position(const kj_texpr *e)
{
  if (e->kind == KJ_T_CALL) return e->instance->uses_positions;
  if (e->kind != KJ_T_BUILTIN) return false;
  static const kj_builtin_id positions[] = {
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

static void check_expr(void *data, kj_texpr **expr)
{
  range_check *check = data;
  const kj_texpr *e = *expr;
  if (is_position(e)) check->has_position = true;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP)))
    check->has_sync = true;
}

static void check_stmt(void *data, kj_tstmt *stmt)
{
  range_check *check = data;
  if (stmt->kind == KJ_TS_BLOCK_FOR) check->has_sync = true;
}

/* Outside of its grid_ranges the list has no effect. */
static bool only_ranges_write(const kj_tstmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    const kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_GRID_FOR) continue;
    if (!stmt->body.count && !stmt->otherwise.count) {
      kj_simt_effects effects = { 0 };
      kj_find_stmt_effects(stmt, &effects);
      if (effects.writes) return false;
    }
    kj_simt_effects header = { 0 };
    kj_find_effects(stmt->value, &header);
    kj_find_effects(stmt->first, &header);
    kj_find_effects(stmt->stop, &header);
    kj_find_effects(stmt->step, &header);
    if (header.writes || !only_ranges_write(&stmt->body) || !only_ranges_write(&stmt->otherwise))
      return false;
  }
  return true;
}

/* Of any instance: what an inlined or called function shares counts. */
static bool has_shared(const kj_simt *s)
{
  for (size_t i = 0; i < s->c->instances.count; i++) {
    const kj_instance *instance = s->c->instances.items[i];
    for (size_t k = 0; k < instance->locals.count; k++)
      if (instance->locals.items[k]->kind == KJ_V_SHARED) return true;
  }
  return false;
}

bool kj_is_range_only(const kj_simt *s)
{
  if (!s->has_range || has_shared(s)) return false;
  range_check check = { 0 };
  kj_walk_tstmts(&s->kernel->body, check_stmt, check_expr, &check);
  return !check.has_position && !check.has_sync && only_ranges_write(&s->kernel->body);
}

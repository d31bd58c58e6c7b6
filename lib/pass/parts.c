/* Which threads the kernel brings together beyond a block, and what that asks of a launch: all
 * blocks resident at once (grid_sync), clusters; on the CPU parts that take turns: the blocks of a
 * cluster or grid, or single warps where one warp may wait for what another does later (named
 * barriers, mbarriers). */
#include "typing/typed.h"

static bool is_of_cluster(kj_builtin_id id)
{
  static const kj_builtin_id ids[] = { KJ_BUILTIN_CLUSTER_SYNC, KJ_BUILTIN_CLUSTER_ARRIVE,
                                       KJ_BUILTIN_CLUSTER_WAIT, KJ_BUILTIN_MAP_SHARED_RANK };
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (ids[i] == id) return true;
  return false;
}

static void find_in_expr(void *data, kj_texpr **expr)
{
  kj_compilation *c = data;
  const kj_texpr *e = *expr;
  if (e->kind != KJ_T_BUILTIN) return;
  if (e->builtin->id == KJ_BUILTIN_GRID_SYNC) c->is_cooperative = true;
  if (is_of_cluster(e->builtin->id)) c->has_cluster = true;
  if (e->builtin->flags & KJ_WAITS) c->cpu_parts = KJ_PARTS_WARPS;
}

void kj_find_parts(kj_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    kj_walk_tstmts(&c->instances.items[i]->body, NULL, find_in_expr, c);
  if (c->cpu_parts == KJ_PARTS_NONE && (c->is_cooperative || c->has_cluster))
    c->cpu_parts = KJ_PARTS_BLOCKS;
}

/* Reports how an adjoint kernel sums the derivatives with respect to each parameter. The remark is
 * short and names only arrays whose derivatives are summed. The facts name all parameters. */
#include "derive/adjoint.h"

static const char *describe_way(kd_part *part, const kd_array_plan *plan)
{
  kj_arena *arena = part->d.arena;
  bool is_cpu = part->d.c->request->target.kind == KJ_TARGET_CPU;
  switch (KJ_AMONG(plan->loads)) {
  case KD_ADDED: return "plain sums";
  case KD_GATHERED:
    return kj_format(arena, "gathered from %zu iteration%s", plan->offsets.count,
                     plan->offsets.count == 1 ? "" : "s");
  case KD_CHANGED: return "changed in place";
  case KD_ATOMIC:
    if (!plan->atomics && plan->copied)
      return kj_format(arena, "%u elements in each thread, then one atomic sum of each a %s",
                       plan->copied, is_cpu ? "thread" : "warp");
    if (!plan->atomics) return is_cpu ? "one atomic sum a thread" : "one atomic sum a warp";
    return kj_format(arena, "atomic sums in %u place%s", plan->atomics,
                     plan->atomics == 1 ? "" : "s");
  default: return NULL;
  }
}

/* ---- facts ---- */

/* Returns the location of the first access to the array in a grid loop. If no grid loop accesses
 * the array, returns its declaration's location. */
static kj_location first_access(const kd_plan *plan, const kt_var *array)
{
  for (size_t k = 0; k < plan->firsts.count; k++) {
    const kd_part *part = plan->firsts.items[k];
    for (size_t i = 0; i < part->sites.count; i++)
      if (part->sites.items[i].root == array) return part->sites.items[i].location;
  }
  return array->location;
}

static const char *describe_stores(const kd_plan *plan, const kd_array_plan *array)
{
  for (size_t k = 0; k < plan->firsts.count; k++) switch (KJ_AMONG(array->stores[k])) {
    case KD_OUTPUT: return "only read, by the thread of each store";
    case KD_OVERWRITTEN: return "only read, by the last store to each element";
    case KD_ACCUMULATED: return "only read, by the thread of each sum";
    default: break;
    }
  return NULL;
}

void kd_note_plan(kd_plan *plan)
{
  kd_part *part = plan->firsts.items[0];
  kd_derivation *d = &part->d;
  for (size_t i = 0; i < plan->arrays.count; i++) {
    const kd_array_plan *array = &plan->arrays.items[i];
    const char *way = describe_way(part, array);
    if (!way) way = describe_stores(plan, array);
    if (way)
      kd_note_fact(d, first_access(plan, array->array), d->variables[array->array->index].other,
                   kj_format(d->arena, "sums of `%s`: %s", array->array->name, way));
  }
  for (size_t i = 0; i < d->record->chosen.count; i++) {
    const kt_var *param = d->record->chosen.items[i];
    if (kt_is_array(d->c, param->type)) continue;
    bool is_cpu = d->c->request->target.kind == KJ_TARGET_CPU;
    kd_note_fact(d, param->location, kd_root(kd_read(d, d->derivatives.items[i])),
                 kj_format(d->arena, "sums of `%s`: one atomic sum a %s", param->name,
                           is_cpu ? "thread" : "warp"));
  }
}

/* ---- the remark ---- */

void kd_remark_plan(kd_plan *plan)
{
  kd_part *part = plan->firsts.items[0];
  kj_arena *arena = part->d.arena;
  const char *text = "";
  for (size_t i = 0; i < plan->arrays.count; i++) {
    const kd_array_plan *array = &plan->arrays.items[i];
    const char *way = describe_way(part, array);
    if (way) text = kj_format(arena, "%s; `%s`: %s", text, array->array->name, way);
  }
  uint64_t bytes = kd_count_thread_bytes(part->d.c, part->d.record->instance);
  if (bytes)
    text = kj_format(arena, "%s; arrays of a thread: %llu bytes", text, (unsigned long long)bytes);
  bool was_quiet = part->d.s->is_quiet;
  part->d.s->is_quiet = false;
  if (*text)
    kt_note_message(part->d.s, part->loop->location, KJIT_SEVERITY_REMARK,
                    "how the derivatives of `adjoint(%s)` are summed%s",
                    part->d.primal->instance->function->decl->name, text);
  part->d.s->is_quiet = was_quiet;
}

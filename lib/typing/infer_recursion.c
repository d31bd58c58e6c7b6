/* Functions that call themselves, through others too: found when all calls are known. */
#include <string.h>

#include "typing/infer.h"

/* Whether calls of `from` lead to `to`. */
static bool leads_to(const kj_record *from, const kj_record *to, bool *is_seen)
{
  for (size_t i = 0; i < from->callees.count; i++) {
    const kj_record *callee = from->callees.items[i];
    if (callee == to) return true;
    if (is_seen[callee->instance->id]) continue;
    is_seen[callee->instance->id] = true;
    if (leads_to(callee, to, is_seen)) return true;
  }
  return false;
}

static bool take_flag(bool *own, bool of_callee)
{
  bool is_new = of_callee && !*own;
  *own |= of_callee;
  return is_new;
}

static bool take_from_callees(kj_record *record)
{
  bool has_changed = false;
  kj_instance *own = record->instance;
  for (size_t i = 0; i < record->callees.count; i++) {
    const kj_instance *callee = record->callees.items[i]->instance;
    has_changed |= take_flag(&own->has_barrier, callee->has_barrier);
    has_changed |= take_flag(&own->has_warp, callee->has_warp);
    has_changed |= take_flag(&own->uses_positions, callee->uses_positions);
  }
  return has_changed;
}

void kj_find_recursion(kj_inference *inference)
{
  size_t count = inference->records.count;
  bool has_any = false;
  for (size_t i = 0; i < count; i++) has_any |= inference->records.items[i]->is_reentered;
  if (!has_any) return;
  bool *is_seen = KJ_NEW_ARRAY(inference->c->arena, bool, count + 1), has_changed;
  for (size_t i = 0; i < count; i++) {
    memset(is_seen, 0, count * sizeof *is_seen);
    inference->records.items[i]->instance->is_recursive =
      leads_to(inference->records.items[i], inference->records.items[i], is_seen);
  }
  do {
    has_changed = false;
    for (size_t i = 0; i < count; i++)
      has_changed |= take_from_callees(inference->records.items[i]);
  } while (has_changed);
}

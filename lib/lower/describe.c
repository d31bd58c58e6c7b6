/* What the runtime learns of the code: kj_code, but for the code itself. */
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"

static char *describe_facts(const kj_compilation *c)
{
  kj_buffer buffer = { 0 };
  const struct {
    bool is_used;
    const char *name;
  } facts[] = {
    { c->used_aligned16, "aligned16" }, { c->used_offsets32, "offsets32" },
    { c->used_grid32, "grid32" },       { c->used_disjoint, "disjoint" },
    { c->used_same, "same" },
  };
  kj_append_text(&buffer, "");
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (facts[i].is_used)
      kj_append_format(&buffer, "%s%s", buffer.length ? " " : "", facts[i].name);
  return kj_take_text(&buffer);
}

static bool has_local_array(const kj_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    for (size_t k = 0; k < c->instances.items[i]->locals.count; k++)
      if (c->instances.items[i]->locals.items[k]->kind == KJ_V_LOCAL) return true;
  return false;
}

/* The compiler's own are the last ones. */
static size_t count_planned(const kj_lowering *l)
{
  size_t count = l->parameters.count;
  while (count && l->parameters.items[count - 1].parameter.kind >= KJ_PARAMETER_FAILURE) count--;
  return count;
}

/* What the frames that do not repeat may take: local arrays, each once. */
static uint32_t measure_locals(kj_lowering *l)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < l->c->instances.count; i++) {
    const kj_tvars *locals = &l->c->instances.items[i]->locals;
    for (size_t k = 0; k < locals->count; k++) {
      if (locals->items[k]->kind != KJ_V_LOCAL) continue;
      const kj_type_info *info = kj_type(l->c->types, locals->items[k]->type);
      bytes += (kj_element_count(info) * kj_scalar_bytes(l, info->element) + 15) / 16 * 16;
    }
  }
  return (uint32_t)((bytes + 1023) / 1024 * 1024);
}

bool kj_describe_code(kj_lowering *l, kj_code *code)
{
  size_t count = count_planned(l);
  code->parameters = malloc((count + 1) * sizeof *code->parameters);
  code->facts = describe_facts(l->c);
  code->entry = strdup(l->kernel->symbol);
  if (l->kernel->may_fail) {
    kj_append_text(&l->failures, "");
    code->failures = kj_take_text(&l->failures);
    code->failure_offset = l->failure_offset;
  }
  if (l->has_print) {
    kj_append_text(&l->prints, "");
    code->prints = kj_take_text(&l->prints);
    code->print_offset = l->print_offset;
    if (!code->prints) return false;
  }
  if (!code->parameters || !code->facts || !code->entry || (l->kernel->may_fail && !code->failures))
    return false;
  for (size_t i = 0; i < count; i++) code->parameters[i] = l->parameters.items[i].parameter;
  code->parameter_count = (uint32_t)count;
  code->parameter_bytes = l->parameter_bytes;
  code->static_shared_bytes = l->shared_bytes;
  code->uses_dynamic_shared = l->uses_dynamic_shared;
  code->dynamic_shared_element_bytes = l->dynamic_shared_element_bytes;
  code->dynamic_shared_alignment = l->dynamic_shared_alignment;
  memcpy(code->own_shared_need, l->c->own_shared_need, sizeof code->own_shared_need);
  code->fixed_shared_bytes = l->fixed_shared_bytes;
  code->is_watched = l->c->has_watched;
  code->uses_local = l->has_print || l->failure_count || l->pending.count || has_local_array(l->c);
  code->shared_array_count = l->shared_array_count;
  memcpy(code->shared_arrays, l->shared_arrays, sizeof code->shared_arrays);
  code->is_range_only = l->c->is_range_only;
  code->elements_a_thread = l->c->elements_a_thread;
  code->has_debug = l->debug != NULL;
  code->max_threads = l->kernel->max_threads;
  code->is_cooperative = l->c->is_cooperative;
  code->cpu_parts = l->c->cpu_parts;
  code->tensor_map_count = (uint32_t)l->tensor_maps.count;
  for (size_t i = 0; i < l->tensor_maps.count; i++) code->tensor_maps[i] = l->tensor_maps.items[i];
  memcpy(code->cluster, l->kernel->cluster, sizeof code->cluster);
  code->result = l->kernel->result;
  code->stack_bytes = l->has_recursion ? KJ_STACK_BYTES + measure_locals(l) : 0;
  return true;
}

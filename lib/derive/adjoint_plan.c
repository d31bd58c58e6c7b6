/* Which way the derivatives by the elements of each array go: plain sums where one iteration alone
 * adds to an element, gathering where the indices are variables plus constants, atomic sums else.
 * Refuses arrays that are stored to in a way whose derivative is not known. */
#include "derive/adjoint.h"

kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array)
{
  for (size_t i = 0; i < part->plan->arrays.count; i++)
    if (part->plan->arrays.items[i].array == array) return &part->plan->arrays.items[i];
  return NULL;
}

/* ---- sites of an array ---- */

typedef KJ_LIST(const kd_site *) site_list;

static site_list list_sites(const kd_part *part, const kt_var *array, bool is_store)
{
  site_list list = { 0 };
  for (size_t i = 0; i < part->sites.count; i++) {
    const kd_site *site = &part->sites.items[i];
    if (site->root == array && (site->store != NULL) == is_store)
      KJ_PUSH(part->d.arena, &list, site);
  }
  return list;
}

static _Noreturn void refuse_twice(kd_part *part, kj_location location, kj_location other,
                                   const char *note, const char *text)
{
  kt_fail_twice(part->d.c, location, other, KJIT_CODE_NONE, note, "`adjoint` of `%s`: %s",
                part->d.primal->instance->function->decl->name, text);
}

/* ---- indices that are the same ---- */

static bool is_same_index(const kd_index *a, const kd_index *b)
{
  return a->is_known && b->is_known && a->is_exact && b->is_exact && a->variable == b->variable &&
         a->least == b->least && kd_equal_exprs(a->symbol, b->symbol);
}

/* Both are the same variable and symbol, with different offsets: they are never equal. */
static bool is_never_same(const kd_index *a, const kd_index *b)
{
  return a->is_known && b->is_known && !a->period && !b->period && a->variable == b->variable &&
         kd_equal_exprs(a->symbol, b->symbol) && (a->most < b->least || b->most < a->least);
}

/* The dimension whose index is the variable plus an offset that is the same in all sites. */
static bool find_own_dimension(const site_list *sites, const kt_var *variable, uint32_t *dimension)
{
  const kd_site *first = sites->items[0];
  for (uint32_t k = 0; k < first->rank; k++) {
    bool fits = first->indices[k].variable == variable;
    for (size_t i = 0; fits && i < sites->count; i++)
      fits = sites->items[i]->is_whole &&
             is_same_index(&first->indices[k], &sites->items[i]->indices[k]);
    if (!fits) continue;
    *dimension = k;
    return true;
  }
  return false;
}

/* No two iterations access the same element. */
static bool is_one_to_one(const kd_part *part, const site_list *sites, uint32_t *dimensions)
{
  for (size_t v = 0; v < part->loop->vars.count; v++)
    if (!find_own_dimension(sites, part->loop->vars.items[v], &dimensions[v])) return false;
  return true;
}

/* All accesses of an iteration are to one element. */
static bool is_one_element(const site_list *sites)
{
  const kd_site *first = sites->items[0];
  for (size_t i = 0; i < sites->count; i++)
    for (uint32_t k = 0; k < first->rank; k++)
      if (!sites->items[i]->is_whole ||
          !is_same_index(&first->indices[k], &sites->items[i]->indices[k]))
        return false;
  return true;
}

/* ---- gathering ---- */

static bool find_gathered_dimension(const site_list *sites, const kt_var *variable,
                                    uint32_t *dimension)
{
  for (uint32_t k = 0; k < sites->items[0]->rank; k++) {
    bool fits = true;
    for (size_t i = 0; fits && i < sites->count; i++) {
      const kd_site *site = sites->items[i];
      const kd_index *index = &site->indices[k];
      fits = site->is_whole && index->is_known && index->variable == variable && !index->symbol;
    }
    if (!fits) continue;
    *dimension = k;
    return true;
  }
  return false;
}

static bool is_same_offset(const kd_gather_offset *a, const kd_gather_offset *b)
{
  for (int v = 0; v < KD_MOST_GRID; v++)
    if (a->offset[v] != b->offset[v] || a->wraps[v] != b->wraps[v]) return false;
  return true;
}

static bool add_offset(const kd_part *part, kd_array_plan *plan, const kd_gather_offset *offset)
{
  for (size_t i = 0; i < plan->offsets.count; i++)
    if (is_same_offset(&plan->offsets.items[i], offset)) return true;
  KJ_PUSH(part->d.arena, &plan->offsets, *offset);
  return plan->offsets.count <= KD_MOST_GATHERED;
}

/* All combinations of the offsets that the indices of a site may have, from a variable on. False:
 * there are too many. */
static bool add_offsets(const kd_part *part, kd_array_plan *plan, const kd_site *site, size_t v,
                        kd_gather_offset offset)
{
  if (v == part->loop->vars.count || v == KD_MOST_GRID) return add_offset(part, plan, &offset);
  const kd_index *index = &site->indices[plan->dimension[v]];
  if (index->most - index->least >= KD_MOST_GATHERED) return false;
  for (int64_t at = index->least; at <= index->most; at++) {
    offset.offset[v] = at;
    offset.wraps[v] = false;
    if (!add_offsets(part, plan, site, v + 1, offset)) return false;
    offset.wraps[v] = true;
    bool wraps = index->period && at < 0;
    if (wraps && !add_offsets(part, plan, site, v + 1, offset)) return false;
  }
  return true;
}

static bool is_gathered(const kd_part *part, kd_array_plan *plan, const site_list *loads)
{
  for (size_t v = 0; v < part->loop->vars.count; v++)
    if (!find_gathered_dimension(loads, part->loop->vars.items[v], &plan->dimension[v]))
      return false;
  for (size_t i = 0; i < loads->count; i++)
    if (!add_offsets(part, plan, loads->items[i], 0, (kd_gather_offset){ 0 })) return false;
  return true;
}

static void plan_loads(kd_part *part, kd_array_plan *plan, const site_list *loads)
{
  if (is_one_to_one(part, loads, plan->dimension)) plan->way = KD_ADDED;
  else if (is_gathered(part, plan, loads)) plan->way = KD_GATHERED;
  else plan->way = KD_ATOMIC;
  for (size_t i = 0; i < loads->count; i++)
    if (loads->items[i]->is_uniform) plan->sums++;
    else plan->atomics++;
}

/* ---- stores ---- */

/* The number is another one for each value of the variable. */
static bool follows(const kt_expr *e, const kt_var *var)
{
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_VAR: return e->var == var;
  case KJ_T_CONVERT: return follows(e->x, var);
  case KJ_T_BINARY:
    if (e->op == KJIT_OP_MUL && e->y->kind == KJ_T_CONST && e->y->integer)
      return follows(e->x, var);
    if (e->op == KJIT_OP_MUL && e->x->kind == KJ_T_CONST && e->x->integer)
      return follows(e->y, var);
    break;
  default: break;
  }
  return false;
}

static bool is_var(void *data, const kt_expr *e) { return e->kind == KJ_T_VAR && e->var == data; }

/* The same for a sum of which one part follows the variable, and no other part has variables of the
 * loops. */
static bool sum_follows(const kd_site *site, const kt_expr *e, const kt_var *var)
{
  if (e->kind == KJ_T_CONVERT) return sum_follows(site, e->x, var);
  bool is_sum = e->kind == KJ_T_BINARY && (e->op == KJIT_OP_ADD || e->op == KJIT_OP_SUB);
  if (!is_sum) return follows(e, var);
  const kt_expr *rest = sum_follows(site, e->x, var)   ? e->y
                        : sum_follows(site, e->y, var) ? e->x
                                                       : NULL;
  for (uint32_t i = 0; rest && i < site->loops; i++)
    if (kt_any_texpr(rest, is_var, site->inner[i]->var)) return false;
  return rest != NULL;
}

/* Each iteration of the loops around the store stores to an element of its own. */
static void check_loops(kd_part *part, const kd_site *store)
{
  for (uint32_t i = 0; i < store->loops; i++) {
    const kt_stmt *loop = i < 8 ? store->inner[i] : NULL;
    bool is_own = false;
    for (size_t k = 0; loop && loop->kind == KJ_TS_FOR && k < store->store->indices.count; k++)
      is_own |= sum_follows(store, kd_resolve(part, store->store->indices.items[k]), loop->var);
    if (!is_own)
      kd_refuse(&part->d, store->location,
                "a loop stores to `%s` here, and may store to one element twice: keep the value in "
                "a variable, and store it behind the loop",
                store->root->name);
  }
}

static void check_apart(kd_part *part, const kd_site *a, const kd_site *b)
{
  bool is_apart = false;
  for (uint32_t k = 0; a->is_whole && b->is_whole && k < a->rank; k++)
    is_apart |= is_never_same(&a->indices[k], &b->indices[k]);
  if (is_apart) return;
  refuse_twice(part, b->location, a->location, "the other store is here",
               kj_format(part->d.arena,
                         "an iteration may store to one element of `%s` twice: store the last "
                         "value alone",
                         a->root->name));
}

static void plan_stores(kd_part *part, kd_array_plan *plan, const site_list *stores)
{
  uint32_t dimensions[KD_MOST_GRID];
  plan->way = KD_OUTPUT;
  if (stores->count == 1 && !stores->items[0]->loops) return;
  if (is_one_element(stores) && is_one_to_one(part, stores, dimensions)) {
    plan->way = KD_OVERWRITTEN;
    return;
  }
  for (size_t i = 0; i < stores->count; i++) {
    check_loops(part, stores->items[i]);
    for (size_t k = 0; k < i; k++) check_apart(part, stores->items[k], stores->items[i]);
  }
}

/* ---- atomic sums ---- */

/* The operator of an atomic sum of floats; KJIT_OP_STORE: it is none. */
static kjit_op atomic_operator(const kd_derivation *d, const kt_stmt *stmt)
{
  const kt_expr *e = stmt->kind == KJ_TS_EVALUATE ? stmt->value : NULL;
  if (!e || e->kind != KJ_T_BUILTIN || !e->x || !kt_is_array(d->c, e->x->type))
    return KJIT_OP_STORE;
  const kt_var *root = kd_root(e->x);
  bool is_sum = root && root->kind == KJ_V_PARAM &&
                kt_is_float(d->c, ki_type(d->c->types, e->x->type)->element);
  if (!is_sum) return KJIT_OP_STORE;
  switch (KJ_AMONG(e->builtin->id)) {
  case KJ_BUILTIN_ATOMIC_ADD:
  case KJ_BUILTIN_ATOMIC_ADD_BLOCK:
  case KJ_BUILTIN_ATOMIC_ADD_SYSTEM: return KJIT_OP_ADD;
  case KJ_BUILTIN_ATOMIC_SUB:
  case KJ_BUILTIN_ATOMIC_SUB_BLOCK:
  case KJ_BUILTIN_ATOMIC_SUB_SYSTEM: return KJIT_OP_SUB;
  default: return KJIT_OP_STORE;
  }
}

static void take_atomic_sum(void *data, kt_stmt *stmt)
{
  kd_derivation *d = data;
  kjit_op op = atomic_operator(d, stmt);
  if (op == KJIT_OP_STORE) return;
  kt_expr *atomic = stmt->value;
  kt_expr *load = kd_load(d, kd_copy(d, atomic->x), &atomic->indices);
  load->location = atomic->location;
  stmt->kind = KJ_TS_STORE;
  stmt->array = atomic->x;
  stmt->indices = atomic->indices;
  stmt->value = kt_make_own_binary(d->s, op, load, atomic->args.items[0], atomic->location);
}

void kd_take_atomic_sums(kd_derivation *d) { kt_walk_tstmts(&d->body, take_atomic_sum, NULL, d); }

/* ---- loads and stores ---- */

static bool is_load_of(kd_part *part, const kt_expr *e, const kt_stmt *store)
{
  bool is_same = e->kind == KJ_T_LOAD && kd_equal_exprs(e->x, store->array) &&
                 e->args.count == store->indices.count;
  for (size_t i = 0; is_same && i < e->args.count; i++)
    is_same =
      kd_equal_exprs(kd_resolve(part, e->args.items[i]), kd_resolve(part, store->indices.items[i]));
  return is_same;
}

/* a[i] += e, a[i] -= e: the load that is an operand; NULL: it is something else. */
static const kt_expr *find_accumulated(kd_part *part, const kt_stmt *store)
{
  const kt_expr *value = store->value;
  bool is_sum = value->kind == KJ_T_BINARY && value->op == KJIT_OP_ADD,
       is_difference = value->kind == KJ_T_BINARY && value->op == KJIT_OP_SUB;
  if ((is_sum || is_difference) && is_load_of(part, value->x, store)) return value->x;
  if (is_sum && is_load_of(part, value->y, store)) return value->y;
  return NULL;
}

static bool only_accumulates(kd_part *part, const site_list *loads, const site_list *stores)
{
  if (loads->count != stores->count) return false;
  for (size_t i = 0; i < stores->count; i++) {
    const kt_expr *load = find_accumulated(part, stores->items[i]->store);
    bool is_listed = false;
    for (size_t k = 0; load && k < loads->count; k++) is_listed |= loads->items[k]->load == load;
    if (!is_listed) return false;
  }
  return true;
}

static void plan_changes(kd_part *part, kd_array_plan *plan, const site_list *loads,
                         const site_list *stores)
{
  site_list all = { 0 };
  uint32_t dimensions[KD_MOST_GRID];
  if (only_accumulates(part, loads, stores)) {
    plan->way = KD_ACCUMULATED;
    return;
  }
  for (size_t i = 0; i < loads->count; i++) KJ_PUSH(part->d.arena, &all, loads->items[i]);
  for (size_t i = 0; i < stores->count; i++) KJ_PUSH(part->d.arena, &all, stores->items[i]);
  if (!is_one_element(&all) || !is_one_to_one(part, &all, dimensions))
    refuse_twice(
      part, stores->items[0]->location, loads->items[0]->location, "it is loaded from here",
      kj_format(part->d.arena,
                "the kernel loads from `%s` and stores to `%s` at another place, so that "
                "values are gone: store to another array",
                plan->array->name, plan->array->name));
  plan->way = KD_CHANGED;
}

/* ---- the whole ---- */

static void plan_array(kd_part *part, kd_plan *plan, const kt_var *array)
{
  kd_array_plan made = { .array = array };
  site_list loads = list_sites(part, array, false), stores = list_sites(part, array, true);
  if (stores.count && loads.count) plan_changes(part, &made, &loads, &stores);
  else if (stores.count) plan_stores(part, &made, &stores);
  else if (loads.count) plan_loads(part, &made, &loads);
  KJ_PUSH(part->d.arena, &plan->arrays, made);
}

/* A thread changes derivatives that another one would read. */
static void avoid_gathering(kd_plan *plan)
{
  bool has_changed = false;
  for (size_t i = 0; i < plan->arrays.count; i++)
    has_changed |= plan->arrays.items[i].way == KD_CHANGED;
  for (size_t i = 0; has_changed && i < plan->arrays.count; i++)
    if (plan->arrays.items[i].way == KD_GATHERED) plan->arrays.items[i].way = KD_ATOMIC;
}

void kd_make_plan(kd_part *part, kd_plan *plan)
{
  const kt_vars *params = &part->d.record->instance->params;
  size_t count = part->d.primal->instance->params.count;
  for (size_t i = 0; i < count; i++) {
    const kt_var *param = params->items[i];
    if (kt_is_array(part->d.c, param->type) && part->d.variables[i].other)
      plan_array(part, plan, param);
  }
  avoid_gathering(plan);
}

/* ---- for the user ---- */

static const char *describe_way(kd_part *part, const kd_array_plan *plan)
{
  kj_arena *arena = part->d.arena;
  bool is_cpu = part->d.c->request->target.kind == KJ_TARGET_CPU;
  switch (KJ_AMONG(plan->way)) {
  case KD_ADDED: return "plain sums";
  case KD_GATHERED: return kj_format(arena, "gathered from %zu iterations", plan->offsets.count);
  case KD_CHANGED: return "changed in place";
  case KD_ATOMIC:
    if (!plan->atomics) return is_cpu ? "one atomic sum a thread" : "one atomic sum a warp";
    return kj_format(arena, "atomic sums in %u place%s", plan->atomics,
                     plan->atomics == 1 ? "" : "s");
  default: return NULL;
  }
}

/* Bytes of a thread: tapes, and the derivatives of its arrays. */
static uint64_t count_bytes(const kd_part *part)
{
  const kt_vars *locals = &part->d.record->instance->locals;
  const ki_types *types = part->d.c->types;
  uint64_t bytes = 0;
  for (size_t i = 0; i < locals->count; i++) {
    const ki_type_info *info = ki_type(types, locals->items[i]->type);
    if (locals->items[i]->kind == KJ_V_LOCAL)
      bytes += ki_element_count(info) * ki_type(types, info->element)->size_bytes;
  }
  return bytes;
}

void kd_remark_plan(kd_part *part)
{
  kj_arena *arena = part->d.arena;
  const char *text = "";
  for (size_t i = 0; i < part->plan->arrays.count; i++) {
    const kd_array_plan *plan = &part->plan->arrays.items[i];
    const char *way = describe_way(part, plan);
    if (way) text = kj_format(arena, "%s; `%s`: %s", text, plan->array->name, way);
  }
  uint64_t bytes = count_bytes(part);
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

/* Chooses for each array how the derivatives with respect to its elements are summed. Plain
 * additions suffice if only one iteration adds to an element. Gathering is possible if each index
 * is a variable plus a constant. All other arrays need atomic additions. Rejects a kernel that
 * writes to an array in a way that has no known derivative. */
#include "derive/adjoint.h"

kd_array_plan *kd_plan_of(const kd_part *part, const kt_var *array)
{
  for (size_t i = 0; i < part->plan->arrays.count; i++)
    if (part->plan->arrays.items[i].array == array) return &part->plan->arrays.items[i];
  return NULL;
}

/* ---- sites of an array ---- */

static kd_sites list_sites(const kd_part *part, const kt_var *array, bool is_store)
{
  kd_sites list = { 0 };
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

/* ---- equal indices ---- */

static bool is_same_index(const kd_index *a, const kd_index *b)
{
  return a->is_known && b->is_known && a->is_exact && b->is_exact && a->variable == b->variable &&
         a->is_round == b->is_round && a->least == b->least && kd_equal_exprs(a->symbol, b->symbol);
}

static bool is_sum(const kd_index *index)
{
  return index->is_known && !index->period && !index->is_round;
}

/* Returns whether the index is always below the limit, a value that is the same in the whole
 * grid. */
static bool is_below(kd_part *part, const kd_index *index, const kd_index *limit)
{
  if (limit->variable || !index->variable || index->symbol) return false;
  kd_index extent = kd_index_of(part, part->loop->extents.items[index->variable - 1]);
  return is_sum(&extent) && !extent.variable && kd_equal_exprs(extent.symbol, limit->symbol) &&
         extent.most - 1 + index->most < limit->least;
}

static bool is_above(const kd_index *index, const kd_index *limit)
{
  return !limit->variable && !limit->symbol && index->variable && !index->symbol &&
         index->least > limit->most;
}

/* Returns whether the two indices are never equal. If of_a and of_b are the same part, compares the
 * indices within one iteration; otherwise compares the indices of any two iterations. */
static bool is_never_same(kd_part *of_a, const kd_index *a, kd_part *of_b, const kd_index *b)
{
  if (!is_sum(a) || !is_sum(b)) return false;
  bool has_same_value = of_a == of_b ? a->variable == b->variable : !a->variable && !b->variable;
  if (has_same_value && kd_equal_exprs(a->symbol, b->symbol))
    return a->most < b->least || b->most < a->least;
  return is_below(of_a, a, b) || is_below(of_b, b, a) || is_above(a, b) || is_above(b, a);
}

/* Finds a dimension that all sites index by this variable of the grid loop plus the same offset. */
static bool find_own_dimension(const kd_sites *sites, uint32_t variable, uint32_t *dimension)
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

/* Returns whether different iterations always access different elements. */
static bool is_one_to_one(const kd_part *part, const kd_sites *sites, uint32_t *dimensions)
{
  for (uint32_t v = 0; v < part->loop->vars.count; v++)
    if (!find_own_dimension(sites, v + 1, &dimensions[v])) return false;
  return true;
}

/* Returns whether all these accesses are to the same element in each iteration. */
static bool is_one_element(const kd_sites *sites)
{
  const kd_site *first = sites->items[0];
  for (size_t i = 0; i < sites->count; i++)
    for (uint32_t k = 0; k < first->rank; k++)
      if (!sites->items[i]->is_whole ||
          !is_same_index(&first->indices[k], &sites->items[i]->indices[k]))
        return false;
  return true;
}

/* ---- stores ---- */

/* Returns whether different values of the variable always give different values of the
 * expression. */
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

/* Returns whether the expression is a sum in which only one term depends on loop variables, and
 * this term has a different value for each value of var. */
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

/* Checks that the iterations of the inner loops around a store write to different elements. */
static void check_loops(kd_part *part, const kd_site *store)
{
  for (uint32_t i = 0; i < store->loops; i++) {
    const kt_stmt *loop = i < 8 ? store->inner[i] : NULL;
    bool is_own = false;
    for (size_t k = 0; loop && loop->kind == KJ_TS_FOR && k < store->store->indices.count; k++)
      is_own |= sum_follows(store, kd_resolve(part, store->store->indices.items[k]), loop->var);
    if (!is_own)
      kd_refuse(&part->d, store->location,
                "this loop may store to the same element of `%s` twice: keep the value in a "
                "variable, and store it after the loop",
                store->root->name);
  }
}

static void check_apart(kd_part *of_a, const kd_site *a, kd_part *of_b, const kd_site *b)
{
  bool is_apart = false;
  for (uint32_t k = 0; a->is_whole && b->is_whole && k < a->rank; k++)
    is_apart |= is_never_same(of_a, &a->indices[k], of_b, &b->indices[k]);
  if (is_apart) return;
  const char *who = of_a != of_b ? "two loops" : of_a->is_by_threads ? "threads" : "an iteration";
  refuse_twice(
    of_b, b->location, a->location, "the other store is here",
    kj_format(of_b->d.arena,
              "%s may store to the same element of `%s` twice: store only the last value", who,
              a->root->name));
}

static kd_way plan_stores(kd_part *part, const kd_sites *stores)
{
  uint32_t dimensions[KD_MOST_GRID];
  if (stores->count == 1 && !stores->items[0]->loops) return KD_OUTPUT;
  if (part->is_by_threads && kd_is_one_thread_element(part, stores)) return KD_OVERWRITTEN;
  if (!part->is_by_threads && is_one_element(stores) && is_one_to_one(part, stores, dimensions))
    return KD_OVERWRITTEN;
  for (size_t i = 0; i < stores->count; i++) {
    check_loops(part, stores->items[i]);
    for (size_t k = 0; k < i; k++) check_apart(part, stores->items[k], part, stores->items[i]);
  }
  return KD_OUTPUT;
}

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

/* If the store has the form a[i] += e or a[i] -= e, returns its load of a[i]. Otherwise returns
 * NULL. */
static const kt_expr *find_accumulated(kd_part *part, const kt_stmt *store)
{
  const kt_expr *value = store->value;
  bool is_sum = value->kind == KJ_T_BINARY && value->op == KJIT_OP_ADD,
       is_difference = value->kind == KJ_T_BINARY && value->op == KJIT_OP_SUB;
  if ((is_sum || is_difference) && is_load_of(part, value->x, store)) return value->x;
  if (is_sum && is_load_of(part, value->y, store)) return value->y;
  return NULL;
}

static bool only_accumulates(kd_part *part, const kd_sites *loads, const kd_sites *stores)
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

/* Plans an array that one loop both loads from and stores to. */
static kd_way plan_changes(kd_part *part, const kd_sites *loads, const kd_sites *stores)
{
  kd_sites all = { 0 };
  uint32_t dimensions[KD_MOST_GRID];
  const char *name = stores->items[0]->root->name;
  if (only_accumulates(part, loads, stores)) return KD_ACCUMULATED;
  if (part->is_by_threads) return KD_CHANGED;
  for (size_t i = 0; i < loads->count; i++) KJ_PUSH(part->d.arena, &all, loads->items[i]);
  for (size_t i = 0; i < stores->count; i++) KJ_PUSH(part->d.arena, &all, stores->items[i]);
  if (!is_one_element(&all) || !is_one_to_one(part, &all, dimensions))
    refuse_twice(
      part, stores->items[0]->location, loads->items[0]->location, "the value is loaded here",
      kj_format(part->d.arena,
                "the loop loads from `%s` and stores to it at other indices, which overwrites "
                "values that the adjoint needs: store to another array",
                name));
  return KD_CHANGED;
}

/* ---- several loops ---- */

/* The accesses of one loop to an array. */
typedef struct loop_sites {
  kd_part *part;
  kd_sites loads, stores;
} loop_sites;

typedef KJ_LIST(loop_sites) all_sites;

static all_sites list_all(const kd_plan *plan, const kt_var *array)
{
  all_sites all = { 0 };
  for (size_t i = 0; i < plan->firsts.count; i++) {
    kd_part *part = plan->firsts.items[i];
    loop_sites sites = { part, list_sites(part, array, false), list_sites(part, array, true) };
    if (sites.loads.count || sites.stores.count) KJ_PUSH(part->d.arena, &all, sites);
  }
  return all;
}

/* Returns whether the kernel completes all iterations of loop a before it starts loop b. */
static bool is_synced(const kd_plan *plan, const kd_part *a, const kd_part *b)
{
  for (uint32_t i = a->number + 1; i <= b->number; i++)
    if (plan->firsts.items[i]->sync) return true;
  return false;
}

static _Noreturn void refuse_loops(const kd_plan *plan, const loop_sites *a, const loop_sites *b)
{
  const kd_site *early = a->stores.count ? a->stores.items[0] : a->loads.items[0],
                *late = b->stores.count ? b->stores.items[0] : b->loads.items[0];
  const char *name = early->root->name;
  const char *text =
    is_synced(plan, a->part, b->part)
      ? kj_format(b->part->d.arena,
                  "this loop overwrites elements of `%s` that an earlier loop accesses and the "
                  "adjoint needs: store to another array",
                  name)
      : kj_format(b->part->d.arena,
                  "two loops over a grid_range access `%s` and one of them stores to it, and their "
                  "iterations may run at the same time: write grid_sync() between the loops",
                  name);
  refuse_twice(b->part, late->location, early->location, "the other loop accesses the array here",
               text);
}

/* Checks two loops that access the same array. The derivative is correct in two cases: the loops
 * store to different elements; or the second loop only loads the final values of the first loop, or
 * only adds to them. */
static void check_loops_apart(const kd_plan *plan, const kd_array_plan *made, const loop_sites *a,
                              const loop_sites *b)
{
  kd_way way = made->stores[a->part->number], later = made->stores[b->part->number];
  bool stores = a->stores.count && !a->loads.count,
       stores_later = b->stores.count && !b->loads.count;
  bool is_ordered = stores && (later == KD_UNUSED || later == KD_ACCUMULATED);
  if (way == later && (way == KD_UNUSED || way == KD_ACCUMULATED)) return;
  if (is_ordered && is_synced(plan, a->part, b->part)) return;
  if (!stores || !stores_later) refuse_loops(plan, a, b);
  for (size_t i = 0; i < a->stores.count; i++)
    for (size_t k = 0; k < b->stores.count; k++)
      check_apart(a->part, a->stores.items[i], b->part, b->stores.items[k]);
}

static bool is_gathered(kd_array_plan *made, const all_sites *all)
{
  size_t rank = 0;
  for (size_t i = 0; i < all->count; i++) {
    const loop_sites *sites = &all->items[i];
    if (!sites->loads.count) continue;
    bool has_rank = !rank || rank == sites->part->loop->vars.count;
    rank = sites->part->loop->vars.count;
    if (!has_rank || !kd_plan_gather(sites->part, made, &sites->loads)) return false;
  }
  return true;
}

/* Plans an array's loads. If several loops load from it, plain additions are not possible, because
 * iterations of different loops can run at the same time. */
static void plan_loads(kd_array_plan *made, const all_sites *all)
{
  const loop_sites *first = NULL;
  bool is_alone = true;
  for (size_t i = 0; i < all->count; i++) {
    const loop_sites *sites = &all->items[i];
    if (!sites->loads.count) continue;
    is_alone = !first;
    if (!first) first = sites;
  }
  if (!first) return;
  made->first = first->part->number;
  if (first->part->is_by_threads) made->loads = KD_ATOMIC;
  else if (is_alone && is_one_to_one(first->part, &first->loads, made->dimension))
    made->loads = KD_ADDED;
  else made->loads = is_gathered(made, all) ? KD_GATHERED : KD_ATOMIC;
}

/* Plans the thread-local sums of an array with atomic additions: sums for grid-uniform indices, and
 * copies of a few elements. */
static void plan_atomics(kd_plan *plan, kd_array_plan *made)
{
  all_sites all = list_all(plan, made->array);
  if (made->loads != KD_ATOMIC) return;
  for (size_t i = 0; i < all.count; i++) kd_plan_copies(made, &all.items[i].loads);
  for (size_t i = 0; i < all.count; i++)
    for (size_t k = 0; k < all.items[i].loads.count; k++) {
      const kd_site *site = all.items[i].loads.items[k];
      if (site->is_uniform) made->sums++;
      else if (!kd_is_copied(made, site)) made->atomics++;
    }
}

/* ---- entry point ---- */

static void plan_array(kd_plan *plan, const kt_var *array, kj_arena *arena)
{
  all_sites all = list_all(plan, array);
  kd_array_plan made = { .array = array,
                         .stores = KJ_NEW_ARRAY(arena, kd_way, plan->firsts.count) };
  kd_way in_place = KD_UNUSED;
  for (size_t i = 0; i < all.count; i++) {
    const loop_sites *sites = &all.items[i];
    if (!sites->stores.count) continue;
    kd_way way = sites->loads.count ? plan_changes(sites->part, &sites->loads, &sites->stores)
                                    : plan_stores(sites->part, &sites->stores);
    made.stores[sites->part->number] = way;
    if (sites->loads.count) in_place = way;
  }
  for (size_t k = 0; k < all.count; k++)
    for (size_t i = 0; i < k; i++) check_loops_apart(plan, &made, &all.items[i], &all.items[k]);
  if (in_place) made.loads = in_place;
  else plan_loads(&made, &all);
  KJ_PUSH(arena, &plan->arrays, made);
}

/* Replaces gathering by atomic additions for an array if otherwise a gathering thread could read
 * derivatives that another thread changes in place. */
static void avoid_gathering(kd_plan *plan)
{
  bool has_changed = false;
  for (size_t i = 0; i < plan->arrays.count; i++)
    has_changed |= plan->arrays.items[i].loads == KD_CHANGED;
  for (size_t i = 0; has_changed && i < plan->arrays.count; i++)
    if (plan->arrays.items[i].loads == KD_GATHERED) plan->arrays.items[i].loads = KD_ATOMIC;
}

void kd_make_plan(kd_plan *plan)
{
  const kd_derivation *d = &plan->firsts.items[0]->d;
  const kt_vars *params = &d->record->instance->params;
  size_t count = d->primal->instance->params.count;
  for (size_t i = 0; i < count; i++) {
    const kt_var *param = params->items[i];
    if (kt_is_array(d->c, param->type) && d->variables[i].other) plan_array(plan, param, d->arena);
  }
  avoid_gathering(plan);
  for (size_t i = 0; i < plan->arrays.count; i++) plan_atomics(plan, &plan->arrays.items[i]);
}

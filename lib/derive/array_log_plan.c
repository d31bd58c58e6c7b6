/* Plans the logs of array_log.c: chooses the arrays that have a log and the stores that save
 * elements, and allocates the logs. */
#include "derive/array_log.h"

/* ---- stores that are saved ---- */

typedef struct plan {
  kd_derivation *d;
  bool *is_read;      /* indexed by variable: a preceding or surrounding loop reads the array */
  bool *is_addressed; /* indexed by variable: the code takes its address */
  bool is_pointed_read;
} plan;

static bool mark_array(void *data, const kt_expr *e)
{
  plan *p = data;
  if (e->kind == KJ_T_POINTED) p->is_pointed_read = true;
  bool is_array = e->kind == KJ_T_VAR && kt_is_array(p->d->c, e->type);
  if (is_array && e->var->index < p->d->count) p->is_read[e->var->index] = true;
  return false;
}

static bool mark_reads(void *data, const kt_expr *e)
{
  plan *p = data;
  bool reads = e->kind == KJ_T_BUILTIN && e->x && e->builtin->flags & (KJ_READS | KJ_PURE);
  if (e->kind == KJ_T_LOAD || reads) kt_any_texpr(e->x, mark_array, p);
  for (size_t i = 0; e->kind == KJ_T_CALL && i < e->args.count; i++)
    if (kt_is_array(p->d->c, e->args.items[i]->type)) kt_any_texpr(e->args.items[i], mark_array, p);
  return false;
}

static bool mark_address(void *data, const kt_expr *e)
{
  plan *p = data;
  const kt_var *root = e->kind == KJ_T_ADDRESS ? kd_root(e->x) : NULL;
  if (root && root->index < p->d->count) p->is_addressed[root->index] = true;
  return false;
}

/* Returns whether a loop may read the array, in which case every change of the array must be in a
 * log. */
static bool is_read_array(void *data, const kt_expr *e)
{
  const plan *p = data;
  if (e->kind == KJ_T_POINTED && p->is_pointed_read) return true;
  for (size_t i = 0; e->kind == KJ_T_POINTED && i < p->d->count; i++)
    if (p->is_read[i] && p->is_addressed[i]) return true;
  bool is_array = e->kind == KJ_T_VAR && kt_is_array(p->d->c, e->type);
  if (!is_array || e->var->index >= p->d->count) return false;
  return p->is_read[e->var->index] || (p->is_pointed_read && p->is_addressed[e->var->index]);
}

static _Noreturn void refuse_change(const plan *p, kj_location location, const kt_expr *array,
                                    const char *what)
{
  const kt_var *root = kd_root(array);
  kd_refuse(p->d, location,
            "%s changes %s%s%s, which a loop reads; the reverse derivative runs the loop's body "
            "again and needs the old values, which kjit keeps only for plain stores to one array",
            what, root ? "the array `" : "memory", root ? root->name : "", root ? "`" : "");
}

/* Rejects changes that a log cannot record, to arrays that have a log: atomics, stores with cache
 * hints, and calls that are not inlined. */
static bool check_change(void *data, const kt_expr *e)
{
  plan *p = data;
  bool is_place = e->kind == KJ_T_BUILTIN && e->x && kt_is_array(p->d->c, e->x->type) &&
                  e->builtin->flags & KJ_PLACE && !(e->builtin->flags & KJ_PURE);
  if (is_place && kt_any_texpr(e->x, is_read_array, p))
    refuse_change(p, e->location, e->x, kj_format(p->d->arena, "`%s`", e->builtin->name));
  kt_effects effects = { 0 };
  if (e->kind != KJ_T_CALL) return false;
  kt_add_effects(p->d->c, e, &effects);
  if (!effects.writes && !effects.acts) return false;
  for (size_t i = 0; i < e->args.count; i++) {
    const kt_expr *argument = e->args.items[i];
    bool is_changed =
      kt_is_array(p->d->c, argument->type) && !ki_type(p->d->c->types, argument->type)->read_only;
    if (is_changed && kt_any_texpr(argument, is_read_array, p))
      refuse_change(p, argument->location, argument,
                    kj_format(p->d->arena, "`%s`", e->instance->function->decl->name));
  }
  return false;
}

static void plan_store(plan *p, const kt_stmt *stmt)
{
  kd_derivation *d = p->d;
  kt_var *root = kd_root(stmt->array);
  bool is_known = root && root->index < d->count;
  /* an adjoint kernel does not execute stores to arguments; slice.c rejects loads that need them */
  if (d->adjoint && root && root->kind == KJ_V_PARAM) return;
  /* see adjoint_rerun.c */
  if (d->adjoint && root && root->kind == KJ_V_SHARED) return;
  if (is_known && p->is_read[root->index]) {
    kd_log **log = &d->variables[root->index].log;
    if (!*log) {
      *log = KJ_NEW(d->arena, kd_log);
      (*log)->root = root;
      KJ_PUSH(d->arena, &d->logs, *log);
    }
    KJ_PUSH(d->arena, &(*log)->stores, stmt);
  } else if (kt_any_texpr(stmt->array, is_read_array, p)) {
    refuse_change(p, stmt->location, stmt->array, "this store");
  }
}

/* Plans a block's stores. A loop that is not inside another loop marks the arrays that it reads.
 * All stores to these arrays in the loop or after it are saved. */
static void plan_block(plan *p, const kt_stmts *stmts, bool is_in_loop)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    bool begins = !is_in_loop && !stmt->keeps_values && kd_is_reversed_loop(p->d, stmt);
    if (begins) kt_any_in_tstmts(&stmt->body, NULL, mark_reads, p);
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      kt_any_texpr(kt_stmt_operand(stmt, k), check_change, p);
    if (stmt->kind == KJ_TS_STORE) plan_store(p, stmt);
    plan_block(p, &stmt->body, is_in_loop || begins);
    plan_block(p, &stmt->otherwise, is_in_loop || begins);
  }
}

/* ---- number of entries ---- */

enum { MOST_ENTRIES = 1 << 28 };

int kd_find_store(const kd_log *log, const kt_stmt *stmt)
{
  for (size_t i = 0; log && i < log->stores.count; i++)
    if (log->stores.items[i] == stmt) return (int)i;
  return -1;
}

static kd_entries count_loop_entries(kd_derivation *d, const kd_log *log, const kt_stmt *stmt)
{
  bool is_sure = false, may_leave = false;
  kd_entries made = kd_count_entries(d, log, &stmt->body);
  if (!made.most) return made;
  uint32_t trips = kd_find_trips(d, stmt, &is_sure);
  if (!trips)
    kd_refuse(d, stmt->location,
              "the derivative must keep the elements of `%s` that this loop overwrites, but the "
              "loop's trip count is not known at compile time: " KJ_PHRASE(
                LOOP_BOUND, "write `@most(n)` after its head"),
              log->root->name);
  for (size_t i = 0; i < stmt->body.count; i++) may_leave |= kd_is_last_break(stmt->body.items[i]);
  made.is_sure &= is_sure;
  made.is_exact &= is_sure && stmt->kind == KJ_TS_FOR && !may_leave;
  made.most = made.most > MOST_ENTRIES / trips ? MOST_ENTRIES : made.most * trips;
  return made;
}

kd_entries kd_count_entries(kd_derivation *d, const kd_log *log, const kt_stmts *stmts)
{
  kd_entries sum = { .is_exact = true, .is_sure = true };
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (kd_find_store(log, stmt) >= 0) sum.most++;
    kd_entries first = stmt->kind == KJ_TS_IF ? kd_count_entries(d, log, &stmt->body)
                                              : count_loop_entries(d, log, stmt),
               second = kd_count_entries(d, log, &stmt->otherwise);
    sum.is_sure &= first.is_sure && second.is_sure;
    sum.is_exact &= first.is_exact && second.is_exact;
    if (stmt->kind == KJ_TS_IF) sum.is_exact &= first.most == second.most;
    sum.most += first.most > second.most ? first.most : second.most;
  }
  if (sum.most > MOST_ENTRIES) sum.most = MOST_ENTRIES;
  return sum;
}

/* Returns the maximum number of entries that the body of an outermost loop adds. */
static kd_entries count_body_entries(kd_derivation *d, const kd_log *log, const kt_stmts *stmts)
{
  kd_entries most = { .is_sure = true };
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    kd_entries found[2] = { 0 };
    if (kd_is_reversed_loop(d, stmt)) {
      found[0] = kd_count_entries(d, log, &stmt->body);
    } else {
      found[0] = count_body_entries(d, log, &stmt->body);
      found[1] = count_body_entries(d, log, &stmt->otherwise);
    }
    for (size_t k = 0; k < 2; k++) {
      if (found[k].most > most.most) most.most = found[k].most;
      if (found[k].most) most.is_sure &= found[k].is_sure;
    }
  }
  return most;
}

/* ---- the memory of a log ---- */

kd_operand_places kd_list_numbers(kd_derivation *d, kt_expr *array, kt_exprs *indices)
{
  kd_operand_places found = { 0 };
  for (kt_expr *at = array; at->kind != KJ_T_VAR; at = at->x)
    for (size_t i = 0; i < kt_operand_count(at); i++) {
      kt_expr **operand = kt_operand_place(at, i);
      bool is_number = *operand && *operand != at->x && (*operand)->kind != KJ_T_CONST;
      if (is_number) KJ_PUSH(d->arena, &found, operand);
    }
  for (size_t i = 0; i < indices->count; i++)
    if (indices->items[i]->kind != KJ_T_CONST) KJ_PUSH(d->arena, &found, &indices->items[i]);
  return found;
}

kt_var *kd_add_log_array(kd_derivation *d, const kd_log *log, const char *name, kjit_type element,
                         uint64_t most, uint32_t width, const char *holds)
{
  ki_type_info info = { .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_LOCAL,
                        .is_static = true,
                        .element = element,
                        .rank = width > 1 ? 2 : 1 };
  info.extents[0] = (int64_t)most;
  info.extents[1] = width > 1 ? width : 0;
  kt_var *made =
    kt_add_variable(d->s, KJ_V_LOCAL, kj_format(d->arena, "%s_%s", name, log->root->name),
                    kt_intern_array(d->s, &info), log->root->location, KJ_LEVEL_THREAD);
  kd_note_fact(d, log->stores.items[0]->location, made,
               kj_format(d->arena, "tape `%s`: %s of `%s`; entries: at most %llu", made->name,
                         holds, log->root->name, (unsigned long long)most));
  return made;
}

kjit_type kd_element_of(const kd_derivation *d, const kt_stmt *store)
{
  return ki_type(d->c->types, store->array->type)->element;
}

kt_var *kd_find_values(const kd_log_memory *memory, kjit_type type)
{
  for (size_t i = 0; i < memory->values.count; i++)
    if (memory->values.items[i].type == type) return memory->values.items[i].array;
  return NULL;
}

static kt_expr *integer(kd_derivation *d, int64_t value)
{
  return kt_new_integer(d->s, KJIT_INDEX, value, d->location);
}

static void add_memory(kd_derivation *d, kd_log *log, kd_log_memory *memory, kd_entries count)
{
  memory->most = count.most;
  memory->is_sure = count.is_sure;
  if (!count.most) return;
  memory->depth = kd_new_var(d, "_depth", KJIT_INDEX, d->location);
  kd_assign(d, memory->depth, integer(d, 0));
  if (log->width)
    memory->places = kd_add_log_array(d, log, "places", KJIT_INDEX, count.most, log->width,
                                      "indices of the overwritten elements");
  for (size_t i = 0; i < log->stores.count; i++) {
    kjit_type type = kd_element_of(d, log->stores.items[i]);
    if (kd_find_values(memory, type)) continue;
    if (!ki_type(d->c->types, type)->size_bytes)
      kd_refuse(
        d, log->stores.items[i]->location,
        "a loop overwrites elements of `%s`, but the derivative cannot keep values of type %s",
        log->root->name, kt_type_text(d->c, type));
    kt_var *kept =
      kd_add_log_array(d, log, "kept", type, count.most, 1,
                       "elements that stores overwrite and the reverse pass needs, one for each "
                       "store");
    KJ_PUSH(d->arena, &memory->values, ((kd_kept_values){ type, kept }));
  }
}

void kd_plan_logs(kd_derivation *d)
{
  plan p = { .d = d };
  p.is_read = KJ_NEW_ARRAY(d->arena, bool, d->count + 1);
  p.is_addressed = KJ_NEW_ARRAY(d->arena, bool, d->count + 1);
  kt_any_in_tstmts(&d->body, NULL, mark_address, &p);
  plan_block(&p, &d->body, false);
  for (size_t i = 0; i < d->logs.count; i++) {
    kd_log *log = d->logs.items[i];
    for (size_t k = 0; k < log->stores.count; k++) {
      kt_stmt *store = (kt_stmt *)log->stores.items[k];
      uint32_t numbers = (uint32_t)kd_list_numbers(d, store->array, &store->indices).count;
      if (numbers > log->width) log->width = numbers;
    }
    if (log->stores.count > 1) log->width++;
    add_memory(d, log, &log->memory[0], kd_count_entries(d, log, &d->body));
    add_memory(d, log, &log->memory[1], count_body_entries(d, log, &d->body));
  }
}

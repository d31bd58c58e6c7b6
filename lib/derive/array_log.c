/* Reverse derivatives: logs of arrays that a loop both reads and changes.
 *
 * The reverse pass runs the body of a loop again before it propagates derivatives backward through
 * the body. The body must then read the elements that the arrays had at this iteration's start. A
 * store to such an array therefore first saves the overwritten element and its indices in the log
 * of the array. In the reverse pass, an iteration first undoes all stores that were executed since
 * it started, from the last to the first.
 *
 * An array has two logs: one for the first run of the func, and one for bodies that run again.
 * Bodies that run again never overwrite entries of the first log. Undoing a store exchanges the
 * saved element with the array's element. The stores can therefore be repeated at the end of the
 * reverse pass, which restores the contents that the func has stored to the caller's arrays.
 *
 * Guarantee: after the reverse statements in a loop, every logged array has the contents that it
 * had at the loop's start. */
#include "derive/array_log.h"

static kt_expr *integer(kd_derivation *d, int64_t value)
{
  return kt_new_integer(d->s, KJIT_INDEX, value, d->location);
}

/* ---- stores ---- */

static kd_log *log_of(const kd_derivation *d, const kt_stmt *stmt)
{
  const kt_var *root = stmt->kind == KJ_TS_STORE ? kd_root(stmt->array) : NULL;
  kd_log *log = root && root->index < d->count ? d->variables[root->index].log : NULL;
  return kd_find_store(log, stmt) >= 0 ? log : NULL;
}

bool kd_is_logged(const kd_derivation *d, const kt_stmt *stmt) { return log_of(d, stmt) != NULL; }

static kt_exprs place_indices(kd_derivation *d, const kd_log *log, kt_expr *at, uint32_t number)
{
  kt_exprs indices = { 0 };
  KJ_PUSH(d->arena, &indices, kd_copy(d, at));
  if (log->width > 1) KJ_PUSH(d->arena, &indices, integer(d, number));
  return indices;
}

static void keep_number(kd_derivation *d, const kd_log *log, uint32_t number, kt_expr *value)
{
  const kd_log_memory *memory = &log->memory[d->is_recomputed];
  kt_exprs indices = place_indices(d, log, kd_read(d, memory->depth), number);
  kd_store(d, kd_read(d, memory->places), &indices,
           kt_convert(d->s, value, KJIT_INDEX, value->location));
}

static void check_room(kd_derivation *d, const kd_log_memory *memory, kj_location location)
{
  if (memory->is_sure) return;
  kt_expr *is_full = kt_make_own_binary(d->s, KJIT_OP_GE, kd_read(d, memory->depth),
                                        integer(d, (int64_t)memory->most), location);
  kd_fail_if(d, is_full, location);
}

/* Loads the current element, which may be uninitialized. */
static kt_expr *load_old(kd_derivation *d, kt_expr *array, const kt_exprs *indices,
                         kj_location location)
{
  kt_expr *old = kd_load(d, array, indices);
  old->location = location;
  old->is_kept = true;
  return old;
}

void kd_log_store(kd_derivation *d, const kt_stmt *stmt, const kt_expr *array,
                  const kt_exprs *indices, kt_expr *value)
{
  const kd_log *log = log_of(d, stmt);
  const kd_log_memory *memory = &log->memory[d->is_recomputed];
  check_room(d, memory, stmt->location);
  kt_expr *place = kd_copy(d, array);
  kt_exprs own = { 0 }, depth = { 0 };
  for (size_t i = 0; i < indices->count; i++)
    KJ_PUSH(d->arena, &own, kd_copy(d, indices->items[i]));
  KJ_PUSH(d->arena, &depth, kd_read(d, memory->depth));
  kt_var *values = kd_find_values(memory, kd_element_of(d, stmt));
  kd_store(d, kd_read(d, values), &depth, load_old(d, place, &own, stmt->location));
  uint32_t number = 0;
  if (log->stores.count > 1) keep_number(d, log, number++, integer(d, kd_find_store(log, stmt)));
  kd_operand_places numbers = kd_list_numbers(d, place, &own);
  for (size_t i = 0; i < numbers.count; i++)
    keep_number(d, log, number++, kd_copy(d, *numbers.items[i]));
  kd_assign(d, memory->depth,
            kt_make_own_binary(d->s, KJIT_OP_ADD, kd_read(d, memory->depth), integer(d, 1),
                               stmt->location));
  kd_store(d, kd_copy(d, array), indices, value);
}

void kd_copy_logged(kd_derivation *d, const kt_stmt *stmt)
{
  kt_expr *value = kd_keep(d, kd_copy(d, stmt->value));
  kt_expr *array = kd_keep_array(d, stmt->array);
  kt_exprs indices = { 0 };
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(d->arena, &indices, kd_keep(d, kd_copy(d, stmt->indices.items[i])));
  kd_log_store(d, stmt, array, &indices, value);
}

/* ---- undoing and redoing ---- */

/* Restores the element that was saved in entry `at`. If `exchanges` is set, saves the array's
 * current element in the entry. */
static void put_back(kd_derivation *d, const kd_log *log, const kd_log_memory *memory, kt_expr *at,
                     const kt_stmt *store, bool exchanges)
{
  kt_expr *array = kd_copy(d, store->array);
  kt_exprs indices = { 0 }, entry = { 0 };
  for (size_t i = 0; i < store->indices.count; i++)
    KJ_PUSH(d->arena, &indices, kd_copy(d, store->indices.items[i]));
  kd_operand_places numbers = kd_list_numbers(d, array, &indices);
  for (uint32_t i = 0; i < numbers.count; i++) {
    uint32_t number = i + (log->stores.count > 1);
    kt_exprs place = place_indices(d, log, at, number);
    kt_expr *loaded = kd_load(d, kd_read(d, memory->places), &place);
    *numbers.items[i] =
      kd_keep(d, kt_convert(d->s, loaded, (*numbers.items[i])->type, store->location));
  }
  KJ_PUSH(d->arena, &entry, kd_copy(d, at));
  kt_var *values = kd_find_values(memory, kd_element_of(d, store));
  kt_expr *kept = kd_keep(d, kd_load(d, kd_read(d, values), &entry));
  if (exchanges)
    kd_store(d, kd_read(d, values), &entry,
             load_old(d, kd_copy(d, array), &indices, store->location));
  kd_store(d, array, &indices, kept);
}

/* Selects the store that created an entry, and restores the entry as put_back does. */
static void put_back_entry(kd_derivation *d, const kd_log *log, const kd_log_memory *memory,
                           kt_expr *at, bool exchanges)
{
  kt_stmts *outer = d->s->out;
  kt_expr *store = NULL;
  if (log->stores.count > 1) {
    kt_exprs place = place_indices(d, log, at, 0);
    store = kd_keep(d, kd_load(d, kd_read(d, memory->places), &place));
  }
  for (size_t i = 0; i < log->stores.count; i++) {
    if (i + 1 < log->stores.count) {
      kt_expr *is_this = kt_make_own_binary(d->s, KJIT_OP_EQ, kd_copy(d, store),
                                            integer(d, (int64_t)i), d->location);
      kt_stmt *branch = kt_new_if(d->c, is_this, d->location);
      kt_emit(d->s, branch);
      d->s->out = &branch->body;
      put_back(d, log, memory, at, log->stores.items[i], exchanges);
      d->s->out = &branch->otherwise;
    } else {
      put_back(d, log, memory, at, log->stores.items[i], exchanges);
    }
  }
  d->s->out = outer;
}

static void count_down(kd_derivation *d, const kd_log_memory *memory)
{
  kd_assign(d, memory->depth,
            kt_make_own_binary(d->s, KJIT_OP_SUB, kd_read(d, memory->depth), integer(d, 1),
                               d->location));
}

static bool is_exchanged(const kd_log *log, const kd_log_memory *memory)
{
  return memory == &log->memory[0] && log->root->kind != KJ_V_LOCAL;
}

/* Undoes the last `count` entries. Because the loop has a constant number of iterations, LLVM can
 * unroll it, and the indices into the log become constants. */
static void undo_last(kd_derivation *d, const kd_log *log, const kd_log_memory *memory,
                      uint64_t count)
{
  enum { MOST_UNROLLED = 32 };
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_FOR, d->location);
  loop->var = kt_add_variable(d->s, KJ_V_LOOP, "_i", KJIT_INDEX, d->location, KJ_LEVEL_THREAD);
  loop->first = integer(d, 0);
  loop->stop = integer(d, (int64_t)count);
  loop->step = integer(d, 1);
  if (count * log->stores.count <= MOST_UNROLLED) loop->unroll = KJ_UNROLL_FULL;
  kt_emit(d->s, loop);
  kt_stmts *outer = d->s->out;
  d->s->out = &loop->body;
  count_down(d, memory);
  put_back_entry(d, log, memory, kd_read(d, memory->depth), is_exchanged(log, memory));
  d->s->out = outer;
}

/* Undoes all entries with a number of at least `depth`. */
static void undo_to(kd_derivation *d, const kd_log *log, const kd_log_memory *memory,
                    kt_expr *depth, uint64_t most)
{
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_WHILE, d->location);
  loop->value = kt_make_own_binary(d->s, KJIT_OP_GT, kd_read(d, memory->depth), depth, d->location);
  loop->most = (uint32_t)most;
  kt_emit(d->s, loop);
  kt_stmts *outer = d->s->out;
  d->s->out = &loop->body;
  count_down(d, memory);
  put_back_entry(d, log, memory, kd_read(d, memory->depth), is_exchanged(log, memory));
  d->s->out = outer;
}

void kd_end_logs(kd_derivation *d)
{
  for (size_t i = 0; i < d->logs.count; i++) {
    kd_log *log = d->logs.items[i];
    if (log->root->kind == KJ_V_LOCAL) continue;
    log->end = kd_new_var(d, "_end", KJIT_INDEX, d->location);
    kd_assign(d, log->end, kd_read(d, log->memory[0].depth));
  }
}

void kd_redo_stores(kd_derivation *d)
{
  for (size_t i = 0; i < d->logs.count; i++) {
    const kd_log *log = d->logs.items[i];
    const kd_log_memory *memory = &log->memory[0];
    if (!log->end) continue;
    kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_FOR, d->location);
    loop->var = kt_add_variable(d->s, KJ_V_LOOP, "_i", KJIT_INDEX, d->location, KJ_LEVEL_THREAD);
    loop->first = kd_read(d, memory->depth);
    loop->stop = kd_read(d, log->end);
    loop->step = integer(d, 1);
    loop->most = (uint32_t)memory->most;
    kt_emit(d->s, loop);
    kt_stmts *outer = d->s->out;
    d->s->out = &loop->body;
    put_back_entry(d, log, memory, kd_read(d, loop->var), false);
    d->s->out = outer;
  }
}

/* ---- loops ---- */

static bool is_statement(void *data, const kt_stmt *stmt) { return stmt == data; }

static bool is_variable(void *data, const kt_expr *e)
{
  return e->kind == KJ_T_VAR && e->var == data;
}

static bool is_used_in(const kd_log *log, const kt_stmt *stmt)
{
  return kt_any_in_tstmt(stmt, NULL, is_variable, log->root);
}

/* Returns whether all stores of an iteration are directly in the loop's body, and no inner loop
 * undoes any of them. */
static bool is_straight(const kd_log *log, const kt_stmts *body, const kd_entries *count)
{
  size_t found = 0;
  for (size_t i = 0; i < body->count; i++) {
    const kt_stmt *stmt = body->items[i];
    if (kd_find_store(log, stmt) >= 0) found++;
    else if (stmt->kind != KJ_TS_ASSIGN && is_used_in(log, stmt)) return false;
  }
  return count->is_exact && found == count->most;
}

static kt_var *add_tape(kd_derivation *d, const kd_log *log, uint32_t most)
{
  return kd_add_log_array(d, log, "depths", KJIT_INDEX, most, 1,
                          "number of stores before each iteration that changes elements");
}

void kd_begin_marks(kd_derivation *d, const kt_stmt *loop, uint32_t trips, kd_marks *marks)
{
  for (size_t i = 0; i < d->logs.count; i++) {
    kd_log *log = d->logs.items[i];
    const kt_stmt *last = log->stores.items[log->stores.count - 1];
    if (!log->memory[d->is_recomputed].most) continue;
    kd_entries count = kd_count_entries(d, log, &loop->body);
    kd_mark mark = { .log = log, .most = count.most, .is_exact = count.is_exact };
    if (!is_used_in(log, loop)) continue;
    mark.is_straight = is_straight(log, &loop->body, &count);
    if (!kt_any_in_tstmt(loop, is_statement, NULL, (void *)last))
      mark.end = kd_new_var(d, "_end", KJIT_INDEX, loop->location);
    if (count.most && !count.is_exact) mark.tape = add_tape(d, log, trips);
    if (count.most || mark.end) KJ_PUSH(d->arena, marks, mark);
  }
}

void kd_mark_iteration(kd_derivation *d, const kd_marks *marks, kt_expr *at)
{
  for (size_t i = 0; i < marks->count; i++) {
    const kd_mark *mark = &marks->items[i];
    kt_exprs index = { 0 };
    KJ_PUSH(d->arena, &index, kd_copy(d, at));
    const kd_log_memory *memory = &mark->log->memory[d->is_recomputed];
    if (mark->tape) kd_store(d, kd_read(d, mark->tape), &index, kd_read(d, memory->depth));
  }
}

void kd_mark_end(kd_derivation *d, const kd_marks *marks)
{
  for (size_t i = 0; i < marks->count; i++) {
    const kd_mark *mark = &marks->items[i];
    if (mark->end) kd_assign(d, mark->end, kd_read(d, mark->log->memory[d->is_recomputed].depth));
  }
}

void kd_undo_later(kd_derivation *d, const kd_marks *marks)
{
  for (size_t i = 0; i < marks->count; i++) {
    const kd_mark *mark = &marks->items[i];
    const kd_log_memory *memory = &mark->log->memory[d->is_recomputed];
    if (mark->end) undo_to(d, mark->log, memory, kd_read(d, mark->end), memory->most);
  }
}

/* Undoes an iteration whose stores are all directly in the loop's body. */
static void undo_straight(kd_derivation *d, const kd_mark *mark, const kt_stmts *body)
{
  const kd_log *log = mark->log;
  const kd_log_memory *memory = &log->memory[d->is_recomputed];
  for (size_t i = body->count; i-- > 0;) {
    if (kd_find_store(log, body->items[i]) < 0) continue;
    count_down(d, memory);
    put_back(d, log, memory, kd_read(d, memory->depth), body->items[i], is_exchanged(log, memory));
  }
}

void kd_undo_iteration(kd_derivation *d, kd_marks *marks, const kt_stmt *loop, kt_expr *at)
{
  for (size_t i = 0; i < marks->count; i++) {
    kd_mark *mark = &marks->items[i];
    const kd_log_memory *memory = &mark->log->memory[d->is_recomputed];
    kt_exprs index = { 0 };
    if (!mark->most) continue;
    if (mark->is_straight) {
      undo_straight(d, mark, &loop->body);
      continue;
    }
    KJ_PUSH(d->arena, &index, kd_copy(d, at));
    mark->start = kd_new_var(d, "_start", KJIT_INDEX, loop->location);
    if (mark->is_exact) {
      undo_last(d, mark->log, memory, mark->most);
      kd_assign(d, mark->start, kd_read(d, memory->depth));
      continue;
    }
    kd_assign(d, mark->start, kd_load(d, kd_read(d, mark->tape), &index));
    undo_to(d, mark->log, memory, kd_read(d, mark->start), mark->most);
  }
}

void kd_undo_again(kd_derivation *d, const kd_marks *marks, const kt_stmt *loop, bool is_inner)
{
  KJ_ASSERT(d->is_recomputed);
  for (size_t i = 0; i < marks->count; i++) {
    const kd_mark *mark = &marks->items[i];
    if (mark->is_straight) undo_straight(d, mark, &loop->body);
    else if (mark->most)
      undo_to(d, mark->log, &mark->log->memory[1],
              is_inner ? kd_read(d, mark->start) : integer(d, 0), mark->most);
  }
}

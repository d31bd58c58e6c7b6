/* Type inference of two kinds of loops: static loops, and loops over arrays and shapes. A static
 * loop iterates over a tuple or is a `@static` range. Its body is inferred once for each item or
 * number, because names can have a different type in each iteration.
 *
 * A static loop becomes a sequence of copies of its body, without a loop. After a `break` that is
 * decided at compile time, inference makes no further copies. A `continue` that is decided at
 * compile time ends its copy. A jump that is decided at run time needs a loop to leave, so the
 * copies are then placed in a loop that runs once. */
#include <string.h>

#include "typing/infer.h"

enum { MOST_COPIES = 1024 };

/* ---- guesses of copies ---- */

/* Returns the maximum of `end` and the highest index of these declarations plus 1. A function's
 * declarations are numbered in source order. */
static uint32_t end_of_decls(const ki_decls *decls, uint32_t end)
{
  for (size_t i = 0; i < decls->count; i++)
    if (decls->items[i]->index >= end) end = decls->items[i]->index + 1;
  return end;
}

static uint32_t end_of_body(const ki_stmts *body, uint32_t end)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if (stmt->kind != KJ_STMT_ASSIGN) end = end_of_decls(&stmt->decls, end);
    end = end_of_body(&stmt->otherwise, end_of_body(&stmt->body, end));
  }
  return end;
}

/* Swaps the current guesses about the copy's declarations with the guesses that are stored in the
 * copy. */
static void exchange(kt_scope *s, kt_copy *copy)
{
  for (uint32_t i = 0; i < copy->count; i++) {
    kt_guess guess = s->guesses[copy->first + i];
    s->guesses[copy->first + i] = copy->guesses[i];
    copy->guesses[i] = guess;
  }
}

static kt_copy *find_copy(kt_scope *s, const ki_stmt *loop, uint32_t number)
{
  for (size_t i = 0; i < s->copy->inner.count; i++) {
    kt_copy *copy = s->copy->inner.items[i];
    if (copy->loop == loop && copy->number == number) return copy;
  }
  kt_copy *copy = KJ_NEW(s->arena, kt_copy);
  uint32_t first = loop->decls.items[0]->index;
  *copy = (kt_copy){ .loop = loop,
                     .number = number,
                     .outer = s->copy,
                     .first = first,
                     .count = end_of_body(&loop->body, end_of_decls(&loop->decls, first)) - first };
  copy->guesses = KJ_NEW_ARRAY(s->arena, kt_guess, copy->count);
  KJ_PUSH(s->arena, &s->copy->inner, copy);
  return copy;
}

static void leave_copy(kt_scope *s)
{
  exchange(s, s->copy);
  s->copy = s->copy->outer;
}

void kt_leave_copies(kt_scope *s)
{
  while (s->copy->outer) leave_copy(s);
}

static void visit_copies(const kt_scope *s, const kt_copy *copy,
                         void (*visit)(void *data, const ki_decl *decl, kt_guess *guess),
                         void *data)
{
  size_t params = s->function->params.count;
  for (size_t i = 0; i < copy->inner.count; i++) {
    kt_copy *inner = copy->inner.items[i];
    for (uint32_t k = 0; k < inner->count; k++)
      visit(data, s->function->locals.items[inner->first + k - params], &inner->guesses[k]);
    visit_copies(s, inner, visit, data);
  }
}

void kt_each_guess(const kt_scope *s,
                   void (*visit)(void *data, const ki_decl *decl, kt_guess *guess), void *data)
{
  const kt_copy *root = s->copy;
  while (root->outer) root = root->outer;
  for (size_t i = 0; i < s->function->locals.count; i++) {
    const ki_decl *decl = s->function->locals.items[i];
    visit(data, decl, &s->guesses[decl->index]);
  }
  visit_copies(s, root, visit, data);
}

/* ---- jumps ---- */

/* Returns whether the statements contain a jump that leaves this loop. Jumps in inner loops leave
 * only the inner loops. */
static bool has_jump(const kt_stmts *stmts, kt_tstmt_kind jump)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (stmt->kind == jump) return true;
    if (stmt->kind == KJ_TS_IF && (has_jump(&stmt->body, jump) || has_jump(&stmt->otherwise, jump)))
      return true;
  }
  return false;
}

static void append(kt_scope *s, kt_stmts *to, const kt_stmts *from)
{
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(s->arena, to, from->items[i]);
}

/* Adds a bool variable that is initially false and records whether a loop was left. */
static kt_var *add_flag(kt_scope *s, kj_location location)
{
  kt_var *flag = kt_add_variable(s, KJ_V_VAR, kj_format(s->arena, "_%u", s->temporary_count++),
                                 KJIT_BOOL, location, KJ_LEVEL_THREAD);
  kt_emit_assign(s, flag, kt_new_integer(s, KJIT_BOOL, 0, location), location);
  return flag;
}

/* Inserts an assignment of true to the flag before each `break` of the loop. */
static void set_at_breaks(kt_scope *s, kt_stmts *stmts, kt_var *flag)
{
  kt_stmts list = { 0 };
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    if (stmt->kind == KJ_TS_IF) {
      set_at_breaks(s, &stmt->body, flag);
      set_at_breaks(s, &stmt->otherwise, flag);
    }
    if (stmt->kind == KJ_TS_BREAK)
      KJ_PUSH(s->arena, &list,
              kt_new_assign(s, flag, kt_new_integer(s, KJIT_BOOL, 1, stmt->location),
                            stmt->location));
    KJ_PUSH(s->arena, &list, stmt);
  }
  *stmts = list;
}

static kt_stmt *new_loop(kt_scope *s, const char *name, kjit_type type, kt_expr *stop,
                         kt_level level, kj_location location)
{
  kt_stmt *loop = kt_new_tstmt(s->c, KJ_TS_FOR, location);
  loop->first = kt_new_integer(s, type, 0, location);
  loop->stop = stop;
  loop->step = kt_new_integer(s, type, 1, location);
  loop->var = kt_add_variable(s, KJ_V_LOOP, name, type, location, level);
  return loop;
}

/* Makes a loop that runs once, so that `break` and `continue` can leave its body. */
static kt_stmt *new_once(kt_scope *s, kj_location location)
{
  const char *name = kj_format(s->arena, "_%u", s->temporary_count++);
  return new_loop(s, name, KJIT_I32, kt_new_integer(s, KJIT_I32, 1, location), KJ_LEVEL_GRID,
                  location);
}

/* ---- static loops ---- */

typedef struct static_loop {
  const ki_stmt *stmt;
  KJ_LIST(kt_stmts) copies;
  bool has_break, has_continue; /* some copy contains a jump that is decided at run time */
  /* a `break` has been decided at compile time, so no further copy follows */
  bool is_over;
  kt_level outer_level, outer_skipped;
  bool was_range_body;
} static_loop;

static void begin_copies(kt_scope *s, static_loop *loop, const ki_stmt *stmt)
{
  *loop = (static_loop){ .stmt = stmt,
                         .outer_level = s->level,
                         .outer_skipped = s->skipped_level,
                         .was_range_body = s->is_range_body };
  s->skipped_level = KJ_LEVEL_GRID;
  s->is_range_body = false;
}

/* Makes the next copy the current one. The assignments to the loop variables of this copy are
 * appended to `body`. */
static void begin_copy(kt_scope *s, static_loop *loop, kt_stmts *body)
{
  kj_location location = loop->stmt->location;
  if (loop->copies.count == MOST_COPIES)
    kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED, "a static loop can have at most %d iterations",
            MOST_COPIES);
  kt_count_work(s, location);
  kt_copy *copy = find_copy(s, loop->stmt, (uint32_t)loop->copies.count);
  s->copy = copy;
  exchange(s, copy);
  *body = (kt_stmts){ 0 };
  s->out = body;
}

/* Infers the body as one copy. Removes the last statement if it is a jump that was decided at
 * compile time. The jump is not needed: no statement follows a `continue` at the end of a copy, and
 * no copy follows a `break`. */
static void finish_copy(kt_scope *s, static_loop *loop, kt_stmts *body, kt_level skipped)
{
  kt_infer_block(s, &loop->stmt->body, body);
  kt_stmt *last = body->count ? body->items[body->count - 1] : NULL;
  if (last && last->kind == KJ_TS_CONTINUE) body->count--;
  bool has_continue = has_jump(body, KJ_TS_CONTINUE);
  if (kt_has_jumped(body) && !has_continue) {
    loop->is_over = true;
    if (last->kind == KJ_TS_BREAK) body->count--;
  }
  bool has_break = has_jump(body, KJ_TS_BREAK);
  /* threads that skipped the rest of the copy are active again */
  if (!has_break) s->skipped_level = skipped;
  s->level = kt_higher_level(loop->outer_level, s->skipped_level);
  loop->has_break |= has_break;
  loop->has_continue |= has_continue;
  KJ_PUSH(s->arena, &loop->copies, *body);
  leave_copy(s);
}

/* Emits each copy as a loop that runs once, because some copy has a `continue` that is decided at
 * run time. If an earlier copy has a `break`, a later copy runs only if the flag is not set. */
static void emit_separate_copies(kt_scope *s, static_loop *loop)
{
  kj_location location = loop->stmt->location;
  kt_var *flag = loop->has_break ? add_flag(s, location) : NULL;
  bool may_be_over = false;
  for (size_t i = 0; i < loop->copies.count; i++) {
    kt_stmts *body = &loop->copies.items[i];
    bool has_break = has_jump(body, KJ_TS_BREAK);
    kt_stmt *once = new_once(s, location), *copy = once;
    if (has_break) set_at_breaks(s, body, flag);
    once->body = *body;
    if (may_be_over) {
      copy =
        kt_new_if(s->c, kt_make_unary(s, KJIT_OP_NOT, kt_make_var(s, flag, location), location),
                  location);
      KJ_PUSH(s->arena, &copy->body, once);
    }
    may_be_over |= has_break;
    kt_emit(s, copy);
  }
}

static void end_copies(kt_scope *s, static_loop *loop, kt_stmts *out)
{
  s->out = out;
  s->level = loop->outer_level;
  s->skipped_level = loop->outer_skipped;
  s->is_range_body = loop->was_range_body;
  if (loop->has_continue) {
    emit_separate_copies(s, loop);
    return;
  }
  kt_stmt *once = loop->has_break ? new_once(s, loop->stmt->location) : NULL;
  for (size_t i = 0; i < loop->copies.count; i++)
    append(s, once ? &once->body : out, &loop->copies.items[i]);
  if (once) kt_emit(s, once);
}

/* Sets the loop variables for one copy. */
static void name_item(kt_scope *s, const ki_stmt *stmt, kt_expr *item)
{
  const ki_decls *names = &stmt->decls;
  if (names->count == 1) {
    kt_declare(s, names->items[0], item);
    return;
  }
  kt_check_names(s, names->count, item, stmt->location);
  kt_exprs parts = kt_take_items(s, item, stmt->location);
  for (size_t i = 0; i < names->count; i++) kt_declare(s, names->items[i], parts.items[i]);
}

static void infer_copies(kt_scope *s, const ki_stmt *stmt, const kt_exprs *items)
{
  kt_stmts *out = s->out, body;
  static_loop loop;
  begin_copies(s, &loop, stmt);
  for (size_t i = 0; i < items->count && !loop.is_over; i++) {
    kt_level skipped = s->skipped_level;
    begin_copy(s, &loop, &body);
    name_item(s, stmt, items->items[i]);
    finish_copy(s, &loop, &body, skipped);
  }
  end_copies(s, &loop, out);
}

/* ---- loops over the items of a value ---- */

/* Infers a loop over the first dimension of an array. If the array has one dimension, the item is
 * an element; otherwise it is a view of the remaining dimensions. If `fields` is not NULL, the item
 * is this field of an element. If `are_references` is true and the elements are structs, the loop
 * variable is a reference to each element. */
static void infer_array_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *array,
                             const ki_expr *fields, bool are_references)
{
  array = kt_keep_value(s, array);
  const ki_type_info *info = ki_type(s->c->types, array->type);
  if (info->rank == 0)
    kt_fail(s->c, array->location, KJIT_ERROR_TYPE,
            "a loop cannot run over an array without dimensions; its only element is `a[]`");
  kt_expr *extent = kt_make_extent(s, kt_copy_texpr(s, array), 0, stmt->location);
  extent = kt_keep_value(s, kt_convert_to_index(s, extent, stmt->location));
  kt_level level = kt_level_of(s, extent);
  kt_stmt *loop = new_loop(s, kj_format(s->arena, "_%u", s->temporary_count++), KJIT_INDEX, extent,
                           level, stmt->location);
  loop->unroll = kt_infer_unroll(s, stmt);
  kt_expr *index = kt_make_var(s, loop->var, stmt->location), *item;
  kt_stmts *out = s->out;
  s->out = &loop->body;
  if (info->rank == 1) {
    item = kt_new_texpr(s->c, KJ_T_LOAD, info->element, array->location);
    item->x = array;
    KJ_PUSH(s->arena, &item->args, index);
    if (fields) item = kt_read_fields(s, fields, item);
    else if (are_references) item = kt_refer(s, item, array->location);
  } else {
    kt_slice slices[KJ_MAX_RANK] = { { .is_index = true, .start = index } };
    for (uint32_t d = 1; d < info->rank; d++) slices[d].is_whole = true;
    item = kt_make_view(s, array, slices, array->location);
  }
  name_item(s, stmt, item);
  s->out = out;
  kt_infer_loop_body(s, stmt, &loop->body, level, false);
  kt_emit(s, loop);
}

void kt_infer_items_loop(kt_scope *s, const ki_stmt *stmt)
{
  const ki_expr *source = stmt->args.items[0];
  bool is_referred = source->kind == KJ_EXPR_CALL && source->x->kind == KJ_EXPR_BUILTIN &&
                     source->x->builtin->id == KJ_BUILTIN_REFER && source->args.count == 1;
  if (is_referred) source = source->args.items[0];
  const ki_expr *array = kt_array_of_fields(s, source, 1);
  kt_expr *value = kt_infer_expr(s, array);
  if (kt_is_array(s->c, value->type)) {
    infer_array_loop(s, stmt, kt_make_concrete(s, value), array == source ? NULL : source,
                     is_referred || s->has_numba_types);
    return;
  }
  const ki_attribute *unroll = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_UNROLL);
  if (!kt_is_tuple(s->c, value->type))
    kt_fail(
      s->c, value->location, KJIT_ERROR_TYPE,
      "a loop iterates over a tuple, an array or a range, got %s; for a number write `range(n)`",
      kt_type_text(s->c, value->type));
  if (unroll)
    kt_fail(s->c, unroll->location, KJIT_ERROR_TYPE,
            "omit `@unroll`: a loop over a tuple already copies its body for each item");
  kt_exprs items = kt_take_items(s, value, stmt->location);
  infer_copies(s, stmt, &items);
}

/* ---- static ranges ---- */

static __int128 number_of(kt_scope *s, const kt_expr *value)
{
  if (kt_is_constant(value)) return value->integer;
  kt_fail(
    s->c, value->location, KJIT_ERROR_TYPE,
    "the arguments of a `@static` range must be known at compile time: literals, constants, const "
    "parameters, `len` of a tuple, or arithmetic on them; `@unroll` accepts any arguments");
}

static kt_exprs numbers_of_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values)
{
  kt_exprs items = { 0 };
  kjit_type type = kt_range_type(s, values, stmt->location);
  bool has_start = values->count > 1;
  __int128 first = has_start ? number_of(s, values->items[0]) : 0,
           stop = number_of(s, values->items[has_start]),
           step = values->count > 2 ? number_of(s, values->items[2]) : 1;
  if (step == 0)
    kt_fail(s->c, values->items[2]->location, KJIT_ERROR_TYPE, "the step of `range` is 0");
  for (__int128 i = first; step > 0 ? i < stop : i > stop; i += step) {
    /* one number above the maximum is enough for infer_copies to report the error */
    if (items.count > MOST_COPIES) break;
    KJ_PUSH(s->arena, &items, kt_new_integer(s, type, i, stmt->location));
  }
  return items;
}

/* Returns all index tuples within the extents in row-major order. Without extents this is only the
 * empty tuple. */
static kt_exprs positions_in(kt_scope *s, const ki_stmt *stmt, const kt_exprs *extents)
{
  kt_exprs items = { 0 };
  __int128 count = 1;
  for (size_t d = 0; d < extents->count; d++) {
    __int128 extent = number_of(s, extents->items[d]);
    count = extent <= 0 || count > MOST_COPIES ? (extent <= 0 ? 0 : count) : count * extent;
    if (count == 0) return items;
  }
  for (__int128 i = 0; i < count && items.count <= MOST_COPIES; i++) {
    kt_exprs position = { 0 };
    __int128 rest = i;
    for (size_t d = 0; d < extents->count; d++) KJ_PUSH(s->arena, &position, NULL);
    for (size_t d = extents->count; d-- > 0; rest /= extents->items[d]->integer)
      position.items[d] =
        kt_new_integer(s, KJIT_INDEX, rest % extents->items[d]->integer, stmt->location);
    bool is_alone = position.count == 1;
    KJ_PUSH(s->arena, &items,
            is_alone ? position.items[0] : kt_make_tuple(s, &position, stmt->location));
  }
  return items;
}

static _Noreturn void fail_names(kt_scope *s, const ki_stmt *stmt, size_t rank)
{
  kt_fail(s->c, stmt->location, KJIT_ERROR_TYPE, "got %zu loop variables for %zu extent%s",
          stmt->decls.count, rank, rank == 1 ? "" : "s");
}

void kt_infer_static_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values)
{
  bool is_shape = values->count == 1 && kt_is_tuple(s->c, values->items[0]->type);
  kt_exprs items;
  if (is_shape) {
    kt_exprs parts = kt_take_items(s, values->items[0], stmt->location),
             extents = kt_convert_extents(s, &parts);
    if (stmt->decls.count != 1 && stmt->decls.count != extents.count)
      fail_names(s, stmt, extents.count);
    items = positions_in(s, stmt, &extents);
  } else {
    if (stmt->decls.count != 1) fail_names(s, stmt, 1);
    items = numbers_of_range(s, stmt, values);
  }
  infer_copies(s, stmt, &items);
}

/* ---- loops over an array's indices, in row-major order ---- */

static void name_position(kt_scope *s, const ki_stmt *stmt, const kt_exprs *position)
{
  size_t names = stmt->decls.count, rank = position->count;
  if (names != 1 && names != rank) fail_names(s, stmt, rank);
  for (size_t i = 0; i < names && names == rank; i++)
    kt_bind_variable(s, stmt->decls.items[i], position->items[i]->var);
  if (names != rank)
    kt_bind_value(s, stmt->decls.items[0], kt_make_tuple(s, position, stmt->location));
}

/* Infers a `range` over a shape as nested loops, one for each extent. A `break` leaves all of these
 * loops. */
void kt_infer_shape_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *shape)
{
  kt_exprs parts = kt_take_items(s, shape, stmt->location), position = { 0 };
  kt_exprs extents = kt_convert_extents(s, &parts);
  kt_level level = kt_level_of_list(s, &extents);
  kt_stmt *loops[KJ_MAX_RANK + 1];
  size_t rank = extents.count, depth = rank;
  if (rank > KJ_MAX_RANK)
    kt_fail(s->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "`range` can iterate over at most %d extents, got %zu", KJ_MAX_RANK, rank);
  for (size_t d = 0; d < rank; d++) extents.items[d] = kt_keep_value(s, extents.items[d]);
  for (size_t d = 0; d < rank; d++) {
    const ki_decl *decl = stmt->decls.items[stmt->decls.count == rank ? d : 0];
    loops[d] = new_loop(s, decl->name, KJIT_INDEX, extents.items[d], level, decl->location);
    KJ_PUSH(s->arena, &position, kt_make_var(s, loops[d]->var, decl->location));
  }
  if (rank == 0) loops[depth++] = new_once(s, stmt->location);
  kt_stmt *innermost = loops[depth - 1];
  innermost->unroll = kt_infer_unroll(s, stmt);
  name_position(s, stmt, &position);
  kt_infer_loop_body(s, stmt, &innermost->body, level, false);
  bool leaves_all = depth > 1 && has_jump(&innermost->body, KJ_TS_BREAK);
  kt_var *flag = leaves_all ? add_flag(s, stmt->location) : NULL;
  if (flag) set_at_breaks(s, &innermost->body, flag);
  for (size_t d = depth - 1; d-- > 0;) {
    KJ_PUSH(s->arena, &loops[d]->body, loops[d + 1]);
    if (!flag) continue;
    kt_stmt *leave = kt_new_if(s->c, kt_make_var(s, flag, stmt->location), stmt->location);
    KJ_PUSH(s->arena, &leave->body, kt_new_tstmt(s->c, KJ_TS_BREAK, stmt->location));
    KJ_PUSH(s->arena, &loops[d]->body, leave);
  }
  kt_emit(s, loops[0]);
}

/* Typing rules of built-ins that synchronize threads, warps or blocks: barriers, warp operations,
 * named barriers, mbarriers and clusters. */
#include <string.h>

#include "typing/rules.h"

/* ---- barriers and warp operations ---- */

static kt_expr *convert_mask(kt_scope *s, kt_expr *mask)
{
  if (!kt_is_integer(s->c, mask->type))
    kt_fail_number(s->c, mask->location, mask->type, "a lane mask must be an integer (u32), got %s",
                   kt_type_text(s->c, mask->type));
  return kt_convert(s, mask, KJIT_U32, mask->location);
}

static kt_expr *convert_predicate(kt_scope *s, kt_expr *value)
{
  if (value->type != KJIT_BOOL && !kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type, "expected a bool or an integer, got %s",
                   kt_type_text(s->c, value->type));
  return kt_convert(s, kt_make_concrete(s, value), KJIT_BOOL, value->location);
}

/* ---- barriers and fences ---- */

kt_expr *kt_rule_barrier(kt_scope *s, const kt_operands *o)
{
  return kt_new_builtin(s, o, KJIT_VOID);
}

static kt_expr *apply_predicate(kt_scope *s, const kt_operands *o, kjit_type type)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_predicate(s, o->values.items[0]));
  return kt_new_builtin_of(s, o, values, type);
}

kt_expr *kt_rule_barrier_count(kt_scope *s, const kt_operands *o)
{
  return apply_predicate(s, o, KJIT_I32);
}

kt_expr *kt_rule_barrier_vote(kt_scope *s, const kt_operands *o)
{
  return apply_predicate(s, o, KJIT_BOOL);
}

kt_expr *kt_rule_syncwarp(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  kt_expr *mask =
    o->values.count ? o->values.items[0] : kt_new_integer(s, KJ_WEAK_INT, 0xffffffff, o->location);
  KJ_PUSH(s->arena, &values, convert_mask(s, mask));
  return kt_new_builtin_of(s, o, values, KJIT_VOID);
}

/* ---- warp ---- */

static kt_expr *convert_lane(kt_scope *s, const kt_operands *o, size_t index)
{
  kt_expr *lane = o->values.items[index];
  if (!kt_is_integer(s->c, lane->type))
    kt_fail_number(s->c, lane->location, lane->type, "`%s` needs an integer here, got %s",
                   o->builtin->name, kt_type_text(s->c, lane->type));
  lane = kt_convert(s, lane, KJIT_I32, lane->location);
  bool is_width = index == 3 && kt_is_constant(lane);
  bool is_power = lane->integer >= 2 && lane->integer <= KJ_WARP_THREADS &&
                  (lane->integer & (lane->integer - 1)) == 0;
  if (is_width && !is_power)
    kt_fail(s->c, lane->location, KJIT_ERROR_TYPE,
            "the width of `%s` must be 2, 4, 8, 16 or %d, not %s", o->builtin->name,
            KJ_WARP_THREADS, kt_integer_text(s->arena, lane->integer));
  return lane;
}

/* Maximum sizes of values that a warp's lanes can exchange, and of values that they can compare. */
enum { MOST_SHUFFLED_BYTES = 128, MOST_MATCHED_BYTES = 16 };

static kt_expr *exchanged_value(kt_scope *s, const kt_operands *o, uint32_t most_bytes)
{
  kt_expr *value = o->values.items[1];
  const char *text = kt_type_text(s->c, value->type);
  bool is_value = kt_is_number(s->c, value->type) || kt_is_composed(s->c, value->type);
  if (!is_value)
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "`%s` takes numbers, vectors and structs, got %s", o->builtin->name, text);
  uint32_t bytes = ki_type(s->c->types, value->type)->size_bytes;
  if (bytes > most_bytes)
    kt_fail(
      s->c, value->location, KJIT_ERROR_TYPE,
      "`%s` supports values with up to %u bits, but %s has %u bits; pass its components separately",
      o->builtin->name, 8 * most_bytes, text, 8 * bytes);
  return kt_make_concrete(s, value);
}

/* Exchanges the items in a tuple one at a time. */
static kt_expr *exchange_items(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 }, items = { 0 };
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kt_keep_value(s, o->values.items[i]));
  uint32_t count = ki_type(s->c->types, values.items[1]->type)->count;
  for (uint32_t i = 0; i < count; i++) {
    kt_operands at = *o;
    at.values = (kt_exprs){ 0 };
    for (size_t j = 0; j < values.count; j++)
      KJ_PUSH(s->arena, &at.values, kt_copy_texpr(s, values.items[j]));
    at.values.items[1] = kt_make_item(s, at.values.items[1], i, o->location);
    KJ_PUSH(s->arena, &items, kt_rule_shuffle(s, &at));
  }
  return kt_make_tuple(s, &items, o->location);
}

kt_expr *kt_rule_shuffle(kt_scope *s, const kt_operands *o)
{
  if (kt_is_tuple(s->c, o->values.items[1]->type)) return exchange_items(s, o);
  kt_expr *value = exchanged_value(s, o, MOST_SHUFFLED_BYTES);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, value);
  for (size_t i = 2; i < o->values.count; i++) KJ_PUSH(s->arena, &values, convert_lane(s, o, i));
  return kt_new_builtin_of(s, o, values, value->type);
}

static kt_expr *apply_vote(kt_scope *s, const kt_operands *o, kjit_type type)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, convert_predicate(s, o->values.items[1]));
  return kt_new_builtin_of(s, o, values, type);
}

kt_expr *kt_rule_vote(kt_scope *s, const kt_operands *o) { return apply_vote(s, o, KJIT_BOOL); }

kt_expr *kt_rule_ballot(kt_scope *s, const kt_operands *o) { return apply_vote(s, o, KJIT_U32); }

kt_expr *kt_rule_mask(kt_scope *s, const kt_operands *o)
{
  if (s->instance) s->instance->uses_positions = true;
  return kt_new_builtin(s, o, KJIT_U32);
}

kt_expr *kt_rule_elect(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  if (s->instance) s->instance->uses_positions = true;
  return kt_new_builtin_of(s, o, values, KJIT_BOOL);
}

static kt_expr *apply_exchange(kt_scope *s, const kt_operands *o, kt_expr *value, kjit_type type)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, value);
  return kt_new_builtin_of(s, o, values, type);
}

kt_expr *kt_rule_match_any(kt_scope *s, const kt_operands *o)
{
  return apply_exchange(s, o, exchanged_value(s, o, MOST_MATCHED_BYTES), KJIT_U32);
}

kt_expr *kt_rule_match_all(kt_scope *s, const kt_operands *o)
{
  const kjit_type items[] = { KJIT_U32, KJIT_BOOL };
  kjit_type pair = ki_intern_tuple(s->c->types, items, 2);
  if (pair == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return apply_exchange(s, o, exchanged_value(s, o, MOST_MATCHED_BYTES), pair);
}

/* Typing rule of warp reductions. They are computed in the type of arithmetic: small integers are
 * converted to i32. */
kt_expr *kt_rule_reduce(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = o->values.items[1];
  if (!kt_is_number(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type, "`%s` needs numbers, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  value = kt_make_concrete(s, value);
  kjit_type type = ki_arithmetic_type(value->type);
  return apply_exchange(s, o, kt_convert(s, value, type, value->location), type);
}

kt_expr *kt_rule_reduce_int(kt_scope *s, const kt_operands *o)
{
  const kt_expr *value = o->values.items[1];
  if (!kt_is_integer(s->c, value->type) && value->type != KJIT_BOOL)
    kt_fail_number(s->c, value->location, value->type, "`%s` works on integers, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  return kt_rule_reduce(s, o);
}

/* ---- synchronization of warps and blocks: named barriers, mbarriers, clusters ---- */

kt_expr *kt_take_integer(kt_scope *s, const kt_operands *o, kt_expr *value, kjit_type type)
{
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type, "`%s` needs an integer here, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  return kt_convert(s, value, type, value->location);
}

/* ---- named barriers ---- */

kt_expr *kt_rule_named_barrier(kt_scope *s, const kt_operands *o)
{
  enum { BARRIERS = 16, MOST = 1024 };
  kt_exprs values = { 0 };
  kt_expr *id = kt_take_integer(s, o, o->values.items[0], KJIT_U32),
          *count = kt_take_integer(s, o, o->values.items[1], KJIT_U32);
  if (kt_is_constant(id) && (id->integer < 1 || id->integer >= BARRIERS))
    kt_fail(
      s->c, id->location, KJIT_ERROR_TYPE,
      "the number of a named barrier must be 1 to %d (0 is the barrier of syncthreads), got %s",
      BARRIERS - 1, kt_integer_text(s->arena, id->integer));
  if (kt_is_constant(count) && (count->integer < KJ_WARP_THREADS || count->integer > MOST ||
                                count->integer % KJ_WARP_THREADS))
    kt_fail(
      s->c, count->location, KJIT_ERROR_TYPE,
      "the number of threads in `%s` must be a multiple of the warp size %d, at most %d, not %s",
      o->builtin->name, KJ_WARP_THREADS, MOST, kt_integer_text(s->arena, count->integer));
  KJ_PUSH(s->arena, &values, id);
  KJ_PUSH(s->arena, &values, count);
  return kt_new_builtin_of(s, o, values, KJIT_VOID);
}

/* ---- lvalues in shared memory ---- */

static const ki_builtin *address_builtin(void)
{
  return &ki_builtin_table[KJ_BUILTIN_SHARED_ADDRESS];
}

static bool is_shared(kt_scope *s, const kt_expr *array)
{
  ki_space space = ki_type(s->c->types, array->type)->space;
  return space == KJ_SPACE_SHARED || space == KJ_SPACE_GENERIC;
}

static kt_expr *new_address(kt_scope *s, const char *what, kt_expr *array, kt_exprs indices,
                            kj_location location)
{
  if (!is_shared(s, array))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array or a shared scalar here, got an element of %s",
            what, kt_type_text(s->c, array->type));
  kt_expr *address = kt_new_texpr(s->c, KJ_T_BUILTIN, KJIT_I64, location);
  address->builtin = address_builtin();
  address->x = array;
  address->indices = indices;
  return address;
}

kt_expr *kt_make_shared_address(kt_scope *s, const char *what, const kt_place *place)
{
  return new_address(s, what, place->array, place->indices, place->location);
}

kt_expr *kt_take_shared_address(kt_scope *s, const char *what, const kt_expr *load)
{
  if (load->kind != KJ_T_LOAD)
    kt_fail(s->c, load->location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array here: `tile[i]`", what);
  return new_address(s, what, load->x, load->args, load->location);
}

bool kt_is_other_block(kt_scope *s, const kt_expr *array)
{
  return ki_type(s->c->types, array->type)->space == KJ_SPACE_GENERIC;
}

kt_expr *kt_rule_shared_address(kt_scope *s, const kt_operands *o)
{
  return kt_make_shared_address(s, o->builtin->name, &o->place);
}

/* ---- mbarriers ---- */

typedef struct phase_op {
  ki_builtin_id id;
  kjit_type operand, result; /* KJIT_VOID means that the operation has no operand */
} phase_op;

static const phase_op phase_ops[] = {
  { KJ_BUILTIN_MBARRIER_INIT, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_INVAL, KJIT_VOID, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_ARRIVE, KJIT_U32, KJIT_U64 },
  { KJ_BUILTIN_MBARRIER_EXPECT_TX, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX, KJIT_U32, KJIT_U64 },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT, KJIT_U64, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT_PARITY, KJIT_U32, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT, KJIT_U64, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT_PARITY, KJIT_U32, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_WAIT, KJIT_U64, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_WAIT_PARITY, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_CP_ASYNC_ARRIVE, KJIT_VOID, KJIT_VOID },
};

static const phase_op *find_phase_op(ki_builtin_id id)
{
  size_t i = 0;
  while (phase_ops[i].id != id) i++;
  return &phase_ops[i];
}

static void check_phase_place(kt_scope *s, const kt_operands *o)
{
  if (o->place.type == KJIT_U64 || o->place.type == KJIT_I64) return;
  kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE, "`%s` needs a u64 in shared memory, got %s",
          o->builtin->name, kt_type_text(s->c, o->place.type));
}

kt_expr *kt_rule_mbarrier(kt_scope *s, const kt_operands *o)
{
  const phase_op *op = find_phase_op(o->builtin->id);
  bool is_other = kt_is_other_block(s, o->place.array),
       can_be_other =
         op->operand == KJIT_U32 && op->result != KJIT_BOOL && op->id != KJ_BUILTIN_MBARRIER_INIT;
  kt_exprs values = { 0 };
  check_phase_place(s, o);
  if (is_other && (!can_be_other || (o->builtin->flags & KJ_WAITS)))
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` needs an mbarrier of the thread's own block; threads of other blocks can only "
            "arrive at it",
            o->builtin->name);
  KJ_PUSH(s->arena, &values, kt_make_shared_address(s, o->builtin->name, &o->place));
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[i], op->operand));
  bool is_counted = op->id == KJ_BUILTIN_MBARRIER_ARRIVE && o->values.count;
  if (is_counted || is_other)
    kt_require_arch(s,
                    is_counted ? "`mbarrier_arrive` with a count"
                               : "arriving at another block's barrier",
                    o->location, 90, 0, 80);
  kt_expr *expr = kt_new_builtin_of(s, o, values, is_other ? KJIT_VOID : op->result);
  expr->dimension = is_other;
  return expr;
}

kt_expr *kt_rule_pending_count(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[0], KJIT_U64));
  return kt_new_builtin_of(s, o, values, KJIT_I32);
}

/* ---- clusters ---- */

kt_expr *kt_rule_map_shared_rank(kt_scope *s, const kt_operands *o)
{
  kt_expr *array = o->values.items[0];
  /* a shared scalar is represented by an array of rank 0 */
  if (array->kind == KJ_T_LOAD && !array->args.count) array = array->x;
  const ki_type_info *info = ki_type(s->c->types, array->type);
  if (!kt_is_array(s->c, array->type) || info->space != KJ_SPACE_SHARED || !info->is_static)
    kt_fail(
      s->c, array->location, KJIT_ERROR_TYPE,
      "`%s` needs a shared array with extents known at compile time or a shared scalar, got %s",
      o->builtin->name, kt_type_text(s->c, array->type));
  ki_type_info mapped = *info;
  mapped.space = KJ_SPACE_GENERIC;
  kjit_type type = ki_intern_array(s->c->types, &mapped);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, array);
  KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[1], KJIT_U32));
  return kt_new_builtin_of(s, o, values, type);
}

/* Result rules of the built-ins through which threads meet: barriers, warp operations, atomics; and
 * warps and blocks: named barriers, mbarriers, clusters. */
#include <string.h>

#include "typing/rules.h"

/* Result rules of the built-ins through which threads meet: barriers, warp operations, atomics. */

static kj_texpr *convert_mask(kj_scope *s, kj_texpr *mask)
{
  if (!kj_is_integer(s->c, mask->type))
    kj_fail(s->c, mask->location, KJIT_ERROR_TYPE, "a mask of lanes is an integer (u32), got %s",
            kj_type_text(s->c, mask->type));
  return kj_convert(s, mask, KJIT_U32, mask->location);
}

static kj_texpr *convert_predicate(kj_scope *s, kj_texpr *value)
{
  if (value->type != KJIT_BOOL && !kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "expected a bool or an integer, got %s",
            kj_type_text(s->c, value->type));
  return kj_convert(s, kj_make_concrete(s, value), KJIT_BOOL, value->location);
}

static kj_texpr *apply(kj_scope *s, const kj_operands *o, kj_texprs values, kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  return kj_new_builtin(s, &typed, type);
}

/* ---- barriers and fences ---- */

kj_texpr *kj_rule_barrier(kj_scope *s, const kj_operands *o)
{
  return kj_new_builtin(s, o, KJIT_VOID);
}

static kj_texpr *apply_predicate(kj_scope *s, const kj_operands *o, kjit_type type)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_predicate(s, o->values.items[0]));
  return apply(s, o, values, type);
}

kj_texpr *kj_rule_barrier_count(kj_scope *s, const kj_operands *o)
{
  return apply_predicate(s, o, KJIT_I32);
}

kj_texpr *kj_rule_barrier_vote(kj_scope *s, const kj_operands *o)
{
  return apply_predicate(s, o, KJIT_BOOL);
}

kj_texpr *kj_rule_syncwarp(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  kj_texpr *mask =
    o->values.count ? o->values.items[0] : kj_new_integer(s, KJ_WEAK_INT, 0xffffffff, o->location);
  KJ_PUSH(s->arena, &values, convert_mask(s, mask));
  return apply(s, o, values, KJIT_VOID);
}

/* ---- warp ---- */

static kj_texpr *convert_lane(kj_scope *s, const kj_operands *o, size_t index)
{
  kj_texpr *lane = o->values.items[index];
  if (!kj_is_integer(s->c, lane->type))
    kj_fail(s->c, lane->location, KJIT_ERROR_TYPE, "`%s` needs an integer here, got %s",
            o->builtin->name, kj_type_text(s->c, lane->type));
  lane = kj_convert(s, lane, KJIT_I32, lane->location);
  bool is_width = index == 3 && kj_is_constant(lane);
  bool is_power =
    lane->integer >= 2 && lane->integer <= 32 && (lane->integer & (lane->integer - 1)) == 0;
  if (is_width && !is_power)
    kj_fail(s->c, lane->location, KJIT_ERROR_TYPE, "the width of `%s` is 2, 4, 8, 16 or 32, not %s",
            o->builtin->name, kj_integer_text(s->arena, lane->integer));
  return lane;
}

/* What the lanes of a warp hand to each other: any value of up to 128 bits. */
static kj_texpr *exchanged_value(kj_scope *s, const kj_operands *o)
{
  enum { MOST_BYTES = 16 };
  kj_texpr *value = o->values.items[1];
  const char *text = kj_type_text(s->c, value->type);
  bool is_value = kj_is_number(s->c, value->type) || kj_is_composed(s->c, value->type);
  if (!is_value)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "`%s` takes numbers, vectors and structs, got %s", o->builtin->name, text);
  uint32_t bytes = kj_type(s->c->types, value->type)->size_bytes;
  if (bytes > MOST_BYTES)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "`%s` takes values of up to %d bits, and %s has %u: hand over its parts",
            o->builtin->name, 8 * MOST_BYTES, text, 8 * bytes);
  return kj_make_concrete(s, value);
}

/* The items of a tuple one by one. */
static kj_texpr *exchange_items(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 }, items = { 0 };
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kj_keep_value(s, o->values.items[i]));
  uint32_t count = kj_type(s->c->types, values.items[1]->type)->count;
  for (uint32_t i = 0; i < count; i++) {
    kj_operands at = *o;
    at.values = (kj_texprs){ 0 };
    for (size_t j = 0; j < values.count; j++)
      KJ_PUSH(s->arena, &at.values, kj_copy_texpr(s, values.items[j]));
    at.values.items[1] = kj_make_item(s, at.values.items[1], i, o->location);
    KJ_PUSH(s->arena, &items, kj_rule_shuffle(s, &at));
  }
  return kj_make_tuple(s, &items, o->location);
}

kj_texpr *kj_rule_shuffle(kj_scope *s, const kj_operands *o)
{
  if (kj_is_tuple(s->c, o->values.items[1]->type)) return exchange_items(s, o);
  kj_texpr *value = exchanged_value(s, o);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, value);
  for (size_t i = 2; i < o->values.count; i++) KJ_PUSH(s->arena, &values, convert_lane(s, o, i));
  return apply(s, o, values, value->type);
}

static kj_texpr *apply_vote(kj_scope *s, const kj_operands *o, kjit_type type)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, convert_predicate(s, o->values.items[1]));
  return apply(s, o, values, type);
}

kj_texpr *kj_rule_vote(kj_scope *s, const kj_operands *o) { return apply_vote(s, o, KJIT_BOOL); }

kj_texpr *kj_rule_ballot(kj_scope *s, const kj_operands *o) { return apply_vote(s, o, KJIT_U32); }

kj_texpr *kj_rule_mask(kj_scope *s, const kj_operands *o)
{
  if (s->instance) s->instance->uses_positions = true;
  return kj_new_builtin(s, o, KJIT_U32);
}

kj_texpr *kj_rule_elect(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  if (s->instance) s->instance->uses_positions = true;
  return apply(s, o, values, KJIT_BOOL);
}

static kj_texpr *apply_exchange(kj_scope *s, const kj_operands *o, kj_texpr *value, kjit_type type)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, convert_mask(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, value);
  return apply(s, o, values, type);
}

kj_texpr *kj_rule_match_any(kj_scope *s, const kj_operands *o)
{
  return apply_exchange(s, o, exchanged_value(s, o), KJIT_U32);
}

kj_texpr *kj_rule_match_all(kj_scope *s, const kj_operands *o)
{
  const kjit_type items[] = { KJIT_U32, KJIT_BOOL };
  kjit_type pair = kj_intern_tuple(s->c->types, items, 2);
  if (pair == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return apply_exchange(s, o, exchanged_value(s, o), pair);
}

/* In the type of arithmetic: small integers as i32. */
kj_texpr *kj_rule_reduce(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[1];
  if (!kj_is_number(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs numbers, got %s", o->builtin->name,
            kj_type_text(s->c, value->type));
  value = kj_make_concrete(s, value);
  kjit_type type = kj_arithmetic_type(value->type);
  return apply_exchange(s, o, kj_convert(s, value, type, value->location), type);
}

kj_texpr *kj_rule_reduce_int(kj_scope *s, const kj_operands *o)
{
  const kj_texpr *value = o->values.items[1];
  if (!kj_is_integer(s->c, value->type) && value->type != KJIT_BOOL)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` works on integers, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  return kj_rule_reduce(s, o);
}

/* ---- atomics ---- */

/* Rows: each includes those before. */
typedef enum atomic_types { INTEGERS, NUMBERS, SMALL_FLOATS } atomic_types;

static bool is_atomic_type(kjit_type type, atomic_types types)
{
  static const kjit_type all[] = { KJIT_I32, KJIT_U32, KJIT_I64, KJIT_U64,
                                   KJIT_F32, KJIT_F64, KJIT_F16, KJIT_BF16 };
  static const size_t counts[] = { [INTEGERS] = 4, [NUMBERS] = 6, [SMALL_FLOATS] = 8 };
  for (size_t i = 0; i < counts[types]; i++)
    if (all[i] == type) return true;
  return false;
}

/* The last operand where there is one too many; a load cannot release, a store not acquire. */
static uint32_t take_order(kj_scope *s, const kj_operands *o, size_t value_count, bool has_result)
{
  if (o->values.count <= value_count) return KJ_ORDER_RELAXED;
  const kj_texpr *order = o->values.items[value_count];
  if (!kj_is_constant(order) || !kj_is_integer(s->c, order->type) || order->integer < 0 ||
      order->integer > KJ_ORDER_SEQ_CST)
    kj_fail(
      s->c, order->location, KJIT_ERROR_TYPE,
      "the last argument of `%s` is a memory order: relaxed, acquire, release, acq_rel or seq_cst",
      o->builtin->name);
  kj_memory_order given = (kj_memory_order)order->integer;
  bool is_load = !value_count, is_store = !has_result;
  bool is_wrong =
    given == KJ_ORDER_ACQ_REL || given == (is_load ? KJ_ORDER_RELEASE : KJ_ORDER_ACQUIRE);
  if ((is_load || is_store) && is_wrong)
    kj_fail(s->c, order->location, KJIT_ERROR_TYPE, "`%s` cannot be %s: %s", o->builtin->name,
            kj_builtin_table[KJ_BUILTIN_RELAXED + given].name,
            is_load ? "relaxed, acquire or seq_cst" : "relaxed, release or seq_cst");
  return given;
}

kj_texpr *kj_rule_order(kj_scope *s, const kj_operands *o)
{
  return kj_new_integer(s, KJ_WEAK_INT, o->builtin->id - KJ_BUILTIN_RELAXED, o->location);
}

static kj_texpr *apply_atomic(kj_scope *s, const kj_operands *o, atomic_types types,
                              bool has_result)
{
  static const char *const texts[] = { [INTEGERS] = "i32, u32, i64 and u64",
                                       [NUMBERS] = "i32, u32, i64, u64, f32 and f64",
                                       [SMALL_FLOATS] =
                                         "i32, u32, i64, u64, f32, f64, f16 and bf16" };
  const kj_place *place = &o->place;
  size_t count = o->builtin->most - 1u;
  if (!is_atomic_type(place->type, types))
    kj_fail(s->c, place->location, KJIT_ERROR_TYPE, "`%s` works on %s, not on %s", o->builtin->name,
            texts[types], kj_type_text(s->c, place->type));
  kj_texprs values = { 0 };
  for (size_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &values,
            kj_convert_stored(s, o->values.items[i], place->type, "the place",
                              o->values.items[i]->location));
  kj_texpr *expr = apply(s, o, values, has_result ? place->type : KJIT_VOID);
  expr->x = place->array;
  expr->indices = place->indices;
  expr->dimension = take_order(s, o, count, has_result);
  return expr;
}

kj_texpr *kj_rule_atomic(kj_scope *s, const kj_operands *o)
{
  return apply_atomic(s, o, NUMBERS, true);
}

kj_texpr *kj_rule_atomic_add(kj_scope *s, const kj_operands *o)
{
  return apply_atomic(s, o, SMALL_FLOATS, true);
}

kj_texpr *kj_rule_atomic_int(kj_scope *s, const kj_operands *o)
{
  return apply_atomic(s, o, INTEGERS, true);
}

kj_texpr *kj_rule_atomic_store(kj_scope *s, const kj_operands *o)
{
  return apply_atomic(s, o, NUMBERS, false);
}

/* Result rules of the built-ins through which warps and blocks meet: named barriers, barriers of
 * phases in shared memory (mbarrier), clusters. */

kj_texpr *kj_take_integer(kj_scope *s, const kj_operands *o, kj_texpr *value, kjit_type type)
{
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs an integer here, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  return kj_convert(s, value, type, value->location);
}

static kj_texpr *apply_group_rule(kj_scope *s, const kj_operands *o, kj_texprs values,
                                  kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  return kj_new_builtin(s, &typed, type);
}

/* ---- named barriers ---- */

kj_texpr *kj_rule_named_barrier(kj_scope *s, const kj_operands *o)
{
  enum { BARRIERS = 16, WARP = 32, MOST = 1024 };
  kj_texprs values = { 0 };
  kj_texpr *id = kj_take_integer(s, o, o->values.items[0], KJIT_U32),
           *count = kj_take_integer(s, o, o->values.items[1], KJIT_U32);
  if (kj_is_constant(id) && (id->integer < 1 || id->integer >= BARRIERS))
    kj_fail(s->c, id->location, KJIT_ERROR_TYPE,
            "named barriers are 1 to %d (0 is that of syncthreads), not %s", BARRIERS - 1,
            kj_integer_text(s->arena, id->integer));
  if (kj_is_constant(count) &&
      (count->integer < WARP || count->integer > MOST || count->integer % WARP))
    kj_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "`%s` counts whole warps: a multiple of %d up to %d, not %s", o->builtin->name, WARP,
            MOST, kj_integer_text(s->arena, count->integer));
  KJ_PUSH(s->arena, &values, id);
  KJ_PUSH(s->arena, &values, count);
  return apply_group_rule(s, o, values, KJIT_VOID);
}

/* ---- places in shared memory ---- */

static const kj_builtin *address_builtin(void)
{
  return &kj_builtin_table[KJ_BUILTIN_SHARED_ADDRESS];
}

static bool is_shared(kj_scope *s, const kj_texpr *array)
{
  kj_space space = kj_type(s->c->types, array->type)->space;
  return space == KJ_SPACE_SHARED || space == KJ_SPACE_GENERIC;
}

static kj_texpr *new_address(kj_scope *s, const char *what, kj_texpr *array, kj_texprs indices,
                             kj_location location)
{
  if (!is_shared(s, array))
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array or a shared scalar here, got one of %s", what,
            kj_type_text(s->c, array->type));
  kj_texpr *address = kj_new_texpr(s->c, KJ_T_BUILTIN, KJIT_I64, location);
  address->builtin = address_builtin();
  address->x = array;
  address->indices = indices;
  return address;
}

kj_texpr *kj_make_shared_address(kj_scope *s, const char *what, const kj_place *place)
{
  return new_address(s, what, place->array, place->indices, place->location);
}

kj_texpr *kj_take_shared_address(kj_scope *s, const char *what, const kj_texpr *load)
{
  if (load->kind != KJ_T_LOAD)
    kj_fail(s->c, load->location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array here: `tile[i]`", what);
  return new_address(s, what, load->x, load->args, load->location);
}

bool kj_is_other_block(kj_scope *s, const kj_texpr *array)
{
  return kj_type(s->c->types, array->type)->space == KJ_SPACE_GENERIC;
}

kj_texpr *kj_rule_shared_address(kj_scope *s, const kj_operands *o)
{
  return kj_make_shared_address(s, o->builtin->name, &o->place);
}

/* ---- mbarriers ---- */

typedef struct phase_op {
  kj_builtin_id id;
  kjit_type operand, result; /* operand VOID: none */
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

static const phase_op *find_phase_op(kj_builtin_id id)
{
  size_t i = 0;
  while (phase_ops[i].id != id) i++;
  return &phase_ops[i];
}

static void check_phase_place(kj_scope *s, const kj_operands *o)
{
  if (o->place.type == KJIT_U64 || o->place.type == KJIT_I64) return;
  kj_fail(s->c, o->place.location, KJIT_ERROR_TYPE, "`%s` needs a u64 in shared memory, got %s",
          o->builtin->name, kj_type_text(s->c, o->place.type));
}

kj_texpr *kj_rule_mbarrier(kj_scope *s, const kj_operands *o)
{
  const phase_op *op = find_phase_op(o->builtin->id);
  bool is_other = kj_is_other_block(s, o->place.array),
       can_be_other =
         op->operand == KJIT_U32 && op->result != KJIT_BOOL && op->id != KJ_BUILTIN_MBARRIER_INIT;
  kj_texprs values = { 0 };
  check_phase_place(s, o);
  if (is_other && (!can_be_other || (o->builtin->flags & KJ_WAITS)))
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` takes a barrier of the thread's own block: other blocks can only arrive there",
            o->builtin->name);
  KJ_PUSH(s->arena, &values, kj_make_shared_address(s, o->builtin->name, &o->place));
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[i], op->operand));
  bool is_counted = op->id == KJ_BUILTIN_MBARRIER_ARRIVE && o->values.count;
  if (is_counted || is_other)
    kj_require_arch(s,
                    is_counted ? "`mbarrier_arrive` with a count"
                               : "arriving at another block's barrier",
                    o->location, 90, 0, 80);
  kj_texpr *expr = apply_group_rule(s, o, values, is_other ? KJIT_VOID : op->result);
  expr->dimension = is_other;
  return expr;
}

kj_texpr *kj_rule_pending_count(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[0], KJIT_U64));
  return apply_group_rule(s, o, values, KJIT_I32);
}

/* ---- clusters ---- */

kj_texpr *kj_rule_map_shared_rank(kj_scope *s, const kj_operands *o)
{
  kj_texpr *array = o->values.items[0];
  /* a shared scalar: as an array of no dimension */
  if (array->kind == KJ_T_LOAD && !array->args.count) array = array->x;
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (!kj_is_array(s->c, array->type) || info->space != KJ_SPACE_SHARED || !info->is_static)
    kj_fail(
      s->c, array->location, KJIT_ERROR_TYPE,
      "`%s` needs a shared array with extents known at compile time or a shared scalar, got %s",
      o->builtin->name, kj_type_text(s->c, array->type));
  kj_type_info mapped = *info;
  mapped.space = KJ_SPACE_GENERIC;
  kjit_type type = kj_intern_array(s->c->types, &mapped);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, array);
  KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[1], KJIT_U32));
  return apply_group_rule(s, o, values, type);
}

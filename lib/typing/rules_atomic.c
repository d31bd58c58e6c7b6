/* Typing rules of atomics. Scalars are accessed as numbers. Vectors and structs are accessed as
 * bytes, all at once. */
#include "typing/rules.h"

/* ---- types ---- */

/* The sets of types that an atomic accepts. NUMBERS includes INTEGERS. SMALL_FLOATS and WHOLE both
 * include NUMBERS. */
typedef enum atomic_types { INTEGERS, NUMBERS, SMALL_FLOATS, WHOLE } atomic_types;

static bool is_atomic_number(kjit_type type, atomic_types types)
{
  static const kjit_type all[] = { KJIT_I32, KJIT_U32, KJIT_I64, KJIT_U64,
                                   KJIT_F32, KJIT_F64, KJIT_F16, KJIT_BF16 };
  static const size_t counts[] = { [INTEGERS] = 4, [NUMBERS] = 6, [SMALL_FLOATS] = 8, [WHOLE] = 6 };
  for (size_t i = 0; i < counts[types]; i++)
    if (all[i] == type) return true;
  return false;
}

/* ---- memory orders ---- */

/* Returns the memory order, which is an optional operand after `value_count` values; the default is
 * relaxed. A load must not have release order, and a store must not have acquire order. */
static uint32_t take_order(kt_scope *s, const kt_operands *o, size_t value_count, bool has_result)
{
  if (o->values.count <= value_count) return KJ_ORDER_RELAXED;
  const kt_expr *order = o->values.items[value_count];
  if (!kt_is_constant(order) || !kt_is_integer(s->c, order->type) || order->integer < 0 ||
      order->integer > KJ_ORDER_SEQ_CST)
    kt_fail(s->c, order->location, KJIT_ERROR_TYPE,
            "the last argument of `%s` must be a memory order: relaxed, acquire, release, acq_rel "
            "or seq_cst",
            o->builtin->name);
  kt_memory_order given = (kt_memory_order)order->integer;
  bool is_load = !value_count, is_store = !has_result;
  bool is_wrong =
    given == KJ_ORDER_ACQ_REL || given == (is_load ? KJ_ORDER_RELEASE : KJ_ORDER_ACQUIRE);
  if ((is_load || is_store) && is_wrong)
    kt_fail(s->c, order->location, KJIT_ERROR_TYPE, "`%s` cannot be %s: %s", o->builtin->name,
            ki_builtin_table[KJ_BUILTIN_RELAXED + given].name,
            is_load ? "relaxed, acquire or seq_cst" : "relaxed, release or seq_cst");
  return given;
}

kt_expr *kt_rule_order(kt_scope *s, const kt_operands *o)
{
  return kt_new_integer(s, KJ_WEAK_INT, o->builtin->id - KJ_BUILTIN_RELAXED, o->location);
}

/* ---- vectors and structs ---- */

/* Returns whether a single access can have this size. For 16 bytes, require_wide checks the
 * architecture. */
static bool is_access_size(uint32_t bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

/* Returns the known alignment of the elements: the alignment of the array type, or the `@align` of
 * the shared array. */
static uint32_t alignment_of(kt_scope *s, const kt_place *place)
{
  KJ_ASSERT(place->array);
  const ki_type_info *info = ki_type(s->c->types, place->array->type);
  uint32_t alignment =
    info->alignment_bytes ? info->alignment_bytes : ki_alignment(s->c->types, info->element);
  if (place->array->kind == KJ_T_VAR && place->array->var->alignment > alignment)
    alignment = place->array->var->alignment;
  return ki_alignment_at(alignment, ki_type(s->c->types, info->element)->size_bytes);
}

/* Checks an atomic access to a vector or struct. Its alignment must be known at compile time,
 * because an unaligned access of 16 bytes faults, and an unaligned access of 8 bytes can be
 * torn. */
static void check_whole(kt_scope *s, const kt_operands *o)
{
  const kt_place *place = &o->place;
  const char *name = o->builtin->name, *type = kt_type_text(s->c, place->type);
  uint32_t bytes = ki_type(s->c->types, place->type)->size_bytes;
  if (!is_access_size(bytes))
    kt_fail(s->c, place->location, KJIT_ERROR_TYPE,
            "`%s` supports vectors and structs with 4, 8 or 16 bytes, but %s has %u", name, type,
            bytes);
  const char *gap = kt_find_gap(s, place->type);
  if (gap)
    kt_fail(s->c, place->location, KJIT_ERROR_TYPE,
            "`%s` compares all bytes of the value, but %s has %s", name, type, gap);
  uint32_t alignment = alignment_of(s, place);
  if (alignment >= bytes) return;
  kt_fail(s->c, place->location, KJIT_ERROR_TYPE,
          "`%s` needs an address aligned to its %u bytes, but this %s is only aligned to %u: %s",
          name, bytes, type, alignment,
          kt_is_struct(s->c, place->type)
            ? kj_format(s->arena, "declare `struct %s @align(%u)`", type, bytes)
            : kj_format(s->arena, "make it a field of a struct with `@align(%u)`", bytes));
}

/* Checks that the architecture supports an atomic access of 16 bytes. Exchanges need sm_90; loads
 * and stores need sm_70. */
static void require_wide(kt_scope *s, const kt_operands *o, bool is_exchange)
{
  uint32_t ptx = o->builtin->scope == KJ_SCOPE_SYSTEM ? 84 : 83;
  kt_require_arch(s, kj_format(s->arena, "`%s` of 16 bytes", o->builtin->name), o->location,
                  is_exchange ? 90 : 70, 0, ptx);
}

static void check_type(kt_scope *s, const kt_operands *o, atomic_types types, bool is_exchange)
{
  static const char *const texts[] = { [INTEGERS] = "i32, u32, i64 and u64",
                                       [NUMBERS] = "i32, u32, i64, u64, f32 and f64",
                                       [SMALL_FLOATS] =
                                         "i32, u32, i64, u64, f32, f64, f16 and bf16",
                                       [WHOLE] =
                                         "i32, u32, i64, u64, f32, f64, vectors and structs" };
  kjit_type type = o->place.type;
  if (is_atomic_number(type, types)) return;
  bool is_whole = types == WHOLE && (kt_is_vector(s->c, type) || kt_is_struct(s->c, type));
  if (!is_whole)
    kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE, "`%s` works on %s, not on %s",
            o->builtin->name, texts[types], kt_type_text(s->c, type));
  check_whole(s, o);
  if (ki_type(s->c->types, type)->size_bytes == 16) require_wide(s, o, is_exchange);
}

/* ---- the rules ---- */

static kt_expr *apply_atomic(kt_scope *s, const kt_operands *o, atomic_types types, bool has_result)
{
  const kt_place *place = &o->place;
  size_t count = o->builtin->most - 1u;
  check_type(s, o, types, has_result && count);
  kt_exprs values = { 0 };
  for (size_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &values,
            kt_convert_stored(s, o->values.items[i], place->type, "the place",
                              o->values.items[i]->location));
  kt_expr *expr = kt_new_builtin_of(s, o, values, has_result ? place->type : KJIT_VOID);
  expr->x = place->array;
  expr->indices = place->indices;
  expr->dimension = take_order(s, o, count, has_result);
  return expr;
}

kt_expr *kt_rule_atomic(kt_scope *s, const kt_operands *o)
{
  return apply_atomic(s, o, NUMBERS, true);
}

kt_expr *kt_rule_atomic_add(kt_scope *s, const kt_operands *o)
{
  return apply_atomic(s, o, SMALL_FLOATS, true);
}

kt_expr *kt_rule_atomic_int(kt_scope *s, const kt_operands *o)
{
  return apply_atomic(s, o, INTEGERS, true);
}

kt_expr *kt_rule_atomic_whole(kt_scope *s, const kt_operands *o)
{
  return apply_atomic(s, o, WHOLE, true);
}

kt_expr *kt_rule_atomic_store(kt_scope *s, const kt_operands *o)
{
  return apply_atomic(s, o, WHOLE, false);
}

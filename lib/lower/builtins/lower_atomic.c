/* Lowers atomic operations. The operation itself is relaxed and has the memory scope that its name
 * specifies. On both targets, fences around the operation provide its memory order. Atomic loads
 * and stores need no fences, because their instructions have a memory order. An operation that
 * neither LLVM nor the target has is implemented by a compare-and-swap loop on the bits. Vectors
 * and structs are treated as integers of the same size. */
#include "lower/instruction.h"
#include "native/watch.h"

typedef struct lvalue {
  kl_array_value array;
  LLVMValueRef pointer;
  kjit_type element;
  /* The type in which the operation is computed. It is the element type; for a vector or struct it
   * is the integer type of the same size. For elements of 16 bytes (is_wide), it is always the
   * element type, because kernel IR has no 16-byte integers. */
  kjit_type type;
  /* is_whole: the element is a vector or struct; is_wide: it has 16 bytes */
  bool is_whole, is_wide;
  ki_combine op;
  ki_memory_scope scope;
  kt_memory_order order;
} lvalue;

static unsigned scope_of(kl_lowering *l, const lvalue *p) { return kl_sync_scope(l, p->scope); }

static void require_wide(kl_lowering *l, const kt_expr *expr)
{
  if (l->target->has_wide_atomics && !l->target->has_wide_atomics(l))
    kt_fail(l->c, expr->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` of 16 bytes needs the instruction cmpxchg16b, which this processor lacks",
            expr->builtin->name);
}

/* Lowers the indices of the accessed element. Must be called before the value operands are lowered,
 * because operands are evaluated from left to right. how: the KJ_WATCH_* flags of the access. */
static lvalue lower_lvalue(kl_lowering *l, const kt_expr *expr, uint32_t how)
{
  KJ_ASSERT(expr->x && (expr->builtin->flags & KJ_PLACE));
  lvalue p = { .array = kl_lower_array(l, expr->x),
               .op = (ki_combine)expr->builtin->operation,
               .scope = (ki_memory_scope)expr->builtin->scope,
               .order = (kt_memory_order)expr->dimension };
  p.element = p.type = kl_type_info(l, p.array.type)->element;
  uint32_t bytes = kl_scalar_bytes(l, p.type);
  p.is_whole = kl_is_composed_type(l, p.type);
  p.is_wide = p.is_whole && bytes == 16;
  if (p.is_whole && !p.is_wide) p.type = bytes == 8 ? KJIT_U64 : KJIT_U32;
  p.pointer = kl_checked_pointer(l, &p.array, &expr->indices, kl_check_of_expr(l, expr));
  kl_assert_access(l, p.pointer, bytes, p.is_whole ? bytes : 1, p.array.object);
  if (expr->is_watched)
    kl_watch_access_at(l, expr->location, &p.array, p.pointer, how | KJ_WATCH_ATOMIC);
  return p;
}

/* Converts an operand to the operation type. give_value converts the old value to the result
 * type. */
static LLVMValueRef lower_operand(kl_lowering *l, const lvalue *p, const kt_expr *operand)
{
  LLVMValueRef value = kl_lower_expr(l, operand);
  return p->is_whole ? kl_value_bits(l, p->element, value) : value;
}

static LLVMValueRef give_value(kl_lowering *l, const lvalue *p, LLVMValueRef value)
{
  return p->is_whole ? kl_value_of_bits(l, p->element, value) : value;
}

/* ---- memory orders ---- */

static void fence(kl_lowering *l, const lvalue *p, LLVMAtomicOrdering order)
{
  LLVMBuildFenceSyncScope(kl_next(l), order, scope_of(l, p), "");
}

static void begin_order(kl_lowering *l, const lvalue *p)
{
  if (p->order == KJ_ORDER_SEQ_CST) fence(l, p, LLVMAtomicOrderingSequentiallyConsistent);
  else if (p->order == KJ_ORDER_RELEASE || p->order == KJ_ORDER_ACQ_REL)
    fence(l, p, LLVMAtomicOrderingRelease);
}

static LLVMValueRef end_order(kl_lowering *l, const lvalue *p, LLVMValueRef value)
{
  if (p->order != KJ_ORDER_RELAXED && p->order != KJ_ORDER_RELEASE)
    fence(l, p, LLVMAtomicOrderingAcquire);
  return value;
}

static LLVMAtomicOrdering own_order(const lvalue *p)
{
  static const LLVMAtomicOrdering orders[] = { [KJ_ORDER_RELAXED] = LLVMAtomicOrderingMonotonic,
                                               [KJ_ORDER_ACQUIRE] = LLVMAtomicOrderingAcquire,
                                               [KJ_ORDER_RELEASE] = LLVMAtomicOrderingRelease,
                                               [KJ_ORDER_SEQ_CST] =
                                                 LLVMAtomicOrderingSequentiallyConsistent };
  return orders[p->order];
}

/* ---- memory that no other thread accesses at the same time ---- */

static bool is_plain(kl_lowering *l, const lvalue *p)
{
  return l->target->has_plain_shared_atomics &&
         kl_type_info(l, p->array.type)->space == KJ_SPACE_SHARED;
}

/* Accesses memory without atomic instructions. The accesses have no alias metadata, because
 * different iterations of a thread loop can access the same element. */
static LLVMValueRef plain_load(kl_lowering *l, const lvalue *p, LLVMTypeRef type)
{
  KJ_ASSERT(is_plain(l, p));
  LLVMValueRef old = kl_load(l, type, p->pointer);
  LLVMSetAlignment(old, kl_scalar_bytes(l, p->type));
  return old;
}

static void plain_store(kl_lowering *l, const lvalue *p, LLVMValueRef value)
{
  KJ_ASSERT(is_plain(l, p));
  LLVMSetAlignment(kl_store(l, value, p->pointer), kl_scalar_bytes(l, p->type));
}

/* ---- operations ---- */

/* Returns 0 if x >= y, and otherwise x + 1. */
static LLVMValueRef increment(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  KJ_ASSERT(LLVMTypeOf(x) == LLVMTypeOf(y));
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef more = kl_add(l, x, LLVMConstInt(type, 1, false));
  return kl_select(l, kl_icmp(l, LLVMIntUGE, x, y), LLVMConstNull(type), more);
}

/* Returns y if x is 0 or x > y, and otherwise x - 1. */
static LLVMValueRef decrement(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  KJ_ASSERT(LLVMTypeOf(x) == LLVMTypeOf(y));
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef less = kl_sub(l, x, LLVMConstInt(type, 1, false));
  LLVMValueRef wraps =
    kl_or(l, kl_icmp(l, LLVMIntEQ, x, LLVMConstNull(type)), kl_icmp(l, LLVMIntUGT, x, y));
  return kl_select(l, wraps, y, less);
}

/* Combines the old value x with the operand. Returns the new value of the element in register
 * form. */
static LLVMValueRef combine(kl_lowering *l, const lvalue *p, LLVMValueRef x, LLVMValueRef y)
{
  if (p->op == KJ_COMBINE_EXCHANGE) return y;
  if (p->op == KJ_COMBINE_INC) return increment(l, x, y);
  if (p->op == KJ_COMBINE_DEC) return decrement(l, x, y);
  return kl_build_reduction(l, p->op, p->type, x, y);
}

static LLVMTypeRef access_type(kl_lowering *l, const lvalue *p)
{
  return p->is_whole ? kl_bits_type(l, p->element) : kl_memory_type(l, p->type);
}

/* Builds a compare-and-swap and returns the old value. Sets *is_stored to whether the old value was
 * the expected value, so that the new value was stored. */
static LLVMValueRef build_cas(kl_lowering *l, const lvalue *p, LLVMValueRef expected,
                              LLVMValueRef desired, LLVMValueRef *is_stored)
{
  KJ_ASSERT(LLVMTypeOf(expected) == LLVMTypeOf(desired));
  LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
  if (l->target->small_cas && LLVMTypeOf(expected) == l->i16) {
    LLVMValueRef held = l->target->small_cas(l, p->scope, p->pointer, expected, desired);
    kl_annotate_atomic(l, held, p->array.object);
    *is_stored = kl_icmp(l, LLVMIntEQ, held, expected);
    return held;
  }
  LLVMValueRef pair = LLVMBuildAtomicCmpXchgSyncScope(kl_next(l), p->pointer, expected, desired,
                                                      relaxed, relaxed, scope_of(l, p));
  kl_annotate_atomic(l, pair, p->array.object);
  *is_stored = kl_extract_value(l, pair, 1);
  return kl_extract_value(l, pair, 0);
}

static LLVMValueRef build_load(kl_lowering *l, const lvalue *p, LLVMTypeRef type,
                               LLVMAtomicOrdering order)
{
  if (p->is_wide && l->target->wide_load) {
    LLVMValueRef held = l->target->wide_load(l, p->scope, order, p->pointer);
    kl_annotate_atomic(l, held, p->array.object);
    return held;
  }
  LLVMValueRef value = kl_load(l, type, p->pointer);
  LLVMSetOrdering(value, order);
  LLVMSetAtomicSyncScopeID(value, scope_of(l, p));
  LLVMSetAlignment(value, kl_scalar_bytes(l, p->type));
  kl_annotate_atomic(l, value, p->array.object);
  return value;
}

static void build_store(kl_lowering *l, const lvalue *p, LLVMValueRef value,
                        LLVMAtomicOrdering order)
{
  if (p->is_wide && l->target->wide_store) {
    kl_annotate_atomic(l, l->target->wide_store(l, p->scope, order, p->pointer, value),
                       p->array.object);
    return;
  }
  LLVMValueRef store = kl_store(l, value, p->pointer);
  LLVMSetOrdering(store, order);
  LLVMSetAtomicSyncScopeID(store, scope_of(l, p));
  LLVMSetAlignment(store, kl_scalar_bytes(l, p->type));
  kl_annotate_atomic(l, store, p->array.object);
}

/* Builds a compare-and-swap loop. The loop stores even if the value does not change, because only a
 * successful compare-and-swap proves that the returned value was in memory. */
static LLVMValueRef build_loop(kl_lowering *l, const lvalue *p, LLVMValueRef value)
{
  LLVMTypeRef type = kl_bits_type(l, p->type), real = LLVMTypeOf(value);
  LLVMValueRef first = build_load(l, p, type, LLVMAtomicOrderingMonotonic);
  LLVMBasicBlockRef before = kl_here(l), loop = kl_new_block(l, "cas"),
                    end = kl_new_block(l, "cas.end");
  kl_go_on_in(l, loop);
  LLVMValueRef seen = kl_phi(l, type);
  LLVMValueRef next = combine(l, p, kl_bitcast(l, seen, real), value);
  LLVMValueRef is_stored, held = build_cas(l, p, seen, kl_bitcast(l, next, type), &is_stored);
  kl_cond_br(l, is_stored, end, loop);
  LLVMAddIncoming(seen, (LLVMValueRef[]){ first, held }, (LLVMBasicBlockRef[]){ before, loop }, 2);
  kl_move_to(l, end);
  return kl_bitcast(l, held, real);
}

/* ---- operations that LLVM has ---- */

static LLVMAtomicRMWBinOp integer_op(ki_combine op, bool is_signed)
{
  switch (op) {
  case KJ_COMBINE_ADD: return LLVMAtomicRMWBinOpAdd;
  case KJ_COMBINE_SUB: return LLVMAtomicRMWBinOpSub;
  case KJ_COMBINE_MIN: return is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
  case KJ_COMBINE_MAX: return is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
  case KJ_COMBINE_AND: return LLVMAtomicRMWBinOpAnd;
  case KJ_COMBINE_OR: return LLVMAtomicRMWBinOpOr;
  case KJ_COMBINE_XOR: return LLVMAtomicRMWBinOpXor;
  case KJ_COMBINE_INC: return LLVMAtomicRMWBinOpUIncWrap;
  case KJ_COMBINE_DEC: return LLVMAtomicRMWBinOpUDecWrap;
  case KJ_COMBINE_EXCHANGE: break;
  }
  return LLVMAtomicRMWBinOpXchg;
}

static LLVMValueRef build_rmw(kl_lowering *l, const lvalue *p, LLVMAtomicRMWBinOp op,
                              LLVMValueRef value)
{
  LLVMValueRef native = l->target->scoped_atomic && !p->is_wide
                          ? l->target->scoped_atomic(l, p->op, p->type, p->scope, p->pointer, value)
                          : NULL;
  if (native) {
    kl_annotate_atomic(l, native, p->array.object);
    return kl_bitcast(l, native, LLVMTypeOf(value));
  }
  LLVMValueRef old = LLVMBuildAtomicRMWSyncScope(kl_next(l), op, p->pointer, value,
                                                 LLVMAtomicOrderingMonotonic, scope_of(l, p));
  kl_annotate_atomic(l, old, p->array.object);
  return old;
}

/* Turns a subtraction into an addition, because targets have instructions only for atomic
 * addition. */
static LLVMValueRef negate(kl_lowering *l, lvalue *p, LLVMValueRef value)
{
  p->op = KJ_COMBINE_ADD;
  if (!kl_is_float_type(l, p->type)) return kl_neg(l, value);
  return kl_from_compute(l, p->type, kl_fneg(l, kl_to_compute(l, p->type, value)));
}

static LLVMValueRef build_small_add(kl_lowering *l, const lvalue *p, LLVMValueRef value)
{
  if (!l->target->adds_small_float || !l->target->adds_small_float(l, p->type))
    return build_loop(l, p, value);
  LLVMTypeRef type = p->type == KJIT_F16 ? l->f16 : LLVMBFloatTypeInContext(l->context);
  LLVMValueRef old = build_rmw(l, p, LLVMAtomicRMWBinOpFAdd, kl_bitcast(l, value, type));
  return kl_bitcast(l, old, LLVMTypeOf(value));
}

static LLVMValueRef build_float_atomic(kl_lowering *l, lvalue *p, LLVMValueRef value)
{
  KJ_ASSERT(kl_is_float_type(l, p->type));
  if (p->op == KJ_COMBINE_EXCHANGE) return build_rmw(l, p, LLVMAtomicRMWBinOpXchg, value);
  if (p->op == KJ_COMBINE_SUB) value = negate(l, p, value);
  if (p->op != KJ_COMBINE_ADD) return build_loop(l, p, value);
  return kl_scalar_bytes(l, p->type) == 2 ? build_small_add(l, p, value)
                                          : build_rmw(l, p, LLVMAtomicRMWBinOpFAdd, value);
}

static LLVMValueRef build_integer_atomic(kl_lowering *l, lvalue *p, LLVMValueRef value)
{
  KJ_ASSERT(!kl_is_float_type(l, p->type));
  if (p->scope != KJ_SCOPE_DEVICE && p->op == KJ_COMBINE_SUB) value = negate(l, p, value);
  bool is_counter = p->op == KJ_COMBINE_INC || p->op == KJ_COMBINE_DEC;
  if (is_counter && kl_scalar_bytes(l, p->type) == 8) return build_loop(l, p, value);
  return build_rmw(l, p, integer_op(p->op, kl_is_signed_type(l, p->type)), value);
}

/* ---- the built-ins ---- */

LLVMValueRef kl_lower_atomic(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 1);
  lvalue p = lower_lvalue(l, expr, KJ_WATCH_READ | KJ_WATCH_WRITE);
  LLVMValueRef value = lower_operand(l, &p, expr->args.items[0]);
  if (is_plain(l, &p)) {
    LLVMValueRef old = plain_load(l, &p, LLVMTypeOf(value));
    plain_store(l, &p, combine(l, &p, old, value));
    return give_value(l, &p, old);
  }
  if (p.is_wide) require_wide(l, expr);
  begin_order(l, &p);
  LLVMValueRef old = kl_is_float_type(l, p.type) ? build_float_atomic(l, &p, value)
                                                 : build_integer_atomic(l, &p, value);
  return give_value(l, &p, end_order(l, &p, old));
}

LLVMValueRef kl_lower_atomic_cas(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  lvalue p = lower_lvalue(l, expr, KJ_WATCH_READ | KJ_WATCH_WRITE);
  LLVMTypeRef type = kl_bits_type(l, p.type);
  LLVMValueRef expected = kl_bitcast(l, lower_operand(l, &p, expr->args.items[0]), type);
  LLVMValueRef desired = kl_bitcast(l, lower_operand(l, &p, expr->args.items[1]), type);
  LLVMValueRef held;
  if (is_plain(l, &p)) {
    held = plain_load(l, &p, type);
    plain_store(l, &p, kl_select(l, kl_icmp(l, LLVMIntEQ, held, expected), desired, held));
  } else {
    if (p.is_wide) require_wide(l, expr);
    begin_order(l, &p);
    held = end_order(l, &p, build_cas(l, &p, expected, desired, &(LLVMValueRef){ NULL }));
  }
  return give_value(l, &p, kl_bitcast(l, held, access_type(l, &p)));
}

LLVMValueRef kl_lower_atomic_load(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 0);
  lvalue p = lower_lvalue(l, expr, KJ_WATCH_READ);
  LLVMTypeRef type = access_type(l, &p);
  if (is_plain(l, &p)) return give_value(l, &p, plain_load(l, &p, type));
  if (p.is_wide) require_wide(l, expr);
  return give_value(l, &p, build_load(l, &p, type, own_order(&p)));
}

LLVMValueRef kl_lower_atomic_store(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 1);
  lvalue p = lower_lvalue(l, expr, KJ_WATCH_WRITE);
  LLVMValueRef value = lower_operand(l, &p, expr->args.items[0]);
  if (is_plain(l, &p)) {
    plain_store(l, &p, value);
    return NULL;
  }
  if (p.is_wide) require_wide(l, expr);
  build_store(l, &p, value, own_order(&p));
  return NULL;
}

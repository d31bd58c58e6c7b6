/* Atomics. The operation itself is relaxed, at the scope of its name; a memory order is made by
 * fences around it, which both targets honour, loads and stores apart, which have it themselves.
 * Where neither LLVM nor a target has the operation, a loop around compare-and-swap on the bits. */
#include <string.h>

#include "lower/lower.h"
#include "native/support_routines.h"

typedef struct place {
  kj_array_value array;
  LLVMValueRef pointer;
  kjit_type type;
  const char *op, *scope; /* "add"; LLVM's name of the scope */
  kj_memory_order order;
} place;

/* The row's symbol is "add", "add block" or "add system". */
static void set_operation(kj_lowering *l, const kj_texpr *expr, place *p)
{
  const char *symbol = expr->builtin->symbol, *blank = strchr(symbol, ' ');
  p->op = blank ? kj_copy_string(l->c->arena, symbol, (size_t)(blank - symbol)) : symbol;
  p->scope = !blank                            ? l->target->device_scope
             : strcmp(blank + 1, "block") == 0 ? l->target->block_scope
                                               : "";
  p->order = (kj_memory_order)expr->dimension;
}

static unsigned scope_of(kj_lowering *l, const place *p)
{
  return LLVMGetSyncScopeID(l->context, p->scope, strlen(p->scope));
}

/* The value operands come before the place in memory order of effects: operands are evaluated left
 * to right, the place's indices first. */
static place lower_place(kj_lowering *l, const kj_texpr *expr, uint32_t how)
{
  place p = { .array = kj_lower_array(l, expr->x) };
  p.type = kj_type(l->c->types, p.array.type)->element;
  p.pointer = kj_checked_pointer(l, &p.array, &expr->indices, expr->is_checked);
  if (expr->is_watched)
    kj_watch_access_at(l, expr->location, &p.array, p.pointer, how | KJ_WATCH_ATOMIC);
  set_operation(l, expr, &p);
  return p;
}

/* ---- memory orders ---- */

static void fence(kj_lowering *l, const place *p, LLVMAtomicOrdering order)
{
  LLVMBuildFenceSyncScope(l->builder, order, scope_of(l, p), "");
}

static void begin_order(kj_lowering *l, const place *p)
{
  if (p->order == KJ_ORDER_SEQ_CST) fence(l, p, LLVMAtomicOrderingSequentiallyConsistent);
  else if (p->order == KJ_ORDER_RELEASE || p->order == KJ_ORDER_ACQ_REL)
    fence(l, p, LLVMAtomicOrderingRelease);
}

static LLVMValueRef end_order(kj_lowering *l, const place *p, LLVMValueRef value)
{
  if (p->order != KJ_ORDER_RELAXED && p->order != KJ_ORDER_RELEASE)
    fence(l, p, LLVMAtomicOrderingAcquire);
  return value;
}

static LLVMAtomicOrdering own_order(const place *p)
{
  static const LLVMAtomicOrdering orders[] = { [KJ_ORDER_RELAXED] = LLVMAtomicOrderingMonotonic,
                                               [KJ_ORDER_ACQUIRE] = LLVMAtomicOrderingAcquire,
                                               [KJ_ORDER_RELEASE] = LLVMAtomicOrderingRelease,
                                               [KJ_ORDER_SEQ_CST] =
                                                 LLVMAtomicOrderingSequentiallyConsistent };
  return orders[p->order];
}

/* ---- where nobody else can see the memory ---- */

static bool is_plain(kj_lowering *l, const place *p)
{
  return l->target->plain_shared_atomic &&
         kj_type(l->c->types, p->array.type)->space == KJ_SPACE_SHARED;
}

static LLVMValueRef plain_load(kj_lowering *l, const place *p, LLVMTypeRef type)
{
  l->target->plain_shared_atomic(l);
  LLVMValueRef old = LLVMBuildLoad2(l->builder, type, p->pointer, "");
  LLVMSetAlignment(old, kj_scalar_bytes(l, p->type));
  return old;
}

static void plain_store(kj_lowering *l, const place *p, LLVMValueRef value)
{
  LLVMSetAlignment(LLVMBuildStore(l->builder, value, p->pointer), kj_scalar_bytes(l, p->type));
}

/* ---- operations ---- */

/* 0 where x is y or more, else one more. */
static LLVMValueRef increment(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef more = LLVMBuildAdd(l->builder, x, LLVMConstInt(type, 1, false), "");
  return LLVMBuildSelect(l->builder, LLVMBuildICmp(l->builder, LLVMIntUGE, x, y, ""),
                         LLVMConstNull(type), more, "");
}

/* y where x is 0 or more than y, else one less. */
static LLVMValueRef decrement(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef less = LLVMBuildSub(l->builder, x, LLVMConstInt(type, 1, false), "");
  LLVMValueRef wraps =
    LLVMBuildOr(l->builder, LLVMBuildICmp(l->builder, LLVMIntEQ, x, LLVMConstNull(type), ""),
                LLVMBuildICmp(l->builder, LLVMIntUGT, x, y, ""), "");
  return LLVMBuildSelect(l->builder, wraps, y, less, "");
}

/* What the place holds afterwards, in register form. */
static LLVMValueRef combine(kj_lowering *l, const place *p, LLVMValueRef x, LLVMValueRef y)
{
  const char *op = p->op;
  kj_location nowhere = { 0 };
  if (strcmp(op, "exch") == 0) return y;
  if (strcmp(op, "inc") == 0) return increment(l, x, y);
  if (strcmp(op, "dec") == 0) return decrement(l, x, y);
  if (strcmp(op, "sub") == 0) return kj_build_binary(l, KJIT_SUB, p->type, x, y, nowhere);
  return kj_build_reduction(l, strncmp(op, "nan", 3) == 0 ? op + 3 : op, p->type, x, y);
}

static LLVMTypeRef bits_type(kj_lowering *l, kjit_type type)
{
  return LLVMIntTypeInContext(l->context, 8 * kj_scalar_bytes(l, type));
}

static LLVMValueRef build_cas(kj_lowering *l, const place *p, LLVMValueRef expected,
                              LLVMValueRef desired)
{
  LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
  LLVMValueRef pair = LLVMBuildAtomicCmpXchgSyncScope(l->builder, p->pointer, expected, desired,
                                                      relaxed, relaxed, scope_of(l, p));
  kj_annotate_access(l, pair, p->array.object);
  return pair;
}

static LLVMValueRef build_load(kj_lowering *l, const place *p, LLVMTypeRef type,
                               LLVMAtomicOrdering order)
{
  LLVMValueRef value = LLVMBuildLoad2(l->builder, type, p->pointer, "");
  LLVMSetOrdering(value, order);
  LLVMSetAtomicSyncScopeID(value, scope_of(l, p));
  LLVMSetAlignment(value, kj_scalar_bytes(l, p->type));
  kj_annotate_access(l, value, p->array.object);
  return value;
}

/* A value that changes nothing is stored as well: what is returned was really there, since the loop
 * ends by a compare-and-swap in any case. */
static LLVMValueRef build_loop(kj_lowering *l, const place *p, LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = bits_type(l, p->type), real = LLVMTypeOf(value);
  LLVMValueRef first = build_load(l, p, type, LLVMAtomicOrderingMonotonic);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), loop = kj_new_block(l, "cas"),
                    end = kj_new_block(l, "cas.end");
  LLVMBuildBr(b, loop);
  kj_move_to(l, loop);
  LLVMValueRef seen = LLVMBuildPhi(b, type, "");
  LLVMValueRef next = combine(l, p, LLVMBuildBitCast(b, seen, real, ""), value);
  LLVMValueRef pair = build_cas(l, p, seen, LLVMBuildBitCast(b, next, type, ""));
  LLVMValueRef held = LLVMBuildExtractValue(b, pair, 0, "");
  LLVMBuildCondBr(b, LLVMBuildExtractValue(b, pair, 1, ""), end, loop);
  LLVMAddIncoming(seen, (LLVMValueRef[]){ first, held }, (LLVMBasicBlockRef[]){ before, loop }, 2);
  kj_move_to(l, end);
  return LLVMBuildBitCast(b, held, real, "");
}

/* ---- what LLVM has ---- */

typedef struct atomic_op {
  const char *name;
  LLVMAtomicRMWBinOp signed_, unsigned_;
} atomic_op;

static const atomic_op ops[] = {
  { "add", LLVMAtomicRMWBinOpAdd, LLVMAtomicRMWBinOpAdd },
  { "sub", LLVMAtomicRMWBinOpSub, LLVMAtomicRMWBinOpSub },
  { "min", LLVMAtomicRMWBinOpMin, LLVMAtomicRMWBinOpUMin },
  { "max", LLVMAtomicRMWBinOpMax, LLVMAtomicRMWBinOpUMax },
  { "nanmin", LLVMAtomicRMWBinOpMin, LLVMAtomicRMWBinOpUMin },
  { "nanmax", LLVMAtomicRMWBinOpMax, LLVMAtomicRMWBinOpUMax },
  { "and", LLVMAtomicRMWBinOpAnd, LLVMAtomicRMWBinOpAnd },
  { "or", LLVMAtomicRMWBinOpOr, LLVMAtomicRMWBinOpOr },
  { "xor", LLVMAtomicRMWBinOpXor, LLVMAtomicRMWBinOpXor },
  { "exch", LLVMAtomicRMWBinOpXchg, LLVMAtomicRMWBinOpXchg },
  { "inc", LLVMAtomicRMWBinOpUIncWrap, LLVMAtomicRMWBinOpUIncWrap },
  { "dec", LLVMAtomicRMWBinOpUDecWrap, LLVMAtomicRMWBinOpUDecWrap },
};

static LLVMValueRef build_rmw(kj_lowering *l, const place *p, LLVMAtomicRMWBinOp op,
                              LLVMValueRef value)
{
  const char *name = strncmp(p->op, "nan", 3) == 0 ? p->op + 3 : p->op;
  LLVMValueRef native = l->target->scoped_atomic
                          ? l->target->scoped_atomic(l, name, p->type, p->scope, p->pointer, value)
                          : NULL;
  if (native) return native;
  LLVMValueRef old = LLVMBuildAtomicRMWSyncScope(l->builder, op, p->pointer, value,
                                                 LLVMAtomicOrderingMonotonic, scope_of(l, p));
  kj_annotate_access(l, old, p->array.object);
  return old;
}

/* Targets add natively; none subtracts. */
static LLVMValueRef negate(kj_lowering *l, place *p, LLVMValueRef value)
{
  p->op = "add";
  if (!kj_is_float_type(l, p->type)) return LLVMBuildNeg(l->builder, value, "");
  return kj_from_compute(l, p->type,
                         LLVMBuildFNeg(l->builder, kj_to_compute(l, p->type, value), ""));
}

static LLVMValueRef build_small_add(kj_lowering *l, const place *p, LLVMValueRef value)
{
  if (!l->target->adds_small_float || !l->target->adds_small_float(l, p->type))
    return build_loop(l, p, value);
  LLVMTypeRef type = p->type == KJIT_F16 ? l->f16 : LLVMBFloatTypeInContext(l->context);
  LLVMValueRef old =
    build_rmw(l, p, LLVMAtomicRMWBinOpFAdd, LLVMBuildBitCast(l->builder, value, type, ""));
  return LLVMBuildBitCast(l->builder, old, LLVMTypeOf(value), "");
}

static LLVMValueRef build_float_atomic(kj_lowering *l, place *p, LLVMValueRef value)
{
  if (strcmp(p->op, "exch") == 0) return build_rmw(l, p, LLVMAtomicRMWBinOpXchg, value);
  if (strcmp(p->op, "sub") == 0) value = negate(l, p, value);
  if (strcmp(p->op, "add") != 0) return build_loop(l, p, value);
  return kj_scalar_bytes(l, p->type) == 2 ? build_small_add(l, p, value)
                                          : build_rmw(l, p, LLVMAtomicRMWBinOpFAdd, value);
}

static LLVMValueRef build_integer_atomic(kj_lowering *l, const kj_texpr *expr, place *p,
                                         LLVMValueRef value)
{
  bool is_device = p->scope == l->target->device_scope;
  if (!is_device && strcmp(p->op, "sub") == 0) value = negate(l, p, value);
  bool is_counter = strcmp(p->op, "inc") == 0 || strcmp(p->op, "dec") == 0;
  if (is_counter && kj_scalar_bytes(l, p->type) == 8) return build_loop(l, p, value);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(ops[i].name, p->op) == 0)
      return build_rmw(l, p, kj_is_signed_type(l, p->type) ? ops[i].signed_ : ops[i].unsigned_,
                       value);
  kj_fail(l->c, expr->location, KJIT_ERROR_COMPILE, "internal error: `%s` has no lowering",
          expr->builtin->name);
}

/* ---- the built-ins ---- */

LLVMValueRef kj_lower_atomic(kj_lowering *l, const kj_texpr *expr)
{
  place p = lower_place(l, expr, KJ_WATCH_READ | KJ_WATCH_WRITE);
  LLVMValueRef value = kj_lower_expr(l, expr->args.items[0]);
  if (is_plain(l, &p)) {
    LLVMValueRef old = plain_load(l, &p, LLVMTypeOf(value));
    plain_store(l, &p, combine(l, &p, old, value));
    return old;
  }
  begin_order(l, &p);
  return end_order(l, &p,
                   kj_is_float_type(l, p.type) ? build_float_atomic(l, &p, value)
                                               : build_integer_atomic(l, expr, &p, value));
}

LLVMValueRef kj_lower_atomic_cas(kj_lowering *l, const kj_texpr *expr)
{
  place p = lower_place(l, expr, KJ_WATCH_READ | KJ_WATCH_WRITE);
  LLVMTypeRef type = bits_type(l, p.type);
  LLVMValueRef expected =
    LLVMBuildBitCast(l->builder, kj_lower_expr(l, expr->args.items[0]), type, "");
  LLVMValueRef desired =
    LLVMBuildBitCast(l->builder, kj_lower_expr(l, expr->args.items[1]), type, "");
  LLVMValueRef held;
  if (is_plain(l, &p)) {
    held = plain_load(l, &p, type);
    plain_store(l, &p,
                LLVMBuildSelect(l->builder,
                                LLVMBuildICmp(l->builder, LLVMIntEQ, held, expected, ""), desired,
                                held, ""));
  } else {
    begin_order(l, &p);
    held = end_order(l, &p,
                     LLVMBuildExtractValue(l->builder, build_cas(l, &p, expected, desired), 0, ""));
  }
  return LLVMBuildBitCast(l->builder, held, kj_memory_type(l, p.type), "");
}

LLVMValueRef kj_lower_atomic_load(kj_lowering *l, const kj_texpr *expr)
{
  place p = lower_place(l, expr, KJ_WATCH_READ);
  LLVMTypeRef type = kj_memory_type(l, p.type);
  return is_plain(l, &p) ? plain_load(l, &p, type) : build_load(l, &p, type, own_order(&p));
}

LLVMValueRef kj_lower_atomic_store(kj_lowering *l, const kj_texpr *expr)
{
  place p = lower_place(l, expr, KJ_WATCH_WRITE);
  LLVMValueRef value = kj_lower_expr(l, expr->args.items[0]);
  if (is_plain(l, &p)) {
    l->target->plain_shared_atomic(l);
    plain_store(l, &p, value);
    return NULL;
  }
  LLVMValueRef store = LLVMBuildStore(l->builder, value, p.pointer);
  LLVMSetOrdering(store, own_order(&p));
  LLVMSetAtomicSyncScopeID(store, scope_of(l, &p));
  LLVMSetAlignment(store, kj_scalar_bytes(l, p.type));
  kj_annotate_access(l, store, p.array.object);
  return NULL;
}

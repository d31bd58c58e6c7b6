/* Lowers expressions. A table has the lowering function for each kind of expression. */
#include "lower/instruction.h"
#include "native/watch.h"

static LLVMValueRef const_value(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CONST);
  LLVMTypeRef type = kl_register_type(l, expr->type);
  if (!kl_is_float_type(l, expr->type) || expr->type == KJIT_BF16)
    return LLVMConstInt(type, (uint64_t)expr->integer, true);
  unsigned width = kl_type_info(l, expr->type)->size_bytes * 8;
  LLVMTypeRef word = LLVMIntTypeInContext(l->context, width);
  return LLVMConstBitCast(LLVMConstInt(word, (uint64_t)expr->integer, false), type);
}

static LLVMValueRef lower_const(kl_lowering *l, const kt_expr *expr)
{
  return const_value(l, expr);
}

static LLVMValueRef lower_var(kl_lowering *l, const kt_expr *expr)
{
  return kl_get_variable(l, expr->var);
}

static LLVMValueRef lower_unary(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_UNARY);
  if (kl_part_of(l, expr->type) != expr->type)
    return kl_build_unary_parts(l, expr->op, expr->type, kl_lower_expr(l, expr->x));
  if (expr->op == KJIT_OP_NOT) return kl_not(l, kl_lower_condition(l, expr->x));
  LLVMValueRef x = kl_lower_expr(l, expr->x);
  if (expr->op == KJIT_OP_INVERT) return kl_not(l, x);
  if (!kl_is_float_type(l, expr->type)) return kl_neg(l, x);
  return kl_from_compute(l, expr->type, kl_fast(l, kl_fneg(l, kl_to_compute(l, expr->type, x))));
}

static LLVMValueRef lower_binary(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_BINARY);
  LLVMValueRef x = kl_lower_expr(l, expr->x), y = kl_lower_expr(l, expr->y);
  kl_check_divisor(l, expr, expr->type, x, y);
  if (expr->op == KJIT_OP_POW && expr->y->type != expr->type)
    return kl_build_whole_power(l, expr->type, x, expr->y->type, y);
  return kl_build_binary(l, expr->op, expr->type, x, y, expr->location);
}

static LLVMValueRef lower_compare(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_COMPARE);
  bool is_narrow = expr->x->is_narrow && expr->y->is_narrow;
  if (is_narrow) {
    LLVMValueRef x = kl_lower_index32(l, expr->x), y = kl_lower_index32(l, expr->y);
    return kl_build_compare(l, expr->op, KJIT_I32, KJIT_I32, x, y);
  }
  LLVMValueRef x = kl_lower_expr(l, expr->x), y = kl_lower_expr(l, expr->y);
  return kl_build_compare(l, expr->op, expr->x->type, expr->y->type, x, y);
}

static LLVMValueRef lower_convert(kl_lowering *l, const kt_expr *expr)
{
  return kl_build_convert(l, expr->x->type, expr->type, kl_lower_expr(l, expr->x));
}

/* ---- lazily evaluated operands ---- */

/* Returns whether the expression has no effect and evaluating it is always cheaper than a branch
 * around it. Subtracts the cost of the expression from *budget. */
static bool is_cheap(kl_lowering *l, const kt_expr *expr, int *budget)
{
  if (!ki_is_scalar(expr->type) || --*budget < 0) return false;
  switch (KJ_AMONG(expr->kind)) {
  case KJ_T_CONST: return true;
  case KJ_T_VAR: return !expr->var->is_slot;
  case KJ_T_EXTENT: return expr->x->kind == KJ_T_VAR;
  case KJ_T_UNARY:
  case KJ_T_CONVERT: return is_cheap(l, expr->x, budget);
  case KJ_T_COMPARE:
  case KJ_T_LOGIC: return is_cheap(l, expr->x, budget) && is_cheap(l, expr->y, budget);
  case KJ_T_BINARY: {
    bool is_simple = expr->op == KJIT_OP_ADD || expr->op == KJIT_OP_SUB ||
                     expr->op == KJIT_OP_MUL ||
                     (expr->op >= KJIT_OP_BIT_OR && expr->op <= KJIT_OP_SHR);
    return is_simple && is_cheap(l, expr->x, budget) && is_cheap(l, expr->y, budget);
  }
  default: return false;
  }
}

enum { CHEAP = 6 };

bool kl_is_straight(kl_lowering *l, const kt_expr *expr)
{
  int budget = CHEAP;
  if (expr->kind == KJ_T_LOGIC) return is_cheap(l, expr->y, &budget);
  return expr->kind != KJ_T_COND ||
         (is_cheap(l, expr->y, &budget) && is_cheap(l, expr->z, &budget));
}

static LLVMValueRef lower_logic(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_LOGIC);
  bool is_or = expr->op == KJIT_OP_OR;
  LLVMValueRef x = kl_lower_condition(l, expr->x), decided = LLVMConstInt(l->i1, is_or, false);
  if (kl_is_straight(l, expr)) {
    LLVMValueRef y = kl_lower_condition(l, expr->y);
    return is_or ? kl_select(l, x, decided, y) : kl_select(l, x, y, decided);
  }
  LLVMBasicBlockRef from = kl_here(l), more = kl_new_block(l, is_or ? "or" : "and"),
                    end = kl_new_block(l, is_or ? "or.end" : "and.end");
  kl_cond_br(l, x, is_or ? end : more, is_or ? more : end);
  kl_move_to(l, more);
  LLVMValueRef y = kl_lower_condition(l, expr->y);
  LLVMBasicBlockRef y_from = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, decided, from, y, y_from);
}

static LLVMValueRef lower_cond(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_COND);
  LLVMValueRef condition = kl_lower_condition(l, expr->x);
  if (kl_is_straight(l, expr)) {
    LLVMValueRef y = kl_lower_expr(l, expr->y), z = kl_lower_expr(l, expr->z);
    return kl_select(l, condition, y, z);
  }
  LLVMBasicBlockRef yes = kl_new_block(l, "then"), no = kl_new_block(l, "else"),
                    end = kl_new_block(l, "cond");
  kl_go_on_if(l, condition, yes, no);
  LLVMValueRef y = kl_lower_expr(l, expr->y);
  LLVMBasicBlockRef y_from = kl_here(l);
  kl_br(l, end);
  kl_move_to(l, no);
  LLVMValueRef z = kl_lower_expr(l, expr->z);
  LLVMBasicBlockRef z_from = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, y, y_from, z, z_from);
}

LLVMValueRef kl_lower_condition(kl_lowering *l, const kt_expr *expr)
{
  return kl_build_convert(l, expr->type, KJIT_BOOL, kl_lower_expr(l, expr));
}

/* ---- expressions of arrays, tuples and calls ---- */

static LLVMValueRef lower_load(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_LOAD);
  kl_array_value array = kl_lower_array(l, expr->x);
  if (l->vector_loads && kl_is_vector_access(l, &array, &expr->args))
    return l->vector_loads[(array.object - 1) * l->vector_count + l->vector_step];
  LLVMValueRef pointer = kl_checked_pointer(l, &array, &expr->args, kl_check_of_expr(l, expr));
  if (expr->is_watched) kl_watch_access_at(l, expr->location, &array, pointer, KJ_WATCH_READ);
  return kl_load_element(l, &array, pointer, kl_element_alignment(l, &array, &expr->args));
}

static LLVMValueRef lower_extent(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_EXTENT || expr->kind == KJ_T_STRIDE);
  kl_array_value array = kl_lower_array(l, expr->x);
  return expr->kind == KJ_T_EXTENT ? kl_extent(l, &array, expr->dimension)
                                   : kl_stride(l, &array, expr->dimension);
}

static LLVMValueRef lower_builtin(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_BUILTIN);
  bool is_complex = expr->args.count &&
                    kl_is_complex_type(l, expr->args.items[expr->args.count - 1]->type) &&
                    !(expr->builtin->flags & (KJ_WARP | KJ_PLACE));
  if (is_complex) kl_lower_unsupported(l, expr->location, "this built-in on complex numbers");
  LLVMValueRef value = kl_lower_table[expr->builtin->id](l, expr);
  /* a narrow expression is computed in 32 bits, so its value is extended here */
  return expr->type == KJIT_I64 ? kl_as_i64(l, value) : value;
}

static LLVMValueRef (*const lower_by_kind[])(kl_lowering *, const kt_expr *) = {
  [KJ_T_CONST] = lower_const,
  [KJ_T_VAR] = lower_var,
  [KJ_T_UNARY] = lower_unary,
  [KJ_T_BINARY] = lower_binary,
  [KJ_T_COMPARE] = lower_compare,
  [KJ_T_LOGIC] = lower_logic,
  [KJ_T_COND] = lower_cond,
  [KJ_T_CONVERT] = lower_convert,
  [KJ_T_LOAD] = lower_load,
  [KJ_T_VIEW] = NULL,
  [KJ_T_EXTENT] = lower_extent,
  [KJ_T_STRIDE] = lower_extent,
  [KJ_T_BUILTIN] = lower_builtin,
  [KJ_T_CALL] = kl_lower_call,
  [KJ_T_TUPLE] = kl_lower_tuple,
  [KJ_T_ITEM] = kl_lower_item,
  [KJ_T_ELEMENT] = kl_lower_element,
  [KJ_T_INSERT] = kl_lower_insert,
  [KJ_T_MEMBER] = NULL,
  [KJ_T_ADDRESS] = kl_lower_address,
  [KJ_T_POINTED] = NULL,
  [KJ_T_EMPTY] = NULL,
};

/* Returns whether the expression computes a new value, whose range can be asserted. Returns false,
 * for example, for a variable, which only holds a value that was computed elsewhere. */
static bool computes(const kt_expr *expr)
{
  return expr->kind == KJ_T_UNARY || expr->kind == KJ_T_BINARY || expr->kind == KJ_T_COND ||
         expr->kind == KJ_T_CONVERT || expr->kind == KJ_T_EXTENT || expr->kind == KJ_T_BUILTIN;
}

LLVMValueRef kl_lower_expr(kl_lowering *l, const kt_expr *expr)
{
  if (kl_is_array_type(l, expr->type) && expr->kind != KJ_T_COND && expr->kind != KJ_T_ITEM) {
    kl_array_value array = kl_lower_array(l, expr);
    return kl_pack_array(l, &array);
  }
  LLVMValueRef narrow =
    expr->is_narrow && expr->kind != KJ_T_CONST ? kl_try_index32(l, expr) : NULL;
  if (narrow) return kl_as_i64(l, narrow);
  LLVMValueRef value = lower_by_kind[expr->kind](l, expr);
  if (value && computes(expr)) kl_assert_range(l, expr->range, expr->type, value);
  return value;
}

static kl_array_value lower_empty(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_EMPTY && !kl_type_info(l, expr->type)->is_static);
  return kl_unpack_array(l, expr->type, LLVMConstNull(kl_register_type(l, expr->type)));
}

kl_array_value kl_lower_array(kl_lowering *l, const kt_expr *expr)
{
  switch (KJ_AMONG(expr->kind)) {
  case KJ_T_VAR: return kl_get_array(l, expr->var);
  case KJ_T_CALL: return kl_lower_array_call(l, expr);
  case KJ_T_VIEW: return kl_lower_view(l, expr);
  case KJ_T_MEMBER: return kl_lower_member(l, expr);
  case KJ_T_POINTED: return kl_lower_pointed(l, expr);
  case KJ_T_EMPTY: return lower_empty(l, expr);
  default: return kl_unpack_array(l, expr->type, lower_by_kind[expr->kind](l, expr));
  }
}

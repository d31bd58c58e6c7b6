/* Lowers barriers, warp operations, and operations in which several warps or blocks cooperate. */
#include <string.h>

#include "lower/builtins/tensor_copy.h"
#include "lower/instruction.h"

/* ---- barriers, fences and warp functions, for targets that have instructions for them ---- */

static LLVMValueRef arg32(kl_lowering *l, const kt_expr *expr, size_t i)
{
  return kl_lower_index32(l, expr->args.items[i]);
}

LLVMValueRef kl_lower_barrier(kl_lowering *l, const kt_expr *expr)
{
  (void)expr;
  l->target->barrier(l);
  return NULL;
}

LLVMValueRef kl_lower_barrier_reduce(kl_lowering *l, const kt_expr *expr)
{
  return l->target->barrier_reduce(l, (ki_barrier_reduction)expr->builtin->operation,
                                   kl_lower_condition(l, expr->args.items[0]));
}

LLVMValueRef kl_lower_syncwarp(kl_lowering *l, const kt_expr *expr)
{
  l->target->syncwarp(l, expr->args.count ? arg32(l, expr, 0) : kl_const32(l, -1));
  return NULL;
}

LLVMValueRef kl_lower_fence(kl_lowering *l, const kt_expr *expr)
{
  l->target->fence(l, (ki_memory_scope)expr->builtin->scope);
  return NULL;
}

/* ---- shuffles, in 32-bit words ---- */

enum { MOST_WORDS = 32 };

static LLVMValueRef shuffle_word(kl_lowering *l, const kl_shuffle *s, LLVMValueRef word)
{
  return l->target->shuffle(l, s->mode, s->mask, word, s->lane, s->width);
}

/* Shuffles a vector element by element. The elements fill whole words. */
static LLVMValueRef shuffle_vector(kl_lowering *l, const kl_shuffle *s, LLVMValueRef value,
                                   uint32_t count)
{
  LLVMTypeRef words = LLVMVectorType(l->i32, count);
  LLVMValueRef given = kl_bitcast(l, value, words), moved = LLVMGetPoison(words);
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef word = shuffle_word(l, s, kl_extract_element(l, given, kl_const32(l, i)));
    moved = kl_insert_element(l, moved, word, kl_const32(l, i));
  }
  return kl_bitcast(l, moved, LLVMTypeOf(value));
}

static bool has_whole_words(kl_lowering *l, kjit_type type)
{
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++)
    if (kl_scalar_bytes(l, kl_get_part_info(l, type, i).type) % 4) return false;
  return count > 0;
}

LLVMValueRef kl_build_shuffle(kl_lowering *l, kjit_type type, const kl_shuffle *s,
                              LLVMValueRef value)
{
  bool is_vector = kl_is_vector_type(l, type),
       has_parts = !is_vector && kl_is_composed_type(l, type) && has_whole_words(l, type);
  if (is_vector && kl_part_of(l, type) != KJIT_BOOL && kl_scalar_bytes(l, type) % 4 == 0)
    return shuffle_vector(l, s, value, kl_scalar_bytes(l, type) / 4);
  for (uint32_t i = 0; has_parts && i < kl_part_count(l, type); i++)
    value = kl_set_part(l, type, value,
                        kl_build_shuffle(l, kl_get_part_info(l, type, i).type, s,
                                         kl_get_part(l, type, value, i)),
                        i);
  if (has_parts) return value;
  LLVMValueRef bits = kl_value_bits(l, type, value), words[MOST_WORDS];
  uint32_t count = kl_count_words(LLVMTypeOf(bits));
  KJ_ASSERT(count <= MOST_WORDS);
  for (uint32_t i = 0; i < count; i++) words[i] = shuffle_word(l, s, kl_get_word(l, bits, i));
  return kl_value_of_bits(l, type, kl_join_words(l, LLVMTypeOf(bits), words, count));
}

LLVMValueRef kl_lower_shuffle(kl_lowering *l, const kt_expr *expr)
{
  kl_shuffle s = { .mode = (ki_shuffle_mode)expr->builtin->operation, .mask = arg32(l, expr, 0) };
  LLVMValueRef value = kl_lower_arg(l, expr, 1);
  s.lane = arg32(l, expr, 2);
  if (expr->args.count == 4) s.width = arg32(l, expr, 3);
  return kl_build_shuffle(l, expr->type, &s, value);
}

LLVMValueRef kl_lower_vote(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0);
  return l->target->vote(l, (ki_vote)expr->builtin->operation, mask,
                         kl_lower_condition(l, expr->args.items[1]));
}

LLVMValueRef kl_lower_activemask(kl_lowering *l, const kt_expr *expr)
{
  (void)expr;
  return l->target->activemask(l);
}

/* Returns the mask of the lanes whose number has the given relation to this lane's number: lt, le,
 * eq, ge or gt. */
static LLVMValueRef lanemask(kl_lowering *l, kjit_op relation)
{
  static const char *const registers[] = { [KJIT_OP_EQ] = "read.ptx.sreg.lanemask.eq",
                                           [KJIT_OP_LE] = "read.ptx.sreg.lanemask.le",
                                           [KJIT_OP_GE] = "read.ptx.sreg.lanemask.ge",
                                           [KJIT_OP_GT] = "read.ptx.sreg.lanemask.gt",
                                           [KJIT_OP_LT] = "read.ptx.sreg.lanemask.lt" };
  LLVMValueRef native = kl_try_native(l, registers[relation], 0, NULL, 0);
  if (native) return native;
  LLVMValueRef bit =
    kl_shl(l, kl_const32(l, 1), kl_as_i32(l, l->target->position(l, KJ_BUILTIN_LANEID, 0)));
  LLVMValueRef below = kl_sub(l, bit, kl_const32(l, 1));
  if (relation == KJIT_OP_EQ) return bit;
  if (relation == KJIT_OP_LT) return below;
  if (relation == KJIT_OP_GE) return kl_not(l, below);
  LLVMValueRef at_most = kl_or(l, below, bit);
  return relation == KJIT_OP_LE ? at_most : kl_not(l, at_most);
}

LLVMValueRef kl_lower_lanemask(kl_lowering *l, const kt_expr *expr)
{
  return lanemask(l, (kjit_op)expr->builtin->operation);
}

/* Elects the lowest lane in the mask, on every target. */
LLVMValueRef kl_lower_elect(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0), lanes = kl_and(l, mask, lanemask(l, KJIT_OP_LE));
  return kl_icmp(l, LLVMIntEQ, lanes, lanemask(l, KJIT_OP_EQ));
}

/* ---- match and reduce in a warp, for targets that have instructions for them ---- */

/* Extends the bits of the value to 32, 64 or 128 bits. */
LLVMValueRef kl_comparable_bits(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  LLVMValueRef bits = kl_value_bits(l, type, value);
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bits)), wanted = width <= 32   ? 32
                                                                   : width <= 64 ? 64
                                                                                 : 128;
  return width == wanted ? bits : kl_zext(l, bits, LLVMIntTypeInContext(l->context, wanted));
}

LLVMValueRef kl_build_reduction(kl_lowering *l, ki_combine op, kjit_type type, LLVMValueRef x,
                                LLVMValueRef y)
{
  static const kjit_op ops[] = { [KJ_COMBINE_ADD] = KJIT_OP_ADD,
                                 [KJ_COMBINE_SUB] = KJIT_OP_SUB,
                                 [KJ_COMBINE_AND] = KJIT_OP_BIT_AND,
                                 [KJ_COMBINE_OR] = KJIT_OP_BIT_OR,
                                 [KJ_COMBINE_XOR] = KJIT_OP_BIT_XOR };
  if (op == KJ_COMBINE_MIN || op == KJ_COMBINE_MAX)
    return kl_build_minmax(l, op == KJ_COMBINE_MAX, type, x, y);
  return kl_build_binary(l, ops[op], type, x, y, (kj_location){ 0 });
}

static LLVMValueRef match_bits(kl_lowering *l, bool is_any, LLVMValueRef mask, LLVMValueRef bits)
{
  LLVMValueRef args[2] = { mask, bits };
  const char *width = LLVMTypeOf(bits) == l->i64 ? "i64" : "i32";
  return kl_try_native(l,
                       kj_format(l->c->arena, is_any ? "match.any.sync.%s" : "match.all.sync.%sp",
                                 width),
                       0, args, 2);
}

/* Combines the matches of the two halves of a value. For match_any, the result is the lanes that
 * are equal in both halves; match_all is true if both halves match. */
static LLVMValueRef join_matches(kl_lowering *l, bool is_any, LLVMValueRef x, LLVMValueRef y)
{
  if (is_any) return kl_and(l, x, y);
  LLVMValueRef holds = kl_and(l, kl_extract_value(l, x, 1), kl_extract_value(l, y, 1));
  LLVMValueRef mask = kl_and(l, kl_extract_value(l, x, 0), kl_extract_value(l, y, 0));
  return kl_insert_value(l, kl_insert_value(l, x, mask, 0), holds, 1);
}

LLVMValueRef kl_lower_match(kl_lowering *l, const kt_expr *expr)
{
  const kt_expr *x = expr->args.items[1];
  LLVMValueRef mask = kl_lower_index32(l, expr->args.items[0]),
               bits = kl_comparable_bits(l, x->type, kl_lower_expr(l, x));
  bool is_any = expr->builtin->operation == KJ_VOTE_ANY;
  if (LLVMGetIntTypeWidth(LLVMTypeOf(bits)) <= 64) return match_bits(l, is_any, mask, bits);
  LLVMValueRef low = kl_trunc(l, bits, l->i64);
  LLVMValueRef high =
    kl_trunc(l, kl_lshr(l, bits, LLVMConstInt(LLVMTypeOf(bits), 64, false)), l->i64);
  return join_matches(l, is_any, match_bits(l, is_any, mask, low),
                      match_bits(l, is_any, mask, high));
}

/* ---- reductions: one instruction for 32-bit integers from sm_80 on, shuffles otherwise ---- */

static LLVMValueRef from_lane(kl_lowering *l, const kt_expr *expr, ki_shuffle_mode mode,
                              LLVMValueRef mask, LLVMValueRef value, LLVMValueRef lane)
{
  return kl_build_shuffle(l, expr->type, &(kl_shuffle){ .mode = mode, .mask = mask, .lane = lane },
                          value);
}

static LLVMValueRef reduce_all(kl_lowering *l, const kt_expr *expr, LLVMValueRef mask,
                               LLVMValueRef value)
{
  for (int distance = 16; distance > 0; distance /= 2)
    value =
      kl_build_reduction(l, (ki_combine)expr->builtin->operation, expr->type, value,
                         from_lane(l, expr, KJ_SHUFFLE_XOR, mask, value, kl_const32(l, distance)));
  return value;
}

static LLVMValueRef lowest_lane(kl_lowering *l, LLVMValueRef mask)
{
  LLVMTypeRef type = l->i32;
  LLVMValueRef reversed = kl_intrinsic1(l, "llvm.bitreverse", mask);
  return kl_intrinsic(l, "llvm.ctlz", &type, 1,
                      (LLVMValueRef[]){ reversed, LLVMConstInt(l->i1, 0, false) }, 2);
}

static LLVMValueRef without_lowest(kl_lowering *l, LLVMValueRef mask)
{
  return kl_and(l, mask, kl_sub(l, mask, kl_const32(l, 1)));
}

/* Reduces over the lanes in the mask, from the lowest to the highest. All lanes in the mask run the
 * loop together. */
static LLVMValueRef reduce_some(kl_lowering *l, const kt_expr *expr, LLVMValueRef mask,
                                LLVMValueRef value)
{
  LLVMValueRef first = from_lane(l, expr, KJ_SHUFFLE_IDX, mask, value, lowest_lane(l, mask)),
               rest = without_lowest(l, mask);
  LLVMBasicBlockRef before = kl_here(l), head = kl_new_block(l, "lanes"),
                    body = kl_new_block(l, "lane"), end = kl_new_block(l, "lanes.end");
  kl_go_on_in(l, head);
  LLVMValueRef left = kl_phi(l, l->i32), so_far = kl_phi(l, LLVMTypeOf(value));
  kl_go_on_if(l, kl_icmp(l, LLVMIntNE, left, kl_const32(l, 0)), body, end);
  LLVMValueRef next =
    kl_build_reduction(l, (ki_combine)expr->builtin->operation, expr->type, so_far,
                       from_lane(l, expr, KJ_SHUFFLE_IDX, mask, value, lowest_lane(l, left)));
  LLVMValueRef fewer = without_lowest(l, left);
  LLVMBasicBlockRef last = kl_here(l);
  kl_br(l, head);
  LLVMAddIncoming(left, (LLVMValueRef[]){ rest, fewer }, (LLVMBasicBlockRef[]){ before, last }, 2);
  LLVMAddIncoming(so_far, (LLVMValueRef[]){ first, next }, (LLVMBasicBlockRef[]){ before, last },
                  2);
  kl_move_to(l, end);
  l->loop_count++;
  return so_far;
}

static LLVMValueRef reduce_by_shuffles(kl_lowering *l, const kt_expr *expr, LLVMValueRef mask,
                                       LLVMValueRef value)
{
  LLVMValueRef is_full = kl_icmp(l, LLVMIntEQ, mask, kl_const32(l, -1));
  if (LLVMIsAConstantInt(is_full))
    return LLVMConstIntGetZExtValue(is_full) ? reduce_all(l, expr, mask, value)
                                             : reduce_some(l, expr, mask, value);
  LLVMBasicBlockRef full = kl_new_block(l, "full"), some = kl_new_block(l, "some"),
                    end = kl_new_block(l, "reduced");
  kl_go_on_if(l, is_full, full, some);
  LLVMValueRef of_all = reduce_all(l, expr, mask, value);
  LLVMBasicBlockRef full_end = kl_here(l);
  kl_br(l, end);
  kl_move_to(l, some);
  LLVMValueRef of_some = reduce_some(l, expr, mask, value);
  LLVMBasicBlockRef some_end = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, of_all, full_end, of_some, some_end);
}

LLVMValueRef kl_lower_reduce(kl_lowering *l, const kt_expr *expr)
{
  static const char *const names[] = {
    [KJ_COMBINE_ADD] = "redux.sync.add", [KJ_COMBINE_MIN] = "redux.sync.min",
    [KJ_COMBINE_MAX] = "redux.sync.max", [KJ_COMBINE_AND] = "redux.sync.and",
    [KJ_COMBINE_OR] = "redux.sync.or",   [KJ_COMBINE_XOR] = "redux.sync.xor"
  };
  ki_combine op = (ki_combine)expr->builtin->operation;
  const char *name = names[op];
  LLVMValueRef mask = kl_lower_index32(l, expr->args.items[0]),
               value = kl_lower_expr(l, expr->args.items[1]);
  if (expr->type != KJIT_I32 && expr->type != KJIT_U32)
    return reduce_by_shuffles(l, expr, mask, value);
  if (expr->type == KJIT_U32 && op == KJ_COMBINE_MIN) name = "redux.sync.umin";
  if (expr->type == KJIT_U32 && op == KJ_COMBINE_MAX) name = "redux.sync.umax";
  LLVMValueRef native = kl_try_native(l, name, 80, (LLVMValueRef[]){ value, mask }, 2);
  return native ? native : reduce_by_shuffles(l, expr, mask, value);
}

/* ---- families of built-ins that each target lowers by its own function ---- */

#define F(family) \
  LLVMValueRef kl_lower_##family(kl_lowering *l, const kt_expr *expr) \
  { \
    if (!l->target->family) kl_lower_unsupported(l, expr->location, expr->builtin->name); \
    return l->target->family(l, expr); \
  }
#include "lower/families.def"
#undef F

static LLVMValueRef field(kl_lowering *l, LLVMValueRef bytes, int64_t mask, int64_t shift)
{
  LLVMValueRef sixteenths = kl_lshr(l, kl_and(l, bytes, kl_const64(l, mask)), kl_const64(l, 4));
  return kl_shl(l, sixteenths, kl_const64(l, shift));
}

/* Builds a matrix descriptor as in the PTX manual: address, leading and stride offset in units of
 * 16 bytes, 14 bits each, and the swizzle mode in the top two bits. */
LLVMValueRef kl_lower_matrix_descriptor(kl_lowering *l, const kt_expr *expr)
{
  enum { MASK = 0x3ffff, LEADING = 16, STRIDE = 32, SWIZZLE = 62 };
  static const uint64_t kinds[] = { [0] = 0, [1] = 3, [2] = 2, [4] = 1 };
  LLVMValueRef word = field(l, kl_lower_expr(l, expr->args.items[0]), MASK, 0);
  word = kl_or(l, word, field(l, kl_lower_expr(l, expr->args.items[1]), MASK, LEADING));
  word = kl_or(l, word, field(l, kl_lower_expr(l, expr->args.items[2]), MASK, STRIDE));
  uint64_t kind = kinds[(size_t)expr->args.items[3]->integer / 32];
  return kl_or(l, word, LLVMConstInt(l->i64, kind << SWIZZLE, false));
}

/* ---- helpers for the targets ---- */

LLVMValueRef kl_lower_source(kl_lowering *l, const kt_expr *copy, kl_array_value *array)
{
  *array = kl_lower_array(l, copy->y->x);
  return kl_checked_pointer(l, array, &copy->y->args, kl_check_of_expr(l, copy->y));
}

LLVMValueRef kl_lower_destination(kl_lowering *l, const kt_expr *copy, kl_array_value *array)
{
  *array = kl_lower_array(l, copy->x);
  return kl_checked_pointer(l, array, &copy->indices, kl_check_of_expr(l, copy));
}

uint32_t kl_copied_bytes(kl_lowering *l, const kt_expr *copy)
{
  return kl_scalar_bytes(l, copy->y->type);
}

/* ---- tensor copies ---- */

bool kl_is_tensor_copy(const kt_expr *expr)
{
  return expr->kind == KJ_T_BUILTIN && (expr->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR ||
                                        expr->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE);
}

kj_tensor_map kl_describe_map(kl_lowering *l, const kt_expr *copy)
{
  bool is_store = copy->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE;
  const ki_type_info *tile = kl_type_info(l, is_store ? copy->y->type : copy->x->type);
  kj_tensor_map map = { .rank = (uint8_t)tile->rank,
                        .swizzle_bytes = (uint8_t)copy->args.items[0]->integer };
  for (uint32_t d = 0; d < tile->rank; d++) map.box[d] = (uint32_t)tile->extents[d];
  return map;
}

kl_tensor_copy kl_lower_tensor_copy(kl_lowering *l, const kt_expr *copy)
{
  bool is_store = copy->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE;
  kl_array_value to = kl_lower_array(l, copy->x),
                 from = kl_lower_array(l, is_store ? copy->y : copy->y->x);
  kl_tensor_copy lowered = { .array = is_store ? to : from,
                             .tile = is_store ? from : to,
                             .start = is_store ? &copy->indices : &copy->y->args,
                             .map = kl_describe_map(l, copy),
                             .is_store = is_store };
  if (!lowered.array.is_whole)
    kt_fail(l->c, copy->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` needs an array argument of the kernel itself, not a view; the copied tile can "
            "start at any element of the array",
            copy->builtin->name);
  lowered.map.argument = (uint16_t)(lowered.array.object - 1);
  return lowered;
}

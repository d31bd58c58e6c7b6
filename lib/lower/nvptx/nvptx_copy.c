/* nvptx: asynchronous copies, by cp_async and by tensor maps. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/builtins/tensor_copy.h"
#include "lower/nvptx/lower_nvptx.h"

static LLVMValueRef copy_effect(kl_lowering *l, const char *text, const char *constraints,
                                LLVMValueRef *args, unsigned count)
{
  kl_build_asm(l, &(kl_asm){ .text = text, .constraints = constraints, .result = l->void_ }, args,
               count);
  return NULL;
}

/* Returns the size in bytes of the valid elements. Their number, an operand of the copy, is clamped
 * to the range from 0 to the number of elements. */
static LLVMValueRef valid_bytes(kl_lowering *l, const kt_expr *expr, uint32_t size)
{
  LLVMValueRef valid = kl_lower_expr(l, expr->args.items[1]),
               count = kl_const64(l, (int64_t)expr->args.items[0]->integer);
  LLVMValueRef some =
    kl_intrinsic2(l, "llvm.smax", kl_intrinsic2(l, "llvm.smin", valid, count), kl_const64(l, 0));
  return kl_mul(l, kl_as_i32(l, some), kl_const32(l, size));
}

/* Lowers cp_async. Copies of 16 bytes bypass the L1 cache, where their data would displace other
 * data. */
LLVMValueRef kl_nvptx_cp_async(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value to, from;
  uint32_t size = kl_copied_bytes(l, expr), bytes = (uint32_t)expr->args.items[0]->integer * size;
  bool is_partial = expr->args.count > 1;
  LLVMValueRef destination = kl_lower_destination(l, expr, &to),
               source = kl_lower_source(l, expr, &from);
  LLVMValueRef args[3] = { kl_shared_window(l, destination), source };
  if (is_partial) args[2] = valid_bytes(l, expr, size);
  const char *text = kj_format(l->c->arena, "cp.async.%s.shared.global [$0], [$1], %u%s;",
                               bytes == 16 ? "cg" : "ca", bytes, is_partial ? ", $2" : "");
  return copy_effect(l, text, is_partial ? "r,l,r" : "r,l", args, 2 + is_partial);
}

static LLVMValueRef address_of(kl_lowering *l, LLVMValueRef pointer)
{
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  if (space == l->target->global_space) return pointer;
  LLVMTypeRef shared = LLVMPointerTypeInContext(l->context, l->target->shared_space);
  return kl_shared_window(l, space == l->target->shared_space
                               ? pointer
                               : kl_addrspacecast(l, pointer, shared));
}

LLVMValueRef kl_nvptx_cp_async_bulk(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value to, from;
  LLVMValueRef destination = kl_lower_destination(l, expr, &to),
               source = kl_lower_source(l, expr, &from);
  bool is_out = kl_type_info(l, to.type)->space == KJ_SPACE_GLOBAL,
       is_across = kl_type_info(l, from.type)->space == KJ_SPACE_SHARED && !is_out;
  LLVMValueRef bytes = kl_mul(l, kl_as_i32(l, kl_lower_expr(l, expr->args.items[0])),
                              kl_const32(l, kl_copied_bytes(l, expr)));
  LLVMValueRef args[4] = { address_of(l, destination), address_of(l, source), bytes };
  if (!is_out) args[3] = kl_trunc(l, kl_lower_expr(l, expr->args.items[1]), l->i32);
  if (is_out)
    return copy_effect(l, "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r",
                       args, 3);
  const char *text =
    kj_format(l->c->arena,
              "cp.async.bulk.shared::cluster.%s.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
              is_across ? "shared::cta" : "global");
  return copy_effect(l, text, is_across ? "r,r,r,r" : "r,l,r,r", args, 4);
}

/* ---- tensor copies ---- */

static LLVMValueRef find_map(kl_lowering *l, const kj_tensor_map *wanted)
{
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kl_planned_parameter *p = &l->parameters.items[i];
    if (p->parameter.kind == KJ_PARAMETER_TENSOR_MAP &&
        memcmp(&l->c->code->tensor_maps[p->parameter.dimension], wanted, sizeof *wanted) == 0)
      return p->value;
  }
  return NULL;
}

/* Returns a coordinate as an i32. A box that starts outside of the range of i32 is outside of the
 * array. The start of such a box is moved to just before the array or to the largest extent, so
 * that the box stays outside of the array. */
static LLVMValueRef lower_coordinate(kl_lowering *l, const kl_tensor_copy *copy, uint32_t d)
{
  const kt_expr *index = copy->start->items[d];
  bool is_small = index->is_narrow || index->type == KJIT_I32 ||
                  (index->kind == KJ_T_CONST && index->integer == (int32_t)index->integer);
  if (is_small) return kl_lower_index32(l, index);
  LLVMValueRef first = kl_const64(l, -(int64_t)copy->map.box[d]),
               end = kl_const64(l, KJ_MAP_MOST_EXTENT);
  LLVMValueRef at = kl_build_convert(l, index->type, KJIT_I64, kl_lower_expr(l, index));
  return kl_as_i32(l, kl_intrinsic2(l, "llvm.smax", kl_intrinsic2(l, "llvm.smin", at, end), first));
}

/* Lowers a tensor copy. PTX expects the coordinates with the innermost dimension first. */
LLVMValueRef kl_nvptx_cp_async_tensor(kl_lowering *l, const kt_expr *expr)
{
  kl_tensor_copy copy = kl_lower_tensor_copy(l, expr);
  LLVMValueRef args[3 + KJ_MAP_RANK], coordinates[KJ_MAP_RANK],
    map = find_map(l, &copy.map), tile = kl_shared_window(l, copy.tile.pointer);
  unsigned count = 0, rank = copy.map.rank, first = copy.is_store ? 1 : 2;
  const char *at = "", *constraints = copy.is_store ? "l" : "r,l";
  if (!copy.is_store) args[count++] = tile;
  args[count++] = map;
  for (unsigned d = 0; d < rank; d++) coordinates[d] = lower_coordinate(l, &copy, d);
  for (unsigned d = 0; d < rank; d++) {
    args[count++] = coordinates[rank - 1 - d];
    at = kj_format(l->c->arena, "%s%s$%u", at, d ? ", " : "", first + d);
    constraints = kj_format(l->c->arena, "%s,r", constraints);
  }
  args[count++] = copy.is_store ? tile : kl_trunc(l, kl_lower_expr(l, expr->args.items[1]), l->i32);
  constraints = kj_format(l->c->arena, "%s,r", constraints);
  const char *text =
    copy.is_store
      ? kj_format(l->c->arena,
                  "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group [$0, {%s}], [$%u];",
                  rank, at, count - 1)
      : kj_format(l->c->arena,
                  "cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::"
                  "bytes [$0], [$1, {%s}], [$%u];",
                  rank, at, count - 1);
  return copy_effect(l, text, constraints, args, count);
}

LLVMValueRef kl_nvptx_copy_group(kl_lowering *l, const kt_expr *expr)
{
  static const char *const texts[] = {
    [KJ_BUILTIN_CP_ASYNC_COMMIT] = "cp.async.commit_group;",
    [KJ_BUILTIN_CP_ASYNC_WAIT] = "cp.async.wait_group $0;",
    [KJ_BUILTIN_CP_ASYNC_BULK_COMMIT] = "cp.async.bulk.commit_group;",
    [KJ_BUILTIN_CP_ASYNC_BULK_WAIT] = "cp.async.bulk.wait_group $0;",
    [KJ_BUILTIN_CP_ASYNC_BULK_WAIT_READ] = "cp.async.bulk.wait_group.read $0;",
  };
  bool is_wait = expr->args.count > 0;
  LLVMValueRef count = is_wait ? kl_const32(l, (int64_t)expr->args.items[0]->integer) : NULL;
  return copy_effect(l, texts[expr->builtin->id], is_wait ? "n" : "", &count, is_wait);
}

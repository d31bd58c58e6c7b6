/* nvptx: asynchronous copies. */
#include "lower/group.h"
#include "lower/nvptx_asm.h"

#include <string.h>

static void effect(kj_lowering *l, const char *text, const char *constraints, LLVMValueRef *args,
                   unsigned count)
{
  kj_build_asm(l, &(kj_asm){ .text = text, .constraints = constraints, .result = l->void_ }, args,
               count);
}

/* Bytes of the elements before `valid`, none below 0 and no more than there are. */
static LLVMValueRef valid_bytes(kj_lowering *l, const kj_texpr *expr, uint32_t size)
{
  LLVMValueRef valid = kj_lower_expr(l, expr->args.items[1]),
               count = kj_const64(l, (int64_t)expr->args.items[0]->integer);
  LLVMValueRef some =
    kj_intrinsic2(l, "llvm.smax", kj_intrinsic2(l, "llvm.smin", valid, count), kj_const64(l, 0));
  return LLVMBuildMul(l->builder, kj_as_i32(l, some), kj_const32(l, size), "");
}

/* 16 bytes go past L1, which they would only crowd. */
static void copy(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value to, from;
  uint32_t size = kj_copied_bytes(l, expr), bytes = (uint32_t)expr->args.items[0]->integer * size;
  bool is_partial = expr->args.count > 1;
  LLVMValueRef source = kj_lower_source(l, expr, &from),
               destination = kj_lower_destination(l, expr, &to);
  LLVMValueRef args[3] = { kj_shared_window(l, destination), source };
  if (is_partial) args[2] = valid_bytes(l, expr, size);
  const char *text = kj_format(l->c->arena, "cp.async.%s.shared.global [$0], [$1], %u%s;",
                               bytes == 16 ? "cg" : "ca", bytes, is_partial ? ", $2" : "");
  effect(l, text, is_partial ? "r,l,r" : "r,l", args, 2 + is_partial);
}

static LLVMValueRef address_of(kj_lowering *l, LLVMValueRef pointer)
{
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  if (space == l->target->global_space) return pointer;
  LLVMTypeRef shared = LLVMPointerTypeInContext(l->context, l->target->shared_space);
  return kj_shared_window(l, space == l->target->shared_space
                               ? pointer
                               : LLVMBuildAddrSpaceCast(l->builder, pointer, shared, ""));
}

static void copy_bulk(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value to, from;
  LLVMValueRef source = kj_lower_source(l, expr, &from),
               destination = kj_lower_destination(l, expr, &to);
  bool is_out = kj_type(l->c->types, to.type)->space == KJ_SPACE_GLOBAL,
       is_across = kj_type(l->c->types, from.type)->space == KJ_SPACE_SHARED && !is_out;
  LLVMValueRef bytes = LLVMBuildMul(l->builder, kj_as_i32(l, kj_lower_expr(l, expr->args.items[0])),
                                    kj_const32(l, kj_copied_bytes(l, expr)), "");
  LLVMValueRef args[4] = { address_of(l, destination), address_of(l, source), bytes };
  if (!is_out)
    args[3] = LLVMBuildTrunc(l->builder, kj_lower_expr(l, expr->args.items[1]), l->i32, "");
  if (is_out)
    effect(l, "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r", args, 3);
  else if (is_across)
    effect(l,
           "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, "
           "[$3];",
           "r,r,r,r", args, 4);
  else
    effect(
      l, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
      "r,l,r,r", args, 4);
}

/* ---- tensor copies ---- */

static LLVMValueRef find_map(kj_lowering *l, const kj_tensor_map *wanted)
{
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kj_planned_parameter *p = &l->parameters.items[i];
    if (p->parameter.kind == KJ_PARAMETER_TENSOR_MAP &&
        memcmp(&l->tensor_maps.items[p->parameter.dimension], wanted, sizeof *wanted) == 0)
      return p->value;
  }
  return NULL;
}

/* Coordinates go from the innermost dimension out. */
static void copy_tensor(kj_lowering *l, const kj_texpr *expr)
{
  kj_tensor_copy copy = kj_lower_tensor_copy(l, expr);
  LLVMValueRef args[3 + KJ_MAP_RANK], map = find_map(l, &copy.map),
                                      tile = kj_shared_window(l, copy.tile.pointer);
  unsigned count = 0, rank = copy.map.rank, first = copy.is_store ? 1 : 2;
  const char *at = "", *constraints = copy.is_store ? "l" : "r,l";
  if (!copy.is_store) args[count++] = tile;
  args[count++] = map;
  for (unsigned d = 0; d < rank; d++) {
    args[count++] = kj_lower_index32(l, copy.start->items[rank - 1 - d]);
    at = kj_format(l->c->arena, "%s%s$%u", at, d ? ", " : "", first + d);
    constraints = kj_format(l->c->arena, "%s,r", constraints);
  }
  args[count++] = copy.is_store
                    ? tile
                    : LLVMBuildTrunc(l->builder, kj_lower_expr(l, expr->args.items[1]), l->i32, "");
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
  effect(l, text, constraints, args, count);
}

static void end_group(kj_lowering *l, const kj_texpr *expr)
{
  bool is_wait = expr->args.count > 0;
  LLVMValueRef count = is_wait ? kj_const32(l, (int64_t)expr->args.items[0]->integer) : NULL;
  effect(l, expr->builtin->symbol, is_wait ? "n" : "", &count, is_wait);
}

bool kj_nvptx_copy(kj_lowering *l, const kj_texpr *expr)
{
  switch (expr->builtin->id) {
  case KJ_BUILTIN_CP_ASYNC: copy(l, expr); return true;
  case KJ_BUILTIN_CP_ASYNC_BULK: copy_bulk(l, expr); return true;
  case KJ_BUILTIN_CP_ASYNC_TENSOR:
  case KJ_BUILTIN_CP_ASYNC_TENSOR_STORE: copy_tensor(l, expr); return true;
  case KJ_BUILTIN_CP_ASYNC_COMMIT:
  case KJ_BUILTIN_CP_ASYNC_WAIT:
  case KJ_BUILTIN_CP_ASYNC_BULK_COMMIT:
  case KJ_BUILTIN_CP_ASYNC_BULK_WAIT:
  case KJ_BUILTIN_CP_ASYNC_BULK_WAIT_READ: end_group(l, expr); return true;
  default: return false;
  }
}

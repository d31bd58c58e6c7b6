/* nvptx: matrix products of a warpgroup, sm_90a. The accumulators are registers that the
 * instruction goes on writing until wgmma_wait: each of these instructions takes all of them and
 * gives them back, so that nothing reads or moves one in between. */
#include <stdlib.h>
#include <string.h>

#include "lower/nvptx_asm.h"
#include "typing/wgmma.h"

enum { MOST_REGISTERS = 128 };

/* The local array in registers: elements, for f16 pairs of them. */
typedef struct accumulator {
  LLVMValueRef pointer;
  LLVMTypeRef type;
  unsigned count;
  char constraint;
} accumulator;

static accumulator find_accumulator(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = kj_lower_array(l, expr->x);
  const kj_type_info *info = kj_type(l->c->types, array.type);
  bool is_half = info->element == KJIT_F16, is_float = info->element == KJIT_F32;
  return (accumulator){ .pointer = array.pointer,
                        .type = is_float ? l->f32 : l->i32,
                        .count = (unsigned)info->extents[0] / (is_half ? 2 : 1),
                        .constraint = is_float ? 'f' : 'r' };
}

static LLVMValueRef element_at(kj_lowering *l, const accumulator *d, unsigned i)
{
  LLVMValueRef index = kj_const64(l, i);
  return LLVMBuildInBoundsGEP2(l->builder, d->type, d->pointer, &index, 1, "");
}

/* The instruction with the accumulators as operands 0 and on, in and out; then args, whose
 * constraints are given. */
static void run_with(kj_lowering *l, const accumulator *d, const char *text, const char *more,
                     LLVMValueRef *args, unsigned count)
{
  LLVMTypeRef types[MOST_REGISTERS];
  LLVMValueRef all[MOST_REGISTERS + 8];
  kj_buffer constraints = { 0 };
  for (unsigned i = 0; i < d->count; i++) {
    types[i] = d->type;
    all[i] = LLVMBuildLoad2(l->builder, d->type, element_at(l, d, i), "");
    LLVMSetAlignment(all[i], 4);
    kj_append_format(&constraints, "%s=%c", i ? "," : "", d->constraint);
  }
  for (unsigned i = 0; i < d->count; i++) kj_append_format(&constraints, ",%u", i);
  if (more[0]) kj_append_format(&constraints, ",%s", more);
  if (count) memcpy(all + d->count, args, count * sizeof *args);
  LLVMTypeRef result = LLVMStructTypeInContext(l->context, types, d->count, false);
  char *joined = kj_take_text(&constraints);
  if (!joined) longjmp(*l->c->on_failure, KJ_JUMP_MEMORY);
  const char *kept = kj_format(l->c->arena, "%s", joined);
  free(joined);
  LLVMValueRef value = kj_build_asm(
    l, &(kj_asm){ .text = text, .constraints = kept, .result = result, .is_convergent = true }, all,
    d->count + count);
  for (unsigned i = 0; i < d->count; i++)
    LLVMSetAlignment(LLVMBuildStore(l->builder, LLVMBuildExtractValue(l->builder, value, i, ""),
                                    element_at(l, d, i)),
                     4);
}

static const char *operands_text(kj_lowering *l, unsigned first, unsigned count)
{
  const char *text = "";
  for (unsigned i = 0; i < count; i++)
    text = kj_format(l->c->arena, "%s%s$%u", text, i ? ", " : "", first + i);
  return kj_format(l->c->arena, "{%s}", text);
}

static unsigned take_fragment(kj_lowering *l, LLVMValueRef fragment, LLVMValueRef *args)
{
  enum { REGISTERS = 4 };
  LLVMValueRef words =
    LLVMBuildBitCast(l->builder, fragment, LLVMVectorType(l->i32, REGISTERS), "");
  for (unsigned i = 0; i < REGISTERS; i++)
    args[i] = LLVMBuildExtractElement(l->builder, words, kj_const32(l, i), "");
  return REGISTERS;
}

/* Signs, and for elements of 16 bits which matrix is transposed. */
static const char *suffix_text(kj_lowering *l, const kj_wgmma *w)
{
  if (w->result == KJ_MMA_S32) return "";
  if (kj_mma_elements[w->operand].bits != 16) return ", 1, 1";
  int a = (w->transposed & KJ_WGMMA_TRANSPOSE_A) != 0,
      b = (w->transposed & KJ_WGMMA_TRANSPOSE_B) != 0;
  return w->has_fragment ? kj_format(l->c->arena, ", 1, 1, %d", b)
                         : kj_format(l->c->arena, ", 1, 1, %d, %d", a, b);
}

static void multiply(kj_lowering *l, const kj_texpr *expr)
{
  kj_wgmma w = kj_describe_wgmma(l->c->types, expr);
  accumulator d = find_accumulator(l, expr);
  LLVMValueRef args[8], a = kj_lower_expr(l, expr->args.items[0]);
  unsigned first = 2 * d.count, count = 0;
  if (w.has_fragment) count = take_fragment(l, a, args);
  else args[count++] = a;
  const char *a_text =
    w.has_fragment ? operands_text(l, first, count) : kj_format(l->c->arena, "$%u", first);
  args[count++] = kj_lower_expr(l, expr->args.items[1]);
  args[count++] = LLVMBuildZExt(l->builder, kj_lower_expr(l, expr->args.items[2]), l->i32, "");
  const char *kind = kj_mma_elements[w.operand].ptx, *result = kj_mma_elements[w.result].ptx;
  const char *text =
    kj_format(l->c->arena,
              "{ .reg .pred p; setp.ne.b32 p, $%u, 0; "
              "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s %s, %s, $%u, p%s; }",
              first + count - 1, w.n, w.k, result, kind, kind, operands_text(l, 0, d.count), a_text,
              first + count - 2, suffix_text(l, &w));
  run_with(l, &d, text, w.has_fragment ? "r,r,r,r,l,r" : "l,l,r", args, count);
}

static void end_group(kj_lowering *l, const kj_texpr *expr)
{
  accumulator d = find_accumulator(l, expr);
  bool is_fence = strcmp(expr->builtin->symbol, "fence") == 0;
  const char *text = is_fence ? "wgmma.fence.sync.aligned;"
                              : kj_format(l->c->arena, "wgmma.wait_group.sync.aligned %d;",
                                          (int)expr->args.items[0]->integer);
  run_with(l, &d, text, "", NULL, 0);
}

bool kj_nvptx_wgmma(kj_lowering *l, const kj_texpr *expr)
{
  kj_builtin_id id = expr->builtin->id;
  if (id >= KJ_BUILTIN_WGMMA_F16 && id <= KJ_BUILTIN_WGMMA_E5M2) multiply(l, expr);
  else if (id == KJ_BUILTIN_WGMMA_FENCE || id == KJ_BUILTIN_WGMMA_WAIT) end_group(l, expr);
  else if (id == KJ_BUILTIN_WGMMA_COMMIT)
    kj_build_asm(l,
                 &(kj_asm){ .text = "wgmma.commit_group.sync.aligned;",
                            .constraints = "",
                            .result = l->void_,
                            .is_convergent = true },
                 NULL, 0);
  else return false;
  return true;
}

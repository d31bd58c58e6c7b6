/* nvptx: matrix products of a warp and of a warpgroup. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"
#include "typing/mma.h"

/* ---- matrix products of a warp, and their fragments in registers and shared memory ---- */

enum { MOST_REGISTERS = 16 };

/* ---- fragments and registers ---- */

static LLVMTypeRef register_type(kl_lowering *l, char constraint)
{
  return constraint == 'f' ? l->f32 : constraint == 'd' ? l->f64 : l->i32;
}

static unsigned count_registers(kl_lowering *l, LLVMTypeRef fragment, char constraint)
{
  return kl_bits_of(l, fragment) / kl_bits_of(l, register_type(l, constraint));
}

/* Appends the registers that hold a fragment to args. */
static unsigned split(kl_lowering *l, LLVMValueRef fragment, char constraint, LLVMValueRef *args)
{
  LLVMTypeRef type = register_type(l, constraint);
  unsigned count = count_registers(l, LLVMTypeOf(fragment), constraint);
  LLVMValueRef all = kl_bitcast(l, fragment, count == 1 ? type : LLVMVectorType(type, count));
  for (unsigned i = 0; i < count; i++)
    args[i] = count == 1 ? all : kl_extract_element(l, all, kl_const32(l, i));
  return count;
}

/* Joins a result's registers to a fragment. LLVM returns one register directly, and several
 * registers in a struct. */
static LLVMValueRef join(kl_lowering *l, LLVMValueRef result, unsigned count, LLVMTypeRef fragment)
{
  if (count == 1) return kl_bitcast(l, result, fragment);
  LLVMTypeRef type = LLVMStructGetTypeAtIndex(LLVMTypeOf(result), 0);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(type, count));
  for (unsigned i = 0; i < count; i++)
    all = kl_insert_element(l, all, kl_extract_value(l, result, i), kl_const32(l, i));
  return kl_bitcast(l, all, fragment);
}

static LLVMTypeRef result_type(kl_lowering *l, char constraint, unsigned count)
{
  KJ_ASSERT(count >= 1 && count <= MOST_REGISTERS);
  LLVMTypeRef items[MOST_REGISTERS];
  for (unsigned i = 0; i < count; i++) items[i] = register_type(l, constraint);
  return count == 1 ? items[0] : LLVMStructTypeInContext(l->context, items, count, false);
}

/* Returns the text for a list of registers, for example "{$4, $5}", and appends their constraints,
 * each followed by a comma, for example "=f,=f,". */
static const char *registers_text(kl_lowering *l, unsigned *next, unsigned count)
{
  const char *text = "";
  for (unsigned i = 0; i < count; i++)
    text = kj_format(l->c->arena, "%s%s$%u", text, i ? ", " : "", (*next)++);
  return kj_format(l->c->arena, "{%s}", text);
}

static const char *constraints_text(kl_lowering *l, const char *before, const char *kind,
                                    char constraint, unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    before = kj_format(l->c->arena, "%s%s%s%c", before, before[0] ? "," : "", kind, constraint);
  return before;
}

/* ---- products ---- */

LLVMValueRef kl_nvptx_mma(kl_lowering *l, const kt_expr *expr)
{
  kj_arena *arena = l->c->arena;
  const kt_expr *const *operands = (const kt_expr *const *)expr->args.items;
  const kt_mma *mma = kt_find_mma(l->c->types, expr->builtin, operands[0]->type, operands[1]->type,
                                  operands[2]->type);
  const kt_mma_element *kinds[3] = { &kt_mma_elements[mma->a], &kt_mma_elements[mma->b],
                                     &kt_mma_elements[mma->c] };
  LLVMValueRef args[3 * MOST_REGISTERS];
  LLVMTypeRef fragment = kl_register_type(l, expr->type);
  unsigned results = count_registers(l, fragment, kinds[2]->constraint), count = 0, next = 0;
  const char *text = registers_text(l, &next, results),
             *constraints = constraints_text(l, "", "=", kinds[2]->constraint, results);
  for (int i = 0; i < 3; i++) {
    unsigned more = split(l, kl_lower_expr(l, operands[i]), kinds[i]->constraint, args + count);
    text = kj_format(arena, "%s, %s", text, registers_text(l, &next, more));
    constraints = constraints_text(l, constraints, "", kinds[i]->constraint, more);
    count += more;
  }
  bool is_bits = mma->a == KJ_MMA_B1;
  const char *clamp = mma->variant == KJ_MMA_SAT ? ".satfinite" : "",
             *operation = !is_bits                     ? ""
                          : mma->variant == KJ_MMA_AND ? ".and.popc"
                                                       : ".xor.popc";
  const char *c = kinds[2]->ptx;
  text = kj_format(arena, "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s %s;", mma->m, mma->n,
                   mma->k, clamp, c, kinds[0]->ptx, kinds[1]->ptx, c, operation, text);
  kl_asm code = { .text = text,
                  .constraints = constraints,
                  .result = result_type(l, kinds[2]->constraint, results),
                  .is_pure = true,
                  .is_convergent = true };
  return join(l, kl_build_asm(l, &code, args, count), results, fragment);
}

/* ---- fragments from and to shared memory ---- */

static const char *shape_text(kl_lowering *l, const kt_expr *expr)
{
  unsigned operation = expr->builtin->operation;
  return kj_format(l->c->arena, ".sync.aligned.m8n8.x%u%s.shared.b16", operation & KJ_MATRIX_COUNT,
                   operation & KJ_TRANSPOSED ? ".trans" : "");
}

LLVMValueRef kl_nvptx_ldmatrix(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count);
  unsigned count = expr->builtin->operation & KJ_MATRIX_COUNT, next = 0;
  LLVMValueRef address = kl_trunc(l, kl_lower_expr(l, expr->args.items[0]), l->i32);
  const char *registers = registers_text(l, &next, count),
             *constraints =
               constraints_text(l, constraints_text(l, "", "=", 'r', count), "", 'r', 1);
  const char *text =
    kj_format(l->c->arena, "ldmatrix%s %s, [$%u];", shape_text(l, expr), registers, count);
  LLVMValueRef result = kl_build_asm(l,
                                     &(kl_asm){ .text = text,
                                                .constraints = constraints,
                                                .result = result_type(l, 'r', count),
                                                .is_convergent = true },
                                     &address, 1);
  return join(l, result, count, kl_register_type(l, expr->type));
}

LLVMValueRef kl_nvptx_stmatrix(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef args[1 + MOST_REGISTERS] = { kl_trunc(l, kl_lower_expr(l, expr->args.items[0]),
                                                     l->i32) };
  unsigned count = split(l, kl_lower_expr(l, expr->args.items[1]), 'r', args + 1), next = 1;
  const char *text = kj_format(l->c->arena, "stmatrix%s [$0], %s;", shape_text(l, expr),
                               registers_text(l, &next, count));
  const char *constraints = constraints_text(l, "", "", 'r', 1 + count);
  kl_build_asm(l,
               &(kl_asm){ .text = text,
                          .constraints = constraints,
                          .result = l->void_,
                          .is_convergent = true },
               args, 1 + count);
  return NULL;
}

/* Matrix products of a warpgroup, sm_90a. The instruction writes the accumulator registers
 * asynchronously until wgmma_wait. So each product, and wgmma_wait, takes all accumulators as
 * inputs and returns all of them; LLVM can then neither read nor move an accumulator before
 * wgmma_wait. */

enum { MOST_WGMMA_REGISTERS = 128 };

/* A local array of accumulators in registers: single elements, or pairs of f16. */
typedef struct accumulator {
  LLVMValueRef pointer;
  LLVMTypeRef type;
  unsigned count;
  char constraint;
} accumulator;

static accumulator find_accumulator(kl_lowering *l, const kt_expr *expr)
{
  kl_array_value array = kl_lower_array(l, expr->x);
  const ki_type_info *info = kl_type_info(l, array.type);
  bool is_half = info->element == KJIT_F16, is_float = info->element == KJIT_F32;
  return (accumulator){ .pointer = array.pointer,
                        .type = is_float ? l->f32 : l->i32,
                        .count = (unsigned)info->extents[0] / (is_half ? 2 : 1),
                        .constraint = is_float ? 'f' : 'r' };
}

static LLVMValueRef element_at(kl_lowering *l, const accumulator *d, unsigned i)
{
  LLVMValueRef index = kl_const64(l, i);
  return kl_inbounds_gep(l, d->type, d->pointer, &index, 1);
}

/* Emits the instruction. The first operands of the instruction are the accumulators, as inputs and
 * outputs; args follow, with their constraints. */
static void run_with(kl_lowering *l, const accumulator *d, const char *text, const char *more,
                     LLVMValueRef *args, unsigned count)
{
  LLVMTypeRef types[MOST_WGMMA_REGISTERS];
  LLVMValueRef all[MOST_WGMMA_REGISTERS + 8];
  kj_buffer constraints = { 0 };
  for (unsigned i = 0; i < d->count; i++) {
    types[i] = d->type;
    all[i] = kl_load(l, d->type, element_at(l, d, i));
    LLVMSetAlignment(all[i], 4);
    kj_append_format(&constraints, "%s=%c", i ? "," : "", d->constraint);
  }
  for (unsigned i = 0; i < d->count; i++) kj_append_format(&constraints, ",%u", i);
  if (more[0]) kj_append_format(&constraints, ",%s", more);
  if (count) memcpy(all + d->count, args, count * sizeof *args);
  LLVMTypeRef result = LLVMStructTypeInContext(l->context, types, d->count, false);
  const char *kept = kj_keep_text(l->c->arena, &constraints);
  LLVMValueRef value = kl_build_asm(
    l, &(kl_asm){ .text = text, .constraints = kept, .result = result, .is_convergent = true }, all,
    d->count + count);
  for (unsigned i = 0; i < d->count; i++)
    LLVMSetAlignment(kl_store(l, kl_extract_value(l, value, i), element_at(l, d, i)), 4);
}

static const char *operands_text(kl_lowering *l, unsigned first, unsigned count)
{
  const char *text = "";
  for (unsigned i = 0; i < count; i++)
    text = kj_format(l->c->arena, "%s%s$%u", text, i ? ", " : "", first + i);
  return kj_format(l->c->arena, "{%s}", text);
}

static unsigned take_fragment(kl_lowering *l, LLVMValueRef fragment, LLVMValueRef *args)
{
  enum { REGISTERS = 4 };
  LLVMValueRef words = kl_bitcast(l, fragment, LLVMVectorType(l->i32, REGISTERS));
  for (unsigned i = 0; i < REGISTERS; i++) args[i] = kl_extract_element(l, words, kl_const32(l, i));
  return REGISTERS;
}

/* Returns the instruction's suffix: the signs and, for 16-bit elements, whether each matrix is
 * transposed. */
static const char *suffix_text(kl_lowering *l, const kt_wgmma *w)
{
  if (w->result == KJ_MMA_S32) return "";
  if (kt_mma_elements[w->operand].bits != 16) return ", 1, 1";
  int a = (w->transposed & KJ_WGMMA_TRANSPOSE_A) != 0,
      b = (w->transposed & KJ_WGMMA_TRANSPOSE_B) != 0;
  return w->has_fragment ? kj_format(l->c->arena, ", 1, 1, %d", b)
                         : kj_format(l->c->arena, ", 1, 1, %d, %d", a, b);
}

LLVMValueRef kl_nvptx_wgmma(kl_lowering *l, const kt_expr *expr)
{
  kt_wgmma w = kt_describe_wgmma(l->c->types, expr);
  accumulator d = find_accumulator(l, expr);
  LLVMValueRef args[8], a = kl_lower_expr(l, expr->args.items[0]);
  unsigned first = 2 * d.count, count = 0;
  if (w.has_fragment) count = take_fragment(l, a, args);
  else args[count++] = a;
  const char *a_text =
    w.has_fragment ? operands_text(l, first, count) : kj_format(l->c->arena, "$%u", first);
  args[count++] = kl_lower_expr(l, expr->args.items[1]);
  args[count++] = kl_zext(l, kl_lower_expr(l, expr->args.items[2]), l->i32);
  ((kl_nvptx_lowering *)l->target_state)->has_wgmma = true;
  const char *kind = kt_mma_elements[w.operand].ptx, *result = kt_mma_elements[w.result].ptx;
  const char *text =
    kj_format(l->c->arena,
              "{ .reg .pred p; setp.ne.b32 p, $%u, 0; "
              "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s %s, %s, $%u, p%s; }",
              first + count - 1, w.n, w.k, result, kind, kind, operands_text(l, 0, d.count), a_text,
              first + count - 2, suffix_text(l, &w));
  run_with(l, &d, text, w.has_fragment ? "r,r,r,r,l,r" : "l,l,r", args, count);
  return NULL;
}

LLVMValueRef kl_nvptx_wgmma_group(kl_lowering *l, const kt_expr *expr)
{
  accumulator d = find_accumulator(l, expr);
  bool is_fence = expr->builtin->id == KJ_BUILTIN_WGMMA_FENCE;
  const char *text = is_fence ? "wgmma.fence.sync.aligned;"
                              : kj_format(l->c->arena, "wgmma.wait_group.sync.aligned %d;",
                                          (int)expr->args.items[0]->integer);
  run_with(l, &d, text, "", NULL, 0);
  return NULL;
}

LLVMValueRef kl_nvptx_wgmma_commit(kl_lowering *l, const kt_expr *expr)
{
  (void)expr;
  return kl_build_asm(l,
                      &(kl_asm){ .text = "wgmma.commit_group.sync.aligned;",
                                 .constraints = "",
                                 .result = l->void_,
                                 .is_convergent = true },
                      NULL, 0);
}

/* nvptx: matrix products of a warp, and their fragments from and to shared memory. */
#include <string.h>

#include "lower/nvptx_asm.h"
#include "typing/mma.h"

enum { MOST_REGISTERS = 16 };

/* ---- fragments and registers ---- */

static LLVMTypeRef register_type(kj_lowering *l, char constraint)
{
  return constraint == 'f' ? l->f32 : constraint == 'd' ? l->f64 : l->i32;
}

static unsigned bits_of(kj_lowering *l, LLVMTypeRef type)
{
  return (unsigned)LLVMSizeOfTypeInBits(l->layout, type);
}

static unsigned count_registers(kj_lowering *l, LLVMTypeRef fragment, char constraint)
{
  return bits_of(l, fragment) / bits_of(l, register_type(l, constraint));
}

/* Appends the registers that hold a fragment to args. */
static unsigned split(kj_lowering *l, LLVMValueRef fragment, char constraint, LLVMValueRef *args)
{
  LLVMTypeRef type = register_type(l, constraint);
  unsigned count = count_registers(l, LLVMTypeOf(fragment), constraint);
  LLVMValueRef all =
    LLVMBuildBitCast(l->builder, fragment, count == 1 ? type : LLVMVectorType(type, count), "");
  for (unsigned i = 0; i < count; i++)
    args[i] = count == 1 ? all : LLVMBuildExtractElement(l->builder, all, kj_const32(l, i), "");
  return count;
}

/* The fragment in the registers of a result: one, or a struct of several. */
static LLVMValueRef join(kj_lowering *l, LLVMValueRef result, unsigned count, LLVMTypeRef fragment)
{
  if (count == 1) return LLVMBuildBitCast(l->builder, result, fragment, "");
  LLVMTypeRef type = LLVMStructGetTypeAtIndex(LLVMTypeOf(result), 0);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(type, count));
  for (unsigned i = 0; i < count; i++)
    all = LLVMBuildInsertElement(l->builder, all, LLVMBuildExtractValue(l->builder, result, i, ""),
                                 kj_const32(l, i), "");
  return LLVMBuildBitCast(l->builder, all, fragment, "");
}

static LLVMTypeRef result_type(kj_lowering *l, char constraint, unsigned count)
{
  LLVMTypeRef items[MOST_REGISTERS];
  for (unsigned i = 0; i < count; i++) items[i] = register_type(l, constraint);
  return count == 1 ? items[0] : LLVMStructTypeInContext(l->context, items, count, false);
}

/* "{$4, $5}", and its constraints appended with a comma: "=f,=f,". */
static const char *registers_text(kj_lowering *l, unsigned *next, unsigned count)
{
  const char *text = "";
  for (unsigned i = 0; i < count; i++)
    text = kj_format(l->c->arena, "%s%s$%u", text, i ? ", " : "", (*next)++);
  return kj_format(l->c->arena, "{%s}", text);
}

static const char *constraints_text(kj_lowering *l, const char *before, const char *kind,
                                    char constraint, unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    before = kj_format(l->c->arena, "%s%s%s%c", before, before[0] ? "," : "", kind, constraint);
  return before;
}

/* ---- products ---- */

static LLVMValueRef multiply(kj_lowering *l, const kj_texpr *expr)
{
  kj_arena *arena = l->c->arena;
  const kj_texpr *const *operands = (const kj_texpr *const *)expr->args.items;
  const kj_mma *mma = kj_find_mma(l->c->types, expr->builtin, operands[0]->type, operands[1]->type,
                                  operands[2]->type);
  const kj_mma_element *kinds[3] = { &kj_mma_elements[mma->a], &kj_mma_elements[mma->b],
                                     &kj_mma_elements[mma->c] };
  LLVMValueRef args[3 * MOST_REGISTERS];
  LLVMTypeRef fragment = kj_register_type(l, expr->type);
  unsigned results = count_registers(l, fragment, kinds[2]->constraint), count = 0, next = 0;
  const char *text = registers_text(l, &next, results),
             *constraints = constraints_text(l, "", "=", kinds[2]->constraint, results);
  for (int i = 0; i < 3; i++) {
    unsigned more = split(l, kj_lower_expr(l, operands[i]), kinds[i]->constraint, args + count);
    text = kj_format(arena, "%s, %s", text, registers_text(l, &next, more));
    constraints = constraints_text(l, constraints, "", kinds[i]->constraint, more);
    count += more;
  }
  bool is_bits = mma->a == KJ_MMA_B1;
  const char *clamp = strcmp(mma->variant, "sat") == 0 ? ".satfinite" : "",
             *operation = is_bits ? kj_format(arena, ".%s.popc", mma->variant) : "";
  const char *c = kinds[2]->ptx;
  text = kj_format(arena, "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s %s;", mma->m, mma->n,
                   mma->k, clamp, c, kinds[0]->ptx, kinds[1]->ptx, c, operation, text);
  kj_asm code = { .text = text,
                  .constraints = constraints,
                  .result = result_type(l, kinds[2]->constraint, results),
                  .is_pure = true,
                  .is_convergent = true };
  return join(l, kj_build_asm(l, &code, args, count), results, fragment);
}

/* ---- fragments from and to shared memory ---- */

static const char *shape_text(kj_lowering *l, const kj_texpr *expr)
{
  const char *symbol = expr->builtin->symbol;
  return kj_format(l->c->arena, ".sync.aligned.m8n8.x%c%s.shared.b16", symbol[0],
                   symbol[1] ? ".trans" : "");
}

static LLVMValueRef load_fragment(kj_lowering *l, const kj_texpr *expr)
{
  unsigned count = (unsigned)(expr->builtin->symbol[0] - '0'), next = 0;
  LLVMValueRef address =
    LLVMBuildTrunc(l->builder, kj_lower_expr(l, expr->args.items[0]), l->i32, "");
  const char *registers = registers_text(l, &next, count),
             *constraints =
               constraints_text(l, constraints_text(l, "", "=", 'r', count), "", 'r', 1);
  const char *text =
    kj_format(l->c->arena, "ldmatrix%s %s, [$%u];", shape_text(l, expr), registers, count);
  LLVMValueRef result = kj_build_asm(l,
                                     &(kj_asm){ .text = text,
                                                .constraints = constraints,
                                                .result = result_type(l, 'r', count),
                                                .is_convergent = true },
                                     &address, 1);
  return join(l, result, count, kj_register_type(l, expr->type));
}

static LLVMValueRef store_fragment(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef args[1 + MOST_REGISTERS] = {
    LLVMBuildTrunc(l->builder, kj_lower_expr(l, expr->args.items[0]), l->i32, "")
  };
  unsigned count = split(l, kj_lower_expr(l, expr->args.items[1]), 'r', args + 1), next = 1;
  const char *text = kj_format(l->c->arena, "stmatrix%s [$0], %s;", shape_text(l, expr),
                               registers_text(l, &next, count));
  const char *constraints = constraints_text(l, "", "", 'r', 1 + count);
  kj_build_asm(l,
               &(kj_asm){ .text = text,
                          .constraints = constraints,
                          .result = l->void_,
                          .is_convergent = true },
               args, 1 + count);
  return NULL;
}

bool kj_nvptx_matrix(kj_lowering *l, const kj_texpr *expr, LLVMValueRef *value)
{
  kj_builtin_id id = expr->builtin->id;
  if (id >= KJ_BUILTIN_MMA_M8N8K4 && id <= KJ_BUILTIN_MMA_M16N8K256_AND) *value = multiply(l, expr);
  else if (id >= KJ_BUILTIN_LDMATRIX_X1 && id <= KJ_BUILTIN_LDMATRIX_X4_TRANS)
    *value = load_fragment(l, expr);
  else if (id >= KJ_BUILTIN_STMATRIX_X1 && id <= KJ_BUILTIN_STMATRIX_X4_TRANS)
    *value = store_fragment(l, expr);
  else return false;
  return true;
}

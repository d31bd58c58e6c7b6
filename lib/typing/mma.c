#include "typing/mma.h"

#include <stdio.h>
#include <string.h>

const kj_mma_element kj_mma_elements[KJ_MMA_KIND_COUNT] = {
  [KJ_MMA_F16] = { "f16", KJIT_F16, 16, 'r' },   [KJ_MMA_BF16] = { "bf16", KJIT_BF16, 16, 'r' },
  [KJ_MMA_TF32] = { "tf32", KJIT_F32, 32, 'r' }, [KJ_MMA_F32] = { "f32", KJIT_F32, 32, 'f' },
  [KJ_MMA_F64] = { "f64", KJIT_F64, 64, 'd' },   [KJ_MMA_S8] = { "s8", KJIT_I8, 8, 'r' },
  [KJ_MMA_U8] = { "u8", KJIT_U8, 8, 'r' },       [KJ_MMA_S4] = { "s4", KJIT_I32, 4, 'r' },
  [KJ_MMA_U4] = { "u4", KJIT_U32, 4, 'r' },      [KJ_MMA_B1] = { "b1", KJIT_U32, 1, 'r' },
  [KJ_MMA_E4M3] = { "e4m3", KJIT_U8, 8, 'r' },   [KJ_MMA_E5M2] = { "e5m2", KJIT_U8, 8, 'r' },
  [KJ_MMA_S32] = { "s32", KJIT_I32, 32, 'r' },
};

static const kj_mma table[] = {
#define X(m, n, k, variant, a, b, c, arch, ptx) \
  { m, n, k, variant, KJ_MMA_##a, KJ_MMA_##b, KJ_MMA_##c, arch, ptx },
#include "typing/mma.def"
#undef X
};
enum { COUNT = sizeof table / sizeof *table, LANES = 32 };

static bool is_of(const kj_mma *row, const kj_builtin *builtin)
{
  char name[64];
  snprintf(name, sizeof name, "mma_m%un%uk%u%s%s", row->m, row->n, row->k,
           row->variant[0] ? "_" : "", row->variant);
  return strcmp(name, builtin->name) == 0;
}

const kj_mma *kj_get_mma(const kj_builtin *builtin, size_t i)
{
  for (size_t k = 0; k < COUNT; k++)
    if (is_of(&table[k], builtin) && i-- == 0) return &table[k];
  return NULL;
}

static uint32_t bits_of_type(kjit_type type)
{
  return type == KJIT_F64                        ? 64
         : type == KJIT_F16 || type == KJIT_BF16 ? 16
         : type == KJIT_I8 || type == KJIT_U8    ? 8
                                                 : 32;
}

uint32_t kj_count_fragment(kj_mma_kind kind, uint32_t count)
{
  const kj_mma_element *e = &kj_mma_elements[kind];
  return count * e->bits / (LANES * bits_of_type(e->type));
}

static bool is_fragment(const kj_types *types, kjit_type type, kj_mma_kind kind, uint32_t count)
{
  uint32_t lanes = kj_count_fragment(kind, count);
  const kj_type_info *info = kj_type(types, type);
  if (lanes == 1) return type == kj_mma_elements[kind].type;
  return info->class_ == KJ_CLASS_VECTOR && info->element == kj_mma_elements[kind].type &&
         info->count == lanes;
}

const kj_mma *kj_find_mma(const kj_types *types, const kj_builtin *builtin, kjit_type a,
                          kjit_type b, kjit_type c)
{
  const kj_mma *row;
  for (size_t i = 0; (row = kj_get_mma(builtin, i)); i++)
    if (is_fragment(types, a, row->a, row->m * row->k) &&
        is_fragment(types, b, row->b, row->k * row->n) &&
        is_fragment(types, c, row->c, row->m * row->n))
      return row;
  return NULL;
}

/* A register holds neighbours along k, a word of bits counts as one; registers go down the rows
 * first, where there are 16, then along k. */
kj_mma_place kj_place_operand(kj_mma_kind kind, uint32_t rows, uint32_t element)
{
  uint32_t bits = kj_mma_elements[kind].bits, packed = bits == 1 || bits >= 32 ? 1 : 32 / bits;
  uint32_t reg = element / packed, tall = rows == 16 ? 2 : 1;
  return (kj_mma_place){ .row = 8 * (reg % tall),
                         .column = element % packed + 4 * packed * (reg / tall),
                         .scale = packed };
}

kj_mma_place kj_place_result(uint32_t element)
{
  return (kj_mma_place){ .row = 8 * (element / 2), .column = element % 2, .scale = 2 };
}

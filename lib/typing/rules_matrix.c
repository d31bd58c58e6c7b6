/* Matrix products of a warp: the table of mma.def, the positions of fragment elements, and typing
 * rules. */
#include <string.h>

#include "typing/mma.h"
#include "typing/rules.h"

/* ---- mma ---- */

const kt_mma_element kt_mma_elements[KJ_MMA_KIND_COUNT] = {
  [KJ_MMA_F16] = { "f16", KJIT_F16, 16, 'r' },   [KJ_MMA_BF16] = { "bf16", KJIT_BF16, 16, 'r' },
  [KJ_MMA_TF32] = { "tf32", KJIT_F32, 32, 'r' }, [KJ_MMA_F32] = { "f32", KJIT_F32, 32, 'f' },
  [KJ_MMA_F64] = { "f64", KJIT_F64, 64, 'd' },   [KJ_MMA_S8] = { "s8", KJIT_I8, 8, 'r' },
  [KJ_MMA_U8] = { "u8", KJIT_U8, 8, 'r' },       [KJ_MMA_S4] = { "s4", KJIT_I32, 4, 'r' },
  [KJ_MMA_U4] = { "u4", KJIT_U32, 4, 'r' },      [KJ_MMA_B1] = { "b1", KJIT_U32, 1, 'r' },
  [KJ_MMA_E4M3] = { "e4m3", KJIT_U8, 8, 'r' },   [KJ_MMA_E5M2] = { "e5m2", KJIT_U8, 8, 'r' },
  [KJ_MMA_S32] = { "s32", KJIT_I32, 32, 'r' },
};

static const kt_mma table[] = {
#define X(id, m, n, k, variant, a, b, c, arch, ptx) \
  { KJ_BUILTIN_##id, m, n, k, KJ_MMA_##variant, KJ_MMA_##a, KJ_MMA_##b, KJ_MMA_##c, arch, ptx },
#include "typing/mma.def"
#undef X
};
enum { COUNT = sizeof table / sizeof *table };

const kt_mma *kt_get_mma(const ki_builtin *builtin, size_t i)
{
  for (size_t k = 0; k < COUNT; k++)
    if (table[k].builtin == builtin->id && i-- == 0) return &table[k];
  return NULL;
}

static uint32_t bits_of_type(kjit_type type)
{
  return type == KJIT_F64                        ? 64
         : type == KJIT_F16 || type == KJIT_BF16 ? 16
         : type == KJIT_I8 || type == KJIT_U8    ? 8
                                                 : 32;
}

uint32_t kt_count_fragment(ki_mma_kind kind, uint32_t count)
{
  const kt_mma_element *e = &kt_mma_elements[kind];
  return count * e->bits / (KJ_WARP_THREADS * bits_of_type(e->type));
}

static bool is_fragment(const ki_types *types, kjit_type type, ki_mma_kind kind, uint32_t count)
{
  uint32_t lanes = kt_count_fragment(kind, count);
  const ki_type_info *info = ki_type(types, type);
  if (lanes == 1) return type == kt_mma_elements[kind].type;
  return info->class_ == KJ_CLASS_VECTOR && info->element == kt_mma_elements[kind].type &&
         info->count == lanes;
}

const kt_mma *kt_find_mma(const ki_types *types, const ki_builtin *builtin, kjit_type a,
                          kjit_type b, kjit_type c)
{
  const kt_mma *row;
  for (size_t i = 0; (row = kt_get_mma(builtin, i)); i++)
    if (is_fragment(types, a, row->a, row->m * row->k) &&
        is_fragment(types, b, row->b, row->k * row->n) &&
        is_fragment(types, c, row->c, row->m * row->n))
      return row;
  return NULL;
}

/* Returns the position of an element of an operand fragment. A register holds elements that are
 * adjacent along k; a word of single bits is treated as one element. If a fragment has 16 rows,
 * consecutive registers first alternate between the two halves of the rows and then advance along
 * k. */
kt_mma_place kt_place_operand(ki_mma_kind kind, uint32_t rows, uint32_t element)
{
  uint32_t bits = kt_mma_elements[kind].bits, packed = bits == 1 || bits >= 32 ? 1 : 32 / bits;
  uint32_t reg = element / packed, tall = rows == 16 ? 2 : 1;
  return (kt_mma_place){ .row = 8 * (reg % tall),
                         .column = element % packed + 4 * packed * (reg / tall),
                         .scale = packed };
}

kt_mma_place kt_place_result(uint32_t element)
{
  return (kt_mma_place){ .row = 8 * (element / 2), .column = element % 2, .scale = 2 };
}

/* ---- typing rules of matrix products and of loading fragments ---- */

/* ---- products ---- */

static const char *fragment_text(kt_scope *s, ki_mma_kind kind, uint32_t count)
{
  const char *element = kt_type_text(s->c, kt_mma_elements[kind].type);
  uint32_t lanes = kt_count_fragment(kind, count);
  return lanes == 1 ? element : kj_format(s->arena, "%sx%u", element, lanes);
}

_Noreturn static void fail_fragments(kt_scope *s, const kt_operands *o, const kt_exprs *values)
{
  const char *all = "", *last = "";
  const kt_mma *row;
  for (size_t i = 0; (row = kt_get_mma(o->builtin, i)); i++) {
    const char *one = kj_format(s->arena, "(%s, %s, %s)", fragment_text(s, row->a, row->m * row->k),
                                fragment_text(s, row->b, row->k * row->n),
                                fragment_text(s, row->c, row->m * row->n));
    if (strcmp(one, last) != 0) all = kj_format(s->arena, "%s%s%s", all, all[0] ? ", " : "", one);
    last = one;
  }
  kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
          "the fragments of `%s` must have the types %s; got (%s, %s, %s)", o->builtin->name, all,
          kt_type_text(s->c, values->items[0]->type), kt_type_text(s->c, values->items[1]->type),
          kt_type_text(s->c, values->items[2]->type));
}

kt_expr *kt_rule_mma(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kt_make_concrete(s, o->values.items[i]));
  const kt_mma *mma = kt_find_mma(s->c->types, o->builtin, values.items[0]->type,
                                  values.items[1]->type, values.items[2]->type);
  if (!mma) fail_fragments(s, o, &values);
  const char *a = kt_mma_elements[mma->a].ptx, *c = kt_mma_elements[mma->c].ptx;
  kt_require_arch(s, kj_format(s->arena, "`%s` of %s with %s", o->builtin->name, a, c), o->location,
                  mma->arch, 0, mma->ptx);
  return kt_new_builtin_of(s, o, values, values.items[2]->type);
}

/* ---- fragments from and to shared memory ---- */

/* Returns the type of a thread's fragment, which has 4 bytes from each matrix. */
static kjit_type fragment_type(kt_scope *s, const kt_operands *o)
{
  kjit_type element = o->place.type;
  uint32_t size = ki_is_scalar(element) ? ki_type(s->c->types, element)->size_bytes : 0;
  bool is_transposed = o->builtin->operation & KJ_TRANSPOSED,
       fits = is_transposed ? size == 2 : size == 1 || size == 2 || size == 4;
  if (!fits || element == KJIT_BOOL)
    kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE, "`%s` needs elements of %s, got %s",
            o->builtin->name, is_transposed ? "16 bits" : "8, 16 or 32 bits",
            kt_type_text(s->c, element));
  uint32_t lanes = 4 * (o->builtin->operation & KJ_MATRIX_COUNT) / size;
  kjit_type type = lanes == 1 ? element : ki_intern_vector(s->c->types, element, lanes);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kt_expr *kt_rule_ldmatrix(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  kjit_type type = fragment_type(s, o);
  KJ_PUSH(s->arena, &values, kt_make_shared_address(s, o->builtin->name, &o->place));
  return kt_new_builtin_of(s, o, values, type);
}

kt_expr *kt_rule_stmatrix(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  kjit_type type = fragment_type(s, o);
  kt_expr *value = o->values.items[0];
  if (value->type != type)
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "the value that `%s` stores must have the type %s, got %s", o->builtin->name,
            kt_type_text(s->c, type), kt_type_text(s->c, value->type));
  KJ_PUSH(s->arena, &values, kt_make_shared_address(s, o->builtin->name, &o->place));
  KJ_PUSH(s->arena, &values, value);
  return kt_new_builtin_of(s, o, values, KJIT_VOID);
}

/* ---- products of a warpgroup ---- */

static uint32_t depth_of(ki_mma_kind kind) { return 256 / kt_mma_elements[kind].bits; }

kt_wgmma kt_describe_wgmma(const ki_types *types, const kt_expr *call)
{
  const ki_type_info *array = ki_type(types, call->x->type);
  ki_mma_kind kind = (ki_mma_kind)call->builtin->operation;
  ki_mma_kind result = array->element == KJIT_F32   ? KJ_MMA_F32
                       : array->element == KJIT_F16 ? KJ_MMA_F16
                                                    : KJ_MMA_S32;
  return (kt_wgmma){ .operand = kind,
                     .result = result,
                     .n = 2 * (uint32_t)array->extents[0],
                     .k = depth_of(kind),
                     .has_fragment = call->args.items[0]->type != KJIT_U64,
                     .transposed = call->dimension };
}

static const ki_type_info *take_accumulator(kt_scope *s, const kt_operands *o)
{
  const kt_expr *array = o->place.array;
  const ki_type_info *info = ki_type(s->c->types, array->type);
  bool is_own =
    array->kind == KJ_T_VAR && array->var->kind == KJ_V_LOCAL && info->rank == 1 && info->is_static;
  if (!is_own)
    kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE,
            "`%s` needs a one-dimensional local array that is declared in this function, `local d: "
            "f32[64]`; got %s",
            o->builtin->name, kt_type_text(s->c, array->type));
  return info;
}

/* Checks the number n of columns. The matrix has 64 x n elements, of which each thread holds n / 2.
 * The tables "Matrix Shape" of wgmma.mma_async in the PTX manual have the allowed values; integer
 * products have fewer shapes than float products. */
static void check_columns(kt_scope *s, const kt_operands *o, int64_t held, bool is_integer)
{
  enum { MOST = 128, STEP = 4, FEW = 12, INTEGER_STEP = 8 };
  bool is_shape = held >= STEP && held <= MOST && held % STEP == 0 &&
                  (!is_integer || held <= FEW || held % INTEGER_STEP == 0);
  if (!is_shape)
    kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE,
            "`%s` needs an array with n / 2 elements, where n is %s: got %lld elements",
            o->builtin->name,
            is_integer ? "8, 24 or a multiple of 16 up to 256" : "a multiple of 8 up to 256",
            (long long)held);
}

static void check_accumulator(kt_scope *s, const kt_operands *o, ki_mma_kind kind)
{
  const ki_type_info *info = take_accumulator(s, o);
  bool is_integer = kind == KJ_MMA_S8 || kind == KJ_MMA_U8,
       may_be_half = kind == KJ_MMA_F16 || kind == KJ_MMA_E4M3 || kind == KJ_MMA_E5M2;
  bool fits = is_integer ? info->element == KJIT_I32
                         : info->element == KJIT_F32 || (may_be_half && info->element == KJIT_F16);
  if (!fits)
    kt_fail(s->c, o->place.location, KJIT_ERROR_TYPE,
            "the accumulator of `%s` must have the type %s, not %s", o->builtin->name,
            is_integer    ? "i32"
            : may_be_half ? "f32 or f16"
                          : "f32",
            kt_type_text(s->c, info->element));
  check_columns(s, o, info->extents[0], is_integer);
}

static void check_operands(kt_scope *s, const kt_operands *o, ki_mma_kind kind, const kt_expr *a,
                           const kt_expr *b)
{
  const ki_type_info *info = ki_type(s->c->types, a->type);
  kjit_type element = kt_mma_elements[kind].type;
  bool is_fragment = info->class_ == KJ_CLASS_VECTOR && info->element == element &&
                     info->count == 16 / ki_type(s->c->types, element)->size_bytes;
  if (a->type != KJIT_U64 && !is_fragment)
    kt_fail(s->c, a->location, KJIT_ERROR_TYPE,
            "the first matrix of `%s` must be a matrix_descriptor (u64) or a fragment of 16 bytes "
            "of %s, got %s",
            o->builtin->name, kt_type_text(s->c, element), kt_type_text(s->c, a->type));
  if (b->type != KJIT_U64)
    kt_fail(s->c, b->location, KJIT_ERROR_TYPE,
            "the second matrix of `%s` must be a matrix_descriptor (u64), got %s", o->builtin->name,
            kt_type_text(s->c, b->type));
}

static bool take_flag(kt_scope *s, const kt_operands *o, size_t index)
{
  if (index >= o->values.count) return false;
  const kt_expr *flag = o->values.items[index];
  if (!kt_is_constant(flag) || (flag->type != KJIT_BOOL && !kt_is_integer(s->c, flag->type)))
    kt_fail(s->c, flag->location, KJIT_ERROR_TYPE,
            "whether a matrix is transposed must be known at compile time");
  return flag->integer != 0;
}

static kt_expr *apply_array(kt_scope *s, const kt_operands *o, kt_exprs values)
{
  kt_expr *expr = kt_new_builtin_of(s, o, values, KJIT_VOID);
  expr->x = o->place.array;
  return expr;
}

kt_expr *kt_rule_wgmma(kt_scope *s, const kt_operands *o)
{
  enum { TRANSPOSE_A = 3, TRANSPOSE_B };
  ki_mma_kind kind = (ki_mma_kind)o->builtin->operation;
  kt_expr *a = kt_make_concrete(s, o->values.items[0]),
          *b = kt_make_concrete(s, o->values.items[1]);
  check_accumulator(s, o, kind);
  check_operands(s, o, kind, a, b);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, a);
  KJ_PUSH(s->arena, &values, b);
  KJ_PUSH(s->arena, &values,
          o->values.count > 2 ? kt_make_condition(s, o->values.items[2])
                              : kt_new_integer(s, KJIT_BOOL, 1, o->location));
  kt_expr *expr = apply_array(s, o, values);
  bool is_a_transposed = take_flag(s, o, TRANSPOSE_A);
  if (is_a_transposed && a->type != KJIT_U64)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "a fragment in registers cannot be transposed; only a matrix in shared memory can");
  expr->dimension = (is_a_transposed ? KJ_WGMMA_TRANSPOSE_A : 0) |
                    (take_flag(s, o, TRANSPOSE_B) ? KJ_WGMMA_TRANSPOSE_B : 0);
  return expr;
}

kt_expr *kt_rule_wgmma_group(kt_scope *s, const kt_operands *o)
{
  enum { MOST_GROUPS = 7 };
  kt_exprs values = { 0 };
  take_accumulator(s, o);
  if (o->builtin->most == 1) return apply_array(s, o, values);
  KJ_PUSH(s->arena, &values, kt_take_group_count(s, o, MOST_GROUPS));
  return apply_array(s, o, values);
}

kt_expr *kt_rule_matrix_descriptor(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  kt_expr *swizzle = o->values.items[2];
  bool is_known = kt_is_constant(swizzle) && kt_is_integer(s->c, swizzle->type);
  if (!is_known || (swizzle->integer != 0 && swizzle->integer != 32 && swizzle->integer != 64 &&
                    swizzle->integer != 128))
    kt_fail(s->c, swizzle->location, KJIT_ERROR_TYPE,
            "the swizzle must be 0, 32, 64 or 128 bytes and known at compile time");
  KJ_PUSH(s->arena, &values, kt_make_shared_address(s, o->builtin->name, &o->place));
  for (size_t i = 0; i < 2; i++)
    KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[i], KJIT_I64));
  KJ_PUSH(s->arena, &values, kt_convert(s, swizzle, KJIT_I64, swizzle->location));
  return kt_new_builtin_of(s, o, values, KJIT_U64);
}

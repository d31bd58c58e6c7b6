/* kjit_einsum and kjit_matmul: parse the expression and check the call. */
#include <string.h>

#include "algorithm/einsum.h"
#include "ir/context.h"

typedef struct einsum_given {
  const kjit_operand *result;
  const char *expression;
  const kjit_operand *operands[KA_MOST_FACTORS];
  size_t count;
  bool is_matmul;
} einsum_given;

/* ---- the expression ---- */

typedef struct reader {
  ka_einsum *e;
  const char *at;
  uint64_t seen, repeated; /* the letters that occur in the operands, and the letters that occur
                              more than once, as sets */
  uint32_t ellipsis_rank;  /* maximum number of axes of an ellipsis in an operand */
} reader;

static uint32_t letter_of(char c)
{
  if (c >= 'A' && c <= 'Z') return (uint32_t)(c - 'A');
  if (c >= 'a' && c <= 'z') return (uint32_t)(c - 'a') + 26;
  return KA_LETTERS;
}

static const char *letter_text(const ka_einsum *e, uint32_t letter)
{
  if (letter >= KA_ELLIPSIS) return "...";
  char c = (char)(letter < 26 ? 'A' + letter : 'a' + letter - 26);
  return kj_format(&e->call->arena, "%c", c);
}

static void skip_blanks(reader *r)
{
  while (*r->at == ' ') r->at++;
}

_Noreturn static void fail_at(const reader *r, const char *what)
{
  ka_fail(r->e->call, KJIT_ERROR_ARGUMENT, "the expression \"%s\", character %zu: %s",
          r->e->expression, (size_t)(r->at - r->e->expression) + 1, what);
}

/* Reads letters up to a comma, an arrow or the end. Returns whether there is an ellipsis among the
 * letters, and stores the number of letters before it. */
static bool read_letters(reader *r, uint8_t *letters, uint32_t *count, uint32_t *ellipsis)
{
  bool has_ellipsis = false;
  *count = 0;
  for (skip_blanks(r); *r->at && *r->at != ',' && *r->at != '-'; skip_blanks(r)) {
    if (*r->at == '.') {
      if (strncmp(r->at, "...", 3) != 0) fail_at(r, "expected three dots");
      if (has_ellipsis) fail_at(r, "an operand can have only one ellipsis");
      has_ellipsis = true;
      *ellipsis = *count;
      r->at += 3;
      continue;
    }
    uint32_t letter = letter_of(*r->at);
    if (letter == KA_LETTERS)
      fail_at(r, "expected a letter of A to Z or a to z, '...', ',' or '->'");
    if (*count == KJ_MAX_RANK)
      fail_at(r, "an operand has more letters than an array can have axes");
    letters[(*count)++] = (uint8_t)letter;
    r->at++;
  }
  return has_ellipsis;
}

/* Inserts the axes of the ellipsis between the letters. */
static void insert_ellipsis(ka_factor *factor, const uint8_t *letters, uint32_t count,
                            uint32_t ellipsis, uint32_t axes)
{
  factor->rank = 0;
  for (uint32_t i = 0; i <= count; i++) {
    for (uint32_t k = 0; i == ellipsis && k < axes; k++)
      factor->letters[factor->rank++] = (uint8_t)(KA_LETTERS - axes + k);
    if (i < count) factor->letters[factor->rank++] = letters[i];
  }
}

static void read_factor(reader *r, ka_factor *factor)
{
  uint8_t letters[KJ_MAX_RANK];
  uint32_t count, ellipsis = 0, rank = factor->operand->rank;
  bool has_ellipsis = read_letters(r, letters, &count, &ellipsis);
  if (has_ellipsis ? count > rank : count != rank)
    ka_fail(r->e->call, KJIT_ERROR_ARGUMENT,
            "`%s` has %u %s, but the expression gives it %u letter%s%s", factor->operand->name,
            rank, rank == 1 ? "axis" : "axes", count, count == 1 ? "" : "s",
            has_ellipsis ? " in addition to the ellipsis" : "");
  insert_ellipsis(factor, letters, count, ellipsis, has_ellipsis ? rank - count : 0);
  if (rank - count > r->ellipsis_rank) r->ellipsis_rank = rank - count;
  for (uint32_t i = 0; i < rank; i++) {
    uint64_t bit = UINT64_C(1) << factor->letters[i];
    r->repeated |= r->seen & bit;
    r->seen |= bit;
  }
}

static void read_result(reader *r)
{
  uint8_t letters[KJ_MAX_RANK];
  uint32_t count, ellipsis = 0;
  uint64_t found = 0;
  bool has_ellipsis = read_letters(r, letters, &count, &ellipsis);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bit = UINT64_C(1) << letters[i];
    if (!(r->seen & bit) || found & bit)
      ka_fail(r->e->call, KJIT_ERROR_ARGUMENT, "the letter `%s` of the result %s",
              letter_text(r->e, letters[i]),
              found & bit ? "occurs twice" : "is not in any operand");
    found |= bit;
  }
  if (!has_ellipsis && r->ellipsis_rank)
    fail_at(r, "the result needs an ellipsis, because an operand has one");
  if (count + r->ellipsis_rank > KJ_MAX_RANK) fail_at(r, "the result has more than 8 axes");
  insert_ellipsis(&r->e->result, letters, count, ellipsis, r->ellipsis_rank);
}

/* Sets the result's letters if the expression has no arrow: first the ellipsis' axes, then the
 * letters that occur once, in alphabetical order. */
static void imply_result(reader *r)
{
  uint8_t letters[KJ_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < KA_ELLIPSIS; i++) {
    if (!((r->seen & ~r->repeated) >> i & 1)) continue;
    if (count + r->ellipsis_rank == KJ_MAX_RANK) fail_at(r, "the result has more than 8 axes");
    letters[count++] = (uint8_t)i;
  }
  insert_ellipsis(&r->e->result, letters, count, 0, r->ellipsis_rank);
}

static void read_expression(ka_einsum *e)
{
  reader r = { .e = e, .at = e->expression };
  for (size_t i = 0; i < e->count; i++) {
    if (i && *r.at != ',')
      ka_fail(e->call, KJIT_ERROR_ARGUMENT,
              "the expression \"%s\" has %zu operand%s, but the call has %zu", e->expression, i,
              i == 1 ? "" : "s", e->count);
    if (i) r.at++;
    read_factor(&r, &e->factors[i]);
  }
  if (*r.at == ',') fail_at(&r, "the expression has more operands than the call");
  if (!*r.at) {
    imply_result(&r);
    return;
  }
  if (r.at[1] != '>') fail_at(&r, "expected '->'");
  r.at += 2;
  read_result(&r);
  if (*r.at) fail_at(&r, "expected the end; an expression has one result");
}

/* ---- extents ---- */

/* Determines each letter's extent. An operand with extent 1 along a letter is broadcast, unless the
 * letter occurs in the same operand with another extent. */
static void take_extents(ka_einsum *e, uint32_t *owners)
{
  for (size_t i = 0; i < e->count; i++) {
    ka_factor *factor = &e->factors[i];
    for (uint32_t axis = 0; axis < factor->rank; axis++) {
      uint32_t letter = factor->letters[axis];
      int64_t extent = factor->operand->shape[axis];
      for (uint32_t k = 0; k < axis; k++)
        if (factor->letters[k] == letter && factor->operand->shape[k] != extent)
          ka_fail(e->call, KJIT_ERROR_ARGUMENT,
                  "`%s` has the extents %lld and %lld for the letter `%s`; they must be equal",
                  factor->operand->name, (long long)factor->operand->shape[k], (long long)extent,
                  letter_text(e, letter));
      if (extent == 1) continue;
      if (e->extents[letter] != 1 && e->extents[letter] != extent)
        ka_fail(e->call, KJIT_ERROR_ARGUMENT,
                "`%s` has the extent %lld for `%s`, but `%s` has %lld", factor->operand->name,
                (long long)extent, letter_text(e, letter), e->factors[owners[letter]].operand->name,
                (long long)e->extents[letter]);
      e->extents[letter] = extent;
      owners[letter] = (uint32_t)i;
      factor->mask |= UINT64_C(1) << letter;
    }
  }
}

uint64_t ka_count_letters(const ka_einsum *e, uint64_t mask)
{
  uint64_t count = 1;
  for (uint64_t left = mask; left; left &= left - 1)
    if (e->extents[__builtin_ctzll(left)] == 0) return 0;
  for (; mask; mask &= mask - 1)
    if (__builtin_mul_overflow(count, (uint64_t)e->extents[__builtin_ctzll(mask)], &count) ||
        count > (uint64_t)INT64_MAX / 32)
      ka_fail(e->call, KJIT_ERROR_ARGUMENT,
              "the expression \"%s\" computes 2^58 or more elements, which is too many",
              e->expression);
  return count;
}

/* ---- types ---- */

static void read_format(ka_einsum *e)
{
  uint32_t flags = e->call->options.flags & (KJIT_ALGORITHM_E4M3 | KJIT_ALGORITHM_E5M2);
  if (!flags) return;
  if (flags & (flags - 1))
    ka_fail(e->call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION(
              "flags") " can contain only one of KJIT_ALGORITHM_E4M3 and KJIT_ALGORITHM_E5M2");
  e->format = flags == KJIT_ALGORITHM_E4M3 ? KA_E4M3 : KA_E5M2;
  if (e->element != KJIT_U8)
    ka_fail(e->call, KJIT_ERROR_TYPE,
            "`%s` has elements of type %s, but %s values must be stored as u8",
            e->factors[0].operand->name, ka_type_text(e->call, e->element),
            e->format == KA_E4M3 ? "e4m3" : "e5m2");
}

static void read_types(ka_einsum *e)
{
  e->element = e->factors[0].operand->element;
  read_format(e);
  for (size_t i = 0; i < e->count; i++) {
    const ka_operand *x = e->factors[i].operand;
    if (!ki_is_scalar(x->element) || x->element == KJIT_BOOL)
      ka_fail(e->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, but a product needs numbers",
              x->name, ka_type_text(e->call, x->element));
    if (x->element != e->element)
      ka_fail(e->call, KJIT_ERROR_TYPE,
              "`%s` has elements of type %s, but `%s` has type %s; the operands of a product must "
              "have the same type",
              x->name, ka_type_text(e->call, x->element), e->factors[0].operand->name,
              ka_type_text(e->call, e->element));
  }
}

static kjit_type choose_accumulator(ka_einsum *e, kjit_type result)
{
  const kjit_operator add = kjit_operator_named("add");
  ka_operator operator_;
  ka_read_operator(e->call, &add, &operator_);
  if (e->call->options.accumulator == KJIT_BOOL)
    ka_fail(e->call, KJIT_ERROR_TYPE,
            KJ_OPTION("accumulator") " is bool, but a product needs a number type");
  if (ki_is_integral(e->call->options.accumulator) && !ki_is_integral(e->element))
    ka_fail(e->call, KJIT_ERROR_TYPE,
            KJ_OPTION(
              "accumulator") " is %s, but the products of operands with elements of type %s "
                             "are not integers",
            ka_type_text(e->call, e->call->options.accumulator), ka_type_text(e->call, e->element));
  /* products of FP8 elements are summed in f32, like those of f16 */
  return ka_accumulator(e->call, &operator_, e->format ? KJIT_F16 : e->element, result);
}

/* Chooses the accumulator type and returns the default element type of the result. If the call has
 * an epilogue, the type of a result array does not influence the accumulator type. */
static kjit_type choose_types(ka_einsum *e)
{
  if (!e->epilogue.function) return e->format ? KJIT_F32 : e->element;
  e->accumulator = choose_accumulator(e, KJIT_ANY);
  return ka_infer_epilogue(e, e->accumulator);
}

static void check_result_type(ka_einsum *e, kjit_type returned)
{
  const ka_operand *result = e->result.operand;
  bool has_epilogue = e->epilogue.function;
  if (!has_epilogue) e->accumulator = choose_accumulator(e, result->element);
  kjit_type stored = has_epilogue ? returned : e->accumulator;
  if (!result->function && !ka_converts(e->call, stored, result->element))
    ka_fail(e->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, but %s of type %s",
            result->name, ka_type_text(e->call, result->element),
            has_epilogue ? "the results of the epilogue are" : "the sums are",
            ka_type_text(e->call, stored));
}

/* ---- the call ---- */

static void read_operands(ka_einsum *e, const einsum_given *given)
{
  ka_operand *operands = KJ_NEW_ARRAY(&e->call->arena, ka_operand, given->count + 1);
  for (size_t i = 0; i < given->count; i++) {
    const char *name = given->is_matmul ? (i ? "y" : "x") : kj_format(&e->call->arena, "x%zu", i);
    ka_read_input(e->call, name, given->operands[i], &operands[i]);
    e->factors[i].operand = &operands[i];
  }
  e->count = given->count;
  e->result.operand = &operands[given->count];
}

/* Returns the einsum expression of a matrix product. Rejects operands whose summed axes have
 * different extents, because summed axes do not broadcast. */
static const char *matmul_expression(ka_einsum *e)
{
  const ka_operand *x = e->factors[0].operand, *y = e->factors[1].operand;
  const ka_operand *none = !x->rank ? x : y;
  if (!x->rank || !y->rank)
    ka_fail(e->call, KJIT_ERROR_ARGUMENT, "`%s` has no axes; a product needs at least one",
            none->name);
  int64_t across = x->shape[x->rank - 1], down = y->shape[y->rank > 1 ? y->rank - 2 : 0];
  if (across != down)
    ka_fail(e->call, KJIT_ERROR_ARGUMENT,
            "`y` has %lld rows, but `x` has %lld columns; both numbers must be equal",
            (long long)down, (long long)across);
  return kj_format(&e->call->arena, "%s,%s->...%s%s", x->rank > 1 ? "...ij" : "j",
                   y->rank > 1 ? "...jk" : "j", x->rank > 1 ? "i" : "", y->rank > 1 ? "k" : "");
}

static void check_result(const ka_einsum *e, const int64_t *shape)
{
  const ka_operand *result = e->result.operand;
  bool is_same = result->rank == e->result.rank;
  const char *text = "";
  for (uint32_t i = 0; i < e->result.rank; i++) {
    is_same = is_same && result->shape[i] == shape[i];
    text = kj_format(&e->call->arena, "%s%s%lld", text, i ? ", " : "", (long long)shape[i]);
  }
  if (!is_same) ka_fail(e->call, KJIT_ERROR_ARGUMENT, "`result` must have the shape (%s)", text);
  for (size_t i = 0; i < e->count; i++)
    ka_check_overlap(e->call, result, e->factors[i].operand, false);
  for (size_t i = 0; i < e->epilogue.count; i++)
    if (!e->epilogue.factors[i].operand->is_value)
      ka_check_overlap(e->call, result, e->epilogue.factors[i].operand, true);
}

/* Gives a zero-dimensional array one axis of extent 1. */
static void give_axis(ka_call *call, ka_operand *operand)
{
  const int64_t one = 1;
  if (!operand->rank && !operand->function && !operand->is_value)
    ka_view_operand(call, operand, &one, &one, 1);
}

static void build_einsum(ka_call *call, const void *data)
{
  const einsum_given *given = data;
  ka_einsum e = { .call = call, .expression = given->expression };
  uint32_t owners[KA_LETTERS] = { 0 };
  int64_t shape[KJ_MAX_RANK];
  if (!given->expression && !given->is_matmul)
    ka_fail(call, KJIT_ERROR_MISUSE, "expression is NULL");
  if (!given->count || given->count > KA_MOST_FACTORS)
    ka_fail(call, given->count ? KJIT_ERROR_UNSUPPORTED : KJIT_ERROR_ARGUMENT,
            "got %zu operands; the call takes 1 to %d", given->count, KA_MOST_FACTORS);
  for (uint32_t i = 0; i < KA_LETTERS; i++) e.extents[i] = 1;
  read_operands(&e, given);
  if (given->is_matmul) e.expression = matmul_expression(&e);
  read_expression(&e);
  take_extents(&e, owners);
  read_types(&e);
  for (uint32_t i = 0; i < e.result.rank; i++) {
    shape[i] = e.extents[e.result.letters[i]];
    e.result.mask |= UINT64_C(1) << e.result.letters[i];
  }
  (void)ka_count_letters(&e, e.result.mask);
  if (!call->options.results) ka_prefer_device(call, given->result, 1);
  ka_read_epilogue(&e);
  kjit_type type = choose_types(&e);
  if (ka_describe(call, 0, type, e.result.rank, shape)) return;
  ka_read_output(call, "result", given->result, e.result.operand);
  check_result(&e, shape);
  check_result_type(&e, type);
  ka_choose_device(call);
  if (!e.result.operand->count) return;
  for (size_t i = 0; i < e.count; i++) give_axis(call, e.factors[i].operand);
  for (size_t i = 0; i < e.epilogue.count; i++) give_axis(call, e.epilogue.factors[i].operand);
  give_axis(call, e.result.operand);
  ka_contract(&e);
}

_Static_assert((int)KA_MOST_FACTORS < (int)KA_MOST_INPUTS,
               "all operands and the result are in the key");

enum { taken = KA_ACCUMULATOR | KA_TF32 | KA_EPILOGUE | KA_FORMAT };

kjit_status kjit_einsum(kjit_context *context, const kjit_operand *result, const char *expression,
                        const kjit_operand *operands, size_t operand_count,
                        const kjit_algorithm_options *options)
{
  einsum_given given = { .result = result, .expression = expression, .count = operand_count };
  ka_inputs inputs = { .operands = { result }, .text = expression, .numbers = { operand_count } };
  for (size_t i = 0; operands && i < operand_count && i < KA_MOST_FACTORS; i++)
    inputs.operands[i + 1] = given.operands[i] = &operands[i];
  return ka_perform_kept(context, "kjit_einsum", taken, options, build_einsum, &given, &inputs);
}

kjit_status kjit_matmul(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                        const kjit_operand *y, const kjit_algorithm_options *options)
{
  const einsum_given given = {
    .result = result, .operands = { x, y }, .count = 2, .is_matmul = true
  };
  const ka_inputs inputs = { .operands = { result, x, y } };
  return ka_perform_kept(context, "kjit_matmul", taken, options, build_einsum, &given, &inputs);
}

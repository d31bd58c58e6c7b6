/* Reads options.epilogue, the func that is applied to each element of a product before it is
 * stored. The axes of the func's operands get the last letters of the result, so that kernels index
 * these operands like the product's factors. */
#include "algorithm/einsum.h"
#include "ir/context.h"

/* Assigns letters of the result to an operand's axes. Each extent of the operand must equal the
 * result's extent or be 1. */
static void fit_operand(ka_einsum *e, ka_factor *factor)
{
  const ka_factor *result = &e->result;
  const ka_operand *x = factor->operand;
  if (x->rank > result->rank)
    ka_fail(e->call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes, but the result has %u", x->name,
            x->rank, result->rank);
  factor->rank = x->rank;
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t letter = result->letters[result->rank - x->rank + i];
    factor->letters[i] = (uint8_t)letter;
    if (x->shape[i] == 1) continue;
    if (x->shape[i] != e->extents[letter])
      ka_fail(e->call, KJIT_ERROR_ARGUMENT,
              "`%s` has the extent %lld along axis %u of the result, which has %lld; it does not "
              "broadcast",
              x->name, (long long)x->shape[i], result->rank - x->rank + i,
              (long long)e->extents[letter]);
    factor->mask |= UINT64_C(1) << letter;
  }
}

/* Checks that the epilogue has one parameter for the sum and one for each operand. Trailing
 * parameters without an operand must have default values. */
static void check_parameters(const ka_einsum *e)
{
  const kjit_algorithm_options *o = &e->call->options;
  const ki_decl *decl = (const ki_decl *)o->epilogue;
  const ki_decls *params = &decl->function->params;
  size_t given = o->epilogue_operand_count, least = 0;
  if (decl->function->builtin) return;
  while (least < params->count && !params->items[least]->value) least++;
  if (given + 1 < least || given + 1 > params->count)
    ka_fail(e->call, KJIT_ERROR_ARGUMENT,
            "the epilogue `%s` has %zu parameter%s, but the call passes a sum and %zu operand%s",
            decl->name, (size_t)params->count, params->count == 1 ? "" : "s", given,
            given == 1 ? "" : "s");
}

void ka_read_epilogue(ka_einsum *e)
{
  ka_call *call = e->call;
  const kjit_algorithm_options *o = &call->options;
  ka_epilogue *epilogue = &e->epilogue;
  if (!o->epilogue) return;
  if (((const ki_decl *)o->epilogue)->function->module->context != call->context)
    ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("epilogue") " belongs to another context");
  if (o->epilogue_operand_count > KA_MOST_EXTRAS)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "the epilogue has %zu operands; the maximum is %d",
            o->epilogue_operand_count, KA_MOST_EXTRAS);
  check_parameters(e);
  epilogue->function = o->epilogue;
  epilogue->count = o->epilogue_operand_count;
  ka_operand *operands = KJ_NEW_ARRAY(&call->arena, ka_operand, epilogue->count + 1);
  for (size_t i = 0; i < epilogue->count; i++) {
    ka_read_argument(call, kj_format(&call->arena, "e%zu", i), &o->epilogue_operands[i],
                     &operands[i]);
    epilogue->factors[i].operand = &operands[i];
    fit_operand(e, &epilogue->factors[i]);
  }
}

kjit_type ka_infer_epilogue(ka_einsum *e, kjit_type sum)
{
  ka_call *call = e->call;
  ka_operand of_sum = { .name = "sum", .element = sum },
             *operands[KA_MOST_EXTRAS + 1] = { &of_sum };
  size_t count = e->epilogue.count;
  for (size_t i = 0; i < count; i++) operands[i + 1] = e->epilogue.factors[i].operand;
  ka_settle_numbers(call, operands, count + 1);
  kjit_type type = ka_infer_result(call, e->epilogue.function, operands, count + 1);
  if (type == KJIT_VOID || !ki_is_element(call->context->types, type))
    ka_fail(call, KJIT_ERROR_TYPE,
            "the epilogue must return a value that an array can hold; for sums of type %s it "
            "returns %s",
            ka_type_text(call, sum), type == KJIT_VOID ? "nothing" : ka_type_text(call, type));
  return type;
}

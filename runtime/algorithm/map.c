/* Implements kjit_map: checks the operands, infers the result types and adds the step. */
#include <string.h>

#include "algorithm/map.h"
#include "code/kernel.h"
#include "ir/context.h"

typedef struct mapping {
  const kjit_operand *results;
  size_t result_count;
  kjit_function *function;
  const kjit_operand *operands;
  size_t operand_count;
} mapping;

/* ---- funcs of elements ---- */

/* Returns the common type of the operands. An untyped number gets the type of the other operands if
 * this type can represent the number, like a Python number in NumPy. */
static kjit_type common_type(const ka_call *call, ka_operand *const *operands, size_t count,
                             bool is_integer)
{
  kjit_type best = KJIT_ANY;
  uint32_t most = 0;
  for (size_t i = 0; i < count; i++) {
    kjit_type type = operands[i]->element;
    if (!ki_is_scalar(type) || type == KJIT_BOOL) continue;
    if (type == KJIT_C64) type = KJIT_F32;
    if (type == KJIT_C128) type = KJIT_F64;
    uint32_t rank = kj_element_bytes(call->context->types, type);
    if (ki_is_floating(type)) rank += 16;
    else if (!is_integer) continue;
    if (rank <= most) continue;
    most = rank;
    best = type;
  }
  if (best != KJIT_ANY) return best;
  return is_integer ? KJIT_I64 : KJIT_F64;
}

void ka_settle_numbers(ka_call *call, ka_operand *const *operands, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    ka_operand *operand = operands[i];
    if (operand->element != KJIT_ANY) continue;
    kjit_arg *argument = &operand->arrays[0];
    ki_value value = kj_argument_number(argument), converted;
    kjit_type type = common_type(call, operands, count, value.type == KJ_WEAK_INT);
    if (!ki_fit_argument(value, type, &converted))
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              "`%s` is %s, which cannot be represented as %s, the type of the other operands",
              operand->name, ka_number_text(call, value), ka_type_text(call, type));
    operand->element = type;
    *argument = kjit_make_arg(KJIT_ARG_VALUE, type);
    ki_encode_value(converted, &argument->value.u);
  }
}

/* Wraps a built-in in a func, because result types can be inferred only for funcs. */
static kjit_function *wrap_builtin(ka_call *call, const char *name, size_t count,
                                   kjit_module **module)
{
  const char *list = "";
  kjit_function *wrapped = NULL;
  for (size_t i = 0; i < count; i++)
    list = kj_format(&call->arena, "%s%sa%zu", list, i ? ", " : "", i);
  const char *text =
    kj_format(&call->arena, "func wrapped(%s) { return %s(%s) }", list, name, list);
  ka_try(call, ki_parse_algorithm(call->context, text, strlen(text), NULL, 0, false, module));
  kjit_status status = kjit_get_function(*module, "wrapped", &wrapped);
  if (status != KJIT_OK) kjit_release_module(*module);
  ka_try(call, status);
  return wrapped;
}

static kjit_status infer(ka_call *call, kjit_function *function, ka_operand *const *operands,
                         size_t count, kj_diagnostics *diagnostics, kjit_type *type)
{
  const ki_decl *decl = (const ki_decl *)function;
  kjit_module *module = NULL;
  *type = KJIT_VOID;
  kjit_type *types = KJ_NEW_ARRAY(&call->arena, kjit_type, count + 1);
  for (size_t i = 0; i < count; i++) types[i] = operands[i]->element;
  ka_check_arity(call, function, count, KA_ELEMENTS);
  if (decl->function->builtin) function = wrap_builtin(call, decl->name, count, &module);
  kjit_status status =
    kj_find_result_type(function, ka_likely_device(call), types, count, diagnostics, type);
  if (module) kjit_release_module(module);
  return status;
}

static void finish_inference(ka_call *call, kjit_status status, kj_diagnostics *diagnostics)
{
  kjit_status reported = ki_finish_call(call->context, diagnostics);
  ka_try(call, status != KJIT_OK ? status : reported);
}

kjit_status ka_get_result_type(ka_call *call, kjit_function *function, const kjit_type *types,
                               size_t count, kjit_type *type)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_find_result_type(function, NULL, types, count, &diagnostics, type);
  kjit_status reported = ki_finish_call(call->context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

kjit_type ka_infer_result(ka_call *call, kjit_function *function, ka_operand *const *operands,
                          size_t count)
{
  kjit_type type;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = infer(call, function, operands, count, &diagnostics, &type);
  finish_inference(call, status, &diagnostics);
  return type;
}

bool ka_infer_of_values(ka_call *call, kjit_function *function, size_t count, kjit_type element,
                        kjit_type *type)
{
  ka_operand value = { .element = element }, *values[] = { &value, &value };
  KJ_ASSERT(count <= sizeof values / sizeof *values);
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = infer(call, function, values, count, &diagnostics, type);
  if (status == KJIT_ERROR_NO_COMPILER) {
    kj_free_diagnostics(&diagnostics); /* without a compiler the call continues, and the launch
                                          reports missing code */
    return false;
  }
  finish_inference(call, status, &diagnostics);
  return true;
}

/* ---- the types of the results ---- */

static ka_operand *const *list_operands(ka_map *map)
{
  ka_operand **list = KJ_NEW_ARRAY(&map->call->arena, ka_operand *, map->operand_count + 1);
  for (size_t i = 0; i < map->operand_count; i++) list[i] = &map->operands[i].operand;
  return list;
}

static void infer_results(ka_map *map)
{
  ka_call *call = map->call;
  kjit_type type = ka_infer_result(call, map->function, list_operands(map), ka_argument_count(map));
  const ki_type_info *info = ki_type(call->context->types, type);
  bool is_tuple = info->class_ == KJ_CLASS_TUPLE;
  size_t count = type == KJIT_VOID ? 0 : is_tuple ? info->count : 1;
  /* a call that asks for descriptions of its results need not give their number */
  if (call->options.results && count && count <= call->options.result_count)
    map->result_count = count;
  if (count != map->result_count)
    ka_fail(
      call, KJIT_ERROR_TYPE,
      "the function returns %s for these operands, which is %zu result%s, but the call has %zu",
      count ? ka_type_text(call, type) : "nothing", count, count == 1 ? "" : "s",
      map->result_count);
  map->result_types = KJ_NEW_ARRAY(&call->arena, kjit_type, count);
  for (size_t i = 0; i < count; i++) {
    map->result_types[i] = is_tuple ? info->items[i] : type;
    if (!ki_is_element(call->context->types, map->result_types[i]))
      ka_fail(call, KJIT_ERROR_TYPE,
              "result %zu of the function has the type %s, which an array cannot hold", i,
              ka_type_text(call, map->result_types[i]));
  }
}

bool ka_converts(const ka_call *call, kjit_type from, kjit_type to)
{
  const ki_type_info *source = ki_type(call->context->types, from),
                     *target = ki_type(call->context->types, to);
  if (from == to) return true;
  if (target->class_ == KJ_CLASS_VECTOR) {
    bool is_wide = source->class_ == KJ_CLASS_VECTOR;
    if (is_wide && source->count != target->count) return false;
    return ka_converts(call, is_wide ? source->element : from, target->element);
  }
  if (!ki_is_scalar(from) || !ki_is_scalar(to)) return false;
  if (source->class_ == KJ_CLASS_COMPLEX) return target->class_ == KJ_CLASS_COMPLEX;
  bool is_number = target->class_ == KJ_CLASS_FLOAT || target->class_ == KJ_CLASS_COMPLEX;
  return source->class_ != KJ_CLASS_FLOAT || is_number;
}

void ka_check_stored(ka_call *call, const ka_operand *result, kjit_type computed)
{
  bool is_asked_for = call->options.accumulator != KJIT_ANY;
  if (result->function || is_asked_for || ka_converts(call, computed, result->element)) return;
  ka_fail(
    call, KJIT_ERROR_TYPE,
    "`%s` has elements of type %s, but the computed values, of type %s, cannot be converted to it",
    result->name, ka_type_text(call, result->element), ka_type_text(call, computed));
}

static void check_types(ka_map *map)
{
  for (size_t i = 0; i < map->result_count && map->result_types; i++) {
    const ka_operand *result = &map->results[i].operand;
    if (result->function || ka_converts(map->call, map->result_types[i], result->element)) continue;
    ka_fail(map->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, but the function returns %s",
            result->name, ka_type_text(map->call, result->element),
            ka_type_text(map->call, map->result_types[i]));
  }
}

/* ---- operands ---- */

static void read_operands(ka_map *map, const mapping *given)
{
  ka_call *call = map->call;
  const kjit_operand *where = call->options.where;
  if (given->operand_count && !given->operands)
    ka_fail(call, KJIT_ERROR_MISUSE, "operands is NULL");
  map->operand_count = given->operand_count + (where ? 1 : 0);
  map->operands = KJ_NEW_ARRAY(&call->arena, ka_mapped, map->operand_count + 1);
  for (size_t i = 0; i < given->operand_count; i++)
    ka_read_argument(call, kj_format(&call->arena, "x%zu", i), &given->operands[i],
                     &map->operands[i].operand);
  if (!where) return;
  if (map->has_signature)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            KJ_OPTION("where") " cannot be combined with " KJ_OPTION("signature"));
  map->where = &map->operands[given->operand_count];
  ka_read_argument(call, "where", where, &map->where->operand);
  if (map->where->operand.element != KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`where` has elements of type %s; expected bool",
            map->where->operand.element == KJIT_ANY
              ? "a number"
              : ka_type_text(call, map->where->operand.element));
}

static void read_results(ka_map *map, const mapping *given)
{
  ka_call *call = map->call;
  if (!given->results) ka_fail(call, KJIT_ERROR_MISUSE, "results is NULL");
  for (size_t i = 0; i < map->result_count; i++) {
    ka_operand *result = &map->results[i].operand;
    ka_read_output(call, kj_format(&call->arena, "r%zu", i), &given->results[i], result);
  }
}

static void check_places(ka_map *map)
{
  for (size_t i = 0; i < map->result_count; i++) {
    for (size_t j = 0; j < i; j++)
      ka_check_overlap(map->call, &map->results[i].operand, &map->results[j].operand, false);
    for (size_t j = 0; j < map->operand_count; j++)
      if (!map->operands[j].operand.is_value)
        ka_check_overlap(map->call, &map->results[i].operand, &map->operands[j].operand,
                         !map->has_signature && !map->is_outer);
  }
}

static bool describe_results(ka_map *map)
{
  if (!map->call->options.results) return false;
  for (size_t i = 0; i < map->result_count; i++) {
    int64_t shape[KJ_MAX_RANK];
    uint32_t rank = ka_result_shape(map, i, shape);
    (void)ka_describe(map->call, i, map->result_types ? map->result_types[i] : KJIT_ANY, rank,
                      shape);
  }
  return true;
}

static void build_map(ka_call *call, const void *data)
{
  const mapping *given = data;
  ka_map map = { .call = call, .function = given->function, .result_count = given->result_count };
  map.has_signature = call->options.signature != NULL;
  map.is_outer = (call->options.flags & KJIT_ALGORITHM_OUTER) != 0;
  if (map.is_outer && map.has_signature)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "KJIT_ALGORITHM_OUTER cannot be combined with " KJ_OPTION(
              "signature") ", with which the other dimensions broadcast");
  if (!given->function) ka_fail(call, KJIT_ERROR_MISUSE, "function is NULL");
  if (((const ki_decl *)given->function)->function->module->context != call->context)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "function belongs to another context");
  if (!given->result_count && !call->options.results)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "the number of results is 0");
  size_t asked = call->options.results ? call->options.result_count : 0;
  map.results =
    KJ_NEW_ARRAY(&call->arena, ka_mapped, asked > map.result_count ? asked : map.result_count);
  read_operands(&map, given);
  if (map.has_signature) ka_read_signature(&map, call->options.signature);
  ka_settle_numbers(call, list_operands(&map), ka_argument_count(&map));
  ka_broadcast(&map);
  if (!call->options.results) ka_prefer_device(call, given->results, given->result_count);
  if (!map.has_signature) infer_results(&map);
  if (describe_results(&map)) return;
  read_results(&map, given);
  check_types(&map);
  check_places(&map);
  ka_fit_results(&map);
  ka_find_loops(&map);
  ka_choose_device(call);
  for (uint32_t i = 0; i < map.loop_count; i++)
    if (!map.extents[i]) return;
  ka_launch_map(&map);
}

kjit_status kjit_map(kjit_context *context, const kjit_operand *results, size_t result_count,
                     kjit_function *function, const kjit_operand *operands, size_t operand_count,
                     const kjit_algorithm_options *options)
{
  const mapping given = { results, result_count, function, operands, operand_count };
  ka_inputs inputs = { .function = function, .numbers = { result_count, operand_count } };
  bool is_kept = results && operands && result_count < KA_MOST_INPUTS &&
                 operand_count < KA_MOST_INPUTS && result_count + operand_count <= KA_MOST_INPUTS;
  for (size_t i = 0; is_kept && i < result_count; i++) inputs.operands[i] = &results[i];
  for (size_t i = 0; is_kept && i < operand_count; i++)
    inputs.operands[result_count + i] = &operands[i];
  return ka_perform_kept(context, "kjit_map", KA_OUTER | KA_WHERE | KA_SIGNATURE, options,
                         build_map, &given, is_kept ? &inputs : NULL);
}

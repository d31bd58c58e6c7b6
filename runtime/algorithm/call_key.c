/* Computes a call's key, which contains everything that determines the steps of the call. The key
 * consists of the public function, its options, its funcs (by identity) and its values. For each
 * array it contains the device, element type, shape, strides and the low bits of the address. The
 * key also contains which arrays overlap. kept_call.c repeats the steps of an earlier call with the
 * same key, so every property that an algorithm examines must be in the key. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "algorithm/kept_call.h"

enum { ALIGNMENT = 64 /* a power of two; no family requires a larger alignment */ };

static void put(ka_key *key, uint64_t word)
{
  if (key->count == KA_KEY_WORDS) key->is_complete = false;
  else key->words[key->count++] = word;
}

static void put_pointer(ka_key *key, const void *pointer)
{
  put(key, (uint64_t)(uintptr_t)pointer);
}

static void put_extents(ka_key *key, const int64_t *extents, uint32_t rank)
{
  for (uint32_t i = 0; i < rank; i++) put(key, (uint64_t)extents[i]);
}

static void put_text(ka_key *key, const char *text)
{
  size_t length = text ? strlen(text) : 0;
  put(key, text ? length + 1 : 0);
  for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, text + i, length - i < sizeof word ? length - i : sizeof word);
    put(key, word);
  }
}

/* adds the kind, access and element type of an argument */
static void put_head(ka_key *key, const kjit_arg *argument)
{
  put(key, argument->kind | (uint64_t)argument->access << 8 | (uint64_t)argument->type << 32);
}

static void put_array(ka_call *call, ka_key *key, const kjit_arg *argument)
{
  kj_view view;
  kj_diagnostics diagnostics = { 0 };
  bool is_own = argument->kind == KJIT_ARG_ARRAY;
  const kjit_array *array = is_own ? argument->value.array : NULL;
  /* if the array is not valid, this status remains: the steps are not kept, and build reports the
   * error */
  kjit_status status = KJIT_ERROR_MISUSE;
  if (is_own && array && array->object.device->context == call->context)
    status = kj_view_array(array, "", &diagnostics, &view);
  if (!is_own && argument->value.tensor)
    status = kj_view_tensor(call->context->types, argument->value.tensor, argument->type, "",
                            &diagnostics, &view);
  kj_free_diagnostics(&diagnostics);
  if (status != KJIT_OK || key->array_count == KA_KEY_ARRAYS) {
    key->is_complete = false;
    return;
  }
  put_pointer(key, is_own ? array->object.device : NULL);
  if (is_own)
    put(key, array->is_read_only | array->is_in_place << 1 | (uint64_t)array->memory << 2);
  put(key, (uint64_t)view.kind | (uint64_t)(uint32_t)view.ordinal << 32);
  put(key, view.element | (uint64_t)view.rank << 32);
  put(key, view.address % ALIGNMENT);
  put_extents(key, view.shape, view.rank);
  put_extents(key, view.strides, view.rank);
  ka_array_input *input = &key->arrays[key->array_count++];
  *input = (ka_array_input){ .argument = *argument, .address = view.address };
  kj_view_range(&view, &input->low, &input->high);
}

static void put_function(ka_call *call, ka_key *key, kjit_function *function)
{
  const ki_decl *decl = (const ki_decl *)function;
  put_pointer(key, function);
  if (!function) return;
  if (decl->function->module->context != call->context || key->function_count == KA_KEY_FUNCTIONS)
    key->is_complete = false;
  else key->functions[key->function_count++] = function;
}

/* Adds an argument to the key. If the argument is a value passed by address, or has a kind that no
 * operand accepts, the key is incomplete, so kjit does not keep the steps of the call. */
static void put_argument(ka_call *call, ka_key *key, const kjit_arg *argument)
{
  put_head(key, argument);
  switch (KJ_AMONG(argument->kind)) {
  case KJIT_ARG_ARRAY:
  case KJIT_ARG_TENSOR: put_array(call, key, argument); break;
  case KJIT_ARG_FUNCTION: put_function(call, key, argument->value.function); break;
  case KJIT_ARG_VALUE:
  case KJIT_ARG_NUMBER: put(key, argument->value.u); break;
  default: key->is_complete = false;
  }
}

static void put_operand(ka_call *call, ka_key *key, const kjit_operand *given)
{
  put(key, given != NULL);
  if (!given) return;
  put_argument(call, key, &given->argument);
  bool is_wrong = given->rank > KJ_MAX_RANK || (given->array_count && !given->arrays) ||
                  (given->rank && !given->shape);
  key->is_complete = key->is_complete && !is_wrong;
  if (!key->is_complete) return;
  put(key, (given->arrays != NULL) | (given->shape != NULL) << 1 | (uint64_t)given->rank << 32);
  put(key, given->array_count);
  put_extents(key, given->shape, given->rank);
  for (size_t i = 0; i < given->array_count && key->is_complete; i++)
    put_argument(call, key, &given->arrays[i]);
}

/* Adds three bits for each pair of arrays, which tell whether the arrays overlap, begin at the same
 * address, and are the same object. */
static void put_relations(ka_key *key)
{
  uint64_t word = 1;
  for (size_t i = 0; i < key->array_count; i++)
    for (size_t j = 0; j < i; j++) {
      const ka_array_input *a = &key->arrays[i], *b = &key->arrays[j];
      bool do_overlap = a->low < b->high && b->low < a->high;
      if (word >> 60) {
        put(key, word);
        word = 1;
      }
      word = word << 3 | (uint64_t)do_overlap << 2 | (uint64_t)(a->address == b->address) << 1 |
             ka_is_same_array(&a->argument, &b->argument);
    }
  put(key, word);
}

bool ka_make_key(ka_call *call, ka_build *build, const ka_inputs *inputs, ka_key *key)
{
  const kjit_algorithm_options *o = &call->options;
  key->count = key->array_count = key->function_count = 0;
  key->is_complete = !o->plan && !o->work_bytes && !o->work && !o->results;
  if (!key->is_complete) return false;
  put(key, (uint64_t)(uintptr_t)build);
  put_text(key, call->name);
  put_pointer(key, call->device);
  put(key, o->accumulator | (uint64_t)o->flags << 32);
  put(key, o->begin_bit | (uint64_t)o->end_bit << 32);
  put(key, o->axis_count | (uint64_t)(o->axes != NULL) << 32);
  for (uint32_t i = 0; o->axes && i < o->axis_count && key->is_complete; i++)
    put(key, (uint64_t)(int64_t)o->axes[i]);
  put(key, o->initial != NULL);
  if (o->initial) put_argument(call, key, o->initial);
  put_text(key, o->signature);
  put_operand(call, key, o->where);
  put_function(call, key, o->epilogue);
  put(key, o->epilogue_operand_count);
  for (size_t i = 0; i < o->epilogue_operand_count && key->is_complete; i++)
    put_operand(call, key, o->epilogue_operands ? &o->epilogue_operands[i] : NULL);
  for (size_t i = 0; i < KA_MOST_NUMBERS; i++) put(key, inputs->numbers[i]);
  put(key, inputs->operator_ != NULL);
  if (inputs->operator_) {
    put(key, (uint64_t)inputs->operator_->commutes);
    put_text(key, inputs->operator_->name);
    put_function(call, key, inputs->operator_->function);
  }
  put_function(call, key, inputs->function);
  put_text(key, inputs->text);
  for (size_t i = 0; i < KA_MOST_INPUTS && key->is_complete; i++)
    put_operand(call, key, inputs->operands[i]);
  put_relations(key);
  key->hash = XXH3_64bits(key->words, key->count * sizeof *key->words);
  return key->is_complete;
}

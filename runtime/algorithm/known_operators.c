/* The table of built-in operators (add, mul, min ...), checks of user-defined operators, and the
 * rule for the accumulator type of a reduction. */
#include <string.h>

#include "algorithm/algorithm.h"
#include "code/kernel.h"
#include "ir/context.h"
#include "ir/number.h"

typedef enum operand_kind { NUMBERS, ORDERED, INTEGERS, FLOATS } operand_kind;

/* The built-in operators. is_widened means that integers of fewer than 64 bits are combined in 64
 * bits, as by NumPy's add and multiply. */
static const struct {
  const char *name;
  operand_kind kind;
  bool has_identity, is_widened;
} rows[] = {
  { "add", NUMBERS, true, true },    { "mul", NUMBERS, true, true },
  { "min", ORDERED, false, false },  { "max", ORDERED, false, false },
  { "fmin", ORDERED, false, false }, { "fmax", ORDERED, false, false },
  { "and", INTEGERS, true, false },  { "or", INTEGERS, true, false },
  { "xor", INTEGERS, true, false },  { "logaddexp", FLOATS, true, false },
};
enum { ROWS = sizeof rows / sizeof *rows };

const char *kjit_get_operator_name(size_t index)
{
  return index < ROWS ? rows[index].name : ka_get_reduction_name(index - ROWS);
}

static const char *list_names(ka_call *call, size_t end)
{
  const char *list = "", *name;
  for (size_t i = 0; i < end && (name = kjit_get_operator_name(i)) != NULL; i++)
    list = kj_format(&call->arena, "%s%s%s", list, i ? ", " : "", name);
  return list;
}

static void read_operator(ka_call *call, const kjit_operator *given, bool may_be_reduction,
                          ka_operator *operator_)
{
  if (!given || (!given->name && !given->function))
    ka_fail(call, KJIT_ERROR_MISUSE, "the operator has neither a name nor a function");
  if (given->name && given->function)
    ka_fail(call, KJIT_ERROR_MISUSE,
            "the operator has both a name and a function; set only one of them");
  if (!given->name) {
    const ki_decl *decl = kj_function_of(given->function);
    const ki_attributes *attributes = &decl->function->attributes;
    *operator_ = (ka_operator){ .function = given->function,
                                .commutes = given->commutes ||
                                            ki_get_attribute(attributes, KJ_ATTRIBUTE_COMMUTES),
                                .has_identity = ki_find_identity(decl->function) != NULL };
    if (decl->function->module->context != call->context)
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              "the operator is a function that belongs to another context");
    ka_check_arity(call, given->function, 2, "two values");
    return;
  }
  for (size_t i = 0; i < ROWS; i++) {
    if (strcmp(rows[i].name, given->name)) continue;
    *operator_ = (ka_operator){
      .name = rows[i].name, .row = i, .has_identity = rows[i].has_identity, .commutes = true
    };
    return;
  }
  const char *known = list_names(call, may_be_reduction ? SIZE_MAX : ROWS);
  if (ka_find_reduction(given))
    ka_fail(call, KJIT_ERROR_NAME,
            "operator `%s` of two values does not exist; use %s, or a function", given->name,
            known);
  ka_fail(call, KJIT_ERROR_NAME, "operator `%s` does not exist; use %s", given->name, known);
}

void ka_read_operator(ka_call *call, const kjit_operator *given, ka_operator *operator_)
{
  read_operator(call, given, false, operator_);
}

const ka_reduction *ka_read_reduction(ka_call *call, const kjit_operator *given,
                                      ka_operator *operator_)
{
  const ka_reduction *reduction = ka_find_reduction(given);
  if (!reduction) read_operator(call, given, true, operator_);
  return reduction;
}

bool ka_is_integer(const ka_call *call, kjit_type type)
{
  ki_type_class class_ = ki_type(call->context->types, type)->class_;
  return class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED || class_ == KJ_CLASS_BOOL;
}

static bool takes(const ka_call *call, operand_kind kind, kjit_type element)
{
  ki_type_class class_ = ki_type(call->context->types, element)->class_;
  bool is_integer = ka_is_integer(call, element);
  bool is_ordered = is_integer || class_ == KJ_CLASS_FLOAT;
  switch (kind) {
  case INTEGERS: return is_integer;
  case FLOATS: return class_ == KJ_CLASS_FLOAT;
  case ORDERED: return is_ordered;
  case NUMBERS: return is_ordered || class_ == KJ_CLASS_COMPLEX || class_ == KJ_CLASS_VECTOR;
  }
  return false;
}

static kjit_type widen(const ka_call *call, kjit_type element)
{
  switch (ki_type(call->context->types, element)->class_) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED: return KJIT_I64;
  case KJ_CLASS_UNSIGNED: return KJIT_U64;
  default: return element;
  }
}

/* Reads the initial value as a number that can be compared with the range of a type. */
static bool read_initial(const kjit_arg *initial, ki_value *value)
{
  if (initial->kind == KJIT_ARG_NUMBER) *value = kj_argument_number(initial);
  if (initial->kind == KJIT_ARG_NUMBER) return true;
  bool is_value = initial->kind == KJIT_ARG_VALUE || initial->kind == KJIT_ARG_BY_ADDRESS;
  return is_value && ki_is_integral(initial->type) &&
         ki_decode_value(initial->type,
                         initial->kind == KJIT_ARG_VALUE ? (const void *)&initial->value
                                                         : initial->value.address,
                         value);
}

/* Checks that the initial value can be combined with values of the accumulator type. */
static void check_initial(ka_call *call, kjit_type accumulator)
{
  const kjit_arg *initial = call->options.initial;
  kjit_type type = initial->type;
  if (initial->kind == KJIT_ARG_NUMBER)
    type = kj_argument_number(initial).type == KJ_WEAK_INT ? KJIT_I64 : KJIT_F64;
  if (!ka_converts(call, type, accumulator))
    ka_fail(call, KJIT_ERROR_TYPE,
            KJ_OPTION("initial") ", %s, cannot be converted to the type of the computation, %s",
            initial->kind == KJIT_ARG_NUMBER ? "a number" : ka_type_text(call, type),
            ka_type_text(call, accumulator));
  ki_value value, fitted;
  kj_buffer text = { 0 };
  if (!ki_is_integral(accumulator) || !read_initial(initial, &value) ||
      ki_fit_argument(value, accumulator, &fitted))
    return;
  ki_print_value(value, false, &text);
  ka_fail(call, KJIT_ERROR_ARGUMENT,
          KJ_OPTION(
            "initial") " is %s, which cannot be represented as %s, the type of the computation",
          kj_keep_text(&call->arena, &text), ka_type_text(call, accumulator));
}

/* Returns whether a value can be converted to the accumulator type, as in a store: a float can
 * become an integer, but a complex number can only become a complex number. */
static bool becomes(const ka_call *call, kjit_type type, kjit_type accumulator)
{
  bool is_complex = ki_type(call->context->types, type)->class_ == KJ_CLASS_COMPLEX;
  if (!ki_is_scalar(accumulator) || is_complex) return ka_converts(call, type, accumulator);
  return ki_is_scalar(type);
}

static void check_identity(ka_call *call, const ki_decl *decl, kjit_type accumulator)
{
  const ki_decl *identity = ki_find_identity(decl->function);
  kjit_type type;
  if (!identity || !ka_infer_of_values(call, (kjit_function *)identity, 1, accumulator, &type))
    return;
  if (!becomes(call, type, accumulator))
    ka_fail_at(call, identity, KJIT_ERROR_TYPE,
               "`%s`, the identity of the operator `%s`, returns %s for a value of type %s; it "
               "must return a value of that type",
               identity->name, decl->name, type == KJIT_VOID ? "nothing" : ka_type_text(call, type),
               ka_type_text(call, accumulator));
}

/* Describes the last successful check of a func: the type of the values, a number from 1 to 3 for
 * the kind of check, and the target, because the type that the func returns can depend on the
 * target. */
enum { OF_VALUES = 1, DECIDES = 2, OF_BOOLS = 3 };
static uint64_t describe_use(ka_call *call, kjit_type type, unsigned question)
{
  enum { TYPE_AT = 2, TARGET_AT = 34 };
  uint64_t target = ka_likely_device(call)->info.compute_capability; /* 0 for a CPU */
  return target << TARGET_AT | (uint64_t)type << TYPE_AT | question;
}

/* Checks that a user's func, applied to two values of a type, returns this type or a type that
 * converts to it. Rejects a comparison: its result would become 0 or 1, and programs rarely intend
 * to compare such results again. */
static void check_combined(ka_call *call, const ka_operator *operator_, kjit_type element,
                           kjit_type accumulator)
{
  const ki_decl *decl = kj_function_of(operator_->function);
  if (decl->function->builtin || decl->function->is_extern) return;
  kjit_kernel *known = kj_get_kernel_object(decl->function->module, decl->index);
  bool is_bool = element == KJIT_BOOL;
  uint64_t types = describe_use(call, accumulator, is_bool ? OF_BOOLS : OF_VALUES);
  if (!known) ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
  if (atomic_load_explicit(&known->combines, memory_order_relaxed) == types) return;
  kjit_type type;
  if (!ka_infer_of_values(call, operator_->function, 2, accumulator, &type)) return;
  const char *made = ka_type_text(call, type), *combined = ka_type_text(call, accumulator);
  if (type == KJIT_BOOL && accumulator != KJIT_BOOL && !is_bool)
    ka_fail_at(call, decl, KJIT_ERROR_TYPE,
               "operator `%s` returns bool for two values of type %s, like a comparison, but must "
               "return the combined value; to combine to 0 or 1, return %s(...)",
               decl->name, combined, combined);
  if (!becomes(call, type, accumulator))
    ka_fail_at(call, decl, KJIT_ERROR_TYPE,
               "operator `%s` returns %s for two values of type %s, but must return the combined "
               "value, which has that type",
               decl->name, type == KJIT_VOID ? "nothing" : made, combined);
  check_identity(call, decl, accumulator);
  atomic_store_explicit(&known->combines, types, memory_order_relaxed);
}

void ka_check_decides(ka_call *call, const kjit_function *function, kjit_type element,
                      const char *meaning)
{
  const ki_decl *decl = kj_function_of(function);
  if (decl->function->builtin || decl->function->is_extern) return;
  kjit_kernel *known = kj_get_kernel_object(decl->function->module, decl->index);
  uint64_t types = describe_use(call, element, DECIDES);
  if (!known) ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
  if (atomic_load_explicit(&known->combines, memory_order_relaxed) == types) return;
  kjit_type type;
  if (!ka_infer_of_values(call, (kjit_function *)decl, 2, element, &type)) return;
  if (type != KJIT_BOOL)
    ka_fail_at(call, decl, KJIT_ERROR_TYPE,
               "`%s` returns %s for two values of type %s; expected %s", decl->name,
               type == KJIT_VOID ? "nothing" : ka_type_text(call, type),
               ka_type_text(call, element), meaning);
  atomic_store_explicit(&known->combines, types, memory_order_relaxed);
}

static kjit_type choose_accumulator(ka_call *call, const ka_operator *operator_, kjit_type element,
                                    kjit_type result)
{
  kjit_type given = call->options.accumulator, type = element;
  if (operator_->name && !takes(call, rows[operator_->row].kind, element))
    ka_fail(call, KJIT_ERROR_TYPE, "the operator `%s` is not defined for elements of type %s",
            operator_->name, ka_type_text(call, element));
  if (given != KJIT_ANY) {
    if (given != element && !(ki_is_scalar(given) && ki_is_scalar(element)))
      ka_fail(call, KJIT_ERROR_TYPE,
              KJ_OPTION("accumulator") ": %s does not consist of elements of type %s",
              ka_type_text(call, given), ka_type_text(call, element));
    return given;
  }
  bool is_widened = operator_->name && rows[operator_->row].is_widened;
  if (is_widened) type = widen(call, element);
  /* 64 bits are not needed, because the low bits of a 64-bit sum or product are the sum or product
   * in the narrower result type */
  if (is_widened && ki_is_integral(type) && ki_is_integral(result)) return result;
  if (operator_->name && (type == KJIT_F16 || type == KJIT_BF16)) type = KJIT_F32;
  if (!operator_->name && element != result && ki_is_scalar(element) && ki_is_scalar(result))
    return result;
  /* floats are combined in f64 if the result array has f64 elements */
  bool is_wider = ki_is_floating(type) && result == KJIT_F64;
  return is_wider ? result : type;
}

kjit_type ka_accumulator(ka_call *call, const ka_operator *operator_, kjit_type element,
                         kjit_type result)
{
  kjit_type type = choose_accumulator(call, operator_, element, result);
  if (operator_->function) check_combined(call, operator_, element, type);
  if (call->options.initial) check_initial(call, type);
  return type;
}

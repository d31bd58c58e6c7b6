/* Named reductions that are more than an operator. Such a reduction converts each element before it
 * is combined, and computes the result from the combined value. The two conversions are funcs in
 * the kernel's source:
 *
 *     struct reduce_f32 { value: f32; index: i32 }
 *     func prepared(i0, load: func) @inline { return reduce_f32(load(i0), i32(i0)) }
 *     func finished(i, v, store: func, n) @inline { store(i, v.index) } */
#include <string.h>

#include "algorithm/algorithm.h"
#include "ir/context.h"

/* Element types that a reduction accepts. TRUTHS accepts any numbers. ORDERED accepts integers and
 * floats. MEANS accepts any numbers; as in NumPy, integers are converted to f64, and f16 and bf16
 * to f32. SPREADS is like MEANS without complex numbers. */
typedef enum element_kind { TRUTHS, ORDERED, MEANS, SPREADS } element_kind;
typedef enum value_kind { PLAIN, FOUND, MOMENTS } value_kind;

struct ka_reduction {
  const char *name;
  element_kind elements;
  value_kind values;
  kjit_type computed, result; /* KJIT_ANY means that the element type decides */
  const char *operator_;      /* name of a func in lib/library/operators.kir */
  const char *element;        /* expression of the converted element; its parameter is `x` */
  const char *finished;       /* expression of the result; its parameters are `v` and `n` */
  const char *empty;          /* result for 0 elements, or NULL if it is undefined */
};

static const ka_reduction rows[] = {
  { "any", TRUTHS, PLAIN, KJIT_BOOL, KJIT_BOOL, "operator_or", "x != zero(dtype(x))", "v",
    "false" },
  { "all", TRUTHS, PLAIN, KJIT_BOOL, KJIT_BOOL, "operator_and", "x != zero(dtype(x))", "v",
    "true" },
  { "count_nonzero", TRUTHS, PLAIN, KJIT_I64, KJIT_I64, "operator_add", "i64(x != zero(dtype(x)))",
    "v", "0i64" },
  { "argmin", ORDERED, FOUND, KJIT_ANY, KJIT_I64, "operator_argmin", NULL, "i64(v.index)", NULL },
  { "argmax", ORDERED, FOUND, KJIT_ANY, KJIT_I64, "operator_argmax", NULL, "i64(v.index)", NULL },
  { "mean", MEANS, PLAIN, KJIT_ANY, KJIT_ANY, "operator_add", "x", "(zero(dtype(v)) + v) / n",
    "nan" }, /* a sum starts with 0.0, as in NumPy */
  { "var", SPREADS, MOMENTS, KJIT_ANY, KJIT_ANY, "operator_moments", NULL, "v.squares / n", "nan" },
  { "std", SPREADS, MOMENTS, KJIT_ANY, KJIT_ANY, "operator_moments", NULL, "sqrt(v.squares / n)",
    "nan" },
};
enum { ROWS = sizeof rows / sizeof *rows };

const char *ka_get_reduction_name(size_t index) { return index < ROWS ? rows[index].name : NULL; }

const ka_reduction *ka_find_reduction(const kjit_operator *given)
{
  for (size_t i = 0; given && given->name && !given->function && i < ROWS; i++)
    if (strcmp(rows[i].name, given->name) == 0) return &rows[i];
  return NULL;
}

static bool is_of(const ka_reduction *r, ki_type_class class_)
{
  bool is_number = class_ == KJ_CLASS_BOOL || class_ == KJ_CLASS_SIGNED ||
                   class_ == KJ_CLASS_UNSIGNED || class_ == KJ_CLASS_FLOAT;
  bool takes_complex = r->elements == TRUTHS || r->elements == MEANS;
  return is_number || (takes_complex && class_ == KJ_CLASS_COMPLEX);
}

kjit_type ka_reduction_value(ka_call *call, const ka_reduction *r, kjit_type element)
{
  ki_type_class class_ = ki_type(call->context->types, element)->class_;
  kjit_type given = call->options.accumulator;
  if (!is_of(r, class_))
    ka_fail(call, KJIT_ERROR_TYPE, "`%s` is not defined for elements of type %s", r->name,
            ka_type_text(call, element));
  if (call->options.initial)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` takes no initial value; " KJ_OPTION("initial") " must be NULL", r->name);
  bool averages = r->elements == MEANS || r->elements == SPREADS;
  if (given != KJIT_ANY) {
    ki_type_class computed = ki_type(call->context->types, given)->class_;
    bool is_fit = averages && computed == (class_ == KJ_CLASS_COMPLEX ? class_ : KJ_CLASS_FLOAT);
    if (!is_fit)
      ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("accumulator") ": `%s` cannot be computed in %s",
              r->name, ka_type_text(call, given));
    return given;
  }
  if (r->elements == TRUTHS) return element;
  if (r->elements == ORDERED) return element == KJIT_BOOL ? KJIT_U8 : element;
  if (class_ != KJ_CLASS_FLOAT && class_ != KJ_CLASS_COMPLEX) return KJIT_F64;
  return element == KJIT_F16 || element == KJIT_BF16 ? KJIT_F32 : element;
}

kjit_type ka_reduction_result(const ka_call *call, const ka_reduction *r, kjit_type element,
                              kjit_type value)
{
  bool is_half = element == KJIT_F16 || element == KJIT_BF16;
  if (r->result != KJIT_ANY) return r->result;
  return is_half && call->options.accumulator == KJIT_ANY ? element : value;
}

kjit_type ka_reduction_computed(const ka_reduction *r, kjit_type value)
{
  return r->values != PLAIN ? KJIT_ANY : r->computed == KJIT_ANY ? value : r->computed;
}

uint32_t ka_reduction_bytes(const ka_call *call, const ka_reduction *r, kjit_type value)
{
  uint32_t bytes = kj_element_bytes(call->context->types, value), index = call->is_wide ? 8 : 4;
  switch (r->values) {
  case FOUND: return 2 * (bytes > index ? bytes : index);
  case MOMENTS: return 3 * bytes;
  case PLAIN: break;
  }
  return kj_element_bytes(call->context->types, ka_reduction_computed(r, value));
}

const char *ka_reduction_operator(const ka_reduction *r) { return r->operator_; }

const char *ka_reduction_empty(ka_call *call, const ka_reduction *r, const char *operand)
{
  if (!r->empty)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has no elements, so `%s` is undefined", operand,
            r->name);
  return r->empty;
}

bool ka_finds_place(const ka_reduction *r) { return r->values == FOUND; }

static const char *name_struct(ka_call *call, kjit_type value)
{
  return kj_format(&call->arena, "reduce_%s", ka_type_text(call, value));
}

const char *ka_reduction_type(ka_call *call, const ka_reduction *r, kjit_type value)
{
  if (r->values != PLAIN) return name_struct(call, value);
  return ka_type_text(call, ka_reduction_computed(r, value));
}

const char *ka_declare_reduced(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                               const char *name)
{
  ka_call *call = kernel->call;
  const char *type = ka_type_text(call, value), *index = call->is_wide ? "i64" : "i32";
  switch (r->values) {
  case FOUND:
    kj_append_format(kernel->funcs, "struct %s { value: %s; index: %s }\n", name, type, index);
    return name;
  case MOMENTS:
    kj_append_format(kernel->funcs, "struct %s { n: %s; mean: %s; squares: %s }\n", name, type,
                     type, type);
    return name;
  case PLAIN: break;
  }
  return ka_type_text(call, ka_reduction_computed(r, value));
}

const char *ka_reduced_element(ka_call *call, const ka_reduction *r, const char *name,
                               const char *position)
{
  const char *index = call->is_wide ? "i64" : "i32";
  switch (r->values) {
  case FOUND: return kj_format(&call->arena, "%s(x, %s(%s))", name, index, position);
  case MOMENTS:
    /* x * 0 propagates NaN and infinity; the compiler could contract x - x if x is a product */
    return kj_format(&call->arena, "%s(1, x, x * 0)", name);
  case PLAIN: break;
  }
  return r->element;
}

const char *ka_reduced_result(const ka_reduction *r) { return r->finished; }

const char *ka_reduced_count(ka_call *call, const ka_reduction *r, kjit_type value)
{
  if (r->elements == TRUTHS || r->elements == ORDERED) return "f64";
  if (value == KJIT_C64) return "f32";
  return value == KJIT_C128 ? "f64" : ka_type_text(call, value);
}

const char *ka_prepare_elements(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                                const char *load, uint32_t index_count)
{
  ka_call *call = kernel->call;
  const char *name = name_struct(call, value), *list = ka_list_indices(call, index_count);
  (void)ka_declare_reduced(kernel, r, value, name);
  kj_append_format(kernel->funcs,
                   "func prepared(%s, load: func) @inline {\n  let x = load(%s)\n  return %s\n}\n",
                   list, list, ka_reduced_element(call, r, name, index_count == 1 ? "i0" : "i1"));
  return kj_format(&call->arena, "bind_back(prepared, %s)", load);
}

const char *ka_list_indices(ka_call *call, uint32_t count)
{
  const char *list = "";
  for (uint32_t i = 0; i < count; i++)
    list = kj_format(&call->arena, "%s%si%u", list, i ? ", " : "", i);
  return list;
}

const char *ka_finish_function(ka_kernel *kernel, const ka_reduction *r, kjit_type value)
{
  kj_append_format(kernel->funcs,
                   "func finished(i, v, store: func, count) @inline {\n  let n = %s(count)\n"
                   "  store(i, %s)\n}\n",
                   ka_reduced_count(kernel->call, r, value), r->finished);
  return "finished";
}

const char *ka_finish_values(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                             const char *put, uint64_t count)
{
  kjit_arg n = kjit_arg_f64((double)count);
  const char *given = ka_use_value(kernel, &n), *finish = ka_finish_function(kernel, r, value);
  return kj_format(&kernel->call->arena, "bind_back(%s, %s, %s)", finish, put, given);
}

/* Temporary storage for structs that only the kernel declares is an array of u64. */
uint64_t ka_count_words(uint32_t bytes, uint64_t count) { return (bytes * count + 7) / 8; }

const char *ka_view_words(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                          const char *words, uint64_t count)
{
  const char *name = name_struct(kernel->call, value);
  if (r->values == PLAIN) return words;
  const char *extent = ka_use_count(kernel, count);
  return kj_format(&kernel->call->arena, "view(%s[%s], bitcast(%s*, pointer(%s[0])))", name, extent,
                   name, words);
}

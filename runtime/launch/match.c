/* Sealed kernels: matches the arguments of a launch against the signatures that the kernel was
 * specialized for. */
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>

#include "launch/steps.h"
#include "code/specialization.h"

/* Distances between an argument and the corresponding parameter of a signature. kjit chooses the
 * signature with the smallest sum over all arguments. Each value is so much larger than the
 * preceding one that one mismatch of its kind counts more than smaller mismatches of all other
 * arguments together. */
enum { EXACT = 0, OTHER_LAYOUT = 1, WIDER = 1 << 12, HOLDS = 1 << 24 };
static const uint64_t rounds = (uint64_t)1 << 36, unfit = (uint64_t)1 << 63;

/* ---- one argument ---- */

static uint64_t rate_array(const kj_call *call, const kj_bound *bound, const kj_argument *wanted)
{
  const ki_type_info *info = ki_type(call->kernel->module->types, wanted->type);
  if (bound->kind != KJ_ARGUMENT_ARRAY || bound->type != info->element || bound->rank != info->rank)
    return unfit;
  if (bound->layout == info->layout) return EXACT;
  return info->layout == KJIT_LAYOUT_STRIDED ? OTHER_LAYOUT : unfit;
}

static bool is_float(kjit_type type) { return ki_is_floating(type) && !ki_is_weak(type); }

static bool is_wider(kjit_type from, kjit_type to)
{
  if (!ki_is_scalar(from) || !ki_is_scalar(to)) return false;
  uint32_t narrow = kj_element_bytes(NULL, from), wide = kj_element_bytes(NULL, to);
  if (is_float(from) && is_float(to)) return wide > narrow;
  return ki_is_integral(from) && ki_is_integral(to) && wide > narrow &&
         (ki_is_signed(to) || !ki_is_signed(from));
}

static uint64_t rate_scalar(const kj_bound *bound, const kj_argument *wanted)
{
  ki_value converted;
  if (bound->kind != KJ_ARGUMENT_VALUE && bound->kind != KJ_ARGUMENT_NUMBER) return unfit;
  if (bound->kind == (uint8_t)wanted->kind && bound->type == wanted->type) return EXACT;
  if (bound->value.type == KJIT_ANY || !ki_fit_argument(bound->value, wanted->type, &converted))
    return unfit;
  if (bound->kind ==
      KJ_ARGUMENT_NUMBER) { /* the type of a literal, if nothing else determines it */
    kjit_type natural = bound->type == KJ_WEAK_INT     ? KJIT_I32
                        : bound->type == KJ_WEAK_FLOAT ? KJIT_F64
                                                       : bound->type;
    return wanted->type == natural ? EXACT : is_wider(natural, wanted->type) ? WIDER : HOLDS;
  }
  if (wanted->kind == KJ_ARGUMENT_NUMBER) return unfit;
  if (is_wider(bound->type, wanted->type)) return WIDER;
  return is_float(bound->type) && is_float(wanted->type) ? rounds : HOLDS;
}

static bool is_same_const(const kj_bound *bound, const kj_argument *wanted)
{
  return bound->kind == KJ_ARGUMENT_CONST && bound->type == wanted->type &&
         bound->value.integer == wanted->integer;
}

static uint64_t rate_argument(const kj_call *call, const kj_bound *bound, const kj_argument *wanted)
{
  switch (wanted->kind) {
  case KJ_ARGUMENT_ARRAY: return rate_array(call, bound, wanted);
  case KJ_ARGUMENT_CONST: return is_same_const(bound, wanted) ? EXACT : unfit;
  case KJ_ARGUMENT_FUNCTION:
    return bound->kind == KJ_ARGUMENT_FUNCTION && bound->function == wanted->function ? EXACT
                                                                                      : unfit;
  default: return rate_scalar(bound, wanted);
  }
}

static uint64_t rate(const kj_call *call, const kj_signature *signature)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < signature->count && sum < unfit; i++) {
    uint64_t one = rate_argument(call, &call->bound[i], &signature->arguments[i]);
    sum = one == unfit ? unfit : sum + one;
  }
  return sum;
}

/* ---- choosing the best signature ---- */

static bool have_same_types(const kj_signature *a, const kj_signature *b)
{
  for (uint32_t i = 0; i < a->count; i++) {
    const kj_argument *x = &a->arguments[i], *y = &b->arguments[i];
    if (x->kind != y->kind || x->type != y->type || x->integer != y->integer ||
        x->function != y->function)
      return false;
  }
  return true;
}

/* Returns whether a launch on the sealed kernel can use the entry. The caller holds kernel->mutex.
 * It does not need entry->mutex, because entries are freed only with their kernel, and the
 * signature for which an entry was compiled never changes. */
static bool is_candidate(const kj_call *call, const kjit_specialization *entry)
{
  return entry->is_explicit && entry->device == call->device;
}

typedef struct choice {
  const kjit_specialization *best, *rival;
  uint64_t rating;
} choice;

static choice choose(const kj_call *call)
{
  choice c = { .rating = unfit };
  const kjit_kernel *kernel = call->kernel;
  for (size_t i = 0; i < kernel->order_count; i++) {
    const kjit_specialization *entry = kernel->order[i];
    uint64_t rating = is_candidate(call, entry) ? rate(call, &entry->compiled_for) : unfit;
    if (rating == unfit || rating > c.rating) continue;
    if (rating < c.rating) c = (choice){ .best = entry, .rating = rating };
    else if (!have_same_types(&entry->compiled_for, &c.best->compiled_for)) c.rival = entry;
  }
  return c;
}

static void list_signatures(const kj_call *call, kj_buffer *text)
{
  const char *separator = "";
  for (size_t i = 0; i < call->kernel->order_count; i++) {
    const kjit_specialization *entry = call->kernel->order[i];
    if (!is_candidate(call, entry)) continue;
    kj_append_format(text, "%s(%s)", separator, entry->signature);
    separator = ", ";
  }
}

static void print_arguments(const kj_call *call, kj_buffer *text)
{
  kj_append_text(text, "(");
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    if (i) kj_append_text(text, ", ");
    kj_print_bound(call, &call->bound[i], text);
  }
  kj_append_text(text, ")");
}

static kjit_status refuse(const kj_call *call, const choice *c, kj_diagnostics *diagnostics)
{
  kj_buffer given = { 0 }, known = { 0 };
  char place[24];
  const ki_decl *decl = call->kernel->function->decl;
  print_arguments(call, &given);
  if (c->rival) kj_append_format(&known, "(%s), (%s)", c->best->signature, c->rival->signature);
  else list_signatures(call, &known);
  kjit_status status =
    kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                "kernel `%s` is sealed: %s %s%s%s%s%s", decl->name,
                c->rival ? "these signatures match the arguments equally well,"
                         : "no signature matches the arguments",
                given.text ? given.text : "", c->rival ? ": " : "; on ",
                c->rival ? "" : kj_device_text(call->device, place),
                c->rival       ? ""
                : known.length ? " it has "
                               : " it has none",
                known.text ? known.text : "");
  kj_free_buffer(&given);
  kj_free_buffer(&known);
  return status;
}

/* ---- converting the arguments ---- */

static void convert_array(kj_bound *bound, const ki_type_info *wanted, const kjit_arg *argument)
{
  if (bound->layout == wanted->layout) return;
  bound->layout = KJIT_LAYOUT_STRIDED;
  bound->strides = kj_tensor_of(argument)->strides;
  bound->facts = (uint8_t)kj_find_array_facts((kj_array_place){ .address = bound->address });
}

static void convert_scalar(kj_bound *bound, const kj_argument *wanted)
{
  ki_value converted;
  if (bound->type == wanted->type || !ki_fit_argument(bound->value, wanted->type, &converted))
    return;
  *bound = (kj_bound){ .kind = (uint8_t)wanted->kind, .type = wanted->type, .value = converted };
  ki_encode_value(converted, &bound->bits[0]);
}

static void convert(kj_call *call, const kj_signature *signature, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < signature->count; i++) {
    const kj_argument *wanted = &signature->arguments[i];
    kj_bound *bound = &call->bound[i];
    if (wanted->kind == KJ_ARGUMENT_ARRAY)
      convert_array(bound, ki_type(call->kernel->module->types, wanted->type), &arguments[i]);
    if (wanted->kind == KJ_ARGUMENT_VALUE || wanted->kind == KJ_ARGUMENT_NUMBER)
      convert_scalar(bound, wanted);
  }
}

kjit_status kj_match_signature(kj_call *call, const kjit_arg *arguments,
                               kj_diagnostics *diagnostics)
{
  kj_lock(&call->kernel->mutex, KJ_LOCK_KERNEL);
  choice c = choose(call);
  kjit_status status = !c.best || c.rival ? refuse(call, &c, diagnostics) : KJIT_OK;
  kj_unlock(&call->kernel->mutex, KJ_LOCK_KERNEL);
  if (status == KJIT_OK) convert(call, &c.best->compiled_for, arguments);
  return status;
}

/* The kernel stores the specializations of the last launches (kernel->recent) for the fast path.
 * They may match no signature of the sealed kernel, so this function discards them, and later
 * launches search again. A concurrent launch may store its specialization after that; it then sees
 * that the kernel is sealed and discards the specialization itself. */
kjit_status kjit_seal_kernel(kjit_kernel *kernel)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  if (atomic_exchange(&kernel->is_sealed, true)) return KJIT_OK;
  for (uint32_t i = 0; i < KJ_SLOTS; i++) atomic_store(&kernel->recent[i].specialization, NULL);
  return KJIT_OK;
}

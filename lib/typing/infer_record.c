/* Instances: one for each function and what its parameters are bound to. */
#include <string.h>

#include "typing/infer.h"

enum { INSTANCE_LIMIT = 4096, DEPTH_LIMIT = 64 };

static bool equal_bound(const kj_bound *a, const kj_bound *b)
{
  if (a->kind != b->kind || a->type != b->type) return false;
  bool same_value =
    a->integer == b->integer && memcmp(&a->number, &b->number, sizeof a->number) == 0;
  return same_value && a->callee.function == b->callee.function &&
         a->callee.builtin == b->callee.builtin;
}

static bool equal_key(const kj_record *record, const kj_function *function, const kj_bound *bounds,
                      bool is_strict, bool is_fastmath)
{
  const kj_instance *instance = record->instance;
  if (instance->function != function || instance->is_strict != is_strict ||
      instance->is_fastmath != is_fastmath)
    return false;
  for (size_t i = 0; i < function->params.count; i++)
    if (!equal_bound(&record->bounds[i], &bounds[i])) return false;
  return true;
}

static const char *bound_text(kj_compilation *c, const kj_bound *bound)
{
  switch (bound->kind) {
  case KJ_BOUND_CALLEE:
    return bound->callee.function ? bound->callee.function->decl->name
                                  : bound->callee.builtin->name;
  case KJ_BOUND_WEAK: return bound->type == KJ_WEAK_INT ? "number (integer)" : "number";
  case KJ_BOUND_CONST:
    if (bound->type == KJIT_BOOL) return bound->integer ? "true" : "false";
    return kj_is_float(c, bound->type) ? kj_format(c->arena, "%g", bound->number)
                                       : kj_integer_text(c->arena, bound->integer);
  default: return kj_type_text(c, bound->type);
  }
}

static const char *bounds_text(kj_compilation *c, const kj_bound *bounds, size_t count)
{
  const char *text = "(";
  for (size_t i = 0; i < count; i++)
    text = kj_format(c->arena, "%s%s%s", text, i ? ", " : "", bound_text(c, &bounds[i]));
  return kj_format(c->arena, "%s)", text);
}

kj_record *kj_add_record(kj_inference *inference, const kj_function *function,
                         const kj_bound *bounds, bool is_strict, bool is_fastmath)
{
  kj_compilation *c = inference->c;
  kj_record *record = KJ_NEW(c->arena, kj_record);
  kj_instance *instance = record->instance = KJ_NEW(c->arena, kj_instance);
  record->bounds = bounds;
  instance->function = function;
  instance->id = (uint32_t)inference->records.count;
  instance->is_kernel = function->is_kernel;
  instance->is_strict = is_strict;
  instance->is_fastmath = is_fastmath;
  instance->made_for = bounds_text(c, bounds, function->params.count);
  KJ_PUSH(c->arena, &inference->records, record);
  return record;
}

static bool has_attribute(const kj_function *function, kj_attribute_id id)
{
  return kj_get_attribute(&function->attributes, id) != NULL;
}

static _Noreturn void fail_depth(kj_scope *s, const kj_function *function, kj_location location)
{
  const char *name = function->decl->name;
  for (const kj_instance *at = s->instance; at; at = at->caller)
    if (at->function == function)
      kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
              "calls nest deeper than %d: `%s` calls itself with other types, literals or "
              "functions each time, so each call is a function of its own; "
              "types for its parameters make it one: `func %s(n: i32) -> i32`",
              DEPTH_LIMIT, name, name);
  kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED, "calls nest deeper than %d: `%s`", DEPTH_LIMIT,
          name);
}

kj_record *kj_get_record(kj_scope *s, const kj_function *function, const kj_bound *bounds,
                         kj_location location)
{
  kj_inference *inference = s->inference;
  const char *name = function->decl->name;
  bool own_strict = has_attribute(function, KJ_ATTRIBUTE_STRICT),
       own_fastmath = has_attribute(function, KJ_ATTRIBUTE_FASTMATH);
  bool is_strict = own_strict || (s->instance->is_strict && !own_fastmath);
  bool is_fastmath = own_fastmath || (s->instance->is_fastmath && !own_strict);
  for (size_t i = 0; i < inference->records.count; i++) {
    kj_record *record = inference->records.items[i];
    if (!equal_key(record, function, bounds, is_strict, is_fastmath)) continue;
    if (!record->is_done && has_attribute(function, KJ_ATTRIBUTE_INLINE))
      kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
              "`%s` calls itself and is @inline: a function cannot be inlined into itself", name);
    if (!record->is_done && !record->has_fixed_result)
      kj_fail(
        s->c, location, KJIT_ERROR_TYPE,
        "`%s` calls itself: the type of its result must be given, `func %s(...) -> i64 { ... }`",
        name, name);
    record->is_reentered |= !record->is_done;
    return record;
  }
  if (inference->records.count >= INSTANCE_LIMIT)
    kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "more than %d instances of functions in one kernel: `%s` is called with a new literal "
            "or function each time",
            INSTANCE_LIMIT, name);
  if (inference->depth >= DEPTH_LIMIT) fail_depth(s, function, location);
  kj_record *record = kj_add_record(inference, function, bounds, is_strict, is_fastmath);
  record->instance->caller = s->instance;
  record->instance->call_location = location;
  inference->depth++;
  kj_infer_body(inference, record);
  inference->depth--;
  return record;
}

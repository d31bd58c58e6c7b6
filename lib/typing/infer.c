/* Type inference: converts the kernel of the request, and every function that it calls, from
 * untyped to typed IR. Types propagate forward from the arguments.
 *
 * Requires a verified module, and a signature with an argument for each parameter of the kernel.
 * Guarantees the properties that typed.h describes; kt_verify_typed checks them. */
#include "typing/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/functions.h"

/* ---- the scope of the current function ---- */

void kt_init_scope(kt_scope *s, kt_inference *inference)
{
  memset(s, 0, sizeof *s);
  s->inference = inference;
  s->c = inference->c;
  s->arena = inference->c->arena;
}

/* Returns a text with the number of instances and the name of the largest one, for the error about
 * an exceeded limit. */
static const char *describe_work(const kt_inference *inference)
{
  const kt_inferred *most = inference->records.items[0];
  for (size_t i = 1; i < inference->records.count; i++)
    if (inference->records.items[i]->work > most->work) most = inference->records.items[i];
  return kj_format(inference->c->arena,
                   "the compilation has %zu instances of functions, and the largest is `%s%s`",
                   inference->records.count, most->instance->function->decl->name,
                   most->instance->made_for);
}

void kt_count_work(kt_scope *s, kj_location location)
{
  kt_compilation *c = s->c;
  kt_poll(c, location);
  if (s->record) s->record->work++;
  if (++c->budget->expressions > c->budget->limits[KJ_LIMIT_EXPRESSIONS])
    kt_check_limit(c, KJ_LIMIT_EXPRESSIONS, c->budget->expressions, location,
                   "this specialization is too large: %s", describe_work(s->inference));
}

kt_var *kt_add_variable(kt_scope *s, kt_tvar_kind kind, const char *name, kjit_type type,
                        kj_location location, kt_level level)
{
  if (!s->instance)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "only constants and arithmetic on them are allowed here");
  kt_var *var = kt_new_tvar(s->c, s->instance, kind, name, type, location);
  KJ_PUSH(s->arena, &s->levels, level);
  return var;
}

void kt_bind_variable(kt_scope *s, const ki_decl *decl, kt_var *var)
{
  s->meanings[decl->index] = (kt_meaning){ .kind = KJ_MEANS_VARIABLE, .var = var };
}

void kt_bind_value(kt_scope *s, const ki_decl *decl, kt_expr *value)
{
  s->meanings[decl->index] = (kt_meaning){ .kind = KJ_MEANS_VALUE, .value = value };
}

/* ---- warnings and remarks, which are reported only if the instance is used ---- */

enum { REMARK_LIMIT = 4 };

void kt_note_message(kt_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...)
{
  if (s->is_quiet || !s->record) return;
  va_list list;
  va_start(list, format);
  char *text = NULL;
  int length = vasprintf(&text, format, list);
  va_end(list);
  if (length < 0) return;
  kt_message message = { location, severity, kj_copy_string(s->arena, text, (size_t)length) };
  free(text);
  KJ_PUSH(s->arena, &s->record->messages, message);
}

void kt_note_double(kt_scope *s, kj_location location)
{
  if (s->inference->has_double) return;
  kt_note_message(s, location, KJIT_SEVERITY_REMARK,
                  "this computes in f64, because a float literal is not combined with a float of "
                  "another type; write a suffix (`0.5f32`) or a conversion to choose the type");
}

static bool is_same_place(kj_location a, kj_location b)
{
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

static bool is_repeated(const kt_inferred *record, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (is_same_place(record->messages.items[i].location, record->messages.items[index].location))
      return true;
  return false;
}

void kt_report_messages(kt_inference *inference, const kt_inferred *record)
{
  for (size_t i = 0; i < record->messages.count; i++) {
    const kt_message *message = &record->messages.items[i];
    bool is_remark = message->severity == KJIT_SEVERITY_REMARK;
    if (is_repeated(record, i) || (is_remark && inference->remark_count++ >= REMARK_LIMIT))
      continue;
    kt_warn(inference->c, message->location, message->severity, "%s", message->text);
  }
}

/* ---- instances, one for each function and combination of parameter values ---- */

enum { DEPTH_LIMIT = 64 };

bool kt_equal_bound(const kt_bound *a, const kt_bound *b)
{
  if (a->kind != b->kind || a->type != b->type || a->wide != b->wide) return false;
  if (a->start != b->start || !kt_equal_fields(a->fields, b->fields)) return false;
  return a->integer == b->integer && kt_equal_callee(&a->callee, &b->callee);
}

static bool has_attribute(const ki_function *function, ki_attribute_id id)
{
  return ki_get_attribute(&function->attributes, id) != NULL;
}

/* Returns a function's modes, given its caller's modes. The code of a built-in depends on the
 * rounding of each operation, so it is strict except under @fastmath. */
static kt_modes modes_of(const ki_function *function, kt_modes caller)
{
  bool is_strict = has_attribute(function, KJ_ATTRIBUTE_STRICT) ||
                   (function->module->is_builtin_code && !caller.is_fastmath);
  bool is_fastmath = has_attribute(function, KJ_ATTRIBUTE_FASTMATH);
  bool is_indefinite = has_attribute(function, KJ_ATTRIBUTE_INDEFINITE);
  return (kt_modes){ .is_strict = is_strict || (caller.is_strict && !is_fastmath),
                     .is_fastmath = is_fastmath || (caller.is_fastmath && !is_strict),
                     .is_indefinite = is_indefinite || caller.is_indefinite };
}

static bool equal_modes(kt_modes a, kt_modes b)
{
  return a.is_strict == b.is_strict && a.is_fastmath == b.is_fastmath &&
         a.is_indefinite == b.is_indefinite;
}

static bool equal_key(const kt_inferred *record, const ki_function *function,
                      const kt_bound *bounds, kt_modes modes)
{
  const kt_instance *instance = record->instance;
  if (record->derived_of || instance->function != function || !equal_modes(instance->modes, modes))
    return false;
  for (size_t i = 0; i < function->params.count; i++)
    if (!kt_equal_bound(&record->bounds[i], &bounds[i])) return false;
  return true;
}

const char *kt_bound_text(kt_compilation *c, const kt_bound *bound)
{
  switch (KJ_AMONG(bound->kind)) {
  case KJ_BOUND_CALLEE: return kt_callee_text(c, &bound->callee);
  case KJ_BOUND_WEAK:
    if (bound->wide != KJIT_ANY)
      return kj_format(c->arena, "number (integer, %s)", kt_type_text(c, bound->wide));
    return bound->type == KJ_WEAK_INT ? "number (integer)" : "number";
  case KJ_BOUND_CONST:
    if (bound->type == KJIT_BOOL) return bound->integer ? "true" : "false";
    return kt_is_float(c, bound->type)
             ? kj_format(c->arena, "%g", ki_number_of((ki_value){ bound->type, bound->integer }))
             : kt_integer_text(c->arena, bound->integer);
  default: return kt_type_text(c, bound->type);
  }
}

static const char *bounds_text(kt_compilation *c, const kt_bound *bounds, size_t count)
{
  const char **texts = KJ_NEW_ARRAY(c->arena, const char *, count + 1);
  for (size_t i = 0; i < count; i++) texts[i] = kt_bound_text(c, &bounds[i]);
  kj_buffer buffer = { 0 };
  for (size_t i = 0; i < count; i++) kj_append_format(&buffer, "%s%s", i ? ", " : "(", texts[i]);
  kj_append_text(&buffer, count ? ")" : "()");
  return kj_keep_text(c->arena, &buffer);
}

kt_inferred *kt_add_inferred(kt_inference *inference, const ki_function *function,
                             const kt_bound *bounds, kt_modes modes)
{
  kt_compilation *c = inference->c;
  kt_inferred *record = KJ_NEW(c->arena, kt_inferred);
  kt_instance *instance = record->instance = KJ_NEW(c->arena, kt_instance);
  record->bounds = bounds;
  instance->function = function;
  instance->id = (uint32_t)inference->records.count;
  /* the derivative of a kernel is not a kernel */
  instance->is_kernel = function->is_kernel && !instance->id;
  instance->modes = modes;
  instance->made_for = bounds_text(c, bounds, function->params.count);
  KJ_PUSH(c->arena, &inference->records, record);
  return record;
}

static _Noreturn void fail_depth(kt_scope *s, const ki_function *function, kj_location location)
{
  const char *name = function->decl->name;
  for (const kt_instance *at = s->instance; at; at = at->caller)
    if (at->function == function)
      kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
              "calls are nested more than %d levels deep: `%s` calls itself with different types "
              "or functions each time, and each such call needs a separate instance",
              DEPTH_LIMIT, name);
  kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED, "calls are nested more than %d levels deep: `%s`",
          DEPTH_LIMIT, name);
}

/* Describes the instances of a function, for the error about too many instances. */
static const char *describe_instances(kt_inference *inference, const ki_function *function)
{
  kt_compilation *c = inference->c;
  size_t count = 0;
  if (inference->records.count < c->budget->limits[KJ_LIMIT_INSTANCES]) return "";
  for (size_t i = 0; i < inference->records.count; i++)
    count += inference->records.items[i]->instance->function == function;
  if (count < 2 || function->module->is_builtin_code)
    return kj_format(c->arena, "this call of `%s` needs another one", function->decl->name);
  return kj_format(c->arena,
                   "%zu of the instances are of `%s`; give its parameters types, so that calls "
                   "with different literals share one instance",
                   count, function->decl->name);
}

void kt_fail_runaway(kt_scope *s, const ki_decl *decl, kj_location location)
{
  bool is_numba = has_attribute(decl->function, KJ_ATTRIBUTE_NUMBA);
  if (is_numba)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "cannot type infer runaway recursion: `%s` calls itself here, and no other path "
            "determines the return type; add a `return` that does not depend on this call",
            decl->name);
  kt_fail(s->c, location, KJIT_ERROR_TYPE,
          "`%s` calls itself here, and no other path determines the return type; add a `return` "
          "that does not depend on this call, or " KJ_PHRASE(
            RESULT_TYPE, "`func " KJ_PHRASE_ARGUMENT("%s") "(...) -> i64 { ... }`"),
          decl->name, decl->name);
}

kjit_type kt_concrete_result(kjit_type guess)
{
  return guess == KJ_WEAK_INT ? KJIT_I32 : guess == KJ_WEAK_FLOAT ? KJIT_F64 : guess;
}

/* Uses the current guess of the result type for a recursive call, that is, a call of a function
 * that is being inferred. If the result type is not known yet because no return statement has been
 * inferred, the recursive function's statement that leads to this call is skipped until the next
 * round. */
static void take_result(kt_scope *s, kt_inferred *record, kj_location location)
{
  kt_scope *scope = record->scope;
  if (record->result == KJIT_ANY && scope->on_wait)
    kt_wait_for_type(scope, record->instance->function->decl, location);
  if (record->result == KJIT_ANY) kt_fail_runaway(s, record->instance->function->decl, location);
  record->instance->result = kt_concrete_result(record->result);
  if (scope != s && record->taken_result == KJIT_ANY) record->taken_result = record->result;
}

void kt_abandon_calls(kt_scope *s, size_t records, uint32_t depth)
{
  kt_inference *inference = s->inference;
  inference->records.count = records;
  inference->depth = depth;
  for (size_t i = 0; i < inference->constant_count; i++)
    if (inference->constants[i] && inference->constants[i]->is_being_made)
      inference->constants[i] = NULL;
  s->c->chain = s->instance;
}

void kt_drop_outdated(kt_scope *s)
{
  kt_inferred *record = s->record;
  if (record->taken_result == KJIT_ANY || record->taken_result == record->result) return;
  KJ_ASSERT(s->inference->records.items[s->instance->id] == record);
  s->inference->records.count = s->instance->id + 1;
  record->taken_result = KJIT_ANY;
}

kt_inferred *kt_get_inferred(kt_scope *s, const ki_function *function, const kt_bound *bounds,
                             kj_location location)
{
  kt_inference *inference = s->inference;
  const char *name = function->decl->name;
  kt_modes modes = modes_of(function, s->instance->modes);
  for (size_t i = 0; i < inference->records.count; i++) {
    kt_inferred *record = inference->records.items[i];
    if (!equal_key(record, function, bounds, modes)) continue;
    if (!record->is_done && has_attribute(function, KJ_ATTRIBUTE_INLINE))
      kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
              "`%s` is recursive and @inline; a recursive function cannot be inlined", name);
    if (!record->is_done && !record->has_fixed_result) take_result(s, record, location);
    record->is_reentered |= !record->is_done;
    return record;
  }
  kt_check_limit(s->c, KJ_LIMIT_INSTANCES, inference->records.count + 1, location, "%s",
                 describe_instances(inference, function));
  if (inference->depth >= DEPTH_LIMIT) fail_depth(s, function, location);
  kt_inferred *record = kt_add_inferred(inference, function, bounds, modes);
  record->instance->caller = s->instance;
  record->instance->call_location = location;
  inference->depth++;
  kt_infer_body(inference, record);
  inference->depth--;
  return record;
}

/* ---- recursive functions, which can be found only after all calls are known ---- */

/* Returns whether `from` calls `to`, directly or through other functions. */
static bool leads_to(const kt_inferred *from, const kt_inferred *to, bool *is_seen)
{
  for (size_t i = 0; i < from->callees.count; i++) {
    const kt_inferred *callee = from->callees.items[i];
    if (callee == to) return true;
    if (is_seen[callee->instance->id]) continue;
    is_seen[callee->instance->id] = true;
    if (leads_to(callee, to, is_seen)) return true;
  }
  return false;
}

static bool take_flag(bool *own, bool of_callee)
{
  bool is_new = of_callee && !*own;
  *own |= of_callee;
  return is_new;
}

static bool take_from_callees(kt_inferred *record)
{
  bool has_changed = false;
  kt_instance *own = record->instance;
  for (size_t i = 0; i < record->callees.count; i++) {
    const kt_instance *callee = record->callees.items[i]->instance;
    has_changed |= take_flag(&own->has_barrier, callee->has_barrier);
    has_changed |= take_flag(&own->has_warp, callee->has_warp);
    has_changed |= take_flag(&own->uses_positions, callee->uses_positions);
    has_changed |=
      take_flag(&own->reaches_recursion, callee->is_recursive || callee->reaches_recursion);
  }
  return has_changed;
}

void kt_find_recursion(kt_inference *inference)
{
  size_t count = inference->records.count;
  bool has_any = false;
  for (size_t i = 0; i < count; i++) has_any |= inference->records.items[i]->is_reentered;
  if (!has_any) return;
  bool *is_seen = KJ_NEW_ARRAY(inference->c->arena, bool, count + 1), has_changed;
  for (size_t i = 0; i < count; i++) {
    memset(is_seen, 0, count * sizeof *is_seen);
    inference->records.items[i]->instance->is_recursive =
      leads_to(inference->records.items[i], inference->records.items[i], is_seen);
  }
  do {
    has_changed = false;
    for (size_t i = 0; i < count; i++)
      has_changed |= take_from_callees(inference->records.items[i]);
  } while (has_changed);
}

/* Checks that the parameters and the result of a func that C code calls have C types. */
static void check_c_function(kt_inference *inference, const kt_inferred *record)
{
  kt_scope outside;
  const kt_instance *instance = record->instance;
  kt_init_scope(&outside, inference);
  for (size_t i = 0; i < instance->params.count; i++) {
    const kt_var *param = instance->params.items[i];
    if (!kt_is_array(inference->c, param->type))
      kt_check_c_type(&outside, param->type,
                      kj_format(inference->c->arena, "parameter `%s`", param->name),
                      param->location);
  }
  kt_check_c_type(&outside, instance->result, "the result", instance->function->decl->location);
}

/* Rejects loops over ranges in recursive functions, because inference does not check whether all
 * threads reach a recursive call. */
static void refuse_ranges(kt_inference *inference, const kt_inferred *record)
{
  const kt_instance *instance = record->instance;
  if (instance->is_recursive && (record->has_grid_range || record->has_block_range))
    kt_fail(inference->c, instance->function->decl->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` is recursive and has a grid_range or block_range; the threads of a recursive "
            "call cannot share iterations",
            instance->function->decl->name);
}

/* Collects the instances that are used: first the kernel, then the others so that callees precede
 * their callers. The order of recursive functions is arbitrary. Instances that only a discarded
 * round has called are omitted. */
static void collect(kt_inference *inference, kt_inferred *record)
{
  if (record->is_reached) return;
  record->is_reached = true;
  refuse_ranges(inference, record);
  for (size_t i = 0; i < record->callees.count; i++) collect(inference, record->callees.items[i]);
  if (record->instance->caller)
    KJ_PUSH(inference->c->arena, &inference->c->instances, record->instance);
  if (!record->instance->function->module->is_builtin_code) kt_report_messages(inference, record);
}

static void check_shared_bytes(kt_compilation *c)
{
  uint64_t bytes = 0, limit = kt_most_shared_bytes(&c->request->target);
  for (size_t i = 0; i < c->instances.count; i++) {
    const kt_vars *locals = &c->instances.items[i]->locals;
    for (size_t j = 0; j < locals->count; j++) {
      const ki_type_info *info = ki_type(c->types, locals->items[j]->type);
      if (locals->items[j]->kind != KJ_V_SHARED || !info->is_static) continue;
      bytes += ki_element_count(info) * ki_type(c->types, info->element)->size_bytes;
      if (bytes > limit)
        kt_fail(c, locals->items[j]->location, KJIT_ERROR_UNSUPPORTED,
                "the kernel and the functions that it calls have %llu bytes of shared arrays; a "
                "block can have at most %llu bytes on %s",
                (unsigned long long)bytes, (unsigned long long)limit, kt_target_text(c));
    }
  }
}

void kt_infer(kt_compilation *c)
{
  kt_inference inference = { .c = c };
  const ki_function *kernel = c->request->kernel;
  c->budget->step = "inference of types";
  inference.constant_count = c->module->decls.count;
  inference.constants = KJ_NEW_ARRAY(c->arena, kt_constant *, inference.constant_count + 1);
  kt_bound *bounds = kt_bind_signature(&inference, kernel);
  kt_modes modes = modes_of(kernel, (kt_modes){ 0 });
  kt_inferred *record = kt_add_inferred(&inference, kernel, bounds, modes);
  kt_infer_body(&inference, record);
  if (c->request->symbol) check_c_function(&inference, record);
  kt_expand_builtins(&inference);
  kt_find_recursion(&inference);
  c->instances.count = 0;
  KJ_PUSH(c->arena, &c->instances, record->instance);
  collect(&inference, record);
  kt_name_instances(c);
  c->code->result = record->instance->result;
  kt_find_number_limits(c);
  check_shared_bytes(c);
}

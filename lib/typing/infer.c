/* Inference: the kernel of the request, and every function that it calls, from untyped to typed. Types flow forward from the arguments.
 *
 * Needs: a verified module; a signature whose arguments agree with the parameters in number. Guarantees what typed.h states; kj_verify_typed checks it. */
#include "typing/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/functions.h"

enum { INSTANCE_LIMIT = 4096, DEPTH_LIMIT = 64, ROUND_LIMIT = 64, WORK_LIMIT = 4000000, REMARK_LIMIT = 4 };

void kj_count_work(kj_inference *inference, kj_location location)
{
  if (++inference->work > WORK_LIMIT)
    kj_fail(inference->c, location, KJIT_ERROR_UNSUPPORTED,
            "this specialization is too large: more than %d statements and expressions over all instances of its functions", WORK_LIMIT);
}

/* ---- messages that wait ---- */

void kj_note_message(kj_scope *s, kj_location location, kjit_severity severity, const char *format, ...)
{
  if (s->is_quiet || !s->record) return;
  va_list list;
  va_start(list, format);
  char *text = NULL;
  int length = vasprintf(&text, format, list);
  va_end(list);
  if (length < 0) return;
  kj_message message = { location, severity, kj_copy_string(s->arena, text, (size_t)length) };
  free(text);
  KJ_PUSH(s->arena, &s->record->messages, message);
}

void kj_note_double(kj_scope *s, kj_location location)
{
  if (s->inference->has_double) return;
  kj_note_message(s, location, KJIT_SEVERITY_REMARK,
                  "f64 arithmetic here: a float literal meets no float of another type; a suffix (`0.5f32`) or a conversion gives it one");
}

static bool is_same_place(kj_location a, kj_location b) { return a.file == b.file && a.line == b.line && a.column == b.column; }

static bool is_repeated(const kj_record *record, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (is_same_place(record->messages.items[i].location, record->messages.items[index].location)) return true;
  return false;
}

static void report_messages(kj_inference *inference, const kj_record *record)
{
  for (size_t i = 0; i < record->messages.count; i++) {
    const kj_message *message = &record->messages.items[i];
    bool is_remark = message->severity == KJIT_SEVERITY_REMARK;
    if (is_repeated(record, i) || (is_remark && inference->remark_count++ >= REMARK_LIMIT)) continue;
    kj_warn(inference->c, message->location, message->severity, "%s", message->text);
  }
}

/* ---- variables ---- */

kj_tvar *kj_add_variable(kj_scope *s, kj_tvar_kind kind, const char *name, kjit_type type, kj_location location, kj_level level)
{
  if (!s->instance) kj_fail(s->c, location, KJIT_ERROR_TYPE, "only constants and arithmetic on them can stand here");
  kj_tvar *var = kj_new_tvar(s->c, s->instance, kind, name, type, location);
  KJ_PUSH(s->arena, &s->levels, level);
  return var;
}

void kj_bind_variable(kj_scope *s, const kj_decl *decl, kj_tvar *var) { s->meanings[decl->index] = (kj_meaning){ .kind = KJ_MEANS_VARIABLE, .var = var }; }

void kj_bind_value(kj_scope *s, const kj_decl *decl, kj_texpr *value) { s->meanings[decl->index] = (kj_meaning){ .kind = KJ_MEANS_VALUE, .value = value }; }

void kj_init_scope(kj_scope *s, kj_inference *inference)
{
  memset(s, 0, sizeof *s);
  s->inference = inference;
  s->c = inference->c;
  s->arena = inference->c->arena;
}

/* ---- parameters ---- */

static void bind_weak(kj_scope *s, const kj_decl *decl, const kj_bound *bound)
{
  kj_tvar *var;
  kj_texpr *value;
  if (s->instance->is_kernel) {
    var = kj_add_variable(s, KJ_V_PARAM, decl->name, bound->type, decl->location, KJ_LEVEL_GRID);
    value = kj_make_var(s, var, decl->location);
  } else {
    var = kj_add_variable(s, KJ_V_PARAM, decl->name, bound->type == KJ_WEAK_INT ? KJIT_I64 : KJIT_F64, decl->location, KJ_LEVEL_GRID);
    value = kj_new_texpr(s->c, KJ_T_CONVERT, bound->type, decl->location);
    value->x = kj_make_var(s, var, decl->location);
  }
  var->argument = decl->index;
  kj_bind_value(s, decl, value);
}

static void bind_parameter(kj_scope *s, const kj_decl *decl, const kj_bound *bound)
{
  kj_tvar *var;
  kj_texpr *value;
  switch (bound->kind) {
  case KJ_BOUND_CALLEE: s->meanings[decl->index] = (kj_meaning){ .kind = KJ_MEANS_CALLEE, .callee = bound->callee }; return;
  case KJ_BOUND_CONST:
    value = kj_new_texpr(s->c, KJ_T_CONST, bound->type, decl->location);
    value->integer = bound->integer;
    value->number = bound->number;
    kj_bind_value(s, decl, value);
    return;
  case KJ_BOUND_WEAK: bind_weak(s, decl, bound); return;
  default:
    var = kj_add_variable(s, KJ_V_PARAM, decl->name, bound->type, decl->location, KJ_LEVEL_GRID);
    var->argument = decl->index;
    kj_bind_variable(s, decl, var);
  }
}

/* Scalars of a kernel come with the type that the host gave: an annotation converts them at the entry. */
static void convert_entry(kj_scope *s, const kj_decl *decl, size_t index)
{
  kjit_type annotation = kj_infer_annotation(s->inference, s->function, s->record->bounds, index);
  const kj_meaning *meaning = &s->meanings[decl->index];
  if (annotation == KJIT_ANY || meaning->kind == KJ_MEANS_CALLEE || !kj_is_scalar(annotation)) return;
  kj_texpr *value = meaning->kind == KJ_MEANS_VALUE ? meaning->value : kj_make_var(s, meaning->var, decl->location);
  if (value->type == annotation || kj_is_constant(value)) return;
  kj_tvar *var = kj_add_variable(s, KJ_V_LET, decl->name, annotation, decl->location, KJ_LEVEL_GRID);
  kj_bind_variable(s, decl, var);
  kj_emit_assign(s, var, kj_convert(s, value, annotation, decl->location), decl->location);
}

static void bind_parameters(kj_scope *s)
{
  const kj_decls *params = &s->function->params;
  for (size_t i = 0; i < params->count; i++) bind_parameter(s, params->items[i], &s->record->bounds[i]);
  for (size_t i = 0; i < params->count && !s->instance->caller; i++) convert_entry(s, params->items[i], i); /* of what is called from outside */
}

/* ---- bodies ---- */

static bool never_ends(const kj_tstmts *stmts);

static bool has_break(const kj_tstmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kj_tstmt *stmt = stmts->items[i];
    if (stmt->kind == KJ_TS_BREAK) return true;
    if (stmt->kind == KJ_TS_IF && (has_break(&stmt->body) || has_break(&stmt->otherwise))) return true;
  }
  return false;
}

static bool leaves(const kj_tstmt *stmt)
{
  switch (stmt->kind) {
  case KJ_TS_RETURN:
  case KJ_TS_FAIL: return true;
  case KJ_TS_IF: return never_ends(&stmt->body) && never_ends(&stmt->otherwise);
  case KJ_TS_WHILE: return stmt->value->kind == KJ_T_CONST && !has_break(&stmt->body);
  default: return false;
  }
}

/* Whether control never reaches the end of the list. */
static bool never_ends(const kj_tstmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (leaves(stmts->items[i])) return true;
  return false;
}

static void check_end(kj_scope *s)
{
  kj_record *record = s->record;
  bool needs_value = s->result_annotation != KJIT_ANY || (record->result != KJIT_ANY && record->result != KJIT_VOID);
  if (s->instance->is_kernel || !needs_value || never_ends(&s->instance->body)) return;
  kj_fail(s->c, s->function->decl->location, KJIT_ERROR_TYPE,
          "`%s` returns a value on some ways through it and not on all: its end is reached without `return`", s->function->decl->name);
}

/* Variables that have met literals only. */
static void settle_guesses(kj_scope *s)
{
  for (size_t i = 0; i < s->function->locals.count; i++) {
    const kj_decl *decl = s->function->locals.items[i];
    kj_guess *guess = &s->guesses[decl->index];
    if (!kj_is_weak(guess->type)) continue;
    guess->type = guess->type == KJ_WEAK_INT ? KJIT_I32 : KJIT_F64;
    guess->is_default = true;
    s->is_changed = true;
  }
}

static void note_double_variables(kj_scope *s)
{
  for (size_t i = 0; i < s->function->locals.count; i++) {
    const kj_decl *decl = s->function->locals.items[i];
    const kj_guess *guess = &s->guesses[decl->index];
    if (guess->is_default && guess->type == KJIT_F64) kj_note_double(s, decl->location);
  }
}

static void start_round(kj_scope *s)
{
  kj_instance *instance = s->instance;
  uint32_t count = s->function->local_count + 1;
  memset(s->meanings, 0, count * sizeof *s->meanings);
  for (uint32_t i = 0; i < count; i++) s->guesses[i].was_read = false;
  instance->params = (kj_tvars){ 0 };
  instance->locals = (kj_tvars){ 0 };
  instance->body = (kj_tstmts){ 0 };
  instance->has_barrier = instance->has_warp = instance->uses_positions = false;
  s->record->messages.count = 0;
  s->record->callees.count = 0;
  s->record->has_grid_range = s->record->has_block_range = false;
  s->levels.count = 0;
  s->constant_uses.count = 0;
  s->out = &instance->body;
  s->is_changed = false;
  s->level = s->left_level = s->skipped_level = KJ_LEVEL_GRID;
  s->dynamic_count = s->temporary_count = 0;
  s->local_bytes = s->shared_bytes = 0;
}

static void infer_round(kj_scope *s)
{
  start_round(s);
  bind_parameters(s);
  kj_infer_block(s, &s->function->body, &s->instance->body);
  settle_guesses(s);
}

/* Takes back what an error in the middle of a round has left behind. */
static void forget_round(kj_scope *s, size_t messages, size_t records, uint32_t depth)
{
  kj_inference *inference = s->inference;
  kj_drop_diagnostics(s->c->diagnostics, messages);
  inference->records.count = records;
  inference->depth = depth;
  for (size_t i = 0; i < inference->constant_count; i++)
    if (inference->constants[i] && inference->constants[i]->is_being_made) inference->constants[i] = NULL;
  s->c->chain = s->instance;
  s->is_quiet = s->is_range_body = false;
  s->range_count = 0;
}

/* A round in which a guess has gone up proves nothing about the types: an error in it, a literal that does not fit, say, may be none in the next. */
static void try_round(kj_scope *s)
{
  kj_compilation *c = s->c;
  const size_t messages = c->diagnostics->count, records = s->inference->records.count;
  const uint32_t depth = s->inference->depth;
  jmp_buf *const outer = c->on_failure;
  jmp_buf here;
  int jump = setjmp(here);
  if (jump == 0) {
    c->on_failure = &here;
    infer_round(s);
  }
  c->on_failure = outer;
  if (jump == 0) return;
  if (jump != KJ_JUMP_ERROR || !s->is_changed) longjmp(*outer, jump);
  forget_round(s, messages, records, depth);
}

/* A result that is a literal in every return stays one. */
static void finish_result(kj_scope *s)
{
  kj_record *record = s->record;
  kj_instance *instance = record->instance;
  if (record->result == KJIT_ANY) record->result = KJIT_VOID;
  instance->result = record->result == KJ_WEAK_INT ? KJIT_I32 : record->result == KJ_WEAK_FLOAT ? KJIT_F64 : record->result;
  bool is_constant = instance->body.count == 1 && instance->body.items[0]->kind == KJ_TS_RETURN && instance->body.items[0]->value &&
                     instance->body.items[0]->value->kind == KJ_T_CONST;
  if (!is_constant) return;
  record->constant_result = kj_copy_texpr(s, instance->body.items[0]->value);
  record->constant_result->type = record->result;
}

static bool returns_value(const kj_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const kj_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_RETURN && stmt->value) return true;
    if (returns_value(&stmt->body) || returns_value(&stmt->otherwise)) return true;
  }
  return false;
}

/* What is known of the result without the body. */
static void fix_result(kj_scope *s)
{
  const kj_function *function = s->function;
  kj_record *record = s->record;
  if (function->result) {
    start_round(s);
    bind_parameters(s);
    s->result_annotation = kj_infer_type(s, function->result);
  }
  record->has_fixed_result = function->result || !returns_value(&function->body);
  if (record->has_fixed_result) record->instance->result = function->result ? s->result_annotation : KJIT_VOID;
}

/* Parameters and result are all that is known of it. */
static void finish_extern(kj_scope *s)
{
  start_round(s);
  bind_parameters(s);
  if (s->function->result) kj_check_c_type(s, s->result_annotation, "the result", s->function->result->location);
  s->record->result = s->instance->result;
  s->record->result_level = KJ_LEVEL_THREAD;
  s->record->is_done = true;
}

static void infer_body(kj_inference *inference, kj_record *record)
{
  kj_scope scope, *s = &scope;
  kj_init_scope(s, inference);
  s->record = record;
  s->instance = record->instance;
  s->function = record->instance->function;
  s->meanings = KJ_NEW_ARRAY(s->arena, kj_meaning, s->function->local_count + 1);
  s->guesses = KJ_NEW_ARRAY(s->arena, kj_guess, s->function->local_count + 1);
  const kj_instance *outer = s->c->chain;
  s->c->chain = s->instance;
  fix_result(s);
  if (s->function->is_extern) {
    finish_extern(s);
    s->c->chain = outer;
    return;
  }
  int rounds = 0;
  do {
    if (++rounds > ROUND_LIMIT) kj_fail(s->c, s->function->decl->location, KJIT_ERROR_TYPE, "the types of `%s` do not settle", s->function->decl->name);
    try_round(s);
  } while (s->is_changed);
  note_double_variables(s);
  check_end(s);
  if (s->instance->is_kernel) kj_infer_launch(s);
  finish_result(s);
  s->c->chain = outer;
  record->is_done = true;
}

/* ---- instances ---- */

static bool equal_bound(const kj_bound *a, const kj_bound *b)
{
  if (a->kind != b->kind || a->type != b->type) return false;
  bool same_value = a->integer == b->integer && memcmp(&a->number, &b->number, sizeof a->number) == 0;
  return same_value && a->callee.function == b->callee.function && a->callee.builtin == b->callee.builtin;
}

static bool equal_key(const kj_record *record, const kj_function *function, const kj_bound *bounds, bool is_strict, bool is_fastmath)
{
  const kj_instance *instance = record->instance;
  if (instance->function != function || instance->is_strict != is_strict || instance->is_fastmath != is_fastmath) return false;
  for (size_t i = 0; i < function->params.count; i++)
    if (!equal_bound(&record->bounds[i], &bounds[i])) return false;
  return true;
}

static const char *bound_text(kj_compilation *c, const kj_bound *bound)
{
  switch (bound->kind) {
  case KJ_BOUND_CALLEE: return bound->callee.function ? bound->callee.function->decl->name : bound->callee.builtin->name;
  case KJ_BOUND_WEAK: return bound->type == KJ_WEAK_INT ? "number (integer)" : "number";
  case KJ_BOUND_CONST:
    if (bound->type == KJIT_BOOL) return bound->integer ? "true" : "false";
    return kj_is_float(c, bound->type) ? kj_format(c->arena, "%g", bound->number) : kj_integer_text(c->arena, bound->integer);
  default: return kj_type_text(c, bound->type);
  }
}

static const char *bounds_text(kj_compilation *c, const kj_bound *bounds, size_t count)
{
  const char *text = "(";
  for (size_t i = 0; i < count; i++) text = kj_format(c->arena, "%s%s%s", text, i ? ", " : "", bound_text(c, &bounds[i]));
  return kj_format(c->arena, "%s)", text);
}

static kj_record *add_record(kj_inference *inference, const kj_function *function, const kj_bound *bounds, bool is_strict, bool is_fastmath)
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

static bool has_attribute(const kj_function *function, kj_attribute_id id) { return kj_get_attribute(&function->attributes, id) != NULL; }

static _Noreturn void fail_depth(kj_scope *s, const kj_function *function, kj_location location)
{
  const char *name = function->decl->name;
  for (const kj_instance *at = s->instance; at; at = at->caller)
    if (at->function == function)
      kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
              "calls nest deeper than %d: `%s` calls itself with other types, literals or functions each time, so each call is a function of its own; "
              "types for its parameters make it one: `func %s(n: i32) -> i32`",
              DEPTH_LIMIT, name, name);
  kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED, "calls nest deeper than %d: `%s`", DEPTH_LIMIT, name);
}

kj_record *kj_get_record(kj_scope *s, const kj_function *function, const kj_bound *bounds, kj_location location)
{
  kj_inference *inference = s->inference;
  const char *name = function->decl->name;
  bool own_strict = has_attribute(function, KJ_ATTRIBUTE_STRICT), own_fastmath = has_attribute(function, KJ_ATTRIBUTE_FASTMATH);
  bool is_strict = own_strict || (s->instance->is_strict && !own_fastmath);
  bool is_fastmath = own_fastmath || (s->instance->is_fastmath && !own_strict);
  for (size_t i = 0; i < inference->records.count; i++) {
    kj_record *record = inference->records.items[i];
    if (!equal_key(record, function, bounds, is_strict, is_fastmath)) continue;
    if (!record->is_done && has_attribute(function, KJ_ATTRIBUTE_INLINE))
      kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED, "`%s` calls itself and is @inline: a function cannot be inlined into itself", name);
    if (!record->is_done && !record->has_fixed_result)
      kj_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` calls itself: the type of its result must be given, `func %s(...) -> i64 { ... }`", name, name);
    record->is_reentered |= !record->is_done;
    return record;
  }
  if (inference->records.count >= INSTANCE_LIMIT)
    kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "more than %d instances of functions in one kernel: `%s` is called with a new literal or function each time", INSTANCE_LIMIT, name);
  if (inference->depth >= DEPTH_LIMIT) fail_depth(s, function, location);
  kj_record *record = add_record(inference, function, bounds, is_strict, is_fastmath);
  record->instance->caller = s->instance;
  record->instance->call_location = location;
  inference->depth++;
  infer_body(inference, record);
  inference->depth--;
  return record;
}

/* ---- the result ---- */

static const char *make_symbol(kj_compilation *c, const kj_instance *instance)
{
  const char *name = instance->function->decl->name;
  if (!instance->caller && c->request->symbol) return c->request->symbol;
  if (instance->function->is_extern) return name;
  /* A kernel `expf` that calls exp must not call itself. */
  if (instance->is_kernel) return kj_is_library_name(name) ? kj_format(c->arena, "%s$kernel", name) : name;
  char *symbol = kj_format(c->arena, "%s$%u", name, instance->id);
  for (char *at = symbol; at[0] && at[0] != '$'; at++) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_';
    if (!is_plain) *at = '_';
  }
  return symbol;
}

/* Whether calls of `from` lead to `to`. */
static bool leads_to(const kj_record *from, const kj_record *to, bool *is_seen)
{
  for (size_t i = 0; i < from->callees.count; i++) {
    const kj_record *callee = from->callees.items[i];
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

static bool take_from_callees(kj_record *record)
{
  bool has_changed = false;
  kj_instance *own = record->instance;
  for (size_t i = 0; i < record->callees.count; i++) {
    const kj_instance *callee = record->callees.items[i]->instance;
    has_changed |= take_flag(&own->has_barrier, callee->has_barrier);
    has_changed |= take_flag(&own->has_warp, callee->has_warp);
    has_changed |= take_flag(&own->uses_positions, callee->uses_positions);
  }
  return has_changed;
}

/* Calls of a function under way have told their callers only what was known by then. Instances are numbered by their records here. */
static void find_recursion(kj_inference *inference)
{
  size_t count = inference->records.count;
  bool has_any = false;
  for (size_t i = 0; i < count; i++) has_any |= inference->records.items[i]->is_reentered;
  if (!has_any) return;
  bool *is_seen = KJ_NEW_ARRAY(inference->c->arena, bool, count + 1), has_changed;
  for (size_t i = 0; i < count; i++) {
    memset(is_seen, 0, count * sizeof *is_seen);
    inference->records.items[i]->instance->is_recursive = leads_to(inference->records.items[i], inference->records.items[i], is_seen);
  }
  do {
    has_changed = false;
    for (size_t i = 0; i < count; i++) has_changed |= take_from_callees(inference->records.items[i]);
  } while (has_changed);
}

/* What goes to and comes from a func that others call. */
static void check_c_function(kj_inference *inference, const kj_record *record)
{
  kj_scope outside;
  const kj_instance *instance = record->instance;
  kj_init_scope(&outside, inference);
  for (size_t i = 0; i < instance->params.count; i++) {
    const kj_tvar *param = instance->params.items[i];
    if (!kj_is_array(inference->c, param->type))
      kj_check_c_type(&outside, param->type, kj_format(inference->c->arena, "parameter `%s`", param->name), param->location);
  }
  kj_check_c_type(&outside, instance->result, "the result", instance->function->decl->location);
}

/* Callees before callers, but the kernel first; functions that call each other in any order. What only a discarded round called is left out. */
static void collect(kj_inference *inference, kj_record *record)
{
  if (record->is_reached) return;
  record->is_reached = true;
  for (size_t i = 0; i < record->callees.count; i++) collect(inference, record->callees.items[i]);
  if (record->instance->caller) KJ_PUSH(inference->c->arena, &inference->c->instances, record->instance);
  report_messages(inference, record);
}

static void check_shared_bytes(kj_compilation *c)
{
  uint64_t bytes = 0, limit = kj_most_shared_bytes(&c->request->target);
  for (size_t i = 0; i < c->instances.count; i++) {
    const kj_tvars *locals = &c->instances.items[i]->locals;
    for (size_t j = 0; j < locals->count; j++) {
      const kj_type_info *info = kj_type(c->types, locals->items[j]->type);
      if (locals->items[j]->kind != KJ_V_SHARED || !info->is_static) continue;
      uint64_t size = kj_type(c->types, info->element)->size_bytes;
      for (uint32_t k = 0; k < info->rank; k++) size *= (uint64_t)info->extents[k];
      bytes += size;
      if (bytes > limit)
        kj_fail(c, locals->items[j]->location, KJIT_ERROR_UNSUPPORTED,
                "the kernel and what it calls have %llu bytes of shared arrays; a block has at most %llu on %s", (unsigned long long)bytes,
                (unsigned long long)limit, kj_target_text(c));
    }
  }
}

void kj_infer(kj_compilation *c)
{
  kj_inference inference = { .c = c };
  const kj_function *kernel = c->request->kernel;
  inference.constant_count = c->module->decls.count;
  inference.constants = KJ_NEW_ARRAY(c->arena, kj_constant *, inference.constant_count + 1);
  kj_bound *bounds = kj_bind_signature(&inference, kernel);
  kj_record *record = add_record(&inference, kernel, bounds, has_attribute(kernel, KJ_ATTRIBUTE_STRICT), has_attribute(kernel, KJ_ATTRIBUTE_FASTMATH));
  infer_body(&inference, record);
  if (c->request->symbol) check_c_function(&inference, record);
  find_recursion(&inference);
  c->instances.count = 0;
  KJ_PUSH(c->arena, &c->instances, record->instance);
  collect(&inference, record);
  for (size_t i = 0; i < c->instances.count; i++) {
    c->instances.items[i]->id = (uint32_t)i;
    c->instances.items[i]->symbol = make_symbol(c, c->instances.items[i]);
  }
  check_shared_bytes(c);
}

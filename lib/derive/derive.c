/* Creates the derivatives of instances. An existing derivative is used again if it fits. Two calls
 * share a derivative if they differentiate the same instance with the same built-in, with respect
 * to the same parameters, and pass derivatives of the same types. The body of a new derivative
 * comes from a custom rule, or from one of forward.c, reverse.c and adjoint.c. */
#include "derive/derive.h"

#include <string.h>

static bool equal_types(const kt_inferred *record, const kt_exprs *values)
{
  for (size_t i = 0; i < values->count; i++)
    if (record->derivative_types[i] != values->items[i]->type) return false;
  return true;
}

static bool equal_chosen(const kt_vars *a, const kt_vars *b)
{
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i] != b->items[i]) return false;
  return true;
}

static kt_inferred *find_derived(const kt_scope *s, const kt_inferred *of, ki_builtin_id kind,
                                 const kt_vars *chosen, const kt_exprs *values, bool is_transpose)
{
  for (size_t i = 0; i < s->inference->records.count; i++) {
    kt_inferred *record = s->inference->records.items[i];
    if (record->derived_of == of && record->derivative == kind &&
        record->is_transpose == is_transpose && equal_chosen(&record->chosen, chosen) &&
        equal_types(record, values))
      return record;
  }
  return NULL;
}

/* ---- creation ---- */

static kt_var *copy_param(kd_derivation *d, const kt_var *param, const char *name, kjit_type type)
{
  kt_var *made = kt_add_variable(d->s, KJ_V_PARAM, name, type, param->location, KJ_LEVEL_THREAD);
  made->argument = param->argument;
  made->start_alignment = type == param->type ? param->start_alignment : 0;
  return made;
}

/* Adds the func's parameters, followed by the derivatives of the chosen parameters. */
static void add_params(kd_derivation *d, const kt_exprs *values)
{
  const kt_instance *primal = d->primal->instance;
  kt_inferred *record = d->record;
  for (size_t i = 0; i < primal->params.count; i++) {
    kt_var *param = primal->params.items[i];
    copy_param(d, param, param->name, param->type);
  }
  record->derivative_types = KJ_NEW_ARRAY(d->arena, kjit_type, values->count + 1);
  for (size_t i = 0; i < values->count; i++) record->derivative_types[i] = values->items[i]->type;
  size_t at = 0;
  if (d->kind == KJ_BUILTIN_VJP && primal->result != KJIT_VOID) {
    const kt_var like = { .type = primal->result, .location = d->location };
    d->cotangent = copy_param(d, &like, "d_result", values->items[at++]->type);
  }
  for (size_t i = 0; i < record->chosen.count; i++) {
    const kt_var *param = record->chosen.items[i];
    bool is_handed =
      d->kind == KJ_BUILTIN_JVP || d->kind == KJ_BUILTIN_ADJOINT || kt_is_array(d->c, param->type);
    const char *name = kj_format(d->arena, "d_%s", param->name);
    KJ_PUSH(d->arena, &d->derivatives,
            is_handed ? copy_param(d, param, name, values->items[at++]->type) : NULL);
  }
  KJ_ASSERT(at == values->count);
}

/* Marks each chosen parameter as varying, and makes the new parameter its derivative. */
static void start_variables(kd_derivation *d)
{
  d->variables = KJ_NEW_ARRAY(d->arena, kd_variable, d->count + 1);
  for (size_t i = 0; i < d->record->chosen.count; i++) {
    kd_variable *known = &d->variables[d->record->chosen.items[i]->index];
    bool is_sum =
      d->kind == KJ_BUILTIN_ADJOINT && !kt_is_array(d->c, d->record->chosen.items[i]->type);
    known->varies = true;
    known->other = is_sum ? NULL : d->derivatives.items[i];
  }
}

static void take_properties(kt_inferred *record, const kt_inferred *of)
{
  kt_instance *made = record->instance;
  made->has_barrier = of->instance->has_barrier;
  made->has_warp = of->instance->has_warp;
  made->uses_positions = of->instance->uses_positions;
  record->has_grid_range = of->has_grid_range;
  record->has_block_range = of->has_block_range;
  record->result_level = KJ_LEVEL_THREAD;
}

void kd_start(kd_derivation *d)
{
  kd_prepare(d);
  if (d->adjoint) kd_take_atomic_sums(d);
  start_variables(d);
  kd_find_active(d);
  kd_check_body(d);
}

static void derive(kd_derivation *d)
{
  if (d->kind == KJ_BUILTIN_ADJOINT) {
    kd_make_adjoint(d);
    return;
  }
  bool is_derivative = d->primal->derived_of != NULL;
  const ki_function *rule =
    is_derivative ? NULL : kd_own_rule(d, d->primal->instance->function, d->location);
  if (rule) {
    kd_return_rule(d, rule);
    return;
  }
  if (d->primal->instance->function->is_extern)
    kd_refuse(d, d->location,
              "an extern function has no derivative: call it in a function that has a derivative "
              "rule, " KJ_PHRASE(DERIVATIVE_RULE, "`func f(x) @" KJ_PHRASE_ARGUMENT("%s") "(g)`"),
              kd_rule_word(d));
  kd_start(d);
  if (d->record->is_transpose) kd_check_linear(d);
  if (d->kind == KJ_BUILTIN_JVP) kd_make_forward(d);
  else kd_make_reverse(d);
}

/* Checks the total size of the arrays in thread-local memory, which include tapes and
 * derivatives. */
static void check_size(kd_derivation *d)
{
  uint64_t bytes = kd_count_thread_bytes(d->c, d->record->instance);
  if (bytes > KJ_LOCAL_BYTES_LIMIT)
    kd_refuse(d, d->location,
              "the derivative keeps %llu bytes of values per thread; the limit is %llu: a "
              "smaller " KJ_PHRASE(SMALLER_BOUND, "`@most(n)`") " keeps less",
              (unsigned long long)bytes, (unsigned long long)KJ_LOCAL_BYTES_LIMIT);
}

static kt_inferred *add_record(kt_scope *s, kt_inferred *of, kj_location location)
{
  const kt_instance *primal = of->instance;
  kt_inferred *record = kt_add_inferred(s->inference, primal->function, of->bounds, primal->modes);
  record->instance->caller = s->instance;
  record->instance->call_location = location;
  record->derived_of = of;
  take_properties(record, of);
  return record;
}

static kt_inferred *get_derived(kt_scope *s, kt_inferred *of, ki_builtin_id kind,
                                const kt_vars *chosen, const kt_exprs *values, bool is_transpose,
                                kj_location location)
{
  const char *name = of->instance->function->decl->name;
  if (!of->is_done)
    kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "`%s` of `%s` in `%s` itself: a function has no derivative before its body is complete",
            ki_builtin_table[kind].name, name, name);
  kt_inferred *record = find_derived(s, of, kind, chosen, values, is_transpose);
  if (record) return record;
  kt_check_limit(s->c, KJ_LIMIT_INSTANCES, s->inference->records.count + 1, location,
                 "derivatives are instances, too");
  record = add_record(s, of, location);
  record->derivative = kind;
  record->instance->derivative = ki_builtin_table[kind].name;
  record->chosen = *chosen;
  record->is_transpose = is_transpose;
  kt_scope scope;
  kt_init_scope(&scope, s->inference);
  scope.record = record;
  scope.instance = record->instance;
  scope.function = of->instance->function;
  scope.is_quiet = true;
  scope.out = &record->instance->body;
  kd_derivation d = { .s = &scope,
                      .c = s->c,
                      .arena = s->arena,
                      .kind = kind,
                      .record = record,
                      .primal = of,
                      .location = of->instance->function->decl->location };
  const kt_instance *outer = s->c->chain;
  s->c->chain = record->instance;
  add_params(&d, values);
  derive(&d);
  check_size(&d);
  s->c->chain = outer;
  record->is_done = record->instance->is_inferred = true;
  return record;
}

kt_inferred *kd_get_derived(kt_scope *s, kt_inferred *of, ki_builtin_id kind, const kt_vars *chosen,
                            const kt_exprs *values, kj_location location)
{
  return get_derived(s, of, kind, chosen, values, false, location);
}

kt_inferred *kd_get_transpose(kt_scope *s, kt_inferred *of, const kt_vars *chosen,
                              const kt_exprs *values, kj_location location)
{
  return get_derived(s, of, KJ_BUILTIN_VJP, chosen, values, true, location);
}

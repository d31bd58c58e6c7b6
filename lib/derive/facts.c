/* Facts about reverse derivatives: the values that a derivative saves, the size of these values,
 * and the way in which it sums derivatives. lib/derive records these facts, and `--emit
 * derivatives` prints them for all instances.
 *
 * Atomic sums and bytes are counted in the finished instance, because later steps of the derivation
 * can remove statements and variables. */
#include "derive/derive.h"

void kd_note_fact(kd_derivation *d, kj_location location, const kt_var *about, const char *text)
{
  kt_derivative_fact fact = { .location = location, .about = about, .text = text };
  KJ_PUSH(d->arena, &d->record->instance->facts, fact);
}

/* Describes how kd_find_trips determined the maximum number of iterations. */
static const char *describe_trips(const kd_derivation *d, const kt_stmt *loop)
{
  bool is_sure = false;
  uint32_t most = kd_find_trips(d, loop, &is_sure);
  bool is_halving = is_sure && loop->kind != KJ_TS_FOR;
  if (is_halving)
    return kj_format(d->arena, "at most %u, because the loop halves an integer", most);
  if (is_sure || (loop->kind == KJ_TS_FOR && !loop->most))
    return kj_format(d->arena, "%u, a range of constants", most);
  return kj_format(d->arena, "at most %u, by `@most(%u)`", most, loop->most);
}

void kd_note_tape(kd_derivation *d, const kt_stmt *loop, const kt_var *of, const kt_var *tape,
                  bool is_unrolled)
{
  const char *text = kj_format(
    d->arena,
    "tape `%s`: values of %s`%s`, which each iteration changes and the reverse pass needs; "
    "entries: %s",
    tape->name, of->name[0] == '_' ? "the compiler's variable " : "", of->name,
    describe_trips(d, loop));
  kd_note_fact(d, loop->location, tape, text);
  kt_instance *made = d->record->instance;
  made->facts.items[made->facts.count - 1].is_in_registers = is_unrolled;
}

/* ---- the finished instance ---- */

static bool has_variable(const kt_instance *instance, const kt_var *var)
{
  for (size_t i = 0; i < instance->params.count; i++)
    if (instance->params.items[i] == var) return true;
  for (size_t i = 0; i < instance->locals.count; i++)
    if (instance->locals.items[i] == var) return true;
  return false;
}

static uint64_t array_bytes(const kt_compilation *c, const kt_var *array)
{
  const ki_type_info *info = ki_type(c->types, array->type);
  return ki_element_count(info) * ki_type(c->types, info->element)->size_bytes;
}

uint64_t kd_count_thread_bytes(const kt_compilation *c, const kt_instance *instance)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < instance->locals.count; i++)
    if (instance->locals.items[i]->kind == KJ_V_LOCAL)
      bytes += array_bytes(c, instance->locals.items[i]);
  return bytes;
}

typedef struct atomic_count {
  const kt_var *array; /* the array whose atomic sums are counted; NULL counts all arrays */
  uint32_t count;
} atomic_count;

static void count_atomic(void *data, kt_stmt *stmt)
{
  atomic_count *counted = data;
  bool is_atomic = stmt->kind == KJ_TS_EVALUATE && kt_accesses_place(stmt->value) &&
                   stmt->value->builtin->id == KJ_BUILTIN_ATOMIC_ADD;
  if (is_atomic && (!counted->array || kd_root(stmt->value->x) == counted->array)) counted->count++;
}

static uint32_t count_atomics(const kt_instance *instance, const kt_var *array)
{
  atomic_count counted = { .array = array };
  kt_walk_tstmts((kt_stmts *)&instance->body, count_atomic, NULL, &counted);
  return counted.count;
}

/* ---- the stage "derivatives" ---- */

typedef struct fact_printer {
  const kt_compilation *c;
  kj_buffer *out;
} fact_printer;

static void begin_line(const fact_printer *p, kj_location location)
{
  const kj_sources *sources = &p->c->module->sources;
  if (location.line && location.file < sources->count)
    kj_append_format(p->out, "%s:%u:%u: ", sources->items[location.file].name, location.line,
                     location.column);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void print_fact(const fact_printer *p, const kt_instance *instance,
                       const kt_derivative_fact *fact)
{
  const kt_var *about = fact->about;
  if (about && !has_variable(instance, about)) return;
  begin_line(p, fact->location);
  kj_append_format(p->out, "%s", fact->text);
  bool is_own = about && (about->kind == KJ_V_LOCAL || about->kind == KJ_V_SHARED);
  if (is_own)
    kj_append_format(p->out, "; %llu bytes in %s", (unsigned long long)array_bytes(p->c, about),
                     about->kind == KJ_V_SHARED ? "each block"
                     : fact->is_in_registers    ? "registers of each thread"
                                                : "each thread");
  if (about && about->kind != KJ_V_LOCAL) {
    uint32_t atomics = count_atomics(instance, about);
    kj_append_format(p->out, "; %u atomic sum%s", atomics, plural(atomics));
  }
  kj_append_text(p->out, "\n");
}

static uint64_t count_register_bytes(const kt_compilation *c, const kt_instance *instance)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < instance->facts.count; i++) {
    const kt_derivative_fact *fact = &instance->facts.items[i];
    if (fact->is_in_registers && has_variable(instance, fact->about))
      bytes += array_bytes(c, fact->about);
  }
  return bytes;
}

static void print_instance(const fact_printer *p, const kt_instance *instance)
{
  uint64_t registers = count_register_bytes(p->c, instance),
           bytes = kd_count_thread_bytes(p->c, instance) - registers;
  uint32_t atomics = count_atomics(instance, NULL);
  begin_line(p, instance->function->decl->location);
  kj_append_format(p->out, "derivative `%s(%s)`: %llu byte%s of arrays in each thread; ",
                   instance->derivative, instance->function->decl->name, (unsigned long long)bytes,
                   plural(bytes));
  if (registers)
    kj_append_format(p->out, "%llu bytes of tapes in registers; ", (unsigned long long)registers);
  kj_append_format(p->out, "%u atomic sum%s\n", atomics, plural(atomics));
  for (size_t i = 0; i < instance->facts.count; i++)
    print_fact(p, instance, &instance->facts.items[i]);
}

void kd_print_facts(const kt_compilation *c, kj_buffer *out)
{
  fact_printer p = { .c = c, .out = out };
  for (size_t i = 0; i < c->instances.count; i++)
    if (c->instances.items[i]->derivative) print_instance(&p, c->instances.items[i]);
}

/* Inference: the kernel of the request, and every function that it calls, from untyped to typed.
 * Types flow forward from the arguments.
 *
 * Needs: a verified module; a signature whose arguments agree with the parameters in number.
 * Guarantees what typed.h states; kj_verify_typed checks it. */
#include "typing/infer.h"

#include "native/functions.h"

static const char *make_symbol(kj_compilation *c, const kj_instance *instance)
{
  const char *name = instance->function->decl->name;
  if (!instance->caller && c->request->symbol) return c->request->symbol;
  if (instance->function->is_extern) return name;
  /* A kernel `expf` that calls exp must not call itself. */
  if (instance->is_kernel)
    return kj_is_library_name(name) ? kj_format(c->arena, "%s$kernel", name) : name;
  char *symbol = kj_format(c->arena, "%s$%u", name, instance->id);
  for (char *at = symbol; at[0] && at[0] != '$'; at++) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9') || *at == '_';
    if (!is_plain) *at = '_';
  }
  return symbol;
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
      kj_check_c_type(&outside, param->type,
                      kj_format(inference->c->arena, "parameter `%s`", param->name),
                      param->location);
  }
  kj_check_c_type(&outside, instance->result, "the result", instance->function->decl->location);
}

/* Callees before callers, but the kernel first; functions that call each other in any order. What
 * only a discarded round called is left out. */
static void collect(kj_inference *inference, kj_record *record)
{
  if (record->is_reached) return;
  record->is_reached = true;
  for (size_t i = 0; i < record->callees.count; i++) collect(inference, record->callees.items[i]);
  if (record->instance->caller)
    KJ_PUSH(inference->c->arena, &inference->c->instances, record->instance);
  kj_report_messages(inference, record);
}

static void check_shared_bytes(kj_compilation *c)
{
  uint64_t bytes = 0, limit = kj_most_shared_bytes(&c->request->target);
  for (size_t i = 0; i < c->instances.count; i++) {
    const kj_tvars *locals = &c->instances.items[i]->locals;
    for (size_t j = 0; j < locals->count; j++) {
      const kj_type_info *info = kj_type(c->types, locals->items[j]->type);
      if (locals->items[j]->kind != KJ_V_SHARED || !info->is_static) continue;
      bytes += kj_element_count(info) * kj_type(c->types, info->element)->size_bytes;
      if (bytes > limit)
        kj_fail(c, locals->items[j]->location, KJIT_ERROR_UNSUPPORTED,
                "the kernel and what it calls have %llu bytes of shared arrays; a block has at "
                "most %llu on %s",
                (unsigned long long)bytes, (unsigned long long)limit, kj_target_text(c));
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
  bool is_strict = kj_get_attribute(&kernel->attributes, KJ_ATTRIBUTE_STRICT),
       is_fastmath = kj_get_attribute(&kernel->attributes, KJ_ATTRIBUTE_FASTMATH);
  kj_record *record = kj_add_record(&inference, kernel, bounds, is_strict, is_fastmath);
  kj_infer_body(&inference, record);
  if (c->request->symbol) check_c_function(&inference, record);
  kj_find_recursion(&inference);
  c->instances.count = 0;
  KJ_PUSH(c->arena, &c->instances, record->instance);
  collect(&inference, record);
  for (size_t i = 0; i < c->instances.count; i++) {
    c->instances.items[i]->id = (uint32_t)i;
    c->instances.items[i]->symbol = make_symbol(c, c->instances.items[i]);
  }
  check_shared_bytes(c);
}

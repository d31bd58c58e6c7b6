/* kj_finish_module: resolves what the parser and the builder left open and checks everything that
 * needs no types. After it, typing meets only what it knows. */
#include <string.h>

#include "ir/verify.h"

enum { MAX_ERRORS = 10 };

static void count_error(kj_verifier *v)
{
  if (v->diagnostics->error_count >= MAX_ERRORS) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

void kj_fail_verify(kj_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...)
{
  count_error(v);
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
}

void kj_note_verify(kj_verifier *v, kj_location location, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, format,
                 list);
  va_end(list);
}

/* ---- the module ---- */

/* Constants of a builder are known by their nodes, not by name. */
static void collect_names(kj_verifier *v)
{
  for (size_t i = 0; i < v->module->decls.count; i++) {
    kj_decl *decl = v->module->decls.items[i];
    decl->index = (uint32_t)i;
    if (!v->is_text && decl->kind != KJ_DECL_FUNCTION && decl->kind != KJ_DECL_STRUCT) continue;
    kj_map_entry *entry = kj_get_entry(&v->decls, decl->name, strlen(decl->name));
    if (entry->value) {
      const kj_decl *first = entry->value;
      kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is declared twice in the module",
                     decl->name);
      kj_note_verify(v, first->location, "`%s` is first declared here", decl->name);
    } else entry->value = decl;
  }
}

void kj_finish_module(kjit_module *module, kj_diagnostics *diagnostics)
{
  kj_verifier *v = KJ_NEW(&module->arena, kj_verifier);
  *v = (kj_verifier){ .module = module, .diagnostics = diagnostics, .arena = &module->arena };
  v->is_text = module->sources.count && module->sources.items[0].text;
  kj_init_map(&v->decls, v->arena);
  collect_names(v);
  v->summaries = KJ_NEW_ARRAY(v->arena, kj_summary, module->decls.count + 1);
  kj_resolve_structs(v);
  for (size_t i = 0; i < module->decls.count; i++) {
    kj_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION) kj_verify_function(v, decl);
    else if (decl->kind == KJ_DECL_STRUCT)
      kj_verify_attributes(v, &decl->attributes, KJ_PLACE_STRUCT);
    else kj_verify_constant(v, decl);
  }
  kj_verify_constant_cycles(v);
  kj_verify_calls(v);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION)
      module->decls.items[i]->function->module = module;
  if (diagnostics->error_count) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

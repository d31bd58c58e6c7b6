/* Partial modules: modules of algorithms without most function bodies. The generated text of an
 * algorithm names a few funcs of lib/library, and these funcs call many others. If the compiled
 * code of the kernel is in a cache, a launch needs only the kernel itself, so a partial module has
 * only the headers of the funcs that the text names. All declarations are parsed when the kernel
 * must be compiled. */
#include <string.h>

#include "ir/module.h"

void ki_begin_partial(kjit_module *module, const ki_text *text)
{
  KJ_ASSERT(text->is_algorithm && !module->partial);
  kj_arena *arena = &module->arena;
  ki_named_type *types = KJ_NEW_ARRAY(arena, ki_named_type, text->type_count + 1);
  for (size_t i = 0; i < text->type_count; i++) {
    const char *name = text->types[i].name;
    types[i] = (ki_named_type){ kj_copy_string(arena, name, strlen(name)), text->types[i].type };
  }
  module->partial = KJ_NEW(arena, ki_partial);
  module->partial->types = types;
  module->partial->type_count = text->type_count;
}

kjit_status ki_get_whole(kjit_module *module, kj_diagnostics *diagnostics, kjit_module **whole)
{
  ki_partial *partial = module->partial;
  kjit_module *known = partial ? atomic_load(&partial->whole) : module, *made;
  *whole = known;
  if (known) return KJIT_OK;
  const kj_source *source = &module->sources.items[0];
  const ki_text text = { .name = source->name,
                         .text = source->text,
                         .size_bytes = source->size_bytes,
                         .is_algorithm = true,
                         .types = partial->types,
                         .type_count = partial->type_count };
  KJ_TRY(ki_parse_module(module->context, module->types, &text, diagnostics, &made));
  KJ_ASSERT(made->sources.count == module->sources.count);
  if (atomic_compare_exchange_strong(&partial->whole, &known, made)) known = made;
  /* another thread has completed the same parse first, so its result is used */
  else kjit_release_module(made);
  *whole = known;
  return KJIT_OK;
}

uint64_t ki_parse_time(const kjit_module *module)
{
  const kjit_module *base = module->later ? module->bases.items[0] : module;
  const kjit_module *whole = base->partial ? atomic_load(&base->partial->whole) : NULL;
  return module->parse_time_ns + (whole ? whole->parse_time_ns : 0);
}

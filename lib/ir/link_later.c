/* Modules that are linked when they are compiled. If a kernel's code is in the disk cache, a launch
 * needs only the module's text, so the module need not be linked. The base module can be a partial
 * module (partial.c). */
#include <string.h>

#include "ir/module.h"

/* A launch looks up the application's functions in the module of the launched kernel. A library
 * with bound extern funcs must therefore be linked before the launch. */
bool ki_can_link_later(const ki_meaning *meanings, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (ki_has_bound_extern(meanings[i].decl->function->module)) return false;
  return count != 0;
}

static void append_sources(kjit_module *made, const kjit_module *from)
{
  size_t count = made->sources.count, more = from->sources.count;
  kj_source *sources = KJ_NEW_ARRAY(&made->arena, kj_source, count + more + 1);
  if (count) memcpy(sources, made->sources.items, count * sizeof *sources);
  if (more) memcpy(sources + count, from->sources.items, more * sizeof *sources);
  made->sources = (kj_sources){ sources, count + more };
}

static void add_library(kjit_module *made, kjit_module *library)
{
  ki_later *later = made->later;
  for (size_t i = 0; i < later->library_count; i++)
    if (later->libraries[i] == library) return;
  append_sources(made, library);
  KJ_ASSERT(later->library_count < KI_MOST_MEANINGS);
  KJ_ASSERT(!ki_has_bound_extern(library) && !library->later);
  later->libraries[later->library_count++] = kjit_retain_module(library);
  made->has_tensor_copies |= library->has_tensor_copies;
  made->has_guest |= library->has_guest;
  made->hands_over_writer |= library->hands_over_writer;
}

/* Sets the module's contents. Its sources get the same numbers as in the linked module, so that
 * locations in compiled code are also valid in this module. */
static void fill(kjit_module *made, kjit_module *base, const ki_meaning *meanings, size_t count)
{
  ki_later *later = KJ_NEW(&made->arena, ki_later);
  ki_meaning *own = KJ_NEW_ARRAY(&made->arena, ki_meaning, count + 1);
  if (count) memcpy(own, meanings, count * sizeof *own);
  *later = (ki_later){ .meanings = own, .count = count };
  made->later = later;
  KJ_PUSH(&made->arena, &made->bases, base);
  (void)kjit_retain_module(base);
  made->decls = base->decls;
  made->parse_time_ns = base->parse_time_ns;
  made->is_linked = true;
  made->has_tensor_copies = base->has_tensor_copies;
  made->has_guest = base->has_guest;
  made->hands_over_writer = base->hands_over_writer;
  append_sources(made, base);
  for (size_t i = 0; i < count; i++) add_library(made, own[i].decl->function->module);
}

kjit_module *ki_link_later(kjit_module *base, const ki_meaning *meanings, size_t count)
{
  jmp_buf on_failure;
  kjit_module *made = ki_create_module(base->context, base->types);
  if (!made) return NULL;
  made->arena.on_failure = &on_failure;
  if (setjmp(on_failure)) {
    ki_destroy_module(made);
    return NULL;
  }
  fill(made, base, meanings, count);
  made->arena.on_failure = NULL;
  ki_publish_module(made);
  return made;
}

const ki_function *ki_find_meaning(const kjit_module *module, const ki_decl *open)
{
  const ki_later *later = module->later;
  for (size_t i = 0; later && i < later->count; i++)
    if (later->meanings[i].open == open) return later->meanings[i].decl->function;
  return NULL;
}

static bool is_kernel(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel;
}

/* Returns the extern func of `whole` that corresponds to the func of a partial module. */
static const ki_decl *find_open(const kjit_module *whole, const ki_decl *open)
{
  const ki_decl *found = ki_find_decl(whole, open->name);
  KJ_ASSERT(found && found->function && found->function->is_extern);
  return found;
}

kjit_status ki_link_whole(const kjit_module *module, kjit_module *whole,
                          kj_diagnostics *diagnostics, kjit_module **linked)
{
  const ki_later *later = module->later;
  ki_meaning meanings[KI_MOST_MEANINGS];
  bool is_partial = whole != module->bases.items[0];
  KJ_ASSERT(later && later->count <= KI_MOST_MEANINGS);
  for (size_t i = 0; i < later->count; i++) {
    const ki_meaning *meaning = &later->meanings[i];
    meanings[i] =
      (ki_meaning){ is_partial ? find_open(whole, meaning->open) : meaning->open, meaning->decl };
  }
  return ki_link_meanings(whole, meanings, later->count, diagnostics, linked);
}

const ki_function *ki_find_linked_kernel(const kjit_module *base, const kjit_module *linked,
                                         const ki_decl *kernel)
{
  size_t before = 0; /* number of kernels that precede `kernel` in base */
  for (size_t i = 0; base->decls.items[i] != kernel; i++) before += is_kernel(base->decls.items[i]);
  size_t i = 0;
  while (!is_kernel(linked->decls.items[i]) || before--) i++;
  KJ_ASSERT(!strcmp(linked->decls.items[i]->name, kernel->name));
  return linked->decls.items[i]->function;
}

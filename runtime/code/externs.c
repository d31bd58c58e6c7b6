/* What the host gave for extern funcs of a module, as loading and linking want it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"

static const ki_bound_extern *bound_of(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION ? decl->function->bound : NULL;
}

kjit_status kj_list_outside(const kjit_module *module, kj_diagnostics *diagnostics,
                            kj_outside *outside)
{
  kj_outside_function *items = NULL;
  size_t count = 0;
  for (size_t i = 0; i < module->decls.count; i++)
    count += bound_of(module->decls.items[i]) != NULL;
  *outside = (kj_outside){ 0 };
  if (!count) return KJIT_OK;
  items = calloc(count, sizeof *items);
  if (!items) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  count = 0;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    if (bound && bound->host_function)
      items[count++] = (kj_outside_function){ module->decls.items[i]->name,
                                              (void *)(uintptr_t)bound->host_function };
  }
  *outside = (kj_outside){ items, count };
  return KJIT_OK;
}

void kj_free_outside(kj_outside *outside) { free((void *)outside->items); }

static bool is_name_part(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* As a whole word. */
static bool mentions(const char *text, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
    if ((at == text || !is_name_part(at[-1])) && !is_name_part(at[length])) return true;
  return false;
}

size_t kj_list_extern_ptx(const kjit_module *module, const char *ptx, kj_link_input *inputs)
{
  size_t count = 0;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    if (!bound || bound->kind != KJ_CODE_PTX || !mentions(ptx, module->decls.items[i]->name))
      continue;
    bool is_there = false;
    for (size_t j = 0; j < count; j++)
      is_there |= inputs[j].size_bytes == bound->size_bytes &&
                  !memcmp(inputs[j].ptx, bound->code, bound->size_bytes);
    if (!is_there)
      inputs[count++] =
        (kj_link_input){ module->decls.items[i]->name, bound->code, bound->size_bytes };
  }
  return count;
}

bool kj_has_extern_ptx(const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    if (bound && bound->kind == KJ_CODE_PTX) return true;
  }
  return false;
}

void kj_add_extern_key(const kjit_module *module, bool takes_ptx, kj_buffer *text)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    if (!bound) continue;
    if (takes_ptx && bound->kind != KJ_CODE_NONE)
      kj_append_format(text, "extern %s %016llx%016llx\n", module->decls.items[i]->name,
                       (unsigned long long)bound->digest[1], (unsigned long long)bound->digest[0]);
    else if (!takes_ptx && bound->host_function)
      kj_append_format(text, "extern %s of the host\n", module->decls.items[i]->name);
  }
}

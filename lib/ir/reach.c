/* What a kernel is made of, as text: its declaration and those that it reaches.
 *
 * The text itself is searched for names, not the tree: what is not in the canonical text has no
 * meaning, so nothing that the kernel depends on can be missed, whatever nodes the tree has. A
 * local name that is also one of the module brings in more than needed, which does no harm. */
#include <ctype.h>
#include <string.h>

#include "ir/naming.h"

typedef struct reacher {
  const kjit_module *module;
  kj_arena *arena;
  kj_buffer *buffer;
  kj_naming naming;
  kj_map declared; /* printed name -> declaration that is not yet in the list */
  KJ_LIST(const kj_decl *) reached;
} reacher;

static void reach_name(reacher *r, const char *name, size_t length)
{
  kj_map_entry *entry = kj_find_entry(&r->declared, name, length);
  if (!entry || !entry->value) return;
  KJ_PUSH(r->arena, &r->reached, (const kj_decl *)entry->value);
  entry->value = NULL;
}

static bool is_name_part(char c)
{
  return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void reach_names(reacher *r, size_t start)
{
  for (size_t at = start; at < r->buffer->length;) {
    size_t end = at;
    while (end < r->buffer->length && is_name_part(r->buffer->text[end])) end++;
    if (end > at) reach_name(r, r->buffer->text + at, end - at);
    at = end + 1;
  }
}

static void declare(reacher *r, const kj_decl *decl)
{
  const char *name = kj_printed_name(&r->naming, decl);
  kj_get_entry(&r->declared, name, strlen(name))->value = (void *)decl;
}

static void print_reachable(reacher *r, const kj_decl *const *roots, size_t count)
{
  kj_choose_names(&r->naming, r->module, r->arena);
  kj_init_map(&r->declared, r->arena);
  for (size_t i = 0; i < r->module->decls.count; i++) declare(r, r->module->decls.items[i]);
  for (size_t i = 0; i < count; i++) {
    const char *name = kj_printed_name(&r->naming, roots[i]);
    reach_name(r, name, strlen(name));
  }
  for (size_t i = 0; i < r->reached.count; i++) {
    size_t start = r->buffer->length;
    kj_print_decl(r->module, &r->naming, r->reached.items[i], r->buffer);
    reach_names(r, start);
  }
}

void kj_print_reachable(const kjit_module *module, const kj_decl *const *roots, size_t count,
                        kj_buffer *buffer)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    reacher *r = KJ_NEW(&arena, reacher);
    *r = (reacher){ .module = module, .arena = &arena, .buffer = buffer };
    print_reachable(r, roots, count);
  } else buffer->failed = 1;
  kj_free_arena(&arena);
}

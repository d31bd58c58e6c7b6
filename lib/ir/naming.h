/* Names for printing. Those of a parsed module are right as they are; those of a built one may be
 * no identifiers, may be used twice, and may hide what they must not. */
#ifndef KJ_IR_NAMING_H
#define KJ_IR_NAMING_H

#include "ir/module.h"
#include "support/map.h"

typedef struct kj_naming {
  const kj_types *types;
  kj_arena *arena;
  kj_map changed; /* address of a declaration -> its new name; the others keep theirs */
  /* every name that means something somewhere in the module -> the last number tried behind it */
  kj_map taken;
  kj_map bound; /* while a function is walked: name -> chain of local declarations */
  KJ_LIST(struct kj_bound *) open;
  kj_map global; /* name -> func or constant of a built module */
  uint32_t scope;
} kj_naming;

/* Decides the names of all declarations of the module, so that the text, parsed, means the same.
 * Jumps through arena->on_failure when out of memory. */
void kj_choose_names(kj_naming *naming, const kjit_module *module, kj_arena *arena);
/* naming NULL: the declaration's own name. */
const char *kj_printed_name(const kj_naming *naming, const kj_decl *decl);
/* One function, constant or struct of the module, as kj_print_module prints it. */
void kj_print_decl(const kjit_module *module, const kj_naming *naming, const kj_decl *decl,
                   kj_buffer *buffer);

#endif

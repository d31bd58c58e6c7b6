/* The printer of modules (printer.c), and the names that it prints (canonical.c). */
#ifndef KJ_IR_PRINTER_H
#define KJ_IR_PRINTER_H

#include "ir/module.h"
#include "support/containers.h"

/* Names for printing. Those of a parsed module are right as they are; those of a built one may be
 * no identifiers, may be used twice, and may hide what they must not. */

typedef struct ki_naming {
  const ki_types *types;
  kj_arena *arena;
  kj_map changed; /* address of a declaration -> its new name; the others keep theirs */
  /* every name that means something somewhere in the module -> the last number tried behind it */
  kj_map taken;
  kj_map bound; /* while a function is walked: name -> chain of local declarations */
  KJ_LIST(struct ki_bound *) open;
  kj_map global;  /* name -> func, constant or struct of a built module */
  kj_map structs; /* type -> the declaration that it is known by */
  uint32_t scope;
} ki_naming;

/* Decides the names of all declarations of the module, so that the text, parsed, means the same.
 * Jumps through arena->on_failure when out of memory. */
void ki_choose_names(ki_naming *naming, const kjit_module *module, kj_arena *arena);
/* Whether the tuples among the parameters of a kernel are known, so that it is printed with them
 * and not with their items. */
static inline bool ki_prints_tuples(const ki_function *function)
{
  return function->has_tuples && function->shape.count > 0;
}
/* naming NULL: the declaration's own name. */
const char *ki_printed_name(const ki_naming *naming, const ki_decl *decl);
/* The name of a struct's type, by its declaration. */
const char *ki_printed_struct(const ki_naming *naming, const ki_types *types, kjit_type type);
/* One function, constant or struct of the module, as ki_print_module prints it. */
void ki_print_decl(const kjit_module *module, const ki_naming *naming, const ki_decl *decl,
                   kj_buffer *buffer);

typedef struct ki_printer {
  const kjit_module *module;
  const ki_naming *naming; /* NULL: names as given */
  kj_buffer *buffer;
  int indent;
  bool has_places; /* line directives are printed, so that a parser gives the nodes their places */
  kj_location place; /* that a parser would give the next token; line 0: its own in the text */
} ki_printer;

/* How tightly an expression holds together; the numbers between are those of ops.def. */
enum { KJ_LEVEL_CONDITIONAL = 0, KJ_LEVEL_POSTFIX = 13, KJ_LEVEL_PRIMARY = 14 };

static inline void ki_put(ki_printer *p, const char *text) { kj_append_text(p->buffer, text); }

/* ---- printer.c: expressions and types ---- */

/* In parentheses where the expression holds together less tightly than least. */
void ki_put_expr(ki_printer *p, const ki_expr *expr, int least);
void ki_put_list(ki_printer *p, const ki_exprs *list);
/* In quotes. */
void ki_put_string(ki_printer *p, const char *text);
void ki_put_type(ki_printer *p, const ki_type_expr *type);

/* ---- printer.c: a constant that a host gave as data ---- */

void ki_put_data_type(ki_printer *p, const ki_decl *decl);
void ki_put_data(ki_printer *p, const ki_decl *decl);

#endif

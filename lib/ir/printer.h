/* The printer of modules (printer.c, print_expr.c) and the choice of the names that it prints
 * (canonical.c). */
#ifndef KJ_IR_PRINTER_H
#define KJ_IR_PRINTER_H

#include "ir/module.h"
#include "support/containers.h"

/* Names for printing. The names of a parsed module are printed unchanged. In a built module, a name
 * can be no identifier, occur twice, or hide another declaration; the printer then needs a new
 * one. */

typedef struct ki_naming {
  const ki_types *types;
  kj_arena *arena;
  /* maps the address of a declaration to its new name; other declarations keep their name */
  kj_map changed;
  /* maps every name used in the module to the last number that was tried as its suffix */
  kj_map taken;
  kj_map bound; /* while a function is walked: from a name to its chain of local declarations */
  KJ_LIST(struct ki_bound *) open;
  kj_map global;  /* maps a name to the func, constant or struct of a built module */
  kj_map structs; /* maps a struct type to its declaration */
  uint32_t scope;
} ki_naming;

/* Chooses the names of all declarations so that the printed text parses to an equivalent module.
 * Jumps through arena->on_failure when out of memory. */
void ki_choose_names(ki_naming *naming, const kjit_module *module, kj_arena *arena);
/* Whether a kernel is printed with its tuple parameters instead of their items. The shape of the
 * tuples is known only if the kernel was parsed. */
static inline bool ki_prints_tuples(const ki_function *function)
{
  return function->has_tuples && function->shape.count > 0;
}
/* Returns the name to print. If naming is NULL, this is the declaration's own name. */
const char *ki_printed_name(const ki_naming *naming, const ki_decl *decl);
/* Returns the printed name of the declaration of a struct type. */
const char *ki_printed_struct(const ki_naming *naming, const ki_types *types, kjit_type type);
/* Prints one function, constant or struct of the module in the form of ki_print_module. */
void ki_print_decl(const kjit_module *module, const ki_naming *naming, const ki_decl *decl,
                   kj_buffer *buffer);

typedef struct ki_printer {
  const kjit_module *module;
  const ki_naming *naming; /* NULL means the declarations' own names */
  kj_buffer *buffer;
  int indent;
  bool has_places; /* print line directives, so that a parser restores the locations of the nodes */
  kj_location place; /* location that a parser gives the next token; line 0 means its own */
} ki_printer;

/* Precedence levels of expressions. The levels of operators (ops.def) are in between. */
enum { KJ_LEVEL_CONDITIONAL = 0, KJ_LEVEL_POSTFIX = 13, KJ_LEVEL_PRIMARY = 14 };

static inline void ki_put(ki_printer *p, const char *text) { kj_append_text(p->buffer, text); }

/* ---- print_expr.c: expressions and types ---- */

/* Prints a line directive before a token if a parser would otherwise give the token another
 * location, and then `behind`. Returns whether it was printed. */
bool ki_put_place(ki_printer *p, kj_location at, const char *behind);
/* Prints the expression, in parentheses if its level is below `least`. */
void ki_put_expr(ki_printer *p, const ki_expr *expr, int least);
void ki_put_list(ki_printer *p, const ki_exprs *list);
/* Prints a string literal. */
void ki_put_string(ki_printer *p, const char *text);
void ki_put_type(ki_printer *p, const ki_type_expr *type);

/* ---- print_expr.c: a constant that the application gave as data ---- */

void ki_put_data_type(ki_printer *p, const ki_decl *decl);
void ki_put_data(ki_printer *p, const ki_decl *decl);

#endif

/* The printer of modules (printer.c, print_expr.c) and the choice of the names that it prints
 * (canonical.c). */
#ifndef KJ_IR_PRINTER_H
#define KJ_IR_PRINTER_H

#include "ir/module.h"
#include "support/containers.h"

/* The names that are printed. A parsed module keeps its names. In a built module, a name can be
 * invalid as an identifier, occur twice, or hide another declaration. The declaration then gets
 * another printed name. */

typedef struct ki_naming {
  const ki_types *types;
  kj_arena *arena;
  /* maps a declaration's address to its new name; other declarations keep their names */
  kj_map changed;
  /* maps each name that the module uses to the last suffix number that was tried for it */
  kj_map taken;
  /* while a function is visited: maps a name to the chain of its local declarations */
  kj_map bound;
  KJ_LIST(struct ki_bound *) open;
  kj_map global;  /* maps a name to the func, constant or struct of a built module */
  kj_map structs; /* maps a struct type to its declaration */
  uint32_t scope;
} ki_naming;

/* Chooses the names of all declarations so that the printed text parses to an equivalent module.
 * Jumps through arena->on_failure when out of memory. */
void ki_choose_names(ki_naming *naming, const kjit_module *module, kj_arena *arena);
/* Returns whether a kernel is printed with tuple parameters instead of their items. The tuples are
 * known only if the kernel was parsed. */
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
  const ki_naming *naming; /* NULL means that declarations are printed with their own names */
  kj_buffer *buffer;
  int indent;
  /* print line directives, so that parsing the text restores the nodes' locations */
  bool has_places;
  /* the location that a parser will give the next token; line 0 means the token's own location */
  kj_location place;
} ki_printer;

/* Precedence levels of expressions. The levels of operators (ops.def) are between these levels. */
enum { KJ_LEVEL_CONDITIONAL = 0, KJ_LEVEL_POSTFIX = 13, KJ_LEVEL_PRIMARY = 14 };

static inline void ki_put(ki_printer *p, const char *text) { kj_append_text(p->buffer, text); }

/* ---- print_expr.c: expressions and types ---- */

/* If a parser would give the next token the wrong location, prints a line directive and then
 * `behind`. Returns whether the directive was printed. */
bool ki_put_place(ki_printer *p, kj_location at, const char *behind);
/* Prints the expression. Adds parentheses if the precedence level of the expression is below
 * `least`. */
void ki_put_expr(ki_printer *p, const ki_expr *expr, int least);
void ki_put_list(ki_printer *p, const ki_exprs *list);
/* Prints a string literal. */
void ki_put_string(ki_printer *p, const char *text);
void ki_put_type(ki_printer *p, const ki_type_expr *type);

/* ---- print_expr.c: a constant that was created from data ---- */

void ki_put_data_type(ki_printer *p, const ki_decl *decl);
void ki_put_data(ki_printer *p, const ki_decl *decl);

#endif

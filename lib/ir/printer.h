/* What the files of the printer share: printer.c (statements, declarations, modules), print_expr.c
 * and print_data.c. */
#ifndef KJ_IR_PRINTER_H
#define KJ_IR_PRINTER_H

#include "ir/naming.h"

typedef struct kj_printer {
  const kjit_module *module;
  const kj_naming *naming; /* NULL: names as given */
  kj_buffer *buffer;
  int indent;
} kj_printer;

/* How tightly an expression holds together; the numbers between are those of ops.def. */
enum { KJ_LEVEL_CONDITIONAL = 0, KJ_LEVEL_POSTFIX = 13, KJ_LEVEL_PRIMARY = 14 };

static inline void kj_put(kj_printer *p, const char *text) { kj_append_text(p->buffer, text); }

/* ---- print_expr.c: expressions and types ---- */

/* In parentheses where the expression holds together less tightly than least. */
void kj_put_expr(kj_printer *p, const kj_expr *expr, int least);
void kj_put_list(kj_printer *p, const kj_exprs *list);
/* In quotes. */
void kj_put_string(kj_printer *p, const char *text);
void kj_put_type(kj_printer *p, const kj_type_expr *type);

/* ---- print_data.c: a constant that a host gave as data ---- */

void kj_put_data_type(kj_printer *p, const kj_decl *decl);
void kj_put_data(kj_printer *p, const kj_decl *decl);

#endif

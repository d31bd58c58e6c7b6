/* What print.c (instances and statements) and print_expr.c share. */
#ifndef KJ_TYPING_PRINT_H
#define KJ_TYPING_PRINT_H

#include "typing/typed.h"

typedef struct kj_typed_printer {
  const kj_compilation *c;
  kj_buffer *out;
  const kj_instance *instance;
  int indent;
} kj_typed_printer;

static inline void kj_put_typed(kj_typed_printer *p, const char *value)
{
  kj_append_text(p->out, value);
}

/* ---- print_expr.c ---- */

void kj_put_typed_expr(kj_typed_printer *p, const kj_texpr *e);
void kj_put_typed_var(kj_typed_printer *p, const kj_tvar *var);
void kj_put_typed_index(kj_typed_printer *p, const kj_texpr *array, const kj_texprs *indices);
void kj_put_typed_call(kj_typed_printer *p, const char *name, const kj_texprs *args);

#endif

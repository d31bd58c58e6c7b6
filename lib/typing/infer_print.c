/* Inference of print: what is printed, and the line around it. */
#include "typing/infer.h"

/* Control characters are escaped, so that those that mark values are no user's: see
 * kj_tstmt.message. */
static void append_string(kj_buffer *line, const char *text)
{
  enum { FIRST_PRINTABLE = 32, SHIFT = 64 };
  for (const char *at = text; *at; at++) {
    if ((unsigned char)*at >= FIRST_PRINTABLE) kj_append(line, at, 1);
    else kj_append_format(line, "%c%c", KJ_PRINT_ESCAPE, *at + SHIFT);
  }
}

static const char *make_line(kj_scope *s, const kj_exprs *items)
{
  kj_buffer line = { 0 };
  kj_append_text(&line, "");
  for (size_t i = 0; i < items->count; i++) {
    if (i) kj_append_text(&line, " ");
    if (items->items[i]->kind == KJ_EXPR_STRING) append_string(&line, items->items[i]->name);
    else kj_append_format(&line, "%c", KJ_PRINT_VALUE);
  }
  const char *text = line.failed ? NULL : kj_copy_string(s->arena, line.text, line.length);
  kj_free_buffer(&line);
  if (!text) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return text;
}

/* Arrays are references, and a line holds what is known when it is printed. */
static void check_value(kj_scope *s, const kj_texpr *value)
{
  if (!kj_is_array(s->c, value->type)) return;
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "an array (%s) cannot be printed: print its elements, or its `.shape`",
          kj_type_text(s->c, value->type));
}

/* A literal that is only printed is no f64 arithmetic. */
static kj_texpr *make_printed(kj_scope *s, kj_texpr *value)
{
  if (value->type == KJ_WEAK_FLOAT && kj_is_constant(value))
    return kj_new_number(s, KJIT_F64, value->number, value->location);
  return kj_make_concrete(s, value);
}

void kj_infer_print(kj_scope *s, const kj_stmt *stmt)
{
  kj_exprs given = { 0 };
  kj_texprs values = { 0 };
  for (size_t i = 0; i < stmt->args.count; i++)
    if (stmt->args.items[i]->kind != KJ_EXPR_STRING) KJ_PUSH(s->arena, &given, stmt->args.items[i]);
  kj_infer_list(s, &given, &values);
  kj_tstmt *print = kj_new_tstmt(s->c, KJ_TS_PRINT, stmt->location);
  for (size_t i = 0; i < values.count; i++) {
    check_value(s, values.items[i]);
    KJ_PUSH(s->arena, &print->indices, make_printed(s, values.items[i]));
  }
  print->message = make_line(s, &stmt->args);
  kj_emit(s, print);
}

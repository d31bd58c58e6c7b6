/* The typed IR as text, for --emit typed and for tests. Constants carry their type, conversions are
 * calls of it; a name that is used for several variables gets their number. */
#include <string.h>

#include "typing/print.h"

static void print_type(kj_typed_printer *p, kjit_type type)
{
  kj_print_type(p->c->types, type, p->out);
}

/* ---- statements ---- */

static void print_block(kj_typed_printer *p, const kj_tstmts *stmts);

static void print_var_type(kj_typed_printer *p, const kj_tvar *var)
{
  kj_put_typed(p, ": ");
  print_type(p, var->type);
  if (var->is_narrow) kj_put_typed(p, " narrow");
  if (var->is_slot) kj_put_typed(p, " slot");
  if (var->is_uniform) kj_put_typed(p, " uniform");
}

static void print_assign(kj_typed_printer *p, const kj_tstmt *s)
{
  if (s->var->kind == KJ_V_LET) kj_put_typed(p, "let ");
  kj_put_typed_var(p, s->var);
  if (s->var->kind == KJ_V_LET) print_var_type(p, s->var);
  kj_put_typed(p, " = ");
  kj_put_typed_expr(p, s->value);
}

static void print_store(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed_index(p, s->array, &s->indices);
  kj_put_typed(p, " = ");
  kj_put_typed_expr(p, s->value);
}

static void print_if(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "if ");
  kj_put_typed_expr(p, s->value);
  print_block(p, &s->body);
  if (s->otherwise.count == 0) return;
  kj_put_typed(p, " else");
  print_block(p, &s->otherwise);
}

/* How a loop is run, by its attributes and by the passes. */
static void print_unroll(kj_typed_printer *p, const kj_tstmt *s)
{
  if (s->is_joint) kj_put_typed(p, " joint");
  if (s->is_threadless) kj_put_typed(p, " threadless");
  if (s->unroll == KJ_UNROLL_FULL) kj_put_typed(p, " @unroll");
  else if (s->unroll != KJ_UNROLL_NONE) kj_append_format(p->out, " @unroll(%d)", s->unroll);
}

static void print_while(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "while ");
  kj_put_typed_expr(p, s->value);
  print_unroll(p, s);
  print_block(p, &s->body);
}

/* Where these hold when the loop starts, checks in it are left out. */
static void print_conditions(kj_typed_printer *p, const kj_tstmt *s)
{
  for (size_t i = 0; s->hoisted && i < s->indices.count; i++) {
    kj_put_typed(p, i ? " and " : " unchecked if ");
    kj_put_typed_expr(p, s->indices.items[i]);
  }
}

static void print_for(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "for ");
  kj_put_typed_var(p, s->var);
  print_var_type(p, s->var);
  kj_put_typed(p, " in range(");
  kj_put_typed_expr(p, s->first);
  kj_put_typed(p, ", ");
  kj_put_typed_expr(p, s->stop);
  kj_put_typed(p, ", ");
  kj_put_typed_expr(p, s->step);
  kj_put_typed(p, ")");
  print_unroll(p, s);
  print_conditions(p, s);
  print_block(p, &s->body);
}

static void print_range(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "for ");
  for (size_t i = 0; i < s->vars.count; i++) {
    if (i) kj_put_typed(p, ", ");
    kj_put_typed_var(p, s->vars.items[i]);
    if (s->vars.items[i]->is_narrow) kj_put_typed(p, ": i64 narrow");
  }
  kj_put_typed(p, " in ");
  kj_put_typed_call(p, s->kind == KJ_TS_GRID_FOR ? "grid_range" : "block_range", &s->extents);
  print_unroll(p, s);
  print_conditions(p, s);
  print_block(p, &s->body);
}

static void print_result(kj_typed_printer *p, const kj_tstmt *s)
{
  if (s->var) {
    kj_put_typed_var(p, s->var);
    kj_put_typed(p, " = ");
  }
  kj_put_typed(p, s->kind == KJ_TS_WARP ? "warp " : "barrier ");
  if (s->value) kj_put_typed_expr(p, s->value);
  else kj_put_typed(p, "any active");
  if (s->is_guarded) kj_put_typed(p, " guarded");
}

static void print_failure(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, s->failure == KJ_FAILURE_RAISE ? "raise" : "fail");
  for (size_t i = 0; i < s->indices.count; i++) {
    kj_put_typed(p, i ? ", " : " ");
    kj_put_typed_expr(p, s->indices.items[i]);
  }
}

static void print_print(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "print \"");
  for (const char *at = s->message; *at; at++) {
    if (*at == KJ_PRINT_VALUE) kj_put_typed(p, "%");
    else if (*at == KJ_PRINT_ESCAPE && at[1]) kj_put_typed(p, "?"), at++;
    else kj_append(p->out, at, 1);
  }
  kj_put_typed(p, "\"");
  for (size_t i = 0; i < s->indices.count; i++) {
    kj_put_typed(p, ", ");
    kj_put_typed_expr(p, s->indices.items[i]);
  }
}

static void print_return(kj_typed_printer *p, const kj_tstmt *s)
{
  kj_put_typed(p, "return");
  if (!s->value) return;
  kj_put_typed(p, " ");
  kj_put_typed_expr(p, s->value);
}

static void print_wrapped(kj_typed_printer *p, const kj_tstmt *s, const char *word)
{
  kj_put_typed(p, word);
  if (s->is_guarded) kj_put_typed(p, " guarded");
  print_block(p, &s->body);
}

static void print_stmt(kj_typed_printer *p, const kj_tstmt *s)
{
  switch (s->kind) {
  case KJ_TS_ASSIGN: print_assign(p, s); return;
  case KJ_TS_STORE: print_store(p, s); return;
  case KJ_TS_EVALUATE: kj_put_typed_expr(p, s->value); return;
  case KJ_TS_IF: print_if(p, s); return;
  case KJ_TS_WHILE: print_while(p, s); return;
  case KJ_TS_FOR: print_for(p, s); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: print_range(p, s); return;
  case KJ_TS_BREAK: kj_put_typed(p, "break"); return;
  case KJ_TS_CONTINUE: kj_put_typed(p, "continue"); return;
  case KJ_TS_RETURN: print_return(p, s); return;
  case KJ_TS_THREADS: print_wrapped(p, s, "threads"); return;
  case KJ_TS_ONCE: print_wrapped(p, s, "once"); return;
  case KJ_TS_WARP:
  case KJ_TS_BARRIER_REDUCE: print_result(p, s); return;
  case KJ_TS_FAIL: print_failure(p, s); return;
  case KJ_TS_PRINT: print_print(p, s); return;
  case KJ_TS_LEAVE: kj_put_typed(p, "leave"); return;
  }
}

static void print_indent(kj_typed_printer *p)
{
  for (int i = 0; i < p->indent; i++) kj_put_typed(p, "  ");
}

static void print_block(kj_typed_printer *p, const kj_tstmts *stmts)
{
  kj_put_typed(p, " {\n");
  p->indent++;
  for (size_t i = 0; i < stmts->count; i++) {
    print_indent(p);
    print_stmt(p, stmts->items[i]);
    kj_put_typed(p, "\n");
  }
  p->indent--;
  print_indent(p);
  kj_put_typed(p, "}");
}

/* ---- instances ---- */

/* Variables that no statement declares where it stands. */
static void print_local(kj_typed_printer *p, const kj_tvar *var)
{
  static const char *const words[] = {
    [KJ_V_VAR] = "var", [KJ_V_SHARED] = "shared", [KJ_V_LOCAL] = "local", [KJ_V_CONST] = "const"
  };
  if (var->kind == KJ_V_PARAM || var->kind == KJ_V_LET || var->kind == KJ_V_LOOP) return;
  kj_append_format(p->out, "  %s ", words[var->kind]);
  kj_put_typed_var(p, var);
  print_var_type(p, var);
  if (var->alignment) kj_append_format(p->out, " @align(%u)", var->alignment);
  kj_put_typed(p, "\n");
}

static void print_header(kj_typed_printer *p, const kj_instance *instance)
{
  kj_append_format(p->out, "%s %s(", instance->is_kernel ? "kernel" : "func", instance->symbol);
  for (size_t i = 0; i < instance->params.count; i++) {
    if (i) kj_put_typed(p, ", ");
    kj_put_typed_var(p, instance->params.items[i]);
    print_var_type(p, instance->params.items[i]);
  }
  kj_put_typed(p, ")");
  if (instance->result != KJIT_VOID) {
    kj_put_typed(p, " -> ");
    print_type(p, instance->result);
  }
  if (instance->block[0])
    kj_append_format(p->out, " @block(%u, %u, %u)", instance->block[0], instance->block[1],
                     instance->block[2]);
  if (instance->max_threads)
    kj_append_format(p->out, " @launch_bounds(%u, %u)", instance->max_threads,
                     instance->min_blocks);
  if (instance->is_strict) kj_put_typed(p, " @strict");
  if (instance->is_fastmath) kj_put_typed(p, " @fastmath");
}

static void print_instance(kj_typed_printer *p, const kj_instance *instance)
{
  p->instance = instance;
  print_header(p, instance);
  kj_put_typed(p, " {\n");
  for (size_t i = 0; i < instance->locals.count; i++) print_local(p, instance->locals.items[i]);
  p->indent = 1;
  for (size_t i = 0; i < instance->body.count; i++) {
    print_indent(p);
    print_stmt(p, instance->body.items[i]);
    kj_put_typed(p, "\n");
  }
  kj_put_typed(p, "}\n");
}

void kj_print_typed(const kj_compilation *c, kj_buffer *buffer)
{
  kj_typed_printer p = { .c = c, .out = buffer };
  for (size_t i = 0; i < c->instances.count; i++) {
    if (i) kj_put_typed(&p, "\n");
    print_instance(&p, c->instances.items[i]);
  }
}

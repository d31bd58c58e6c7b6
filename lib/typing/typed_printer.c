/* Prints the typed IR, for --emit typed and for tests. Constants are printed with their type, and
 * conversions as calls of the type. If several variables have the same name, their numbers are
 * appended. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/decimal.h"
#include "typing/typed.h"

typedef struct typed_printer {
  const kt_compilation *c;
  kj_buffer *out;
  const kt_instance *instance;
  int indent;
} typed_printer;

static inline void put(typed_printer *p, const char *value) { kj_append_text(p->out, value); }

static void print_type(typed_printer *p, kjit_type type)
{
  ki_print_type(p->c->types, type, p->out);
}

/* ---- expressions ---- */

static void put_expr(typed_printer *p, const kt_expr *e);

static bool has_name(const kt_vars *vars, const kt_var *var)
{
  for (size_t i = 0; i < vars->count; i++)
    if (vars->items[i] != var &&
        strcmp(vars->items[i]->name ? vars->items[i]->name : "", var->name ? var->name : "") == 0)
      return true;
  return false;
}

static void put_var(typed_printer *p, const kt_var *var)
{
  bool is_shared_name =
    p->instance && (has_name(&p->instance->params, var) || has_name(&p->instance->locals, var));
  put(p, var->name ? var->name : "");
  if (is_shared_name || !var->name) kj_append_format(p->out, ".%u", var->index);
}

static void print_list(typed_printer *p, const kt_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (i) put(p, ", ");
    put_expr(p, list->items[i]);
  }
}

static void print_integer(typed_printer *p, __int128 value)
{
  if (value >= INT64_MIN && value <= INT64_MAX) kj_append_format(p->out, "%lld", (long long)value);
  else
    kj_append_format(p->out, "%s%llu", value < 0 ? "-" : "",
                     (unsigned long long)(value < 0 ? -value : value));
}

static void print_number(typed_printer *p, double value)
{
  enum { MOST_POINT = 6 };
  char text[KJ_DECIMAL_BYTES];
  if (!isfinite(value)) {
    put(p, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  kj_decimal decimal = kj_find_shortest(fabs(value), KJIT_F64);
  kj_lay_out_decimal(&decimal, decimal.count > MOST_POINT ? decimal.count : MOST_POINT, text);
  put(p, signbit(value) ? "-" : "");
  put(p, text);
  if (!strpbrk(text, ".e")) put(p, ".");
}

static void print_const(typed_printer *p, const kt_expr *e)
{
  ki_type_class class_ = ki_type(p->c->types, e->type)->class_;
  if (e->type == KJIT_BOOL) {
    put(p, e->integer ? "true" : "false");
    return;
  }
  if (class_ == KJ_CLASS_FLOAT || e->type == KJ_WEAK_FLOAT)
    print_number(p, ki_number_of(kt_value_of(e)));
  else print_integer(p, e->integer);
  if (!ki_is_weak(e->type)) print_type(p, e->type);
}

static void put_index(typed_printer *p, const kt_expr *array, const kt_exprs *indices)
{
  put_expr(p, array);
  put(p, "[");
  print_list(p, indices);
  put(p, "]");
}

/* Prints a view. `view(x[2], 1, 0:n by 2)` starts at x[2, 0, ...]; its first dimension is dimension
 * 1 of x, and its second has n elements of dimension 0 with step 2. A reshaped view is `view(x, :n,
 * :m)`. A view with another element type is `view(x as u32, :n)`. */
static void print_view(typed_printer *p, const kt_expr *e)
{
  if (!e->dimensions) {
    put_index(p, e->x, &e->args);
    return;
  }
  put(p, "view(");
  if (e->args.count) put_index(p, e->x, &e->args);
  else put_expr(p, e->x);
  kjit_type element = ki_type(p->c->types, e->type)->element;
  if (element != ki_type(p->c->types, e->x->type)->element) {
    put(p, " as ");
    print_type(p, element);
  }
  for (uint32_t d = 0; d < ki_type(p->c->types, e->type)->rank; d++) {
    const kt_view_dimension *dimension = &e->dimensions[d];
    put(p, ", ");
    if (dimension->source != KJ_VIEW_SAME) kj_append_format(p->out, "%d", dimension->source);
    if (dimension->extent != KJ_VIEW_SAME) {
      put(p, ":");
      put_expr(p, e->indices.items[dimension->extent]);
    }
    if (dimension->step == KJ_VIEW_SAME) continue;
    put(p, " by ");
    put_expr(p, e->indices.items[dimension->step]);
  }
  put(p, ")");
}

static void put_call(typed_printer *p, const char *name, const kt_exprs *args)
{
  put(p, name);
  put(p, "(");
  print_list(p, args);
  put(p, ")");
}

static void print_pair(typed_printer *p, const kt_expr *e)
{
  put(p, "(");
  put_expr(p, e->x);
  kj_append_format(p->out, " %s ", ki_op_table[e->op].text);
  put_expr(p, e->y);
  put(p, ")");
}

static void print_unary(typed_printer *p, const kt_expr *e)
{
  put(p, ki_op_table[e->op].text);
  if (e->op == KJIT_OP_NOT) put(p, " ");
  put_expr(p, e->x);
}

static void print_choice(typed_printer *p, const kt_expr *e)
{
  put(p, "(");
  put_expr(p, e->x);
  put(p, " ? ");
  put_expr(p, e->y);
  put(p, " : ");
  put_expr(p, e->z);
  put(p, ")");
}

static void print_convert(typed_printer *p, const kt_expr *e)
{
  print_type(p, e->type);
  put(p, "(");
  put_expr(p, e->x);
  put(p, ")");
}

static void print_property(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  kj_append_format(p->out, ".%s[%u]", e->kind == KJ_T_EXTENT ? "shape" : "strides", e->dimension);
}

static void print_builtin(typed_printer *p, const kt_expr *e)
{
  const ki_builtin *builtin = e->builtin;
  put(p, builtin->name);
  if (builtin->flags & KJ_XYZ) kj_append_format(p->out, ".%c", 'x' + (int)e->dimension);
  if (builtin->flags & KJ_NAME) return;
  bool is_grid = builtin->id == KJ_BUILTIN_GRID || builtin->id == KJ_BUILTIN_GRIDSIZE;
  if (is_grid) kj_append_format(p->out, ".%c", 'x' + (int)e->dimension);
  if (is_grid) return;
  put(p, "(");
  if (e->x) {
    put_index(p, e->x, &e->indices);
    if (e->args.count) put(p, ", ");
  }
  if (builtin->flags & KJ_TYPE_ARG) {
    print_type(p, e->type);
    put(p, ", ");
  }
  print_list(p, &e->args);
  put(p, ")");
}

static void print_tuple(typed_printer *p, const kt_expr *e)
{
  if (ki_component_count(p->c->types, e->type)) print_type(p, e->type);
  put_call(p, "", &e->args);
}

static void print_element(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  put(p, "[");
  print_list(p, &e->args);
  put(p, "]");
}

static void print_part(typed_printer *p, kjit_type whole, uint32_t index);

static void print_insert(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  put(p, " with ");
  if (e->args.count) put_call(p, "[]", &e->args);
  else print_part(p, e->type, e->dimension);
  put(p, " ");
  put_expr(p, e->y);
}

static void print_address(typed_printer *p, const kt_expr *e)
{
  put(p, "pointer(");
  put_index(p, e->x, &e->args);
  put(p, ")");
}

static void print_pointed(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  put(p, "*");
  if (e->args.count) put_call(p, "", &e->args);
}

/* Prints the selected component: by name for a struct, by number for a tuple, vector or complex
 * number. */
static void print_part(typed_printer *p, kjit_type whole, uint32_t index)
{
  const ki_type_info *info = ki_type(p->c->types, whole);
  if (info->class_ == KJ_CLASS_STRUCT) kj_append_format(p->out, ".%s", info->field_names[index]);
  else kj_append_format(p->out, ".%u", index);
}

static void print_item(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  print_part(p, e->x->type, e->dimension);
}

static void print_member(typed_printer *p, const kt_expr *e)
{
  put_expr(p, e->x);
  if (e->dimension == KJ_ALL_LANES) put(p, ".lanes");
  else print_part(p, ki_type(p->c->types, e->x->type)->element, e->dimension);
}

static void put_expr(typed_printer *p, const kt_expr *e)
{
  switch (e->kind) {
  case KJ_T_CONST: print_const(p, e); return;
  case KJ_T_VAR: put_var(p, e->var); return;
  case KJ_T_UNARY: print_unary(p, e); return;
  case KJ_T_BINARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC: print_pair(p, e); return;
  case KJ_T_COND: print_choice(p, e); return;
  case KJ_T_CONVERT: print_convert(p, e); return;
  case KJ_T_LOAD: put_index(p, e->x, &e->args); return;
  case KJ_T_VIEW: print_view(p, e); return;
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: print_property(p, e); return;
  case KJ_T_BUILTIN: print_builtin(p, e); return;
  case KJ_T_CALL: put_call(p, e->instance->symbol, &e->args); return;
  case KJ_T_TUPLE: print_tuple(p, e); return;
  case KJ_T_ITEM: print_item(p, e); return;
  case KJ_T_ELEMENT: print_element(p, e); return;
  case KJ_T_INSERT: print_insert(p, e); return;
  case KJ_T_MEMBER: print_member(p, e); return;
  case KJ_T_ADDRESS: print_address(p, e); return;
  case KJ_T_POINTED: print_pointed(p, e); return;
  case KJ_T_EMPTY: put(p, "nothing"); return;
  }
}

/* ---- statements and instances ---- */

/* ---- statements ---- */

static void print_block(typed_printer *p, const kt_stmts *stmts);

static void print_var_type(typed_printer *p, const kt_var *var)
{
  put(p, ": ");
  print_type(p, var->type);
  if (var->is_narrow) put(p, " narrow");
  if (var->is_slot) put(p, " slot");
  if (var->is_uniform) put(p, " uniform");
}

static void print_assign(typed_printer *p, const kt_stmt *s)
{
  if (s->var->kind == KJ_V_LET) put(p, "let ");
  put_var(p, s->var);
  if (s->var->kind == KJ_V_LET) print_var_type(p, s->var);
  put(p, " = ");
  put_expr(p, s->value);
}

static void print_store(typed_printer *p, const kt_stmt *s)
{
  put_index(p, s->array, &s->indices);
  put(p, " = ");
  put_expr(p, s->value);
}

static void print_if(typed_printer *p, const kt_stmt *s)
{
  put(p, "if ");
  put_expr(p, s->value);
  print_block(p, &s->body);
  if (s->otherwise.count == 0) return;
  put(p, " else");
  print_block(p, &s->otherwise);
}

/* Prints the attributes of a loop that determine how it is executed, and the results of passes
 * about it. */
static void print_unroll(typed_printer *p, const kt_stmt *s)
{
  if (s->is_joint) put(p, " joint");
  if (s->is_threadless) put(p, " threadless");
  if (s->poll) kj_append_format(p->out, " poll(%u)%s", s->poll, s->is_polled_twice ? " twice" : "");
  if (s->unroll == KJ_UNROLL_FULL) put(p, " @unroll");
  else if (s->unroll != KJ_UNROLL_NONE) kj_append_format(p->out, " @unroll(%d)", s->unroll);
}

static void print_while(typed_printer *p, const kt_stmt *s)
{
  put(p, "while ");
  put_expr(p, s->value);
  print_unroll(p, s);
  print_block(p, &s->body);
}

/* Prints the conditions under which a loop needs no checks. */
static void print_conditions(typed_printer *p, const kt_stmt *s)
{
  for (size_t i = 0; s->hoisted && i < s->indices.count; i++) {
    put(p, i ? " and " : " unchecked if ");
    put_expr(p, s->indices.items[i]);
  }
}

static void print_for(typed_printer *p, const kt_stmt *s)
{
  put(p, "for ");
  put_var(p, s->var);
  print_var_type(p, s->var);
  put(p, " in range(");
  put_expr(p, s->first);
  put(p, ", ");
  put_expr(p, s->stop);
  put(p, ", ");
  put_expr(p, s->step);
  put(p, ")");
  print_unroll(p, s);
  print_conditions(p, s);
  print_block(p, &s->body);
}

static void print_range(typed_printer *p, const kt_stmt *s)
{
  put(p, "for ");
  for (size_t i = 0; i < s->vars.count; i++) {
    if (i) put(p, ", ");
    put_var(p, s->vars.items[i]);
    if (s->vars.items[i]->is_narrow) put(p, ": i64 narrow");
  }
  put(p, " in ");
  put_call(p, s->kind == KJ_TS_GRID_FOR ? "grid_range" : "block_range", &s->extents);
  print_unroll(p, s);
  print_conditions(p, s);
  print_block(p, &s->body);
}

static void print_result(typed_printer *p, const kt_stmt *s)
{
  if (s->var) {
    put_var(p, s->var);
    put(p, " = ");
  }
  put(p, s->kind == KJ_TS_WARP ? "warp " : "barrier ");
  if (s->value) put_expr(p, s->value);
  else put(p, "any active");
  if (s->is_guarded) put(p, " guarded");
}

static void print_failure(typed_printer *p, const kt_stmt *s)
{
  put(p, s->failure == KJ_FAILURE_RAISE ? "raise" : "fail");
  for (size_t i = 0; i < s->indices.count; i++) {
    put(p, i ? ", " : " ");
    put_expr(p, s->indices.items[i]);
  }
}

static void print_print(typed_printer *p, const kt_stmt *s)
{
  put(p, "print \"");
  for (const char *at = s->message; *at; at++) {
    if (*at == KJ_PRINT_VALUE) put(p, "%");
    else if (*at == KJ_PRINT_ESCAPE && at[1]) put(p, "?"), at++;
    else kj_append(p->out, at, 1);
  }
  put(p, "\"");
  for (size_t i = 0; i < s->indices.count; i++) {
    put(p, ", ");
    put_expr(p, s->indices.items[i]);
  }
}

static void print_return(typed_printer *p, const kt_stmt *s)
{
  put(p, "return");
  if (!s->value) return;
  put(p, " ");
  put_expr(p, s->value);
}

static void print_wrapped(typed_printer *p, const kt_stmt *s, const char *word)
{
  put(p, word);
  if (s->is_guarded) put(p, " guarded");
  print_block(p, &s->body);
}

static void print_stmt(typed_printer *p, const kt_stmt *s)
{
  switch (s->kind) {
  case KJ_TS_ASSIGN: print_assign(p, s); return;
  case KJ_TS_STORE: print_store(p, s); return;
  case KJ_TS_EVALUATE: put_expr(p, s->value); return;
  case KJ_TS_IF: print_if(p, s); return;
  case KJ_TS_WHILE: print_while(p, s); return;
  case KJ_TS_FOR: print_for(p, s); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: print_range(p, s); return;
  case KJ_TS_BREAK: put(p, "break"); return;
  case KJ_TS_CONTINUE: put(p, "continue"); return;
  case KJ_TS_RETURN: print_return(p, s); return;
  case KJ_TS_THREADS: print_wrapped(p, s, "threads"); return;
  case KJ_TS_ONCE: print_wrapped(p, s, "once"); return;
  case KJ_TS_WARP:
  case KJ_TS_BARRIER_REDUCE: print_result(p, s); return;
  case KJ_TS_FAIL: print_failure(p, s); return;
  case KJ_TS_PRINT: print_print(p, s); return;
  case KJ_TS_LEAVE: put(p, "leave"); return;
  }
}

static void print_indent(typed_printer *p)
{
  for (int i = 0; i < p->indent; i++) put(p, "  ");
}

static void print_block(typed_printer *p, const kt_stmts *stmts)
{
  put(p, " {\n");
  p->indent++;
  for (size_t i = 0; i < stmts->count; i++) {
    print_indent(p);
    print_stmt(p, stmts->items[i]);
    put(p, "\n");
  }
  p->indent--;
  print_indent(p);
  put(p, "}");
}

/* ---- instances ---- */

/* Prints a variable that no statement declares. */
static void print_local(typed_printer *p, const kt_var *var)
{
  static const char *const words[] = {
    [KJ_V_VAR] = "var", [KJ_V_SHARED] = "shared", [KJ_V_LOCAL] = "local", [KJ_V_CONST] = "const"
  };
  if (var->kind == KJ_V_PARAM || var->kind == KJ_V_LET || var->kind == KJ_V_LOOP) return;
  kj_append_format(p->out, "  %s ", words[var->kind]);
  put_var(p, var);
  print_var_type(p, var);
  if (var->alignment) kj_append_format(p->out, " @align(%u)", var->alignment);
  put(p, "\n");
}

static void print_header(typed_printer *p, const kt_instance *instance)
{
  kj_append_format(p->out, "%s %s(", instance->is_kernel ? "kernel" : "func", instance->symbol);
  for (size_t i = 0; i < instance->params.count; i++) {
    if (i) put(p, ", ");
    put_var(p, instance->params.items[i]);
    print_var_type(p, instance->params.items[i]);
  }
  put(p, ")");
  if (instance->result != KJIT_VOID) {
    put(p, " -> ");
    print_type(p, instance->result);
  }
  if (instance->block[0])
    kj_append_format(p->out, " @block(%u, %u, %u)", instance->block[0], instance->block[1],
                     instance->block[2]);
  if (instance->is_kernel && p->c->code->max_threads)
    kj_append_format(p->out, " @launch_bounds(%u, %u)", p->c->code->max_threads,
                     instance->min_blocks);
  if (instance->modes.is_strict) put(p, " @strict");
  if (instance->modes.is_fastmath) put(p, " @fastmath");
  if (instance->modes.is_indefinite) put(p, " @indefinite");
}

static void print_instance(typed_printer *p, const kt_instance *instance)
{
  p->instance = instance;
  print_header(p, instance);
  put(p, " {\n");
  for (size_t i = 0; i < instance->locals.count; i++) print_local(p, instance->locals.items[i]);
  p->indent = 1;
  for (size_t i = 0; i < instance->body.count; i++) {
    print_indent(p);
    print_stmt(p, instance->body.items[i]);
    put(p, "\n");
  }
  put(p, "}\n");
}

void kt_print_typed(const kt_compilation *c, kj_buffer *buffer)
{
  typed_printer p = { .c = c, .out = buffer };
  for (size_t i = 0; i < c->instances.count; i++) {
    if (i) put(&p, "\n");
    print_instance(&p, c->instances.items[i]);
  }
}

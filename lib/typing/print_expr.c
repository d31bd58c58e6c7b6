/* Expressions of the typed IR as text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "typing/print.h"

static void print_type(kj_typed_printer *p, kjit_type type)
{
  kj_print_type(p->c->types, type, p->out);
}

static bool has_name(const kj_tvars *vars, const kj_tvar *var)
{
  for (size_t i = 0; i < vars->count; i++)
    if (vars->items[i] != var &&
        strcmp(vars->items[i]->name ? vars->items[i]->name : "", var->name ? var->name : "") == 0)
      return true;
  return false;
}

void kj_put_typed_var(kj_typed_printer *p, const kj_tvar *var)
{
  bool is_shared_name =
    p->instance && (has_name(&p->instance->params, var) || has_name(&p->instance->locals, var));
  kj_put_typed(p, var->name ? var->name : "");
  if (is_shared_name || !var->name) kj_append_format(p->out, ".%u", var->index);
}

static void print_list(kj_typed_printer *p, const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (i) kj_put_typed(p, ", ");
    kj_put_typed_expr(p, list->items[i]);
  }
}

static void print_integer(kj_typed_printer *p, __int128 value)
{
  if (value >= INT64_MIN && value <= INT64_MAX) kj_append_format(p->out, "%lld", (long long)value);
  else
    kj_append_format(p->out, "%s%llu", value < 0 ? "-" : "",
                     (unsigned long long)(value < 0 ? -value : value));
}

/* The shortest text that reads back as the same number. */
static void print_number(kj_typed_printer *p, double value)
{
  char digits[40];
  if (!isfinite(value)) {
    kj_put_typed(p, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  for (int precision = 6; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  kj_put_typed(p, digits);
  if (!strpbrk(digits, ".e")) kj_put_typed(p, ".");
}

static void print_const(kj_typed_printer *p, const kj_texpr *e)
{
  kj_type_class class_ = kj_type(p->c->types, e->type)->class_;
  if (e->type == KJIT_BOOL) {
    kj_put_typed(p, e->integer ? "true" : "false");
    return;
  }
  if (class_ == KJ_CLASS_FLOAT || e->type == KJ_WEAK_FLOAT) print_number(p, e->number);
  else print_integer(p, e->integer);
  if (!kj_is_weak(e->type)) print_type(p, e->type);
}

void kj_put_typed_index(kj_typed_printer *p, const kj_texpr *array, const kj_texprs *indices)
{
  kj_put_typed_expr(p, array);
  kj_put_typed(p, "[");
  print_list(p, indices);
  kj_put_typed(p, "]");
}

/* `view(x[2], 1, 0:n by 2)`: from x[2, 0..] on; dimension 1 of x as it is; n elements of its
 * dimension 0, every second one. Reshaped: `view(x, :n, :m)`. */
static void print_view(kj_typed_printer *p, const kj_texpr *e)
{
  if (!e->dimensions) {
    kj_put_typed_index(p, e->x, &e->args);
    return;
  }
  kj_put_typed(p, "view(");
  if (e->args.count) kj_put_typed_index(p, e->x, &e->args);
  else kj_put_typed_expr(p, e->x);
  for (uint32_t d = 0; d < kj_type(p->c->types, e->type)->rank; d++) {
    const kj_view_dimension *dimension = &e->dimensions[d];
    kj_put_typed(p, ", ");
    if (dimension->source != KJ_VIEW_SAME) kj_append_format(p->out, "%d", dimension->source);
    if (dimension->extent != KJ_VIEW_SAME) {
      kj_put_typed(p, ":");
      kj_put_typed_expr(p, e->indices.items[dimension->extent]);
    }
    if (dimension->step == KJ_VIEW_SAME) continue;
    kj_put_typed(p, " by ");
    kj_put_typed_expr(p, e->indices.items[dimension->step]);
  }
  kj_put_typed(p, ")");
}

void kj_put_typed_call(kj_typed_printer *p, const char *name, const kj_texprs *args)
{
  kj_put_typed(p, name);
  kj_put_typed(p, "(");
  print_list(p, args);
  kj_put_typed(p, ")");
}

static void print_pair(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed(p, "(");
  kj_put_typed_expr(p, e->x);
  kj_append_format(p->out, " %s ", kj_op_table[e->op].text);
  kj_put_typed_expr(p, e->y);
  kj_put_typed(p, ")");
}

static void print_unary(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed(p, kj_op_table[e->op].text);
  if (e->op == KJIT_NOT) kj_put_typed(p, " ");
  kj_put_typed_expr(p, e->x);
}

static void print_choice(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed(p, "(");
  kj_put_typed_expr(p, e->x);
  kj_put_typed(p, " ? ");
  kj_put_typed_expr(p, e->y);
  kj_put_typed(p, " : ");
  kj_put_typed_expr(p, e->z);
  kj_put_typed(p, ")");
}

static void print_convert(kj_typed_printer *p, const kj_texpr *e)
{
  print_type(p, e->type);
  kj_put_typed(p, "(");
  kj_put_typed_expr(p, e->x);
  kj_put_typed(p, ")");
}

static void print_property(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  kj_append_format(p->out, ".%s[%u]", e->kind == KJ_T_EXTENT ? "shape" : "strides", e->dimension);
}

static void print_builtin(kj_typed_printer *p, const kj_texpr *e)
{
  const kj_builtin *builtin = e->builtin;
  kj_put_typed(p, builtin->name);
  if (builtin->flags & KJ_XYZ) kj_append_format(p->out, ".%c", 'x' + (int)e->dimension);
  if (builtin->flags & KJ_NAME) return;
  bool is_grid = builtin->id == KJ_BUILTIN_GRID || builtin->id == KJ_BUILTIN_GRIDSIZE;
  if (is_grid) kj_append_format(p->out, ".%c", 'x' + (int)e->dimension);
  if (is_grid) return;
  kj_put_typed(p, "(");
  if (e->x) {
    kj_put_typed_index(p, e->x, &e->indices);
    if (e->args.count) kj_put_typed(p, ", ");
  }
  if (builtin->flags & KJ_TYPE_ARG) {
    print_type(p, e->type);
    kj_put_typed(p, ", ");
  }
  print_list(p, &e->args);
  kj_put_typed(p, ")");
}

static void print_tuple(kj_typed_printer *p, const kj_texpr *e)
{
  if (kj_component_count(p->c->types, e->type)) print_type(p, e->type);
  kj_put_typed_call(p, "", &e->args);
}

static void print_element(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  kj_put_typed(p, "[");
  print_list(p, &e->args);
  kj_put_typed(p, "]");
}

static void print_part(kj_typed_printer *p, kjit_type whole, uint32_t index);

static void print_insert(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  kj_put_typed(p, " with ");
  if (e->args.count) kj_put_typed_call(p, "[]", &e->args);
  else print_part(p, e->type, e->dimension);
  kj_put_typed(p, " ");
  kj_put_typed_expr(p, e->y);
}

static void print_address(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed(p, "pointer(");
  kj_put_typed_index(p, e->x, &e->args);
  kj_put_typed(p, ")");
}

static void print_pointed(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  kj_put_typed(p, "*");
  if (e->args.count) kj_put_typed_call(p, "", &e->args);
}

/* Of a tuple, vector or complex number by its position, of a struct by its name. */
static void print_part(kj_typed_printer *p, kjit_type whole, uint32_t index)
{
  const kj_type_info *info = kj_type(p->c->types, whole);
  if (info->class_ == KJ_CLASS_STRUCT) kj_append_format(p->out, ".%s", info->field_names[index]);
  else kj_append_format(p->out, ".%u", index);
}

static void print_item(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  print_part(p, e->x->type, e->dimension);
}

static void print_member(kj_typed_printer *p, const kj_texpr *e)
{
  kj_put_typed_expr(p, e->x);
  print_part(p, kj_type(p->c->types, e->x->type)->element, e->dimension);
}

void kj_put_typed_expr(kj_typed_printer *p, const kj_texpr *e)
{
  switch (e->kind) {
  case KJ_T_CONST: print_const(p, e); return;
  case KJ_T_VAR: kj_put_typed_var(p, e->var); return;
  case KJ_T_UNARY: print_unary(p, e); return;
  case KJ_T_BINARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC: print_pair(p, e); return;
  case KJ_T_COND: print_choice(p, e); return;
  case KJ_T_CONVERT: print_convert(p, e); return;
  case KJ_T_LOAD: kj_put_typed_index(p, e->x, &e->args); return;
  case KJ_T_VIEW: print_view(p, e); return;
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: print_property(p, e); return;
  case KJ_T_BUILTIN: print_builtin(p, e); return;
  case KJ_T_CALL: kj_put_typed_call(p, e->instance->symbol, &e->args); return;
  case KJ_T_TUPLE: print_tuple(p, e); return;
  case KJ_T_ITEM: print_item(p, e); return;
  case KJ_T_ELEMENT: print_element(p, e); return;
  case KJ_T_INSERT: print_insert(p, e); return;
  case KJ_T_MEMBER: print_member(p, e); return;
  case KJ_T_ADDRESS: print_address(p, e); return;
  case KJ_T_POINTED: print_pointed(p, e); return;
  }
}

/* Creates the variables, statements and array accesses of a derivative. The rules of forward and
 * reverse derivatives use these functions. */
#include "derive/derive.h"

#include <stdarg.h>
#include <string.h>

void kd_refuse(kd_derivation *d, kj_location location, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  const char *name = d->primal->instance->function->decl->name;
  KJ_ASSERT(!strchr(name, '%'));
  kt_fail_list(d->c, location, KJIT_ERROR_UNSUPPORTED,
               kj_format(d->arena, "`%s` of `%s`: %s", ki_builtin_table[d->kind].name, name,
                         format),
               list);
}

static kt_var *instead_of(void *data, kt_var *var)
{
  const kd_derivation *d = data;
  kt_var *instead = var->index < d->count ? d->variables[var->index].instead : NULL;
  return instead ? instead : var;
}

kt_expr *kd_copy(kd_derivation *d, const kt_expr *expr)
{
  return kt_clone_texpr(d->c, expr, d->variables ? instead_of : NULL, d);
}

kt_var *kd_new_var(kd_derivation *d, const char *name, kjit_type type, kj_location location)
{
  return kt_add_variable(d->s, KJ_V_VAR, name, type, location, KJ_LEVEL_THREAD);
}

kt_expr *kd_read(kd_derivation *d, kt_var *var) { return kt_make_var(d->s, var, d->location); }

void kd_return(kd_derivation *d, kt_expr *value)
{
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_RETURN, d->location);
  stmt->value = value;
  kt_emit(d->s, stmt);
  d->record->result = d->record->instance->result = value->type;
}

void kd_assign(kd_derivation *d, kt_var *var, kt_expr *value)
{
  KJ_ASSERT(var->type == value->type);
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_ASSIGN, d->location);
  stmt->var = var;
  stmt->value = value;
  kt_emit(d->s, stmt);
}

static kt_exprs copy_list(kd_derivation *d, const kt_exprs *list)
{
  kt_exprs copy = { 0 };
  for (size_t i = 0; i < list->count; i++) KJ_PUSH(d->arena, &copy, kd_copy(d, list->items[i]));
  return copy;
}

void kd_store(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *value)
{
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_STORE, array->location);
  stmt->array = array;
  stmt->indices = copy_list(d, indices);
  stmt->value = value;
  kt_emit(d->s, stmt);
}

kt_expr *kd_load(kd_derivation *d, kt_expr *array, const kt_exprs *indices)
{
  kjit_type element = ki_type(d->c->types, array->type)->element;
  kt_expr *load = kt_new_texpr(d->c, KJ_T_LOAD, element, d->location);
  load->x = array;
  load->args = copy_list(d, indices);
  return load;
}

kt_expr *kd_keep(kd_derivation *d, kt_expr *value)
{
  /* only forward derivatives can use a variable of the body directly: in a reverse derivative, the
   * body can change the variable before the value is used */
  bool is_forward = d->kind == KJ_BUILTIN_JVP,
       is_fixed = value->kind == KJ_T_VAR &&
                  (is_forward || value->var->index >= d->count || value->var->kind == KJ_V_LOOP);
  if (value->kind == KJ_T_CONST || is_fixed) return value;
  const char *name = kj_format(d->arena, "_%u", d->s->temporary_count++);
  kt_var *var = kt_add_variable(d->s, is_forward ? KJ_V_LET : KJ_V_VAR, name, value->type,
                                value->location, KJ_LEVEL_THREAD);
  kd_assign(d, var, value);
  return kd_read(d, var);
}

/* ---- arrays ---- */

kt_var *kd_root(const kt_expr *array)
{
  while (array->kind == KJ_T_VIEW || array->kind == KJ_T_MEMBER) array = array->x;
  return array->kind == KJ_T_VAR ? array->var : NULL;
}

bool kd_is_imaginary(const kd_derivation *d, const kt_expr *array)
{
  for (; array->kind == KJ_T_VIEW || array->kind == KJ_T_MEMBER; array = array->x) {
    bool is_part = array->kind == KJ_T_MEMBER &&
                   kt_is_complex(d->c, ki_type(d->c->types, array->x->type)->element);
    if (is_part) return array->dimension == 1;
  }
  return false;
}

static bool is_array_operand(const kd_derivation *d, const kt_expr *array, const kt_expr *operand)
{
  return operand == array->x && kt_is_array(d->c, operand->type);
}

kt_expr *kd_keep_array(kd_derivation *d, const kt_expr *array)
{
  kt_expr *kept = KJ_NEW(d->arena, kt_expr);
  *kept = *array;
  kept->args = copy_list(d, &array->args);
  kept->indices = copy_list(d, &array->indices);
  for (size_t i = 0; i < kt_operand_count(array); i++) {
    const kt_expr *operand = kt_operand(array, i);
    if (!operand) continue;
    *kt_operand_place(kept, i) = is_array_operand(d, array, operand)
                                   ? kd_keep_array(d, operand)
                                   : kd_keep(d, kd_copy(d, operand));
  }
  return kept;
}

/* Returns the array of the derivatives of an array's elements. The result has the same type as the
 * array, but its root array can have other strides. */
static kt_expr *other_array(kd_derivation *d, const kt_expr *array)
{
  kt_expr *other = KJ_NEW(d->arena, kt_expr);
  *other = *array;
  if (array->kind == KJ_T_VAR) {
    other->var = d->variables[array->var->index].other;
    KJ_ASSERT(other->var);
    other->type = other->var->type;
    return other;
  }
  other->x = other_array(d, array->x);
  other->args = copy_list(d, &array->args);
  other->indices = copy_list(d, &array->indices);
  ki_type_info info = *ki_type(d->c->types, array->type);
  const ki_type_info *inner = ki_type(d->c->types, other->x->type);
  info.space = inner->space;
  info.read_only = false;
  if (inner->layout == KJIT_LAYOUT_STRIDED && !info.is_static && info.rank)
    info.layout = KJIT_LAYOUT_STRIDED;
  other->type = kt_intern_array(d->s, &info);
  return other;
}

kt_expr *kd_other_array(kd_derivation *d, const kt_expr *array) { return other_array(d, array); }

void kd_begin_loop(kd_derivation *d, int64_t extent, kt_exprs *indices)
{
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_FOR, d->location);
  loop->var = kt_add_variable(d->s, KJ_V_LOOP, "_i", KJIT_INDEX, d->location, KJ_LEVEL_THREAD);
  loop->first = kt_new_integer(d->s, KJIT_INDEX, 0, d->location);
  loop->stop = kt_new_integer(d->s, KJIT_INDEX, extent, d->location);
  loop->step = kt_new_integer(d->s, KJIT_INDEX, 1, d->location);
  kt_emit(d->s, loop);
  d->s->out = &loop->body;
  KJ_PUSH(d->arena, indices, kd_read(d, loop->var));
}

void kd_for_elements(kd_derivation *d, kjit_type array,
                     void (*make)(kd_derivation *d, const kt_exprs *indices, void *data),
                     void *data)
{
  const ki_type_info *info = ki_type(d->c->types, array);
  kt_exprs indices = { 0 };
  kt_stmts *outer = d->s->out;
  for (uint32_t i = 0; i < info->rank; i++) kd_begin_loop(d, info->extents[i], &indices);
  make(d, &indices, data);
  d->s->out = outer;
}

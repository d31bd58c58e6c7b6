/* Functions that create, visit, copy and count nodes of the typed IR, and that report errors
 * together with the call chain. */
#include "typing/typed.h"

#include <string.h>

static void report_note(kt_compilation *c, kj_location location, const char *text)
{
  kj_report(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, "%s", text);
}

/* If a call chain is long, an error message shows this number of innermost calls, and the outermost
 * call. */
enum { CHAIN_SHOWN = 8 };

static void report_chain(kt_compilation *c)
{
  size_t length = 0;
  for (const kt_instance *at = c->chain; at && at->caller; at = at->caller) length++;
  size_t place = 0;
  for (const kt_instance *at = c->chain; at && at->caller; at = at->caller, place++) {
    if (place >= CHAIN_SHOWN && place + 1 < length) continue;
    const char *name = at->function->decl->name;
    report_note(c, at->call_location,
                kj_format(c->arena, "in function `%s` called with %s, from here", name,
                          at->made_for));
  }
}

static _Noreturn void fail(kt_compilation *c, kj_location location, kjit_status status,
                           kjit_error_code code, const char *format, va_list list)
{
  KJ_ASSERT(status != KJIT_OK && c->on_failure);
  kj_report_list(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  kj_set_code(c->diagnostics, code);
  report_chain(c);
  longjmp(*c->on_failure, KJ_JUMP_ERROR);
}

void kt_fail(kt_compilation *c, kj_location location, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  fail(c, location, status, KJIT_CODE_NONE, format, list);
}

void kt_fail_list(kt_compilation *c, kj_location location, kjit_status status, const char *format,
                  va_list list)
{
  fail(c, location, status, KJIT_CODE_NONE, format, list);
}

void kt_fail_code(kt_compilation *c, kj_location location, kjit_status status, kjit_error_code code,
                  const char *format, ...)
{
  va_list list;
  va_start(list, format);
  fail(c, location, status, code, format, list);
}

void kt_fail_number(kt_compilation *c, kj_location location, kjit_type given, const char *format,
                    ...)
{
  va_list list;
  va_start(list, format);
  bool is_array = ki_type(c->types, given)->class_ == KJ_CLASS_ARRAY;
  fail(c, location, KJIT_ERROR_TYPE, is_array ? KJIT_CODE_ARRAY_AS_NUMBER : KJIT_CODE_NONE, format,
       list);
}

void kt_fail_twice(kt_compilation *c, kj_location location, kj_location other, kjit_error_code code,
                   const char *note, const char *format, ...)
{
  KJ_ASSERT(c->on_failure);
  va_list list;
  va_start(list, format);
  kj_report_list(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_ERROR,
                 KJIT_ERROR_TYPE, format, list);
  va_end(list);
  kj_set_code(c->diagnostics, code);
  report_note(c, other, note);
  report_chain(c);
  longjmp(*c->on_failure, KJ_JUMP_ERROR);
}

void kt_warn(kt_compilation *c, kj_location location, kjit_severity severity, const char *format,
             ...)
{
  KJ_ASSERT(severity != KJIT_SEVERITY_ERROR);
  va_list list;
  va_start(list, format);
  kj_report_list(c->diagnostics, &c->module->sources, location, severity, KJIT_OK, format, list);
  va_end(list);
}

/* The text of a large tuple type is truncated, because nested tuples can have a thousand
 * numbers. */
const char *kt_type_text(kt_compilation *c, kjit_type type)
{
  enum { LONG = 120 };
  if (type == KJ_WEAK_INT) return "an integer literal";
  if (type == KJ_WEAK_FLOAT) return "a float literal";
  kj_buffer buffer = { 0 };
  ki_print_type(c->types, type, &buffer);
  if (buffer.length > LONG && ki_type(c->types, type)->class_ == KJ_CLASS_TUPLE) {
    buffer.length = LONG;
    kj_append_format(&buffer, " ...");
  }
  return kj_keep_text(c->arena, &buffer);
}

/* An array of 16 or more bytes is aligned to at least 16 bytes, so that it can be viewed as an
 * array of any vector type. */
uint32_t kt_storage_alignment(const ki_types *types, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_SHARED || var->kind == KJ_V_LOCAL);
  const ki_type_info *info = ki_type(types, var->type);
  uint64_t bytes = info->is_static
                     ? ki_element_count(info) * ki_type(types, info->element)->size_bytes
                     : UINT64_MAX;
  uint32_t alignment = ki_alignment(types, info->element);
  if (alignment < var->alignment) alignment = var->alignment;
  for (uint32_t least = 16; least > alignment; least /= 2)
    if (least <= bytes) alignment = least;
  return alignment;
}

kt_expr *kt_new_texpr(kt_compilation *c, kt_tkind kind, kjit_type type, kj_location location)
{
  KJ_ASSERT((unsigned)kind < KJ_T_COUNT);
  kt_expr *expr = KJ_NEW(c->arena, kt_expr);
  expr->kind = kind;
  expr->type = type;
  expr->location = location;
  return expr;
}

kt_stmt *kt_new_tstmt(kt_compilation *c, kt_tstmt_kind kind, kj_location location)
{
  KJ_ASSERT((unsigned)kind < KJ_TS_COUNT);
  kt_stmt *stmt = KJ_NEW(c->arena, kt_stmt);
  stmt->kind = kind;
  stmt->location = location;
  return stmt;
}

kt_stmt *kt_new_if(kt_compilation *c, kt_expr *condition, kj_location location)
{
  kt_stmt *stmt = kt_new_tstmt(c, KJ_TS_IF, location);
  stmt->value = condition;
  return stmt;
}

kt_var *kt_new_tvar(kt_compilation *c, kt_instance *instance, kt_tvar_kind kind, const char *name,
                    kjit_type type, kj_location location)
{
  KJ_ASSERT(name);
  kt_var *var = KJ_NEW(c->arena, kt_var);
  var->kind = kind;
  var->name = name;
  var->type = type;
  var->location = location;
  var->index = (uint32_t)(instance->params.count + instance->locals.count);
  if (kind == KJ_V_PARAM) KJ_PUSH(c->arena, &instance->params, var);
  else KJ_PUSH(c->arena, &instance->locals, var);
  return var;
}

/* ---- kinds of nodes ---- */

static const struct {
  kt_source_of_value source;
  bool is_cheap;
} expr_kinds[] = {
#define YES true
#define NO false
#define KJ_EXPR(kind, source, cheap) [KJ_T_##kind] = { KJ_FROM_##source, cheap },
#include "typing/nodes.def"
#undef YES
#undef NO
};

static const kt_flow stmt_flows[] = {
#define KJ_STMT(kind, flow) [KJ_TS_##kind] = KJ_FLOW_##flow,
#include "typing/nodes.def"
};

kt_source_of_value kt_source_of(const kt_expr *expr)
{
  KJ_ASSERT((unsigned)expr->kind < KJ_T_COUNT);
  return expr_kinds[expr->kind].source;
}

bool kt_holds_local(const ki_types *types, kjit_type type)
{
  const ki_type_info *info = ki_type(types, type);
  bool holds = info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_LOCAL;
  for (uint32_t i = 0; info->class_ == KJ_CLASS_TUPLE && i < info->count && !holds; i++)
    holds = kt_holds_local(types, info->items[i]);
  return holds;
}

bool kt_is_cheap_kind(kt_tkind kind)
{
  KJ_ASSERT((unsigned)kind < KJ_T_COUNT);
  return expr_kinds[kind].is_cheap;
}

kt_flow kt_flow_of(const kt_stmt *stmt)
{
  KJ_ASSERT((unsigned)stmt->kind < KJ_TS_COUNT);
  return stmt_flows[stmt->kind];
}

/* ---- operands and walks ---- */

kt_expr **kt_operand_place(kt_expr *expr, size_t index)
{
  KJ_ASSERT(index < kt_operand_count(expr));
  kt_expr **const own[] = { &expr->x, &expr->y, &expr->z };
  if (index < 3) return own[index];
  index -= 3;
  return index < expr->indices.count ? &expr->indices.items[index]
                                     : &expr->args.items[index - expr->indices.count];
}

kt_expr *kt_operand(const kt_expr *expr, size_t index)
{
  return *kt_operand_place((kt_expr *)expr, index);
}

kt_expr **kt_stmt_operand_place(kt_stmt *stmt, size_t index)
{
  KJ_ASSERT(index < kt_stmt_operand_count(stmt));
  if (index < 2) return index ? &stmt->array : &stmt->value;
  index -= 2;
  if (index < stmt->indices.count) return &stmt->indices.items[index];
  index -= stmt->indices.count;
  kt_expr **const bounds[] = { &stmt->first, &stmt->stop, &stmt->step };
  return index < 3 ? bounds[index] : &stmt->extents.items[index - 3];
}

kt_expr *kt_stmt_operand(const kt_stmt *stmt, size_t index)
{
  return *kt_stmt_operand_place((kt_stmt *)stmt, index);
}

void kt_walk_texpr(kt_expr **expr, void (*visit)(void *data, kt_expr **expr), void *data)
{
  if (!*expr) return;
  for (size_t i = 0; i < kt_operand_count(*expr); i++)
    kt_walk_texpr(kt_operand_place(*expr, i), visit, data);
  visit(data, expr);
}

void kt_walk_tstmts(kt_stmts *stmts, void (*visit_stmt)(void *data, kt_stmt *stmt),
                    void (*visit_expr)(void *data, kt_expr **expr), void *data)
{
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    if (visit_stmt) visit_stmt(data, stmt);
    for (size_t k = 0; visit_expr && k < kt_stmt_operand_count(stmt); k++)
      kt_walk_texpr(kt_stmt_operand_place(stmt, k), visit_expr, data);
    kt_walk_tstmts(&stmt->body, visit_stmt, visit_expr, data);
    kt_walk_tstmts(&stmt->otherwise, visit_stmt, visit_expr, data);
  }
}

bool kt_any_texpr(const kt_expr *expr, kt_texpr_test test, void *data)
{
  if (!expr) return false;
  if (test(data, expr)) return true;
  for (size_t i = 0; i < kt_operand_count(expr); i++)
    if (kt_any_texpr(kt_operand(expr, i), test, data)) return true;
  return false;
}

bool kt_any_in_tstmt(const kt_stmt *stmt, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                     void *data)
{
  if (test_stmt && test_stmt(data, stmt)) return true;
  for (size_t i = 0; test_expr && i < kt_stmt_operand_count(stmt); i++)
    if (kt_any_texpr(kt_stmt_operand(stmt, i), test_expr, data)) return true;
  return kt_any_in_tstmts(&stmt->body, test_stmt, test_expr, data) ||
         kt_any_in_tstmts(&stmt->otherwise, test_stmt, test_expr, data);
}

bool kt_any_in_tstmts(const kt_stmts *stmts, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                      void *data)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (kt_any_in_tstmt(stmts->items[i], test_stmt, test_expr, data)) return true;
  return false;
}

/* ---- copies and sizes of trees ---- */

static void clone_list(kt_compilation *c, kt_exprs *list, kt_map_var map, void *data)
{
  kt_exprs from = *list;
  *list = (kt_exprs){ 0 };
  for (size_t i = 0; i < from.count; i++)
    KJ_PUSH(c->arena, list, kt_clone_texpr(c, from.items[i], map, data));
}

kt_expr *kt_clone_texpr(kt_compilation *c, const kt_expr *expr, kt_map_var map, void *data)
{
  if (!expr) return NULL;
  kt_expr *copy = KJ_NEW(c->arena, kt_expr);
  *copy = *expr;
  copy->x = kt_clone_texpr(c, expr->x, map, data);
  copy->y = kt_clone_texpr(c, expr->y, map, data);
  copy->z = kt_clone_texpr(c, expr->z, map, data);
  clone_list(c, &copy->args, map, data);
  clone_list(c, &copy->indices, map, data);
  if (expr->var && map) copy->var = map(data, expr->var);
  return copy;
}

size_t kt_count_nodes(const kt_expr *expr, size_t limit)
{
  if (!expr || limit == 0) return 0;
  size_t count = 1;
  for (size_t i = 0; i < kt_operand_count(expr) && count < limit; i++)
    count += kt_count_nodes(kt_operand(expr, i), limit - count);
  return count;
}

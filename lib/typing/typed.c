/* Makes and walks nodes of the typed IR; reports errors with the chain of calls. */
#include "typing/typed.h"

#include <string.h>

static void report_note(kj_compilation *c, kj_location location, const char *text)
{
  kj_report(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, "%s", text);
}

/* A deep chain is shown by its ends. */
enum { CHAIN_SHOWN = 8 };

static void report_chain(kj_compilation *c)
{
  size_t length = 0;
  for (const kj_instance *at = c->chain; at && at->caller; at = at->caller) length++;
  size_t place = 0;
  for (const kj_instance *at = c->chain; at && at->caller; at = at->caller, place++) {
    if (place >= CHAIN_SHOWN && place + 1 < length) continue;
    const char *name = at->function->decl->name;
    report_note(c, at->call_location,
                kj_format(c->arena, "in func `%s` called with %s, from here", name, at->made_for));
  }
}

void kj_fail(kj_compilation *c, kj_location location, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(c->diagnostics, &c->module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
  report_chain(c);
  longjmp(*c->on_failure, KJ_JUMP_ERROR);
}

void kj_warn(kj_compilation *c, kj_location location, kjit_severity severity, const char *format,
             ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(c->diagnostics, &c->module->sources, location, severity, KJIT_OK, format, list);
  va_end(list);
}

const char *kj_type_text(kj_compilation *c, kjit_type type)
{
  if (type == KJ_WEAK_INT) return "an integer literal";
  if (type == KJ_WEAK_FLOAT) return "a float literal";
  kj_buffer buffer = { 0 };
  kj_print_type(c->types, type, &buffer);
  const char *text =
    buffer.failed ? "?" : kj_copy_string(c->arena, buffer.text ? buffer.text : "", buffer.length);
  kj_free_buffer(&buffer);
  return text;
}

kj_texpr *kj_new_texpr(kj_compilation *c, kj_tkind kind, kjit_type type, kj_location location)
{
  kj_texpr *expr = KJ_NEW(c->arena, kj_texpr);
  expr->kind = kind;
  expr->type = type;
  expr->location = location;
  return expr;
}

kj_tstmt *kj_new_tstmt(kj_compilation *c, kj_tstmt_kind kind, kj_location location)
{
  kj_tstmt *stmt = KJ_NEW(c->arena, kj_tstmt);
  stmt->kind = kind;
  stmt->location = location;
  return stmt;
}

kj_tvar *kj_new_tvar(kj_compilation *c, kj_instance *instance, kj_tvar_kind kind, const char *name,
                     kjit_type type, kj_location location)
{
  kj_tvar *var = KJ_NEW(c->arena, kj_tvar);
  var->kind = kind;
  var->name = name;
  var->type = type;
  var->location = location;
  var->index = (uint32_t)(instance->params.count + instance->locals.count);
  if (kind == KJ_V_PARAM) KJ_PUSH(c->arena, &instance->params, var);
  else KJ_PUSH(c->arena, &instance->locals, var);
  return var;
}

static void walk_list(kj_texprs *list, void (*visit)(void *data, kj_texpr **expr), void *data)
{
  for (size_t i = 0; i < list->count; i++) kj_walk_texpr(&list->items[i], visit, data);
}

void kj_walk_texpr(kj_texpr **expr, void (*visit)(void *data, kj_texpr **expr), void *data)
{
  kj_texpr *e = *expr;
  if (!e) return;
  kj_walk_texpr(&e->x, visit, data);
  kj_walk_texpr(&e->y, visit, data);
  kj_walk_texpr(&e->z, visit, data);
  walk_list(&e->indices, visit, data);
  walk_list(&e->args, visit, data);
  visit(data, expr);
}

static void walk_stmt(kj_tstmt *stmt, void (*visit_stmt)(void *data, kj_tstmt *stmt),
                      void (*visit_expr)(void *data, kj_texpr **expr), void *data)
{
  if (visit_stmt) visit_stmt(data, stmt);
  kj_walk_texpr(&stmt->value, visit_expr, data);
  kj_walk_texpr(&stmt->array, visit_expr, data);
  walk_list(&stmt->indices, visit_expr, data);
  kj_walk_texpr(&stmt->first, visit_expr, data);
  kj_walk_texpr(&stmt->stop, visit_expr, data);
  kj_walk_texpr(&stmt->step, visit_expr, data);
  walk_list(&stmt->extents, visit_expr, data);
  kj_walk_tstmts(&stmt->body, visit_stmt, visit_expr, data);
  kj_walk_tstmts(&stmt->otherwise, visit_stmt, visit_expr, data);
}

void kj_walk_tstmts(kj_tstmts *stmts, void (*visit_stmt)(void *data, kj_tstmt *stmt),
                    void (*visit_expr)(void *data, kj_texpr **expr), void *data)
{
  for (size_t i = 0; i < stmts->count; i++)
    walk_stmt(stmts->items[i], visit_stmt, visit_expr, data);
}

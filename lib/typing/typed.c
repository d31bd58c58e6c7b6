/* Makes, walks, copies and counts nodes of the typed IR; reports errors with the chain of calls. */
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

/* A tuple of tuples may have a thousand numbers: its first ones say enough. */
const char *kj_type_text(kj_compilation *c, kjit_type type)
{
  enum { LONG = 120 };
  if (type == KJ_WEAK_INT) return "an integer literal";
  if (type == KJ_WEAK_FLOAT) return "a float literal";
  kj_buffer buffer = { 0 };
  kj_print_type(c->types, type, &buffer);
  if (buffer.length > LONG && kj_type(c->types, type)->class_ == KJ_CLASS_TUPLE) {
    buffer.length = LONG;
    kj_append_format(&buffer, " ...");
  }
  return kj_keep_text(c->arena, &buffer);
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

/* ---- kinds ---- */

static const struct {
  kj_source_of_value source;
  bool is_cheap;
} expr_kinds[] = {
#define YES true
#define NO false
#define KJ_EXPR(kind, source, cheap) [KJ_T_##kind] = { KJ_FROM_##source, cheap },
#include "typing/nodes.def"
#undef YES
#undef NO
};

static const kj_flow stmt_flows[] = {
#define KJ_STMT(kind, flow) [KJ_TS_##kind] = KJ_FLOW_##flow,
#include "typing/nodes.def"
};

kj_source_of_value kj_source_of(const kj_texpr *expr)
{
  KJ_ASSERT((unsigned)expr->kind < KJ_T_COUNT);
  return expr_kinds[expr->kind].source;
}

bool kj_is_cheap_kind(kj_tkind kind)
{
  KJ_ASSERT((unsigned)kind < KJ_T_COUNT);
  return expr_kinds[kind].is_cheap;
}

kj_flow kj_flow_of(const kj_tstmt *stmt)
{
  KJ_ASSERT((unsigned)stmt->kind < KJ_TS_COUNT);
  return stmt_flows[stmt->kind];
}

/* ---- operands and walks ---- */

kj_texpr **kj_operand_place(kj_texpr *expr, size_t index)
{
  KJ_ASSERT(index < kj_operand_count(expr));
  kj_texpr **const own[] = { &expr->x, &expr->y, &expr->z };
  if (index < 3) return own[index];
  index -= 3;
  return index < expr->indices.count ? &expr->indices.items[index]
                                     : &expr->args.items[index - expr->indices.count];
}

kj_texpr *kj_operand(const kj_texpr *expr, size_t index)
{
  return *kj_operand_place((kj_texpr *)expr, index);
}

kj_texpr **kj_stmt_operand_place(kj_tstmt *stmt, size_t index)
{
  KJ_ASSERT(index < kj_stmt_operand_count(stmt));
  if (index < 2) return index ? &stmt->array : &stmt->value;
  index -= 2;
  if (index < stmt->indices.count) return &stmt->indices.items[index];
  index -= stmt->indices.count;
  kj_texpr **const bounds[] = { &stmt->first, &stmt->stop, &stmt->step };
  return index < 3 ? bounds[index] : &stmt->extents.items[index - 3];
}

kj_texpr *kj_stmt_operand(const kj_tstmt *stmt, size_t index)
{
  return *kj_stmt_operand_place((kj_tstmt *)stmt, index);
}

void kj_walk_texpr(kj_texpr **expr, void (*visit)(void *data, kj_texpr **expr), void *data)
{
  if (!*expr) return;
  for (size_t i = 0; i < kj_operand_count(*expr); i++)
    kj_walk_texpr(kj_operand_place(*expr, i), visit, data);
  visit(data, expr);
}

void kj_walk_tstmts(kj_tstmts *stmts, void (*visit_stmt)(void *data, kj_tstmt *stmt),
                    void (*visit_expr)(void *data, kj_texpr **expr), void *data)
{
  for (size_t i = 0; i < stmts->count; i++) {
    kj_tstmt *stmt = stmts->items[i];
    if (visit_stmt) visit_stmt(data, stmt);
    for (size_t k = 0; visit_expr && k < kj_stmt_operand_count(stmt); k++)
      kj_walk_texpr(kj_stmt_operand_place(stmt, k), visit_expr, data);
    kj_walk_tstmts(&stmt->body, visit_stmt, visit_expr, data);
    kj_walk_tstmts(&stmt->otherwise, visit_stmt, visit_expr, data);
  }
}

bool kj_any_texpr(const kj_texpr *expr, kj_texpr_test test, void *data)
{
  if (!expr) return false;
  if (test(data, expr)) return true;
  for (size_t i = 0; i < kj_operand_count(expr); i++)
    if (kj_any_texpr(kj_operand(expr, i), test, data)) return true;
  return false;
}

bool kj_any_in_tstmt(const kj_tstmt *stmt, kj_tstmt_test test_stmt, kj_texpr_test test_expr,
                     void *data)
{
  if (test_stmt && test_stmt(data, stmt)) return true;
  for (size_t i = 0; test_expr && i < kj_stmt_operand_count(stmt); i++)
    if (kj_any_texpr(kj_stmt_operand(stmt, i), test_expr, data)) return true;
  return kj_any_in_tstmts(&stmt->body, test_stmt, test_expr, data) ||
         kj_any_in_tstmts(&stmt->otherwise, test_stmt, test_expr, data);
}

bool kj_any_in_tstmts(const kj_tstmts *stmts, kj_tstmt_test test_stmt, kj_texpr_test test_expr,
                      void *data)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (kj_any_in_tstmt(stmts->items[i], test_stmt, test_expr, data)) return true;
  return false;
}

/* ---- copies, sizes, effects ---- */

static void clone_list(kj_compilation *c, kj_texprs *list, kj_map_var map, void *data)
{
  kj_texprs from = *list;
  *list = (kj_texprs){ 0 };
  for (size_t i = 0; i < from.count; i++)
    KJ_PUSH(c->arena, list, kj_clone_texpr(c, from.items[i], map, data));
}

kj_texpr *kj_clone_texpr(kj_compilation *c, const kj_texpr *expr, kj_map_var map, void *data)
{
  if (!expr) return NULL;
  kj_texpr *copy = KJ_NEW(c->arena, kj_texpr);
  *copy = *expr;
  copy->x = kj_clone_texpr(c, expr->x, map, data);
  copy->y = kj_clone_texpr(c, expr->y, map, data);
  copy->z = kj_clone_texpr(c, expr->z, map, data);
  clone_list(c, &copy->args, map, data);
  clone_list(c, &copy->indices, map, data);
  if (expr->var && map) copy->var = map(data, expr->var);
  return copy;
}

size_t kj_count_nodes(const kj_texpr *expr, size_t limit)
{
  if (!expr || limit == 0) return 0;
  size_t count = 1;
  for (size_t i = 0; i < kj_operand_count(expr) && count < limit; i++)
    count += kj_count_nodes(kj_operand(expr, i), limit - count);
  return count;
}

static bool has_own_effect(void *data, const kj_texpr *expr)
{
  (void)data;
  return expr->kind == KJ_T_CALL ||
         (expr->kind == KJ_T_BUILTIN && !(expr->builtin->flags & KJ_PURE));
}

bool kj_has_effect(const kj_texpr *expr) { return kj_any_texpr(expr, has_own_effect, NULL); }

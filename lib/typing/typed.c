/* Makes and walks nodes of the typed IR; reports errors with the chain of calls. */
#include "typing/typed.h"

#include <string.h>

#include "typing/infer.h"

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
  if (buffer.length > LONG && kj_is_tuple(c, type)) {
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

/* Nodes of the typed IR while it is being inferred: made, copied, counted; whether they have an
 * effect, and how far their values may differ. */

bool kj_is_constant(const kj_texpr *expr) { return expr->kind == KJ_T_CONST; }

kj_texpr *kj_make_var(kj_scope *s, kj_tvar *var, kj_location location)
{
  kj_texpr *expr = kj_new_texpr(s->c, KJ_T_VAR, var->type, location);
  expr->var = var;
  return expr;
}

static void copy_list(kj_scope *s, kj_texprs *to, const kj_texprs *from)
{
  *to = (kj_texprs){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(s->arena, to, kj_copy_texpr(s, from->items[i]));
}

kj_texpr *kj_copy_texpr(kj_scope *s, const kj_texpr *expr)
{
  if (!expr) return NULL;
  kj_texpr *copy = KJ_NEW(s->arena, kj_texpr);
  *copy = *expr;
  copy->x = kj_copy_texpr(s, expr->x);
  copy->y = kj_copy_texpr(s, expr->y);
  copy->z = kj_copy_texpr(s, expr->z);
  copy_list(s, &copy->args, &expr->args);
  copy_list(s, &copy->indices, &expr->indices);
  return copy;
}

static size_t count_list(const kj_texprs *list, size_t limit)
{
  size_t count = 0;
  for (size_t i = 0; i < list->count && count < limit; i++)
    count += kj_count_nodes(list->items[i], limit - count);
  return count;
}

/* Stops at the limit. */
size_t kj_count_nodes(const kj_texpr *expr, size_t limit)
{
  if (!expr || limit == 0) return 0;
  size_t count = 1;
  const kj_texpr *parts[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3 && count < limit; i++) count += kj_count_nodes(parts[i], limit - count);
  if (count < limit) count += count_list(&expr->args, limit - count);
  if (count < limit) count += count_list(&expr->indices, limit - count);
  return count;
}

static bool has_effect_list(const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (kj_has_effect(list->items[i])) return true;
  return false;
}

bool kj_has_effect(const kj_texpr *expr)
{
  if (!expr) return false;
  if (expr->kind == KJ_T_CALL || (expr->kind == KJ_T_BUILTIN && !(expr->builtin->flags & KJ_PURE)))
    return true;
  return kj_has_effect(expr->x) || kj_has_effect(expr->y) || kj_has_effect(expr->z) ||
         has_effect_list(&expr->args) || has_effect_list(&expr->indices);
}

/* ---- how far a value may differ ---- */

static kj_level level_of_list(const kj_scope *s, const kj_texprs *list)
{
  kj_level level = KJ_LEVEL_GRID;
  for (size_t i = 0; i < list->count; i++)
    level = kj_higher_level(level, kj_level_of(s, list->items[i]));
  return level;
}

static kj_level level_of_builtin(const kj_builtin *builtin)
{
  if (builtin->flags & (KJ_THREAD | KJ_WARP)) return KJ_LEVEL_THREAD;
  static const kj_builtin_id of_block[] = { KJ_BUILTIN_BLOCK_IDX, KJ_BUILTIN_CLUSTER_IDX,
                                            KJ_BUILTIN_CLUSTER_BLOCK_IDX, KJ_BUILTIN_CLUSTER_RANK };
  for (size_t i = 0; i < sizeof of_block / sizeof *of_block; i++)
    if (of_block[i] == builtin->id) return KJ_LEVEL_BLOCK;
  return builtin->flags & KJ_BARRIER ? KJ_LEVEL_BLOCK : KJ_LEVEL_GRID;
}

static kj_level level_of_load(const kj_scope *s, const kj_texpr *expr)
{
  kj_space space = kj_type(s->c->types, expr->x->type)->space;
  return space == KJ_SPACE_LOCAL    ? KJ_LEVEL_THREAD
         : space == KJ_SPACE_SHARED ? KJ_LEVEL_BLOCK
                                    : KJ_LEVEL_GRID;
}

/* What a function under way returns is not known yet. */
static kj_level level_of_call(const kj_scope *s, const kj_texpr *expr)
{
  const kj_record *record = s->inference->records.items[expr->instance->id];
  return record->is_done ? record->result_level : KJ_LEVEL_THREAD;
}

/* A load at an index that is the same for all threads counts as the same: whoever races on it is on
 * his own. */
kj_level kj_level_of(const kj_scope *s, const kj_texpr *expr)
{
  if (!expr) return KJ_LEVEL_GRID;
  kj_level own = KJ_LEVEL_GRID;
  switch (expr->kind) {
  case KJ_T_CONST: return KJ_LEVEL_GRID;
  case KJ_T_VAR:
    return expr->var->index < s->levels.count ? s->levels.items[expr->var->index] : KJ_LEVEL_GRID;
  case KJ_T_BUILTIN: own = level_of_builtin(expr->builtin); break;
  case KJ_T_LOAD: own = level_of_load(s, expr); break;
  case KJ_T_CALL: own = level_of_call(s, expr); break;
  default: break;
  }
  own = kj_higher_level(own, kj_higher_level(kj_level_of(s, expr->x),
                                             kj_higher_level(kj_level_of(s, expr->y),
                                                             kj_level_of(s, expr->z))));
  return kj_higher_level(own, kj_higher_level(level_of_list(s, &expr->args),
                                              level_of_list(s, &expr->indices)));
}

/* ---- tuples ---- */

/* An array in a tuple is a reference to it. */
static uint64_t count_values(const kj_compilation *c, kjit_type type)
{
  const kj_type_info *info = kj_type(c->types, type);
  if (info->class_ == KJ_CLASS_ARRAY) return 1;
  if (info->class_ != KJ_CLASS_TUPLE) return kj_count_parts(c, type);
  uint64_t count = 0;
  for (uint32_t i = 0; i < info->count; i++) count += count_values(c, info->items[i]);
  return count;
}

kjit_type kj_tuple_type(kj_scope *s, const kjit_type *items, uint32_t count, kj_location location)
{
  enum { MOST_VALUES = 1024 };
  kjit_type type = kj_intern_tuple(s->c->types, items, count);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  if (count_values(s->c, type) > MOST_VALUES)
    kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "a tuple of more than %d numbers, those of tuples in it counted: keep them in a "
            "`local` array",
            MOST_VALUES);
  return type;
}

kj_texpr *kj_make_tuple(kj_scope *s, const kj_texprs *items, kj_location location)
{
  kjit_type *types = KJ_NEW_ARRAY(s->arena, kjit_type, items->count + 1);
  for (size_t i = 0; i < items->count; i++) types[i] = items->items[i]->type;
  kjit_type type = kj_tuple_type(s, types, (uint32_t)items->count, location);
  kj_texpr *tuple = kj_new_texpr(s->c, KJ_T_TUPLE, type, location);
  tuple->args = *items;
  return tuple;
}

kj_texpr *kj_make_item(kj_scope *s, kj_texpr *tuple, uint32_t index, kj_location location)
{
  if (tuple->kind == KJ_T_TUPLE && !has_effect_list(&tuple->args)) return tuple->args.items[index];
  kjit_type type = kj_is_tuple(s->c, tuple->type)
                     ? kj_type(s->c->types, tuple->type)->items[index]
                     : kj_get_component(s->c->types, tuple->type, index).type;
  kj_texpr *item = kj_new_texpr(s->c, KJ_T_ITEM, type, location);
  item->x = tuple;
  item->dimension = index;
  return item;
}

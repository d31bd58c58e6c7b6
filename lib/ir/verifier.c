/* kj_finish_module: resolves what the parser and the builder left open and checks everything that
 * needs no types. After it, typing meets only what it knows. */
#include <string.h>

#include "ir/lexer.h"
#include "ir/verify.h"

/* Attributes: where they may stand, and which values they take. */

static const char *describe_place(unsigned place)
{
  return place == KJ_PLACE_KERNEL  ? "a kernel"
         : place == KJ_PLACE_FUNC  ? "a func"
         : place == KJ_PLACE_LOOP  ? "a loop"
         : place == KJ_PLACE_ARRAY ? "a shared or local array"
                                   : "a struct";
}

static void verify_alignment(kj_verifier *v, const kj_attribute *attribute)
{
  const kj_expr *value = attribute->values.items[0];
  bool is_negative = value->kind == KJ_EXPR_UNARY && value->op == KJIT_NEG;
  bool is_power = value->kind != KJ_EXPR_INT ||
                  (value->integer > 0 && (value->integer & (value->integer - 1)) == 0);
  if (is_negative || value->kind == KJ_EXPR_FLOAT || !is_power)
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an alignment is a power of two");
}

static void verify_positive(kj_verifier *v, const kj_attribute *attribute)
{
  for (size_t i = 0; i < attribute->values.count; i++) {
    const kj_expr *value = attribute->values.items[i];
    bool is_negative =
      value->kind == KJ_EXPR_UNARY && value->op == KJIT_NEG && value->x->kind == KJ_EXPR_INT;
    if (is_negative || value->kind == KJ_EXPR_FLOAT ||
        (value->kind == KJ_EXPR_INT && value->integer == 0))
      kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "`@%s` takes integers from 1",
                     attribute->info->name);
  }
}

static void verify_general(kj_verifier *v, const kj_attribute *attribute)
{
  const kj_expr *value = attribute->values.items[0];
  bool is_param = value->kind == KJ_EXPR_DECL && value->decl->kind == KJ_DECL_PARAM;
  if (!is_param && value->kind != KJ_EXPR_NAME)
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "`@general` names a parameter of the kernel");
}

static void verify_attribute(kj_verifier *v, kj_attribute *attribute, unsigned place)
{
  const kj_attribute_info *info = attribute->info;
  size_t count = attribute->values.count;
  if (!(info->places & place)) {
    kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` does not belong to %s",
                   info->name, describe_place(place));
    return;
  }
  if (count < (size_t)info->least || count > (size_t)info->most) {
    if (info->least == info->most)
      kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` takes %d value%s, not %zu",
                     info->name, info->least, info->least == 1 ? "" : "s", count);
    else
      kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE,
                     "`@%s` takes %d to %d values, not %zu", info->name, info->least, info->most,
                     count);
    return;
  }
  v->fixed = "an attribute";
  kj_verify_exprs(v, &attribute->values, KJ_ROLE_VALUE);
  v->fixed = NULL;
  if (info == &kj_attribute_table[KJ_ATTRIBUTE_ALIGN]) verify_alignment(v, attribute);
  else if (info == &kj_attribute_table[KJ_ATTRIBUTE_GENERAL]) verify_general(v, attribute);
  else verify_positive(v, attribute);
}

static void verify_contradiction(kj_verifier *v, const kj_attributes *attributes, size_t index)
{
  static const kj_attribute_id pairs[][2] = { { KJ_ATTRIBUTE_INLINE, KJ_ATTRIBUTE_NOINLINE },
                                              { KJ_ATTRIBUTE_STRICT, KJ_ATTRIBUTE_FASTMATH } };
  for (size_t j = 0; j < index; j++)
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
      const kj_attribute_info *a = attributes->items[index].info, *b = attributes->items[j].info,
                              *x = &kj_attribute_table[pairs[k][0]],
                              *y = &kj_attribute_table[pairs[k][1]];
      if ((a == x && b == y) || (a == y && b == x))
        kj_fail_verify(v, attributes->items[index].location, KJIT_ERROR_TYPE,
                       "`@%s` and `@%s` exclude each other", b->name, a->name);
    }
}

void kj_verify_attributes(kj_verifier *v, kj_attributes *attributes, unsigned place)
{
  for (size_t i = 0; i < attributes->count; i++) {
    kj_attribute *attribute = &attributes->items[i];
    verify_attribute(v, attribute, place);
    bool is_repeatable = attribute->info == &kj_attribute_table[KJ_ATTRIBUTE_GENERAL];
    for (size_t j = 0; j < i && !is_repeatable; j++)
      if (attributes->items[j].info == attribute->info)
        kj_fail_verify(v, attribute->location, KJIT_ERROR_NAME, "`@%s` is given twice",
                       attribute->info->name);
    verify_contradiction(v, attributes, i);
  }
}

/* What holds across functions: bounded call depth, recursion apart, and nothing in a grid_range or
 * block_range, also through calls, that its independent iterations could not do. A function handed
 * over as an argument counts as called where it is handed over. */

enum { MAX_CALL_HEIGHT = 100 };

static kj_summary *summary_of(kj_verifier *v, const kj_decl *decl)
{
  return &v->summaries[decl->index];
}

static void visit(kj_verifier *v, const kj_decl *decl, uint32_t depth)
{
  kj_summary *summary = summary_of(v, decl);
  if (summary->state == 2) return;
  summary->state = 1;
  summary->height = 1;
  for (size_t i = 0; i < summary->calls.count; i++) {
    const kj_call_site *site = &summary->calls.items[i];
    kj_summary *callee = summary_of(v, site->callee);
    /* recursion: whether its types can be known is seen when it is typed */
    if (callee->state == 1) continue;
    if (depth < MAX_CALL_HEIGHT) visit(v, site->callee, depth + 1);
    if (depth >= MAX_CALL_HEIGHT || callee->height >= MAX_CALL_HEIGHT) {
      kj_fail_verify(v, site->location, KJIT_ERROR_UNSUPPORTED,
                     "calls nest more than %d functions deep", MAX_CALL_HEIGHT);
      longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
    }
    if (callee->height + 1 > summary->height) summary->height = callee->height + 1;
    if (callee->forbidden && !summary->forbidden) {
      summary->forbidden = callee->forbidden;
      summary->forbidden_at = callee->forbidden_at;
    }
  }
  summary->state = 2;
}

static void verify_ranges(kj_verifier *v, const kj_decl *decl)
{
  const kj_summary *summary = summary_of(v, decl);
  for (size_t i = 0; i < summary->calls.count; i++) {
    const kj_call_site *site = &summary->calls.items[i];
    const kj_summary *callee = summary_of(v, site->callee);
    if (!site->range || !callee->forbidden) continue;
    kj_fail_verify(
      v, site->location, KJIT_ERROR_TYPE,
      "`%s` is called inside a %s and holds %s: iterations are independent and run in any order",
      site->callee->name, kj_range_names[site->range->range], callee->forbidden);
    kj_note_verify(v, callee->forbidden_at, "%s is here", callee->forbidden);
  }
}

void kj_verify_calls(kj_verifier *v)
{
  const kjit_module *module = v->module;
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) visit(v, module->decls.items[i], 0);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) verify_ranges(v, module->decls.items[i]);
}

/* Functions: parameters, body, result. */

/* ---- results ---- */

typedef struct returns {
  const kj_stmt *with, *without; /* the first of each */
} returns;

static void find_returns(const kj_stmts *body, returns *found)
{
  for (size_t i = 0; i < body->count; i++) {
    const kj_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_RETURN && stmt->value && !found->with) found->with = stmt;
    if (stmt->kind == KJ_STMT_RETURN && !stmt->value && !found->without) found->without = stmt;
    find_returns(&stmt->body, found);
    find_returns(&stmt->otherwise, found);
  }
}

/* Whether a `break` of this loop is in its body. */
static bool has_break(const kj_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const kj_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_BREAK ||
        (stmt->kind == KJ_STMT_IF && (has_break(&stmt->body) || has_break(&stmt->otherwise))))
      return true;
  }
  return false;
}

/* Whether control can reach the end of the statements. */
static bool reaches_end(const kj_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const kj_stmt *stmt = body->items[i];
    bool is_endless = stmt->kind == KJ_STMT_WHILE && stmt->value->kind == KJ_EXPR_BOOL &&
                      stmt->value->integer && !has_break(&stmt->body);
    bool is_jump = stmt->kind == KJ_STMT_RETURN || stmt->kind == KJ_STMT_BREAK ||
                   stmt->kind == KJ_STMT_CONTINUE || stmt->kind == KJ_STMT_RAISE;
    bool both_leave =
      stmt->kind == KJ_STMT_IF && !reaches_end(&stmt->body) && !reaches_end(&stmt->otherwise);
    if (is_endless || is_jump || both_leave) return false;
  }
  return true;
}

static void verify_result(kj_verifier *v)
{
  returns found = { 0 };
  const kj_function *function = v->function;
  find_returns(&function->body, &found);
  bool needs_value = found.with || function->result;
  if (function->is_kernel || function->is_extern || !needs_value) return;
  if (found.without) {
    kj_fail_verify(v, found.without->location, KJIT_ERROR_TYPE,
                   "`%s` returns a value elsewhere and none here", function->decl->name);
    if (found.with) kj_note_verify(v, found.with->location, "here it returns a value");
  } else if (reaches_end(&function->body)) {
    kj_fail_verify(v, function->decl->location, KJIT_ERROR_TYPE,
                   "`%s` returns a value, but not on every way through it: its end can be reached",
                   function->decl->name);
    if (found.with) kj_note_verify(v, found.with->location, "here it returns a value");
  }
}

/* ---- the whole ---- */

static void verify_parameter(kj_verifier *v, kj_decl *param)
{
  v->in_parameters = true;
  kj_verify_type(v, param->type_expr, false);
  v->in_parameters = false;
  const kj_type_expr *type = param->type_expr;
  if (type && type->kind == KJ_TYPE_TUPLE && v->function->is_kernel)
    kj_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED,
                   "a kernel takes the items of a tuple one by one: give it a parameter for each, "
                   "of which `kjit_tuple` makes the tuple");
  if (param->value) {
    v->fixed = "a default";
    kj_verify_expr(v, param->value, KJ_ROLE_VALUE);
    v->fixed = NULL;
    if (param->is_func)
      kj_fail_verify(v, param->value->location, KJIT_ERROR_UNSUPPORTED,
                     "defaults of func parameters are not supported");
  }
}

void kj_verify_function(kj_verifier *v, kj_decl *decl)
{
  kj_function *function = decl->function;
  v->decl = decl;
  v->function = function;
  v->loop = v->range = NULL;
  v->shown.count = 0;
  v->visible = KJ_NEW_ARRAY(v->arena, bool, function->local_count + 1);
  if (!kj_is_name(decl->name) && function->is_kernel)
    kj_fail_verify(v, decl->location, KJIT_ERROR_NAME,
                   "`%s` is no name for a kernel: letters, digits and `_`, no digit first, no word "
                   "of the language",
                   decl->name);
  if (function->is_extern && !kj_is_name(decl->name))
    kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is no name of a C function",
                   decl->name);
  if (function->is_extern && function->body.count)
    kj_fail_verify(v, decl->location, KJIT_ERROR_MISUSE, "the extern func `%s` has statements",
                   decl->name);
  if (function->is_kernel && function->result)
    kj_fail_verify(v, function->result->location, KJIT_ERROR_TYPE,
                   "a kernel returns nothing: it writes to its array arguments");
  for (size_t i = 0; i < function->params.count; i++) kj_show_local(v, function->params.items[i]);
  for (size_t i = 0; i < function->params.count; i++)
    verify_parameter(v, function->params.items[i]);
  kj_verify_type(v, function->result, false);
  kj_verify_attributes(v, &function->attributes,
                       function->is_kernel ? KJ_PLACE_KERNEL : KJ_PLACE_FUNC);
  kj_verify_body(v, &function->body);
  verify_result(v);
  v->function = NULL;
}

enum { MAX_ERRORS = 10 };

static void count_error(kj_verifier *v)
{
  if (v->diagnostics->error_count >= MAX_ERRORS) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

void kj_fail_verify(kj_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...)
{
  count_error(v);
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
}

void kj_note_verify(kj_verifier *v, kj_location location, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, format,
                 list);
  va_end(list);
}

/* ---- the module ---- */

/* Constants of a builder are known by their nodes, not by name. */
static void collect_names(kj_verifier *v)
{
  for (size_t i = 0; i < v->module->decls.count; i++) {
    kj_decl *decl = v->module->decls.items[i];
    decl->index = (uint32_t)i;
    if (!v->is_text && decl->kind != KJ_DECL_FUNCTION && decl->kind != KJ_DECL_STRUCT) continue;
    kj_map_entry *entry = kj_get_entry(&v->decls, decl->name, strlen(decl->name));
    if (entry->value) {
      const kj_decl *first = entry->value;
      kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is declared twice in the module",
                     decl->name);
      kj_note_verify(v, first->location, "`%s` is first declared here", decl->name);
    } else entry->value = decl;
  }
}

void kj_finish_module(kjit_module *module, kj_diagnostics *diagnostics)
{
  kj_verifier *v = KJ_NEW(&module->arena, kj_verifier);
  *v = (kj_verifier){ .module = module, .diagnostics = diagnostics, .arena = &module->arena };
  v->is_text = module->sources.count && module->sources.items[0].text;
  kj_init_map(&v->decls, v->arena);
  collect_names(v);
  v->summaries = KJ_NEW_ARRAY(v->arena, kj_summary, module->decls.count + 1);
  kj_resolve_structs(v);
  for (size_t i = 0; i < module->decls.count; i++) {
    kj_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION) kj_verify_function(v, decl);
    else if (decl->kind == KJ_DECL_STRUCT)
      kj_verify_attributes(v, &decl->attributes, KJ_PLACE_STRUCT);
    else kj_verify_constant(v, decl);
  }
  kj_verify_constant_cycles(v);
  kj_verify_calls(v);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION)
      module->decls.items[i]->function->module = module;
  if (diagnostics->error_count) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

/* ki_finish_module: resolves the names that the parser and the builder have not resolved, and
 * checks all rules that do not depend on types. Type inference relies on these checks. */
#include <string.h>

#include "ir/lexer.h"
#include "ir/verify.h"

/* ---- attributes: where they are allowed and which values they take ---- */

static const char *describe_place(unsigned place)
{
  return place == KJ_PLACE_KERNEL  ? "a kernel"
         : place == KJ_PLACE_FUNC  ? "a function"
         : place == KJ_PLACE_LOOP  ? "a loop"
         : place == KJ_PLACE_ARRAY ? "a shared or local array"
                                   : "a struct";
}

static void verify_alignment(ki_verifier *v, const ki_attribute *attribute)
{
  const ki_expr *value = attribute->values.items[0];
  bool is_negative = value->kind == KJ_EXPR_UNARY && value->op == KJIT_OP_NEG;
  bool is_power = value->kind != KJ_EXPR_INT ||
                  (value->integer > 0 && (value->integer & (value->integer - 1)) == 0);
  if (is_negative || value->kind == KJ_EXPR_FLOAT || !is_power)
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an alignment must be a power of two");
}

static void verify_positive(ki_verifier *v, const ki_attribute *attribute)
{
  for (size_t i = 0; i < attribute->values.count; i++) {
    const ki_expr *value = attribute->values.items[i];
    bool is_negative =
      value->kind == KJ_EXPR_UNARY && value->op == KJIT_OP_NEG && value->x->kind == KJ_EXPR_INT;
    if (is_negative || value->kind == KJ_EXPR_FLOAT ||
        (value->kind == KJ_EXPR_INT && value->integer == 0))
      ki_fail_verify(v, value->location, KJIT_ERROR_TYPE, "`@%s` takes integers of at least 1",
                     attribute->info->name);
  }
}

static void verify_general(ki_verifier *v, const ki_attribute *attribute)
{
  const ki_expr *value = attribute->values.items[0];
  bool is_param = value->kind == KJ_EXPR_DECL && value->decl->kind == KJ_DECL_PARAM;
  if (!is_param && value->kind != KJ_EXPR_NAME)
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "`@general` must name a parameter of the kernel");
}

/* Verifies `@identity`. The rules about calls treat the func with the attribute as if it called its
 * identity func, because code that uses the func as an operator can need the identity. */
static void verify_identity(ki_verifier *v, const ki_attribute *attribute)
{
  ki_expr *value = attribute->values.items[0];
  ki_verify_expr(v, value, KJ_ROLE_ARGUMENT);
  if (value->kind == KJ_EXPR_NAME) return; /* reported */
  bool is_func = value->kind == KJ_EXPR_DECL && value->decl->kind == KJ_DECL_FUNCTION;
  const ki_function *function = is_func ? value->decl->function : NULL;
  if (!function)
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "`@identity` must name a function with one parameter that returns the neutral "
                   "element of the parameter's type");
  else if (ki_least_arguments(function) > 1 || function->params.count < 1)
    ki_fail_verify(
      v, value->location, KJIT_ERROR_TYPE,
      "`@identity` must name a function with one parameter, and `%s` has %zu parameter%s",
      value->decl->name, function->params.count, function->params.count == 1 ? "" : "s");
  if (v->function->params.count < 2)
    ki_fail_verify(v, attribute->location, KJIT_ERROR_TYPE,
                   "`@identity` is only for operators, functions with two parameters, but `%s` has "
                   "%zu parameter%s",
                   v->decl->name, v->function->params.count,
                   v->function->params.count == 1 ? "" : "s");
}

/* Verifies `@jvp` or `@vjp`, an attribute that names a custom derivative. */
static void verify_own_derivative(ki_verifier *v, const ki_attribute *attribute)
{
  ki_expr *value = attribute->values.items[0];
  ki_verify_expr(v, value, KJ_ROLE_ARGUMENT);
  if (value->kind == KJ_EXPR_NAME) return; /* reported */
  if (value->kind != KJ_EXPR_DECL || value->decl->kind != KJ_DECL_FUNCTION)
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "`@%s` must name a function that computes the derivative of `%s`",
                   attribute->info->name, v->decl->name);
}

static void verify_attribute(ki_verifier *v, ki_attribute *attribute, unsigned place)
{
  const ki_attribute_info *info = attribute->info;
  size_t count = attribute->values.count;
  if (!(info->places & place)) {
    ki_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` cannot be applied to %s",
                   info->name, describe_place(place));
    return;
  }
  if (count < (size_t)info->least || count > (size_t)info->most) {
    if (info->least == info->most)
      ki_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` takes %d value%s, not %zu",
                     info->name, info->least, info->least == 1 ? "" : "s", count);
    else
      ki_fail_verify(v, attribute->location, KJIT_ERROR_TYPE,
                     "`@%s` takes %d to %d values, not %zu", info->name, info->least, info->most,
                     count);
    return;
  }
  if (info == &ki_attribute_table[KJ_ATTRIBUTE_IDENTITY]) {
    verify_identity(v, attribute);
    return;
  }
  if (info == &ki_attribute_table[KJ_ATTRIBUTE_JVP] ||
      info == &ki_attribute_table[KJ_ATTRIBUTE_VJP]) {
    verify_own_derivative(v, attribute);
    return;
  }
  v->fixed = "an attribute";
  ki_verify_exprs(v, &attribute->values, KJ_ROLE_VALUE);
  v->fixed = NULL;
  if (info == &ki_attribute_table[KJ_ATTRIBUTE_ALIGN]) verify_alignment(v, attribute);
  else if (info == &ki_attribute_table[KJ_ATTRIBUTE_GENERAL]) verify_general(v, attribute);
  else verify_positive(v, attribute);
}

static void verify_contradiction(ki_verifier *v, const ki_attributes *attributes, size_t index)
{
  static const ki_attribute_id pairs[][2] = { { KJ_ATTRIBUTE_INLINE, KJ_ATTRIBUTE_NOINLINE },
                                              { KJ_ATTRIBUTE_STRICT, KJ_ATTRIBUTE_FASTMATH } };
  for (size_t j = 0; j < index; j++)
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
      const ki_attribute_info *a = attributes->items[index].info, *b = attributes->items[j].info,
                              *x = &ki_attribute_table[pairs[k][0]],
                              *y = &ki_attribute_table[pairs[k][1]];
      if ((a == x && b == y) || (a == y && b == x))
        ki_fail_verify(v, attributes->items[index].location, KJIT_ERROR_TYPE,
                       "`@%s` and `@%s` cannot be combined", b->name, a->name);
    }
}

void ki_verify_attributes(ki_verifier *v, ki_attributes *attributes, unsigned place)
{
  for (size_t i = 0; i < attributes->count; i++) {
    ki_attribute *attribute = &attributes->items[i];
    verify_attribute(v, attribute, place);
    bool is_repeatable = attribute->info == &ki_attribute_table[KJ_ATTRIBUTE_GENERAL];
    for (size_t j = 0; j < i && !is_repeatable; j++)
      if (attributes->items[j].info == attribute->info)
        ki_fail_verify(v, attribute->location, KJIT_ERROR_NAME, "`@%s` is given twice",
                       attribute->info->name);
    verify_contradiction(v, attributes, i);
  }
}

/* ---- rules across functions ----
 *
 * The depth of calls is limited, except for recursion. The body of a grid_range or block_range must
 * not contain operations that independent iterations cannot execute. Functions that the body calls
 * must not contain such operations either. A function that is passed as an argument counts as
 * called there. */

enum { MAX_CALL_HEIGHT = 100 };

static ki_summary *summary_of(ki_verifier *v, const ki_decl *decl)
{
  return &v->summaries[decl->index];
}

static void visit(ki_verifier *v, const ki_decl *decl, uint32_t depth)
{
  ki_summary *summary = summary_of(v, decl);
  if (summary->state == 2) return;
  summary->state = 1;
  summary->height = 1;
  for (size_t i = 0; i < summary->calls.count; i++) {
    const ki_call_site *site = &summary->calls.items[i];
    ki_summary *callee = summary_of(v, site->callee);
    /* the callee is recursive, which is allowed; type inference checks whether the types can be
     * determined */
    if (callee->state == 1) continue;
    if (depth < MAX_CALL_HEIGHT) visit(v, site->callee, depth + 1);
    if (depth >= MAX_CALL_HEIGHT || callee->height >= MAX_CALL_HEIGHT) {
      ki_fail_verify(v, site->location, KJIT_ERROR_UNSUPPORTED,
                     "calls are nested more than %d functions deep", MAX_CALL_HEIGHT);
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

static void verify_ranges(ki_verifier *v, const ki_decl *decl)
{
  const ki_summary *summary = summary_of(v, decl);
  for (size_t i = 0; i < summary->calls.count; i++) {
    const ki_call_site *site = &summary->calls.items[i];
    const ki_summary *callee = summary_of(v, site->callee);
    if (!site->range || !callee->forbidden) continue;
    ki_fail_verify(v, site->location, KJIT_ERROR_TYPE,
                   "`%s` cannot be called in the body of a %s, because it contains %s; the "
                   "iterations are independent and can run in any order",
                   site->callee->name, ki_range_names[site->range->range], callee->forbidden);
    ki_note_verify(v, callee->forbidden_at, "%s is here", callee->forbidden);
  }
}

void ki_verify_calls(ki_verifier *v)
{
  const kjit_module *module = v->module;
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) visit(v, module->decls.items[i], 0);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) verify_ranges(v, module->decls.items[i]);
}

/* ---- functions: parameters, body, result ---- */

/* ---- results ---- */

typedef struct returns {
  /* the first return with a value, and the first return without a value */
  const ki_stmt *with, *without;
} returns;

static void find_returns(const ki_stmts *body, returns *found)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_RETURN && stmt->value && !found->with) found->with = stmt;
    if (stmt->kind == KJ_STMT_RETURN && !stmt->value && !found->without) found->without = stmt;
    find_returns(&stmt->body, found);
    find_returns(&stmt->otherwise, found);
  }
}

/* Returns whether the body contains a `break` of its loop. */
static bool has_break(const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if (stmt->kind == KJ_STMT_BREAK ||
        (stmt->kind == KJ_STMT_IF && (has_break(&stmt->body) || has_break(&stmt->otherwise))))
      return true;
  }
  return false;
}

/* Returns whether control flow can reach the end of the statements. */
static bool reaches_end(const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
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

bool ki_gives_value(const ki_function *function)
{
  returns found = { 0 };
  find_returns(&function->body, &found);
  return found.with || function->result || function->builtin || function->is_header;
}

static void verify_result(ki_verifier *v)
{
  returns found = { 0 };
  const ki_function *function = v->function;
  find_returns(&function->body, &found);
  bool needs_value = found.with || function->result;
  if (function->is_kernel || function->is_extern || function->is_header || !needs_value) return;
  if (found.without) {
    ki_fail_verify(v, found.without->location, KJIT_ERROR_TYPE,
                   "`%s` returns a value at another `return`, but not at this one",
                   function->decl->name);
    if (found.with) ki_note_verify(v, found.with->location, "here it returns a value");
  } else if (reaches_end(&function->body)) {
    ki_fail_verify(v, function->decl->location, KJIT_ERROR_TYPE,
                   "`%s` returns a value, but its end can be reached without `return`",
                   function->decl->name);
    if (found.with) ki_note_verify(v, found.with->location, "here it returns a value");
  }
}

/* ---- verification of a module ---- */

static void verify_type_parameter(ki_verifier *v, ki_decl *param)
{
  KJ_ASSERT(param->is_type);
  if (v->function->is_kernel)
    ki_fail_verify(
      v, param->location, KJIT_ERROR_UNSUPPORTED,
      "`%s`: a kernel cannot have a type parameter; for the type of an argument write `dtype(x)`",
      param->name);
  if (v->function->is_extern)
    ki_fail_verify(
      v, param->location, KJIT_ERROR_UNSUPPORTED,
      "`%s`: an extern function cannot have a type parameter; only a function of the module can",
      param->name);
  if (!param->value) return;
  v->fixed = "a default";
  ki_convert_to_type(v, param->value);
  v->fixed = NULL;
}

static void verify_parameter(ki_verifier *v, ki_decl *param)
{
  if (param->is_type) {
    verify_type_parameter(v, param);
    return;
  }
  v->in_parameters = true;
  ki_verify_type(v, param->type_expr, false);
  v->in_parameters = false;
  const ki_type_expr *type = param->type_expr;
  if (type && type->kind == KJ_TYPE_TUPLE && v->function->is_kernel)
    ki_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED,
                   "a kernel receives the items of a tuple separately: declare a parameter for "
                   "each item and combine them with `kjit_build_tuple`");
  if (param->value) {
    v->fixed = "a default";
    ki_verify_expr(v, param->value, KJ_ROLE_VALUE);
    v->fixed = NULL;
    if (param->is_func)
      ki_fail_verify(v, param->value->location, KJIT_ERROR_UNSUPPORTED,
                     "a function parameter cannot have a default");
  }
}

void ki_verify_function(ki_verifier *v, ki_decl *decl)
{
  ki_function *function = decl->function;
  v->decl = decl;
  v->function = function;
  v->loop = v->range = NULL;
  v->shown.count = 0;
  v->visible = KJ_NEW_ARRAY(v->arena, bool, function->local_count + 1);
  if (!ki_is_name(decl->name) && function->is_kernel)
    ki_fail_verify(v, decl->location, KJIT_ERROR_NAME,
                   "`%s` is not a valid kernel name: use letters, digits and `_`, do not start "
                   "with a digit, and do not use a keyword",
                   decl->name);
  if (function->is_extern && !ki_is_name(decl->name))
    ki_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is not a valid name of a C function",
                   decl->name);
  if (function->is_extern && function->body.count)
    ki_fail_verify(v, decl->location, KJIT_ERROR_MISUSE,
                   "the extern function `%s` cannot have a body", decl->name);
  if (function->is_kernel && function->result)
    ki_fail_verify(v, function->result->location, KJIT_ERROR_TYPE,
                   "a kernel cannot return a value; it writes its results to array arguments");
  for (size_t i = 0; i < function->params.count; i++) ki_show_local(v, function->params.items[i]);
  for (size_t i = 0; i < function->params.count; i++)
    verify_parameter(v, function->params.items[i]);
  ki_verify_type(v, function->result, false);
  ki_verify_attributes(v, &function->attributes,
                       function->is_kernel ? KJ_PLACE_KERNEL : KJ_PLACE_FUNC);
  ki_verify_body(v, &function->body);
  verify_result(v);
  v->function = NULL;
}

enum { MAX_ERRORS = 10 };

static void count_error(ki_verifier *v)
{
  if (v->diagnostics->error_count >= MAX_ERRORS) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

void ki_fail_verify(ki_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...)
{
  count_error(v);
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
}

void ki_note_verify(ki_verifier *v, kj_location location, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, format,
                 list);
  va_end(list);
}

/* ---- finishing a module ---- */

/* Returns whether expressions can refer to the declaration by name. In a built module, expressions
 * refer to constants by node. A func from kjit_parse_expression is not visible in its own text,
 * which can use only parameters and built-ins. */
static bool has_visible_name(const ki_verifier *v, const ki_decl *decl)
{
  if (decl->kind == KJ_DECL_FUNCTION) return !decl->function->is_expression;
  return v->is_text || decl->kind == KJ_DECL_STRUCT;
}

static void collect_names(ki_verifier *v)
{
  for (size_t i = 0; i < v->module->decls.count; i++) {
    ki_decl *decl = v->module->decls.items[i];
    decl->index = (uint32_t)i;
    if (!has_visible_name(v, decl)) continue;
    kj_map *map = ki_is_library_decl(v->module, decl) ? &v->library_decls : &v->decls;
    kj_map_entry *entry = kj_get_entry(map, decl->name, strlen(decl->name));
    if (entry->value) {
      const ki_decl *first = entry->value;
      ki_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is declared twice in the module",
                     decl->name);
      ki_note_verify(v, first->location, "`%s` is first declared here", decl->name);
    } else entry->value = decl;
  }
}

void ki_finish_module(kjit_module *module, kj_diagnostics *diagnostics)
{
  ki_verifier *v = KJ_NEW(&module->arena, ki_verifier);
  *v = (ki_verifier){ .module = module, .diagnostics = diagnostics, .arena = &module->arena };
  v->is_text = module->sources.count && module->sources.items[0].text;
  kj_init_map(&v->decls, v->arena);
  kj_init_map(&v->library_decls, v->arena);
  collect_names(v);
  v->summaries = KJ_NEW_ARRAY(v->arena, ki_summary, module->decls.count + 1);
  ki_resolve_structs(v);
  for (size_t i = 0; i < module->decls.count; i++) {
    ki_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION) ki_verify_function(v, decl);
    else if (decl->kind == KJ_DECL_STRUCT)
      ki_verify_attributes(v, &decl->attributes, KJ_PLACE_STRUCT);
    else ki_verify_constant(v, decl);
  }
  ki_verify_constant_cycles(v);
  ki_verify_calls(v);
  ki_verify_guests(v);
  ki_verify_expressions(v);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION)
      module->decls.items[i]->function->module = module;
  if (diagnostics->error_count) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

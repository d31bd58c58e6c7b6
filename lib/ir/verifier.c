/* kj_finish_module: resolves what the parser and the builder left open and checks everything that needs no types. After it, typing meets only what it knows. */
#include <string.h>

#include "ir/lexer.h"
#include "ir/verify.h"

enum { MAX_ERRORS = 10 };

static void count_error(kj_verifier *v)
{
  if (v->diagnostics->error_count >= MAX_ERRORS) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

void kj_fail_verify(kj_verifier *v, kj_location location, kjit_status status, const char *format, ...)
{
  count_error(v);
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_ERROR, status, format, list);
  va_end(list);
}

void kj_note_verify(kj_verifier *v, kj_location location, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(v->diagnostics, &v->module->sources, location, KJIT_SEVERITY_NOTE, KJIT_OK, format, list);
  va_end(list);
}

/* ---- scopes: what is declared where it is used ---- */

static void show(kj_verifier *v, const kj_decl *decl)
{
  v->visible[decl->index] = true;
  KJ_PUSH(v->arena, &v->shown, decl->index);
}

static void hide(kj_verifier *v, size_t kept)
{
  while (v->shown.count > kept) v->visible[v->shown.items[--v->shown.count]] = false;
}

/* ---- attributes ---- */

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
  bool is_power = value->kind != KJ_EXPR_INT || (value->integer > 0 && (value->integer & (value->integer - 1)) == 0);
  if (is_negative || value->kind == KJ_EXPR_FLOAT || !is_power) kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an alignment is a power of two");
}

static void verify_positive(kj_verifier *v, const kj_attribute *attribute)
{
  for (size_t i = 0; i < attribute->values.count; i++) {
    const kj_expr *value = attribute->values.items[i];
    bool is_negative = value->kind == KJ_EXPR_UNARY && value->op == KJIT_NEG && value->x->kind == KJ_EXPR_INT;
    if (is_negative || value->kind == KJ_EXPR_FLOAT || (value->kind == KJ_EXPR_INT && value->integer == 0))
      kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "`@%s` takes integers from 1", attribute->info->name);
  }
}

static void verify_general(kj_verifier *v, const kj_attribute *attribute)
{
  const kj_expr *value = attribute->values.items[0];
  bool is_param = value->kind == KJ_EXPR_DECL && value->decl->kind == KJ_DECL_PARAM;
  if (!is_param && value->kind != KJ_EXPR_NAME) kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "`@general` names a parameter of the kernel");
}

static void verify_attribute(kj_verifier *v, kj_attribute *attribute, unsigned place)
{
  const kj_attribute_info *info = attribute->info;
  size_t count = attribute->values.count;
  if (!(info->places & place)) {
    kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` does not belong to %s", info->name, describe_place(place));
    return;
  }
  if (count < (size_t)info->least || count > (size_t)info->most) {
    if (info->least == info->most)
      kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` takes %d value%s, not %zu", info->name, info->least, info->least == 1 ? "" : "s", count);
    else kj_fail_verify(v, attribute->location, KJIT_ERROR_TYPE, "`@%s` takes %d to %d values, not %zu", info->name, info->least, info->most, count);
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
  static const kj_attribute_id pairs[][2] = { { KJ_ATTRIBUTE_INLINE, KJ_ATTRIBUTE_NOINLINE }, { KJ_ATTRIBUTE_STRICT, KJ_ATTRIBUTE_FASTMATH } };
  for (size_t j = 0; j < index; j++)
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
      const kj_attribute_info *a = attributes->items[index].info, *b = attributes->items[j].info, *x = &kj_attribute_table[pairs[k][0]],
                              *y = &kj_attribute_table[pairs[k][1]];
      if ((a == x && b == y) || (a == y && b == x))
        kj_fail_verify(v, attributes->items[index].location, KJIT_ERROR_TYPE, "`@%s` and `@%s` exclude each other", b->name, a->name);
    }
}

static void verify_attributes(kj_verifier *v, kj_attributes *attributes, unsigned place)
{
  for (size_t i = 0; i < attributes->count; i++) {
    kj_attribute *attribute = &attributes->items[i];
    verify_attribute(v, attribute, place);
    bool is_repeatable = attribute->info == &kj_attribute_table[KJ_ATTRIBUTE_GENERAL];
    for (size_t j = 0; j < i && !is_repeatable; j++)
      if (attributes->items[j].info == attribute->info) kj_fail_verify(v, attribute->location, KJIT_ERROR_NAME, "`@%s` is given twice", attribute->info->name);
    verify_contradiction(v, attributes, i);
  }
}

/* ---- statements ---- */

static void verify_body(kj_verifier *v, const kj_stmts *body);

/* How many values an expression has, where that is known without types; 0: unknown. */
static size_t count_values(const kj_expr *value)
{
  if (value->kind == KJ_EXPR_TUPLE) return value->args.count;
  if (value->kind != KJ_EXPR_CALL || value->x->kind != KJ_EXPR_BUILTIN || value->args.count != 1) return 0;
  bool is_grid = value->x->builtin->id == KJ_BUILTIN_GRID || value->x->builtin->id == KJ_BUILTIN_GRIDSIZE;
  const kj_expr *rank = value->args.items[0];
  return is_grid && rank->kind == KJ_EXPR_INT && rank->integer <= 3 ? (size_t)rank->integer : 0;
}

static void verify_count(kj_verifier *v, const kj_expr *value, size_t names, const char *what)
{
  size_t values = count_values(value);
  if (names > 1 && values && values != names)
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "%zu %s for %zu value%s", names, what, values, values == 1 ? "" : "s");
}

static void verify_declare(kj_verifier *v, kj_stmt *stmt)
{
  kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  kj_verify_type(v, stmt->decls.items[0]->type_expr, false);
  verify_count(v, stmt->value, stmt->decls.count, "names");
  for (size_t i = 0; i < stmt->decls.count; i++) show(v, stmt->decls.items[i]);
}

static void verify_storage(kj_verifier *v, kj_stmt *stmt)
{
  kj_decl *decl = stmt->decls.items[0];
  kj_type_expr *type = decl->type_expr;
  bool is_shared = decl->kind == KJ_DECL_SHARED, is_array = type->kind == KJ_TYPE_STATIC_ARRAY;
  const char *word = is_shared ? "shared" : "local";
  kj_verify_type(v, type, true);
  verify_attributes(v, &decl->attributes, KJ_PLACE_ARRAY);
  const kj_type_expr *element = is_array ? type->element : type;
  bool is_whole = element->kind == KJ_TYPE_FIXED && kj_type(v->module->types, element->type)->class_ != KJ_CLASS_ARRAY;
  bool is_scalar = element->kind == KJ_TYPE_DTYPE || is_whole;
  if (element->kind == KJ_TYPE_TUPLE) kj_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED, "tuples in %s memory are not supported", word);
  else if (!is_scalar && (element->kind == KJ_TYPE_FIXED || element->kind == KJ_TYPE_ARRAY))
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "a %s array has extents: `%s %s: f32[16]`", word, word, decl->name);
  if (is_array && type->extents.count == 0 && !is_shared)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "a local array has extents: `local %s: f32[16]`", decl->name);
  if (is_array && type->extents.count == 0 && is_shared && v->has_dynamic_shared)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "a kernel has one shared array of the launch's size; the others have extents");
  v->has_dynamic_shared |= is_array && type->extents.count == 0;
  show(v, decl);
}

static void verify_assign(kj_verifier *v, kj_stmt *stmt)
{
  kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  for (size_t i = 0; i < stmt->places.count; i++) kj_verify_place(v, stmt->places.items[i], false);
  verify_count(v, stmt->value, stmt->places.count, "places");
}

static void verify_if(kj_verifier *v, kj_stmt *stmt)
{
  kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  verify_body(v, &stmt->body);
  verify_body(v, &stmt->otherwise);
}

static void verify_loop_body(kj_verifier *v, kj_stmt *stmt)
{
  const kj_stmt *loop = v->loop;
  v->loop = stmt;
  verify_body(v, &stmt->body);
  v->loop = loop;
}

static void verify_while(kj_verifier *v, kj_stmt *stmt)
{
  kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  verify_attributes(v, &stmt->attributes, KJ_PLACE_LOOP);
  verify_loop_body(v, stmt);
}

static const char *range_name(const kj_stmt *stmt)
{
  static const char *const names[] = { "range", "grid_range", "block_range" };
  return names[stmt->range];
}

static void verify_range(kj_verifier *v, kj_stmt *stmt)
{
  size_t names = stmt->decls.count, count = stmt->args.count;
  kj_verify_exprs(v, &stmt->args, KJ_ROLE_VALUE);
  if (count < 1 || count > 3) kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`%s` takes 1 to 3 arguments, not %zu", range_name(stmt), count);
  else if (stmt->range == KJ_RANGE && names != 1) kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`range` counts with one name, here are %zu", names);
  else if (stmt->range != KJ_RANGE && names != count)
    kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`%s` has a name for every extent: here are %zu for %zu", range_name(stmt), names, count);
}

static void verify_grid_loop(kj_verifier *v, kj_stmt *stmt)
{
  kj_summary *summary = &v->summaries[v->decl->index];
  if (v->range) kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "a %s inside a %s", range_name(stmt), range_name(v->range));
  else if (!summary->forbidden) {
    summary->forbidden = stmt->range == KJ_GRID_RANGE ? "a grid_range" : "a block_range";
    summary->forbidden_at = stmt->location;
  }
  if (stmt->attributes.count)
    kj_fail_verify(v, stmt->attributes.items[0].location, KJIT_ERROR_TYPE, "`@%s` does not belong to a %s", stmt->attributes.items[0].info->name,
                   range_name(stmt));
}

static void verify_for(kj_verifier *v, kj_stmt *stmt)
{
  verify_range(v, stmt);
  const kj_stmt *range = v->range;
  if (stmt->range == KJ_RANGE) verify_attributes(v, &stmt->attributes, KJ_PLACE_LOOP);
  else verify_grid_loop(v, stmt);
  if (stmt->range != KJ_RANGE && !range) v->range = stmt;
  size_t kept = v->shown.count;
  for (size_t i = 0; i < stmt->decls.count; i++) show(v, stmt->decls.items[i]);
  verify_loop_body(v, stmt);
  hide(v, kept);
  v->range = range;
}

static void verify_jump(kj_verifier *v, const kj_stmt *stmt)
{
  const char *word = stmt->kind == KJ_STMT_BREAK ? "break" : "continue";
  if (!v->loop) kj_fail_verify(v, stmt->location, KJIT_ERROR_SYNTAX, "`%s` outside of a loop", word);
  else if (stmt->kind == KJ_STMT_BREAK && v->loop->kind == KJ_STMT_FOR && v->loop->range != KJ_RANGE)
    kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`break` in a %s: its iterations are independent; `continue` ends one", range_name(v->loop));
}

static void verify_return(kj_verifier *v, kj_stmt *stmt)
{
  if (v->range)
    kj_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`return` in a %s: its iterations are independent; `continue` ends one", range_name(v->range));
  if (stmt->value && v->function->is_kernel)
    kj_fail_verify(v, stmt->value->location, KJIT_ERROR_TYPE, "a kernel returns nothing: it writes to its array arguments");
  if (stmt->value) kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
}

static void verify_evaluate(kj_verifier *v, kj_stmt *stmt) { kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE); }

static void verify_print(kj_verifier *v, kj_stmt *stmt)
{
  for (size_t i = 0; i < stmt->args.count; i++)
    if (stmt->args.items[i]->kind != KJ_EXPR_STRING) kj_verify_expr(v, stmt->args.items[i], KJ_ROLE_VALUE);
}

static void verify_stmt(kj_verifier *v, kj_stmt *stmt)
{
  switch (stmt->kind) {
  case KJ_STMT_DECLARE: verify_declare(v, stmt); break;
  case KJ_STMT_STORAGE: verify_storage(v, stmt); break;
  case KJ_STMT_ASSIGN: verify_assign(v, stmt); break;
  case KJ_STMT_EVALUATE: verify_evaluate(v, stmt); break;
  case KJ_STMT_IF: verify_if(v, stmt); break;
  case KJ_STMT_WHILE: verify_while(v, stmt); break;
  case KJ_STMT_FOR: verify_for(v, stmt); break;
  case KJ_STMT_BREAK:
  case KJ_STMT_CONTINUE: verify_jump(v, stmt); break;
  case KJ_STMT_RETURN: verify_return(v, stmt); break;
  case KJ_STMT_ASSERT: kj_verify_expr(v, stmt->value, KJ_ROLE_VALUE); break;
  case KJ_STMT_RAISE: break;
  case KJ_STMT_PRINT: verify_print(v, stmt); break;
  }
}

static void verify_body(kj_verifier *v, const kj_stmts *body)
{
  size_t kept = v->shown.count;
  for (size_t i = 0; i < body->count; i++) verify_stmt(v, body->items[i]);
  hide(v, kept);
}

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
    if (stmt->kind == KJ_STMT_BREAK || (stmt->kind == KJ_STMT_IF && (has_break(&stmt->body) || has_break(&stmt->otherwise)))) return true;
  }
  return false;
}

/* Whether control can reach the end of the statements. */
static bool reaches_end(const kj_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const kj_stmt *stmt = body->items[i];
    bool is_endless = stmt->kind == KJ_STMT_WHILE && stmt->value->kind == KJ_EXPR_BOOL && stmt->value->integer && !has_break(&stmt->body);
    bool is_jump = stmt->kind == KJ_STMT_RETURN || stmt->kind == KJ_STMT_BREAK || stmt->kind == KJ_STMT_CONTINUE || stmt->kind == KJ_STMT_RAISE;
    bool both_leave = stmt->kind == KJ_STMT_IF && !reaches_end(&stmt->body) && !reaches_end(&stmt->otherwise);
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
    kj_fail_verify(v, found.without->location, KJIT_ERROR_TYPE, "`%s` returns a value elsewhere and none here", function->decl->name);
    if (found.with) kj_note_verify(v, found.with->location, "here it returns a value");
  } else if (reaches_end(&function->body)) {
    kj_fail_verify(v, function->decl->location, KJIT_ERROR_TYPE, "`%s` returns a value, but not on every way through it: its end can be reached",
                   function->decl->name);
    if (found.with) kj_note_verify(v, found.with->location, "here it returns a value");
  }
}

/* ---- functions ---- */

static void verify_parameter(kj_verifier *v, kj_decl *param)
{
  v->in_parameters = true;
  kj_verify_type(v, param->type_expr, false);
  v->in_parameters = false;
  const kj_type_expr *type = param->type_expr;
  if (type && type->kind == KJ_TYPE_TUPLE && v->function->is_kernel)
    kj_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED, "tuples as parameters of kernels are not supported");
  if (param->value) {
    v->fixed = "a default";
    kj_verify_expr(v, param->value, KJ_ROLE_VALUE);
    v->fixed = NULL;
    if (param->is_func) kj_fail_verify(v, param->value->location, KJIT_ERROR_UNSUPPORTED, "defaults of func parameters are not supported");
  }
}

static void verify_function(kj_verifier *v, kj_decl *decl)
{
  kj_function *function = decl->function;
  v->decl = decl;
  v->function = function;
  v->loop = v->range = NULL;
  v->has_dynamic_shared = false;
  v->shown.count = 0;
  v->visible = KJ_NEW_ARRAY(v->arena, bool, function->local_count + 1);
  if (!kj_is_name(decl->name) && function->is_kernel)
    kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is no name for a kernel: letters, digits and `_`, no digit first, no word of the language",
                   decl->name);
  if (function->is_extern && !kj_is_name(decl->name)) kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is no name of a C function", decl->name);
  if (function->is_extern && function->body.count) kj_fail_verify(v, decl->location, KJIT_ERROR_MISUSE, "the extern func `%s` has statements", decl->name);
  if (function->is_kernel && function->result)
    kj_fail_verify(v, function->result->location, KJIT_ERROR_TYPE, "a kernel returns nothing: it writes to its array arguments");
  for (size_t i = 0; i < function->params.count; i++) show(v, function->params.items[i]);
  for (size_t i = 0; i < function->params.count; i++) verify_parameter(v, function->params.items[i]);
  kj_verify_type(v, function->result, false);
  verify_attributes(v, &function->attributes, function->is_kernel ? KJ_PLACE_KERNEL : KJ_PLACE_FUNC);
  verify_body(v, &function->body);
  verify_result(v);
  v->function = NULL;
}

/* ---- constants ---- */

/* Rows of equal length at every level, down to numbers; the extents that the value has go to extents. Returns the rank. */
static uint32_t measure_aggregate(kj_verifier *v, const kj_expr *value, uint32_t depth, int64_t *extents)
{
  if (value->kind != KJ_EXPR_TUPLE) return 0;
  if (depth == KJ_MAX_RANK) {
    kj_fail_verify(v, value->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions", KJ_MAX_RANK);
    return 0;
  }
  uint32_t rank = 0;
  extents[depth] = (int64_t)value->args.count;
  for (size_t i = 0; i < value->args.count; i++) {
    int64_t row[KJ_MAX_RANK] = { 0 };
    uint32_t row_rank = measure_aggregate(v, value->args.items[i], depth + 1, row);
    if (i == 0) {
      rank = row_rank;
      memcpy(extents + depth + 1, row + depth + 1, (KJ_MAX_RANK - depth - 1) * sizeof *extents);
    } else if (row_rank != rank || memcmp(extents + depth + 1, row + depth + 1, (KJ_MAX_RANK - depth - 1) * sizeof *extents) != 0) {
      kj_fail_verify(v, value->args.items[i]->location, KJIT_ERROR_TYPE, "the rows of a constant have equal lengths: row %zu differs from the first", i + 1);
      break;
    }
  }
  return rank + 1;
}

static void verify_values(kj_verifier *v, kj_expr *value)
{
  if (value->kind != KJ_EXPR_TUPLE) kj_verify_expr(v, value, KJ_ROLE_VALUE);
  for (size_t i = 0; value->kind == KJ_EXPR_TUPLE && i < value->args.count; i++) verify_values(v, value->args.items[i]);
}

static void verify_shape(kj_verifier *v, const kj_decl *decl)
{
  const kj_type_expr *type = decl->type_expr;
  int64_t extents[KJ_MAX_RANK] = { 0 };
  uint32_t rank = measure_aggregate(v, decl->value, 0, extents);
  if (!type) return;
  bool is_array = type->kind == KJ_TYPE_STATIC_ARRAY;
  bool is_scalar = type->kind == KJ_TYPE_DTYPE || (type->kind == KJ_TYPE_FIXED && kj_is_element(v->module->types, type->type));
  if (!is_array && !is_scalar)
    kj_fail_verify(v, type->location, KJIT_ERROR_TYPE, "a constant is a scalar, a vector, a struct or an array of these with extents: `f32[3]`");
  else if (is_array && type->extents.count != rank)
    kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE, "the type of `%s` has %zu dimensions, its value %u", decl->name, type->extents.count, rank);
  else if (is_scalar && rank) kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE, "`%s` is a scalar by its type, its value an array", decl->name);
  for (uint32_t i = 0; is_array && i < rank && type->extents.count == rank; i++) {
    const kj_expr *extent = type->extents.items[i];
    if (extent->kind == KJ_EXPR_INT && extent->integer != extents[i])
      kj_fail_verify(v, decl->value->location, KJIT_ERROR_TYPE, "dimension %u of `%s` has %lld elements by its type and %lld by its value", i, decl->name,
                     (long long)extent->integer, (long long)extents[i]);
  }
}

static void verify_constant(kj_verifier *v, kj_decl *decl)
{
  v->decl = decl;
  v->fixed = "a constant";
  kj_verify_type(v, decl->type_expr, true);
  if (decl->value) {
    verify_values(v, decl->value);
    verify_shape(v, decl);
  }
  v->fixed = NULL;
}

/* A constant may be made from others, not from itself. */
static void find_cycle(kj_verifier *v, kj_decl *decl, uint8_t *states, uint32_t depth);

static void follow_constants(kj_verifier *v, const kj_expr *expr, uint8_t *states, uint32_t depth)
{
  if (!expr) return;
  if (expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_CONST) find_cycle(v, expr->decl, states, depth + 1);
  if (expr->type_expr) follow_constants(v, expr->type_expr->expr, states, depth);
  const kj_expr *children[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++) follow_constants(v, children[i], states, depth);
  for (size_t i = 0; i < expr->args.count; i++) follow_constants(v, expr->args.items[i], states, depth);
}

static void find_cycle(kj_verifier *v, kj_decl *decl, uint8_t *states, uint32_t depth)
{
  if (states[decl->index] == 2) return;
  if (states[decl->index] == 1 || depth > KJ_MAX_NESTING) {
    kj_fail_verify(v, decl->location, KJIT_ERROR_NAME,
                   states[decl->index] == 1 ? "the constant `%s` is made from itself" : "the constant `%s` is at the end of a chain of too many others",
                   decl->name);
    longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
  }
  states[decl->index] = 1;
  follow_constants(v, decl->value, states, depth);
  for (size_t i = 0; decl->type_expr && i < decl->type_expr->extents.count; i++) follow_constants(v, decl->type_expr->extents.items[i], states, depth);
  states[decl->index] = 2;
}

static void verify_constant_cycles(kj_verifier *v)
{
  uint8_t *states = KJ_NEW_ARRAY(v->arena, uint8_t, v->module->decls.count + 1);
  for (size_t i = 0; i < v->module->decls.count; i++)
    if (v->module->decls.items[i]->kind == KJ_DECL_CONST) find_cycle(v, v->module->decls.items[i], states, 0);
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
      kj_fail_verify(v, decl->location, KJIT_ERROR_NAME, "`%s` is declared twice in the module", decl->name);
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
    if (decl->kind == KJ_DECL_FUNCTION) verify_function(v, decl);
    else if (decl->kind == KJ_DECL_STRUCT) verify_attributes(v, &decl->attributes, KJ_PLACE_STRUCT);
    else verify_constant(v, decl);
  }
  verify_constant_cycles(v);
  kj_verify_calls(v);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) module->decls.items[i]->function->module = module;
  if (diagnostics->error_count) longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
}

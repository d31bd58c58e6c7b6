/* Functions: parameters, body, result. */
#include "ir/lexer.h"
#include "ir/verify.h"

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
                   "tuples as parameters of kernels are not supported");
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
  v->has_dynamic_shared = false;
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

/* Places: what an assignment or an atomic may change. */
#include <string.h>

#include "ir/verify.h"

static const char *const decl_kinds[] = {
  [KJ_DECL_FUNCTION] = "a function",
  [KJ_DECL_CONST] = "a constant",
  [KJ_DECL_STRUCT] = "a struct",
  [KJ_DECL_PARAM] = "a parameter",
  [KJ_DECL_LET] = "a `let`",
  [KJ_DECL_VAR] = "a `var`",
  [KJ_DECL_SHARED] = "shared memory",
  [KJ_DECL_LOCAL] = "local memory",
  [KJ_DECL_LOOP] = "the variable of a loop",
};

static void verify_name_place(kj_verifier *v, kj_expr *place, bool is_atomic)
{
  kj_decl *decl = place->decl;
  bool is_memory = decl->kind == KJ_DECL_SHARED || decl->kind == KJ_DECL_LOCAL;
  if (is_memory && decl->type_expr->kind == KJ_TYPE_STATIC_ARRAY)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is an array: its elements are changed, `%s[i]`", decl->name, decl->name);
  else if (decl->kind == KJ_DECL_SHARED) return;
  else if (is_atomic)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "an atomic changes an element of an array, `a[i]`, or shared memory; `%s` is %s",
                   decl->name, decl_kinds[decl->kind]);
  else if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  else if (decl->kind == KJ_DECL_LET)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is a `let` and keeps its value: declare it `var %s` to assign to it",
                   decl->name, decl->name);
  else if (!is_memory)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is %s and keeps its value: assign to a `var`", decl->name,
                   decl_kinds[decl->kind]);
}

/* What an element is an element of, or a field a part of. Whether a field is one of a struct that
 * may change, or the extent of an array, types say. */
static void verify_root(kj_verifier *v, const kj_expr *place)
{
  const kj_expr *root = place;
  bool has_index = false;
  for (; root->kind == KJ_EXPR_INDEX || root->kind == KJ_EXPR_FIELD; root = root->x)
    has_index |= root->kind == KJ_EXPR_INDEX;
  if (root->kind == KJ_EXPR_TUPLE || root->kind == KJ_EXPR_INT || root->kind == KJ_EXPR_FLOAT)
    kj_fail_verify(
      v, place->location, KJIT_ERROR_TYPE,
      "this cannot be changed: only a `var`, elements of arrays and fields of these can");
  if (root->kind != KJ_EXPR_DECL) return;
  kj_decl *decl = root->decl;
  if (decl->kind == KJ_DECL_CONST)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is a constant and keeps its values",
                   decl->name);
  if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  bool is_fixed =
    decl->kind == KJ_DECL_PARAM && decl->type_expr && decl->type_expr->kind == KJ_TYPE_FIXED;
  bool read_only = is_fixed ? kj_type(v->module->types, decl->type_expr->type)->read_only
                            : decl->type_expr && decl->type_expr->read_only;
  if (decl->kind == KJ_DECL_PARAM && read_only)
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is declared `const`: %s cannot be changed", decl->name,
                   has_index ? "its elements" : "what it points to");
}

void kj_verify_place(kj_verifier *v, kj_expr *place, bool is_atomic)
{
  if (place->kind == KJ_EXPR_NAME && !kj_find_entry(&v->decls, place->name, strlen(place->name))) {
    if (!kj_is_known_name(v, place->name))
      kj_fail_unknown(v, place->location, place->name, !is_atomic);
    else
      kj_fail_verify(v, place->location, KJIT_ERROR_NAME,
                     "`%s` is built in and cannot be changed: `var %s = ...` declares a variable",
                     place->name, place->name);
    return;
  }
  kj_verify_expr(v, place,
                 place->kind == KJ_EXPR_DECL || place->kind == KJ_EXPR_NAME ? KJ_ROLE_ARGUMENT
                                                                            : KJ_ROLE_VALUE);
  if (place->kind == KJ_EXPR_DECL) verify_name_place(v, place, is_atomic);
  else if (place->kind == KJ_EXPR_INDEX || place->kind == KJ_EXPR_FIELD) verify_root(v, place);
  else
    kj_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   is_atomic ? "an atomic changes an element of an array, `a[i]`, or shared memory"
                             : "expected a place to assign to: a `var` or an element, `a[i]`");
}

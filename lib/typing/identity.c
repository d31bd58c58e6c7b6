/* Identity elements of operators: calls the func that the operator's attribute `@identity`
 * names. */
#include "typing/infer.h"
#include "typing/rules.h"

/* Returns the identity func of the operator in the first argument, or NULL if it has none. */
static const ki_function *find_identity(kt_scope *s, const kt_operands *o, kt_callee *operator_)
{
  const ki_expr *first = o->call->args.items[0];
  if (!kt_as_callee(s, first, operator_))
    kt_fail(s->c, first->location, KJIT_ERROR_TYPE, "the first argument of `%s` must be a function",
            o->builtin->name);
  bool is_func = operator_->function && !operator_->derived;
  const ki_decl *decl = is_func ? ki_find_identity(operator_->function) : NULL;
  return decl ? decl->function : NULL;
}

kt_expr *kt_rule_has_identity(kt_scope *s, const kt_operands *o)
{
  kt_callee operator_;
  return kt_new_integer(s, KJIT_BOOL, find_identity(s, o, &operator_) != NULL, o->location);
}

kt_expr *kt_rule_identity_of(kt_scope *s, const kt_operands *o)
{
  kt_callee operator_;
  const ki_function *identity = find_identity(s, o, &operator_);
  if (!identity)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` has no identity element; write `@identity(f)` after its parameters to name the "
            "function that "
            "returns the identity, or test with `has_identity`",
            kt_callee_text(s->c, &operator_));
  ki_expr *call = KJ_NEW(s->arena, ki_expr);
  *call = (ki_expr){ .kind = KJ_EXPR_CALL, .location = o->location, .height = o->call->height };
  KJ_PUSH(s->arena, &call->args, o->call->args.items[1]);
  return kt_infer_function_call(s, call, &(kt_callee){ .function = identity }, o->builtin->name);
}

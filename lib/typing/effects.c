/* Determines the effects of an expression or a statement, including the memory that it reads and
 * writes.
 *
 * All parts of the compiler use this analysis. Inference uses it to preserve the order of operands
 * (operand_order.c). Passes use it to move, repeat or remove code. The analysis visits all
 * expressions of a node, including its indices, extents, conditions and arguments. */
#include "typing/typed.h"

/* ---- memory ---- */

uint8_t kt_memory_of(const ki_types *types, kjit_type array)
{
  switch (ki_type(types, array)->space) {
  case KJ_SPACE_GLOBAL: return KJ_MEMORY_GLOBAL;
  case KJ_SPACE_SHARED: return KJ_MEMORY_SHARED;
  case KJ_SPACE_LOCAL: return KJ_MEMORY_LOCAL;
  case KJ_SPACE_CONST:
  case KJ_SPACE_VALUE: return 0;
  case KJ_SPACE_GENERIC: break;
  }
  return KJ_MEMORY_ANY;
}

/* ---- checks ---- */

bool kt_is_division(kjit_op op)
{
  return op == KJIT_OP_DIV || op == KJIT_OP_FLOORDIV || op == KJIT_OP_MOD;
}

bool kt_is_division_builtin(ki_builtin_id id)
{
  return id == KJ_BUILTIN_CEIL_DIV || id == KJ_BUILTIN_DIV_TRUNC || id == KJ_BUILTIN_REM_TRUNC;
}

bool kt_checks_divisor(const kt_compilation *c, kjit_type type)
{
  if (!ki_is_weak(type) && ki_type(c->types, type)->class_ == KJ_CLASS_VECTOR)
    type = ki_get_component(c->types, type, 0).type;
  bool is_integer = type == KJIT_BOOL || ki_is_integral(type);
  return c->request->checks &
         (is_integer ? KJIT_CHECK_INTEGER_DIVISION : KJIT_CHECK_FLOAT_DIVISION);
}

bool kt_checks_division(const kt_compilation *c, const kt_expr *expr)
{
  const kt_expr *divisor = NULL;
  if (expr->kind == KJ_T_BINARY && !expr->is_power && kt_is_division(expr->op)) divisor = expr->y;
  if (expr->kind == KJ_T_BUILTIN && kt_is_division_builtin(expr->builtin->id))
    divisor = expr->args.items[1];
  return divisor && kt_checks_divisor(c, divisor->type) &&
         !(divisor->kind == KJ_T_CONST && ki_is_true(kt_value_of(divisor)));
}

/* Returns whether a check of this node can fail. Until pass/checks.c has decided which nodes are
 * checked, the function assumes that every access and every division is checked if the request
 * enables the check. */
static bool may_fail_itself(const kt_compilation *c, const kt_expr *expr)
{
  enum { OF_ACCESSES = KJIT_CHECK_BOUNDS | KJIT_CHECK_UNINITIALIZED | KJIT_CHECK_RACES };
  if (c->state & KJ_TREE_CHECKED) return expr->is_checked || expr->is_watched;
  bool accesses = expr->kind == KJ_T_LOAD || expr->kind == KJ_T_VIEW ||
                  expr->kind == KJ_T_ADDRESS || expr->kind == KJ_T_ELEMENT ||
                  expr->kind == KJ_T_INSERT;
  return (accesses && (c->request->checks & OF_ACCESSES)) || kt_checks_division(c, expr);
}

/* ---- effects ---- */

typedef struct search {
  const kt_compilation *c;
  kt_effects *found;
} search;

void kt_join_effects(kt_effects *to, const kt_effects *more)
{
  to->reads |= more->reads;
  to->writes |= more->writes;
  to->acts |= more->acts;
  to->may_fail |= more->may_fail;
  to->has_positions |= more->has_positions;
  to->has_locals |= more->has_locals;
  to->has_loops |= more->has_loops;
}

static bool add_expr(void *data, const kt_expr *expr);
static bool add_stmt(void *data, const kt_stmt *stmt);

/* The effects of a call whose body is unknown: an extern func, or a func that is still being
 * inferred. */
static const kt_effects everything = { .reads = KJ_MEMORY_ANY,
                                       .writes = KJ_MEMORY_ANY,
                                       .acts = true,
                                       .may_fail = true,
                                       .has_positions = true,
                                       .has_loops = true };

/* Adds a call's effects. They are stored in the instance and recomputed after pass/checks.c has
 * run. Accesses to local arrays of the called func are not effects of the call. */
static void add_call(const search *s, kt_instance *instance)
{
  kt_known_effects *known = &instance->effects;
  uint32_t state = s->c->state & KJ_TREE_CHECKED;
  if (instance->function->is_extern || known->is_busy || !instance->is_inferred) {
    kt_join_effects(s->found, &everything);
    return;
  }
  if (!known->is_known || known->state != state) {
    kt_effects own = { 0 };
    search inner = { s->c, &own };
    known->is_busy = true;
    kt_any_in_tstmts(&instance->body, add_stmt, add_expr, &inner);
    own.has_locals = false;
    *known = (kt_known_effects){ .is_known = true, .state = state, .all = own };
  }
  kt_join_effects(s->found, &known->all);
}

/* Adds the effects of the node itself. Always returns false, so that the walk visits all nodes. */
static bool add_expr(void *data, const kt_expr *expr)
{
  const search *s = data;
  kt_effects *found = s->found;
  found->may_fail |= may_fail_itself(s->c, expr);
  switch (kt_source_of(expr)) {
  case KJ_FROM_OPERANDS: break;
  case KJ_FROM_VARIABLE: found->has_locals |= expr->var->kind == KJ_V_LOCAL; break;
  case KJ_FROM_MEMORY: found->reads |= kt_memory_of(s->c->types, expr->x->type); break;
  case KJ_FROM_BUILTIN:
    found->acts |= !(expr->builtin->flags & KJ_PURE);
    found->has_positions |= (expr->builtin->flags & KJ_THREAD) != 0;
    break;
  case KJ_FROM_CALL: add_call(s, expr->instance); break;
  }
  return false;
}

static bool add_stmt(void *data, const kt_stmt *stmt)
{
  const search *s = data;
  kt_effects *found = s->found;
  if (stmt->kind == KJ_TS_STORE) found->writes |= kt_memory_of(s->c->types, stmt->array->type);
  found->acts |= stmt->kind == KJ_TS_FAIL || stmt->kind == KJ_TS_PRINT;
  found->may_fail |= stmt->is_checked || stmt->is_watched;
  found->has_loops |= kt_flow_of(stmt) == KJ_FLOW_LOOP;
  return false;
}

void kt_add_effects(const kt_compilation *c, const kt_expr *expr, kt_effects *effects)
{
  kt_any_texpr(expr, add_expr, &(search){ c, effects });
}

void kt_add_stmt_effects(const kt_compilation *c, const kt_stmt *stmt, kt_effects *effects)
{
  kt_any_in_tstmt(stmt, add_stmt, add_expr, &(search){ c, effects });
}

/* ---- order of evaluation ---- */

static bool changes_what(const kt_effects *a, const kt_effects *b)
{
  if (a->writes & (b->reads | b->writes)) return true;
  if (a->acts && (b->acts || b->reads || b->writes)) return true;
  return b->may_fail && (a->acts || a->writes);
}

bool kt_commute(const kt_effects *a, const kt_effects *b)
{
  return !changes_what(a, b) && !changes_what(b, a);
}

/* ---- expressions that need not be evaluated ---- */

static bool has_own_effect(void *data, const kt_expr *expr)
{
  (void)data;
  return expr->kind == KJ_T_CALL ||
         (expr->kind == KJ_T_BUILTIN && !(expr->builtin->flags & KJ_PURE));
}

bool kt_has_effect(const kt_expr *expr) { return kt_any_texpr(expr, has_own_effect, NULL); }

static bool matters(void *data, const kt_expr *expr)
{
  return has_own_effect(NULL, expr) || may_fail_itself(data, expr);
}

bool kt_can_drop(const kt_compilation *c, const kt_expr *expr)
{
  return !kt_any_texpr(expr, matters, (void *)c);
}

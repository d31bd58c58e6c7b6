/* The builder's expressions. Each public call creates one node. */
#include <math.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "ir/builder.h"
#include "ir/expr.h"
#include "ir/lexer.h"
#include "ir/number.h"

/* ---- nodes ---- */

ki_expr *ki_make_expr(kjit_builder *builder, ki_expr_kind kind)
{
  return ki_new_expr(ki_builder_arena(builder), kind, builder->location);
}

static kjit_node add_node(kjit_builder *builder, ki_node node)
{
  node.function = builder->function;
  if (builder->nodes.count >= UINT32_MAX - 1)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "a builder has at most %u nodes", UINT32_MAX - 1);
  KJ_PUSH(ki_builder_arena(builder), &builder->nodes, node);
  return (kjit_node)builder->nodes.count;
}

kjit_node ki_add_expr(kjit_builder *builder, ki_expr *expr)
{
  if (ki_measure_expr(expr) > KJ_MAX_HEIGHT)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "an expression has more than %d levels; name parts of it with kjit_build_let",
                  KJ_MAX_HEIGHT);
  return add_node(builder, (ki_node){ .expr = expr });
}

kjit_node ki_add_decl(kjit_builder *builder, ki_decl *decl)
{
  return add_node(builder, (ki_node){ .decl = decl });
}

static ki_node *find_node(kjit_builder *builder, kjit_node node)
{
  /* A node number of 0 is an error of the application. A call that fails also returns 0, but later
   * calls on the builder do not get to this point. */
  if (node == 0)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "a node number of 0 does not name a node");
  if (node > builder->nodes.count)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "node %u does not exist", node);
  return &builder->nodes.items[node - 1];
}

static _Noreturn void fail_used(kjit_builder *builder, kjit_node node, kj_location first)
{
  kj_location now = builder->location;
  const kj_sources *sources = &builder->module->sources;
  const char *where = first.line
                        ? kj_format(ki_builder_arena(builder), " (first at %s:%u:%u)",
                                    sources->items[first.file].name, first.line, first.column)
                        : "";
  kj_report(&builder->diagnostics, sources, now, KJIT_SEVERITY_ERROR, KJIT_ERROR_MISUSE,
            "node %u is used a second time%s: a node can be used only once; use kjit_build_let to "
            "name a value that is used several times",
            node, where);
  kj_report(&builder->diagnostics, sources, first, KJIT_SEVERITY_NOTE, KJIT_ERROR_MISUSE,
            "node %u is used here first", node);
  longjmp(builder->on_failure, KJ_JUMP_ERROR);
}

ki_expr *ki_use_node(kjit_builder *builder, kjit_node number)
{
  ki_node *node = find_node(builder, number);
  if (node->function && node->function != builder->function)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "node %u belongs to another function", number);
  if (node->decl) {
    ki_expr *name = ki_make_expr(builder, KJ_EXPR_DECL);
    name->decl = node->decl;
    return name;
  }
  if (node->is_used) fail_used(builder, number, node->used_at);
  node->is_used = true;
  node->used_at = builder->location;
  return node->expr;
}

void ki_use_nodes(kjit_builder *builder, const kjit_node *nodes, size_t count, ki_exprs *list)
{
  if (count && !nodes)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "the node count is %zu, but the pointer to the nodes is NULL", count);
  for (size_t i = 0; i < count; i++) {
    ki_expr *expr = ki_use_node(builder, nodes[i]);
    KJ_PUSH(ki_builder_arena(builder), list, expr);
  }
}

/* ---- types ---- */

/* kjit_build_type_of returns types that are not types of a context. They consist of this bit and
 * the number of the node. */
#define TYPE_OF_NODE (UINT32_C(1) << 31)

bool ki_is_type_of_node(kjit_type type) { return (type & TYPE_OF_NODE) != 0; }

kjit_type kjit_build_type_of(kjit_builder *builder, kjit_node node)
{
  if (!KJ_ENTER_BUILDER(builder) || !node) return KJIT_VOID;
  const ki_expr *expr = ki_use_node(builder, node);
  if (expr->kind != KJ_EXPR_DECL)
    ki_fail_build(
      builder, KJIT_ERROR_MISUSE,
      "kjit_build_type_of needs a parameter or a name; name a value with `kjit_build_let`");
  return TYPE_OF_NODE | node;
}

static ki_type_expr *use_type_of_node(kjit_builder *builder, kjit_type type)
{
  ki_expr *expr = ki_use_node(builder, type & ~TYPE_OF_NODE);
  ki_type_expr *written = KJ_NEW(ki_builder_arena(builder), ki_type_expr);
  written->location = builder->location;
  written->kind = expr->decl->is_type ? KJ_TYPE_PARAMETER : KJ_TYPE_DTYPE;
  if (expr->decl->is_type) written->decl = expr->decl;
  else written->expr = expr;
  return written;
}

ki_type_expr *ki_use_type(kjit_builder *builder, kjit_type type)
{
  if (type == KJIT_ANY) return NULL;
  if (ki_is_type_of_node(type)) return use_type_of_node(builder, type);
  if (!ki_has_type(builder->module->types, type))
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "%u is not a type of this context", type);
  const ki_type_info *info = ki_type(builder->module->types, type);
  if (!ki_is_argument_type(info))
    ki_fail_build(builder, KJIT_ERROR_TYPE,
                  "%s cannot be the type of a parameter, variable, result or constant",
                  info->name ? info->name : "an array with extents");
  ki_declare_structs(builder->module, type, builder->location);
  return ki_spell_type(ki_builder_arena(builder), builder->module->types, type, builder->location);
}

/* ---- literals ---- */

static ki_expr *make_unary(kjit_builder *builder, kjit_op op, ki_expr *x)
{
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_UNARY);
  expr->op = op;
  expr->x = x;
  ki_measure_expr(expr);
  return expr;
}

/* Returns an integer literal. Literals are never negative, so a negative number is a negated
 * literal. */
static ki_expr *make_integer(kjit_builder *builder, kjit_type type, uint64_t magnitude,
                             bool is_negative)
{
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_INT);
  expr->type = type;
  expr->integer = magnitude;
  return is_negative ? make_unary(builder, KJIT_OP_NEG, expr) : expr;
}

static ki_expr *make_builtin(kjit_builder *builder, ki_builtin_id id)
{
  KJ_ASSERT((unsigned)id < KJ_BUILTIN_COUNT);
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_BUILTIN);
  expr->builtin = &ki_builtin_table[id];
  return expr;
}

static ki_expr *make_cast(kjit_builder *builder, kjit_type type, ki_expr *x)
{
  ki_expr *callee = ki_make_expr(builder, KJ_EXPR_TYPE),
          *call = ki_make_expr(builder, KJ_EXPR_CALL);
  callee->type_expr = ki_use_type(builder, type);
  ki_measure_expr(callee);
  call->x = callee;
  KJ_PUSH(ki_builder_arena(builder), &call->args, x);
  ki_measure_expr(call);
  return call;
}

/* Returns a float literal. Infinities and NaNs become a cast of the weak built-ins `inf` and
 * `nan`. */
static ki_expr *make_real(kjit_builder *builder, kjit_type type, double value)
{
  KJ_ASSERT(ki_is_floating(type));
  ki_expr *expr;
  if (isfinite(value)) {
    expr = ki_make_expr(builder, KJ_EXPR_FLOAT);
    expr->type = type;
    expr->number = fabs(value);
  } else {
    expr = make_builtin(builder, isnan(value) ? KJ_BUILTIN_NAN : KJ_BUILTIN_INF);
    if (type != KJ_WEAK_FLOAT) expr = make_cast(builder, type, expr);
  }
  return signbit(value) ? make_unary(builder, KJIT_OP_NEG, expr) : expr;
}

/* Returns an expression for a float, which is a weak literal if is_weak. A NaN whose bits differ
 * from `nan` becomes a bitcast of its bits. */
static ki_expr *make_float(kjit_builder *builder, ki_value value, bool is_weak)
{
  KJ_ASSERT(ki_is_floating(value.type));
  static const kjit_type words[] = { [2] = KJIT_U16, [4] = KJIT_U32, [8] = KJIT_U64 };
  if (!ki_is_other_nan(value))
    return make_real(builder, is_weak ? (kjit_type)KJ_WEAK_FLOAT : value.type, ki_number_of(value));
  kjit_type word = words[ki_type(builder->module->types, value.type)->size_bytes];
  ki_expr *call =
    make_cast(builder, value.type, make_integer(builder, word, (uint64_t)value.integer, false));
  ki_expr *type = call->x;
  call->x = make_builtin(builder, KJ_BUILTIN_BITCAST);
  ki_expr *bits = call->args.items[0];
  call->args.items[0] = type;
  KJ_PUSH(ki_builder_arena(builder), &call->args, bits);
  ki_measure_expr(call);
  return call;
}

static ki_expr *make_bool(kjit_builder *builder, bool value)
{
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_BOOL);
  expr->integer = value;
  return expr;
}

static ki_expr *make_complex(kjit_builder *builder, kjit_type type, const void *from)
{
  KJ_ASSERT(type == KJIT_C64 || type == KJIT_C128);
  ki_value parts[2];
  kjit_type part = type == KJIT_C64 ? KJIT_F32 : KJIT_F64;
  for (size_t i = 0; i < 2; i++)
    (void)ki_decode_value(part, (const char *)from + i * (type == KJIT_C64 ? 4 : 8), &parts[i]);
  ki_expr *call = make_cast(builder, type, make_float(builder, parts[0], true));
  KJ_PUSH(ki_builder_arena(builder), &call->args, make_float(builder, parts[1], true));
  ki_measure_expr(call);
  return call;
}

ki_expr *ki_make_literal(kjit_builder *builder, kjit_type type, const void *from)
{
  ki_value value;
  if (!ki_decode_value(type, from, &value)) return make_complex(builder, type, from);
  if (type == KJIT_BOOL) return make_bool(builder, value.integer != 0);
  if (ki_is_floating(type)) return make_float(builder, value, false);
  bool is_negative = value.integer < 0;
  return make_integer(builder, type, (uint64_t)(is_negative ? -value.integer : value.integer),
                      is_negative);
}

kjit_node kjit_build_integer(kjit_builder *builder, int64_t value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return ki_add_expr(builder, ki_make_literal(builder, KJ_WEAK_INT, &value));
}

kjit_node kjit_build_float(kjit_builder *builder, double value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return ki_add_expr(builder, make_real(builder, KJ_WEAK_FLOAT, value));
}

const char *ki_copy_text(kjit_builder *builder, const char *text)
{
  if (!ki_is_utf8(text))
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "a string in a kernel must be UTF-8");
  return kj_copy_string(ki_builder_arena(builder), text, strlen(text));
}

kjit_node kjit_build_string(kjit_builder *builder, const char *text)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!text) ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_string: the string is NULL");
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_STRING);
  expr->name = ki_copy_text(builder, text);
  return ki_add_expr(builder, expr);
}

kjit_node kjit_build_bool(kjit_builder *builder, int value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return ki_add_expr(builder, make_bool(builder, value != 0));
}

kjit_node kjit_build_value(kjit_builder *builder, kjit_type type, const void *value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!value)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_value: the address of the value is NULL");
  if (!ki_is_scalar(type))
    ki_fail_build(builder, KJIT_ERROR_TYPE, "a literal must have a scalar type");
  return ki_add_expr(builder, ki_make_literal(builder, type, value));
}

/* ---- operators ---- */

static const ki_op_info *get_op(kjit_builder *builder, kjit_op op)
{
  if ((unsigned)op >= KJIT_OP_COUNT || op == KJIT_OP_STORE)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "operator %d cannot be used in an expression",
                  (int)op);
  return &ki_op_table[op];
}

kjit_node kjit_build_unary(kjit_builder *builder, kjit_op op, kjit_node x)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  const ki_op_info *info = get_op(builder, op);
  if (info->class_ != KJ_OP_UNARY)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` is a binary operator and needs two operands",
                  info->text);
  return ki_add_expr(builder, make_unary(builder, op, ki_use_node(builder, x)));
}

kjit_node kjit_build_binary(kjit_builder *builder, kjit_op op, kjit_node x, kjit_node y)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  const ki_op_info *info = get_op(builder, op);
  if (info->class_ == KJ_OP_UNARY)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` is a unary operator and needs one operand",
                  info->text);
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_BINARY);
  expr->op = op;
  expr->x = ki_use_node(builder, x);
  expr->y = ki_use_node(builder, y);
  return ki_add_expr(builder, expr);
}

kjit_node kjit_build_conditional(kjit_builder *builder, kjit_node condition, kjit_node x,
                                 kjit_node y)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_COND);
  expr->x = ki_use_node(builder, condition);
  expr->y = ki_use_node(builder, x);
  expr->z = ki_use_node(builder, y);
  return ki_add_expr(builder, expr);
}

kjit_node kjit_build_cast(kjit_builder *builder, kjit_type type, kjit_node x)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!ki_is_scalar(type) && !ki_is_type_of_node(type))
    ki_fail_build(builder, KJIT_ERROR_TYPE, "the target of a conversion must be a scalar type");
  return ki_add_expr(builder, make_cast(builder, type, ki_use_node(builder, x)));
}

kjit_node kjit_build_construct(kjit_builder *builder, kjit_type type, const kjit_node *parts,
                               size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (type == KJIT_ANY)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_construct needs a type");
  ki_expr *callee = ki_make_expr(builder, KJ_EXPR_TYPE),
          *call = ki_make_expr(builder, KJ_EXPR_CALL);
  callee->type_expr = ki_use_type(builder, type);
  const ki_type_info *info =
    callee->type_expr->kind == KJ_TYPE_FIXED ? ki_type(builder->module->types, type) : NULL;
  bool is_made = info && info->size_bytes && info->class_ != KJ_CLASS_POINTER;
  if (!is_made && !ki_is_type_of_node(type))
    ki_fail_build(builder, KJIT_ERROR_TYPE,
                  "the type for kjit_build_construct must be a struct, vector or scalar type");
  ki_measure_expr(callee);
  call->x = callee;
  ki_use_nodes(builder, parts, count, &call->args);
  return ki_add_expr(builder, call);
}

/* ---- calls and selections ---- */

/* Returns an expression for a function's name. If the current function has a func parameter or type
 * parameter with this name, the expression refers to that parameter. Otherwise the name is resolved
 * by ki_finish_module, so the func can be built later. */
static ki_expr *make_name(kjit_builder *builder, const char *name, size_t length)
{
  const ki_function *function = builder->function;
  char *copy = kj_copy_string(ki_builder_arena(builder), name, length);
  for (size_t i = 0; function && i < function->params.count; i++) {
    ki_decl *param = function->params.items[i];
    if (!(param->is_func || param->is_type) || strcmp(param->name, copy) != 0) continue;
    ki_expr *expr = ki_make_expr(builder, KJ_EXPR_DECL);
    expr->decl = param;
    return expr;
  }
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_NAME);
  expr->name = copy;
  return expr;
}

static kjit_node add_field(kjit_builder *builder, ki_expr *x, const char *field)
{
  if (!ki_is_name(field))
    ki_fail_build(builder, KJIT_ERROR_NAME, "`%s` is not a valid field name", field);
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_FIELD);
  expr->x = x;
  expr->name = kj_copy_string(ki_builder_arena(builder), field, strlen(field));
  return ki_add_expr(builder, expr);
}

/* Returns whether the name is a value, such as a position. kjit_build_call accepts such names as if
 * they were functions without arguments. */
static bool is_value_name(const char *name)
{
  const ki_builtin *builtin = ki_find_builtin(name);
  return builtin && (builtin->flags & KJ_NAME);
}

kjit_node kjit_build_call(kjit_builder *builder, const char *function, const kjit_node *arguments,
                          size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!function)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_call needs the name of a function");
  const char *dot = strchr(function, '.');
  if (dot && count)
    ki_fail_build(builder, KJIT_ERROR_TYPE,
                  "`%s` is a value, not a function: it takes no arguments", function);
  if (dot)
    return add_field(builder, make_name(builder, function, (size_t)(dot - function)), dot + 1);
  ki_expr *callee = make_name(builder, function, strlen(function));
  if (count == 0 && callee->kind == KJ_EXPR_NAME && is_value_name(function))
    return ki_add_expr(builder, callee);
  ki_expr *call = ki_make_expr(builder, KJ_EXPR_CALL);
  call->x = callee;
  ki_use_nodes(builder, arguments, count, &call->args);
  return ki_add_expr(builder, call);
}

kjit_node kjit_build_function_value(kjit_builder *builder, const char *name)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!name)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "kjit_build_function_value needs the name of a function");
  return ki_add_expr(builder, make_name(builder, name, strlen(name)));
}

kjit_node kjit_build_index(kjit_builder *builder, kjit_node array, const kjit_node *indices,
                           size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_INDEX);
  expr->x = ki_use_node(builder, array);
  ki_use_nodes(builder, indices, count, &expr->args);
  return ki_add_expr(builder, expr);
}

kjit_node kjit_build_slice(kjit_builder *builder, kjit_node first, kjit_node stop, kjit_node step)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_SLICE);
  if (first) expr->x = ki_use_node(builder, first);
  if (stop) expr->y = ki_use_node(builder, stop);
  if (step) expr->z = ki_use_node(builder, step);
  return ki_add_expr(builder, expr);
}

kjit_node kjit_build_select_field(kjit_builder *builder, kjit_node x, const char *field)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!field)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_select_field needs the name of a field");
  return add_field(builder, ki_use_node(builder, x), field);
}

kjit_node kjit_build_tuple(kjit_builder *builder, const kjit_node *items, size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *expr = ki_make_expr(builder, KJ_EXPR_TUPLE);
  ki_use_nodes(builder, items, count, &expr->args);
  return ki_add_expr(builder, expr);
}

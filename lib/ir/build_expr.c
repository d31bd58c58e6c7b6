/* The builder's expressions: one public call a node. */
#include <math.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "ir/builder.h"
#include "ir/expr.h"
#include "ir/lexer.h"
#include "ir/number.h"

/* ---- nodes ---- */

kj_expr *kj_make_expr(kjit_builder *builder, kj_expr_kind kind)
{
  return kj_new_expr(kj_builder_arena(builder), kind, builder->location);
}

static kjit_node add_node(kjit_builder *builder, kj_node node)
{
  node.function = builder->function;
  if (builder->nodes.count >= UINT32_MAX - 1)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "a builder has at most %u nodes", UINT32_MAX - 1);
  KJ_PUSH(kj_builder_arena(builder), &builder->nodes, node);
  return (kjit_node)builder->nodes.count;
}

kjit_node kj_add_expr(kjit_builder *builder, kj_expr *expr)
{
  if (kj_measure_expr(expr) > KJ_MAX_HEIGHT)
    kj_fail_build(builder, KJIT_ERROR_MISUSE,
                  "an expression of more than %d levels: name parts of it with kjit_let",
                  KJ_MAX_HEIGHT);
  return add_node(builder, (kj_node){ .expr = expr });
}

kjit_node kj_add_decl(kjit_builder *builder, kj_decl *decl)
{
  return add_node(builder, (kj_node){ .decl = decl });
}

static kj_node *find_node(kjit_builder *builder, kjit_node node)
{
  /* A node that is 0 because of a failure never comes here: the builder has failed then. */
  if (node == 0) kj_fail_build(builder, KJIT_ERROR_MISUSE, "node 0 is no node");
  if (node > builder->nodes.count)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "there is no node %u", node);
  return &builder->nodes.items[node - 1];
}

static _Noreturn void fail_used(kjit_builder *builder, kjit_node node, kj_location first)
{
  kj_location now = builder->location;
  const kj_sources *sources = &builder->module->sources;
  const char *where = first.line
                        ? kj_format(kj_builder_arena(builder), " (first at %s:%u:%u)",
                                    sources->items[first.file].name, first.line, first.column)
                        : "";
  kj_report(&builder->diagnostics, sources, now, KJIT_SEVERITY_ERROR, KJIT_ERROR_MISUSE,
            "node %u is used a second time%s: an expression has one place; kjit_let names a value "
            "that is used often",
            node, where);
  kj_report(&builder->diagnostics, sources, first, KJIT_SEVERITY_NOTE, KJIT_ERROR_MISUSE,
            "node %u is used here first", node);
  longjmp(builder->on_failure, KJ_JUMP_ERROR);
}

kj_decl *kj_get_named(kjit_builder *builder, kjit_node node)
{
  return find_node(builder, node)->decl;
}

kj_expr *kj_use_node(kjit_builder *builder, kjit_node number)
{
  kj_node *node = find_node(builder, number);
  if (node->function && node->function != builder->function)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "node %u belongs to another function", number);
  if (node->decl) {
    kj_expr *name = kj_make_expr(builder, KJ_EXPR_DECL);
    name->decl = node->decl;
    return name;
  }
  if (node->is_used) fail_used(builder, number, node->used_at);
  node->is_used = true;
  node->used_at = builder->location;
  return node->expr;
}

void kj_use_nodes(kjit_builder *builder, const kjit_node *nodes, size_t count, kj_exprs *list)
{
  if (count && !nodes)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "%zu nodes are announced and none given", count);
  for (size_t i = 0; i < count; i++) {
    kj_expr *expr = kj_use_node(builder, nodes[i]);
    KJ_PUSH(kj_builder_arena(builder), list, expr);
  }
}

/* ---- types ---- */

kj_type_expr *kj_use_type(kjit_builder *builder, kjit_type type)
{
  if (type == KJIT_ANY) return NULL;
  if (!kj_has_type(builder->module->types, type))
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "%u is not a type of this context", type);
  const kj_type_info *info = kj_type(builder->module->types, type);
  bool is_array = info->class_ == KJ_CLASS_ARRAY;
  bool is_argument = is_array ? info->space == KJ_SPACE_GLOBAL && !info->is_static
                              : info->size_bytes || info->class_ == KJ_CLASS_TUPLE;
  if (!is_argument)
    kj_fail_build(builder, KJIT_ERROR_TYPE, "%s cannot be the type of a value here",
                  info->name ? info->name : "an array with extents");
  kj_declare_structs(builder->module, type, builder->location);
  return kj_spell_type(kj_builder_arena(builder), builder->module->types, type, builder->location);
}

/* ---- literals ---- */

static kj_expr *make_unary(kjit_builder *builder, kjit_op op, kj_expr *x)
{
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_UNARY);
  expr->op = op;
  expr->x = x;
  kj_measure_expr(expr);
  return expr;
}

/* Literals are never negative: a minus stands before them, as in the text. */
static kj_expr *make_integer(kjit_builder *builder, kjit_type type, uint64_t magnitude,
                             bool is_negative)
{
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_INT);
  expr->type = type;
  expr->integer = magnitude;
  return is_negative ? make_unary(builder, KJIT_NEG, expr) : expr;
}

static kj_expr *make_builtin(kjit_builder *builder, kj_builtin_id id)
{
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_BUILTIN);
  expr->builtin = &kj_builtin_table[id];
  return expr;
}

static kj_expr *make_cast(kjit_builder *builder, kjit_type type, kj_expr *x)
{
  kj_expr *callee = kj_make_expr(builder, KJ_EXPR_TYPE),
          *call = kj_make_expr(builder, KJ_EXPR_CALL);
  callee->type_expr = kj_use_type(builder, type);
  kj_measure_expr(callee);
  call->x = callee;
  KJ_PUSH(kj_builder_arena(builder), &call->args, x);
  kj_measure_expr(call);
  return call;
}

/* Infinities and NaNs have no digits: `inf` and `nan` are weak, a cast gives them a type. */
static kj_expr *make_real(kjit_builder *builder, kjit_type type, double value)
{
  kj_expr *expr;
  if (isfinite(value)) {
    expr = kj_make_expr(builder, KJ_EXPR_FLOAT);
    expr->type = type;
    expr->number = fabs(value);
  } else {
    expr = make_builtin(builder, isnan(value) ? KJ_BUILTIN_NAN : KJ_BUILTIN_INF);
    if (type != KJ_WEAK_FLOAT) expr = make_cast(builder, type, expr);
  }
  return signbit(value) ? make_unary(builder, KJIT_NEG, expr) : expr;
}

/* A float of a type, or weak where its place has that type; a NaN that `nan` is not by its bits. */
static kj_expr *make_float(kjit_builder *builder, kj_value value, bool is_weak)
{
  static const kjit_type words[] = { [2] = KJIT_U16, [4] = KJIT_U32, [8] = KJIT_U64 };
  if (!kj_is_other_nan(value))
    return make_real(builder, is_weak ? (kjit_type)KJ_WEAK_FLOAT : value.type, kj_number_of(value));
  kjit_type word = words[kj_type(builder->module->types, value.type)->size_bytes];
  kj_expr *call =
    make_cast(builder, value.type, make_integer(builder, word, (uint64_t)value.integer, false));
  kj_expr *type = call->x;
  call->x = make_builtin(builder, KJ_BUILTIN_BITCAST);
  kj_expr *bits = call->args.items[0];
  call->args.items[0] = type;
  KJ_PUSH(kj_builder_arena(builder), &call->args, bits);
  kj_measure_expr(call);
  return call;
}

static kj_expr *make_bool(kjit_builder *builder, bool value)
{
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_BOOL);
  expr->integer = value;
  return expr;
}

static kj_expr *make_complex(kjit_builder *builder, kjit_type type, const void *from)
{
  kj_value parts[2];
  kjit_type part = type == KJIT_C64 ? KJIT_F32 : KJIT_F64;
  for (size_t i = 0; i < 2; i++)
    (void)kj_decode_value(part, (const char *)from + i * (type == KJIT_C64 ? 4 : 8), &parts[i]);
  kj_expr *call = make_cast(builder, type, make_float(builder, parts[0], true));
  KJ_PUSH(kj_builder_arena(builder), &call->args, make_float(builder, parts[1], true));
  kj_measure_expr(call);
  return call;
}

kj_expr *kj_make_literal(kjit_builder *builder, kjit_type type, const void *from)
{
  kj_value value;
  if (!kj_decode_value(type, from, &value)) return make_complex(builder, type, from);
  if (type == KJIT_BOOL) return make_bool(builder, value.integer != 0);
  if (kj_is_floating(type)) return make_float(builder, value, false);
  bool is_negative = value.integer < 0;
  return make_integer(builder, type, (uint64_t)(is_negative ? -value.integer : value.integer),
                      is_negative);
}

kjit_node kjit_integer(kjit_builder *builder, int64_t value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return kj_add_expr(builder, kj_make_literal(builder, KJ_WEAK_INT, &value));
}

kjit_node kjit_float(kjit_builder *builder, double value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return kj_add_expr(builder, make_real(builder, KJ_WEAK_FLOAT, value));
}

const char *kj_copy_text(kjit_builder *builder, const char *text)
{
  if (!kj_is_utf8(text))
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "a string of a kernel is UTF-8, as the text form is");
  return kj_copy_string(kj_builder_arena(builder), text, strlen(text));
}

kjit_node kjit_string(kjit_builder *builder, const char *text)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!text) kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_string needs a text");
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_STRING);
  expr->name = kj_copy_text(builder, text);
  return kj_add_expr(builder, expr);
}

kjit_node kjit_bool(kjit_builder *builder, int value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  return kj_add_expr(builder, make_bool(builder, value != 0));
}

kjit_node kjit_value(kjit_builder *builder, kjit_type type, const void *value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!value) kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_value needs the address of a value");
  if (!kj_is_scalar(type)) kj_fail_build(builder, KJIT_ERROR_TYPE, "a literal has a scalar type");
  return kj_add_expr(builder, kj_make_literal(builder, type, value));
}

/* ---- operators ---- */

static const kj_op_info *get_op(kjit_builder *builder, kjit_op op)
{
  if ((unsigned)op >= KJIT_OP_COUNT || op == KJIT_STORE)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "%d is not an operator of expressions", (int)op);
  return &kj_op_table[op];
}

kjit_node kjit_unary(kjit_builder *builder, kjit_op op, kjit_node x)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  const kj_op_info *info = get_op(builder, op);
  if (info->class_ != KJ_OP_UNARY)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` has two operands", info->text);
  return kj_add_expr(builder, make_unary(builder, op, kj_use_node(builder, x)));
}

kjit_node kjit_binary(kjit_builder *builder, kjit_op op, kjit_node x, kjit_node y)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  const kj_op_info *info = get_op(builder, op);
  if (info->class_ == KJ_OP_UNARY)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` has one operand", info->text);
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_BINARY);
  expr->op = op;
  expr->x = kj_use_node(builder, x);
  expr->y = kj_use_node(builder, y);
  return kj_add_expr(builder, expr);
}

kjit_node kjit_conditional(kjit_builder *builder, kjit_node condition, kjit_node x, kjit_node y)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_COND);
  expr->x = kj_use_node(builder, condition);
  expr->y = kj_use_node(builder, x);
  expr->z = kj_use_node(builder, y);
  return kj_add_expr(builder, expr);
}

kjit_node kjit_cast(kjit_builder *builder, kjit_type type, kjit_node x)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!kj_is_scalar(type))
    kj_fail_build(builder, KJIT_ERROR_TYPE, "a value is converted to a scalar type");
  return kj_add_expr(builder, make_cast(builder, type, kj_use_node(builder, x)));
}

kjit_node kjit_construct(kjit_builder *builder, kjit_type type, const kjit_node *parts,
                         size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (type == KJIT_ANY) kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_construct needs a type");
  kj_expr *callee = kj_make_expr(builder, KJ_EXPR_TYPE),
          *call = kj_make_expr(builder, KJ_EXPR_CALL);
  callee->type_expr = kj_use_type(builder, type);
  const kj_type_info *info =
    callee->type_expr->kind == KJ_TYPE_FIXED ? kj_type(builder->module->types, type) : NULL;
  if (!info || !info->size_bytes || info->class_ == KJ_CLASS_POINTER)
    kj_fail_build(builder, KJIT_ERROR_TYPE, "kjit_construct makes structs, vectors and scalars");
  kj_measure_expr(callee);
  call->x = callee;
  kj_use_nodes(builder, parts, count, &call->args);
  return kj_add_expr(builder, call);
}

/* ---- calls and selections ---- */

/* A name without a value yet: a func parameter of this function, else what kj_finish_module finds,
 * so that funcs may be begun later. */
static kj_expr *make_name(kjit_builder *builder, const char *name, size_t length)
{
  const kj_function *function = builder->function;
  char *copy = kj_copy_string(kj_builder_arena(builder), name, length);
  for (size_t i = 0; function && i < function->params.count; i++) {
    kj_decl *param = function->params.items[i];
    if (!param->is_func || strcmp(param->name, copy) != 0) continue;
    kj_expr *expr = kj_make_expr(builder, KJ_EXPR_DECL);
    expr->decl = param;
    return expr;
  }
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_NAME);
  expr->name = copy;
  return expr;
}

static kjit_node add_field(kjit_builder *builder, kj_expr *x, const char *field)
{
  if (!kj_is_name(field))
    kj_fail_build(builder, KJIT_ERROR_NAME, "`%s` is no name of a field", field);
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_FIELD);
  expr->x = x;
  expr->name = kj_copy_string(kj_builder_arena(builder), field, strlen(field));
  return kj_add_expr(builder, expr);
}

/* Positions and the like are values although they are asked for like functions. */
static bool is_value_name(const char *name)
{
  const kj_builtin *builtin = kj_find_builtin(name);
  return builtin && (builtin->flags & KJ_NAME);
}

kjit_node kjit_call(kjit_builder *builder, const char *function, const kjit_node *arguments,
                    size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!function)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_call needs the name of a function");
  const char *dot = strchr(function, '.');
  if (dot && count)
    kj_fail_build(builder, KJIT_ERROR_TYPE, "`%s` is a value and takes no arguments", function);
  if (dot)
    return add_field(builder, make_name(builder, function, (size_t)(dot - function)), dot + 1);
  kj_expr *callee = make_name(builder, function, strlen(function));
  if (count == 0 && callee->kind == KJ_EXPR_NAME && is_value_name(function))
    return kj_add_expr(builder, callee);
  kj_expr *call = kj_make_expr(builder, KJ_EXPR_CALL);
  call->x = callee;
  kj_use_nodes(builder, arguments, count, &call->args);
  return kj_add_expr(builder, call);
}

kjit_node kjit_function_value(kjit_builder *builder, const char *name)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!name)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_function_value needs the name of a func");
  return kj_add_expr(builder, make_name(builder, name, strlen(name)));
}

kjit_node kjit_index(kjit_builder *builder, kjit_node array, const kjit_node *indices, size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_INDEX);
  expr->x = kj_use_node(builder, array);
  kj_use_nodes(builder, indices, count, &expr->args);
  return kj_add_expr(builder, expr);
}

kjit_node kjit_slice(kjit_builder *builder, kjit_node first, kjit_node stop, kjit_node step)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_SLICE);
  if (first) expr->x = kj_use_node(builder, first);
  if (stop) expr->y = kj_use_node(builder, stop);
  if (step) expr->z = kj_use_node(builder, step);
  return kj_add_expr(builder, expr);
}

kjit_node kjit_select_field(kjit_builder *builder, kjit_node x, const char *field)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (!field)
    kj_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_select_field needs the name of a field");
  return add_field(builder, kj_use_node(builder, x), field);
}

kjit_node kjit_tuple(kjit_builder *builder, const kjit_node *items, size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  if (count == 0) kj_fail_build(builder, KJIT_ERROR_MISUSE, "a tuple has at least one item");
  kj_expr *expr = kj_make_expr(builder, KJ_EXPR_TUPLE);
  kj_use_nodes(builder, items, count, &expr->args);
  return kj_add_expr(builder, expr);
}

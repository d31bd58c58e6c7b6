/* Parser of expressions: operators with the precedence in ops.def. parse_operand.c parses their
 * operands. If a syntax error looks like another language, the message explains the syntax of
 * kernel IR. */
#include <string.h>

#include "ir/expr.h"
#include "ir/parser.h"

static ki_expr *parse_unary(ki_parser *parser);
static ki_expr *make_pointer_type(ki_parser *parser, const ki_expr *left, bool is_twice);

static ki_expr *parse_operation(ki_parser *parser, kjit_op op, ki_expr *x, kj_location place,
                                ki_expr *y)
{
  ki_expr *expr = ki_new_expr(parser->arena, y ? KJ_EXPR_BINARY : KJ_EXPR_UNARY, place);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return ki_seal_expr(parser, expr);
}

/* Parses postfix [ ** unary ]. `**` binds more tightly than a sign on its left, and less tightly
 * than a sign on its right. */
static ki_expr *parse_power(ki_parser *parser)
{
  ki_expr *base = ki_parse_postfix(parser);
  if (!ki_at(parser, KJ_TOKEN_POWER) || ki_at_line_end(parser)) return base;
  kj_location place = ki_place(parser);
  ki_enter(parser);
  ki_advance(parser);
  ki_expr *type = make_pointer_type(parser, base, true); /* `f32**` */
  if (type) {
    ki_leave(parser);
    return type;
  }
  ki_expr *exponent = parse_unary(parser);
  ki_leave(parser);
  return parse_operation(parser, KJIT_OP_POW, base, place, exponent);
}

static kjit_op unary_op(ki_token_kind kind)
{
  return kind == KJ_TOKEN_MINUS   ? KJIT_OP_NEG
         : kind == KJ_TOKEN_PLUS  ? KJIT_OP_POS
         : kind == KJ_TOKEN_TILDE ? KJIT_OP_INVERT
                                  : KJ_NO_OP;
}

static ki_expr *parse_unary(ki_parser *parser)
{
  kjit_op op = unary_op(parser->lexer.token.kind);
  if (op == KJ_NO_OP) return parse_power(parser);
  kj_location place = ki_place(parser);
  ki_enter(parser);
  ki_advance(parser);
  ki_expr *operand = parse_unary(parser);
  if (op == KJIT_OP_NEG && operand == parser->overflow) parser->overflow = NULL;
  ki_leave(parser);
  return parse_operation(parser, op, operand, place, NULL);
}

static ki_expr *parse_binary(ki_parser *parser, int least);

static ki_expr *parse_not(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  ki_enter(parser);
  ki_advance(parser);
  ki_expr *operand = parse_binary(parser, ki_op_table[KJIT_OP_NOT].precedence);
  ki_leave(parser);
  return parse_operation(parser, KJIT_OP_NOT, operand, place, NULL);
}

/* If the next token is a comparison that continues the expression, returns it, otherwise
 * KJ_NO_OP. */
static kjit_op next_comparison(const ki_parser *parser)
{
  kjit_op next = ki_token_table[parser->lexer.token.kind].binary;
  bool is_one = next != KJ_NO_OP && ki_op_table[next].class_ == KJ_OP_COMPARE;
  return is_one && !ki_at_line_end(parser) ? next : KJ_NO_OP;
}

/* Rejects a comparison whose operand is `&`, `|` or `^` without parentheses. In kernel IR, `a > 0 &
 * b > 0` means `a > (0 & b) > 0`, as in Python. Users of pandas expect another meaning, so a
 * formula needs parentheses here. */
static void refuse_bits(ki_parser *parser, kjit_op op, const ki_expr *operand)
{
  bool is_bits = operand->kind == KJ_EXPR_BINARY && !operand->is_enclosed &&
                 (operand->op == KJIT_OP_BIT_AND || operand->op == KJIT_OP_BIT_OR ||
                  operand->op == KJIT_OP_BIT_XOR);
  if (!is_bits) return;
  const char *bits = ki_op_table[operand->op].text, *compares = ki_op_table[op].text;
  ki_fail_parse(parser, operand->location, KJIT_ERROR_SYNTAX,
                "`%s` has higher precedence than `%s`: write the comparisons in parentheses, as in "
                "`(a %s b) %s (c %s d)`",
                bits, compares, compares, bits, compares);
}

/* Parses chained comparisons in a formula: `a < b < c` means `a < b and b < c`. The two comparisons
 * share the tree of b. */
static ki_expr *parse_chain(ki_parser *parser, ki_expr *first)
{
  ki_expr *all = first, *last = first;
  refuse_bits(parser, first->op, first->x);
  refuse_bits(parser, first->op, first->y);
  for (kjit_op op; (op = next_comparison(parser)) != KJ_NO_OP;) {
    kj_location place = ki_place(parser);
    ki_advance(parser);
    ki_expr *right = parse_binary(parser, ki_op_table[op].precedence + 1);
    refuse_bits(parser, op, right);
    last = parse_operation(parser, op, last->y, place, right);
    all = parse_operation(parser, KJIT_OP_AND, all, place, last);
  }
  return all;
}

/* Rejects chained comparisons outside of formulas. */
static void refuse_chain(ki_parser *parser, kjit_op op)
{
  kjit_op next = next_comparison(parser);
  if (next == KJ_NO_OP) return;
  ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                "comparisons cannot be chained: write `a %s b and b %s c`", ki_op_table[op].text,
                ki_op_table[next].text);
}

/* Records a `//`, which the user may have meant as a C comment. The parser takes it for a division
 * if a single word follows, or if the next line begins with an operand. */
static void note_slashes(ki_parser *parser)
{
  parser->slashes = parser->previous;
  if (parser->lexer.token.newline_before)
    kj_report(parser->lexer.diagnostics, parser->lexer.sources, parser->slashes.location,
              KJIT_SEVERITY_WARNING, KJIT_OK,
              "`//` divides and rounds down, and its divisor is on the next line; a comment starts "
              "with `#`");
}

/* Converts an expression that names a type to the type: `f32`, `dtype(x)`, `vector(dtype(x), 4)`,
 * `f32*`, or a type parameter. Returns NULL for any other expression. */
static ki_type_expr *as_type(ki_parser *parser, const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_TYPE) return expr->type_expr;
  bool is_call = expr->kind == KJ_EXPR_CALL && expr->x->kind == KJ_EXPR_NAME;
  bool is_dtype = is_call && expr->args.count == 1 && strcmp(expr->x->name, "dtype") == 0,
       is_vector = is_call && expr->args.count == 2 && strcmp(expr->x->name, "vector") == 0;
  bool is_parameter = expr->kind == KJ_EXPR_DECL && expr->decl->is_type;
  if (expr->kind != KJ_EXPR_NAME && !is_parameter && !is_dtype && !is_vector) return NULL;
  ki_type_expr *type = KJ_NEW(parser->arena, ki_type_expr);
  type->location = expr->location;
  if (is_parameter) {
    type->kind = KJ_TYPE_PARAMETER;
    type->decl = expr->decl;
  } else if (is_dtype) {
    type->kind = KJ_TYPE_DTYPE;
    type->expr = expr->args.items[0];
  } else if (is_vector) {
    type->kind = KJ_TYPE_VECTOR;
    type->element = as_type(parser, expr->args.items[0]);
    KJ_PUSH(parser->arena, &type->extents, expr->args.items[1]);
    if (!type->element) return NULL;
  } else {
    if (!ki_find_type(parser->types, expr->name, strlen(expr->name), &type->type))
      longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
    type->kind = type->type == KJIT_ANY ? KJ_TYPE_NAMED : KJ_TYPE_FIXED;
    type->name = type->type == KJIT_ANY ? expr->name : NULL;
  }
  return type;
}

/* If `*` has no right operand, converts its left operand to a pointer type. Examples are the
 * argument `f32*`, and `f32*[n]` after `view(`. is_twice means that the token is `**`. Returns NULL
 * if the operand is not a type. */
static ki_expr *make_pointer_type(ki_parser *parser, const ki_expr *left, bool is_twice)
{
  bool is_end = ki_at(parser, KJ_TOKEN_COMMA) || ki_at(parser, KJ_TOKEN_RIGHT_PAREN) ||
                ki_at(parser, KJ_TOKEN_LEFT_BRACKET);
  ki_type_expr *pointed = is_end ? as_type(parser, left) : NULL;
  if (!pointed) return NULL;
  for (int i = 0; i < 1 + is_twice; i++) {
    ki_type_expr *pointer = KJ_NEW(parser->arena, ki_type_expr);
    *pointer =
      (ki_type_expr){ .kind = KJ_TYPE_POINTER, .location = left->location, .element = pointed };
    pointed = pointer;
  }
  ki_expr *type = ki_new_expr(parser->arena, KJ_EXPR_TYPE, left->location);
  type->type_expr = pointed;
  ki_seal_expr(parser, type);
  return ki_at(parser, KJ_TOKEN_LEFT_BRACKET) ? ki_parse_index(parser, type) : type;
}

/* Returns whether the next word in a formula is `in`, which the lexer reads as a name. */
static bool at_in(const ki_parser *parser)
{
  return ki_at(parser, KJ_TOKEN_NAME) && !strcmp(parser->lexer.token.name->key, "in");
}

/* Rejects a formula in which an operator before or after `in` has no parentheses, because the
 * formula would have another meaning in Python. In Python, `a == b in (1, 2)` is a chain, and `a &
 * b in (1, 2)` is `(a & b) in (1, 2)`. */
static void refuse_beside_in(ki_parser *parser, const char *operator)
{
  ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                "write parentheses around `x in (1, 2)` next to `%s`", operator);
}

/* If an operand of `in` needs parentheses, returns its operator, otherwise NULL. */
static const char *doubtful_operator(const ki_expr *left)
{
  bool is_doubtful =
    left->kind == KJ_EXPR_BINARY && !left->is_enclosed &&
    (left->op == KJIT_OP_BIT_AND || left->op == KJIT_OP_BIT_OR || left->op == KJIT_OP_BIT_XOR ||
     left->op == KJIT_OP_AND || ki_op_table[left->op].class_ == KJ_OP_COMPARE);
  return is_doubtful ? ki_op_table[left->op].text : NULL;
}

/* Parses `x in (a, b)` and `x not in [a, b]` in a formula, which become the call `isin(x, a,
 * b)`. */
static ki_expr *parse_membership(ki_parser *parser, ki_expr *left)
{
  kj_location place = ki_place(parser);
  const char *doubtful = doubtful_operator(left);
  if (doubtful) refuse_beside_in(parser, doubtful);
  bool is_negated = ki_accept(parser, KJ_TOKEN_NOT);
  ki_expr *callee = ki_new_expr(parser->arena, KJ_EXPR_NAME, place);
  ki_expr *call = ki_new_expr(parser->arena, KJ_EXPR_CALL, place);
  if (!at_in(parser))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX, "expected `in` after `not`");
  ki_advance(parser);
  callee->name = "isin";
  call->x = ki_seal_expr(parser, callee);
  KJ_PUSH(parser->arena, &call->args, left);
  bool is_list = ki_at(parser, KJ_TOKEN_LEFT_BRACKET);
  if (!is_list && !ki_at(parser, KJ_TOKEN_LEFT_PAREN))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "expected values in parentheses after `in`, as in `x in (1, 2)`");
  ki_open_bracket(parser, is_list ? KJ_TOKEN_LEFT_BRACKET : KJ_TOKEN_LEFT_PAREN, NULL);
  do {
    ki_expr *value = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &call->args, value);
  } while (ki_accept(parser, KJ_TOKEN_COMMA) && !ki_at(parser, KJ_TOKEN_RIGHT_PAREN) &&
           !ki_at(parser, KJ_TOKEN_RIGHT_BRACKET));
  ki_close_bracket(parser, is_list ? KJ_TOKEN_RIGHT_BRACKET : KJ_TOKEN_RIGHT_PAREN,
                   "after the values");
  ki_seal_expr(parser, call);
  if (!is_negated) return call;
  ki_expr *negated = ki_new_expr(parser->arena, KJ_EXPR_UNARY, place);
  negated->op = KJIT_OP_NOT;
  negated->x = call;
  return ki_seal_expr(parser, negated);
}

static ki_expr *parse_binary(ki_parser *parser, int least)
{
  ki_expr *left = ki_at(parser, KJ_TOKEN_NOT) && least <= ki_op_table[KJIT_OP_NOT].precedence
                    ? parse_not(parser)
                    : parse_unary(parser);
  bool has_membership = false;
  for (;;) {
    bool is_membership = parser->lexer.is_formula && least <= ki_op_table[KJIT_OP_EQ].precedence &&
                         (at_in(parser) || ki_at(parser, KJ_TOKEN_NOT));
    if (is_membership) {
      if (has_membership) refuse_beside_in(parser, "in");
      has_membership = true;
      left = parse_membership(parser, left);
      continue;
    }
    kjit_op op = ki_token_table[parser->lexer.token.kind].binary;
    if (op == KJ_NO_OP || ki_op_table[op].precedence < least || ki_at_line_end(parser)) return left;
    if (has_membership && ki_op_table[op].precedence >= ki_op_table[KJIT_OP_EQ].precedence &&
        op != KJIT_OP_BIT_AND && op != KJIT_OP_BIT_OR && op != KJIT_OP_BIT_XOR)
      refuse_beside_in(parser, ki_op_table[op].text);
    kj_location place = ki_place(parser);
    ki_advance(parser);
    ki_expr *type = op == KJIT_OP_MUL ? make_pointer_type(parser, left, false) : NULL;
    if (type) {
      left = type;
      continue;
    }
    if (op == KJIT_OP_FLOORDIV) note_slashes(parser);
    left = parse_operation(parser, op, left, place,
                           parse_binary(parser, ki_op_table[op].precedence + 1));
    if (ki_op_table[op].class_ != KJ_OP_COMPARE) continue;
    if (parser->lexer.is_formula) left = parse_chain(parser, left);
    else refuse_chain(parser, op);
  }
}

static ki_expr *parse_conditional(ki_parser *parser, ki_expr *condition)
{
  ki_expr *expr = ki_new_expr(parser->arena, KJ_EXPR_COND, ki_place(parser));
  ki_advance(parser);
  expr->x = condition;
  expr->y = ki_parse_expr(parser);
  ki_expect(parser, KJ_TOKEN_COLON, "between the two values of `? :`");
  expr->z = ki_parse_expr(parser);
  return ki_seal_expr(parser, expr);
}

ki_expr *ki_parse_expr(ki_parser *parser)
{
  ki_enter(parser);
  ki_expr *expr = parse_binary(parser, 1);
  if (parser->overflow) ki_refuse_integer(parser, parser->overflow);
  if (ki_at(parser, KJ_TOKEN_QUESTION) && !ki_at_line_end(parser))
    expr = parse_conditional(parser, expr);
  else if (ki_at(parser, KJ_TOKEN_IF) && !ki_at_line_end(parser))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX, "%s no `a if c else b`: write `%s`",
                  ki_say_language_has(&parser->lexer),
                  parser->lexer.is_formula ? "where(c, a, b)" : "c ? a : b");
  ki_leave(parser);
  return expr;
}

ki_expr *ki_parse_exprs(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  ki_expr *first = ki_parse_expr(parser);
  if (!ki_at(parser, KJ_TOKEN_COMMA)) return first;
  ki_expr *tuple = ki_new_expr(parser->arena, KJ_EXPR_TUPLE, place);
  KJ_PUSH(parser->arena, &tuple->args, first);
  while (ki_accept(parser, KJ_TOKEN_COMMA)) {
    ki_expr *item = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &tuple->args, item);
  }
  return ki_seal_expr(parser, tuple);
}

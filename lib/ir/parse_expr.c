/* Parser of expressions: operators with the precedence in ops.def, postfix forms, and literals. If
 * a syntax error looks like another language, the message explains the syntax of kernel IR. */
#include <string.h>

#include "ir/expr.h"
#include "ir/foreign_syntax.h"
#include "ir/parser.h"

static ki_expr *parse_unary(ki_parser *parser);
static ki_expr *make_pointer_type(ki_parser *parser, const ki_expr *left, bool is_twice);

static ki_expr *new_expr(ki_parser *parser, ki_expr_kind kind, kj_location location)
{
  return ki_new_expr(parser->arena, kind, location);
}

/* Sets the height of a node with operands. Must be called for every such node, because the limit of
 * the height allows every pass to recurse over the tree. */
static ki_expr *seal(ki_parser *parser, ki_expr *expr)
{
  if (ki_measure_expr(expr) > KJ_MAX_HEIGHT)
    ki_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX,
                  "an expression can have at most %d levels of nesting%s", KJ_MAX_HEIGHT,
                  parser->lexer.is_expression ? "" : "; name subexpressions with `let`");
  return expr;
}

/* ---- primaries ---- */

/* Returns the maximum of an integer type. After a minus, a literal can be larger by 1. */
static uint64_t largest_integer(kjit_type type)
{
  static const uint64_t largest[KJIT_SCALAR_COUNT] = {
    [KJIT_I8] = INT8_MAX,    [KJIT_I16] = INT16_MAX,  [KJIT_I32] = INT32_MAX,
    [KJIT_I64] = INT64_MAX,  [KJIT_U8] = UINT8_MAX,   [KJIT_U16] = UINT16_MAX,
    [KJIT_U32] = UINT32_MAX, [KJIT_U64] = UINT64_MAX,
  };
  return type < KJIT_SCALAR_COUNT ? largest[type] : UINT64_MAX;
}

static _Noreturn void refuse_range(ki_parser *parser, const ki_expr *literal)
{
  ki_fail_parse(parser, literal->location, KJIT_ERROR_SYNTAX,
                "%llu is too large for %s, whose largest value is %llu",
                (unsigned long long)literal->integer, ki_type(parser->types, literal->type)->name,
                (unsigned long long)largest_integer(literal->type));
}

static ki_expr *parse_number(ki_parser *parser)
{
  const ki_token *token = &parser->lexer.token;
  ki_expr *expr =
    new_expr(parser, token->kind == KJ_TOKEN_INT ? KJ_EXPR_INT : KJ_EXPR_FLOAT, token->location);
  expr->type = token->type;
  expr->integer = token->integer;
  expr->number = token->number;
  if (expr->kind == KJ_EXPR_INT && token->integer > largest_integer(expr->type)) {
    bool is_signed = expr->type >= KJIT_I8 && expr->type <= KJIT_I64;
    if (!is_signed || token->integer != largest_integer(expr->type) + 1) refuse_range(parser, expr);
    parser->overflow = expr;
  }
  ki_advance(parser);
  return expr;
}

/* Returns an expression for a parameter. For a tuple parameter, this is the tuple of its items. */
static ki_expr *name_items(ki_parser *parser, ki_decl *decl, kj_location location)
{
  if (!decl->is_split) {
    ki_expr *expr = new_expr(parser, KJ_EXPR_DECL, location);
    expr->decl = decl;
    return expr;
  }
  ki_expr *tuple = new_expr(parser, KJ_EXPR_TUPLE, location);
  for (size_t i = 0; i < decl->fields.count; i++)
    KJ_PUSH(parser->arena, &tuple->args, name_items(parser, decl->fields.items[i], location));
  ki_measure_expr(tuple);
  return tuple;
}

static bool is_named(const ki_expr *expr)
{
  for (size_t i = 0; expr->kind == KJ_EXPR_TUPLE && i < expr->args.count; i++)
    if (!is_named(expr->args.items[i])) return false;
  return expr->kind == KJ_EXPR_TUPLE || expr->kind == KJ_EXPR_DECL;
}

static ki_expr *take_item(ki_expr *index)
{
  const ki_expr *tuple = index->x, *at = index->args.count == 1 ? index->args.items[0] : NULL;
  if (tuple->kind != KJ_EXPR_TUPLE || !at || !is_named(tuple)) return index;
  bool is_from_end = at->kind == KJ_EXPR_UNARY && at->op == KJIT_OP_NEG;
  if (is_from_end) at = at->x;
  if (at->kind != KJ_EXPR_INT) return index;
  __int128 item = is_from_end ? (__int128)tuple->args.count - at->integer : at->integer;
  if (item < 0 || item >= (__int128)tuple->args.count) return index;
  return tuple->args.items[item];
}

static ki_expr *parse_name(ki_parser *parser)
{
  const ki_token *token = &parser->lexer.token;
  const ki_binding *binding = token->name->value;
  if (binding && binding->decl->is_split) {
    ki_expr *tuple = name_items(parser, binding->decl, token->location);
    ki_advance(parser);
    return tuple;
  }
  ki_expr *expr = new_expr(parser, binding ? KJ_EXPR_DECL : KJ_EXPR_NAME, token->location);
  if (binding) expr->decl = binding->decl;
  else expr->name = token->name->key;
  ki_advance(parser);
  return expr;
}

static ki_expr *parse_string(ki_parser *parser)
{
  ki_expr *expr = new_expr(parser, KJ_EXPR_STRING, ki_place(parser));
  expr->name = parser->lexer.token.string;
  ki_advance(parser);
  return expr;
}

static ki_expr *parse_bool(ki_parser *parser)
{
  ki_expr *expr = new_expr(parser, KJ_EXPR_BOOL, ki_place(parser));
  expr->integer = ki_at(parser, KJ_TOKEN_TRUE);
  ki_advance(parser);
  return expr;
}

/* Rejects a cast in C syntax, `(float)x`. */
static void refuse_cast(ki_parser *parser, const ki_expr *expr, kj_location place)
{
  bool is_value = ki_at(parser, KJ_TOKEN_NAME) || ki_at(parser, KJ_TOKEN_INT) ||
                  ki_at(parser, KJ_TOKEN_FLOAT) || ki_at(parser, KJ_TOKEN_LEFT_PAREN);
  if (expr->kind != KJ_EXPR_NAME || !is_value || parser->lexer.token.newline_before) return;
  const char *alias = ki_find_type_alias(expr->name);
  bool is_type = ki_is_type_name(expr->name, strlen(expr->name));
  if (alias || is_type)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "a conversion is written `%s(x)`",
                  alias ? alias : expr->name);
}

/* Parses parentheses: `(x)` is x; `()`, `(x, y)` and `(x,)` are tuples. */
static ki_expr *parse_paren(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  if (ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, NULL);
    return seal(parser, new_expr(parser, KJ_EXPR_TUPLE, place));
  }
  ki_expr *first = ki_parse_expr(parser);
  if (!ki_at(parser, KJ_TOKEN_COMMA)) {
    ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, NULL);
    refuse_cast(parser, first, place);
    first->is_enclosed = parser->lexer.is_formula;
    return first;
  }
  ki_expr *tuple = new_expr(parser, KJ_EXPR_TUPLE, place);
  KJ_PUSH(parser->arena, &tuple->args, first);
  while (ki_accept(parser, KJ_TOKEN_COMMA) && !ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    ki_expr *item = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &tuple->args, item);
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, NULL);
  return seal(parser, tuple);
}

/* Returns whether there is no blank between the previous token and the lookahead. This detects
 * `&&`, which the lexer reads as two `&`. */
static bool is_adjacent(const ki_parser *parser)
{
  return parser->previous.start &&
         parser->previous.start + parser->previous.length == parser->lexer.token.start;
}

static _Noreturn void refuse_operand(ki_parser *parser)
{
  ki_token_kind kind = parser->lexer.token.kind, before = parser->previous.kind;
  kj_location place = ki_place(parser);
  if (kind == KJ_TOKEN_AMPERSAND && before == KJ_TOKEN_AMPERSAND && is_adjacent(parser))
    ki_fail_parse(parser, parser->previous.location, KJIT_ERROR_SYNTAX, "%s no `&&`: write `and`",
                  ki_say_language_has(&parser->lexer));
  if (kind == KJ_TOKEN_PIPE && before == KJ_TOKEN_PIPE && is_adjacent(parser))
    ki_fail_parse(parser, parser->previous.location, KJIT_ERROR_SYNTAX, "%s no `||`: write `or`",
                  ki_say_language_has(&parser->lexer));
  if (kind == KJ_TOKEN_AMPERSAND && !parser->lexer.is_formula)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "atomic functions take the element itself, without `&`: `atomic_add(out[y], 1)`");
  if (kind == KJ_TOKEN_STAR && !parser->lexer.is_formula)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected a value, found `*`; for an element of a pointer write `p[i]`");
  if (kind == KJ_TOKEN_FLOORDIV)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "`//` is floor division here, not a comment; a comment starts with `#`");
  if (kind == KJ_TOKEN_NOT)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "`not` has lower precedence than this operator: write `not ...` in parentheses");
  if ((before == KJ_TOKEN_STAR) &&
      (kind == KJ_TOKEN_RIGHT_PAREN || kind == KJ_TOKEN_COMMA || kind == KJ_TOKEN_LEFT_BRACKET))
    ki_fail_parse(parser, parser->previous.location, KJIT_ERROR_SYNTAX,
                  "expected a value after `*`, found %s", ki_describe_token(parser));
  if (kind == KJ_TOKEN_LEFT_BRACE)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected a value, found `{`; arrays of values are module constants: `const NAME "
                  "= { 1, 2 }`");
  ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX, "expected a value, found %s",
                ki_describe_token(parser));
}

/* Parses a type after `bitcast(`, for example `const f32*`. */
static ki_expr *parse_const_type(ki_parser *parser)
{
  ki_expr *expr = new_expr(parser, KJ_EXPR_TYPE, ki_place(parser));
  expr->type_expr = ki_parse_type_expr(parser);
  return seal(parser, expr);
}

static ki_expr *parse_primary(ki_parser *parser)
{
  switch (KJ_AMONG(parser->lexer.token.kind)) {
  case KJ_TOKEN_NAME: return parse_name(parser);
  case KJ_TOKEN_INT:
  case KJ_TOKEN_FLOAT: return parse_number(parser);
  case KJ_TOKEN_STRING: return parse_string(parser);
  case KJ_TOKEN_TRUE:
  case KJ_TOKEN_FALSE: return parse_bool(parser);
  case KJ_TOKEN_LEFT_PAREN: return parse_paren(parser);
  case KJ_TOKEN_CONST: return parse_const_type(parser);
  default: refuse_operand(parser);
  }
}

/* ---- postfix forms ---- */

void ki_parse_arguments(ki_parser *parser, ki_exprs *list)
{
  while (!ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    ki_expr *argument = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, list, argument);
    if (ki_at(parser, KJ_TOKEN_ASSIGN))
      ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                    "pass arguments by position; named arguments are not supported");
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the arguments");
}

static ki_expr *parse_call(ki_parser *parser, ki_expr *callee)
{
  ki_expr *call = new_expr(parser, KJ_EXPR_CALL, callee->location);
  call->x = callee;
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  ki_parse_arguments(parser, &call->args);
  return seal(parser, call);
}

static bool ends_slice_part(const ki_parser *parser)
{
  return ki_at(parser, KJ_TOKEN_COLON) || ki_at(parser, KJ_TOKEN_COMMA) ||
         ki_at(parser, KJ_TOKEN_RIGHT_BRACKET);
}

/* Parses an index or a slice: expr, or [expr] : [expr] [: [expr]] */
static ki_expr *parse_subscript(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  ki_expr *first = ends_slice_part(parser) ? NULL : ki_parse_expr(parser);
  if (!ki_at(parser, KJ_TOKEN_COLON)) {
    if (!first)
      ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected an index, found %s",
                    ki_describe_token(parser));
    return first;
  }
  ki_expr *slice = new_expr(parser, KJ_EXPR_SLICE, place);
  slice->x = first;
  ki_advance(parser);
  if (!ends_slice_part(parser)) slice->y = ki_parse_expr(parser);
  if (ki_accept(parser, KJ_TOKEN_COLON) && !ends_slice_part(parser))
    slice->z = ki_parse_expr(parser);
  return seal(parser, slice);
}

static ki_expr *parse_index(ki_parser *parser, ki_expr *array)
{
  ki_expr *index = new_expr(parser, KJ_EXPR_INDEX, array->location);
  index->x = array;
  ki_open_bracket(parser, KJ_TOKEN_LEFT_BRACKET, NULL);
  while (!ki_at(parser, KJ_TOKEN_RIGHT_BRACKET)) {
    ki_expr *subscript = parse_subscript(parser);
    KJ_PUSH(parser->arena, &index->args, subscript);
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_BRACKET, "after the indices");
  return take_item(seal(parser, index));
}

static ki_expr *parse_field(ki_parser *parser, ki_expr *x)
{
  ki_advance(parser);
  if (!ki_at(parser, KJ_TOKEN_NAME))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected the name of a field after `.`, found %s", ki_describe_token(parser));
  ki_expr *field = new_expr(parser, KJ_EXPR_FIELD, ki_place(parser));
  field->x = x;
  field->name = parser->lexer.token.name->key;
  ki_advance(parser);
  return seal(parser, field);
}

ki_expr *ki_parse_postfix(ki_parser *parser)
{
  ki_expr *expr = parse_primary(parser);
  while (!ki_at_line_end(parser)) {
    if (ki_at(parser, KJ_TOKEN_LEFT_PAREN)) expr = parse_call(parser, expr);
    else if (ki_at(parser, KJ_TOKEN_LEFT_BRACKET)) expr = parse_index(parser, expr);
    else if (ki_at(parser, KJ_TOKEN_DOT)) expr = parse_field(parser, expr);
    else break;
  }
  return expr;
}

/* ---- operators ---- */

static ki_expr *parse_operation(ki_parser *parser, kjit_op op, ki_expr *x, kj_location place,
                                ki_expr *y)
{
  ki_expr *expr = new_expr(parser, y ? KJ_EXPR_BINARY : KJ_EXPR_UNARY, place);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return seal(parser, expr);
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
  ki_expr *type = new_expr(parser, KJ_EXPR_TYPE, left->location);
  type->type_expr = pointed;
  seal(parser, type);
  return ki_at(parser, KJ_TOKEN_LEFT_BRACKET) ? parse_index(parser, type) : type;
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
  ki_expr *callee = new_expr(parser, KJ_EXPR_NAME, place);
  ki_expr *call = new_expr(parser, KJ_EXPR_CALL, place);
  if (!at_in(parser))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX, "expected `in` after `not`");
  ki_advance(parser);
  callee->name = "isin";
  call->x = seal(parser, callee);
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
  seal(parser, call);
  if (!is_negated) return call;
  ki_expr *negated = new_expr(parser, KJ_EXPR_UNARY, place);
  negated->op = KJIT_OP_NOT;
  negated->x = call;
  return seal(parser, negated);
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
  ki_expr *expr = new_expr(parser, KJ_EXPR_COND, ki_place(parser));
  ki_advance(parser);
  expr->x = condition;
  expr->y = ki_parse_expr(parser);
  ki_expect(parser, KJ_TOKEN_COLON, "between the two values of `? :`");
  expr->z = ki_parse_expr(parser);
  return seal(parser, expr);
}

ki_expr *ki_parse_expr(ki_parser *parser)
{
  ki_enter(parser);
  ki_expr *expr = parse_binary(parser, 1);
  if (parser->overflow) refuse_range(parser, parser->overflow);
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
  ki_expr *tuple = new_expr(parser, KJ_EXPR_TUPLE, place);
  KJ_PUSH(parser->arena, &tuple->args, first);
  while (ki_accept(parser, KJ_TOKEN_COMMA)) {
    ki_expr *item = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &tuple->args, item);
  }
  return seal(parser, tuple);
}

/* ---- expr ---- */

ki_expr *ki_new_expr(kj_arena *arena, ki_expr_kind kind, kj_location location)
{
  ki_expr *expr = KJ_NEW(arena, ki_expr);
  expr->kind = kind;
  expr->location = location;
  expr->height = 1;
  return expr;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t measure_list(const ki_exprs *list)
{
  uint32_t height = 0;
  for (size_t i = 0; i < list->count; i++) height = larger(height, list->items[i]->height);
  return height;
}

uint32_t ki_measure_type(const ki_type_expr *type)
{
  if (!type) return 0;
  uint32_t height = larger(type->expr ? type->expr->height : 0, ki_measure_type(type->element));
  for (size_t i = 0; i < type->items.count; i++)
    height = larger(height, ki_measure_type(type->items.items[i]));
  return 1 + larger(height, measure_list(&type->extents));
}

uint32_t ki_measure_expr(ki_expr *expr)
{
  uint32_t height = measure_list(&expr->args);
  const ki_expr *children[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (children[i]) height = larger(height, children[i]->height);
  return expr->height = 1 + larger(height, ki_measure_type(expr->type_expr));
}

ki_type_expr *ki_spell_type(kj_arena *arena, const ki_types *types, kjit_type type,
                            kj_location location)
{
  const ki_type_info *info = ki_type(types, type);
  ki_type_expr *spelled = KJ_NEW(arena, ki_type_expr);
  spelled->kind = info->class_ == KJ_CLASS_TUPLE ? KJ_TYPE_TUPLE : KJ_TYPE_FIXED;
  spelled->type = type;
  spelled->location = location;
  for (uint32_t i = 0; i < info->count && spelled->kind == KJ_TYPE_TUPLE; i++) {
    ki_type_expr *item = ki_spell_type(arena, types, info->items[i], location);
    KJ_PUSH(arena, &spelled->items, item);
  }
  return spelled;
}

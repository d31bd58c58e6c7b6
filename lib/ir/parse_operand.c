/* Parser of operands: literals, names, parentheses and tuples, with the postfix forms call, index
 * and field. If a syntax error looks like another language, the message explains the syntax of
 * kernel IR. */
#include <string.h>

#include "ir/expr.h"
#include "ir/foreign_syntax.h"
#include "ir/parser.h"

ki_expr *ki_seal_expr(ki_parser *parser, ki_expr *expr)
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

_Noreturn void ki_refuse_integer(ki_parser *parser, const ki_expr *literal)
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
    ki_new_expr(parser->arena, token->kind == KJ_TOKEN_INT ? KJ_EXPR_INT : KJ_EXPR_FLOAT,
                token->location);
  expr->type = token->type;
  expr->integer = token->integer;
  expr->number = token->number;
  if (expr->kind == KJ_EXPR_INT && token->integer > largest_integer(expr->type)) {
    bool is_signed = expr->type >= KJIT_I8 && expr->type <= KJIT_I64;
    if (!is_signed || token->integer != largest_integer(expr->type) + 1)
      ki_refuse_integer(parser, expr);
    parser->overflow = expr;
  }
  ki_advance(parser);
  return expr;
}

/* Returns an expression for a parameter. For a tuple parameter, this is the tuple of its items. */
static ki_expr *name_items(ki_parser *parser, ki_decl *decl, kj_location location)
{
  if (!decl->is_split) {
    ki_expr *expr = ki_new_expr(parser->arena, KJ_EXPR_DECL, location);
    expr->decl = decl;
    return expr;
  }
  ki_expr *tuple = ki_new_expr(parser->arena, KJ_EXPR_TUPLE, location);
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
  ki_expr *expr =
    ki_new_expr(parser->arena, binding ? KJ_EXPR_DECL : KJ_EXPR_NAME, token->location);
  if (binding) expr->decl = binding->decl;
  else expr->name = token->name->key;
  ki_advance(parser);
  return expr;
}

static ki_expr *parse_string(ki_parser *parser)
{
  ki_expr *expr = ki_new_expr(parser->arena, KJ_EXPR_STRING, ki_place(parser));
  expr->name = parser->lexer.token.string;
  ki_advance(parser);
  return expr;
}

static ki_expr *parse_bool(ki_parser *parser)
{
  ki_expr *expr = ki_new_expr(parser->arena, KJ_EXPR_BOOL, ki_place(parser));
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
    return ki_seal_expr(parser, ki_new_expr(parser->arena, KJ_EXPR_TUPLE, place));
  }
  ki_expr *first = ki_parse_expr(parser);
  if (!ki_at(parser, KJ_TOKEN_COMMA)) {
    ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, NULL);
    refuse_cast(parser, first, place);
    first->is_enclosed = parser->lexer.is_formula;
    return first;
  }
  ki_expr *tuple = ki_new_expr(parser->arena, KJ_EXPR_TUPLE, place);
  KJ_PUSH(parser->arena, &tuple->args, first);
  while (ki_accept(parser, KJ_TOKEN_COMMA) && !ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    ki_expr *item = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &tuple->args, item);
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, NULL);
  return ki_seal_expr(parser, tuple);
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
  ki_expr *expr = ki_new_expr(parser->arena, KJ_EXPR_TYPE, ki_place(parser));
  expr->type_expr = ki_parse_type_expr(parser);
  return ki_seal_expr(parser, expr);
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
  ki_expr *call = ki_new_expr(parser->arena, KJ_EXPR_CALL, callee->location);
  call->x = callee;
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  ki_parse_arguments(parser, &call->args);
  return ki_seal_expr(parser, call);
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
  ki_expr *slice = ki_new_expr(parser->arena, KJ_EXPR_SLICE, place);
  slice->x = first;
  ki_advance(parser);
  if (!ends_slice_part(parser)) slice->y = ki_parse_expr(parser);
  if (ki_accept(parser, KJ_TOKEN_COLON) && !ends_slice_part(parser))
    slice->z = ki_parse_expr(parser);
  return ki_seal_expr(parser, slice);
}

ki_expr *ki_parse_index(ki_parser *parser, ki_expr *array)
{
  ki_expr *index = ki_new_expr(parser->arena, KJ_EXPR_INDEX, array->location);
  index->x = array;
  ki_open_bracket(parser, KJ_TOKEN_LEFT_BRACKET, NULL);
  while (!ki_at(parser, KJ_TOKEN_RIGHT_BRACKET)) {
    ki_expr *subscript = parse_subscript(parser);
    KJ_PUSH(parser->arena, &index->args, subscript);
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_BRACKET, "after the indices");
  return take_item(ki_seal_expr(parser, index));
}

static ki_expr *parse_field(ki_parser *parser, ki_expr *x)
{
  ki_advance(parser);
  if (!ki_at(parser, KJ_TOKEN_NAME))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected the name of a field after `.`, found %s", ki_describe_token(parser));
  ki_expr *field = ki_new_expr(parser->arena, KJ_EXPR_FIELD, ki_place(parser));
  field->x = x;
  field->name = parser->lexer.token.name->key;
  ki_advance(parser);
  return ki_seal_expr(parser, field);
}

ki_expr *ki_parse_postfix(ki_parser *parser)
{
  ki_expr *expr = parse_primary(parser);
  while (!ki_at_line_end(parser)) {
    if (ki_at(parser, KJ_TOKEN_LEFT_PAREN)) expr = parse_call(parser, expr);
    else if (ki_at(parser, KJ_TOKEN_LEFT_BRACKET)) expr = ki_parse_index(parser, expr);
    else if (ki_at(parser, KJ_TOKEN_DOT)) expr = parse_field(parser, expr);
    else break;
  }
  return expr;
}

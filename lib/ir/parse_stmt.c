/* Parser of statements: declarations of local variables, control flow, assignments and calls. */
#include <string.h>

#include "ir/foreign_syntax.h"
#include "ir/parser.h"

static ki_stmt *new_stmt(ki_parser *parser, ki_stmt_kind kind)
{
  ki_stmt *stmt = KJ_NEW(parser->arena, ki_stmt);
  stmt->kind = kind;
  stmt->location = ki_place(parser);
  return stmt;
}

static ki_decl *declare_local(ki_parser *parser, ki_decl_kind kind, const ki_token *name)
{
  ki_function *function = parser->function;
  ki_decl *decl = ki_new_decl(parser, kind, name);
  decl->index = (uint32_t)(function->params.count + function->locals.count);
  KJ_PUSH(parser->arena, &function->locals, decl);
  ki_bind(parser, name->name, decl);
  return decl;
}

/* ---- the end of a statement ---- */

/* Reports that a token must not follow a statement. If the token is a word or operator of another
 * language, the message explains it. */
static _Noreturn void refuse_rest(ki_parser *parser)
{
  const ki_token *token = &parser->lexer.token;
  kj_location place = ki_place(parser);
  bool twice = token->start + 1 < parser->lexer.end &&
               (token->kind == KJ_TOKEN_PLUS || token->kind == KJ_TOKEN_MINUS) &&
               token->start[1] == token->start[0];
  if (twice)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "kernel IR has no `%c%c`: write `x %c= 1`",
                  *token->start, *token->start, *token->start);
  const ki_token *words[] = { token, &parser->previous };
  for (size_t i = 0; i < 2; i++) {
    const char *sentence =
      words[i]->kind == KJ_TOKEN_NAME ? ki_explain_word(words[i]->name->key) : NULL;
    if (sentence) ki_fail_parse(parser, words[i]->location, KJIT_ERROR_SYNTAX, "%s", sentence);
  }
  bool is_walrus =
    token->kind == KJ_TOKEN_COLON && token->start + 1 < parser->lexer.end && token->start[1] == '=';
  if (is_walrus)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "kernel IR has no `:=`: write `var x = value` to declare a variable, or `let x = "
                  "value` to name a value");
  if (token->kind == KJ_TOKEN_COLON)
    ki_fail_parse(
      parser, place, KJIT_ERROR_SYNTAX,
      "expected the end of the statement, found `:`; write the body of a block in braces");
  if (token->kind == KJ_TOKEN_ASSIGN)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected the end of the statement, found `=`; write `==` to compare");
  if (token->kind == KJ_TOKEN_SLASH)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected the end of the statement, found `/`; write `#` before a comment");
  ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected the end of the statement, found %s",
                ki_describe_token(parser));
}

void ki_end_statement(ki_parser *parser)
{
  if (ki_accept(parser, KJ_TOKEN_SEMICOLON)) return;
  if (!ki_at(parser, KJ_TOKEN_RIGHT_BRACE) && !parser->lexer.token.newline_before &&
      !ki_at(parser, KJ_TOKEN_END))
    refuse_rest(parser);
}

/* ---- declarations ---- */

typedef KJ_LIST(ki_token) token_list;

static token_list parse_names(ki_parser *parser, const char *where)
{
  token_list names = { 0 };
  do {
    ki_token name = ki_expect(parser, KJ_TOKEN_NAME, where);
    KJ_PUSH(parser->arena, &names, name);
  } while (ki_accept(parser, KJ_TOKEN_COMMA));
  return names;
}

static bool is_at_end_of_statement(const ki_parser *parser)
{
  return parser->lexer.token.newline_before || ki_at(parser, KJ_TOKEN_RIGHT_BRACE) ||
         ki_at(parser, KJ_TOKEN_SEMICOLON) || ki_at(parser, KJ_TOKEN_END);
}

/* Parses `= values`. Returns NULL for a var without a value. */
static ki_expr *parse_first_value(ki_parser *parser, const char *name, bool is_var)
{
  if (ki_accept(parser, KJ_TOKEN_ASSIGN)) return ki_parse_exprs(parser);
  if (is_var && is_at_end_of_statement(parser)) return NULL;
  ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                "expected `=` and a value for `%s`, found %s", name, ki_describe_token(parser));
}

static ki_stmt *parse_let_or_var(ki_parser *parser)
{
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_DECLARE);
  bool is_var = ki_at(parser, KJ_TOKEN_VAR);
  ki_advance(parser);
  token_list names = parse_names(parser, is_var ? "after `var`" : "after `let`");
  ki_type_expr *type = NULL;
  if (ki_at(parser, KJ_TOKEN_COLON)) {
    if (names.count > 1)
      ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                    "a type annotation needs a single name; variables that are declared together "
                    "take the types of their values");
    ki_advance(parser);
    type = ki_parse_type_expr(parser);
    ki_make_argument_type(parser, type);
  }
  stmt->value = parse_first_value(parser, names.items[0].name->key, is_var);
  /* the names are declared only after the value has been parsed, because the value must not use
   * them */
  for (size_t i = 0; i < names.count; i++) {
    ki_decl *decl = declare_local(parser, is_var ? KJ_DECL_VAR : KJ_DECL_LET, &names.items[i]);
    decl->type_expr = type;
    decl->value = names.count == 1 ? stmt->value : NULL;
    decl->is_open = !stmt->value;
    KJ_PUSH(parser->arena, &stmt->decls, decl);
  }
  return stmt;
}

static ki_stmt *parse_storage(ki_parser *parser)
{
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_STORAGE);
  bool is_shared = ki_at(parser, KJ_TOKEN_SHARED);
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, is_shared ? "after `shared`" : "after `local`");
  ki_expect(parser, KJ_TOKEN_COLON, "and a type, as in `f32[16]`");
  ki_type_expr *type = ki_parse_type_expr(parser);
  if (ki_at(parser, KJ_TOKEN_ASSIGN))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "`%s` memory cannot have an initial value", is_shared ? "shared" : "local");
  ki_decl *decl = declare_local(parser, is_shared ? KJ_DECL_SHARED : KJ_DECL_LOCAL, &name);
  decl->type_expr = type;
  ki_parse_attributes(parser, &decl->attributes);
  KJ_PUSH(parser->arena, &stmt->decls, decl);
  return stmt;
}

/* ---- control flow ---- */

static void parse_scoped_block(ki_parser *parser, ki_stmts *body)
{
  ki_open_scope(parser);
  ki_parse_block(parser, body);
  ki_close_scope(parser);
}

static void refuse_colon(ki_parser *parser)
{
  if (ki_at(parser, KJ_TOKEN_COLON))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "expected `{`, found `:`; write a block in braces: `if c { }`");
}

static ki_expr *parse_condition(ki_parser *parser)
{
  ki_expr *condition = ki_parse_expr(parser);
  refuse_colon(parser);
  if (ki_at(parser, KJ_TOKEN_ASSIGN))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "expected `{`, found `=`; write `==` to compare");
  return condition;
}

static ki_stmt *parse_if(ki_parser *parser)
{
  ki_enter(parser);
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_IF);
  ki_advance(parser);
  stmt->value = parse_condition(parser);
  parse_scoped_block(parser, &stmt->body);
  if (ki_accept(parser, KJ_TOKEN_ELSE)) {
    refuse_colon(parser);
    if (ki_at(parser, KJ_TOKEN_IF)) {
      ki_stmt *otherwise = parse_if(parser);
      KJ_PUSH(parser->arena, &stmt->otherwise, otherwise);
    } else parse_scoped_block(parser, &stmt->otherwise);
  }
  ki_leave(parser);
  return stmt;
}

static ki_stmt *parse_while(ki_parser *parser)
{
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_WHILE);
  ki_advance(parser);
  stmt->value = parse_condition(parser);
  ki_parse_attributes(parser, &stmt->attributes);
  parse_scoped_block(parser, &stmt->body);
  return stmt;
}

/* Parses the range of a loop, or the value whose items the loop visits. */
static void parse_range(ki_parser *parser, ki_stmt *stmt)
{
  const char *name = ki_at(parser, KJ_TOKEN_NAME) ? parser->lexer.token.name->key : "";
  int range = 0;
  while (range < KJ_RANGE_COUNT && strcmp(ki_range_names[range], name) != 0) range++;
  if (range == KJ_RANGE_COUNT) {
    stmt->range = KJ_ITEMS;
    ki_expr *value = ki_parse_exprs(parser);
    KJ_PUSH(parser->arena, &stmt->args, value);
    return;
  }
  stmt->range = (ki_range)range;
  ki_advance(parser);
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "after the range");
  ki_parse_arguments(parser, &stmt->args);
}

static ki_stmt *parse_for(ki_parser *parser)
{
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_FOR);
  ki_advance(parser);
  if (ki_at(parser, KJ_TOKEN_LEFT_PAREN))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "kernel IR writes a loop as `for i in range(n) { }`");
  token_list names = parse_names(parser, "after `for`");
  ki_expect(parser, KJ_TOKEN_IN, "after the names of the loop");
  parse_range(parser, stmt);
  refuse_colon(parser);
  ki_parse_attributes(parser, &stmt->attributes);
  ki_open_scope(parser);
  for (size_t i = 0; i < names.count; i++) {
    ki_decl *decl = declare_local(parser, KJ_DECL_LOOP, &names.items[i]);
    KJ_PUSH(parser->arena, &stmt->decls, decl);
  }
  ki_parse_block(parser, &stmt->body);
  ki_close_scope(parser);
  return stmt;
}

static ki_stmt *parse_word(ki_parser *parser, ki_stmt_kind kind)
{
  ki_stmt *stmt = new_stmt(parser, kind);
  ki_advance(parser);
  return stmt;
}

static ki_stmt *parse_return(ki_parser *parser)
{
  ki_stmt *stmt = parse_word(parser, KJ_STMT_RETURN);
  if (!is_at_end_of_statement(parser)) stmt->value = ki_parse_exprs(parser);
  return stmt;
}

static ki_stmt *parse_assert(ki_parser *parser)
{
  ki_stmt *stmt = parse_word(parser, KJ_STMT_ASSERT);
  stmt->value = ki_parse_expr(parser);
  if (ki_accept(parser, KJ_TOKEN_COMMA))
    stmt->message = ki_expect(parser, KJ_TOKEN_STRING, "as the message of `assert`").string;
  return stmt;
}

static ki_stmt *parse_raise(ki_parser *parser)
{
  ki_stmt *stmt = parse_word(parser, KJ_STMT_RAISE);
  stmt->message = ki_expect(parser, KJ_TOKEN_STRING, "after `raise`").string;
  return stmt;
}

static ki_stmt *parse_print(ki_parser *parser)
{
  ki_stmt *stmt = parse_word(parser, KJ_STMT_PRINT);
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "after `print`");
  if (ki_at(parser, KJ_TOKEN_RIGHT_PAREN))
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                  "expected a value to print, found `)`");
  ki_parse_arguments(parser, &stmt->args);
  return stmt;
}

/* ---- assignments and calls ---- */

/* Rejects statements of other languages that begin with a word: `int x = 5`, `__shared__ float
 * s[16]`, `elif c`. */
static void refuse_words(ki_parser *parser, const ki_token *first)
{
  if (first->kind != KJ_TOKEN_NAME || parser->lexer.token.newline_before) return;
  const char *sentence = ki_explain_word(first->name->key);
  bool is_word = ki_at(parser, KJ_TOKEN_NAME) || ki_at(parser, KJ_TOKEN_STAR) ||
                 ki_at(parser, KJ_TOKEN_SHARED) || ki_at(parser, KJ_TOKEN_CONST) ||
                 ki_at(parser, KJ_TOKEN_COLON);
  if (sentence && (is_word || !ki_at(parser, KJ_TOKEN_ASSIGN)))
    ki_fail_parse(parser, first->location, KJIT_ERROR_SYNTAX, "%s", sentence);
  bool is_type =
    ki_find_type_alias(first->name->key) || ki_is_type_name(first->start, first->length);
  if (is_word && is_type)
    ki_fail_parse(parser, first->location, KJIT_ERROR_SYNTAX,
                  "write `var x = value` or `var x: f32 = value` to declare a variable, or `let x "
                  "= value` to name a value");
}

static _Noreturn void refuse_bare(ki_parser *parser, const ki_expr *expr)
{
  kjit_op op = ki_token_table[parser->lexer.token.kind].binary;
  bool twice = ki_at(parser, KJ_TOKEN_PLUS) || ki_at(parser, KJ_TOKEN_MINUS);
  const char *start = parser->lexer.token.start;
  if (!parser->lexer.token.newline_before &&
      ((op != KJ_NO_OP && !(twice && start + 1 < parser->lexer.end && start[1] == start[0])) ||
       ki_at(parser, KJ_TOKEN_QUESTION)))
    ki_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX,
                  "this statement has no effect: write an assignment or a call");
  if (!parser->lexer.token.newline_before && !ki_at(parser, KJ_TOKEN_RIGHT_BRACE) &&
      !ki_at(parser, KJ_TOKEN_SEMICOLON))
    refuse_rest(parser);
  const ki_builtin *builtin = expr->kind == KJ_EXPR_NAME ? ki_find_builtin(expr->name) : NULL;
  if (builtin && !(builtin->flags & KJ_NAME))
    ki_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX, "a call needs parentheses: `%s(%s)`",
                  expr->name, builtin->most ? "..." : "");
  ki_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX,
                "this statement has no effect: write an assignment or a call");
}

/* Rejects `++x` and `--x` as statements. */
static void refuse_prefix(ki_parser *parser)
{
  const ki_token *token = &parser->lexer.token;
  if (token->kind != KJ_TOKEN_PLUS && token->kind != KJ_TOKEN_MINUS) return;
  if (token->start + 1 < parser->lexer.end && token->start[1] == token->start[0])
    ki_fail_parse(parser, token->location, KJIT_ERROR_SYNTAX,
                  "kernel IR has no `%c%c`: write `x %c= 1`", *token->start, *token->start,
                  *token->start);
}

static ki_stmt *parse_assignment(ki_parser *parser, ki_expr *first)
{
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_ASSIGN);
  stmt->location = first->location;
  KJ_PUSH(parser->arena, &stmt->places, first);
  while (ki_accept(parser, KJ_TOKEN_COMMA)) {
    ki_expr *place = ki_parse_postfix(parser);
    KJ_PUSH(parser->arena, &stmt->places, place);
  }
  stmt->op = ki_token_table[parser->lexer.token.kind].assign;
  if (stmt->op == KJ_NO_OP)
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `=` after the assignment targets, found %s", ki_describe_token(parser));
  if (stmt->op != KJIT_OP_STORE && stmt->places.count > 1)
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "%s can only change a single variable or element", ki_describe_token(parser));
  ki_advance(parser);
  if (stmt->op == KJIT_OP_FLOORDIV) parser->slashes = parser->previous;
  stmt->value = ki_parse_exprs(parser);
  return stmt;
}

static ki_stmt *parse_expression_statement(ki_parser *parser)
{
  refuse_prefix(parser);
  ki_token first = parser->lexer.token;
  ki_expr *expr = ki_parse_postfix(parser);
  bool at_end = ki_at_line_end(parser);
  if (!at_end && (ki_at(parser, KJ_TOKEN_COMMA) ||
                  ki_token_table[parser->lexer.token.kind].assign != KJ_NO_OP))
    return parse_assignment(parser, expr);
  if (expr->kind == KJ_EXPR_NAME) refuse_words(parser, &first);
  if (expr->kind != KJ_EXPR_CALL) refuse_bare(parser, expr);
  if (ki_at(parser, KJ_TOKEN_LEFT_BRACE)) refuse_words(parser, &first); /* switch (x) { */
  ki_stmt *stmt = new_stmt(parser, KJ_STMT_EVALUATE);
  stmt->location = expr->location;
  stmt->value = expr;
  return stmt;
}

/* ---- blocks ---- */

static _Noreturn void refuse_statement(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  const char *sentence = NULL;
  ki_token_kind kind = parser->lexer.token.kind;
  if (kind == KJ_TOKEN_ELSE) sentence = "`else` without an `if` before it";
  if (kind == KJ_TOKEN_CONST)
    sentence = "a name for a value in a function is declared `let x = value`";
  if (kind == KJ_TOKEN_KERNEL || kind == KJ_TOKEN_FUNC || kind == KJ_TOKEN_STRUCT)
    sentence =
      "functions and structs are declared in the module, not in a block: is a `}` missing before?";
  if (kind == KJ_TOKEN_AT)
    sentence =
      "the attribute of a loop is written before its block: `for i in range(4) @unroll { }`";
  if (kind == KJ_TOKEN_LEFT_BRACE)
    sentence = "expected a statement, found `{`: blocks belong to `if`, `for` and `while`";
  if (kind == KJ_TOKEN_SEMICOLON) sentence = "expected a statement, found `;`";
  if (sentence) ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "%s", sentence);
  ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected a statement, found %s",
                ki_describe_token(parser));
}

static ki_stmt *parse_statement(ki_parser *parser)
{
  switch (KJ_AMONG(parser->lexer.token.kind)) {
  case KJ_TOKEN_LET:
  case KJ_TOKEN_VAR: return parse_let_or_var(parser);
  case KJ_TOKEN_SHARED:
  case KJ_TOKEN_LOCAL: return parse_storage(parser);
  case KJ_TOKEN_IF: return parse_if(parser);
  case KJ_TOKEN_WHILE: return parse_while(parser);
  case KJ_TOKEN_FOR: return parse_for(parser);
  case KJ_TOKEN_BREAK: return parse_word(parser, KJ_STMT_BREAK);
  case KJ_TOKEN_CONTINUE: return parse_word(parser, KJ_STMT_CONTINUE);
  case KJ_TOKEN_RETURN: return parse_return(parser);
  case KJ_TOKEN_ASSERT: return parse_assert(parser);
  case KJ_TOKEN_RAISE: return parse_raise(parser);
  case KJ_TOKEN_PRINT: return parse_print(parser);
  case KJ_TOKEN_ELSE:
  case KJ_TOKEN_CONST:
  case KJ_TOKEN_KERNEL:
  case KJ_TOKEN_FUNC:
  case KJ_TOKEN_STRUCT:
  case KJ_TOKEN_AT:
  case KJ_TOKEN_LEFT_BRACE:
  case KJ_TOKEN_SEMICOLON: refuse_statement(parser);
  default: return parse_expression_statement(parser);
  }
}

void ki_parse_block(ki_parser *parser, ki_stmts *body)
{
  kj_location open = ki_place(parser);
  ki_enter(parser);
  ki_expect(parser, KJ_TOKEN_LEFT_BRACE, "before the block");
  while (!ki_accept(parser, KJ_TOKEN_RIGHT_BRACE)) {
    if (ki_at(parser, KJ_TOKEN_END))
      ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                    "the block that begins on line %u has no `}`", open.line);
    ki_stmt *stmt = parse_statement(parser);
    KJ_PUSH(parser->arena, body, stmt);
    ki_end_statement(parser);
  }
  ki_leave(parser);
}

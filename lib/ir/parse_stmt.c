/* Statements: declarations of locals, control flow, assignments, calls. */
#include <string.h>

#include "ir/habits.h"
#include "ir/parser.h"

static kj_stmt *new_stmt(kj_parser *parser, kj_stmt_kind kind)
{
  kj_stmt *stmt = KJ_NEW(parser->arena, kj_stmt);
  stmt->kind = kind;
  stmt->location = kj_place(parser);
  return stmt;
}

static kj_decl *declare_local(kj_parser *parser, kj_decl_kind kind, const kj_token *name)
{
  kj_function *function = parser->function;
  kj_decl *decl = kj_new_decl(parser, kind, name);
  decl->index = (uint32_t)(function->params.count + function->locals.count);
  KJ_PUSH(parser->arena, &function->locals, decl);
  kj_bind(parser, name->name, decl);
  return decl;
}

/* ---- the end of a statement ---- */

/* What stands where a statement should have ended: words of other languages get their own sentence.
 */
static _Noreturn void refuse_rest(kj_parser *parser)
{
  const kj_token *token = &parser->lexer.token;
  kj_location place = kj_place(parser);
  bool twice = token->start + 1 < parser->lexer.end &&
               (token->kind == KJ_TOKEN_PLUS || token->kind == KJ_TOKEN_MINUS) &&
               token->start[1] == token->start[0];
  if (twice)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "there is no `%c%c`: write `x %c= 1`",
                  *token->start, *token->start, *token->start);
  const kj_token *words[] = { token, &parser->previous };
  for (size_t i = 0; i < 2; i++) {
    const char *sentence =
      words[i]->kind == KJ_TOKEN_NAME ? kj_explain_word(words[i]->name->key) : NULL;
    if (sentence) kj_fail_parse(parser, words[i]->location, KJIT_ERROR_SYNTAX, "%s", sentence);
  }
  bool is_walrus =
    token->kind == KJ_TOKEN_COLON && token->start + 1 < parser->lexer.end && token->start[1] == '=';
  if (is_walrus)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "there is no `:=`: a variable is declared `var x = value`, a name for a value "
                  "`let x = value`");
  if (token->kind == KJ_TOKEN_COLON)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected the end of the statement, found `:`; blocks stand in braces");
  if (token->kind == KJ_TOKEN_ASSIGN)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected the end of the statement, found `=`; equality is `==`");
  if (token->kind == KJ_TOKEN_SLASH)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "expected the end of the statement, found `/`; a comment starts with `#`");
  kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected the end of the statement, found %s",
                kj_describe_token(parser));
}

void kj_end_statement(kj_parser *parser)
{
  if (kj_accept(parser, KJ_TOKEN_SEMICOLON)) return;
  if (!kj_at(parser, KJ_TOKEN_RIGHT_BRACE) && !parser->lexer.token.newline_before &&
      !kj_at(parser, KJ_TOKEN_END))
    refuse_rest(parser);
}

/* ---- declarations ---- */

typedef KJ_LIST(kj_token) token_list;

static token_list parse_names(kj_parser *parser, const char *where)
{
  token_list names = { 0 };
  do {
    kj_token name = kj_expect(parser, KJ_TOKEN_NAME, where);
    KJ_PUSH(parser->arena, &names, name);
  } while (kj_accept(parser, KJ_TOKEN_COMMA));
  return names;
}

static kj_stmt *parse_let_or_var(kj_parser *parser)
{
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_DECLARE);
  bool is_var = kj_at(parser, KJ_TOKEN_VAR);
  kj_advance(parser);
  token_list names = parse_names(parser, is_var ? "after `var`" : "after `let`");
  kj_type_expr *type = NULL;
  if (kj_at(parser, KJ_TOKEN_COLON)) {
    if (names.count > 1)
      kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                    "a type stands behind one name only; several take the types of their values");
    kj_advance(parser);
    type = kj_parse_type_expr(parser);
    kj_make_argument_type(parser, type);
  }
  if (!kj_at(parser, KJ_TOKEN_ASSIGN))
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `=` and a value for `%s`, found %s", names.items[0].name->key,
                  kj_describe_token(parser));
  kj_advance(parser);
  stmt->value = kj_parse_exprs(parser);
  for (size_t i = 0; i < names.count; i++) { /* after the value, which does not see them */
    kj_decl *decl = declare_local(parser, is_var ? KJ_DECL_VAR : KJ_DECL_LET, &names.items[i]);
    decl->type_expr = type;
    decl->value = names.count == 1 ? stmt->value : NULL;
    KJ_PUSH(parser->arena, &stmt->decls, decl);
  }
  return stmt;
}

static kj_stmt *parse_storage(kj_parser *parser)
{
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_STORAGE);
  bool is_shared = kj_at(parser, KJ_TOKEN_SHARED);
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, is_shared ? "after `shared`" : "after `local`");
  kj_expect(parser, KJ_TOKEN_COLON, "and a type, as in `f32[16]`");
  kj_type_expr *type = kj_parse_type_expr(parser);
  if (kj_at(parser, KJ_TOKEN_ASSIGN))
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX, "`%s` memory has no initial value",
                  is_shared ? "shared" : "local");
  kj_decl *decl = declare_local(parser, is_shared ? KJ_DECL_SHARED : KJ_DECL_LOCAL, &name);
  decl->type_expr = type;
  kj_parse_attributes(parser, &decl->attributes);
  KJ_PUSH(parser->arena, &stmt->decls, decl);
  return stmt;
}

/* ---- control flow ---- */

static void parse_scoped_block(kj_parser *parser, kj_stmts *body)
{
  kj_open_scope(parser);
  kj_parse_block(parser, body);
  kj_close_scope(parser);
}

static void refuse_colon(kj_parser *parser)
{
  if (kj_at(parser, KJ_TOKEN_COLON))
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                  "expected `{`, found `:`; blocks stand in braces: `if c { }`");
}

static kj_expr *parse_condition(kj_parser *parser)
{
  kj_expr *condition = kj_parse_expr(parser);
  refuse_colon(parser);
  if (kj_at(parser, KJ_TOKEN_ASSIGN))
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                  "expected `{`, found `=`; equality is `==`");
  return condition;
}

static kj_stmt *parse_if(kj_parser *parser)
{
  kj_enter(parser);
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_IF);
  kj_advance(parser);
  stmt->value = parse_condition(parser);
  parse_scoped_block(parser, &stmt->body);
  if (kj_accept(parser, KJ_TOKEN_ELSE)) {
    refuse_colon(parser);
    if (kj_at(parser, KJ_TOKEN_IF)) {
      kj_stmt *otherwise = parse_if(parser);
      KJ_PUSH(parser->arena, &stmt->otherwise, otherwise);
    } else parse_scoped_block(parser, &stmt->otherwise);
  }
  kj_leave(parser);
  return stmt;
}

static kj_stmt *parse_while(kj_parser *parser)
{
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_WHILE);
  kj_advance(parser);
  stmt->value = parse_condition(parser);
  kj_parse_attributes(parser, &stmt->attributes);
  parse_scoped_block(parser, &stmt->body);
  return stmt;
}

static void parse_range(kj_parser *parser, kj_stmt *stmt)
{
  kj_location place = kj_place(parser);
  const char *name = kj_at(parser, KJ_TOKEN_NAME) ? parser->lexer.token.name->key : "";
  int range = 0;
  while (range < KJ_RANGE_COUNT && strcmp(kj_range_names[range], name) != 0) range++;
  if (range == KJ_RANGE_COUNT)
    kj_fail_parse(
      parser, place, KJIT_ERROR_SYNTAX,
      "expected `range(...)`, `grid_range(...)` or `block_range(...)` after `in`, found %s",
      kj_describe_token(parser));
  stmt->range = (kj_range)range;
  kj_advance(parser);
  kj_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "after the range");
  kj_parse_arguments(parser, &stmt->args);
}

static kj_stmt *parse_for(kj_parser *parser)
{
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_FOR);
  kj_advance(parser);
  if (kj_at(parser, KJ_TOKEN_LEFT_PAREN))
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                  "a loop is `for i in range(n) { }` here");
  token_list names = parse_names(parser, "after `for`");
  kj_expect(parser, KJ_TOKEN_IN, "after the names of the loop");
  parse_range(parser, stmt);
  refuse_colon(parser);
  kj_parse_attributes(parser, &stmt->attributes);
  kj_open_scope(parser);
  for (size_t i = 0; i < names.count; i++) {
    kj_decl *decl = declare_local(parser, KJ_DECL_LOOP, &names.items[i]);
    KJ_PUSH(parser->arena, &stmt->decls, decl);
  }
  kj_parse_block(parser, &stmt->body);
  kj_close_scope(parser);
  return stmt;
}

static kj_stmt *parse_word(kj_parser *parser, kj_stmt_kind kind)
{
  kj_stmt *stmt = new_stmt(parser, kind);
  kj_advance(parser);
  return stmt;
}

static kj_stmt *parse_return(kj_parser *parser)
{
  kj_stmt *stmt = parse_word(parser, KJ_STMT_RETURN);
  bool has_value = !parser->lexer.token.newline_before && !kj_at(parser, KJ_TOKEN_RIGHT_BRACE) &&
                   !kj_at(parser, KJ_TOKEN_SEMICOLON) && !kj_at(parser, KJ_TOKEN_END);
  if (has_value) stmt->value = kj_parse_exprs(parser);
  return stmt;
}

static kj_stmt *parse_assert(kj_parser *parser)
{
  kj_stmt *stmt = parse_word(parser, KJ_STMT_ASSERT);
  stmt->value = kj_parse_expr(parser);
  if (kj_accept(parser, KJ_TOKEN_COMMA))
    stmt->message = kj_expect(parser, KJ_TOKEN_STRING, "as the message of `assert`").string;
  return stmt;
}

static kj_stmt *parse_raise(kj_parser *parser)
{
  kj_stmt *stmt = parse_word(parser, KJ_STMT_RAISE);
  stmt->message = kj_expect(parser, KJ_TOKEN_STRING, "after `raise`").string;
  return stmt;
}

static kj_stmt *parse_print(kj_parser *parser)
{
  kj_stmt *stmt = parse_word(parser, KJ_STMT_PRINT);
  kj_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "after `print`");
  if (kj_at(parser, KJ_TOKEN_RIGHT_PAREN))
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                  "expected a value to print, found `)`");
  kj_parse_arguments(parser, &stmt->args);
  return stmt;
}

/* ---- assignments and calls ---- */

/* `int x = 5`, `__shared__ float s[16]`, `elif c`: a word of another language and what it begins.
 */
static void refuse_words(kj_parser *parser, const kj_token *first)
{
  if (first->kind != KJ_TOKEN_NAME || parser->lexer.token.newline_before) return;
  const char *sentence = kj_explain_word(first->name->key);
  bool is_word = kj_at(parser, KJ_TOKEN_NAME) || kj_at(parser, KJ_TOKEN_STAR) ||
                 kj_at(parser, KJ_TOKEN_SHARED) || kj_at(parser, KJ_TOKEN_CONST) ||
                 kj_at(parser, KJ_TOKEN_COLON);
  if (sentence && (is_word || !kj_at(parser, KJ_TOKEN_ASSIGN)))
    kj_fail_parse(parser, first->location, KJIT_ERROR_SYNTAX, "%s", sentence);
  bool is_type =
    kj_find_type_alias(first->name->key) || kj_is_type_name(first->start, first->length);
  if (is_word && is_type)
    kj_fail_parse(parser, first->location, KJIT_ERROR_SYNTAX,
                  "a variable is declared `var x = value` or `var x: f32 = value`, a name for a "
                  "value `let x = value`");
}

static _Noreturn void refuse_bare(kj_parser *parser, const kj_expr *expr)
{
  kjit_op op = kj_token_table[parser->lexer.token.kind].binary;
  bool twice = kj_at(parser, KJ_TOKEN_PLUS) || kj_at(parser, KJ_TOKEN_MINUS);
  const char *start = parser->lexer.token.start;
  if (!parser->lexer.token.newline_before &&
      ((op != KJ_NO_OP && !(twice && start + 1 < parser->lexer.end && start[1] == start[0])) ||
       kj_at(parser, KJ_TOKEN_QUESTION)))
    kj_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX,
                  "a value alone does nothing: a statement is an assignment or a call");
  if (!parser->lexer.token.newline_before && !kj_at(parser, KJ_TOKEN_RIGHT_BRACE) &&
      !kj_at(parser, KJ_TOKEN_SEMICOLON))
    refuse_rest(parser);
  const kj_builtin *builtin = expr->kind == KJ_EXPR_NAME ? kj_find_builtin(expr->name) : NULL;
  if (builtin && !(builtin->flags & KJ_NAME))
    kj_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX, "a call has parentheses: `%s(%s)`",
                  expr->name, builtin->most ? "..." : "");
  kj_fail_parse(parser, expr->location, KJIT_ERROR_SYNTAX,
                "a value alone does nothing: a statement is an assignment or a call");
}

/* A second sign before a name at the begin of a statement. */
static void refuse_prefix(kj_parser *parser)
{
  const kj_token *token = &parser->lexer.token;
  if (token->kind != KJ_TOKEN_PLUS && token->kind != KJ_TOKEN_MINUS) return;
  if (token->start + 1 < parser->lexer.end && token->start[1] == token->start[0])
    kj_fail_parse(parser, token->location, KJIT_ERROR_SYNTAX, "there is no `%c%c`: write `x %c= 1`",
                  *token->start, *token->start, *token->start);
}

static kj_stmt *parse_assignment(kj_parser *parser, kj_expr *first)
{
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_ASSIGN);
  stmt->location = first->location;
  KJ_PUSH(parser->arena, &stmt->places, first);
  while (kj_accept(parser, KJ_TOKEN_COMMA)) {
    kj_expr *place = kj_parse_postfix(parser);
    KJ_PUSH(parser->arena, &stmt->places, place);
  }
  stmt->op = kj_token_table[parser->lexer.token.kind].assign;
  if (stmt->op == KJ_NO_OP)
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `=` after the places, found %s", kj_describe_token(parser));
  if (stmt->op != KJIT_STORE && stmt->places.count > 1)
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX, "%s changes one place only",
                  kj_describe_token(parser));
  kj_advance(parser);
  if (stmt->op == KJIT_FLOORDIV) parser->slashes = parser->previous;
  stmt->value = kj_parse_exprs(parser);
  return stmt;
}

static kj_stmt *parse_expression_statement(kj_parser *parser)
{
  refuse_prefix(parser);
  kj_token first = parser->lexer.token;
  kj_expr *expr = kj_parse_postfix(parser);
  bool at_end = kj_at_line_end(parser);
  if (!at_end && (kj_at(parser, KJ_TOKEN_COMMA) ||
                  kj_token_table[parser->lexer.token.kind].assign != KJ_NO_OP))
    return parse_assignment(parser, expr);
  if (expr->kind == KJ_EXPR_NAME) refuse_words(parser, &first);
  if (expr->kind != KJ_EXPR_CALL) refuse_bare(parser, expr);
  if (kj_at(parser, KJ_TOKEN_LEFT_BRACE)) refuse_words(parser, &first); /* switch (x) { */
  kj_stmt *stmt = new_stmt(parser, KJ_STMT_EVALUATE);
  stmt->location = expr->location;
  stmt->value = expr;
  return stmt;
}

/* ---- blocks ---- */

static _Noreturn void refuse_statement(kj_parser *parser)
{
  kj_location place = kj_place(parser);
  const char *sentence = NULL;
  kj_token_kind kind = parser->lexer.token.kind;
  if (kind == KJ_TOKEN_ELSE) sentence = "`else` without an `if` before it";
  if (kind == KJ_TOKEN_CONST)
    sentence = "a name for a value in a function is declared `let x = value`";
  if (kind == KJ_TOKEN_KERNEL || kind == KJ_TOKEN_FUNC || kind == KJ_TOKEN_STRUCT)
    sentence =
      "functions and structs are declared in the module, not in a block: is a `}` missing before?";
  if (kind == KJ_TOKEN_AT)
    sentence = "the attribute of a loop stands before its block: `for i in range(4) @unroll { }`";
  if (kind == KJ_TOKEN_LEFT_BRACE)
    sentence = "expected a statement, found `{`: blocks belong to `if`, `for` and `while`";
  if (kind == KJ_TOKEN_SEMICOLON) sentence = "expected a statement, found `;`";
  if (sentence) kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "%s", sentence);
  kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected a statement, found %s",
                kj_describe_token(parser));
}

static kj_stmt *parse_statement(kj_parser *parser)
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

void kj_parse_block(kj_parser *parser, kj_stmts *body)
{
  kj_location open = kj_place(parser);
  kj_enter(parser);
  kj_expect(parser, KJ_TOKEN_LEFT_BRACE, "before the block");
  while (!kj_accept(parser, KJ_TOKEN_RIGHT_BRACE)) {
    if (kj_at(parser, KJ_TOKEN_END))
      kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX,
                    "the block that begins on line %u has no `}`", open.line);
    kj_stmt *stmt = parse_statement(parser);
    KJ_PUSH(parser->arena, body, stmt);
    kj_end_statement(parser);
  }
  kj_leave(parser);
}

/* State and parts of the parser, shared by parser.c (declarations, statements), parse_expr.c
 * (expressions) and parse_type.c (types). Recursive descent, one token of lookahead, straight into
 * the module's arena. A syntax error jumps to lexer.on_error. */
#ifndef KJ_IR_PARSER_H
#define KJ_IR_PARSER_H

#include "ir/lexer.h"

/* What a name means in a scope. Bindings of one name form a chain from its innermost scope
 * outwards; the chain starts at the name's entry. */
typedef struct ki_binding {
  ki_decl *decl;
  kj_map_entry *name;
  struct ki_binding *outer;
  uint32_t scope;
} ki_binding;

typedef struct ki_parser {
  ki_lexer lexer;
  kjit_module *module; /* NULL: a type annotation alone */
  ki_types *types;
  kj_arena *arena;
  ki_function *function;          /* being parsed, or NULL */
  KJ_LIST(ki_binding *) bindings; /* of all open scopes, innermost last */
  uint32_t scope;
  uint32_t nesting; /* of recursion: bounded by KJ_MAX_NESTING */
  /* ( and [ that are open in this block: inside, newlines mean nothing */
  uint32_t open;
  ki_token previous;         /* the token before the lookahead */
  ki_token slashes;          /* the last // used as an operator */
  uint32_t declaration_line; /* where the declaration being parsed begins */
  ki_attributes defaults;    /* of the kernels and funcs that follow in this source */
  /* `_` may stand for the type of an item: the tuple is the parameter of a kernel */
  bool takes_any;
  /* the integer literal that only fits its type when it is negated, or NULL */
  ki_expr *overflow;
} ki_parser;

/* tokens */
void ki_advance(ki_parser *parser);
bool ki_accept(ki_parser *parser, ki_token_kind kind);
/* Takes a token of the kind or fails: expected `)`, found `x`; where says after what, or is NULL.
 */
ki_token ki_expect(ki_parser *parser, ki_token_kind kind, const char *where);
/* As ki_expect for ( and [ : until the closing one newlines mean nothing. */
void ki_open_bracket(ki_parser *parser, ki_token_kind kind, const char *where);
void ki_close_bracket(ki_parser *parser, ki_token_kind kind, const char *where);
/* The lookahead in quotes, for messages. In the module's arena. */
const char *ki_describe_token(ki_parser *parser);
/* Where an error about the lookahead points: at it, or behind the token before where the line or
 * text has ended. */
kj_location ki_found_at(const ki_parser *parser);
_Noreturn void ki_fail_parse(ki_parser *parser, kj_location location, kjit_status status,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Whether the lookahead begins a new line outside brackets, and so cannot go on an expression. */
bool ki_at_line_end(const ki_parser *parser);
/* Around every recursion. */
void ki_enter(ki_parser *parser);
static inline void ki_leave(ki_parser *parser) { parser->nesting--; }

static inline bool ki_at(const ki_parser *parser, ki_token_kind kind)
{
  return parser->lexer.token.kind == kind;
}
static inline kj_location ki_place(const ki_parser *parser) { return parser->lexer.token.location; }

/* A parser of a source of the module, in its arena. No token has been read yet. */
ki_parser *ki_open_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics);
ki_expr *ki_parse_expr(ki_parser *parser);
ki_expr *ki_parse_postfix(ki_parser *parser);
/* One or more expressions; more than one: a tuple. */
ki_expr *ki_parse_exprs(ki_parser *parser);
/* Expressions up to the closing parenthesis, which is taken. */
void ki_parse_arguments(ki_parser *parser, ki_exprs *list);
ki_type_expr *ki_parse_type_expr(ki_parser *parser);
/* What `_`, an item of any type in the tuple that a parameter of a kernel takes, is parsed to. */
static inline bool ki_is_any(const ki_type_expr *type)
{
  return type->kind == KJ_TYPE_FIXED && type->type == KJIT_ANY;
}
/* `f32[]` as the type of an argument is an array of rank 0; as a declaration in shared memory it is
 * an array of the launch's size. */
void ki_make_argument_type(ki_parser *parser, ki_type_expr *type);

/* The statement part of the parser, and the helpers that it shares with parser.c. */

/* Scopes: a declaration hides what has its name outside. Declaring a name twice in one scope is an
 * error. */
void ki_open_scope(ki_parser *parser);
void ki_close_scope(ki_parser *parser);
void ki_bind(ki_parser *parser, kj_map_entry *name, ki_decl *decl);
/* A declaration in the function being parsed; not bound yet. */
ki_decl *ki_new_decl(ki_parser *parser, ki_decl_kind kind, const ki_token *name);

void ki_parse_attributes(ki_parser *parser, ki_attributes *attributes);
/* { statements }, in the scope that is open. */
void ki_parse_block(ki_parser *parser, ki_stmts *body);
/* Takes `;`, or nothing before a new line or `}`. */
void ki_end_statement(ki_parser *parser);

#endif

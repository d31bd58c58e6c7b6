/* State and parts of the parser, shared by parser.c (declarations, statements), parse_expr.c
 * (expressions) and parse_type.c (types). Recursive descent, one token of lookahead, straight into
 * the module's arena. A syntax error jumps to lexer.on_error. */
#ifndef KJ_IR_PARSER_H
#define KJ_IR_PARSER_H

#include "ir/lexer.h"

/* What a name means in a scope. Bindings of one name form a chain from its innermost scope
 * outwards; the chain starts at the name's entry. */
typedef struct kj_binding {
  kj_decl *decl;
  kj_map_entry *name;
  struct kj_binding *outer;
  uint32_t scope;
} kj_binding;

typedef struct kj_parser {
  kj_lexer lexer;
  kjit_module *module; /* NULL: a type annotation alone */
  kj_types *types;
  kj_arena *arena;
  kj_function *function;          /* being parsed, or NULL */
  KJ_LIST(kj_binding *) bindings; /* of all open scopes, innermost last */
  uint32_t scope;
  uint32_t nesting; /* of recursion: bounded by KJ_MAX_NESTING */
  /* ( and [ that are open in this block: inside, newlines mean nothing */
  uint32_t open;
  kj_token previous;         /* the token before the lookahead */
  kj_token slashes;          /* the last // used as an operator */
  uint32_t declaration_line; /* where the declaration being parsed begins */
  /* the integer literal that only fits its type when it is negated, or NULL */
  kj_expr *overflow;
} kj_parser;

/* tokens */
void kj_advance(kj_parser *parser);
bool kj_accept(kj_parser *parser, kj_token_kind kind);
/* Takes a token of the kind or fails: expected `)`, found `x`; where says after what, or is NULL.
 */
kj_token kj_expect(kj_parser *parser, kj_token_kind kind, const char *where);
/* As kj_expect for ( and [ : until the closing one newlines mean nothing. */
void kj_open_bracket(kj_parser *parser, kj_token_kind kind, const char *where);
void kj_close_bracket(kj_parser *parser, kj_token_kind kind, const char *where);
/* The lookahead in quotes, for messages. In the module's arena. */
const char *kj_describe_token(kj_parser *parser);
/* Where an error about the lookahead points: at it, or behind the token before where the line or
 * text has ended. */
kj_location kj_found_at(const kj_parser *parser);
_Noreturn void kj_fail_parse(kj_parser *parser, kj_location location, kjit_status status,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Whether the lookahead begins a new line outside brackets, and so cannot go on an expression. */
bool kj_at_line_end(const kj_parser *parser);
/* Around every recursion. */
void kj_enter(kj_parser *parser);
static inline void kj_leave(kj_parser *parser) { parser->nesting--; }

static inline bool kj_at(const kj_parser *parser, kj_token_kind kind)
{
  return parser->lexer.token.kind == kind;
}
static inline kj_location kj_place(const kj_parser *parser) { return parser->lexer.token.location; }

kj_expr *kj_parse_expr(kj_parser *parser);
kj_expr *kj_parse_postfix(kj_parser *parser);
/* One or more expressions; more than one: a tuple. */
kj_expr *kj_parse_exprs(kj_parser *parser);
/* Expressions up to the closing parenthesis, which is taken. */
void kj_parse_arguments(kj_parser *parser, kj_exprs *list);
kj_type_expr *kj_parse_type_expr(kj_parser *parser);
/* `f32[]` as the type of an argument is an array of rank 0; as a declaration in shared memory it is
 * an array of the launch's size. */
void kj_make_argument_type(kj_parser *parser, kj_type_expr *type);

/* The statement part of the parser, and the helpers that it shares with parser.c. */

/* Scopes: a declaration hides what has its name outside. Declaring a name twice in one scope is an
 * error. */
void kj_open_scope(kj_parser *parser);
void kj_close_scope(kj_parser *parser);
void kj_bind(kj_parser *parser, kj_map_entry *name, kj_decl *decl);
/* A declaration in the function being parsed; not bound yet. */
kj_decl *kj_new_decl(kj_parser *parser, kj_decl_kind kind, const kj_token *name);

void kj_parse_attributes(kj_parser *parser, kj_attributes *attributes);
/* { statements }, in the scope that is open. */
void kj_parse_block(kj_parser *parser, kj_stmts *body);
/* Takes `;`, or nothing before a new line or `}`. */
void kj_end_statement(kj_parser *parser);

#endif

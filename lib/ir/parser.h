/* State and functions of the parser, shared by parser.c (modules), parse_decl.c, parse_stmt.c,
 * parse_expr.c, parse_operand.c and parse_type.c. The parser uses recursive descent with one token
 * of lookahead and allocates the nodes in the module's arena. A syntax error jumps to
 * lexer.on_error. */
#ifndef KJ_IR_PARSER_H
#define KJ_IR_PARSER_H

#include "ir/lexer.h"

/* A visible name. The bindings of a name form a chain from the innermost scope to the outermost
 * scope. The name's entry in the map has the first binding as its value. */
typedef struct ki_binding {
  ki_decl *decl;
  kj_map_entry *name;
  struct ki_binding *outer;
  uint32_t scope;
} ki_binding;

typedef struct ki_parser {
  ki_lexer lexer;
  kjit_module *module; /* NULL if the parser reads only a type annotation */
  ki_types *types;
  kj_arena *arena;
  ki_function *function;          /* the function that is being parsed, or NULL */
  KJ_LIST(ki_binding *) bindings; /* bindings of all open scopes, innermost last */
  uint32_t scope;
  uint32_t nesting; /* depth of recursion, at most KJ_MAX_NESTING */
  /* number of ( and [ that are open in the current block; newlines inside of them are ignored */
  uint32_t open;
  ki_token previous;         /* the token before the lookahead */
  ki_token slashes;          /* the last `//` that was parsed as an operator */
  uint32_t declaration_line; /* first line of the declaration that is being parsed */
  /* default attributes for the kernels and funcs that follow in this source */
  ki_attributes defaults;
  /* `_` is accepted as an item's type, because the item belongs to a tuple parameter of a kernel */
  bool takes_any;
  bool has_headers; /* a func's text can end after the header, without a body */
  /* an integer literal that fits into its type only if it is negated, or NULL */
  ki_expr *overflow;
} ki_parser;

/* tokens */
void ki_advance(ki_parser *parser);
bool ki_accept(ki_parser *parser, ki_token_kind kind);
/* Consumes a token of this kind, or reports "expected `)`, found `x`". `where`, which can be NULL,
 * is appended after the expected token. */
ki_token ki_expect(ki_parser *parser, ki_token_kind kind, const char *where);
/* Like ki_expect for ( and [. The parser ignores newlines until the closing bracket. */
void ki_open_bracket(ki_parser *parser, ki_token_kind kind, const char *where);
void ki_close_bracket(ki_parser *parser, ki_token_kind kind, const char *where);
/* Describes the lookahead for messages, in quotes. The string is in the module's arena. */
const char *ki_describe_token(ki_parser *parser);
/* Returns the location for an error about the lookahead: the lookahead's location, or the end of
 * the previous token if the line or text ends there. */
kj_location ki_found_at(const ki_parser *parser);
_Noreturn void ki_fail_parse(ki_parser *parser, kj_location location, kjit_status status,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns whether the lookahead is on a new line outside of brackets, so that it cannot continue an
 * expression. */
bool ki_at_line_end(const ki_parser *parser);
/* Must be called before each recursive call. Reports an error if the nesting exceeds
 * KJ_MAX_NESTING. */
void ki_enter(ki_parser *parser);
static inline void ki_leave(ki_parser *parser) { parser->nesting--; }

static inline bool ki_at(const ki_parser *parser, ki_token_kind kind)
{
  return parser->lexer.token.kind == kind;
}
static inline kj_location ki_place(const ki_parser *parser) { return parser->lexer.token.location; }

/* Creates a parser of a source in the module's arena. The parser has not read a token yet. */
ki_parser *ki_open_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics);
ki_expr *ki_parse_expr(ki_parser *parser);
ki_expr *ki_parse_postfix(ki_parser *parser);
/* Parses `[...]` after an array. */
ki_expr *ki_parse_index(ki_parser *parser, ki_expr *array);
/* Sets the height of a node with operands and returns the node. Must be called for every such node,
 * because it reports trees that are too high for passes that recurse. */
ki_expr *ki_seal_expr(ki_parser *parser, ki_expr *expr);
/* Reports that an integer literal does not fit into its type. */
_Noreturn void ki_refuse_integer(ki_parser *parser, const ki_expr *literal);
/* Parses a list of expressions. If there are several, they form a tuple. */
ki_expr *ki_parse_exprs(ki_parser *parser);
/* Parses expressions up to the closing parenthesis and consumes it. */
void ki_parse_arguments(ki_parser *parser, ki_exprs *list);
ki_type_expr *ki_parse_type_expr(ki_parser *parser);
/* Returns whether the type is `_`, which stands for any type of an item in a tuple parameter of a
 * kernel. */
static inline bool ki_is_any(const ki_type_expr *type)
{
  return type->kind == KJ_TYPE_FIXED && type->type == KJIT_ANY;
}
/* Makes the type `f32[]` of a parameter an array of rank 0. In a declaration of shared memory, the
 * same text means an array whose size the launch determines. */
void ki_make_argument_type(ki_parser *parser, ki_type_expr *type);

/* ---- declarations and statements ---- */

void ki_parse_declaration(ki_parser *parser);

/* Open a scope, close a scope, and add a binding. A declaration hides declarations of the same name
 * in outer scopes. Two declarations of the same name in one scope are an error. */
void ki_open_scope(ki_parser *parser);
void ki_close_scope(ki_parser *parser);
void ki_bind(ki_parser *parser, kj_map_entry *name, ki_decl *decl);
/* Creates a declaration in the current function without binding its name. */
ki_decl *ki_new_decl(ki_parser *parser, ki_decl_kind kind, const ki_token *name);

void ki_parse_attributes(ki_parser *parser, ki_attributes *attributes);
/* Parses { statements } in the scope that is already open. */
void ki_parse_block(ki_parser *parser, ki_stmts *body);
/* Consumes `;`, or accepts that a newline or `}` follows. */
void ki_end_statement(ki_parser *parser);

#endif

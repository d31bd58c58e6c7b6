/* The statement part of the parser, and the helpers that it shares with parser.c. */
#ifndef KJ_IR_STATEMENTS_H
#define KJ_IR_STATEMENTS_H

#include "ir/parser.h"

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

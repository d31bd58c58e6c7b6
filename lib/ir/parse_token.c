/* What every part of the parser stands on: tokens, errors, and what names mean. */
#include <string.h>

#include "ir/habits.h"
#include "ir/parser.h"
#include "ir/statements.h"

/* ---- tokens ---- */

void kj_advance(kj_parser *parser)
{
  parser->previous = parser->lexer.token;
  kj_next_token(&parser->lexer);
}

bool kj_accept(kj_parser *parser, kj_token_kind kind)
{
  if (!kj_at(parser, kind)) return false;
  kj_advance(parser);
  return true;
}

bool kj_at_line_end(const kj_parser *parser)
{
  return parser->lexer.token.newline_before && parser->open == 0;
}

const char *kj_describe_token(kj_parser *parser)
{
  const kj_token *token = &parser->lexer.token;
  if (token->kind == KJ_TOKEN_END) return "the end of the text";
  if (kj_at_line_end(parser)) return "the end of the line";
  if (token->kind == KJ_TOKEN_STRING) return "a string";
  if (token->length > 40) return "a long name or number";
  return kj_format(parser->arena, "`%.*s`", (int)token->length, token->start);
}

kj_location kj_found_at(const kj_parser *parser)
{
  const kj_token *previous = &parser->previous;
  bool at_end = kj_at(parser, KJ_TOKEN_END) || kj_at_line_end(parser);
  if (!at_end || !previous->start) return kj_place(parser);
  return (kj_location){ previous->location.file, previous->location.line,
                        previous->location.column + (uint32_t)previous->length };
}

/* `//` for a comment is found when the words behind it make no sense. */
static void explain_slashes(kj_parser *parser, kj_location location)
{
  const kj_token *slashes = &parser->slashes;
  if (!slashes->start || slashes->location.line != location.line) return;
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, slashes->location, KJIT_SEVERITY_NOTE,
            KJIT_OK, "`//` divides and rounds down; a comment starts with `#`");
}

void kj_fail_parse(kj_parser *parser, kj_location location, kjit_status status, const char *format,
                   ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(parser->lexer.diagnostics, parser->lexer.sources, location, KJIT_SEVERITY_ERROR,
                 status, format, list);
  va_end(list);
  explain_slashes(parser, location);
  longjmp(*parser->lexer.on_error, KJ_JUMP_ERROR);
}

kj_token kj_expect(kj_parser *parser, kj_token_kind kind, const char *where)
{
  const kj_token_info *info = &kj_token_table[kind];
  const char *quote = kind == KJ_TOKEN_NAME || kind == KJ_TOKEN_STRING ? "" : "`";
  if (!kj_at(parser, kind))
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX, "expected %s%s%s%s%s, found %s",
                  quote, info->text, quote, where ? " " : "", where ? where : "",
                  kj_describe_token(parser));
  kj_advance(parser);
  return parser->previous;
}

void kj_open_bracket(kj_parser *parser, kj_token_kind kind, const char *where)
{
  if (kj_at(parser, kind)) parser->open++;
  kj_expect(parser, kind, where);
}

void kj_close_bracket(kj_parser *parser, kj_token_kind kind, const char *where)
{
  if (kj_at(parser, kind)) parser->open--;
  kj_expect(parser, kind, where);
}

void kj_enter(kj_parser *parser)
{
  if (++parser->nesting > KJ_MAX_NESTING)
    kj_fail_parse(parser, kj_place(parser), KJIT_ERROR_SYNTAX, "nested more than %d levels deep",
                  KJ_MAX_NESTING);
}

/* ---- scopes ---- */

void kj_open_scope(kj_parser *parser) { parser->scope++; }

void kj_close_scope(kj_parser *parser)
{
  while (parser->bindings.count &&
         parser->bindings.items[parser->bindings.count - 1]->scope == parser->scope) {
    const kj_binding *binding = parser->bindings.items[--parser->bindings.count];
    binding->name->value = binding->outer;
  }
  parser->scope--;
}

static void refuse_twice(kj_parser *parser, const char *name, kj_location location,
                         kj_location first, const char *where)
{
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, location, KJIT_SEVERITY_ERROR,
            KJIT_ERROR_NAME, "`%s` is declared twice in %s", name, where);
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, first, KJIT_SEVERITY_NOTE,
            KJIT_ERROR_NAME, "`%s` is first declared here", name);
  longjmp(*parser->lexer.on_error, KJ_JUMP_ERROR);
}

void kj_bind(kj_parser *parser, kj_map_entry *name, kj_decl *decl)
{
  kj_binding *outer = name->value;
  if (outer && outer->scope == parser->scope)
    refuse_twice(parser, decl->name, decl->location, outer->decl->location, "this block");
  kj_binding *binding = KJ_NEW(parser->arena, kj_binding);
  *binding = (kj_binding){ decl, name, outer, parser->scope };
  name->value = binding;
  KJ_PUSH(parser->arena, &parser->bindings, binding);
}

kj_decl *kj_new_decl(kj_parser *parser, kj_decl_kind kind, const kj_token *name)
{
  kj_decl *decl = KJ_NEW(parser->arena, kj_decl);
  decl->kind = kind;
  decl->name = name->name->key;
  decl->location = name->location;
  decl->function = parser->function;
  return decl;
}

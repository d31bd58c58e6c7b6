/* Parser of modules: tokens, scopes, and the search for the next declaration after an error. The
 * parser resolves local names; ki_finish_module resolves the names of the module's declarations. */
#include "ir/parser.h"

#include <string.h>

/* ---- tokens ---- */

void ki_advance(ki_parser *parser)
{
  parser->previous = parser->lexer.token;
  ki_next_token(&parser->lexer);
}

bool ki_accept(ki_parser *parser, ki_token_kind kind)
{
  if (!ki_at(parser, kind)) return false;
  ki_advance(parser);
  return true;
}

bool ki_at_line_end(const ki_parser *parser)
{
  return parser->lexer.token.newline_before && parser->open == 0;
}

const char *ki_describe_token(ki_parser *parser)
{
  const ki_token *token = &parser->lexer.token;
  if (token->kind == KJ_TOKEN_END) return "the end of the text";
  if (ki_at_line_end(parser)) return "the end of the line";
  if (token->kind == KJ_TOKEN_STRING) return "a string";
  if (token->length > 40) return "a long name or number";
  return kj_format(parser->arena, "`%.*s`", (int)token->length, token->start);
}

kj_location ki_found_at(const ki_parser *parser)
{
  const ki_token *previous = &parser->previous;
  bool at_end = ki_at(parser, KJ_TOKEN_END) || ki_at_line_end(parser);
  if (!at_end || !previous->start) return ki_place(parser);
  if (parser->lexer.directed.line) return previous->location;
  return (kj_location){ previous->location.file, previous->location.line,
                        previous->location.column + (uint32_t)previous->length };
}

/* If a `//` precedes the error on the same line, adds a note to the error: kernel IR parses `//` as
 * a division, but the user probably meant a comment. */
static void explain_slashes(ki_parser *parser, kj_location location)
{
  const ki_token *slashes = &parser->slashes;
  if (!slashes->start || slashes->location.line != location.line) return;
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, slashes->location, KJIT_SEVERITY_NOTE,
            KJIT_OK, "`//` divides and rounds down; a comment starts with `#`");
}

void ki_fail_parse(ki_parser *parser, kj_location location, kjit_status status, const char *format,
                   ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(parser->lexer.diagnostics, parser->lexer.sources, location, KJIT_SEVERITY_ERROR,
                 status, format, list);
  va_end(list);
  explain_slashes(parser, location);
  ki_note_text_place(&parser->lexer);
  longjmp(*parser->lexer.on_error, KJ_JUMP_ERROR);
}

ki_token ki_expect(ki_parser *parser, ki_token_kind kind, const char *where)
{
  const ki_token_info *info = &ki_token_table[kind];
  const char *quote = kind == KJ_TOKEN_NAME || kind == KJ_TOKEN_STRING ? "" : "`";
  if (!ki_at(parser, kind))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX, "expected %s%s%s%s%s, found %s",
                  quote, info->text, quote, where ? " " : "", where ? where : "",
                  ki_describe_token(parser));
  ki_advance(parser);
  return parser->previous;
}

void ki_open_bracket(ki_parser *parser, ki_token_kind kind, const char *where)
{
  if (ki_at(parser, kind)) parser->open++;
  ki_expect(parser, kind, where);
}

void ki_close_bracket(ki_parser *parser, ki_token_kind kind, const char *where)
{
  if (ki_at(parser, kind)) parser->open--;
  ki_expect(parser, kind, where);
}

void ki_enter(ki_parser *parser)
{
  if (++parser->nesting > KJ_MAX_NESTING)
    ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX, "the nesting exceeds %d levels",
                  KJ_MAX_NESTING);
}

/* ---- scopes ---- */

void ki_open_scope(ki_parser *parser) { parser->scope++; }

void ki_close_scope(ki_parser *parser)
{
  while (parser->bindings.count &&
         parser->bindings.items[parser->bindings.count - 1]->scope == parser->scope) {
    const ki_binding *binding = parser->bindings.items[--parser->bindings.count];
    binding->name->value = binding->outer;
  }
  parser->scope--;
}

static void refuse_twice(ki_parser *parser, const char *name, kj_location location,
                         kj_location first, const char *where)
{
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, location, KJIT_SEVERITY_ERROR,
            KJIT_ERROR_NAME, "`%s` is declared twice in %s", name, where);
  kj_report(parser->lexer.diagnostics, parser->lexer.sources, first, KJIT_SEVERITY_NOTE,
            KJIT_ERROR_NAME, "`%s` is first declared here", name);
  longjmp(*parser->lexer.on_error, KJ_JUMP_ERROR);
}

void ki_bind(ki_parser *parser, kj_map_entry *name, ki_decl *decl)
{
  ki_binding *outer = name->value;
  if (outer && outer->scope == parser->scope)
    refuse_twice(parser, decl->name, decl->location, outer->decl->location, "this block");
  ki_binding *binding = KJ_NEW(parser->arena, ki_binding);
  *binding = (ki_binding){ decl, name, outer, parser->scope };
  name->value = binding;
  KJ_PUSH(parser->arena, &parser->bindings, binding);
}

ki_decl *ki_new_decl(ki_parser *parser, ki_decl_kind kind, const ki_token *name)
{
  ki_decl *decl = KJ_NEW(parser->arena, ki_decl);
  decl->kind = kind;
  decl->name = name->name->key;
  decl->location = name->location;
  decl->function = parser->function;
  return decl;
}

/* ---- modules ---- */

enum { MAX_ERRORS = 10 };

static bool begins_declaration(const char *at, const char *end)
{
  static const ki_token_kind kinds[] = { KJ_TOKEN_KERNEL, KJ_TOKEN_FUNC,   KJ_TOKEN_CONST,
                                         KJ_TOKEN_STRUCT, KJ_TOKEN_EXTERN, KJ_TOKEN_IMPORT };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t length = strlen(ki_token_table[kinds[i]].text);
    if ((size_t)(end - at) > length && memcmp(at, ki_token_table[kinds[i]].text, length) == 0 &&
        (at[length] == ' ' || at[length] == '\t'))
      return true;
  }
  return false;
}

static bool is_directive_line(const char *at, const char *end)
{
  static const char word[] = "@line(";
  return (size_t)(end - at) >= sizeof word && memcmp(at, word, sizeof word - 1) == 0;
}

/* Recovers from a syntax error: closes the scopes of the broken declaration and continues at the
 * next line that begins a declaration, or at the line directives before it. It searches lines
 * instead of tokens, so that the skipped text causes no further errors. */
static void recover(ki_parser *parser)
{
  while (parser->scope) ki_close_scope(parser);
  parser->function = NULL;
  parser->nesting = parser->open = 0;
  parser->overflow = NULL;
  ki_lexer *lexer = &parser->lexer;
  const char *at = lexer->token.start - (lexer->token.column - 1), *end = lexer->end,
             *directives = NULL;
  uint32_t line = lexer->token.line, directives_line = 0;
  while (at < end && (line <= parser->declaration_line || !begins_declaration(at, end))) {
    bool is_directive = line > lexer->token.line && is_directive_line(at, end);
    if (is_directive && !directives) directives = at, directives_line = line;
    if (!is_directive) directives = NULL;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? newline + 1 : end;
    line++;
  }
  lexer->directed.line = 0;
  if (directives) at = directives, line = directives_line;
  lexer->at = lexer->line_start = at;
  lexer->line = line;
  ki_advance(parser);
}

/* Parses all declarations. Syntax errors jump to this function, which continues on a later line
 * each time. */
static void parse_declarations(ki_parser *parser)
{
  jmp_buf on_error;
  const kj_diagnostics *diagnostics = parser->lexer.diagnostics;
  parser->lexer.on_error = &on_error;
  if (setjmp(on_error) == 0) ki_advance(parser);
  else if (diagnostics->error_count >= MAX_ERRORS) return;
  else recover(parser);
  while (!ki_at(parser, KJ_TOKEN_END)) {
    parser->declaration_line = parser->lexer.token.line;
    ki_parse_declaration(parser);
  }
}

ki_parser *ki_open_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics)
{
  const kj_source *source = &module->sources.items[file];
  ki_parser *parser = KJ_NEW(&module->arena, ki_parser);
  parser->module = module;
  parser->types = module->types;
  parser->arena = &module->arena;
  ki_init_lexer(&parser->lexer, source->text, source->size_bytes, &module->arena, &module->sources,
                diagnostics);
  parser->lexer.file = file;
  parser->lexer.module = module;
  parser->lexer.has_no_locations = module->is_builtin_code;
  for (uint32_t i = 0; i < module->sources.count; i++) {
    const kj_source *named = &module->sources.items[i];
    if (named->is_named)
      kj_get_entry(&parser->lexer.directed_files, named->name, strlen(named->name))->value =
        (void *)(uintptr_t)i;
  }
  for (int i = 0; i < KI_RULE_COUNT; i++)
    if (source->rules & ki_rule_table[i].rule)
      KJ_PUSH(parser->arena, &parser->defaults,
              ((ki_attribute){ .info = &ki_attribute_table[ki_rule_table[i].attribute],
                               .location = { file, 1, 1 } }));
  return parser;
}

void ki_parse_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics)
{
  if (!ki_check_text(&module->sources, file, diagnostics)) return;
  bool is_guest = module->sources.items[file].is_guest;
  size_t first = module->decls.count;
  parse_declarations(ki_open_source(module, file, diagnostics));
  for (size_t i = first; i < module->decls.count; i++) module->decls.items[i]->is_guest = is_guest;
}

void ki_parse_parts(kjit_module *module, uint32_t file, const ki_part *parts, size_t count,
                    kj_diagnostics *diagnostics)
{
  ki_parser *parser = ki_open_source(module, file, diagnostics);
  parser->has_headers = module->partial != NULL;
  for (size_t i = 0; i < count && !diagnostics->error_count; i++) {
    parser->lexer.at = parser->lexer.line_start = parts[i].start;
    parser->lexer.end = parts[i].end;
    parser->lexer.line = parts[i].line;
    parse_declarations(parser);
  }
}

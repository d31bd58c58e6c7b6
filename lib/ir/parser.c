/* Text to module: declarations, parameters, attributes. Local names are resolved here; those of the
 * module by kj_finish_module. */
#include "ir/parser.h"

#include <string.h>

#include "ir/expr.h"
#include "ir/habits.h"

/* What every part of the parser stands on: tokens, errors, and what names mean. */

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

enum { MAX_ERRORS = 10 };

/* ---- attributes ---- */

static kj_attribute parse_attribute(kj_parser *parser)
{
  kj_attribute attribute = { .location = kj_place(parser) };
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, "after `@`");
  attribute.info = kj_find_attribute(name.name->key);
  if (!attribute.info) {
    kj_near near = { .name = name.name->key };
    for (int i = 0; i < KJ_ATTRIBUTE_COUNT; i++) kj_consider(&near, kj_attribute_table[i].name);
    kj_fail_parse(parser, name.location, KJIT_ERROR_NAME, "there is no attribute `@%s`%s%s%s",
                  near.name, near.best ? "; did you mean `@" : "", near.best ? near.best : "",
                  near.best ? "`?" : "");
  }
  if (!kj_at(parser, KJ_TOKEN_LEFT_PAREN)) return attribute;
  kj_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  kj_parse_arguments(parser, &attribute.values);
  return attribute;
}

void kj_parse_attributes(kj_parser *parser, kj_attributes *attributes)
{
  while (kj_at(parser, KJ_TOKEN_AT)) {
    kj_attribute attribute = parse_attribute(parser);
    KJ_PUSH(parser->arena, attributes, attribute);
  }
}

/* ---- parameters ---- */

/* `float *x`, `int n`: the type comes first elsewhere. */
static void refuse_type_first(kj_parser *parser, const kj_token *name)
{
  if (kj_at(parser, KJ_TOKEN_STAR) || kj_at(parser, KJ_TOKEN_NAME))
    kj_fail_parse(parser, name->location, KJIT_ERROR_SYNTAX,
                  "the type of a parameter comes after its name: `x: %s`",
                  kj_at(parser, KJ_TOKEN_STAR) ? "f32[:]" : "f32");
}

static void add_parameter(kj_parser *parser, kj_decl *param);

static void parse_parameter_type(kj_parser *parser, kj_decl *param)
{
  param->is_func = kj_accept(parser, KJ_TOKEN_FUNC);
  if (param->is_func) return;
  param->type_expr = kj_parse_type_expr(parser);
  kj_make_argument_type(parser, param->type_expr);
}

/* Hosts know no tuples: a kernel takes the items, of tuples in it too, one after the other. */
static void split_tuple(kj_parser *parser, kj_decl *tuple)
{
  const kj_type_expr *type = tuple->type_expr;
  const kj_expr *value = tuple->value;
  if (value && (value->kind != KJ_EXPR_TUPLE || value->args.count != type->items.count))
    kj_fail_parse(parser, value->location, KJIT_ERROR_TYPE,
                  "the default of a tuple is a tuple of %zu values", type->items.count);
  for (size_t i = 0; i < type->items.count; i++) {
    kj_decl *item = KJ_NEW(parser->arena, kj_decl);
    *item = (kj_decl){ .kind = KJ_DECL_PARAM,
                       .name = kj_format(parser->arena, "%s[%zu]", tuple->name, i),
                       .location = type->items.items[i]->location,
                       .is_const = tuple->is_const,
                       .function = tuple->function,
                       .type_expr = type->items.items[i],
                       .value = value ? value->args.items[i] : NULL };
    add_parameter(parser, item);
    KJ_PUSH(parser->arena, &tuple->fields, item);
  }
}

static void add_parameter(kj_parser *parser, kj_decl *param)
{
  kj_function *function = parser->function;
  param->index = (uint32_t)function->params.count;
  bool is_split =
    function->is_kernel && param->type_expr && param->type_expr->kind == KJ_TYPE_TUPLE;
  if (is_split) split_tuple(parser, param);
  else KJ_PUSH(parser->arena, &function->params, param);
}

static void parse_parameter(kj_parser *parser)
{
  bool is_const = kj_accept(parser, KJ_TOKEN_CONST);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, is_const ? "after `const`" : "of a parameter");
  refuse_type_first(parser, &name);
  kj_decl *param = kj_new_decl(parser, KJ_DECL_PARAM, &name);
  param->is_const = is_const;
  if (kj_accept(parser, KJ_TOKEN_COLON)) parse_parameter_type(parser, param);
  if (kj_accept(parser, KJ_TOKEN_ASSIGN)) param->value = kj_parse_expr(parser);
  kj_bind(parser, name.name, param);
  add_parameter(parser, param);
}

static void parse_parameters(kj_parser *parser)
{
  kj_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "before the parameters");
  while (!kj_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    parse_parameter(parser);
    if (!kj_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  kj_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the parameters");
}

/* ---- functions ---- */

static void parse_result(kj_parser *parser)
{
  kj_location place = kj_place(parser);
  if (kj_at(parser, KJ_TOKEN_COLON))
    kj_fail_parse(
      parser, place, KJIT_ERROR_SYNTAX,
      "expected `{`, found `:`; blocks stand in braces, a result type is written `-> f32`");
  if (!kj_accept(parser, KJ_TOKEN_ARROW)) return;
  if (parser->function->is_kernel)
    kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "a kernel returns nothing: it writes to its array arguments");
  parser->function->result = kj_parse_type_expr(parser);
  kj_make_argument_type(parser, parser->function->result);
}

static void parse_function(kj_parser *parser, bool is_kernel, bool is_extern)
{
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, is_kernel ? "of the kernel" : "of the function");
  kj_decl *decl = kj_new_decl(parser, KJ_DECL_FUNCTION, &name);
  kj_function *function = KJ_NEW(parser->arena, kj_function);
  decl->function = function;
  function->decl = decl;
  function->is_kernel = is_kernel;
  function->is_extern = is_extern;
  parser->function = function;
  kj_open_scope(parser);
  parse_parameters(parser);
  parse_result(parser);
  if (!is_extern) {
    kj_parse_attributes(parser, &function->attributes);
    kj_parse_block(parser, &function->body);
  }
  kj_close_scope(parser);
  function->local_count = (uint32_t)(function->params.count + function->locals.count);
  parser->function = NULL;
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

/* ---- constants, structs, imports ---- */

static _Noreturn void refuse_tuple(kj_parser *parser, const kj_expr *value)
{
  kj_fail_parse(parser, value->location, KJIT_ERROR_UNSUPPORTED,
                "tuples as constants are not supported; an array of values is `{ 1, 2 }`");
}

/* { ... } nested: a tuple of tuples. Newlines inside mean nothing. */
static kj_expr *parse_aggregate(kj_parser *parser)
{
  kj_expr *aggregate = kj_new_expr(parser->arena, KJ_EXPR_TUPLE, kj_place(parser));
  kj_enter(parser);
  kj_advance(parser);
  do {
    if (kj_at(parser, KJ_TOKEN_RIGHT_BRACE)) break;
    bool is_row = kj_at(parser, KJ_TOKEN_LEFT_BRACE);
    kj_expr *item = is_row ? parse_aggregate(parser) : kj_parse_expr(parser);
    if (item->kind == KJ_EXPR_TUPLE && !is_row) refuse_tuple(parser, item);
    KJ_PUSH(parser->arena, &aggregate->args, item);
  } while (kj_accept(parser, KJ_TOKEN_COMMA));
  kj_expect(parser, KJ_TOKEN_RIGHT_BRACE, "after the values");
  kj_leave(parser);
  kj_measure_expr(aggregate);
  return aggregate;
}

static kj_expr *parse_constant_value(kj_parser *parser)
{
  if (kj_at(parser, KJ_TOKEN_LEFT_BRACE)) {
    parser->open++; /* newlines between the values mean nothing */
    kj_expr *value = parse_aggregate(parser);
    parser->open--;
    return value;
  }
  kj_expr *value = kj_parse_expr(parser);
  if (value->kind == KJ_EXPR_TUPLE) refuse_tuple(parser, value);
  return value;
}

static void parse_constant(kj_parser *parser, bool is_extern)
{
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, "of the constant");
  kj_decl *decl = kj_new_decl(parser, KJ_DECL_CONST, &name);
  decl->is_const = true;
  if (is_extern) kj_expect(parser, KJ_TOKEN_COLON, "and the type of the constant");
  if (is_extern || kj_accept(parser, KJ_TOKEN_COLON)) decl->type_expr = kj_parse_type_expr(parser);
  if (!is_extern) {
    kj_expect(parser, KJ_TOKEN_ASSIGN, "and the value of the constant");
    decl->value = parse_constant_value(parser);
  }
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

static void parse_field(kj_parser *parser, kj_decl *decl)
{
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, "of a field");
  kj_decl *field = kj_new_decl(parser, KJ_DECL_PARAM, &name);
  field->index = (uint32_t)decl->fields.count;
  kj_expect(parser, KJ_TOKEN_COLON, "and the type of the field");
  field->type_expr = kj_parse_type_expr(parser);
  kj_bind(parser, name.name, field);
  KJ_PUSH(parser->arena, &decl->fields, field);
  if (kj_at(parser, KJ_TOKEN_COMMA))
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX,
                  "fields are separated by `;` or a line's end, found `,`");
  kj_end_statement(parser);
}

static void parse_struct(kj_parser *parser)
{
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_NAME, "of the struct");
  kj_decl *decl = kj_new_decl(parser, KJ_DECL_STRUCT, &name);
  kj_parse_attributes(parser, &decl->attributes);
  kj_expect(parser, KJ_TOKEN_LEFT_BRACE, "before the fields");
  kj_open_scope(parser);
  while (!kj_at(parser, KJ_TOKEN_RIGHT_BRACE)) parse_field(parser, decl);
  kj_close_scope(parser);
  kj_advance(parser);
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

static void parse_import(kj_parser *parser)
{
  kj_advance(parser);
  kj_token name = kj_expect(parser, KJ_TOKEN_STRING, "with the name of the file after `import`");
  kj_import import = { name.string, name.location };
  KJ_PUSH(parser->arena, &parser->module->imports, import);
}

static void parse_extern(kj_parser *parser)
{
  kj_advance(parser);
  if (kj_at(parser, KJ_TOKEN_FUNC)) parse_function(parser, false, true);
  else if (kj_at(parser, KJ_TOKEN_CONST)) parse_constant(parser, true);
  else
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `func` or `const` after `extern`, found %s", kj_describe_token(parser));
}

static _Noreturn void refuse_declaration(kj_parser *parser)
{
  kj_location place = kj_place(parser);
  const kj_token *token = &parser->lexer.token;
  const char *sentence = token->kind == KJ_TOKEN_NAME ? kj_explain_word(token->name->key) : NULL;
  if (token->kind == KJ_TOKEN_LET || token->kind == KJ_TOKEN_VAR)
    sentence = "a constant of the module is declared `const NAME = value`";
  if (token->kind == KJ_TOKEN_AT)
    sentence =
      "attributes stand between the parameters and the block: `kernel name(x) @block(256) { }`";
  if (token->kind == KJ_TOKEN_FLOORDIV || token->kind == KJ_TOKEN_SLASH)
    sentence = "a comment starts with `#`";
  if (sentence) kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "%s", sentence);
  kj_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                "expected `kernel`, `func`, `const`, `struct`, `extern` or `import`, found %s",
                kj_describe_token(parser));
}

static void parse_declaration(kj_parser *parser)
{
  switch (KJ_AMONG(parser->lexer.token.kind)) {
  case KJ_TOKEN_KERNEL: parse_function(parser, true, false); break;
  case KJ_TOKEN_FUNC: parse_function(parser, false, false); break;
  case KJ_TOKEN_CONST: parse_constant(parser, false); break;
  case KJ_TOKEN_STRUCT: parse_struct(parser); break;
  case KJ_TOKEN_EXTERN: parse_extern(parser); break;
  case KJ_TOKEN_IMPORT: parse_import(parser); break;
  default: refuse_declaration(parser);
  }
  if (!kj_at(parser, KJ_TOKEN_END) && !kj_accept(parser, KJ_TOKEN_SEMICOLON) &&
      !parser->lexer.token.newline_before)
    kj_fail_parse(parser, kj_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected the end of the line after the declaration, found %s",
                  kj_describe_token(parser));
}

/* ---- modules ---- */

static bool begins_declaration(const char *at, const char *end)
{
  static const kj_token_kind kinds[] = { KJ_TOKEN_KERNEL, KJ_TOKEN_FUNC,   KJ_TOKEN_CONST,
                                         KJ_TOKEN_STRUCT, KJ_TOKEN_EXTERN, KJ_TOKEN_IMPORT };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t length = strlen(kj_token_table[kinds[i]].text);
    if ((size_t)(end - at) > length && memcmp(at, kj_token_table[kinds[i]].text, length) == 0 &&
        (at[length] == ' ' || at[length] == '\t'))
      return true;
  }
  return false;
}

/* After an error: closes what the broken declaration left open and goes on at the next line that
 * begins a declaration. Looks at lines, not tokens, so that what is skipped gives no errors of its
 * own. */
static void recover(kj_parser *parser)
{
  while (parser->scope) kj_close_scope(parser);
  parser->function = NULL;
  parser->nesting = parser->open = 0;
  parser->overflow = NULL;
  kj_lexer *lexer = &parser->lexer;
  const char *at = lexer->token.start - (lexer->token.location.column - 1), *end = lexer->end;
  uint32_t line = lexer->token.location.line;
  while (at < end && (line <= parser->declaration_line || !begins_declaration(at, end))) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? newline + 1 : end;
    line++;
  }
  lexer->at = lexer->line_start = at;
  lexer->line = line;
  kj_advance(parser);
}

/* Errors of the text jump to here. Every round begins on a later line. */
static void parse_declarations(kj_parser *parser)
{
  jmp_buf on_error;
  const kj_diagnostics *diagnostics = parser->lexer.diagnostics;
  parser->lexer.on_error = &on_error;
  if (setjmp(on_error) == 0) kj_advance(parser);
  else if (diagnostics->error_count >= MAX_ERRORS) return;
  else recover(parser);
  while (!kj_at(parser, KJ_TOKEN_END)) {
    parser->declaration_line = kj_place(parser).line;
    parse_declaration(parser);
  }
}

void kj_parse_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics)
{
  if (!kj_check_text(&module->sources, file, diagnostics)) return;
  const kj_source *source = &module->sources.items[file];
  kj_parser *parser = KJ_NEW(&module->arena, kj_parser);
  parser->module = module;
  parser->types = module->types;
  parser->arena = &module->arena;
  kj_init_lexer(&parser->lexer, source->text, source->size_bytes, &module->arena, &module->sources,
                diagnostics);
  parser->lexer.file = file;
  parse_declarations(parser);
}

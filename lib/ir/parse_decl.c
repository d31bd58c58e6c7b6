/* Parser of declarations: kernels, funcs, constants, structs and imports, with their parameters and
 * attributes. */
#include "ir/parser.h"

#include <string.h>

#include "ir/expr.h"
#include "ir/foreign_syntax.h"
#include "ir/near_name.h"

/* ---- attributes ---- */

static ki_attribute parse_attribute(ki_parser *parser)
{
  ki_attribute attribute = { .location = ki_place(parser) };
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, "after `@`");
  attribute.info = ki_find_attribute(name.name->key);
  if (!attribute.info) {
    ki_near near = { .name = name.name->key };
    for (int i = 0; i < KJ_ATTRIBUTE_COUNT; i++) ki_consider(&near, ki_attribute_table[i].name);
    ki_fail_parse(parser, name.location, KJIT_ERROR_NAME, "there is no attribute `@%s`%s%s%s",
                  near.name, near.best ? "; did you mean `@" : "", near.best ? near.best : "",
                  near.best ? "`?" : "");
  }
  if (!ki_at(parser, KJ_TOKEN_LEFT_PAREN)) return attribute;
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  ki_parse_arguments(parser, &attribute.values);
  return attribute;
}

void ki_parse_attributes(ki_parser *parser, ki_attributes *attributes)
{
  while (ki_at(parser, KJ_TOKEN_AT)) {
    ki_attribute attribute = parse_attribute(parser);
    KJ_PUSH(parser->arena, attributes, attribute);
  }
}

/* Adds the default attributes of the source to a kernel or func. Its own attributes take
 * precedence. */
static void add_defaults(ki_parser *parser, ki_attributes *attributes)
{
  for (size_t i = 0; i < parser->defaults.count; i++) {
    const ki_attribute *attribute = &parser->defaults.items[i];
    ki_attribute_id id = (ki_attribute_id)(attribute->info - ki_attribute_table);
    if (!ki_get_attribute(attributes, id)) KJ_PUSH(parser->arena, attributes, *attribute);
  }
}

/* Parses `default @wrap`. The word `default` is not reserved. */
static void parse_defaults(ki_parser *parser)
{
  ki_advance(parser);
  if (!ki_at(parser, KJ_TOKEN_AT))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected an attribute after `default`, as in `default @wrap`, found %s",
                  ki_describe_token(parser));
  size_t first = parser->defaults.count;
  ki_parse_attributes(parser, &parser->defaults);
  for (size_t i = first; i < parser->defaults.count; i++) {
    const ki_attribute *attribute = &parser->defaults.items[i];
    const unsigned places = KJ_PLACE_KERNEL | KJ_PLACE_FUNC;
    if ((attribute->info->places & places) != places || attribute->values.count)
      ki_fail_parse(
        parser, attribute->location, KJIT_ERROR_SYNTAX,
        "`@%s` cannot be a default, because it does not apply to every kernel and function",
        attribute->info->name);
  }
}

/* ---- parameters ---- */

/* Rejects parameters in C syntax: `float *x`, `int n`. */
static void refuse_type_first(ki_parser *parser, const ki_token *name)
{
  if (ki_at(parser, KJ_TOKEN_STAR) || ki_at(parser, KJ_TOKEN_NAME))
    ki_fail_parse(parser, name->location, KJIT_ERROR_SYNTAX,
                  "write the type of a parameter after its name: `x: %s`",
                  ki_at(parser, KJ_TOKEN_STAR) ? "f32[:]" : "f32");
}

static void add_parameter(ki_parser *parser, ki_decl *param);

/* Accepts the word `type`, which is not reserved, as a parameter's type. */
static bool accept_type_word(ki_parser *parser)
{
  if (!ki_at(parser, KJ_TOKEN_NAME) || strcmp(parser->lexer.token.name->key, KJ_TYPE_WORD) != 0)
    return false;
  ki_advance(parser);
  return true;
}

static void parse_parameter_type(ki_parser *parser, ki_decl *param)
{
  kj_location place = ki_place(parser);
  param->is_func = ki_accept(parser, KJ_TOKEN_FUNC);
  param->is_type = !param->is_func && accept_type_word(parser);
  if (param->is_type && param->is_const)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "omit `const`: a type parameter `%s: type` is always known at compile time",
                  param->name);
  if (param->is_func || param->is_type) return;
  parser->takes_any = parser->function->is_kernel;
  param->type_expr = ki_parse_type_expr(parser);
  parser->takes_any = false;
  ki_make_argument_type(parser, param->type_expr);
}

/* Records one character of the shape of the parameters (ki_function.shape), for callers that pass
 * tuples. */
static void note_shape(ki_parser *parser, char sign)
{
  if (parser->function->is_kernel) KJ_PUSH(parser->arena, &parser->function->shape, sign);
}

static bool is_tuple_of_kernel(const ki_parser *parser, const ki_decl *param)
{
  return parser->function->is_kernel && param->type_expr && param->type_expr->kind == KJ_TYPE_TUPLE;
}

/* Replaces a tuple parameter of a kernel by its items, in order. Nested tuples are split as
 * well. */
static void split_tuple(ki_parser *parser, ki_decl *tuple)
{
  const ki_type_expr *type = tuple->type_expr;
  const ki_expr *value = tuple->value;
  parser->function->has_tuples = tuple->is_split = true;
  note_shape(parser, KI_SHAPE_OPEN);
  if (value && (value->kind != KJ_EXPR_TUPLE || value->args.count != type->items.count))
    ki_fail_parse(parser, value->location, KJIT_ERROR_TYPE,
                  "the default of a tuple parameter must be a tuple with %zu values",
                  type->items.count);
  for (size_t i = 0; i < type->items.count; i++) {
    ki_decl *item = KJ_NEW(parser->arena, ki_decl);
    *item = (ki_decl){ .kind = KJ_DECL_PARAM,
                       .name = kj_format(parser->arena, "%s[%zu]", tuple->name, i),
                       .location = type->items.items[i]->location,
                       .is_const = tuple->is_const,
                       .function = tuple->function,
                       .type_expr = ki_is_any(type->items.items[i]) ? NULL : type->items.items[i],
                       .value = value ? value->args.items[i] : NULL };
    add_parameter(parser, item);
    KJ_PUSH(parser->arena, &tuple->fields, item);
  }
  note_shape(parser, KI_SHAPE_CLOSE);
}

static void add_parameter(ki_parser *parser, ki_decl *param)
{
  ki_function *function = parser->function;
  param->index = (uint32_t)function->params.count;
  if (is_tuple_of_kernel(parser, param)) {
    split_tuple(parser, param);
    return;
  }
  note_shape(parser, KI_SHAPE_ARGUMENT);
  KJ_PUSH(parser->arena, &function->params, param);
}

static void parse_parameter(ki_parser *parser)
{
  bool is_const = ki_accept(parser, KJ_TOKEN_CONST);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, is_const ? "after `const`" : "of a parameter");
  refuse_type_first(parser, &name);
  ki_decl *param = ki_new_decl(parser, KJ_DECL_PARAM, &name);
  param->is_const = is_const;
  if (ki_accept(parser, KJ_TOKEN_COLON)) parse_parameter_type(parser, param);
  if (ki_accept(parser, KJ_TOKEN_ASSIGN)) param->value = ki_parse_expr(parser);
  ki_bind(parser, name.name, param);
  if (is_tuple_of_kernel(parser, param)) KJ_PUSH(parser->arena, &parser->function->tuples, param);
  add_parameter(parser, param);
}

static void parse_parameters(ki_parser *parser)
{
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, "before the parameters");
  while (!ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    parse_parameter(parser);
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the parameters");
}

/* ---- functions ---- */

static void parse_result(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  if (ki_at(parser, KJ_TOKEN_COLON))
    ki_fail_parse(
      parser, place, KJIT_ERROR_SYNTAX,
      "expected `{`, found `:`; write the body in braces, and a result type as `-> f32`");
  if (!ki_accept(parser, KJ_TOKEN_ARROW)) return;
  if (parser->function->is_kernel)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "a kernel cannot return a value; it writes its results to array arguments");
  parser->function->result = ki_parse_type_expr(parser);
  ki_make_argument_type(parser, parser->function->result);
}

static void parse_function(ki_parser *parser, bool is_kernel, bool is_extern)
{
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, is_kernel ? "of the kernel" : "of the function");
  ki_decl *decl = ki_new_decl(parser, KJ_DECL_FUNCTION, &name);
  ki_function *function = KJ_NEW(parser->arena, ki_function);
  decl->function = function;
  function->decl = decl;
  function->is_kernel = is_kernel;
  function->is_extern = is_extern;
  parser->function = function;
  ki_open_scope(parser);
  parse_parameters(parser);
  parse_result(parser);
  if (!is_extern) {
    ki_parse_attributes(parser, &function->attributes);
    add_defaults(parser, &function->attributes);
    function->is_header = parser->has_headers && ki_at(parser, KJ_TOKEN_END);
    if (!function->is_header) ki_parse_block(parser, &function->body);
  }
  ki_close_scope(parser);
  function->local_count = (uint32_t)(function->params.count + function->locals.count);
  parser->function = NULL;
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

/* ---- constants, structs, imports ---- */

/* Parses nested `{ ... }`, in which newlines are ignored. */
static ki_expr *parse_aggregate(ki_parser *parser)
{
  ki_expr *aggregate = ki_new_expr(parser->arena, KJ_EXPR_AGGREGATE, ki_place(parser));
  ki_enter(parser);
  ki_advance(parser);
  do {
    if (ki_at(parser, KJ_TOKEN_RIGHT_BRACE)) break;
    ki_expr *item =
      ki_at(parser, KJ_TOKEN_LEFT_BRACE) ? parse_aggregate(parser) : ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &aggregate->args, item);
  } while (ki_accept(parser, KJ_TOKEN_COMMA));
  ki_expect(parser, KJ_TOKEN_RIGHT_BRACE, "after the values");
  ki_leave(parser);
  ki_measure_expr(aggregate);
  return aggregate;
}

static ki_expr *parse_constant_value(ki_parser *parser)
{
  if (!ki_at(parser, KJ_TOKEN_LEFT_BRACE)) return ki_parse_expr(parser);
  parser->open++; /* newlines between the values are ignored */
  ki_expr *value = parse_aggregate(parser);
  parser->open--;
  return value;
}

static void parse_constant(ki_parser *parser, bool is_extern)
{
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, "of the constant");
  ki_decl *decl = ki_new_decl(parser, KJ_DECL_CONST, &name);
  decl->is_const = true;
  if (is_extern) ki_expect(parser, KJ_TOKEN_COLON, "and the type of the constant");
  if (is_extern || ki_accept(parser, KJ_TOKEN_COLON)) decl->type_expr = ki_parse_type_expr(parser);
  if (!is_extern) {
    ki_expect(parser, KJ_TOKEN_ASSIGN, "and the value of the constant");
    decl->value = parse_constant_value(parser);
  }
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

static void parse_field(ki_parser *parser, ki_decl *decl)
{
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, "of a field");
  ki_decl *field = ki_new_decl(parser, KJ_DECL_PARAM, &name);
  field->index = (uint32_t)decl->fields.count;
  ki_expect(parser, KJ_TOKEN_COLON, "and the type of the field");
  field->type_expr = ki_parse_type_expr(parser);
  ki_bind(parser, name.name, field);
  KJ_PUSH(parser->arena, &decl->fields, field);
  if (ki_at(parser, KJ_TOKEN_COMMA))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "separate fields with `;` or a new line, not with `,`");
  ki_end_statement(parser);
}

static void parse_struct(ki_parser *parser)
{
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_NAME, "of the struct");
  if (strcmp(name.name->key, KJ_TYPE_WORD) == 0)
    ki_fail_parse(
      parser, name.location, KJIT_ERROR_NAME,
      "a struct cannot have the name `type`, because `x: type` declares a type parameter");
  ki_decl *decl = ki_new_decl(parser, KJ_DECL_STRUCT, &name);
  ki_parse_attributes(parser, &decl->attributes);
  ki_expect(parser, KJ_TOKEN_LEFT_BRACE, "before the fields");
  ki_open_scope(parser);
  while (!ki_at(parser, KJ_TOKEN_RIGHT_BRACE)) parse_field(parser, decl);
  ki_close_scope(parser);
  ki_advance(parser);
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

static void parse_import(ki_parser *parser)
{
  ki_advance(parser);
  ki_token name = ki_expect(parser, KJ_TOKEN_STRING, "with the name of the file after `import`");
  ki_import import = { name.string, name.location, parser->lexer.file };
  KJ_PUSH(parser->arena, &parser->module->imports, import);
}

static void parse_extern(ki_parser *parser)
{
  ki_advance(parser);
  if (ki_at(parser, KJ_TOKEN_FUNC)) parse_function(parser, false, true);
  else if (ki_at(parser, KJ_TOKEN_CONST)) parse_constant(parser, true);
  else
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `func` or `const` after `extern`, found %s", ki_describe_token(parser));
}

static _Noreturn void refuse_declaration(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  const ki_token *token = &parser->lexer.token;
  const char *sentence = token->kind == KJ_TOKEN_NAME ? ki_explain_word(token->name->key) : NULL;
  if (token->kind == KJ_TOKEN_LET || token->kind == KJ_TOKEN_VAR)
    sentence = "a constant of the module is declared `const NAME = value`";
  if (token->kind == KJ_TOKEN_AT)
    sentence =
      "attributes stand between the parameters and the block: `kernel name(x) @block(256) { }`";
  if (token->kind == KJ_TOKEN_FLOORDIV || token->kind == KJ_TOKEN_SLASH)
    sentence = "a comment starts with `#`";
  if (sentence) ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "%s", sentence);
  ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                "expected `kernel`, `func`, `const`, `struct`, `extern` or `import`, found %s",
                ki_describe_token(parser));
}

void ki_parse_declaration(ki_parser *parser)
{
  switch (KJ_AMONG(parser->lexer.token.kind)) {
  case KJ_TOKEN_KERNEL: parse_function(parser, true, false); break;
  case KJ_TOKEN_FUNC: parse_function(parser, false, false); break;
  case KJ_TOKEN_CONST: parse_constant(parser, false); break;
  case KJ_TOKEN_STRUCT: parse_struct(parser); break;
  case KJ_TOKEN_EXTERN: parse_extern(parser); break;
  case KJ_TOKEN_IMPORT: parse_import(parser); break;
  case KJ_TOKEN_NAME:
    if (strcmp(parser->lexer.token.name->key, "default") != 0) refuse_declaration(parser);
    parse_defaults(parser);
    break;
  default: refuse_declaration(parser);
  }
  if (!ki_at(parser, KJ_TOKEN_END) && !ki_accept(parser, KJ_TOKEN_SEMICOLON) &&
      !parser->lexer.token.newline_before)
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected the end of the line after the declaration, found %s",
                  ki_describe_token(parser));
}

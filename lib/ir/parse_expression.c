/* kjit_parse_expression: creates a func from a text that is a single expression. The func itself is
 * built as a tree; the parser reads the text, up to its end, as an expression. The text is never
 * concatenated with other source text. */
#include <string.h>

#include "ir/context.h"
#include "ir/expr.h"
#include "ir/parser.h"

enum { MOST_PARAMETERS = 255, USUAL_TEXT_BYTES = 65536 };
static const char usual_name[] = "expression";

/* ---- parsing ---- */

static void add_parameters(ki_parser *parser, const ki_expression *expression)
{
  ki_function *function = parser->function;
  for (size_t i = 0; i < expression->count; i++) {
    const char *name = expression->names[i];
    kj_map_entry *entry = kj_get_entry(&parser->lexer.names, name, strlen(name));
    const kjit_type type = expression->types ? expression->types[i] : KJIT_ANY;
    ki_decl *param = KJ_NEW(parser->arena, ki_decl);
    *param = (ki_decl){
      .kind = KJ_DECL_PARAM, .name = entry->key, .index = (uint32_t)i, .function = function
    };
    if (type != KJIT_ANY)
      param->type_expr = ki_spell_type(parser->arena, parser->types, type, (kj_location){ 0 });
    ki_bind(parser, entry, param);
    KJ_PUSH(parser->arena, &function->params, param);
  }
}

static void parse_body(ki_parser *parser)
{
  ki_stmt *result = KJ_NEW(parser->arena, ki_stmt);
  result->kind = KJ_STMT_RETURN;
  parser->open = 1; /* newlines are ignored */
  ki_advance(parser);
  result->location = ki_place(parser);
  if (ki_at(parser, KJ_TOKEN_END))
    ki_fail_parse(parser, (kj_location){ parser->lexer.file, 1, 1 }, KJIT_ERROR_SYNTAX,
                  "expected an expression, found nothing");
  result->value = ki_parse_expr(parser);
  if (!ki_at(parser, KJ_TOKEN_END))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected the end of the expression, found %s", ki_describe_token(parser));
  KJ_PUSH(parser->arena, &parser->function->body, result);
}

static void make_function(ki_parser *parser, const ki_expression *expression)
{
  ki_function *function = KJ_NEW(parser->arena, ki_function);
  ki_decl *decl = KJ_NEW(parser->arena, ki_decl);
  const char *name = expression->function;
  *decl = (ki_decl){ .kind = KJ_DECL_FUNCTION,
                     .name = kj_get_entry(&parser->lexer.names, name, strlen(name))->key,
                     .location = { parser->lexer.file, 1, 1 },
                     .is_guest = parser->module->sources.items[parser->lexer.file].is_guest,
                     .function = function };
  *function = (ki_function){ .decl = decl, .is_expression = true };
  parser->function = function;
  ki_open_scope(parser);
  add_parameters(parser, expression);
  parse_body(parser);
  ki_close_scope(parser);
  function->local_count = (uint32_t)(function->params.count + function->locals.count);
  parser->function = NULL;
  KJ_PUSH(parser->arena, &parser->module->decls, decl);
}

void ki_parse_expression(kjit_module *module, uint32_t file, const ki_expression *expression,
                         kj_diagnostics *diagnostics)
{
  jmp_buf on_error;
  if (!ki_check_text(&module->sources, file, diagnostics)) return;
  ki_parser *parser = ki_open_source(module, file, diagnostics);
  parser->lexer.is_expression = true;
  parser->lexer.is_formula = expression->is_formula;
  parser->lexer.on_error = &on_error;
  if (setjmp(on_error) == 0) make_function(parser, expression);
}

/* ---- the public function ---- */

static kjit_status refuse(kjit_context *context, const char *field, const char *name,
                          const char *what)
{
  return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_expression_options.%s: `%s` %s", field,
                      name ? name : "NULL", what);
}

static kjit_status check_parameter(kjit_context *context, const kjit_expression_options *options,
                                   uint32_t index)
{
  const char *name = options->parameters[index];
  if (!name || !ki_is_name(name)) return refuse(context, "parameters", name, "is not a valid name");
  for (uint32_t i = 0; i < index; i++)
    if (!strcmp(options->parameters[i], name))
      return refuse(context, "parameters", name, "occurs twice");
  const kjit_type type = options->types ? options->types[index] : KJIT_ANY;
  if (type == KJIT_ANY) return KJIT_OK;
  if (!ki_has_type(context->types, type) || !ki_is_argument_type(ki_type(context->types, type)))
    return refuse(context, "types", name, "has a type that a parameter cannot have");
  return KJIT_OK;
}

static bool means_built_in(const char *name)
{
  return ki_find_builtin(name) || ki_is_type_name(name, strlen(name));
}

static kjit_status check_options(kjit_context *context, const kjit_expression_options *options)
{
  if (!ki_is_trust(options->trust))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_expression_options.trust: %d is not a value of kjit_trust",
                        (int)options->trust);
  if (options->reserved)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_expression_options.reserved must be 0");
  if (options->function_name && !ki_is_name(options->function_name))
    return refuse(context, "function_name", options->function_name, "is not a valid name");
  if (options->function_name && means_built_in(options->function_name))
    return refuse(context, "function_name", options->function_name,
                  "is the name of a built-in or type, which the function would hide");
  if (options->parameter_count > MOST_PARAMETERS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_expression_options.parameter_count is %u; the maximum is %d",
                        options->parameter_count, MOST_PARAMETERS);
  if (options->parameter_count && !options->parameters)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_expression_options.parameters is NULL");
  for (uint32_t i = 0; i < options->parameter_count; i++)
    KJ_TRY(check_parameter(context, options, i));
  return KJIT_OK;
}

kjit_status kjit_parse_expression(kjit_context *context, const kjit_expression_options *options,
                                  const char *text, size_t size_bytes, kjit_module **module,
                                  kjit_function **function)
{
  static const char call[] = "kjit_parse_expression";
  kjit_expression_options given;
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!module || !function || !text)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", call,
                        !text     ? "text"
                        : !module ? "module"
                                  : "function");
  KJ_TRY(ki_read_sized(context, call, KI_EXPRESSION_OPTIONS, options, &given));
  KJ_TRY(check_options(context, &given));
  uint64_t most_bytes = given.text_limit_bytes ? given.text_limit_bytes : USUAL_TEXT_BYTES;
  if (size_bytes > most_bytes)
    return ki_fail_call(context, KJIT_ERROR_LIMIT,
                        "the expression has %zu bytes; text_limit_bytes allows %llu", size_bytes,
                        (unsigned long long)most_bytes);
  const ki_expression expression = { .function =
                                       given.function_name ? given.function_name : usual_name,
                                     .names = given.parameters,
                                     .types = given.types,
                                     .count = given.parameter_count };
  const ki_text source = { .name = given.name ? given.name : usual_name,
                           .text = text,
                           .size_bytes = size_bytes,
                           .is_guest = ki_is_guest(given.trust, true),
                           .expression = &expression };
  kj_diagnostics diagnostics = { 0 };
  kjit_module *parsed = NULL;
  ki_parse_module(context, context->types, &source, &diagnostics, &parsed);
  kjit_status status = ki_finish_call(context, &diagnostics);
  if (status != KJIT_OK) return status;
  status = kjit_get_function(parsed, expression.function, function);
  KJ_ASSERT(status == KJIT_OK);
  *module = parsed;
  return status;
}

/* Parser of the types in a source, and of strings that consist of a single type, such as a
 * signature's types. */
#include <string.h>

#include "ir/expr.h"
#include "ir/foreign_syntax.h"
#include "ir/parser.h"

static ki_type_expr *new_type(ki_parser *parser, ki_type_expr_kind kind, kj_location location)
{
  ki_type_expr *type = KJ_NEW(parser->arena, ki_type_expr);
  type->kind = kind;
  type->location = location;
  return type;
}

/* ---- bases ---- */

/* Parses `_`. Returns NULL if another token follows. */
static ki_type_expr *accept_any(ki_parser *parser)
{
  if (!parser->takes_any || !ki_at(parser, KJ_TOKEN_NAME) ||
      strcmp(parser->lexer.token.name->key, "_") != 0)
    return NULL;
  ki_type_expr *any = new_type(parser, KJ_TYPE_FIXED, ki_place(parser));
  any->type = KJIT_ANY;
  ki_advance(parser);
  return any;
}

static ki_type_expr *parse_tuple(ki_parser *parser)
{
  ki_type_expr *tuple = new_type(parser, KJ_TYPE_TUPLE, ki_place(parser));
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  while (!ki_at(parser, KJ_TOKEN_RIGHT_PAREN)) {
    ki_type_expr *any = accept_any(parser);
    ki_type_expr *item = any ? any : ki_parse_type_expr(parser);
    KJ_PUSH(parser->arena, &tuple->items, item);
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the types of a tuple");
  return tuple;
}

static ki_type_expr *parse_dtype(ki_parser *parser, kj_location place)
{
  if (!parser->module)
    ki_fail_parse(
      parser, place, KJIT_ERROR_SYNTAX,
      "`dtype` names the type of a parameter, but there are no parameters here: write the type");
  ki_type_expr *type = new_type(parser, KJ_TYPE_DTYPE, place);
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  type->expr = ki_parse_expr(parser);
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the operand of `dtype`");
  return type;
}

static ki_type_expr *parse_vector(ki_parser *parser, kj_location place)
{
  ki_type_expr *type = new_type(parser, KJ_TYPE_VECTOR, place);
  ki_open_bracket(parser, KJ_TOKEN_LEFT_PAREN, NULL);
  type->element = ki_parse_type_expr(parser);
  ki_expect(parser, KJ_TOKEN_COMMA, "before the number of lanes");
  ki_expr *lanes = ki_parse_expr(parser);
  KJ_PUSH(parser->arena, &type->extents, lanes);
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_PAREN, "after the number of lanes");
  return type;
}

static ki_type_expr *parse_base(ki_parser *parser)
{
  if (ki_at(parser, KJ_TOKEN_LEFT_PAREN)) return parse_tuple(parser);
  kj_location place = ki_place(parser);
  if (ki_at(parser, KJ_TOKEN_FUNC))
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "only a parameter can be a `func`");
  if (!ki_at(parser, KJ_TOKEN_NAME))
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX, "expected a type, found %s",
                  ki_describe_token(parser));
  const char *name = parser->lexer.token.name->key;
  const ki_binding *binding = parser->lexer.token.name->value;
  size_t length = parser->lexer.token.length;
  ki_advance(parser);
  if (parser->module && binding && binding->decl->is_type) {
    ki_type_expr *parameter = new_type(parser, KJ_TYPE_PARAMETER, place);
    parameter->decl = binding->decl;
    return parameter;
  }
  if (strcmp(name, "dtype") == 0 && ki_at(parser, KJ_TOKEN_LEFT_PAREN))
    return parse_dtype(parser, place);
  if (strcmp(name, "vector") == 0 && ki_at(parser, KJ_TOKEN_LEFT_PAREN))
    return parse_vector(parser, place);
  kjit_type known;
  if (!ki_find_type(parser->types, name, length, &known))
    longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
  ki_type_expr *type = new_type(parser, known == KJIT_ANY ? KJ_TYPE_NAMED : KJ_TYPE_FIXED, place);
  type->type = known;
  type->name = known == KJIT_ANY ? name : NULL;
  return type;
}

/* ---- suffixes ---- */

static ki_type_expr *make_array(ki_parser *parser, ki_type_expr *element, uint32_t rank,
                                kjit_layout layout)
{
  if (element->kind == KJ_TYPE_ARRAY || element->kind == KJ_TYPE_STATIC_ARRAY ||
      (element->kind == KJ_TYPE_FIXED &&
       ki_type(parser->types, element->type)->class_ == KJ_CLASS_ARRAY))
    ki_fail_parse(
      parser, element->location, KJIT_ERROR_UNSUPPORTED,
      "arrays of arrays are not supported; write a two-dimensional array as `f32[:, :]`");
  ki_type_expr *array =
    new_type(parser, element->kind == KJ_TYPE_FIXED ? KJ_TYPE_FIXED : KJ_TYPE_ARRAY,
             element->location);
  array->rank = rank;
  array->layout = layout;
  if (element->kind != KJ_TYPE_FIXED) array->element = element;
  else array->type = element->type;
  return array;
}

/* Interns an array's type. Must be called after the rest of the type is parsed, because the array
 * type also depends on a preceding `const`. */
static void fix_array(ki_parser *parser, ki_type_expr *array)
{
  array->type =
    ki_array_type(parser->types, array->type, array->rank, array->layout, array->read_only);
  if (array->type == KJIT_ANY) longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
}

/* Returns the layout, given the dimension that `::1` marks (counted from 1): marking the last
 * dimension means C, and the first F. 0 means that no dimension is marked. */
static kjit_layout find_layout(ki_parser *parser, kj_location place, uint32_t rank, uint32_t marked)
{
  if (marked == 0) return KJIT_LAYOUT_STRIDED;
  if (marked == rank) return KJIT_LAYOUT_C;
  if (marked == 1) return KJIT_LAYOUT_F;
  ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                "`::1` marks the last dimension (row-major) or the first (column-major)");
}

/* Parses `:` or `::1`. Returns whether it is `::1`. */
static bool parse_dimension(ki_parser *parser)
{
  if (!ki_accept(parser, KJ_TOKEN_COLON))
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX,
                  "expected `:` for every dimension, found %s", ki_describe_token(parser));
  if (!ki_accept(parser, KJ_TOKEN_COLON)) return false;
  if (!ki_at(parser, KJ_TOKEN_INT) || parser->lexer.token.integer != 1)
    ki_fail_parse(parser, ki_found_at(parser), KJIT_ERROR_SYNTAX, "expected `::1`, found %s",
                  ki_describe_token(parser));
  ki_advance(parser);
  return true;
}

static bool accept_layout(ki_parser *parser, const char *letter)
{
  if (!ki_at(parser, KJ_TOKEN_NAME) || ki_at_line_end(parser) ||
      strcmp(parser->lexer.token.name->key, letter) != 0)
    return false;
  ki_advance(parser);
  return true;
}

static ki_type_expr *parse_dimensions(ki_parser *parser, ki_type_expr *element)
{
  kj_location place = ki_place(parser);
  uint32_t rank = 0, marked = 0;
  do {
    rank++;
    if (!parse_dimension(parser)) continue;
    if (marked)
      ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                    "only one dimension can be marked with `::1`");
    marked = rank;
  } while (ki_accept(parser, KJ_TOKEN_COMMA));
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_BRACKET, "after the dimensions");
  if (rank > KJ_MAX_RANK)
    ki_fail_parse(parser, place, KJIT_ERROR_UNSUPPORTED,
                  "an array has at most %d dimensions, this one has %u", KJ_MAX_RANK, rank);
  kjit_layout layout = find_layout(parser, place, rank, marked);
  if (!marked)
    layout = accept_layout(parser, "C")   ? KJIT_LAYOUT_C
             : accept_layout(parser, "F") ? KJIT_LAYOUT_F
                                          : layout;
  return make_array(parser, element, rank, layout);
}

static ki_type_expr *parse_extents(ki_parser *parser, ki_type_expr *element)
{
  ki_type_expr *array = new_type(parser, KJ_TYPE_STATIC_ARRAY, element->location);
  array->element = element;
  while (!ki_at(parser, KJ_TOKEN_RIGHT_BRACKET)) {
    if (!parser->module)
      ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                    "an argument type has no extents: expected `:` for each dimension");
    ki_expr *extent = ki_parse_expr(parser);
    KJ_PUSH(parser->arena, &array->extents, extent);
    if (!ki_accept(parser, KJ_TOKEN_COMMA)) break;
  }
  ki_close_bracket(parser, KJ_TOKEN_RIGHT_BRACKET, "after the extents");
  if (array->extents.count > KJ_MAX_RANK)
    ki_fail_parse(parser, array->location, KJIT_ERROR_UNSUPPORTED,
                  "an array has at most %d dimensions, this one has %zu", KJ_MAX_RANK,
                  array->extents.count);
  return array;
}

static ki_type_expr *parse_brackets(ki_parser *parser, ki_type_expr *element)
{
  ki_open_bracket(parser, KJ_TOKEN_LEFT_BRACKET, NULL);
  return ki_at(parser, KJ_TOKEN_COLON) ? parse_dimensions(parser, element)
                                       : parse_extents(parser, element);
}

static ki_type_expr *parse_pointer(ki_parser *parser, ki_type_expr *element)
{
  ki_type_expr *pointer = new_type(parser, KJ_TYPE_POINTER, element->location);
  pointer->element = element;
  bool is_twice = ki_at(parser, KJ_TOKEN_POWER); /* the lexer reads `**` as one token */
  ki_advance(parser);
  if (!is_twice) return pointer;
  ki_type_expr *outer = new_type(parser, KJ_TYPE_POINTER, element->location);
  outer->element = pointer;
  return outer;
}

/* Interns the type of a fixed array that is the element type of another type. The outermost array
 * is interned later, when the parser knows whether it is `const`. */
static void fix_element(ki_parser *parser, ki_type_expr *type)
{
  if (type->kind == KJ_TYPE_FIXED && type->rank) fix_array(parser, type);
}

static void refuse_height(ki_parser *parser, const ki_type_expr *type)
{
  if (ki_measure_type(type) > KJ_MAX_NESTING)
    ki_fail_parse(parser, type->location, KJIT_ERROR_SYNTAX,
                  "a type can have at most %d levels of nesting", KJ_MAX_NESTING);
}

static ki_type_expr *parse_suffixes(ki_parser *parser)
{
  ki_type_expr *type = parse_base(parser);
  for (uint32_t count = 0; !ki_at_line_end(parser); count++) {
    bool is_pointer = ki_at(parser, KJ_TOKEN_STAR) || ki_at(parser, KJ_TOKEN_POWER);
    if (!is_pointer && !ki_at(parser, KJ_TOKEN_LEFT_BRACKET)) break;
    if (count == KJ_MAX_NESTING)
      ki_fail_parse(parser, type->location, KJIT_ERROR_SYNTAX,
                    "a type can have at most %d levels of nesting", KJ_MAX_NESTING);
    fix_element(parser, type);
    type = is_pointer ? parse_pointer(parser, type) : parse_brackets(parser, type);
  }
  refuse_height(parser, type);
  return type;
}

ki_type_expr *ki_parse_type_expr(ki_parser *parser)
{
  kj_location place = ki_place(parser);
  ki_enter(parser);
  bool read_only = ki_accept(parser, KJ_TOKEN_CONST);
  ki_type_expr *type = parse_suffixes(parser);
  bool is_reference = type->kind == KJ_TYPE_ARRAY || type->kind == KJ_TYPE_STATIC_ARRAY ||
                      type->kind == KJ_TYPE_POINTER || (type->kind == KJ_TYPE_FIXED && type->rank);
  if (read_only && !is_reference)
    ki_fail_parse(parser, place, KJIT_ERROR_SYNTAX,
                  "`const` before a type is only for arrays: `const f32[:]`");
  type->read_only = read_only;
  fix_element(parser, type);
  ki_leave(parser);
  return type;
}

void ki_make_argument_type(ki_parser *parser, ki_type_expr *type)
{
  if (type->kind != KJ_TYPE_STATIC_ARRAY || type->extents.count) return;
  ki_type_expr *array = make_array(parser, type->element, 0, KJIT_LAYOUT_C);
  array->read_only = type->read_only;
  if (array->kind == KJ_TYPE_FIXED) fix_array(parser, array);
  *type = *array;
}

/* ---- a type annotation alone ---- */

/* A parser for a single type. Names of structs refer to the structs of scope, which can be NULL. */
typedef struct type_reader {
  ki_parser parser;
  const kjit_module *scope;
} type_reader;

/* Like ki_find_struct, but searches a module's structs. After linking, a module can have several
 * structs with the same name. */
static kjit_type find_declared(const kjit_module *scope, const char *name, bool of_library,
                               bool *is_ambiguous)
{
  kjit_type found = KJIT_ANY;
  *is_ambiguous = false;
  for (size_t i = 0; scope && i < scope->decls.count; i++) {
    const ki_decl *decl = scope->decls.items[i];
    if (decl->kind != KJ_DECL_STRUCT || ki_is_library_decl(scope, decl) != of_library ||
        strcmp(decl->name, name) != 0)
      continue;
    *is_ambiguous |= found != KJIT_ANY && found != decl->struct_type;
    found = decl->struct_type;
  }
  return found;
}

/* Finds a struct by name: first among the module's structs, then among all structs of this context,
 * which other modules and kjit_create_struct have created. */
static kjit_type find_struct(type_reader *r, const ki_type_expr *type)
{
  ki_parser *parser = &r->parser;
  bool is_ambiguous;
  kjit_type found = find_declared(r->scope, type->name, false, &is_ambiguous);
  if (found == KJIT_ANY) found = find_declared(r->scope, type->name, true, &is_ambiguous);
  if (found != KJIT_ANY && is_ambiguous)
    ki_fail_parse(
      parser, type->location, KJIT_ERROR_NAME,
      "the module has several structs `%s` with different fields, so the name is ambiguous",
      type->name);
  if (found != KJIT_ANY) return found;
  found = ki_find_struct(parser->types, type->name, &is_ambiguous);
  if (found == KJIT_ANY) ki_fail_unknown_type(&parser->lexer, type);
  if (is_ambiguous)
    ki_fail_parse(parser, type->location, KJIT_ERROR_NAME,
                  "the context has several structs `%s` with different fields%s; get one of them "
                  "with kjit_get_struct or kjit_get_struct_type",
                  type->name, r->scope ? ", and the module declares no such struct" : "");
  return found;
}

static kjit_type find_type(type_reader *r, ki_type_expr *type)
{
  ki_parser *parser = &r->parser;
  kjit_type made;
  ki_make_argument_type(parser, type);
  if (type->kind == KJ_TYPE_FIXED) return type->type;
  if (type->kind == KJ_TYPE_NAMED) return find_struct(r, type);
  if (type->kind == KJ_TYPE_VECTOR) {
    const ki_expr *lanes = type->extents.items[0];
    kjit_type element = find_type(r, type->element);
    if (lanes->kind != KJ_EXPR_INT || !ki_has_vectors(parser->types, element, lanes->integer))
      ki_fail_parse(parser, type->location, KJIT_ERROR_TYPE, "%s", ki_no_vector);
    made = ki_intern_vector(parser->types, element, (uint32_t)lanes->integer);
    if (made == KJIT_ANY) longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
    return made;
  }
  if (type->kind != KJ_TYPE_TUPLE) {
    kjit_type element = find_type(r, type->element);
    if (!ki_type(parser->types, element)->size_bytes)
      ki_fail_parse(parser, type->location, KJIT_ERROR_UNSUPPORTED,
                    "%s with elements of this type are not supported",
                    type->kind == KJ_TYPE_POINTER ? "pointers" : "arrays");
    made = type->kind == KJ_TYPE_POINTER
             ? ki_intern_pointer(parser->types, element, type->read_only)
             : ki_array_type(parser->types, element, type->rank, type->layout, type->read_only);
    if (made == KJIT_ANY) longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
    return made;
  }
  kjit_type *items = KJ_NEW_ARRAY(parser->arena, kjit_type, type->items.count);
  for (size_t i = 0; i < type->items.count; i++) items[i] = find_type(r, type->items.items[i]);
  kjit_type tuple = ki_intern_tuple(parser->types, items, (uint32_t)type->items.count);
  if (tuple == KJIT_ANY) longjmp(*parser->arena->on_failure, KJ_JUMP_MEMORY);
  return tuple;
}

kjit_status ki_parse_type(ki_types *types, const kjit_module *scope, const char *text,
                          kj_diagnostics *diagnostics, kjit_type *type)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  kj_source source = { .name = "type", .text = text, .size_bytes = strlen(text) };
  kj_sources sources = { &source, 1 };
  type_reader reader = { .parser = { .types = types, .arena = &arena }, .scope = scope };
  ki_parser *parser = &reader.parser;
  int jump = setjmp(on_failure);
  if (jump == 0) {
    if (!ki_check_text(&sources, 0, diagnostics)) longjmp(on_failure, KJ_JUMP_ERROR);
    ki_init_lexer(&parser->lexer, text, source.size_bytes, &arena, &sources, diagnostics);
    parser->lexer.on_error = &on_failure;
    ki_next_token(&parser->lexer);
    ki_type_expr *parsed = ki_parse_type_expr(parser);
    if (!ki_at(parser, KJ_TOKEN_END))
      ki_fail_parse(parser, ki_place(parser), KJIT_ERROR_SYNTAX,
                    "expected the end of the type, found %s", ki_describe_token(parser));
    *type = find_type(&reader, parsed);
  }
  if (jump == KJ_JUMP_MEMORY)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
  kj_free_arena(&arena);
  return jump == 0 ? KJIT_OK : diagnostics->status;
}

/* Parses signatures and facts. A signature is, for example, "f32[:] C, 16". Facts are names that
 * apply to all arrays ("aligned16 disjoint"), or facts about named arguments, as a specialization
 * prints them ("aligned16(r, x) same(r, y) block(8, 8, 1)"). */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fact.h"
#include "code/specialization.h"
#include "ir/number.h"

typedef struct reader {
  const kjit_kernel *kernel;
  kj_diagnostics *diagnostics;
  kj_argument *arguments;
  kj_bound *bound; /* const parameters, for evaluating default values */
  /* the fields below are set only while facts are read */
  uint8_t *relations;
  kj_signature *signature;
  const char *fact; /* the fact being read, for messages */
  size_t length;
} reader;

/* ---- the text of one argument ---- */

static kjit_status fail(reader *r, uint32_t index, kjit_status status, const char *expected,
                        const char *text)
{
  const ki_decl *decl = r->kernel->parameters[index].decl;
  return kj_error_at(r->diagnostics, r->kernel->module, decl->location, status,
                     "parameter `%s`: expected %s, got `%s`", decl->name, expected, text);
}

/* Returns the length of a literal without its type suffix, which starts with a letter that cannot
 * be part of a number. */
static size_t literal_length(const char *text)
{
  bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  size_t i = is_hex ? 2 : 0;
  for (; text[i]; i++) {
    char c = text[i];
    bool is_exponent =
      !is_hex && (c == 'e' || c == 'E') &&
      (isdigit((unsigned char)text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
    bool is_sign =
      (c == '-' || c == '+') && i && (text[i - 1] == 'e' || text[i - 1] == 'E') && !is_hex;
    bool is_digit = is_hex ? isxdigit((unsigned char)c) != 0 : isdigit((unsigned char)c) != 0;
    if (!is_digit && !is_exponent && !is_sign && c != '.' && c != '_') break;
  }
  return i;
}

static bool read_integer(const char *digits, size_t length, __int128 *integer)
{
  bool is_hex = length > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  *integer = 0;
  for (size_t i = is_hex ? 2 : 0; i < length; i++) {
    if (digits[i] == '_') continue;
    int digit = isdigit((unsigned char)digits[i]) ? digits[i] - '0'
                                                  : tolower((unsigned char)digits[i]) - 'a' + 10;
    *integer = *integer * (is_hex ? 16 : 10) + digit;
    if (*integer > (__int128)UINT64_MAX) return false;
  }
  return true;
}

/* Reads a value such as "16", "-3", "0x10", "2.5f32", "7u64", "true", "-inf" or "nan". Returns
 * false if the text is not a value. */
static bool read_value(char *text, ki_value *value)
{
  bool is_negative = *text == '-';
  char *digits = text + is_negative;
  if (!strcmp(text, "true") || !strcmp(text, "false")) {
    *value = (ki_value){ .type = KJIT_BOOL, .integer = *text == 't' };
    return true;
  }
  if (!strcmp(digits, "inf") || !strcmp(digits, "nan")) {
    double magnitude = *digits == 'i' ? INFINITY : NAN;
    *value = ki_float_value(KJ_WEAK_FLOAT, is_negative ? -magnitude : magnitude);
    return true;
  }
  if (!isdigit((unsigned char)*digits) && *digits != '.') return false;
  size_t length = literal_length(digits);
  bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'),
       is_float = !is_hex && strcspn(digits, ".eE") < length;
  kjit_type suffix =
    digits[length] ? ki_find_scalar(digits + length, strlen(digits + length)) : KJIT_ANY;
  if (digits[length] && suffix == KJIT_ANY) return false;
  ki_value read = { .type = is_float ? KJ_WEAK_FLOAT : KJ_WEAK_INT };
  char end = digits[length];
  digits[length] = 0; /* terminate the text for ki_read_float */
  if (is_float)
    read = ki_float_value(ki_is_floating(suffix) ? suffix : KJ_WEAK_FLOAT,
                          ki_read_float(digits, suffix));
  digits[length] = end;
  bool is_read = is_float || read_integer(digits, length, &read.integer);
  if (is_negative) (void)ki_compute_unary(KJIT_OP_NEG, read, &read);
  if (!is_read || !(is_float || ki_integer_fits(KJ_WEAK_INT, read.integer))) return false;
  *value = read;
  return suffix == KJIT_ANY || ki_fit_argument(read, suffix, value);
}

static kjit_status read_const(reader *r, uint32_t index, char *text)
{
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  ki_value value, converted;
  if (!read_value(text, &value))
    return fail(r, index, KJIT_ERROR_ARGUMENT, "a value, because the parameter is const", text);
  if (annotation->kind == KJ_ANNOTATION_SCALAR) {
    if (!ki_fit_argument(value, annotation->type, &converted))
      return fail(r, index, KJIT_ERROR_ARGUMENT,
                  ki_type(r->kernel->module->types, annotation->type)->name, text);
    value = converted;
  }
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .integer = value.integer };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .value = value };
  return KJIT_OK;
}

static kjit_status read_function(reader *r, uint32_t index, const char *text)
{
  const char *reason;
  const ki_decl *decl = ki_find_func(r->kernel->module, text, &reason);
  if (!decl && !reason) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (!decl)
    return kj_error_at(r->diagnostics, r->kernel->module,
                       r->kernel->parameters[index].decl->location, KJIT_ERROR_NAME,
                       "parameter `%s`: expected the name of a function, got `%s`%s",
                       r->kernel->parameters[index].decl->name, text, reason);
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_FUNCTION, .type = KJIT_FUNC, .function = decl };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_FUNCTION, .function = decl };
  return KJIT_OK;
}

/* Checks the type against the parameter's annotation. Annotations with dtype() are left to type
 * inference. */
static kjit_status check_annotation(reader *r, uint32_t index, const ki_type_info *info,
                                    const char *text)
{
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  if (annotation->kind != KJ_ANNOTATION_ARRAY && annotation->kind != KJ_ANNOTATION_SCALAR)
    return KJIT_OK;
  bool wants_array = annotation->kind == KJ_ANNOTATION_ARRAY,
       is_array = info->class_ == KJ_CLASS_ARRAY;
  bool fits = wants_array == is_array;
  if (fits && is_array)
    fits = info->rank == annotation->rank &&
           (annotation->type == KJIT_ANY || annotation->type == info->element) &&
           (annotation->layout == KJIT_LAYOUT_STRIDED || annotation->layout == info->layout);
  if (fits) return KJIT_OK;
  kj_buffer expected = { 0 };
  const ki_type_expr *written = r->kernel->parameters[index].decl->type_expr;
  if (written->kind == KJ_TYPE_FIXED)
    ki_print_type(r->kernel->module->types, written->type, &expected);
  else kj_append_format(&expected, "an array of %u dimensions", annotation->rank);
  kjit_status status =
    fail(r, index, KJIT_ERROR_ARGUMENT, expected.text ? expected.text : "its annotation", text);
  kj_free_buffer(&expected);
  return status;
}

static kjit_status take_type(reader *r, uint32_t index, kjit_type type, const char *text)
{
  const ki_type_info *info = ki_type(r->kernel->module->types, type);
  KJ_TRY(check_annotation(r, index, info, text));
  if (info->class_ != KJ_CLASS_ARRAY && !info->size_bytes)
    return fail(r, index, KJIT_ERROR_ARGUMENT, "the type of an array or of a value in memory",
                text);
  r->arguments[index] =
    (kj_argument){ .kind = info->class_ == KJ_CLASS_ARRAY ? KJ_ARGUMENT_ARRAY : KJ_ARGUMENT_VALUE,
                   .type = type };
  return KJIT_OK;
}

/* Converts the value as a launch does. */
static void convert(reader *r, uint32_t index)
{
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  if (r->arguments[index].kind != KJ_ARGUMENT_ARRAY && annotation->kind == KJ_ANNOTATION_SCALAR) {
    r->arguments[index].kind = KJ_ARGUMENT_VALUE;
    r->arguments[index].type = annotation->type;
  }
  /* the host cannot evaluate the value */
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_FUNCTION };
}

static const kjit_type number_types[] = { KJ_WEAK_INT, KJ_WEAK_FLOAT, KJIT_I64, KJIT_U64 };

const char *kj_number_text(kjit_type type)
{
  if (type == KJIT_I64) return "i64 number";
  if (type == KJIT_U64) return "u64 number";
  return type == KJ_WEAK_INT ? "integer number" : "number";
}

static bool read_number_type(const char *text, kjit_type *type)
{
  for (size_t i = 0; i < sizeof number_types / sizeof *number_types; i++)
    if (!strcmp(text, kj_number_text(number_types[i]))) {
      *type = number_types[i];
      return true;
    }
  return false;
}

static kjit_status read_typed(reader *r, uint32_t index, char *text)
{
  ki_value value;
  kjit_type type;
  /* a specialization prints its signature in this form */
  if (read_number_type(text, &type)) {
    r->arguments[index] = (kj_argument){ .kind = KJ_ARGUMENT_NUMBER, .type = type };
    /* the parameter takes the value at run time, so only the type counts */
  } else if (read_value(text, &value)) {
    r->arguments[index] =
      (kj_argument){ .kind = ki_is_weak(value.type) ? KJ_ARGUMENT_NUMBER : KJ_ARGUMENT_VALUE,
                     .type = ki_is_weak(value.type) ? kj_number_type(value) : value.type };
  } else {
    const kjit_module *module = r->kernel->module;
    KJ_TRY(ki_parse_type(module->types, module, text, r->diagnostics, &type));
    KJ_TRY(take_type(r, index, type, text));
  }
  convert(r, index);
  return KJIT_OK;
}

static kjit_status read_argument(reader *r, uint32_t index, char *text)
{
  const kj_parameter_row *row = &r->kernel->parameters[index];
  if (row->is_func) return read_function(r, index, text);
  return row->is_const ? read_const(r, index, text) : read_typed(r, index, text);
}

static kjit_status read_default(reader *r, uint32_t index)
{
  const ki_decl *decl = r->kernel->parameters[index].decl;
  kj_scope scope = { .bound = r->bound, .bound_count = index };
  ki_value value;
  if (!kj_evaluate(&scope, decl->value, &value))
    return kj_error_at(r->diagnostics, r->kernel->module, scope.location, KJIT_ERROR_ARGUMENT,
                       "the default of parameter `%s` cannot be evaluated: this %s", decl->name,
                       scope.reason);
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .integer = value.integer };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .value = value };
  return KJIT_OK;
}

/* ---- the signature ---- */

/* Returns the end of an argument's text: a comma outside brackets, or the end. */
static const char *find_end(const char *text)
{
  int depth = 0;
  for (; *text; text++) {
    if (*text == '[' || *text == '(') depth++;
    if (*text == ']' || *text == ')') depth--;
    if (*text == ',' && depth <= 0) break;
  }
  return text;
}

static char *copy_trimmed(const char *start, const char *end)
{
  while (start < end && isspace((unsigned char)*start)) start++;
  while (end > start && isspace((unsigned char)end[-1])) end--;
  return strndup(start, (size_t)(end - start));
}

static kjit_status report_count(reader *r, uint32_t given)
{
  const ki_decl *decl = r->kernel->function->decl;
  return kj_error_at(r->diagnostics, r->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "kernel `%s`: expected %u arguments in the signature, got %u", decl->name,
                     r->kernel->parameter_count, given);
}

static kjit_status read_defaults(reader *r, uint32_t count)
{
  for (uint32_t i = count; i < r->kernel->parameter_count; i++) {
    if (!r->kernel->parameters[i].decl->value) return report_count(r, i);
    KJ_TRY(read_default(r, i));
  }
  return KJIT_OK;
}

kjit_status kj_read_signature(const kjit_kernel *kernel, const char *text, kj_argument *arguments,
                              kj_bound *bound, kj_diagnostics *diagnostics)
{
  reader reading = {
    .kernel = kernel, .diagnostics = diagnostics, .arguments = arguments, .bound = bound
  };
  reader *r = &reading;
  uint32_t count = 0;
  const char *at = text + strspn(text, " \t\n");
  while (*at) {
    const char *end = find_end(at);
    if (count == r->kernel->parameter_count) {
      while (*end) end = find_end(end + 1), count++;
      return report_count(r, count + 1);
    }
    char *argument = copy_trimmed(at, end);
    if (!argument) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    kjit_status status = *argument ? read_argument(r, count, argument)
                                   : fail(r, count, KJIT_ERROR_SYNTAX, "a type or a value", "");
    free(argument);
    if (status != KJIT_OK) return status;
    count++;
    at = *end ? end + 1 : end;
    if (*end && !*(at + strspn(at, " \t\n"))) break; /* the signature ends with a comma */
  }
  return read_defaults(r, count);
}

static kjit_status read_type(reader *r, uint32_t index, kjit_type type)
{
  kj_buffer printed = { 0 };
  ki_print_type(r->kernel->module->types, type, &printed);
  char *text = kj_take_text(&printed);
  if (!text) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  const kj_parameter_row *row = &r->kernel->parameters[index];
  bool is_type = !row->is_func && !row->is_const;
  kjit_status status =
    /* read_argument reports an error if the text is not a valid argument */
    is_type ? take_type(r, index, type, text) : read_argument(r, index, text);
  if (is_type && status == KJIT_OK) convert(r, index);
  free(text);
  return status;
}

kjit_status kj_read_types(const kjit_kernel *kernel, const kjit_type *types, size_t count,
                          kj_argument *arguments, kj_bound *bound, kj_diagnostics *diagnostics)
{
  reader reading = {
    .kernel = kernel, .diagnostics = diagnostics, .arguments = arguments, .bound = bound
  };
  if (count > kernel->parameter_count) return report_count(&reading, (uint32_t)count);
  for (uint32_t i = 0; i < count; i++) KJ_TRY(read_type(&reading, i, types[i]));
  return read_defaults(&reading, (uint32_t)count);
}

/* ---- facts ---- */

enum { MAX_OPERANDS = 3 };

static kjit_status refuse_fact(const reader *r, const char *expected)
{
  return kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT, "facts: expected %s, got `%.*s`", expected,
                  (int)r->length, r->fact);
}

/* ---- one fact ---- */

static bool find_array(const reader *r, const char *name, size_t length, uint32_t *index)
{
  for (uint32_t i = 0; i < r->kernel->parameter_count; i++) {
    const char *own = r->kernel->parameters[i].decl->name;
    if (strlen(own) != length || memcmp(own, name, length)) continue;
    *index = i;
    return r->arguments[i].kind == KJ_ARGUMENT_ARRAY;
  }
  return false;
}

static size_t name_length(const char *text) { return strcspn(text, " ,()"); }

/* Returns the operand at *at and moves *at to the start of the next operand, after the comma.
 * Returns NULL at the end. */
static const char *next_operand(const char **at, size_t *length)
{
  const char *start = *at + strspn(*at, " ,(");
  *length = name_length(start);
  *at = start + *length;
  return *length ? start : NULL;
}

static kjit_status read_array_fact(reader *r, const char *operands, uint32_t fact)
{
  size_t length;
  uint32_t index;
  if (!operands)
    for (uint32_t i = 0; i < r->kernel->parameter_count; i++)
      if (r->arguments[i].kind == KJ_ARGUMENT_ARRAY) r->arguments[i].facts |= fact;
  for (const char *name; operands && (name = next_operand(&operands, &length));) {
    if (!find_array(r, name, length, &index)) return refuse_fact(r, "names of array parameters");
    r->arguments[index].facts |= fact;
  }
  return KJIT_OK;
}

static kjit_status read_relation(reader *r, const char *operands, kj_relation relation)
{
  uint32_t count = r->kernel->parameter_count, pair[2] = { 0 };
  r->signature->relations = r->relations;
  for (uint32_t i = 0; i < count && !operands; i++)
    for (uint32_t j = 0; j < count; j++)
      r->relations[i * count + j] = (uint8_t)(i == j ? KJ_RELATION_SAME : relation);
  if (!operands) return KJIT_OK;
  for (int i = 0; i < 2; i++) {
    size_t length;
    const char *name = next_operand(&operands, &length);
    if (!name || !find_array(r, name, length, &pair[i]))
      return refuse_fact(r, "the names of two array parameters");
  }
  r->relations[pair[0] * count + pair[1]] = r->relations[pair[1] * count + pair[0]] =
    (uint8_t)relation;
  return KJIT_OK;
}

static kjit_status read_block(reader *r, const char *operands)
{
  for (int d = 0; d < MAX_OPERANDS; d++) {
    size_t length;
    const char *number = operands ? next_operand(&operands, &length) : NULL;
    unsigned long extent =
      number && isdigit((unsigned char)*number) ? strtoul(number, NULL, 10) : 0;
    if (!extent || extent > UINT16_MAX) return refuse_fact(r, "three extents of a block");
    r->signature->block[d] = (uint32_t)extent;
  }
  return KJIT_OK;
}

static kjit_status read_fact(reader *r, const char *operands)
{
  size_t length = name_length(r->fact);
#define IS(name) (length == strlen(name) && !memcmp(r->fact, name, length))
  bool is_all = IS("all") && !operands, is_known = is_all;
#define KJ_ARRAY_FACT(NAME, text, in_all, holds) \
  if (IS(text) || (is_all && in_all)) { \
    is_known = true; \
    KJ_TRY(read_array_fact(r, operands, KJ_FACT_##NAME)); \
  }
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  if ((IS(text) && !operands) || (is_all && (KJ_CALL_FACTS & KJ_CALL_FACT_##NAME))) \
    is_known = r->signature->field = true;
#include "facts.def"
  if (is_all) return read_relation(r, NULL, KJ_RELATION_DISJOINT);
  if (IS("disjoint")) return read_relation(r, operands, KJ_RELATION_DISJOINT);
  if (IS("same") && operands) return read_relation(r, operands, KJ_RELATION_SAME);
  if (IS("block")) return read_block(r, operands);
#undef IS
  static const char expected[] = "all"
#define KJ_ARRAY_FACT(NAME, text, in_all, holds) ", " text
#define KJ_CALL_FACT(NAME, field, text, kind, holds) ", " text
#include "facts.def"
                                 ", disjoint, same or block";
  return is_known ? KJIT_OK : refuse_fact(r, expected);
}

kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments,
                          uint8_t *relations, kj_signature *signature, kj_diagnostics *diagnostics)
{
  reader r = { .kernel = kernel,
               .arguments = arguments,
               .relations = relations,
               .signature = signature,
               .diagnostics = diagnostics };
  for (const char *at = facts + strspn(facts, " "); *at; at += strspn(at, " ")) {
    r.fact = at;
    at += name_length(at);
    const char *operands = *at == '(' ? at : NULL, *end = operands ? strchr(at, ')') : NULL;
    if (end) at = end + 1;
    else at += strcspn(at, " ");
    r.length = (size_t)(at - r.fact);
    if (operands && !end) return refuse_fact(&r, "a `)` after the names");
    KJ_TRY(read_fact(&r, operands));
  }
  return KJIT_OK;
}

/* ---- printing ---- */

static void print_array_fact(const kj_call *call, uint32_t fact, const char *name, kj_buffer *text)
{
  const char *separator = "(";
  uint32_t count = 0;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    const kj_bound *bound = &call->bound[i];
    if (bound->kind != KJ_ARGUMENT_ARRAY || !(bound->facts & fact)) continue;
    kj_append_format(text, "%s%s%s%s",
                     count          ? ""
                     : text->length ? " "
                                    : "",
                     count ? "" : name, separator, call->kernel->parameters[i].decl->name);
    separator = ", ";
    count++;
  }
  if (count) kj_append_text(text, ")");
}

static void print_relations(const kj_call *call, const uint8_t *relations, kj_buffer *text)
{
  uint32_t count = call->kernel->parameter_count;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = i + 1; j < count; j++) {
      uint8_t relation = relations[i * count + j];
      if (relation == KJ_RELATION_ANY) continue;
      kj_append_format(text, "%s%s(%s, %s)", text->length ? " " : "",
                       relation == KJ_RELATION_SAME ? "same" : "disjoint",
                       call->kernel->parameters[i].decl->name,
                       call->kernel->parameters[j].decl->name);
    }
}

char *kj_print_facts(const kj_call *call, const kj_signature *signature)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "");
#define KJ_ARRAY_FACT(NAME, name, in_all, holds) \
  print_array_fact(call, KJ_FACT_##NAME, name, &text);
#define KJ_CALL_FACT(NAME, field, name, kind, holds) \
  if (signature->field) kj_append_format(&text, "%s" name, text.length ? " " : "");
#include "facts.def"
  print_relations(call, signature->relations, &text);
  if (signature->block[0])
    kj_append_format(&text, "%sblock(%u, %u, %u)", text.length ? " " : "", signature->block[0],
                     signature->block[1], signature->block[2]);
  return kj_take_text(&text);
}

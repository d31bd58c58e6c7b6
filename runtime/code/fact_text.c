/* Facts as text, for kjit_compile: the names alone ("aligned16 disjoint"), for all arrays, or as a
 * specialization prints its own ("aligned16(r, x) same(r, y) block(8, 8, 1)"). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/fact.h"
#include "code/key.h"

enum { MAX_OPERANDS = 3 };

typedef struct reader {
  const kjit_kernel *kernel;
  kj_argument *arguments;
  uint8_t *relations;
  kj_signature *signature;
  kj_diagnostics *diagnostics;
  const char *fact; /* the one being read, for messages */
  size_t length;
} reader;

static kjit_status refuse(const reader *r, const char *expected)
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

/* The operand at *at, which moves behind it and its comma. NULL at the end. */
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
    if (!find_array(r, name, length, &index)) return refuse(r, "names of array parameters");
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
      return refuse(r, "the names of two array parameters");
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
    if (!extent || extent > UINT16_MAX) return refuse(r, "three extents of a block");
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
  return is_known ? KJIT_OK : refuse(r, expected);
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
    if (operands && !end) return refuse(&r, "a `)` after the names");
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

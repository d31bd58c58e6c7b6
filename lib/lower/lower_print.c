/* Lowers print. A line's text is in kj_code.prints, so the generated code sends only the line's
 * values, as 64-bit words. How the words are sent depends on the target.
 *
 * Tuples, vectors, structs and complex numbers are split here into their scalars and the text
 * around them. */
#include <string.h>

#include "lower/instruction.h"
#include "native/support_routines.h"

/* A line while its values are collected. */
typedef struct line {
  kl_lowering *l;
  kj_location location;
  LLVMValueRef words[KJ_MOST_PRINT_WORDS];
  uint32_t count;
} line;

/* ---- scalars ---- */

static void put(line *p, const char *text) { kj_append_text(&p->l->prints, text); }

static void add_word(line *p, LLVMValueRef word)
{
  if (p->count == KJ_MOST_PRINT_WORDS)
    kt_fail(p->l->c, p->location, KJIT_ERROR_UNSUPPORTED,
            "`print` takes at most %d numbers; write several `print` statements",
            KJ_MOST_PRINT_WORDS);
  p->words[p->count++] = word;
}

/* Returns the bits of a scalar, in register or memory form, as an i64. */
static LLVMValueRef make_word(kl_lowering *l, bool is_signed, LLVMValueRef value)
{
  LLVMTypeRef type = LLVMTypeOf(value);
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  if (kind == LLVMPointerTypeKind) return kl_ptrtoint(l, value, l->i64);
  if (kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind) value = kl_bitcast(l, value, l->i16);
  if (kind == LLVMFloatTypeKind) value = kl_bitcast(l, value, l->i32);
  if (kind == LLVMDoubleTypeKind) value = kl_bitcast(l, value, l->i64);
  return is_signed ? kl_sext(l, value, l->i64) : kl_zext(l, value, l->i64);
}

static char letter_of(const line *p, const ki_type_info *info, kjit_type type)
{
  const kt_instance *instance = p->l->frame->instance;
  switch (KJ_AMONG(info->class_)) {
  /* with Numba's rules, a bool is printed as in Python */
  case KJ_CLASS_BOOL:
    return ki_get_attribute(&instance->function->attributes, KJ_ATTRIBUTE_NUMBA) ? 'B' : 'b';
  case KJ_CLASS_SIGNED: return 'i';
  case KJ_CLASS_UNSIGNED: return 'u';
  case KJ_CLASS_POINTER: return 'p';
  default: break;
  }
  switch (type) {
  case KJIT_F16: return 'h';
  case KJIT_BF16: return 'y';
  case KJIT_F32: return 'f';
  case KJIT_F64: return 'd';
  default: return 0;
  }
}

static void put_letter(line *p, char letter)
{
  kj_append_format(&p->l->prints, "%c%c", KJ_PRINT_VALUE, letter);
}

/* ---- values ---- */

static void put_value(line *p, kjit_type type, LLVMValueRef value);

static LLVMValueRef part_of(line *p, LLVMValueRef value, uint32_t index)
{
  if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind)
    return kl_extract_element(p->l, value, kl_const32(p->l, index));
  return kl_extract_value(p->l, value, index);
}

static void put_parts(line *p, const ki_type_info *info, LLVMValueRef value)
{
  put(p, "(");
  for (uint32_t i = 0; i < info->count; i++) {
    if (i) put(p, ", ");
    if (info->field_names) kj_append_format(&p->l->prints, "%s=", info->field_names[i]);
    put_value(p, info->items ? info->items[i] : info->element, part_of(p, value, i));
  }
  put(p, info->class_ == KJ_CLASS_TUPLE && info->count == 1 ? ",)" : ")");
}

/* Prints an array inside a struct as nested lists. */
static void put_array(line *p, const ki_type_info *info, uint32_t dimension, LLVMValueRef value,
                      uint32_t *next)
{
  KJ_ASSERT(dimension < info->rank);
  put(p, "[");
  for (int64_t i = 0; i < info->extents[dimension]; i++) {
    if (i) put(p, ", ");
    if (dimension + 1 < info->rank) put_array(p, info, dimension + 1, value, next);
    else put_value(p, info->element, part_of(p, value, (*next)++));
  }
  put(p, "]");
}

static void put_complex(line *p, const ki_type_info *info, kjit_type type, LLVMValueRef value)
{
  KJ_ASSERT(type == KJIT_C64 || type == KJIT_C128);
  (void)info;
  bool is_double = type == KJIT_C128;
  put_letter(p, is_double ? 'D' : 'F');
  for (uint32_t i = 0; i < 2; i++) add_word(p, make_word(p->l, false, part_of(p, value, i)));
}

static void put_value(line *p, kjit_type type, LLVMValueRef value)
{
  const ki_type_info *info = kl_type_info(p->l, type);
  uint32_t next = 0;
  if (info->class_ == KJ_CLASS_STRUCT) put(p, info->name);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_STRUCT:
  case KJ_CLASS_TUPLE:
  case KJ_CLASS_VECTOR: put_parts(p, info, value); return;
  case KJ_CLASS_ARRAY: put_array(p, info, 0, value, &next); return;
  case KJ_CLASS_COMPLEX: put_complex(p, info, type, value); return;
  default: break;
  }
  char letter = letter_of(p, info, type);
  if (!letter)
    kt_fail(p->l->c, p->location, KJIT_ERROR_UNSUPPORTED, "a value of type %s cannot be printed",
            kt_type_text(p->l->c, type));
  put_letter(p, letter);
  add_word(p, make_word(p->l, info->class_ == KJ_CLASS_SIGNED, value));
}

/* ---- the statement ---- */

static LLVMValueRef keep_words(kl_lowering *l, const line *p)
{
  KJ_ASSERT(p->count <= KJ_MOST_PRINT_WORDS);
  LLVMValueRef words = kl_alloca(l, LLVMArrayType2(l->i64, p->count ? p->count : 1), "printed");
  for (uint32_t i = 0; i < p->count; i++) {
    LLVMValueRef at = kl_const64(l, i);
    kl_store(l, p->words[i], kl_inbounds_gep(l, l->i64, words, &at, 1));
  }
  return words;
}

void kl_lower_print(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_PRINT);
  enum { MOST_SITES = 65536 };
  line *p = KJ_NEW(l->c->arena, line);
  p->l = l;
  p->location = stmt->location;
  if (l->c->request->symbol)
    kt_fail(l->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "`print` works only in kernels and in functions that kernels call; a C function has no "
            "launch that delivers the printed lines");
  if (l->print_count == MOST_SITES)
    kt_fail(l->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "a kernel can have at most %d `print` statements", MOST_SITES);
  size_t next = 0;
  for (const char *at = stmt->message; *at; at++) {
    if (*at == KJ_PRINT_VALUE) {
      const kt_expr *value = stmt->indices.items[next++];
      put_value(p, value->type, kl_lower_expr(l, value));
    } else {
      kj_append(&l->prints, at, 1);
    }
  }
  put(p, "\n");
  l->target->print(l, KJ_PRINT_HEADER(l->print_count, p->count), p->count, keep_words(l, p));
  l->print_count++;
}

/* ---- instances that print ---- */

static void find_print(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_PRINT) *(bool *)data = true;
}

bool kl_prints(kt_instance *instance)
{
  bool does = false;
  kt_walk_tstmts(&instance->body, find_print, NULL, &does);
  return does;
}

void kl_plan_prints(kl_lowering *l)
{
  for (size_t i = 0; i < l->c->instances.count && !l->has_print; i++)
    l->has_print = kl_prints(l->c->instances.items[i]);
  if (!l->has_print || !l->target->has_print_parameter) return;
  kj_parameter sink = { .kind = KJ_PARAMETER_PRINT, .argument = UINT16_MAX, .size_bytes = 8 };
  l->c->code->print_offset = kl_add_parameter(l, sink, KJIT_VOID, 8);
}

void kl_bind_hidden_parameters(kl_lowering *l)
{
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kl_planned_parameter *planned = &l->parameters.items[i];
    if (planned->parameter.kind == KJ_PARAMETER_FAILURE) l->failure_record = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_PRINT) l->print_sink = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_INTERRUPT_WORD) l->interrupt_word = planned->value;
    if (planned->parameter.kind == KJ_PARAMETER_INTERRUPT_NUMBER)
      l->interrupt_number = planned->value;
  }
}

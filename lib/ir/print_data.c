/* The data of a constant as text: weak literals in braces, of which a parser makes the same bytes.
 */
#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "ir/printer.h"

static void print_real(kj_printer *p, double value, kjit_type type)
{
  if (signbit(value) && !isnan(value)) kj_put(p, "-");
  if (isnan(value)) kj_put(p, "nan");
  else if (isinf(value)) kj_put(p, "inf");
  else kj_print_float(fabs(value), type, p->buffer);
}

static void print_complex(kj_printer *p, double real, double imaginary, kjit_type type)
{
  kjit_type part = type == KJIT_C64 ? KJIT_F32 : KJIT_F64;
  kj_append_format(p->buffer, "%s(", kj_type(p->module->types, type)->name);
  print_real(p, real, part);
  kj_put(p, ", ");
  print_real(p, imaginary, part);
  kj_put(p, ")");
}

static void print_signed(kj_printer *p, int64_t value)
{
  kj_append_format(p->buffer, "%lld", (long long)value);
}

#define LOAD(type, from) ((type *)memcpy(&(type){ 0 }, from, sizeof(type)))[0]
/* One element of a constant's data as a weak literal. */
static void print_element(kj_printer *p, kjit_type type, const char *from)
{
  switch (type) {
  case KJIT_BOOL: kj_put(p, *from ? "true" : "false"); break;
  case KJIT_I8: print_signed(p, LOAD(int8_t, from)); break;
  case KJIT_I16: print_signed(p, LOAD(int16_t, from)); break;
  case KJIT_I32: print_signed(p, LOAD(int32_t, from)); break;
  case KJIT_I64: print_signed(p, LOAD(int64_t, from)); break;
  case KJIT_U8: print_signed(p, LOAD(uint8_t, from)); break;
  case KJIT_U16: print_signed(p, LOAD(uint16_t, from)); break;
  case KJIT_U32: print_signed(p, LOAD(uint32_t, from)); break;
  case KJIT_U64:
    kj_append_format(p->buffer, "%llu", (unsigned long long)LOAD(uint64_t, from));
    break;
  case KJIT_F16: print_real(p, kj_decode_f16(LOAD(uint16_t, from)), type); break;
  case KJIT_BF16: print_real(p, kj_decode_bf16(LOAD(uint16_t, from)), type); break;
  case KJIT_F32: print_real(p, LOAD(float, from), type); break;
  case KJIT_F64: print_real(p, LOAD(double, from), type); break;
  case KJIT_C64:
    print_complex(p, LOAD(float, from), LOAD(float, from + sizeof(float)), type);
    break;
  case KJIT_C128:
    print_complex(p, LOAD(double, from), LOAD(double, from + sizeof(double)), type);
    break;
  default: break; /* the builder takes no others */
  }
}

/* The elements of the dimensions from `dimension` on; returns what follows them. */
static const char *put_rows(kj_printer *p, const kj_decl *decl, uint32_t dimension,
                            const char *from)
{
  if (dimension == decl->rank) {
    print_element(p, decl->data_element, from);
    return from + kj_type(p->module->types, decl->data_element)->size_bytes;
  }
  kj_put(p, "{ ");
  for (int64_t i = 0; i < decl->extents[dimension]; i++) {
    if (i) kj_put(p, ", ");
    from = put_rows(p, decl, dimension + 1, from);
  }
  kj_put(p, " }");
  return from;
}

void kj_put_data_type(kj_printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, ": %s", kj_type(p->module->types, decl->data_element)->name);
  for (uint32_t i = 0; i < decl->rank; i++)
    kj_append_format(p->buffer, "%s%lld", i ? ", " : "[", (long long)decl->extents[i]);
  if (decl->rank) kj_put(p, "]");
}

void kj_put_data(kj_printer *p, const kj_decl *decl) { put_rows(p, decl, 0, decl->data); }

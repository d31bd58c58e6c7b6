/* Finds the functions that CPU code can call. They are listed in ir/math.def, functions.def,
 * host_math.c and conversions.c. Both libkjit and the compiler library contain this file, because
 * both load machine code. */
#ifndef KJ_NATIVE_FUNCTIONS_H
#define KJ_NATIVE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instruction sets of the variants of libmvec's functions, identified by the letter in their names:
 * b SSE, c AVX, d AVX2, e AVX-512. The widest comes last. */
typedef struct kn_vector_variant {
  char isa;
  unsigned bytes;
} kn_vector_variant;
enum { KJ_VECTOR_VARIANTS = 4, KJ_VECTOR_NAME_BYTES = 48 };
extern const kn_vector_variant kn_vector_variants[KJ_VECTOR_VARIANTS];

/* Writes a name such as "_ZGVdN4vv_pow" (x86-64 vector function ABI) to
 * text[KJ_VECTOR_NAME_BYTES]. */
void kn_format_vector_name(char *text, const kn_vector_variant *variant, bool is_f64,
                           unsigned arguments, const char *name);

/* Returns whether generated code can call a function with this name, either directly or to
 * implement an operation. Application code must not define a function with such a name. The answer
 * is the same for every target, so that all targets accept the same programs. */
bool kn_is_library_name(const char *name);

/* Returns the address of a function that generated code can call. Returns NULL if code must not
 * call it, or if the C library of this process does not contain it. Any thread can call this. */
void *kn_find_library_function(const char *name);

/* Returns a digest of the variants of math functions that the C library of this process contains.
 * It is never 0. Any thread can call this. */
uint64_t kn_identify_vector_functions(void);

/* Functions that CPU code can call and that the C library does not contain. */

typedef struct kn_host_function {
  const char *name; /* the float version has the suffix f */
  void *address;
} kn_host_function;

/* An entry with name NULL ends each table. */
extern const kn_host_function kn_host_functions[]; /* host_math.c */
extern const kn_host_function kn_conversions[];    /* conversions.c */

#endif

/* What code on the CPU may call: ir/math.def, functions.def, and the functions of host_math.c. Part
 * of both libraries: machine code is loaded by either. */
#ifndef KJ_NATIVE_FUNCTIONS_H
#define KJ_NATIVE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libmvec's variants, by the letter of their names: b SSE, c AVX, d AVX2, e AVX-512. Widest last.
 */
typedef struct kn_vector_variant {
  char isa;
  unsigned bytes;
} kn_vector_variant;
enum { KJ_VECTOR_VARIANTS = 4, KJ_VECTOR_NAME_BYTES = 48 };
extern const kn_vector_variant kn_vector_variants[KJ_VECTOR_VARIANTS];

/* "_ZGVdN4vv_pow" (x86-64 vector function ABI) into text[KJ_VECTOR_NAME_BYTES]. */
void kn_format_vector_name(char *text, const kn_vector_variant *variant, bool is_f64,
                           unsigned arguments, const char *name);

/* Whether generated code may call a function of that name, by itself or for an operation: other
 * code must not have it. On every target, so that a program that one takes the others take too. */
bool kn_is_library_name(const char *name);

/* The address of a function that code may call; NULL: there is none in this process's C library, or
 * it may not. Any thread. */
void *kn_find_library_function(const char *name);

/* A digest of which variants of math functions this process's C library has; never 0. Any thread.
 */
uint64_t kn_identify_vector_functions(void);

/* Functions that code on the CPU calls and the C library lacks. */

typedef struct kn_host_function {
  const char *name; /* with an f for floats */
  void *address;
} kn_host_function;

extern const kn_host_function kn_host_functions[]; /* a name of NULL ends it */

#endif

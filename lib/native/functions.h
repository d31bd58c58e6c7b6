/* Functions that CPU code may call: the functions in ir/math.def, functions.def and host_math.c.
 * Both libraries contain this file, because both load machine code. */
#ifndef KJ_NATIVE_FUNCTIONS_H
#define KJ_NATIVE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instruction sets of libmvec's variants by the letter in their names: b SSE, c AVX, d AVX2, e
 * AVX-512. The widest comes last. */
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

/* Returns whether generated code may call a function of this name, directly or to implement an
 * operation. Application code must not define such a name. The answer is the same for every target,
 * so that all targets accept the same programs. */
bool kn_is_library_name(const char *name);

/* Returns the address of a function that code may call. Returns NULL if code must not call it or if
 * this process's C library does not have it. Any thread may call this. */
void *kn_find_library_function(const char *name);

/* Returns a digest of the variants of math functions that this process's C library has; never 0.
 * Any thread may call this. */
uint64_t kn_identify_vector_functions(void);

/* Functions that CPU code calls and the C library does not have. */

typedef struct kn_host_function {
  const char *name; /* the float version ends in f */
  void *address;
} kn_host_function;

extern const kn_host_function kn_host_functions[]; /* an entry with name NULL ends the table */

#endif

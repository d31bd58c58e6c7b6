/* Declarations for reductions: reduce.c reads the operands, and reduce_text.c writes the
 * kernels. */
#ifndef KA_REDUCE_H
#define KA_REDUCE_H

#include "algorithm/algorithm.h"

/* One result of a reduction. */
typedef struct ka_reduced {
  ka_operator operator_;         /* the operator, if reduction is NULL */
  const ka_reduction *reduction; /* the named reduction, or NULL */
  kjit_type value, accumulator;  /* type to which elements are converted; type of the values that
                                  * are combined */
  uint32_t bytes;                /* size of a combined value */
  bool commutes;
  ka_operand operand;
} ka_reduced;

/* The properties of a call on which all its kernels depend. */
typedef struct ka_reduce {
  ka_call *call;
  ka_operand x;
  ka_reduced *results;
  size_t count;
  bool is_several; /* the combined value is a struct with a field for each result */
  uint32_t bytes;  /* size of the combined value */
  uint32_t loaded; /* size of a loaded element before it is combined */
  bool commutes;
  bool keeps_order; /* the kernel visits the elements in their original order */
} ka_reduce;

/* Parts of the source that all kernels of a call share. */
typedef struct ka_reduce_texts {
  ka_kernel kernel;
  const char *operands; /* arguments of the library's kernel: load, store and operator */
  /* further arguments: partial results, counters, and whether the operator commutes */
  const char *works;
  const char *piece, *lines; /* on the CPU: funcs that reduce a sequence of elements, or adjacent
                                columns of several rows */
} ka_reduce_texts;

/* Begins a kernel. index_count is the number of indices of an element, and n the number of elements
 * that a result combines. */
void ka_begin_reduce(const ka_reduce *r, const char *module, uint32_t index_count, uint64_t n,
                     uint64_t partials, uint64_t counters, ka_reduce_texts *t);
/* Adds the step that fills a result if x has no elements to reduce. Errors: ARGUMENT. */
void ka_fill_reduced(const ka_reduce *r, ka_reduced *result);
/* Returns the size of the struct that contains the combined values of several results. Errors:
 * UNSUPPORTED. */
uint32_t ka_several_bytes(const ka_reduce *r);

#endif

/* Declarations for sorts. sort.c reads the operands, and sort_steps.c adds the launches.
 */
#ifndef KA_SORT_H
#define KA_SORT_H

#include "algorithm/algorithm.h"

enum { KA_MOST_BUFFERS = 2 };

typedef struct ka_sort {
  ka_call *call;
  ka_operand x, values, result, result_values;
  bool has_result;  /* the sorted keys are stored, not only their indices */
  bool has_values;  /* each key has a value that moves with it */
  bool are_places;  /* the values are the indices of the keys, as in an argsort */
  bool is_in_place; /* the keys or values are read from the memory that receives the result */
  bool is_packed;   /* temporary storage contains a key and its value in one word */
  bool is_descending;
  ka_operator less; /* the func `less`; unset for numeric order */
  uint32_t begin, end;
  kjit_type value_element;
  uint32_t value_bytes;
  uint64_t row, rows;
  uint64_t kept;          /* how many elements are stored at each row's start; 0 means all */
  uint32_t stage, stages; /* number of the current stage, and number of stages; the stages use the
                           * buffers in turn */
  uint32_t key_buffers[KA_MOST_BUFFERS], value_buffers[KA_MOST_BUFFERS];
} ka_sort;

/* ---- sort.c ---- */

/* Reads the order. The order is `less`. If `less` is NULL, it is the order of numbers, which
 * compares the bits from options.begin_bit to options.end_bit. Errors: TYPE, ARGUMENT. */
void ka_read_order(ka_sort *s, kjit_function *less);
/* Returns the axis along which the call sorts: the only axis in options.axes, or by default the
 * last axis. */
uint32_t ka_read_sorted_axis(ka_call *call, uint32_t rank);
/* Arranges all operands so that the sorted axis is the last one. */
void ka_arrange_rows(ka_sort *s, uint32_t axis);
/* ka_read_values reads the values, which must have the shape of x. ka_read_sorted reads the
 * results, including the results of the values if there are values. */
void ka_read_values(ka_sort *s, const kjit_operand *given);
void ka_read_sorted(ka_sort *s, const kjit_operand *result, const kjit_operand *result_values);
/* Rejects a result that is neither a func nor an array with this element type. */
void ka_check_sorted(const ka_sort *s, const ka_operand *result, kjit_type element);
/* Rejects a result that is neither a func nor an array of integers. */
void ka_check_places(const ka_sort *s, const ka_operand *result);

/* ---- sort_steps.c ---- */

/* Adds the steps of a sort of at least one element. */
void ka_sort_steps(ka_sort *s);
/* Adds the steps of a merge of x and y into the result. */
void ka_merge_steps(ka_sort *s, const ka_operand *y);

/* Returns the func in the kernel's source that compares two keys. */
const char *ka_use_less(ka_kernel *kernel, const ka_sort *s);
/* Returns the arguments "BEGIN, END, DESCENDING". */
const char *ka_use_bits(ka_kernel *kernel, const ka_sort *s);

static inline uint32_t ka_key_bytes(const ka_sort *s)
{
  return kj_element_bytes(s->call->context->types, s->x.element);
}

#endif

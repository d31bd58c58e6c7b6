#include <driver/compare.h>

#include <driver/record.h>
#include <math.h>

enum { PIECE_COUNT = 1 << 16 };

bool tool_same_shape(const tool_array *a, const tool_array *b)
{
  if (a->rank != b->rank || a->record.context != b->record.context ||
      a->record.type != b->record.type)
    return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d]) return false;
  return true;
}

static bool is_exact(const tool_number *number)
{
  return number->kind != TOOL_NUMBER_REAL && number->kind != TOOL_NUMBER_COMPLEX;
}

static bool same_integer(const tool_number *a, const tool_number *b)
{
  bool a_large = a->kind == TOOL_NUMBER_UNSIGNED, b_large = b->kind == TOOL_NUMBER_UNSIGNED;
  if (a_large != b_large) return false;
  return a_large ? a->u == b->u : a->i == b->i;
}

static double imaginary(const tool_number *number)
{
  return number->kind == TOOL_NUMBER_COMPLEX ? number->im : 0;
}

/* Returns whether two numbers are equal. NaN equals NaN, and infinities equal themselves. */
static bool same_real(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static bool is_close(const tool_number *got, const tool_number *expected,
                     const tool_tolerance *tolerance, double *distance, double *magnitude)
{
  double re = tool_number_real(got), im = imaginary(got), expected_re = tool_number_real(expected),
         expected_im = imaginary(expected);
  *magnitude = hypot(expected_re, expected_im);
  *distance = 0;
  if (is_exact(got) && is_exact(expected)) {
    bool same = same_integer(got, expected);
    if (!same) *distance = fabs(re - expected_re);
    return same;
  }
  if (same_real(re, expected_re) && same_real(im, expected_im)) return true;
  *distance = hypot(re - expected_re, im - expected_im);
  return isfinite(*distance) && *distance <= tolerance->absolute + tolerance->relative * *magnitude;
}

static void compare_one(const tool_number *got, const tool_number *expected,
                        const tool_tolerance *tolerance, uint64_t position, tool_comparison *result)
{
  double distance, magnitude;
  bool close = is_close(got, expected, tolerance, &distance, &magnitude);
  if (!close && !result->different++) result->first = position;
  if (!isfinite(distance) || distance <= result->largest_absolute) return;
  result->largest_absolute = distance;
  result->relative = magnitude > 0 ? distance / magnitude : INFINITY;
  result->largest_at = position;
}

static void compare_structs(const char *got, const char *expected, const tool_leaves *leaves,
                            const tool_tolerance *tolerance, uint64_t position,
                            tool_comparison *result)
{
  for (size_t i = 0; i < leaves->count; i++) {
    const tool_leaf *leaf = &leaves->items[i];
    for (uint64_t k = 0; k < leaf->count; k++) {
      uint64_t at = leaf->offset_bytes + k * tool_elements[leaf->element].size_bytes;
      tool_number a = tool_load(leaf->element, got + at),
                  b = tool_load(leaf->element, expected + at);
      compare_one(&a, &b, tolerance, position++, result);
    }
  }
}

/* Loads an element. A null becomes NaN, so nulls equal nulls and NaN. */
static tool_number load(const tool_array *array, uint64_t position)
{
  const void *element = tool_element_number(array, position);
  return tool_is_null(array, element) ? tool_make_real(NAN) : tool_load(array->element, element);
}

/* Compares the elements from first to end. leaves lists the numbers of structs, or is empty. */
static void compare_range(const tool_array *got, const tool_array *expected,
                          const tool_leaves *leaves, const tool_tolerance *tolerance,
                          uint64_t first, uint64_t end, tool_comparison *result)
{
  uint64_t numbers = tool_count_numbers(leaves), bytes = got->record.size_bytes;
  for (uint64_t i = first; i < end; i++) {
    if (leaves->count) {
      compare_structs(tool_element_number(got, i * bytes), tool_element_number(expected, i * bytes),
                      leaves, tolerance, i * numbers, result);
      continue;
    }
    tool_number a = load(got, i), b = load(expected, i);
    compare_one(&a, &b, tolerance, i, result);
  }
}

/* Merges the result of a later range into the result of all ranges before it. */
static void append_comparison(tool_comparison *result, const tool_comparison *part)
{
  if (part->different && !result->different) result->first = part->first;
  result->different += part->different;
  if (part->largest_absolute <= result->largest_absolute) return;
  result->largest_absolute = part->largest_absolute;
  result->relative = part->relative;
  result->largest_at = part->largest_at;
}

tool_comparison tool_compare(const tool_array *got, const tool_array *expected,
                             const tool_tolerance *tolerance)
{
  bool is_record = got->record.context != NULL;
  tool_leaves leaves = is_record ? tool_list_leaves(&got->record) : (tool_leaves){ 0 };
  uint64_t elements = tool_count(got) / (is_record ? got->record.size_bytes : 1),
           pieces = (elements + PIECE_COUNT - 1) / PIECE_COUNT;
  tool_comparison result = { .count =
                               is_record ? elements * tool_count_numbers(&leaves) : elements };
#pragma omp parallel for ordered schedule(static, 1) if (pieces > 1)
  for (uint64_t p = 0; p < pieces; p++) {
    tool_comparison part = { 0 };
    uint64_t first = p * PIECE_COUNT, left = elements - first;
    compare_range(got, expected, &leaves, tolerance, first,
                  first + (left < PIECE_COUNT ? left : PIECE_COUNT), &part);
#pragma omp ordered
    append_comparison(&result, &part);
  }
  tool_destroy_leaves(&leaves);
  return result;
}

/* Suggestions for misspelled names. */
#ifndef KJ_IR_NEAR_NAME_H
#define KJ_IR_NEAR_NAME_H

#include <stddef.h>

/* Finds the candidate with the smallest edit distance to a name, if the distance is small enough
 * for a typing error. ki_consider compares one candidate. */
typedef struct ki_near {
  const char *name, *best;
  size_t distance; /* edit distance of best; 0 if best is NULL */
} ki_near;
void ki_consider(ki_near *near, const char *candidate);

#endif

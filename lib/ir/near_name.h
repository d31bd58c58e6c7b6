/* Names that were nearly right: what somebody may have meant. */
#ifndef KJ_IR_NEAR_NAME_H
#define KJ_IR_NEAR_NAME_H

#include <stddef.h>

/* The candidate nearest to a name by edit distance, where it is near enough to be meant. */
typedef struct ki_near {
  const char *name, *best;
  size_t distance; /* of best; 0: none yet */
} ki_near;
void ki_consider(ki_near *near, const char *candidate);

#endif

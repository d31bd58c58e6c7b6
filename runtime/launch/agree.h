/* Assertions of the learned way. */
#ifndef KJ_LAUNCH_AGREE_H
#define KJ_LAUNCH_AGREE_H

#include "code/dispatch.h"
#include "support/assert.h"

/* Whether the general way decides as the learned one has: key, grid, block, clusters, shared memory
 * and parameter block. launch.c */
bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count);

#endif

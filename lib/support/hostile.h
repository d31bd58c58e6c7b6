/* The hostile build (CMake's KJIT_HOSTILE), modelled on Lua's ltests.h. In this build, objects that
 * grow start with the minimum size and grow by the minimum step. An arena allocates each object
 * separately, so that AddressSanitizer detects accesses past its end. A test can make any memory
 * allocation of kjit fail. In this build, the compiler includes this header before each source file
 * of kjit. In other builds, the header only defines the usual sizes. */
#ifndef KJ_SUPPORT_HOSTILE_H
#define KJ_SUPPORT_HOSTILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef KJIT_HOSTILE

#define KJ_SIZE(usual, least) (least)
/* Grows by a single element as long as this does not take too much time. */
#define KJ_GROWN(capacity, first) ((capacity) < 32 ? (capacity) + 1 : 2 * (capacity))

/* A test can define this function, which returns whether the next allocation must fail. Without it,
 * no allocation fails. */
__attribute__((weak, visibility("default"))) int kjit_fails_allocation(void);
static inline int kj_fails_allocation(void)
{
  return kjit_fails_allocation && kjit_fails_allocation();
}

#define malloc(size) (kj_fails_allocation() ? NULL : malloc(size))
#define calloc(count, size) (kj_fails_allocation() ? NULL : calloc(count, size))
#define realloc(block, size) (kj_fails_allocation() ? NULL : realloc(block, size))
#define aligned_alloc(alignment, size) \
  (kj_fails_allocation() ? NULL : aligned_alloc(alignment, size))
#undef strdup
#define strdup(text) (kj_fails_allocation() ? NULL : strdup(text))
#undef strndup
#define strndup(text, length) (kj_fails_allocation() ? NULL : strndup(text, length))
#define vasprintf(text, format, list) (kj_fails_allocation() ? -1 : vasprintf(text, format, list))
#define asprintf(text, ...) (kj_fails_allocation() ? -1 : asprintf(text, __VA_ARGS__))

#else

#define KJ_SIZE(usual, least) (usual)
#define KJ_GROWN(capacity, first) ((capacity) ? 2 * (capacity) : (first))

#endif

#endif

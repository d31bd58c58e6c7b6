/* The hostile build (CMake's KJIT_HOSTILE), after Lua's ltests.h: whatever grows begins with the
 * least size and grows by the least step, an arena gives each object a block of its own, so that
 * AddressSanitizer sees where it ends, and a test may let any allocation of kjit's own code fail.
 * There the compiler includes this header before each of kjit's sources; elsewhere it only says
 * what is usual. */
#ifndef KJ_SUPPORT_HOSTILE_H
#define KJ_SUPPORT_HOSTILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef KJIT_HOSTILE

#define KJ_SIZE(usual, least) (least)
/* One more each time, as long as that is cheap. */
#define KJ_GROWN(capacity, first) ((capacity) < 32 ? (capacity) + 1 : 2 * (capacity))

/* A test defines it: whether the next allocation fails. Without one, none does. */
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

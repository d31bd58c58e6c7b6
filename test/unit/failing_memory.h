/* Lets each allocation of a test fail in turn. These functions replace the C library's allocation
 * functions. They count the allocations of the test, let one of them fail, and know which
 * allocations were not freed. A sanitizer has its own allocator. In such builds only calls of
 * kjit's own code reach these functions, by the linker's --wrap (test/CMakeLists.txt), and the
 * sanitizer reports leaks. */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAS_OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_OWN_MALLOC 0
#endif
#endif
#ifndef HAS_OWN_MALLOC
#define HAS_OWN_MALLOC 1
#endif

/* left: number of allocations until one fails; 0 means that none fails. Allocations of other
 * threads count only if counts_all is set. Allocations of the test's own driver and compiler never
 * count (paused). */
static _Atomic long left;
static _Atomic bool has_failed, counts_all;
static _Thread_local bool paused, is_tester;
static _Atomic long live;

static bool fails(void)
{
  if (paused || !left || !(is_tester || counts_all)) return false;
  if (--left) return false;
  has_failed = true;
  errno = ENOMEM;
  return true;
}

#if HAS_OWN_MALLOC
#define REAL(name) __libc_##name
#define STANDS_FOR(name) name
#else
#define REAL(name) __real_##name
#define STANDS_FOR(name) __wrap_##name
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *memory, size_t size);
#if HAS_OWN_MALLOC
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);
#define REAL_ALIGNED __libc_memalign
#else
void *__real_aligned_alloc(size_t alignment, size_t size);
#define REAL_ALIGNED __real_aligned_alloc
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t items, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
char *__wrap_strndup(const char *text, size_t length)
{
  return fails() ? NULL : __real_strndup(text, length);
}
#endif

static void *count(void *memory)
{
  live += memory != NULL;
  return memory;
}

/* Visible to the C library as well, because its strdup and vasprintf allocate. */
#pragma GCC visibility push(default)
void *STANDS_FOR(malloc)(size_t size) { return fails() ? NULL : count(REAL(malloc)(size)); }
void *STANDS_FOR(calloc)(size_t items, size_t size)
{
  return fails() ? NULL : count(REAL(calloc)(items, size));
}
void *STANDS_FOR(realloc)(void *memory, size_t size)
{
  if (fails()) return NULL;
  live += !memory;
  return REAL(realloc)(memory, size);
}
void *STANDS_FOR(aligned_alloc)(size_t alignment, size_t size)
{
  enum { OF_FAKE_DRIVER = 256 };
  return alignment != OF_FAKE_DRIVER && fails() ? NULL : count(REAL_ALIGNED(alignment, size));
}
#if HAS_OWN_MALLOC
void free(void *memory)
{
  live -= memory != NULL;
  __libc_free(memory);
}
#endif
#pragma GCC visibility pop

/* Returns the number of allocations that a trial has left, not counting those that the libraries
 * keep in a trial without failures (number 0). Returns 0 under a sanitizer, which reports leaks at
 * the end. */
static long count_left(long number, long before)
{
  static long stays;
  if (!number) stays = live - before;
  return HAS_OWN_MALLOC ? live - before - stays : 0;
}

#endif

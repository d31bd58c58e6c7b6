/* Assertions of what our own code promises itself: invariants and preconditions, never properties
 * of what a user hands in. Debug and sanitizer builds check them; release builds do not evaluate
 * them. */
#ifndef KJ_SUPPORT_ASSERT_H
#define KJ_SUPPORT_ASSERT_H

/* Prints the condition and its place to stderr and aborts. */
_Noreturn void kj_fail_assertion(const char *condition, const char *file, int line,
                                 const char *function);

#ifdef NDEBUG
enum { KJ_HAS_ASSERTIONS = 0 };
/* Compiled, so that the condition stays valid and what it uses counts as used, but never evaluated:
 * no code is left of it. */
#define KJ_ASSERT(condition) ((void)(KJ_HAS_ASSERTIONS && (condition)))
#else
enum { KJ_HAS_ASSERTIONS = 1 };
#define KJ_ASSERT(condition) \
  ((condition) ? (void)0 : kj_fail_assertion(#condition, __FILE__, __LINE__, __func__))
#endif

/* A switch over an enumeration lists every value, and the compiler names one that is missing
 * (-Wswitch-enum). Where it is about some values only, and its default is right for every other
 * one, those that are added later too, it says so: switch (KJ_AMONG(kind)). */
#define KJ_AMONG(value) ((int)(value))

#endif

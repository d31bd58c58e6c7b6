/* Assertions of kjit's own invariants and preconditions, never of properties of the application's
 * input. Debug and sanitizer builds check them; release builds do not evaluate them. */
#ifndef KJ_SUPPORT_ASSERT_H
#define KJ_SUPPORT_ASSERT_H

/* Prints the condition and its location to stderr and aborts. */
_Noreturn void kj_fail_assertion(const char *condition, const char *file, int line,
                                 const char *function);

#ifdef NDEBUG
enum { KJ_HAS_ASSERTIONS = 0 };
/* The condition is compiled but never evaluated. It therefore stays valid, and variables in it
 * count as used, but it generates no code. */
#define KJ_ASSERT(condition) ((void)(KJ_HAS_ASSERTIONS && (condition)))
#else
enum { KJ_HAS_ASSERTIONS = 1 };
#define KJ_ASSERT(condition) \
  ((condition) ? (void)0 : kj_fail_assertion(#condition, __FILE__, __LINE__, __func__))
#endif

/* A switch over an enumeration normally lists every value, and the compiler reports missing ones
 * (-Wswitch-enum). If a switch only concerns some values, and its default is correct for all
 * others, including future ones, write switch (KJ_AMONG(kind)). */
#define KJ_AMONG(value) ((int)(value))

#endif

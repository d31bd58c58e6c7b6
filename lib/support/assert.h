/* Assertions that check kjit's own invariants and preconditions, but never properties of the
 * application's input. Debug and sanitizer builds check them. Release builds do not evaluate
 * them. */
#ifndef KJ_SUPPORT_ASSERT_H
#define KJ_SUPPORT_ASSERT_H

/* Prints the condition and its location in the source to stderr, and aborts. */
_Noreturn void kj_fail_assertion(const char *condition, const char *file, int line,
                                 const char *function);

#ifdef NDEBUG
enum { KJ_HAS_ASSERTIONS = 0 };
/* The condition is compiled but never evaluated. It must therefore be a valid expression, and the
 * compiler treats its variables as used, but no code is generated for it. */
#define KJ_ASSERT(condition) ((void)(KJ_HAS_ASSERTIONS && (condition)))
#else
enum { KJ_HAS_ASSERTIONS = 1 };
#define KJ_ASSERT(condition) \
  ((condition) ? (void)0 : kj_fail_assertion(#condition, __FILE__, __LINE__, __func__))
#endif

/* A switch over an enumeration normally lists every value, and the compiler reports missing ones
 * (-Wswitch-enum). Use switch (KJ_AMONG(kind)) if a switch handles only some values, and its
 * default is correct for all others, including values that are added later. */
#define KJ_AMONG(value) ((int)(value))

#endif

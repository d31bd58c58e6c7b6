/* This file is part of programs that must run on systems older than the build machine. Up to glibc
 * 2.33, each program contained the function that runs its constructors, and passed it to
 * __libc_start_main. Since then, glibc runs the constructors itself if the program passes no such
 * function. This file defines the function and passes it to the old version of __libc_start_main.
 * The code is in a separate file, because libraries do not have _init in this form. */
#include <stddef.h>

typedef void function(int count, char **arguments, char **environment);

extern function *__init_array_start[] __attribute__((visibility("hidden")));
extern function *__init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

int kj_old_start(int (*main)(int, char **, char **), int count, char **arguments, function *begin,
                 void (*end)(void), void (*end_loader)(void), void *stack);
__asm__(".symver kj_old_start, __libc_start_main@GLIBC_2.2.5");

static void run_constructors(int count, char **arguments, char **environment)
{
  _init();
  size_t constructors = (size_t)(__init_array_end - __init_array_start);
  for (size_t i = 0; i < constructors; i++) __init_array_start[i](count, arguments, environment);
}

__attribute__((visibility("hidden"))) int
__wrap___libc_start_main(int (*main)(int, char **, char **), int count, char **arguments,
                         function *begin, void (*end)(void), void (*end_loader)(void), void *stack);
int __wrap___libc_start_main(int (*main)(int, char **, char **), int count, char **arguments,
                             function *begin, void (*end)(void), void (*end_loader)(void),
                             void *stack)
{
  (void)begin, (void)end;
  return kj_old_start(main, count, arguments, run_constructors, NULL, end_loader, stack);
}

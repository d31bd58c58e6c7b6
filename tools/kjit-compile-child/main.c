/* kjit-compile-child: a process that compiles for the process that started it. Users do not run it
 * themselves. */
#include <kjit/compile.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SOCKET = 3 };

int main(void)
{
  int kind;
  socklen_t bytes = sizeof kind;
  if (getsockopt(SOCKET, SOL_SOCKET, SO_TYPE, &kind, &bytes)) {
    fputs("kjit-compile-child: libkjit runs this program; see kjit_config.compile_in_child\n",
          stderr);
    return 2;
  }
  return kjit_serve_compilations(SOCKET) == KJIT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A libkjit-compiler that crashes or hangs for kernels with certain names. For all other kernels it
 * calls the real compiler, whose path is in KJIT_TEST_COMPILER. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compiler.h"

static const kj_compiler_interface *real;

static void die_by(int number)
{
  sigset_t all;
  sigfillset(&all);
  signal(number, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  raise(number);
}

static void say_nonsense(void)
{
  struct {
    char build[64];
    uint64_t size_bytes;
    unsigned char bytes[1000];
  } message = { .size_bytes = sizeof message.bytes };
  memcpy(message.build, real->build, strlen(real->build));
  for (size_t i = 0; i < sizeof message.bytes; i++)
    message.bytes[i] = (unsigned char)(i * 2654435761u >> 7);
  (void)!send(3, &message, sizeof message, MSG_NOSIGNAL);
  for (;;) pause();
}

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *request,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  const char *name = request->kernel->decl->name;
  if (!strcmp(name, "segfault")) die_by(SIGSEGV);
  if (!strcmp(name, "abort")) {
    fputs("LLVM ERROR: made up\nand more\n", stderr);
    die_by(SIGABRT);
  }
  if (!strcmp(name, "leave")) _exit(7);
  if (!strcmp(name, "nonsense")) say_nonsense();
  while (!strcmp(name, "endless")) pause();
  kjit_status status = real->compile(compiler, request, diagnostics, code);
  if (!strcmp(name, "outside")) code->parameters[0].offset = 1 << 20;
  return status;
}

KJIT_API const kj_compiler_interface *kjit_get_compiler_interface(void)
{
  static kj_compiler_interface interface;
  const char *path = getenv("KJIT_TEST_COMPILER");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  const kj_compiler_interface *(*get)(void) = NULL;
  if (library) *(void **)&get = dlsym(library, "kjit_get_compiler_interface");
  if (!get) return NULL;
  real = get();
  interface = *real;
  interface.compile = compile;
  return &interface;
}

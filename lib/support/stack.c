/* Calls compiled code, the parser and other recursive functions with enough stack. Stacks of
 * application threads may be small. If the thread's own stack has too little free space, the call
 * runs on a stack that this file allocates. */
#include "support/stack.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/assert.h"
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum {
  SMALL_BYTES = 32 * 1024, /* minimum stack size of a thread that calls kjit */
  /* additional space for functions that the code calls, and for signal handlers */
  SPARE_BYTES = 64 * 1024,
  GUARD_BYTES = 64 * 1024,
  /* The kernel keeps at least 128 MiB of address space free for the stack of the main thread. */
  MOST_MAIN_BYTES = 8 * 1024 * 1024
};

/* ---- the thread's own stack ---- */

/* Limits of the thread's stack. They are determined once for each thread. */
static _Thread_local struct {
  bool is_known;
  uintptr_t lowest, end; /* both are equal if the limits are unknown */
} own;

/* Finds the limits for the main thread, whose stack grows down from the program's name. For this
 * thread, pthread_getattr_np reads the process's list of all mappings, which can take longer than
 * kjit's part of a first call. */
static void find_main_stack(void)
{
  uintptr_t end = getauxval(AT_EXECFN);
  struct rlimit limit;
  if (!end || getrlimit(RLIMIT_STACK, &limit)) return;
  uintptr_t bytes = limit.rlim_cur < MOST_MAIN_BYTES ? (uintptr_t)limit.rlim_cur : MOST_MAIN_BYTES;
  own.end = end;
  own.lowest = end - bytes;
}

static void find_own_stack(void)
{
  pthread_attr_t attributes;
  void *lowest;
  size_t bytes;
  own.is_known = true;
  if (syscall(SYS_gettid) == getpid()) {
    find_main_stack();
    return;
  }
  if (pthread_getattr_np(pthread_self(), &attributes)) return;
  if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0) {
    own.lowest = (uintptr_t)lowest;
    own.end = own.lowest + bytes;
    KJ_ASSERT(own.lowest <= own.end);
  }
  pthread_attr_destroy(&attributes);
}

/* Returns whether the thread's own stack has enough space. Returns false if the thread runs on
 * another stack, for example that of a fiber or of a coroutine of the application. */
static bool has_room(uint64_t bytes)
{
  if (!own.is_known) find_own_stack();
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  return here > own.lowest && here < own.end && here - own.lowest >= bytes;
}

/* ---- a stack for the call ---- */

typedef struct stack_call {
  void (*call)(void *data);
  void *data;
  ucontext_t caller, callee;
#if defined(__SANITIZE_THREAD__)
  void *caller_fiber;
#endif
} stack_call;

static void run_on_stack(unsigned low, unsigned high)
{
  stack_call *c = (stack_call *)((uintptr_t)low | (uintptr_t)high << 32);
  c->call(c->data);
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(c->caller_fiber, 0);
#endif
  swapcontext(&c->callee, &c->caller);
}

static void switch_stack(stack_call *c, char *stack, size_t bytes)
{
  getcontext(&c->callee);
  c->callee.uc_stack.ss_sp = stack;
  c->callee.uc_stack.ss_size = bytes;
  c->callee.uc_link = NULL;
  makecontext(&c->callee, (void (*)(void))run_on_stack, 2, (unsigned)(uintptr_t)c,
              (unsigned)((uintptr_t)c >> 32));
#if defined(__SANITIZE_THREAD__)
  void *fiber = __tsan_create_fiber(0);
  c->caller_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber, 0);
#endif
  swapcontext(&c->caller, &c->callee);
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fiber);
#endif
}

size_t kj_whole_stack_bytes(uint64_t bytes)
{
  return (size_t)((bytes + SPARE_BYTES + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES);
}

bool kj_call_with_stack(uint64_t bytes, void (*call)(void *data), void *data)
{
  if (bytes <= SMALL_BYTES || has_room(bytes + SPARE_BYTES)) {
    call(data);
    return true;
  }
  size_t size = GUARD_BYTES + kj_whole_stack_bytes(bytes);
  KJ_ASSERT(size % GUARD_BYTES == 0 && size - GUARD_BYTES >= bytes + SPARE_BYTES);
  char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  bool is_guarded = mprotect(stack, GUARD_BYTES, PROT_NONE) == 0;
  stack_call c = { .call = call, .data = data };
  if (is_guarded) switch_stack(&c, stack + GUARD_BYTES, size - GUARD_BYTES);
  munmap(stack, size);
  return is_guarded;
}

/* Implements the threads on which the compiler runs: their large stacks, and how a thread of the
 * application passes a compilation to them. */
#include "code/compile_thread.h"

#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- a thread with a large stack ----
 *
 * LLVM's scalar evolution analysis needs 4.5 KB of stack for each loop in a sequence of loops. A
 * sequence of 1,800 loops therefore exceeds 8 MiB, the size of a main thread's stack. */

enum { GUARD_BYTES = 1 << 16, KEPT_BYTES = 1 << 18 };
static const size_t stack_bytes = (size_t)256 << 20;

/* Lowest address of this thread's stack, if the thread has a large stack. */
static _Thread_local char *own_stack;

/* Blocks all signals except faults, because the application's threads must handle its signals. A
 * handler of a fault must run on the thread with the fault, for example the handler in
 * lib/target/extern_code.c. */
static void block_signals(sigset_t *previous)
{
  static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
  sigset_t signals;
  sigfillset(&signals);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&signals, faults[i]);
  pthread_sigmask(SIG_SETMASK, &signals, previous);
}

/* Maps a stack without huge pages, because with huge pages a single used byte would take megabytes
 * of memory. */
static void *map_stack(void)
{
  char *stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return NULL;
  if (mprotect(stack, GUARD_BYTES, PROT_NONE)) {
    munmap(stack, stack_bytes);
    return NULL;
  }
  (void)madvise(stack, stack_bytes, MADV_NOHUGEPAGE);
  return stack;
}

typedef struct start {
  void *(*run)(void *data);
  void *data;
  char *stack;
} start;

static void *run_large(void *data)
{
  start given = *(start *)data;
  free(data);
  own_stack = given.stack + GUARD_BYTES;
  fesetenv(FE_DFL_ENV);
  return given.run(given.data);
}

static bool create_thread(kj_large_thread *thread, start *given)
{
  pthread_attr_t attributes;
  sigset_t previous;
  if (pthread_attr_init(&attributes)) return false;
  pthread_attr_setstack(&attributes, thread->stack, stack_bytes);
  block_signals(&previous);
  bool is_started = !pthread_create(&thread->thread, &attributes, run_large, given);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  return is_started;
}

bool kj_start_large_thread(kj_large_thread *thread, void *(*run)(void *data), void *data)
{
  start *given = malloc(sizeof *given);
  thread->stack = given ? map_stack() : NULL;
  if (given) *given = (start){ run, data, thread->stack };
  if (thread->stack && create_thread(thread, given)) return true;
  if (thread->stack) munmap(thread->stack, stack_bytes);
  free(given);
  return false;
}

void kj_join_large_thread(kj_large_thread *thread)
{
  pthread_join(thread->thread, NULL);
  munmap(thread->stack, stack_bytes);
}

/* Releases the stack below this frame, except for the bytes that the next compilation certainly
 * needs. */
static __attribute__((noinline)) void trim_stack(void)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), here = (uintptr_t)__builtin_frame_address(0),
            end = (here - KEPT_BYTES) / page * page, low = (uintptr_t)own_stack;
  KJ_ASSERT(own_stack && here > low && here - low <= stack_bytes);
  if (end > low) (void)madvise(own_stack, end - low, MADV_DONTNEED);
}

/* ---- handing over ---- */

/* A call of the compiler that a worker runs for another thread. */
typedef struct task {
  kjit_status (*run)(struct task *task);
  kj_runtime *runtime;
  kj_diagnostics *diagnostics;
  const kj_compile_request *request;
  kj_code *made;
  const kj_code *code;
  const kj_outside *outside;
  kj_loaded **loaded;
  kj_cpu_kernel *kernel;
  kjit_status status;
  bool is_done;
} task;

typedef struct worker worker;
struct worker {
  worker *next; /* next idle worker */
  kj_compile_threads *threads;
  kj_large_thread thread;
  pthread_cond_t called; /* signalled when task or is_ending is set */
  pthread_cond_t done;
  task *task;
  bool is_ending;
};

/* The process' workers. A few idle workers stay for the next compilation. */
struct kj_compile_threads {
  pthread_mutex_t mutex; /* protects the following fields and the workers */
  worker *idle;
  uint32_t idle_count, count; /* count includes the workers that are being created */
  pthread_cond_t returned;    /* signalled when a worker becomes idle, or when no worker is left */
};
enum { MOST_IDLE = 4 };

static void run_task(task *t)
{
  t->status = t->run(t);
  trim_stack();
}

static void *work_off(void *data)
{
  worker *w = data;
  kj_compile_threads *threads = w->threads;
  kj_lock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  while (!w->is_ending) {
    task *taken = w->task;
    if (!taken) {
      kj_wait_for(&w->called, &threads->mutex);
      continue;
    }
    KJ_ASSERT(!taken->is_done);
    kj_unlock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
    run_task(taken);
    kj_lock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
    KJ_ASSERT(w->task == taken);
    w->task = NULL;
    taken->is_done = true;
    pthread_cond_signal(&w->done);
  }
  kj_unlock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  return NULL;
}

static void free_worker(worker *w)
{
  pthread_cond_destroy(&w->called);
  pthread_cond_destroy(&w->done);
  free(w);
}

static void end_worker(worker *w)
{
  kj_lock(&w->threads->mutex, KJ_LOCK_COMPILE_THREADS);
  w->is_ending = true;
  pthread_cond_signal(&w->called);
  kj_unlock(&w->threads->mutex, KJ_LOCK_COMPILE_THREADS);
  kj_join_large_thread(&w->thread);
  free_worker(w);
}

static worker *make_worker(kj_compile_threads *threads)
{
  worker *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->threads = threads;
  pthread_cond_init(&w->called, NULL);
  pthread_cond_init(&w->done, NULL);
  if (kj_start_large_thread(&w->thread, work_off, w)) return w;
  free_worker(w);
  return NULL;
}

static worker *pop_idle(kj_compile_threads *threads)
{
  worker *w = threads->idle;
  KJ_ASSERT(kj_is_locked_here(&threads->mutex) && !w == !threads->idle_count);
  KJ_ASSERT(threads->idle_count <= MOST_IDLE && threads->idle_count <= threads->count);
  if (!w) return NULL;
  KJ_ASSERT(!w->task && !w->is_ending);
  threads->idle = w->next;
  threads->idle_count--;
  return w;
}

/* Takes an idle worker or creates a worker. If the system cannot provide another thread, waits for
 * the next idle worker. Returns NULL if there is no worker at all. */
static worker *take_worker(kj_compile_threads *threads)
{
  kj_lock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  worker *w;
  while (!(w = pop_idle(threads))) {
    threads->count++;
    kj_unlock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
    w = make_worker(threads);
    kj_lock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
    if (w) break;
    if (!--threads->count) {
      pthread_cond_broadcast(&threads->returned);
      break;
    }
    if (!threads->idle) kj_wait_for(&threads->returned, &threads->mutex);
  }
  kj_unlock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  return w;
}

static void return_worker(worker *w)
{
  kj_compile_threads *threads = w->threads;
  kj_lock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  bool is_kept = threads->idle_count < MOST_IDLE;
  KJ_ASSERT(!w->task && threads->count);
  if (is_kept) {
    w->next = threads->idle;
    threads->idle = w;
    threads->idle_count++;
    pthread_cond_signal(&threads->returned);
  } else {
    threads->count--;
  }
  kj_unlock(&threads->mutex, KJ_LOCK_COMPILE_THREADS);
  if (!is_kept) end_worker(w);
}

static void wait_for(worker *w, task *t)
{
  kj_lock(&w->threads->mutex, KJ_LOCK_COMPILE_THREADS);
  KJ_ASSERT(!w->task && !w->is_ending);
  w->task = t;
  pthread_cond_signal(&w->called);
  while (!t->is_done) kj_wait_for(&w->done, &w->threads->mutex);
  kj_unlock(&w->threads->mutex, KJ_LOCK_COMPILE_THREADS);
}

/* The thread must not be cancelled during the wait: cancellation would free its stack, which
 * contains the task. */
static kjit_status call(task *t)
{
  if (own_stack) {
    run_task(t);
    return t->status;
  }
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  worker *w = take_worker(t->runtime->compile_threads);
  if (w) {
    wait_for(w, t);
    return_worker(w);
  }
  pthread_setcancelstate(state, NULL);
  if (!w)
    return kj_error(t->diagnostics, KJIT_ERROR_MEMORY,
                    "out of memory, or the system cannot start a compilation thread (its stack "
                    "needs %zu MiB of address space)",
                    stack_bytes >> 20);
  return t->status;
}

/* ---- the compiler's functions ---- */

static kjit_status run_create(task *t)
{
  kj_runtime *runtime = t->runtime;
  return runtime->interface->create(runtime->context->config.libdevice_path, t->diagnostics,
                                    &runtime->compiler);
}

kjit_status kj_create_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  return call(&(task){ .run = run_create, .runtime = runtime, .diagnostics = diagnostics });
}

void kj_tell_stage(kjit_context *context, const char *name, kjit_stage stage)
{
  static const char *const names[KJIT_STAGE_COUNT + 1] = {
#define STAGE_NAME(name, text, is_text, what) [KJIT_STAGE_##name] = text,
    KJIT_STAGES(STAGE_NAME)
#undef STAGE_NAME
  };
  const kjit_config *config = &context->config;
  if (!config->on_stage) return;
  ki_host_code code;
  ki_enter_host(&code, context);
  config->on_stage(config->user, name, names[stage]);
  ki_leave_host(&code);
}

static void tell(const kj_compile_request *request, kjit_stage stage)
{
  kj_tell_stage(request->module->context, request->kernel->decl->name, stage);
}

static kjit_status run_compile(task *t)
{
  return t->runtime->interface->compile(t->runtime->compiler, t->request, t->diagnostics, t->made);
}

kjit_status kj_call_compiler_unseen(kj_runtime *runtime, const kj_compile_request *request,
                                    kj_diagnostics *diagnostics, kj_code *code)
{
  kjit_context *context = runtime->context;
  kj_compile_request own = *request;
  if (!own.limits.size_bytes) own.limits = *context->config.compile_limits;
  own.interrupts = &context->interrupts;
  own.interrupts_before = atomic_load(&context->interrupts);
  return call(&(task){ .run = run_compile,
                       .runtime = runtime,
                       .diagnostics = diagnostics,
                       .request = &own,
                       .made = code });
}

kjit_status kj_call_compiler(kj_runtime *runtime, const kj_compile_request *request,
                             kj_diagnostics *diagnostics, kj_code *code)
{
  kj_compile_request own = *request;
  own.on_stage = runtime->context->config.on_stage ? tell : NULL;
  tell(&own, own.stage == KJIT_STAGE_KIR ? KJIT_STAGE_KIR : KJIT_STAGE_TYPED);
  kjit_status status = kj_call_compiler_unseen(runtime, &own, diagnostics, code);
  tell(&own, KJIT_STAGE_COUNT);
  return status;
}

static kjit_status run_load(task *t)
{
  return t->runtime->interface->load(t->runtime->compiler, t->code, t->outside, t->diagnostics,
                                     t->loaded, t->kernel);
}

kjit_status kj_call_loader(kj_runtime *runtime, const kj_code *code, const kj_outside *outside,
                           kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel)
{
  return call(&(task){ .run = run_load,
                       .runtime = runtime,
                       .diagnostics = diagnostics,
                       .code = code,
                       .outside = outside,
                       .loaded = loaded,
                       .kernel = kernel });
}

/* ---- the runtime's part ---- */

bool kj_open_compile_threads(kj_runtime *runtime)
{
  kj_compile_threads *made = calloc(1, sizeof *made);
  if (!made) return false;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->returned, NULL);
  runtime->compile_threads = made;
  return true;
}

void kj_close_compile_threads(kj_runtime *runtime)
{
  kj_compile_threads *threads = runtime->compile_threads;
  if (!threads) return;
  KJ_ASSERT(threads->count == threads->idle_count); /* no compilation is running */
  for (worker *w; (w = threads->idle);) {
    threads->idle = w->next;
    end_worker(w);
  }
  pthread_cond_destroy(&threads->returned);
  kj_destroy_mutex(&threads->mutex);
  free(threads);
}

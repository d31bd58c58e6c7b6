/* interrupt cpu|cuda: tests interrupts of kernels that never end, or that run longer than the test.
 * First a time limit ends each of them. Other interrupts come from a thread or from a signal
 * handler. They end one of several launches, a queue, a graph or a func. After each interrupt
 * another kernel has to run. At the end, a context is destroyed whose launch never ends.
 *
 * RUN: %programs/interrupt cpu | FileCheck %s
 * RUN: %if cuda %{ %programs/interrupt cuda | FileCheck %s %}
 * CHECK: {{^}}0 failures
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { COUNT = 1000, BLOCK = 64, BLOCKS = 8 };

typedef struct endless {
  const char *name, *text;
  uint32_t least_arch; /* of GPUs */
  uint32_t flags;
  /* on the CPU such a kernel may be reported as a deadlock (KERNEL) before the time is over */
  bool is_stuck_on_cpu;
} endless;

/* A func that calls the one below it eight times. */
#define LEVEL(n, below) \
  "func f" #n "(a, n) @noinline { var s = a\n s = (f" #below "(s, n) ^ f" #below \
  "(s + 1, n)) * 3\n" \
  "s = (f" #below "(s, n) ^ f" #below "(s + 1, n)) * 5\n s = (f" #below "(s, n) ^ f" #below \
  "(s + 1, n)) * 7\n return f" #below "(s, n) ^ f" #below "(s + 1, n) }\n"

static const endless cases[] = {
  { .name = "while",
    .text = "kernel k(r, n) { var i = 0i64\n while true { i = i + 1\n r[0] = i32(i) } }" },
  { .name = "empty", .text = "kernel k(r, n) { while true {} }" },
  { .name = "grid_range",
    .text = "kernel k(r, n) { for i in grid_range(4000000000000000) { r[i & 255] = i32(i) } }" },
  { .name = "two dimensions",
    .text =
      "kernel k(r, n) { for i, j in grid_range(400000000000, 1000) { r[j & 255] = i32(i) } }" },
  { .name = "block_range",
    .text = "kernel k(r, n) { for i in block_range(4000000000000000) { r[i & 255] = i32(i) } }" },
  { .name = "spin", .text = "kernel k(r, n) { while atomic_add(r[0], 0i32) != 77 {} }" },
  { .name = "spin on a lock",
    .text = "kernel k(r, n) { while atomic_cas(r[0], 77i32, 78i32) != 77 {}\n r[1] = 1 }" },
  { .name = "range",
    .text = "kernel k(r, n) { var s = 0i64\n for j in range(n) { s = (s ^ j) * 3 }\n"
            "r[0] = i32(s) }" },
  { .name = "range by 3",
    .text = "kernel k(r, n) { var s = 0i64\n for j in range(0i64, n, 3) { s = (s ^ j) * 3 }\n"
            "r[0] = i32(s) }" },
  { .name = "range downwards",
    .text = "kernel k(r, n) { for j in range(n, 0i64, -1) { r[j & 255] = 1 } }" },
  { .name = "range by a number",
    .text = "kernel k(r, n) { var s = 0i64\n for j in range(0i64, n, n // n) { s = (s ^ j) * 3 }\n"
            "r[0] = i32(s) }" },
  { .name = "loops in loops",
    .text =
      "kernel k(r, n) { for i in range(n) { for j in range(3i64 + (i & 1)) { r[j] = i32(i) } } }" },
  { .name = "small loops in a loop",
    .text = "kernel k(r, n) { for i in range(n) { for j in range(4) { r[j] = i32(i) } } }" },
  { .name = "long loops in loops",
    .text = "kernel k(r, n) { for i in range(n) { for j in range(3000i64 + (i & 1)) "
            "{ r[j & 255] = r[(j + 1) & 255] + 1 } } }" },
  { .name = "recursion",
    .text = "func f(n: i32) -> i32 { if n < 2 { return 1 }\n return f(n - 1) + f(n - 2) }\n"
            "kernel k(r, n) { r[0] = f(90i32) }" },
  { .name = "a function that stays one",
    .text =
      "func f(r, n) @noinline { var i = n\n while i != 0 { i = (i * 3) | 1\n r[1] = i32(i) } }\n"
      "kernel k(r, n) { f(r, n) }" },
  { .name = "a tree of calls of a short loop",
    .text =
      "func f0(a, n) @noinline { var s = a\n for j in range(3 + (n & 1)) { s = s * 3 + j }\n "
      "return s }\n" LEVEL(1, 0) LEVEL(2, 1) LEVEL(3, 2) LEVEL(4, 3) LEVEL(5, 4) LEVEL(6, 5)
        LEVEL(7, 6) LEVEL(8, 7) LEVEL(9, 8) LEVEL(10, 9) LEVEL(11, 10) LEVEL(12, 11) LEVEL(13, 12)
          LEVEL(14, 13) "kernel k(r, n) { r[0] = i32(f14(i64(threadIdx.x), n)) }" },
  { .name = "barriers",
    .text = "kernel k(r, n) { shared s: i32[64]\n let t = threadIdx.x\n s[t] = 1\n"
            "while true { syncthreads()\n let v = s[63 - t]\n syncthreads()\n s[t] = v + 1 } }" },
  { .name = "a barrier that one thread does not come to",
    .text = "kernel k(r, n) { if threadIdx.x == 3 { while true { r[1] = 1 } }\n syncthreads()\n "
            "r[0] = 2 }" },
  { .name = "warps",
    .text = "kernel k(r, n) { var v = i32(threadIdx.x)\n"
            "while true { v = shfl_xor_sync(0xffffffffu32, v, 1) + 1\n"
            "if any_sync(0xffffffffu32, v == 0) { r[0] = v } } }" },
  { .name = "a lane that does not come",
    .text = "kernel k(r, n) { var v = i32(threadIdx.x)\n"
            "if v == 5 { while true { r[1] = 1 } }\n"
            "r[0] = shfl_xor_sync(0xffffffffu32, v, 1) }" },
  { .name = "threads that raise",
    .text = "kernel k(r, n) { var i = 0i64\n while true { i = (i * 3) | 1\n"
            "if i == 2 { raise \"never\" } } }" },
  { .name = "mbarrier",
    .text = "kernel k(r, n) { shared b: u64[1]\n if threadIdx.x == 0 { mbarrier_init(b[0], 100) }\n"
            "syncthreads()\n mbarrier_wait_parity(b[0], 0u32)\n r[0] = 1 }",
    .least_arch = 80,
    .is_stuck_on_cpu = true },
  { .name = "trying at an mbarrier",
    .text = "kernel k(r, n) { shared b: u64[1]\n if threadIdx.x == 0 { mbarrier_init(b[0], 100) }\n"
            "syncthreads()\n while not mbarrier_try_wait_parity(b[0], 0u32) {}\n r[0] = 1 }",
    .least_arch = 90,
    .is_stuck_on_cpu = true },
  { .name = "named barriers",
    .text =
      "kernel k(r, n) { let w = threadIdx.x // 32\n while true { if w == 0 { barrier_sync(1, 64)\n"
      "barrier_arrive(2, 64) } else { barrier_sync(1, 64)\n barrier_sync(2, 64) }\n r[w] = 1 } }" },
  { .name = "a named barrier that a warp does not come to",
    .text =
      "kernel k(r, n) { if threadIdx.x < 32 { while true { r[1] = 1 } }\n barrier_sync(1, 64)\n"
      "r[0] = 1 }" },
  { .name = "grid_sync",
    .text = "kernel k(r, n) { while true { grid_sync()\n r[blockIdx.x] = r[255] + 1 } }",
    .least_arch = 70,
    .flags = KJIT_LAUNCH_COOPERATIVE },
  { .name = "a grid that one block does not come to",
    .text =
      "kernel k(r, n) { if blockIdx.x == 1 { while true { r[1] = 1 } }\n grid_sync()\n r[0] = 1 }",
    .least_arch = 70,
    .flags = KJIT_LAUNCH_COOPERATIVE },
  { .name = "cluster",
    .text =
      "kernel k(r, n) @cluster(2) { while true { cluster_sync()\n r[blockIdx.x] = r[255] + 1 } }",
    .least_arch = 90 },
  { .name = "a cluster that one block does not come to",
    .text = "kernel k(r, n) @cluster(2) { if blockIdx.x == 1 { while true { r[1] = 1 } }\n "
            "cluster_sync()\n"
            "r[0] = 1 }",
    .least_arch = 90 },
};

typedef struct world {
  kjit_context *context;
  kjit_device *device;
  kjit_device_info info;
  bool is_gpu;
  kjit_array *r;
  kjit_kernel *add;
} world;

static int failures;

static void complain(const world *w, const char *name, const char *what, kjit_status status)
{
  char *text = kjit_copy_diagnostics_text(w->context);
  printf("%s: %s: %s\n%s\n", name, what, kjit_get_status_name(status), text ? text : "");
  kjit_free(w->context, text);
  failures++;
}

static void check(const world *w, const char *name, const char *what, kjit_status status)
{
  if (status != KJIT_OK) complain(w, name, what, status);
}

static uint64_t clock_us(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_ms(long ms)
{
  nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static kjit_kernel *get_kernel(const world *w, const char *name, const char *text,
                               const char *kernel, kjit_module **module)
{
  kjit_kernel *found = NULL;
  kjit_status status = kjit_parse_module(w->context, "endless.kir", text, strlen(text), module);
  if (status == KJIT_OK) status = kjit_get_kernel(*module, kernel, &found);
  check(w, name, "its text", status);
  return found;
}

/* An interrupted launch must not affect the next launch. */
static void check_add(const world *w, const char *name)
{
  static int32_t value;
  int32_t got[COUNT];
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i32(++value) };
  check(w, name, "launching the next kernel", kjit_launch(w->add, NULL, arguments, 2));
  check(w, name, "reading what it has written", kjit_copy_to_host(w->r, got, sizeof got, NULL));
  for (int i = 0; i < COUNT; i++)
    if (got[i] != value + i) {
      printf("%s: the next kernel has written %d at %d, not %d\n", name, got[i], i, value + i);
      failures++;
      return;
    }
}

/* Launches and waits. On a GPU the wait reports the reason why the launch ended. */
static kjit_status run(const world *w, kjit_kernel *kernel, const kjit_launch_config *config)
{
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i64(INT64_MAX) };
  kjit_status status = kjit_launch(kernel, config, arguments, 2);
  if (status != KJIT_OK || !w->is_gpu) return status;
  return config->stream ? kjit_synchronize_stream(config->stream)
                        : kjit_synchronize_device(w->device);
}

static kjit_launch_config shape_of(const endless *e)
{
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .grid = { BLOCKS, 1, 1 },
                                .block = { BLOCK, 1, 1 } };
  if (e) config.flags = e->flags;
  return config;
}

/* Compiles the kernel, so that the measured time does not include the compilation. */
static kjit_status prepare(const world *w, kjit_kernel *kernel, const kjit_launch_config *config)
{
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i64(INT64_MAX) };
  kjit_prepared *prepared = NULL;
  kjit_status status = kjit_prepare_launch(kernel, config, arguments, 2, &prepared);
  kjit_destroy_prepared(prepared);
  return status;
}

static void check_place(const world *w, const char *name)
{
  const kjit_diagnostic *said = kjit_get_diagnostic(w->context, 0);
  if (said && said->line && strstr(said->message, "interrupted here") &&
      strcmp(said->file, "endless.kir") == 0)
    return;
  printf("%s: said: %s\n", name, said ? said->message : "nothing");
  failures++;
}

static void check_case(const world *w, const endless *e)
{
  kjit_module *module = NULL;
  kjit_launch_config config = shape_of(e);
  if (w->is_gpu && w->info.compute_capability < e->least_arch) return;
  kjit_kernel *kernel = get_kernel(w, e->name, e->text, "k", &module);
  if (!kernel) return;
  check(w, e->name, "compiling it", prepare(w, kernel, &config));
  config.time_limit_ns = 15 * 1000000;
  printf("%s: ", e->name);
  fflush(stdout); /* before it hangs */
  uint64_t start = clock_us();
  kjit_status status = run(w, kernel, &config);
  printf("%llu us\n", (unsigned long long)(clock_us() - start));
  bool is_stuck = e->is_stuck_on_cpu && !w->is_gpu && status == KJIT_ERROR_KERNEL;
  if (status == KJIT_ERROR_INTERRUPTED) check_place(w, e->name);
  else if (!is_stuck) complain(w, e->name, "expected that it is interrupted", status);
  check_add(w, e->name);
  kjit_release_module(module);
}

/* ---- ways to interrupt ---- */

static kjit_context *signalled;
static void on_signal(int signal)
{
  (void)signal;
  kjit_interrupt(signalled);
}

/* Sends the signal repeatedly, because it may arrive before the launch. */
static void check_signal(const world *w, kjit_kernel *kernel)
{
  struct sigaction action = { .sa_handler = on_signal }, before;
  struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { { 0, 0 }, { 0, 0 } };
  kjit_launch_config config = shape_of(NULL);
  signalled = w->context;
  sigaction(SIGALRM, &action, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  kjit_status status = run(w, kernel, &config);
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  if (status != KJIT_ERROR_INTERRUPTED) complain(w, "a signal", "expected an interrupt", status);
  check_add(w, "a signal");
}

typedef struct launcher {
  const world *w;
  kjit_kernel *kernel;
  kjit_launch_config config;
  kjit_status status;
  _Atomic bool has_ended;
  pthread_t thread;
} launcher;

static void *launch_endless(void *data)
{
  launcher *l = data;
  l->status = run(l->w, l->kernel, &l->config);
  atomic_store(&l->has_ended, true);
  return NULL;
}

static void start(launcher *l, const world *w, kjit_kernel *kernel)
{
  *l = (launcher){ .w = w, .kernel = kernel, .config = shape_of(NULL) };
}

/* Of two launches at the same time, one is interrupted and the other continues. */
static void check_one_of_two(const world *w, kjit_kernel *kernel, bool by_stream)
{
  const char *name = by_stream ? "one of two streams" : "one of two launches";
  launcher launchers[2];
  kjit_stream *streams[2] = { NULL, NULL };
  kjit_interrupter *interrupters[2] = { NULL, NULL };
  for (int i = 0; i < 2; i++) {
    start(&launchers[i], w, kernel);
    check(w, name, "a stream", kjit_create_stream(w->device, &streams[i]));
    check(w, name, "an interrupter", kjit_create_interrupter(w->device, &interrupters[i]));
    launchers[i].config.stream = streams[i];
    if (!by_stream) launchers[i].config.interrupter = interrupters[i];
    pthread_create(&launchers[i].thread, NULL, launch_endless, &launchers[i]);
  }
  for (int i = 0; i < 2; i++) {
    while (!atomic_load(&launchers[i].has_ended)) {
      sleep_ms(10);
      if (by_stream) kjit_interrupt_stream(streams[i]);
      else kjit_interrupt_launches(interrupters[i]);
    }
    pthread_join(launchers[i].thread, NULL);
    /* on a GPU the failure belongs to the device, so the first wait of either launch reports it */
    if (launchers[i].status != KJIT_ERROR_INTERRUPTED)
      complain(w, name, "expected an interrupt", launchers[i].status);
    if (i == 0) sleep_ms(20);
    if (i == 0 && atomic_load(&launchers[1].has_ended)) {
      printf("%s: the other one has ended, too\n", name);
      failures++;
    }
  }
  for (int i = 0; i < 2; i++) {
    kjit_destroy_stream(streams[i]);
    kjit_destroy_interrupter(interrupters[i]);
  }
  check_add(w, name);
}

/* On a GPU, an interrupt also ends the queued launches, but not launches that are queued later. */
static void check_queue(const world *w, kjit_kernel *kernel)
{
  kjit_stream *stream;
  kjit_launch_config config = shape_of(NULL);
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i64(1) };
  if (!w->is_gpu) return;
  check(w, "a queue", "a stream", kjit_create_stream(w->device, &stream));
  config.stream = stream;
  for (int i = 0; i < 5; i++)
    check(w, "a queue", "launching", kjit_launch(kernel, &config, arguments, 2));
  sleep_ms(10);
  kjit_interrupt_stream(stream);
  kjit_status status = kjit_synchronize_stream(stream);
  if (status != KJIT_ERROR_INTERRUPTED) complain(w, "a queue", "expected an interrupt", status);
  check_add(w, "a queue");
  kjit_destroy_stream(stream);
}

static void check_graph(const world *w, kjit_kernel *kernel)
{
  const char *name = "a graph";
  kjit_stream *stream;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_launch_config config = shape_of(NULL);
  int32_t stop[COUNT] = { 1 };
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i64(1) };
  check(w, name, "a stream", kjit_create_stream(w->device, &stream));
  config.stream = stream;
  check(w, name, "capturing", kjit_begin_capture(stream));
  check(w, name, "launching", kjit_launch(kernel, &config, arguments, 2));
  check(w, name, "capturing", kjit_end_capture(stream, &graph));
  if (graph) check(w, name, "instantiating", kjit_instantiate_graph(graph, &executable));
  signalled = w->context;
  struct sigaction action = { .sa_handler = on_signal }, before;
  struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { { 0, 0 }, { 0, 0 } };
  for (int i = 0; i < 2 && executable; i++) {
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    kjit_status status = kjit_launch_graph(executable, stream);
    if (status == KJIT_OK) status = kjit_synchronize_stream(stream);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    if (status != KJIT_ERROR_INTERRUPTED) complain(w, name, "expected an interrupt", status);
    check_add(w, name);
  }
  /* `wait` ends by itself if r[0] is 1, so an earlier interrupt must not end it */
  check(w, name, "stopping it", kjit_copy_from_host(w->r, stop, sizeof stop, NULL));
  if (executable) check(w, name, "launching it again", kjit_launch_graph(executable, stream));
  check(w, name, "launching it again", kjit_synchronize_stream(stream));
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_stream(stream);
}

/* Takes over the memory of a small object that was freed before. malloc keeps several free blocks
 * of each size. */
static void reuse_memory(void)
{
  enum { LEAST = 16, STEP = 16, SIZES = 20, EACH = 64, MARK = 0x5a };
  static volatile char *blocks[SIZES * EACH]; /* volatile, so that the compiler keeps the writes */
  for (size_t i = 0; i < SIZES * EACH; i++) {
    size_t size = LEAST + i / EACH * STEP;
    blocks[i] = malloc(size);
    for (size_t k = 0; blocks[i] && k < size; k++) blocks[i][k] = MARK;
  }
  for (size_t i = 0; i < SIZES * EACH; i++) free((void *)(uintptr_t)blocks[i]);
}

/* Prepared and captured launches whose interrupter the application has destroyed. */
static void check_destroyed(const world *w)
{
  const char *name = "a destroyed interrupter";
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_prepared *prepared = NULL;
  kjit_launch_config config = shape_of(NULL);
  kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_i64(1) };
  check(w, name, "a stream", kjit_create_stream(w->device, &stream));
  check(w, name, "creating", kjit_create_interrupter(w->device, &config.interrupter));
  config.stream = stream;
  check(w, name, "preparing", kjit_prepare_launch(w->add, &config, arguments, 2, &prepared));
  if (!w->is_gpu) { /* on a GPU, a captured launch cannot have an interrupter */
    check(w, name, "capturing", kjit_begin_capture(stream));
    check(w, name, "launching", kjit_launch(w->add, &config, arguments, 2));
    check(w, name, "capturing", kjit_end_capture(stream, &graph));
    if (graph) check(w, name, "instantiating", kjit_instantiate_graph(graph, &executable));
  }
  kjit_destroy_interrupter(config.interrupter);
  reuse_memory();
  if (prepared) check(w, name, "running", kjit_run_prepared(prepared, NULL));
  if (executable) check(w, name, "launching the graph", kjit_launch_graph(executable, stream));
  check(w, name, "waiting", kjit_synchronize_stream(stream));
  kjit_destroy_prepared(prepared);
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_stream(stream);
  check_add(w, name);
}

static void *interrupt_often(void *data)
{
  launcher *l = data;
  while (!atomic_load(&l->has_ended)) {
    sleep_ms(10);
    kjit_interrupt(l->w->context);
  }
  return NULL;
}

static void check_function(const world *w)
{
  static const char text[] =
    "func f(n) { var i = n\n while i != 0 { i = (i * 3) | 1 }\n return i }";
  kjit_module *module = NULL;
  kjit_function *function = NULL;
  launcher l = { .w = w };
  kjit_arg argument = kjit_arg_i64(5), result;
  void (*pointer)(void) = NULL;
  check(w, "a func", "its text",
        kjit_parse_module(w->context, "endless.kir", text, strlen(text), &module));
  check(w, "a func", "it", kjit_get_function(module, "f", &function));
  pthread_create(&l.thread, NULL, interrupt_often, &l);
  kjit_status status = kjit_call_function(function, &argument, 1, &result);
  atomic_store(&l.has_ended, true);
  pthread_join(l.thread, NULL);
  if (status != KJIT_ERROR_INTERRUPTED) complain(w, "a func", "expected an interrupt", status);
  check(w, "a func", "a pointer to it", kjit_get_function_pointer(function, "i64(i64)", &pointer));
  kjit_release_module(module);
}

/* ---- the end of the context ---- */

typedef struct last_launch {
  const world *w;
  kjit_kernel *kernel;
  kjit_status status;
} last_launch;

static void *launch_last(void *data)
{
  last_launch *l = data;
  kjit_launch_config config = shape_of(NULL);
  kjit_arg arguments[] = { kjit_arg_array(l->w->r), kjit_arg_i64(INT64_MAX) };
  l->status = kjit_launch(l->kernel, &config, arguments, 2);
  return NULL;
}

/* Destroying the context waits for the launch, which would never end without the interrupt. On a
 * GPU the launch is still queued when its thread ends. */
static void end_context(const world *w, kjit_kernel *kernel)
{
  const volatile int32_t *r = kjit_get_tensor(w->r)->data;
  kjit_arg array = kjit_arg_array(w->r), zero = kjit_arg_number(0);
  last_launch l = { .w = w, .kernel = kernel };
  pthread_t thread;
  check(w, "the end", "clearing the array", kjit_fill(w->context, &array, &zero, NULL));
  pthread_create(&thread, NULL, launch_last, &l);
  if (w->is_gpu) pthread_join(thread, NULL);
  else
    while (r[1] != 7) sleep_ms(1);
  kjit_interrupt(w->context);
  kjit_destroy_context(w->context);
  if (!w->is_gpu) pthread_join(thread, NULL);
  if (l.status == (w->is_gpu ? KJIT_OK : KJIT_ERROR_INTERRUPTED)) return;
  printf("the end: the last launch: %s\n", kjit_get_status_name(l.status));
  failures++;
}

int main(int argc, char **argv)
{
  static const char add[] =
    "kernel add(r, n) { for i in grid_range(len(r)) { r[i] = n + i32(i) } }",
                    wait[] = "kernel wait(r, n) { while atomic_add(r[0], 0i32) != n { r[1] = 7 } }";
  world w = { .info.size_bytes = sizeof w.info,
              .is_gpu = argc > 1 && strcmp(argv[1], "cuda") == 0 };
  int64_t extent = COUNT;
  kjit_module *modules[2] = { NULL, NULL };
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "", .interruptible = 1 };
  if (kjit_create_context(&config, &w.context) != KJIT_OK) return EXIT_FAILURE;
  kjit_device_kind kind = w.is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  check(&w, "the device", "opening it", kjit_get_device(w.context, kind, 0, &w.device));
  if (!w.device) return EXIT_FAILURE;
  kjit_get_device_info(w.device, &w.info);
  check(&w, "an array", "making it", kjit_create_array(w.device, KJIT_I32, &extent, 1, &w.r));
  w.add = get_kernel(&w, "add", add, "add", &modules[0]);
  kjit_kernel *endless = get_kernel(&w, "wait", wait, "wait", &modules[1]);
  if (failures) return EXIT_FAILURE;
  check_add(&w, "add");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (argc < 3 || strcmp(argv[2], cases[i].name) == 0) check_case(&w, &cases[i]);
  if (argc < 3) {
    printf("each way to interrupt\n");
    fflush(stdout);
    check_signal(&w, endless);
    check_one_of_two(&w, endless, false);
    check_one_of_two(&w, endless, true);
    check_queue(&w, endless);
    check_graph(&w, endless);
    check_function(&w);
    check_destroyed(&w);
  }
  end_context(&w, endless);
  for (int i = 0; i < 2; i++) kjit_release_module(modules[i]);
  kjit_release_array(w.r);
  printf("%d failures\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

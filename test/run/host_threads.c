/* host_threads cpu|cuda: application threads that are cancelled while they compile, launch and
 * print, or that end while their launches are queued; signals during these calls, with and without
 * SA_RESTART; and children that are forked during them.
 *
 * UNSUPPORTED: sanitizer
 * RUN: rm -rf %t && %programs/host_threads cpu %t | FileCheck %s
 * RUN: %if cuda %{ %programs/host_threads cuda %t | FileCheck %s %}
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* CANCELLED is the number of cancelled threads, FORKS the number of children. An alarm ends the
 * test if it hangs. */
enum { N = 2000, CANCELLED = 12, ENDING = 40, ROUNDS = 12, FORKS = 6, PATIENCE_S = 240 };

static const char source[] = "kernel scale(r, x, const k) {\n"
                             "  for i in grid_range(len(r)) { r[i] = x[i] * k + sin(x[i]) }\n"
                             "}\n"
                             "kernel tell(r) {\n"
                             "  r[0] = r[0] + 1\n"
                             "  print(\"told \", r[0])\n"
                             "}\n";

static _Atomic int failures;
static kjit_device_kind kind;
static kjit_context *context;
static kjit_device *device;
static kjit_kernel *scale, *tell;

static void check(bool is_true, const char *what, int line)
{
  char *message = is_true ? NULL : kjit_copy_diagnostics_text(context);
  if (is_true) return;
  failures++;
  printf("line %d: %s\n%s", line, what, message ? message : "");
  free(message);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

/* The application's on_print. write is a cancellation point. */
static void on_print(void *user, const char *lines, size_t size_bytes)
{
  static const char newline = '\n';
  int *null = user;
  (void)lines;
  for (size_t i = 0; i < size_bytes; i++)
    if (write(*null, &newline, 1) != 1) break;
}

static kjit_status open_context(const char *cache, int *null)
{
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = cache,
                         .on_print = on_print,
                         .user = null,
                         .cpu_threads = 2 };
  kjit_module *module = NULL;
  kjit_status status = kjit_create_context(&config, &context);
  if (status == KJIT_OK) status = kjit_get_device(context, kind, 0, &device);
  if (status == KJIT_OK)
    status = kjit_parse_module(context, "source", source, sizeof source - 1, &module);
  if (status == KJIT_OK) status = kjit_get_kernel(module, "scale", &scale);
  if (status == KJIT_OK) status = kjit_get_kernel(module, "tell", &tell);
  return status;
}

/* Launches on host memory with another constant in each round, so that each launch compiles. The
 * result is correct, or the call returns an error. */
static void launch(int constant)
{
  float x[N], r[N] = { 0 };
  int64_t extent[] = { N };
  for (int i = 0; i < N; i++) x[i] = (float)(i % 7);
  kjit_tensor from = kjit_make_tensor(x, KJIT_F32, 1, extent),
              to = kjit_make_tensor(r, KJIT_F32, 1, extent);
  kjit_arg arguments[] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from),
                           kjit_arg_number(constant) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  CHECK(kjit_launch(scale, &config, arguments, 3) == KJIT_OK);
  CHECK(kjit_synchronize_device(device) == KJIT_OK);
  CHECK(r[7] == 0 && r[8] > (float)constant + 0.8f && r[8] < (float)constant + 0.9f);
}

static void print_once(void)
{
  float r[1] = { 0 };
  int64_t extent[] = { 1 };
  kjit_tensor to = kjit_make_tensor(r, KJIT_F32, 1, extent);
  kjit_arg argument = kjit_arg_tensor(&to);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = device, .grid = { 1 }, .block = { 1 }
  };
  CHECK(kjit_launch(tell, &config, &argument, 1) == KJIT_OK);
}

static void wait_ns(long ns)
{
  struct timespec left = { .tv_nsec = ns };
  while (nanosleep(&left, &left)) {}
}

/* ---- cancelled threads ---- */

static _Atomic int begun, ended;

/* On a GPU the driver has its own cancellation points, which the application must avoid. */
static void *launch_until_cancelled(void *number)
{
  int state, first = *(int *)number;
  for (int i = 0;; i++) {
    if (kind == KJIT_DEVICE_CUDA) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    begun++;
    launch(first + i % 3);
    print_once();
    ended++;
    if (kind == KJIT_DEVICE_CUDA) pthread_setcancelstate(state, NULL);
    pthread_testcancel();
  }
  return NULL;
}

/* Two threads at a time need the same code. Running calls end, and no thread waits for a cancelled
 * thread.
 */
static void check_cancelled(void)
{
  pthread_t threads[CANCELLED];
  int numbers[CANCELLED];
  for (int i = 0; i < CANCELLED; i++) {
    numbers[i] = 100 + i / 2 * 3;
    CHECK(!pthread_create(&threads[i], NULL, launch_until_cancelled, &numbers[i]));
    if (i % 2 == 0) continue;
    wait_ns(1000000L * (i * i % 40));
    CHECK(!pthread_cancel(threads[i - 1]) && !pthread_cancel(threads[i]));
  }
  for (int i = 0; i < CANCELLED; i++) {
    void *result = NULL;
    CHECK(!pthread_join(threads[i], &result) && result == PTHREAD_CANCELED);
  }
  CHECK(begun == ended);
  for (int i = 0; i < CANCELLED; i += 2) launch(numbers[i]);
}

/* ---- threads that end ---- */

typedef struct work {
  kjit_array *array;
  int turn;
} work;

/* On a GPU the launch is still queued when the thread ends. Half of the launches use the per-thread
 * stream. */
static void *launch_and_end(void *data)
{
  const work *w = data;
  kjit_stream *stream = NULL;
  kjit_arg number = kjit_arg_number(w->turn), array = kjit_arg_array(w->array);
  kjit_arg arguments[] = { array, array, kjit_arg_number(1) };
  if (w->turn % 2) CHECK(kjit_get_thread_stream(device, &stream) == KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream, .device = device };
  CHECK(kjit_fill(context, &array, &number, stream) == KJIT_OK);
  CHECK(kjit_launch(scale, &config, arguments, 3) == KJIT_OK);
  CHECK(kjit_launch(NULL, &config, arguments, 3) == KJIT_ERROR_MISUSE);
  kjit_release_array(w->array);
  return NULL;
}

static void check_ended(void)
{
  static float found[N];
  const int64_t extent[] = { N };
  for (int i = 0; i < ENDING; i++) {
    work w = { .turn = i };
    pthread_t thread;
    CHECK(kjit_create_array(device, KJIT_F32, extent, 1, &w.array) == KJIT_OK);
    kjit_array *kept = kjit_retain_array(w.array);
    CHECK(!pthread_create(&thread, NULL, launch_and_end, &w));
    CHECK(!pthread_join(thread, NULL));
    CHECK(kjit_synchronize_device(device) == KJIT_OK);
    CHECK(kjit_copy_to_host(kept, found, sizeof found, NULL) == KJIT_OK);
    CHECK(found[N - 1] >= (float)i - 1 && found[N - 1] <= (float)i + 1);
    kjit_release_array(kept);
  }
}

/* ---- signals ---- */

static _Atomic int signals;

static void count_signal(int number) { signals += number != 0; }

/* Starts two timers: one signal interrupts system calls, and the other restarts them. */
static void set_storm(long period_us)
{
  struct sigaction breaks = { .sa_handler = count_signal },
                   restarts = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
  struct itimerval period = { { 0, period_us }, { 0, period_us } };
  sigaction(SIGVTALRM, &breaks, NULL);
  sigaction(SIGPROF, &restarts, NULL);
  sigaction(SIGUSR1, &breaks, NULL);
  setitimer(ITIMER_VIRTUAL, &period, NULL);
  setitimer(ITIMER_PROF, &period, NULL);
}

static _Atomic bool is_over;

/* Sends signals to a waiting thread. The timers count processor time, which a waiting thread does
 * not use. */
static void *send_signals(void *target)
{
  while (!is_over) {
    pthread_kill(*(pthread_t *)target, SIGUSR1);
    wait_ns(200000);
  }
  return NULL;
}

static void check_signals(void)
{
  pthread_t self = pthread_self(), sender;
  void *code;
  size_t size_bytes;
  is_over = false;
  set_storm(500);
  CHECK(!pthread_create(&sender, NULL, send_signals, &self));
  for (int i = 0; i < ROUNDS || signals < ROUNDS; i++) {
    launch(200 + i % ROUNDS);
    print_once();
  }
  /* here the caller waits for a thread of kjit */
  CHECK(kjit_compile(scale, "f32[:], f32[:], 5", NULL, KJIT_STAGE_OBJECT, &code, &size_bytes) ==
        KJIT_OK);
  kjit_free(context, code);
  CHECK(kjit_trim_cache(context, 0, NULL, NULL) == KJIT_OK);
  is_over = true;
  pthread_join(sender, NULL);
  set_storm(0);
}

/* ---- children ---- */

static void *launch_until_over(void *first)
{
  for (int i = *(int *)first; !is_over; i++) launch(i);
  return NULL;
}

/* The child's calls on objects of the parent are rejected. A new context works, with a GPU only if
 * the parent has not used it. */
static int be_child(int *null)
{
  float x[1] = { 2 };
  int64_t extent[] = { 1 };
  kjit_tensor tensor = kjit_make_tensor(x, KJIT_F32, 1, extent);
  kjit_arg arguments[] = { kjit_arg_tensor(&tensor), kjit_arg_tensor(&tensor), kjit_arg_number(2) };
  alarm(PATIENCE_S / 2);
  if (kjit_launch(scale, NULL, arguments, 3) != KJIT_ERROR_FORKED) return 1;
  if (!strstr(kjit_get_diagnostic(context, 0)->message, "before fork()")) return 2;
  if (kjit_destroy_context(context) != KJIT_ERROR_FORKED) return 3;
  kind = KJIT_DEVICE_CPU;
  if (open_context("", null) != KJIT_OK) return 4;
  launch(300);
  return kjit_destroy_context(context) == KJIT_OK && !failures ? 0 : 5;
}

static void check_forks(int *null)
{
  pthread_t threads[2];
  int firsts[] = { 1000, 5000 };
  is_over = false;
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_create(&threads[i], NULL, launch_until_over, &firsts[i]));
  for (int i = 0; i < FORKS; i++) {
    int status = -1;
    wait_ns(7000000);
    fflush(stdout);
    pid_t child = fork();
    if (!child) _exit(be_child(null));
    CHECK(waitpid(child, &status, 0) == child);
    if (status) printf("a child ends with %#x\n", (unsigned)status);
    CHECK(status == 0);
  }
  is_over = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
  FILE *file = fopen("/dev/null", "w");
  int null = file ? fileno(file) : -1;
  if (count != 3 || null < 0) return EXIT_FAILURE;
  kind = strcmp(arguments[1], "cuda") ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  alarm(PATIENCE_S);
  CHECK(open_context(arguments[2], &null) == KJIT_OK);
  check_cancelled();
  check_ended();
  check_signals();
  check_forks(&null);
  CHECK(kjit_destroy_context(context) == KJIT_OK);
  fclose(file);
  printf("%d failures\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

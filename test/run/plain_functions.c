/* Plain code of funcs that the application calls (kjit_config.plain_code): the first call runs it,
 * and calls run the best code when it is ready. Loops in C compute the expected values. The tests
 * check which funcs have plain code, and which calls need the best code. They also cover
 * expressions, formulas, threads, failures, interrupts, and contexts that are destroyed early.
 * RUN: %programs/plain_functions
 */
#include <kjit/kjit.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

enum { N = 1000, THREADS = 4 };

static const char text[] =
  "func total(x: f64[:] C) { var s = 0.0\n  for i in range(len(x)) { s = s + x[i] }\n  return s }\n"
  "func mixed(x: f64[:] C) { var h = 17\n"
  "  for i in range(len(x)) { h = h * 31 ^ i64(x[i]) }\n  return f64(h & 0xffffff) }\n"
  "func strict(x: f64[:] C) @strict { var s = 0.0\n"
  "  for i in range(len(x)) { s = x[i] * 0.3 + s }\n  return s }\n"
  /* the best code may round in another way */
  "func fused(x: f64[:] C) { var s = 0.0\n"
  "  for i in range(len(x)) { s = x[i] * 0.3 + s }\n  return s }\n"
  "func nested(x: f64[:] C) { var s = 0.0\n"
  "  for k in range(60) { for j in range(60) { s = s + x[k * j % len(x)] } }\n  return s }\n"
  "func depth(n: i64) { if n == 0 { return 0 }\n  return 1 + depth(n - 1) }\n"
  "func checked(x: f64[:] C) { if x[3] < 2 { raise \"too small\" }\n  return x[0] }\n";

/* ---- a context ---- */

typedef struct world {
  kjit_context *context;
  kjit_module *module;
  double x[N];
  int warnings;
  /* `begun` counts the compilations of the func `held`, or of all funcs if it is NULL. Only
   * `allowed` of them may begin; the others wait. */
  const char *held;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int begun, allowed;
} world;

static void note(void *user, const kjit_diagnostic *diagnostic)
{
  world *w = user;
  if (diagnostic->severity == KJIT_SEVERITY_WARNING &&
      strstr(diagnostic->message, "function `nested`: calls keep their plain code"))
    w->warnings++;
}

static void hold(void *user, const char *name, const char *stage)
{
  world *w = user;
  if (!stage || strcmp(stage, "llvm") || (w->held && strcmp(name, w->held))) return;
  pthread_mutex_lock(&w->mutex);
  w->begun++;
  pthread_cond_broadcast(&w->changed);
  while (w->begun > w->allowed) pthread_cond_wait(&w->changed, &w->mutex);
  pthread_mutex_unlock(&w->mutex);
}

static void allow(world *w, int count)
{
  pthread_mutex_lock(&w->mutex);
  w->allowed = count;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
}

static void open_world(world *w, kjit_config config)
{
  *w = (world){ .allowed = 1000000 };
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
  config.size_bytes = sizeof config;
  config.on_diagnostic = note;
  config.on_stage = hold;
  config.user = w;
  config.cache_directory = "";
  REQUIRE(kjit_create_context(&config, &w->context) == KJIT_OK);
  REQUIRE(kjit_parse_module(w->context, "plain", text, strlen(text), &w->module) == KJIT_OK);
  for (int i = 0; i < N; i++) w->x[i] = sin(i) * 1000;
}

static void close_world(world *w)
{
  kjit_release_module(w->module);
  REQUIRE(kjit_destroy_context(w->context) == KJIT_OK);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->mutex);
}

static kjit_function *function_of(const world *w, const char *name)
{
  kjit_function *function;
  REQUIRE(kjit_get_function(w->module, name, &function) == KJIT_OK);
  return function;
}

static kjit_status call(world *w, const char *name, double *value)
{
  const int64_t count = N;
  kjit_tensor tensor = kjit_make_tensor(w->x, KJIT_F64, 1, &count);
  kjit_arg x = kjit_arg_tensor(&tensor), result;
  kjit_status status = kjit_call_function(function_of(w, name), &x, 1, &result);
  if (status == KJIT_OK) memcpy(value, &result.value, sizeof *value);
  return status;
}

static uint64_t count_compilations(const world *w)
{
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  REQUIRE(kjit_get_statistics(w->context, &statistics) == KJIT_OK);
  return statistics.compilations;
}

/* ---- which funcs have plain code, and its values ---- */

static double total_of(const world *w)
{
  double s = 0;
  for (int i = 0; i < N; i++) s += w->x[i];
  return s;
}

static double mixed_of(const world *w)
{
  uint64_t h = 17;
  for (int i = 0; i < N; i++) h = h * 31 ^ (uint64_t)(int64_t)w->x[i];
  return (double)(h & 0xffffff);
}

/* Each product and each sum is rounded, also by a compiler that may fuse them. */
static double strict_of(const world *w)
{
  double s = 0;
  for (int i = 0; i < N; i++) {
    volatile double product = w->x[i] * 0.3;
    s = product + s;
  }
  return s;
}

static const struct row {
  const char *name;
  double (*expected)(const world *w);
} equal[] = { { "total", total_of }, { "mixed", mixed_of }, { "strict", strict_of } };
enum { EQUAL = sizeof equal / sizeof *equal };

static bool is_same(double a, double b) { return !memcmp(&a, &b, sizeof a); }

/* Calls before and after the best code is ready, which makes it the only code that can be found.
 * Returns the number of compilations. */
static uint64_t call_both(world *w, const char *name, double values[2])
{
  uint64_t before = count_compilations(w);
  REQUIRE(call(w, name, &values[0]) == KJIT_OK);
  REQUIRE(kjit_wait_background(w->context) == KJIT_OK);
  uint64_t compiled = count_compilations(w) - before;
  REQUIRE(call(w, name, &values[1]) == KJIT_OK);
  REQUIRE(kjit_wait_background(w->context) == KJIT_OK);
  REQUIRE(count_compilations(w) == before + compiled);
  return compiled;
}

static void test_kinds(void)
{
  static const kjit_plain_code kinds[] = { KJIT_PLAIN_DEFAULT, KJIT_PLAIN_NEVER, KJIT_PLAIN_EQUAL,
                                           KJIT_PLAIN_ALWAYS };
  for (int k = 0; k < 4; k++) {
    world w;
    double values[2];
    bool has_plain = kinds[k] == KJIT_PLAIN_EQUAL || kinds[k] == KJIT_PLAIN_ALWAYS;
    open_world(&w, (kjit_config){ .plain_code = kinds[k] });
    for (int i = 0; i < EQUAL; i++) {
      REQUIRE(call_both(&w, equal[i].name, values) == (has_plain ? 2 : 1));
      REQUIRE(is_same(values[0], equal[i].expected(&w)) && is_same(values[1], values[0]));
    }
    REQUIRE(call_both(&w, "fused", values) == (kinds[k] == KJIT_PLAIN_ALWAYS ? 2 : 1));
    for (int i = 0; i < 2; i++) REQUIRE(fabs(values[i] - strict_of(&w)) < 1e-6);
    REQUIRE(!w.warnings);
    close_world(&w);
  }
}

/* A child process compiles plain code as well. Debug information has none. */
static void test_contexts(void)
{
  world w;
  double values[2];
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .compile_in_child = 1 });
  REQUIRE(call_both(&w, "total", values) == 2 && is_same(values[0], total_of(&w)));
  close_world(&w);
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .debug = KJIT_DEBUG_LINES });
  REQUIRE(call_both(&w, "total", values) == 1 && is_same(values[0], total_of(&w)));
  close_world(&w);
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .interruptible = 1 });
  REQUIRE(call_both(&w, "total", values) == 2 && is_same(values[0], total_of(&w)));
  close_world(&w);
}

static void test_expressions(void)
{
  static const char *const names[] = { "a", "b" };
  static const char source[] = "(a ^ b) * 7 + (a >> 3)";
  const kjit_expression_options options = { .size_bytes = sizeof options,
                                            .parameters = names,
                                            .parameter_count = 2 };
  world w;
  kjit_module *module;
  kjit_function *function;
  kjit_arg arguments[] = { kjit_arg_i64(12345), kjit_arg_i64(-99) }, result;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  REQUIRE(kjit_parse_expression(w.context, &options, source, strlen(source), &module, &function) ==
          KJIT_OK);
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_call_function(function, arguments, 2, &result) == KJIT_OK);
    REQUIRE(result.value.i == (12345 ^ -99) * 7 + (12345 >> 3));
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
    REQUIRE(count_compilations(&w) == 2);
  }
  kjit_release_module(module);
  close_world(&w);
}

/* Formulas over columns are kernels: they have plain code under the same setting. */
static void test_formulas(void)
{
  static const char source[] = "n % 7 + where(n > 500, n, -n)";
  static const kjit_formula_column columns[] = { { "n", KJIT_I64, 0, 0 } };
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = 1 };
  static int64_t n[N], r[N];
  const kjit_column given = { n, NULL, 0 }, result = { r, NULL, 0 };
  world w;
  kjit_formula *formula;
  for (int i = 0; i < N; i++) n[i] = i;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  REQUIRE(kjit_create_formula(w.context, &options, source, strlen(source), &formula) == KJIT_OK);
  for (int round = 0; round < 3; round++) {
    memset(r, 0, sizeof r);
    REQUIRE(kjit_run_formula(formula, &given, &result, N, NULL) == KJIT_OK);
    for (int i = 0; i < N; i++) REQUIRE(r[i] == i % 7 + (i > 500 ? i : -i));
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
    REQUIRE(count_compilations(&w) == 2);
  }
  kjit_destroy_formula(formula);
  close_world(&w);
}

/* ---- calls while the best code is compiled ---- */

static void *call_total(void *data)
{
  world *w = data;
  double value;
  REQUIRE(call(w, "total", &value) == KJIT_OK && is_same(value, total_of(w)));
  return NULL;
}

/* Calls run plain code until the best code is there. After a stricter setting they wait for it. */
static void test_waiting(void)
{
  world w;
  pthread_t waiting;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  allow(&w, 1);
  for (int i = 0; i < 3; i++) (void)call_total(&w);
  REQUIRE(count_compilations(&w) == 1);
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_NEVER) == KJIT_OK);
  REQUIRE(!pthread_create(&waiting, NULL, call_total, &w));
  allow(&w, 2);
  pthread_join(waiting, NULL);
  REQUIRE(count_compilations(&w) == 2 && w.begun == 2);
  (void)call_total(&w);
  REQUIRE(count_compilations(&w) == 2);
  close_world(&w);
}

/* The only background thread is busy with another func. A call that needs the best code compiles it
 * and does not wait for this thread. */
static void test_hurry(void)
{
  world w;
  double value;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .compile_threads = 1 });
  w.held = "mixed";
  allow(&w, 1);
  REQUIRE(call(&w, "mixed", &value) == KJIT_OK && call(&w, "total", &value) == KJIT_OK);
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_NEVER) == KJIT_OK);
  REQUIRE(call(&w, "total", &value) == KJIT_OK && is_same(value, total_of(&w)));
  REQUIRE(count_compilations(&w) == 3);
  allow(&w, 2);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK && count_compilations(&w) == 4);
  close_world(&w);
}

/* A function pointer is always the best code. */
static void test_pointer(void)
{
  world w;
  double value;
  void (*found)(void);
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_ALWAYS, .checks = KJIT_CHECK_NONE });
  allow(&w, 1);
  REQUIRE(call(&w, "fused", &value) == KJIT_OK && count_compilations(&w) == 1);
  allow(&w, 2);
  REQUIRE(kjit_get_function_pointer(function_of(&w, "fused"), "f64(f64[:] C)", &found) == KJIT_OK);
  REQUIRE(count_compilations(&w) == 2);
  double best = ((double (*)(const double *, int64_t))found)(w.x, N);
  REQUIRE(call(&w, "fused", &value) == KJIT_OK && is_same(value, best));
  close_world(&w);
}

/* Errors of the func and deep recursion are the same in both codes. */
static void test_errors(void)
{
  world w;
  double value;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  char *messages[2];
  w.x[3] = 0;
  for (int i = 0; i < 2; i++) {
    REQUIRE(call(&w, "checked", &value) == KJIT_ERROR_KERNEL);
    messages[i] = kjit_copy_diagnostics_text(w.context);
    REQUIRE(messages[i] && strstr(messages[i], "too small"));
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  }
  REQUIRE(!strcmp(messages[0], messages[1]) && count_compilations(&w) == 2);
  for (int i = 0; i < 2; i++) kjit_free(w.context, messages[i]);
  for (int i = 0; i < 2; i++) {
    kjit_arg n = kjit_arg_i64(1000), result;
    REQUIRE(kjit_call_function(function_of(&w, "depth"), &n, 1, &result) == KJIT_OK);
    REQUIRE(result.value.i == 1000 && kjit_wait_background(w.context) == KJIT_OK);
    n = kjit_arg_i64((int64_t)1 << 40);
    REQUIRE(kjit_call_function(function_of(&w, "depth"), &n, 1, &result) == KJIT_ERROR_KERNEL);
  }
  REQUIRE(count_compilations(&w) == 4);
  close_world(&w);
}

/* ---- threads, failures, early ends ---- */

typedef struct racer {
  pthread_t thread;
  world *world;
  pthread_barrier_t *start;
} racer;

static void *race(void *data)
{
  const racer *own = data;
  for (int i = 0; i < EQUAL; i++) {
    pthread_barrier_wait(own->start);
    for (int k = 0; k < 20; k++) {
      double value;
      REQUIRE(call(own->world, equal[i].name, &value) == KJIT_OK);
      REQUIRE(is_same(value, equal[i].expected(own->world)));
    }
  }
  return NULL;
}

static void test_threads(void)
{
  world w;
  racer racers[THREADS];
  pthread_barrier_t start;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){ .world = &w, .start = &start };
    REQUIRE(!pthread_create(&racers[i].thread, NULL, race, &racers[i]));
  }
  for (int i = 0; i < THREADS; i++) pthread_join(racers[i].thread, NULL);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  uint64_t count = count_compilations(&w);
  /* no call has to compile the best code */
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_NEVER) == KJIT_OK);
  for (int i = 0; i < EQUAL; i++) {
    double value;
    REQUIRE(call(&w, equal[i].name, &value) == KJIT_OK);
  }
  REQUIRE(count_compilations(&w) == count);
  pthread_barrier_destroy(&start);
  close_world(&w);
}

/* Only the best code is unrolled. It exceeds the limit of instructions, and calls keep the plain
 * code, with one warning. */
static void test_failure(void)
{
  kjit_compile_limits limits = { .size_bytes = sizeof limits, .instructions = 300 };
  world w;
  double expected = 0, value;
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .compile_limits = &limits });
  for (int k = 0; k < 60; k++)
    for (int j = 0; j < 60; j++) expected += w.x[k * j % N];
  for (int i = 0; i < 4; i++) {
    REQUIRE(call(&w, "nested", &value) == KJIT_OK && is_same(value, expected));
    REQUIRE(kjit_wait_background(w.context) == KJIT_OK);
  }
  REQUIRE(w.warnings == 1 && count_compilations(&w) == 1);
  close_world(&w);
}

/* Contexts and modules that end while the best code is compiled or queued; an interrupt ends a
 * compilation, and the next call starts it again; a context whose background has ended. */
static void test_early_end(void)
{
  world w;
  double value;
  for (int round = 0; round < 6; round++) {
    open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL, .compile_threads = 1 });
    for (int i = 0; i < EQUAL; i++) REQUIRE(call(&w, equal[i].name, &value) == KJIT_OK);
    close_world(&w);
  }
  open_world(&w, (kjit_config){ .plain_code = KJIT_PLAIN_EQUAL });
  allow(&w, 1);
  REQUIRE(call(&w, "total", &value) == KJIT_OK);
  pthread_mutex_lock(&w.mutex);
  while (w.begun < 2) pthread_cond_wait(&w.changed, &w.mutex);
  pthread_mutex_unlock(&w.mutex);
  kjit_interrupt(w.context);
  allow(&w, 1000000);
  REQUIRE(kjit_wait_background(w.context) == KJIT_OK && count_compilations(&w) == 1);
  double values[2];
  REQUIRE(call_both(&w, "total", values) == 1 && is_same(values[0], total_of(&w)));
  REQUIRE(!w.warnings);
  kjit_stop_background(w.context);
  REQUIRE(call_both(&w, "mixed", values) == 1 && is_same(values[0], mixed_of(&w)));
  REQUIRE(kjit_set_plain_code(w.context, KJIT_PLAIN_NEVER) == KJIT_OK);
  REQUIRE(call_both(&w, "mixed", values) == 0); /* it was the best code */
  close_world(&w);
}

int main(void)
{
  test_kinds();
  test_contexts();
  test_expressions();
  test_formulas();
  test_waiting();
  test_hurry();
  test_pointer();
  test_errors();
  test_threads();
  test_failure();
  test_early_end();
  return 0;
}

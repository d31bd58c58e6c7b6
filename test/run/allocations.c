/* Each allocation of kjit's own code fails in turn, while a module is parsed, built, changed and
 * compiled for a GPU and for the CPU, and while its kernel is launched: once only this allocation,
 * and once this and all later allocations. The failing call returns KJIT_ERROR_MEMORY, or succeeds
 * without keeping data that it would have cached. The context works afterwards, and LeakSanitizer
 * finds no leak. Allocations of LLVM are not tested, because LLVM ends the process if one fails.
 *
 * The test needs the hostile build, whose allocations call kjit_fails_allocation. It has three
 * optional arguments. The first is the number of allocations of each step that fail (0, the
 * default: all). They are evenly distributed over the step, from a random one on, so that over many
 * runs each allocation fails. The second is the number of that choice (0, the default: another
 * choice in each run, which is printed). The third is the name of the only step to run; the result
 * of each failure is then printed.
 * REQUIRES: hostile
 * RUN: %programs/allocations 100
 */
#include <kjit/kjit.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"

/* ---- allocations that fail ---- */

static atomic_long allocations; /* number of allocations since fail_from was set */
/* number of the first allocation that fails; 0 means that none fails */
static atomic_long fail_from;
static atomic_bool fails_on; /* true if all later allocations fail as well */
static int is_verbose;

__attribute__((visibility("default"))) int kjit_fails_allocation(void);
int kjit_fails_allocation(void)
{
  long number = atomic_fetch_add(&allocations, 1) + 1, from = atomic_load(&fail_from);
  return from && (number == from || (number > from && atomic_load(&fails_on)));
}

#define REQUIRE(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1); \
    } \
  } while (0)

/* ---- the calls of an application ---- */

static const char text[] =
  "import \"random\"\n"
  "import \"other\"\n"
  "const TABLE: f32[2, 3] = { { 1, 2, 3 }, { 4, 5, 6.5 } }\n"
  "const SIZE = 2 * 3 + 1\n"
  "struct Point @align(16) { x: f32; y: f32; history: i32[SIZE] }\n"
  "extern func outside(x: f64, n: i32) -> f64\n"
  "func twice(f: func, x) { return f(f(x)) }\n"
  "func power(x, const n) @inline { return x ** n }\n"
  "func fib(n: i32) -> i64 { return n < 2 ? i64(n) : fib(n - 1) + fib(n - 2) }\n"
  "kernel k(r, x, points: Point[:], n: i32, const W = 4) @block(32) @grid(2) {\n"
  "  shared tile: f32[32, W]\n"
  "  shared own: i32[n]\n"
  "  local mine: f32[W]\n"
  "  let t = i32(threadIdx.x)\n"
  "  for i in range(W) @unroll { mine[i] = x[t * W + i] }\n"
  "  var sum: f32 = 0\n"
  "  for i in range(W) { tile[t, i] = mine[i] * TABLE[i % 2, t % 3]; sum += power(mine[i], 3) }\n"
  "  syncthreads()\n"
  "  if t < n { own[t] = t } else { own[0] = 1 }\n"
  "  syncthreads()\n"
  "  let p = points[t % len(points)]\n"
  "  sum += shfl_xor_sync(0xffffffff, sum, 1) + p.x + f32(p.history[t % SIZE])\n"
  "  assert n > 0, \"n is positive\"\n"
  "  atomic_add(points[0].history[1], 1)\n"
  "  r[t] = sum + tile[31 - t, 1:3][0] + f32(fib(t % 4)) + twice(sqrt, sum) + helped(f32(t))\n"
  "}\n"
  "kernel each(r, x) { for i in grid_range(len(r)) { r[i] = sin(x[i]) / 2 + x[i] } }\n";

static const char other[] = "func helped(x) { return x + 1 }\n";

static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *import)
{
  (void)user;
  (void)importer;
  if (strcmp(name, "other") != 0) return 0;
  import->name = name;
  import->text = other;
  import->text_bytes = sizeof other - 1;
  return 1;
}

static double outside(double x, int32_t n) { return x * n; }

typedef struct host {
  kjit_context *context;
  kjit_module *module; /* a parsed module, for the steps that start with one */
} host;

#define TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

static kjit_status parse(host *h)
{
  kjit_module *module;
  char *printed = NULL;
  TRY(kjit_parse_module(h->context, "text", text, sizeof text - 1, &module));
  kjit_status status = kjit_copy_module_text(module, &printed);
  kjit_free(h->context, printed);
  kjit_release_module(module);
  return status;
}

/* Parses a text with errors, whose messages need memory as well. */
static kjit_status refuse(host *h)
{
  static const char wrong[] = "kernel k(x) { x[0] = sqroot(y) + a.sum() }\nkernel l(x) { x = 1 }\n";
  kjit_module *module;
  kjit_status status = kjit_parse_module(h->context, "wrong", wrong, sizeof wrong - 1, &module);
  REQUIRE(status != KJIT_OK);
  return status == KJIT_ERROR_NAME ? KJIT_OK : status;
}

static kjit_status build(host *h)
{
  static const int64_t shape[] = { 2, 2 };
  static const float data[] = { 1, 2, 3, 4 };
  kjit_builder *b;
  kjit_module *module;
  TRY(kjit_create_builder(h->context, "built", &b));
  kjit_set_builder_location(b, "front.end", 3, 4);
  kjit_node table = kjit_build_constant(b, "table", KJIT_F32, data, shape, 2);
  kjit_build_begin_function(b, "scaled", KJIT_ANY);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_build_return(b, kjit_build_binary(b, KJIT_OP_MUL, x, kjit_build_float(b, 2.5)));
  kjit_build_end(b);
  kjit_build_begin_kernel(b, "k");
  kjit_type array = kjit_get_array_type(h->context, KJIT_F32, 1, KJIT_LAYOUT_C, 0);
  kjit_node r = kjit_build_parameter(b, "r", array),
            n = kjit_build_const_parameter(b, "n", kjit_build_integer(b, 3)),
            sixteen = kjit_build_integer(b, 16);
  kjit_build_attribute(b, "block", &sixteen, 1);
  kjit_node extent = kjit_build_integer(b, 16),
            tile = kjit_build_shared(b, "tile", KJIT_F32, &extent, 1);
  kjit_node t = kjit_build_let(b, "t", kjit_build_call(b, "threadIdx.x", NULL, 0)),
            sum = kjit_build_var(b, "sum", KJIT_F32, kjit_build_float(b, 0));
  kjit_node i = kjit_build_for_range(b, "i", 0, n, 0), at[] = { i, kjit_build_integer(b, 1) },
            element = kjit_build_index(b, table, at, 2);
  kjit_build_assign(b, sum, KJIT_OP_ADD, kjit_build_call(b, "scaled", &element, 1));
  kjit_build_end(b);
  kjit_build_assign(b, kjit_build_index(b, tile, &t, 1), KJIT_OP_STORE, sum);
  kjit_build_evaluate(b, kjit_build_call(b, "syncthreads", NULL, 0));
  kjit_build_if(b, kjit_build_binary(b, KJIT_OP_LT, t, kjit_build_integer(b, 4)));
  kjit_build_assign(b, kjit_build_index(b, r, &t, 1), KJIT_OP_STORE,
                    kjit_build_index(b, tile, &t, 1));
  kjit_build_end(b);
  kjit_build_end(b);
  kjit_status status = kjit_finish_builder(b, &module);
  kjit_destroy_builder(b);
  if (status == KJIT_OK) kjit_release_module(module);
  return status;
}

static kjit_status change(host *h)
{
  kjit_module *bound = NULL, *set = NULL;
  kjit_arg seven = kjit_arg_i32(7);
  static const char library_text[] = "func outside(x, n) { return x * n }\n";
  kjit_module *library = NULL, *linked = NULL;
  kjit_status status =
    kjit_bind_extern(h->module, "outside", (void (*)(void))outside, NULL, 0, &bound);
  if (status == KJIT_OK)
    status =
      kjit_parse_module(h->context, "library", library_text, sizeof library_text - 1, &library);
  if (status == KJIT_OK) status = kjit_link_module(h->module, library, &linked);
  if (status == KJIT_OK) {
    static const char constant_text[] = "const N = 4\nkernel k(r) { r[0] = N }\n";
    kjit_module *constants = NULL;
    status =
      kjit_parse_module(h->context, "c", constant_text, sizeof constant_text - 1, &constants);
    if (status == KJIT_OK) status = kjit_set_constant(constants, "N", &seven, &set);
    if (constants) kjit_release_module(constants);
  }
  if (bound) kjit_release_module(bound);
  if (library) kjit_release_module(library);
  if (linked) kjit_release_module(linked);
  if (set) kjit_release_module(set);
  return status;
}

static kjit_status compile(host *h, const char *target, kjit_stage stage)
{
  kjit_kernel *kernel;
  kjit_compile_options options = { .size_bytes = sizeof options };
  void *code = NULL;
  size_t size_bytes;
  TRY(kjit_get_kernel(h->module, "k", &kernel));
  options.target = target;
  options.checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_ASSERT;
  kjit_status status = kjit_compile(kernel, "f32[:] C, f32[:], Point[:] C, i32, 4", &options, stage,
                                    &code, &size_bytes);
  kjit_free(h->context, code);
  return status;
}

static kjit_status compile_ptx(host *h) { return compile(h, "sm_90", KJIT_STAGE_PTX); }
static kjit_status compile_object(host *h) { return compile(h, "cpu", KJIT_STAGE_OBJECT); }

/* Launches a kernel of a new module, so that no cache has its code. */
static kjit_status launch(host *h)
{
  float r[100], x[100] = { 0 };
  int64_t count = 100;
  kjit_tensor to = { .data = r,
                     .device_type = 1,
                     .rank = 1,
                     .code = 2,
                     .bits = 32,
                     .lanes = 1,
                     .shape = &count },
              from = to;
  from.data = x;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_device *cpu;
  for (int i = 0; i < 100; i++) r[i] = -1;
  TRY(kjit_get_device(h->context, KJIT_DEVICE_CPU, 0, &cpu));
  TRY(kjit_parse_module(h->context, "text", text, sizeof text - 1, &module));
  kjit_arg arguments[] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu };
  kjit_status status = kjit_get_kernel(module, "each", &kernel);
  if (status == KJIT_OK) status = kjit_launch(kernel, &config, arguments, 2);
  REQUIRE(status != KJIT_OK || (r[0] == 0 && r[99] == 0));
  kjit_release_module(module);
  return status;
}

/* ---- each allocation fails ---- */

typedef struct step {
  const char *name;
  kjit_status (*run)(host *h);
} step;

static host open_host(void)
{
  host h = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  config.find_import = find_import;
  config.cache_directory = "";
  REQUIRE(kjit_create_context(&config, &h.context) == KJIT_OK);
  kjit_status status = kjit_parse_module(h.context, "text", text, sizeof text - 1, &h.module);
  if (status != KJIT_OK) fputs(kjit_copy_diagnostics_text(h.context), stderr);
  REQUIRE(status == KJIT_OK);
  return h;
}

static void close_host(host *h)
{
  kjit_release_module(h->module);
  kjit_destroy_context(h->context);
}

/* Returns the number of allocations of the step in a new context. */
static long measure(const step *s)
{
  host h = open_host();
  atomic_store(&allocations, 0);
  REQUIRE(s->run(&h) == KJIT_OK);
  long made = atomic_load(&allocations);
  close_host(&h);
  return made;
}

static void fail(const step *s, long from, int on)
{
  host h = open_host();
  atomic_store(&allocations, 0);
  atomic_store(&fails_on, on);
  atomic_store(&fail_from, from);
  kjit_status status = s->run(&h);
  atomic_store(&fail_from, 0);
  char *said = kjit_copy_diagnostics_text(h.context);
  /* if all later allocations fail, there is no memory for a message either */
  int is_named =
    status == KJIT_OK || (status == KJIT_ERROR_MEMORY && (on || (said && strstr(said, "memory"))));
  if (!is_named)
    fprintf(stderr, "%s: allocation %ld%s failed: %s\n%s\n", s->name, from,
            on ? " and all later ones" : "", kjit_get_status_name(status), said ? said : "");
  REQUIRE(is_named);
  if (is_verbose) printf("%ld%s: %s\n", from, on ? " and on" : "", status ? said : "works\n");
  kjit_free(h.context, said);
  status = s->run(&h);
  if (status != KJIT_OK)
    fprintf(stderr, "%s: after allocation %ld had failed: %s\n", s->name, from,
            kjit_get_status_name(status));
  REQUIRE(status == KJIT_OK);
  close_host(&h);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

int main(int argc, char **argv)
{
  static const step steps[] = { { "parse", parse },
                                { "refuse", refuse },
                                { "build", build },
                                { "change", change },
                                { "compile for a GPU", compile_ptx },
                                { "compile for the CPU", compile_object },
                                { "launch", launch } };
  long most = argc > 1 ? atol(argv[1]) : 0;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  if (!seed) seed = kj_draw_seed();
  uint64_t state = seed;
  is_verbose = argc > 3;
  printf("choice %llu\n", (unsigned long long)seed);
  fflush(stdout);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    const step *s = &steps[i];
    if (argc > 3 && strcmp(argv[3], s->name) != 0) continue;
    /* runs the step once, so that later runs do not include work that a process does only once */
    (void)measure(s);
    long made = measure(s), tried = most && most < made ? most : made;
    REQUIRE(made > 10); /* otherwise the build does not call kjit_fails_allocation */
    double stride = (double)made / (double)tried, start = (double)(draw(&state) >> 11) * 0x1p-53;
    for (long k = 0; k < tried; k++) {
      long from = 1 + (long)(((double)k + start) * stride);
      fail(s, from, 0);
      if (tried == made || draw(&state) % 4 == 0) fail(s, from, 1);
    }
    printf("%s: %ld allocations, %ld failed in turn\n", s->name, made, tried);
  }
  return 0;
}

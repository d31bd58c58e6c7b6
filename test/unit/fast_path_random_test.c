/* Launches with random configurations and arguments: the fast path gives the results of the slow
 * path, or declines. */
#include "fast_launches.h"

#include <kjit/code.h>

#include "launch/fast_path.h"

/* ---- random configurations ---- */

static const char shapes[] =
  "kernel set(r, n) { r[threadIdx.x] = n }\n"
  "kernel fill(r, n) { for i in grid_range(len(r)) { r[i] = n } }\n"
  "kernel some(r, n) { for i in grid_range(n) { r[i] = 1 } }\n"
  "kernel two(r, n) { for i, j in grid_range(r.shape[-1], n) { r[i] = j } }\n"
  "kernel both(r, n) {\n  r[0] = n\n  for i in grid_range(r.size) { r[i] = 1 }\n  for j in "
  "grid_range(n + 1) { r[j] = 2 }\n}\n"
  "kernel placed(r, n) @grid(ceil_div(len(r), 64)) { r[threadIdx.x] = n }\n"
  "kernel fixed(r, n) @block(8, 4) { r[threadIdx.x] = n }\n"
  "kernel whole(r, n) @block(n, 2) @grid(len(r), 3) { r[threadIdx.x] = n }\n"
  "kernel ranged(r, n) @block(32) { for i in grid_range(len(r)) { r[i] = n } }\n"
  "kernel few(r, n) @grid(n) { for i in grid_range(len(r)) { r[i] = n } }\n"
  "kernel bounded(r, n) @launch_bounds(128) { for i in grid_range(len(r)) { r[i] = n } }\n";

static uint32_t draw(uint32_t below)
{
  static uint64_t seed = 20261120;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33) % below;
}

static uint32_t pick(const uint32_t *values, uint32_t count) { return values[draw(count)]; }
#define PICK(...) \
  pick((const uint32_t[]){ __VA_ARGS__ }, \
       sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static kjit_launch_config draw_config(kjit_device *const devices[3], kjit_stream *const streams[3])
{
  kjit_launch_config config = { .size_bytes = sizeof config };
  for (int i = 0; i < 3; i++) {
    if (draw(3) != 0) config.grid[i] = PICK(0, 0, 1, 2, 7, 65535, 65536, INT32_MAX, UINT32_MAX);
    if (draw(3) != 0)
      config.block[i] = PICK(0, 0, 1, 2, 32, 64, 65, 128, 1024, 1025, 65536, UINT32_MAX);
    if (draw(24) == 0) config.cluster[i] = PICK(0, 1, 2);
  }
  if (draw(3) == 0) memset(config.grid, 0, sizeof config.grid);
  if (draw(3) == 0) memset(config.block, 0, sizeof config.block);
  if (draw(3) == 0) config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 0;
  if (draw(3) == 0)
    config.dynamic_shared_bytes = PICK(0, 1, 3, 4, 100, 232447, 232448, 232449, UINT32_MAX);
  if (draw(40) == 0) config.dynamic_shared_bytes = (uint64_t)1 << 32;
  if (draw(12) == 0) config.threads = PICK(1, 256, 1000000);
  if (draw(8) == 0)
    config.flags =
      PICK(KJIT_LAUNCH_COOPERATIVE, KJIT_LAUNCH_PROGRAMMATIC, KJIT_LAUNCH_NO_WAIT, 2, 128);
  /* the code of a new kernel would not be ready */
  if (config.flags == KJIT_LAUNCH_NO_WAIT) config.flags = 0;
  if (draw(20) == 0) config.priority = -1;
  if (draw(3) == 0) config.device = devices[draw(8) == 0 ? draw(3) : 0];
  if (draw(3) == 0) config.stream = streams[draw(8) == 0 ? draw(3) : draw(2)];
  return config;
}

typedef struct outcome {
  kjit_status status;
  int launches;
  char message[512];
  unsigned grid[3], block[3], shared_bytes;
  void *stream;
  size_t parameter_bytes;
  char parameters[64];
} outcome;

/* Returns the message of the error, not that of a remark. */
static const char *error_message(kjit_context *context)
{
  const kjit_diagnostic *diagnostic;
  for (size_t i = 0; (diagnostic = kjit_get_diagnostic(context, i)); i++)
    if (diagnostic->severity == KJIT_SEVERITY_ERROR) return diagnostic->message;
  return "";
}

static outcome try_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                          const kjit_arg *arguments)
{
  outcome o;
  int launches = cuda.launches;
  memset(&o, 0, sizeof o);
  memset(cuda.parameters, 0, sizeof cuda.parameters);
  o.status = kjit_launch(kernel, config, arguments, 2);
  o.launches = cuda.launches - launches;
  if (o.status != KJIT_OK)
    snprintf(o.message, sizeof o.message, "%s", error_message(kernel->context));
  if (!o.launches) return o;
  memcpy(o.grid, cuda.grid, sizeof o.grid);
  memcpy(o.block, cuda.block, sizeof o.block);
  memcpy(o.parameters, cuda.parameters, sizeof o.parameters);
  o.shared_bytes = cuda.shared_bytes;
  o.stream = cuda.stream;
  o.parameter_bytes = cuda.parameter_bytes;
  return o;
}

/* If there are too many variants, the launch runs code for fewer facts, which has other
 * parameters. */
static void expect_equal(const char *name, const kjit_launch_config *c, outcome *o,
                         const outcome *fresh)
{
  if (o->parameter_bytes != fresh->parameter_bytes) {
    o->parameter_bytes = fresh->parameter_bytes;
    memcpy(o->parameters, fresh->parameters, sizeof o->parameters);
  }
  bool is_equal = !memcmp(o, fresh, sizeof *o);
  if (!is_equal)
    print_error("%s grid %u %u %u block %u %u %u shared %llu threads %llu flags %u: %d launches "
                "`%s` of %u %u %u x %u %u %u, fresh %d launches `%s` of %u %u "
                "%u x %u %u %u\n",
                name, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                (unsigned long long)c->dynamic_shared_bytes, (unsigned long long)c->threads,
                c->flags, o->launches, o->message, o->grid[0], o->grid[1], o->grid[2], o->block[0],
                o->block[1], o->block[2], fresh->launches, fresh->message, fresh->grid[0],
                fresh->grid[1], fresh->grid[2], fresh->block[0], fresh->block[1], fresh->block[2]);
  assert_true(is_equal);
}

/* A launch of a kernel that was launched often gives the same result as the first launch of an
 * equal kernel. */
static void test_configurations(void **state)
{
  enum { ROUNDS = 12, LAUNCHES = 40 };
  static const char *const names[] = { "set",   "fill",  "some",   "two", "both",   "placed",
                                       "fixed", "whole", "ranged", "few", "bounded" };
  kjit_device *devices[3] = { gpu(*state, 0), gpu(*state, 1) };
  kjit_stream *streams[3];
  uint32_t launched = 0, refused = 0, direct = 0;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &devices[2]));
  for (int i = 0; i < 3; i++) expect_ok(*state, kjit_create_stream(devices[i / 2], &streams[i]));
  fake.kernel = run_nothing;
  kjit_array *arrays[2] = { make_vector(devices[0], 5000, NULL),
                            make_vector(devices[0], 64, NULL) };
  for (uint32_t round = 0; round < ROUNDS; round++) {
    cuda.registers = round % 3 == 1 ? 128 : round % 3 == 2 ? 255 : 0;
    fake.elements_a_thread = round % 2 ? 4 : 0;
    fake.uses_dynamic_shared = round % 4 == 3;
    kjit_module *module = parse(*state, shapes);
    for (uint32_t k = 0; k < sizeof names / sizeof *names; k++) {
      kjit_kernel *kernel = kernel_of(module, names[k]);
      for (int i = 0; i < LAUNCHES; i++) {
        kjit_launch_config config = draw_config(devices, streams);
        kjit_arg arguments[] = { kjit_arg_array(arrays[draw(2)]),
                                 kjit_arg_i32((int32_t)PICK(1, 2, 16, 33, 4000)) };
        kjit_module *other = parse(*state, shapes);
        for (uint32_t again = draw(2); again; again--) (void)try_launch(kernel, &config, arguments);
        outcome o = try_launch(kernel, &config, arguments),
                fresh = try_launch(kernel_of(other, names[k]), &config, arguments);
        expect_equal(names[k], &config, &o, &fresh);
        launched += o.launches;
        refused += o.status != KJIT_OK;
        kjit_release_module(other);
      }
      for (size_t i = 0; kjit_get_specialization(kernel, i); i++) direct += is_direct(kernel, i);
    }
    kjit_release_module(module);
  }
  assert_true(launched > 500 && refused > 500 && direct > ROUNDS);
  for (int i = 0; i < 2; i++) kjit_release_array(arrays[i]);
}

/* ---- random arguments ---- */

static const char both_arrays[] =
  "kernel free(r, x, a) { r[threadIdx.x] = x[threadIdx.x] * a }\n"
  "kernel typed(r: f32[:] C, x: f32[:], a: f32) { r[threadIdx.x] = x[threadIdx.x] * a }\n"
  "kernel same(r, x: dtype(r)[:], a: dtype(r)) { r[threadIdx.x] = x[threadIdx.x] * a }\n"
  "kernel loose(r, x, a) @general(r) { r[threadIdx.x] = x[threadIdx.x] * a }\n"
  "kernel known(r, x, const a) { r[threadIdx.x] = x[threadIdx.x] * a }\n";

enum { MOST_CHOICES = 64, SCALARS = 10 };

typedef struct choices {
  kjit_context *other;
  kjit_tensor tensors[16];
  int64_t extents[16][2], strides[16][2];
  kjit_array *made[24];
  size_t tensor_count, made_count, count;
  kjit_arg arguments[MOST_CHOICES];
  kjit_arg scalars[SCALARS];
  _Alignas(64) float memory[4 * N];
  float single;
} choices;

static void add_array(choices *c, kjit_array *array)
{
  c->made[c->made_count++] = array;
  c->arguments[c->count++] = kjit_arg_array(array);
}

/* Adds a tensor of N elements at this address on the first GPU. */
static kjit_tensor *add_tensor(choices *c)
{
  size_t i = c->tensor_count++;
  c->extents[i][0] = N;
  c->strides[i][0] = c->strides[i][1] = 1;
  c->tensors[i] = host_vector(c->memory, c->extents[i]);
  c->tensors[i].device_type = KJIT_DEVICE_CUDA;
  c->arguments[c->count++] = kjit_arg_tensor(&c->tensors[i]);
  return &c->tensors[i];
}

static void add_arrays(choices *c, kjit_device *here, kjit_device *there, kjit_device *cpu)
{
  static const kjit_memory kinds[] = { KJIT_MEMORY_MANAGED, KJIT_MEMORY_MAPPED,
                                       KJIT_MEMORY_PINNED };
  kjit_array *view;
  int64_t shape[] = { 8, 8 }, nothing = 0, length = N;
  for (int i = 0; i < 2; i++) add_array(c, make_vector(here, N, NULL));
  add_array(c, make_vector(there, N, NULL));
  add_array(c, make_vector(cpu, N, NULL));
  for (int i = 0; i < 3; i++) add_array(c, make_array(here, kinds[i]));
  add_array(c, make_array(there, KJIT_MEMORY_MANAGED));
  expect_ok(here->context, kjit_slice_array(c->made[0], &(kjit_array_slice){ 1, N, 1 }, 1, &view));
  add_array(c, view);
  expect_ok(here->context, kjit_slice_array(c->made[0], &(kjit_array_slice){ 0, N, 2 }, 1, &view));
  add_array(c, view);
  expect_ok(here->context, kjit_reshape_array(c->made[0], shape, 2, &view));
  add_array(c, view);
  expect_ok(here->context, kjit_transpose_array(view, NULL, &view));
  add_array(c, view);
  /* of no dimensions */
  expect_ok(here->context, kjit_slice_array(c->made[0], &(kjit_array_slice){ 3, 0, 0 }, 1, &view));
  add_array(c, view);
  c->made[1]->is_read_only = true; /* another library may have marked it as read-only */
  expect_ok(here->context, kjit_reshape_array(c->made[1], &length, 1, &view));
  c->made[1]->is_read_only = false;
  add_array(c, view);
  expect_ok(here->context, kjit_create_array(here, KJIT_F32, &nothing, 1, &view));
  add_array(c, view);
  expect_ok(here->context, kjit_create_array(here, KJIT_F64, &length, 1, &view));
  add_array(c, view);
  add_array(c, make_vector(gpu(c->other, 0), N, NULL));
}

static void add_tensors(choices *c, kjit_arg array)
{
  (void)add_tensor(c);
  c->arguments[c->count] = kjit_with_access(c->arguments[c->count - 1], KJIT_ACCESS_IN);
  c->count++;
  c->arguments[c->count++] = kjit_with_access(array, (kjit_access)4);
  c->arguments[c->count++] = kjit_arg_elements(KJIT_I32, &c->tensors[0]);
  c->arguments[c->count++] = kjit_arg_elements(KJIT_C128, &c->tensors[0]);
  add_tensor(c)->data = c->memory + N;
  add_tensor(c)->byte_offset = 4;
  add_tensor(c)->byte_offset = 2;
  add_tensor(c)->strides = c->strides[c->tensor_count - 1];
  kjit_tensor *apart = add_tensor(c);
  apart->strides = c->strides[c->tensor_count - 1];
  apart->strides[0] = 2;
  add_tensor(c)->device_id = 1;
  add_tensor(c)->device_type = 7;
  add_tensor(c)->lanes = 2;
  add_tensor(c)->data = NULL;
  add_tensor(c)->shape[0] = (int64_t)INT32_MAX + 1;
  add_tensor(c)->shape[0] = -1;
  add_tensor(c)->rank = 9;
  c->arguments[c->count++] = kjit_arg_array(NULL);
  c->arguments[c->count++] = kjit_arg_tensor(NULL);
  c->arguments[c->count++] = kjit_arg_f32(3);
  c->arguments[c->count++] = kjit_make_arg((kjit_arg_kind)9, KJIT_ANY);
}

static void add_scalars(choices *c)
{
  c->single = 2;
  const kjit_arg scalars[SCALARS] = {
    kjit_arg_f32(2),     kjit_arg_f32(3),
    kjit_arg_i32(2),     kjit_arg_f64(2),
    kjit_arg_f64(0.1),   kjit_arg_number(2),
    kjit_arg_real(-0.0), kjit_arg_value(KJIT_F32, &c->single),
    kjit_arg_bool(1),    kjit_with_access(kjit_arg_f32(2), KJIT_ACCESS_OUT)
  };
  memcpy(c->scalars, scalars, sizeof scalars);
}

static const kjit_specialization *launched_since(const kjit_kernel *kernel,
                                                 uint64_t counts[MOST_CHOICES])
{
  const kjit_specialization *found = NULL;
  for (size_t i = 0; i < kernel->order_count && i < MOST_CHOICES; i++) {
    uint64_t now = kj_count_launches(kernel->order[i]);
    if (now != counts[i]) found = kernel->order[i];
    counts[i] = now;
  }
  return found;
}

static const char *const known_facts[] = { "offsets32",  "grid32",      "disjoint(r, x)",
                                           "same(r, x)", "aligned16(r", "rows_aligned16" };

static void expect_same_launch(const kjit_kernel *kernel, uint64_t *counts,
                               const kjit_launch_config *config, const kjit_arg *arguments,
                               kjit_kernel *fresh)
{
  uint64_t fresh_counts[MOST_CHOICES] = { 0 };
  const char *name = kernel->function->decl->name;
  (void)launched_since(kernel, counts);
  kjit_status status = kjit_launch((kjit_kernel *)kernel, config, arguments, 3);
  char message[512];
  snprintf(message, sizeof message, "%s", status == KJIT_OK ? "" : error_message(kernel->context));
  const kjit_specialization *ran = launched_since(kernel, counts);
  kjit_status expected = kjit_launch(fresh, config, arguments, 3);
  const kjit_specialization *wanted = launched_since(fresh, fresh_counts);
  if (status != expected)
    print_error("%s: %d `%s`, a fresh kernel %d `%s`\n", name, (int)status, message, (int)expected,
                error_message(kernel->context));
  assert_int_equal(status, expected);
  if (status != KJIT_OK) assert_string_equal(message, error_message(kernel->context));
  assert_int_equal(!ran, !wanted);
  if (!ran) return;
  assert_string_equal(ran->signature, wanted->signature);
  assert_ptr_equal(ran->device, wanted->device);
  for (size_t word = 0; word < sizeof(known_facts) / sizeof *known_facts; word++)
    if (strstr(ran->facts, known_facts[word]) && !strstr(wanted->facts, known_facts[word]))
      print_error("%s: facts `%s`, of a fresh kernel `%s`\n", name, ran->facts, wanted->facts),
        fail();
}

typedef struct setting {
  choices c;
  kjit_device *devices[3];
  kjit_stream *stream;
} setting;

static setting *make_setting(kjit_context *context)
{
  static setting s;
  memset(&s, 0, sizeof s);
  s.devices[0] = gpu(context, 0);
  s.devices[1] = gpu(context, 1);
  expect_ok(context, kjit_get_device(context, KJIT_DEVICE_CPU, 0, &s.devices[2]));
  expect_ok(context, kjit_create_stream(s.devices[0], &s.stream));
  s.c.other = make_gpu_context();
  fake.has_tight_plans = true;
  fake.kernel = run_nothing;
  add_arrays(&s.c, s.devices[0], s.devices[1], s.devices[2]);
  add_tensors(&s.c, s.c.arguments[0]);
  add_scalars(&s.c);
  return &s;
}

static void release_setting(setting *s)
{
  for (size_t i = s->c.made_count; i-- > 0;) kjit_release_array(s->c.made[i]);
  kjit_destroy_context(s->c.other);
}

static const char *const all_names[] = { "free", "typed", "same", "loose", "known" };

/* A launch of a kernel that was launched often runs like the first launch of an equal kernel, or is
 * rejected with the same message. */
static void test_arguments(void **state)
{
  enum { ROUNDS = 200, LAUNCHES = 40, FEW = 6 };
  setting *s = make_setting(*state);
  const choices *c = &s->c;
  uint32_t direct = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint64_t counts[MOST_CHOICES] = { 0 };
    uint32_t few[FEW];
    const char *name = all_names[draw(5)];
    kjit_module *module = parse(*state, both_arrays);
    kjit_kernel *kernel = kernel_of(module, name);
    for (int i = 0; i < FEW; i++) few[i] = draw((uint32_t)c->count);
    for (int i = 0; i < LAUNCHES; i++) {
      kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
      if (draw(3) == 0) config.device = s->devices[draw(2) ? 0 : draw(3)];
      if (draw(3) == 0) config.stream = s->stream;
      kjit_arg arguments[] = { c->arguments[few[draw(FEW)]], c->arguments[few[draw(FEW)]],
                               c->scalars[draw(2) ? draw(2) : draw(SCALARS)] };
      if (draw(2)) arguments[draw(2)] = c->arguments[draw(2)];
      kjit_module *other = parse(*state, both_arrays);
      for (uint32_t again = draw(3); again; again--)
        (void)!kjit_launch(kernel, &config, arguments, 3);
      expect_same_launch(kernel, counts, &config, arguments, kernel_of(other, name));
      kjit_release_module(other);
    }
    for (size_t i = 0; kjit_get_specialization(kernel, i); i++) direct += is_direct(kernel, i);
    kjit_release_module(module);
  }
  assert_true(direct > ROUNDS / 4);
  release_setting(s);
}

/* Does the same with a prepared launch whose arguments are replaced. */
static void test_prepared_arguments(void **state)
{
  enum { ROUNDS = 200, SETS = 40 };
  static const kjit_launch_config config = { .size_bytes = sizeof config,
                                             .grid = { 1 },
                                             .block = { 32 } };
  setting *s = make_setting(*state);
  const choices *c = &s->c;
  uint32_t replaced = 0, refused = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    const char *name = all_names[draw(5)];
    kjit_module *module = parse(*state, both_arrays);
    kjit_kernel *kernel = kernel_of(module, name);
    kjit_prepared *prepared;
    kjit_arg arguments[] = { c->arguments[0], c->arguments[1], c->scalars[0] };
    expect_ok(*state, kjit_prepare_launch(kernel, &config, arguments, 3, &prepared));
    for (int i = 0; i < SETS; i++) {
      uint32_t at = draw(3);
      kjit_arg argument =
        at < 2 ? c->arguments[draw((uint32_t)c->count)] : c->scalars[draw(SCALARS)];
      kjit_module *other = parse(*state, both_arrays);
      kjit_kernel *fresh = kernel_of(other, name);
      if (kjit_set_prepared_argument(prepared, at, &argument) == KJIT_OK)
        arguments[at] = argument, replaced++;
      for (uint32_t again = draw(3); again; again--) (void)!kjit_run_prepared(prepared, NULL);
      kjit_status status = kjit_run_prepared(prepared, NULL),
                  expected = kjit_launch(fresh, &config, arguments, 3);
      assert_int_equal(status, expected);
      refused += status != KJIT_OK;
      if (status == KJIT_OK) {
        assert_ptr_equal(kjit_get_prepared_specialization(prepared)->device,
                         specialization_of(fresh, 0)->device);
        assert_string_equal(kjit_get_prepared_specialization(prepared)->signature,
                            specialization_of(fresh, 0)->signature);
      }
      kjit_release_module(other);
    }
    kjit_destroy_prepared(prepared);
    kjit_release_module(module);
  }
  assert_true(replaced > ROUNDS && refused > ROUNDS);
  release_setting(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_configurations),
    TEST(test_arguments),
    TEST(test_prepared_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

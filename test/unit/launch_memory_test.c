/* Lets every allocation of a launch fail in turn, on a GPU and on the CPU. The launches compile, or
 * take the slow path or the fast path. Some are prepared, some are sealed, and some have host
 * arrays. The error names the call, no memory is leaked, and the same call works afterwards. */
#include "every_allocation.h"

/* ---- the calls of an application ---- */

static const char source[] =
  "kernel plain(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n"
  "kernel shaped(x, n: i32) @block(32) @grid(ceil_div(n, 32)) { x[0] = 1 }\n"
  "kernel sealed(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n";

enum { N = 64, TIMES = 3 };

struct objects {
  kjit_context *context;
  kjit_module *module;
  kjit_device *devices[2];
  kjit_array *arrays[2]; /* arrays of the GPU and of the CPU */
  kjit_tensor host;
  int64_t length;
  kjit_prepared *prepared;
};

_Alignas(64) static float data[N];

static kjit_status launch(objects *o, const char *name, int device)
{
  kjit_kernel *kernel;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = o->devices[device] };
  kjit_arg arguments[] = { kjit_arg_array(o->arrays[device]),
                           strcmp(name, "shaped") ? kjit_arg_f32(2) : kjit_arg_i32(N) };
  KJ_TRY(kjit_get_kernel(o->module, name, &kernel));
  return kjit_launch(kernel, &config, arguments, 2);
}

static kjit_status launch_plain(objects *o) { return launch(o, "plain", 0); }
static kjit_status launch_shaped(objects *o) { return launch(o, "shaped", 0); }
static kjit_status launch_on_cpu(objects *o) { return launch(o, "plain", 1); }

static kjit_status launch_staged(objects *o)
{
  kjit_kernel *kernel;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = o->devices[0] };
  kjit_arg arguments[] = { kjit_arg_tensor(&o->host), kjit_arg_f32(2) };
  KJ_TRY(kjit_get_kernel(o->module, "plain", &kernel));
  return kjit_launch(kernel, &config, arguments, 2);
}

static kjit_status prepare(objects *o)
{
  kjit_kernel *kernel;
  kjit_arg arguments[] = { kjit_arg_array(o->arrays[0]), kjit_arg_f32(2) };
  if (o->prepared) return KJIT_OK;
  KJ_TRY(kjit_get_kernel(o->module, "plain", &kernel));
  return kjit_prepare_launch(kernel, NULL, arguments, 2, &o->prepared);
}

static kjit_status run_prepared(objects *o)
{
  kjit_arg array = kjit_arg_array(o->arrays[0]), number = kjit_arg_f32(3);
  KJ_TRY(kjit_run_prepared(o->prepared, NULL));
  KJ_TRY(kjit_set_prepared_argument(o->prepared, 1, &number));
  KJ_TRY(kjit_set_prepared_argument(o->prepared, 0, &array));
  return kjit_run_prepared(o->prepared, NULL);
}

static kjit_status launch_sealed(objects *o)
{
  kjit_kernel *kernel;
  kjit_specialization *made;
  KJ_TRY(kjit_get_kernel(o->module, "sealed", &kernel));
  KJ_TRY(kjit_specialize(kernel, o->devices[0], "f32[:] C, f32", &made));
  KJ_TRY(kjit_seal_kernel(kernel));
  return launch(o, "sealed", 0);
}

static host_step *const steps[] = { launch_plain, launch_shaped, launch_on_cpu, launch_staged,
                                    prepare,      run_prepared,  launch_sealed };

/* ---- the objects of the calls ---- */

static void open_objects(objects *o)
{
  *o = (objects){ .length = N };
  o->context = open_devices(o->devices);
  fake.has_tight_plans = true;
  o->module = parse(o->context, source);
  for (int i = 0; i < 2; i++)
    expect_ok(o->context, kjit_create_array(o->devices[i], KJIT_F32, &o->length, 1, &o->arrays[i]));
  o->host = host_vector(data, &o->length);
}

static void close_objects(objects *o)
{
  kjit_destroy_prepared(o->prepared);
  for (int i = 0; i < 2; i++) kjit_release_array(o->arrays[i]);
  kjit_release_module(o->module);
  close_devices(o->context);
}

static void test_every_allocation(void **state)
{
  (void)state;
  enum { LEAST = 40 };
  objects o;
  const host_work work = { &o,   open_objects, close_objects, steps, sizeof steps / sizeof *steps,
                           TIMES };
  try_every_allocation(&work, LEAST, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

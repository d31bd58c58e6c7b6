/* A failing thread leaves the kernel. The other threads continue, and barriers do not wait for it.
 * The application gets one error with a location, and the context stays usable.
 * RUN: %programs/failures cpu
 * RUN: %if cuda %{ %programs/failures cuda %}
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 256, BLOCK = 64 };

static const char text[] = "func checked(v, bad) {\n"
                           "  if v == bad { raise \"bad value\" }\n"
                           "  return v + 1\n"
                           "}\n"
                           "kernel shift(r, x, bad) {\n"
                           "  shared s: f32[64]\n"
                           "  let t = threadIdx.x\n"
                           "  s[t] = -1\n"
                           "  syncthreads()\n"
                           "  s[t] = checked(x[grid(1)], bad)\n"
                           "  syncthreads()\n"
                           "  r[grid(1)] = s[63 - t]\n"
                           "}\n"
                           "kernel outside(r, at) { r[at] = 1 }\n"
                           "func bump(r, i) {\n"
                           "  r[i] += 1\n"
                           "  return r[i]\n"
                           "}\n"
                           "kernel divides(r, x, bad) {\n"
                           "  for i in grid_range(len(r)) {\n"
                           "    let t = bump(r, i)\n"
                           "    r[i] = 1 / (f32(i) - bad) + t\n"
                           "  }\n"
                           "}\n"
                           /* Two equal kernels: in one, threads fail at different times between
                            * barriers; in the other, they return. */
                           "func stage(s, v) {\n"
                           "  s[threadIdx.x] = v\n"
                           "  syncthreads()\n"
                           "  let w = s[(threadIdx.x + 1) % 64]\n"
                           "  syncthreads()\n"
                           "  return w\n"
                           "}\n"
                           "kernel leaves(r, x, bad) {\n"
                           "  shared s: f32[64]\n"
                           "  let t = threadIdx.x\n"
                           "  s[t] = bad\n"
                           "  var v = x[grid(1)]\n"
                           "  for k in range(5) {\n"
                           "    if t == 7 * k { return }\n"
                           "    v += stage(s, v)\n"
                           "    if t % 3 == 1 {\n"
                           "      if t == 10 + k { return }\n"
                           "      v *= 2\n"
                           "    }\n"
                           "    v += f32(syncthreads_count(t > 20))\n"
                           "    r[grid(1)] = v\n"
                           "  }\n"
                           "  r[grid(1)] += f32(syncthreads_count(true))\n"
                           "}\n"
                           "kernel fails(r, x, bad) {\n"
                           "  shared s: f32[64]\n"
                           "  let t = threadIdx.x\n"
                           "  s[t] = bad\n"
                           "  var v = x[grid(1)]\n"
                           "  for k in range(5) {\n"
                           "    if t == 7 * k { raise \"left\" }\n"
                           "    v += stage(s, v)\n"
                           "    if t % 3 == 1 {\n"
                           "      if t == 10 + k { raise \"left\" }\n"
                           "      v *= 2\n"
                           "    }\n"
                           "    v += f32(syncthreads_count(t > 20))\n"
                           "    r[grid(1)] = v\n"
                           "  }\n"
                           "  r[grid(1)] += f32(syncthreads_count(true))\n"
                           "}\n";

static kjit_context *context;
static kjit_device *device;
static float r[COUNT], x[COUNT];

static void require(int holds, const char *what)
{
  if (holds) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s\n%s", what, message ? message : "");
  exit(EXIT_FAILURE);
}

/* Launches with host arrays, so the call is synchronous on a GPU as well. */
static kjit_status launch(kjit_kernel *kernel, float bad)
{
  int64_t extent = COUNT;
  kjit_tensor to = { .data = r,
                     .device_type = KJIT_DEVICE_CPU,
                     .rank = 1,
                     .code = 2,
                     .bits = 32,
                     .lanes = 1,
                     .shape = &extent },
              from = to;
  from.data = x;
  kjit_arg arguments[] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from), kjit_arg_f32(bad) };
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { COUNT / BLOCK }, .block = { BLOCK }, .device = device
  };
  return kjit_launch(kernel, &config, arguments, 3);
}

/* Returns whether the results are correct. With bad = 135, thread 7 of block 2 fails: it has
 * written -1 before, and stores no result. */
static int is_right(float bad)
{
  for (int i = 0; i < COUNT; i++) {
    int from = i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK;
    float expected = x[from] == bad ? -1 : x[from] + 1;
    if (x[i] == bad) expected = -5; /* untouched */
    if (r[i] != expected) return 0;
  }
  return 1;
}

static void fail_and_go_on(kjit_kernel *kernel)
{
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < COUNT; i++) x[i] = (float)i, r[i] = -5;
    require(launch(kernel, 135) == KJIT_ERROR_KERNEL, "expected a failure");
    const kjit_diagnostic *d = kjit_get_diagnostic(context, 0);
    require(d && d->status == KJIT_ERROR_KERNEL && d->line == 2 && d->column == 17 &&
              !strcmp(d->file, "failures"),
            "expected the place of `raise`");
    require(!strcmp(d->message, "kernel `shift`, block (2, 0, 0), thread (7, 0, 0): bad value"),
            "expected kernel, block and thread");
    require(!kjit_get_diagnostic(context, 1), "expected one failure");
    require(is_right(135), "the other threads did not go on");
    for (int i = 0; i < COUNT; i++) r[i] = -5;
    require(launch(kernel, -1) == KJIT_OK, "expected no failure");
    require(is_right(-1), "wrong results after a failure");
  }
}

/* A failing thread has the same effects as one that returns, except for the error. */
static void fail_as_return(kjit_kernel *leaves, kjit_kernel *fails)
{
  float expected[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 19), r[i] = -5;
  require(launch(leaves, 3) == KJIT_OK, "returning");
  memcpy(expected, r, sizeof r);
  for (int i = 0; i < COUNT; i++) r[i] = -5;
  require(launch(fails, 3) == KJIT_ERROR_KERNEL, "expected a failure");
  for (int i = 0; i < COUNT; i++) {
    if (r[i] == expected[i]) continue;
    fprintf(stderr, "element %d: %g, expected %g\n", i, r[i], expected[i]);
    exit(EXIT_FAILURE);
  }
}

/* The effects of the thread before the division happen once. Other iterations may or may not run,
 * because on the CPU a piece of a grid_range fails as a whole. */
static void fail_after_store(kjit_kernel *kernel)
{
  for (int i = 0; i < COUNT; i++) r[i] = -5;
  require(launch(kernel, 135) == KJIT_ERROR_KERNEL, "expected a division by zero");
  for (int i = 0; i < COUNT; i++) {
    float whole = i == 135 ? -4 : 1 / ((float)i - 135) - 4;
    if (r[i] == whole || (i != 135 && r[i] == -5)) continue;
    fprintf(stderr, "element %d: %g, expected %g\n", i, r[i], whole);
    exit(EXIT_FAILURE);
  }
}

/* In an asynchronous launch, the next wait for the device reports the failure, once. */
static void fail_later(kjit_kernel *kernel)
{
  kjit_array *array;
  int64_t extent = COUNT;
  require(kjit_create_array(device, KJIT_F32, &extent, 1, &array) == KJIT_OK, "creating an array");
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_i32(COUNT) };
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 4 }, .block = { BLOCK }, .device = device
  };
  kjit_status status = kjit_launch(kernel, &config, arguments, 2);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  require(status == KJIT_ERROR_KERNEL &&
            strstr(kjit_get_diagnostic(context, 0)->message, "index 256 of 0..255"),
          "expected an index out of bounds");
  require(kjit_synchronize_device(device) == KJIT_OK, "expected the failure once");
  arguments[1] = kjit_arg_i32(3);
  require(kjit_launch(kernel, &config, arguments, 2) == KJIT_OK &&
            kjit_synchronize_device(device) == KJIT_OK,
          "expected no failure");
  kjit_release_array(array);
}

int main(int argc, char **argv)
{
  kjit_module *module;
  kjit_kernel *shift = NULL, *outside = NULL, *leaves = NULL, *fails = NULL, *divides = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION;
  if (kjit_create_context(&config, &context) != KJIT_OK) return EXIT_FAILURE;
  require(kjit_get_device(context,
                          argc > 1 && !strcmp(argv[1], "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU,
                          0, &device) == KJIT_OK,
          "opening the device");
  require(kjit_parse_module(context, "failures", text, strlen(text), &module) == KJIT_OK,
          "parsing");
  require(kjit_get_kernel(module, "shift", &shift) == KJIT_OK &&
            kjit_get_kernel(module, "outside", &outside) == KJIT_OK,
          "getting the kernels");
  require(kjit_get_kernel(module, "leaves", &leaves) == KJIT_OK &&
            kjit_get_kernel(module, "fails", &fails) == KJIT_OK &&
            kjit_get_kernel(module, "divides", &divides) == KJIT_OK,
          "getting the kernels");
  fail_and_go_on(shift);
  fail_as_return(leaves, fails);
  fail_after_store(divides);
  fail_later(outside);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return EXIT_SUCCESS;
}

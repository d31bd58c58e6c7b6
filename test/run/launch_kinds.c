/* Every kind of launch gives the same results as a simple launch: by a number of threads,
 * cooperative, in clusters, with a priority, overlapping the preceding launch, with much dynamic
 * shared memory. Launches that are too large are rejected and change no memory.
 * RUN: %programs/launch_kinds cpu
 * RUN: %if cuda %{ %programs/launch_kinds cuda %}
 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100000, STEPS = 60, MODULUS = 65521 };

static const char text[] =
  "kernel step(r: i32[:] C, x: i32[:] C) {\n"
  "  let i = grid(1)\n"
  "  if i < len(r) { r[i] = (x[i] * 3 + x[len(x) - 1 - i] + 1) % 65521 }\n"
  "}\n"
  "kernel ranged(r: i32[:] C, x: i32[:] C) {\n"
  "  for i in grid_range(len(r)) { r[i] = (x[i] * 3 + x[len(x) - 1 - i] + 1) % 65521 }\n"
  "}\n"
  /* uses dynamic shared memory */
  "kernel turned(r: i32[:] C, x: i32[:] C) {\n"
  "  shared s: i32[]\n"
  "  let t = threadIdx.x\n"
  "  let i = grid(1)\n"
  "  let last = len(s) - blockDim.x\n"
  "  s[last + t] = i < len(r) ? (x[i] * 3 + x[len(x) - 1 - i] + 1) % 65521 : 0\n"
  "  syncthreads()\n"
  "  if i < len(r) { r[i] = s[last + t] }\n"
  "}\n";

static int failures;
static kjit_context *context;
static kjit_device *device;
static kjit_stream *stream;
static kjit_array *arrays[2];
static int32_t *expected, *got;

static void fail(const char *what)
{
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n", what, message ? message : "");
  kjit_free(context, message);
  failures++;
}

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  fail(what);
  exit(1);
}

static void begin(void)
{
  for (int i = 0; i < COUNT; i++) got[i] = i % MODULUS;
  for (int k = 0; k < 2; k++)
    require(kjit_copy_from_host(arrays[k], got, COUNT * sizeof *got, stream),
            "kjit_copy_from_host");
}

/* Makes STEPS launches, each of which reads the result of the preceding one. */
static void check(const char *what, kjit_kernel *kernel, kjit_launch_config config)
{
  begin();
  config.stream = stream;
  config.device = device;
  for (int step = 0; step < STEPS; step++) {
    kjit_arg arguments[] = { kjit_arg_array(arrays[1 - step % 2]),
                             kjit_arg_array(arrays[step % 2]) };
    if (kjit_launch(kernel, &config, arguments, 2) != KJIT_OK) {
      fail(what);
      return;
    }
  }
  require(kjit_copy_to_host(arrays[STEPS % 2], got, COUNT * sizeof *got, stream), what);
  if (memcmp(got, expected, COUNT * sizeof *got)) fail(what);
}

static void check_refused(const char *what, kjit_kernel *kernel, kjit_launch_config config,
                          const char *words)
{
  kjit_arg arguments[] = { kjit_arg_array(arrays[0]), kjit_arg_array(arrays[1]) };
  config.device = device;
  bool is_refused = kjit_launch(kernel, &config, arguments, 2) == KJIT_ERROR_LAUNCH;
  char *message = kjit_copy_diagnostics_text(context); /* remarks may come before the error */
  if (!is_refused || !message || !strstr(message, words)) fail(what);
  kjit_free(context, message);
}

static void expect_steps(void)
{
  int32_t *next = malloc(COUNT * sizeof *next);
  if (!next) exit(1);
  for (int i = 0; i < COUNT; i++) expected[i] = i % MODULUS;
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < COUNT; i++)
      next[i] = (expected[i] * 3 + expected[COUNT - 1 - i] + 1) % MODULUS;
    memcpy(expected, next, COUNT * sizeof *next);
  }
  free(next);
}

int main(int argc, char **argv)
{
  bool is_cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
  int64_t length = COUNT;
  kjit_module *module;
  kjit_kernel *step, *ranged, *turned;
  kjit_device_info info = { .size_bytes = sizeof info };
  expected = malloc(COUNT * sizeof *expected);
  got = malloc(COUNT * sizeof *got);
  if (!expected || !got || kjit_create_context(NULL, &context) != KJIT_OK) return 1;
  require(kjit_get_device(context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &device),
          "kjit_get_device");
  require(kjit_create_stream(device, &stream), "kjit_create_stream");
  for (int i = 0; i < 2; i++)
    require(kjit_create_array(device, KJIT_I32, &length, 1, &arrays[i]), "kjit_create_array");
  require(kjit_parse_module(context, "kinds.kir", text, strlen(text), &module),
          "kjit_parse_module");
  require(kjit_get_kernel(module, "step", &step), "step");
  require(kjit_get_kernel(module, "ranged", &ranged), "ranged");
  require(kjit_get_kernel(module, "turned", &turned), "turned");
  kjit_get_device_info(device, &info);
  bool has_clusters = !is_cuda || info.compute_capability >= 90;
  uint32_t blocks = (COUNT + 255) / 256;
  expect_steps();
  check("a grid and a block", step,
        (kjit_launch_config){
          .size_bytes = sizeof(kjit_launch_config), .grid = { blocks }, .block = { 256 } });
  check("grid_range", ranged, (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) });
  check("threads", step,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = COUNT });
  check("threads of a grid_range", ranged,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = 4096 });
  check("cooperative", ranged,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                              .flags = KJIT_LAUNCH_COOPERATIVE });
  check("a priority", step,
        (kjit_launch_config){
          .size_bytes = sizeof(kjit_launch_config), .threads = COUNT, .priority = -1 });
  check("programmatic", step,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                              .grid = { blocks },
                              .block = { 256 },
                              .flags = KJIT_LAUNCH_PROGRAMMATIC });
  check("programmatic grid_range", ranged,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                              .flags = KJIT_LAUNCH_PROGRAMMATIC });
  check("dynamic shared memory", turned,
        (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                              .grid = { blocks },
                              .block = { 256 },
                              .dynamic_shared_bytes = 1024 });
  if (!is_cuda || info.max_shared_bytes >= 96 << 10)
    check("96 KiB of it", turned,
          (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                .grid = { blocks },
                                .block = { 256 },
                                .dynamic_shared_bytes = 96 << 10 });
  if (has_clusters)
    check("clusters", step,
          (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                .grid = { (blocks + 3) / 4 * 4 },
                                .block = { 256 },
                                .cluster = { 4 } });
  if (has_clusters)
    check("all at once", ranged,
          (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                .cluster = { 2 },
                                .priority = -1,
                                .flags = KJIT_LAUNCH_COOPERATIVE });
  check_refused("no shared bytes", turned,
                (kjit_launch_config){
                  .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } },
                "one element needs 4 bytes");
  check_refused("too many threads", step,
                (kjit_launch_config){
                  .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 2048 } },
                "allows at most 1024");
  check_refused("too much memory", turned,
                (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                      .grid = { 1 },
                                      .block = { 32 },
                                      .dynamic_shared_bytes = 64 << 20 },
                "dynamic shared memory");
  if (has_clusters)
    check_refused("half a cluster", step,
                  (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                        .grid = { 3 },
                                        .block = { 32 },
                                        .cluster = { 2 } },
                  "not a multiple");
  if (is_cuda)
    check_refused("too many blocks", step,
                  (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                        .grid = { 1 << 20 },
                                        .block = { 1024 },
                                        .flags = KJIT_LAUNCH_COOPERATIVE },
                  "resident at once");
  check("and after all that", step,
        (kjit_launch_config){
          .size_bytes = sizeof(kjit_launch_config), .grid = { blocks }, .block = { 256 } });
  kjit_destroy_context(context);
  free(expected);
  free(got);
  return failures != 0;
}

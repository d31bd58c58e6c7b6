/* Extreme values of fields of kjit_config and its limits. A limit that can never be reached has the
 * same effect as no limit. A value outside of its enumeration is rejected by a message that names
 * the field.
 * RUN: %programs/config_values
 */
#include <kjit/kjit.h>
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

static char last[512];

static void keep(void *user, const kjit_diagnostic *diagnostic)
{
  (void)user;
  snprintf(last, sizeof last, "%s", diagnostic->message);
}

static kjit_status launch(const kjit_config *config, uint64_t time_limit_ns)
{
  static const char text[] = "kernel k(r) { for i in grid_range(len(r)) { r[i] = sin(r[i]) + 3 } }";
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_device *device;
  float r[4] = { 0 };
  const int64_t n = 4;
  kjit_tensor tensor = kjit_make_tensor(r, KJIT_F32, 1, &n);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_status status = kjit_create_context(config, &context);
  if (status != KJIT_OK) return status;
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device) == KJIT_OK);
  kjit_launch_config how = { .size_bytes = sizeof how,
                             .device = device,
                             .time_limit_ns = time_limit_ns };
  status = kjit_parse_module(context, "config_values", text, strlen(text), &module);
  if (status == KJIT_OK) {
    REQUIRE(kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
    status = kjit_launch(kernel, &how, &argument, 1);
    REQUIRE(status != KJIT_OK || r[3] == 3);
    kjit_release_module(module);
  }
  kjit_destroy_context(context);
  return status;
}

static kjit_config usual(void)
{
  return (
    kjit_config){ .size_bytes = sizeof(kjit_config), .cache_directory = "", .on_diagnostic = keep };
}

/* Sets each 64-bit limit to no limit and to the extreme values of its type. */
static void test_no_limits(void)
{
  static const uint64_t most[] = { KJIT_NO_LIMIT, KJIT_NO_LIMIT - 1, INT64_MAX,
                                   (uint64_t)INT64_MAX + 1 };
  for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
    kjit_compile_limits limits = { sizeof limits, most[i], most[i], most[i],
                                   most[i],       most[i], most[i], most[i] };
    kjit_config config = usual();
    config.interruptible = 1;
    config.compile_limits = &limits;
    config.cache_limit_bytes = config.code_limit_bytes = most[i];
    REQUIRE(launch(&config, most[i]) == KJIT_OK);
    config.compile_in_child = 1;
    config.compile_child_limit_ns = most[i];
    REQUIRE(launch(&config, most[i]) == KJIT_OK);
  }
}

/* A limit of one nanosecond, one byte, or one of another unit is too small for any compilation. */
static void test_least_limits(void)
{
  for (size_t field = 0; field < 7; field++) {
    kjit_compile_limits limits = { .size_bytes = sizeof limits };
    uint64_t *fields = &limits.time_ns;
    fields[field] = 1;
    kjit_config config = usual();
    config.compile_limits = &limits;
    kjit_status status = launch(&config, 0);
    int is_fine = &fields[field] == &limits.unrolled || &fields[field] == &limits.instances;
    REQUIRE(status == KJIT_ERROR_LIMIT || (is_fine && status == KJIT_OK));
  }
}

static void test_enumerations(void)
{
  static const int wrong[] = { -1, 3, 77, INT32_MAX, INT32_MIN };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    kjit_config config = usual();
    config.debug = (kjit_debug)wrong[i];
    REQUIRE(launch(&config, 0) == KJIT_ERROR_MISUSE && strstr(last, "debug"));
    config = usual();
    config.trust = (kjit_trust)wrong[i];
    REQUIRE(launch(&config, 0) == KJIT_ERROR_MISUSE && strstr(last, "trust"));
  }
  kjit_config config = usual();
  config.checks = 1u << 31;
  REQUIRE(launch(&config, 0) == KJIT_ERROR_MISUSE && strstr(last, "checks"));
}

int main(void)
{
  test_no_limits();
  test_least_limits();
  test_enumerations();
  return 0;
}

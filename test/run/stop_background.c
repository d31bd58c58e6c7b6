/* kjit_stop_background: compilations that have not begun are cancelled, and the context compiles in
 * the calling thread. The process ends without destroying the context.
 * RUN: %programs/stop_background
 */
#include <kjit/kjit.h>
#include <pthread.h>
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

enum { KERNELS = 24, THREADS = 3 };

static kjit_context *context;

static void *stop(void *unused)
{
  (void)unused;
  kjit_stop_background(context);
  return NULL;
}

static kjit_module *parse(void)
{
  char text[KERNELS * 128];
  size_t length = 0;
  for (int i = 0; i < KERNELS; i++)
    length += (size_t)snprintf(
      text + length, sizeof text - length,
      "kernel k%d(x: f64[:]) { for i in grid_range(x.size) { x[i] = sin(x[i] * %d) + %d } }\n", i,
      i, i);
  kjit_module *module;
  REQUIRE(kjit_parse_module(context, "kernels", text, length, &module) == KJIT_OK);
  return module;
}

static kjit_status launch(kjit_module *module, int number, kjit_device *device, kjit_array *array)
{
  char name[8];
  kjit_kernel *kernel;
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .device = device,
                                .flags = KJIT_LAUNCH_NO_WAIT };
  kjit_arg argument = kjit_arg_array(array);
  snprintf(name, sizeof name, "k%d", number);
  REQUIRE(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  return kjit_launch(kernel, &config, &argument, 1);
}

int main(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  kjit_device *device;
  kjit_array *array;
  pthread_t threads[THREADS];
  double element = 0;
  int64_t shape = 1;
  kjit_stop_background(NULL);
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_F64, &shape, 1, &array) == KJIT_OK);
  REQUIRE(kjit_copy_from_host(array, &element, sizeof element, NULL) == KJIT_OK);
  kjit_module *module = parse();
  for (int i = 0; i < KERNELS; i++) REQUIRE(launch(module, i, device, array) == KJIT_NOT_READY);
  for (int i = 0; i < THREADS; i++) REQUIRE(!pthread_create(&threads[i], NULL, stop, NULL));
  for (int i = 0; i < THREADS; i++) REQUIRE(!pthread_join(threads[i], NULL));
  /* The code of each kernel exists or is compiled now, so that each launch runs. */
  for (int i = KERNELS; i-- > 0;) REQUIRE(launch(module, i, device, array) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(array, &element, sizeof element, NULL) == KJIT_OK);
  REQUIRE(element == 0); /* k0 ran last: sin(0) + 0 */
  kjit_stop_background(context);
  printf("ok\n");
  return EXIT_SUCCESS;
}

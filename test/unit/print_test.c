/* Lines that kernels on a GPU print: the ring buffer between the device (here a function of the
 * test) and the host; and an application without on_print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "report/report.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

typedef struct printed {
  char text[1 << 16];
  size_t size_bytes;
  char warning[256];
  int warnings;
} printed;

static void take_text(void *user, const char *text, size_t size_bytes)
{
  printed *p = user;
  assert_int_equal(strlen(text), size_bytes);
  if (p->size_bytes + size_bytes >= sizeof p->text) abort();
  memcpy(p->text + p->size_bytes, text, size_bytes + 1);
  p->size_bytes += size_bytes;
}

static void take_warning(void *user, const kjit_diagnostic *diagnostic)
{
  printed *p = user;
  if (diagnostic->severity != KJIT_SEVERITY_WARNING) return;
  p->warnings++;
  snprintf(p->warning, sizeof p->warning, "%s", diagnostic->message);
}

/* Writes a line to the ring, as code on a device does. */
static bool print_line(uint32_t site, const uint64_t *values, uint32_t count)
{
  kn_print_ring *ring = (kn_print_ring *)(uintptr_t)cuda.global[0];
  if (!ring) return false;
  uint64_t *next = (uint64_t *)(uintptr_t)ring->next, place = *next;
  if (place + count + 1 - ring->read > ring->mask + 1) {
    ring->lost++;
    return false;
  }
  *next += count + 1;
  for (uint32_t i = 0; i < count; i++) ring->words[(place + 1 + i) & ring->mask] = values[i];
  ring->words[place & ring->mask] = KJ_PRINT_HEADER(site, count) | cuda.global[1];
  return true;
}

static const char lines[] = "x = \2i\nonly text\n\2u of \2f\1J\n";

static uint64_t number;

static void print_number(const char *parameters)
{
  (void)parameters;
  number++;
  print_line(0, &number, 1);
}

static void print_all(const char *parameters)
{
  (void)parameters;
  uint64_t minus = (uint64_t)-7, pair[] = { 3, 0x3dcccccd };
  assert_true(print_line(0, &minus, 1));
  assert_true(print_line(1, NULL, 0));
  assert_true(print_line(2, pair, 2));
}

static void print_too_much(const char *parameters)
{
  (void)parameters;
  uint64_t i = 0;
  while (print_line(0, &i, 1)) i++;
  number = i;
  for (int k = 0; k < 2; k++) print_line(1, NULL, 0);
}

typedef struct fixture {
  printed p;
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
} fixture;

static int set_up(void **state)
{
  kj_diagnostics diagnostics = { 0 };
  fixture *f = calloc(1, sizeof *f);
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  config.user = &f->p;
  config.on_print = take_text;
  config.on_diagnostic = take_warning;
  config.print_buffer_bytes = 100; /* the minimum size of the ring */
  memset(&fake, 0, sizeof fake);
  fake.prints = lines;
  number = 0;
  cuda = (fake_driver){ .devices = 1 };
  fake_delete_all();
  if (kjit_create_context(&config, &f->context) != KJIT_OK ||
      kj_use_compiler(f->context, &fake_interface, &diagnostics) != KJIT_OK)
    return 1;
  if (kj_use_driver(f->context, find_fake, NULL, &diagnostics) != KJIT_OK) return 1;
  f->module = parse(f->context, "kernel k() { }\nkernel other() { }");
  *state = f;
  return kjit_get_device(f->context, KJIT_DEVICE_CUDA, 0, &f->device);
}

static int tear_down(void **state)
{
  fixture *f = *state;
  kjit_destroy_context(f->context);
  assert_int_equal(cuda.allocations, 0);
  assert_int_equal(cuda.pinned, 0);
  free(f);
  return 0;
}

static void launch(fixture *f, const char *name, void (*kernel)(const char *parameters))
{
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 }, .device = f->device
  };
  cuda.kernel = kernel;
  assert_int_equal(kjit_launch(kernel_of(f->module, name), &config, NULL, 0), KJIT_OK);
}

static void test_lines_come_when_waited_for(void **state)
{
  fixture *f = *state;
  launch(f, "k", print_all);
  assert_string_equal(f->p.text, "");
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\n");
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_int_equal(f->p.size_bytes, strlen(f->p.text)); /* no line is delivered twice */
}

static void test_kernels_share_the_ring_in_order(void **state)
{
  fixture *f = *state;
  launch(f, "k", print_number);
  launch(f, "other", print_number);
  uint64_t of_other = cuda.global[1];
  assert_int_equal(of_other, (uint64_t)2 << 32);
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_string_equal(f->p.text, "x = 1\nx = 2\n");
  assert_int_equal(cuda.pinned, 1);
}

/* Prints many times the size of the ring, with a wait from time to time. */
static void test_the_ring_goes_round(void **state)
{
  fixture *f = *state;
  for (int i = 0; i < 5000; i++) {
    launch(f, "k", print_number);
    if (i % 100 == 0) assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  }
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_int_equal(f->p.warnings, 0);
  assert_string_equal(f->p.text + f->p.size_bytes - 9, "x = 5000\n");
}

static void test_lost_lines_are_counted(void **state)
{
  fixture *f = *state;
  launch(f, "k", print_too_much);
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_int_equal(number, (1 << 14) / 8 / 2);
  assert_int_equal(f->p.warnings, 1);
  assert_string_equal(
    f->p.warning,
    "3 lines that kernels printed on cuda:0 are lost because the buffer was full; print less "
    "between two synchronizations, or increase kjit_config.print_buffer_bytes");
  assert_string_equal(f->p.text + f->p.size_bytes - 9, "x = 1023\n");
  f->p.size_bytes = 0;
  launch(f, "k", print_all);
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\n");
  assert_int_equal(f->p.warnings, 1);
}

static void test_lines_before_the_end_of_the_context(void **state)
{
  fixture *f = *state;
  launch(f, "k", print_all);
  kjit_release_module(f->module); /* releasing waits for the device, but must not call on_print */
  assert_string_equal(f->p.text, "");
  kjit_destroy_context(f->context);
  f->context = NULL;
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\n");
}

/* ---- on_print takes a lock of the application while the thread that holds the lock calls kjit
 * ---- */

static pthread_mutex_t of_host = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_printing, is_late;

static void print_locked(void *user, const char *text, size_t size_bytes)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60; /* longer than the holder waits on a busy machine */
  is_printing = true;
  if (pthread_mutex_timedlock(&of_host, &until)) {
    is_late = true; /* the holder of the lock waits for this thread */
    return;
  }
  take_text(user, text, size_bytes);
  pthread_mutex_unlock(&of_host);
}

static void *synchronize(void *user)
{
  assert_int_equal(kjit_synchronize_device(((fixture *)user)->device), KJIT_OK);
  return NULL;
}

static void *destroy(void *user)
{
  kjit_destroy_stream(user);
  return NULL;
}

/* Waits until the thread is in on_print, for a limited time. */
static void await_printing(void)
{
  for (int i = 0; i < 200 && !is_printing; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void test_a_lock_of_the_host(void **state)
{
  fixture *f = *state;
  pthread_t thread;
  kjit_stream *stream;
  f->context->config.on_print = print_locked;
  is_printing = is_late = false;
  launch(f, "k", print_all);
  pthread_mutex_lock(&of_host);
  assert_int_equal(pthread_create(&thread, NULL, synchronize, f), 0);
  await_printing();
  assert_true(is_printing);
  launch(f, "other", print_number); /* the kernel is loaded and connected with the ring */
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_int_equal(kjit_create_stream(f->device, &stream), KJIT_OK);
  kjit_destroy_stream(stream);
  pthread_mutex_unlock(&of_host);
  pthread_join(thread, NULL);
  assert_false(is_late);
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\nx = 1\n");
}

/* kjit waits for a stream that is destroyed while another stream is captured. */
static void test_a_stream_that_goes(void **state)
{
  fixture *f = *state;
  pthread_t thread;
  kjit_stream *captured, *other, *stream;
  kjit_array_config config = { .size_bytes = sizeof config };
  kjit_array *array;
  f->context->config.on_print = print_locked;
  is_printing = is_late = false;
  assert_int_equal(kjit_create_stream(f->device, &captured), KJIT_OK);
  assert_int_equal(kjit_create_stream(f->device, &other), KJIT_OK);
  config.device = f->device;
  config.element = KJIT_F32;
  config.shape = (int64_t[]){ 4 };
  config.rank = 1;
  config.stream = other;
  assert_int_equal(kjit_create_array_with(&config, &array), KJIT_OK);
  kjit_release_array(array);
  launch(f, "k", print_all);
  assert_int_equal(kjit_begin_capture(captured), KJIT_OK);
  cuda.is_busy = true;
  pthread_mutex_lock(&of_host);
  assert_int_equal(pthread_create(&thread, NULL, destroy, other), 0);
  await_printing();
  assert_int_equal(kjit_create_stream(f->device, &stream), KJIT_OK);
  pthread_mutex_unlock(&of_host);
  pthread_join(thread, NULL);
  cuda.is_busy = false;
  kjit_destroy_stream(captured);
  assert_false(is_late);
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\n");
}

static void test_no_driver_call_fails_badly(void **state)
{
  fixture *f = *state;
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 }, .device = f->device
  };
  cuda.kernel = print_all;
  for (int fail_at = 1;; fail_at++) {
    cuda.calls = 0;
    cuda.fail_at = fail_at;
    cuda.fail_with = CUDA_UNKNOWN;
    kjit_status status = kjit_launch(kernel_of(f->module, "k"), &config, NULL, 0);
    cuda.fail_at = 0;
    if (status == KJIT_OK) break;
    assert_true(fail_at < 100);
  }
  assert_int_equal(kjit_synchronize_device(f->device), KJIT_OK);
  assert_string_equal(f->p.text, "x = -7\nonly text\n3 of 0.1\n\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_lines_come_when_waited_for),
    TEST(test_kernels_share_the_ring_in_order),
    TEST(test_the_ring_goes_round),
    TEST(test_lost_lines_are_counted),
    TEST(test_lines_before_the_end_of_the_context),
    TEST(test_a_lock_of_the_host),
    TEST(test_a_stream_that_goes),
    TEST(test_no_driver_call_fails_badly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

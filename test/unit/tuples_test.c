/* Tuples among the arguments of a launch: how kjit flattens them, and which tuples it rejects with
 * which messages. The test compares the values that kernels receive with sums that it computes
 * itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kjit/kjit.h>

#include "../seed.h"
#include "built_compiler.h"

enum { COUNT = 37 };
static const char text[] = "kernel add(r: f64[:], box: (_, (f64[:], _), ()), n = 2) {\n"
                           "  for i in grid_range(len(r)) { r[i] = box[0] * box[1][0][i] + "
                           "box[1][1] * f64(n + len(box[2])) }\n"
                           "}\n"
                           "kernel plain(r, n) { for i in grid_range(len(r)) { r[i] = n } }\n"
                           "kernel nothing(x: ()) { let a = len(x) }\n";

typedef struct world {
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *add, *plain, *nothing;
  kjit_launch_config config;
  double r[COUNT], x[COUNT];
  int64_t extent;
  kjit_tensor result, array;
} world;

static void ok(const world *w, kjit_status status)
{
  const kjit_diagnostic *first = w->context ? kjit_get_diagnostic(w->context, 0) : NULL;
  if (status != KJIT_OK) print_error("%s\n", first ? first->message : "no message");
  assert_int_equal(status, KJIT_OK);
}

static int set_up(void **state)
{
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  *state = w;
  kjit_config config = { .size_bytes = sizeof config, .compiler_path = find_built_compiler() };
  ok(w, kjit_create_context(&config, &w->context));
  ok(w, kjit_parse_module(w->context, "tuples.kir", text, sizeof text - 1, &w->module));
  ok(w, kjit_get_kernel(w->module, "add", &w->add));
  ok(w, kjit_get_kernel(w->module, "plain", &w->plain));
  ok(w, kjit_get_kernel(w->module, "nothing", &w->nothing));
  w->config = (kjit_launch_config){ .size_bytes = sizeof w->config, .grid = { 2 }, .block = { 8 } };
  ok(w, kjit_get_device(w->context, KJIT_DEVICE_CPU, 0, &w->config.device));
  srand(kj_draw_seed());
  for (int i = 0; i < COUNT; i++) w->x[i] = rand() % 1000;
  w->extent = COUNT;
  w->result = kjit_make_tensor(w->r, KJIT_F64, 1, &w->extent);
  w->array = kjit_make_tensor(w->x, KJIT_F64, 1, &w->extent);
  return 0;
}

static int tear_down(void **state)
{
  world *w = *state;
  kjit_release_module(w->module);
  kjit_destroy_context(w->context);
  free(w);
  return 0;
}

static void expect_sums(const world *w, double a, double b, double n)
{
  for (int i = 0; i < COUNT; i++) assert_true(w->r[i] == a * w->x[i] + b * n);
}

static void test_nested(void **state)
{
  world *w = *state;
  kjit_arg inner[] = { kjit_arg_tensor(&w->array), kjit_arg_f64(7) };
  kjit_arg box[] = { kjit_arg_f64(3), kjit_arg_tuple(inner, 2), kjit_arg_tuple(NULL, 0) };
  kjit_arg list[] = { kjit_arg_tensor(&w->result), kjit_arg_tuple(box, 3), kjit_arg_i64(5) };
  ok(w, kjit_launch(w->add, &w->config, list, 3));
  expect_sums(w, 3, 7, 5);
  /* a call without the last argument uses the parameter's default value; later calls use the tables
   * of existing code and other item types */
  box[0] = kjit_arg_f64(-2);
  ok(w, kjit_launch(w->add, &w->config, list, 2));
  expect_sums(w, -2, 7, 2);
  box[0] = kjit_arg_i32(4);
  inner[1] = kjit_arg_f32(0.5F);
  for (int i = 0; i < 3; i++) {
    inner[1] = kjit_arg_f32((float)i);
    ok(w, kjit_launch(w->add, &w->config, list, 3));
    expect_sums(w, 4, i, 5);
  }
  /* the same arguments without tuples, as an application without tuples passes them */
  kjit_arg flat[] = { list[0], kjit_arg_f64(8), inner[0], kjit_arg_f64(9), kjit_arg_i64(1) };
  ok(w, kjit_launch(w->add, &w->config, flat, 5));
  expect_sums(w, 8, 9, 1);
  kjit_arg none = kjit_arg_tuple(NULL, 0);
  ok(w, kjit_launch(w->nothing, &w->config, &none, 1));
  ok(w, kjit_launch(w->nothing, &w->config, NULL, 0));
}

/* The text of a module contains the tuple parameters, so a module that is parsed from the text
 * takes tuples. A module that was derived from another module takes them as well. */
static void test_text(void **state)
{
  world *w = *state;
  static const char more[] =
    "const SCALE = 2.0\n"
    "kernel add(r: f64[:], const scales: (_, (_,)), box: (_, (f64[:], _), ()) = (1.0, (0, 2), ()), "
    "t: () = ()) {\n"
    "  let all = box\n"
    "  for i in grid_range(len(r)) { let box = SCALE; r[i] = all[0] * all[1][0][i] + all[1][1] * "
    "box "
    "* f64(scales[0] + scales[1][0] + len(t)) }\n"
    "}\n";
  kjit_module *first, *second, *changed;
  char *text_of_first, *text_of_second;
  ok(w, kjit_parse_module(w->context, "more.kir", more, strlen(more), &first));
  ok(w, kjit_copy_module_text(first, &text_of_first));
  assert_non_null(strstr(text_of_first,
                         "kernel add(r: f64[:], const scales: (_, (_,)), box: (_, (f64[:], _), ()) "
                         "= (1.0, (0, 2), ()), t: () = ()) {"));
  ok(w, kjit_parse_module(w->context, "again.kir", text_of_first, strlen(text_of_first), &second));
  ok(w, kjit_copy_module_text(second, &text_of_second));
  assert_string_equal(text_of_first, text_of_second);
  kjit_arg three = kjit_arg_f64(3);
  ok(w, kjit_set_constant(second, "SCALE", &three, &changed));
  kjit_arg innermost = kjit_arg_i64(4),
           scales[] = { kjit_arg_i64(1), kjit_arg_tuple(&innermost, 1) };
  kjit_arg inner[] = { kjit_arg_tensor(&w->array), kjit_arg_f64(7) };
  kjit_arg box[] = { kjit_arg_f64(3), kjit_arg_tuple(inner, 2), kjit_arg_tuple(NULL, 0) };
  kjit_arg list[] = { kjit_arg_tensor(&w->result), kjit_arg_tuple(scales, 2),
                      kjit_arg_tuple(box, 3) };
  kjit_module *const modules[] = { first, second, changed };
  for (int i = 0; i < 3; i++) {
    kjit_kernel *add;
    ok(w, kjit_get_kernel(modules[i], "add", &add));
    ok(w, kjit_launch(add, &w->config, list, 3));
    expect_sums(w, 3, 7 * (i < 2 ? 2 : 3), 5);
  }
  kjit_free(w->context, text_of_first);
  kjit_free(w->context, text_of_second);
  kjit_release_module(changed);
  kjit_release_module(second);
  kjit_release_module(first);
}

static void test_prepared(void **state)
{
  world *w = *state;
  kjit_arg inner[] = { kjit_arg_tensor(&w->array), kjit_arg_f64(7) };
  kjit_arg box[] = { kjit_arg_f64(3), kjit_arg_tuple(inner, 2), kjit_arg_tuple(NULL, 0) };
  kjit_arg list[] = { kjit_arg_tensor(&w->result), kjit_arg_tuple(box, 3), kjit_arg_i64(5) };
  kjit_prepared *prepared;
  ok(w, kjit_prepare_launch(w->add, &w->config, list, 3, &prepared));
  kjit_arg other = kjit_arg_f64(11);
  ok(w, kjit_set_prepared_argument(prepared, 3, &other));
  memset(box, 0, sizeof box);
  ok(w, kjit_run_prepared(prepared, NULL));
  expect_sums(w, 3, 11, 5);
  kjit_destroy_prepared(prepared);
}

static void expect_refusal(world *w, kjit_kernel *kernel, const kjit_arg *list, size_t count,
                           const char *message)
{
  kjit_prepared *prepared = NULL;
  assert_int_equal(kjit_launch(kernel, &w->config, list, count), KJIT_ERROR_ARGUMENT);
  assert_string_equal(kjit_get_diagnostic(w->context, 0)->message, message);
  assert_int_equal(kjit_prepare_launch(kernel, &w->config, list, count, &prepared),
                   KJIT_ERROR_ARGUMENT);
  assert_string_equal(kjit_get_diagnostic(w->context, 0)->message, message);
}

static void test_refused(void **state)
{
  world *w = *state;
  kjit_arg inner[] = { kjit_arg_tensor(&w->array), kjit_arg_f64(7), kjit_arg_f64(7) };
  kjit_arg box[] = { kjit_arg_f64(3), kjit_arg_tuple(inner, 2), kjit_arg_tuple(NULL, 0),
                     kjit_arg_f64(1) };
  kjit_arg list[] = { kjit_arg_tensor(&w->result), kjit_arg_tuple(box, 3), kjit_arg_i64(5),
                      kjit_arg_i64(5) };
  kjit_arg plain[] = { list[0], kjit_arg_tuple(inner, 1) };
  expect_refusal(w, w->plain, plain, 2,
                 "parameter `r`: expected arguments that are not tuples (only a parameter with a "
                 "tuple type such as `box: (_, f32[:])` takes a tuple), got a tuple");
  list[1] = kjit_arg_tuple(box, 2);
  expect_refusal(w, w->add, list, 3,
                 "parameter `n`: expected a tuple with more items, got its end");
  list[1] = kjit_arg_tuple(box, 4);
  expect_refusal(w, w->add, list, 3,
                 "parameter `n`: expected a tuple with fewer items, got one more");
  list[1] = kjit_arg_tuple(box, 3);
  box[1] = kjit_arg_tuple(inner, 3);
  expect_refusal(w, w->add, list, 3,
                 "parameter `n`: expected a tuple with fewer items, got one more");
  box[1] = kjit_arg_f64(1);
  expect_refusal(w, w->add, list, 3,
                 "parameter `box[1][0]`: expected a tuple, got "
                 "a single item");
  box[1] = kjit_arg_tuple(NULL, 2);
  expect_refusal(w, w->add, list, 3,
                 "parameter `box[1][0]`: expected a tuple, got a tuple whose items are NULL");
  box[1] = kjit_arg_tuple(inner, 2);
  expect_refusal(w, w->add, list, 4, "kernel `add`: expected no more arguments, got one more");
  kjit_arg circle[1];
  circle[0] = kjit_arg_tuple(circle, 1);
  list[1] = circle[0];
  expect_refusal(w, w->add, list, 3,
                 "parameter `box[0]`: expected an argument that is not a tuple (only a parameter "
                 "with a tuple type such as `box: (_, f32[:])` takes a tuple), got a tuple");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = { TEST(test_nested), TEST(test_text), TEST(test_prepared),
                                      TEST(test_refused) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

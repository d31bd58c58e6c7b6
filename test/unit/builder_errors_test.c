/* Tests of the errors of the builder: calls in a wrong order, nodes outside their scope, types and
 * texts that a module cannot have, and trees that are too deep. */
#include "builder_fixture.h"

static void refused_types(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_build_parameter(b, "T", KJIT_TYPE);
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_UNSUPPORTED, "a kernel cannot have a type parameter");
  kjit_build_begin_function(b, "f", KJIT_ANY);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  assert_int_equal(kjit_build_type_of(b, kjit_build_binary(b, KJIT_OP_ADD, x, x)), KJIT_VOID);
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_MISUSE, "kjit_build_type_of needs a parameter");
  kjit_build_begin_function(b, "f", KJIT_ANY);
  kjit_node t = kjit_build_parameter(b, "T", KJIT_TYPE);
  kjit_type type = kjit_build_type_of(b, t);
  kjit_build_end(b);
  kjit_build_begin_function(b, "g", KJIT_ANY);
  kjit_build_var(b, "v", type, kjit_build_integer(b, 0));
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_MISUSE, "belongs to another function");
  assert_int_equal(kjit_get_array_type(f->context, type, 1, KJIT_LAYOUT_C, 0), KJIT_VOID);
  const kjit_field field = { .name = "a", .type = KJIT_F32 };
  assert_int_equal(kjit_get_struct_type(f->context, "type", &field, 1, 0), KJIT_VOID);
}

static void node_used_twice(void **state)
{
  fixture *f = *state;
  kjit_build_begin_kernel(f->b, "k");
  kjit_node x = kjit_build_parameter(f->b, "x", KJIT_ANY);
  kjit_set_builder_location(f->b, "front.end", 7, 3);
  kjit_node sum = kjit_build_binary(f->b, KJIT_OP_ADD, x, x);
  kjit_build_let(f->b, "a", sum);
  kjit_set_builder_location(f->b, "front.end", 9, 5);
  assert_int_equal(kjit_build_let(f->b, "b", sum), 0);
  assert_int_equal(kjit_get_builder_status(f->b), KJIT_ERROR_MISUSE);
  kjit_build_end(f->b);
  kjit_build_end(f->b); /* calls after the first error have no effect and report no error */
  const kjit_diagnostic *first = expect_error(f, KJIT_ERROR_MISUSE, "first at front.end:7:3");
  assert_string_equal(first->file, "front.end");
  assert_int_equal(first->line, 9);
  assert_int_equal(kjit_get_diagnostic(f->context, 1)->line, 7);
  assert_int_equal(kjit_get_builder_status(f->b), KJIT_OK);
}

static void wrong_calls(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_let(b, "a", kjit_build_integer(b, 1));
  expect_error(f, KJIT_ERROR_MISUSE, "no kernel or function is open");
  kjit_build_begin_kernel(b, "k");
  expect_error(f, KJIT_ERROR_MISUSE, "kjit_build_end is missing");
  kjit_build_begin_kernel(b, "k");
  kjit_build_else(b);
  expect_error(f, KJIT_ERROR_MISUSE, "kjit_build_else without");
  kjit_build_begin_kernel(b, "k");
  kjit_build_return(b, 12);
  expect_error(f, KJIT_ERROR_MISUSE, "node 12 does not exist");
  kjit_build_begin_kernel(b, "k");
  kjit_build_let(b, "a", 0);
  expect_error(f, KJIT_ERROR_MISUSE, "a node number of 0");
  kjit_build_begin_kernel(b, "k");
  kjit_build_parameter(b, "x", 123456);
  expect_error(f, KJIT_ERROR_MISUSE, "not a type");
  kjit_build_begin_kernel(b, "not a name");
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_NAME, "not a valid kernel name");
  kjit_build_begin_kernel(b, "k");
  kjit_build_evaluate(b, kjit_build_call(b, "nothing", NULL, 0));
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_NAME, "`nothing` is not declared");
  kjit_build_begin_kernel(b, "k");
  kjit_build_binary(b, KJIT_OP_NOT, kjit_build_integer(b, 1), kjit_build_integer(b, 1));
  expect_error(f, KJIT_ERROR_MISUSE, "one operand");
}

/* Modules that the text form cannot represent are rejected, so a printed module can always be
 * parsed. */
static void texts_and_types(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_build_raise(b, "no \xff");
  expect_error(f, KJIT_ERROR_MISUSE, "a string in a kernel must be UTF-8");
  kjit_build_begin_kernel(b, "k");
  kjit_build_assert(b, kjit_build_bool(b, 1), "overlong \xc0\xaf");
  expect_error(f, KJIT_ERROR_MISUSE, "a string in a kernel must be UTF-8");
  kjit_build_begin_kernel(b, "k");
  kjit_build_print(b, (kjit_node[]){ kjit_build_string(b, "cut \xe2\x82") }, 1);
  expect_error(f, KJIT_ERROR_MISUSE, "a string in a kernel must be UTF-8");
  kjit_type pointer = kjit_get_pointer_type(f->context, KJIT_F32, 0);
  kjit_build_begin_kernel(b, "k");
  kjit_build_let(b, "p",
                 kjit_build_construct(b, pointer, (kjit_node[]){ kjit_build_integer(b, 0) }, 1));
  expect_error(f, KJIT_ERROR_TYPE,
               "the type for kjit_build_construct must be a struct, vector or scalar type");
}

/* Each struct type contains the type before it. kjit handles the nested types without recursion. */
static void deep_types(void **state)
{
  fixture *f = *state;
  kjit_type type = KJIT_F32, deepest = type;
  int levels = 0;
  for (; type != KJIT_VOID && levels < 100000; levels++)
    type = kjit_get_pointer_type(f->context, deepest = type, 0);
  assert_int_equal(levels, 201);
  assert_non_null(strstr(kjit_get_diagnostic(f->context, 0)->message, "at most 200 levels deep"));
  kjit_field field = { .name = "next", .type = deepest };
  assert_int_equal(kjit_get_struct_type(f->context, "S", &field, 1, 0), KJIT_VOID);
  assert_non_null(strstr(kjit_get_diagnostic(f->context, 0)->message, "at most 200 levels deep"));
}

static void out_of_scope(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_build_if(b, kjit_build_bool(b, 1));
  kjit_node inner = kjit_build_let(b, "inner", kjit_build_integer(b, 1));
  kjit_build_end(b);
  kjit_build_assign(b, at(b, x, inner), KJIT_OP_STORE, kjit_build_integer(b, 1));
  kjit_build_end(b);
  expect_error(f, KJIT_ERROR_NAME, "outside the block");
  kjit_build_begin_kernel(b, "k");
  kjit_node y = kjit_build_parameter(b, "y", KJIT_ANY);
  kjit_build_end(b);
  kjit_build_begin_kernel(b, "l");
  kjit_build_let(b, "z", y);
  expect_error(f, KJIT_ERROR_MISUSE, "another function");
}

static void deep_trees(void **state)
{
  fixture *f = *state;
  kjit_build_begin_kernel(f->b, "k");
  kjit_node x = kjit_build_parameter(f->b, "x", KJIT_ANY);
  for (int i = 0; i < 100000; i++) x = kjit_build_unary(f->b, KJIT_OP_NEG, x);
  expect_error(f, KJIT_ERROR_MISUSE, "levels");
  kjit_build_begin_kernel(f->b, "k");
  for (int i = 0; i < 100000; i++) kjit_build_if(f->b, kjit_build_bool(f->b, 1));
  expect_error(f, KJIT_ERROR_MISUSE, "levels");
}

static void null_objects(void **state)
{
  fixture *f = *state;
  kjit_module *module = NULL;
  kjit_builder *builder = NULL;
  assert_int_equal(kjit_create_builder(NULL, "m", &builder), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_create_builder(f->context, "m", NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_finish_builder(NULL, &module), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_finish_builder(f->b, NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_build_integer(NULL, 1), 0);
  kjit_build_end(NULL);
  kjit_destroy_builder(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(refused_types, set_up, tear_down),
    cmocka_unit_test_setup_teardown(node_used_twice, set_up, tear_down),
    cmocka_unit_test_setup_teardown(wrong_calls, set_up, tear_down),
    cmocka_unit_test_setup_teardown(texts_and_types, set_up, tear_down),
    cmocka_unit_test_setup_teardown(deep_types, set_up, tear_down),
    cmocka_unit_test_setup_teardown(out_of_scope, set_up, tear_down),
    cmocka_unit_test_setup_teardown(deep_trees, set_up, tear_down),
    cmocka_unit_test_setup_teardown(null_objects, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

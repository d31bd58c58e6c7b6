/* Lets each allocation fail in turn, in calls that make modules from modules and from expressions.
 * The status is KJIT_ERROR_MEMORY, no module is returned, the same call works afterwards, and no
 * memory is leaked. */
#include <kjit/module.h>

#include "failing_memory.h"
#include "kj_test.h"

static kjit_context *context;
/* linked: links two modules, each with an unbound extern func `f` */
static kjit_module *module, *linked;

static double twice(double x) { return 2 * x; }

static kjit_module *parse(const char *text)
{
  kjit_module *parsed;
  assert_int_equal(kjit_parse_module(context, "text", text, strlen(text), &parsed), KJIT_OK);
  return parsed;
}

static kjit_status bind_function(kjit_module **made)
{
  return kjit_bind_extern(module, "f", (void (*)(void))twice, NULL, 0, made);
}

static kjit_status bind_code(kjit_module **made)
{
  static const char code[] = "define double @f(double %x) {\n  ret double %x\n}\n";
  return kjit_bind_extern(module, "f", NULL, code, strlen(code), made);
}

static kjit_status bind_both(kjit_module **made)
{
  return kjit_bind_extern(linked, "f", (void (*)(void))twice, NULL, 0, made);
}

static kjit_status link_modules(kjit_module **made)
{
  return kjit_link_module(module, linked, made);
}

static kjit_status parse_expression(kjit_module **made)
{
  static const char text[] = "sqrt(x) * y + 1";
  static const char *const names[] = { "x", "y" };
  const kjit_expression_options options = { .size_bytes = sizeof options,
                                            .parameters = names,
                                            .parameter_count = 2 };
  kjit_function *function;
  return kjit_parse_expression(context, &options, text, strlen(text), made, &function);
}

static kjit_status derive(kjit_module **made)
{
  kjit_function *function;
  return kjit_derive(linked, "g", KJIT_VJP, NULL, 0, made, &function);
}

static kjit_status derive_kernel(kjit_module **made)
{
  kjit_kernel *kernel, *adjoint;
  kjit_status status = kjit_get_kernel(linked, "k", &kernel);
  return status ? status : kjit_get_adjoint(kernel, NULL, 0, made, &adjoint);
}

/* Returns whether an allocation has failed. */
static bool try_allocation(kjit_status (*call)(kjit_module **made), long number)
{
  kjit_module *made = NULL;
  has_failed = false;
  left = number;
  kjit_status status = call(&made);
  left = 0;
  if (status != KJIT_OK) {
    assert_true(has_failed);
    assert_int_equal(status, KJIT_ERROR_MEMORY);
    assert_null(made);
  }
  kjit_release_module(made);
  return has_failed;
}

static void try_calls(bool with_failures)
{
  static kjit_status (*const rows[])(kjit_module **) = { bind_function, bind_code,        bind_both,
                                                         link_modules,  parse_expression, derive,
                                                         derive_kernel };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    long number = 1;
    while (with_failures && try_allocation(rows[i], number)) number++;
    assert_true(number > 1 || !with_failures);
    assert_false(try_allocation(rows[i], 0));
  }
}

static void test_modules(void **state)
{
  const kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  (void)state;
  is_tester = true;
  for (int round = 0; round < 2; round++) {
    const long before = live;
    assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
    module = parse("extern func f(x: f64) -> f64\nkernel k(r) { r[0] = f(1.0) }");
    kjit_module *other = parse("extern func f(x: f64) -> f64\nfunc g(x) { return f(x) }");
    assert_int_equal(kjit_link_module(module, other, &linked), KJIT_OK);
    try_calls(round == 1);
    kjit_release_module(module);
    kjit_release_module(other);
    kjit_release_module(linked);
    kjit_destroy_context(context);
    assert_int_equal(count_left(round, before), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_modules) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

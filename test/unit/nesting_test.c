/* Parses and prints deeply nested code on threads whose stack has 128 KiB, the smallest stack that
 * kjit promises to work with (docs/embedding.md). Each text has one kind of nesting, with fewer
 * levels than the parser's limit, just as many, and many more. Compilers differ in the sizes of
 * stack frames, so this test runs in the build that is released as well. */
#define _GNU_SOURCE
#include "kj_test.h"

#include <kjit/kjit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 128 * 1024, LIMIT = 200 };

/* `before` and `after` are repeated for each level. `%s` in the frame is the nested code. */
typedef struct nest {
  const char *frame, *before, *core, *after;
} nest;

#define EXPR "func f(v) { return v }\nkernel k(r, x, n) { let v = %s\n x[0] = f32(v) }"
#define BLOCK "kernel k(r, x, n) { %s }"
#define TYPE "kernel k(r, x, n: %s) { x[0] = 1 }"
#define CONST "const T = %s\nkernel k(x) { x[0] = 1 }"

static const nest nests[] = {
  { EXPR, "(", "x[0]", ")" },
  { EXPR, "-", "x[0]", "" },
  { EXPR, "not ", "true", "" },
  { EXPR, "(1, ", "x[0]", ")" },
  { EXPR, "x[i32(", "x[0]", ")]" },
  { EXPR, "sin(", "x[0]", ")" },
  { EXPR, "x[0] ** ", "2", "" },
  { EXPR, "x[0] > 1 ? 2 : ", "3", "" },
  { EXPR, "x[0] > 1 ? (2) : (", "3", ")" },
  { EXPR, "(x[0] + ", "1", ")" },
  { EXPR, "1 + 2 * 3 ** -(", "1", ")" },
  /* one level of brackets contains operators of five levels of precedence */
  { EXPR, "n == 0 or x[0] > 1 and x[0] < 2 + 1 * f(", "1", ")" },
  { EXPR, "len(x[x[", "0", "]:])" },
  { EXPR, "dtype(", "x", ")(1)" },
  { BLOCK, "if x[0] > 1 { ", "x[0] = 1", " }" },
  { BLOCK, "while x[0] > 1 { ", "x[0] = 1", " }" },
  { BLOCK, "for i in range(n) { ", "x[0] = 1", " }" },
  { BLOCK, "if x[0] > 1 {} else { ", "x[0] = 1", " }" },
  { BLOCK, "if r == 1 { } else ", "if n > 0 { }", "" },
  { TYPE, "(", "f32", ",)" },
  { TYPE, "", "f32", "*" },
  { CONST, "{", "1", "}" },
};

typedef struct job {
  kjit_context *context;
  char *text;
  kjit_status status;
} job;

static char *repeat(const nest *n, size_t levels)
{
  size_t bytes = levels * (strlen(n->before) + strlen(n->after)) + strlen(n->core) + 1;
  char *nested = malloc(bytes), *end = nested, *text;
  assert_non_null(nested);
  for (size_t i = 0; i < levels; i++) end = stpcpy(end, n->before);
  end = stpcpy(end, n->core);
  for (size_t i = 0; i < levels; i++) end = stpcpy(end, n->after);
  const char *hole = strstr(n->frame, "%s");
  assert_true(asprintf(&text, "%.*s%s%s", (int)(hole - n->frame), n->frame, nested, hole + 2) > 0);
  free(nested);
  return text;
}

static void *parse_and_print(void *data)
{
  job *j = data;
  kjit_module *module = NULL;
  char *printed = NULL;
  j->status = kjit_parse_module(j->context, "nested", j->text, strlen(j->text), &module);
  if (j->status == KJIT_OK) j->status = kjit_copy_module_text(module, &printed);
  kjit_free(j->context, printed);
  kjit_release_module(module);
  return NULL;
}

static kjit_status run_on_small_stack(kjit_context *context, const nest *n, size_t levels)
{
  job j = { .context = context, .text = repeat(n, levels) };
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
  assert_int_equal(pthread_create(&thread, &attributes, parse_and_print, &j), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  free(j.text);
  return j.status;
}

static void test_nesting(void **state)
{
  (void)state;
  kjit_context *context;
  assert_int_equal(kjit_create_context(NULL, &context), KJIT_OK);
  for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
    if (run_on_small_stack(context, &nests[i], 3) != KJIT_OK)
      fail_msg("3 levels of `%s` are not accepted", nests[i].before);
    for (size_t levels = LIMIT / 2 - 8; levels <= LIMIT; levels += levels < LIMIT - 8 ? 50 : 1)
      run_on_small_stack(context, &nests[i], levels);
    if (run_on_small_stack(context, &nests[i], 5000) != KJIT_ERROR_SYNTAX)
      fail_msg("5000 levels of `%s` are not rejected", nests[i].before);
  }
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_nesting) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A builder in a context of its own for each test, and a check of the error that the builder
 * reports. */
#ifndef BUILDER_FIXTURE_H
#define BUILDER_FIXTURE_H

#include "kj_test.h"

#include <kjit/kjit.h>
#include <string.h>

typedef struct fixture {
  kjit_context *context;
  kjit_builder *b;
} fixture;

static inline int set_up(void **state)
{
  static fixture f;
  assert_int_equal(kjit_create_context(NULL, &f.context), KJIT_OK);
  assert_int_equal(kjit_create_builder(f.context, "built", &f.b), KJIT_OK);
  *state = &f;
  return 0;
}

static inline int tear_down(void **state)
{
  fixture *f = *state;
  kjit_destroy_builder(f->b);
  kjit_destroy_context(f->context);
  return 0;
}

static inline const kjit_diagnostic *expect_error(fixture *f, kjit_status status, const char *part)
{
  kjit_module *module = NULL;
  assert_int_equal(kjit_finish_builder(f->b, &module), status);
  assert_null(module);
  const kjit_diagnostic *first = kjit_get_diagnostic(f->context, 0);
  assert_non_null(first);
  assert_int_equal(first->status, status);
  if (!strstr(first->message, part)) fail_msg("expected \"%s\" in \"%s\"", part, first->message);
  return first;
}

static inline kjit_node at(kjit_builder *b, kjit_node array, kjit_node i)
{
  return kjit_build_index(b, array, &i, 1);
}

#endif

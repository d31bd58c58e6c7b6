/* Types of a context after a fork. A thread of the parent, which does not exist in the child, may
 * hold the lock of the type table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <kjit/module.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic bool is_over;

/* Searches the table in a loop, so that this thread holds the lock most of the time. */
static void *look_up_types(void *user)
{
  while (!is_over) {
    kjit_type type = KJIT_F32;
    for (int level = 0; level < 8 && type; level++) type = kjit_get_pointer_type(user, type, 0);
  }
  return NULL;
}

static bool refuses_all(kjit_context *context, kjit_type made)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  kjit_field fields[] = { { .name = "a", .type = KJIT_F32 } }, found;
  kjit_type parsed;
  uint32_t offset;
  return kjit_get_pointer_type(context, made, 0) == KJIT_VOID &&
         kjit_get_array_type(context, made, 2, KJIT_LAYOUT_C, 0) == KJIT_VOID &&
         kjit_get_struct_type(context, "other", fields, 1, 0) == KJIT_VOID &&
         kjit_get_type_layout(context, made, &layout) == KJIT_ERROR_FORKED &&
         kjit_get_type_field(context, made, 0, &found, &offset) == KJIT_ERROR_FORKED &&
         kjit_parse_type(context, "f32*", &parsed) == KJIT_ERROR_FORKED &&
         !kjit_copy_type_text(context, made);
}

static void test_types_after_a_fork(void **state)
{
  kjit_context *context;
  kjit_field fields[] = { { .name = "a", .type = KJIT_F32 } };
  pthread_t threads[2];
  (void)state;
  assert_int_equal(kjit_create_context(NULL, &context), KJIT_OK);
  kjit_type made = kjit_get_struct_type(context, "pair", fields, 1, 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, look_up_types, context), 0);
  for (int i = 0; i < 200; i++) {
    int status;
    pid_t child = fork();
    if (!child) {
      alarm(100);
      _exit(refuses_all(context, made) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0); /* SIGALRM would mean that the child waits for a lock */
  }
  is_over = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  kjit_destroy_context(context);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_types_after_a_fork) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

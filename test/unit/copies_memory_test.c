/* Lets every allocation of an asynchronous copy between overlapping views of host memory fail in
 * turn, in the order of a GPU's stream. Such a copy needs a buffer. The call either reports the
 * error or copies all elements: an error that occurred only when the stream reaches the copy could
 * not be reported. */
#include "every_allocation.h"

enum { ROWS = 6, COLUMNS = 5 };

struct objects {
  kjit_context *context;
  kjit_stream *stream;
};

static void open_objects(objects *o)
{
  kjit_device *devices[2];
  o->context = open_devices(devices);
  expect_ok(o->context, kjit_create_stream(devices[0], &o->stream));
}

static void close_objects(objects *o)
{
  kjit_destroy_stream(o->stream);
  close_devices(o->context);
}

/* Copies x[:, ::-1] to x. */
static kjit_status reverse_rows(objects *o)
{
  float data[ROWS * COLUMNS];
  int64_t shape[] = { ROWS, COLUMNS }, forward[] = { COLUMNS, 1 }, backward[] = { COLUMNS, -1 };
  for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)i;
  kjit_tensor to = { .data = data,
                     .device_type = 1,
                     .rank = 2,
                     .code = 2,
                     .bits = 32,
                     .lanes = 1,
                     .shape = shape,
                     .strides = forward },
              from = to;
  from.data = data + COLUMNS - 1;
  from.strides = backward;
  kjit_arg destination = kjit_arg_tensor(&to), source = kjit_arg_tensor(&from);
  kjit_status status = kjit_copy_async(o->context, &destination, &source, o->stream);
  /* the driver of the tests has called the copy already */
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) {
      int from_column = status == KJIT_OK ? COLUMNS - 1 - column : column;
      assert_true(data[row * COLUMNS + column] == (float)(row * COLUMNS + from_column));
    }
  return status;
}

static void test_overlapping_copies(void **state)
{
  (void)state;
  static host_step *const steps[] = { reverse_rows };
  objects o;
  const host_work work = { &o, open_objects, close_objects, steps, 1, 1 };
  try_every_allocation(&work, 2, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_overlapping_copies) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tools' reader and writer of .npy files: files from NumPy are read, written files are read
 * back, and every broken file is rejected with a reason. */
#include "kj_test.h"

#include <driver/npy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "npy_test_XXXXXX";

/* Writes a file with this version, dictionary and data. length_override, if not 0, is the length in
 * the header. */
static void write_file(unsigned version, const char *dictionary, const void *data, size_t size,
                       uint32_t length_override)
{
  FILE *file = fopen(path, "wb");
  uint32_t length = length_override ? length_override : (uint32_t)strlen(dictionary);
  assert_non_null(file);
  fprintf(file, "\x93NUMPY%c%c", (int)version, 0);
  fwrite(&length, version == 1 ? 2 : 4, 1, file);
  fputs(dictionary, file);
  if (size) fwrite(data, 1, size, file);
  fclose(file);
}

static void write_bytes(const char *bytes, size_t size)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fwrite(bytes, 1, size, file);
  fclose(file);
}

static void expect_refused(const char *reason)
{
  tool_error error = { 0 };
  tool_array array;
  assert_false(tool_read_npy(&error, path, &array, NULL));
  assert_int_equal(error.exit_status, TOOL_EXIT_FILE);
  if (!strstr(error.text, reason)) fail_msg("expected \"%s\" in \"%s\"", reason, error.text);
  free(error.text);
}

static tool_array expect_read(void)
{
  tool_error error = { 0 };
  tool_array array;
  if (!tool_read_npy(&error, path, &array, NULL)) fail_msg("%s", error.text);
  return array;
}

static void reads_all_versions(void **state)
{
  (void)state;
  const int32_t data[] = { 1, 2, 3, 4, 5, 6 };
  for (unsigned version = 1; version <= 3; version++) {
    write_file(version, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   \n", data,
               sizeof data, 0);
    tool_array array = expect_read();
    assert_int_equal(array.element, KJIT_I32);
    assert_int_equal(array.rank, 2);
    assert_int_equal(array.shape[0], 2);
    assert_int_equal(array.strides[0], 3);
    assert_int_equal(*(int32_t *)tool_element_at(&array, (int64_t[]){ 1, 0 }), 4);
    tool_destroy_memory(array.memory);
  }
}

static void reads_fortran_order(void **state)
{
  (void)state;
  const int32_t data[] = { 1, 4, 2, 5, 3, 6 };
  write_file(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': \"<i4\"}", data, sizeof data, 0);
  tool_array array = expect_read();
  assert_int_equal(array.strides[0], 1);
  assert_int_equal(array.strides[1], 2);
  for (uint64_t i = 0; i < 6; i++)
    assert_int_equal(*(int32_t *)tool_element_number(&array, i), (int)i + 1);
  tool_destroy_memory(array.memory);
}

static void reads_no_dimensions_and_no_elements(void **state)
{
  (void)state;
  const double one = 1.5;
  write_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", &one, sizeof one, 0);
  tool_array array = expect_read();
  assert_int_equal(array.rank, 0);
  assert_true(*(double *)tool_element_number(&array, 0) == 1.5);
  tool_destroy_memory(array.memory);
  write_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }\n", NULL, 0, 0);
  array = expect_read();
  assert_int_equal(tool_count(&array), 0);
  tool_destroy_memory(array.memory);
}

static void makes_bools_0_or_1(void **state)
{
  (void)state;
  write_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", "\x00\x02\xff", 3,
             0);
  tool_array array = expect_read();
  assert_memory_equal(array.memory->data, "\x00\x01\x01", 3);
  tool_destroy_memory(array.memory);
}

static void refuses_what_is_no_npy(void **state)
{
  (void)state;
  write_bytes("", 0);
  expect_refused("only 0 bytes");
  write_bytes("PK\x03\x04xxxxxxxxxx", 14);
  expect_refused("does not start with");
  write_bytes("\x93NUMPY\x09\x00xxxx", 12);
  expect_refused("format version 9.0");
  write_bytes("\x93NUMPY\x02\x00\x01", 9);
  expect_refused("9 bytes");
  write_bytes("\x93NUMPY\x02\x00\x01\x00", 10);
  expect_refused("header is truncated");
}

static void refuses_truncated_headers(void **state)
{
  (void)state;
  write_file(1, "{'descr': '<f4', ", NULL, 0, 118);
  expect_refused("header is truncated");
  write_file(2, "{'descr': '<f4', ", NULL, 0, 0xfffffff0u);
  expect_refused("header is truncated");
  write_file(1, "{'descr': '<f4', ", NULL, 0, 0);
  expect_refused("expected a key");
}

static void refuses_wrong_dictionaries(void **state)
{
  static const struct {
    const char *dictionary, *reason;
  } cases[] = {
    { "{'descr': '<f4', 'fortran_order': False, }", "'shape' is missing" },
    { "{'fortran_order': False, 'shape': (1,), }", "'descr' is missing" },
    { "{'descr': '<f4', 'shape': (1,), }", "'fortran_order' is missing" },
    { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "True or False" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }", "the shape, a tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "an extent of the shape" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "',' or ')'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key 'x'" },
    { "{'descr': '<f4", "a string, such as" },
    { "['descr']", "'{'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
      "more than 8 dimensions" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(1, cases[i].dictionary, "\0\0\0\0", 4, 0);
    expect_refused(cases[i].reason);
  }
}

static void refuses_types(void **state)
{
  static const struct {
    const char *type, *reason;
  } cases[] = {
    { "'>f4'",
      "big-endian; kjit reads little-endian arrays: convert it in numpy with astype('<f4')" },
    { "'|O'", "object arrays" },
    { "'<U5'", "'<U5' is not supported" },
    { "'<f16'", "'<f16' is not supported" },
    { "'<M8[ns]'", "is not supported" },
    { "'|V2'", "is not supported" },
    { "''", "is not supported" },
    { "[('a', '<f4'), ('b', '<i4')]", "structured arrays are not supported" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *dictionary =
      tool_format("{'descr': %s, 'fortran_order': False, 'shape': (1,), }", cases[i].type);
    write_file(1, dictionary, "\0\0\0\0", 4, 0);
    free(dictionary);
    expect_refused(cases[i].reason);
  }
}

static void expect_leaf(const tool_leaves *leaves, size_t index, const char *leaf_path,
                        kjit_type element, uint64_t offset_bytes, uint64_t count)
{
  assert_true(index < leaves->count);
  const tool_leaf *leaf = &leaves->items[index];
  assert_string_equal(leaf->path, leaf_path);
  assert_int_equal(leaf->element, element);
  assert_int_equal(leaf->offset_bytes, offset_bytes);
  assert_int_equal(leaf->count, count);
}

static void reads_structs(void **state)
{
  (void)state;
  static const char data[48];
  tool_error error = { 0 };
  tool_leaves leaves = { 0 };
  tool_array array;
  write_file(1,
             "{'descr': [('id', '|u1'), ('', '|V3'), ('at', [('x', '<f4'), ('n', '<i2', (2,))], "
             "(2,)), ('one', [('b', '|b1')], (1,)), ('s', [('c', '<f8')])], "
             "'fortran_order': False, 'shape': (1,), }",
             data, 29, 0);
  if (!tool_read_npy(&error, path, &array, &leaves)) fail_msg("%s", error.text);
  assert_int_equal(array.lanes, 29);
  assert_int_equal(leaves.count, 7);
  expect_leaf(&leaves, 0, "id", KJIT_U8, 0, 1);
  expect_leaf(&leaves, 1, "at[0].x", KJIT_F32, 4, 1);
  expect_leaf(&leaves, 2, "at[0].n", KJIT_I16, 8, 2);
  expect_leaf(&leaves, 3, "at[1].x", KJIT_F32, 12, 1);
  expect_leaf(&leaves, 4, "at[1].n", KJIT_I16, 16, 2);
  expect_leaf(&leaves, 5, "one[0].b", KJIT_BOOL, 20, 1);
  expect_leaf(&leaves, 6, "s.c", KJIT_F64, 21, 1);
  tool_destroy_leaves(&leaves);
  tool_destroy_memory(array.memory);
}

/* The reading time grows with the length of the text, and not exponentially with the depth. */
static void reads_deep_structs(void **state)
{
  (void)state;
  enum { LEVELS = 31 };
  char type[LEVELS * 32] = "", *end = type;
  for (int i = 0; i < LEVELS; i++) end += sprintf(end, "[('a', ");
  end += sprintf(end, "'<f4'");
  for (int i = 0; i < LEVELS; i++) end += sprintf(end, ", (1,))]");
  tool_error error = { 0 };
  tool_leaves leaves = { 0 };
  tool_array array;
  char *dictionary = tool_format("{'descr': %s, 'fortran_order': False, 'shape': (1,), }", type);
  write_file(2, dictionary, "\0\0\0\0", 4, 0);
  free(dictionary);
  alarm(100);
  if (!tool_read_npy(&error, path, &array, &leaves)) fail_msg("%s", error.text);
  alarm(0);
  assert_int_equal(leaves.count, 1);
  tool_destroy_leaves(&leaves);
  tool_destroy_memory(array.memory);
}

static void refuses_wrong_sizes_before_it_allocates(void **state)
{
  static const struct {
    const char *shape, *reason;
  } cases[] = {
    { "(3,)", "states 12 bytes of data, but the file has 8: it is truncated" },
    { "(1,)", "states 4 bytes of data, but the file has 8" },
    { "(1000000000000000,)", "states 4000000000000000 bytes of data" },
    { "(9223372036854775807,)", "does not fit in 63 bits" },
    { "(4294967296, 4294967296)", "does not fit in 63 bits" },
    { "(4294967296, 0, 4294967296, 4294967296)", "does not fit in 63 bits" },
    { "(99999999999999999999999,)", "does not fit in 63 bits" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *dictionary =
      tool_format("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", cases[i].shape);
    write_file(1, dictionary, "\0\0\0\0\0\0\0\0", 8, 0);
    free(dictionary);
    expect_refused(cases[i].reason);
  }
}

static void refuses_missing_files_and_folders(void **state)
{
  tool_error error = { 0 };
  tool_array array;
  (void)state;
  assert_false(tool_read_npy(&error, "no/such/file.npy", &array, NULL));
  assert_non_null(strstr(error.text, "no/such/file.npy: No such file"));
  free(error.text);
  error = (tool_error){ 0 };
  assert_false(tool_read_npy(&error, ".", &array, NULL));
  assert_non_null(strstr(error.text, "not a directory"));
  free(error.text);
}

static void every_prefix_is_refused(void **state)
{
  const float data[] = { 1, 2 };
  char bytes[256];
  (void)state;
  write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", data, sizeof data,
             0);
  FILE *file = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (size_t length = 0; length < size; length++) {
    write_bytes(bytes, length);
    expect_refused(path);
  }
}

/* Whichever byte of the header is changed, the file is either read or rejected. */
static void every_changed_byte_is_survived(void **state)
{
  const float data[] = { 1, 2 };
  char bytes[256];
  (void)state;
  write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", data, sizeof data,
             0);
  FILE *file = fopen(path, "rb");
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (size_t at = 0; at < size; at++) {
    for (int change = 1; change < 256; change += 7) {
      tool_error error = { 0 };
      tool_array array;
      bytes[at] = (char)(bytes[at] ^ change);
      write_bytes(bytes, size);
      if (tool_read_npy(&error, path, &array, NULL)) tool_destroy_memory(array.memory);
      free(error.text);
      bytes[at] = (char)(bytes[at] ^ change);
    }
  }
}

static void what_is_written_reads_back(void **state)
{
  (void)state;
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++) {
    for (int fortran = 0; fortran < 2; fortran++) {
      tool_error error = { 0 };
      tool_array array;
      tool_shape shape = {
        .element = type, .rank = 3, .extents = { 2, 3, 4 }, .is_fortran = fortran
      };
      assert_true(tool_create_array(&error, &shape, &array));
      for (uint64_t i = 0; i < tool_count(&array); i++) {
        tool_number number = tool_make_integer((int64_t)(type == KJIT_BOOL ? i % 2 : i));
        tool_store(type, tool_element_number(&array, i), &number);
      }
      assert_true(tool_write_npy(&error, path, &array));
      tool_array read = expect_read();
      assert_int_equal(read.element, type == KJIT_BF16 ? KJIT_F32 : type);
      assert_int_equal(read.rank, 3);
      for (uint64_t i = 0; i < tool_count(&array); i++) {
        tool_number a = tool_load(type, tool_element_number(&array, i)),
                    b = tool_load(read.element, tool_element_number(&read, i));
        assert_true(tool_number_real(&a) == tool_number_real(&b));
      }
      tool_destroy_memory(read.memory);
      tool_destroy_memory(array.memory);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_all_versions),
    cmocka_unit_test(reads_fortran_order),
    cmocka_unit_test(reads_no_dimensions_and_no_elements),
    cmocka_unit_test(makes_bools_0_or_1),
    cmocka_unit_test(refuses_what_is_no_npy),
    cmocka_unit_test(refuses_truncated_headers),
    cmocka_unit_test(refuses_wrong_dictionaries),
    cmocka_unit_test(refuses_types),
    cmocka_unit_test(reads_structs),
    cmocka_unit_test(reads_deep_structs),
    cmocka_unit_test(refuses_wrong_sizes_before_it_allocates),
    cmocka_unit_test(refuses_missing_files_and_folders),
    cmocka_unit_test(every_prefix_is_refused),
    cmocka_unit_test(every_changed_byte_is_survived),
    cmocka_unit_test(what_is_written_reads_back),
  };
  int file = mkstemp(path);
  if (file < 0) return 1;
  close(file);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}

/* Maps called by an application: broadcasting, values and funcs as operands, several results,
 * masks, outer products, core dimensions, descriptions of results; and calls that kjit rejects. The
 * program's working folder contains a file with the name of a kjit module that maps import. Such a
 * file must not replace the module.
 * RUN: %programs/map
 * RUN: %if cuda %{ %programs/map cuda %}
 */
#include "algorithm_host.h"

enum { ROWS = 37, COLUMNS = 300, COUNT = ROWS * COLUMNS };
static float matrix[COUNT], row[COLUMNS], column[ROWS];

static const char funcs[] =
  "func multiply_add(a, b, c) { return a * b + c }\n"
  "func both(a, b) { return a + b, a > b }\n"
  "func doubled(j, x) { return 2 * x[j] }\n"
  "func keep(i, j, v, r) { r[j, i] = v }\n"
  "func dot(x, y, r) { var s = 0.f32\n for i in range(len(x)) { s += x[i] * y[i] }\n r[0] = s }\n"
  "func nothing(x) { let y = x }\n"
  "func never(x) { if x > 10 { raise \"too large\" }\n return x }\n";

typedef struct arrays {
  kjit_array *matrix, *row, *column, *result;
  kjit_operand x[3], r; /* column[:, None], row, matrix */
} arrays;

static int64_t of_matrix[] = { ROWS, COLUMNS }, of_row = COLUMNS, of_column[] = { ROWS, 1 };

static arrays make_arrays(void)
{
  arrays a = { .matrix = make_array_of(KJIT_F32, of_matrix, 2, matrix, sizeof matrix),
               .row = make_array_of(KJIT_F32, &of_row, 1, row, sizeof row),
               .column = make_array_of(KJIT_F32, of_column, 2, column, sizeof column),
               .result = make_array(KJIT_F32, of_matrix, 2) };
  a.x[0] = kjit_operand_array(a.column);
  a.x[1] = kjit_operand_array(a.row);
  a.x[2] = kjit_operand_array(a.matrix);
  a.r = kjit_operand_array(a.result);
  return a;
}

static void release_arrays(arrays *a)
{
  kjit_release_array(a->matrix);
  kjit_release_array(a->row);
  kjit_release_array(a->column);
  kjit_release_array(a->result);
}

static void test_broadcast(kjit_module *module)
{
  static float got[COUNT];
  static bool larger[COUNT];
  arrays a = make_arrays();
  kjit_array *flags = make_array(KJIT_BOOL, of_matrix, 2);
  REQUIRE(kjit_map(context, &a.r, 1, find(module, "multiply_add"), a.x, 3, NULL) == KJIT_OK);
  read_array(a.result, got, sizeof got);
  for (int i = 0; i < COUNT; i++)
    REQUIRE(got[i] == column[i / COLUMNS] * row[i % COLUMNS] + matrix[i]);
  /* in place, with a number that takes the others' type */
  kjit_operand values[] = { a.x[2], kjit_operand_of(kjit_arg_number(3)),
                            kjit_operand_of(kjit_arg_f32(0.5f)) };
  kjit_operand results[] = { a.x[2], kjit_operand_array(flags) };
  REQUIRE(kjit_map(context, &a.x[2], 1, find(module, "multiply_add"), values, 3, NULL) == KJIT_OK);
  read_array(a.matrix, got, sizeof got);
  for (int i = 0; i < COUNT; i++) REQUIRE(got[i] == matrix[i] * 3 + 0.5f);
  REQUIRE(kjit_map(context, results, 2, find(module, "both"), a.x, 2, NULL) == KJIT_OK);
  read_array(a.matrix, got, sizeof got);
  read_array(flags, larger, sizeof larger);
  for (int i = 0; i < COUNT; i++) {
    float c = column[i / COLUMNS], r = row[i % COLUMNS];
    REQUIRE(got[i] == c + r && larger[i] == (c > r));
  }
  kjit_release_array(flags);
  release_arrays(&a);
}

static void test_where(kjit_module *module)
{
  static float got[COUNT];
  bool mask[ROWS];
  arrays a = make_arrays();
  for (int i = 0; i < ROWS; i++) mask[i] = rand() % 2;
  kjit_array *chosen = make_array_of(KJIT_BOOL, of_column, 2, mask, sizeof mask);
  kjit_operand where = kjit_operand_array(chosen);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_arg zero = kjit_arg_number(-7), whole = kjit_arg_array(a.result);
  options.where = &where;
  REQUIRE(kjit_fill(context, &whole, &zero, NULL) == KJIT_OK);
  REQUIRE(kjit_map(context, &a.r, 1, find(module, "multiply_add"), a.x, 3, &options) == KJIT_OK);
  read_array(a.result, got, sizeof got);
  for (int i = 0; i < COUNT; i++) {
    float want = column[i / COLUMNS] * row[i % COLUMNS] + matrix[i];
    REQUIRE(got[i] == (mask[i / COLUMNS] ? want : -7));
  }
  kjit_release_array(chosen);
  release_arrays(&a);
}

static void test_funcs(kjit_module *module)
{
  static float got[COUNT];
  arrays a = make_arrays();
  int64_t transposed[] = { COLUMNS, ROWS };
  kjit_array *turned = make_array(KJIT_F32, transposed, 2);
  kjit_arg of_doubled = kjit_arg_array(a.row), of_keep = kjit_arg_array(turned);
  kjit_operand x[] = { a.x[0],
                       kjit_operand_function(find(module, "doubled"), &of_doubled, 1, &of_row, 1),
                       a.x[2] },
               r = kjit_operand_function(find(module, "keep"), &of_keep, 1, of_matrix, 2);
  REQUIRE(kjit_map(context, &r, 1, find(module, "multiply_add"), x, 3, NULL) == KJIT_OK);
  read_array(turned, got, sizeof got);
  for (int i = 0; i < COUNT; i++) {
    float want = column[i / COLUMNS] * (2 * row[i % COLUMNS]) + matrix[i];
    REQUIRE(got[i % COLUMNS * ROWS + i / COLUMNS] == want);
  }
  /* a built-in */
  kjit_function *max = find(module, "max");
  REQUIRE(kjit_map(context, &a.r, 1, max, a.x, 2, NULL) == KJIT_OK);
  read_array(a.result, got, sizeof got);
  for (int i = 0; i < COUNT; i++) {
    float c = column[i / COLUMNS], w = row[i % COLUMNS];
    REQUIRE(got[i] == (c > w ? c : w));
  }
  kjit_release_array(turned);
  release_arrays(&a);
}

static void test_outer_and_cores(kjit_module *module)
{
  static float got[COUNT];
  arrays a = make_arrays();
  int64_t rows = ROWS;
  kjit_array *line = NULL, *dots = make_array(KJIT_F32, &rows, 1);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  REQUIRE(kjit_reshape_array(a.column, &rows, 1, &line) == KJIT_OK);
  kjit_operand pair[] = { kjit_operand_array(line), a.x[1] }, sums = kjit_operand_array(dots),
               both[] = { a.x[2], a.x[1] };
  options = (kjit_algorithm_options){ .size_bytes = sizeof options };
  options.flags = KJIT_ALGORITHM_OUTER;
  REQUIRE(kjit_map(context, &a.r, 1, find(module, "min"), pair, 2, &options) == KJIT_OK);
  read_array(a.result, got, sizeof got);
  for (int i = 0; i < COUNT; i++) {
    float c = column[i / COLUMNS], w = row[i % COLUMNS];
    REQUIRE(got[i] == (c < w ? c : w));
  }
  options.flags = 0;
  options.signature = "(n),(n)->()";
  REQUIRE(kjit_map(context, &sums, 1, find(module, "dot"), both, 2, &options) == KJIT_OK);
  read_array(dots, got, ROWS * sizeof *got);
  for (int i = 0; i < ROWS; i++) {
    float want = 0;
    for (int j = 0; j < COLUMNS; j++) want += matrix[i * COLUMNS + j] * row[j];
    REQUIRE(got[i] == want);
  }
  kjit_release_array(line);
  kjit_release_array(dots);
  release_arrays(&a);
}

static void test_results(kjit_module *module)
{
  arrays a = make_arrays();
  kjit_result_info infos[2];
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  options.results = infos;
  options.result_count = 2;
  REQUIRE(kjit_map(context, NULL, 2, find(module, "both"), a.x, 2, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_F32 && infos[1].element == KJIT_BOOL && infos[1].rank == 2);
  REQUIRE(infos[0].shape[0] == ROWS && infos[0].shape[1] == COLUMNS);
  /* the same for an application that does not know the number of results */
  infos[1].element = KJIT_ANY;
  REQUIRE(kjit_map(context, NULL, 0, find(module, "both"), a.x, 2, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_F32 && infos[1].element == KJIT_BOOL && infos[1].rank == 2);
  options.signature = "(n),(n)->(n,3)";
  options.flags = KJIT_ALGORITHM_OUTER;
  REQUIRE(kjit_map(context, NULL, 1, find(module, "dot"), a.x + 1, 2, &options) ==
          KJIT_ERROR_ARGUMENT);
  options.flags = 0;
  REQUIRE(kjit_map(context, NULL, 1, find(module, "dot"), a.x + 1, 2, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_ANY && infos[0].rank == 3 && infos[0].shape[2] == 3);
  options = (kjit_algorithm_options){ .size_bytes = sizeof options };
  options.plan = &plan;
  REQUIRE(kjit_map(context, &a.r, 1, find(module, "multiply_add"), a.x, 3, &options) == KJIT_OK);
  REQUIRE(kjit_get_plan_size(plan) == 1 && kjit_run_plan(plan, NULL) == KJIT_OK);
  kjit_destroy_plan(plan);
  release_arrays(&a);
}

static void test_refused(kjit_module *module)
{
  arrays a = make_arrays();
  int64_t seven = 7, no_strides[] = { 0, 1 };
  kjit_tensor flat = tensor_of(matrix, 2, 32, of_matrix, 2);
  flat.strides = no_strides;
  kjit_array *ints = make_array(KJIT_U32, of_matrix, 2), *short_ = make_array(KJIT_F32, &seven, 1);
  kjit_array_slice one = { 0, 1, 1 };
  kjit_array *part = NULL;
  REQUIRE(kjit_slice_array(a.matrix, &one, 1, &part) == KJIT_OK);
  kjit_operand of_ints = kjit_operand_array(ints), of_short = kjit_operand_array(short_),
               of_part = kjit_operand_array(part),
               of_flat = kjit_operand_of(kjit_arg_tensor(&flat)), mixed[] = { a.x[2], of_short },
               twice[] = { a.r, a.r }, number[] = { of_ints, kjit_operand_of(kjit_arg_number(-1)) };
  kjit_algorithm_options masked = { .size_bytes = sizeof masked },
                         cores = { .size_bytes = sizeof cores },
                         other = { .size_bytes = sizeof other };
  masked = (kjit_algorithm_options){ .size_bytes = sizeof masked };
  cores = other = masked;
  masked.where = &a.x[1];
  cores.signature = "(n),(n->()";
  other.signature = "(m),(n)->(m,n)";
  const struct {
    const kjit_operand *results;
    size_t result_count;
    const char *func;
    const kjit_operand *operands;
    size_t count;
    const kjit_algorithm_options *options;
    kjit_status status;
    const char *message;
  } cases[] = {
    { &a.r, 1, "max", mixed, 2, NULL, KJIT_ERROR_ARGUMENT,
      "`x1` has the shape (7,), which does not broadcast with (37, 300)" },
    { &of_part, 1, "max", a.x, 2, NULL, KJIT_ERROR_ARGUMENT,
      "`r0` has the shape (1, 300), but the operands broadcast to (37, 300)" },
    { &of_ints, 1, "max", a.x, 2, NULL, KJIT_ERROR_TYPE,
      "`r0` has elements of type u32, but the function returns f32" },
    { &a.r, 1, "both", a.x, 2, NULL, KJIT_ERROR_TYPE, "which is 2 results, but the call has 1" },
    { &a.r, 1, "nothing", a.x, 1, NULL, KJIT_ERROR_TYPE, "the function returns nothing" },
    { &a.r, 1, "max", a.x, 2, &masked, KJIT_ERROR_TYPE, "`where` has elements of type f32" },
    { &of_part, 1, "max", a.x + 1, 2, NULL, KJIT_ERROR_ARGUMENT, "the output `r0` overlaps" },
    { twice, 2, "both", a.x, 2, NULL, KJIT_ERROR_ARGUMENT, "the output `r1` overlaps `r0`" },
    { &of_flat, 1, "max", a.x, 2, NULL, KJIT_ERROR_ARGUMENT, "has overlapping elements" },
    { &of_ints, 1, "max", number, 2, NULL, KJIT_ERROR_ARGUMENT, "cannot be represented as u32" },
    { &a.r, 1, "dot", a.x, 2, &cores, KJIT_ERROR_SYNTAX, "expected `,` or `)` at character 7" },
    { &a.r, 1, "dot", a.x + 1, 2, &other, KJIT_ERROR_ARGUMENT, "`r0`" },
    { NULL, 1, "max", a.x, 2, NULL, KJIT_ERROR_MISUSE, "results is NULL" },
    { &a.r, 0, "max", a.x, 2, NULL, KJIT_ERROR_ARGUMENT, "the number of results is 0" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    REQUIRE(kjit_map(context, cases[i].results, cases[i].result_count, find(module, cases[i].func),
                     cases[i].operands, cases[i].count, cases[i].options) == cases[i].status);
    REQUIRE(says(cases[i].message));
  }
  kjit_status status = kjit_map(context, &a.r, 1, find(module, "never"), a.x + 2, 1, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  REQUIRE(status == KJIT_ERROR_KERNEL && says("too large") && says("functions.kir:"));
  kjit_release_array(ints);
  kjit_release_array(short_);
  kjit_release_array(part);
  release_arrays(&a);
}

static void test_all(void)
{
  for (int i = 0; i < COUNT; i++) matrix[i] = (float)(rand() % 41 - 20);
  for (int i = 0; i < COLUMNS; i++) row[i] = (float)(rand() % 41 - 20);
  for (int i = 0; i < ROWS; i++) column[i] = (float)(rand() % 41 - 20);
  matrix[5] = 20;
  kjit_module *module = parse(funcs);
  test_broadcast(module);
  test_where(module);
  test_funcs(module);
  test_outer_and_cores(module);
  test_results(module);
  test_refused(module);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }

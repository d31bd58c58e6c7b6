/* Sorts called by an application. Each line of a file describes a sort; sorts.py writes the lines
 * and compares the results with NumPy. Also calls that kjit rejects.
 * REQUIRES: numpy
 * RUN: %python %S/sorts.py %programs/sorts
 * RUN: %if cuda %{ %python %S/sorts.py %programs/sorts cuda %}
 */
#include "algorithm_host.h"

static kjit_module *module;

static const char funcs[] = "struct Wide { a: u64; b: u32; c: u64[2] }\n"
                            "func by_low_bits(x, y) { return (x & 7) < (y & 7) }\n"
                            "func by_b(x, y) { return x.b < y.b }\n"
                            "func key(i, x) { return x[i] }\n"
                            "func keep(i, v, r) { r[i] = v }\n";

/* ---- one line ---- */

typedef struct line {
  char what[16], type[16], value_type[16], less[16], path[512];
  int rank, axis, transposed, in_place, flags, begin, end, planned, as_funcs;
  int64_t shape[8], count;
} line;

static bool read_line(FILE *file, line *l)
{
  if (fscanf(file, "%15s %15s %15s %15s %d %d %d %d %d %d %d %d", l->what, l->type, l->value_type,
             l->less, &l->axis, &l->transposed, &l->in_place, &l->flags, &l->begin, &l->end,
             &l->planned, &l->as_funcs) != 12)
    return false;
  if (fscanf(file, "%d", &l->rank) != 1) return false;
  l->count = 1;
  for (int i = 0; i < l->rank; i++) {
    if (fscanf(file, "%lld", (long long *)&l->shape[i]) != 1) return false;
    l->count *= l->shape[i];
  }
  return fscanf(file, "%511s", l->path) == 1;
}

static FILE *open_file(const line *l, const char *ending, const char *mode)
{
  char path[600];
  snprintf(path, sizeof path, "%s.%s", l->path, ending);
  FILE *file = fopen(path, mode);
  REQUIRE(file != NULL);
  return file;
}

/* Reads an array from a file; the size of the array is that of the file. */
static size_t read_file(const line *l, const char *ending, kjit_array *array)
{
  FILE *file = open_file(l, ending, "rb");
  fseek(file, 0, SEEK_END);
  size_t bytes = (size_t)ftell(file);
  void *data = malloc(bytes + 1);
  rewind(file);
  REQUIRE(fread(data, 1, bytes, file) == bytes);
  REQUIRE(kjit_copy_from_host(array, data, bytes, NULL) == KJIT_OK);
  fclose(file);
  free(data);
  return bytes;
}

static void write_file(const line *l, const char *ending, const kjit_array *array, size_t bytes)
{
  FILE *file = open_file(l, ending, "wb");
  void *data = malloc(bytes + 1);
  REQUIRE(kjit_copy_to_host(array, data, bytes, NULL) == KJIT_OK);
  REQUIRE(fwrite(data, 1, bytes, file) == bytes);
  fclose(file);
  free(data);
}

/* Two arrays of the shape. If the line says so, they are views of transposed matrices. */
typedef struct both {
  kjit_array *memory, *seen;
} both;

static both make(const line *l, const char *type_name)
{
  both made = { NULL, NULL };
  kjit_type type;
  int64_t shape[8];
  for (int i = 0; i < l->rank; i++) shape[i] = l->shape[l->transposed ? l->rank - 1 - i : i];
  REQUIRE(kjit_parse_type(context, type_name, &type) == KJIT_OK);
  REQUIRE(kjit_create_array(device, type, shape, (uint32_t)l->rank, &made.memory) == KJIT_OK);
  if (l->transposed) REQUIRE(kjit_transpose_array(made.memory, NULL, &made.seen) == KJIT_OK);
  else made.seen = kjit_retain_array(made.memory);
  return made;
}

static void release(both arrays)
{
  kjit_release_array(arrays.memory);
  kjit_release_array(arrays.seen);
}

static kjit_status call(const line *l, const kjit_operand *r, const kjit_operand *rv,
                        const kjit_operand *x, const kjit_operand *v,
                        const kjit_algorithm_options *options)
{
  kjit_function *less = strcmp(l->less, "-") ? find(module, l->less) : NULL;
  if (!strcmp(l->what, "sort")) return kjit_sort(context, r, x, less, options);
  if (!strcmp(l->what, "argsort")) return kjit_argsort(context, rv, x, less, options);
  return kjit_sort_pairs(context, r, rv, x, v, less, options);
}

static kjit_operand operand(const line *l, const kjit_arg *array, const char *name)
{
  if (!l->as_funcs) return kjit_operand_of(*array);
  return kjit_operand_function(find(module, name), array, 1, l->shape, (uint32_t)l->rank);
}

static void run_line(const line *l)
{
  both x = make(l, l->type), v = make(l, l->value_type), r = l->in_place ? x : make(l, l->type),
       rv = l->in_place ? v : make(l, l->value_type);
  kjit_arg args[] = { kjit_arg_array(x.seen), kjit_arg_array(v.seen), kjit_arg_array(r.seen),
                      kjit_arg_array(rv.seen) };
  kjit_operand ox = operand(l, &args[0], "key"), ov = operand(l, &args[1], "key"),
               or = operand(l, &args[2], "keep"), orv = operand(l, &args[3], "keep");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  int32_t axis = l->axis;
  options.flags = (uint32_t)l->flags;
  options.begin_bit = (uint32_t)l->begin;
  options.end_bit = (uint32_t)l->end;
  options.axes = &axis;
  options.axis_count = 1;
  if (l->planned) options.plan = &plan;
  size_t bytes = read_file(l, "x", x.memory), value_bytes = read_file(l, "v", v.memory);
  REQUIRE(call(l, & or, &orv, &ox, &ov, &options) == KJIT_OK);
  /* each run leaves temporary storage in the state that the next run needs */
  for (int i = 0; i < l->planned; i++) {
    if (l->in_place && i) {
      (void)read_file(l, "x", x.memory);
      (void)read_file(l, "v", v.memory);
    }
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
  }
  kjit_destroy_plan(plan);
  write_file(l, "r", r.memory, bytes);
  write_file(l, "rv", rv.memory, value_bytes);
  release(x);
  release(v);
  if (!l->in_place) {
    release(r);
    release(rv);
  }
}

/* ---- rejected calls ---- */

static void test_refused(void)
{
  int64_t n = 10, shape[] = { 2, 5 };
  kjit_type wide;
  kjit_array *x, *y, *square, *structs, *part;
  kjit_array_slice head = { 0, 5, 1 };
  REQUIRE(kjit_parse_type(context, "Wide", &wide) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_I32, &n, 1, &x) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_F32, &n, 1, &y) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_I32, shape, 2, &square) == KJIT_OK);
  REQUIRE(kjit_create_array(device, wide, &n, 1, &structs) == KJIT_OK);
  REQUIRE(kjit_slice_array(x, &head, 1, &part) == KJIT_OK);
  kjit_operand ox = kjit_operand_array(x), oy = kjit_operand_array(y),
               osquare = kjit_operand_array(square), ostructs = kjit_operand_array(structs),
               opart = kjit_operand_array(part);
  kjit_algorithm_options bits = { .size_bytes = sizeof bits }, axes = { .size_bytes = sizeof axes };
  int32_t both_axes[] = { 0, 1 };
  bits = (kjit_algorithm_options){ .size_bytes = sizeof bits };
  axes = (kjit_algorithm_options){ .size_bytes = sizeof axes };
  bits.begin_bit = 8;
  bits.end_bit = 33;
  axes.axes = both_axes;
  axes.axis_count = 2;
  REQUIRE(kjit_sort(context, &oy, &ox, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result` has elements of type f32: expected i32"));
  REQUIRE(kjit_sort(context, &osquare, &ox, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have the shape of `x`"));
  REQUIRE(kjit_sort(context, &ostructs, &ostructs, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("elements of type Wide have no order; pass `less`"));
  REQUIRE(kjit_sort(context, &ox, &ox, NULL, &bits) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.begin_bit and options.end_bit select the bits 8 to 33, but the elements of "
               "`x` have 32 bits"));
  REQUIRE(kjit_sort(context, &ox, &ox, find(module, "by_low_bits"), &bits) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("cannot be combined with `less`"));
  REQUIRE(kjit_sort(context, &osquare, &osquare, NULL, &axes) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("axes; a sort takes one"));
  REQUIRE(kjit_argsort(context, &oy, &ox, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("positions are integers"));
  REQUIRE(kjit_argsort(context, &ox, &ox, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_sort_pairs(context, &ox, &ox, &ox, &ox, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_sort_pairs(context, &ox, &ostructs, &ox, NULL, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_sort_pairs(context, &ox, &ox, &ox, &opart, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`values` must have the shape of `x`"));
  kjit_array *arrays[] = { x, y, square, structs, part };
  for (int i = 0; i < 5; i++) kjit_release_array(arrays[i]);
}

static void test_described(void)
{
  int64_t shape[] = { 2, 5 };
  kjit_array *x, *v;
  kjit_result_info info[2];
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.results = info;
  options.result_count = 2;
  REQUIRE(kjit_create_array(device, KJIT_U16, shape, 2, &x) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_F64, shape, 2, &v) == KJIT_OK);
  kjit_operand ox = kjit_operand_array(x), ov = kjit_operand_array(v);
  REQUIRE(kjit_argsort(context, NULL, &ox, NULL, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I64 && info[0].rank == 2 && info[0].shape[1] == 5);
  REQUIRE(kjit_sort_pairs(context, NULL, NULL, &ox, &ov, NULL, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_U16 && info[1].element == KJIT_F64 && info[1].shape[0] == 2);
  kjit_release_array(x);
  kjit_release_array(v);
}

static const char *lines_path;

static void test_all(void)
{
  line l;
  module = parse(funcs);
  FILE *file = fopen(lines_path, "r");
  REQUIRE(file != NULL);
  while (file && read_line(file, &l)) run_line(&l);
  if (file) fclose(file);
  test_refused();
  test_described();
  kjit_release_module(module);
}

int main(int argc, char **argv)
{
  lines_path = argv[1];
  return run_algorithm_tests(argc, argv, test_all);
}

/* algorithms.c DEVICE [ask] [EXPONENT...]: Measures kjit's algorithms by plans; DEVICE is cuda or
 * cpu. With `ask` it answers lines on standard input, see `answer`. Without `ask` it prints a line
 * for each row and size: name, exponent of the number of elements, median us of several runs
 * between two events; then, as `host`, the time of a plan's run and of a call on the host.
 * test/bench/algorithms.py, algorithms_cpu.py and algorithms_cupy.py compile this program and print
 * its results next to those of the peers. */
#define _GNU_SOURCE
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 28, REPETITIONS = 15, LENGTH = 1024, SHORT = 8, RUN = 16, MANY = 1 << 20 };

static kjit_context *context;
static kjit_device *device;

#define TRY(call) try((call), __LINE__)
static void try(kjit_status status, int line)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "line %d: %s\n", line, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static double now_us(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- data ---- */

static const char source[] = "func largest(a, b) { return a > b ? a : b }\n"
                             "func less(a, b) { return a < b }\n"
                             "func is_odd(i, x) { return (x[i] & 1) != 0 }\n"
                             "func line(a, b, c) { return a * b + c }\n"
                             "func exponential(a) { return exp(a) }\n"
                             "func is_large(i, x) { return x[i] > 0.5 }\n"
                             "kernel cut(x, n, length) {\n"
                             "  for i in grid_range(len(x)) {\n"
                             "    let z = (u64(i + 1) * 0x9e3779b97f4a7c15u64) >> 32\n"
                             "    let at = i64(i) * length + i64(z) % length\n"
                             "    x[i] = i == 0 ? 0 : i == len(x) - 1 ? n : at\n"
                             "  }\n"
                             "}\n"
                             "func third(i, x) {\n"
                             "  return x[i] < 0x55555555u32 ? 0 : x[i] < 0xaaaaaaaau32 ? 1 : 2\n"
                             "}\n"
                             "kernel ascend(x, seed) {\n"
                             "  for i in grid_range(len(x)) {\n"
                             "    var z = u64(i + seed) * 0x9e3779b97f4a7c15u64\n"
                             "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u64\n"
                             "    x[i] = dtype(x)(2 * u64(i) + (z >> 63))\n"
                             "  }\n"
                             "}\n"
                             "kernel fill(x, mask) {\n"
                             "  for i in grid_range(len(x)) {\n"
                             "    var z = u64(i + 1) * 0x9e3779b97f4a7c15u64\n"
                             "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u64\n"
                             "    x[i] = dtype(x)(sizeof(dtype(x)) == 8 ? z : z >> 32) & mask\n"
                             "  }\n"
                             "}\n"
                             "func mix(i) {\n"
                             "  var z = u64(i + 1) * 0x9e3779b97f4a7c15u64\n"
                             "  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u64\n"
                             "  return i64(z >> 40)\n"
                             "}\n"
                             "func start(i, each) {\n"
                             "  return popc(i) <= 1 ? i * each : i * each + mix(i) % each\n"
                             "}\n"
                             "kernel fill_offsets(x, each) {\n"
                             "  for i in grid_range(len(x)) { x[i] = start(i64(i), each) }\n"
                             "}\n"
                             "kernel fill_keys(x, each) {\n"
                             "  for i in grid_range(len(x)) {\n"
                             "    let k = i64(i) // each\n"
                             "    x[i] = k - (i64(i) < start(k, each) ? 1 : 0)\n"
                             "  }\n"
                             "}\n"
                             "kernel fill_reals(x) {\n"
                             "  for i in grid_range(len(x)) {\n"
                             "    var z = u64(i + 1) * 0x9e3779b97f4a7c15u64\n"
                             "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u64\n"
                             "    x[i] = dtype(x)(z >> 40) / 16777216\n"
                             "  }\n"
                             "}\n";
static kjit_module *module;

static kjit_array *make(kjit_type type, int64_t count)
{
  kjit_array *array;
  TRY(kjit_create_array(device, type, &count, 1, &array));
  return array;
}

/* Creates an array of random numbers. */
static kjit_array *make_random(kjit_type type, int64_t count, uint64_t mask)
{
  kjit_array *array = make(type, count);
  kjit_kernel *fill;
  kjit_arg arguments[] = { kjit_arg_array(array),
                           type == KJIT_U64 ? kjit_arg_u64(mask) : kjit_arg_u32((uint32_t)mask) };
  TRY(kjit_get_kernel(module, "fill", &fill));
  TRY(kjit_launch(fill, NULL, arguments, 2));
  return array;
}

/* Creates an array of random numbers from 0 to 1. */
static kjit_array *make_reals(kjit_type type, int64_t count)
{
  kjit_array *array = make(type, count);
  kjit_kernel *fill;
  kjit_arg argument = kjit_arg_array(array);
  TRY(kjit_get_kernel(module, "fill_reals", &fill));
  TRY(kjit_launch(fill, NULL, &argument, 1));
  return array;
}

/* With `fill_offsets`: the starts of segments of random lengths, `each` on average, where a power
 * of two of segments end exactly at a multiple of their average. With `fill_keys`: sorted keys,
 * where runs of equal keys have these lengths. */
static kjit_array *make_segments(const char *kernel, kjit_type type, int64_t count, int64_t each)
{
  kjit_array *array = make(type, count);
  kjit_kernel *fill;
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_i64(each) };
  TRY(kjit_get_kernel(module, kernel, &fill));
  TRY(kjit_launch(fill, NULL, arguments, 2));
  return array;
}

/* Creates ascending numbers. Two such arrays have about half of their numbers in common. */
static kjit_array *make_ascending(int64_t count, int64_t seed)
{
  kjit_array *array = make(KJIT_U32, count);
  kjit_kernel *ascend;
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_i64(seed) };
  TRY(kjit_get_kernel(module, "ascend", &ascend));
  TRY(kjit_launch(ascend, NULL, arguments, 2));
  return array;
}

static kjit_array *view(kjit_array *array, kjit_type type, int64_t count)
{
  kjit_array *made;
  kjit_tensor tensor = *kjit_get_tensor(array);
  tensor.code = type == KJIT_F32 || type == KJIT_F64   ? 2
                : type == KJIT_I32 || type == KJIT_I64 ? 0
                                                       : 1;
  tensor.bits = type == KJIT_F64 || type == KJIT_U64 || type == KJIT_I64 ? 64 : 32;
  tensor.shape = &count;
  tensor.strides = NULL;
  TRY(kjit_wrap_tensor(context, &tensor, &made));
  return made;
}

static struct {
  kjit_array *words, *few, *many, *wide, *reals, *other_reals, *wide_reals, *wide_values, *result,
    *values, *values_out, *counts, *ascending, *other_ascending, *spare, *sums, *offsets,
    *many_offsets, *keys;
} data;

/* ---- rows ---- */

static kjit_operand head(kjit_array *array, kjit_type type, int64_t count)
{
  return kjit_operand_array(view(array, type, count)); /* lives as long as the program */
}

static kjit_function *find(const char *name)
{
  kjit_function *function;
  TRY(kjit_get_function(module, name, &function));
  return function;
}

static void reduce(const char *name, kjit_type type, int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, type, n), r = head(data.result, type, 1);
  kjit_operator named = kjit_operator_named(name);
  TRY(kjit_reduce(context, &r, &x, &named, o));
}

static void sum_f32(int64_t n, const kjit_algorithm_options *o) { reduce("add", KJIT_F32, n, o); }
static void max_f32(int64_t n, const kjit_algorithm_options *o) { reduce("max", KJIT_F32, n, o); }
static void own_max_f32(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, 1);
  kjit_operator own = kjit_operator_function(find("largest"));
  TRY(kjit_reduce(context, &r, &x, &own, o));
}

static void scan(kjit_type type, kjit_array *array, int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(array, type, n), r = head(data.result, type, n);
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_scan(context, &r, &x, &add, o));
}
static void scan_i32(int64_t n, const kjit_algorithm_options *o)
{
  scan(KJIT_I32, data.words, n, o);
}
static void scan_f64(int64_t n, const kjit_algorithm_options *o)
{
  scan(KJIT_F64, data.wide_reals, n, o);
}

static void sort(kjit_type type, kjit_array *array, kjit_function *less, int64_t n,
                 const kjit_algorithm_options *o)
{
  kjit_operand x = head(array, type, n), r = head(data.result, type, n);
  TRY(kjit_sort(context, &r, &x, less, o));
}
static void sort_u32(int64_t n, const kjit_algorithm_options *o)
{
  sort(KJIT_U32, data.words, NULL, n, o);
}
static void sort_u64(int64_t n, const kjit_algorithm_options *o)
{
  sort(KJIT_U64, data.wide, NULL, n, o);
}
static void sort_f32(int64_t n, const kjit_algorithm_options *o)
{
  sort(KJIT_F32, data.reals, NULL, n, o);
}
static void sort_by_less(int64_t n, const kjit_algorithm_options *o)
{
  sort(KJIT_U32, data.words, find("less"), n, o);
}
static void sort_pairs(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.words, KJIT_U32, n), r = head(data.result, KJIT_U32, n);
  kjit_operand y = head(data.values, KJIT_U32, n), s = head(data.values_out, KJIT_U32, n);
  TRY(kjit_sort_pairs(context, &r, &s, &x, &y, NULL, o));
}

static void sort_wide_pairs(kjit_type type, int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.wide, KJIT_U64, n), r = head(data.result, KJIT_U64, n);
  kjit_operand y = head(type == KJIT_U64 ? data.wide_values : data.values, type, n),
               s = head(data.values_out, type, n);
  TRY(kjit_sort_pairs(context, &r, &s, &x, &y, NULL, o));
}
static void sort_pairs_u64(int64_t n, const kjit_algorithm_options *o)
{
  sort_wide_pairs(KJIT_U64, n, o);
}
static void sort_u64_with_u32(int64_t n, const kjit_algorithm_options *o)
{
  sort_wide_pairs(KJIT_U32, n, o);
}

static void argsort(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.words, KJIT_U32, n), r = head(data.result, KJIT_I64, n);
  TRY(kjit_argsort(context, &r, &x, NULL, o));
}

static kjit_operand matrix(kjit_array *array, int64_t n, int64_t columns)
{
  int64_t shape[] = { n / columns, columns };
  kjit_array *made;
  TRY(kjit_reshape_array(view(array, KJIT_F32, n), shape, 2, &made));
  return kjit_operand_array(made);
}

static void reduce_axis(const char *name, int64_t n, int64_t columns, int32_t axis,
                        const kjit_algorithm_options *o)
{
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  if (o) options = *o;
  options.axes = &axis;
  options.axis_count = 1;
  kjit_operand x = matrix(data.reals, n, columns),
               r = head(data.result, KJIT_F32, axis ? n / columns : columns);
  kjit_operator named = kjit_operator_named(name);
  TRY(kjit_reduce(context, &r, &x, &named, &options));
}
static void sum_axis(int64_t n, int64_t columns, int32_t axis, const kjit_algorithm_options *o)
{
  reduce_axis("add", n, columns, axis, o);
}
static void var_axis0(int64_t n, const kjit_algorithm_options *o)
{
  reduce_axis("var", n, 4096, 0, o);
}
static void sum_axis0(int64_t n, const kjit_algorithm_options *o) { sum_axis(n, 4096, 0, o); }
static void sum_axis1(int64_t n, const kjit_algorithm_options *o) { sum_axis(n, 4096, 1, o); }
static void sum_16_axis0(int64_t n, const kjit_algorithm_options *o) { sum_axis(n, 16, 0, o); }
static void sum_16_axis1(int64_t n, const kjit_algorithm_options *o) { sum_axis(n, 16, 1, o); }
static void sum_1024(int64_t n, const kjit_algorithm_options *o) { sum_axis(n, LENGTH, 1, o); }

/* a[:, None] * b[None] + c */
static void broadcast(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand operands[] = { matrix(data.reals, n / 4096, 1), matrix(data.reals, 4096, 4096),
                              matrix(data.reals, n, 4096) };
  kjit_operand r = matrix(data.result, n, 4096);
  TRY(kjit_map(context, &r, 1, find("line"), operands, 3, o));
}

static void line(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand operands[] = { kjit_operand_of(kjit_arg_number(2.5)), head(data.reals, KJIT_F32, n),
                              head(data.other_reals, KJIT_F32, n) };
  kjit_operand r = head(data.result, KJIT_F32, n);
  TRY(kjit_map(context, &r, 1, find("line"), operands, 3, o));
}
static void exponential(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n);
  TRY(kjit_map(context, &r, 1, find("exponential"), &x, 1, o));
}

static kjit_operand count_of(void) { return kjit_operand_array(view(data.counts, KJIT_U32, 1)); }

static void select_half(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.words, KJIT_U32, n), r = head(data.result, KJIT_U32, n);
  kjit_operand count = count_of();
  kjit_operand flags = kjit_operand_function(find("is_odd"), &x.argument, 1, &n, 1);
  TRY(kjit_select(context, &r, &count, &x, &flags, o));
}
static void select_large(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n);
  kjit_operand count = count_of();
  kjit_operand flags = kjit_operand_function(find("is_large"), &x.argument, 1, &n, 1);
  TRY(kjit_select(context, &r, &count, &x, &flags, o));
}
static void partition_three(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.words, KJIT_U32, n), first = head(data.result, KJIT_U32, n),
               second = head(data.values_out, KJIT_U32, n), rest = head(data.spare, KJIT_U32, n);
  kjit_operand counts = head(data.counts, KJIT_U32, 2);
  kjit_operand classes = kjit_operand_function(find("third"), &x.argument, 1, &n, 1);
  TRY(kjit_partition_three(context, &first, &second, &rest, &counts, &x, &classes, o));
}
static void set_union(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.ascending, KJIT_U32, n / 2), r = head(data.result, KJIT_U32, n),
               y = head(data.other_ascending, KJIT_U32, n / 2), count = count_of();
  TRY(kjit_set_union(context, &r, &count, &x, &y, NULL, o));
}
static void set_intersection(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.ascending, KJIT_U32, n / 2), r = head(data.result, KJIT_U32, n / 2),
               y = head(data.other_ascending, KJIT_U32, n / 2), count = count_of();
  TRY(kjit_set_intersection(context, &r, &count, &x, &y, NULL, o));
}
static void add_at(int64_t n, int64_t places, kjit_array *where, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.sums, KJIT_F32, places), p = head(where, KJIT_U32, n);
  kjit_operand values = head(data.reals, KJIT_F32, n);
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_update_at(context, &x, &p, &values, &add, o));
}
static void add_at_256(int64_t n, const kjit_algorithm_options *o) { add_at(n, 256, data.few, o); }
static void add_at_many(int64_t n, const kjit_algorithm_options *o)
{
  add_at(n, MANY, data.many, o);
}
static void unique_256(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.few, KJIT_U32, n), r = head(data.result, KJIT_U32, n);
  kjit_operand count = count_of();
  TRY(kjit_unique(context, &r, &count, &x, NULL, o));
}
static void run_lengths(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.few, KJIT_U32, n), r = head(data.result, KJIT_U32, n);
  kjit_operand lengths = head(data.values_out, KJIT_I32, n), count = count_of();
  TRY(kjit_run_lengths(context, &r, &lengths, NULL, &count, &x, NULL, o));
}
static void bincount(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.few, KJIT_U32, n), r = head(data.counts, KJIT_U32, 256);
  TRY(kjit_bincount(context, &r, &x, 256, NULL, o));
}
static void histogram(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.counts, KJIT_U32, 256);
  TRY(kjit_histogram(context, &r, &x, 256, 0, 1, NULL, o));
}
static void uniform(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.result, KJIT_F32, n);
  TRY(kjit_random_uniform(context, &x, 7, 0, 0, 1, o));
}
static void normal(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.result, KJIT_F32, n);
  TRY(kjit_random_normal(context, &x, 7, 0, 0, 1, o));
}
static void sort_many(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.many, KJIT_U32, n), r = head(data.values_out, KJIT_U32, n);
  TRY(kjit_sort(context, &r, &x, NULL, o));
}
static void unique_of_sorted(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.values_out, KJIT_U32, n), r = head(data.result, KJIT_U32, n);
  kjit_operand count = count_of();
  TRY(kjit_unique(context, &r, &count, &x, NULL, o));
}
static void sort_rows(int64_t n, const kjit_algorithm_options *o)
{
  int64_t shape[] = { n / LENGTH, LENGTH };
  kjit_array *x, *r;
  TRY(kjit_reshape_array(view(data.words, KJIT_U32, n), shape, 2, &x));
  TRY(kjit_reshape_array(view(data.result, KJIT_U32, n), shape, 2, &r));
  kjit_operand from = kjit_operand_array(x), to = kjit_operand_array(r);
  TRY(kjit_sort(context, &to, &from, NULL, o));
}
/* Sorts segments of 1 to 2 * LENGTH - 1 elements. */
static void sort_segments(int64_t n, const kjit_algorithm_options *o)
{
  int64_t count = n / LENGTH + 1;
  kjit_array *cuts = make(KJIT_I64, count); /* lives as long as the program */
  kjit_kernel *cut;
  kjit_arg arguments[] = { kjit_arg_array(cuts), kjit_arg_i64(n), kjit_arg_i64(LENGTH) };
  TRY(kjit_get_kernel(module, "cut", &cut));
  TRY(kjit_launch(cut, NULL, arguments, 3));
  kjit_operand x = head(data.words, KJIT_U32, n), r = head(data.result, KJIT_U32, n),
               offsets = kjit_operand_array(cuts);
  TRY(kjit_sort_segments(context, &r, NULL, &x, NULL, &offsets, NULL, o));
}
static void top_32(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.words, KJIT_U32, n), r = head(data.result, KJIT_U32, 32);
  TRY(kjit_top_k(context, &r, NULL, &x, 32, NULL, o));
}
static void argmax_f32(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_I64, 1);
  kjit_operator argmax = kjit_operator_named("argmax");
  TRY(kjit_reduce(context, &r, &x, &argmax, o));
}

static void sum_segments(kjit_array *offsets, int64_t each, int64_t n,
                         const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n / each),
               by = head(offsets, KJIT_I32, n / each + 1);
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_reduce_segments(context, &r, &x, &by, &add, o));
}
static void sum_long_segments(int64_t n, const kjit_algorithm_options *o)
{
  sum_segments(data.offsets, LENGTH, n, o);
}
static void sum_short_segments(int64_t n, const kjit_algorithm_options *o)
{
  sum_segments(data.many_offsets, SHORT, n, o);
}
static void scan_segments(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n),
               by = head(data.offsets, KJIT_I32, n / LENGTH + 1);
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_scan_segments(context, &r, &x, &by, &add, o));
}
static void reduce_by_key(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n),
               keys = head(data.keys, KJIT_U32, n), runs = head(data.values_out, KJIT_U32, n),
               count = count_of();
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_reduce_by_key(context, &runs, &r, &count, &keys, &x, &add, NULL, o));
}
static void scan_by_key(int64_t n, const kjit_algorithm_options *o)
{
  kjit_operand x = head(data.reals, KJIT_F32, n), r = head(data.result, KJIT_F32, n),
               keys = head(data.keys, KJIT_U32, n);
  kjit_operator add = kjit_operator_named("add");
  TRY(kjit_scan_by_key(context, &r, &keys, &x, &add, NULL, o));
}

typedef void row_call(int64_t n, const kjit_algorithm_options *options);

static const struct row {
  const char *name;
  row_call *call;
  int least;      /* exponent */
  row_call *then; /* a second call that follows, or NULL */
} rows[] = {
  { "sum f32", sum_f32, 0, NULL },
  { "argmax f32", argmax_f32, 0, NULL },
  { "max f32", max_f32, 0, NULL },
  { "max f32, own operator that keeps the order", own_max_f32, 0, NULL },
  { "sum of rows of 4096 f32", sum_axis1, 16, NULL },
  { "sum over the first axis, rows of 4096 f32", sum_axis0, 16, NULL },
  { "sum of rows of 16 f32", sum_16_axis1, 16, NULL },
  { "sum over the first axis, rows of 16 f32", sum_16_axis0, 16, NULL },
  { "variance over the first axis, rows of 4096 f32", var_axis0, 16, NULL },
  { "segmented sum, 1024 each", sum_1024, 16, NULL },
  { "sum of random segments, 1024 on average", sum_long_segments, 16, NULL },
  { "sum of random segments, 8 on average", sum_short_segments, 16, NULL },
  { "reduce by key, runs of 16 on average", reduce_by_key, 12, NULL },
  { "scan of random segments, 1024 on average", scan_segments, 16, NULL },
  { "scan by key, runs of 16 on average", scan_by_key, 12, NULL },
  { "inclusive scan i32", scan_i32, 0, NULL },
  { "inclusive scan f64", scan_f64, 0, NULL },
  { "radix sort u32", sort_u32, 0, NULL },
  { "radix sort u32 pairs", sort_pairs, 0, NULL },
  { "radix sort u64", sort_u64, 0, NULL },
  { "radix sort u64 pairs", sort_pairs_u64, 0, NULL },
  { "radix sort u64 with values u32", sort_u64_with_u32, 0, NULL },
  { "radix sort f32", sort_f32, 0, NULL },
  { "argsort u32", argsort, 0, NULL },
  { "merge sort u32, own comparison", sort_by_less, 0, NULL },
  { "segmented sort, 1024 each", sort_rows, 16, NULL },
  { "segmented sort, 1 to 2047 each", sort_segments, 16, NULL },
  { "least 32 of u32", top_32, 0, NULL },
  { "select half of u32", select_half, 0, NULL },
  { "select above 0.5 of f32", select_large, 0, NULL },
  { "partition in three of u32", partition_three, 0, NULL },
  { "union of sorted u32", set_union, 0, NULL },
  { "intersection of sorted u32", set_intersection, 0, NULL },
  { "add f32 at 256 places", add_at_256, 0, NULL },
  { "add f32 at 2^20 places", add_at_many, 0, NULL },
  { "unique, 256 values", unique_256, 0, NULL },
  { "sort and unique, 2^20 values", sort_many, 0, unique_of_sorted },
  { "run-length encode", run_lengths, 0, NULL },
  { "histogram, 256 bins of u32", bincount, 0, NULL },
  { "histogram, 256 bins of f32", histogram, 0, NULL },
  { "uniform f32", uniform, 0, NULL },
  { "normal f32", normal, 0, NULL },
  { "map a * x + y f32", line, 0, NULL },
  { "map exp f32", exponential, 0, NULL },
  { "map a[:, None] * b[None] + c, rows of 4096 f32", broadcast, 16, NULL },
};

/* ---- device time ---- */

/* The one or two plans of a row. */
typedef struct plans {
  kjit_plan *plan[2];
} plans;

static plans prepare(const struct row *row, int exponent)
{
  plans p = { { NULL, NULL } };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.plan = &p.plan[0];
  row->call((int64_t)1 << exponent, &options);
  options.plan = &p.plan[1];
  if (row->then) row->then((int64_t)1 << exponent, &options);
  return p;
}

static void run_plans(const plans *p)
{
  TRY(kjit_run_plan(p->plan[0], NULL));
  if (p->plan[1]) TRY(kjit_run_plan(p->plan[1], NULL));
}

static void destroy_plans(plans *p)
{
  kjit_destroy_plan(p->plan[0]);
  kjit_destroy_plan(p->plan[1]);
}

typedef struct figures {
  double median, least;
} figures;

/* A busy machine may take a hundred times as long as an idle one. */
static const double MOST_US = 1e6;

/* Returns the us of a run. Takes `count` measurements, at most REPETITIONS, of `runs` runs each. */
static figures measure_plans(const plans *p, int count, int runs)
{
  kjit_event *first, *last;
  double times[REPETITIONS];
  TRY(kjit_create_event(device, &first));
  TRY(kjit_create_event(device, &last));
  double end = now_us() + MOST_US;
  int i = 0;
  do {
    uint64_t ns;
    TRY(kjit_record_event(first, NULL));
    for (int j = 0; j < runs; j++) run_plans(p);
    TRY(kjit_record_event(last, NULL));
    TRY(kjit_get_elapsed_time(first, last, &ns));
    times[i++] = 1e-3 * (double)ns / runs;
  } while (i < count && now_us() < end);
  kjit_destroy_event(first);
  kjit_destroy_event(last);
  qsort(times, (size_t)i, sizeof *times, compare);
  return (figures){ times[i / 2], times[0] };
}

static void measure(const struct row *row, int exponent)
{
  plans p = prepare(row, exponent);
  for (int i = 0; i < 3; i++) run_plans(&p);
  double us = measure_plans(&p, REPETITIONS, exponent < 22 ? 20 : 2).median;
  printf("%s\t%d\t%.3f\n", row->name, exponent, us);
  fflush(stdout);
  destroy_plans(&p);
}

/* Answers lines `ROW tab EXPONENT` with the median and the minimum us, so that kjit and its peers
 * are measured in turn. A measurement has enough runs to take 200 us. There are fewer measurements
 * if a run takes long. */
static void answer(void)
{
  char request[200];
  while (fgets(request, sizeof request, stdin)) {
    const char *name = strtok(request, "\t"), *exponent = strtok(NULL, "\n");
    const struct row *row = NULL;
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
      if (!strcmp(rows[i].name, name)) row = &rows[i];
    if (!row || !exponent) exit(EXIT_FAILURE);
    plans p = prepare(row, atoi(exponent));
    for (int i = 0; i < 2; i++) run_plans(&p);
    double once = measure_plans(&p, 3, 1).least;
    int runs = once > 200 ? 1 : once > 2 ? (int)(200 / once) : 100;
    figures us = measure_plans(&p, once > 1e5 ? 1 : once > 1e4 ? 5 : REPETITIONS, runs);
    printf("%.3f\t%.3f\n", us.median, us.least < once ? us.least : once);
    fflush(stdout);
    destroy_plans(&p);
  }
}

/* ---- host time ---- */

static void open_context(const char *device_name)
{
  TRY(kjit_create_context(NULL, &context));
  kjit_device_kind kind = strcmp(device_name, "cpu") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  TRY(kjit_get_device(context, kind, 0, &device));
}

static double host_us(kjit_plan *plan, const struct row *row, int64_t n)
{
  enum { CALLS = 200 };
  double times[REPETITIONS];
  for (int i = 0; i < REPETITIONS; i++) {
    TRY(kjit_synchronize_device(device));
    double start = now_us();
    for (int j = 0; j < CALLS; j++) {
      if (plan) TRY(kjit_run_plan(plan, NULL));
      else row->call(n, NULL);
    }
    times[i] = (now_us() - start) / CALLS;
  }
  TRY(kjit_synchronize_device(device));
  qsort(times, REPETITIONS, sizeof *times, compare);
  return times[REPETITIONS / 2];
}

static void measure_host(void)
{
  enum { N = 1 << 10 };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan;
  options.plan = &plan;
  sum_f32(N, &options);
  printf("host\tsum f32, a plan's run\t%.3f us\n", host_us(plan, NULL, N));
  printf("host\tsum f32, a call\t%.3f us\n", host_us(NULL, &rows[0], N));
  kjit_destroy_plan(plan);
}

static void make_data(int64_t n)
{
  TRY(kjit_parse_module(context, "bench", source, sizeof source - 1, &module));
  data.words = make_random(KJIT_U32, n, ~0u);
  data.few = make_random(KJIT_U32, n, 255);
  data.many = make_random(KJIT_U32, n, MANY - 1);
  data.wide = make_random(KJIT_U64, n, ~0ull);
  data.reals = make_reals(KJIT_F32, n);
  data.other_reals = make_reals(KJIT_F32, n);
  data.wide_reals = make_reals(KJIT_F64, n);
  data.values = make_random(KJIT_U32, n, ~0u);
  data.result = make(KJIT_U64, n);
  data.wide_values = make_random(KJIT_U64, n, ~0ull);
  data.values_out = make(KJIT_U64, n);
  data.counts = make(KJIT_U32, 1024);
  data.spare = make(KJIT_U32, n);
  data.sums = make_reals(KJIT_F32, MANY);
  data.ascending = make_ascending(n / 2, 1);
  data.other_ascending = make_ascending(n / 2, 1 << 30);
  data.offsets = make_segments("fill_offsets", KJIT_I32, n / LENGTH + 1, LENGTH);
  data.many_offsets = make_segments("fill_offsets", KJIT_I32, n / SHORT + 1, SHORT);
  data.keys = make_segments("fill_keys", KJIT_U32, n, RUN);
}

int main(int argc, char **argv)
{
  static const int all[] = { 12, 16, 20, 24, MOST };
  const char *device_name = argc > 1 ? argv[1] : "cuda";
  int exponents[32], count = 0, most = 0;
  bool asks = argc > 2 && !strcmp(argv[2], "ask");
  for (int i = asks ? 3 : 2; i < argc && count < 32; i++) exponents[count++] = atoi(argv[i]);
  for (size_t i = 0; !count && i < sizeof all / sizeof *all; i++) exponents[i] = all[i];
  if (!count) count = sizeof all / sizeof *all;
  for (int i = 0; i < count; i++) most = exponents[i] > most ? exponents[i] : most;
  open_context(device_name);
  make_data((int64_t)1 << most);
  if (asks) {
    answer();
    kjit_destroy_context(context);
    return 0;
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int j = 0; j < count; j++)
      if (exponents[j] >= rows[i].least) measure(&rows[i], exponents[j]);
  measure_host();
  kjit_destroy_context(context);
  return 0;
}

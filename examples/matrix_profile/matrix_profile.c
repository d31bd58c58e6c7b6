/* matrix_profile.c: the matrix profile of a time series (matrix_profile.kir) on several devices.
 * Each device has the whole series and computes a part of the matrix's tiles. The first device then
 * takes the minimum of the keys from all devices.
 *
 *   matrix_profile cpu|cuda PARTS f32|f64 SERIES WINDOW PROFILE PLACES path/of/matrix_profile.kir
 *
 * PARTS is the number of parts, one for each GPU. The CPU, or GPUs if there are fewer than PARTS,
 * compute several parts each. f32 or f64 is the type for covariances. SERIES is a file with f64
 * numbers only. WINDOW is the length of a window; windows that begin less than a quarter of this
 * length apart are not compared. The program writes the file PROFILE, the distance of each window
 * from the nearest window (f64), and the file PLACES, the start of that window (i64). It prints the
 * time that the devices need for all of this. */
#include <inttypes.h>
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PARTS = 64, RUNS = 5 };

/* The number of threads in a block, and the number of diagonals for each thread
 * (matrix_profile.kir). */
static const struct {
  const char *name;
  kjit_device_kind kind;
  int threads, diagonals;
} kinds[] = { { "cpu", KJIT_DEVICE_CPU, 1, 64 }, { "cuda", KJIT_DEVICE_CUDA, 128, 4 } };

typedef struct part {
  kjit_device *device;
  kjit_stream *stream;
  kjit_event *is_done;
  kjit_array *keys, *mean, *f, *g, *s, *flat, *series;
} part;

static struct {
  int kind, count, window;
  int64_t length, windows;
  double *series;
  kjit_type type;
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *prepare, *find, *merge, *find_flat, *add_flat;
  kjit_function *finish;
  part parts[MOST_PARTS];
  kjit_array *others, *distances, *places; /* arrays on the first device */
} run;

#define TRY(call) try((call), #call)
static void try(kjit_status status, const char *call)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "%s\n%s\n", call, kjit_copy_diagnostics_text(run.context));
  exit(EXIT_FAILURE);
}

static void fail(const char *what, const char *of)
{
  fprintf(stderr, "matrix_profile: %s: %s\n", of, what);
  exit(EXIT_FAILURE);
}

/* Reports an invalid argument. */
static void refuse(const char *name, const char *expected, const char *text)
{
  fprintf(stderr, "matrix_profile: %s: expected %s, not '%s'\n", name, expected, text);
  exit(2);
}

/* ---- files ---- */

static char *read_file(const char *path, size_t *bytes)
{
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail("cannot be read", path);
  long end = ftell(file);
  char *text = malloc((size_t)end + 1);
  *bytes = (size_t)end;
  rewind(file);
  if (!text || fread(text, 1, *bytes, file) != *bytes) fail("cannot be read", path);
  fclose(file);
  return text;
}

static void read_series(const char *path)
{
  size_t bytes;
  run.series = (double *)(void *)read_file(path, &bytes);
  run.length = (int64_t)(bytes / sizeof(double));
  run.windows = run.length - run.window + 1;
  if (bytes % sizeof(double)) fail("is not a file of f64 numbers", path);
  if (run.windows <= run.window / 4 + 1 || run.length > INT32_MAX / 2)
    fail("is too short for such windows, or too long", path);
  for (int64_t i = 0; i < run.length; i++)
    if (run.series[i] - run.series[i] != 0) fail("contains NaNs or infinities", path);
}

static void write_array(const char *path, const kjit_array *array)
{
  size_t bytes = (size_t)run.windows * 8;
  void *memory = malloc(bytes);
  FILE *file = fopen(path, "wb");
  if (!memory || !file) fail("cannot be written", path);
  TRY(kjit_copy_to_host(array, memory, bytes, NULL));
  if (fwrite(memory, 1, bytes, file) != bytes || fclose(file)) fail("cannot be written", path);
  free(memory);
}

static void load_module(const char *path)
{
  size_t bytes;
  char *text = read_file(path, &bytes);
  TRY(kjit_parse_module(run.context, path, text, bytes, &run.module));
  TRY(kjit_get_kernel(run.module, "prepare", &run.prepare));
  TRY(kjit_get_kernel(run.module, "profile", &run.find));
  TRY(kjit_get_kernel(run.module, "merge", &run.merge));
  TRY(kjit_get_kernel(run.module, "find_flat", &run.find_flat));
  TRY(kjit_get_kernel(run.module, "add_flat", &run.add_flat));
  TRY(kjit_get_function(run.module, "finish", &run.finish));
  free(text);
}

/* ---- parts ---- */

static kjit_array *make_line(const part *p, kjit_type type, int64_t length)
{
  kjit_array *array = NULL;
  TRY(kjit_create_array(p->device, type, &length, 1, &array));
  return array;
}

static void make_part(part *p, int ordinal)
{
  TRY(kjit_get_device(run.context, kinds[run.kind].kind, ordinal, &p->device));
  TRY(kjit_create_stream(p->device, &p->stream));
  TRY(kjit_create_event(p->device, &p->is_done));
  p->keys = make_line(p, KJIT_U64, run.windows);
  p->mean = make_line(p, KJIT_F64, run.windows);
  p->f = make_line(p, run.type, run.windows);
  p->g = make_line(p, run.type, run.windows);
  p->s = make_line(p, run.type, run.windows);
  p->flat = make_line(p, KJIT_I32, 2);
  p->series = make_line(p, KJIT_F64, run.length);
  TRY(kjit_copy_from_host(p->series, run.series, (size_t)run.length * sizeof(double), NULL));
}

static void make_parts(void)
{
  uint32_t devices = kjit_get_device_count(run.context, kinds[run.kind].kind);
  if (!devices) fail("there is no such device", kinds[run.kind].name);
  for (int i = 0; i < run.count; i++) make_part(&run.parts[i], (int)((uint32_t)i % devices));
  run.others = make_line(&run.parts[0], KJIT_U64, run.windows);
  run.distances = make_line(&run.parts[0], KJIT_F64, run.windows);
  run.places = make_line(&run.parts[0], KJIT_I64, run.windows);
}

static void launch(const part *p, kjit_kernel *kernel, const kjit_arg *arguments, size_t count)
{
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = p->stream,
                                .device = p->device };
  TRY(kjit_launch(kernel, &config, arguments, count));
}

static int least_apart(void) { return run.window / 4 + 1; }

static void queue_part(const part *p, int index)
{
  const kjit_arg keys = kjit_arg_array(p->keys), mean = kjit_arg_array(p->mean),
                 f = kjit_arg_array(p->f), g = kjit_arg_array(p->g), s = kjit_arg_array(p->s),
                 x = kjit_arg_array(p->series), m = kjit_arg_i32(run.window),
                 flat = kjit_arg_array(p->flat);
  const kjit_arg of_prepare[] = { keys, mean, f, g, s, flat, x, m };
  const kjit_arg of_find[] = { keys,
                               mean,
                               f,
                               g,
                               s,
                               x,
                               m,
                               kjit_arg_i32(least_apart()),
                               kjit_arg_i32(index),
                               kjit_arg_i32(run.count),
                               kjit_arg_i32(kinds[run.kind].threads),
                               kjit_arg_i32(kinds[run.kind].diagonals) };
  launch(p, run.prepare, of_prepare, sizeof of_prepare / sizeof *of_prepare);
  launch(p, run.find, of_find, sizeof of_find / sizeof *of_find);
  TRY(kjit_record_event(p->is_done, p->stream));
}

/* Queues the minimum on the stream of the first part, after the work of the other parts. */
static void queue_end(void)
{
  const part *first = &run.parts[0];
  const kjit_arg others = kjit_arg_array(run.others);
  for (int i = 1; i < run.count; i++) {
    const kjit_arg keys = kjit_arg_array(run.parts[i].keys),
                   both[] = { kjit_arg_array(first->keys), others };
    TRY(kjit_wait_event(first->stream, run.parts[i].is_done));
    TRY(kjit_copy_async(run.context, &others, &keys, first->stream));
    launch(first, run.merge, both, 2);
  }
  const kjit_arg s = kjit_arg_array(first->s), flat = kjit_arg_array(first->flat),
                 of_find_flat[] = { flat, s },
                 of_add_flat[] = { kjit_arg_array(first->keys), flat, s,
                                   kjit_arg_i32(least_apart()) };
  launch(first, run.find_flat, of_find_flat, 2);
  launch(first, run.add_flat, of_add_flat, 4);
  const kjit_operand results[] = { kjit_operand_array(run.distances),
                                   kjit_operand_array(run.places) };
  const kjit_operand x[] = { kjit_operand_array(first->keys),
                             kjit_operand_of(kjit_arg_i32(run.window)) };
  const kjit_algorithm_options options = { .size_bytes = sizeof options, .stream = first->stream };
  TRY(kjit_map(run.context, results, 2, run.finish, x, 2, &options));
}

static double run_once(void)
{
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < run.count; i++) queue_part(&run.parts[i], i);
  queue_end();
  for (int i = run.count; i-- > 0;) TRY(kjit_synchronize_stream(run.parts[i].stream));
  clock_gettime(CLOCK_MONOTONIC, &end);
  return 1e3 * (double)(end.tv_sec - start.tv_sec) + 1e-6 * (double)(end.tv_nsec - start.tv_nsec);
}

/* The first run compiles. */
static void run_all(void)
{
  double first = run_once(), least = first;
  for (int i = 0; i < RUNS && run.kind; i++) {
    double again = run_once();
    if (again < least) least = again;
  }
  printf("%" PRId64 " windows of %d values on %d part%s: %.2f ms, with compilation %.2f ms\n",
         run.windows, run.window, run.count, run.count > 1 ? "s" : "", least, first);
}

static void release_all(void)
{
  for (int i = 0; i < run.count; i++) {
    part *p = &run.parts[i];
    kjit_array *const arrays[] = { p->keys, p->mean, p->f, p->g, p->s, p->flat, p->series };
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) kjit_release_array(arrays[k]);
    kjit_destroy_event(p->is_done);
    kjit_destroy_stream(p->stream);
  }
  kjit_release_array(run.others);
  kjit_release_array(run.distances);
  kjit_release_array(run.places);
  kjit_release_module(run.module);
  kjit_destroy_context(run.context);
  free(run.series);
}

static int read_positive(const char *name, const char *text, int most)
{
  char *end;
  long number = strtol(text, &end, 10);
  if (*end || number < 1 || number > most) {
    char expected[60];
    snprintf(expected, sizeof expected, "a number from 1 to %d", most);
    refuse(name, expected, text);
  }
  return (int)number;
}

/* Returns which of the two strings the argument is. */
static int read_choice(const char *name, const char *text, const char *first, const char *second)
{
  bool is_second = strcmp(text, second) == 0;
  if (!is_second && strcmp(text, first) != 0) {
    char expected[60];
    snprintf(expected, sizeof expected, "%s or %s", first, second);
    refuse(name, expected, text);
  }
  return is_second;
}

int main(int argc, char **argv)
{
  if (argc != 9) {
    fprintf(stderr, "usage: matrix_profile cpu|cuda PARTS f32|f64 SERIES WINDOW PROFILE PLACES "
                    "path/of/matrix_profile.kir\n");
    return 2;
  }
  run.kind = read_choice("the device", argv[1], kinds[0].name, kinds[1].name);
  run.count = read_positive("PARTS", argv[2], MOST_PARTS);
  run.type = read_choice("the type", argv[3], "f32", "f64") ? KJIT_F64 : KJIT_F32;
  run.window = read_positive("WINDOW", argv[5], 1 << 20);
  read_series(argv[4]);
  if (kjit_create_context(NULL, &run.context) != KJIT_OK) return EXIT_FAILURE;
  load_module(argv[8]);
  make_parts();
  run_all();
  write_array(argv[6], run.distances);
  write_array(argv[7], run.places);
  release_all();
  return EXIT_SUCCESS;
}

/* nearest.c: finds the k nearest of many points that stay in a file. The program maps the file into
 * memory. kjit reads it in chunks, and copies each chunk to the device while the device computes
 * the distances to the previous one (options.chunk of kjit_pairs_smallest). The points can need
 * more memory than the device or the host has.
 *
 *   nearest cpu|cuda QUERIES POINTS WIDTH K CHUNK PLACES DISTANCES
 *
 * QUERIES and POINTS are files with f32 numbers only, WIDTH numbers for each point. K is the number
 * of nearest points, and CHUNK the number of points that are read at a time. The program writes the
 * files PLACES (i64) and DISTANCES (squared distances, f32), with K numbers for each query, the
 * nearest point first. */
#include <fcntl.h>
#include <inttypes.h>
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char source[] = "func squared(x, y, i, j) {\n"
                             "  var d = zero(dtype(x))\n"
                             "  for k in range(len(x)) {\n"
                             "    let apart = x[k] - y[k]\n"
                             "    d += apart * apart\n"
                             "  }\n"
                             "  return d\n"
                             "}\n";

static kjit_context *context;

#define TRY(call) try((call), #call)
static void try(kjit_status status, const char *call)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "%s\n%s\n", call, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static void fail(const char *what, const char *file)
{
  fprintf(stderr, "nearest: %s: %s\n", file, what);
  exit(EXIT_FAILURE);
}

/* Reports an invalid argument. */
static void refuse(const char *name, const char *expected, const char *text)
{
  fprintf(stderr, "nearest: %s: expected %s, not '%s'\n", name, expected, text);
  exit(2);
}

/* ---- files ---- */

typedef struct points {
  void *memory;
  int64_t shape[2];
} points;

static points map_points(const char *path, int64_t width)
{
  struct stat status;
  int file = open(path, O_RDONLY);
  if (file < 0 || fstat(file, &status) != 0) fail("cannot be read", path);
  int64_t bytes = status.st_size, row = width * (int64_t)sizeof(float);
  if (!bytes || bytes % row)
    fail("must contain the same number of f32 values for each point", path);
  points p = { mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0), { bytes / row, width } };
  if (p.memory == MAP_FAILED) fail("cannot be mapped", path);
  close(file);
  return p;
}

static void write_array(const char *path, const kjit_array *array, size_t bytes)
{
  void *memory = malloc(bytes);
  FILE *file = fopen(path, "wb");
  if (!memory || !file) fail("cannot be written", path);
  TRY(kjit_copy_to_host(array, memory, bytes, NULL));
  if (fwrite(memory, 1, bytes, file) != bytes || fclose(file)) fail("cannot be written", path);
  free(memory);
}

/* ---- the search ---- */

typedef struct search {
  kjit_device *device;
  points queries, all;
  int64_t k, chunk;
  kjit_array *places, *distances;
} search;

static void look(search *s)
{
  kjit_module *module = NULL;
  kjit_function *squared = NULL;
  kjit_array *queries = NULL;
  const int64_t shape[] = { s->queries.shape[0], s->k };
  kjit_tensor of_queries = kjit_make_tensor(s->queries.memory, KJIT_F32, 2, s->queries.shape),
              of_all = kjit_make_tensor(s->all.memory, KJIT_F32, 2, s->all.shape);
  TRY(kjit_parse_module(context, "nearest", source, strlen(source), &module));
  TRY(kjit_get_function(module, "squared", &squared));
  TRY(kjit_create_array_from(s->device, &of_queries, NULL, &queries));
  TRY(kjit_create_array(s->device, KJIT_I64, shape, 2, &s->places));
  TRY(kjit_create_array(s->device, KJIT_F32, shape, 2, &s->distances));
  kjit_operand x = kjit_operand_array(queries), y = kjit_operand_of(kjit_arg_tensor(&of_all)),
               places = kjit_operand_array(s->places), distances = kjit_operand_array(s->distances),
               function = kjit_operand_function(squared, NULL, 0, NULL, 0);
  kjit_algorithm_options options = { .size_bytes = sizeof options,
                                     .device = s->device,
                                     .chunk = (uint64_t)s->chunk };
  TRY(kjit_pairs_smallest(context, &distances, &places, &function, &x, &y, 1, s->k, &options));
  kjit_release_array(queries);
  kjit_release_module(module);
}

static int64_t read_positive(const char *name, const char *text)
{
  char *end;
  long long number = strtoll(text, &end, 10);
  if (*end || number < 1 || number > INT32_MAX) refuse(name, "a number from 1 to 2147483647", text);
  return number;
}

static kjit_device_kind read_kind(const char *text)
{
  bool is_cuda = strcmp(text, "cuda") == 0;
  if (!is_cuda && strcmp(text, "cpu") != 0) refuse("the device", "cpu or cuda", text);
  return is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
}

int main(int argc, char **argv)
{
  if (argc != 9) {
    fprintf(stderr, "usage: nearest cpu|cuda QUERIES POINTS WIDTH K CHUNK PLACES DISTANCES\n");
    return 2;
  }
  kjit_device_kind kind = read_kind(argv[1]);
  search s = { .k = read_positive("K", argv[5]), .chunk = read_positive("CHUNK", argv[6]) };
  int64_t width = read_positive("WIDTH", argv[4]);
  s.queries = map_points(argv[2], width);
  s.all = map_points(argv[3], width);
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  TRY(kjit_get_device(context, kind, 0, &s.device));
  if (!s.device) fail("there is no such device", argv[1]);
  look(&s);
  size_t count = (size_t)(s.queries.shape[0] * s.k);
  write_array(argv[7], s.places, count * sizeof(int64_t));
  write_array(argv[8], s.distances, count * sizeof(float));
  printf("%" PRId64 " nearest of %" PRId64 " points for %" PRId64 "\n", s.k, s.all.shape[0],
         s.queries.shape[0]);
  kjit_release_array(s.places);
  kjit_release_array(s.distances);
  kjit_destroy_context(context);
  return EXIT_SUCCESS;
}

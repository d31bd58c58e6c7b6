/* Diffusion split over the ranks of an MPI program, a strip of rows each, on GPUs or on CPUs.
 *
 *   mpirun -n 4 diffusion_mpi [cpu|cuda] [rows cols iterations] [path of strip.kir]
 *
 * Rank 0 compiles the kernel. The other ranks get its code as a blob and never load the compiler.
 * Before each step, neighbours exchange their outermost rows through host memory, which works with
 * every MPI. With GPUs, the rows are copied to host memory and back. */
#include <kjit/kjit.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>

#include "field.h"

typedef struct run {
  int rank, ranks;
  field_size size;
  int64_t first, rows; /* first row and number of rows of this rank's strip */
  kjit_context *context;
  kjit_device *device;
  kjit_stream *stream;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_array *strips[2]; /* the strip, with a row of the previous neighbour before it and a row of
                          * the next neighbour after it */
  float *edges[4]; /* host memory: this rank's rows above and below, and the neighbours' rows above
                      and below */
} run;

static void stop(const run *r, const char *what)
{
  char *text = r->context ? kjit_copy_diagnostics_text(r->context) : NULL;
  fprintf(stderr, "rank %d: %s: %s\n", r->rank, what, text && *text ? text : "failed");
  kjit_free(r->context, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(const run *r, kjit_status status, const char *what)
{
  if (status != KJIT_OK) stop(r, what);
}

/* ---- setting up ---- */

static char *read_file(const run *r, const char *path, size_t *size_bytes)
{
  FILE *file = fopen(path, "rb");
  char *text = malloc(1 << 16);
  if (!file || !text) stop(r, path);
  *size_bytes = fread(text, 1, 1 << 16, file);
  fclose(file);
  return text;
}

static void open_device(run *r, const char *kind)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = ""; /* the ranks share only the blob */
  check(r, kjit_create_context(&config, &r->context), "kjit_create_context");
  bool is_cuda = strcmp(kind, "cuda") == 0;
  uint32_t gpus = kjit_get_device_count(r->context, KJIT_DEVICE_CUDA);
  if (is_cuda && !gpus) stop(r, "no GPU");
  /* the ranks of a host are assigned to its GPUs in turn */
  MPI_Comm host;
  int on_host = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &on_host);
  MPI_Comm_free(&host);
  check(r,
        kjit_get_device(r->context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU,
                        is_cuda ? on_host % (int)gpus : 0, &r->device),
        kind);
  check(r, kjit_create_stream(r->device, &r->stream), "kjit_create_stream");
}

static void load_kernel(run *r, const char *path)
{
  size_t size_bytes;
  char *text = read_file(r, path, &size_bytes);
  check(r, kjit_parse_module(r->context, "strip.kir", text, size_bytes, &r->module), "strip.kir");
  check(r, kjit_get_kernel(r->module, "diffuse", &r->kernel), "diffuse");
  free(text);
}

/* Returns row `row` of a strip as an array. */
static kjit_tensor row_of(const run *r, int strip, int64_t row, int64_t *cols)
{
  kjit_tensor tensor = *kjit_get_tensor(r->strips[strip]);
  *cols = r->size.cols;
  tensor.rank = 1;
  tensor.shape = cols;
  tensor.strides = NULL;
  tensor.byte_offset += (uint64_t)(row * r->size.cols) * sizeof(float);
  return tensor;
}

static void make_strips(run *r)
{
  int64_t shape[] = { r->rows + 2, r->size.cols };
  size_t count = (size_t)(shape[0] * shape[1]);
  float *start = calloc(count, sizeof *start); /* rows outside of the field stay zero */
  if (!start) stop(r, "out of memory");
  for (int64_t row = 0; row < r->rows; row++)
    for (int64_t col = 0; col < r->size.cols; col++)
      start[(row + 1) * r->size.cols + col] = field_start(&r->size, r->first + row, col);
  for (int i = 0; i < 2; i++) {
    check(r, kjit_create_array(r->device, KJIT_F32, shape, 2, &r->strips[i]), "kjit_create_array");
    check(r, kjit_copy_from_host(r->strips[i], start, count * sizeof *start, r->stream),
          "kjit_copy_from_host");
  }
  free(start);
  for (int i = 0; i < 4; i++)
    if (!(r->edges[i] = calloc((size_t)r->size.cols, sizeof(float)))) stop(r, "out of memory");
}

/* ---- one compilation ---- */

static void launch(run *r, int from)
{
  kjit_arg arguments[] = { kjit_arg_array(r->strips[1 - from]), kjit_arg_array(r->strips[from]) };
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = r->stream,
                                .device = r->device };
  check(r, kjit_launch(r->kernel, &config, arguments, 2), "launch");
}

/* The first launch compiles the kernel. The first step writes the same rows again. */
static void share_code(run *r)
{
  void *blob = NULL;
  size_t size_bytes = 0;
  if (r->rank == 0) {
    launch(r, 0);
    check(r, kjit_export_code(r->module, &blob, &size_bytes), "kjit_export_code");
  }
  unsigned long long bytes = size_bytes;
  MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  char *received = r->rank == 0 ? blob : malloc((size_t)bytes + 1);
  if (!received) stop(r, "out of memory");
  MPI_Bcast(received, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (r->rank) {
    check(r, kjit_import_code(r->context, received, (size_t)bytes), "kjit_import_code");
    free(received);
  }
  kjit_free(r->context, blob);
}

/* ---- steps ---- */

enum { MINE_ABOVE, MINE_BELOW, THEIRS_ABOVE, THEIRS_BELOW };

static void copy_row(run *r, int strip, int64_t row, float *edge, bool to_host)
{
  int64_t cols, host_cols = r->size.cols;
  kjit_tensor device_row = row_of(r, strip, row, &cols);
  kjit_tensor host_row = { .data = edge,
                           .device_type = 1,
                           .rank = 1,
                           .code = 2,
                           .bits = 32,
                           .lanes = 1,
                           .shape = &host_cols };
  kjit_arg on_device = kjit_arg_tensor(&device_row), on_host = kjit_arg_tensor(&host_row);
  check(r,
        kjit_copy(r->context, to_host ? &on_host : &on_device, to_host ? &on_device : &on_host,
                  r->stream),
        "kjit_copy");
}

static void exchange(run *r, int strip)
{
  int above = r->rank > 0 ? r->rank - 1 : MPI_PROC_NULL,
      below = r->rank + 1 < r->ranks ? r->rank + 1 : MPI_PROC_NULL, cols = (int)r->size.cols;
  if (above != MPI_PROC_NULL) copy_row(r, strip, 1, r->edges[MINE_ABOVE], true);
  if (below != MPI_PROC_NULL) copy_row(r, strip, r->rows, r->edges[MINE_BELOW], true);
  MPI_Sendrecv(r->edges[MINE_ABOVE], cols, MPI_FLOAT, above, 0, r->edges[THEIRS_BELOW], cols,
               MPI_FLOAT, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(r->edges[MINE_BELOW], cols, MPI_FLOAT, below, 1, r->edges[THEIRS_ABOVE], cols,
               MPI_FLOAT, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (above != MPI_PROC_NULL) copy_row(r, strip, 0, r->edges[THEIRS_ABOVE], false);
  if (below != MPI_PROC_NULL) copy_row(r, strip, r->rows + 1, r->edges[THEIRS_BELOW], false);
}

static double run_steps(run *r)
{
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int step = 0; step < r->size.iterations; step++) {
    exchange(r, step % 2);
    launch(r, step % 2);
  }
  check(r, kjit_synchronize_stream(r->stream), "kjit_synchronize_stream");
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

/* ---- the result ---- */

static bool check_result(run *r)
{
  size_t strip_bytes = (size_t)((r->rows + 2) * r->size.cols) * sizeof(float);
  float *strip = malloc(strip_bytes),
        *field =
          r->rank == 0 ? malloc((size_t)(r->size.rows * r->size.cols) * sizeof(float)) : NULL;
  int *counts = calloc((size_t)r->ranks, sizeof *counts),
      *places = calloc((size_t)r->ranks, sizeof *places), is_right = 1;
  if (!strip || !counts || !places || (r->rank == 0 && !field)) stop(r, "out of memory");
  check(r, kjit_copy_to_host(r->strips[r->size.iterations % 2], strip, strip_bytes, r->stream),
        "kjit_copy_to_host");
  for (int i = 0; i < r->ranks; i++) {
    int64_t first, rows = field_share(&r->size, i, r->ranks, &first);
    counts[i] = (int)(rows * r->size.cols);
    places[i] = (int)(first * r->size.cols);
  }
  MPI_Gatherv(strip + r->size.cols, counts[r->rank], MPI_FLOAT, field, counts, places, MPI_FLOAT, 0,
              MPI_COMM_WORLD);
  if (r->rank == 0) {
    double error = field_error(field, &r->size);
    is_right = error >= 0 && error <= field_tolerance;
    printf("largest difference from the plain loop: %.2g: %s\n", error,
           is_right ? "right" : "WRONG");
  }
  MPI_Bcast(&is_right, 1, MPI_INT, 0, MPI_COMM_WORLD);
  free(strip);
  free(field);
  free(counts);
  free(places);
  return is_right;
}

static void report(const run *r, double seconds)
{
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_statistics(r->context, &statistics);
  unsigned long long mine[2] = { statistics.compilations, statistics.imports }, sums[2] = { 0 };
  MPI_Reduce(mine, sums, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (r->rank) return;
  printf("%d ranks, %lld x %lld cells, %d steps: %.3f s, %.1f us a step\n", r->ranks,
         (long long)r->size.rows, (long long)r->size.cols, r->size.iterations, seconds,
         1e6 * seconds / r->size.iterations);
  printf("compilations in all ranks: %llu, imports: %llu\n", sums[0], sums[1]);
}

static void read_options(run *r, int argc, char **argv)
{
  r->size = (field_size){ field_number(argc, argv, 2, 512), field_number(argc, argv, 3, 512),
                          (int)field_number(argc, argv, 4, 100) };
  bool is_sensible = field_has_device(argc, argv, 1) && r->size.cols > 0 &&
                     r->size.iterations > 0 && r->size.rows >= r->ranks &&
                     r->size.rows <= INT32_MAX / r->size.cols;
  if (is_sensible) return;
  if (r->rank == 0)
    fprintf(stderr, "usage: diffusion_mpi [cpu|cuda] [rows cols iterations] [strip.kir]; at least "
                    "one row a rank\n");
  MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
  run r = { 0 };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
  read_options(&r, argc, argv);
  r.rows = field_share(&r.size, r.rank, r.ranks, &r.first);
  open_device(&r, argc > 1 ? argv[1] : "cpu");
  load_kernel(&r, argc > 5 ? argv[5] : "strip.kir");
  make_strips(&r);
  share_code(&r);
  double seconds = run_steps(&r);
  bool is_right = check_result(&r);
  report(&r, seconds);
  for (int i = 0; i < 4; i++) free(r.edges[i]);
  kjit_destroy_context(r.context);
  MPI_Finalize();
  return is_right ? 0 : 1;
}

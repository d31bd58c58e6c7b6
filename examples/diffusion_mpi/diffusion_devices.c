/* Diffusion split over the devices of one process, a strip of rows each: all GPUs of the machine,
 * or parts of the CPU.
 *
 *   diffusion_devices [cpu|cuda] [parts] [rows cols iterations] [path of strip.kir]
 *
 * Neighbours copy their outermost rows from device to device, over NVLink or PCI Express if the
 * GPUs have peer access. All work is queued: each part has a stream, and events signal which rows
 * have arrived and which may be overwritten. The host waits once, at the end. */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "field.h"

enum { MOST_PARTS = 64 };

typedef struct part {
  kjit_device *device;
  kjit_stream *stream;
  kjit_event *has_edges, *has_stepped;
  kjit_array *strips[2]; /* the strip, with a row of the previous neighbour before it and a row of
                          * the next neighbour after it */
  int64_t first, rows;
} part;

typedef struct run {
  field_size size;
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *kernel;
  part parts[MOST_PARTS];
  int count;
} run;

static void stop(const run *r, const char *what)
{
  char *text = r->context ? kjit_copy_diagnostics_text(r->context) : NULL;
  fprintf(stderr, "%s: %s\n", what, text && *text ? text : "failed");
  exit(1);
}

static void check(const run *r, kjit_status status, const char *what)
{
  if (status != KJIT_OK) stop(r, what);
}

static void load_kernel(run *r, const char *path)
{
  FILE *file = fopen(path, "rb");
  char *text = malloc(1 << 16);
  if (!file || !text) stop(r, path);
  size_t size_bytes = fread(text, 1, 1 << 16, file);
  fclose(file);
  check(r, kjit_parse_module(r->context, "strip.kir", text, size_bytes, &r->module), "strip.kir");
  check(r, kjit_get_kernel(r->module, "diffuse", &r->kernel), "diffuse");
  free(text);
}

static void make_part(run *r, int index, kjit_device_kind kind, int32_t ordinal)
{
  part *p = &r->parts[index];
  p->rows = field_share(&r->size, index, r->count, &p->first);
  check(r, kjit_get_device(r->context, kind, ordinal, &p->device), "kjit_get_device");
  check(r, kjit_create_stream(p->device, &p->stream), "kjit_create_stream");
  check(r, kjit_create_event(p->device, &p->has_edges), "kjit_create_event");
  check(r, kjit_create_event(p->device, &p->has_stepped), "kjit_create_event");
  int64_t shape[] = { p->rows + 2, r->size.cols };
  size_t count = (size_t)(shape[0] * shape[1]);
  float *start = calloc(count, sizeof *start); /* rows beyond the field stay zero */
  if (!start) stop(r, "out of memory");
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t col = 0; col < r->size.cols; col++)
      start[(row + 1) * r->size.cols + col] = field_start(&r->size, p->first + row, col);
  for (int i = 0; i < 2; i++) {
    check(r, kjit_create_array(p->device, KJIT_F32, shape, 2, &p->strips[i]), "kjit_create_array");
    check(r, kjit_copy_from_host(p->strips[i], start, count * sizeof *start, p->stream),
          "kjit_copy_from_host");
  }
  free(start);
  check(r, kjit_record_event(p->has_edges, p->stream), "kjit_record_event");
  check(r, kjit_record_event(p->has_stepped, p->stream), "kjit_record_event");
  check(r, kjit_synchronize_stream(p->stream), "kjit_synchronize_stream");
}

/* Copies are faster between GPUs with peer access; other copies go through host memory. */
static void connect(run *r)
{
  for (int i = 0; i + 1 < r->count; i++) {
    int can = 0;
    kjit_device *a = r->parts[i].device, *b = r->parts[i + 1].device;
    if (a == b || kjit_can_access_peer(a, b, &can) != KJIT_OK || !can) continue;
    check(r, kjit_enable_peer_access(a, b), "kjit_enable_peer_access");
    check(r, kjit_enable_peer_access(b, a), "kjit_enable_peer_access");
  }
}

/* ---- steps ---- */

static kjit_tensor row_of(const run *r, const part *p, int strip, int64_t row, int64_t *cols)
{
  kjit_tensor tensor = *kjit_get_tensor(p->strips[strip]);
  *cols = r->size.cols;
  tensor.rank = 1;
  tensor.shape = cols;
  tensor.strides = NULL;
  tensor.byte_offset += (uint64_t)(row * r->size.cols) * sizeof(float);
  return tensor;
}

static void copy_row(run *r, part *to, int64_t to_row, const part *from, int64_t from_row,
                     int strip)
{
  int64_t cols;
  kjit_tensor there = row_of(r, to, strip, to_row, &cols),
              here = row_of(r, from, strip, from_row, &cols);
  kjit_arg destination = kjit_arg_tensor(&there), source = kjit_arg_tensor(&here);
  check(r, kjit_copy_async(r->context, &destination, &source, to->stream), "kjit_copy_async");
}

/* Fetches the rows of the neighbours. A neighbour's row is ready after the neighbour's last
 * step. */
static void fetch_edges(run *r, int index, int strip)
{
  part *p = &r->parts[index], *above = index ? p - 1 : NULL,
       *below = index + 1 < r->count ? p + 1 : NULL;
  if (above) check(r, kjit_wait_event(p->stream, above->has_stepped), "kjit_wait_event");
  if (below) check(r, kjit_wait_event(p->stream, below->has_stepped), "kjit_wait_event");
  if (above) copy_row(r, p, 0, above, above->rows, strip);
  if (below) copy_row(r, p, p->rows + 1, below, 1, strip);
  check(r, kjit_record_event(p->has_edges, p->stream), "kjit_record_event");
}

/* The next step overwrites the strip that neighbours copy from now, so it waits for these copies.
 * */
static void step_part(run *r, int index, int strip)
{
  part *p = &r->parts[index];
  if (index) check(r, kjit_wait_event(p->stream, p[-1].has_edges), "kjit_wait_event");
  if (index + 1 < r->count) check(r, kjit_wait_event(p->stream, p[1].has_edges), "kjit_wait_event");
  kjit_arg arguments[] = { kjit_arg_array(p->strips[1 - strip]), kjit_arg_array(p->strips[strip]) };
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = p->stream,
                                .device = p->device };
  check(r, kjit_launch(r->kernel, &config, arguments, 2), "launch");
  check(r, kjit_record_event(p->has_stepped, p->stream), "kjit_record_event");
}

static void wait_for_all(run *r)
{
  for (int i = 0; i < r->count; i++)
    check(r, kjit_synchronize_stream(r->parts[i].stream), "kjit_synchronize_stream");
}

static double run_steps(run *r)
{
  struct timespec start, end;
  /* compiles the kernel; the first step of the run writes the same rows again */
  for (int i = 0; i < r->count; i++) step_part(r, i, 0);
  wait_for_all(r);
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int step = 0; step < r->size.iterations; step++) {
    for (int i = 0; i < r->count; i++) fetch_edges(r, i, step % 2);
    for (int i = 0; i < r->count; i++) step_part(r, i, step % 2);
  }
  wait_for_all(r);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

static bool check_result(run *r)
{
  float *field = malloc((size_t)(r->size.rows * r->size.cols) * sizeof *field);
  if (!field) stop(r, "out of memory");
  for (int i = 0; i < r->count; i++) {
    part *p = &r->parts[i];
    size_t strip_bytes = (size_t)((p->rows + 2) * r->size.cols) * sizeof(float);
    float *strip = malloc(strip_bytes);
    if (!strip) stop(r, "out of memory");
    check(r, kjit_copy_to_host(p->strips[r->size.iterations % 2], strip, strip_bytes, p->stream),
          "kjit_copy_to_host");
    memcpy(field + p->first * r->size.cols, strip + r->size.cols,
           (size_t)(p->rows * r->size.cols) * sizeof *field);
    free(strip);
  }
  double error = field_error(field, &r->size);
  bool is_right = error >= 0 && error <= field_tolerance;
  printf("largest difference from the plain loop: %.2g: %s\n", error, is_right ? "right" : "WRONG");
  free(field);
  return is_right;
}

int main(int argc, char **argv)
{
  static run r;
  bool is_cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
  r.size = (field_size){ field_number(argc, argv, 3, 512), field_number(argc, argv, 4, 512),
                         (int)field_number(argc, argv, 5, 100) };
  if (kjit_create_context(NULL, &r.context) != KJIT_OK) stop(&r, "kjit_create_context");
  int devices = is_cuda ? (int)kjit_get_device_count(r.context, KJIT_DEVICE_CUDA) : 1;
  r.count = (int)field_number(argc, argv, 2, is_cuda ? devices : 2);
  bool is_sensible = field_has_device(argc, argv, 1) && r.count > 0 && r.count <= MOST_PARTS &&
                     r.size.cols > 0 && r.size.iterations > 0 && r.size.rows >= r.count &&
                     r.size.rows <= INT32_MAX / r.size.cols;
  if (!is_sensible || !devices) {
    fprintf(stderr, devices ? "usage: diffusion_devices [cpu|cuda] [parts, at most 64] [rows cols "
                              "iterations] [strip.kir]; at least one row a part\n"
                            : "there is no GPU\n");
    return 2;
  }
  load_kernel(&r, argc > 6 ? argv[6] : "strip.kir");
  for (int i = 0; i < r.count; i++)
    make_part(&r, i, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, is_cuda ? i % devices : 0);
  connect(&r);
  double seconds = run_steps(&r);
  bool is_right = check_result(&r);
  printf("%d parts on %d device%s, %lld x %lld cells, %d steps: %.3f s, %.1f us a step\n", r.count,
         devices < r.count ? devices : r.count, devices > 1 ? "s" : "", (long long)r.size.rows,
         (long long)r.size.cols, r.size.iterations, seconds, 1e6 * seconds / r.size.iterations);
  kjit_destroy_context(r.context);
  return is_right ? 0 : 1;
}

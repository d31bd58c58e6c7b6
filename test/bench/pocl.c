/* pocl.c: runs the diffusion step and the tiled product of pocl.cl on a CPU device (PoCL).
 * pocl pocl.cl [repetitions]: prints a line for each kernel: name, median ms, minimum ms, largest
 * difference from a plain loop, and the device. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 2000, M = 1000, DIFFUSION_TILE = 8, MATMUL_TILE = 16 };

typedef struct machine {
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  char name[256];
} machine;

static void check(cl_int error, const char *what)
{
  if (error == CL_SUCCESS) return;
  fprintf(stderr, "%s: OpenCL error %d\n", what, error);
  exit(EXIT_FAILURE);
}

static double now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void read_source(const char *path, char *text, size_t size)
{
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(EXIT_FAILURE);
  }
  text[fread(text, 1, size - 1, file)] = 0;
  fclose(file);
}

static void open_machine(machine *m, const char *path)
{
  static char source[1 << 14];
  const char *text = source;
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  check(clGetPlatformIDs(1, &platform, NULL), "no OpenCL platform; install pocl-opencl-icd");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), "no CPU device");
  check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof m->name, m->name, NULL), "device name");
  m->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  check(error, "context");
  m->queue = clCreateCommandQueue(m->context, device, 0, &error);
  check(error, "queue");
  read_source(path, source, sizeof source);
  m->program = clCreateProgramWithSource(m->context, 1, &text, NULL, &error);
  check(error, "program");
  check(clBuildProgram(m->program, 1, &device, "", NULL, NULL), "build");
}

static float *make_matrix(int n)
{
  float *x = malloc((size_t)n * n * sizeof *x);
  if (!x) exit(EXIT_FAILURE);
  for (int i = 0; i < n * n; i++) x[i] = (float)(rand() % 2001 - 1000) / 1000;
  return x;
}

static cl_mem make_buffer(machine *m, float *data, int n)
{
  cl_int error;
  cl_mem buffer = clCreateBuffer(m->context, CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0),
                                 (size_t)n * n * sizeof *data, data, &error);
  check(error, "buffer");
  return buffer;
}

static void measure(machine *m, cl_kernel kernel, int n, int tile, int repetitions,
                    double *median_ms, double *least_ms)
{
  size_t global[2] = { (size_t)(n + tile - 1) / tile * tile, (size_t)(n + tile - 1) / tile * tile },
         local[2] = { (size_t)tile, (size_t)tile };
  double *times = malloc((size_t)repetitions * sizeof *times);
  if (!times) exit(EXIT_FAILURE);
  for (int k = -2; k < repetitions; k++) {
    double start = now_ms();
    check(clEnqueueNDRangeKernel(m->queue, kernel, 2, NULL, global, local, 0, NULL, NULL),
          "launch");
    check(clFinish(m->queue), "finish");
    if (k >= 0) times[k] = now_ms() - start;
  }
  qsort(times, (size_t)repetitions, sizeof *times, compare);
  *median_ms = times[repetitions / 2];
  *least_ms = times[0];
  free(times);
}

static double cell(const float *x, int row, int col)
{
  return row >= 0 && row < N && col >= 0 && col < N ? x[row * N + col] : 0;
}

static double diffusion_error(const float *next, const float *field)
{
  double largest = 0;
  for (int row = 0; row < N; row++) {
    for (int col = 0; col < N; col++) {
      double want = 0.25 * (cell(field, row - 1, col) + cell(field, row + 1, col) +
                            cell(field, row, col - 1) + cell(field, row, col + 1));
      double error = fabs(next[row * N + col] - want);
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

static double matmul_error(const float *c, const float *a, const float *b)
{
  double largest = 0;
  for (int row = 0; row < M; row += 17) {
    for (int col = 0; col < M; col += 13) {
      double want = 0;
      for (int k = 0; k < M; k++) want += (double)a[row * M + k] * b[k * M + col];
      double error = fabs(c[row * M + col] - want);
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

static void set(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
  check(clSetKernelArg(kernel, index, size, value), "argument");
}

static void run_diffusion(machine *m, int repetitions)
{
  cl_int error, n = N;
  float *field = make_matrix(N), *next = make_matrix(N);
  cl_mem in = make_buffer(m, field, N), out = make_buffer(m, NULL, N);
  cl_kernel kernel = clCreateKernel(m->program, "diffusion", &error);
  check(error, "kernel");
  set(kernel, 0, sizeof out, &out);
  set(kernel, 1, sizeof in, &in);
  set(kernel, 2, sizeof n, &n);
  set(kernel, 3, sizeof n, &n);
  double median_ms, least_ms;
  measure(m, kernel, N, DIFFUSION_TILE, repetitions, &median_ms, &least_ms);
  check(clEnqueueReadBuffer(m->queue, out, CL_TRUE, 0, (size_t)N * N * 4, next, 0, NULL, NULL),
        "read");
  printf("diffusion\t%.4f\t%.4f\t%g\t%s\n", median_ms, least_ms, diffusion_error(next, field),
         m->name);
  free(field);
  free(next);
}

static void run_matmul(machine *m, int repetitions)
{
  cl_int error, n = M;
  float *a = make_matrix(M), *b = make_matrix(M), *c = make_matrix(M);
  cl_mem ma = make_buffer(m, a, M), mb = make_buffer(m, b, M), mc = make_buffer(m, NULL, M);
  cl_kernel kernel = clCreateKernel(m->program, "matmul", &error);
  check(error, "kernel");
  set(kernel, 0, sizeof mc, &mc);
  set(kernel, 1, sizeof ma, &ma);
  set(kernel, 2, sizeof mb, &mb);
  for (cl_uint k = 3; k < 6; k++) set(kernel, k, sizeof n, &n);
  double median_ms, least_ms;
  measure(m, kernel, M, MATMUL_TILE, repetitions, &median_ms, &least_ms);
  check(clEnqueueReadBuffer(m->queue, mc, CL_TRUE, 0, (size_t)M * M * 4, c, 0, NULL, NULL), "read");
  printf("matmul\t%.4f\t%.4f\t%g\t%s\n", median_ms, least_ms, matmul_error(c, a, b), m->name);
  free(a);
  free(b);
  free(c);
}

int main(int argc, char **argv)
{
  int repetitions = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 15;
  machine m;
  if (argc < 2) return EXIT_FAILURE;
  srand((unsigned)time(NULL));
  open_machine(&m, argv[1]);
  run_diffusion(&m, repetitions);
  run_matmul(&m, repetitions);
  return EXIT_SUCCESS;
}

/* device_functions.c: a kernel in CUDA C calls a function in the kernel IR, in the same way as a
 * table engine such as cuDF calls the functions of its users.
 *
 *   device_functions path/of/transform.ptx path/of/of_row.kir
 *
 * nvcc has compiled the kernel to PTX (transform.cu). kjit compiles the function to PTX for the
 * GPU, and the driver links both. kjit also calls the function on the CPU, to check the result. */
#include <cuda.h>
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100000, MISSING = 7 }; /* every seventh row has no value */

static kjit_context *context;

static void check(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), text ? text : "");
  exit(1);
}

static void check_cuda(CUresult result, const char *what)
{
  const char *name = NULL;
  if (result == CUDA_SUCCESS) return;
  (void)cuGetErrorName(result, &name);
  fprintf(stderr, "%s: %s\n", what, name ? name : "an unknown error of CUDA");
  exit(1);
}

/* Returns the content of a file, followed by a 0 byte. */
static void *read_file(const char *path, size_t *size_bytes)
{
  enum { MOST_BYTES = 1 << 22 };
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, MOST_BYTES + 1);
  if (!file || !text) {
    perror(path);
    exit(1);
  }
  *size_bytes = fread(text, 1, MOST_BYTES, file);
  fclose(file);
  return text;
}

/* ---- the function of the user ---- */

/* Returns the function as PTX of a device function with the C ABI. */
static char *compile_function(kjit_function *function, const char *target, size_t *size_bytes)
{
  void *ptx;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = target };
  check(kjit_compile_function(function, "f64, i64", "of_row", &options, KJIT_STAGE_PTX, &ptx,
                              size_bytes),
        "of_row");
  return ptx;
}

/* Returns whether the function returns an f64, as transform.cu declares. */
static int is_declared(kjit_function *function)
{
  kjit_type type;
  check(kjit_get_result_type(function, "f64, i64", &type), "of_row");
  return type == KJIT_F64;
}

/* ---- linking ---- */

/* Links the kernel and the function, and loads the result. A linker's PTX ends in a 0 byte. */
static CUfunction link_kernel(const char *path, char *function, size_t function_bytes,
                              CUmodule *module)
{
  static char log[4096];
  CUjit_option names[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
  void *values[] = { log, (void *)(uintptr_t)sizeof log };
  CUlinkState link;
  void *cubin;
  size_t kernel_bytes, cubin_bytes;
  CUfunction kernel;
  char *text = read_file(path, &kernel_bytes);
  check_cuda(cuLinkCreate(2, names, values, &link), "cuLinkCreate");
  CUresult result =
    cuLinkAddData(link, CU_JIT_INPUT_PTX, text, kernel_bytes + 1, "transform.ptx", 0, NULL, NULL);
  if (result == CUDA_SUCCESS)
    result = cuLinkAddData(link, CU_JIT_INPUT_PTX, function, function_bytes + 1, "of_row.ptx", 0,
                           NULL, NULL);
  if (result == CUDA_SUCCESS) result = cuLinkComplete(link, &cubin, &cubin_bytes);
  if (result != CUDA_SUCCESS) fprintf(stderr, "%s\n", log);
  check_cuda(result, "linking the kernel and the function");
  check_cuda(cuModuleLoadData(module, cubin), "cuModuleLoadData");
  check_cuda(cuModuleGetFunction(&kernel, *module, "transform"), "cuModuleGetFunction");
  check_cuda(cuLinkDestroy(link), "cuLinkDestroy");
  free(text);
  return kernel;
}

/* ---- a table ---- */

static double price[ROWS], out[ROWS];
static long long counts[ROWS];
static unsigned char is_valid[ROWS];

static void fill_table(unsigned seed)
{
  srand(seed);
  for (int i = 0; i < ROWS; i++) {
    price[i] = rand() % 100000 * 0.01;
    counts[i] = rand() % 20;
    is_valid[i] = i % MISSING != 0;
    out[i] = -1;
  }
}

static CUdeviceptr upload(const void *memory, size_t size_bytes)
{
  CUdeviceptr address;
  check_cuda(cuMemAlloc(&address, size_bytes), "cuMemAlloc");
  check_cuda(cuMemcpyHtoD(address, memory, size_bytes), "cuMemcpyHtoD");
  return address;
}

static void run_kernel(CUfunction kernel)
{
  CUdeviceptr columns[] = { upload(out, sizeof out), upload(price, sizeof price),
                            upload(counts, sizeof counts), upload(is_valid, sizeof is_valid) };
  long long rows = ROWS;
  void *arguments[] = { &columns[0], &columns[1], &columns[2], &columns[3], &rows };
  check_cuda(cuLaunchKernel(kernel, 64, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL), "transform");
  check_cuda(cuMemcpyDtoH(out, columns[0], sizeof out), "cuMemcpyDtoH");
  for (int i = 0; i < 4; i++) check_cuda(cuMemFree(columns[i]), "cuMemFree");
}

/* Returns the number of rows that differ from calls of the function on the CPU. */
static int count_wrong(kjit_function *function)
{
  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    kjit_arg given[] = { kjit_arg_f64(price[i]), kjit_arg_i64(counts[i]) }, result;
    double wanted = -1;
    if (is_valid[i]) {
      check(kjit_call_function(function, given, 2, &result), "of_row on the CPU");
      wanted = result.value.f64;
    }
    wrong += !(fabs(out[i] - wanted) <= 1e-12 * fabs(wanted));
  }
  return wrong;
}

int main(int count, char **arguments)
{
  if (count != 3) {
    fprintf(stderr, "usage: device_functions path/of/transform.ptx path/of/of_row.kir\n");
    return 2;
  }
  kjit_module *module;
  kjit_function *function;
  kjit_device *device;
  kjit_device_info about = { .size_bytes = sizeof about };
  CUcontext primary;
  CUmodule loaded;
  size_t ptx_bytes, text_bytes;
  char *text = read_file(arguments[2], &text_bytes);
  check(kjit_create_context(NULL, &context), "kjit_create_context");
  check(kjit_parse_module(context, arguments[2], text, text_bytes, &module), arguments[2]);
  free(text);
  check(kjit_get_function(module, "of_row", &function), "of_row");
  if (!is_declared(function)) {
    fprintf(stderr, "of_row has to return a float64\n");
    return 1;
  }
  check(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), "kjit_get_device");
  check(kjit_get_device_info(device, &about), "kjit_get_device_info");
  char *ptx = compile_function(function, about.target, &ptx_bytes);
  check_cuda(cuInit(0), "cuInit");
  check_cuda(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
  check_cuda(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  CUfunction kernel = link_kernel(arguments[1], ptx, ptx_bytes, &loaded);
  kjit_free(context, ptx);
  fill_table((unsigned)(uintptr_t)context);
  run_kernel(kernel);
  int wrong = count_wrong(function);
  printf("%d rows by the linked kernel: %d differ from the CPU\n", ROWS, wrong);
  check_cuda(cuModuleUnload(loaded), "cuModuleUnload");
  check_cuda(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
  kjit_release_module(module);
  kjit_destroy_context(context);
  return wrong ? 1 : 0;
}

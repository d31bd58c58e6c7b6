/* driver_launch COUNT...: prints, for each count of 8-byte parameters, the host time in ns of one
 * cuLaunchKernel of an empty kernel, which is the time of the CUDA driver alone. Built and run by
 * python_launches.py: cc -O2 driver_launch.c -ldl. The result is the fastest of several rounds. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64, LAUNCHES = 200, ROUNDS = 40 };

typedef struct driver {
  int (*init)(unsigned);
  int (*get_device)(int *, int);
  int (*retain)(void **, int);
  int (*set_current)(void *);
  int (*load)(void **, const void *);
  int (*get_function)(void **, void *, const char *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                void *, void **, void **);
  int (*synchronize)(void);
} driver;

static void *find(void *library, const char *name)
{
  void *found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "driver_launch: the driver has no %s\n", name);
    exit(1);
  }
  return found;
}

static void require(int code, const char *call)
{
  if (code) {
    fprintf(stderr, "driver_launch: %s gives the error %d\n", call, code);
    exit(1);
  }
}

static double now_ns(void)
{
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void *load_kernel(const driver *cuda, int count)
{
  char text[MOST * 24 + 200];
  int n = snprintf(text, sizeof text,
                   ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry nothing(");
  for (int i = 0; i < count; i++) {
    n += snprintf(text + n, sizeof text - (size_t)n, "%s.param .u64 p%d", i ? ", " : "", i);
  }
  snprintf(text + n, sizeof text - (size_t)n, ")\n{\n ret;\n}\n");
  void *module, *function;
  require(cuda->load(&module, text), "cuModuleLoadData");
  require(cuda->get_function(&function, module, "nothing"), "cuModuleGetFunction");
  return function;
}

static double fastest_ns(const driver *cuda, void *function)
{
  unsigned long long values[MOST] = { 0 };
  void *parameters[MOST];
  for (int i = 0; i < MOST; i++) { parameters[i] = &values[i]; }
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now_ns();
    for (int i = 0; i < LAUNCHES; i++) {
      require(cuda->launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
              "cuLaunchKernel");
    }
    double ns = (now_ns() - start) / LAUNCHES;
    best = ns < best ? ns : best;
    require(cuda->synchronize(), "cuCtxSynchronize");
  }
  return best;
}

int main(int argc, char **argv)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "driver_launch: %s\n", dlerror());
    return 1;
  }
  driver cuda;
  *(void **)&cuda.init = find(library, "cuInit");
  *(void **)&cuda.get_device = find(library, "cuDeviceGet");
  *(void **)&cuda.retain = find(library, "cuDevicePrimaryCtxRetain");
  *(void **)&cuda.set_current = find(library, "cuCtxSetCurrent");
  *(void **)&cuda.load = find(library, "cuModuleLoadData");
  *(void **)&cuda.get_function = find(library, "cuModuleGetFunction");
  *(void **)&cuda.launch = find(library, "cuLaunchKernel");
  *(void **)&cuda.synchronize = find(library, "cuCtxSynchronize");
  int device;
  void *context;
  require(cuda.init(0), "cuInit");
  require(cuda.get_device(&device, 0), "cuDeviceGet");
  require(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
  require(cuda.set_current(context), "cuCtxSetCurrent");
  for (int i = 1; i < argc; i++) {
    int count = atoi(argv[i]);
    if (count < 0 || count > MOST) {
      fprintf(stderr, "driver_launch: %s is no count from 0 to %d\n", argv[i], MOST);
      return 1;
    }
    printf("%d %.0f\n", count, fastest_ns(&cuda, load_kernel(&cuda, count)));
  }
  return 0;
}

// Measures the fastest possible axpy on a GPU, without kjit: r = a*x + y on 2^28 floats with
// 16-byte accesses, for several kinds of loads and stores, numbers of elements for each thread and
// block sizes, compared with one element for each thread. Prints the median time and GB/s of each
// variant.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr long N = 1L << 28;

static void check(cudaError_t status, const char *what)
{
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

enum loads { READ_ONLY, NO_ALLOCATE, STREAMING };
enum stores { PLAIN, STREAMED };

template <loads L> __device__ float4 load(const float4 *p)
{
  if constexpr (L == READ_ONLY) return __ldg(p);
  if constexpr (L == STREAMING) return __ldcs(p);
  float4 v;
  asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}

__global__ void one(float *r, float a, const float *x, const float *y, long n)
{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) r[i] = a * x[i] + y[i];
}

// COUNT vectors a thread, blockDim.x apart
template <loads L, stores S, int COUNT> __global__ void wide(float4 *r, float a, const float4 *x, const float4 *y)
{
  long first = blockIdx.x * (long)blockDim.x * COUNT + threadIdx.x;
  float4 p[COUNT], q[COUNT];
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    p[k] = load<L>(x + first + k * blockDim.x);
    q[k] = load<L>(y + first + k * blockDim.x);
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    float4 v = make_float4(a * p[k].x + q[k].x, a * p[k].y + q[k].y, a * p[k].z + q[k].z, a * p[k].w + q[k].w);
    if (S == STREAMED) __stcs(r + first + k * blockDim.x, v);
    else r[first + k * blockDim.x] = v;
  }
}

template <class F> void measure(const char *name, int block, F launch)
{
  cudaEvent_t first, last;
  check(cudaEventCreate(&first), "event");
  check(cudaEventCreate(&last), "event");
  std::vector<float> times;
  for (int i = 0; i < 45; i++) {
    check(cudaEventRecord(first), "record");
    launch();
    check(cudaGetLastError(), name);
    check(cudaEventRecord(last), "record");
    check(cudaEventSynchronize(last), name);
    float ms;
    check(cudaEventElapsedTime(&ms, first, last), "time");
    if (i >= 5) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  float median = times[times.size() / 2];
  printf("%-44s %4d threads %8.1f us %6.0f GB/s\n", name, block, median * 1e3, N * 12 / median * 1e-6);
}

int main()
{
  float *r, *x, *y;
  for (float **p : { &r, &x, &y }) check(cudaMalloc(p, N * sizeof(float)), "memory");
  check(cudaMemset(x, 1, N * sizeof(float)), "memory");
  check(cudaMemset(y, 2, N * sizeof(float)), "memory");
  float4 *r4 = (float4 *)r, *x4 = (float4 *)x, *y4 = (float4 *)y;
  for (int block : { 128, 256, 512, 1024 }) {
    measure("one element a thread", block, [&] { one<<<N / block, block>>>(r, 2, x, y, N); });
#define WIDE(L, S, COUNT) measure(#L ", " #S ", vectors a thread: " #COUNT, block, [&] { wide<L, S, COUNT><<<N / 4 / block / COUNT, block>>>(r4, 2, x4, y4); })
    WIDE(READ_ONLY, PLAIN, 1);
    WIDE(NO_ALLOCATE, PLAIN, 1);
    WIDE(STREAMING, PLAIN, 1);
    WIDE(READ_ONLY, STREAMED, 1);
    WIDE(NO_ALLOCATE, STREAMED, 1);
    WIDE(STREAMING, STREAMED, 1);
    WIDE(READ_ONLY, PLAIN, 2);
    WIDE(NO_ALLOCATE, STREAMED, 2);
    WIDE(READ_ONLY, PLAIN, 4);
    WIDE(NO_ALLOCATE, STREAMED, 4);
  }
  return 0;
}

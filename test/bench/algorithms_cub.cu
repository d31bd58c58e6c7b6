// algorithms_cub.cu: measures CUB's device-wide algorithms, compiled by nvcc. Temporary memory is
// allocated in advance, and several calls run between two events. Prints a line for each row of
// algorithms.c that CUB has: name, exponent of the number of elements, median us. The set
// operations are Thrust's, which allocates memory in each call and waits for the count.
// nvcc -O3 -std=c++17 -arch=native algorithms_cub.cu
// a.out [NAME]: only the rows whose names contain NAME.
#include <cub/cub.cuh>
#include <thrust/execution_policy.h>
#include <thrust/set_operations.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call) check((call), #call)

static const char *wanted = "";

static void check(cudaError_t error, const char *what)
{
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}

template <class Call> static double median_us(Call call, int calls)
{
  enum { REPETITIONS = 15 };
  cudaEvent_t first, last;
  std::vector<float> times;
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&last));
  for (int i = 0; i < 3; i++) call();
  for (int i = 0; i < REPETITIONS; i++) {
    float ms;
    CHECK(cudaEventRecord(first));
    for (int j = 0; j < calls; j++) call();
    CHECK(cudaEventRecord(last));
    CHECK(cudaEventSynchronize(last));
    CHECK(cudaEventElapsedTime(&ms, first, last));
    times.push_back(1000 * ms / calls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// A CUB function is called twice: without memory it says how much it needs.
template <class Call> static void measure(const char *name, int exponent, Call call)
{
  static void *memory;
  static size_t size_bytes;
  size_t needed = 0;
  if (!strstr(name, wanted)) return;
  CHECK(call(nullptr, needed));
  if (needed > size_bytes) {
    CHECK(cudaFree(memory));
    CHECK(cudaMalloc(&memory, size_bytes = needed));
  }
  printf("%s\t%d\t%.3f\n", name, exponent, median_us([&] { CHECK(call(memory, needed)); }, exponent < 22 ? 20 : 2));
  fflush(stdout);
}
#define ROW(name, function, ...) measure(name, exponent, [&](void *memory, size_t &size_bytes) { return cub::function(memory, size_bytes, __VA_ARGS__); })

struct less {
  template <class T> __device__ bool operator()(T a, T b) const { return a < b; }
};
struct add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct is_low {
  __device__ bool operator()(unsigned x) const { return x < 0x55555555; }
};
struct is_middle {
  __device__ bool operator()(unsigned x) const { return x < 0xaaaaaaaa; }
};
struct is_odd {
  __device__ bool operator()(unsigned x) const { return x & 1; }
};

// Numbers without a pattern: splitmix64.
__global__ void fill(unsigned *x, size_t n, unsigned mask)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    x[i] = (unsigned)(z >> 32) & mask;
  }
}

// From 0 to 1, as algorithms.c has them.
__global__ void fill_reals(float *x, size_t n)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    x[i] = (float)(z >> 40) / 16777216;
  }
}

__global__ void make_offsets(int *x, int count, int length)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) x[i] = i * length;
}

// Segments of 1 to 2 * length - 1 elements, as algorithms.c has them.
__global__ void cut(long long *x, int count, long long n, long long length)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull >> 32;
  x[i] = i == 0 ? 0 : i == count - 1 ? n : i * length + (long long)z % length;
}

// As algorithms.c has them.
__device__ long long start(long long i, int each)
{
  unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  return __popcll(i) <= 1 ? i * each : i * each + (long long)(z >> 40) % each;
}

__global__ void fill_offsets(int *x, size_t count, int each)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) x[i] = (int)start(i, each);
}

__global__ void fill_keys(unsigned *x, size_t count, int each)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) x[i] = (unsigned)(i / each - ((long long)i < start(i / each, each)));
}

// Ascending numbers, about half of which two of these share.
__global__ void ascend(unsigned *x, size_t n, unsigned seed)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned long long z = (i + seed) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    x[i] = (unsigned)(2 * i + (z >> 63));
  }
}

template <class Call> static void measure_waiting(const char *name, int exponent, Call call)
{
  if (!strstr(name, wanted)) return;
  printf("%s\t%d\t%.3f\n", name, exponent, median_us(call, exponent < 22 ? 20 : 2));
  fflush(stdout);
}

template <class T> static T *allocate(size_t count)
{
  T *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  return memory;
}

int main(int count, char **arguments)
{
  if (count > 1) wanted = arguments[1];
  enum { MOST = 28, LENGTH = 1024, SHORT = 8, RUN = 16 };
  const size_t most = (size_t)1 << MOST;
  unsigned *x = allocate<unsigned>(most), *r = allocate<unsigned>(most), *values = allocate<unsigned>(most), *values_out = allocate<unsigned>(most), *few = allocate<unsigned>(most);
  unsigned *ascending = allocate<unsigned>(most / 2), *other = allocate<unsigned>(most / 2);
  unsigned long long *wide = allocate<unsigned long long>(most), *wide_out = allocate<unsigned long long>(most);
  unsigned long long *wide_values = allocate<unsigned long long>(most), *wide_values_out = allocate<unsigned long long>(most);
  int *counts = allocate<int>(1024), *offsets = allocate<int>(most / LENGTH + 1);
  long long *cuts = allocate<long long>(most / LENGTH + 1);
  int *random_offsets = allocate<int>(most / LENGTH + 1), *many_offsets = allocate<int>(most / SHORT + 1);
  unsigned *keys = allocate<unsigned>(most);
  float *reals = allocate<float>(most);
  fill_reals<<<2048, 256>>>(reals, most);
  fill_offsets<<<2048, 256>>>(random_offsets, most / LENGTH + 1, LENGTH);
  fill_offsets<<<2048, 256>>>(many_offsets, most / SHORT + 1, SHORT);
  fill_keys<<<2048, 256>>>(keys, most, RUN);
  fill<<<2048, 256>>>(x, most, ~0u);
  fill<<<2048, 256>>>(values, most, ~0u);
  fill<<<2048, 256>>>((unsigned *)wide, 2 * most, ~0u);
  fill<<<2048, 256>>>((unsigned *)wide_values, 2 * most, ~0u);
  fill<<<2048, 256>>>(few, most, 255);
  ascend<<<2048, 256>>>(ascending, most / 2, 1);
  ascend<<<2048, 256>>>(other, most / 2, 1u << 30);
  const float *f = (const float *)few;
  for (int exponent : { 12, 16, 20, 24, 28 }) {
    const int n = 1 << exponent;
    ROW("sum f32", DeviceReduce::Sum, f, (float *)r, n);
    ROW("argmax f32", DeviceReduce::ArgMax, f, (float *)r, (int64_t *)counts, (int64_t)n);
    ROW("inclusive scan i32", DeviceScan::InclusiveSum, (const int *)x, (int *)r, n);
    ROW("inclusive scan f64", DeviceScan::InclusiveSum, (const double *)wide, (double *)wide_out, n);
    ROW("radix sort u32", DeviceRadixSort::SortKeys, x, r, n);
    ROW("radix sort u32 pairs", DeviceRadixSort::SortPairs, x, r, values, values_out, n);
    ROW("radix sort u64", DeviceRadixSort::SortKeys, wide, wide_out, n);
    ROW("radix sort u64 pairs", DeviceRadixSort::SortPairs, wide, wide_out, wide_values, wide_values_out, n);
    ROW("radix sort u64 with values u32", DeviceRadixSort::SortPairs, wide, wide_out, values, values_out, n);
    ROW("radix sort f32", DeviceRadixSort::SortKeys, reals, (float *)r, n);
    ROW("merge sort u32, own comparison", DeviceMergeSort::SortKeysCopy, x, r, n, less{});
    ROW("select half of u32", DeviceSelect::If, x, r, counts, n, is_odd{});
    ROW("partition in three of u32", DevicePartition::If, x, r, values_out, (unsigned *)wide_out, counts, n, is_low{}, is_middle{});
    measure_waiting("union of sorted u32", exponent, [&] { thrust::set_union(thrust::device, ascending, ascending + n / 2, other, other + n / 2, r); });
    measure_waiting("intersection of sorted u32", exponent, [&] { thrust::set_intersection(thrust::device, ascending, ascending + n / 2, other, other + n / 2, r); });
    ROW("unique, 256 values", DeviceSelect::Unique, few, r, counts, n);
    ROW("run-length encode", DeviceRunLengthEncode::Encode, few, r, (int *)values_out, counts, n);
    ROW("reduce by key, runs of 16 on average", DeviceReduce::ReduceByKey, keys, values_out, f, (float *)r, counts, add{}, n);
    ROW("scan by key, runs of 16 on average", DeviceScan::InclusiveSumByKey, keys, f, (float *)r, n);
    ROW("histogram, 256 bins of u32", DeviceHistogram::HistogramEven, few, counts, 257, 0u, 256u, n);
    if (exponent < 16) continue;
    const int segments = n / LENGTH;
    make_offsets<<<(segments + 256) / 256, 256>>>(offsets, segments, LENGTH);
    ROW("segmented sum, 1024 each", DeviceSegmentedReduce::Sum, f, (float *)r, segments, offsets, offsets + 1);
    ROW("sum of random segments, 1024 on average", DeviceSegmentedReduce::Sum, f, (float *)r, segments, random_offsets, random_offsets + 1);
    ROW("sum of random segments, 8 on average", DeviceSegmentedReduce::Sum, f, (float *)r, n / SHORT, many_offsets, many_offsets + 1);
    ROW("segmented sort, 1024 each", DeviceSegmentedSort::SortKeys, x, r, n, segments, offsets, offsets + 1);
    cut<<<(segments + 256) / 256, 256>>>(cuts, segments + 1, n, LENGTH);
    ROW("segmented sort, 1 to 2047 each", DeviceSegmentedSort::SortKeys, x, r, n, segments, cuts, cuts + 1);
  }
}

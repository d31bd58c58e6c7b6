// peers.cu: the benchmark kernels in plain CUDA C, compiled by nvcc -O3 and timed with events.
// Prints a line for each kernel: name, median us.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) check((call), #call)

static void check(cudaError_t error, const char *what)
{
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}

__global__ void axpy(float *r, float a, const float *x, const float *y, long n)
{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) r[i] = a * x[i] + y[i];
}

template <int TPB> __global__ void diffusion(float *__restrict__ next, const float *__restrict__ field, int rows, int cols)
{
  __shared__ float s[TPB + 2][TPB + 2];
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y, r = threadIdx.y + 1, c = threadIdx.x + 1;
  bool inside = row < rows && col < cols;
  if (inside) {
    s[r][c] = field[row * cols + col];
    if (r == 1) s[0][c] = row > 0 ? field[(row - 1) * cols + col] : 0;
    if (c == 1) s[r][0] = col > 0 ? field[row * cols + col - 1] : 0;
    if (r == TPB || row == rows - 1) s[r + 1][c] = row < rows - 1 ? field[(row + 1) * cols + col] : 0;
    if (c == TPB || col == cols - 1) s[r][c + 1] = col < cols - 1 ? field[row * cols + col + 1] : 0;
  }
  __syncthreads();
  if (inside) {
    float laplacian = 4 * s[r][c] - s[r - 1][c] - s[r + 1][c] - s[r][c - 1] - s[r][c + 1];
    next[row * cols + col] = s[r][c] - 0.25f * laplacian;
  }
}

template <int TPB> __global__ void matmul(float *C, const float *A, const float *B, int rows, int depth, int cols)
{
  __shared__ float sA[TPB][TPB], sB[TPB][TPB];
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  float acc = 0;
  for (int t = 0; t < (depth + TPB - 1) / TPB; t++) {
    int ka = t * TPB + tx, kb = t * TPB + ty;
    sA[ty][tx] = row < rows && ka < depth ? A[row * depth + ka] : 0;
    sB[ty][tx] = kb < depth && col < cols ? B[kb * cols + col] : 0;
    __syncthreads();
    for (int k = 0; k < TPB; k++) acc += sA[ty][k] * sB[k][tx];
    __syncthreads();
  }
  if (row < rows && col < cols) C[row * cols + col] = acc;
}

__device__ float warp_sum(float v)
{
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  return v;
}

__global__ void abs_sum(float *total, const float *x, long n)
{
  __shared__ float part[32];
  float acc = 0;
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) acc += fabsf(x[i]);
  acc = warp_sum(acc);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = acc;
  __syncthreads();
  if (threadIdx.x < 32) {
    acc = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0);
    if (threadIdx.x == 0) atomicAdd(total, acc);
  }
}

__global__ void transpose(float *out, const float *in, int rows, int cols)
{
  const int tile_size = 32, step = 8;
  __shared__ float tile[tile_size][tile_size + 1];
  int x = blockIdx.x * tile_size + threadIdx.x, y = blockIdx.y * tile_size + threadIdx.y;
  for (int j = 0; j < tile_size; j += step)
    if (y + j < rows && x < cols) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
  __syncthreads();
  int xo = blockIdx.y * tile_size + threadIdx.x, yo = blockIdx.x * tile_size + threadIdx.y;
  for (int j = 0; j < tile_size; j += step)
    if (yo + j < cols && xo < rows) out[(yo + j) * rows + xo] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ float cnd(float d)
{
  const float a1 = 0.31938153f, a2 = -0.356563782f, a3 = 1.781477937f, a4 = -1.821255978f, a5 = 1.330274429f, rsqrt2pi = 0.39894228040143267793994605993438f;
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float c = rsqrt2pi * expf(-0.5f * d * d) * (k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5)))));
  return d > 0 ? 1.0f - c : c;
}

__global__ void black_scholes(float *call, float *put, const float *s, const float *x, const float *t, float r, float v, long n)
{
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sqrt_t = sqrtf(t[i]), d1 = (logf(s[i] / x[i]) + (r + 0.5f * v * v) * t[i]) / (v * sqrt_t), d2 = d1 - v * sqrt_t;
  float cnd1 = cnd(d1), cnd2 = cnd(d2), discounted = x[i] * expf(-r * t[i]);
  call[i] = s[i] * cnd1 - discounted * cnd2;
  put[i] = discounted * (1.0f - cnd2) - s[i] * (1.0f - cnd1);
}

__device__ float3 pull(float4 me, float4 other, float3 acc, float eps2)
{
  float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
  float d2 = x * x + y * y + z * z + eps2, inverse = rsqrtf(d2), strength = other.w * inverse * inverse * inverse;
  return make_float3(acc.x + x * strength, acc.y + y * strength, acc.z + z * strength);
}

template <int TILE> __global__ void accelerate(float4 *acc, const float4 *pos, float eps2, int n)
{
  __shared__ float4 tile[TILE];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = i < n ? pos[i] : make_float4(0, 0, 0, 0);
  float3 a = make_float3(0, 0, 0);
  for (int t = 0; t < (n + TILE - 1) / TILE; t++) {
    int j = t * TILE + threadIdx.x;
    tile[threadIdx.x] = j < n ? pos[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < TILE; k++) a = pull(me, tile[k], a, eps2);
    __syncthreads();
  }
  if (i < n) acc[i] = make_float4(a.x, a.y, a.z, 0);
}

__global__ void histogram256(unsigned *bins, const unsigned char *data, long n)
{
  __shared__ unsigned counts[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) atomicAdd(&counts[data[i]], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    if (counts[b] > 0) atomicAdd(&bins[b], counts[b]);
}

// launches: the number of launches that are timed together, because the time of some kernels is
// short compared with the time of a launch.
template <class Launch> static void measure(const char *name, int repetitions, int launches, Launch launch)
{
  cudaEvent_t first, last;
  std::vector<float> times(repetitions);
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&last));
  for (int k = 0; k < 5; k++) launch();
  for (float &time : times) {
    CHECK(cudaEventRecord(first));
    for (int k = 0; k < launches; k++) launch();
    CHECK(cudaEventRecord(last));
    CHECK(cudaEventSynchronize(last));
    CHECK(cudaEventElapsedTime(&time, first, last));
  }
  CHECK(cudaGetLastError());
  std::sort(times.begin(), times.end());
  printf("%s\t%.3f\n", name, 1e3 * times[repetitions / 2] / launches);
}

static float *make(long n)
{
  std::vector<float> host(n);
  float *device;
  unsigned state = 12345;
  for (float &v : host) {
    state = state * 1664525u + 1013904223u;
    v = (float)(state >> 8) / 16777216.0f;
  }
  CHECK(cudaMalloc(&device, n * sizeof(float)));
  CHECK(cudaMemcpy(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

int main()
{
  const long n = 1L << 28;
  float *x = make(n), *y = make(n), *r;
  CHECK(cudaMalloc(&r, n * sizeof(float)));
  measure("axpy", 50, 1, [&] { axpy<<<n / 256, 256>>>(r, 2.5f, x, y, n); });
  measure("axpy_128", 50, 1, [&] { axpy<<<n / 128, 128>>>(r, 2.5f, x, y, n); });
  measure("axpy_1024", 50, 1, [&] { axpy<<<n / 1024, 1024>>>(r, 2.5f, x, y, n); });
  for (int exponent = 24; exponent <= 28; exponent += 4) {
    char name[32];
    snprintf(name, sizeof name, "abs_sum_%d", exponent);
    measure(name, 50, 1, [&] { abs_sum<<<132 * 8, 256>>>(r, x, 1L << exponent); });
  }
  const int cells = 2000, size = 1000;
  measure("diffusion", 50, 20, [&] { diffusion<8><<<dim3(250, 250), dim3(8, 8)>>>(r, x, cells, cells); });
  measure("matmul", 30, 5, [&] { matmul<16><<<dim3(63, 63), dim3(16, 16)>>>(r, x, y, size, size, size); });
  const int side = 8192, bodies = 65536;
  measure("transpose", 50, 5, [&] { transpose<<<dim3(side / 32, side / 32), dim3(32, 8)>>>(r, x, side, side); });
  const long options = 1L << 24;
  measure("black_scholes", 50, 5, [&] { black_scholes<<<options / 256, 256>>>(r, r + options, x, y, x + options, 0.02f, 0.3f, options); });
  measure("nbody", 20, 1, [&] { accelerate<256><<<bodies / 256, 256>>>((float4 *)r, (const float4 *)x, 0.01f, bodies); });
  std::vector<unsigned char> bytes(n);
  unsigned state = 1;
  for (unsigned char &byte : bytes) byte = (state = state * 1664525u + 1013904223u) >> 24;
  unsigned char *data;
  CHECK(cudaMalloc(&data, n));
  CHECK(cudaMemcpy(data, bytes.data(), n, cudaMemcpyHostToDevice));
  measure("histogram", 50, 1, [&] { histogram256<<<132 * 8, 256>>>((unsigned *)r, data, n); });
  return EXIT_SUCCESS;
}

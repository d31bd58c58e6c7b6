// outside.ptx is made of this: nvcc -arch=sm_75 -rdc=true -ptx outside.cu
extern "C" __device__ float scale(float x, int n) { return fabsf(2 * x) * 2.5f * (float)n; }
extern "C" __device__ short pick(bool which, signed char a, unsigned short b) { return which ? a : (short)b; }
extern "C" __device__ float window(const float *x, long long n, long long i) { return x[i] + x[i < n - 1 ? i + 1 : i]; }
extern "C" __device__ void put(double *x, long long rows, long long columns, long long stride0, long long stride1, long long i, long long j, double v)
{
  if (i < rows && j < columns) x[i * stride0 + j * stride1] = v;
}

// A kernel of CUDA C that calls what kjit made of library.kir.
extern "C" __device__ float k_hypot2(float, float);
extern "C" __device__ short k_small(signed char, unsigned short, bool);
extern "C" __device__ float k_total(const float *, long long);
extern "C" __device__ void k_fill(float *, long long, long long, long long, long long, float);
extern "C" __device__ long long k_fib(int);
extern "C" __device__ bool k_even(int);
extern "C" __device__ double k_root(double);
extern "C" __device__ int k_times7(int);
extern "C" __global__ void all(float *out, long long n)
{
  out[0] = k_hypot2(out[1], out[2]);
  out[3] = k_small((signed char)n, (unsigned short)n, n > 3);
  out[4] = k_total(out, n);
  k_fill(out, n, 2, 2, 1, 1.0f);
  out[5] = (float)k_fib((int)n);
  out[6] = k_even((int)n) ? 1.f : 2.f;
  out[7] = (float)k_root((double)n) + k_times7((int)n);
}

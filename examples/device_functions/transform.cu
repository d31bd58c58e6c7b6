// transform.cu: a kernel of a table engine. For each row it calls of_row, a function that a user of
// the engine writes in the kernel IR. kjit compiles of_row while the engine runs, and the driver
// links it with this code:
//
//   nvcc -rdc=true -ptx -arch=compute_75 transform.cu -o transform.ptx
extern "C" __device__ double of_row(double price, long long count);

extern "C" __global__ void transform(double *out, const double *price, const long long *count,
                                     const unsigned char *is_valid, long long rows)
{
  long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long i = first; i < rows; i += (long long)gridDim.x * blockDim.x)
    if (is_valid[i]) out[i] = of_row(price[i], count[i]);
}

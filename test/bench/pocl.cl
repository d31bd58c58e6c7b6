// The diffusion step and the tiled product of examples/, in OpenCL C. pocl.c runs them.
#define TPB 8

__kernel __attribute__((reqd_work_group_size(TPB, TPB, 1))) void diffusion(__global float *restrict next, __global const float *restrict field, int rows, int cols)
{
  __local float s[TPB + 2][TPB + 2];
  int col = get_global_id(0), row = get_global_id(1), r = get_local_id(1) + 1, c = get_local_id(0) + 1;
  bool inside = row < rows && col < cols;
  if (inside) {
    s[r][c] = field[row * cols + col];
    if (r == 1) s[0][c] = row > 0 ? field[(row - 1) * cols + col] : 0;
    if (c == 1) s[r][0] = col > 0 ? field[row * cols + col - 1] : 0;
    if (r == TPB || row == rows - 1) s[r + 1][c] = row < rows - 1 ? field[(row + 1) * cols + col] : 0;
    if (c == TPB || col == cols - 1) s[r][c + 1] = col < cols - 1 ? field[row * cols + col + 1] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (inside) {
    float laplacian = 4 * s[r][c] - s[r - 1][c] - s[r + 1][c] - s[r][c - 1] - s[r][c + 1];
    next[row * cols + col] = s[r][c] - 0.25f * laplacian;
  }
}

#undef TPB
#define TPB 16

__kernel __attribute__((reqd_work_group_size(TPB, TPB, 1))) void matmul(__global float *restrict C, __global const float *restrict A, __global const float *restrict B, int rows, int depth, int cols)
{
  __local float sA[TPB][TPB], sB[TPB][TPB];
  int col = get_global_id(0), row = get_global_id(1), tx = get_local_id(0), ty = get_local_id(1);
  float acc = 0;
  for (int t = 0; t < (depth + TPB - 1) / TPB; t++) {
    int ka = t * TPB + tx, kb = t * TPB + ty;
    sA[ty][tx] = row < rows && ka < depth ? A[row * depth + ka] : 0;
    sB[ty][tx] = kb < depth && col < cols ? B[kb * cols + col] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TPB; k++) acc += sA[ty][k] * sB[k][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < rows && col < cols) C[row * cols + col] = acc;
}

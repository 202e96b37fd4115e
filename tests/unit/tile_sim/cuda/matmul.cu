// Tiled matrix product in shared memory; m, n, k need not be multiples of the tile.
#define T 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float sa[T][T];
  __shared__ float sb[T][T + 1];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < k; t += T) {
    sa[threadIdx.y][threadIdx.x] =
        (row < m && t + threadIdx.x < k) ? a[row * k + t + threadIdx.x] : 0.0f;
    sb[threadIdx.y][threadIdx.x] =
        (col < n && t + threadIdx.y < k) ? b[(t + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T; ++i) sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

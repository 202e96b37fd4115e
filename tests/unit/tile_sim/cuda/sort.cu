// Bitonic sort of 2 * blockDim.x keys in shared memory.
extern "C" __global__ void bitonic(unsigned *keys) {
  extern __shared__ unsigned s[];
  int n = 2 * blockDim.x;
  unsigned *mine = keys + blockIdx.x * n;
  s[threadIdx.x] = mine[threadIdx.x];
  s[threadIdx.x + blockDim.x] = mine[threadIdx.x + blockDim.x];
  for (int k = 2; k <= n; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int i = 2 * j * (threadIdx.x / j) + threadIdx.x % j;
      bool up = (i & k) == 0;
      unsigned a = s[i], b = s[i + j];
      if ((a > b) == up) {
        s[i] = b;
        s[i + j] = a;
      }
    }
  __syncthreads();
  mine[threadIdx.x] = s[threadIdx.x];
  mine[threadIdx.x + blockDim.x] = s[threadIdx.x + blockDim.x];
}

// Inclusive scan of each block (Hillis and Steele) in dynamic shared memory, then decoupled
// look-back between the blocks, which spins on flags of earlier blocks.
extern "C" __global__ void scan(const int *x, int *y, int n, volatile int *state, int *ticket) {
  extern __shared__ int buffer[];
  __shared__ int tile, before;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  int i = tile * blockDim.x + threadIdx.x;
  buffer[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    int v = threadIdx.x >= d ? buffer[threadIdx.x - d] : 0;
    __syncthreads();
    buffer[threadIdx.x] += v;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    int sum = 0;
    if (tile > 0) {
      while (state[2 * (tile - 1)] == 0) {
      }
      __threadfence();
      sum = state[2 * (tile - 1) + 1];
    }
    before = sum;
    state[2 * tile + 1] = sum + buffer[blockDim.x - 1];
    __threadfence();
    state[2 * tile] = 1;
  }
  __syncthreads();
  if (i < n) y[i] = buffer[threadIdx.x] + before;
}

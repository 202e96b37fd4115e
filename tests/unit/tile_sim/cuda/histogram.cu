extern "C" __global__ void histogram(const unsigned char *x, int n, unsigned *bins) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
// Every thread takes a ticket: the old values have to be all different.
extern "C" __global__ void tickets(unsigned *counter, unsigned *taken) {
  taken[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1u);
}
// A lock held by single threads: needs forward progress of diverged threads.
extern "C" __global__ void locked(int *lock, int *sum) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)sum = *(volatile int *)sum + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

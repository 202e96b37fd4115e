extern "C" __global__ void softmax(const float *x, float *y, int cols) {
  __shared__ float shared[32];
  const float *row = x + (size_t)blockIdx.x * cols;
  float m = -__int_as_float(0x7f800000);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = m;
  __syncthreads();
  m = shared[0];
  for (int i = 1; i < blockDim.x / 32; ++i) m = fmaxf(m, shared[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(row[i] - m);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += shared[i];
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    y[(size_t)blockIdx.x * cols + i] = expf(row[i] - m) / sum;
}

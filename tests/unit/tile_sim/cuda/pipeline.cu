#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
// Two stages of a shared pipeline: cp.async and mbarrier from the toolkit's headers.
extern "C" __global__ void staged_sum(const float4 *x, float *out, int batches) {
  constexpr int stages = 2;
  extern __shared__ float4 buffer[];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope::thread_scope_block, stages> state;
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0.0f;
  for (int fetch = 0, use = 0; use < batches; ++use) {
    for (; fetch < batches && fetch < use + stages; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(buffer + (fetch % stages) * block.size() + threadIdx.x,
                         x + fetch * block.size() + threadIdx.x,
                         cuda::aligned_size_t<16>(sizeof(float4)), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    float4 v = buffer[(use % stages) * block.size() + (threadIdx.x ^ 5)];
    sum += v.x + v.y * 2 + v.z * 3 + v.w * 4;
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
// The same with groups of this thread only, and a tail that is filled with zeros.
extern "C" __global__ void groups(const float *x, float *y, int n) {
  __shared__ __align__(16) float s[3][128];
  int tiles = (n + 127) / 128;
  auto issue = [&](int t) {
    if (t < tiles) {
      int i = t * 128 + threadIdx.x * 4, left = min(max(n - i, 0), 4);
      unsigned dst = (unsigned)__cvta_generic_to_shared(&s[t % 3][threadIdx.x * 4]);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst),
                   "l"(left ? x + i : x), "r"(left * 4) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  issue(0);
  issue(1);
  for (int t = 0; t < tiles; ++t) {
    issue(t + 2);
    asm volatile("cp.async.wait_group 2;" ::: "memory");
    __syncthreads();
    for (int k = threadIdx.x; k < 128; k += 32)
      if (t * 128 + k < n) y[t * 128 + k] = s[t % 3][127 - k] + s[t % 3][k];
    __syncthreads();
  }
}
// Producers and consumers of one block meet at cuda::barrier objects.
extern "C" __global__ void producer_consumer(const int *x, int *y, int tiles) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int s[2][64];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier full[2], empty[2];
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      init(&full[i], 128);
      init(&empty[i], 128);
    }
  __syncthreads();
  int lane = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int t = 0; t < tiles; ++t) {
      empty[t & 1].arrive_and_wait();
      s[t & 1][lane] = x[t * 64 + lane] * 3;
      (void)full[t & 1].arrive();
    }
  } else {
    (void)empty[0].arrive();
    (void)empty[1].arrive();
    for (int t = 0; t < tiles; ++t) {
      full[t & 1].arrive_and_wait();
      y[t * 64 + lane] = s[t & 1][63 - lane];
      if (t + 2 < tiles) (void)empty[t & 1].arrive();
    }
  }
}

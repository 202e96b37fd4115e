#include <cuda_fp16.h>
#include <mma.h>
// One warp for a 16x8 tile of C: ldmatrix and mma.sync through inline PTX.
extern "C" __global__ void mma_tile(const half *a, const half *b, float *c, int n, int k) {
  __shared__ __align__(16) half sa[16][24], sb[16][24];
  int lane = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 8;
  float d[4] = {0, 0, 0, 0};
  for (int t = 0; t < k; t += 16) {
    for (int i = lane; i < 256; i += 32) sa[i / 16][i % 16] = a[(row + i / 16) * k + t + i % 16];
    for (int i = lane; i < 128; i += 32) sb[i / 8][i % 8] = b[(t + i / 8) * n + col + i % 8];
    __syncwarp();
    unsigned ra[4], rb[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[lane % 16][lane / 16 * 8]);
    unsigned pb = (unsigned)__cvta_generic_to_shared(&sb[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    __syncwarp();
  }
  for (int i = 0; i < 4; ++i)
    c[(row + lane / 4 + i / 2 * 8) * n + col + lane % 4 * 2 + i % 2] = d[i];
}
// The warp matrix interface of the toolkit.
extern "C" __global__ void wmma_tile(const half *a, const half *b, float *c, int n, int k) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  for (int t = 0; t < k; t += 16) {
    load_matrix_sync(fa, a + blockIdx.y * 16 * k + t, k);
    load_matrix_sync(fb, b + blockIdx.x * 16 * k + t, k);
    mma_sync(fc, fa, fb, fc);
  }
  store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, mem_row_major);
}

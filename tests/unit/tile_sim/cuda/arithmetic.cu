#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void integers(const int *a, const int *b, long long *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  unsigned u = x, v = y;
  long long lx = ((long long)x << 20) ^ y, ly = (long long)y * 77777 + x;
  long long *o = out + 32 * i;
  o[0] = y ? x / y : 0;
  o[1] = y ? x % y : 0;
  o[2] = v ? u / v : 0;
  o[3] = v ? u % v : 0;
  o[4] = __mulhi(x, y);
  o[5] = __umulhi(u, v);
  o[6] = __mul64hi(lx, ly);
  o[7] = __umul64hi(lx, ly);
  o[8] = ly ? lx / ly : 0;
  o[9] = ly ? lx % ly : 0;
  o[10] = __popc(u);
  o[11] = __clz(x);
  o[12] = __ffs(x);
  o[13] = __brev(u);
  o[14] = __popcll(lx);
  o[15] = __clzll(lx);
  o[16] = __brevll(lx);
  o[17] = __byte_perm(u, v, 0x5241);
  o[18] = __funnelshift_l(u, v, y & 63);
  o[19] = __funnelshift_r(u, v, y & 63);
  o[20] = x >> (y & 31);
  o[21] = u >> (y & 31);
  o[22] = lx << (y & 63);
  o[23] = min(x, y) ^ max(u, v);
  o[24] = abs(x);
  o[25] = __sad(x, y, v);
  o[26] = (short)x * (short)y;
  o[27] = (signed char)x + (unsigned char)y;
  o[28] = __dp4a(x, y, 5);
  o[29] = (x > y) + 2 * (u > v) + 4 * (x == y);
  o[30] = (unsigned short)(u * v) % 1000;
  o[31] = __vadd2(u, v);
}
extern "C" __global__ void floats(const float *a, const float *b, const float *c, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i], y = b[i], z = c[i];
  float *o = out + 32 * i;
  o[0] = __fadd_rn(x, y);
  o[1] = __fadd_rz(x, y);
  o[2] = __fadd_ru(x, y);
  o[3] = __fadd_rd(x, y);
  o[4] = __fmul_rn(x, y);
  o[5] = __fmul_rz(x, y);
  o[6] = __fmul_ru(x, y);
  o[7] = __fmul_rd(x, y);
  o[8] = __fmaf_rn(x, y, z);
  o[9] = __fmaf_rz(x, y, z);
  o[10] = __fmaf_ru(x, y, z);
  o[11] = __fmaf_rd(x, y, z);
  o[12] = __fdiv_rn(x, y);
  o[13] = __fdiv_rz(x, y);
  o[14] = __fsqrt_rn(fabsf(x));
  o[15] = __fsqrt_ru(fabsf(x));
  o[16] = __frcp_rd(x);
  o[17] = fminf(x, y);
  o[18] = fmaxf(x, y);
  o[19] = truncf(x);
  o[20] = rintf(x);
  o[21] = floorf(x);
  o[22] = ceilf(x);
  o[23] = (float)(int)x;
  o[24] = (float)(unsigned)fabsf(x);
  o[25] = __saturatef(x);
  o[26] = copysignf(x, y);
  o[27] = __int2float_rz(__float_as_int(x));
  o[28] = __half2float(__float2half_rn(x));
  o[29] = __bfloat162float(__float2bfloat16_rn(x));
  o[30] = __half2float(__hfma(__float2half(x), __float2half(y), __float2half(z)));
  o[31] = __bfloat162float(__hfma(__float2bfloat16(x), __float2bfloat16(y), __float2bfloat16(z)));
}
extern "C" __global__ void functions(const float *a, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i], p = fabsf(x) + 1e-3f;
  float *o = out + 16 * i;
  o[0] = sinf(x);
  o[1] = cosf(x);
  o[2] = expf(x);
  o[3] = logf(p);
  o[4] = tanhf(x);
  o[5] = rsqrtf(p);
  o[6] = powf(p, 1.7f);
  o[7] = erff(x);
  o[8] = cbrtf(x);
  o[9] = atan2f(x, 2.0f);
  o[10] = __sinf(x);
  o[11] = __expf(x);
  o[12] = __logf(p);
  o[13] = exp2f(x);
  o[14] = fmodf(x, 0.7f);
  o[15] = __fdividef(x, p);
}
extern "C" __global__ void doubles(const double *a, const double *b, const double *c, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double x = a[i], y = b[i], z = c[i];
  double *o = out + 16 * i;
  o[0] = x / y;
  o[1] = sqrt(fabs(x));
  o[2] = fma(x, y, z);
  o[3] = sin(x);
  o[4] = exp(x);
  o[5] = log(fabs(x) + 1e-9);
  o[6] = pow(fabs(x), 0.3);
  o[7] = __dadd_rz(x, y);
  o[8] = __dmul_ru(x, y);
  o[9] = floor(x);
  o[10] = (double)(long long)x;
  o[11] = (double)(unsigned long long)fabs(x);
  o[12] = (double)(float)x;
  o[13] = fmin(x, y);
  o[14] = __longlong_as_double(__double_as_longlong(x) ^ 1);
  o[15] = tanh(x) + rsqrt(fabs(x) + 1.0);
}
extern "C" __global__ void narrow(const float *a, unsigned char *e4, unsigned char *e5, float *back, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __nv_fp8_e4m3 p(a[i]);
  __nv_fp8_e5m2 q(a[i]);
  e4[i] = p.__x;
  e5[i] = q.__x;
  back[2 * i] = float(p);
  back[2 * i + 1] = float(q);
}

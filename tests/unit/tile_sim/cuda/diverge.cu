#include <cstdio>
// Loops whose length differs in every thread, nested, with breaks and a switch.
extern "C" __global__ void collatz(const unsigned *x, unsigned *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = x[i];
  unsigned s = 0;
  while (v != 1) {
    v = (v & 1) ? 3 * v + 1 : v / 2;
    ++s;
  }
  steps[i] = s;
}
__device__ __noinline__ int helper(int a, int b) {
  if (a % 3 == 0) return a * b;
  for (int i = 0; i < b; ++i) {
    if (a > 1000) break;
    a += a ^ i;
  }
  return a - b;
}
extern "C" __global__ void switches(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i], r = 0;
  for (int k = 0; k < (v & 7); ++k) {
    switch ((v + k) % 9) {
      case 0: r += 1; break;
      case 1: r ^= 55; break;
      case 2: r *= 3; break;
      case 3: r -= v; break;
      case 4: r = helper(r + 1, v & 15); break;
      case 5: r += v * k; break;
      case 6: r |= 4; break;
      case 7: r &= 0x7fff; break;
      default: r = ~r; break;
    }
    if (r == 12345) continue;
    r += helper(k, r & 3);
  }
  y[i] = r;
}
typedef int (*binary)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
__device__ binary table[3] = {plus, minus, times};
extern "C" __global__ void pointers(const int *x, int *y) {
  int i = threadIdx.x;
  y[i] = table[i % 3](x[i], i);
}
extern "C" __global__ void hello(int n) {
  if (threadIdx.x < n)
    printf("thread %d of %s: %5.2f %lld %c%%\n", threadIdx.x, "block", threadIdx.x * 0.5,
           (long long)threadIdx.x << 40, 'a' + threadIdx.x);
}
struct Big {
  int a[5];
  double d;
  char c;
};
__constant__ int factors[4] = {2, 3, 5, 7};
extern "C" __global__ void by_value(Big big, int *out) {
  int local[8];
  for (int i = 0; i < 8; ++i) local[i] = i * factors[i & 3];
  int k = big.a[threadIdx.x % 5];
  out[threadIdx.x] = local[k & 7] + (int)big.d + big.c;
}

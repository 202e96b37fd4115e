extern "C" __global__ void stencil(const double *x, double *y, int w, int h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= w || j >= h) return;
  double s = -4.0 * x[j * w + i];
  if (i > 0) s += x[j * w + i - 1];
  if (i + 1 < w) s += x[j * w + i + 1];
  if (j > 0) s += x[(j - 1) * w + i];
  if (j + 1 < h) s += x[(j + 1) * w + i];
  y[j * w + i] = s;
}

"""Fourier transforms of N = N1 N2 numbers by two small ones (Cooley and Tukey, 1965).

With k = k1 + N1 k2 and n = N2 n1 + n2,

    X[k] = sum over n2 of W_N2[n2 k2] * (W_N[n2 k1] * sum over n1 of W_N1[n1 k1] * x[n1, n2])

where W_N[i] = exp(-2 pi i / N). Both sums are products of matrices; real and imaginary parts are
matrices of their own. A block transforms one row.
"""

import cuda.tile as ct
from signatures import array, signature


@ct.function
def times(a, b, c, d):
    """(a + ib) (c + id) for matrices."""
    shape = (a.shape[0], c.shape[1])
    zero = ct.full(shape, 0, dtype=ct.float32)
    return ct.mma(a, c, zero) - ct.mma(b, d, zero), ct.mma(a, d, ct.mma(b, c, zero))


@ct.kernel
def fft(
    x_re, x_im, first_re, first_im, twist_re, twist_im, second_re, second_im, y_re, y_im,
    n1: ct.Constant[int], n2: ct.Constant[int],
):  # fmt: skip
    row = ct.bid(0)
    a = ct.reshape(ct.load(x_re, index=(row, 0, 0), shape=(1, n1, n2)), (n1, n2))
    b = ct.reshape(ct.load(x_im, index=(row, 0, 0), shape=(1, n1, n2)), (n1, n2))
    c = ct.load(first_re, index=(0, 0), shape=(n1, n1))
    d = ct.load(first_im, index=(0, 0), shape=(n1, n1))
    a, b = times(c, d, a, b)
    c = ct.load(twist_re, index=(0, 0), shape=(n1, n2))
    d = ct.load(twist_im, index=(0, 0), shape=(n1, n2))
    a, b = a * c - b * d, a * d + b * c
    c = ct.load(second_re, index=(0, 0), shape=(n2, n2))
    d = ct.load(second_im, index=(0, 0), shape=(n2, n2))
    a, b = times(a, b, c, d)
    # Element (k1, k2) is number k1 + N1 k2.
    ct.store(y_re, index=(row, 0, 0), tile=ct.reshape(ct.transpose(a), (1, n2, n1)))
    ct.store(y_im, index=(row, 0, 0), tile=ct.reshape(ct.transpose(b), (1, n2, n1)))


def variant(name, n1, n2):
    """One signature: any number of rows of N1 x N2 numbers, in f32."""
    rows, matrix = array(ct.float32, 3), array(ct.float32, 2)
    return signature(name, [rows] * 2 + [matrix] * 6 + [rows] * 2 + [n1, n2])


KERNEL = fft
VARIANTS = (variant("fft_f32", 32, 32),)

"""The Triton kernels. Triton compiles only functions that are in a file."""
import triton
import triton.language as tl


@triton.jit
def axpy(r, a, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(r + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)

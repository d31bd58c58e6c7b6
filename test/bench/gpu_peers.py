"""The benchmark kernels in CuPy, Numba and Triton. Only installed libraries are measured. Each function returns {name:
median microseconds}."""
import statistics

import numpy as np

N = 1 << 28
CELLS, SIZE, TILE = 2000, 1000, 16


def is_installed(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None


def event_us(cupy, launch, repetitions=30, launches=1):
    first, last, times = cupy.cuda.Event(), cupy.cuda.Event(), []
    for _ in range(3):
        launch()
    for _ in range(repetitions):
        first.record()
        for _ in range(launches):
            launch()
        last.record()
        last.synchronize()
        times.append(1e3 * cupy.cuda.get_elapsed_time(first, last) / launches)
    return statistics.median(times)


def measure_cupy(cupy):
    x, y = cupy.random.rand(N, dtype=cupy.float32), cupy.random.rand(N, dtype=cupy.float32)
    r, a = cupy.empty_like(x), np.float32(2.5)
    kernel = cupy.ElementwiseKernel("float32 a, float32 x, float32 y", "float32 r", "r = a * x + y", "bench_axpy")
    return {"axpy": event_us(cupy, lambda: kernel(a, x, y, r))} | {f"abs_sum_{k}": event_us(cupy, lambda k=k: cupy.abs(x[:1 << k]).sum()) for k in (24, 28)}


def measure_numba(cupy):
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # numba-cuda expects a name that NumPy 2.5 dropped
    from numba import cuda, float32

    @cuda.jit
    def axpy(r, a, x, y):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = a * x[i] + y[i]

    @cuda.jit
    def diffusion(following, field):
        s = cuda.shared.array(shape=(10, 10), dtype=float32)
        col, row = cuda.grid(2)
        rows, cols = field.shape
        r, c = cuda.threadIdx.y + 1, cuda.threadIdx.x + 1
        inside = row < rows and col < cols
        if inside:
            s[r, c] = field[row, col]
            if r == 1:
                s[0, c] = field[row - 1, col] if row > 0 else float32(0)
            if c == 1:
                s[r, 0] = field[row, col - 1] if col > 0 else float32(0)
            if r == 8 or row == rows - 1:
                s[r + 1, c] = field[row + 1, col] if row < rows - 1 else float32(0)
            if c == 8 or col == cols - 1:
                s[r, c + 1] = field[row, col + 1] if col < cols - 1 else float32(0)
        cuda.syncthreads()
        if inside:
            laplacian = float32(4) * s[r, c] - s[r - 1, c] - s[r + 1, c] - s[r, c - 1] - s[r, c + 1]
            following[row, col] = s[r, c] - float32(0.25) * laplacian

    @cuda.jit
    def matmul(C, A, B):
        sA = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
        sB = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
        col, row = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        rows, depth = A.shape
        cols = B.shape[1]
        acc = float32(0)
        for t in range((depth + TILE - 1) // TILE):
            ka, kb = t * TILE + tx, t * TILE + ty
            sA[ty, tx] = A[row, ka] if row < rows and ka < depth else float32(0)
            sB[ty, tx] = B[kb, col] if kb < depth and col < cols else float32(0)
            cuda.syncthreads()
            for k in range(TILE):
                acc += sA[ty, k] * sB[k, tx]
            cuda.syncthreads()
        if row < rows and col < cols:
            C[row, col] = acc

    @cuda.jit
    def tutorial_matmul(A, B, C):  # the kernel of tutorial_matmul.kir
        sA = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
        sB = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        acc = float32(0)
        for i in range(cuda.gridDim.x):
            sA[tx, ty] = A[x, ty + i * TILE] if x < A.shape[0] and ty + i * TILE < A.shape[1] else float32(0)
            sB[tx, ty] = B[tx + i * TILE, y] if y < B.shape[1] and tx + i * TILE < B.shape[0] else float32(0)
            cuda.syncthreads()
            for j in range(TILE):
                acc += sA[tx, j] * sB[j, ty]
            cuda.syncthreads()
        if x < C.shape[0] and y < C.shape[1]:
            C[x, y] = acc

    x, y = cupy.random.rand(N, dtype=cupy.float32), cupy.random.rand(N, dtype=cupy.float32)
    r, a = cupy.empty_like(x), np.float32(2.5)
    field = cupy.random.rand(CELLS, CELLS, dtype=cupy.float32)
    following = cupy.empty_like(field)
    left, right = cupy.random.rand(SIZE, SIZE, dtype=cupy.float32), cupy.random.rand(SIZE, SIZE, dtype=cupy.float32)
    product = cupy.empty_like(left)
    views = {id(array): cuda.as_cuda_array(array) for array in (x, y, r, field, following, left, right, product)}
    view = lambda array: views[id(array)]
    blocks = -(-SIZE // TILE)
    results = {
        "axpy": event_us(cupy, lambda: axpy[N // 256, 256](view(r), a, view(x), view(y))),
        # a Numba launch takes about 20 us on the host, which many launches in a row show if the kernel is shorter
        "diffusion": event_us(cupy, lambda: diffusion[(250, 250), (8, 8)](view(following), view(field)), launches=20),
        "matmul": event_us(cupy, lambda: matmul[(blocks, blocks), (TILE, TILE)](view(product), view(left), view(right)), launches=5),
    }
    assert float(cupy.abs(product - left @ right).max()) < 1e-2
    product[:] = 0
    results["tutorial_matmul"] = event_us(cupy, lambda: tutorial_matmul[(blocks, blocks), (TILE, TILE)](view(left), view(right), view(product)), launches=5)
    assert float(cupy.abs(product - left @ right).max()) < 1e-2
    return results


def measure_triton(cupy):
    import torch
    import gpu_peers_triton as kernels
    r, x, y = (torch.as_tensor(cupy.random.rand(N, dtype=cupy.float32)) for _ in range(3))
    return {"axpy": event_us(cupy, lambda: kernels.axpy[(N // 1024,)](r, 2.5, x, y, N, BLOCK=1024))}


def measure_peers(say):
    """Returns {peer: {name: us}} for the peers that are installed and work."""
    results = {}
    if not is_installed("cupy"):
        say("CuPy is not installed: no Python peers")
        return results
    import cupy
    for name, needs, measure in (("CuPy", "cupy", measure_cupy), ("Numba", "numba", measure_numba), ("Triton", "triton", measure_triton)):
        if not is_installed(needs):
            say(f"{name} is not installed")
            continue
        say(name)
        try:
            results[name] = measure(cupy)
        except Exception as error:  # if a peer fails, the other times are still reported
            say(f"{name} failed: {error}")
        cupy.get_default_memory_pool().free_all_blocks()
    return results

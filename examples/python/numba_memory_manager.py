"""A memory manager for the arrays of a numba.cuda program: a class with Numba's plug-in interface
takes the memory from a pool. With a GPU and CuPy or PyTorch installed, this is the library's own
pool, so that the program and the library share it. Otherwise the pool is an arena: the manager
allocates parts of one large block, and joins neighbouring parts when they are freed."""
import bisect
import gc
import importlib.util
import sys

import kjit
from kjit import cuda

import numpy as np

ALIGNMENT = 256


class Arena:
    """Gives parts of one block of device memory away: the first free part that is large enough."""

    def __init__(self, block):
        self.block, first = block, -(-block.device_pointer_value // ALIGNMENT) * ALIGNMENT
        self.free = [(first, block.device_pointer_value + block.size)]  # sorted pairs (begin, end)

    def take(self, size):
        size = -(-size // ALIGNMENT) * ALIGNMENT
        for i, (begin, end) in enumerate(self.free):
            if end - begin >= size:
                self.free[i : i + 1] = [(begin + size, end)] if end - begin > size else []
                return (begin, begin + size), begin
        raise MemoryError(f"the arena ({self.block.size} bytes) has no contiguous {size} free bytes")

    def give_back(self, part):
        """Joins the part with the free parts that touch it."""
        begin, end = part
        i = bisect.bisect(self.free, part)
        if i < len(self.free) and self.free[i][0] == end:
            end = self.free.pop(i)[1]
        if i > 0 and self.free[i - 1][1] == begin:
            begin = self.free.pop(i - 1)[0]
        bisect.insort(self.free, (begin, end))


class CupyPool:
    def take(self, size):
        import cupy

        block = cupy.get_default_memory_pool().malloc(size)
        return block, block.ptr

    def give_back(self, block):
        """CuPy's pool takes a block back when the last reference to it ends."""


class TorchPool:
    def take(self, size):
        import torch

        block = torch.empty(size, dtype=torch.uint8, device="cuda")
        return block, block.data_ptr()

    def give_back(self, block):
        """PyTorch's pool takes a block back when the last reference to it ends."""


class PoolManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
    """Takes device memory from `pool`; pinned and mapped memory come from kjit."""

    pool, live, requests = None, {}, 0

    def initialize(self):
        pass

    def memalloc(self, size):
        pool, live = self.pool, self.live
        block, address = pool.take(size)
        live[address] = block
        type(self).requests += 1
        return cuda.MemoryPointer(self.context, address, size, finalizer=lambda: pool.give_back(live.pop(address)))

    def get_memory_info(self):
        raise NotImplementedError("the pool does not say how much memory is free")

    @property
    def interface_version(self):
        return 1


@cuda.jit
def smooth(after, before):
    i = cuda.grid(1)
    if 0 < i < before.size - 1:
        after[i] = (before[i - 1] + 2 * before[i] + before[i + 1]) / 4


def smoothed(values, steps):
    """Makes a new array in each step, whose memory the pool gives away again in a later step."""
    before = cuda.to_device(values)
    for _ in range(steps):
        after = cuda.to_device(values)
        smooth[values.size // 128 + 1, 128](after, before)
        before = after
    return before.copy_to_host()


def expected(values, steps):
    before = values
    for _ in range(steps):
        after = values.copy()
        after[1:-1] = (before[:-2] + 2 * before[1:-1] + before[2:]) / 4
        before = after
    return before


def choose_pool():
    """Returns the pool that the first argument names ("cupy", "torch" or "arena"), or the first one
    that this machine has."""
    pools = {"cupy": CupyPool, "torch": TorchPool}
    has_gpu = kjit.device().kind == "cuda"
    for name in sys.argv[1:] or pools:
        if name in pools and has_gpu and importlib.util.find_spec(name) is not None:
            return pools[name]()
    return Arena(cuda.current_context().memalloc(1 << 22))


pool = PoolManager.pool = choose_pool()
cuda.set_memory_manager(PoolManager)
values = np.random.default_rng().random(20_000)
np.testing.assert_allclose(smoothed(values, 50), expected(values, 50), rtol=1e-12)
if isinstance(pool, Arena):
    try:
        cuda.device_array(1 << 22)
        raise AssertionError("the arena is too small for this array")
    except MemoryError as error:
        print(error)
cuda.synchronize()
gc.collect()
assert not PoolManager.live, PoolManager.live
if isinstance(pool, Arena):
    assert len(pool.free) == 1, pool.free
print(f"{type(pool).__name__}: {PoolManager.requests} requests, and all memory went back")

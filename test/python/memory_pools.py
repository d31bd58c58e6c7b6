# REQUIRES: cuda
# RUN: env KJIT_DEVICE=cuda %kjit-python %s
"""The memory pools of CuPy and PyTorch as memory managers on a GPU: arrays and the temporary memory of algorithms come from the
pool, its limit is named, and everything goes back. Each pool has a process of its own. Skipped without a GPU."""

import gc
import subprocess
import sys

import numpy as np
import seeds

import kjit
from kjit import cuda

N = 1 << 20


def managers():
    """Returns the manager class of each library."""

    class Pool(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
        live, taken = {}, 0

        def memalloc(self, size):
            block, address = self.take(size)
            type(self).taken += 1
            self.live[address] = block

            def finalizer(live=self.live):
                del live[address]

            return cuda.MemoryPointer(self.context, address, size, finalizer=finalizer)

        def initialize(self):
            pass

        def get_memory_info(self):
            return cuda.MemoryInfo(free=1, total=2)

        @property
        def interface_version(self):
            return 1

    # Numba makes the device current before it calls a manager, and RMM's manager relies on it.

    class CupyPool(Pool):
        def take(self, size):
            import cupy

            block = cupy.get_default_memory_pool().malloc(size)
            assert block.device_id == self.context.device.id, block.device_id
            return block, block.ptr

    class TorchPool(Pool):
        def take(self, size):
            import torch

            block = torch.empty(size, dtype=torch.uint8, device="cuda")
            assert block.device.index == self.context.device.id, block.device
            return block, block.data_ptr()

    return {"cupy": CupyPool, "torch": TorchPool}


@cuda.jit
def add(r, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = x[i] + y[i]


def work(random, device):
    with cuda.gpus[device]:
        x, y = random.standard_normal(N), random.standard_normal(N)
        d_x, d_y, d_r = cuda.to_device(x), cuda.to_device(y), cuda.device_array(N)
        add[N // 256, 256](d_r, d_x, d_y)
        np.testing.assert_array_equal(d_r.copy_to_host(), x + y)
        np.testing.assert_allclose(cuda.reduce(lambda a, b: a + b)(d_r), (x + y).sum(), rtol=1e-9, atol=1e-6)
        np.testing.assert_array_equal(kjit.sort(d_r._own).to_host(), np.sort(x + y))
        return d_r


def check_pool(library):
    manager = managers()[library]
    cuda.set_memory_manager(manager)
    random = seeds.fresh_generator()
    for device in range(len(cuda.gpus)):
        kept = work(random, device)
        address = kept.__cuda_array_interface__["data"][0]
        assert address in manager.live
        assert manager.taken >= 4, manager.taken  # algorithms take memory, too
        del kept
        gc.collect()
    if library == "cupy":
        import cupy

        pool = cupy.get_default_memory_pool()
        pool.set_limit(pool.total_bytes() + (1 << 20))
        try:
            cuda.device_array(1 << 28)
            raise AssertionError("the limit of the pool has no effect")
        except cupy.cuda.memory.OutOfMemoryError as error:
            assert "Out of memory" in str(error)
        pool.set_limit(0)
        work(random, 0)
    cuda.synchronize()
    gc.collect()
    sizes = [getattr(block, "size", 0) for block in manager.live.values()]
    print(f"  {library}: {manager.taken} requests, {len(manager.live)} blocks are kept: {sizes}")


if len(sys.argv) > 1:  # before any use of the GPU, so that temporary memory comes from the pool as well
    check_pool(sys.argv[1])
elif not any(device.kind == "cuda" for device in kjit.devices()):
    print("SKIPPED: memory_pools.py needs a GPU")
else:
    for library in managers():
        try:
            __import__(library)
        except ImportError:
            print(f"  {library} is not installed")
            continue
        subprocess.run([sys.executable, __file__, library], check=True)
    print("memory_pools: good")

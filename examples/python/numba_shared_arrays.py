"""An array of one process in the kernels of another process. On a GPU the other process receives an
IPC handle and opens the same device memory, without a copy. The CPU has no such handles: there the
two processes share a block of host memory, and the kernels read and write it as a host array."""
import multiprocessing
from multiprocessing import shared_memory

import kjit
from kjit import cuda

import numpy as np

COUNT = 100_000


@cuda.jit
def wave(field, phase):
    i = cuda.grid(1)
    if i < field.size:
        field[i] += phase * i % 17


class SharedBlock:
    """Host memory of two processes, with the interface of an IPC handle."""

    def __init__(self, count):
        self.memory = shared_memory.SharedMemory(create=True, size=8 * count)
        self.count = count

    def array(self):
        return np.ndarray(self.count, np.float64, self.memory.buf)

    def __enter__(self):
        return self.array()

    def __exit__(self, *error):
        self.memory.close()

    def end(self):
        self.memory.close()
        self.memory.unlink()


def other_process(handle, phase):
    """Opens the array, and adds to its elements."""
    with handle as field:
        wave[COUNT // 128 + 1, 128](field, phase)
        cuda.synchronize()
        del field


def run(handle, phase):
    # A process that has used a GPU must not be forked, so the other process is a new process.
    child = multiprocessing.get_context("spawn").Process(target=other_process, args=(handle, phase))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode


def main():
    host = np.random.default_rng().random(COUNT)
    expected = host + 3 * np.arange(COUNT) % 17
    if kjit.device().kind == "cuda":
        field = cuda.to_device(host)
        run(field.get_ipc_handle(), 3)
        result, way = field.copy_to_host(), "an IPC handle"
    else:
        block = SharedBlock(COUNT)
        block.array()[:] = host
        run(block, 3)
        result, way = block.array().copy(), "a block of host memory, because the device is a CPU"
        block.end()
    np.testing.assert_array_equal(result, expected)
    print(f"two processes computed {COUNT} elements of one array through {way}")


if __name__ == "__main__":
    main()

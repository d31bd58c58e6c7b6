# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Arrays of one process in another one: handles that multiprocessing pickles, of whole arrays, views, and memory by its bytes. The
children compute on the parent's arrays, and NumPy computes the values once more. Only a GPU has such memory; the CPU refuses it."""
import gc
import multiprocessing
import os
import sys
import traceback

import numpy as np

import kjit
from kjit import cuda

PATIENCE = 240
on_gpu = os.environ.get("KJIT_DEVICE") == "cuda"


@cuda.jit
def scale(r, x, factor):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = factor * x[i]


def compute(handle, result, factor):
    """A kernel of the child reads one array of the parent and writes another."""
    with handle as x, result as r:
        shape, dtype = x.shape, x.dtype
        scale[(x.size + 63) // 64, 64](r, x, factor)
        cuda.synchronize()
        return shape, dtype.str, x.copy_to_host()


def read_bytes(reserved, shape, dtype):
    """Only the handle's bytes, as programs send them in their own messages."""
    with cuda.open_ipc_array(reserved, shape=shape, dtype=dtype) as array:
        return array.copy_to_host()


def open_twice(handle):
    with handle as first:
        total = first.copy_to_host().sum()
    try:
        handle.close()
    except ValueError as error:
        assert "not opened" in str(error)
    with handle as again:
        return total, again.copy_to_host().sum()


kept = []


def open_and_keep(handle):
    """The child holds the memory until it ends or is killed."""
    kept.append(handle.open())
    return float(kept[-1].copy_to_host().sum())


def export_own(count):
    kept.append(cuda.to_device(np.arange(count, dtype="f8")))
    return kept[-1].get_ipc_handle()


def look_on(handle, number):
    """Opens the memory while a device is current; returns the device of the memory and the sum."""
    with cuda.gpus[number], handle as array:
        return array.gpu_data.context.device.id, float(array.copy_to_host().sum())


def run(pipe):
    """The child process: calls functions with arguments from the pipe until it receives None."""
    while True:
        message = pipe.recv()
        if message is None:
            return
        function, arguments = message
        try:
            pipe.send((True, function(*arguments)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))


class Child:
    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=run, args=(inner,), daemon=True)
        self.process.start()
        inner.close()

    def call(self, function, *arguments):
        self.pipe.send((function, arguments))
        assert self.pipe.poll(PATIENCE), "the child does not answer"
        is_good, result = self.pipe.recv()
        assert is_good, result
        return result

    def end(self):
        self.pipe.send(None)
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0, self.process.exitcode


def check_arrays(child, random):
    for dtype in ("i4", "f8", "c16", "u1"):
        host = random.integers(0, 100, int(random.integers(1, 5000))).astype(dtype)
        x, r = cuda.to_device(host), cuda.device_array(host.size, dtype)
        shape, kind, seen = child.call(compute, x.get_ipc_handle(), r.get_ipc_handle(), 3)
        assert (shape, np.dtype(kind)) == (host.shape, host.dtype)
        np.testing.assert_array_equal(seen, host)
        np.testing.assert_array_equal(r.copy_to_host(), (3 * host).astype(dtype))


def check_views(child, random):
    """Views can begin anywhere in an allocation, and can have strides."""
    host = random.random((40, 30))
    x = cuda.to_device(host)
    r = cuda.device_array(30)
    row = int(random.integers(0, 40))
    _, _, seen = child.call(compute, x[row].get_ipc_handle(), r.get_ipc_handle(), 2.0)
    np.testing.assert_array_equal(seen, host[row])
    np.testing.assert_array_equal(r.copy_to_host(), 2 * host[row])
    big = cuda.device_array(1000)
    big[:] = 7.0
    part = big[100:140]
    _, _, seen = child.call(compute, cuda.to_device(host[:, 0].copy()).get_ipc_handle(), part.get_ipc_handle(), 1.0)
    wanted = np.full(1000, 7.0)
    wanted[100:140] = seen
    np.testing.assert_array_equal(big.copy_to_host(), wanted)


def check_bytes(child, random):
    host = random.random((17, 5)).astype(np.float32)
    x = cuda.to_device(host)
    handle = x.get_ipc_handle()
    reserved = bytes(handle._ipc_handle.handle.reserved)
    np.testing.assert_array_equal(child.call(read_bytes, reserved, (17, 5), np.float32), host)
    total, again = child.call(open_twice, handle)
    assert total == again == host.sum()


def check_lifetimes(child, random):
    """The parent's memory is free for other arrays after the handle, and new handles reach the new values."""
    for _ in range(4):
        host = random.random(3000)
        x = cuda.to_device(host)
        total, again = child.call(open_twice, x.get_ipc_handle())
        assert total == again == host.sum()
        del x


def check_second_device(child, random):
    """Memory of the second GPU is on the second GPU in the other process, too."""
    if len(cuda.gpus) < 2:
        print("ipc: one GPU")
        return
    host = random.integers(0, 100, 2000).astype("f8")
    with cuda.gpus[1]:
        x = cuda.to_device(host)
    for current in (0, 1):
        assert child.call(look_on, x.get_ipc_handle(), current) == (1, host.sum())
    y = cuda.to_device(2 * host)
    assert child.call(look_on, y.get_ipc_handle(), 1) == (0, 2 * host.sum())


def check_dead_processes(child, random):
    """A child that is killed while it holds memory of the parent, and a parent's handle of memory whose process has ended."""
    host = random.random(3000)
    x = cuda.to_device(host)
    other = Child()
    assert other.call(open_and_keep, x.get_ipc_handle()) == host.sum()
    other.process.kill()
    other.process.join(PATIENCE)
    np.testing.assert_array_equal(x.copy_to_host(), host)
    total, again = child.call(open_twice, x.get_ipc_handle())
    assert total == again == host.sum()
    other = Child()
    handle = other.call(export_own, 1000)
    with handle as there:
        assert there.copy_to_host().sum() == 499500
    other.end()
    # The driver keeps the memory of an ended process while another process has it open, and then
    # opens it again. Otherwise it has to refuse.
    del there
    gc.collect()
    try:
        with handle as there:
            assert there.copy_to_host().sum() == 499500
        print("a handle of a process that has ended: opened")
    except kjit.Error as error:
        print("a handle of a process that has ended:", str(error).splitlines()[0])
    try:
        x.get_ipc_handle().open()
        raise AssertionError("a process has opened its own memory")
    except kjit.Error as error:
        assert "belongs to this process" in str(error), error
    try:
        with cuda.open_ipc_array(bytes(64), shape=3, dtype="f8"):
            raise AssertionError("a handle of zeros was opened")
    except (kjit.Error, ValueError) as error:
        print("a handle of zeros:", str(error).splitlines()[0])
    np.testing.assert_array_equal(x.copy_to_host(), host)  # the context is usable


def main():
    import seeds  # not in the processes that the test starts

    random = seeds.fresh_generator()
    if not on_gpu:
        try:
            cuda.to_device(random.random(5)).get_ipc_handle()
        except kjit.Error as error:
            assert "KJIT_MEMORY_SHARED" in str(error), error
            return
        raise AssertionError("the CPU gives a handle of memory that is not shared")
    child = Child()
    for check in (check_arrays, check_views, check_bytes, check_lifetimes, check_second_device, check_dead_processes):
        check(child, random)
    child.end()


if __name__ == "__main__":
    main()
    print("ipc: good", file=sys.stderr)

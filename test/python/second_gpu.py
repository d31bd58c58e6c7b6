# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Arrays of PyTorch, CuPy and JAX on the second GPU, while the first one is current: launches run on the GPU of the arrays and in
the order of the library's stream there. Skipped without two GPUs."""

import gc
import sys
import threading
import time

import numpy as np
import seeds

import kjit
import kjit.numpy as knp
from kjit import cuda

GPUS = [device for device in kjit.devices() if device.kind == "cuda"]
if len(GPUS) < 2:
    print(f"SKIPPED: second_gpu.py needs two GPUs, and there are {len(GPUS)}")
    sys.exit(0)
random = seeds.fresh_generator()
N = 1 << 16


def installed(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"{name} is not installed")
        return None


@kjit.jit
def scale(r, factor, x):
    for i in kjit.grid_range(len(r)):
        r[i] = factor * x[i]


@cuda.jit
def add_to(r, x):
    for i in range(cuda.grid(1), r.size, cuda.gridsize(1)):
        r[i] += x[i]


def raises(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), str(error)
        return
    raise AssertionError(f"{text}: nothing was raised")


# ---- PyTorch ----


def check_torch(torch):
    """A long operation comes before each launch, so that a launch in another stream would read old values."""
    torch.cuda.set_device(0)
    kjit.zeros(10, "f32", "cuda:1").to_host()
    assert torch.cuda.current_device() == 0 and kjit.device().ordinal == 0
    for stream in (torch.cuda.default_stream(1), torch.cuda.Stream(1), torch.cuda.Stream(1, priority=-1)):
        with torch.cuda.stream(stream):
            x, r = torch.zeros(N, device="cuda:1"), torch.zeros(N, device="cuda:1")
        stream.synchronize()
        torch.cuda.set_device(0)
        with torch.cuda.stream(stream):
            torch.cuda.set_device(0)  # the array's GPU counts, not the current one
            with torch.cuda.device(1):
                torch.cuda._sleep(100_000_000)
            x.fill_(3)
            scale(r, 2, x)
            r += 1
            scale(x, 10, r)
            mine = torch.empty_like(r)
            mine.copy_(x)
        stream.synchronize()
        assert (r == 7).all() and (mine == 70).all(), stream
    torch.cuda.set_device(0)


def check_torch_forms(torch):
    host = random.standard_normal((64, 48))
    there = torch.as_tensor(host, device=torch.device("cuda:1"))
    own = kjit.from_dlpack(there)
    assert own.device == "cuda:1" and torch.from_dlpack(own).device == there.device
    assert torch.from_dlpack(own).data_ptr() == there.data_ptr()
    assert knp.asarray(there).device == "cuda:1"
    np.testing.assert_allclose(float(kjit.reduce(there.ravel(), "add")), host.sum(), rtol=1e-12)
    squares = kjit.map(lambda v: v * v + 1, there)
    assert kjit.from_dlpack(squares).device == "cuda:1"
    np.testing.assert_allclose(kjit.from_dlpack(squares).to_host(), host * host + 1, rtol=1e-15)
    r = torch.zeros_like(there[:, 3])
    scale(r, 2, there[:, 3])  # strided
    np.testing.assert_allclose(r.cpu(), 2 * host[:, 3])
    first = torch.zeros(48, device="cuda:0", dtype=torch.float64)
    raises(kjit.ArgumentError, "the array is on cuda:", scale, first, 1, there[0])
    with cuda.gpus[1]:
        add_to[4, 64](r, there[:, 3])
        raises(kjit.ArgumentError, "launch is on cuda:1, but the array is on cuda:0", add_to[4, 64], first, there[0])
        assert cuda.as_cuda_array(there).gpu_data.context.device.id == 1
    raises(kjit.ArgumentError, "launch is on cuda:0, but the array is on cuda:1", add_to[4, 64], r, r)
    torch.cuda.synchronize(1)
    np.testing.assert_allclose(r.cpu(), 3 * host[:, 3])
    stream = torch.cuda.Stream(1)
    scale[8, 128, stream](r, 0.5, r)  # the launch's own stream
    stream.synchronize()
    np.testing.assert_allclose(r.cpu(), 1.5 * host[:, 3])
    raises(kjit.ArgumentError, "cuda:1", scale[8, 128, torch.cuda.Stream(1)], first, 1, first)


def check_torch_derivatives(torch):
    import kjit.torch

    made = kjit.torch.function(lambda x, y: kjit.sin(x) * y)
    x = torch.rand(1000, device="cuda:1", dtype=torch.float64, requires_grad=True)
    y = torch.rand(1000, device="cuda:1", dtype=torch.float64, requires_grad=True)
    value = made(x, y)
    assert value.device == x.device
    value.sum().backward()
    assert torch.allclose(x.grad, torch.cos(x) * y) and torch.allclose(y.grad, torch.sin(x)) and x.grad.device == x.device


def check_threads(torch):
    failures = []

    def work(number):
        try:
            torch.cuda.set_device(number % 2)
            cuda.select_device(number % 2)
            with torch.cuda.stream(torch.cuda.Stream()):
                for step in range(50):
                    x = torch.full((N,), float(step), device="cuda")
                    add_to[64, 128](x, x)
                    scale(x, 0.5, x)
                    x += 1
                    assert float(x.sum()) == N * (step + 1), (number, step)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# ---- CuPy ----


def spin(cupy, seconds):
    """Keeps the current stream of CuPy busy."""
    cupy.RawKernel('extern "C" __global__ void wait(long long n) { long long t = clock64(); while (clock64() - t < n); }', "wait")(
        (1,), (1,), (np.int64(seconds * 1.5e9),)
    )


def check_cupy(cupy):
    class Derived(cupy.ndarray):
        """A library type for which kjit uses DLPack."""

        __module__ = "cupy.derived"

    cupy.cuda.Device(0).use()
    with cupy.cuda.Device(1):
        streams = [cupy.cuda.Stream.null, cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)]
    for stream in streams:
        for kind in (cupy.ndarray, Derived):
            with cupy.cuda.Device(1):
                x, r = (kind(N, "f4") for _ in range(2))
                x.fill(0)
                r.fill(0)
                cupy.cuda.Device(1).synchronize()
                stream.use()
                spin(cupy, 0.05)
                x.fill(3)
            assert cupy.cuda.Device().id == 0
            scale(r, 2, x)  # outside of the block: CuPy's stream of the array's GPU counts
            with cupy.cuda.Device(1):
                r += 1
                stream.synchronize()
                assert bool((r == 7).all()), (stream, kind)
                cupy.cuda.Stream.null.use()
    with cupy.cuda.Device(1):
        x = cupy.asarray(random.standard_normal(1000))
    first = cupy.zeros(1000)
    raises(kjit.ArgumentError, "the array is on cuda:", scale, first, 1, x)
    own = kjit.from_dlpack(x)
    assert own.device == "cuda:1" and cupy.from_dlpack(own).device.id == 1
    with cuda.gpus[1]:
        r = cuda.device_array(1000)
        r[:] = 1.0
        add_to[4, 128](r, x)
        with cupy.cuda.Device(1):
            np.testing.assert_array_equal(cupy.asarray(r).get(), 1 + x.get())
            assert cupy.asarray(r).device.id == 1


def check_stream_arguments(cupy):
    """Copies with a stream come after the work of the stream, which kjit does not know: CuPy has queued it."""
    for number in (0, 1):
        with cupy.cuda.Device(number), cuda.gpus[number]:
            d = cuda.device_array(N)
            d[:] = 1.0
            stream = cupy.cuda.Stream(non_blocking=True)
            external = cuda.external_stream(stream.ptr)
            for given in (external, stream):
                with stream:
                    spin(cupy, 0.05)
                    view = cupy.asarray(d)
                    view += 1
                before = float(d.copy_to_host(stream=given)[-1])
                with stream:
                    spin(cupy, 0.05)
                    got = view + 0
                d.copy_to_device(np.full(N, before + 5), stream=given)
                stream.synchronize()
                assert float(got[-1]) == before, (number, float(got[-1]), before)
                assert d.copy_to_host()[-1] == before + 5
            assert before == 8, before


# ---- JAX ----


def check_jax(jax):
    x = jax.device_put(np.arange(1000, dtype="f4"), jax.devices()[1])
    own = kjit.from_dlpack(x)
    assert own.device == "cuda:1"
    r = kjit.zeros(1000, "f32", "cuda:1")
    scale(r, 2, x)
    np.testing.assert_array_equal(r.to_host(), 2 * np.arange(1000))


# ---- kjit's own arrays: the order of copies between the GPUs ----


def check_copies():
    there, back = kjit.zeros(1 << 24, "f32", "cuda:1"), kjit.zeros(1 << 24, "f32", "cuda:0")
    for step in range(10):
        here = kjit.full(1 << 24, step + 1.0, "f32", "cuda:0")
        scale(here, 2, here)
        there.copy_from(here)
        scale(there, 3, there)
        back.copy_from(there)
        scale(here, 0, here)
        scale(there, 0, there)
        assert (back.to_host() == 6 * (step + 1)).all(), step


def rate_of_copies():
    """Prints the GB/s of copies between GPUs, without and with peer access."""
    size = 1 << 28
    source, to = kjit.empty(size, "u8", "cuda:0"), kjit.empty(size, "u8", "cuda:1")
    rates = []
    for is_on in (False, True):
        if is_on:
            if not kjit.device("cuda:0").can_access_peer("cuda:1"):
                break
            kjit.device("cuda:0").enable_peer_access("cuda:1")
            kjit.device("cuda:1").enable_peer_access("cuda:0")
        times = []
        for _ in range(4):
            began = time.perf_counter()
            to.copy_from(source)
            kjit.synchronize("cuda:0")
            kjit.synchronize("cuda:1")
            times.append(time.perf_counter() - began)
        rates.append(size / min(times) / 1e9)
    return rates


torch, cupy, jax = installed("torch"), installed("cupy"), installed("jax")
checks = [(check_copies, None)]
if torch:
    checks += [(check, torch) for check in (check_torch, check_torch_forms, check_torch_derivatives, check_threads)]
if cupy:
    checks += [(check, cupy) for check in (check_cupy, check_stream_arguments)]
if jax and any(device.platform in ("gpu", "cuda") for device in jax.devices()) and len(jax.devices()) > 1:
    checks.append((check_jax, jax))
failed = []
for check, library in checks:
    try:
        check(*([library] if library else []))
        print(f"  {check.__name__}: good")
    except Exception as error:
        import traceback

        traceback.print_exc()
        failed.append(f"{check.__name__}: {type(error).__name__}")
gc.collect()
print("  copies from GPU to GPU, GB/s:", *(f"{rate:.0f}" for rate in rate_of_copies()))
assert not failed, failed
print(f"second_gpu.py: {len(GPUS)} GPUs")

# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=2 %kjit-python %s %srcdir
# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=3 %kjit-python %s
# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=8 %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Several devices in one program, by Numba's names and by kjit's: the current device of each thread, arrays, streams, events and
launches of each, copies, peer access, and mistakes. The devices are GPUs (KJIT_DEVICE=cuda, two of them at least) or CPU devices."""
import copy
import gc
import itertools
import linecache
import os
import pickle
import re
import sys
import threading

os.environ.setdefault("KJIT_CPU_DEVICES", "2")
import kjit
import kjit.numpy as knp
import numpy as np
import seeds
from kjit import cuda

KIND = "cuda" if os.environ.get("KJIT_DEVICE", "").startswith("cuda") else "cpu"
if KIND == "cpu":
    os.environ["KJIT_DEVICE"] = "cpu"
COUNT = len(cuda.gpus)
if COUNT < 2:
    print(f"SKIPPED: several_devices.py needs two devices, and there is {COUNT}")
    sys.exit(0)
random = seeds.fresh_generator()
CudaAPIError = cuda.cudadrv.driver.CudaAPIError


def name_of(number):
    return f"{KIND}:{number}"


def raises(kinds, pattern, call, *args, **keywords):
    """Returns the message of the exception that a call raises."""
    try:
        call(*args, **keywords)
    except kinds as error:
        assert re.search(pattern, str(error)), f"{pattern!r} is not in {error}"
        return str(error)
    raise AssertionError(f"{pattern!r}: nothing was raised")


@cuda.jit
def axpy(r, a, x, y):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = a * x[i] + y[i]


@cuda.jit
def add_to(r, x):
    for i in range(cuda.grid(1), r.size, cuda.gridsize(1)):
        r[i] += x[i]


@kjit.jit
def scale(r, factor, x):
    for i in kjit.grid_range(len(r)):
        r[i] = factor * x[i]


def device_of(array):
    return (array._own if hasattr(array, "_own") else array).device


# ---- choosing a device ----


def check_choice():
    assert list(cuda.gpus) == list(cuda.list_devices()) == [cuda.gpus[i] for i in range(COUNT)]
    assert [d.id for d in cuda.gpus] == list(range(COUNT)) and cuda.gpus[-1].id == COUNT - 1
    assert len({d.uuid for d in cuda.gpus}) == COUNT
    assert cuda.get_current_device().id == cuda.gpus.current.id == 0
    with cuda.gpus[1] as entered:
        assert entered.id == cuda.get_current_device().id == cuda.current_context().device.id == 1
        assert cuda.cudadrv.devices.get_context().device.id == 1
        with cuda.gpus[0]:
            assert cuda.gpus.current.id == 0
            assert device_of(cuda.device_array(3)) == name_of(0)
        assert cuda.gpus.current.id == 1
        assert cuda.select_device(0).id == 0 and cuda.gpus.current.id == 0
    assert cuda.gpus.current.id == 0
    assert cuda.select_device(COUNT - 1) == cuda.gpus[COUNT - 1]
    assert device_of(cuda.to_device(np.ones(3))) == device_of(kjit.zeros(3)) == name_of(COUNT - 1)
    cuda.close()
    assert cuda.gpus.current.id == 0
    context = cuda.gpus[1].get_primary_context()
    context.push()
    assert cuda.gpus.current.id == 1
    context.pop()
    assert cuda.gpus.current.id == 0 and cuda.detect()
    try:
        with cuda.gpus[1]:
            raise KeyError
    except KeyError:
        assert cuda.gpus.current.id == 0
    raises(TypeError, "kernel only; kjit.device.*cuda:0", kjit.gpu, 1)
    with kjit.device(name_of(1)):
        assert cuda.gpus.current.id == 1 and kjit.device().ordinal == 1 and knp.ones(2).device == name_of(1)
    assert [d.ordinal for d in kjit.devices() if d.kind == KIND] == list(range(COUNT))


@cuda.require_context
def switch(number):
    with cuda.gpus[number]:
        return cuda.gpus.current.id


def check_required_context():
    with cuda.gpus[1]:
        assert switch(1) == 1
        raises(RuntimeError, "Cannot switch CUDA-context", switch, 0)
    assert switch(0) == 0


def check_threads():
    """Each thread has its own current device, and starts with the first one."""
    found, barrier = {}, threading.Barrier(2 * COUNT)

    def work(number):
        started = cuda.gpus.current.id
        device = number % COUNT
        cuda.select_device(device)
        x = random.standard_normal(1000)
        for _ in range(5):
            barrier.wait()
            r, here = cuda.to_device(np.zeros(1000)), cuda.to_device(x)
            axpy[8, 128](r, 2, here, here)
            if device_of(r) != name_of(device) or cuda.gpus.current.id != device or not np.array_equal(r.copy_to_host(), 3 * x):
                return
            cuda.synchronize()
        found[number] = started

    with cuda.gpus[1]:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2 * COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cuda.gpus.current.id == 1
    assert found == dict.fromkeys(range(2 * COUNT), 0), found


# ---- arrays ----


def check_arrays():
    with cuda.gpus[1]:
        whole = np.arange(24.0).reshape(4, 6)
        a = cuda.to_device(whole)
        views = {
            "slice": a[1:3, ::2], "T": a.T, "reshape": a.reshape(24), "ravel": a.ravel(), "view": a.view("i4"), "bind": a.bind(),
            "like": cuda.device_array_like(a), "strided": cuda.device_array((3, 3), strides=(48, 16)), "empty": cuda.to_device(np.empty(0)),
            "broadcast": cuda.to_device(np.broadcast_to(np.ones(3), (2, 3))), "fortran": cuda.device_array((3, 4), order="F"),
        }
    for what, view in views.items():
        assert device_of(view) == name_of(1), what
    assert a.gpu_data.context.device.id == 1
    np.testing.assert_array_equal(views["slice"].copy_to_host(), whole[1:3, ::2])
    assert (a[2, 3], device_of(cuda.as_cuda_array(a))) == (15.0, name_of(1))
    a[1] = np.full(6, -1.0)
    whole[1] = -1
    np.testing.assert_array_equal(a.copy_to_host(), whole)


def check_own_words():
    """Kernels and algorithms of kjit take the arrays of kjit.cuda, and their results are on the same device. A CPU device has no
    driver that finds the device by the address."""
    if KIND == "cuda":
        return
    x = random.permutation(600).astype(np.float64)
    with cuda.gpus[1]:
        a, whole = cuda.to_device(x[::2]), cuda.to_device(x)
        records = cuda.to_device(np.zeros(3, [("a", "i4")]))
    assert kjit.reduce(a, "add").item() == kjit.reduce(whole[::2], "add").item() == x[::2].sum()
    ordered = kjit.sort(whole[::-2])
    assert ordered.device == name_of(1)
    np.testing.assert_array_equal(ordered.to_host(), np.sort(x[::-2]))
    np.testing.assert_array_equal(np.from_dlpack(whole[::3]), x[::3])
    assert kjit.array(a, device=name_of(0)).device == name_of(0)
    kjit.scan(kjit.array(x[::2], device=name_of(1)), "add", out=a)
    np.testing.assert_array_equal(a.copy_to_host(), x[::2].cumsum())
    scale(whole, 2, whole)
    np.testing.assert_array_equal(whole.copy_to_host(), 2 * x)
    np.testing.assert_array_equal((knp.asarray(whole) + whole).to_host(), 4 * x)
    raises((TypeError, kjit.ArgumentError), "", kjit.sort, records)
    raises(kjit.ArgumentError, f"launch is on {name_of(1)}, but the array is on {name_of(0)}", scale, whole, 2, kjit.array(x, device=name_of(0)))


class Foreign:
    """An array of a library that has the CUDA array interface."""

    def __init__(self, array):
        self.keeps, self.__cuda_array_interface__ = array, array.__cuda_array_interface__


def check_foreign():
    """The interface does not name the device, but the address determines it."""
    with cuda.gpus[1]:
        own = cuda.to_device(np.ones(8))
        foreign = Foreign(own[2:])
        taken = cuda.as_cuda_array(foreign)
        assert device_of(taken) == name_of(1)
        add_to[1, 32](foreign, taken)
    raises(kjit.ArgumentError, f"launch is on {name_of(0)}, but the array is on {name_of(1)}", add_to[1, 32], foreign, taken)
    np.testing.assert_array_equal(own.copy_to_host(), [1, 1, 2, 2, 2, 2, 2, 2])
    made = kjit.zeros(3, "f32", name_of(1))
    assert made.__dlpack_device__() == (2 if KIND == "cuda" else 1, 1)
    assert kjit.from_dlpack(made).device == name_of(1)
    host = np.zeros(3)
    for number in range(COUNT):
        with cuda.gpus[number]:  # all devices can use host memory
            add_to[1, 32](host, cuda.to_device(np.full(3, number + 1.0)))
    np.testing.assert_array_equal(host, COUNT * (COUNT + 1) / 2)


def check_copies():
    x = random.standard_normal((5, 7))
    for to, source in itertools.permutations(range(COUNT), 2):
        with cuda.gpus[source]:
            there = cuda.to_device(x)
        with cuda.gpus[to]:
            here = cuda.to_device(np.zeros_like(x))
            here.copy_to_device(there)
            part = cuda.to_device(np.zeros((2, 7)))
        part.copy_to_device(there[1:3])
        np.testing.assert_array_equal(here.copy_to_host(), x)
        np.testing.assert_array_equal(part.copy_to_host(), x[1:3])
        assert (device_of(here), device_of(there)) == (name_of(to), name_of(source))
        here[:, 3] = there[:, 4]
        np.testing.assert_array_equal(here.copy_to_host()[:, 3], x[:, 4])
        own = kjit.array(x, device=name_of(source))
        moved = own.to_device(name_of(to))
        assert moved.device == name_of(to) and np.array_equal(moved.to_host(), x)
        assert knp.asarray(own, device=name_of(to)).device == name_of(to) and knp.asarray(own).device == name_of(source)
        own.copy_from(kjit.array(-x, device=name_of(to)))
        np.testing.assert_array_equal(own.to_host(), -x)


def check_copies_of_objects():
    """Copied and pickled arrays stay on their device. If this device does not exist, the current device is used."""
    x = random.standard_normal(7)
    with cuda.gpus[1]:
        there = cuda.to_device(x)
        missing = pickle.dumps(there).replace(name_of(1).encode(), name_of(9).encode())
    for made in (copy.copy(there), copy.deepcopy(there), pickle.loads(pickle.dumps(there))):
        assert device_of(made) == name_of(1) and made._own._address != there._own._address
        np.testing.assert_array_equal(made.copy_to_host(), x)
    assert device_of(pickle.loads(missing)) == name_of(0) and cuda.gpus.current.id == 0
    with cuda.gpus[1]:
        assert device_of(pickle.loads(missing)) == name_of(1)


# ---- streams and events ----


def check_streams():
    x = random.integers(-1000, 1000, 5000).astype(np.float64)  # products and sums are exact, fused or not
    results, events = [], []
    for device in cuda.gpus:
        with device:
            stream, first, last = cuda.stream(), cuda.event(), cuda.event()
            assert f"{KIND}:{device.id}" in repr(stream)
            here, r = cuda.to_device(x, stream=stream), cuda.device_array(5000, stream=stream)
            first.record(stream)
            axpy[40, 128, stream](r, device.id + 1, here, here)
            last.record(stream)
            results.append((device.id, stream, r))
            events.append((first, last))
    for number, stream, r in results:
        stream.synchronize()
        np.testing.assert_array_equal(r.copy_to_host(), (number + 1) * x + x)
    for first, last in events:
        last.synchronize()
        assert first.query() and last.query() and cuda.event_elapsed_time(first, last) >= 0
    # A stream of another device waits for an event.
    with cuda.gpus[1]:
        events[0][1].wait(results[1][1])
    external = cuda.external_stream(int(results[0][1]))
    external.synchronize()
    axpy[40, 128, external](results[0][2], 0, results[0][2], results[0][2])
    cuda.synchronize()
    np.testing.assert_array_equal(results[0][2].copy_to_host(), 2 * x)
    with cuda.gpus[1]:
        raises(kjit.ArgumentError, f"launch is on {name_of(1)}, but its stream is on {name_of(0)}", axpy[1, 32, results[0][1]], results[1][2], 1, results[1][2], results[1][2])


# ---- launches ----


def check_launches():
    """A launch runs on the current device. A kernel with a configuration can run on all devices."""
    configured = axpy[4, 64]
    x = random.standard_normal(200)
    for number in [0, 1, 1, 0, COUNT - 1]:
        with cuda.gpus[number]:
            r, here = cuda.to_device(np.zeros(200)), cuda.to_device(x)
            configured(r, 0.5, here, here)
            axpy.forall(200)(r, 0.5, here, r)
            np.testing.assert_array_equal(r.copy_to_host(), 0.5 * x + (0.5 * x + x))
            other = (number + 1) % COUNT
            with cuda.gpus[other]:
                text = raises(kjit.ArgumentError, f"launch is on {name_of(other)}, but the array is on {name_of(number)}", configured, r, 1, here, here)
                assert "`r`" in text and "peer access" in text, text
    # kjit's own kernels run on the device of their arrays.
    a, b = (kjit.array(x, device=name_of(i)) for i in range(2))
    for place, other in ((a, b), (b, a)):
        scale(place, 3, place)
        np.testing.assert_array_equal(place.to_host(), 3 * x)
        raises(kjit.ArgumentError, f"launch is on {place.device}, but the array is on {other.device}", scale, place, 1, other)
    with kjit.device(name_of(1)):
        scale(a, 1, a)
        host = x.copy()
        scale(host, 2, x)
    np.testing.assert_array_equal(host, 2 * x)
    fixed = kjit.jit(device=name_of(1))(scale.py_func)
    fixed(b, 1, b)
    raises(kjit.ArgumentError, f"launch is on {name_of(1)}, but the array is on {name_of(0)}", fixed, a, 1, a)
    assert kjit.reduce(b, "add").device == (b + b).device == name_of(1)
    one, other = knp.asarray(a), knp.asarray(b)
    raises(knp.DevicesError, f"on {one.device} and on {other.device}; move one with x.to_device", lambda: one + other)
    for call in (lambda: one + np.ones(a.size), lambda: np.ones(a.size) + one, lambda: knp.maximum(np.ones(a.size), one)):
        raises(knp.DevicesError, f"a NumPy array or on the CPU; move it with kjit.numpy.asarray\\(x, device='{one.device}'\\)", call)
    assert (one + knp.asarray(np.ones(a.size), device=one.device)).device == one.device


def check_vectorized():
    """Ufuncs and gufuncs of kjit.cuda compute on the device of their arrays."""
    made = cuda.vectorize(["float64(float64, float64)"], target="cuda")(lambda a, b: a - 2 * b)
    x, y = random.standard_normal((2, 3, 4))
    for number in range(COUNT):
        with cuda.gpus[number]:
            there = cuda.to_device(x)
        for result, expected in ((made(there, y), x - 2 * y), (made(1.5, there), 1.5 - 2 * x), (made(there, there), -x)):
            assert device_of(result) == name_of(number)
            np.testing.assert_array_equal(result.copy_to_host(), expected)
        made(there, y, out=there)
        np.testing.assert_array_equal(there.copy_to_host(), x - 2 * y)
        total = cuda.reduce(lambda a, b: a + b)(there.ravel())
        np.testing.assert_allclose(total, (x - 2 * y).sum(), rtol=1e-12, atol=1e-12)
    other = cuda.to_device(x)
    with cuda.gpus[1]:
        there = cuda.to_device(x)
    raises(kjit.ArgumentError, "the array is on", made, there, other)
    assert cuda.gpus.current.id == 0


def check_peers():
    first, second = (cuda.gpus[i].get_primary_context() for i in range(2))
    assert not first.can_access_peer(0)
    if not first.can_access_peer(1):
        raises(kjit.Error, "peer access", first.enable_peer_access, second)
        return
    x = random.standard_normal(300)
    here = cuda.to_device(x)
    with cuda.gpus[1]:
        there = cuda.to_device(2 * x)
    for _ in range(2):
        raises(CudaAPIError, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", first.disable_peer_access, 1)
        raises(kjit.ArgumentError, "the array is on", add_to[4, 64], here, there)
        raises(kjit.ArgumentError, "the array is on", scale, here._own, 1, there._own)
        first.enable_peer_access(second)
        raises(CudaAPIError, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", first.enable_peer_access, 1)
        # access is allowed in one direction
        raises(CudaAPIError, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", second.disable_peer_access, first)
        for _ in range(3):
            add_to[4, 64](here, there)
        cuda.synchronize()
        np.testing.assert_allclose(here.copy_to_host(), 7 * x, rtol=1e-14)
        scale(here._own, 0.5, there._own)
        np.testing.assert_array_equal(here.copy_to_host(), x)
        with cuda.gpus[1]:
            raises(kjit.ArgumentError, f"launch is on {name_of(1)}, but the array is on {name_of(0)}", add_to[4, 64], there, here)
        first.disable_peer_access(second)
    own = kjit.device(name_of(0))
    assert own.can_access_peer(name_of(1)) and not own.can_access_peer(own)


# ---- random programs ----


def check_random_programs():
    """Arrays on random devices, copies between them, and launches on their devices, compared with NumPy."""
    count = int(random.integers(20, 60))
    arrays = []
    for _ in range(6):
        number, x = int(random.integers(COUNT)), random.integers(-50, 50, count).astype("f8")
        with cuda.gpus[number]:
            arrays.append([number, cuda.to_device(x), x.copy()])
    for _ in range(60):
        (place, array, model), (other, source, source_model) = (arrays[int(i)] for i in random.integers(len(arrays), size=2))
        step = int(random.integers(4))
        if step == 0:
            array.copy_to_device(source)
            model[:] = source_model
        elif step == 1:
            low, high = sorted(int(i) for i in random.integers(count, size=2))
            array[low:high].copy_to_device(source[low:high])
            model[low:high] = source_model[low:high]
        elif step == 2:
            scale(array._own, 0.5, array._own)
            model *= 0.5
        else:
            with cuda.gpus[place]:
                add_to[2, 32](array, source if place == other else source.copy_to_host())
            model += source_model
    for number, array, model in arrays:
        assert device_of(array) == name_of(number)
        np.testing.assert_array_equal(array.copy_to_host(), model)


# ---- mistakes ----


def check_mistakes():
    raises(RuntimeError, rf"select_device\({COUNT}\): there is no device {COUNT}: the devices are 0 to {COUNT - 1}", cuda.select_device, COUNT)
    raises(IndexError, f"there is no device {COUNT + 6}", lambda: cuda.gpus[COUNT + 6])
    raises(IndexError, "there is no device", lambda: cuda.gpus[-COUNT - 1])
    raises(TypeError, "the number of a device must be an integer, not '1'", lambda: cuda.gpus["1"])
    raises(TypeError, "the number of a device must be an integer, not None", cuda.select_device, None)
    raises(TypeError, "a stream must be", cuda.device_array(3).copy_to_host, None, "stream")
    raises(ValueError, "between two devices", cuda.gpus[0].get_primary_context().enable_peer_access, 0)
    raises(ValueError, "flags", cuda.gpus[0].get_primary_context().enable_peer_access, 1, 4)
    raises(kjit.NoDeviceError, f"device {name_of(COUNT)} does not exist", kjit.zeros, 3, "f32", name_of(COUNT))
    raises(kjit.NoDeviceError, "there is no device", kjit.device, f"{KIND}:x")
    raises(RuntimeError, "not in the `with` block of a device", kjit.device(name_of(0)).__exit__)

    def nest(depth):
        with cuda.gpus[1]:
            return nest(depth - 1) if depth else None

    raises(RuntimeError, "nested", nest, 100)
    assert cuda.gpus.current.id == 0
    if KIND == "cpu":
        import subprocess

        for given in ("0", "x", "65", "-2"):
            done = subprocess.run([sys.executable, "-c", "import kjit; kjit.devices()"], capture_output=True, text=True, env={**os.environ, "KJIT_CPU_DEVICES": given})
            assert f"KJIT_CPU_DEVICES={given}: expected a number from 1 to 64" in done.stderr, done.stderr


for check in (check_choice, check_required_context, check_threads, check_arrays, check_own_words, check_foreign, check_copies, check_copies_of_objects, check_streams, check_launches, check_vectorized, check_peers, check_mistakes):
    check()
for _ in range(20):
    check_random_programs()
if len(sys.argv) > 1:
    page = open(os.path.join(sys.argv[1], "docs/howto/many-gpus.md"), encoding="utf-8").read()
    program, names = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {"__name__": "many_gpus"}
    linecache.cache["<many-gpus.md>"] = (len(program), None, program.splitlines(keepends=True), "<many-gpus.md>")
    exec(compile(program, "<many-gpus.md>", "exec"), names)
    np.testing.assert_array_equal(names["halves"], 0.5 * names["numbers"])
    assert [part.device for part in names["parts"]] == [name_of(i) for i in range(COUNT)]
gc.collect()
print(f"several_devices.py: {COUNT} devices of the kind {KIND}")

"""Chains of element-wise operations and their reductions on large arrays: kjit.numpy beside CuPy, PyTorch (eager and compiled), JAX's jit,
NumPy and numexpr, in one run.

    python3 test/bench/fused_expressions.py                     # the GPU, 2^24 elements of float32
    python3 test/bench/fused_expressions.py --device cpu        # kjit, NumPy, numexpr
    python3 test/bench/fused_expressions.py --only softplus,sum

Each row has a program: the milliseconds of a call for each library, and of the memory's limit the share that kjit reaches. The limit is the
time in which the memory is read once for each operand and written once for each result; --bandwidth is in bytes a second, by default what
a copy of the device's memory by kjit reaches in the same run. Results are compared with NumPy's on few elements. Libraries that are not
installed are left out."""

import argparse
import importlib.util
import time

import numpy as np


def axpy(xp, x, y, z):
    return 2.5 * x + y


def polynomial(xp, x, y, z):
    return ((0.5 * x + 1.5) * x - 2.0) * x + 0.25


def distance(xp, x, y, z):
    return xp.sqrt(x * x + y * y + z * z)


def softplus(xp, x, y, z):
    return xp.log1p(xp.exp(-abs(x))) + xp.maximum(x, y)


def choice(xp, x, y, z):
    return xp.where(x > y, x - y, z * 0.5)


def black_scholes(xp, x, y, z):
    s, k, t = x + 1.0, y + 1.0, z + 0.5
    d = (xp.log(s / k) + 0.06 * t) / (0.3 * xp.sqrt(t))
    return s / (1.0 + xp.exp(-1.702 * d)) - k * xp.exp(-0.02 * t) / (1.0 + xp.exp(-1.702 * (d - 0.3 * xp.sqrt(t))))


def rotation(xp, x, y, z):
    c, s = xp.cos(z), xp.sin(z)
    return c * x - s * y


def total(xp, x, y, z):
    return xp.sum(x * y + z)


def mean_square(xp, x, y, z):
    return xp.mean((x - y) * (x - y))


def largest(xp, x, y, z):
    return xp.max(abs(x - y) * z)


def count(xp, x, y, z):
    return xp.sum((x * x + y * y < 1.0))


def sigmoid_gradient(xp, x, y, z):
    p = 1.0 / (1.0 + xp.exp(-(x * 1.5 - 0.25)))
    return (p - y) * z


# The program, the number of the operands x, y, z that it reads, and whether it writes an array.
PROGRAMS = {
    "axpy": (axpy, 2, 1), "polynomial": (polynomial, 1, 1), "distance": (distance, 3, 1), "softplus": (softplus, 2, 1),
    "choice": (choice, 3, 1), "black_scholes": (black_scholes, 3, 1), "rotation": (rotation, 3, 1), "sum": (total, 3, 0),
    "mean_square": (mean_square, 2, 0), "largest": (largest, 3, 0), "count": (count, 2, 0), "sigmoid_gradient": (sigmoid_gradient, 3, 1),
}  # fmt: skip


class Kjit:
    def __init__(self, device):
        import kjit
        import kjit.numpy as knp

        self.kjit, self.xp, self.device = kjit, knp, device

    def array(self, host):
        return self.xp.asarray(host, device=self.device, copy=True)

    def call(self, program):
        def called(*operands):
            made = program(self.xp, *operands)
            self.xp.compute(made)
            return made

        return called

    def wait(self):
        self.kjit.synchronize(self.device)

    def host(self, made):
        self.compiled()
        return made.to_host()

    def compiled(self):
        from kjit.numpy import _fusing

        _fusing.wait()


class Numpy:
    def __init__(self, device):
        if device != "cpu":
            raise ImportError("runs on the CPU")
        self.xp = np

    def array(self, host):
        return host.copy()

    def call(self, program):
        return lambda *operands: program(self.xp, *operands)

    def wait(self):
        pass

    def host(self, made):
        return np.asarray(made)


class Cupy(Numpy):
    def __init__(self, device):
        if device == "cpu":
            raise ImportError("runs on a GPU")
        import cupy

        self.xp = cupy

    def array(self, host):
        return self.xp.asarray(host)

    def wait(self):
        self.xp.cuda.runtime.deviceSynchronize()

    def host(self, made):
        return self.xp.asnumpy(made)


class Torch:
    def __init__(self, device, compiles=False):
        import torch

        self.torch, self.compiles = torch, compiles
        self.device = "cpu" if device == "cpu" else "cuda"
        self.xp = _TorchNames(torch)

    def array(self, host):
        return self.torch.asarray(host.copy(), device=self.device)

    def call(self, program):
        def called(*operands):
            return program(self.xp, *operands)

        return self.torch.compile(called) if self.compiles else called

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def host(self, made):
        return made.cpu().numpy()


class _TorchNames:
    """torch, with NumPy's names for the functions that have other names in torch."""

    def __init__(self, torch):
        self.torch = torch

    def __getattr__(self, name):
        return getattr(self.torch, name)


class TorchCompiled(Torch):
    def __init__(self, device):
        super().__init__(device, compiles=True)


class Jax:
    def __init__(self, device):
        import jax
        import jax.numpy

        self.jax, self.xp = jax, jax.numpy
        self.place = jax.devices("cpu" if device == "cpu" else "gpu")[0]
        self.made = None

    def array(self, host):
        return self.jax.device_put(host, self.place)

    def call(self, program):
        compiled = self.jax.jit(lambda *operands: program(self.xp, *operands))

        def called(*operands):
            self.made = compiled(*operands)
            return self.made

        return called

    def wait(self):
        if self.made is not None:
            self.made.block_until_ready()

    def host(self, made):
        return np.asarray(made)


LIBRARIES = {"kjit": Kjit, "numpy": Numpy, "cupy": Cupy, "torch": Torch, "compiled": TorchCompiled, "jax": Jax}


def seconds(library, called, operands, repeats):
    """Returns the minimum time of a call, from several series of calls."""
    for _ in range(5):
        called(*operands)
    library.wait()
    if hasattr(library, "compiled"):
        library.compiled()
    best = float("inf")
    for _ in range(repeats):
        library.wait()
        start = time.perf_counter()
        for _ in range(20):
            called(*operands)
        library.wait()
        best = min(best, (time.perf_counter() - start) / 20)
    return best


def check(library, program, hosts):
    few = [host[:1000] for host in hosts]
    expected = np.asarray(program(np, *few))
    called = library.call(program)
    operands = [library.array(host) for host in few]
    for _ in range(4):  # the last operand is computed by the fused kernel
        made = np.asarray(library.host(called(*operands)))
        assert np.allclose(made, expected, rtol=1e-4, atol=1e-4), (type(library).__name__, program.__name__, made, expected)


def bandwidth_of_copy(library, host, repeats):
    """Returns the bytes per second of a copy."""
    x, y = library.array(host), library.array(host)
    return 2 * host.nbytes / seconds(library, lambda a, b: a.copy_from(b), (x, y), repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--log2", type=int, default=24, help="logarithm of the number of elements")
    parser.add_argument("--only", help="names of programs, with commas")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--bandwidth", type=float, help="bytes a second")
    options = parser.parse_args()
    generator = np.random.default_rng(1)
    hosts = [(generator.random(2**options.log2) * 2 - 0.5).astype("f4") for _ in range(3)]
    hosts = [np.maximum(host, -0.4) for host in hosts]
    libraries = {}
    for name in options.libraries.split(","):
        try:
            libraries[name] = LIBRARIES[name](options.device)
        except (ImportError, RuntimeError) as error:
            print(f"# without {name}: {error}")
    rate = options.bandwidth or bandwidth_of_copy(libraries["kjit"], hosts[0], options.repeats)
    print(f"# 2^{options.log2} elements of float32 on {options.device}; the memory's limit: {rate / 1e9:.0f} GB/s")
    has_numexpr = options.device == "cpu" and importlib.util.find_spec("numexpr")
    names = [*libraries, *(["numexpr"] if has_numexpr else [])]
    print(f"{'ms a call':18}" + "".join(f"{name:>10}" for name in names) + f"{'share':>8}")
    for name in options.only.split(",") if options.only else PROGRAMS:
        program, reads, writes = PROGRAMS[name]
        times = {}
        for word, library in libraries.items():
            check(library, program, hosts)
            operands = [library.array(host) for host in hosts]
            times[word] = seconds(library, library.call(program), operands, options.repeats)
        if has_numexpr:
            times["numexpr"] = numexpr_seconds(name, hosts, options.repeats)
        limit = (reads + writes) * hosts[0].nbytes / rate
        row = "".join(f"{times[word] * 1e3:10.3f}" if times[word] else f"{'':10}" for word in names)
        print(f"{name:18}{row}{limit / times['kjit']:8.2f}", flush=True)


NUMEXPR = {
    "axpy": "2.5 * x + y",
    "polynomial": "((0.5 * x + 1.5) * x - 2.0) * x + 0.25",
    "distance": "sqrt(x * x + y * y + z * z)",
    "choice": "where(x > y, x - y, z * 0.5)",
    "rotation": "cos(z) * x - sin(z) * y",
    "sum": "sum(x * y + z)",
}


def numexpr_seconds(name, hosts, repeats):
    import numexpr

    if name not in NUMEXPR:
        return None
    x, y, z = hosts
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        numexpr.evaluate(NUMEXPR[name], {"x": x, "y": y, "z": z})
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""pair_gradients.py: measures the sum of Gaussians over pairs and its derivatives with kjit.pairs and
kjit.pairs_gradient, in one run with PyTorch, JAX, Warp and KeOps if they are installed. Times are medians in ms. Python
must find kjit, torch, jax, warp and pykeops. The results of all libraries are compared. PyTorch and JAX compute the
matrix of all pairs; PyTorch computes it in parts of as many rows as fit in memory."""
import argparse
import functools
import statistics
import sys
import time

import numpy as np
from report import print_table, processor_name, say

MATRIX_ELEMENTS = 2**27  # size of a part in PyTorch and JAX
NAMES = ("value", "gradient by x", "gradient by x and y")


def kjit_calls(x, y, c, device):
    import kjit

    def gauss(u, w, i, j):
        d = 0.0
        for k in range(len(u)):
            d += (u[k] - w[k]) ** 2
        return kjit.exp(-d)

    narrow = x.dtype == np.float32

    def gauss_f32(u, w, i, j):
        d = kjit.float32(0)
        for k in range(len(u)):
            d += (u[k] - w[k]) ** 2
        return kjit.exp(-d)

    func = gauss_f32 if narrow else gauss
    u, w, g = (kjit.array(a, device=device) for a in (x, y, c))
    wait = kjit.device(device).synchronize
    return wait, {
        "value": lambda: [kjit.pairs(func, u, w)],
        "gradient by x": lambda: kjit.pairs_gradient(func, u, w, cotangents=g, by=0),
        "gradient by x and y": lambda: kjit.pairs_gradient(func, u, w, cotangents=g),
    }, lambda a: a.to_host()


def torch_calls(x, y, c, device):
    import torch

    name = "cuda" if device.startswith("cuda") else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    u, w, g = (torch.from_numpy(a).to(name) for a in (x, y, c))
    rows = max(1, MATRIX_ELEMENTS // (len(y) * (x.shape[1] if x.shape[1] < 10 else 1)))

    def part(a, b):
        if a.shape[1] < 10:
            return torch.exp(-((a[:, None] - b[None]) ** 2).sum(-1)).sum(1)
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
        return torch.exp(-squares).sum(1)

    def value():
        with torch.no_grad():
            return [torch.cat([part(a, w) for a in u.split(rows)])]

    def gradient(by_y):
        b = w.detach().requires_grad_(by_y)
        pieces = []
        for a, weight in zip(u.split(rows), g.split(rows)):
            a = a.detach().requires_grad_()
            part(a, b).backward(weight)
            pieces.append(a.grad)
        return [torch.cat(pieces), *([b.grad] if by_y else [])]

    wait = torch.cuda.synchronize if name == "cuda" else lambda: None
    return wait, dict(zip(NAMES, (value, lambda: gradient(False), lambda: gradient(True)))), lambda a: a.cpu().numpy()


def jax_calls(x, y, c, device):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    rows = max(1, MATRIX_ELEMENTS // (len(y) * x.shape[1]))
    count = -(-len(x) // rows)
    count = next(parts for parts in range(count, len(x) + 1) if len(x) % parts == 0)  # of equal sizes
    u, w, g = (jnp.asarray(a) for a in (x, y, c))

    def total(a, b):
        part = jax.checkpoint(lambda p: jnp.exp(-((p[:, None] - b[None]) ** 2).sum(-1)).sum(1))
        return jax.lax.map(part, a.reshape(count, -1, a.shape[1])).reshape(-1)

    value, by_x = jax.jit(total), jax.jit(lambda a, b, g: jax.vjp(lambda a: total(a, b), a)[1](g))
    by_both = jax.jit(lambda a, b, g: jax.vjp(total, a, b)[1](g))
    calls = {
        "value": lambda: jax.block_until_ready([value(u, w)]),
        "gradient by x": lambda: jax.block_until_ready(by_x(u, w, g)),
        "gradient by x and y": lambda: jax.block_until_ready(by_both(u, w, g)),
    }
    return lambda: None, calls, np.asarray


def keops_calls(x, y, c, device):
    import torch
    from pykeops.torch import LazyTensor

    name = "cuda" if device.startswith("cuda") else "cpu"
    u, w, g = (torch.from_numpy(a).to(name) for a in (x, y, c))

    def total(a, b):
        return (-((LazyTensor(a[:, None]) - LazyTensor(b[None])) ** 2).sum(-1)).exp().sum(1)[:, 0]

    def gradient(by_y):
        a, b = u.detach().requires_grad_(), w.detach().requires_grad_(by_y)
        return list(torch.autograd.grad(total(a, b), [a, *([b] if by_y else [])], g))

    wait = torch.cuda.synchronize if name == "cuda" else lambda: None
    return wait, dict(zip(NAMES, (lambda: [total(u, w)], lambda: gradient(False), lambda: gradient(True)))), lambda a: a.detach().cpu().numpy()


def warp_calls(x, y, c, device):
    import warp as wp

    name = "cuda" if device.startswith("cuda") else "cpu"
    number = wp.float32 if x.dtype == np.float32 else wp.float64
    row = wp.types.vector(length=x.shape[1], dtype=number)

    @wp.kernel
    def total(x: wp.array(dtype=row), y: wp.array(dtype=row), result: wp.array(dtype=number)):
        i = wp.tid()
        value = number(0.0)
        for j in range(y.shape[0]):
            value += wp.exp(-wp.length_sq(x[i] - y[j]))
        result[i] = value

    def gradient(by_y):
        (u, w), tape = moved[by_y], wp.Tape()
        for a in (u, w)[: 1 + by_y]:
            a.grad.zero_()
        with tape:
            wp.launch(total, dim=len(x), inputs=[u, w], outputs=[result], device=name)
        tape.backward(grads={result: weights})
        return [u.grad, *([w.grad] if by_y else [])]

    def value():
        wp.launch(total, dim=len(x), inputs=[places, points], outputs=[result], device=name)
        return [result]

    def pair(*by):
        return tuple(wp.array(a, dtype=row, device=name, requires_grad=is_by) for a, is_by in zip((x, y), by, strict=True))

    (places, points), moved = pair(False, False), (pair(True, False), pair(True, True))
    result, weights = wp.zeros(len(x), dtype=number, device=name, requires_grad=True), wp.array(c, dtype=number, device=name)
    calls = dict(zip(NAMES, (value, lambda: gradient(False), lambda: gradient(True)), strict=True))
    return lambda: wp.synchronize_device(name), calls, lambda a: a.numpy()


PEERS = {"kjit": kjit_calls, "PyTorch": torch_calls, "JAX": jax_calls, "Warp": warp_calls, "KeOps": keops_calls}


def measure(peer, make, repetitions, expected, tolerance):
    """Returns the medians by name in ms, and by name the time of the first call, which compiles. None means that the
    peer is missing or has other results than kjit. make: returns (a function that waits, the calls by name, a function
    that converts a NumPy array)."""
    try:
        wait, calls, host = make()
    except ImportError as error:
        say(f"no {peer}: {error}")
        return None
    found = {}
    for name, call in calls.items():
        times = []
        for _ in range(repetitions + 2):
            wait()
            start = time.perf_counter()
            results = call()
            wait()
            times.append(1e3 * (time.perf_counter() - start))
        found[name] = statistics.median(times[2:]), times[0]
        for got, want in zip(map(host, results), expected.setdefault(name, [host(r) for r in results]), strict=True):
            error = np.abs(got.reshape(want.shape) - want).max() / np.abs(want).max()
            if not error < tolerance:
                say(f"{peer}, {name}: the results differ by {error:.1e} from those of kjit, so its times do not count")
                return None
    return found


def add_rows(rows, times, peers, names, label):
    """Adds a row for each call to a table: the time of each peer, and kjit's time relative to its time for the
    value."""
    for name in names:
        cells = [f"{name}, {label}"]
        for peer in peers:
            cells.append(f"{times[peer][name][0]:.2f} ({times[peer][name][1]:.0f})" if times[peer] and name in times[peer] else "")
        rows.append([*cells, f"{times['kjit'][name][0] / times['kjit']['value'][0]:.2f}"])


def gaussian_rows(arguments, peers):
    """Returns the table's rows for sums of Gaussians."""
    rows, rng = [], np.random.default_rng()
    for width in arguments.widths:
        for kind in ("f4", "f8"):
            x, y, c = (rng.random(shape) for shape in ((arguments.rows, width), (arguments.points, width), arguments.rows))
            x, y, c = ((a / scale).astype(kind) for a, scale in ((x, width**0.5), (y, width**0.5), (c, 1)))
            expected, tolerance = {}, 1e-2 if kind == "f4" else 1e-9
            makers = {peer: functools.partial(PEERS[peer], x, y, c, arguments.device) for peer in peers if peer in PEERS}
            times = {peer: measure(peer, make, arguments.repetitions, expected, tolerance) for peer, make in makers.items()}
            add_rows(rows, {peer: times.get(peer) for peer in peers}, peers, NAMES, f"D = {width}, f{8 * int(kind[1])}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--points", type=int, default=65536)
    parser.add_argument("--widths", type=int, nargs="*", default=[3, 10, 100])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=list(PEERS)[1:])
    arguments = parser.parse_args()
    peers = ["kjit", *arguments.peers]
    rows = gaussian_rows(arguments, peers)
    title = f"{arguments.rows} rows with {arguments.points} points: ms, and in brackets those of the first call"
    machine = arguments.device if arguments.device.startswith("cuda") else processor_name()
    print_table(title, machine, ["", *peers, "kjit / its value"], rows)
    sys.stdout.flush()


if __name__ == "__main__":
    main()

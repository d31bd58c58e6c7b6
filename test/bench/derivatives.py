#!/usr/bin/env python3
"""derivatives.py: measures values and derivatives of four programs in one run, with kjit and, if they are installed,
with PyTorch, JAX and Warp. The programs are sums of Gaussians over pairs, a periodic diffusion step and its adjoint,
Black-Scholes prices and greeks, and the energy of bodies and its forces. Times are medians in ms. The results of all
libraries are compared. PyTorch and JAX compute the matrix of all pairs. Warp runs its own kernels and their adjoints on
a tape."""
import argparse
import functools
import math
import sys

import numpy as np
from pair_gradients import add_rows, gaussian_rows, measure
from report import print_table, processor_name

RATE, SOFTENING = 0.2, 0.05


def on_torch(arrays, device):
    import torch

    name = "cuda" if device.startswith("cuda") else "cpu"
    return torch, [torch.from_numpy(a).to(name) for a in arrays], torch.cuda.synchronize if name == "cuda" else lambda: None


def torch_calls(function, arrays, device, by, cotangent):
    """Returns the calls of a program in PyTorch: its value, and its derivatives with respect to the first `by` arrays.
    cotangent: the derivative with respect to the result, or None for a sum."""
    torch, given, wait = on_torch(arrays, device)
    weights = None if cotangent is None else on_torch([cotangent], device)[1][0]

    def value():
        with torch.no_grad():
            return [function(torch, *given)]

    def gradient():
        moved = [a.detach().requires_grad_(i < by) for i, a in enumerate(given)]
        result = function(torch, *moved)
        return list(torch.autograd.grad(result, moved[:by], torch.ones_like(result) if weights is None else weights))

    return wait, {"value": value, "gradient": gradient}, lambda a: a.cpu().numpy()


def jax_calls(function, arrays, device, by, cotangent):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    if device.startswith("cuda") and jax.default_backend() != "gpu":
        raise ImportError("this JAX has no GPU")
    given = [jnp.asarray(a) for a in arrays]
    weights = None if cotangent is None else jnp.asarray(cotangent)
    value = jax.jit(functools.partial(function, jnp))

    @jax.jit
    def back(*given):
        result, pull = jax.vjp(lambda *moved: function(jnp, *moved, *given[by:]), *given[:by])
        return pull(jnp.ones_like(result) if weights is None else weights)

    calls = {"value": lambda: jax.block_until_ready([value(*given)]), "gradient": lambda: jax.block_until_ready(list(back(*given)))}
    return lambda: None, calls, np.asarray


def warp_calls(kernel, arrays, device, by, cotangent, size):
    """Returns the calls for a Warp kernel that takes `arrays`, stores to a last array, and runs `size` threads."""
    import warp as wp

    name = "cuda" if device.startswith("cuda") else "cpu"
    given = [wp.array(a, device=name, requires_grad=i < by) for i, a in enumerate(arrays)]
    out = wp.zeros(size, dtype=given[0].dtype, device=name, requires_grad=True)
    weights = wp.array(np.ones(size, arrays[0].dtype) if cotangent is None else cotangent, device=name)

    def value():
        wp.launch(kernel, dim=size, inputs=given, outputs=[out], device=name)
        return [out]

    def gradient():
        tape = wp.Tape()
        with tape:
            value()
        tape.backward(grads={out: weights})
        found = [wp.clone(a.grad) for a in given[:by]]
        tape.zero()
        return found

    return lambda: wp.synchronize_device(name), {"value": value, "gradient": gradient}, lambda a: a.numpy()


# ---- a periodic diffusion step ----


def diffusion_of_kjit(u, weights, device):
    import kjit

    @kjit.jit
    def step(u, after):
        rows, columns = u.shape
        for i, j in kjit.grid_range(u.shape):
            around = u[(i + 1) % rows, j] + u[(i + rows - 1) % rows, j] + u[i, (j + 1) % columns] + u[i, (j + columns - 1) % columns]
            after[i, j] = u[i, j] + RATE * (around - 4 * u[i, j])

    given, after, d_after = (kjit.array(a, device=device) for a in (u, np.zeros_like(u), weights))
    back = kjit.adjoint(step)

    def value():
        step(given, after)
        return [after]

    def gradient():
        d_given = kjit.zeros(u.shape, u.dtype, device=device)
        back(given, after, d_given, d_after)
        return [d_given]

    return kjit.device(device).synchronize, {"value": value, "gradient": gradient}, lambda a: a.to_host()


def diffusion(m, u):
    return u + RATE * (m.roll(u, 1, 0) + m.roll(u, -1, 0) + m.roll(u, 1, 1) + m.roll(u, -1, 1) - 4 * u)


def diffusion_of_warp(u, weights, device):
    import warp as wp

    @wp.kernel
    def step(u: wp.array2d(dtype=wp.float32), after: wp.array2d(dtype=wp.float32)):
        i, j = wp.tid()
        n = u.shape[0]
        around = u[(i + 1) % n, j] + u[(i + n - 1) % n, j] + u[i, (j + 1) % n] + u[i, (j + n - 1) % n]
        after[i, j] = u[i, j] + wp.float32(RATE) * (around - 4.0 * u[i, j])

    return warp_calls(step, [u], device, 1, weights, u.shape)


def diffusion_makers(arguments, rng):
    u, weights = (rng.random((arguments.field, arguments.field), np.float32) for _ in range(2))
    given = [u], arguments.device, 1, weights
    return {
        "kjit": functools.partial(diffusion_of_kjit, u, weights, arguments.device), "PyTorch": functools.partial(torch_calls, diffusion, *given),
        "JAX": functools.partial(jax_calls, diffusion, *given), "Warp": functools.partial(diffusion_of_warp, u, weights, arguments.device),
    }  # fmt: skip


# ---- Black-Scholes ----


def prices_of_kjit(options, device):
    import kjit

    def call(price, years, rate, volatility, strike):
        deviation = volatility * kjit.sqrt(years)
        d = (kjit.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / deviation
        return price * kjit.normcdf(d) - strike * kjit.exp(-rate * years) * kjit.normcdf(d - deviation)

    given, func = [kjit.array(a, device=device) for a in options], kjit.func(call)
    both = kjit.value_and_grad(func, 0, 1, 2, 3)
    calls = {"value": lambda: [kjit.map(func, *given)], "gradient": lambda: list(kjit.map(both, *given))[1:]}
    return kjit.device(device).synchronize, calls, lambda a: a.to_host()


def prices(m, price, years, rate, volatility, strike):
    def normal(d):
        if hasattr(m, "special"):
            return 0.5 * m.special.erfc(d * -math.sqrt(0.5))
        from jax.scipy.special import erfc

        return 0.5 * erfc(d * -math.sqrt(0.5))

    deviation = volatility * m.sqrt(years)
    d = (m.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / deviation
    return price * normal(d) - strike * m.exp(-rate * years) * normal(d - deviation)


def prices_of_warp(options, device):
    import warp as wp

    @wp.func
    def normal(d: wp.float32):
        return 0.5 * wp.erfc(d * wp.float32(-math.sqrt(0.5)))

    column = wp.array(dtype=wp.float32)

    @wp.kernel
    def call(price: column, years: column, rate: column, volatility: column, strike: column, result: column):
        i = wp.tid()
        deviation = volatility[i] * wp.sqrt(years[i])
        d = (wp.log(price[i] / strike[i]) + (rate[i] + 0.5 * volatility[i] * volatility[i]) * years[i]) / deviation
        result[i] = price[i] * normal(d) - strike[i] * wp.exp(-rate[i] * years[i]) * normal(d - deviation)

    return warp_calls(call, options, device, 4, None, len(options[0]))


def price_makers(arguments, rng):
    bounds = ((5, 30), (0.25, 5), (0.01, 0.05), (0.1, 0.5), (5, 30))
    options = [rng.uniform(*b, arguments.options).astype(np.float32) for b in bounds]
    given = options, arguments.device, 4, None
    return {
        "kjit": functools.partial(prices_of_kjit, options, arguments.device), "PyTorch": functools.partial(torch_calls, prices, *given),
        "JAX": functools.partial(jax_calls, prices, *given), "Warp": functools.partial(prices_of_warp, options, arguments.device),
    }  # fmt: skip


# ---- bodies ----


def bodies_of_kjit(place, mass, device):
    import kjit

    def energy(a, b, m, i, j):
        x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
        return -m / kjit.sqrt(x * x + y * y + z * z + kjit.float32(SOFTENING))

    x, m = (kjit.array(a, device=device) for a in (place, mass))
    weights = kjit.array(np.ones(len(mass), np.float32), device=device)
    calls = {"value": lambda: [kjit.pairs(energy, x, (x, m))], "gradient": lambda: kjit.pairs_gradient(energy, x, (x, m), cotangents=weights, by=0)}
    return kjit.device(device).synchronize, calls, lambda a: a.to_host()


def bodies(m, place, others, mass):
    d = place[:, None] - others[None]
    return (-mass / m.sqrt((d * d).sum(-1) + SOFTENING)).sum(1)


def bodies_of_warp(place, mass, device):
    import warp as wp

    @wp.kernel
    def energy(place: wp.array2d(dtype=wp.float32), others: wp.array2d(dtype=wp.float32), mass: wp.array(dtype=wp.float32), result: wp.array(dtype=wp.float32)):
        i = wp.tid()
        total = wp.float32(0.0)
        for j in range(mass.shape[0]):
            x = place[i, 0] - others[j, 0]
            y = place[i, 1] - others[j, 1]
            z = place[i, 2] - others[j, 2]
            total += -mass[j] / wp.sqrt(x * x + y * y + z * z + wp.float32(SOFTENING))
        result[i] = total

    return warp_calls(energy, [place, place, mass], device, 1, None, len(mass))


def body_makers(arguments, rng):
    place, mass = rng.standard_normal((arguments.bodies, 3)).astype(np.float32), rng.uniform(0.5, 2, arguments.bodies).astype(np.float32)
    given = [place, place, mass], arguments.device, 1, None
    return {
        "kjit": functools.partial(bodies_of_kjit, place, mass, arguments.device), "PyTorch": functools.partial(torch_calls, bodies, *given),
        "JAX": functools.partial(jax_calls, bodies, *given), "Warp": functools.partial(bodies_of_warp, place, mass, arguments.device),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--points", type=int, default=65536)
    parser.add_argument("--widths", type=int, nargs="*", default=[3, 10, 32, 100])
    parser.add_argument("--field", type=int, default=4096, help="extent of the diffusing field")
    parser.add_argument("--options", type=int, default=10_000_000)
    parser.add_argument("--bodies", type=int, default=8192)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=["PyTorch", "JAX", "Warp", "KeOps"])
    arguments = parser.parse_args()
    peers, rng = ["kjit", *arguments.peers], np.random.default_rng()
    rows = gaussian_rows(arguments, peers)
    labels = {
        f"diffusion, {arguments.field}^2, f32": diffusion_makers, f"{arguments.options} options, f32": price_makers, f"{arguments.bodies} bodies, f32": body_makers,
    }  # fmt: skip
    for label, make in labels.items():
        makers, expected = make(arguments, rng), {}
        times = {peer: measure(peer, makers[peer], arguments.repetitions, expected, 1e-2) for peer in peers if peer in makers}
        add_rows(rows, {peer: times.get(peer) for peer in peers}, peers, ("value", "gradient"), label)
    title = f"Gaussians: {arguments.rows} rows with {arguments.points} points. Times in ms, and in brackets those of the first call"
    machine = arguments.device if arguments.device.startswith("cuda") else processor_name()
    print_table(title, machine, ["", *peers, "kjit / its value"], rows)
    sys.stdout.flush()


if __name__ == "__main__":
    main()

# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.torch.function: torch.autograd.gradcheck and gradgradcheck of functions of elements and of a kernel, values and
derivatives compared with torch's own functions, and rejected functions. Skipped without PyTorch."""

import sys

try:
    import torch
except ImportError:
    print("PyTorch is not installed: nothing was checked")
    sys.exit(0)

import kjit
import kjit.torch

generator = torch.Generator().manual_seed(int(torch.seed() % 2**31))


def draw(*shape, dtype=torch.float64):
    return (torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.25).to(dtype).requires_grad_()


@kjit.func
def wave(x, y, n):
    return kjit.sin(x) * y * y + kjit.sqrt(y) * n


@kjit.func
def polar(r, angle):
    return r * kjit.cos(angle), r * kjit.sin(angle)


def check_elements():
    made = kjit.torch.function(wave)
    x, y = draw(3, 1), draw(4)
    assert torch.autograd.gradcheck(lambda x, y: made(x, y, 2.5), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: made(x, y, 2.5), (x, y))
    assert torch.autograd.gradgradcheck(lambda x: made(x, y.detach(), 2.5), (x,))
    value = made(x, y, 2.5)
    assert value.shape == (3, 4)
    assert torch.allclose(value, torch.sin(x) * y * y + torch.sqrt(y) * 2.5, rtol=1e-14)
    pair = kjit.torch.function(polar)
    r, angle = draw(5), draw(2, 5)
    assert torch.autograd.gradcheck(pair, (r, angle))
    assert torch.autograd.gradgradcheck(pair, (r, angle))
    assert torch.autograd.gradcheck(lambda r, a: pair(r, a)[1], (r, angle))
    softplus = kjit.torch.function(lambda x: kjit.log1p(kjit.exp(x)))
    assert torch.allclose(softplus(r), torch.nn.functional.softplus(r)) and torch.autograd.gradgradcheck(softplus, (r,))
    own = kjit.torch.function(lambda x: x * x * x)
    assert torch.autograd.gradcheck(own, (draw(4, 5).T,))
    assert torch.autograd.gradcheck(own, (draw(()),))
    assert own(draw(0)).shape == (0,)


def settled(x, y):
    """Divisions in a loop that may end early, and branches that depend on the operands. kjit compiles it, and torch runs it
    with one element of each tensor."""
    s = x
    for k in range(1, 7):
        s = s - (s * s - y) / (s + k) + x / (y + k)
        if s * y > 4:
            break
    return s / y if x > y else y / (1 + s * s) - s


@kjit.func
def squared_distance(x, y):
    d = x - y
    return 1 - 2 / (1 + d * d)


def check_double_backward():
    """Second derivatives of loops and divisions, with gradgradcheck and compared with torch's own."""
    made = kjit.torch.function(settled)
    # The distance from the condition x > y and from the break condition is larger than a difference step.
    x = torch.tensor([0.3, 1.9, 0.6, 2.5], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.9, 0.4, 1.6, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(made, (x, y)) and torch.autograd.gradgradcheck(made, (x, y))
    for given, like in ((made, settled), (kjit.torch.function(squared_distance), lambda x, y: 1 - 2 / (1 + (x - y) ** 2))):
        for a, b in zip(x.detach(), y.detach()):
            found, expected = (torch.autograd.functional.hessian(f, (a, b)) for f in (lambda p, q, f=given: f(p, q), like))
            for got, want in zip((h for row in found for h in row), (h for row in expected for h in row)):
                assert torch.allclose(got, want, rtol=1e-10, atol=1e-12), (found, expected)


def check_types():
    made = kjit.torch.function(wave)
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 1e-2)):
        x, y, count = draw(8, dtype=dtype), draw(8, dtype=dtype), torch.arange(8)
        made(x, y, count).sum().backward()
        assert x.grad.dtype == dtype and torch.allclose(x.grad, torch.cos(x) * y * y, rtol=tolerance, atol=tolerance)


def check_hessian():
    made = kjit.torch.function(lambda x: kjit.exp(x) * x)
    x = draw(6)
    found = torch.autograd.functional.hessian(lambda x: (made(x) * made(x)).sum(), x.detach())
    expected = torch.autograd.functional.hessian(lambda x: ((torch.exp(x) * x) ** 2).sum(), x.detach())
    assert torch.allclose(found, expected, rtol=1e-12)


def check_transforms():
    made, like = kjit.torch.function(lambda x, y: kjit.exp(x) * x * y), lambda x, y: torch.exp(x) * x * y
    x, y = draw(6).detach(), draw(6).detach()
    for transform in (
        lambda f: torch.func.vmap(torch.func.grad(f), (0, None))(x, y[0]),
        lambda f: torch.func.jacrev(f, (0, 1)),
        lambda f: torch.func.vmap(torch.func.jacrev(torch.func.grad(f), 1))(x, y),
        lambda f: torch.func.vmap(torch.func.grad(torch.func.grad(f, 1), 1))(x, y),
    ):
        found, expected = transform(made), transform(like)
        if callable(found):
            found, expected = torch.stack(found(x, y)), torch.stack(expected(x, y))
        assert torch.allclose(found, expected, rtol=1e-12)


@kjit.jit
def smooth(r, x, weight):
    for i in kjit.grid_range(len(r)):
        r[i] = weight[0] * x[i] * x[i + 1]


@kjit.jit
def smooth_derivative(r, x, weight, dr, dx, dweight):
    for i in kjit.grid_range(len(r)):
        kjit.atomic_add(dx[i], dr[i] * weight[0] * x[i + 1])
        kjit.atomic_add(dx[i + 1], dr[i] * weight[0] * x[i])
        kjit.atomic_add(dweight[0], dr[i] * x[i] * x[i + 1])


@kjit.jit
def by_threads(r, x):
    r[kjit.threadIdx.x] = x[kjit.threadIdx.x]


@kjit.jit
def diffuse(r, x, weight, count):
    for j, i in kjit.grid_range(x.shape):
        rows, columns = x.shape
        around = x[(j + 1) % rows, i] + x[(j - 1) % rows, i] + x[j, (i + 1) % columns] + x[j, (i - 1) % columns]
        r[j, i] = x[j, i] + weight[0] * (around - count * x[j, i]) * x[j, i]


def check_default_derivative():
    """kjit.adjoint's result, in the types and shapes of the first backward pass."""
    made = kjit.torch.function(diffuse, outputs={"r": "x"})
    x, weight = draw(3, 4), draw(1)
    assert torch.autograd.gradcheck(lambda x, w: made(x, w, 4.0), (x, weight))
    assert torch.autograd.gradcheck(lambda x: made(x, weight.detach(), 4), (x,))
    twice = made(made(x, weight, 4.0), weight, 4.0)
    around = sum(torch.roll(x, *at) for at in ((1, 0), (-1, 0), (1, 1), (-1, 1)))
    once = x + weight * (around - 4 * x) * x
    around = sum(torch.roll(once, *at) for at in ((1, 0), (-1, 0), (1, 1), (-1, 1)))
    expected = once + weight * (around - 4 * once) * once
    for got, want in zip(torch.autograd.grad(twice.sum(), (x, weight)), torch.autograd.grad(expected.sum(), (x, weight))):
        assert torch.allclose(got, want, rtol=1e-12)
    shorter = kjit.torch.function(smooth, outputs={"r": lambda x, weight: torch.empty(len(x) - 1, dtype=x.dtype)})
    assert torch.autograd.gradcheck(shorter, (draw(9), draw(1)))


def check_kernel():
    def shorter(x, weight):
        return torch.empty(len(x) - 1, dtype=x.dtype)

    made = kjit.torch.function(smooth, outputs={"r": shorter}, derivative=smooth_derivative)
    x, weight = draw(9), draw(1)
    assert torch.autograd.gradcheck(made, (x, weight))
    made(x, weight.detach()).sum().backward()
    assert weight.grad is None and x.grad is not None


def fails(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


def check_refusals():
    made = kjit.torch.function(wave)
    x, y = draw(3), draw(3)
    fails(lambda: made(1.0, 2.0, 3.0), TypeError, "at least one tensor")
    fails(lambda: kjit.torch.function(smooth), TypeError, "outputs must be a dictionary")
    fails(lambda: kjit.torch.function(smooth, outputs={"s": "x"}), TypeError, "no parameter `s`")
    fails(lambda: kjit.torch.function(wave, outputs={"r": "x"}), TypeError, "are for kernels")
    changed = x * 1
    value = made(changed, y, 1.0)
    changed.add_(1)
    fails(value.sum().backward, RuntimeError, "modified by an inplace operation")
    threads = kjit.torch.function(by_threads, outputs={"r": "x"}, launch=(1, 3))
    (by_x,) = torch.autograd.grad((threads(x) * y).sum(), x)
    assert torch.equal(by_x, y), (by_x, y)
    (first,) = torch.autograd.grad(made(x, y, 1.0).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    fails(second.sum().backward, RuntimeError, "no third derivatives")
    (first,) = torch.autograd.grad(threads(x).square().sum(), x, create_graph=True)
    fails(first.sum().backward, RuntimeError, "differentiate twice")


check_elements()
check_double_backward()
check_default_derivative()
check_types()
check_hessian()
check_transforms()
check_kernel()
check_refusals()

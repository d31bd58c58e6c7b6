"""Optimal transport between two clouds of points. The Sinkhorn iterations are reductions over pairs of
points, which do not store the matrix of all distances. The gradient moves one cloud onto the other."""

import kjit
import numpy as np


def cost(x, y, potential, i, j, scale):
    """Returns the exponent for a pair: the potential of y minus half the squared distance, divided by the temperature."""
    d = 0.0
    for k in range(len(x)):
        d += (x[k] - y[k]) ** 2
    return (potential - 0.5 * d) / scale


def find_potentials(x, y, scale, iterations):
    """Returns the potentials of both clouds, whose points have equal weights."""
    f, g = np.zeros(len(x)), np.zeros(len(y))
    for _ in range(iterations):
        f = -scale * (kjit.pairs(cost, x, (y, g), "logaddexp", arguments=(scale,)) - np.log(len(y)))
        g = -scale * (kjit.pairs(cost, y, (x, f), "logaddexp", arguments=(scale,)) - np.log(len(x)))
    return f, g


def find_transport(x, y, scale, iterations=60):
    """Returns (the cost of the transport, its derivative by the positions x)."""
    f, g = find_potentials(x, y, scale, iterations)
    result = kjit.pairs(cost, x, (y, g), "logaddexp", arguments=(scale,))
    # At the optimum the derivative by x is the same as with constant potentials.
    (slope,) = kjit.pairs_gradient(
        cost, x, (y, g), "logaddexp", cotangents=np.full(len(x), -scale / len(x)), by=0, result=result, arguments=(scale,)
    )
    return f.mean() + g.mean(), slope


random = np.random.default_rng()
m, n, scale = 150, 170, 0.05
x, y = random.random((m, 2)), random.normal((1.5, 0.5), 0.1, (n, 2))

# Computes the same results with the matrix of all pairs.
total, slope = find_transport(x, y, scale)
f, g = find_potentials(x, y, scale, 60)
plan = np.exp((f[:, None] + g - 0.5 * ((x[:, None] - y) ** 2).sum(2)) / scale) / (m * n)
np.testing.assert_allclose(plan.sum(0), 1 / n, rtol=1e-9)
expected = (plan[..., None] * (x[:, None] - y)).sum(1) / (m * plan.sum(1, keepdims=True))
np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)

costs = [total]
for _ in range(4):
    x = x - 0.7 * m * slope
    total, slope = find_transport(x, y, scale, 30)
    costs.append(total)
assert all(b < a for a, b in zip(costs, costs[1:])), costs
np.testing.assert_allclose(x.mean(0), y.mean(0), atol=0.05)
print(f"{m} points move to {n}: the cost of the transport falls from {costs[0]:.3f} to {costs[-1]:.3f}")

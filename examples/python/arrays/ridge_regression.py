"""Ridge regression for many weights of the penalty, and the corner of the L-curve: the weight at
which the curve of residual norm and solution norm has the largest curvature."""
import numpy


def run(xp):
    generator = numpy.random.default_rng(6)
    host = numpy.vander(numpy.linspace(0, 1, 60), 10)
    a, b = xp.asarray(host), xp.asarray(host @ generator.normal(size=10) + 0.01 * generator.normal(size=60))
    u, s, vt = xp.linalg.svd(a, full_matrices=False)
    weights = 10.0 ** xp.linspace(-8, 1, 46)
    filters = s / (s**2 + weights[:, None] ** 2)  # a row for each weight
    solutions = (filters * (u.T @ b)) @ vt
    residuals = xp.sqrt(xp.sum((solutions @ a.T - b) ** 2, axis=1))
    sizes = xp.sqrt(xp.sum(solutions**2, axis=1))
    x, y = xp.log(residuals), xp.log(sizes)
    dx, dy = x[2:] - x[:-2], y[2:] - y[:-2]
    ddx, ddy = x[2:] - 2 * x[1:-1] + x[:-2], y[2:] - 2 * y[1:-1] + y[:-2]
    bend = (dx * ddy - dy * ddx) / (dx * dx + dy * dy) ** 1.5
    return residuals, sizes, weights[1:-1][xp.argmax(bend)]


if __name__ == "__main__":
    from both import compare

    compare(run, "ridge regression: the corner is at the weight {:.2e}")

"""A mixture of Gaussians is fitted to points in a plane by maximum likelihood: reductions over pairs of points and components give
the value and the gradient, and SciPy's L-BFGS steps along it. The matrix of all pairs is never stored.
    python3 gaussian_mixture.py [POINTS [PICTURE.png]]"""

import struct
import sys
import zlib

import kjit
import numpy as np


def log_density(x, center, shape, weight, i, j):
    """Returns the logarithm of weight times density at x, minus a constant. shape is a factor of the
    inverse covariance: [exp(s0), 0; s1, exp(s2)]."""
    a, b = x[0] - center[0], x[1] - center[1]
    u, v = kjit.exp(shape[0]) * a, shape[1] * a + kjit.exp(shape[2]) * b
    return weight + shape[0] + shape[2] - 0.5 * (u * u + v * v)


def unpack(parameters):
    rows = parameters.reshape(-1, 6)
    return rows[:, :2].copy(), rows[:, 2:5].copy(), rows[:, 5].copy()


def find_loss(parameters, x):
    """Returns (minus the mean log-likelihood, its derivatives by the parameters)."""
    centers, shapes, weights = y = unpack(parameters)
    result = kjit.pairs(log_density, x, y, "logaddexp")
    slope = np.full(len(x), -1 / len(x))
    by = kjit.pairs_gradient(log_density, x, y, "logaddexp", cotangents=slope, result=result, by=(1, 2, 3))
    top = weights.max()
    shares = np.exp(weights - top)
    value = np.log(2 * np.pi) + top + np.log(shares.sum()) - result.mean()
    gradient = np.column_stack([by[0], by[1], by[2] + shares / shares.sum()])
    return value, gradient.ravel()


def find_loss_in_numpy(parameters, x):
    """Computes the same results with the matrix of all pairs, and derivatives by complex steps."""

    def value(parameters):
        centers, shapes, weights = unpack(parameters)
        d = x[:, None] - centers
        u, v = np.exp(shapes[:, 0]) * d[..., 0], shapes[:, 1] * d[..., 0] + np.exp(shapes[:, 2]) * d[..., 1]
        terms = np.exp(weights + shapes[:, 0] + shapes[:, 2] - 0.5 * (u * u + v * v))
        return np.log(2 * np.pi) + np.log(np.exp(weights).sum()) - np.log(terms.sum(1)).mean()

    steps = [value(parameters + 1e-30j * one).imag / 1e-30 for one in np.eye(len(parameters))]
    return value(parameters), np.array(steps)


def draw_points(random, count):
    """Returns points of three components, and the centers of the components."""
    centers, angles = np.array([[-2, -1], [2, -1.5], [0.5, 2]]), np.array([0.3, -0.8, 1.2])
    scales, shares = np.array([[1.0, 0.4], [0.5, 0.8], [1.2, 0.3]]), np.array([0.5, 0.3, 0.2])
    which = random.choice(3, count, p=shares)
    turns = np.stack([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]).transpose(2, 0, 1)
    points = np.einsum("nij,nj->ni", turns[which], scales[which] * random.normal(size=(count, 2)))
    return centers[which] + points, centers


# ---- the picture ----


def plot(image, rows, columns, color):
    inside = (rows >= 0) & (rows < image.shape[0]) & (columns >= 0) & (columns < image.shape[1])
    image[rows[inside].astype(int), columns[inside].astype(int)] = color


def plot_ellipses(image, parameters, color, scale):
    centers, shapes, _ = unpack(parameters)
    turn = np.linspace(0, 2 * np.pi, 2000)
    for (a, b), (s0, s1, s2) in zip(centers, shapes):
        across = 2 * np.cos(turn) / np.exp(s0)
        up = (2 * np.sin(turn) - s1 * across) / np.exp(s2)
        plot(image, 250 - scale * (b + up), 250 + scale * (a + across), color)


def write_picture(path, x, start, end, losses):
    """Writes a picture. Left: the points, with the components (two standard deviations) at the
    start in gray and at the end in red. Right: the difference between the loss and its minimum on a
    logarithmic scale, with a line for each factor of 10."""
    image = np.full((500, 1010, 3), 255, np.uint8)
    plot(image[:, :500], 250 - 50 * x[:20000, 1], 250 + 50 * x[:20000, 0], (150, 180, 230))
    plot_ellipses(image[:, :500], start, (130, 130, 130), 50)
    plot_ellipses(image[:, :500], end, (200, 0, 0), 50)
    image[:, 500:510] = 220
    distances = np.log10(np.maximum(np.array(losses) - losses[-1], 1e-12))
    top, low = int(np.ceil(distances[0])), int(np.floor(distances[:-1].min()))
    for power in range(low, top):
        image[20 + round(460 * (top - power) / (top - low)), 510:] = 220
    along = np.linspace(0, len(losses) - 2, 20000)
    heights = 20 + 460 * (top - np.interp(along, np.arange(len(losses)), distances)) / (top - low)
    for shift in (0, 1):
        plot(image[:, 510:], heights + shift, 20 + 460 * along / (len(losses) - 2), (0, 90, 0))
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in ((b"IHDR", struct.pack(">IIBBBBB", 1010, 500, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))


# ---- the fit ----

count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
random = np.random.default_rng()
x, centers = draw_points(random, count)
start = np.column_stack([centers + random.normal(0, 0.7, (3, 2)), np.zeros((3, 4))]).ravel()

value, gradient = find_loss(start, x[:500])
expected = find_loss_in_numpy(start, x[:500])
np.testing.assert_allclose(value, expected[0], rtol=1e-12)
np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-12)

try:
    from scipy.optimize import minimize
except ImportError:
    print("the gradient of the likelihood is right; the fit needs SciPy")
    sys.exit()

losses = []


def find_next(parameters):
    value, gradient = find_loss(parameters, x)
    losses.append(value)
    return value, gradient


found = minimize(find_next, start, jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-7})
assert np.abs(found.jac).max() < 1e-4 and found.fun < value + 1e-9, found
fitted = unpack(found.x)[0]
error = np.abs(fitted - centers).max()
assert error < 12 / np.sqrt(count) + 1e-3, (fitted, centers)
if len(sys.argv) > 2:
    write_picture(sys.argv[2], x, start, found.x, losses)
print(f"{count} points: {len(losses)} gradients, the loss falls from {losses[0]:.4f} to {found.fun:.4f}, the centers are right to {error:.4f}")

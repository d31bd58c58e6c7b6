"""The edges of an image by the filters of Sobel, and the share of the pixels that are edges."""
import numpy


def run(xp, level=1.0):
    y, x = numpy.mgrid[-1:1:90j, -1:1:120j]
    image = xp.asarray((x * x + y * y < 0.5) * 1.0 + 0.3 * (abs(x - y) < 0.2))
    top, bottom, left, right = image[:-2], image[2:], image[:, :-2], image[:, 2:]
    across = right[:-2] + 2 * right[1:-1] + right[2:] - left[:-2] - 2 * left[1:-1] - left[2:]
    down = bottom[:, :-2] + 2 * bottom[:, 1:-1] + bottom[:, 2:] - top[:, :-2] - 2 * top[:, 1:-1] - top[:, 2:]
    strength = xp.sqrt(across * across + down * down)
    return strength, xp.mean(xp.where(strength > level, 1.0, 0.0))


if __name__ == "__main__":
    from both import compare

    compare(run, "edges: {:.3f} of the pixels")

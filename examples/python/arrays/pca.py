"""Principal components: the directions in which points vary most, by a singular value decomposition."""
import numpy


def run(xp):
    generator = numpy.random.default_rng(4)
    host = generator.normal(size=(300, 6)) * [5, 3, 1, 0.5, 0.2, 0.1] @ numpy.linalg.qr(generator.normal(size=(6, 6)))[0]
    x = xp.asarray(host)
    centered = x - xp.mean(x, axis=0, keepdims=True)
    _, values, directions = xp.linalg.svd(centered, full_matrices=False)
    projected = centered @ directions[:2].T  # the sign of a direction is arbitrary
    return values, abs(projected), xp.sum(values[:2] ** 2) / xp.sum(values**2)


if __name__ == "__main__":
    from both import compare

    compare(run, "PCA: two directions have {:.4f} of the variance")

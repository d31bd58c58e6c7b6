"""K-means: each point belongs to the nearest of a few centers, and each center moves to the mean of its points."""
import numpy


def run(xp, steps=8, count=4):
    generator = numpy.random.default_rng(1)
    host = numpy.concatenate([generator.normal(place, 0.4, (200, 2)) for place in ((0, 0), (3, 0), (0, 3), (3, 3))])
    points, centers = xp.asarray(host), xp.asarray(host[:: len(host) // count][:count].copy())
    for _ in range(steps):
        distances = xp.sum((points[:, None, :] - centers[None, :, :]) ** 2, axis=2)
        labels = xp.argmin(distances, axis=1)
        for k in range(count):
            centers[k] = xp.mean(points[labels == k], axis=0)
    return labels, centers, xp.sum(xp.min(distances, axis=1))


if __name__ == "__main__":
    from both import compare

    compare(run, "k-means: the squared distances add up to {:.3f}")

"""Logistic regression by gradient descent."""
import numpy


def run(xp, steps=60, rate=0.5):
    generator = numpy.random.default_rng(2)
    host = generator.normal(size=(500, 8))
    truth = generator.normal(size=8)
    x, y = xp.asarray(host), xp.asarray((host @ truth + 0.1 * generator.normal(size=500) > 0).astype("f8"))
    w = xp.zeros(8)
    for _ in range(steps):
        p = 1 / (1 + xp.exp(-(x @ w)))
        w -= rate / 500 * (x.T @ (p - y))
    p = 1 / (1 + xp.exp(-(x @ w)))
    loss = -xp.mean(y * xp.log(p) + (1 - y) * xp.log(1 - p))
    return w, loss


if __name__ == "__main__":
    from both import compare

    compare(run, "logistic regression: the loss is {:.4f}")

"""Prints a histogram of random numbers, computed by comparisons and sums."""
import numpy


def run(xp, bins=12):
    values = xp.asarray(numpy.random.default_rng(8).normal(size=20000))
    edges = xp.linspace(-3, 3, bins + 1)
    below = xp.sum(values[None, :] < edges[:, None], axis=1)
    return (below[1:] - below[:-1],)


def plot(counts):
    """Returns a line of text for each bin."""
    largest = int(max(counts))
    return "\n".join("#" * (60 * int(count) // largest) for count in counts)


if __name__ == "__main__":
    import kjit.numpy
    from both import compare

    print(plot(run(kjit.numpy)[0]))
    compare(run, "histogram: the bins have {} numbers")

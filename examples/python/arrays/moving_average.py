"""The moving average of a noisy signal, and the distance of the signal from it."""
import numpy


def run(xp, width=25):
    generator = numpy.random.default_rng(7)
    t = numpy.linspace(0, 6, 5000)
    signal = xp.asarray(numpy.sin(t) + 0.2 * generator.normal(size=t.size))
    sums = xp.concatenate((xp.zeros(1), xp.cumsum(signal)))
    average = (sums[width:] - sums[:-width]) / width
    middle = signal[width // 2 : width // 2 + average.shape[0]]
    return average, xp.sqrt(xp.mean((middle - average) ** 2))


if __name__ == "__main__":
    from both import compare

    compare(run, "moving average: the noise is {:.3f}")

"""Runs a program with kjit.numpy and with NumPy, and compares the results."""
import sys
import time

import kjit.numpy
import numpy


def on_host(x):
    return x.to_host() if hasattr(x, "to_host") else numpy.asarray(x)


def compare(run, sentence):
    """Runs run(xp), which returns a tuple of arrays and numbers, with both libraries. sentence: a
    text with {} for the last result."""
    start = time.perf_counter()
    found = [on_host(x) for x in run(kjit.numpy)]
    middle = time.perf_counter()
    expected = [on_host(x) for x in run(numpy)]
    end = time.perf_counter()
    for got, wanted in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)
    print(sentence.format(found[-1]) + f"; kjit {middle - start:.2f} s, NumPy {end - middle:.2f} s, equal results", file=sys.stdout)

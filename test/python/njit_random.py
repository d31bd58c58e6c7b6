# RUN: %kjit-python %s
"""np.random and the module random in functions of njit: Numba's numbers after the same seed, a generator for each thread, and
NumPy's and Python's own generators left alone. The sums below are those of Numba 0.61.2; `REAL=1 python3 njit_random.py` prints them."""
import os
import random
import sys
import threading
import warnings

import numpy as np

if os.environ.get("REAL"):
    from numba import njit, prange
else:
    from kjit import Error, njit, prange

    warnings.simplefilter("error")

SCALARS = """np.random.random() np.random.rand() np.random.randn() np.random.normal() np.random.normal(2) np.random.normal(2.0,3.0)
np.random.normal(scale=3.0,loc=2.0) np.random.uniform(1,4) np.random.randint(7) np.random.randint(-5,2**40) np.random.randint(3,4)
np.random.standard_gamma(0.5) np.random.gamma(3.5,2.0) np.random.gamma(1.0) np.random.beta(0.5,2.0) np.random.exponential(2.5)
np.random.standard_exponential() np.random.lognormal(0.5,0.25) np.random.pareto(2.5) np.random.weibull(1.5) np.random.vonmises(0.5,2.0)
np.random.triangular(1,2,5) np.random.binomial(10,0.3) np.random.binomial(2000,0.7) np.random.chisquare(2.5)
np.random.noncentral_chisquare(3.0,1.5) np.random.noncentral_chisquare(0.5,1.5) np.random.f(2.0,3.0) np.random.geometric(0.5)
np.random.geometric(0.1) np.random.gumbel(1.0,2.0) np.random.hypergeometric(20,10,8) np.random.laplace(1.0,2.0) np.random.logistic(1,2)
np.random.logseries(0.99) np.random.negative_binomial(5,0.4) np.random.poisson(3) np.random.poisson(5.5) np.random.poisson(50.0)
np.random.power(2.5) np.random.rayleigh(2.0) np.random.standard_cauchy() np.random.standard_t(3) np.random.wald(1.0,2.0)
np.random.zipf(2.5) np.random.choice(10) random.random() random.uniform(1,4) random.triangular(1.0,3.0) random.triangular(1,5,2)
random.gauss(1.0,2.0) random.gammavariate(2.0,3.0) random.betavariate(2.0,3.0) random.expovariate(1.5) random.lognormvariate(0.5,0.25)
random.paretovariate(2.5) random.weibullvariate(1.0,1.5) random.vonmisesvariate(0.5,2.0) random.getrandbits(20) random.getrandbits(40)
random.randrange(10) random.randrange(3,100,7) random.randrange(100,3,-7) random.randint(1,6)""".split()
ARRAYS = """np.random.random((2,3)) np.random.rand(2,3) np.random.randn(4) np.random.normal(1.0,2.0,5) np.random.normal(1.0,2.0,size=(2,2))
np.random.randint(0,10,size=5) np.random.randint(low=0,high=10,size=(2,2)) np.random.choice(10,(2,2)) np.random.choice(a,4)
np.random.choice(a,4,replace=False) np.random.permutation(8) np.random.permutation(a) np.random.permutation(a.reshape(4,3))
np.random.multinomial(20,p) np.random.multinomial(20,p,(2,2)) np.random.dirichlet(p,2) np.random.standard_exponential(3)
np.random.poisson(3.0,4) np.random.random(())""".split()


def function(text, **names):
    space = {"np": np, "random": random, "prange": prange, **names}
    exec(text, space)
    return space["f"]


def of_scalars(call, seed):
    """Returns the sum of 200 numbers from a compiled loop, in hexadecimal, and one more number."""
    f = njit(nopython=True)(function(f"""def f(n, a):
    np.random.seed({seed})
    random.seed({seed})
    for i in range(n):
        a[i] = {call}
    return {call}
"""))
    a = np.zeros(200)
    last = f(200, a)
    return f"{a.sum().hex()} {last!r}"


def of_arrays(call, seed):
    f = njit(nopython=True)(function(f"""def f(a, p):
    np.random.seed({seed})
    return {call}
"""))
    r = f(np.arange(12.0), np.array([0.2, 0.3, 0.5]))
    return f"{r.dtype} {r.tolist()}"


@njit(nopython=True)
def seeded(n):
    np.random.seed(n)


@njit(nopython=True)
def draw():
    return np.random.random()


@njit(nopython=True)
def shuffled(a, rounds):
    np.random.seed(3)
    for _ in range(rounds):
        np.random.shuffle(a)
    return a


@njit(nopython=True, parallel=True)
def points(n):
    inside = 0
    for _ in prange(n):
        x = np.random.random()
        y = np.random.uniform(0.0, 1.0)
        if x * x + y * y < 1:
            inside += 1
    return inside


@njit(nopython=True)
def empty_range(n):
    return np.random.randint(n, n)


def main():
    found = [f"{call} {seed}: {of_scalars(call, seed)}" for call in SCALARS for seed in (0, 4321)]
    found += [f"{call} {seed}: {of_arrays(call, seed)}" for call in ARRAYS for seed in (0, 4321)]
    if os.environ.get("REAL"):
        print("\n".join(found))
        return
    with open(os.path.join(os.path.dirname(__file__), "Inputs", "njit_random.txt")) as file:
        wanted = file.read().splitlines()
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]]

    # each thread has a generator, which is neither NumPy's nor Python's own
    seeded(7)
    first = draw(), draw()
    assert first == (0.07630828937395717, 0.7799187922401146), first
    others = []
    np.random.seed(7)
    random.seed(7)
    own = np.random.get_state()[1].tolist(), random.getstate()
    thread = threading.Thread(target=lambda: others.extend((draw(), seeded(7), draw())))
    seeded(7)
    thread.start()
    thread.join()
    assert draw() == first[0] and others[0] not in first and others[2] == first[0]
    assert own == (np.random.get_state()[1].tolist(), random.getstate())
    share = points(200000) / 200000
    assert abs(share - np.pi / 4) < 0.01, share
    if hasattr(os, "fork"):
        seeded(7)
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, repr(draw()).encode())
            os._exit(0)
        os.wait()
        assert float(os.read(read, 100)) != first[0] and draw() == first[0]  # the child draws its own numbers

    assert sorted(shuffled(np.arange(9), 4).tolist()) == list(range(9))
    rows = np.arange(12).reshape(4, 3)
    f = njit(nopython=True)(function("def f(a):\n    np.random.seed(7)\n    np.random.shuffle(a)\n    return a\n"))
    assert f(rows).tolist() == [[6, 7, 8], [3, 4, 5], [0, 1, 2], [9, 10, 11]]
    # compiled as a whole; the rows equal Numba's
    g = njit(nopython=True)(function(
        "def f(a):\n    np.random.seed(7)\n    random.seed(7)\n    np.random.shuffle(a)\n    return random.shuffle(a)\n"))
    blocks = np.arange(12).reshape(3, 2, 2)
    assert g(blocks) is None and blocks.tolist() == [[[4, 5], [6, 7]], [[0, 1], [2, 3]], [[8, 9], [10, 11]]]
    rows = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    g(rows)
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5], [9, 10, 11], [6, 7, 8]]
    for arguments, kind in ((3, ValueError),):
        try:
            empty_range(arguments)
        except kind as error:
            assert "empty range for randrange()" in str(error)
        else:
            raise AssertionError("not refused")
    try:
        njit(function("def f():\n    return np.random.normal(1.0, 2.0, 3, 4)\n"))()
    except (TypeError, Error) as error:
        assert "normal(1.0, 2.0, 3, 4): functions made by njit do not accept these arguments" in str(error), error
    else:
        raise AssertionError("not refused")
    check_without_descriptors()


def check_without_descriptors():
    """A new thread has its own generator, although the process cannot open a file."""
    import resource

    draw = njit(function("def f():\n    return np.random.random()\n"))
    numbers, held, limits = [draw()], [], resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        while len(held) < 64:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    threads = [threading.Thread(target=lambda: numbers.append(draw())) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    for one in held:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(set(numbers)) == 4, numbers


if __name__ == "__main__":
    sys.exit(main())

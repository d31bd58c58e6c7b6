"""Random numbers with the methods of NumPy's Generator, computed on any device."""

import math
import operator
import threading
from collections.abc import MutableSequence
from operator import index

from .. import _arrays, _kjit, exp, f64, i64, u64
from .._algorithms import map as _map
from .._folds import reduce, scan, search_sorted
from .._orders import argsort
from . import _engine
from ..dtypes import SCALARS
from .._random import (
    random_exponential,
    random_integers,
    random_normal,
    random_permutation,
    random_shuffle,
    random_uniform,
)
from ._laws import LAWS, check, fill, parameter_of, shape_of, told

__all__ = ["Generator", "default_rng"]

_MASK = 2**64 - 1


def _mixed(x):
    """Returns the output function of splitmix64 for x. The function maps 64-bit integers one to
    one."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def _element_of(dtype, name, allowed):
    """Returns kjit's name of an element type. NumPy's names are accepted as well. Raises TypeError
    unless the kind of the type is in `allowed`."""
    if isinstance(dtype, str) or dtype in (int, float, bool):
        import numpy

        try:
            dtype = numpy.dtype(dtype)
        except TypeError:
            pass  # a name of kjit's, such as "f32"
    element = _arrays.element_of(dtype)
    if element[0] not in allowed and element != "bool":
        raise TypeError(f"{name}: dtype is {SCALARS[element].name}, but the numbers are {'floats' if allowed == 'f' else 'integers'}")
    if element == "bool" and "b" not in allowed:
        raise TypeError(f"{name}: dtype is bool, but the numbers are floats")
    return element


def _check_all(holds, tell):
    """Raises ValueError(tell()) unless all elements of a bool array are true."""
    if not reduce(holds, "and").item():
        raise ValueError(tell())


def _check_range(differences, tell):
    """Raises NumPy's errors for bounds of `uniform` unless all the differences high - low are finite and not negative."""
    if not all(map(math.isfinite, differences)):
        raise OverflowError("uniform: the difference of high and low is not finite")
    if any(d < 0 for d in differences):
        raise ValueError(f"uniform: {tell()}")


def _disorder(endpoint):
    return f"integers: an element of low is {'more than' if endpoint else 'at least'} that of high"


class Generator:
    """A random number generator on a device, with the methods of `numpy.random.Generator`. Made by
    `default_rng`.

    The numbers are those of Philox4x32-10 with the seed as its key. Uniform numbers and integers
    have the same bits on every device. Other numbers can differ in the last bits, because the
    devices' logarithms and square roots differ.

    `random`, `uniform`, `normal`, `standard_normal`, `exponential`, `standard_exponential`, and
    `integers` with scalar bounds continue one stream of 32-bit words: two calls for 5 float64
    numbers each give the numbers of one call for 10. Every other number is drawn from a Philox
    sequence of its own.

    Results are kjit arrays on the generator's device; size=None gives an array without dimensions.
    Parameters that are NumPy arrays or lists are copied to the device. A parameter outside of its
    distribution's range raises ValueError. Threads may share a generator.
    """

    def __init__(self, seed=None, device=None):
        """seed: see `default_rng`."""
        if isinstance(seed, int) and 0 <= seed <= _MASK:
            self._seed = seed
        else:
            import numpy

            self._seed = int(numpy.random.SeedSequence(seed).generate_state(1, numpy.uint64)[0])
        self._device = _engine.device_name(device)
        # The next word of the stream, the next sequence, and the number of keys given out by
        # _take_key().
        self._word, self._sequence, self._orders = 0, 1, 0
        self._lock = threading.Lock()

    @property
    def seed(self):
        """The key of Philox, a 64-bit integer."""
        return self._seed

    @property
    def device(self):
        """The name of the device that computes the numbers, such as "cpu" or "cuda:0"."""
        return self._device

    def __getstate__(self):
        return self._seed, self._device, self._word, self._sequence, self._orders

    def __setstate__(self, state):
        self._seed, self._device, self._word, self._sequence, self._orders = state
        self._lock = threading.Lock()

    def __repr__(self):
        return f"<kjit.numpy.random.{type(self).__name__}, seed {self._seed}, on {self._device}>"

    # ---- state ----

    def _take_words(self, count, width):
        """Reserves `count` numbers of `width` words each in the stream, and returns the index of
        the first number."""
        with self._lock:
            first = -(-self._word // width)
            self._word = (first + count) * width
        return first

    def _take_sequences(self, count):
        with self._lock:
            first = self._sequence
            self._sequence += count
        return first

    def _take_key(self):
        """Returns a new seed, for a permutation or for a child generator."""
        with self._lock:
            self._orders += 1
            return _mixed(self._seed + 0x9E3779B97F4A7C15 * self._orders & _MASK)

    def _new(self, shape, element):
        return _arrays.empty(shape, element, self._device)

    def _target(self, name, size, element, out):
        """Returns the array that a call fills: out, or a new array. Raises ValueError if out has
        another type, device or shape."""
        if out is None:
            return self._new(shape_of(name, size, ()), element)
        if not isinstance(out, _kjit.Array) or out.device != self._device or _arrays.element_of(out.dtype) != element:
            raise ValueError(f"{name}: out must be an array of {SCALARS[element].name} on {self._device}")
        if size is not None and shape_of(name, size, ()) != tuple(out.shape):
            raise ValueError(f"{name}: size is {size}, but out has the shape {tuple(out.shape)}")
        return out

    def _stream(self, name, function, size, dtype, out, *numbers):
        """Returns numbers from the stream of words. function: such as `random_uniform`; numbers:
        its arguments."""
        element = _element_of(dtype, name, "f")
        made = self._target(name, size, element, out)
        first = self._take_words(made.size, 2 if element == "f64" else 1)
        return function(made, self._seed, *numbers, offset=first)

    def _draw(self, name, parameters, size, element=None, out=None):
        """Returns numbers that are drawn from one Philox sequence each."""
        law = LAWS[name]
        named = {word: parameter_of(name, word, x, self._device) for word, x in zip(law.parameters, parameters)}
        check(name, named)
        values = tuple(named.values())
        made = out if out is not None else self._new(shape_of(name, size, values), element or law.element)
        fill(name, made, self._seed, self._take_sequences(made.size), values)
        return made

    # ---- integers and permutations ----

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        """Returns integers from low up to but not including high, or including high with
        endpoint=True. If high is None, the range is from 0 to low."""
        element = _element_of(dtype, "integers", "iub")
        low, high = (0, low) if high is None else (low, high)
        low, high = (parameter_of("integers", word, x, self._device) for word, x in (("low", low), ("high", high)))
        if isinstance(low, _kjit.Array) or isinstance(high, _kjit.Array):
            return self._integers_between(low, high, size, element, endpoint)
        low, high = _integer("low", low), _integer("high", high) - (not endpoint)
        least, most = _range_of(element)
        if low < least or high > most:
            word, number = ("low", low) if low < least else ("high", high + (not endpoint))
            raise ValueError(f"integers: `{word}`, {number}, is out of bounds for {SCALARS[element].name}")
        if low > high:
            raise ValueError(
                f"integers: low, {low}, is {'more than' if endpoint else 'at least'} high, {high + (not endpoint)}"
            )
        made = self._new(shape_of("integers", size, ()), "u8" if element == "bool" else element)
        first = self._take_words(made.size, 2 if element.endswith("64") else 1)
        random_integers(made, self._seed, low, high, offset=first)
        return _map(lambda x: x != 0, made) if element == "bool" else made

    def _integers_between(self, low, high, size, element, endpoint):
        if element == "bool":
            raise TypeError("integers: bounds of dtype bool must be numbers, not arrays")
        least, most = _range_of(element)
        last = 0 if endpoint else 1
        for word, bound, floor, ceiling in (("low", low, least, most), ("high", high, least + last, most + last)):
            found = told(*(bounds := _extremes(bound)))
            if bounds[0] < floor or bounds[1] > ceiling:
                raise ValueError(f"integers: `{word}`, {found}, is out of bounds for {SCALARS[element].name}")
        if element == "u64":
            top = high - last if isinstance(high, int) else _map(lambda x, d: u64(x) - u64(d), high, last)
            _check_all(_map(lambda a, b: u64(a) <= u64(b), low, top), lambda: _disorder(endpoint))
        else:
            top = high - last if isinstance(high, int) else _map(lambda x, d: i64(x) - d, high, last)
            _check_all(_map(lambda a, b: i64(a) <= i64(b), low, top), lambda: _disorder(endpoint))
        # The count is computed modulo 2**64, so a count of 0 represents all 64-bit integers.
        low, high = (_wrapped(x) for x in (low, high))
        width = _map(lambda a, b: b - a, low, high)
        count = _map(lambda w, d: w + 1 - d, width, last)
        shape = shape_of("integers", size, (low, high))
        made = self._new(shape, element)
        fill("integers", made, self._seed, self._take_sequences(made.size), (low, count))
        return made

    def permutation(self, x, axis=0):
        """Returns the integers below x in random order, or a copy of the array x with its elements
        along an axis in random order."""
        if hasattr(x, "__index__") and not getattr(x, "shape", ()):
            return random_permutation(self._new((index(x),), "i64"), self._take_key())
        x = self._array(x)
        if axis % max(x.ndim, 1) == 0:
            return random_shuffle(x, self._take_key())
        from . import take

        return take(x, self.permutation(x.shape[axis]), axis=axis)

    def shuffle(self, x, axis=0):
        """Shuffles x, an array or a list, in place along an axis. For a list, axis must be 0."""
        if isinstance(x, _kjit.Array):
            x.copy_from(self.permutation(x, axis))
        elif isinstance(x, MutableSequence):
            if axis != 0:
                raise NotImplementedError(f"shuffle: a {type(x).__name__} has no axis {axis}, only arrays have")
            for i, item in enumerate([x[i] for i in self.permutation(len(x)).tolist()]):
                x[i] = item
        elif hasattr(x, "__setitem__") and getattr(x, "ndim", 0):
            x[...] = x.take(self.permutation(x.shape[axis]).tolist(), axis)
        else:
            raise TypeError(f"shuffle: x must be an array or a list, not {type(x).__name__}")

    def permuted(self, x, axis=None, out=None):
        """Returns a copy of x in which each slice along an axis is shuffled independently.
        axis=None shuffles all elements."""
        x = self._array(x)
        if axis is None:
            made = random_shuffle(x.reshape((x.size,)), self._take_key()).reshape(tuple(x.shape))
        else:
            from . import take_along_axis

            made = take_along_axis(x, argsort(self._draw("bits", (), x.shape), axis=axis), axis=axis)
        if out is None:
            return made
        out.copy_from(made)
        return out

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        """Returns random elements of a along an axis, or random integers below a.

        replace: whether an element may be chosen more than once. p: the probabilities; None means
        equal probabilities. shuffle has no effect, because the order is always random. Raises
        ValueError if too few elements can be chosen.
        """
        a = index(a) if hasattr(a, "__index__") and not getattr(a, "shape", ()) else self._array(a)
        count = a if isinstance(a, int) else a.shape[axis]
        shape = shape_of("choice", size, ())
        number = _product(shape)
        if count <= 0 and number:
            raise ValueError("choice: `a` is empty, so there is nothing to choose from")
        if not replace and number > count:
            raise ValueError(f"choice: {number} elements without replacement are more than the {count} that a has")
        if p is not None:
            p = self._probabilities(p, count)
        if not number:
            places = _engine.new((0,), "i64", self._device)
        elif p is None:
            places = self.integers(0, count, size=number) if replace else self.permutation(count)[:number]
        else:
            places = self._weighted(p, number, replace)
        if isinstance(a, int):
            return places.reshape(shape)
        from . import take

        rows = take(a, places, axis=axis)
        axis %= a.ndim
        return rows.reshape((*a.shape[:axis], *shape, *a.shape[axis + 1 :]))

    def _probabilities(self, p, count):
        p = parameter_of("choice", "p", p, self._device)
        if getattr(p, "shape", None) != (count,):
            raise ValueError(f"choice: p must have one probability for each of the {count} elements of a")
        if not (reduce(p, "min").item() >= 0 and abs(reduce(p, "add").item() - 1) < 1e-8):
            raise ValueError("choice: the probabilities must not be negative and must have the sum 1")
        return p

    def _weighted(self, p, number, replace):
        if replace:
            totals = scan(p, "add")
            last = totals[len(totals) - 1 :].item()
            return _map(lambda i: i + 0, search_sorted(totals, self.uniform(0, last, number), right=True), dtype="i64")
        # Sorting exponential numbers divided by their probabilities gives the order of successive
        # draws without replacement.
        if reduce(_map(lambda q: q > 0, p), "count_nonzero").item() < number:
            raise ValueError("choice: p has fewer positive probabilities than the requested number of elements")
        keys = _map(lambda e, q: e / q, self.standard_exponential(len(p)), p)
        return _map(lambda i: i + 0, argsort(keys)[:number], dtype="i64")

    def _array(self, x):
        if isinstance(x, _kjit.Array):
            if x.device != self._device:
                raise ValueError(f"the array is on {x.device}, but the generator is on {self._device}; move the array with x.to_device({self._device!r})")
            return x
        return _arrays.array(x, device=self._device)

    def bytes(self, length):
        """Returns `length` random bytes as a bytes object."""
        return bytes(self.integers(0, 256, index(length), "uint8").to_host())

    def spawn(self, n_children):
        """Returns a list of new generators. They are independent of this generator and of each
        other."""
        return [Generator(self._take_key(), self._device) for _ in range(n_children)]

    # ---- floats from the stream ----

    def random(self, size=None, dtype="float64", out=None):
        """Returns uniform numbers in [0, 1)."""
        return self._stream("random", random_uniform, size, dtype, out)

    def standard_normal(self, size=None, dtype="float64", out=None):
        """Returns normally distributed numbers with mean 0 and standard deviation 1."""
        return self._stream("standard_normal", random_normal, size, dtype, out)

    def standard_exponential(self, size=None, dtype="float64", method="zig", out=None):
        """Returns exponentially distributed numbers with mean 1. method has no effect."""
        return self._stream("standard_exponential", random_exponential, size, dtype, out)

    def _stream_or_draw(self, name, function, parameters, size):
        """Draws from the stream if all parameters are numbers, else from one sequence for each
        number."""
        if not all(isinstance(x, (int, float)) for x in parameters):
            return self._draw(name, parameters, size)
        check(name, dict(zip(LAWS[name].parameters, parameters)))
        return self._stream(name, function, size, "f64", None, *parameters)

    def uniform(self, low=0.0, high=1.0, size=None):
        """Returns uniform numbers in [low, high). Raises ValueError if an element of low is above that of high, and
        OverflowError if their difference is not finite."""
        bounds = [parameter_of("uniform", word, x, self._device) for word, x in (("low", low), ("high", high))]
        if any(isinstance(x, _kjit.Array) for x in bounds):
            shape_of("uniform", size, bounds)
            _check_range(_extremes(_map(lambda a, b: f64(b) - f64(a), *bounds)), lambda: "an element of low is above that of high")
        else:
            low, high = bounds
            _check_range([float(high) - float(low)], lambda: f"low, {low}, is above high, {high}")
        return self._stream_or_draw("uniform", random_uniform, tuple(bounds), size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Returns normally distributed numbers with mean loc and standard deviation scale."""
        return self._stream_or_draw("normal", random_normal, (loc, scale), size)

    def exponential(self, scale=1.0, size=None):
        """Returns exponentially distributed numbers with mean scale."""
        return self._stream_or_draw("exponential", random_exponential, (scale,), size)

    # ---- other continuous distributions ----

    def standard_gamma(self, shape, size=None, dtype="float64", out=None):
        """Returns numbers of the gamma distribution with scale 1."""
        element = _element_of(dtype, "standard_gamma", "f")
        made = None if out is None else self._target("standard_gamma", size, element, out)
        return self._draw("gamma", (shape, 1.0), size, element, made)

    def gamma(self, shape, scale=1.0, size=None):
        """Returns numbers of the gamma distribution."""
        return self._draw("gamma", (shape, scale), size)

    def beta(self, a, b, size=None):
        """Returns numbers of the beta distribution."""
        return self._draw("beta", (a, b), size)

    def chisquare(self, df, size=None):
        """Returns numbers of the chi-square distribution with df degrees of freedom."""
        return self._draw("chisquare", (df,), size)

    def noncentral_chisquare(self, df, nonc, size=None):
        """Returns numbers of the noncentral chi-square distribution."""
        return self._draw("noncentral_chisquare", (df, nonc), size)

    def f(self, dfnum, dfden, size=None):
        """Returns numbers of the F distribution."""
        return self._draw("f", (dfnum, dfden), size)

    def noncentral_f(self, dfnum, dfden, nonc, size=None):
        """Returns numbers of the noncentral F distribution."""
        return self._draw("noncentral_f", (dfnum, dfden, nonc), size)

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        """Returns numbers of the Gumbel distribution."""
        return self._draw("gumbel", (loc, scale), size)

    def laplace(self, loc=0.0, scale=1.0, size=None):
        """Returns numbers of the Laplace distribution."""
        return self._draw("laplace", (loc, scale), size)

    def logistic(self, loc=0.0, scale=1.0, size=None):
        """Returns numbers of the logistic distribution."""
        return self._draw("logistic", (loc, scale), size)

    def lognormal(self, mean=0.0, sigma=1.0, size=None):
        """Returns numbers whose logarithms are normally distributed."""
        return self._draw("lognormal", (mean, sigma), size)

    def pareto(self, a, size=None):
        """Returns numbers of the Lomax distribution, the Pareto distribution minus 1."""
        return self._draw("pareto", (a,), size)

    def power(self, a, size=None):
        """Returns numbers in [0, 1] with the density a x^(a - 1)."""
        return self._draw("power", (a,), size)

    def rayleigh(self, scale=1.0, size=None):
        """Returns numbers of the Rayleigh distribution."""
        return self._draw("rayleigh", (scale,), size)

    def standard_cauchy(self, size=None):
        """Returns numbers of the Cauchy distribution."""
        return self._draw("standard_cauchy", (), size)

    def standard_t(self, df, size=None):
        """Returns numbers of Student's t distribution with df degrees of freedom."""
        return self._draw("standard_t", (df,), size)

    def triangular(self, left, mode, right, size=None):
        """Returns numbers of the triangular distribution. Raises ValueError unless left <= mode <=
        right and left < right."""
        if all(isinstance(x, (int, float)) for x in (left, mode, right)) and not (
            left <= mode <= right and left < right
        ):
            raise ValueError(
                f"triangular: left, mode and right must ascend and must not all be equal, not {left}, {mode} and {right}"
            )
        edges = [parameter_of("triangular", word, x, self._device) for word, x in zip(("left", "mode", "right"), (left, mode, right))]
        if any(isinstance(x, _kjit.Array) for x in edges):
            ascend = _map(lambda a, b, c: (f64(a) <= f64(b)) & (f64(b) <= f64(c)) & (f64(a) < f64(c)), *edges)
            _check_all(ascend, lambda: "triangular: left, mode and right of each element must ascend and must not all be equal")
        return self._draw("triangular", edges, size)

    def vonmises(self, mu, kappa, size=None):
        """Returns angles of the von Mises distribution, from -pi to pi."""
        return self._draw("vonmises", (mu, kappa), size)

    def wald(self, mean, scale, size=None):
        """Returns numbers of the inverse Gaussian distribution."""
        return self._draw("wald", (mean, scale), size)

    def weibull(self, a, size=None):
        """Returns numbers of the Weibull distribution with scale 1."""
        return self._draw("weibull", (a,), size)

    # ---- other discrete distributions ----

    def binomial(self, n, p, size=None):
        """Returns the number of successes in n trials with probability p."""
        return self._draw("binomial", (n, p), size)

    def geometric(self, p, size=None):
        """Returns the number of trials up to the first success."""
        return self._draw("geometric", (p,), size)

    def hypergeometric(self, ngood, nbad, nsample, size=None):
        """Returns the number of good elements in samples of nsample elements, drawn without
        replacement. Raises ValueError if nsample is more than ngood + nbad."""
        if all(isinstance(x, int) for x in (ngood, nbad, nsample)) and nsample > ngood + nbad:
            raise ValueError(f"hypergeometric: nsample, {nsample}, is more than ngood + nbad, {ngood + nbad}")
        names = ("ngood", "nbad", "nsample")
        counts = [parameter_of("hypergeometric", word, x, self._device) for word, x in zip(names, (ngood, nbad, nsample))]
        if any(isinstance(x, _kjit.Array) for x in counts):
            enough = _map(lambda good, bad, sample: i64(sample) <= i64(good) + i64(bad), *counts)
            _check_all(enough, lambda: "hypergeometric: an element of nsample is more than that of ngood + nbad")
        return self._draw("hypergeometric", counts, size)

    def logseries(self, p, size=None):
        """Returns numbers of the logarithmic series distribution."""
        return self._draw("logseries", (p,), size)

    def negative_binomial(self, n, p, size=None):
        """Returns the number of failures before n successes."""
        return self._draw("negative_binomial", (n, p), size)

    def poisson(self, lam=1.0, size=None):
        """Returns numbers of the Poisson distribution with mean lam."""
        return self._draw("poisson", (lam,), size)

    def zipf(self, a, size=None):
        """Returns numbers of the zeta distribution with exponent a."""
        return self._draw("zipf", (a,), size)

    # ---- multivariate distributions ----

    def multivariate_hypergeometric(self, colors, nsample, size=None, method="marginals"):
        """Returns the number of elements of each color in samples of nsample elements, drawn without
        replacement. colors: the number of elements of each color. method has no effect. Raises
        ValueError if nsample is more than the sum of colors."""
        colors = [operator.index(count) for count in (colors.tolist() if hasattr(colors, "tolist") else colors)]
        left, rest = sum(colors), operator.index(nsample)
        if min(colors, default=0) < 0 or not 0 <= rest <= left:
            raise ValueError(f"multivariate_hypergeometric: nsample, {nsample}, must be at most {left}, the sum of the colors {colors}")
        shape = shape_of("multivariate_hypergeometric", size, ())
        made = self._new((*shape, len(colors)), "i64")
        needed = _arrays.full(shape, rest, "i64", self._device)
        for i, count in enumerate(colors):
            left -= count
            drawn = self.hypergeometric(count, left, needed) if left else needed
            made[..., i] = drawn
            needed = needed - drawn
        return made

    def dirichlet(self, alpha, size=None):
        """Returns vectors of the Dirichlet distribution along the last axis. alpha: an array with
        one dimension."""
        alpha = parameter_of("dirichlet", "alpha", alpha, self._device)
        if len(getattr(alpha, "shape", ())) != 1 or not alpha.size:
            raise ValueError("dirichlet: alpha must be an array of one axis with at least one element")
        shape = shape_of("dirichlet", size, ())
        logs = self._draw("log_gamma", (alpha,), (*shape, alpha.size))
        most = reduce(logs, "max", axis=-1).reshape((*shape, 1))
        parts = _map(lambda x, m: exp(x - m), logs, most)
        return _map(lambda x, total: x / total, parts, reduce(parts, "add", axis=-1).reshape((*shape, 1)))

    def multinomial(self, n, pvals, size=None):
        """Returns along the last axis how often each outcome occurred in n experiments. pvals: the
        outcomes' probabilities."""
        import numpy

        p = numpy.asarray(pvals.to_host() if isinstance(pvals, _kjit.Array) else pvals, dtype=numpy.float64)
        if p.ndim != 1 or not p.size or not (p >= 0).all() or not p[:-1].sum() <= 1 + 1e-12:
            raise ValueError("multinomial: pvals must be a one-dimensional array of probabilities whose sum is 1")
        n = parameter_of("multinomial", "n", n, self._device)
        shape = shape_of("multinomial", size, (n,))
        made = self._new((*shape, p.size), "i64")
        left, rest = n, 1.0
        for k, probability in enumerate(p.tolist()):
            share = min(probability / rest, 1.0) if rest > 0 and k < p.size - 1 else 1.0
            count = self.binomial(left, share, shape)
            made[(slice(None),) * len(shape) + (k,)] = count
            left, rest = _map(lambda a, b: a - b, left, count), rest - probability
        return made

    def multivariate_normal(self, mean, cov, size=None, check_valid="warn", tol=1e-8, *, method="svd"):
        """Returns normally distributed vectors along the last axis. mean: shape (n,); cov: shape
        (n, n). NumPy factors the covariance on the host by `method`: "svd", "eigh" or
        "cholesky"."""
        import numpy

        from .._products import matmul

        mean, cov = (
            numpy.asarray(x.to_host() if isinstance(x, _kjit.Array) else x, dtype=numpy.float64) for x in (mean, cov)
        )
        if mean.ndim != 1 or cov.shape != (mean.size, mean.size):
            raise ValueError(
                f"multivariate_normal: mean and cov must have the shapes (n,) and (n, n), not {mean.shape} and {cov.shape}"
            )
        shape = shape_of("multivariate_normal", size, ())
        factor = _factor(cov, check_valid, tol, method)
        normal = self.standard_normal((_product(shape), mean.size))
        made = matmul(normal, self._array(factor))
        return _map(lambda x, m: x + m, made, self._array(mean)).reshape((*shape, mean.size))


def _factor(cov, check_valid, tol, method):
    """Returns a matrix F with F^T F = cov."""
    import warnings

    import numpy

    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f'multivariate_normal: method must be "svd", "eigh" or "cholesky", not {method!r}')
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError(f'multivariate_normal: check_valid must be "warn", "raise" or "ignore", not {check_valid!r}')
    if method == "cholesky":
        return numpy.linalg.cholesky(cov).T.copy()
    values, vectors = numpy.linalg.eigh((cov + cov.T) / 2)
    if check_valid != "ignore" and (
        not numpy.allclose(cov, cov.T, tol, tol) or (values < -tol * max(values.max(), 1)).any()
    ):
        text = "multivariate_normal: cov must be symmetric and positive semidefinite"
        if check_valid == "raise":
            raise ValueError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return numpy.ascontiguousarray((vectors * numpy.sqrt(numpy.maximum(values, 0))).T)


def _product(shape):
    number = 1
    for extent in shape:
        number *= extent
    return number


def _integer(word, x):
    """Returns a bound as an integer. Floats are accepted, as in NumPy. Raises ValueError for
    infinities and NaN."""
    if isinstance(x, float):
        if x != x or x in (float("inf"), float("-inf")):
            raise ValueError(f"integers: `{word}` is {x}, but must be finite")
        return int(x // 1)
    return operator.index(x)


def _range_of(element):
    """Returns (smallest, largest) integer of an element type."""
    if element == "bool":
        return 0, 1
    bits = int(element[1:])
    return (0, 2**bits - 1) if element[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _extremes(x):
    return (
        (reduce(x, "min").item(), reduce(x, "max").item())
        if isinstance(x, _kjit.Array) and x.size
        else (0, 0)
        if hasattr(x, "size")
        else (x, x)
    )


def _wrapped(x):
    """Returns a bound as a signed 64-bit integer, modulo 2**64."""
    if isinstance(x, _kjit.Array):
        return _map(lambda v: i64(v), x)
    return (int(x) + 2**63) % 2**64 - 2**63


def default_rng(seed=None, device=None):
    """Returns a `Generator`.

    seed: an integer below 2**64 is the key of Philox. Larger integers, sequences of integers and a
    NumPy SeedSequence are hashed as in NumPy. None uses entropy of the system. A Generator is
    returned unchanged. device: "cpu", "cuda" or a Device; None means the device in KJIT_DEVICE,
    else the first one.
    """
    return seed if isinstance(seed, Generator) else Generator(seed, device)


def __getattr__(name):
    """Returns one of the older functions of numpy.random, such as `rand`."""
    from . import _random_state

    found = _random_state.attribute(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    from . import _random_state

    return sorted({*__all__, *_random_state.names()})

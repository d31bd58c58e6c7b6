"""The functions of np.random and of Python's module random, for use in kjit.njit functions.

As in Numba, each thread has a generator for np.random and one for random; NumPy and Python themselves do not use these generators. After
the same `np.random.seed(n)` or `random.seed(n)` in an njit function the numbers are the same as in Numba, because the functions here use
Numba's algorithms. The front end compiles them like the functions in a program.
"""

import functools
import inspect
import math
import sys

from .frontend import words


class _Generator(words.External):
    """A function of a random generator; random_state.c implements it. parameter and result: the types in the kernel IR, or None."""

    def __init__(self, name, parameter, result):
        super().__init__(name)
        self.parameter, self.result = parameter, result

    def write(self, builder, extern):
        declared, given = (f"n: {self.parameter}", f"{self.parameter}(n)") if self.parameter else ("", "")
        arrow, word = (f" -> {self.result}", "return ") if self.result else ("", "")
        name = "n" if self.parameter else ""
        head = f"func {self.__name__}({name}) @numba"
        return f"extern func {extern}({declared}){arrow}\n{head} {{\n  {word}{extern}({given})\n}}"

    def bind(self, module, extern, _):
        return module.bind_generator(extern, self.symbol)

    def check(self, more):
        pass


_double = _Generator("numpy_double", None, "f64")
_normal = _Generator("numpy_normal", None, "f64")
_bits = _Generator("numpy_bits", "i32", "i64")
_seed = _Generator("numpy_seed", "u32", None)
_python_double = _Generator("python_double", None, "f64")
_python_normal = _Generator("python_normal", None, "f64")
_python_bits = _Generator("python_bits", "i32", "u64")
_python_seed = _Generator("python_seed", "u32", None)


def _width(n):
    """Returns the number of bits of a positive integer."""
    bits = 0
    while n > 0:
        n >>= 1
        bits += 1
    return bits


# ---- distributions that both modules have ----


def _of_gamma(double):
    def gamma(alpha, beta):
        if alpha <= 0.0 or beta <= 0.0:
            raise ValueError("gammavariate: alpha and beta must be > 0.0")
        if alpha > 1.0:
            ainv = math.sqrt(2.0 * alpha - 1.0)
            bbb = alpha - math.log(4.0)
            ccc = alpha + ainv
            while True:
                u1 = double()
                if not 1e-7 < u1 < 0.9999999:
                    continue
                u2 = 1.0 - double()
                v = math.log(u1 / (1.0 - u1)) / ainv
                x = alpha * math.exp(v)
                z = u1 * u1 * u2
                r = bbb + ccc * v - x
                if r + (1.0 + math.log(4.5)) - 4.5 * z >= 0.0 or r >= math.log(z):
                    return x * beta
        if alpha == 1.0:
            return -math.log(1.0 - double()) * beta
        while True:
            u = double()
            b = (math.e + alpha) / math.e
            p = b * u
            if p <= 1.0:
                x = p ** (1.0 / alpha)
            else:
                x = -math.log((b - p) / alpha)
            u1 = double()
            if p > 1.0:
                if u1 <= x ** (alpha - 1.0):
                    break
            elif u1 <= math.exp(-x):
                break
        return x * beta

    return gamma


def _of_beta(gamma):
    def beta(a, b):
        y = gamma(a, 1.0)
        if y == 0.0:
            return 0.0
        return y / (y + gamma(b, 1.0))

    return beta


def _of_vonmises(double):
    def vonmises(mu, kappa):
        if kappa <= 1e-6:
            return 2.0 * math.pi * double()
        s = 0.5 / kappa
        r = s + math.sqrt(1.0 + s * s)
        while True:
            u1 = double()
            z = math.cos(math.pi * u1)
            d = z / (r + z)
            u2 = double()
            if u2 < 1.0 - d * d or u2 <= (1.0 - d) * math.exp(d):
                break
        q = 1.0 / r
        f = (q + z) / (1.0 + q * z)
        u3 = double()
        if u3 > 0.5:
            return (mu + math.acos(f)) % (2.0 * math.pi)
        return (mu - math.acos(f)) % (2.0 * math.pi)

    return vonmises


def _of_triangular(double):
    def triangular(left, mode, right):
        if right == left:
            return float(left)
        u = double()
        c = (mode - left) / (right - left)
        low = float(left)
        high = float(right)
        if u > c:
            u = 1.0 - u
            c = 1.0 - c
            low, high = high, low
        return low + (high - low) * math.sqrt(u * c)

    return triangular


_gamma, _python_gamma = _of_gamma(_double), _of_gamma(_python_double)
_beta, _python_beta = _of_beta(_gamma), _of_beta(_python_gamma)
_vonmises, _python_vonmises = _of_vonmises(_double), _of_vonmises(_python_double)
_triangular, _python_triangular = _of_triangular(_double), _of_triangular(_python_double)


# ---- np.random ----


def _uniform(low=0.0, high=1.0):
    return low + (float(high) - float(low)) * _double()


def _scaled_normal(loc=0.0, scale=1.0):
    return loc + scale * _normal()


def _check_range(n):
    if n <= 0:
        raise ValueError("empty range for randrange()")


def _below(n):
    """Returns an integer from 0 to n - 1."""
    _check_range(n)
    if n == 1:
        return 0
    bits = _width(n - 1)
    found = _bits(bits)
    while found >= n:
        found = _bits(bits)
    return found


def _randint(low):
    return _below(low)


def _randint_between(low, high):
    return low + _below(high - low)


def _standard_gamma(shape):
    return _gamma(shape, 1.0)


def _scaled_gamma(shape, scale=1.0):
    return _gamma(shape, scale)


def _standard_exponential():
    return -math.log(1.0 - _double())


def _exponential(scale=1.0):
    return -math.log(1.0 - _double()) * scale


def _lognormal(mean=0.0, sigma=1.0):
    return math.exp(_scaled_normal(mean, sigma))


def _pareto(a):
    u = 1.0 - _double()
    return 1.0 / u ** (1.0 / a) - 1


def _weibull(a):
    u = 1.0 - _double()
    return (-math.log(u)) ** (1.0 / a)


def _binomial(n, p):
    if n < 0:
        raise ValueError("binomial(): n <= 0")
    if not (0.0 <= p <= 1.0):
        raise ValueError("binomial(): p outside of [0, 1]")
    if p == 0.0:
        return 0
    if p == 1.0:
        return n
    flipped = p > 0.5
    chance = 1.0 - p if flipped else float(p)
    q = 1.0 - chance
    rounds = 1
    count = n
    qn = q**count
    while qn <= 1e-308:
        rounds <<= 2
        count >>= 2
        qn = q**count
    mean = count * chance
    bound = min(count, mean + 10.0 * math.sqrt(mean * q + 1))
    total = 0
    while rounds > 0:
        x = 0
        u = _double()
        px = qn
        while x <= bound:
            if u <= px:
                total += count - x if flipped else x
                rounds -= 1
                break
            u -= px
            x += 1
            px = ((count - x + 1) * chance * px) / (x * q)
    return total


def _chisquare(df):
    return 2.0 * _gamma(df / 2.0, 1.0)


def _noncentral_chisquare(df, nonc):
    if df <= 0:
        raise ValueError("df <= 0")
    if nonc < 0:
        raise ValueError("nonc < 0")
    if math.isnan(nonc):
        return math.nan
    if 1 < df:
        chi2 = _chisquare(df - 1)
        n = _normal() + math.sqrt(nonc)
        return chi2 + n * n
    i = _poisson(nonc / 2.0)
    return _chisquare(df + 2 * i)


def _f(dfnum, dfden):
    return (_chisquare(dfnum) * dfden) / (_chisquare(dfden) * dfnum)


def _geometric(p):
    if p <= 0.0 or p > 1.0:
        raise ValueError("geometric(): p outside of (0, 1]")
    q = 1.0 - p
    if p >= 0.333333333333333333333333:
        x = 1
        prod = float(p)
        total = prod
        u = _double()
        while u > total:
            prod *= q
            total += prod
            x += 1
        return x
    return math.ceil(math.log(1.0 - _double()) / math.log(q))


def _gumbel(loc=0.0, scale=1.0):
    u = 1.0 - _double()
    return loc - scale * math.log(-math.log(u))


def _hypergeometric(ngood, nbad, nsample):
    d1 = int(nbad) + int(ngood) - int(nsample)
    d2 = float(min(nbad, ngood))
    y = d2
    k = int(nsample)
    while y > 0.0 and k > 0:
        y -= math.floor(_double() + y / (d1 + k))
        k -= 1
    z = int(d2 - y)
    if ngood > nbad:
        return int(nsample) - z
    return z


def _laplace(loc=0.0, scale=1.0):
    u = _double()
    if u < 0.5:
        return loc + scale * math.log(u + u)
    return loc - scale * math.log(2.0 - u - u)


def _logistic(loc=0.0, scale=1.0):
    u = _double()
    return loc + scale * math.log(u / (1.0 - u))


def _logseries(p):
    if p <= 0.0 or p > 1.0:
        raise ValueError("logseries(): p outside of (0, 1]")
    r = math.log(1.0 - p)
    while True:
        v = _double()
        if v >= p:
            return 1
        u = _double()
        q = 1.0 - math.exp(r * u)
        if v <= q * q:
            return int(1.0 + math.log(v) / math.log(q))
        if v >= q:
            return 1
        return 2


def _log_gamma(x):
    """Stirling's series, with the coefficients that NumPy uses."""
    if x == 1.0 or x == 2.0:
        return 0.0
    x0 = x
    n = 0
    if x <= 7.0:
        n = int(7 - x)
        x0 = x + n
    x2 = 1.0 / (x0 * x0)
    total = -1.39243221690590e00
    for a in (
        1.796443723688307e-01, -2.955065359477124e-02, 6.410256410256410e-03, -1.917526917526918e-03, 8.417508417508418e-04,
        -5.952380952380952e-04, 7.936507936507937e-04, -2.777777777777778e-03, 8.333333333333333e-02,
    ):  # fmt: skip
        total *= x2
        total += a
    result = total / x0 + 0.5 * math.log(2 * math.pi) + (x0 - 0.5) * math.log(x0) - x0
    for _ in range(n):
        result -= math.log(x0 - 1.0)
        x0 -= 1.0
    return result


def _large_poisson(lam):
    """Hörmann's transformed rejection method."""
    slam = math.sqrt(lam)
    loglam = math.log(lam)
    b = 0.931 + 2.53 * slam
    a = -0.059 + 0.02483 * b
    invalpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = _double() - 0.5
        v = _double()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + lam + 0.43)
        if us >= 0.07 and v <= vr:
            return k
        if k < 0 or us < 0.013 and v > us:
            continue
        if math.log(v) + math.log(invalpha) - math.log(a / (us * us) + b) <= -lam + k * loglam - _log_gamma(
            float(k + 1)
        ):
            return k


def _poisson(lam=1.0):
    if lam >= 10.0:
        return _large_poisson(float(lam))
    if lam < 0.0:
        raise ValueError("poisson(): lambda < 0")
    if lam == 0.0:
        return 0
    enlam = math.exp(-lam)
    x = 0
    prod = 1.0
    while True:
        prod *= _double()
        if prod <= enlam:
            return x
        x += 1


def _negative_binomial(n, p):
    if n <= 0:
        raise ValueError("negative_binomial(): n <= 0")
    if p < 0.0 or p > 1.0:
        raise ValueError("negative_binomial(): p outside of [0, 1]")
    return _poisson(_gamma(n, (1.0 - p) / p))


def _power(a):
    if a <= 0.0:
        raise ValueError("power(): a <= 0")
    return math.pow(1 - math.exp(math.log(1.0 - _double())), 1.0 / a)


def _rayleigh(scale=1.0):
    if scale <= 0.0:
        raise ValueError("rayleigh(): scale <= 0")
    return scale * math.sqrt(-2.0 * math.log(1.0 - _double()))


def _standard_cauchy():
    first = _normal()
    return first / _normal()


def _standard_t(df):
    n = _normal()
    g = _gamma(df / 2.0, 1.0)
    return math.sqrt(df / 2.0) * n / math.sqrt(g)


def _wald(mean, scale):
    if mean <= 0.0:
        raise ValueError("wald(): mean <= 0")
    if scale <= 0.0:
        raise ValueError("wald(): scale <= 0")
    mu_2l = mean / (2.0 * scale)
    y = _normal()
    y = mean * y * y
    x = mean + mu_2l * (y - math.sqrt(4 * scale * y + y * y))
    u = _double()
    if u <= mean / (mean + x):
        return x
    return mean * mean / x


def _zipf(a):
    if a <= 1.0:
        raise ValueError("zipf(): a <= 1")
    am1 = a - 1.0
    b = 2.0**am1
    while True:
        u = 1.0 - _double()
        v = _double()
        x = int(math.floor(u ** (-1.0 / am1)))
        if x < 1:
            continue
        t = (1.0 + 1.0 / x) ** am1
        if v * x * (t - 1.0) / (b - 1.0) <= t / b:
            return x


def _swap(x, i, j):
    if x.ndim == 1:
        x[i], x[j] = x[j], x[i]
    else:  # goes through the elements one by one, because x[i] is a view and not an element
        for k in range(x[i].size):
            x[i].flat[k], x[j].flat[k] = x[j].flat[k], x[i].flat[k]


def _shuffle(x):
    i = x.shape[0] - 1
    while i > 0:
        _swap(x, i, _below(i + 1))
        i -= 1


# ---- the module random ----


def _python_uniform(a, b):
    return a + (float(b) - float(a)) * _python_double()


def _python_triangular_half(low, high):
    u = _python_double()
    a = float(low)
    b = float(high)
    if u > 0.5:
        u = 1.0 - u
        a, b = b, a
    return a + (b - a) * math.sqrt(u * 0.5)


def _python_triangular_mode(low, high, mode):
    return _python_triangular(low, mode, high)


def _python_scaled_normal(mu, sigma):
    return mu + sigma * _python_normal()


def _python_below(n):
    _check_range(n)
    bits = _width(n)
    found = int(_python_bits(bits))
    while found >= n:
        found = int(_python_bits(bits))
    return found


def _randrange(start):
    return _python_below(start)


def _randrange_between(start, stop):
    return start + _python_below(stop - start)


def _randrange_steps(start, stop, step):
    n = stop - start
    if step < 0:
        n = -(n + step + 1) // -step
    elif step > 1:
        n = (n + step - 1) // step
    return start + step * _python_below(n)


def _python_randint(a, b):
    return a + _python_below(b + 1 - a)


def _getrandbits(k):
    if k >= 65 or k == 0:
        raise OverflowError("getrandbits() limited to 64 bits")
    return _python_bits(k)


def _expovariate(lambd):
    return -math.log(1.0 - _python_double()) / lambd


def _lognormvariate(mu, sigma):
    return math.exp(_python_scaled_normal(mu, sigma))


def _paretovariate(alpha):
    u = 1.0 - _python_double()
    return 1.0 / u ** (1.0 / alpha)


def _weibullvariate(alpha, beta):
    u = 1.0 - _python_double()
    return alpha * (-math.log(u)) ** (1.0 / beta)


def _python_shuffle(x):
    i = x.shape[0] - 1
    while i > 0:
        _swap(x, i, _python_below(i + 1))
        i -= 1


# ---- calls ----

_choice = words.Text(
    "random_choice",
    """
func random_choice(a) @numba {
  if is_array(a) { return a[_below(i64(len(a)))] }
  return _below(i64(a))
}""",
    (_below,),
)
_NUMPY = {
    "seed": (_seed,), **dict.fromkeys(("random", "random_sample", "sample", "ranf"), (_double,)), "rand": (_double,), "randn": (_normal,),
    "standard_normal": (_normal,), "normal": (_scaled_normal,), "uniform": (_uniform,), "randint": (_randint, _randint_between),
    "standard_gamma": (_standard_gamma,), "gamma": (_scaled_gamma,), "beta": (_beta,), "standard_exponential": (_standard_exponential,),
    "exponential": (_exponential,), "lognormal": (_lognormal,), "pareto": (_pareto,), "weibull": (_weibull,), "vonmises": (_vonmises,),
    "triangular": (_triangular,), "binomial": (_binomial,), "chisquare": (_chisquare,), "noncentral_chisquare": (_noncentral_chisquare,),
    "f": (_f,), "geometric": (_geometric,), "gumbel": (_gumbel,), "hypergeometric": (_hypergeometric,), "laplace": (_laplace,),
    "logistic": (_logistic,), "logseries": (_logseries,), "negative_binomial": (_negative_binomial,), "poisson": (_poisson,),
    "power": (_power,), "rayleigh": (_rayleigh,), "standard_cauchy": (_standard_cauchy,), "standard_t": (_standard_t,), "wald": (_wald,),
    "zipf": (_zipf,), "choice": (_choice,), "shuffle": (_shuffle,),
}  # fmt: skip
_PYTHON = {
    "seed": (_python_seed,), "random": (_python_double,), "uniform": (_python_uniform,),
    "triangular": (_python_triangular_half, _python_triangular_mode), "gauss": (_python_scaled_normal,),
    "normalvariate": (_python_scaled_normal,), "gammavariate": (_python_gamma,), "betavariate": (_python_beta,),
    "expovariate": (_expovariate,), "lognormvariate": (_lognormvariate,), "paretovariate": (_paretovariate,),
    "weibullvariate": (_weibullvariate,), "vonmisesvariate": (_python_vonmises,), "getrandbits": (_getrandbits,),
    "randrange": (_randrange, _randrange_between, _randrange_steps), "randint": (_python_randint,), "shuffle": (_python_shuffle,),
}  # fmt: skip
_ONE = {_seed: ("seed",), _python_seed: ("a",), _choice: ("a",)}
_INTEGERS = frozenset("randint binomial geometric hypergeometric logseries poisson zipf".split())
# The functions of whole arrays, which are defined below.
_OF_ARRAYS: dict = {}


@functools.cache
def _tables(has_numpy):
    """Returns a dictionary that maps each function of np.random and random to (its name, the functions in this module
    that replace it)."""
    import random

    found = {getattr(random, name): (name, functions) for name, functions in _PYTHON.items()}
    if has_numpy:
        of_numpy = sys.modules["numpy"].random
        found |= {getattr(of_numpy, name): (name, _NUMPY.get(name, ())) for name in {**_NUMPY, **_OF_ARRAYS}}
    return found


def _entry(thing):
    """Returns (name, functions) for a function of np.random or random, with one function for each number of arguments."""
    try:
        return _tables("numpy" in sys.modules).get(thing, ("", ()))
    except TypeError:  # the object is not hashable
        return "", ()


def _parameters(function):
    """Returns (names, the number of names without a default)."""
    if isinstance(function, words.Text):
        names = _ONE.get(function, ())
        return names, len(names)
    listed = inspect.signature(function).parameters.values()
    return tuple(p.name for p in listed), sum(p.default is p.empty for p in listed)


def _accepts(function, count, keywords):
    names, required = _parameters(function)
    given = {*names[:count], *keywords}
    return (
        count <= len(names)
        and given <= set(names)
        and given >= set(names[:required])
        and not set(names[:count]) & set(keywords)
    )


def scalar_of(thing, count, keywords=()):
    """Returns the function that compiled code calls in place of a function of np.random or random, or None if the call makes an array."""
    return next((f for f in _entry(thing)[1] if _accepts(f, count, keywords)), None)


def is_known(thing):
    """Returns whether an object is a function of np.random or random that Numba has."""
    return _entry(thing)[0] != ""


# ---- calls from functions that stay in Python ----


def _caller(function, count):
    """Returns a Python function with `count` parameters that calls a function in this module."""

    def call_without_result(a):
        function(a)

    if function in (_seed, _python_seed, _shuffle, _python_shuffle):
        return call_without_result
    if count == 0:
        return lambda: function()
    if count == 1:
        return lambda a: function(a)
    if count == 2:
        return lambda a, b: function(a, b)
    return lambda a, b, c: function(a, b, c)


def _filler(function, count):
    """Returns a Python function that fills an array with the results of a function of this module."""

    def fill_0(out):
        for i in range(len(out)):
            out[i] = function()

    def fill_1(out, a):
        for i in range(len(out)):
            out[i] = function(a)

    def fill_2(out, a, b):
        for i in range(len(out)):
            out[i] = function(a, b)

    def fill_3(out, a, b, c):
        for i in range(len(out)):
            out[i] = function(a, b, c)

    return (fill_0, fill_1, fill_2, fill_3)[count]


@functools.cache
def _compiled(make, function, count):
    from ._njit import njit

    return njit(make(function, count))


def _in_order(function, args, keywords):
    names, _ = _parameters(function)
    return (*args, *(keywords[name] for name in names[len(args) :] if name in keywords)) if keywords else args


def _split(thing, args, keywords):
    """Splits a call's arguments into those of one random number and the size. Returns (the function
    in this module, its arguments, the size or None)."""
    name, functions = _entry(thing)
    if name in ("rand", "randn") and args:
        return functions[0], (), args
    function = scalar_of(thing, len(args), keywords)
    if function is not None:
        return function, _in_order(function, args, keywords), None
    rest = {name: value for name, value in keywords.items() if name != "size"}
    if "size" in keywords:
        function = scalar_of(thing, len(args), rest)
        if function is not None:
            return function, _in_order(function, args, rest), keywords["size"]
    elif args:
        function = scalar_of(thing, len(args) - 1, rest)
        if function is not None:
            return function, _in_order(function, args[:-1], rest), args[-1]
    listed = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in keywords.items())])
    raise TypeError(f"{name}({listed}): functions made by njit do not accept these arguments")


def hosted(thing):
    """Returns the function that Python calls in place of a function of np.random or random, in an njit function that stays in Python."""
    name, _ = _entry(thing)
    if name in _OF_ARRAYS and getattr(thing, "__module__", None) != "random":
        return _OF_ARRAYS[name]

    def call(*args, **keywords):
        import numpy

        function, values, size = _split(thing, args, keywords)
        if size is None:
            return _compiled(_caller, function, len(values))(*values)
        out = numpy.empty(size, numpy.int64 if name in _INTEGERS else numpy.float64)
        _compiled(_filler, function, len(values))(out.reshape(-1), *values)
        return out

    call.__name__ = name
    return call


def _draw(count):
    """Returns an integer from 0 to count - 1."""
    return _compiled(_caller, _below, 1)(count)


def _shuffle_array(x):
    if x.ndim == 1 and x.dtype.kind in "biufc":
        _compiled(_caller, _shuffle, 1)(x)
        return
    for i in range(len(x) - 1, 0, -1):
        j = _draw(i + 1)
        row = x[i].copy()
        x[i] = x[j]
        x[j] = row


def _permutation(x):
    import numpy

    made = x.copy() if isinstance(x, numpy.ndarray) else numpy.arange(x)
    _shuffle_array(made)
    return made


def _choose(a, size=None, replace=True):
    import numpy

    is_array = isinstance(a, numpy.ndarray)
    count = len(a) if is_array else a
    if size is None:
        i = _draw(count)
        return a[i] if is_array else i
    out = numpy.empty(size, a.dtype if is_array else numpy.int64)
    flat = out.reshape(-1)
    if replace:
        places = numpy.empty(len(flat), numpy.int64)
        _compiled(_filler, _below, 1)(places, count)
        flat[:] = a[places] if is_array else places
    elif len(flat) > count:
        raise ValueError("Cannot take a larger sample than population when 'replace=False'")
    else:
        flat[:] = _permutation(a)[: len(flat)]
    return out


def _multinomial(n, pvals, size=None):
    import numpy

    shape = () if size is None else tuple(size) if isinstance(size, tuple) else (size,)
    out = numpy.zeros((*shape, len(pvals)), numpy.int64)
    draw = _compiled(_caller, _binomial, 2)
    for row in out.reshape(-1, len(pvals)):
        rest, total = n, 1.0
        for j in range(len(pvals) - 1):
            row[j] = draw(rest, float(pvals[j]) / total)
            rest -= int(row[j])
            if rest <= 0:
                break
            total -= float(pvals[j])
        if rest > 0:
            row[-1] = rest
    return out


def _dirichlet(alpha, size=None):
    import numpy

    if any(a <= 0 for a in alpha):
        raise ValueError("dirichlet: alpha must be > 0.0")
    shape = () if size is None else tuple(size) if isinstance(size, tuple) else (size,)
    out = numpy.empty((*shape, len(alpha)))
    draw = _compiled(_caller, _gamma, 2)
    for row in out.reshape(-1, len(alpha)):
        total = 0.0
        for k, weight in enumerate(alpha):
            row[k] = draw(float(weight), 1.0)
            total += float(row[k])
        row /= total
    return out


_OF_ARRAYS |= {
    "shuffle": _shuffle_array,
    "permutation": _permutation,
    "choice": _choose,
    "multinomial": _multinomial,
    "dirichlet": _dirichlet,
}

"""Arrays of random numbers. Number i of a seed depends only on the seed and i."""

from . import _arrays
from ._algorithms import Plain, Plan, listed, one, perform


def _fill(name, x, arguments, dtype, device, options):
    """Fills the array x, or a new array of the shape x, with random numbers. A list is a shape, because the caller would
    not see a filled list."""
    if x is None:
        raise TypeError(f"{name}: x must be an array or the shape of a new array, not None")
    if isinstance(x, (tuple, list)) or hasattr(x, "__index__") and not hasattr(x, "__len__"):
        x = _arrays.empty(tuple(x) if isinstance(x, list) else x, dtype, device)
    elif device is not None:
        options["device"] = device
    outcome = perform(name, 1, tuple(Plain(a) for a in arguments), (x,), options=options)
    return outcome if isinstance(outcome, Plan) else x


def random_uniform(x, seed, low=0.0, high=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Fills x with uniformly distributed numbers in [low, high) and returns it. x is an array of floats, or the shape
    of a new array of `dtype` on `device`. The elements in row-major order are the numbers offset, offset + 1 and so on
    of the seed (Philox4x32-10). seed and offset are 64-bit integers.

    The numbers are the same on every device, also if several calls fill parts of an array. With bounds other than 0 and
    1, rounding can produce high itself. options: see `kjit.reduce`. Raises ArgumentError for numbers that are not
    finite and for high below low, and TypingError for elements that are not floats.
    """
    return _fill("random_uniform", x, (seed, offset, low, high), dtype, device, options)


def random_normal(x, seed, mean=0.0, deviation=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Fills x with normally distributed numbers; deviation is the standard deviation. Other parameters: see
    `kjit.random_uniform`."""
    return _fill("random_normal", x, (seed, offset, mean, deviation), dtype, device, options)


def random_exponential(x, seed, scale=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Fills x with exponentially distributed numbers with mean `scale`. Other parameters: see `kjit.random_uniform`."""
    return _fill("random_exponential", x, (seed, offset, scale), dtype, device, options)


def random_integers(x, seed, least, greatest, *, offset=0, dtype="i64", device=None, **options):
    """Fills x with integers from least to greatest, inclusive, all with the same probability. Raises TypingError for
    elements that are not integers. Other parameters: see `kjit.random_uniform`."""
    return _fill("random_integers", x, (seed, offset, least, greatest), dtype, device, options)


def random_permutation(x, seed, *, dtype="i64", device=None, **options):
    """Returns the integers from 0 to n - 1 in a random order; all orders have the same probability. x is an array with
    n integers, which is filled, or the number n. The order is the same on every device. Raises ArgumentError for a type
    that cannot hold n - 1. Other parameters: see `kjit.random_uniform`."""
    return _fill("random_permutation", x, (seed,), dtype, device, options)


def random_shuffle(x, seed, *, out=None, **options):
    """Returns a copy of x whose rows (or elements, for one axis) are permuted with `kjit.random_permutation` for the
    seed. out is an array with the shape of x that does not overlap it. options: see `kjit.reduce`. Raises ArgumentError
    if the shapes differ."""
    return one(perform("random_shuffle", 1, (x, Plain(seed)), listed(out), options=options))

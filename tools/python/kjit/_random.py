"""Arrays of random numbers: number i of a seed depends on nothing but the seed and i."""

from . import _arrays
from ._algorithms import Plain, Plan, listed, one, perform


def _fill(name, x, arguments, dtype, device, options):
    """Fills an array, or a new one of that shape, which a list is, too: nobody would see a list filled."""
    if x is None:
        raise TypeError(f"{name}: x is an array or the shape of a new one, not None")
    if isinstance(x, (tuple, list)) or hasattr(x, "__index__") and not hasattr(x, "__len__"):
        x = _arrays.empty(tuple(x) if isinstance(x, list) else x, dtype, device)
    elif device is not None:
        options["device"] = device
    outcome = perform(name, 1, tuple(Plain(a) for a in arguments), (x,), options=options)
    return outcome if isinstance(outcome, Plan) else x


def random_uniform(x, seed, low=0.0, high=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Fills x with numbers from low to high, of 0 and 1 in [0, 1), and returns it. x: an array of floats, which is filled in
    row-major order with the numbers offset, offset + 1 and so on of the seed (Philox4x32-10); or the shape of a new array of
    `dtype` on `device`. seed, offset: integers of 64 bits. The same numbers come on every device, and in parts of an array that
    several calls fill. options: see `kjit.reduce`. ArgumentError: numbers that are not finite, high below low. TypingError:
    elements that are no floats."""
    return _fill("random_uniform", x, (seed, offset, low, high), dtype, device, options)


def random_normal(x, seed, mean=0.0, deviation=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Normally distributed numbers of a mean and a standard deviation, in the unit of x. The rest: see `kjit.random_uniform`."""
    return _fill("random_normal", x, (seed, offset, mean, deviation), dtype, device, options)


def random_exponential(x, seed, scale=1.0, *, offset=0, dtype="f64", device=None, **options):
    """Exponentially distributed numbers of mean `scale`. The rest: see `kjit.random_uniform`."""
    return _fill("random_exponential", x, (seed, offset, scale), dtype, device, options)


def random_integers(x, seed, least, greatest, *, offset=0, dtype="i64", device=None, **options):
    """Integers from least to greatest, both among them, each as likely as the others. TypingError: elements that are no integers.
    The rest: see `kjit.random_uniform`."""
    return _fill("random_integers", x, (seed, offset, least, greatest), dtype, device, options)


def random_permutation(x, seed, *, dtype="i64", device=None, **options):
    """The integers from 0 to n - 1 in a random order, every order as likely as the others: x, an array of n integers, is filled, or
    x is n. The same order comes on every device. ArgumentError: a type that does not hold n - 1. The rest: see
    `kjit.random_uniform`."""
    return _fill("random_permutation", x, (seed,), dtype, device, options)


def random_shuffle(x, seed, *, out=None, **options):
    """A copy of x with the elements of its first axis, numbers or rows, in the order that `kjit.random_permutation` has for the
    seed. out: an array of the shape of x that does not overlap it. options: see `kjit.reduce`. ArgumentError: shapes."""
    return one(perform("random_shuffle", 1, (x, Plain(seed)), listed(out), options=options))

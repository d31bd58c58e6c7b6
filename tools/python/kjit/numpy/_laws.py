"""The distributions of `kjit.numpy.random`: their kernel IR, their parameters, and the conditions
on the parameters."""

from operator import index
from typing import NamedTuple

from .. import _kjit, _state
from .._algorithms import Computed, Plain, Several, perform
from .._arrays import array
from .._folds import reduce
from . import _engine
from ._engine import is_index


class Law(NamedTuple):
    """A distribution. parameters: the name of each parameter and the condition on its values.
    value: an expression of the kernel IR for a random number; `s` is the generator's state.
    element: the number type."""

    parameters: dict
    value: str
    element: str = "f64"


# Maps each condition to a test of the smallest and the largest value. NaN fails every test.
_CONDITIONS = {
    "a number": lambda least, most: least == least,
    "at least 0": lambda least, most: least >= 0 and most < float("inf"),
    "more than 0": lambda least, most: least > 0 and most < float("inf"),
    "more than 1": lambda least, most: least > 1 and most < float("inf"),
    "from 0 to 1": lambda least, most: least >= 0 and most <= 1,
    "more than 0 and at most 1": lambda least, most: least > 0 and most <= 1,
    "more than 0 and less than 1": lambda least, most: least > 0 and most < 1,
    "from 0 to 2^62": lambda least, most: least >= 0 and most <= 2**62,
    "from 0 to 2^63": lambda least, most: least >= 0 and most <= 2**63 - 2**40,
}
_ANY, _POSITIVE, _NOT_NEGATIVE = "a number", "more than 0", "at least 0"
_LOC_SCALE = {"loc": _ANY, "scale": _NOT_NEGATIVE}

LAWS = {
    "uniform": Law({"low": _ANY, "high": _ANY}, "f64(low) + (f64(high) - f64(low)) * philox_uniform_f64(s, 0)"),
    "normal": Law(_LOC_SCALE, "f64(loc) + f64(scale) * philox_normal_f64(s, 0)"),
    "lognormal": Law({"mean": _ANY, "sigma": _NOT_NEGATIVE}, "exp(f64(mean) + f64(sigma) * philox_normal_f64(s, 0))"),
    "exponential": Law({"scale": _NOT_NEGATIVE}, "f64(scale) * variate_exponential(s, 0)"),
    "laplace": Law(_LOC_SCALE, "f64(loc) + f64(scale) * variate_laplace(s, 0)"),
    "logistic": Law(_LOC_SCALE, "f64(loc) + f64(scale) * variate_logistic(s, 0)"),
    "gumbel": Law(_LOC_SCALE, "f64(loc) + f64(scale) * variate_gumbel(s, 0)"),
    "rayleigh": Law({"scale": _NOT_NEGATIVE}, "f64(scale) * variate_rayleigh(s, 0)"),
    "standard_cauchy": Law({}, "variate_cauchy(s, 0)"),
    "standard_t": Law({"df": _POSITIVE}, "variate_standard_t(s, 0, f64(df))"),
    "pareto": Law({"a": _POSITIVE}, "variate_pareto(s, 0, f64(a))"),
    "power": Law({"a": _POSITIVE}, "variate_power(s, 0, f64(a))"),
    "weibull": Law({"a": _NOT_NEGATIVE}, "variate_weibull(s, 0, f64(a))"),
    "gamma": Law({"shape": _NOT_NEGATIVE, "scale": _NOT_NEGATIVE}, "variate_gamma(s, 0, f64(shape)) * f64(scale)"),
    "log_gamma": Law({"alpha": _POSITIVE}, "variate_log_gamma(s, 0, f64(alpha))"),
    "beta": Law({"a": _POSITIVE, "b": _POSITIVE}, "variate_beta(s, 0, f64(a), f64(b))"),
    "chisquare": Law({"df": _POSITIVE}, "variate_chisquare(s, 0, f64(df))"),
    "noncentral_chisquare": Law(
        {"df": _POSITIVE, "nonc": _NOT_NEGATIVE}, "variate_noncentral_chisquare(s, 0, f64(df), f64(nonc))"
    ),
    "f": Law({"dfnum": _POSITIVE, "dfden": _POSITIVE}, "variate_f(s, 0, f64(dfnum), f64(dfden))"),
    "noncentral_f": Law(
        {"dfnum": _POSITIVE, "dfden": _POSITIVE, "nonc": _NOT_NEGATIVE},
        "variate_noncentral_f(s, 0, f64(dfnum), f64(dfden), f64(nonc))",
    ),
    "triangular": Law(
        {"left": _ANY, "mode": _ANY, "right": _ANY}, "variate_triangular(s, 0, f64(left), f64(mode), f64(right))"
    ),
    "vonmises": Law(
        {"mu": _ANY, "kappa": _NOT_NEGATIVE}, "variate_turned(f64(mu), variate_vonmises(s, 0, f64(kappa)))"
    ),
    "wald": Law({"mean": _POSITIVE, "scale": _POSITIVE}, "variate_wald(s, 0, f64(mean), f64(scale))"),
    "binomial": Law({"n": "from 0 to 2^62", "p": "from 0 to 1"}, "variate_binomial(s, 0, i64(n), f64(p))", "i64"),
    "geometric": Law({"p": "more than 0 and at most 1"}, "variate_geometric(s, 0, f64(p))", "i64"),
    "negative_binomial": Law(
        {"n": _POSITIVE, "p": "more than 0 and at most 1"}, "variate_negative_binomial(s, 0, f64(n), f64(p))", "i64"
    ),
    "poisson": Law({"lam": "from 0 to 2^63"}, "variate_poisson(s, 0, f64(lam))", "i64"),
    "logseries": Law({"p": "more than 0 and less than 1"}, "variate_logseries(s, 0, f64(p))", "i64"),
    "zipf": Law({"a": "more than 1"}, "variate_zipf(s, 0, f64(a))", "i64"),
    "hypergeometric": Law(
        {"ngood": "from 0 to 2^62", "nbad": "from 0 to 2^62", "nsample": "from 0 to 2^62"},
        "variate_hypergeometric(s, 0, i64(ngood), i64(nbad), i64(nsample))",
        "i64",
    ),
    # 64-bit integers from `low` to low + count - 1; a count of 0 means 2**64.
    "integers": Law(
        {"low": _ANY, "count": _ANY},
        "i64(u64(low) + random_limit_u64(philox_u64(s, 0), seed, first + i, u64(count)))",
        "i64",
    ),
    "bits": Law({}, "philox_u64(s, 0)", "u64"),
}


def _text():
    """Returns the module's source: a func for each distribution, and for each rank a func that
    computes the row-major position of an index."""
    parts = ['import "random_variates"\n']
    for name, law in LAWS.items():
        names = "".join(f", {p}" for p in law.parameters)
        parts.append(
            f"func law_{name}(i: u64, seed: u64, first: u64{names}) {{\n  local s: philox[1]\n"
            f"  philox_init(s, 0, seed, first + i)\n  return {law.value}\n}}\n"
        )
    for rank in range(1, 9):
        names = [f"i{k}" for k in range(rank)]
        place = "u64(i0)"
        for k in range(1, rank):
            place = f"({place} * n{k} + u64(i{k}))"
        extents = "".join(f", n{k}" for k in range(1, rank))
        parts.append(f"func place_{rank}({', '.join(names)}{extents}) {{ return {place} }}\n")
    return "".join(parts)


_loaded: dict = {}


def _module():
    context = _state.context()
    if _loaded.get("context") is not context:
        _loaded.update(context=context, module=context.parse("kjit.numpy.random", _text(), ()))
    return _loaded["module"]


class _Places(Computed):
    """An operand whose elements are their own row-major positions."""

    def __init__(self, shape):
        import numpy

        self.shape, self.arrays = shape, tuple(numpy.uint64(extent) for extent in shape[1:])

    def packed(self):
        return _module(), f"place_{len(self.shape)}", self.shape, self.arrays


def fill(name, out, seed, first, parameters):
    """Fills `out` in row-major order; element i uses the random sequence first + i. parameters:
    numbers and arrays that broadcast to the shape of out."""
    import numpy

    if not out.size:
        return
    is_flat = all(not getattr(p, "shape", ()) for p in parameters)
    target = _engine.flat_target(out) if is_flat or not out.shape else out
    operands = _Places(target.shape), numpy.uint64(seed), numpy.uint64(first), *parameters
    perform(
        "map",
        None,
        (Plain((_module(), f"law_{name}")), Several(operands)),
        (target,),
        together=True,
        options={"device": out.device},
    )


def _bounds(x):
    """Returns (smallest value, largest value). Both are NaN if an array has a NaN."""
    if isinstance(x, _kjit.Array):
        return (reduce(x, "min").item(), reduce(x, "max").item()) if x.size else (1, 1)
    return x, x


def check(name, parameters):
    """Raises ValueError if a parameter violates the condition of the distribution. Array values are
    reduced on their device."""
    for word, condition in LAWS[name].parameters.items():
        bounds = _bounds(parameters[word])
        if not _CONDITIONS[condition](*bounds):
            raise ValueError(f"{name}: `{word}` must be {condition}, but is {told(*bounds)}")


def told(least, most):
    return f"{least}" if least == most or least != least else f"from {least} to {most}"


def parameter_of(name, word, x, device):
    """Returns a parameter as a number or as an array on the device. Host arrays and lists are
    copied to the device. Raises ValueError for an array on another device, and TypeError for values
    that are not real numbers."""
    import numpy

    if isinstance(x, _kjit.Array):
        if x.device != device:
            raise ValueError(f"{name}: `{word}` is on {x.device}, but the generator is on {device}; move `{word}` with `{word}.to_device({device!r})`")
        return x if x.shape else x.item()
    if isinstance(x, (int, float)):
        return x
    found = numpy.asarray(x)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name}: `{word}` must be a real number or an array of real numbers, not {x!r}")
    return array(numpy.ascontiguousarray(found), device=device) if found.shape else found.item()


def shape_of(name, size, parameters):
    """Returns the result shape: `size`, or the shape to which the parameters broadcast."""
    import numpy

    shapes = [tuple(getattr(p, "shape", ())) for p in parameters]
    try:
        common = numpy.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{name}: the parameters have the shapes {', '.join(map(str, shapes))}, which do not broadcast"
        ) from None
    if size is None:
        return common
    size = (index(size),) if is_index(size) else tuple(index(extent) for extent in size)
    if any(extent < 0 for extent in size):
        raise ValueError(f"{name}: size is {size}, but an extent must not be negative")
    if len(common) > len(size) or any(c not in (1, e) for c, e in zip(common[::-1], size[::-1])):
        raise ValueError(f"{name}: the parameters have the shape {common}, which does not broadcast to size, {size}")
    return size

"""Algorithms in programs that `kjit.grad` differentiates. Such a program runs once with traced
arrays. An algorithm that takes a traced array records the operation."""

import functools

# Whether a program has been differentiated in this process. Until then no array is traced, and
# calls of algorithms do not look for traced arrays.
_has_begun = False


def begin():
    global _has_begun
    _has_begun = True


def is_traced(x):
    """Returns whether an object is a traced array, or a tuple or list with a traced array."""
    if isinstance(x, (tuple, list)):
        return any(map(is_traced, x))
    return getattr(type(x), "__kjit_traced__", False)


def raw(x):
    """Returns the value of a traced array, also if derivatives are nested. Returns any other object unchanged."""
    while getattr(type(x), "__kjit_traced__", False):
        x = x.value
    return x


def without_traces(x):
    """Returns an object with the values of its traced arrays. It can be a tuple or list of objects."""
    return type(x)(without_traces(item) for item in x) if isinstance(x, (tuple, list)) else raw(x)


def recorded(algorithm):
    """Wraps an algorithm so that it also takes traced arrays."""

    @functools.wraps(algorithm)
    def call(*operands, **keywords):
        if _has_begun and (is_traced(operands) or is_traced(tuple(keywords.values()))):
            from .numpy._gradient_rules import record

            return record(call, operands, keywords)
        return algorithm(*operands, **keywords)

    return call

"""`kjit.jax.function`: elementwise Python functions as JAX functions with derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy

from . import dtypes
from ._algorithms import map
from ._elementwise import Elementwise

__all__ = ["ElementFunction", "function"]


def _element(x):
    """Returns the name of the element type of a JAX array. Raises TypeError for types that kjit
    does not have."""
    name = dtypes.name_of(numpy.dtype(x.dtype))
    if name is None or name in ("c64", "c128"):
        raise TypeError(f"kjit.jax does not support arrays of {x.dtype}")
    return name


def _call(made, func, operands):
    """Maps a func over arrays of one shape. The compiled JAX program calls it on the host."""
    elements = made.result_elements(func, [_element(x) for x in operands])
    shapes = tuple(jax.ShapeDtypeStruct(operands[0].shape, dtypes._NUMPY[e]) for e in elements)

    def run(*arrays):
        arrays = [numpy.asarray(a) for a in arrays]
        results = tuple(numpy.empty(arrays[0].shape, s.dtype) for s in shapes)
        if arrays[0].size:
            map(func, *arrays, out=results, device="cpu")
        return results

    return jax.pure_callback(run, shapes, *operands, vmap_method="broadcast_all")


def _floats(operands):
    return tuple(i for i, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.floating))


def _zeros(x):
    """Returns the derivative with respect to an array of integers: zeros of JAX's type float0."""
    return numpy.zeros(x.shape, jax.dtypes.float0)


def _by_results(by_results, results):
    """Returns the derivatives of the results, with zeros for results that are integers."""
    return tuple(jnp.zeros(r.shape, r.dtype) if b.dtype == jax.dtypes.float0 else b for b, r in zip(by_results, results))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _values(made, operands):
    return _call(made, made.function, operands)


def _values_forward(made, operands):
    results = _values(made, operands)
    return results, (operands, results)


def _values_backward(made, saved, by_results):
    operands, results = saved
    chosen = _floats(operands)
    found = dict(zip(chosen, _pullback(made, chosen, operands, _by_results(by_results, results)) if chosen else ()))
    return (tuple(found[i] if i in found else _zeros(x) for i, x in enumerate(operands)),)


_values.defvjp(_values_forward, _values_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _pullback(made, chosen, operands, by_results):
    func = made.pullback(chosen, [_element(x) for x in operands])
    return _call(made, func, (*operands, *by_results))


def _pullback_forward(made, chosen, operands, by_results):
    return _pullback(made, chosen, operands, by_results), (operands, by_results)


def _pullback_backward(made, chosen, saved, directions):
    operands, by_results = saved
    func = made.pullback_jvp(chosen, [_element(x) for x in operands])
    found = _call(made, func, (*operands, *by_results, *directions))
    by_operands = dict(zip(chosen, found[len(by_results) :]))
    return tuple(by_operands[i] if i in by_operands else _zeros(x) for i, x in enumerate(operands)), tuple(found[: len(by_results)])


_pullback.defvjp(_pullback_forward, _pullback_backward)


class ElementFunction(Elementwise):
    """An elementwise function for JAX arrays, see `function`."""

    def __init__(self, thing):
        super().__init__(thing, "kjit.jax.function")

    def __call__(self, *operands):
        """Applies the function to the elements of numbers and of arrays that broadcast. Returns an
        array, or a tuple of arrays if the function returns a tuple. Raises TypeError without
        arguments."""
        if not operands:
            raise TypeError(f"{self.__name__}() takes at least one array")
        # JAX sums the derivatives over broadcast dimensions
        wide = jnp.broadcast_arrays(*(jnp.asarray(x) for x in operands))
        results = _values(self, tuple(wide))
        return tuple(results) if self._count([_element(x) for x in wide])[1] else results[0]


def function(thing):
    """Returns a JAX function with derivatives, usable in jax.jit, jax.vmap, jax.grad and so on.

        softplus = kjit.jax.function(lambda x: kjit.log1p(kjit.exp(x)))
        jax.grad(lambda x: softplus(x).sum())(x)

    thing: a Python function or a kjit.func, which is applied to the elements of arrays that
    broadcast. kjit.vjp computes first derivatives, and kjit.jvp of kjit.vjp computes second
    derivatives. JAX rejects third derivatives, and forward-mode derivatives (jax.jvp, jax.jacfwd),
    as for every jax.custom_vjp function.

    The compiled program calls kjit on the CPU through jax.pure_callback; JAX copies arrays on other
    devices for these calls. Raises TypeError if `thing` is not a function, or if an array has a
    type that kjit does not have.
    """
    return ElementFunction(thing)

"""Functions that apply a function of elements to whole arrays: `kjit.vectorize` and `kjit.guvectorize`."""

import functools

from . import _ufuncs, dtypes
from ._algorithms import _outputs, function_of, map, of_element, wrong_count
from ._errors import CLASSES, KernelError


class Ufunc(_ufuncs.Folds):
    """A function of elements that is applied to arrays, see `kjit.vectorize`."""

    def __init__(self, function, signature=None):
        self._function = function_of(function, "what is vectorized")
        self.signature = signature
        functools.update_wrapper(self, self._function.py_func)
        names = self._function._parameters()
        self.nin = len(names) - (_outputs(signature) or 0)
        defaults = self._function.py_func.__defaults__ or ()
        # A call can omit parameters with defaults, which are the last parameters. With core dimensions the last parameters are
        # the results.
        self._least = self.nin if signature else max(0, self.nin - len(defaults))

    @functools.cached_property
    def nout(self):
        """The number of results. Without signatures it is the number of results for float64 arguments, or else for int64 arguments."""
        if self.signature:
            return _outputs(self.signature)
        import numpy

        try:
            made = map(self._function, *(numpy.empty(0) for _ in range(self.nin)), device="cpu")
        except CLASSES["KJIT_ERROR_TYPE"]:
            made = map(self._function, *(numpy.empty(0, "i8") for _ in range(self.nin)), device="cpu")
        return len(made) if isinstance(made, tuple) else 1

    @_ufuncs.with_overrides
    def __call__(self, *operands, out=None, where=None, dtype=None, casting="same_kind", **options):
        """Applies the function to arrays and numbers, which broadcast. For shapes, options and errors see `kjit.map`. casting says which
        conversions of the results to `out` are allowed, as in NumPy."""
        if len(operands) == self.nin + 1 and out is None and not self.signature and getattr(operands[-1], "ndim", None) is not None:
            operands, out = operands[:-1], operands[-1]
        if self.signature and out is None and len(operands) == self.nin + self.nout:
            operands, given = operands[: self.nin], operands[self.nin :]
            out = given[0] if self.nout == 1 else given
        if not self._least <= len(operands) <= self.nin:
            count = self.nin if self._least == self.nin else f"{self._least} to {self.nin}"
            raise wrong_count(self.__name__, count, len(operands))
        _ufuncs.check_casting(casting)
        if casting != "same_kind" and out is not None and not self.signature:
            self._check_results(operands, out, casting)
        try:
            return map(self._function, *operands, out=out, where=where, dtype=dtype, signature=self.signature, **options)
        except KernelError as error:
            is_known = not self.signature and where is None
            raise of_element(error, self.__name__, self._function, operands if is_known else None) from None

    def _check_results(self, operands, out, casting):
        """Raises an error if casting does not allow the conversion of the results to the output arrays."""
        import numpy

        samples = [x if isinstance(x, (bool, int, float, complex)) else numpy.empty(0, _numpy_type(x)) for x in operands]
        if all(not hasattr(x, "dtype") for x in samples):
            return
        made = map(self._function, *samples, device="cpu")
        outs = out if isinstance(out, tuple) else (out,)
        for found, array in zip(made if isinstance(made, tuple) else (made,), outs):
            if not numpy.can_cast(found.dtype, _numpy_type(array), casting):
                raise TypeError(
                    f"Cannot cast ufunc '{self.__name__}' output from {found.dtype!r} to {_numpy_type(array)!r} with casting rule "
                    f"'{casting}'"
                )

    @property
    def as_function(self):
        """Returns the function that kernels and functions call."""
        return self._function

    @_ufuncs.with_overrides
    def outer(self, *operands, out=None, **options):
        """Applies the function to each element of the first operand with each element of the second. The result shape is x.shape +
        y.shape."""
        return map(self._function, *operands, out=out, outer=True, **options)

    @_ufuncs.with_overrides
    def reduce(self, x, axis=0, dtype=None, out=None, keepdims=False, initial=None, **options):
        """Reduces an axis with the function as the operator, like NumPy's `ufunc.reduce`. The function must be associative."""
        from . import _folds

        x = _ufuncs.converted(x, dtype)
        made = _folds.reduce(x, self._function, axis=axis, initial=initial, out=out, **options)
        return _ufuncs.with_kept(made, tuple(x.shape), axis) if keepdims and out is None else made

    @_ufuncs.with_overrides
    def accumulate(self, x, axis=0, dtype=None, out=None, **options):
        """Computes the running reduction along an axis, like NumPy's `ufunc.accumulate`."""
        from . import _folds

        return _folds.scan(_ufuncs.converted(x, dtype), self._function, axis=axis, out=out, **options)

    @_ufuncs.with_overrides
    def at(self, x, places, values, **options):
        """Sets `x[places[i]]` to function(`x[places[i]]`, `values[i]`) for each i, like NumPy's `ufunc.at`. The function must be
        commutative and associative."""
        from . import _folds

        return _folds.update_at(x, places, values, self._function, commutes=True, **options)

    def __repr__(self):
        return f"<kjit.Ufunc {self.__qualname__}>"


def _numpy_type(x):
    """Returns the NumPy dtype of an operand's elements."""
    import numpy

    if not hasattr(x, "dtype"):
        x = numpy.asarray(x)
    name = dtypes.name_of(x.dtype)
    return numpy.dtype(dtypes._NUMPY.get(name, x.dtype))


def vectorize(function=None, signatures=None, **options):
    """Makes a function of elements a function of arrays, which broadcast: `vectorize(f)(x, 2.5, out=r)`. The result has the methods
    `outer`, `reduce`, `accumulate` and `at` of NumPy's ufuncs. The function is compiled for the types of the arguments and runs on the
    arrays' device.

    With parentheses, as in Numba, `@vectorize()` or `@vectorize(["float32(float32, float32)"], target="cuda")`, the function has Numba's
    number types and conversions. With target "cpu" or "parallel" it runs on the CPU cores, with "cuda" on the first GPU or on the device
    that KJIT_DEVICE names. A call uses the first signature to which all arguments can be converted safely, like NumPy's ufuncs, and the
    result has this signature's type. identity is 0 or 1 and is the identity of `reduce`. The options `nopython`, `cache`, `fastmath` and
    `inline` have no effect.

    Raises TypeError if the argument is not a function or a signature has no result. The call raises TypeError if no signature fits its
    types.
    """
    if function is None or isinstance(function, (list, tuple, str)) or signatures is not None or options:
        from .cuda import reduction

        given = function if signatures is None else signatures
        return reduction.vectorize_for([] if given is None else given, **options)
    return Ufunc(function)


def guvectorize(signature, layout=None, **options):
    """Makes a function of small arrays a function of larger arrays, whose first dimensions broadcast: `@guvectorize("(n),(n)->()")`. The
    function writes its results to its last arguments; a result of `()` is an array with one element. Call it as `f(x, y, out=r)`. For
    shapes, options and errors see `kjit.map`.

    With signatures first, as in Numba, `@guvectorize(["void(float64[:], float64[:])"], "(n)->()")`, arguments and results have the types of
    the first signature to which all arguments can be converted safely. With options and without signatures, `@guvectorize("(n),(m)->(m)",
    nopython=True)`, the types are those of each call, which also passes the result arrays.

    A call takes `axis`, `axes` and `keepdims`, like NumPy's ufuncs. writable_args are the positions or names of inputs that the function
    writes. options: see `kjit.vectorize`.
    """
    if layout is not None:
        from .cuda import gufuncs

        return gufuncs.guvectorize_for(signature, layout, **options)
    if isinstance(signature, str) and options:
        from .cuda import gufuncs

        return gufuncs.guvectorize_for([], signature, **options)
    if not isinstance(signature, str):
        raise TypeError('guvectorize takes core dimensions, "(m,n),(n)->(m)", or signatures of types and core dimensions')
    return lambda function: Ufunc(function, signature)

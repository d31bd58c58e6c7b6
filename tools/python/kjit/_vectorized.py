"""Functions of elements as functions of arrays: `kjit.vectorize` and `kjit.guvectorize`."""

import functools

from . import _ufuncs, dtypes
from ._algorithms import _outputs, function_of, map, of_element, wrong_count
from ._errors import CLASSES, KernelError


class Ufunc(_ufuncs.Folds):
    """A function of elements over arrays, see `kjit.vectorize`."""

    def __init__(self, function, signature=None):
        self._function = function_of(function, "what is vectorized")
        self.signature = signature
        functools.update_wrapper(self, self._function.py_func)
        names = self._function._parameters()
        self.nin = len(names) - (_outputs(signature) or 0)
        defaults = self._function.py_func.__defaults__ or ()
        # Parameters with defaults need not be given: they are the last ones, and with core dimensions those are the results.
        self._least = self.nin if signature else max(0, self.nin - len(defaults))

    @functools.cached_property
    def nout(self):
        """The number of results: of a function of elements those that it returns for float64, or else for int64."""
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
        """The function over arrays and numbers, which broadcast; see `kjit.map` for shapes, options and errors. casting: which
        conversions of the results to `out` are allowed, as in NumPy."""
        if len(operands) == self.nin + 1 and out is None and not self.signature and getattr(operands[-1], "ndim", None) is not None:
            operands, out = operands[:-1], operands[-1]
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
        """Whether the results are converted to the arrays for them."""
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
        """What kernels and functions call."""
        return self._function

    @_ufuncs.with_overrides
    def outer(self, *operands, out=None, **options):
        """The function of each element of the first operand with each of the second; the shape is x.shape + y.shape."""
        return map(self._function, *operands, out=out, outer=True, **options)

    @_ufuncs.with_overrides
    def reduce(self, x, axis=0, dtype=None, out=None, keepdims=False, initial=None, **options):
        """The function as an operator over an axis, as NumPy's `ufunc.reduce`; it has to be associative."""
        from . import _folds

        x = _ufuncs.converted(x, dtype)
        made = _folds.reduce(x, self._function, axis=axis, initial=initial, out=out, **options)
        return _ufuncs.with_kept(made, tuple(x.shape), axis) if keepdims and out is None else made

    @_ufuncs.with_overrides
    def accumulate(self, x, axis=0, dtype=None, out=None, **options):
        """The function over the elements up to each one along an axis, as NumPy's `ufunc.accumulate`."""
        from . import _folds

        return _folds.scan(_ufuncs.converted(x, dtype), self._function, axis=axis, out=out, **options)

    @_ufuncs.with_overrides
    def at(self, x, places, values, **options):
        """`x[places[i]]` becomes the function of it and `values[i]`, as NumPy's `ufunc.at`; the function has to commute and to
        be associative."""
        from . import _folds

        return _folds.update_at(x, places, values, self._function, commutes=True, **options)

    def __repr__(self):
        return f"<kjit.Ufunc {self.__qualname__}>"


def _numpy_type(x):
    """NumPy's data type of the elements of an operand."""
    import numpy

    if not hasattr(x, "dtype"):
        x = numpy.asarray(x)
    name = dtypes.name_of(x.dtype)
    return numpy.dtype(dtypes._NUMPY.get(name, x.dtype))


def vectorize(function=None, signatures=None, **options):
    """Makes a function of elements one of arrays, which broadcast: `vectorize(f)(x, 2.5, out=r)`, with `outer`, `reduce`,
    `accumulate` and `at` as NumPy's ufuncs have them. The function is compiled for the types that come, on the device where the
    arrays are.

    As users of Numba write it, with parentheses, `@vectorize()`, `@vectorize(["float32(float32, float32)"], target="cuda")`: with
    Numba's types of numbers and conversions. target: "cpu" and "parallel" run on the cores of the CPU, "cuda" on the first GPU, or where
    KJIT_DEVICE says. A call takes the first signature to which all arguments are converted safely, as NumPy's ufuncs do; the
    result has the signature's type. identity: 0 or 1, of `reduce`. `nopython`, `cache`, `fastmath` and `inline` change nothing.

    TypeError: what is no function, signatures without a result; of the call, types that no signature takes."""
    if function is None or isinstance(function, (list, tuple, str)) or signatures is not None or options:
        from .cuda import reduction

        given = function if signatures is None else signatures
        return reduction.vectorize_for([] if given is None else given, **options)
    return Ufunc(function)


def guvectorize(signature, layout=None, **options):
    """Makes a function of small arrays one of larger ones, whose first dimensions broadcast: `@guvectorize("(n),(n)->()")`. The
    function writes its results, its last arguments, of which one of `()` is an array of one. Called as `f(x, y, out=r)`; see
    `kjit.map` for shapes, options and errors.

    As users of Numba write it, with signatures first, `@guvectorize(["void(float64[:], float64[:])"], "(n)->()")`: arguments and
    results have the types of the first signature to which all arguments are converted safely. With options and without signatures,
    `@guvectorize("(n),(m)->(m)", nopython=True)`, the types are those of each call, which gives the arrays for results, too.
    A call takes `axis`, `axes` and `keepdims`, as NumPy's ufuncs do. writable_args: places or names of inputs that the function
    writes. options: see `kjit.vectorize`."""
    if layout is not None:
        from .cuda import gufuncs

        return gufuncs.guvectorize_for(signature, layout, **options)
    if isinstance(signature, str) and options:
        from .cuda import gufuncs

        return gufuncs.guvectorize_for([], signature, **options)
    if not isinstance(signature, str):
        raise TypeError('guvectorize takes core dimensions, "(m,n),(n)->(m)", or signatures of types and core dimensions')
    return lambda function: Ufunc(function, signature)

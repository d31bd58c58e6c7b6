"""njit, prange and the number of threads: functions on the CPU in the form that Numba's users write
them."""

import enum
import functools
import os
import threading
import types

from . import _aligned, _functions, _kjit, _njit_code, _overloading
from ._composed import Composed, result_shape
from ._errors import CLASSES, Error, NotCompiledError, SourceError, SourceTypeError, warn
from ._shapes import shape_of
from .dtypes import SCALARS, name_of
from .frontend import parallel

# _kjit finds the source of a function that exec() has made only if the function was made after this call
_kjit.listen()
_deciding = threading.local()  # the functions whose runs_in_python is being determined, innermost last
# Numba's options. kjit ignores the options in the last row, because its behaviour does not depend on them.
_OPTIONS = frozenset(
    """parallel fastmath boundscheck error_model inline debug interruptible nopython forceobj looplift locals pipeline_class
    nogil cache no_cpython_wrapper no_cfunc_wrapper no_rewrites target_backend""".split()
)
_REFUSED = {
    "forceobj": "there is no object mode: call the function without njit",
    "looplift": "there is no object mode: move the loop to a separate function",
    "pipeline_class": "Numba's passes are not there",
}
_FAST = frozenset("nnan ninf nsz arcp contract afn reassoc fast".split())
# Codes of compiler errors about arrays that are used as values.
_OF_ARRAYS = frozenset(("ARRAY_AS_NUMBER", "ARRAY_ASSIGNED", "ARRAY_ELEMENTS", "ARRAY_OF_FIELDS"))
_ERRORS = {kind.__name__: kind for kind in CLASSES.values()}
_COMPILING = (SourceError, NotCompiledError, _ERRORS["TypingError"], _ERRORS["UnknownNameError"])
_AGAIN = object()


def prange(*bounds):
    """Like range, but the iterations of the loop run on all cores in a function made by
    kjit.njit(parallel=True)."""
    return range(*bounds)


prange.kjit_loop = "prange"  # type: ignore[attr-defined]


def _cores():
    return max(1, len(os.sched_getaffinity(0)))


def set_num_threads(n):
    """Sets the maximum number of cores for CPU launches of this Python thread. Raises ValueError
    unless n is from 1 to the number of cores available to the process, and TypeError if n is not an
    integer."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"the number of threads must be an integer, not {type(n).__name__}")
    if not 1 <= n <= _cores():
        raise ValueError(
            f"the number of threads must be from 1 to {_cores()}, the number of cores that this process may use, not {n}"
        )
    _kjit.set_threads(n)


def get_num_threads():
    """Returns the maximum number of cores for CPU launches of this Python thread."""
    return _kjit.get_threads() or _cores()


# njit functions leave calls of these to Python
for _setting in (set_num_threads, get_num_threads):
    vars(_setting).update(runs_in_python=True, has_code=False)


def _check_options(options):
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"kjit.njit has no option {min(unknown)!r}; the options are {', '.join(sorted(_OPTIONS))}")
    for name, reason in _REFUSED.items():
        if options.get(name):
            raise TypeError(f"kjit.njit does not support {name}={options[name]!r}: {reason}")
    if options.get("error_model", "python") not in ("python", "numpy"):
        raise ValueError(f'error_model must be "python" or "numpy", not {options["error_model"]!r}')
    if options.get("inline") not in (None, True, False, "always", "never"):
        raise ValueError(f'inline must be "always" or "never", not {options["inline"]!r}')


def _is_fast(fastmath):
    """Returns whether fastmath enables all of LLVM's flags. A set with fewer flags has no effect.
    Raises ValueError for an unknown flag."""
    if not isinstance(fastmath, (set, frozenset, dict, list, tuple, str)):
        return bool(fastmath)
    flags = (
        {fastmath}
        if isinstance(fastmath, str)
        else {f for f in fastmath if not isinstance(fastmath, dict) or fastmath[f]}
    )
    if flags - _FAST:
        raise ValueError(f"fastmath has no flag {min(flags - _FAST)!r}; the flags are {', '.join(sorted(_FAST))}")
    return "fast" in flags or flags >= _FAST - {"fast"}


def _local_type(name, kind):
    """Returns the kernel IR's name of a type in njit's option `locals`."""
    from .cuda import types as numba_types

    own = numba_types.of_numba(kind)
    text = getattr(own, "text", None) or name_of(kind)
    if text not in SCALARS:
        raise TypeError(
            f"locals={{{name!r}: {kind}}}: the type of a variable must be a number type such as float32 or int64"
        )
    return text


def _is_parallel(option):
    return bool(option) and option.get("prange", True) if isinstance(option, dict) else bool(option)


class Njit(_njit_code.Code, Composed, _functions.Function):
    """A function on the CPU, made by kjit.njit."""

    is_typed = is_njit = True
    _wants_driver = False  # whether Python has to run the function, because compiled code cannot return its results
    _is_fixed = False  # whether disable_compile() has prevented further compilations
    _is_inner = False  # whether the function that made this copy converts the copy's tuples to named tuples
    _joins_texts = True  # whether the inferred types include those of statements that a string argument rules out
    copies_records = True  # whether records in results are copied
    # if there is a single signature: the text in the kernel IR of its result type, and of the types of its parameters
    # that are numbers; compiled callers convert to these types
    result = parameter_texts = None
    local_types: dict = {}  # variable name -> type, from the option `locals`

    def __init__(self, function, options, signatures=()):
        _functions._check_function(function, "njit")
        _check_options(options)
        self.error_model = options.get("error_model", "python")
        is_checked = options.get("boundscheck")
        if is_checked is None:
            is_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
        checks = ["assert"] + ["division"] * (self.error_model == "python") + ["bounds"] * bool(is_checked)
        self._is_parallel = _is_parallel(options.get("parallel"))
        self._prepare(
            function,
            {
                "checks": checks,
                "debug": options.get("debug"),
                "fastmath": _is_fast(options.get("fastmath")),
                "strict": not _is_fast(options.get("fastmath")),  # a*b+c is rounded twice, as in Numba and NumPy
                "inline": True if options.get("inline") in (True, "always") else None,
                "numba": True,
                "indefinite": True,
                "interruptible": options.get("interruptible"),
            },
        )
        self._splitter_made = self._loaded = self._driver_made = None
        self._options, self._signatures = options, tuple(signatures)
        if len(self._signatures) == 1:
            from . import _signatures

            only = self._signatures[0]
            self.result, self.parameter_texts = _signatures.result_text(only), _signatures.parameter_texts(only)
        self.local_types = {name: _local_type(name, kind) for name, kind in (options.get("locals") or {}).items()}
        self._is_warned = []  # shared with copies of the object

    @classmethod
    def _remake(cls, function, options):
        return cls(function, options)

    def _copy(self):
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _made=None, _loaded=None, _splitter_made=None, _driver_made=None)
        for name in ("_variants", "_overloads", "_noted"):
            copy.__dict__.pop(name, None)
        return copy

    def disable_compile(self, val=True):
        """Prevents the compilation for further argument types: calls convert their arguments to the
        types of earlier calls. val=False allows it again."""
        if val and not self._is_fixed:
            self._freed, self._signatures = self._signatures, tuple(self.nopython_signatures)
        elif not val and self._is_fixed:
            self._signatures = self._freed
        self._is_fixed = val
        self._forget()

    def recompile(self):
        """Compiles the function again at its next call, with the present values of its globals."""
        self.__dict__.update(_made=None, _loaded=None, _splitter_made=None, _driver_made=None, _wants_driver=False)
        for name in ("_variants", "_overloads", "by_signature"):
            self.__dict__.pop(name, None)
        self._forget()

    # ---- functions that stay in Python ----

    @property
    def _splitter(self):
        if self._splitter_made is None:
            self._splitter_made = parallel.Splitter(self.py_func, self._is_parallel, self.inner, self.__dict__.get("known"))
        return self._splitter_made

    def inner(self, function):
        """Returns a function of njit with the options of this one, for a function that this function defines or calls."""
        return type(self)(function, {name: value for name, value in self._options.items() if name not in ("nopython", "locals")})

    @property
    def runs_in_python(self):
        """Whether Python runs the function and calls its compiled loops and expressions. This is so
        if the function has parallel loops, creates or returns arrays, or calls a NumPy function
        that kernels lack."""
        return self._wants_driver or not self._decide(self._splitter.is_whole)

    @property
    def has_code(self):
        """Whether compiled code can call the function."""
        return not self._wants_driver and self._decide(self._splitter.has_code)

    def _decide(self, question):
        """Returns the result of `question`, a function that examines the body. If the body calls the function itself, returns
        True for this call, so that the rest of the body decides."""
        deciding = _deciding.__dict__.setdefault("functions", [])
        if any(self is function for function in deciding):
            return True
        deciding.append(self)
        try:
            return question()
        finally:
            deciding.pop()

    def _call_driver(self, *args, **keywords):
        if self._driver_made is None:
            from . import _driver

            if self.local_types:
                raise NotImplementedError(
                    f"{self.__name__}: locals= is only for functions that are compiled as a whole, but this function creates or returns arrays"
                )
            self._check_interpreted()
            self._driver_made = _driver.make(self)
        result = self._driver_made(*args, **keywords)
        self._note_call((*args, *keywords.values()), result)
        return result

    def _check_interpreted(self):
        """Warns once about the statements that Python's interpreter runs. With nopython=True it
        raises an error instead, except for loops that only call njit functions."""
        # rejected statements come before other reasons
        reasons = sorted(self._splitter.interpreted(), key=lambda reason: reason[2])
        if not reasons:
            return
        node, reason, is_allowed = reasons[0]
        source = self._splitter.source
        error = None if is_allowed else source.error(node, f"{reason}, which nopython=True does not allow")
        self.warn_of_interpreter(node, reason, error)

    def warn_of_interpreter(self, node, reason, error):
        """Warns once about a statement that the interpreter runs. error: the exception to raise
        with nopython=True, or None if the statement is allowed then."""
        if self._options.get("nopython") and error is not None:
            raise error
        if not self._is_warned:
            self._is_warned.append(True)
            source = self._splitter.source
            warn(*source.place(node), f"{self.py_func.__name__}: {reason}", source.quote(node.lineno))

    # ---- calls ----

    def _load(self):
        if self._signatures or self._is_fixed:
            return self._call_overload
        try:
            if self.runs_in_python:
                return self._call_driver
            made = self._made_module()
            shape, defaults = result_shape(made), () if "known" in self.__dict__ else _functions._defaults(self.py_func)
            loaded = (*self._module(), self._parameters(), defaults, True, False)
        except Error as error:  # the traceback inside kjit is dropped, because the error belongs to the program
            error = error.with_traceback(None)
            if self._is_decided_by_texts(error):
                return self._load()
            if self._given or not isinstance(error, _COMPILING):
                raise error from None
            return functools.partial(self._call_constants, error)
        if self._is_inner or shape is None and not made.returns_optional:
            return loaded
        inner = self._copy()  # the extension gets the copy as a function that returns a plain tuple
        inner.__dict__["_is_inner"] = True
        return functools.partial(_finish, self, inner, shape, made.returns_optional)

    def _call_constants(self, error, *args, **keywords):
        """Calls a function that can only be compiled for constants or functions as arguments. For
        other arguments it raises `error`."""
        args = self._bind(args, keywords)
        if all(shape_of(value, True, True) is None for value in args):
            raise error
        return self._call_composed(args, None)

    def _bind(self, args, keywords):
        import inspect

        bound = inspect.signature(self.py_func).bind(*args, **keywords)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _call_overload(self, *args, **keywords):
        """Calls the overload of the signature that fits best, and converts the arguments and the
        result to its types."""
        from . import _signatures

        if keywords or len(args) < self.py_func.__code__.co_argcount:
            args = self._bind(args, keywords)
        signature, values = _signatures.choose(self._signatures, args, self.py_func.__name__)
        overloads = self.__dict__.setdefault("_overloads", {})
        if signature not in overloads:
            made = self._copy()
            made.__dict__.update(_signatures=(), _is_fixed=False, result=_signatures.result_text(signature))
            overloads[signature] = made
        result = overloads[signature](*values)
        return result if signature.return_type is None else self._as_declared(signature.return_type, result)

    def _as_declared(self, kind, result):
        """Returns a result converted to the result type of a signature. Raises an error with the function's line if Numba has no
        such conversion."""
        from . import _signatures

        try:
            return _signatures.convert_result(kind, result)
        except TypeError as error:
            node = self._splitter.node
            if node is None:
                raise
            raise self._splitter.source.error(node, f"{self.__name__}(): {error}", SourceTypeError) from None

    def _call_otherwise(self, args, error):
        """The extension calls this method after a compiled call has failed with `error`. A function
        that returns arrays or computes with whole arrays runs in Python from now on. For other
        functions the result is NotImplemented."""
        if _overloading.learn(error):
            self.__dict__["_made"] = None
            self._forget()
            return self(*args)
        if isinstance(error, _ERRORS["ArgumentError"]) and any(isinstance(value, enum.Enum) for value in args):
            return self._call_composed(args, None)
        if self._is_decided_by_texts(error):
            self._forget()
            return self(*args)
        again = _aligned.call_again(self, args, error)
        if again is not NotImplemented:
            return again
        is_of_python = self.is_of_arrays(error) or isinstance(error, _ERRORS["ArgumentError"]) and any(map(_is_index, args))
        if self._splitter.node is None or self._wants_driver or not is_of_python:
            return NotImplemented
        self.__dict__["_wants_driver"] = True
        if self._given:  # the caller still has the original tuples, so the caller repeats the call
            return _AGAIN
        self._forget()
        return self(*args)

    @staticmethod
    def is_of_arrays(error):
        """Returns whether a compilation failed because of arrays as values, or because of a NumPy
        function that Python can run."""
        if isinstance(error, NotCompiledError):
            return True
        code = getattr(error, "code", None)  # a KeyboardInterrupt has no code
        return code in _OF_ARRAYS or Njit.is_of_result(error)

    @staticmethod
    def is_of_result(error):
        """Returns whether a compilation failed because a result is an array."""
        return getattr(error, "code", None) == "C_TYPE"

    def _call_composed(self, args, _):
        result = super()._call_composed(args, _)
        return super()._call_composed(args, _) if result is _AGAIN else result

    def _plain_parameters(self):
        return _functions._parameters_of(self.py_func)

    def _parameters(self):
        return self._flat_parameters() if self._given else super()._parameters()

    # ---- compilation ----

    def _builder(self):
        builder = super()._builder()
        builder.joins_texts = self._joins_texts
        self.__dict__["_texts"] = builder.texts
        return builder

    def _write(self):
        if not self._given:
            return super()._write()
        builder = self._builder()
        return builder.finish(self._write_variant(builder))

    def _is_decided_by_texts(self, error):
        """Returns whether to compile again after a failure, without the statements that the string
        arguments rule out. Numba compiles all of them, because their types contribute to the result
        type."""
        is_possible = self._joins_texts and self.__dict__.get("_texts") and isinstance(error, _COMPILING)
        if is_possible:
            self.__dict__.update(_joins_texts=False, _made=None)
        return is_possible

    # ---- the types of calls ----

    def _note_call(self, args, result):
        """Called after the first call with arguments of these types, and by variants of the
        function."""
        if self._given or self._is_inner:
            self.__dict__["_is_noted"] = True
            return
        from . import _overloads

        _overloads.note(self, args, result)

    @property
    def overloads(self):
        """A dictionary from argument types to kjit._overloads.Overload. It has an entry for each
        signature that was passed to njit. Without signatures it has an entry for each combination
        of types that the function was called with."""
        from . import _overloads

        return {tuple(overload.signature.args): overload for overload in _overloads.all_of(self)}

    @property
    def signatures(self):
        """The argument types of each overload."""
        return [tuple(signature.args) for signature in self.nopython_signatures]

    @property
    def nopython_signatures(self):
        """Each overload's signature."""
        from . import _overloads

        return [overload.signature for overload in _overloads.all_of(self)]

    @functools.cached_property
    def by_signature(self):
        """For compiled callers: the choice among several signatures, or None."""
        return _overloading.of_signatures(self, self._signatures) if len(self._signatures) > 1 else None

    @property
    def ir(self):
        """The kernel IR of the function, or of its loops, as a string."""
        if not self.runs_in_python:
            return self._made_module().plain
        from . import _driver

        _driver.make(self)
        return "\n".join(part._made_module().plain for part in self._parts)

    def __repr__(self):
        return f"<kjit.njit {self.py_func.__qualname__}>"


def _is_index(value):
    """Returns whether an argument is a slice or an ellipsis, with which Python indexes arrays."""
    return isinstance(value, (slice, type(...)))


def _finish(outer, inner, shape, is_optional, *args, **keywords):
    """Calls the compiled function and converts its result to the Python function's result. With is_optional, the
    compiled function returns a value and whether it exists. shape restores named tuples and enum members."""
    if not outer._given and any(isinstance(value, (tuple, enum.Enum)) for value in (*args, *keywords.values())):
        # the result may contain named tuples or enum members of the arguments' classes
        return outer._call_composed(outer._bind(args, keywords), None)
    result = inner(*args, **keywords)
    if inner.__dict__.pop("_is_noted", False):
        outer._note_call(args if outer._given else outer._bind(args, keywords), result)
    if inner._wants_driver:  # this call has shown that Python has to run the function
        outer.__dict__["_wants_driver"] = True
        outer._forget()
        return result
    if is_optional:
        result, is_there = result
        if not is_there:
            return None
    return result if shape is None else shape.give_names(result)


def njit(function=None, **options):
    """Compiles a Python function for the CPU, like numba.njit. It is compiled for the argument
    types of each call, changes arrays in place, and returns numbers, tuples of numbers and, if it
    calls NumPy functions that create arrays, arrays.

    In the function, Python's numbers are int64 and float64, and negative indices count from the
    end.

    A signature or a list of signatures, such as `njit("float64(float64[:])")`, converts arguments
    and results to its types.

    parallel: runs loops over kjit.prange on all cores. Sums, products, min, max and bit operations
    of scalars in these loops are reductions.
    error_model: "python" raises an exception for a division by zero; "numpy" returns an infinity or
    NaN.
    nopython: True raises an error for statements that Python's interpreter would have to run. By
    default they cause a KjitWarning.
    fastmath: allows less exact arithmetic. boundscheck: raises IndexError for an index out of
    bounds. debug: adds debug information. interruptible: lets Ctrl-C end the function. inline:
    "always" or "never". locals: a dictionary from names of variables to their types.
    nogil, cache: have no effect. kjit always releases the GIL and keeps compiled code in its disk
    cache.

    Raises TypeError and ValueError for wrong options. Errors in the function are raised at its
    first call, as kjit.SourceError or another kjit.Error with the line.
    """
    if function is None:
        return functools.partial(njit, **options)
    if isinstance(function, Njit):
        return Njit(function.py_func, options)
    if not isinstance(function, types.FunctionType):
        from . import _signatures

        if not _signatures.is_signature(function):
            raise TypeError(f"kjit.njit takes a Python function or a signature, not {type(function).__name__}")
        parsed = _signatures.parse(function)
        return lambda inner: Njit(inner, options, parsed)
    return Njit(function, options)

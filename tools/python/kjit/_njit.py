"""njit, prange and the number of threads: functions on the CPU as users of Numba write them."""

import enum
import functools
import os
import threading
import types

from . import _aligned, _functions, _kjit
from ._composed import Composed, result_shape
from ._errors import CLASSES, Error, NotCompiledError, SourceError, warn
from ._shapes import shape_of
from .dtypes import SCALARS, name_of
from .frontend import parallel

_kjit.listen()  # so that functions of exec have a source
_deciding = threading.local()  # the functions of which runs_in_python is asked, one within the other
# Numba's options. Of the last row kjit has no use: what they switch is always so, or never.
_OPTIONS = frozenset(
    """parallel fastmath boundscheck error_model inline debug interruptible nopython forceobj looplift locals pipeline_class
    nogil cache no_cpython_wrapper no_cfunc_wrapper no_rewrites target_backend""".split()
)
_REFUSED = {
    "forceobj": "there is no object mode: call the function without njit",
    "looplift": "there is no object mode: move the loop to a function of its own",
    "pipeline_class": "Numba's passes are not there",
}
_FAST = frozenset("nnan ninf nsz arcp contract afn reassoc fast".split())
# Codes of the compiler's errors that are about arrays as values.
_OF_ARRAYS = frozenset(("ARRAY_AS_NUMBER", "ARRAY_ASSIGNED", "ARRAY_ELEMENTS", "ARRAY_OF_FIELDS"))
_ERRORS = {kind.__name__: kind for kind in CLASSES.values()}
_COMPILING = (SourceError, NotCompiledError, _ERRORS["TypingError"], _ERRORS["UnknownNameError"])
_AGAIN = object()


def prange(*bounds):
    """range, whose iterations a function made by kjit.njit(parallel=True) spreads over the cores."""
    return range(*bounds)


prange.kjit_loop = "prange"  # type: ignore[attr-defined]


def _cores():
    return max(1, len(os.sched_getaffinity(0)))


def set_num_threads(n):
    """How many cores launches of this thread of Python on the CPU are spread over at most, from 1 to those that there are."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"a number of threads is an integer, not {type(n).__name__}")
    if not 1 <= n <= _cores():
        raise ValueError(f"threads are 1 to {_cores()}, which this process may use, not {n}")
    _kjit.set_threads(n)


def get_num_threads():
    """How many cores launches of this thread of Python on the CPU are spread over at most."""
    return _kjit.get_threads() or _cores()


def _check_options(options):
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"kjit.njit has no option {min(unknown)!r}: {', '.join(sorted(_OPTIONS))}")
    for name, reason in _REFUSED.items():
        if options.get(name):
            raise TypeError(f"kjit.njit does not have {name}={options[name]!r}: {reason}")
    if options.get("error_model", "python") not in ("python", "numpy"):
        raise ValueError(f'error_model is "python" or "numpy", not {options["error_model"]!r}')
    if options.get("inline") not in (None, True, False, "always", "never"):
        raise ValueError(f'inline is "always" or "never", not {options["inline"]!r}')


def _is_fast(fastmath):
    """Whether all of LLVM's flags are given. A set of some of them permits less, and nothing has to be done with a permission."""
    if not isinstance(fastmath, (set, frozenset, dict, list, tuple, str)):
        return bool(fastmath)
    flags = {fastmath} if isinstance(fastmath, str) else {f for f in fastmath if not isinstance(fastmath, dict) or fastmath[f]}
    if flags - _FAST:
        raise ValueError(f"fastmath has no flag {min(flags - _FAST)!r}: {', '.join(sorted(_FAST))}")
    return "fast" in flags or flags >= _FAST - {"fast"}


def _local_type(name, kind):
    """The kernel IR's name of a type in njit's option `locals`."""
    from .cuda import types as numba_types

    own = numba_types.of_numba(kind)
    text = getattr(own, "text", None) or name_of(kind)
    if text not in SCALARS:
        raise TypeError(f"locals={{{name!r}: {kind}}}: the type of a variable is a number's: float32, int64")
    return text


def _is_parallel(option):
    return bool(option) and option.get("prange", True) if isinstance(option, dict) else bool(option)


class Njit(Composed, _functions.Function):
    """A function on the CPU, made by kjit.njit."""

    is_typed = is_njit = True
    _wants_driver = False  # its results are none of compiled code's
    _is_inner = False  # the named tuples of its results get their classes from the function around it
    _joins_texts = True  # statements under both outcomes of a comparison with a text argument have a part in the types
    copies_records = True  # which it returns
    result = None  # the type of the result as text, which a signature says
    local_types: dict = {}  # name -> type, of the option `locals`

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
                "numba": True, "indefinite": True, "interruptible": options.get("interruptible"),
            },
        )
        self._splitter_made = self._loaded = self._driver_made = None
        self._options, self._signatures = options, tuple(signatures)
        self.local_types = {name: _local_type(name, kind) for name, kind in (options.get("locals") or {}).items()}
        self._is_warned = []  # shared with copies

    @classmethod
    def _remake(cls, function, options):
        return cls(function, options)

    def _copy(self):
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _made=None, _loaded=None, _splitter_made=None, _driver_made=None)
        for name in ("_variants", "_overloads"):
            copy.__dict__.pop(name, None)
        return copy

    # ---- what runs in Python ----

    @property
    def _splitter(self):
        if self._splitter_made is None:
            self._splitter_made = parallel.Splitter(self.py_func, self._is_parallel, self.__dict__.get("known"))
        return self._splitter_made

    @property
    def runs_in_python(self):
        """Whether Python runs the function, which calls compiled loops and expressions: it has loops that are spread over the cores,
        makes arrays, returns arrays, or calls a function of NumPy that kernels do not have."""
        return self._wants_driver or not self._decide(self._splitter.is_whole)

    @property
    def has_code(self):
        """Whether compiled code can call the function."""
        return not self._wants_driver and self._decide(self._splitter.has_code)

    def _decide(self, question):
        """What a question on the body is answered with; of a function that calls itself the rest of the body decides."""
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
                raise NotImplementedError(f"{self.__name__}: locals= is for functions that are compiled whole, and this one makes or returns arrays")
            self._check_interpreted()
            self._driver_made = _driver.make(self)
        return self._driver_made(*args, **keywords)

    def _check_interpreted(self):
        """Says once which statements the interpreter runs. nopython=True refuses them, but for loops whose calls are those of
        functions made by njit: the interpreter runs no more than the loop itself."""
        reasons = sorted(self._splitter.interpreted(), key=lambda reason: reason[2])  # what is refused is first
        if not reasons:
            return
        node, reason, is_allowed = reasons[0]
        source = self._splitter.source
        error = None if is_allowed else source.error(node, f"{reason}, which nopython=True does not allow")
        self.warn_of_interpreter(node, reason, error)

    def warn_of_interpreter(self, node, reason, error):
        """Warns once of a statement that the interpreter runs. error: what nopython=True raises, or None: it allows the statement."""
        if self._options.get("nopython") and error is not None:
            raise error
        if not self._is_warned:
            self._is_warned.append(True)
            source = self._splitter.source
            warn(*source.place(node), f"{self.py_func.__name__}: {reason}", source.quote(node.lineno))

    # ---- calls ----

    def _load(self):
        if self._signatures:
            return self._call_overload
        try:
            if self.runs_in_python:
                return self._call_driver
            made = self._made_module()
            shape, defaults = result_shape(made), () if "known" in self.__dict__ else _functions._defaults(self.py_func)
            loaded = (*self._module(), self._parameters(), defaults, True, False)
        except Error as error:  # its place is in the program, not here
            error = error.with_traceback(None)
            if self._is_decided_by_texts(error):
                return self._load()
            if self._given or not isinstance(error, _COMPILING):
                raise error from None
            return functools.partial(self._call_constants, error)
        if self._is_inner or shape is None and not made.returns_optional:
            return loaded
        inner = self._copy()  # the extension knows it as a function that gives a plain tuple
        inner.__dict__["_is_inner"] = True
        return functools.partial(_finish, self, inner, shape, made.returns_optional)

    def _call_constants(self, error, *args, **keywords):
        """Calls a function that has a meaning for constants and functions as arguments only: for others it has failed."""
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
        """Of a function with signatures: the one that fits, whose types arguments and result are converted to."""
        from . import _signatures

        if keywords or len(args) < self.py_func.__code__.co_argcount:
            args = self._bind(args, keywords)
        signature, values = _signatures.choose(self._signatures, args, self.py_func.__name__)
        overloads = self.__dict__.setdefault("_overloads", {})
        if signature not in overloads:
            made = self._copy()
            made.__dict__.update(_signatures=(), result=_signatures.result_text(signature))
            overloads[signature] = made
        return overloads[signature](*values)

    def _call_otherwise(self, args, error):
        """The extension calls this after a compiled call has failed with `error`. Functions that return arrays or compute
        with whole arrays run in Python from then on. For other functions the result is NotImplemented."""
        if isinstance(error, _ERRORS["ArgumentError"]) and any(isinstance(value, enum.Enum) for value in args):
            return self._call_composed(args, None)
        if self._is_decided_by_texts(error):
            self._forget()
            return self(*args)
        again = _aligned.call_again(self, args, error)
        if again is not NotImplemented:
            return again
        if self._splitter.node is None or self._wants_driver or not self.is_of_arrays(error):
            return NotImplemented
        self.__dict__["_wants_driver"] = True
        if self._given:  # the caller has the tuples
            return _AGAIN
        self._forget()
        return self(*args)

    @staticmethod
    def is_of_arrays(error):
        """Whether a failure of the compiler is about arrays as values, or about a function of NumPy that Python can run."""
        if isinstance(error, NotCompiledError):
            return True
        code = getattr(error, "code", None)  # a KeyboardInterrupt has none
        return code in _OF_ARRAYS or Njit.is_of_result(error)

    @staticmethod
    def is_of_result(error):
        """Whether a failure of the compiler says that a result is an array."""
        return getattr(error, "code", None) == "C_TYPE"

    def _call_composed(self, args, _):
        result = super()._call_composed(args, _)
        return super()._call_composed(args, _) if result is _AGAIN else result

    def _plain_parameters(self):
        return _functions._parameters_of(self.py_func)

    def _parameters(self):
        return self._flat_parameters() if self._given else super()._parameters()

    # ---- code ----

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
        """Whether to compile again after a failure, without the statements that the function's texts rule out. Numba compiles all of
        them, and their types decide the type of a result."""
        is_possible = self._joins_texts and self.__dict__.get("_texts") and isinstance(error, _COMPILING)
        if is_possible:
            self.__dict__.update(_joins_texts=False, _made=None)
        return is_possible

    @property
    def signatures(self):
        """The types of the parameters of each signature that the function was given."""
        return [tuple(signature.args) for signature in self._signatures]

    @property
    def ir(self):
        """The kernel IR that the function became, or its loops."""
        if not self.runs_in_python:
            return self._made_module().plain
        from . import _driver

        _driver.make(self)
        return "\n".join(part._made_module().plain for part in self._parts)

    def __repr__(self):
        return f"<kjit.njit {self.py_func.__qualname__}>"


def _finish(outer, inner, shape, is_optional, *args, **keywords):
    """The result of a function that gives (value, whether there is one), named tuples or members of enumerations, as Python has it."""
    if not outer._given and any(isinstance(value, (tuple, enum.Enum)) for value in (*args, *keywords.values())):
        return outer._call_composed(outer._bind(args, keywords), None)  # the result may have the classes of the arguments
    result = inner(*args, **keywords)
    if inner._wants_driver:  # since this call
        outer.__dict__["_wants_driver"] = True
        outer._forget()
        return result
    if is_optional:
        result, is_there = result
        if not is_there:
            return None
    return result if shape is None else shape.give_names(result)


def njit(function=None, **options):
    """Makes a function one for the CPU, as Numba's njit: it is compiled for the types of each call, changes arrays in place
    and returns numbers and tuples of them; with calls of NumPy that make arrays, those too. Numbers of Python are i64 and
    f64 in it, negative indices count from the end. Options: parallel (loops over kjit.prange run on all cores; sums,
    products, min, max and bit operations of scalars in them are reductions), fastmath, boundscheck, error_model ("python":
    a division by zero raises; "numpy"), debug, interruptible, inline ("always"), nopython (True: statements that Python's
    interpreter runs are refused; without it they are a KjitWarning); nogil and cache are what is always so. A signature or a
    list of them, `njit("float64(float64[:])")`, converts arguments and results."""
    if function is None:
        return functools.partial(njit, **options)
    if isinstance(function, Njit):
        return Njit(function.py_func, options)
    if not isinstance(function, types.FunctionType):
        from . import _signatures

        if not _signatures.is_signature(function):
            raise TypeError(f"kjit.njit takes a function of Python or a signature, not {type(function).__name__}")
        parsed = _signatures.parse(function)
        return lambda inner: Njit(inner, options, parsed)
    return Njit(function, options)

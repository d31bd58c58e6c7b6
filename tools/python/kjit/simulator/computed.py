"""Functions whose results do not depend on the thread, such as math.sin and cuda.popc. Their results
are those of the CPU target. The interpreter computes the functions in `exact`; all other functions
are compiled for the CPU."""

import numpy

from .. import _errors, _functions, _kjit
from ..cuda import types as cuda_types
from ..frontend import words as language
from . import arithmetic, conversions, exact, threads

_MOST_PARAMETERS = 4


def _callers(function):
    """Returns functions with 0 to 4 parameters that call the given function, to be compiled."""
    return [
        lambda: function(),
        lambda a: function(a),
        lambda a, b: function(a, b),
        lambda a, b, c: function(a, b, c),
        lambda a, b, c, d: function(a, b, c, d),
    ]


class _Code(_functions._Compiled, _kjit.Function):
    """A function as code for the CPU, compiled for each call's types. is_debug: whether a division
    by zero raises an error."""

    _kind = "func"
    is_typed = True

    def __init__(self, function, is_debug):
        checks = ["assert", "division"] if is_debug else ["assert"]
        self._kept = None
        self._prepare(function, {"numba": True, "strict": True, "checks": checks})

    def _module(self):
        """Returns (module, name in the module). The module is made once, because none of its constants is ever
        replaced."""
        if self._kept is None:
            self._kept = super()._module()
        return self._kept

    def _load(self):
        """Returns the function's code in the form that the extension takes, like
        kjit.Function._load."""
        return *self._module(), self._parameters(), (), True, True

    def result_type(self, values):
        """Returns the name of the result type in the kernel IR."""
        return _kjit.get_result_type(*self._module(), ", ".join(cuda_types.typeof(v).text for v in values))

    def call(self, *values):
        """Calls the code. kjit's errors have a location in this file, which tells the program
        nothing, so they are raised again without a location."""
        try:
            return self(*values)
        except ZeroDivisionError:
            raise ZeroDivisionError("division by zero") from None
        except _errors.KernelError as error:
            raise _errors.KernelError(error.text or error.message, error.status) from None


def _has_type(value):
    """Returns whether compiled functions can take a value."""
    try:
        return bool(cuda_types.typeof(value).text)
    except (TypeError, NotImplementedError):
        return False


def _compiled(function, values):
    """Returns the function that computes `function` for values of these types."""
    if not isinstance(function, language.Form) and not all(map(_has_type, values)):
        return lambda *values: arithmetic.typed(function(*values))  # compiled functions cannot take lists and texts
    if len(values) > _MOST_PARAMETERS:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name}() has {len(values)} arguments, but a simulated function can have at most {_MOST_PARAMETERS}")
    caller = _callers(function)[len(values)]
    code = _Code(caller, False), _Code(caller, True)
    convert = _result_type(code[0].result_type(values))

    def compute(*values):
        result = code[threads.NOW.thread.block.launch.is_debug].call(*values)
        return tuple(c(r) for c, r in zip(convert, result)) if isinstance(convert, tuple) else convert(result)

    return compute


def _result_type(text):
    if text.startswith("("):
        return tuple(_result_type(part.strip()) for part in text[1:-1].split(",") if part.strip())
    return conversions.converter(conversions.of_text(text))


class Computed:
    """A function that the simulator calls in place of a function such as math.sin. For arrays it is
    the NumPy function."""

    def __init__(self, function):
        # _known has the function that computes the result, by the types of the arguments
        self._function, self._known = function, {}
        self.__name__ = getattr(function, "__name__", repr(function))

    def __call__(self, *arguments, **keywords):
        known = None if keywords else self._known.get(tuple(map(type, arguments)))
        return known(*arguments) if known is not None else self._call(arguments, keywords)

    def _call(self, arguments, keywords):
        if keywords or any(isinstance(a, (numpy.ndarray, tuple)) for a in arguments):
            if not isinstance(self._function, language.Form):
                return self._function(*arguments, **keywords)
            bound = dict(zip(self._function.parameters, arguments)) | keywords
            arguments = tuple(bound.get(name) for name in self._function.parameters)
        # Python numbers become NumPy scalars, because _known has only the types of these.
        values = tuple(map(arithmetic.typed, arguments))
        kinds = tuple(map(type, values))
        if kinds not in self._known:
            found = exact.find(self._function, kinds) if all(map(_has_type, values)) else None
            self._known[kinds] = found or _compiled(self._function, values)
        return self._known[kinds](*values)

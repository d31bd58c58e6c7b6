"""The kjit kernel or device function that belongs to a dispatcher, and the argument types that it
is compiled for."""

from .. import _arrays, _functions, _kjit, _records, _state
from .._shapes import shape_of
from . import arrays, types

_ARRAYS_BY = "cuda.local.array(shape, dtype) or cuda.shared.array(shape, dtype)"


class Kernel(_functions.Kernel):
    """The kjit kernel that a dispatcher launches. If the machine has a GPU, the kernel runs there, even if its arguments are host
    arrays."""

    is_typed = True
    _arrays_by = _ARRAYS_BY
    # True adds bounds checks on the CPU and lets Ctrl-C interrupt a launch there. It has no effect
    # on a GPU.
    is_careful = False

    @property
    def _bits(self):
        """The compile options that select the context: (checks, debug level, whether launches can
        be interrupted)."""
        checks, debug, interruptible = self._said_bits
        if self.is_careful and arrays.is_on_cpu():
            return checks | _state.check_bits("bounds"), debug, True
        return checks, debug, interruptible

    @_bits.setter
    def _bits(self, bits):
        self._said_bits = bits

    def _inspected_bits(self):
        return self._said_bits

    def _begin(self):
        *made, device, is_typed, _ = super()._begin()
        if device is None:
            device = "cuda:0" if _arrays.device().kind == "cuda" else "cpu"
        return *made, device, is_typed, _functions.ON_CURRENT_DEVICE

    def _for_arguments(self, values):
        """Returns the kernel variant for these argument values. The items in a tuple count as
        separate arguments."""
        return self._for_shapes(tuple(shape_of(value, self.is_typed) for value in values))

    def _anew(self):
        """Returns a new object for the same kernel, which is not yet translated."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__, _made=None, _is_loaded=False)
        made.__dict__.pop("_variants", None)
        return made

    def _specialize(self, text):
        """Compiles the kernel for the types in `text` on the current device, and returns (module,
        name)."""
        module, name = self._loaded_module()
        _kjit.specialize(module, name, text, _arrays.device())
        return module, name


class DeviceFunction(_functions._Compiled):
    """A device function, compiled on its own as a C function that other code can call."""

    _kind = "func"
    is_typed = True
    _arrays_by = _ARRAYS_BY

    def __init__(self, function, **options):
        self._prepare(function, options)

    def code(self, stage, signature, target, symbol=None):
        """Returns the function's code at a compilation stage, such as "ptx". symbol: the function's
        name in the code; None means its own name. The code has debug information if the function
        was compiled with debug."""
        module, name = self._module()
        know_records(self, signature)
        return _kjit.compile_function(module, name, signature, symbol, stage, target, self._bits[1])

    def find_result(self, signature):
        """Returns the name of the function's result type in the kernel IR."""
        know_records(self, signature)
        return _kjit.get_result_type(*self._module(), signature)


def device_text(kinds):
    return ", ".join(kind.text for kind in kinds)


def know_records(compiled, text):
    """Declares each record type that `text` contains in the context that compiles `compiled`."""
    for name in _records.NAMES.findall(text):
        _kjit.find_record(_state.context(*compiled._bits), name)


def any_layout(kind):
    return kind.text


def laid_out(kind):
    """Returns the kernel IR text of a type. The text of an array type has the layout that a launch
    uses for an array without gaps."""
    layout = getattr(kind, "layout", "A")
    return kind.text if layout == "A" else f"{kind.text} {layout}"


def flat_texts(kinds, text_of):
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from flat_texts(kind, text_of)
        elif isinstance(kind, types.NumberClass):
            pass  # a type is a compile-time value and not an argument
        else:  # a record is passed by reference, as an array without dimensions
            yield kind.text + "[]" if isinstance(kind, types.Record) else text_of(kind)


def target():
    from . import devices

    return devices.code_target()

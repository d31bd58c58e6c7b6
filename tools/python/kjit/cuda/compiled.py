"""The kernel or function of kjit that a dispatcher has, and the types that it is compiled for."""

from .. import _arrays, _functions, _kjit, _records, _state
from .._shapes import shape_of
from . import arrays, types

_ARRAYS_BY = "cuda.local.array(shape, dtype) or cuda.shared.array(shape, dtype)"


class Kernel(_functions.Kernel):
    """The kernel of kjit that a dispatcher launches: where there is a GPU, on it, whatever arrays it is given."""

    is_typed = True
    _arrays_by = _ARRAYS_BY
    # Whether indices are checked on the CPU, and Ctrl-C ends a launch there; on a GPU neither is so.
    is_careful = False

    @property
    def _bits(self):
        """The context: (checks, debug level, whether it is interruptible)."""
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
        """The kernel that takes these values, the items of tuples one after the other."""
        return self._for_shapes(tuple(shape_of(value, self.is_typed) for value in values))

    def _specialize(self, text):
        """(module, name), after the kernel was compiled for these types for the device that launches use."""
        module, name = self._loaded_module()
        _kjit.specialize(module, name, text, _arrays.device())
        return module, name


class DeviceFunction(_functions._Compiled):
    """A device function alone: a C function for other code."""

    _kind = "func"
    is_typed = True
    _arrays_by = _ARRAYS_BY

    def __init__(self, function, **options):
        self._prepare(function, options)

    def code(self, stage, signature, target, symbol=None):
        """Its code at a stage, with debug information where it is compiled for a debugger. symbol: its name in the code."""
        module, name = self._module()
        know_records(self, signature)
        return _kjit.compile_function(module, name, signature, symbol, stage, target, self._bits[1])

    def find_result(self, signature):
        """The name of the type of its result."""
        know_records(self, signature)
        return _kjit.get_result_type(*self._module(), signature)


def device_text(kinds):
    return ", ".join(kind.text for kind in kinds)


def know_records(compiled, text):
    """The records that a text of types names are types of the context that compiles."""
    for name in _records.NAMES.findall(text):
        _kjit.find_record(_state.context(*compiled._bits), name)


def any_layout(kind):
    return kind.text


def laid_out(kind):
    """As launches have it, whose arrays are known to be without gaps."""
    layout = getattr(kind, "layout", "A")
    return kind.text if layout == "A" else f"{kind.text} {layout}"


def flat_texts(kinds, text_of):
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from flat_texts(kind, text_of)
        elif isinstance(kind, types.NumberClass):
            pass  # a part of the code
        else:  # a record is handed over where it is
            yield kind.text + "[]" if isinstance(kind, types.Record) else text_of(kind)


def target():
    from . import devices

    return devices.code_target()

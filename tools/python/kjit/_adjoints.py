"""`kjit.adjoint`: the reverse-mode derivative of a kernel."""

from . import _kjit, _state
from ._functions import Kernel

_FLOATS = ("float", "bfloat", "f16", "f32", "f64", "bf16")
_MOST_CHOSEN = 64  # maximum number of chosen parameters, the same as in the kernel IR


def adjoint(kernel, wrt=None):
    """Returns the adjoint of a kernel, for reverse-mode differentiation. The adjoint is a kernel
    that takes the derivatives with respect to the arrays that the given kernel writes, and computes
    the derivatives with respect to the arrays and numbers that the given kernel reads.

    The kernel body must consist of loops over a grid_range, or its threads must work on different elements. The
    adjoint has the kernel's parameters, followed by an array of derivatives for each chosen parameter. A launch reads
    the derivatives with respect to the written arrays. To the other arrays of derivatives it adds the derivatives with
    respect to the values that the kernel reads. The derivative of a number is an array with one element.

    wrt: the names or positions of the chosen parameters, which must include the written arrays.
    Without wrt, each launch chooses the arrays of floats among its arguments. Raises TypeError if
    kernel is not a kernel of kjit.jit or kjit.cuda.jit.
    """
    if not isinstance(kernel, Kernel):
        kernel = getattr(kernel, "_kernel", kernel)  # unwraps a dispatcher of kjit.cuda
    if not isinstance(kernel, Kernel) or isinstance(kernel, AdjointKernel):
        raise TypeError(f"kjit.adjoint takes a kernel of kjit.jit or kjit.cuda.jit, not {type(kernel).__name__}")
    return _ByArguments(kernel) if wrt is None else _make(kernel, _numbers_of(kernel, wrt))


def _numbers_of(kernel, wrt):
    names, numbers = kernel._parameters(), []
    for one in (wrt,) if isinstance(wrt, (str, int)) else wrt:
        number = names.index(one) if isinstance(one, str) and one in names else one
        if type(number) is not int or not 0 <= number < min(len(names), _MOST_CHOSEN):
            raise TypeError(f"kjit.adjoint: {kernel.__name__}() has no parameter {one!r}: its parameters are {', '.join(names)}")
        if number in numbers:
            raise TypeError(f"kjit.adjoint: the parameter {names[number]} of {kernel.__name__}() is chosen twice")
        numbers.append(number)
    if not numbers:
        raise TypeError("kjit.adjoint: wrt is empty, but must name at least one parameter")
    return tuple(sorted(numbers))


def _make(kernel, numbers):
    with _state.lock():
        made = kernel.__dict__.setdefault("_adjoints", {})
        if numbers not in made:
            made[numbers] = AdjointKernel(kernel, numbers)
        return made[numbers]


class AdjointKernel(Kernel):
    """The adjoint of a kernel for a fixed choice of parameters. See kjit.adjoint."""

    def __init__(self, kernel, numbers):
        for name in ("py_func", "_options", "_bits", "_device", "_rules", "is_typed", "__module__"):
            setattr(self, name, getattr(kernel, name))
        self._of, self._numbers, self._made, self.attributes = kernel, numbers, None, ""
        self.__name__, self.__qualname__ = f"adjoint_{kernel.__name__}", f"adjoint_{kernel.__qualname__}"
        self.__doc__ = f"kjit.adjoint of {kernel.__qualname__}."

    def __repr__(self):
        return f"<kjit.adjoint({self._of!r}, {self._numbers})>"

    def __reduce__(self):
        return adjoint, (self._of, self._numbers)

    def _begin(self):
        context, names, _, *others = super()._begin()
        return context, names, (), *others

    def _parameters(self):
        own = self._of._parameters()
        return (*own, *(f"derivative of {own[number]}" for number in self._numbers))

    def _for_shapes(self, shapes):
        if any(shape is not None for shape in shapes):
            raise TypeError(f"kjit.adjoint: {self._of.__name__}() got a tuple, a record or a function, which kernels with adjoints do not accept")
        return self

    def _write(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed)
        builder.arrays_by = self._arrays_by
        of = builder.function(self._of, "kernel")
        name = builder.new_name(self.__name__)
        names = ", ".join(f"a{i}" for i in range(len(self._parameters())))
        call = f"adjoint({', '.join([of, *map(str, self._numbers)])})({names})"
        builder.generated_lines += [[f"kernel {name}({names}) {{"], ["  ", call], ["}"]]
        builder.write_all()
        return builder.finish(name)


class _ByArguments:
    """The adjoint of a kernel without `wrt`: each launch chooses the arrays of floats among its
    arguments."""

    def __init__(self, kernel):
        self._of, self._last = kernel, None

    def __repr__(self):
        return f"<kjit.adjoint({self._of!r})>"

    def __reduce__(self):
        return adjoint, (self._of,)

    def _for(self, args):
        count = len(self._of._parameters())
        numbers = tuple(i for i, x in enumerate(args[:count]) if _is_array_of_floats(x))
        if not numbers:
            raise TypeError(f"kjit.adjoint: {self._of.__name__}() got no array of floats")
        self._last = _make(self._of, numbers)
        return self._last

    def inspect(self, stage="llvm-opt", signature=None, target=None, lines=True):
        """Returns the code of the adjoint that was launched last. See Kernel.inspect."""
        if self._last is None:
            raise ValueError(f"kjit.adjoint: launch {self!r} first, or choose its parameters by wrt")
        return self._last.inspect(stage, signature, target, lines)

    def __call__(self, *args):
        self._for(args)(*args)

    def __getitem__(self, configuration):
        return lambda *args: self._for(args)[configuration](*args)


def _is_array_of_floats(x):
    if isinstance(x, _kjit.Array):
        return x.dtype.text.startswith(_FLOATS)
    has_elements = hasattr(x, "shape") and hasattr(x, "dtype") and x.shape != ()
    return has_elements and str(x.dtype).rpartition(".")[2].startswith(_FLOATS)

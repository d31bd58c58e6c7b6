"""`kjit.torch.function`: Python functions and kjit kernels as PyTorch functions with derivatives."""

import torch
from torch.autograd.function import once_differentiable

from ._adjoints import adjoint
from ._algorithms import map
from ._elementwise import Elementwise
from ._functions import Kernel

__all__ = ["ElementFunction", "KernelFunction", "function"]

_ELEMENTS = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
}
_OF_ELEMENTS = {element: dtype for dtype, element in _ELEMENTS.items()}


def _element(x):
    """Returns the name of a tensor's element type, or a number unchanged. Raises TypeError for
    types that kjit does not have."""
    if not isinstance(x, torch.Tensor):
        return x
    if x.dtype not in _ELEMENTS:
        raise TypeError(f"kjit.torch does not support tensors of {x.dtype}")
    return _ELEMENTS[x.dtype]


def _run(made, func, operands):
    """Maps a func over numbers and tensors of one shape, on PyTorch's current stream. Returns new
    tensors."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    elements = made.result_elements(func, [_element(x) for x in operands])
    results = tuple(torch.empty(tensors[0].shape, dtype=_OF_ELEMENTS[e], device=tensors[0].device) for e in elements)
    if tensors[0].numel():
        map(func, *(x.detach() if isinstance(x, torch.Tensor) else x for x in operands), out=results)
    return results


class _Saved:
    """Saves a call's operands for the backward pass. PyTorch detects if a saved tensor is changed
    before the backward pass."""

    @staticmethod
    def save(ctx, operands):
        ctx.save_for_backward(*(x for x in operands if isinstance(x, torch.Tensor)))
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in operands]

    @staticmethod
    def load(ctx):
        tensors = iter(ctx.saved_tensors)
        return [next(tensors) if number is None else number for number in ctx.numbers]


class _Elements(torch.autograd.Function):
    """Base class of functions that map a func over numbers and tensors of one shape. vmap adds the
    batch as a further dimension."""

    leading = 1  # number of arguments before the operands

    @classmethod
    def vmap(cls, info, in_dims, *arguments):
        first, operands = arguments[: cls.leading], arguments[cls.leading :]
        wide = []
        for x, dim in zip(operands, in_dims[cls.leading :]):
            if isinstance(x, torch.Tensor):
                x = x.unsqueeze(0).expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            wide.append(x)
        results = cls.apply(*first, *wide)
        return results, (0,) * len(results)


class _Forward(_Elements):
    """Computes the values."""

    @staticmethod
    def forward(made, *operands):
        return _run(made, made.function, operands)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.made = inputs[0]
        _Saved.save(ctx, inputs[1:])
        ctx.mark_non_differentiable(*(r for r in output if not r.is_floating_point()))

    @staticmethod
    def backward(ctx, *by_results):
        operands = _Saved.load(ctx)
        chosen = tuple(i for i in range(len(operands)) if ctx.needs_input_grad[i + 1])
        found = iter(_Backward.apply(ctx.made, chosen, len(operands), *operands, *by_results))
        return (None, *(next(found) if i in chosen else None for i in range(len(operands))))


class _Backward(_Elements):
    """Computes the derivatives with respect to the operands."""

    leading = 3

    @staticmethod
    def forward(made, chosen, count, *arguments):
        return _run(made, made.pullback(chosen, [_element(x) for x in arguments[:count]]), arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.made, ctx.chosen, ctx.count = inputs[:3]
        _Saved.save(ctx, inputs[3:])

    @staticmethod
    def backward(ctx, *directions):
        arguments = _Saved.load(ctx)
        results = len(arguments) - ctx.count
        # An operand that was a constant for the first derivatives can need a derivative in the
        # second ones.
        numbers = tuple(i for i in range(ctx.count) if i in ctx.chosen or ctx.needs_input_grad[i + 3])
        along = dict(zip(ctx.chosen, directions))
        full = (along[i] if i in along else torch.zeros_like(arguments[i]) for i in numbers)
        found = _Second.apply(ctx.made, numbers, ctx.count, *arguments, *full)
        by_operands = dict(zip(numbers, found[results:]))
        return (None, None, None, *(by_operands.get(i) for i in range(ctx.count)), *found[:results])


class _Second(_Elements):
    """Computes the second derivatives."""

    leading = 3

    @staticmethod
    def forward(made, chosen, count, *arguments):
        return _run(made, made.pullback_jvp(chosen, [_element(x) for x in arguments[:count]]), arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.made = inputs[0]

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(f"{ctx.made.__name__}() has first and second derivatives, but no third derivatives")


class ElementFunction(Elementwise):
    """An elementwise function for tensors, see `function`."""

    def __init__(self, thing):
        super().__init__(thing, "kjit.torch.function")

    def __call__(self, *operands):
        """Applies the function to the elements of numbers and of tensors that broadcast. Returns a
        tensor, or a tuple of tensors if the function returns a tuple. Raises TypeError if no
        argument is a tensor, or for tensors on different devices."""
        tensors = [x for x in operands if isinstance(x, torch.Tensor)]
        if not tensors:
            raise TypeError(f"{self.__name__}() takes at least one tensor, but no argument is a tensor")
        if any(x.device != tensors[0].device for x in tensors):
            devices = sorted({str(x.device) for x in tensors})
            raise TypeError(f"{self.__name__}() takes tensors of one device, but got tensors on {' and '.join(devices)}")
        wide = iter(torch.broadcast_tensors(*tensors))  # PyTorch sums the derivatives over broadcast dimensions
        results = _Forward.apply(self, *(next(wide) if isinstance(x, torch.Tensor) else x for x in operands))
        return results if self._count([_element(x) for x in operands])[1] else results[0]


class _Launch(torch.autograd.Function):
    """A launch of a kernel with new tensors as outputs."""

    @staticmethod
    def forward(ctx, made, *inputs):
        arguments = made.arrange(inputs)
        made.launch(made.kernel, arguments)
        _Saved.save(ctx, arguments)
        ctx.made = made
        outputs = tuple(arguments[i] for i in made.outputs)
        ctx.mark_non_differentiable(*(x for x in outputs if not x.is_floating_point()))
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, *by_outputs):
        made, arguments = ctx.made, _Saved.load(ctx)
        given = dict(zip(made.outputs, by_outputs))
        shadows = {
            i: given[i].contiguous().clone() if i in given else torch.zeros_like(x)
            for i, x in enumerate(arguments)
            if isinstance(x, torch.Tensor) and x.is_floating_point()
        }
        made.launch(made.derivative, [*arguments, *shadows.values()])
        inputs = [i for i in range(len(arguments)) if i not in given]
        return (None, *(shadows[i] if i in shadows and ctx.needs_input_grad[n + 1] else None for n, i in enumerate(inputs)))


class KernelFunction:
    """A kernel whose outputs are new tensors, see `function`."""

    def __init__(self, kernel, outputs, derivative, launch):
        self.kernel, self._configuration = kernel, launch
        self.derivative = adjoint(kernel) if derivative is None else derivative
        self._names = kernel._parameters()
        if not isinstance(outputs, dict) or not outputs:
            raise TypeError('outputs must be a dictionary: {"r": "x"} makes `r` like `x`, {"r": make} calls make(*inputs)')
        unknown = set(outputs) - set(self._names)
        if unknown:
            raise TypeError(f"{kernel.__name__}() has no parameter `{min(unknown)}` that could be an output")
        self.outputs = tuple(i for i, name in enumerate(self._names) if name in outputs)
        self._inputs = tuple(name for name in self._names if name not in outputs)
        self._makers = outputs
        self.__name__, self.__doc__ = kernel.__name__, kernel.__doc__

    def arrange(self, inputs):
        """Returns all arguments of the kernel, with new tensors for the outputs."""
        given = dict(zip(self._inputs, inputs))
        return [self._make(name, inputs, given) if name in self._makers else given[name] for name in self._names]

    def _make(self, name, inputs, given):
        maker = self._makers[name]
        made = maker(*inputs) if callable(maker) else torch.zeros_like(given[maker].detach())
        if not isinstance(made, torch.Tensor):
            raise TypeError(f"outputs: the function for `{name}` returned {type(made).__name__}, not a tensor")
        return made

    def launch(self, kernel, arguments):
        plain = [x.detach() if isinstance(x, torch.Tensor) else x for x in arguments]
        (kernel if self._configuration is None else kernel[self._configuration])(*plain)

    def __call__(self, *inputs):
        """Launches the kernel. inputs: the kernel's arguments without the outputs. Returns the
        output, or a tuple of outputs. Raises TypeError for a wrong number of inputs."""
        if len(inputs) != len(self._inputs):
            raise TypeError(f"{self.__name__}() takes {len(self._inputs)} inputs ({', '.join(self._inputs)}), but {len(inputs)} were given")
        results = _Launch.apply(self, *inputs)
        return results[0] if len(results) == 1 else results


def function(thing, *, outputs=None, derivative=None, launch=None):
    """Returns a PyTorch function with derivatives for autograd.

        softplus = kjit.torch.function(lambda x: kjit.log1p(kjit.exp(x)))
        softplus(x).sum().backward()

    thing: a Python function, a kjit.func or a kjit.jit kernel. A function is applied to the elements
    of tensors, which broadcast. It has first derivatives, which kjit.vjp computes, and second
    derivatives, which kjit.jvp of kjit.vjp computes; third derivatives raise an error. A kernel has
    first derivatives only.

    outputs: for a kernel, a dictionary from each output parameter to the maker of a new tensor. The
    maker `"x"` in `{"r": "x"}` makes a tensor of zeros like the input x. A maker that is a function
    is called with all inputs and returns a tensor.

    derivative: a kernel that takes the parameters of `thing`, followed by a derivative tensor for each float tensor, in
    parameter order. The tensors for outputs hold the derivatives of the results. The kernel adds derivatives to the
    tensors for inputs, which are 0 at first. The default is kjit.adjoint(thing); if this kernel has no adjoint, the
    backward pass raises an error that names the statement. Numbers among the inputs are constants.

    launch: (grid, block) of both kernels; None is for kernels with a grid_range. Calls run on
    PyTorch's current stream. PyTorch raises an error if an input is changed between the forward and
    the backward pass. Raises TypeError if `thing` is neither a function nor a kernel, or if
    `outputs` does not name parameters.
    """
    if isinstance(thing, Kernel):
        return KernelFunction(thing, outputs, derivative, launch)
    if outputs is not None or derivative is not None or launch is not None:
        raise TypeError("outputs, derivative and launch are for kernels")
    return ElementFunction(thing)

"""kjit.jit and kjit.func: Python functions as kernels and funcs in the kernel IR."""

import functools
import os
import sys
import types

from . import _kjit, _state, dtypes
from ._errors import ArgumentError, Error

_OPTIONS = {
    "checks",
    "debug",
    "fastmath",
    "strict",
    "block",
    "grid",
    "cluster",
    "launch_bounds",
    "max_registers",
    "device",
    "inline",
    "interruptible",
    "wrap",
    "numba",
    "indefinite",
    "jvp",
    "vjp",
}
# Number of variants for tuple shapes and function arguments that one kernel keeps.
_MOST_VARIANTS = 256
_FLOAT8 = "kjit.cuda.fp8"  # if this module is loaded, kjit translates conversions in another way
_VARARGS = 4  # inspect.CO_VARARGS
# How a launch chooses among several devices: by the option `device`, by its arrays' device, or the
# thread's current device.
BY_OPTION, BY_ARRAYS, ON_CURRENT_DEVICE = range(3)
_EXTENTS = ("block", "grid", "cluster", "launch_bounds", "max_registers")


def _attributes(options):
    """Returns options that are attributes of the kernel IR, as text."""
    text = "".join(f" @{name}" for name in ("fastmath", "strict", "wrap", "numba", "indefinite") if options.get(name))
    if options.get("inline") is not None:
        text += " @inline" if options["inline"] else " @noinline"
    for name in _EXTENTS:
        value = options.get(name)
        if value is not None:
            extents = value if isinstance(value, tuple) else (value,)
            if not all(type(e) is int and e > 0 for e in extents):
                raise ValueError(f"{name} must be a positive integer or a tuple of them, not {value!r}")
            text += f" @{name}({', '.join(map(str, extents))})"
    return text


def _own_rules(options):
    """Returns a dictionary from "jvp" and "vjp" to the program's functions that compute these
    derivatives of a func."""
    rules = {word: options[word] for word in ("jvp", "vjp") if options.get(word) is not None}
    for word, rule in rules.items():
        if isinstance(rule, Kernel) or not callable(rule):
            raise TypeError(f"{word} must be the function that computes the derivative, not {rule!r}")
    return rules


def _parameters_of(function):
    """Returns the names of all parameters in kernel order; *args counts as one parameter."""
    code = function.__code__
    first, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    rest = names[last : last + 1] if code.co_flags & _VARARGS else ()
    return (*names[:first], *rest, *names[first:last])


def _defaults(function):
    """Returns the defaults of the last parameters. For a function with *args or keyword-only parameters it returns a
    function that arranges a call's arguments in kernel order."""
    code = function.__code__
    if not code.co_kwonlyargcount and not code.co_flags & _VARARGS:
        return function.__defaults__ or ()
    import inspect

    signature = inspect.signature(function)

    def arrange(*args, **keywords):
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    return arrange


def _check_function(function, word):
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"kjit.{word} takes a Python function, not {type(function).__name__}")


class _Compiled:
    """Common base class for kernels and funcs: the function, its options and its kernel IR module."""

    # code that is linked with the function, in addition to the linked code of the functions that it
    # calls
    linked: tuple = ()
    is_typed = False  # whether Python numbers are i64 and f64
    is_njit = False  # whether np.zeros and similar functions create an array for each thread
    _arrays_by = "kjit.local(shape, dtype)"  # how messages describe the creation of an array

    def _prepare(self, function, options):
        unknown = set(options) - _OPTIONS
        if unknown:
            raise TypeError(f"there is no option {min(unknown)!r}; the options are {', '.join(sorted(_OPTIONS))}")
        if isinstance(self, Kernel) and ("jvp" in options or "vjp" in options):
            raise TypeError("jvp and vjp are options of kjit.func; kjit.adjoint differentiates a kernel")
        self.py_func, self._options = function, options
        self.attributes, self.own_rules = _attributes(options), _own_rules(options)
        checks, debug = _state.check_bits(options.get("checks")), _state.debug_level(options.get("debug"))
        self._bits = checks, debug, bool(options.get("interruptible"))  # the options that select the context
        self._device = options.get("device")
        self._rules = "".join(f" @{name}" for name in ("wrap", "numba") if options.get(name))
        self._made = None
        from .frontend import source as sources  # imported here, because `import kjit` must be fast

        function.__kjit_source__ = sources.remember(function)
        functools.update_wrapper(self, function)

    def _made_module(self):
        """Returns the kernel IR of the function as a frontend.module.Made."""
        if self._made is None:
            with _state.lock():
                if self._made is None:
                    work = _kjit.begin_work(_state.context(*self._bits), self)
                    try:
                        has_float8 = _FLOAT8 in sys.modules
                        self._made = self._write()
                        # the translation has loaded the module, because the program uses kjit.cuda.fp8
                        if has_float8 != (_FLOAT8 in sys.modules):
                            self._made = self._write()
                    # the traceback inside kjit is dropped, because the error belongs to the program
                    except Error as error:
                        raise error.with_traceback(None) from None
                    finally:
                        _kjit.end_work(work)
        return self._made

    def _builder(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed, self.is_njit)
        builder.arrays_by = self._arrays_by
        return builder

    def _write(self):
        builder = self._builder()
        name = builder.function(self, self._kind, shapes=self._named_shapes())
        builder.write_all()
        return builder.finish(name)

    def _named_shapes(self):
        """Returns the shapes of tuple parameters by name."""
        return {}

    def _module(self):
        """Returns (module, name in the module)."""
        made = self._made_module()
        module = _state.context(*self._bits).parse(made.title, made.text, made.quoted())
        for symbol, value in made.arrays.items():
            module = module.set_constant(symbol, value)
        for extern, external in made.externals.items():
            module = external.bind(module, extern, self.linked)
        return module, made.name

    @classmethod
    def _remake(cls, function, options):
        return cls(function, **options)

    def __reduce__(self):
        from . import _portable

        return _portable.reduce(self)

    def _parameters(self):
        return _parameters_of(self.py_func)

    @property
    def ir(self):
        """Returns the kernel IR of the function as text."""
        return self._made_module().plain


class Kernel(_Compiled, _kjit.Kernel):
    """A kernel. Launch it with `kernel[grid, block, stream, shared_bytes](...)`, or with `kernel(...)` if a grid_range
    determines the launch."""

    _kind = "kernel"
    is_kjit_kernel = True

    def __init__(self, function, **options):
        _check_function(function, "jit")
        self._prepare(function, options)

    def _begin(self):
        """For the extension: returns (context, parameters, defaults, device, is_typed, placement)."""
        is_fixed = self._device is not None
        device = self._device if is_fixed else _state.named_device()
        defaults = () if self._shapes else _defaults(self.py_func)
        return _state.context(*self._bits), self._parameters(), defaults, device, self.is_typed, BY_OPTION if is_fixed else BY_ARRAYS

    def _load(self):
        """For the extension: returns (module, name)."""
        module, name = self._module()
        for external in self._made_module().externals.values():
            external.check(self.linked)
        self._is_loaded = True
        return module, name

    # ---- tuples, records and functions as arguments ----

    # For a kernel derived from another kernel: the tuple shape, the function or None for each parameter.
    _shapes = ()
    _is_loaded = False

    def _of_parameters(self, kind):
        listed = zip(_Compiled._parameters(self), self._shapes)
        return {name: shape for name, shape in listed if isinstance(shape, kind)}

    def _named_shapes(self):
        from ._shapes import Member, Shape

        return self._of_parameters((Shape, Member))

    @property
    def known(self):
        """Returns the parameters that are functions, by name."""
        from ._shapes import Known

        return {name: shape.function for name, shape in self._of_parameters(Known).items()}

    def _take_apart(self, args):
        """For the extension: returns (the kernel for tuples with these shapes and for these functions, the other
        arguments as a flat list, a function to call after the launch or None)."""
        from ._shapes import Known, shape_of, take_apart

        items, after = [], []
        shapes = tuple(shape_of(value, self.is_typed) for value in args)
        for value, shape in zip(args, shapes):
            if not isinstance(shape, Known):
                take_apart(value, items, after)
        kernel = self._for_shapes(shapes)
        return kernel, tuple(items), (lambda: [finish() for finish in after] and None) if after else None

    def _for_shapes(self, shapes):
        """Returns the kernel that takes the items of tuples with these shapes and calls these functions. Without tuples and
        functions it returns the kernel itself."""
        if not any(shape is not None for shape in shapes):
            return self
        with _state.lock():
            variants = self.__dict__.setdefault("_variants", {})
            found = variants.pop(shapes, None)
            if found is None:
                found = type(self).__new__(type(self))
                found.__dict__.update(self.__dict__, _made=None, _shapes=shapes, _is_loaded=False)
                found.__dict__.pop("_variants")
                while len(variants) >= _MOST_VARIANTS:
                    del variants[next(iter(variants))]
            variants[shapes] = found  # moves the last used variant to the end
        return found

    def _parameters(self):
        names = super()._parameters()
        if not self._shapes:
            return names
        listed = zip(names, self._shapes)
        return tuple(one for name, shape in listed for one in ([name] if shape is None else shape.names(name)))

    def _loaded_module(self):
        """Returns (module, name) with the module that launches use."""
        return self._launched_module, self._made_module().name

    @property
    def specializations(self):
        """Returns a list of the compiled specializations, in the order of their compilation, followed by those for
        tuples and functions. Each is a dictionary with `signature`, `facts`, `target`, `registers`, `shared_bytes`,
        `local_bytes`, `max_threads`, `launches`, `code_bytes`, `compile_time_ns` and `is_plain`, and for the CPU
        `stack_bytes`, `vector_bits` and `block_bytes`.
        """
        variants = [variant for variant in self.__dict__.get("_variants", {}).values() if variant._is_loaded]
        own = [] if variants and not self._is_loaded else _kjit.list_specializations(*self._loaded_module())
        return sum((variant.specializations for variant in variants), own)

    def _inspected_bits(self):
        """Returns the checks and the debug level of the code that inspect shows."""
        return self._bits

    def inspect(self, stage="llvm-opt", signature=None, target=None, lines=True):
        """Returns the kernel's code at a stage: "kir", "typed", "llvm", "llvm-opt", "ptx", "asm",
        "sass" or "derivatives" as text, "object" or "cubin" as bytes.

        signature has the parameter types as text, "f32[:], f32"; None means the last compiled signature. target is
        "cpu", "sm_90" and so on; None means the target of the last compilation, or "cpu". With lines, each Python line
        stands before its code. This needs a compilation with debug information, which does not change the code.
        """
        from . import _inspect

        made = self._made_module()
        if stage == "kir":
            return _inspect.annotate(stage, made.plain, made) if lines else made.plain
        module, name = self._loaded_module()
        facts = None
        if signature is None:
            known = [s for s in _kjit.list_specializations(module, name) if target in (None, s["target"])]
            if not known:
                raise ValueError(
                    "the kernel is not compiled yet; launch it first, or pass a signature: "
                    "kernel.inspect(\"ptx\", \"f32[:], f32\", \"sm_90\")"
                )
            signature, facts, target = known[-1]["signature"], known[-1]["facts"], known[-1]["target"]
        checks, debug, _ = self._inspected_bits()
        has_lines = lines and stage in _inspect.STAGES_WITH_LINES
        text = _kjit.compile_code(module, name, signature, stage, target, facts, checks, debug or int(has_lines))
        return _inspect.annotate(stage, text, made) if has_lines else text

    def __repr__(self):
        return f"<kjit.Kernel {self.py_func.__qualname__}>"


class _Pair(_kjit.Function):
    """A compiled func that returns a pair in place of a value that may be None: the value, and
    whether it exists."""

    def __init__(self, loaded):
        self._loaded_func = loaded

    def _load(self):
        return self._loaded_func


def _without_none(pair):
    """Returns the function that Python calls in place of a _Pair. It returns None if the value does
    not exist."""

    def call(*args, **keywords):
        value, is_there = pair(*args, **keywords)
        return value if is_there else None

    return call


class Function(_Compiled, _kjit.Function):
    """A func, which kernels can call. Python can call it: `f(2, 3.0)` returns a number or a tuple of numbers. The call
    runs on the CPU, or in one thread of the device that holds the arrays among the arguments."""

    _kind = "func"

    def __init__(self, function, **options):
        _check_function(function, "func")
        self._prepare(function, options)
        self._loaded = None

    def _load(self):
        """For the extension: returns (module, name, parameters, defaults, is_typed, _keeps_types), or the function
        that Python calls instead if the result may be None."""
        module, name = self._module()
        defaults = () if "known" in self.__dict__ else _defaults(self.py_func)
        loaded = module, name, self._parameters(), defaults, self.is_typed, self._keeps_types
        return _without_none(_Pair(loaded)) if self._made_module().returns_optional else loaded

    def _returns_value(self):
        """Returns whether the function returns a value."""
        return bool(self._made_module().returned)

    def _call_otherwise(self, args, error):
        """The extension calls this after a call on the CPU has failed. Returns NotImplemented, unless an array is on
        another device."""
        from . import _algorithms, _elsewhere

        device = _algorithms._device_of(args) if isinstance(error, ArgumentError) else None
        if device is None or device in ("cpu", "cpu:0"):
            return NotImplemented
        return _elsewhere.call(self, args, device)

    # whether a result becomes a NumPy scalar if a Python number would lose its type
    _keeps_types = False

    def _loaded_module(self):
        """Returns (module, name) for an algorithm, which runs in the context without checks."""
        if any(self._bits):
            raise TypeError(f"{self!r} is compiled with the option checks, debug or interruptible, which algorithms do not support")
        context = _state.context()
        if self._loaded is None or self._loaded[0] is not context:
            self._loaded = (context, *self._module())
        return self._loaded[1:]

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def _bound(self, known):
        """Returns a func without some of its parameters, whose values become constants. known has these values by name."""
        func = type(self).__new__(type(self))
        func.__dict__.update(self.__dict__, _made=None, _loaded=None)
        func.__dict__["known"] = {**self.__dict__.get("known", {}), **known}
        return func

    def _parameters(self):
        known = self.__dict__.get("known", ())
        return tuple(name for name in super()._parameters() if name not in known)

    def __repr__(self):
        return f"<kjit.Function {self.py_func.__qualname__}>"


def jit(function=None, **options):
    """Makes a Python function a kernel. `kernel(...)` or `kernel[grid, block, stream,
    shared_bytes](...)` launches it.

    checks: a name or a tuple of names of run-time checks: "bounds", "division", "integer-division",
    "float-division", "assert", or "usual" for bounds, division and assert. The CPU also has
    "barrier", "uninitialized", "races" and "all".
    debug: "lines" or "full" adds debug information.
    fastmath: allows less exact arithmetic. strict: forbids fused multiply-add.
    wrap: gives negative indices and slices their meaning in Python.
    interruptible: lets Ctrl-C end a running launch.
    block, grid, cluster: the launch configuration. launch_bounds, max_registers: limits for the
    compiler. device: "cpu" or a GPU such as "cuda:0".

    Raises TypeError if the object is not a Python function, or for an unknown option. Errors in the
    function are raised at its first launch, as kjit.SourceError or another kjit.Error with the
    line.
    """
    if function is None:
        return functools.partial(jit, **options)
    if os.environ.get("KJIT_DEVICE") == "python":
        raise NotImplementedError(
            f"KJIT_DEVICE=python: {function.__name__} is a kernel of kjit.jit, but the simulator runs only kernels of kjit.cuda; "
            "use kjit.cuda.jit, or set KJIT_DEVICE=cpu"
        )
    return Kernel(function, **options)


def func(function=None, **options):
    """Makes a Python function a func. Kernels can call it, and Python can call it on the CPU or on its arrays'
    device.

    Options: checks, debug, fastmath, strict, wrap, interruptible, inline, jvp, vjp; for the first
    six see `kjit.jit`.

    jvp and vjp are functions that compute the derivatives of this function. kjit then does not derive them itself. `jvp(x,
    dx)` returns the value and its derivative along dx. `vjp(x, dr)` returns the value and, for each parameter that holds
    floats, the derivative with respect to this parameter. If jvp is linear in dx, kjit derives the reverse derivative from
    it, and vjp can be omitted. kjit does not check these functions; `kjit.gradcheck` does.

    Raises TypeError if the object is not a Python function, or for an unknown option. Errors in the
    function are raised at its first use.
    """
    if function is None:
        return functools.partial(func, **options)
    return Function(function, **options)


__all__ = ["Error", "Function", "Kernel", "dtypes", "func", "jit"]

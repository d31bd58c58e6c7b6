"""`kjit.cuda.jit`: kernels and device functions with Numba's rules."""

import enum
import functools
import math
import types as python_types
import warnings
import weakref

from .. import _arrays, _errors, _functions, _kjit, _overloading, _signatures
from . import (
    arguments,
    arrays,
    compiled,
    config,
    configurations,
    errors,
    fitting,
    host_arrays,
    jit_options,
    linking,
    streams,
    types,
)
from . import typed as _typed
from . import usage as _memory

_ArgumentError = _errors.CLASSES["KJIT_ERROR_ARGUMENT"]

# The number of blocks below which a grid leaves most of a GPU idle; a launch with fewer blocks
# causes a warning.
_FEW_BLOCKS = 128

# The number of launch configurations that one kernel keeps.
_MOST_CONFIGURATIONS = 256


class Dispatcher(_kjit.Dispatcher):
    """A kernel or device function made by `cuda.jit`. `kernel[grid, block, stream, shared](...)`
    launches a kernel."""

    is_typed = True

    def __init__(self, py_func, signatures, given):
        if not isinstance(py_func, python_types.FunctionType):
            raise TypeError(f"cuda.jit takes a Python function, not {type(py_func).__name__}")
        self.py_func, self.targetoptions = py_func, given
        self._kjit_options = jit_options.read(given)
        self._is_device = bool(given.get("device"))
        # The option `inline` concerns the callers of a function, so a kernel ignores it.
        kernel_options = {k: v for k, v in self._kjit_options.items() if k != "inline"}
        self.attributes = _functions._attributes(
            {k: v for k, v in self._kjit_options.items() if k in ("numba", "fastmath", "strict", "inline")}
        )
        self.overloads, self._signatures, self._configurations = {}, [], {}
        self._is_fixed = False
        self._kernel = compiled.Kernel(py_func, **kernel_options)
        self._kernel.linked = linking.read_link(given.get("link"))
        self._kernel.is_careful = jit_options.checks_bounds(given) is None
        self.func_code, self.extensions = py_func.__code__, list(given.get("extensions") or ())
        functools.update_wrapper(self, py_func)
        self._is_fixed = bool(signatures)
        for signature in signatures:
            self._add(signature)
        for signature in self._signatures:
            self._check(signature)

    @property
    def signatures(self):
        """The argument types of each overload, as a list of tuples."""
        return list(self.overloads)

    @property
    def ir(self):
        """The kernel IR that the function was translated to, a string."""
        return self._kernel.ir

    # ---- signatures ----

    def _add(self, signature):
        signature = types.parse(signature)
        result = signature.return_type
        if not self._is_device and result not in (None, types.void):
            raise TypeError("CUDA kernel must have void return type.")
        count = self.py_func.__code__.co_argcount
        if any(isinstance(kind, types.CPointer) for kind in signature.args):
            names = self.py_func.__code__.co_varnames
            self._kernel.pointers = {
                n: k.pointer for n, k in zip(names, signature.args) if isinstance(k, types.CPointer)
            }
        if len(signature.args) != count:
            raise TypeError(
                f"the signature {signature} has {len(signature.args)} types, but the function has {count} parameters"
            )
        if self._is_fixed:
            self._forget_routes()  # the new signature may fit the arguments of known calls better
        if signature.args not in self.overloads:
            self.overloads[signature.args] = Overload(self, signature)
            self._signatures.append(signature)
        return self.overloads[signature.args]

    def _check(self, signature):
        """Raises an error if the function cannot be compiled for a signature that was given with
        the decorator."""
        if config.ENABLE_CUDASIM:
            return
        target = "cpu" if arrays.is_on_cpu() else compiled.target()
        if not self._is_device:
            self._inspect("typed", signature, target)
            if not arrays.is_on_cpu():
                self._check_linked(signature)
            return
        self._resolving(lambda: self._function.find_result(compiled.device_text(signature.args)))

    def _check_linked(self, signature):
        """Compiles a kernel with linked code at once, so that errors in the linked code are raised
        at the decorator."""
        kernel, text = self._for_types(signature.args, compiled.laid_out)
        if kernel._made_module().externals:
            kernel._specialize(text)

    @property
    def result(self):
        """The result type that the signatures of a device function declare, as text of the kernel
        IR. None if they declare no result type or different ones."""
        results = {s.return_type for s in self._signatures} if self._is_device and self._is_fixed else ()
        kind = next(iter(results)) if len(results) == 1 else None
        return None if kind in (None, types.void) else kind.text

    @property
    def parameter_texts(self):
        """The names of the parameter types that the only signature of a device function declares,
        with None for each parameter that is not a number. The whole property is None if the
        function has no signature or several."""
        if not self._is_device or len(self._signatures) != 1 or not self._is_fixed:
            return None
        return _signatures.parameter_texts(self._signatures[0])

    @functools.cached_property
    def by_signature(self):
        """The overload through which the callers of a device function choose one of its signatures, or
        None if there are no signatures to choose from."""
        is_chosen = self._is_device and self._is_fixed and len(self._signatures) > 1
        return _overloading.of_signatures(self, self._signatures) if is_chosen else None

    @functools.cached_property
    def _function(self):
        """The device function in the form that other code calls."""
        made = compiled.DeviceFunction(self.py_func, **self._kjit_options)
        made.result = self.result
        return made

    def compile(self, signature):
        """Compiles the kernel for the argument types of a signature and returns the overload."""
        return self._add(signature)

    def compile_device(self, args, return_type=None):
        return self._add(types.Signature(return_type, args))

    def specialize(self, *args):
        """Returns a dispatcher that accepts only arguments of these types. args: values or types.
        Raises RuntimeError if the dispatcher itself is specialized."""
        if self._is_specialized or self._is_fixed and self._signatures:
            raise RuntimeError("Dispatcher already specialized")
        kinds = tuple(a if isinstance(a, types.Type) else types.typeof(a) for a in args)
        known = self.specializations.get(kinds)
        if known is not None:
            return known
        made = self.specializations[kinds] = Dispatcher(self.py_func, [kinds], self.targetoptions)
        made._is_specialized = True
        return made

    _is_specialized = False

    @functools.cached_property
    def specializations(self):
        """The dispatchers that specialize() made, by argument types."""
        return {}

    @property
    def specialized(self):
        return self._is_specialized

    @property
    def nopython_signatures(self):
        return list(self._signatures)

    def disable_compile(self, val=True):
        """Prevents the compilation for further argument types. val=False allows it again."""
        self._is_fixed = val
        self._forget_routes()

    # ---- launches ----

    def configure(self, griddim, blockdim, stream=0, sharedmem=0):
        arrays.check_enabled()
        grid, block = configurations.normalize(griddim, blockdim)
        key = grid, block, streams.unwrap(stream), configurations.whole_number(sharedmem, "the size of shared memory")
        try:
            return self._configurations[key]
        except KeyError:
            pass
        if math.prod(grid) < _FEW_BLOCKS and config.warns_of("CUDA_LOW_OCCUPANCY_WARNINGS"):
            text = f"Grid size {math.prod(grid)} will likely result in GPU under-utilization due to low occupancy."
            warnings.warn(text, errors.NumbaPerformanceWarning, stacklevel=3)
        while len(self._configurations) >= _MOST_CONFIGURATIONS:
            del self._configurations[next(iter(self._configurations))]
        made = self._configurations[key] = self._configured(key, griddim, blockdim, stream)
        return made

    def _configured(self, key, griddim, blockdim, stream):
        if not config.ENABLE_CUDASIM:
            return configurations.Configured(self, key, griddim, blockdim, stream)
        from ..simulator import launching

        return launching.Configured(self, key, stream)

    def _configure(self, key):
        """Returns the kernel with the configuration in a subscript. The C extension calls this
        method. Raises ValueError if the subscript does not have two to four items."""
        if not isinstance(key, tuple) or len(key) not in (2, 3, 4):
            raise ValueError(
                "must specify at least the griddim and blockdim: kernel[griddim, blockdim, stream, sharedmem]"
            )
        return self.configure(*key)

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        """Returns a launch configuration with at least `ntasks` threads. tpb: threads in a block, 0
        for the default. Raises ValueError for a negative number."""
        ntasks = configurations.whole_number(ntasks, "the number of tasks")
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        return configurations.ForAll(self, ntasks, tpb, stream, sharedmem)

    def __call__(self, *args, **keywords):
        if self._is_device:
            raise configurations.is_no_kernel(self)
        raise ValueError(
            "Kernel launch configuration was not specified. Use the syntax:\n\n"
            "kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)"
        )

    def _launch(self, configured, args, keywords, has_stream):
        named = {}
        if keywords:
            import inspect

            try:
                bound = inspect.signature(self.py_func).bind(*args, **keywords)
            except TypeError as error:
                raise _ArgumentError(f"{self.py_func.__name__}(): {error}", "KJIT_ERROR_ARGUMENT") from None
            bound.apply_defaults()
            args = bound.args
            named = {name: arguments.take(value, [], has_stream) for name, value in bound.kwargs.items()}
        fitted = args
        if self._is_fixed and len(args) == self.py_func.__code__.co_argcount:
            fitted = fitting.fit(self._signatures, self.py_func, args)
        launcher, after = configured._launch_with, []
        if self.extensions:
            fitted = self._extend(fitted, launcher, after)
        values = [arguments.take(a, after, has_stream) for a in fitted]
        try:
            self._resolving(lambda: launcher(*values, **named))
        except _ArgumentError:
            aligned = arguments.align(values, after)
            if aligned is None:
                raise
            self._resolving(lambda: launcher(*aligned, **named))
        self._remember(fitted)
        for finish in after:
            finish()
        if not self.extensions and not named and self._has_plain(args):
            configured._keep(tuple(args), fitting.conversions(args, fitted), self._kernel._for_arguments(values))

    def _resolving(self, action):
        """Returns the result of action(), which compiles the kernel. If an overload has to be
        chosen first, the kernel is translated again and the action is repeated."""
        return _overloading.resolving(action, self._renew)

    def _renew(self):
        self._kernel = self._kernel._anew()
        self.__dict__.pop("_function", None)

    def _has_plain(self, args):
        """Returns whether each parameter has exactly one argument, and no argument is a
        compile-time value such as None or an enum member."""
        code = self.py_func.__code__
        is_plain = len(args) == code.co_argcount and self._kernel._parameters() == code.co_varnames[: code.co_argcount]
        return is_plain and not any(value is None or isinstance(value, enum.Enum) for value in args)

    def _extend(self, args, stream, after):
        """Returns the arguments after all extensions have changed them. An extension has a method
        prepare_args(type, value, stream, retr)."""
        changed = []
        for value in args:
            kind = types.typeof(value)
            for extension in reversed(self.extensions):
                kind, value = extension.prepare_args(kind, value, stream=stream, retr=after)
            changed.append(value)
        return changed

    def _remember(self, args):
        key = tuple(_brief(a) for a in args)
        if key not in self._seen:
            self._seen.add(key)
            if config.warns_of("CUDA_WARN_ON_IMPLICIT_COPY"):
                arguments.warn_of_copies(args)
            if self._is_fixed:
                return
            try:
                self._add(tuple(types.typeof(a) for a in args))
            except (TypeError, NotImplementedError):
                pass  # Numba has no type for one of the arguments

    @functools.cached_property
    def _seen(self):
        return set()

    # ---- inspection ----

    def _for_types(self, kinds, text_of=None):
        """Returns (the kernel variant for these argument types, the types as text of the kernel
        IR). text_of: the function that returns the text of one type."""
        composed = (types.BaseTuple, types.NumberClass)
        kernel = self._kernel._for_shapes(tuple(k.shape() if isinstance(k, composed) else None for k in kinds))
        text = ", ".join(compiled.flat_texts(kinds, text_of or compiled.any_layout))
        compiled.know_records(kernel, text)
        return kernel, text

    def _inspect(self, stage, signature, target):
        def one(types_):
            if self._is_device:
                return self._function.code(stage, compiled.device_text(types_), target)
            kernel, text = self._for_types(types_)
            return kernel.inspect(stage, text, target, lines=False)

        if signature is not None:
            return self._resolving(functools.partial(one, types.parse(signature).args))
        return {s.args: self._resolving(functools.partial(one, s.args)) for s in self._signatures}

    def inspect_llvm(self, signature=None):
        """Returns the LLVM IR: a string for one signature, or a dictionary by argument types if no
        signature is given."""
        return self._inspect("llvm-opt", signature, compiled.target())

    def inspect_asm(self, signature=None):
        """Returns the PTX: a string for one signature, or a dictionary by argument types if no
        signature is given."""
        return self._inspect("ptx", signature, compiled.target())

    def inspect_lto_ptx(self, signature=None):
        return self.inspect_asm(signature)

    def inspect_sass(self, signature=None):
        if self._is_device:
            raise RuntimeError("Cannot inspect SASS of a device function")
        try:
            return self._inspect("sass", signature, compiled.target())
        except _errors.CLASSES["KJIT_ERROR_NO_COMPILER"] as error:
            raise RuntimeError(f"nvdisasm was not found: {error}") from None

    def inspect_types(self, file=None):
        import sys

        for signature in self._signatures:
            print(
                f"{self.py_func.__name__} {signature.args}\n{self._inspect('typed', signature, 'cpu')}",
                file=file or sys.stdout,
            )

    def _number(self, name, signature):
        if signature is None:
            found = {s.args: self._number(name, s) for s in self._signatures}
            return next(iter(found.values())) if self._is_fixed and len(found) == 1 else found
        if name in _memory.SPACES and arrays.is_on_cpu():
            return _memory.measure(self._inspect("ptx", signature, compiled.target()), name)
        kernel, text = self._for_types(types.parse(signature).args, compiled.laid_out)
        module, function = kernel._specialize(text)
        rows = [r for r in _kjit.list_specializations(module, function) if r["signature"] == text]
        most = _arrays.device().attribute("MAX_THREADS_PER_BLOCK") if name == "max_threads" else 0
        return rows[-1][name] or most

    def max_cooperative_grid_blocks(self, signature, blockdim, dynsmemsize=0):
        """Returns the maximum number of blocks in a cooperative launch of the kernel for these
        argument types. dynsmemsize: bytes of dynamic shared memory for each block."""
        kernel, text = self._for_types(types.parse(signature).args, compiled.laid_out)
        _, block = configurations.normalize(1, blockdim)
        return _kjit.occupancy(*kernel._specialize(text), text, block, dynsmemsize)

    def get_regs_per_thread(self, signature=None):
        return self._number("registers", signature)

    def get_shared_mem_per_block(self, signature=None):
        return self._number("shared_bytes", signature)

    def get_local_mem_per_thread(self, signature=None):
        return self._number("local_bytes", signature)

    def get_max_threads_per_block(self, signature=None):
        return self._number("max_threads", signature)

    def get_const_mem_size(self, signature=None):
        return self._number("constant_bytes", signature)

    def __reduce__(self):
        kernel = self._kernel.__reduce__()
        return _remake, (kernel, [s.args for s in self._signatures] if self._is_fixed else [], self.targetoptions)

    def __get__(self, instance, owner=None):
        return self if instance is None else python_types.MethodType(self, instance)

    def __repr__(self):
        return f"<kjit.cuda.Dispatcher {self.py_func.__qualname__}>"


def _remake(reduced, signatures, given):
    kernel = reduced[0](*reduced[1])
    # if this process has loaded the same pickle before, the same dispatcher is returned
    known = kernel.__dict__.get("_dispatcher")
    made = known and known()
    if made is None:
        made = Dispatcher(kernel.py_func, signatures, given)
        kernel.__dict__["_dispatcher"] = weakref.ref(made)
        made._pickled_kernel = kernel  # keeps the kernel as long as the dispatcher lives
    return made


def _brief(value):
    if isinstance(value, (type, types.Type)):
        return value
    dtype = getattr(value, "dtype", None)
    return type(value), dtype, getattr(value, "ndim", 0)


class Overload:
    """A kernel that is compiled for one signature."""

    def __init__(self, dispatcher, signature):
        self.dispatcher, self.signature = dispatcher, signature
        self.entry_name = dispatcher.py_func.__name__

    @property
    def fndesc(self):
        """A description of the function with Numba's attributes `mangled_name` and `qualname`."""
        return python_types.SimpleNamespace(mangled_name=self.entry_name, qualname=self.dispatcher.py_func.__qualname__)

    def inspect_llvm(self):
        return self.dispatcher.inspect_llvm(self.signature)

    def inspect_asm(self, cc=None):
        return self.dispatcher.inspect_asm(self.signature)

    @property
    def variable_types(self):
        """The inferred type of each variable that is left in the compiled kernel, by name."""
        return _typed.variables(self.dispatcher._inspect("typed", self.signature, "cpu"))

    @property
    def _type_annotation(self):
        """The inferred types in Numba's form, an object with `typemap`."""
        return python_types.SimpleNamespace(typemap=self.variable_types)

    def __getattr__(self, name):
        numbers = {
            "regs_per_thread": "registers",
            "shared_mem_per_block": "shared_bytes",
            "local_mem_per_thread": "local_bytes",
            "max_threads_per_block": "max_threads",
            "const_mem_size": "constant_bytes",
        }
        if name in numbers:
            return self.dispatcher._number(numbers[name], self.signature)
        if name == "cooperative":
            return self.dispatcher._kernel._made_module().has_grid_group
        raise AttributeError(name)

    def max_cooperative_grid_blocks(self, blockdim, dynsmemsize=0):
        """Returns the maximum number of blocks in a cooperative launch. dynsmemsize: bytes of
        dynamic shared memory for each block."""
        return self.dispatcher.max_cooperative_grid_blocks(self.signature, blockdim, dynsmemsize)


_kjit.know_streams(streams.Stream)
_kjit.know_classes(host_arrays.HostArray, host_arrays.MappedNDArray, types.Type)


def jit(func_or_sig=None, device=False, **options):
    """Turns a Python function into a kernel, `kernel[grid, block](...)`, or with device=True into a
    function that kernels call.

    func_or_sig: the function; or a signature, or a list of signatures, such as "void(float32[:],
    int32)". Signatures are compiled at once, and later calls accept only their types.

    Options with an effect: device, debug, fastmath, max_registers, launch_bounds, inline,
    boundscheck and lineinfo. opt=False together with debug keeps variables for debuggers. cache,
    lto, cooperative and shared_memory_carveout are accepted and change nothing. link: a list of
    file names and objects (CUSource, PTXSource, Cubin, Fatbin, Object, Archive, LTOIR) that are
    linked with the kernel.

    Raises TypeError if the object is not a Python function or is already decorated, and kjit.Error
    with the line if the function cannot be compiled.
    """
    for name in ("argtypes", "restype", "bind"):
        if name in options:
            raise _deprecated(name)
    options["device"] = device
    jit_options.warn_of_options(options)
    if isinstance(func_or_sig, Dispatcher):
        raise TypeError("A jit decorator was called on an already jitted function")
    func_or_sig = _without_njit(func_or_sig)
    if isinstance(func_or_sig, python_types.FunctionType):
        return Dispatcher(func_or_sig, [], options)
    jit_options.read(options)
    if func_or_sig is None:
        signatures = []
    elif isinstance(func_or_sig, list):
        signatures = func_or_sig
    else:
        signatures = [func_or_sig]
    parsed = [types.parse(s) for s in signatures]

    def decorate(function):
        if isinstance(function, Dispatcher):
            raise TypeError("A jit decorator was called on an already jitted function")
        return Dispatcher(_without_njit(function), parsed, options)

    return decorate


def _without_njit(function):
    """Returns the Python function inside an object made by kjit.njit or numba.njit. Returns any
    other object unchanged."""
    inner = getattr(function, "py_func", None)
    return inner if isinstance(inner, python_types.FunctionType) else function


def _deprecated(name):
    from .errors import DeprecationError

    return DeprecationError(f'Deprecated keyword argument `{name}`: give a signature, cuda.jit("void(int32[:])")')

"""kjit's C interface through ctypes: parses a module and launches a kernel on NumPy arrays."""
import ctypes as c
import glob
import os
import struct

import numpy as np

import language  # imported before records, because each needs the other
from far import Pointer
from records import Struct
from values import SCALARS

TYPE = {name: number + 1 for number, name in enumerate(SCALARS)}
CODE = {"bool": (6, 8), "i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64), "f16": (2, 16), "bf16": (4, 16), "f32": (2, 32), "f64": (2, 64)}
NUMPY = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
ARG_TYPED, ARG_NUMBER, ARG_TENSOR, ARG_BY_ADDRESS = 1, 2, 3, 6


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("rank", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class Arg(c.Structure):
    _fields_ = [("kind", c.c_uint8), ("access", c.c_uint8), ("reserved", c.c_uint16), ("type", c.c_uint32), ("value", c.c_void_p)]


class Config(c.Structure):
    _fields_ = [("size_bytes", c.c_uint32), ("flags", c.c_uint32), ("grid", c.c_uint32 * 3), ("block", c.c_uint32 * 3), ("threads", c.c_uint64), ("dynamic_shared_bytes", c.c_uint64), ("stream", c.c_void_p), ("device", c.c_void_p), ("cluster", c.c_uint32 * 3), ("priority", c.c_int32), ("cpu_threads", c.c_uint32)]


class Failure(Exception):
    pass


def numbers(array, t):
    """Returns the elements as texts that distinguish all values, also zeros with both signs, but not NaNs."""
    if t == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.ravel().tolist()


def tensor_arg(array, name, keep, element=0, lanes=1):
    """lanes: the number of components if elements are vectors; they are the array's last dimension."""
    rank = array.ndim - (lanes > 1)
    shape = (c.c_int64 * max(rank, 1))(*array.shape[:rank])
    strides = (c.c_int64 * max(rank, 1))(*[s // array.itemsize // lanes for s in array.strides[:rank]])
    code, bits = (0, 8) if isinstance(name, Struct) else CODE[name]
    tensor = Tensor(array.ctypes.data, 1, 0, rank, code, bits, lanes, shape, strides, 0)
    keep.append((tensor, shape, strides, array))
    return Arg(ARG_TENSOR, 0, 0, element, c.addressof(tensor))


def scalar_arg(value, name, keep):
    cell = np.array([value], dtype=NUMPY[name])
    keep.append(cell)
    return Arg(ARG_BY_ADDRESS, 0, 0, TYPE[name], cell.ctypes.data)


def bits_arg(bits, name):
    """A scalar, given by its bits."""
    return Arg(ARG_TYPED, 0, 0, TYPE[name], bits & ((1 << 8 * NUMPY[name]().itemsize) - 1) or None)


def number_arg(value):
    """An untyped number of the host."""
    return Arg(ARG_NUMBER, 0, 0, 0, int.from_bytes(struct.pack("<d", value), "little"))


class ContextConfig(c.Structure):
    """The fields of kjit_config up to plain_code: an application may know fewer fields than kjit."""
    _fields_ = [("size_bytes", c.c_uint32), ("executor", c.c_void_p), ("compiler_path", c.c_char_p), ("libdevice_path", c.c_char_p), ("on_diagnostic", c.c_void_p),
                ("user", c.c_void_p), ("checks", c.c_uint32), ("between", c.c_uint64 * 10), ("debug", c.c_uint32), ("cpu_threads", c.c_uint32), ("interruptible", c.c_int32),
                ("reserved", c.c_uint8 * 84), ("plain_code", c.c_int32), ("padding", c.c_uint32)]


PLAIN = {"never": 1, "equal": 2, "always": 3}


class Statistics(c.Structure):
    """The first fields of kjit_statistics."""
    _fields_ = [("size_bytes", c.c_uint32), ("launches", c.c_uint64), ("memory_hits", c.c_uint64), ("compilations", c.c_uint64), ("compile_time_ns", c.c_uint64),
                ("disk_hits", c.c_uint64), ("disk_misses", c.c_uint64)]


CHECKS = {"bounds": 1, "division": 6, "assert": 8, "integer-division": 2, "float-division": 4, "barrier": 16, "uninitialized": 32, "races": 64}
CPU_ONLY = ("barrier", "uninitialized", "races")
Poke = c.CFUNCTYPE(c.c_int32, c.c_int64, c.c_int32)


class Library:
    """A context. checks: names of CHECKS."""

    def __init__(self, folder, device, checks=(), is_debug=False, is_interruptible=False, plain="never"):
        names = [os.path.join(folder, "libkjit.so")] + sorted(glob.glob(os.path.join(folder, "libkjit.so.*")))
        self.device_name = device
        self.c = c.CDLL(next(name for name in names if os.path.exists(name)))
        self.c.kjit_copy_diagnostics_text.restype = c.c_void_p
        self.c.kjit_release_module.argtypes = [c.c_void_p]
        self.c.kjit_free.argtypes = [c.c_void_p, c.c_void_p]
        self.context = c.c_void_p()
        config = ContextConfig(size_bytes=c.sizeof(ContextConfig))
        for name in checks:
            config.checks |= CHECKS[name]
        config.debug = 2 if is_debug else 0
        config.interruptible = is_interruptible
        config.plain_code = PLAIN[plain]
        self.compares, self.has_plain, self.plain_runs = plain == "equal", plain != "never", 0
        if self.has_plain:
            self.no_cache = c.create_string_buffer(b"")
            config.between[0] = c.addressof(self.no_cache)  # cache_directory: code in it is never plain
        if self.c.kjit_create_context(c.byref(config), c.byref(self.context)):
            raise Failure("no context")
        self.device = c.c_void_p()
        self.require(self.c.kjit_get_device(self.context, 2 if device == "cuda" else 1, 0, c.byref(self.device)))

    def require(self, status):
        if status:
            text = self.c.kjit_copy_diagnostics_text(self.context)
            message = c.string_at(text).decode(errors="replace") if text else f"status {status}"
            self.c.kjit_free(self.context, text)
            self.c.kjit_get_status_name.restype = c.c_char_p
            raise Failure(f"{self.c.kjit_get_status_name(status).decode()}: {message}")

    def argument(self, t, v, keep):
        if isinstance(t, Pointer):
            number, cell = c.c_uint32(), c.c_uint64(v.address())
            self.require(self.c.kjit_parse_type(self.context, t.name.encode(), c.byref(number)))
            keep.append(cell)
            return Arg(ARG_BY_ADDRESS, 0, 0, number.value, c.addressof(cell))
        if not isinstance(t, Struct):
            return tensor_arg(v, t, keep) if isinstance(v, np.ndarray) else scalar_arg(v, t, keep)
        number = c.c_uint32()
        self.require(self.c.kjit_parse_type(self.context, t.name.encode(), c.byref(number)))
        if isinstance(v, np.ndarray):
            return tensor_arg(v, t, keep, number.value)
        cell = np.array([v], t.dtype)
        keep.append(cell)
        return Arg(ARG_BY_ADDRESS, 0, 0, number.value, cell.ctypes.data)

    def bind(self, module, poke):
        """Binds the application's function `poke` to the module. Releases the given module."""
        bound = c.c_void_p()
        try:
            self.require(self.c.kjit_bind_extern(module, b"poke", poke, None, c.c_size_t(0), c.byref(bound)))
        finally:
            self.release(module)
        return bound

    def parse(self, text):
        """A module, which must be released with release."""
        module, data = c.c_void_p(), text.encode()
        self.require(self.c.kjit_parse_module(self.context, b"random", data, c.c_size_t(len(data)), c.byref(module)))
        return module

    def release(self, module):
        self.c.kjit_release_module(module)

    def launch(self, module, name, arguments, grid=(0, 0, 0), block=(0, 0, 0)):
        """Launches a kernel of the module and waits for it."""
        kernel = c.c_void_p()
        self.require(self.c.kjit_get_kernel(module, name.encode(), c.byref(kernel)))
        config = Config(c.sizeof(Config), 0, (c.c_uint32 * 3)(*grid), (c.c_uint32 * 3)(*block), 0, 0, None, self.device)
        self.require(self.c.kjit_launch(kernel, c.byref(config), (Arg * len(arguments))(*arguments), c.c_size_t(len(arguments))))
        self.require(self.c.kjit_synchronize_device(self.device))

    def compilations(self):
        found = Statistics(size_bytes=c.sizeof(Statistics))
        self.require(self.c.kjit_get_statistics(self.context, c.byref(found)))
        return found.compilations

    def launch_again(self, module, arguments, start, grid, block):
        """Launches the best code with the initial values. Its results must have the bits of the plain code that the
        first launch has run."""
        keep = []
        first = [v.copy() if isinstance(v, np.ndarray) else v for _, v in arguments]
        for (_, v), old in zip(arguments, start):
            if isinstance(v, np.ndarray):
                v[...] = old
        self.launch(module, "k", [self.argument(t, v, keep) for t, v in arguments], grid, block)
        for number, ((t, v), plain) in enumerate(zip(arguments, first)):
            if not isinstance(v, np.ndarray):
                continue
            for n, (a, b) in enumerate(zip(numbers(v, t), numbers(plain, t))):
                if repr(a) != repr(b):
                    raise Failure(f"argument {number}, element {n}: {a}, plain code {b}")

    def run(self, text, arguments, grid, block, poke=None):
        """arguments: (type, NumPy array or scalar) in the order of the kernel's parameters. The arrays change in place.
        poke: the effect of the extern func with this name, for an index and a value."""
        keep, module = [], self.parse(text)
        function = Poke(poke) if poke else None
        if poke:
            module = self.bind(module, function)
        start = [v.copy() if isinstance(v, np.ndarray) else v for _, v in arguments] if self.compares else None
        before = self.compilations()
        try:
            self.launch(module, "k", [self.argument(t, v, keep) for t, v in arguments], grid, block)
            if self.has_plain:
                self.require(self.c.kjit_wait_background(self.context))
                self.plain_runs = self.compilations() - before - 1
            if self.compares and self.plain_runs and not poke:
                self.launch_again(module, arguments, start, grid, block)
        finally:
            self.release(module)

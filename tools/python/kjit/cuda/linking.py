"""Code in other languages that is linked with kernels: CUDA C, PTX and cubins, and the functions
that this code defines."""

import io
import os

from ..frontend import library
from ..frontend import words as _forms
from . import config, errors, types

# The values of kjit_link_format, by file extension.
_FORMATS = {"cu": 1, "ptx": 2, "cubin": 3, "fatbin": 4, "o": 5, "a": 6, "ltoir": 7}
_TEXTS = ("cu", "ptx")


class LinkableCode:
    """Code in memory that is linked with a kernel. data: a string, bytes, a StringIO or a BytesIO.
    name: the name of the code in messages."""

    kind = ""
    default_name = "<unnamed>"

    def __init__(self, data, name=None, setup_callback=None, teardown_callback=None, nrt=False):
        if type(self) is LinkableCode:
            raise TypeError("LinkableCode has no format: use CUSource, PTXSource, Cubin, Fatbin, Object, Archive or LTOIR")
        if setup_callback is not None or teardown_callback is not None:
            raise NotImplementedError("setup_callback and teardown_callback are not supported: they take objects of cuda.core")
        if nrt:
            raise NotImplementedError("nrt=True is not supported: kjit does not have Numba's runtime (NRT)")
        inner = data.getvalue() if isinstance(data, (io.StringIO, io.BytesIO)) else data
        if not isinstance(inner, (str, bytes, bytearray)):
            raise TypeError(f"{type(self).__name__} takes a string or bytes, not {type(inner).__name__}")
        self._data, self._name, self.nrt = data, name, nrt

    @property
    def name(self):
        """The name of the code in messages."""
        return self._name or self.default_name

    @property
    def data(self):
        """The code, a string or bytes. For a StringIO or BytesIO its contents."""
        return self._data.getvalue() if isinstance(self._data, (io.StringIO, io.BytesIO)) else self._data

    def _read(self):
        """Returns the code in the form that Module.bind_linked takes."""
        data = self.data
        return _FORMATS[self.kind], self.name, data.encode() if isinstance(data, str) else bytes(data), _options(self.kind)

    @staticmethod
    def from_path(path):
        """Reads a file and returns its contents as an object of the class for its extension. Raises
        ValueError for an unknown extension."""
        name, extension = os.path.splitext(os.path.basename(path))
        made = _CLASSES.get(extension[1:])
        if made is None:
            raise ValueError(f"Unknown extension: {extension}")
        with open(path, "r" if made.kind in _TEXTS else "rb") as file:
            return made(file.read(), name=name)

    @classmethod
    def from_path_or_obj(cls, path_or_obj):
        """Reads the file if the argument is a path, else returns the object."""
        return cls.from_path(path_or_obj) if isinstance(path_or_obj, str) else path_or_obj


class CUSource(LinkableCode):
    """CUDA C or C++ source, which NVRTC compiles."""

    kind, default_name = "cu", "<unnamed-cu>"


class PTXSource(LinkableCode):
    """PTX source."""

    kind, default_name = "ptx", "<unnamed-ptx>"


class Cubin(LinkableCode):
    """Relocatable machine code for one GPU architecture."""

    kind, default_name = "cubin", "<unnamed-cubin>"


class Fatbin(LinkableCode):
    """Code for several GPU architectures."""

    kind, default_name = "fatbin", "<unnamed-fatbin>"


class Object(LinkableCode):
    """An object file made by `nvcc -rdc=true`."""

    kind, default_name = "o", "<unnamed-object>"


class Archive(LinkableCode):
    """An archive of object files made by `nvcc -rdc=true`."""

    kind, default_name = "a", "<unnamed-archive>"


class LTOIR(LinkableCode):
    """Code in NVIDIA's LTO format, which nvJitLink optimizes when it links the kernel."""

    kind, default_name = "ltoir", "<unnamed-ltoir>"


_CLASSES = {made.kind: made for made in (CUSource, PTXSource, Cubin, Fatbin, Object, Archive, LTOIR)}


class _File:
    """The path of a file that is read when a kernel is compiled."""

    def __init__(self, path):
        self.path = os.fspath(path)
        extension = os.path.splitext(self.path)[1]
        if not extension:
            raise RuntimeError(f"Don't know how to link file with no extension: {self.path}")
        self.kind = extension[1:]
        if self.kind not in _FORMATS:
            raise RuntimeError(f"Don't know how to link file with extension {extension}: {self.path}")
        if not os.path.exists(self.path):
            raise errors.LinkerError(f"{self.path} not found")

    def _read(self):
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise errors.LinkerError(f"{self.path} cannot be read: {error.strerror}") from None
        folder = os.path.dirname(os.path.abspath(self.path))
        return _FORMATS[self.kind], self.path, data, _options(self.kind, folder)


def _options(kind, *folders):
    """Returns NVRTC's options for the code, one on each line."""
    if kind != "cu":
        return ""
    listed = [*folders, *config.CUDA_NVRTC_EXTRA_SEARCH_PATHS.split(":")]
    return "\n".join(f"-I{folder}" for folder in listed if folder)


def read_link(link):
    """Returns the objects for the option `link=` as a tuple. link: a path, an object or a list of
    both. Raises TypeError for other values."""
    if link is None:
        return ()
    if isinstance(link, (str, os.PathLike, LinkableCode)):
        link = (link,)
    if not isinstance(link, (list, tuple, set, frozenset)):
        raise TypeError(f"Expected path to file or a LinkableCode, or a list of them, not {type(link).__name__}")
    return tuple(_read_item(item) for item in link)


def _read_item(item):
    if isinstance(item, (LinkableCode, _File)):
        return item
    if isinstance(item, (str, os.PathLike)):
        return _File(item)
    raise TypeError(f"Expected path to file or a LinkableCode, not {type(item).__name__}")


# ---- libraries ----

_opened: set[str] = set()


def _open_libraries(items):
    """Opens NVRTC and nvJitLink from Python packages that are installed elsewhere than kjit, so
    that libkjit finds the libraries by name."""
    wanted = {"nvrtc"} if any(item.kind == "cu" for item in items) else set()
    for stem in (wanted | {"nvJitLink"}) - _opened:
        _opened.add(stem)
        _open_packaged(stem)


def _open_packaged(stem):
    import ctypes
    import glob
    import importlib.util

    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return
    for place in (spec and spec.submodule_search_locations) or ():
        for path in sorted(glob.glob(os.path.join(glob.escape(place), "*", "lib", f"lib{stem}.so.*"))):
            try:
                ctypes.CDLL(path)
            except OSError:
                pass  # the library is for another machine


# ---- declared functions ----


class ExternFunction(_forms.External):
    """A function of linked code that kernels call. `name` and `sig` are the name and the signature of
    the function, and `link` is the code that defines it."""

    def __init__(self, name, sig, link, use_cooperative, abi):
        super().__init__(name)
        self.name, self.sig, self.link, self.use_cooperative, self.abi = name, sig, link, bool(use_cooperative), abi

    def __call__(self, *args, **keywords):
        raise TypeError(f"{self.name} is a function of linked code, which only kernels can call")

    def __repr__(self):
        return f"<kjit.cuda.ExternFunction {self.name}{self.sig}>"

    # ---- used by the front end ----

    def write(self, builder, extern):
        builder.has_grid_group |= self.use_cooperative
        result = self.sig.return_type
        returns = result != types.void
        names = [f"a{i}" for i in range(len(self.sig.args))]
        declared = [f"{name}: {_type_text(kind, self.name)}" for name, kind in zip(names, self.sig.args)]
        given = [_argument(builder, name, kind) for name, kind in zip(names, self.sig.args)]
        text = _type_text(result, self.name) if returns else ""
        if self.abi == "c":
            arrow, statements = f" -> {text}" if returns else "", [f"{'return ' * returns}{extern}({', '.join(given)})"]
        else:
            declared.insert(0, f"r: {text or 'u8'}*")
            given.insert(0, "pointer(r[0])")
            arrow = " -> i32"
            failed = f'raise "{self.name} returned an error"'
            statements = [f"local r: {text or 'u8'}[1]", f"if {extern}({', '.join(given)}) != 0i32 {{ {failed} }}"]
            statements += ["return r[0]"] * returns
        body = "\n".join(f"  {statement}" for statement in statements)
        attributes = "@numba @cooperative" if self.use_cooperative else "@numba"
        head = f"func {self.__name__}({', '.join(names)}) {attributes}"
        return f"extern func {extern}({', '.join(declared)}){arrow}\n{head} {{\n{body}\n}}"

    def inputs(self, more):
        items = list(dict.fromkeys((*self.link, *more)))
        if items:
            _open_libraries(items)
        return [item._read() for item in items]

    def check(self, more):
        if not self.link and not more:
            raise errors.LinkerError(
                f"no linked code defines `{self.name}`; pass link=[...] with its file to cuda.declare_device or cuda.jit"
            )


def _type_text(kind, name):
    """Returns the kernel IR type for a C parameter or result."""
    if isinstance(kind, types.CPointer):
        return f"{_type_text(kind.dtype, name)}*"
    if isinstance(kind, (types.Number, types.Boolean)) and kind.text not in ("f16", "c64", "c128"):
        return kind.text
    raise NotImplementedError(
        f"cuda.declare_device: {name} has the type {kind}; functions of linked code take and return numbers, bools and CPointer"
    )


def _argument(builder, name, kind):
    """Returns the expression for an argument: a number is converted, and an array is replaced by
    the address of its first element."""
    converted = builder.function(library.FIRST_ELEMENT) if isinstance(kind, types.CPointer) else kind.text
    return f"{converted}({name})"


def declare_device(name, sig=None, link=None, use_cooperative=False, abi="numba"):
    """Declares a function that linked code defines, and returns an object that kernels can call.

    sig: the signature, such as "int32(float32, int32)". link: a file name or object with the code,
    or a list of them; the kernel's own link= can provide the code as well.

    abi="numba": the C function is `extern "C" __device__ int name(T *result, ...)`, and a return
    value other than 0 raises an error in the thread. abi="c": the function is `extern "C"
    __device__ T name(...)`. use_cooperative: kernels that call the function are launched
    cooperatively.

    Raises ValueError for a name that is not a C identifier, and NotImplementedError for another ABI
    and in the simulator.
    """
    if abi not in ("numba", "c"):
        raise NotImplementedError(f"Unsupported ABI: {abi}")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"cuda.declare_device: {name!r} is not a valid name of a C function")
    if config.ENABLE_CUDASIM:
        raise NotImplementedError("cuda.declare_device: the simulator does not run linked code")
    parsed = types.parse(sig) if sig is not None else None
    if parsed is None or parsed.return_type is None:
        raise TypeError("Return type must be provided for device declarations")
    return ExternFunction(name, parsed, read_link(link), use_cooperative, abi)

"""Puts kjit in place of numba and numba.cuda, for programs and libraries that import numba themselves."""

import importlib
import sys
import types
import warnings

from . import _missing

_VERSION = "0.61.2"  # the Numba version that these names belong to; some programs compare it
_SHORT = {"i": "int", "u": "uint", "f": "float", "c": "complex"}

_GENERATED = "write a function; kjit.njit specializes on None, strings and functions among the arguments"


class Standin(types.ModuleType):
    """A module that replaces one of Numba's modules."""

    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        reason = f": {_GENERATED}" if name == "generated_jit" else ""
        raise AttributeError(f"kjit has no {self.__name__}.{name}{reason}")


class _Late(types.ModuleType):
    """A module with the names of a kjit module. The kjit module is imported when the program first
    uses a name."""

    def __init__(self, name, source):
        super().__init__(name)
        self._source = source

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(f".{self._source}", __package__), name)


class _Finder:
    """An import finder that rejects imports of Numba modules which kjit does not replace."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "numba" and "numba" in sys.modules and isinstance(sys.modules["numba"], Standin):
            raise ModuleNotFoundError(f"kjit has no replacement for Numba's module {name}", name=name)
        return None


def _jit(signature_or_function=None, **options):
    """Replaces numba.jit by njit. With forceobj=True, which selects Numba's object mode, the function is returned
    unchanged, so Python's interpreter runs it."""
    from ._errors import KjitWarning
    from ._njit import njit

    if options.pop("forceobj", False):
        warnings.warn("numba.jit(forceobj=True): Python's interpreter runs the function", KjitWarning, stacklevel=2)
        return signature_or_function if isinstance(signature_or_function, types.FunctionType) else lambda function: function
    return njit(signature_or_function, **options)


def _vectorize(*arguments, **options):
    """Replaces numba.vectorize: numbers have Numba's types even without signatures."""
    from .cuda import reduction

    if arguments and isinstance(arguments[0], types.FunctionType):
        return reduction.vectorize_for([], **options)(arguments[0])
    return reduction.vectorize_for(*arguments or ([],), **options)


def _guvectorize(*arguments, **options):
    """Replaces numba.guvectorize: numbers have Numba's types even without signatures."""
    from .cuda import gufuncs

    return gufuncs.guvectorize_for(*(arguments if len(arguments) > 1 else ([], *arguments)), **options)


def _errors():
    """Returns the classes of numba.core.errors, implemented by kjit's classes."""
    from .cuda import errors

    names = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    for name in """NumbaTypeError NumbaValueError NumbaAttributeError NumbaIndexError NumbaKeyError NumbaAssertionError NumbaNotImplementedError
    NumbaRuntimeError NumbaRuntimeTypeError RequireLiteralValue ConstantInferenceError ForceLiteralArg UntypedAttributeError CompilerError
    ParserError IRError RedefinedError NotDefinedError VerificationError InternalError UnsupportedBytecodeError""".split():
        names.setdefault(name, errors.NumbaError)
    for name in """NumbaPendingDeprecationWarning NumbaExperimentalFeatureWarning NumbaParallelSafetyWarning NumbaTypeSafetyWarning NumbaSystemWarning
    NumbaPedanticWarning NumbaIRAssumptionWarning NumbaDebugInfoWarning""".split():
        names.setdefault(name, type(name, (errors.NumbaWarning,), {}))
    return names


def _numba():
    """Returns the names in the module numba."""
    import kjit

    from . import _njit
    from .cuda import types as kinds

    names = {**_errors(), **kinds.NAMES}  # like Numba, the module has the classes of numba.core.errors
    for short, long in _SHORT.items():
        for size in (1, 2, 4, 8, 16):
            if f"{long}{8 * size}" in names:
                names[f"{short}{size}"] = names[f"{long}{8 * size}"]
    names |= {"b1": names["boolean"], "bool_": names["boolean"], "double": names["float64"], "float_": names["float32"]}
    names |= {
        "njit": _njit.njit,
        "jit": _jit,
        "prange": _njit.prange,
        "set_num_threads": _njit.set_num_threads,
        "get_num_threads": _njit.get_num_threads,
        "threading_layer": lambda: "kjit",
        "vectorize": _vectorize,
        "guvectorize": _guvectorize,
        "literal_unroll": kjit.cuda.literal_unroll,
        "typeof": kinds.typeof,
        "from_dtype": kinds.from_dtype,
        "carray": kjit.cuda.words.carray,
        "farray": kjit.cuda.words.farray,
        "types": kinds,
        "cuda": kjit.cuda,
        "config": kjit.config,
        **_missing.NUMBA,
        "__version__": _VERSION,
        "version_info": types.SimpleNamespace(short=(0, 61), full=(0, 61, 2), major=0, minor=61, patch=2, string=_VERSION),
    }
    return names


def header_names_of_bf16():
    """Returns the names of numba.cuda._internal.cuda_bf16, which programs used before Numba had numba.cuda.bf16."""
    from .cuda import bf16

    return {"nv_bfloat16": bf16.bfloat16, **{name: getattr(bf16, name) for name in bf16.__all__ if name != "bfloat16"}}


# Returns a dictionary: the name of a Numba module -> a kjit module, or a dictionary with the names
# of the module.
def _modules():
    from . import _njit, _numpy_types, cuda
    from .cuda import cudadrv

    extending = _names_of_extending("extending")
    kinds, errors = cuda.types, _errors()
    pointed = {"carray": cuda.words.carray, "farray": cuda.words.farray}
    support = {"from_dtype": kinds.from_dtype, "as_dtype": kinds.as_dtype, **pointed}
    table = {
        "numba": _numba(),
        "numba.types": kinds,
        "numba.core": {"types": kinds, "config": cuda.config},
        "numba.core.types": kinds,
        "numba.core.config": cuda.config,
        "numba.core.errors": errors,
        "numba.core.decorators": {"njit": _numba()["njit"], "jit": _jit},
        "numba.core.typing": {"signature": lambda result, *args: result(*args)},
        "numba.np": {},
        "numba.np.numpy_support": support,
        "numba.np.extensions": {"cross2d": _numpy_types.cross2d},
        "numba.core.dispatcher": {"Dispatcher": _njit.Njit},
        "numba.core.registry": {"CPUDispatcher": _njit.Njit},
        "numba.core.extending": extending,
        "numba.extending": extending,
        "numba.typed": _missing.TYPED,
        "numba.experimental": {"jitclass": _missing.jitclass},
        "numba.experimental.structref": _missing.STRUCTREF,
        "numba.misc": {},
        "numba.misc.special": {"prange": _numba()["prange"], "literal_unroll": cuda.literal_unroll, "typeof": kinds.typeof},
        "numba.errors": errors,
        "numba.cuda": cuda,
        "numba.cuda.types": kinds,
        "numba.cuda.errors": cuda.errors,
        "numba.cuda.cudadrv": cudadrv,
        "numba.cuda.cudadrv.devicearray": cudadrv.devicearray,
        "numba.cuda.cudadrv.devices": cudadrv.devices,
        "numba.cuda.cudadrv.driver": cudadrv.driver,
        "numba.cuda.cudadrv.error": cudadrv.error,
        "numba.cuda.np": {},
        "numba.cuda.np.numpy_support": support,
        "numba.cuda.compiler": {name: getattr(cuda, name) for name in dir(cuda) if name.startswith("compile")},
        "numba.cuda.dispatcher": {"CUDADispatcher": cuda._dispatcher.Dispatcher},
        "numba.cuda.kernels": {},
        "numba.cuda.kernels.transpose": {"transpose": cuda.kernels.transpose.transpose},
        "numba.cuda.args": {name: getattr(cuda, name) for name in ("In", "Out", "InOut")},
    }
    table["numba.cuda.extending"] = _names_of_extending("cuda.extending")
    table["numba.cuda._internal"] = {}
    table["numba.cuda._internal.cuda_bf16"] = header_names_of_bf16()
    table["numba.cuda._internal.cuda_fp8"] = _Late("numba.cuda._internal.cuda_fp8", "cuda.fp8")
    for name in ("random", "cg", "libdevice", "bf16"):
        table[f"numba.cuda.{name}"] = importlib.import_module(f"{cuda.__name__}.{name}")
    table |= {name: _missing.OpenModule(name) for name in _missing.OPEN}
    return table


def _names_of_extending(module):
    """Returns the names of kjit's module for numba.extending or numba.cuda.extending."""
    made = importlib.import_module(f".{module}", __package__)
    return {**_missing.EXTENDING, **{name: getattr(made, name) for name in made.__all__ if name[0] != "_"}}


def _make():
    """Returns the replacement modules by name. Submodules are attributes of their modules."""
    made = {}
    for name, thing in _modules().items():
        if isinstance(thing, types.ModuleType):
            made[name] = thing
        else:
            made[name] = Standin(name, f"{name}'s names, which kjit has.")
            vars(made[name]).update(thing)
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        if isinstance(made.get(parent), (Standin, _missing.OpenModule)) and last not in vars(made[parent]):
            setattr(made[parent], last, module)
    return made


class AsNumba:
    """A context in which numba is kjit: `with kjit.as_numba(): import a_library`. At its end the previously imported Numba modules are
    restored."""

    def __enter__(self):
        self.saved = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "numba"}
        self.finder = _Finder()
        made = _make()
        for name in self.saved:
            del sys.modules[name]
        sys.modules.update(made)
        sys.meta_path.insert(0, self.finder)
        return made["numba"]

    def __exit__(self, *exception):
        sys.meta_path.remove(self.finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
            del sys.modules[name]
        sys.modules.update(self.saved)


def as_numba():
    """Returns a context in which `import numba` and `from numba import cuda` give kjit, for programs that you cannot edit and for libraries
    that import numba themselves. The use of a name that kjit lacks raises an error with this name, and so does the import of a module that
    neither kjit nor Numba has."""
    return AsNumba()


def run(arguments):
    """Runs a program, or a module with -m, like `python` does, with kjit in place of numba."""
    import os
    import runpy

    is_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if is_module else arguments
    if not rest or rest[0].startswith("-"):
        raise SystemExit("usage: python -m kjit.as_numba program.py [arguments], or python -m kjit.as_numba -m module [arguments]")
    with as_numba():
        sys.argv = rest
        if is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
            runpy.run_path(rest[0], run_name="__main__")


__all__ = ["as_numba", "run"]

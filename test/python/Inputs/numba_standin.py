"""Runs one file of numba-cuda's tests with kjit.cuda in the place of numba.cuda: numba_standin.py FOLDER FILE RESULTS, FOLDER
being that of the tests. RESULTS has a line for each test method as it ends: name, outcome, reason, as JSON."""
import ast
import cmath
import contextlib
import enum
import glob
import importlib.abc
import importlib.machinery
import importlib.util
import io
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings

import numpy as np

import suite_results
from suite_results import LEFT_OUT

import kjit
from kjit import _as_numba, cuda

kjit.keep_sources()  # for the source of functions that exec creates

FOLDER, FILE, RESULTS = sys.argv[1:4]


class Missing:
    """A name that kjit.cuda lacks. Each use raises an error with this name."""

    def __init__(self, name):
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def _fail(self, *args, **keywords):
        raise NotImplementedError(f"not there: {self._name}")

    __call__ = __getitem__ = __iter__ = __enter__ = __mul__ = __add__ = __lt__ = __bool__ = _fail

    def __mro_entries__(self, bases):
        self._fail()


class Module(types.ModuleType):
    """A module of numba that does not exist here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


class Tolerant(Missing):
    """A decorator of the extension API. It returns its argument unchanged, so kernels that use it fail."""

    def __call__(self, *args, **keywords):
        is_decorating = len(args) == 1 and not keywords and (isinstance(args[0], type) or callable(args[0])) and not isinstance(args[0], Missing)
        return args[0] if is_decorating and not issubclass(type(args[0]), type) else Tolerant(self._name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Tolerant(f"{self._name}.{name}")

    def __mro_entries__(self, bases):
        return ()

    def __setattr__(self, name, value):
        pass


class Extension(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name[:1].isupper() or name == "models":
            return type(name, (), {"__getattr__": lambda self, inner: Tolerant(inner)}) if name != "models" else Extension("models")
        return Tolerant(f"{self.__name__}.{name}")


# Packages that are not installed, or whose parts that the tests use are specific to Numba.
MOCKED = {"numba", "numba_cuda", "cuda", "llvmlite", "cupy"}
LINKABLE = ("CUSource", "PTXSource", "LTOIR", "Object", "Fatbin", "Cubin", "Archive", "LinkableCode")
# On the CPU linked code does not run, so the outcomes are the same on every machine.
IS_GPU = os.environ.get("KJIT_DEVICE") == "cuda"


def is_installed(name):
    """Returns whether a package can be imported. A process that a test starts has its parent's stand-ins."""
    module = sys.modules.get(name)
    return importlib.util.find_spec(name) is not None if module is None else module.__spec__ is not None


HAS_CFFI = IS_GPU and is_installed("cffi")
if not HAS_CFFI:
    MOCKED.add("cffi")
if not is_installed("ml_dtypes"):
    MOCKED.add("ml_dtypes")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.startswith("numba.cuda.tests."):
            return None  # the wheel's own
        if name.split(".")[0] in MOCKED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def place(name, **content):
    module = Module(name)
    module.__path__, module.__spec__ = [], importlib.machinery.ModuleSpec(name, None, is_package=True)
    module.__dict__.update(content)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules and parent != "numba.cuda":
        setattr(sys.modules[parent], last, module)
    return module


# Settings of numba that kjit.cuda.config lacks.
SETTINGS = {"CUDA_MEMORY_MANAGER": "default", "CUDA_ENABLE_MINOR_VERSION_COMPATIBILITY": False, "CUDA_ENABLE_NRT": False,
            "DEBUG_JITTED_ARRAYS": False, "CUDA_LAUNCH_BLOCKING": False, "NPY_RELAXED_STRIDES_CHECKING": 1,
            "PYVERSION": sys.version_info[:2], "CUDA_DEBUG_POLY": False, "CUDA_DEBUG_POLY_USE_TYPED_CONST": False}


# The parts of numba_cuda/tests/support.py that assertPreciseEqual needs. The other parts belong to Numba and cannot be
# loaded.
COMPARISON = """_bool_types _exact_typesets _approx_typesets _sequence_typesets _float_types _complex_types _detect_family _fix_dtype
    _fix_strides assertStridesEqual assertPreciseEqual _assertPreciseEqual""".split()


def load_comparison():
    """Returns the part of numba-cuda's own TestCase that compares values, as a class."""
    path = os.path.join(FOLDER, "support.py")
    tree = ast.parse(open(path).read(), path)
    case = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "TestCase")
    case.name, case.bases = "Comparison", []
    case.body = [n for n in case.body if (n.targets[0].id if isinstance(n, ast.Assign) else getattr(n, "name", None)) in COMPARISON]
    assert len(case.body) == len(COMPARISON)
    names = {"np": np, "sys": sys, "math": math, "cmath": cmath, "enum": enum}
    exec(compile(ast.Module([case], []), path, "exec"), names)
    return names["Comparison"]


class TestCase(load_comparison(), unittest.TestCase):
    longMessage = True
    FLOAT16_RTOL = np.finfo(np.float16).eps
    run_test_in_subprocess = staticmethod(lambda method: method)  # each file of tests has a process of its own

    @property
    def random(self):
        return np.random.RandomState(42)

    def reset_module_warnings(self, module):
        module = sys.modules[module] if isinstance(module, str) else module
        module.__dict__.pop("__warningregistry__", None)

    @contextlib.contextmanager
    def assertTypingError(self):
        with self.assertRaises((cuda.errors.TypingError, TypeError, NotImplementedError)) as caught:
            yield caught

    @contextlib.contextmanager
    def assertRefCount(self, *objects):
        before = [sys.getrefcount(o) for o in objects]
        yield
        for one, count in zip(objects, before):
            self.assertEqual(sys.getrefcount(one), count)

    def assertFileCheckMatches(self, *args, **keywords):
        raise unittest.SkipTest(LEFT_OUT + "FileCheck patterns of the code that Numba writes")

    assertFileCheckAsm = assertFileCheckLLVM = assertFileCheckMatches


class ForeignArray:
    def __init__(self, array):
        self._arr = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def same(thing):
    return thing


def has_disassembler():
    """Whether kjit finds NVRTC, and the assembler that it needs first (docs/tools.md)."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), *glob.glob("/usr/local/cuda"), *glob.glob("/usr/local/cuda-*")]
    path = os.pathsep.join([os.environ.get("PATH", ""), *(os.path.join(t, "bin") for t in toolkits if t)])
    return bool(shutil.which("ptxas", path=path) and (shutil.which("nvdisasm", path=path) or shutil.which("cuobjdump", path=path)))


def make_testing():
    def skips(when):
        return lambda reason: unittest.skipIf(when, reason)

    content = {f"skip_unless_cc_{n}": same for n in ("50", "53", "60", "75", "90")}
    is_simulated = bool(cuda.config.ENABLE_CUDASIM)
    content |= {"skip_on_cudasim": skips(is_simulated), "skip_unless_cudasim": skips(not is_simulated)}
    content |= {name: skips(False) for name in ("skip_under_cuda_memcheck", "skip_if_external_memmgr", "skip_on_arm",
                                                "skip_on_wsl2", "skip_on_nvjitlink_13_1_sm_120")}
    content["skip_unless_conda_cudatoolkit"] = skips(True)
    content |= {"skip_with_nvdisasm": skips(has_disassembler()), "skip_without_nvdisasm": skips(not has_disassembler())}
    # kjit links Numba's functions without nvJitLink, but it has no LTO-IR for them.
    content["skip_if_nvjitlink_missing"] = lambda reason: unittest.skipIf("LTO" in reason, LEFT_OUT + "LTO-IR")
    for name, header in (("skip_if_cuda_includes_missing", "cuda_runtime.h"), ("skip_if_curand_kernel_missing", "curand_kernel.h")):
        has_header = IS_GPU and os.path.exists(os.path.join("/usr/local/cuda/include", header))
        content[name] = unittest.skipUnless(has_header, LEFT_OUT + "CUDA C")
    content["skip_if_cudadevrt_missing"] = content["skip_on_standalone_numba_cuda"] = same
    return place("numba.cuda.testing", CUDATestCase=TestCase, unittest=unittest, ForeignArray=ForeignArray,
                 xfail_unless_cudasim=same if is_simulated else unittest.expectedFailure, cc_X_or_above=lambda major, minor: True,
                 test_data_dir=pathlib.Path(FOLDER, "data"), numba_cuda_dir=os.path.dirname(FOLDER), **content)


def make_support(config):
    @contextlib.contextmanager
    def override_config(name, value):
        old = getattr(config, name)
        setattr(config, name, value)
        try:
            yield
        finally:
            setattr(config, name, old)

    def run_in_subprocess(code, flags=(), env=None, timeout=200):
        done = subprocess.run([sys.executable, *flags, "-c", code], timeout=timeout, capture_output=True, env=env)
        if done.returncode:
            raise AssertionError(f"process failed with code {done.returncode}: {done.stderr.decode()[-300:]}")
        return done.stdout.decode(), done.stderr.decode()

    class Mixin:
        """The counters of NRT, which does not exist here."""

        @contextlib.contextmanager
        def check_warnings(self, messages, category=RuntimeWarning):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
            texts = [str(one.message) for one in caught if issubclass(one.category, category)]
            missing = [m for m in messages if not any(m in text for text in texts)]
            assert not missing, missing

    return place("numba.cuda.tests.support", TestCase=TestCase, MemoryLeakMixin=Mixin, CheckWarningsMixin=Mixin, EnableNRTStatsMixin=Mixin, override_config=override_config, run_in_subprocess=run_in_subprocess,
                 ignore_internal_warnings=lambda: None, captured_stdout=lambda: contextlib.redirect_stdout(io.StringIO()),
                 captured_stderr=lambda: contextlib.redirect_stderr(io.StringIO()), linux_only=same, skip_unless_cffi=unittest.skipUnless(HAS_CFFI, LEFT_OUT + "cffi"),
                 skip_if_py314=same, expected_failure_py314=same, windows_only=unittest.skip("Windows only test"),
                 skip_if_numpy_2=same, IS_NUMPY_2=False, skip_if_typeguard=same)


def make_pytest():
    """The part of pytest that classes of unittest need: parametrize runs the method with each value."""
    def parametrize(names, values, ids=None, indirect=False):
        listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)

        def decorate(method):
            def each(self, *args, **keywords):
                for value in values:
                    value = getattr(value, "values", value) if isinstance(value, Param) else value
                    given = dict(zip(listed, value if len(listed) > 1 else (value,)))
                    with self.subTest(**given):
                        method(self, *args, **given, **keywords)
            each.__name__ = method.__name__
            return each
        return decorate

    class Param:
        def __init__(self, *values, **keywords):
            self.values = values if len(values) > 1 else values[0]

    class Mark:
        def __getattr__(self, name):
            if name == "parametrize":
                return parametrize
            if name == "xfail":
                return lambda condition=True, **keywords: unittest.expectedFailure if condition else same
            return lambda *args, **keywords: same

    @contextlib.contextmanager
    def raises(kind, match=None):
        import re
        try:
            yield
        except kind as error:
            assert match is None or re.search(match, str(error)), error
            return
        raise AssertionError(f"not raised: {kind}")

    sys.modules["pytest"] = types.ModuleType("pytest")
    @contextlib.contextmanager
    def warns(kind=Warning, match=None):
        import re
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield seen
        assert any(issubclass(w.category, kind) and (match is None or re.search(match, str(w.message))) for w in seen), "no warning"

    def importorskip(name, *args, **keywords):
        try:
            module = importlib.import_module(name)
        except ImportError:
            raise unittest.SkipTest(f"could not import {name}") from None
        if isinstance(module, Module):
            raise unittest.SkipTest(f"{LEFT_OUT}{name}")
        return module

    sys.modules["pytest"].__dict__.update(mark=Mark(), warns=warns, importorskip=importorskip, param=Param, raises=raises, fixture=lambda *a, **k: a[0] if a and callable(a[0]) else same)


def install():
    sys.meta_path.insert(0, Finder())
    numba = place("numba", cuda=cuda, __version__="0.0")
    sys.modules["numba.cuda"] = cuda
    cuda.__dict__.setdefault("__path__", []) if not hasattr(cuda, "__path__") else None
    sys.modules["numba.cuda.types"] = numba.types = cuda.types
    config, transpose, there = cuda.config, cuda.kernels.transpose.transpose, cuda.cudadrv
    for name, value in SETTINGS.items():
        config.__dict__.setdefault(name, value)
    # Without these warnings, as on a GPU. Numba's own tests start without them, too.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_WARN_ON_IMPLICIT_COPY = 0
    for name in ("cudaimpl", "cudadecl", "cgutils", "models", "core.imputils", "typing.templates"):
        sys.modules[f"numba.cuda.{name}"] = Extension(f"numba.cuda.{name}")
    extension = sys.modules["numba.cuda.extending"] = Extension("numba.cuda.extending")
    vars(extension).update(_as_numba._names_of_extending("cuda.extending"))
    sys.modules["numba.core.extending"] = sys.modules["numba.extending"] = extension
    for name in ("utils", "launchconfig", "cudadrv", "cgutils", "extending", "cudaimpl", "compiler", "typing", "np", "libdevicefuncs",
                 "vector_types", "device_init", "cudadecl", "descriptor", "dispatcher", "simulator", "typeconv", "kernels"):
        if name in ("types", "dispatcher"):
            continue
        setattr(cuda, name, sys.modules.get(f"numba.cuda.{name}") or Missing(f"numba.cuda.{name}"))
    if not hasattr(cuda.errors, "NumbaTypeError"):
        for name in ("NumbaTypeError", "NumbaValueError", "NumbaNotImplementedError", "RequireLiteralValue", "ConstantInferenceError"):
            setattr(cuda.errors, name, cuda.errors.TypingError)
    core = place("numba.cuda.core", errors=cuda.errors, config=config)
    sys.modules["numba.cuda.core.errors"] = sys.modules["numba.core.errors"] = cuda.errors
    sys.modules["numba.cuda.core.config"] = sys.modules["numba.cuda.config"] = config
    place("numba.core", errors=cuda.errors, types=cuda.types, config=config)
    cuda.core = core
    if not HAS_CFFI:
        sys.modules["cffi"] = Extension("cffi")
        sys.modules["cffi"].FFI = Tolerant("cffi.FFI")
    cuda.vector_types = place("numba.cuda.vector_types", vector_types=cuda.types.VECTORS)
    # The simulator's module has the same objects. Its jit is kjit.cuda's.
    place("numba.cuda.simulator", jit=cuda.jit, kernel=types.SimpleNamespace(BlockThread=type("BlockThread", (threading.Thread,), {})))
    place("numba.cuda.simulator.vector_types", vector_types=cuda.types.VECTORS)
    cuda.simulator = sys.modules["numba.cuda.simulator"]
    place("numba.cuda.libdevicefuncs", functions={}, create_signature=None)  # one of Numba's tables
    place("numba.cuda.misc.special", literal_unroll=cuda.literal_unroll)
    cuda.utils = place("numba.cuda.utils", PYVERSION=sys.version_info[:2])
    place("numba.cuda.np")
    place("numba.cuda.np.numpy_support", from_dtype=cuda.types.from_dtype, as_dtype=cuda.types.as_dtype,
          carray=kjit.cuda.words.carray, farray=kjit.cuda.words.farray,
          numpy_version=tuple(map(int, np.__version__.split(".")[:2])))
    place("numba.cuda.typing", signature=lambda result, *args: result(*args))
    place("numba.cuda.typing.typeof", typeof=cuda.types.typeof)
    cuda.cudadrv = place("numba.cuda.cudadrv")
    cuda.launchconfig = place("numba.cuda.launchconfig")
    numba.errors = cuda.errors
    numba.njit, numba.jit = kjit.njit, _as_numba._jit
    cuda.HAS_NUMBA = True
    numba.vectorize, numba.guvectorize, numba.typeof = cuda.vectorize, cuda.guvectorize, cuda.types.typeof
    place("numba.cuda.cudadrv.driver", _have_nvjitlink=lambda: False,
          **{n: v for n, v in vars(there.driver).items() if n[0] != "_"})
    place("numba.cuda.kernels.transpose", transpose=transpose)
    place("numba.cuda.cudadrv.devicearray", DeviceNDArray=cuda._arrays.DeviceNDArray, is_contiguous=cuda._arrays.is_contiguous,
          verify_cuda_ndarray_interface=cuda._arrays.verify_cuda_ndarray_interface, from_array_like=cuda._arrays.from_array_like,
          auto_device=cuda._arrays.auto_device, array_core=cuda._arrays.array_core, DeviceRecord=cuda._records.DeviceRecord,
          from_record_like=cuda._records.from_record_like)
    cuda.devicearray = sys.modules["numba.cuda.cudadrv.devicearray"]
    place("numba.cuda.cudadrv.nvrtc", find_closest_arch=same, _get_nvrtc_version=lambda: (0, 0))
    place("numba.cuda.cudadrv.devices", get_context=cuda.current_context, gpus=cuda.gpus)
    place("cuda.core._utils.cuda_utils", CUDAError=cuda.errors.CudaAPIError, NVRTCError=cuda.errors.CudaAPIError)
    place("numba.cuda.cudadrv.linkable_code", **{name: getattr(cuda, name) for name in LINKABLE})
    place("numba.cuda.cudadrv.error", CudaSupportError=cuda.errors.CudaSupportError)
    place("numba.cuda.args", wrap_arg=cuda._arguments.wrap_arg)
    place("numba.cuda.dispatcher", CUDADispatcher=cuda._dispatcher.Dispatcher)
    place("numba.cuda.compiler", **{n: getattr(cuda, n) for n in dir(cuda) if n.startswith("compile")})
    tests = types.ModuleType("numba.cuda.tests")
    tests.__path__ = [FOLDER]
    sys.modules["numba.cuda.tests"] = tests
    tests.load_testsuite = lambda *args: None
    tests.support = make_support(config)
    testing = make_testing()
    cuda.__dict__.update(testing=testing, tests=tests)
    for name in ("random", "cg", "bf16"):
        with contextlib.suppress(ImportError):
            sys.modules[f"numba.cuda.{name}"] = getattr(cuda, name)
    place("numba.cuda._internal.cuda_bf16", **_as_numba.header_names_of_bf16())
    for name in ("numba.cuda._internal.cuda_fp8", "numba.cuda.api", "cuda.bindings.runtime"):
        sys.modules[name] = _as_numba._Late(name, "cuda.fp8")
    # Tests of pickled functions create a new target description, which kjit does not keep.
    place("numba.core.target_extension", resolve_dispatcher_from_str=lambda name: type("Target", (), {"targetdescr": name}))
    make_pytest()  # the same value on every machine


def serve_programs(folder):
    """Programs that tests start in their own processes use the stand-in, too: the interpreter loads it at its start."""
    with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
        file.write(f"import sys\nsys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                   f"before, sys.argv = getattr(sys, 'argv', ['']), ['', {FOLDER!r}, '', '']\n"
                   "import numba_standin\nnumba_standin.install()\nsys.argv = before\n")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])


def main():
    threading.current_thread().name = "main"
    with tempfile.TemporaryDirectory() as folder:
        serve_programs(folder)
        install()
        suite_results.run_file(FOLDER, FILE, RESULTS)


if __name__ == "__main__":
    main()

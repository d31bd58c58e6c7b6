"""Runs one file of Numba's own tests for the CPU with kjit.njit in the place of numba.njit and numba.jit:
numba_cpu_standin.py FILE RESULTS, FILE being the name of a module of numba.tests without "numba.tests.". RESULTS has a line for
each test as suites.py says. numba itself is there, since the tests use its types, errors and class of test cases."""
import importlib
import json
import os
import sys
import time
import traceback
import unittest
import warnings

import numba
import numba_cpu_internals
import numba.core.compiler
import numba.experimental
import numba.extending
import numba.typed
import numpy as np
from numba.core import errors, types
from numba.tests import support

import kjit
import kjit.cuda
from kjit import _as_numba, _njit, _signatures
from kjit.cuda import types as own_types

kjit.keep_sources()  # for the source of functions that exec creates

FILE, RESULTS = sys.argv[1:3]
ACCEPTED = _njit._OPTIONS


class OutOfScope(Exception):
    """A test uses features outside of njit: object mode, lists, Numba's internals."""


class Missing:
    """A Numba feature that is out of scope, whatever a test does with it."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **keywords):
        raise OutOfScope(self.name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise OutOfScope(f"{self.name}.{name}")


def refused(name):
    return Missing(name)


class Refused(kjit.Error, errors.TypingError, errors.LoweringError, errors.UnsupportedError):
    """An error for code that kjit rejects. It belongs to all Numba error classes for such code."""

    def __init__(self, error):
        Exception.__init__(self, str(error))
        self.msg = self.value = str(error)
        self.loc = None

    def __str__(self):
        return self.msg


def refusal(error):
    """Returns a Refused that also has the Python class of the error, such as TypeError."""
    own = next((kind for kind in (TypeError, ValueError, IndexError) if isinstance(error, kind)), None)
    return Refused(error) if own is None else type("Refused", (Refused, own), {})(error)


# Exceptions of the program itself pass through. The others come from the compiler.
OF_THE_COMPILER = (kjit.SourceError, kjit.TypingError, kjit.UnknownNameError, kjit.ArgumentError, kjit.UnsupportedError, kjit.CompileError)
ran_in_python = False


class Judged(_njit.Njit):
    """kjit.njit's function, raising the errors that Numba's tests expect."""

    def __call__(self, *args, **keywords):
        global ran_in_python
        try:
            ran_in_python |= bool(self.runs_in_python)
            return super().__call__(*args, **keywords)
        except OF_THE_COMPILER as error:
            raise refusal(error) from error

    def compile(self, signature):
        raise OutOfScope("compile() of a dispatcher")

    @property
    def overloads(self):
        return Overloads(super().overloads)

    def __get__(self, instance, owner=None):
        return self if instance is None else lambda *args, **keywords: self(instance, *args, **keywords)


class Compiled:
    """The code for one combination of argument types. Numba's compile results have more attributes: its libraries, its
    IR and others."""

    def __init__(self, overload):
        self.signature, self.entry_point = overload.signature, overload.entry_point

    def __getattr__(self, name):
        raise OutOfScope(f"Numba's result of a compilation: {name}")


class Overloads(dict):
    """A dictionary with argument types of kjit or of Numba as keys."""

    def __getitem__(self, kinds):
        return Compiled(super().__getitem__(tuple(own_types.of_numba(kind) for kind in kinds)))

    def __contains__(self, kinds):
        return super().__contains__(tuple(own_types.of_numba(kind) for kind in kinds))


class Signed(Judged):
    """A function whose signature kjit's types cannot express. Numbers are converted to the types of the signature."""

    signature = None

    def __call__(self, *args, **keywords):
        if not keywords and len(args) == len(self.signature):
            args = [convert(a, t) for a, t in zip(args, self.signature)]
        return super().__call__(*args, **keywords)


def signed(python, options, given):
    """A function with signatures."""
    try:
        return Judged(getattr(python, "py_func", python), options, _signatures.parse(given))
    except TypeError:
        made = Signed(getattr(python, "py_func", python), options)
        made.signature = arguments_of(given)
        return made


def convert(value, kind):
    if isinstance(kind, (types.Integer, types.Float, types.Complex, types.Boolean)) and isinstance(value, (int, float, complex, np.number, np.bool_)):
        return np.dtype(str(kind)).type(value)
    return value


def arguments_of(signature):
    """Returns the parameter types of a signature."""
    if isinstance(signature, str):
        from numba.core import sigutils
        signature = sigutils.normalize_signature(signature)[0]
    return getattr(signature, "args", signature)


def jit(signature_or_function=None, locals=None, cache=False, pipeline_class=None, **options):
    if options.pop("forceobj", False) or options.get("looplift") or options.get("nopython") is False:
        raise OutOfScope("object mode")
    if pipeline_class is not None:
        raise OutOfScope("passes of Numba's")
    options = {k: v for k, v in options.items() if v is not None and k not in ("nopython", "nogil", "_nrt", "no_rewrites", "no_cfunc_wrapper", "forceinline", "looplift")}
    if options.get("inline") not in (None, "always", "never") or not set(options) <= ACCEPTED:
        raise OutOfScope("options: " + ", ".join(sorted(options)))
    function = signature_or_function

    def decorate(python):
        return Judged(getattr(python, "py_func", python), options)

    if function is None:
        return decorate
    if isinstance(function, (str, tuple, types.Type, numba.core.typing.templates.Signature)):
        return lambda python: signed(python, options, function)
    if isinstance(function, list) and len(function) == 1:
        return lambda python: signed(python, options, function[0])
    if isinstance(function, list):
        return lambda python: signed(python, options, function)
    return decorate(function)


def njit(*args, **options):
    options.pop("nopython", None)
    return jit(*args, **options)


def vectorize(*arguments, **options):
    if options.get("forceobj"):
        raise OutOfScope("object mode")
    return _as_numba._vectorize(*arguments, **options)


def guvectorize(*arguments, **options):
    if options.get("forceobj"):
        raise OutOfScope("object mode")
    return _as_numba._guvectorize(*arguments, **options)


class Builder:
    """Numba's classes Vectorize and GUVectorize: signatures are added one by one."""

    def __init__(self, python, *layout, identity=None, cache=False, targetoptions=None, target="cpu", **options):
        self.python, self.layout, self.signatures = python, layout, []
        self.options = {"target": target, **options} | ({} if identity is None else {"identity": identity})

    def add(self, signature):
        self.signatures.append(signature)

    def __new__(cls, python, *layout, is_dynamic=False, **options):
        # a function that is compiled for the types of each call, as guvectorize without signatures creates it
        if is_dynamic:
            return guvectorize(*layout, **options)(python)
        return super().__new__(cls)

    def build_ufunc(self):
        make = guvectorize if self.layout else vectorize
        return make(self.signatures, *self.layout, **self.options)(self.python)


def dufunc(python, identity=None, cache=False, targetoptions=None):
    """Numba's class DUFunc. vectorize without signatures returns an object of this class."""
    return vectorize([], identity=identity)(getattr(python, "py_func", python))


def follow_seeds(module):
    """Seeds the generators of test_random. Its tests copy the state of a Python or NumPy generator to Numba's."""
    import random

    state_of_python = module.get_py_state_ptr()
    seed_python, seed_numpy = kjit.njit(lambda n: random.seed(n)), kjit.njit(lambda n: np.random.seed(n))

    def follow_numpy(self, state, seed=2):
        (seed_python if state == state_of_python else seed_numpy)(seed)
        return np.random.RandomState(seed)

    def follow_cpython(self, state, seed=2):
        words, at = follow_numpy(self, state, seed).get_state()[1:3]
        made = random.Random()
        made.setstate((3, (*map(int, words), at), None))
        return made

    module.BaseTest._follow_numpy, module.BaseTest._follow_cpython = follow_numpy, follow_cpython


def keep_schedules(module):
    """Leaves out a check of test_parfors, which looks for Numba's scheduler in LLVM IR after the results have been compared."""
    module.TestParforsBase.check_scheduling = lambda self, cres, scheduler_type: None


def keep_references(module):
    """Leaves out a check in test_dyn_array that counts the references of Numba's memory runtime."""
    module.NrtRefCtTest.assert_array_nrt_refct = lambda self, array, count: None


def refuse_builders(module):
    """Marks the tests that build a ufunc from Numba's compile results as out of scope."""
    module.UFuncBuilder = refused("numba.np.ufunc.ufuncbuilder.UFuncBuilder")


def keep_lists(module):
    """Leaves out a check of test_comprehension, which looks for lists and for Numba's scheduler in LLVM IR after the results have been
    compared."""

    def check(self, python, *args, run_parallel=False, assert_allocate_list=False, assert_dtype=False):
        got = jit(nopython=True, parallel=run_parallel)(python)(*args)
        np.testing.assert_array_equal(python(*args), got)
        if assert_dtype:
            self.assertEqual(got[1].dtype, assert_dtype)

    module.TestArrayComprehension.check = check


ADAPTED = {"npyufunc.test_ufuncbuilding": refuse_builders, "test_random": follow_seeds, "test_parfors": keep_schedules, "test_dyn_array": keep_references,
           "test_comprehension": keep_lists}


def install():
    import numba.np.ufunc
    import numba.np.ufunc.dufunc
    warnings.simplefilter("ignore")
    for name in ("Vectorize", "GUVectorize"):
        setattr(numba.np.ufunc, name, Builder)
    numba.np.ufunc.dufunc.DUFunc = dufunc
    numba.np.ufunc.vectorize, numba.np.ufunc.guvectorize = vectorize, guvectorize
    for name, thing in {"jit": jit, "njit": njit, "prange": kjit.prange, "vectorize": vectorize, "guvectorize": guvectorize,
                        "generated_jit": refused("generated_jit"), "cfunc": refused("cfunc"), "stencil": refused("stencil"),
                        "jit_module": refused("jit_module"), "pndindex": np.ndindex, "set_num_threads": kjit.set_num_threads,
                        "get_num_threads": kjit.get_num_threads}.items():
        setattr(numba, name, thing)
    numba.core.decorators.jit, numba.core.decorators.njit = jit, njit
    support.jit, support.njit = jit, njit
    support.TestCase._callTestMethod = lambda self, method: method()
    for name in ("typed", "experimental"):
        module = getattr(numba, name)
        for inner in ("List", "Dict", "jitclass", "structref"):
            if hasattr(module, inner):
                setattr(module, inner, refused(f"numba.{name}.{inner}"))
    for name in ("compile_isolated", "compile_extra", "compile_ir", "run_frontend", "compile_internal", "Compiler"):
        if hasattr(numba.core.compiler, name) and not isinstance(getattr(numba.core.compiler, name), type):
            setattr(numba.core.compiler, name, refused(f"numba.core.compiler.{name}"))
    for name in ("overload", "overload_method", "overload_attribute", "intrinsic", "lower_builtin"):
        setattr(numba.extending, name, lambda *args, name=name, **keywords: refused(f"the extension API: {name}"))
    numba.extending.register_jitable = lambda *args, **keywords: args[0] if args and callable(args[0]) else (lambda f: f)


def first_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def name_of(test):
    return f"{type(test).__name__}.{test._testMethodName}"


class Result(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file, self.worst = file, None

    def startTest(self, test):
        global ran_in_python
        super().startTest(test)
        ran_in_python = False
        self.worst, self.start = None, time.time()
        self.write([name_of(test), "began", ""])

    def write(self, row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def stopTest(self, test):
        outcome, reason = self.worst or (("python", "a function ran in the interpreter") if ran_in_python else ("pass", ""))
        self.write([name_of(test), outcome, reason, round(time.time() - self.start, 2)])

    def addError(self, test, error):
        if os.environ.get("NUMBA_SUITE_TRACE"):
            traceback.print_exception(*error)
        seen = error[1]
        while seen is not None and not isinstance(seen, OutOfScope):
            seen = seen.__cause__ or seen.__context__
        inside = numba_cpu_internals.reason_of(FILE, name_of(test), f"{type(error[1]).__name__}: {error[1]}")
        reason = inside if seen is None else str(seen)
        self.worst = ("fail", first_line(error[1])) if reason is None else ("out", reason)

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None and self.worst is None:
            self.addError(test, error)

    def addSkip(self, test, reason):
        self.worst = "skip", reason

    def addExpectedFailure(self, test, error):
        self.worst = "xfail", "Numba fails in it, too"

    def addUnexpectedSuccess(self, test):
        self.worst = "xfail", "what Numba itself does not do yet"


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    install()
    wanted = os.environ.get("NUMBA_SUITE_TEST")
    with open(RESULTS, "a") as file:
        done = {json.loads(line)[0] for line in open(RESULTS)}
        try:
            module = importlib.import_module("numba.tests." + FILE)
            if FILE in ADAPTED:
                ADAPTED[FILE](module)
            suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        except BaseException as error:
            if os.environ.get("NUMBA_SUITE_TRACE"):
                traceback.print_exc()
            file.write(json.dumps(["*", "fail", "import: " + first_line(error)]) + "\n")
            return
        result, prepared = Result(file), set()
        for test in tests_of(suite):
            if type(test) not in prepared:
                prepared.add(type(test))
                type(test).setUpClass()
            if name_of(test) not in done and not type(test).__name__.endswith("Runner") and (not wanted or wanted in name_of(test)):
                test.run(result)
    sys.stdout.flush()
    os._exit(0)  # do not wait for Numba's own threads


if __name__ == "__main__":
    main()

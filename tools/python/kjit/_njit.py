"""njit, prange and the number of threads: functions on the CPU as users of Numba write them."""

import ast
import functools
import os
import sys
import threading
import types

from . import _functions, _kjit, _state, dtypes
from ._errors import Error
from .frontend import parallel

# Parts of a loop with reductions: always as many, so that sums are the same whatever the number of threads is.
_MOST_PARTS = 128
_PART_BYTES = 16
_CLASSES = {0: "i", 1: "u", 2: "f", 4: "bf", 5: "c"}  # DLPack's numbers
_deciding = threading.local()  # the functions of which runs_in_python is asked, one within the other
_OPTIONS = {"parallel", "fastmath", "boundscheck", "error_model", "interruptible", "debug", "inline", "nopython", "nogil", "cache"}


def prange(*bounds):
    """range, whose iterations a function made by kjit.njit(parallel=True) spreads over the cores."""
    return range(*bounds)


prange.kjit_loop = "prange"  # type: ignore[attr-defined]


def _cores():
    return max(1, len(os.sched_getaffinity(0)))


def set_num_threads(n):
    """How many cores launches of this thread of Python on the CPU are spread over at most, from 1 to those that there are."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"a number of threads is an integer, not {type(n).__name__}")
    if not 1 <= n <= _cores():
        raise ValueError(f"threads are 1 to {_cores()}, which this process may use, not {n}")
    _kjit.set_threads(n)


def get_num_threads():
    """How many cores launches of this thread of Python on the CPU are spread over at most."""
    return _kjit.get_threads() or _cores()


class _Part(_functions._Compiled):
    """The code of one loop of a function."""

    is_typed = True
    __name__ = "loop"

    def __init__(self, whole, loop):
        self.py_func, self.node, self.loop = whole.py_func, loop.node, loop
        self.attributes, self._bits, self._rules = whole.attributes, whole._bits, " @numba"
        self._made = None

    def _parameters(self):
        return tuple(a.arg for a in self.node.args.args)


class _SerialLoop(_Part, _kjit.Function):
    _kind = "func"

    def _load(self):
        module, name = self._module()
        return module, name, self._parameters(), (), True, True


class _ParallelLoop(_Part, _kjit.Kernel):
    _kind = "kernel"

    def _begin(self):
        return _state.context(*self._bits), self._parameters(), (), "cpu", True

    def _load(self):
        return self._module()

    def _take_apart(self, args):
        raise TypeError(
            "a loop over prange uses numbers and arrays of the function around it; tuples, records and functions go by names of their own in it"
        )

    def run(self, start, stop, step, *values):
        """The loop: values are what its reductions begin with, then its inputs; gives what the reductions become."""
        count = len(range(start, stop, step))
        reductions = self.loop.reductions
        if not reductions:
            if count:
                self(count, start, step, *values)
            return None
        import numpy

        number = len(reductions)
        firsts, inputs = values[:number], values[number:]
        if not count:
            return firsts if number > 1 else firsts[0]
        parts = min(count, _MOST_PARTS)
        raw, kinds = numpy.empty(parts * number * _PART_BYTES, numpy.uint8), numpy.zeros(number, numpy.int64)
        begins = [
            first if begin is None else type(first)(begin) for first, (_, begin) in zip(firsts, reductions.values())
        ]
        self(raw, kinds, parts, count, start, step, *begins, *inputs)
        sums = raw.reshape(parts, number, _PART_BYTES)
        results = [
            _join(first, sums[:, i], int(kinds[i]), operator, begin)
            for i, (first, (operator, begin)) in enumerate(zip(firsts, reductions.values()))
        ]
        return results if number > 1 else results[0]


def _join(first, parts, kind, operator, begin):
    """What a reduction becomes: the sums of all parts, in their order, behind what it was before."""
    import numpy

    name = "bool" if kind >> 8 == 6 else f"{_CLASSES[kind >> 8]}{kind & 255}"
    if name not in dtypes._NUMPY:
        raise TypeError(f"a sum of {name} has no type in NumPy: convert what is summed up, kjit.f32(x)")
    dtype = numpy.dtype(dtypes._NUMPY[name])
    values = numpy.ascontiguousarray(parts[:, : dtype.itemsize]).view(dtype).ravel()
    joined = getattr(numpy, operator)
    with numpy.errstate(all="ignore"):  # as in the loop itself
        result = joined.reduce(values)
        if begin is not None:
            result = joined(dtype.type(first), result)
    return result.item() if name in ("i64", "f64", "bool", "c128") else dtype.type(result)


class Njit(_functions.Function):
    """A function on the CPU, made by kjit.njit."""

    is_typed = True

    def __init__(self, function, options):
        _functions._check_function(function, "njit")
        unknown = set(options) - _OPTIONS
        if unknown:
            raise TypeError(f"kjit.njit has no option {min(unknown)!r}: {', '.join(sorted(_OPTIONS))}")
        model = options.get("error_model", "python")
        if model not in ("python", "numpy"):
            raise ValueError(f'error_model is "python" or "numpy", not {model!r}')
        checks = ["assert"] + ["division"] * (model == "python") + ["bounds"] * bool(options.get("boundscheck"))
        inline = True if options.get("inline") == "always" else None
        self._is_parallel = bool(options.get("parallel"))
        self._prepare(
            function,
            {
                "checks": checks,
                "debug": options.get("debug"),
                "fastmath": options.get("fastmath"),
                "inline": inline,
                "numba": True, "interruptible": options.get("interruptible"),
            },
        )
        self._splitter_made = self._loaded = None
        self._options = options

    @classmethod
    def _remake(cls, function, options):
        return cls(function, options)

    @property
    def _splitter(self):
        if self._splitter_made is None:
            self._splitter_made = parallel.Splitter(self.py_func, self._is_parallel)
        return self._splitter_made

    @property
    def runs_in_python(self):
        """Whether the function is called by Python only: some of its loops are spread over the cores, or it calls NumPy."""
        deciding = _deciding.__dict__.setdefault("functions", [])
        if any(self is function for function in deciding):
            return False  # the function calls itself; the rest of its body decides
        deciding.append(self)
        try:
            return not self._splitter.is_whole()
        finally:
            deciding.pop()

    def _load(self):
        try:
            return self._make_driver() if self.runs_in_python else super()._load()
        except Error as error:  # its place is in the program, not here
            raise error.with_traceback(None) from None

    @property
    def ir(self):
        """The kernel IR that the function became, or its loops."""
        if not self.runs_in_python:
            return self._made_module().plain
        self._make_driver()
        return "\n".join(part._made_module().plain for part in self._parts)

    def _make_driver(self):
        """The function of Python with its loops as calls."""
        splitter = self._splitter
        body, function = splitter.split(), self.py_func
        self._parts = [_ParallelLoop(self, loop) if loop.bounds else _SerialLoop(self, loop) for loop in splitter.loops]
        names = {id(part.loop): f"__kjit_loop_{i}" for i, part in enumerate(self._parts)}
        node = splitter.node
        inner = ast.FunctionDef(
            name=node.name, args=_bare(node.args), body=_fill(body, names), decorator_list=[], returns=None
        )
        around = {**splitter.static.around, **{names[id(p.loop)]: p.run if p.loop.bounds else p for p in self._parts}}
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=n) for n in around], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        outer = ast.FunctionDef(
            name="around",
            args=arguments,
            body=[inner, ast.Return(ast.Name(node.name, ast.Load()))],
            decorator_list=[],
            returns=None,
        )
        ast.copy_location(inner, node)
        tree = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
        space = {}
        exec(compile(tree, function.__code__.co_filename, "exec"), function.__globals__, space)
        driver = space["around"](**around)
        driver.__defaults__, driver.__kwdefaults__ = function.__defaults__, function.__kwdefaults__

        @functools.wraps(driver)
        def call(*arguments, **keywords):
            return _plain(driver(*arguments, **keywords))

        return call

    def __repr__(self):
        return f"<kjit.njit {self.py_func.__qualname__}>"


def _plain(result):
    """Scalars of NumPy as numbers of Python, which Numba's functions return; in tuples, too."""
    if type(result) is tuple:
        return tuple(map(_plain, result))
    numpy = sys.modules.get("numpy")
    is_number = numpy is not None and isinstance(result, (numpy.number, numpy.bool_))
    return result.item() if is_number else result


def _bare(arguments):
    """Parameters without annotations and defaults, which are the function's."""

    def bare(items):
        return [ast.copy_location(ast.arg(arg=a.arg), a) for a in items]

    if arguments.vararg or arguments.kwarg:
        raise TypeError("a function for njit has no *args and no **kwargs")
    return ast.arguments(
        posonlyargs=bare(arguments.posonlyargs),
        args=bare(arguments.args),
        kwonlyargs=bare(arguments.kwonlyargs),
        kw_defaults=[None] * len(arguments.kwonlyargs),
        defaults=[],
    )


def _fill(body, names):
    """A body whose loops have become calls."""
    return [_call(s, names[id(s)]) if isinstance(s, parallel.Loop) else _inside(s, names) for s in body] or [ast.Pass()]


def _inside(statement, names):
    for field in ("body", "orelse"):
        inner = getattr(statement, field, None)
        if isinstance(inner, list) and inner:
            setattr(statement, field, _fill(inner, names))
    return statement


def _call(loop, name):
    values = [ast.Name(n, ast.Load()) for n in ([*loop.reductions] if loop.reductions else []) + loop.inputs]
    call = ast.Call(ast.Name(name, ast.Load()), [*(loop.bounds or []), *values], [])
    targets = [ast.Name(n, ast.Store()) for n in loop.outputs]
    if not targets:
        statement = ast.Expr(call)
    else:
        statement = ast.Assign([targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())], call)
    for node in ast.walk(statement):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, loop.statement)
    return statement


def njit(function=None, **options):
    """Makes a function one for the CPU, as Numba's njit: it is compiled for the types of each call, changes arrays in place
    and returns numbers and tuples of them; with calls of NumPy that make arrays, those too. Numbers of Python are i64 and
    f64 in it, negative indices count from the end. Options: parallel (loops over kjit.prange run on all cores; sums,
    products, min, max and bit operations of scalars in them are reductions), fastmath, boundscheck, error_model ("python":
    a division by zero raises; "numpy"), debug, interruptible, inline ("always"); nopython, nogil and cache are what is always so."""
    if (
        isinstance(function, (str, list, tuple))
        or function is not None
        and not isinstance(function, types.FunctionType)
    ):
        raise TypeError("kjit.njit takes a function and no signature: it compiles for the types of each call")
    if function is None:
        return functools.partial(njit, **options)
    return Njit(function, options)

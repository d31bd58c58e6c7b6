"""Decides for a function that stays in Python which statements on whole arrays NumPy runs, which
are compiled, and which Python's interpreter runs."""

import ast
import random
import types

from .. import _numpy_types, _overloading, _ufuncs
from . import library, static, ufuncs, words
from .scope import COMPOUND, blocks, header

# NumPy functions of whole arrays. Their run time does not depend on whether the call itself is
# compiled.
FUNCTIONS = frozenset(
    """empty zeros ones full empty_like zeros_like ones_like full_like arange linspace logspace eye identity array asarray copy
    ascontiguousarray asfortranarray reshape ravel transpose swapaxes moveaxis concatenate stack hstack vstack dstack column_stack
    atleast_1d atleast_2d atleast_3d expand_dims broadcast_to broadcast_arrays dot vdot inner outer matmul kron trace diag diagonal
    sum prod mean average median std var ptp min max amin amax all any nansum nanprod nanmean nanstd nanvar nanmin nanmax nanmedian
    cumsum cumprod nancumsum nancumprod diff argmin argmax argsort sort argwhere nonzero flatnonzero count_nonzero where select clip
    round around real imag angle conj take take_along_axis repeat tile roll rot90 flip fliplr flipud searchsorted digitize bincount
    histogram unique interp percentile quantile correlate convolve cross triu tril meshgrid isclose allclose array_equal nan_to_num
    append delete insert split array_split size shape ndim dtype iinfo finfo sinc cov corrcoef trapz cumulative_sum""".split()
)
METHODS = frozenset(
    """sum prod min max mean std var all any copy astype reshape ravel flatten transpose view fill sort argsort argmin argmax cumsum
    cumprod dot conj conjugate item nonzero repeat take searchsorted clip round swapaxes diagonal trace squeeze ptp""".split()
)
_LAMBDA = "a lambda in a comprehension of a function that makes arrays: define a function outside of it"
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Lambda)
_WHY = {ast.Try: "contains `try`", ast.Raise: "raises an exception with values that are not constants"}


def is_of_numpy(thing):
    """Returns whether an object is a function, type or ufunc of NumPy, or Numba's function for whole arrays. Functions of
    numpy.random are methods of its generator."""
    if _numpy_types.is_cross2d(thing):
        return True
    owner = getattr(thing, "__self__", None)
    modules = getattr(thing, "__module__", None) or type(thing).__module__, type(owner).__module__
    return any(str(module).split(".")[0] == "numpy" for module in modules) or type(thing).__name__ == "ufunc"


def is_pythons(thing):
    """Returns whether an object is a NumPy function that is written in Python."""
    is_function = isinstance(thing, types.FunctionType) or type(thing).__name__ == "_ArrayFunctionDispatcher"
    return is_function and str(getattr(thing, "__module__", "")).split(".")[0] == "numpy"


def is_random(thing):
    """Returns whether an object is a function of numpy.random or of the module random."""
    owner = type(getattr(thing, "__self__", None))
    return owner.__module__.startswith("numpy.random") or issubclass(owner, random.Random) or is_known_random(thing)


def random_of(thing, call):
    """Returns the function that compiled code calls in place of a function in np.random or random, or None."""
    if not is_known_random(thing) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    from .. import _distributions

    return _distributions.scalar_of(thing, len(call.args), tuple(k.arg for k in call.keywords))


def is_known_random(thing):
    """Returns whether an object is a function of np.random or of the module random that njit functions support."""
    module = str(getattr(thing, "__module__", None) or type(getattr(thing, "__self__", None)).__module__)
    if not module.startswith(("numpy.random", "random")):
        return False
    from .. import _distributions

    return _distributions.is_known(thing)


_LAYOUTS = frozenset("contiguous c_contiguous f_contiguous".split())


class WholeArrays:
    """The part of Splitter for statements that run in Python."""

    def calls_python(self, call, is_in_loop=False):
        """Returns whether a node calls a NumPy function or array method that kernels lack. In a
        loop, more of these calls are compiled."""
        thing = self.static.value(call.func)
        if self.overloads_of(call) is not None:
            return False
        if thing is print or thing is slice:
            return True
        if thing is static.UNKNOWN:
            is_method = isinstance(call.func, ast.Attribute) and call.func.attr != "dtype"
            if is_method and call.func.attr == "type" and getattr(call.func.value, "attr", None) == "dtype":
                return False
            return is_method and not (is_in_loop and not call.args and not call.keywords and call.func.attr in library.METHODS)
        if getattr(thing, "runs_in_python", False):
            return not (is_in_loop and thing.has_code)
        if is_random(thing):
            return random_of(thing, call) is None
        if is_in_loop and not call.keywords and library.instead(thing, len(call.args)) is not thing:
            return False
        is_filling = ufuncs.is_ufunc(thing) and thing.nout > 1 or isinstance(thing, _ufuncs.Attributes)
        if is_filling and len(call.args) > thing.nin:  # NumPy, or a ufunc made by vectorize, fills the result arrays
            return True
        if library.is_fill(thing, len(call.args)):  # the call's value is the array that the call fills
            return not any(isinstance(node, ast.Expr) and node.value is call for node in ast.walk(self.node))
        is_known = isinstance(thing, type) or words.builtin_name(thing) is not None or ufuncs.text_of(thing) is not None
        return not is_known and is_of_numpy(thing)

    def reads_layout(self, node):
        """Returns whether a node is `a.flags.c_contiguous` or similar, which only Python knows."""
        is_flag = isinstance(node, ast.Attribute) and node.attr in _LAYOUTS and isinstance(node.value, ast.Attribute)
        return is_flag and node.value.attr == "flags" and self.static.value(node.value) is static.UNKNOWN

    def overloads_of(self, node):
        """Returns the definitions by overload of a called function or method, or of an attribute; None for other nodes."""
        if isinstance(node, ast.Call):
            thing = self.static.value(node.func)
            is_method = thing is static.UNKNOWN and isinstance(node.func, ast.Attribute)
            return _overloading.method_of(node.func.attr) if is_method else _overloading.defined(thing)
        is_attribute = isinstance(node, ast.Attribute) and self.static.value(node) is static.UNKNOWN
        return _overloading.attribute_of(node.attr) if is_attribute else None

    def interpreted(self):
        """Returns (node, reason, whether nopython=True allows it) for each statement that the
        interpreter runs: loops, and calls that do not work on whole arrays."""
        found = []
        if self.node is not None:
            self.lift()
            self._find_interpreted(self.node.body, found)
        return found

    def _find_interpreted(self, body, found):
        for statement in body:
            is_loop = isinstance(statement, (ast.For, ast.While))
            if self.is_prange(statement) or is_loop and not self.needs_python(statement):
                continue
            if is_loop and not any(self.is_prange(node) for node in ast.walk(statement)):
                causes = sorted(self._causes(statement), key=lambda cause: cause[1])  # rejected constructs come first
                found.append((statement, f"Python's interpreter runs this loop, which {causes[0][0]}", causes[0][1]))
            elif isinstance(statement, COMPOUND):
                self._find_calls(header(statement), found)
                for block in blocks(statement):
                    self._find_interpreted(block, found)
            else:
                self._find_calls(statement, found)

    def _causes(self, loop):
        """Returns (reason, whether nopython=True allows the statement) for each statement or call that keeps the loop from being compiled."""
        made = {id(t.statement.value) for t in self.temporaries(loop)}
        found = []
        for node in ast.walk(loop):
            if self.is_of_interpreter(node):
                found.append((_WHY[type(node)], True))
            elif self.reads_layout(node):
                found.append((f"reads `{ast.unparse(node)}`", False))
            elif isinstance(node, ast.Call) and id(node) not in made and self.calls_python(node, True):
                thing = self.static.value(node.func)
                found.append((f"calls `{ast.unparse(node.func)}`", thing is print or getattr(thing, "is_njit", False)))
        return found

    def is_of_interpreter(self, node):
        """Returns whether only the interpreter can run the statement: `try`, and `raise` with values that are not
        constants."""
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            return not all(map(self._is_constant, node.exc.args))
        return isinstance(node, ast.Try)

    def _is_constant(self, node):
        try:
            ast.literal_eval(node)
        except (ValueError, TypeError):
            return isinstance(self.static.value(node), (*static.PLAIN, tuple))
        return True

    def calls_njit(self, loop):
        """Returns whether a loop calls a function made by njit."""
        return any(isinstance(n, ast.Call) and getattr(self.static.value(n.func), "is_njit", False) for n in ast.walk(loop))

    def _find_calls(self, node, found):
        for call in ast.walk(node):
            is_call = isinstance(call, ast.Call) and self.static.value(call.func) is not print
            if is_call and self.calls_python(call) and not self.is_of_whole_arrays(call):
                found.append((call, f"Python's interpreter calls `{ast.unparse(call.func)}`", False))

    def is_of_whole_arrays(self, call):
        thing = self.static.value(call.func)
        if thing is static.UNKNOWN:
            return isinstance(call.func, ast.Attribute) and call.func.attr in METHODS
        is_ufunc = ufuncs.is_ufunc(thing) or isinstance(thing, _ufuncs.Attributes)
        if thing is slice or getattr(thing, "runs_in_python", False) or is_ufunc or is_known_random(thing) or _numpy_types.is_cross2d(thing):
            return True
        module = str(getattr(thing, "__module__", "")).split(".")
        return module[0] == "numpy" and module[1:2] in ([], ["lib"], ["_core"], ["core"]) and thing.__name__ in FUNCTIONS

    def refuse_displays(self, statement):
        """Rejects lists, sets and dictionaries, except a list that is an argument of a NumPy
        function."""
        allowed = set()
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and is_of_numpy(self.static.value(node.func)):
                allowed |= {id(inner) for a in node.args for inner in ast.walk(a) if isinstance(inner, (ast.List, ast.ListComp))}
        for node in ast.walk(statement):
            if isinstance(node, _DISPLAYS) and id(node) not in allowed and not isinstance(getattr(node, "ctx", None), ast.Store):
                raise self.source.error(node, words.INSTEAD.get(type(node).__name__, _LAMBDA))

"""The part of a kjit.njit function that stays in Python: its loops are replaced by calls of
compiled code, and its expressions use Numba's types."""

import ast
import copy
import functools
import operator
import sys
import types

from . import (
    _aligned,
    _algorithms,
    _functions,
    _interpreted_errors,
    _kjit,
    _missing,
    _numpy_arguments,
    _numpy_types,
)
from ._loops import ParallelLoop, SerialLoop, SerialPart, Uncompiled
from .frontend import elementwise, interpreted_types, parallel, static, whole_arrays

_SMALL = 2**20
_UNCOMPILED = "__kjit_uncompiled"
_IN_PLACE = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}


def _is_number(value):
    if isinstance(value, (bool, int, float, complex)):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biufc"


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufc"


class Computed:
    """An expression of a function that stays in Python. Numbers are computed with Numba's types,
    and arrays element by element in one pass. Python itself computes values of other classes, and
    numbers for which it gives the same result."""

    def __init__(self, whole, expression):
        self.whole, self.expression = whole, expression
        self.is_harmless = expression.is_harmless and not (expression.has_division and whole.error_model == "numpy")
        self.scalar = self.elements = None
        self.python = _as_lambda(expression)

    def __call__(self, *values):
        if self.is_harmless:
            for value in values:
                if type(value) is not float and not (type(value) is int and -_SMALL < value < _SMALL):
                    break
            else:
                return self.python(*values)
        if all(map(_is_number, values)):
            return self.compute(values)
        is_elementwise = self.expression.has_elements and all(_is_number(v) or _is_array(v) for v in values)
        return self.compute_elements(values) if is_elementwise else self.python(*values)

    def _name(self):
        """Returns the function's name for messages."""
        name = self.whole.py_func.__name__
        return name if name.isidentifier() else "expression"

    def compute(self, values):
        if self.scalar is None:
            self.scalar = SerialPart(
                self.whole, elementwise.function_of(self.expression, self.expression.scalar, self._name())
            )
        return self.scalar(*values)

    def compute_elements(self, values):
        import numpy

        if self.elements is None:
            node = elementwise.function_of(self.expression, elementwise.of_elements(self.expression), self._name())
            self.elements = _Elements(self.whole, node)
        typed = [value if _is_array(value) else numpy.asarray(value)[()] for value in values]
        shape = numpy.broadcast_shapes(*(value.shape for value in typed))
        if 0 in shape or not shape:  # Python's result is right if the operands have NumPy's types
            return self.python(*typed)
        typed, _ = _aligned.copies(typed) or (typed, None)
        arrays = [value for value in typed if _is_array(value)]
        if all(a.flags.f_contiguous and not a.flags.c_contiguous and a.shape == shape for a in arrays):
            typed = [value.T if _is_array(value) else value for value in typed]  # the result is in Fortran order, too
            return numpy.asarray(_algorithms.map(self.elements, *typed, device="cpu")).T
        result = numpy.asarray(_algorithms.map(self.elements, *typed, device="cpu"))
        layouts = {n: _layout(v) if _is_array(v) else "" for n, v in zip(self.expression.names, typed)}
        return numpy.asfortranarray(result) if self.expression.layout(layouts) == "F" else result


def _layout(array):
    """Returns Numba's letter for an array's layout."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


class _Elements(SerialPart, _functions.Function):
    """The elementwise function for an expression. A division by zero does not raise an error in it."""

    def __init__(self, whole, node):
        super().__init__(whole, node)
        self._bits, self._loaded = (0, 0, False), None

    def _loaded_module(self):
        from . import _state

        context = _state.context()
        if self._loaded is None or self._loaded[0] is not context:
            self._loaded = (context, *self._module())
        return self._loaded[1:]


class InPlace:
    """A statement such as `a += b`. It changes an array in place, and computes a new value for a
    number."""

    def __init__(self, kind, computed):
        self.operator, self.computed = _IN_PLACE[kind], computed

    def __call__(self, target, value):
        return self.operator(target, value) if _is_array(target) else self.computed(target, value)


def _as_lambda(expression):
    """Returns the expression as a Python function."""
    space = {}

    class Functions(ast.NodeTransformer):
        def visit_Call(self, node):
            name = f"function_{len(space)}"
            thing = node.func.value
            space[name] = _numpy_types.CONVERSIONS.get(thing, thing) if isinstance(thing, type) else thing
            made = ast.Call(ast.Name(name, ast.Load()), [self.visit(a) for a in node.args], [])
            return ast.copy_location(made, node)

    tree = Functions().visit(_copy(expression.scalar))
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=n) for n in expression.names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.Expression(ast.fix_missing_locations(ast.copy_location(ast.Lambda(arguments, tree), expression.node)))
    return eval(compile(made, "<expression>", "eval"), space)


def _copy(node):
    """Returns a copy of a syntax tree. Constants in the tree may be functions, which are not
    copied."""
    if isinstance(node, list):
        return [_copy(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    return ast.copy_location(type(node)(**{field: _copy(getattr(node, field, None)) for field in node._fields}), node)


class _Rewriter(ast.NodeTransformer):
    """Replaces expressions by calls of Computed. around: the objects that the new function can
    refer to, by name."""

    def __init__(self, whole, around):
        self.whole, self.around, self.finder = whole, around, elementwise.Finder(whole._splitter.static)

    def keep(self, kind, thing):
        name = f"__kjit_{kind}_{len(self.around)}"
        self.around[name] = thing
        return ast.Name(name, ast.Load())

    def visit(self, node):
        if getattr(node, "is_made", False):
            return node
        found = self.finder.find(node) if isinstance(node, ast.expr) else None
        if found is None:
            return super().visit(node)
        leaves = [self.visit(leaf) for leaf in found.leaves]
        return ast.copy_location(ast.Call(self.keep("expression", Computed(self.whole, found)), leaves, []), node)

    def visit_Constant(self, node):
        """Replaces a class, such as an exception class, by a name that refers to it, because Python's compiler
        does not accept a class as a constant."""
        is_object = isinstance(node.value, type)
        return ast.copy_location(self.keep("object", node.value), node) if is_object else node

    def visit_Call(self, node):
        """Makes a called Python function an njit function, because functions that are compiled as a
        whole compile their callees, too. Replaces other functions by Numba's variants."""
        thing = self.finder.names.value(node.func)
        if (
            isinstance(thing, types.FunctionType)
            and getattr(thing, "kjit_loop", None) is None
            and not getattr(thing, "runs_in_python", False)
            and not _is_numpys(thing)
        ):
            _missing.refuse_stub(thing, node, self.whole._splitter.source)
            node.func = self.keep("function", self.whole.inner(thing))
        own = (
            print_plain
            if thing is print
            else self.random_of(thing)
            or _numpy_types.function_of(thing)
            or _numpy_types.CONVERSIONS.get(thing if isinstance(thing, type) else None)
            or (_slice if thing is slice else None)
        )
        report = functools.partial(self.whole._splitter.source.error, node)
        is_method = thing is static.UNKNOWN and isinstance(node.func, ast.Attribute)
        if _numpy_arguments.is_checked(thing):
            own = _numpy_arguments.checked(thing, own or thing, report, self.constants_of(node))
        if own:
            node.func = self.keep("numpy", own)
        elif is_method and node.func.attr in _numpy_types.METHODS | _numpy_arguments.METHODS:
            call = _numpy_types.method_of(node.func.attr)
            if node.func.attr in _numpy_arguments.METHODS:
                call = _numpy_arguments.checked_method(node.func.attr, call, report)
            method = self.keep("method", call)
            node = ast.copy_location(ast.Call(method, [node.func.value, *node.args], node.keywords), node)
        return self.generic_visit(node)

    def constants_of(self, call):
        """Returns the positions and the names of the arguments of a call that are constants."""
        places = [*enumerate(call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]
        return frozenset(place for place, value in places if self.finder.names.value(value) is not static.UNKNOWN)

    def visit_Compare(self, node):
        """Replaces `is` between variables by Numba's test, which compares arrays by their memory,
        shape and type."""
        node = self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return node
        if any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators)):
            return node
        same = ast.Call(self.keep("identical", _numpy_types.are_identical), [node.left, *node.comparators], [])
        return ast.copy_location(same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same), node)

    @staticmethod
    def random_of(thing):
        """Returns the function that replaces a function of np.random or of the module random, or None."""
        if not whole_arrays.is_known_random(thing):
            return None
        from . import _distributions

        return _distributions.hosted(thing)

    def visit_Assign(self, node):
        made = self.generic_visit(node)
        if len(made.targets) == 1:
            made.value = self.stored(made.targets[0], made.value)
        return made

    def stored(self, target, value):
        """Returns an assignment's value, converted for the target."""
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, (ast.Name, ast.Attribute)):
            return value
        base = _copy(target.value)
        base.ctx = ast.Load()
        return ast.copy_location(ast.Call(self.keep("stored", _numpy_types.stored), [base, value], []), value)

    def visit_AugAssign(self, node):
        target = node.target
        if type(node.op) not in _IN_PLACE or any(isinstance(n, ast.Call) for n in ast.walk(target)):
            return self.generic_visit(node)
        old = _copy(target)
        old.ctx = ast.Load()
        whole = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        leaves = elementwise.Expression(whole, [], ["leaf_0", "leaf_1"], _binary(node, "leaf_0", "leaf_1"))
        in_place = self.keep("in_place", InPlace(type(node.op), Computed(self.whole, leaves)))
        call = ast.Call(in_place, [self.visit(old), self.visit(node.value)], [])
        value = self.stored(target, ast.copy_location(call, node))
        return ast.copy_location(ast.Assign([self.visit(target)], value), node)


def _is_numpys(function):
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy" or _numpy_types.is_cross2d(function)


def _binary(node, left, right):
    names = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in (left, right)]
    return ast.copy_location(ast.BinOp(names[0], node.op, names[1]), node)


def make(whole):
    """Returns the Python function of an Njit whose loops are calls of compiled code. Each combination of argument kinds has its
    own variant of the function, because the types of the variables depend on it."""
    splitter = whole._splitter
    body = splitter.split()
    whole._parts = [ParallelLoop(whole, loop) if loop.bounds else SerialLoop(whole, loop) for loop in splitter.loops]
    variants, parameters = {}, [a.arg for a in (*splitter.node.args.posonlyargs, *splitter.node.args.args)]
    kind_of = interpreted_types.kind_of_value

    @functools.wraps(whole.py_func)
    def call(*arguments, **keywords):
        kinds = *map(kind_of, arguments), *((name, kind_of(value)) for name, value in keywords.items())
        variant = variants.get(kinds)
        if variant is None:
            by_name = (
                dict.fromkeys(splitter.parameters, interpreted_types.OTHER)
                | dict(zip(parameters, kinds))
                | dict(kinds[len(arguments) :])
            )
            variant = variants[kinds] = _variant(whole, body, by_name)
        try:
            return plain(variant(*map(_with_fields, arguments), **{name: _with_fields(v) for name, v in keywords.items()}))
        except TypeError as error:
            located = _interpreted_errors.of_types(error, variant.__code__, splitter.source)
            if located is None:
                raise
            raise located from error

    return call


def _variant(whole, body, kinds):
    """Returns the function's variant for parameters of these kinds."""
    splitter, function = whole._splitter, whole.py_func
    node = splitter.node
    names = {id(loop): f"__kjit_loop_{i}" for i, loop in enumerate(splitter.loops)}
    around = {**_globals_of(function), **splitter.static.around}
    around |= {names[id(loop)]: part.run for loop, part in zip(splitter.loops, whole._parts)}
    around[_UNCOMPILED] = Uncompiled
    filled = _fill(body, names)
    rewriter = _Rewriter(whole, around)
    joins = interpreted_types.Joins(
        splitter.static, lambda value: ast.Call(rewriter.keep("joined", interpreted_types.joined), [value], [])
    )
    joins.apply(filled, kinds)
    filled = [rewriter.visit(statement) for statement in filled]
    own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    inner = ast.FunctionDef(name=node.name, args=_bare(node.args), body=filled, decorator_list=[], returns=None)
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=n) for n in around if n not in own],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
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
    driver = space["around"](**{name: value for name, value in around.items() if name not in own})
    driver.__defaults__, driver.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return driver


def _globals_of(function):
    """Returns the global names that a function uses, with their present values. The values are
    constants from then on, as in compiled code."""
    return {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}


def _slice(*bounds):
    """Returns a slice whose fields are numbers, as in Numba: defaults take the place of None."""
    made = slice(*bounds)
    step = 1 if made.step is None else made.step
    ends = (0, sys.maxsize) if step > 0 else (sys.maxsize, -sys.maxsize - 1)
    given = made.start, made.stop
    return slice(*(end if bound is None else bound for bound, end in zip(given, ends)), step)


def _with_fields(value):
    """Converts a value to its form in Numba. An array of records, or a record, becomes a view whose fields are also attributes. A slice
    gets numbers in place of None. An element of a kjit.Array becomes a number. Returns any other value unchanged."""
    if type(value) is slice:
        return _slice(value.start, value.stop, value.step)
    if type(value) is tuple and any(type(item) is slice for item in value):
        return tuple(map(_with_fields, value))
    if type(value) is _kjit.Array and value._is_element and value.dtype.text != "bf16":  # NumPy has no bfloat16
        return value.to_host()[()]  # a number, like an element of a NumPy array
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.void)) or not value.dtype.names:
        return value
    if type(value) is numpy.ndarray:
        if not isinstance(value.base, numpy.void) or value.shape:
            return value.view(numpy.recarray)
        value = value.base  # a record that `take_apart` passes as an array
    return value.view(numpy.dtype((numpy.record, value.dtype))) if type(value) is numpy.void else value


def _without_fields(array):
    """Returns the array with a plain dtype in place of numpy.record."""
    import numpy

    dtype = array.dtype
    if dtype.type is numpy.record:
        dtype = numpy.dtype((numpy.void, dtype))
    return array.view(dtype, numpy.ndarray)


def plain(result):
    """Converts NumPy scalars to Python numbers, bytes and strings, as Numba's functions return them,
    also inside tuples."""
    if isinstance(result, tuple):
        items = map(plain, result)
        return type(result)._make(items) if hasattr(result, "_fields") else tuple(items)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return result
    if isinstance(result, (numpy.number, numpy.bool_, numpy.character)) and not isinstance(result, numpy.timedelta64):
        return result.item()
    if isinstance(result, numpy.ndarray) and result.dtype.type is numpy.record:
        result = _without_fields(result)
    is_record = isinstance(result, numpy.ndarray) and result.shape == () and result.dtype.names
    return result[()] if is_record else result


def print_plain(*values, **keywords):
    """Prints NumPy scalars as Python's numbers, like Numba."""
    print(*map(plain, values), **keywords)


def _bare(arguments):
    """Returns parameters without annotations and defaults; the original function keeps them."""

    def bare(items):
        return [ast.copy_location(ast.arg(arg=a.arg), a) for a in items]

    return ast.arguments(
        posonlyargs=bare(arguments.posonlyargs),
        args=bare(arguments.args),
        vararg=bare([arguments.vararg])[0] if arguments.vararg else None,
        kwonlyargs=bare(arguments.kwonlyargs),
        kw_defaults=[None] * len(arguments.kwonlyargs),
        kwarg=bare([arguments.kwarg])[0] if arguments.kwarg else None,
        defaults=[],
    )


def _fill(body, names):
    """Returns a copy of a body with calls in place of its loops."""
    return [_loop(s, names[id(s)]) if isinstance(s, parallel.Loop) else _inside(s, names) for s in body] or [ast.Pass()]


def _loop(loop, name):
    """Returns the call that replaces a loop. If the loop cannot be compiled, an exception handler
    runs it in Python."""
    statement = _call(loop, name)
    handler = ast.ExceptHandler(ast.Name(_UNCOMPILED, ast.Load()), None, [copy.deepcopy(loop.statement)])
    made = ast.copy_location(ast.Try([statement], [handler], [], []), loop.statement)
    made.is_of_loop = True
    return made


def _later(name):
    """Returns `lambda: name`, for a variable that may have no value."""
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(arguments, ast.Name(name, ast.Load()))


def _inside(statement, names):
    fields = {}
    for field in statement._fields:
        value = getattr(statement, field, None)
        is_block = field in ("body", "orelse") and isinstance(value, list) and value
        fields[field] = _fill(value, names) if is_block else copy.deepcopy(value)
    return ast.copy_location(type(statement)(**fields), statement)


def _call(loop, name):
    """Returns the statement that replaces a loop; see ParallelLoop.run and SerialLoop.run."""
    values = []
    if loop.parts:
        values += [ast.Name(n, ast.Load()) for n in loop.parts.reductions]
        values += [_later(n) for n in loop.parts.lasts]
    for made in loop.temporaries:
        dtype = ast.Constant(None) if made.dtype is None else copy.deepcopy(made.dtype)
        values.append(ast.Tuple([copy.deepcopy(made.shape), dtype], ast.Load()))
    values += [_later(n) if n in loop.unset else ast.Name(n, ast.Load()) for n in loop.inputs]
    call = ast.Call(ast.Name(name, ast.Load()), [*copy.deepcopy(loop.bounds or []), *values], [])
    targets = [ast.Name(n, ast.Store()) for n in loop.outputs]
    if not targets:
        statement = ast.Expr(call)
    else:
        statement = ast.Assign([targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())], call)
    for node in ast.walk(statement):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, loop.statement)
    return statement

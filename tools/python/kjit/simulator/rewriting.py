"""Rewrites the function of a kernel for the interpreter. The code keeps the line numbers of the
program's file, so that debuggers show its lines."""

import ast
import builtins
import inspect
import types

import numpy


from .. import _errors, dtypes
from ..frontend import source
from ..frontend import words as language
from . import arithmetic, debugging, words

_PREFIX = "__kjit_"


def _copied(node, nodes):
    """Returns a copy of a syntax tree, which copy.deepcopy makes more slowly, and appends the original
    nodes to the list `nodes`."""
    nodes.append(node)
    made = type(node).__new__(type(node))
    fields = made.__dict__
    for name, value in node.__dict__.items():
        if isinstance(value, ast.AST):
            value = _copied(value, nodes)
        elif type(value) is list:
            value = [_copied(item, nodes) if isinstance(item, ast.AST) else item for item in value]
        fields[name] = value
    return made


def _bound_names(nodes):
    """Returns the local names of a function and of the functions inside it. nodes: those of its
    syntax tree, beginning with the function itself."""
    names = set()
    for part in nodes:
        kind = type(part)
        if kind is ast.Name:
            if type(part.ctx) is not ast.Load:
                names.add(part.id)
        elif kind is ast.arg:
            names.add(part.arg)
        elif kind in (ast.FunctionDef, ast.ClassDef) and part is not nodes[0]:
            names.add(part.name)
    return names


def _is_literal(node):
    """Returns whether an expression is a number literal or an operation on number literals."""
    if isinstance(node, ast.BinOp):
        return _is_literal(node.left) and _is_literal(node.right)
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(operand, ast.Constant) and type(operand.value) in (int, float, complex)


class _Rewriter(ast.NodeTransformer):
    """Rewrites the syntax tree of one function. namespace: the globals of the rewritten function,
    to which the rewriter adds the objects that new nodes refer to. bound: the function's local
    names."""

    def __init__(self, function, bound, rewritten):
        self.source = source.of(function)
        self.rewritten, self.bound, self.outside = rewritten, bound, function.__code__.co_freevars
        self.namespace = dict(function.__globals__) | inspect.getclosurevars(function).nonlocals
        self._names = {}

    # ---- constant names ----

    def known(self, node):
        """Returns (True, the object) if a name or attribute always denotes one object, else (False,
        None)."""
        if isinstance(node, ast.Name) and node.id not in self.bound:
            if node.id in self.namespace:
                return True, self.namespace[node.id]
            return hasattr(builtins, node.id), getattr(builtins, node.id, None)
        if isinstance(node, ast.Attribute):
            is_known, base = self.known(node.value)
            if is_known and isinstance(base, (types.ModuleType, types.SimpleNamespace, type)) and hasattr(base, node.attr):
                return True, getattr(base, node.attr)
        return False, None

    def name(self, thing, node):
        """Returns a name node for an object, at the location of another node."""
        name = self._names.get(id(thing))
        if name is None:
            name = self._names[id(thing)] = f"{_PREFIX}{len(self._names)}"
            self.namespace[name] = thing
            # the namespace keeps the object alive, so that its id is not reused
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def call(self, function, arguments, node):
        return ast.copy_location(ast.Call(self.name(function, node), arguments, []), node)

    # ---- values ----

    def visit_Constant(self, node):  # noqa: N802
        return self.name(arithmetic.typed(node.value), node) if type(node.value) in (int, float, complex) else node

    def visit_Name(self, node):  # noqa: N802
        return self._value(node)

    def visit_Attribute(self, node):  # noqa: N802
        is_known, base = self.known(node.value)
        if is_known and words.place(base):
            value = ast.copy_location(ast.Attribute(self.name(words.NOW, node), words.place(base), ast.Load()), node)
            return ast.copy_location(ast.Attribute(value, node.attr, node.ctx), node)
        return self._value(node)

    def _value(self, node):
        """Replaces a global name by its current value, as in compiled kernels."""
        if isinstance(node.ctx, ast.Load):
            is_known, value = self.known(node)
            if is_known:
                if words.place(value):
                    return ast.copy_location(ast.Attribute(self.name(words.NOW, node), words.place(value), ast.Load()), node)
                # A type here is an argument, such as the dtype of an array; visit_Call handles
                # types that are called.
                return self.name(value if isinstance(value, (type, dtypes.DType)) else self._instead(value), node)
        return self.generic_visit(node)

    def _instead(self, value):
        found = words.instead(value)
        if found is not value:
            return found
        function = words.function_of(value)
        if function is not None:
            return self.rewritten.of(function, value)
        if isinstance(value, numpy.void) and value.dtype.names:
            return words.records_by_name(numpy.asarray(value))[()]
        if isinstance(value, numpy.ndarray):
            return words.records_by_name(value)
        return arithmetic.typed(value) if isinstance(value, (int, float, complex, tuple)) and type(value) in _PLAIN else value

    def visit_Subscript(self, node):  # noqa: N802
        """Keeps constants in an index as Python numbers, which index faster."""
        node.value = self.visit(node.value)
        node.slice = self._index(node.slice)
        return node

    def _index(self, node):
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node, ast.Tuple):
            node.elts = [self._index(item) for item in node.elts]
            return node
        if isinstance(node, ast.Slice):
            for name in ("lower", "upper", "step"):
                part = getattr(node, name)
                setattr(node, name, part and self._index(part))
            return node
        return self.visit(node)

    # ---- operators ----

    def visit_BinOp(self, node):  # noqa: N802
        if _is_literal(node.left) and _is_literal(node.right):
            # Python computes operations on literals, as in compiled kernels.
            value = eval(compile(ast.Expression(node), self.source.file, "eval"), {})
            return self.name(arithmetic.typed(value), node)
        operands = [self.visit(node.left), self.visit(node.right)]
        return self.call(arithmetic.BINARY[type(node.op).__name__], operands, node)

    def visit_UnaryOp(self, node):  # noqa: N802
        if isinstance(node.op, ast.USub) and type(getattr(node.operand, "value", None)) in (int, float, complex):
            return self.name(arithmetic.typed(-node.operand.value), node)
        if isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return self.call(arithmetic.UNARY[type(node.op).__name__], [self.visit(node.operand)], node)

    def visit_Assign(self, node):  # noqa: N802
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
            return self.generic_visit(node)
        target = node.targets[0]
        arguments = [self.visit(target.value), self._as_value(target.slice), self.visit(node.value)]
        return ast.copy_location(ast.Expr(self.call(words.store, arguments, node)), node)

    def visit_AugAssign(self, node):  # noqa: N802
        function = arithmetic.BINARY[type(node.op).__name__]
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            return ast.copy_location(ast.Assign([node.target], self.call(function, [old, value], node)), node)
        base = self.visit(node.target.value)
        if isinstance(node.target, ast.Subscript):
            arguments = [self.name(function, node), base, self._as_value(node.target.slice), value]
            changed = self.call(words.change_item, arguments, node)
        else:
            name = ast.copy_location(ast.Constant(node.target.attr), node)
            changed = self.call(words.change_attribute, [self.name(function, node), base, name, value], node)
        return ast.copy_location(ast.Expr(changed), node)

    def _as_value(self, index):
        """Returns an index as a value, with slices as calls of slice()."""
        if isinstance(index, ast.Slice):
            none = ast.copy_location(ast.Constant(None), index)
            return self.call(slice, [self._index(p) if p else none for p in (index.lower, index.upper, index.step)], index)
        if isinstance(index, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._as_value(item) for item in index.elts], ast.Load()), index)
        return self._index(index)

    # ---- calls and loops ----

    def visit_Call(self, node):  # noqa: N802
        is_known, called = self.known(node.func)
        if is_known and words.needs_site(called):
            # an array that belongs to its location in the program
            node = self.generic_visit(node)
            node.args.insert(0, ast.copy_location(ast.Constant((self.source.file, node.lineno, node.col_offset)), node))
            return node
        if is_known and isinstance(called, (type, dtypes.DType)):
            node.args, node.keywords = [self.visit(a) for a in node.args], [self.visit(k) for k in node.keywords]
            node.func = self.name(self._instead(called), node.func)
            return node
        return self.generic_visit(node)

    def visit_While(self, node):  # noqa: N802
        """Lets other threads run in each iteration, because the loop may wait for another thread."""
        node = self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self.call(words.give_way, [], node.test)), node.test))
        return node

    def visit_match_case(self, node):  # noqa: N802
        """Leaves the pattern unchanged: Python accepts only literals and attributes in it."""
        node.guard = node.guard and self.visit(node.guard)
        node.body = [self.visit(part) for part in node.body]
        return node

    def visit_Global(self, node):  # noqa: N802
        raise self.source.error(node, language.INSTEAD["Global"])

    def visit_Nonlocal(self, node):  # noqa: N802
        if any(name in self.outside for name in node.names):
            raise self.source.error(node, language.INSTEAD["Nonlocal"])
        return node

    def visit_Expr(self, node):  # noqa: N802
        """Adds to a call of breakpoint() or pdb.set_trace() that the debugger does not step into
        kjit's own functions."""
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
        node = self.generic_visit(node)
        return [node, *debugging.hiding(self, node)] if name in debugging.STARTS else node

    def visit_AnnAssign(self, node):  # noqa: N802
        """Removes annotations, which have no effect, as in Numba."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    def visit_FunctionDef(self, node):  # noqa: N802
        node.decorator_list, node.returns = [], None
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
            if argument is not None:
                argument.annotation = None
        return self.generic_visit(node)


_PLAIN = (bool, int, float, complex, tuple)


class Rewritten:
    """The rewritten functions of a kernel, each made once. A global keeps the value that it had
    when its function was rewritten."""

    def __init__(self):
        self._known, self._signatures = {}, {}

    def signature_of(self, function):
        if function not in self._signatures:
            self._signatures[function] = inspect.signature(function)
        return self._signatures[function]

    def of_kernel(self, function):
        """Returns the kernel in the form that the interpreter runs. Raises SourceError for a generator,
        whose code a launch would not run."""
        if function.__code__.co_flags & inspect.CO_GENERATOR:
            found = source.of(function)
            raise found.error(source.find(function, found), "a kernel cannot yield values: write to an array")
        return self.of(function)

    def of(self, function, given=None):
        """Returns the function in the form that the interpreter runs. given: the dispatcher of the
        function, whose signature converts arguments and result."""
        key = function, getattr(given, "result", None), getattr(given, "parameter_texts", None)
        if key not in self._known:
            self._known[key] = Recursive(function)  # for recursive calls
            made = self._make(function)
            self._known[key].made = made = words.converting(made, key[1], key[2])
            self._known[key] = made
        return self._known[key]

    def _make(self, function):
        found = source.of(function)
        nodes = []
        node = _copied(source.find(function, found), nodes)
        if isinstance(node, ast.Lambda):
            value = ast.copy_location(ast.Return(node.body), node.body)
            node = ast.copy_location(ast.FunctionDef("simulated", node.args, [value], [], None), node)
            node.type_params = []
        defaults, keyword_defaults = function.__defaults__, function.__kwdefaults__
        node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
        rewriter = _Rewriter(function, _bound_names(nodes), self)
        made = rewriter.visit(node)
        tree = ast.Module([made], [])  # each new node has the location of an old one
        namespace = rewriter.namespace
        exec(compile(tree, found.file, "exec"), namespace)
        result = namespace[node.name]
        result.__defaults__ = None if defaults is None else tuple(map(arithmetic.typed, defaults))
        result.__kwdefaults__ = keyword_defaults
        result.__qualname__ = function.__qualname__
        return result


class Recursive:
    """Stands for a function while it is being rewritten."""

    def __init__(self, function):
        self.__name__, self.made = function.__name__, None

    def __call__(self, *arguments, **keywords):
        return self.made(*arguments, **keywords)


def check_parameters(function, signature, arguments, keywords):
    """Returns the arguments in the order of the parameters. Raises kjit.ArgumentError if they do
    not fit."""
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise _errors.CLASSES["KJIT_ERROR_ARGUMENT"](f"{function.__name__}(): {error}", "KJIT_ERROR_ARGUMENT") from None
    bound.apply_defaults()
    return bound.args, bound.kwargs

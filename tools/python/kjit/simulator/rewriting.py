"""Rewrites the function of a kernel for the interpreter. The code keeps the line numbers of the
program's file, so that debuggers show its lines."""

import ast
import builtins
import contextlib
import inspect
import types

import numpy


from .. import _errors, dtypes
from ..frontend import lambdas, source
from ..frontend import words as language
from . import arithmetic, debugging, words

_PREFIX = "__kjit_"


def _local_names(code):
    """Returns the local names of a function and of the functions inside it."""
    names = {*code.co_varnames, *code.co_cellvars}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _local_names(constant)
    return names


def _captured(function):
    """Returns the variables of enclosing functions by name, without those that have no value yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _copy(node):
    """Returns a shallow copy of a node of a syntax tree."""
    made = type(node).__new__(type(node))
    made.__dict__.update(node.__dict__)
    return made


def _at(node, made):
    """Gives a new node another node's location, and returns it; this is faster than
    ast.copy_location."""
    made.lineno, made.col_offset, made.end_lineno, made.end_col_offset = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
    return made


def _is_literal(node):
    """Returns whether an expression is a number literal or an operation on number literals."""
    if isinstance(node, ast.BinOp):
        return _is_literal(node.left) and _is_literal(node.right)
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(operand, ast.Constant) and type(operand.value) in (int, float, complex)


class _Rewriter:
    """Rewrites a copy of the syntax tree of one function. namespace: the globals of the rewritten function, to which
    the rewriter adds the objects that new nodes refer to. bound: the function's local names."""

    def __init__(self, function, bound, rewritten):
        self.source = source.of(function)
        self.rewritten, self.bound, self.outside = rewritten, bound, function.__code__.co_freevars
        self.namespace = {**function.__globals__, **_captured(function)}
        self._names = {}

    def visit(self, node):
        """Returns the node, or the list of statements, that replaces the given node. The given node
        is not changed."""
        rewrite = _REWRITES.get(type(node))
        return self.copy(node) if rewrite is None else rewrite(self, node)

    def copy(self, node):
        """Returns a copy of a node with its parts rewritten."""
        if not node._fields:
            return node  # an operator node or a context node (ast.Load) has no parts
        made = type(node).__new__(type(node))
        fields = made.__dict__
        for name, value in node.__dict__.items():
            if isinstance(value, ast.AST):
                value = self.visit(value)
            elif type(value) is list:
                value = self._each(value)
            fields[name] = value
        return made

    def _each(self, nodes):
        found = []
        for node in nodes:
            made = self.visit(node) if isinstance(node, ast.AST) else node
            if type(made) is list:
                found += made
            else:
                found.append(made)
        return found

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
        """Returns a name node for an object, at another node's location."""
        name = self._names.get(id(thing))
        if name is None:
            name = self._names[id(thing)] = f"{_PREFIX}{len(self._names)}"
            self.namespace[name] = thing
            # the namespace keeps the object alive, so that its id is not reused
        return _at(node, ast.Name(name, ast.Load()))

    def call(self, function, arguments, node):
        return _at(node, ast.Call(self.name(function, node), arguments, []))

    # ---- values ----

    def visit_Constant(self, node):  # noqa: N802
        return self.name(arithmetic.typed(node.value), node) if type(node.value) in (int, float, complex) else node

    def visit_Name(self, node):  # noqa: N802
        return self._value(node)

    def visit_Attribute(self, node):  # noqa: N802
        is_known, base = self.known(node.value)
        if is_known and words.place(base):
            value = _at(node, ast.Attribute(self.name(words.NOW, node), words.place(base), ast.Load()))
            return _at(node, ast.Attribute(value, node.attr, node.ctx))
        return self._value(node)

    def _value(self, node):
        """Replaces a global name by its current value, as in compiled kernels."""
        if isinstance(node.ctx, ast.Load):
            is_known, value = self.known(node)
            if is_known:
                if words.place(value):
                    return _at(node, ast.Attribute(self.name(words.NOW, node), words.place(value), ast.Load()))
                # A type that this method finds is an argument, such as an array's dtype, and stays
                # a type. visit_Call handles types that are called.
                return self.name(value if isinstance(value, (type, dtypes.DType)) else self._instead(value), node)
        return self.copy(node)

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
        return _at(node, ast.Subscript(self.visit(node.value), self._index(node.slice), node.ctx))

    def _index(self, node):
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node, ast.Tuple):
            return _at(node, ast.Tuple([self._index(item) for item in node.elts], node.ctx))
        if isinstance(node, ast.Slice):
            return _at(node, ast.Slice(*(part and self._index(part) for part in (node.lower, node.upper, node.step))))
        return self.visit(node)

    # ---- operators ----

    def visit_BinOp(self, node):  # noqa: N802
        if _is_literal(node.left) and _is_literal(node.right):
            # Python computes operations on literals, as in compiled kernels.
            value = eval(lambdas.compile_own(ast.Expression(node), self.source.file, "eval"), {})
            return self.name(arithmetic.typed(value), node)
        operands = [self.visit(node.left), self.visit(node.right)]
        return self.call(arithmetic.BINARY[type(node.op).__name__], operands, node)

    def visit_UnaryOp(self, node):  # noqa: N802
        if isinstance(node.op, ast.USub) and type(getattr(node.operand, "value", None)) in (int, float, complex):
            return self.name(arithmetic.typed(-node.operand.value), node)
        if isinstance(node.op, ast.Not):
            return self.copy(node)
        return self.call(arithmetic.UNARY[type(node.op).__name__], [self.visit(node.operand)], node)

    def visit_Assign(self, node):  # noqa: N802
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
            return self.copy(node)
        target = node.targets[0]
        arguments = [self.visit(target.value), self._as_value(target.slice), self.visit(node.value)]
        return _at(node, ast.Expr(self.call(words.store, arguments, node)))

    def visit_AugAssign(self, node):  # noqa: N802
        function = arithmetic.BINARY[type(node.op).__name__]
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = _at(node, ast.Name(node.target.id, ast.Load()))
            return _at(node, ast.Assign([node.target], self.call(function, [old, value], node)))
        base = self.visit(node.target.value)
        if isinstance(node.target, ast.Subscript):
            arguments = [self.name(function, node), base, self._as_value(node.target.slice), value]
            changed = self.call(words.change_item, arguments, node)
        else:
            name = _at(node, ast.Constant(node.target.attr))
            changed = self.call(words.change_attribute, [self.name(function, node), base, name, value], node)
        return _at(node, ast.Expr(changed))

    def _as_value(self, index):
        """Returns an index as a value, with slices as calls of slice()."""
        if isinstance(index, ast.Slice):
            none = _at(index, ast.Constant(None))
            return self.call(slice, [self._index(p) if p else none for p in (index.lower, index.upper, index.step)], index)
        if isinstance(index, ast.Tuple):
            return _at(index, ast.Tuple([self._as_value(item) for item in index.elts], ast.Load()))
        return self._index(index)

    # ---- calls and loops ----

    def visit_Call(self, node):  # noqa: N802
        is_known, called = self.known(node.func)
        if is_known and words.needs_site(called):
            # the call creates an array that belongs to its location, which becomes the first
            # argument
            node = self.copy(node)
            node.args.insert(0, _at(node, ast.Constant((self.source.file, node.lineno, node.col_offset))))
            return node
        if is_known and isinstance(called, (type, dtypes.DType)):
            converter = self.name(self._instead(called), node.func)
            return _at(node, ast.Call(converter, self._each(node.args), self._each(node.keywords)))
        return self.copy(node)

    def visit_While(self, node):  # noqa: N802
        """Lets other threads run in each iteration, because the loop may wait for another thread."""
        node = self.copy(node)
        node.body.insert(0, _at(node.test, ast.Expr(self.call(words.give_way, [], node.test))))
        return node

    def visit_match_case(self, node):  # noqa: N802
        """Leaves the pattern unchanged: Python accepts only literals and attributes in it."""
        return ast.match_case(node.pattern, node.guard and self.visit(node.guard), self._each(node.body))

    def visit_Global(self, node):  # noqa: N802
        raise self.source.error(node, language.INSTEAD["Global"])

    def visit_Nonlocal(self, node):  # noqa: N802
        if any(name in self.outside for name in node.names):
            raise self.source.error(node, language.INSTEAD["Nonlocal"])
        return node

    def visit_Expr(self, node):  # noqa: N802
        """Adds statements after a call of breakpoint() or pdb.set_trace(), so that the debugger
        does not step into kjit's own functions."""
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
        node = self.copy(node)
        return [node, *debugging.hiding(self, node)] if name in debugging.STARTS else node

    def visit_AnnAssign(self, node):  # noqa: N802
        """Removes annotations, which have no effect, as in Numba."""
        if node.value is None:
            return _at(node, ast.Pass())
        return _at(node, ast.Assign([self.visit(node.target)], self.visit(node.value)))

    def visit_FunctionDef(self, node):  # noqa: N802
        made = _copy(node)
        made.decorator_list, made.returns = [], None
        made.args, made.body = self.visit(node.args), self._each(node.body)
        return made

    def visit_arg(self, node):
        return _at(node, ast.arg(node.arg, None))

    def whole(self, node):
        """Returns the rewritten syntax tree of the function. A lambda becomes a function with a name.
        The result has no default values, which the caller sets."""
        if isinstance(node, ast.Lambda):
            value = _at(node.body, ast.Return(node.body))
            node = _at(node, ast.FunctionDef("simulated", node.args, [value], [], None))
            node.type_params = []
        node = _copy(node)
        node.args = _copy(node.args)
        node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
        return self.visit(node)


_REWRITES = {getattr(ast, name[len("visit_") :]): rewrite for name, rewrite in vars(_Rewriter).items() if name.startswith("visit_")}
_PLAIN = (bool, int, float, complex, tuple)


class Rewritten:
    """The rewritten functions in a kernel, each made once. A global keeps the value that it had
    when its function was rewritten."""

    def __init__(self):
        self._known, self._signatures = {}, {}

    def order(self, function, arguments, keywords):
        """Returns a launch's arguments in the order of the parameters. Raises kjit.ArgumentError if they
        do not fit."""
        if not keywords and len(arguments) == _count_of(function):
            return arguments, keywords
        if function not in self._signatures:
            self._signatures[function] = inspect.signature(function)
        return check_parameters(function, self._signatures[function], arguments, keywords)

    def of_kernel(self, function):
        """Returns the kernel in the form that the interpreter runs. Raises SourceError for a generator,
        whose code a launch would not run."""
        if function.__code__.co_flags & inspect.CO_GENERATOR:
            found = source.of(function)
            raise found.error(source.find(function, found), "a kernel cannot yield values: write to an array")
        return self.of(function)

    def of(self, function, given=None):
        """Returns the function in the form that the interpreter runs. given: the function's
        dispatcher, whose signature converts arguments and result."""
        key = function, getattr(given, "result", None), getattr(given, "parameter_texts", None)
        if key not in self._known:
            known = self._known[key] = Recursive(function)  # recursive calls find this object
            try:
                known.made = words.converting(self._make(function), key[1], key[2])
            finally:
                if known.made is None:
                    # after an error in the function, or Ctrl-C, the next launch rewrites the function again
                    del self._known[key]
            self._known[key] = known.made
        return self._known[key]

    def _make(self, function):
        found = source.of(function)
        rewriter = _Rewriter(function, _local_names(function.__code__), self)
        made = rewriter.whole(source.find(function, found))
        tree = ast.Module([made], [])  # each new node has the location of an old one
        namespace = rewriter.namespace
        exec(lambdas.compile_own(tree, found.file), namespace)
        result = namespace[made.name]
        defaults = function.__defaults__
        result.__defaults__ = None if defaults is None else tuple(map(arithmetic.typed, defaults))
        result.__kwdefaults__ = function.__kwdefaults__
        result.__qualname__ = function.__qualname__
        return result


def _count_of(function):
    """Returns the number of parameters of a function. Returns -1 for a function with *args, **kwargs or
    keyword-only parameters, and for a function that has the attribute `__wrapped__` or
    `__signature__`."""
    code = function.__code__
    is_plain = not code.co_kwonlyargcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return code.co_argcount if is_plain and not {"__wrapped__", "__signature__"} & vars(function).keys() else -1


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

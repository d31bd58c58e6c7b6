"""Arrays that a compiled loop creates, such as `w = np.zeros(n)`. They become rows of arrays that
are allocated before the loop, with one row for each part of the loop."""

import ast

from . import static, words
from .scope import copied

_MAKERS = {"empty": None, "zeros": 0, "ones": 1, "full": ...}


class Temporary:
    """An array that a loop creates in each iteration.

    statement: the assignment that creates the array
    shape, dtype: expressions that are evaluated before the loop
    fill: the expression for the value of all elements, or None if the elements are undefined
    """

    def __init__(self, statement, shape, dtype, fill):
        self.statement, self.shape, self.dtype, self.fill = statement, shape, dtype, fill
        self.name = statement.targets[0].id


FILL = words.Text("fill_array", "\nfunc fill_array(a, value) @numba { for at in range(a.shape) { a[at] = dtype(a)(value) } }")


def is_constant(temporary, names):
    """Returns whether the size and the type of a temporary are known at compile time."""
    shape = names.value(temporary.shape)
    extents = shape if isinstance(shape, tuple) else (shape,)
    is_known = all(type(extent) is int and extent > 0 for extent in extents)
    return is_known and (temporary.dtype is None or names.value(temporary.dtype) is not static.UNKNOWN)


def made_by(statement, names, error):
    """Returns the Temporary for an assignment that creates an array, or None. names: a
    static.Names; error: makes an exception."""
    finder = Temporaries()
    finder.static, finder.source = names, _Errors(error)
    made = finder._made_by(statement)
    return None if made is None else finder._temporary(statement, *made)


class _Errors:
    def __init__(self, error):
        self.error = error


class Temporaries:
    """The part of Splitter for arrays that loops create."""

    def temporaries(self, loop, is_strict=False):
        """Returns the Temporary of each assignment in a loop that creates an array. is_strict:
        raises an error if an array cannot be a temporary."""
        found = []
        for statement in ast.walk(loop):
            made = self._made_by(statement)
            if made is None:
                continue
            made = self._temporary(statement, *made)
            bad = self._changing(loop, made)
            if bad is None:
                found.append(made)
            elif is_strict:
                raise self.source.error(
                    statement,
                    f"the size of `{made.name}` depends on `{bad}`, which the loop assigns; the size of an array made in a loop "
                    "must be known before the loop",
                )
        return found

    def makes_arrays(self, statement):
        """Returns whether a statement contains a loop that creates arrays."""
        loops = [inner for inner in ast.walk(statement) if isinstance(inner, (ast.For, ast.While))]
        return any(self.temporaries(loop) for loop in loops)

    def own_arrays(self):
        """Returns the calls that create arrays of constant size and type that the function neither
        returns nor assigns to another name."""
        given = [s.value for s in ast.walk(self.node) if isinstance(s, (ast.Return, ast.Assign)) and s.value is not None]
        items = [item for value in given for item in (value.elts if isinstance(value, ast.Tuple) else [value])]
        escaping = {item.id for item in items if isinstance(item, ast.Name)}
        found = {}
        for statement in ast.walk(self.node):
            made = self._made_by(statement)
            if made is not None and statement.targets[0].id not in escaping:
                temporary = self._temporary(statement, *made)
                if is_constant(temporary, self.static):
                    found[id(statement.value)] = temporary
        return found

    def _made_by(self, statement):
        """Returns (how np.zeros or a related function fills the array, whether another array gives
        shape and type), or None."""
        is_plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
        if not is_plain or not isinstance(statement.value, ast.Call):
            return None
        thing = self.static.value(statement.value.func)
        name = getattr(thing, "__name__", "")
        if thing is static.UNKNOWN or getattr(thing, "__module__", None) != "numpy":
            return None
        base = name.removesuffix("_like")
        return (_MAKERS[base], base != name) if base in _MAKERS else None

    def _temporary(self, statement, fill, is_like):
        call = statement.value
        names = ["a" if is_like else "shape", *(["fill_value"] if fill is ... else []), "dtype"]
        given = dict(zip(names, call.args)) | {k.arg: k.value for k in call.keywords}
        unknown = [name for name in given if name not in names]
        if unknown or names[0] not in given or len(call.args) > len(names) or fill is ... and "fill_value" not in given:
            raise self.source.error(call, f"in a loop, {ast.unparse(call.func)} takes the arguments {', '.join(names)}")
        first, value = given[names[0]], given.get("fill_value")

        def attribute(name):
            return ast.copy_location(ast.Attribute(first, name, ast.Load()), first)

        shape = attribute("shape") if is_like else first
        dtype = given.get("dtype") or (attribute("dtype") if is_like else None)
        if fill is not ...:
            value = None if fill is None else ast.copy_location(ast.Constant(fill), call)
        elif dtype is None:
            dtype = value
        return Temporary(statement, shape, dtype, value)

    def _changing(self, loop, temporary):
        """Returns a name that the loop assigns and on which the size or type of a temporary
        depends, or None."""
        stored = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        nodes = [temporary.shape, *([temporary.dtype] if temporary.dtype is not None else [])]
        return next((n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in stored), None)


def _unnamed(body, names):
    """Returns the ids of the calls that make a shared or local array and are not the value of an assignment to one name."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    assigned = {id(n.value) for n in nodes if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)}

    def makes_array(node):
        thing = names.value(node.func) if isinstance(node, ast.Call) else None
        return isinstance(thing, words.ArrayForm) or isinstance(thing, words.Word) and thing in words.ARRAYS.values()

    return {id(node) for node in nodes if id(node) not in assigned and makes_array(node)}


def named(body, names, temporary):
    """Returns the statements with a new name for each of these arrays, for example in `f(cuda.local.array(3, float32))` and
    `a = cuda.shared.array(0, float32)[4:]`. Returns the same list if there are none. temporary: returns a new name."""
    if not _unnamed(body, names):
        return body
    body = copied(body)
    namer = _Namer(_unnamed(body, names), temporary)
    return [namer.visit(statement) for statement in body]


class _Namer(ast.NodeTransformer):
    def __init__(self, calls, temporary):
        self.calls, self.temporary = calls, temporary

    def visit_Call(self, node):
        if id(node) not in self.calls:
            return self.generic_visit(node)
        name = ast.copy_location(ast.Name(self.temporary(), ast.Store()), node)
        return ast.copy_location(ast.NamedExpr(name, node), node)

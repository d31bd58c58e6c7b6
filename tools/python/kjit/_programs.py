"""Derivatives of programs: Python functions that work on whole arrays. A program is not compiled. It
runs once for each call of its derivative, and its operations are recorded."""

import types

from ._derivatives import holds_float
from ._errors import SourceError
from ._kjit import Array

# ---- which functions are programs ----


def is_program(function):
    """Returns whether a kjit.func works on whole arrays, so that it has no kernel IR."""
    known = function.__dict__.get("_is_program")
    if known is None:
        known = function.__dict__["_is_program"] = not _has_code(function) and _uses_arrays(function.py_func, set())
    return known


def _has_code(function):
    try:
        function._made_module()
    except SourceError:
        return False
    return True


def _names_of_operations():
    from . import _pullbacks, numpy
    from .frontend.whole_arrays import FUNCTIONS, METHODS

    algorithms = {algorithm.__name__ for algorithm in _pullbacks.RULES}
    return FUNCTIONS | METHODS | algorithms | {"T", "linalg"} | {name for name in dir(numpy) if name[0] != "_"}


def _uses_arrays(function, seen):
    """Returns whether the code of a function, or of a Python function that it calls, has a matrix
    product or a device array, or names functions or methods of whole arrays."""
    if id(function) in seen or not isinstance(function, types.FunctionType):
        return False
    seen.add(id(function))
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        if _has_matrix_product(code):
            return True
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    if names & _names_of_operations():
        return True
    things = [function.__globals__.get(name) for name in names]
    things += [value for cell in function.__closure__ or () for value in _contents(cell)]
    return any(isinstance(thing, Array) or _uses_arrays(getattr(thing, "py_func", thing), seen) for thing in things)


def _contents(cell):
    """Returns the value of a captured variable as a tuple, which is empty before its assignment."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _has_matrix_product(code):
    import dis

    return any(i.argrepr in ("@", "@=") or i.opname.endswith("MATRIX_MULTIPLY") for i in dis.get_instructions(code))


# ---- derivatives ----


def _tape_module():
    """Returns the module that records operations, after loading the derivative rules."""
    from .numpy import _gradient_rules, _tape

    _gradient_rules.attach()
    return _tape


def _chosen(numbers, args, name):
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(args):
            raise TypeError(f"{name}: there is no argument {number!r}; the arguments are 0 to {len(args) - 1}")
        if not holds_float(args[number]):
            raise TypeError(f"{name} differentiates with respect to argument {number}, but {args[number]!r} does not hold floats")
    chosen = tuple(sorted(set(numbers))) if numbers else tuple(i for i, x in enumerate(args) if holds_float(x))
    if not chosen:
        whole = next((x for x in args if isinstance(x, (tuple, list, dict)) or hasattr(x, "__dataclass_fields__")), None)
        if whole is not None:
            raise TypeError(f"{name}: an argument is a {type(whole).__name__}; pass each array as a separate argument")
        raise TypeError(f"{name}: no argument holds floats")
    return chosen


def _of_number(function, numbers, args, name):
    """Returns (value, derivatives with respect to the chosen arguments) of a program that returns one number."""
    from ._pullback_arrays import element_name

    _tape = _tape_module()
    chosen = _chosen(numbers, args, name)
    result, traced = _tape.run(function, args, chosen)
    _check_result(result, traced, name)
    if result.shape != ():
        raise TypeError(f"{name}: the function returns an array of shape {result.shape}, not one number")
    if element_name(result)[0] == "c":
        raise TypeError(f"{name}: the function returns a complex number; take its real part, or use kjit.vjp")
    return result.value, _tape.derivatives_of([(result, _tape.one_like(result))], traced)


def _check_result(result, traced, name):
    if result is None or isinstance(result, (tuple, list, dict)):
        kind = "None" if result is None else f"a {type(result).__name__}"
        raise TypeError(f"{name}: the function returns {kind}, not an array or a number")
    if getattr(result, "level", None) != traced[0].level:
        raise TypeError(f"{name}: the result of the function does not depend on the chosen arguments")


def _joined(values):
    return values[0] if len(values) == 1 else tuple(values)


def value_and_grad(function, numbers, args, name="kjit.numpy.grad"):
    value, found = _of_number(function, numbers, args, name)
    return (value, *found)


def grad(function, numbers, args, name="kjit.numpy.grad"):
    return _joined(_of_number(function, numbers, args, name)[1])


def _own(function, args, further, what, name):
    """Splits the arguments of a derivative into the function's arguments and the `further` arguments after them."""
    count = len(args) - further
    if count < 1:
        raise TypeError(f"{name} takes the arguments of {function.__name__}(), and {what}")
    return args[:count], args[count:]


def vjp(function, numbers, args, name):
    """Returns (value, derivatives) for vjp(f)(*args, g)."""
    _tape = _tape_module()
    args, (g,) = _own(function, args, 1, "the derivative with respect to its result", name)
    result, traced = _tape.run(function, args, _chosen(numbers, args, name))
    results, given = (result, g) if isinstance(result, tuple) else ((result,), (g,))
    if not isinstance(given, tuple) or len(given) != len(results):
        raise TypeError(f"{name}: the function returns {len(results)} values, so the derivative with respect to the result must be a tuple of {len(results)} items")
    pairs = _pairs(results, given, traced, name)
    if not pairs:
        _check_result(results[0], traced, name)
    values = tuple(_tape.at_level(value, traced[0].level) for value in results)
    return (values if isinstance(result, tuple) else values[0], *_tape.derivatives_of(pairs, traced))


def _directions(function, numbers, args, name):
    """Splits the arguments of jvp(f) and hvp(f), which end with a direction for each chosen argument."""
    chosen = numbers
    if not numbers:
        # All arguments that hold floats are chosen, and each has a direction.
        own = next((n for n in range(1, len(args)) if n + sum(map(holds_float, args[:n])) == len(args)), None)
        if own is None:
            raise TypeError(f"{name} takes the arguments of {function.__name__}(), and a direction for each argument that holds floats")
        chosen = tuple(i for i in range(own) if holds_float(args[i]))
    own, directions = _own(function, args, len(chosen), "a direction for each chosen argument", name)
    return own, _chosen(chosen, own, name), directions


def jvp(function, numbers, args, name):
    """Returns (value, derivative along a direction) for jvp(f)(*args, *directions).

    Reverse mode maps the derivative u with respect to the result to derivatives with respect to the
    arguments. This map is linear in u. Its own reverse derivative, with respect to u, is the
    forward derivative.
    """
    _tape = _tape_module()
    own, chosen, directions = _directions(function, numbers, args, name)
    result, traced = _tape.run(function, own, chosen)
    if isinstance(result, tuple):
        raise TypeError(f"{name}: the function returns a tuple; differentiate each item separately")
    _check_result(result, traced, name)

    def back(u):
        return _tape.derivatives_of([(result, u)], traced)

    found = vjp(back, (0,), (_tape.zeros_of(result), tuple(directions)), name)
    return result.value, found[1]


def hvp(function, numbers, args, name):
    """Returns the second derivatives times a direction for hvp(f)(*args, *directions)."""
    _tape = _tape_module()
    own, chosen, directions = _directions(function, numbers, args, name)

    def gradient(*values):
        return _of_number(function, chosen, values, name)[1]

    results, traced = _tape.run(gradient, own, chosen)
    return _joined(_tape.derivatives_of(_pairs(results, directions, traced, name), traced))


def _pairs(results, derivatives, traced, name):
    """Returns pairs of a result that depends on the chosen arguments, and the derivative with respect to it."""
    pairs = zip(results, derivatives, strict=True)
    level, _tape = traced[0].level, _tape_module()
    return [(x, _tape.cotangent(x, g, name)) for x, g in pairs if getattr(x, "level", None) == level]


def _jacobian_of(result, traced):
    """Returns the derivative of each result element with respect to one argument, with the result's axes first."""
    _tape = _tape_module()
    is_constant = getattr(result, "level", None) != traced[0].level
    shape = tuple(getattr(result, "shape", ()))
    rows = [_tape.derivatives_of([] if is_constant else [(result, unit)], traced)[0] for unit in _tape.units(shape, result)]
    return _tape.stacked(rows, shape)


def jacobian(function, numbers, args, name):
    """Returns the derivative of each result element with respect to each element of one argument."""
    chosen = _one(_chosen(numbers, args, name), name)
    result, traced = _tape_module().run(function, args, chosen)
    if isinstance(result, tuple):
        raise TypeError(f"{name}: the function returns a tuple; differentiate each item separately")
    _check_result(result, traced, name)
    return _jacobian_of(result, traced)


def hessian(function, numbers, args, name):
    """Returns the second derivatives of a program with respect to one argument, with the axes of the argument
    twice. The derivatives of a linear program are 0."""
    chosen = _one(_chosen(numbers, args, name), name)

    def gradient(*values):
        return _of_number(function, chosen, values, name)[1][0]

    return _jacobian_of(*_tape_module().run(gradient, args, chosen))


def _one(chosen, name):
    if len(chosen) != 1:
        raise TypeError(f"{name} differentiates a program over whole arrays with respect to one argument; choose the argument by its position")
    return chosen


DERIVATIVES = {
    "grad": grad, "value_and_grad": value_and_grad, "vjp": vjp, "jvp": jvp, "hvp": hvp, "jacobian": jacobian, "hessian": hessian,
}  # fmt: skip

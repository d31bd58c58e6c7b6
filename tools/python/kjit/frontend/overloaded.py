"""Translates calls of functions that numba.extending.overload defines (`kjit._overloading`)."""

import ast
import functools

from .. import _overloading
from .._errors import UNRESOLVED, Error
from . import closures, static


class _Slot:
    """An argument of a call. name: the parameter of the func that chooses the implementation, or
    None if the value is known at compile time."""

    def __init__(self, value, name):
        self.value, self.name = value, name


def call(emitter, node, overloads, first=None):
    """Returns the kernel IR text of a call. first: for a method or an attribute, the node of the
    object, which is the first argument."""
    if not emitter.is_typed:
        text = f"`{overloads.name}` is defined by overload, which functions of kjit.njit and kjit.cuda can call"
        raise emitter.error(node, text)
    if isinstance(node, ast.Call):
        node = emitter.spread_out(node) if any(isinstance(a, ast.Starred) for a in node.args) else node
        if any(k.arg is None for k in node.keywords):
            raise emitter.error(node, "**keywords in a call are not supported")
        arguments, names = [*node.args, *(k.value for k in node.keywords)], tuple(k.arg for k in node.keywords)
    else:
        arguments, names = [], ()
    arguments = ([] if first is None else [first]) + arguments
    values = [emitter.static_value(argument) for argument in arguments]
    given = tuple(map(functools.partial(_given, emitter), arguments, values))
    target = "njit" if emitter.builder.makes_arrays else "cuda"
    form = _overloading.find_call(overloads, target, given, names)
    if _overloading.DYNAMIC not in given:
        _choose_at_once(emitter, node, form)
    emitter.builder.kept.append(form)
    symbol = emitter.builder.generated(overloads.name, _lines(emitter, node, form, given))
    emitter.used.add(symbol)
    parts = []
    for argument, value in zip(arguments, given):
        if _is_passed(value):
            parts += [*([", "] if parts else []), *emitter.reference(argument, emitter.expression(argument))]
    return [emitter.source.place(node), f"{symbol}(", *parts, ")"]


def _given(emitter, argument, value):
    """Returns the value of an argument that is known at compile time, DYNAMIC or FUNCTION."""
    is_function = isinstance(argument, ast.Name) and argument.id in emitter.functions
    if closures.bound_of(argument) or is_function or isinstance(value, closures.Inner) and value.captured:
        return _overloading.FUNCTION
    is_dynamic = value is static.UNKNOWN or getattr(value, "shape", ()) != () or isinstance(value, tuple)
    return _overloading.DYNAMIC if is_dynamic else value


def _is_passed(value):
    """Returns whether the func that chooses the implementation has a parameter for an argument."""
    return value is _overloading.DYNAMIC or value is _overloading.FUNCTION


def _choose_at_once(emitter, node, form):
    """Chooses the implementation of a call without dynamic arguments."""
    if not form.chosen:
        try:
            form.chosen.append(((), form.choose([])))
        except Error as error:
            raise emitter.error(node, str(error)) from None


def _lines(emitter, node, form, given):
    """Returns the lines in the func that chooses the implementation by its arguments' types."""
    slots = [_Slot(value, f"p{i}" if _is_passed(value) else None) for i, value in enumerate(given)]
    parameters = [slot.name for slot in slots if slot.name]
    typed = [slot.name for slot in slots if slot.value is _overloading.DYNAMIC]
    listed = ", ".join(name if name in typed else f"{name}: func" for name in parameters)
    lines, values = [[f"func NAME({listed}) @numba {{"]], set()
    for texts, implementation in form.chosen:
        tests = [test for name, text in zip(typed, texts) for test in _overloading.tests_of(name, text)]
        called, has_value = _implementation(emitter, node, form, implementation, slots)
        values.add(has_value)
        if len(values) > 1:
            raise emitter.error(node, f"{form.overloads.name}(): some implementations return a value and others return none")
        lines.append(["".join(f"if {test} {{ " for test in tests), called, " }" * len(tests)])
    if form.chosen and not typed:
        return [*lines, ["}"]]
    listed = "".join(f"{name}, " for name in typed)
    unresolved = f"let {UNRESOLVED}{form.number}: bool = ({listed}0)"
    return [*lines, [unresolved], ['raise "no implementation"'], ["}"]]


def _implementation(emitter, node, form, implementation, slots):
    """Returns (the text that calls an implementation with the arguments of the func around it, whether the implementation returns a
    value)."""
    import inspect  # imported here, so that programs without such calls do not load it

    python = getattr(implementation, "py_func", implementation)
    count = len(slots) - len(form.names)
    try:
        bound = inspect.signature(python).bind(*slots[:count], **dict(zip(form.names, slots[count:])))
    except TypeError as problem:
        raise emitter.error(node, f"{form.overloads.name}(): {problem}") from None
    bound.apply_defaults()
    code = python.__code__
    spread = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
    items = bound.arguments.pop(spread, ()) if spread else ()
    # the types to which a signature converts arguments
    kinds = emitter.types_of_parameters(implementation, bound.arguments)
    known = {n: getattr(v, "value", v) for n, v in bound.arguments.items() if getattr(v, "name", None) is None}
    passed = []
    for name, value in bound.arguments.items():
        text = value.name if name not in known else "".join(map(str, emitter.known(known[name], node))) if kinds.get(name) else None
        if text is not None:
            passed.append(f"{kinds[name]}({text})" if kinds.get(name) else text)
    known = {n: v for n, v in known.items() if not kinds.get(n)}
    if items:
        texts = [item.name if item.name else "".join(map(str, emitter.known(item.value, node))) for item in items]
        passed.append(f"({', '.join(texts)}{',' * (len(texts) == 1)})")
    inner = tuple(n for n, v in bound.arguments.items() if getattr(v, "value", None) is _overloading.FUNCTION)
    made = emitter.builder.specialize(implementation, known, spread=len(items) if spread else None, functions=inner)
    if emitter.builder.returns_optional(made):
        raise emitter.error(node, f"{form.overloads.name}(): an implementation that returns None on some paths is not supported")
    symbol = emitter.builder.function(made, where=(emitter.source, node))
    emitter.used.add(symbol)
    text = f"{symbol}({', '.join(passed)})"
    has_value = _returns_value(emitter, made, python)
    return (f"return {text}" if has_value else f"{text}; return"), has_value


def _returns_value(emitter, made, python):
    """Returns whether a function returns a value."""
    _, tree = emitter.builder.found(made, python)
    if isinstance(tree, ast.Lambda):
        return True
    returned = [n.value for s in tree.body for n in ast.walk(s) if isinstance(n, ast.Return)]
    return any(value is not None and not (isinstance(value, ast.Constant) and value.value is None) for value in returned)

"""numba.extending.overload: the program registers a function that receives the types of the arguments
and returns an implementation. Compiled code calls this implementation.

The compiler infers types after the translation. A call of an overloaded function is therefore first translated to a func without
an implementation. The compilation of this func fails with an error that contains the types of the arguments. `learn` reads these
types and asks the program for the implementation. The caller of `learn` then translates and compiles again; now the func calls this implementation."""

import itertools
import re
import types as python_types
import weakref

from . import _records, dtypes
from ._errors import Error

_ARRAY = re.compile(r"(?:const )?(\w+)\[([^\]]*)\](?: [CF])?")
_TARGETS = {"njit": ("cpu", "generic"), "cuda": ("cuda", "gpu", "generic")}
_OPTIONS = {"jit_options", "strict", "inline", "prefer_literal", "target"}

DYNAMIC = object()  # an argument whose value is not known at compile time
FUNCTION = object()  # a function that reads variables of the caller
MOST_ROUNDS = 1000  # a limit against endless translations
_MOST_CALLS = 4096  # the number of forms of calls that one Overloads keeps

_functions: dict = {}  # id of a function -> its Overloads
_methods: dict = {}  # name of a method -> its Overloads
_attributes: dict = {}  # name of an attribute -> its Overloads
_calls: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # the Calls by their numbers
_numbers = itertools.count()


class Definition:
    """A function that returns an implementation for the types of the arguments, or None. of: the
    class of types to which a method or attribute belongs, or None."""

    def __init__(self, define, of=None, target="generic", strict=True, prefer_literal=False):
        self.define, self.of, self.target = define, of, target
        self.is_strict, self.prefers_literals = strict, prefer_literal

    def implement(self, kinds, keywords):
        """Returns the implementation, or None."""
        is_of = self.of is None or isinstance(kinds[0], self.of) if isinstance(self.of, (type, type(None))) else kinds[0] == self.of
        if not is_of:
            return None
        made = self.define(*kinds, **keywords)
        if isinstance(made, tuple):  # Numba also accepts the pair (signature, implementation)
            made = made[-1]
        if made is not None:
            self._check(made)
        return made

    def _check(self, made):
        """Raises an error if the implementation's parameters are not those of the definition."""
        python = getattr(made, "py_func", made)
        if not isinstance(python, python_types.FunctionType):
            raise Error(f"an implementation must be a Python function, not {made!r}")
        if self.is_strict:
            import inspect  # imported here, because importing kjit must be fast

            problem = _difference(inspect.signature(self.define), inspect.signature(python))
            if problem:
                raise Error(problem)


def _difference(wanted, found):
    """Returns the reason why an implementation does not have its definition's parameters, or None.
    An implementation may take *args in place of the last positional parameters."""
    listed, own_listed = list(wanted.parameters.values()), list(found.parameters.values())
    for p in (*listed, *own_listed):
        if p.kind is p.VAR_KEYWORD:
            return f"use of VAR_KEYWORD (e.g. **kwargs) is unsupported (offending argument name is '{p}')"
    rest = [p for p in listed if p.kind is p.VAR_POSITIONAL]
    own_rest = [p for p in own_listed if p.kind is p.VAR_POSITIONAL]
    if rest and not own_rest:
        text = "the implementation must have the VAR_POSITIONAL (e.g. *args) argument kind of the typing function"
        return f"{text} (offending argument name is '{rest[0]}')"
    (plain, named), (own, own_named) = _by_default(listed), _by_default(own_listed)
    if own_rest:
        plain = plain[: len(own)]
    reason = None
    if [p.name for p in plain] != [p.name for p in own]:
        first = next((p.name for p, other in zip(own, plain) if p.name != other.name), None)
        reason = f"argument names.\nDifference: {_unlike(plain, own)}" + (f"\nFirst difference: {first!r}" if first else "")
    elif {p.name for p in named} != {p.name for p in own_named}:
        reason = f"keyword argument names.\nDifference: {_unlike(named, own_named)}"
    elif [(p.name, repr(p.default)) for p in named] != [(p.name, repr(p.default)) for p in own_named]:
        reason = f"keyword argument default values.\nDifference: {_unlike(named, own_named)}"
    return reason and f"Typing and implementation arguments differ in {reason}"


def _by_default(parameters):
    """Returns (the parameters without defaults, the parameters with defaults), except *args."""
    plain = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return plain, [p for p in parameters if p.default is not p.empty]


class OfSignatures:
    """Defines a function with several signatures. implement() compiles the function for the signature
    that fits the arguments best."""

    target = "generic"
    prefers_literals = False

    def __init__(self, function, signatures):
        self.function, self.signatures = function, signatures
        self.made = {}

    def implement(self, kinds, keywords):
        import inspect

        python = self.function.py_func
        kinds = [*inspect.signature(python).bind(*kinds, **keywords).arguments.values()]
        fitting = [(cost, s) for s in self.signatures for cost in [_cost(s.args, kinds)] if cost is not None]
        least = min((cost for cost, _ in fitting), default=None)
        best = [signature for cost, signature in fitting if cost == least]  # the first one, as in Numba
        if not best:
            raise Error(f"no signature fits: {', '.join(map(str, self.signatures))}")
        if best[0] not in self.made:
            self.made[best[0]] = self._of_one(best[0])
        return self.made[best[0]]

    def _of_one(self, signature):
        from . import _signatures
        from .frontend.module import Specialized

        made = Specialized(self.function, self.function.py_func, {}, {}, None)
        made.result, made.parameter_texts = _signatures.result_text(signature), _signatures.parameter_texts(signature)
        return made


def _cost(wanted, found):
    """Returns the cost of converting arguments to a signature's types, or None if they cannot be
    converted."""
    if len(wanted) != len(found):
        return None
    costs = [_cost_of_one(kind, other) for kind, other in zip(wanted, found)]
    return None if None in costs else tuple(map(sum, zip(*costs)))


def _cost_of_one(wanted, found):
    """Returns the cost for one argument, which counts (conversions that can lose values, other
    conversions, conversions to wider types), or None."""
    import numpy

    from .cuda import types

    if not isinstance(wanted, (types.Number, types.Boolean)) or not isinstance(found, (types.Number, types.Boolean)):
        is_array = isinstance(wanted, types.Array) and isinstance(found, types.Array)
        is_same = (wanted.dtype, wanted.ndim) == (found.dtype, found.ndim) if is_array else wanted == found
        return (0, 0, 0) if is_same else None
    one, other = (numpy.dtype("f4") if k.text == "bf16" else types.as_dtype(k) for k in (wanted, types.unliteral(found)))
    if wanted.text == found.text:
        return 0, 0, 0
    if other.kind == "c" and one.kind != "c":
        return None
    if numpy.can_cast(other, one, "safe"):
        is_wider = one.kind == other.kind or other.kind == "b" and one.kind in "iu"
        return (0, 0, 1) if is_wider else (0, 1, 0)
    return (0, 1, 0) if other.kind in "iu" and one == numpy.float64 else (1, 0, 0)


def of_signatures(function, signatures):
    """Returns the Overloads of a function that is compiled for several signatures."""
    made = Overloads(getattr(function, "__name__", "function"), function)
    made.definitions.append(OfSignatures(function, signatures))
    return made


def _unlike(some, others):
    found = [p for p in some if p not in others] + [p for p in others if p not in some]
    return "{" + ", ".join(map(repr, found)) + "}"


class Overloads:
    """The definitions of one function, method or attribute."""

    def __init__(self, name, thing=None):
        self.name, self.definitions = name, []
        self.thing = thing  # keeps the function alive, because _functions contains its id
        self.calls = {}  # the Calls by their forms, the newest last

    def for_target(self, target):
        """Returns the definitions for a target. Definitions for the target itself come before generic definitions, and later
        definitions before earlier definitions."""
        words = _TARGETS[target]
        found = [d for d in reversed(self.definitions) if d.target in words]
        return sorted(found, key=lambda d: d.target == "generic")


class Call:
    """A form of call. given: each argument's value, or DYNAMIC; names: the names of the last
    arguments, which are keyword arguments. chosen: a list with a pair for each combination of types
    that was learned: (types of the dynamic arguments as text, implementation)."""

    def __init__(self, overloads, target, given, names, number):
        self.overloads, self.target, self.given, self.names, self.number = overloads, target, given, names, number
        self.chosen = []

    def choose(self, kinds):
        """Returns the implementation for the types of the dynamic arguments."""
        definitions = self.overloads.for_target(self.target)
        plain, literal = self._arguments(kinds, False), self._arguments(kinds, True)
        problem = None
        for definition in definitions:
            order = [literal, plain] if definition.prefers_literals else [plain, literal]
            for arguments in order[: 1 + (plain != literal)]:
                count = len(arguments) - len(self.names)
                try:
                    made = definition.implement(arguments[:count], dict(zip(self.names, arguments[count:])))
                except Error as error:
                    problem = problem or error
                    continue
                except TypeError as error:  # the arguments do not match the parameters
                    problem = problem or Error(str(error))
                    continue
                if made is not None:
                    return made
        shown = ", ".join(map(str, plain))
        reason = f": {problem}" if problem is not None else ""
        raise Error(f"`{self.overloads.name}` has no implementation for the argument types ({shown}) here{reason}")

    def _arguments(self, kinds, are_literal):
        kinds = iter(kinds)
        return [next(kinds) if value is DYNAMIC else _type_of_value(value, are_literal) for value in self.given]


def _type_of_value(value, is_literal):
    """Returns the type of an argument whose value is known."""
    from .cuda import types

    if value is None:
        return types.none
    if value is FUNCTION:
        return types.Callable("", "function")
    if is_literal and type(value) in types.LITERALS:
        return types.LITERALS[type(value)](value)
    if isinstance(value, str):
        return types.unicode_type
    if isinstance(value, python_types.FunctionType) or hasattr(value, "py_func"):
        return types.Dispatcher(value)
    return types.typeof(value)


def find_call(overloads, target, given, names):
    """Returns the Call of this form. Each form has one Call, which keeps the learned types. The Overloads keeps its Calls, and
    forgets the oldest call if it has too many."""
    key = target, names, tuple(_key(value) for value in given)
    found = overloads.calls.pop(key, None)
    if found is None:
        found = Call(overloads, target, given, names, next(_numbers))
        _calls[found.number] = found
        while len(overloads.calls) >= _MOST_CALLS:
            del overloads.calls[next(iter(overloads.calls))]
    overloads.calls[key] = found  # the newest one
    return found


def _key(value):
    if value is DYNAMIC or value is FUNCTION:
        return id(value)
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return type(value), repr(value)
    # a function that is defined inside another function is a new object in each translation, so its code object
    # identifies it
    return id(getattr(getattr(value, "py_func", value), "__code__", value))


def learn(error):
    """Reads the argument types in the error of a func without an implementation, and chooses the
    implementation. Returns whether the caller has to translate and compile again; False for any
    other error. Raises the error with another message if the program has no implementation."""
    # exceptions of other classes, such as KeyboardInterrupt, lack this attribute
    unresolved = getattr(error, "_unresolved", None)
    if unresolved is None:
        return False
    number, listed = unresolved
    call = _calls.get(number)
    if call is None:  # the Overloads has forgotten the call; the next translation makes a new one
        return True
    # the last item in this tuple is a number, which is there only to make it a tuple
    texts = tuple(_without_layout(text) for text in list(split(listed[1:-1]))[:-1])
    if any(known == texts for known, _ in call.chosen):
        return False
    try:
        call.chosen.append((texts, call.choose([type_of(text) for text in texts])))
    except Error as problem:
        raise _with_message(error, problem) from None
    return True


def _with_message(error, problem):
    """Returns the error with another error's message."""
    old, error.message = error.message, str(problem)
    error._replace_text(lambda text: text.replace(old, error.message, 1))
    return error


def resolving(action, forget):
    """Returns the result of action(). It runs the action again after each overload that it has
    learned; forget() makes the action translate again."""
    for _ in range(MOST_ROUNDS):
        try:
            return action()
        except Error as error:
            if not learn(error):
                raise
        forget()
    return action()


# ---- types as text of the kernel IR ----


def split(listed):
    """Yields the types in a list such as `f32[:, :] C, (i64, f64)`."""
    depth, begin = 0, 0
    for at, character in enumerate(listed):
        depth += character in "([" or -(character in ")]")
        if character == "," and depth == 0:
            yield listed[begin:at].strip()
            begin = at + 1
    if listed[begin:].strip():
        yield listed[begin:].strip()


def _without_layout(text):
    """Returns the type without layout and constness, which conditions in the kernel IR cannot test,
    and with `:` for each extent."""
    if text.startswith("("):
        return f"({', '.join(map(_without_layout, split(text[1:-1])))})"
    array = _ARRAY.fullmatch(text)
    return f"{array[1]}[{', '.join(':' for _ in split(array[2]))}]" if array else text


def type_of(text):
    """Returns the type that kernel IR text describes. Arrays have the layout "A"."""
    from .cuda import types

    if text.startswith("("):
        kinds = [type_of(item) for item in split(text[1:-1])]
        return types.UniTuple(kinds[0], len(kinds)) if kinds and all(k == kinds[0] for k in kinds) else types.Tuple(kinds)
    array = _ARRAY.fullmatch(text)
    if array:
        element, count = type_of(array[1]), len(list(split(array[2])))
        return types.Array(element, count, "A") if count or not isinstance(element, types.Record) else element
    if _records.is_name(text):
        return types.from_dtype(_records.dtype_of(text))
    kind = types.of_text(text)
    kind = kind or next((k for k in types.VECTORS.values() if k.text == text), None)
    if kind is None:
        raise Error(f"an argument has the type {dtypes.DType(text)}, which overloads do not know")
    return kind


def tests_of(name, text):
    """Yields conditions in the kernel IR. A parameter has the type if all of them are true."""
    if text.startswith("("):
        items = list(split(text[1:-1]))
        yield from (f"is_tuple({name})", f"len({name}) == {len(items)}")
        for i, item in enumerate(items):
            yield from tests_of(f"{name}[{i}]", item)
        return
    array = _ARRAY.fullmatch(text)
    if array:
        yield from (f"is_array({name})", f"dtype({name}) == {array[1]}", f"{name}.ndim == {len(list(split(array[2])))}")
    else:
        yield from (f"not is_array({name})", f"not is_tuple({name})", f"dtype({name}) == {text}")


# ---- definitions by the program ----


def defined(thing):
    """Returns the Overloads of a function that overload defines, or None. Python cannot call such a
    function."""
    return _functions.get(id(thing))


def function_of(thing):
    """Returns the Overloads of a function that overload defines, or that has several signatures;
    None for other objects."""
    return _functions.get(id(thing)) or getattr(thing, "by_signature", None)


def method_of(name):
    """Returns the Overloads of a method, or None."""
    return _methods.get(name)


def attribute_of(name):
    """Returns the Overloads of an attribute, or None."""
    return _attributes.get(name)


def _keep(table, key, name, thing, definition):
    table.setdefault(key, Overloads(name, thing)).definitions.append(definition)
    return definition.define


def _read(options, target):
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"overloads have no option {min(unknown)!r}; the options are {', '.join(sorted(_OPTIONS))}")
    target = options.get("target", target)
    if target not in ("cpu", "cuda", "gpu", "generic"):
        raise ValueError(f'target must be "cpu", "cuda", "gpu" or "generic", not {target!r}')
    return {"target": target, "strict": options.get("strict", True), "prefer_literal": options.get("prefer_literal", False)}


def makers(default):
    """Returns the decorators overload, overload_method and overload_attribute. default: the target
    of definitions that name none."""

    def overload(func, **options):
        """Decorates a function that receives the types of the arguments. It returns the Python
        function that compiled code calls in place of `func`, or None. Options: target ("cpu",
        "cuda" or "generic"), prefer_literal (types have the values of constant arguments), strict
        (the implementation has the same parameters). jit_options and inline have no effect."""
        read = _read(options, default)
        name = getattr(func, "__name__", str(func))
        return lambda define: _keep(_functions, id(func), name, func, Definition(define, **read))

    def overload_method(typ, attr, **options):
        """Like overload, for the method `attr` of values whose type is of the class `typ`. The
        first argument is the value."""
        read = _read(options, default)
        return lambda define: _keep(_methods, attr, attr, None, Definition(define, typ, **read))

    def overload_attribute(typ, attr, **options):
        """Like overload, for the attribute `attr` of values whose type is of the class `typ`."""
        read = _read(options, default)
        return lambda define: _keep(_attributes, attr, attr, None, Definition(define, typ, **read))

    return overload, overload_method, overload_attribute

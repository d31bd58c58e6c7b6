"""Translates the statements in one function to kernel IR text."""

import ast

from .. import _missing, _records, dtypes
from .._errors import SourceError, SourceTypeError, remember_raise
from . import module as modules
from . import closures, comprehensions, constant_lists, enums, folding, named, optional, ranges, static, temporaries, unrolling, walrus, words
from .array_statements import ArrayStatements
from .array_values import ArrayValues
from .assignments import Assignments
from .calls import Calls
from .expression import Expressions
from .loops import Loops
from .named import NamedTuples
from .scope import Scope, loop_names
from .sums import Sums
from .versions import split, without_annotations

# Attributes of a function that the funcs for its parts also get.
_RULES = ("numba", "wrap", "fastmath", "strict")


class Emitter(Assignments, ArrayStatements, ArrayValues, Sums, Loops, NamedTuples, Calls, Expressions):
    """Translates one function. avoid: names that its variables must not have."""

    def __init__(self, builder, python, source, node, avoid, is_typed=False, thing=None, shapes=None):
        """thing: the function as the caller sees it, with the known values of parameters and the number of arguments for *args."""
        self.builder, self.python, self.source, self.node, self.is_typed = builder, python, source, node, is_typed
        self.avoid, self.used, self.renamed, self.lines, self.temporaries = avoid, set(), {}, [], 0
        self.kind = self.result = None  # the result type, if the caller prescribes one
        self.shapes = dict(shapes or {})  # the shapes of names that are tuples
        self.returned = []  # the shapes of returned tuples; None for other values
        self.values = {}  # the value of each name that is assigned once
        self.array_names = None  # the variables that may be arrays; computed when first needed
        self.ranks = {}  # the number of dimensions of each array that the function creates
        self.flags = []  # for each enclosing loop, the variable that is true until a break, or None
        # the funcs' lines for expressions; the variables that such funcs declare
        self.lifted, self.kept = [], set()
        known = dict(getattr(thing, "known", None) or {})
        self.functions = getattr(thing, "functions", ())  # parameters that take functions with captured variables
        self.ranged = getattr(thing, "ranges", ())  # parameters that take ranges
        self.begin_arguments(known, getattr(thing, "spread", None))
        self.body = (
            node.body if isinstance(node, ast.FunctionDef) else [ast.copy_location(ast.Return(node.body), node.body)]
        )
        self.begin_names(known)
        self.check_kinds()
        self.local_types = dict(getattr(thing, "local_types", ()))  # the variable types in njit's option `locals`
        if is_typed:
            self.body = split(without_annotations(self.body), self.parameters, self.local_types)
            self.body = folding.Folder(self).without_dead(self.body)
        self.begin_scope()

    def check_kinds(self):
        """Reports statements and expressions that kernels do not support. A list is allowed as the object of a loop or on the right of
        `in`."""
        nodes = [node for statement in self.body for node in ast.walk(statement)]
        listed = {id(node.iter) for node in nodes if isinstance(node, ast.For)}
        listed |= {id(n.comparators[-1]) for n in nodes if isinstance(n, ast.Compare) and isinstance(n.ops[-1], (ast.In, ast.NotIn))}
        for node in nodes:
            name = type(node).__name__
            if name in words.INSTEAD and not (isinstance(node, (ast.List, ast.Set)) and id(node) in listed):
                raise self.stand_in_around(nodes, node) or self.error(node, words.INSTEAD[name])

    def stand_in_around(self, nodes, inside):
        """Returns the error for the call of a stand-in, such as numba.typed.List, if the node `inside` is a part
        of such a call. Otherwise returns None."""
        for node in nodes:
            if isinstance(node, ast.Call) and any(n is inside for n in ast.walk(node)):
                text = _missing.text_of(self.static_value(node.func))
                if text:
                    return self.error(node, text)
        return None

    def begin_arguments(self, known, spread):
        """Translates the parameters. *args without arguments is a known value, the empty tuple."""
        arguments = self.node.args
        if arguments.kwarg:
            raise self.error(arguments.kwarg, "a kernel cannot have **kwargs")
        if arguments.vararg and not spread:
            is_tuple = spread is None and arguments.vararg.arg in self.shapes
            if spread is None and not is_tuple:
                raise self.error(arguments.vararg, "the number of arguments for *args is not known here")
            if not is_tuple:
                known[arguments.vararg.arg] = ()
        self.arguments = [*arguments.posonlyargs, *arguments.args, *([arguments.vararg] if arguments.vararg else []), *arguments.kwonlyargs]
        self.spreads = {arguments.vararg.arg: spread} if arguments.vararg else {}
        if arguments.vararg and spread is None:
            self.spreads = {arguments.vararg.arg: len(self.shapes[arguments.vararg.arg])}
        if self.builder.joins_texts:
            self.join_texts(known)
        self.given = known
        self.arguments = [a for a in self.arguments if a.arg not in known]
        self.parameters = [a.arg for a in self.arguments]

    def join_texts(self, known):
        for name, value in known.items():
            if type(value) is str:
                known[name] = static.GivenText(value)
                self.builder.texts.append(name)

    def begin_names(self, known):
        """Sets `body` to the statements with known values filled in. If the function assigns to a parameter with a known value, the
        parameter becomes a variable."""
        self.stored = folding.stores(self.body)
        self.numbers = closures.constants(self.body)
        around = {n: v for n, v in known.items() if n not in self.stored}
        own = set(self.stored) | set(self.parameters)
        self.static = static.Names(self.python, own - set(around), around, self.is_typed)
        body = unrolling.written(self.body, self.static)
        body = constant_lists.written(body, self.static)
        body = temporaries.named(body, self.static, self.temporary_name)
        body = walrus.expand(body, self.temporary_name, comprehensions.find(body, self.static))
        self.static.optional = optional.suspect(body, ())
        for name, value in reversed([(n, v) for n, v in known.items() if n in self.stored]):
            place = body[0] if body else self.node
            begin = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
            body = [ast.fix_missing_locations(ast.copy_location(begin, place)), *body]
        functions = {n: v for n, v in around.items() if isinstance(v, closures.Inner)}
        self.body = folding.Folder(self).fold(body, functions)

    def begin_scope(self):
        self.scope = Scope(self.body, self.parameters)
        self.take_local_types()
        self.find_sums()
        self.ranges, self.enums = set(), {}
        assigned = folding.values(self.body, self.parameters)
        ranges.names_of(self, assigned)
        enums.names_of(self, named.values_with_parts(self.body, self.parameters))
        optional.find(self)
        self.static.own = (self.scope.names | set(self.stored) | set(self.parameters)) - set(self.static.around)
        for where, name in self.scope.unassigned:
            raise self.error(where, f"`{name}` is used before it is assigned")
        for annotations in self.scope.types.values():
            for other in annotations[1:]:
                if ast.dump(other) != ast.dump(annotations[0]):
                    raise self.error(
                        other, f"this type annotation differs from the one in line {annotations[0].lineno}, but a variable of a kernel has one type"
                    )

    def take_local_types(self):
        """Reads the types in njit's option `locals`, which are treated like annotations."""
        loops = {name for s in self.body for n in ast.walk(s) if isinstance(n, ast.For) for name in loop_names(n)}
        for name, kind in self.local_types.items():
            what = "is a parameter" if name in self.parameters else "is the variable of a loop" if name in loops else None
            what = what or ("is not assigned" if name not in self.scope.names else None)
            if what:
                raise self.error(self.node, f"locals={{{name!r}: {kind}}}: `{name}` {what}; give a type to a variable that is assigned")
            self.scope.types[name] = [ast.copy_location(ast.Constant(kind), self.node)]

    # ---- help ----

    def error(self, node, message, kind=SourceError):
        if not hasattr(node, "lineno"):
            node = self.node
        return self.source.error(node, message, kind)

    def local(self, name):
        if name not in self.renamed:
            text = "".join(c if c.isascii() and c != "." else "_" for c in name)
            while text in words.RESERVED or text in self.avoid or text in self.renamed.values():
                text += "_"
            self.renamed[name] = text
        return self.renamed[name]

    def temporary_name(self):
        """Returns a Python name that the function does not use."""
        self.temporaries += 1
        return f"t{self.temporaries}_of_{self.node.lineno}"

    def temporary(self):
        return self.local(self.temporary_name())

    def put(self, depth, *parts):
        flat = ["  " * depth]
        for part in parts:
            flat.extend(part if isinstance(part, list) else [part])
        self.lines.append(flat)

    def declare(self, depth, node, name):
        """Declares a variable without a value. Its annotation or its assignments determine the type."""
        kind = self.scope.types.get(name)
        of = [": ", *self.type_parts(kind[0])] if kind else []
        self.put(depth, [self.source.place(node)], f"var {self.local(name)}", of)

    def type_parts(self, node):
        """Returns the place and the text of the type that the annotation `node` names."""
        return [self.source.place(node), self.type_text(self.static_value(node), node)]

    # ---- the declaration ----

    def write(self, name, kind, attributes, pointers=()):
        """Writes the declaration and the function body. pointers: the types of parameters that are
        addresses, by name."""
        self.rules = "".join(f" @{word}" for word in _RULES if f" @{word}" in attributes)
        self.kind = kind
        self.used.add(name)
        copies = []
        if kind == "kernel":
            self.check_given()
        head = [self.source.place(self.node), f"{kind} {name}("]
        for i, argument in enumerate(self.arguments):
            head += [", "] if i else []
            parameter = self.local(argument.arg)
            if argument.arg in pointers:
                parameter = self.local(argument.arg + "_address")
            elif argument.arg in self.scope.stores:
                parameter = self.local(argument.arg + "_given")
                copies.append((argument, parameter))
            head += [self.source.place(argument), *self.parameter(argument, parameter)]
        head.append(")")
        if self.result and kind == "func":
            self.builder.declare(self.result if _records.is_name(self.result) else None)
            head += [f" -> {self.result}"]
        result = None if self.result or self.is_typed else getattr(self.node, "returns", None)
        if result is not None and kind == "func":
            annotated = self.annotation("return", result)
            if annotated is not None:
                head += [" -> ", self.source.place(result), self.type_text(annotated, result)]
        self.put(0, head, f"{attributes} {{")
        for pointer in pointers:
            address = self.local(pointer + "_address")
            self.put(1, f"var {self.local(pointer)} = bitcast({pointers[pointer]}, u64({address}))")
        for argument, parameter in copies:
            self.declare(1, argument, argument.arg)
            self.put(1, [self.source.place(argument)], f"{self.local(argument.arg)} = {parameter}")
        self.returns_optional &= kind == "func"
        optional.begin(self, 1)
        self.block(self.body, 1)
        if self.returns_optional and not folding.ends(self.body):
            optional.give_back(self, None, 1)
        self.put(0, "}")
        return self.lines + self.lifted

    def annotation(self, name, node):
        """Returns the type that an annotation gives, or None. If Python numbers have Numba's types, annotations are ignored, as in Numba.
        """
        if node is None or self.is_typed:
            return None
        value = self.python.__annotations__.get(name)
        if isinstance(value, str):
            value = (
                self.static_value(ast.parse(value, mode="eval").body) if value.isidentifier() or "." in value else value
            )
        return value

    def check_given(self):
        """Reports kernel parameters that are given a function but are annotated with another type."""
        for argument in [*self.node.args.posonlyargs, *self.node.args.args]:
            value = self.annotation(argument.arg, argument.annotation) if argument.arg in self.given else None
            if value is not None and not (isinstance(value, dtypes.Const) and value.type is None):
                raise self.error(argument.annotation, f"parameter `{argument.arg}` has the annotation {value!r}, but the launch passes a function")

    def tuple_parameter(self, argument, name, shape):
        """Declares a kernel parameter that takes a tuple. The types of its items follow from the launch."""
        value = self.annotation(argument.arg, argument.annotation)
        is_const = isinstance(value, dtypes.Const) and value.type is None
        if value is not None and not is_const:
            raise self.error(argument.annotation, f"parameter `{argument.arg}` has the annotation {value!r}, but the launch passes a tuple")
        return [f"{'const ' if is_const else ''}{name}: {shape.type_text()}"]

    def parameter(self, argument, name):
        shape = self.shapes.get(argument.arg)
        if argument.arg in self.functions:
            return [f"{name}: func"]
        if isinstance(shape, tuple) and self.kind == "kernel":
            return self.tuple_parameter(argument, name, shape)
        value = self.annotation(argument.arg, argument.annotation)
        if value is None:
            return [name]
        if isinstance(value, dtypes.Const):
            return [
                f"const {name}" + ("" if value.type is None else ": " + self.type_text(value.type, argument.annotation))
            ]
        return [f"{name}: {self.type_text(value, argument.annotation)}"]

    def type_text(self, value, node):
        text = dtypes.name_of(value) or self.builder.record(value)
        if text is not None and _records.is_name(text):
            self.builder.declare(text)
        if text is None:
            if self.is_typed:
                what = "Invalid NumPy dtype specified: " if isinstance(value, str) else ""
                raise self.error(node, f"{what}{value!r} is not a type of array elements; write float32 or numpy.float32")
            raise self.error(node, f"{value!r} is not a kjit type: expected a type such as kjit.f32, kjit.f32[:, :] or kjit.const")
        return text

    # ---- statements ----

    def block(self, body, depth):
        for statement in body:
            method = getattr(self, "do_" + type(statement).__name__, None)
            if not method:
                raise self.error(statement, f"a kernel has no statement of this kind ({type(statement).__name__})")
            for name in self.scope.hoist.get(id(statement), ()):
                self.declare(depth, statement, name)
            method(statement, depth)

    def do_Pass(self, statement, depth):
        pass

    def do_Break(self, statement, depth):
        if self.flags[-1]:
            self.put(depth, f"{self.flags[-1]} = false")
        self.put(depth, [self.source.place(statement)], "break")

    def do_Continue(self, statement, depth):
        self.put(depth, [self.source.place(statement)], "continue")

    def do_Return(self, statement, depth):
        place = [self.source.place(statement)]
        is_none = statement.value is None or self.static_value(statement.value) is None
        if self.returns_optional:
            if not is_none:
                self.returned.append(self.shape_of_result(statement.value))
            optional.give_back(self, None if is_none else statement.value, depth)
        elif is_none:
            self.put(depth, place, "return")
        elif optional.is_nothing(self, statement.value):
            self.put(depth, place, self.call(statement.value))
            self.put(depth, place, "return")
        elif self.kind == "kernel":
            self.expression(statement.value)  # reports errors inside the value first
            numba = "CUDA kernel must have void return type: " if self.is_typed else ""
            advice = "write to an array, or make it a device function"
            raise self.error(statement, f"{numba}a kernel cannot return a value: {advice}", SourceTypeError)
        else:
            self.returned.append(self.shape_of_result(statement.value))
            # a function without a caller returns its value to Python
            is_called = self.builder.callers.get(self.builder.writing)
            text = self.referred(statement.value) if is_called else self.expression(statement.value)
            self.put(depth, place, "return ", text)

    def do_Expr(self, statement, depth):
        value = statement.value
        if isinstance(value, ast.Constant):
            if isinstance(value.value, (str, type(...))):
                return
            raise self.error(value, "this statement has no effect, because it is only a number")
        # the expression may raise an error, for example for an index
        if not isinstance(value, ast.Call) and self.is_typed:
            return self.put(depth, [self.source.place(value)], f"let {self.temporary()} = ", self.expression(value))
        if not isinstance(value, ast.Call):
            raise self.error(value, "the value of this expression is not used: only a call can be a statement")
        called = self.static_value(value.func)
        if called is print:
            return self.print(value, depth)
        if getattr(called, "is_group", False):  # a group of threads that is never used
            self.builder.has_grid_group = True
            return
        if not self.fill_array(value, depth):
            self.put(depth, self.call(value))

    def print(self, call, depth):
        if call.keywords:
            raise self.error(
                call.keywords[0].value,
                "print() in a kernel takes no keyword arguments; it prints one line with a space between values",
            )
        parts = [self.source.place(call), "print("]
        for i, argument in enumerate(call.args or [ast.copy_location(ast.Constant(""), call)]):
            parts += ([", "] if i else []) + self.text_or_value(argument)
        self.put(depth, parts, ")")

    def text_or_value(self, node):
        value = self.static_value(node)
        if isinstance(value, words.Word) and value.name in words.TRIPLES and self.is_typed:
            return ["(", ", ".join(f"i64({value.name}.{axis})" for axis in "xyz"), ")"]
        if isinstance(value, bool) and self.is_typed:
            return [modules.quote(str(value))]
        return [modules.quote(value)] if isinstance(value, str) else self.expression(node)

    def do_Assert(self, statement, depth):
        parts = [self.source.place(statement), "assert ", *self.condition(statement.test)]
        if statement.msg is not None:
            text = self.static_value(statement.msg)
            if not isinstance(text, str):
                raise self.error(
                    statement.msg, "the message of an assert must be a string that is known when the kernel is compiled"
                )
            parts += [", ", modules.quote(text)]
        self.put(depth, parts)

    def do_Raise(self, statement, depth):
        call = statement.exc
        if call is None or statement.cause is not None:
            raise self.error(statement, 'in a kernel, raise takes an exception and no cause: raise ValueError("a text")')
        is_call = isinstance(call, ast.Call)
        kind = self.static_value(call.func if is_call else call)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise self.error(call, "raise needs an exception class that is known at compile time")
        args = self.exception_arguments(call) if is_call else ()
        text = args[0] if len(args) == 1 and isinstance(args[0], str) else repr(args) if args else kind.__name__
        place = self.source.place(statement)
        remember_raise(place, kind, args)
        self.put(depth, [place], f"raise {modules.quote(text)}")

    def constant(self, node):
        """Returns the value of a known expression, including signed numbers and tuples."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return self.static_value(node)

    def exception_arguments(self, call):
        values = [self.constant(argument) for argument in call.args]
        for argument, value in zip(call.args, values):
            if not isinstance(value, (*static.PLAIN, tuple)):
                raise self.error(argument, "the arguments of an exception must be strings and numbers that are known when the function is compiled")
        if call.keywords:
            raise self.error(call, "an exception raised by a kernel cannot have keyword arguments")
        return tuple(values)

    def do_If(self, statement, depth):
        known = self.static_value(statement.test)
        if isinstance(known, static.PLAIN):
            return (
                self.block(statement.body if known else statement.orelse, depth)
                if not self.declares(statement)
                else self.inner(["if true {"], statement.body if known else statement.orelse, depth)
            )
        self.put(depth, [self.source.place(statement)], "if ", self.condition(statement.test), " {")
        self.block(statement.body, depth + 1)
        if statement.orelse:
            self.put(depth, "} else {")
            self.block(statement.orelse, depth + 1)
        self.put(depth, "}")

    def declares(self, statement):
        """Returns whether a statement declares names inside its block, which must not be visible in
        the enclosing block."""
        return any(
            id(s) in self.scope.declare or id(s) in self.scope.hoist
            for s in ast.walk(statement)
            if isinstance(s, ast.stmt)
        )

    def inner(self, head, body, depth):
        self.put(depth, head)
        self.block(body, depth + 1)
        self.put(depth, "}")

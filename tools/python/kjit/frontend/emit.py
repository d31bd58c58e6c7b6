"""Statements of one function as text of the kernel IR."""

import ast

from .. import _records, dtypes
from .._errors import SourceError, SourceTypeError, SourceValueError, remember_raise
from . import module as modules
from . import array_expressions, closures, enums, folding, library, named, optional, ranges, static, temporaries, walrus, words
from .array_statements import ArrayStatements
from .array_values import ArrayValues
from .expression import Expressions
from .loops import Loops
from .named import NamedTuples
from .scope import Scope
from .sums import Sums
from .versions import split, without_annotations


# Attributes of a function that funcs of parts of it have, too.
_RULES = ("numba", "wrap", "fastmath", "strict")


class Emitter(ArrayStatements, ArrayValues, Sums, Loops, NamedTuples, Expressions):
    """One function. avoid: names that its variables must not have."""

    def __init__(self, builder, python, source, node, avoid, is_typed=False, thing=None, shapes=None):
        """thing: what the function is to who calls it: values of parameters that are known, how many arguments its *args are."""
        self.builder, self.python, self.source, self.node, self.is_typed = builder, python, source, node, is_typed
        self.avoid, self.used, self.renamed, self.lines, self.temporaries = avoid, set(), {}, [], 0
        self.kind = self.result = None  # the type of the result, where who calls it says so
        self.shapes = dict(shapes or {})  # of names that are tuples
        self.returned = []  # the shapes of tuples that are returned, or None of other values
        self.values = {}  # of names that are assigned once: what
        self.array_names = None  # of variables that may be arrays, where it has been asked for
        self.ranks = {}  # of arrays that the function makes: how many dimensions
        self.flags = []  # of the loops around a statement: the variable that says that no break has come, or None
        self.lifted, self.kept = [], set()  # lines of the funcs that expressions became, and names of parts of these
        known = dict(getattr(thing, "known", None) or {})
        self.functions = getattr(thing, "functions", ())  # parameters that take functions with variables
        self.ranged = getattr(thing, "ranges", ())  # parameters that take ranges
        self.begin_arguments(known, getattr(thing, "spread", None))
        self.body = (
            node.body if isinstance(node, ast.FunctionDef) else [ast.copy_location(ast.Return(node.body), node.body)]
        )
        self.begin_names(known)
        self.check_kinds()
        if is_typed:
            self.body = split(without_annotations(self.body), self.parameters)
            self.body = folding.Folder(self).without_dead(self.body)
        self.begin_scope()

    def check_kinds(self):
        """Refuses statements and expressions that no kernel has. A list may be what a loop goes over or `in` looks through."""
        nodes = [node for statement in self.body for node in ast.walk(statement)]
        listed = {id(node.iter) for node in nodes if isinstance(node, ast.For)}
        listed |= {id(n.comparators[-1]) for n in nodes if isinstance(n, ast.Compare) and isinstance(n.ops[-1], (ast.In, ast.NotIn))}
        for node in nodes:
            name = type(node).__name__
            if name in words.INSTEAD and not (isinstance(node, (ast.List, ast.Set)) and id(node) in listed):
                raise self.error(node, words.INSTEAD[name])

    def begin_arguments(self, known, spread):
        """The parameters; those that were given nothing are known."""
        arguments = self.node.args
        if arguments.kwarg:
            raise self.error(arguments.kwarg, "a kernel's parameters are plain ones: no **kwargs")
        if arguments.vararg and not spread:
            is_tuple = spread is None and arguments.vararg.arg in self.shapes
            if spread is None and not is_tuple:
                raise self.error(arguments.vararg, "*args here: the function is called where nothing says how many there are")
            if not is_tuple:
                known[arguments.vararg.arg] = ()
        self.arguments = [*arguments.posonlyargs, *arguments.args, *([arguments.vararg] if arguments.vararg else []), *arguments.kwonlyargs]
        self.spreads = {arguments.vararg.arg: spread} if arguments.vararg else {}
        if arguments.vararg and spread is None:
            self.spreads = {arguments.vararg.arg: len(self.shapes[arguments.vararg.arg])}
        self.given = known
        self.arguments = [a for a in self.arguments if a.arg not in known]
        self.parameters = [a.arg for a in self.arguments]

    def begin_names(self, known):
        """The statements with what is known in them; parameters that have a value and are assigned to become variables."""
        self.stored = folding.stores(self.body)
        self.numbers = closures.constants(self.body)
        around = {n: v for n, v in known.items() if n not in self.stored}
        own = set(self.stored) | set(self.parameters)
        self.static = static.Names(self.python, own - set(around), around, self.is_typed)
        body = walrus.expand(self.body, self.temporary_name)
        self.static.optional = optional.suspect(body, ())
        for name, value in reversed([(n, v) for n, v in known.items() if n in self.stored]):
            place = body[0] if body else self.node
            begin = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
            body = [ast.fix_missing_locations(ast.copy_location(begin, place)), *body]
        functions = {n: v for n, v in around.items() if isinstance(v, closures.Inner)}
        self.body = folding.Folder(self).fold(body, functions)

    def begin_scope(self):
        self.scope = Scope(self.body, self.parameters)
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
                        other, f"another type than in line {annotations[0].lineno}: a variable of a kernel has one type"
                    )

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
        """A name of Python's that the function does not have."""
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
        """A variable without a value: what it is assigned says its type, or its annotation."""
        kind = self.scope.types.get(name)
        of = [": ", *self.type_parts(kind[0])] if kind else []
        self.put(depth, [self.source.place(node)], f"var {self.local(name)}", of)

    def type_parts(self, node):
        """The type that an annotation of a variable is."""
        return [self.source.place(node), self.type_text(self.static_value(node), node)]

    # ---- the declaration ----

    def write(self, name, kind, attributes, pointers=()):
        """pointers: the types of parameters that are addresses, by name."""
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
        """What an annotation says of a type, or None: where numbers of Python have Numba's types it says nothing, as in Numba."""
        if node is None or self.is_typed:
            return None
        value = self.python.__annotations__.get(name)
        if isinstance(value, str):
            value = (
                self.static_value(ast.parse(value, mode="eval").body) if value.isidentifier() or "." in value else value
            )
        return value

    def check_given(self):
        """Parameters of a kernel that are given functions say nothing else."""
        for argument in [*self.node.args.posonlyargs, *self.node.args.args]:
            value = self.annotation(argument.arg, argument.annotation) if argument.arg in self.given else None
            if value is not None and not (isinstance(value, dtypes.Const) and value.type is None):
                raise self.error(argument.annotation, f"`{argument.arg}` takes {value!r}, and was given a function")

    def tuple_parameter(self, argument, name, shape):
        """Of a kernel: what its items are, their types say."""
        value = self.annotation(argument.arg, argument.annotation)
        is_const = isinstance(value, dtypes.Const) and value.type is None
        if value is not None and not is_const:
            raise self.error(argument.annotation, f"`{argument.arg}` takes {value!r}, and was given a tuple")
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
            raise self.error(node, f"{value!r} is no type of kjit: kjit.f32, kjit.f32[:, :], kjit.const")
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
        elif self.kind == "kernel":
            self.expression(statement.value)  # what is wrong in it comes first
            numba = "CUDA kernel must have void return type: " if self.is_typed else ""
            advice = "write to an array, or make it a device function"
            raise self.error(statement, f"{numba}a kernel returns nothing: {advice}", SourceTypeError)
        else:
            self.returned.append(self.shape_of_result(statement.value))
            self.put(depth, place, "return ", self.expression(statement.value))

    def do_Expr(self, statement, depth):
        value = statement.value
        if isinstance(value, ast.Constant):
            if isinstance(value.value, (str, type(...))):
                return
            raise self.error(value, "a number that nobody uses")
        if not isinstance(value, ast.Call) and self.is_typed:  # it may fail, as an index may
            return self.put(depth, [self.source.place(value)], f"let {self.temporary()} = ", self.expression(value))
        if not isinstance(value, ast.Call):
            raise self.error(value, "an expression that nobody uses: only calls stand alone")
        called = self.static_value(value.func)
        if called is print:
            return self.print(value, depth)
        if getattr(called, "is_group", False):  # of threads, which nobody uses
            self.builder.has_grid_group = True
            return
        self.put(depth, self.call(value))

    def print(self, call, depth):
        if call.keywords:
            raise self.error(
                call.keywords[0].value,
                "print() in a kernel takes no keywords: it prints one line, with a blank between values",
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
                    statement.msg, "the message of an assert is a text that is known when the kernel is compiled"
                )
            parts += [", ", modules.quote(text)]
        self.put(depth, parts)

    def do_Raise(self, statement, depth):
        call = statement.exc
        if call is None or statement.cause is not None:
            raise self.error(statement, 'in a kernel: raise ValueError("a text")')
        is_call = isinstance(call, ast.Call)
        kind = self.static_value(call.func if is_call else call)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise self.error(call, "what is raised is a class of exceptions that is known when the kernel is compiled")
        args = self.exception_arguments(call) if is_call else ()
        text = args[0] if len(args) == 1 and isinstance(args[0], str) else repr(args) if args else kind.__name__
        place = self.source.place(statement)
        remember_raise(place, kind, args)
        self.put(depth, [place], f"raise {modules.quote(text)}")

    def constant(self, node):
        """The value of an expression that is known, a number with a sign or a tuple too."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return self.static_value(node)

    def exception_arguments(self, call):
        values = [self.constant(argument) for argument in call.args]
        for argument, value in zip(call.args, values):
            if not isinstance(value, (*static.PLAIN, tuple)):
                raise self.error(argument, "the arguments of an exception have to be known when the function is compiled: texts and numbers")
        if call.keywords:
            raise self.error(call, "an exception that a kernel raises has no keyword arguments")
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
        """Whether names are declared inside: they must not come into the block around."""
        return any(
            id(s) in self.scope.declare or id(s) in self.scope.hoist
            for s in ast.walk(statement)
            if isinstance(s, ast.stmt)
        )

    def inner(self, head, body, depth):
        self.put(depth, head)
        self.block(body, depth + 1)
        self.put(depth, "}")

    # ---- assignments ----

    def do_Assign(self, statement, depth):
        if self.array_declaration(statement, depth):
            return
        if len(statement.targets) > 1:
            name = self.temporary()
            self.put(depth, f"let {name} = ", self.expression(statement.value))
            for target in statement.targets:
                if isinstance(target, (ast.Tuple, ast.List)) and self.is_typed:
                    self.unpack(statement, target, [name], depth)
                elif not self.store_array_item(target, [name], depth):
                    self.store(statement, [target], [name], depth)
            return
        target = statement.targets[0]
        if isinstance(target, ast.Name) and self.scope.stores[target.id] == 1:
            self.values[target.id] = statement.value
            shape = self.shape_of(statement.value)
            if shape is not None:
                self.shapes[target.id] = shape
        if isinstance(target, ast.Name) and target.id in self.static.optional:
            return optional.assign(self, statement, target, statement.value, depth)
        if isinstance(target, ast.Name) and target.id in self.ranges:
            return self.store(statement, [target], ranges.value(self, statement.value), depth)
        if not isinstance(target, (ast.Tuple, ast.List)):
            if getattr(statement, "is_compound", False) and self.may_be_array(statement.value.left.id):
                call = array_expressions.augment(self, statement, statement.value, False)
                return self.store(statement, [target], call, depth)
            if self.is_typed and self.store_composed(statement, target, depth) or self.store_array(statement, target, statement.value, depth):
                return
            value = self.sum_of(statement) or self.expression(statement.value)
            if isinstance(target, ast.Name):
                value = self.reference(statement.value, value)
            return self.store(statement, [target], value, depth)
        if not target.elts:
            raise self.error(target, "no variable takes the value")
        if optional.has_one(self, target, statement.value):
            return optional.assign_all(self, statement, target, depth)
        if ranges.is_range(self, statement.value):
            return self.store(statement, target.elts, ranges.items(self, statement.value, len(target.elts), depth), depth)
        if self.is_typed and (len(target.elts) == 1 or any(map(self.may_be_part, target.elts))):
            return self.unpack(statement, target, self.expression(statement.value), depth)
        value = self.expression(statement.value)
        if self.is_typed and isinstance(statement.value, (ast.Name, ast.Subscript)):
            value = self.unpacked(target, value)
        if isinstance(statement.value, ast.Tuple):  # swaps: all values before all places
            value = []
            for i, item in enumerate(statement.value.elts):
                value += ([", "] if i else []) + self.expression(item)
            if len(statement.value.elts) != len(target.elts):
                raise self.error(statement, f"{len(statement.value.elts)} values for {len(target.elts)} variables")
        self.store(statement, target.elts, value, depth)

    def store_composed(self, statement, target, depth):
        """Texts become the characters of an array, and arrays are copied to fields that are arrays. Whether that was done."""
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            return False
        text = self.static_value(statement.value)
        if isinstance(text, (str, bytes)):
            import numpy

            codes = numpy.array([ord(c) for c in text] if isinstance(text, str) else list(text), numpy.uint32)
            codes = codes if len(codes) else numpy.zeros(1, numpy.uint32)
            self.call_text(library.STORE_TEXT, depth, target, self.known(codes, statement.value))
            return True
        is_field = isinstance(target, ast.Attribute) or isinstance(self.static_value(target.slice), str)
        if not is_field or not isinstance(statement.value, (ast.Name, ast.Subscript, ast.Attribute)):
            return False
        self.forbid_global(target)
        value = self.temporary()
        self.put(depth, [self.source.place(statement)], f"let {value} = ", self.expression(statement.value))
        self.put(depth, f"if is_array({value}) {{")
        self.call_text(library.STORE_ARRAY, depth + 1, target, [value])
        self.put(depth, "} else {")
        self.put(depth + 1, self.expression(target), f" = {value}")
        self.put(depth, "}")
        return True

    def call_text(self, function, depth, target, value):
        symbol = self.builder.function(function)
        self.used.add(symbol)
        self.put(depth, [self.source.place(target)], f"{symbol}(", self.expression(target), ", ", value, ")")

    def store(self, statement, targets, value, depth):
        """The value to the targets; those that are declared here with let or var."""
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Subscript, ast.Attribute)):
                raise self.error(target, "a target is a name, an element or a field")
            self.forbid_global(target)
        new = [t for t in targets if isinstance(t, ast.Name) and t.id in self.scope.declare.get(id(statement), ())]
        place = [self.source.place(targets[0])]
        if (
            new
            and len(new) == len(targets)
            and all(self.scope.stores[t.id] == 1 and t.id not in self.scope.types for t in new)
        ):
            names = ", ".join(self.local(t.id) for t in new)
            return self.put(depth, place, f"let {names} = ", value)
        if len(targets) == 1 and new and new[0].id in self.scope.types:
            kind = self.type_parts(self.scope.types[new[0].id][0])
            return self.put(depth, place, f"var {self.local(new[0].id)}: ", kind, " = ", value)
        for target in new:
            self.declare(depth, target, target.id)
        left = []
        for i, target in enumerate(targets):
            left += ([", "] if i else []) + self.expression(target)
        self.put(depth, left, " = ", value)

    def forbid_global(self, target):
        base = target
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        is_around = isinstance(base, ast.Name) and base.id not in self.scope.names and base.id not in self.parameters
        if is_around and base is not target and self.is_captured(self.static_value(base)):
            return
        if is_around:
            raise self.error(
                target,
                f"`{base.id}` belongs to Python around the kernel, which is a constant here: hand it over as an argument",
            )

    def do_AnnAssign(self, statement, depth):
        if not isinstance(statement.target, ast.Name):
            raise self.error(
                statement, "a variable may have a type, an element or a field has none of its own: x: kjit.f32 = 0"
            )
        name = statement.target.id
        if statement.value is not None:
            self.store(statement, [statement.target], self.expression(statement.value), depth)
        elif name in self.scope.declare.get(id(statement), ()):
            self.declare(depth, statement, name)

    def do_AugAssign(self, statement, depth):
        operator = words.BINARY.get(type(statement.op))
        if not operator:
            raise self.error(statement, "a kernel has no matrix product of arrays: write the loops")
        self.forbid_global(statement.target)
        if not self.augment_array(statement, depth):
            self.augment_number(statement, self.expression(statement.target), depth)

    def augment_number(self, statement, target, depth):
        operator = words.BINARY[type(statement.op)]
        place = self.source.operator_place(statement.target, statement.value, operator + "=")
        if operator == "/" and self.is_typed and isinstance(statement.target, ast.Name):
            return self.put(depth, target, " = ", target, " ", [place], "/ ", self.expression(statement.value))
        value = self.summand(statement) or self.expression(statement.value)
        self.put(depth, target, " ", [place], f"{operator}= ", value)

    def array_declaration(self, statement, depth):
        """tile = kjit.shared(shape, dtype)"""
        call = statement.value
        if not isinstance(call, ast.Call):
            return False
        if self.builder.makes_arrays and self.numpy_array(statement, depth):
            return True
        word = self.static_value(call.func)
        if isinstance(word, words.ArrayForm):
            call, word = self.plain_array_call(call, word), words.ARRAYS[word.word]
        elif not isinstance(word, words.Word) or word not in words.ARRAYS.values():
            return False
        target = statement.targets[0]
        if (
            len(statement.targets) > 1
            or not isinstance(target, ast.Name)
            or self.scope.stores[target.id] > 1
            or target.id not in self.scope.declare.get(id(statement), ())
        ):
            raise self.error(
                statement,
                f"kjit.{word.name} makes an array that one name has, assigned once: tile = kjit.{word.name}(shape, dtype)",
            )
        align = next((k.value for k in call.keywords if k.arg == "align"), None)
        if len(call.args) != 2 or len(call.keywords) != (align is not None):
            raise self.error(call, f"kjit.{word.name}(shape, dtype) or kjit.{word.name}(shape, dtype, align=bytes)")
        shape, dtype = call.args
        if self.is_typed and dtypes.name_of(self.numpy_dtype(self.static_value(dtype))) is None:
            self.check_element(dtype, target)
        parts = [self.source.place(target), f"{word.name} {self.local(target.id)}: ", *self.element(dtype), "["]
        extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        known = self.static_value(shape)
        if isinstance(known, tuple):
            extents = [ast.copy_location(ast.Constant(e), shape) for e in known]
        if not (len(extents) == 1 and self.static_value(extents[0]) == 0 and word.name == "shared"):
            self.ranks[target.id] = len(extents)
            for i, extent in enumerate(extents):
                parts += ([", "] if i else []) + self.expression(extent)
        parts.append("]")
        if align is not None:
            parts += [" @align(", *self.expression(align), ")"]
        self.put(depth, parts)
        return True

    def numpy_array(self, statement, depth):
        """tile = np.zeros(3): an array of the thread, of constant size. Whether the statement is one."""
        made = temporaries.made_by(statement, self.static, self.error)
        if made is None:
            return False
        if not temporaries.is_constant(made, self.static):
            raise self.error(
                statement,
                f"the size of `{made.name}` is no constant: a function that loops call makes arrays of constant size; make the "
                "array outside, and hand it over",
            )
        if self.scope.stores[made.name] > 1 or made.name not in self.scope.declare.get(id(statement), ()):
            raise self.error(statement, f"`{made.name}` is an array of the function's own, which is assigned once")
        dtype = self.numpy_dtype(float if made.dtype is None else self.static_value(made.dtype))
        if isinstance(dtype, (bool, int, float)):
            dtype = type(dtype)
        shape = self.static_value(made.shape)
        kind = {bool: "bool", int: "i64", float: "f64", complex: "c128"}.get(dtype) or self.type_text(dtype, statement)
        extents = ", ".join(map(str, shape if isinstance(shape, tuple) else (shape,)))
        name = self.local(made.name)
        self.put(depth, [self.source.place(statement)], f"local {name}: {kind}[{extents}]")
        if made.fill is not None:
            symbol = self.builder.function(temporaries.FILL)
            self.used.add(symbol)
            self.put(depth, f"{symbol}({name}, ", self.expression(made.fill), ")")
        return True

    def plain_array_call(self, call, form):
        """kjit.shared(shape, dtype, align=bytes) in place of a word with other parameters."""
        bound = form.bind(call)
        if isinstance(bound, str):
            raise self.error(call, bound)
        align = bound["alignment"]
        is_given = align != "None" and self.static_value(align) is not None
        known = self.static_value(align) if is_given else None
        if type(known) is int and (known <= 0 or known & (known - 1)):
            raise self.error(align, f"Alignment must be a positive power of two, not {known}", SourceValueError)
        if is_given and known is not static.UNKNOWN and type(known) is not int:
            raise self.error(align, f"alignment must be a constant integer, not {known!r}")
        keywords = [ast.keyword(arg="align", value=align)] if is_given else []
        return ast.copy_location(ast.Call(call.func, [bound["shape"], bound["dtype"]], keywords), call)

    def check_element(self, node, target):
        """Numba's words for what is no element type, where it is seen before types are inferred."""
        value = self.static_value(node)
        is_known = self.builder.record(value) is not None if value is not static.UNKNOWN else isinstance(node, ast.Attribute)
        if not is_known and not isinstance(value, str):
            raise self.error(node, f"Cannot infer the type of variable '{target.id}': its elements have no type of kjit's")

    def numpy_dtype(self, value):
        """The dtype of NumPy that a text names where Numba's rules hold: "f4", "int". Any other value as it is."""
        if not self.is_typed or not isinstance(value, str):
            return value
        import numpy

        try:
            return numpy.dtype(value)
        except TypeError:
            return value

    def element(self, node):
        value = self.numpy_dtype(self.static_value(node))
        if value is not static.UNKNOWN:
            return [self.source.place(node), self.type_text(value, node)]
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return self.expression(node)
        raise self.error(node, "an element type is kjit.f32 or the like, or an array's dtype")

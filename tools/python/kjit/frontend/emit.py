"""Statements and expressions of one function as text of the kernel IR. Expressions are lists of texts and of places
(file, line, column), which say where in Python the text behind them comes from."""
import ast
import inspect

from .. import dtypes
from .._errors import remember_raise
from . import module as modules
from . import static, words
from .scope import Scope

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
           ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_DIRECT = (ast.Name, ast.Constant, ast.Attribute)  # repeated without harm


class Emitter:
    def __init__(self, builder, python, source, node, avoid, is_typed=False):
        self.builder, self.python, self.source, self.node, self.is_typed = builder, python, source, node, is_typed
        self.avoid, self.used, self.renamed, self.lines, self.temporaries = avoid, set(), {}, [], 0
        self.kind = None
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            bad = arguments.vararg or arguments.kwarg or arguments.kwonlyargs[0]
            raise self.error(bad, "a kernel's parameters are plain ones: no *args, **kwargs or keyword-only parameters")
        self.arguments = [*arguments.posonlyargs, *arguments.args]
        self.parameters = [a.arg for a in self.arguments]
        self.body = node.body if isinstance(node, ast.FunctionDef) else [ast.copy_location(ast.Return(node.body), node.body)]
        for statement in self.body:
            for inner in ast.walk(statement):
                name = type(inner).__name__
                if name in words.INSTEAD and name != "Slice":
                    raise self.error(inner, words.INSTEAD[name])
        self.scope = Scope(self.body, self.parameters)
        self.static = static.Names(python, self.scope.names | set(self.parameters))
        for where, name in self.scope.unassigned:
            raise self.error(where, f"`{name}` is used before it is assigned")
        for annotations in self.scope.types.values():
            for other in annotations[1:]:
                if ast.dump(other) != ast.dump(annotations[0]):
                    raise self.error(other, f"another type than in line {annotations[0].lineno}: a variable of a kernel has one type")

    # ---- help ----

    def error(self, node, message):
        if not hasattr(node, "lineno"):
            node = self.node
        return self.source.error(node, message)

    def local(self, name):
        if name not in self.renamed:
            text = name if name.isascii() else "".join(c if c.isascii() else "_" for c in name)
            while text in words.RESERVED or text in self.avoid or text in self.renamed.values():
                text += "_"
            self.renamed[name] = text
        return self.renamed[name]

    def temporary(self):
        self.temporaries += 1
        return self.local(f"t{self.temporaries}_of_{self.node.lineno}")

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

    def write(self, name, kind, attributes):
        self.kind = kind
        self.used.add(name)
        copies = []
        head = [self.source.place(self.node), f"{kind} {name}("]
        for i, argument in enumerate(self.arguments):
            head += [", "] if i else []
            parameter = self.local(argument.arg)
            if argument.arg in self.scope.stores:
                parameter = self.local(argument.arg + "_given")
                copies.append((argument, parameter))
            head += [self.source.place(argument), *self.parameter(argument, parameter)]
        head.append(")")
        result = getattr(self.node, "returns", None)
        if result is not None and kind == "func":
            annotated = self.annotation("return", result)
            if annotated is not None:
                head += [" -> ", self.source.place(result), self.type_text(annotated, result)]
        self.put(0, head, f"{attributes} {{")
        for argument, parameter in copies:
            self.declare(1, argument, argument.arg)
            self.put(1, [self.source.place(argument)], f"{self.local(argument.arg)} = {parameter}")
        self.block(self.body, 1)
        self.put(0, "}")
        return self.lines

    def annotation(self, name, node):
        value = self.python.__annotations__.get(name, inspect.Parameter.empty)
        if isinstance(value, str):
            value = self.static_value(ast.parse(value, mode="eval").body) if value.isidentifier() or "." in value else value
        return None if value in (inspect.Parameter.empty, None) else value

    def parameter(self, argument, name):
        if argument.annotation is None:
            return [name]
        value = self.annotation(argument.arg, argument.annotation)
        if value is None:
            return [name]
        if isinstance(value, dtypes.Const):
            return [f"const {name}" + ("" if value.type is None else ": " + self.type_text(value.type, argument.annotation))]
        return [f"{name}: {self.type_text(value, argument.annotation)}"]

    def type_text(self, value, node):
        text = dtypes.name_of(value)
        if text is None:
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

    @staticmethod
    def is_truth(node):
        if isinstance(node, ast.Compare) or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
        if isinstance(node, ast.BoolOp):
            return all(Emitter.is_truth(v) for v in node.values)
        return isinstance(node, ast.Constant) and isinstance(node.value, bool)

    def do_Pass(self, statement, depth):
        pass

    def do_Break(self, statement, depth):
        self.put(depth, [self.source.place(statement)], "break")

    def do_Continue(self, statement, depth):
        self.put(depth, [self.source.place(statement)], "continue")

    def do_Return(self, statement, depth):
        place = [self.source.place(statement)]
        if statement.value is None or isinstance(statement.value, ast.Constant) and statement.value.value is None:
            self.put(depth, place, "return")
        elif self.kind == "kernel":
            raise self.error(statement, "a kernel returns nothing: write to an array, or make it a kjit.func")
        else:
            self.put(depth, place, "return ", self.expression(statement.value))

    def do_Expr(self, statement, depth):
        value = statement.value
        if isinstance(value, ast.Constant):
            if isinstance(value.value, (str, type(...))):
                return
            raise self.error(value, "a number that nobody uses")
        if not isinstance(value, ast.Call):
            raise self.error(value, "an expression that nobody uses: only calls stand alone")
        if self.static_value(value.func) is print:
            return self.print(value, depth)
        self.put(depth, self.expression(value))

    def print(self, call, depth):
        if call.keywords:
            raise self.error(call.keywords[0].value, "print() in a kernel takes no keywords: it prints one line, with a blank between values")
        parts = [self.source.place(call), "print("]
        for i, argument in enumerate(call.args or [ast.copy_location(ast.Constant(""), call)]):
            parts += ([", "] if i else []) + self.text_or_value(argument)
        self.put(depth, parts, ")")

    def text_or_value(self, node):
        value = self.static_value(node)
        return [modules.quote(value)] if isinstance(value, str) else self.expression(node)

    def do_Assert(self, statement, depth):
        parts = [self.source.place(statement), "assert ", *self.condition(statement.test)]
        if statement.msg is not None:
            text = self.static_value(statement.msg)
            if not isinstance(text, str):
                raise self.error(statement.msg, "the message of an assert is a text that is known when the kernel is compiled")
            parts += [", ", modules.quote(text)]
        self.put(depth, parts)

    def do_Raise(self, statement, depth):
        call = statement.exc
        if call is None or statement.cause is not None:
            raise self.error(statement, "in a kernel: raise ValueError(\"a text\")")
        is_call = isinstance(call, ast.Call)
        kind = self.static_value(call.func if is_call else call)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise self.error(call, "what is raised is a class of exceptions that is known when the kernel is compiled")
        text = kind.__name__
        if is_call and (call.args or call.keywords):
            text = self.static_value(call.args[0]) if len(call.args) == 1 and not call.keywords else None
            if not isinstance(text, str):
                raise self.error(call, "an exception of a kernel has one text, known when the kernel is compiled")
        place = self.source.place(statement)
        remember_raise(place, kind)
        self.put(depth, [place], f"raise {modules.quote(text)}")

    def do_If(self, statement, depth):
        known = self.static_value(statement.test)
        if isinstance(known, static._PLAIN):
            return self.block(statement.body if known else statement.orelse, depth) if not self.declares(statement) else \
                self.inner(["if true {"], statement.body if known else statement.orelse, depth)
        self.put(depth, [self.source.place(statement)], "if ", self.condition(statement.test), " {")
        self.block(statement.body, depth + 1)
        if statement.orelse:
            self.put(depth, "} else {")
            self.block(statement.orelse, depth + 1)
        self.put(depth, "}")

    def declares(self, statement):
        """Whether names are declared inside: they must not come into the block around."""
        return any(id(s) in self.scope.declare or id(s) in self.scope.hoist for s in ast.walk(statement) if isinstance(s, ast.stmt))

    def inner(self, head, body, depth):
        self.put(depth, head)
        self.block(body, depth + 1)
        self.put(depth, "}")

    def do_While(self, statement, depth):
        if statement.orelse:
            raise self.error(statement.orelse[0], "a loop in a kernel has no else")
        self.inner([self.source.place(statement), "while ", *self.condition(statement.test), " {"], statement.body, depth)

    def do_For(self, statement, depth):
        if statement.orelse:
            raise self.error(statement.orelse[0], "a loop in a kernel has no else")
        head, attribute = self.loop_head(statement.iter)
        target = statement.target
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not all(isinstance(n, ast.Name) for n in names):
            raise self.error(target, "the variables of a loop are plain names")
        copies, heads = [], []
        for name in names:
            text, is_outer = self.local(name.id), (id(statement), name.id) in self.scope.outer
            if is_outer or self.is_stored_inside(statement.body, name.id):
                copies.append((name, text, is_outer))
                text = self.local(name.id + "_counts")
            heads += ([", "] if heads else []) + [self.source.place(name), text]
        self.put(depth, [self.source.place(statement), "for ", *heads, " in ", *head], f"{attribute} {{")
        for name, text, is_outer in copies:
            if not is_outer:
                self.declare(depth + 1, name, name.id)
            self.put(depth + 1, [self.source.place(name)], f"{text} = {self.local(name.id + '_counts')}")
        self.block(statement.body, depth + 1)
        self.put(depth, "}")

    def loop_head(self, call):
        """What a loop goes over, and its attribute."""
        attribute = ""
        kind = self.static_value(call.func) if isinstance(call, ast.Call) else None
        if kind is words.LOOPS["unroll"] or kind is words.LOOPS["static"]:
            most = 2 if kind.name == "unroll" else 1
            if not 1 <= len(call.args) <= most or call.keywords or self.loop_word(call.args[0]) != "range":
                raise self.error(call, "unroll(range(n)) or unroll(range(n), factor)" if most == 2 else "static(range(n))")
            factor = self.static_value(call.args[1]) if len(call.args) == 2 else None
            if len(call.args) == 2 and type(factor) is not int:
                raise self.error(call.args[1], "the factor of unroll is an integer that is known when the kernel is compiled")
            call, attribute = call.args[0], f" @{kind.name}" + (f"({factor})" if factor is not None else "")
        word = self.loop_word(call)
        if word is None:  # the items of a tuple, or what is behind the first index of an array
            return self.expression(call), attribute
        if call.keywords or not call.args:
            raise self.error(call, f"{word}() takes numbers, one at least")
        parts = [self.source.place(call), f"{word}("]
        for i, argument in enumerate(call.args):
            parts += ([", "] if i else []) + self.expression(argument)
        return [*parts, ")"], attribute

    @staticmethod
    def is_stored_inside(body, name):
        return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for s in body for n in ast.walk(s))

    def loop_word(self, call):
        if not isinstance(call, ast.Call):
            return None
        found = self.static_value(call.func)
        if found is range or getattr(found, "kjit_loop", None) == "prange":
            return "range"
        return found.name if found in (words.LOOPS["grid_range"], words.LOOPS["block_range"]) else None

    # ---- assignments ----

    def do_Assign(self, statement, depth):
        if self.array_declaration(statement, depth):
            return
        if len(statement.targets) > 1:
            name = self.temporary()
            self.put(depth, f"let {name} = ", self.expression(statement.value))
            for target in statement.targets:
                self.store(statement, [target], [name], depth)
            return
        target = statement.targets[0]
        if not isinstance(target, (ast.Tuple, ast.List)):
            return self.store(statement, [target], self.expression(statement.value), depth)
        value = self.expression(statement.value)
        if isinstance(statement.value, ast.Tuple):  # swaps: all values before all places
            value = []
            for i, item in enumerate(statement.value.elts):
                value += ([", "] if i else []) + self.expression(item)
            if len(statement.value.elts) != len(target.elts):
                raise self.error(statement, f"{len(statement.value.elts)} values for {len(target.elts)} variables")
        self.store(statement, target.elts, value, depth)

    def store(self, statement, targets, value, depth):
        """The value to the targets; those that are declared here with let or var."""
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Subscript, ast.Attribute)):
                raise self.error(target, "a target is a name, an element or a field")
            self.forbid_global(target)
        new = [t for t in targets if isinstance(t, ast.Name) and t.id in self.scope.declare.get(id(statement), ())]
        place = [self.source.place(targets[0])]
        if new and len(new) == len(targets) and all(self.scope.stores[t.id] == 1 and t.id not in self.scope.types for t in new):
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
        if isinstance(base, ast.Name) and base.id not in self.scope.names and base.id not in self.parameters:
            raise self.error(target, f"`{base.id}` belongs to Python around the kernel, which is a constant here: hand it over as an argument")

    def do_AnnAssign(self, statement, depth):
        if not isinstance(statement.target, ast.Name):
            raise self.error(statement, "a variable may have a type, an element or a field has none of its own: x: kjit.f32 = 0")
        name = statement.target.id
        if statement.value is not None:
            self.store(statement, [statement.target], self.expression(statement.value), depth)
        elif name in self.scope.declare.get(id(statement), ()):
            self.declare(depth, statement, name)

    def do_AugAssign(self, statement, depth):
        operator = _BINARY.get(type(statement.op))
        if not operator:
            raise self.error(statement, "a kernel has no matrix product of arrays: write the loops")
        self.forbid_global(statement.target)
        place = self.source.operator_place(statement.target, statement.value, operator + "=")
        if operator == "/" and self.is_typed and isinstance(statement.target, ast.Name):
            target = self.expression(statement.target)
            return self.put(depth, target, " = ", self.dividend(target), " ", [place], "/ ", self.expression(statement.value))
        self.put(depth, self.expression(statement.target), " ", [place], f"{operator}= ", self.expression(statement.value))

    def array_declaration(self, statement, depth):
        """tile = kjit.shared(shape, dtype)"""
        call = statement.value
        if not isinstance(call, ast.Call):
            return False
        word = self.static_value(call.func)
        if word not in words.ARRAYS.values():
            return False
        target = statement.targets[0]
        if len(statement.targets) > 1 or not isinstance(target, ast.Name) or self.scope.stores[target.id] > 1 or \
                target.id not in self.scope.declare.get(id(statement), ()):
            raise self.error(statement, f"kjit.{word.name} makes an array that one name has, assigned once: tile = kjit.{word.name}(shape, dtype)")
        align = next((k.value for k in call.keywords if k.arg == "align"), None)
        if len(call.args) != 2 or len(call.keywords) != (align is not None):
            raise self.error(call, f"kjit.{word.name}(shape, dtype) or kjit.{word.name}(shape, dtype, align=bytes)")
        shape, dtype = call.args
        parts = [self.source.place(target), f"{word.name} {self.local(target.id)}: ", *self.element(dtype), "["]
        extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        known = self.static_value(shape)
        if isinstance(known, tuple):
            extents = [ast.copy_location(ast.Constant(e), shape) for e in known]
        if not (len(extents) == 1 and self.static_value(extents[0]) == 0 and word.name == "shared"):
            for i, extent in enumerate(extents):
                parts += ([", "] if i else []) + self.expression(extent)
        parts.append("]")
        if align is not None:
            parts += [" @align(", *self.expression(align), ")"]
        self.put(depth, parts)
        return True

    def element(self, node):
        value = self.static_value(node)
        if value is not static.UNKNOWN:
            return [self.source.place(node), self.type_text(value, node)]
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return self.expression(node)
        raise self.error(node, "an element type is kjit.f32 or the like, or an array's dtype")

    # ---- expressions ----

    def static_value(self, node):
        return self.static.value(node)

    def expression(self, node):
        value = self.static_value(node)
        if value is not static.UNKNOWN and not isinstance(node, ast.Constant):
            return [self.source.place(node), *self.known(value, node)]
        method = getattr(self, "of_" + type(node).__name__, None)
        if not method:
            raise self.error(node, f"a kernel has no expression of this kind ({type(node).__name__})")
        return method(node)

    def known(self, value, node):
        """The text of an object of Python that is known."""
        text = modules.literal(value, self.is_typed)
        if text is not None:
            return [text]
        name = words.builtin_name(value)
        if name is not None:
            return [name]
        if not isinstance(value, str) and not any(value is kind for kind in (int, float, complex)) and dtypes.name_of(value):
            return [dtypes.name_of(value)]
        if getattr(value, "is_kjit_kernel", False):
            raise self.error(node, "a kernel calls no kernel: make the function a kjit.func")
        if modules.is_function(value):
            symbol = self.builder.function(value)
            self.used.add(symbol)
            return [symbol]
        if type(value).__module__ == "numpy" and hasattr(value, "shape"):
            symbol = self.builder.array(value, node.id if isinstance(node, ast.Name) else "constant")
            if symbol:
                self.used.add(symbol)
                return [symbol]
        reason = words.REFUSED.get(getattr(value, "__name__", None)) if getattr(value, "__module__", None) == "builtins" else None
        if reason:
            raise self.error(node, reason)
        what = "None" if value is None else "a text" if isinstance(value, str) else f"an object of {type(value).__name__}"
        raise self.error(node, f"{what} is nothing that a kernel can use: numbers, tuples of numbers, NumPy arrays, functions and kjit's own words are")

    def of_Constant(self, node):
        return [self.source.place(node), *self.known(node.value, node)]

    def of_Name(self, node):
        if node.id in self.scope.names or node.id in self.parameters:
            return [self.source.place(node), self.local(node.id)]
        raise self.error(node, f"`{node.id}` is not defined")

    def of_Attribute(self, node):
        base = self.static_value(node.value)
        if isinstance(base, words.Word):
            return [self.source.place(node), f"{base.name}.{node.attr}"]
        if base is not static.UNKNOWN:
            raise self.error(node, f"a kernel cannot use the attribute `{node.attr}` of {type(base).__name__}; give it a name outside of the kernel")
        if node.attr == "dtype":
            return [self.source.place(node), "dtype(", *self.expression(node.value), ")"]
        if node.attr == "strides":
            raise self.error(node, "strides count bytes in NumPy and elements in kjit; a kernel does without them: index the array")
        return [*self.expression(node.value), ".", node.attr]

    def of_Subscript(self, node):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.slice, ast.Tuple) and not items:
            items = []
        parts = [*self.expression(node.value), "["]
        for i, item in enumerate(items):
            parts += ([", "] if i else []) + (self.slice(item) if isinstance(item, ast.Slice) else self.index(item))
        return [self.source.place(node), *parts, "]"]

    def index(self, node):
        value = self.static_value(node)
        if value is None or value is ...:
            raise self.error(node, "an index of a kernel is an integer or a slice, no None and no ...")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return [self.source.place(node), "-", *self.expression(node.operand)]  # counts from the end
        return self.expression(node)

    def slice(self, node):
        parts = [] if node.lower is None else self.index(node.lower)
        parts += [":"] + ([] if node.upper is None else self.index(node.upper))
        return parts + ([] if node.step is None else [":", *self.expression(node.step)])

    def of_Tuple(self, node):
        if not node.elts:
            raise self.error(node, "a tuple without items")
        parts = [self.source.place(node), "("]
        for i, item in enumerate(node.elts):
            parts += ([", "] if i else []) + self.expression(item)
        return [*parts, ",)" if len(node.elts) == 1 else ")"]

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return [self.source.place(node), "(not ", *self.condition(node.operand), ")"]
        return [self.source.place(node), f"({_UNARY[type(node.op)]}", *self.expression(node.operand), ")"]

    def of_BinOp(self, node):
        operator = _BINARY.get(type(node.op))
        if not operator:
            raise self.error(node, "a kernel has no matrix product of arrays: write the loops")
        place = self.source.operator_place(node.left, node.right, operator)
        if operator == "/" and self.is_typed:
            return ["(", *self.dividend(self.expression(node.left)), " ", place, "/ ", *self.expression(node.right), ")"]
        return ["(", *self.expression(node.left), " ", place, operator, " ", *self.expression(node.right), ")"]

    def dividend(self, parts):
        """Where numbers of Python have types, the quotient of integers is a float."""
        symbol = self.builder.function(words.DIVIDEND)
        self.used.add(symbol)
        return [f"{symbol}(", *parts, ")"]

    def of_Compare(self, node):
        operands = [node.left, *node.comparators]
        for operator in node.ops:
            if type(operator) not in _COMPARE:
                raise self.error(node, "a kernel compares numbers: `is` and `in` need values that are known when it is compiled")
        for middle in operands[1:-1]:
            if any(isinstance(n, ast.Call) for n in ast.walk(middle)):
                raise self.error(middle, "a call in the middle of a chained comparison: give its value a name first")
        parts = []
        for left, operator, right in zip(operands, node.ops, operands[1:]):
            text = _COMPARE[type(operator)]
            place = self.source.operator_place(left, right, text)
            parts.append(["(", *self.expression(left), " ", place, text, " ", *self.expression(right), ")"])
        if len(parts) == 1:
            return parts[0]
        joined = ["("]
        for i, part in enumerate(parts):
            joined += ([" and "] if i else []) + part
        return [*joined, ")"]

    def condition(self, node):
        """An expression of which only the truth counts."""
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            parts = ["("]
            for i, value in enumerate(node.values):
                parts += ([word] if i else []) + self.condition(value)
            return [*parts, ")"]
        return self.expression(node)

    def of_BoolOp(self, node):
        """As in Python, one of the operands: `a and b` is b if a holds, else a."""
        if self.is_truth(node):
            return self.condition(node)
        result = self.expression(node.values[-1])
        for value in reversed(node.values[:-1]):
            if not isinstance(value, _DIRECT) and not self.is_truth(value):
                raise self.error(value, "as a value, `and` and `or` give one of their operands: give this one a name first, or write `a if c else b`")
            first = self.expression(value)
            both = [result, first] if isinstance(node.op, ast.And) else [first, result]
            result = ["(", *first, " ? ", *both[0], " : ", *both[1], ")"]
        return result

    def of_IfExp(self, node):
        return [self.source.place(node), "(", *self.condition(node.test), " ? ", *self.expression(node.body), " : ",
                *self.expression(node.orelse), ")"]

    # ---- calls ----

    def of_Call(self, node):
        thing = self.static_value(node.func)
        if thing is static.UNKNOWN:
            return self.call_unknown(node)
        if thing in words.ARRAYS.values() if isinstance(thing, words.Word) else False:
            raise self.error(node, f"kjit.{thing.name} stands alone: tile = kjit.{thing.name}(shape, dtype)")
        if thing is print or isinstance(thing, words.Word) and thing.name not in words.BUILTINS or thing is range:
            raise self.error(node, "this stands in a statement of its own, not in an expression")
        name = words.builtin_name(thing)
        conversion = words.conversion(thing) if self.is_typed and len(node.args) == 1 and not node.keywords else None
        if conversion:
            inner = [self.source.place(node), conversion, "(", *self.expression(node.args[0]), ")"]
            return ["i64(", *inner, ")"] if thing is round else inner
        if name is not None:
            return self.call_builtin(node, name)
        if isinstance(thing, words.Text):
            symbol = self.builder.function(thing)
            self.used.add(symbol)
            return [self.source.place(node), symbol, *self.positional(node)]
        if modules.is_function(thing) and not getattr(thing, "is_kjit_kernel", False):
            return self.call_function(node, thing)
        return [self.source.place(node), *self.expression(node.func), *self.positional(node)]

    def call_unknown(self, node):
        if isinstance(node.func, ast.Name):
            if node.func.id not in self.parameters and node.func.id not in self.scope.names:
                raise self.error(node.func, f"`{node.func.id}` is not defined")
            return [self.source.place(node), *self.expression(node.func), *self.positional(node)]
        if isinstance(node.func, ast.Attribute) and node.func.attr != "dtype":
            raise self.error(node.func, f"a kernel's arrays and numbers have no methods (`{node.func.attr}`)")
        return [self.source.place(node), *self.expression(node.func), *self.positional(node)]

    def positional(self, node):
        if node.keywords:
            raise self.error(node.keywords[0].value, "this takes no keyword arguments")
        parts = ["("]
        for i, argument in enumerate(node.args):
            parts += ([", "] if i else []) + self.text_or_value(argument)
        return [*parts, ")"]

    def call_builtin(self, node, name):
        if name in ("min", "max") and len(node.args) > 2 and not node.keywords:
            parts = self.expression(node.args[0])
            for argument in node.args[1:]:
                parts = [self.source.place(node), f"{name}(", *parts, ", ", *self.expression(argument), ")"]
            return parts
        if name == "rint" and len(node.args) > 1:
            raise self.error(node, "round(x, n) with digits: a kernel rounds to whole numbers only")
        return [self.source.place(node), name, *self.positional(node)]

    def call_function(self, node, thing):
        python = getattr(thing, "py_func", thing)
        symbol = self.builder.function(thing)
        self.used.add(symbol)
        try:
            bound = inspect.signature(python).bind(*node.args, **{k.arg or "**": k.value for k in node.keywords})
        except TypeError as problem:
            raise self.error(node, f"{python.__name__}(): {problem}") from None
        parts = [self.source.place(node), f"{symbol}("]
        for i, (name, parameter) in enumerate(inspect.signature(python).parameters.items()):
            parts += [", "] if i else []
            if name in bound.arguments and isinstance(bound.arguments[name], ast.AST):
                parts += self.expression(bound.arguments[name])
            else:
                parts += self.known(parameter.default, node)
        return [*parts, ")"]

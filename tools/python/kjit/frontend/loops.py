"""Translates the loops in one function to kernel IR text."""

import ast

from . import array_texts as texts
from . import ranges, words

_ENUMERATE_FROM = words.Text(
    "enumerate_from",
    """
func enumerate_from(start) {
  if not is_integer(dtype(start)) { let enumerate_start: i64 = start }
  return start
}""",
)


class Loops:
    """The part of the emitter for loops."""

    def do_While(self, statement, depth):
        self.begin_loop(statement, depth)
        self.inner(
            [self.source.place(statement), "while ", *self.condition(statement.test), " {"], statement.body, depth
        )
        self.end_loop(statement, depth)

    # ---- loops with an else block, which runs unless a break has ended the loop ----

    def begin_loop(self, statement, depth):
        flag = self.temporary() if statement.orelse and self.has_break(statement.body) else None
        if flag:
            self.put(depth, f"var {flag} = true")
        self.flags.append(flag)

    def end_loop(self, statement, depth):
        flag = self.flags.pop()
        if statement.orelse:
            self.inner([f"if {flag or 'true'} {{"], statement.orelse, depth)

    @classmethod
    def has_break(cls, body):
        for statement in body:
            if isinstance(statement, ast.Break):
                return True
            inner = statement.orelse if isinstance(statement, (ast.For, ast.While)) else ()
            if isinstance(statement, ast.If):
                inner = [*statement.body, *statement.orelse]
            if cls.has_break(inner):
                return True
        return False

    def do_For(self, statement, depth):
        items = self.static_value(statement.iter)
        if type(items) is tuple and not items:
            return self.block(statement.orelse, depth)
        self.begin_loop(statement, depth)
        if isinstance(statement.iter, ast.List):
            statement.iter = ast.copy_location(ast.Tuple(statement.iter.elts, ast.Load()), statement.iter)
        if self.is_range_value(statement.iter):
            self.loop_of_range(statement, depth)
        elif self.is_typed and self.loop_of_positions(statement, depth):
            pass
        elif isinstance(statement.iter, ast.Call) and any(self.static_value(statement.iter.func) is kind for kind in (enumerate, zip)):
            self.loop_of_items(statement, depth)
        else:
            self.loop(statement, depth)
        self.end_loop(statement, depth)

    def is_range_value(self, node):
        """Returns whether a loop iterates over a range that is not simply a call of range in its
        head."""
        is_call = isinstance(node, ast.Call) and self.static_value(node.func) is range
        return not is_call and ranges.is_range(self, node)

    def loop_of_range(self, statement, depth):
        numbers, counter = self.temporary(), self.temporary()
        self.put(depth, [self.source.place(statement)], f"let {numbers} = ", ranges.value(self, statement.iter))
        self.put(depth, [self.source.place(statement)], f"for {counter} in range({numbers}[2]) {{")
        self.take_item(statement, statement.target, [f"{self.use(ranges.NUMBER)}({numbers}, {counter})"], depth + 1)
        self.block(statement.body, depth + 1)
        self.put(depth, "}")

    # ---- enumerate and zip: loops over a counter that indexes the items ----

    def loop_of_items(self, statement, depth):
        counter, lengths = self.temporary(), []
        item = self.items_of(statement.iter, counter, lengths, depth)
        if not lengths:
            raise self.error(statement.iter, "zip() needs at least one argument")
        length = lengths[0]
        for other in lengths[1:]:
            length = ["min(", *length, ", ", *other, ")"]
        self.put(depth, [self.source.place(statement)], f"for {counter} in range(", length, ") {")
        self.take_item(statement, statement.target, item, depth + 1)
        self.block(statement.body, depth + 1)
        self.put(depth, "}")

    def items_of(self, node, counter, lengths, depth):
        """Returns the item with index `counter` of an iterated object: a text, or a tuple of texts.
        lengths: receives the lengths of the iterated objects."""
        kind = self.static_value(node.func) if isinstance(node, ast.Call) else None
        if kind is zip and not node.keywords:
            return tuple(self.items_of(a, counter, lengths, depth) for a in node.args)
        if kind is enumerate and 1 <= len(node.args) + len(node.keywords) <= 2 and node.args:
            start = node.args[1:] + [k.value for k in node.keywords if k.arg == "start"]
            item = self.items_of(node.args[0], counter, lengths, depth)
            return [f"({counter} + ", *self.start_of(start[0]), ")"] if start else [counter], item
        name = self.temporary()
        if ranges.is_range(self, node):
            self.put(depth, f"let {name} = ", ranges.value(self, node))
            lengths.append([f"{name}[2]"])
            return [f"{self.use(ranges.NUMBER)}({name}, {counter})"]
        if self.is_flat(node):
            self.put(depth, [self.source.place(node)], f"let {name} = ", self.expression(node.value))
            lengths.append([f"{name}.size"])
            return [f"{name}[", *self.call_library(texts.POSITION, [f"{name}.shape"], [counter]), "]"]
        self.put(depth, [self.source.place(node)], f"let {name} = ", self.expression(node))
        lengths.append([f"len({name})"])
        return [f"refer({name}[{counter}])"]

    def start_of(self, node):
        """Returns the text of the first number of enumerate, which must be an integer."""
        if isinstance(self.static_value(node), int):
            return self.expression(node)
        return [self.source.place(node), self.use(_ENUMERATE_FROM), "(", *self.expression(node), ")"]

    def take_item(self, statement, target, item, depth):
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(item, tuple):
                parts = self.temporary()
                self.put(depth, f"let {parts} = ", item)
                item = tuple([f"{parts}[{i}]"] for i in range(len(target.elts)))
            if len(item) != len(target.elts):
                raise self.error(target, f"an item of the loop has {len(item)} values, but there are {len(target.elts)} variables")
            for one, part in zip(target.elts, item):
                self.take_item(statement, one, part, depth)
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "a loop variable must be a plain name")
        text = self.local(target.id)
        if isinstance(item, tuple):
            item = self.join_items(item)
        is_outer = (id(statement), target.id) in self.scope.outer
        if not is_outer and not self.is_stored_inside(statement.body, target.id):
            return self.put(depth, [self.source.place(target)], f"let {text} = ", item)
        if not is_outer:
            self.declare(depth, target, target.id)
        self.put(depth, [self.source.place(target)], f"{text} = ", item)

    def join_items(self, item):
        parts = ["("]
        for i, part in enumerate(item):
            parts += ([", "] if i else []) + (self.join_items(part) if isinstance(part, tuple) else part)
        return [*parts, ",)" if len(item) == 1 else ")"]

    def loop(self, statement, depth):
        head, attribute = self.loop_head(statement.iter)
        target = statement.target
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not names or not all(isinstance(n, ast.Name) for n in names):
            raise self.error(target, "a loop variable must be a plain name")
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
        """Returns (the text of the object that a loop iterates over, the loop's attribute)."""
        attribute = ""
        kind = self.static_value(call.func) if isinstance(call, ast.Call) else None
        if kind is words.LOOPS["unroll"] or kind is words.LOOPS["static"]:
            most = 2 if kind.name == "unroll" else 1
            if not 1 <= len(call.args) <= most or call.keywords or self.loop_word(call.args[0]) != "range":
                raise self.error(
                    call, "unroll takes a range and an optional factor: unroll(range(n), factor)" if most == 2 else "static takes a range: static(range(n))"
                )
            factor = self.static_value(call.args[1]) if len(call.args) == 2 else None
            if len(call.args) == 2 and type(factor) is not int:
                raise self.error(
                    call.args[1], "the factor of unroll must be an integer that is known when the kernel is compiled"
                )
            call, attribute = call.args[0], f" @{kind.name}" + (f"({factor})" if factor is not None else "")
        word = self.loop_word(call)
        if word is None:  # the items in a tuple, or the elements along the first dimension of an array
            return self.items(call), attribute
        if call.keywords or not call.args:
            raise self.error(call, f"{word}() takes one or more numbers")
        parts = [self.source.place(call), f"{word}("]
        for i, argument in enumerate(call.args):
            parts += ([", "] if i else []) + self.expression(argument)
        return [*parts, ")"], attribute

    def items(self, node):
        """Returns the text of a tuple or array that a loop iterates over. A record of an array is a
        reference."""
        if isinstance(node, ast.Tuple):
            return self.referred(node)
        is_array = isinstance(node, ast.Name) or isinstance(node, ast.Subscript) and not isinstance(self.static_value(node.slice), str)
        return ["refer(", *self.expression(node), ")"] if is_array else self.expression(node)

    @staticmethod
    def is_stored_inside(body, name):
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for s in body for n in ast.walk(s)
        )

    def loop_word(self, call):
        if not isinstance(call, ast.Call):
            return None
        found = self.static_value(call.func)
        if found is range or getattr(found, "kjit_loop", None) == "prange":
            return "range"
        return found.name if found in (words.LOOPS["grid_range"], words.LOOPS["block_range"]) else None

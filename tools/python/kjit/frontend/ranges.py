"""Ranges as values: a function can assign a range to a name, index it, and use it in `in` and in
len(). In the kernel IR a range is a tuple (first number, step, number of items, stop)."""

import ast

from .._errors import remember_raise
from . import words

MAKE = words.Text(
    "range_value",
    """
func range_value(first, last, step) @numba {
  if is_integer(dtype(first)) and not is_signed(dtype(first)) and is_integer(dtype(last)) and not is_signed(dtype(last)) {
    return (u64(first), i64(step), range_length(first, last, i64(step)), u64(last))
  }
  return (i64(first), i64(step), range_length(i64(first), i64(last), i64(step)), i64(last))
}""",
    needs=(words.RANGE,),
)
ITEM = words.Text(
    "range_item",
    """
func range_item(r, i) @numba {
  let at = i < 0 ? i64(i) + r[2] : i64(i)
  assert at >= 0 and at < r[2], "range object index out of range"
  return dtype(r[0])(i64(r[0]) + at * r[1])
}""",
)
NUMBER = words.Text("range_number", "\nfunc range_number(r, i) @numba { return dtype(r[0])(i64(r[0]) + i64(i) * r[1]) }")
CONTAINS = words.Text(
    "range_contains",
    """
func range_contains(v, r) @numba {
  if is_complex(dtype(v)) { return v.imag == 0 and range_contains(v.real, r) }
  if is_float(dtype(v)) { if not (v == f64(i64(v))) { return false } }
  let distance = i64(v) - i64(r[0])
  return r[2] > 0 and distance % r[1] == 0 and distance // r[1] >= 0 and distance // r[1] < r[2]
}""",
)
REVERSED = words.Text(
    "range_reversed", "\nfunc range_reversed(r) @numba { return (dtype(r[0])(i64(r[0]) + (r[2] - 1) * r[1]), -r[1], r[2], r[0]) }"
)
_PARTS = {"start": 0, "step": 1, "stop": 3}


def names_of(emitter, assigned):
    """Returns the names whose values are all ranges. assigned: each name's values, with None for a
    value that no expression gives."""
    given = set(emitter.ranged)
    emitter.ranges = set(assigned) | given
    while True:
        kept = {n for n in emitter.ranges if n in given or all(v is not None and is_range(emitter, v) for v in assigned[n])}
        if kept == emitter.ranges:
            return kept
        emitter.ranges = kept


def is_range(emitter, node):
    """Returns whether an expression is a range."""
    if isinstance(node, ast.Name):
        return node.id in emitter.ranges
    if isinstance(node, ast.IfExp):
        return is_range(emitter, node.body) and is_range(emitter, node.orelse)
    if not isinstance(node, ast.Call):
        return False
    kind = emitter.static_value(node.func)
    return kind is range or kind is reversed and len(node.args) == 1 and is_range(emitter, node.args[0])


def value(emitter, node):
    """Returns a range's text."""
    if isinstance(node, ast.Name):
        return [emitter.source.place(node), emitter.local(node.id)]
    if isinstance(node, ast.IfExp):
        parts = [emitter.source.place(node), "(", *emitter.condition(node.test), " ? "]
        return [*parts, *value(emitter, node.body), " : ", *value(emitter, node.orelse), ")"]
    if emitter.static_value(node.func) is reversed:
        return [emitter.source.place(node), f"{emitter.use(REVERSED)}(", *value(emitter, node.args[0]), ")"]
    if not 1 <= len(node.args) <= 3 or node.keywords:
        raise emitter.error(node, "range() takes one to three integers")
    values = [emitter.expression(a) for a in node.args]
    first, last, step = [["0"], values[0], ["1"]] if len(values) == 1 else [*values, ["1"]][:3]
    return [emitter.source.place(node), f"{emitter.use(MAKE)}(", *first, ", ", *last, ", ", *step, ")"]


def attribute(emitter, node):
    """Writes r.start, r.stop and r.step."""
    if node.attr in _PARTS:
        return [*value(emitter, node.value), f"[{_PARTS[node.attr]}]"]
    raise emitter.error(node, f"a range has start, stop and step, and no `{node.attr}`")


def item(emitter, node):
    """Writes r[i]."""
    if isinstance(node.slice, (ast.Slice, ast.Tuple)):
        raise emitter.error(node.slice, "a range in a kernel can be indexed, r[i], but not sliced; write range(...) with other bounds")
    parts = [emitter.source.place(node), f"{emitter.use(ITEM)}(", *value(emitter, node.value), ", "]
    return [*parts, *emitter.expression(node.slice), ")"]


def items(emitter, node, count, depth):
    """Returns the text of the numbers of a range that is unpacked to `count` variables."""
    name = emitter.temporary()
    emitter.put(depth, [emitter.source.place(node)], f"let {name} = ", value(emitter, node))
    remember_raise(emitter.source.place(node), ValueError)
    check = f'if {name}[2] != {count} {{ raise "{count} variables for a range of another length" }}'
    emitter.put(depth, [emitter.source.place(node)], check)
    number = emitter.use(NUMBER)
    return [", ".join(f"{number}({name}, {i}i64)" for i in range(count))]


def refuse(emitter, node):
    """Returns the error for a range that is used in another way."""
    return emitter.error(node, "a range is not a value in a kernel; loop over it, index it, or use it with len() or `in`")

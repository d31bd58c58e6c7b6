"""Enumeration members in functions. In the kernel IR a member is its value; its class is known at
compile time."""

import ast
import enum

from . import static


def names_of(emitter, assigned):
    """Returns the enumeration of each name whose values are all members of that enumeration.
    assigned: each name's values, with None for a value that no expression gives."""
    emitter.enums = {n: s.enumeration for n, s in emitter.shapes.items() if hasattr(s, "enumeration") and n not in assigned}
    is_new = True
    while is_new:
        is_new = emitter.find_shapes(assigned)
        for name, values in assigned.items():
            kinds = {None if value is None else class_of(emitter, value) for value in values}
            known = kinds - {None} if any(isinstance(v, ast.IfExp) for v in values) else kinds
            if name not in emitter.enums and len(known) == 1 and None not in kinds:
                emitter.enums[name] = known.pop()
                is_new = True
    return emitter.enums


def class_of(emitter, node):
    """Returns the enumeration of which an expression is a member, or None."""
    value = emitter.static_value(node)
    if isinstance(value, enum.Enum):
        return type(value)
    if isinstance(node, ast.Name):
        kept = emitter.values.get(node.id) if node.id in emitter.kept else None
        return emitter.enums.get(node.id) if kept is None else class_of(emitter, kept)
    if isinstance(node, ast.IfExp):
        kinds = {class_of(emitter, node.body), class_of(emitter, node.orelse)}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)):
        return getattr(emitter.shape_of(node), "enumeration", None)
    return None


def compare(emitter, is_equal, left, right):
    """Returns the result of an equality comparison if the enumerations of the operands decide it:
    True, False or None."""
    kinds = class_of(emitter, left), class_of(emitter, right)
    if kinds == (None, None) or kinds[0] is kinds[1]:
        return None
    if all(kind is None or issubclass(kind, int) for kind in kinds):
        return None  # integers are compared by value
    for kind, node in zip(kinds, (left, right)):
        is_open = kind is None and emitter.is_typed and emitter.static_value(node) is static.UNKNOWN
        if is_open and isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute)):
            member = next(other for other in kinds if other is not None)
            raise emitter.error(node, f"a member of {member.__name__} is compared with a value that is not a member of an enumeration")
    return not is_equal


def are_of_different(emitter, left, right):
    """Returns whether two expressions are members of different enumerations."""
    kinds = class_of(emitter, left), class_of(emitter, right)
    return None not in kinds and kinds[0] is not kinds[1]


def attribute(emitter, node, kind):
    """Writes the `value` of a member. Other attributes are available only for a member that is
    known at compile time."""
    if node.attr == "value":
        return emitter.expression(node.value)
    what = f"`{node.attr}` of a member of {kind.__name__}"
    raise emitter.error(node, f"{what} that is not known at compile time: use the `.value` of the member")


def check(emitter, node, kind):
    """Raises an error if an enumeration's members are not numbers."""
    if not all(isinstance(member.value, (bool, int, float, complex)) for member in kind):
        raise emitter.error(node, f"the members of {kind.__name__} are not numbers: a kernel can only compare and pass numbers")


